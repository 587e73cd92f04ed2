//! Plain kernels of which wrong code was made on commit a5f2d0f, by GCC 12 with AVX2 or AVX-512, as issue 17 tells. Every
//! element is compared with the loop interpreter, for every instruction set that the processor has.

use certen::doctor::{Examination, Specimen};
use certen::road::runtime::Compiler;
use certen::{Cpu, doctor::Findings};

fn specimen(text: &str, schedule: Option<&str>, sizes: &[i64]) -> Specimen {
    let sizes = sizes.iter().map(|n| vec![("n", *n), ("m", *n)]).collect();
    Specimen { text: text.to_owned(), schedule: schedule.map(str::to_owned), sizes }
}

#[track_caller]
fn right(specimens: Vec<Specimen>) {
    let examination = Examination::new(specimens, &|_| {});
    if let Some((specimen, why)) = examination.refused.first() {
        panic!("{specimen}\n{why}");
    }
    let compiler = Compiler::find().unwrap_or_else(|error| panic!("{error}"));
    for cpu in Cpu::here() {
        let compiler = compiler.for_cpu(cpu).unwrap_or_else(|error| panic!("{error}"));
        let Findings { wrong, elements, differences, .. } =
            examination.with(&compiler, &|_| {}).unwrap_or_else(|error| panic!("{error}"));
        let first = differences.first().map(ToString::to_string).unwrap_or_default();
        assert!(wrong == 0 && elements > 0, "{cpu}: {wrong} of {elements} elements are wrong\n{first}");
    }
}

#[test]
fn a_choice_over_a_short_inner_dimension() {
    let text = "fn f(x: f64[n,3], d: f64[n,3]) -> f64[n,3] { {[i,j] -> if x[i,j] > 0 { d[i,j] } else { 0 }} }";
    right(vec![specimen(text, None, &[60])]);
}

#[test]
fn logic_over_a_short_inner_dimension() {
    let kernel = |(k, sign): (usize, &str)| {
        let text =
            format!("fn f(x: bool[n,{k}], y: bool[n,{k}]) -> bool[n,{k}] {{ {{[i,j] -> x[i,j] {sign} y[i,j]}} }}");
        specimen(&text, None, &[60, 100])
    };
    right([3, 5, 6].into_iter().flat_map(|k| [(k, "&&"), (k, "||")]).map(kernel).collect());
}

#[test]
fn logic_in_threes() {
    let kernel = |(sign, step): (&str, &str)| {
        let text = format!("fn f(x: bool[n], y: bool[n]) -> bool[n] {{ {{[k] -> x[k] {sign} y[k]}} }}");
        specimen(&text, Some(step), &[96, 97, 98, 200])
    };
    let steps = ["unroll(k, 3)", "vectorize(k, 3)"];
    right(steps.into_iter().flat_map(|step| [("&&", step), ("||", step)]).map(kernel).collect());
}

#[test]
fn jammed_sums_and_products_of_integers() {
    let kernel = |value: &str| {
        let text = format!("fn f(z: i64[n,m], x: i64[m]) -> i64[m] {{ {{[k] -> {value}}} }}");
        specimen(&text, Some("unroll_and_jam(k, 2)"), &[1, 2, 7, 16, 33])
    };
    let [sum, prod] = ["sum", "prod"].map(|operation| format!("{operation}({{[i] -> z[i,k]*x[k]}})"));
    // GCC 12 made wrong code of two in one loop.
    let both = format!("{sum} + {prod}");
    right([sum, prod, both].iter().map(|value| kernel(value)).collect());
}

/// GCC 12 takes `0.0 - x` for `-x` where it sees that x is not -0.0, at every level of optimisation.
#[test]
fn zero_minus_zero_is_zero() {
    let values = [
        "0.0 - i",
        "0.0 * f64(y[i]) - i",
        "0.0 - abs(x[i])",
        "-f64(i) + 0.0",
        "-abs(x[i]) + 0.0",
        "0.0 - (if x[i] > 0 { abs(x[i]) } else { 0.0 })",
        "0.0 - (f64(y[i]) + 0.0)",
    ];
    let text = |value| format!("fn f(x: f64[n], y: u8[n]) -> f64[n] {{ {{ [i] -> {value} | i < n }} }}");
    right(values.into_iter().map(|value| specimen(&text(value), None, &[1, 5])).collect());
}
