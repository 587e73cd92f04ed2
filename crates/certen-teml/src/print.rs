//! Programs as text: what a person would write, one statement in a line. [`parse`](crate::parse::parse) reads it back
//! as the same program.

use std::fmt;

use certen_core::{Binary, ElemType};
use certen_index::Ix;

use crate::ast::{ARITHMETIC, At, Expr, Iters, LoopExpr, Number, Program, Stmt, TensorExpr};

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.statements.iter().try_for_each(|stmt| writeln!(f, "{}", stmt.it))
    }
}

fn separated<T>(
    f: &mut fmt::Formatter<'_>,
    parts: &[At<T>],
    mut write: impl FnMut(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    for (at, part) in parts.iter().enumerate() {
        f.write_str(if at > 0 { ", " } else { "" })?;
        write(f, &part.it)?;
    }
    Ok(())
}

fn list(f: &mut fmt::Formatter<'_>, entries: &[At<Ix>]) -> fmt::Result {
    f.write_str("[")?;
    separated(f, entries, |f, entry| write!(f, "{entry}"))?;
    f.write_str("]")
}

fn iters(f: &mut fmt::Formatter<'_>, iters: &Option<Iters>) -> fmt::Result {
    iters.as_ref().map_or(Ok(()), |iters| list(f, &iters.it))
}

fn pairs(f: &mut fmt::Formatter<'_>, pairs: &[At<[i64; 2]>]) -> fmt::Result {
    f.write_str("[")?;
    separated(f, pairs, |f, [one, two]| write!(f, "[{one}, {two}]"))?;
    f.write_str("]")
}

fn word(op: Binary) -> &'static str {
    ARITHMETIC.iter().find(|(_, known)| *known == op).map_or(op.name(), |(word, _)| word)
}

fn elem_word(elem: ElemType) -> &'static str {
    match elem {
        ElemType::F64 => "double",
        ElemType::F32 => "float",
        other => other.name(),
    }
}

impl fmt::Display for Stmt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stmt::Assign { id, target, value } => {
                write!(f, "{} = ", id.it)?;
                if let Some(target) = target {
                    write!(f, "@{}: ", target.it)?;
                }
                match value {
                    Expr::Tensor(value) => value.fmt(f),
                    Expr::Loop(value) => value.fmt(f),
                }
            }
            Stmt::Codegen { name, loops } => {
                if let Some(name) = name {
                    write!(f, "{} = ", name.it)?;
                }
                f.write_str("codegen(")?;
                separated(f, loops, |f, id| id.fmt(f))?;
                f.write_str(")")
            }
            Stmt::Init { id, value } => match value.it {
                Number::Int(number) => write!(f, "init({}, {number})", id.it),
                Number::Float(number) => write!(f, "init({}, {number:?})", id.it),
            },
        }
    }
}

impl fmt::Display for TensorExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let v = |real: &bool| if *real { "" } else { "v" };
        match self {
            TensorExpr::New { elem, shape } => {
                let elem = elem.map(elem_word);
                let Some(shape) = shape else { return write!(f, "scalar({})", elem.unwrap_or_default()) };
                write!(f, "tensor({}{}", elem.unwrap_or_default(), if elem.is_some() { ", " } else { "" })?;
                list(f, shape)?;
            }
            TensorExpr::Eq { operand, from, to } => {
                write!(f, "eq({}, ", operand.it)?;
                iters(f, from)?;
                f.write_str(if from.is_some() { " -> " } else { "-> " })?;
                list(f, &to.it)?;
            }
            TensorExpr::Op { op, operands: [(one, first), (two, second)], to } => {
                write!(f, "{}{}({}, {}, [", v(&to.is_some()), word(*op), one.it, two.it)?;
                iters(f, first)?;
                f.write_str(", ")?;
                iters(f, second)?;
                f.write_str("]")?;
                if let Some(to) = to {
                    f.write_str(" -> ")?;
                    list(f, &to.it)?;
                }
            }
            TensorExpr::Entrywise { real, op, operands } => {
                write!(f, "{}entrywise_{}(", v(real), word(*op))?;
                separated(f, operands, |f, id| id.fmt(f))?;
            }
            TensorExpr::Transpose { real, operand, pairs: exchanged } => {
                write!(f, "{}transpose({}, ", v(real), operand.it)?;
                pairs(f, exchanged)?;
            }
            TensorExpr::Contract { real, operands: [one, two], pairs: summed } => {
                write!(f, "{}contract({}, {}, ", v(real), one.it, two.it)?;
                match summed.as_slice() {
                    [At { it: [one, two], .. }] => write!(f, "[{one}, {two}]")?,
                    several => pairs(f, several)?,
                }
            }
            TensorExpr::Outer { real, operands } => {
                write!(f, "{}outerproduct(", v(real))?;
                separated(f, operands, |f, id| id.fmt(f))?;
            }
        }
        f.write_str(")")
    }
}

impl fmt::Display for LoopExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.op.it.name())?;
        separated(f, &self.ids, |f, id| id.fmt(f))?;
        self.numbers.iter().try_for_each(|number| write!(f, ", {}", number.it))?;
        f.write_str(")")
    }
}
