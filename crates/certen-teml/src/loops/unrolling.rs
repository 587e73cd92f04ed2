//! Iterations one after the other or side by side (Eq. 24, 25 and what Sec. 4.1 speaks of), and blocks that are not
//! full.

use std::rc::Rc;

use certen_index::{Cond, Facts, Ix, IxError, Verdict};
use certen_syntax::schedule::{Arg, ArgKind, Path};
use certen_syntax::{Code, Name, Span};
use rustc_hash::FxHashSet;

use super::MOST_STATEMENTS;
use super::expression::{LoopExpression, too_complex};
use crate::ast::At;
use crate::nest::{Edit, Guard, Item, Loop, copy, loop_names, only_loop, simplified, statements};
use crate::rules::Evaluated;

impl LoopExpression<'_> {
    /// The number of iterations, or their largest number.
    fn trips(&self, found: &Loop, span: Span) -> Evaluated<i64> {
        let compute = || -> Result<Option<i64>, IxError> {
            let trips = found.hi.sub(&found.lo)?.smallest_of()?;
            Ok(trips.iter().filter_map(Ix::as_constant).min().map(|most| most.max(0)))
        };
        match compute().map_err(too_complex(self.span))? {
            Some(trips) => Ok(trips),
            None => {
                let trips = found.hi.sub(&found.lo).map_err(too_complex(self.span))?;
                let message = format!("the number of iterations of `{}` is not a number: {trips}", found.index);
                let error = self.malformed(Code::E0247, span, message);
                Err(Box::new(error.help("`unroll(l, r, 4)` makes a loop over four iterations at a time")))
            }
        }
    }

    fn room(&self, found: &Loop, count: i64, span: Span) -> Evaluated<()> {
        let size = statements(&found.body);
        let all = usize::try_from(count).ok().and_then(|count| count.checked_mul(size));
        if all.is_none_or(|all| all > MOST_STATEMENTS) {
            let message =
                format!("{count} copies are too many: a nest has at most {MOST_STATEMENTS} statements and loops");
            return Err(self.malformed(Code::E0247, span, message));
        }
        Ok(())
    }

    /// The iterations of a loop, one after the other, with what is known around it.
    fn iterations(&self, found: &Loop, facts: &Facts, span: Span) -> Evaluated<Vec<Item>> {
        let trips = self.trips(found, span)?;
        self.room(found, trips, span)?;
        let mut names = self.taken();
        let compute = |names: &mut FxHashSet<Name>| -> Result<Vec<Item>, IxError> {
            let mut out = Vec::new();
            for number in 0..trips {
                let at = found.lo.add(&Ix::from(number))?;
                let mut runs = Cond::always();
                for part in found.hi.smallest_of()? {
                    let below = Cond::lt(&at, &part)?;
                    if facts.prove(&below) != Verdict::Yes {
                        runs = runs.and(below);
                    }
                }
                let edit = Edit::index(found.index, at, found.lb.add(&Ix::from(number))?);
                let copied = self.copied(&found.body, &format!("u{number}"), edit, names)?;
                let copied = simplified(&copied, facts, found.index)?;
                match runs.is_always() {
                    true => out.extend(copied),
                    false => out.push(Item::Guard(Rc::new(Guard { cond: runs, body: copied }))),
                }
            }
            Ok(out)
        };
        compute(&mut names).map_err(too_complex(self.span))
    }

    fn copied(
        &self,
        items: &[Item],
        suffix: &str,
        edit: Edit,
        names: &mut FxHashSet<Name>,
    ) -> Result<Vec<Item>, IxError> {
        let mut taken = |name: Name| {
            let taken = names.contains(&name) || (self.context.taken)(name) || self.context.sizes.has(name);
            if !taken {
                names.insert(name);
            }
            taken
        };
        copy(items, suffix, edit, &mut taken)
    }

    /// Eq. 24, 25.
    pub(super) fn unroll(&mut self, r: &At<i64>) -> Evaluated<()> {
        let (chain, at) = self.position(r)?;
        let facts = self.facts(&chain[..at])?;
        let args = vec![self.path(&chain[at], r.span)];
        let with = self.iterations(&chain[at], &facts, r.span)?;
        self.replace(&chain, at, with);
        self.step("unroll", args);
        Ok(())
    }

    /// Blocks of a number of iterations that are full, whose loop becomes its iterations, and the others.
    pub(super) fn unroll_in_part(&mut self, r: &At<i64>, f: &At<i64>, jam: bool) -> Evaluated<()> {
        let (chain, at) = self.position(r)?;
        self.at_least(f, 1, "a factor")?;
        self.room(&chain[at], f.it, f.span)?;
        let name = if jam { "unroll_and_jam" } else { "unroll" };
        let args = vec![self.path(&chain[at], r.span), Self::int(f.it, f.span)];
        let facts = self.facts(&chain[..at])?;
        let split = self.split(&chain, at, f.it)?;
        let cut =
            chain[at].hi.sub(&chain[at].lo).and_then(|trips| trips.floor_div(f.it)).map_err(too_complex(self.span))?;
        // The names of the two loops are taken from here on.
        self.replace(&chain, at, vec![split.clone().into()]);
        let Pieces { mut all, main } = self.cut(&split, &facts, cut)?;
        if let Some(main) = main
            && let Item::Loop(outer) = all[main].clone()
            && let Some(inner) = only_loop(&outer.body)
        {
            self.replace(&chain, at, all.clone());
            let mut inside = facts.clone();
            inside.assume(outer.within().map_err(too_complex(self.span))?);
            let body = match jam {
                false => self.iterations(inner, &inside, r.span)?,
                true => {
                    let copies = (0..f.it).map(|number| {
                        let value = inner.lb.add(&Ix::from(number))?;
                        Ok(Edit::index(inner.index, Ix::from(number), value))
                    });
                    let copies: Result<Vec<Edit>, IxError> = copies.collect();
                    let copies = copies.map_err(too_complex(self.span))?;
                    let mut names = self.taken();
                    let body = self.jammed(&inner.body, inner.index, &copies, &mut names);
                    let body = body.map_err(too_complex(self.span))?;
                    simplified(&body, &inside, outer.index).map_err(too_complex(self.span))?
                }
            };
            all[main] = Loop { body, ..(*outer).clone() }.into();
        }
        self.replace(&chain, at, all);
        self.step(name, args);
        Ok(())
    }

    /// Copies side by side: loops that do not depend on the index stay one.
    fn jammed(
        &self,
        items: &[Item],
        index: Name,
        copies: &[Edit],
        names: &mut FxHashSet<Name>,
    ) -> Result<Vec<Item>, IxError> {
        let mut out = Vec::new();
        for item in items {
            match item {
                Item::Label(_) => out.push(item.clone()),
                Item::Leaf(_) => {
                    for copy in copies {
                        out.push(copy.item(item)?);
                    }
                }
                Item::Loop(found) if !(found.lo.mentions(index) || found.hi.mentions(index)) => {
                    let body = self.jammed(&found.body, index, copies, names)?;
                    out.push(Loop { body, ..(**found).clone() }.into());
                }
                Item::Guard(guard) if !mentions(&guard.cond, index) => {
                    let body = self.jammed(&guard.body, index, copies, names)?;
                    out.push(Item::Guard(Rc::new(Guard { cond: guard.cond.clone(), body })));
                }
                Item::Loop(_) | Item::Guard(_) => {
                    for (number, copy) in copies.iter().enumerate() {
                        out.extend(self.copied(
                            std::slice::from_ref(item),
                            &format!("u{number}"),
                            copy.clone(),
                            names,
                        )?);
                    }
                }
            }
        }
        Ok(out)
    }

    /// Cuts the range of a loop: what is not below `at` becomes a loop of its own, `.tail`.
    fn cut(&self, found: &Loop, facts: &Facts, at: Ix) -> Evaluated<Pieces> {
        let tail = self.piece(found.index, "tail");
        let mut names = self.taken();
        let compute = |names: &mut FxHashSet<Name>| -> Result<Pieces, IxError> {
            let first = at.min_with(&found.hi)?.simplified(facts)?;
            let second = at.max_with(&found.lo)?.simplified(facts)?;
            let edit = Edit::index(found.index, Ix::var(tail), Ix::var(tail));
            let copied = self.copied(&found.body, "tail", edit, names)?;
            let shift = found.lb.sub(&found.lo)?;
            let one = Ix::from(1);
            let main = Loop { hi: first.clone(), ub: first.add(&shift)?.sub(&one)?, ..found.clone() };
            let rest = Loop { index: tail, lo: second.clone(), lb: second.add(&shift)?, body: copied, ..found.clone() };
            let pieces = [main, rest];
            let empty =
                |piece: &Loop| Cond::le(&piece.hi, &piece.lo).is_ok_and(|goal| facts.prove(&goal) == Verdict::Yes);
            let is_empty = [empty(&pieces[0]), empty(&pieces[1])];
            let mut found = Pieces { all: Vec::new(), main: None };
            for (which, mut piece) in pieces.into_iter().enumerate() {
                if is_empty[which] && !(is_empty == [true, true] && which == 0) {
                    continue;
                }
                let mut inside = facts.clone();
                inside.assume(piece.within()?);
                piece.body = simplified(&piece.body, &inside, piece.index)?;
                if which == 0 {
                    found.main = Some(0);
                }
                found.all.push(piece.into());
            }
            Ok(found)
        };
        compute(&mut names).map_err(too_complex(self.span))
    }

    /// The blocks that are not full become a loop of their own.
    pub(super) fn peel(&mut self, r: &At<i64>) -> Evaluated<()> {
        let (chain, at) = self.position(r)?;
        let found = &chain[at];
        let facts = self.facts(&chain[..at])?;
        let mut turns =
            Turns { index: found.index, inner: loop_names(&found.body), conditional: false, found: Vec::new() };
        turns.items(&found.body).map_err(too_complex(self.span))?;
        if turns.conditional {
            let message = format!("some statements inside `{}` run only in some of its iterations", found.index);
            let error = self.malformed(Code::E0246, r.span, message);
            return Err(Box::new(error.help("cut the last block off before the loop inside it is unrolled")));
        }
        let constant = |item: &Item| matches!(item, Item::Loop(inner) if inner.lo.as_constant().is_some() && inner.hi.as_constant().is_some());
        if turns.found.is_empty() && !found.body.iter().any(constant) {
            let message = format!("every block of the loop `{}` is full", found.index);
            let error = self.malformed(Code::E0247, r.span, message);
            return Err(Box::new(
                error.help("`stripmine` makes blocks; `peel` cuts off those at the end that are smaller"),
            ));
        }
        let args = |this: &Self| {
            let word = Path { parts: vec![Name::new("tail")], nth: None };
            vec![this.path(found, r.span), Arg { kind: ArgKind::Path(word), span: r.span }]
        };
        let args = args(self);
        let last = turns.found.into_iter().map(Ok).reduce(|one, two| one?.min_with(&two?));
        if let Some(last) = last {
            let last: Result<Ix, IxError> = last.and_then(|last| last.simplified(&facts));
            let pieces = self.cut(found, &facts, last.map_err(too_complex(self.span))?)?;
            self.replace(&chain, at, pieces.all);
        }
        self.step("peel", args);
        Ok(())
    }
}

/// What a loop is cut into.
struct Pieces {
    all: Vec<Item>,
    /// Where the piece is that keeps its name.
    main: Option<usize>,
}

/// From which values of an index on the blocks inside its loop are not full.
struct Turns {
    index: Name,
    inner: FxHashSet<Name>,
    /// Whether there are conditions.
    conditional: bool,
    found: Vec<Ix>,
}

impl Turns {
    fn items(&mut self, items: &[Item]) -> Result<(), IxError> {
        for item in items {
            match item {
                Item::Loop(found) => {
                    for bound in [&found.lo, &found.hi] {
                        self.parts(&bound.smallest_of()?)?;
                    }
                    self.items(&found.body)?;
                }
                Item::Guard(_) => self.conditional = true,
                Item::Leaf(_) | Item::Label(_) => {}
            }
        }
        Ok(())
    }

    fn parts(&mut self, parts: &[Ix]) -> Result<(), IxError> {
        for (at, a) in parts.iter().enumerate() {
            for b in &parts[at + 1..] {
                let (fixed, other) = if a.mentions(self.index) { (b, a) } else { (a, b) };
                let full = other.sub(fixed)?;
                let names = crate::ranges::names(&full);
                if names.iter().any(|name| self.inner.contains(name)) {
                    continue;
                }
                if let Some((factor @ ..=-1, rest)) = full.linear_in(self.index) {
                    let factor = factor.checked_neg().ok_or(IxError::Overflow)?;
                    self.found.push(rest.floor_div(factor)?.add(&Ix::from(1))?);
                }
            }
        }
        Ok(())
    }
}

fn mentions(cond: &Cond, index: Name) -> bool {
    let mut names = Default::default();
    cond.collect_names(&mut names);
    names.contains(&index)
}
