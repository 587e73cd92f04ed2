//! Loops whose iterations depend on each other: elements that are written from their neighbours, in place.
//!
//! Lowered programs write each element once, so that most orders of theirs are right. Here are nests in which few are:
//! prefix sums, wavefronts, updates in place, statements that overwrite what others read. Their meaning is what the
//! interpreter makes of them in the order in which they are written. All indices are in bounds by construction: buffers
//! are four elements longer than the sizes, and offsets stay inside.

use std::fmt::Write as _;

use certen_loops::{LoopProgram, parse_loops};
use certen_syntax::Sources;

use crate::draw::Draw;

/// A nest, as text that was read.
///
/// # Panics
/// If it is no loop program, which is a mistake in this file.
pub(super) fn nest(draw: &mut Draw) -> LoopProgram {
    let text = text(draw);
    let mut sources = Sources::new();
    let file = sources.add("dependent.loops", text.as_str());
    parse_loops(&sources, file).unwrap_or_else(|errors| panic!("{text}\n{errors:?}"))
}

/// A loop around a statement: its index, its size, where it begins and how far beyond the size it ends.
#[derive(Clone, Copy)]
struct Around {
    index: &'static str,
    size: &'static str,
    low: i64,
    high: i64,
}

const HEAD: &str = "loops dependent\nsize n, m\nwhere n >= 0, m >= 0\ninput x : f64[n + 4]\ninput w : f64[n + 4, m + 4]\n\
                    output y : f64[n + 4]\noutput z : f64[n + 4, m + 4]\nnest y\nfor a in 0..n + 4 {\n    y[a] = x[a]\n}\n\
                    nest z\nfor a in 0..n + 4 {\n    for b in 0..m + 4 {\n        z[a, b] = w[a, b]\n    }\n}\n";

fn text(draw: &mut Draw) -> String {
    let mut out = HEAD.to_string();
    for at in 0..draw.within(1, 2) {
        let _ = writeln!(out, "nest {}", ["y", "z"][at as usize % 2]);
        let i = around(draw, "i", "n");
        block(draw, &mut out, &mut vec![i], 0);
    }
    out
}

fn around(draw: &mut Draw, index: &'static str, size: &'static str) -> Around {
    Around { index, size, low: draw.within(0, 3), high: draw.within(0, 3) }
}

/// A loop with one to three statements, of which some are loops.
fn block(draw: &mut Draw, out: &mut String, loops: &mut Vec<Around>, depth: usize) {
    let Some(&Around { index, size, low, high }) = loops.last() else { return };
    let pad = "    ".repeat(depth);
    let range = match depth {
        // A triangle.
        1 if draw.chance(6) => format!("{low}..min(i + 1, {size} + {high})"),
        _ => format!("{low}..{size} + {high}"),
    };
    let _ = writeln!(out, "{pad}for {index} in {range} {{");
    // Two loops, one of which is all of the other, are what most steps are for.
    let perfect = depth == 0 && draw.chance(2);
    for _ in 0..if perfect { 1 } else { draw.within(1, if depth == 0 { 3 } else { 2 }) } {
        if perfect || depth == 0 && draw.chance(2) {
            loops.push(around(draw, "j", "m"));
            block(draw, out, loops, depth + 1);
            loops.pop();
        } else if draw.chance(8) {
            let inner = format!("{pad}    ");
            let limit = draw.within(1, 4);
            let _ = writeln!(out, "{inner}if {index} <= {limit} {{\n{inner}    {}\n{inner}}}", statement(draw, loops));
        } else {
            let _ = writeln!(out, "{pad}    {}", statement(draw, loops));
        }
    }
    let _ = writeln!(out, "{pad}}}");
}

/// An index near the loop's, in bounds.
fn near(draw: &mut Draw, around: Around) -> String {
    let Around { index, size, low, high } = around;
    match draw.below(12) {
        // Backwards: the loop's largest index is `size + high - 1`.
        0 => format!("{size} + 3 - {index}"),
        1 => draw.within(0, 3).to_string(),
        _ => {
            let offset = draw.within(-low.min(2), (4 - high).min(2));
            if offset == 0 { index.into() } else { format!("{index} + {offset}") }
        }
    }
}

/// An element of a buffer.
fn element(draw: &mut Draw, loops: &[Around], buffers: &[&str]) -> String {
    let buffer = draw.word(buffers);
    let Some(&i) = loops.first() else { return "x[0]".into() };
    let first = near(draw, i);
    match (buffer, loops.get(1)) {
        ("z" | "w", Some(&j)) => format!("{buffer}[{first}, {}]", near(draw, j)),
        ("z" | "w", None) => format!("{buffer}[{first}, {}]", draw.within(0, 3)),
        _ => format!("{buffer}[{first}]"),
    }
}

fn statement(draw: &mut Draw, loops: &[Around]) -> String {
    let inner = if loops.len() > 1 { ["z", "z", "y"] } else { ["y", "y", "z"] };
    let target = element(draw, loops, &inner);
    let sign = draw.word(&["=", "=", "=", "+=", "+=", "max=", "*="]).replace("max=", "max =");
    let read = element(draw, loops, &["y", "z", "z", "x", "w"]);
    let other = element(draw, loops, &["y", "z", "x", "w"]);
    match draw.below(3) {
        0 => format!("{target} {sign} {read}"),
        1 => format!("{target} {sign} {read} + {other}"),
        _ => format!("{target} {sign} {read} * {other}"),
    }
}
