//! Expressions of Core from text, by shifting and reducing over an explicit stack.

use std::collections::{BTreeSet, HashMap};

use certen_index::{Cond, Ix, parse_cond, parse_ix};
use certen_syntax::{Code, Cursor, Diagnostic, Name, Span, Token, TokenKind};

use super::{bracketed, elem_type, ill_formed};
use crate::ops::{Binary, Literal, ReduceOp, Unary};
use crate::print::{Level, is_reserved};
use crate::table::Table;
use crate::term::{Carried, Range, Term, TermId, Terms};
use crate::types::{ElemType, TensorType};

/// Reads expressions of Core in a scope that the caller gives; other texts that hold such expressions use it too.
///
/// ```
/// use certen_core::{ElemType, TensorType, TermParser, Terms, print_term};
/// use certen_index::{Facts, Ix};
/// use certen_syntax::{Cursor, Diagnostics, Name, Sources, lex};
///
/// let mut sources = Sources::new();
/// let file = sources.add("example", "x[i + 1] * 0.5");
/// let tokens = lex(sources.get(file).unwrap(), file, &mut Diagnostics::new());
/// let mut terms = Terms::new(Facts::new());
/// let tensor = |name: Name| (name.as_str() == "x").then(|| TensorType::new(ElemType::F64, [Ix::var("n")]));
/// let index = |name: Name| name.as_str() == "i";
/// let term = TermParser::new(&mut terms, &tensor, &index).parse(&mut Cursor::new(&tokens)).unwrap();
/// assert_eq!(print_term(&terms, term), "x[i + 1] * 0.5");
/// ```
pub struct TermParser<'a> {
    terms: &'a mut Terms,
    tensor: &'a dyn Fn(Name) -> Option<TensorType>,
    index: &'a dyn Fn(Name) -> bool,
}

impl<'a> TermParser<'a> {
    /// A parser that adds terms to an arena. `tensor` gives the types of the tensors in scope, `index` says which names
    /// are sizes or indices.
    pub fn new(
        terms: &'a mut Terms,
        tensor: &'a dyn Fn(Name) -> Option<TensorType>,
        index: &'a dyn Fn(Name) -> bool,
    ) -> TermParser<'a> {
        TermParser { terms, tensor, index }
    }

    /// Reads the longest expression that begins here, and leaves the cursor after it.
    ///
    /// # Errors
    /// The first mistake; terms that were read before it stay in the arena.
    pub fn parse(&mut self, cursor: &mut Cursor<'_>) -> Result<TermId, Diagnostic> {
        let mut reader = TermReader {
            terms: self.terms,
            tensor: self.tensor,
            index: self.index,
            locals: HashMap::new(),
            frames: Vec::new(),
            values: Vec::new(),
        };
        loop {
            if let Some(value) = reader.operand(cursor)? {
                reader.values.push(value);
                if let Some(whole) = reader.after_operand(cursor)? {
                    return Ok(whole);
                }
            }
        }
    }
}

/// What a name means that the expression itself binds.
enum Local {
    Index,
    Tensor(TensorType),
}

/// A form whose operands are not all read yet. The values that were are on the stack of values.
struct Form {
    kind: FormKind,
    /// Where the form begins: the place that errors of typing speak of.
    span: Span,
}

enum FormKind {
    // Open on the right: they end where what follows cannot belong to them.
    Prefix(Unary),
    Infix(Infix),
    Gen(Name, Range),
    Reduce(ReduceOp, Name, Range, Cond),
    Else(Cond),
    LetBody(Name),
    // Closed: a certain token must follow.
    Parenthesis,
    /// A term whose parts are written between parentheses, none of them in its place yet, and how many were read.
    Call(Term, usize),
    Then(Cond),
    LetValue(Name),
    First(Ix, Name, Vec<Name>),
    Next(Ix, Name, Vec<Name>, usize),
}

#[derive(Clone, Copy)]
struct Infix {
    op: Binary,
    level: Level,
    /// `a > b` is `b < a`.
    swapped: bool,
}

impl Infix {
    fn from_token(token: Token) -> Option<Infix> {
        let TokenKind::Punct(punct) = token.kind else { return None };
        let (op, swapped) = match punct {
            ">" => (Binary::Lt, true),
            ">=" => (Binary::Le, true),
            _ => (Binary::from_name(punct)?, false),
        };
        Some(Infix { op, level: Level::of_infix(op)?, swapped })
    }
}

/// The state of reading one expression: a stack of unfinished forms and a stack of finished terms.
struct TermReader<'a> {
    terms: &'a mut Terms,
    tensor: &'a dyn Fn(Name) -> Option<TensorType>,
    index: &'a dyn Fn(Name) -> bool,
    /// Innermost last.
    locals: HashMap<Name, Vec<Local>>,
    frames: Vec<Form>,
    values: Vec<TermId>,
}

impl TermReader<'_> {
    fn push(&mut self, kind: FormKind, span: Span) {
        self.frames.push(Form { kind, span });
    }

    fn add(&mut self, term: Term, span: Span) -> Result<TermId, Diagnostic> {
        self.terms.add(term).map_err(|error| ill_formed(span, error.to_string()))
    }

    fn bind(&mut self, name: Name, meaning: Local) {
        self.locals.entry(name).or_default().push(meaning);
    }

    fn unbind(&mut self, name: Name) {
        if let Some(meanings) = self.locals.get_mut(&name) {
            meanings.pop();
        }
    }

    // Index level.

    fn known(&self, names: &BTreeSet<Name>, span: Span) -> Result<(), Diagnostic> {
        let is_index = |name: Name| match self.locals.get(&name).and_then(|meanings| meanings.last()) {
            Some(local) => matches!(local, Local::Index),
            None => (self.index)(name),
        };
        match names.iter().find(|name| !is_index(**name)) {
            Some(name) => Err(ill_formed(span, format!("`{name}` is no size or index in scope"))),
            None => Ok(()),
        }
    }

    fn ix(&self, cursor: &mut Cursor<'_>) -> Result<Ix, Diagnostic> {
        let span = cursor.peek().span;
        let ix = parse_ix(cursor)?;
        let mut names = BTreeSet::new();
        ix.collect_names(&mut names);
        self.known(&names, span)?;
        Ok(ix)
    }

    fn cond(&self, cursor: &mut Cursor<'_>) -> Result<Cond, Diagnostic> {
        let span = cursor.peek().span;
        let cond = parse_cond(cursor)?;
        let mut names = BTreeSet::new();
        cond.collect_names(&mut names);
        self.known(&names, span)?;
        Ok(cond)
    }

    // Operands.

    /// Reads up to the end of an operand that is a leaf; or, and then there is nothing, up to where an operand of a new
    /// frame begins.
    fn operand(&mut self, cursor: &mut Cursor<'_>) -> Result<Option<TermId>, Diagnostic> {
        let token = cursor.peek();
        let literal = |literal, elem| Ok(Term::Literal(literal, elem));
        let leaf = match token.kind {
            TokenKind::Punct("(") => {
                cursor.take();
                self.push(FormKind::Parenthesis, token.span);
                return Ok(None);
            }
            TokenKind::Punct(sign @ ("-" | "!")) => {
                cursor.take();
                self.push(FormKind::Prefix(if sign == "-" { Unary::Neg } else { Unary::Not }), token.span);
                return Ok(None);
            }
            TokenKind::Punct("@") => {
                cursor.take();
                let (name, span) = cursor.expect_name("a tensor's name")?;
                self.reference(name, span)
            }
            TokenKind::Int(value) => {
                cursor.take();
                literal(Literal::Int(value), ElemType::I64)
            }
            TokenKind::Float(value) => {
                cursor.take();
                literal(Literal::Float(value), ElemType::F64)
            }
            TokenKind::Name(name) => match self.word(cursor, name)? {
                Some(leaf) => Ok(leaf),
                None => return Ok(None),
            },
            _ => Err(cursor.expected("an expression")),
        };
        self.add(leaf?, token.span).map(Some)
    }

    fn reference(&self, name: Name, span: Span) -> Result<Term, Diagnostic> {
        let ty = match self.locals.get(&name).and_then(|meanings| meanings.last()) {
            Some(Local::Tensor(ty)) => Some(ty.clone()),
            Some(Local::Index) => None,
            None => (self.tensor)(name),
        };
        match ty {
            Some(ty) => Ok(Term::Ref(name, ty)),
            None => Err(ill_formed(span, format!("`{name}` is no tensor in scope"))
                .note("a size or index used as data is written `index.f64(i)`")),
        }
    }

    /// An operand that begins with a word: a leaf, or nothing if it opened a frame.
    fn word(&mut self, cursor: &mut Cursor<'_>, name: Name) -> Result<Option<Term>, Diagnostic> {
        let (word, span) = (name.as_str(), cursor.take().span);
        match word {
            _ if cursor.peek().is("(") && !is_reserved(word) => return self.call(cursor, word, span),
            "cast" | "index" | "undefined" | "table" if cursor.peek().is(".") => {
                cursor.take();
                let elem = elem_type(cursor)?;
                if word == "table" {
                    return table(cursor, elem, span).map(Some);
                }
                if word == "undefined" {
                    return Ok(Some(Term::Undefined(elem)));
                }
                cursor.expect_punct("(")?;
                if word == "cast" {
                    self.push(FormKind::Call(Term::Cast(elem, TermId::HOLE), 0), span);
                    return Ok(None);
                }
                let ix = self.ix(cursor)?;
                cursor.expect_punct(")")?;
                return Ok(Some(Term::Index(ix, elem)));
            }
            "true" | "false" => return Ok(Some(Term::Literal(Literal::Bool(word == "true"), ElemType::Bool))),
            "if" => {
                let cond = self.cond(cursor)?;
                cursor.expect_word("then")?;
                self.push(FormKind::Then(cond), span);
            }
            "let" => {
                let (name, _) = cursor.expect_name("a name")?;
                cursor.expect_punct("=")?;
                self.push(FormKind::LetValue(name), span);
            }
            "iterate" => {
                let (times, step) = self.steps(cursor)?;
                cursor.expect_punct("(")?;
                let (name, _) = cursor.expect_name("a state's name")?;
                cursor.expect_punct("=")?;
                self.push(FormKind::First(times, step, vec![name]), span);
            }
            _ => match ReduceOp::from_name(word) {
                Some(op) => self.binder(cursor, Some(op), span)?,
                None if word == "gen" => self.binder(cursor, None, span)?,
                None => return self.reference(name, span).map(Some),
            },
        }
        Ok(None)
    }

    /// `NAME in lo..hi where cond .`, after the word for a reduction or a generation.
    fn binder(&mut self, cursor: &mut Cursor<'_>, op: Option<ReduceOp>, span: Span) -> Result<(), Diagnostic> {
        let (name, _) = cursor.expect_name("an index")?;
        cursor.expect_word("in")?;
        let lo = self.ix(cursor)?;
        cursor.expect_punct("..")?;
        let range = Range { lo, hi: self.ix(cursor)? };
        self.bind(name, Local::Index);
        let kind = match op {
            None => FormKind::Gen(name, range),
            Some(op) => {
                let cond = if cursor.eat_word("where") { self.cond(cursor)? } else { Cond::always() };
                FormKind::Reduce(op, name, range, cond)
            }
        };
        cursor.expect_punct(".")?;
        self.push(kind, span);
        Ok(())
    }

    /// How often, and the name of the step: `NAME in 0..ix`, or `ix times` and then a name that is not in scope.
    fn steps(&mut self, cursor: &mut Cursor<'_>) -> Result<(Ix, Name), Diagnostic> {
        if cursor.peek_at(1).word() == Some("in") {
            let (step, _) = cursor.expect_name("the step's name")?;
            cursor.expect_word("in")?;
            let (first, span) = cursor.expect_int("0")?;
            if first != 0 {
                return Err(Diagnostic::error(Code::E0103, span, "steps count from 0"));
            }
            cursor.expect_punct("..")?;
            return Ok((self.ix(cursor)?, step));
        }
        let times = self.ix(cursor)?;
        cursor.expect_word("times")?;
        let is_used = |name| self.locals.contains_key(&name) || (self.index)(name) || (self.tensor)(name).is_some();
        Ok((times, Name::fresh("step", is_used)))
    }

    /// A function, from its parenthesis on.
    fn call(&mut self, cursor: &mut Cursor<'_>, function: &str, span: Span) -> Result<Option<Term>, Diagnostic> {
        cursor.take();
        let leading_ix = |cursor: &mut Cursor<'_>| {
            let ix = self.ix(cursor)?;
            cursor.expect_punct(",").map(|_| ix)
        };
        let call = match function {
            "guard" => {
                let cond = self.cond(cursor)?;
                cursor.expect_punct(",")?;
                Term::Guard(cond, TermId::HOLE)
            }
            "split" => {
                let (k, _) = cursor.expect_int("a block size")?;
                cursor.expect_punct(",")?;
                Term::Split(k, TermId::HOLE)
            }
            "pad_l" => Term::PadLeft(leading_ix(cursor)?, TermId::HOLE),
            "pad_r" => Term::PadRight(leading_ix(cursor)?, TermId::HOLE),
            "trunc_l" => Term::TruncLeft(leading_ix(cursor)?, TermId::HOLE),
            "trunc_r" => Term::TruncRight(leading_ix(cursor)?, TermId::HOLE),
            "flatten" => Term::Flatten(TermId::HOLE),
            "transpose" => Term::Transpose(TermId::HOLE),
            "concat" => Term::Concat(TermId::HOLE, TermId::HOLE),
            "select" => Term::Choose(TermId::HOLE, TermId::HOLE, TermId::HOLE),
            "fma" => Term::Fma(TermId::HOLE, TermId::HOLE, TermId::HOLE),
            _ => match (Unary::from_name(function), Binary::from_name(function), function.parse()) {
                (Some(op), ..) => Term::Unary(op, TermId::HOLE),
                (_, Some(op), _) => Term::Binary(op, TermId::HOLE, TermId::HOLE),
                (.., Ok(elem)) => return literal(cursor, elem).map(Some),
                _ => return Err(Diagnostic::error(Code::E0103, span, format!("there is no function `{function}`"))),
            },
        };
        self.push(FormKind::Call(call, 0), span);
        Ok(None)
    }

    // After operands.

    /// Reads what follows an operand, up to where the next one begins; or to the end, and then there is the whole.
    fn after_operand(&mut self, cursor: &mut Cursor<'_>) -> Result<Option<TermId>, Diagnostic> {
        loop {
            let token = cursor.peek();
            if token.is("[") {
                let tensor = self.value(token.span)?;
                let indices = bracketed(cursor, |cursor| self.ix(cursor))?;
                let element = self.add(Term::Select(tensor, indices.into()), token.span)?;
                self.values.push(element);
            } else if let Some(infix) = Infix::from_token(token) {
                cursor.take();
                self.reduce(infix.level)?;
                self.push(FormKind::Infix(infix), token.span);
                return Ok(None);
            } else {
                self.reduce(Level::Open)?;
                let Some(frame) = self.frames.pop() else { return self.value(token.span).map(Some) };
                if self.close(cursor, frame)? {
                    return Ok(None);
                }
            }
        }
    }

    fn value(&mut self, span: Span) -> Result<TermId, Diagnostic> {
        // Every frame that is reduced or closed has had its operands read.
        self.values.pop().ok_or_else(|| ill_formed(span, "an operand is missing"))
    }

    /// Finishes the innermost forms that hold their operands at least this tightly.
    fn reduce(&mut self, level: Level) -> Result<(), Diagnostic> {
        while let Some(frame) = self.frames.pop_if(|frame| frame.kind.level().is_some_and(|own| own >= level)) {
            let span = frame.span;
            let last = self.value(span)?;
            let term = match frame.kind {
                FormKind::Prefix(op) => Term::Unary(op, last),
                FormKind::Infix(Infix { op, swapped, .. }) => {
                    let first = self.value(span)?;
                    if swapped { Term::Binary(op, last, first) } else { Term::Binary(op, first, last) }
                }
                FormKind::Gen(name, range) => {
                    self.unbind(name);
                    Term::Gen(name, range, last)
                }
                FormKind::Reduce(op, name, range, cond) => {
                    self.unbind(name);
                    Term::Reduce(op, name, range, cond, last)
                }
                FormKind::Else(cond) => Term::If(cond, self.value(span)?, last),
                FormKind::LetBody(name) => {
                    self.unbind(name);
                    Term::Let(name, self.value(span)?, last)
                }
                // Has no level, so it is not here.
                _ => return Err(ill_formed(span, "this form is not complete")),
            };
            let id = self.add(term, span)?;
            self.values.push(id);
        }
        Ok(())
    }

    /// Goes on with a closed form after one of its operands: true if another one follows, false if it is finished and
    /// its value is pushed.
    fn close(&mut self, cursor: &mut Cursor<'_>, Form { kind, span }: Form) -> Result<bool, Diagnostic> {
        let (term, more) = match kind {
            FormKind::Parenthesis => {
                cursor.expect_punct(")")?;
                return Ok(false);
            }
            FormKind::Call(call, before) if before + 1 < call.parts().len() => {
                cursor.expect_punct(",")?;
                (None, Some(FormKind::Call(call, before + 1)))
            }
            FormKind::Call(call, _) => {
                cursor.expect_punct(")")?;
                let holes = call.parts().len();
                let mut parts = self.values.split_off(self.values.len().saturating_sub(holes)).into_iter();
                let is_complete = parts.len() == holes;
                (is_complete.then(|| call.with_parts(|hole| parts.next().unwrap_or(hole))), None)
            }
            FormKind::Then(cond) => {
                cursor.expect_word("else")?;
                (None, Some(FormKind::Else(cond)))
            }
            FormKind::LetValue(name) => {
                cursor.expect_word("in")?;
                self.bind_last(name, 0);
                (None, Some(FormKind::LetBody(name)))
            }
            FormKind::First(times, step, mut names) => {
                if cursor.eat(",") {
                    names.push(cursor.expect_name("a state's name")?.0);
                    cursor.expect_punct("=")?;
                    (None, Some(FormKind::First(times, step, names)))
                } else {
                    cursor.expect_punct(")")?;
                    cursor.expect_word("then")?;
                    cursor.expect_punct("(")?;
                    self.bind(step, Local::Index);
                    for (at, name) in names.iter().rev().enumerate() {
                        self.bind_last(*name, at);
                    }
                    state_name(cursor, &names, 0)?;
                    (None, Some(FormKind::Next(times, step, names, 0)))
                }
            }
            FormKind::Next(times, step, names, before) if before + 1 < names.len() => {
                cursor.expect_punct(",")?;
                state_name(cursor, &names, before + 1)?;
                (None, Some(FormKind::Next(times, step, names, before + 1)))
            }
            FormKind::Next(times, step, names, _) => {
                cursor.expect_punct(")")?;
                cursor.expect_word("give")?;
                let (given, given_span) = cursor.expect_name("the state to give")?;
                let Some(at) = names.iter().position(|name| *name == given) else {
                    return Err(ill_formed(given_span, format!("`{given}` is no state of this iteration")));
                };
                names.iter().chain([&step]).for_each(|name| self.unbind(*name));
                let next = self.values.split_off(self.values.len().saturating_sub(names.len()));
                let init = self.values.split_off(self.values.len().saturating_sub(names.len()));
                let states = names.iter().zip(init.iter().zip(&next));
                let states = states.map(|(&name, (&init, &next))| Carried { name, init, next }).collect();
                (Some(Term::Iterate(times, step, states, at)), None)
            }
            // Open forms have a level and were reduced.
            _ => (None, None),
        };
        match (term, more) {
            (Some(term), _) => {
                let id = self.add(term, span)?;
                self.values.push(id);
                Ok(false)
            }
            (None, Some(kind)) => {
                self.push(kind, span);
                Ok(true)
            }
            (None, None) => Err(ill_formed(span, "this form is not complete")),
        }
    }

    /// Binds a name to the type of a value, counted from the last one.
    fn bind_last(&mut self, name: Name, at: usize) {
        if let Some(&value) = self.values.iter().rev().nth(at) {
            let ty = self.terms.ty(value).clone();
            self.bind(name, Local::Tensor(ty));
        }
    }
}

impl FormKind {
    /// How tightly a form that is open on the right holds its last operand; nothing for closed ones.
    fn level(&self) -> Option<Level> {
        match self {
            FormKind::Prefix(_) => Some(Level::Prefix),
            FormKind::Infix(infix) => Some(infix.level),
            FormKind::Gen(..) | FormKind::Reduce(..) | FormKind::Else(_) | FormKind::LetBody(_) => Some(Level::Open),
            _ => None,
        }
    }
}

/// `NAME =`, with the name that the state at this position has.
fn state_name(cursor: &mut Cursor<'_>, names: &[Name], at: usize) -> Result<(), Diagnostic> {
    if let Some(name) = names.get(at) {
        cursor.expect_word(name.as_str())?;
    }
    cursor.expect_punct("=").map(drop)
}

/// `[sizes](numbers)`, after `table.f64`.
fn table(cursor: &mut Cursor<'_>, elem: ElemType, span: Span) -> Result<Term, Diagnostic> {
    let shape = bracketed(cursor, |cursor| {
        let (size, span) = cursor.expect_int("a size")?;
        usize::try_from(size).map_err(|_| ill_formed(span, "the sizes of a table are not negative"))
    })?;
    cursor.expect_punct("(")?;
    let mut elements = Vec::new();
    while !cursor.peek().is(")") {
        if !elements.is_empty() {
            cursor.expect_punct(",")?;
        }
        elements.push(number(cursor, elem)?);
    }
    cursor.expect_punct(")")?;
    let table = Table::new(elem, shape, elements).map_err(|error| ill_formed(span, error.to_string()))?;
    Ok(Term::Table(table))
}

/// The number in `f32(0.5)`, and the parenthesis after it.
fn literal(cursor: &mut Cursor<'_>, elem: ElemType) -> Result<Term, Diagnostic> {
    let number = number(cursor, elem)?;
    cursor.expect_punct(")")?;
    Ok(Term::Literal(number, elem))
}

/// A number with a sign, or a truth value.
fn number(cursor: &mut Cursor<'_>, elem: ElemType) -> Result<Literal, Diagnostic> {
    let negative = cursor.eat("-");
    let token = cursor.take();
    let number = match token.kind {
        TokenKind::Float(value) if elem.is_float() => Literal::Float(value),
        TokenKind::Int(value) if elem.is_float() => Literal::Float(value as f64),
        TokenKind::Int(value) => Literal::Int(value),
        _ => match token.word() {
            Some("inf") if elem.is_float() => Literal::Float(f64::INFINITY),
            Some("nan") if elem.is_float() && !negative => Literal::Float(f64::NAN),
            Some("min") if elem == ElemType::I64 && !negative => Literal::Int(i64::MIN),
            Some(word @ ("true" | "false")) if elem == ElemType::Bool && !negative => Literal::Bool(word == "true"),
            _ => {
                let message = format!("expected a number of type {elem}, found {}", token.describe());
                return Err(Diagnostic::error(Code::E0103, token.span, message));
            }
        },
    };
    Ok(match number {
        Literal::Float(value) => {
            let value = if negative { -value } else { value };
            Literal::Float(if elem == ElemType::F32 { f64::from(value as f32) } else { value })
        }
        Literal::Int(value) if negative => Literal::Int(value.wrapping_neg()),
        other => other,
    })
}
