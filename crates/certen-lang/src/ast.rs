//! The `.ten` language as it is written: what the parser makes and the printer prints.
//!
//! Names are not resolved and nothing is typed. Every node that a message can speak of has its place in the text.

use certen_core::ElemType;
use certen_core::script::{Derivation, Tactic};
use certen_syntax::schedule::Schedule;
use certen_syntax::{Name, Span};

/// A name and where it stands.
#[derive(Clone, Copy, Debug)]
pub struct Ident {
    /// The name.
    pub name: Name,
    /// Where it stands.
    pub span: Span,
}

/// A file: its items in order.
#[derive(Clone, Debug, Default)]
pub struct File {
    /// What it declares.
    pub items: Vec<Item>,
}

/// A declaration.
#[derive(Clone, Debug)]
pub enum Item {
    /// `import "stencils.ten";`
    Import(Import),
    /// `const G = 9.81;`
    Const(Const),
    /// `fn f(x: f64[n]) -> f64[n] { … }`
    Function(Function),
    /// `schedule f { … }`
    Schedule(Schedule),
    /// `derive g from f { … }`
    Derive(Derivation),
    /// `derivation t(a, b) { … }`
    Tactic(Tactic),
}

/// The functions and constants of another file.
#[derive(Clone, Debug)]
pub struct Import {
    /// The path, relative to the importing file.
    pub path: String,
    /// The path's place.
    pub span: Span,
}

/// A named constant.
#[derive(Clone, Debug)]
pub struct Const {
    /// Its name.
    pub name: Ident,
    /// Its type, if it is stated.
    pub ty: Option<Type>,
    /// Its value.
    pub value: Expr,
}

/// A function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name.
    pub name: Ident,
    /// Its parameters.
    pub params: Vec<Param>,
    /// What it gives.
    pub results: Results,
    /// The identity of an operator that is declared associative.
    pub associative: Option<Expr>,
    /// What must hold of the sizes.
    pub wheres: Vec<Expr>,
    /// What it computes.
    pub body: Block,
    /// From `fn` to the end of the signature.
    pub span: Span,
}

/// A parameter or named result.
#[derive(Clone, Debug)]
pub struct Param {
    /// Its name.
    pub name: Ident,
    /// Its type.
    pub ty: Type,
}

/// What a function gives.
#[derive(Clone, Debug)]
pub enum Results {
    /// Nothing is said: the type is inferred.
    Inferred,
    /// `-> f64[n]`
    One(Type),
    /// `-> (q: f64[n], r: f64[m])`
    Named(Vec<Param>),
}

/// A type.
#[derive(Clone, Debug)]
pub struct Type {
    /// What the elements are.
    pub elem: Elem,
    /// The dimensions, outermost first; none for a scalar.
    pub dims: Vec<Dim>,
    /// Where it stands.
    pub span: Span,
}

/// What the elements of a type are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Elem {
    /// An element type.
    Is(ElemType),
    /// `any`: an element type, the same in the whole signature.
    Any,
    /// `num`: f32, f64, i32 or i64, the same in the whole signature.
    Num,
    /// `float`: f32 or f64, the same in the whole signature.
    Float,
    /// `size`: not data, but an index.
    Size,
}

/// A dimension of a type, or several.
#[derive(Clone, Debug)]
pub enum Dim {
    /// `n`, `h-2`, `3`
    Size(Expr),
    /// `s...`
    Rest(Ident),
    /// `d:s`, `d>0:s`: d dimensions with the sizes s; at least so many.
    Ranked {
        /// How many.
        rank: Ident,
        /// The least number; 0 if nothing is said.
        least: usize,
        /// Their sizes.
        shape: Ident,
    },
    /// `.`
    One(Span),
    /// `*`
    Any(Span),
    /// `+`
    Some(Span),
}

/// Bindings, then results: one, or several in parentheses.
#[derive(Clone, Debug)]
pub struct Block {
    /// The bindings, in order.
    pub lets: Vec<Let>,
    /// What the block gives; more than one only at the end of a function or an iteration.
    pub results: Vec<Expr>,
    /// From `{` to `}`.
    pub span: Span,
}

/// `let x = e;`, `let x: f64[n] = e;`, `let (a, b) = e;`
#[derive(Clone, Debug)]
pub struct Let {
    /// What is bound.
    pub names: Vec<Ident>,
    /// The type, if it is stated.
    pub ty: Option<Type>,
    /// What it stands for.
    pub value: Expr,
}

/// An expression and where it stands.
#[derive(Clone, Debug)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where it stands.
    pub span: Span,
}

/// An expression.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A parameter, binding, index, size or constant.
    Name(Name),
    /// `2`
    Int(i64),
    /// `2.5`
    Float(f64),
    /// `true`
    Bool(bool),
    /// `"ij,jk->ik"`
    Text(String),
    /// `(e)`
    Paren(Box<Expr>),
    /// `[e, e]`
    List(Vec<Expr>),
    /// `-e`, `!e`
    Unary(UnaryOp, Box<Expr>),
    /// `e + e`
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `e[i, j]`
    Select(Box<Expr>, Vec<Selector>),
    /// `f(e, e)`, `sum(e, axis = 0)`
    Call(Ident, Vec<Expr>, Vec<(Ident, Expr)>),
    /// `if c { e } else { e }`
    If(Box<Expr>, Box<Block>, Box<Block>),
    /// `{ let a = e; e }`
    Block(Box<Block>),
    /// `{ [i] -> e | [i] < [n]; … }`
    Comprehension(Vec<Partition>),
    /// `with { … } : genarray(…)`
    With(Box<With>),
    /// `iterate k times u = e { e }`
    Iterate(Box<Iterate>),
}

/// An operator before its operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnaryOp {
    /// `-`
    Neg,
    /// `!`
    Not,
}

/// An operator between its operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BinaryOp {
    /// `||`
    Or,
    /// `&&`
    And,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `++`
    Concat,
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `@`
    MatMul,
    /// `^`
    Pow,
}

/// What stands between the brackets of a selection.
#[derive(Clone, Debug)]
pub enum Selector {
    /// An index or index vector.
    At(Expr),
    /// `.`: all of one dimension.
    Dot(Span),
    /// `...`: all of the dimensions that the others leave.
    Dots(Span),
    /// `a..b`, with either end left out.
    Slice(Option<Expr>, Option<Expr>, Span),
}

/// A part of a comprehension: `pattern -> e | generator`.
#[derive(Clone, Debug)]
pub struct Partition {
    /// The indices.
    pub pattern: Pattern,
    /// The element.
    pub body: Expr,
    /// Where; empty if nothing is said.
    pub generator: Vec<Relation>,
    /// The whole partition.
    pub span: Span,
}

/// The indices of a partition or generator.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// `iv`: all indices as a vector.
    Vector(Ident),
    /// `[i, ., j]`
    List(Vec<Slot>, Span),
}

/// A place in a pattern.
#[derive(Clone, Copy, Debug)]
pub enum Slot {
    /// `i`
    Index(Ident),
    /// `.`: a dimension of the body.
    Dot(Span),
    /// `...`: all dimensions of the body that have no dot.
    Dots(Span),
    /// `iv...`: several indices as a vector.
    Rest(Ident),
}

/// A relation of a generator: `lower <= subject < upper`; at least one bound is there.
#[derive(Clone, Debug)]
pub struct Relation {
    /// The bound on the left, and whether the subject may reach it (`<=`).
    pub lower: Option<(Bound, bool)>,
    /// What is bounded.
    pub subject: Subject,
    /// The bound on the right, and whether the subject may reach it (`<=`).
    pub upper: Option<(Bound, bool)>,
    /// Where it stands.
    pub span: Span,
}

/// What a relation bounds.
#[derive(Clone, Copy, Debug)]
pub enum Subject {
    /// All indices of the pattern.
    All,
    /// One of its names.
    One(Ident),
}

/// A bound of a generator.
#[derive(Clone, Debug)]
pub enum Bound {
    /// `.`: the end of the result's range.
    Dot(Span),
    /// An index or index vector.
    At(Expr),
}

/// A with-loop.
#[derive(Clone, Debug)]
pub struct With {
    /// `(lower <= pattern < upper) : e;`. Both bounds are there and the subject is [`Subject::All`].
    pub generators: Vec<(Pattern, Relation, Expr)>,
    /// What is made of the elements.
    pub operation: WithOp,
}

/// What a with-loop makes of its elements.
#[derive(Clone, Debug)]
pub enum WithOp {
    /// `genarray(shape, default)`: a tensor of this shape; the default is zero if it is left out.
    Genarray(Expr, Option<Expr>),
    /// `modarray(a)`: a tensor with some elements replaced.
    Modarray(Expr),
    /// `fold(op, neutral)`
    Fold(FoldOp, Expr),
}

/// What a fold combines with.
#[derive(Clone, Copy, Debug)]
pub enum FoldOp {
    /// `+`
    Sum,
    /// `*`
    Prod,
    /// `min`
    Min,
    /// `max`
    Max,
    /// `&&`
    All,
    /// `||`
    Any,
    /// A function.
    Function(Ident),
}

/// `iterate k times u = e { e }`, `iterate t < k (u = e, v = e) { (e, e) }`
#[derive(Clone, Debug)]
pub struct Iterate {
    /// The number of the step, if it has a name.
    pub step: Option<Ident>,
    /// How many steps.
    pub times: Expr,
    /// The states and their first values.
    pub states: Vec<(Ident, Expr)>,
    /// Their next values, in the same order.
    pub body: Block,
}

impl BinaryOp {
    /// Every operator, the loosest first.
    pub const ALL: [BinaryOp; 15] = [
        BinaryOp::Or,
        BinaryOp::And,
        BinaryOp::Lt,
        BinaryOp::Le,
        BinaryOp::Gt,
        BinaryOp::Ge,
        BinaryOp::Eq,
        BinaryOp::Ne,
        BinaryOp::Concat,
        BinaryOp::Add,
        BinaryOp::Sub,
        BinaryOp::Mul,
        BinaryOp::Div,
        BinaryOp::MatMul,
        BinaryOp::Pow,
    ];

    /// As it is written.
    pub const fn symbol(self) -> &'static str {
        match self {
            BinaryOp::Or => "||",
            BinaryOp::And => "&&",
            BinaryOp::Lt => "<",
            BinaryOp::Le => "<=",
            BinaryOp::Gt => ">",
            BinaryOp::Ge => ">=",
            BinaryOp::Eq => "==",
            BinaryOp::Ne => "!=",
            BinaryOp::Concat => "++",
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::MatMul => "@",
            BinaryOp::Pow => "^",
        }
    }

    /// How tightly it binds, from 1; unary operators bind tighter than all but the power.
    pub const fn precedence(self) -> u8 {
        match self {
            BinaryOp::Or => 1,
            BinaryOp::And => 2,
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge | BinaryOp::Eq | BinaryOp::Ne => 3,
            BinaryOp::Concat => 4,
            BinaryOp::Add | BinaryOp::Sub => 5,
            BinaryOp::Mul | BinaryOp::Div | BinaryOp::MatMul => 6,
            BinaryOp::Pow => 8,
        }
    }

    /// Whether it compares.
    pub const fn is_comparison(self) -> bool {
        self.precedence() == 3
    }
}

impl Pattern {
    /// The names that it binds.
    pub fn names(&self) -> Vec<Name> {
        match self {
            Pattern::Vector(name) => vec![name.name],
            Pattern::List(slots, _) => {
                let name = |slot: &Slot| match slot {
                    Slot::Index(name) | Slot::Rest(name) => Some(name.name),
                    Slot::Dot(_) | Slot::Dots(_) => None,
                };
                slots.iter().filter_map(name).collect()
            }
        }
    }
}

impl Relation {
    /// The bounds that are expressions.
    pub fn bounds(&self) -> impl Iterator<Item = &Expr> {
        let ends = self.lower.iter().chain(&self.upper);
        ends.filter_map(|(bound, _)| if let Bound::At(e) = bound { Some(e) } else { None })
    }
}

impl Expr {
    /// Adds the expressions that this one is made of, those in its types aside.
    pub fn parts<'a>(&'a self, parts: &mut Vec<&'a Expr>) {
        fn block<'a>(block: &'a Block, parts: &mut Vec<&'a Expr>) {
            parts.extend(block.lets.iter().map(|binding| &binding.value));
            parts.extend(&block.results);
        }
        match &self.kind {
            ExprKind::Name(_) | ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) | ExprKind::Text(_) => {}
            ExprKind::Paren(e) | ExprKind::Unary(_, e) => parts.push(e),
            ExprKind::List(list) => parts.extend(list),
            ExprKind::Binary(_, a, b) => parts.extend([&**a, &**b]),
            ExprKind::Select(base, selectors) => {
                parts.push(base);
                for selector in selectors {
                    match selector {
                        Selector::At(e) => parts.push(e),
                        Selector::Slice(a, b, _) => parts.extend(a.iter().chain(b)),
                        Selector::Dot(_) | Selector::Dots(_) => {}
                    }
                }
            }
            ExprKind::Call(_, args, named) => {
                parts.extend(args);
                parts.extend(named.iter().map(|(_, e)| e));
            }
            ExprKind::If(cond, then, otherwise) => {
                parts.push(cond);
                block(then, parts);
                block(otherwise, parts);
            }
            ExprKind::Block(inner) => block(inner, parts),
            ExprKind::Comprehension(partitions) => {
                for partition in partitions {
                    parts.extend(partition.generator.iter().flat_map(Relation::bounds));
                    parts.push(&partition.body);
                }
            }
            ExprKind::With(with) => {
                for (_, bounds, body) in &with.generators {
                    parts.extend(bounds.bounds());
                    parts.push(body);
                }
                match &with.operation {
                    WithOp::Genarray(shape, default) => {
                        parts.push(shape);
                        parts.extend(default);
                    }
                    WithOp::Modarray(e) | WithOp::Fold(_, e) => parts.push(e),
                }
            }
            ExprKind::Iterate(iterate) => {
                parts.push(&iterate.times);
                parts.extend(iterate.states.iter().map(|(_, e)| e));
                block(&iterate.body, parts);
            }
        }
    }
}
