//! The front door of `.ten`: a file is loaded with what it imports, every function is checked, one is instantiated and
//! becomes Core.
//!
//! A [`TenFile`] is read and checked once; all programs that are made of its functions share it. Everything here happens on
//! a deep stack ([`crate::deep`]). An [`Expression`] is compiled like a function of the file in whose scope it stands,
//! but nothing can call it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use certen_core::script::Derivation;
use certen_core::{ElemType, Program};
use certen_figures::demand;
use certen_lang::ast::{self, Dim, Elem, Expr, ExprKind, Function, Ident, Results, Type};
use certen_lang::parse::parse_block_text;
use certen_lang::{CheckedFile, DerivedRef, Entry, FunctionRef, Known, Library, passes, to_core, typed};
use certen_syntax::schedule::Schedule;
use certen_syntax::{Code, Diagnostic, Diagnostics, FileId, Name, Sources, Span};

use crate::begin::Begin;
use crate::deep::{Deep, deeply};
use crate::derived::{Derivations, DerivedOnce};
use crate::failure::Failure;
use crate::interface::{Interface, Param, kernel_name};
use crate::options::Options;
use crate::texts::{Dialect, Imports, Texts};

/// An expression to be evaluated in the scope of a file: perhaps some `let x = e;`, then the expression itself.
#[derive(Clone, Debug, Default)]
pub struct Expression {
    /// Its text.
    pub text: String,
    /// What messages call the text; if it is a piece of the file, where it begins there.
    pub origin: Origin,
    /// The tensors that it may use beside what the file declares: their element types and sizes.
    pub inputs: Vec<(Name, ElemType, Vec<usize>)>,
}

/// Where the text of an expression comes from.
#[derive(Clone, Debug)]
pub enum Origin {
    /// The user wrote it by itself; messages call it this.
    Called(String),
    /// It stands in the file, from this byte on.
    InFile(usize),
}

impl Default for Origin {
    fn default() -> Origin {
        Origin::Called("expression".into())
    }
}

/// What an expression is called as a program.
const RESULT: &str = "result";

/// A `.ten` text with what it imports: read and checked once, for all that is made of its functions.
pub(crate) struct TenFile {
    sources: Arc<Sources>,
    file: FileId,
    /// What is probably not meant.
    warnings: Vec<Diagnostic>,
    /// Locked while an instance is checked, which is then remembered.
    checked: Mutex<Deep<CheckedFile>>,
    /// How long it took to check it.
    time: Duration,
}

/// A program in Core, what is kept besides it, and how long it took to check it and to write it in Core.
pub(crate) type TenProgram = (Program, TenFront, [Duration; 2]);

/// A function of a file that is checked.
pub(crate) struct CheckedFunction {
    pub interface: Interface,
    /// How it is derived, if it is.
    pub derived: Option<Derivation>,
    /// Its program, if it has schedules or is derived, and a call need not tell more of it.
    pub core: Option<Program>,
    /// Where its loops begin.
    pub begin: Begin,
}

impl TenFile {
    /// Reads a text and checks every function of it.
    pub fn read(name: &str, text: String, imports: &mut Imports<'_>) -> Result<TenFile, Failure> {
        let begin = Instant::now();
        let mut sources = Sources::new();
        let file = sources.add(name, text);
        let mut diagnostics = Diagnostics::new();
        let checked = deeply(|| {
            let mut read = |from: &str, path: &str| imports.read(from, path);
            let mut library = Library::load(&mut sources, file, &mut read, &mut diagnostics);
            if library.has_scripts() {
                library.add_tactics(certen_derive::prelude(&mut sources, &mut diagnostics));
                diagnostics.extend(certen_derive::called_like_rewrites(library.own_tactics()));
            }
            if diagnostics.has_errors() { None } else { CheckedFile::new(library, &mut diagnostics).map(Deep::new) }
        });
        let (sources, warnings) = (Arc::new(sources), diagnostics.into_sorted());
        match checked {
            Some(checked) => {
                let checked = Mutex::new(checked);
                Ok(TenFile { sources, file, warnings, checked, time: begin.elapsed() })
            }
            None => Err(Failure::new(sources, warnings)),
        }
    }

    /// Looks at the file, on a deep stack.
    fn with<R: Send>(&self, look: impl FnOnce(&mut CheckedFile) -> R + Send) -> R {
        self.checked.lock().unwrap_or_else(PoisonError::into_inner).with_mut(look)
    }

    /// Reads texts that were read from a disk before.
    pub fn of_texts(texts: &Texts) -> Result<TenFile, Failure> {
        TenFile::read(texts.name(), texts.text().to_owned(), &mut texts.imports())
    }

    /// The texts that it was read from.
    pub fn sources(&self) -> &Arc<Sources> {
        &self.sources
    }

    /// What is probably not meant.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// How its functions are called.
    pub fn interfaces(&self) -> Vec<Interface> {
        self.with(|checked| {
            let library = checked.library();
            library.own_entries().filter_map(|entry| interface(&self.sources, library, entry)).collect()
        })
    }

    /// How the function of this name is called; without one, `main`, or the only one.
    pub fn interface(&self, wanted: Option<Name>) -> Result<Interface, Failure> {
        let found = self.with(|checked| {
            let library = checked.library();
            // What is derived from nothing was refused before.
            interface(&self.sources, library, library.entry(wanted)?)
                .ok_or_else(|| Diagnostic::error(Code::E0410, None, "the program has no function to run"))
        });
        found.map_err(|error| self.refuse(error))
    }

    /// The program of a function.
    pub fn program(self: &Arc<TenFile>, options: &Options) -> (Option<TenProgram>, Diagnostics) {
        let mut diagnostics = Diagnostics::new();
        let made = self.with(|checked| {
            let library = checked.library();
            let entry = library.entry(options.function).map_err(|error| diagnostics.push(error)).ok()?;
            // C has another `main`.
            let name = match library.entry_name(entry) {
                name if name.as_str() == "main" => kernel_name(self.sources.name(self.file)),
                name => name,
            };
            made(checked, entry, name, options, &mut KnownDerivations::default(), &mut diagnostics)
        });
        let made = made.map(|(core, front, [check, to_core])| {
            (core, TenFront { file: Some(self.clone()), ..front }, [self.time + check, to_core])
        });
        diagnostics.extend(self.warnings.iter().cloned());
        (made, diagnostics)
    }

    /// All functions of the file, with the programs of those that have schedules or are derived.
    pub fn functions(&self, options: &Options) -> Vec<CheckedFunction> {
        self.with(|file| {
            let entries: Vec<Entry> = file.library().own_entries().collect();
            let mut known = KnownDerivations::default();
            let checked = |entry: Entry| {
                let interface = interface(&self.sources, file.library(), entry)?;
                let derived = match entry {
                    Entry::Function(_) => None,
                    Entry::Derived(derived) => Some(file.library().derivation(derived).clone()),
                };
                let made = match interface.schedules.is_empty() && derived.is_none() {
                    true => None,
                    false => made(file, entry, interface.name, options, &mut known, &mut Diagnostics::new()),
                };
                let begin = made.as_ref().map_or_else(Begin::default, |(_, front, _)| front.begin());
                Some(CheckedFunction { interface, derived, core: made.map(|(core, ..)| core), begin })
            };
            entries.into_iter().filter_map(checked).collect()
        })
    }

    /// Expressions in the scope of the file. Each is a program by itself whose output is `result`.
    pub fn expressions(
        &mut self,
        expressions: &[Expression],
        options: &Options,
    ) -> Vec<(Option<TenProgram>, Diagnostics)> {
        let (sources, file) = (Arc::make_mut(&mut self.sources), self.file);
        self.checked.get_mut().unwrap_or_else(PoisonError::into_inner).with_mut(|checked| {
            let add = |expression: &Expression| {
                let mut diagnostics = Diagnostics::new();
                let function = wrap(sources, file, expression, &mut diagnostics);
                (function.map(|function| checked.add(function)), diagnostics)
            };
            let entries: Vec<_> = expressions.iter().map(add).collect();
            let compile = |(entry, mut diagnostics): (Option<FunctionRef>, Diagnostics)| {
                let made = entry.and_then(|entry| {
                    let (name, known) = (Name::new(RESULT), &mut KnownDerivations::default());
                    made(checked, Entry::Function(entry), name, options, known, &mut diagnostics)
                });
                (made, diagnostics)
            };
            entries.into_iter().map(compile).collect()
        })
    }

    fn refuse(&self, error: Diagnostic) -> Failure {
        Failure::new(self.sources.clone(), vec![error])
    }
}

/// How a function of a library is called.
fn interface(sources: &Sources, library: &Library, entry: Entry) -> Option<Interface> {
    let function = library.function(library.meaning(entry)?);
    let name = library.entry_name(entry);
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = |span: Span| one_line(sources.snippet(span));
    // A derived function is declared as the one that it is derived from, with another name.
    let Span { file, start, end } = function.span;
    let [before, after] = [(start, function.name.span.start), (function.name.span.end, end)]
        .map(|(start, end)| sources.snippet(Span { file, start, end }));
    let parameter = |param: &ast::Param| Param {
        name: param.name.name,
        ty: shown(param.ty.span),
        elem: if let Elem::Is(elem) = param.ty.elem { Some(elem) } else { None },
        is_size: param.ty.elem == Elem::Size,
    };
    Some(Interface {
        name,
        parameters: function.params.iter().map(parameter).collect(),
        signature: one_line(&format!("{before}{name}{after}")),
        is_open: function.params.iter().any(|param| has_open_rank(param) || is_class(param.ty.elem)),
        schedules: library.schedules(entry).cloned().collect(),
    })
}

/// The text of a `.ten` file in the one layout that there is.
///
/// # Errors
/// If it has syntax errors, or is in another dialect.
pub fn format(name: &str, text: &str) -> Result<String, Failure> {
    let mut sources = Sources::new();
    let file = sources.add(name, text);
    let formatted = match (Dialect::of(name), sources.get(file)) {
        (Some(Dialect::Ten), Some(source)) => deeply(|| certen_lang::format::format(source, file)),
        _ => {
            let error = Diagnostic::error(Code::E0407, None, format!("{name}: only `.ten` files can be formatted"));
            Err(Diagnostics::from(error))
        }
    };
    formatted.map_err(|diagnostics| Failure::new(Arc::new(sources), diagnostics.into_sorted()))
}

/// What is kept of the way to Core.
pub(crate) struct TenFront {
    /// The typed tree as the checker made it.
    typed: Deep<typed::Program>,
    /// The file that the function stands in; none for an expression.
    file: Option<Arc<TenFile>>,
    /// The function, by its name in the file.
    pub function: Name,
    /// The `size` parameters that are no sizes of the program any more: their values are part of it.
    pub fixed: BTreeMap<Name, i64>,
    /// The schedules of the function that was made, in the order of the text; none for an expression.
    pub schedules: Vec<Schedule>,
    /// How it is derived, if it is.
    derivations: Option<Derivations>,
}

/// The derivations of a library that were met before: what several begin with is made once.
type KnownDerivations = HashMap<DerivedRef, Arc<DerivedOnce>>;

impl TenFront {
    /// The program after each pass, as a text that means the same; then what its functions demand.
    pub fn stages(&self) -> Vec<(&'static str, String)> {
        let mut stages = self.typed.with(passes::stages);
        let demands =
            self.file.as_ref().map(|file| file.with(|checked| demand::text(checked.library()))).unwrap_or_default();
        stages.push(("demands", demands));
        stages
    }

    /// Where its loops begin.
    pub fn begin(&self) -> Begin {
        self.derivations.clone().map_or_else(Begin::default, Begin::Derived)
    }
}

/// One function as a program of this name; what is derived means what it begins with.
fn made(
    file: &mut CheckedFile,
    run: Entry,
    name: Name,
    options: &Options,
    known: &mut KnownDerivations,
    diagnostics: &mut Diagnostics,
) -> Option<TenProgram> {
    let begin = Instant::now();
    let entry = file.library().meaning(run)?;
    let known_arguments = open(file.library().function(entry), options);
    let typed = file.instantiate(entry, &known_arguments, diagnostics)?;
    let library = file.library();
    let checked = Instant::now();
    let mut passed = typed.clone();
    passes::run(&mut passed);
    let core = to_core(&passed, name).map_err(|error| diagnostics.push(error)).ok()?;
    let is_size = |param: &&ast::Param| param.ty.elem == Elem::Size && !core.sizes.contains(&param.name.name);
    let fixed = library.function(entry).params.iter().filter(is_size);
    let fixed = fixed.filter_map(|param| Some((param.name.name, *options.known.values.get(&param.name.name)?)));
    let fixed = fixed.collect();
    let function = library.entry_name(run);
    let schedules = library.schedules(run).cloned().collect();
    let derivations = match run {
        Entry::Function(_) => None,
        Entry::Derived(derived) => {
            let (_, path) = library.origin(derived)?;
            let one = |derived: DerivedRef| {
                let new =
                    || DerivedOnce::new(library.derivation(derived).clone(), library.tactics(derived.file).into());
                known.entry(derived).or_insert_with(|| Arc::new(new())).clone()
            };
            Some(Derivations { path: path.into_iter().map(one).collect() })
        }
    };
    let times = [checked - begin, checked.elapsed()];
    Some((core, TenFront { typed: Deep::new(typed), file: None, function, fixed, schedules, derivations }, times))
}

/// What is known of the parameters whose rank or element type a function leaves open. An element type that nothing
/// tells is that of the options, if it is of the class.
fn open(function: &Function, options: &Options) -> Known {
    let of_any_rank = |param: &ast::Param| param.ty.elem == Elem::Size || has_open_rank(param);
    let mut known = Known { values: options.known.values.clone(), ..Known::default() };
    for param in &function.params {
        let name = param.name.name;
        if let Some(rank) = options.known.ranks.get(&name).filter(|_| of_any_rank(param)) {
            known.ranks.insert(name, *rank);
        }
        if let Some(elem) = options.known.elems.get(&name).filter(|_| is_class(param.ty.elem)) {
            known.elems.insert(name, *elem);
        }
    }
    let is_told = |param: &&ast::Param| known.elems.contains_key(&param.name.name);
    let told: Vec<Elem> = function.params.iter().filter(is_told).map(|param| param.ty.elem).collect();
    for param in function.params.iter().filter(|param| is_class(param.ty.elem) && !told.contains(&param.ty.elem)) {
        known.elems.insert(param.name.name, options.elem);
    }
    known
}

/// Whether a parameter's rank is left open.
fn has_open_rank(param: &ast::Param) -> bool {
    let several = |dim: &Dim| matches!(dim, Dim::Rest(_) | Dim::Ranked { .. } | Dim::Any(_) | Dim::Some(_));
    param.ty.dims.iter().any(several)
}

fn is_class(elem: Elem) -> bool {
    matches!(elem, Elem::Any | Elem::Num | Elem::Float)
}

/// An expression as a function.
fn wrap(
    sources: &mut Sources,
    file: FileId,
    expression: &Expression,
    diagnostics: &mut Diagnostics,
) -> Option<Function> {
    let (block, start, file) = match &expression.origin {
        Origin::Called(name) => {
            let file = sources.add(name.clone(), expression.text.clone());
            (parse_block_text(sources.get(file)?, file, diagnostics), 0, file)
        }
        Origin::InFile(start) => {
            // After as many blanks as the file has bytes before it, its spans are those of the file.
            let mut alone = Sources::new();
            let padded = alone.add("", " ".repeat(*start) + &expression.text);
            (parse_block_text(alone.get(padded)?, file, diagnostics), *start, file)
        }
    };
    let span = Span { file, start: start as u32, end: (start + expression.text.len()) as u32 };
    let size = |size: &usize| {
        let size = i64::try_from(*size).unwrap_or(i64::MAX);
        Dim::Size(Expr { kind: ExprKind::Int(size), span })
    };
    let param = |(name, elem, shape): &(Name, ElemType, Vec<usize>)| ast::Param {
        name: Ident { name: *name, span },
        ty: Type { elem: Elem::Is(*elem), dims: shape.iter().map(size).collect(), span },
    };
    let body = block?;
    if body.results.is_empty() {
        diagnostics.push(Diagnostic::error(Code::E0103, span.end_point(), "expected an expression at the end"));
        return None;
    }
    Some(Function {
        name: Ident { name: Name::new(RESULT), span },
        params: expression.inputs.iter().map(param).collect(),
        results: Results::Inferred,
        associative: None,
        wheres: Vec::new(),
        body,
        span,
    })
}
