//! Sources and spans: where in the user's text something stands.

use std::fmt;
use std::sync::Arc;

/// One of the files of a [`Sources`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct FileId(u32);

pub(crate) const FIRST_FILE: FileId = FileId(0);

/// A range of bytes in one file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The smallest span that covers both; they stand in the same file.
    pub fn to(self, other: Span) -> Span {
        Span { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Whether `next` begins where this span ends, with nothing in between.
    pub fn touches(self, next: Span) -> bool {
        self.file == next.file && self.end == next.start
    }

    /// The empty span after this one.
    pub fn end_point(self) -> Span {
        Span { start: self.end, ..self }
    }
}

/// A line and column, both from 1; columns count characters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
}

/// A named text and where its lines begin.
pub struct Source {
    name: String,
    text: String,
    lines: Vec<u32>,
}

impl Source {
    /// The name under which messages speak of it, usually a path.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The number of the line that holds byte `at`, from 0.
    fn line_index(&self, at: u32) -> usize {
        self.lines.partition_point(|&start| start <= at).saturating_sub(1)
    }

    /// The number of the line that holds byte `at`, from 1.
    pub fn line(&self, at: u32) -> usize {
        self.line_index(at) + 1
    }

    /// Line and column of byte `at`.
    pub fn position(&self, at: u32) -> Position {
        let line = self.line_index(at);
        let start = self.lines.get(line).map_or(0, |&s| s as usize);
        let column = self.text.get(start..at as usize).map_or(0, |t| t.chars().count()) + 1;
        Position { line: line + 1, column }
    }

    /// The bytes of the lines that a byte range touches, and the number of the first of them, from 1.
    pub(crate) fn whole_lines(&self, start: u32, end: u32) -> (std::ops::Range<usize>, usize) {
        let (first, last) = (self.line_index(start), self.line_index(end));
        let from = self.lines.get(first).map_or(0, |&s| s as usize);
        let to = self.lines.get(last + 1).map_or(self.text.len(), |&s| s as usize);
        (from..to, first + 1)
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({:?}, {} bytes)", self.name, self.text.len())
    }
}

/// All texts of one run; a [`Span`] points into one of them.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<Arc<Source>>,
}

impl Sources {
    /// No texts.
    pub fn new() -> Sources {
        Sources::default()
    }

    /// The longest text that is read: spans count bytes in 32 bits.
    pub const MAX_BYTES: usize = u32::MAX as usize - 1;

    /// Adds a text. One longer than [`Sources::MAX_BYTES`] is cut there, on a character.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> FileId {
        let mut text = text.into();
        if text.len() > Self::MAX_BYTES {
            text.truncate(text.floor_char_boundary(Self::MAX_BYTES));
        }
        let newlines = text.bytes().enumerate().filter(|&(_, b)| b == b'\n').map(|(at, _)| at as u32 + 1);
        let lines = std::iter::once(0).chain(newlines).collect();
        let id = FileId(self.files.len() as u32);
        self.files.push(Arc::new(Source { name: name.into(), text, lines }));
        id
    }

    /// One of the texts.
    pub fn get(&self, file: FileId) -> Option<&Source> {
        self.files.get(file.0 as usize).map(|source| &**source)
    }

    /// What messages call one of the texts.
    pub fn name(&self, file: FileId) -> &str {
        self.get(file).map_or("", Source::name)
    }

    /// The text under a span; empty if the span is not of these sources.
    pub fn snippet(&self, span: Span) -> &str {
        self.get(span.file).and_then(|s| s.text.get(span.start as usize..span.end as usize)).unwrap_or("")
    }

    /// The file's name and the position where a span begins.
    pub fn locate(&self, span: Span) -> Option<(&str, Position)> {
        let source = self.get(span.file)?;
        Some((source.name(), source.position(span.start)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let mut sources = Sources::new();
        let file = sources.add("t", "ab\nçd\n\nx");
        let at = |byte| {
            let p = sources.get(file).unwrap().position(byte);
            (p.line, p.column)
        };
        assert_eq!(
            [at(0), at(1), at(3), at(5), at(7), at(8), at(9)],
            [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (4, 1), (4, 2)]
        );
    }
}
