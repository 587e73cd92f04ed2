//! Generated `.ten` programs: trees of this crate's own, whose bounds are known even where the text leaves them out.

use std::collections::BTreeMap;

/// An index-level expression.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[expect(missing_docs, reason = "the language's own words")]
pub enum Ix {
    Lit(i64),
    /// A size, an index, or a component of an index vector: `iv[0]`.
    Name(String),
    Add(Box<Ix>, Box<Ix>),
    Sub(Box<Ix>, Box<Ix>),
    Mul(Box<Ix>, Box<Ix>),
    Min(Box<Ix>, Box<Ix>),
    Max(Box<Ix>, Box<Ix>),
    FloorDiv(Box<Ix>, i64),
    Mod(Box<Ix>, i64),
    /// A function on indices.
    Call(String, Vec<Ix>),
    If(Box<Cond>, Box<Ix>, Box<Ix>),
}

/// A condition on indices.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[expect(missing_docs, reason = "the language's own words")]
pub enum Cond {
    /// `<`, `<=`, `>`, `>=`, `==` or `!=`
    Cmp(&'static str, Ix, Ix),
    And(Box<Cond>, Box<Cond>),
    Or(Box<Cond>, Box<Cond>),
    Not(Box<Cond>),
    /// The same of every component of two vectors.
    All(&'static str, IxVec, IxVec),
}

/// An index vector.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum IxVec {
    /// A shape, a pattern, a `size[d]` parameter.
    Name(String),
    /// `[i, j]`
    List(Vec<Ix>),
    /// One index for every component.
    One(Ix),
    /// `shape(x)` of a variable.
    Shape(String),
    /// Componentwise `+`, `-`, `*`, `min` or `max`.
    Op(&'static str, Box<IxVec>, Box<IxVec>),
}

/// What the elements of a type are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the language's own words")]
pub enum Elem {
    I64,
    F64,
    Bool,
    Any,
    Num,
    Size,
}

/// A dimension of a type.
#[derive(Clone, Debug)]
pub enum TypeDim {
    /// A size.
    Size(Ix),
    /// `s...`
    Rest(String),
    /// `d:s`, or `d>0:s` if there is at least one.
    Ranked(String, bool, String),
    /// `.`
    One,
    /// `*`, or `+` if there is at least one.
    Many(bool),
}

/// A type.
#[derive(Clone, Debug)]
pub struct Type {
    /// What the elements are.
    pub elem: Elem,
    /// The dimensions.
    pub dims: Vec<TypeDim>,
}

/// A part of an argument list.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "three levels of arguments")]
pub enum Arg {
    Data(Expr),
    Ix(Ix),
    Vec(IxVec),
}

/// What stands between the brackets of a selection.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the language's own words")]
pub enum Sel {
    At(Ix),
    Vec(IxVec),
    Dot,
    Dots,
    Slice(Option<Ix>, Option<Ix>),
}

/// How a bound is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Written {
    /// It is.
    Yes,
    /// With the other relation: `<=` above, `<` below.
    Other,
    /// Not at all: inferred, or 0.
    No,
    /// As `.`
    Dot,
}

/// A place in a pattern.
#[derive(Clone, Debug)]
pub enum Slot {
    /// An index, `lower <= i < upper`.
    Index(String, (Ix, Written), (Ix, Written)),
    /// Several indices as a vector.
    Rest(String, (IxVec, Written), (IxVec, Written)),
    /// `.`
    Dot,
    /// `...`
    Dots,
}

/// A partition of a comprehension or a generator of a with-loop.
#[derive(Clone, Debug)]
pub struct Part {
    /// The pattern; a single [`Slot::Rest`] is written `iv`.
    pub slots: Vec<Slot>,
    /// The element.
    pub body: Expr,
    /// Whether bounds are written for all indices at once, if they can be.
    pub joint: bool,
    /// The shape of the element, which tells the oracle what it is where there is none.
    pub cell: IxVec,
}

/// What a with-loop makes of its elements.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the language's own words")]
pub enum WithOp {
    Genarray(IxVec, Option<Box<Expr>>),
    Modarray(Box<Expr>),
    /// An operator or a function, and the first value.
    Fold(String, Box<Expr>),
}

/// An iteration.
#[derive(Clone, Debug)]
pub struct Iterate {
    /// The number of the step, if it has a name.
    pub step: Option<String>,
    /// How many steps.
    pub times: Ix,
    /// The states and their first values.
    pub states: Vec<(String, Expr)>,
    /// Their next values.
    pub body: Block,
}

/// Bindings, then results.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// The bindings.
    pub lets: Vec<Let>,
    /// The results.
    pub results: Vec<Expr>,
}

/// `let`
#[derive(Clone, Debug)]
pub struct Let {
    /// What is bound: several names for a call or iteration that gives several values.
    pub names: Vec<String>,
    /// A type that is stated.
    pub ty: Option<Type>,
    /// The value.
    pub value: Expr,
}

/// A data-level expression.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the language's own words")]
pub enum Expr {
    Var(String),
    /// A whole number, written with a point if it is a float.
    Num(i64, Elem),
    Bool(bool),
    /// An index as data, converted by name if it is a float.
    Index(Ix, Elem),
    /// A condition as data.
    Cond(Cond),
    Stack(Vec<Expr>),
    /// `-`, `!`, and functions of one argument.
    Unary(&'static str, Box<Expr>),
    /// Operators, and functions of two arguments.
    Binary(&'static str, Box<Expr>, Box<Expr>),
    Select(Box<Expr>, Vec<Sel>),
    Comprehension(Vec<Part>),
    With(Vec<Part>, WithOp),
    If(Cond, Box<Expr>, Box<Expr>),
    /// By a truth value: both are computed.
    IfData(Box<Expr>, Box<Expr>, Box<Expr>),
    Guard(Cond, Box<Expr>),
    Choose(Box<Expr>, Box<Expr>, Box<Expr>),
    Cast(Elem, Box<Expr>),
    /// Over all axes or over some.
    Reduce(&'static str, Option<Vec<i64>>, Box<Expr>),
    Iterate(Box<Iterate>),
    /// `pad_l` and its like.
    Shift(&'static str, Ix, Box<Expr>),
    Split(i64, Box<Expr>),
    Reshape(IxVec, Box<Expr>),
    Einsum(String, Vec<Expr>),
    /// A function of the program or of the prelude.
    Call(String, Vec<Arg>),
    Block(Box<Block>),
}

/// A function of data.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its parameters.
    pub params: Vec<(String, Type)>,
    /// Its results; the name of a single one is not written.
    pub results: Vec<(String, Type)>,
    /// Whether the types of the results are written.
    pub stated: bool,
    /// Its identity, if it is declared associative.
    pub associative: Option<i64>,
    /// What it asks of its sizes.
    pub wheres: Vec<Cond>,
    /// What it computes.
    pub body: Block,
}

/// A function on indices.
#[derive(Clone, Debug)]
pub struct IndexFunction {
    /// Its name.
    pub name: String,
    /// Its parameters.
    pub params: Vec<String>,
    /// What it asks of them.
    pub wheres: Vec<Cond>,
    /// What it gives.
    pub body: Ix,
}

/// A program; the last function is `main`.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The functions on indices.
    pub index_functions: Vec<IndexFunction>,
    /// The functions of data.
    pub functions: Vec<Function>,
}

/// A size as the generator knows it: a sum of multiples of index expressions that are not negative.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dim {
    /// What is added.
    pub plus: i64,
    /// How many times each.
    pub terms: BTreeMap<Ix, i64>,
}

impl From<i64> for Dim {
    fn from(plus: i64) -> Dim {
        Dim { plus, terms: BTreeMap::new() }
    }
}

impl Dim {
    /// A size by its name.
    pub fn name(name: &str) -> Dim {
        Dim { plus: 0, terms: BTreeMap::from([(Ix::Name(name.into()), 1)]) }
    }

    /// A sum of multiples.
    pub fn plus(&self, factor: i64, other: &Dim) -> Dim {
        let mut sum = self.clone();
        sum.plus += factor * other.plus;
        for (atom, count) in &other.terms {
            let total = sum.terms.entry(atom.clone()).or_insert(0);
            *total += factor * count;
            if *total == 0 {
                sum.terms.remove(atom);
            }
        }
        sum
    }

    /// With a number added.
    pub fn shifted(&self, by: i64) -> Dim {
        Dim { plus: self.plus + by, terms: self.terms.clone() }
    }

    /// The least value, if there is one: `low` says how small a name can be.
    pub fn low(&self, low: &dyn Fn(&Ix) -> i64) -> Option<i64> {
        let mut least = self.plus;
        for (atom, count) in &self.terms {
            if *count < 0 {
                return None;
            }
            least += count * low(atom);
        }
        Some(least)
    }

    /// As an index-level expression.
    pub fn ix(&self) -> Ix {
        let mut sum: Option<Ix> = None;
        for (atom, count) in &self.terms {
            let size = count.abs();
            let term = if size == 1 { atom.clone() } else { Ix::Mul(Ix::Lit(size).into(), atom.clone().into()) };
            sum = Some(match (sum, *count > 0) {
                (None, true) => term,
                (None, false) => Ix::Sub(Ix::Lit(0).into(), term.into()),
                (Some(sum), true) => Ix::Add(sum.into(), term.into()),
                (Some(sum), false) => Ix::Sub(sum.into(), term.into()),
            });
        }
        match sum {
            None => Ix::Lit(self.plus),
            Some(sum) => sum.shifted(self.plus),
        }
    }

    /// With names replaced.
    pub fn with(&self, values: &BTreeMap<String, Dim>) -> Dim {
        let mut made = Dim::from(self.plus);
        for (atom, count) in &self.terms {
            let value = match atom {
                Ix::Name(name) => values.get(name).cloned(),
                _ => None,
            };
            let value = value.unwrap_or_else(|| Dim { plus: 0, terms: BTreeMap::from([(atom.clone(), 1)]) });
            made = made.plus(*count, &value);
        }
        made
    }
}

impl Ix {
    /// With a number added, as one writes it.
    pub fn shifted(self, by: i64) -> Ix {
        match by {
            0 => self,
            by if by > 0 => Ix::Add(self.into(), Ix::Lit(by).into()),
            by => Ix::Sub(self.into(), Ix::Lit(-by).into()),
        }
    }
}

impl Elem {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Elem::I64 => "i64",
            Elem::F64 => "f64",
            Elem::Bool => "bool",
            Elem::Any => "any",
            Elem::Num => "num",
            Elem::Size => "size",
        }
    }
}

impl Expr {
    /// The expressions that it is made of.
    pub fn parts_mut(&mut self) -> Vec<&mut Expr> {
        fn block(block: &mut Block) -> Vec<&mut Expr> {
            block.lets.iter_mut().map(|l| &mut l.value).chain(&mut block.results).collect()
        }
        match self {
            Expr::Var(_) | Expr::Num(..) | Expr::Bool(_) | Expr::Index(..) | Expr::Cond(_) => Vec::new(),
            Expr::Stack(parts) | Expr::Einsum(_, parts) => parts.iter_mut().collect(),
            Expr::Unary(_, a)
            | Expr::Select(a, _)
            | Expr::Guard(_, a)
            | Expr::Cast(_, a)
            | Expr::Reduce(_, _, a)
            | Expr::Shift(_, _, a)
            | Expr::Split(_, a)
            | Expr::Reshape(_, a) => vec![a],
            Expr::Binary(_, a, b) | Expr::If(_, a, b) => vec![a, b],
            Expr::IfData(a, b, c) | Expr::Choose(a, b, c) => vec![a, b, c],
            Expr::Comprehension(parts) => parts.iter_mut().map(|part| &mut part.body).collect(),
            Expr::With(parts, op) => {
                let mut all: Vec<&mut Expr> = parts.iter_mut().map(|part| &mut part.body).collect();
                match op {
                    WithOp::Genarray(_, default) => all.extend(default.as_deref_mut()),
                    WithOp::Modarray(e) | WithOp::Fold(_, e) => all.push(e),
                }
                all
            }
            Expr::Iterate(iterate) => {
                let mut all: Vec<&mut Expr> = iterate.states.iter_mut().map(|(_, first)| first).collect();
                all.extend(block(&mut iterate.body));
                all
            }
            Expr::Call(_, args) => {
                args.iter_mut().filter_map(|arg| if let Arg::Data(e) = arg { Some(e) } else { None }).collect()
            }
            Expr::Block(inner) => block(inner),
        }
    }

    /// Meets every expression of this one, itself first.
    pub fn each(&mut self, meet: &mut dyn FnMut(&mut Expr)) {
        meet(self);
        self.parts_mut().into_iter().for_each(|part| part.each(meet));
    }
}

impl Program {
    /// Meets every expression of the program.
    pub fn each(&mut self, meet: &mut dyn FnMut(&mut Expr)) {
        for function in &mut self.functions {
            function.body.lets.iter_mut().for_each(|l| l.value.each(meet));
            function.body.results.iter_mut().for_each(|e| e.each(meet));
        }
    }
}
