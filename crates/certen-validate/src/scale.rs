//! Large numbers made small: the same loops at other tile sizes, the same program at other literal sizes.
//!
//! Loops with tiles of 256 run some million steps before the first tile is full. What a schedule does with 256 it
//! does with 8, if the numbers are related in the same way: so its numbers are replaced by small ones that keep their order
//! and divide each other as before ([`scaled`]), the schedule is applied again, and if the nest is the same up to numbers
//! ([`same_structure`]), it stands for the large one. Programs with literal sizes are made small as a whole
//! ([`shrunk_program`](crate::shrunk_program)), then lowered and scheduled again.

use std::collections::BTreeMap;

use certen_index::{Cond, IndexFunction, Ix, Notation};
use certen_loops::{LoopProgram, Stmt, Target};

/// No number is replaced by a larger one: loops of that many iterations would not be run anyway.
const LARGEST: i64 = 1024;

/// A smaller number for each number of a schedule; none if they are small already or no such numbers are found. Numbers up
/// to 1 stay. Equal numbers stay equal, larger ones stay larger, and one divides another exactly if it did before.
///
/// ```
/// let scaled = certen_validate::scale::scaled(&[4, 16, 256, 1]);
/// assert_eq!(scaled, Some(vec![2, 4, 8, 1]));
/// assert_eq!(certen_validate::scale::scaled(&[32, 48]), Some(vec![2, 3]));
/// assert_eq!(certen_validate::scale::scaled(&[2, 3]), None);
/// ```
pub fn scaled(numbers: &[i64]) -> Option<Vec<i64>> {
    let mut different: Vec<i64> = numbers.iter().copied().filter(|n| *n > 1).collect();
    different.sort_unstable();
    different.dedup();
    let mut small: BTreeMap<i64, i64> = BTreeMap::new();
    for number in &different {
        let fits = |candidate: &i64| {
            small.iter().all(|(large, small)| candidate > small && (number % large == 0) == (candidate % small == 0))
        };
        let found = (2..=LARGEST.min(*number)).find(fits)?;
        small.insert(*number, found);
    }
    if small.iter().all(|(large, small)| large == small) {
        return None;
    }
    Some(numbers.iter().map(|n| small.get(n).copied().unwrap_or(*n)).collect())
}

/// Whether two nests are equal up to numbers in index expressions, sizes and conditions.
pub fn same_structure(one: &LoopProgram, other: &LoopProgram) -> bool {
    one.outputs.len() == other.outputs.len()
        && one.inputs.len() == other.inputs.len()
        && one.constants == other.constants
        && structure(one) == structure(other)
}

/// The text of a nest with every number left out.
fn structure(nest: &LoopProgram) -> Vec<String> {
    let mut lines = Vec::new();
    block(nest, &nest.body, &mut lines);
    lines
}

fn block(nest: &LoopProgram, stmts: &[Stmt], lines: &mut Vec<String>) {
    for stmt in stmts {
        match stmt {
            Stmt::Nest(_) => {}
            Stmt::Alloc(name, ty) => lines.push(format!("alloc {name} {} {}", ty.elem, list(&ty.shape))),
            Stmt::For { index, range, mode, body } => {
                lines.push(format!("{mode:?} {index} {} {}", ix(&range.lo), ix(&range.hi)));
                block(nest, body, lines);
                lines.push("end".into());
            }
            Stmt::If { cond, then, otherwise } => {
                lines.push(format!("if {}", blank(&cond_text(cond))));
                block(nest, then, lines);
                lines.push("else".into());
                block(nest, otherwise, lines);
                lines.push("end".into());
            }
            Stmt::Local { name, elem, init } => {
                lines.push(format!("local {name} {elem} {}", init.is_some()));
                init.iter().for_each(|value| terms(nest, *value, lines));
            }
            Stmt::Assign { target, op, value } => {
                lines.push(match target {
                    Target::Local(name) => format!("{name} {op:?}"),
                    Target::Element(name, indices) => format!("{name} {} {op:?}", list(indices)),
                });
                terms(nest, *value, lines);
            }
            other => lines.push(blank(&format!("{other:?}"))),
        }
    }
}

/// The operations of a value, parts first: which parts they have is said by their places.
fn terms(nest: &LoopProgram, value: certen_core::TermId, lines: &mut Vec<String>) {
    use certen_core::Term;
    let order = nest.terms.parts_first(value);
    let place = |id: &certen_core::TermId| order.binary_search(id).unwrap_or(order.len());
    for id in &order {
        let term = nest.terms.get(*id);
        let parts: Vec<usize> = term.parts().iter().map(place).collect();
        lines.push(match term {
            Term::Ref(name, ty) => format!("{name} {} {}", ty.elem, ty.rank()),
            Term::Select(_, indices) => format!("select {parts:?} {}", list(indices)),
            Term::Index(index, elem) => format!("index {} {elem}", ix(index)),
            Term::Literal(literal, elem) => format!("{literal:?} {elem}"),
            Term::Unary(op, _) => format!("{op:?} {parts:?}"),
            Term::Binary(op, ..) => format!("{op:?} {parts:?}"),
            Term::Cast(elem, _) => format!("cast {elem} {parts:?}"),
            other => format!("{:?} {parts:?}", std::mem::discriminant(other)),
        });
    }
}

/// Index expressions without numbers; arguments whose order depends on them are sorted.
struct Blank;

impl Notation for Blank {
    fn has_ceil_div(&self) -> bool {
        false
    }

    fn call(&mut self, function: IndexFunction, arguments: &[String]) -> String {
        let mut arguments: Vec<String> = arguments.iter().map(|argument| blank(argument)).collect();
        if function != IndexFunction::FloorDiv {
            arguments.sort();
        }
        format!("{function:?}({})", arguments.join(", "))
    }
}

fn ix(ix: &Ix) -> String {
    blank(&ix.write(&mut Blank))
}

fn list(ixs: &[Ix]) -> String {
    ixs.iter().map(ix).collect::<Vec<_>>().join(", ")
}

fn cond_text(cond: &Cond) -> String {
    cond.write(&mut Blank)
}

/// A text with its numbers, which are not part of a name, replaced by one sign.
fn blank(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut previous = ' ';
    for c in text.chars() {
        let in_name = previous.is_alphanumeric() || previous == '_' || previous == '.';
        match c {
            '0'..='9' if previous == '#' => continue,
            '0'..='9' if !in_name => {
                out.push('#');
                previous = '#';
                continue;
            }
            _ => out.push(c),
        }
        previous = c;
    }
    out
}
