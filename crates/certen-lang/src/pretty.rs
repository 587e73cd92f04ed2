//! Line breaks: a group of pieces stays on its line if it fits into 100 columns, else its breaks become line ends.
//!
//! After Oppen (*Prettyprinting*, 1980), with the whole text in memory: widths are sums that are known beforehand, so
//! that layout takes one pass and no recursion.

/// How long lines should be at most.
const WIDTH: usize = 100;
/// How far lines are indented for each level.
const INDENT: usize = 4;

/// A part of a text that is laid out.
#[derive(Clone, Debug)]
pub(crate) enum Chunk {
    /// Text without line ends.
    Text(String),
    /// A group begins.
    Open,
    /// A group ends.
    Close,
    /// Lines from here on are indented further.
    Indent,
    /// The end of what [`Piece::Indent`] began.
    Dedent,
    /// This text, or a line end if the group does not fit.
    Break(&'static str),
    /// A space, or a line end if what follows does not fit.
    Fill,
    /// A line end; no group fits around it.
    Hard,
}

impl Chunk {
    fn width(&self) -> usize {
        match self {
            Chunk::Text(text) => text.chars().count(),
            Chunk::Break(flat) => flat.len(),
            Chunk::Fill => 1,
            // More than any line, but small enough to be added up.
            Chunk::Hard => 1 << 20,
            Chunk::Open | Chunk::Close | Chunk::Indent | Chunk::Dedent => 0,
        }
    }
}

/// Lays a text out.
pub(crate) fn layout(pieces: &[Chunk]) -> String {
    let ends = group_ends(pieces);
    let mut before = Vec::with_capacity(pieces.len() + 1);
    let mut sum = 0usize;
    for piece in pieces {
        before.push(sum);
        sum += piece.width();
    }
    before.push(sum);
    let tails = tails(pieces);
    let tail = |at: usize| tails.get(at).copied().unwrap_or(0);

    let mut out = String::new();
    let mut column = 0;
    let mut indent = 0;
    // How far the line is indented that begins where the text ends, if one does. Indentation is written with the first
    // text, so that empty lines stay empty.
    let mut new_line = None;
    // Of each open group, whether it is on one line.
    let mut flat = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        let on_one_line = flat.last().copied().unwrap_or(false);
        let mut line_end = false;
        match piece {
            Chunk::Text(text) => {
                if let Some(indent) = new_line.take() {
                    out.extend(std::iter::repeat_n(' ', indent));
                }
                out.push_str(text);
                column += piece.width();
            }
            Chunk::Open => {
                let end = ends[at];
                flat.push(on_one_line || column + before[end] - before[at] + tail(end) <= WIDTH);
            }
            Chunk::Close => {
                flat.pop();
            }
            Chunk::Indent => indent += 1,
            Chunk::Dedent => indent -= 1,
            Chunk::Break(text) if on_one_line => {
                out.push_str(text);
                column += text.len();
            }
            Chunk::Fill if on_one_line || column + 1 + tail(at + 1) <= WIDTH => {
                out.push(' ');
                column += 1;
            }
            Chunk::Break(_) | Chunk::Fill | Chunk::Hard => line_end = true,
        }
        if line_end {
            out.truncate(out.trim_end_matches(' ').len());
            out.push('\n');
            column = indent * INDENT;
            new_line = Some(column);
        }
    }
    out
}

/// For each [`Piece::Open`] the place of its [`Piece::Close`].
fn group_ends(pieces: &[Chunk]) -> Vec<usize> {
    let mut ends = vec![pieces.len(); pieces.len()];
    let mut open = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        match piece {
            Chunk::Open => open.push(at),
            Chunk::Close => {
                if let Some(start) = open.pop() {
                    ends[start] = at;
                }
            }
            _ => {}
        }
    }
    ends
}

/// For each piece the width of the text from it to the next place where a line can end.
fn tails(pieces: &[Chunk]) -> Vec<usize> {
    let mut tails = vec![0; pieces.len()];
    let mut next = 0;
    for (at, piece) in pieces.iter().enumerate().rev() {
        next = match piece {
            Chunk::Break(_) | Chunk::Fill | Chunk::Hard => 0,
            _ => next + piece.width(),
        };
        tails[at] = next;
    }
    tails
}
