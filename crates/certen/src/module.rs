//! A program on its way along the road: text, typed program, Core, loops, C.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use certen_codegen::CCode;
use certen_core::padding::{self, PadType};
use certen_core::{ElemType, Parameter, Program};
use certen_dialects::algebra::{self, Applied, Notation};
use certen_dialects::{model, teil};
use certen_figures::translate::translate;
use certen_index::Ix;
use certen_lang::Known;
use certen_loops::{Lend, LoopProgram, Stmt, pad, parallelise, reuse};
use certen_runtime::{Cpu, NativeKernel, RuntimeError, Signature, standard_environment};
use certen_schedule::{Refused, Scheduled, at_sizes, vectorise};
use certen_syntax::schedule::{Schedule, Step};
use certen_syntax::{Code, Diagnostic, Diagnostics, Name, Sources};

use crate::begin::Begin;
use crate::derived::with_outputs_of;
use crate::optimise::{is_strict, optimise};
use crate::schedule::untouched;
use crate::ten::{self, CheckedFunction, Interface, TenFront};
use crate::texts::Imports;
use crate::trial::{Smaller, build_for, built, tried};
use crate::{Choice, Failure, FpMode, Optimised, Param, Texts, Trial, Validation};

/// Which language a file is in, by its ending.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// `.teil`: TeIL and Core-TeIL.
    Teil,
    /// `.model`: the model language.
    Model,
    /// `.teml`: TeML.
    Teml,
    /// `.ten`: the language that users write by hand.
    Ten,
    /// `.core`: the textual form of Core.
    Core,
}

impl Dialect {
    /// The dialect of a file name.
    pub fn of(name: &str) -> Option<Dialect> {
        match Path::new(name).extension()?.to_str()? {
            "teil" => Some(Dialect::Teil),
            "model" => Some(Dialect::Model),
            "teml" => Some(Dialect::Teml),
            "ten" => Some(Dialect::Ten),
            "core" => Some(Dialect::Core),
            _ => None,
        }
    }
}

/// What can be chosen when a program is compiled.
#[derive(Clone, Debug)]
pub struct Options {
    /// The element type of dialects that do not name one.
    pub elem: ElemType,
    /// What may be assumed of floats.
    pub fp: FpMode,
    /// The function of a `.ten` file that is run: none for `main`, or the only one.
    pub function: Option<Name>,
    /// The ranks and element types that this function leaves open.
    pub known: Known,
    /// Whether threads may share loops. Results have the same bits either way.
    pub parallel: bool,
    /// The schedule of its loops.
    pub schedule: Choice,
    /// Whether a schedule is refused unless each of its steps is shown to keep the meaning, for all sizes.
    pub require_proof: bool,
    /// The instruction set of native code; by default what `$CERTEN_CPU` says, or the processor has.
    pub cpu: Option<Cpu>,
    /// A vector length: the rows of buffers that the program allocates are padded to multiples of it.
    pub vector: Option<i64>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            elem: ElemType::F64,
            fp: FpMode::default(),
            function: None,
            known: Known::default(),
            parallel: true,
            schedule: Choice::default(),
            require_proof: false,
            cpu: None,
            vector: None,
        }
    }
}

/// The C compiler takes a few milliseconds for each loop nest; programs with more than this are not given to it.
const MAX_NESTS: usize = 10_000;

/// What is kept of the way to Core.
pub(crate) enum Front {
    /// The typed program, of a notation of the tensor algebra.
    Algebra(Box<algebra::Typed>),
    /// The states and paths of a TeML program.
    Teml(Box<certen_teml::Compiled>),
    /// The typed tree of a `.ten` program.
    Ten(Box<TenFront>),
    /// Nothing: it was written in Core.
    Core,
}

impl Front {
    /// The function's name, and the schedules that the file has for it.
    fn schedules(&self, core: &Program) -> (Name, Cow<'_, [Schedule]>) {
        match self {
            Front::Ten(front) => (front.function, Cow::Borrowed(&front.schedules)),
            Front::Teml(program) => (core.name, of_paths(&program.paths).into()),
            Front::Algebra(_) | Front::Core => (core.name, Cow::Borrowed(&[])),
        }
    }
}

/// A checked program.
pub struct Module {
    pub(crate) sources: Arc<Sources>,
    warnings: Vec<Diagnostic>,
    front: Front,
    core: Program,
    options: Options,
    optimised: OnceLock<Result<Option<Optimised>, Diagnostic>>,
    /// Where its loops begin.
    pub(crate) begin: Begin,
    /// What its schedule says.
    pub(crate) steps: Arc<[Step]>,
    pub(crate) scheduled: OnceLock<Result<Scheduled, Box<Refused>>>,
    loops: OnceLock<LoopProgram>,
    pub(crate) validation: OnceLock<Result<Validation, Diagnostic>>,
    /// The machine code, and what its trial has found.
    native: OnceLock<(NativeKernel, Trial)>,
    /// How many operations a run makes, counted when someone first asks.
    operations: OnceLock<Option<Ix>>,
}

impl Module {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// If it cannot be read, or is not an accepted program.
    pub fn from_file(path: impl AsRef<Path>, options: &Options) -> Result<Module, Failure> {
        let (name, text) = read_program(path.as_ref())?;
        Module::from_text(&name, text, options)
    }

    /// Checks a text; the dialect comes from the ending of `name`, which messages show. The files that a `.ten` text
    /// imports are looked for where `name` would stand.
    ///
    /// # Errors
    /// If it is not an accepted program.
    pub fn from_text(name: &str, text: impl Into<String>, options: &Options) -> Result<Module, Failure> {
        Module::from_imports(name, text.into(), &mut Imports::from_disk(name), options)
    }

    /// Checks a text, with what it imports at hand.
    ///
    /// # Errors
    /// If it is not an accepted program.
    pub fn from_texts(texts: &Texts, options: &Options) -> Result<Module, Failure> {
        Module::from_imports(texts.name(), texts.text().to_owned(), &mut texts.imports(), options)
    }

    fn from_imports(name: &str, text: String, imports: &mut Imports<'_>, options: &Options) -> Result<Module, Failure> {
        let _environment = standard_environment();
        let dialect = dialect(name)?;
        let mut sources = Sources::new();
        let file = sources.add(name, text);
        let mut diagnostics = Diagnostics::new();
        let built = match dialect {
            Dialect::Teil | Dialect::Model => {
                let parse = if dialect == Dialect::Teil { teil::parse } else { model::parse };
                let program = parse(&sources, file, &mut diagnostics);
                algebra::check(program, &mut diagnostics).and_then(|typed| {
                    match algebra::elaborate(&typed, kernel_name(name), options.elem) {
                        Ok(core) => Some((core, Front::Algebra(Box::new(typed)))),
                        Err(error) => {
                            diagnostics.push(*error);
                            None
                        }
                    }
                })
            }
            Dialect::Teml => certen_teml::compile(&sources, file, kernel_name(name), options.elem, &mut diagnostics)
                .map(|program| (program.core.clone(), Front::Teml(Box::new(program)))),
            Dialect::Ten => ten::compile(&mut sources, file, imports, options, &mut diagnostics)
                .map(|(core, front)| (core, Front::Ten(Box::new(front)))),
            Dialect::Core => match certen_core::parse_program(&sources, file) {
                Ok(core) => {
                    diagnostics.extend(truncations(&core));
                    // What is cut wrongly has no loops whose accesses could be looked at.
                    if !diagnostics.has_errors() {
                        diagnostics.extend(bounds(&core));
                    }
                    (!diagnostics.has_errors()).then_some((core, Front::Core))
                }
                Err(errors) => {
                    diagnostics.extend(errors.into_sorted());
                    None
                }
            },
        };
        let begin = match built.as_ref() {
            Some((_, Front::Teml(program))) => Begin::of_teml(program, &options.schedule),
            Some((_, Front::Ten(front))) => front.begin(),
            _ => Begin::default(),
        };
        let steps = built.as_ref().and_then(|(core, front)| match &begin {
            Begin::Codegen(path) => Some(path.steps.clone()),
            Begin::Lowering | Begin::Derived(_) => {
                let (function, of_file) = front.schedules(core);
                options.schedule.steps(function, &of_file, &mut sources, &mut diagnostics)
            }
        });
        let built = built.filter(|_| steps.is_some());
        let module = Module::assembled(Arc::new(sources), built, diagnostics, options)?;
        Ok(module.beginning(begin).with_steps(steps.unwrap_or_default().into()))
    }

    /// The functions of a `.ten` text that have a schedule, perhaps one without steps, and need no call to be known. Many
    /// are read at once, because every text is read with the prelude.
    pub(crate) fn each(name: &str, text: String, options: &Options) -> Result<Vec<Module>, Failure> {
        let mut sources = Sources::new();
        let file = sources.add(name, text);
        let mut diagnostics = Diagnostics::new();
        let functions = ten::check(&mut sources, file, options, &mut diagnostics);
        let sources = Arc::new(sources);
        let Some(functions) = functions.filter(|_| !diagnostics.has_errors()) else {
            return Err(Failure::new(sources, diagnostics.into_sorted()));
        };
        let module = |function: CheckedFunction| {
            let steps = function.schedules.into_iter().next()?.steps;
            let module = Module::new(sources.clone(), Vec::new(), Front::Core, function.core?, options);
            Some(module.beginning(function.begin).with_steps(steps.into()))
        };
        Ok(functions.into_iter().filter_map(module).collect())
    }

    /// The program with loops that begin here.
    pub(crate) fn beginning(self, begin: Begin) -> Module {
        Module { begin, ..self }
    }

    /// The program with this schedule.
    pub(crate) fn with_steps(self, steps: Arc<[Step]>) -> Module {
        Module { steps, ..self }
    }

    /// A program of Core that this library has made.
    pub(crate) fn from_core(core: Program, options: &Options) -> Module {
        Module::new(Arc::default(), Vec::new(), Front::Core, core, options)
    }

    /// A module, or why there is none.
    pub(crate) fn assembled(
        sources: Arc<Sources>,
        built: Option<(Program, Front)>,
        diagnostics: Diagnostics,
        options: &Options,
    ) -> Result<Module, Failure> {
        let mut diagnostics = diagnostics.into_sorted();
        diagnostics.dedup();
        match built {
            Some((core, front)) => Ok(Module::new(sources, diagnostics, front, core, options)),
            None => Err(Failure::new(sources, diagnostics)),
        }
    }

    /// A program of which nothing was made yet.
    fn new(sources: Arc<Sources>, warnings: Vec<Diagnostic>, front: Front, core: Program, options: &Options) -> Module {
        Module {
            sources,
            warnings,
            front,
            core,
            options: options.clone(),
            optimised: OnceLock::new(),
            begin: Begin::default(),
            steps: Arc::default(),
            scheduled: OnceLock::new(),
            loops: OnceLock::new(),
            validation: OnceLock::new(),
            native: OnceLock::new(),
            operations: OnceLock::new(),
        }
    }

    /// The texts that the program was read from.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// What is probably not meant.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// How the program is called, as a function.
    pub(crate) fn interface(&self) -> Interface {
        let parameter = |Parameter { name, ty }: &Parameter| Param {
            name: *name,
            ty: ty.to_string(),
            elem: Some(ty.elem),
            is_size: false,
        };
        Interface {
            name: self.core.name,
            parameters: self.core.inputs.iter().map(parameter).collect(),
            signature: interface(&self.core),
            is_open: false,
            schedules: self.front.schedules(&self.core).1.into_owned(),
        }
    }

    /// The program for these values of its sizes, in their order; none if it cannot be written down. It makes the same
    /// operations in the same order.
    pub(crate) fn at_sizes(&self, sizes: &[i64]) -> Option<Module> {
        let sizes = self.core.sizes.iter().copied().zip(sizes.iter().copied()).collect();
        // A schedule is made for the loops of all sizes; numbers are put into what it has made of them.
        let scheduled = match self.steps.is_empty() && matches!(self.begin, Begin::Lowering) {
            true => None,
            false => Some((at_sizes(self.loops().ok()?, &sizes).ok()?, self.validation().ok()?.clone())),
        };
        let optimised = match self.optimisation().ok()? {
            None if matches!(self.begin, Begin::Lowering) => None,
            None => Some(Optimised::unchanged(self.optimised().ok()?.at_sizes(&sizes).ok()?)),
            Some(found) => Some(Optimised { program: found.program.at_sizes(&sizes).ok()?, ..found.clone() }),
        };
        let core = self.core.at_sizes(&sizes).ok()?;
        let module = Module::new(self.sources.clone(), self.warnings.clone(), Front::Core, core, &self.options);
        let module = Module { optimised: OnceLock::from(Ok(optimised)), ..module };
        Some(match scheduled {
            None => module,
            Some((loops, validation)) => {
                Module { loops: OnceLock::from(loops), validation: OnceLock::from(Ok(validation)), ..module }
            }
        })
    }

    /// How many arithmetic operations a run makes, as a formula of the sizes; none if it cannot be written down.
    pub fn operations(&self) -> Option<&Ix> {
        self.operations.get_or_init(|| self.optimised().ok()?.operations().ok()).as_ref()
    }

    /// The typed program, if the dialect is a notation of the tensor algebra.
    pub fn typed(&self) -> Option<&algebra::Typed> {
        match &self.front {
            Front::Algebra(typed) => Some(typed),
            Front::Teml(_) | Front::Ten(_) | Front::Core => None,
        }
    }

    /// The states of a TeML program: each statement, and what it adds to the state (TeML, Sec. 3.2).
    pub fn states(&self) -> Option<&str> {
        match &self.front {
            Front::Teml(program) => Some(&program.states),
            Front::Algebra(_) | Front::Ten(_) | Front::Core => None,
        }
    }

    /// A `.ten` program on its way to Core: the name of each stage and the program there, as text.
    pub fn stages(&self) -> Vec<(&'static str, String)> {
        match &self.front {
            Front::Ten(front) => front.stages(),
            Front::Algebra(_) | Front::Teml(_) | Front::Core => Vec::new(),
        }
    }

    /// Numbers that were given like sizes and are part of the program.
    pub(crate) fn fixed(&self) -> Option<&BTreeMap<Name, i64>> {
        match &self.front {
            Front::Ten(front) => Some(&front.fixed),
            Front::Algebra(_) | Front::Teml(_) | Front::Core => None,
        }
    }

    /// The program in a notation of the tensor algebra.
    ///
    /// # Errors
    /// If it has an operation that the notation cannot write, or is not in a notation of the algebra.
    pub fn written_in(&self, notation: Notation) -> Result<algebra::Program, Failure> {
        let Some(typed) = self.typed() else { return Err(self.not_of_the_algebra()) };
        translate(&typed.program, notation).map_err(|error| self.refuse(*error))
    }

    /// The program made simpler by the laws of the tensor algebra (TeIL, Sec. 3.6), and where they were applied.
    ///
    /// # Errors
    /// If it is not in a notation of the algebra.
    pub fn simplified(&self) -> Result<(algebra::Program, Vec<Applied>), Failure> {
        match self.typed() {
            Some(typed) => Ok(typed.simplified(is_strict(&self.core, self.options.fp))),
            None => Err(self.not_of_the_algebra()),
        }
    }

    /// What [`Module::simplified`] did, for people: a line for each application of a law, then the program.
    ///
    /// # Errors
    /// As [`Module::simplified`].
    pub fn laws(&self) -> Result<String, Failure> {
        let (program, applied) = self.simplified()?;
        if applied.is_empty() {
            return Ok("no law makes the program simpler\n".into());
        }
        let line = |Applied { law, span }: &Applied| {
            let at = self.sources.locate(*span).map_or(0, |(_, position)| position.line);
            format!("line {at}: {} (TeIL, {}): {} = {}\n", law.name, law.paper, law.left, law.right)
        };
        Ok(applied.iter().map(line).collect::<String>() + "\n" + &program.to_string())
    }

    fn not_of_the_algebra(&self) -> Failure {
        self.refuse(Diagnostic::error(Code::E0407, None, "only TeIL and model language programs have this form"))
    }

    /// Whether inputs have to be given in every domain: those of a model language program that says which they are
    /// (d-in-var, Fig. 15).
    pub(crate) fn inputs_have_values(&self) -> bool {
        self.typed().is_some_and(|typed| {
            let program = &typed.program;
            program.notation == Notation::Model && program.decls.iter().any(|decl| decl.marker.is_some())
        })
    }

    /// The function's name, and the schedules that its file has for it.
    pub(crate) fn schedules(&self) -> (Name, Cow<'_, [Schedule]>) {
        self.front.schedules(&self.core)
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// The program in Core, as written: what it means.
    pub fn core(&self) -> &Program {
        &self.core
    }

    /// How much of its tensors is padding: the pad types (ATL, Sec. 6) of the bindings in Core that make, move or cut
    /// padding, and then of those that the outputs show; nothing if there are none of the former. Of a derived program, those of
    /// what it ends with.
    pub fn padding(&self) -> Vec<(Name, PadType)> {
        let core = self.derived().ok().flatten().unwrap_or(&self.core);
        let involved = padding::involved(core);
        if involved.is_empty() {
            return Vec::new();
        }
        let shown = |name: Name| core.outputs.iter().any(|(_, source)| *source == name);
        let bindings = core.bindings.iter().filter(|binding| involved.contains(&binding.name) || shown(binding.name));
        bindings.map(|binding| (binding.name, padding::pad_type(core, binding.term))).collect()
    }

    /// The program in Core that loops are made from: the same values with fewer operations, or as it was derived.
    ///
    /// # Errors
    /// If it does not agree with the program as written, which is a bug in Certen. As [`Module::derived`].
    pub fn optimised(&self) -> Result<&Program, Failure> {
        match &self.begin {
            Begin::Lowering => Ok(self.optimisation()?.map_or(&self.core, |optimised| &optimised.program)),
            Begin::Codegen(path) => Ok(path.lowered.as_deref().unwrap_or(&self.core)),
            Begin::Derived(_) => Ok(self.derived()?.unwrap_or(&self.core)),
        }
    }

    /// What was optimised; none if the program is compiled as written.
    ///
    /// # Errors
    /// As [`Module::optimised`].
    pub fn optimisation(&self) -> Result<Option<&Optimised>, Failure> {
        if !matches!(self.begin, Begin::Lowering) {
            return Ok(None);
        }
        let optimised = self.optimised.get_or_init(|| optimise(&self.core, self.typed(), &self.options));
        optimised.as_ref().map(Option::as_ref).map_err(|error| self.refuse(error.clone()))
    }

    /// The optimised program as loops, with its buffers as they are in memory, and those loops marked that threads may
    /// share. No loops are made where a truncation cuts more than padding.
    ///
    /// # Errors
    /// If it uses what cannot be lowered yet.
    pub fn loops(&self) -> Result<&LoopProgram, Failure> {
        if let Some(loops) = self.loops.get() {
            return Ok(loops);
        }
        let _environment = standard_environment();
        let loops = self.stored(self.scheduled()?)?;
        Ok(self.loops.get_or_init(|| loops))
    }

    /// The loops, perhaps after a schedule, as they are in memory and shared by threads.
    pub(crate) fn stored(&self, scheduled: Option<&Scheduled>) -> Result<LoopProgram, Failure> {
        let (loops, untouched) = match scheduled {
            None => (self.lowered()?, None),
            Some(scheduled) => (scheduled.program.clone(), Some(untouched(&scheduled.before, &scheduled.program))),
        };
        let stored = match self.options.vector {
            None => reuse(loops, Lend::Outputs),
            // The caller's arrays are not padded, so they lend no memory to what is.
            Some(vector) => reuse(loops, Lend::Buffers).and_then(|loops| pad(loops, vector)),
        };
        let stored = stored.map_err(|error| self.refuse(error))?;
        let is_free = |nest: Option<Name>| match (&untouched, nest) {
            (None, _) => true,
            (Some(untouched), Some(nest)) => untouched.contains(&nest),
            (Some(_), None) => false,
        };
        let stored = vectorise(stored, is_free);
        Ok(if self.options.parallel { parallelise(stored, is_free) } else { stored })
    }

    /// The loops that its schedule begins with: the optimised program as lowering makes them, unless they begin elsewhere.
    pub(crate) fn lowered(&self) -> Result<LoopProgram, Failure> {
        if let Begin::Codegen(path) = &self.begin {
            return match self.begin.reordered().filter(|_| is_strict(&self.core, self.options.fp)) {
                Some(error) => Err(self.refuse(error)),
                None => Ok(path.loops.clone()),
            };
        }
        let program = self.optimised()?;
        let violations = truncations(program);
        if !violations.is_empty() {
            return Err(Failure::new(self.sources.clone(), violations));
        }
        let lowered = match self.options.fp {
            FpMode::Strict => certen_loops::lower_strictly(program),
            FpMode::Relaxed => certen_loops::lower(program),
        };
        let lowered = lowered.map_err(|error| self.refuse(error))?;
        Ok(if matches!(self.begin, Begin::Derived(_)) { with_outputs_of(&self.core, lowered) } else { lowered })
    }

    /// The program in C. No code leaves without the loops being verified and compared with the meaning.
    ///
    /// # Errors
    /// If it is too large or too deep to be compiled.
    pub fn c(&self) -> Result<CCode, Failure> {
        self.verified_c(self.loops()?)
    }

    fn verified_c(&self, loops: &LoopProgram) -> Result<CCode, Failure> {
        let violations = certen_loops::verify(loops);
        if !violations.is_empty() {
            return Err(self.violations(violations));
        }
        self.validation()?;
        certen_codegen::emit_c(loops).map_err(|error| self.refuse(error))
    }

    /// What native code is called with.
    pub fn signature(&self) -> Signature {
        let types = self.core.types();
        let shown = |(_, source): &(Name, Name)| types.get(source).cloned();
        Signature {
            sizes: self.core.sizes.clone(),
            facts: self.core.facts.clone(),
            inputs: self.core.inputs.iter().map(|input| input.ty.clone()).collect(),
            outputs: self.core.outputs.iter().filter_map(shown).collect(),
        }
    }

    /// The program as native code: compiled on first use, or found in the cache.
    ///
    /// # Errors
    /// If there is no C compiler, or the program is too large or too deep to be compiled.
    pub fn native(&self) -> Result<&NativeKernel, Failure> {
        if let Some((kernel, _)) = self.native.get() {
            return Ok(kernel);
        }
        let _environment = standard_environment();
        let loops = self.loops()?;
        let nests = loops.body.iter().filter(|stmt| matches!(stmt, Stmt::Nest(_))).count();
        if nests > MAX_NESTS {
            let text =
                format!("a program of {nests} loop nests cannot be compiled yet: the C compiler would take minutes");
            return Err(self.refuse(Diagnostic::error(Code::E0703, None, text)));
        }
        let c = self.verified_c(loops)?;
        let cpu = self.options.cpu;
        let (kernel, smaller) = built(loops, &c.native, self.signature(), cpu);
        let kernel = kernel.map_err(|error| self.runtime_failure(&error))?;
        let found = tried(self, &kernel, |loops| smaller.unwrap_or_else(|| Smaller::of(loops, &build_for(cpu))))?;
        Ok(&self.native.get_or_init(|| (kernel, found)).0)
    }

    /// What a run of the machine code beside the meaning has found; none if nothing was compiled yet.
    pub fn trial(&self) -> Option<&Trial> {
        self.native.get().map(|(_, found)| found)
    }

    /// Whether native code is there already, so that a run begins at once.
    pub fn is_compiled(&self) -> bool {
        self.native.get().is_some()
    }

    pub(crate) fn refuse(&self, error: Diagnostic) -> Failure {
        Failure::new(self.sources.clone(), vec![error])
    }

    pub(crate) fn runtime_failure(&self, error: &RuntimeError) -> Failure {
        self.refuse(Diagnostic::error(error.code(), None, error.to_string()))
    }
}

/// An accepted file.
#[derive(Debug)]
pub struct Checked {
    /// The texts that the warnings point into.
    pub sources: Arc<Sources>,
    /// What is probably not meant.
    pub warnings: Vec<Diagnostic>,
    /// The interface of the program; of a `.ten` file, the signature of each of its functions.
    pub signatures: Vec<String>,
    /// What is derived: `derive g from f`, and what is known of it.
    pub derivations: Vec<(String, String)>,
    /// The schedules of the file's functions: `schedule fast for f`, and what is known of it.
    pub schedules: Vec<(String, String)>,
}

/// Checks a file, whatever its dialect. A `.ten` file needs no function that can be run; its derivations are made and its
/// schedules are applied, but for those of functions whose loops depend on a call.
///
/// # Errors
/// If it cannot be read, or is not accepted.
pub fn check(path: impl AsRef<Path>, options: &Options) -> Result<Checked, Failure> {
    let (name, text) = read_program(path.as_ref())?;
    if dialect(&name)? != Dialect::Ten {
        let module = Module::from_text(&name, text, options)?;
        let signatures = vec![interface(&module.core)];
        let schedules = module.paths()?;
        let derivations = Vec::new();
        return Ok(Checked { sources: module.sources, warnings: module.warnings, signatures, derivations, schedules });
    }
    let mut sources = Sources::new();
    let file = sources.add(name, text);
    let mut diagnostics = Diagnostics::new();
    let functions = ten::check(&mut sources, file, options, &mut diagnostics);
    let sources = Arc::new(sources);
    let Some(functions) = functions else { return Err(Failure::new(sources, diagnostics.into_sorted())) };
    let mut schedules = Vec::new();
    let mut derivations = Vec::new();
    for function in &functions {
        if let Some(derived) = &function.derived {
            let head = format!("derive {} from {}", derived.name, derived.from);
            match known_of(&sources, function, derived.steps.len(), &[], options) {
                Ok(known) => derivations.push((head, known)),
                // What cannot be derived has no loops that a schedule could change.
                Err(failure) => {
                    diagnostics.extend(failure.diagnostics().iter().cloned());
                    continue;
                }
            }
        }
        for schedule in &function.schedules {
            let text = schedule.to_string();
            let head = text.split(" {").next().unwrap_or_default().to_owned();
            match known_of(&sources, function, schedule.steps.len(), &schedule.steps, options) {
                Ok(known) => schedules.push((head, known)),
                Err(failure) => diagnostics.extend(failure.diagnostics().iter().cloned()),
            }
        }
    }
    if diagnostics.has_errors() {
        return Err(Failure::new(sources, diagnostics.into_sorted()));
    }
    let signatures =
        functions.into_iter().filter(|it| it.derived.is_none()).map(|function| function.signature).collect();
    Ok(Checked { sources, warnings: diagnostics.into_sorted(), signatures, derivations, schedules })
}

impl Module {
    /// The `codegen` statements of a TeML program, and what is known of each.
    fn paths(&self) -> Result<Vec<(String, String)>, Failure> {
        let Front::Teml(program) = &self.front else { return Ok(Vec::new()) };
        let known = |path: &certen_teml::Path| {
            let module = Module::new(self.sources.clone(), Vec::new(), Front::Core, self.core.clone(), &self.options);
            let module = module.beginning(Begin::Codegen(Arc::new(path.clone())));
            let module = module.with_steps(path.steps.clone().into());
            Ok((format!("codegen {}", path.name), format!("{}, {}", counted(path.steps.len()), module.equality()?)))
        };
        program.paths.iter().map(known).collect()
    }

    /// What is known of the loops beside the program, once code can be made from them.
    fn equality(&self) -> Result<&'static str, Failure> {
        self.c()?;
        Ok(if self.validation()?.proved { "equality proved" } else { "equality tested" })
    }
}

fn counted(steps: usize) -> String {
    if steps == 1 { "1 step".into() } else { format!("{steps} steps") }
}

/// What is known of a function's loops with this many steps of a derivation, then these of a schedule.
fn known_of(
    sources: &Arc<Sources>,
    function: &CheckedFunction,
    count: usize,
    schedule: &[Step],
    options: &Options,
) -> Result<String, Failure> {
    let steps = counted(count);
    let Some(core) = &function.core else { return Ok(format!("{steps}, for loops that depend on the call")) };
    let module = Module::new(sources.clone(), Vec::new(), Front::Core, core.clone(), options);
    let module = module.beginning(function.begin.clone()).with_steps(schedule.into());
    Ok(format!("{steps}, {}", module.equality()?))
}

/// The `codegen` statements of a TeML program, as schedules with their names.
fn of_paths(paths: &[certen_teml::Path]) -> Vec<Schedule> {
    let schedule = |path: &certen_teml::Path| Schedule {
        variant: Some(path.name),
        function: None,
        steps: path.steps.clone(),
        head: path.span,
        span: path.span,
    };
    paths.iter().map(schedule).collect()
}

/// A program's interface on one line.
fn interface(program: &Program) -> String {
    let types = program.types();
    let inputs: Vec<String> = program.inputs.iter().map(|input| format!("{}: {}", input.name, input.ty)).collect();
    let output = |(name, source): &(_, _)| types.get(source).map(|ty| format!("{name}: {ty}"));
    let outputs: Vec<String> = program.outputs.iter().filter_map(output).collect();
    let list = |tensors: Vec<String>| match tensors.len() {
        0..=20 => tensors.join(", "),
        many => format!("{}, … {} more", tensors[..19].join(", "), many - 19),
    };
    format!("{}({}) -> ({})", program.name, list(inputs), list(outputs))
}

/// The dialect of a file name, which has to have one.
fn dialect(name: &str) -> Result<Dialect, Failure> {
    Dialect::of(name).ok_or_else(|| {
        let error = Diagnostic::error(Code::E0104, None, format!("{name}: the file's ending names no dialect"));
        let endings = "programs of the tensor language end in `.ten`, TeIL programs in `.teil`, model language programs \
                       in `.model`, TeML programs in `.teml`, Core programs in `.core`";
        Failure::new(Arc::default(), vec![error.help(endings)])
    })
}

/// The name and text of a program's file.
///
/// # Errors
/// If it cannot be read, is not text, or its ending names no dialect.
pub fn read_program(path: &Path) -> Result<(String, String), Failure> {
    let name = path.display().to_string();
    let failed = |text: String| Diagnostic::error(Code::E0104, None, format!("{name}: {text}"));
    match std::fs::metadata(path) {
        // What is no program is not read.
        Ok(meta) if meta.is_file() => dialect(&name).map(drop)?,
        _ => {}
    }
    match read_text(path) {
        Ok(text) => Ok((name, text)),
        Err(reason) => Err(Failure::new(Arc::default(), vec![failed(reason)])),
    }
}

/// The text of a file, or why it has none.
pub(crate) fn read_text(path: &Path) -> Result<String, String> {
    match std::fs::metadata(path) {
        Err(error) => return Err(error.to_string()),
        Ok(meta) if meta.is_dir() => return Err("is a directory".into()),
        // A pipe or a device may have no end.
        Ok(meta) if !meta.is_file() => return Err("is not a regular file".into()),
        Ok(meta) if meta.len() > Sources::MAX_BYTES as u64 => return Err("is larger than 4 GiB".into()),
        Ok(_) => {}
    }
    match std::fs::read(path).map(String::from_utf8) {
        Ok(Ok(text)) => Ok(text),
        Ok(Err(error)) => Err(format!("is not UTF-8 text, at byte {}", error.utf8_error().valid_up_to())),
        Err(error) => Err(error.to_string()),
    }
}

/// The truncations of a program that cut more than padding.
pub(crate) fn truncations(core: &Program) -> Vec<Diagnostic> {
    padding::check(core).iter().map(|violation| violation.diagnostic(core, &|_| None)).collect()
}

/// What is wrong with the accesses of a Core program, which no typing rule has shown to be in bounds: the verifier of
/// its loops says.
pub(crate) fn bounds(core: &Program) -> Vec<Diagnostic> {
    match certen_loops::lower(core) {
        Ok(loops) => certen_loops::verify(&loops),
        Err(error) if error.code == Code::E0703 => {
            let text = format!("the accesses of `{}` are not shown to be in bounds: {}", core.name, error.message);
            vec![Diagnostic::warning(Code::W0303, None, text)]
        }
        Err(error) => vec![error],
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").field("core", &self.core.to_string()).finish_non_exhaustive()
    }
}

/// What a program is called, from its file's name: an identifier.
pub(crate) fn kernel_name(file: &str) -> Name {
    let stem = Path::new(file).file_stem().and_then(|stem| stem.to_str()).unwrap_or("");
    let safe: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    match safe.chars().next() {
        Some(first) if first.is_ascii_alphabetic() => Name::new(&safe),
        _ => Name::new(&format!("kernel_{safe}")),
    }
}
