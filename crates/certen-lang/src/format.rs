//! The house style for `.ten` files, as `certen fmt` writes it.
//!
//! Token by token: spaces and indentation are ours, line breaks are the user's. A line is indented by four spaces more
//! than the line that opened the innermost bracket around it, and by four more if it continues a statement, unless the
//! bracket has something after it on its line. Comments are kept as they are; after code, two spaces come first.
//! Of a schedule and a derivation every step has a line of its own.
//!
//! Guarantees: tokens and comments stay the same, lines do not end in spaces, there are no two empty lines in a row,
//! the text ends with its last line, and formatting again changes nothing. A text with a syntax error is refused: what
//! is not a program has no style. Needs the stack of [`parse`](crate::parse).

use certen_core::ElemType;
use certen_core::script::{in_indices, is_spaced};
use certen_syntax::{Diagnostics, FileId, Source, Token, TokenKind, lex};

use crate::parse::{is_reserved, parse};

/// How far lines are indented for each level.
const INDENT: usize = 4;

/// A text in house style, or the mistakes that it has.
pub fn format(source: &Source, file: FileId) -> Result<String, Diagnostics> {
    let mut diagnostics = Diagnostics::new();
    parse(source, file, &mut diagnostics);
    if diagnostics.has_errors() {
        return Err(diagnostics);
    }
    let tokens = lex(source, file, &mut diagnostics);
    let mut formatter = Formatter {
        tokens: &tokens,
        out: String::new(),
        open: Vec::new(),
        line: Line::default(),
        item: Item::Other,
        in_indices: in_indices(&tokens, false),
    };
    let text = source.text();
    let mut end = 0;
    for (at, token) in tokens.iter().enumerate() {
        let gap = text.get(end..token.span.start as usize).unwrap_or_default();
        formatter.gap(gap);
        formatter.token(at, text.get(token.span.start as usize..token.span.end as usize).unwrap_or_default());
        end = token.span.end as usize;
    }
    Ok(formatter.finish())
}

/// The line that is being written.
#[derive(Clone, Copy, Default)]
struct Line {
    /// Where it begins in the text.
    start: usize,
    /// How far it is indented, in spaces.
    indent: usize,
    /// How many line ends of the user stand before what comes next; none in the middle of a line.
    breaks: usize,
}

/// A bracket that is open.
struct Bracket {
    bracket: &'static str,
    /// Where its line begins in the text.
    line_start: usize,
    /// How far that line is indented.
    outside: usize,
    /// How far lines in the bracket are indented.
    inside: usize,
    /// Whether something stands after it on its line.
    hanging: bool,
    /// Whether it holds the indices of a selection or the sizes of a type: `x[i+1]`.
    indices: bool,
}

/// What a declaration is: steps have a style of their own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Item {
    Schedule,
    Derivation,
    Other,
}

struct Formatter<'a> {
    tokens: &'a [Token],
    out: String,
    open: Vec<Bracket>,
    line: Line,
    /// The declaration that is being written.
    item: Item,
    /// Of the tokens of derivations, which are part of indices, where products have no spaces.
    in_indices: Vec<bool>,
}

impl Formatter<'_> {
    /// What stands between two tokens: spaces, line ends and comments.
    fn gap(&mut self, gap: &str) {
        let mut rest = gap;
        while let Some(start) = rest.find("//") {
            let (before, comment) = rest.split_at(start);
            let length = comment.find('\n').unwrap_or(comment.len());
            let (comment, behind) = comment.split_at(length);
            self.line.breaks += line_ends(before);
            if self.line.breaks == 0 && !self.out.is_empty() {
                self.out.push_str("  ");
            } else {
                let inside = self.open.last().map_or(0, |open| open.inside);
                self.new_line(inside);
            }
            self.out.push_str(comment.trim_end());
            rest = behind;
        }
        self.line.breaks += line_ends(rest);
    }

    /// Begins a line, after an empty one if the user had any.
    fn new_line(&mut self, indent: usize) {
        if !self.out.is_empty() {
            self.out.push_str(if self.line.breaks > 1 { "\n\n" } else { "\n" });
        }
        self.line.start = self.out.len();
        self.line.breaks = 0;
        self.out.extend(std::iter::repeat_n(' ', indent));
    }

    fn token(&mut self, at: usize, text: &str) {
        let token = self.tokens[at];
        if token.kind == TokenKind::End {
            return;
        }
        let previous = at.checked_sub(1).map(|before| self.tokens[before]);
        if self.open.is_empty() && begins_item(token) {
            self.item = match token.word() {
                Some("schedule") => Item::Schedule,
                Some("derive" | "derivation") => Item::Derivation,
                _ => Item::Other,
            };
        }
        if self.line.breaks == 0 && self.between_steps(token, previous) {
            self.line.breaks = 1;
        }
        if self.line.breaks > 0 || self.out.is_empty() {
            self.line.indent = self.indent(token, previous);
            self.new_line(self.line.indent);
        } else if at > 0 {
            if self.space_before(at) {
                self.out.push(' ');
            }
            if let (Some(open), Some(last)) = (self.open.last_mut(), previous) {
                open.hanging |= last.is(open.bracket);
            }
        }
        self.out.push_str(text);
        match token.kind {
            TokenKind::Punct(bracket @ ("(" | "[" | "{")) => {
                let line_start = self.line.start;
                let outside = self.line.indent;
                // Brackets that are opened on one line are one level.
                let inside = match self.open.last() {
                    Some(open) if open.line_start == line_start => open.inside,
                    _ => outside + INDENT,
                };
                let indices = bracket == "[" && previous.is_some_and(ends_operand);
                self.open.push(Bracket { bracket, line_start, outside, inside, hanging: false, indices });
            }
            TokenKind::Punct(")" | "]" | "}") => {
                self.open.pop();
            }
            _ => {}
        }
    }

    /// Whether a line of steps ends before this token.
    fn between_steps(&self, token: Token, previous: Option<Token>) -> bool {
        let Some(last) = previous.filter(|_| self.item != Item::Other && self.open.len() == 1) else { return false };
        last.is(";") || last.is("{") != token.is("}")
    }

    /// How far a line is indented that begins with this token.
    fn indent(&self, first: Token, previous: Option<Token>) -> usize {
        let Some(open) = self.open.last() else {
            let continues = previous.is_some_and(|last| !last.is(";") && !last.is("}"));
            let begins = begins_item(first) || first.is("{");
            return if continues && !begins { INDENT } else { 0 };
        };
        if [")", "]", "}"].into_iter().any(|close| first.is(close)) {
            return open.outside;
        }
        let begins = previous.is_none_or(|last| {
            last.is(open.bracket)
                || last.is(";")
                || (last.is(",") && open.bracket != "{")
                || first.word() == Some("else")
        });
        if begins || open.hanging { open.inside } else { open.inside + INDENT }
    }

    /// Whether a space stands before a token that is not the first.
    fn space_before(&self, at: usize) -> bool {
        let (last, token) = (self.tokens[at - 1], self.tokens[at]);
        if self.item == Item::Derivation {
            let before = at.checked_sub(2).and_then(|before| self.tokens.get(before)).copied();
            return is_spaced(before, last, token, self.in_indices.get(at) == Some(&true));
        }
        let is_any = |token: Token, puncts: &[&str]| puncts.iter().any(|punct| token.is(punct));
        if is_any(token, &[")", "]", ",", ";"]) || is_any(last, &["(", "["]) {
            return false;
        }
        if is_any(last, &[",", ";"]) {
            return true;
        }
        if self.item == Item::Schedule && (is_any(last, &[".", "#"]) || is_any(token, &[".", "#"])) {
            return false;
        }
        if is_any(last, &["^", ".."]) || is_any(token, &["^", ".."]) || self.is_unary(at - 1) {
            return false;
        }
        if token.is("...") {
            return !ends_operand(last);
        }
        // `d:s` and `d>0:s` are one thing; so is a rank in it.
        if self.in_rank(at) || self.in_rank(at - 1) {
            return false;
        }
        let arithmetic = ["+", "-", "*", "/"];
        if self.open.last().is_some_and(|open| open.indices)
            && (is_any(last, &arithmetic) || (is_any(token, &arithmetic) && ends_operand(last)))
        {
            return false;
        }
        if token.is(":") {
            return is_any(last, &[")", "}"]);
        }
        if token.is("(") {
            let called = last.word().is_some_and(|word| {
                !is_reserved(word) && word != "associative"
                    || matches!(word, "genarray" | "modarray" | "fold" | "associative")
                    || word.parse::<ElemType>().is_ok()
            });
            let state = self.token_at(at + 1).word().is_some() && self.token_at(at + 2).is("=");
            return !called || state;
        }
        if token.is("[") {
            return !ends_operand(last);
        }
        true
    }

    fn token_at(&self, at: usize) -> Token {
        // The last token is the end.
        self.tokens[at.min(self.tokens.len() - 1)]
    }

    /// Whether this is an operator before its operand.
    fn is_unary(&self, at: usize) -> bool {
        let token = self.tokens[at];
        token.is("!") || (token.is("-") && !at.checked_sub(1).is_some_and(|before| ends_operand(self.tokens[before])))
    }

    /// Whether this is the `:` of `d:s`, or the `>` or number before it.
    fn in_rank(&self, at: usize) -> bool {
        let in_brackets = self.open.last().is_some_and(|open| open.bracket == "[");
        let ahead = match self.tokens[at].kind {
            TokenKind::Punct(":") => 0,
            TokenKind::Int(_) => 1,
            TokenKind::Punct(">") => 2,
            _ => return false,
        };
        let behind_brace = at.checked_sub(1).is_some_and(|before| self.tokens[before].is("}"));
        in_brackets && !behind_brace && self.token_at(at + ahead).is(":")
    }

    fn finish(mut self) -> String {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        self.out
    }
}

fn begins_item(token: Token) -> bool {
    matches!(token.word(), Some("fn" | "const" | "import" | "schedule" | "derive" | "derivation"))
}

fn line_ends(text: &str) -> usize {
    text.bytes().filter(|&byte| byte == b'\n').count()
}

/// Whether an operand can end with this token.
fn ends_operand(token: Token) -> bool {
    match token.kind {
        TokenKind::Name(name) => {
            let word = name.as_str();
            !is_reserved(word) || matches!(word, "true" | "false" | "size") || word.parse::<ElemType>().is_ok()
        }
        TokenKind::Int(_) | TokenKind::Float(_) | TokenKind::Text(_) => true,
        TokenKind::Punct(punct) => matches!(punct, ")" | "]" | "}" | "..." | "."),
        TokenKind::End => false,
    }
}
