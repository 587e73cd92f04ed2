//! Other accesses: what is read and written in a block, given by functions.
//!
//! [`Edit`](crate::edit::Edit) gives names other names; this is for steps that give a buffer other indices, or put a value
//! in the place of an element.

use std::collections::HashMap;

use certen_core::{TensorType, TermId, TypeError};
use certen_index::Ix;
use certen_loops::{LoopProgram, Stmt, Target, as_element};
use certen_syntax::Name;

use crate::nest::Done;

/// A buffer that stands for another one, or for a part of it: other dimensions, in another order.
#[derive(Clone, Debug)]
pub(crate) struct Moved {
    pub from: Name,
    pub to: Name,
    pub ty: TensorType,
    /// What is subtracted from the indices of `from`.
    pub base: Vec<Ix>,
    /// Which dimension of `from` each dimension is.
    pub order: Vec<usize>,
}

impl Moved {
    /// The same dimensions in the same order.
    pub(crate) fn based(from: Name, to: Name, ty: TensorType, base: Vec<Ix>) -> Moved {
        let order = (0..base.len()).collect();
        Moved { from, to, ty, base, order }
    }

    fn indices(&self, indices: &[Ix]) -> Result<Box<[Ix]>, TypeError> {
        let wrong = || TypeError(format!("{} has other dimensions", self.from));
        let one = |dim: &usize| {
            let (index, base) = (indices.get(*dim).ok_or_else(wrong)?, self.base.get(*dim).ok_or_else(wrong)?);
            Ok(index.sub(base)?)
        };
        self.order.iter().map(one).collect()
    }

    /// The block with all accesses of the one buffer turned into accesses of the other. Allocations are the caller's.
    pub(crate) fn block(&self, program: &mut LoopProgram, block: &[Stmt]) -> Done<Vec<Stmt>> {
        let mut read = |program: &mut LoopProgram, _: &Scope<'_>, name: Name, indices: &[Ix]| {
            if name != self.from {
                return Ok(None);
            }
            let indices = self.indices(indices)?;
            Ok(Some(program.terms.element(self.to, self.ty.clone(), indices)?))
        };
        let mut blocks = with_reads(program, block, &mut read)?;
        self.targets(&mut blocks)?;
        Ok(blocks)
    }

    fn targets(&self, block: &mut [Stmt]) -> Done<()> {
        for stmt in block {
            match stmt {
                Stmt::For { body, .. } => self.targets(body)?,
                Stmt::If { then, otherwise, .. } => {
                    self.targets(then)?;
                    self.targets(otherwise)?;
                }
                Stmt::Assign { target: Target::Element(name, indices), .. } if *name == self.from => {
                    *indices = self.indices(indices)?;
                    *name = self.to;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// What stands around a statement inside of the block, outermost first.
pub(crate) type Scope<'a> = [Around<'a>];

/// A block around a statement.
#[derive(Clone, Copy)]
pub(crate) enum Around<'a> {
    Loop(&'a Stmt),
    Then(&'a Stmt),
    Otherwise(&'a Stmt),
}

/// Gives the value that stands for an element of a buffer, or for a local, if another one does.
pub(crate) type Read<'a> = dyn FnMut(&mut LoopProgram, &Scope<'_>, Name, &[Ix]) -> Done<Option<TermId>> + 'a;

/// The block with other values for what it reads.
pub(crate) fn with_reads(program: &mut LoopProgram, block: &[Stmt], read: &mut Read<'_>) -> Done<Vec<Stmt>> {
    walk(program, block, &mut Vec::new(), read)
}

fn walk<'a>(
    program: &mut LoopProgram,
    block: &'a [Stmt],
    scope: &mut Vec<Around<'a>>,
    read: &mut Read<'_>,
) -> Done<Vec<Stmt>> {
    let mut out = Vec::with_capacity(block.len());
    for stmt in block {
        let mut inside = |program: &mut LoopProgram, around: Around<'a>, body: &'a [Stmt]| {
            scope.push(around);
            let body = walk(program, body, scope, read);
            scope.pop();
            body
        };
        out.push(match stmt {
            Stmt::For { index, range, mode, body } => {
                let body = inside(program, Around::Loop(stmt), body)?;
                Stmt::For { index: *index, range: range.clone(), mode: *mode, body }
            }
            Stmt::If { cond, then, otherwise } => {
                let then = inside(program, Around::Then(stmt), then)?;
                let otherwise = inside(program, Around::Otherwise(stmt), otherwise)?;
                Stmt::If { cond: cond.clone(), then, otherwise }
            }
            Stmt::Local { name, elem, init: Some(init) } => {
                let init = Some(value(program, *init, scope, read)?);
                Stmt::Local { name: *name, elem: *elem, init }
            }
            Stmt::Assign { target, op, value: old } => {
                let value = value(program, *old, scope, read)?;
                Stmt::Assign { target: target.clone(), op: *op, value }
            }
            other => other.clone(),
        });
    }
    Ok(out)
}

/// A value with other values for what it reads.
fn value(program: &mut LoopProgram, root: TermId, scope: &Scope<'_>, read: &mut Read<'_>) -> Done<TermId> {
    let mut moved: HashMap<TermId, TermId> = HashMap::new();
    for id in program.terms.parts_first(root) {
        let element = as_element(&program.terms, id).map(|(name, _, indices)| (name, indices.to_vec()));
        let new = match element {
            Some((name, indices)) => read(program, scope, name, &indices)?.unwrap_or(id),
            None => {
                let term = program.terms.get(id).clone().with_parts(|part| moved[&part]);
                program.terms.add(term)?
            }
        };
        moved.insert(id, new);
    }
    Ok(moved[&root])
}

/// A value with other values for the locals that it reads.
pub(crate) fn with_locals(program: &mut LoopProgram, root: TermId, locals: &HashMap<Name, TermId>) -> Done<TermId> {
    value(program, root, &[], &mut |_, _, name, _| Ok(locals.get(&name).copied()))
}
