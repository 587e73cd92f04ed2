//! Derivations as they are written: a program from another one, by rewrites with names (ATL's scheduling framework,
//! whose scripts are Coq tactics; here they are a language of their own).
//!
//! ```text
//! derivation := "derive" NAME "from" NAME "{" (step ";")* "}"
//! tactic     := "derivation" NAME "(" [NAME ("," NAME)* [","]] ")" "{" (step ";")* "}"
//! step       := ["backwards"] NAME ["(" [arg ("," arg)* [","]] ")"] ["at" address] ["everywhere"]
//! arg        := index expression | condition | "{" pattern "}"
//! address    := place ("in" place)*
//! place      := (NAME | "{" pattern "}") ["#" INT]
//! ```
//!
//! Index expressions and conditions are those of `certen-index`; a pattern is Core's text with metavariables, of which
//! only the tokens are looked at here: what a step means, and whether there is one of that name, is not known yet.
//! `from`, `at`, `in`, `everywhere` and `backwards` are words only where the grammar has them.
//!
//! Guarantees: reading never fails, whatever the text; one mistake gives one message, at its place, and reading goes on
//! after the next `;`. What is printed is read as the same steps.

mod spacing;
#[cfg(test)]
mod tests;

use std::fmt;

use certen_index::{Cond, Ix, parse_cond, parse_ix};
use certen_syntax::block::{
    Read, declarations, items, nth, or_skip, separated, since, steps, steps_alone, write_block, wrong,
};
use certen_syntax::{Cursor, Diagnostics, FileId, Name, Source, Span, Token, TokenKind};

use spacing::joined;
pub use spacing::{in_indices, is_spaced};

/// A script: how a program is derived from another one.
#[derive(Clone, PartialEq, Debug)]
pub struct Derivation {
    /// The program that it makes.
    pub name: Name,
    /// The program that it begins with.
    pub from: Name,
    /// What is done, in order.
    pub steps: Vec<ScriptStep>,
    /// Where the name stands.
    pub name_span: Span,
    /// Where the name of the program stands that it begins with.
    pub from_span: Span,
    /// Where its names stand, with the word `derive`.
    pub head: Span,
    /// Where all of it stands.
    pub span: Span,
}

/// A piece of scripts with a name and parameters.
#[derive(Clone, PartialEq, Debug)]
pub struct Tactic {
    /// Its name.
    pub name: Name,
    /// What its steps leave open: names that stand for arguments.
    pub parameters: Vec<Name>,
    /// What is done, in order.
    pub steps: Vec<ScriptStep>,
    /// Where the name stands.
    pub name_span: Span,
    /// Where it stands.
    pub span: Span,
}

/// One rewrite, or a piece of script by its name.
#[derive(Clone, PartialEq, Debug)]
pub struct ScriptStep {
    /// Whether the right side is replaced by the left one.
    pub backwards: bool,
    /// Which one.
    pub name: Name,
    /// Its parameters.
    pub args: Vec<ScriptArg>,
    /// Where: from the term itself to what it stands in. None for the first place where it can be done.
    pub at: Vec<AddressPart>,
    /// Whether it is done at every place.
    pub everywhere: bool,
    /// Where it stands, without the `;`.
    pub span: Span,
}

/// An argument of a step.
#[derive(Clone, PartialEq, Debug)]
pub struct ScriptArg {
    /// What it is.
    pub kind: ScriptArgKind,
    /// Where it stands.
    pub span: Span,
}

/// What an argument is.
#[derive(Clone, PartialEq, Debug)]
pub enum ScriptArgKind {
    /// `64`, `io`, `h - 1`
    Ix(Ix),
    /// `1 <= i && i < n`
    Cond(Cond),
    /// `{ x[_, _] }`, without the braces
    Pattern(String),
}

/// A term of a program.
#[derive(Clone, PartialEq, Debug)]
pub struct AddressPart {
    /// Which.
    pub kind: AddressKind,
    /// Which of several, from 1.
    pub nth: Option<usize>,
    /// Where it is written.
    pub span: Span,
}

/// How a term is named.
#[derive(Clone, PartialEq, Debug)]
pub enum AddressKind {
    /// The term that binds this index or tensor; `result` is the whole program.
    Binder(Name),
    /// A term like this, without the braces.
    Pattern(String),
}

impl fmt::Display for ScriptArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ScriptArgKind::Ix(ix) => ix.fmt(f),
            ScriptArgKind::Cond(cond) => cond.fmt(f),
            ScriptArgKind::Pattern(pattern) => write!(f, "{{ {pattern} }}"),
        }
    }
}

impl fmt::Display for AddressPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            AddressKind::Binder(name) => name.fmt(f)?,
            AddressKind::Pattern(pattern) => write!(f, "{{ {pattern} }}")?,
        }
        self.nth.map_or(Ok(()), |nth| write!(f, "#{nth}"))
    }
}

impl fmt::Display for ScriptStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.backwards {
            f.write_str("backwards ")?;
        }
        write!(f, "{}", self.name)?;
        if !self.args.is_empty() {
            f.write_str("(")?;
            separated(f, &self.args, ", ")?;
            f.write_str(")")?;
        }
        if !self.at.is_empty() {
            f.write_str(" at ")?;
            separated(f, &self.at, " in ")?;
        }
        f.write_str(if self.everywhere { " everywhere" } else { "" })
    }
}

impl fmt::Display for Derivation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "derive {} from {} ", self.name, self.from)?;
        write_block(f, &self.steps)
    }
}

impl fmt::Display for Tactic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "derivation {}(", self.name)?;
        separated(f, &self.parameters, ", ")?;
        f.write_str(") ")?;
        write_block(f, &self.steps)
    }
}

/// Reads a file of nothing but pieces of scripts. What could not be read is left out, with an error.
pub fn parse_tactics(source: &Source, file: FileId, diagnostics: &mut Diagnostics) -> Vec<Tactic> {
    declarations(source, file, diagnostics, "derivation", tactic, |error| error)
}

/// Reads a text that is nothing but steps, with `;` between them. Nothing if it has a mistake.
pub fn parse_steps(source: &Source, file: FileId, diagnostics: &mut Diagnostics) -> Option<Vec<ScriptStep>> {
    steps_alone(source, file, diagnostics, separated_step, skip_step)
}

/// Reads a derivation at the word `derive`. Nothing if it has a mistake; then all of it is passed that could be
/// recognised as a part of it.
pub fn derivation(cursor: &mut Cursor<'_>, diagnostics: &mut Diagnostics) -> Option<Derivation> {
    let start = cursor.take().span;
    let header = |cursor: &mut Cursor<'_>| -> Read<_> {
        let name = name(cursor, "the name of what is derived")?;
        if !cursor.eat_word("from") {
            let help = format!("a derivation says what it begins with: `derive {} from f {{ … }}`", name.0);
            return Err(cursor.expected("`from`").help(help).into());
        }
        let from = self::name(cursor, "the name of a function")?;
        let head = since(cursor, start);
        Ok((name, from, head, cursor.expect_punct("{")?.span))
    };
    let ((name, name_span), (from, from_span), head, open) = or_skip(cursor, header, diagnostics)?;
    let steps = steps(cursor, Some(open), diagnostics, separated_step, skip_step)?;
    Some(Derivation { name, from, steps, name_span, from_span, head, span: since(cursor, start) })
}

/// Reads a piece of scripts at the word `derivation`, as [`derivation()`] reads a derivation.
pub fn tactic(cursor: &mut Cursor<'_>, diagnostics: &mut Diagnostics) -> Option<Tactic> {
    let start = cursor.take().span;
    let header = |cursor: &mut Cursor<'_>| -> Read<_> {
        let name = name(cursor, "the name of a derivation")?;
        let open = cursor.expect_punct("(")?.span;
        let parameter = |cursor: &mut Cursor<'_>| Ok(self::name(cursor, "a parameter or `)`")?.0);
        let Some(parameters) = items(cursor, ")", parameter)? else {
            let error = cursor.expected("`,` or `)`");
            return Err(match cursor.peek() {
                token if token.is(":") => {
                    error.help("parameters have no types: what they are is seen where they are used")
                }
                _ => error.also(open, "to close this"),
            }
            .into());
        };
        Ok((name, parameters, cursor.expect_punct("{")?.span))
    };
    let ((name, name_span), parameters, open) = or_skip(cursor, header, diagnostics)?;
    let steps = steps(cursor, Some(open), diagnostics, separated_step, skip_step)?;
    Some(Tactic { name, parameters, steps, name_span, span: since(cursor, start) })
}

/// A name that does not begin another declaration.
fn name(cursor: &mut Cursor<'_>, what: &str) -> Read<(Name, Span)> {
    if cursor.begins_item() {
        return Err(cursor.expected(what).into());
    }
    Ok(cursor.expect_name(what)?)
}

/// A step and the `;` after it.
fn separated_step(cursor: &mut Cursor<'_>, open: Option<Span>) -> Read<ScriptStep> {
    let step = step(cursor)?;
    separator(cursor, open).map(|()| step)
}

/// The `;` after a step, which may be left out at the end of a text that is nothing but steps.
fn separator(cursor: &mut Cursor<'_>, open: Option<Span>) -> Read<()> {
    if cursor.eat(";") || (open.is_none() && cursor.at_end()) {
        return Ok(());
    }
    let found = cursor.peek();
    let forgotten = found.first_on_line || found.is("}");
    let error = match (found.word(), cursor.previous()) {
        (_, Some(last)) if forgotten => {
            let message = format!("expected `;`, found {}", found.describe());
            wrong(last.span.end_point(), message).label("expected `;`")
        }
        (Some("at"), _) => cursor.expected("`;`").help("the place stands once, before `everywhere`: `at i everywhere`"),
        (Some("backwards"), _) => cursor.expected("`;`").help("`backwards` stands before the rewrite"),
        _ => cursor.expected("`;`"),
    };
    Err(error.into())
}

/// Passes what is left of a step with a mistake: up to and including the next `;`, or to where something else begins. Braces of
/// patterns are passed as a whole.
fn skip_step(cursor: &mut Cursor<'_>, in_block: bool) {
    // A `;` that was forgotten is all that was wrong.
    let is_end = |token: Token| token.is(")") || token.word().is_some();
    if cursor.previous().is_some_and(is_end) && cursor.peek().first_on_line && cursor.peek().word().is_some() {
        return;
    }
    let mut inside = false;
    while !(cursor.at_end() || in_block && cursor.begins_item()) {
        if in_block && !inside && cursor.peek().is("}") {
            return;
        }
        let token = cursor.take();
        inside = token.is("{") || (inside && !token.is("}"));
        if token.is(";") {
            return;
        }
    }
}

fn step(cursor: &mut Cursor<'_>) -> Read<ScriptStep> {
    let start = cursor.peek().span;
    let backwards = cursor.eat_word("backwards");
    let what = if backwards { "the name of a rewrite" } else { "a step, such as `swap_gens at i`" };
    let (name, _) = cursor.expect_name(what)?;
    let open = cursor.peek().span;
    let args = if cursor.eat("(") { args(cursor, open)? } else { Vec::new() };
    let mut at = Vec::new();
    if cursor.eat_word("at") {
        at.push(place(cursor)?);
        while cursor.eat_word("in") {
            at.push(place(cursor)?);
        }
    }
    let everywhere = cursor.eat_word("everywhere");
    Ok(ScriptStep { backwards, name, args, at, everywhere, span: since(cursor, start) })
}

/// Arguments up to the closing parenthesis, which is taken. The last may have a comma after it.
fn args(cursor: &mut Cursor<'_>, open: Span) -> Read<Vec<ScriptArg>> {
    if let Some(args) = items(cursor, ")", arg)? {
        return Ok(args);
    }
    let error = cursor.expected("`,` or `)`");
    Err(match cursor.peek() {
        token if token.is("/") || token.is("%") => {
            error.help("write `floor_div(n, 4)`, `ceil_div(n, 4)` or `mod(n, 4)`")
        }
        token if token.is("..") => error.help("both ends of a range are arguments of their own"),
        _ => error.also(open, "to close this"),
    }
    .into())
}

fn arg(cursor: &mut Cursor<'_>) -> Read<ScriptArg> {
    let first = cursor.peek();
    let kind = match first.kind {
        TokenKind::Punct("{") => ScriptArgKind::Pattern(pattern(cursor)?),
        TokenKind::Text(text) => {
            let error = cursor.expected("an index, a condition or a pattern in braces");
            return Err(error.help(format!("names stand without quotation marks: `{text}`")).into());
        }
        TokenKind::Float(_) => {
            let error = cursor.expected("an index, a condition or a pattern in braces");
            return Err(error.help("a value of a tensor stands in braces: `{ 0.5 }`").into());
        }
        TokenKind::Name(_) | TokenKind::Int(_) | TokenKind::Punct("-" | "(" | "!") => index_or_condition(cursor)?,
        _ => return Err(cursor.expected("an index, a condition or a pattern in braces").into()),
    };
    Ok(ScriptArg { kind, span: since(cursor, first.span) })
}

/// `n + 1` or `i < n + 1`: what follows the index expression decides.
fn index_or_condition(cursor: &mut Cursor<'_>) -> Read<ScriptArgKind> {
    let start = *cursor;
    let index = parse_ix(cursor);
    let behind = cursor.peek();
    let compares = ["<", "<=", ">", ">=", "==", "=", "!=", "&&", "||"].into_iter().any(|sign| behind.is(sign));
    if let Ok(ix) = &index
        && !compares
    {
        return Ok(ScriptArgKind::Ix(ix.clone()));
    }
    let far = cursor.taken();
    *cursor = start;
    match (parse_cond(cursor), index) {
        (Ok(cond), _) => Ok(ScriptArgKind::Cond(cond)),
        // The reader that got further has the better message.
        (Err(_), Err(error)) if far > cursor.taken() => Err(error.into()),
        (Err(error), _) => Err(error.into()),
    }
}

/// The text between braces.
fn pattern(cursor: &mut Cursor<'_>) -> Read<String> {
    let open = cursor.take().span;
    let mut tokens = Vec::new();
    let mut brackets: Vec<Token> = Vec::new();
    loop {
        let token = cursor.peek();
        if token.is("}")
            && let Some(open) = brackets.last()
        {
            let close = if open.is("(") { "`)`" } else { "`]`" };
            return Err(cursor.expected(close).also(open.span, "to close this").into());
        }
        if token.is("}") && !tokens.is_empty() {
            cursor.take();
            return Ok(joined(&tokens));
        }
        if token.is("(") || token.is("[") {
            brackets.push(token);
        }
        if token.is(")") || token.is("]") {
            let open = brackets.pop();
            if !open.is_some_and(|open| open.is(if token.is(")") { "(" } else { "[" })) {
                let error = wrong(token.span, format!("{} closes nothing", token.describe()));
                return Err(open.map_or(error.clone(), |open| error.also(open.span, "this is open")).into());
            }
        }
        if token.is("}") {
            return Err(cursor.expected("a pattern, such as `x[_, _]`").into());
        }
        if token.is("{") {
            return Err(wrong(token.span, "a pattern has no braces inside")
                .help("parentheses group: `(a + b) * c`")
                .into());
        }
        if cursor.at_end() || token.is(";") || cursor.begins_item() {
            return Err(cursor.expected("`}`").also(open, "to close this").into());
        }
        tokens.push(cursor.take());
    }
}

fn place(cursor: &mut Cursor<'_>) -> Read<AddressPart> {
    let first = cursor.peek();
    let kind = match first.kind {
        TokenKind::Punct("{") => AddressKind::Pattern(pattern(cursor)?),
        _ => {
            let error = "the name of an index or tensor, or a pattern in braces";
            AddressKind::Binder(name(cursor, error)?.0)
        }
    };
    Ok(AddressPart { kind, nth: nth(cursor, "places")?, span: since(cursor, first.span) })
}
