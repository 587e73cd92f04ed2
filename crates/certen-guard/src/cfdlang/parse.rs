//! The text of a program.

use certen_syntax::{Code, Cursor, Diagnostic, Name, Span, Token, TokenKind};

use crate::kernel::Op;
use crate::text::{Depth, MAX_DEPTH, Read, undeclared, unsupported};

/// A program.
#[derive(Default)]
pub(super) struct Program {
    pub variables: Vec<Variable>,
    types: Vec<(Name, Span, Vec<i64>)>,
    pub elements: Option<Elements>,
    pub statements: Vec<(Name, Span, Ex)>,
}

/// A tensor.
pub(super) struct Variable {
    pub name: Name,
    pub span: Span,
    pub shape: Vec<i64>,
    pub is_input: bool,
    pub is_output: bool,
}

/// Over which elements the statements are repeated.
pub(super) struct Elements {
    pub names: Vec<(Name, Span)>,
    pub count: i64,
    pub is_first: bool,
}

/// An operation on two tensors.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Sign {
    Entrywise(Op),
    Contraction,
    Product,
    Transposition,
}

/// An expression.
pub(super) enum Ex {
    Name(Name, Span),
    Int(i64, Span),
    Paren(Box<Ex>),
    Stack(Vec<Ex>, Span),
    Binary(Sign, Box<Ex>, Box<Ex>, Span),
}

impl Ex {
    /// Where it stands; of an operation, the operator.
    pub(super) fn span(&self) -> Span {
        match self {
            Ex::Name(_, span) | Ex::Int(_, span) | Ex::Stack(_, span) | Ex::Binary(_, _, _, span) => *span,
            Ex::Paren(inside) => inside.span(),
        }
    }

    /// Lists of numbers, if it is nothing else.
    pub(super) fn lists(&self) -> Option<Vec<Vec<i64>>> {
        let Ex::Stack(lists, _) = self else { return None };
        let numbers = |list: &Ex| match list {
            Ex::Stack(numbers, _) => {
                numbers.iter().map(|n| if let Ex::Int(n, _) = n { Some(*n) } else { None }).collect()
            }
            _ => None,
        };
        lists.iter().map(numbers).collect()
    }
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    program: Program,
    notes: Vec<Diagnostic>,
    depth: Depth,
}

pub(super) fn parse(tokens: &[Token]) -> Read<(Program, Vec<Diagnostic>)> {
    let (cursor, depth) = (Cursor::new(tokens), Depth::default());
    let mut parser = Parser { cursor, program: Program::default(), notes: Vec::new(), depth };
    while parser.declaration()? {}
    parser.elements()?;
    while !parser.cursor.at_end() {
        if matches!(parser.cursor.peek().word(), Some("var" | "type" | "elem")) && !parser.cursor.peek_at(1).is("=") {
            let error = parser.cursor.expected("a statement");
            return Err(Box::new(error.note("declarations stand first, then `elem`, then statements")));
        }
        let (name, span) = parser.cursor.expect_name("a statement")?;
        parser.cursor.expect_punct("=")?;
        let value = parser.expr()?;
        parser.program.statements.push((name, span, value));
    }
    Ok((parser.program, parser.notes))
}

impl Parser<'_> {
    fn declaration(&mut self) -> Read<bool> {
        let is_type = match self.cursor.peek().word() {
            Some("var") => false,
            Some("type") => true,
            _ => return Ok(false),
        };
        self.cursor.take();
        let (mut is_input, mut is_output) = (false, false);
        while !is_type && !self.cursor.peek_at(1).is(":") {
            if self.cursor.eat_word("input") {
                is_input = true;
            } else if self.cursor.eat_word("output") {
                is_output = true;
            } else {
                break;
            }
        }
        let (name, span) = self.cursor.expect_name("a name")?;
        let variables = self.program.variables.iter().map(|variable| (variable.name, variable.span));
        let types = self.program.types.iter().map(|(name, span, _)| (*name, *span));
        if let Some((_, first)) = variables.chain(types).find(|(other, _)| *other == name) {
            let error = Diagnostic::error(Code::E0202, span, format!("`{name}` is declared twice"));
            return Err(Box::new(error.label("declared again").also(first, "first declared here")));
        }
        self.cursor.expect_punct(":")?;
        let shape = self.shape()?;
        match is_type {
            true => self.program.types.push((name, span, shape)),
            false => self.program.variables.push(Variable { name, span, shape, is_input, is_output }),
        }
        Ok(true)
    }

    fn shape(&mut self) -> Read<Vec<i64>> {
        let token = self.cursor.peek();
        if let TokenKind::Name(name) = token.kind {
            self.cursor.take();
            let found = self.program.types.iter().find(|(other, ..)| *other == name);
            let found = found.map(|(.., shape)| shape.clone());
            return found.ok_or_else(|| undeclared(token.span, name, "declare the type above: `type t : [3 4]`"));
        }
        self.cursor.expect_punct("[").map_err(|_| self.cursor.expected("a shape `[…]` or the name of a type"))?;
        let mut shape = Vec::new();
        while !self.cursor.eat("]") {
            let next = self.cursor.peek();
            if next.word().is_some() {
                return Err(unsupported(next.span, "a size that is no number: CFDlang has none either"));
            }
            shape.push(self.cursor.expect_int("a size")?.0);
        }
        Ok(shape)
    }

    fn elements(&mut self) -> Read<()> {
        if self.cursor.peek_at(1).is("=") || !self.cursor.eat_word("elem") {
            return Ok(());
        }
        self.cursor.expect_punct("[")?;
        let mut names = Vec::new();
        while !self.cursor.eat("]") {
            names.push(self.cursor.expect_name("the name of a tensor")?);
        }
        let (count, _) = self.cursor.expect_int("the number of elements")?;
        let is_first = self.cursor.eat_word("first");
        if !is_first {
            self.cursor.expect_word("last").map_err(|_| self.cursor.expected("`first` or `last`"))?;
        }
        self.program.elements = Some(Elements { names, count, is_first });
        Ok(())
    }

    fn expr(&mut self) -> Read<Ex> {
        let signs = [("+", Sign::Entrywise(Op::Add)), ("-", Sign::Entrywise(Op::Sub))];
        self.chain(&signs, Self::term, Self::expr)
    }

    fn term(&mut self) -> Read<Ex> {
        let signs = [("*", Sign::Entrywise(Op::Mul)), ("/", Sign::Entrywise(Op::Div)), (".", Sign::Contraction)];
        self.chain(&signs, Self::factor, Self::term)
    }

    fn factor(&mut self) -> Read<Ex> {
        let signs = [("#", Sign::Product), ("^", Sign::Transposition)];
        self.chain(&signs, Self::atom, Self::factor)
    }

    /// An operand, and perhaps an operator with all that stands to its right.
    fn chain(
        &mut self,
        signs: &[(&str, Sign)],
        operand: fn(&mut Self) -> Read<Ex>,
        rest: fn(&mut Self) -> Read<Ex>,
    ) -> Read<Ex> {
        let left = operand(self)?;
        let token = self.cursor.peek();
        let Some((_, sign)) = signs.iter().find(|(sign, _)| token.is(sign)).copied() else { return Ok(left) };
        self.cursor.take();
        self.depth.enter(token.span)?;
        let right = rest(self)?;
        self.depth.leave();
        self.warn(sign, token.span, &right);
        Ok(Ex::Binary(sign, Box::new(left), Box::new(right), token.span))
    }

    /// Warns where others would read a chain from the left, and it matters.
    fn warn(&mut self, sign: Sign, span: Span, right: &Ex) {
        let Ex::Binary(next, _, _, at) = right else { return };
        let (word, text) = match (sign, next) {
            (Sign::Entrywise(Op::Sub), Sign::Entrywise(Op::Add | Op::Sub)) => ("-", "a - (b - c)"),
            (Sign::Entrywise(Op::Div), Sign::Entrywise(Op::Mul | Op::Div)) => ("/", "a / (b / c)"),
            _ => return,
        };
        let message = format!("`{word}` takes everything to its right, as in `{text}`");
        let note = Diagnostic::warning(Code::W1001, span, message).also(*at, "also this");
        let note = note.note("operators of CFDlang associate to the right, and so does the safe kernel");
        self.notes.push(note.help("parentheses say what is meant"));
    }

    fn atom(&mut self) -> Read<Ex> {
        let token = self.cursor.peek();
        self.depth.enter(token.span)?;
        let made = match token.kind {
            TokenKind::Name(name) => {
                self.cursor.take();
                Ex::Name(name, token.span)
            }
            TokenKind::Int(value) => {
                self.cursor.take();
                Ex::Int(value, token.span)
            }
            TokenKind::Float(_) => {
                return Err(unsupported(token.span, "a number with a point: CFDlang has none either"));
            }
            TokenKind::Punct("(") => {
                self.cursor.take();
                let inside = self.expr()?;
                self.cursor.expect_punct(")").map_err(|error| error.also(token.span, "to close this"))?;
                Ex::Paren(Box::new(inside))
            }
            TokenKind::Punct("[") => {
                self.cursor.take();
                let mut parts = Vec::new();
                while !self.cursor.peek().is("]") {
                    if self.cursor.at_end() {
                        return Err(Box::new(self.cursor.expected("`]`").also(token.span, "to close this")));
                    }
                    if parts.len() == MAX_DEPTH {
                        return Err(unsupported(token.span, format!("a stack of more than {MAX_DEPTH} parts")));
                    }
                    parts.push(self.expr()?);
                }
                let end = self.cursor.take().span;
                Ex::Stack(parts, token.span.to(end))
            }
            _ => return Err(Box::new(self.cursor.expected("an expression"))),
        };
        self.depth.leave();
        Ok(made)
    }
}
