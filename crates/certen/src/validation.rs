//! Validation: no code leaves whose loops were not compared with what the program means.
//!
//! The last nest, with its memory shared and its loops marked, is compared with the program *as it was written*
//! ([`certen_validate`]). A schedule with large numbers is applied a second time with small ones: if the loops are the
//! same up to numbers, they stand for the large ones. A program of large literal sizes is made small as a whole.
//!
//! A difference is blamed on the step that made it, found by bisection.

use certen_loops::LoopProgram;
use certen_schedule::{Condition, Scheduled, Status};
use certen_syntax::schedule::{Arg, ArgKind, Step};
use certen_syntax::{Code, Diagnostic};
use certen_validate::scale::{same_structure, scaled, shrunk_program};
use certen_validate::{BUDGET, Difference, Evidence, Outcome, Trial, bisect, validate};

use crate::begin::Begin;
use crate::optimise::is_strict;
use crate::schedule::after;
use crate::{Failure, Module};

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

impl Module {
    /// Compares the loops with what the program means, once.
    ///
    /// # Errors
    /// E0705 if a schedule changes a value, E0704 if the compiler does, which is a bug; E0805 if equality is not proved,
    /// and the options want that, or it cannot be tested. As [`Module::loops`].
    pub fn validation(&self) -> Result<&Validation, Failure> {
        let validation = match self.validation.get() {
            Some(validation) => validation,
            None => {
                let found = self.compare()?;
                self.validation.get_or_init(|| found)
            }
        };
        validation.as_ref().map_err(|error| self.refuse(error.clone()))
    }

    fn compare(&self) -> Result<Result<Validation, Diagnostic>, Failure> {
        let (loops, scheduled) = (self.loops()?, self.scheduled()?);
        let unproved = self.begin.doubt().or_else(|| scheduled.and_then(unproved));
        if let Some(error) = unproved.clone().filter(|_| self.options().require_proof) {
            return Ok(Err(error.help("without `--require-proof`, the comparison with the meaning decides")));
        }
        let smaller = self.with_smaller_numbers(loops);
        // What a proof does not show has to be tried harder.
        let proved = unproved.is_none();
        let budget = if proved { BUDGET } else { UNPROVED * BUDGET } / if smaller.is_some() { 2 } else { 1 };
        let trial = self.comparison(budget)?;
        let mut validation = Validation { proved, evidence: None, smaller: None, nothing: None };
        match validate(self.core(), loops, &trial) {
            Outcome::Agrees(evidence) => validation.evidence = Some(evidence),
            Outcome::Differs(difference) => return Ok(Err(self.blamed(&difference, &self.begin, scheduled, &trial))),
            Outcome::Nothing(why) => validation.nothing = Some(why),
        }
        if let Some(Small { program, scheduled, derived }) = &smaller {
            let trial = match derived {
                Some(derived) => derived.comparison(budget)?,
                None => trial,
            };
            match validate(self.core(), program, &trial) {
                Outcome::Agrees(evidence) => validation.smaller = Some(evidence),
                Outcome::Differs(difference) => {
                    let begin = derived.as_ref().map_or(&self.begin, |derived| &derived.begin);
                    let error = self.blamed(&difference, begin, scheduled.as_ref(), &trial);
                    return Ok(Err(error.note(SCALED)));
                }
                Outcome::Nothing(_) => {}
            }
        }
        if validation.evidence.is_none() && validation.smaller.is_none() {
            match self.at_smaller_sizes(loops) {
                Some(Outcome::Agrees(evidence)) => validation.smaller = Some(evidence),
                Some(Outcome::Differs(difference)) => return Ok(Err(self.blamed_small(&difference).note(SHRUNK))),
                Some(Outcome::Nothing(_)) | None => {}
            }
        }
        let found: Vec<&Evidence> = [&validation.evidence, &validation.smaller].into_iter().flatten().collect();
        // What is not shown has to be tried, and every part of the loops with it.
        let gap = match found.iter().min_by_key(|evidence| evidence.gap().is_some()) {
            None => validation.nothing.clone(),
            Some(evidence) => evidence.gap(),
        };
        match (unproved, gap) {
            (Some(error), Some(gap)) => Ok(Err(error.note(format!("nor is it tested: {gap}")))),
            _ => {
                let nothing = found.is_empty();
                validation.nothing = validation.nothing.filter(|_| nothing);
                Ok(Ok(validation))
            }
        }
    }

    fn comparison(&self, budget: u64) -> Result<Trial<'_>, Failure> {
        Ok(Trial { budget, strict: is_strict(self.core(), self.options().fp), lowered: Some(self.optimised()?) })
    }

    /// The loops of the same derivation and schedule with smaller numbers, if they are the same up to numbers.
    fn with_smaller_numbers(&self, loops: &LoopProgram) -> Option<Small> {
        let mut numbers = self.begin.numbers();
        self.steps.iter().flat_map(|step| &step.args).for_each(|arg| collect(arg, &mut numbers));
        if numbers.iter().all(|number| *number <= SMALL) {
            return None;
        }
        let mut small = scaled(&numbers)?.into_iter();
        let begin = self.begin.with_numbers(&mut small);
        let steps: Vec<Step> = self
            .steps
            .iter()
            .map(|step| Step { args: step.args.iter().map(|arg| replaced(arg, &mut small)).collect(), ..step.clone() })
            .collect();
        let derived = begin
            .map(|begin| Module::from_core(self.core().clone(), self.options()).beginning(begin))
            .map(|derived| derived.with_steps(steps.clone().into()));
        let (program, scheduled) = match &derived {
            Some(derived) => (derived.loops().ok()?.clone(), derived.scheduled().ok()?.cloned()),
            None => {
                let scheduled = self.applied(&steps).ok()?.ok()?;
                (self.stored(Some(&scheduled)).ok()?, Some(scheduled))
            }
        };
        same_structure(&program, loops).then_some(Small { program, scheduled, derived })
    }

    /// The comparison of the same program at smaller literal sizes, if its loops are the same up to numbers.
    fn at_smaller_sizes(&self, loops: &LoopProgram) -> Option<Outcome> {
        let core = shrunk_program(self.core()).filter(|_| matches!(self.begin, Begin::Lowering))?;
        let module = Module::from_core(core, self.options()).with_steps(self.steps.clone());
        let small = module.loops().ok()?;
        let trial = module.comparison(BUDGET).ok()?;
        same_structure(small, loops).then(|| validate(module.core(), small, &trial))
    }

    /// The error for a difference at smaller sizes than its own.
    fn blamed_small(&self, difference: &Difference) -> Diagnostic {
        let small = shrunk_program(self.core())
            .map(|core| Module::from_core(core, self.options()).with_steps(self.steps.clone()));
        match small.as_ref().map(|small| (small, small.scheduled(), small.comparison(BUDGET))) {
            Some((small, Ok(scheduled), Ok(trial))) => small.blamed(difference, &small.begin, scheduled, &trial),
            _ => wrong(difference),
        }
    }

    /// The error for a difference, at the step that made it: of where the loops begin, or of the schedule.
    fn blamed(
        &self,
        difference: &Difference,
        begin: &Begin,
        scheduled: Option<&Scheduled>,
        trial: &Trial<'_>,
    ) -> Diagnostic {
        let before = |difference: &Difference| {
            begin.blamed(self.core(), &self.begin, difference, trial.strict).unwrap_or_else(|| wrong(difference))
        };
        let Some(scheduled) = scheduled else { return before(difference) };
        let nests: Vec<&LoopProgram> = scheduled.taken.iter().map(|taken| &taken.after).collect();
        let lowering_differs = matches!(validate(self.core(), &scheduled.before, trial), Outcome::Differs(_));
        let Some(at) = bisect(self.core(), &nests, trial).filter(|_| !lowering_differs) else {
            return before(difference);
        };
        let taken = &scheduled.taken[at];
        // As it was written, also where it was taken with smaller numbers.
        let step = self.steps.get(at).unwrap_or(&taken.step);
        let text = format!("the schedule changes the meaning: after `{step}`, {difference}");
        let error = doubted(Diagnostic::error(Code::E0705, step.span, text), &taken.conditions);
        let before = "the loops before this step agree with the program: leave it out, or bring them into an order that it \
                      keeps";
        error.note(after(taken)).help(before)
    }
}

/// The same with smaller numbers.
struct Small {
    program: LoopProgram,
    scheduled: Option<Scheduled>,
    /// The derivation with smaller numbers, if it has numbers.
    derived: Option<Module>,
}

const SCALED: &str = "found with smaller numbers in the steps, which make the same loops";
const SHRUNK: &str = "found at smaller sizes, for which the loops are the same";

/// The compiler itself is wrong.
fn wrong(difference: &Difference) -> Diagnostic {
    Diagnostic::error(Code::E0704, None, format!("the loops do not compute what the program means: {}", difference))
        .note("this is a bug in Certen; no code was made")
}

/// That a proof is wanted which is not there.
fn unproved(scheduled: &Scheduled) -> Option<Diagnostic> {
    let taken = scheduled.taken.iter().find(|taken| !taken.is_proved())?;
    let text = format!("`{}` is not shown to keep the meaning for all sizes", taken.step);
    let error = Diagnostic::error(Code::E0805, taken.step.span, text);
    Some(doubted(error, &taken.conditions).note(after(taken)))
}

/// An error with the conditions of a step or rewrite that are not proved.
pub(crate) fn doubted(error: Diagnostic, conditions: &[Condition]) -> Diagnostic {
    conditions.iter().fold(error, |error, condition| match &condition.status {
        Status::Fails(why) => error.note(format!("it is wrong that {}: {why}", condition.what)),
        Status::Open => error.note(format!("it is not shown that {}", condition.what)),
        Status::Proved(_) => error,
    })
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
