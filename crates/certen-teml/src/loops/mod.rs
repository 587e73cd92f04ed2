//! Loop expressions: E_l of Fig. 9, and those of Sec. 4.1 and beyond, which are made of them.
//!
//! Each takes a nest and gives another one. Its pattern must match the tree: positions count the loops of the perfect
//! part from 1, outermost first. Beside the tree, a nest carries the steps of `certen-schedule` that make it of the
//! nests of `build`. `parallelize` and `vectorize` change no tree (Sec. 3.3.3); their steps come last.
//!
//! Any size is allowed: the loop inside a block ends at the smaller of the block's end and the loop's own. A nest in
//! which a bound is used outside the loop that gives it its value is malformed, and so is unrolling a number of
//! iterations that depends on sizes.

mod expression;
mod fusion;
mod order;
mod unrolling;

use std::rc::Rc;

use certen_core::ElemType;
use certen_index::Ix;
use certen_syntax::schedule::{Arg, ArgKind, Step};
use certen_syntax::{Code, Diagnostic, Name, Span};

use self::expression::{LoopExpression, path_of, step, too_complex};
use crate::ast::{LoopExpr, LoopOp};
use crate::nest::{Item, Leaf, Loop, Mode, each_loop, statements};
use crate::ranges::Sizes;
use crate::rules::{Evaluated, malformed};

/// Loops inside each other.
const MOST_LEVELS: usize = 100;
/// Statements that a nest may have; `certen-schedule` makes no more.
const MOST_STATEMENTS: usize = 4096;
/// The largest number in a step.
const MOST: i64 = 1 << 31;

/// An element of L, and how it is made.
#[derive(Clone, Debug)]
pub(crate) struct Nest {
    /// What stands at the top: one loop, or the parts of ⟨•, [..]⟩.
    pub items: Vec<Item>,
    /// The statements that are built, in order.
    pub assignments: Rc<Vec<usize>>,
    /// The steps that make it, by the number of the last one.
    steps: Option<usize>,
}

/// A step, after others.
struct Made {
    before: [Option<usize>; 2],
    step: Option<Step>,
}

/// The steps of all nests.
#[derive(Default)]
pub(crate) struct Loops {
    made: Vec<Made>,
}

/// What loop expressions need to know.
pub(crate) struct Context<'a> {
    pub sizes: &'a Sizes,
    /// Whether a name is that of a tensor or a statement.
    pub taken: &'a dyn Fn(Name) -> bool,
    /// What a statement is called in the tree of its nest.
    pub leaf: &'a dyn Fn(&Leaf) -> String,
}

impl Loops {
    /// Eq. 19: the perfect nest over the iterators of a statement.
    pub(crate) fn build(&self, assignment: usize, id: Name, iterators: &[(Name, Ix)], span: Span) -> Evaluated<Nest> {
        if iterators.len() > MOST_LEVELS {
            let message =
                format!("this nest would have {} loops inside each other; at most {MOST_LEVELS}", iterators.len());
            return Err(malformed(Code::E0246, 19, span, message));
        }
        let at = iterators.iter().map(|(iter, _)| (*iter, Ix::var(*iter))).collect();
        let mut body = vec![Item::Leaf(Rc::new(Leaf { assignment, at }))];
        for (iter, extent) in iterators.iter().rev() {
            let ub = extent.sub(&Ix::from(1)).map_err(too_complex(span))?;
            let zero = Ix::from(0);
            let found =
                Loop { index: *iter, lo: zero.clone(), hi: extent.clone(), lb: zero, ub, mode: Mode::Serial, body };
            body = vec![found.into()];
        }
        body.insert(0, Item::Label(id));
        Ok(Nest { items: body, assignments: Rc::new(vec![assignment]), steps: None })
    }

    /// E_l of an operation on nests.
    pub(crate) fn evaluate(
        &mut self,
        context: &Context<'_>,
        expr: &LoopExpr,
        nests: Vec<Nest>,
        span: Span,
    ) -> Evaluated<Nest> {
        let mut nests = nests.into_iter();
        let Some(nest) = nests.next() else {
            return Err(Box::new(Diagnostic::error(Code::E0246, span, "there is no nest to work on")));
        };
        let numbers = &expr.numbers;
        if let Some(number) = numbers.iter().find(|number| number.it.abs() > MOST) {
            let message = format!("numbers in loop expressions go up to {MOST}");
            return Err(Box::new(Diagnostic::error(Code::E0246, number.span, message)));
        }
        let by = match expr.op.it {
            LoopOp::Build => 19,
            LoopOp::Stripmine => 20,
            LoopOp::Interchange => 21,
            LoopOp::FuseOuter => 22,
            LoopOp::FuseInner => 23,
            LoopOp::Unroll | LoopOp::UnrollAndJam => 25,
            LoopOp::StripmineN => 27,
            LoopOp::InterchangeN => 28,
            LoopOp::Tile => 29,
            LoopOp::Parallelize | LoopOp::Vectorize | LoopOp::Skew | LoopOp::Peel => 0,
        };
        let mut before = [nest.steps, None];
        let mut this = LoopExpression { context, by, span, nest, steps: Vec::new() };
        match (expr.op.it, numbers.as_slice()) {
            (LoopOp::Stripmine, [r, v]) => this.stripmine(r, v)?,
            (LoopOp::Interchange, [r1, r2]) => this.interchange(r1, r2)?,
            (LoopOp::FuseOuter, [r]) => {
                let Some(other) = nests.next() else { return Ok(this.nest) };
                before[1] = other.steps;
                this.fuse_outer(other, r)?;
            }
            (LoopOp::FuseInner, [r]) => this.fuse_inner(r)?,
            (LoopOp::Unroll, [r]) => this.unroll(r)?,
            (LoopOp::Unroll, [r, f]) => this.unroll_in_part(r, f, false)?,
            (LoopOp::UnrollAndJam, [r, f]) => this.unroll_in_part(r, f, true)?,
            (LoopOp::StripmineN, [n, v]) => this.stripmine_n(n, v)?,
            (LoopOp::InterchangeN, [r, n]) => this.interchange_n(r, n)?,
            (LoopOp::Tile, [v]) => this.tile(v)?,
            (LoopOp::Parallelize, [r]) => this.mode(r, Mode::Parallel)?,
            (LoopOp::Vectorize, [r]) => this.mode(r, Mode::Vector(None))?,
            (LoopOp::Vectorize, [r, width]) => {
                this.at_least(width, 1, "the number of lanes")?;
                this.mode(r, Mode::Vector(Some(width.it)))?;
            }
            (LoopOp::Skew, [r1, r2, f]) => this.skew(r1, r2, f)?,
            (LoopOp::Peel, [r]) => this.peel(r)?,
            _ => return Err(Box::new(Diagnostic::error(Code::E0246, span, "this is no operation on loops"))),
        }
        let count = statements(&this.nest.items);
        if count > MOST_STATEMENTS {
            let message = format!("this nest would have {count} statements and loops; at most {MOST_STATEMENTS}");
            return Err(malformed(Code::E0246, by, span, message));
        }
        let LoopExpression { mut nest, steps, .. } = this;
        let mut steps = steps.into_iter();
        nest.steps = self.add(before, steps.next());
        for step in steps {
            nest.steps = self.add([nest.steps, None], Some(step));
        }
        Ok(nest)
    }

    fn add(&mut self, before: [Option<usize>; 2], step: Option<Step>) -> Option<usize> {
        match (before, &step) {
            ([one, None], None) => one,
            _ => {
                self.made.push(Made { before, step });
                Some(self.made.len() - 1)
            }
        }
    }

    /// All steps that make a nest, in order, with those of its modes.
    pub(crate) fn steps(&self, nest: &Nest, elem: ElemType, span: Span) -> Vec<Step> {
        let mut steps = Vec::new();
        // From the last one backwards.
        let mut todo: Vec<usize> = nest.steps.into_iter().collect();
        while let Some(at) = todo.pop() {
            let made = &self.made[at];
            steps.extend(made.step.clone());
            todo.extend(made.before.iter().flatten());
        }
        steps.reverse();
        let mut parallel = Vec::new();
        let mut vector = Vec::new();
        let mut loops: Vec<Rc<Loop>> = Vec::new();
        each_loop(&nest.items, None, &mut |_, found| loops.push(found.clone()));
        for found in loops.iter().filter(|found| found.mode != Mode::Serial) {
            let Some(path) = path_of(&nest.items, found) else { continue };
            let path = Arg { kind: ArgKind::Path(path), span };
            match found.mode {
                Mode::Parallel => parallel.push(step("parallelize", vec![path], span)),
                Mode::Vector(width) => {
                    let lanes = i64::try_from(32 / elem.bytes()).unwrap_or(4);
                    let trips = found.hi.sub(&found.lo).ok().and_then(|trips| trips.as_constant());
                    let width = match (width, trips) {
                        (Some(width), _) => Some(width),
                        (None, Some(trips)) if trips <= lanes => None,
                        (None, _) => Some(lanes),
                    };
                    let args = [path].into_iter().chain(width.map(|width| Arg { kind: ArgKind::Int(width), span }));
                    vector.push(step("vectorize", args.collect(), span));
                }
                Mode::Serial => {}
            }
        }
        steps.into_iter().chain(parallel).chain(vector).collect()
    }
}
