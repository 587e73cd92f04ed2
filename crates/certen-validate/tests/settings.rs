//! Each setting sees something that no other does; evidence and differences say where.

mod common;

use certen_loops::{FpMode, LoopProgram};
use certen_validate::{Difference, LoopComparison, Outcome, Setting, bisect, scale, validate};
use common::{by_hand, written};

fn outcome(core: &str, loops: &str, strict: bool) -> Outcome {
    let case = written(core, loops);
    validate(&case.meaning, &case.nest, &LoopComparison { strict, ..LoopComparison::default() })
}

fn difference(core: &str, loops: &str) -> Difference {
    match outcome(core, loops, false) {
        Outcome::Differs(difference) => *difference,
        other => panic!("{loops}\n{other:?}"),
    }
}

/// A program over a vector, and loops that store a value of their own.
fn mapped(elem: &str, meaning: &str, value: &str) -> (String, String) {
    let head = format!("size n\ninput x : {elem}[n]\ninput z : {elem}[n]\n");
    let core = format!("core f\n{head}y = gen i in 0..n. {meaning}\noutput y\n");
    (core, format!("loops f\n{head}output y : {elem}[n]\nnest y\nfor i in 0..n {{\n    y[i] = {value}\n}}\n"))
}

#[track_caller]
fn seen_by(setting: Setting, elem: &str, meaning: &str, value: &str) {
    let (core, loops) = mapped(elem, meaning, value);
    assert_eq!(difference(&core, &loops).setting, setting);
    let (_, same) = mapped(elem, meaning, meaning);
    assert!(matches!(outcome(&core, &same, false), Outcome::Agrees(_)));
}

/// On small integers, a polynomial that has its zeros there, as a difference, is none.
#[test]
fn the_field_sees_other_polynomials() {
    let zeros: String = (-7..8).map(|zero| format!(" * (x[i] - f64({zero}.0))")).collect();
    seen_by(Setting::Field, "f64", "z[i]", &format!("z[i] + (f64(1.0){zeros})"));
}

/// What the field has found is shown in small integers.
#[test]
fn differences_are_shown_in_small_integers() {
    seen_by(Setting::Integers, "f64", "x[i] * z[i]", "x[i] + z[i]");
}

/// Random elements of the field are hardly ever equal, or a literal.
#[test]
fn integers_see_ties_and_literals() {
    seen_by(
        Setting::Integers,
        "f64",
        "select(x[i] <= z[i], x[i], z[i] + f64(1.0))",
        "select(x[i] < z[i], x[i], z[i] + f64(1.0))",
    );
    seen_by(Setting::Integers, "f64", "select(x[i] == f64(100.0), x[i], z[i])", "z[i]");
}

/// In the field, rounding is some function that has nothing to do with its argument.
#[test]
fn rationals_see_whole_numbers() {
    seen_by(Setting::Rationals, "f64", "x[i]", "select(floor(x[i]) == x[i], f64(0.0), x[i])");
}

/// Widening is the identity in every exact setting.
#[test]
fn integers_wrap_on_the_machine() {
    seen_by(
        Setting::Machine,
        "i64",
        "cast.i64(cast.i32(x[i])) * cast.i64(cast.i32(z[i]))",
        "cast.i64(cast.i32(x[i]) * cast.i32(z[i]))",
    );
}

#[test]
fn nans_see_what_is_multiplied_by_zero() {
    let (core, loops) =
        mapped("f64", "guard(i < 3, x[i])", "select(index.f64(i) < f64(3.0), f64(1.0), f64(0.0)) * x[i]");
    let found = difference(&core, &loops);
    assert!(matches!(found.setting, Setting::Nans | Setting::Infinities), "{found:?}");
}

#[test]
fn a_sum_in_another_order_has_other_bits() {
    let core = "core f\nsize n\ninput x : f64[n]\ny = sum i in 0..n. x[i]\noutput y\n";
    let loops = "loops f\nsize n\ninput x : f64[n]\noutput y : f64[]\nnest y\nlocal acc : f64 = 0.0\n\
                 for i in 0..n {\n    acc += x[n - 1 - i]\n}\ny = acc\n";
    assert!(matches!(outcome(core, loops, false), Outcome::Agrees(_)));
    let Outcome::Differs(found) = outcome(core, loops, true) else { panic!("the bits are not compared") };
    assert_eq!(found.setting, Setting::Bits);
}

#[test]
fn what_is_not_written_is_undefined() {
    let (core, loops) = mapped("f64", "x[i]", "x[i]");
    let found = difference(&core, &loops.replace("0..n {", "0..n - 1 {"));
    assert_eq!(found.found, "undefined");
    assert_eq!(found.index, [found.sizes[0].1 - 1]);
    assert_eq!(found.to_string(), format!("y[0] is undefined instead of {} for n = 1 (integers)", found.expected));
}

/// The last value that is not zero: the order of the loops matters only where a whole row is zero.
#[test]
fn whole_rows_of_zeros_are_tried() {
    let head = "size m, n\ninput x : f64[m, n]\n";
    let core = format!(
        "core f\n{head}y = iterate t in 0..m (a = 0.0) then (a = iterate s in 0..n (b = a) then \
         (b = select(x[t, s] != 0.0, x[t, s], b)) give b) give a\noutput y\n"
    );
    let loops = |outer: &str, inner: &str| {
        format!(
            "loops f\n{head}output y : f64[]\nnest y\ny = 0.0\nfor {outer} {{\n    for {inner} {{\n        \
             y = select(x[i, j] != 0.0, x[i, j], y)\n    }}\n}}\n"
        )
    };
    assert!(matches!(outcome(&core, &loops("i in 0..m", "j in 0..n"), false), Outcome::Agrees(_)));
    let found = difference(&core, &loops("j in 0..n", "i in 0..m"));
    assert!(matches!(found.setting, Setting::Integers | Setting::Rationals), "{found}");
}

#[test]
fn every_branch_is_reached() {
    let core = "core f\nsize n\ninput x : f64[n]\ny = gen i in 0..n. x[i]\noutput y\n";
    let loops = "loops f\nsize n\ninput x : f64[n]\noutput y : f64[n]\nnest y\nfor i in 0..n {\n    \
                 if i >= 37 {\n        y[i] = x[37]\n    } else {\n        y[i] = x[i]\n    }\n}\n";
    let found = difference(core, loops);
    assert!(found.index[0] >= 38, "{found}");
}

/// A sum of which each row is cleared once more, in another iteration of the loop: after the first sums where n is at least 4
/// and k at least 6, which the smallest sizes that run each of the blocks are not.
#[test]
fn blocks_of_one_loop_are_run_in_both_orders() {
    let head = "size n, k, m\ninput x : f64[n, m]\n";
    let core =
        format!("core f\n{head}y = sum t in 2..floor_div(k, 2). gen i in 0..n. gen j in 0..m. x[i, j]\noutput y\n");
    let loops = format!(
        "loops f\n{head}output y : f64[n, m]\nnest y\nfor t in 0..max(n, floor_div(k, 2)) {{\n    if t < n {{\n        \
         for j in 0..m {{\n            y[t, j] = 0.0\n        }}\n    }}\n    \
         if t >= 2 && t < floor_div(k, 2) {{\n        for i in 0..n {{\n            for j in 0..m {{\n                \
         y[i, j] += x[i, j]\n            }}\n        }}\n    }}\n}}\n"
    );
    let found = difference(&core, &loops);
    assert!(found.index[0] >= 3, "{found}");
    // What is proved is not looked for.
    let case = written(&core, &loops);
    let proved = LoopComparison { doubted: false, ..LoopComparison::default() };
    assert!(matches!(validate(&case.meaning, &case.nest, &proved), Outcome::Agrees(_)));
}

/// A loop that always has six iterations, and a block in it that takes more than there are steps to be run in two.
#[test]
fn what_was_run_in_one_iteration_only_is_said() {
    let head = "size n\ninput x : f64[n]\n";
    let gens = ["i", "j", "k", "l"].map(|index| format!("gen {index} in 0..n. ")).concat();
    let core = format!("core f\n{head}y = {gens}x[l]\noutput y\n");
    let loops = format!(
        "loops f\n{head}output y : f64[n, n, n, n]\nnest y\nfor b in 0..max(ceil_div(n, 40), 6) {{\n    \
         if n > 40*b {{\n        for i in 40*b..min(n, 40*b + 40) {{\n            for j in 0..n {{\n                \
         for k in 0..n {{\n                    for l in 0..n {{\n                        y[i, j, k, l] = x[l]\n\
         {}}}\n{}}}\n{}}}\n{}}}\n    }}\n}}\n",
        " ".repeat(20),
        " ".repeat(16),
        " ".repeat(12),
        " ".repeat(8),
    );
    let Outcome::Agrees(evidence) = outcome(&core, &loops, false) else { panic!() };
    let gap = evidence.gap().unwrap_or_default();
    assert!(gap.starts_with("never run: two iterations of the loop over b where "), "{gap}");
}

#[test]
fn evidence_says_what_was_done() {
    let case = &by_hand()[0];
    let Outcome::Agrees(evidence) = validate(&case.meaning, &case.nest, &LoopComparison::default()) else { panic!() };
    let text = evidence.to_string();
    assert!(text.starts_with("equal to the meaning at ") && text.ends_with(" of 400,000 steps"), "{text}");
    let sizes: Vec<i64> =
        evidence.points.iter().filter(|p| p.setting == Setting::Field).map(|point| point.sizes[0].1).collect();
    for size in [1, 3, 4, 5, 7, 8] {
        assert!(sizes.contains(&size), "{sizes:?}");
    }
    assert_eq!(validate(&case.meaning, &case.nest, &LoopComparison::default()), Outcome::Agrees(evidence));
}

#[test]
fn what_takes_too_long_is_not_compared_but_shrunk() {
    let core = "core f\ninput x : f64[3000, 3000]\n\
                y = gen i in 0..3000. gen j in 0..3000. x[j, i]\noutput y\n";
    let loops = "loops f\ninput x : f64[3000, 3000]\noutput y : f64[3000, 3000]\nnest y\n\
                 for i in 0..3000 {\n    for j in 0..3000 {\n        y[i, j] = x[j, i]\n    }\n}\n";
    let case = written(core, loops);
    assert!(matches!(validate(&case.meaning, &case.nest, &LoopComparison::default()), Outcome::Nothing(_)));
    let small = certen_validate::shrunk_program(&case.meaning).expect("literal sizes");
    let nest = certen_loops::lower(&small, FpMode::Relaxed).expect("loops");
    assert!(matches!(validate(&small, &nest, &LoopComparison::default()), Outcome::Agrees(_)));
}

#[test]
fn bisection_finds_the_step_that_broke_it() {
    let nest = |value: &str| {
        let (core, loops) = mapped("f64", "x[i] * z[i]", value);
        written(&core, &loops)
    };
    let values = ["x[i] * z[i]", "z[i] * x[i]", "z[i] * x[i] + f64(0.0)", "z[i] + x[i]", "x[i] + z[i]"];
    let cases: Vec<_> = values.iter().map(|value| nest(value)).collect();
    let nests: Vec<&LoopProgram> = cases.iter().map(|case| &case.nest).collect();
    assert_eq!(bisect(&cases[0].meaning, &nests, &LoopComparison::default()), Some(3));
    assert_eq!(bisect(&cases[0].meaning, &nests[..3], &LoopComparison::default()), None);
    assert_eq!(bisect(&cases[0].meaning, &nests[4..], &LoopComparison::default()), Some(0));
}

#[test]
fn nests_are_compared_up_to_numbers() {
    let tiled = |tile: i64| {
        format!(
            "loops scaled\nsize n\ninput x : f64[n]\noutput y : f64[n]\nnest y\n\
             for io in 0..ceil_div(n, {tile}) {{\n    for ii in 0..min({tile}, n - {tile}*io) {{\n        \
             y[{tile}*io + ii] = x[{tile}*io + ii] * f64(2.0)\n    }}\n}}\n"
        )
    };
    let core = "core scaled\nsize n\ninput x : f64[n]\ny = gen i in 0..n. x[i] * f64(2.0)\noutput y\n";
    let nest = |loops: &str| written(core, loops).nest;
    assert!(scale::same_structure(&nest(&tiled(64)), &nest(&tiled(3))));
    assert!(!scale::same_structure(&nest(&tiled(64)), &nest(&tiled(3).replace("+ ii] =", "] ="))));
    assert!(!scale::same_structure(&nest(&tiled(64)), &nest(&tiled(3).replace("for ii", "vector for ii"))));
}

#[test]
fn rare_data_is_reached_by_tossed_comparisons() {
    // No value that is drawn is 5000000.
    seen_by(Setting::Coins, "i64", "select(x[i] == i64(5000000), x[i] + z[i], z[i])", "z[i]");
}
