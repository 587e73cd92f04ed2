//! The check of padding against the evaluator, which knows padding as a value (ATL, Sec. 6.1).

use std::cell::Cell;
use std::collections::BTreeMap;

use certen_core::domain::{Machine, MaybePadding, Padded, Scalar};
use certen_core::padding::{PadType, Side, Why, check, pad_type};
use certen_core::{Binding, Evaluator, Program, Tensor, Term, TermId};
use certen_index::Ix;
use certen_syntax::Name;
use certen_testgen::calculus::{Case, Size, Truncations};

use super::{FUEL, cases, common::for_bytes, for_cases};

/// A first binding without the truncation that stands outside or under generations: what is truncated, where, and how
/// much.
struct Uncut {
    /// The truncation.
    term: TermId,
    side: Side,
    amount: Ix,
    dimension: usize,
    whole: Program,
}

impl Uncut {
    fn of(program: &Program) -> Option<Uncut> {
        let mut whole = program.clone();
        let (mut term, mut around) = (program.bindings.first()?.term, Vec::new());
        while let Term::Gen(name, range, body) = program.terms.get(term) {
            around.push((*name, range.clone()));
            term = *body;
        }
        let (side, amount, inner) = match program.terms.get(term) {
            Term::TruncLeft(amount, inner) => (Side::Left, amount.clone(), *inner),
            Term::TruncRight(amount, inner) => (Side::Right, amount.clone(), *inner),
            _ => return None,
        };
        let dimension = around.len();
        let mut body = inner;
        for (name, range) in around.into_iter().rev() {
            body = whole.terms.add(Term::Gen(name, range, body)).expect("as it was, without the truncation");
        }
        let name = Name::new("whole");
        whole.bindings = vec![Binding { name, term: body }];
        whole.outputs = vec![(name, name)];
        whole.check().expect("as it was, without the truncation");
        Some(Uncut { term, side, amount, dimension, whole })
    }

    /// Whether everything that is cut is padding at these sizes; nothing if that takes too long.
    fn cuts_padding(&self, case: &Case, run: &[Size]) -> Option<bool> {
        let tensor = evaluated(case, &self.whole, run)?.remove(0);
        let cut = self.amount.eval(&value(run)).expect("amounts have values");
        let (shape, size) = (tensor.shape(), tensor.shape()[self.dimension] as i64);
        let inner: usize = shape[self.dimension + 1..].iter().product();
        let is_cut = |position: usize| {
            let at = (position / inner) as i64 % size;
            if self.side == Side::Left { at < cut } else { at >= size - cut }
        };
        Some(tensor.data().iter().enumerate().all(|(at, element)| !is_cut(at) || element.is_padding))
    }
}

fn value(run: &[Size]) -> impl Fn(Name) -> Option<i64> + '_ {
    |name| run.iter().find(|(size, _)| *size == name).map(|(_, value)| *value)
}

/// The outputs of a program with the same inputs as a case, as elements that may be padding.
fn evaluated(case: &Case, program: &Program, run: &[Size]) -> Option<Vec<Tensor<MaybePadding<Scalar>>>> {
    let inputs = case.inputs(run, |value, elem| MaybePadding::computed(Scalar::from_i64(value, elem)));
    let evaluator = Evaluator::new(program, &Padded(Machine), run.iter().copied(), inputs).expect("a call");
    let outputs = evaluator.with_fuel(FUEL[0]).run().ok()?;
    Some(outputs.into_iter().map(|(_, tensor)| tensor).collect())
}

/// What is legal by construction is shown to be.
#[test]
fn legal_truncations_are_accepted() {
    for_cases(150, 61, |case| {
        let violations = check(&case.program);
        assert!(violations.is_empty(), "{:?}", violations[0]);
        true
    });
}

/// What cuts an element that is computed at some size is refused, and a counterexample is one.
#[test]
fn truncations_that_cut_values_are_refused() {
    let make = |bytes: &[u8]| Case::new(bytes, "generated", Truncations::Any);
    let show = |bytes: &[u8]| {
        let case = make(bytes);
        format!("{:?}\n{}", case.runs, case.program)
    };
    let (accepted, refused, unknown) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let one_more = |count: &Cell<u32>| count.set(count.get() + 1);
    for_bytes(cases(150), 62, show, |bytes| {
        let case = make(bytes);
        let uncut = Uncut::of(&case.program).expect("the first binding is a truncation");
        let violations = check(&case.program);
        let Some(violation) = violations.iter().find(|violation| violation.term == uncut.term) else {
            for run in &case.runs {
                assert_ne!(uncut.cuts_padding(&case, run), Some(false), "accepted, at {run:?}");
            }
            return one_more(&accepted);
        };
        let Why::Cut(example) = &violation.why else { return one_more(&unknown) };
        one_more(&refused);
        assert!(shows(&uncut, &case, &example.0), "{example:?} is no counterexample");
    });
    let (accepted, refused, unknown) = (accepted.get(), refused.get(), unknown.get());
    let all = accepted + refused + unknown;
    assert!(5 * accepted >= all && 5 * refused >= all, "{accepted} accepted, {refused} refused, {unknown} unknown");
    assert!(10 * unknown <= all, "{accepted} accepted, {refused} refused, {unknown} unknown");
}

/// Whether a value is cut at sizes of an example; of those that it does not speak of, some will do.
fn shows(uncut: &Uncut, case: &Case, example: &BTreeMap<Name, i64>) -> bool {
    let names: Vec<Name> = case.runs[0].iter().map(|(name, _)| *name).collect();
    let choices =
        names.iter().map(|name| example.get(name).map_or(vec![3, 1, 2, 0, -2, 4, -1, 5], |value| vec![*value]));
    let mut runs: Vec<Vec<Size>> = vec![Vec::new()];
    for (name, values) in names.iter().zip(choices) {
        let extended = |run: Vec<Size>| values.iter().map(move |value| [&run[..], &[(*name, *value)]].concat());
        runs = runs.into_iter().flat_map(extended).collect();
    }
    let allowed = |run: &Vec<Size>| {
        let facts = case.program.facts.iter().all(|fact| fact.eval(&value(run)) == Ok(true));
        facts && run.iter().all(|(_, value)| *value < 12)
    };
    let mut runs = runs.iter().filter(|run| allowed(run)).peekable();
    // Too large to be looked at.
    runs.peek().is_none() || runs.any(|run| uncut.cuts_padding(case, run) != Some(true))
}

/// Whether the elements from a position on, of a shape, have a pad type (`has_pad` in Sec. 6.2).
fn has_pad(ty: &PadType, elements: &[MaybePadding<Scalar>], shape: &[usize], run: &[Size]) -> bool {
    let all = |rows: &[MaybePadding<Scalar>]| rows.iter().all(|element| element.is_padding);
    match (ty, shape.split_first()) {
        (PadType::Scalar(padding), None) => !padding || all(elements),
        (PadType::Tensor(outermost), Some((&size, inner))) => {
            let width: usize = inner.iter().product();
            let number = |ix: &Ix| ix.eval(&value(run)).expect("amounts have values").clamp(0, size as i64) as usize;
            let rows =
                |from: usize, to: usize| &elements[from.min(size) * width..to.clamp(from.min(size), size) * width];
            let (left, right) = (number(&outermost.left), number(&outermost.right));
            let typed = |rows: &[MaybePadding<Scalar>], ty: &PadType| {
                width == 0 || rows.chunks(width).all(|row| has_pad(ty, row, inner, run))
            };
            let first = outermost.first.as_ref().is_none_or(|(l, ty)| typed(rows(left, left + number(l)), ty));
            let end = size - right;
            let last =
                outermost.last.as_ref().is_none_or(|(r, ty)| typed(rows(end.saturating_sub(number(r)), end), ty));
            all(rows(0, left)) && all(rows(end, size)) && first && last
        }
        _ => false,
    }
}

/// Thm. 6.1: a tensor has the padding that its pad type says.
#[test]
fn pad_types_are_sound() {
    let told = Cell::new(0);
    for_cases(100, 63, |case| {
        let types = case.program.bindings.iter().map(|binding| (binding.name, pad_type(&case.program, binding.term)));
        let types: Vec<(Name, PadType)> = types.collect();
        let mut all = case.program.clone();
        all.outputs = case.program.bindings.iter().map(|binding| (binding.name, binding.name)).collect();
        let mut compared = false;
        for run in &case.runs {
            let Some(tensors) = evaluated(case, &all, run) else { continue };
            compared = true;
            for ((name, ty), tensor) in types.iter().zip(&tensors) {
                assert!(has_pad(ty, tensor.data(), tensor.shape(), run), "{name} at {run:?} has not {ty}");
                told.set(told.get() + usize::from(ty.has_padding()));
            }
        }
        compared
    });
    assert!(told.get() >= 10, "only {} types told of padding", told.get());
}
