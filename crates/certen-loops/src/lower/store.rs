//! Destination passing: the statements that store a term (ATL, Fig. 3).
//!
//! [`Lowering::into`] follows the term. A generation becomes a loop, a sum of tensors a loop that adds to its
//! destination, a guard an `if`; reshape operators produce no code, they only extend the [`Reindexer`] that says where
//! the elements go. So the order of computation is that of the term's generations, and the order of storage that of its
//! reshape operators. A scalar is stored at the place that the reindexer gives.
//!
//! Beyond the figure:
//!
//! - **Holes.** The figure's buffers are zero to begin with; here a destination may hold anything. What is padding (the
//!   rows that `pad` adds, the end of the last block of `split`, where a guard is false) is stored as zero, each element
//!   once. Where the prover shows that a truncation cuts the padding off, as it does around every tile, no code is left.
//! - **Partitions.** A loop is cut where a condition on what is stored changes (`cut.rs`).
//! - **Sums** first set their destination to zero, and then add, in the order of the index; a sum inside it adds to the
//!   same destination, unless that changes a rounding that has to stay. Other reductions of tensors
//!   compute their elements one by one with a scalar accumulator (`reduce.rs`): zeros of guards count in them.
//! - A term that is read at indices already, or that is stored elsewhere, is copied element by element (`value.rs`).
//!
//! A store that a truncation could move out of its buffer is refused unless the prover shows that it does not: that is
//! what the padding check ([`certen_core::padding`]) has promised. Only what is *read* from a tensor that has padding of
//! its own, and a sum that is computed element by element, are stored under the condition that they are inside.

use certen_core::{Literal, Range, ReduceOp, Term, TermId};
use certen_index::{Cond, Ix, Verdict};
use certen_syntax::{Code, Diagnostic, Name};

use super::cut::MAX_CUTS;
use super::reindex::{Position, Reindexer, Reindexing};
use super::{Bound, Choice, Env, Lowered, Lowering, Stored, bad_index, ill_typed, no_part};
use crate::ir::{Stmt, Target};

/// Where a term is stored, and how.
#[derive(Clone)]
pub(super) struct Destination {
    spot: Spot,
    reindexer: Reindexer,
    /// Whether values are added to what is there.
    adds: bool,
}

#[derive(Clone, Copy)]
enum Spot {
    Local(Name),
    Buffer(Name),
}

/// A generation whose range may be cut.
struct Generation {
    name: Name,
    /// The first value of the whole range.
    from: Ix,
    size: Ix,
    body: TermId,
}

impl Destination {
    pub(super) fn local(name: Name) -> Destination {
        Destination { spot: Spot::Local(name), reindexer: Reindexer::default(), adds: false }
    }

    pub(super) fn buffer(name: Name) -> Destination {
        Destination { spot: Spot::Buffer(name), reindexer: Reindexer::default(), adds: false }
    }

    /// The destination of a part of the term.
    fn then(mut self, step: Reindexing) -> Destination {
        self.reindexer.push(step);
        self
    }
}

impl Lowering<'_> {
    /// A nest that stores every element of a term in a buffer.
    pub(super) fn store(&mut self, term: TermId, env: Env, buffer: &Stored) -> Lowered<()> {
        // What has to be there first is not part of the nest.
        let (term, env, read) = self.head(term, env, Vec::new())?;
        self.push(Stmt::Nest(buffer.name));
        self.into(term, env, read, Destination::buffer(buffer.name))
    }

    /// Stores a term that is read at the given indices; there can be fewer than it has dimensions.
    pub(super) fn into(&mut self, term: TermId, env: Env, read: Vec<Ix>, dest: Destination) -> Lowered<()> {
        self.deeper(|lowering| lowering.follow(term, env, read, dest))
    }

    fn follow(&mut self, mut term: TermId, mut env: Env, mut read: Vec<Ix>, mut dest: Destination) -> Lowered<()> {
        loop {
            (term, env, read) = self.head(term, env, read)?;
            if let Some(choice) = self.branches(term, env, &read)? {
                return self.choose(choice, term, read.len(), env, dest);
            }
            if !read.is_empty() {
                return self.elements_of(term, env, read, dest);
            }
            let ty = self.program.terms.ty(term);
            let size = |lowering: &Self, at: usize| lowering.ix(env, ty.shape.get(at).ok_or_else(no_part)?);
            // Adding up in one destination makes the sums around and inside one sum.
            let apart = dest.adds && self.strict;
            match self.term(term) {
                Term::Gen(name, range, body) => {
                    let (range, size) = (self.range(env, range)?, size(self, 0)?);
                    let generation = Generation { name: *name, from: range.lo.clone(), size, body: *body };
                    return self.generation(&generation, range, env, dest, MAX_CUTS);
                }
                Term::Reduce(ReduceOp::Sum, _, range, ..) if !ty.is_scalar() && !apart => {
                    if !dest.adds {
                        self.fill(term, 0, env, dest.clone())?;
                        dest.adds = true;
                    }
                    let range = self.range(env, range)?;
                    return self.each(term, range, env, |lowering, body, _, inner| {
                        lowering.into(body, inner, Vec::new(), dest)
                    });
                }
                Term::Flatten(a) => {
                    dest = dest.then(Reindexing::Flatten(size(self, 0)?));
                    term = *a;
                }
                Term::Transpose(a) => {
                    dest = dest.then(Reindexing::Transpose);
                    term = *a;
                }
                Term::Split(k, a) => {
                    let blocks = size(self, 0)?;
                    let whole = blocks.scale(*k).map_err(bad_index)?;
                    dest = dest.then(Reindexing::Split(*k, blocks));
                    let end = self.ix(env, &self.program.terms.ty(*a).shape[0])?;
                    self.rows(*a, Range { lo: end, hi: whole.clone() }, whole, env, &dest)?;
                    term = *a;
                }
                Term::PadLeft(k, a) => {
                    let (by, size) = (self.ix(env, k)?, size(self, 0)?);
                    self.rows(*a, Range::to(by.clone()), size.clone(), env, &dest)?;
                    let cuts = !self.is_amount(&by)?;
                    dest = dest.then(Reindexing::Move { by, size, cuts });
                    term = *a;
                }
                Term::PadRight(k, a) => {
                    let (by, size) = (self.ix(env, k)?, size(self, 0)?);
                    let end = self.ix(env, &self.program.terms.ty(*a).shape[0])?;
                    self.rows(*a, Range { lo: end, hi: size.clone() }, size.clone(), env, &dest)?;
                    let cuts = !self.is_amount(&by)?;
                    dest = dest.then(Reindexing::Move { by: Ix::from(0), size, cuts });
                    term = *a;
                }
                Term::TruncLeft(k, a) => {
                    let by = Ix::from(0).sub(&self.ix(env, k)?).map_err(bad_index)?;
                    dest = dest.then(Reindexing::Move { by, size: size(self, 0)?, cuts: true });
                    term = *a;
                }
                Term::TruncRight(_, a) => {
                    dest = dest.then(Reindexing::Move { by: Ix::from(0), size: size(self, 0)?, cuts: true });
                    term = *a;
                }
                Term::Concat(a, b) => {
                    let (left, size) = (self.ix(env, &self.program.terms.ty(*a).shape[0])?, size(self, 0)?);
                    let first = Reindexing::Move { by: Ix::from(0), size: size.clone(), cuts: false };
                    self.into(*a, env, Vec::new(), dest.clone().then(first))?;
                    dest = dest.then(Reindexing::Move { by: left, size, cuts: false });
                    term = *b;
                }
                _ => return self.elements_of(term, env, read, dest),
            }
        }
    }

    /// A loop over a generation's range, or several, each over a piece of it.
    fn generation(&mut self, of: &Generation, range: Range, env: Env, dest: Destination, cuts: usize) -> Lowered<()> {
        let index = self.open_loop(of.name, &range)?;
        let inner = self.bind(env, of.name, Bound::Index(Ix::var(index)));
        if cuts > 0
            && self.cuts_left > 0
            && self.chooses[of.body.index()]
            && let Some(pieces) = self.cut(of.body, inner, index, &range, dest.reindexer.flattens())?
        {
            // Nothing was done in it yet.
            self.close();
            self.cuts_left -= 1;
            self.has_pieces = true;
            self.in_pieces += 1;
            for piece in pieces {
                self.generation(of, piece, env, dest.clone(), cuts - 1)?;
            }
            self.in_pieces -= 1;
            return Ok(());
        }
        let from_zero = Ix::var(index).sub(&of.from).map_err(bad_index)?;
        self.into(of.body, inner, Vec::new(), dest.then(Reindexing::Index(from_zero, of.size.clone())))?;
        self.close_loop(index, range);
        Ok(())
    }

    /// Whether an amount of padding is shown to be one.
    fn is_amount(&self, k: &Ix) -> Lowered<bool> {
        Ok(self.prove(&Cond::le(&Ix::from(0), k).map_err(bad_index)?) == Verdict::Yes)
    }

    /// One of two terms, by a condition; the missing branch of a guard is padding.
    fn choose(&mut self, choice: Choice, term: TermId, read: usize, env: Env, dest: Destination) -> Lowered<()> {
        let Choice { cond, then, otherwise } = choice;
        // Where loops were cut, the answer is often known; inside scalar operations it is not worth asking otherwise.
        if self.in_pieces > 0 || matches!(dest.spot, Spot::Buffer(_)) {
            match (self.decided(&cond)?, otherwise.clone()) {
                (Some(true), _) => return self.into(then.0, env, then.1, dest),
                (Some(false), Some((other, indices))) => return self.into(other, env, indices, dest),
                (Some(false), None) => return self.fill(term, read, env, dest),
                (None, _) => {}
            }
        }
        self.open(vec![cond.clone()])?;
        self.into(then.0, env, then.1, dest.clone())?;
        let accepted = self.close();
        self.open(vec![cond.not().map_err(bad_index)?])?;
        match otherwise {
            Some((other, indices)) => self.into(other, env, indices, dest)?,
            None => self.fill(term, read, env, dest)?,
        }
        let refused = self.close();
        self.push_if(cond, accepted, refused)
    }

    /// The elements of a term one by one, in loops over the dimensions that it is not read at.
    fn elements_of(&mut self, term: TermId, env: Env, mut read: Vec<Ix>, dest: Destination) -> Lowered<()> {
        let rank = self.program.terms.ty(term).rank();
        if read.len() < rank {
            return self.over(term, read.len(), env, dest, |lowering, indices, dest| {
                read.extend(indices);
                lowering.into(term, env, read, dest)
            });
        }
        let Some((target, inside)) = self.target(&dest)? else { return Ok(()) };
        let value = self.value(term, env, read)?;
        // What is only read may be padding of the tensor that it is read from, and a sum may be one of padding.
        let may_be_padding = matches!(self.term(term), Term::Ref(..) | Term::Reduce(ReduceOp::Sum, ..))
            || matches!(self.out.get(value), Term::Select(..));
        let op = dest.adds.then_some(ReduceOp::Sum);
        let store = Stmt::Assign { target, op, value };
        if inside.is_always() {
            self.push(store);
        } else if may_be_padding {
            self.push_if(inside, vec![store], Vec::new())?;
        } else {
            return Err(outside(&dest, &inside, self.prove(&inside)));
        }
        Ok(())
    }

    /// Zero for all elements of a term that is read at a number of indices: padding. What is added to stays as it is.
    fn fill(&mut self, term: TermId, read: usize, env: Env, dest: Destination) -> Lowered<()> {
        self.over(term, read, env, dest, |lowering, _, dest| lowering.zeros(term, &dest))
    }

    /// Zero for rows before or after a term: padding.
    fn rows(&mut self, term: TermId, rows: Range, size: Ix, env: Env, dest: &Destination) -> Lowered<()> {
        if dest.adds || rows.lo == rows.hi {
            return Ok(());
        }
        let index = self.open_loop(Name::new("i1"), &rows)?;
        let row = dest.clone().then(Reindexing::Index(Ix::var(index), size));
        self.over(term, 1, env, row, |lowering, _, dest| lowering.zeros(term, &dest))?;
        self.close_loop(index, rows);
        Ok(())
    }

    fn zeros(&mut self, like: TermId, dest: &Destination) -> Lowered<()> {
        if dest.adds {
            return Ok(());
        }
        let value = self.zero(like)?;
        let Some((target, inside)) = self.target(dest)? else { return Ok(()) };
        let store = Stmt::Assign { target, op: None, value };
        if inside.is_always() {
            self.push(store);
        } else if self.prove(&inside.not().map_err(bad_index)?) != Verdict::Yes {
            self.push_if(inside, vec![store], Vec::new())?;
        }
        Ok(())
    }

    pub(super) fn zero(&mut self, like: TermId) -> Lowered<TermId> {
        let elem = self.program.terms.ty(like).elem;
        self.out.add(Term::Literal(Literal::whole(0, elem), elem)).map_err(ill_typed)
    }

    /// Loops over the dimensions of a term from one on.
    fn over(
        &mut self,
        term: TermId,
        first: usize,
        env: Env,
        mut dest: Destination,
        each: impl FnOnce(&mut Self, Vec<Ix>, Destination) -> Lowered<()>,
    ) -> Lowered<()> {
        let mut loops = Vec::new();
        for (at, size) in self.program.terms.ty(term).shape.iter().enumerate().skip(first) {
            let range = Range::to(self.ix(env, size)?);
            let index = self.open_loop(Name::new(&format!("i{}", at + 1)), &range)?;
            dest = dest.then(Reindexing::Index(Ix::var(index), range.hi.clone()));
            loops.push((index, range));
        }
        each(self, loops.iter().map(|(index, _)| Ix::var(*index)).collect(), dest)?;
        for (index, range) in loops.into_iter().rev() {
            self.close_loop(index, range);
        }
        Ok(())
    }

    /// What of a conjunction is not shown to hold here.
    fn open_part(&self, cond: Cond) -> Cond {
        match cond {
            Cond::And(all) => {
                let open = all.into_iter().filter(|cond| self.prove(cond) != Verdict::Yes);
                open.fold(Cond::always(), Cond::and)
            }
            cond if self.prove(&cond) == Verdict::Yes => Cond::always(),
            cond => cond,
        }
    }

    /// What is written at the end of all steps, and what of being inside is not shown. Nothing if the store is never
    /// reached, as in a loop over nothing: there is nothing to show about it then.
    fn target(&self, dest: &Destination) -> Lowered<Option<(Target, Cond)>> {
        let name = match dest.spot {
            Spot::Local(name) => return Ok(Some((Target::Local(name), Cond::always()))),
            Spot::Buffer(name) => name,
        };
        let Position { indices, inside } = dest.reindexer.apply().map_err(bad_index)?.ok_or_else(no_part)?;
        if !inside.is_always() && matches!(self.facts_of(&self.blocks).satisfiable(), Verdict::No(_)) {
            return Ok(None);
        }
        Ok(Some((Target::Element(name, indices), self.open_part(inside))))
    }
}

fn outside(dest: &Destination, inside: &Cond, verdict: Verdict) -> Diagnostic {
    let (Spot::Local(name) | Spot::Buffer(name)) = dest.spot;
    let text = format!("a truncation is not shown to keep every element of {name} that is computed: {inside}");
    let error = Diagnostic::error(Code::E0702, None, text);
    match verdict {
        Verdict::No(example) => error.note(format!("it does not for {example}")),
        _ => error,
    }
}
