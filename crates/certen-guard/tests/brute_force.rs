//! Generated kernels, right and wrong by one, have the verdict of brute force: all accesses at all small sizes, computed
//! here from the generator's own form of the kernel, which knows nothing of readers and prover.

use std::collections::BTreeMap;

use certen_guard::{Fault, Language, faults, read, ten};
use certen_syntax::Sources;

/// How many kernels for each language.
const KERNELS: usize = 500;

/// Sizes are tried from 1 up to this.
const MOST: i64 = 6;

struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n as u64) as usize
    }

    fn one<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }
}

/// A multiple of a name, another name, and a number: sizes and indices alike.
#[derive(Clone, PartialEq, Debug)]
struct Sum(Vec<(i64, &'static str)>, i64);

impl Sum {
    fn value(&self, at: &BTreeMap<&str, i64>) -> i64 {
        self.0.iter().map(|(factor, name)| factor * at[name]).sum::<i64>() + self.1
    }

    fn text(&self) -> String {
        let mut text: Vec<String> =
            self.0.iter().map(|(c, n)| if *c == 1 { n.to_string() } else { format!("{c} * {n}") }).collect();
        if self.1 != 0 || text.is_empty() {
            text.push(self.1.to_string());
        }
        text.join(" + ").replace("+ -", "- ")
    }
}

/// A size: a name, perhaps off by one, or a number.
fn size(rng: &mut Rng) -> Sum {
    let name = rng.one(&["n", "m", "h"]);
    match rng.below(6) {
        0 => Sum(vec![(1, name)], 1),
        1 => Sum(Vec::new(), 3),
        _ => Sum(vec![(1, name)], 0),
    }
}

/// All small values of the sizes.
fn calls() -> impl Iterator<Item = BTreeMap<&'static str, i64>> {
    (1..=MOST).flat_map(|n| {
        (1..=MOST).flat_map(move |m| (1..=MOST).map(move |h| BTreeMap::from([("n", n), ("m", m), ("h", h)])))
    })
}

fn verdict(text: &str, language: Language) -> Vec<Fault> {
    let mut sources = Sources::new();
    let file = sources.add(format!("k.{}", language.ending()), text);
    let (kernels, _) = read(&sources, file, language).unwrap_or_else(|errors| panic!("{text}\n{errors:?}"));
    let [kernel] = &kernels[..] else { panic!("{text}: {} kernels", kernels.len()) };
    let faults = faults(kernel);
    assert!(!faults.is_empty() || ten(kernel).is_ok(), "{text}\n{:?}", ten(kernel));
    faults
}

/// Compares verdicts, and says how many kernels were safe.
fn compare(language: Language, mut kernel: impl FnMut(&mut Rng) -> (String, bool)) {
    let mut rng = Rng(language.ending().len() as u64 * 77 + 5);
    let mut safe = 0;
    for _ in 0..KERNELS {
        let (text, is_safe) = kernel(&mut rng);
        let found = verdict(&text, language);
        assert_eq!(found.is_empty(), is_safe, "brute force says safe: {is_safe}\n{text}\n{found:#?}");
        // What is unsafe is shown by numbers.
        assert!(
            is_safe || found.iter().any(|fault| !fault.example.is_empty() || fault.declared != fault.used),
            "{text}"
        );
        safe += usize::from(is_safe);
    }
    assert!((KERNELS / 10..KERNELS * 9 / 10).contains(&safe), "{safe} of {KERNELS} are safe");
}

#[test]
fn taco() {
    compare(Language::Taco, |rng| {
        let indices = ["i", "j", "k"];
        // Sizes of indices; most dimensions are those, some are off by one.
        let of: Vec<Sum> = indices.iter().map(|_| size(rng)).collect();
        let mut uses: Vec<(usize, Sum)> = Vec::new();
        let mut window = None;
        let mut tensor = |rng: &mut Rng, walked: &[usize], is_result: bool| {
            let (mut sizes, mut at) = (Vec::new(), Vec::new());
            for index in walked {
                let mut dimension = of[*index].clone();
                if rng.below(12) == 0 {
                    dimension.1 += 1;
                }
                if !is_result && window.is_none() && rng.below(8) == 0 {
                    // A window of two elements: the index has two values.
                    let low = rng.below(3) as i64;
                    window = Some((low + 2, dimension.clone()));
                    at.push(format!("{}({low}, {})", indices[*index], low + 2));
                    uses.push((*index, Sum(Vec::new(), 2)));
                } else {
                    at.push(indices[*index].to_owned());
                    uses.push((*index, dimension.clone()));
                }
                sizes.push(dimension.text());
            }
            (sizes.join(", "), at.join(", "))
        };
        let (b, c, a) = (tensor(rng, &[0, 2], false), tensor(rng, &[2, 1], false), tensor(rng, &[0, 1], true));
        let text = format!("double A({}), B({}), C({})\nA({}) = B({}) * C({})\n", a.0, b.0, c.0, a.1, b.1, c.1);
        let is_safe = calls().all(|call| {
            let agree = |index: usize| {
                let mut sizes = uses.iter().filter(|(it, _)| *it == index).map(|(_, size)| size.value(&call));
                let first = sizes.next();
                sizes.all(|size| Some(size) == first)
            };
            (0..3).all(agree) && window.as_ref().is_none_or(|(end, size)| *end <= size.value(&call))
        });
        (text, is_safe)
    });
}

#[test]
fn tvm() {
    compare(Language::Python, |rng| {
        let (rows, depth) = (size(rng), size(rng));
        let ranges = [("i", 0, rows.clone()), ("k", 0, depth.clone())];
        let mut reads: Vec<(Sum, Sum)> = Vec::new();
        let mut access = |rng: &mut Rng| {
            let (index, most) = match rng.below(5) {
                0 => (
                    Sum(vec![(1, "i"), (1, "k")], 0),
                    Sum([rows.0.clone(), depth.0.clone()].concat(), rows.1 + depth.1 - 1),
                ),
                1 => (Sum(vec![(2, "i")], 0), Sum(rows.0.iter().map(|(c, n)| (2 * c, *n)).collect(), 2 * rows.1 - 1)),
                2 => (Sum(vec![(1, "i")], 1), Sum(rows.0.clone(), rows.1 + 1)),
                3 => (Sum(vec![(1, "k")], -1), Sum(depth.0.clone(), depth.1 - 1)),
                _ => (Sum(vec![(1, "k")], 0), depth.clone()),
            };
            // Right, or wrong by one, or another size altogether.
            let declared = match rng.below(8) {
                0 => Sum(most.0.clone(), most.1 - 1),
                1 => size(rng),
                _ => most,
            };
            reads.push((index.clone(), declared.clone()));
            (declared.text(), index.text())
        };
        let (a, b) = (access(rng), access(rng));
        let guard = rng.below(3) as i64;
        let low = guard.min(1);
        let text = format!(
            "from tvm import te\nn, m, h = te.var('n'), te.var('m'), te.var('h')\nA = te.placeholder(({},))\n\
             B = te.placeholder(({},))\nk = te.reduce_axis((0, {}))\nC = te.compute(({},), lambda i: te.sum(\
             te.if_then_else(k >= {low}, A[{}], 0.0) * B[{}], axis=k))\n",
            a.0,
            b.0,
            depth.text(),
            rows.text(),
            a.1,
            b.1
        );
        let is_safe = calls().all(|call| {
            (ranges[0].1..ranges[0].2.value(&call)).all(|i| {
                (ranges[1].1..ranges[1].2.value(&call)).all(|k| {
                    let mut at = call.clone();
                    at.extend([("i", i), ("k", k)]);
                    let inside = |(index, size): &(Sum, Sum)| (0..size.value(&call)).contains(&index.value(&at));
                    (k < low || inside(&reads[0])) && inside(&reads[1])
                })
            })
        });
        (text, is_safe)
    });
}

/// Tensor Comprehensions' inference in numbers: for each index the values for which the accesses of its round are inside.
fn inferred(accesses: &[(Sum, Sum)], call: &BTreeMap<&str, i64>) -> Option<BTreeMap<&'static str, Vec<Vec<i64>>>> {
    let mut ranges: BTreeMap<&'static str, Vec<Vec<i64>>> = BTreeMap::new();
    let values = |bounds: &Vec<Vec<i64>>| -> Vec<i64> {
        bounds[0].iter().copied().filter(|v| bounds.iter().all(|bound| bound.contains(v))).collect()
    };
    loop {
        let mut round: BTreeMap<&'static str, Vec<Vec<i64>>> = BTreeMap::new();
        for (index, size) in accesses {
            let open: Vec<&'static str> =
                index.0.iter().map(|(_, name)| *name).filter(|name| !ranges.contains_key(name)).collect();
            let [open] = open[..] else { continue };
            let others: Vec<&'static str> =
                index.0.iter().map(|(_, name)| *name).filter(|name| *name != open).collect();
            let others: Vec<(&'static str, Vec<i64>)> =
                others.into_iter().map(|name| (name, values(&ranges[name]))).collect();
            let inside = |v: i64| {
                let mut at = BTreeMap::from([(open, v)]);
                let size = size.value(call);
                match others.first() {
                    None => (0..size).contains(&index.value(&at)),
                    Some((name, all)) => all.iter().all(|other| {
                        at.insert(*name, *other);
                        (0..size).contains(&index.value(&at))
                    }),
                }
            };
            round.entry(open).or_default().push((-5..3 * MOST).filter(|v| inside(*v)).collect());
        }
        if round.is_empty() {
            return ranges.values().all(|bounds| !values(bounds).is_empty()).then_some(ranges);
        }
        // An index that nothing is left for ends it: no such call is made.
        if round.values().any(|bounds| values(bounds).is_empty()) {
            return None;
        }
        ranges.extend(round);
    }
}

#[test]
fn tc() {
    compare(Language::Tc, |rng| {
        let mut accesses: Vec<(Sum, Sum)> = Vec::new();
        let mut texts = Vec::new();
        let first = rng.one(&["n", "m"]);
        let second = if rng.below(6) == 0 { "h" } else { first };
        let forms: [Sum; 5] = [
            Sum(vec![(1, "i")], 0),
            Sum(vec![(1, "i"), (1, "k")], 0),
            Sum(vec![(1, "i")], 1),
            Sum(vec![(2, "i")], 0),
            Sum(vec![(1, "k")], 0),
        ];
        for name in [first, second] {
            let form = forms[rng.below(5)].clone();
            texts.push(form.text());
            accesses.push((form, Sum(vec![(1, name)], 0)));
        }
        let last = if rng.below(2) == 0 { "h" } else { first };
        let whole = [&forms[0], &forms[4]][rng.below(2)].clone();
        texts.push(whole.text());
        accesses.push((whole, Sum(vec![(1, last)], 0)));
        let has = |name: &str| accesses.iter().any(|(index, _)| index.0.iter().any(|(_, it)| *it == name));
        let target = if has("i") { "C(i)" } else { "C" };
        let text = format!(
            "def f(float({first}) A, float({second}) B, float({last}) D) -> (C) {{\n    \
             {target} +=! A({}) * B({}) * D({})\n}}\n",
            texts[0], texts[1], texts[2]
        );
        (text, is_safe_tc(&accesses))
    });
}

fn is_safe_tc(accesses: &[(Sum, Sum)]) -> bool {
    let whole = |index: &Sum, name: &str| index.0 == [(1, name)].map(|(c, n)| (c, n)).to_vec() && index.1 == 0;
    // For each pair of bounds of an index: whether the first was ever smaller, and larger.
    let mut orders: BTreeMap<(&'static str, usize, usize), [bool; 2]> = BTreeMap::new();
    for call in calls() {
        for name in ["i", "k"] {
            let sizes: Vec<i64> =
                accesses.iter().filter(|(index, _)| whole(index, name)).map(|(_, size)| size.value(&call)).collect();
            if sizes.windows(2).any(|pair| pair[0] != pair[1]) {
                return false;
            }
        }
        let Some(ranges) = inferred(accesses, &call) else { continue };
        for (name, bounds) in &ranges {
            for (a, first) in bounds.iter().enumerate() {
                for (b, second) in bounds.iter().enumerate().skip(a + 1) {
                    let order = orders.entry((name, a, b)).or_default();
                    order[0] |= first.last() < second.last();
                    order[1] |= first.last() > second.last();
                }
            }
        }
        let values = |name: &str| -> Vec<i64> {
            let Some(bounds) = ranges.get(name) else { return vec![0] };
            bounds[0].iter().copied().filter(|v| bounds.iter().all(|bound| bound.contains(v))).collect()
        };
        let used: Vec<&str> = accesses.iter().flat_map(|(index, _)| index.0.iter().map(|(_, name)| *name)).collect();
        if used.iter().any(|name| !ranges.contains_key(name)) {
            return false;
        }
        if used.contains(&"i") && values("i").first() != Some(&0) {
            return false;
        }
        for i in values("i") {
            for k in values("k") {
                let at = BTreeMap::from([("i", i), ("k", k)]);
                if accesses.iter().any(|(index, size)| !(0..size.value(&call)).contains(&index.value(&at))) {
                    return false;
                }
            }
        }
    }
    orders.values().all(|order| *order != [true, true])
}
