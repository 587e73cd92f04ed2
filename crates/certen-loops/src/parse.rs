//! Loop programs from text: the inverse of printing.
//!
//! ```text
//! program   := "loops" NAME ("size" NAME ("," NAME)*)? ("where" cond ("," cond)*)?
//!              ("input" NAME ":" type)* ("output" NAME ":" type)*
//!              ("const" NAME "=" expr)* ("stream" NAME ("," NAME)*)? statement*
//! statement := "nest" NAME | "alloc" NAME ":" type | "free" NAME | "swap" NAME "," NAME
//!            | ("parallel" | "vector")? "for" NAME "in" ix ".." ix block
//!            | "if" cond block ("else" block)?
//!            | "local" NAME ":" ELEM ("=" expr)?
//!            | NAME ("[" ix ("," ix)* "]")? sign expr
//! block     := "{" statement* "}"
//! sign      := "=" | "+=" | "*=" | "min" "=" | "max" "=" | "and" "=" | "or" "="
//! type      := ELEM "[" (ix ("," ix)*)? "]"
//! ```
//!
//! The index of a loop that a schedule made can have points in its name, as in `i.o`, with no space around them.
//!
//! `ix` and `cond` are those of `certen-index`, `expr` is Core's. Syntax errors have code E0103, everything else E0702.
//! Guarantees: what was read is well-typed in its scope; [`verify`](crate::verify) checks the rest.

use std::collections::{HashMap, HashSet};

use certen_core::{ElemType, Parameter, Range, ReduceOp, TensorType, Term, TermId, TermParser, Terms};
use certen_index::{Facts, Ix, parse_cond, parse_ix};
use certen_syntax::{Code, Cursor, Diagnostic, Diagnostics, FileId, Name, Sources, Span, Token, TokenKind, lex};

use crate::ir::{Constant, LoopProgram, MAX_NESTING, Mode, Stmt, Target};

/// Reads a loop program.
///
/// # Errors
/// What the lexer found, and the first mistake after that.
pub fn parse_loops(sources: &Sources, file: FileId) -> Result<LoopProgram, Diagnostics> {
    let Some(source) = sources.get(file) else {
        return Err(Diagnostic::error(Code::E0603, None, "there is no such source").into());
    };
    let mut diagnostics = Diagnostics::new();
    let tokens = with_points(lex(source, file, &mut diagnostics));
    match Parser::program(Cursor::new(&tokens)) {
        Ok(program) if !diagnostics.has_errors() => Ok(program),
        Ok(_) => Err(diagnostics),
        Err(error) => {
            diagnostics.push(error);
            Err(diagnostics)
        }
    }
}

/// Tokens in which names with points are one. Core has four words with a type after a point, which are no names.
fn with_points(tokens: Vec<Token>) -> Vec<Token> {
    let mut joined: Vec<Token> = Vec::with_capacity(tokens.len());
    let mut rest = tokens.into_iter().peekable();
    while let Some(token) = rest.next() {
        if let (true, Some(next)) = (token.is("."), rest.peek())
            && let (Some(last), Some(part)) = (joined.last_mut(), next.word())
            && let Some(word) = last.word()
            && !(matches!(word, "cast" | "index" | "undefined" | "table") && part.parse::<ElemType>().is_ok())
            && last.span.end == token.span.start
            && token.span.end == next.span.start
        {
            last.kind = TokenKind::Name(Name::new(&format!("{word}.{part}")));
            last.span = last.span.to(next.span);
            rest.next();
            continue;
        }
        joined.push(token);
    }
    joined
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    terms: Terms,
    indices: HashSet<Name>,
    /// Buffers and locals.
    tensors: HashMap<Name, TensorType>,
    locals: HashSet<Name>,
}

fn ill_formed(span: Span, message: String) -> Diagnostic {
    Diagnostic::error(Code::E0702, span, message)
}

impl Parser<'_> {
    fn program(cursor: Cursor<'_>) -> Result<LoopProgram, Diagnostic> {
        let mut parser = Parser {
            cursor,
            terms: Terms::default(),
            indices: HashSet::new(),
            tensors: HashMap::new(),
            locals: HashSet::new(),
        };
        parser.cursor.expect_word("loops")?;
        let (name, _) = parser.cursor.expect_name("the program's name")?;
        let (mut sizes, mut facts) = (Vec::new(), Vec::new());
        if parser.begins("size") {
            parser.separated(|parser| {
                let (size, span) = parser.cursor.expect_name("a size")?;
                parser.free(size, span)?;
                parser.indices.insert(size);
                sizes.push(size);
                Ok(())
            })?;
        }
        if parser.begins("where") {
            parser.separated(|parser| {
                facts.push(parse_cond(&mut parser.cursor)?);
                Ok(())
            })?;
        }
        let mut known = Facts::new();
        facts.iter().for_each(|fact| known.assume(fact.clone()));
        parser.terms = Terms::new(known);
        let (inputs, outputs) = (parser.parameters("input")?, parser.parameters("output")?);
        let constants = parser.constants()?;
        let mut streamed = Vec::new();
        if parser.begins("stream") {
            parser.separated(|parser| {
                let (name, span) = parser.cursor.expect_name("an output")?;
                if !outputs.iter().any(|output| output.name == name) || streamed.contains(&name) {
                    return Err(ill_formed(span, format!("`{name}` is no output, or is named twice")));
                }
                streamed.push(name);
                Ok(())
            })?;
        }
        let body = parser.block(0)?;
        if !parser.cursor.at_end() {
            return Err(parser.cursor.expected("a statement"));
        }
        Ok(LoopProgram { name, sizes, facts, inputs, outputs, constants, streamed, body, terms: parser.terms })
    }

    fn parameters(&mut self, word: &str) -> Result<Vec<Parameter>, Diagnostic> {
        let mut parameters = Vec::new();
        while self.begins(word) {
            let (name, span) = self.cursor.expect_name("a name")?;
            let ty = self.tensor_type()?;
            self.declare(name, span, ty.clone())?;
            parameters.push(Parameter { name, ty });
        }
        Ok(parameters)
    }

    /// Their expressions are tables.
    fn constants(&mut self) -> Result<Vec<Constant>, Diagnostic> {
        let mut constants = Vec::new();
        while self.begins("const") {
            let (name, span) = self.cursor.expect_name("a name")?;
            self.cursor.expect_punct("=")?;
            let value = self.value()?;
            let Term::Table(table) = self.terms.get(value).clone() else {
                return Err(ill_formed(span, format!("{name} is no table")));
            };
            self.declare(name, span, table.ty().clone())?;
            constants.push(Constant { name, table });
        }
        Ok(constants)
    }

    /// Takes a word that begins a declaration or statement; the same word may be the target of an assignment.
    fn begins(&mut self, word: &str) -> bool {
        !self.is_assignment() && self.cursor.eat_word(word)
    }

    fn is_assignment(&self) -> bool {
        let (next, after) = (self.cursor.peek_at(1), self.cursor.peek_at(2));
        ["[", "=", "+=", "*="].iter().any(|punct| next.is(punct))
            || (matches!(next.word(), Some("min" | "max" | "and" | "or")) && after.is("="))
    }

    fn separated(&mut self, mut one: impl FnMut(&mut Self) -> Result<(), Diagnostic>) -> Result<(), Diagnostic> {
        one(self)?;
        while self.cursor.eat(",") {
            one(self)?;
        }
        Ok(())
    }

    /// `[` indices `]`
    fn indices(&mut self) -> Result<Vec<Ix>, Diagnostic> {
        self.cursor.expect_punct("[")?;
        let mut indices = Vec::new();
        if !self.cursor.peek().is("]") {
            self.separated(|parser| {
                indices.push(parse_ix(&mut parser.cursor)?);
                Ok(())
            })?;
        }
        self.cursor.expect_punct("]")?;
        Ok(indices)
    }

    /// `:` and an element type.
    fn elem_type(&mut self) -> Result<ElemType, Diagnostic> {
        self.cursor.expect_punct(":")?;
        let elem = self.cursor.peek().word().and_then(|word| word.parse().ok());
        let elem = elem.ok_or_else(|| self.cursor.expected("an element type such as `f64`"))?;
        self.cursor.take();
        Ok(elem)
    }

    fn tensor_type(&mut self) -> Result<TensorType, Diagnostic> {
        let elem = self.elem_type()?;
        Ok(TensorType::new(elem, self.indices()?))
    }

    fn free(&self, name: Name, span: Span) -> Result<(), Diagnostic> {
        match self.indices.contains(&name) || self.tensors.contains_key(&name) {
            true => Err(ill_formed(span, format!("{name} is already in scope"))),
            false => Ok(()),
        }
    }

    fn declare(&mut self, name: Name, span: Span, ty: TensorType) -> Result<(), Diagnostic> {
        self.free(name, span)?;
        self.tensors.insert(name, ty);
        Ok(())
    }

    /// A Core expression in the scope that is open.
    fn value(&mut self) -> Result<TermId, Diagnostic> {
        let (tensors, indices) = (&self.tensors, &self.indices);
        let (tensor, index) = (|name| tensors.get(&name).cloned(), |name| indices.contains(&name));
        let parsed = TermParser::new(&mut self.terms, &tensor, &index).parse(&mut self.cursor);
        parsed.map_err(|error| match error.code {
            Code::E0701 => Diagnostic { code: Code::E0702, ..error },
            _ => error,
        })
    }

    fn braces(&mut self, depth: usize) -> Result<Vec<Stmt>, Diagnostic> {
        let open = self.cursor.expect_punct("{")?;
        if depth >= MAX_NESTING {
            return Err(ill_formed(open.span, format!("more than {MAX_NESTING} blocks inside each other")));
        }
        let block = self.block(depth + 1)?;
        self.cursor.expect_punct("}")?;
        Ok(block)
    }

    /// Statements up to `}` or the end.
    fn block(&mut self, depth: usize) -> Result<Vec<Stmt>, Diagnostic> {
        let (mut block, mut declared) = (Vec::new(), Vec::new());
        while matches!(self.cursor.peek().kind, TokenKind::Name(_)) {
            let stmt = self.statement(depth)?;
            if let Stmt::Alloc(name, _) | Stmt::Local { name, .. } = &stmt {
                declared.push(*name);
            }
            block.push(stmt);
        }
        for name in declared {
            self.tensors.remove(&name);
            self.locals.remove(&name);
        }
        Ok(block)
    }

    fn statement(&mut self, depth: usize) -> Result<Stmt, Diagnostic> {
        let name = |parser: &mut Self| parser.cursor.expect_name("a name");
        if self.begins("nest") {
            return Ok(Stmt::Nest(name(self)?.0));
        }
        if self.begins("free") {
            return Ok(Stmt::Free(name(self)?.0));
        }
        if self.begins("swap") {
            let (a, _) = name(self)?;
            self.cursor.expect_punct(",")?;
            return Ok(Stmt::Swap(a, name(self)?.0));
        }
        if self.begins("alloc") {
            let (name, span) = name(self)?;
            let ty = self.tensor_type()?;
            self.declare(name, span, ty.clone())?;
            return Ok(Stmt::Alloc(name, ty));
        }
        if self.begins("local") {
            let (name, span) = name(self)?;
            let elem = self.elem_type()?;
            let init = if self.cursor.eat("=") { Some(self.value()?) } else { None };
            self.declare(name, span, TensorType::scalar(elem))?;
            self.locals.insert(name);
            return Ok(Stmt::Local { name, elem, init });
        }
        let (parallel, vector) = (self.begins("parallel"), self.begins("vector"));
        let marked = match (parallel, vector) {
            (false, false) => None,
            (true, false) => Some(Mode::Parallel),
            (false, true) => Some(Mode::Vector),
            (true, true) => Some(Mode::ParallelVector),
        };
        if marked.is_some() && self.cursor.peek().word() != Some("for") {
            return Err(self.cursor.expected("`for`"));
        }
        if self.begins("for") {
            let (index, span) = name(self)?;
            self.free(index, span)?;
            self.cursor.expect_word("in")?;
            let lo = parse_ix(&mut self.cursor)?;
            self.cursor.expect_punct("..")?;
            let hi = parse_ix(&mut self.cursor)?;
            self.indices.insert(index);
            let body = self.braces(depth)?;
            self.indices.remove(&index);
            return Ok(Stmt::For { index, range: Range { lo, hi }, mode: marked.unwrap_or_default(), body });
        }
        if self.begins("if") {
            let cond = parse_cond(&mut self.cursor)?;
            let then = self.braces(depth)?;
            let otherwise = if self.begins("else") { self.braces(depth)? } else { Vec::new() };
            return Ok(Stmt::If { cond, then, otherwise });
        }
        self.assignment()
    }

    fn assignment(&mut self) -> Result<Stmt, Diagnostic> {
        let (name, span) = self.cursor.expect_name("a statement")?;
        if !self.tensors.contains_key(&name) {
            return Err(ill_formed(span, format!("{name} is no local or buffer in scope")));
        }
        let indices = if self.cursor.peek().is("[") { self.indices()? } else { Vec::new() };
        let target = if self.locals.contains(&name) && indices.is_empty() {
            Target::Local(name)
        } else {
            Target::Element(name, indices.into())
        };
        let op = match (self.cursor.peek().kind, self.cursor.peek().word()) {
            (TokenKind::Punct("="), _) => None,
            (TokenKind::Punct("+="), _) => Some(ReduceOp::Sum),
            (TokenKind::Punct("*="), _) => Some(ReduceOp::Prod),
            (_, Some("min")) => Some(ReduceOp::Min),
            (_, Some("max")) => Some(ReduceOp::Max),
            (_, Some("and")) => Some(ReduceOp::All),
            (_, Some("or")) => Some(ReduceOp::Any),
            _ => return Err(self.cursor.expected("`=`")),
        };
        let sign = self.cursor.take();
        if sign.word().is_some() {
            self.cursor.expect_punct("=")?;
        }
        Ok(Stmt::Assign { target, op, value: self.value()? })
    }
}
