//! Lifting: nested contractions become a sequence of bindings of single contractions (TeIL, Sec. 5).
//!
//! Each maximal sum of products is read as an Einstein sum: `sum k. x * (sum l. y)` is `sum k, l. x * y`, its factors
//! depend on sets of indices. [`order`](crate::order) finds the order of pairwise contractions with the fewest
//! multiplications; each inner one becomes a binding of its own before the current one, the last one stays in place. A
//! contraction that stands inside a reduction or generation on whose index it does not depend is bound once. Everything
//! that is not a product or a sum is an opaque factor, and so is a square, whose operand is computed once; contractions
//! inside one are lifted first.
//!
//! Floats are no ring: `sum i. z[i] * x` as `(sum i. z[i]) * x` is NaN where `z` is 1e308 twice and `x` is 0. A contraction is
//! factored only where that saves multiplications, and the report says so; `--fp strict` does not come here.
//!
//! Needs: a program that [`Program::check`] accepts; elements of a commutative ring. Guarantees: the same values; never
//! more multiplications ([`Program::multiplications`]), for all sizes, those of 0 aside where there are more than two factors,
//! and an unchanged term where fewer are not shown; no read leaves an `if`, `guard`, condition, `let` or iteration, nor a range that is not known to be non-empty unless it is
//! in bounds without; equal temporaries are one. Works in time linear in the program, apart from the search for orders,
//! within a number of steps.

mod build;
mod einstein;
mod plan;

use std::collections::HashSet;

use certen_core::{Binary, Binding, Count, Program, Range, ReduceOp, Term, TermId, Terms, TypeError};
use certen_index::{Cond, Ix, IxError, Verdict};
use certen_syntax::Name;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::free::names_of_range;
use crate::order::{MOST, Set};
use crate::report::LiftReport;
use crate::sizes::NominalSizes;

/// A program with its contractions lifted.
#[derive(Clone, Debug)]
pub struct Lifted {
    /// The program; what no contraction was lifted from is as it was.
    pub program: Program,
    /// What was lifted.
    pub report: LiftReport,
}

/// How many pairs of operands the searches for orders of a program may look at; what comes later stays as written.
const SPLITS: u64 = 10_000_000;

/// Lifts the contractions of a program.
pub fn lift(program: &Program) -> Lifted {
    lift_with(program, || NominalSizes::new(program))
}

/// The same for a program that runs with these sizes: the order is the best for them, and may be worse for others. The program
/// still has its values for all sizes.
pub fn lift_at(program: &Program, sizes: FxHashMap<Name, i64>) -> Lifted {
    lift_with(program, || Some(NominalSizes::given(sizes)))
}

fn lift_with(program: &Program, sizes: impl FnOnce() -> Option<NominalSizes>) -> Lifted {
    let unchanged = || Lifted { program: program.clone(), report: LiftReport::default() };
    let marks = Marks::new(program);
    if !program.bindings.iter().any(|binding| marks.treated[binding.term.index()]) {
        return unchanged();
    }
    let Some(sizes) = sizes() else { return unchanged() };
    let mut lifter = Lifter {
        source: program,
        terms: program.terms.clone(),
        marks,
        sizes,
        counts: Count::multiplications(),
        names: FreshNames {
            taken: program.names(),
            kept: Vec::new(),
            summed: Vec::new(),
            temporaries: 0,
            copies: FxHashMap::default(),
        },
        extents: FxHashMap::default(),
        not_empty: FxHashMap::default(),
        shared: FxHashMap::default(),
        bindings: Vec::with_capacity(program.bindings.len()),
        report: LiftReport::default(),
        steps: 1_000_000 + 64 * program.terms.len(),
        splits: SPLITS,
    };
    for binding in &program.bindings {
        let (bindings, reported) = (lifter.bindings.len(), lifter.report.contractions.len());
        let term = lifter.binding(binding).unwrap_or_else(|GivenUp| {
            lifter.forget(bindings, reported);
            binding.term
        });
        lifter.bindings.push(Binding { name: binding.name, term });
    }
    let Lifter { terms, bindings, report, .. } = lifter;
    let lifted = Program {
        name: program.name,
        sizes: program.sizes.clone(),
        facts: program.facts.clone(),
        inputs: program.inputs.clone(),
        bindings,
        outputs: program.outputs.clone(),
        terms,
    };
    Lifted { program: lifted, report }
}

/// What is known of each term of the program before anything is rewritten.
struct Marks {
    /// A sum over a range that depends on sizes only, or a product with such a sum among its factors.
    contraction: Vec<bool>,
    /// Whether a contraction can be reached without entering what nothing is lifted from.
    treated: Vec<bool>,
}

impl Marks {
    fn new(program: &Program) -> Marks {
        let sizes: FxHashSet<Name> = program.sizes.iter().copied().collect();
        let rectangular = |range: &Range| names_of_range(range).iter().all(|name| sizes.contains(name));
        let mut marks = Marks { contraction: Vec::new(), treated: Vec::new() };
        for (id, term) in program.terms.iter() {
            let of = |part: &TermId| marks.contraction[part.index()];
            let inside = |part: &TermId| marks.treated[part.index()];
            let (contraction, treated) = match term {
                Term::Gen(_, range, body) => (false, inside(body) && rectangular(range)),
                _ if !program.terms.ty(id).is_scalar() => (false, false),
                Term::Reduce(op, _, range, cond, body) => {
                    let open = cond.is_always() && rectangular(range);
                    let sum = *op == ReduceOp::Sum && open;
                    (sum, open && (sum || inside(body)))
                }
                Term::Binary(Binary::Mul, a, b) => (a != b && (of(a) || of(b)), inside(a) || inside(b)),
                Term::Unary(..) | Term::Binary(..) | Term::Choose(..) | Term::Fma(..) | Term::Cast(..) => {
                    (false, term.parts().iter().any(inside))
                }
                _ => (false, false),
            };
            marks.contraction.push(contraction);
            marks.treated.push(treated);
        }
        marks
    }
}

/// New names; none of them is bound anywhere in the program as it was.
struct FreshNames {
    taken: HashSet<Name>,
    kept: Vec<Name>,
    summed: Vec<Name>,
    temporaries: u64,
    copies: FxHashMap<Name, u64>,
}

impl FreshNames {
    /// The nth name of a list of index names: the same in every temporary, so that equal ones are equal terms.
    fn nth(taken: &mut HashSet<Name>, list: &mut Vec<Name>, base: &str, n: usize) -> Name {
        while list.len() <= n {
            let name = Name::fresh(&format!("{base}{}", list.len() + 1), |name| taken.contains(&name));
            taken.insert(name);
            list.push(name);
        }
        list[n]
    }

    fn kept(&mut self, n: usize) -> Name {
        FreshNames::nth(&mut self.taken, &mut self.kept, "j", n)
    }

    fn summed(&mut self, n: usize) -> Name {
        FreshNames::nth(&mut self.taken, &mut self.summed, "l", n)
    }

    /// A name like another one, given once.
    fn copy(&mut self, of: Name) -> Name {
        let count = self.copies.entry(of).or_insert(0);
        Name::numbered(&format!("{of}_"), count, |name| !self.taken.insert(name))
    }

    fn temporary(&mut self) -> Name {
        Name::numbered("t", &mut self.temporaries, |name| !self.taken.insert(name))
    }
}

/// An index that is bound around a term, inside others.
struct Enclosing {
    outer: EnclosingIndex,
    name: Name,
    range: Range,
}

/// A place in the list of enclosing indices; none is outside all of them.
type EnclosingIndex = Option<usize>;

/// A contraction read as factors: what was found on the way, in postfix order, so that it can be put together as written.
struct Flat {
    around: EnclosingIndex,
    summed: Vec<usize>,
    /// The enclosing indices of each factor.
    factors: Vec<EnclosingIndex>,
    written: Vec<WrittenNode>,
}

impl Flat {
    /// The products as written, as sets of factors.
    fn products(&self) -> Vec<Set> {
        let (mut factors, mut products) = (0, Vec::new());
        let mut sets: Vec<Set> = Vec::new();
        for written in &self.written {
            match written {
                WrittenNode::Factor => {
                    sets.push(1 << factors);
                    factors += 1;
                }
                WrittenNode::Product => {
                    let both = sets.pop().unwrap_or(0) | sets.pop().unwrap_or(0);
                    sets.push(both);
                    products.push(both);
                }
                WrittenNode::Sum(_) => {}
            }
        }
        products
    }
}

enum WrittenNode {
    Factor,
    Product,
    Sum(usize),
}

enum LiftTask {
    Visit(TermId, EnclosingIndex),
    Rebuild(TermId),
    Contract(Box<Flat>),
    Remember(TermId, EnclosingIndex),
}

/// Why a binding is left as it is.
struct GivenUp;

impl From<TypeError> for GivenUp {
    fn from(_: TypeError) -> GivenUp {
        GivenUp
    }
}

impl From<IxError> for GivenUp {
    fn from(_: IxError) -> GivenUp {
        GivenUp
    }
}

struct Lifter<'a> {
    source: &'a Program,
    terms: Terms,
    marks: Marks,
    sizes: NominalSizes,
    counts: Count,
    names: FreshNames,
    extents: FxHashMap<Range, Ix>,
    not_empty: FxHashMap<Range, bool>,
    /// Temporaries by their terms.
    shared: FxHashMap<TermId, Name>,
    bindings: Vec<Binding>,
    report: LiftReport,
    steps: usize,
    splits: u64,
}

/// The enclosing indices of one binding.
#[derive(Default)]
struct IndexScope {
    indices: Vec<Enclosing>,
    entered: FxHashMap<(EnclosingIndex, TermId), usize>,
}

impl IndexScope {
    /// The indices around a place, innermost first.
    fn chain(&self, mut around: EnclosingIndex) -> impl Iterator<Item = usize> {
        std::iter::from_fn(move || {
            let at = around?;
            around = self.indices[at].outer;
            Some(at)
        })
    }

    fn add(&mut self, outer: EnclosingIndex, name: Name, range: &Range) -> usize {
        self.indices.push(Enclosing { outer, name, range: range.clone() });
        self.indices.len() - 1
    }

    /// The index of a reduction or generation at a place: the same one whenever it is entered.
    fn enter(&mut self, outer: EnclosingIndex, binder: TermId, name: Name, range: &Range) -> usize {
        if let Some(index) = self.entered.get(&(outer, binder)) {
            return *index;
        }
        let index = self.add(outer, name, range);
        self.entered.insert((outer, binder), index);
        index
    }
}

impl Lifter<'_> {
    /// The term of a binding with its contractions lifted.
    fn binding(&mut self, binding: &Binding) -> Result<TermId, GivenUp> {
        if !self.marks.treated[binding.term.index()] {
            return Ok(binding.term);
        }
        let source = self.source;
        let (mut scope, mut around, mut term) = (IndexScope::default(), None, binding.term);
        let mut generations = Vec::new();
        while let Term::Gen(name, range, body) = source.terms.get(term) {
            around = Some(scope.enter(around, term, *name, range));
            generations.push((*name, range));
            term = *body;
        }
        let mut result = self.scalar(binding.name, &mut scope, term, around)?;
        for (name, range) in generations.into_iter().rev() {
            result = self.terms.add(Term::Gen(name, range.clone(), result))?;
        }
        Ok(result)
    }

    fn step(&mut self, steps: usize) -> Result<(), GivenUp> {
        self.steps = self.steps.checked_sub(steps).ok_or(GivenUp)?;
        Ok(())
    }

    /// A scalar term with its contractions lifted.
    fn scalar(
        &mut self,
        at: Name,
        scope: &mut IndexScope,
        term: TermId,
        around: EnclosingIndex,
    ) -> Result<TermId, GivenUp> {
        let source = &self.source.terms;
        let mut known: FxHashMap<(TermId, EnclosingIndex), TermId> = FxHashMap::default();
        let mut values: Vec<TermId> = Vec::new();
        let mut tasks = vec![LiftTask::Visit(term, around)];
        while let Some(task) = tasks.pop() {
            self.step(1)?;
            match task {
                LiftTask::Visit(id, _) if !self.marks.treated[id.index()] => values.push(id),
                LiftTask::Visit(id, around) => {
                    if let Some(value) = known.get(&(id, around)) {
                        values.push(*value);
                        continue;
                    }
                    tasks.push(LiftTask::Remember(id, around));
                    let flat = self.marks.contraction[id.index()].then(|| self.flatten(scope, id, around)).flatten();
                    if let Some((flat, parts)) = flat {
                        tasks.push(LiftTask::Contract(Box::new(flat)));
                        tasks.extend(parts.into_iter().rev().map(|(part, around)| LiftTask::Visit(part, around)));
                        continue;
                    }
                    tasks.push(LiftTask::Rebuild(id));
                    let around = match source.get(id) {
                        Term::Reduce(_, name, range, ..) => Some(scope.enter(around, id, *name, range)),
                        _ => around,
                    };
                    tasks.extend(source.get(id).parts().into_iter().rev().map(|part| LiftTask::Visit(part, around)));
                }
                LiftTask::Rebuild(id) => {
                    let term = source.get(id);
                    let mut new = values.split_off(values.len() - term.parts().len()).into_iter();
                    let rebuilt = term.clone().with_parts(|part| new.next().unwrap_or(part));
                    values.push(self.terms.add(rebuilt)?);
                }
                LiftTask::Contract(flat) => {
                    let factors = values.split_off(values.len() - flat.factors.len());
                    values.push(self.contract(at, scope, &flat, &factors)?);
                }
                LiftTask::Remember(id, around) => {
                    known.insert((id, around), *values.last().ok_or(GivenUp)?);
                }
            }
        }
        values.pop().ok_or(GivenUp)
    }

    /// The factors of a contraction and where they stand; none if they are too many.
    fn flatten(
        &mut self,
        scope: &mut IndexScope,
        id: TermId,
        around: EnclosingIndex,
    ) -> Option<(Flat, Vec<(TermId, EnclosingIndex)>)> {
        enum Found {
            Part(TermId, EnclosingIndex),
            End(WrittenNode),
        }
        let mut flat = Flat { around, summed: Vec::new(), factors: Vec::new(), written: Vec::new() };
        let mut parts = Vec::new();
        let mut todo = vec![Found::Part(id, around)];
        while let Some(found) = todo.pop() {
            let (id, around) = match found {
                Found::Part(id, around) => (id, around),
                Found::End(written) => {
                    flat.written.push(written);
                    continue;
                }
            };
            match self.source.terms.get(id) {
                Term::Reduce(_, name, range, _, body) if self.marks.contraction[id.index()] => {
                    let mut index = scope.enter(around, id, *name, range);
                    // The same sum twice, as in `s * c * s`, has two indices.
                    if flat.summed.contains(&index) {
                        index = scope.add(around, *name, range);
                    }
                    flat.summed.push(index);
                    todo.extend([Found::End(WrittenNode::Sum(index)), Found::Part(*body, Some(index))]);
                }
                Term::Binary(Binary::Mul, a, b) if a != b => {
                    todo.extend([Found::End(WrittenNode::Product), Found::Part(*b, around), Found::Part(*a, around)]);
                }
                _ => {
                    flat.factors.push(around);
                    flat.written.push(WrittenNode::Factor);
                    parts.push((id, around));
                }
            }
            if flat.factors.len() > MOST || flat.summed.len() > MOST || todo.len() > 4 * MOST {
                return None;
            }
        }
        Some((flat, parts))
    }

    /// A contraction put together as it was written, with other factors.
    fn as_written(&mut self, scope: &IndexScope, flat: &Flat, factors: &[TermId]) -> Result<TermId, GivenUp> {
        let mut factors = factors.iter();
        let mut values: Vec<TermId> = Vec::new();
        for written in &flat.written {
            let value = match written {
                WrittenNode::Factor => *factors.next().ok_or(GivenUp)?,
                WrittenNode::Product => {
                    let right = values.pop().ok_or(GivenUp)?;
                    let left = values.pop().ok_or(GivenUp)?;
                    self.terms.add(Term::Binary(Binary::Mul, left, right))?
                }
                WrittenNode::Sum(index) => {
                    let Enclosing { name, range, .. } = &scope.indices[*index];
                    let body = values.pop().ok_or(GivenUp)?;
                    self.terms.add(Term::Reduce(ReduceOp::Sum, *name, range.clone(), Cond::always(), body))?
                }
            };
            values.push(value);
        }
        values.pop().ok_or(GivenUp)
    }

    fn extent(&mut self, range: &Range) -> Result<Ix, GivenUp> {
        if let Some(extent) = self.extents.get(range) {
            return Ok(extent.clone());
        }
        let extent = range.extent(self.terms.facts())?;
        self.extents.insert(range.clone(), extent.clone());
        Ok(extent)
    }

    fn is_not_empty(&mut self, range: &Range) -> bool {
        if let Some(known) = self.not_empty.get(range) {
            return *known;
        }
        let shown = Cond::lt(&range.lo, &range.hi).is_ok_and(|goal| self.terms.facts().prove(&goal) == Verdict::Yes);
        self.not_empty.insert(range.clone(), shown);
        shown
    }

    /// Takes back what was lifted since there were so many bindings and contractions.
    fn forget(&mut self, bindings: usize, reported: usize) {
        for binding in self.bindings.drain(bindings..) {
            self.shared.remove(&binding.term);
        }
        self.report.contractions.truncate(reported);
    }

    /// A contraction of these factors, lifted if that lowers the number of multiplications, else as written.
    fn contract(&mut self, at: Name, scope: &IndexScope, flat: &Flat, parts: &[TermId]) -> Result<TermId, GivenUp> {
        let written = self.as_written(scope, flat, parts)?;
        let Ok(once) = self.counts.of(&self.terms, written) else { return Ok(written) };
        if once.as_constant() == Some(0) {
            return Ok(written);
        }
        let Some(sum) = self.einstein(scope, flat, parts)? else { return Ok(written) };
        let Ok(before) = sum.around.iter().try_fold(once, |product, index| product.mul(&index.extent)) else {
            return Ok(written);
        };
        // With nothing summed over a constant, the first two are the last two.
        let elem = self.terms.ty(written).elem;
        let first = if sum.orphans() == 0 { 2 } else { 0 };
        for (multiply, bind) in [(true, true), (true, false), (false, true), (false, false)].into_iter().skip(first) {
            if multiply && sum.factors.len() + sum.orphans().count_ones() as usize > MOST {
                continue;
            }
            let Some(plan) = self.plan(&sum, elem, multiply, bind)? else { continue };
            // A product of two factors is made and added at once: to sum one of them alone saves nothing if a sum may be
            // empty.
            let least = i64::from(sum.factors.len() > 2);
            if self.sizes.nominal(&plan.cost) < self.sizes.nominal(&before)
                && self.sizes.never_more(&before, &plan.cost, least)
                && self.is_safe(&sum, &plan)
            {
                return self.build(at, &sum, &plan, before);
            }
        }
        Ok(written)
    }
}
