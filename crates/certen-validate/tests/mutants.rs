//! Mutation: of a thousand nests with one place changed, every one that computes something else is refused, by the verifier
//! or by the comparison with the meaning.
//!
//! What neither refuses is run beside the original by brute force: at all sizes up to 7, or many of them, in the field and
//! in floats with other inputs than the comparison's, with parallel loops in two orders. If that finds no difference, the
//! mutant is equivalent; if it does, the comparison has missed it, which is a bug.

#![allow(clippy::print_stdout)]

mod common;

use std::collections::BTreeMap;

use certen_core::domain::{Element, Field, Partial, Scalar, splitmix};
use certen_core::{Domain, ElemType, EvalError, Fault, Tensor};
use certen_loops::{Interpreter, LoopProgram, Mode, Stmt, for_each_mut, verify};
use certen_syntax::Name;
use certen_validate::{Outcome, validate};
use common::mutate::{Operator, mutants};
use common::{Case, by_hand, programs};

/// How many mutants are tried.
const MUTANTS: usize = 1_000;

/// Programs whose comparison takes more steps are left to other tests.
const MOST_STEPS: u64 = 25_000;

/// The base programs: as many of these as are small, one from each part of the list.
const PROGRAMS: usize = 48;

fn bases() -> Vec<Case> {
    let small = |case: &Case| match validate(&case.meaning, &case.nest, &case.trial()) {
        Outcome::Agrees(evidence) => evidence.steps <= MOST_STEPS && evidence.elements() >= 20,
        _ => false,
    };
    let all: Vec<Case> = programs("examples").into_iter().chain(programs("tests/programs")).filter(small).collect();
    let count = all.len();
    let chosen = |at: &usize| at * PROGRAMS / count != (at + 1) * PROGRAMS / count || count <= PROGRAMS;
    let spread = all.into_iter().enumerate().filter(|(at, _)| chosen(at)).map(|(_, case)| case);
    by_hand().into_iter().chain(spread).collect()
}

#[derive(Default)]
struct Row {
    mutants: usize,
    verifier: usize,
    comparison: usize,
    equivalent: usize,
}

#[test]
fn every_mutant_that_differs_is_caught() {
    let cases = bases();
    let mut pool: BTreeMap<Operator, Vec<(usize, LoopProgram)>> = BTreeMap::new();
    for (at, case) in cases.iter().enumerate() {
        for (operator, mutant) in mutants(&case.nest) {
            pool.entry(operator).or_default().push((at, mutant));
        }
    }
    // As many of each operator, as far as there are, in an order fixed by the seed.
    let mut chosen: Vec<(Operator, usize, LoopProgram)> = Vec::new();
    let mut order: Vec<_> = pool.into_iter().collect();
    order.sort_by_key(|(_, mutants)| mutants.len());
    for (done, (operator, mut list)) in order.into_iter().enumerate() {
        let share = (MUTANTS - chosen.len()).div_ceil(14 - done);
        let mut number = 0;
        list.sort_by_cached_key(|_| {
            number += 1;
            splitmix(number)
        });
        chosen.extend(list.into_iter().take(share).map(|(at, mutant)| (operator, at, mutant)));
    }
    let (mut table, mut missed) = (BTreeMap::<Operator, Row>::new(), Vec::new());
    for (operator, at, mutant) in &chosen {
        let case = &cases[*at];
        let row = table.entry(*operator).or_default();
        row.mutants += 1;
        if !verify(mutant).is_empty() {
            row.verifier += 1;
            continue;
        }
        match validate(&case.meaning, mutant, &case.trial()) {
            Outcome::Differs(_) => row.comparison += 1,
            Outcome::Agrees(_) | Outcome::Nothing(_) => match differs(case, mutant) {
                None => row.equivalent += 1,
                Some(where_) => {
                    missed.push(format!("{operator:?} of {}: {where_}\n{}\n{mutant}", case.name, case.nest))
                }
            },
        }
    }
    println!("{} programs, {} mutants", cases.len(), chosen.len());
    println!("{:20} {:>8} {:>8} {:>10} {:>10}", "operator", "mutants", "verifier", "comparison", "equivalent");
    for (operator, Row { mutants, verifier, comparison, equivalent }) in &table {
        println!("{:20} {mutants:8} {verifier:8} {comparison:10} {equivalent:10}", format!("{operator:?}"));
    }
    assert!(missed.is_empty(), "{} missed:\n{}", missed.len(), missed.join("\n"));
    assert!(chosen.len() >= MUTANTS, "only {} mutants", chosen.len());
}

/// Where a mutant differs from the original, by brute force.
fn differs(case: &Case, mutant: &LoopProgram) -> Option<String> {
    let sizes = &case.meaning.sizes;
    let all = 8u64.saturating_pow(sizes.len() as u32);
    let rows: Vec<u64> = match all {
        ..=64 => (0..all).collect(),
        _ => (0..96).map(|at| splitmix(at ^ 0xabcd) % all).collect(),
    };
    let serial = in_order(mutant);
    for number in rows {
        let size = |at: usize| (number / 8u64.pow(at as u32) % 8) as i64;
        let row: Vec<(Name, i64)> = sizes.iter().enumerate().map(|(at, name)| (*name, size(at))).collect();
        let value = |name: Name| row.iter().find(|(known, _)| *known == name).map(|(_, size)| *size);
        if !case.nest.facts.iter().all(|fact| fact.eval(&value) == Ok(true)) {
            continue;
        }
        for other in [mutant, &serial] {
            let seed = number.wrapping_mul(77) + 5;
            let bits = |input: u64, at: u64| splitmix(splitmix(seed).wrapping_add(input << 32).wrapping_add(at));
            let field = |input: u64, at: u64, elem: ElemType| match elem {
                ElemType::Bool => Some(Element::Bool(bits(input, at) & 8 == 8)),
                _ => Some(Element::reduce(bits(input, at))),
            };
            let small = |input: u64, at: u64, elem: ElemType| match elem {
                ElemType::Bool => Some(Element::Bool(bits(input, at) & 8 == 8)),
                _ => Some(Element::from((bits(input, at) % 7) as i64 - 3)),
            };
            let exact = Partial(Field { seed });
            let same = |a: &Option<Element>, b: &Option<Element>| a.is_none() || a == b;
            let found = apart(case, other, &row, &exact, &field, &same)
                .or_else(|| apart(case, other, &row, &exact, &small, &same))
                .or_else(|| {
                    let planted = |input: u64, at: u64, elem: ElemType| match (elem, bits(input, at) % 11) {
                        (ElemType::F32 | ElemType::F64, 0) => Scalar::from_f64(f64::NAN, elem),
                        (ElemType::F32 | ElemType::F64, 1) => Scalar::from_f64(f64::INFINITY, elem),
                        (_, b) => Scalar::from_i64(b as i64 - 4, elem),
                    };
                    apart(case, other, &row, &certen_core::domain::Machine, &planted, &near)
                });
            if found.is_some() {
                return found;
            }
        }
    }
    None
}

/// Floats of the same kind, and about equal.
fn near(a: &Scalar, b: &Scalar) -> bool {
    let (x, y) = (a.to_f64(), b.to_f64());
    a.same_bits(b) || x == y || (a.elem().is_float() && (x - y).abs() <= 1e-4 * (1.0 + x.abs()))
}

fn apart<D: Domain>(
    case: &Case,
    mutant: &LoopProgram,
    row: &[(Name, i64)],
    domain: &D,
    given: &dyn Fn(u64, u64, ElemType) -> D::Value,
    same: &dyn Fn(&D::Value, &D::Value) -> bool,
) -> Option<String> {
    let value = |name: Name| row.iter().find(|(known, _)| *known == name).map(|(_, size)| *size);
    let mut inputs = Vec::new();
    for (number, input) in case.nest.inputs.iter().enumerate() {
        let shape = input.ty.shape_at(&value).ok()?;
        let element = |at: usize| Ok::<_, ()>(given(number as u64, at as u64, input.ty.elem));
        inputs.push((input.name, Tensor::from_fn(shape, element)?.ok()?));
    }
    let run = |nest: &LoopProgram| {
        let interpreter = Interpreter::new(nest, domain, row.iter().copied(), inputs.clone())?;
        interpreter.with_fuel(3_000_000).run()
    };
    let (original, found) = (run(&case.nest).ok()?, run(mutant));
    let found = match found {
        Ok(found) => found,
        // Garbage that reaches no output, as the field has shown.
        Err(EvalError::Fault(Fault::Undefined)) => return None,
        Err(error) => return Some(format!("{error} at {row:?}")),
    };
    for ((name, a), (_, b)) in original.iter().zip(&found) {
        if let Some(at) = a.data().iter().zip(b.data()).position(|(a, b)| !same(a, b)) {
            return Some(format!("{name} at {at}: {:?} and {:?} at {row:?}", a.data()[at], b.data()[at]));
        }
    }
    None
}

/// The nest with all loops in order.
fn in_order(nest: &LoopProgram) -> LoopProgram {
    let mut nest = nest.clone();
    for_each_mut(&mut nest.body, |stmt| {
        if let Stmt::For { mode, .. } = stmt {
            *mode = Mode::Serial;
        }
    });
    nest
}
