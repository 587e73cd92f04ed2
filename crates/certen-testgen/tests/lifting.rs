//! Lifting contractions keeps every value, and never needs more multiplications: over generated programs in every notation,
//! and over generated Einstein sums in Core.

mod common;

use certen_core::domain::{Element, Field, Partial};
use certen_core::{Program, Tensor, parse_program};
use certen_lift::{Lifted, lift, lift_at};
use certen_loops::{FpMode, Interpreter, lower, verify};
use certen_syntax::{Name, Sources};
use certen_testgen::cases;
use certen_validate::{Agreement, agree};
use common::{FUEL, checked, core, evaluate, for_bytes, for_samples};
use std::cell::Cell;
use std::fmt::Write;

/// Values or undefined: what divides by zero is lifted too.
type Inputs = Vec<(Name, Tensor<Option<Element>>)>;

/// Everything that is said of a lifted program.
fn holds(program: &Program, sizes: &[(Name, i64)], inputs: &Inputs) -> Lifted {
    let lifted = lift(program);
    fewer(program, &lifted.program, sizes);
    same_values(program, &lifted.program, sizes, inputs);
    let at_sizes = lift_at(program, sizes.iter().copied().collect()).program;
    same_values(program, &at_sizes, sizes, inputs);
    let value = |name| sizes.iter().find(|(known, _)| *known == name).map(|(_, size)| *size);
    let count = |program: &Program| program.multiplications().ok()?.eval(&value).ok();
    let counts = count(program).zip(count(&at_sizes)).filter(|_| sizes.iter().all(|(_, size)| *size > 0));
    assert!(counts.is_none_or(|(before, after)| after <= before), "{counts:?} at {sizes:?}\n{program}\n{at_sizes}");
    lifted
}

/// A lifted program has the values of the program, in the evaluator and by loops.
fn same_values(program: &Program, after: &Program, sizes: &[(Name, i64)], inputs: &Inputs) {
    after.check().unwrap_or_else(|error| panic!("{error}\n{program}\n{after}"));
    let domain = Partial(Field { seed: 5 });
    let expected = evaluate(program, &domain, sizes, inputs.clone());
    assert_eq!(evaluate(after, &domain, sizes, inputs.clone()), expected, "{program}\n{after}");
    let loops = lower(after, FpMode::Relaxed).unwrap_or_else(|error| panic!("{error:?}\n{after}"));
    let complaints = verify(&loops);
    assert!(complaints.is_empty(), "{program}\n{after}\n{loops}\n{complaints:?}");
    let interpreter = Interpreter::new(&loops, &domain, sizes.iter().copied(), inputs.clone()).expect("a call");
    let found = interpreter.with_fuel(FUEL).run().expect("the loops have values");
    let tensors = |outputs: Inputs| outputs.into_iter().map(|(_, tensor)| tensor).collect::<Vec<_>>();
    assert_eq!(tensors(found), tensors(expected), "{program}\n{loops}");
    let agreement = agree(program, after, 100_000);
    assert!(!matches!(agreement, Agreement::Differs { .. }), "{agreement:?}\n{program}\n{after}");
}

/// At many sizes that satisfy the facts and are not 0, there are not more multiplications; where something was lifted, fewer somewhere.
fn fewer(before: &Program, after: &Program, near: &[(Name, i64)]) {
    let (Ok(old), Ok(new)) = (before.multiplications(), after.multiplications()) else { return };
    for change in [0, 1, 2, 5, 11, 40] {
        for alternate in [0, 3, 17] {
            let size = |name: Name| {
                let at = near.iter().position(|(n, _)| *n == name)?;
                Some(near[at].1 + change + if at % 2 == 0 { 0 } else { alternate })
            };
            if !before.facts.iter().all(|fact| fact.eval(&size).unwrap_or(false)) {
                continue;
            }
            // An empty sum has no products; those around it are still made.
            if near.iter().any(|(name, _)| size(*name) == Some(0)) {
                continue;
            }
            let (Ok(old), Ok(new)) = (old.eval(&size), new.eval(&size)) else { continue };
            assert!(new <= old, "{new} > {old} at {near:?} + {change}, {alternate}\n{before}\n{after}");
        }
    }
}

#[test]
fn lifting_keeps_what_programs_mean() {
    let lifted = Cell::new(0);
    for_samples(cases(), 61, |sample| {
        let program = core(&checked(sample));
        let given = |at: usize| (Name::new(sample.name(at)), sample.bits(at).map(|bits| Some(Element::reduce(*bits))));
        let inputs = sample.inputs().into_iter().map(given).collect();
        let found = holds(&program, &sample.sizes(), &inputs);
        lifted.set(lifted.get() + found.report.contractions.len());
    });
    assert!(lifted.get() > 0, "no generated program had a contraction to lift");
}

/// Choices made of bytes; the simplest ones where they end.
struct Choices<'a>(std::slice::Iter<'a, u8>);

impl Choices<'_> {
    fn below(&mut self, most: usize) -> usize {
        self.0.next().map_or(0, |byte| usize::from(*byte) % most.max(1))
    }

    fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == many - 1
    }
}

const INDICES: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];
const SIZES: [&str; 7] = ["n", "m", "3", "2", "1", "n + 1", "4"];

/// A Core program of Einstein sums of 2 to 6 factors, its sizes and inputs.
struct Einstein {
    text: String,
    sizes: Vec<(Name, i64)>,
}

impl Einstein {
    fn new(bytes: &[u8]) -> Einstein {
        let mut choices = Choices(bytes.iter());
        let least = if choices.one_in(4) { 0 } else { 1 };
        let sizes: Vec<(Name, i64)> =
            ["m", "n"].map(|name| (name.into(), least + choices.below(3) as i64)).into_iter().collect();
        let of: Vec<&str> = INDICES.iter().map(|_| SIZES[choices.below(SIZES.len())]).collect();
        let mut inputs: Vec<(String, Vec<&str>)> = vec![("w".into(), vec!["3"]), ("z".into(), Vec::new())];
        let mut bindings = String::new();
        let count = 1 + choices.below(2);
        for binding in 0..count {
            let kept: Vec<usize> = (0..choices.below(4)).collect();
            let body = product(&mut choices, &of, &kept, &mut inputs);
            let generations: String =
                kept.iter().map(|at| format!("gen {} in 0..{}. ", INDICES[*at], of[*at])).collect();
            let _ = writeln!(bindings, "y{binding} = {generations}{body}");
        }
        let mut text = format!("core einstein\nsize m, n\nwhere m >= {least}, n >= {least}\n");
        for (name, shape) in &inputs {
            let _ = writeln!(text, "input {name} : f64[{}]", shape.join(", "));
        }
        text += &bindings;
        for binding in 0..count {
            let _ = writeln!(text, "output y{binding}");
        }
        Einstein { text, sizes }
    }

    fn program(&self) -> Program {
        let mut sources = Sources::new();
        let file = sources.add("einstein.core", self.text.as_str());
        parse_program(&sources, file).unwrap_or_else(|errors| panic!("{}\n{errors:#?}", self.text))
    }
}

/// A factor and the indices that it mentions.
type Piece = (String, Vec<usize>);

/// A product of factors, multiplied in some order; each index that is not kept is summed somewhere around its factors.
fn product(
    choices: &mut Choices<'_>,
    of: &[&'static str],
    kept: &[usize],
    inputs: &mut Vec<(String, Vec<&'static str>)>,
) -> String {
    let mut pieces: Vec<Piece> = (0..2 + choices.below(5)).map(|at| factor(choices, of, inputs, at)).collect();
    let mut summed: Vec<usize> = (0..INDICES.len())
        .filter(|at| !kept.contains(at) && pieces.iter().any(|(_, indices)| indices.contains(at)))
        .collect();
    let with_sum = |(text, mut indices): Piece, at: usize, lo: usize| {
        indices.retain(|index| *index != at);
        (format!("(sum {} in {lo}..{}. {text})", INDICES[at], of[at]), indices)
    };
    while pieces.len() > 1 {
        let right = pieces.remove(1 + choices.below(pieces.len() - 1));
        let left = pieces.remove(0);
        let indices = [left.1, right.1].concat();
        let mut both = (format!("({} * {})", left.0, right.0), indices);
        // What nobody else needs may be summed here.
        for at in summed.clone() {
            let elsewhere = pieces.iter().any(|(_, indices)| indices.contains(&at));
            if both.1.contains(&at) && !elsewhere && choices.one_in(2) {
                both = with_sum(both, at, choices.below(2));
                summed.retain(|index| *index != at);
            }
        }
        let place = choices.below(pieces.len() + 1);
        pieces.insert(place, both);
    }
    let mut whole = pieces.remove(0);
    for at in summed {
        whole = with_sum(whole, at, 0);
    }
    if choices.one_in(6)
        && let Some(unused) = (0..INDICES.len()).find(|at| !kept.contains(at) && !whole.0.contains(INDICES[*at]))
    {
        whole = with_sum(whole, unused, 0);
    }
    whole.0
}

fn factor(
    choices: &mut Choices<'_>,
    of: &[&'static str],
    inputs: &mut Vec<(String, Vec<&'static str>)>,
    number: usize,
) -> Piece {
    let mut indices: Vec<usize> = (0..choices.below(4)).map(|_| choices.below(INDICES.len())).collect();
    let shape: Vec<&str> = indices.iter().map(|at| of[*at]).collect();
    // Factors of the same shape are often the same tensor.
    let known = inputs.iter().find(|(_, known)| *known == shape).map(|(name, _)| name.clone());
    let name = known.filter(|_| !choices.one_in(3)).unwrap_or_else(|| {
        let name = format!("T{}", inputs.len());
        inputs.push((name.clone(), shape.clone()));
        name
    });
    let element = match indices.as_slice() {
        [] => name,
        some => format!("{name}[{}]", some.iter().map(|at| INDICES[*at]).collect::<Vec<_>>().join(", ")),
    };
    let text = match (choices.below(14), indices.first()) {
        (6, _) => format!("({element} + z)"),
        (7, _) => format!("max({element}, z)"),
        (8, _) => format!("(z + (sum q{number} in 0..3. {element} * w[q{number}]))"),
        (9, Some(first)) => format!("({element} * index.f64({}))", INDICES[*first]),
        (10, Some(first)) => format!("guard({} < 2, {element})", INDICES[*first]),
        // The last row, which exists because the first index runs over as many: it cannot leave the range of that index.
        (12 | 13, Some(&first)) => {
            let other = choices.below(INDICES.len());
            let name = format!("T{}", inputs.len());
            inputs.push((name.clone(), vec![of[first], of[other]]));
            indices.push(other);
            format!("({element} * {name}[{} - 1, {}])", of[first], INDICES[other])
        }
        (11, _) => format!("(z - (sum q{number} in 0..3. w[q{number}] * w[q{number}]) * {element})"),
        _ => element,
    };
    (text, indices)
}

#[test]
fn lifting_keeps_what_einstein_sums_mean() {
    let lifted = Cell::new(0);
    let show = |bytes: &[u8]| Einstein::new(bytes).text;
    for_bytes(cases(), 62, show, |bytes| {
        let einstein = Einstein::new(bytes);
        let program = einstein.program();
        let value = |name: Name| einstein.sizes.iter().find(|(n, _)| *n == name).map(|(_, size)| *size);
        let mut bits = 88172645463325252u64;
        let mut random = || {
            bits ^= bits << 13;
            bits ^= bits >> 7;
            bits ^= bits << 17;
            bits
        };
        let inputs = program.inputs.iter().map(|input| {
            let shape = input.ty.shape_at(&value).expect("sizes have values");
            let count = shape.iter().product();
            let data = (0..count).map(|_| Some(Element::reduce(random()))).collect();
            (input.name, Tensor::new(shape, data).expect("as many as there are"))
        });
        let inputs = inputs.collect();
        let found = holds(&program, &einstein.sizes, &inputs);
        lifted.set(lifted.get() + usize::from(!found.report.contractions.is_empty()));
    });
    assert!(lifted.get() > cases() as usize / 4, "{} programs were lifted", lifted.get());
}
