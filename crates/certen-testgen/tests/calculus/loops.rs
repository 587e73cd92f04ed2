//! Loops against the evaluator.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use certen_core::domain::{Element, Exact, Field, Machine, Partial, Rational, Scalar};
use certen_core::{Domain, ElemType, EvalError, Fault, Tensor, padding};
use certen_loops::{Event, Interpreter, LoopProgram, in_place, parallelise, parse_loops, verify};
use certen_syntax::{Name, Sources};
use certen_testgen::calculus::{Case, Size};

use super::{FUEL, evaluated, for_cases, lowered};

/// Whether the loops compute what the evaluator says, at every size; false if one of them could not say.
fn agree<D: Domain>(
    case: &Case,
    domain: &D,
    inputs: impl Fn(&Case, &[Size]) -> Vec<(Name, Tensor<D::Value>)>,
    observe: impl Fn() -> Box<dyn FnMut(Event)>,
) -> bool {
    lowered(case).is_some_and(|loops| loops_agree(case, &loops, domain, inputs, observe))
}

fn loops_agree<D: Domain>(
    case: &Case,
    loops: &LoopProgram,
    domain: &D,
    inputs: impl Fn(&Case, &[Size]) -> Vec<(Name, Tensor<D::Value>)>,
    observe: impl Fn() -> Box<dyn FnMut(Event)>,
) -> bool {
    let mut compared = 0;
    for run in &case.runs {
        let Some(expected) = evaluated(case, run, domain, inputs(case, run)) else { continue };
        let interpreter = Interpreter::new(loops, domain, run.iter().copied(), inputs(case, run));
        let interpreter = interpreter.expect("a call of the program").with_fuel(FUEL[1]);
        match interpreter.run_observed(&mut *observe()) {
            Err(EvalError::Fuel | EvalError::Fault(Fault::Unsupported(_) | Fault::TooLarge)) => {}
            Err(error) => panic!("{error} at {run:?}\n{loops}"),
            Ok(found) => {
                compared += 1;
                // Compared as they are shown, so that the two zeros differ and NaNs do not.
                let shown = |outputs: &[(Name, Tensor<D::Value>)]| {
                    outputs.iter().map(|(_, tensor)| format!("{tensor:?}\n")).collect::<String>()
                };
                assert_eq!(shown(&found), shown(&expected), "at {run:?}\n{loops}");
            }
        }
    }
    compared > 0
}

fn unobserved() -> Box<dyn FnMut(Event)> {
    Box::new(|_| {})
}

/// Fails where a plain assignment writes what one has written (Sec. 4.3.6 in the version of Sec. 6.5.3). Other stores
/// combine with a value that must be there: the interpreter sees to that, and that every store is inside (Sec. 4.2).
fn once() -> Box<dyn FnMut(Event)> {
    let mut written: HashMap<usize, HashSet<usize>> = HashMap::new();
    Box::new(move |event| match event {
        Event::Alloc(buffer) => drop(written.remove(&buffer)),
        // The next step of an iteration writes anew.
        Event::Swap(a, b) => [a, b].iter().for_each(|buffer| drop(written.remove(buffer))),
        Event::Store { combined: true, .. } | Event::Loop { .. } | Event::Branch { .. } => {}
        Event::Store { name, buffer, position, .. } => {
            let new = written.entry(buffer).or_default().insert(position);
            assert!(new, "{name} is written twice at position {position}");
        }
    })
}

/// Memory that nothing was written to has no value here: a read of it is an error.
#[test]
fn loops_agree_in_the_machines_numbers_and_store_each_element_once() {
    for_cases(100, 51, |case| agree(case, &Machine, |case, run| case.inputs(run, Scalar::from_i64), once));
}

/// Loops compute whole tensors, the evaluator only what is read: what divides by zero must be a value, not a fault.
#[test]
fn loops_agree_in_the_field() {
    let value = |value: i64, elem: ElemType| {
        Some(if elem == ElemType::Bool {
            Element::Bool(value > 0)
        } else {
            Element::reduce((value * 7919 + 100_000) as u64)
        })
    };
    for_cases(100, 52, |case| {
        agree(case, &Partial(Field { seed: 3 }), |case, run| case.inputs(run, value), unobserved)
    });
}

/// States of iterations that are updated in place have the values that they have apart.
#[test]
fn loops_with_states_in_place_agree() {
    let updated = Cell::new(0);
    for_cases(100, 53, |case| {
        let Some(apart) = lowered(case) else { return false };
        let loops = in_place(apart.clone());
        updated.set(updated.get() + u32::from(loops.body != apart.body));
        let complaints = verify(&loops);
        assert!(complaints.is_empty(), "{complaints:?}\n{loops}");
        loops_agree(case, &loops, &Machine, |case, run| case.inputs(run, Scalar::from_i64), unobserved)
    });
    assert!(updated.get() >= 5, "only {} programs have states that are updated in place", updated.get());
}

fn exact(value: i64, elem: ElemType) -> Exact {
    if elem == ElemType::Bool { Exact::Bool(value > 0) } else { Exact::from(value) }
}

#[test]
fn loops_agree_in_rationals() {
    let value = |value, elem| Some(exact(value, elem));
    for_cases(100, 54, |case| agree(case, &Partial(Rational), |case, run| case.inputs(run, value), unobserved));
}

/// Some elements of the inputs are undefined: what depends on them is, and nothing else.
#[test]
fn loops_agree_with_undefined_values() {
    let value = |value: i64, elem| (value % 5 != 0).then(|| exact(value, elem));
    for_cases(50, 55, |case| agree(case, &Partial(Rational), |case, run| case.inputs(run, value), unobserved));
}

/// The interpreter runs parallel loops in an order that nobody would rely on.
#[test]
fn parallel_loops_agree() {
    let inputs = |case: &Case, run: &[Size]| case.inputs(run, Scalar::from_i64);
    let marked = Cell::new(0);
    for_cases(50, 59, |case| {
        let Some(loops) = lowered(case) else { return false };
        let loops = parallelise(loops, |_| true);
        marked.set(marked.get() + u32::from(loops.to_string().contains("parallel for")));
        let complaints = verify(&loops);
        assert!(complaints.is_empty(), "{complaints:?}\n{loops}");
        loops_agree(case, &loops, &Machine, inputs, once)
    });
    assert!(marked.get() >= 5, "only {} programs have parallel loops", marked.get());
}

/// Numbers in place of sizes change nothing: loops of the program at its sizes compute what those with symbolic sizes
/// do, bit for bit. Truncations stay legal.
#[test]
fn programs_at_given_sizes_agree() {
    for_cases(50, 60, |case| {
        let Some(symbolic) = lowered(case) else { return false };
        let mut compared = false;
        for run in &case.runs {
            let program = case.program.at_sizes(&run.iter().copied().collect());
            let program = program.unwrap_or_else(|error| panic!("{error} at {run:?}\n{}", case.program));
            program.check().unwrap_or_else(|error| panic!("{error} at {run:?}\n{program}"));
            assert!(program.sizes.is_empty() && padding::check(&program).is_empty(), "at {run:?}\n{program}");
            let Some(fixed) = lowered(&Case { program, runs: vec![Vec::new()] }) else { continue };
            let results = |loops: &LoopProgram, run: &[Size], inputs| {
                let interpreter = Interpreter::new(loops, &Machine, run.iter().copied(), inputs);
                match interpreter.expect("a call of the program").with_fuel(FUEL[1]).run() {
                    Err(EvalError::Fuel) => None,
                    result => Some(format!("{result:?}")),
                }
            };
            // Numbers that sums round, and infinities.
            for inputs in [case.inputs(run, thirds), case.planted(run, 3)] {
                let (expected, found) = (results(&symbolic, run, inputs.clone()), results(&fixed, &[], inputs));
                let both = expected.is_some() && found.is_some();
                assert!(!both || found == expected, "at {run:?}\n{symbolic}\n{fixed}\n{expected:?}\n{found:?}");
                compared |= both;
            }
        }
        compared
    });
}

/// A number of which few sums are exact.
fn thirds(value: i64, elem: ElemType) -> Scalar {
    if elem.is_float() { Scalar::from_f64(value as f64 / 3.0, elem) } else { Scalar::from_i64(value, elem) }
}

#[test]
fn loops_agree_with_infinities_and_nans() {
    for_cases(50, 56, |case| agree(case, &Machine, |case, run| case.planted(run, 3), unobserved));
}

#[test]
fn printing_loops_and_reading_them_gives_the_same_loops() {
    for_cases(30, 53, |case| {
        let Some(loops) = lowered(case) else { return false };
        let printed = loops.to_string();
        let mut sources = Sources::new();
        let file = sources.add("generated.loops", printed.as_str());
        let again = parse_loops(&sources, file).unwrap_or_else(|errors| panic!("{printed}\n{errors:?}"));
        assert_eq!(again.to_string(), printed);
        assert!(verify(&again).is_empty(), "{printed}");
        true
    });
}
