//! Loops in blocks and in another order: stripmine, interchange, what Sec. 4.1 makes of them (Eq. 20, 21, 27 to 29),
//! and skewing.

use std::rc::Rc;

use certen_index::{Cond, Facts, Ix, IxError};
use certen_syntax::schedule::{Arg, ArgKind};
use certen_syntax::{Code, Span};

use super::MOST_LEVELS;
use super::expression::{LoopExpression, too_complex};
use crate::ast::At;
use crate::nest::{Edit, Loop, Mode};
use crate::rules::Evaluated;

impl LoopExpression<'_> {
    /// Eq. 20. The outer bound is that of the last block: the paper's is one too few for inclusive bounds.
    pub(super) fn stripmine(&mut self, r: &At<i64>, v: &At<i64>) -> Evaluated<()> {
        let (chain, at) = self.position(r)?;
        self.at_least(v, 1, "the size of a block")?;
        if chain.len() >= MOST_LEVELS {
            let text = format!("there are at most {MOST_LEVELS} loops inside each other");
            return Err(self.malformed(Code::E0246, r.span, text));
        }
        let args = vec![self.path(&chain[at], r.span), Self::int(v.it, v.span)];
        let split = self.split(&chain, at, v.it)?;
        self.replace(&chain, at, vec![split.into()]);
        self.step("split", args);
        Ok(())
    }

    /// The two loops that a loop becomes.
    pub(super) fn split(&self, chain: &[Rc<Loop>], at: usize, v: i64) -> Evaluated<Loop> {
        let found = &chain[at];
        let facts = self.facts(&chain[..at])?;
        let (outer, inner) = (self.piece(found.index, "o"), self.piece(found.index, "i"));
        let compute = || -> Result<Loop, IxError> {
            let one = Ix::from(1);
            let blocks = found.hi.sub(&found.lo)?.ceil_div(v)?;
            let jump = Ix::var(outer).scale(v)?;
            let start = found.lo.add(&jump)?;
            let (lb, ub) = (found.lb.add(&jump)?, found.lb.add(&jump)?.add(&Ix::from(v))?.sub(&one)?);
            let edit = Edit::index(found.index, start.add(&Ix::var(inner))?, Ix::var(inner));
            let body = edit.items(&found.body)?;
            let left = found.hi.sub(&start)?;
            let mut inside = facts.clone();
            let i = Ix::var(outer);
            inside.assume(Cond::le(&Ix::from(0), &i)?.and(Cond::lt(&i, &blocks)?));
            let length = Ix::from(v).min_with(&left)?.simplified(&inside)?;
            let ub = if length.as_constant() == Some(v) { ub } else { ub.min_with(&found.ub)?.simplified(&inside)? };
            let (parallel, vector) = match found.mode {
                Mode::Vector(_) => (Mode::Serial, found.mode),
                mode => (mode, Mode::Serial),
            };
            let inner = Loop { index: inner, lo: Ix::from(0), hi: length, lb, ub, mode: vector, body };
            let last = blocks.sub(&one)?;
            let zero = Ix::from(0);
            Ok(Loop {
                index: outer,
                lo: zero.clone(),
                hi: blocks,
                lb: zero,
                ub: last,
                mode: parallel,
                body: vec![inner.into()],
            })
        };
        compute().map_err(too_complex(self.span))
    }

    /// Refuses an order of the perfect part in which a bound is used outside the loop that gives it its value.
    fn in_scope(&self, order: &[Rc<Loop>], span: Span) -> Evaluated<()> {
        for (at, found) in order.iter().enumerate() {
            let bounds = [&found.lb, &found.ub, &found.lo, &found.hi];
            let escaped = order[at..].iter().find(|inner| bounds.iter().any(|bound| bound.mentions(inner.index)));
            if let Some(inner) = escaped {
                let message =
                    format!("the bounds of `{}` depend on `{}`, which would stand inside it", found.index, inner.index);
                let error = self.malformed(Code::E0247, span, message);
                return Err(Box::new(error.label(format!("`{}` runs over {}", found.index, found.shown()))));
            }
        }
        Ok(())
    }

    /// Two neighbours that change places, where the bounds of the inner one depend on the outer one because it was
    /// skewed: the same pairs of values, the new outer loop first.
    fn turned(&self, chain: &[Rc<Loop>], at: usize) -> Evaluated<Option<[Loop; 2]>> {
        let (outer, inner) = (&chain[at], &chain[at + 1]);
        let facts = self.facts(&chain[..at])?;
        let compute = || -> Result<Option<[Loop; 2]>, IxError> {
            let one = Ix::from(1);
            // A loop inside a block counts from the beginning of the block, so its values say nothing here.
            let counts = |found: &Loop| Ok(found.lb == found.lo && found.ub.add(&one)? == found.hi);
            let depends = inner.lo.mentions(outer.index) || inner.hi.mentions(outer.index);
            if !depends || !counts(outer)? || !counts(inner)? {
                return Ok(None);
            }
            let Some([(j_lo, j_hi), (i_lo, i_hi)]) = turned(&facts, outer, inner)? else { return Ok(None) };
            let with = |found: &Loop, lo: Ix, hi: Ix| -> Result<Loop, IxError> {
                Ok(Loop { lb: lo.clone(), ub: hi.sub(&one)?, lo, hi, ..found.clone() })
            };
            Ok(Some([with(inner, j_lo, j_hi)?, with(outer, i_lo, i_hi)?]))
        };
        compute().map_err(too_complex(self.span))
    }

    /// Puts the loops of the perfect part in another order.
    fn ordered(&mut self, order: &[Rc<Loop>]) {
        let chain = self.chain();
        let Some(innermost) = chain.last() else { return };
        let mut body = innermost.body.clone();
        for found in order.iter().rev() {
            body = vec![Loop { body, ..(**found).clone() }.into()];
        }
        self.replace(&chain[..1], 0, body);
    }

    /// Eq. 21.
    pub(super) fn interchange(&mut self, r1: &At<i64>, r2: &At<i64>) -> Evaluated<()> {
        let (_, one) = self.position(r1)?;
        let (chain, two) = self.position(r2)?;
        if one >= two {
            let error = self.malformed(Code::E0246, r2.span, format!("loop {} is not inside loop {}", r2.it, r1.it));
            return Err(Box::new(match one == two {
                true => *error,
                false => error.help(format!("write the outer one first: `interchange(…, {}, {})`", r2.it, r1.it)),
            }));
        }
        let mut order = chain.clone();
        order.swap(one, two);
        let turned = if two == one + 1 { self.turned(&chain, one)? } else { None };
        if let Some([outer, inner]) = turned {
            (order[one], order[two]) = (Rc::new(outer), Rc::new(inner));
        }
        self.in_scope(&order, self.span)?;
        let args = vec![self.path(&chain[one], r1.span), self.path(&chain[two], r2.span)];
        self.ordered(&order);
        self.step("interchange", args);
        Ok(())
    }

    /// Eq. 28: the loop at a position moves through the next ones, towards the innermost.
    pub(super) fn interchange_n(&mut self, r: &At<i64>, n: &At<i64>) -> Evaluated<()> {
        let (chain, at) = self.position(r)?;
        self.at_least(n, 0, "a number of loops")?;
        let count = usize::try_from(n.it).unwrap_or(usize::MAX);
        if count >= chain.len() - at {
            let message = match chain.len() - at - 1 {
                0 => format!("no loop stands inside loop {}", r.it),
                1 => format!("only one loop stands inside loop {}", r.it),
                several => format!("only {several} loops stand inside loop {}", r.it),
            };
            return Err(self.malformed(Code::E0246, n.span, message));
        }
        if count == 0 {
            return Ok(());
        }
        let mut order = chain.clone();
        order[at..=at + count].rotate_left(1);
        self.in_scope(&order, self.span)?;
        let list = order[at..=at + count].iter().map(|found| self.path(found, r.span)).collect();
        self.ordered(&order);
        self.step("reorder", vec![Arg { kind: ArgKind::List(list), span: r.span }]);
        Ok(())
    }

    /// Eq. 27: the first n loops are stripmined.
    pub(super) fn stripmine_n(&mut self, n: &At<i64>, v: &At<i64>) -> Evaluated<()> {
        self.at_least(n, 1, "the number of loops")?;
        self.position(n)?;
        for k in 0..n.it {
            self.stripmine(&At { it: 2 * k + 1, span: n.span }, v)?;
        }
        Ok(())
    }

    /// Eq. 29: all loops are stripmined, and the blocks stand outside.
    pub(super) fn tile(&mut self, v: &At<i64>) -> Evaluated<()> {
        self.at_least(v, 1, "the size of a block")?;
        let chain = self.chain();
        let depth = i64::try_from(chain.len()).unwrap_or(0);
        self.position(&At { it: depth.max(1), span: self.span })?;
        let list = |kinds: Vec<Arg>| Arg { kind: ArgKind::List(kinds), span: v.span };
        let loops = list(chain.iter().map(|found| self.path(found, v.span)).collect());
        let sizes = list(chain.iter().map(|_| Self::int(v.it, v.span)).collect());
        let by_hand = std::mem::take(&mut self.steps);
        self.stripmine_n(&At { it: depth, span: v.span }, v)?;
        for k in 1..=depth {
            let at = At { it: k + 1, span: v.span };
            self.interchange_n(&at, &At { it: 2 * depth - 1 - k, span: v.span })?;
        }
        self.steps = by_hand;
        self.step("tile", vec![loops, sizes]);
        Ok(())
    }

    /// The index of the inner loop runs ahead of itself by a multiple of the outer one.
    pub(super) fn skew(&mut self, r1: &At<i64>, r2: &At<i64>, f: &At<i64>) -> Evaluated<()> {
        let (_, one) = self.position(r1)?;
        let (chain, two) = self.position(r2)?;
        if one >= two {
            let text = format!("loop {} is not inside loop {}", r2.it, r1.it);
            return Err(self.malformed(Code::E0246, r2.span, text));
        }
        if f.it == 0 {
            return Err(self.malformed(Code::E0246, f.span, "a factor of 0 changes nothing"));
        }
        let (outer, inner) = (&chain[one], &chain[two]);
        let compute = || -> Result<Loop, IxError> {
            let ahead = Ix::var(outer.index).scale(f.it)?;
            let back = Ix::var(inner.index).sub(&ahead)?;
            let edit = Edit::index(inner.index, back.clone(), back);
            Ok(Loop {
                lo: inner.lo.add(&ahead)?,
                hi: inner.hi.add(&ahead)?,
                lb: inner.lb.add(&ahead)?,
                ub: inner.ub.add(&ahead)?,
                body: edit.items(&inner.body)?,
                ..(**inner).clone()
            })
        };
        let skewed = compute().map_err(too_complex(self.span))?;
        let args = vec![self.path(outer, r1.span), self.path(inner, r2.span), Self::int(f.it, f.span)];
        self.replace(&chain, two, vec![skewed.into()]);
        self.step("skew", args);
        Ok(())
    }
}

/// The ranges of two loops after they have changed places, the new outer one first. None if the inner range depends on
/// the outer index in another way than linearly.
fn turned(facts: &Facts, outer: &Loop, inner: &Loop) -> Result<Option<[(Ix, Ix); 2]>, IxError> {
    let (i, j, one) = (outer.index, Ix::var(inner.index), Ix::from(1));
    let (first, last) = (&outer.lo, &outer.hi.sub(&one)?);
    let (mut i_lo, mut i_hi) = (outer.lo.clone(), outer.hi.clone());
    let (mut j_lo, mut j_hi): (Option<Ix>, Option<Ix>) = (None, None);
    let less =
        |so_far: Option<Ix>, part: Ix| so_far.map_or(Ok(part.clone()), |so_far| so_far.min_with(&part)).map(Some);
    let more =
        |so_far: Option<Ix>, part: Ix| so_far.map_or(Ok(part.clone()), |so_far| so_far.max_with(&part)).map(Some);
    for part in inner.hi.smallest_of()? {
        let limit = match part.linear_in(i) {
            _ if !part.mentions(i) => part,
            // j < c*i + rest
            Some((c, rest)) if c > 0 => {
                i_lo = i_lo.max_with(&j.sub(&rest)?.floor_div(c)?.add(&one)?)?;
                rest.add(&last.scale(c)?)?
            }
            Some((c, rest)) => {
                i_hi = i_hi.min_with(&rest.sub(&j)?.ceil_div(c.checked_neg().ok_or(IxError::Overflow)?)?)?;
                rest.add(&first.scale(c)?)?
            }
            None => return Ok(None),
        };
        j_hi = less(j_hi, limit)?;
    }
    for part in inner.lo.largest_of()? {
        let limit = match part.linear_in(i) {
            _ if !part.mentions(i) => part,
            // c*i + rest <= j
            Some((c, rest)) if c > 0 => {
                i_hi = i_hi.min_with(&j.sub(&rest)?.floor_div(c)?.add(&one)?)?;
                rest.add(&first.scale(c)?)?
            }
            Some((c, rest)) => {
                i_lo = i_lo.max_with(&rest.sub(&j)?.ceil_div(c.checked_neg().ok_or(IxError::Overflow)?)?)?;
                rest.add(&last.scale(c)?)?
            }
            None => return Ok(None),
        };
        j_lo = more(j_lo, limit)?;
    }
    let (Some(j_lo), Some(j_hi)) = (j_lo, j_hi) else { return Ok(None) };
    let (j_lo, j_hi) = (j_lo.simplified(facts)?, j_hi.simplified(facts)?);
    let mut inside = facts.clone();
    inside.assume(Cond::le(&j_lo, &j)?.and(Cond::lt(&j, &j_hi)?));
    Ok(Some([(j_lo, j_hi), (i_lo.simplified(&inside)?, i_hi.simplified(&inside)?)]))
}
