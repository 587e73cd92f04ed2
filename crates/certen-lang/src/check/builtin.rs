//! Built-in functions: those of the index level, the functions of Core entry by entry, reductions, casts, ATL's reshape
//! operators.

use std::sync::Arc;

use certen_core::{Binary, ElemType, ReduceOp, TensorType, Unary};
use certen_index::{Cond, Ix, Verdict};
use certen_syntax::{Code, Diagnostic, Span};

use super::Checked;
use super::index::{Index, larger, smaller};
use super::scope::Function;
use super::types::shape_text;
use super::value::{Draft, Flex, Value};
use crate::ast::{self, ExprKind, Ident};
use crate::typed::{Expr, Kind, Side};

/// Every built-in function, for suggestions.
pub(super) const NAMES: &[&str] = &[
    "shape",
    "dim",
    "select",
    "guard",
    "abs",
    "floor",
    "ceil",
    "round",
    "sqrt",
    "exp",
    "log",
    "sin",
    "cos",
    "tanh",
    "min",
    "max",
    "pow",
    "floor_div",
    "ceil_div",
    "mod",
    "sum",
    "prod",
    "all",
    "any",
    "einsum",
    "flatten",
    "split",
    "transpose",
    "pad_l",
    "pad_r",
    "trunc_l",
    "trunc_r",
    "reshape",
    "stored",
    "f32",
    "f64",
    "i32",
    "i64",
    "u8",
    "bool",
];

/// What other languages have and this one has not, with what to do instead.
const ABSENT: &[(&str, &str)] = &[
    ("argmax", "positions that data decides are not in this version"),
    ("argmin", "positions that data decides are not in this version"),
    ("argsort", "sorting is not in this version"),
    ("sort", "sorting is not in this version"),
    ("cumsum", "scans are not in this version; `iterate` carries a state through steps"),
    ("cumprod", "scans are not in this version; `iterate` carries a state through steps"),
    ("scan", "scans are not in this version; `iterate` carries a state through steps"),
    ("gather", "reading at places that data names is not in this version"),
    ("scatter", "writing at places that data names is not in this version"),
    ("nonzero", "shapes that data decides are not in this version"),
    ("grad", "automatic differentiation is not in this version"),
    ("complex", "complex numbers are not in this version: carry two tensors"),
    ("where_", "`where` is for conditions on sizes; to choose by data: `select(c, a, b)`"),
    ("len", "the size of the first dimension is `shape(x)[0]`"),
    ("range", "an index is bound by a comprehension: `{ [i] -> … | [i] < [n] }`"),
    ("maximum", "`max(a, b)` of two, `max(x)` of one tensor"),
    ("minimum", "`min(a, b)` of two, `min(x)` of one tensor"),
    ("print", "programs compute values; `certen run` and `certen eval` print them"),
    ("float", "convert with `f64(x)` or `f32(x)`"),
    ("int", "convert with `i64(x)` or `i32(x)`"),
    ("power", "`pow(x, y)`, or `x ^ 2`"),
    ("tensordot", "`einsum`, or a comprehension with `sum`"),
];

impl Function<'_, '_> {
    /// A built-in function, if there is one of this name.
    pub fn builtin(
        &mut self,
        name: Ident,
        args: &[ast::Expr],
        named: &[(Ident, ast::Expr)],
        span: Span,
    ) -> Checked<Option<Value>> {
        let word = name.name.as_str();
        let reduce = match word {
            "sum" => Some(ReduceOp::Sum),
            "prod" => Some(ReduceOp::Prod),
            "min" => Some(ReduceOp::Min),
            "max" => Some(ReduceOp::Max),
            "all" => Some(ReduceOp::All),
            "any" => Some(ReduceOp::Any),
            _ => None,
        };
        if let Some(op) = reduce
            && (args.len() == 1 || !named.is_empty())
        {
            return self.reduction(op, word, args, named, span).map(Some);
        }
        if let Some((keyword, _)) = named.first() {
            if NAMES.contains(&word) {
                let text = format!("`{word}` has no argument called `{}`", keyword.name);
                return self.error(Code::E0235, keyword.span, text);
            }
            return Ok(None);
        }
        let value = match (word, args) {
            ("shape", [x]) => {
                let draft = self.data(x)?;
                Value::Vector(draft.expr.ty.shape.iter().map(|size| Index::Is(size.clone())).collect())
            }
            ("dim", [x]) => {
                let draft = self.data(x)?;
                Value::Index(Ix::from(draft.rank() as i64).into())
            }
            ("select", [c, a, b]) => match self.expr(c)? {
                Value::Cond(cond) => {
                    let (a, b) = ((self.expr(a)?, a.span), (self.expr(b)?, b.span));
                    self.either(cond, a, b, span)?
                }
                value => {
                    let condition = self.as_data(value, c.span)?;
                    if condition.flex != Flex::No || condition.elem() != ElemType::Bool {
                        let error = Diagnostic::error(
                            Code::E0232,
                            c.span,
                            format!("a condition is made of truth values, not of {}", condition.elem()),
                        );
                        return self.fail(error.help("compare: `x > 0`"));
                    }
                    let (a, b) = (self.data(a)?, self.data(b)?);
                    Value::Data(self.choose(condition, a, b, span)?)
                }
            },
            ("guard", [c, e]) => Value::Data(self.guard(c, e, span)?),
            ("abs", [x]) => match self.expr(x)? {
                value @ (Value::Index(_) | Value::Vector(_)) => {
                    let facts = self.facts().clone();
                    let f = |a: &Ix, _: &Ix| larger(&facts, a, &a.scale(-1)?);
                    let zero = Value::Index(Ix::from(0).into());
                    match self.zip_indices(&value, &zero, &f, span)? {
                        Some(value) => value,
                        None => return Err(super::Reported),
                    }
                }
                value => {
                    let draft = self.as_data(value, x.span)?;
                    Value::Data(self.apply_unary(Unary::Abs, draft, span)?)
                }
            },
            ("floor" | "ceil" | "round" | "sqrt" | "exp" | "log" | "sin" | "cos" | "tanh", [x]) => {
                let Some(op) = Unary::from_name(word) else { return Ok(None) };
                let draft = self.data(x)?;
                Value::Data(self.apply_unary(op, draft, span)?)
            }
            ("min" | "max", [first, rest @ ..]) if !rest.is_empty() => {
                let mut so_far = self.expr(first)?;
                for next in rest {
                    let value = self.expr(next)?;
                    so_far = self.extreme(word == "max", (so_far, first.span), (value, next.span), span)?;
                }
                so_far
            }
            ("pow", [a, b]) => {
                let (a, b) = (self.data(a)?, self.data(b)?);
                Value::Data(self.apply_binary(Binary::Pow, a, b, span)?)
            }
            ("floor_div" | "ceil_div" | "mod", [a, b]) => {
                let (left, right) = (self.expr(a)?, self.expr(b)?);
                self.division(word, (left, a.span), (right, b.span), span)?
            }
            ("einsum", [spec, operands @ ..]) => Value::Data(self.einsum(spec, operands, span)?),
            ("flatten", [x]) => {
                let draft = self.data(x)?;
                let shape = self.at_least(&draft, 2, word)?;
                let made = shape[0].mul(&shape[1]);
                let size = self.made(span, made)?;
                self.reshaped(
                    draft,
                    std::iter::once(size).chain(shape[2..].iter().cloned()).collect(),
                    Kind::Flatten,
                    span,
                )
            }
            ("split", [k, x]) => {
                let k = match self.plain_index(k)?.as_constant() {
                    Some(k) if k >= 1 => k,
                    _ => return self.error(Code::E0216, k.span, "the size of a block is a literal, at least 1"),
                };
                let draft = self.data(x)?;
                let shape = self.at_least(&draft, 1, word)?;
                let made = shape[0].ceil_div(k);
                let blocks = self.made(span, made)?;
                let shape = [blocks, Ix::from(k)].into_iter().chain(shape[1..].iter().cloned()).collect();
                self.reshaped(draft, shape, |e| Kind::Split(k, e), span)
            }
            ("transpose", [x]) => {
                let draft = self.data(x)?;
                let shape = self.at_least(&draft, 2, word)?;
                let swapped =
                    [shape[1].clone(), shape[0].clone()].into_iter().chain(shape[2..].iter().cloned()).collect();
                self.reshaped(draft, swapped, Kind::Transpose, span)
            }
            ("pad_l" | "pad_r" | "trunc_l" | "trunc_r", [k, x]) => {
                let amount = self.plain_index(k)?;
                let draft = self.data(x)?;
                let shape = self.at_least(&draft, 1, word)?;
                let side = if word.ends_with("_l") { Side::Left } else { Side::Right };
                let pads = word.starts_with("pad");
                let made = Cond::le(&Ix::from(0), &amount)
                    .and_then(|goal| Ok(if pads { goal } else { goal.and(Cond::le(&amount, &shape[0])?) }));
                let goal = self.made(span, made)?;
                let note = format!("the first dimension has the size {}", shape[0]);
                self.require(&goal, |_, _| {
                    let text = match pads {
                        true => format!("the amount {amount} can be negative"),
                        false => format!("the amount {amount} can be negative or more than there is"),
                    };
                    Diagnostic::error(Code::E0207, k.span, text).note(note)
                })?;
                let made = if pads { shape[0].add(&amount) } else { shape[0].sub(&amount) };
                let size = self.made(span, made)?;
                let shape = std::iter::once(size).chain(shape[1..].iter().cloned()).collect();
                match pads {
                    true => self.reshaped(draft, shape, |e| Kind::Pad(side, amount, e), span),
                    false => self.reshaped(draft, shape, |e| Kind::Trunc(side, amount, e), span),
                }
            }
            ("reshape", [shape, x]) => {
                let shape = self.sizes_of(shape)?;
                let draft = self.data(x)?;
                let product = |sizes: &[Ix]| sizes.iter().try_fold(Ix::from(1), |product, size| product.mul(size));
                let made = product(&shape).and_then(|new| Ok((product(&draft.expr.ty.shape)?, new)));
                let (before, after) = self.made(span, made)?;
                if self.facts().prove_equal(&before, &after) != Verdict::Yes {
                    let error = Diagnostic::error(Code::E0206, span, "the shapes have different numbers of elements")
                        .note(format!(
                            "{} has {before}, and {} has {after}",
                            shape_text(&draft.expr.ty.shape),
                            shape_text(&shape)
                        ));
                    return self.fail(error);
                }
                self.reshaped(draft, shape.into(), Kind::Reshape, span)
            }
            ("stored", [x]) => {
                let draft = self.data(x)?;
                let shape = draft.expr.ty.shape.clone();
                self.reshaped(draft, shape, Kind::Stored, span)
            }
            ("f32" | "f64" | "i32" | "i64" | "u8" | "bool", [x]) => {
                let Ok(elem) = word.parse::<ElemType>() else { return Ok(None) };
                let mut draft = self.data(x)?;
                if draft.flex != Flex::No && draft.can_be(elem) {
                    self.give(&mut draft, elem)?;
                } else {
                    draft.flex = Flex::No;
                }
                if draft.elem() == elem {
                    Value::Data(draft)
                } else {
                    let ty = TensorType { elem, shape: draft.expr.ty.shape.clone() };
                    Value::Data(Draft::fixed(Expr { kind: Kind::Cast(Box::new(draft.expr)), ty, span }))
                }
            }
            _ => {
                if let Some((_, instead)) = ABSENT.iter().find(|(absent, _)| *absent == word) {
                    let error = Diagnostic::error(Code::E0201, name.span, format!("there is no function `{word}`"));
                    return self.fail(error.help(*instead));
                }
                if NAMES.contains(&word) {
                    let text = format!("`{word}` does not take {} arguments", args.len());
                    let error = Diagnostic::error(Code::E0235, span, text);
                    return self.fail(match reduce {
                        Some(_) => error.help(format!("`{word}(x)`, or over some axes: `{word}(x, axis = 0)`")),
                        None => error,
                    });
                }
                return Ok(None);
            }
        };
        Ok(Some(value))
    }

    fn reshaped(&mut self, draft: Draft, shape: Arc<[Ix]>, kind: impl FnOnce(Box<Expr>) -> Kind, span: Span) -> Value {
        let ty = TensorType { elem: draft.elem(), shape };
        Value::Data(Draft { flex: draft.flex, expr: Expr { kind: kind(Box::new(draft.expr)), ty, span } })
    }

    fn at_least(&mut self, draft: &Draft, rank: usize, what: &str) -> Checked<Arc<[Ix]>> {
        let shape = draft.expr.ty.shape.clone();
        if shape.len() < rank {
            let text = format!("`{what}` takes a tensor of at least {rank} dimensions; this has {}", shape.len());
            return self.error(Code::E0204, draft.expr.span, text);
        }
        Ok(shape)
    }

    /// The smaller or larger of two.
    fn extreme(
        &mut self,
        max: bool,
        (a, a_span): (Value, Span),
        (b, b_span): (Value, Span),
        span: Span,
    ) -> Checked<Value> {
        let facts = self.facts().clone();
        let f = |a: &Ix, b: &Ix| if max { larger(&facts, a, b) } else { smaller(&facts, a, b) };
        if let Some(value) = self.zip_indices(&a, &b, &f, span)? {
            return Ok(value);
        }
        let (a, b) = (self.as_data(a, a_span)?, self.as_data(b, b_span)?);
        Ok(Value::Data(self.apply_binary(if max { Binary::Max } else { Binary::Min }, a, b, span)?))
    }

    /// Division that rounds, and what is left of it.
    fn division(
        &mut self,
        word: &str,
        (a, a_span): (Value, Span),
        (b, b_span): (Value, Span),
        span: Span,
    ) -> Checked<Value> {
        if let (Value::Index(_) | Value::Vector(_), Value::Index(divisor)) = (&a, &b) {
            let Some(divisor) = divisor.constant().filter(|divisor| *divisor >= 1) else {
                let error = Diagnostic::error(
                    Code::E0216,
                    b_span,
                    format!("`{word}` of an index divides by a literal, at least 1"),
                )
                .note("a division by a symbolic size is outside of what can be proved");
                return self.fail(error);
            };
            let f = |a: &Ix, _: &Ix| match word {
                "floor_div" => a.floor_div(divisor),
                "ceil_div" => a.ceil_div(divisor),
                _ => a.modulo(divisor),
            };
            if let Some(value) = self.zip_indices(&a, &b, &f, span)? {
                return Ok(value);
            }
        }
        let (a, b) = (self.as_data(a, a_span)?, self.as_data(b, b_span)?);
        match word {
            "floor_div" => Ok(Value::Data(self.apply_binary(Binary::FloorDiv, a, b, span)?)),
            "mod" => Ok(Value::Data(self.apply_binary(Binary::Mod, a, b, span)?)),
            _ => self.error(Code::E0232, span, "`ceil_div` is of indices; of data: `-floor_div(-a, b)`"),
        }
    }

    // Reductions

    fn reduction(
        &mut self,
        op: ReduceOp,
        word: &str,
        args: &[ast::Expr],
        named: &[(Ident, ast::Expr)],
        span: Span,
    ) -> Checked<Value> {
        let [x] = args else {
            let text = format!("`{word}` over axes is of one tensor, not of {}", args.len());
            return self.error(Code::E0235, span, text);
        };
        if let Some((keyword, _)) = named.iter().find(|(keyword, _)| keyword.name.as_str() != "axis") {
            let text = format!("`{word}` has no argument called `{}`", keyword.name);
            let error = Diagnostic::error(Code::E0235, keyword.span, text).help("over some axes: `axis = 0`");
            return self.fail(error);
        }
        let value = self.expr(x)?;
        if let (Value::Vector(parts), [], true) = (&value, named, !matches!(op, ReduceOp::All | ReduceOp::Any)) {
            return self.reduce_indices(op, parts, span);
        }
        let draft = match value {
            Value::Index(_) | Value::Cond(_) if named.is_empty() => return Ok(value),
            value => self.as_data(value, x.span)?,
        };
        let rank = draft.rank();
        let axes: Vec<usize> = match named {
            [] => (0..rank).collect(),
            [(_, axes)] => {
                let places = match self.expr(axes)? {
                    Value::Index(index) => vec![index],
                    Value::Vector(parts) => parts,
                    value => return self.no_index(&value, axes.span),
                };
                let mut found = Vec::new();
                for place in places {
                    let at = place.constant().map(|at| if at < 0 { at + rank as i64 } else { at });
                    match at.and_then(|at| usize::try_from(at).ok()).filter(|at| *at < rank) {
                        Some(at) if found.contains(&at) => {
                            return self.error(Code::E0205, axes.span, format!("axis {at} is named twice"));
                        }
                        Some(at) => found.push(at),
                        None => {
                            let text = match place.constant() {
                                Some(axis) => format!("there is no axis {axis}"),
                                None => "an axis is a number that stands in the program".into(),
                            };
                            let shape = shape_text(&draft.expr.ty.shape);
                            let error = Diagnostic::error(Code::E0204, axes.span, text).note(format!(
                                "the tensor has the shape {shape}; axes count from 0, and -1 is the last"
                            ));
                            return self.fail(error);
                        }
                    }
                }
                found.sort_unstable();
                found
            }
            _ => return self.error(Code::E0202, span, "`axis` is given twice"),
        };
        Ok(Value::Data(self.reduce(op, axes, draft, span)?))
    }

    /// A reduction over axes, in increasing order.
    pub fn reduce(&mut self, op: ReduceOp, axes: Vec<usize>, draft: Draft, span: Span) -> Checked<Draft> {
        if axes.is_empty() {
            return Ok(draft);
        }
        if op.combine().result(draft.elem()) != Some(draft.elem()) {
            let text = format!("`{}` of elements of type {}", op.name(), draft.elem());
            let error = Diagnostic::error(Code::E0232, span, text);
            return self.fail(match (op, draft.elem()) {
                (ReduceOp::Sum, ElemType::Bool) => {
                    error.help("to count them: `sum(i64(…))`; `any` and `all` say whether some or all hold")
                }
                (ReduceOp::All | ReduceOp::Any, _) => error.help("compare first: `x > 0`"),
                _ => error,
            });
        }
        if matches!(op, ReduceOp::Min | ReduceOp::Max) {
            for axis in &axes {
                let size = draft.expr.ty.shape[*axis].clone();
                let made = Cond::le(&Ix::from(1), &size);
                let goal = self.made(span, made)?;
                let word = if op == ReduceOp::Min { "minimum" } else { "maximum" };
                self.require(&goal, |_, _| {
                    let text = match size.as_constant() {
                        Some(_) => format!("a {word} of nothing: the size is 0"),
                        None => format!("a {word} of nothing: the size {size} can be 0"),
                    };
                    Diagnostic::error(Code::E0240, span, text)
                })?;
            }
        }
        let kept = draft.expr.ty.shape.iter().enumerate().filter(|(at, _)| !axes.contains(at));
        let shape: Arc<[Ix]> = kept.map(|(_, size)| size.clone()).collect();
        let ty = TensorType { elem: draft.elem(), shape };
        let kind = Kind::Reduce(op, axes, Box::new(draft.expr));
        Ok(Draft { flex: draft.flex, expr: Expr { kind, ty, span } })
    }

    fn reduce_indices(&mut self, op: ReduceOp, parts: &[Index], span: Span) -> Checked<Value> {
        let facts = self.facts().clone();
        let f = |a: &Ix, b: &Ix| match op {
            ReduceOp::Sum => a.add(b),
            ReduceOp::Prod => a.mul(b),
            ReduceOp::Min => smaller(&facts, a, b),
            _ => larger(&facts, a, b),
        };
        let first = match (op, parts.first()) {
            (ReduceOp::Sum, _) => Index::Is(Ix::from(0)),
            (ReduceOp::Prod, _) => Index::Is(Ix::from(1)),
            (_, Some(first)) => first.clone(),
            (_, None) => {
                return self.error(Code::E0240, span, "a minimum or maximum of an index vector without components");
            }
        };
        let made = parts.iter().try_fold(first, |so_far, part| so_far.zip(part, &f));
        Ok(Value::Index(self.made(span, made)?))
    }
}

/// The text of an einsum specification.
pub(super) fn text_of(e: &ast::Expr) -> Option<&str> {
    match &e.kind {
        ExprKind::Text(text) => Some(text),
        ExprKind::Paren(inner) => text_of(inner),
        _ => None,
    }
}
