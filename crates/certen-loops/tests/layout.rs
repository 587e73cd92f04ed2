//! Padded layouts: which loops run over the padding, that it stays zero, and that values are the same, whatever infinities
//! there are.

use certen_core::domain::{Machine, Scalar};
use certen_core::{Parameter, Tensor};
use certen_loops::{Interpreter, LoopProgram, pad, parse_loops, verify};
use certen_syntax::{Name, Sources};

mod common;
use common::watched;

fn loops(text: &str) -> LoopProgram {
    let mut sources = Sources::new();
    let file = sources.add("t.loops", text);
    let program = parse_loops(&sources, file).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
    let errors = verify(&program);
    assert!(errors.is_empty(), "{errors:?}\n{text}");
    program
}

/// Outputs as they are shown, so that the two zeros differ and not-a-numbers do not; every few elements of the inputs
/// are infinite, not a number or zero.
fn run(program: &LoopProgram, sizes: &[(Name, i64)]) -> Vec<String> {
    let size = |name| sizes.iter().find(|(n, _)| *n == name).map(|(_, v)| *v);
    let input = |p: &Parameter| {
        let value = |at: usize| {
            Ok::<_, ()>(match at % 7 {
                2 => Scalar::F64(f64::INFINITY),
                4 => Scalar::F64(f64::NAN),
                5 => Scalar::F64(-0.0),
                _ => Scalar::F64(at as f64 - 3.5),
            })
        };
        (p.name, Tensor::from_fn(p.ty.shape_at(&size).unwrap(), value).unwrap().unwrap())
    };
    let inputs: Vec<_> = program.inputs.iter().map(input).collect();
    let outputs = Interpreter::new(program, &Machine, sizes.to_vec(), inputs).unwrap().run();
    let outputs = outputs.unwrap_or_else(|error| panic!("{error}\n{program}"));
    outputs.iter().map(|(name, tensor)| format!("{name}: {tensor:?}")).collect()
}

/// For all vector lengths and sizes: the result is well-formed, has the same values, and its padding is zero.
fn check(text: &str) -> LoopProgram {
    let program = loops(text);
    for vector in [1, 2, 4, 8] {
        let padded = pad(program.clone(), vector).unwrap();
        let errors = verify(&padded);
        assert!(errors.is_empty(), "{errors:?}\n{padded}");
        let watched = watched(&program, &padded, vector);
        let errors = verify(&watched);
        assert!(errors.is_empty(), "{errors:?}\n{watched}");
        for n in [0, 1, vector - 1, vector, vector + 1, 7, 13] {
            let sizes: Vec<(Name, i64)> = program.sizes.iter().copied().zip([n, 3, 5]).collect();
            let expected = run(&program, &sizes);
            assert_eq!(run(&padded, &sizes), expected, "{vector}, {n}\n{padded}");
            let mut found = run(&watched, &sizes);
            let spilled = found.pop().unwrap();
            assert!(spilled.ends_with("[Bool(false)] }"), "{vector}, {n}: {spilled}\n{watched}");
            assert_eq!(found, expected);
        }
    }
    pad(program, 4).unwrap()
}

const HEAD: &str = "loops p\nsize n, m\nwhere n >= 0, m >= 1\ninput x : f64[m, n]\ninput v : f64[m]\n\
                    output y : f64[m, n]\noutput s : f64[m]\n";

/// `a` is computed from `x` in the way shown, and summed and copied.
fn with(nests: &str) -> String {
    format!(
        "{HEAD}alloc a : f64[m, n]
         nest a
         for i in 0..m {{ for j in 0..n {{ a[i, j] = x[i, j] }} }}
         alloc b : f64[m, n]
         nest b
         {nests}
         nest y
         for i in 0..m {{ for j in 0..n {{ y[i, j] = b[i, j] }} }}
         nest s
         for i in 0..m {{
             local acc : f64 = 0.0
             for k in 0..n {{ acc += b[i, k] }}
             s[i] = acc
         }}
         free a
         free b"
    )
}

const WIDE: &str = "4*ceil_div(n, 4)";

#[test]
fn a_loop_runs_over_padding_that_stays_zero() {
    let kept = [
        "a[i, j] - a[0, j]",
        "a[i, j] * a[i, j]",
        "a[i, j] * 3.0",
        "2.0 * min(a[i, j], -a[0, j])",
        "sqrt(abs(a[i, j])) + floor(a[i, j])",
        "controlled_div(a[i, j], v[i])",
        "sin(a[i, j])",
    ];
    for value in kept {
        let padded = check(&with(&format!("for i in 0..m {{ for j in 0..n {{ b[i, j] = {value} }} }}"))).to_string();
        assert_eq!(padded.matches(&format!("for j in 0..{WIDE}")).count(), 1, "{value}\n{padded}");
        // That of `a`, whose values come from the caller's array; `b` is filled at once.
        assert_eq!(padded.matches("for pad2 in").count(), 1, "{value}\n{padded}");
        assert_eq!(padded.matches(&format!("in n..{WIDE}")).count(), 1, "{value}\n{padded}");
    }
}

/// An infinite factor is not a number in the padding; others are not zero for zeros. They are zeroed again.
#[test]
fn what_is_not_zero_for_all_values_is_zeroed_again() {
    let spoiled = [
        "a[i, j] * v[i]",
        "a[i, j] * x[i, 0]",
        "exp(a[i, j])",
        "cos(a[i, j]) - 1.0",
        "a[i, j] + 1.0",
        "a[i, j] + v[i]",
        "select(a[i, j] == a[0, j], 1.0, 0.0)",
        "index.f64(j) + a[i, j]",
    ];
    for value in spoiled {
        let nest = format!("for i in 0..m {{ for j in 0..n {{ b[i, j] = {value} }} }}");
        let padded = check(&with(&nest)).to_string();
        assert_eq!(padded.matches(&format!("for j in 0..{WIDE}")).count(), 1, "{value}\n{padded}");
        assert_eq!(padded.matches(&format!("for j in n..{WIDE}")).count(), 1, "{value}\n{padded}");
    }
}

/// The caller's arrays have no padding, other indices are beside the element, a division by zero has no value.
#[test]
fn other_loops_stay_inside() {
    let stay = [
        "for i in 0..m { for j in 0..n { b[i, j] = a[i, j] + x[i, j] } }",
        "for i in 0..m { for j in 0..n { b[i, j] = a[i, n - 1 - j] } }",
        "for i in 0..m { for j in 0..n { b[i, j] = a[i, j] / v[i] } }",
        "for i in 0..m { for j in 0..n { if j >= 1 { b[i, j] = a[i, j] } else { b[i, j] = 1.0 } } }",
        "for i in 0..m { local acc : f64 = 0.0\n for j in 0..n { acc += a[i, j]\n b[i, j] = acc } }",
        "for j in 0..n { for i in 0..m { b[i, j] = a[i, j] + 1.0 } }",
        "for i in 0..m { for j in 0..n { b[i, j] = a[i, j]\n y[i, j] = 0.0 } }",
        "for i in 0..m { for j in 0..n { for k in j..n { b[i, j] = a[i, j] } } }",
    ];
    for nest in stay {
        let padded = check(&with(nest)).to_string();
        assert_eq!(padded.matches(&format!("in 0..{WIDE}")).count(), 0, "{nest}\n{padded}");
        assert_eq!(padded.matches("for pad2 in").count(), 2, "{nest}\n{padded}");
    }
}

#[test]
fn sums_over_other_dimensions_and_locals_are_followed() {
    let nest = |first: &str| {
        format!(
            "for i in 0..m {{ for j in 0..n {{
                 local acc : f64 = {first}
                 for k in 0..m {{ acc += a[k, j] }}
                 local value : f64
                 if i >= 1 {{ value = acc }} else {{ value = a[i, j] }}
                 b[i, j] = value
             }} }}"
        )
    };
    let padded = check(&with(&nest("0.0"))).to_string();
    assert!(padded.contains(&format!("for j in 0..{WIDE}")) && !padded.contains("for j in n.."), "{padded}");
    let padded = check(&with(&nest("1.0"))).to_string();
    assert!(padded.contains(&format!("for j in 0..{WIDE}")) && padded.contains("for j in n.."), "{padded}");
}

/// The matrix product with a padded factor: the free dimension is padded, the summed one is not.
#[test]
fn accumulation_into_rows_keeps_or_restores_zeros() {
    let nest = "for i in 0..m { for j in 0..n { b[i, j] = 0.0 } }
                for i in 0..m { for k in 0..m { for j in 0..n { b[i, j] += v[k] * a[k, j] } } }";
    let padded = check(&with(nest)).to_string();
    assert_eq!(padded.matches(&format!("for j in 0..{WIDE}")).count(), 2, "{padded}");
    assert_eq!(padded.matches(&format!("for j in n..{WIDE}")).count(), 1, "{padded}");
}

#[test]
fn states_of_iterations_keep_their_padding_zero() {
    let program = format!(
        "{HEAD}alloc u : f64[m, n]
         alloc u_next : f64[m, n]
         nest u
         for i in 0..m {{ for j in 0..n {{ u[i, j] = x[i, j] }} }}
         for t in 0..3 {{
             nest u_next
             for i in 0..m {{ for j in 0..n {{ u_next[i, j] = u[i, j] * v[i] + 1.0 }} }}
             swap u, u_next
         }}
         nest y
         for i in 0..m {{ for j in 0..n {{ y[i, j] = u[i, j] }} }}
         nest s
         for i in 0..m {{ s[i] = v[i] }}
         free u
         free u_next"
    );
    let padded = check(&program).to_string();
    assert!(padded.contains(&format!("alloc u_next : f64[m, {WIDE}]")), "{padded}");
    assert!(padded.contains(&format!("for j in n..{WIDE}")), "{padded}");
}

/// Sizes that are not shown to be at least zero, sizes that are multiples, integers, and buffers inside loops.
#[test]
fn sizes_of_all_kinds_are_rounded() {
    let program = "loops p\nsize n, m\nwhere m >= 1, n >= 0\ninput x : f64[n]\noutput y : f64[n]
         alloc fixed : f64[8]
         for i in 0..8 { fixed[i] = 1.0 }
         alloc five : i64[5]
         for i in 0..5 { five[i] = index.i64(i) }
         for i in 0..n {
             alloc row : f64[i - 2]
             for j in 0..i - 2 { row[j] = x[j] }
             alloc odd : i64[3]
             for j in 0..3 { odd[j] = five[j] }
             y[i] = fixed[0] + cast.f64(five[2] + odd[1])
             for j in 0..i - 2 { y[i] = y[i] + row[j] }
             free odd
             free row
         }
         free five
         free fixed";
    let padded = check(program).to_string();
    for part in ["fixed : f64[8]", "five : i64[8]", "row : f64[4*ceil_div(i - 2, 4)]", "in max(i - 2, 0).."] {
        assert!(padded.contains(part), "{part}\n{padded}");
    }
}

#[test]
fn a_vector_length_of_one_changes_nothing_and_less_is_an_error() {
    let program = loops(&with("for i in 0..m { for j in 0..n { b[i, j] = a[i, j] } }"));
    assert_eq!(pad(program.clone(), 1).unwrap().to_string(), program.to_string());
    for vector in [0, -4, i64::MIN] {
        assert_eq!(pad(program.clone(), vector).unwrap_err().code, certen_syntax::Code::E0407);
    }
    // A size that cannot be rounded up stays as it is.
    assert!(verify(&pad(program, i64::MAX).unwrap()).is_empty());
}
