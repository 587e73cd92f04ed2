//! The theorems of the model language (Rink, "Modeling of languages for tensor manipulation", 2018) as properties of
//! generated programs.
//!
//! Without padding (Sec. 3): Cor. 1, Thm. 1, Cor. 2 and footnote 4 hold with undefined values as they do without. With
//! padding (Sec. 4): Lemma 3 to 6, Thm. 2 and 3 and Cor. 3, for vector lengths from 1 to 8. From Lemma 5 on these need
//! that no value is undefined, which the paper does not say: 0 * • is •, not 0. What is left with undefined values is
//! tested too: padding need not stay zero, but elements are the same. That typing is unique and syntax-directed is in
//! `typing.rs`, that rules are violated one by one in `ill_typed.rs`, and that the rest of the road means the same in
//! `semantics.rs`, `loops.rs`, `native.rs` and `translations.rs`.

mod common;

use std::cell::Cell;
use std::ops::RangeInclusive;

use certen_core::domain::{Element, Exact, Field, Partial, Rational};
use certen_core::{Domain, ElemType, EvalError, Fault, Literal, Tensor};
use certen_dialects::algebra::{ExprId, Stmt, Typed};
use certen_figures::semantics::{Memory, Semantics};
use certen_syntax::Name;
use certen_testgen::{Sample, Size, cases, oracle};
use common::{FUEL, checked, for_models};

/// The vector lengths. All of them take their time, and rationals more of it: some tests run on fewer programs.
const VECTORS: RangeInclusive<i64> = 1..=8;

const FIELD: Field = Field { seed: 4 };

/// At how many indices an expression is evaluated; if it has more, at some of them.
const INDICES: usize = 60;

fn small(sample: &Sample, at: usize) -> Tensor<Exact> {
    sample.elements(at).map(|value| Exact::from(*value))
}

fn random(sample: &Sample, at: usize) -> Tensor<Element> {
    sample.bits(at).map(|bits| Element::reduce(*bits))
}

/// Some are undefined, some zero.
fn perhaps(sample: &Sample, at: usize) -> Tensor<Option<Exact>> {
    sample.bits(at).map(|bits| (bits % 8 != 0).then(|| Exact::from((bits >> 8) as i64 % 4)))
}

fn store<V>(sample: &Sample, element: impl Fn(&Sample, usize) -> Tensor<V>) -> Memory<V> {
    (0..sample.tensors.len()).map(|at| (Name::new(sample.name(at)), element(sample, at))).collect()
}

fn semantics<'a, D: Domain>(typed: &'a Typed, domain: &'a D, sample: &Sample) -> Semantics<'a, D> {
    Semantics::new(typed, domain, ElemType::F64, sample.sizes(), FUEL)
}

fn exprs(typed: &Typed) -> Vec<ExprId> {
    (0..typed.program.stmts.len()).flat_map(|at| typed.program.exprs_of(at)).collect()
}

fn shape(typed: &Typed, sample: &Sample, id: ExprId) -> Vec<usize> {
    let sizes = sample.sizes();
    let value = |name: Name| sizes.iter().find(|(size, _)| *size == name).map(|(_, value)| *value);
    typed.shape(id).iter().map(|dim| dim.size.eval(&value).expect("sizes have values") as usize).collect()
}

/// Indices of a shape, the first and the last one among them.
fn indices(shape: &[usize]) -> impl Iterator<Item = Vec<i64>> {
    let count: usize = shape.iter().product();
    let at = move |mut place: usize| {
        let mut index: Vec<i64> = Vec::new();
        for size in shape.iter().rev() {
            index.insert(0, (place % size) as i64);
            place /= size;
        }
        index
    };
    let step = count.div_ceil(INDICES);
    (0..count).step_by(step).chain([count - 1]).map(at)
}

fn inside(index: &[i64], shape: &[usize]) -> bool {
    index.iter().zip(shape).all(|(i, size)| (0..*size as i64).contains(i))
}

/// Def. 7.
fn rounded(shape: &[usize], vector: i64) -> Vec<usize> {
    shape.iter().map(|size| size.next_multiple_of(vector as usize)).collect()
}

fn zero<D: Domain>(domain: &D) -> D::Value {
    domain.literal(Literal::whole(0, ElemType::F64), ElemType::F64).expect("zero")
}

/// A tensor with zeros after its elements in every dimension.
fn padded<V: Clone>(tensor: &Tensor<V>, zero: &V, vector: i64) -> Tensor<V> {
    let shape = rounded(tensor.shape(), vector);
    let mut places = vec![Vec::new()];
    for size in &shape {
        let longer = |index: Vec<i64>| (0..*size as i64).map(move |i| [index.as_slice(), &[i]].concat());
        places = places.into_iter().flat_map(longer).collect();
    }
    let data = places.iter().map(|index| tensor.get(index).unwrap_or(zero).clone()).collect();
    Tensor::new(shape, data).expect("as many elements as the shape says")
}

fn padded_store<V: Clone>(memory: &Memory<V>, zero: &V, vector: i64) -> Memory<V> {
    memory.iter().map(|(name, tensor)| (*name, padded(tensor, zero, vector))).collect()
}

/// A program of one of the statements.
fn only(typed: &Typed, stmt: &Stmt) -> Typed {
    let mut one = typed.clone();
    one.program.stmts = vec![stmt.clone()];
    one
}

fn is_undefined<T>(result: &Result<T, EvalError>) -> bool {
    matches!(result, Err(EvalError::Fault(Fault::Undefined)))
}

// Sec. 3: without padding.

/// In any store of the right domain, every expression of a well-formed program has a value at every index of its type,
/// and just at these: one index further, evaluation leaves the store.
#[test]
fn corollary_1_evaluation_is_well_defined() {
    let domain = Partial(Rational);
    for_models(cases(), 51, |sample| {
        let typed = checked(sample);
        let memory = store(sample, perhaps);
        for id in exprs(&typed) {
            let mut semantics = semantics(&typed, &domain, sample);
            let shape = shape(&typed, sample, id);
            for index in indices(&shape) {
                semantics.expr(&memory, id, index).expect("every access is in bounds");
            }
            for at in 0..shape.len() {
                let mut index = vec![0; shape.len()];
                index[at] = shape[at] as i64;
                let beyond = semantics.expr(&memory, id, index);
                assert!(matches!(beyond, Err(EvalError::OutOfBounds(_))), "{beyond:?}");
            }
        }
    });
}

/// Thm. 1: there is one final store, and its domain is that of the first. Cor. 2: no run leaves the store; where a
/// domain has no undefined values, only a division can fail.
#[test]
fn theorem_1_and_corollary_2_programs_evaluate() {
    fn evaluate<D: Domain>(sample: &Sample, domain: &D, element: fn(&Sample, usize) -> Tensor<D::Value>) {
        let typed = checked(sample);
        let run = || semantics(&typed, domain, sample).run(store(sample, element));
        let after = run();
        assert_eq!(after.as_ref().ok(), run().as_ref().ok());
        if is_undefined(&after) && sample.divides() {
            return;
        }
        let after = after.expect("the program evaluates");
        assert_eq!(after.len(), sample.tensors.len());
        for tensor in &sample.tensors {
            assert_eq!(after[&Name::new(tensor.name)].shape(), sample.concrete(&tensor.shape), "{}", tensor.name);
        }
    }
    for_models(cases(), 52, |sample| {
        evaluate(sample, &Rational, small);
        evaluate(sample, &FIELD, random);
        evaluate(sample, &Partial(Rational), perhaps);
    });
}

/// Footnote 4: a program of some of the statements, with the same declarations, is well-formed and evaluates, and its
/// expressions have the types that they had. A program is its first statements and then the rest (ev-seq).
#[test]
fn footnote_4_some_of_the_statements_evaluate() {
    let domain = Partial(Rational);
    for_models(cases(), 53, |sample| {
        let mut sample = sample.clone();
        // With markers, an output may lack its assignment.
        sample.tensors.iter_mut().for_each(|tensor| (tensor.input, tensor.output) = (false, false));
        let run = |part: &Sample, memory| semantics(&checked(part), &domain, part).run(memory).expect("it evaluates");
        let types = |part: &Sample| {
            let typed = checked(part);
            let stmt = |at| typed.program.exprs_of(at).map(|id| shape(&typed, part, id)).collect::<Vec<_>>();
            (0..part.stmts.len()).map(stmt).collect::<Vec<_>>()
        };
        let whole = types(&sample);
        let kept = |at: &usize| sample.seed >> at & 1 == 1;
        let mut some = sample.clone();
        some.stmts = (0..sample.stmts.len()).filter(kept).map(|at| sample.stmts[at].clone()).collect();
        let expected = (0..sample.stmts.len()).filter(kept).map(|at| whole[at].clone());
        assert_eq!(types(&some), expected.collect::<Vec<_>>());
        run(&some, store(&some, perhaps));

        let (mut first, mut rest) = (sample.clone(), sample.clone());
        rest.stmts = first.stmts.split_off((sample.seed >> 32) as usize % (sample.stmts.len() + 1));
        let before = store(&sample, perhaps);
        assert_eq!(run(&rest, run(&first, before.clone())), run(&sample, before));
    });
}

// Sec. 4: with padding.

/// The program in the rounded context ⌈Γ⌉ (Def. 7), at the sample's sizes.
fn in_rounded_context(sample: &Sample, vector: i64) -> Sample {
    let mut program = sample.clone();
    for tensor in &mut program.tensors {
        let sizes = rounded(&sample.concrete(&tensor.shape), vector);
        tensor.shape = sizes.into_iter().map(|size| Size::literal(size as i64)).collect();
    }
    program.wheres.clear();
    program.symbols.clear();
    program
}

#[test]
fn lemma_3_types_in_the_rounded_context() {
    for_models(cases(), 54, |sample| {
        let typed = checked(sample);
        for vector in VECTORS {
            let program = in_rounded_context(sample, vector);
            let there = checked(&program);
            assert_eq!(exprs(&there), exprs(&typed));
            for id in exprs(&typed) {
                let expected = rounded(&shape(&typed, sample, id), vector);
                assert_eq!(shape(&there, &program, id), expected, "M = {vector}");
            }
        }
    });
}

/// The first store agrees with the one without padding where that one has elements, and is zero elsewhere.
#[test]
fn lemma_4_the_padded_store() {
    let domain = Partial(Rational);
    for_models(cases(), 55, |sample| {
        let typed = checked(sample);
        for vector in VECTORS {
            let mut semantics = semantics(&typed, &domain, sample).padded(vector);
            for (name, tensor) in store(sample, perhaps) {
                let store = semantics.store(name, |at| Ok(tensor.data()[at].clone())).expect("a small store");
                assert_eq!(store, padded(&tensor, &zero(&domain), vector), "{name}, M = {vector}");
                assert_eq!(semantics.cropped(name, &store).as_ref(), Ok(&tensor), "{name}, M = {vector}");
            }
        }
    });
}

/// ev-pad-stmt evaluates in the rounded context: the same as a program of rounded sizes does without padding, and as the
/// eager oracle, which knows nothing of padding.
#[test]
fn evaluation_with_padding_is_evaluation_in_the_rounded_context() {
    let domain = Partial(FIELD);
    for_models(cases(), 56, |sample| {
        let typed = checked(sample);
        let before = store(sample, |sample, at| random(sample, at).map(|value| Some(*value)));
        for vector in [2, 3, 5] {
            let before = padded_store(&before, &zero(&domain), vector);
            let program = in_rounded_context(sample, vector);
            let expected = semantics(&checked(&program), &domain, &program).run(before.clone()).expect("it evaluates");
            let with_padding = semantics(&typed, &domain, sample).padded(vector).run(before.clone());
            assert_eq!(with_padding.as_ref(), Ok(&expected), "M = {vector}");
            if vector == 2 {
                let memory = (0..program.tensors.len()).map(|at| before[&Name::new(program.name(at))].clone());
                let after = oracle::run(&program, &domain, memory.collect()).expect("values");
                for (at, tensor) in after.iter().enumerate() {
                    assert_eq!(&expected[&Name::new(program.name(at))], tensor, "{}", program.name(at));
                }
            }
        }
    });
}

/// Lemma 5: in a store whose padding is zero, every expression is zero outside its type. Lemma 6: inside, it is what
/// it is without padding. An expression with an undefined part says nothing.
fn lemmas_5_and_6<D: Domain>(cases: u32, seed: u8, domain: &D, element: fn(&Sample, usize) -> Tensor<D::Value>) {
    let (kept, discarded) = (Cell::new(0u32), Cell::new(0u32));
    for_models(cases, seed, |sample| {
        let typed = checked(sample);
        let plain = store(sample, element);
        for vector in VECTORS {
            let memory = padded_store(&plain, &zero(domain), vector);
            for id in exprs(&typed) {
                let mut without = semantics(&typed, domain, sample);
                let mut with = semantics(&typed, domain, sample).padded(vector);
                let shape = shape(&typed, sample, id);
                for index in indices(&rounded(&shape, vector)) {
                    let value = with.expr(&memory, id, index.clone());
                    if is_undefined(&value) {
                        discarded.set(discarded.get() + 1);
                        continue;
                    }
                    kept.set(kept.get() + 1);
                    let expected =
                        if inside(&index, &shape) { without.expr(&plain, id, index.clone()) } else { Ok(zero(domain)) };
                    assert_eq!(value, expected, "M = {vector}, {index:?}");
                }
            }
        }
    });
    assert!(discarded.get() < kept.get() / 10, "{} discarded, {} kept", discarded.get(), kept.get());
}

#[test]
fn lemmas_5_and_6_in_rationals() {
    lemmas_5_and_6(cases() / 10, 57, &Rational, small);
}

#[test]
fn lemmas_5_and_6_in_the_field() {
    lemmas_5_and_6(cases() / 4, 58, &FIELD, random);
}

/// Thm. 2: padding is zero before and after every statement. Thm. 3: elements are those of the run without padding.
/// Cor. 3: no access is outside the padded store. All that for runs in which, without padding, no value is undefined.
fn theorems_2_and_3<D: Domain>(cases: u32, seed: u8, domain: &D, element: fn(&Sample, usize) -> Tensor<D::Value>) {
    let discarded = Cell::new(0);
    for_models(cases, seed, |sample| {
        let typed = checked(sample);
        let steps: Vec<Typed> = typed.program.stmts.iter().map(|stmt| only(&typed, stmt)).collect();
        let mut plain = vec![store(sample, element)];
        for step in &steps {
            let after = semantics(step, domain, sample).run(plain[plain.len() - 1].clone());
            if is_undefined(&after) && sample.divides() {
                discarded.set(discarded.get() + 1);
                return;
            }
            plain.push(after.expect("Thm. 1"));
        }
        for vector in VECTORS {
            let first = padded_store(&plain[0], &zero(domain), vector);
            let mut memory = first.clone();
            for (step, expected) in steps.iter().zip(&plain[1..]) {
                memory = semantics(step, domain, sample).padded(vector).run(memory).expect("Cor. 3");
                // Both theorems at once: the same elements, and zeros after them.
                assert_eq!(memory, padded_store(expected, &zero(domain), vector), "M = {vector}");
            }
            let (after, spills) = semantics(&typed, domain, sample).padded(vector).run_padded(first).expect("Cor. 3");
            assert_eq!(spills, []);
            for output in typed.outputs() {
                assert_eq!(after[output], memory[output], "{output}, M = {vector}");
            }
        }
    });
    // Most runs are kept; of a handful, three may not be.
    assert!(discarded.get() <= 3 + cases / 5, "{} of {cases} runs say nothing", discarded.get());
}

#[test]
fn theorems_2_and_3_in_rationals() {
    theorems_2_and_3(cases() / 10, 59, &Rational, small);
}

#[test]
fn theorems_2_and_3_in_the_field() {
    theorems_2_and_3(cases() / 4, 60, &FIELD, random);
}

/// With undefined values, Lemma 5 (ii) and what Thm. 2 says of the padding fail: 0 * • is •. Thm. 3 does not: elements
/// are the same as without padding. For • is all that can be in the padding beside 0, and where it is, it is inside too,
/// at every index that differs only in the coordinates that are padding. That holds of the store, and every operation
/// keeps it: each gives • for • but for a quotient's denominator, and in the padding a numerator is 0 or •. So a sum that
/// meets a • in the padding has met one before.
#[test]
fn undefined_values_break_theorem_2_but_not_theorem_3() {
    let domain = Partial(Rational);
    let spilt = Cell::new(0);
    for_models((cases() / 4).max(50), 61, |sample| {
        let typed = checked(sample);
        let before = store(sample, perhaps);
        let expected = semantics(&typed, &domain, sample).run(before.clone()).expect("Thm. 1");
        for vector in VECTORS {
            let memory = padded_store(&before, &zero(&domain), vector);
            let mut semantics = semantics(&typed, &domain, sample).padded(vector);
            let after = semantics.run(memory).expect("Cor. 3");
            for (name, found) in &after {
                assert_eq!(semantics.cropped(*name, found).as_ref(), Ok(&expected[name]), "{name}, M = {vector}");
                let shape = expected[name].shape();
                for index in indices(found.shape()).filter(|index| !inside(index, shape)) {
                    let Some(None) = found.get(&index) else {
                        assert_eq!(found.get(&index), Some(&zero(&domain)), "{name}{index:?}, M = {vector}");
                        continue;
                    };
                    spilt.set(spilt.get() + 1);
                    for other in [0, 1, 2] {
                        let inner = index.iter().zip(shape).map(|(i, size)| {
                            let size = *size as i64;
                            if *i < size { *i } else { other % size }
                        });
                        assert_eq!(expected[name].get(&inner.collect::<Vec<_>>()), Some(&None), "{name}{index:?}");
                    }
                }
            }
        }
    });
    // Thm. 2 does need its condition.
    assert!(spilt.get() > cases() / 4, "only {} places", spilt.get());
}
