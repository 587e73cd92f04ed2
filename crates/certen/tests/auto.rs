//! Automatic schedules: which nests get one, and that results stay what they were.

use certen::{Backend, Call, Choice, Input, Module, Options, RunOptions, Values};

fn module(text: &str, schedule: Choice) -> Module {
    Module::from_text("t.ten", text, &Options { schedule, ..Options::default() }).unwrap()
}

/// Contractions over small integers, in every order of dimensions.
const CONTRACTIONS: [&str; 14] = [
    "fn f(A: T[m, p], B: T[p, n]) -> T[m, n] { { [i, j] -> sum({ [k] -> A[i, k] * B[k, j] }) } }",
    "fn f(A: T[p, m], B: T[p, n]) -> T[m, n] { { [i, j] -> sum({ [k] -> A[k, i] * B[k, j] }) } }",
    "fn f(A: T[m, p], B: T[n, p]) -> T[m, n] { { [i, j] -> sum({ [k] -> A[i, k] * B[j, k] }) } }",
    "fn f(A: T[p, m], B: T[n, p]) -> T[m, n] { { [i, j] -> sum({ [k] -> A[k, i] * B[j, k] }) } }",
    "fn f(A: T[m, p], B: T[p, n]) -> T[n, m] { { [j, i] -> sum({ [k] -> A[i, k] * B[k, j] }) } }",
    "fn f(A: T[b, m, p], B: T[b, p, n]) -> T[b, m, n] { { [z, i, j] -> sum({ [k] -> A[z, i, k] * B[z, k, j] }) } }",
    "fn f(A: T[m, b, p], B: T[p, n]) -> T[m, b, n] { { [i, z, j] -> sum({ [k] -> A[i, z, k] * B[k, j] }) } }",
    "fn f(A: T[m, p], B: T[b, p, n]) -> T[b, m, n] { { [z, i, j] -> sum({ [k] -> A[i, k] * B[z, k, j] }) } }",
    "fn f(A: T[m, p], B: T[b, p, n]) -> T[m, b, n] { { [i, z, j] -> sum({ [k] -> A[i, k] * B[z, k, j] }) } }",
    "fn f(S: T[m, n], A: T[m, p], B: T[p, n]) -> T[m, n] { { [i, j] -> S[i, j] * sum({ [k] -> A[i, k] * B[k, j] }) } }",
    "fn f(A: T[m, p], B: T[p, n], c: T[n]) -> T[m, n] { { [i, j] -> max(sum({ [k] -> A[i, k] * B[k, j] }) + c[j], 0) } }",
    "fn f(A: T[m, p], B: T[p, n]) -> T[m, n] { A @ B }",
    "fn f(A: T[m, p, b], B: T[p, b, n]) -> T[m, n] { { [i, j] -> sum({ [k, l] -> A[i, k, l] * B[k, l, j] }) } }",
    "fn f(A: T[m, p, b], B: T[b, n], c: T[p, n]) -> T[m, n] { { [i, j] -> sum({ [k, l] -> A[i, k, l] * B[l, j] * c[k, j] }) } }",
];

#[test]
fn contractions_get_a_tile_that_is_proved() {
    for text in CONTRACTIONS {
        let module = module(&text.replace('T', "f64"), Choice::Auto);
        let (plans, steps) = module.planned().unwrap();
        assert_eq!(plans.len(), 1, "{text}");
        assert_eq!(module.steps(), steps);
        assert!(plans[0].steps.contains("tile([") && plans[0].why.contains("stay in registers"), "{text}\n{plans:?}");
        assert!(module.validation().unwrap().proved, "{text}");
    }
}

#[test]
fn what_a_user_pastes_is_the_same_schedule() {
    let text = CONTRACTIONS[0].replace('T', "f64");
    let automatic = module(&text, Choice::Auto);
    let steps = automatic.planned().unwrap().0[0].steps.clone();
    let pasted = module(&text, Choice::Text { name: "schedule".into(), text: steps });
    assert_eq!(automatic.loops().unwrap().to_string(), pasted.loops().unwrap().to_string());
}

#[test]
fn values_do_not_change() {
    let sizes = [[0, 3, 2, 1], [1, 1, 1, 1], [4, 32, 5, 2], [5, 33, 7, 3], [9, 67, 1, 2], [13, 130, 11, 2]];
    for text in CONTRACTIONS {
        for elem in ["f64", "f32", "i64"] {
            let module = module(&text.replace('T', elem), Choice::Auto);
            for [m, n, p, b] in sizes {
                let call = ["A", "B", "S", "c"].into_iter().fold(Call::new(), |call, name| {
                    let is_input = module.core().inputs.iter().any(|input| input.name.as_str() == name);
                    if is_input { call.input(name, Input::Iota) } else { call }
                });
                let dims = [("m", m), ("n", n), ("p", p), ("b", b)];
                let call = dims.into_iter().fold(call, |call, (name, size)| {
                    let is_size = module.core().sizes.iter().any(|size| size.as_str() == name);
                    if is_size { call.dim(name, size) } else { call }
                });
                // Products of such numbers are whole and small enough to be exact, so that fused operations round nothing.
                let run = |backend| {
                    let options = RunOptions { backend, ..RunOptions::default() };
                    module.run_with(&call, &options).unwrap_or_else(|failure| panic!("{text}\n{failure}")).0
                };
                let (native, expected) = (run(Backend::Native), run(Backend::Interp));
                let shown = |values: &Values| match values {
                    Values::Array(array) => (0..array.len()).map(|at| array.get(at).unwrap()).collect::<Vec<_>>(),
                    _ => panic!("the machine's numbers"),
                };
                assert_eq!(shown(&native[0].values), shown(&expected[0].values), "{text} {elem} {m} {n} {p} {b}");
            }
        }
    }
}

#[test]
fn strict_sums_are_not_fused() {
    let options = Options { schedule: Choice::Auto, fp: certen::FpMode::Strict, ..Options::default() };
    let module = Module::from_text("t.ten", CONTRACTIONS[0].replace('T', "f64"), &options).unwrap();
    let steps = &module.planned().unwrap().0[0].steps;
    assert!(steps.contains("tile([") && !steps.contains("fma("), "{steps}");
}

#[test]
fn what_no_strategy_knows_stays_as_it_is() {
    for text in [
        "fn f(x: f64[n]) -> f64[n] { 2 * x }",
        "fn f(A: f64[m, n], x: f64[n]) -> f64[m] { { [i] -> sum({ [k] -> A[i, k] * x[k] }) } }",
        "fn f(x: f64[n]) { sum(x) }",
    ] {
        let automatic = module(text, Choice::Auto);
        assert!(automatic.planned().unwrap().0.is_empty(), "{text}");
        let plain = module(text, Choice::None);
        assert_eq!(automatic.loops().unwrap().to_string(), plain.loops().unwrap().to_string());
    }
}
