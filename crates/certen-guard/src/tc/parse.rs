//! The text of definitions.

use certen_core::ElemType;
use certen_syntax::{Code, Cursor, Diagnostic, Name, Span, Token, TokenKind};

use crate::index::Index;
use crate::kernel::{Op, Reduction};
use crate::text::{Depth, Read, number, unsupported};

/// A definition.
pub(super) struct Definition {
    pub name: Name,
    pub span: Span,
    pub parameters: Vec<Parameter>,
    pub results: Vec<(Name, Span)>,
    pub statements: Vec<Assignment>,
}

/// A tensor that is given.
pub(super) struct Parameter {
    pub name: Name,
    pub span: Span,
    pub elem: ElemType,
    pub shape: Vec<Index>,
}

/// A statement.
pub(super) struct Assignment {
    pub target: Name,
    pub indices: Vec<(Name, Span)>,
    pub span: Span,
    /// The reduction, and whether it begins with its neutral element.
    pub reduction: Option<(Reduction, bool)>,
    pub value: Ex,
    pub bounds: Vec<(Name, Span, Ex, Ex)>,
    /// Accesses that are only there for the ranges.
    pub exists: Vec<Ex>,
}

/// An expression.
pub(super) enum Ex {
    Number(f64, Span),
    Int(i64),
    Name(Name, Span),
    /// A size of a tensor: `A.0`.
    Size(Name, usize, Span),
    /// An access or a function.
    Apply(Name, Vec<Ex>, Span),
    Neg(Box<Ex>),
    Not(Box<Ex>, Span),
    Binary(Op, Box<Ex>, Box<Ex>, Span),
    Choose(Box<Ex>, Box<Ex>, Box<Ex>, Span),
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    depth: Depth,
    definitions: Vec<Definition>,
}

pub(super) fn parse(tokens: &[Token]) -> Read<Vec<Definition>> {
    let mut parser = Parser { cursor: Cursor::new(tokens), depth: Depth::default(), definitions: Vec::new() };
    while !parser.cursor.at_end() {
        let definition = parser.definition()?;
        if let Some(first) = parser.definitions.iter().find(|first| first.name == definition.name) {
            let text = format!("`{}` is defined twice", first.name);
            let error = Diagnostic::error(Code::E0202, definition.span, text);
            return Err(Box::new(error.label("defined again").also(first.span, "first defined here")));
        }
        parser.definitions.push(definition);
    }
    Ok(parser.definitions)
}

/// Operators from the loosest level to the tightest.
const LEVELS: [&[(&str, Op)]; 6] = [
    &[("||", Op::Or)],
    &[("&&", Op::And)],
    &[("==", Op::Equal), ("!=", Op::Unequal)],
    &[("<=", Op::AtMost), (">=", Op::AtMost), ("<", Op::Less), (">", Op::Less)],
    &[("+", Op::Add), ("-", Op::Sub)],
    &[("*", Op::Mul), ("/", Op::Div), ("%", Op::Mod)],
];

impl Parser<'_> {
    fn definition(&mut self) -> Read<Definition> {
        self.cursor.expect_word("def")?;
        // `2LUT` is a name there.
        let (first, next) = (self.cursor.peek(), self.cursor.peek_at(1));
        let (name, span) = match (first.kind, next.word()) {
            (TokenKind::Int(number), Some(word)) if first.span.touches(next.span) => {
                self.cursor.take();
                self.cursor.take();
                (Name::new(&format!("{number}{word}")), first.span.to(next.span))
            }
            _ => self.cursor.expect_name("the name of the definition")?,
        };
        self.cursor.expect_punct("(")?;
        let mut parameters = Vec::new();
        while !self.cursor.eat(")") {
            parameters.push(self.parameter()?);
            if !self.cursor.eat(",") {
                self.cursor.expect_punct(")")?;
                break;
            }
        }
        self.cursor.expect_punct("->")?;
        let mut results = Vec::new();
        if self.cursor.eat("(") {
            while !self.cursor.eat(")") {
                results.push(self.cursor.expect_name("the name of a result")?);
                if !self.cursor.eat(",") {
                    self.cursor.expect_punct(")")?;
                    break;
                }
            }
        } else {
            results.push(self.cursor.expect_name("the name of a result")?);
        }
        let open = self.cursor.expect_punct("{")?.span;
        let mut statements = Vec::new();
        while !self.cursor.eat("}") {
            if self.cursor.at_end() {
                return Err(Box::new(self.cursor.expected("`}`").also(open, "to close this")));
            }
            statements.push(self.statement()?);
            self.cursor.eat(";");
        }
        Ok(Definition { name, span, parameters, results, statements })
    }

    fn parameter(&mut self) -> Read<Parameter> {
        let (word, type_span) = self.cursor.expect_name("a type")?;
        let elem = match word.as_str() {
            "double" | "float64" => ElemType::F64,
            "float" | "float32" => ElemType::F32,
            "int" | "int32" => ElemType::I32,
            "int64" => ElemType::I64,
            "byte" | "uint8" => ElemType::U8,
            "half" | "float16" | "bool" | "int8" | "int16" | "uint16" | "uint32" | "uint64" | "size_t" => {
                return Err(unsupported(type_span, format!("elements of type `{word}`")));
            }
            _ => return Err(Box::new(Diagnostic::error(Code::E0103, type_span, format!("`{word}` is no type")))),
        };
        let mut shape = Vec::new();
        if self.cursor.eat("(") {
            while !self.cursor.eat(")") {
                let token = self.cursor.peek();
                shape.push(match token.kind {
                    TokenKind::Name(name) => Index::Name(name),
                    TokenKind::Int(size) => Index::Num(size),
                    _ => return Err(Box::new(self.cursor.expected("a size: a name or a number"))),
                });
                self.cursor.take();
                let next = self.cursor.peek();
                if ["+", "-", "*", "/"].iter().any(|sign| next.is(sign)) {
                    return Err(unsupported(token.span.to(next.span), "a computed size of a parameter"));
                }
                if !self.cursor.eat(",") {
                    self.cursor.expect_punct(")")?;
                    break;
                }
            }
        }
        let (name, span) = self.cursor.expect_name("the name of a parameter")?;
        Ok(Parameter { name, span: type_span.to(span), elem, shape })
    }

    fn statement(&mut self) -> Read<Assignment> {
        self.depth = Depth::default();
        let (target, begin) = self.cursor.expect_name("the tensor that is defined")?;
        let mut indices = Vec::new();
        if self.cursor.eat("(") {
            while !self.cursor.eat(")") {
                let index = self.cursor.expect_name("an index variable").map_err(|_| {
                    unsupported(self.cursor.peek().span, "an index on the left side that is no variable")
                })?;
                indices.push(index);
                let next = self.cursor.peek();
                if !next.is(",") && !next.is(")") {
                    return Err(unsupported(index.1.to(next.span), "an index on the left side that is no variable"));
                }
                self.cursor.eat(",");
            }
        }
        let span = begin.to(self.cursor.previous().map_or(begin, |token| token.span));
        let reduction = self.assignment(span)?;
        if let Some(word) = self.cursor.peek().word()
            && self.definitions.iter().any(|definition| definition.name.as_str() == word)
        {
            return Err(unsupported(self.cursor.peek().span, "a call of another definition"));
        }
        let value = self.choice()?;
        let (mut bounds, mut exists) = (Vec::new(), Vec::new());
        if self.cursor.eat_word("where") {
            loop {
                if self.cursor.eat_word("exists") {
                    exists.push(self.primary()?);
                } else {
                    let (index, at) = self.cursor.expect_name("an index")?;
                    self.cursor.expect_word("in")?;
                    let low = self.level(0)?;
                    self.cursor.expect_punct(":")?;
                    bounds.push((index, at, low, self.level(0)?));
                }
                if !self.cursor.eat(",") {
                    break;
                }
            }
        }
        Ok(Assignment { target, indices, span, reduction, value, bounds, exists })
    }

    /// The sign between the sides.
    fn assignment(&mut self, target: Span) -> Read<Option<(Reduction, bool)>> {
        let token = self.cursor.peek();
        if token.is(",") {
            return Err(unsupported(target.to(token.span), "several results of a call"));
        }
        if self.cursor.eat("=") {
            return Ok(None);
        }
        let reduction = if self.cursor.eat("+=") {
            Reduction::Sum
        } else if self.cursor.eat("*=") {
            Reduction::Product
        } else {
            let reduction = match token.word() {
                Some("min") => Reduction::Min,
                Some("max") => Reduction::Max,
                _ => return Err(Box::new(self.cursor.expected("`=`, or a reduction such as `+=!`"))),
            };
            self.cursor.take();
            self.cursor.expect_punct("=")?;
            reduction
        };
        Ok(Some((reduction, self.cursor.eat("!"))))
    }

    fn choice(&mut self) -> Read<Ex> {
        let condition = self.level(0)?;
        let token = self.cursor.peek();
        if !self.cursor.eat("?") {
            return Ok(condition);
        }
        self.depth.enter(token.span)?;
        let yes = self.choice()?;
        self.cursor.expect_punct(":")?;
        let no = self.choice()?;
        self.depth.leave();
        Ok(Ex::Choose(Box::new(condition), Box::new(yes), Box::new(no), token.span))
    }

    fn level(&mut self, level: usize) -> Read<Ex> {
        let Some(signs) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.level(level + 1)?;
        let mut levels = 0;
        while let Some((sign, op)) = signs.iter().find(|(sign, _)| self.cursor.peek().is(sign)).copied() {
            let span = self.cursor.take().span;
            self.depth.enter(span)?;
            levels += 1;
            let right = self.level(level + 1)?;
            let (a, b) = if sign.starts_with('>') { (right, left) } else { (left, right) };
            left = Ex::Binary(op, Box::new(a), Box::new(b), span);
        }
        (0..levels).for_each(|_| self.depth.leave());
        Ok(left)
    }

    fn unary(&mut self) -> Read<Ex> {
        let token = self.cursor.peek();
        if !token.is("-") && !token.is("!") {
            return self.primary();
        }
        self.cursor.take();
        self.depth.enter(token.span)?;
        let inside = Box::new(self.unary()?);
        self.depth.leave();
        Ok(if token.is("-") { Ex::Neg(inside) } else { Ex::Not(inside, token.span) })
    }

    fn primary(&mut self) -> Read<Ex> {
        let token = self.cursor.peek();
        if self.cursor.eat("(") {
            self.depth.enter(token.span)?;
            let inside = self.choice()?;
            self.depth.leave();
            self.cursor.expect_punct(")").map_err(|error| error.also(token.span, "to close this"))?;
            return Ok(inside);
        }
        if let TokenKind::Int(value) = token.kind
            && !matches!(self.cursor.peek_at(1).word(), Some("f" | "F"))
            && !(self.cursor.peek_at(1).is(".") && token.span.touches(self.cursor.peek_at(1).span))
        {
            self.cursor.take();
            return Ok(Ex::Int(value));
        }
        if let Some(value) = number(&mut self.cursor) {
            return Ok(Ex::Number(value, token.span));
        }
        let (name, span) = self.cursor.expect_name("an operand")?;
        if self.cursor.eat(".") {
            let (at, end) = self.cursor.expect_int("the number of a dimension")?;
            return Ok(Ex::Size(name, usize::try_from(at).unwrap_or(usize::MAX), span.to(end)));
        }
        if !self.cursor.eat("(") {
            return Ok(Ex::Name(name, span));
        }
        self.depth.enter(span)?;
        let mut parts = Vec::new();
        while !self.cursor.eat(")") {
            parts.push(self.choice()?);
            if !self.cursor.eat(",") {
                self.cursor.expect_punct(")")?;
                break;
            }
        }
        self.depth.leave();
        let end = self.cursor.previous().map_or(span, |token| token.span);
        Ok(Ex::Apply(name, parts, span.to(end)))
    }
}
