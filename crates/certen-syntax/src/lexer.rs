//! Tokens, the same for every dialect: names, numbers, texts and punctuation, with `//` comments.
//!
//! Lexing never fails: a character that no dialect knows becomes an error and is skipped, so that the parser sees the
//! rest; a text that is not closed ends with its line. Guarantees: tokens are in order, do not overlap, and the last
//! one is [`TokenKind::End`].

use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::name::Name;
use crate::source::{FileId, Source, Span};

/// What a token is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum TokenKind {
    /// A name or keyword: a letter or `_`, then letters, digits and `_`.
    Name(Name),
    /// A whole number.
    Int(i64),
    /// A number with a point or an exponent.
    Float(f64),
    /// A text in quotation marks, as it is meant: `\"` and `\\` stand for the character after the backslash.
    Text(Name),
    /// Punctuation, one of a fixed list, the longest that fits.
    Punct(&'static str),
    /// The end of the text.
    End,
}

/// A token and where it stands.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Where it stands.
    pub span: Span,
    /// Whether it is the first on its line: where parsers look for a fresh start after a mistake.
    pub first_on_line: bool,
}

impl Token {
    /// Whether this is the given punctuation.
    pub fn is(&self, punct: &str) -> bool {
        matches!(self.kind, TokenKind::Punct(p) if p == punct)
    }

    /// The text of a name, or nothing.
    pub fn word(&self) -> Option<&'static str> {
        match self.kind {
            TokenKind::Name(name) => Some(name.as_str()),
            _ => None,
        }
    }

    /// How messages speak of it.
    pub fn describe(&self) -> String {
        match self.kind {
            TokenKind::Name(name) => format!("`{name}`"),
            TokenKind::Int(value) => format!("`{value}`"),
            TokenKind::Float(value) => format!("`{value:?}`"),
            TokenKind::Text(text) => format!("`{:?}`", text.as_str()),
            TokenKind::Punct(p) => format!("`{p}`"),
            TokenKind::End => "the end of the file".into(),
        }
    }
}

/// All punctuation of all dialects; longer ones first.
const PUNCTUATION: [&str; 38] = [
    "...", "->", "<=", ">=", "==", "!=", "&&", "||", "..", "++", "+=", "*=", "(", ")", "[", "]", "{", "}", "<", ">",
    "=", "+", "-", "*", "/", ",", ";", ":", ".", "#", "^", "!", "|", "&", "@", "%", "?", "'",
];

/// Reads a text into tokens.
pub fn lex(source: &Source, file: FileId, diagnostics: &mut Diagnostics) -> Vec<Token> {
    let mut lexer = Lexer { text: source.text(), file, at: 0, tokens: Vec::new(), diagnostics, new_line: true };
    lexer.run();
    lexer.tokens
}

struct Lexer<'a> {
    text: &'a str,
    file: FileId,
    at: usize,
    tokens: Vec<Token>,
    diagnostics: &'a mut Diagnostics,
    new_line: bool,
}

impl<'a> Lexer<'a> {
    fn run(&mut self) {
        while let Some(c) = self.rest().chars().next() {
            if c == '\n' {
                self.new_line = true;
                self.at += 1;
            } else if c.is_whitespace() || (self.at == 0 && c == '\u{feff}') {
                self.at += c.len_utf8();
            } else if self.rest().starts_with("//") {
                let start = self.at;
                self.at += self.rest().find('\n').unwrap_or(self.rest().len());
                self.shown_in_order(start);
            } else if c.is_ascii_alphabetic() || c == '_' {
                let (text, start) = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
                self.push(start, TokenKind::Name(Name::new(text)));
            } else if c.is_ascii_digit() {
                self.number();
            } else if c == '"' {
                self.text();
            } else if let Some(punct) = PUNCTUATION.into_iter().find(|p| self.rest().starts_with(p)) {
                let start = self.at;
                self.at += punct.len();
                self.push(start, TokenKind::Punct(punct));
            } else {
                self.unknown();
            }
        }
        let end = self.at;
        self.push(end, TokenKind::End);
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn span(&self, start: usize) -> Span {
        Span { file: self.file, start: start as u32, end: self.at as u32 }
    }

    fn push(&mut self, start: usize, kind: TokenKind) {
        let token = Token { kind, span: self.span(start), first_on_line: self.new_line };
        self.tokens.push(token);
        self.new_line = false;
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> (&'a str, usize) {
        let start = self.at;
        self.at += self.rest().find(|c| !accept(c)).unwrap_or(self.rest().len());
        (&self.text[start..self.at], start)
    }

    /// Digits, then perhaps a point with digits and an exponent. `1..2` is a range of whole numbers.
    fn number(&mut self) {
        let start = self.at;
        self.take_while(|c| c.is_ascii_digit());
        let mut float = false;
        let mut following = self.rest().chars();
        if following.next() == Some('.') && following.next().is_some_and(|c| c.is_ascii_digit()) {
            float = true;
            self.at += 1;
            self.take_while(|c| c.is_ascii_digit());
        }
        if self.rest().starts_with(['e', 'E']) {
            let sign = usize::from(self.rest()[1..].starts_with(['+', '-']));
            if self.rest()[1 + sign..].starts_with(|c: char| c.is_ascii_digit()) {
                float = true;
                self.at += 1 + sign;
                self.take_while(|c| c.is_ascii_digit());
            }
        }
        let text = &self.text[start..self.at];
        let kind = match (float, text.parse::<f64>(), text.parse::<i64>()) {
            (true, Ok(value), _) if value.is_finite() => TokenKind::Float(value),
            (false, _, Ok(value)) => TokenKind::Int(value),
            _ => {
                let limit = if float { "the largest f64 is about 1.8e308" } else { "sizes and indices have 64 bits" };
                let error = Diagnostic::error(Code::E0102, self.span(start), "this number is too large");
                self.diagnostics.push(error.note(format!("{limit}; the largest whole number is {}", i64::MAX)));
                TokenKind::Int(i64::MAX)
            }
        };
        self.push(start, kind);
    }

    /// Refuses a comment or text, from here to where the lexer is, that people see in another order than it has: code can
    /// be made to look like a comment, and a comment like code.
    fn shown_in_order(&mut self, start: usize) {
        let turns = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        let text = &self.text[start..self.at];
        let Some((at, c)) = text.char_indices().find(|(_, c)| turns(*c)) else { return };
        let begin = (start + at) as u32;
        let span = Span { file: self.file, start: begin, end: begin + c.len_utf8() as u32 };
        let message = format!("the character `{}` changes the order in which text is shown", c.escape_unicode());
        let error = Diagnostic::error(Code::E0101, span, message);
        let error = error.note("with it, what is read is not what people see");
        self.diagnostics.push(error.help("remove it, and others like it after it"));
    }

    /// A text in quotation marks, on one line.
    fn text(&mut self) {
        let start = self.at;
        let mut text = String::new();
        let mut escaped = false;
        for (at, c) in self.rest().char_indices().skip(1) {
            match c {
                '\n' => break,
                '"' | '\\' if escaped => text.push(c),
                '"' => {
                    self.at += at + 1;
                    self.shown_in_order(start);
                    self.push(start, TokenKind::Text(Name::new(&text)));
                    return;
                }
                '\\' => {}
                _ => {
                    if escaped {
                        let file = self.file;
                        let span =
                            Span { file, start: (start + at - 1) as u32, end: (start + at + c.len_utf8()) as u32 };
                        let shown = c.escape_debug();
                        let error =
                            Diagnostic::error(Code::E0101, span, format!("`\\{shown}` has no meaning in a text"));
                        self.diagnostics.push(error.help("a backslash is written `\\\\`, a quotation mark `\\\"`"));
                    }
                    text.push(c);
                }
            }
            escaped = c == '\\' && !escaped;
        }
        // What closes the statement is probably not meant as part of the text: the parser shall not miss it.
        let line = self.rest().split('\n').next().unwrap_or_default();
        let line = line.split("//").next().unwrap_or_default();
        self.at += line.trim_end_matches([';', ')', '}', ' ', '\t', '\r']).len();
        let error = Diagnostic::error(Code::E0103, self.span(start), "this text is not closed on its line");
        self.diagnostics.push(error.label("expected `\"` at its end"));
        self.push(start, TokenKind::Text(Name::new(&text)));
    }

    /// One error for a whole run of characters that begin no token.
    fn unknown(&mut self) {
        let begins_token = |c: char| {
            c.is_whitespace()
                || c.is_ascii_alphanumeric()
                || matches!(c, '_' | '"')
                || PUNCTUATION.iter().any(|p| p.starts_with(c))
        };
        let start = self.at;
        self.take_while(|c| !begins_token(c));
        let shown: String = self.text[start..self.at].chars().take(8).flat_map(char::escape_debug).collect();
        let error = Diagnostic::error(Code::E0101, self.span(start), format!("`{shown}` has no meaning here"));
        self.diagnostics.push(error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Sources;

    fn kinds(text: &str) -> (Vec<String>, usize) {
        let mut sources = Sources::new();
        let file = sources.add("t", text);
        let mut diagnostics = Diagnostics::new();
        let tokens = lex(sources.get(file).unwrap(), file, &mut diagnostics);
        (tokens.iter().map(Token::describe).collect(), diagnostics.iter().count())
    }

    #[test]
    fn names_numbers_punctuation_comments() {
        let (tokens, errors) = kinds("red+ 2 x_1 // gone\n1..3 1.5e3 a.b");
        assert_eq!(tokens.join(" "), "`red` `+` `2` `x_1` `1` `..` `3` `1500.0` `a` `.` `b` the end of the file");
        assert_eq!(errors, 0);
    }

    #[test]
    fn nothing_is_shown_in_another_order_than_it_is_read() {
        for hidden in ['\u{202a}', '\u{202e}', '\u{2066}', '\u{2069}'] {
            assert_eq!(kinds(&format!("a // is {hidden} b\nc")).1, 1);
            assert_eq!(kinds(&format!("f(\"{hidden}\")")).1, 1);
            assert_eq!(kinds(&format!("a {hidden} b")).1, 1);
        }
        assert_eq!(kinds("// שלום: ça va").1, 0);
    }

    #[test]
    fn dots_belong_to_ranges_not_to_numbers() {
        let (tokens, errors) = kinds("s... x[1..n] [., ...] a++b");
        let expected = "`s` `...` `x` `[` `1` `..` `n` `]` `[` `.` `,` `...` `]` `a` `++` `b` the end of the file";
        assert_eq!((tokens.join(" ").as_str(), errors), (expected, 0));
    }

    #[test]
    fn texts_end_with_their_line() {
        assert_eq!(kinds(r#""ij->ji" "a\"b\\" """#).0.join(" "), r#"`"ij->ji"` `"a\"b\\"` `""` the end of the file"#);
        assert_eq!(kinds(r#""a\n""#), (vec![r#"`"an"`"#.into(), "the end of the file".into()], 1));
        let (tokens, errors) = kinds("f(\"ab);\nx");
        assert_eq!(errors, 1);
        assert_eq!(tokens[3..].join(" "), "`)` `;` `x` the end of the file");
    }

    #[test]
    fn a_run_of_unknown_characters_is_one_error() {
        let (tokens, errors) = kinds("a \u{1F600}\u{1F600} b");
        assert_eq!((tokens.len(), errors), (3, 1));
    }

    #[test]
    fn numbers_that_do_not_fit_are_errors() {
        assert_eq!(kinds("9223372036854775807").1, 0);
        assert_eq!(kinds("9223372036854775808").1, 1);
        assert_eq!(kinds("1e999").1, 1);
    }
}
