//! The front doors: a text in any notation becomes a program of Core.
//!
//! Needs: the text, and what it imports. Guarantees: what is accepted is in bounds for all sizes that it admits, and its Core
//! is what it means; what is kept besides Core is only shown to people or tells how the program may be called.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use certen_core::{Program, parse_program};
use certen_dialects::algebra::{self, Typed};
use certen_dialects::{model, teil};
use certen_runtime::standard_environment;
use certen_syntax::schedule::{Schedule, Step};
use certen_syntax::{Diagnostic, Diagnostics, FileId, Name, Sources};

use crate::begin::Begin;
use crate::failure::Failure;
use crate::interface::kernel_name;
use crate::options::{Math, Options};
use crate::sound::{bounds, truncations};
use crate::ten::{Expression, TenFile, TenFront, TenProgram};
use crate::texts::{Dialect, Imports};

/// What is kept of the way to Core.
pub(crate) enum Front {
    /// The typed program, of a notation of the tensor algebra.
    Algebra(Box<Typed>),
    /// The states and paths of a TeML program.
    Teml(Box<certen_teml::Compiled>),
    /// The typed tree of a `.ten` program.
    Ten(Box<TenFront>),
    /// Nothing: it was written in Core.
    Core,
}

impl Front {
    /// The function's name, and the schedules that the file has for it.
    pub fn schedules(&self, core: &Program) -> (Name, Cow<'_, [Schedule]>) {
        match self {
            Front::Ten(front) => (front.function, Cow::Borrowed(&front.schedules)),
            Front::Teml(program) => (core.name, of_paths(&program.paths).into()),
            Front::Algebra(_) | Front::Core => (core.name, Cow::Borrowed(&[])),
        }
    }
}

/// A program that a front door has accepted.
pub(crate) struct Accepted {
    pub sources: Arc<Sources>,
    /// What is probably not meant.
    pub warnings: Vec<Diagnostic>,
    pub front: Front,
    pub core: Program,
    /// Where its loops begin.
    pub begin: Begin,
    /// What its schedule says.
    pub steps: Arc<[Step]>,
    /// How long it took to check it, and to write it in Core.
    pub times: [Duration; 2],
}

/// A program in Core, what is kept besides it, and how long it took to check it and to write it in Core.
type Entered = (Program, Front, [Duration; 2]);

/// Checks a text in one notation, and writes it in Core; none if something is wrong, which is then among the diagnostics.
type Door = fn((&Sources, FileId), &Options, &mut Diagnostics) -> Option<Entered>;

impl Accepted {
    /// A program of Core that this library has made.
    pub fn core(core: Program) -> Accepted {
        Accepted::new(Arc::default(), Vec::new(), (core, Front::Core, Default::default()))
    }

    fn new(sources: Arc<Sources>, warnings: Vec<Diagnostic>, (core, front, times): Entered) -> Accepted {
        Accepted { sources, warnings, front, core, begin: Begin::default(), steps: Arc::default(), times }
    }

    /// Checks a text, with what it imports at hand.
    pub fn text(name: &str, text: String, imports: &mut Imports<'_>, options: &Options) -> Result<Accepted, Failure> {
        let _environment = standard_environment();
        let door: Door = match Dialect::required(name)? {
            Dialect::Ten => return Accepted::ten(&Arc::new(TenFile::read(name, text, imports)?), options),
            Dialect::Teil => |text, options, diagnostics| algebra(teil::parse, text, options, diagnostics),
            Dialect::Model => |text, options, diagnostics| algebra(model::parse, text, options, diagnostics),
            Dialect::Teml => teml,
            Dialect::Core => |text, _, diagnostics| core(text, diagnostics),
        };
        let mut sources = Sources::new();
        let file = sources.add(name, text);
        let mut diagnostics = Diagnostics::new();
        let entered = door((&sources, file), options, &mut diagnostics);
        let begin = match entered.as_ref() {
            Some((_, Front::Teml(program), _)) => Begin::of_teml(program, &options.schedule),
            _ => Begin::default(),
        };
        Accepted::scheduled(Arc::new(sources), entered, begin, diagnostics, options)
    }

    /// The program of a function in a file that was checked.
    pub fn ten(file: &Arc<TenFile>, options: &Options) -> Result<Accepted, Failure> {
        let (made, diagnostics) = file.program(options);
        let begin = made.as_ref().map_or_else(Begin::default, |(_, front, _)| front.begin());
        Accepted::scheduled(file.sources().clone(), made.map(entered), begin, diagnostics, options)
    }

    /// Expressions in the scope of a file. Each is a program by itself whose output is `result`.
    pub fn expressions(
        mut file: TenFile,
        expressions: &[Expression],
        options: &Options,
    ) -> Vec<Result<Accepted, Failure>> {
        let made = file.expressions(expressions, options);
        let accepted = |(made, diagnostics): (Option<TenProgram>, Diagnostics)| {
            let made = made.map(|made| with_functions(entered(made), options));
            Accepted::or_failure(file.sources().clone(), made, diagnostics)
        };
        made.into_iter().map(accepted).collect()
    }

    /// A program with the schedule that is chosen for it.
    fn scheduled(
        mut sources: Arc<Sources>,
        entered: Option<Entered>,
        begin: Begin,
        mut diagnostics: Diagnostics,
        options: &Options,
    ) -> Result<Accepted, Failure> {
        let entered = entered.map(|entered| with_functions(entered, options));
        let steps = entered.as_ref().and_then(|(core, front, _)| match &begin {
            Begin::Codegen(path) => Some(path.steps.clone()),
            Begin::Lowering | Begin::Derived(_) => {
                let (function, of_file) = front.schedules(core);
                options.schedule.steps(function, &of_file, &mut sources, &mut diagnostics)
            }
        });
        let accepted = Accepted::or_failure(sources, entered.filter(|_| steps.is_some()), diagnostics)?;
        Ok(Accepted { begin, steps: steps.unwrap_or_default().into(), ..accepted })
    }

    /// A program, or why there is none.
    fn or_failure(
        sources: Arc<Sources>,
        entered: Option<Entered>,
        diagnostics: Diagnostics,
    ) -> Result<Accepted, Failure> {
        let mut diagnostics = diagnostics.into_sorted();
        diagnostics.dedup();
        match entered {
            Some(entered) => Ok(Accepted::new(sources, diagnostics, entered)),
            None => Err(Failure::new(sources, diagnostics)),
        }
    }
}

fn entered((core, front, times): TenProgram) -> Entered {
    (core, Front::Ten(Box::new(front)), times)
}

/// The same with the functions of mathematics that the options want.
fn with_functions((core, front, times): Entered, options: &Options) -> Entered {
    let by_libm = (options.math == Math::Libm).then(|| core.by_libm().ok()).flatten();
    (by_libm.unwrap_or(core), front, times)
}

/// TeIL and the model language.
fn algebra(
    parse: fn(&Sources, FileId, &mut Diagnostics) -> algebra::Program,
    (sources, file): (&Sources, FileId),
    options: &Options,
    diagnostics: &mut Diagnostics,
) -> Option<Entered> {
    let begin = Instant::now();
    let typed = algebra::check(parse(sources, file, diagnostics), diagnostics)?;
    let checked = Instant::now();
    let core = algebra::elaborate(&typed, kernel_name(sources.name(file)), options.elem);
    let core = core.map_err(|error| diagnostics.push(*error)).ok()?;
    Some((core, Front::Algebra(Box::new(typed)), [checked - begin, checked.elapsed()]))
}

/// TeML, whose statements are written in Core as they are checked.
fn teml((sources, file): (&Sources, FileId), options: &Options, diagnostics: &mut Diagnostics) -> Option<Entered> {
    let begin = Instant::now();
    let program = certen_teml::compile(sources, file, kernel_name(sources.name(file)), options.elem, diagnostics)?;
    Some((program.core.clone(), Front::Teml(Box::new(program)), [begin.elapsed(), Duration::ZERO]))
}

/// Core itself, of which no typing rule has shown that it is sound.
fn core((sources, file): (&Sources, FileId), diagnostics: &mut Diagnostics) -> Option<Entered> {
    let begin = Instant::now();
    let core = parse_program(sources, file).map_err(|errors| diagnostics.extend(errors.into_sorted())).ok()?;
    let parsed = Instant::now();
    diagnostics.extend(truncations(&core));
    // What is cut wrongly has no loops whose accesses could be looked at.
    if !diagnostics.has_errors() {
        diagnostics.extend(bounds(&core));
    }
    (!diagnostics.has_errors()).then_some((core, Front::Core, [parsed.elapsed(), parsed - begin]))
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
