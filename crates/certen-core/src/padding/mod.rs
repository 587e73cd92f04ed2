//! Padding: which elements of a tensor nothing computes, and whether truncations cut only those.
//!
//! A truncation leaves the computation of what it cuts untouched and takes the memory away, so it is only legal where
//! nothing is stored (ATL, Sec. 5; rules TruncLPad and TruncRPad of Fig. 5). An element is *padding* where no store
//! computes it: guards that are false, the rows of pads, what a split adds to its last block, and sums of nothing but
//! padding. Everything that only moves elements carries padding along; a scalar operation, a constant, an input or an
//! iteration is never padding, even if its value is zero.
//!
//! The paper abstracts this by pad types and infers them. Here the predicate itself is asked: `stores.rs` lists the ways
//! to compute an element at symbolic indices with their conditions, and a region is padding if each of them contradicts
//! the facts. So there is one proof for each store, no offsets are tried out, and no size has to be a number. `amounts.rs`
//! finds how much padding there is, for messages and for the paper's [`PadType`].
//!
//! Needs: a program that [`Program::check`] accepts. Guarantees: if [`check`] is silent, every truncation cuts padding
//! only, for all sizes that satisfy the facts. Steps are counted, never timed; what is too large to be shown is refused.

mod amounts;
mod message;
mod stores;
mod types;

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use certen_index::{Cond, Counterexample, Facts, Ix, IxError, Verdict};
use certen_syntax::Name;

use crate::program::{Binding, Program};
use crate::term::{Range, Term, TermId};
use amounts::Rows;
use stores::{Stop, StoreWalker, Stores};

pub use types::{PadType, pad_type};

/// An end of the outermost dimension.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    /// The first rows.
    Left,
    /// The last rows.
    Right,
}

/// Why a truncation is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Why {
    /// It cuts an element that is computed: here.
    Cut(Counterexample),
    /// That it cuts padding only could not be shown.
    Unknown,
    /// There is too much to look at.
    TooLarge,
}

/// A truncation that is not shown to cut padding only.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The binding that it stands in.
    pub binding: Name,
    /// The truncation.
    pub term: TermId,
    /// Where it cuts.
    pub side: Side,
    /// How many rows it cuts.
    pub cut: Ix,
    /// How many rows there are.
    pub size: Ix,
    /// How many rows on that side are padding, as far as can be shown; none if that was too much to find out.
    pub padding: Option<Ix>,
    /// A term that computes an element that is cut.
    pub store: Option<TermId>,
    /// What is known.
    pub why: Why,
    /// The indices that are bound around it, outermost first.
    pub around: Vec<Name>,
    /// The indices of the element in the counterexample, outermost first.
    pub indices: Vec<Name>,
    /// Where the padding comes from: guards, pads, splits.
    pub sources: Vec<TermId>,
}

/// Proofs for one truncation that find out how much padding there is.
const AMOUNT_PROOFS: usize = 200;
/// Proofs for all truncations of a program.
const PROOFS: usize = 20_000;
/// Violations that are looked for: a program with one is refused.
const MOST_VIOLATIONS: usize = 100;
/// Scopes that truncations are looked for in.
const MOST_SCOPES: usize = 300_000;

/// The truncations of a program that are not shown to cut padding only, in the order of the text.
///
/// ```
/// # let mut sources = certen_syntax::Sources::new();
/// let violations = |text: &str| {
/// #   let mut sources = certen_syntax::Sources::new();
/// #   let file = sources.add("cut.core", text);
///     let program = certen_core::parse_program(&sources, file).map_err(|_| "malformed").unwrap();
///     certen_core::padding::check(&program).len()
/// };
/// let text = "core cut\ninput v : f64[14]\nt = trunc_l(3, gen i in 0..10. guard(2 < i, v[i + 4]))\noutput t\n";
/// assert_eq!(violations(text), 0);
/// assert_eq!(violations(&text.replace("2 < i", "1 < i")), 1);
/// ```
pub fn check(program: &Program) -> Vec<Violation> {
    let has_truncation = program.terms.having(|term| matches!(term, Term::TruncLeft(..) | Term::TruncRight(..)));
    if !program.bindings.iter().any(|binding| has_truncation[binding.term.index()]) {
        return Vec::new();
    }
    let mut check = Check {
        walker: StoreWalker::new(program),
        conds: Vec::new(),
        indices: Vec::new(),
        scopes: HashMap::new(),
        seen: HashSet::new(),
        facts: None,
        proofs: PROOFS,
        violations: Vec::new(),
    };
    for binding in &program.bindings {
        if check.binding(binding, &has_truncation).is_break() {
            break;
        }
    }
    check.violations
}

/// The bindings in whose terms there is a guard or an operator that moves, adds or cuts rows.
pub fn involved(program: &Program) -> HashSet<Name> {
    let has = program.terms.having(|term| matches!(term, Term::Guard(..)) || term.is_reshape());
    program.bindings.iter().filter(|binding| has[binding.term.index()]).map(|binding| binding.name).collect()
}

/// What is added to a scope around a term.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Enclosing {
    Index(Name, Cond),
    Cond(Cond),
    Let(Name, TermId),
    State(Name),
}

enum Visit {
    Term(TermId),
    Enter(Enclosing),
    /// Back to a scope: how many conditions and changes there were, and an index that ends.
    Leave {
        scope: usize,
        conds: usize,
        changes: usize,
        index: Option<Name>,
    },
}

struct Check<'a> {
    walker: StoreWalker<'a>,
    /// The conditions around.
    conds: Vec<Cond>,
    /// The indices around.
    indices: Vec<Name>,
    /// A number for each scope, by the scope around it and what was added: a term that occurs twice in one scope needs
    /// no second look.
    scopes: HashMap<(usize, Enclosing), usize>,
    seen: HashSet<(TermId, usize)>,
    /// The facts of the scope with a number.
    facts: Option<(usize, Facts)>,
    proofs: usize,
    violations: Vec<Violation>,
}

impl Check<'_> {
    /// Visits every truncation in a term, in its scope, unless there are too many.
    fn binding(&mut self, binding: &Binding, has_truncation: &[bool]) -> ControlFlow<()> {
        let mut scope = 0;
        let mut todo = vec![Visit::Term(binding.term)];
        while let Some(visit) = todo.pop() {
            match visit {
                Visit::Term(id) if has_truncation[id.index()] && self.seen.insert((id, scope)) => {
                    self.truncation(binding.name, id, scope)?;
                    self.visit_parts(id, scope, &mut todo);
                }
                Visit::Term(_) => {}
                Visit::Enter(around) => scope = self.enter(scope, around),
                Visit::Leave { scope: outer, conds, changes, index } => {
                    scope = outer;
                    self.conds.truncate(conds);
                    self.walker.undo(changes);
                    if let Some(name) = index {
                        self.indices.pop();
                        self.walker.leave_index(name);
                    }
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Adds to a scope; the number of the new one.
    fn enter(&mut self, scope: usize, around: Enclosing) -> usize {
        let next = self.scopes.len() + 1;
        let scope = *self.scopes.entry((scope, around.clone())).or_insert(next);
        match around {
            Enclosing::Index(name, cond) => {
                self.walker.enter_index(name);
                self.indices.push(name);
                self.conds.push(cond);
            }
            Enclosing::Cond(cond) => self.conds.push(cond),
            Enclosing::Let(name, value) => self.walker.enter_let(name, value),
            Enclosing::State(name) => self.walker.enter_state(name),
        }
        scope
    }

    /// Checks a term, if it is a truncation. Breaks if there are too many.
    fn truncation(&mut self, binding: Name, id: TermId, scope: usize) -> ControlFlow<()> {
        let terms = &self.walker.program.terms;
        let term = terms.get(id);
        let (Term::TruncLeft(k, a) | Term::TruncRight(k, a)) = term else { return ControlFlow::Continue(()) };
        let too_many = self.scopes.len() > MOST_SCOPES;
        let mut violation = Violation {
            binding,
            term: id,
            side: if matches!(term, Term::TruncLeft(..)) { Side::Left } else { Side::Right },
            cut: k.clone(),
            size: terms.ty(*a).shape.first().cloned().unwrap_or(Ix::from(0)),
            padding: None,
            store: None,
            why: Why::TooLarge,
            around: Vec::new(),
            indices: Vec::new(),
            sources: Vec::new(),
        };
        if too_many || !self.is_legal(&mut violation, *a, scope) {
            violation.around = self.indices.clone();
            self.violations.push(violation);
        }
        if too_many || self.violations.len() >= MOST_VIOLATIONS {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// What is visited in a term, and in which scopes. The last is visited first.
    fn visit_parts(&self, id: TermId, scope: usize, todo: &mut Vec<Visit>) {
        let leave = |index| Visit::Leave { scope, conds: self.conds.len(), changes: self.walker.mark(), index };
        match self.walker.program.terms.get(id) {
            Term::Gen(name, range, body) => {
                let around = Enclosing::Index(*name, within(*name, range));
                todo.extend([leave(Some(*name)), Visit::Term(*body), Visit::Enter(around)]);
            }
            Term::Reduce(_, name, range, cond, body) => {
                let around = Enclosing::Index(*name, within(*name, range).and(cond.clone()));
                todo.extend([leave(Some(*name)), Visit::Term(*body), Visit::Enter(around)]);
            }
            Term::Guard(cond, body) => {
                todo.extend([leave(None), Visit::Term(*body), Visit::Enter(Enclosing::Cond(cond.clone()))]);
            }
            Term::If(cond, then, otherwise) => {
                let not = cond.not().unwrap_or(Cond::always());
                todo.extend([leave(None), Visit::Term(*otherwise), Visit::Enter(Enclosing::Cond(not))]);
                todo.extend([leave(None), Visit::Term(*then), Visit::Enter(Enclosing::Cond(cond.clone()))]);
            }
            Term::Let(name, value, body) => {
                let around = Enclosing::Let(*name, *value);
                todo.extend([leave(None), Visit::Term(*body), Visit::Enter(around), Visit::Term(*value)]);
            }
            Term::Iterate(times, step, states, _) => {
                todo.push(leave(Some(*step)));
                todo.extend(states.iter().map(|state| Visit::Term(state.next)));
                todo.extend(states.iter().map(|state| Visit::Enter(Enclosing::State(state.name))));
                todo.push(Visit::Enter(Enclosing::Index(*step, within(*step, &Range::to(times.clone())))));
                todo.extend(states.iter().map(|state| Visit::Term(state.init)));
            }
            other => todo.extend(other.parts().into_iter().rev().map(Visit::Term)),
        }
    }

    /// Whether a truncation of a term cuts padding only; if not, the violation is completed.
    fn is_legal(&mut self, violation: &mut Violation, a: TermId, scope: usize) -> bool {
        if violation.cut.as_constant() == Some(0) {
            return true;
        }
        let rank = self.walker.program.terms.ty(a).rank();
        violation.indices = (0..rank).map(|at| self.walker.fresh(hint(at))).collect();
        let legal = self.judge(violation, a, scope);
        violation.indices.iter().for_each(|name| self.walker.leave_index(*name));
        legal.unwrap_or_else(|stop| {
            violation.why = if stop == Stop::Budget { Why::TooLarge } else { Why::Unknown };
            false
        })
    }

    fn judge(&mut self, violation: &mut Violation, a: TermId, scope: usize) -> Result<bool, Stop> {
        let at: Vec<Ix> = violation.indices.iter().map(|name| Ix::var(*name)).collect();
        self.walker.spend(self.conds.len())?;
        let mut facts = self.facts(scope).clone();
        let ranges = assume_ranges(&mut facts, &violation.indices, &self.walker.program.terms.ty(a).shape)?;
        let Some((index, ..)) = ranges.first() else { return Ok(true) };
        let rows = Rows { index: *index, size: &violation.size, facts: &facts, ranges: &ranges };
        let (side, cut) = (violation.side, &violation.cut);
        let proofs = &mut self.proofs;
        let mut is_cut = |conds: &[Cond]| {
            *proofs = proofs.saturating_sub(1);
            rows.never_stores(conds, side, cut) != Verdict::Yes
        };
        let stores = self.walker.stores(a, &at, &mut is_cut)?;
        let Some((store, why)) = self.uncovered(&stores, &rows, side, cut)? else { return Ok(true) };
        // How much padding there is depends on all stores.
        if let Ok(all) = self.walker.stores(a, &at, &mut |_| true) {
            let most = AMOUNT_PROOFS.min(self.proofs);
            let mut budget = most;
            let padding = rows.amount(&all, side, &mut budget);
            self.proofs -= most - budget;
            violation.padding = (budget > 0).then_some(padding);
            violation.sources = all.sources.into_iter().collect();
        }
        violation.store = Some(store);
        violation.why = why;
        Ok(false)
    }

    /// The first store that is not shown to stay out of the rows that are cut; one with a counterexample is better.
    fn uncovered(&mut self, stores: &Stores, rows: &Rows, side: Side, cut: &Ix) -> Result<Option<(TermId, Why)>, Stop> {
        let mut unknown = None;
        for store in &stores.list {
            self.proofs = self.proofs.checked_sub(1).ok_or(Stop::Budget)?;
            match rows.never_stores(&store.conds, side, cut) {
                Verdict::Yes => {}
                Verdict::No(example) => return Ok(Some((store.term, Why::Cut(example)))),
                Verdict::Unknown => unknown = unknown.or(Some((store.term, Why::Unknown))),
            }
        }
        Ok(unknown)
    }

    fn facts(&mut self, scope: usize) -> &Facts {
        let current = self.facts.as_ref().is_some_and(|(of, _)| *of == scope);
        if !current {
            let mut facts = self.walker.program.terms.facts().clone();
            self.conds.iter().for_each(|cond| facts.assume(cond.clone()));
            self.facts = Some((scope, facts));
        }
        match &self.facts {
            Some((_, facts)) => facts,
            None => self.walker.program.terms.facts(),
        }
    }
}

/// What an index of an element is called, by its dimension.
fn hint(dimension: usize) -> &'static str {
    ["i", "j", "k", "l"].get(dimension).copied().unwrap_or("m")
}

/// That an index is in its range; if that cannot be said, nothing is.
fn within(name: Name, range: &Range) -> Cond {
    let at = Ix::var(name);
    match (Cond::le(&range.lo, &at), Cond::lt(&at, &range.hi)) {
        (Ok(least), Ok(most)) => least.and(most),
        _ => Cond::always(),
    }
}

/// Assumes that indices are inside a shape; their first and last values.
fn assume_ranges(facts: &mut Facts, indices: &[Name], shape: &[Ix]) -> Result<Vec<(Name, Ix, Ix)>, IxError> {
    let mut ranges = Vec::new();
    for (name, size) in indices.iter().zip(shape) {
        facts.assume(within(*name, &Range::to(size.clone())));
        ranges.push((*name, Ix::from(0), size.sub(&Ix::from(1))?));
    }
    Ok(ranges)
}
