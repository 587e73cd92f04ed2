//! Machine code of plain kernels is what the loop interpreter says, in every element, for every instruction set.
//!
//! `CERTEN_CASES=20000 cargo test -p certen-testgen --test machine -- --nocapture` says how much was compared.

#![allow(clippy::print_stdout)]

use certen::doctor::{Examination, Specimen};
use certen_runtime::{Compiler, Cpu};
use certen_testgen::kernels::Kernel;

/// Kernels whose values are in memory at once.
const AT_ONCE: u64 = 2_000;

/// How many kernels are compared at least: `CERTEN_CASES`, twice as many in the slow set, else 200.
fn wanted() -> u64 {
    match certen_testgen::cases() {
        _ if std::env::var_os("CERTEN_CASES").is_none() => 200,
        10_000 => 20_000,
        cases => cases.into(),
    }
}

fn specimen(seed: u64) -> Specimen {
    let Kernel { text, schedule, sizes } = Kernel::new(seed);
    Specimen { text, schedule, sizes }
}

#[test]
fn machine_code_has_the_interpreters_bits() {
    let compiler = Compiler::find().expect("a C compiler");
    let sets = if Cpu::here().is_empty() { vec![Cpu::Native] } else { Cpu::here() };
    let (wanted, mut seeds, mut refused, mut kernels, mut elements) = (wanted(), 0..0, 0, 0, 0);
    while kernels < wanted {
        seeds = seeds.end..seeds.end + (wanted - kernels).min(AT_ONCE);
        let specimens: Vec<Specimen> = seeds.clone().map(specimen).collect();
        let examination = Examination::new(specimens, &|_| {});
        for (specimen, why) in &examination.refused {
            assert!(specimen.schedule.is_some(), "{specimen}\n{why}");
        }
        refused += examination.refused.len() as u64;
        kernels += examination.kernels() as u64;
        for cpu in &sets {
            let found = examination.with(&compiler.for_cpu(*cpu).expect("it is here"), &|_| {}).expect("a run");
            let first = found.differences.first().map(|it| format!("{it}\n{}", it.loops)).unwrap_or_default();
            assert_eq!(found.wrong, 0, "{cpu}: {first}");
            elements += found.elements;
        }
        println!("{kernels} kernels, {refused} schedules refused, {elements} elements with {sets:?}: all equal");
        let made = seeds.end;
        assert!(4 * refused <= made, "{refused} of {made} kernels have a schedule that is refused");
    }
}
