//! Loop expressions: E_l of Fig. 9, and those of Sec. 4.1 and beyond, which are made of them.
//!
//! Each takes a nest and gives another one. Its pattern must match the tree: positions count the loops of the perfect part
//! from 1, outermost first. Beside the tree, a nest carries the steps of `certen-schedule` that make it of the nests of `build`.
//! `parallelize` and `vectorize` change no tree (Sec. 3.3.3); their steps come last.
//!
//! Any size is allowed: the loop inside of a block ends at the smaller of the block's end and the loop's own. A nest in which a
//! bound is used outside of the loop that gives it its value is malformed, and so is unrolling a number of iterations that
//! depends on sizes.

use std::rc::Rc;

use certen_core::ElemType;
use certen_index::{Cond, Facts, Ix, IxError, Verdict};
use certen_syntax::schedule::{Arg, ArgKind, Path, Step};
use certen_syntax::{Code, Diagnostic, Name, Span};
use rustc_hash::FxHashSet;

use crate::ast::{At, LoopExpr, LoopOp};
use crate::nest::{
    Edit, Guard, Item, Leaf, Loop, Mode, copy, each_loop, fuse, loop_names, only_loop, parts, ranges, shown,
    simplified, statements,
};
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

/// A step, behind others.
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

/// A loop expression that is being evaluated.
struct Expression<'a> {
    context: &'a Context<'a>,
    by: u8,
    span: Span,
    nest: Nest,
    steps: Vec<Step>,
}

fn too_complex(span: Span) -> impl Fn(IxError) -> Box<Diagnostic> {
    move |error| Box::new(Diagnostic::error(Code::E0216, span, format!("a bound would be too complex: {error}")))
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
        let mut this = Expression { context, by, span, nest, steps: Vec::new() };
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
        let Expression { mut nest, steps, .. } = this;
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

fn step(name: &str, args: Vec<Arg>, span: Span) -> Step {
    Step { name: Name::new(name), args, span }
}

/// What a step calls a loop of a tree.
fn path_of(items: &[Item], wanted: &Rc<Loop>) -> Option<Path> {
    let mut stage = None;
    each_loop(items, None, &mut |of, found| {
        if Rc::ptr_eq(found, wanted) {
            stage = of;
        }
    });
    let stage = stage?;
    let (mut count, mut nth) = (0, 0);
    each_loop(items, None, &mut |of, found| {
        if of == Some(stage) && found.index == wanted.index {
            count += 1;
            if Rc::ptr_eq(found, wanted) {
                nth = count;
            }
        }
    });
    let parts = [stage].into_iter().chain(wanted.index.as_str().split('.').map(Name::new));
    Some(Path { parts: parts.collect(), nth: (count > 1).then_some(nth) })
}

impl Expression<'_> {
    // Patterns

    /// The loops of the perfect part, outermost first.
    fn chain(&self) -> Vec<Rc<Loop>> {
        let mut chain: Vec<Rc<Loop>> = Vec::new();
        let mut items = &self.nest.items;
        while let Some(found) = only_loop(items) {
            chain.push(found.clone());
            items = &found.body;
        }
        chain
    }

    fn malformed(&self, code: Code, span: Span, message: impl Into<String>) -> Box<Diagnostic> {
        let error = match self.by {
            0 => Diagnostic::error(code, span, message),
            by => *malformed(code, by, span, message),
        };
        Box::new(error.note(self.shown()))
    }

    fn shown(&self) -> String {
        let tree = shown(&self.nest.items, self.context.leaf);
        match ranges(&self.nest.items) {
            ranges if ranges.is_empty() => format!("the nest is {tree}"),
            ranges => format!("the nest is {tree}, {ranges}"),
        }
    }

    fn at_least(&self, number: &At<i64>, least: i64, what: &str) -> Evaluated<()> {
        if number.it < least {
            return Err(self.malformed(
                Code::E0246,
                number.span,
                format!("{what} is at least {least}, not {}", number.it),
            ));
        }
        Ok(())
    }

    /// The pattern ⟨i1, … ⟨ir, xs⟩ … ⟩: the loops of the perfect part, and the position from 0.
    fn position(&self, r: &At<i64>) -> Evaluated<(Vec<Rc<Loop>>, usize)> {
        let chain = self.chain();
        match usize::try_from(r.it) {
            Ok(at) if (1..=chain.len()).contains(&at) => Ok((chain, at - 1)),
            _ => {
                let message = match chain.len() {
                    0 => "nothing here is one loop in which all others are".to_owned(),
                    1 => format!("the nest has one loop, and no loop {}", r.it),
                    all => format!("the nest has {all} loops inside each other, and no loop {}", r.it),
                };
                Err(self.malformed(Code::E0246, r.span, message))
            }
        }
    }

    // Names and places

    fn path(&self, found: &Rc<Loop>, span: Span) -> Arg {
        let path = path_of(&self.nest.items, found).unwrap_or(Path { parts: vec![found.index], nth: None });
        Arg { kind: ArgKind::Path(path), span }
    }

    fn int(value: i64, span: Span) -> Arg {
        Arg { kind: ArgKind::Int(value), span }
    }

    fn step(&mut self, name: &str, args: Vec<Arg>) {
        self.steps.push(step(name, args, self.span));
    }

    /// Whether a loop cannot have a name, since something near has it.
    fn taken(&self) -> FxHashSet<Name> {
        loop_names(&self.nest.items)
    }

    fn is_taken<'b>(&'b self, names: &'b FxHashSet<Name>) -> impl Fn(Name) -> bool + 'b {
        |name| names.contains(&name) || (self.context.taken)(name) || self.context.sizes.has(name)
    }

    fn piece(&self, index: Name, suffix: &str) -> Name {
        let names = self.taken();
        Name::fresh(&format!("{index}.{suffix}"), self.is_taken(&names))
    }

    /// What holds in the loops around a position.
    fn facts(&self, around: &[Rc<Loop>]) -> Evaluated<Facts> {
        let ranges: Result<Vec<Cond>, IxError> = around.iter().map(|found| found.within()).collect();
        let ranges = ranges.map_err(too_complex(self.span))?;
        let all: Vec<&Ix> = self.all_bounds();
        Ok(self.context.sizes.around(&ranges, &all))
    }

    fn all_bounds(&self) -> Vec<&Ix> {
        fn collect<'b>(items: &'b [Item], out: &mut Vec<&'b Ix>) {
            for item in items {
                match item {
                    Item::Loop(found) => {
                        out.extend([&found.lo, &found.hi]);
                        collect(&found.body, out);
                    }
                    Item::Guard(guard) => collect(&guard.body, out),
                    Item::Leaf(_) | Item::Label(_) => {}
                }
            }
        }
        let mut out = Vec::new();
        collect(&self.nest.items, &mut out);
        out
    }

    /// The tree with other parts in the place of the loop at a position of the perfect part.
    fn replaced(&self, chain: &[Rc<Loop>], at: usize, with: Vec<Item>) -> Vec<Item> {
        let put = |items: &[Item], with: Vec<Item>| {
            let mut out = Vec::with_capacity(items.len() + with.len());
            let mut with = Some(with);
            for item in items {
                match item {
                    Item::Label(_) => out.push(item.clone()),
                    _ => out.extend(with.take().unwrap_or_default()),
                }
            }
            out
        };
        let mut with = with;
        for around in chain[..at].iter().rev() {
            with = vec![Loop { body: put(&around.body, with), ..(**around).clone() }.into()];
        }
        put(&self.nest.items, with)
    }

    fn replace(&mut self, chain: &[Rc<Loop>], at: usize, with: Vec<Item>) {
        self.nest.items = self.replaced(chain, at, with);
    }

    // Operations

    /// Eq. 20. The outer bound is that of the last block: the paper's is one too few for inclusive bounds.
    fn stripmine(&mut self, r: &At<i64>, v: &At<i64>) -> Evaluated<()> {
        let (chain, at) = self.position(r)?;
        self.at_least(v, 1, "the size of a block")?;
        if chain.len() >= MOST_LEVELS {
            return Err(self.malformed(
                Code::E0246,
                r.span,
                format!("there are at most {MOST_LEVELS} loops inside each other"),
            ));
        }
        let args = vec![self.path(&chain[at], r.span), Self::int(v.it, v.span)];
        let split = self.split(&chain, at, v.it)?;
        self.replace(&chain, at, vec![split.into()]);
        self.step("split", args);
        Ok(())
    }

    /// The two loops that a loop becomes.
    fn split(&self, chain: &[Rc<Loop>], at: usize, v: i64) -> Evaluated<Loop> {
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

    /// Refuses an order of the perfect part in which a bound is used outside of the loop that gives it its value.
    fn in_scope(&self, order: &[Rc<Loop>], span: Span) -> Evaluated<()> {
        for (at, found) in order.iter().enumerate() {
            let bounds = [&found.lb, &found.ub, &found.lo, &found.hi];
            let escaped = order[at..].iter().find(|inner| bounds.iter().any(|bound| bound.mentions(inner.index)));
            if let Some(inner) = escaped {
                let message = format!(
                    "the bounds of `{}` depend on `{}`, which would stand inside of it",
                    found.index, inner.index
                );
                let error = self.malformed(Code::E0247, span, message);
                return Err(Box::new(error.label(format!("`{}` runs over {}", found.index, found.shown()))));
            }
        }
        Ok(())
    }

    /// Two neighbours that change places, where the bounds of the inner one depend on the outer one because it was skewed:
    /// the same pairs of values, the new outer loop first.
    fn turned(&self, chain: &[Rc<Loop>], at: usize) -> Evaluated<Option<[Loop; 2]>> {
        let (outer, inner) = (&chain[at], &chain[at + 1]);
        let facts = self.facts(&chain[..at])?;
        let compute = || -> Result<Option<[Loop; 2]>, IxError> {
            let one = Ix::from(1);
            // A loop inside of a block counts from the beginning of the block, so its values say nothing here.
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
    fn interchange(&mut self, r1: &At<i64>, r2: &At<i64>) -> Evaluated<()> {
        let (_, one) = self.position(r1)?;
        let (chain, two) = self.position(r2)?;
        if one >= two {
            let error = self.malformed(Code::E0246, r2.span, format!("loop {} is not inside of loop {}", r2.it, r1.it));
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
    fn interchange_n(&mut self, r: &At<i64>, n: &At<i64>) -> Evaluated<()> {
        let (chain, at) = self.position(r)?;
        self.at_least(n, 0, "a number of loops")?;
        let count = usize::try_from(n.it).unwrap_or(usize::MAX);
        if count >= chain.len() - at {
            let message = format!("only {} loops stand inside of loop {}", chain.len() - at - 1, r.it);
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
    fn stripmine_n(&mut self, n: &At<i64>, v: &At<i64>) -> Evaluated<()> {
        self.at_least(n, 1, "the number of loops")?;
        self.position(n)?;
        for k in 0..n.it {
            self.stripmine(&At { it: 2 * k + 1, span: n.span }, v)?;
        }
        Ok(())
    }

    /// Eq. 29: all loops are stripmined, and the blocks stand outside.
    fn tile(&mut self, v: &At<i64>) -> Evaluated<()> {
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

    /// Eq. 22.
    fn fuse_outer(&mut self, other: Nest, r: &At<i64>) -> Evaluated<()> {
        let (one, _) = self.position(r)?;
        let theirs = Expression { context: self.context, by: self.by, span: self.span, nest: other, steps: Vec::new() };
        let (two, at) = theirs.position(r)?;
        let mut edit = Edit::default();
        for (a, b) in one.iter().zip(&two).take(at + 1) {
            let same = |x: &Ix, y: &Ix| -> Result<bool, IxError> {
                let y = y.substitute(&|name| edit.values.get(&name).cloned())?;
                Ok(self.context.sizes.equal(x, &y))
            };
            let equal = same(&a.lb, &b.lb).and_then(|lower| Ok(lower && same(&a.ub, &b.ub)?));
            if !equal.map_err(too_complex(self.span))? {
                let message = format!("the loops that are to be fused differ: `{}` and `{}`", a.index, b.index);
                let error = self.malformed(Code::E0246, r.span, message);
                let error =
                    error.note(format!("`{}` runs over {}, `{}` over {}", a.index, a.shown(), b.index, b.shown()));
                return Err(Box::new(error.note(theirs.shown().replacen("the nest", "the second nest", 1))));
            }
            edit.values.insert(b.index, Ix::var(a.index));
        }
        let mine: FxHashSet<usize> = self.nest.assignments.iter().copied().collect();
        if theirs.nest.assignments.iter().any(|statement| mine.contains(statement)) {
            return Err(self.malformed(Code::E0246, self.span, "both nests have the same statement"));
        }
        let mut items = self.nest.items.clone();
        items.extend(theirs.nest.items.iter().cloned());
        let assignments = self.nest.assignments.iter().chain(theirs.nest.assignments.iter()).copied();
        self.nest.assignments = Rc::new(assignments.collect());
        self.nest.items = items;
        let args = vec![self.path(&one[0], r.span), self.path(&two[0], r.span), Self::int(r.it, r.span)];
        self.fuse_levels(at + 1)?;
        self.step("fuse_outer", args);
        Ok(())
    }

    /// Fuses the two loops at the top, and then the only two inside, so many times.
    fn fuse_levels(&mut self, levels: usize) -> Evaluated<()> {
        let mut around: Vec<Rc<Loop>> = Vec::new();
        let mut stage = None;
        for _ in 0..levels {
            let items = around.last().map_or(&self.nest.items, |found| &found.body);
            let loops: Vec<usize> =
                items.iter().enumerate().filter(|(_, item)| matches!(item, Item::Loop(_))).map(|(at, _)| at).collect();
            let &[one, two] = loops.as_slice() else {
                return Err(self.malformed(
                    Code::E0246,
                    self.span,
                    "the loops that are to be fused do not follow each other",
                ));
            };
            let fused = self.fused(items, one, two, stage)?;
            stage = crate::nest::stage_at(items, one, stage);
            match around.len() {
                0 => self.nest.items = fused,
                depth => {
                    let with = vec![Loop { body: fused, ..(*around[depth - 1]).clone() }.into()];
                    self.nest.items = self.replaced(&around, depth - 1, with);
                }
            }
            around = self.chain()[..around.len() + 1].to_vec();
        }
        Ok(())
    }

    fn fused(&self, items: &[Item], one: usize, two: usize, stage: Option<Name>) -> Evaluated<Vec<Item>> {
        let names = self.taken();
        let is_taken = self.is_taken(&names);
        fuse(items, one, two, stage, &mut |name| is_taken(name)).map_err(too_complex(self.span))
    }

    /// Eq. 23: the loops inside of loop r - 1 become one.
    fn fuse_inner(&mut self, r: &At<i64>) -> Evaluated<()> {
        self.at_least(r, 1, "the position of a loop")?;
        let chain = self.chain();
        let depth = usize::try_from(r.it - 1).unwrap_or(usize::MAX);
        if depth > chain.len() {
            self.position(&At { it: r.it - 1, span: r.span })?;
        }
        let mut stage = None;
        if depth > 0 {
            each_loop(&self.nest.items, None, &mut |of, found| {
                if Rc::ptr_eq(found, &chain[depth - 1]) {
                    stage = of;
                }
            });
        }
        let mut items = if depth == 0 { self.nest.items.clone() } else { chain[depth - 1].body.clone() };
        let mut first: Option<Rc<Loop>> = None;
        for item in parts(&items) {
            let Item::Loop(found) = item else {
                let message = format!("not all that stands at level {} are loops", r.it);
                return Err(self.malformed(Code::E0246, r.span, message));
            };
            let first = first.get_or_insert_with(|| found.clone());
            if !(self.context.sizes.equal(&first.lb, &found.lb) && self.context.sizes.equal(&first.ub, &found.ub)) {
                let message = format!(
                    "the loops at level {} differ: `{}` runs over {}, `{}` over {}",
                    r.it,
                    first.index,
                    first.shown(),
                    found.index,
                    found.shown()
                );
                return Err(self.malformed(Code::E0246, r.span, message));
            }
        }
        if first.is_none() {
            return Err(self.malformed(Code::E0246, r.span, format!("there is no loop at level {}", r.it)));
        }
        let args = (depth > 0).then(|| vec![self.path(&chain[depth - 1], r.span)]);
        let mut count = 0;
        loop {
            let mut loops = items.iter().enumerate().filter(|(_, item)| matches!(item, Item::Loop(_)));
            let (Some((one, a)), Some((two, b))) = (loops.next(), loops.next()) else { break };
            count += 1;
            if let (None, Item::Loop(a), Item::Loop(b)) = (&args, a, b) {
                let pair = [a, b].map(|found| path_of(&items, found));
                let paths = pair.into_iter().flatten().map(|path| Arg { kind: ArgKind::Path(path), span: r.span });
                let args = paths.collect();
                self.steps.push(step("fuse_outer", args, self.span));
            }
            items = self.fused(&items, one, two, stage)?;
            if depth == 0 {
                self.nest.items = items.clone();
            } else {
                let with = vec![Loop { body: items.clone(), ..(*chain[depth - 1]).clone() }.into()];
                self.nest.items = self.replaced(&chain, depth - 1, with);
            }
        }
        if let (Some(args), 1..) = (args, count) {
            self.step("fuse_inner", args);
        }
        Ok(())
    }

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
                format!("{count} copies of {size} statements and loops are too many: at most {MOST_STATEMENTS}");
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
    fn unroll(&mut self, r: &At<i64>) -> Evaluated<()> {
        let (chain, at) = self.position(r)?;
        let facts = self.facts(&chain[..at])?;
        let args = vec![self.path(&chain[at], r.span)];
        let with = self.iterations(&chain[at], &facts, r.span)?;
        self.replace(&chain, at, with);
        self.step("unroll", args);
        Ok(())
    }

    /// Blocks of a number of iterations that are full, whose loop becomes its iterations, and the others.
    fn unroll_in_part(&mut self, r: &At<i64>, f: &At<i64>, jam: bool) -> Evaluated<()> {
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
    fn peel(&mut self, r: &At<i64>) -> Evaluated<()> {
        let (chain, at) = self.position(r)?;
        let found = &chain[at];
        let facts = self.facts(&chain[..at])?;
        let mut turns =
            Turns { index: found.index, inner: loop_names(&found.body), conditional: false, found: Vec::new() };
        turns.items(&found.body).map_err(too_complex(self.span))?;
        if turns.conditional {
            let message = format!("some statements inside of `{}` run only in some of its iterations", found.index);
            let error = self.malformed(Code::E0246, r.span, message);
            return Err(Box::new(error.help("cut the last block off before the loop inside of it is unrolled")));
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

    /// The index of the inner loop runs ahead of itself by a multiple of the outer one.
    fn skew(&mut self, r1: &At<i64>, r2: &At<i64>, f: &At<i64>) -> Evaluated<()> {
        let (_, one) = self.position(r1)?;
        let (chain, two) = self.position(r2)?;
        if one >= two {
            return Err(self.malformed(
                Code::E0246,
                r2.span,
                format!("loop {} is not inside of loop {}", r2.it, r1.it),
            ));
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

    /// Sec. 3.3.3: how a loop runs.
    fn mode(&mut self, r: &At<i64>, mode: Mode) -> Evaluated<()> {
        let (chain, at) = self.position(r)?;
        let with = vec![Loop { mode, ..(*chain[at]).clone() }.into()];
        self.replace(&chain, at, with);
        Ok(())
    }
}

/// The ranges of two loops after they have changed places, the new outer one first. None if the inner range depends on the
/// outer index in another way than linearly.
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

/// What a loop is cut into.
struct Pieces {
    all: Vec<Item>,
    /// Where the piece is that keeps its name.
    main: Option<usize>,
}

/// From which values of an index on the blocks inside of its loop are not full.
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
