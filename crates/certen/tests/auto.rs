//! Automatic schedules: which nests get one, and that results stay what they were.

use certen::road::core::TensorType;
use certen::road::core::domain::splitmix;
use certen::road::schedule::Form;
use certen::{Array, Backend, Call, Choice, Cpu, ElemType, Module, Name, Options, RunOptions, Values};

fn module(text: &str, schedule: Choice) -> Module {
    Module::from_text("t.ten", text, &Options { schedule, ..Options::default() }).unwrap()
}

/// Contractions over small integers, in every order of dimensions.
const CONTRACTIONS: [&str; 19] = [
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
    "fn f(A: T[p, n]) -> T[n, n] { { [i, j] -> sum({ [k] -> A[k, i] * A[k, j] }) } }",
    "fn f(A: T[n, p]) -> T[n, n] { { [i, j] -> 3 * sum({ [k] -> A[j, k] * A[i, k] }) } }",
    "fn f(A: T[b, p, n]) -> T[b, n, n] { { [z, i, j] -> sum({ [k] -> A[z, k, i] * A[z, k, j] }) } }",
    "fn f(A: T[p, n]) -> T[n, n] { { [i, j] -> if i == j { 1 } else { sum({ [k] -> A[k, i] * A[k, j] }) } } }",
    "fn f(A: T[m, p], B: T[p, n]) -> T[m, n] { { [i, j] -> if i != 2 { sum({ [k] -> A[i, k] * B[k, j] }) } else { 7 } } }",
];

/// Products of a row or a matrix with a matrix, in each iteration of a loop, and how many of them become products for all iterations.
const ROWS: [(&str, usize); 6] = [
    ("fn f(A: T[m, p], B: T[p, n], C: T[n, b]) -> T[m, b] { { [i] -> max(A[i] @ B, 1) @ C } }", 2),
    ("fn f(A: T[m, p], B: T[p, n], c: T[n]) -> T[m, n] { { [i] -> { let x = A[i] @ B + c; x * sum(x) } } }", 1),
    ("fn f(A: T[m, b, p], B: T[p, n], C: T[n, p]) -> T[m, b, p] { { [i, j] -> max(A[i, j] @ B, 1) @ C } }", 2),
    (
        "fn f(A: T[m, p], B: T[p, n], C: T[p, n]) -> T[m] { { [i] -> { let x = A[i] @ B; let y = A[i] @ C; sum(x * y) } } }",
        2,
    ),
    ("fn f(A: T[b, m, p], B: T[p, n], c: T[n]) { { [z] -> max(A[z] @ B, 1) @ c } }", 1),
    ("fn f(F: T[m, m], Q: T[m, m], P: T[b, m, m]) { { [z] -> F @ P[z] @ transpose(F) + Q } }", 2),
];

#[test]
fn rows_that_are_multiplied_one_by_one_get_tiles() {
    for (text, count) in ROWS {
        let module = module(&text.replace('T', "f64"), Choice::Auto);
        let (plans, _) = module.planned().unwrap();
        assert!(
            plans[0].form == Form::Separated && plans[0].why.starts_with("rows that are multiplied"),
            "{text}\n{plans:?}"
        );
        let tiles = plans.iter().filter(|plan| plan.steps.contains("tile("));
        assert_eq!(tiles.count(), count, "{text}\n{plans:?}");
        assert!(module.validation().unwrap().proved, "{text}");
    }
    // Only the first stage can be separated.
    let softmax = "fn f(A: f64[m, p], B: f64[p, n], C: f64[n, b]) where n >= 1 { { [i] -> softmax(A[i] @ B) @ C } }";
    let softmax = module(softmax, Choice::Auto);
    let (plans, _) = softmax.planned().unwrap();
    assert_eq!(plans[0].steps.lines().count(), 1, "{plans:?}");
    assert!(plans[0].form == Form::Separated && plans[1].steps.contains("tile("), "{plans:?}");
    assert!(softmax.validation().unwrap().proved);
    // The matrix that a row is multiplied with is another one in each iteration; the sums are short.
    let together = [
        "fn f(A: f64[m, p], B: f64[m, p, n], C: f64[m, n, b]) { { [i] -> max(A[i] @ B[i], 1) @ C[i] } }",
        "fn f(A: f64[m, 3], B: f64[3, 3], C: f64[3, 3]) { { [i] -> max(A[i] @ B, 1) @ C } }",
    ];
    for text in together {
        let module = module(text, Choice::Auto);
        let (plans, _) = module.planned().unwrap();
        assert!(!plans.iter().any(|plan| plan.form == Form::Separated), "{text}: {plans:?}");
    }
}

#[test]
fn contractions_get_a_tile_that_is_proved() {
    for text in CONTRACTIONS {
        let module = module(&text.replace('T', "f64"), Choice::Auto);
        let (plans, steps) = module.planned().unwrap();
        assert_eq!(plans.len(), 1, "{text}");
        assert_eq!(module.steps(), steps);
        let is_tiled = ["tile([", "mirror("].iter().any(|step| plans[0].steps.contains(step));
        assert!(is_tiled && plans[0].why.contains("stay in registers"), "{text}\n{plans:?}");
        assert!(module.validation().unwrap().proved, "{text}");
    }
}

#[test]
fn what_a_user_pastes_is_the_same_schedule() {
    for text in [CONTRACTIONS[0].replace('T', "f64"), SIDE_BY_SIDE.into()] {
        let automatic = module(&text, Choice::Auto);
        let steps: String = automatic.planned().unwrap().0.iter().map(|plan| plan.steps.as_str()).collect();
        let pasted = module(&text, Choice::Text { name: "schedule".into(), text: steps });
        assert_eq!(automatic.loops().unwrap().to_string(), pasted.loops().unwrap().to_string());
    }
}

/// A step of a recurrent network: two products of matrices in one result.
const SIDE_BY_SIDE: &str = "fn f(x: f64[b, n], W: f64[n, m], h: f64[b, m], U: f64[m, m], c: f64[m]) { \
                            {[i, j] -> tanh(sum({[k] -> x[i, k] * W[k, j]}) + sum({[k] -> h[i, k] * U[k, j]}) + c[j])} }";

#[test]
fn sums_side_by_side_get_a_nest_each() {
    let planned = |text: &str| {
        let module = module(text, Choice::Auto);
        let (plans, _) = module.planned().unwrap();
        plans.iter().map(|plan| (plan.nest.to_string(), plan.steps.contains("tile("))).collect::<Vec<_>>()
    };
    let found = planned(SIDE_BY_SIDE);
    let expected = [("result", false), ("result_acc_1", true), ("result", true)];
    assert_eq!(found, expected.map(|(nest, is_tiled)| (nest.to_owned(), is_tiled)));
    // None of these is a contraction; one is short; one is not a sum.
    let together = [
        "fn f(x: f64[m, n]) { {[i] -> sum({[k] -> x[i, k]}) / sum({[k] -> x[i, k] * x[i, k]})} }",
        "fn f(x: f64[m, n], v: f64[n], w: f64[m, 3]) { {[i] -> sum({[k] -> x[i, k] * v[k]}) + sum({[k] -> w[i, k]})} }",
        "fn f(x: f64[m, n], v: f64[n]) where n >= 1 { {[i] -> sum({[k] -> x[i, k] * v[k]}) - max({[k] -> x[i, k]})} }",
    ];
    for text in together {
        assert!(!steps(text).contains("separate("), "{text}: {}", steps(text));
    }
}

/// An input of small whole numbers, whose sums of products are exact, so that fused operations round nothing.
fn small(ty: &TensorType, value: impl Fn(Name) -> Option<i64>) -> Array {
    let shape = ty.shape_at(&value).unwrap();
    let count: usize = shape.iter().product();
    let element = |at: usize| ((at * 7 + at / 5) % 5) as i64 - 2;
    match ty.elem {
        ElemType::F64 => Array::from_vec(&shape, (0..count).map(|at| element(at) as f64).collect()),
        ElemType::F32 => Array::from_vec(&shape, (0..count).map(|at| element(at) as f32).collect()),
        ElemType::I32 => Array::from_vec(&shape, (0..count).map(|at| element(at) as i32).collect()),
        _ => Array::from_vec(&shape, (0..count).map(element).collect()),
    }
    .unwrap()
}

#[test]
fn values_do_not_change() {
    let sizes =
        [[0, 3, 2, 1], [1, 1, 1, 1], [4, 32, 5, 2], [5, 33, 7, 3], [9, 67, 1, 2], [13, 130, 11, 2], [3, 299, 5, 1]];
    let texts = CONTRACTIONS.into_iter().chain(ROWS.map(|(text, _)| text));
    for (text, elem) in texts.flat_map(|text| ["f64", "f32", "i64"].map(|elem| (text, elem))) {
        let module = module(&text.replace('T', elem), Choice::Auto);
        for [m, n, p, b] in sizes {
            let dims = [("m", m), ("n", n), ("p", p), ("b", b)];
            let value = |name: Name| dims.iter().find(|(size, _)| *size == name.as_str()).map(|(_, size)| *size);
            let call = module
                .core()
                .inputs
                .iter()
                .fold(Call::new(), |call, input| call.input(input.name, small(&input.ty, value)));
            let run = |backend| {
                let options = RunOptions { backend, ..RunOptions::default() };
                let (outputs, _) =
                    module.run_with(&call, &options).unwrap_or_else(|failure| panic!("{text}\n{failure}"));
                let Values::Array(array) = &outputs[0].values else { panic!("the machine's numbers") };
                (0..array.len()).map(|at| array.get(at).unwrap()).collect::<Vec<_>>()
            };
            let (native, expected) = (run(Backend::Native), run(Backend::Interp));
            let differs = native.iter().zip(&expected).position(|(native, expected)| native != expected);
            assert_eq!((native.len(), differs), (expected.len(), None), "{text} {elem} {dims:?}");
        }
    }
}

/// A contraction of two tensors by random index classes, in a random order of dimensions: its text, and sizes for it.
fn random(seed: u64) -> (String, Vec<(String, i64)>) {
    let mut state = seed;
    let mut draw = |count: usize| {
        state = splitmix(state);
        (state % count as u64) as usize
    };
    let classes = ["both", "left", "right", "summed"];
    let mut indices: Vec<(String, &str)> = vec![("l0".into(), "left"), ("r0".into(), "right"), ("k0".into(), "summed")];
    for at in 0..draw(4) {
        let class = classes[draw(4)];
        indices.push((
            format!("{}{at}", ["b", "l1", "r1", "k1"][classes.iter().position(|c| *c == class).unwrap()]),
            class,
        ));
    }
    let mut shuffled = |of: &[&str]| {
        let mut found: Vec<String> =
            indices.iter().filter(|(_, class)| of.contains(class)).map(|(name, _)| name.clone()).collect();
        for at in (1..found.len()).rev() {
            found.swap(at, draw(at + 1));
        }
        found
    };
    let (a, b) = (shuffled(&["both", "left", "summed"]), shuffled(&["both", "right", "summed"]));
    let (free, summed) = (shuffled(&["both", "left", "right"]), shuffled(&["summed"]));
    let sizes = |names: &[String]| names.iter().map(|name| format!("n{name}")).collect::<Vec<_>>().join(", ");
    let [at_a, at_b, at_free, at_summed] = [&a, &b, &free, &summed].map(|names| names.join(", "));
    let elem = ["f64", "f32", "i64", "i32"][draw(4)];
    let text = format!(
        "fn f(A: {elem}[{}], B: {elem}[{}]) -> {elem}[{}] {{ {{ [{at_free}] -> sum({{ [{at_summed}] -> A[{at_a}] * B[{at_b}] }}) }} }}",
        sizes(&a),
        sizes(&b),
        sizes(&free)
    );
    let last = free.last().unwrap().clone();
    // One in four is long enough for strips, blocks and several tiles.
    let size = |name: &String| if *name == last || draw(4) == 0 { 1 + draw(70) } else { 1 + draw(6) } as i64;
    let names: Vec<String> = indices.iter().map(|(name, _)| name.clone()).collect();
    let sizes = names.iter().map(size).collect::<Vec<_>>();
    (text, names.iter().map(|name| format!("n{name}")).zip(sizes).collect())
}

#[test]
fn random_contractions_keep_their_values() {
    let count = std::env::var("CERTEN_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(24);
    let mut planned = 0;
    for seed in 0..count {
        let (text, sizes) = random(seed);
        let module = module(&text, Choice::Auto);
        planned += u64::from(!module.planned().unwrap().0.is_empty());
        let value = |name: Name| sizes.iter().find(|(size, _)| *size == name.as_str()).map(|(_, size)| *size);
        let call = module.core().inputs.iter().fold(Call::new(), |call, it| call.input(it.name, small(&it.ty, value)));
        let run = |backend| {
            let options = RunOptions { backend, ..RunOptions::default() };
            let (outputs, _) = module.run_with(&call, &options).unwrap_or_else(|failure| panic!("{text}\n{failure}"));
            let Values::Array(array) = &outputs[0].values else { panic!("the machine's numbers") };
            (0..array.len()).map(|at| array.get(at).unwrap()).collect::<Vec<_>>()
        };
        assert!(run(Backend::Native) == run(Backend::Interp), "{text} {sizes:?}");
    }
    assert!(2 * planned > count, "{planned} of {count} have a schedule");
}

/// What a program computes of inputs with full mantissas, natively: for all sizes, or as a call with these sizes has it, with a
/// schedule about which this is said.
fn computed(text: &str, sizes: &[(&str, i64)], cpu: Cpu, with_numbers: Option<&str>) -> Vec<u64> {
    let options = Options { schedule: Choice::Auto, cpu: Some(cpu), ..Options::default() };
    let module = Module::from_text("t.ten", text, &options).unwrap();
    let numbers: Vec<(Name, i64)> = sizes.iter().map(|(name, size)| (Name::new(name), *size)).collect();
    let value = |name: Name| numbers.iter().find(|(size, _)| *size == name).map(|(_, size)| *size);
    let input = |ty: &TensorType| {
        let shape = ty.shape_at(&value).unwrap();
        let element = |at: usize| (splitmix(at as u64) >> 11) as f64 * 2f64.powi(-52) - 1.0;
        let all = (0..shape.iter().product()).map(element);
        match ty.elem {
            ElemType::F32 => Array::from_vec(&shape, all.map(|element| element as f32).collect()).unwrap(),
            _ => Array::from_vec(&shape, all.collect::<Vec<f64>>()).unwrap(),
        }
    };
    let inputs: Vec<Array> = module.core().inputs.iter().map(|it| input(&it.ty)).collect();
    // Where nothing is planned for the sizes, a call has the program for all sizes.
    let sized = with_numbers.and_then(|_| module.planned_at(&numbers));
    if let Some(said) = with_numbers.filter(|said| !said.is_empty()) {
        let (plans, _) = sized.as_ref().unwrap().planned().unwrap();
        assert!(plans[0].why.contains(said), "{text} {sizes:?} {plans:?}");
    }
    let module = sized.as_ref().unwrap_or(&module);
    // The size of a batch may be left.
    let all: Vec<i64> = module.core().sizes.iter().map(|name| value(*name).unwrap()).collect();
    let kernel = module.native().unwrap();
    let mut outputs = kernel.signature().allocate_outputs(&all).unwrap();
    kernel.call(&all, &inputs.iter().collect::<Vec<_>>(), &mut outputs).unwrap();
    (0..outputs[0].len()).map(|at| outputs[0].get(at).unwrap().to_f64().to_bits()).collect()
}

/// Nests over the elements of a batch, each of which contracts one dimension with a matrix, or combines entries: its text.
fn chain(seed: u64) -> String {
    let mut state = seed;
    let mut draw = |count: usize| {
        state = splitmix(state);
        (state % count as u64) as usize
    };
    let elem = ["f64", "f32"][draw(2)];
    let indices = &["i", "j", "k"][..1 + draw(3)];
    let all = indices.join(", ");
    let shape = vec!["n"; indices.len()].join(", ");
    let (mut stages, mut last) = (String::new(), "u".to_owned());
    let count = 2 + draw(4);
    for stage in 0..count {
        // The last one is a sum, to which an element may be added.
        let is_last = stage + 1 == count;
        let value = match if is_last { draw(2) } else { draw(4) } {
            3 => format!("D[{all}] * {last}[z, {all}] + 0.5"),
            form => {
                let axis = indices[draw(indices.len())];
                let inside: Vec<&str> = indices.iter().map(|index| if *index == axis { "a" } else { *index }).collect();
                let matrix = if draw(2) == 0 { format!("{axis}, a") } else { format!("a, {axis}") };
                let sum = format!("sum({{ [a] -> P[{matrix}] * {last}[z, {}] }})", inside.join(", "));
                match form {
                    2 => format!("{sum} - D[{all}]"),
                    1 if is_last => format!("{sum} + D[{all}]"),
                    _ => sum,
                }
            }
        };
        let value = format!("{{ [z, {all}] -> {value} }}");
        last = format!("s{stage}");
        stages += &if is_last { value } else { format!("let {last} = {value}; ") };
    }
    format!("fn f(P: {elem}[n, n], D: {elem}[{shape}], u: {elem}[e, {shape}]) -> {elem}[e, {shape}] {{ {stages} }}")
}

#[test]
fn small_tensors_of_a_batch_run_in_lanes_with_the_bits_of_others() {
    let count = std::env::var("CERTEN_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(8);
    for seed in 0..count {
        let text = chain(seed);
        // Full blocks, and one that is not.
        let (n, e) = (2 + (splitmix(seed) % 7) as i64, [32, 37, 51][(seed % 3) as usize]);
        for cpu in Cpu::here() {
            let [numbers, all] =
                [Some("a lane for each"), None].map(|said| computed(&text, &[("n", n), ("e", e)], cpu, said));
            assert!(numbers == all, "{cpu}: {text}, n = {n}, e = {e}");
        }
    }
}

#[test]
fn rows_that_nearly_fill_vectors_have_lanes_and_the_bits_of_others() {
    let modes = "fn f(P: T[n, n], u: T[e, n, n, n]) -> T[e, n, n, n] { \
                 let t = { [z, i, j, k] -> sum({ [a] -> P[i, a] * u[z, a, j, k] }) }; \
                 let s = { [z, i, j, k] -> t[z, i, j, k] * t[z, i, j, k] + 0.5 }; \
                 let r = { [z, i, j, k] -> sum({ [a] -> P[j, a] * s[z, i, a, k] }) }; \
                 { [z, i, j, k] -> sum({ [a] -> P[k, a] * r[z, i, j, a] }) } }";
    for cpu in Cpu::here().into_iter().filter(|cpu| *cpu != Cpu::Sse2) {
        for (elem, n, e) in [("f64", 7, 1), ("f64", 7, 43), ("f32", 15, 1), ("f32", 15, 43)] {
            let text = modes.replace("T[", &format!("{elem}["));
            let [numbers, all] =
                [Some("filled up"), None].map(|said| computed(&text, &[("n", n), ("e", e)], cpu, said));
            assert!(numbers == all, "{cpu}: {text}, n = {n}, e = {e}");
        }
    }
}

#[test]
fn long_sums_in_blocks_have_the_bits_of_others() {
    let sizes = [("m", 13), ("n", 37), ("p", 2500), ("q", 17), ("b", 2)];
    for text in [
        "fn f(A: f64[m, p], B: f64[p, n]) -> f64[m, n] { { [i, j] -> sum({ [k] -> A[i, k] * B[k, j] }) } }",
        "fn f(A: f64[p, m], B: f64[n, p]) -> f64[m, n] { { [i, j] -> sum({ [k] -> A[k, i] * B[j, k] }) } }",
        "fn f(A: f64[b, m, p], B: f64[b, p, n]) -> f64[b, m, n] { { [z, i, j] -> sum({ [k] -> A[z, i, k] * B[z, k, j] }) } }",
        "fn f(A: f64[m, q, p], B: f64[q, p, n]) -> f64[m, n] { { [i, j] -> sum({ [l, k] -> A[i, l, k] * B[l, k, j] }) } }",
        "fn f(A: f64[p, q, m], B: f64[q, p, n]) -> f64[m, n] { { [i, j] -> sum({ [k, l] -> A[k, l, i] * B[l, k, j] }) } }",
        "fn f(A: f64[m, b, p], B: f64[p, n]) -> f64[m, b, n] { { [i, z, j] -> sum({ [k] -> A[i, z, k] * B[k, j] }) } }",
    ] {
        let [numbers, all] = [Some("terms at a time"), None].map(|said| computed(text, &sizes, Cpu::Native, said));
        assert_eq!(numbers, all, "{text}");
    }
}

#[test]
fn narrow_tiles_and_panels_that_rows_pass_by_have_the_bits_of_others() {
    // Which tiles there are depends on the machine: what is asked for by name is known of those with whole vectors of 64 bytes.
    let is_known = |cpu: Cpu| cpu == Cpu::Avx512 && cpu.unit_bytes() == 64;
    let batched =
        "fn f(A: T[b, m, p], B: T[b, p, n]) -> T[b, m, n] { { [z, i, j] -> sum({ [k] -> A[z, i, k] * B[z, k, j] }) } }";
    let cases = [("f32", 16, 72, 26), ("f32", 13, 72, 26), ("f64", 16, 36, 26), ("f64", 7, 36, 26)];
    for (cpu, (elem, m, n, p)) in Cpu::here().into_iter().flat_map(|cpu| cases.map(|case| (cpu, case))) {
        let (text, sizes) = (batched.replace('T', elem), [("b", 3), ("m", m), ("n", n), ("p", p)]);
        let said = if is_known(cpu) { "by themselves" } else { "a contraction" };
        let [numbers, all] = [Some(said), None].map(|said| computed(&text, &sizes, cpu, said));
        assert!(numbers == all, "{cpu}: {text} {sizes:?}");
    }
    let (text, sizes) = (CONTRACTIONS[0].replace('T', "f64"), [("m", 301), ("n", 547), ("p", 600)]);
    for cpu in Cpu::here() {
        let said = if is_known(cpu) { "all rows for each" } else { "a contraction" };
        let [numbers, all] = [Some(said), None].map(|said| computed(&text, &sizes, cpu, said));
        assert!(numbers == all, "{cpu}: {text}");
    }
}

/// A program, and the steps of its automatic schedule.
fn steps(text: &str) -> String {
    let module = module(text, Choice::Auto);
    assert!(module.validation().unwrap().proved, "{text}");
    module.planned().unwrap().0.iter().map(|plan| plan.steps.as_str()).collect()
}

#[test]
fn cheap_stages_are_computed_where_they_are_read() {
    for (text, inlined) in [
        // Three maps are one nest.
        ("fn f(x: f64[n]) { let a = x * 2; let b = a + 1; b * b }", "ab"),
        (
            "fn f(x: f64[h, w]) where h >= 2, w >= 2 { let r = { [i, j] -> x[i, j] + x[i, j+1] }; { [i, j] -> r[i, j] - r[i+1, j] } }",
            "r",
        ),
        // A library function is not computed twice.
        ("fn f(x: f64[n]) where n >= 1 { let e = exp(x); { [i] -> e[i] + e[i+1] | i < n - 1 } }", ""),
        ("fn f(x: f64[n]) { let e = exp(x); e * e }", "e"),
        // Each element is read by every row; a sum is no expression; a state is no stage.
        ("fn f(x: f64[n], A: f64[m, n]) { let s = x + 1; { [i, k] -> s[k] * A[i, k] + s[0] } }", ""),
        ("fn f(x: f64[m, n]) { let s = { [i] -> sum(x[i]) }; { [i] -> s[i] + 1 } }", ""),
        ("fn f(x: f64[n], k: size) { iterate k times u = x { { [i] -> u[n-1-i] + 1 } } }", ""),
    ] {
        let steps = steps(text);
        let found: String = inlined.chars().map(|stage| format!("inline({stage});\n")).collect();
        assert!(steps.starts_with(&found), "{text}\n{steps}");
        assert_eq!(steps.matches("inline(").count(), inlined.len(), "{text}\n{steps}");
    }
}

/// Stencils and reductions, each with a step that its schedule has.
const SWEEPS: [(&str, &str); 14] = [
    (
        "fn f(x: f64[m, n]) -> f64[m-2, n-2] where m >= 2, n >= 2 { let r = { [i, j] -> x[i, j] + x[i, j+1] + x[i, j+2] }; \
         { [i, j] -> (r[i, j] + r[i+1, j] + r[i+2, j]) / 9 } }",
        "unroll_and_jam(result.i, 4)",
    ),
    (
        "fn f(x: f64[b, m, n]) -> f64[b, m-2, n] where m >= 2 { { [z, i, j] -> x[z, i, j] * x[z, i+2, j] + x[z, i+1, j] } }",
        "unroll_and_jam(result.i, 4)",
    ),
    ("fn f(x: f64[n], y: f64[n]) -> f64[1] { [x @ y] }", "parallelize(v.k, 4096)"),
    ("fn f(x: f32[n]) -> f32[1] where n >= 1 { [min(x)] }", "vectorize(v.i.i, 32)"),
    ("fn f(x: f64[m, n]) -> f64[m] where n >= 1 { { [i] -> max(x[i]) } }", "vectorize(result.j#2, 32)"),
    ("fn f(x: f64[m, n]) -> f64[m] { { [i] -> sum(x[i]) } }", "vectorize(result.j, 16)"),
    (
        "fn f(x: f64[m, n], g: f64[n]) -> f64[m, n] where n >= 1 { { [i] -> (x[i] - mean(x[i])) / sqrt(variance(x[i]) + 0.5) * g } }",
        "vectorize(result.j#1, 16)",
    ),
    (
        "fn f(x: f32[b, m, n]) -> f32[b] where m >= 1, n >= 1 { { [z] -> sum(x[z]) / (1 + sum(abs(x[z]))) } }",
        "join_sums(result.i#1)",
    ),
    // With numbers the condition is gone, and each element is one sum of products.
    (
        "fn f(x: f64[m, n], y: f64[m, n]) -> f64[m, m] { { [i, j] -> if n >= 5 { sum({ [k] -> x[i, k] * y[j, k] }) } else { 0.5 } } }",
        "vectorize(result.k, 16)",
    ),
    (
        "fn f(x: f64[n], y: f64[m]) -> f64[m, n] { { [i, j] -> iterate 5 times u = x[j] { u * u + y[i] } } }",
        "unroll_and_jam(result.i, 4)",
    ),
    (
        "fn f(x: f64[m, n]) -> f64[m, n] { iterate 3 times u = x { { [i, j] -> u[i-1, j] + u[i, j] * u[i+1, j] \
         | 1 <= i < m - 1, j < n; iv -> u[iv] } } }",
        "unroll_and_jam(u_next.iv_0#2, 4)",
    ),
    // What is added to an element takes several operations; where there are few bodies, they are left as they are.
    (
        "fn f(x: f64[n, 3], y: f64[m, 3]) -> f64[n, 3] { { [i] -> sum({ [j] -> { let d = y[j] - x[i]; \
         let r = d @ d + 0.5; d / (r * sqrt(r)) } | j < m }, axis = 0) } }",
        "registers(result, result.j);\nvectorize(result.i, 16)",
    ),
    // Only the largest of these images is computed in strips.
    (
        "fn f(x: f64[n, m]) -> f64[n-4, m-4] where n >= 4, m >= 4 { let a = { [i, j] -> (x[i, j] * x[i+2, j+2] - x[i+1, j]) \
         * (x[i+2, j] - 3 * x[i, j+1]) | i < n - 2, j < m - 2 }; \
         { [i, j] -> sum({ [k, l] -> a[i+k, j+l] * x[k, l] | k < 3, l < 3 }) * x[i, j] } }",
        "compute_at(a, result.i.o)",
    ),
    // Norms of rows are sums of their own.
    (
        "fn f(x: f64[m, n], y: f64[m, n]) -> f64[m, m] { { [i, j] -> x[i] @ y[j] / (norm(x[i]) * norm(y[j])) } }",
        "vectorize(v.j, 16)",
    ),
];

/// Iterations whose states change places, are updated in place, or need a copy of what a step replaces.
const STATES: [&str; 8] = [
    "fn f(A: i64[n, n]) -> i64[n, n] { iterate k < n D = A { { [i, j] -> min(D[i, j], D[i, k] + D[k, j]) } } }",
    "fn f(A: i64[n, n]) -> i64[n, n] { iterate k < n D = A { { [i, j] -> D[i, j] - D[i, k] * D[k, j] + D[k, k] } } }",
    "fn f(A: i64[n, n]) -> i64[n, n] { iterate k < n A = A { { [i, j] -> A[i, j] - A[i, k] * A[k, j] | k < i, k < j; \
     [i, j] -> 2 * A[i, j] - A[k, k] | k < i, k <= j <= k; iv -> A[iv] } } }",
    "fn f(A: i64[n, n]) -> i64[n, n] { iterate k < n A = A { { [i, j] -> A[i, j] + A[j, i] * A[n-1-k, j] } } }",
    "fn f(A: i64[n, n]) -> (a: i64[n, n], b: i64[n, n]) { iterate 3 times (a = A, b = transpose(A)) \
     { (b, { [i, j] -> b[i, j] - a[i, j] }) } }",
    "fn f(A: i64[n, n]) -> (a: i64[n, n], b: i64[n, n]) { iterate 3 times (a = A, b = transpose(A)) \
     { (b, { [i, j] -> b[i, j] - a[j, i] }) } }",
    "fn f(A: i64[n, n]) -> (a: i64[n, n], b: i64[n, n], c: i64[n, n]) { iterate 4 times (a = A, b = 2 * A, c = transpose(A)) \
     { (b, c, { [i, j] -> a[i, j] + c[j, i] }) } }",
    "fn f(A: i64[n, n]) -> (a: i64[n, n], b: i64[n, n]) { iterate 5 times (a = A, b = transpose(A)) { (b, a) } }",
];

#[test]
fn states_that_share_memory_have_their_values() {
    for (text, schedule) in STATES.into_iter().flat_map(|text| [(text, Choice::None), (text, Choice::Auto)]) {
        let options = Options { schedule, fp: certen::FpMode::Strict, ..Options::default() };
        let module = Module::from_text("t.ten", text, &options).unwrap();
        for n in [0, 1, 2, 3, 7, 17] {
            let call = module
                .core()
                .inputs
                .iter()
                .fold(Call::new(), |call, it| call.input(it.name, small(&it.ty, |_| Some(n))));
            let run = |backend| {
                let options = RunOptions { backend, ..RunOptions::default() };
                let (outputs, _) =
                    module.run_with(&call, &options).unwrap_or_else(|failure| panic!("{text}\n{failure}"));
                let values = outputs.iter().map(|output| match &output.values {
                    Values::Array(array) => (0..array.len()).map(|at| array.get(at).unwrap()).collect::<Vec<_>>(),
                    _ => panic!("the machine's numbers"),
                });
                values.collect::<Vec<_>>()
            };
            assert_eq!(run(Backend::Native), run(Backend::Interp), "{text}, n = {n}");
        }
    }
}

#[test]
fn stencils_and_reductions_have_the_bits_of_others() {
    for (text, step) in SWEEPS {
        assert!(steps(text).contains(step), "{text}\n{}", steps(text));
        for (m, n) in [(5, 33), (9, 67), (11, 9000)] {
            let sizes = [("m", m), ("n", n), ("b", 2)];
            for cpu in Cpu::here() {
                let [numbers, all] = [Some(""), None].map(|said| computed(text, &sizes, cpu, said));
                assert!(numbers == all, "{cpu}: {text}, m = {m}, n = {n}");
            }
        }
    }
}

/// Rows that are in pages of their own are fetched before the loops that go over them: by indices that are known there.
#[test]
fn windows_over_long_rows_are_code() {
    let text =
        "fn f(x: f64[h, w], g: f64[5]) -> f64[h-4, w] where h >= 4 { { [i, j] -> sum({ [k] -> g[k] * x[i+k, j] }) } }";
    let strided = "fn f(x: f64[h, w], g: f64[5]) { { [i] -> g @ x[2*i..2*i+5] } }";
    for text in [text, strided] {
        for sizes in [[("h", 40), ("w", 2304)], [("h", 41), ("w", 2305)]] {
            for cpu in Cpu::here() {
                let [numbers, all] = [Some(""), None].map(|said| computed(text, &sizes, cpu, said));
                assert!(numbers == all, "{cpu}: {text} {sizes:?}");
            }
        }
    }
}

#[test]
fn extremes_in_lanes_keep_nan() {
    for (at, n) in [(0, 70), (1, 70), (34, 70), (69, 70), (9000, 9001), (5000, 9001)] {
        let module = module("fn f(x: f64[n]) -> f64[1] where n >= 1 { [max(x)] }", Choice::Auto);
        let mut elements: Vec<f64> = (0..n).map(|at| at as f64).collect();
        elements[at] = f64::NAN;
        let kernel = module.native().unwrap();
        let mut outputs = kernel.signature().allocate_outputs(&[n as i64]).unwrap();
        kernel.call(&[n as i64], &[&Array::from_vec(&[n], elements).unwrap()], &mut outputs).unwrap();
        assert!(outputs[0].get(0).unwrap().to_f64().is_nan(), "{at} of {n}");
    }
}

#[test]
fn outputs_beyond_the_caches_are_streamed() {
    let planned = |text: &str| steps(text).contains("stream(result)");
    assert!(planned("fn f(x: f64[4000, 4001]) -> f64[4000, 4001] { 2 * x }"));
    // One that is read again, one that is small, one whose rows are short, and one of rows that are computed together and are no whole
    // lines.
    assert!(!planned("fn f(x: f64[4000, 4001]) -> f64[4000, 4001] { iterate 2 times u = x { 2 * u } }"));
    assert!(!planned("fn f(x: f64[400, 401]) -> f64[400, 401] { 2 * x }"));
    assert!(!planned("fn f(x: f64[160000, 101]) -> f64[160000, 100] { { [i, j] -> x[i, j] + x[i, j+1] } }"));
    assert!(!planned("fn f(x: f64[4002, 4001]) -> f64[4000, 4001] { { [i, j] -> x[i, j] + x[i+1, j] + x[i+2, j] } }"));
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
    for text in ["fn f(x: f64[n]) -> f64[n] { 2 * x }", "fn f(x: f64[n]) -> f64[n] { { [i] -> max(x[i], 0) } }"] {
        let automatic = module(text, Choice::Auto);
        assert!(automatic.planned().unwrap().0.is_empty(), "{text}");
        let plain = module(text, Choice::None);
        assert_eq!(automatic.loops().unwrap().to_string(), plain.loops().unwrap().to_string());
    }
}
