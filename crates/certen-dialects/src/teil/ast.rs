//! TeIL programs as data (Fig. 5, with `contr`, the other reductions, markers and symbolic sizes).

use certen_core::ReduceOp;
use certen_index::{Cond, Ix};
use certen_syntax::{Name, Span};

/// Which of the two languages a program is written in.
///
/// Core-TeIL (Fig. 12) is the part of TeIL whose operations work on the first dimension or dimensions only, and whose
/// transpositions exchange neighbours. Its text leaves those positions out; as data they are there, so that a Core-TeIL
/// program *is* a TeIL program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// Full TeIL.
    #[default]
    Full,
    /// Core-TeIL: the file begins with `mode core`.
    Core,
}

/// A place in [`Program::exprs`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct ExprId(pub(super) u32);

impl ExprId {
    /// The place as a number.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// An expression. Positions of dimensions count from 1 and are as the user wrote them: typing checks them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Expr {
    /// A tensor.
    Var(Name),
    /// `(e)`
    Paren(ExprId),
    /// Entry by entry.
    Add(ExprId, ExprId),
    /// Entry by entry, or by a scalar on the left.
    Mul(ExprId, ExprId),
    /// The tensor product.
    Prod(ExprId, ExprId),
    /// `red+`, `red*`, `redmin` or `redmax` along a dimension.
    Red(ReduceOp, i64, ExprId),
    /// Two dimensions exchanged.
    Transp(i64, i64, ExprId),
    /// The diagonal of two dimensions; the later one disappears.
    Diag(i64, i64, ExprId),
    /// `contr i0 i1 e := red+ i0 (diag i0 i1 e)` (Eq. 6).
    Contr(i64, i64, ExprId),
    /// Repeated along a new dimension at a position, of a size.
    Expa(i64, Ix, ExprId),
    /// The slice at an index (from 1) of the dimension at a position.
    Proj(i64, Ix, ExprId),
}

impl Expr {
    /// The expressions that this one is made of.
    pub fn parts(&self) -> impl Iterator<Item = ExprId> {
        let (first, second) = match self {
            Expr::Var(_) => (None, None),
            Expr::Add(a, b) | Expr::Mul(a, b) | Expr::Prod(a, b) => (Some(*a), Some(*b)),
            Expr::Paren(e)
            | Expr::Red(_, _, e)
            | Expr::Transp(_, _, e)
            | Expr::Diag(_, _, e)
            | Expr::Contr(_, _, e)
            | Expr::Expa(_, _, e)
            | Expr::Proj(_, _, e) => (Some(*e), None),
        };
        first.into_iter().chain(second)
    }
}

/// What a marker says of a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Marker {
    /// The caller gives its first value.
    pub input: bool,
    /// The caller gets its last value.
    pub output: bool,
}

impl Marker {
    /// Whether anything is marked.
    pub fn is_some(self) -> bool {
        self.input || self.output
    }
}

/// `alloc x : [n1, …]`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Alloc {
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

/// A TeIL or Core-TeIL program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Program {
    /// Which language its text is in.
    pub mode: Mode,
    /// The allocations, in order.
    pub allocs: Vec<Alloc>,
    /// The conditions on sizes.
    pub wheres: Vec<Where>,
    /// The statements, in order.
    pub stmts: Vec<Stmt>,
    /// The end of its text.
    pub end: Span,
    /// All expressions: parts before the expressions they are in, statement by statement.
    pub(super) exprs: Vec<Expr>,
    /// Where each expression stands.
    pub(super) spans: Vec<Span>,
}

impl Program {
    /// All expressions: parts before the expressions they are in, statement by statement.
    pub fn exprs(&self) -> &[Expr] {
        &self.exprs
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
