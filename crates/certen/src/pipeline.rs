//! The road from text to machine code, on one page.
//!
//! [`Stage`] lists the stages. A [`Module`] is a program on this road; its methods below are the stages, in the same order.
//! Each asks for what the stage before it has made and passes that to the room that does the work. A
//! stage runs when someone first asks for what it makes, and what it makes is kept. Nothing is locked while it runs. A new
//! stage is an entry of the list, a method here and a room of its own.
//!
//! Guarantees: no C leaves whose loops were not verified and compared with the meaning, no machine code that was not
//! tried. What [`Module::passes`] reports, `explain` shows, and messages name, is what ran.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use certen_codegen::{CCode, emit_c};
use certen_core::Program;
use certen_index::Ix;
use certen_loops::{FpMode, LoopProgram, Stmt, verify};
use certen_runtime::{
    Cpu, NativeKernel, RuntimeError, Signature, in_standard_environment, l2_bytes, standard_environment,
};
use certen_schedule::{Machine, Planned, Refused, Scheduled, apply, automatic};
use certen_syntax::schedule::Step;
use certen_syntax::{Code, Diagnostic};

use crate::begin::Begin;
use crate::blame::violations;
use crate::choice::Choice;
use crate::failure::Failure;
use crate::front::Accepted;
use crate::layout::{LAYOUT, Layout};
use crate::optimise::{Optimised, optimise};
use crate::options::{Options, is_strict, mode};
use crate::sound::truncations;
use crate::stage::{Passed, Stage};
use crate::trial::{Build, MachineCode, Trial, tried};
use crate::validation::{Attempt, Change, Validation, validated};
pub use sizes::SPECIALISED;
use sizes::Specialised;

mod sizes;

/// The C compiler takes a few milliseconds for each loop nest; programs with more than this are not given to it.
const MAX_NESTS: usize = 10_000;

/// The machine that automatic schedules are written for: facts about an instruction set and a cache, and no measurement.
pub(crate) fn machine(cpu: Cpu) -> Result<Machine, RuntimeError> {
    Ok(Machine {
        unit_bytes: cpu.unit_bytes() as i64,
        l2_bytes: l2_bytes()? as i64,
        ..Machine::with_vectors(cpu.vector_bytes(), cpu.has_fma())
    })
}

/// A checked program, on its way along the road.
pub struct Module {
    pub(crate) accepted: Accepted,
    pub(crate) options: Options,
    made: Made,
}

/// What a stage makes, once it has.
type Stored<T> = OnceLock<Result<T, Failure>>;

/// What the stages have made so far.
#[derive(Default)]
struct Made {
    optimised: Stored<Option<Optimised>>,
    lowered: Stored<LoopProgram>,
    /// The automatic schedule for all sizes, where numbers were put in.
    like: Option<Vec<Planned>>,
    /// The schedule that the compiler wrote.
    planned: Stored<(Vec<Planned>, Vec<Step>)>,
    scheduled: OnceLock<Result<Scheduled, Box<Refused>>>,
    loops: Stored<LoopProgram>,
    verified: Stored<()>,
    validation: Stored<Validation>,
    c: Stored<CCode>,
    /// Only what succeeds is kept: another attempt may find a compiler, or more memory.
    native: OnceLock<(NativeKernel, Trial)>,
    operations: OnceLock<Option<Ix>>,
    passes: Mutex<Vec<Passed>>,
    specialised: Mutex<Vec<Specialised>>,
    /// Programs for all batches, with the other sizes that they are for.
    batches: Mutex<Vec<Specialised>>,
    /// The same program with products in another order, by what it is rewritten to.
    orders: Mutex<Vec<(String, Arc<Module>)>>,
}

/// What a cell has, made now if it has nothing.
fn once<T>(cell: &Stored<T>, make: impl FnOnce() -> Result<T, Failure>) -> Result<&T, Failure> {
    let found = match cell.get() {
        Some(found) => found,
        None => {
            let made = make();
            cell.get_or_init(|| made)
        }
    };
    found.as_ref().map_err(Failure::clone)
}

impl Module {
    /// A program that a front door has accepted.
    pub(crate) fn new(accepted: Accepted, options: &Options) -> Module {
        let made = Made::default();
        let module = Module { accepted, options: options.clone(), made };
        let [checked, core] = module.accepted.times;
        module.note(Stage::Checked, checked, None);
        module.note(Stage::Core, core, Some(terms(module.core())));
        module
    }

    /// The program in Core, as written: what it means.
    pub fn core(&self) -> &Program {
        &self.accepted.core
    }

    /// The program in Core that loops are made from: the same values with fewer operations, or as it was derived.
    ///
    /// # Errors
    /// If it does not agree with the program as written, which is a bug in Certen, or a rewrite cannot be made.
    pub fn rewritten(&self) -> Result<&Program, Failure> {
        match &self.accepted.begin {
            Begin::Lowering => Ok(self.optimisation()?.map_or(self.core(), |optimised| &optimised.program)),
            Begin::Codegen(path) => Ok(path.lowered.as_deref().unwrap_or(self.core())),
            Begin::Derived(_) => Ok(self.derived()?.unwrap_or(self.core())),
        }
    }

    /// What was optimised; none if the program is compiled as written, or derived.
    ///
    /// # Errors
    /// As [`Module::rewritten`].
    pub fn optimisation(&self) -> Result<Option<&Optimised>, Failure> {
        if !matches!(self.accepted.begin, Begin::Lowering) {
            return Ok(None);
        }
        let optimised = once(&self.made.optimised, || {
            let optimised = || optimise(self.core(), self.typed(), &self.options);
            let size = |found: &Option<Optimised>| terms(found.as_ref().map_or(self.core(), |found| &found.program));
            self.timed(Stage::Rewritten, optimised, size)
        });
        Ok(optimised?.as_ref())
    }

    /// The program that its derivations end with; none if it is not derived.
    ///
    /// # Errors
    /// If a rewrite cannot be made.
    pub fn derived(&self) -> Result<Option<&Program>, Failure> {
        let Some(derivations) = self.accepted.begin.derivations() else { return Ok(None) };
        let made = || derivations.made(self.core(), self.options.fp).map_err(|refused| refused.diagnostic.clone());
        match derivations.is_made() {
            true => made().map_err(|error| self.refuse(error)),
            false => self.timed(Stage::Rewritten, made, |program| terms(program)),
        }
        .map(Some)
    }

    /// The loops that its schedule begins with.
    ///
    /// # Errors
    /// If a truncation cuts more than padding, or the program uses what cannot be lowered yet. As [`Module::rewritten`].
    pub fn lowered(&self) -> Result<&LoopProgram, Failure> {
        once(&self.made.lowered, || {
            let program = self.rewritten()?;
            let violations = truncations(program);
            if !violations.is_empty() {
                return Err(Failure::new(self.accepted.sources.clone(), violations));
            }
            let lowered = || self.accepted.begin.lowered(self.core(), program, self.options.fp);
            self.timed(Stage::Lowered, lowered, statements)
        })
    }

    /// The schedule that the compiler writes: what it does with each nest, and the steps.
    ///
    /// # Errors
    /// As [`Module::lowered`].
    pub fn planned(&self) -> Result<&(Vec<Planned>, Vec<Step>), Failure> {
        once(&self.made.planned, || {
            let lowered = self.lowered()?;
            let cpu = self.options.cpu.map_or_else(Cpu::from_environment, Ok);
            let machine = cpu.and_then(machine).map_err(|error| self.runtime_failure(&error))?;
            let machine = Machine { has_threads: self.options.parallel, ..machine };
            let planned = || {
                let planned = automatic(lowered, &machine, self.fp(), self.made.like.as_deref());
                let text = "with these sizes, the schedule for all sizes cannot be followed";
                planned.ok_or_else(|| Diagnostic::error(Code::E0804, None, text))
            };
            let (plans, scheduled) =
                self.timed(Stage::Planned, planned, |(_, scheduled)| (scheduled.taken.len(), "steps"))?;
            let steps: Vec<Step> = scheduled.taken.iter().map(|taken| taken.step.clone()).collect();
            // Planning has taken the steps already.
            if !steps.is_empty() {
                self.note(Stage::Scheduled, Duration::ZERO, Some(statements(&scheduled.program)));
                self.made.scheduled.get_or_init(|| Ok(scheduled));
            }
            Ok((plans, steps))
        })
    }

    /// What may be assumed of its floats.
    fn fp(&self) -> FpMode {
        mode(self.core(), self.options.fp)
    }

    /// The loops after each step of its schedule; none without one.
    ///
    /// # Errors
    /// If a step cannot be taken. As [`Module::lowered`].
    pub fn scheduled(&self) -> Result<Option<&Scheduled>, Failure> {
        match self.attempted()? {
            None => Ok(None),
            Some(Ok(scheduled)) => Ok(Some(scheduled)),
            Some(Err(refused)) => Err(self.refuse(refused.diagnostic.clone())),
        }
    }

    /// The loops after each step that could be taken, and why the next one could not.
    pub(crate) fn attempted(&self) -> Result<Option<&Result<Scheduled, Box<Refused>>>, Failure> {
        if self.steps().is_empty() {
            return Ok(None);
        }
        if self.made.scheduled.get().is_none() {
            let lowered = self.lowered()?;
            let scheduled = || Ok(self.applied(lowered, self.steps()));
            let size =
                |found: &Result<Scheduled, _>| statements(found.as_ref().map_or(lowered, |found| &found.program));
            let scheduled = self.timed(Stage::Scheduled, scheduled, size)?;
            self.made.scheduled.get_or_init(|| scheduled);
        }
        Ok(self.made.scheduled.get())
    }

    fn applied(&self, loops: &LoopProgram, steps: &[Step]) -> Result<Scheduled, Box<Refused>> {
        apply(loops.clone(), steps, self.fp())
    }

    /// The loops that code is made from: laid out in memory, with vector loops and those marked that threads share.
    ///
    /// # Errors
    /// As [`Module::scheduled`].
    pub fn loops(&self) -> Result<&LoopProgram, Failure> {
        once(&self.made.loops, || {
            let (loops, layout) = self.to_lay_out(self.scheduled()?)?;
            LAYOUT
                .iter()
                .try_fold(loops, |loops, pass| self.timed(pass.stage, || (pass.run)(loops, &layout), statements))
        })
    }

    fn to_lay_out(&self, scheduled: Option<&Scheduled>) -> Result<(LoopProgram, Layout<'_>), Failure> {
        let loops = scheduled.map_or_else(|| self.lowered(), |scheduled| Ok(&scheduled.program))?;
        Ok((loops.clone(), Layout::new(&self.options, scheduled)))
    }

    /// Whether the verifier accepts the loops.
    ///
    /// # Errors
    /// If it does not: the step of the schedule that brought it about, or the pass. As [`Module::loops`].
    pub fn verified(&self) -> Result<(), Failure> {
        once(&self.made.verified, || {
            let loops = self.loops()?;
            let found = self.timed(Stage::Verified, || Ok(verify(loops)), |_| statements(loops))?;
            if found.is_empty() {
                return Ok(());
            }
            let scheduled = self.scheduled()?;
            let (before, layout) = self.to_lay_out(scheduled)?;
            let errors = violations(scheduled, found, || layout.blamed(LAYOUT, before));
            Err(Failure::new(self.accepted.sources.clone(), errors))
        })
        .copied()
    }

    /// Compares the loops with what the program means.
    ///
    /// # Errors
    /// E0705 if a schedule changes a value, E0704 if the compiler does, which is a bug; E0805 if equality is not proved,
    /// and the options want that, or it cannot be tested. As [`Module::loops`].
    pub fn validation(&self) -> Result<&Validation, Failure> {
        once(&self.made.validation, || {
            let attempt = self.attempt()?;
            let again = |change| self.changed(change).ok();
            let validated = || validated(&attempt, self.options.require_proof, &again);
            self.timed(Stage::Validated, validated, |found| (found.points(), "points"))
        })
    }

    /// The loops, with all that is known of how they were made.
    fn attempt(&self) -> Result<Attempt<'_>, Failure> {
        Ok(Attempt {
            core: Cow::Borrowed(self.core()),
            begin: Cow::Borrowed(&self.accepted.begin),
            steps: Cow::Borrowed(self.steps()),
            lowered: Cow::Borrowed(self.rewritten()?),
            scheduled: self.scheduled()?.map(Cow::Borrowed),
            loops: Cow::Borrowed(self.loops()?),
            strict: is_strict(self.core(), self.options.fp),
        })
    }

    /// The loops of the same program with something changed.
    fn changed(&self, change: Change) -> Result<Attempt<'_>, Failure> {
        let Change { core, begin, steps } = change;
        if core.is_none() && begin.is_none() {
            let scheduled = self.applied(self.lowered()?, &steps);
            let scheduled = scheduled.map_err(|refused| self.refuse(refused.diagnostic))?;
            let (loops, layout) = self.to_lay_out(Some(&scheduled))?;
            let loops = LAYOUT.iter().try_fold(loops, |loops, pass| (pass.run)(loops, &layout));
            let loops = Cow::Owned(loops.map_err(|error| self.refuse(error))?);
            let (steps, scheduled) = (Cow::Owned(steps), Some(Cow::Owned(scheduled)));
            return Ok(Attempt { steps, scheduled, loops, ..self.attempt()? });
        }
        let core = core.unwrap_or_else(|| self.core().clone());
        let mut accepted = Accepted::core(core);
        accepted.begin = begin.unwrap_or_else(|| self.accepted.begin.clone());
        accepted.steps = steps.into();
        Ok(Module::new(accepted, &self.as_given()).attempt()?.into_owned())
    }

    /// The program in C.
    ///
    /// # Errors
    /// If it is too large or too deep to be compiled. As [`Module::verified`] and [`Module::validation`].
    pub fn c(&self) -> Result<CCode, Failure> {
        self.printed().cloned()
    }

    fn printed(&self) -> Result<&CCode, Failure> {
        once(&self.made.c, || {
            let loops = self.loops()?;
            self.verified()?;
            self.validation()?;
            self.timed(Stage::C, || emit_c(loops), |c| (c.native.len(), "bytes"))
        })
    }

    /// The program as native code: compiled on first use, or found in the cache, and tried.
    ///
    /// # Errors
    /// If there is no C compiler, or the program is too large or too deep to be compiled; E0707 if the machine code is
    /// wrong. As [`Module::c`].
    pub fn native(&self) -> Result<&NativeKernel, Failure> {
        if let Some((kernel, _)) = self.made.native.get() {
            return Ok(kernel);
        }
        let loops = self.loops()?;
        let nests = loops.body.iter().filter(|stmt| matches!(stmt, Stmt::Nest(_))).count();
        if nests > MAX_NESTS {
            let text =
                format!("a program of {nests} loop nests cannot be compiled yet: the C compiler would take minutes");
            return Err(self.refuse(Diagnostic::error(Code::E0703, None, text)));
        }
        let (c, code, cpu) = (self.printed()?, self.machine_code()?, self.options.cpu);
        let build = |c: &str, signature: Signature| NativeKernel::build(c, signature, cpu);
        let small = || in_standard_environment(|| code.tried_small(&build));
        let made = thread::scope(|scope| {
            // Code that is new is tried with smaller numbers while it is compiled. Where no thread can be started, or it does not
            // come back, that is done later.
            let is_new = code.is_large() && !NativeKernel::is_kept(&c.native, cpu);
            let beside = is_new.then(|| thread::Builder::new().spawn_scoped(scope, small).ok()).flatten();
            let kernel = || Ok(build(&c.native, self.signature()));
            let kernel = self.timed(Stage::Native, kernel, |_| (c.native.len(), "bytes of C"))?;
            let kernel = kernel.map_err(|error| self.runtime_failure(&error))?;
            let small = || beside.and_then(|thread| thread.join().ok()).unwrap_or_else(small);
            let found = || tried(&code, &kernel, small).map_err(|error| *error);
            let found = self.timed(Stage::Tried, found, |found| (found.elements() as usize, "elements"))?;
            Ok((kernel, found))
        })?;
        Ok(&self.made.native.get_or_init(|| made).0)
    }

    /// Tries machine code of this program that was made elsewhere, unless it has passed before. What has to be compiled
    /// with smaller numbers is made by `build`.
    ///
    /// # Errors
    /// E0707 if something differs. As [`Module::loops`].
    pub fn try_code(&self, kernel: &NativeKernel, build: &Build<'_>) -> Result<Trial, Failure> {
        let code = self.machine_code()?;
        tried(&code, kernel, || code.tried_small(build)).map_err(|error| self.refuse(*error))
    }

    fn machine_code(&self) -> Result<MachineCode<'_>, Failure> {
        let operations = self.operations().and_then(Ix::as_constant);
        Ok(MachineCode { core: self.core(), lowered: self.rewritten()?, loops: self.loops()?, operations })
    }

    /// What a run of the machine code beside its loops has found; none if nothing was compiled yet.
    pub fn trial(&self) -> Option<&Trial> {
        self.made.native.get().map(|(_, found)| found)
    }

    /// Whether native code is there already, so that a run begins at once.
    pub fn is_compiled(&self) -> bool {
        self.made.native.get().is_some()
    }

    /// The stages that ran, in the order in which they came to their end.
    pub fn passes(&self) -> Vec<Passed> {
        self.made.passes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many arithmetic operations a run makes, as a formula of the sizes; none if it cannot be written down.
    pub fn operations(&self) -> Option<&Ix> {
        self.made.operations.get_or_init(|| self.rewritten().ok()?.operations().ok()).as_ref()
    }

    /// What native code is called with.
    pub fn signature(&self) -> Signature {
        let core = self.core();
        let types = core.types();
        Signature {
            sizes: core.sizes.clone(),
            facts: core.facts.clone(),
            inputs: core.inputs.iter().map(|input| input.ty.clone()).collect(),
            outputs: core.outputs.iter().filter_map(|(_, source)| types.get(source).cloned()).collect(),
        }
    }

    fn as_automatic(&self) -> Options {
        Options { schedule: Choice::Auto, ..self.options.clone() }
    }

    /// The options for a program that has the steps that it is given, also where they were written automatically.
    fn as_given(&self) -> Options {
        Options { schedule: Choice::None, ..self.options.clone() }
    }

    /// Runs a stage in the standard environment of floats, and notes how long it took.
    fn timed<T>(
        &self,
        stage: Stage,
        run: impl FnOnce() -> Result<T, Diagnostic>,
        size: impl FnOnce(&T) -> (usize, &'static str),
    ) -> Result<T, Failure> {
        let _environment = standard_environment();
        let begin = Instant::now();
        let made = run();
        self.note(stage, begin.elapsed(), made.as_ref().ok().map(size));
        made.map_err(|error| self.refuse(error))
    }

    fn note(&self, stage: Stage, time: Duration, size: Option<(usize, &'static str)>) {
        let mut passes = self.made.passes.lock().unwrap_or_else(PoisonError::into_inner);
        passes.push(Passed { stage, time, size });
    }

    pub(crate) fn refuse(&self, error: Diagnostic) -> Failure {
        Failure::new(self.accepted.sources.clone(), vec![error])
    }

    pub(crate) fn runtime_failure(&self, error: &RuntimeError) -> Failure {
        self.refuse(Diagnostic::error(error.code(), None, error.to_string()))
    }
}

/// The size of a program in Core.
fn terms(program: &Program) -> (usize, &'static str) {
    (program.terms.len(), "terms")
}

/// The size of loops.
fn statements(loops: &LoopProgram) -> (usize, &'static str) {
    (certen_loops::statements(&loops.body).count(), "statements")
}
