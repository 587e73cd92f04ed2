//! What `--fp relaxed` may do to floats: factor a sum where that saves operations, and say so. `strict` does not.

use certen::{Array, Call, FpMode, Module, Options};

const SUMS: &str = "fn f(z: f64[ROWS, n], x: f64[n]) -> f64[n] { { [k] -> sum({ [i] -> z[i,k] * x[k] }) } }";

fn module(rows: &str, fp: FpMode) -> Module {
    let options = Options { fp, ..Options::default() };
    Module::from_text("f.ten", SUMS.replace("ROWS", rows), &options).unwrap()
}

/// The result where all `z` are 1e308 and `x` is 0 and 1e-10.
fn run(module: &Module, rows: usize) -> Vec<f64> {
    let call = Call::new().input("z", Array::from_vec(&[rows, 2], vec![1e308; 2 * rows]).unwrap());
    let outputs = module.run(&call.input("x", Array::from_vec(&[2], vec![0.0, 1e-10]).unwrap())).unwrap();
    outputs[0].array().unwrap().as_slice::<f64>().unwrap().to_vec()
}

fn explained(module: &Module) -> String {
    let sections = module.explain(&[], &[]).unwrap();
    sections.into_iter().find(|(name, _)| *name == "optimised").unwrap().1
}

#[test]
fn strict_computes_as_written() {
    for rows in ["2", "m"] {
        let module = module(rows, FpMode::Strict);
        assert_eq!(run(&module, 2), [0.0, 1e308 * 1e-10 + 1e308 * 1e-10]);
        assert!(!explained(&module).contains("factored"));
        assert!(module.certificate().unwrap().about.get("lifted").is_none());
    }
}

#[test]
fn relaxed_factors_where_that_saves_operations_and_says_so() {
    let two = module("2", FpMode::Relaxed);
    let found = run(&two, 2);
    assert!(found[0].is_nan() && found[1] == f64::INFINITY, "{found:?}");
    assert!(explained(&two).contains("sums are factored, as `--fp relaxed` allows"), "{}", explained(&two));
    let about = module("2", FpMode::Relaxed).certificate().unwrap().about;
    assert!(about["lifted"].to_string().contains("sums are factored"), "{about}");
}

#[test]
fn relaxed_factors_nothing_where_nothing_is_saved() {
    for rows in ["1", "m"] {
        let module = module(rows, FpMode::Relaxed);
        assert_eq!(run(&module, 1), [0.0, 1e308 * 1e-10]);
        assert!(!explained(&module).contains("factored"));
        assert!(module.certificate().unwrap().about.get("lifted").is_none());
    }
}
