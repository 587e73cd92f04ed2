//! TeIL, a type-safe imperative tensor language (Rink and Castrillon, ARRAY 2019), and its verified core, Core-TeIL:
//! how their text is read (Fig. 5 and 12). What the text means is in [`algebra`](crate::algebra).
//!
//! ```text
//! program  := ["mode" "core"] (alloc | where)* stmt*
//! alloc    := "alloc" ["input"] ["output"] NAME ":" "[" [size ("," size)*] "]"
//! where    := "where" cond ("," cond)*
//! stmt     := NAME "=" expr
//! expr     := NAME | "(" expr ")" | ("add" | "mul" | "prod") expr expr
//!           | red INT expr | ("transp" | "diag" | "contr") INT INT expr
//!           | ("expa" | "proj") INT arg expr
//!           | arg "*" expr | (NAME | "(" expr ")") "^" arg
//! red      := "red+" | "red*" | "redmin" | "redmax"
//! arg      := INT | NAME | "(" size ")"
//! ```
//!
//! `size` and `cond` are those of `certen_index`. In Core-TeIL the positions are left out, `transp` takes one, and
//! there is no `contr`. Reading an expression keeps the operations that wait for operands on a stack of our own, so
//! that depth costs memory, not stack.

use std::collections::HashSet;

use certen_core::ReduceOp;
use certen_index::{Ix, parse_ix, parse_primary};
use certen_syntax::{Code, Cursor, Diagnostic, Diagnostics, FileId, Sources, Span, TokenKind};

use crate::algebra::read::{Grammar, Parsed, Reader, read};
use crate::algebra::{Arith, Decl, Expr, ExprId, Notation, Program};

/// Reads a program. What could not be read is left out, with an error.
pub fn parse(sources: &Sources, file: FileId, diagnostics: &mut Diagnostics) -> Program {
    read::<Teil>(sources, file, diagnostics)
}

/// Which tokens open a parenthesis that a `*` follows: it holds a size, as in `(n + 1) * A`.
#[derive(Default)]
struct Teil {
    factors: Option<HashSet<usize>>,
}

type Parser<'a> = Reader<'a, Teil>;

impl Grammar for Teil {
    const NOTATION: Notation = Notation::Teil;
    const DECLARE: &'static [&'static str] = &["alloc"];

    fn preamble(parser: &mut Parser<'_>) -> Parsed<()> {
        if parser.cursor.peek().word() == Some("mode") && !parser.cursor.peek_at(1).is("=") {
            parser.cursor.take();
            parser.cursor.expect_word("core")?;
            parser.program.notation = Notation::CoreTeil;
        }
        Ok(())
    }

    fn declaration(parser: &mut Parser<'_>, _: &str) -> Parsed<()> {
        let (marker, name, name_span) = parser.marked_name()?;
        parser.cursor.expect_punct("[")?;
        let mut shape = Vec::new();
        if !parser.cursor.peek().is("]") {
            loop {
                shape.push(parser.spanned(parse_ix)?);
                if !parser.cursor.eat(",") {
                    break;
                }
            }
        }
        parser.cursor.expect_punct("]")?;
        parser.program.decls.push(Decl { marker, name, name_span, shape });
        Ok(())
    }

    fn expr(parser: &mut Parser<'_>) -> Parsed<ExprId> {
        parser.expr()
    }
}

/// An operation that waits for operands.
enum Waiting {
    Paren,
    Binary(fn(ExprId, ExprId) -> Expr, Option<ExprId>),
    Red(ReduceOp, i64),
    Pair(fn(i64, i64, ExprId) -> Expr, i64, i64),
    Sized(fn(i64, Ix, ExprId) -> Expr, i64, Ix),
    Scale(Ix),
}

fn transp(i0: i64, i1: i64, e: ExprId) -> Expr {
    Expr::Transp([(i0, i1)].into(), e)
}

fn contr(i0: i64, i1: i64, e: ExprId) -> Expr {
    Expr::Contr([(i0, i1)].into(), e)
}

impl Parser<'_> {
    fn expr(&mut self) -> Parsed<ExprId> {
        let mut stack: Vec<(Waiting, Span)> = Vec::new();
        loop {
            let token = self.cursor.peek();
            if self.at_factor() {
                let factor = parse_primary(&mut self.cursor)?;
                self.cursor.expect_punct("*")?;
                stack.push((Waiting::Scale(factor), token.span));
                continue;
            }
            if token.is("(") {
                self.cursor.take();
                stack.push((Waiting::Paren, token.span));
                continue;
            }
            if let Some(waiting) = self.operation()? {
                stack.push((waiting, token.span));
                continue;
            }
            let (name, span) = match token.kind {
                // The next line begins the next statement: an operand is missing before it.
                _ if self.at_next_stmt() => return Err(Box::new(self.missing_operand(&stack))),
                TokenKind::Name(_) => self.name("an expression")?,
                TokenKind::Int(_) | TokenKind::Float(_) => return Err(Box::new(self.number_as_operand(&stack))),
                _ => return Err(Box::new(self.missing_operand(&stack))),
            };
            let mut done = self.program.add(Expr::Var(name), span);
            done = self.power(done)?;
            // Give the finished expression to what waits for it, as far as that is finished by it.
            loop {
                let end = self.program.span(done);
                let Some((waiting, start)) = stack.pop() else { return Ok(done) };
                let span = start.to(end);
                done = match waiting {
                    Waiting::Paren => {
                        let close = self.cursor.expect_punct(")").map_err(|e| e.also(start, "to close this"))?.span;
                        let done = self.program.add(Expr::Paren(done), start.to(close));
                        self.power(done)?
                    }
                    Waiting::Binary(make, None) => {
                        stack.push((Waiting::Binary(make, Some(done)), start));
                        break;
                    }
                    Waiting::Binary(make, Some(left)) => self.program.add(make(left, done), span),
                    Waiting::Red(op, at) => self.program.add(Expr::Red(op, at, done), span),
                    Waiting::Pair(make, i0, i1) => self.program.add(make(i0, i1, done), span),
                    Waiting::Sized(make, at, size) => self.program.add(make(at, size, done), span),
                    Waiting::Scale(factor) => self.program.add(Expr::Scale(factor, done), span),
                };
            }
        }
    }

    /// Whether a factor and `*` stand here: a number, a name, or a size in parentheses.
    fn at_factor(&mut self) -> bool {
        let token = self.cursor.peek();
        match token.kind {
            TokenKind::Int(_) => self.cursor.peek_at(1).is("*"),
            TokenKind::Name(name) => {
                self.cursor.peek_at(1).is("*") && !Notation::Teil.reserved().contains(&name.as_str())
            }
            TokenKind::Punct("(") => {
                let cursor = self.cursor;
                let factors = self.grammar.factors.get_or_insert_with(|| factors(cursor));
                factors.contains(&cursor.taken())
            }
            _ => false,
        }
    }

    /// `^` and an exponent after a name or a parenthesis, if they stand here.
    fn power(&mut self, base: ExprId) -> Parsed<ExprId> {
        if !self.cursor.eat("^") {
            return Ok(base);
        }
        if self.at_next_stmt() {
            return Err(Box::new(self.cursor.expected("an exponent")));
        }
        let (exponent, end) = self.spanned(parse_primary)?;
        if self.cursor.peek().is("^") {
            let error = self.cursor.expected("one exponent");
            return Err(Box::new(error.help("a power of a power has parentheses, as in `(A ^ 2) ^ 3`")));
        }
        let span = self.program.span(base).to(end);
        Ok(self.program.add(Expr::Power(exponent, base), span))
    }

    /// Takes an operation's word and numbers, if one stands here.
    fn operation(&mut self) -> Parsed<Option<Waiting>> {
        let token = self.cursor.peek();
        let Some(word) = token.word().filter(|word| Notation::Teil.reserved().contains(word)) else { return Ok(None) };
        let core = self.program.notation == Notation::CoreTeil;
        if matches!(word, "alloc" | "where") {
            return Err(Box::new(self.cursor.expected("an expression")));
        }
        self.cursor.take();
        let first = |parser: &mut Self| if core { Ok(1) } else { parser.position(word) };
        Ok(Some(match word {
            "add" => Waiting::Binary(|a, b| Expr::Elem(Arith::Add, a, b), None),
            "mul" => Waiting::Binary(|a, b| Expr::Elem(Arith::Mul, a, b), None),
            "prod" => Waiting::Binary(Expr::Prod, None),
            "red" => {
                let sign = self.cursor.peek();
                let op = match sign.kind {
                    TokenKind::Punct("+") if token.span.touches(sign.span) => ReduceOp::Sum,
                    TokenKind::Punct("*") if token.span.touches(sign.span) => ReduceOp::Prod,
                    _ => return Err(Box::new(self.cursor.expected("`+` or `*`, as in `red+`"))),
                };
                self.cursor.take();
                Waiting::Red(op, first(self)?)
            }
            "redmin" => Waiting::Red(ReduceOp::Min, first(self)?),
            "redmax" => Waiting::Red(ReduceOp::Max, first(self)?),
            "transp" if core => {
                let at = self.position(word)?;
                let next = at.checked_add(1).ok_or_else(|| {
                    Diagnostic::error(Code::E0204, token.span, "this position is larger than any rank")
                })?;
                Waiting::Pair(transp, at, next)
            }
            "transp" => Waiting::Pair(transp, self.position(word)?, self.position(word)?),
            "diag" if core => Waiting::Pair(Expr::Diag, 1, 2),
            "diag" => Waiting::Pair(Expr::Diag, self.position(word)?, self.position(word)?),
            "contr" if core => {
                let error = Diagnostic::error(Code::E0103, token.span, "Core-TeIL has no `contr`");
                return Err(Box::new(error.help("write `red+ (diag e)`, which contracts the first two dimensions")));
            }
            "contr" => Waiting::Pair(contr, self.position(word)?, self.position(word)?),
            "expa" => Waiting::Sized(Expr::Expa, first(self)?, parse_primary(&mut self.cursor)?),
            _ => Waiting::Sized(Expr::Proj, first(self)?, parse_primary(&mut self.cursor)?),
        }))
    }

    fn position(&mut self, word: &str) -> Parsed<i64> {
        let (value, _) = self.cursor.expect_int(&format!("the position of a dimension, a number, for `{word}`"))?;
        Ok(value)
    }

    fn missing_operand(&self, stack: &[(Waiting, Span)]) -> Diagnostic {
        let error = self.cursor.expected("an expression");
        match stack.last() {
            Some((Waiting::Binary(_, Some(_)), span)) => error.also(*span, "this takes two operands"),
            Some((Waiting::Paren, span)) => error.also(*span, "opened here"),
            Some((_, span)) => error.also(*span, "the operand of this"),
            None => error,
        }
    }

    fn number_as_operand(&self, stack: &[(Waiting, Span)]) -> Diagnostic {
        let error = self.missing_operand(stack);
        match (self.program.notation, stack.last()) {
            (Notation::CoreTeil, Some((Waiting::Red(..) | Waiting::Pair(..) | Waiting::Sized(..), _))) => {
                error.note("in Core-TeIL operations work on the first dimension and take no position")
            }
            _ => error.note("TeIL has no number literals: pass a constant as an input of type []"),
        }
    }
}

/// The places of the parentheses, from a place on, after whose end a `*` stands.
fn factors(cursor: Cursor<'_>) -> HashSet<usize> {
    let mut found = HashSet::new();
    let mut open = Vec::new();
    let mut rest = cursor;
    while !rest.at_end() {
        let token = rest.peek();
        if token.is("(") {
            open.push(rest.taken());
        } else if token.is(")")
            && let Some(start) = open.pop()
            && rest.peek_at(1).is("*")
        {
            found.insert(start);
        }
        rest.take();
    }
    found
}
