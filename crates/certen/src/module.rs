//! A checked program, for those who use it: where it comes from, and what its text says besides its meaning.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use certen_core::padding::{self, PadType};
use certen_dialects::algebra::{self, Applied, Notation};
use certen_figures::translate::translate;
use certen_syntax::schedule::{Schedule, Step};
use certen_syntax::{Code, Diagnostic, Name, Sources};

use crate::choice::{Choice, no_variant};
use crate::derived::Rewriting;
use crate::failure::Failure;
use crate::front::{Accepted, Front};
use crate::options::{Options, is_strict};
use crate::pipeline::Module;
use crate::ten::{Expression, TenFile};
use crate::texts::{Imports, Texts, read_program};

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
        Ok(Module::new(Accepted::text(name, text.into(), &mut Imports::from_disk(name), options)?, options))
    }

    /// Checks a text, with what it imports at hand.
    ///
    /// # Errors
    /// If it is not an accepted program.
    pub fn from_texts(texts: &Texts, options: &Options) -> Result<Module, Failure> {
        let accepted = Accepted::text(texts.name(), texts.text().to_owned(), &mut texts.imports(), options)?;
        Ok(Module::new(accepted, options))
    }

    /// Compiles an expression in the scope of a `.ten` text: a program whose output is `result`.
    ///
    /// # Errors
    /// If the text or the expression is not accepted.
    pub fn expression(
        name: &str,
        text: impl Into<String>,
        expression: Expression,
        options: &Options,
    ) -> Result<Module, Failure> {
        let made = Module::expressions(name, text, &[expression], options)?.pop();
        made.unwrap_or_else(|| Err(Failure::new(Default::default(), Vec::new())))
    }

    /// Compiles expressions in the scope of a `.ten` text. Each is a program by itself whose output is `result`.
    ///
    /// # Errors
    /// If the text itself is not accepted.
    pub fn expressions(
        name: &str,
        text: impl Into<String>,
        expressions: &[Expression],
        options: &Options,
    ) -> Result<Vec<Result<Module, Failure>>, Failure> {
        let file = TenFile::read(name, text.into(), &mut Imports::from_disk(name))?;
        let made = Accepted::expressions(file, expressions, options);
        Ok(made.into_iter().map(|accepted| Ok(Module::new(accepted?, options))).collect())
    }

    /// The texts that the program was read from.
    pub fn sources(&self) -> &Sources {
        &self.accepted.sources
    }

    /// What is probably not meant.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.accepted.warnings
    }

    /// The typed program, if the dialect is a notation of the tensor algebra.
    pub fn typed(&self) -> Option<&algebra::Typed> {
        match &self.accepted.front {
            Front::Algebra(typed) => Some(typed),
            Front::Teml(_) | Front::Ten(_) | Front::Core => None,
        }
    }

    /// The states of a TeML program: each statement, and what it adds to the state (TeML, Sec. 3.2).
    pub fn states(&self) -> Option<&str> {
        match &self.accepted.front {
            Front::Teml(program) => Some(&program.states),
            Front::Algebra(_) | Front::Ten(_) | Front::Core => None,
        }
    }

    /// A `.ten` program on its way to Core: the name of each stage and the program there, as text.
    pub fn stages(&self) -> Vec<(&'static str, String)> {
        match &self.accepted.front {
            Front::Ten(front) => front.stages(),
            Front::Algebra(_) | Front::Teml(_) | Front::Core => Vec::new(),
        }
    }

    /// Numbers that were given like sizes and are part of the program.
    pub(crate) fn fixed(&self) -> Option<&BTreeMap<Name, i64>> {
        match &self.accepted.front {
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
            Some(typed) => Ok(typed.simplified(is_strict(self.core(), self.options.fp))),
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
            let at = self.accepted.sources.locate(*span).map_or(0, |(_, position)| position.line);
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
        self.accepted.front.schedules(self.core())
    }

    /// All ways to compile this program: without a schedule, with an automatic one, and those that its file has: the one
    /// without a name, then each that has one, in the order of the text.
    pub fn variants(&self) -> Vec<Choice> {
        let named = |schedule: &Schedule| schedule.variant.map_or(Choice::Default, Choice::Variant);
        let (_, of_file) = self.schedules();
        let mut variants: Vec<Choice> = of_file.iter().map(named).collect();
        // The one without a name first, wherever it stands.
        variants.sort_by_key(|choice| *choice != Choice::Default);
        variants.splice(0..0, [Choice::None, Choice::Auto]);
        variants
    }

    /// These, or all variants if it is none. What the file does not have is refused.
    pub(crate) fn chosen(&self, choices: &[Choice]) -> Result<Vec<Choice>, Failure> {
        let all = self.variants();
        if choices.is_empty() {
            return Ok(all);
        }
        let (function, of_file) = self.schedules();
        let unknown = choices.iter().find_map(|choice| match choice {
            choice if all.contains(choice) => None,
            Choice::Variant(name) => Some(no_variant(*name, function, &of_file)),
            Choice::Default | Choice::None | Choice::Auto | Choice::Text { .. } => None,
        });
        unknown.map_or(Ok(choices.to_vec()), |error| Err(self.refuse(error)))
    }

    /// Whether the compiler writes its schedule: it was asked to, or nothing else is written.
    pub fn is_automatic(&self) -> bool {
        match self.options.schedule {
            Choice::Auto => true,
            Choice::Default => {
                let is_written = self.schedules().1.iter().any(|schedule| schedule.variant.is_none());
                self.accepted.begin.is_lowering() && self.accepted.steps.is_empty() && !is_written
            }
            Choice::None | Choice::Variant(_) | Choice::Text { .. } => false,
        }
    }

    /// The steps of its schedule, whoever wrote it.
    pub fn steps(&self) -> &[Step] {
        match self.is_automatic() {
            true => self.planned().map_or(&[], |(_, steps)| steps),
            false => &self.accepted.steps,
        }
    }

    /// Whether it is derived from another program.
    pub fn is_derived(&self) -> bool {
        self.accepted.begin.derivations().is_some()
    }

    /// The derivations that lead to the program, with each rewrite that could be made.
    pub fn rewritings(&self) -> Vec<Rewriting<'_>> {
        let derivations = self.accepted.begin.derivations();
        derivations.map_or_else(Vec::new, |found| found.rewritings(self.core(), self.options.fp))
    }

    /// How much of its tensors is padding: the pad types (ATL, Sec. 6) of the bindings in Core that make, move or cut
    /// padding, and then of those that the outputs show; nothing if there are none of the former. Of a derived program, those of
    /// what it ends with.
    pub fn padding(&self) -> Vec<(Name, PadType)> {
        let core = self.derived().ok().flatten().unwrap_or(self.core());
        let involved = padding::involved(core);
        if involved.is_empty() {
            return Vec::new();
        }
        let shown = |name: Name| core.outputs.iter().any(|(_, source)| *source == name);
        let bindings = core.bindings.iter().filter(|binding| involved.contains(&binding.name) || shown(binding.name));
        bindings.map(|binding| (binding.name, padding::pad_type(core, binding.term))).collect()
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").field("core", &self.core().to_string()).finish_non_exhaustive()
    }
}
