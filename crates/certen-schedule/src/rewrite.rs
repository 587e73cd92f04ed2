//! Other accesses: what is read and written in a block, given by functions.
//!
//! [`Edit`](crate::edit::Edit) gives names other names; this is for steps that give a buffer other indices, or put a value
//! in place of an element.

use std::collections::HashMap;

use certen_core::{TensorType, TermId, TypeError};
use certen_index::{Cond, Ix};
use certen_loops::{LoopProgram, Stmt, as_element, try_for_each_mut};
use certen_syntax::Name;

use crate::refusal::Done;

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
        let mut read = |program: &mut LoopProgram, _: &[Cond], name: Name, indices: &[Ix]| {
            if name != self.from {
                return Ok(None);
            }
            let indices = self.indices(indices)?;
            Ok(Some(program.terms.element(self.to, self.ty.clone(), indices)?))
        };
        let mut block = with_reads(program, block, &mut read)?;
        try_for_each_mut(&mut block, &mut |stmt| {
            if let Some((name, indices)) = stmt.element_mut().filter(|(name, _)| **name == self.from) {
                *indices = self.indices(indices)?;
                *name = self.to;
            }
            Ok::<(), TypeError>(())
        })?;
        Ok(block)
    }
}

/// Gives the value that stands for an element of a buffer, or for a local, if another one does. What holds around the
/// statement that reads it, inside the block, is given.
pub(crate) type ReadAs<'a> = dyn FnMut(&mut LoopProgram, &[Cond], Name, &[Ix]) -> Done<Option<TermId>> + 'a;

/// The block with other values for what it reads.
pub(crate) fn with_reads(program: &mut LoopProgram, block: &[Stmt], read: &mut ReadAs<'_>) -> Done<Vec<Stmt>> {
    walk(program, block.to_vec(), &mut Vec::new(), read)
}

fn walk(
    program: &mut LoopProgram,
    mut block: Vec<Stmt>,
    known: &mut Vec<Cond>,
    read: &mut ReadAs<'_>,
) -> Done<Vec<Stmt>> {
    for stmt in &mut block {
        if let Some(old) = stmt.value_mut() {
            *old = value(program, *old, known, read)?;
        }
        stmt.map_blocks(|cond, inner| {
            let open = known.len();
            known.extend(cond);
            let inner = walk(program, inner, known, read);
            known.truncate(open);
            inner
        })?;
    }
    Ok(block)
}

/// A value with other values for what it reads.
fn value(program: &mut LoopProgram, root: TermId, known: &[Cond], read: &mut ReadAs<'_>) -> Done<TermId> {
    let mut moved: HashMap<TermId, TermId> = HashMap::new();
    for id in program.terms.parts_first(root) {
        let element = as_element(&program.terms, id).map(|(name, _, indices)| (name, indices.to_vec()));
        let new = match element {
            Some((name, indices)) => read(program, known, name, &indices)?.unwrap_or(id),
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
