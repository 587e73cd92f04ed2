//! About how many steps the interpreter takes, without running it.
//!
//! A caller with a budget of steps asks before it runs a program. The answer is exact where the ranges of loops do not
//! depend on indices around them; where they do, the middle index stands for all. Of two branches the more expensive one
//! counts.

use std::collections::HashMap;
use std::sync::Arc;

use certen_core::{Term, TermId};
use certen_index::Ix;
use certen_syntax::Name;

use crate::ir::{LoopProgram, Stmt};

/// The cost of a program as a formula of its sizes; what does not depend on them is added up once.
#[derive(Debug)]
pub struct Cost {
    body: Block,
    /// Shapes of the buffers that the caller gives.
    given: Vec<Arc<[Ix]>>,
}

#[derive(Default, Debug)]
struct Block {
    fixed: u64,
    loops: Vec<Loop>,
    branches: Vec<[Block; 2]>,
    /// Shapes of buffers that are made.
    buffers: Vec<Arc<[Ix]>>,
}

#[derive(Debug)]
struct Loop {
    index: Name,
    lo: Ix,
    hi: Ix,
    body: Block,
}

impl Cost {
    /// The cost of a program.
    pub fn of(program: &LoopProgram) -> Cost {
        let given = program.given().map(|(_, ty)| ty.shape.clone());
        Cost { body: block(program, &program.body), given: given.collect() }
    }

    /// The steps at these sizes; the largest number if they have no value.
    pub fn at(&self, sizes: impl IntoIterator<Item = (Name, i64)>) -> u64 {
        let mut names: HashMap<Name, i64> = sizes.into_iter().collect();
        let given = self.given.iter().fold(0, |sum: u64, shape| sum.saturating_add(elements(shape, &names)));
        self.body.at(&mut names).saturating_add(given)
    }
}

fn block(program: &LoopProgram, stmts: &[Stmt]) -> Block {
    let mut found = Block::default();
    for stmt in stmts {
        found.fixed += 1;
        match stmt {
            Stmt::For { index, range, body, .. } => {
                let body = block(program, body);
                found.loops.push(Loop { index: *index, lo: range.lo.clone(), hi: range.hi.clone(), body });
            }
            Stmt::If { then, otherwise, .. } => {
                found.branches.push([then, otherwise].map(|branch| block(program, branch)));
            }
            Stmt::Alloc(_, ty) => found.buffers.push(ty.shape.clone()),
            _ => found.fixed += stmt.value().map_or(0, |value| value_steps(program, value)),
        }
    }
    found
}

fn value_steps(program: &LoopProgram, root: TermId) -> u64 {
    let is_step = |id: &TermId| !matches!(program.terms.get(*id), Term::Ref(_, ty) if !ty.is_scalar());
    program.terms.parts_first(root).iter().filter(|id| is_step(id)).count() as u64
}

fn elements(shape: &[Ix], names: &HashMap<Name, i64>) -> u64 {
    let size = |ix: &Ix| ix.eval(&|name| names.get(&name).copied()).map_or(u64::MAX, |size| size.max(0) as u64);
    shape.iter().fold(1, |product: u64, ix| product.saturating_mul(size(ix)))
}

impl Block {
    /// Recursion is as deep as the blocks of a loop program may be.
    fn at(&self, names: &mut HashMap<Name, i64>) -> u64 {
        let mut sum = self.fixed;
        for shape in &self.buffers {
            sum = sum.saturating_add(elements(shape, names));
        }
        for Loop { index, lo, hi, body } in &self.loops {
            let value = |ix: &Ix| ix.eval(&|name| names.get(&name).copied());
            let (Ok(lo), Ok(hi)) = (value(lo), value(hi)) else { return u64::MAX };
            let trips = hi.saturating_sub(lo).max(0);
            names.insert(*index, lo.saturating_add(trips / 2));
            let each = body.at(names).saturating_add(1);
            sum = sum.saturating_add(each.saturating_mul(trips as u64));
        }
        for branches in &self.branches {
            let dearer = branches.iter().map(|branch| branch.at(names)).max();
            sum = sum.saturating_add(dearer.unwrap_or(0));
        }
        sum
    }
}
