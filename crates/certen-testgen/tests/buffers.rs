//! Passes over storage change where things are kept and nothing else: generated programs, before and after.
//!
//! The operations and their order stay as they are, so that values agree bit for bit in the machine's numbers, with
//! infinities and NaNs among the inputs, and in the prime field. Memory never grows where it is shared; padding is zero
//! after every nest.

mod common;
#[path = "../../certen-loops/tests/common/mod.rs"]
mod padding;

use std::cell::Cell;

use certen_core::domain::{Element, Field, Machine, Partial};
use certen_core::{Domain, ElemType, EvalError, Fault, Tensor};
use certen_loops::{FpMode, Interpreter, Lend, LoopProgram, Stmt, lower, pad, peak_bytes, reuse, statements, verify};
use certen_syntax::Name;
use certen_testgen::calculus::{Case, Size, Truncations};
use common::{checked, core, for_bytes, for_samples};
use padding::watched;

const FUEL: u64 = 1_000_000;

/// `CERTEN_CASES`, else 300.
fn cases() -> u32 {
    if std::env::var_os("CERTEN_CASES").is_some() { certen_testgen::cases() } else { 300 }
}

/// A case with its loops, as they were lowered, if they could be. Every other program has only its last output, so that
/// there is more that can share memory.
fn case(bytes: &[u8]) -> (Case, Option<LoopProgram>) {
    let mut case = Case::new(bytes, "generated", Truncations::Legal);
    let last = case.program.bindings.last().map(|binding| binding.name);
    if bytes.first().is_some_and(|byte| byte % 2 == 1)
        && let Some(last) = last
    {
        case.program.outputs = vec![(last, last)];
    }
    let loops = lower(&case.program, FpMode::Relaxed).ok().filter(|loops| verify(loops).is_empty());
    (case, loops)
}

fn for_cases(seed: u8, test: impl Fn(&Case, &LoopProgram) -> bool) {
    let done = Cell::new(0);
    let show = |bytes: &[u8]| {
        let (case, loops) = case(bytes);
        format!("{:?}\n{}", case.runs, loops.map(|loops| loops.to_string()).unwrap_or_default())
    };
    for_bytes(cases(), seed, show, |bytes| {
        let (case, loops) = case(bytes);
        done.set(done.get() + u32::from(loops.is_some_and(|loops| test(&case, &loops))));
    });
    assert!(done.get() >= cases() / 4, "only {} of {} programs could be compared", done.get(), cases());
}

fn well_formed(program: &LoopProgram, before: &LoopProgram) {
    let complaints = verify(program);
    assert!(complaints.is_empty(), "{complaints:?}\n{before}\n{program}");
}

/// The outputs as they are shown, so that the two zeros differ and NaNs do not; none if it takes too long.
fn outputs<D: Domain>(
    program: &LoopProgram,
    domain: &D,
    run: &[Size],
    inputs: Vec<(Name, Tensor<D::Value>)>,
) -> Option<Vec<String>> {
    let interpreter = Interpreter::new(program, domain, run.iter().copied(), inputs).expect("a call of the program");
    match interpreter.with_fuel(FUEL).run() {
        Ok(outputs) => Some(outputs.iter().map(|(_, tensor)| format!("{tensor:?}")).collect()),
        Err(EvalError::Fuel | EvalError::Fault(Fault::Unsupported(_))) => None,
        Err(error) => panic!("{error}\n{program}"),
    }
}

fn field(value: i64, elem: ElemType) -> Option<Element> {
    Some(if elem == ElemType::Bool {
        Element::Bool(value > 0)
    } else {
        Element::reduce((value * 7919 + 100_000) as u64)
    })
}

/// Whether both programs have the same values at every size, in the machine's numbers and in the field.
fn agree(case: &Case, before: &LoopProgram, after: &LoopProgram) -> bool {
    let mut compared = false;
    let domain = Partial(Field { seed: 3 });
    for run in &case.runs {
        let machine = |program| outputs(program, &Machine, run, case.planted(run, 3));
        let exact = |program| outputs(program, &domain, run, case.inputs(run, field));
        for (expected, found) in [(machine(before), machine(after)), (exact(before), exact(after))] {
            if let (Some(expected), Some(found)) = (expected, found) {
                compared = true;
                assert_eq!(found, expected, "at {run:?}\n{before}\n{after}");
            }
        }
    }
    compared
}

fn count(block: &[Stmt], what: impl Fn(&Stmt) -> bool) -> usize {
    statements(block).filter(|stmt| what(stmt)).count()
}

fn allocations(program: &LoopProgram) -> usize {
    count(&program.body, |stmt| matches!(stmt, Stmt::Alloc(_, ty) if !ty.is_scalar()))
}

#[test]
fn sharing_memory_changes_no_value_and_never_takes_more() {
    let saved = Cell::new(0);
    for_cases(71, |case, loops| {
        for lend in [Lend::Outputs, Lend::Buffers] {
            let shared = reuse(loops.clone(), lend).expect("well-formed loops");
            well_formed(&shared, loops);
            for run in &case.runs {
                let size = |name| run.iter().find(|(n, _)| *n == name).map(|(_, value)| *value);
                let peak = |program| peak_bytes(program, &size, &ElemType::bytes);
                assert!(peak(&shared) <= peak(loops), "{} > {}\n{loops}\n{shared}", peak(&shared), peak(loops));
            }
            assert!(allocations(&shared) <= allocations(loops));
            saved.set(saved.get() + allocations(loops) - allocations(&shared));
            if !agree(case, loops, &shared) {
                return false;
            }
        }
        true
    });
    assert!(saved.get() > cases() as usize / 10, "only {} buffers share memory", saved.get());
}

/// The paper's languages have more names that are assigned again.
#[test]
fn algebra_programs_keep_their_values() {
    for_samples(cases(), 72, |sample| {
        let mut program = core(&checked(sample));
        if let Some(last) = program.bindings.last().map(|binding| binding.name) {
            program.outputs = vec![(last, last)];
        }
        let loops = lower(&program, FpMode::Relaxed).expect("elaborated programs can be lowered");
        let shared = reuse(loops.clone(), Lend::Outputs).expect("well-formed loops");
        well_formed(&shared, &loops);
        let element = |bits: &u64| Some(Element::reduce(*bits));
        let given = |at: usize| (Name::new(sample.name(at)), sample.bits(at).map(element));
        let inputs = || sample.inputs().into_iter().map(given).collect::<Vec<_>>();
        let domain = Partial(Field { seed: 3 });
        let run = |program| outputs(program, &domain, &sample.sizes(), inputs());
        assert_eq!(run(&shared), run(&loops), "{loops}\n{shared}");
        let padded = pad(shared.clone(), 4).expect("well-formed loops");
        well_formed(&padded, &shared);
        assert_eq!(run(&padded), run(&loops), "{loops}\n{padded}");
    });
}

#[test]
fn padding_changes_no_value_and_stays_zero() {
    let rows = Cell::new(0);
    for_cases(73, |case, loops| {
        let dense = reuse(loops.clone(), Lend::Buffers).expect("well-formed loops");
        let mut compared = true;
        for vector in [2, 4, 8] {
            let padded = pad(dense.clone(), vector).expect("well-formed loops");
            well_formed(&padded, &dense);
            compared &= agree(case, &dense, &padded);
            let watching = watched(&dense, &padded, vector);
            for run in &case.runs {
                let Some(found) = outputs(&watching, &Machine, run, case.planted(run, 3)) else { continue };
                let spilled = found.last().expect("an output");
                assert!(spilled.ends_with("[Bool(false)] }"), "{vector} at {run:?}: {spilled}\n{dense}\n{watching}");
            }
            let wide =
                |stmt: &Stmt| matches!(stmt, Stmt::For { range, .. } if range.hi.to_string().contains("ceil_div"));
            rows.set(rows.get() + count(&padded.body, wide));
        }
        compared
    });
    assert!(rows.get() > cases() as usize, "only {} loops speak of padding", rows.get());
}
