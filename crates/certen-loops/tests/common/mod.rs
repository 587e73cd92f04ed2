//! A program that watches its own padding.

use std::collections::HashMap;

use certen_core::{Binary, ElemType, Literal, Parameter, Range, ReduceOp, TensorType, Term, Terms};
use certen_index::Ix;
use certen_loops::{LoopProgram, Mode, Stmt, Target, statements};
use certen_syntax::Name;

/// The padded program with one more output, `spilled`, the last: whether padding was found that is not zero, after any
/// nest or at the end of a buffer.
pub fn watched(dense: &LoopProgram, padded: &LoopProgram, vector: i64) -> LoopProgram {
    let (terms, types) = (padded.terms.clone(), allocations(&dense.body).into_iter());
    let mut watch = Watch { terms, types, vector, alive: HashMap::new() };
    let spilled = Name::new("spilled");
    let no = watch.terms.add(Term::Literal(Literal::Bool(false), ElemType::Bool)).unwrap();
    let target = Target::Element(spilled, [].into());
    let mut body = vec![Stmt::Assign { target, op: None, value: no }];
    body.extend(watch.block(&padded.body));
    let mut program = padded.clone();
    program.outputs.push(Parameter { name: spilled, ty: TensorType::scalar(ElemType::Bool) });
    (program.body, program.terms) = (body, watch.terms);
    program
}

fn allocations(block: &[Stmt]) -> Vec<TensorType> {
    let ty = |stmt: &Stmt| if let Stmt::Alloc(_, ty) = stmt { Some(ty.clone()) } else { None };
    statements(block).filter_map(ty).collect()
}

/// The buffers whose elements a loop runs over and writes.
fn filled(stmt: &Stmt) -> Vec<Name> {
    let Stmt::For { index, body, .. } = stmt else { return Vec::new() };
    let written = statements(body).filter_map(Stmt::element);
    written.filter(|(_, at)| at.iter().any(|ix| ix.mentions(*index))).map(|(name, _)| name).collect()
}

struct Watch {
    terms: Terms,
    /// Of all allocations without padding, in order.
    types: std::vec::IntoIter<TensorType>,
    vector: i64,
    /// Types without and with padding, and whether something was computed since the allocation.
    alive: HashMap<Name, (TensorType, TensorType, bool)>,
}

impl Watch {
    fn block(&mut self, block: &[Stmt]) -> Vec<Stmt> {
        let mut out = Vec::new();
        let mut own = Vec::new();
        for stmt in block {
            let mut stmt = stmt.clone();
            match &mut stmt {
                Stmt::Alloc(name, ty) => {
                    self.alive.insert(*name, (self.types.next().unwrap(), ty.clone(), false));
                    own.push(*name);
                }
                Stmt::Nest(_) => out.extend(self.looks()),
                Stmt::Free(name) => {
                    out.extend(self.looks());
                    self.alive.remove(name);
                }
                _ => {
                    // A loop over the elements of a buffer has not come to its end: its padding may hold anything.
                    let filled = filled(&stmt);
                    let hidden: Vec<_> = filled.iter().filter_map(|name| self.alive.remove_entry(name)).collect();
                    stmt.blocks_mut().for_each(|block| *block = self.block(block));
                    self.alive.extend(hidden);
                }
            }
            if !matches!(stmt, Stmt::Alloc(..) | Stmt::Nest(_) | Stmt::Free(_)) {
                for name in &own {
                    self.alive.entry(*name).and_modify(|(_, _, ready)| *ready = true);
                }
            }
            out.push(stmt);
        }
        out
    }

    fn looks(&mut self) -> Vec<Stmt> {
        let mut names: Vec<Name> = self.alive.keys().copied().collect();
        names.sort();
        names.into_iter().filter_map(|name| self.look(name)).collect()
    }

    /// Loops over the padding of a buffer.
    fn look(&mut self, name: Name) -> Option<Stmt> {
        let (dense, padded, ready) = self.alive.get(&name)?.clone();
        if !ready || dense == padded {
            return None;
        }
        let indices: Vec<Ix> = (0..dense.rank()).map(|at| Ix::var(format!("watch{at}").as_str())).collect();
        let element = self.terms.element(name, padded.clone(), indices.clone()).unwrap();
        let zero = match dense.elem {
            ElemType::Bool => Literal::Bool(false),
            elem => Literal::whole(0, elem),
        };
        let zero = self.terms.add(Term::Literal(zero, dense.elem)).unwrap();
        let value = self.terms.add(Term::Binary(Binary::Ne, element, zero)).unwrap();
        let target = Target::Element(Name::new("spilled"), [].into());
        let mut stmt = Stmt::Assign { target, op: Some(ReduceOp::Any), value };
        for (at, size) in padded.shape.iter().enumerate().rev() {
            let lo = match at + 1 == dense.rank() {
                true => dense.shape[at].max_with(&Ix::from(0)).unwrap(),
                false => Ix::from(0),
            };
            assert!(
                at + 1 < dense.rank()
                    || *size == dense.shape[at].ceil_div(self.vector).unwrap().scale(self.vector).unwrap()
            );
            let index = indices[at].as_var().unwrap();
            stmt = Stmt::For { index, range: Range { lo, hi: size.clone() }, mode: Mode::Serial, body: vec![stmt] };
        }
        Some(stmt)
    }
}
