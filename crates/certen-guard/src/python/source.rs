//! A Python file as a tree, with ruff's parser.

use std::collections::BTreeMap;

use certen_syntax::{Code, Diagnostic, FileId, Sources, Span};
use ruff_python_ast::token::TokenKind;
use ruff_python_ast::{Expr, ModModule, Stmt};
use ruff_python_parser::{Mode, lexer, parse_module};
use ruff_text_size::{Ranged, TextRange};

/// How deep a tree may be: operators that stand inside of each other, brackets and blocks together.
const MAX_NESTING: usize = 500;

/// A parsed file.
pub(crate) struct Script<'a> {
    pub text: &'a str,
    pub file: FileId,
    pub module: ModModule,
    /// What comments say, by the offset of the line's beginning.
    comments: BTreeMap<usize, &'a str>,
}

impl<'a> Script<'a> {
    /// Parses a file.
    pub fn parse(sources: &'a Sources, file: FileId) -> Result<Script<'a>, Vec<Diagnostic>> {
        let text = sources.get(file).map_or("", |source| source.text());
        if is_nested_too_deeply(text) {
            let error = Diagnostic::error(Code::E0103, None, format!("{} is nested too deeply", sources.name(file)));
            return Err(vec![error.note(format!("at most {MAX_NESTING} levels are read"))]);
        }
        let parsed = parse_module(text).map_err(|error| {
            let message = format!("this is not Python: {}", error.error);
            vec![Diagnostic::error(Code::E0103, span(file, error.location), message)]
        })?;
        let mut comments = BTreeMap::new();
        for token in parsed.tokens().iter().filter(|token| token.kind() == TokenKind::Comment) {
            let range = token.range();
            comments.insert(line(text, range.start().to_usize()), text[range].trim_start_matches('#').trim());
        }
        Ok(Script { text, file, module: parsed.into_syntax(), comments })
    }

    /// Where something stands.
    pub fn span(&self, node: &impl Ranged) -> Span {
        span(self.file, node.range())
    }

    /// The comment at the end of the line where something ends.
    pub fn comment(&self, node: &impl Ranged) -> Option<&'a str> {
        self.comments.get(&line(self.text, node.range().end().to_usize())).copied()
    }

    /// The text of something.
    pub fn snippet(&self, node: &impl Ranged) -> &'a str {
        self.text.get(node.range().to_std_range()).unwrap_or_default()
    }

    /// On which line something begins, from 1.
    pub fn line(&self, node: &impl Ranged) -> usize {
        self.text.get(..node.range().start().to_usize()).unwrap_or_default().matches('\n').count() + 1
    }
}

fn span(file: FileId, range: TextRange) -> Span {
    Span { file, start: range.start().to_u32(), end: range.end().to_u32() }
}

/// Where the line with a byte begins.
fn line(text: &str, at: usize) -> usize {
    text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1)
}

/// Whether the nesting is deeper than what is read. It is counted on tokens, so that no deep tree is ever made: in each
/// pair of brackets the operators since the last comma, and all `lambda`s.
fn is_nested_too_deeply(text: &str) -> bool {
    let mut lexer = lexer::lex(text, Mode::Module);
    let mut around: Vec<[usize; 2]> = Vec::new();
    let mut here = [0, 0];
    let (mut blocks, mut outside) = (0usize, 0usize);
    loop {
        let kind = lexer.next_token();
        match kind {
            TokenKind::EndOfFile => return false,
            TokenKind::Indent => blocks += 1,
            TokenKind::Dedent => blocks = blocks.saturating_sub(1),
            TokenKind::Newline => (here, outside, around) = ([0, 0], 0, Vec::new()),
            TokenKind::Comma | TokenKind::Semi => here[0] = 0,
            TokenKind::Lpar
            | TokenKind::Lsqb
            | TokenKind::Lbrace
            | TokenKind::FStringStart
            | TokenKind::TStringStart => {
                outside += here[0] + here[1] + 1;
                around.push(here);
                here = [0, 0];
            }
            TokenKind::Rpar | TokenKind::Rsqb | TokenKind::Rbrace | TokenKind::FStringEnd | TokenKind::TStringEnd => {
                if let Some(before) = around.pop() {
                    outside = outside.saturating_sub(before[0] + before[1] + 1);
                    here = [before[0] + 1, before[1]];
                }
            }
            TokenKind::Lambda => here[1] += 1,
            TokenKind::Name
            | TokenKind::Int
            | TokenKind::Float
            | TokenKind::Complex
            | TokenKind::String
            | TokenKind::FStringMiddle
            | TokenKind::TStringMiddle
            | TokenKind::Comment
            | TokenKind::NonLogicalNewline
            | TokenKind::Colon => {}
            _ => here[0] += 1,
        }
        if outside + here[0] + here[1] + blocks > MAX_NESTING {
            return true;
        }
    }
}

/// A name with its attributes, as in `np.random.rand`.
pub(crate) fn path(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Name(name) => Some(name.id.as_str().to_owned()),
        Expr::Attribute(attribute) => Some(format!("{}.{}", path(&attribute.value)?, attribute.attr.as_str())),
        _ => None,
    }
}

/// What modules are called in a file.
pub(crate) struct Imports(BTreeMap<String, String>);

impl Default for Imports {
    /// The usual names, for pieces of files that have no imports.
    fn default() -> Imports {
        let usual = [
            ("te", "tvm.te"),
            ("tir", "tvm.tir"),
            ("topi", "tvm.topi"),
            ("np", "numpy"),
            ("jnp", "jax.numpy"),
            ("oe", "opt_einsum"),
            ("tf", "tensorflow"),
        ];
        Imports(usual.into_iter().map(|(name, module)| (name.to_owned(), module.to_owned())).collect())
    }
}

impl Imports {
    /// Learns what a statement imports.
    pub fn learn(&mut self, statement: &Stmt) {
        match statement {
            Stmt::Import(import) => {
                for alias in &import.names {
                    if let Some(name) = &alias.asname {
                        self.0.insert(name.as_str().to_owned(), alias.name.as_str().to_owned());
                    }
                }
            }
            Stmt::ImportFrom(import) => {
                let Some(module) = &import.module else { return };
                for alias in &import.names {
                    let name = alias.asname.as_ref().unwrap_or(&alias.name);
                    self.0.insert(name.as_str().to_owned(), format!("{module}.{}", alias.name.as_str()));
                }
            }
            _ => {}
        }
    }

    /// The whole path of a name that is used.
    pub fn full(&self, expr: &Expr) -> Option<String> {
        let path = path(expr)?;
        let (first, rest) = path.split_once('.').map_or((path.as_str(), None), |(first, rest)| (first, Some(rest)));
        let first = self.0.get(first).map_or(first, String::as_str);
        Some(rest.map_or_else(|| first.to_owned(), |rest| format!("{first}.{rest}")))
    }
}
