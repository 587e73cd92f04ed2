//! The model language (Rink, "Modeling of languages for tensor manipulation", 2018): how its text is read (Fig. 1, with
//! the markers of Sec. 5, type names, several pairs at once, and symbolic sizes). What the text means is in
//! [`algebra`](crate::algebra), which it shares with TeIL.
//!
//! ```text
//! program := (type | decl | where)* stmt*
//! type    := "type" NAME ":" shape
//! decl    := "var" ["input"] ["output"] NAME ":" (shape | NAME)
//! shape   := "[" (arg [","])* "]"
//! where   := "where" cond ("," cond)*
//! stmt    := NAME "=" expr
//! expr    := primary (("+" | "-" | "*" | "/" | "#") primary | ("." | "^") pairs)*
//! primary := NAME | "(" expr ")"
//! pairs   := "[" pair "]" | "[" ("[" pair "]" [","])+ "]"
//! pair    := INT [","] INT
//! arg     := INT | NAME | "(" size ")"
//! ```
//!
//! All operators associate to the left and none binds tighter than another (Sec. 3.1); where a reader would expect one
//! to, a warning says so. Parentheses and operators that wait for an operand are on a stack of our own, so that depth
//! costs memory, not stack.

use std::collections::HashMap;

use certen_index::{Ix, parse_primary};
use certen_syntax::{Code, Diagnostic, Diagnostics, FileId, Name, Sources, Span, TokenKind};

use crate::algebra::read::{Grammar, Parsed, Reader, read};
use crate::algebra::{Arith, Decl, Expr, ExprId, Notation, Pair, Program};

/// Reads a program. What could not be read is left out, with an error.
pub fn parse(sources: &Sources, file: FileId, diagnostics: &mut Diagnostics) -> Program {
    read::<Model>(sources, file, diagnostics)
}

type Shape = Vec<(Ix, Span)>;

/// The types that have names so far: where each is declared, and its shape if that could be read.
#[derive(Default)]
struct Model {
    types: HashMap<Name, (Span, Option<Shape>)>,
}

type Parser<'a> = Reader<'a, Model>;

impl Grammar for Model {
    const NOTATION: Notation = Notation::Model;
    const DECLARE: &'static [&'static str] = &["var", "type"];

    fn declaration(parser: &mut Parser<'_>, word: &str) -> Parsed<()> {
        if word == "type" { parser.type_name() } else { parser.var() }
    }

    fn expr(parser: &mut Parser<'_>) -> Parsed<ExprId> {
        parser.expr()
    }

    fn end(parser: &mut Parser<'_>) {
        parser.check_type_names();
    }
}

/// What waits for an expression, and where it stands.
enum Waiting {
    /// A parenthesis, in a chain of operators that bind like this so far.
    Paren(Binding),
    /// An operator with its left operand.
    Operator(fn(ExprId, ExprId) -> Expr, ExprId),
}

/// How tightly a reader expects an operator to bind.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Binding {
    Sum,
    Product,
    Tensor,
}

impl Parser<'_> {
    fn type_name(&mut self) -> Parsed<()> {
        let (name, span) = self.name("the name of a type")?;
        let first = self.grammar.types.get(&name).map(|(first, _)| *first);
        // A type whose shape cannot be read is known, so that its uses give no second error.
        self.grammar.types.entry(name).or_insert((span, None));
        self.cursor.expect_punct(":")?;
        let shape = self.shape()?;
        if let Some(first) = first {
            let error = Diagnostic::error(Code::E0202, span, format!("the type `{name}` is declared twice"));
            return Err(Box::new(error.label("declared again").also(first, "first declared here")));
        }
        self.grammar.types.insert(name, (span, Some(shape)));
        Ok(())
    }

    fn var(&mut self) -> Parsed<()> {
        let (marker, name, name_span) = self.marked_name()?;
        let shape = if self.cursor.peek().word().is_some() {
            let (ty, span) = self.name("a shape `[…]` or the name of a type")?;
            match self.grammar.types.get(&ty) {
                Some((_, Some(shape))) => shape.clone(),
                Some((_, None)) => return Ok(()),
                None => {
                    let error = Diagnostic::error(Code::E0201, span, format!("there is no type `{ty}` above"));
                    return Err(Box::new(error.label("not declared").help(format!("declare it: `type {ty} : [..]`"))));
                }
            }
        } else {
            self.shape()?
        };
        self.program.decls.push(Decl { marker, name, name_span, shape });
        Ok(())
    }

    fn shape(&mut self) -> Parsed<Shape> {
        let open = match self.cursor.expect_punct("[") {
            Ok(open) => open.span,
            Err(_) => return Err(Box::new(self.cursor.expected("a shape `[…]` or the name of a type"))),
        };
        let mut shape = Vec::new();
        while !self.cursor.eat("]") {
            shape.push(self.spanned(parse_primary).map_err(|error| error.also(open, "in this shape"))?);
            let next = self.cursor.peek();
            if ["+", "-", "*", "/"].iter().any(|sign| next.is(sign)) {
                let error = self.cursor.expected("a size or `]`");
                return Err(Box::new(error.help("a size that is computed stands in parentheses, as in `[(n + 1) m]`")));
            }
            self.cursor.eat(",");
        }
        Ok(shape)
    }

    /// A type name is not the name of a size or a tensor.
    fn check_type_names(&mut self) {
        if self.grammar.types.is_empty() {
            return;
        }
        let mut clashes: HashMap<Name, (Span, &str)> = HashMap::new();
        for decl in &self.program.decls {
            if self.grammar.types.contains_key(&decl.name) {
                clashes.entry(decl.name).or_insert((decl.name_span, "a tensor"));
            }
            for (size, span) in &decl.shape {
                let mut names = Default::default();
                size.collect_names(&mut names);
                for name in names.into_iter().filter(|name| self.grammar.types.contains_key(name)) {
                    clashes.entry(name).or_insert((*span, "a size"));
                }
            }
        }
        for (name, (span, what)) in clashes {
            let error = Diagnostic::error(Code::E0211, span, format!("`{name}` is the name of {what} and of a type"));
            let declared = self.grammar.types.get(&name).map_or(span, |(declared, _)| *declared);
            self.diagnostics.push(error.also(declared, "declared as a type here"));
        }
    }

    fn expr(&mut self) -> Parsed<ExprId> {
        let mut stack: Vec<(Waiting, Span)> = Vec::new();
        // The loosest operator of the chain that is being read; nothing has been said about it yet.
        let mut loosest = Binding::Tensor;
        loop {
            let token = self.cursor.peek();
            if token.is("(") {
                self.cursor.take();
                stack.push((Waiting::Paren(loosest), token.span));
                loosest = Binding::Tensor;
                continue;
            }
            let mut done = self.primary(&stack)?;
            // The primary is the right operand of what waits for it; after it, operators and parentheses may follow.
            loop {
                let operator_waits = |(waiting, _): &mut (Waiting, Span)| matches!(waiting, Waiting::Operator(..));
                if let Some((Waiting::Operator(make, left), _)) = stack.pop_if(operator_waits) {
                    let span = self.program.span(left).to(self.program.span(done));
                    done = self.program.add(make(left, done), span);
                }
                done = self.postfix(done, &mut loosest)?;
                let next = self.cursor.peek();
                if let Some((make, binding)) = operator(next.kind) {
                    self.cursor.take();
                    self.warn_of_precedence(done, next.span, binding, &mut loosest);
                    stack.push((Waiting::Operator(make, done), next.span));
                    break;
                }
                let Some((Waiting::Paren(outer), start)) = stack.pop() else { return Ok(done) };
                let close = self.cursor.expect_punct(")").map_err(|error| error.also(start, "to close this"))?.span;
                done = self.program.add(Expr::Paren(done), start.to(close));
                loosest = outer;
            }
        }
    }

    fn primary(&mut self, stack: &[(Waiting, Span)]) -> Parsed<ExprId> {
        let missing = |error: Diagnostic| match stack.last() {
            Some((Waiting::Operator(..), span)) => error.also(*span, "the right operand of this"),
            Some((Waiting::Paren(_), span)) => error.also(*span, "opened here"),
            None => error,
        };
        let expected = self.cursor.expected("an expression");
        match self.cursor.peek().kind {
            // The next line begins the next statement: an operand is missing before it.
            TokenKind::Name(_) if self.at_next_stmt() => Err(Box::new(missing(expected))),
            TokenKind::Name(_) => {
                let (name, span) = self.name("an expression")?;
                Ok(self.program.add(Expr::Var(name), span))
            }
            TokenKind::Int(_) | TokenKind::Float(_) => {
                let note = "the model language has no number literals: pass a constant as an input of type []";
                Err(Box::new(missing(expected).note(note)))
            }
            TokenKind::Punct("-") => {
                Err(Box::new(missing(expected).note("the model language has no negation: subtract from a zero input")))
            }
            _ => Err(Box::new(missing(expected))),
        }
    }

    /// Contractions and transpositions after an expression.
    fn postfix(&mut self, mut done: ExprId, loosest: &mut Binding) -> Parsed<ExprId> {
        loop {
            let token = self.cursor.peek();
            let make = match token.kind {
                TokenKind::Punct(".") => Expr::Contr,
                TokenKind::Punct("^") => Expr::Transp,
                _ => return Ok(done),
            };
            self.cursor.take();
            self.warn_of_precedence(done, token.span, Binding::Tensor, loosest);
            let (pairs, end) = self.pairs()?;
            let span = self.program.span(done).to(end);
            done = self.program.add(make(pairs.into(), done), span);
        }
    }

    fn pairs(&mut self) -> Parsed<(Vec<Pair>, Span)> {
        self.cursor.expect_punct("[").map_err(|error| error.note("positions stand in brackets, as in `. [2 3]`"))?;
        let mut pairs = Vec::new();
        if !self.cursor.peek().is("[") {
            pairs.push(self.pair()?);
            return Ok((pairs, self.cursor.expect_punct("]")?.span));
        }
        while self.cursor.eat("[") {
            pairs.push(self.pair()?);
            self.cursor.expect_punct("]")?;
            self.cursor.eat(",");
        }
        Ok((pairs, self.cursor.expect_punct("]")?.span))
    }

    fn pair(&mut self) -> Parsed<Pair> {
        let what = "the position of a dimension, a number";
        let (first, _) = self.cursor.expect_int(what)?;
        self.cursor.eat(",");
        let (second, _) = self.cursor.expect_int(what)?;
        Ok((first, second))
    }

    /// Warns where an operator that usually binds tighter takes a chain of looser ones as its left operand.
    fn warn_of_precedence(&mut self, left: ExprId, span: Span, binding: Binding, loosest: &mut Binding) {
        if binding > *loosest {
            let text = "operators have no precedence: this one takes everything to its left";
            let warning = Diagnostic::warning(Code::W0305, span, text);
            let warning = warning.also(self.program.span(left), "its left operand");
            self.diagnostics.push(warning.help("parentheses say what is meant"));
            *loosest = Binding::Tensor;
            return;
        }
        *loosest = binding;
    }
}

type Operator = (fn(ExprId, ExprId) -> Expr, Binding);

fn operator(token: TokenKind) -> Option<Operator> {
    let TokenKind::Punct(sign) = token else { return None };
    Some(match sign {
        "+" => (|a, b| Expr::Elem(Arith::Add, a, b), Binding::Sum),
        "-" => (|a, b| Expr::Elem(Arith::Sub, a, b), Binding::Sum),
        "*" => (|a, b| Expr::Elem(Arith::Mul, a, b), Binding::Product),
        "/" => (|a, b| Expr::Elem(Arith::Div, a, b), Binding::Product),
        "#" => (Expr::Prod, Binding::Tensor),
        _ => return None,
    })
}
