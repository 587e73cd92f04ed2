//! Types of expressions: element types that have to agree, shapes that have to be equal, types that are stated.

use std::sync::Arc;

use certen_core::{ElemType, TensorType};
use certen_index::{Ix, Verdict};
use certen_syntax::{Code, Diagnostic, Name, Span};

use super::Checked;
use super::index::extent;
use super::scope::Checker;
use super::signature::Asked;
use super::value::{Draft, Flex, TooLarge};
use crate::ast;
use crate::typed::{self, Kind};

impl Checker<'_, '_> {
    /// An expression as it is seen where less holds than where it was made. A size that was not negative there may be
    /// here, where the expression is never evaluated; then it is 0, as sizes are everywhere.
    pub fn outside(&mut self, mut draft: Draft) -> Checked<Draft> {
        let span = draft.expr.span;
        let made = draft.expr.ty.shape.iter().map(|size| extent(self.facts(), &Ix::from(0), size)).collect();
        let shape: Vec<Ix> = self.made(span, made)?;
        draft.expr.ty = TensorType::new(draft.elem(), shape);
        Ok(draft)
    }

    /// Gives a draft the element type that all parts of something have agreed on.
    pub fn settle(&mut self, draft: &mut Draft, elem: ElemType, flex: Flex) -> Checked<()> {
        if draft.flex != Flex::No {
            let set = super::value::set_elem(&mut draft.expr, elem);
            self.held(set, elem, draft.expr.span)?;
            draft.flex = flex;
        }
        Ok(())
    }

    /// The error that an element type cannot hold a literal, if there is one.
    fn held(&mut self, set: Result<(), TooLarge>, elem: ElemType, span: Span) -> Checked<()> {
        set.or_else(|TooLarge(number)| self.error(Code::E0232, span, format!("{number} is more than {elem} can hold")))
    }

    // Element types

    /// Makes two operands have one element type.
    pub fn unify(&mut self, a: &mut Draft, b: &mut Draft, span: Span) -> Checked<()> {
        match (a.flex, b.flex) {
            (Flex::No, Flex::No) if a.elem() == b.elem() => Ok(()),
            (Flex::No, Flex::No) => {
                let text = format!("{} and {} do not mix", a.elem(), b.elem());
                let error = Diagnostic::error(Code::E0232, span, text)
                    .also(a.expr.span, format!("this is {}", a.elem()))
                    .also(b.expr.span, format!("this is {}", b.elem()))
                    .help(format!("convert one of them: `{}(…)`", wider(a.elem(), b.elem())));
                self.fail(error)
            }
            (Flex::No, _) => self.give(b, a.elem()),
            (_, Flex::No) => self.give(a, b.elem()),
            (Flex::Int, Flex::Int) | (Flex::Float, Flex::Float) => Ok(()),
            (Flex::Int, Flex::Float) => self.settle(a, ElemType::F64, Flex::Float),
            (Flex::Float, Flex::Int) => self.settle(b, ElemType::F64, Flex::Float),
        }
    }

    /// Gives an element type to an expression.
    pub fn give(&mut self, draft: &mut Draft, elem: ElemType) -> Checked<()> {
        let span = draft.expr.span;
        if draft.can_be(elem) {
            let set = draft.take(elem);
            return self.held(set, elem, span);
        }
        let error = match draft.flex {
            Flex::No => Diagnostic::error(Code::E0232, span, format!("{elem} is wanted here, not {}", draft.elem()))
                .help(format!("convert it: `{elem}(…)`")),
            Flex::Float => {
                let error = Diagnostic::error(Code::E0232, span, format!("a number with a point is no {elem}"));
                match elem.is_int() {
                    true => error.help("write a whole number, or convert the integers: `f64(…)`"),
                    false => error,
                }
            }
            Flex::Int => Diagnostic::error(Code::E0232, span, format!("a number is no {elem}")),
        };
        self.fail(error)
    }

    // Shapes

    /// Whether two shapes are equal for all sizes; if not, the error shows both.
    pub fn same_shape(&mut self, a: &Draft, b: &Draft, span: Span, what: &str) -> Checked<()> {
        let error = || {
            Diagnostic::error(Code::E0206, span, what)
                .also(a.expr.span, format!("this has the shape {}", shape_text(&a.expr.ty.shape)))
                .also(b.expr.span, format!("this has the shape {}", shape_text(&b.expr.ty.shape)))
        };
        if a.rank() != b.rank() {
            return self.fail(error());
        }
        for (left, right) in a.expr.ty.shape.iter().zip(b.expr.ty.shape.iter()) {
            match self.facts().prove_equal(left, right) {
                Verdict::Yes => {}
                Verdict::No(sizes) => {
                    let note = if sizes.0.is_empty() {
                        format!("{left} is not {right}")
                    } else {
                        format!("{left} is not {right} for example where {sizes}")
                    };
                    let mut error = error().note(note);
                    if let Some(clause) = self.equal_clause(left, right) {
                        error = error.help(clause);
                    }
                    return self.fail(error);
                }
                Verdict::Unknown => {
                    let note = format!("it could not be shown that {left} is {right}");
                    return self.fail(error().note(note));
                }
            }
        }
        Ok(())
    }

    /// The shape of an entrywise operation: that of both, or of the one that is not a scalar.
    pub fn entrywise(&mut self, a: &Draft, b: &Draft, symbol: &str, span: Span) -> Checked<Arc<[Ix]>> {
        match (a.rank(), b.rank()) {
            (0, _) => Ok(b.expr.ty.shape.clone()),
            (_, 0) => Ok(a.expr.ty.shape.clone()),
            _ => {
                if let Some(error) = self.stretched(a, b, symbol, span) {
                    return self.fail(error);
                }
                self.same_shape(a, b, span, "operands of different shapes")?;
                Ok(a.expr.ty.shape.clone())
            }
        }
    }

    /// Checks that an expression has a type that is stated.
    pub fn must_have(&mut self, draft: &mut Draft, ty: &ast::Type, what: &str) -> Checked<()> {
        let elem = self.elem_of(ty)?;
        if !draft.can_be(elem) {
            let found = if draft.flex == Flex::No { draft.elem().to_string() } else { "a number".into() };
            let error = Diagnostic::error(Code::E0236, draft.expr.span, format!("{what} has elements of type {found}"))
                .also(ty.span, format!("{elem} is stated here"))
                .help(format!("convert it: `{elem}(…)`"));
            return self.fail(error);
        }
        self.give(draft, elem)?;
        let asked = self.asked(ty)?;
        let least: usize = asked.iter().map(|dim| if let Asked::Many(least) = dim { *least } else { 1 }).sum();
        let open = asked.iter().any(|dim| matches!(dim, Asked::Many(_)));
        let shape = draft.expr.ty.shape.clone();
        let wrong = |note: Option<String>| {
            let text = format!("{what} has the shape {}", shape_text(&shape));
            let error =
                Diagnostic::error(Code::E0236, draft.expr.span, text).also(ty.span, "another shape is stated here");
            match note {
                Some(note) => error.note(note),
                None => error,
            }
        };
        if shape.len() < least || (!open && shape.len() != least) {
            let error = wrong(None);
            return self.fail(error);
        }
        let mut rest = shape.len() - least;
        let mut at = 0;
        // Sizes that stand in another order are not meant to be equal.
        let stated = asked.iter().filter_map(|dim| if let Asked::Size(size) = dim { Some(size) } else { None });
        let mut orders = [stated.map(Ix::to_string).collect::<Vec<_>>(), shape.iter().map(Ix::to_string).collect()];
        orders.iter_mut().for_each(|sizes| sizes.sort());
        let reordered = orders[0] == orders[1];
        for dim in asked {
            match dim {
                Asked::Size(size) => {
                    match self.facts().prove_equal(&shape[at], &size) {
                        Verdict::Yes => {}
                        Verdict::No(sizes) => {
                            let place =
                                if shape.len() == 1 { "its size is ".into() } else { format!("dimension {at} is ") };
                            let example = match sizes.0.is_empty() {
                                true => String::new(),
                                false => format!("; they differ for example where {sizes}"),
                            };
                            let note = format!("{place}{}, and {size} is stated{example}", shape[at]);
                            let mut error = wrong(Some(note));
                            if let Some(clause) = self.equal_clause(&shape[at], &size).filter(|_| !reordered) {
                                error = error.help(clause);
                            }
                            if let Some(index) = inferred_end(draft, at).filter(|_| !reordered) {
                                error = error.help(format!(
                                    "its selections say where `{index}` ends; to end elsewhere, write a bound after the body"
                                ));
                            }
                            return self.fail(error);
                        }
                        Verdict::Unknown => {
                            let note = format!("it could not be shown that {} is {size}", shape[at]);
                            let error = wrong(Some(note));
                            return self.fail(error);
                        }
                    }
                    at += 1;
                }
                Asked::One => at += 1,
                Asked::Many(least) => {
                    at += least + rest;
                    rest = 0;
                }
            }
        }
        Ok(())
    }
}

/// The element type of two that holds more numbers.
fn wider(a: ElemType, b: ElemType) -> ElemType {
    let order = [ElemType::F64, ElemType::F32, ElemType::I64, ElemType::I32];
    order.into_iter().find(|elem| [a, b].contains(elem)).unwrap_or(a)
}

/// The index of a comprehension along a dimension, if its upper bound was inferred.
fn inferred_end(draft: &Draft, dim: usize) -> Option<Name> {
    let Kind::Comprehension(partitions) = &draft.expr.kind else { return None };
    let last = partitions.last()?;
    let typed::Slot::Index(index) = last.pattern.get(dim)? else { return None };
    let only_indices = last.pattern.iter().all(|slot| matches!(slot, typed::Slot::Index(_)));
    let inferred = last.ranges.get(dim).is_some_and(|range| !range.upper_written);
    (only_indices && inferred).then_some(*index)
}

/// A shape as it is written.
pub(super) fn shape_text(shape: &[Ix]) -> String {
    let sizes: Vec<String> = shape.iter().map(Ix::to_string).collect();
    format!("[{}]", sizes.join(", "))
}
