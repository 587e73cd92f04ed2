//! A place in a list of tokens: what every parser of the project moves along.

use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::lexer::{Token, TokenKind};
use crate::name::Name;
use crate::source::Span;

/// A position in a list of tokens that ends with [`TokenKind::End`]. Copy it to look ahead.
#[derive(Clone, Copy)]
pub struct Cursor<'a> {
    tokens: &'a [Token],
    at: usize,
}

/// Whether a token is the first on its line and begins a declaration of a `.ten` file; `next` is the one after it.
pub fn begins_item(token: Token, next: Token) -> bool {
    token.first_on_line
        && match token.word() {
            Some("fn" | "const" | "import" | "schedule" | "derive") => true,
            // Elsewhere it is a name like any other, and no name follows a name there.
            Some("derivation") => next.word().is_some(),
            _ => false,
        }
}

impl<'a> Cursor<'a> {
    /// At the first token. The list comes from [`lex`](crate::lex), so it ends with [`TokenKind::End`].
    pub fn new(tokens: &'a [Token]) -> Cursor<'a> {
        Cursor { tokens, at: 0 }
    }

    /// The next token, or the one `ahead` places after it.
    pub fn peek_at(&self, ahead: usize) -> Token {
        const END: Token = Token {
            kind: TokenKind::End,
            span: Span { file: crate::source::FIRST_FILE, start: 0, end: 0 },
            first_on_line: true,
        };
        self.tokens.get(self.at + ahead).or(self.tokens.last()).copied().unwrap_or(END)
    }

    /// The next token.
    pub fn peek(&self) -> Token {
        self.peek_at(0)
    }

    /// Takes the next token; the end is never passed.
    pub fn take(&mut self) -> Token {
        let token = self.peek();
        if token.kind != TokenKind::End {
            self.at += 1;
        }
        token
    }

    /// The token that was taken last; none at the beginning.
    pub fn previous(&self) -> Option<Token> {
        self.tokens.get(self.at.checked_sub(1)?).copied()
    }

    /// How many tokens were taken.
    pub fn taken(&self) -> usize {
        self.at
    }

    /// Whether the text is at its end.
    pub fn at_end(&self) -> bool {
        self.peek().kind == TokenKind::End
    }

    /// Whether a declaration of a `.ten` file begins here.
    pub fn begins_item(&self) -> bool {
        begins_item(self.peek(), self.peek_at(1))
    }

    /// Takes the next token if it is this punctuation.
    pub fn eat(&mut self, punct: &str) -> bool {
        let found = self.peek().is(punct);
        if found {
            self.take();
        }
        found
    }

    /// Takes the next token if it is this word.
    pub fn eat_word(&mut self, word: &str) -> bool {
        let found = self.peek().word() == Some(word);
        if found {
            self.take();
        }
        found
    }

    /// Takes this punctuation, or says what stands there instead.
    pub fn expect_punct(&mut self, punct: &str) -> Result<Token, Diagnostic> {
        if self.peek().is(punct) { Ok(self.take()) } else { Err(self.expected(&format!("`{punct}`"))) }
    }

    /// Takes this word, or says what stands there instead.
    pub fn expect_word(&mut self, word: &str) -> Result<Token, Diagnostic> {
        if self.peek().word() == Some(word) { Ok(self.take()) } else { Err(self.expected(&format!("`{word}`"))) }
    }

    /// Takes a name, or says what stands there instead.
    pub fn expect_name(&mut self, what: &str) -> Result<(Name, Span), Diagnostic> {
        match self.peek().kind {
            TokenKind::Name(name) => Ok((name, self.take().span)),
            _ => Err(self.expected(what)),
        }
    }

    /// Takes a whole number, or says what stands there instead.
    pub fn expect_int(&mut self, what: &str) -> Result<(i64, Span), Diagnostic> {
        match self.peek().kind {
            TokenKind::Int(value) => Ok((value, self.take().span)),
            _ => Err(self.expected(what)),
        }
    }

    /// The error that something else was expected here.
    pub fn expected(&self, what: &str) -> Diagnostic {
        let found = self.peek();
        let message = format!("expected {what}, found {}", found.describe());
        Diagnostic::error(Code::E0103, found.span, message).label(format!("expected {what}"))
    }
}
