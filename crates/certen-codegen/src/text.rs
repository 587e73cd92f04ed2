//! The layout of C text: where a long line or a long list is broken, and comments.

/// Columns of a line.
pub(crate) const MAX_WIDTH: usize = 118;

/// Lines as a comment.
pub(crate) fn comment(lines: &[String]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| format!(" * {line}").trim_end().replace("*/", "* /")).collect();
    format!("/*\n{}\n */", lines.join("\n"))
}

/// `begin a, b, …end`, in as few lines as it takes; the first is never empty.
pub(crate) fn filled(begin: &str, items: &[String], separator: &str, end: &str, indent: usize) -> String {
    let (mut text, mut width) = (begin.to_owned(), begin.len());
    let margin = " ".repeat(indent);
    for (at, item) in items.iter().enumerate() {
        let tail = if at + 1 < items.len() { separator } else { end };
        if at > 0 && width + item.len() + tail.trim_end().len() > 118 {
            text.truncate(text.trim_end().len());
            text += &format!("\n{margin}");
            width = indent;
        }
        text += item;
        text += tail;
        width += item.len() + tail.len();
    }
    if items.is_empty() { text + end } else { text }
}

pub(crate) fn signature(start: &str, parameters: &[String]) -> String {
    let none = ["void".to_owned()];
    filled(&format!("{start}("), if parameters.is_empty() { &none } else { parameters }, ", ", ")", 4)
}

/// The beginning of a C text that fits in a width, and the rest: broken after an operator, inside as few parentheses as
/// possible, never inside an index. The text has no strings, so that a space is a space.
pub(crate) fn broken(text: &str, width: usize) -> (&str, &str) {
    if text.len() <= width || text.starts_with("/*") || !text.is_ascii() {
        return (text, "");
    }
    // Neither end of a line should be a stub.
    const STUB: usize = 12;
    let (mut depth, mut inside, mut before) = (0usize, 0usize, ' ');
    let mut best: Option<(usize, usize)> = None;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '[' => inside += 1,
            ']' => inside = inside.saturating_sub(1),
            ' ' if inside == 0 && "+-*/,;=&|?:<>".contains(before) => {
                let fits = at <= width && at >= width / 3 && at + STUB < text.len();
                // Where nothing fits, the first place is the least bad one.
                if (fits && best.is_none_or(|(least, _)| depth <= least)) || (at > width && best.is_none()) {
                    best = Some((depth, at));
                }
            }
            _ => {}
        }
        if at > width && best.is_some() {
            break;
        }
        before = c;
    }
    best.map_or((text, ""), |(_, at)| (&text[..at], &text[at + 1..]))
}
