//! Blocks of steps, as schedules and derivations have them: read one after the other, with one message for each mistake.

use std::fmt;

use crate::{Cursor, Diagnostic, Diagnostics, Span};

/// Steps up to the `}` of the block that was opened, or to the end of the text if none was. Nothing if one has a mistake.
///
/// `step` reads one with the `;` behind it; `skip` passes what is left of one that has a mistake, and is told whether it
/// stands in a block.
pub fn steps<T>(
    cursor: &mut Cursor<'_>,
    open: Option<Span>,
    diagnostics: &mut Diagnostics,
    step: fn(&mut Cursor<'_>, Option<Span>) -> Result<T, Box<Diagnostic>>,
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
