//! Scopes of the Core that is being built, innermost last, and what is bound in each.
//!
//! A scope is a generation, a reduction, an iteration, or a part that is only reached under a condition. What a scope's
//! content needs but does not depend on its indices is bound in a scope further out; when a scope is closed, its
//! `let`s are put around its content. In the outermost scope, that of the program, they become bindings.

use certen_core::{Range, TermId};
use certen_index::{Cond, Ix, IxError};
use certen_syntax::Name;

use super::names::GivenName;

/// What a scope is made by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum What {
    /// Something that computes its content several times, for the values of an index.
    Loop(Name),
    /// A generator of a with-loop, whose indices are those of loops around it.
    Generator,
    /// A branch of `if`, or a guard.
    Branch,
}

/// A scope.
pub(super) struct Frame {
    pub(super) what: What,
    /// What is known inside, beyond what is known outside.
    pub(super) known: Vec<Cond>,
    /// A condition under which the content is needed at all. Where it does not hold, the content need not be safe.
    pub(super) reached: Cond,
    /// More of such conditions, one for each index of a generator. Outside the loop of its index a condition need
    /// not hold: that the range has something in it is enough there.
    pub(super) inside: Vec<Cond>,
    /// What is bound around the content.
    pub(super) lets: Vec<(Name, TermId)>,
    /// Names that end with the scope.
    pub(super) names: Vec<GivenName>,
}

impl Frame {
    /// The scope of the whole program.
    pub(super) fn program() -> Frame {
        Frame::new(What::Branch, Vec::new(), Cond::always())
    }

    /// An index over a range. `stated` says that the range is one of the user's: the content is only known to be safe
    /// if there is something in it. Ranges that arise from the shapes of operands are not.
    pub(super) fn counting(index: GivenName, range: &Range, stated: bool) -> Result<Frame, IxError> {
        let i = Ix::var(index.name);
        let known = vec![Cond::le(&range.lo, &i)?, Cond::lt(&i, &range.hi)?];
        let reached = if stated { Cond::lt(&range.lo, &range.hi)? } else { Cond::always() };
        let mut scope = Frame::new(What::Loop(index.name), known, reached);
        scope.names.push(index);
        Ok(scope)
    }

    /// Under a condition.
    pub(super) fn branch(cond: &Cond) -> Frame {
        Frame::new(What::Branch, vec![cond.clone()], cond.clone())
    }

    /// Under a condition that is not what makes the content safe.
    pub(super) fn part(cond: &Cond) -> Frame {
        Frame::new(What::Generator, vec![cond.clone()], Cond::always())
    }

    /// In a generator: the condition says that the indices are in it, `reached` that it has any.
    pub(super) fn generator(cond: &Cond, reached: Cond) -> Frame {
        let parts = |cond: &Cond| if let Cond::And(all) = cond { all.clone() } else { vec![cond.clone()] };
        Frame { inside: parts(cond), ..Frame::new(What::Generator, vec![cond.clone()], reached) }
    }

    fn new(what: What, known: Vec<Cond>, reached: Cond) -> Frame {
        Frame { what, known, reached, inside: Vec::new(), lets: Vec::new(), names: Vec::new() }
    }
}
