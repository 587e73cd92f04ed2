//! Terms and conditions compared, and settled, by what the prover shows of their indices.

use certen_core::{Component, Term, TermId, Terms, TypeError};
use certen_index::{Cond, Facts, Ix, Verdict};

use crate::context::{Context, in_range};
use crate::names::with_each_part;

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
    let outline = |terms: &Terms, id: TermId| {
        let (mut ixs, mut conds, mut parts) = (Vec::new(), Vec::new(), Vec::new());
        let outline = terms.get(id).clone().map(|component| {
            match component {
                Component::Part(part) => parts.push(std::mem::replace(part, a)),
                Component::Ix(ix) => ixs.push(std::mem::replace(ix, Ix::from(0))),
                Component::Cond(cond) => conds.push(std::mem::replace(cond, Cond::always())),
                Component::Binder(_) => {}
            }
            Ok::<(), TypeError>(())
        })?;
        Ok::<_, TypeError>((outline, ixs, conds, parts))
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
    let new = with_own_settled(terms, id, context, &mut |_, _, _| {})?;
    let mut inside = (terms, context);
    with_each_part(
        &mut inside,
        new,
        |(terms, context)| (terms, context),
        |(terms, context), part| settled(terms, part, context),
    )
}

/// A term whose own index expressions are settled. `changed` gets what is known there, and each expression before and
/// after.
pub(crate) fn with_own_settled(
    terms: &mut Terms,
    id: TermId,
    context: &Context,
    changed: &mut dyn FnMut(&Facts, &Ix, &Ix),
) -> Result<TermId, TypeError> {
    let term = terms.get(id).clone();
    if !term.has_functions() {
        return Ok(id);
    }
    let facts = context.facts(terms);
    let mut inner = facts.clone();
    if let Term::Reduce(_, name, range, ..) = &term {
        in_range(*name, range).for_each(|cond| inner.assume(cond));
    }
    let term = term.map(|component| {
        match component {
            Component::Ix(ix) => {
                let new = ix.settled(&facts)?;
                if new != *ix {
                    changed(&facts, ix, &new);
                }
                *ix = new;
            }
            Component::Cond(cond) => *cond = cond.settled(&inner)?,
            Component::Binder(_) | Component::Part(_) => {}
        }
        Ok::<(), TypeError>(())
    })?;
    terms.add(term)
}
