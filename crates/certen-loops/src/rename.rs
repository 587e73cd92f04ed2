//! Other buffers in the place of those that a program speaks of: what passes over storage end with.
//!
//! A pass decides which buffer is kept where; [`rename`] rewrites every statement and every value accordingly, in one
//! walk over the body and one over the arena. A nest that then copies a buffer onto itself is left out.

use std::collections::HashMap;

use certen_core::{TensorType, Term, TermId, Terms, TypeError};
use certen_syntax::Name;

use crate::ir::{LoopProgram, Stmt, Target, as_element};

/// A buffer's new name and type.
pub(crate) type Renaming = HashMap<Name, (Name, TensorType)>;

/// Renames buffers that have dimensions. Allocations and frees are the caller's: they stay as they are.
pub(crate) fn rename(program: &mut LoopProgram, renaming: &Renaming) -> Result<(), TypeError> {
    let buffer = |name: Name, ty: &TensorType| renaming.get(&name).filter(|_| !ty.is_scalar()).cloned();
    let (terms, moved) = rebuilt(&program.terms, buffer)?;
    let rewriter = Rewriter { renaming, terms: &terms, moved };
    let body = std::mem::take(&mut program.body);
    program.body = rewriter.block(body);
    program.terms = terms;
    Ok(())
}

/// An arena in which references are to other buffers, and where each term is there.
pub(crate) fn rebuilt(
    terms: &Terms,
    buffer: impl Fn(Name, &TensorType) -> Option<(Name, TensorType)>,
) -> Result<(Terms, Vec<TermId>), TypeError> {
    let mut rebuilt = Terms::new(terms.facts().clone());
    let moved = rebuilt.copy_from(terms, terms.iter().map(|(id, _)| id), |term| match &term {
        Term::Ref(name, ty) => Ok::<Term, TypeError>(buffer(*name, ty).map_or(term, |(name, ty)| Term::Ref(name, ty))),
        _ => Ok(term),
    })?;
    let moved = terms.iter().map(|(id, _)| moved[&id]).collect();
    Ok((rebuilt, moved))
}

struct Rewriter<'a> {
    renaming: &'a Renaming,
    terms: &'a Terms,
    moved: Vec<TermId>,
}

impl Rewriter<'_> {
    fn rename(&self, name: &mut Name) {
        if let Some((new, _)) = self.renaming.get(name) {
            *name = *new;
        }
    }

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
        match &mut stmt {
            Stmt::Nest(_) | Stmt::Alloc(..) | Stmt::Free(_) => {}
            Stmt::Swap(a, b) => {
                self.rename(a);
                self.rename(b);
            }
            Stmt::For { body, .. } => {
                let empty = body.is_empty();
                *body = self.block(std::mem::take(body));
                if body.is_empty() && !empty {
                    return None;
                }
            }
            Stmt::If { then, otherwise, .. } => {
                let empty = then.is_empty() && otherwise.is_empty();
                *then = self.block(std::mem::take(then));
                *otherwise = self.block(std::mem::take(otherwise));
                if then.is_empty() && otherwise.is_empty() && !empty {
                    return None;
                }
            }
            Stmt::Local { init, .. } => *init = init.map(|value| self.moved[value.index()]),
            Stmt::Assign { target, op, value } => {
                *value = self.moved[value.index()];
                if let Target::Element(name, indices) = target {
                    self.rename(name);
                    let itself = as_element(self.terms, *value);
                    if op.is_none() && itself.is_some_and(|(read, _, at)| read == *name && *at == **indices) {
                        return None;
                    }
                }
            }
        }
        Some(stmt)
    }
}
