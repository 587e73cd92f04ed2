//! Expressions: operators by precedence climbing, and everything that can be their operand.

use std::mem::{replace, take};

use certen_core::ElemType;
use certen_syntax::{Name, Span, Token, TokenKind};

use super::{BlockOf, Parsed, Parser, is_reserved, slips, wrong};
use crate::ast::{BinaryOp, Block, Expr, ExprKind, FoldOp, Ident, Iterate, Selector, UnaryOp, With, WithOp};

/// How tightly `++` binds.
pub(super) const CONCAT: u8 = BinaryOp::Concat.precedence();
/// How tightly `+` and `-` bind.
pub(super) const SUM: u8 = BinaryOp::Add.precedence();

/// The operator that a token is, except for the power, whose right side is not an expression.
fn operator(token: Token) -> Option<BinaryOp> {
    let TokenKind::Punct(punct) = token.kind else { return None };
    BinaryOp::ALL.into_iter().find(|op| *op != BinaryOp::Pow && op.symbol() == punct)
}

fn spanned(kind: ExprKind, span: Span) -> Expr {
    Expr { kind, span }
}

impl Parser<'_> {
    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        self.nested(0)
    }

    /// An expression in another one, with operators that bind at least so tightly.
    pub(super) fn nested(&mut self, tightness: u8) -> Parsed<Expr> {
        let at = self.cursor.peek().span;
        self.enter(at)?;
        let in_step_bound = take(&mut self.nesting.in_step_bound);
        let expr = self.binary(tightness)?;
        self.nesting.in_step_bound = in_step_bound;
        self.nesting.level -= 1;
        Ok(expr)
    }

    /// Operators that bind at least so tightly, and their operands.
    fn binary(&mut self, tightness: u8) -> Parsed<Expr> {
        self.framed(|parser| parser.operators(tightness))
    }

    fn operators(&mut self, tightness: u8) -> Parsed<Expr> {
        let mut left = self.unary()?;
        while let Some(op) = operator(self.cursor.peek()).filter(|op| op.precedence() >= tightness) {
            let token = self.cursor.take();
            let right = self.binary(op.precedence() + 1)?;
            self.grow(token.span)?;
            let span = left.span.to(right.span);
            left = spanned(ExprKind::Binary(op, Box::new(left), Box::new(right)), span);
            let next = self.cursor.peek();
            if op.is_comparison() && operator(next).is_some_and(BinaryOp::is_comparison) {
                let error = wrong(next.span, "comparisons are not chained").also(token.span, "the first comparison");
                return Err(error.help("write `a < b && b < c`; only a generator can say `a <= i < b`").into());
            }
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parsed<Expr> {
        let token = self.cursor.peek();
        let op = match token.kind {
            TokenKind::Punct("-") => UnaryOp::Neg,
            TokenKind::Punct("!") => UnaryOp::Not,
            _ => return self.power(),
        };
        self.cursor.take();
        self.enter(token.span)?;
        let operand = self.unary()?;
        self.nesting.level -= 1;
        self.grow(token.span)?;
        let span = token.span.to(operand.span);
        Ok(spanned(ExprKind::Unary(op, Box::new(operand)), span))
    }

    /// `x` or `x^2`
    fn power(&mut self) -> Parsed<Expr> {
        let base = self.postfix()?;
        let operator = self.cursor.peek();
        if !self.cursor.eat("^") {
            return Ok(base);
        }
        let minus = self.cursor.peek();
        let negative = self.cursor.eat("-");
        let token = self.cursor.peek();
        let kind = match token.kind {
            TokenKind::Int(value) => ExprKind::Int(value),
            TokenKind::Float(value) => ExprKind::Float(value),
            _ => {
                let error = self.cursor.expected("a number as the exponent");
                return Err(error.help("`pow(a, b)` takes any exponent").into());
            }
        };
        self.cursor.take();
        let mut exponent = spanned(kind, token.span);
        if negative {
            exponent = spanned(ExprKind::Unary(UnaryOp::Neg, Box::new(exponent)), minus.span.to(token.span));
        }
        if self.cursor.peek().is("^") {
            let error = self.cursor.expected("one exponent");
            return Err(error.help("a power of a power has parentheses, as in `(x^2)^3`").into());
        }
        self.nesting.height = self.nesting.height.max(1);
        self.grow(operator.span)?;
        let span = base.span.to(exponent.span);
        Ok(spanned(ExprKind::Binary(BinaryOp::Pow, Box::new(base), Box::new(exponent)), span))
    }

    /// An operand and the selections after it.
    fn postfix(&mut self) -> Parsed<Expr> {
        let mut expr = self.primary()?;
        while self.cursor.peek().is("[") {
            let open = self.cursor.take().span;
            let selectors = self.selectors(open)?;
            self.grow(open)?;
            let span = self.since(expr.span);
            expr = spanned(ExprKind::Select(Box::new(expr), selectors), span);
        }
        Ok(expr)
    }

    fn selectors(&mut self, open: Span) -> Parsed<Vec<Selector>> {
        let mut selectors = Vec::new();
        let mut dots: Option<Span> = None;
        loop {
            let token = self.cursor.peek();
            if token.is("...")
                && let Some(first) = dots.replace(token.span)
            {
                let error = wrong(token.span, "a selection can hold one `...`");
                return Err(error.also(first, "the first one").into());
            }
            selectors.push(self.selector()?);
            if !self.cursor.eat(",") {
                break;
            }
        }
        self.close("]", "`,` or ", open)?;
        Ok(selectors)
    }

    fn selector(&mut self) -> Parsed<Selector> {
        let token = self.cursor.peek();
        let at_end = |parser: &Self| parser.cursor.peek().is(",") || parser.cursor.peek().is("]");
        match token.kind {
            TokenKind::Punct(".") => return Ok(Selector::Dot(self.cursor.take().span)),
            TokenKind::Punct("...") => return Ok(Selector::Dots(self.cursor.take().span)),
            TokenKind::Punct("..") => {
                self.cursor.take();
                if at_end(self) {
                    let error = wrong(token.span, "this slice has no end");
                    return Err(error.help("write `.` for all of one dimension, `...` for all of several").into());
                }
                let upper = self.expr()?;
                return Ok(Selector::Slice(None, Some(upper), self.since(token.span)));
            }
            TokenKind::Punct(":") => return Err(slips::colon_in_selection(&self.cursor).into()),
            TokenKind::Punct("]" | ",") => return self.unexpected("an index"),
            _ => {}
        }
        let lower = self.expr()?;
        if self.cursor.peek().is(":") {
            return Err(slips::colon_in_selection(&self.cursor).into());
        }
        if !self.cursor.eat("..") {
            return Ok(Selector::At(lower));
        }
        let upper = if at_end(self) { None } else { Some(self.expr()?) };
        let span = self.since(lower.span);
        Ok(Selector::Slice(Some(lower), upper, span))
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let token = self.cursor.peek();
        let start = token.span;
        let kind = match token.kind {
            TokenKind::Int(value) => self.literal(ExprKind::Int(value)),
            TokenKind::Float(value) => self.literal(ExprKind::Float(value)),
            TokenKind::Text(text) => self.literal(ExprKind::Text(text.as_str().to_owned())),
            TokenKind::Name(name) => self.word(name, start)?,
            TokenKind::Punct("(") => {
                self.cursor.take();
                let inner = self.expr()?;
                if self.cursor.peek().is(",") {
                    let error = wrong(self.cursor.peek().span, "several values in parentheses");
                    let help = "only a function or an iteration gives several values, at its end";
                    return Err(error.also(start, "in these parentheses").help(help).into());
                }
                self.close(")", "", start)?;
                self.grow(start)?;
                ExprKind::Paren(Box::new(inner))
            }
            TokenKind::Punct("[") => {
                self.cursor.take();
                let list = self.list("]", start, Self::expr)?;
                self.grow(start)?;
                ExprKind::List(list)
            }
            TokenKind::Punct("{") if self.pattern_stands_at(1) => {
                self.cursor.take();
                let partitions = self.partitions(start)?;
                self.grow(start)?;
                ExprKind::Comprehension(partitions)
            }
            TokenKind::Punct("{") => ExprKind::Block(Box::new(self.block(BlockOf::One)?)),
            _ => return self.unexpected("an expression"),
        };
        Ok(spanned(kind, self.since(start)))
    }

    fn literal(&mut self, kind: ExprKind) -> ExprKind {
        self.cursor.take();
        kind
    }

    /// What a word begins.
    fn word(&mut self, name: Name, start: Span) -> Parsed<ExprKind> {
        let word = name.as_str();
        let next = self.cursor.peek_at(1);
        let callable = !is_reserved(word) || word.parse::<ElemType>().is_ok();
        if callable && next.is("(") && !(self.nesting.in_step_bound && self.state_stands_at(2)) {
            self.cursor.take();
            return self.call(Ident { name, span: start });
        }
        match word {
            "true" => Ok(self.literal(ExprKind::Bool(true))),
            "false" => Ok(self.literal(ExprKind::Bool(false))),
            "if" => self.conditional(start),
            "with" => self.with(start),
            "iterate" => self.iterate(start),
            _ if is_reserved(word) => Err(slips::reserved(&self.cursor, "an expression").into()),
            _ => {
                slips::no_operand(&self.cursor)?;
                Ok(self.literal(ExprKind::Name(name)))
            }
        }
    }

    /// Whether `NAME =` stands so far ahead.
    fn state_stands_at(&self, ahead: usize) -> bool {
        self.cursor.peek_at(ahead).word().is_some() && self.cursor.peek_at(ahead + 1).is("=")
    }

    /// The arguments of a call, those with names after the others.
    fn call(&mut self, function: Ident) -> Parsed<ExprKind> {
        let open = self.expect("(")?;
        let mut args = Vec::new();
        let mut named: Vec<(Ident, Expr)> = Vec::new();
        while !self.cursor.peek().is(")") {
            let token = self.cursor.peek();
            if self.state_stands_at(0) {
                if args.is_empty() {
                    let error = wrong(token.span, "an argument with a name stands after those without");
                    return Err(match token.word() {
                        Some("axis") => error.help("write the tensor first, as in `sum(x, axis = 0)`"),
                        _ => error.help("if a comparison is meant, write `==`"),
                    }
                    .into());
                }
                let name = self.name("the name of an argument")?;
                self.expect("=")?;
                named.push((name, self.expr()?));
            } else if let Some((name, _)) = named.last() {
                let error = wrong(token.span, "an argument without a name stands before those with one");
                return Err(error.also(name.span, "an argument with a name").into());
            } else {
                args.push(self.expr()?);
            }
            if !self.cursor.eat(",") {
                break;
            }
        }
        self.close(")", "`,` or ", open)?;
        if self.cursor.peek().is("(") && !self.nesting.in_step_bound {
            let error = self.cursor.expected("an operator");
            return Err(error.note("the value of a call is a tensor, not a function").into());
        }
        self.grow(open)?;
        Ok(ExprKind::Call(function, args, named))
    }

    /// `if c { e } else { e }`
    fn conditional(&mut self, start: Span) -> Parsed<ExprKind> {
        self.cursor.take();
        let condition = self.expr()?;
        let then = self.block(BlockOf::One)?;
        if !self.cursor.eat_word("else") {
            return Err(slips::no_else(&self.cursor, start).into());
        }
        let next = self.cursor.peek();
        let otherwise = if next.word() == Some("if") {
            self.enter(next.span)?;
            let kind = self.framed(|parser| parser.conditional(next.span))?;
            self.nesting.level -= 1;
            let span = self.since(next.span);
            Block { lets: Vec::new(), results: vec![spanned(kind, span)], span }
        } else {
            self.block(BlockOf::One)?
        };
        self.grow(start)?;
        Ok(ExprKind::If(Box::new(condition), Box::new(then), Box::new(otherwise)))
    }

    /// `with { (lo <= iv < hi) : e; } : genarray(shape, default)`
    fn with(&mut self, start: Span) -> Parsed<ExprKind> {
        self.cursor.take();
        let open = self.expect("{")?;
        let mut generators = Vec::new();
        while !self.cursor.peek().is("}") {
            generators.push(self.with_generator()?);
            if !self.cursor.eat(";") {
                break;
            }
        }
        self.close("}", "`;` or ", open)?;
        if !self.cursor.eat(":") {
            let error = slips::unexpected(&self.cursor, "`:` and what the with-loop makes");
            return Err(error.help("write `: genarray(shape, default)`, `: modarray(x)` or `: fold(+, 0)`").into());
        }
        let operation = self.with_operation()?;
        self.grow(start)?;
        Ok(ExprKind::With(Box::new(With { generators, operation })))
    }

    fn with_operation(&mut self) -> Parsed<WithOp> {
        let Some(word @ ("genarray" | "modarray" | "fold")) = self.cursor.peek().word() else {
            return self.unexpected("`genarray`, `modarray` or `fold`");
        };
        self.cursor.take();
        let open = self.expect("(")?;
        let operation = match word {
            "genarray" => {
                let shape = self.expr()?;
                let default = if self.cursor.eat(",") { Some(self.expr()?) } else { None };
                WithOp::Genarray(shape, default)
            }
            "modarray" => WithOp::Modarray(self.expr()?),
            _ => {
                let op = self.fold_op()?;
                self.expect(",")?;
                WithOp::Fold(op, self.expr()?)
            }
        };
        self.close(")", "", open)?;
        Ok(operation)
    }

    fn fold_op(&mut self) -> Parsed<FoldOp> {
        let op = match self.cursor.peek().kind {
            TokenKind::Punct("+") => FoldOp::Sum,
            TokenKind::Punct("*") => FoldOp::Prod,
            TokenKind::Punct("&&") => FoldOp::All,
            TokenKind::Punct("||") => FoldOp::Any,
            _ => {
                let function = self.name("an operator (`+`, `*`, `min`, `max`, `&&`, `||`) or a function")?;
                return Ok(match function.name.as_str() {
                    "min" => FoldOp::Min,
                    "max" => FoldOp::Max,
                    _ => FoldOp::Function(function),
                });
            }
        };
        self.cursor.take();
        Ok(op)
    }

    /// `iterate k times u = e { e }`, `iterate t < k (u = e, v = e) { (e, e) }`
    fn iterate(&mut self, start: Span) -> Parsed<ExprKind> {
        self.cursor.take();
        let (step, times);
        if self.cursor.peek().word().is_some() && self.cursor.peek_at(1).is("<") {
            step = Some(self.name("the name of the step")?);
            self.cursor.take();
            let at = self.cursor.peek().span;
            self.enter(at)?;
            let around = replace(&mut self.nesting.in_step_bound, true);
            times = self.binary(CONCAT)?;
            self.nesting.in_step_bound = around;
            self.nesting.level -= 1;
        } else {
            step = None;
            times = self.nested(CONCAT)?;
            if !self.cursor.eat_word("times") {
                let error = slips::unexpected(&self.cursor, "`times`");
                return Err(error.help("`iterate k times u = u0 { … }` or `iterate t < k u = u0 { … }`").into());
            }
        }
        let token = self.cursor.peek();
        let state = |parser: &mut Self| {
            let name = parser.name("the name of a state")?;
            parser.expect("=")?;
            Ok((name, parser.expr()?))
        };
        let states = if self.cursor.eat("(") { self.list(")", token.span, state)? } else { vec![state(self)?] };
        if states.is_empty() {
            return Err(wrong(self.since(token.span), "an iteration has at least one state").into());
        }
        let body = self.block(BlockOf::Several)?;
        self.grow(start)?;
        Ok(ExprKind::Iterate(Box::new(Iterate { step, times, states, body })))
    }
}
