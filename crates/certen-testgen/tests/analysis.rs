//! The analyses of the model language's Sec. 5 keep the meaning of programs: leaving dead statements out, computing
//! common subexpressions once, and writing in place, in any order.
//!
//! Generated programs hardly repeat themselves, so each is also tested with earlier right-hand sides written into later
//! ones, where what they read may have been redefined.

mod common;

use std::cell::Cell;
use std::fmt::Debug;

use certen_core::domain::{Element, Exact, Fault, Field, Machine, Partial, Rational, Scalar};
use certen_core::{Binary, Domain, ElemType, EvalError, Evaluator, Literal, Program, Tensor, Unary};
use certen_dialects::algebra::{Arith, Typed};
use certen_figures::in_place::in_place;
use certen_figures::semantics::{Memory, Semantics};
use certen_syntax::Name;
use certen_testgen::{Expr, Sample, cases};
use common::{FUEL, checked, core, for_samples, memory, named, shared_core};

/// Orders to write elements in: row by row, backwards, and shuffled.
const ORDERS: [fn(usize) -> Vec<usize>; 3] = [|n| (0..n).collect(), |n| (0..n).rev().collect(), shuffled];

fn shuffled(n: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|&at| (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17));
    order
}

/// The program with earlier right-hand sides added to later ones of the same shape, and without markers, so that
/// everything that this reads has a value.
fn repeating(sample: &Sample) -> Sample {
    let mut repeating = sample.clone();
    for tensor in &mut repeating.tensors {
        (tensor.input, tensor.output) = (false, false);
    }
    for at in 1..repeating.stmts.len() {
        let shape = |at: usize| &sample.tensors[sample.stmts[at].0].shape;
        let earlier = (0..at).filter(|&from| sample.same(shape(from), shape(at)));
        for from in earlier.take(2) {
            let (old, new) = (&sample.stmts[from].1, repeating.stmts[at].1.clone());
            let paren = |expr: Expr| Box::new(Expr::Paren(Box::new(expr)));
            let (old, new) = (paren(old.clone()), paren(new));
            repeating.stmts[at].1 =
                if from % 2 == 0 { Expr::Elem(Arith::Add, old, new) } else { Expr::Elem(Arith::Add, new, old) };
        }
    }
    repeating
}

/// Tests with a program as it is generated, and with one that repeats itself.
fn for_both(cases: u32, seed: u8, test: impl Fn(&Sample)) {
    for_samples(cases, seed, |sample| {
        test(sample);
        test(&repeating(sample));
    });
}

fn semantics<'a, D: Domain>(typed: &'a Typed, domain: &'a D, sample: &Sample) -> Semantics<'a, D> {
    Semantics::new(typed, domain, ElemType::F64, sample.sizes(), FUEL)
}

/// Memory full of values: the sample's bits, made into elements.
fn full<V: Clone>(sample: &Sample, element: impl Fn(u64) -> V + Copy) -> Memory<V> {
    (0..sample.tensors.len())
        .map(|at| (Name::new(sample.name(at)), sample.bits(at).map(|bits| element(*bits))))
        .collect()
}

/// An element of the field; quotients by zero are undefined.
fn field(bits: u64) -> Option<Element> {
    Some(Element::reduce(bits))
}

fn exact(bits: u64) -> Option<Exact> {
    Some(Exact::from((bits % 7) as i64 - 3))
}

/// A number with a fraction that rounds in most operations, of either sign and of a few magnitudes.
fn float(bits: u64) -> Scalar {
    let value = ((bits >> 11) as f64 / (1u64 << 52) as f64 - 1.0) * [1.0, 0.1, 30.0][(bits % 3) as usize];
    Scalar::from_f64(value, ElemType::F64)
}

/// Whether elements are the same bit for bit: their texts tell -0 from 0, and one NaN from none.
fn same_bits<V: Debug>(a: &Tensor<V>, b: &Tensor<V>) -> bool {
    a.shape() == b.shape() && a.data().iter().zip(b.data()).all(|(a, b)| format!("{a:?}") == format!("{b:?}"))
}

/// Values that a run of f64 cannot finish with, for instance because it overflows to infinity, are values too; a run
/// that gives out is the only thing that is passed over.
fn finished<T>(result: Result<T, EvalError>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(EvalError::Fuel) => None,
        Err(error) => panic!("{error}"),
    }
}

fn in_place_keeps_memory<D: Domain>(cases: u32, seed: u8, domain: &D, element: impl Fn(u64) -> D::Value + Copy) {
    for_both(cases, seed, |sample| {
        let typed = checked(sample);
        let before = full(sample, element);
        let Some(expected) = finished(semantics(&typed, domain, sample).run(before.clone())) else { return };
        for order in ORDERS {
            let after = semantics(&typed, domain, sample).run_in_place(before.clone(), order).expect("values");
            for (name, tensor) in &expected {
                assert!(same_bits(&after[name], tensor), "{name}");
            }
        }
    });
}

#[test]
fn writing_in_place_keeps_memory_in_the_field() {
    in_place_keeps_memory(cases(), 71, &Partial(Field { seed: 1 }), field);
}

#[test]
fn writing_in_place_keeps_memory_in_rationals() {
    in_place_keeps_memory(cases() / 5, 72, &Partial(Rational), exact);
}

#[test]
fn writing_in_place_keeps_memory_bit_for_bit() {
    in_place_keeps_memory(cases(), 73, &Machine, float);
}

/// Undefined values too: nothing is read that was not read before.
#[test]
fn writing_in_place_keeps_what_is_undefined() {
    let domain = Partial(Rational);
    for_samples(cases(), 74, |sample| {
        let typed = checked(sample);
        let before = named(sample, &memory(sample, Exact::from));
        let expected = semantics(&typed, &domain, sample).run(before.clone()).expect("values");
        let after = semantics(&typed, &domain, sample).run_in_place(before, shuffled).expect("values");
        assert_eq!(after, expected);
    });
}

/// What is called in place is so by its reads, and the other statements are not refused for nothing: for most of them
/// there is an order in which writing directly gives another result. (Those that read the written element alone, but
/// inside a reduction, have none; nor have those at sizes where the elements happen to be the same.)
#[test]
fn most_statements_that_are_not_in_place_cannot_be_written_directly() {
    let domain = Partial(Field { seed: 2 });
    let (allowed, refused, different) = (Cell::new(0), Cell::new(0), Cell::new(0));
    for_samples(cases().max(500), 75, |sample| {
        let typed = checked(sample);
        let mut memory = full(sample, field);
        for at in 0..typed.program.stmts.len() {
            let before = memory.clone();
            let mut semantics = semantics(&typed, &domain, sample);
            semantics.write_at_once(&mut memory, at).expect("values");
            let target = typed.program.stmts[at].target;
            if !sample.stmts[at].1.reads().iter().any(|&read| target == Name::new(sample.name(read))) {
                continue;
            }
            // An element alone has no order.
            let differs = |order: fn(usize) -> Vec<usize>| {
                let mut direct = before.clone();
                let mut again = self::semantics(&typed, &domain, sample);
                again.write_directly(&mut direct, at, order).expect("values");
                direct[&target] != memory[&target]
            };
            if in_place(&typed, at).is_allowed() {
                allowed.set(allowed.get() + 1);
                assert!(!ORDERS.into_iter().any(differs));
            } else if memory[&target].data().len() > 1 {
                refused.set(refused.get() + 1);
                different.set(different.get() + usize::from(ORDERS.into_iter().any(differs)));
            }
        }
    });
    let (allowed, refused, different) = (allowed.get(), refused.get(), different.get());
    assert!(allowed > 20 && refused > 20 && 2 * different > refused, "{allowed}, {refused}, {different}");
}

/// Outputs of the program in Core, which shares and leaves out, as those of all statements in order.
fn core_keeps_outputs<D: Domain>(cases: u32, seed: u8, domain: &D, element: impl Fn(u64) -> D::Value + Copy) {
    for_both(cases, seed, |sample| {
        let typed = checked(sample);
        let before = full(sample, element);
        let Some(expected) = finished(semantics(&typed, domain, sample).run(before.clone())) else { return };
        let live = semantics(&typed, domain, sample).run_padded(before.clone()).expect("values").0;
        let program = shared_core(&typed);
        let inputs = typed.inputs().iter().map(|name| (*name, before[name].clone()));
        let evaluator = Evaluator::new(&program, domain, sample.sizes(), inputs).expect("a call").with_fuel(FUEL);
        let outputs = evaluator.run().expect("values");
        assert_eq!(outputs.len(), typed.outputs().len());
        for (name, tensor) in &outputs {
            assert!(same_bits(&live[name], &expected[name]), "{name} without dead statements");
            assert!(same_bits(tensor, &expected[name]), "{name} in\n{program}");
        }
    });
}

#[test]
fn sharing_and_dead_statements_keep_outputs_in_the_field() {
    core_keeps_outputs(cases(), 76, &Partial(Field { seed: 3 }), field);
}

#[test]
fn sharing_and_dead_statements_keep_outputs_in_rationals() {
    core_keeps_outputs(cases() / 5, 77, &Partial(Rational), exact);
}

#[test]
fn sharing_and_dead_statements_keep_outputs_bit_for_bit() {
    core_keeps_outputs(cases(), 78, &Machine, float);
}

/// A domain that counts the operations that are made in it.
struct Counting<D> {
    domain: D,
    operations: Cell<u64>,
}

impl<D: Domain> Domain for Counting<D> {
    type Value = D::Value;

    fn literal(&self, literal: Literal, elem: ElemType) -> Result<D::Value, Fault> {
        self.domain.literal(literal, elem)
    }

    fn index(&self, index: i64, elem: ElemType) -> Result<D::Value, Fault> {
        self.domain.index(index, elem)
    }

    fn unary(&self, op: Unary, elem: ElemType, a: &D::Value) -> Result<D::Value, Fault> {
        self.domain.unary(op, elem, a)
    }

    fn binary(&self, op: Binary, elem: ElemType, a: &D::Value, b: &D::Value) -> Result<D::Value, Fault> {
        self.operations.set(self.operations.get() + 1);
        self.domain.binary(op, elem, a, b)
    }

    fn choose(&self, cond: &D::Value, a: &D::Value, b: &D::Value) -> Result<D::Value, Fault> {
        self.domain.choose(cond, a, b)
    }

    fn cast(&self, from: ElemType, to: ElemType, a: &D::Value) -> Result<D::Value, Fault> {
        self.domain.cast(from, to, a)
    }
}

/// Sharing never makes more operations than the live statements have, and often fewer.
#[test]
fn sharing_never_costs() {
    let (programs, fewer) = (Cell::new(0), Cell::new(0));
    for_both(cases(), 79, |sample| {
        let typed = checked(sample);
        let before = full(sample, field);
        let counted = || Counting { domain: Partial(Field { seed: 4 }), operations: Cell::new(0) };
        let (plain, shared) = (counted(), counted());
        // Both by the evaluator, which takes the base of a power more than once.
        let run = |program: &Program, domain: &Counting<_>| {
            let inputs = typed.inputs().iter().map(|name| (*name, before[name].clone()));
            let evaluator = Evaluator::new(program, domain, sample.sizes(), inputs).expect("a call");
            finished(evaluator.with_fuel(FUEL).run())
        };
        let program = shared_core(&typed);
        if run(&core(&typed), &plain).is_none() || run(&program, &shared).is_none() {
            return;
        }
        let (plain, shared) = (plain.operations.get(), shared.operations.get());
        assert!(shared <= plain, "{shared} operations instead of {plain} in\n{program}");
        programs.set(programs.get() + 1);
        fewer.set(fewer.get() + usize::from(shared < plain));
    });
    let (programs, fewer) = (programs.get(), fewer.get());
    assert!(10 * fewer > programs, "{fewer} of {programs}");
}
