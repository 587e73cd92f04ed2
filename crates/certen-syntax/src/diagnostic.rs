//! Diagnostics as values: what is wrong, where, by which rule, and what to do about it.

use crate::codes::Code;
use crate::name::Name;
use crate::source::Span;

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    /// The program is refused.
    Error,
    /// The program is accepted, but probably not what was meant.
    Warning,
}

/// A rule of one of the papers, by the paper's own name for it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Rule {
    /// As the paper names it: `T-Diag`.
    pub name: &'static str,
    /// Where it stands: `TeIL, Fig. 8`.
    pub paper: &'static str,
}

/// A remark at a place in the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// The remark; may be empty for the place alone.
    pub text: String,
}

/// Where a diagnostic is read: each door has its own words for options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Door {
    /// The command line.
    Shell,
    /// The Python package.
    Python,
}

/// What to do, as data: each door words it, and an editor can make the change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Remedy {
    /// Give the arrays of inputs.
    Input,
    /// Choose the element type, or convert the array.
    Elem,
    /// Choose one of several functions.
    Function,
    /// Give a size, for example this one.
    Size(Name, i64),
    /// Give a rank, for example this one.
    Rank(Name, i64),
    /// Choose how floats are rounded: the mode, and what it does here.
    Fp(&'static str, &'static str),
    /// Write another word in the place of one that stands at the primary place.
    Rename {
        /// The wrong word.
        from: String,
        /// What was probably meant.
        to: String,
    },
}

impl Remedy {
    /// The option of the command line that it names, and a value.
    pub fn option(&self) -> Option<(&'static str, String)> {
        Some(match self {
            Remedy::Input => ("in", "NAME=FILE.npy".into()),
            Remedy::Elem => ("elem", "TYPE".into()),
            Remedy::Function => ("fn", "NAME".into()),
            Remedy::Size(name, value) => ("dim", format!("{name}={value}")),
            Remedy::Rank(name, value) => ("rank", format!("{name}={value}")),
            Remedy::Fp(mode, _) => ("fp", (*mode).into()),
            Remedy::Rename { .. } => return None,
        })
    }

    /// As advice at a door.
    pub fn text(&self, door: Door) -> String {
        let (option, value) = self.option().unwrap_or_default();
        let written = match door {
            Door::Shell => format!("`--{option} {value}`"),
            Door::Python => format!("`{option}=\"{value}\"`"),
        };
        match (self, door) {
            (Remedy::Input, Door::Shell) => format!("give it with {written}, or `NAME=random:1`"),
            (Remedy::Input, Door::Python) => "give it in its place, or by name".into(),
            (Remedy::Elem, Door::Shell) => "convert the array, or choose the element type with `--elem`".into(),
            (Remedy::Elem, Door::Python) => "convert the array with `astype`".into(),
            (Remedy::Function, _) => format!("choose one with {written}"),
            (Remedy::Size(..), Door::Shell) => format!("give it with {written}"),
            (Remedy::Size(..), Door::Python) => format!("give it by name: `{value}`"),
            (Remedy::Rank(..), Door::Shell) => format!("give the array, or say it with {written}, for example"),
            (Remedy::Rank(..), Door::Python) => "only a call tells it".into(),
            (Remedy::Fp(_, effect), _) => format!("{written} {effect}"),
            (Remedy::Rename { to, .. }, _) => format!("did you mean `{to}`?"),
        }
    }
}

/// One error or warning.
///
/// Built step by step:
///
/// ```
/// use certen_syntax::{Code, Diagnostic, Span};
/// let d = Diagnostic::error(Code::E0201, Span::default(), "`A` is not declared")
///     .label("used here")
///     .help("declare it with `alloc A : [..]`");
/// assert_eq!(d.code.to_string(), "E0201");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// The kind of mistake, with a page in the error index.
    pub code: Code,
    /// Error or warning.
    pub severity: Severity,
    /// The rule that is violated, or that a warning speaks of, if a paper states one.
    pub rule: Option<Rule>,
    /// One sentence in the user's terms.
    pub message: String,
    /// The place the message speaks of; none where no text is to blame (a missing file, a full disk).
    pub primary: Option<Label>,
    /// Other places that matter: where a size was declared, the other operand.
    pub secondary: Vec<Label>,
    /// The index of the loop that the message speaks of, if it speaks of one.
    pub about: Option<Name>,
    /// More facts: both shapes, a counterexample.
    pub notes: Vec<String>,
    /// What to do, only where it is sure.
    pub help: Vec<String>,
    /// What to do that doors word differently, or that an editor can do.
    pub remedies: Vec<Remedy>,
    /// Who reads it.
    pub door: Door,
}

impl Diagnostic {
    /// An error at a place, or at none.
    pub fn error(code: Code, span: impl Into<Option<Span>>, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            severity: Severity::Error,
            rule: None,
            message: message.into(),
            primary: span.into().map(|span| Label { span, text: String::new() }),
            secondary: Vec::new(),
            about: None,
            notes: Vec::new(),
            help: Vec::new(),
            remedies: Vec::new(),
            door: Door::Shell,
        }
    }

    /// A warning at a place, or at none.
    pub fn warning(code: Code, span: impl Into<Option<Span>>, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, span, message) }
    }

    /// The rule that is violated.
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rule = Some(rule);
        self
    }

    /// The remark at the primary place.
    pub fn label(mut self, text: impl Into<String>) -> Self {
        if let Some(primary) = &mut self.primary {
            primary.text = text.into();
        }
        self
    }

    /// A remark at another place.
    pub fn also(mut self, span: Span, text: impl Into<String>) -> Self {
        self.secondary.push(Label { span, text: text.into() });
        self
    }

    /// A further fact.
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// What to do.
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help.push(text.into());
        self
    }

    /// What to do, as data.
    pub fn remedy(mut self, remedy: Remedy) -> Self {
        self.remedies.push(remedy);
        self
    }

    /// A word at the primary place is probably meant to be another one.
    pub fn meant(self, from: impl ToString, to: &str) -> Self {
        self.remedy(Remedy::Rename { from: from.to_string(), to: to.to_owned() })
    }

    /// All that can be done, in the words of its door.
    pub fn advice(&self) -> impl Iterator<Item = String> {
        self.help.iter().cloned().chain(self.remedies.iter().map(|remedy| remedy.text(self.door)))
    }

    /// Whether the program is refused because of this.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// What a pass found, in the order it was found. Of errors and of warnings the first [`Diagnostics::MAX`] each are kept,
/// so that a text with nothing but mistakes costs no more than it has to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    errors: usize,
}

impl Diagnostics {
    /// Nothing found.
    pub fn new() -> Diagnostics {
        Diagnostics::default()
    }

    /// How many errors, and how many warnings, are kept.
    pub const MAX: usize = 1000;

    /// Adds one, if there are not too many already.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        let alike = if diagnostic.is_error() { self.errors } else { self.list.len() - self.errors };
        if alike < Self::MAX {
            self.errors += usize::from(diagnostic.is_error());
            self.list.push(diagnostic);
        }
    }

    /// Whether there is an error among them.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// All, errors and warnings, in the order of the text.
    pub fn into_sorted(mut self) -> Vec<Diagnostic> {
        self.list.sort_by_key(|d| d.primary.as_ref().map(|p| (p.span.file, p.span.start)));
        self.list
    }

    /// All, as found.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter()
    }
}

impl Extend<Diagnostic> for Diagnostics {
    fn extend<I: IntoIterator<Item = Diagnostic>>(&mut self, more: I) {
        more.into_iter().for_each(|diagnostic| self.push(diagnostic));
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(one: Diagnostic) -> Diagnostics {
        let mut all = Diagnostics::new();
        all.push(one);
        all
    }
}
