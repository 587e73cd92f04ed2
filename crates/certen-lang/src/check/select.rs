//! Selections: indices, index vectors, dots and slices between brackets.

use std::sync::Arc;

use certen_core::TensorType;
use certen_index::Ix;
use certen_syntax::{Code, Diagnostic, Name, Span};

use super::Checked;
use super::index::{Index, extent};
use super::scope::Checker;
use super::types::shape_text;
use super::value::{Draft, Judged, block_expr};
use crate::ast::{self, ExprKind, Selector};
use crate::typed::{self, Expr, Kind, Rhs};

/// What one dimension is selected by.
enum Taken {
    At(Index),
    /// All of it.
    Whole,
    /// From an index on, up to another or to the end.
    Part(Ix, Option<Ix>),
}

impl Checker<'_, '_> {
    pub fn select(&mut self, base: &ast::Expr, selectors: &[Selector], span: Span) -> Checked<Judged> {
        let tensor = match self.expr(base)? {
            Judged::Vector(parts) => match self.component(&parts, selectors, span)? {
                Some(value) => return Ok(value),
                None => self.as_data(Judged::Vector(parts), base.span)?,
            },
            Judged::Index(_) | Judged::Cond(_) => {
                return self.error(Code::E0204, base.span, "this is one index: there is nothing to select from");
            }
            Judged::Data(draft) => draft,
        };
        let what = match &base.kind {
            ExprKind::Name(name) => format!("`{name}`"),
            _ if tensor.rank() == 0 => "this".into(),
            _ => "the tensor".into(),
        };
        let shape = tensor.expr.ty.shape.clone();
        let mut taken: Vec<(Taken, Span)> = Vec::new();
        let mut rest = None;
        for selector in selectors {
            match selector {
                Selector::At(e) => match self.expr(e)? {
                    Judged::Index(index) => taken.push((Taken::At(index), e.span)),
                    Judged::Vector(parts) => taken.extend(parts.into_iter().map(|part| (Taken::At(part), e.span))),
                    value => {
                        let help = "reading at places that data names (gather, scatter) is not in this version";
                        return self.no_index_but(&value, e.span, help);
                    }
                },
                Selector::Dot(place) => taken.push((Taken::Whole, *place)),
                Selector::Dots(place) => {
                    if rest.replace(taken.len()).is_some() {
                        return self.error(Code::E0103, *place, "a selection can hold one `...`");
                    }
                }
                Selector::Slice(from, to, place) => {
                    let from = match from {
                        Some(e) => self.plain_index(e)?,
                        None => Ix::from(0),
                    };
                    let to = match to {
                        Some(e) => Some(self.plain_index(e)?),
                        None => None,
                    };
                    taken.push((Taken::Part(from, to), *place));
                }
            }
        }
        if shape.is_empty() && !taken.is_empty() {
            let error =
                Diagnostic::error(Code::E0204, span, format!("{what} is a scalar: it has no elements to select"))
                    .also(base.span, "this has no dimensions");
            return self.fail(error);
        }
        if taken.len() > shape.len() {
            let count = |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
            let (indices, dims) =
                (count(taken.len(), "index", "indices"), count(shape.len(), "dimension", "dimensions"));
            let text = format!("{indices} for {what}, which has {dims}");
            let error = Diagnostic::error(Code::E0204, span, text).note(format!("its shape is {}", shape_text(&shape)));
            return self.fail(error);
        }
        if let Some(at) = rest {
            let skipped = shape.len() - taken.len();
            taken.splice(at..at, (0..skipped).map(|_| (Taken::Whole, span)));
        }
        // Dimensions that stay after the last index need not be written.
        while matches!(taken.last(), Some((Taken::Whole, _))) {
            taken.pop();
        }
        if taken.iter().all(|(one, _)| matches!(one, Taken::At(_))) {
            let indices =
                taken.into_iter().filter_map(|(one, _)| if let Taken::At(index) = one { Some(index) } else { None });
            return self.at(&what, tensor, indices.collect(), span).map(Judged::Data);
        }
        self.slice(&what, tensor, taken, span).map(Judged::Data)
    }

    /// A component or part of an index vector, if the selectors are numbers.
    fn component(&mut self, parts: &[Index], selectors: &[Selector], span: Span) -> Checked<Option<Judged>> {
        let number = |function: &mut Self, e: &ast::Expr| -> Checked<Option<i64>> {
            match function.expr(e)? {
                Judged::Index(index) => Ok(index.constant()),
                Judged::Vector(one) if one.len() == 1 => Ok(one[0].constant()),
                value => function.no_index(&value, e.span),
            }
        };
        let length = parts.len() as i64;
        let wrong = |function: &mut Self, at: i64| {
            function.error(Code::E0207, span, format!("component {at} of an index vector that has {length}"))
        };
        match selectors {
            [Selector::At(e)] => match number(self, e)? {
                None => Ok(None),
                Some(at) => match usize::try_from(at).ok().and_then(|at| parts.get(at)) {
                    Some(part) => Ok(Some(Judged::Index(part.clone()))),
                    None => wrong(self, at),
                },
            },
            [Selector::Slice(from, to, _)] => {
                let from = match from {
                    Some(e) => number(self, e)?,
                    None => Some(0),
                };
                let to = match to {
                    Some(e) => number(self, e)?,
                    None => Some(length),
                };
                let (Some(from), Some(to)) = (from, to) else { return Ok(None) };
                if from < 0 || to > length || from > to {
                    return wrong(self, if from < 0 { from } else { to });
                }
                Ok(Some(Judged::Vector(parts[from as usize..to as usize].to_vec())))
            }
            _ => Ok(None),
        }
    }

    /// A selection by indices alone. A case of an index is lifted: each branch is checked where its condition holds.
    pub fn at(&mut self, what: &str, tensor: Draft, indices: Vec<Index>, span: Span) -> Checked<Draft> {
        if let Some(place) = indices.iter().position(|index| index.plain().is_none())
            && let Index::Case(case) = &indices[place]
        {
            let not = self.made(span, case.0.not())?;
            let replaced = |with: &Index| {
                let mut indices = indices.clone();
                indices[place] = with.clone();
                indices
            };
            if let Some(decided) = self.decided(&case.0, &not) {
                let branch = if decided { &case.1 } else { &case.2 };
                return self.at(what, tensor, replaced(branch), span);
            }
            // The tensor stands in both branches: give it a name if it is not one.
            let (lets, tensor) = self.named(tensor, "x");
            let then =
                self.guarded(case.0.clone(), |function| function.at(what, tensor.clone(), replaced(&case.1), span))?;
            let otherwise = self.guarded(not, |function| function.at(what, tensor.clone(), replaced(&case.2), span))?;
            let flex = then.flex;
            let ty = then.expr.ty.clone();
            let kind = Kind::If(case.0.clone(), Box::new(then.expr), Box::new(otherwise.expr));
            return Ok(Draft { expr: block_expr(lets, Expr { kind, ty, span }), flex });
        }
        let indices: Vec<Ix> = indices.iter().filter_map(|index| index.plain().cloned()).collect();
        if indices.is_empty() {
            return Ok(tensor);
        }
        self.access(what, &indices, &tensor.expr.ty.shape, span)?;
        let shape: Arc<[Ix]> = tensor.expr.ty.shape[indices.len()..].into();
        let ty = TensorType { elem: tensor.elem(), shape };
        let flex = tensor.flex;
        let kind = match tensor.expr.kind {
            Kind::Select(base, mut before) => {
                before.extend(indices);
                Kind::Select(base, before)
            }
            kind => Kind::Select(Box::new(Expr { kind, ..tensor.expr }), indices),
        };
        Ok(Draft { expr: Expr { kind, ty, span }, flex })
    }

    /// A tensor under a name, if it is not one already.
    pub fn named(&mut self, tensor: Draft, base: &str) -> (Vec<typed::Let>, Draft) {
        let simple = match &tensor.expr.kind {
            Kind::Var(_) | Kind::Literal(_) | Kind::Index(_) => true,
            // Where nothing is proved, a selection that is out of bounds must be seen even if nothing is taken from it.
            Kind::Select(base, _) => self.world.proves && matches!(base.kind, Kind::Var(_)),
            _ => false,
        };
        if simple || super::value::constant_size(&tensor.expr, 64).is_some() {
            return (Vec::new(), tensor);
        }
        let name = self.fresh(Name::new(base));
        let ty = tensor.expr.ty.clone();
        let var = Self::var(name, ty.clone(), tensor.expr.span);
        (vec![typed::Let { names: vec![(name, ty)], value: Rhs::Expr(tensor.expr) }], var)
    }

    /// A selection with slices: a comprehension over what they leave.
    fn slice(&mut self, what: &str, tensor: Draft, taken: Vec<(Taken, Span)>, span: Span) -> Checked<Draft> {
        let (lets, tensor) = self.named(tensor, "x");
        let mut pattern = Vec::new();
        let mut ranges = Vec::new();
        let mut indices = Vec::new();
        let mut facts = Vec::new();
        let mut shape = Vec::new();
        let outer = self.ranges.len();
        let mut added = Vec::new();
        let sizes = tensor.expr.ty.shape.clone();
        for ((one, place), whole) in taken.into_iter().zip(sizes.iter()) {
            let part = match one {
                Taken::At(index) => {
                    indices.push(index);
                    None
                }
                Taken::Whole => Some((Ix::from(0), whole.clone())),
                Taken::Part(from, to) => {
                    let size = self.made(place, extent(self.facts(), &from, to.as_ref().unwrap_or(whole)))?;
                    Some((from, size))
                }
            };
            match part {
                None => {}
                Some((from, size)) => {
                    let (name, index) = self.new_index(Name::new("i"));
                    facts.push(self.made(place, super::index::within(&index, &Ix::from(0), &size))?);
                    indices.push(self.made(place, index.add(&from))?.into());
                    pattern.push(typed::Slot::Index(name));
                    ranges.push(typed::Range {
                        lower: Ix::from(0),
                        upper: size.clone(),
                        lower_written: false,
                        upper_written: true,
                    });
                    added.push((name, Ix::from(0), size.clone()));
                    shape.push(size);
                }
            }
        }
        self.ranges.extend(added.iter().cloned());
        let seen = self.probe.as_ref().map_or(0, Vec::len);
        let body = self.under(facts, |function| function.at(what, tensor, indices, span));
        self.ranges.truncate(outer);
        if let Some(accesses) = &mut self.probe {
            accesses[seen..].iter_mut().for_each(|access| access.ranges.extend(added.iter().cloned()));
        }
        let body = body?;
        self.release(&added.iter().map(|(name, ..)| *name).collect::<Vec<_>>());
        shape.extend(body.expr.ty.shape.iter().cloned());
        let (ty, flex) = (TensorType::new(body.elem(), shape), body.flex);
        let partition = typed::Partition { pattern, ranges, body: body.expr };
        let expr = Expr { kind: Kind::Comprehension(vec![partition]), ty, span };
        Ok(Draft { expr: block_expr(lets, expr), flex })
    }

    /// `guard(c, e)`: the body is checked where the condition holds.
    pub fn guard(&mut self, cond: &ast::Expr, body: &ast::Expr, span: Span) -> Checked<Draft> {
        let cond = match self.expr(cond)? {
            Judged::Cond(cond) => cond,
            Judged::Data(_) => {
                let error =
                    Diagnostic::error(Code::E0231, cond.span, "the condition of a guard is on indices, not data")
                        .help("to choose by data: `select(c, x, 0)`");
                return self.fail(error);
            }
            value => return self.no_index(&value, cond.span),
        };
        if cond.is_always() {
            return self.data(body);
        }
        let draft = self.guarded(cond.clone(), |function| function.data(body))?;
        let draft = self.outside(draft)?;
        let (ty, flex) = (draft.expr.ty.clone(), draft.flex);
        let kind = Kind::Guard(cond, Box::new(draft.expr));
        Ok(Draft { expr: Expr { kind, ty, span }, flex })
    }
}
