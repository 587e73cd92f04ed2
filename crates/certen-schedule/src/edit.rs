//! Changes to blocks: other expressions for indices, other names, copies.
//!
//! Values live in the program's arena, so an edit adds terms there; statements that it does not change share theirs.

use std::collections::{BTreeMap, HashMap, HashSet};

use certen_core::{Parameter, Range, TensorType, Term, TermId, TypeError};
use certen_index::{Cond, Ix, IxError};
use certen_loops::{LoopProgram, Stmt, Target, as_element};
use certen_syntax::Name;
use rustc_hash::FxHashMap;

/// What stands for the indices and names of a block.
#[derive(Clone, Default)]
pub(crate) struct Edit {
    /// Expressions for indices that are free in the block.
    pub indices: HashMap<Name, Ix>,
    /// Other names for indices that are bound in it, locals and buffers.
    pub names: HashMap<Name, Name>,
    /// Other types of buffers, by their old names: of those that are allocated in the block or outside.
    pub types: HashMap<Name, TensorType>,
    /// Locals and buffers that get further dimensions in front: their new types, and the indices there. A local becomes
    /// a buffer; the statement that declares it is the caller's.
    pub expanded: HashMap<Name, (TensorType, Vec<Ix>)>,
    /// Other numbers, whatever their sign, in expressions and conditions.
    pub numbers: BTreeMap<i64, i64>,
}

impl Edit {
    /// An expression for an index.
    pub(crate) fn index(name: Name, ix: Ix) -> Edit {
        Edit { indices: HashMap::from([(name, ix)]), ..Edit::default() }
    }

    fn name(&self, name: Name) -> Name {
        self.names.get(&name).copied().unwrap_or(name)
    }

    fn number(&self, number: i64) -> i64 {
        let other = |number: i64| self.numbers.get(&number).copied();
        other(number).or_else(|| Some(-other(number.checked_neg()?)?)).unwrap_or(number)
    }

    /// An expression.
    pub(crate) fn ix(&self, ix: &Ix) -> Result<Ix, IxError> {
        let ix = ix.substitute(&|name| {
            self.indices.get(&name).cloned().or_else(|| self.names.get(&name).map(|name| Ix::var(*name)))
        })?;
        if self.numbers.is_empty() { Ok(ix) } else { ix.with_numbers(&|number| self.number(number)) }
    }

    /// A condition.
    pub(crate) fn cond(&self, cond: &Cond) -> Result<Cond, IxError> {
        let cond = cond.substitute(&|name| {
            self.indices.get(&name).cloned().or_else(|| self.names.get(&name).map(|name| Ix::var(*name)))
        })?;
        if self.numbers.is_empty() { Ok(cond) } else { cond.with_numbers(&|number| self.number(number)) }
    }

    /// A range.
    pub(crate) fn range(&self, range: &Range) -> Result<Range, IxError> {
        Ok(Range { lo: self.ix(&range.lo)?, hi: self.ix(&range.hi)? })
    }

    fn ty(&self, name: Name, ty: &TensorType) -> Result<TensorType, IxError> {
        match self.types.get(&name) {
            Some(ty) => Ok(ty.clone()),
            None => ty.with_sizes(|size| self.ix(size)),
        }
    }

    /// Indices behind those of further dimensions.
    fn indices_after(&self, front: &[Ix], indices: &[Ix]) -> Result<Box<[Ix]>, IxError> {
        front.iter().map(|ix| Ok(ix.clone())).chain(indices.iter().map(|ix| self.ix(ix))).collect()
    }

    /// What is assigned.
    pub(crate) fn target(&self, target: &Target) -> Result<Target, IxError> {
        let front = self.expanded.get(&target.name()).map(|(_, at)| at.as_slice());
        Ok(match (target, front) {
            (Target::Local(name), None) => Target::Local(self.name(*name)),
            (Target::Local(name), Some(front)) => Target::Element(self.name(*name), front.into()),
            (Target::Element(name, indices), front) => {
                Target::Element(self.name(*name), self.indices_after(front.unwrap_or_default(), indices)?)
            }
        })
    }

    /// A value.
    pub(crate) fn value(&self, program: &mut LoopProgram, root: TermId) -> Result<TermId, TypeError> {
        program.terms.rewrite(root, |terms, id, term| {
            let term = match term {
                Term::Ref(name, ty) => match self.expanded.get(&name) {
                    Some((new, at)) if ty.is_scalar() && !at.is_empty() => {
                        let tensor = terms.reference(self.name(name), new.clone())?;
                        Term::Select(tensor, at.as_slice().into())
                    }
                    Some((new, _)) => Term::Ref(self.name(name), new.clone()),
                    None => Term::Ref(self.name(name), self.ty(name, &ty)?),
                },
                Term::Select(tensor, indices) => {
                    let front = as_element(terms, id).and_then(|(name, ..)| self.expanded.get(&name));
                    Term::Select(tensor, self.indices_after(front.map_or(&[], |(_, at)| at.as_slice()), &indices)?)
                }
                Term::Index(ix, elem) => Term::Index(self.ix(&ix)?, elem),
                other => other,
            };
            terms.add(term)
        })
    }

    /// A block.
    pub(crate) fn block(&self, program: &mut LoopProgram, block: &[Stmt]) -> Result<Vec<Stmt>, TypeError> {
        block.iter().map(|stmt| self.stmt(program, stmt)).collect()
    }

    /// A statement.
    pub(crate) fn stmt(&self, program: &mut LoopProgram, stmt: &Stmt) -> Result<Stmt, TypeError> {
        Ok(match stmt {
            Stmt::Nest(name) => Stmt::Nest(*name),
            Stmt::Alloc(name, ty) => Stmt::Alloc(self.name(*name), self.ty(*name, ty)?),
            Stmt::Free(name) => Stmt::Free(self.name(*name)),
            Stmt::Swap(a, b) => Stmt::Swap(self.name(*a), self.name(*b)),
            Stmt::For { index, range, mode, body } => Stmt::For {
                index: self.name(*index),
                range: self.range(range)?,
                mode: *mode,
                body: self.block(program, body)?,
            },
            Stmt::If { cond, then, otherwise } => Stmt::If {
                cond: self.cond(cond)?,
                then: self.block(program, then)?,
                otherwise: self.block(program, otherwise)?,
            },
            Stmt::Local { name, elem, init } => Stmt::Local {
                name: self.name(*name),
                elem: *elem,
                init: init.map(|value| self.value(program, value)).transpose()?,
            },
            Stmt::Assign { target, op, value } => {
                Stmt::Assign { target: self.target(target)?, op: *op, value: self.value(program, *value)? }
            }
        })
    }
}

/// A program with these values of its sizes, and no symbolic ones: the same loops, in the same order.
///
/// # Errors
/// If a number does not fit in 64 bits.
pub fn at_sizes(program: &LoopProgram, sizes: &FxHashMap<Name, i64>) -> Result<LoopProgram, TypeError> {
    let indices = sizes.iter().map(|(name, size)| (*name, Ix::from(*size))).collect();
    without_sizes(program, &Edit { indices, ..Edit::default() })
}

/// A program without symbolic sizes, with other numbers in place of some: whatever their sign, wherever they stand in an
/// index, a range, a condition or a shape, but not among data. It may go out of bounds: who wants to run it verifies it.
///
/// # Errors
/// If a number does not fit in 64 bits.
pub fn with_numbers(program: &LoopProgram, numbers: BTreeMap<i64, i64>) -> Result<LoopProgram, TypeError> {
    without_sizes(program, &Edit { numbers, ..Edit::default() })
}

/// An edited program, which leaves no symbolic sizes.
fn without_sizes(program: &LoopProgram, edit: &Edit) -> Result<LoopProgram, TypeError> {
    let parameters = |all: &[Parameter]| {
        let one = |Parameter { name, ty }: &Parameter| Ok(Parameter { name: *name, ty: edit.ty(*name, ty)? });
        all.iter().map(one).collect::<Result<Vec<_>, TypeError>>()
    };
    let mut program = LoopProgram {
        sizes: Vec::new(),
        facts: Vec::new(),
        inputs: parameters(&program.inputs)?,
        outputs: parameters(&program.outputs)?,
        ..program.clone()
    };
    let body = std::mem::take(&mut program.body);
    program.body = edit.block(&mut program, &body)?;
    Ok(program)
}

/// All names that a block declares: indices, locals, buffers.
pub(crate) fn declared(block: &[Stmt]) -> HashSet<Name> {
    certen_loops::declarations(block).into_iter().map(|(name, _)| name).collect()
}

/// The locals and buffers that a block reads, writes or exchanges.
pub(crate) fn used(program: &LoopProgram, block: &[Stmt]) -> HashSet<Name> {
    let mut names = HashSet::new();
    let mut blocks = vec![block];
    while let Some(block) = blocks.pop() {
        for stmt in block {
            let value = match stmt {
                Stmt::For { body, .. } => {
                    blocks.push(body);
                    None
                }
                Stmt::If { then, otherwise, .. } => {
                    blocks.extend([then.as_slice(), otherwise]);
                    None
                }
                Stmt::Swap(a, b) => {
                    names.extend([*a, *b]);
                    None
                }
                Stmt::Local { name, init, .. } => {
                    names.extend(init.map(|_| *name));
                    *init
                }
                Stmt::Assign { target, value, .. } => {
                    names.insert(target.name());
                    Some(*value)
                }
                Stmt::Nest(_) | Stmt::Alloc(..) | Stmt::Free(_) => None,
            };
            for id in value.into_iter().flat_map(|value| program.terms.parts_first(value)) {
                if let Term::Ref(name, _) = program.terms.get(id) {
                    names.insert(*name);
                }
            }
        }
    }
    names
}
