//! Schedules that the compiler writes: `--schedule auto`.
//!
//! A *strategy* recognises one form of nest, mostly of sums of products, and writes ordinary steps for it, as text that a user could
//! paste and edit. Each is a file of its own, with its idea, when it applies and what it costs. For each nest, what the strategies
//! propose is tried, the cheapest first: the first proposal whose steps can all be taken, with every condition proved for all
//! sizes, is taken. Where there is none the nest stays as it is. Before that, stages that cost little are computed where they are read
//! (`inlined.rs`), what is more than one sum is separated (`apart.rs`), nests that handle many small tensors one after the
//! other are taken together (`elements.rs`), and stages that read rows of each other go in strips (`strips.rs`); after it, large
//! outputs are stored past the caches (`streamed.rs`).
//!
//! Needs: loops before memory is shared. Guarantees: the same program, sizes and machine description give the same steps.
//! Which operations an element is made by, and in which order, depends on the program and the element type alone, not on
//! sizes or the machine: a strategy that makes other ones applies by what is written, and where it is not worth its while
//! at some sizes the next one makes the same.

mod apart;
mod batched;
mod carried;
mod contraction;
mod elements;
mod extreme;
mod fused;
mod held;
mod inlined;
mod rowwise;
mod stencil;
mod steps;
mod streamed;
mod strips;
mod sum;
mod thin;
mod tile;
mod window;

use std::cell::LazyCell;
use std::collections::HashSet;

use certen_index::Cond;
use certen_loops::{FpMode, LoopProgram, Mode, Site, Stmt, parallelise, sites, verify, verify_changed};
use certen_syntax::schedule::{Step, parse_steps};
use certen_syntax::{Diagnostics, Name, Sources};
use indexmap::IndexMap;

use self::steps::numbered;
pub use self::sum::STREAMED_BYTES;
use self::sum::SumNest;
use crate::apply::{Scheduled, is_of_operations, tried};

/// What a strategy has to know of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Machine {
    /// Bytes of a vector register.
    pub vector_bytes: i64,
    /// Bytes of a vector that are computed at a time.
    pub unit_bytes: i64,
    /// How many vector registers there are.
    pub registers: i64,
    /// Whether it has fused operations.
    pub has_fma: bool,
    /// Bytes of the second cache.
    pub l2_bytes: i64,
    /// Whether loops are given to threads.
    pub has_threads: bool,
}

impl Machine {
    /// A machine with vectors of this many bytes: those of AVX-512 come with 32 registers, others with 16.
    pub fn with_vectors(bytes: usize, has_fma: bool) -> Machine {
        Machine {
            vector_bytes: bytes as i64,
            unit_bytes: bytes as i64,
            registers: if bytes >= 64 { 32 } else { 16 },
            has_fma,
            l2_bytes: 1 << 20,
            has_threads: true,
        }
    }
}

/// The steps for one nest, and why these.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Planned {
    /// The nest.
    pub nest: Name,
    /// Nests before it that are computed with it.
    pub with: Vec<Name>,
    /// The steps, as text.
    pub steps: String,
    /// What was recognised, and what was chosen for it.
    pub why: String,
    /// What they are for.
    pub form: Form,
}

impl Planned {
    /// Whether it says how loops run, not only which nests there are and by which operations an element is made. If so, it may
    /// depend on sizes and on the machine.
    pub fn changes_loops(&self) -> bool {
        steps_of(&self.steps).is_some_and(|steps| !steps.iter().all(is_of_operations))
    }
}

/// What the steps of a plan are for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// They give what is more than one sum nests of their own, or take stages away: there are other plans for what they make.
    Separated,
    /// A nest, or some nests together.
    Nest,
    /// The sums of a nest that is more than one sum.
    Sums,
    /// Threads share what no other step has given to them.
    Shared,
}

/// What a strategy proposes, and what that costs in tenths of an operation.
struct Proposal {
    plan: Planned,
    cost: i64,
}

/// What something costs that is proposed only where nothing else is.
const LAST: i64 = i64::MAX;

/// Nests of longer programs have no plans of their own.
const MOST_NESTS: usize = 128;

/// A strategy: what it proposes for a nest, the best first.
type Strategy = fn(&SumNest<'_>, &Machine) -> Vec<Proposal>;

const STRATEGIES: [Strategy; 5] =
    [batched::proposals, contraction::proposals, window::proposals, thin::proposals, fused::proposals];

/// What it proposes for a nest with these statements that is no sum of products.
type OtherStrategy = fn(&LoopProgram, Name, &[Site<'_>], &Machine, FpMode) -> Option<Planned>;

const OTHERS: [OtherStrategy; 5] = [stencil::plan, extreme::plan, rowwise::plan, carried::plan, held::plan];

/// A schedule for loops, nest by nest, and the loops after it. For loops with numbers in place of sizes, `like` has the plans
/// without: where there is none, the order of operations is to stay what it is. None if the numbers do not allow what was
/// done without them.
pub fn automatic(
    program: &LoopProgram,
    machine: &Machine,
    fp: FpMode,
    like: Option<&[Planned]>,
) -> Option<(Vec<Planned>, Scheduled)> {
    // Asked only where something is proposed. What steps make of the program is verified as they are taken.
    let is_verified = LazyCell::new(|| verify(program).is_empty());
    let taken = |program: &LoopProgram, text: &str| taken(program, *is_verified, text, fp);
    let (mut plans, mut scheduled) = separated(program, machine, fp, like, &taken)?;
    let program = &scheduled.program.clone();
    let nests = nests(program);
    // The new nests have to have the same names as without numbers.
    if !plans.is_empty() && like.is_some_and(|like| !like.iter().all(|plan| nests.contains_key(&plan.nest))) {
        return None;
    }
    let is_of = |plan: &Planned, nest: &Name| {
        let is_own = !matches!(plan.form, Form::Separated | Form::Shared);
        is_own && (plan.nest == *nest || plan.with.contains(nest))
    };
    let is_asked = |nest: &Name| like.is_none_or(|like| like.iter().any(|plan| is_of(plan, nest)));
    for mut all in elements::plans(program, &nests, machine, fp, &is_asked).into_iter().map(Vec::into_iter) {
        if let Some((made, plan)) = all.find_map(|plan| Some((taken(&scheduled.program, &plan.steps)?, plan))) {
            keep(&mut plans, &mut scheduled, made, plan);
        }
    }
    // In longer programs a nest is a small part, and a plan for each takes long.
    let nests = if nests.len() > MOST_NESTS { IndexMap::new() } else { nests };
    let is_done = |plans: &[Planned], nest: &Name| plans.iter().any(|plan| is_of(plan, nest));
    for all in strips::plans(program, &nests, machine, fp) {
        let is_free = |plan: &Planned| !plan.with.iter().chain([&plan.nest]).any(|nest| is_done(&plans, nest));
        let made =
            all.into_iter().filter(is_free).find_map(|plan| Some((taken(&scheduled.program, &plan.steps)?, plan)));
        if let Some((made, plan)) = made {
            keep(&mut plans, &mut scheduled, made, plan);
        }
    }
    for (nest, sites) in nests {
        if !is_asked(&nest) || is_done(&plans, &nest) {
            continue;
        }
        let plain = seldom(&sites).and_then(|index| {
            let step = format!("overwrite({nest}.{index});\n");
            Some((taken(program, &step)?.program, step))
        });
        let found = match &plain {
            Some((made, _)) => {
                let own: Vec<Site<'_>> =
                    certen_loops::sites(&made.body).into_iter().filter(|site| site.nest == Some(nest)).collect();
                SumNest::of(made, nest, &own, fp)
            }
            None => SumNest::of(program, nest, &sites, fp),
        };
        // With numbers a nest can be one sum that is more without them: its sums are made in the same order.
        let has_sums = like.is_some_and(|like| like.iter().any(|plan| plan.nest == nest && plan.form == Form::Sums));
        let all: Vec<Planned> = match &found {
            Some(found) if !has_sums => proposals(found, machine).into_iter().map(|proposal| proposal.plan).collect(),
            _ => {
                let all = OTHERS.iter().filter_map(|strategy| strategy(program, nest, &sites, machine, fp));
                // Sums that are all short gain nothing by themselves; with numbers they are made as without.
                let gains = |plan: &Planned| has_sums || plan.form != Form::Sums || plan.steps.contains("vectorize(");
                all.filter(gains).collect()
            }
        };
        let is_proposed = !all.is_empty();
        let best = all.into_iter().find_map(|mut plan| {
            if let Some((_, step)) = plain.as_ref().filter(|_| found.is_some()) {
                plan.steps.insert_str(0, step);
            }
            let made = taken(&scheduled.program, &plan.steps)?;
            Some((made, plan))
        });
        match best {
            Some((made, plan)) => keep(&mut plans, &mut scheduled, made, plan),
            None if has_sums && is_proposed => return None,
            None => {}
        }
    }
    if machine.has_threads {
        let own = plans.iter().filter(|plan| plan.changes_loops());
        let touched: HashSet<Name> = own.flat_map(|plan| plan.with.iter().chain([&plan.nest])).copied().collect();
        if let Some(plan) = shared(&scheduled.program, &touched)
            && let Some(made) = taken(&scheduled.program, &plan.steps)
        {
            keep(&mut plans, &mut scheduled, made, plan);
        }
    }
    for plan in streamed::plans(&scheduled.program).into_iter().filter(|plan| is_asked(&plan.nest)) {
        if let Some(made) = taken(&scheduled.program, &plan.steps) {
            keep(&mut plans, &mut scheduled, made, plan);
        }
    }
    Some((plans, scheduled))
}

/// The loops of nests that steps have touched which threads can share, and no step has given to them.
fn shared(program: &LoopProgram, touched: &HashSet<Name>) -> Option<Planned> {
    let marked = parallelise(program.clone(), |_| true);
    let (before, after) = (sites(&program.body), sites(&marked.body));
    let mut steps = String::new();
    let mut nests = Vec::new();
    for (old, new) in before.iter().zip(&after) {
        let (Stmt::For { mode: Mode::Serial | Mode::Vector, .. }, Stmt::For { mode, .. }) = (old.stmt, new.stmt) else {
            continue;
        };
        let Some(nest) = new.nest.filter(|nest| mode.is_parallel() && touched.contains(nest)) else { continue };
        let own = after.iter().filter(|site| site.nest == Some(nest)).map(|site| site.stmt);
        let name = numbered(own, new.stmt)?;
        steps.push_str(&format!("parallelize({nest}.{name});\n"));
        if !nests.contains(&nest) {
            nests.push(nest);
        }
    }
    let nest = *nests.first()?;
    let why = "iterations that threads can share".into();
    Some(Planned { nest, with: nests, steps, why, form: Form::Shared })
}

/// Goes on with what the steps of a plan have made.
fn keep(plans: &mut Vec<Planned>, scheduled: &mut Scheduled, made: Scheduled, plan: Planned) {
    scheduled.program = made.program;
    scheduled.taken.extend(made.taken);
    plans.push(plan);
}

/// The program with what is more than one sum separated, as it is for all sizes, and the plans of that.
fn separated(
    program: &LoopProgram,
    machine: &Machine,
    fp: FpMode,
    like: Option<&[Planned]>,
    taken: &impl Fn(&LoopProgram, &str) -> Option<Scheduled>,
) -> Option<(Vec<Planned>, Scheduled)> {
    let mut plans: Vec<Planned> = Vec::new();
    let mut scheduled = Scheduled { before: program.clone(), program: program.clone(), taken: Vec::new() };
    if let Some(like) = like {
        for plan in like.iter().filter(|plan| plan.form == Form::Separated) {
            let made = taken(&scheduled.program, &plan.steps)?;
            keep(&mut plans, &mut scheduled, made, plan.clone());
        }
        return Some((plans, scheduled));
    }
    if let Some((made, plan)) = inlined::plan(program, taken) {
        keep(&mut plans, &mut scheduled, made, plan);
    }
    for form in apart::FORMS {
        let all = nests(&scheduled.program).into_keys();
        let found: Vec<(Planned, Vec<Name>)> = all.filter_map(|nest| form(&scheduled.program, nest)).collect();
        for (plan, of) in found {
            let gains = |made: &Scheduled| {
                let all = nests(&made.program);
                of.iter().any(|nest| {
                    let found = all.get(nest).and_then(|sites| SumNest::of(&made.program, *nest, sites, fp));
                    found.is_some_and(|found| !proposals(&found, machine).is_empty())
                })
            };
            let steps: Vec<&str> = plan.steps.split_inclusive('\n').collect();
            let most = (1..=steps.len()).rev().find_map(|count| {
                let steps = steps[..count].concat();
                Some((taken(&scheduled.program, &steps).filter(gains)?, steps))
            });
            if let Some((made, steps)) = most {
                keep(&mut plans, &mut scheduled, made, Planned { steps, ..plan.clone() });
            }
        }
    }
    Some((plans, scheduled))
}

/// The nests of a program, in order. A name that stands for two nests is left out: it would not say which of them is meant.
fn nests(program: &LoopProgram) -> IndexMap<Name, Vec<Site<'_>>> {
    let mut nests: IndexMap<Name, (usize, Vec<Site<'_>>)> = IndexMap::new();
    for site in sites(&program.body) {
        let Some(nest) = site.nest else { continue };
        let (labels, sites) = nests.entry(nest).or_default();
        *labels += usize::from(matches!(site.stmt, Stmt::Nest(_)));
        sites.push(site);
    }
    let once = nests.into_iter().filter(|(_, (labels, _))| *labels == 1);
    once.map(|(nest, (_, sites))| (nest, sites)).collect()
}

/// How many loops are around a nest with these statements, as those of time are.
fn outside(sites: &[Site<'_>]) -> usize {
    sites.first().map_or(0, |label| label.loops().count())
}

/// What the strategies propose for a nest, the cheapest first.
fn proposals(found: &SumNest<'_>, machine: &Machine) -> Vec<Proposal> {
    let mut proposals: Vec<Proposal> = STRATEGIES.iter().flat_map(|strategy| strategy(found, machine)).collect();
    proposals.sort_by_key(|proposal| proposal.cost);
    proposals
}

/// What steps make of a program; none if they cannot be taken, or something is not proved.
fn taken(program: &LoopProgram, is_verified: bool, text: &str, fp: FpMode) -> Option<Scheduled> {
    let steps = steps_of(text).filter(|steps| !steps.is_empty())?;
    let scheduled = tried(program, &steps, fp).filter(Scheduled::is_proved)?;
    // Only what the steps have changed, so that many nests take as long as each by itself.
    let made = &scheduled.program;
    let violations = if is_verified { verify_changed(made, program) } else { verify(made) };
    debug_assert_eq!(violations.is_empty(), verify(made).is_empty(), "{text} has changed what is elsewhere");
    violations.is_empty().then_some(scheduled)
}

/// If all that a nest does is under one condition that seldom says so, like that of a diagonal: its outermost loop.
fn seldom(sites: &[Site<'_>]) -> Option<Name> {
    let mut conditions = sites.iter().filter_map(|site| match site.stmt {
        Stmt::If { cond, .. } => Some((site, cond)),
        _ => None,
    });
    let ((site, cond), None) = (conditions.next()?, conditions.next()) else { return None };
    let is_seldom = is_equality(cond) || cond.not().is_ok_and(|cond| is_equality(&cond));
    site.loops().nth(outside(sites)).map(|(index, _)| index).filter(|_| is_seldom)
}

/// Whether a condition holds at single values only.
fn is_equality(cond: &Cond) -> bool {
    match cond {
        Cond::Eq(_) => true,
        Cond::And(all) => {
            let is_opposite = |one: &Cond, other: &Cond| match (one, other) {
                (Cond::Ge(a), Cond::Ge(b)) => a.add(b).is_ok_and(|sum| sum.as_constant() == Some(0)),
                _ => false,
            };
            all.iter().any(is_equality) || all.iter().any(|one| all.iter().any(|other| is_opposite(one, other)))
        }
        Cond::Ge(_) | Cond::Or(_) => false,
    }
}

fn steps_of(text: &str) -> Option<Vec<Step>> {
    let mut sources = Sources::new();
    let file = sources.add("auto", text);
    let mut diagnostics = Diagnostics::new();
    parse_steps(sources.get(file)?, file, &mut diagnostics).filter(|_| !diagnostics.has_errors())
}
