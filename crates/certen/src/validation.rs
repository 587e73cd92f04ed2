//! Validation: no code leaves whose loops were not compared with what the program means.
//!
//! The last nest, with its memory shared and its loops marked, is compared with the program *as it was written*
//! ([`certen_validate`]). A schedule with large numbers is applied a second time with small ones: if the loops are the
//! same up to numbers, they stand for the large ones. A program of large literal sizes is made small as a whole.
//!
//! A difference is blamed on the step that made it, found by bisection.

use std::borrow::Cow;
use std::collections::BTreeMap;

use certen_core::Program;
use certen_loops::LoopProgram;
use certen_schedule::Scheduled;
use certen_syntax::schedule::{Arg, ArgKind, Step};
use certen_syntax::{Code, Diagnostic};
use certen_validate::scale::{same_structure, scaled};
use certen_validate::{BUDGET, Difference, Evidence, LoopComparison, Outcome, bisect, shrunk_program, validate};

use crate::begin::Begin;
use crate::blame::{after, bug, doubted};

/// Numbers of a schedule up to this are not made smaller.
const SMALL: i64 = 4;

/// How much harder loops are compared whose steps are not all proved.
const UNPROVED: u64 = 4;

/// What is known of the equality of a program's loops with its meaning.
#[derive(Clone, Debug)]
pub struct Validation {
    /// Whether every step of the schedule is shown to keep the meaning, for all sizes.
    pub proved: bool,
    /// Where the loops were compared.
    pub evidence: Option<Evidence>,
    /// Where the loops of the same schedule with smaller numbers, or of the same program with smaller sizes, were compared.
    pub smaller: Option<Evidence>,
    /// Why nothing was compared, if nothing was.
    pub nothing: Option<String>,
}

impl Validation {
    /// At how many points the compiler has compared the loops with the program, by where values are taken from.
    pub fn settings(&self) -> BTreeMap<&'static str, usize> {
        let points = self.evidence.iter().chain(&self.smaller).flat_map(|evidence| &evidence.points);
        points.fold(BTreeMap::new(), |mut settings, point| {
            *settings.entry(point.setting.name()).or_default() += 1;
            settings
        })
    }

    /// At how many points the loops were compared.
    pub(crate) fn points(&self) -> usize {
        self.settings().values().sum()
    }
}

/// Loops, with all that is known of how they were made.
#[derive(Clone)]
pub(crate) struct Attempt<'a> {
    /// What they mean.
    pub core: Cow<'a, Program>,
    /// Where they begin.
    pub begin: Cow<'a, Begin>,
    /// The schedule, as it is written.
    pub steps: Cow<'a, [Step]>,
    /// The program that they were lowered from.
    pub lowered: Cow<'a, Program>,
    pub scheduled: Option<Cow<'a, Scheduled>>,
    pub loops: Cow<'a, LoopProgram>,
    /// Whether every operation on floats has to be made as written.
    pub strict: bool,
}

/// What is different in another attempt at the same program.
pub(crate) struct Change {
    pub core: Option<Program>,
    pub begin: Option<Begin>,
    pub steps: Vec<Step>,
}

/// Makes another attempt; none if it cannot be made.
type Again<'a> = dyn Fn(Change) -> Option<Attempt<'a>> + 'a;

/// Compares loops with what their program means.
///
/// # Errors
/// See [`crate::Module::validation`].
pub(crate) fn validated(
    attempt: &Attempt<'_>,
    require_proof: bool,
    again: &Again<'_>,
) -> Result<Validation, Diagnostic> {
    let unproved = attempt.begin.doubt().or_else(|| attempt.scheduled.as_deref().and_then(unproved));
    if let Some(error) = unproved.clone().filter(|_| require_proof) {
        return Err(error.help("without `--require-proof`, the comparison with the meaning decides"));
    }
    let smaller = attempt.with_smaller_numbers(again);
    // What a proof does not show has to be tried harder.
    let proved = unproved.is_none();
    let whole = if proved { BUDGET } else { UNPROVED * BUDGET };
    let budget = if smaller.is_some() { whole / 2 } else { whole };
    let mut validation = Validation { proved, evidence: None, smaller: None, nothing: None };
    match attempt.compared(budget, !proved) {
        Outcome::Agrees(evidence) => validation.evidence = Some(evidence),
        Outcome::Differs(difference) => return Err(attempt.blamed(&difference, attempt, budget, !proved)),
        Outcome::Nothing(why) => validation.nothing = Some(why),
    }
    if let Some(smaller) = &smaller {
        match smaller.compared(budget, !proved) {
            Outcome::Agrees(evidence) => validation.smaller = Some(evidence),
            Outcome::Differs(difference) => {
                return Err(smaller.blamed(&difference, attempt, budget, !proved).note(SCALED));
            }
            Outcome::Nothing(_) => {}
        }
    }
    if validation.evidence.is_none()
        && validation.smaller.is_none()
        && let Some(smaller) = attempt.at_smaller_sizes(again)
    {
        match smaller.compared(BUDGET, !proved) {
            Outcome::Agrees(evidence) => validation.smaller = Some(evidence),
            Outcome::Differs(difference) => {
                return Err(smaller.blamed(&difference, attempt, BUDGET, !proved).note(SHRUNK));
            }
            Outcome::Nothing(_) => {}
        }
    }
    let found: Vec<&Evidence> = [&validation.evidence, &validation.smaller].into_iter().flatten().collect();
    // What is not shown has to be tried, and every part of the loops with it.
    let gap = match found.iter().min_by_key(|evidence| evidence.gap().is_some()) {
        None => validation.nothing.clone(),
        Some(evidence) => evidence.gap(),
    };
    match (unproved, gap) {
        (Some(error), Some(gap)) => Err(error.note(format!("nor is it tested: {gap}"))),
        _ => {
            let nothing = found.is_empty();
            validation.nothing = validation.nothing.filter(|_| nothing);
            Ok(validation)
        }
    }
}

impl Attempt<'_> {
    pub fn into_owned(self) -> Attempt<'static> {
        Attempt {
            core: Cow::Owned(self.core.into_owned()),
            begin: Cow::Owned(self.begin.into_owned()),
            steps: Cow::Owned(self.steps.into_owned()),
            lowered: Cow::Owned(self.lowered.into_owned()),
            scheduled: self.scheduled.map(|scheduled| Cow::Owned(scheduled.into_owned())),
            loops: Cow::Owned(self.loops.into_owned()),
            strict: self.strict,
        }
    }

    fn comparison(&self, budget: u64, doubted: bool) -> LoopComparison<'_> {
        LoopComparison { budget, strict: self.strict, lowered: Some(&self.lowered), doubted }
    }

    fn compared(&self, budget: u64, doubted: bool) -> Outcome {
        validate(&self.core, &self.loops, &self.comparison(budget, doubted))
    }

    /// The loops of the same derivation and schedule with smaller numbers, if they are the same up to numbers.
    fn with_smaller_numbers<'b>(&self, again: &Again<'b>) -> Option<Attempt<'b>> {
        let mut numbers = self.begin.numbers();
        self.steps.iter().flat_map(|step| &step.args).for_each(|arg| collect(arg, &mut numbers));
        if numbers.iter().all(|number| *number <= SMALL) {
            return None;
        }
        let mut small = scaled(&numbers)?.into_iter();
        let begin = self.begin.with_numbers(&mut small);
        let mut smaller = |step: &Step| {
            let args = step.args.iter().map(|arg| replaced(arg, &mut small)).collect();
            Step { args, ..step.clone() }
        };
        let steps = self.steps.iter().map(&mut smaller).collect();
        let attempt = again(Change { core: None, begin, steps })?;
        same_structure(&attempt.loops, &self.loops).then_some(attempt)
    }

    /// The loops of the same program at smaller literal sizes, if they are the same up to numbers.
    fn at_smaller_sizes<'b>(&self, again: &Again<'b>) -> Option<Attempt<'b>> {
        let core = shrunk_program(&self.core).filter(|_| matches!(*self.begin, Begin::Lowering))?;
        let attempt = again(Change { core: Some(core), begin: None, steps: self.steps.to_vec() })?;
        same_structure(&attempt.loops, &self.loops).then_some(attempt)
    }

    /// The error for a difference, at the step that made it: of where the loops begin, or of the schedule. Steps are shown
    /// as they are in the attempt that the user wrote, also where they were taken with smaller numbers.
    fn blamed(&self, difference: &Difference, written: &Attempt<'_>, budget: u64, is_doubted: bool) -> Diagnostic {
        let before = |difference: &Difference| {
            let blamed = self.begin.blamed(&self.core, &written.begin, difference, self.strict);
            blamed.unwrap_or_else(|| bug(format!("the loops do not compute what the program means: {difference}")))
        };
        let Some(scheduled) = &self.scheduled else { return before(difference) };
        let comparison = self.comparison(budget, is_doubted);
        let nests: Vec<&LoopProgram> = scheduled.taken.iter().map(|taken| &taken.after).collect();
        let lowering_differs = matches!(validate(&self.core, &scheduled.before, &comparison), Outcome::Differs(_));
        let Some(at) = bisect(&self.core, &nests, &comparison).filter(|_| !lowering_differs) else {
            return before(difference);
        };
        let taken = &scheduled.taken[at];
        let step = written.steps.get(at).unwrap_or(&taken.step);
        let text = format!("the schedule changes the meaning: after `{step}`, {difference}");
        let error = doubted(Diagnostic::error(Code::E0705, step.span, text), &taken.conditions);
        let before = "the loops before this step agree with the program: leave it out, or bring them into an order that it \
                      keeps";
        error.note(after(taken)).help(before)
    }
}

const SCALED: &str = "found with smaller numbers in the steps, which make the same loops";
const SHRUNK: &str = "found at smaller sizes, for which the loops are the same";

/// The first step of the schedule that is not proved, as an error.
fn unproved(scheduled: &Scheduled) -> Option<Diagnostic> {
    let taken = scheduled.taken.iter().find(|taken| !taken.is_proved())?;
    let text = format!("`{}` is not shown to keep the meaning for all sizes", taken.step);
    let error = Diagnostic::error(Code::E0805, taken.step.span, text);
    Some(doubted(error, &taken.conditions).note(after(taken)))
}

/// The numbers of an argument, in order.
fn collect(arg: &Arg, numbers: &mut Vec<i64>) {
    match &arg.kind {
        ArgKind::Int(number) => numbers.push(*number),
        ArgKind::List(list) => list.iter().for_each(|arg| collect(arg, numbers)),
        ArgKind::Path(_) => {}
    }
}

/// The argument with other numbers, in the same order.
fn replaced(arg: &Arg, numbers: &mut impl Iterator<Item = i64>) -> Arg {
    let kind = match &arg.kind {
        ArgKind::Int(number) => ArgKind::Int(numbers.next().unwrap_or(*number)),
        ArgKind::List(list) => ArgKind::List(list.iter().map(|arg| replaced(arg, numbers)).collect()),
        ArgKind::Path(path) => ArgKind::Path(path.clone()),
    };
    Arg { kind, span: arg.span }
}
