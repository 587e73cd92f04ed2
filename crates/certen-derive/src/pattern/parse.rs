//! Patterns from text.
//!
//! ```text
//! term   := ("gen" | "reduce" | REDUCTION) NAME ["in" ix ".." ix] ["where" cond] "." term
//!         | "if" cond "then" term "else" term | "let" NAME "=" term "in" term | infix
//! infix  := operands with, loosest first:  == != < <= > >=   + -   * /   prefix -
//!           and selections:  operand "[" ix, .. "]"
//! operand:= "_" | UPPER ["(" arg, .. ")"] | NAME | NUMBER | ELEM "(" NUMBER ")" | "true" | "false" | "(" term ")"
//!         | "index" "(" ix ")"
//!         | "guard" "(" cond "," term ")" | ("split" | "pad_l" | "pad_r" | "trunc_l" | "trunc_r") "(" ix "," term ")"
//!         | ("flatten" | "transpose" | "reshape" | "fun" | UNARY) "(" term ")"
//!         | ("concat" | "op" | BINARY) "(" term "," term ")" | "select" "(" term "," term "," term ")"
//! cond   := comparisons of ix, chained, with && || ! ( ), true, false, "_" and UPPER ["(" ix, .. ")"]
//! ix     := sums and products of numbers, names, "_", NAME "(" ix, .. ")", floor_div, ceil_div, mod, min, max,
//!           size(UPPER [, INT])
//! ```
//!
//! Patterns are written by people, so they are read by recursion, down to [`MAX_DEPTH`] levels; a chain of operators is
//! nested as deeply as it is long, so there can be [`MAX_OPERATORS`] of them.

use certen_core::{Binary, ElemType, Literal, ReduceOp, Unary};
use certen_syntax::{Code, Cursor, Diagnostic, Diagnostics, Name, Sources, TokenKind, lex};

use super::{Argument, Binder, CondPattern, IndexPattern, Pattern, SideCondition};

/// Patterns that are nested more deeply are refused.
const MAX_DEPTH: usize = 64;

/// Patterns with more operators are refused.
const MAX_OPERATORS: usize = 256;

/// What the names of a text mean.
#[derive(Clone, Copy)]
pub(crate) struct Words<'a> {
    /// Sizes and indices of the program.
    pub index: &'a dyn Fn(Name) -> bool,
    /// Tensors of the program.
    pub tensor: &'a dyn Fn(Name) -> bool,
}

impl Words<'_> {
    /// The words of a rewrite, which knows no program.
    pub(crate) const NONE: Words<'static> = Words { index: &|_| false, tensor: &|_| false };
}

/// Reads a pattern.
///
/// # Errors
/// What is wrong, in a sentence.
pub(crate) fn parse(text: &str, words: Words<'_>) -> Result<Pattern, String> {
    read(text, words, |reader, cursor| reader.term(cursor, 0))
}

/// Reads a side condition.
///
/// # Errors
/// What is wrong, in a sentence.
pub(crate) fn parse_side(text: &str) -> Result<SideCondition, String> {
    read(text, Words::NONE, |reader, cursor| reader.side(cursor, text))
}

fn read<T>(
    text: &str,
    words: Words<'_>,
    one: impl Fn(&mut PatternReader<'_>, &mut Cursor<'_>) -> Result<T, Diagnostic>,
) -> Result<T, String> {
    let mut sources = Sources::new();
    let file = sources.add("pattern", text);
    let mut diagnostics = Diagnostics::new();
    let Some(source) = sources.get(file) else { return Err("there is no text".into()) };
    let tokens = lex(source, file, &mut diagnostics);
    if let Some(error) = diagnostics.iter().find(|d| d.is_error()) {
        return Err(error.message.clone());
    }
    let mut cursor = Cursor::new(&tokens);
    let mut reader = PatternReader { words, indices: Vec::new(), tensors: Vec::new(), operators: 0 };
    let found = one(&mut reader, &mut cursor).map_err(|error| at_end(&error.message))?;
    if cursor.at_end() { Ok(found) } else { Err(at_end(&cursor.expected("the end of the pattern").message)) }
}

/// The text is a piece of a file.
fn at_end(message: &str) -> String {
    message.replace("the end of the file", "the end of the pattern")
}

struct PatternReader<'a> {
    words: Words<'a>,
    /// Indices that the pattern binds.
    indices: Vec<Name>,
    /// Tensors that the pattern binds.
    tensors: Vec<Name>,
    /// How many operators were read.
    operators: usize,
}

/// Whether a name is one of a metavariable for terms and conditions.
fn is_upper(name: Name) -> bool {
    name.as_str().starts_with(|c: char| c.is_ascii_uppercase())
}

impl PatternReader<'_> {
    fn deeper(&self, cursor: &Cursor<'_>, depth: usize) -> Result<usize, Diagnostic> {
        if depth < MAX_DEPTH {
            return Ok(depth + 1);
        }
        Err(Diagnostic::error(Code::E0103, cursor.peek().span, format!("more than {MAX_DEPTH} levels in a pattern")))
    }

    fn operator(&mut self, cursor: &Cursor<'_>) -> Result<(), Diagnostic> {
        self.operators += 1;
        if self.operators <= MAX_OPERATORS {
            return Ok(());
        }
        let message = format!("more than {MAX_OPERATORS} operators in a pattern");
        Err(Diagnostic::error(Code::E0103, cursor.peek().span, message))
    }

    fn side(&mut self, cursor: &mut Cursor<'_>, text: &str) -> Result<SideCondition, Diagnostic> {
        let (mut forall, mut given) = (Vec::new(), Vec::new());
        if cursor.eat_word("forall") {
            loop {
                if cursor.peek_at(1).word() == Some("in") {
                    let binder = self.binder(cursor)?;
                    self.indices.push(binder.name);
                    forall.push(binder);
                } else {
                    given.push(self.cond(cursor, 0)?);
                }
                if !cursor.eat(",") {
                    break;
                }
            }
            cursor.expect_punct(":")?;
        }
        let mut goal = self.cond(cursor, 0)?;
        if cursor.eat(":") {
            given.push(std::mem::replace(&mut goal, self.cond(cursor, 0)?));
        }
        Ok(SideCondition { text: text.into(), forall, given, goal })
    }

    fn binder(&mut self, cursor: &mut Cursor<'_>) -> Result<Binder, Diagnostic> {
        let (name, _) = cursor.expect_name("an index")?;
        if !cursor.eat_word("in") {
            return Ok(Binder { name, lo: IndexPattern::Any, hi: IndexPattern::Any });
        }
        let lo = self.ix(cursor, 0)?;
        cursor.expect_punct("..")?;
        Ok(Binder { name, lo, hi: self.ix(cursor, 0)? })
    }

    // Terms.

    fn term(&mut self, cursor: &mut Cursor<'_>, depth: usize) -> Result<Pattern, Diagnostic> {
        let depth = self.deeper(cursor, depth)?;
        let word = cursor.peek().word().unwrap_or_default();
        let reduce = ReduceOp::from_name(word);
        match word {
            "gen" | "reduce" => {}
            _ if reduce.is_some() => {}
            "if" => {
                cursor.take();
                let cond = self.cond(cursor, depth)?;
                cursor.expect_word("then")?;
                let then = self.term(cursor, depth)?;
                cursor.expect_word("else")?;
                return Ok(Pattern::If(cond, Box::new(then), Box::new(self.term(cursor, depth)?)));
            }
            "let" => {
                cursor.take();
                let (name, _) = cursor.expect_name("a name")?;
                cursor.expect_punct("=")?;
                let value = self.term(cursor, depth)?;
                cursor.expect_word("in")?;
                self.tensors.push(name);
                let body = self.term(cursor, depth);
                self.tensors.pop();
                return Ok(Pattern::Let(name, Box::new(value), Box::new(body?)));
            }
            _ => return self.comparison(cursor, depth),
        }
        cursor.take();
        let binder = self.binder(cursor)?;
        self.indices.push(binder.name);
        let is_gen = word == "gen";
        let cond = if !is_gen && cursor.eat_word("where") { self.cond(cursor, depth)? } else { CondPattern::always() };
        cursor.expect_punct(".")?;
        let body = self.term(cursor, depth);
        self.indices.pop();
        let body = Box::new(body?);
        Ok(if is_gen { Pattern::Gen(binder, body) } else { Pattern::Reduce(reduce, binder, cond, body) })
    }

    fn comparison(&mut self, cursor: &mut Cursor<'_>, depth: usize) -> Result<Pattern, Diagnostic> {
        let left = self.sum(cursor, depth)?;
        let TokenKind::Punct(punct) = cursor.peek().kind else { return Ok(left) };
        let (op, swapped) = match punct {
            "<" | ">" => (Binary::Lt, punct == ">"),
            "<=" | ">=" => (Binary::Le, punct == ">="),
            "==" => (Binary::Eq, false),
            "!=" => (Binary::Ne, false),
            _ => return Ok(left),
        };
        cursor.take();
        let right = self.sum(cursor, depth)?;
        let (left, right) = if swapped { (right, left) } else { (left, right) };
        Ok(Pattern::Binary(Some(op), Box::new(left), Box::new(right)))
    }

    fn sum(&mut self, cursor: &mut Cursor<'_>, depth: usize) -> Result<Pattern, Diagnostic> {
        let mut left = self.product(cursor, depth)?;
        loop {
            let op = match cursor.peek().kind {
                TokenKind::Punct("+") => Binary::Add,
                TokenKind::Punct("-") => Binary::Sub,
                _ => return Ok(left),
            };
            self.operator(cursor)?;
            cursor.take();
            left = Pattern::Binary(Some(op), Box::new(left), Box::new(self.product(cursor, depth)?));
        }
    }

    fn product(&mut self, cursor: &mut Cursor<'_>, depth: usize) -> Result<Pattern, Diagnostic> {
        let mut left = self.prefix(cursor, depth)?;
        loop {
            let op = match cursor.peek().kind {
                TokenKind::Punct("*") => Binary::Mul,
                TokenKind::Punct("/") => Binary::Div,
                _ => return Ok(left),
            };
            self.operator(cursor)?;
            cursor.take();
            left = Pattern::Binary(Some(op), Box::new(left), Box::new(self.prefix(cursor, depth)?));
        }
    }

    fn prefix(&mut self, cursor: &mut Cursor<'_>, depth: usize) -> Result<Pattern, Diagnostic> {
        let depth = self.deeper(cursor, depth)?;
        if cursor.eat("-") {
            return Ok(Pattern::Unary(Some(Unary::Neg), Box::new(self.prefix(cursor, depth)?)));
        }
        let mut operand = self.operand(cursor, depth)?;
        while cursor.eat("[") {
            let indices = self.list(cursor, "]", |reader, cursor| reader.ix(cursor, depth))?;
            operand = match operand {
                Pattern::Select(tensor, mut first) => {
                    first.extend(indices);
                    Pattern::Select(tensor, first)
                }
                tensor => Pattern::Select(Box::new(tensor), indices),
            };
        }
        Ok(operand)
    }

    fn list<T>(
        &mut self,
        cursor: &mut Cursor<'_>,
        close: &str,
        mut one: impl FnMut(&mut Self, &mut Cursor<'_>) -> Result<T, Diagnostic>,
    ) -> Result<Vec<T>, Diagnostic> {
        let mut list = vec![one(self, cursor)?];
        while cursor.eat(",") {
            list.push(one(self, cursor)?);
        }
        cursor.expect_punct(close)?;
        Ok(list)
    }

    fn operand(&mut self, cursor: &mut Cursor<'_>, depth: usize) -> Result<Pattern, Diagnostic> {
        let token = cursor.peek();
        match token.kind {
            TokenKind::Int(value) => {
                cursor.take();
                Ok(Pattern::Number(Literal::Int(value)))
            }
            TokenKind::Float(value) => {
                cursor.take();
                Ok(Pattern::Number(Literal::Float(value)))
            }
            TokenKind::Punct("(") => {
                cursor.take();
                let inner = self.term(cursor, depth)?;
                cursor.expect_punct(")")?;
                Ok(inner)
            }
            TokenKind::Punct("@") => {
                cursor.take();
                Ok(Pattern::Tensor(cursor.expect_name("a tensor's name")?.0))
            }
            TokenKind::Name(name) => {
                cursor.take();
                self.word(cursor, name, depth)
            }
            _ => Err(cursor.expected("a term")),
        }
    }

    fn word(&mut self, cursor: &mut Cursor<'_>, name: Name, depth: usize) -> Result<Pattern, Diagnostic> {
        let word = name.as_str();
        if word == "_" {
            return Ok(Pattern::Any);
        }
        let known = self.tensors.contains(&name) || (self.words.tensor)(name);
        if matches!(word, "index" | "cast") && cursor.eat(".") {
            let elem = cursor.peek().word().and_then(|word| word.parse::<ElemType>().ok());
            let elem = elem.ok_or_else(|| cursor.expected("an element type"))?;
            cursor.take();
            cursor.expect_punct("(")?;
            let pattern = if word == "index" {
                Pattern::Index(self.ix(cursor, depth)?)
            } else {
                Pattern::Cast(elem, Box::new(self.term(cursor, depth)?))
            };
            cursor.expect_punct(")")?;
            return Ok(pattern);
        }
        if matches!(word, "true" | "false") {
            return Ok(Pattern::Number(Literal::Bool(word == "true")));
        }
        if !known && word.parse::<ElemType>().is_ok() && cursor.eat("(") {
            let negative = cursor.eat("-");
            let number = match cursor.take().kind {
                TokenKind::Int(value) => Literal::Int(if negative { value.wrapping_neg() } else { value }),
                TokenKind::Float(value) => Literal::Float(if negative { -value } else { value }),
                _ => return Err(cursor.expected("a number")),
            };
            cursor.expect_punct(")")?;
            // A float's zero has a sign, which a whole number does not have.
            let is_float = word.starts_with('f');
            return Ok(Pattern::Number(match number {
                Literal::Int(0) if negative && is_float => Literal::Float(-0.0),
                number => number,
            }));
        }
        if known || !cursor.peek().is("(") {
            return Ok(if known || !is_upper(name) { Pattern::Tensor(name) } else { Pattern::Meta(name, Vec::new()) });
        }
        cursor.take();
        if is_upper(name) {
            return Ok(Pattern::Meta(name, self.list(cursor, ")", |reader, cursor| reader.argument(cursor, depth))?));
        }
        let pattern = self.call(cursor, word, depth)?;
        cursor.expect_punct(")")?;
        Ok(pattern)
    }

    /// A function of Core, between its parentheses.
    fn call(&mut self, cursor: &mut Cursor<'_>, word: &str, depth: usize) -> Result<Pattern, Diagnostic> {
        let boxed = |pattern| Box::new(pattern);
        let leading = |reader: &mut Self, cursor: &mut Cursor<'_>| {
            let ix = reader.ix(cursor, depth)?;
            cursor.expect_punct(",").map(|_| ix)
        };
        Ok(match word {
            "guard" => {
                let cond = self.cond(cursor, depth)?;
                cursor.expect_punct(",")?;
                Pattern::Guard(cond, boxed(self.term(cursor, depth)?))
            }
            "index" => Pattern::Index(self.ix(cursor, depth)?),
            "split" => Pattern::Split(leading(self, cursor)?, boxed(self.term(cursor, depth)?)),
            "pad_l" => Pattern::PadLeft(leading(self, cursor)?, boxed(self.term(cursor, depth)?)),
            "pad_r" => Pattern::PadRight(leading(self, cursor)?, boxed(self.term(cursor, depth)?)),
            "trunc_l" => Pattern::TruncLeft(leading(self, cursor)?, boxed(self.term(cursor, depth)?)),
            "trunc_r" => Pattern::TruncRight(leading(self, cursor)?, boxed(self.term(cursor, depth)?)),
            "reshape" => Pattern::Reshape(boxed(self.term(cursor, depth)?)),
            "flatten" => Pattern::Flatten(boxed(self.term(cursor, depth)?)),
            "transpose" => Pattern::Transpose(boxed(self.term(cursor, depth)?)),
            "fun" => Pattern::Unary(None, boxed(self.term(cursor, depth)?)),
            _ if let Some(op) = Unary::from_name(word) => Pattern::Unary(Some(op), boxed(self.term(cursor, depth)?)),
            "select" => {
                let cond = boxed(self.term(cursor, depth)?);
                cursor.expect_punct(",")?;
                let first = boxed(self.term(cursor, depth)?);
                cursor.expect_punct(",")?;
                Pattern::Choose(cond, first, boxed(self.term(cursor, depth)?))
            }
            _ => {
                let op = Binary::from_name(word);
                if op.is_none() && !matches!(word, "concat" | "op") {
                    let message = format!("there is no function `{word}`");
                    let span = cursor.previous().map(|token| token.span);
                    return Err(Diagnostic::error(Code::E0103, span, message));
                }
                let left = boxed(self.term(cursor, depth)?);
                cursor.expect_punct(",")?;
                let right = boxed(self.term(cursor, depth)?);
                if word == "concat" { Pattern::Concat(left, right) } else { Pattern::Binary(op, left, right) }
            }
        })
    }

    /// An index expression; or a term, if it begins with the name of a tensor that the pattern binds or with a
    /// metavariable.
    fn argument(&mut self, cursor: &mut Cursor<'_>, depth: usize) -> Result<Argument, Diagnostic> {
        let is_term = match cursor.peek().kind {
            TokenKind::Name(name) => is_upper(name) || self.tensors.contains(&name),
            _ => false,
        };
        if is_term {
            return Ok(Argument::Term(self.term(cursor, depth)?));
        }
        Ok(Argument::Index(self.ix(cursor, depth)?))
    }

    // Conditions.

    fn cond(&mut self, cursor: &mut Cursor<'_>, depth: usize) -> Result<CondPattern, Diagnostic> {
        let mut any = vec![self.all(cursor, depth)?];
        while cursor.eat("||") {
            any.push(self.all(cursor, depth)?);
        }
        Ok(if any.len() == 1 { any.remove(0) } else { CondPattern::Or(any) })
    }

    fn all(&mut self, cursor: &mut Cursor<'_>, depth: usize) -> Result<CondPattern, Diagnostic> {
        let mut all = Vec::new();
        loop {
            match self.one(cursor, depth)? {
                CondPattern::And(parts) => all.extend(parts),
                part => all.push(part),
            }
            if !cursor.eat("&&") {
                return Ok(if all.len() == 1 { all.remove(0) } else { CondPattern::And(all) });
            }
        }
    }

    fn one(&mut self, cursor: &mut Cursor<'_>, depth: usize) -> Result<CondPattern, Diagnostic> {
        let depth = self.deeper(cursor, depth)?;
        let token = cursor.peek();
        if cursor.eat_word("true") {
            return Ok(CondPattern::always());
        }
        if cursor.eat_word("false") {
            return Ok(CondPattern::Or(Vec::new()));
        }
        if cursor.eat("!") {
            return Ok(CondPattern::Not(Box::new(self.one(cursor, depth)?)));
        }
        if let TokenKind::Name(name) = token.kind
            && is_upper(name)
            && !(self.words.index)(name)
        {
            cursor.take();
            let arguments = match cursor.eat("(") {
                true => self.list(cursor, ")", |reader, cursor| reader.ix(cursor, depth))?,
                false => Vec::new(),
            };
            return Ok(CondPattern::Meta(name, arguments));
        }
        if token.word() == Some("_") && comparison(&after(cursor)).is_none() {
            cursor.take();
            return Ok(CondPattern::Any);
        }
        if token.is("(") {
            let mut ahead = *cursor;
            let is_comparison = self.ix(&mut ahead, depth).is_ok() && comparison(&ahead).is_some();
            if !is_comparison {
                cursor.take();
                let inner = self.cond(cursor, depth)?;
                cursor.expect_punct(")")?;
                return Ok(inner);
            }
        }
        let mut left = self.ix(cursor, depth)?;
        let mut chain = Vec::new();
        while let Some(operator) = comparison(cursor) {
            cursor.take();
            let right = self.ix(cursor, depth)?;
            let (a, b) = (left, right.clone());
            chain.push(match operator {
                "<" => CondPattern::Lt(a, b),
                "<=" => CondPattern::Le(a, b),
                ">" => CondPattern::Lt(b, a),
                ">=" => CondPattern::Le(b, a),
                "!=" => CondPattern::Not(Box::new(CondPattern::Eq(a, b))),
                _ => CondPattern::Eq(a, b),
            });
            left = right;
        }
        match chain.len() {
            0 => Err(cursor.expected("a comparison such as `>=`")),
            1 => Ok(chain.remove(0)),
            _ => Ok(CondPattern::And(chain)),
        }
    }

    // Indices.

    fn ix(&mut self, cursor: &mut Cursor<'_>, depth: usize) -> Result<IndexPattern, Diagnostic> {
        let depth = self.deeper(cursor, depth)?;
        let mut left = self.ix_product(cursor, depth)?;
        loop {
            let make = match cursor.peek().kind {
                TokenKind::Punct("+") => IndexPattern::Add,
                TokenKind::Punct("-") => IndexPattern::Sub,
                _ => return Ok(left),
            };
            self.operator(cursor)?;
            cursor.take();
            left = make(Box::new(left), Box::new(self.ix_product(cursor, depth)?));
        }
    }

    fn ix_product(&mut self, cursor: &mut Cursor<'_>, depth: usize) -> Result<IndexPattern, Diagnostic> {
        let mut left = self.ix_primary(cursor, depth)?;
        while cursor.eat("*") {
            self.operator(cursor)?;
            left = IndexPattern::Mul(Box::new(left), Box::new(self.ix_primary(cursor, depth)?));
        }
        Ok(left)
    }

    fn ix_primary(&mut self, cursor: &mut Cursor<'_>, depth: usize) -> Result<IndexPattern, Diagnostic> {
        let depth = self.deeper(cursor, depth)?;
        match cursor.peek().kind {
            TokenKind::Int(value) => {
                cursor.take();
                Ok(IndexPattern::Number(value))
            }
            TokenKind::Punct("-") => {
                cursor.take();
                Ok(IndexPattern::Sub(Box::new(IndexPattern::Number(0)), Box::new(self.ix_primary(cursor, depth)?)))
            }
            TokenKind::Punct("(") => {
                cursor.take();
                let inner = self.ix(cursor, depth)?;
                cursor.expect_punct(")")?;
                Ok(inner)
            }
            TokenKind::Name(name) => {
                cursor.take();
                self.ix_word(cursor, name, depth)
            }
            _ => Err(cursor.expected("a size or an index")),
        }
    }

    fn ix_word(&mut self, cursor: &mut Cursor<'_>, name: Name, depth: usize) -> Result<IndexPattern, Diagnostic> {
        let word = name.as_str();
        if word == "_" {
            return Ok(IndexPattern::Any);
        }
        if !cursor.peek().is("(") {
            // What the pattern binds hides what the program knows.
            let known = !self.indices.contains(&name) && (self.words.index)(name);
            return Ok(if known { IndexPattern::Known(name) } else { IndexPattern::Var(name) });
        }
        cursor.take();
        let make = match word {
            "floor_div" => IndexPattern::FloorDiv,
            "ceil_div" => IndexPattern::CeilDiv,
            "mod" => IndexPattern::Mod,
            "min" => IndexPattern::Min,
            "max" => IndexPattern::Max,
            "size" => {
                let (of, _) = cursor.expect_name("a metavariable")?;
                let at = if cursor.eat(",") { cursor.expect_int("which size")?.0 } else { 0 };
                cursor.expect_punct(")")?;
                return Ok(IndexPattern::Size(of, usize::try_from(at).unwrap_or(usize::MAX)));
            }
            _ => {
                return Ok(IndexPattern::Meta(
                    name,
                    self.list(cursor, ")", |reader, cursor| reader.ix(cursor, depth))?,
                ));
            }
        };
        let left = self.ix(cursor, depth)?;
        cursor.expect_punct(",")?;
        let right = self.ix(cursor, depth)?;
        cursor.expect_punct(")")?;
        Ok(make(Box::new(left), Box::new(right)))
    }
}

fn after<'a>(cursor: &Cursor<'a>) -> Cursor<'a> {
    let mut ahead = *cursor;
    ahead.take();
    ahead
}

fn comparison(cursor: &Cursor<'_>) -> Option<&'static str> {
    match cursor.peek().kind {
        TokenKind::Punct(p @ ("<" | "<=" | ">" | ">=" | "==" | "!=")) => Some(p),
        _ => None,
    }
}
