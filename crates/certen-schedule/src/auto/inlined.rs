//! Stages that cost less where they are read than in memory (SaC's with-loop folding, Halide's default).
//!
//! Applies: to a stage of assignments, no sums, of which every loop around a reader asks for other elements, but for short loops,
//! those of a window. Cost: an element that is read at `n` places is computed `n - 1` times more often, against storing and
//! loading it, which for tensors beyond the caches is what [`MOST_REPEATED`] operations in vectors take. Neither sizes nor the
//! machine are asked: what a nest consists of does not depend on them. No operation on the way to an element changes.
//!
//! Stages that are not computed from each other go in one step, so that a long chain takes few; an expression that is computed once
//! may stand in a text often, so the length of the text is limited too.

use std::collections::{HashMap, HashSet};

use certen_core::{Binary, Range, Term, TermId, Terms, Unary};
use certen_index::Ix;
use certen_loops::{Around, LoopProgram, Site, Stmt, Target, Use, sites, statements};
use certen_syntax::Name;

use super::steps::joined;
use super::sum::{mentions, size};
use super::{Form, Planned, nests};
use crate::apply::Scheduled;

/// So many operations may be made again to save an element its way to memory and back.
const MOST_REPEATED: i64 = 24;

/// A loop of so many iterations is one of a window.
const WINDOW: i64 = 16;

/// An element that takes more operations is not made longer.
const MOST_OPERATIONS: i64 = 400;

/// An expression in which more operations are written is not, though some may be made only once.
const MOST_WRITTEN: u32 = 2000;

/// After so many steps that cannot be taken, what is left stays as it is.
const MOST_FAILURES: usize = 24;

/// In longer programs the search would take long itself.
const MOST_STAGES: usize = 2048;

/// What a division and a root cost, and a function of the mathematical library.
const DIVISION: i64 = 4;
const FUNCTION: i64 = 40;

/// A stage, and what it is to compute it where it is read.
struct Stage {
    /// How many statements are around its allocation: their loops are around readers too.
    depth: usize,
    /// The operations of an element.
    cost: i64,
    /// At how many places it is read, counted as often as loops of windows go over them.
    places: i64,
    /// The nests that compute it, and those that read it.
    makers: Vec<Name>,
    readers: Vec<Name>,
    /// Whether an expression stands for each of its elements.
    is_plain: bool,
}

/// The program with its cheap stages computed where they are read, and the plan of that; none if there are none.
pub(super) fn plan(
    program: &LoopProgram,
    taken: &impl Fn(&LoopProgram, &str) -> Option<Scheduled>,
) -> Option<(Scheduled, Planned)> {
    let (names, steps, refused) = (Vec::new(), String::new(), HashSet::new());
    let mut search = Search { taken, done: None, names, steps, refused, failures: 0 };
    while search.failures < MOST_FAILURES {
        let round = stages(search.now(program), &search.refused);
        if round.is_empty() {
            break;
        }
        search.take(program, &round);
    }
    let done = search.done?;
    let nest = nests(&done.program).into_keys().last()?;
    let why = format!("{} cost less where they are read than in memory", joined(&search.names));
    Some((done, Planned { nest, with: Vec::new(), steps: search.steps, why, form: Form::Separated }))
}

struct Search<'a, F> {
    taken: &'a F,
    done: Option<Scheduled>,
    names: Vec<Name>,
    steps: String,
    /// Stages that stay.
    refused: HashSet<Name>,
    failures: usize,
}

impl<F: Fn(&LoopProgram, &str) -> Option<Scheduled>> Search<'_, F> {
    fn now<'a>(&'a self, program: &'a LoopProgram) -> &'a LoopProgram {
        self.done.as_ref().map_or(program, |done| &done.program)
    }

    /// Takes some stages, all that can be taken.
    fn take(&mut self, program: &LoopProgram, round: &[Name]) {
        if self.failures >= MOST_FAILURES {
            return;
        }
        let names: Vec<&str> = round.iter().map(|name| name.as_str()).collect();
        let step = format!("inline({});\n", names.join(", "));
        match (self.taken)(self.now(program), &step).filter(|made| is_short(&made.program)) {
            Some(made) => {
                self.names.extend(round);
                self.steps.push_str(&step);
                match &mut self.done {
                    Some(done) => {
                        done.program = made.program;
                        done.taken.extend(made.taken);
                    }
                    None => self.done = Some(made),
                }
            }
            None if round.len() == 1 => {
                self.failures += 1;
                self.refused.extend(round);
            }
            None => {
                self.failures += 1;
                let (first, second) = round.split_at(round.len() / 2);
                self.take(program, first);
                self.take(program, second);
            }
        }
    }
}

/// Whether no value is so long that its text would be.
fn is_short(program: &LoopProgram) -> bool {
    let mut written: Vec<u32> = Vec::with_capacity(program.terms.len());
    for (_, term) in program.terms.iter() {
        let parts = term.parts();
        written.push(parts.iter().fold(1u32, |sum, part| sum.saturating_add(written[part.index()])));
    }
    statements(&program.body).filter_map(Stmt::value).all(|value| written[value.index()] <= MOST_WRITTEN)
}

/// Stages that are to be computed where they are read, none of which is computed from another one.
fn stages(program: &LoopProgram, refused: &HashSet<Name>) -> Vec<Name> {
    let all = sites(&program.body);
    let mut found: HashMap<Name, Stage> = HashMap::new();
    let mut twice: HashSet<Name> = HashSet::new();
    let mut order = Vec::new();
    for site in &all {
        if let Stmt::Alloc(name, _) = site.stmt {
            let (makers, readers) = (Vec::new(), Vec::new());
            let stage = Stage { depth: site.around.len(), cost: 0, places: 0, makers, readers, is_plain: true };
            if found.insert(*name, stage).is_some() {
                twice.insert(*name);
            }
            order.push(*name);
        }
    }
    if order.is_empty() || order.len() > MOST_STAGES {
        return Vec::new();
    }
    let mut longest = HashMap::new();
    let locals = locals(&program.terms, &all);
    for site in &all {
        let cost = site.stmt.value().map_or(0, |value| operations(&program.terms, value, &locals));
        if let (Some(nest), true) = (site.nest, cost > 0) {
            let most = longest.entry(nest).or_insert(0);
            *most = cost.max(*most);
        }
        for (name, at, how) in site.stmt.uses(&program.terms) {
            let Some(stage) = found.get_mut(&name) else { continue };
            match how {
                Use::Write if matches!(site.stmt, Stmt::Assign { op: None, .. }) => {
                    stage.cost = stage.cost.max(cost);
                    stage.makers.extend(site.nest);
                }
                Use::Write | Use::Combine(_) | Use::Exchange => stage.is_plain = false,
                Use::Read => match places(&site.around[stage.depth.min(site.around.len())..], at) {
                    Some(places) => {
                        stage.places = stage.places.saturating_add(places);
                        stage.readers.extend(site.nest);
                    }
                    None => stage.is_plain = false,
                },
            }
        }
    }
    let mut chosen = Vec::new();
    // The nests that compute what is chosen, and those that read it.
    let (mut made, mut read): (HashSet<Name>, HashSet<Name>) = Default::default();
    for name in order.into_iter().filter(|name| !refused.contains(name) && !twice.contains(name)) {
        let Some(stage) = found.get(&name).filter(|stage| stage.is_plain) else { continue };
        let Some(reader) = stage.readers.last() else { continue };
        if stage.makers.iter().any(|nest| read.contains(nest)) || stage.readers.iter().any(|nest| made.contains(nest)) {
            continue;
        }
        let again = stage.places.saturating_sub(1).saturating_mul(stage.cost);
        let longer = stage.places.saturating_mul(stage.cost);
        let all = longer.saturating_add(*longest.get(reader).unwrap_or(&0));
        if again <= MOST_REPEATED && all <= MOST_OPERATIONS {
            made.extend(&stage.makers);
            read.extend(&stage.readers);
            longest.insert(*reader, all);
            chosen.push(name);
        }
    }
    chosen
}

/// How often an element of a stage is read at a place, with these statements around it; none if the same elements are read
/// again and again.
fn places(around: &[Around<'_>], at: &[Ix]) -> Option<i64> {
    let loops = around.iter().rev().filter_map(|around| match around.stmt {
        Stmt::For { index, range, .. } => Some((*index, range)),
        _ => None,
    });
    let loops: Vec<(Name, &Range)> = loops.collect();
    let (mut windows, mut left) = (1i64, loops.len());
    for (index, range) in loops {
        if !mentions(at, index) {
            return None;
        }
        let trips = size(range).filter(|trips| range.lo.as_constant() == Some(0) && *trips <= WINDOW);
        if let Some(trips) = trips.filter(|_| left > at.len()) {
            windows = windows.saturating_mul(trips);
            left -= 1;
        }
    }
    (left <= at.len()).then_some(windows)
}

/// The locals that have their value from the beginning.
fn locals(terms: &Terms, all: &[Site<'_>]) -> HashMap<Name, TermId> {
    let mut locals = HashMap::new();
    for site in all {
        match site.stmt {
            Stmt::Local { name, init: Some(init), .. } => {
                locals.insert(*name, *init);
            }
            Stmt::Assign { target: Target::Local(name), .. } => {
                locals.remove(name);
            }
            _ => {}
        }
    }
    locals.retain(|_, init| !matches!(terms.get(*init), Term::Literal(..)));
    locals
}

/// About how many operations a value takes, with those of the locals in it; loads count too.
fn operations(terms: &Terms, root: TermId, locals: &HashMap<Name, TermId>) -> i64 {
    let (mut sum, mut open, mut seen) = (0i64, vec![root], HashSet::new());
    while let Some(root) = open.pop() {
        for id in terms.parts_first(root) {
            if !seen.insert(id) {
                continue;
            }
            let cost = match terms.get(id) {
                Term::Ref(name, _) => {
                    open.extend(locals.get(name));
                    0
                }
                Term::Literal(..) => 0,
                Term::Unary(op, _) if op.function().is_some() => FUNCTION,
                Term::Binary(op, ..) if op.function().is_some() => FUNCTION,
                Term::Unary(Unary::Sqrt, _) | Term::Binary(Binary::Div, ..) => DIVISION,
                _ => 1,
            };
            sum = sum.saturating_add(cost);
        }
    }
    sum
}
