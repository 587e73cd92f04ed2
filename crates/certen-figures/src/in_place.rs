//! In place (model language, Sec. 5): which assignments can be computed directly into the memory they overwrite.
//!
//! Rule ev-stmt evaluates all of e before it changes x. Writing each element of `x = e` to its place at once, in any
//! order or in parallel, saves the memory in between, and gives the same result if no element that is still to be read
//! has been overwritten: while x\[ī\] is computed, x is read at ī only. [`in_place`] evaluates e by Fig. 12 with
//! a symbol for each index and looks at every read of x; the indices must be the same names, or stand at a dimension of
//! size 1. A read inside a reduction does not pass: there the element is read again after the first term of the
//! reduction could have been written. Needs: a typed program. Guarantees: what is called in place gives the same
//! memory in every order (tested in `certen-testgen`); an assignment that is refused may still be one that could be
//! done.

use std::collections::BTreeSet;

use certen_core::ReduceOp;
use certen_dialects::algebra::fig6::{Equation, equation};
use certen_dialects::algebra::{Expr, ExprId, Typed};
use certen_index::Ix;
use certen_syntax::Name;

/// Whether an assignment can be computed directly into the memory of the tensor that it assigns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum InPlace {
    /// The tensor is not read.
    NotRead,
    /// Each element is read only where it is written.
    SameElement,
    /// An element may be read after it was overwritten.
    No(Conflict),
}

/// A read that stands in the way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conflict {
    /// The name that reads.
    pub read: ExprId,
    /// The indices of the element that is written, counted from 1.
    pub written_at: Vec<Ix>,
    /// The indices of the element that is read meanwhile.
    pub read_at: Vec<Ix>,
    /// The reductions around the read, the outermost first, with their indices.
    pub inside: Vec<(ReduceOp, Name)>,
}

impl InPlace {
    /// Whether it can be done.
    pub fn is_allowed(&self) -> bool {
        !matches!(self, InPlace::No(_))
    }
}

impl Conflict {
    /// The reason in words, for an assignment to a tensor.
    pub fn reason(&self, target: Name) -> String {
        let element = |index: &[Ix]| {
            let index: Vec<String> = index.iter().map(Ix::to_string).collect();
            if index.is_empty() { format!("`{target}`") } else { format!("`{target}[{}]`", index.join(", ")) }
        };
        let (read, written) = (element(&self.read_at), element(&self.written_at));
        let all: Vec<String> = self
            .inside
            .iter()
            .filter(|(_, name)| self.read_at.iter().any(|ix| ix.mentions(*name)))
            .map(|(_, name)| format!("`{name}`"))
            .collect();
        match self.inside.first() {
            Some((op, _)) if self.read_at == self.written_at => {
                format!("{read} is read again and again inside a {} while it is written", op.name())
            }
            _ if all.is_empty() => format!("{read} is read while {written} is written"),
            _ => format!("{read} is read for every {} while {written} is written", all.join(" and ")),
        }
    }
}

/// Whether a statement's elements can be written directly, in any order, while others are still to be computed.
pub fn in_place(typed: &Typed, stmt: usize) -> InPlace {
    let assignment = &typed.program.stmts[stmt];
    let target = assignment.target;
    if !typed.program.exprs_of(stmt).any(|id| *typed.program.expr(id) == Expr::Var(target)) {
        return InPlace::NotRead;
    }
    let sizes: Vec<&Ix> = typed.declared(target).into_iter().flatten().map(|(size, _)| size).collect();
    // Symbols for indices; the sizes that say which slice is read are names too.
    let mut taken = BTreeSet::new();
    for id in typed.program.exprs_of(stmt) {
        if let Expr::Proj(_, slice, _) = typed.program.expr(id) {
            slice.collect_names(&mut taken);
        }
    }
    let index = |base: &str, at: usize| Name::fresh(&format!("{base}{at}"), |name| taken.contains(&name));
    let written_at: Vec<Ix> = (1..=sizes.len()).map(|at| Ix::var(index("i", at))).collect();
    let same = |read_at: &[Ix]| {
        let pairs = read_at.iter().zip(&written_at).zip(&sizes);
        pairs.into_iter().all(|((read, written), size)| read == written || typed.is_one(size))
    };
    // The reductions around what is evaluated; each task knows how many of them are around it.
    let mut inside: Vec<(ReduceOp, Name)> = Vec::new();
    let mut tasks = vec![(0, Equation::Same((assignment.value, written_at.clone())))];
    while let Some((depth, task)) = tasks.pop() {
        inside.truncate(depth);
        match task {
            // Slices count from 1 here, as in the text: nothing is computed with them.
            Equation::Same((id, index)) => tasks.push((depth, equation(typed, id, index, Ix::clone))),
            Equation::Read(read, name, read_at) => {
                if name == target && !(inside.is_empty() && same(&read_at)) {
                    return InPlace::No(Conflict { read, written_at, read_at, inside });
                }
            }
            Equation::Scale(_, part) | Equation::Power(_, part) => tasks.push((depth, Equation::Same(part))),
            Equation::Combine(_, left, right) => {
                tasks.extend([(depth, Equation::Same(right)), (depth, Equation::Same(left))]);
            }
            Equation::Reduce(reduction) if typed.is_one(reduction.size()) => {
                tasks.push((depth, reduction.at(&Ix::from(1))));
            }
            Equation::Reduce(reduction) => {
                let name = index("k", depth + 1);
                inside.push((reduction.op, name));
                tasks.push((depth + 1, reduction.at(&Ix::var(name))));
            }
        }
    }
    InPlace::SameElement
}
