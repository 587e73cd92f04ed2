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
//!            and selections behind an operand:  operand "[" ixs "]"
//! primary := NAME | "@" NAME                                  a tensor; "@" if its name begins an expression
//!          | INT | FLOAT | "true" | "false"                   i64, f64, bool
//!          | ELEM "(" "-"? (INT | FLOAT | "inf" | "nan" | "min") ")"
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

use std::collections::{BTreeSet, HashMap, HashSet};

use certen_index::{Cond, Facts, Ix, parse_cond, parse_ix};
use certen_syntax::{Code, Cursor, Diagnostic, Diagnostics, FileId, Name, Sources, Span, Token, TokenKind, lex};

use crate::print::{Level, is_reserved};
use crate::{
    Binary, Binding, Carried, ElemType, Literal, Parameter, Program, Range, ReduceOp, TensorType, Term, TermId, Terms,
    Unary,
};

/// What every function here gives: something read, or why not.
type Read<T> = Result<T, Diagnostic>;

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

fn program(cursor: &mut Cursor<'_>) -> Read<Program> {
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
fn separated<T>(cursor: &mut Cursor<'_>, one: impl Fn(&mut Cursor<'_>) -> Read<T>) -> Read<Vec<T>> {
    let mut list = vec![one(cursor)?];
    while cursor.eat(",") {
        list.push(one(cursor)?);
    }
    Ok(list)
}

/// Reads `[`, things with commas between them, perhaps none, and `]`.
fn bracketed<T>(cursor: &mut Cursor<'_>, one: impl Fn(&mut Cursor<'_>) -> Read<T>) -> Read<Vec<T>> {
    cursor.expect_punct("[")?;
    let list = if cursor.peek().is("]") { Vec::new() } else { separated(cursor, one)? };
    cursor.expect_punct("]").map(|_| list)
}

fn elem_type(cursor: &mut Cursor<'_>) -> Read<ElemType> {
    let elem = cursor.peek().word().and_then(|word| word.parse().ok());
    let elem = elem.ok_or_else(|| cursor.expected("an element type such as `f64`"))?;
    cursor.take();
    Ok(elem)
}

fn tensor_type(cursor: &mut Cursor<'_>) -> Read<TensorType> {
    let elem = elem_type(cursor)?;
    let shape = if cursor.peek().is("[") { bracketed(cursor, parse_ix)? } else { Vec::new() };
    Ok(TensorType::new(elem, shape))
}

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

    /// Reads the longest expression that begins here, and leaves the cursor behind it.
    ///
    /// # Errors
    /// The first mistake; terms that were read before it stay in the arena.
    pub fn parse(&mut self, cursor: &mut Cursor<'_>) -> Result<TermId, Diagnostic> {
        let mut reader = Reader {
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
                if let Some(whole) = reader.behind_operand(cursor)? {
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
struct Frame {
    kind: FrameKind,
    /// Where the form begins: the place that errors of typing speak of.
    span: Span,
}

enum FrameKind {
    // Open on the right: they end where what follows cannot belong to them.
    Prefix(Unary),
    Infix(Infix),
    Gen(Name, Range),
    Reduce(ReduceOp, Name, Range, Cond),
    Else(Cond),
    LetBody(Name),
    // Closed: a certain token must follow.
    Parenthesis,
    Call(Call, usize),
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

/// A form that is written as a function of terms; what is not a term is read already.
enum Call {
    Guard(Cond),
    Flatten,
    Split(i64),
    Transpose,
    Concat,
    PadLeft(Ix),
    PadRight(Ix),
    TruncLeft(Ix),
    TruncRight(Ix),
    Unary(Unary),
    Binary(Binary),
    Choose,
    Fma,
    Cast(ElemType),
}

impl Call {
    /// How many terms it takes.
    fn arity(&self) -> usize {
        match self {
            Call::Concat | Call::Binary(_) => 2,
            Call::Choose | Call::Fma => 3,
            _ => 1,
        }
    }

    /// The term, from as many parts as [`Call::arity`] says.
    fn term(self, parts: &[TermId]) -> Option<Term> {
        Some(match (self, parts) {
            (Call::Guard(cond), &[a]) => Term::Guard(cond, a),
            (Call::Flatten, &[a]) => Term::Flatten(a),
            (Call::Split(k), &[a]) => Term::Split(k, a),
            (Call::Transpose, &[a]) => Term::Transpose(a),
            (Call::Concat, &[a, b]) => Term::Concat(a, b),
            (Call::PadLeft(k), &[a]) => Term::PadLeft(k, a),
            (Call::PadRight(k), &[a]) => Term::PadRight(k, a),
            (Call::TruncLeft(k), &[a]) => Term::TruncLeft(k, a),
            (Call::TruncRight(k), &[a]) => Term::TruncRight(k, a),
            (Call::Unary(op), &[a]) => Term::Unary(op, a),
            (Call::Binary(op), &[a, b]) => Term::Binary(op, a, b),
            (Call::Choose, &[cond, a, b]) => Term::Choose(cond, a, b),
            (Call::Fma, &[a, b, c]) => Term::Fma(a, b, c),
            (Call::Cast(elem), &[a]) => Term::Cast(elem, a),
            _ => return None,
        })
    }
}

/// The state of reading one expression: a stack of unfinished forms and a stack of finished terms.
struct Reader<'a> {
    terms: &'a mut Terms,
    tensor: &'a dyn Fn(Name) -> Option<TensorType>,
    index: &'a dyn Fn(Name) -> bool,
    /// Innermost last.
    locals: HashMap<Name, Vec<Local>>,
    frames: Vec<Frame>,
    values: Vec<TermId>,
}

impl Reader<'_> {
    fn push(&mut self, kind: FrameKind, span: Span) {
        self.frames.push(Frame { kind, span });
    }

    fn add(&mut self, term: Term, span: Span) -> Read<TermId> {
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

    fn known(&self, names: &BTreeSet<Name>, span: Span) -> Read<()> {
        let is_index = |name: Name| match self.locals.get(&name).and_then(|meanings| meanings.last()) {
            Some(local) => matches!(local, Local::Index),
            None => (self.index)(name),
        };
        match names.iter().find(|name| !is_index(**name)) {
            Some(name) => Err(ill_formed(span, format!("`{name}` is no size or index in scope"))),
            None => Ok(()),
        }
    }

    fn ix(&self, cursor: &mut Cursor<'_>) -> Read<Ix> {
        let span = cursor.peek().span;
        let ix = parse_ix(cursor)?;
        let mut names = BTreeSet::new();
        ix.collect_names(&mut names);
        self.known(&names, span)?;
        Ok(ix)
    }

    fn cond(&self, cursor: &mut Cursor<'_>) -> Read<Cond> {
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
    fn operand(&mut self, cursor: &mut Cursor<'_>) -> Read<Option<TermId>> {
        let token = cursor.peek();
        let literal = |literal, elem| Ok(Term::Literal(literal, elem));
        let leaf = match token.kind {
            TokenKind::Punct("(") => {
                cursor.take();
                self.push(FrameKind::Parenthesis, token.span);
                return Ok(None);
            }
            TokenKind::Punct(sign @ ("-" | "!")) => {
                cursor.take();
                self.push(FrameKind::Prefix(if sign == "-" { Unary::Neg } else { Unary::Not }), token.span);
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

    fn reference(&self, name: Name, span: Span) -> Read<Term> {
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
    fn word(&mut self, cursor: &mut Cursor<'_>, name: Name) -> Read<Option<Term>> {
        let (word, span) = (name.as_str(), cursor.take().span);
        match word {
            _ if cursor.peek().is("(") && !is_reserved(word) => return self.call(cursor, word, span),
            "cast" | "index" | "undefined" if cursor.peek().is(".") => {
                cursor.take();
                let elem = elem_type(cursor)?;
                if word == "undefined" {
                    return Ok(Some(Term::Undefined(elem)));
                }
                cursor.expect_punct("(")?;
                if word == "cast" {
                    self.push(FrameKind::Call(Call::Cast(elem), 0), span);
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
                self.push(FrameKind::Then(cond), span);
            }
            "let" => {
                let (name, _) = cursor.expect_name("a name")?;
                cursor.expect_punct("=")?;
                self.push(FrameKind::LetValue(name), span);
            }
            "iterate" => {
                let (times, step) = self.steps(cursor)?;
                cursor.expect_punct("(")?;
                let (name, _) = cursor.expect_name("a state's name")?;
                cursor.expect_punct("=")?;
                self.push(FrameKind::First(times, step, vec![name]), span);
            }
            _ => match ReduceOp::from_name(word) {
                Some(op) => self.binder(cursor, Some(op), span)?,
                None if word == "gen" => self.binder(cursor, None, span)?,
                None => return self.reference(name, span).map(Some),
            },
        }
        Ok(None)
    }

    /// `NAME in lo..hi where cond .`, behind the word for a reduction or a generation.
    fn binder(&mut self, cursor: &mut Cursor<'_>, op: Option<ReduceOp>, span: Span) -> Read<()> {
        let (name, _) = cursor.expect_name("an index")?;
        cursor.expect_word("in")?;
        let lo = self.ix(cursor)?;
        cursor.expect_punct("..")?;
        let range = Range { lo, hi: self.ix(cursor)? };
        self.bind(name, Local::Index);
        let kind = match op {
            None => FrameKind::Gen(name, range),
            Some(op) => {
                let cond = if cursor.eat_word("where") { self.cond(cursor)? } else { Cond::always() };
                FrameKind::Reduce(op, name, range, cond)
            }
        };
        cursor.expect_punct(".")?;
        self.push(kind, span);
        Ok(())
    }

    /// How often, and the name of the step: `NAME in 0..ix`, or `ix times` and then a name that is not in scope.
    fn steps(&mut self, cursor: &mut Cursor<'_>) -> Read<(Ix, Name)> {
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
    fn call(&mut self, cursor: &mut Cursor<'_>, function: &str, span: Span) -> Read<Option<Term>> {
        cursor.take();
        let leading_ix = |cursor: &mut Cursor<'_>| {
            let ix = self.ix(cursor)?;
            cursor.expect_punct(",").map(|_| ix)
        };
        let call = match function {
            "guard" => {
                let cond = self.cond(cursor)?;
                cursor.expect_punct(",")?;
                Call::Guard(cond)
            }
            "split" => {
                let (k, _) = cursor.expect_int("a block size")?;
                cursor.expect_punct(",")?;
                Call::Split(k)
            }
            "pad_l" => Call::PadLeft(leading_ix(cursor)?),
            "pad_r" => Call::PadRight(leading_ix(cursor)?),
            "trunc_l" => Call::TruncLeft(leading_ix(cursor)?),
            "trunc_r" => Call::TruncRight(leading_ix(cursor)?),
            "flatten" => Call::Flatten,
            "transpose" => Call::Transpose,
            "concat" => Call::Concat,
            "select" => Call::Choose,
            "fma" => Call::Fma,
            _ => match (Unary::from_name(function), Binary::from_name(function), function.parse()) {
                (Some(op), ..) => Call::Unary(op),
                (_, Some(op), _) => Call::Binary(op),
                (.., Ok(elem)) => return literal(cursor, elem).map(Some),
                _ => return Err(Diagnostic::error(Code::E0103, span, format!("there is no function `{function}`"))),
            },
        };
        self.push(FrameKind::Call(call, 0), span);
        Ok(None)
    }

    // Behind operands.

    /// Reads what follows an operand, up to where the next one begins; or to the end, and then there is the whole.
    fn behind_operand(&mut self, cursor: &mut Cursor<'_>) -> Read<Option<TermId>> {
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
                self.push(FrameKind::Infix(infix), token.span);
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

    fn value(&mut self, span: Span) -> Read<TermId> {
        // Every frame that is reduced or closed has had its operands read.
        self.values.pop().ok_or_else(|| ill_formed(span, "an operand is missing"))
    }

    /// Finishes the innermost forms that hold their operands at least this tightly.
    fn reduce(&mut self, level: Level) -> Read<()> {
        while let Some(frame) = self.frames.pop_if(|frame| frame.kind.level().is_some_and(|own| own >= level)) {
            let span = frame.span;
            let last = self.value(span)?;
            let term = match frame.kind {
                FrameKind::Prefix(op) => Term::Unary(op, last),
                FrameKind::Infix(Infix { op, swapped, .. }) => {
                    let first = self.value(span)?;
                    if swapped { Term::Binary(op, last, first) } else { Term::Binary(op, first, last) }
                }
                FrameKind::Gen(name, range) => {
                    self.unbind(name);
                    Term::Gen(name, range, last)
                }
                FrameKind::Reduce(op, name, range, cond) => {
                    self.unbind(name);
                    Term::Reduce(op, name, range, cond, last)
                }
                FrameKind::Else(cond) => Term::If(cond, self.value(span)?, last),
                FrameKind::LetBody(name) => {
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

    /// Goes on with a closed form behind one of its operands: true if another one follows, false if it is finished and
    /// its value is pushed.
    fn close(&mut self, cursor: &mut Cursor<'_>, Frame { kind, span }: Frame) -> Read<bool> {
        let (term, more) = match kind {
            FrameKind::Parenthesis => {
                cursor.expect_punct(")")?;
                return Ok(false);
            }
            FrameKind::Call(call, before) if before + 1 < call.arity() => {
                cursor.expect_punct(",")?;
                (None, Some(FrameKind::Call(call, before + 1)))
            }
            FrameKind::Call(call, _) => {
                cursor.expect_punct(")")?;
                let parts = self.values.split_off(self.values.len().saturating_sub(call.arity()));
                (call.term(&parts), None)
            }
            FrameKind::Then(cond) => {
                cursor.expect_word("else")?;
                (None, Some(FrameKind::Else(cond)))
            }
            FrameKind::LetValue(name) => {
                cursor.expect_word("in")?;
                self.bind_last(name, 0);
                (None, Some(FrameKind::LetBody(name)))
            }
            FrameKind::First(times, step, mut names) => {
                if cursor.eat(",") {
                    names.push(cursor.expect_name("a state's name")?.0);
                    cursor.expect_punct("=")?;
                    (None, Some(FrameKind::First(times, step, names)))
                } else {
                    cursor.expect_punct(")")?;
                    cursor.expect_word("then")?;
                    cursor.expect_punct("(")?;
                    self.bind(step, Local::Index);
                    for (at, name) in names.iter().rev().enumerate() {
                        self.bind_last(*name, at);
                    }
                    state_name(cursor, &names, 0)?;
                    (None, Some(FrameKind::Next(times, step, names, 0)))
                }
            }
            FrameKind::Next(times, step, names, before) if before + 1 < names.len() => {
                cursor.expect_punct(",")?;
                state_name(cursor, &names, before + 1)?;
                (None, Some(FrameKind::Next(times, step, names, before + 1)))
            }
            FrameKind::Next(times, step, names, _) => {
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

impl FrameKind {
    /// How tightly a form that is open on the right holds its last operand; nothing for closed ones.
    fn level(&self) -> Option<Level> {
        match self {
            FrameKind::Prefix(_) => Some(Level::Prefix),
            FrameKind::Infix(infix) => Some(infix.level),
            FrameKind::Gen(..) | FrameKind::Reduce(..) | FrameKind::Else(_) | FrameKind::LetBody(_) => {
                Some(Level::Open)
            }
            _ => None,
        }
    }
}

/// `NAME =`, with the name that the state at this position has.
fn state_name(cursor: &mut Cursor<'_>, names: &[Name], at: usize) -> Read<()> {
    if let Some(name) = names.get(at) {
        cursor.expect_word(name.as_str())?;
    }
    cursor.expect_punct("=").map(drop)
}

/// The number in `f32(0.5)`, and the parenthesis behind it.
fn literal(cursor: &mut Cursor<'_>, elem: ElemType) -> Read<Term> {
    let negative = cursor.eat("-");
    let token = cursor.take();
    let number = match token.kind {
        TokenKind::Float(value) if elem.is_float() => Literal::Float(value),
        TokenKind::Int(value) if elem.is_float() => Literal::Float(value as f64),
        TokenKind::Int(value) => Literal::Int(value),
        _ if token.word() == Some("inf") && elem.is_float() => Literal::Float(f64::INFINITY),
        _ if token.word() == Some("nan") && elem.is_float() && !negative => Literal::Float(f64::NAN),
        _ if token.word() == Some("min") && elem == ElemType::I64 && !negative => Literal::Int(i64::MIN),
        _ => {
            let message = format!("expected a number of type {elem}, found {}", token.describe());
            return Err(Diagnostic::error(Code::E0103, token.span, message));
        }
    };
    cursor.expect_punct(")")?;
    let number = match number {
        Literal::Float(value) => {
            let value = if negative { -value } else { value };
            Literal::Float(if elem == ElemType::F32 { f64::from(value as f32) } else { value })
        }
        Literal::Int(value) if negative => Literal::Int(value.wrapping_neg()),
        other => other,
    };
    Ok(Term::Literal(number, elem))
}
