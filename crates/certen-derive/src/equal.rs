//! Terms and conditions compared, and settled, by what the prover shows of their indices.

use certen_core::{Term, TermId, Terms, TypeError};
use certen_index::{Cond, Facts, Ix, Verdict};

use crate::context::{Context, in_range};
use crate::names::{each_cond, each_ix, mapped, part, with_part};

/// Whether each of two conditions follows from the other.
pub(crate) fn are_equivalent(facts: &Facts, a: &Cond, b: &Cond) -> bool {
    let follows = |from: &Cond, to: &Cond| {
        let mut facts = facts.clone();
        facts.assume(from.clone());
        facts.prove(to) == Verdict::Yes
    };
    follows(a, b) && follows(b, a)
}

/// Whether two terms in canonical form are equal up to what the prover shows of their indices.
pub(crate) fn is_equal(terms: &mut Terms, a: TermId, b: TermId, context: &mut Context) -> Result<bool, TypeError> {
    if a == b {
        return Ok(true);
    }
    let outline = |terms: &Terms, id: TermId| -> Result<_, TypeError> {
        let (mut ixs, mut conds) = (Vec::new(), Vec::new());
        let term = terms.get(id);
        let outline = mapped(
            term,
            &mut |_| Ok(a),
            &mut |ix| {
                ixs.push(ix.clone());
                Ok(Ix::from(0))
            },
            &mut |cond| {
                conds.push(cond.clone());
                Ok(Cond::always())
            },
            &mut |name| name,
        )?;
        Ok((outline, ixs, conds, term.parts()))
    };
    let (first, second) = (outline(terms, a)?, outline(terms, b)?);
    if first.0 != second.0 || first.1.len() != second.1.len() {
        return Ok(false);
    }
    if first.1 != second.1 || first.2 != second.2 {
        let facts = context.facts(terms);
        let mut pairs = first.1.iter().zip(&second.1);
        if !pairs.all(|(a, b)| a == b || facts.prove_equal(a, b) == Verdict::Yes) {
            return Ok(false);
        }
        let mut facts = facts;
        if let Term::Reduce(_, name, range, ..) = terms.get(a) {
            in_range(*name, range).for_each(|cond| facts.assume(cond));
        }
        if !first.2.iter().zip(&second.2).all(|(a, b)| a == b || are_equivalent(&facts, a, b)) {
            return Ok(false);
        }
    }
    for (at, (left, right)) in first.3.into_iter().zip(second.3).enumerate() {
        let mark = context.mark();
        context.enter(terms, a, at);
        let equal = is_equal(terms, left, right, context)?;
        context.reset(mark);
        if !equal {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A term whose quotients are settled where the context says what they are.
pub(crate) fn settled(terms: &mut Terms, id: TermId, context: &mut Context) -> Result<TermId, TypeError> {
    let mut new = id;
    let term = terms.get(id).clone();
    if has_functions(&term) {
        let facts = context.facts(terms);
        let mut inner = facts.clone();
        if let Term::Reduce(_, name, range, ..) = &term {
            in_range(*name, range).for_each(|cond| inner.assume(cond));
        }
        let term =
            mapped(&term, &mut Ok, &mut |ix| ix.settled(&facts), &mut |cond| cond.settled(&inner), &mut |name| name)?;
        new = terms.add(term)?;
    }
    let mut at = 0;
    while let Some(old) = part(terms, new, at) {
        let mark = context.mark();
        context.enter(terms, new, at);
        let inner = settled(terms, old, context);
        context.reset(mark);
        let inner = inner?;
        if inner != old {
            new = with_part(terms, new, at, inner)?;
        }
        at += 1;
    }
    Ok(new)
}

/// Whether an index expression of a term has a function in it.
pub(crate) fn has_functions(term: &Term) -> bool {
    let mut any = false;
    each_ix(term, &mut |ix| any |= ix.has_functions());
    each_cond(term, &mut |cond| any |= cond.has_functions());
    any
}
