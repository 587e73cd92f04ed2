//! Random programs with random schedules, legal and illegal, and what is true of them.
//!
//! A [`Hunted`] is a program of Core with its loops and a schedule that was drawn step by step: each step looks at the
//! nest that the steps before it left, and takes a primitive with loops, buffers and block sizes that are there, most of
//! the time. Whether it keeps the meaning is left to chance. [`truth`] says by brute force what became of the values: the
//! evaluator against the interpreter at all small sizes, and a walk over all accesses of loops that are not serial.
//!
//! Programs are kernels as people write them (`kernel.rs`) and those of this crate's other generators. The same seed
//! always gives the same case; [`Hunted::shrunk`] takes steps away while a property still fails.

mod dependent;
mod kernel;
mod look;
mod step;
mod truth;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use arbitrary::Unstructured;
use certen_core::{ElemType, Program};
use certen_dialects::algebra::{self, Notation};
use certen_dialects::{model, teil};
use certen_loops::{FpMode, LoopProgram, lower, verify};
use certen_schedule::{Primitive, Refused, Scheduled, apply, primitives};
use certen_syntax::schedule::{ArgKind, Step, parse_steps};
use certen_syntax::{Diagnostics, Sources};

use crate::Sample;
use crate::calculus::{Case, Truncations};
use crate::draw::Draw;
use look::Look;

pub use truth::{Meaning, Sizes, Truth, points, truth};

/// Statements of a nest beyond which no further step is drawn.
const MAX_STATEMENTS: usize = 250;

/// Primitives that change the order of iterations.
const ORDERING: [&str; 11] = [
    "interchange",
    "reorder",
    "tile",
    "skew",
    "fission",
    "fuse_outer",
    "fuse_inner",
    "unroll_and_jam",
    "vectorize",
    "parallelize",
    "registers",
];

/// Primitives that few nests have something for, so that they are taken where there is, once in so many steps.
const SELDOM: [&str; 6] = ["join_sums", "mirror", "overwrite", "round", "separate", "share"];
const SELDOM_TAKEN: usize = 4;

/// A program with a schedule.
#[derive(Clone, Debug)]
pub struct Hunted {
    /// What it was made from.
    pub seed: u64,
    /// What it means; none of loops that were not lowered.
    pub core: Option<Program>,
    /// Its loops before the first step.
    pub loops: LoopProgram,
    /// The steps that could be taken.
    pub steps: Vec<Step>,
    /// What they made of it.
    pub scheduled: Scheduled,
    /// Steps that could not be taken, on the way, and why. Those that were not meant to be right
    /// are not among them.
    pub refused: Vec<(Step, String)>,
    /// A step at which a primitive panicked, with the nest before it.
    pub panicked: Option<(Step, LoopProgram)>,
    /// The time of the slowest step, and which.
    pub slowest: (Duration, String),
}

/// Steps from their text.
///
/// # Panics
/// If it is not the text of steps, or these are not printed as they were written.
pub fn steps(text: &str) -> Vec<Step> {
    let mut sources = Sources::new();
    let file = sources.add("drawn.schedule", text);
    let mut diagnostics = Diagnostics::new();
    let steps = sources.get(file).and_then(|source| parse_steps(source, file, &mut diagnostics));
    let steps = steps.unwrap_or_else(|| panic!("{text}\n{diagnostics:?}"));
    let printed: Vec<String> = steps.iter().map(ToString::to_string).collect();
    assert_eq!(printed.join("; "), text, "steps are printed as they are written");
    steps
}

fn named(name: &str) -> Option<&'static Primitive> {
    primitives().iter().copied().find(|primitive| primitive.name == name)
}

/// What applying a step comes to.
enum Tried {
    Taken(Box<Scheduled>),
    Refused(Box<Refused>),
    Panicked,
}

fn attempt(program: LoopProgram, step: &Step) -> Tried {
    match catch_unwind(AssertUnwindSafe(|| apply(program, std::slice::from_ref(step), FpMode::Relaxed))) {
        Ok(Ok(scheduled)) => Tried::Taken(Box::new(scheduled)),
        Ok(Err(refused)) => Tried::Refused(refused),
        Err(_) => Tried::Panicked,
    }
}

impl Hunted {
    /// The case of a seed.
    pub fn new(seed: u64) -> Hunted {
        let mut draw = Draw::new(seed);
        let (core, loops) = program(&mut draw);
        Hunted::drawn(seed, draw, Some(core), loops)
    }

    /// A nest whose iterations depend on each other, with a schedule.
    pub fn dependent(seed: u64) -> Hunted {
        let mut draw = Draw::new(!seed);
        let loops = dependent::nest(&mut draw);
        Hunted::drawn(seed, draw, None, loops)
    }

    fn drawn(seed: u64, mut draw: Draw, core: Option<Program>, loops: LoopProgram) -> Hunted {
        let scheduled = Scheduled { before: loops.clone(), program: loops.clone(), taken: Vec::new() };
        let slowest = (Duration::ZERO, String::new());
        let (steps, refused, panicked) = (Vec::new(), Vec::new(), None);
        let mut hunted = Hunted { seed, core, loops, steps, scheduled, refused, panicked, slowest };
        let wanted = *draw.pick(&[1, 2, 3, 3, 4, 4, 5, 6, 7, 8]).unwrap_or(&3);
        for tries in 0..6 * wanted {
            if hunted.steps.len() >= wanted || hunted.panicked.is_some() {
                break;
            }
            let look = Look::at(&hunted.scheduled.program);
            if look.statements > MAX_STATEMENTS {
                break;
            }
            // Blocks that divide nothing are what this is about.
            let split = wanted >= 3 && tries >= 1 && !hunted.has_blocks();
            hunted.take(&mut draw, &look, split);
        }
        hunted
    }

    /// Whether a step has a number of at least 2, which some size is no multiple of.
    pub fn has_blocks(&self) -> bool {
        let int = |kind: &ArgKind| matches!(kind, ArgKind::Int(2..));
        let ints = |kind: &ArgKind| match kind {
            ArgKind::List(list) => list.iter().any(|arg| int(&arg.kind)),
            other => int(other),
        };
        self.steps.iter().flat_map(|step| &step.args).any(|arg| ints(&arg.kind))
    }

    fn take(&mut self, draw: &mut Draw, look: &Look, split: bool) {
        let all = primitives();
        // Where iterations depend on each other, their order is what matters.
        let ordering: Vec<&Primitive> = all.iter().copied().filter(|one| ORDERING.contains(&one.name)).collect();
        let all = if self.core.is_none() && !draw.chance(3) { &ordering } else { all };
        let seldom: Vec<&Primitive> = SELDOM.iter().filter_map(|name| named(name)).collect();
        let seldom: Vec<&Primitive> = seldom.into_iter().filter(|one| step::applies(look, one.name)).collect();
        let drawn = match split {
            true => named("split"),
            false if !seldom.is_empty() && draw.chance(SELDOM_TAKEN) => draw.pick(&seldom).copied(),
            false => draw.pick(all).copied(),
        };
        let Some(primitive) = drawn else { return };
        let (text, meant) = match step::applies(look, primitive.name) || draw.chance(10) {
            true => step::step(draw, look, primitive),
            false if primitive.name == "round" => match step::towards_round(draw, look) {
                Some(text) => (text, true),
                None => return,
            },
            false => return,
        };
        let Some(step) = steps(&text).pop() else { return };
        let before = Instant::now();
        let tried = attempt(self.scheduled.program.clone(), &step);
        if before.elapsed() > self.slowest.0 {
            self.slowest = (before.elapsed(), text);
        }
        match tried {
            Tried::Taken(mut scheduled) => {
                self.steps.push(step);
                self.scheduled.program = scheduled.program;
                self.scheduled.taken.append(&mut scheduled.taken);
            }
            Tried::Refused(refused) if meant => self.refused.push((step, refused.diagnostic.message)),
            Tried::Refused(_) => {}
            Tried::Panicked => self.panicked = Some((step, self.scheduled.program.clone())),
        }
    }

    /// What it is compared with.
    pub fn meaning(&self) -> Meaning<'_> {
        match &self.core {
            Some(core) => Meaning::Core(core),
            None => Meaning::Loops(&self.loops),
        }
    }

    /// The schedule as text.
    pub fn text(&self) -> String {
        let steps: Vec<String> = self.steps.iter().map(ToString::to_string).collect();
        steps.join("; ")
    }

    /// What it is, for a report.
    pub fn shown(&self) -> String {
        let core = self.core.as_ref().map(ToString::to_string).unwrap_or_default();
        format!("seed {}\n{core}\n{}\nsteps: {}\n{}", self.seed, self.loops, self.text(), self.scheduled.program)
    }

    /// The same with a schedule of other steps, if they can be taken.
    pub fn with_steps(&self, steps: Vec<Step>) -> Option<Hunted> {
        let scheduled =
            catch_unwind(AssertUnwindSafe(|| apply(self.loops.clone(), &steps, FpMode::Relaxed))).ok()?.ok()?;
        Some(Hunted { steps, scheduled, ..self.clone() })
    }

    /// The same with fewer steps and smaller numbers, as long as it is bad.
    pub fn shrunk(self, bad: impl Fn(&Hunted) -> bool) -> Hunted {
        let mut smallest = self;
        loop {
            let fewer = (0..smallest.steps.len()).rev().map(|at| {
                let mut steps = smallest.steps.clone();
                steps.remove(at);
                steps
            });
            let smaller = (0..smallest.steps.len()).flat_map(|at| {
                let args = smallest.steps[at].args.len();
                let steps = &smallest.steps;
                (0..args).filter_map(move |arg| {
                    let mut steps = steps.clone();
                    match &mut steps[at].args[arg].kind {
                        ArgKind::Int(value) if *value > 2 => *value = (*value / 2).max(2),
                        _ => return None,
                    }
                    Some(steps)
                })
            });
            let found = fewer.chain(smaller).find_map(|steps| smallest.with_steps(steps).filter(&bad));
            match found {
                Some(found) => smallest = found,
                None => return smallest,
            }
        }
    }
}

/// The program of a seed: one that can be scheduled.
pub fn unscheduled(seed: u64) -> Program {
    program(&mut Draw::new(seed)).0
}

/// A program whose loops are verified, and which has loops.
fn program(draw: &mut Draw) -> (Program, LoopProgram) {
    for _ in 0..20 {
        let program = match draw.below(10) {
            0 | 1 => {
                let count = 20 + draw.below(150);
                Some(Case::new(&draw.bytes(count), "generated", Truncations::Legal).program)
            }
            2 => {
                let count = 20 + draw.below(120);
                algebra(&draw.bytes(count))
            }
            _ => Some(kernel::kernel(draw)),
        };
        if let Some(program) = program
            && let Ok(loops) = lower(&program, FpMode::Relaxed)
            && let look = Look::at(&loops)
            && !look.loops.is_empty()
            && look.statements < 60
            && verify(&loops).is_empty()
        {
            return (program, loops);
        }
    }
    let simple = kernel::simple();
    let loops = lower(&simple, FpMode::Relaxed).expect("a simple kernel can be lowered");
    (simple, loops)
}

/// A program of the paper's languages in Core.
fn algebra(bytes: &[u8]) -> Option<Program> {
    let sample = Sample::in_mode(
        *Unstructured::new(bytes).choose(&[Notation::Teil, Notation::Model]).ok()?,
        &mut Unstructured::new(bytes),
    );
    let mut sources = Sources::new();
    let file = sources.add("generated", sample.text());
    let mut diagnostics = Diagnostics::new();
    let parsed = match sample.mode {
        Notation::Teil | Notation::CoreTeil => teil::parse(&sources, file, &mut diagnostics),
        Notation::Model => model::parse(&sources, file, &mut diagnostics),
    };
    let typed = algebra::check(parsed, &mut diagnostics)?;
    algebra::elaborate(&typed, "generated".into(), ElemType::F64).ok()
}
