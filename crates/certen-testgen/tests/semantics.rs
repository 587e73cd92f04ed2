//! Type safety (TeIL, Lemma 4.3, Lemma 4.5, Thm. 4.6) over values or undefined, and the meanings of programs: an eager
//! oracle, the papers' own semantics and Core's evaluator agree. Programs are in all languages; what the model
//! language's paper says of its own is in `model.rs`.

mod common;

use std::cell::Cell;

use certen_core::domain::{Element, Exact, Field, Partial, Rational};
use certen_core::{Domain, ElemType, EvalError, Evaluator, Fault, Tensor};
use certen_dialects::algebra::{self, Typed};
use certen_figures::semantics::{Memory, Semantics};
use certen_syntax::Name;
use certen_testgen::{Sample, cases, oracle};
use common::{FUEL, checked, core, evaluate, for_samples, memory, named, typed};

fn run<D: Domain>(
    typed: &Typed,
    domain: &D,
    sample: &Sample,
    before: Memory<D::Value>,
) -> Result<Memory<D::Value>, EvalError> {
    Semantics::new(typed, domain, ElemType::F64, sample.sizes(), FUEL).run(before)
}

/// The right-hand side of every statement has a value at every index of its shape, in a memory of undefined values too.
#[test]
fn lemma_4_3_well_typed_expressions_have_values() {
    let domain = Partial(Rational);
    for_samples(cases(), 11, |sample| {
        let typed = checked(sample);
        let undefined = named(sample, &memory(sample, Exact::from));
        let mut semantics = Semantics::new(&typed, &domain, ElemType::F64, sample.sizes(), FUEL);
        for (stmt, (target, _)) in typed.program.stmts.iter().zip(&sample.stmts) {
            let mut indices = vec![Vec::new()];
            for size in sample.elements(*target).shape() {
                let longer = |index: Vec<i64>| (0..*size as i64).map(move |i| [index.as_slice(), &[i]].concat());
                indices = indices.into_iter().flat_map(longer).collect();
            }
            for index in indices {
                semantics.expr(&undefined, stmt.value, index).expect("every access is in bounds");
            }
        }
    });
}

/// A statement leaves memory with the same names and shapes; so does a program. Outputs are defined, but for quotients.
#[test]
fn lemma_4_5_and_theorem_4_6_programs_keep_the_domain_of_memory() {
    for_samples(cases(), 12, |sample| {
        let typed = checked(sample);
        let before = named(sample, &memory(sample, Exact::from));
        let shapes = |memory: &Memory<_>| {
            let mut all: Vec<(Name, Vec<usize>)> = memory
                .iter()
                .map(|(name, tensor): (_, &Tensor<Option<Exact>>)| (*name, tensor.shape().to_vec()))
                .collect();
            all.sort();
            all
        };
        let domain_before = shapes(&before);
        let after = run(&typed, &Partial(Rational), sample, before).expect("type safety");
        assert_eq!(shapes(&after), domain_before);
        for output in typed.outputs().iter().filter(|_| !sample.divides()) {
            assert!(after[output].data().iter().all(Option::is_some), "{output} is undefined");
        }
    });
}

/// The theorem's hypothesis matters: a memory whose domain is not that of the allocations is noticed.
#[test]
fn a_memory_of_another_domain_gives_an_error() {
    let typed = typed("alloc A : [2, n]\nalloc B : [n]\nB = proj 1 2 A\n");
    let tensor =
        |shape: &[usize]| Tensor::new(shape.to_vec(), vec![Some(Exact::from(1)); shape.iter().product()]).unwrap();
    let run = |a: &[usize], b: &[usize]| {
        let memory = Memory::from([("A".into(), tensor(a)), ("B".into(), tensor(b))]);
        Semantics::new(&typed, &Partial(Rational), ElemType::F64, [("n".into(), 3)], FUEL).run(memory)
    };
    assert!(run(&[2, 3], &[3]).is_ok());
    assert!(matches!(run(&[1, 3], &[3]), Err(EvalError::OutOfBounds(_))));
    assert!(matches!(run(&[2, 2], &[3]), Err(EvalError::OutOfBounds(_))));
    assert!(matches!(run(&[2, 3], &[2]), Err(EvalError::OutOfBounds(_))));
}

/// Whole memories, undefined values too.
#[test]
fn the_eager_oracle_agrees_with_fig_6_and_9() {
    let domain = Partial(Rational);
    for_samples(cases(), 13, |sample| {
        let before = memory(sample, Exact::from);
        let expected = oracle::run(sample, &domain, before.clone()).expect("values");
        let after = run(&checked(sample), &domain, sample, named(sample, &before)).expect("values");
        for (at, tensor) in expected.iter().enumerate() {
            assert_eq!(&after[&Name::new(sample.name(at))], tensor, "{}", sample.name(at));
        }
    });
}

/// Elaboration keeps the meaning: all outputs, whole and element by element. A run that divides by zero in a domain
/// without undefined values says nothing; there are few.
fn core_agrees<D: Domain>(seed: u8, domain: &D, element: impl Fn(&Sample, usize) -> Tensor<D::Value>) {
    let discarded = Cell::new(0);
    for_samples(cases(), seed, |sample| {
        let typed = checked(sample);
        let program = core(&typed);
        let given = |at: usize| (Name::new(sample.name(at)), element(sample, at));
        let before = (0..sample.tensors.len()).map(given).collect();
        let expected = match run(&typed, domain, sample, before) {
            Err(EvalError::Fault(Fault::Undefined)) if sample.divides() => {
                discarded.set(discarded.get() + 1);
                return;
            }
            expected => expected.expect("values"),
        };
        let inputs = || sample.inputs().into_iter().map(given).collect::<Vec<_>>();
        let outputs = evaluate(&program, domain, &sample.sizes(), inputs());
        assert_eq!(outputs.iter().map(|(name, _)| *name).collect::<Vec<_>>(), typed.outputs());
        let mut single = Evaluator::new(&program, domain, sample.sizes(), inputs()).expect("a call").with_fuel(FUEL);
        for (name, tensor) in &outputs {
            assert_eq!(tensor, &expected[name], "{name}");
            let last: Vec<i64> = tensor.shape().iter().map(|size| *size as i64 - 1).collect();
            let middle = last.iter().map(|last| last / 2).collect();
            for index in [vec![0; last.len()], middle, last] {
                assert_eq!(single.element(*name, &index).as_ref().ok(), tensor.get(&index), "{name}{index:?}");
            }
        }
    });
    assert!(discarded.get() <= 3 + cases() / 10, "{} of {} runs say nothing", discarded.get(), cases());
}

#[test]
fn core_agrees_with_the_figures_in_rationals() {
    core_agrees(14, &Rational, |sample, at| sample.elements(at).map(|value| Exact::from(*value)));
}

#[test]
fn core_agrees_with_the_figures_in_the_field() {
    core_agrees(15, &Field { seed: 1 }, |sample, at| sample.bits(at).map(|bits| Element::reduce(*bits)));
}

/// One element in eight is undefined; so is what is divided by zero.
#[test]
fn core_agrees_with_the_figures_with_undefined_values() {
    core_agrees(16, &Partial(Rational), |sample, at| {
        sample.bits(at).map(|bits| (bits % 8 != 0).then(|| Exact::from((bits >> 8) as i64 % 3)))
    });
}

/// A direct look at one element never needs the others.
#[test]
fn an_element_outside_its_tensor_is_an_error() {
    let typed = typed("alloc A : [2]\nalloc B : [2]\nB = A\n");
    let program = algebra::elaborate(&typed, "f".into(), ElemType::F64).unwrap();
    let a = Tensor::new(vec![2], vec![Exact::from(1), Exact::from(2)]).unwrap();
    let mut evaluator = Evaluator::new(&program, &Rational, [], [("A".into(), a)]).unwrap();
    assert_eq!(evaluator.element("B".into(), &[1]), Ok(Exact::from(2)));
    assert!(matches!(evaluator.element("B".into(), &[2]), Err(EvalError::OutOfBounds(_))));
}
