//! Other names for the buffers of a program: the last part of every pass over storage.
//!
//! A pass decides which buffer is kept where; [`rename`] rewrites every statement and every value accordingly, in one
//! walk over the body and one over the arena. A nest that then copies a buffer onto itself is left out.

use std::collections::HashMap;

use certen_core::{TensorType, Term, TermId, Terms, TypeError};
use certen_syntax::Name;

use crate::ir::{LoopProgram, Stmt, Target};
use crate::walk::{as_element, for_each_mut, statements};

/// A buffer's new name and type.
pub(crate) type Renaming = HashMap<Name, (Name, TensorType)>;

/// Renames buffers that have dimensions. The caller has renamed allocations and frees already.
pub(crate) fn rename(program: &mut LoopProgram, renaming: &Renaming) -> Result<(), TypeError> {
    let buffer = |name: Name, ty: &TensorType| renaming.get(&name).filter(|_| !ty.is_scalar()).cloned();
    let (terms, moved) = rebuilt(program, buffer)?;
    let rewriter = Rewriter { renaming, terms: &terms, moved };
    let body = std::mem::take(&mut program.body);
    program.body = rewriter.block(body);
    program.terms = terms;
    Ok(())
}

/// A program whose outputs have these types, which are equal to their own for all sizes but may be written in another way.
///
/// # Errors
/// If a value does not have its type any more.
pub fn with_output_types(mut program: LoopProgram, types: &[TensorType]) -> Result<LoopProgram, TypeError> {
    let mut renaming = Renaming::new();
    for (output, ty) in program.outputs.iter_mut().zip(types).filter(|(output, ty)| output.ty != **ty) {
        output.ty = ty.clone();
        renaming.insert(output.name, (output.name, ty.clone()));
    }
    let (terms, moved) = rebuilt(&program, |name, _| renaming.get(&name).cloned())?;
    for_each_mut(&mut program.body, |stmt| {
        if let Some(value) = stmt.value_mut() {
            *value = moved[value.index()];
        }
    });
    Ok(LoopProgram { terms, ..program })
}

/// An arena with the values of a program in which references are to other buffers, and where each term is there. Steps leave
/// terms behind that no statement has any more, some with buffers of other types: these are not copied.
pub(crate) fn rebuilt(
    program: &LoopProgram,
    buffer: impl Fn(Name, &TensorType) -> Option<(Name, TensorType)>,
) -> Result<(Terms, Vec<TermId>), TypeError> {
    let terms = &program.terms;
    let mut rebuilt = Terms::new(terms.facts().clone());
    let values = statements(&program.body).filter_map(Stmt::value);
    let moved = rebuilt.copy_from(terms, values, |term| match &term {
        Term::Ref(name, ty) => Ok::<Term, TypeError>(buffer(*name, ty).map_or(term, |(name, ty)| Term::Ref(name, ty))),
        _ => Ok(term),
    })?;
    let moved = terms.iter().map(|(id, _)| moved.get(&id).copied().unwrap_or(id)).collect();
    Ok((rebuilt, moved))
}

struct Rewriter<'a> {
    renaming: &'a Renaming,
    terms: &'a Terms,
    moved: Vec<TermId>,
}

impl Rewriter<'_> {
    fn block(&self, block: Vec<Stmt>) -> Vec<Stmt> {
        let mut out: Vec<Stmt> = Vec::with_capacity(block.len());
        let mut removed = false;
        // The title of a nest that is gone goes too.
        let untitled = |removed: bool, out: &mut Vec<Stmt>| {
            if removed && matches!(out.last(), Some(Stmt::Nest(_))) {
                out.pop();
            }
        };
        for stmt in block {
            if matches!(stmt, Stmt::Nest(_) | Stmt::Alloc(..) | Stmt::Free(_)) {
                untitled(removed, &mut out);
            }
            let stmt = self.stmt(stmt);
            removed = stmt.is_none();
            out.extend(stmt);
        }
        untitled(removed, &mut out);
        out
    }

    /// A statement with other buffers, if it still does something.
    fn stmt(&self, mut stmt: Stmt) -> Option<Stmt> {
        for name in stmt.names_mut() {
            if let Some((new, _)) = self.renaming.get(name) {
                *name = *new;
            }
        }
        if let Some(value) = stmt.value_mut() {
            *value = self.moved[value.index()];
        }
        let (mut had, mut has) = (false, false);
        for block in stmt.blocks_mut() {
            had |= !block.is_empty();
            *block = self.block(std::mem::take(block));
            has |= !block.is_empty();
        }
        let copies_itself = match &stmt {
            Stmt::Assign { target: Target::Element(name, indices), op: None, value } => {
                as_element(self.terms, *value).is_some_and(|(read, _, at)| read == *name && *at == **indices)
            }
            _ => false,
        };
        (!copies_itself && had == has).then_some(stmt)
    }
}
