//! What is said about a truncation that cuts more than padding.

use certen_index::{Counterexample, Ix};
use certen_syntax::{Code, Diagnostic, Name, Rule, Span};

use super::{Side, Violation, Why};
use crate::program::Program;
use crate::term::{Term, TermId};

impl Side {
    /// The rule of the paper that a truncation on this side has to satisfy.
    pub fn rule(self) -> Rule {
        let name = match self {
            Side::Left => "TruncLPad",
            Side::Right => "TruncRPad",
        };
        Rule { name, paper: "ATL, Fig. 5" }
    }

    fn word(self) -> &'static str {
        match self {
            Side::Left => "left",
            Side::Right => "right",
        }
    }

    fn operator(self) -> &'static str {
        match self {
            Side::Left => "trunc_l",
            Side::Right => "trunc_r",
        }
    }
}

/// Sources of padding that a message shows.
const MOST_SOURCES: usize = 4;

impl Violation {
    /// The violation as an error. `place` knows where a term stands in the text, if anyone does.
    pub fn diagnostic(&self, program: &Program, place: &dyn Fn(TermId) -> Option<Span>) -> Diagnostic {
        let operator = self.side.operator();
        let cut = rows(&self.cut);
        let side = self.side.word();
        let message = match (&self.why, self.some_padding()) {
            (Why::Cut(_), Some(padding)) => format!("`{operator}` cuts {cut}, but only {}", self.are_padding(padding)),
            (Why::Cut(_), None) if self.all_computed() => {
                format!("`{operator}` cuts {cut}, but no row on the {side} is padding")
            }
            (Why::Cut(_), None) => format!("`{operator}` cuts {cut}, but no row on the {side} is shown to be padding"),
            (Why::Unknown, _) => format!("`{operator}` cuts {cut}, and it cannot be shown that they are padding"),
            (Why::TooLarge, _) => {
                format!("`{operator}` cuts {cut}, and there is too much to look at to show that they are padding")
            }
        };
        // Where no text can be pointed at, the name of the binding has to do.
        let message = match place(self.term) {
            Some(_) => message,
            None => format!("in `{}`, {message}", self.binding),
        };
        let mut error =
            Diagnostic::error(Code::E0241, place(self.term), message).rule(self.side.rule()).label("cut here");
        if let Some(span) = self.store.and_then(place).filter(|span| Some(*span) != place(self.term)) {
            error = error.also(span, "computed here");
        }
        let mut elsewhere = Vec::new();
        for source in self.sources.iter().take(MOST_SOURCES) {
            match (place(*source), what(program, *source)) {
                (Some(span), Some(what)) => error = error.also(span, format!("padding: {what}")),
                (None, Some(what)) => elsewhere.push(what),
                (_, None) => {}
            }
        }
        if !elsewhere.is_empty() {
            error = error.note(format!("padding: {}", elsewhere.join("; ")));
        }
        if let Why::Cut(example) = &self.why {
            error = error.note(self.example(program, example));
        }
        if self.all_computed() {
            error = error.note("all rows are computed, and what is computed is not padding, even if it is zero");
        }
        if let (Why::Unknown, Some(padding)) = (&self.why, self.some_padding()) {
            error = error.note(self.are_padding(padding));
        }
        match self.some_padding() {
            Some(padding) => error.help(format!("`{operator}` by `{padding}` cuts nothing but padding")),
            None => error,
        }
    }

    /// Whether nothing makes padding: it is known that there is none.
    fn all_computed(&self) -> bool {
        self.sources.is_empty() && self.padding.as_ref().is_some_and(|padding| padding.as_constant() == Some(0))
    }

    /// How much padding there is, if that is known and not nothing.
    fn some_padding(&self) -> Option<&Ix> {
        self.padding.as_ref().filter(|padding| padding.as_constant() != Some(0))
    }

    /// The counterexample in words: sizes, how much is cut there, and which element.
    fn example(&self, program: &Program, example: &Counterexample) -> String {
        let value = |name: Name| example.0.get(&name).copied();
        let at = |ix: &Ix| ix.eval(&value).ok().map(|rows| rows.max(0));
        let show = |names: &[Name]| {
            let shown = names.iter().filter_map(|name| Some(format!("{name} = {}", value(*name)?)));
            shown.collect::<Vec<String>>().join(", ")
        };
        let around: Vec<Name> = program.sizes.iter().chain(&self.around).copied().collect();
        let sizes = show(&around);
        let place: Option<Vec<String>> = self.indices.iter().map(|name| value(*name).map(|v| v.to_string())).collect();
        let mut text = match sizes.as_str() {
            "" => String::new(),
            sizes => format!("this fails for example where {sizes}: "),
        };
        if let (Some(cut), Some(size)) = (at(&self.cut), at(&self.size))
            && !sizes.is_empty()
        {
            text += &format!(
                "{} of {} cut, ",
                cut.min(size),
                if size == 1 { "1 row is".into() } else { format!("{size} rows are") }
            );
            if let Some(padding) = self.padding.as_ref().and_then(at) {
                text += &format!("{padding} of them padding; ");
            }
        }
        match place {
            Some(place) => text + &format!("element [{}] is cut, and is computed", place.join(", ")),
            None => text + "an element that is cut is computed",
        }
    }

    fn are_padding(&self, amount: &Ix) -> String {
        let verb = if amount.as_constant() == Some(1) { "is" } else { "are" };
        format!("{} on the {} {verb} shown to be padding", rows(amount), self.side.word())
    }
}

/// What a source of padding makes.
fn what(program: &Program, source: TermId) -> Option<String> {
    Some(match program.terms.get(source) {
        Term::Guard(cond, _) => format!("where not `{cond}`"),
        Term::PadLeft(k, _) => format!("{} on the left", rows(k)),
        Term::PadRight(k, _) => format!("{} on the right", rows(k)),
        Term::Split(k, _) => format!("up to a multiple of {k}"),
        _ => return None,
    })
}

fn rows(amount: &Ix) -> String {
    match amount.as_constant() {
        Some(1) => "1 row".into(),
        Some(rows) => format!("{rows} rows"),
        None => format!("`{amount}` rows"),
    }
}
