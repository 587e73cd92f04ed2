//! The text of integer expressions and conditions, shared by the dialects and the textual forms of the IRs.
//!
//! ```text
//! ix      := term (("+" | "-") term)*
//! term    := primary ("*" primary)*
//! primary := INT | NAME | "-" primary | "(" ix ")" | FUNCTION "(" ix "," ix ")"
//!            with FUNCTION one of floor_div, ceil_div, mod, min, max
//! cond    := all ("||" all)*
//! all     := one ("&&" one)*
//! one     := ix (COMPARISON ix)+ | "(" cond ")" | "!" one | "true" | "false"
//! ```
//!
//! Comparisons may be chained: `0 <= i < n`.

use certen_syntax::{Code, Cursor, Diagnostic, Span, TokenKind};

use crate::cond::Cond;
use crate::ix::{Ix, IxError};

/// Brackets deeper than this are refused: sizes are written by people.
const MAX_DEPTH: usize = 64;

/// Words that name no size or index, so that text means one thing: functions and truth values.
const RESERVED: [&str; 7] = ["floor_div", "ceil_div", "mod", "min", "max", "true", "false"];

fn wrong(span: Span, error: IxError) -> Diagnostic {
    Diagnostic::error(Code::E0216, span, format!("this size or index cannot be used: {error}"))
}

/// Reads an expression with `+`, `-` and `*`.
pub fn parse_ix(cursor: &mut Cursor<'_>) -> Result<Ix, Diagnostic> {
    sum(cursor, 0)
}

/// Reads a number, a name, a function or an expression in parentheses.
pub fn parse_primary(cursor: &mut Cursor<'_>) -> Result<Ix, Diagnostic> {
    primary(cursor, 0)
}

/// Reads a condition.
pub fn parse_cond(cursor: &mut Cursor<'_>) -> Result<Cond, Diagnostic> {
    any(cursor, 0)
}

fn sum(cursor: &mut Cursor<'_>, depth: usize) -> Result<Ix, Diagnostic> {
    let mut total = term(cursor, depth)?;
    loop {
        let operator = cursor.peek();
        let combined = if cursor.eat("+") {
            total.add(&term(cursor, depth)?)
        } else if cursor.eat("-") {
            total.sub(&term(cursor, depth)?)
        } else {
            return Ok(total);
        };
        total = combined.map_err(|e| wrong(operator.span, e))?;
    }
}

fn term(cursor: &mut Cursor<'_>, depth: usize) -> Result<Ix, Diagnostic> {
    let mut product = primary(cursor, depth)?;
    loop {
        let operator = cursor.peek();
        if !cursor.eat("*") {
            return Ok(product);
        }
        product = product.mul(&primary(cursor, depth)?).map_err(|e| wrong(operator.span, e))?;
    }
}

fn primary(cursor: &mut Cursor<'_>, depth: usize) -> Result<Ix, Diagnostic> {
    let token = cursor.peek();
    if depth > MAX_DEPTH {
        return Err(wrong(token.span, IxError::TooComplex));
    }
    match token.kind {
        TokenKind::Int(value) => {
            cursor.take();
            Ok(Ix::from(value))
        }
        TokenKind::Name(name) if !matches!(name.as_str(), "true" | "false") => {
            cursor.take();
            let function = name.as_str();
            if !RESERVED.contains(&function) {
                return Ok(Ix::var(name));
            }
            cursor.expect_punct("(")?;
            let left = sum(cursor, depth + 1)?;
            cursor.expect_punct(",")?;
            let divisor_span = cursor.peek().span;
            let right = sum(cursor, depth + 1)?;
            cursor.expect_punct(")")?;
            let divisor = || right.as_constant().ok_or(IxError::Divisor);
            match function {
                "floor_div" => divisor().and_then(|k| left.floor_div(k)),
                "ceil_div" => divisor().and_then(|k| left.ceil_div(k)),
                "mod" => divisor().and_then(|k| left.modulo(k)),
                "min" => left.min_with(&right),
                _ => left.max_with(&right),
            }
            .map_err(|e| wrong(divisor_span, e))
        }
        TokenKind::Punct("-") => {
            cursor.take();
            primary(cursor, depth + 1)?.scale(-1).map_err(|e| wrong(token.span, e))
        }
        TokenKind::Punct("(") => {
            cursor.take();
            let inner = sum(cursor, depth + 1)?;
            cursor.expect_punct(")")?;
            Ok(inner)
        }
        _ => Err(cursor.expected("a size or an index")),
    }
}

fn any(cursor: &mut Cursor<'_>, depth: usize) -> Result<Cond, Diagnostic> {
    let mut cond = all(cursor, depth)?;
    while cursor.eat("||") {
        cond = cond.or(all(cursor, depth)?);
    }
    Ok(cond)
}

fn all(cursor: &mut Cursor<'_>, depth: usize) -> Result<Cond, Diagnostic> {
    let mut cond = one(cursor, depth)?;
    while cursor.eat("&&") {
        cond = cond.and(one(cursor, depth)?);
    }
    Ok(cond)
}

fn one(cursor: &mut Cursor<'_>, depth: usize) -> Result<Cond, Diagnostic> {
    let token = cursor.peek();
    if depth > MAX_DEPTH {
        return Err(wrong(token.span, IxError::TooComplex));
    }
    if cursor.eat_word("true") {
        return Ok(Cond::always());
    }
    if cursor.eat_word("false") {
        return Ok(Cond::never());
    }
    if cursor.eat("!") {
        return one(cursor, depth + 1)?.not().map_err(|e| wrong(token.span, e));
    }
    if token.is("(") {
        // `(i + 1) < n` or `(i < n)`: decided by what follows the parenthesis read as an expression.
        let mut ahead = *cursor;
        let is_comparison = sum(&mut ahead, depth).is_ok() && comparison(&ahead).is_some();
        if !is_comparison {
            cursor.take();
            let inner = any(cursor, depth + 1)?;
            cursor.expect_punct(")")?;
            return Ok(inner);
        }
    }
    let mut left = sum(cursor, depth)?;
    let mut chain: Option<Cond> = None;
    while let Some(operator) = comparison(cursor) {
        let span = cursor.take().span;
        let right = sum(cursor, depth)?;
        let link = match operator {
            "<" => Cond::lt(&left, &right),
            "<=" => Cond::le(&left, &right),
            ">" => Cond::lt(&right, &left),
            ">=" => Cond::le(&right, &left),
            "!=" => Cond::eq(&left, &right).and_then(|c| c.not()),
            _ => Cond::eq(&left, &right),
        }
        .map_err(|e| wrong(span, e))?;
        chain = Some(match chain {
            None => link,
            Some(chain) => chain.and(link),
        });
        left = right;
    }
    chain.ok_or_else(|| cursor.expected("a comparison such as `>=`"))
}

fn comparison(cursor: &Cursor<'_>) -> Option<&'static str> {
    match cursor.peek().kind {
        TokenKind::Punct(p @ ("<" | "<=" | ">" | ">=" | "==" | "=" | "!=")) => Some(p),
        _ => None,
    }
}
