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
//! behind the next `;`. What is printed is read as the same steps.

#[cfg(test)]
mod tests;

use std::fmt;

use certen_index::{Cond, Ix, parse_cond, parse_ix};
use certen_syntax::block::{separated, skip_block, steps, write_block};
use certen_syntax::{Code, Cursor, Diagnostic, Diagnostics, FileId, Name, Source, Span, Token, TokenKind, lex};

/// A script: how a program is derived from another one.
#[derive(Clone, PartialEq, Debug)]
pub struct Derivation {
    /// The program that it makes.
    pub name: Name,
    /// The program that it begins with.
    pub from: Name,
    /// What is done, in order.
    pub steps: Vec<Step>,
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
    pub steps: Vec<Step>,
    /// Where the name stands.
    pub name_span: Span,
    /// Where it stands.
    pub span: Span,
}

/// One rewrite, or a piece of script by its name.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// Whether the right side is replaced by the left one.
    pub backwards: bool,
    /// Which one.
    pub name: Name,
    /// Its parameters.
    pub args: Vec<Arg>,
    /// Where: from the term itself to what it stands in. None for the first place where it can be done.
    pub at: Vec<Place>,
    /// Whether it is done at every place.
    pub everywhere: bool,
    /// Where it stands, without the `;`.
    pub span: Span,
}

/// An argument of a step.
#[derive(Clone, PartialEq, Debug)]
pub struct Arg {
    /// What it is.
    pub kind: ArgKind,
    /// Where it stands.
    pub span: Span,
}

/// What an argument is.
#[derive(Clone, PartialEq, Debug)]
pub enum ArgKind {
    /// `64`, `io`, `h - 1`
    Ix(Ix),
    /// `1 <= i && i < n`
    Cond(Cond),
    /// `{ x[_, _] }`, without the braces
    Pattern(String),
}

/// A term of a program.
#[derive(Clone, PartialEq, Debug)]
pub struct Place {
    /// Which.
    pub kind: PlaceKind,
    /// Which of several, from 1.
    pub nth: Option<usize>,
    /// Where it is written.
    pub span: Span,
}

/// How a term is named.
#[derive(Clone, PartialEq, Debug)]
pub enum PlaceKind {
    /// The term that binds this index or tensor; `result` is the whole program.
    Binder(Name),
    /// A term like this, without the braces.
    Pattern(String),
}

impl fmt::Display for Arg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ArgKind::Ix(ix) => ix.fmt(f),
            ArgKind::Cond(cond) => cond.fmt(f),
            ArgKind::Pattern(pattern) => write!(f, "{{ {pattern} }}"),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            PlaceKind::Binder(name) => name.fmt(f)?,
            PlaceKind::Pattern(pattern) => write!(f, "{{ {pattern} }}")?,
        }
        self.nth.map_or(Ok(()), |nth| write!(f, "#{nth}"))
    }
}

impl fmt::Display for Step {
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
    let tokens = lex(source, file, diagnostics);
    let mut cursor = Cursor::new(&tokens);
    let mut tactics = Vec::new();
    while !cursor.at_end() {
        if cursor.peek().word() == Some("derivation") {
            tactics.extend(tactic(&mut cursor, diagnostics));
            continue;
        }
        diagnostics.push(cursor.expected("`derivation`"));
        cursor.take();
        while !cursor.at_end() && !cursor.begins_item() {
            cursor.take();
        }
    }
    tactics
}

/// Reads a text that is nothing but steps, with `;` between them. Nothing if it has a mistake.
pub fn parse_steps(source: &Source, file: FileId, diagnostics: &mut Diagnostics) -> Option<Vec<Step>> {
    let mut found = Diagnostics::new();
    let tokens = lex(source, file, &mut found);
    let mut cursor = Cursor::new(&tokens);
    let steps = steps(&mut cursor, None, &mut found, separated_step, skip_step);
    let sound = !found.has_errors();
    diagnostics.extend(found.into_sorted());
    steps.filter(|_| sound)
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
        let mut parameters = Vec::new();
        while !cursor.peek().is(")") {
            parameters.push(self::name(cursor, "a parameter or `)`")?.0);
            if !cursor.eat(",") {
                break;
            }
        }
        if !cursor.eat(")") {
            let error = cursor.expected("`,` or `)`");
            return Err(match cursor.peek() {
                token if token.is(":") => {
                    error.help("parameters have no types: what they are is seen where they are used")
                }
                _ => error.also(open, "to close this"),
            }
            .into());
        }
        Ok((name, parameters, cursor.expect_punct("{")?.span))
    };
    let ((name, name_span), parameters, open) = or_skip(cursor, header, diagnostics)?;
    let steps = steps(cursor, Some(open), diagnostics, separated_step, skip_step)?;
    Some(Tactic { name, parameters, steps, name_span, span: since(cursor, start) })
}

/// Whether a space stands between two tokens of a derivation, in house style. `before` is the token before the first of
/// them; `tight` says that they stand in an index expression, where products are written without spaces.
pub fn is_spaced(before: Option<Token>, last: Token, next: Token, tight: bool) -> bool {
    let is_any = |token: Token, puncts: &[&str]| puncts.iter().any(|punct| token.is(punct));
    let dots = [".", "..", "..."];
    if is_any(last, &dots) && is_any(next, &dots)
        || is_any(last, &["!", "-", "*"]) && is_any(next, &["=", "==", ">", ">="])
    {
        // Together they would be another sign.
        return true;
    }
    if is_any(next, &[")", "]", ",", ";", "#", "..", "."]) || is_any(last, &["(", "[", "#", "..", "@", "!"]) {
        return false;
    }
    let is_operand = |token: Token| match token.kind {
        TokenKind::Name(name) => !JOINING.contains(&name.as_str()),
        TokenKind::Int(_) | TokenKind::Float(_) | TokenKind::Text(_) => true,
        _ => is_any(token, &[")", "]", "}"]),
    };
    if last.is(".") {
        // `index.f64(i)` is one thing, `gen i in 0..n. x` is not.
        return !before
            .and_then(|before| before.word())
            .is_some_and(|word| matches!(word, "index" | "cast" | "undefined"));
    }
    if last.is("-") && !before.is_some_and(is_operand) {
        return false;
    }
    if tight && last.is("*") {
        return false;
    }
    if is_any(next, &["(", "["]) {
        return !is_operand(last) || (next.is("(") && last.word().is_none());
    }
    !(tight && next.is("*"))
}

/// Words that are no operands.
const JOINING: [&str; 8] = ["in", "at", "if", "then", "else", "where", "times", "give"];

/// For each token whether it stands in an index expression or a condition: an argument that is no pattern, or in a
/// pattern indices, ranges and conditions. `in_pattern` says that the tokens are those of a pattern, not of a
/// declaration.
pub fn in_indices(tokens: &[Token], in_pattern: bool) -> Vec<bool> {
    /// What is open around a token.
    struct Open {
        tight: bool,
        /// Whether the first argument is an index expression, and others are not.
        first: bool,
        /// Whether a range or the condition of an `if` is being read.
        inner: bool,
    }
    let new = |tight: bool, first: bool| Open { tight, first, inner: false };
    let mut open = if in_pattern { vec![new(false, false)] } else { Vec::new() };
    let mut found = Vec::with_capacity(tokens.len());
    let word = |at: Option<usize>| at.and_then(|at| tokens.get(at)).and_then(|token| token.word());
    for (at, token) in tokens.iter().enumerate() {
        let tight = open.last().is_none_or(|open| open.tight || open.first || open.inner);
        found.push(tight);
        let binds = matches!(
            word(at.checked_sub(2)),
            Some("gen" | "sum" | "product" | "minimum" | "maximum" | "all" | "any" | "reduce")
        );
        match (token.kind, open.last_mut()) {
            // The braces of a declaration hold steps, those inside hold patterns.
            (TokenKind::Punct("{"), around) => {
                let is_block = around.is_none();
                open.push(new(is_block, false));
            }
            (TokenKind::Punct("["), _) => open.push(new(true, false)),
            (TokenKind::Punct("("), _) => {
                let first = matches!(
                    word(at.checked_sub(1)),
                    Some("guard" | "split" | "pad_l" | "pad_r" | "trunc_l" | "trunc_r")
                );
                let of_index = word(at.checked_sub(3)) == Some("index");
                open.push(new((tight && !first) || of_index, first));
            }
            (TokenKind::Punct(")" | "]" | "}"), _) => drop(open.pop()),
            (TokenKind::Punct(","), Some(around)) => around.first = false,
            (TokenKind::Punct("."), Some(around)) => around.inner = false,
            (TokenKind::Name(name), Some(around)) => match name.as_str() {
                "in" if binds => around.inner = true,
                "if" => around.inner = true,
                "then" => around.inner = false,
                _ => {}
            },
            _ => {}
        }
    }
    found
}

/// Tokens as text, in house style.
fn joined(tokens: &[Token]) -> String {
    let tight = in_indices(tokens, true);
    let mut text = String::new();
    let mut before = None;
    let mut last: Option<Token> = None;
    for (token, tight) in tokens.iter().zip(tight) {
        if let Some(last) = last
            && is_spaced(before, last, *token, tight)
        {
            text.push(' ');
        }
        match token.kind {
            TokenKind::Name(name) => text += name.as_str(),
            TokenKind::Int(value) => text += &value.to_string(),
            TokenKind::Float(value) => text += &format!("{value:?}"),
            TokenKind::Text(word) => {
                text += &format!("\"{}\"", word.as_str().replace('\\', "\\\\").replace('"', "\\\""))
            }
            TokenKind::Punct(punct) => text += punct,
            TokenKind::End => {}
        }
        before = last;
        last = Some(*token);
    }
    text
}

type Read<T> = Result<T, Box<Diagnostic>>;

fn wrong(span: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(Code::E0103, span, message)
}

/// From a place to the token that was taken last.
fn since(cursor: &Cursor<'_>, start: Span) -> Span {
    cursor.previous().map_or(start, |last| start.to(last.span))
}

/// A name that does not begin another declaration.
fn name(cursor: &mut Cursor<'_>, what: &str) -> Read<(Name, Span)> {
    if cursor.begins_item() {
        return Err(cursor.expected(what).into());
    }
    Ok(cursor.expect_name(what)?)
}

/// What a header says; if it has a mistake, its block is passed.
fn or_skip<'a, T>(
    cursor: &mut Cursor<'a>,
    header: impl Fn(&mut Cursor<'a>) -> Read<T>,
    diagnostics: &mut Diagnostics,
) -> Option<T> {
    match header(cursor) {
        Ok(header) => Some(header),
        Err(error) => {
            diagnostics.push(*error);
            skip_block(cursor);
            None
        }
    }
}

/// A step and the `;` behind it.
fn separated_step(cursor: &mut Cursor<'_>, open: Option<Span>) -> Read<Step> {
    let step = step(cursor)?;
    separator(cursor, open).map(|()| step)
}

/// The `;` behind a step, which may be left out at the end of a text that is nothing but steps.
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

/// Passes what is left of a step with a mistake: behind the next `;`, or to where something else begins. Braces of
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

fn step(cursor: &mut Cursor<'_>) -> Read<Step> {
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
    Ok(Step { backwards, name, args, at, everywhere, span: since(cursor, start) })
}

/// Arguments up to the closing parenthesis, which is taken. The last may have a comma behind it.
fn args(cursor: &mut Cursor<'_>, open: Span) -> Read<Vec<Arg>> {
    let mut args = Vec::new();
    while !cursor.peek().is(")") {
        args.push(arg(cursor)?);
        if !cursor.eat(",") {
            break;
        }
    }
    if cursor.eat(")") {
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

fn arg(cursor: &mut Cursor<'_>) -> Read<Arg> {
    let first = cursor.peek();
    let kind = match first.kind {
        TokenKind::Punct("{") => ArgKind::Pattern(pattern(cursor)?),
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
    Ok(Arg { kind, span: since(cursor, first.span) })
}

/// `n + 1` or `i < n + 1`: what stands behind an index expression tells.
fn index_or_condition(cursor: &mut Cursor<'_>) -> Read<ArgKind> {
    let start = *cursor;
    let index = parse_ix(cursor);
    let behind = cursor.peek();
    let compares = ["<", "<=", ">", ">=", "==", "=", "!=", "&&", "||"].into_iter().any(|sign| behind.is(sign));
    if let Ok(ix) = &index
        && !compares
    {
        return Ok(ArgKind::Ix(ix.clone()));
    }
    let far = cursor.taken();
    *cursor = start;
    match (parse_cond(cursor), index) {
        (Ok(cond), _) => Ok(ArgKind::Cond(cond)),
        // Whoever came farther knows better what is wrong.
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

fn place(cursor: &mut Cursor<'_>) -> Read<Place> {
    let first = cursor.peek();
    let kind = match first.kind {
        TokenKind::Punct("{") => PlaceKind::Pattern(pattern(cursor)?),
        _ => {
            let error = "the name of an index or tensor, or a pattern in braces";
            PlaceKind::Binder(name(cursor, error)?.0)
        }
    };
    let mut nth = None;
    if cursor.eat("#") {
        let (value, span) = cursor.expect_int("a number behind `#`")?;
        nth = usize::try_from(value).ok().filter(|&nth| nth > 0);
        if nth.is_none() {
            return Err(wrong(span, "places of one name are counted from 1").into());
        }
    }
    Ok(Place { kind, nth, span: since(cursor, first.span) })
}
