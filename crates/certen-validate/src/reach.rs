//! Which parts of the loops a comparison has run, and sizes for those that it has not.
//!
//! A loop should be run with no iteration, and with several; a condition should hold and not hold. What no row of the
//! covering set has reached is asked for: the ranges and conditions around a place are facts of the prover, and an example
//! of them says at which sizes the place is reached. What they exclude cannot be reached at all.

use certen_core::Range;
use certen_index::{Cond, Facts, Ix, Verdict};
use certen_loops::{Event, LoopProgram, Site, Stmt, sites};
use certen_syntax::Name;

/// How often the prover is asked for sizes.
const QUESTIONS: usize = 24;

/// What has happened at the loops and conditions of a nest, in the order of the text.
pub struct Reached {
    /// Of a loop: no iteration, at least one, several. Of a condition: does not hold, holds.
    seen: Vec<[bool; 3]>,
}

/// Something that has not happened.
struct Missing {
    /// The facts under which it does.
    facts: Vec<Cond>,
    /// In words; nothing if it may well be so.
    words: Option<String>,
    place: usize,
    what: usize,
}

/// Sizes at which a place would be reached, and the place.
pub struct Wanted {
    /// The sizes.
    pub sizes: Vec<(Name, i64)>,
    place: usize,
    what: usize,
}

impl Reached {
    /// Nothing yet.
    pub fn new(nest: &LoopProgram) -> Reached {
        Reached { seen: vec![[false; 3]; places(nest).count()] }
    }

    /// Notes what a run tells.
    pub fn note(&mut self, event: Event) {
        match event {
            Event::Loop { place, iterations } => {
                if let Some(seen) = self.seen.get_mut(place) {
                    seen[iterations.min(2) as usize] = true;
                    seen[1] |= iterations > 1;
                }
            }
            Event::Branch { place, holds } => {
                if let Some(seen) = self.seen.get_mut(place) {
                    seen[usize::from(holds)] = true;
                }
            }
            _ => {}
        }
    }

    /// Adds what another run has reached.
    pub fn add(&mut self, run: &Reached) {
        for (seen, more) in self.seen.iter_mut().zip(&run.seen) {
            seen.iter_mut().zip(more).for_each(|(seen, more)| *seen |= more);
        }
    }

    /// Whether this run alone has several iterations of every loop that has them in any of the runs.
    pub fn has_all_of(&self, runs: &Reached) -> bool {
        self.seen.iter().zip(&runs.seen).all(|(here, anywhere)| here[2] || !anywhere[2])
    }

    /// Whether the place of this wish was reached meanwhile.
    pub fn has(&self, wanted: &Wanted) -> bool {
        self.seen.get(wanted.place).is_some_and(|seen| seen[wanted.what])
    }

    /// Everything is seen that can be, as far as can be told without asking.
    fn missing(&self, nest: &LoopProgram) -> Vec<Missing> {
        let mut missing = Vec::new();
        for (place, site) in places(nest).enumerate() {
            let path: Vec<Cond> =
                site.around.iter().filter_map(|around| around.stmt.holds_in(around.block).ok()).collect();
            let seen = self.seen.get(place).copied().unwrap_or_default();
            let mut add = |what: usize, own: Option<Cond>, words: Option<String>| {
                // A constant condition excludes itself.
                if !seen[what] && own.as_ref().is_none_or(|cond| !cond.is_never()) {
                    missing.push(Missing { facts: path.iter().cloned().chain(own).collect(), words, place, what });
                }
            };
            match site.stmt {
                Stmt::For { index, range: Range { lo, hi }, .. } => {
                    let second = lo.add(&Ix::from(1)).ok();
                    add(0, Cond::le(hi, lo).ok(), None);
                    let several = second.and_then(|second| Cond::lt(&second, hi).ok());
                    if !seen[1] {
                        add(1, Cond::lt(lo, hi).ok(), Some(format!("the loop over {index} in {lo}..{hi}")));
                    }
                    add(2, several, Some(format!("two iterations of the loop over {index} in {lo}..{hi}")));
                }
                Stmt::If { cond, otherwise, .. } => {
                    add(1, Some(cond.clone()), Some(format!("the block where {cond}")));
                    let words = (!otherwise.is_empty()).then(|| format!("the block where {cond} does not hold"));
                    add(0, cond.not().ok(), words);
                }
                _ => {}
            }
        }
        missing
    }

    /// Sizes for what was not reached.
    pub fn wanted(&self, nest: &LoopProgram) -> Vec<Wanted> {
        let mut wanted = Vec::new();
        for Missing { facts, place, what, .. } in self.missing(nest).into_iter().take(QUESTIONS) {
            if let Verdict::No(example) = reachable(nest, facts) {
                // What does not matter should not be empty.
                let value = |name: &Name| example.0.get(name).copied().unwrap_or(3);
                let sizes = nest.sizes.iter().map(|name| (*name, value(name))).collect();
                wanted.push(Wanted { sizes, place, what });
            }
        }
        wanted
    }

    /// What was never run, in words, but for what is shown never to be.
    pub fn unreached(&self, nest: &LoopProgram) -> Vec<String> {
        let worded = self.missing(nest).into_iter().filter_map(|missing| Some((missing.words?, missing.facts)));
        let mut asked = 0;
        let possible = |facts: Vec<Cond>| {
            asked += 1;
            asked > QUESTIONS || reachable(nest, facts) != Verdict::Yes
        };
        let mut possible = possible;
        worded.filter_map(|(words, facts)| possible(facts).then_some(words)).collect()
    }
}

/// Whether these conditions exclude each other: no, with an example, if they do not.
pub(crate) fn reachable(nest: &LoopProgram, path: Vec<Cond>) -> Verdict {
    let mut facts = Facts::new();
    nest.facts.iter().cloned().for_each(|fact| facts.assume(fact));
    nest.sizes.iter().filter_map(|name| Cond::le(&Ix::from(0), &Ix::var(*name)).ok()).for_each(|c| facts.assume(c));
    match path.into_iter().fold(Cond::always(), Cond::and).not() {
        Ok(never) => facts.prove(&never),
        Err(_) => Verdict::Unknown,
    }
}

/// Every loop and condition, in the order of the text.
pub(crate) fn places(nest: &LoopProgram) -> impl Iterator<Item = Site<'_>> {
    sites(&nest.body).into_iter().filter(|site| site.stmt.blocks().next().is_some())
}

/// The name of an index in another iteration: no name of a program has this letter.
pub(crate) fn again(name: Name) -> Ix {
    Ix::var(Name::new(&format!("{name}'")))
}
