//! The prover: is there an assignment of integers that satisfies some conditions?
//!
//! The conditions are those facts that have to do with a goal, and the goal's opposite. Comparisons become rows over
//! unknowns, one unknown for each monomial, so that a product or a quotient is an unknown like any other; quotients,
//! minima and maxima bring rows that define them. [`linear`] refutes the rows or finds a model. Then, as long as the
//! model violates something that the rows do not say yet, that is added: a fact that was kept back; the parts of a
//! disjunction, of a minimum or of a maximum, as cases; a product of two rows. What remains satisfies everything, or
//! there is a refutation, whose [`Witness`] the checker has to accept before anyone hears of it.
//!
//! Guarantees: steps are counted, not timed, so that an answer is the same everywhere.

mod linear;
mod products;
mod row;

use std::collections::BTreeMap;

use certen_syntax::Name;
use rustc_hash::FxHashSet;

use crate::cond::Cond;
use crate::ix::{Atom, Ix, Mono};
use crate::witness::{CaseSplit, Extreme, Reason, Witness};
use linear::Model;
use products::Progress;
use row::{Branch, Closed, Column, Log, Row, RowId};

/// How many steps an answer may take. A step is a sum of two rows or a look at one.
pub(crate) const STEPS: usize = 50_000;

/// How many steps are enough for nearly all questions.
pub(crate) const FEW_STEPS: usize = 4_000;

/// How many steps may be spent on what follows from products: they can be multiplied for ever.
const PRODUCT_STEPS: usize = 15_000;

/// Cases inside each other.
const MAX_CASES: usize = 96;

/// Facts that are comparisons are rows from the start, unless they are more than this: then only as they are needed.
const EAGER: usize = 48;

/// The answer to whether conditions can be satisfied.
pub(crate) enum Answer {
    /// They cannot.
    Refuted(Witness),
    /// They can, here. Names that do not occur can have any value.
    Satisfied(BTreeMap<Name, i64>),
    /// Cannot tell.
    Unknown,
}

/// What became of some rows.
enum Attempt {
    Refuted(Closed),
    Model(Model),
    Unknown,
}

struct Prover<'a> {
    facts: &'a [Cond],
    /// Hypotheses after the facts: what the opposite of the goal says, and what the cases say.
    assumed: Vec<Cond>,
    log: Log,
    steps: usize,
    /// Cases that are open.
    cases: usize,
    /// Those among them that are about a gap between integers.
    branches: usize,
}

/// A case: what is known in it.
#[derive(Clone, Default)]
struct ProverScope {
    rows: Vec<RowId>,
    /// Quotients, minima and maxima whose rows are there.
    defined: FxHashSet<Column>,
    /// Minima and maxima whose cases have been made.
    settled: FxHashSet<Column>,
    /// Hypotheses that are rows already, or whose cases have been made.
    used: FxHashSet<usize>,
    /// Products of rows and monomials that are there.
    products: FxHashSet<(RowId, Mono)>,
}

/// Whether all of the facts at `related`, and the opposite of the goal, can hold, found out in so many steps.
pub(crate) fn satisfy(facts: &[Cond], related: &[usize], opposite: &Cond, steps: usize) -> Answer {
    let mut prover = Prover { facts, assumed: Vec::new(), log: Log::default(), steps, cases: 0, branches: 0 };
    prover.assume(opposite);
    let mut hypotheses: Vec<usize> = (facts.len()..facts.len() + prover.assumed.len()).collect();
    hypotheses.extend(related);
    let mut scope = ProverScope::default();
    for &at in hypotheses.iter().take(EAGER) {
        prover.expand(at, &mut scope);
    }
    match prover.solve(scope, &hypotheses) {
        Attempt::Refuted(end) => {
            let root = prover.log.close(0, 0..0, end).ok();
            root.and_then(|root| prover.log.witness(&root)).map_or(Answer::Unknown, Answer::Refuted)
        }
        Attempt::Model(model) => Answer::Satisfied(prover.named(&model)),
        Attempt::Unknown => Answer::Unknown,
    }
}

impl Prover<'_> {
    fn spend(&mut self, steps: usize) -> bool {
        self.steps = self.steps.saturating_sub(steps);
        self.steps > 0
    }

    fn assume(&mut self, cond: &Cond) {
        match cond {
            Cond::And(all) => self.assumed.extend(all.iter().cloned()),
            other => self.assumed.push(other.clone()),
        }
    }

    fn hypothesis(&self, at: usize) -> &Cond {
        self.facts.get(at).unwrap_or_else(|| &self.assumed[at - self.facts.len()])
    }

    /// Makes rows of a comparison.
    fn expand(&mut self, at: usize, scope: &mut ProverScope) {
        let cond = self.hypothesis(at);
        let (Cond::Ge(e) | Cond::Eq(e)) = cond else { return };
        let (e, both) = (e.clone(), matches!(cond, Cond::Eq(_)));
        scope.used.insert(at);
        let Some(row) = self.log.linear(&e) else { return };
        let opposite = both.then(|| row.negated());
        scope.rows.push(self.log.push(row, Reason::Given(at)));
        scope.rows.extend(opposite.map(|row| self.log.push(row, Reason::Reversed(at))));
        self.define(scope);
    }

    /// Adds the rows that define quotients, minima and maxima of the rows that are there.
    fn define(&mut self, scope: &mut ProverScope) {
        let mut next = 0;
        while let Some(&row) = scope.rows.get(next) {
            next += 1;
            let columns: Vec<Column> = self.log.row(row).terms.iter().map(|(column, _)| *column).collect();
            for column in columns {
                if !scope.defined.insert(column) {
                    continue;
                }
                for atom in self.log.mono(column).clone() {
                    self.define_atom(&atom, scope);
                }
            }
        }
    }

    fn define_atom(&mut self, atom: &Atom, scope: &mut ProverScope) {
        match atom {
            Atom::Var(_) => {}
            Atom::FloorDiv(e, k) => {
                if let Some((below, above)) = self.quotient(e, *k) {
                    scope.rows.extend([below, above]);
                }
            }
            Atom::Min(parts) | Atom::Max(parts) => {
                let extreme = Extreme { max: matches!(atom, Atom::Max(_)), parts: parts.clone() };
                let Some(whole) = Ix::extreme(extreme.max, parts) else { return };
                for (at, part) in parts.iter().enumerate() {
                    let (small, large) = if extreme.max { (part, &whole) } else { (&whole, part) };
                    let Ok(distance) = large.sub(small) else { continue };
                    let Some(row) = self.log.linear(&distance) else { continue };
                    scope.rows.push(self.log.push(row, Reason::Extreme(extreme.clone(), at)));
                }
            }
        }
    }

    /// Refutes what is known in a case together with the hypotheses, or satisfies all of it.
    fn solve(&mut self, mut scope: ProverScope, hypotheses: &[usize]) -> Attempt {
        loop {
            let start = self.log.len();
            let model = match self.linear(scope.rows.clone()) {
                Attempt::Model(model) => model,
                other => return other,
            };
            self.log.truncate(start);
            if let Some((column, extreme)) = self.unsettled(&scope, &model) {
                scope.settled.insert(column);
                return self.reached_cases(extreme, &scope, hypotheses);
            }
            let names = self.named(&model);
            let value = |name: Name| names.get(&name).copied().or(Some(0));
            // Facts that are violated and not said yet; the nearest come first, and are enough.
            let (mut unsaid, mut misunderstood) = (Vec::new(), false);
            for &at in hypotheses {
                if !self.spend(1) {
                    return Attempt::Unknown;
                }
                let hypothesis = self.hypothesis(at);
                if hypothesis.eval(&value) == Ok(true) {
                    continue;
                }
                if scope.used.contains(&at) {
                    misunderstood = true;
                    continue;
                }
                if matches!(hypothesis, Cond::Ge(_) | Cond::Eq(_)) {
                    unsaid.push(at);
                } else if unsaid.is_empty() {
                    return self.either_cases(at, &scope, hypotheses, &model);
                }
                if unsaid.len() == EAGER {
                    break;
                }
            }
            if unsaid.is_empty() {
                if !misunderstood {
                    return Attempt::Model(model);
                }
                // The opposite of an equality is two cases, in each of which products have more to say.
                let is_open = |at: &usize| *at >= self.facts.len() && !scope.used.contains(at);
                if let Some(open) = hypotheses.iter().copied().find(is_open) {
                    return self.either_cases(open, &scope, hypotheses, &model);
                }
                self.steps = self.steps.min(PRODUCT_STEPS);
                match self.multiply(&mut scope) {
                    Progress::Rows => {}
                    Progress::Cases(row) => {
                        return self.sign_cases(&row, |prover, id| {
                            let mut scope = scope.clone();
                            scope.rows.push(id);
                            prover.solve(scope, hypotheses)
                        });
                    }
                    Progress::None => return Attempt::Unknown,
                }
            }
            unsaid.into_iter().for_each(|at| self.expand(at, &mut scope));
        }
    }

    /// A minimum or maximum that the model does not know to be one of its parts.
    fn unsettled(&mut self, scope: &ProverScope, model: &Model) -> Option<(Column, Extreme)> {
        let value = |column: Column| model.get(&column).copied().unwrap_or(0);
        let mut columns: Vec<Column> = scope.defined.iter().copied().collect();
        columns.sort_unstable();
        for column in columns {
            for atom in self.log.mono(column).clone() {
                let (Atom::Min(parts) | Atom::Max(parts)) = &atom else { continue };
                let extreme = Extreme { max: matches!(atom, Atom::Max(_)), parts: parts.clone() };
                let own = self.log.column(&Mono::from_iter([atom.clone()]));
                if scope.settled.contains(&own) {
                    continue;
                }
                let reached = parts.iter().any(|part| {
                    let row = self.log.linear(part);
                    row.and_then(|row| row.eval(value)) == Some(value(own).into())
                });
                if !reached {
                    return Some((own, extreme));
                }
            }
        }
        None
    }

    fn reached_cases(&mut self, extreme: Extreme, scope: &ProverScope, hypotheses: &[usize]) -> Attempt {
        let Some(whole) = Ix::extreme(extreme.max, &extreme.parts) else { return Attempt::Unknown };
        let reached = |part| if extreme.max { Cond::le(&whole, part) } else { Cond::le(part, &whole) };
        match extreme.parts.iter().map(reached).collect::<Result<Vec<_>, _>>() {
            Ok(alternatives) => self.cases(CaseSplit::Reached(extreme), &alternatives, scope, hypotheses),
            Err(_) => Attempt::Unknown,
        }
    }

    fn either_cases(&mut self, at: usize, scope: &ProverScope, hypotheses: &[usize], model: &Model) -> Attempt {
        let Cond::Or(any) = self.hypothesis(at).clone() else { return Attempt::Unknown };
        let mut scope = scope.clone();
        let hull = self.hull(&any, model);
        scope.used.insert(at);
        if let Some(row) = hull {
            // Outside all alternatives there is none, which leaves one case instead of many.
            return self.sign_cases(&row, |prover, id| {
                let mut scope = scope.clone();
                scope.rows.push(id);
                if *prover.log.row(id) != row {
                    return prover.cases(CaseSplit::Either(at), &any, &scope, hypotheses);
                }
                scope.used.remove(&at);
                prover.solve(scope, hypotheses)
            });
        }
        self.cases(CaseSplit::Either(at), &any, &scope, hypotheses)
    }

    /// Where all alternatives are equalities about one expression, `e == 1 || e == 4`, and the model's e is outside
    /// them: the row `e - 1`, or `4 - e`, that is at least zero in each.
    fn hull(&mut self, any: &[Cond], model: &Model) -> Option<Row> {
        let mut rows = Vec::with_capacity(any.len());
        for cond in any {
            let Cond::Eq(e) = cond else { return None };
            rows.push(self.log.linear(e)?);
        }
        let terms = rows.first()?.terms.clone();
        if rows.iter().any(|row| row.terms != terms) {
            return None;
        }
        let value = |column: Column| model.get(&column).copied().unwrap_or(0);
        let most = rows.iter().map(|row| row.constant).max()?;
        let low = Row { terms: terms.clone(), constant: most };
        let least = rows.iter().map(|row| row.constant).min()?;
        let high = Row { terms, constant: least }.negated();
        [low, high].into_iter().find(|row| row.eval(value).is_some_and(|value| value < 0))
    }

    /// Refutes every alternative, or satisfies one.
    fn cases(&mut self, split: CaseSplit, alternatives: &[Cond], scope: &ProverScope, hypotheses: &[usize]) -> Attempt {
        let mut branches = Vec::with_capacity(alternatives.len());
        let mut unknown = false;
        for alternative in alternatives {
            let outcome = self.case(alternative.clone(), |prover, given| {
                let mut scope = scope.clone();
                let own: Vec<usize> = (given..prover.facts.len() + prover.assumed.len()).collect();
                own.iter().for_each(|&at| prover.expand(at, &mut scope));
                let hypotheses: Vec<usize> = own.into_iter().chain(hypotheses.iter().copied()).collect();
                prover.solve(scope, &hypotheses)
            });
            match outcome {
                Ok(branch) => branches.push(branch),
                Err(Attempt::Unknown) => unknown = true,
                Err(other) => return other,
            }
        }
        if unknown { Attempt::Unknown } else { Attempt::Refuted(Closed::Cases(split, branches)) }
    }

    /// Solves under a further hypothesis; `solve` gets its number. A refutation takes its rows with it; one that does
    /// not need the hypothesis is one of what is around.
    fn case(&mut self, cond: Cond, solve: impl FnOnce(&mut Self, usize) -> Attempt) -> Result<Branch, Attempt> {
        if self.cases == MAX_CASES || !self.spend(1) {
            return Err(Attempt::Unknown);
        }
        let (start, assumed) = (self.log.len(), self.assumed.len());
        self.cases += 1;
        self.assume(&cond);
        let given = self.facts.len() + assumed..self.facts.len() + self.assumed.len();
        let outcome = solve(self, given.start);
        self.assumed.truncate(assumed);
        self.cases -= 1;
        match outcome {
            Attempt::Refuted(end) => self.log.close(start, given, end).map_err(Attempt::Refuted),
            other => {
                self.log.truncate(start);
                Err(other)
            }
        }
    }

    /// The values of names in a model.
    fn named(&self, model: &Model) -> BTreeMap<Name, i64> {
        let name = |(column, value): (&Column, &i64)| match self.log.mono(*column).as_slice() {
            [Atom::Var(name)] => Some((*name, *value)),
            _ => None,
        };
        model.iter().filter_map(name).collect()
    }
}
