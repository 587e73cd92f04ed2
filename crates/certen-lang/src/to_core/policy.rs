//! What is computed where: the only place that decides what gets a name in Core.
//!
//! Expressions are *pulled*: the element of an expression at given indices is built from the elements of its operands,
//! so `a + b * c` is one generation and no operand is stored. That computes nothing twice as long as each element is
//! asked for once. The rules for the rest:
//!
//! 1. A `let` and an argument of a call are stored, because they may be used several times; unless they are *views*,
//!    which cost at most [`MOST_READS`] reads for an element and no arithmetic. Views are substituted.
//! 2. An expression is *costly* if it contains a reduction, a fold, an iteration or a function such as `exp`, itself or
//!    in a function that it calls. Of a costly expression that stands inside loops, those loops matter on whose
//!    indices it does not depend. If the indices at which it is pulled do not run through its elements once as these
//!    loops run (a scalar never does), it would be computed several times: then it is stored outside them.
//! 3. What the user says is stored, and so is what has no elements that could be computed alone: iterations and folds
//!    with a function that make tensors, and long lists that are read at an index that is not known.
//! 4. What is stored is bound as far out as rule 2 asks for, but no further. An expression that selects, or takes a
//!    minimum, may be safe only because of the ranges and conditions around it. Bound outside them it is
//!    guarded by what is left of them there: that the range has something in it, that the condition holds. Where that
//!    cannot be said outside, it stays inside.

use certen_core::{ReduceOp, Unary};
use certen_index::{Cond, Ix};
use certen_syntax::Name;

use super::scopes::What;
use super::{Activation, Build, Denoted};
use crate::tree::{Met, names_of, walk, walk_block, walk_iterate};
use crate::typed::{Expr, FoldOp, FunctionId, Iterate, Kind, WithDefault};

/// The most reads that an element of a view costs.
pub(super) const MOST_READS: usize = 4;

/// The most views that are substituted one inside the other, so that long chains of them stay cheap.
pub(super) const MOST_LINKS: usize = 16;

/// The most expressions that are looked at to see whether something is a view.
const MOST_LOOKS: usize = 64;

/// What an expression is like wherever it stands.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Nature {
    /// It contains a reduction, an iteration or a costly function.
    pub(super) costly: bool,
    /// It may have a value only where the ranges and conditions around it hold.
    pub(super) partial: bool,
}

/// What an expression depends on where it stands.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Survey {
    /// The innermost scope with a name that it mentions.
    pub(super) depth: usize,
    /// As [`Nature::partial`], and what is substituted in it counts.
    pub(super) partial: bool,
    /// How many views one inside the other it goes through.
    pub(super) links: usize,
}

/// Where something is bound, and what guards it there.
pub(super) struct Placement {
    pub(super) depth: usize,
    pub(super) guard: Cond,
}

impl<'a> Build<'a> {
    /// Rules 2 and 3: where an expression that is wanted at indices is to be stored; nothing if it is pulled.
    pub(super) fn placement(&mut self, expr: &'a Expr, act: Activation, indices: &[Ix]) -> Option<Placement> {
        if matches!(expr.kind, Kind::Var(_) | Kind::Literal(_) | Kind::Epsilon | Kind::Index(_)) {
            return None;
        }
        let whole = matches!(expr.kind, Kind::Stored(_)) || !indices.is_empty() && is_whole(expr, indices);
        if !whole && !self.nature(expr).costly {
            return None;
        }
        let survey = self.survey(expr, act);
        let placement = self.outwards(survey);
        if whole {
            return Some(placement);
        }
        let loops: Vec<Name> =
            self.scopes.iter().skip(placement.depth + 1).filter_map(|s| loop_index(s.what)).collect();
        let once = !indices.is_empty() && loops.iter().all(|&index| runs_through(index, &loops, indices));
        (placement.depth < self.depth() && !loops.is_empty() && !once).then_some(placement)
    }

    /// Rule 4: as far out as the loops that an expression does not depend on.
    pub(super) fn outwards(&self, survey: Survey) -> Placement {
        let (mut best, mut floor, mut at) = (self.depth(), survey.depth, self.depth());
        let mut guards: Vec<(usize, usize, &Cond)> = Vec::new();
        while at > floor {
            let scope = &self.scopes[at];
            if !scope.reached.is_always() {
                let depth = self.depth_of_cond(&scope.reached);
                if survey.partial && depth >= at {
                    break;
                }
                if survey.partial || scope.what == What::Branch {
                    guards.push((at, depth, &scope.reached));
                }
                if survey.partial {
                    floor = floor.max(depth);
                }
            }
            if survey.partial {
                guards.extend(scope.inside.iter().map(|cond| (at, self.depth_of_cond(cond), cond)));
            }
            at -= 1;
            if loop_index(scope.what).is_some() {
                best = at;
            }
        }
        let crossed = guards.into_iter().filter(|(at, depth, _)| *at > best && *depth <= best);
        let guard = crossed.fold(Cond::always(), |all, (_, _, cond)| all.and(cond.clone()));
        Placement { depth: best, guard }
    }

    /// What an expression is like, found once for each.
    pub(super) fn nature(&mut self, expr: &'a Expr) -> Nature {
        if let Some(&known) = self.natures.get(&std::ptr::from_ref(expr)) {
            return known;
        }
        let mut nature = Nature::default();
        let mut called = Vec::new();
        walk(expr, &mut |met| meet_nature(met, &mut nature, &mut called));
        called.into_iter().for_each(|function| nature = both(nature, self.nature_of_function(function)));
        self.natures.insert(expr, nature);
        nature
    }

    fn nature_of_function(&mut self, function: FunctionId) -> Nature {
        if let Some(Some(known)) = self.functions.get(function) {
            return *known;
        }
        let mut nature = Nature::default();
        let mut called = Vec::new();
        if let Some(function) = self.program.functions.get(function) {
            walk_block(&function.body, &mut |met| meet_nature(met, &mut nature, &mut called));
        }
        called.into_iter().for_each(|function| nature = both(nature, self.nature_of_function(function)));
        if let Some(known) = self.functions.get_mut(function) {
            *known = Some(nature);
        }
        nature
    }

    /// What an expression depends on.
    pub(super) fn survey(&mut self, expr: &'a Expr, act: Activation) -> Survey {
        let mut survey = Survey { partial: self.nature(expr).partial, ..Survey::default() };
        walk(expr, &mut |met| self.meet_survey(&met, act, &mut survey));
        survey
    }

    /// What an iteration depends on.
    pub(super) fn survey_iterate(&mut self, iterate: &'a Iterate, act: Activation) -> Survey {
        let mut nature = Nature::default();
        let mut called = Vec::new();
        walk_iterate(iterate, &mut |met| meet_nature(met, &mut nature, &mut called));
        called.into_iter().for_each(|function| nature = both(nature, self.nature_of_function(function)));
        let mut survey = Survey { partial: nature.partial, ..Survey::default() };
        walk_iterate(iterate, &mut |met| self.meet_survey(&met, act, &mut survey));
        survey
    }

    /// A name that is bound inside the expression has no meaning yet, or one from another time that it was built, whose
    /// scopes are closed.
    fn meet_survey(&self, met: &Met<'_>, act: Activation, survey: &mut Survey) {
        for name in names_of(met) {
            match self.meaning(act, name) {
                Some(Denoted::Index(ix)) => survey.depth = survey.depth.max(self.depth_of(ix)),
                Some(Denoted::Stored(name, _)) => {
                    survey.depth = survey.depth.max(self.names.depth(*name).unwrap_or(0));
                }
                Some(Denoted::View(view)) => {
                    survey.depth = survey.depth.max(view.survey.depth);
                    survey.partial |= view.survey.partial;
                    survey.links = survey.links.max(view.survey.links + 1);
                }
                None => {}
            }
        }
    }

    fn depth_of(&self, ix: &Ix) -> usize {
        let mut names = Default::default();
        ix.collect_names(&mut names);
        names.into_iter().filter_map(|name| self.names.depth(name)).max().unwrap_or(0)
    }

    fn depth_of_cond(&self, cond: &Cond) -> usize {
        let mut names = Default::default();
        cond.collect_names(&mut names);
        names.into_iter().filter_map(|name| self.names.depth(name)).max().unwrap_or(0)
    }

    /// Rule 1: how many reads an element of a view costs; nothing if the expression is not a view.
    pub(super) fn reads(&self, expr: &Expr, act: Activation) -> Option<usize> {
        let known = |name| match self.meaning(act, name) {
            Some(Denoted::View(view)) => Some(view.reads),
            Some(Denoted::Stored(..)) => Some(1),
            _ => None,
        };
        let mut looks = MOST_LOOKS;
        self.reads_of(expr, &known, &mut looks).filter(|&reads| reads <= MOST_READS)
    }

    fn reads_of(&self, expr: &Expr, known: &dyn Fn(Name) -> Option<usize>, looks: &mut usize) -> Option<usize> {
        *looks = looks.checked_sub(1)?;
        let mut of = |e: &Expr| self.reads_of(e, known, looks);
        let reads = match &expr.kind {
            Kind::Var(name) => known(*name)?,
            Kind::Literal(_) | Kind::Epsilon | Kind::Index(_) => 0,
            Kind::Stack(parts) => {
                parts.iter().try_fold(0usize, |sum, part| Some(sum.saturating_add(of(part)?.max(1))))?
            }
            Kind::With(with) => {
                let bodies = with.generators.iter().map(|generator| &generator.body);
                let (WithDefault::Cell(default) | WithDefault::Array(default)) = &with.default;
                bodies.chain([default]).try_fold(0usize, |sum, body| Some(sum.saturating_add(of(body)?)))?
            }
            Kind::Select(a, _) | Kind::Guard(_, a) | Kind::Split(_, a) | Kind::Transpose(a) => of(a)?,
            Kind::Pad(_, _, a) | Kind::Trunc(_, _, a) => of(a)?,
            Kind::Flatten(a) if a.ty.shape.get(1).is_some_and(|size| size.as_constant().is_some()) => of(a)?,
            Kind::Reshape(a) if a.ty.shape.iter().skip(1).all(|size| size.as_constant().is_some()) => of(a)?,
            Kind::If(_, a, b) | Kind::Concat(a, b) => of(a)?.saturating_add(of(b)?),
            Kind::Block(block) => match (block.lets.as_slice(), block.results.as_slice()) {
                ([], [result]) => of(result)?,
                _ => return None,
            },
            Kind::Call(call) => {
                let callee = self.program.functions.get(call.function)?;
                let ([], [result]) = (callee.body.lets.as_slice(), callee.body.results.as_slice()) else {
                    return None;
                };
                let args = call.args.iter().map(&mut of).collect::<Option<Vec<usize>>>()?;
                let params = &callee.params;
                let known = |name| params.iter().zip(&args).find(|((param, _), _)| *param == name).map(|(_, &r)| r);
                self.reads_of(result, &known, looks)?
            }
            _ => return None,
        };
        Some(reads)
    }
}

fn both(a: Nature, b: Nature) -> Nature {
    Nature { costly: a.costly || b.costly, partial: a.partial || b.partial }
}

fn meet_nature(met: Met<'_>, nature: &mut Nature, called: &mut Vec<FunctionId>) {
    let expr = match met {
        Met::Expr(expr) => expr,
        Met::Call(call) => {
            // Its conditions, and that sizes of its arguments agree, may hold only here.
            nature.partial = true;
            return called.push(call.function);
        }
        Met::Iterate => {
            nature.costly = true;
            return;
        }
        Met::Ix(_) | Met::Cond(_) => return,
    };
    match &expr.kind {
        Kind::Reduce(op, _, _) => {
            nature.costly = true;
            nature.partial |= matches!(op, ReduceOp::Min | ReduceOp::Max);
        }
        Kind::Fold(_) => nature.costly = true,
        Kind::Unary(op, _) => {
            nature.costly |= *op == Unary::Sqrt || op.function().is_some();
        }
        Kind::Binary(op, a, b) => {
            nature.costly |= op.function().is_some();
            nature.partial |= differ(a, b);
        }
        Kind::Choose(c, a, b) => nature.partial |= differ(c, a) || differ(a, b) || differ(c, b),
        Kind::If(_, a, b) | Kind::Concat(a, b) => nature.partial |= differ(a, b),
        Kind::Select(..) | Kind::Trunc(..) | Kind::Pad(..) | Kind::Reshape(_) => nature.partial = true,
        _ => {}
    }
}

/// Whether operands have shapes that are equal only by what holds here.
fn differ(a: &Expr, b: &Expr) -> bool {
    a.ty.rank() > 0 && b.ty.rank() > 0 && a.ty.shape != b.ty.shape
}

fn loop_index(what: What) -> Option<Name> {
    if let What::Loop(index) = what { Some(index) } else { None }
}

/// Rule 3.
fn is_whole(expr: &Expr, indices: &[Ix]) -> bool {
    match &expr.kind {
        Kind::Stack(parts) => {
            parts.len() > MOST_READS && indices.first().is_none_or(|first| first.as_constant().is_none())
        }
        _ => has_no_elements(expr),
    }
}

/// Whether something is made step by step, and not element by element.
pub(super) fn has_no_elements(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::Iterate(_) => true,
        Kind::Fold(fold) => matches!(fold.op, FoldOp::Function { .. }),
        _ => false,
    }
}

/// Whether one of the indices takes another value whenever the index of a loop does, and depends on no other loop.
fn runs_through(index: Name, loops: &[Name], indices: &[Ix]) -> bool {
    let next = Ix::var(index).add(&Ix::from(1)).ok();
    indices.iter().any(|ix| {
        let alone = loops.iter().all(|&other| other == index || !ix.mentions(other));
        let stepped = ix.substitute(&|name| next.clone().filter(|_| name == index)).and_then(|moved| moved.sub(ix));
        alone && stepped.is_ok_and(|step| step.as_constant().is_some_and(|step| step != 0))
    })
}
