//! `peel`: some iterations of a loop get a loop of their own.
//!
//! A range is cut at one place, or at two, and what stands inside each piece is simplified by what holds there: a
//! minimum in a bound, a condition that is always true. So the blocks that are full lose the minimum that `split` gave
//! them. A range can be cut anywhere, also outside itself: then a piece is empty.

use std::collections::HashSet;

use certen_core::Range;
use certen_index::{Cond, Facts, Ix, IxError, Verdict};
use certen_loops::{Site, Stmt, change, conjuncts, declared, declared_at_top, sites, statements, within};
use certen_syntax::{Code, Diagnostic, Name};

use super::{Example, Primitive};
use crate::edit::Edit;
use crate::nest::Nest;
use crate::place::{Loop, Place};
use crate::refusal::{Done, Refusal};

pub(crate) const PRIMITIVE: Primitive = Primitive {
    name: "peel",
    usage: "peel(loop, first, count), peel(loop, last, count) or peel(loop, tail)",
    about: "The first or the last `count` iterations of the loop `i` become a loop of their own, `i.head` or `i.tail`; \
            the loops inside it get the same ending. With `tail`, `i` is a loop over blocks, as `split` makes them: \
            the blocks that are full stay, and their bounds lose the minimum; the others become `i.tail`, or `i.head` if \
            they come first. A condition inside that holds in all iterations of a piece is left out there.",
    legal: "Always: the iterations are the same, in the same order.",
    peers: "Halide: TailStrategy and specialize; Exo: cut_loop; TVM: loop partition; OpenMP 6: split",
    example: Example {
        program: "loops scale\nsize n\nwhere n >= 0\ninput x : f64[n]\noutput y : f64[n]\nnest y\n\
                  for i in 0..n {\n    y[i] = 2.0 * x[i]\n}\n",
        steps: "split(i, 32); peel(i.o, tail)",
    },
    apply: |nest, args| {
        let place = nest.find(args.path("a loop")?)?;
        let (which, span) = args.word("`first`, `last` or `tail`")?;
        let range = nest.loop_at(&place)?.range;
        let rest = match which.as_str() {
            "first" | "last" => {
                let count = args.at_least(1, "the number of iterations")?;
                args.end()?;
                return match which.as_str() {
                    "first" => cut(nest, &place, range.lo.add(&Ix::from(count))?, Rest::Head),
                    _ => cut(nest, &place, range.hi.sub(&Ix::from(count))?, Rest::Tail),
                }
                .map(|_| ());
            }
            "tail" => args.end(),
            other => {
                let error = format!("`peel` needs `first`, `last` or `tail` here, not `{other}`");
                Err(Diagnostic::error(Code::E0801, span, error)
                    .help("`peel(i, first, 2)` takes the first two iterations, `peel(i.o, tail)` the last block")
                    .into())
            }
        };
        rest.and_then(|()| tail(nest, &place))
    },
};

/// Which piece of a loop is cut off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rest {
    /// The first one, `i.head`.
    Head,
    /// The last one, `i.tail`.
    Tail,
}

/// The pieces of a loop that are not shown to be empty; there is at least one.
#[derive(Debug)]
pub(crate) struct Pieces {
    /// The one that keeps its name.
    pub main: Option<Place>,
    /// The one that was cut off.
    pub rest: Option<Place>,
}

/// Cuts the range of a loop: what is below `at` is the first piece, the others the second.
pub(crate) fn cut(nest: &mut Nest, place: &Place, at: Ix, rest: Rest) -> Done<Pieces> {
    let Loop { index, range, mode, body } = nest.loop_at(place)?;
    let facts = nest.facts(place)?;
    let first = Range { lo: range.lo.clone(), hi: at.min_with(&range.hi)?.simplified(&facts)? };
    let second = Range { lo: at.max_with(&range.lo)?.simplified(&facts)?, hi: range.hi };
    let suffix = match rest {
        Rest::Head => "head",
        Rest::Tail => "tail",
    };
    let piece = nest.piece(index, suffix);
    let copied = nest.copy(&body, suffix, Edit::index(index, Ix::var(piece)))?;
    let pieces = match rest {
        Rest::Head => [(piece, first, copied), (index, second, body)],
        Rest::Tail => [(index, first, body), (piece, second, copied)],
    };
    let shown_empty: Vec<bool> = pieces.iter().map(|(_, range, _)| is_empty(&facts, range)).collect();
    let all = shown_empty.iter().all(|empty| *empty);
    let (mut found, mut stmts) = (Pieces { main: None, rest: None }, Vec::new());
    for ((name, range, body), empty) in pieces.into_iter().zip(shown_empty) {
        if empty && !(all && name == index) {
            continue;
        }
        let here = place.beside(place.at + stmts.len());
        *(if name == index { &mut found.main } else { &mut found.rest }) = Some(here);
        let mut inside = facts.clone();
        inside.assume(within(name, &range)?);
        let body = simplified(&body, &inside, name)?;
        stmts.push(Loop { index: name, range, mode, body }.into());
    }
    nest.replace(place, stmts)?;
    Ok(found)
}

fn is_empty(facts: &Facts, range: &Range) -> bool {
    Cond::le(&range.hi, &range.lo).is_ok_and(|goal| facts.prove(&goal) == Verdict::Yes)
}

/// A block under what is known of an index: without the parts of minima and maxima in its ranges that never decide, and
/// without conditions on the index that always hold, or never.
pub(crate) fn simplified(block: &[Stmt], facts: &Facts, index: Name) -> Result<Vec<Stmt>, IxError> {
    let mut out: Vec<Stmt> = Vec::with_capacity(block.len());
    for (at, stmt) in block.iter().enumerate() {
        let inside = |known: &Cond, block: &[Stmt]| {
            let mut inside = facts.clone();
            inside.assume(known.clone());
            simplified(block, &inside, index)
        };
        if let Stmt::If { cond, then, otherwise } = stmt {
            let opposite = cond.not()?;
            let mut names = Default::default();
            cond.collect_names(&mut names);
            let asked = cond.is_always() || cond.is_never() || names.contains(&index);
            let mut sides = [(cond, then), (&opposite, otherwise)].into_iter();
            let decided = sides.find(|(goal, _)| asked && facts.prove(goal) == Verdict::Yes);
            // What the side declares at the top is in scope of what follows then.
            if let Some((known, side)) = decided.filter(|(_, side)| no_clash(side, &block[at + 1..])) {
                out.extend(inside(known, side)?);
                continue;
            }
        }
        let mut stmt = stmt.clone();
        if let Stmt::For { range, .. } = &mut stmt {
            *range = Range { lo: range.lo.simplified(facts)?, hi: range.hi.simplified(facts)? };
        }
        stmt.map_blocks(|known, block| inside(&known?, &block))?;
        out.push(stmt);
    }
    Ok(out)
}

/// Whether the statements of a block can stand before others without hiding a name.
fn no_clash(block: &[Stmt], following: &[Stmt]) -> bool {
    let top: HashSet<Name> = declared_at_top(block).collect();
    top.is_empty() || declared(following).is_disjoint(&top)
}

/// Cuts off the blocks of a loop that are not full.
pub(crate) fn tail(nest: &mut Nest, place: &Place) -> Done<()> {
    let found = nest.loop_at(place)?;
    let mut cuts = Cuts { index: found.index, inner: declared(&found.body), found: Vec::new() };
    for site in sites(&found.body) {
        cuts.add(&site)?;
    }
    let of = |rest: Rest| cuts.found.iter().filter(move |(_, which)| *which == rest).map(|(at, _)| at);
    let constant = |stmt: &Stmt| matches!(stmt, Stmt::For { range, .. } if range.lo.as_constant().is_some() && range.hi.as_constant().is_some());
    if cuts.found.is_empty() && found.body.iter().any(constant) {
        // Blocks that divide the range: all of them are full.
        return Ok(());
    }
    if cuts.found.is_empty() {
        let i = found.index;
        let refusal = Refusal::cannot(format!("every block of the loop over {i} is full"));
        return Err(refusal
            .at(place)
            .note("no range and no condition inside it is other for the last blocks")
            .help(format!("`split` makes blocks; `peel({i}, last, 1)` takes the last iteration")));
    }
    let (mut last, mut first) = (None::<Ix>, None::<Ix>);
    for at in of(Rest::Tail) {
        last = Some(last.map_or(Ok(at.clone()), |last| last.min_with(at))?);
    }
    for at in of(Rest::Head) {
        first = Some(first.map_or(Ok(at.clone()), |first| first.max_with(at))?);
    }
    let facts = nest.facts(place)?;
    let mut main = Some(place.clone());
    if let Some(last) = last {
        main = cut(nest, place, last.simplified(&facts)?, Rest::Tail)?.main;
    }
    if let (Some(main), Some(first)) = (main, first) {
        cut(nest, &main, first.simplified(&facts)?, Rest::Head)?;
    }
    Ok(())
}

/// The most pieces of a loop.
const MOST_PIECES: usize = 8;

/// Cuts a loop, and those inside it, where conditions inside begin or end to hold. A condition that the prover cannot decide in
/// a piece stays there.
pub(crate) fn at_conditions(nest: &mut Nest, place: &Place) -> Done<()> {
    let mut used: Vec<Ix> = Vec::new();
    let mut pieces = vec![place.clone()];
    while pieces.len() < MOST_PIECES {
        let changes = pieces.iter().find_map(|piece| {
            let (at, rest) = change_inside(&nest.loop_at(piece).ok()?, &used)?;
            Some((piece.clone(), at, rest))
        });
        let Some((piece, at, rest)) = changes else { break };
        used.push(at.clone());
        let found = cut(nest, &piece, at, rest)?;
        if found.main.is_some() && found.rest.is_some() {
            pieces.push(place.beside(place.at + pieces.len()));
        }
    }
    for piece in pieces {
        for inner in (0..nest.loop_at(&piece)?.body.len()).rev().map(|at| piece.inside(at)) {
            if matches!(nest.stmt(&inner), Some(Stmt::For { .. })) {
                at_conditions(nest, &inner)?;
            }
        }
    }
    Ok(())
}

/// Where a condition inside a loop changes with its index, other than at these values, and which piece is the smaller one then.
fn change_inside(found: &Loop, used: &[Ix]) -> Option<(Ix, Rest)> {
    let inner: Vec<Name> = declared(&found.body).into_iter().collect();
    let conditions =
        statements(&found.body).filter_map(|stmt| if let Stmt::If { cond, .. } = stmt { Some(cond) } else { None });
    conditions.flat_map(conjuncts).find_map(|part| {
        let at = change(part, found.index, &inner).filter(|at| !used.contains(at))?;
        let Cond::Ge(e) = part else { return None };
        let begins = e.linear_in(found.index).is_none_or(|(step, _)| step > 0);
        Some((at, if begins { Rest::Head } else { Rest::Tail }))
    })
}

/// Where the blocks of a loop stop, or begin, to be full.
struct Cuts {
    index: Name,
    /// All that is declared inside.
    inner: HashSet<Name>,
    /// First values of the index from which on it is otherwise, and which piece is not full.
    found: Vec<(Ix, Rest)>,
}

impl Cuts {
    fn add(&mut self, site: &Site<'_>) -> Result<(), IxError> {
        match site.stmt {
            Stmt::For { range, .. } => {
                for bound in [&range.lo, &range.hi] {
                    self.extreme(false, &bound.smallest_of()?)?;
                    self.extreme(true, &bound.largest_of()?)?;
                }
                Ok(())
            }
            Stmt::If { cond, .. } => self.cond(cond, &site.loops().collect::<Vec<_>>()),
            _ => Ok(()),
        }
    }

    /// The index from which on `e` is negative, or not negative, if it is a multiple of the index and something that
    /// no loop inside changes: with whether the former.
    fn turn(&self, e: &Ix) -> Result<Option<(Ix, bool)>, IxError> {
        let mut names = Default::default();
        e.collect_names(&mut names);
        if names.iter().any(|name| self.inner.contains(name)) {
            return Ok(None);
        }
        Ok(match e.linear_in(self.index) {
            Some((factor @ ..=-1, rest)) if factor != i64::MIN => {
                Some((rest.floor_div(-factor)?.add(&Ix::from(1))?, true))
            }
            Some((factor @ 1.., rest)) => Some((rest.scale(-1)?.ceil_div(factor)?, false)),
            _ => None,
        })
    }

    /// A minimum is the part that does not change while the blocks are full.
    fn extreme(&mut self, max: bool, parts: &[Ix]) -> Result<(), IxError> {
        for (at, a) in parts.iter().enumerate() {
            for b in &parts[at + 1..] {
                let (fixed, other) = if a.mentions(self.index) { (b, a) } else { (a, b) };
                let full = if max { fixed.sub(other)? } else { other.sub(fixed)? };
                if let Some((turn, early)) = self.turn(&full)? {
                    let rest = if early || fixed.mentions(self.index) { Rest::Tail } else { Rest::Head };
                    self.found.push((turn, rest));
                }
            }
        }
        Ok(())
    }

    /// A condition holds in a whole block if it holds for the worst indices of the loops between.
    fn cond(&mut self, cond: &Cond, loops: &[(Name, &Range)]) -> Result<(), IxError> {
        match cond {
            Cond::And(all) => all.iter().try_for_each(|cond| self.cond(cond, loops)),
            Cond::Ge(e) => {
                let mut worst = e.clone();
                for (name, range) in loops.iter().rev() {
                    let value = match worst.linear_in(*name) {
                        Some((1.., _)) => range.lo.clone(),
                        Some((..=-1, _)) => range.hi.sub(&Ix::from(1))?,
                        _ => continue,
                    };
                    worst = worst.substitute(&|known| (known == *name).then(|| value.clone()))?;
                }
                let rest = |early: bool| if early { Rest::Tail } else { Rest::Head };
                self.found.extend(self.turn(&worst)?.map(|(at, early)| (at, rest(early))));
                Ok(())
            }
            Cond::Eq(_) | Cond::Or(_) => Ok(()),
        }
    }
}
