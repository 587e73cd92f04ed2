//! Built-in functions: those of the index level, the functions of Core entry by entry, reductions, casts, ATL's reshape
//! operators.

use std::sync::Arc;

use certen_core::{Binary, ElemType, ReduceOp, TensorType, Unary};
use certen_index::{Cond, Ix, Verdict};
use certen_syntax::{Code, Diagnostic, Span};

use super::Checked;
use super::index::{Index, larger, smaller};
use super::scope::Checker;
use super::types::shape_text;
use super::value::{Draft, Flex, Judged};
use crate::ast::{self, ExprKind, Ident};
use crate::typed::{Expr, Kind, Side};

/// A built-in function: what it takes, and its typing rule, which is told the name it is called by.
enum Builtin {
    /// A function of Core, entry by entry.
    Entries(Unary),
    /// Over all axes of a tensor, or over some.
    Reduction(ReduceOp),
    /// A reduction that is also a choice among several values.
    Extreme(ReduceOp),
    Cast(ElemType),
    One(fn(&mut Checker<'_, '_>, &str, &ast::Expr, Span) -> Checked<Judged>),
    Two(fn(&mut Checker<'_, '_>, &str, [&ast::Expr; 2], Span) -> Checked<Judged>),
    Three(fn(&mut Checker<'_, '_>, &str, [&ast::Expr; 3], Span) -> Checked<Judged>),
    Einsum,
}

#[rustfmt::skip]
const BUILTINS: &[(&str, Builtin)] = {
    use Builtin::*;
    &[
        ("shape", One(shape)),
        ("dim", One(dim)),
        ("select", Three(select)),
        ("guard", Two(|f, _, [c, e], span| Ok(Judged::Data(f.guard(c, e, span)?)))),
        ("abs", One(abs)),
        ("floor", Entries(Unary::Floor)),
        ("ceil", Entries(Unary::Ceil)),
        ("round", Entries(Unary::Round)),
        ("sqrt", Entries(Unary::Sqrt)),
        ("exp", Entries(Unary::Exp)),
        ("log", Entries(Unary::Log)),
        ("sin", Entries(Unary::Sin)),
        ("cos", Entries(Unary::Cos)),
        ("tanh", Entries(Unary::Tanh)),
        ("erf", Entries(Unary::Erf)),
        ("exp2", Entries(Unary::Exp2)),
        ("expm1", Entries(Unary::Expm1)),
        ("log2", Entries(Unary::Log2)),
        ("log10", Entries(Unary::Log10)),
        ("log1p", Entries(Unary::Log1p)),
        ("tan", Entries(Unary::Tan)),
        ("asin", Entries(Unary::Asin)),
        ("acos", Entries(Unary::Acos)),
        ("atan", Entries(Unary::Atan)),
        ("sinh", Entries(Unary::Sinh)),
        ("cosh", Entries(Unary::Cosh)),
        ("asinh", Entries(Unary::Asinh)),
        ("acosh", Entries(Unary::Acosh)),
        ("atanh", Entries(Unary::Atanh)),
        ("erfc", Entries(Unary::Erfc)),
        ("cbrt", Entries(Unary::Cbrt)),
        ("sigmoid", Entries(Unary::Sigmoid)),
        ("min", Extreme(ReduceOp::Min)),
        ("max", Extreme(ReduceOp::Max)),
        ("pow", Two(of_two)),
        ("atan2", Two(of_two)),
        ("hypot", Two(of_two)),
        ("floor_div", Two(division)),
        ("ceil_div", Two(division)),
        ("mod", Two(division)),
        ("sum", Reduction(ReduceOp::Sum)),
        ("prod", Reduction(ReduceOp::Prod)),
        ("all", Reduction(ReduceOp::All)),
        ("any", Reduction(ReduceOp::Any)),
        ("einsum", Einsum),
        ("flatten", One(flatten)),
        ("split", Two(split)),
        ("transpose", One(transpose)),
        ("pad_l", Two(resize)),
        ("pad_r", Two(resize)),
        ("trunc_l", Two(resize)),
        ("trunc_r", Two(resize)),
        ("reshape", Two(reshape)),
        ("stored", One(stored)),
        ("f32", Cast(ElemType::F32)),
        ("f64", Cast(ElemType::F64)),
        ("i32", Cast(ElemType::I32)),
        ("i64", Cast(ElemType::I64)),
        ("u8", Cast(ElemType::U8)),
        ("bool", Cast(ElemType::Bool)),
    ]
};

/// The name of every built-in function, for suggestions.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    BUILTINS.iter().map(|(name, _)| *name)
}

/// Whether all that a built-in function takes has the shape of what it gives, scalars aside.
pub(super) fn is_entrywise(name: &str, arguments: usize) -> bool {
    BUILTINS.iter().any(|(known, builtin)| {
        *known == name
            && match builtin {
                Builtin::Entries(_) | Builtin::Cast(_) => true,
                Builtin::Extreme(_) => arguments > 1,
                _ => ["abs", "atan2", "floor_div", "guard", "hypot", "mod", "pow", "select", "stored"].contains(known),
            }
    })
}

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

impl Checker<'_, '_> {
    /// A built-in function, if there is one of this name.
    pub fn builtin(
        &mut self,
        name: Ident,
        args: &[ast::Expr],
        named: &[(Ident, ast::Expr)],
        span: Span,
    ) -> Checked<Option<Judged>> {
        let word = name.name.as_str();
        let Some((_, builtin)) = BUILTINS.iter().find(|(known, _)| *known == word) else {
            return match ABSENT.iter().find(|(absent, _)| *absent == word) {
                Some((_, instead)) if named.is_empty() => {
                    let error = Diagnostic::error(Code::E0201, name.span, format!("there is no function `{word}`"));
                    self.fail(error.help(*instead))
                }
                _ => Ok(None),
            };
        };
        if let Builtin::Reduction(op) | Builtin::Extreme(op) = builtin
            && (args.len() == 1 || !named.is_empty())
        {
            return self.reduction(*op, word, args, named, span).map(Some);
        }
        if let Some((keyword, _)) = named.first() {
            let text = format!("`{word}` has no argument called `{}`", keyword.name);
            return self.error(Code::E0235, keyword.span, text);
        }
        let value = match (builtin, args) {
            (Builtin::Entries(op), [x]) => {
                let draft = self.data(x)?;
                Judged::Data(self.apply_unary(*op, draft, span)?)
            }
            (Builtin::Extreme(op), [first, rest @ ..]) => {
                let mut so_far = self.expr(first)?;
                for next in rest {
                    let value = self.expr(next)?;
                    so_far = self.extreme(*op == ReduceOp::Max, (so_far, first.span), (value, next.span), span)?;
                }
                so_far
            }
            (Builtin::Cast(elem), [x]) => self.cast(*elem, x, span)?,
            (Builtin::One(rule), [x]) => rule(self, word, x, span)?,
            (Builtin::Two(rule), [a, b]) => rule(self, word, [a, b], span)?,
            (Builtin::Three(rule), [a, b, c]) => rule(self, word, [a, b, c], span)?,
            (Builtin::Einsum, [spec, operands @ ..]) => Judged::Data(self.einsum(spec, operands, span)?),
            _ => {
                let text = format!("`{word}` does not take {} arguments", args.len());
                let error = Diagnostic::error(Code::E0235, span, text);
                return self.fail(match builtin {
                    Builtin::Reduction(_) | Builtin::Extreme(_) => {
                        error.help(format!("`{word}(x)`, or over some axes: `{word}(x, axis = 0)`"))
                    }
                    _ => error,
                });
            }
        };
        Ok(Some(value))
    }

    fn cast(&mut self, elem: ElemType, x: &ast::Expr, span: Span) -> Checked<Judged> {
        let mut draft = self.data(x)?;
        if draft.flex != Flex::No && draft.can_be(elem) {
            self.give(&mut draft, elem)?;
        } else {
            draft.flex = Flex::No;
        }
        if draft.elem() == elem {
            return Ok(Judged::Data(draft));
        }
        let ty = TensorType { elem, shape: draft.expr.ty.shape.clone() };
        Ok(Judged::Data(Draft::fixed(Expr { kind: Kind::Cast(Box::new(draft.expr)), ty, span })))
    }

    fn reshaped(&mut self, draft: Draft, shape: Arc<[Ix]>, kind: impl FnOnce(Box<Expr>) -> Kind, span: Span) -> Judged {
        let ty = TensorType { elem: draft.elem(), shape };
        Judged::Data(Draft { flex: draft.flex, expr: Expr { kind: kind(Box::new(draft.expr)), ty, span } })
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
        (a, a_span): (Judged, Span),
        (b, b_span): (Judged, Span),
        span: Span,
    ) -> Checked<Judged> {
        let facts = self.facts().clone();
        let f = |a: &Ix, b: &Ix| if max { larger(&facts, a, b) } else { smaller(&facts, a, b) };
        if let Some(value) = self.zip_indices(&a, &b, &f, span)? {
            return Ok(value);
        }
        let (a, b) = (self.as_data(a, a_span)?, self.as_data(b, b_span)?);
        Ok(Judged::Data(self.apply_binary(if max { Binary::Max } else { Binary::Min }, a, b, span)?))
    }

    fn reduction(
        &mut self,
        op: ReduceOp,
        word: &str,
        args: &[ast::Expr],
        named: &[(Ident, ast::Expr)],
        span: Span,
    ) -> Checked<Judged> {
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
        if let (Judged::Vector(parts), [], true) = (&value, named, !matches!(op, ReduceOp::All | ReduceOp::Any)) {
            return self.reduce_indices(op, parts, span);
        }
        let draft = match value {
            Judged::Index(_) | Judged::Cond(_) if named.is_empty() => return Ok(value),
            value => self.as_data(value, x.span)?,
        };
        let rank = draft.rank();
        let axes: Vec<usize> = match named {
            [] => (0..rank).collect(),
            [(_, axes)] => {
                let places = match self.expr(axes)? {
                    Judged::Index(index) => vec![index],
                    Judged::Vector(parts) => parts,
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
        Ok(Judged::Data(self.reduce(op, axes, draft, span)?))
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
                let goal = self.made(span, Cond::le(&Ix::from(1), &size))?;
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

    fn reduce_indices(&mut self, op: ReduceOp, parts: &[Index], span: Span) -> Checked<Judged> {
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
        Ok(Judged::Index(self.made(span, made)?))
    }
}

fn shape(f: &mut Checker<'_, '_>, _: &str, x: &ast::Expr, _: Span) -> Checked<Judged> {
    let draft = f.data(x)?;
    Ok(Judged::Vector(draft.expr.ty.shape.iter().map(|size| Index::Is(size.clone())).collect()))
}

fn dim(f: &mut Checker<'_, '_>, _: &str, x: &ast::Expr, _: Span) -> Checked<Judged> {
    let draft = f.data(x)?;
    Ok(Judged::Index(Ix::from(draft.rank() as i64).into()))
}

fn select(f: &mut Checker<'_, '_>, _: &str, [c, a, b]: [&ast::Expr; 3], span: Span) -> Checked<Judged> {
    let value = match f.expr(c)? {
        Judged::Cond(cond) => {
            let (a, b) = ((f.expr(a)?, a.span), (f.expr(b)?, b.span));
            return f.either(cond, a, b, span);
        }
        value => value,
    };
    let condition = f.as_data(value, c.span)?;
    if condition.flex != Flex::No || condition.elem() != ElemType::Bool {
        let text = format!("a condition is made of truth values, not of {}", condition.elem());
        return f.fail(Diagnostic::error(Code::E0232, c.span, text).help("compare: `x > 0`"));
    }
    let (a, b) = (f.data(a)?, f.data(b)?);
    Ok(Judged::Data(f.choose(condition, a, b, span)?))
}

fn abs(f: &mut Checker<'_, '_>, _: &str, x: &ast::Expr, span: Span) -> Checked<Judged> {
    match f.expr(x)? {
        value @ (Judged::Index(_) | Judged::Vector(_)) => {
            let facts = f.facts().clone();
            let absolute = |a: &Ix, _: &Ix| larger(&facts, a, &a.scale(-1)?);
            let zero = Judged::Index(Ix::from(0).into());
            f.zip_indices(&value, &zero, &absolute, span)?.ok_or(super::Reported)
        }
        value => {
            let draft = f.as_data(value, x.span)?;
            Ok(Judged::Data(f.apply_unary(Unary::Abs, draft, span)?))
        }
    }
}

/// A function of Core of two arguments, entry by entry.
fn of_two(f: &mut Checker<'_, '_>, word: &str, [a, b]: [&ast::Expr; 2], span: Span) -> Checked<Judged> {
    let (a, b) = (f.data(a)?, f.data(b)?);
    Ok(Judged::Data(f.apply_binary(Binary::from_name(word).unwrap_or(Binary::Pow), a, b, span)?))
}

/// Division that rounds, and its remainder.
fn division(f: &mut Checker<'_, '_>, word: &str, [left, right]: [&ast::Expr; 2], span: Span) -> Checked<Judged> {
    let (a, b) = (f.expr(left)?, f.expr(right)?);
    if let (Judged::Index(_) | Judged::Vector(_), Judged::Index(divisor)) = (&a, &b) {
        let Some(divisor) = divisor.constant().filter(|divisor| *divisor >= 1) else {
            let text = format!("`{word}` of an index divides by a literal, at least 1");
            let error = Diagnostic::error(Code::E0216, right.span, text);
            return f.fail(error.note("a division by a symbolic size is outside what can be proved"));
        };
        let divide = |a: &Ix, _: &Ix| match word {
            "floor_div" => a.floor_div(divisor),
            "ceil_div" => a.ceil_div(divisor),
            _ => a.modulo(divisor),
        };
        if let Some(value) = f.zip_indices(&a, &b, &divide, span)? {
            return Ok(value);
        }
    }
    let (a, b) = (f.as_data(a, left.span)?, f.as_data(b, right.span)?);
    match word {
        "floor_div" => Ok(Judged::Data(f.apply_binary(Binary::FloorDiv, a, b, span)?)),
        "mod" => Ok(Judged::Data(f.apply_binary(Binary::Mod, a, b, span)?)),
        _ => f.error(Code::E0232, span, "`ceil_div` is of indices; of data: `-floor_div(-a, b)`"),
    }
}

fn flatten(f: &mut Checker<'_, '_>, word: &str, x: &ast::Expr, span: Span) -> Checked<Judged> {
    let draft = f.data(x)?;
    let shape = f.at_least(&draft, 2, word)?;
    let size = f.made(span, shape[0].mul(&shape[1]))?;
    let shape = std::iter::once(size).chain(shape[2..].iter().cloned()).collect();
    Ok(f.reshaped(draft, shape, Kind::Flatten, span))
}

fn split(f: &mut Checker<'_, '_>, word: &str, [k, x]: [&ast::Expr; 2], span: Span) -> Checked<Judged> {
    let k = match f.plain_index(k)?.as_constant() {
        Some(k) if k >= 1 => k,
        _ => return f.error(Code::E0216, k.span, "the size of a block is a literal, at least 1"),
    };
    let draft = f.data(x)?;
    let shape = f.at_least(&draft, 1, word)?;
    let blocks = f.made(span, shape[0].ceil_div(k))?;
    let shape = [blocks, Ix::from(k)].into_iter().chain(shape[1..].iter().cloned()).collect();
    Ok(f.reshaped(draft, shape, |e| Kind::Split(k, e), span))
}

fn transpose(f: &mut Checker<'_, '_>, word: &str, x: &ast::Expr, span: Span) -> Checked<Judged> {
    let draft = f.data(x)?;
    let shape = f.at_least(&draft, 2, word)?;
    let swapped = [shape[1].clone(), shape[0].clone()].into_iter().chain(shape[2..].iter().cloned()).collect();
    Ok(f.reshaped(draft, swapped, Kind::Transpose, span))
}

/// Padding and truncation of the first dimension, on either side.
fn resize(f: &mut Checker<'_, '_>, word: &str, [k, x]: [&ast::Expr; 2], span: Span) -> Checked<Judged> {
    let amount = f.plain_index(k)?;
    let draft = f.data(x)?;
    let shape = f.at_least(&draft, 1, word)?;
    let side = if word.ends_with("_l") { Side::Left } else { Side::Right };
    let pads = word.starts_with("pad");
    let made = Cond::le(&Ix::from(0), &amount)
        .and_then(|goal| Ok(if pads { goal } else { goal.and(Cond::le(&amount, &shape[0])?) }));
    let goal = f.made(span, made)?;
    let note = format!("the first dimension has the size {}", shape[0]);
    f.require(&goal, |_, _| {
        let text = match pads {
            true => format!("the amount {amount} can be negative"),
            false => format!("the amount {amount} can be negative or more than there is"),
        };
        Diagnostic::error(Code::E0207, k.span, text).note(note)
    })?;
    let size = f.made(span, if pads { shape[0].add(&amount) } else { shape[0].sub(&amount) })?;
    let shape = std::iter::once(size).chain(shape[1..].iter().cloned()).collect();
    let kind = |e| if pads { Kind::Pad(side, amount, e) } else { Kind::Trunc(side, amount, e) };
    Ok(f.reshaped(draft, shape, kind, span))
}

fn reshape(f: &mut Checker<'_, '_>, _: &str, [shape, x]: [&ast::Expr; 2], span: Span) -> Checked<Judged> {
    let shape = f.sizes_of(shape)?;
    let draft = f.data(x)?;
    let product = |sizes: &[Ix]| sizes.iter().try_fold(Ix::from(1), |product, size| product.mul(size));
    let made = product(&shape).and_then(|new| Ok((product(&draft.expr.ty.shape)?, new)));
    let (before, after) = f.made(span, made)?;
    if f.facts().prove_equal(&before, &after) != Verdict::Yes {
        let (old, new) = (shape_text(&draft.expr.ty.shape), shape_text(&shape));
        let error = Diagnostic::error(Code::E0206, span, "the shapes have different numbers of elements");
        return f.fail(error.note(format!("{old} has {before}, and {new} has {after}")));
    }
    Ok(f.reshaped(draft, shape.into(), Kind::Reshape, span))
}

fn stored(f: &mut Checker<'_, '_>, _: &str, x: &ast::Expr, span: Span) -> Checked<Judged> {
    let draft = f.data(x)?;
    let shape = draft.expr.ty.shape.clone();
    Ok(f.reshaped(draft, shape, Kind::Stored, span))
}

/// The text of an einsum specification.
pub(super) fn text_of(e: &ast::Expr) -> Option<&str> {
    match &e.kind {
        ExprKind::Text(text) => Some(text),
        ExprKind::Paren(inner) => text_of(inner),
        _ => None,
    }
}
