//! Why a step cannot be done: an error, and the statements that it speaks of. The error shows the loops before the step,
//! with those statements marked.

use certen_core::TypeError;
use certen_index::IxError;
use certen_loops::LoopProgram;
use certen_syntax::{Code, Diagnostic, Label, Span};

use crate::place::{Place, shown};

/// What a step comes to.
pub(crate) type Done<T> = Result<T, Refusal>;

/// Why a step cannot be done.
#[derive(Debug)]
pub(crate) struct Refusal {
    diagnostic: Box<Diagnostic>,
    /// Statements that it speaks of.
    marked: Vec<Place>,
}

impl From<Diagnostic> for Refusal {
    fn from(diagnostic: Diagnostic) -> Refusal {
        Refusal { diagnostic: Box::new(diagnostic), marked: Vec::new() }
    }
}

impl From<IxError> for Refusal {
    fn from(error: IxError) -> Refusal {
        Refusal::cannot(format!("an index would be too complex: {error}"))
    }
}

impl From<TypeError> for Refusal {
    fn from(error: TypeError) -> Refusal {
        Refusal::cannot(format!("the loops would be ill-formed: {error}"))
    }
}

impl Refusal {
    /// That a step cannot be done here (E0803).
    pub(crate) fn cannot(message: impl Into<String>) -> Refusal {
        Diagnostic::error(Code::E0803, None, message).into()
    }

    /// That a place is no longer there: a step changed the loops and lost its own way.
    pub(crate) fn lost() -> Refusal {
        Refusal::cannot("a place in the loops is gone")
    }

    /// A statement that it speaks of, which is marked where the loops are shown.
    pub(crate) fn at(mut self, place: &Place) -> Refusal {
        self.marked.push(place.clone());
        self
    }

    /// Several of them.
    pub(crate) fn at_all<'a>(self, places: impl IntoIterator<Item = &'a Place>) -> Refusal {
        places.into_iter().fold(self, Refusal::at)
    }

    /// Without marks: it speaks of statements that the step has already moved.
    pub(crate) fn unmarked(mut self) -> Refusal {
        self.marked.clear();
        self
    }

    /// A further fact.
    pub(crate) fn note(mut self, text: impl Into<String>) -> Refusal {
        self.diagnostic = Box::new(self.diagnostic.note(text));
        self
    }

    /// What could be done instead.
    pub(crate) fn help(mut self, text: impl Into<String>) -> Refusal {
        self.diagnostic = Box::new(self.diagnostic.help(text));
        self
    }

    /// The error of a step at a place in the text, with the loops at that step.
    pub(crate) fn located(self, program: &LoopProgram, span: Span) -> Diagnostic {
        let mut error = *self.diagnostic;
        if error.primary.is_none() {
            error.primary = Some(Label { span, text: String::new() });
        }
        // What a step is called and takes has nothing to do with the loops.
        if error.code == Code::E0801 {
            return error;
        }
        error.note(format!("the loops at this step:\n{}", shown(program, &self.marked)))
    }
}

/// Things in a sentence.
pub(crate) fn listed(things: impl Iterator<Item = impl std::fmt::Display>) -> String {
    things.map(|thing| format!("`{thing}`")).collect::<Vec<_>>().join(", ")
}
