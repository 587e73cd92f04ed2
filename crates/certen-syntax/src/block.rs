//! Blocks of steps, as schedules and derivations have them: read one after the other, with one message for each mistake.
//!
//! The two languages differ in what a step is and in what they say of a mistake; what they share stands here.

use std::fmt;

use crate::codes::Code;
use crate::cursor::Cursor;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::lexer::lex;
use crate::source::{FileId, Source, Span};

/// Something that was read, or the mistake.
pub type Read<T> = Result<T, Box<Diagnostic>>;

/// A mistake in the text.
pub fn wrong(span: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(Code::E0103, span, message)
}

/// From a place to the token that was taken last.
pub fn since(cursor: &Cursor<'_>, start: Span) -> Span {
    cursor.previous().map_or(start, |last| start.to(last.span))
}

/// Reads a file of nothing but declarations that begin with a word. What could not be read is left out, with an error, to
/// which `help` may add something.
pub fn declarations<T>(
    source: &Source,
    file: FileId,
    diagnostics: &mut Diagnostics,
    word: &str,
    one: fn(&mut Cursor<'_>, &mut Diagnostics) -> Option<T>,
    help: impl Fn(Diagnostic) -> Diagnostic,
) -> Vec<T> {
    let tokens = lex(source, file, diagnostics);
    let mut cursor = Cursor::new(&tokens);
    let mut found = Vec::new();
    while !cursor.at_end() {
        if cursor.peek().word() == Some(word) {
            found.extend(one(&mut cursor, diagnostics));
            continue;
        }
        diagnostics.push(help(cursor.expected(&format!("`{word}`"))));
        cursor.take();
        while !cursor.at_end() && !cursor.begins_item() {
            cursor.take();
        }
    }
    found
}

/// What the beginning of a declaration says; if it has a mistake, its block is passed.
pub fn or_skip<'a, T>(
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

/// Reads a text that is nothing but steps, with `;` between them. Nothing if it has a mistake.
pub fn steps_alone<T>(
    source: &Source,
    file: FileId,
    diagnostics: &mut Diagnostics,
    step: fn(&mut Cursor<'_>, Option<Span>) -> Read<T>,
    skip: fn(&mut Cursor<'_>, bool),
) -> Option<Vec<T>> {
    let mut found = Diagnostics::new();
    let tokens = lex(source, file, &mut found);
    let mut cursor = Cursor::new(&tokens);
    let steps = steps(&mut cursor, None, &mut found, step, skip);
    let sound = !found.has_errors();
    diagnostics.extend(found.into_sorted());
    steps.filter(|_| sound)
}

/// Steps up to the `}` of the block that was opened, or to the end of the text if none was. Nothing if one has a mistake.
///
/// `step` reads one with the `;` after it; `skip` passes what is left of one that has a mistake, and is told whether it
/// stands in a block.
pub fn steps<T>(
    cursor: &mut Cursor<'_>,
    open: Option<Span>,
    diagnostics: &mut Diagnostics,
    step: fn(&mut Cursor<'_>, Option<Span>) -> Read<T>,
    skip: fn(&mut Cursor<'_>, bool),
) -> Option<Vec<T>> {
    let mut steps = Vec::new();
    let mut sound = true;
    loop {
        match open {
            None if cursor.at_end() => return Some(steps).filter(|_| sound),
            Some(_) if cursor.eat("}") => return Some(steps).filter(|_| sound),
            Some(open) if cursor.at_end() || cursor.begins_item() => {
                if sound {
                    diagnostics.push(cursor.expected("a step or `}`").also(open, "to close this"));
                }
                return None;
            }
            _ => {}
        }
        match step(cursor, open) {
            Ok(step) => steps.push(step),
            Err(error) => {
                diagnostics.push(*error);
                sound = false;
                skip(cursor, open.is_some());
            }
        }
    }
}

/// Items up to a closing bracket, which is taken, with commas between them and perhaps one after the last. Nothing if
/// something else stands where a comma or the bracket should.
///
/// # Errors
/// What is wrong with an item.
pub fn items<'a, T>(
    cursor: &mut Cursor<'a>,
    close: &str,
    mut one: impl FnMut(&mut Cursor<'a>) -> Read<T>,
) -> Read<Option<Vec<T>>> {
    let mut items = Vec::new();
    while !cursor.peek().is(close) {
        items.push(one(cursor)?);
        if !cursor.eat(",") {
            break;
        }
    }
    Ok(cursor.eat(close).then_some(items))
}

/// `#2`, which of several of one name, if it stands here. `what` says what they are: "loops".
///
/// # Errors
/// If no number follows, or none that counts from 1.
pub fn nth(cursor: &mut Cursor<'_>, what: &str) -> Read<Option<usize>> {
    if !cursor.eat("#") {
        return Ok(None);
    }
    let (value, span) = cursor.expect_int("a number after `#`")?;
    match usize::try_from(value) {
        Ok(nth) if nth > 0 => Ok(Some(nth)),
        _ => Err(wrong(span, format!("{what} of one name are counted from 1")).into()),
    }
}

/// Passes a block whose beginning has a mistake, if it stands here.
pub fn skip_block(cursor: &mut Cursor<'_>) {
    let mut depth = 0u32;
    while !cursor.at_end() && !cursor.begins_item() {
        let token = cursor.take();
        depth += u32::from(token.is("{"));
        if token.is("}") {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return;
            }
        }
    }
}

/// Writes steps as a block, one on a line.
///
/// # Errors
/// As the formatter's.
pub fn write_block(f: &mut fmt::Formatter<'_>, steps: &[impl fmt::Display]) -> fmt::Result {
    if steps.is_empty() {
        return f.write_str("{ }");
    }
    f.write_str("{\n")?;
    steps.iter().try_for_each(|step| writeln!(f, "    {step};"))?;
    f.write_str("}")
}

/// Writes parts with something between them.
///
/// # Errors
/// As the formatter's.
pub fn separated(f: &mut fmt::Formatter<'_>, parts: &[impl fmt::Display], between: &str) -> fmt::Result {
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            f.write_str(between)?;
        }
        part.fmt(f)?;
    }
    Ok(())
}
