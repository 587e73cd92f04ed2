//! Core from text: the inverse of its printer.
//!
//! ```text
//! program := "core" NAME
//!            ("size" NAME ("," NAME)*)*
//!            ("where" cond ("," cond)*)*
//!            ("input" NAME ":" ELEM ("[" ixs "]")?)*
//!            (NAME "=" expr)*
//!            ("output" NAME ("=" NAME)?)*
//!
//! expr    := binder NAME "in" ix ".." ix ("where" cond)? "." expr        `where` only in reductions
//!          | "if" cond "then" expr "else" expr
//!          | "let" NAME "=" expr "in" expr
//!          | infix
//! binder  := "gen" | "sum" | "product" | "minimum" | "maximum" | "all" | "any"
//! infix   := operands with, loosest first:  ||   &&   == != < <= > >=   + -   * /   prefix - and !
//!            and selections after an operand:  operand "[" ixs "]"
//! primary := NAME | "@" NAME                                  a tensor; "@" if its name begins an expression
//!          | INT | FLOAT | "true" | "false"                   i64, f64, bool
//!          | ELEM "(" number ")"
//!          | "table" "." ELEM "[" INT ("," INT)* "]" "(" (number ("," number)*)? ")"      row by row
//!          | "index" "." ELEM "(" ix ")"  |  "undefined" "." ELEM  |  "cast" "." ELEM "(" expr ")"
//!          | "guard" "(" cond "," expr ")"
//!          | "split" "(" INT "," expr ")"
//!          | ("pad_l" | "pad_r" | "trunc_l" | "trunc_r") "(" ix "," expr ")"
//!          | ("flatten" | "transpose" | UNARY) "(" expr ")"
//!          | ("concat" | BINARY) "(" expr "," expr ")"
//!          | ("select" | "fma") "(" expr "," expr "," expr ")"
//!          | "iterate" steps "(" states ")" "then" "(" states ")" "give" NAME
//!          | "(" expr ")"
//! steps   := NAME "in" "0" ".." ix  |  ix "times"              the step has a name in the next values, or none
//! states  := NAME "=" expr ("," NAME "=" expr)*               the same names in the same order, first and next values
//! number  := "-"? (INT | FLOAT | "inf" | "nan" | "min")  |  "true"  |  "false"
//! ixs     := (ix ("," ix)*)?
//! ```
//!
//! `ix` and `cond` are those of `certen-index`; UNARY and BINARY are the operations whose names are words. Operators
//! group to the left; `a > b` is read as `b < a`. An operand that is a binder, `if` or `let` extends as far right as it
//! can. Where an index and where a tensor may stand is decided by the grammar, so the two never compete for a name.
//!
//! Expressions are read by shifting and reducing over an explicit stack: depth costs memory in proportion, never stack.
//! Guarantees: what is read is well-typed, and a program is well-formed ([`Program::check`]); anything else is an error
//! with its place, syntax as E0103, meaning as E0701.

mod term;

use std::collections::{HashMap, HashSet};

use certen_index::{Cond, Facts, parse_cond, parse_ix};
use certen_syntax::{Code, Cursor, Diagnostic, Diagnostics, FileId, Name, Sources, Span, lex};

use crate::program::{Binding, Parameter, Program};
use crate::term::Terms;
use crate::types::{ElemType, TensorType};
pub use term::TermParser;

fn ill_formed(span: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(Code::E0701, span, message)
}

/// Reads a program of Core.
///
/// # Errors
/// What the lexer found, and the first mistake after that.
pub fn parse_program(sources: &Sources, file: FileId) -> Result<Program, Diagnostics> {
    let Some(source) = sources.get(file) else {
        return Err(Diagnostic::error(Code::E0603, None, "there is no such source").into());
    };
    let mut diagnostics = Diagnostics::new();
    let tokens = lex(source, file, &mut diagnostics);
    match program(&mut Cursor::new(&tokens)) {
        Ok(program) if !diagnostics.has_errors() => Ok(program),
        Ok(_) => Err(diagnostics),
        Err(error) => {
            diagnostics.push(error);
            Err(diagnostics)
        }
    }
}

fn program(cursor: &mut Cursor<'_>) -> Result<Program, Diagnostic> {
    cursor.expect_word("core")?;
    let (name, name_span) = cursor.expect_name("the program's name")?;
    let mut sizes = Vec::new();
    while declares(cursor, "size") {
        sizes.extend(separated(cursor, |cursor| Ok(cursor.expect_name("a size")?.0))?);
    }
    let mut facts = Vec::new();
    while declares(cursor, "where") {
        facts.extend(separated(cursor, parse_cond)?);
    }
    let mut known = Facts::new();
    facts.iter().for_each(|fact| known.assume(fact.clone()));
    let mut inputs = Vec::new();
    while declares(cursor, "input") {
        let (name, _) = cursor.expect_name("an input's name")?;
        cursor.expect_punct(":")?;
        inputs.push(Parameter { name, ty: tensor_type(cursor)? });
    }
    // No dimension of an input is negative.
    inputs.iter().flat_map(|p| p.ty.shape.iter()).for_each(|size| known.assume(Cond::Ge(size.clone())));
    let mut terms = Terms::new(known);
    let mut bindings = Vec::new();
    let indices: HashSet<Name> = sizes.iter().copied().collect();
    let mut tensors: HashMap<Name, TensorType> = inputs.iter().map(|p| (p.name, p.ty.clone())).collect();
    while cursor.peek_at(1).is("=") {
        let (name, _) = cursor.expect_name("a name")?;
        cursor.expect_punct("=")?;
        let (tensor, index) = (|name| tensors.get(&name).cloned(), |name| indices.contains(&name));
        let term = TermParser::new(&mut terms, &tensor, &index).parse(cursor)?;
        tensors.insert(name, terms.ty(term).clone());
        bindings.push(Binding { name, term });
    }
    let mut outputs = Vec::new();
    while cursor.eat_word("output") {
        let (name, _) = cursor.expect_name("an output's name")?;
        let shown = if cursor.eat("=") { cursor.expect_name("what the output shows")?.0 } else { name };
        outputs.push((name, shown));
    }
    if !cursor.at_end() {
        let place =
            if outputs.is_empty() { "a binding, `output` or" } else { "`output` (bindings stand before it) or" };
        return Err(cursor.expected(&format!("{place} the end of the file")));
    }
    let program = Program { name, sizes, facts, inputs, bindings, outputs, terms };
    program.check().map_err(|error| ill_formed(name_span, error.to_string()))?;
    Ok(program)
}

/// Takes the word that begins a declaration; a binding may have that word as its name.
fn declares(cursor: &mut Cursor<'_>, word: &str) -> bool {
    !cursor.peek_at(1).is("=") && cursor.eat_word(word)
}

/// Reads one or more things with commas between them.
fn separated<T>(
    cursor: &mut Cursor<'_>,
    one: impl Fn(&mut Cursor<'_>) -> Result<T, Diagnostic>,
) -> Result<Vec<T>, Diagnostic> {
    let mut list = vec![one(cursor)?];
    while cursor.eat(",") {
        list.push(one(cursor)?);
    }
    Ok(list)
}

/// Reads `[`, things with commas between them, perhaps none, and `]`.
fn bracketed<T>(
    cursor: &mut Cursor<'_>,
    one: impl Fn(&mut Cursor<'_>) -> Result<T, Diagnostic>,
) -> Result<Vec<T>, Diagnostic> {
    cursor.expect_punct("[")?;
    let list = if cursor.peek().is("]") { Vec::new() } else { separated(cursor, one)? };
    cursor.expect_punct("]").map(|_| list)
}

fn elem_type(cursor: &mut Cursor<'_>) -> Result<ElemType, Diagnostic> {
    let elem = cursor.peek().word().and_then(|word| word.parse().ok());
    let elem = elem.ok_or_else(|| cursor.expected("an element type such as `f64`"))?;
    cursor.take();
    Ok(elem)
}

fn tensor_type(cursor: &mut Cursor<'_>) -> Result<TensorType, Diagnostic> {
    let elem = elem_type(cursor)?;
    let shape = if cursor.peek().is("[") { bracketed(cursor, parse_ix)? } else { Vec::new() };
    Ok(TensorType::new(elem, shape))
}
