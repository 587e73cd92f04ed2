//! Changes to blocks: other expressions for indices, other names, copies.
//!
//! Values live in the program's arena, so an edit adds terms there; statements that it does not change share theirs.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use certen_core::{Parameter, Range, TensorType, Term, TermId, TypeError};
use certen_index::{Cond, Facts, Ix, IxError};
use certen_loops::{
    Constant, LoopProgram, Stmt, Target, as_element, for_each_mut, sites, statements, try_for_each_mut,
};
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

    /// Indices after those of further dimensions.
    fn indices_after(&self, front: &[Ix], indices: &[Ix]) -> Result<Box<[Ix]>, IxError> {
        front.iter().map(|ix| Ok(ix.clone())).chain(indices.iter().map(|ix| self.ix(ix))).collect()
    }

    /// The indices of further dimensions of a local or buffer.
    fn front(&self, name: Name) -> &[Ix] {
        self.expanded.get(&name).map(|(_, at)| at.as_slice()).unwrap_or_default()
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
        let mut block = block.to_vec();
        try_for_each_mut(&mut block, &mut |stmt| self.change(program, stmt))?;
        Ok(block)
    }

    /// A statement.
    pub(crate) fn stmt(&self, program: &mut LoopProgram, stmt: &Stmt) -> Result<Stmt, TypeError> {
        let mut stmt = [stmt.clone()];
        try_for_each_mut(&mut stmt, &mut |stmt| self.change(program, stmt))?;
        let [stmt] = stmt;
        Ok(stmt)
    }

    /// Changes a statement, without the blocks in it.
    fn change(&self, program: &mut LoopProgram, stmt: &mut Stmt) -> Result<(), TypeError> {
        if let Some((name, indices)) = stmt.element_mut() {
            *indices = self.indices_after(self.front(*name), indices)?;
        }
        match stmt {
            Stmt::Alloc(name, ty) => *ty = self.ty(*name, ty)?,
            Stmt::For { range, .. } => *range = self.range(range)?,
            Stmt::If { cond, .. } => *cond = self.cond(cond)?,
            Stmt::Assign { target: target @ Target::Local(_), .. } if self.expanded.contains_key(&target.name()) => {
                *target = Target::Element(target.name(), self.front(target.name()).into());
            }
            _ => {}
        }
        for name in stmt.names_mut() {
            *name = self.name(*name);
        }
        if let Some(value) = stmt.value_mut() {
            *value = self.value(program, *value)?;
        }
        Ok(())
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
/// index, a range, a condition or a shape, but not among data. It may go out of bounds: verify it before it is run.
///
/// # Errors
/// If a number does not fit in 64 bits.
pub fn with_numbers(program: &LoopProgram, numbers: BTreeMap<i64, i64>) -> Result<LoopProgram, TypeError> {
    without_sizes(program, &Edit { numbers, ..Edit::default() })
}

/// A program without symbolic sizes in which loops end earlier: those that are not for vectors and run from 0 to one of these
/// numbers run to another. Buffers are as large as what is then used of them. Not every element is computed that was before;
/// verify it before it is run.
///
/// # Errors
/// If a number does not fit in 64 bits.
pub fn shortened(program: &LoopProgram, ends: &BTreeMap<i64, i64>) -> Result<LoopProgram, TypeError> {
    let mut program = program.clone();
    for_each_mut(&mut program.body, |stmt| {
        let shorter = end(stmt).and_then(|end| ends.get(&end));
        if let (Stmt::For { range, .. }, Some(shorter)) = (stmt, shorter) {
            range.hi = Ix::from(*shorter);
        }
    });
    let types = used_types(&program)?;
    without_sizes(&program, &Edit { types, ..Edit::default() })
}

/// The numbers at which loops end that [`shortened`] can end earlier.
pub fn ends(program: &LoopProgram) -> BTreeSet<i64> {
    statements(&program.body).filter_map(end).collect()
}

/// The end of a loop from 0 to a number that is not for vectors.
fn end(stmt: &Stmt) -> Option<i64> {
    match stmt {
        Stmt::For { range, mode, .. } if !mode.is_vector() && range.lo.as_constant() == Some(0) => {
            range.hi.as_constant()
        }
        _ => None,
    }
}

/// The types that buffers need for what is used of them, as far as that is seen.
fn used_types(program: &LoopProgram) -> Result<HashMap<Name, TensorType>, IxError> {
    let allocated = statements(&program.body).filter_map(|stmt| match stmt {
        Stmt::Alloc(name, ty) => Some((*name, ty)),
        _ => None,
    });
    // What stands for several buffers keeps its type.
    let mut known: HashMap<Name, Option<&TensorType>> = HashMap::new();
    for (name, ty) in program.given().chain(allocated) {
        known.entry(name).and_modify(|one| *one = one.filter(|one| *one == ty)).or_insert(Some(ty));
    }
    let facts = Facts::new();
    let mut ends: HashMap<Name, Vec<Option<i64>>> = HashMap::new();
    for site in sites(&program.body) {
        let loops: Vec<(Name, &Range)> = site.loops().collect();
        for (name, indices, _) in site.stmt.uses(&program.terms) {
            let ends = ends.entry(name).or_insert_with(|| vec![Some(0); indices.len()]);
            for (end, ix) in ends.iter_mut().zip(indices) {
                let most = loops.iter().rev().try_fold(Some(ix.clone()), |most, (index, range)| {
                    let Some(most) = most else { return Ok(None) };
                    let last = range.hi.sub(&Ix::from(1))?;
                    Ok::<_, IxError>(most.over(*index, &range.lo, &last, &facts)?.map(|(_, most)| most))
                })?;
                let most = most.and_then(|most| most.as_constant());
                *end = end.zip(most).map(|(end, most)| end.max(most.saturating_add(1)));
            }
        }
    }
    let types = known.into_iter().filter_map(|(name, ty)| {
        let (ty, ends) = (ty?, ends.get(&name)?);
        let mut ends = ends.iter();
        let smaller = ty.with_sizes(|size| {
            let end = ends.next().copied().flatten();
            Ok(size
                .as_constant()
                .zip(end)
                .map_or_else(|| size.clone(), |(size, end)| Ix::from(end.clamp(1, size.max(1)))))
        });
        Some(smaller.map(|ty: TensorType| (name, ty)))
    });
    types.collect()
}

/// An edited program, which leaves no symbolic sizes.
fn without_sizes(program: &LoopProgram, edit: &Edit) -> Result<LoopProgram, TypeError> {
    let parameters = |all: &[Parameter]| {
        let one = |Parameter { name, ty }: &Parameter| Ok(Parameter { name: *name, ty: edit.ty(*name, ty)? });
        all.iter().map(one).collect::<Result<Vec<_>, TypeError>>()
    };
    let constant = |Constant { name, table }: &Constant| {
        let ty = edit.ty(*name, table.ty())?;
        let table = table.beginning(&ty).ok_or_else(|| TypeError(format!("{name} has no more elements")))?;
        Ok(Constant { name: *name, table })
    };
    let mut program = LoopProgram {
        sizes: Vec::new(),
        facts: Vec::new(),
        inputs: parameters(&program.inputs)?,
        outputs: parameters(&program.outputs)?,
        constants: program.constants.iter().map(constant).collect::<Result<_, TypeError>>()?,
        ..program.clone()
    };
    let body = std::mem::take(&mut program.body);
    program.body = edit.block(&mut program, &body)?;
    Ok(program)
}

/// The locals and buffers that a block reads, writes or exchanges.
pub(crate) fn used(program: &LoopProgram, block: &[Stmt]) -> HashSet<Name> {
    let mut names = HashSet::new();
    for stmt in statements(block) {
        names.extend(stmt.uses(&program.terms).iter().map(|(name, ..)| *name));
        if let Stmt::Local { name, init: Some(_), .. } = stmt {
            names.insert(*name);
        }
    }
    names
}
