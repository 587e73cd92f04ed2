//! What people write out of habit from NumPy, Rust and C, and what to write instead.
//!
//! A slip is recognised by the token where reading stopped and the one before it. It never changes what is accepted,
//! only what is said.

use certen_syntax::{Cursor, Diagnostic, Span, Token, TokenKind};

use super::{Parsed, wrong};

/// That something else was expected here, with help if this is a slip.
pub(super) fn unexpected(cursor: &Cursor<'_>, what: &str) -> Diagnostic {
    match slip(cursor) {
        Some(Slip { message: Some(message), help, span }) => wrong(span, message).help(help),
        Some(Slip { message: None, help, .. }) => cursor.expected(what).help(help),
        None => cursor.expected(what),
    }
}

/// That a bracket is not closed here; if it is a slip, the bracket does not matter.
pub(super) fn unclosed(cursor: &Cursor<'_>, what: &str, open: Span) -> Diagnostic {
    let error = unexpected(cursor, what);
    if is_slip(cursor) { error } else { error.also(open, "to close this") }
}

/// Whether a slip stands here.
pub(super) fn is_slip(cursor: &Cursor<'_>) -> bool {
    slip(cursor).is_some()
}

/// A word of the language where a name or expression is expected.
pub(super) fn reserved(cursor: &Cursor<'_>, what: &str) -> Diagnostic {
    let token = cursor.peek();
    let word = token.word().unwrap_or_default();
    if slip(cursor).is_some() {
        return unexpected(cursor, what);
    }
    let error = wrong(token.span, format!("`{word}` is a word of the language")).label(format!("expected {what}"));
    match word {
        "let" if what == "an expression" => error.help("bindings stand in a block: `{ let a = …; … }`"),
        "size" if cursor.peek_at(1).is("(") => error.help("`shape(x)` gives all sizes, `shape(x)[0]` the first"),
        "where" if cursor.peek_at(1).is("(") => error.help("to choose by data: `select(c, a, b)`"),
        "genarray" | "modarray" | "fold" => error.help("it stands after a with-loop: `with { … } : genarray(shape)`"),
        _ => error,
    }
}

/// What is said instead.
struct Slip {
    /// Instead of "expected …".
    message: Option<&'static str>,
    /// What to do.
    help: String,
    /// Where.
    span: Span,
}

/// The slip that stands here.
fn slip(cursor: &Cursor<'_>) -> Option<Slip> {
    let found = cursor.peek();
    let next = cursor.peek_at(1);
    let last = cursor.previous();
    let after_operand = last.is_some_and(|last| match last.kind {
        TokenKind::Name(_) | TokenKind::Int(_) | TokenKind::Float(_) => true,
        _ => last.is(")") || last.is("]") || last.is("}"),
    });
    let said = |message: &'static str, help: &str| {
        Some(Slip { message: Some(message), help: help.to_owned(), span: found.span })
    };
    let help = |help: &str| Some(Slip { message: None, help: help.to_owned(), span: found.span });
    if let Some(word) = found.word() {
        return match word {
            "and" if after_operand => said("`and` is not an operator", "write `&&`"),
            "or" if after_operand => said("`or` is not an operator", "write `||`"),
            "as" if after_operand => said("`as` is not an operator", "write the type like a function, as in `f64(x)`"),
            "if" if after_operand => said("`if` stands before its values", "write `if c { a } else { b }`"),
            "elif" => help("write `else if`"),
            "then" if after_operand => help("write `if c { a } else { b }`"),
            _ if last.and_then(|last| last.word()) == Some("not") => said("`not` is not an operator", "write `!`"),
            _ => None,
        };
    }
    let TokenKind::Punct(punct) = found.kind else { return None };
    match punct {
        "*" => {
            let star = last.filter(|last| last.is("*"))?;
            let help = "a power is written `x^2`, or `pow(a, b)`".to_owned();
            Some(Slip { message: Some("`**` is not an operator"), help, span: star.span.to(found.span) })
        }
        "&" if after_operand => said("`&` is not an operator", "write `&&`"),
        "&" => said("there are no references", "leave the `&` out"),
        "%" if after_operand => said("`%` is not an operator", "write `mod(a, b)`"),
        "?" if after_operand => said("`?` is not an operator", "write `if c { a } else { b }`"),
        "'" if after_operand => said("`'` is not an operator", "write `transpose(x)`"),
        "'" => said("`'` begins nothing", "a text stands in `\"`"),
        "#" => said("`#` begins nothing", "a comment begins with `//`"),
        "=" if after_operand => help("`==` compares; `=` stands after `let` and in `f(x, axis = 0)` only"),
        "+=" | "*=" if after_operand => {
            said("there is no assignment", "bind the new value to a name: `let y = x + 1;`")
        }
        "." if after_operand && next.word().is_some() => Some(member(cursor)),
        "." if !after_operand && matches!(next.kind, TokenKind::Int(_)) && found.span.touches(next.span) => {
            said("a number begins with a digit", "write `0.5`, for example")
        }
        "." if after_operand && matches!(last.map(|l| l.kind), Some(TokenKind::Int(_))) => {
            said("a number with a point has a digit after it", "write `1.0`, for example")
        }
        ".." if after_operand => help("a slice `a..b` stands in brackets: `x[a..b]`"),
        "..." if after_operand => help("`s...` stands in types and patterns only"),
        ":" if last.and_then(|last| last.word()) == Some("else") => help("write `else { … }`"),
        ":" if after_operand => help("a block stands in braces: `{ … }`"),
        "->" if after_operand => {
            help("in a comprehension the pattern before `->` is a name, or names and dots in brackets")
        }
        _ => None,
    }
}

/// `A.shape`, `A.T`, `A.sum(0)`
fn member(cursor: &Cursor<'_>) -> Slip {
    let field = cursor.peek_at(1);
    let word = field.word().unwrap_or_default();
    let tensor = cursor.previous().and_then(|last| last.word()).unwrap_or("…");
    let call = cursor.peek_at(2).is("(") && !cursor.peek_at(3).is(")");
    let instead = match word {
        "T" => format!("transpose({tensor})"),
        "ndim" | "rank" => format!("dim({tensor})"),
        "dot" | "matmul" => format!("{tensor} @ …"),
        "len" | "size" => format!("shape({tensor})[0]"),
        _ if call => format!("{word}({tensor}, …)"),
        _ => format!("{word}({tensor})"),
    };
    let span = cursor.peek().span.to(field.span);
    Slip { message: Some("tensors have no fields or methods"), help: format!("write `{instead}`"), span }
}

/// A `:` in brackets.
pub(super) fn colon_in_selection(cursor: &Cursor<'_>) -> Diagnostic {
    let alone = cursor.previous().is_some_and(|last| last.is("[") || last.is(","));
    let next = cursor.peek_at(1);
    let error = cursor.expected(if alone { "an index" } else { "`,` or `]`" });
    let error = error.help("a slice is written `x[1..3]`, `x[1..]` or `x[..3]`");
    if alone && (next.is(",") || next.is("]")) { error.help("all of a dimension is written `.`") } else { error }
}

/// What begins no declaration.
pub(super) fn no_item(first: Token) -> Diagnostic {
    let message =
        format!("expected `fn`, `const`, `import`, `schedule`, `derive` or `derivation`, found {}", first.describe());
    let error = wrong(first.span, message).label("expected a declaration");
    match first.word() {
        Some("def" | "func" | "function" | "fun") => error.help("a function begins with `fn`"),
        Some("let" | "static" | "var") => error.help("a constant begins with `const`"),
        Some("from" | "use" | "include") => error.help("write `import \"file.ten\";`"),
        Some("pub") => error.help("leave `pub` out: everything can be imported"),
        _ if first.is("#") => error.help("a comment begins with `//`, a file is imported with `import \"file.ten\";`"),
        _ if first.is("}") => error.note("this closes a brace that is not open"),
        _ => error,
    }
}

/// What is neither a binding nor a result, although it begins like one.
pub(super) fn no_statement(cursor: &Cursor<'_>) -> Parsed<()> {
    let first = cursor.peek();
    let next = cursor.peek_at(1);
    let error = match first.word() {
        Some("return") => wrong(first.span, "`return` is not needed")
            .help("a block gives its last expression: leave `return` and its `;` out"),
        Some("for" | "while") if next.word().is_some() || next.is("(") => no_loop(first),
        Some("loop") if next.is("{") => no_loop(first),
        Some("fn" | "def") if next.word().is_some() => {
            let error = wrong(first.span, "a function inside a block");
            error.help("move it out, or close the block before it with `}`")
        }
        Some("const" | "import" | "where") => return Err(reserved(cursor, "`let` or an expression").into()),
        Some("mut" | "var" | "val" | "auto" | "int" | "double") if next.word().is_some() => {
            wrong(first.span, format!("`{}` begins no binding", first.word().unwrap_or_default()))
                .help("a binding begins with `let`: `let x = …;`")
        }
        Some(name) if next.is("=") => {
            wrong(next.span, "there is no assignment").help(format!("a binding begins with `let`: `let {name} = …;`"))
        }
        _ if first.is(";") => wrong(first.span, "expected `let` or an expression, found `;`").help("leave the `;` out"),
        _ => return Ok(()),
    };
    Err(error.into())
}

fn no_loop(first: Token) -> Diagnostic {
    let word = first.word().unwrap_or_default();
    wrong(first.span, format!("there is no `{word}` loop"))
        .help("a tensor is made by a comprehension: `{ [i] -> x[i] + 1 | i < n }`")
        .help("steps are repeated by `iterate k times u = u0 { … }`")
}

/// An expression and `;` that something follows.
pub(super) fn no_effect(semicolon: Span) -> Diagnostic {
    let error = wrong(semicolon, "an expression without a name has no effect");
    error.help("bind it with `let`, or leave the `;` out if it is the block's result")
}

/// Words that other languages have where an operand stands.
pub(super) fn no_operand(cursor: &Cursor<'_>) -> Parsed<()> {
    let first = cursor.peek();
    let next = cursor.peek_at(1);
    let error = match first.word() {
        Some("lambda") if next.word().is_some() || next.is(":") => {
            wrong(first.span, "there are no functions without a name").help("declare one with `fn`")
        }
        Some("not") if next.word().is_some() => wrong(first.span, "`not` is not an operator").help("write `!`"),
        Some("for" | "while") if next.word().is_some() => no_loop(first),
        Some("return") if next.word().is_some() => {
            wrong(first.span, "`return` is not needed").help("a block gives its last expression")
        }
        _ => return Ok(()),
    };
    Err(error.into())
}

/// `let mut x`
pub(super) fn no_change(cursor: &Cursor<'_>) -> Parsed<()> {
    if cursor.peek().word() == Some("mut") && cursor.peek_at(1).word().is_some() {
        let error = wrong(cursor.peek().span, "bindings do not change");
        return Err(error.help("leave `mut` out; `iterate` repeats steps on a state").into());
    }
    Ok(())
}

/// `x[0] = 1`
pub(super) fn no_assignment(at: Span) -> Diagnostic {
    wrong(at, "there is no assignment")
        .help("`with { … } : modarray(x)` gives a tensor with some elements replaced; bind it with `let`")
        .help("`==` compares")
}

/// An `if` whose block ends without `else`.
pub(super) fn no_else(cursor: &Cursor<'_>, start: Span) -> Diagnostic {
    let error = unexpected(cursor, "`else`").also(start, "this `if` has one value only");
    if is_slip(cursor) {
        return error;
    }
    error.help("write both: `if c { a } else { b }`; `guard(c, a)` is zero where `c` does not hold")
}

/// What is not a type.
pub(super) fn no_type(cursor: &Cursor<'_>) -> Diagnostic {
    let error = unexpected(cursor, "a type");
    let instead = match cursor.peek().word() {
        Some("float64" | "double" | "real") => "f64",
        Some("float32" | "single") => "f32",
        Some("int64" | "int" | "long" | "isize" | "i16" | "i8") => "i64",
        Some("int32") => "i32",
        Some("uint8" | "byte" | "char") => "u8",
        Some("boolean") => "bool",
        Some("usize" | "index" | "nat") => "size",
        _ => {
            return error
                .help("types are f32, f64, i32, i64, u8, bool, any, num, float or size, with sizes: `f64[n, m]`");
        }
    };
    error.help(format!("write `{instead}`"))
}
