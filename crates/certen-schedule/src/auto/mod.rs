//! Schedules that the compiler writes: `--schedule auto`.
//!
//! A *strategy* recognises one form of nest and writes ordinary steps for it, as text that a user could paste and edit.
//! Each is a file of its own, with its idea, when it applies and what it costs. For each nest, what the strategies propose is
//! tried in their order: the first proposal whose steps can all be taken, with every condition proved for all sizes, is
//! taken. Where there is none the nest stays as it is.
//!
//! Needs: loops before memory is shared. Guarantees: the same program and machine description give the same steps; the
//! order in which the summands of an element are added is that of the program.

mod contraction;

use certen_loops::{FpMode, LoopProgram, Site, Stmt, sites};
use certen_syntax::schedule::{Step, parse_steps};
use certen_syntax::{Diagnostics, Name, Sources};
use indexmap::IndexMap;

use crate::apply::{Taken, apply};

/// What a strategy has to know of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Machine {
    /// Bytes of a vector register.
    pub vector_bytes: i64,
    /// How many vector registers there are.
    pub registers: i64,
}

impl Machine {
    /// A machine with vectors of this many bytes: those of AVX-512 come with 32 registers, others with 16.
    pub fn with_vectors(bytes: usize) -> Machine {
        Machine { vector_bytes: bytes as i64, registers: if bytes >= 64 { 32 } else { 16 } }
    }
}

/// The steps for one nest, and why these.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Planned {
    /// The nest.
    pub nest: Name,
    /// The steps, as text.
    pub steps: String,
    /// What was recognised, and what was chosen for it.
    pub why: String,
}

/// A strategy: what it proposes for a nest, the best first.
type Strategy = fn(&LoopProgram, Name, &[Site<'_>], &Machine, FpMode) -> Vec<Planned>;

const STRATEGIES: [Strategy; 1] = [contraction::proposals];

/// A schedule for loops, nest by nest, and its steps.
pub fn automatic(program: &LoopProgram, machine: &Machine, fp: FpMode) -> (Vec<Planned>, Vec<Step>) {
    let (mut plans, mut steps) = (Vec::new(), Vec::new());
    let mut current = program.clone();
    let mut nests: IndexMap<Name, (usize, Vec<Site<'_>>)> = IndexMap::new();
    for site in sites(&program.body) {
        let Some(nest) = site.nest else { continue };
        let (labels, sites) = nests.entry(nest).or_default();
        *labels += usize::from(matches!(site.stmt, Stmt::Nest(_)));
        sites.push(site);
    }
    // A name that stands for two nests would not say which of them is meant.
    for (nest, (_, sites)) in nests.into_iter().filter(|(_, (labels, _))| *labels == 1) {
        let mut proposals = STRATEGIES.iter().flat_map(|strategy| strategy(program, nest, &sites, machine, fp));
        let taken = proposals.find_map(|plan| {
            let read = steps_of(&plan.steps)?;
            let scheduled = apply(current.clone(), &read, fp).ok()?;
            let is_right = |taken: &Taken| taken.is_proved() && taken.violations.is_empty();
            scheduled.taken.iter().all(is_right).then_some((plan, read, scheduled.program))
        });
        if let Some((plan, read, made)) = taken {
            current = made;
            steps.extend(read);
            plans.push(plan);
        }
    }
    (plans, steps)
}

fn steps_of(text: &str) -> Option<Vec<Step>> {
    let mut sources = Sources::new();
    let file = sources.add("auto", text);
    let mut diagnostics = Diagnostics::new();
    parse_steps(sources.get(file)?, file, &mut diagnostics).filter(|_| !diagnostics.has_errors())
}
