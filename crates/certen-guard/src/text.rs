//! What the readers of text share: tokens, comments in the way of each language, a limit on nesting, and the words for
//! what a reader does not know.

use certen_syntax::{
    Code, Cursor, Diagnostic, Diagnostics, FileId, Name, Source, Sources, Span, Token, TokenKind, lex,
};

/// How deeply expressions are nested at most, and how many operands a chain of operators has: trees are walked
/// recursively.
pub(crate) const MAX_DEPTH: usize = 200;

/// An error that ends the reading of a file.
pub(crate) type Read<T> = Result<T, Box<Diagnostic>>;

/// The tokens of a file. `comment` begins a comment, besides `//`.
pub(crate) fn tokens(sources: &Sources, file: FileId, comment: Option<char>) -> Result<Vec<Token>, Vec<Diagnostic>> {
    let Some(source) = sources.get(file) else { return Ok(Vec::new()) };
    let mut diagnostics = Diagnostics::new();
    let tokens = match comment {
        None => lex(source, file, &mut diagnostics),
        Some(comment) => {
            let mut blanked = Sources::new();
            let copy = blanked.add(source.name(), without_comments(source, comment));
            blanked.get(copy).map(|source| lex(source, file, &mut diagnostics)).unwrap_or_default()
        }
    };
    if diagnostics.has_errors() { Err(diagnostics.into_sorted()) } else { Ok(tokens) }
}

/// The text with blanks for comments that begin with a character, so that all else stays where it is.
fn without_comments(source: &Source, comment: char) -> String {
    let line = |line: &str| match line.find(comment) {
        Some(at) => {
            let rest = &line[at..];
            let end = if rest.ends_with('\n') { "\n" } else { "" };
            format!("{}{}{end}", &line[..at], " ".repeat(rest.len() - end.len()))
        }
        None => line.to_owned(),
    };
    source.text().split_inclusive('\n').map(line).collect()
}

/// A construct of the language that the guard does not read.
pub(crate) fn unsupported(span: Span, construct: impl Into<String>) -> Box<Diagnostic> {
    let construct = construct.into();
    let error = Diagnostic::error(Code::E1004, span, format!("the guard does not read {construct}"));
    Box::new(error.label("this construct"))
}

/// A name that means nothing here.
pub(crate) fn undeclared(span: Span, name: Name, help: &str) -> Box<Diagnostic> {
    let error = Diagnostic::error(Code::E0201, span, format!("`{name}` is not declared"));
    Box::new(error.label("not declared").help(help))
}

/// Counts how deep a reader is.
#[derive(Default)]
pub(crate) struct Depth(usize);

impl Depth {
    /// One level more.
    ///
    /// # Errors
    /// If there are too many.
    pub(crate) fn enter(&mut self, span: Span) -> Read<()> {
        self.0 += 1;
        if self.0 <= MAX_DEPTH { Ok(()) } else { Err(too_deep(span)) }
    }

    /// Back again.
    pub(crate) fn leave(&mut self) {
        self.0 = self.0.saturating_sub(1);
    }
}

/// The error of what is nested too deeply.
pub(crate) fn too_deep(span: Span) -> Box<Diagnostic> {
    let error = Diagnostic::error(Code::E0103, span, "this expression is nested too deeply");
    let note = format!("at most {MAX_DEPTH} levels are read; each operator of a chain is one");
    Box::new(error.label("one level too many").note(note))
}

/// A number as C writes it, with an `f` after it or a point at its end.
pub(crate) fn number(cursor: &mut Cursor<'_>) -> Option<f64> {
    let token = cursor.peek();
    let (value, is_whole) = match token.kind {
        TokenKind::Int(value) => (value as f64, true),
        TokenKind::Float(value) => (value, false),
        _ => return None,
    };
    cursor.take();
    let mut end = token.span;
    if is_whole && cursor.peek().is(".") && end.touches(cursor.peek().span) {
        end = cursor.take().span;
    }
    let next = cursor.peek();
    if matches!(next.word(), Some("f" | "F")) && end.touches(next.span) {
        cursor.take();
    }
    Some(value)
}

/// The word for a position: a dimension of a tensor, counted from 1.
pub(crate) fn dimension(at: usize, tensor: Name) -> String {
    format!("dimension {} of `{tensor}`", at + 1)
}

/// The name of a kernel that its text does not name: that of its file.
pub(crate) fn stem(sources: &Sources, file: FileId) -> String {
    let name = std::path::Path::new(sources.name(file)).file_stem().and_then(|stem| stem.to_str()).unwrap_or("kernel");
    let word: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if word.starts_with(|c: char| c.is_ascii_alphabetic()) { word } else { format!("kernel_{word}") }
}
