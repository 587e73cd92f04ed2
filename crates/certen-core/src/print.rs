//! Core as text: what a person would write, and what [`parse_program`](crate::parse_program) reads back as the same
//! program. The grammar is in `parse/mod.rs`.
//!
//! Parentheses are written only where the grammar needs them, with one courtesy: a binder, `if` or `let` that is an
//! operand gets them even where it stands last. Works with an explicit stack in time linear in the length of the text;
//! a term that is used twice is written twice. NaNs are written alike, whatever their bits.

use std::fmt;

use certen_index::Ix;

use crate::ops::{Binary, Literal, ReduceOp, Unary};
use crate::program::Program;
use crate::table::Table;
use crate::term::{Carried, Range, Term, TermId, Terms};
use crate::types::ElemType;

/// A term as text.
pub fn print_term(terms: &Terms, term: TermId) -> String {
    Shown { terms, term }.to_string()
}

/// A term as text; of a long one, about so many characters of its beginning, and `…`.
pub fn print_beginning(terms: &Terms, term: TermId, most: usize) -> String {
    struct Beginning {
        text: String,
        left: usize,
    }
    impl fmt::Write for Beginning {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            for c in text.chars() {
                self.left = self.left.checked_sub(1).ok_or(fmt::Error)?;
                self.text.push(c);
            }
            Ok(())
        }
    }
    let mut beginning = Beginning { text: String::new(), left: most };
    match fmt::Write::write_fmt(&mut beginning, format_args!("{}", Shown { terms, term })) {
        Ok(()) => beginning.text,
        Err(_) => beginning.text + " …",
    }
}

/// How tightly a form holds its operands together, loosest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Level {
    /// Binders, `if`, `let`: extend as far right as they can.
    Open,
    Or,
    And,
    Compare,
    Sum,
    Product,
    Prefix,
    /// Names, literals, calls, selections, parentheses.
    Primary,
}

impl Level {
    /// The next tighter one: what a right operand needs, since operators group to the left.
    fn above(self) -> Level {
        match self {
            Level::Open => Level::Or,
            Level::Or => Level::And,
            Level::And => Level::Compare,
            Level::Compare => Level::Sum,
            Level::Sum => Level::Product,
            Level::Product => Level::Prefix,
            Level::Prefix | Level::Primary => Level::Primary,
        }
    }

    /// The level of an operation that is written between its operands; others are written as calls.
    pub(crate) fn of_infix(op: Binary) -> Option<Level> {
        match op {
            Binary::Or => Some(Level::Or),
            Binary::And => Some(Level::And),
            Binary::Lt | Binary::Le | Binary::Eq | Binary::Ne => Some(Level::Compare),
            Binary::Add | Binary::Sub => Some(Level::Sum),
            Binary::Mul | Binary::Div => Some(Level::Product),
            Binary::ControlledDiv | Binary::FloorDiv | Binary::Mod | Binary::Min | Binary::Max => None,
            Binary::Pow | Binary::Atan2 | Binary::Hypot => None,
            Binary::LibmPow | Binary::LibmAtan2 | Binary::LibmHypot => None,
        }
    }

    fn of_term(term: &Term) -> Level {
        match term {
            Term::Gen(..) | Term::Reduce(..) | Term::If(..) | Term::Let(..) => Level::Open,
            Term::Binary(op, ..) => Level::of_infix(*op).unwrap_or(Level::Primary),
            Term::Unary(Unary::Neg | Unary::Not, _) => Level::Prefix,
            _ => Level::Primary,
        }
    }
}

/// Whether a word begins an expression by itself, so that a tensor of this name is written `@name`.
pub(crate) fn is_reserved(word: &str) -> bool {
    matches!(word, "true" | "false" | "gen" | "if" | "let" | "iterate") || ReduceOp::from_name(word).is_some()
}

/// What is still to be written.
enum Pending<'a> {
    Text(&'a str),
    /// In a place that wants a form at least this tight.
    Term(TermId, Level),
    Indices(&'a [Ix]),
}

struct Shown<'a> {
    terms: &'a Terms,
    term: TermId,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut todo = vec![Pending::Term(self.term, Level::Open)];
        while let Some(piece) = todo.pop() {
            match piece {
                Pending::Text(text) => f.write_str(text)?,
                Pending::Term(id, wanted) => {
                    let term = self.terms.get(id);
                    if Level::of_term(term) < wanted {
                        f.write_str("(")?;
                        todo.push(Pending::Text(")"));
                    }
                    let first = todo.len();
                    write_term(f, term, &mut todo)?;
                    // The last pushed is written first.
                    todo[first..].reverse();
                }
                Pending::Indices(indices) => write!(f, "[{}]", Listed(indices))?,
            }
        }
        Ok(())
    }
}

/// Separated by commas.
struct Listed<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for Listed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, item) in self.0.iter().enumerate() {
            write!(f, "{}{item}", if at > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

/// Writes how a term begins, and leaves the rest in order.
fn write_term<'a>(f: &mut fmt::Formatter<'_>, term: &'a Term, rest: &mut Vec<Pending<'a>>) -> fmt::Result {
    let open = |id: &TermId| Pending::Term(*id, Level::Open);
    match term {
        Term::Ref(name, _) if is_reserved(name.as_str()) => write!(f, "@{name}")?,
        Term::Ref(name, _) => write!(f, "{name}")?,
        Term::Gen(name, Range { lo, hi }, body) => {
            write!(f, "gen {name} in {lo}..{hi}. ")?;
            rest.push(open(body));
        }
        Term::Reduce(op, name, Range { lo, hi }, cond, body) => {
            write!(f, "{} {name} in {lo}..{hi}", op.name())?;
            if !cond.is_always() {
                write!(f, " where {cond}")?;
            }
            rest.extend([Pending::Text(". "), open(body)]);
        }
        Term::If(cond, a, b) => {
            write!(f, "if {cond} then ")?;
            rest.extend([open(a), Pending::Text(" else "), open(b)]);
        }
        Term::Let(name, value, body) => {
            write!(f, "let {name} = ")?;
            rest.extend([open(value), Pending::Text(" in "), open(body)]);
        }
        Term::Iterate(times, step, states, at) => {
            write!(f, "iterate {step} in 0..{times} (")?;
            equations(rest, states, |state| state.init);
            rest.push(Pending::Text(") then ("));
            equations(rest, states, |state| state.next);
            rest.push(Pending::Text(") give "));
            rest.extend(states.get(*at).map(|state| Pending::Text(state.name.as_str())));
        }
        Term::Select(tensor, indices) => {
            rest.extend([Pending::Term(*tensor, Level::Primary), Pending::Indices(indices)]);
        }
        Term::Literal(literal, elem) => write_literal(f, *literal, *elem)?,
        Term::Table(table) => write!(f, "{table}")?,
        Term::Index(ix, elem) => write!(f, "index.{elem}({ix})")?,
        Term::Undefined(elem) => write!(f, "undefined.{elem}")?,
        Term::Unary(op @ (Unary::Neg | Unary::Not), a) => {
            f.write_str(op.name())?;
            rest.push(Pending::Term(*a, Level::Prefix));
        }
        Term::Binary(op, a, b) if let Some(level) = Level::of_infix(*op) => {
            // A chain of comparisons would parse, but it is hard to read.
            let left = if level == Level::Compare { level.above() } else { level };
            rest.extend([Pending::Term(*a, left), Pending::Text(" "), Pending::Text(op.name()), Pending::Text(" ")]);
            rest.push(Pending::Term(*b, level.above()));
        }
        // The others are calls: what is not a term comes first, then the parts.
        Term::Guard(cond, _) => write!(f, "guard({cond}, ")?,
        Term::Flatten(_) => f.write_str("flatten(")?,
        Term::Split(k, _) => write!(f, "split({k}, ")?,
        Term::Transpose(_) => f.write_str("transpose(")?,
        Term::Concat(..) => f.write_str("concat(")?,
        Term::PadLeft(k, _) => write!(f, "pad_l({k}, ")?,
        Term::PadRight(k, _) => write!(f, "pad_r({k}, ")?,
        Term::TruncLeft(k, _) => write!(f, "trunc_l({k}, ")?,
        Term::TruncRight(k, _) => write!(f, "trunc_r({k}, ")?,
        Term::Unary(op, _) => write!(f, "{}(", op.name())?,
        Term::Binary(op, ..) => write!(f, "{}(", op.name())?,
        Term::Choose(..) => f.write_str("select(")?,
        Term::Fma(..) => f.write_str("fma(")?,
        Term::Cast(elem, _) => write!(f, "cast.{elem}(")?,
    }
    if is_call(term) {
        for (at, part) in term.parts().iter().enumerate() {
            rest.extend([Pending::Text(if at > 0 { ", " } else { "" }), open(part)]);
        }
        rest.push(Pending::Text(")"));
    }
    Ok(())
}

/// Whether a term is written as a function of its parts.
fn is_call(term: &Term) -> bool {
    let is_leaf =
        matches!(term, Term::Ref(..) | Term::Literal(..) | Term::Table(_) | Term::Index(..) | Term::Undefined(_));
    !is_leaf && Level::of_term(term) == Level::Primary && !matches!(term, Term::Select(..) | Term::Iterate(..))
}

fn equations<'a>(rest: &mut Vec<Pending<'a>>, states: &'a [Carried], side: fn(&Carried) -> TermId) {
    for (at, state) in states.iter().enumerate() {
        rest.extend([Pending::Text(if at > 0 { ", " } else { "" }), Pending::Text(state.name.as_str())]);
        rest.extend([Pending::Text(" = "), Pending::Term(side(state), Level::Open)]);
    }
}

/// Bare where the bare number means this type and has no sign (a minus is an operation), else `type(number)`.
fn write_literal(f: &mut fmt::Formatter<'_>, literal: Literal, elem: ElemType) -> fmt::Result {
    let number = Number { literal, elem };
    let is_bare = match literal {
        Literal::Bool(_) => true,
        Literal::Int(value) => elem == ElemType::I64 && value >= 0,
        Literal::Float(value) => elem == ElemType::F64 && value.is_finite() && value.is_sign_positive(),
    };
    if is_bare { write!(f, "{number}") } else { write!(f, "{elem}({number})") }
}

/// A literal where its type is known.
struct Number {
    literal: Literal,
    elem: ElemType,
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.literal {
            Literal::Bool(value) => write!(f, "{value}"),
            // Its digits alone would be read as a number that is too large.
            Literal::Int(i64::MIN) => f.write_str("min"),
            Literal::Int(value) => write!(f, "{value}"),
            Literal::Float(value) if value.is_nan() => f.write_str("nan"),
            Literal::Float(value) if value.is_infinite() => write!(f, "{value}"),
            Literal::Float(value) if self.elem == ElemType::F32 => {
                // The shortest digits for an f32, unless reading them by way of an f64 gives its neighbour.
                let shortest = format!("{:?}", value as f32);
                match shortest.parse::<f64>() {
                    Ok(read) if f64::from(read as f32) == value => f.write_str(&shortest),
                    _ => write!(f, "{value:?}"),
                }
            }
            Literal::Float(value) => write!(f, "{value:?}"),
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table.{}(", self.ty())?;
        for (at, &literal) in self.elements().iter().enumerate() {
            write!(f, "{}{}", if at > 0 { ", " } else { "" }, Number { literal, elem: self.ty().elem })?;
        }
        f.write_str(")")
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "core {}", self.name)?;
        if !self.sizes.is_empty() {
            writeln!(f, "size {}", Listed(&self.sizes))?;
        }
        if !self.facts.is_empty() {
            writeln!(f, "where {}", Listed(&self.facts))?;
        }
        for input in &self.inputs {
            writeln!(f, "input {} : {}", input.name, input.ty)?;
        }
        for binding in &self.bindings {
            writeln!(f, "{} = {}", binding.name, Shown { terms: &self.terms, term: binding.term })?;
        }
        for (name, shown) in &self.outputs {
            if name == shown { writeln!(f, "output {name}")? } else { writeln!(f, "output {name} = {shown}")? }
        }
        Ok(())
    }
}
