//! What the rules share: their premises, and what is said where one fails.

use std::sync::Arc;

use certen_index::{Cond, Ix, Verdict};
use certen_syntax::{Code, Diagnostic, Name, Rule, Span};

use super::{Checker, Judgement};
use crate::algebra::ast::{Expr, ExprId, Pair};
use crate::algebra::notation::Words;
use crate::algebra::premise::{Premise, red_rule};
use crate::algebra::typed::{Dim, Shape};

impl Checker<'_> {
    pub(super) fn words(&self) -> &'static Words {
        self.program.notation.words()
    }

    pub(super) fn undeclared(&self, premise: Premise, name: Name, span: Span) -> Diagnostic {
        let Words { declared, declare, .. } = self.words();
        let error = self.violation(premise, span, format!("`{name}` is not {declared}"));
        let error = error.label(format!("not {declared}"));
        match self.nearest(name) {
            Some(near) => error.help(format!("there is a tensor called `{near}`")),
            None => error.help(format!("declare it with `{declare} {name} : [..]`")),
        }
    }

    pub(super) fn shape(&self, id: ExprId) -> Judgement<Shape> {
        self.types[id.index()].clone().ok_or(None)
    }

    pub(super) fn violation(&self, premise: Premise, span: Span, text: String) -> Diagnostic {
        Diagnostic::error(premise.code(), span, text).rule(premise.rule(self.program.notation))
    }

    pub(super) fn fail<T>(
        &self,
        premise: Premise,
        id: ExprId,
        text: String,
        detail: impl FnOnce(Diagnostic) -> Diagnostic,
    ) -> Judgement<T> {
        let mut error = detail(self.violation(premise, self.program.span(id), text));
        if let (Premise::RedPosition, Expr::Red(op, ..)) = (premise, self.program.expr(id)) {
            error.rule = error.rule.map(|rule| Rule { name: red_rule(*op, self.program.notation), ..rule });
        }
        Err(Some(Box::new(error)))
    }

    /// A shape as a user would write it.
    pub(super) fn named(&self, shape: &Shape) -> String {
        self.program.notation.shape(shape.iter().map(|dim| &*dim.size))
    }

    pub(super) fn equal(&self, a: &Arc<Ix>, b: &Arc<Ix>) -> Verdict {
        if Arc::ptr_eq(a, b) { Verdict::Yes } else { self.facts.prove_equal(a, b) }
    }

    /// The first dimension in which two shapes are not shown to be equal; none in particular if their ranks differ.
    pub(super) fn mismatch(&self, a: &Shape, b: &Shape) -> Option<(Option<usize>, Verdict)> {
        if Arc::ptr_eq(a, b) {
            return None;
        }
        if a.len() != b.len() {
            return Some((None, Verdict::Unknown));
        }
        let pairs = a.iter().zip(b.iter()).enumerate();
        pairs.map(|(at, (x, y))| (Some(at), self.equal(&x.size, &y.size))).find(|(_, verdict)| *verdict != Verdict::Yes)
    }

    pub(super) fn same_shape(
        &self,
        premise: Premise,
        id: ExprId,
        (e0, left): (ExprId, &Shape),
        (e1, right): (ExprId, &Shape),
        what: &str,
    ) -> Judgement<()> {
        let Some((at, verdict)) = self.mismatch(left, right) else { return Ok(()) };
        let text = match (at, &verdict) {
            (Some(_), Verdict::Unknown) => {
                format!("{what} of shapes not shown to be equal: {} and {}", self.named(left), self.named(right))
            }
            _ => format!("{what} of different shapes: {} and {}", self.named(left), self.named(right)),
        };
        self.fail(premise, id, text, |error| {
            let error =
                error.also(self.program.span(e0), self.named(left)).also(self.program.span(e1), self.named(right));
            match at {
                Some(at) => self.explain_sizes(error, &left[at], &right[at], &verdict),
                None => error.note(format!("one has {} dimensions, the other {}", left.len(), right.len())),
            }
        })
    }

    /// Where two sizes come from, and integers for which they differ.
    pub(super) fn explain_sizes(&self, error: Diagnostic, n0: &Dim, n1: &Dim, verdict: &Verdict) -> Diagnostic {
        let error = error.also(n0.origin, format!("the size {} comes from here", n0.size));
        let error = if n1.origin == n0.origin {
            error
        } else {
            error.also(n1.origin, format!("the size {} comes from here", n1.size))
        };
        with_counterexample(error, verdict)
    }

    pub(super) fn position(&self, premise: Premise, id: ExprId, i: i64, e: ExprId, shape: &Shape) -> Judgement<usize> {
        match usize::try_from(i).ok().filter(|i| (1..=shape.len()).contains(i)) {
            Some(i) => Ok(i - 1),
            None => self.fail(premise, id, format!("there is no dimension {i}"), |error| {
                let error = error.also(self.program.span(e), format!("this has shape {}", self.named(shape)));
                match shape.len() {
                    0 => error.note("a scalar has no dimensions"),
                    rank => error.note(format!("dimensions are counted from 1 to {rank}")),
                }
            }),
        }
    }

    /// Pairs of positions that exist and are all different, the smaller one of each first.
    pub(super) fn pairs(
        &self,
        (exists, distinct): (Premise, Premise),
        id: ExprId,
        pairs: &[Pair],
        e: ExprId,
        shape: &Shape,
    ) -> Judgement<Vec<(usize, usize)>> {
        let mut taken = vec![false; shape.len()];
        let mut found = Vec::with_capacity(pairs.len());
        for &(i0, i1) in pairs {
            let first = self.position(exists, id, i0, e, shape)?;
            let second = self.position(exists, id, i1, e, shape)?;
            if first == second {
                let text = format!("both positions are {i0}");
                return self.fail(distinct, id, text, |error| error.note("they must be different"));
            }
            for (at, i) in [(first, i0), (second, i1)] {
                if std::mem::replace(&mut taken[at], true) {
                    let text = format!("dimension {i} stands in two pairs");
                    return self.fail(distinct, id, text, |error| error.note("they must be different"));
                }
            }
            found.push((first.min(second), first.max(second)));
        }
        Ok(found)
    }

    /// Nat: at least one.
    pub(super) fn natural(&self, premise: Premise, size: &Ix, span: Span, what: &str) -> Judgement<()> {
        let verdict = Cond::le(&Ix::from(1), size).map_or(Verdict::Unknown, |goal| self.facts.prove(&goal));
        if verdict == Verdict::Yes {
            return Ok(());
        }
        let text = match size.as_constant() {
            Some(value) => format!("{what} is {value}, but natural numbers start from 1"),
            None if verdict == Verdict::Unknown => format!("{what}, {size}, is not shown to be at least 1"),
            None => format!("{what}, {size}, can be less than 1"),
        };
        let error = with_counterexample(self.violation(premise, span, text), &verdict);
        Err(Some(Box::new(self.suggest_where(error, Cond::le(&Ix::from(1), size).ok()))))
    }

    /// Suggests a `where` clause if it is sure to help: the goal then follows, and some sizes satisfy it.
    pub(super) fn suggest_where(&self, error: Diagnostic, goal: Option<Cond>) -> Diagnostic {
        let Some(goal) = goal else { return error };
        let mut with = self.facts.clone();
        with.assume(goal.clone());
        match (with.prove(&goal), with.satisfiable()) {
            (Verdict::Yes, Verdict::Yes) => error.help(format!("`where {goal}` would make it safe")),
            _ => error,
        }
    }

    pub(super) fn sizes_declared(&self, ix: &Ix, id: ExprId) -> Judgement<()> {
        let mut names = Default::default();
        ix.collect_names(&mut names);
        match names.into_iter().find(|name| !self.size_spans.contains_key(name)) {
            Some(unknown) => Err(Some(Box::new(self.unknown_size(unknown, self.program.span(id))))),
            None => Ok(()),
        }
    }

    pub(super) fn unknown_size(&self, name: Name, span: Span) -> Diagnostic {
        let error = Diagnostic::error(Code::E0201, span, format!("the size `{name}` is not declared"));
        error.note(format!("a size is declared by standing in the shape of {}", self.words().declaration))
    }

    /// A declared name that was probably meant: one slip of the fingers away, or written in another case.
    pub(super) fn nearest(&self, name: Name) -> Option<Name> {
        // With many names the search is not worth its time, nor the guess the user's.
        if self.context.len() > 1000 {
            return None;
        }
        let close = |candidate: &&Name| {
            let (a, b) = (name.as_str(), candidate.as_str());
            a.eq_ignore_ascii_case(b) || (a.len() > 2 && strsim::osa_distance(a, b) == 1)
        };
        self.context.keys().filter(close).min().copied()
    }
}

pub(super) fn with_counterexample(error: Diagnostic, verdict: &Verdict) -> Diagnostic {
    match verdict {
        Verdict::No(counterexample) if !counterexample.0.is_empty() => {
            error.note(format!("for example {counterexample}"))
        }
        Verdict::Unknown => error.note("this could not be proved for all sizes"),
        _ => error,
    }
}
