//! Programs as data: TeIL, Fig. 5 (with `contr` and the other reductions) and the model language, Fig. 1 (with several
//! pairs at once), both with markers and symbolic sizes.

use std::fmt;

use certen_core::{Binary, ReduceOp};
use certen_index::{Cond, Ix};
use certen_syntax::{Name, Span};

/// Which notation a program is written in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Notation {
    /// Full TeIL.
    #[default]
    Teil,
    /// Core-TeIL (TeIL, Fig. 12), the part of TeIL whose operations work on the first dimension or dimensions only, and
    /// whose transpositions exchange neighbours: the file begins with `mode core`. Its text leaves those positions out;
    /// as data they are there, so that a Core-TeIL program *is* a TeIL program.
    CoreTeil,
    /// The model language.
    Model,
}

/// A place in [`Program::exprs`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct ExprId(pub(crate) u32);

impl ExprId {
    /// The place as a number.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// An operation entry by entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Arith {
    /// Addition.
    Add,
    /// Subtraction, which TeIL does not write.
    Sub,
    /// Multiplication, entry by entry or by a scalar on the left.
    Mul,
    /// Controlled division (model language, Def. 8), entry by entry or by a scalar on the right. TeIL does not write
    /// it.
    Div,
}

impl Arith {
    /// What it does to elements.
    pub fn meaning(self) -> Binary {
        match self {
            Arith::Add => Binary::Add,
            Arith::Sub => Binary::Sub,
            Arith::Mul => Binary::Mul,
            Arith::Div => Binary::ControlledDiv,
        }
    }
}

/// Two positions of dimensions.
pub type Pair = (i64, i64);

/// An expression. Positions of dimensions count from 1 and are as the user wrote them: typing checks them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Expr {
    /// A tensor.
    Var(Name),
    /// `(e)`
    Paren(ExprId),
    /// Entry by entry.
    Elem(Arith, ExprId, ExprId),
    /// The tensor product.
    Prod(ExprId, ExprId),
    /// `red+`, `red*`, `redmin` or `redmax` along a dimension.
    Red(ReduceOp, i64, ExprId),
    /// The dimensions of each pair exchanged; all positions are the operand's. TeIL writes one pair.
    Transp(Box<[Pair]>, ExprId),
    /// The diagonal of two dimensions; the later one disappears.
    Diag(i64, i64, ExprId),
    /// `contr i0 i1 e := red+ i0 (diag i0 i1 e)` (TeIL, Eq. 6) for each pair, the first one's sum innermost; all
    /// positions are the operand's. TeIL writes one pair.
    Contr(Box<[Pair]>, ExprId),
    /// Repeated along a new dimension at a position, of a size.
    Expa(i64, Ix, ExprId),
    /// The slice at an index (from 1) of the dimension at a position.
    Proj(i64, Ix, ExprId),
    /// Every entry times a number: what `red+ i (expa i n e)` comes to (TeIL, Eq. 5).
    Scale(Ix, ExprId),
    /// Every entry to the power of a number: what `red* i (expa i n e)` comes to (by analogy with TeIL, Eq. 5).
    Power(Ix, ExprId),
}

impl Expr {
    /// The expressions that this one is made of.
    pub fn parts(&self) -> impl Iterator<Item = ExprId> {
        let (first, second) = match self {
            Expr::Var(_) => (None, None),
            Expr::Elem(_, a, b) | Expr::Prod(a, b) => (Some(*a), Some(*b)),
            Expr::Paren(e)
            | Expr::Red(_, _, e)
            | Expr::Transp(_, e)
            | Expr::Diag(_, _, e)
            | Expr::Contr(_, e)
            | Expr::Expa(_, _, e)
            | Expr::Proj(_, _, e)
            | Expr::Scale(_, e)
            | Expr::Power(_, e) => (Some(*e), None),
        };
        first.into_iter().chain(second)
    }

    /// The same operation on other parts.
    pub fn map(&self, mut part: impl FnMut(ExprId) -> ExprId) -> Expr {
        match self {
            Expr::Var(name) => Expr::Var(*name),
            Expr::Paren(e) => Expr::Paren(part(*e)),
            Expr::Elem(op, a, b) => Expr::Elem(*op, part(*a), part(*b)),
            Expr::Prod(a, b) => Expr::Prod(part(*a), part(*b)),
            Expr::Red(op, i, e) => Expr::Red(*op, *i, part(*e)),
            Expr::Transp(pairs, e) => Expr::Transp(pairs.clone(), part(*e)),
            Expr::Diag(i0, i1, e) => Expr::Diag(*i0, *i1, part(*e)),
            Expr::Contr(pairs, e) => Expr::Contr(pairs.clone(), part(*e)),
            Expr::Expa(i, n, e) => Expr::Expa(*i, n.clone(), part(*e)),
            Expr::Proj(i, m, e) => Expr::Proj(*i, m.clone(), part(*e)),
            Expr::Scale(n, e) => Expr::Scale(n.clone(), part(*e)),
            Expr::Power(n, e) => Expr::Power(n.clone(), part(*e)),
        }
    }
}

/// Contractions of one pair each that come to the same as one of all pairs: each counts the dimensions that the ones
/// before it have left.
pub fn one_by_one(pairs: &[Pair]) -> Vec<Pair> {
    let left =
        |done: &[Pair], i: i64| i - done.iter().flat_map(|(a, b)| [*a, *b]).filter(|gone| *gone < i).count() as i64;
    let each = |(at, (i0, i1)): (usize, &Pair)| (left(&pairs[..at], *i0), left(&pairs[..at], *i1));
    pairs.iter().enumerate().map(each).collect()
}

/// What a marker says of a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Marker {
    /// The caller gives its first value.
    pub input: bool,
    /// The caller gets its last value.
    pub output: bool,
}

impl fmt::Display for Marker {
    /// The words, each with a blank after it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [(self.input, "input "), (self.output, "output ")];
        words.into_iter().filter(|(set, _)| *set).try_for_each(|(_, word)| f.write_str(word))
    }
}

impl Marker {
    /// Whether anything is marked.
    pub fn is_some(self) -> bool {
        self.input || self.output
    }
}

/// `alloc x : [n1, …]`, `var x : [n1 …]`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decl {
    /// `input`, `output`, both or neither.
    pub marker: Marker,
    /// The tensor's name.
    pub name: Name,
    /// Where the name stands.
    pub name_span: Span,
    /// The sizes, and where each stands.
    pub shape: Vec<(Ix, Span)>,
}

/// `where p`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Where {
    /// The condition on sizes.
    pub cond: Cond,
    /// Where it stands.
    pub span: Span,
}

/// `x = e`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stmt {
    /// The tensor that is assigned.
    pub target: Name,
    /// Where its name stands.
    pub target_span: Span,
    /// What is assigned.
    pub value: ExprId,
}

/// A program of the algebra.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Program {
    /// Which notation its text is in.
    pub notation: Notation,
    /// The declarations, in order.
    pub decls: Vec<Decl>,
    /// The conditions on sizes.
    pub wheres: Vec<Where>,
    /// The statements, in order.
    pub stmts: Vec<Stmt>,
    /// The end of its text.
    pub end: Span,
    /// All expressions: parts before the expressions they are in, statement by statement.
    pub exprs: Vec<Expr>,
    /// Where each expression stands.
    pub spans: Vec<Span>,
}

impl Program {
    /// The places of all expressions.
    pub fn ids(&self) -> impl Iterator<Item = ExprId> + use<> {
        (0..self.exprs.len() as u32).map(ExprId)
    }

    /// An expression.
    pub fn expr(&self, id: ExprId) -> &Expr {
        &self.exprs[id.index()]
    }

    /// Where an expression stands.
    pub fn span(&self, id: ExprId) -> Span {
        self.spans[id.index()]
    }

    /// Adds an expression; its parts were added before.
    pub fn add(&mut self, expr: Expr, span: Span) -> ExprId {
        debug_assert!(expr.parts().all(|part| part.index() < self.exprs.len()));
        self.exprs.push(expr);
        self.spans.push(span);
        ExprId(self.exprs.len() as u32 - 1)
    }

    /// The expressions of a statement: those up to its value, from the end of the statement before.
    pub fn exprs_of(&self, stmt: usize) -> impl DoubleEndedIterator<Item = ExprId> {
        let first = stmt.checked_sub(1).map_or(0, |before| self.stmts[before].value.0 + 1);
        (first..=self.stmts[stmt].value.0).map(ExprId)
    }

    /// An expression without the parentheses around it.
    pub fn inner(&self, mut id: ExprId) -> ExprId {
        while let Expr::Paren(inner) = self.expr(id) {
            id = *inner;
        }
        id
    }
}
