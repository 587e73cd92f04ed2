//! The text of a file in index notation.

use certen_core::ElemType;
use certen_syntax::{Code, Cursor, Diagnostic, Name, Span, Token};

use crate::index::Index;
use crate::kernel::Op;
use crate::text::{Depth, Read, number, undeclared, unsupported};

/// A file.
#[derive(Default)]
pub(super) struct File {
    pub tensors: Vec<Declared>,
    /// Ranges that options give to index variables.
    pub variables: Vec<(Name, Index, Span)>,
    pub expressions: Vec<Assignment>,
}

/// A tensor.
pub(super) struct Declared {
    pub name: Name,
    pub span: Span,
    pub elem: ElemType,
    pub shape: Vec<Index>,
    /// Where its format is said, if that has sparse dimensions.
    pub sparse: Option<Span>,
}

/// An index expression.
pub(super) struct Assignment {
    pub target: Access,
    pub adds: bool,
    pub value: Ex,
}

/// An access.
pub(super) struct Access {
    pub tensor: usize,
    pub at: Vec<Variable>,
    pub span: Span,
}

/// An index variable at a dimension, perhaps with a window: first, one after the last, step.
pub(super) struct Variable {
    pub name: Name,
    pub span: Span,
    pub window: Option<[Index; 3]>,
}

/// An expression.
pub(super) enum Ex {
    Number(f64),
    Access(Access),
    Neg(Box<Ex>),
    Binary(Op, Box<Ex>, Box<Ex>, Span),
    Call(Name, Vec<Ex>, Span),
    Sum(Name, Box<Ex>),
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    file: File,
    depth: Depth,
}

pub(super) fn parse(tokens: &[Token]) -> Read<File> {
    let mut parser = Parser { cursor: Cursor::new(tokens), file: File::default(), depth: Depth::default() };
    while !parser.cursor.at_end() {
        parser.line()?;
        parser.cursor.eat(";");
        let next = parser.cursor.peek();
        if !next.first_on_line && !parser.cursor.at_end() {
            return Err(Box::new(parser.cursor.expected("the end of the line")));
        }
    }
    Ok(parser.file)
}

fn elem(word: &str) -> Option<Option<ElemType>> {
    Some(match word {
        "double" | "float64" => Some(ElemType::F64),
        "float" | "float32" => Some(ElemType::F32),
        "int" | "int32" | "int32_t" => Some(ElemType::I32),
        "long" | "int64" | "int64_t" => Some(ElemType::I64),
        "complex" | "complex64" | "complex128" | "bool" | "int8" | "int16" | "uint8" | "uint16" | "uint32"
        | "uint64" | "unsigned" | "short" | "char" => None,
        _ => return None,
    })
}

impl Parser<'_> {
    fn line(&mut self) -> Read<()> {
        let token = self.cursor.peek();
        match token.word() {
            _ if token.is("-") => self.option(),
            Some(word) if elem(word).is_some() && self.cursor.peek_at(1).word().is_some() => self.declaration(),
            Some(_) => self.expression(),
            None => Err(Box::new(self.cursor.expected("a declaration or an index expression"))),
        }
    }

    fn elem(&mut self) -> Read<ElemType> {
        let (word, span) = self.cursor.expect_name("a type")?;
        match elem(word.as_str()) {
            Some(Some(elem)) => Ok(elem),
            Some(None) => Err(unsupported(span, format!("elements of type `{word}`"))),
            None => Err(Box::new(Diagnostic::error(Code::E0103, span, format!("`{word}` is no type of elements")))),
        }
    }

    fn declaration(&mut self) -> Read<()> {
        let elem = self.elem()?;
        loop {
            let (name, span) = self.cursor.expect_name("the name of a tensor")?;
            if let Some(first) = self.file.tensors.iter().find(|tensor| tensor.name == name) {
                let error = Diagnostic::error(Code::E0202, span, format!("`{name}` is declared twice"));
                return Err(Box::new(error.label("declared again").also(first.span, "first declared here")));
            }
            let mut shape = Vec::new();
            if self.cursor.eat("(") {
                while !self.cursor.eat(")") {
                    shape.push(self.size()?);
                    if !self.cursor.eat(",") {
                        self.cursor.expect_punct(")")?;
                        break;
                    }
                }
            }
            let end = self.cursor.previous().map_or(span, |token| token.span);
            let mut tensor = Declared { name, span: span.to(end), elem, shape, sparse: None };
            self.format(&mut tensor)?;
            self.file.tensors.push(tensor);
            if !self.cursor.eat(",") {
                return Ok(());
            }
        }
    }

    /// The format after a declaration, as the C++ interface names it.
    fn format(&mut self, tensor: &mut Declared) -> Read<()> {
        let begin = self.cursor.peek();
        let named = |word| matches!(word, "CSR" | "CSC" | "DCSR" | "DCSC" | "COO");
        if !begin.first_on_line && begin.word().is_some_and(named) {
            self.cursor.take();
            tensor.sparse = Some(begin.span);
            return levels(begin.span, 2, tensor);
        }
        if !self.cursor.eat("{") {
            return Ok(());
        }
        let mut found = 0;
        loop {
            let (word, span) = self.cursor.expect_name("`dense` or `sparse`")?;
            match word.as_str().to_ascii_lowercase().as_str() {
                "dense" => {}
                "sparse" | "compressed" | "singleton" => tensor.sparse = Some(begin.span),
                _ => return Err(unsupported(span, format!("the format `{word}` of a dimension"))),
            }
            found += 1;
            if !self.cursor.eat(",") {
                break;
            }
        }
        let end = self.cursor.expect_punct("}")?.span;
        levels(begin.span.to(end), found, tensor)
    }

    /// An option of the command line.
    fn option(&mut self) -> Read<()> {
        let begin = self.cursor.take().span;
        let (option, span) = self.cursor.expect_name("an option: f, d or t")?;
        self.cursor.expect_punct("=")?;
        let (name, name_span) = self.cursor.expect_name("a tensor")?;
        self.cursor.expect_punct(":")?;
        let found = self.file.tensors.iter().position(|tensor| tensor.name == name);
        let missing = || undeclared(name_span, name, "declare it above: `double A(m, n)`");
        match option.as_str() {
            "f" => {
                let (letters, at) = self.cursor.expect_name("a letter for each dimension, as in `ds`")?;
                let order = if self.cursor.eat(":") { Some(self.numbers()?) } else { None };
                let tensor = &mut self.file.tensors[found.ok_or_else(missing)?];
                if let Some(letter) = letters.as_str().chars().find(|letter| !"dsucq".contains(*letter)) {
                    return Err(unsupported(at, format!("the format `{letter}` of a dimension")));
                }
                tensor.sparse = letters.as_str().contains(|letter| letter != 'd').then_some(at);
                levels(at, letters.as_str().len(), tensor)?;
                let is_order = |order: &Vec<i64>| (0..tensor.shape.len() as i64).all(|at| order.contains(&at));
                if order.is_some_and(|order| order.len() != tensor.shape.len() || !is_order(&order)) {
                    let text = format!("the order of the dimensions of `{name}` names each of them once, from 0");
                    return Err(Box::new(Diagnostic::error(Code::E0103, begin.to(at), text)));
                }
            }
            "d" => {
                let sizes: Vec<Index> = self.numbers()?.into_iter().map(Index::Num).collect();
                match (found, &sizes[..]) {
                    (Some(at), _) => self.file.tensors[at].shape = sizes,
                    (None, [size]) => self.file.variables.push((name, size.clone(), name_span)),
                    (None, _) => return Err(missing()),
                }
            }
            "t" => {
                let elem = self.elem()?;
                self.file.tensors[found.ok_or_else(missing)?].elem = elem;
            }
            _ => return Err(unsupported(span, format!("the option `-{option}`"))),
        }
        Ok(())
    }

    fn numbers(&mut self) -> Read<Vec<i64>> {
        let mut numbers = vec![self.cursor.expect_int("a number")?.0];
        while self.cursor.eat(",") {
            numbers.push(self.cursor.expect_int("a number")?.0);
        }
        Ok(numbers)
    }

    /// A number, or a name, or a product or sum of them.
    fn size(&mut self) -> Read<Index> {
        let mut depth = Depth::default();
        let mut sum = self.size_product(&mut depth)?;
        loop {
            depth.enter(self.cursor.peek().span)?;
            if self.cursor.eat("+") {
                sum = sum + self.size_product(&mut depth)?;
            } else if self.cursor.eat("-") {
                sum = sum - self.size_product(&mut depth)?;
            } else {
                return Ok(sum);
            }
        }
    }

    fn size_product(&mut self, depth: &mut Depth) -> Read<Index> {
        let mut product = self.size_atom()?;
        while self.cursor.eat("*") {
            depth.enter(self.cursor.peek().span)?;
            product = product * self.size_atom()?;
        }
        Ok(product)
    }

    fn size_atom(&mut self) -> Read<Index> {
        match self.cursor.peek().word() {
            Some(_) => Ok(Index::Name(self.cursor.expect_name("a size")?.0)),
            None => Ok(Index::Num(self.cursor.expect_int("a size: a number or a name")?.0)),
        }
    }

    fn expression(&mut self) -> Read<()> {
        self.depth = Depth::default();
        let target = self.access()?;
        let adds = self.cursor.eat("+=");
        if !adds {
            self.cursor.expect_punct("=")?;
        }
        let value = self.sum()?;
        self.file.expressions.push(Assignment { target, adds, value });
        Ok(())
    }

    fn sum(&mut self) -> Read<Ex> {
        self.chain(&[("+", Op::Add), ("-", Op::Sub)], Self::product)
    }

    fn product(&mut self) -> Read<Ex> {
        self.chain(&[("*", Op::Mul), ("/", Op::Div)], Self::factor)
    }

    fn chain(&mut self, signs: &[(&str, Op)], operand: fn(&mut Self) -> Read<Ex>) -> Read<Ex> {
        let mut left = operand(self)?;
        let mut levels = 0;
        // What begins a line is an option or another expression.
        while let Some((_, op)) =
            signs.iter().find(|(sign, _)| self.cursor.peek().is(sign) && !self.begins_option()).copied()
        {
            let span = self.cursor.take().span;
            self.depth.enter(span)?;
            levels += 1;
            left = Ex::Binary(op, Box::new(left), Box::new(operand(self)?), span);
        }
        (0..levels).for_each(|_| self.depth.leave());
        Ok(left)
    }

    fn begins_option(&self) -> bool {
        let (token, next) = (self.cursor.peek(), self.cursor.peek_at(1));
        token.first_on_line && token.is("-") && next.word().is_some() && self.cursor.peek_at(2).is("=")
    }

    fn factor(&mut self) -> Read<Ex> {
        let token = self.cursor.peek();
        self.depth.enter(token.span)?;
        let made = if self.cursor.eat("-") {
            Ex::Neg(Box::new(self.factor()?))
        } else if self.cursor.eat("(") {
            let inside = self.sum()?;
            self.cursor.expect_punct(")").map_err(|error| error.also(token.span, "to close this"))?;
            inside
        } else if let Some(value) = number(&mut self.cursor) {
            Ex::Number(value)
        } else {
            self.named()?
        };
        self.depth.leave();
        Ok(made)
    }

    /// An access, a sum that is written, or a function.
    fn named(&mut self) -> Read<Ex> {
        let (token, next) = (self.cursor.peek(), self.cursor.peek_at(1));
        let Some(word) = token.word() else { return Err(Box::new(self.cursor.expected("an operand"))) };
        let is_tensor = self.file.tensors.iter().any(|tensor| tensor.name.as_str() == word);
        if is_tensor || !next.is("(") {
            return Ok(Ex::Access(self.access()?));
        }
        self.cursor.take();
        self.cursor.take();
        if word == "sum" {
            let (variable, _) = self.cursor.expect_name("the index of the sum")?;
            self.cursor.expect_punct(",")?;
            let inside = self.sum()?;
            self.cursor.expect_punct(")")?;
            return Ok(Ex::Sum(variable, Box::new(inside)));
        }
        let known = ["sqrt", "abs", "exp", "log", "sin", "cos", "tan", "tanh", "pow", "min", "max"];
        if !known.contains(&word) {
            let missing = undeclared(token.span, Name::new(word), "declare it above: `double A(m, n)`");
            return Err(Box::new(missing.note(format!("functions that are read: sum, {}", known.join(", ")))));
        }
        let mut parts = vec![self.sum()?];
        while self.cursor.eat(",") {
            parts.push(self.sum()?);
        }
        self.cursor.expect_punct(")")?;
        Ok(Ex::Call(Name::new(word), parts, token.span))
    }

    fn access(&mut self) -> Read<Access> {
        let (name, span) = self.cursor.expect_name("a tensor")?;
        if self.cursor.peek().is("{") && name.as_str().ends_with('_') {
            return Err(unsupported(
                span.to(self.cursor.peek().span),
                "indices as subscripts, `A_{i,j}`: write `A(i,j)`",
            ));
        }
        let found = self.file.tensors.iter().position(|tensor| tensor.name == name);
        let tensor = found.ok_or_else(|| undeclared(span, name, "declare it above: `double A(m, n)`"))?;
        let mut at = Vec::new();
        if self.cursor.eat("(") {
            while !self.cursor.eat(")") {
                at.push(self.variable()?);
                if !self.cursor.eat(",") {
                    self.cursor.expect_punct(")")?;
                    break;
                }
            }
        }
        let span = span.to(self.cursor.previous().map_or(span, |token| token.span));
        let declared = &self.file.tensors[tensor];
        if declared.shape.len() != at.len() {
            let text = format!("`{name}` has {} dimensions, and is accessed by {}", declared.shape.len(), at.len());
            let error = Diagnostic::error(Code::E0234, span, text);
            return Err(Box::new(error.also(declared.span, "declared here")));
        }
        Ok(Access { tensor, at, span })
    }

    fn variable(&mut self) -> Read<Variable> {
        let (name, span) = match self.cursor.expect_name("an index variable") {
            Ok(found) => found,
            Err(_) => {
                let construct = "an index that is no variable: windows are written `i(1,4)`";
                return Err(unsupported(self.cursor.peek().span, construct));
            }
        };
        let next = self.cursor.peek();
        if ["+", "-", "*", "/"].iter().any(|sign| next.is(sign)) {
            return Err(unsupported(span.to(next.span), "arithmetic in an index: windows are written `i(1,4)`"));
        }
        if !self.cursor.eat("(") {
            return Ok(Variable { name, span, window: None });
        }
        if self.cursor.peek().is("{") {
            return Err(unsupported(span.to(self.cursor.peek().span), "sets of indices, `i({1,3})`"));
        }
        let low = self.size()?;
        self.cursor.expect_punct(",")?;
        let high = self.size()?;
        let step = if self.cursor.eat(",") { self.size()? } else { Index::Num(1) };
        let end = self.cursor.expect_punct(")")?.span;
        if step.number().is_none_or(|step| step < 1) {
            return Err(unsupported(span.to(end), "a window whose step is no positive number"));
        }
        Ok(Variable { name, span: span.to(end), window: Some([low, high, step]) })
    }
}

/// A format has a word for each dimension.
fn levels(span: Span, found: usize, tensor: &Declared) -> Read<()> {
    if found == tensor.shape.len() {
        return Ok(());
    }
    let text = format!("the format is for {found} dimensions, and `{}` has {}", tensor.name, tensor.shape.len());
    Err(Box::new(Diagnostic::error(Code::E0234, span, text).also(tensor.span, "declared here")))
}
