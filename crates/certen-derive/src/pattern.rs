//! Patterns: terms of Core with metavariables, as the sides of rewrites and the addresses of scripts are written.
//!
//! In a rewrite, a name in upper case is a metavariable for a term or a condition. `E(i)` may mention the index `i`,
//! which the pattern binds, and nothing else that the pattern binds; an argument may also be a tensor that the pattern
//! binds with `let`, and on the side that is built any term. A name in lower case that the pattern does not bind is a
//! metavariable for an index expression. `reduce` is any reduction, `op` any operation on two scalars, `fun` any on
//! one, `reshape` any of flatten, transpose, split, pad and trunc.
//!
//! In a script, names mean what they mean in the program; only names that the program does not have are metavariables.
//! A binder there has the program's name for it, or `_`.

mod parse;

use std::fmt;

use certen_core::{Binary, ElemType, Literal, ReduceOp, Unary};
use certen_syntax::Name;

pub(crate) use parse::{Words, parse, parse_side};

/// A term with metavariables.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Pattern {
    /// `_`
    Any,
    /// `E(i)`
    Meta(Name, Vec<Argument>),
    /// A tensor by name: one that the pattern binds, or the program's.
    Tensor(Name),
    Gen(Binder, Box<Pattern>),
    /// Any reduction if there is no operator.
    Reduce(Option<ReduceOp>, Binder, CondPattern, Box<Pattern>),
    Guard(CondPattern, Box<Pattern>),
    If(CondPattern, Box<Pattern>, Box<Pattern>),
    Let(Name, Box<Pattern>, Box<Pattern>),
    Select(Box<Pattern>, Vec<IndexPattern>),
    /// Any of flatten, transpose, split, pad and trunc.
    Reshape(Box<Pattern>),
    Flatten(Box<Pattern>),
    Transpose(Box<Pattern>),
    Split(IndexPattern, Box<Pattern>),
    Concat(Box<Pattern>, Box<Pattern>),
    PadLeft(IndexPattern, Box<Pattern>),
    PadRight(IndexPattern, Box<Pattern>),
    TruncLeft(IndexPattern, Box<Pattern>),
    TruncRight(IndexPattern, Box<Pattern>),
    /// A literal of any element type that has it.
    Number(Literal),
    /// An index used as data.
    Index(IndexPattern),
    Unary(Option<Unary>, Box<Pattern>),
    Binary(Option<Binary>, Box<Pattern>, Box<Pattern>),
    Choose(Box<Pattern>, Box<Pattern>, Box<Pattern>),
    Cast(ElemType, Box<Pattern>),
}

/// An index with its range.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Binder {
    pub name: Name,
    pub lo: IndexPattern,
    pub hi: IndexPattern,
}

/// What a metavariable is applied to.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Argument {
    Index(IndexPattern),
    /// A tensor that the pattern binds, or a term that takes the place of one.
    Term(Pattern),
}

/// An index expression with metavariables.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum IndexPattern {
    Any,
    Number(i64),
    /// An index that the pattern binds, or a metavariable.
    Var(Name),
    /// A name of the program.
    Known(Name),
    /// A metavariable that may mention indices.
    Meta(Name, Vec<IndexPattern>),
    Add(Box<IndexPattern>, Box<IndexPattern>),
    Sub(Box<IndexPattern>, Box<IndexPattern>),
    Mul(Box<IndexPattern>, Box<IndexPattern>),
    FloorDiv(Box<IndexPattern>, Box<IndexPattern>),
    CeilDiv(Box<IndexPattern>, Box<IndexPattern>),
    Mod(Box<IndexPattern>, Box<IndexPattern>),
    Min(Box<IndexPattern>, Box<IndexPattern>),
    Max(Box<IndexPattern>, Box<IndexPattern>),
    /// A size of a metavariable, the outermost if there is no number.
    Size(Name, usize),
}

/// A condition with metavariables.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum CondPattern {
    Any,
    Meta(Name, Vec<IndexPattern>),
    Le(IndexPattern, IndexPattern),
    Lt(IndexPattern, IndexPattern),
    Eq(IndexPattern, IndexPattern),
    And(Vec<CondPattern>),
    Or(Vec<CondPattern>),
    Not(Box<CondPattern>),
}

impl CondPattern {
    pub(crate) fn always() -> CondPattern {
        CondPattern::And(Vec::new())
    }

    pub(crate) fn is_always(&self) -> bool {
        matches!(self, CondPattern::And(all) if all.is_empty())
    }
}

/// A side condition of a rewrite: a goal, for all indices in ranges for which other conditions hold.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct SideCondition {
    pub text: String,
    pub forall: Vec<Binder>,
    pub given: Vec<CondPattern>,
    pub goal: CondPattern,
}

impl fmt::Display for IndexPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pair =
            |f: &mut fmt::Formatter<'_>, word: &str, a: &IndexPattern, b: &IndexPattern| write!(f, "{word}({a}, {b})");
        match self {
            IndexPattern::Any => write!(f, "_"),
            IndexPattern::Number(value) => write!(f, "{value}"),
            IndexPattern::Var(name) | IndexPattern::Known(name) => write!(f, "{name}"),
            IndexPattern::Meta(name, args) => {
                let args: Vec<String> = args.iter().map(IndexPattern::to_string).collect();
                write!(f, "{name}({})", args.join(", "))
            }
            IndexPattern::Add(a, b) => write!(f, "{a} + {b}"),
            IndexPattern::Sub(a, b) if matches!(**b, IndexPattern::Add(..) | IndexPattern::Sub(..)) => {
                write!(f, "{a} - ({b})")
            }
            IndexPattern::Sub(a, b) => write!(f, "{a} - {b}"),
            IndexPattern::Mul(a, b) => {
                let shown = |e: &IndexPattern| match e {
                    IndexPattern::Add(..) | IndexPattern::Sub(..) => format!("({e})"),
                    _ => e.to_string(),
                };
                write!(f, "{}*{}", shown(a), shown(b))
            }
            IndexPattern::FloorDiv(a, b) => pair(f, "floor_div", a, b),
            IndexPattern::CeilDiv(a, b) => pair(f, "ceil_div", a, b),
            IndexPattern::Mod(a, b) => pair(f, "mod", a, b),
            IndexPattern::Min(a, b) => pair(f, "min", a, b),
            IndexPattern::Max(a, b) => pair(f, "max", a, b),
            IndexPattern::Size(name, 0) => write!(f, "size({name})"),
            IndexPattern::Size(name, at) => write!(f, "size({name}, {at})"),
        }
    }
}

impl Pattern {
    /// What the whole of it is, in a few words.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Pattern::Any | Pattern::Meta(..) => "any term",
            Pattern::Tensor(_) => "a tensor by name",
            Pattern::Gen(..) => "a generation",
            Pattern::Reduce(Some(ReduceOp::Sum), ..) => "a sum over an index",
            Pattern::Reduce(..) => "a reduction",
            Pattern::Guard(..) => "a guard",
            Pattern::If(..) => "an `if`",
            Pattern::Let(..) => "a `let`",
            Pattern::Select(..) => "a selection",
            Pattern::Reshape(_) => "flatten, transpose, split, pad or trunc",
            Pattern::Flatten(_) => "`flatten`",
            Pattern::Transpose(_) => "`transpose`",
            Pattern::Split(..) => "`split`",
            Pattern::Concat(..) => "`concat`",
            Pattern::PadLeft(..) => "`pad_l`",
            Pattern::PadRight(..) => "`pad_r`",
            Pattern::TruncLeft(..) => "`trunc_l`",
            Pattern::TruncRight(..) => "`trunc_r`",
            Pattern::Number(_) => "a number",
            Pattern::Index(_) => "an index as data",
            Pattern::Unary(..) => "an operation on one scalar",
            Pattern::Binary(Some(Binary::Add), ..) => "an addition",
            Pattern::Binary(Some(Binary::Sub), ..) => "a subtraction",
            Pattern::Binary(Some(Binary::Mul), ..) => "a multiplication",
            Pattern::Binary(Some(Binary::Div), ..) => "a division",
            Pattern::Binary(..) => "an operation on two scalars",
            Pattern::Choose(..) => "`select`",
            Pattern::Cast(..) => "a conversion",
        }
    }

    /// The patterns that this one is made of.
    pub(crate) fn parts(&self) -> Vec<&Pattern> {
        match self {
            Pattern::Any | Pattern::Meta(..) | Pattern::Tensor(_) | Pattern::Number(_) | Pattern::Index(_) => {
                Vec::new()
            }
            Pattern::Gen(_, a)
            | Pattern::Reduce(_, _, _, a)
            | Pattern::Guard(_, a)
            | Pattern::Select(a, _)
            | Pattern::Reshape(a)
            | Pattern::Flatten(a)
            | Pattern::Transpose(a)
            | Pattern::Split(_, a)
            | Pattern::PadLeft(_, a)
            | Pattern::PadRight(_, a)
            | Pattern::TruncLeft(_, a)
            | Pattern::TruncRight(_, a)
            | Pattern::Unary(_, a)
            | Pattern::Cast(_, a) => vec![a],
            Pattern::If(_, a, b) | Pattern::Let(_, a, b) | Pattern::Concat(a, b) | Pattern::Binary(_, a, b) => {
                vec![a, b]
            }
            Pattern::Choose(a, b, c) => vec![a, b, c],
        }
    }

    /// The names that matching this pattern determines: its binders, its metavariables, and what equations with one
    /// unknown give.
    pub(crate) fn determined(&self) -> Vec<Name> {
        let (mut names, mut equations) = (Vec::new(), Vec::new());
        self.look(&mut names, &mut equations);
        loop {
            let before = names.len();
            for unknown in &equations {
                let mut open = unknown.iter().filter(|name| !names.contains(name));
                if let (Some(name), None) = (open.next(), open.next()) {
                    names.push(*name);
                }
            }
            if names.len() == before {
                return names;
            }
        }
    }

    fn look(&self, names: &mut Vec<Name>, equations: &mut Vec<Vec<Name>>) {
        let mut index = |ix: &IndexPattern| equations.push(ix.names());
        match self {
            Pattern::Meta(name, _) => names.push(*name),
            Pattern::Gen(binder, _) => {
                names.push(binder.name);
                index(&binder.lo);
                index(&binder.hi);
            }
            Pattern::Reduce(_, binder, cond, _) => {
                names.push(binder.name);
                index(&binder.lo);
                index(&binder.hi);
                cond.look(names, equations);
            }
            Pattern::Let(name, ..) => names.push(*name),
            Pattern::Guard(cond, _) | Pattern::If(cond, ..) => cond.look(names, equations),
            Pattern::Select(_, indices) => indices.iter().for_each(index),
            Pattern::Split(ix, _)
            | Pattern::PadLeft(ix, _)
            | Pattern::PadRight(ix, _)
            | Pattern::TruncLeft(ix, _)
            | Pattern::TruncRight(ix, _)
            | Pattern::Index(ix) => index(ix),
            _ => {}
        }
        self.parts().iter().for_each(|part| part.look(names, equations));
    }

    /// The indices that the parameters of metavariables are called, where these are applied to nothing but indices that
    /// the pattern binds.
    pub(crate) fn formals(&self, bound: &mut Vec<Name>, formals: &mut Vec<(Name, Vec<Name>)>) {
        let cond =
            |cond: &CondPattern, bound: &[Name], formals: &mut Vec<(Name, Vec<Name>)>| cond.formals(bound, formals);
        match self {
            Pattern::Meta(name, args) => {
                let own = |arg: &Argument| match arg {
                    Argument::Index(IndexPattern::Var(name)) | Argument::Term(Pattern::Tensor(name)) => Some(*name),
                    _ => None,
                };
                if let Some(own) = args.iter().map(own).collect::<Option<Vec<Name>>>() {
                    formals.push((*name, own));
                }
            }
            Pattern::Gen(binder, body) => {
                bound.push(binder.name);
                body.formals(bound, formals);
                bound.pop();
                return;
            }
            Pattern::Reduce(_, binder, own, body) => {
                bound.push(binder.name);
                cond(own, bound, formals);
                body.formals(bound, formals);
                bound.pop();
                return;
            }
            Pattern::Guard(own, _) | Pattern::If(own, ..) => cond(own, bound, formals),
            _ => {}
        }
        self.parts().iter().for_each(|part| part.formals(bound, formals));
    }
}

impl IndexPattern {
    /// The names that occur outside functions, where they can be solved for; all of them count as unknown.
    fn names(&self) -> Vec<Name> {
        match self {
            IndexPattern::Var(name) | IndexPattern::Meta(name, _) => vec![*name],
            IndexPattern::Add(a, b)
            | IndexPattern::Sub(a, b)
            | IndexPattern::Mul(a, b)
            | IndexPattern::FloorDiv(a, b)
            | IndexPattern::CeilDiv(a, b)
            | IndexPattern::Mod(a, b)
            | IndexPattern::Min(a, b)
            | IndexPattern::Max(a, b) => {
                let mut names = a.names();
                names.extend(b.names());
                names.sort_unstable();
                names.dedup();
                names
            }
            _ => Vec::new(),
        }
    }
}

impl CondPattern {
    fn look(&self, names: &mut Vec<Name>, equations: &mut Vec<Vec<Name>>) {
        match self {
            CondPattern::Meta(name, args)
                if args.iter().all(|arg| matches!(arg, IndexPattern::Var(v) if names.contains(v))) =>
            {
                names.push(*name);
            }
            CondPattern::Le(a, b) | CondPattern::Lt(a, b) | CondPattern::Eq(a, b) => {
                equations.push(IndexPattern::Sub(Box::new(a.clone()), Box::new(b.clone())).names());
            }
            CondPattern::And(all) => all.iter().for_each(|part| part.look(names, equations)),
            _ => {}
        }
    }

    pub(crate) fn formals(&self, bound: &[Name], formals: &mut Vec<(Name, Vec<Name>)>) {
        match self {
            CondPattern::Meta(name, args) => {
                let own = |arg: &IndexPattern| match arg {
                    IndexPattern::Var(name) if bound.contains(name) => Some(*name),
                    _ => None,
                };
                if let Some(own) = args.iter().map(own).collect::<Option<Vec<Name>>>() {
                    formals.push((*name, own));
                }
            }
            CondPattern::And(list) | CondPattern::Or(list) => list.iter().for_each(|part| part.formals(bound, formals)),
            CondPattern::Not(inner) => inner.formals(bound, formals),
            _ => {}
        }
    }
}
