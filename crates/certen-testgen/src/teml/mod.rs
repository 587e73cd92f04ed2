//! TeML programs with random statements and random paths, and what they compute.
//!
//! A [`Written`] is a program of this module's own: statements over iterators, as sums of products of elements. Its text is
//! one way to say it in TeML; [`Written::values`] computes it by running over all values of all iterators, and knows
//! nothing of shapes, trees or loops. Needs: a seed. Guarantees: the text is well-formed, with the ranges that the
//! generator meant; the same seed gives the same program.

mod generate;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

pub use generate::transformations;

/// A size: that of a name, less a number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Dim {
    /// Which of [`SIZES`].
    pub size: usize,
    /// How much is taken off.
    pub less: usize,
}

/// The names of sizes.
pub const SIZES: [&str; 3] = ["m", "n", "p"];

impl Dim {
    /// Its value.
    pub fn at(self, sizes: [usize; 3]) -> usize {
        sizes[self.size].saturating_sub(self.less)
    }
}

/// What a statement adds up, subtracts or multiplies.
#[derive(Clone, Debug)]
pub enum Value {
    /// An element: iterators by number, each with what is added to it.
    Element(String, Vec<(usize, usize)>),
    /// `+`, `-` or `*`
    Op(char, Box<Value>, Box<Value>),
    /// A sum over iterators.
    Sum(Vec<usize>, Box<Value>),
}

/// A statement: `target[out] = value` for all values of the iterators.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// What it is called.
    pub id: String,
    /// The tensor that it writes.
    pub target: String,
    /// The iterators of the element that is written.
    pub out: Vec<usize>,
    /// The range of each iterator.
    pub ranges: Vec<Dim>,
    /// Whether the value is added to what is there, over all iterators that are not in `out`.
    pub adds: bool,
    /// The right side.
    pub value: Value,
    /// Its lines.
    pub text: String,
}

/// A program.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// Tensors and their shapes, in the order in which they are introduced.
    pub tensors: Vec<(String, Vec<Dim>)>,
    /// Those that statements introduce.
    pub late: BTreeSet<String>,
    /// The statements, in order.
    pub stmts: Vec<Stmt>,
}

impl Written {
    /// The program without paths.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (name, shape) in self.tensors.iter().filter(|(name, _)| !self.late.contains(name)) {
            let shape: Vec<String> = shape.iter().map(|dim| size(*dim)).collect();
            let _ = writeln!(text, "{name} = tensor([{}])", shape.join(", "));
        }
        for stmt in &self.stmts {
            text += &stmt.text;
        }
        text
    }

    /// What the tensors hold at the end, row by row, if they hold these values at first.
    pub fn values(&self, sizes: [usize; 3], inputs: &BTreeMap<String, Vec<i64>>) -> BTreeMap<String, Vec<i64>> {
        let mut memory = inputs.clone();
        let shapes: BTreeMap<&str, Vec<usize>> = self
            .tensors
            .iter()
            .map(|(name, shape)| (name.as_str(), shape.iter().map(|dim| dim.at(sizes)).collect()))
            .collect();
        for stmt in &self.stmts {
            let ranges: Vec<usize> = stmt.ranges.iter().map(|range| range.at(sizes)).collect();
            let count = shapes[stmt.target.as_str()].iter().product();
            let old = memory.get(&stmt.target).cloned();
            let mut new = if stmt.adds { old.unwrap_or_default() } else { vec![0; count] };
            let free: Vec<usize> = (0..ranges.len()).filter(|at| !summed(&stmt.value).contains(at)).collect();
            run(&free, &ranges, &mut vec![0; ranges.len()], &mut |at| {
                let value = value(&stmt.value, at, &ranges, &memory, &shapes);
                let place = place(&shapes[stmt.target.as_str()], stmt.out.iter().map(|iterator| at[*iterator]));
                new[place] = if stmt.adds { new[place].wrapping_add(value) } else { value };
            });
            memory.insert(stmt.target.clone(), new);
        }
        memory
    }
}

fn size(dim: Dim) -> String {
    match dim.less {
        0 => SIZES[dim.size].into(),
        less => format!("{}-{less}", SIZES[dim.size]),
    }
}

/// The iterators of sums inside a value.
fn summed(value: &Value) -> Vec<usize> {
    match value {
        Value::Element(..) => Vec::new(),
        Value::Op(_, a, b) => [summed(a), summed(b)].concat(),
        Value::Sum(over, body) => [over.clone(), summed(body)].concat(),
    }
}

/// All values of some iterators.
fn run(iterators: &[usize], ranges: &[usize], at: &mut Vec<usize>, each: &mut dyn FnMut(&[usize])) {
    match iterators.split_first() {
        None => each(at),
        Some((first, rest)) => {
            for value in 0..ranges[*first] {
                at[*first] = value;
                run(rest, ranges, at, each);
            }
        }
    }
}

fn value(
    of: &Value,
    at: &[usize],
    ranges: &[usize],
    memory: &BTreeMap<String, Vec<i64>>,
    shapes: &BTreeMap<&str, Vec<usize>>,
) -> i64 {
    match of {
        Value::Element(name, indices) => {
            memory[name][place(&shapes[name.as_str()], indices.iter().map(|(iterator, more)| at[*iterator] + more))]
        }
        Value::Op(op, a, b) => {
            let [a, b] = [a, b].map(|part| value(part, at, ranges, memory, shapes));
            match op {
                '+' => a.wrapping_add(b),
                '-' => a.wrapping_sub(b),
                _ => a.wrapping_mul(b),
            }
        }
        Value::Sum(over, body) => {
            let mut total = 0i64;
            run(over, ranges, &mut at.to_vec(), &mut |at| {
                total = total.wrapping_add(value(body, at, ranges, memory, shapes));
            });
            total
        }
    }
}

fn place(shape: &[usize], index: impl Iterator<Item = usize>) -> usize {
    shape.iter().zip(index).fold(0, |place, (size, index)| place * size + index)
}
