//! Random contractions, as programs of Core: what automatic schedules are for, and what comes near it.
//!
//! One to four operands of rank 1 to 5, multiplied and summed over one to three indices. Their dimensions are in any order,
//! plain, reversed, strided, shifted, on a diagonal or sums of two indices, which may be guarded; sums may run over a part of
//! their range, and stand side by side; the result may be scaled, added to, guarded, bounded or read by another stage. Sizes
//! are symbolic or numbers. All reads are in bounds by construction.

use std::fmt::Write as _;

use certen_syntax::Name;

use crate::draw::Draw;

/// Products that are made at a point where the evaluator is asked.
const FEW: i64 = 3_000;

/// Products from which on threads share loops, more or less.
const MANY: f64 = 400_000.0;

/// A contraction, and sizes to run it at.
#[derive(Clone, Debug)]
pub struct Contraction {
    /// A program of Core.
    pub text: String,
    /// Values of its symbolic sizes for which it makes few products: 0, 1, primes and others.
    pub few: Vec<Vec<(Name, i64)>>,
    /// Values for which it makes many.
    pub many: Vec<(Name, i64)>,
}

/// An index, with the text of its size and the number that this is, if it is one.
#[derive(Clone, Debug)]
struct Index {
    name: String,
    size: String,
    number: Option<i64>,
}

impl Contraction {
    /// The contraction of a seed.
    pub fn new(seed: u64) -> Contraction {
        let mut draw = Draw::new(seed);
        let elem = draw.word(&["f64", "f64", "f64", "f64", "f32", "f32", "f32", "i64", "i32"]);
        let free = *draw.pick(&[2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 4, 1, 1, 0]).unwrap_or(&2);
        let summed = *draw.pick(&[1, 1, 1, 1, 2, 2, 3]).unwrap_or(&1);
        let oddity = *draw.pick(&[1, 5, 30, 30, 30, 30]).unwrap_or(&1);
        let beside = *draw.pick(&[0, 0, 0, 0, 0, 0, 0, 1, 1, 2]).unwrap_or(&0);
        let indices = indices(&mut draw, free, summed + beside);
        let (own, others) = indices.split_at(free + summed);
        let (free, summed) = (own[..free].to_vec(), own[free..].to_vec());
        let mut writer = Writer { draw, oddity, elem, free, summed, inputs: Vec::new() };
        let text = writer.text(others);
        let draw = &mut writer.draw;
        let few = (0..3).map(|at| few(draw, &indices, at > 0)).collect();
        let each = MANY.powf(1.0 / indices.len() as f64).clamp(2.0, 700.0) as i64;
        let many = chosen(&indices, |_| each + draw.within(-1, 3));
        Contraction { text, few, many }
    }
}

/// Indices, some of which share a size.
fn indices(draw: &mut Draw, free: usize, summed: usize) -> Vec<Index> {
    let (all_fixed, mut all) = (draw.chance(5), Vec::<Index>::new());
    for at in 0..free + summed {
        let name = if at < free { format!("i{at}") } else { format!("k{}", at - free) };
        let shared = if draw.chance(8) { draw.pick(&all).cloned() } else { None };
        let number = draw.pick(&[1, 2, 3, 4, 5, 7, 8, 13, 16]).copied();
        all.push(match shared {
            Some(other) => Index { name, ..other },
            None if all_fixed || draw.chance(12) => Index { name, size: number.unwrap_or(1).to_string(), number },
            None => Index { size: format!("n{name}"), name, number: None },
        });
    }
    all
}

/// Values for the symbolic sizes of indices, each once.
fn chosen(indices: &[Index], mut value: impl FnMut(&Index) -> i64) -> Vec<(Name, i64)> {
    let mut sizes: Vec<(Name, i64)> = Vec::new();
    for index in indices.iter().filter(|index| index.number.is_none()) {
        let size = Name::new(&index.size);
        if !sizes.iter().any(|(known, _)| *known == size) {
            sizes.push((size, value(index)));
        }
    }
    sizes
}

/// Sizes for few products. One index is long, if there is room for it.
fn few(draw: &mut Draw, indices: &[Index], has_zero: bool) -> Vec<(Name, i64)> {
    let small = [1, 2, 3, 5, 7, 4, 6, 11, 13, if has_zero { 0 } else { 2 }];
    let long = draw.below(indices.len() + 1);
    for _ in 0..30 {
        let at_long = |index: &Index| indices.get(long).is_some_and(|other| other.name == index.name);
        let sizes = chosen(indices, |index| match at_long(index) {
            true => draw.within(14, 70),
            false => *draw.pick(&small).unwrap_or(&1),
        });
        let value = |index: &Index| {
            let size = Name::new(&index.size);
            index.number.or_else(|| sizes.iter().find(|(known, _)| *known == size).map(|(_, size)| *size)).unwrap_or(1)
        };
        if indices.iter().map(value).fold(1, i64::saturating_mul) <= FEW {
            return sizes;
        }
    }
    chosen(indices, |_| 2)
}

struct Writer {
    draw: Draw,
    /// How seldom something odd is written: few contractions have much of it, and most have little.
    oddity: usize,
    elem: &'static str,
    free: Vec<Index>,
    summed: Vec<Index>,
    /// Declarations.
    inputs: Vec<String>,
}

impl Writer {
    /// One in so many, where odd things are frequent.
    fn odd(&mut self, of: usize) -> bool {
        self.draw.chance(of * self.oddity)
    }

    /// The program; `others` are summed over beside, each in a sum of its own or with the rest.
    fn text(&mut self, others: &[Index]) -> String {
        // A sum over a part of its range, by another index of the same size.
        let (mut ranges, mut conds) = (Vec::new(), Vec::new());
        for at in 0..self.summed.len() {
            let before: Vec<Index> = self.free.iter().chain(&self.summed[..at]).cloned().collect();
            let (range, cond, size) = self.range(&before, &self.summed[at].clone());
            self.summed[at] = size;
            ranges.push(range);
            conds.push(cond);
        }
        let mut sums = self.sum(&ranges, &conds);
        for other in others {
            let sign = self.draw.word(&[" + ", " - ", " * "]);
            let alone = self.draw.chance(2);
            let all = alone.then(|| std::mem::replace(&mut self.summed, vec![other.clone()]));
            let beside = match alone {
                true => self.sum(&[format!("0..{}", other.size)], &[String::new()]),
                false => self.sum(&ranges, &conds),
            };
            self.summed = all.unwrap_or_else(|| self.summed.clone());
            sums = format!("({sums}){sign}({beside})");
        }
        let element = self.around(&format!("({sums})"));
        let order = self.draw.shuffled(self.free.clone());
        let gens = |order: &[Index]| {
            order.iter().map(|index| format!("gen {} in 0..{}. ", index.name, index.size)).collect::<String>()
        };
        let mut body = format!("c = {}{element}\n", gens(&order));
        let mut output = "c";
        if !order.is_empty() && self.draw.chance(5) {
            // Another stage: its sum over the last dimension, or its elements.
            let renamed = |index: &Index| Index { name: index.name.replace('i', "j"), ..index.clone() };
            let order: Vec<Index> = order.iter().map(renamed).collect();
            let names: Vec<&str> = order.iter().map(|index| index.name.as_str()).collect();
            let read = format!("c[{}]", names.join(", "));
            let (last, others) = (&order[order.len() - 1], &order[..order.len() - 1]);
            let _ = match self.draw.chance(2) {
                true => writeln!(body, "y = {}sum {} in 0..{}. {read}", gens(others), last.name, last.size),
                false => writeln!(body, "y = {}{read} + {read}", gens(&order)),
            };
            output = "y";
        }
        let mut sizes: Vec<&str> = Vec::new();
        for index in self.free.iter().chain(&self.summed).chain(others).filter(|index| index.number.is_none()) {
            if !sizes.contains(&index.size.as_str()) {
                sizes.push(&index.size);
            }
        }
        let facts: Vec<String> = sizes.iter().map(|size| format!("{size} >= 0")).collect();
        let declared = match sizes.is_empty() {
            true => String::new(),
            false => format!("size {}\nwhere {}\n", sizes.join(", "), facts.join(", ")),
        };
        format!("core contraction\n{declared}{}{body}output {output}\n", self.inputs.concat())
    }

    /// A product, summed.
    fn sum(&mut self, ranges: &[String], conds: &[String]) -> String {
        let mut sum = self.product();
        let has_weights = self.summed.len() > 1 && self.draw.chance(4);
        for (at, (range, cond)) in ranges.iter().zip(conds).enumerate().rev() {
            let weight = match has_weights && at > 0 {
                true => format!("{} * ", self.operand(&[self.summed[at - 1].clone()])),
                false => String::new(),
            };
            sum = format!("{weight}(sum {} in {range}{cond}. {sum})", self.summed[at].name);
        }
        sum
    }

    /// The range of a sum, its condition, and the index as it is then.
    fn range(&mut self, before: &[Index], index: &Index) -> (String, String, Index) {
        let (Index { name, size, .. }, plain) = (index, String::new);
        let other = self.draw.pick(before).cloned().filter(|_| self.odd(4));
        let Some(other) = other else {
            let (range, cond) = match self.odd(6) {
                true if self.draw.chance(2) => (format!("1..{size}"), plain()),
                true => (format!("0..{size}"), format!(" where {name} != 1")),
                false => (format!("0..{size}"), plain()),
            };
            return (range, cond, index.clone());
        };
        // Of the same size as the other one.
        let same = Index { name: name.clone(), ..other.clone() };
        let (size, other) = (&same.size, &other.name);
        match self.draw.below(4) {
            0 => (format!("0..{other} + 1"), plain(), same.clone()),
            1 => (format!("{other}..{size}"), plain(), same.clone()),
            2 => (format!("0..{size}"), format!(" where {name} <= {other}"), same.clone()),
            _ => (format!("0..{size}"), format!(" where {name} != {other}"), same.clone()),
        }
    }

    /// One to four operands; each index is in one of them or more.
    fn product(&mut self) -> String {
        let all: Vec<Index> = self.free.iter().chain(&self.summed).cloned().collect();
        let count = *self.draw.pick(&[2, 2, 2, 2, 2, 2, 3, 3, 4]).unwrap_or(&2);
        let count = if self.odd(8) { 1 } else { count };
        let mut operands: Vec<Vec<Index>> = vec![Vec::new(); count];
        for (place, index) in all.into_iter().enumerate() {
            // Those of the result are of different operands.
            let home = if self.odd(2) { self.draw.below(count) } else { place % count };
            let shares = self.summed.iter().any(|summed| summed.name == index.name);
            for (at, operand) in operands.iter_mut().enumerate() {
                // Most operands have the indices of sums, and few those of others.
                if at == home || (operand.len() < 4 && if shares { !self.odd(3) } else { self.odd(4) }) {
                    operand.push(index.clone());
                }
            }
        }
        let mut product = String::new();
        for (at, operand) in operands.iter().filter(|operand| !operand.is_empty()).enumerate() {
            let sign = if at == 0 { "" } else { self.sign() };
            let read = self.operand(operand);
            product = if sign == " * " || at == 0 {
                format!("{product}{sign}{read}")
            } else {
                format!("({product}{sign}{read})")
            };
        }
        if self.draw.chance(6) { format!("{} * {product}", self.number()) } else { product }
    }

    fn sign(&mut self) -> &'static str {
        if self.odd(4) { self.draw.word(&[" + ", " - "]) } else { " * " }
    }

    /// A new input that is read at some indices, or one that is there already with this shape.
    fn operand(&mut self, indices: &[Index]) -> String {
        let (mut shape, mut at) = (Vec::new(), Vec::new());
        let mut indices = self.draw.shuffled(indices.to_vec());
        if indices.len() < 5 && self.odd(8) {
            // A diagonal.
            indices.extend(self.draw.pick(&indices).cloned());
        }
        let (mut rest, mut conds) = (indices.as_slice(), Vec::new());
        while let [Index { name, size, .. }, behind @ ..] = rest {
            rest = behind;
            let is_odd = self.odd(5);
            let (read, length) = match self.draw.below(4) {
                0 if is_odd => (format!("{size} - 1 - {name}"), size.clone()),
                1 if is_odd => (format!("2 * {name} + 1"), format!("2 * {size} + 1")),
                2 if is_odd => (format!("{name} + 2"), format!("{size} + 2")),
                3 if is_odd && let [Index { name: two, size: other, .. }, behind @ ..] = rest => {
                    rest = behind;
                    match self.draw.chance(2) {
                        // A window that goes over the edges.
                        true => {
                            conds.push(format!("{name} + {two} >= 1 && {name} + {two} <= {size}"));
                            (format!("{name} + {two} - 1"), size.clone())
                        }
                        false => (format!("{name} + {two}"), format!("{size} + {other}")),
                    }
                }
                _ => (name.clone(), size.clone()),
            };
            at.push(read);
            shape.push(length);
        }
        let declared = format!(" : {}[{}]\n", self.elem, shape.join(", "));
        let known = self.inputs.iter().position(|input| input.ends_with(&declared));
        let known = known.filter(|_| self.draw.chance(4)).unwrap_or_else(|| {
            self.inputs.push(format!("input x{}{declared}", self.inputs.len()));
            self.inputs.len() - 1
        });
        let read = format!("x{known}[{}]", at.join(", "));
        if conds.is_empty() { read } else { format!("guard({}, {read})", conds.join(" && ")) }
    }

    /// What is done with the sum.
    fn around(&mut self, sum: &str) -> String {
        let free = self.free.clone();
        let some = match free.is_empty() {
            true => Vec::new(),
            false => free.iter().filter(|_| self.draw.chance(2)).cloned().collect(),
        };
        let some = if some.is_empty() { free.clone() } else { some };
        match self.draw.below(14) {
            0 if !some.is_empty() => format!("{sum} + {}", self.operand(&some)),
            1 if !some.is_empty() => format!("{} * {sum}", self.operand(&some)),
            2 => format!("{} * {sum}", self.number()),
            3 => format!("max({sum}, {})", self.number()),
            4 if free.len() > 1 && self.odd(1) => format!("guard({} <= {}, {sum})", free[0].name, free[1].name),
            5 if !some.is_empty() && self.odd(1) => {
                format!("if {} < 3 then {sum} else {}", some[0].name, self.operand(&some))
            }
            _ => sum.into(),
        }
    }

    fn number(&mut self) -> String {
        let whole = self.draw.within(-3, 3);
        if self.elem.starts_with('f') { format!("{}({whole}.5)", self.elem) } else { format!("{}({whole})", self.elem) }
    }
}
