//! The one form that all languages are read into: tensors with declared shapes, and statements that walk over ranges.
//!
//! A [`Statement`] defines every element of a tensor by a [`Value`] that reads others. Its ranges are those that *the
//! framework of its language* would take; whether they fit is asked later (`prove`). What the framework takes for
//! granted without saying so, that dimensions walked by one index have one size, is an [`Agreement`].

use std::collections::BTreeMap;

use certen_core::ElemType;
use certen_syntax::{Diagnostic, Name, Span};

use crate::index::{Condition, Index};
use crate::language::Language;

/// A kernel of one of the languages.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// What it is called; a word.
    pub name: Name,
    /// Its language.
    pub language: Language,
    /// Where it stands.
    pub span: Span,
    /// Named sizes. Each is at least 1: no framework runs a kernel on tensors without elements.
    pub sizes: Vec<Name>,
    /// What else is known of them.
    pub facts: Vec<Condition>,
    /// Tensors, in the order of their declarations.
    pub tensors: Vec<Tensor>,
    /// What is computed, in order.
    pub statements: Vec<Statement>,
    /// The results, positions in `tensors`.
    pub outputs: Vec<usize>,
    /// What is wrong with it before any access is looked at.
    pub faults: Vec<Fault>,
    /// What its reader should know.
    pub notes: Vec<Diagnostic>,
    /// Why there is no `.ten` program of it, if there is none.
    pub unwritten: Option<String>,
}

/// A tensor and what is said of it.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// Its name.
    pub name: Name,
    /// What its elements are.
    pub elem: ElemType,
    /// Its sizes.
    pub shape: Vec<Index>,
    /// Where that is said.
    pub span: Span,
    /// Whether a caller gives it.
    pub is_input: bool,
}

/// The range of an index: from `low` up to, but not, `high`.
#[derive(Clone, Debug)]
pub struct Range {
    /// The index.
    pub name: Name,
    /// Its first value.
    pub low: Index,
    /// One more than its last value.
    pub high: Index,
}

impl Range {
    /// A range from zero.
    pub fn up_to(name: Name, high: impl Into<Index>) -> Range {
        Range { name, low: Index::Num(0), high: high.into() }
    }

    /// How many values it has.
    pub fn extent(&self) -> Index {
        if self.low == Index::Num(0) { self.high.clone() } else { self.high.clone() - self.low.clone() }
    }
}

/// What a statement does to its tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// It defines all elements.
    Define,
    /// It replaces the elements in its ranges; the others stay.
    Replace,
    /// It combines them with what was there.
    Combine(Reduction),
}

/// An assignment to the elements of a tensor.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Which tensor, a position in `tensors`.
    pub target: usize,
    /// The left side.
    pub span: Span,
    /// One index for each dimension.
    pub ranges: Vec<Range>,
    /// What happens to what was there.
    pub effect: Effect,
    /// What each element is.
    pub body: Value,
    /// What has to agree.
    pub agreements: Vec<Agreement>,
}

/// Dimensions of tensors that have to have one size.
#[derive(Clone, Debug)]
pub struct Agreement {
    /// What walks along both: an index, or an operation.
    pub by: String,
    /// The dimension from which the framework takes the size.
    pub first: Side,
    /// Another one.
    pub second: Side,
    /// How the framework would read it.
    pub reading: String,
}

/// A dimension at a place where it is used.
#[derive(Clone, Debug)]
pub struct Side {
    /// What people call it: "dimension 1 of `A`".
    pub what: String,
    /// Its tensor, if it is one.
    pub tensor: Option<(usize, usize)>,
    /// Its size.
    pub size: Index,
    /// Where it is used.
    pub span: Span,
}

/// What combines many values to one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reduction {
    /// Addition.
    Sum,
    /// Multiplication.
    Product,
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

/// Operations on two elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "they are what they are called")]
pub enum Op {
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Mod,
    Pow,
    Min,
    Max,
    Less,
    AtMost,
    Equal,
    Unequal,
    And,
    Or,
}

impl Op {
    /// Whether it gives a truth value of two numbers.
    pub fn compares(self) -> bool {
        matches!(self, Op::Less | Op::AtMost | Op::Equal | Op::Unequal)
    }
}

/// What an element is.
#[derive(Clone, Debug)]
pub enum Value {
    /// A number.
    Number(f64),
    /// A size or index as a number.
    Index(Index),
    /// An element of a tensor.
    Read(Read),
    /// The opposite number.
    Neg(Box<Value>),
    /// The opposite truth value.
    Not(Box<Value>),
    /// An operation on two values.
    Binary(Op, Box<Value>, Box<Value>),
    /// A function, by the name that `.ten` has for it, or that the framework has.
    Call(Name, Vec<Value>),
    /// Another element type.
    Cast(ElemType, Box<Value>),
    /// One of two values, by a condition on indices.
    Choose {
        /// The condition.
        condition: Condition,
        /// Whether only the chosen one is computed.
        is_lazy: bool,
        /// What it is where the condition holds.
        yes: Box<Value>,
        /// What it is elsewhere.
        no: Box<Value>,
    },
    /// One of two values, by a truth value.
    Select(Box<Value>, Box<Value>, Box<Value>),
    /// All values over ranges, combined.
    Reduce(Reduction, Vec<Range>, Box<Value>),
}

/// An access to a tensor.
#[derive(Clone, Debug)]
pub struct Read {
    /// Which tensor, a position in `tensors`.
    pub tensor: usize,
    /// Where, one for each dimension.
    pub at: Vec<Index>,
    /// The access in the text.
    pub span: Span,
    /// How the framework would read it if it leaves the tensor.
    pub reading: &'static str,
}

impl Value {
    /// An operation on two values.
    pub fn binary(op: Op, a: Value, b: Value) -> Value {
        Value::Binary(op, Box::new(a), Box::new(b))
    }

    /// The values that it is made of.
    pub fn parts(&self) -> Vec<&Value> {
        match self {
            Value::Number(_) | Value::Index(_) | Value::Read(_) => Vec::new(),
            Value::Neg(a) | Value::Not(a) | Value::Cast(_, a) | Value::Reduce(_, _, a) => vec![a],
            Value::Binary(_, a, b) | Value::Choose { yes: a, no: b, .. } => vec![a, b],
            Value::Select(c, a, b) => vec![c, a, b],
            Value::Call(_, parts) => parts.iter().collect(),
        }
    }

    /// With indices replaced by expressions.
    pub fn with(&self, by: &BTreeMap<Name, Index>) -> Value {
        let again = |part: &Value| Box::new(part.with(by));
        match self {
            Value::Number(number) => Value::Number(*number),
            Value::Index(index) => Value::Index(index.with(by)),
            Value::Read(read) => {
                Value::Read(Read { at: read.at.iter().map(|index| index.with(by)).collect(), ..read.clone() })
            }
            Value::Neg(a) => Value::Neg(again(a)),
            Value::Not(a) => Value::Not(again(a)),
            Value::Cast(elem, a) => Value::Cast(*elem, again(a)),
            Value::Binary(op, a, b) => Value::Binary(*op, again(a), again(b)),
            Value::Call(function, parts) => Value::Call(*function, parts.iter().map(|part| part.with(by)).collect()),
            Value::Choose { condition, is_lazy, yes, no } => {
                Value::Choose { condition: condition.with(by), is_lazy: *is_lazy, yes: again(yes), no: again(no) }
            }
            Value::Select(condition, yes, no) => Value::Select(again(condition), again(yes), again(no)),
            Value::Reduce(reduction, ranges, body) => {
                let ranges = ranges
                    .iter()
                    .map(|range| Range { name: range.name, low: range.low.with(by), high: range.high.with(by) })
                    .collect();
                Value::Reduce(*reduction, ranges, again(body))
            }
        }
    }

    /// Visits every range of a reduction.
    pub fn each_range(&mut self, visit: &mut impl FnMut(&mut Range)) {
        match self {
            Value::Number(_) | Value::Index(_) | Value::Read(_) => {}
            Value::Neg(a) | Value::Not(a) | Value::Cast(_, a) => a.each_range(visit),
            Value::Reduce(_, ranges, a) => {
                ranges.iter_mut().for_each(&mut *visit);
                a.each_range(visit);
            }
            Value::Binary(_, a, b) | Value::Choose { yes: a, no: b, .. } => {
                a.each_range(visit);
                b.each_range(visit);
            }
            Value::Select(c, a, b) => [c, a, b].into_iter().for_each(|part| part.each_range(visit)),
            Value::Call(_, parts) => parts.iter_mut().for_each(|part| part.each_range(visit)),
        }
    }

    /// The element type that it has by itself: the widest of what it reads, or is cast to; none for numbers alone.
    pub fn natural(&self, tensors: &[Tensor]) -> Option<ElemType> {
        let width = |elem: &ElemType| (elem.is_float(), elem.bytes());
        match self {
            Value::Cast(elem, _) => Some(*elem),
            Value::Read(read) => tensors.get(read.tensor).map(|tensor| tensor.elem),
            other => other.parts().into_iter().filter_map(|part| part.natural(tensors)).max_by_key(width),
        }
    }

    /// Visits every access.
    pub fn each_read<'a>(&'a self, visit: &mut impl FnMut(&'a Read)) {
        if let Value::Read(read) = self {
            visit(read);
        }
        self.parts().into_iter().for_each(|part| part.each_read(visit));
    }
}

/// Something that makes a kernel unsafe.
#[derive(Clone, Debug)]
pub struct Fault {
    /// For people.
    pub diagnostic: Diagnostic,
    /// The tensor, if one is to blame, and its dimension, counted from 0.
    pub tensor: Option<(Name, usize)>,
    /// The size that is declared there.
    pub declared: String,
    /// What is used of it: how far the access goes, or the other size.
    pub used: String,
    /// Sizes and indices that show it, replayed; empty if none are known, or none are needed.
    pub example: Vec<(Name, i64)>,
    /// How the framework would have read it.
    pub reading: String,
}

impl Fault {
    /// A fault that the text alone shows.
    pub fn of(diagnostic: Diagnostic, reading: impl Into<String>) -> Fault {
        let (declared, used) = (String::new(), String::new());
        Fault { diagnostic, tensor: None, declared, used, example: Vec::new(), reading: reading.into() }
    }
}
