//! The one walk over statements: what a statement is made of, in one place for all passes.
//!
//! A pass says what it does with the statements that it is about, and asks here for the rest: the blocks of a statement,
//! its value, the names in it, what it reads and writes. So a new kind of statement is described once, in this file, and
//! passes that have no opinion of it stay as they are (Futhark's `Traversals`; Exo's `LoopIR_Rewrite`).
//!
//! Those that give statements a meaning (verifier, interpreter, races, printer, code generator) and the checker, which
//! trusts no pass, match every kind themselves: the compiler tells them of a new one.
//!
//! Recursion follows the nesting of blocks, which [`MAX_NESTING`](crate::MAX_NESTING) limits.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;

use certen_core::{ElemType, Range, ReduceOp, TensorType, Term, TermId, Terms};
use certen_index::{Cond, Ix, IxError};
use certen_syntax::Name;

use crate::ir::{Stmt, Target};

/// What a statement does to a local or to an element of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Use {
    /// Its value is read.
    Read,
    /// It is replaced.
    Write,
    /// It is combined with a value.
    Combine(ReduceOp),
    /// The whole buffer is exchanged with another one.
    Exchange,
}

impl Stmt {
    /// The blocks inside, in the order of the text: the body of a loop; both sides of a condition.
    pub fn blocks(&self) -> impl Iterator<Item = &Vec<Stmt>> {
        let blocks = match self {
            Stmt::For { body, .. } => [Some(body), None],
            Stmt::If { then, otherwise, .. } => [Some(then), Some(otherwise)],
            Stmt::Nest(_) | Stmt::Alloc(..) | Stmt::Free(_) | Stmt::Swap(..) => [None, None],
            Stmt::Local { .. } | Stmt::Assign { .. } => [None, None],
        };
        blocks.into_iter().flatten()
    }

    /// The same, to be changed.
    pub fn blocks_mut(&mut self) -> impl Iterator<Item = &mut Vec<Stmt>> {
        let blocks = match self {
            Stmt::For { body, .. } => [Some(body), None],
            Stmt::If { then, otherwise, .. } => [Some(then), Some(otherwise)],
            Stmt::Nest(_) | Stmt::Alloc(..) | Stmt::Free(_) | Stmt::Swap(..) => [None, None],
            Stmt::Local { .. } | Stmt::Assign { .. } => [None, None],
        };
        blocks.into_iter().flatten()
    }

    /// What holds in one of its blocks: the index is in its range; the condition holds, or its opposite does.
    ///
    /// # Errors
    /// If the condition does not fit in 64 bits.
    pub fn holds_in(&self, block: usize) -> Result<Cond, IxError> {
        match self {
            Stmt::For { index, range, .. } => within(*index, range),
            Stmt::If { cond, .. } if block == 0 => Ok(cond.clone()),
            Stmt::If { cond, .. } => cond.not(),
            Stmt::Nest(_) | Stmt::Alloc(..) | Stmt::Free(_) | Stmt::Swap(..) => Ok(Cond::always()),
            Stmt::Local { .. } | Stmt::Assign { .. } => Ok(Cond::always()),
        }
    }

    /// Replaces each block by what a function makes of it, given what holds in the block.
    ///
    /// # Errors
    /// The first error of the function.
    pub fn map_blocks<E>(
        &mut self,
        mut f: impl FnMut(Result<Cond, IxError>, Vec<Stmt>) -> Result<Vec<Stmt>, E>,
    ) -> Result<(), E> {
        let known: Vec<_> = (0..self.blocks().count()).map(|block| self.holds_in(block)).collect();
        for (block, known) in self.blocks_mut().zip(known) {
            *block = f(known, std::mem::take(block))?;
        }
        Ok(())
    }

    /// The value that it computes, if it computes one.
    pub fn value(&self) -> Option<TermId> {
        match self {
            Stmt::Local { init, .. } => *init,
            Stmt::Assign { value, .. } => Some(*value),
            Stmt::Nest(_) | Stmt::Alloc(..) | Stmt::Free(_) | Stmt::Swap(..) => None,
            Stmt::For { .. } | Stmt::If { .. } => None,
        }
    }

    /// The same, to be changed.
    pub fn value_mut(&mut self) -> Option<&mut TermId> {
        match self {
            Stmt::Local { init, .. } => init.as_mut(),
            Stmt::Assign { value, .. } => Some(value),
            Stmt::Nest(_) | Stmt::Alloc(..) | Stmt::Free(_) | Stmt::Swap(..) => None,
            Stmt::For { .. } | Stmt::If { .. } => None,
        }
    }

    /// The element of a buffer that it names itself, outside its value.
    pub fn element(&self) -> Option<(Name, &[Ix])> {
        match self {
            Stmt::Assign { target: Target::Element(name, indices), .. } => Some((*name, indices)),
            Stmt::Nest(_) | Stmt::Alloc(..) | Stmt::Free(_) | Stmt::Swap(..) => None,
            Stmt::For { .. } | Stmt::If { .. } | Stmt::Local { .. } | Stmt::Assign { .. } => None,
        }
    }

    /// The same, to be changed.
    pub fn element_mut(&mut self) -> Option<(&mut Name, &mut Box<[Ix]>)> {
        match self {
            Stmt::Assign { target: Target::Element(name, indices), .. } => Some((name, indices)),
            Stmt::Nest(_) | Stmt::Alloc(..) | Stmt::Free(_) | Stmt::Swap(..) => None,
            Stmt::For { .. } | Stmt::If { .. } | Stmt::Local { .. } | Stmt::Assign { .. } => None,
        }
    }

    /// The name that it declares: a buffer, a local or an index.
    pub fn declares(&self) -> Option<Name> {
        match self {
            Stmt::Alloc(name, _) | Stmt::Local { name, .. } | Stmt::For { index: name, .. } => Some(*name),
            Stmt::Nest(_) | Stmt::Free(_) | Stmt::Swap(..) | Stmt::If { .. } | Stmt::Assign { .. } => None,
        }
    }

    /// Every buffer, local and index that it names itself, outside its value and of index expressions. The title of a
    /// nest is not one: it is what the user calls a tensor.
    pub fn names_mut(&mut self) -> impl Iterator<Item = &mut Name> {
        let names = match self {
            Stmt::Nest(_) | Stmt::If { .. } => [None, None],
            Stmt::Alloc(name, _) | Stmt::Free(name) | Stmt::Local { name, .. } => [Some(name), None],
            Stmt::For { index, .. } => [Some(index), None],
            Stmt::Swap(a, b) => [Some(a), Some(b)],
            Stmt::Assign { target: Target::Local(name) | Target::Element(name, _), .. } => [Some(name), None],
        };
        names.into_iter().flatten()
    }

    /// What it does itself to locals and buffers, without its blocks: first what it reads, then what it writes.
    pub fn uses<'a>(&'a self, terms: &'a Terms) -> Vec<(Name, &'a [Ix], Use)> {
        let parts = self.value().into_iter().flat_map(|value| terms.parts_first(value));
        let elements = parts.filter_map(|id| as_element(terms, id));
        let mut uses: Vec<_> = elements.map(|(name, _, indices)| (name, indices, Use::Read)).collect();
        match self {
            Stmt::Assign { target, op, .. } => {
                let indices = self.element().map_or(&[][..], |(_, indices)| indices);
                uses.push((target.name(), indices, op.map_or(Use::Write, Use::Combine)));
            }
            Stmt::Swap(a, b) => uses.extend([*a, *b].map(|name| (name, &[][..], Use::Exchange))),
            Stmt::Nest(_) | Stmt::Alloc(..) | Stmt::Free(_) => {}
            Stmt::For { .. } | Stmt::If { .. } | Stmt::Local { .. } => {}
        }
        uses
    }
}

/// That an index is in a range.
///
/// # Errors
/// If the condition does not fit in 64 bits.
pub fn within(index: Name, range: &Range) -> Result<Cond, IxError> {
    let i = Ix::var(index);
    Ok(Cond::le(&range.lo, &i)?.and(Cond::lt(&i, &range.hi)?))
}

/// Every statement of a block and of the blocks in it, in the order of the text.
pub fn statements(block: &[Stmt]) -> impl Iterator<Item = &Stmt> {
    let mut open = vec![block.iter()];
    std::iter::from_fn(move || {
        loop {
            let Some(stmt) = open.last_mut()?.next() else {
                open.pop();
                continue;
            };
            let depth = open.len();
            open.extend(stmt.blocks().map(|block| block.iter()));
            open[depth..].reverse();
            return Some(stmt);
        }
    })
}

/// A statement, and where it stands in a block or in the blocks in it.
#[derive(Clone, Debug)]
pub struct Site<'a> {
    /// The statement.
    pub stmt: &'a Stmt,
    /// The nest that it belongs to.
    pub nest: Option<Name>,
    /// Its position in the innermost block.
    pub at: usize,
    /// The statements around it, outermost first.
    pub around: Vec<Around<'a>>,
}

/// A statement around another one.
#[derive(Clone, Copy, Debug)]
pub struct Around<'a> {
    /// The statement.
    pub stmt: &'a Stmt,
    /// Its position in its own block.
    pub at: usize,
    /// Which of its blocks the other statement is in.
    pub block: usize,
}

impl<'a> Site<'a> {
    /// The loops around it, outermost first.
    pub fn loops(&self) -> impl Iterator<Item = (Name, &'a Range)> {
        self.around.iter().filter_map(|around| match around.stmt {
            Stmt::For { index, range, .. } => Some((*index, range)),
            _ => None,
        })
    }

    /// The conditions around it, as they hold there.
    pub fn conds(&self) -> impl Iterator<Item = Result<Cond, IxError>> {
        let conditions = self.around.iter().filter(|around| matches!(around.stmt, Stmt::If { .. }));
        conditions.map(|around| around.stmt.holds_in(around.block))
    }
}

/// Every statement of a block and of the blocks in it, in the order of the text, with what stands around it.
pub fn sites(block: &[Stmt]) -> Vec<Site<'_>> {
    fn visit<'a>(block: &'a [Stmt], nest: Option<Name>, around: &mut Vec<Around<'a>>, found: &mut Vec<Site<'a>>) {
        let mut nest = nest;
        for (at, stmt) in block.iter().enumerate() {
            if let Stmt::Nest(name) = stmt {
                nest = Some(*name);
            }
            found.push(Site { stmt, nest, at, around: around.clone() });
            for (block, inner) in stmt.blocks().enumerate() {
                around.push(Around { stmt, at, block });
                visit(inner, nest, around, found);
                around.pop();
            }
        }
    }
    let mut found = Vec::new();
    visit(block, None, &mut Vec::new(), &mut found);
    found
}

/// Changes every statement of a block and of the blocks in it, from the outside in.
///
/// # Errors
/// The first error of the function.
pub fn try_for_each_mut<E>(block: &mut [Stmt], f: &mut impl FnMut(&mut Stmt) -> Result<(), E>) -> Result<(), E> {
    for stmt in block {
        f(stmt)?;
        for inner in stmt.blocks_mut() {
            try_for_each_mut(inner, f)?;
        }
    }
    Ok(())
}

/// Changes every statement of a block and of the blocks in it, from the outside in.
pub fn for_each_mut(block: &mut [Stmt], mut f: impl FnMut(&mut Stmt)) {
    let Ok(()) = try_for_each_mut(block, &mut |stmt| {
        f(stmt);
        Ok::<(), Infallible>(())
    });
}

/// The statements of a block, and of the blocks in it, that declare a name, with that name.
pub fn declarations(block: &[Stmt]) -> impl Iterator<Item = (Name, &Stmt)> {
    statements(block).filter_map(|stmt| Some((stmt.declares()?, stmt)))
}

/// The names that a block, and the blocks in it, declare.
pub fn declared(block: &[Stmt]) -> HashSet<Name> {
    declarations(block).map(|(name, _)| name).collect()
}

/// The buffers and locals that a block declares, without the blocks in it.
pub fn declared_at_top(block: &[Stmt]) -> impl Iterator<Item = Name> {
    block.iter().filter_map(|stmt| match stmt {
        Stmt::Alloc(name, _) | Stmt::Local { name, .. } => Some(*name),
        _ => None,
    })
}

/// Whether a block assigns a local, or exchanges a buffer, that is declared outside it.
pub fn changes_outside(block: &[Stmt]) -> bool {
    let mut changed: Vec<Name> = Vec::new();
    for stmt in statements(block) {
        match stmt {
            Stmt::Assign { target: Target::Local(name), .. } => changed.push(*name),
            Stmt::Swap(a, b) => changed.extend([*a, *b]),
            _ => {}
        }
    }
    if changed.is_empty() {
        return false;
    }
    let own = declared(block);
    changed.iter().any(|name| !own.contains(name))
}

/// The locals from outside that a body only combines into, each by one operation whose result is the same in any order, to
/// the bit: sums, products and extremes of integers, `all` and `any`. Others that it assigns are not among them.
pub fn combined(terms: &Terms, body: &[Stmt]) -> HashMap<Name, (ElemType, ReduceOp)> {
    let (mut found, mut spoilt) = (HashMap::new(), declared(body));
    for stmt in statements(body) {
        if let Stmt::Assign { target: Target::Local(name), op, value } = stmt {
            let elem = terms.ty(*value).elem;
            let same = |op: ReduceOp| *found.entry(*name).or_insert((elem, op)) == (elem, op);
            if elem.is_float() || !op.is_some_and(same) {
                spoilt.insert(*name);
            }
        }
        spoilt.extend(stmt.uses(terms).iter().filter(|(.., how)| *how == Use::Read).map(|(name, ..)| *name));
    }
    found.retain(|name, _| !spoilt.contains(name));
    found
}

/// Whether a term is an element of a buffer, and which: a selection from a reference with all indices.
pub fn as_element(terms: &Terms, id: TermId) -> Option<(Name, &TensorType, &[Ix])> {
    match terms.get(id) {
        Term::Ref(name, ty) if ty.is_scalar() => Some((*name, ty, &[])),
        Term::Select(tensor, indices) => match terms.get(*tensor) {
            Term::Ref(name, ty) if ty.rank() == indices.len() => Some((*name, ty, indices)),
            _ => None,
        },
        _ => None,
    }
}
