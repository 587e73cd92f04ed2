//! The arguments of a step, read one after the other, each with a message of its own if it is not what it should be.

use std::cell::Cell;

use certen_syntax::schedule::{Arg, ArgKind, Path, Step};
use certen_syntax::{Code, Diagnostic, Name, Span};

use crate::refusal::{Done, Refusal};

/// The largest number in a step.
const MAX_NUMBER: u64 = 1 << 31;

/// The arguments of a step.
pub(crate) struct Args<'a> {
    /// How the step is written.
    usage: &'static str,
    step: &'a Step,
    at: Cell<usize>,
}

impl<'a> Args<'a> {
    pub(crate) fn new(usage: &'static str, step: &'a Step) -> Args<'a> {
        Args { usage, step, at: Cell::new(0) }
    }

    /// Where the step stands.
    pub(crate) fn span(&self) -> Span {
        self.step.span
    }

    fn wrong(&self, span: Span, message: String) -> Refusal {
        let usage = self.usage.replace("), ", ")`, `").replace(" or ", "` or `");
        Diagnostic::error(Code::E0801, span, message).help(format!("it is written `{usage}`")).into()
    }

    fn next(&self, what: &str) -> Done<&'a Arg> {
        let at = self.at.replace(self.at.get() + 1);
        self.step.args.get(at).ok_or_else(|| {
            self.wrong(self.step.span, format!("`{}` needs {what} as its argument {}", self.step.name, at + 1))
        })
    }

    fn found(&self, arg: &Arg, what: &str) -> Refusal {
        self.wrong(arg.span, format!("`{}` needs {what} here, not `{arg}`", self.step.name))
    }

    /// How many arguments there still are.
    pub(crate) fn left(&self) -> usize {
        self.step.args.len().saturating_sub(self.at.get())
    }

    /// The name of a loop, a stage or a buffer.
    pub(crate) fn path(&self, what: &str) -> Done<(&'a Path, Span)> {
        let arg = self.next(what)?;
        match &arg.kind {
            ArgKind::Path(path) => Ok((path, arg.span)),
            _ => Err(self.found(arg, what)),
        }
    }

    /// Several of them, in brackets.
    pub(crate) fn paths(&self, what: &str) -> Done<Vec<(&'a Path, Span)>> {
        let arg = self.next(what)?;
        let ArgKind::List(list) = &arg.kind else { return Err(self.found(arg, what)) };
        let path = |arg: &'a Arg| match &arg.kind {
            ArgKind::Path(path) => Ok((path, arg.span)),
            _ => Err(self.found(arg, what)),
        };
        list.iter().map(path).collect()
    }

    /// A word: a stage, a buffer or a choice, without points.
    pub(crate) fn word(&self, what: &str) -> Done<(Name, Span)> {
        let arg = self.next(what)?;
        match &arg.kind {
            ArgKind::Path(Path { parts, nth: None }) if parts.len() == 1 => Ok((parts[0], arg.span)),
            _ => Err(self.found(arg, what)),
        }
    }

    /// A number.
    pub(crate) fn int(&self, what: &str) -> Done<(i64, Span)> {
        let arg = self.next(what)?;
        Ok((self.number(arg, what)?, arg.span))
    }

    /// Numbers are limited so that indices, which are computed from them, stay within 64 bits.
    fn number(&self, arg: &Arg, what: &str) -> Done<i64> {
        match arg.kind {
            ArgKind::Int(value) if value.unsigned_abs() <= MAX_NUMBER => Ok(value),
            ArgKind::Int(value) => {
                Err(self.wrong(arg.span, format!("numbers in steps go up to {MAX_NUMBER}, and {value} is beyond")))
            }
            _ => Err(self.found(arg, what)),
        }
    }

    /// A number that is at least this.
    pub(crate) fn at_least(&self, least: i64, what: &str) -> Done<i64> {
        let (value, span) = self.int(what)?;
        if value < least {
            return Err(self.wrong(span, format!("{what} is at least {least}, not {value}")));
        }
        Ok(value)
    }

    /// Several numbers that are at least this, in brackets.
    pub(crate) fn ints(&self, least: i64, what: &str) -> Done<Vec<i64>> {
        let arg = self.next(what)?;
        let ArgKind::List(list) = &arg.kind else { return Err(self.found(arg, what)) };
        let int = |arg: &Arg| match self.number(arg, what)? {
            value if value >= least => Ok(value),
            value => Err(self.wrong(arg.span, format!("{what} are at least {least}, not {value}"))),
        };
        list.iter().map(int).collect()
    }

    /// That there are no more arguments.
    pub(crate) fn end(&self) -> Done<()> {
        match self.step.args.get(self.at.get()) {
            Some(arg) => Err(self.wrong(arg.span, format!("`{}` has no such argument: `{arg}`", self.step.name))),
            None => Ok(()),
        }
    }
}
