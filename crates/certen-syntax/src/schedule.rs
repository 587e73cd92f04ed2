//! Schedules as they are written: how the loops of a function are to be transformed, step by step. The language of
//! steps is TeML's (Sec. 3.3.2): each is a transformation of loops by name, with names of loops and numbers.
//!
//! ```text
//! schedule := "schedule" [NAME "for"] [NAME] "{" (step ";")* "}"
//! step     := NAME "(" [arg ("," arg)* [","]] ")"
//! arg      := ["-"] INT | path | "[" [arg ("," arg)* [","]] "]"
//! path     := NAME ("." NAME)* ["#" INT]
//! ```
//!
//! `schedule blur { … }` is the schedule of the function `blur` that is used unless another is chosen, `schedule fast
//! for blur { … }` one of its variants. The same text stands in `.ten` files, in files of their own, on the command line
//! and in Python; what a step means, and whether there is one of that name, is not known here.
//!
//! Guarantees: reading never fails, whatever the text; one mistake gives one message, at its place, and reading goes on
//! after the next `;`; lists are at most [`MAX_NESTING`] deep. What is printed is read as the same steps.

use std::fmt;

use crate::block::{Read, declarations, items, nth, or_skip, separated, since, steps, steps_alone, write_block, wrong};
use crate::cursor::Cursor;
use crate::diagnostic::Diagnostics;
use crate::lexer::TokenKind;
use crate::name::Name;
use crate::source::{FileId, Source, Span};

/// How deep lists may stand in lists.
pub const MAX_NESTING: usize = 8;

/// The steps for one function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schedule {
    /// The name of the variant; none for the schedule that is used unless another is chosen.
    pub variant: Option<Name>,
    /// The function that it is for; none where there is only one.
    pub function: Option<Name>,
    /// What is done, in order.
    pub steps: Vec<Step>,
    /// Where its names stand, with the word `schedule`.
    pub head: Span,
    /// Where all of it stands.
    pub span: Span,
}

/// One transformation: `split(i, 32)`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// Which one.
    pub name: Name,
    /// Of what, and how.
    pub args: Vec<Arg>,
    /// Where it stands, without the `;`.
    pub span: Span,
}

/// An argument of a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arg {
    /// What it is.
    pub kind: ArgKind,
    /// Where it stands.
    pub span: Span,
}

/// What an argument is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ArgKind {
    /// `32`, `-1`
    Int(i64),
    /// `rows.i.o`
    Path(Path),
    /// `[j, i]`
    List(Vec<Arg>),
}

/// The name of a loop, stage or buffer: `i`, `rows.i`, `i.o`, `j#2`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Path {
    /// What stands between the points; at least one.
    pub parts: Vec<Name>,
    /// Which of several with the same name, from 1.
    pub nth: Option<usize>,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        separated(f, &self.parts, ".")?;
        self.nth.map_or(Ok(()), |nth| write!(f, "#{nth}"))
    }
}

impl fmt::Display for Arg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ArgKind::Int(value) => value.fmt(f),
            ArgKind::Path(path) => path.fmt(f),
            ArgKind::List(args) => {
                f.write_str("[")?;
                separated(f, args, ", ")?;
                f.write_str("]")
            }
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.name)?;
        separated(f, &self.args, ", ")?;
        f.write_str(")")
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("schedule ")?;
        if let Some(variant) = self.variant {
            write!(f, "{variant} for ")?;
        }
        if let Some(function) = self.function {
            write!(f, "{function} ")?;
        }
        write_block(f, &self.steps)
    }
}

/// Reads a file of schedules. What could not be read is left out, with an error.
pub fn parse_schedules(source: &Source, file: FileId, diagnostics: &mut Diagnostics) -> Vec<Schedule> {
    let help = "a file of schedules holds `schedule NAME { … }`, once for each function or variant";
    declarations(source, file, diagnostics, "schedule", schedule, |error| error.help(help))
}

/// Reads a text that is nothing but steps, with `;` between them: `split(i, 32); vectorize(j, 4)`. Nothing if it has a
/// mistake.
pub fn parse_steps(source: &Source, file: FileId, diagnostics: &mut Diagnostics) -> Option<Vec<Step>> {
    steps_alone(source, file, diagnostics, separated_step, skip_step)
}

/// Reads a schedule at the word `schedule`. Nothing if it has a mistake; then all of it is passed that could be
/// recognised as a part of it.
pub fn schedule(cursor: &mut Cursor<'_>, diagnostics: &mut Diagnostics) -> Option<Schedule> {
    let (variant, function, head, open) = or_skip(cursor, header, diagnostics)?;
    let steps = steps(cursor, Some(open), diagnostics, separated_step, skip_step)?;
    Some(Schedule { variant, function, steps, head, span: since(cursor, head) })
}

/// `schedule fast for blur {`: the names, their place and that of the brace.
fn header(cursor: &mut Cursor<'_>) -> Read<(Option<Name>, Option<Name>, Span, Span)> {
    let start = cursor.take().span;
    let first = function_name(cursor)?;
    let (variant, function) = match first {
        Some(_) if cursor.eat_word("for") => (first, function_name(cursor)?),
        _ => (None, first),
    };
    let head = since(cursor, start);
    let open = cursor.peek();
    if !cursor.eat("{") {
        let what = if variant.is_some() || first.is_none() { "`{`" } else { "`for` or `{`" };
        return Err(cursor.expected(what).into());
    }
    Ok((variant, function, head, open.span))
}

/// A name, or none before the brace.
fn function_name(cursor: &mut Cursor<'_>) -> Read<Option<Name>> {
    let token = cursor.peek();
    match token.kind {
        TokenKind::Name(name) if !cursor.begins_item() => {
            cursor.take();
            Ok(Some(name))
        }
        TokenKind::Punct("{") => Ok(None),
        _ => Err(cursor.expected("the name of a function").into()),
    }
}

/// A step and the `;` after it.
fn separated_step(cursor: &mut Cursor<'_>, open: Option<Span>) -> Read<Step> {
    let step = step(cursor)?;
    separator(cursor, open).map(|()| step)
}

/// The `;` after a step, which may be left out at the end of a text that is nothing but steps.
fn separator(cursor: &mut Cursor<'_>, open: Option<Span>) -> Read<()> {
    if cursor.eat(";") || (open.is_none() && cursor.at_end()) {
        return Ok(());
    }
    let found = cursor.peek();
    let forgotten = found.first_on_line || found.is("}") || found.word().is_some();
    match cursor.previous() {
        Some(last) if forgotten => {
            let message = format!("expected `;`, found {}", found.describe());
            Err(wrong(last.span.end_point(), message).label("expected `;`").into())
        }
        _ => Err(cursor.expected("`;`").into()),
    }
}

/// Passes what is left of a step with a mistake: up to and including the next `;`, or to where something else begins.
fn skip_step(cursor: &mut Cursor<'_>, in_block: bool) {
    // A `;` that was forgotten is all that was wrong.
    if cursor.previous().is_some_and(|last| last.is(")")) && cursor.peek().word().is_some() {
        return;
    }
    while !cursor.at_end() && !(in_block && (cursor.peek().is("}") || cursor.begins_item())) {
        if cursor.take().is(";") {
            return;
        }
    }
}

fn step(cursor: &mut Cursor<'_>) -> Read<Step> {
    let (name, start) = cursor.expect_name("a step, such as `split(i, 32)`")?;
    let open = cursor.peek().span;
    if !cursor.eat("(") {
        return Err(cursor
            .expected("`(`")
            .help(format!("the arguments of a step stand in parentheses: `{name}(…)`"))
            .into());
    }
    let args = args(cursor, ")", open, 0)?;
    Ok(Step { name, args, span: since(cursor, start) })
}

/// Arguments up to a closing bracket, which is taken. The last may have a comma after it.
fn args(cursor: &mut Cursor<'_>, close: &str, open: Span, depth: usize) -> Read<Vec<Arg>> {
    if let Some(args) = items(cursor, close, |cursor| arg(cursor, depth))? {
        return Ok(args);
    }
    let error = cursor.expected(&format!("`,` or `{close}`"));
    Err(match cursor.peek() {
        token if token.is("=") => error.help("arguments have no names: they are told apart by their order"),
        token if token.is("+") || token.is("-") || token.is("*") || token.is("/") => {
            error.help("sizes in a schedule are numbers, not expressions")
        }
        _ => error.also(open, "to close this"),
    }
    .into())
}

fn arg(cursor: &mut Cursor<'_>, depth: usize) -> Read<Arg> {
    let first = cursor.peek();
    let kind = match first.kind {
        TokenKind::Int(value) => {
            cursor.take();
            ArgKind::Int(value)
        }
        TokenKind::Punct("-") => {
            cursor.take();
            let (value, _) = cursor.expect_int("a whole number after `-`")?;
            ArgKind::Int(-value)
        }
        TokenKind::Name(_) => ArgKind::Path(path(cursor)?),
        TokenKind::Punct("[") if depth == MAX_NESTING => {
            return Err(wrong(first.span, format!("lists are nested more than {MAX_NESTING} levels deep here")).into());
        }
        TokenKind::Punct("[") => {
            cursor.take();
            ArgKind::List(args(cursor, "]", first.span, depth + 1)?)
        }
        kind => {
            let error = cursor.expected("a number, a name or a list");
            return Err(match kind {
                TokenKind::Float(_) => error.help("sizes are whole numbers"),
                TokenKind::Text(text) => error.help(format!("names stand without quotation marks: `{text}`")),
                TokenKind::Punct("(") => error.help("several names or numbers stand in brackets: `[i, j]`"),
                _ => error,
            }
            .into());
        }
    };
    Ok(Arg { kind, span: since(cursor, first.span) })
}

fn path(cursor: &mut Cursor<'_>) -> Read<Path> {
    let (first, _) = cursor.expect_name("a name")?;
    let mut parts = vec![first];
    while cursor.eat(".") {
        parts.push(cursor.expect_name("a name after `.`")?.0);
    }
    Ok(Path { parts, nth: nth(cursor, "loops")? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::Code;
    use crate::render::render_all;
    use crate::source::Sources;

    fn schedules(text: &str) -> (Vec<Schedule>, String) {
        let mut sources = Sources::new();
        let file = sources.add("t.schedule", text);
        let mut diagnostics = Diagnostics::new();
        let schedules = parse_schedules(sources.get(file).unwrap(), file, &mut diagnostics);
        (schedules, messages(&sources, diagnostics))
    }

    fn steps_of(text: &str) -> (Option<Vec<Step>>, String) {
        let mut sources = Sources::new();
        let file = sources.add("--schedule", text);
        let mut diagnostics = Diagnostics::new();
        let steps = parse_steps(sources.get(file).unwrap(), file, &mut diagnostics);
        (steps, messages(&sources, diagnostics))
    }

    /// `line:column message`, one per line.
    fn messages(sources: &Sources, diagnostics: Diagnostics) -> String {
        let all = diagnostics.into_sorted();
        assert_eq!(render_all(sources, &all, false).is_empty(), all.is_empty());
        let lines = all.iter().map(|error| {
            assert_eq!(error.code, Code::E0103);
            let (_, place) = sources.locate(error.primary.as_ref().unwrap().span).unwrap();
            format!("{}:{} {}", place.line, place.column, error.message)
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn what_is_printed_is_what_was_read() {
        let text = "\
schedule blur {
    split(rows.i, 32);
    reorder([i.o, j, i.i#2], -1, [[a], []]);
    fma();
}

schedule fast for blur { }

schedule {
    unroll(k);
}
";
        let (all, errors) = schedules(text);
        assert_eq!(errors, "");
        let printed: Vec<String> = all.iter().map(Schedule::to_string).collect();
        assert_eq!(printed.join("\n\n") + "\n", text);
        assert_eq!((all[1].variant, all[1].function), (Some(Name::new("fast")), Some(Name::new("blur"))));
        assert_eq!((all[2].variant, all[2].function), (None, None));
    }

    #[test]
    fn steps_alone_need_no_last_semicolon() {
        for text in ["split(i, 32); vectorize(j, 4)", " split(i,32) ;vectorize( j , 4, ); // all"] {
            let (steps, errors) = steps_of(text);
            assert_eq!(errors, "");
            let steps: Vec<String> = steps.unwrap().iter().map(Step::to_string).collect();
            assert_eq!(steps, ["split(i, 32)", "vectorize(j, 4)"]);
        }
        assert_eq!(steps_of(" "), (Some(Vec::new()), String::new()));
    }

    #[test]
    fn places_are_those_of_the_text() {
        let (all, _) = schedules("schedule fast for f { split(rows.i , -4); }");
        let [schedule] = all.as_slice() else { panic!("{all:?}") };
        let range = |span: Span| (span.start, span.end);
        assert_eq!((range(schedule.head), range(schedule.span)), ((0, 19), (0, 43)));
        assert_eq!(range(schedule.steps[0].span), (22, 40));
        let args: Vec<_> = schedule.steps[0].args.iter().map(|arg| range(arg.span)).collect();
        assert_eq!(args, [(28, 34), (37, 39)]);
    }

    #[test]
    fn one_mistake_one_message() {
        let cases = [
            ("split(i 32)", "1:9 expected `,` or `)`, found `32`"),
            ("split i, 32", "1:7 expected `(`, found `i`"),
            ("split(i, 1.5)", "1:10 expected a number, a name or a list, found `1.5`"),
            ("split(\"i\", 1)", "1:7 expected a number, a name or a list, found `\"i\"`"),
            ("split(i, 2) unroll(j)", "1:12 expected `;`, found `unroll`"),
            (
                "split(i, 2)\nunroll(j); split(k, 2",
                "1:12 expected `;`, found `unroll`\n2:22 expected `,` or `)`, found the end of the file",
            ),
            (
                "split(i., 2); unroll(j#0); fma(a)",
                "1:9 expected a name after `.`, found `,`\n1:24 loops of one name are counted from 1",
            ),
            ("split(i, - n)", "1:12 expected a whole number after `-`, found `n`"),
            ("32; split(i, 2)", "1:1 expected a step, such as `split(i, 32)`, found `32`"),
            (";", "1:1 expected a step, such as `split(i, 32)`, found `;`"),
            ("}", "1:1 expected a step, such as `split(i, 32)`, found `}`"),
            ("split(i, [[[[[[[[[1]]]]]]]]])", "1:18 lists are nested more than 8 levels deep here"),
        ];
        for (text, expected) in cases {
            let (steps, errors) = steps_of(text);
            assert_eq!((steps.is_none(), errors.as_str()), (true, expected), "{text}");
        }
    }

    #[test]
    fn a_broken_schedule_does_not_spoil_the_next() {
        let cases = [
            ("schedule f {\n  split(i, 2)\n}", "2:14 expected `;`, found `}`"),
            ("schedule f {\n  split(i, 2);", "2:15 expected a step or `}`, found the end of the file"),
            ("schedule f for 3 { split(i, 2); }", "1:16 expected the name of a function, found `3`"),
            ("schedule f g { split(i, 2); }", "1:12 expected `for` or `{`, found `g`"),
            ("schedule f split(i, 2);", "1:12 expected `for` or `{`, found `split`"),
            ("schedule", "2:1 expected the name of a function, found `schedule`"),
            ("split(i, 2);", "1:1 expected `schedule`, found `split`"),
            ("fn f() { 1 }", "1:1 expected `schedule`, found `fn`"),
        ];
        for (text, expected) in cases {
            let (all, errors) = schedules(&format!("{text}\nschedule good {{ unroll(i); }}"));
            let expected = expected.replace("2:15", "3:1").replace("the end of the file", "`schedule`");
            assert_eq!((all.len(), errors.as_str()), (1, expected.as_str()), "{text}");
            assert_eq!(all[0].function, Some(Name::new("good")));
        }
    }

    /// No text makes reading fail or stop.
    #[test]
    fn any_tokens_are_read() {
        let tokens =
            ["schedule", "for", "f", "{", "}", "(", ")", "[", "]", ",", ";", "-", "#", ".", "3", "1.5", "\n", "é"];
        let mut state = 1u64;
        for _ in 0..3000 {
            let mut text = String::new();
            for _ in 0..20 {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                text += tokens[(state >> 33) as usize % tokens.len()];
                text += " ";
            }
            let mut sources = Sources::new();
            let file = sources.add("t", text.as_str());
            for whole in [true, false] {
                let mut diagnostics = Diagnostics::new();
                let source = sources.get(file).unwrap();
                if whole {
                    parse_schedules(source, file, &mut diagnostics);
                } else {
                    let steps = parse_steps(source, file, &mut diagnostics);
                    assert_eq!(steps.is_none(), diagnostics.has_errors(), "{text}");
                }
            }
        }
    }
}
