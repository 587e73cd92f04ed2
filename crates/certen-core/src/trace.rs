//! How an element was computed: the reads and reductions of the reference evaluator, as a tree.
//!
//! The evaluator itself says what it does ([`Evaluator::trace`](crate::Evaluator::trace)), so a trace cannot tell another
//! story than the meaning. What is remembered is limited: named tensors are followed to a depth, of a reduction the first
//! terms are kept and the others counted.

use certen_syntax::Name;

use crate::ops::ReduceOp;

/// A step of a computation, its value, and the steps that led to it.
#[derive(Clone, PartialEq, Debug)]
pub struct Trace<V> {
    /// What was computed.
    pub step: TraceStep,
    /// What it came to.
    pub value: V,
    /// What was needed for it, in order. Empty for inputs, for what was computed before, and at the limit of depth.
    pub parts: Vec<Trace<V>>,
    /// How many more parts there were.
    pub left_out: u64,
}

/// What is computed by a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TraceStep {
    /// An element of a named tensor.
    Read(Name, Vec<i64>),
    /// A reduction over an index.
    Reduce {
        /// What combines.
        op: ReduceOp,
        /// The index.
        index: Name,
        /// Its first value.
        lo: i64,
        /// One past its last value.
        hi: i64,
    },
    /// The term of a reduction at a value of its index.
    Term(Name, i64),
    /// An iteration of so many steps.
    Iterate(i64),
}

/// How much of a computation is remembered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// How many named tensors are followed inside each other.
    pub depth: usize,
    /// How many terms of a reduction are kept.
    pub terms: usize,
    /// How many steps are kept altogether.
    pub steps: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { depth: 3, terms: 4, steps: 1000 }
    }
}

/// A trace in the making.
pub(crate) struct Log<V> {
    limits: Limits,
    open: Vec<OpenStep<V>>,
    /// How many steps have begun inside one that is not looked into.
    hidden: usize,
    reads: usize,
    kept: usize,
    done: Option<Trace<V>>,
}

struct OpenStep<V> {
    step: TraceStep,
    parts: Vec<Trace<V>>,
    left_out: u64,
    /// Whether the steps inside are kept.
    followed: bool,
}

impl<V: Clone> Log<V> {
    pub fn new(limits: Limits) -> Log<V> {
        Log { limits, open: Vec::new(), hidden: 0, reads: 0, kept: 0, done: None }
    }

    /// A step begins.
    pub fn begin(&mut self, step: impl FnOnce() -> TraceStep) {
        if self.hidden > 0 || self.open.last().is_some_and(|around| !around.followed) {
            self.hidden += 1;
            return;
        }
        let step = step();
        let full = self.kept >= self.limits.steps;
        if let Some(around) = self.open.last_mut() {
            let is_term = matches!(step, TraceStep::Term(..));
            if full || (is_term && around.parts.len() >= self.limits.terms) {
                around.left_out += 1;
                self.hidden += 1;
                return;
            }
        }
        self.kept += 1;
        let followed = match step {
            TraceStep::Read(..) => {
                self.reads += 1;
                self.reads <= self.limits.depth
            }
            TraceStep::Reduce { .. } | TraceStep::Term(..) => true,
            // Its states are computed whole: that is no story of one element.
            TraceStep::Iterate(_) => false,
        };
        self.open.push(OpenStep { step, parts: Vec::new(), left_out: 0, followed });
    }

    /// The step that began last ends with this value.
    pub fn end(&mut self, value: &V) {
        if self.hidden > 0 {
            self.hidden -= 1;
            return;
        }
        let Some(OpenStep { step, parts, left_out, .. }) = self.open.pop() else { return };
        if matches!(step, TraceStep::Read(..)) {
            self.reads -= 1;
        }
        let trace = Trace { step, value: value.clone(), parts, left_out };
        match self.open.last_mut() {
            Some(around) => around.parts.push(trace),
            None => self.done = Some(trace),
        }
    }

    /// The whole computation, if it has ended.
    pub fn finish(self) -> Option<Trace<V>> {
        self.done
    }
}
