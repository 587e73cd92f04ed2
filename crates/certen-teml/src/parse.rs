//! Reading programs (Fig. 1 and Sec. 4).
//!
//! ```text
//! program := (stmt [";"])*
//! stmt    := ID "=" ["@" ID ":"] expr | [ID "="] "codegen" "(" ID ("," ID)* ")" | "init" "(" ID "," ["-"] NUMBER ")"
//! expr    := "scalar" "(" [TYPE] ")" | "tensor" "(" [TYPE ","] iters ")"
//!          | "eq" "(" ID "," [iters] "->" iters ")"
//!          | ["v"] OP "(" ID "," ID "," "[" [iters] "," [iters] "]" ["->" iters] ")"       OP := add | sub | mul | div
//!          | ["v"] "entrywise_"OP "(" ID ("," ID)+ ")" | ["v"] "outerproduct" "(" ID ("," ID)+ ")"
//!          | ["v"] "transpose" "(" ID "," pairs ")" | ["v"] "contract" "(" ID "," ID "," pairs ")"
//!          | LOOP_OP "(" ID ("," ID)* ("," (INT | "[" INT ("," INT)* "]"))* ")"
//! iters   := "[" [ix ("," ix)*] "]"      pairs := "[" INT "," INT "]" | "[" "[" INT "," INT "]" ("," ...)* "]"
//! ```
//!
//! Comments begin with `//` or `#`. Guarantees: reading never fails, whatever the text; one mistake gives one message,
//! and reading goes on at the next line that begins a statement.

use certen_core::{Binary, ElemType};
use certen_index::{Ix, parse_ix};
use certen_syntax::{Code, Cursor, Diagnostic, Diagnostics, FileId, Sources, Span, TokenKind, lex, near};

use crate::ast::{ARITHMETIC, At, Expr, Id, Iters, LoopExpr, LoopOp, Number, Program, Stmt, TensorExpr};
use crate::rules::Evaluated;

/// Reads a program; statements with mistakes are left out.
pub fn parse(sources: &Sources, file: FileId, diagnostics: &mut Diagnostics) -> Program {
    let Some(source) = sources.get(file) else { return Program::default() };
    // The same text, with blanks for what stands after `#`: places stay where they are.
    let mut own = Sources::new();
    let copy = own.add(source.name(), without_hashes(source.text()));
    let Some(copy) = own.get(copy) else { return Program::default() };
    let tokens = lex(copy, file, diagnostics);
    let mut cursor = Cursor::new(&tokens);
    let mut program = Program::default();
    while !cursor.at_end() {
        if cursor.eat(";") {
            continue;
        }
        match statement(&mut cursor) {
            Ok(stmt) => program.statements.push(stmt),
            Err(error) => {
                diagnostics.push(*error);
                while !cursor.at_end() && !begins_statement(&cursor) {
                    cursor.take();
                }
            }
        }
    }
    program
}

fn begins_statement(cursor: &Cursor<'_>) -> bool {
    let next = cursor.peek();
    next.first_on_line
        && match next.word() {
            Some("codegen" | "init") => cursor.peek_at(1).is("=") || cursor.peek_at(1).is("("),
            Some(_) => cursor.peek_at(1).is("="),
            None => false,
        }
}

fn without_hashes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let code = line.find("//").unwrap_or(line.len());
        match line[..code].find('#') {
            Some(at) => {
                out.push_str(&line[..at]);
                out.extend(std::iter::repeat_n(' ', line.trim_end_matches('\n').len() - at));
                out.push_str(if line.ends_with('\n') { "\n" } else { "" });
            }
            None => out.push_str(line),
        }
    }
    out
}

fn since(cursor: &Cursor<'_>, start: Span) -> Span {
    cursor.previous().map_or(start, |last| start.to(last.span))
}

fn id(cursor: &mut Cursor<'_>, what: &str) -> Evaluated<Id> {
    let (it, span) = cursor.expect_name(what)?;
    Ok(At { it, span })
}

fn punct(cursor: &mut Cursor<'_>, punct: &str) -> Evaluated<()> {
    cursor.expect_punct(punct)?;
    Ok(())
}

fn statement(cursor: &mut Cursor<'_>) -> Evaluated<At<Stmt>> {
    let start = cursor.peek().span;
    let call = cursor.peek_at(1).is("(");
    let it = match cursor.peek().word() {
        Some("codegen") if call => Stmt::Codegen { name: None, loops: codegen(cursor)? },
        Some("init") if call => init(cursor)?,
        Some(word) if call => {
            let expected = cursor.expected("a statement");
            return Err(match word {
                _ if known(word) => expected.help(format!("an expression has a name: `x = {word}(…)`")),
                _ => expected.help("a statement is `id = expression`, `codegen(…)` or `init(…)`"),
            }
            .into());
        }
        _ => {
            let id = id(cursor, "a statement, which begins with a name")?;
            punct(cursor, "=")?;
            if cursor.peek().word() == Some("codegen") && cursor.peek_at(1).is("(") {
                Stmt::Codegen { name: Some(id), loops: codegen(cursor)? }
            } else {
                let target = if cursor.eat("@") {
                    let target = self::id(cursor, "the name of a tensor after `@`")?;
                    punct(cursor, ":")?;
                    Some(target)
                } else {
                    None
                };
                let value = expression(cursor)?;
                if let (Some(target), Expr::Loop(_) | Expr::Tensor(TensorExpr::New { .. })) = (&target, &value) {
                    let message = "`@` names the tensor that an operation writes, and this is none";
                    return Err(wrong(target.span, message).into());
                }
                Stmt::Assign { id, target, value }
            }
        }
    };
    Ok(At { it, span: since(cursor, start) })
}

fn wrong(span: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(Code::E0103, span, message)
}

fn codegen(cursor: &mut Cursor<'_>) -> Evaluated<Vec<Id>> {
    cursor.take();
    punct(cursor, "(")?;
    ids(cursor, "the name of a loop")
}

/// Names up to a closing parenthesis.
fn ids(cursor: &mut Cursor<'_>, what: &str) -> Evaluated<Vec<Id>> {
    let mut all = vec![id(cursor, what)?];
    while cursor.eat(",") {
        all.push(id(cursor, what)?);
    }
    punct(cursor, ")")?;
    Ok(all)
}

fn init(cursor: &mut Cursor<'_>) -> Evaluated<Stmt> {
    cursor.take();
    punct(cursor, "(")?;
    let id = id(cursor, "the name of a tensor")?;
    punct(cursor, ",")?;
    let start = cursor.peek().span;
    let negative = cursor.eat("-");
    let it = match cursor.peek().kind {
        TokenKind::Int(value) => Number::Int(if negative { -value } else { value }),
        TokenKind::Float(value) => Number::Float(if negative { -value } else { value }),
        _ => return Err(cursor.expected("a number").into()),
    };
    cursor.take();
    let value = At { it, span: since(cursor, start) };
    punct(cursor, ")")?;
    Ok(Stmt::Init { id, value })
}

/// What a word means as an operation on tensors, and whether it is real.
fn arithmetic(word: &str) -> Option<Binary> {
    ARITHMETIC.iter().find(|(known, _)| *known == word).map(|(_, op)| *op)
}

fn loop_op(word: &str) -> Option<LoopOp> {
    LoopOp::ALL.into_iter().find(|op| op.name() == word)
}

/// A word without its `v`, and whether it had none.
fn realness(word: &str) -> (&str, bool) {
    match word.strip_prefix('v') {
        Some("ectorize") | None => (word, true),
        Some(rest) => (rest, false),
    }
}

const TENSOR_WORDS: [&str; 7] = ["tensor", "scalar", "eq", "transpose", "contract", "outerproduct", "codegen"];

fn known(word: &str) -> bool {
    let (base, _) = realness(word);
    TENSOR_WORDS.contains(&base)
        || arithmetic(base.strip_prefix("entrywise_").unwrap_or(base)).is_some()
        || loop_op(base).is_some()
}

fn expression(cursor: &mut Cursor<'_>) -> Evaluated<Expr> {
    let token = cursor.peek();
    let Some(word) = token.word().filter(|word| known(word) && *word != "codegen") else {
        let mut error = cursor.expected("an expression");
        if let Some(word) = token.word() {
            let mut all: Vec<String> = LoopOp::ALL.iter().map(|op| op.name().to_owned()).collect();
            for base in TENSOR_WORDS.into_iter().chain(ARITHMETIC.map(|(word, _)| word)) {
                all.extend([base.to_owned(), format!("v{base}")]);
            }
            let entrywise = ARITHMETIC.iter().flat_map(|(op, _)| ["", "v"].map(|v| format!("{v}entrywise_{op}")));
            all.extend(entrywise);
            error = match near(word, all.iter().map(String::as_str)) {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                _ if cursor.peek_at(1).is("(") => error.help("`certen help teml` lists all operations"),
                _ => error.help(format!(
                    "a tensor is copied by `eq({word}, [i] -> [i])`, with an iterator for each dimension"
                )),
            };
        }
        return Err(error.into());
    };
    cursor.take();
    punct(cursor, "(")?;
    if let Some(op) = loop_op(word) {
        return Ok(Expr::Loop(loop_expression(cursor, At { it: op, span: token.span })?));
    }
    let (base, real) = realness(word);
    let tensor = match base {
        "scalar" if real => {
            let elem = element_type(cursor)?;
            punct(cursor, ")")?;
            TensorExpr::New { elem, shape: None }
        }
        "tensor" if real => {
            let elem = element_type(cursor)?;
            if elem.is_some() {
                punct(cursor, ",")?;
            }
            let shape = iters(cursor)?;
            punct(cursor, ")")?;
            TensorExpr::New { elem, shape: Some(shape.it) }
        }
        "eq" if real => {
            let operand = id(cursor, "the name of a tensor")?;
            punct(cursor, ",")?;
            let from = optional_iters(cursor)?;
            punct(cursor, "->")?;
            let to = iters(cursor)?;
            punct(cursor, ")")?;
            TensorExpr::Eq { operand, from, to }
        }
        "tensor" | "scalar" | "eq" => {
            return Err(wrong(token.span, format!("there is no virtual `{base}`"))
                .help(format!("write `{base}(…)`"))
                .into());
        }
        "transpose" => {
            let operand = id(cursor, "the name of a tensor")?;
            punct(cursor, ",")?;
            let pairs = pairs(cursor)?;
            punct(cursor, ")")?;
            TensorExpr::Transpose { real, operand, pairs }
        }
        "contract" => {
            let one = id(cursor, "the name of a tensor")?;
            punct(cursor, ",")?;
            let two = id(cursor, "the name of a tensor")?;
            punct(cursor, ",")?;
            let pairs = pairs(cursor)?;
            punct(cursor, ")")?;
            TensorExpr::Contract { real, operands: [one, two], pairs }
        }
        _ => match (arithmetic(base), base.strip_prefix("entrywise_").and_then(arithmetic)) {
            (Some(op), _) => operation(cursor, op, real, word)?,
            (None, Some(op)) => TensorExpr::Entrywise { real, op, operands: several(cursor, word, token.span)? },
            (None, None) => TensorExpr::Outer { real, operands: several(cursor, word, token.span)? },
        },
    };
    Ok(Expr::Tensor(tensor))
}

fn several(cursor: &mut Cursor<'_>, word: &str, span: Span) -> Evaluated<Vec<Id>> {
    let operands = ids(cursor, "the name of a tensor")?;
    match operands.len() {
        1 => Err(wrong(since(cursor, span), format!("`{word}` has at least two operands")).into()),
        _ => Ok(operands),
    }
}

fn element_type(cursor: &mut Cursor<'_>) -> Evaluated<Option<ElemType>> {
    let Some(word) = cursor.peek().word() else { return Ok(None) };
    let elem = match word {
        "double" => Some(ElemType::F64),
        "float" => Some(ElemType::F32),
        "int" => Some(ElemType::I32),
        "long" => Some(ElemType::I64),
        _ => word.parse().ok().filter(|elem: &ElemType| elem.has_arithmetic()),
    };
    if elem.is_none() {
        let error = cursor.expected("a type of elements");
        return Err(error.help("`double`, `float`, `i64` or `i32`; sizes stand in brackets").into());
    }
    cursor.take();
    Ok(elem)
}

fn operation(cursor: &mut Cursor<'_>, op: Binary, real: bool, word: &str) -> Evaluated<TensorExpr> {
    let one = id(cursor, "the name of a tensor")?;
    punct(cursor, ",")?;
    let two = id(cursor, "the name of a tensor")?;
    punct(cursor, ",")?;
    punct(cursor, "[")?;
    let first = optional_iters(cursor)?;
    if !cursor.peek().is(",") {
        let error = cursor.expected("`,`");
        let help = format!(
            "`{word}(t0, t1, [[i], [j]])` has a list of iterators for each operand; one that has them is left out: `[[i], ]`"
        );
        return Err(error.help(help).into());
    }
    cursor.take();
    let second = optional_iters(cursor)?;
    punct(cursor, "]")?;
    let arrow = cursor.peek();
    let to = if cursor.eat("->") { Some(iters(cursor)?) } else { None };
    match (real, &to) {
        (false, Some(_)) => {
            let error = wrong(arrow.span, format!("`{word}` is virtual: it writes no tensor"));
            return Err(error.help(format!("`{}` writes one", word.trim_start_matches('v'))).into());
        }
        (true, None) => {
            let error = cursor.expected("`->`");
            let help = format!("`{word}` writes a tensor: `{word}(t0, t1, [[i], [i]] -> [i])`; `v{word}` is virtual");
            return Err(error.help(help).into());
        }
        _ => {}
    }
    punct(cursor, ")")?;
    Ok(TensorExpr::Op { op, operands: [(one, first), (two, second)], to })
}

fn optional_iters(cursor: &mut Cursor<'_>) -> Evaluated<Option<Iters>> {
    if cursor.peek().is("[") { iters(cursor).map(Some) } else { Ok(None) }
}

fn iters(cursor: &mut Cursor<'_>) -> Evaluated<Iters> {
    let start = cursor.peek().span;
    punct(cursor, "[")?;
    let mut it: Vec<At<Ix>> = Vec::new();
    while !cursor.peek().is("]") {
        let first = cursor.peek().span;
        let entry = parse_ix(cursor)?;
        it.push(At { it: entry, span: since(cursor, first) });
        if !cursor.eat(",") {
            break;
        }
    }
    if !cursor.eat("]") {
        return Err(cursor.expected("`,` or `]`").into());
    }
    Ok(At { it, span: since(cursor, start) })
}

/// `[1, 2]` or `[[1, 2], [3, 4]]`
fn pairs(cursor: &mut Cursor<'_>) -> Evaluated<Vec<At<[i64; 2]>>> {
    if !(cursor.peek().is("[") && cursor.peek_at(1).is("[")) {
        return Ok(vec![pair(cursor)?]);
    }
    cursor.take();
    let mut all = vec![pair(cursor)?];
    while cursor.eat(",") {
        all.push(pair(cursor)?);
    }
    punct(cursor, "]")?;
    Ok(all)
}

fn pair(cursor: &mut Cursor<'_>) -> Evaluated<At<[i64; 2]>> {
    let start = cursor.peek().span;
    punct(cursor, "[")?;
    let (one, _) = cursor.expect_int("the position of a dimension")?;
    punct(cursor, ",")?;
    let (two, _) = cursor.expect_int("the position of a dimension")?;
    punct(cursor, "]")?;
    Ok(At { it: [one, two], span: since(cursor, start) })
}

fn loop_expression(cursor: &mut Cursor<'_>, op: At<LoopOp>) -> Evaluated<LoopExpr> {
    let usage = |error: Diagnostic| {
        let usage = op.it.usage().replace(" or ", "` or `");
        Box::new(error.help(format!("it is written `{usage}`")))
    };
    let what = if op.it == LoopOp::Build { "the name of a tensor" } else { "the name of a loop" };
    let mut ids = Vec::new();
    for at in 0..op.it.ids() {
        if at > 0 {
            cursor.expect_punct(",").map_err(usage)?;
        }
        ids.push(cursor.expect_name(what).map(|(it, span)| At { it, span }).map_err(usage)?);
    }
    let (meant, optional) = op.it.numbers();
    let mut numbers: Vec<At<i64>> = Vec::new();
    let mut in_list = false;
    while cursor.peek().is(",") {
        cursor.take();
        if !in_list && cursor.eat("[") {
            in_list = true;
        }
        let what = meant.get(numbers.len()).copied().unwrap_or("`)`");
        let start = cursor.peek().span;
        let negative = op.it == LoopOp::Skew && cursor.eat("-");
        let (value, _) = cursor.expect_int(what).map_err(usage)?;
        numbers.push(At { it: if negative { -value } else { value }, span: since(cursor, start) });
        if in_list && cursor.eat("]") {
            in_list = false;
        }
    }
    if in_list {
        return Err(usage(cursor.expected("`,` or `]`")));
    }
    if numbers.len() < meant.len() - optional {
        return Err(usage(cursor.expected(&format!("`,` and {}", meant[numbers.len()]))));
    }
    if let Some(extra) = numbers.get(meant.len()) {
        return Err(usage(wrong(extra.span, format!("`{}` has no such argument", op.it.name()))));
    }
    cursor.expect_punct(")").map_err(usage)?;
    Ok(LoopExpr { op, ids, numbers })
}
