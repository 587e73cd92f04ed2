//! Mutants of a nest: every way to change one place of it by an operator of a fixed list.

use std::collections::BTreeSet;

use certen_core::{Binary, Literal, ReduceOp, TensorType, Term, TermId, Terms};
use certen_index::Ix;
use certen_loops::{LoopProgram, Mode, Stmt, Target};
use certen_syntax::Name;

/// What is changed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Operator {
    Bound,
    ReadIndex,
    WriteIndex,
    Coefficient,
    Guard,
    Initialisation,
    Operation,
    Accumulation,
    Literal,
    LoopsReordered,
    StatementsReordered,
    ParallelWidened,
    BufferShared,
    BufferSize,
}

/// Every mutant, with what was changed.
pub fn mutants(nest: &LoopProgram) -> Vec<(Operator, LoopProgram)> {
    let mut found = Vec::new();
    let mut todo: Vec<Vec<Turn>> = vec![Vec::new()];
    while let Some(path) = todo.pop() {
        let mut copy = nest.clone();
        let Some(block) = block_at(&mut copy.body, &path) else { continue };
        let block = block.clone();
        for (at, stmt) in block.iter().enumerate() {
            todo.extend((0..stmt.blocks().count()).map(|block| below(&path, at, block)));
            statement(nest, &path, at, stmt, &mut found);
        }
        for at in 1..block.len() {
            let moves = |stmt: &Stmt| matches!(stmt, Stmt::Assign { .. } | Stmt::For { .. } | Stmt::If { .. });
            if moves(&block[at - 1]) && moves(&block[at]) {
                change(nest, &path, Operator::StatementsReordered, &mut found, |block, _| {
                    block.swap(at - 1, at);
                    Some(())
                });
            }
        }
    }
    buffers(nest, &mut found);
    found
}

#[derive(Clone, Copy)]
struct Turn {
    at: usize,
    block: usize,
}

fn below(path: &[Turn], at: usize, block: usize) -> Vec<Turn> {
    path.iter().copied().chain([Turn { at, block }]).collect()
}

fn block_at<'a>(block: &'a mut Vec<Stmt>, path: &[Turn]) -> Option<&'a mut Vec<Stmt>> {
    path.iter().try_fold(block, |block, turn| block.get_mut(turn.at)?.blocks_mut().nth(turn.block))
}

/// A mutant with one block changed.
fn change(
    nest: &LoopProgram,
    path: &[Turn],
    operator: Operator,
    found: &mut Vec<(Operator, LoopProgram)>,
    edit: impl FnOnce(&mut Vec<Stmt>, &mut Terms) -> Option<()>,
) {
    let mut mutant = nest.clone();
    let mut terms = std::mem::take(&mut mutant.terms);
    let done = block_at(&mut mutant.body, path).and_then(|block| edit(block, &mut terms));
    mutant.terms = terms;
    if done.is_some() {
        found.push((operator, mutant));
    }
}

fn plus(ix: &Ix, more: i64) -> Option<Ix> {
    ix.add(&Ix::from(more)).ok()
}

fn statement(nest: &LoopProgram, path: &[Turn], at: usize, stmt: &Stmt, found: &mut Vec<(Operator, LoopProgram)>) {
    match stmt {
        Stmt::For { mode, body, .. } => {
            for (low, more) in [(true, 1), (true, -1), (false, 1), (false, -1)] {
                change(nest, path, Operator::Bound, found, |block, _| {
                    let Stmt::For { range, .. } = &mut block[at] else { return None };
                    let end = if low { &mut range.lo } else { &mut range.hi };
                    *end = plus(end, more)?;
                    Some(())
                });
            }
            if *mode == Mode::Serial {
                for wide in [Mode::Parallel, Mode::Vector] {
                    change(nest, path, Operator::ParallelWidened, found, |block, _| {
                        let Stmt::For { mode, .. } = &mut block[at] else { return None };
                        *mode = wide;
                        Some(())
                    });
                }
            }
            if let [Stmt::For { .. }] = body.as_slice() {
                change(nest, path, Operator::LoopsReordered, found, |block, _| {
                    let Stmt::For { index, range, mode, body } = &mut block[at] else { return None };
                    let [Stmt::For { index: inner, range: within, mode: how, .. }] = body.as_mut_slice() else {
                        return None;
                    };
                    std::mem::swap(index, inner);
                    std::mem::swap(range, within);
                    std::mem::swap(mode, how);
                    Some(())
                });
            }
        }
        Stmt::If { cond, then, .. } => {
            change(nest, path, Operator::Guard, found, |block, _| {
                block.splice(at..=at, then.iter().cloned());
                Some(())
            });
            let negated = cond.not().ok();
            change(nest, path, Operator::Guard, found, |block, _| {
                let Stmt::If { cond, .. } = &mut block[at] else { return None };
                *cond = negated?;
                Some(())
            });
        }
        Stmt::Local { init: Some(value), .. } => {
            change(nest, path, Operator::Initialisation, found, |block, _| {
                let Stmt::Local { init, .. } = &mut block[at] else { return None };
                *init = None;
                Some(())
            });
            values(nest, path, at, *value, found);
        }
        Stmt::Assign { target, op, value } => {
            if op.is_none() && matches!(nest.terms.get(*value), Term::Literal(..)) {
                change(nest, path, Operator::Initialisation, found, |block, _| {
                    block.remove(at);
                    Some(())
                });
            }
            if let Target::Element(_, indices) = target {
                for (dimension, more) in (0..indices.len()).flat_map(|d| [(d, 1), (d, -1)]) {
                    change(nest, path, Operator::WriteIndex, found, |block, _| {
                        let index = &mut indices_of(&mut block[at])?[dimension];
                        *index = plus(index, more)?;
                        Some(())
                    });
                }
                for dimension in 0..indices.len() {
                    change(nest, path, Operator::Coefficient, found, |block, _| {
                        let index = &mut indices_of(&mut block[at])?[dimension];
                        *index = doubled(index)?;
                        Some(())
                    });
                }
            }
            for other in accumulations(nest, *op, *value) {
                change(nest, path, Operator::Accumulation, found, |block, _| {
                    let Stmt::Assign { op, .. } = &mut block[at] else { return None };
                    *op = other;
                    Some(())
                });
            }
            values(nest, path, at, *value, found);
        }
        _ => {}
    }
}

fn indices_of(stmt: &mut Stmt) -> Option<&mut Box<[Ix]>> {
    match stmt {
        Stmt::Assign { target: Target::Element(_, indices), .. } => Some(indices),
        _ => None,
    }
}

/// An index with one of its names counted twice.
fn doubled(ix: &Ix) -> Option<Ix> {
    let mut names = BTreeSet::new();
    ix.collect_names(&mut names);
    let name = *names.first()?;
    ix.add(&Ix::var(name)).ok()
}

fn accumulations(nest: &LoopProgram, op: Option<ReduceOp>, value: TermId) -> Vec<Option<ReduceOp>> {
    let numeric = nest.terms.ty(value).elem.has_arithmetic();
    match op {
        None if numeric => vec![Some(ReduceOp::Sum)],
        None => vec![],
        Some(ReduceOp::Sum) => vec![None, Some(ReduceOp::Prod), Some(ReduceOp::Max)],
        Some(ReduceOp::Prod) => vec![None, Some(ReduceOp::Sum)],
        Some(ReduceOp::Min) => vec![None, Some(ReduceOp::Max)],
        Some(ReduceOp::Max) => vec![None, Some(ReduceOp::Min)],
        Some(ReduceOp::All) => vec![None, Some(ReduceOp::Any)],
        Some(ReduceOp::Any) => vec![None, Some(ReduceOp::All)],
    }
}

/// Changes inside a value.
fn values(nest: &LoopProgram, path: &[Turn], at: usize, value: TermId, found: &mut Vec<(Operator, LoopProgram)>) {
    let mut replace = |operator: Operator, place: TermId, term: Option<Term>| {
        let Some(term) = term else { return };
        change(nest, path, operator, found, |block, terms| {
            let new = rebuilt(terms, value, place, term)?;
            match &mut block[at] {
                Stmt::Assign { value, .. } => *value = new,
                Stmt::Local { init, .. } => *init = Some(new),
                _ => return None,
            }
            Some(())
        });
    };
    for id in nest.terms.parts_first(value) {
        match nest.terms.get(id) {
            Term::Select(tensor, indices) => {
                for dimension in 0..indices.len() {
                    let with = |index: Option<Ix>| {
                        let mut indices = indices.clone();
                        indices[dimension] = index?;
                        Some(Term::Select(*tensor, indices))
                    };
                    replace(Operator::ReadIndex, id, with(plus(&indices[dimension], 1)));
                    replace(Operator::ReadIndex, id, with(plus(&indices[dimension], -1)));
                    replace(Operator::Coefficient, id, with(doubled(&indices[dimension])));
                }
            }
            Term::Index(ix, elem) => replace(Operator::ReadIndex, id, plus(ix, 1).map(|ix| Term::Index(ix, *elem))),
            Term::Binary(op, a, b) => {
                let others: &[Binary] = match op {
                    Binary::Add => &[Binary::Sub, Binary::Mul],
                    Binary::Sub => &[Binary::Add],
                    Binary::Mul => &[Binary::Add],
                    Binary::Div | Binary::ControlledDiv => &[Binary::Mul],
                    Binary::FloorDiv => &[Binary::Mod],
                    Binary::Mod => &[Binary::FloorDiv],
                    Binary::Min => &[Binary::Max],
                    Binary::Max => &[Binary::Min],
                    Binary::Lt => &[Binary::Le],
                    Binary::Le => &[Binary::Lt],
                    Binary::Eq => &[Binary::Ne],
                    Binary::Ne => &[Binary::Eq],
                    Binary::And => &[Binary::Or],
                    Binary::Or => &[Binary::And],
                    Binary::Pow | Binary::Hypot | Binary::LibmPow | Binary::LibmAtan2 | Binary::LibmHypot => {
                        &[Binary::Mul]
                    }
                    Binary::Atan2 => &[Binary::Div],
                };
                for other in others {
                    replace(Operator::Operation, id, Some(Term::Binary(*other, *a, *b)));
                }
                if matches!(op, Binary::Sub | Binary::Div | Binary::Lt | Binary::Le) {
                    replace(Operator::Operation, id, Some(Term::Binary(*op, *b, *a)));
                }
            }
            Term::Choose(c, a, b) => replace(Operator::Operation, id, Some(Term::Choose(*c, *b, *a))),
            Term::Literal(literal, elem) => {
                let other = match literal {
                    Literal::Float(value) => Literal::Float(value + 1.0),
                    Literal::Int(value) => Literal::Int(value.wrapping_add(1)),
                    Literal::Bool(value) => Literal::Bool(!value),
                };
                replace(Operator::Literal, id, Some(Term::Literal(other, *elem)));
            }
            _ => {}
        }
    }
}

/// A term with one of its parts replaced by another term.
fn rebuilt(terms: &mut Terms, root: TermId, place: TermId, with: Term) -> Option<TermId> {
    rewritten(terms, root, &|id, term| if id == place { with.clone() } else { term })
}

fn rewritten(terms: &mut Terms, root: TermId, of: &dyn Fn(TermId, Term) -> Term) -> Option<TermId> {
    terms.rewrite(root, |terms, id, term| terms.add(of(id, term))).ok()
}

/// Two buffers of one type become one; a buffer is made smaller or larger by one.
fn buffers(nest: &LoopProgram, found: &mut Vec<(Operator, LoopProgram)>) {
    let mut own: Vec<(Name, TensorType)> = Vec::new();
    for (name, stmt) in certen_loops::declarations(&nest.body) {
        if let Stmt::Alloc(_, ty) = stmt {
            own.push((name, ty.clone()));
        }
    }
    own.sort_by_key(|(name, _)| *name);
    own.dedup();
    let outputs = nest.outputs.iter().map(|output| (output.name, output.ty.clone()));
    let all: Vec<(Name, TensorType)> = own.iter().cloned().chain(outputs).collect();
    for (gone, ty) in &own {
        for (kept, other) in all.iter().filter(|(name, _)| name != gone) {
            if ty == other {
                let of = |name: Name| if name == *gone { *kept } else { name };
                found.extend(everywhere(nest, &of, &|_, ty| ty.clone()).map(|m| (Operator::BufferShared, m)));
            }
        }
        for (dimension, more) in (0..ty.rank()).flat_map(|d| [(d, 1), (d, -1)]) {
            let sized = |name: Name, ty: &TensorType| {
                let mut shape = ty.shape.to_vec();
                if name == *gone {
                    shape[dimension] = plus(&shape[dimension], more).unwrap_or_else(|| shape[dimension].clone());
                }
                TensorType::new(ty.elem, shape)
            };
            found.extend(everywhere(nest, &|name| name, &sized).map(|m| (Operator::BufferSize, m)));
        }
    }
}

/// The nest with other buffers: a buffer that becomes another one is neither allocated nor freed.
fn everywhere(
    nest: &LoopProgram,
    name: &dyn Fn(Name) -> Name,
    ty: &dyn Fn(Name, &TensorType) -> TensorType,
) -> Option<LoopProgram> {
    fn block(
        stmts: &[Stmt],
        terms: &mut Terms,
        name: &dyn Fn(Name) -> Name,
        ty: &dyn Fn(Name, &TensorType) -> TensorType,
    ) -> Option<Vec<Stmt>> {
        let value = |terms: &mut Terms, root: TermId| {
            rewritten(terms, root, &|_, term| match term {
                Term::Ref(n, t) => Term::Ref(name(n), ty(n, &t)),
                other => other,
            })
        };
        let mut out = Vec::new();
        for stmt in stmts {
            let mut stmt = stmt.clone();
            match &mut stmt {
                Stmt::Alloc(n, _) | Stmt::Free(n) if name(*n) != *n => continue,
                Stmt::Alloc(n, t) => *t = ty(*n, t),
                _ => stmt.names_mut().for_each(|n| *n = name(*n)),
            }
            if let Some(old) = stmt.value_mut() {
                *old = value(terms, *old)?;
            }
            for inner in stmt.blocks_mut() {
                *inner = block(inner, terms, name, ty)?;
            }
            out.push(stmt);
        }
        Some(out)
    }
    let mut mutant = nest.clone();
    mutant.body = block(&nest.body, &mut mutant.terms, name, ty)?;
    Some(mutant)
}
