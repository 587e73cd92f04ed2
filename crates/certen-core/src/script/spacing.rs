//! House style of derivations: where spaces stand between tokens.
//!
//! Needs tokens only, so that the formatter can use it for texts with comments, and patterns can be kept as text.

use certen_syntax::{Token, TokenKind};

/// Whether a space stands between two tokens of a derivation, in house style. `before` is the token before the first of
/// them; `tight` says that they stand in an index expression, where products are written without spaces.
pub fn is_spaced(before: Option<Token>, last: Token, next: Token, tight: bool) -> bool {
    let is_any = |token: Token, puncts: &[&str]| puncts.iter().any(|punct| token.is(punct));
    let dots = [".", "..", "..."];
    if is_any(last, &dots) && is_any(next, &dots)
        || is_any(last, &["!", "-", "*"]) && is_any(next, &["=", "==", ">", ">="])
    {
        // Together they would be another sign.
        return true;
    }
    if is_any(next, &[")", "]", ",", ";", "#", "..", "."]) || is_any(last, &["(", "[", "#", "..", "@", "!"]) {
        return false;
    }
    let is_operand = |token: Token| match token.kind {
        TokenKind::Name(name) => !JOINING.contains(&name.as_str()),
        TokenKind::Int(_) | TokenKind::Float(_) | TokenKind::Text(_) => true,
        _ => is_any(token, &[")", "]", "}"]),
    };
    if last.is(".") {
        // `index.f64(i)` is one thing, `gen i in 0..n. x` is not.
        return !before
            .and_then(|before| before.word())
            .is_some_and(|word| matches!(word, "index" | "cast" | "undefined"));
    }
    if last.is("-") && !before.is_some_and(is_operand) {
        return false;
    }
    if tight && last.is("*") {
        return false;
    }
    if is_any(next, &["(", "["]) {
        return !is_operand(last) || (next.is("(") && last.word().is_none());
    }
    !(tight && next.is("*"))
}

/// Words that are no operands.
const JOINING: [&str; 8] = ["in", "at", "if", "then", "else", "where", "times", "give"];

/// For each token whether it stands in an index expression or a condition: an argument that is no pattern, or in a
/// pattern indices, ranges and conditions. `in_pattern` says that the tokens are those of a pattern, not of a
/// declaration.
pub fn in_indices(tokens: &[Token], in_pattern: bool) -> Vec<bool> {
    /// What is open around a token.
    struct Bracket {
        tight: bool,
        /// Whether the first argument is an index expression, and others are not.
        first: bool,
        /// Whether a range or the condition of an `if` is being read.
        inner: bool,
    }
    let new = |tight: bool, first: bool| Bracket { tight, first, inner: false };
    let mut open = if in_pattern { vec![new(false, false)] } else { Vec::new() };
    let mut found = Vec::with_capacity(tokens.len());
    let word = |at: Option<usize>| at.and_then(|at| tokens.get(at)).and_then(|token| token.word());
    for (at, token) in tokens.iter().enumerate() {
        let tight = open.last().is_none_or(|open| open.tight || open.first || open.inner);
        found.push(tight);
        let binds = matches!(
            word(at.checked_sub(2)),
            Some("gen" | "sum" | "product" | "minimum" | "maximum" | "all" | "any" | "reduce")
        );
        match (token.kind, open.last_mut()) {
            // The braces of a declaration hold steps, those in it hold patterns.
            (TokenKind::Punct("{"), around) => {
                let is_block = around.is_none();
                open.push(new(is_block, false));
            }
            (TokenKind::Punct("["), _) => open.push(new(true, false)),
            (TokenKind::Punct("("), _) => {
                let first = matches!(
                    word(at.checked_sub(1)),
                    Some("guard" | "split" | "pad_l" | "pad_r" | "trunc_l" | "trunc_r")
                );
                let of_index = word(at.checked_sub(3)) == Some("index");
                open.push(new((tight && !first) || of_index, first));
            }
            (TokenKind::Punct(")" | "]" | "}"), _) => drop(open.pop()),
            (TokenKind::Punct(","), Some(around)) => around.first = false,
            (TokenKind::Punct("."), Some(around)) => around.inner = false,
            (TokenKind::Name(name), Some(around)) => match name.as_str() {
                "in" if binds => around.inner = true,
                "if" => around.inner = true,
                "then" => around.inner = false,
                _ => {}
            },
            _ => {}
        }
    }
    found
}

/// Tokens as text, in house style.
pub(super) fn joined(tokens: &[Token]) -> String {
    let tight = in_indices(tokens, true);
    let mut text = String::new();
    let mut before = None;
    let mut last: Option<Token> = None;
    for (token, tight) in tokens.iter().zip(tight) {
        if let Some(last) = last
            && is_spaced(before, last, *token, tight)
        {
            text.push(' ');
        }
        match token.kind {
            TokenKind::Name(name) => text += name.as_str(),
            TokenKind::Int(value) => text += &value.to_string(),
            TokenKind::Float(value) => text += &format!("{value:?}"),
            TokenKind::Text(word) => {
                text += &format!("\"{}\"", word.as_str().replace('\\', "\\\\").replace('"', "\\\""))
            }
            TokenKind::Punct(punct) => text += punct,
            TokenKind::End => {}
        }
        before = last;
        last = Some(*token);
    }
    text
}
