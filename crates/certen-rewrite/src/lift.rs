//! Lifting: nested contractions become a sequence of bindings of single contractions (TeIL, Sec. 5).
//!
//! Each maximal sum of products is read as an Einstein sum: `sum k. x * (sum l. y)` is `sum k, l. x * y`, its factors
//! depend on sets of indices. [`order`](crate::order) finds the order of pairwise contractions with the fewest
//! multiplications; each inner one becomes a binding of its own before the current one, the last one stays in place. A
//! contraction that stands inside a reduction or generation on whose index it does not depend is bound once. Everything
//! that is not a product or a sum is an opaque factor; contractions inside of one are lifted first.
//!
//! Needs: a program that [`Program::check`] accepts; elements of a commutative ring. Guarantees: the same values; never
//! more multiplications ([`Program::multiplications`]), for all sizes, and an unchanged term where fewer are not shown; no
//! read leaves an `if`, `guard`, condition, `let` or iteration, nor a range that is not known to be non-empty unless it is
//! in bounds without; equal temporaries are one. Works in time linear in the program, apart from the search for orders,
//! within a number of steps.

use certen_core::{
    Binary, Binding, Count, ElemType, Program, Range, ReduceOp, TensorType, Term, TermId, Terms, TypeError, print_term,
};
use certen_index::{Cond, Ix, IxError, Verdict};
use certen_syntax::Name;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::free::{mentioned, names_of_range, reads_stand_alone, rename, with_operands};
use crate::order::{Factor, MOST, Node, Problem, Set, elements};
use crate::report::{Contraction, Report};
use crate::sizes::Sizes;

/// A program with its contractions lifted.
#[derive(Clone, Debug)]
pub struct Lifted {
    /// The program; what no contraction was lifted from is as it was.
    pub program: Program,
    /// What was lifted.
    pub report: Report,
}

/// How many pairs of operands all exact searches of a program may look at; greedy searches follow.
const SPLITS: u64 = 30_000_000;

/// Lifts the contractions of a program.
pub fn lift(program: &Program) -> Lifted {
    let unchanged = || Lifted { program: program.clone(), report: Report::default() };
    let marks = Marks::new(program);
    if !program.bindings.iter().any(|binding| marks.treated[binding.term.index()]) {
        return unchanged();
    }
    let Some(sizes) = Sizes::new(program) else { return unchanged() };
    let mut lifter = Lifter {
        source: program,
        terms: program.terms.clone(),
        marks,
        sizes,
        counts: Count::multiplications(),
        names: Names {
            taken: all_names(program),
            kept: Vec::new(),
            summed: Vec::new(),
            temporaries: 0,
            copies: FxHashMap::default(),
        },
        extents: FxHashMap::default(),
        not_empty: FxHashMap::default(),
        shared: FxHashMap::default(),
        bindings: Vec::with_capacity(program.bindings.len()),
        report: Report::default(),
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

/// Every name that the program uses for anything.
fn all_names(program: &Program) -> FxHashSet<Name> {
    let mut names: FxHashSet<Name> = program.sizes.iter().copied().collect();
    names.extend(program.inputs.iter().map(|p| p.name));
    names.extend(program.bindings.iter().map(|b| b.name));
    names.extend(program.outputs.iter().map(|(name, _)| *name));
    for (_, term) in program.terms.iter() {
        match term {
            Term::Ref(name, _) | Term::Gen(name, ..) | Term::Reduce(_, name, ..) | Term::Let(name, ..) => {
                names.insert(*name);
            }
            Term::Iterate(_, states, _) => names.extend(states.iter().map(|state| state.name)),
            _ => {}
        }
    }
    names
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
                Term::Binary(Binary::Mul, a, b) => (of(a) || of(b), inside(a) || inside(b)),
                Term::Unary(..) | Term::Binary(..) | Term::Choose(..) | Term::Cast(..) => {
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
struct Names {
    taken: FxHashSet<Name>,
    kept: Vec<Name>,
    summed: Vec<Name>,
    temporaries: u64,
    copies: FxHashMap<Name, u64>,
}

impl Names {
    /// The nth name of a list of index names: the same in every temporary, so that equal ones are equal terms.
    fn nth(taken: &mut FxHashSet<Name>, list: &mut Vec<Name>, base: &str, n: usize) -> Name {
        while list.len() <= n {
            let name = Name::fresh(&format!("{base}{}", list.len() + 1), |name| taken.contains(&name));
            taken.insert(name);
            list.push(name);
        }
        list[n]
    }

    fn kept(&mut self, n: usize) -> Name {
        Names::nth(&mut self.taken, &mut self.kept, "j", n)
    }

    fn summed(&mut self, n: usize) -> Name {
        Names::nth(&mut self.taken, &mut self.summed, "l", n)
    }

    /// A name like another one, given once.
    fn copy(&mut self, of: Name) -> Name {
        let count = self.copies.entry(of).or_insert(0);
        loop {
            *count += 1;
            let name = Name::new(&format!("{of}_{count}"));
            if self.taken.insert(name) {
                return name;
            }
        }
    }

    fn temporary(&mut self) -> Name {
        loop {
            self.temporaries += 1;
            let name = Name::new(&format!("t{}", self.temporaries));
            if self.taken.insert(name) {
                return name;
            }
        }
    }
}

/// An index that is bound around a term, inside of others.
struct Enclosing {
    outer: Around,
    name: Name,
    range: Range,
}

/// A place in the list of enclosing indices; none is outside of all.
type Around = Option<usize>;

/// A contraction read as factors: what was found on the way, in postfix order, so that it can be put together as written.
struct Flat {
    around: Around,
    summed: Vec<usize>,
    /// The enclosing indices of each factor.
    factors: Vec<Around>,
    written: Vec<Written>,
}

impl Flat {
    /// The products as written, as sets of factors.
    fn products(&self) -> Vec<Set> {
        let (mut factors, mut products) = (0, Vec::new());
        let mut sets: Vec<Set> = Vec::new();
        for written in &self.written {
            match written {
                Written::Factor => {
                    sets.push(1 << factors);
                    factors += 1;
                }
                Written::Product => {
                    let both = sets.pop().unwrap_or(0) | sets.pop().unwrap_or(0);
                    sets.push(both);
                    products.push(both);
                }
                Written::Sum(_) => {}
            }
        }
        products
    }
}

enum Written {
    Factor,
    Product,
    Sum(usize),
}

enum Task {
    Visit(TermId, Around),
    Rebuild(TermId),
    Contract(Box<Flat>),
    Remember(TermId, Around),
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
    sizes: Sizes,
    counts: Count,
    names: Names,
    extents: FxHashMap<Range, Ix>,
    not_empty: FxHashMap<Range, bool>,
    /// Temporaries by their terms.
    shared: FxHashMap<TermId, Name>,
    bindings: Vec<Binding>,
    report: Report,
    steps: usize,
    splits: u64,
}

/// The enclosing indices of one binding.
#[derive(Default)]
struct Scope {
    indices: Vec<Enclosing>,
    entered: FxHashMap<(Around, TermId), usize>,
}

impl Scope {
    /// The indices around a place, innermost first.
    fn chain(&self, mut around: Around) -> impl Iterator<Item = usize> {
        std::iter::from_fn(move || {
            let at = around?;
            around = self.indices[at].outer;
            Some(at)
        })
    }

    fn add(&mut self, outer: Around, name: Name, range: &Range) -> usize {
        self.indices.push(Enclosing { outer, name, range: range.clone() });
        self.indices.len() - 1
    }

    /// The index of a reduction or generation at a place: the same one whenever it is entered.
    fn enter(&mut self, outer: Around, binder: TermId, name: Name, range: &Range) -> usize {
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
        let (mut scope, mut around, mut term) = (Scope::default(), None, binding.term);
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
    fn scalar(&mut self, at: Name, scope: &mut Scope, term: TermId, around: Around) -> Result<TermId, GivenUp> {
        let source = &self.source.terms;
        let mut known: FxHashMap<(TermId, Around), TermId> = FxHashMap::default();
        let mut values: Vec<TermId> = Vec::new();
        let mut tasks = vec![Task::Visit(term, around)];
        while let Some(task) = tasks.pop() {
            self.step(1)?;
            match task {
                Task::Visit(id, _) if !self.marks.treated[id.index()] => values.push(id),
                Task::Visit(id, around) => {
                    if let Some(value) = known.get(&(id, around)) {
                        values.push(*value);
                        continue;
                    }
                    tasks.push(Task::Remember(id, around));
                    let flat = self.marks.contraction[id.index()].then(|| self.flatten(scope, id, around)).flatten();
                    if let Some((flat, parts)) = flat {
                        tasks.push(Task::Contract(Box::new(flat)));
                        tasks.extend(parts.into_iter().rev().map(|(part, around)| Task::Visit(part, around)));
                        continue;
                    }
                    tasks.push(Task::Rebuild(id));
                    let around = match source.get(id) {
                        Term::Reduce(_, name, range, ..) => Some(scope.enter(around, id, *name, range)),
                        _ => around,
                    };
                    tasks.extend(source.get(id).parts().into_iter().rev().map(|part| Task::Visit(part, around)));
                }
                Task::Rebuild(id) => {
                    let term = source.get(id);
                    let parts = term.parts();
                    let new = values.split_off(values.len() - parts.len());
                    let of = |part: &TermId| parts.iter().position(|p| p == part).map_or(*part, |at| new[at]);
                    let rebuilt = match term {
                        Term::Reduce(op, name, range, cond, body) => {
                            Term::Reduce(*op, *name, range.clone(), cond.clone(), of(body))
                        }
                        other => with_operands(other, &of).ok_or(GivenUp)?,
                    };
                    values.push(self.terms.add(rebuilt)?);
                }
                Task::Contract(flat) => {
                    let factors = values.split_off(values.len() - flat.factors.len());
                    values.push(self.contract(at, scope, &flat, &factors)?);
                }
                Task::Remember(id, around) => {
                    known.insert((id, around), *values.last().ok_or(GivenUp)?);
                }
            }
        }
        values.pop().ok_or(GivenUp)
    }

    /// The factors of a contraction and where they stand; none if they are too many.
    fn flatten(&mut self, scope: &mut Scope, id: TermId, around: Around) -> Option<(Flat, Vec<(TermId, Around)>)> {
        enum Found {
            Part(TermId, Around),
            End(Written),
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
                    // The same sum twice, as in a square, has two indices.
                    if flat.summed.contains(&index) {
                        index = scope.add(around, *name, range);
                    }
                    flat.summed.push(index);
                    todo.extend([Found::End(Written::Sum(index)), Found::Part(*body, Some(index))]);
                }
                Term::Binary(Binary::Mul, a, b) => {
                    todo.extend([Found::End(Written::Product), Found::Part(*b, around), Found::Part(*a, around)]);
                }
                _ => {
                    flat.factors.push(around);
                    flat.written.push(Written::Factor);
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
    fn as_written(&mut self, scope: &Scope, flat: &Flat, factors: &[TermId]) -> Result<TermId, GivenUp> {
        let mut factors = factors.iter();
        let mut values: Vec<TermId> = Vec::new();
        for written in &flat.written {
            let value = match written {
                Written::Factor => *factors.next().ok_or(GivenUp)?,
                Written::Product => {
                    let right = values.pop().ok_or(GivenUp)?;
                    let left = values.pop().ok_or(GivenUp)?;
                    self.terms.add(Term::Binary(Binary::Mul, left, right))?
                }
                Written::Sum(index) => {
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
    fn contract(&mut self, at: Name, scope: &Scope, flat: &Flat, parts: &[TermId]) -> Result<TermId, GivenUp> {
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
            if self.sizes.nominal(&plan.cost) < self.sizes.nominal(&before)
                && self.sizes.never_more(&before, &plan.cost)
                && self.is_safe(&sum, &plan)
            {
                return self.build(at, &sum, &plan, before);
            }
        }
        Ok(written)
    }

    /// The contraction as an Einstein sum; none if it has too many indices.
    fn einstein(&mut self, scope: &Scope, flat: &Flat, parts: &[TermId]) -> Result<Option<Sum>, GivenUp> {
        let mut sum = Sum { products: flat.products(), ..Sum::default() };
        let mut places: FxHashMap<usize, usize> = FxHashMap::default();
        let mut used: FxHashSet<Name> = FxHashSet::default();
        for index in scope.chain(flat.around) {
            let Enclosing { name, range, .. } = &scope.indices[index];
            used.insert(*name);
            sum.around.push(Index { name: *name, range: range.clone(), extent: self.extent(range)? });
        }
        for &index in &flat.summed {
            let Enclosing { name, range, .. } = &scope.indices[index];
            if sum.indices.len() == MOST {
                return Ok(None);
            }
            let name = if used.insert(*name) { *name } else { self.names.copy(*name) };
            places.insert(index, sum.indices.len());
            sum.indices.push(Index { name, range: range.clone(), extent: self.extent(range)? });
        }
        for (&part, &around) in parts.iter().zip(&flat.factors) {
            let (names, steps) = mentioned(&self.terms, part, self.steps).ok_or(GivenUp)?;
            self.step(steps)?;
            let (mut order, mut to) = (Vec::new(), FxHashMap::default());
            for name in names {
                let Some(index) = scope.chain(around).find(|index| scope.indices[*index].name == name) else {
                    continue;
                };
                let place = match places.get(&index) {
                    Some(place) => *place,
                    None if sum.indices.len() == MOST => return Ok(None),
                    None => {
                        let range = &scope.indices[index].range;
                        sum.kept |= 1 << sum.indices.len();
                        places.insert(index, sum.indices.len());
                        sum.indices.push(Index { name, range: range.clone(), extent: self.extent(range)? });
                        sum.indices.len() - 1
                    }
                };
                to.insert(name, sum.indices[place].name);
                order.push(place);
            }
            let under = scope.chain(around).take_while(|index| Some(*index) != flat.around);
            let under = under.filter_map(|index| places.get(&index)).fold(0, |set, place| set | 1 << place);
            let term = rename(&mut self.terms, part, &to)?;
            let Ok(inner) = self.counts.of(&self.terms, term) else { return Ok(None) };
            sum.factors.push(Part { term, order, inner, under });
        }
        let kept: Vec<Name> = elements(sum.kept).map(|place| sum.indices[place].name).collect();
        sum.outside = sum.around.iter().filter(|index| !kept.contains(&index.name)).cloned().collect();
        Ok(Some(sum))
    }

    /// The best way to compute a contraction, and what it costs. Sums over what no factor depends on become factors with
    /// `multiply`, else they stay around the rest. With `bind`, the result is bound too, where it would be recomputed.
    fn plan(&mut self, sum: &Sum, elem: ElemType, multiply: bool, bind: bool) -> Result<Option<Plan>, GivenUp> {
        let orphans = sum.orphans();
        let mut factors = sum.factors.clone();
        let mut again: Vec<Ix> = sum.outside.iter().map(|index| index.extent.clone()).collect();
        for place in elements(orphans) {
            let extent = sum.indices[place].extent.clone();
            if multiply {
                let term = self.terms.add(Term::Index(extent, elem))?;
                factors.push(Part { term, order: Vec::new(), inner: Ix::from(0), under: 0 });
            } else {
                again.push(extent);
            }
        }
        if bind && again.iter().all(|size| self.sizes.nominal(size) <= 1) {
            return Ok(None);
        }
        let problem = Problem {
            sizes: sum.indices.iter().map(|index| self.sizes.nominal(&index.extent)).collect(),
            kept: sum.kept,
            factors: factors
                .iter()
                .map(|part| Factor { indices: part.indices(), inner: self.sizes.nominal(&part.inner) })
                .collect(),
            written: sum.products.clone(),
        };
        let nodes = problem.best(&mut self.splits);
        let mut plan = Plan { factors, nodes, sets: Vec::new(), open: Vec::new(), cost: Ix::from(0), multiply, bind };
        for (at, node) in plan.nodes.iter().enumerate() {
            let set = match node {
                Node::Leaf(factor) => 1 << factor,
                Node::Pair(a, b) => plan.sets[*a] | plan.sets[*b],
            };
            plan.sets.push(set);
            plan.open.push(problem.open(set));
            let is_root = at + 1 == plan.nodes.len();
            let product = |set: Set| elements(set).try_fold(Ix::from(1), |p, place| p.mul(&sum.indices[place].extent));
            let cost = || -> Result<Ix, IxError> {
                // What is evaluated in place, and what is bound before.
                let (mut inline, mut bound) = (Ix::from(0), Ix::from(0));
                match *node {
                    Node::Leaf(factor) if is_root => {
                        let part = &plan.factors[factor];
                        inline = product(part.indices())?.mul(&part.inner)?;
                    }
                    Node::Leaf(_) => {}
                    Node::Pair(a, b) => {
                        let indices = plan.open[a] | plan.open[b];
                        let times = product(indices)?;
                        inline = inline.add(&times)?;
                        for side in [a, b] {
                            let Node::Leaf(factor) = plan.nodes[side] else { continue };
                            let part = &plan.factors[factor];
                            match plan.open[side] {
                                open if open == part.indices() => inline = inline.add(&times.mul(&part.inner)?)?,
                                open => {
                                    let cost = product(part.indices())?.mul(&part.inner)?;
                                    let target = if open == indices { &mut inline } else { &mut bound };
                                    *target = target.add(&cost)?;
                                }
                            }
                        }
                    }
                }
                if is_root && !bind {
                    inline = again.iter().try_fold(inline, |cost, size| cost.mul(size))?;
                }
                inline.add(&bound)
            };
            match cost().and_then(|cost| plan.cost.add(&cost)) {
                Ok(cost) => plan.cost = cost,
                Err(_) => return Ok(None),
            }
        }
        Ok(Some(plan))
    }

    /// Whether every read stays under indices that make it safe: those around it as written that are not around it any
    /// more have ranges that are not empty, or the read is in bounds without them.
    fn is_safe(&mut self, sum: &Sum, plan: &Plan) -> bool {
        let root = plan.nodes.len() - 1;
        for (at, node) in plan.nodes.iter().enumerate() {
            let (indices, sides) = match *node {
                Node::Pair(a, b) => (plan.open[a] | plan.open[b], vec![a, b]),
                Node::Leaf(_) if at == root => (plan.open[at], vec![at]),
                Node::Leaf(_) => continue,
            };
            let in_place = at == root && !plan.bind;
            for side in sides {
                let Node::Leaf(factor) = plan.nodes[side] else { continue };
                let part = &plan.factors[factor];
                let own = part.indices();
                let summed_before = own != plan.open[side];
                let is_bound = !in_place || (summed_before && plan.open[side] != indices);
                let now = if summed_before && plan.open[side] != indices { own } else { own | indices };
                let now = if is_bound { now } else { now | sum.kept };
                let gone = elements((part.under | sum.kept) & !now).map(|place| &sum.indices[place]);
                let gone = gone.chain(sum.outside.iter().filter(|_| is_bound));
                let safe =
                    gone.map(|index| index.range.clone()).collect::<Vec<_>>().iter().all(|r| self.is_not_empty(r));
                let ranges = || elements(now).map(|p| (sum.indices[p].name, sum.indices[p].range.clone())).collect();
                if !safe && !reads_stand_alone(&self.terms, part.term, &ranges()) {
                    return false;
                }
            }
        }
        true
    }

    /// Binds the temporaries of a plan; gives the term that stands in place of the contraction.
    fn build(&mut self, at: Name, sum: &Sum, plan: &Plan, before: Ix) -> Result<TermId, GivenUp> {
        let mut order = Vec::new();
        let mut operands: Vec<Operand> = Vec::new();
        let root = plan.nodes.len() - 1;
        let mut result = None;
        for (node, shape) in plan.nodes.iter().enumerate() {
            let (sides, indices) = match *shape {
                Node::Leaf(factor) => {
                    operands.push(Operand::Factor(factor, 0));
                    if node != root {
                        continue;
                    }
                    (vec![Operand::Factor(factor, 0)], plan.factors[factor].indices())
                }
                Node::Pair(a, b) => {
                    let indices = plan.open[a] | plan.open[b];
                    let mut sides = Vec::new();
                    for side in [a, b] {
                        sides.push(match &operands[side] {
                            Operand::Factor(factor, _) => {
                                let first = plan.factors[*factor].indices() & !plan.open[side];
                                let factor = Operand::Factor(*factor, first);
                                if first == 0 || plan.open[side] == indices {
                                    factor
                                } else {
                                    let Operand::Factor(number, first) = factor else { return Err(GivenUp) };
                                    self.bind(sum, plan, &[Operand::Factor(number, 0)], first, &mut order)?
                                }
                            }
                            bound => bound.clone(),
                        });
                    }
                    (sides, indices)
                }
            };
            let summed = indices & !plan.open[node];
            if node == root && !plan.bind {
                let own = |place: usize| sum.indices[place].name;
                order.push(format!("{at} = {}", self.words(sum, plan, &sides, summed)));
                result = Some(self.body(sum, plan, &sides, summed, &own)?);
            } else {
                let bound = self.bind(sum, plan, &sides, summed, &mut order)?;
                operands.push(bound);
            }
        }
        let own = |place: usize| sum.indices[place].name;
        let mut term = match result {
            Some(term) => term,
            None => {
                let bound = operands.last().cloned().ok_or(GivenUp)?;
                self.operand(sum, plan, &bound, &own)?
            }
        };
        if !plan.multiply {
            term = self.sums(sum, term, &elements(sum.orphans()).collect::<Vec<_>>(), &own)?;
        }
        let factors = sum.factors.iter().map(|part| self.shown(part.term)).collect();
        let after = plan.cost.clone();
        self.report.contractions.push(Contraction { binding: at, factors, order, before, after });
        Ok(term)
    }

    /// Binds the sum of a product to a new name, or finds the equal one that is there.
    fn bind(
        &mut self,
        sum: &Sum,
        plan: &Plan,
        sides: &[Operand],
        summed: Set,
        order: &mut Vec<String>,
    ) -> Result<Operand, GivenUp> {
        let places = |side: &Operand| match side {
            Operand::Factor(factor, _) => plan.factors[*factor].order.clone(),
            Operand::Bound(_, _, kept) => kept.clone(),
        };
        let (mut kept, mut names) = (Vec::new(), FxHashMap::default());
        for place in sides.iter().flat_map(places) {
            if names.contains_key(&place) {
                continue;
            }
            let before = sides.iter().fold(summed, |set, side| match side {
                Operand::Factor(_, first) => set | first,
                Operand::Bound(..) => set,
            });
            if before >> place & 1 == 1 {
                names.insert(place, self.names.summed(names.len() - kept.len()));
            } else {
                names.insert(place, self.names.kept(kept.len()));
                kept.push(place);
            }
        }
        let own = |place: usize| names.get(&place).copied().unwrap_or(sum.indices[place].name);
        let mut term = self.body(sum, plan, sides, summed, &own)?;
        for place in kept.iter().rev() {
            term = self.terms.add(Term::Gen(own(*place), sum.indices[*place].range.clone(), term))?;
        }
        let name = match self.shared.get(&term) {
            Some(name) => *name,
            None => {
                let name = self.names.temporary();
                self.shared.insert(term, name);
                self.bindings.push(Binding { name, term });
                name
            }
        };
        order.push(format!("{name} = {}", self.words(sum, plan, sides, summed)));
        Ok(Operand::Bound(name, self.terms.ty(term).clone(), kept))
    }

    /// The sum of a product of operands.
    fn body(
        &mut self,
        sum: &Sum,
        plan: &Plan,
        sides: &[Operand],
        summed: Set,
        names: &impl Fn(usize) -> Name,
    ) -> Result<TermId, GivenUp> {
        let mut product = None;
        for side in sides {
            let term = self.operand(sum, plan, side, names)?;
            product = Some(match product {
                None => term,
                Some(left) => self.terms.add(Term::Binary(Binary::Mul, left, term))?,
            });
        }
        self.sums(sum, product.ok_or(GivenUp)?, &elements(summed).collect::<Vec<_>>(), names)
    }

    fn operand(
        &mut self,
        sum: &Sum,
        plan: &Plan,
        side: &Operand,
        names: &impl Fn(usize) -> Name,
    ) -> Result<TermId, GivenUp> {
        match side {
            Operand::Factor(factor, first) => {
                let Part { term, order, .. } = &plan.factors[*factor];
                let to = order.iter().map(|place| (sum.indices[*place].name, names(*place))).collect();
                let term = rename(&mut self.terms, *term, &to)?;
                self.sums(sum, term, &elements(*first).collect::<Vec<_>>(), names)
            }
            Operand::Bound(name, ty, kept) => {
                let read = |place: &usize| Ix::var(names(*place)).sub(&sum.indices[*place].range.lo);
                let indices = kept.iter().map(read).collect::<Result<Vec<_>, _>>()?;
                Ok(self.terms.element(*name, ty.clone(), indices)?)
            }
        }
    }

    /// A term summed over indices, the first one outermost.
    fn sums(
        &mut self,
        sum: &Sum,
        mut term: TermId,
        places: &[usize],
        names: &impl Fn(usize) -> Name,
    ) -> Result<TermId, GivenUp> {
        for place in places.iter().rev() {
            let range = sum.indices[*place].range.clone();
            term = self.terms.add(Term::Reduce(ReduceOp::Sum, names(*place), range, Cond::always(), term))?;
        }
        Ok(term)
    }

    /// One step of an order in words: `C u over c`.
    fn words(&self, sum: &Sum, plan: &Plan, sides: &[Operand], summed: Set) -> String {
        let list =
            |set: Set| elements(set).map(|place| sum.indices[place].name.as_str()).collect::<Vec<_>>().join(", ");
        let side = |side: &Operand| match side {
            Operand::Factor(factor, 0) => self.shown(plan.factors[*factor].term),
            Operand::Factor(factor, first) => {
                format!("({} over {})", self.shown(plan.factors[*factor].term), list(*first))
            }
            Operand::Bound(name, ..) => name.to_string(),
        };
        let product = sides.iter().map(side).collect::<Vec<_>>().join(" ");
        if summed == 0 { product } else { format!("{product} over {}", list(summed)) }
    }

    /// A factor for people: a tensor by its name, something larger only if it is short.
    fn shown(&self, term: TermId) -> String {
        match self.terms.get(term) {
            Term::Ref(name, _) => name.to_string(),
            Term::Select(tensor, _) => self.shown_whole(*tensor),
            _ => self.shown_whole(term),
        }
    }

    fn shown_whole(&self, term: TermId) -> String {
        let mut todo = vec![term];
        let mut seen = 0;
        while let Some(id) = todo.pop() {
            seen += 1;
            if seen > SHOWN_PARTS {
                return "(…)".into();
            }
            todo.extend(self.terms.get(id).parts());
        }
        let text = print_term(&self.terms, term);
        if text.contains(' ') { format!("({text})") } else { text }
    }
}

/// Factors of more parts than this are not shown in reports.
const SHOWN_PARTS: usize = 12;

/// An index of a contraction.
#[derive(Clone)]
struct Index {
    name: Name,
    range: Range,
    extent: Ix,
}

/// A factor of a contraction.
#[derive(Clone)]
struct Part {
    term: TermId,
    /// The indices that it depends on, in the order of their first occurrence.
    order: Vec<usize>,
    /// The multiplications of one evaluation.
    inner: Ix,
    /// The sums that it stands under as written.
    under: Set,
}

impl Part {
    fn indices(&self) -> Set {
        self.order.iter().fold(0, |set, place| set | 1 << place)
    }
}

/// A contraction as an Einstein sum.
#[derive(Default)]
struct Sum {
    indices: Vec<Index>,
    /// The indices that are bound around it; the others are summed.
    kept: Set,
    factors: Vec<Part>,
    /// The products as written, as sets of factors.
    products: Vec<Set>,
    /// Everything that is bound around it.
    around: Vec<Index>,
    /// What is bound around it that it does not depend on.
    outside: Vec<Index>,
}

impl Sum {
    /// Summed indices that no factor depends on.
    fn orphans(&self) -> Set {
        let all = (0..self.indices.len()).fold(0, |set, place| set | 1 << place);
        let used = self.factors.iter().fold(self.kept, |set, part| set | part.indices());
        all & !used
    }
}

/// A way to compute a contraction.
struct Plan {
    factors: Vec<Part>,
    nodes: Vec<Node>,
    /// The factors of each node, and the indices that are left in it.
    sets: Vec<Set>,
    open: Vec<Set>,
    cost: Ix,
    multiply: bool,
    bind: bool,
}

/// What is multiplied: a factor, summed first over some of its indices, or a temporary with the indices of its
/// dimensions.
#[derive(Clone)]
enum Operand {
    Factor(usize, Set),
    Bound(Name, TensorType, Vec<usize>),
}

#[cfg(test)]
mod tests;
