//! What the brackets of a text say before anything is read: how deep in braces a token is, which the parser needs to
//! find the end of a broken statement, and which parentheses hold several values, so that it never has to go back.
//!
//! One pass over the tokens. A line that begins a declaration is outside all brackets, whatever was left open before
//! it, so that a missing brace spoils one declaration only.

use std::collections::HashSet;

use certen_syntax::{Token, TokenKind, begins_item};

/// The brackets of a text.
pub(super) struct Layout {
    depths: Vec<u32>,
    with_comma: HashSet<usize>,
}

impl Layout {
    pub fn new(tokens: &[Token]) -> Layout {
        let mut layout = Layout { depths: Vec::with_capacity(tokens.len()), with_comma: HashSet::new() };
        let mut open: Vec<(&str, usize)> = Vec::new();
        let mut depth = 0;
        for (at, token) in tokens.iter().enumerate() {
            if begins_item(*token, *tokens.get(at + 1).unwrap_or(token)) {
                open.clear();
                depth = 0;
            }
            layout.depths.push(depth);
            match token.kind {
                TokenKind::Punct(bracket @ ("(" | "[" | "{")) => {
                    open.push((bracket, at));
                    depth += u32::from(bracket == "{");
                }
                TokenKind::Punct(")" | "]") => {
                    // One that was forgotten does not close a brace.
                    open.pop_if(|(bracket, _)| *bracket != "{");
                }
                TokenKind::Punct("}") => {
                    while open.pop().is_some_and(|(bracket, _)| bracket != "{") {}
                    depth = depth.saturating_sub(1);
                }
                TokenKind::Punct(",") => {
                    if let Some(("(", start)) = open.last() {
                        layout.with_comma.insert(*start);
                    }
                }
                _ => {}
            }
        }
        layout
    }

    /// How many braces are open before a token; a `}` is inside the pair that it closes.
    pub fn depth(&self, at: usize) -> u32 {
        self.depths.get(at).copied().unwrap_or(0)
    }

    /// Whether the parenthesis that this token opens has a comma directly in it.
    pub fn holds_comma(&self, at: usize) -> bool {
        self.with_comma.contains(&at)
    }
}
