//! Lowered programs verify, print and read back, and compute what the reference evaluator does.

use certen_core::domain::{Field, Machine, Partial, Scalar};
use certen_core::{Domain, ElemType, Evaluator, Literal, Program, Tensor, Unary, parse_program};
use certen_loops::{FpMode, Interpreter, LoopProgram, lower, parse_loops, verify};
use certen_syntax::{Code, Diagnostics, Name, Sources};

fn core(text: &str) -> Program {
    let mut sources = Sources::new();
    let file = sources.add("t.core", text);
    parse_program(&sources, file).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"))
}

fn loops(text: &str) -> Result<LoopProgram, Diagnostics> {
    let mut sources = Sources::new();
    let file = sources.add("t.loops", text);
    parse_loops(&sources, file)
}

/// Different numbers for every input and element, some negative, as many as the sizes 3, 4, 5, … of the program need.
#[allow(clippy::type_complexity, reason = "sizes and tensors by name")]
fn inputs<D: Domain>(domain: &D, program: &Program) -> (Vec<(Name, i64)>, Vec<(Name, Tensor<D::Value>)>) {
    let sizes: Vec<(Name, i64)> = program.sizes.iter().copied().zip(3..).collect();
    let size = |name| sizes.iter().find(|(n, _)| *n == name).map(|(_, v)| *v);
    let mut next = 0;
    let mut tensors = Vec::new();
    for input in &program.inputs {
        let shape: Vec<usize> = input.ty.shape.iter().map(|ix| ix.eval(&size).unwrap() as usize).collect();
        let value = |_| {
            next = (next * 7 + 5) % 23;
            let literal = match input.ty.elem {
                ElemType::Bool => Literal::Bool(next % 3 != 0),
                elem => Literal::whole(next, elem),
            };
            let value = domain.literal(literal, input.ty.elem)?;
            if next % 4 == 0 && input.ty.elem.has_arithmetic() {
                return domain.unary(Unary::Neg, input.ty.elem, &value);
            }
            Ok(value)
        };
        tensors.push((input.name, Tensor::from_fn(shape, value).unwrap().unwrap()));
    }
    (sizes, tensors)
}

fn agree<D: Domain>(domain: &D, program: &Program, lowered: &LoopProgram) {
    let (sizes, tensors) = inputs(domain, program);
    let expected = Evaluator::new(program, domain, sizes.clone(), tensors.clone()).unwrap().run().unwrap();
    let actual = Interpreter::new(lowered, domain, sizes, tensors).unwrap().run();
    let actual = actual.unwrap_or_else(|error| panic!("{error}\n{lowered}"));
    let values = |outputs: Vec<(Name, Tensor<D::Value>)>| outputs.into_iter().map(|(_, t)| t).collect::<Vec<_>>();
    assert_eq!(values(expected), values(actual), "{lowered}");
}

/// Lowers a program, and checks everything that holds of all lowered programs.
fn check(text: &str) -> LoopProgram {
    let program = core(text);
    let lowered = lower(&program, FpMode::Relaxed).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
    let errors = verify(&lowered);
    assert!(errors.is_empty(), "{errors:?}\n{lowered}");
    let printed = lowered.to_string();
    let again = loops(&printed).unwrap_or_else(|errors| panic!("{errors:?}\n{printed}"));
    assert_eq!(again.to_string(), printed);
    assert!(verify(&again).is_empty());
    agree(&Machine, &program, &lowered);
    agree(&Machine, &program, &again);
    agree(&Partial(Machine), &program, &lowered);
    lowered
}

const MATMUL: &str = "core matmul
size l, m, n
where l >= 1, m >= 1, n >= 1
input A : f64[l, m]
input B : f64[m, n]
C = gen i1 in 0..l. gen i2 in 0..n. sum k1 in 0..m. A[i1, k1] * B[k1, i2]
output C
";

#[test]
fn matmul_is_three_loops() {
    let lowered = check(MATMUL);
    assert_eq!(
        lowered.to_string(),
        "\
loops matmul
size l, m, n
where l >= 1, m >= 1, n >= 1
input A : f64[l, m]
input B : f64[m, n]
output C : f64[l, n]
nest C
for i1 in 0..l {
    for i2 in 0..n {
        local acc : f64 = 0.0
        for k1 in 0..m {
            acc += A[i1, k1] * B[k1, i2]
        }
        C[i1, i2] = acc
    }
}
"
    );
    agree(&Field { seed: 7 }, &core(MATMUL), &lowered);
}

/// The body of a program with inputs x : f64[m, n], y : f64[n], s : f64[], b : bool[n], k : i64[m].
fn with_inputs(body: &str) -> String {
    let header = "core f\nsize m, n\nwhere m >= 2, n >= 3\ninput x : f64[m, n]\ninput y : f64[n]\ninput s : f64[]\n\
                  input b : bool[n]\ninput k : i64[m]\n";
    format!("{header}{body}")
}

#[test]
fn programs_compute_what_they_mean() {
    for body in [
        // Transposition, slices, whole tensors, scalars.
        "t = gen i in 0..n. gen j in 0..m. x[j, i]\noutput t\n",
        "t = x\noutput t\n",
        "t = x[1]\noutput t\n",
        "t = gen i in 0..m. x[i]\noutput t\n",
        "t = s * s + y[2]\noutput t\n",
        "t = 3.5\noutput t\n",
        "t = gen i in 0..5. gen j in 0..3. index.f64(2*i - floor_div(j, 2))\noutput t\n",
        // Ranges that do not begin at zero.
        "t = gen i in 1..n. y[i] - y[i - 1]\noutput t\n",
        "t = gen i in 0..n - 2. (gen j in 1..n. y[j] * 2.0)[i + 1]\noutput t\n",
        // Nested and tensor-valued reductions, conditions on reductions.
        "t = sum i in 0..m. sum j in 0..n. x[i, j]\noutput t\n",
        "t = sum i in 0..m. x[i]\noutput t\n",
        "t = sum i in 0..m. (sum j in 0..n. x[i, j] * y[j]) * (product j in 0..n. y[j])\noutput t\n",
        "t = gen i in 0..m. sum j in 0..n where j != i && j >= 1. x[i, j]\noutput t\n",
        "t = sum j in 2..n. y[j - 2]\noutput t\n",
        "t = gen i in 0..m. (sum j in 0..n. x[i, j]) * (sum j in 0..n. x[i, j])\noutput t\n",
        "t = all j in 0..n. b[j] || y[j] < 3.0\nu = any j in 0..n. !b[j] && y[j] != y[0]\noutput t\noutput u\n",
        // Minima and maxima, inside each other too.
        "t = gen i in 0..m. minimum j in 0..n. x[i, j]\noutput t\n",
        "t = maximum i in 0..m. x[i]\noutput t\n",
        "t = minimum i in 0..m. maximum j in 1..n. x[i, j] - s\noutput t\n",
        "t = maximum i in 4..5. s\noutput t\n",
        // Guards and conditions, with accesses that are in bounds only under them.
        "t = gen i in 0..m. gen j in 0..n. guard(j >= 1, x[i, j - 1]) + guard(j < n - 1, x[i, j + 1])\noutput t\n",
        "t = gen i in 0..n + 2. if i < n then y[i] else if i < n + 1 then s else 1.0\noutput t\n",
        "t = gen i in 0..m. guard(i >= 1, sum j in 0..n. guard(j >= 1, x[i - 1, j - 1]))\noutput t\n",
        "t = guard(m == 3, x)\noutput t\n",
        "t = if 1 < 2 then y else y\noutput t\n",
        "t = guard(2 < 1, y)\noutput t\n",
        // Lets: scalars, tensors, inside loops, of the same name twice.
        "t = let a = gen i in 0..n. y[i] * 2.0 in gen i in 0..m. gen j in 0..n. a[j] + x[i, j]\noutput t\n",
        "t = gen i in 0..m. let a = sum j in 0..n. x[i, j] in a * a\noutput t\n",
        "t = gen i in 0..m. let a = gen j in 0..n. x[i, j] * 2.0 in sum j in 0..n. a[j] * a[j]\noutput t\n",
        "t = gen i in 0..m. (let a = s * 2.0 in a + a) * (let a = s + 1.0 in a * a)\noutput t\n",
        "t = let a = y in let b2 = a[1] in b2 * s\noutput t\n",
        // Beta, also where the index that is substituted has the name of a binder further in.
        "t = gen i in 0..n. (gen j in 0..n. sum k2 in 0..m. x[k2, j])[i]\noutput t\n",
        "t = gen i in 0..m. sum j in 0..n. (gen a in 0..m. sum c in 0..n. x[a, c] * y[c])[i] * x[i, j]\noutput t\n",
        "t = (gen i in 0..m. gen j in 0..n. x[i, j] + y[j])[1]\noutput t\n",
        "t = (gen i in 0..m. x[i])[0][2]\noutput t\n",
        // Element types and casts.
        "t = gen i in 0..m. floor_div(k[i], -3) + mod(k[i], 4) * index.i64(i)\noutput t\n",
        "t = gen i in 0..m. cast.f32(k[i]) / cast.f32(s)\nu = gen i in 0..m. cast.u8(k[i])\noutput t\noutput u\n",
        "t = gen i in 0..n. select(b[i], sqrt(abs(y[i])), controlled_div(y[i], s))\noutput t\n",
        // Outputs under two names, of inputs, used later, with the names of inputs.
        "t = gen i in 0..n. y[i] * 2.0\nu = gen i in 0..n. t[i] + y[i]\noutput t\noutput again = t\noutput u\n",
        "output z = y\noutput zz = s\n",
        "t = gen i in 0..n. y[i] * 2.0\noutput y = t\noutput s = s\n",
        "t = gen i in 0..n. y[i] * 2.0\nu = gen i in 0..n. t[i] * t[i]\nv = gen i in 0..n. u[i] + t[i]\noutput t = v\n",
        // Names of the user that lowering would choose.
        "acc = gen i in 0..n. sum acc_1 in 0..m. x[acc_1, i]\ni1 = acc\noutput i1\n",
        "i = gen j in 0..n. y[j]\nt = gen i2 in 0..n. i[i2]\noutput t\noutput j = i\n",
        // Iterations: of tensors and scalars, of several states at once, inside loops and each other, with few steps or
        // none, with lets, reductions and conditions, and the number of the step.
        "t = iterate 3 times (a = y) then (a = gen i in 0..n. a[i] * 2.0) give a\noutput t\n",
        "t = iterate j in 0..n (a = s) then (a = a * 0.5 + y[j]) give a\noutput t\n",
        "t = gen i in 0..m. iterate j in 0..n (a = s, c = 1.0) then (a = c - x[i, j], c = a * y[j]) give c\noutput t\n",
        "t = iterate j in 0..n (a = y, c = x[1]) then (a = c, c = a) give c\noutput t\n",
        "t = iterate j in 0..m - 9 (a = y) then (a = gen i in 0..n. a[i] + 1.0) give a\noutput t\n",
        "t = iterate j in 0..m (a = y) then \
         (a = let c = sum i in 0..n. a[i] in gen i in 0..n. if i >= 1 then a[i - 1] - c else a[n - 1]) give a\noutput t\n",
        "t = iterate j in 0..m (a = y, c = s) then \
         (a = gen i in 0..n. a[i] - c, c = maximum i in 0..n. a[i] * index.f64(j)) give a\noutput t\n",
        "t = gen i in 0..m. iterate j in 0..2 (a = x[i]) then (a = gen c in 0..n. a[n - 1 - c] + y[c]) give a\noutput t\n",
        "t = sum i in 0..m. iterate j in 0..i (a = x[i, 0]) then (a = a * x[j, 1] - index.f64(i)) give a\noutput t\n",
        "t = iterate j in 0..m (a = y) then (a = iterate c in 0..j + 1 (d = a) then \
         (d = gen i in 0..n. d[i] * a[n - 1 - i] + index.f64(c)) give d) give a\noutput t\n",
        "t = iterate j in 0..m (a = s) then (a = iterate c in 0..j (d = a) then (d = d + a * y[0]) give d) give a\noutput t\n",
        "t = iterate j in 0..2 (a = y) then (a = gen i in 0..n. let c = gen d in 0..n. a[d] * a[i] in sum d in 0..n. c[d]) \
         give a\noutput t\n",
        // An iteration that does not depend on the loops around it; the same one at two positions.
        "t = gen i in 0..n. (iterate j in 0..m (a = y) then (a = gen c in 0..n. a[c] + x[j, c]) give a)[n - 1 - i]\noutput t\n",
        "t = gen i in 0..n. guard(i >= 1, (iterate j in 0..m (a = y) then (a = gen c in 0..n. a[c] * s) give a)[i - 1])\noutput t\n",
        "t = gen i in 0..m. (iterate j in 0..m (a = s) then (a = a * x[j, 2]) give a) + x[i, 0]\noutput t\n",
        "t = iterate j in 0..m (a = y, c = s) then (a = gen i in 0..n. a[i] * c, c = c + a[0]) give a\n\
         u = iterate j in 0..m (a = y, c = s) then (a = gen i in 0..n. a[i] * c, c = c + a[0]) give c\noutput t\noutput u\n",
        "t = let p = iterate j in 0..m (a = y, c = s) then (a = gen i in 0..n. a[i] * c, c = c + a[0]) give a in \
         let q = iterate j in 0..m (a = y, c = s) then (a = gen i in 0..n. a[i] * c, c = c + a[0]) give c in \
         gen i in 0..n. p[i] - q\noutput t\n",
        // Reshapes: whole, selected from, inside each other.
        "t = flatten(x)\noutput t\n",
        "t = flatten(gen i in 0..m. gen j in 0..5. x[i, 0] * index.f64(j))\noutput t\n",
        "t = gen i in 0..m. (flatten(gen c in 0..m. gen j in 0..2. x[c, j]))[2*i + 1]\noutput t\n",
        "t = gen i in 0..n. gen j in 0..2. flatten(x)[i]\noutput t\n",
        "t = flatten(gen i in 0..m. gen j in 0..n. gen c in 0..2. x[i, j] + index.f64(c))\noutput t\n",
        "t = transpose(x)\noutput t\n",
        "t = gen i in 0..m. transpose(x)[0, i]\noutput t\n",
        "t = gen i in 0..n. transpose(x)[i]\noutput t\n",
        "t = concat(y, concat(x[1], y))\noutput t\n",
        "t = concat(x, gen i in 0..2. y)\noutput t\n",
        "t = gen i in 0..n. (sum j in 0..2*n. concat(x[1], y)[j]) * concat(y, x[0])[n + 1]\noutput t\n",
        "t = pad_l(1, pad_r(m, y))\nu = trunc_r(1, trunc_l(m - 1, pad_l(m, pad_r(2, concat(y, y)))))\noutput t\noutput u\n",
        "t = split(2, y)\nu = transpose(split(3, flatten(split(2, y))))\noutput t\noutput u\n",
        "t = gen i in 0..n. s * pad_l(2, y)[i] + pad_r(1, y)[i + 1]\noutput t\n",
        "t = iterate 2 times (a = y) then (a = trunc_r(1, pad_r(1, a))) give a\noutput t\n",
        // Minima and maxima with a condition.
        "t = minimum i in 0..n where i >= 1. y[i]\noutput t\n",
        "t = gen i in 0..m. maximum j in 0..n where j != i || j >= 2. x[i, j] - s\noutput t\n",
        "t = maximum i in 0..m. minimum j in 0..n where j != i. maximum c in 0..n. x[i, j] * y[c]\noutput t\n",
        // What nobody needs is left out.
        "dead = gen i in 0..n. y[i]\nt = y\noutput t\n",
    ] {
        check(&with_inputs(body));
    }
}

#[test]
fn what_nobody_needs_is_not_computed_and_buffers_end_with_their_last_use() {
    let lowered = check(&with_inputs(
        "dead = gen i in 0..n. y[i]\na = gen i in 0..n. y[i] * 2.0\nc = gen i in 0..n. a[i] + a[0]\n\
         d = gen i in 0..n. c[i] * 2.0\noutput d\n",
    ));
    let order: Vec<String> = lowered
        .to_string()
        .lines()
        .filter(|line| ["alloc", "free", "nest"].iter().any(|word| line.starts_with(word)))
        .map(String::from)
        .collect();
    assert_eq!(order, ["alloc a : f64[n]", "nest a", "alloc c : f64[n]", "nest c", "free a", "nest d", "free c"]);
}

#[test]
fn no_access_leaves_its_guard() {
    let lowered = check(&with_inputs("t = gen j in 0..n. s * guard(j >= 1, y[j - 1])\noutput t\n"));
    assert!(lowered.to_string().contains(
        "    local value : f64
    if j >= 1 {
        value = y[j - 1]
    } else {
        value = 0.0
    }
    t[j] = s * value
"
    ));
}

#[test]
fn an_iteration_changes_the_places_of_its_states() {
    let lowered = check(&with_inputs(
        "t = iterate j in 0..m (a = y, c = s, d = 1.0) then (a = gen i in 0..n. a[n - 1 - i] * c, c = c + a[0], d = c) \
         give a\noutput t\n",
    ));
    let text = lowered.to_string();
    let body = text.split_once("output t : f64[n]\n").map(|(_, body)| body);
    assert_eq!(
        body,
        Some(
            "\
alloc a : f64[n]
local c : f64
local d : f64
alloc a_next : f64[n]
nest a
for i1 in 0..n {
    a[i1] = y[i1]
}
c = s
d = 1.0
for j in 0..m {
    nest a_next
    for i in 0..n {
        a_next[i] = a[n - i - 1] * c
    }
    local c_next : f64 = c + a[0]
    d = c
    c = c_next
    swap a, a_next
}
nest t
for i1 in 0..n {
    t[i1] = a[i1]
}
free a_next
free a
"
        ),
        "{text}"
    );
}

#[test]
fn what_does_not_depend_on_a_loop_is_computed_before_it_and_once() {
    let iteration = "iterate j in 0..m (a = y, c = y) then (a = gen i in 0..n. a[i] * s, c = a) give ";
    for body in [
        format!("t = gen i2 in 0..n. ({iteration}a)[i2] * ({iteration}c)[0]\noutput t\n"),
        format!("t = {iteration}a\nu = {iteration}c\noutput t\noutput u\n"),
        format!("t = let p = {iteration}c in let q = {iteration}a in gen i2 in 0..n. p[i2] - q[i2]\noutput t\n"),
        format!("t = sum i2 in 0..m. sum i3 in 0..n. ({iteration}a)[i3]\noutput t\n"),
    ] {
        let text = check(&with_inputs(&body)).to_string();
        assert_eq!(text.matches("\nfor j in 0..m {").count(), 1, "{text}");
        assert_eq!(text.matches("for j").count(), 1, "{text}");
    }
    // Where a loop might not run, the facts that it gives are still needed: here, that there is a first element.
    let text = check(
        "core f\nsize m, n\ninput y : f64[n]\nt = gen i in 0..n. sum k in 0..m. \
        (let a = gen j in 0..3. y[0] * index.f64(j) in a[2] * a[1])\noutput t\n",
    )
    .to_string();
    assert!(text.contains("if n >= 1"), "{text}");
    // What depends on a state is computed in each step, what depends on a condition under it.
    let text = check(&with_inputs(
        "t = iterate j in 0..m (a = y) then \
        (a = gen i in 0..n. let c = gen d in 0..n. a[d] * s in c[i] + c[0]) give a\noutput t\n",
    ))
    .to_string();
    assert!(text.contains("for j in 0..m {\n    nest a_next\n    alloc c : f64[n]\n"), "{text}");
    let text = check(&with_inputs(
        "t = gen i in 0..m. guard(n >= 4, let c = gen d in 0..n - 1. y[d + 1] in c[n - 3])\noutput t\n",
    ));
    assert!(text.to_string().contains("if n >= 4 {\n        alloc c"), "{text}");
}

#[test]
fn a_minimum_over_nothing_is_refused() {
    let error = lower(&core(&with_inputs("t = minimum i in 2..m. y[i]\noutput t\n")), FpMode::Relaxed).unwrap_err();
    assert_eq!(error.code, Code::E0702);
    assert!(error.message.contains("not shown to be non-empty"), "{error:?}");
}

#[test]
fn long_sums_and_shared_terms_are_no_burden() {
    let terms: Vec<String> = (0..100_000).map(|at| format!("y[{}]", at % 3)).collect();
    let deep = format!("{}y[0]{}", "-(s + ".repeat(100_000), ")".repeat(100_000));
    for value in [terms.join(" + "), deep] {
        check(&with_inputs(&format!("t = {value}\noutput t\n")));
    }
    let doubled: String = (1..200).map(|at| format!("t{at} = t{0} + t{0}\n", at - 1)).collect();
    check(&with_inputs(&format!("t0 = s\n{doubled}output t199\n")));
    // Many reductions in one statement: fresh names are found quickly.
    let sums: Vec<String> = (0..5_000).map(|at| format!("(sum j in 0..{}. y[0])", at % 100)).collect();
    check(&with_inputs(&format!("t = {}\noutput t\n", sums.join(" + "))));
}

#[test]
fn a_term_that_shares_its_parts_is_lowered_once() {
    let mut program = core(&with_inputs("t = s + 1.0\noutput t\n"));
    let mut shared = program.bindings[0].term;
    for _ in 0..200 {
        shared = program.terms.add(certen_core::Term::Binary(certen_core::Binary::Add, shared, shared)).unwrap();
    }
    program.bindings[0].term = shared;
    let lowered = lower(&program, FpMode::Relaxed).unwrap();
    assert!(verify(&lowered).is_empty());
    let (sizes, tensors) = inputs(&Machine, &program);
    let outputs = Interpreter::new(&lowered, &Machine, sizes, tensors).unwrap().run().unwrap();
    let Scalar::F64(value) = outputs[0].1.data()[0] else { panic!() };
    assert!(value.is_finite());
}

#[test]
fn deep_nests_are_lowered_or_refused() {
    let nest = |depth: usize| {
        let sums: String = (0..depth).map(|at| format!("sum a{at} in 0..2. ")).collect();
        with_inputs(&format!("t = {sums}s\noutput t\n"))
    };
    let program = core(&nest(100));
    let lowered = lower(&program, FpMode::Relaxed).unwrap();
    assert!(verify(&lowered).is_empty());
    assert_eq!(loops(&lowered.to_string()).unwrap().to_string(), lowered.to_string());
    assert_eq!(lower(&core(&nest(3000)), FpMode::Relaxed).unwrap_err().code, Code::E0703);
    // Fuel ends what would take 2^100 steps.
    let (sizes, tensors) = inputs(&Machine, &program);
    let run = Interpreter::new(&lowered, &Machine, sizes, tensors).unwrap().with_fuel(100_000).run();
    assert_eq!(run.unwrap_err().code(), Code::E0501);
    // Minima inside each other take no more code than sums.
    check(&with_inputs(&format!(
        "t = {}s\noutput t\n",
        (0..12).map(|at| format!("minimum a{at} in 0..2. ")).collect::<String>()
    )));
    let minima: String = (0..60).map(|at| format!("minimum a{at} in 0..2. ")).collect();
    assert!(
        verify(&lower(&core(&with_inputs(&format!("t = {minima}s\noutput t\n"))), FpMode::Relaxed).unwrap()).is_empty()
    );
    // Values of `let` and first states inside each other are refused before they overflow the stack.
    for (begin, end) in [("let a# = ", " in a#"), ("iterate t# in 0..2 (a# = ", ") then (a# = a# + s) give a#")] {
        let inside = |depth: usize| {
            let begins: String = (0..depth).map(|at| begin.replace('#', &at.to_string())).collect();
            let ends: String = (0..depth).rev().map(|at| end.replace('#', &at.to_string())).collect();
            core(&with_inputs(&format!("t = {begins}s * 2.0{ends}\noutput t\n")))
        };
        assert!(verify(&lower(&inside(200), FpMode::Relaxed).unwrap()).is_empty());
        assert_eq!(lower(&inside(5_000), FpMode::Relaxed).unwrap_err().code, Code::E0703);
    }
}
