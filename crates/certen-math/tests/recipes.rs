//! Recipes are well-formed and short; their values have the signs, ends and special values that they should have.

use certen_math::{Function, Precision, Recipe};

const BOTH: [Precision; 2] = [Precision::Single, Precision::Double];

/// A recipe, what is rare of it, and what is rarer.
fn parts(recipe: &Recipe) -> Vec<&Recipe> {
    std::iter::successors(Some(recipe), |recipe| recipe.rare.as_ref().map(|rare| &*rare.recipe)).collect()
}

#[test]
fn steps_use_what_is_there_and_of_the_right_kind() {
    for function in Function::ALL {
        for precision in BOTH {
            let recipe = function.recipe(precision);
            assert_eq!((recipe.arguments, recipe.precision), (function.arguments(), precision), "{function:?}");
            for part in parts(recipe) {
                assert!(part.kinds().is_some(), "{function:?}");
                assert!(part.steps.iter().enumerate().all(|(at, step)| step.uses().all(|used| used < at)));
                // C compilers take time for each.
                assert!(part.steps.len() <= 240, "{function:?}: {}", part.steps.len());
            }
        }
    }
}

#[test]
fn a_step_of_the_wrong_kind_is_found() {
    let mut recipe = Function::Exp.recipe(Precision::Double).clone();
    let result = recipe.result;
    recipe.steps.push(certen_math::Step::Select(result, result, result));
    assert!(recipe.kinds().is_none());
}

/// A function, its arguments and its value.
type Case<'a> = (&'a str, &'a [f64], f64);

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

#[rustfmt::skip]
const SPECIAL: &[Case<'_>] = &[
    ("exp", &[0.0], 1.0), ("exp", &[-0.0], 1.0), ("exp", &[INF], INF), ("exp", &[-INF], 0.0), ("exp", &[1e300], INF), ("exp", &[-1e300], 0.0),
    ("exp2", &[0.0], 1.0), ("exp2", &[10.0], 1024.0), ("exp2", &[INF], INF), ("exp2", &[-INF], 0.0), ("exp2", &[-3.0], 0.125),
    ("expm1", &[0.0], 0.0), ("expm1", &[-0.0], -0.0), ("expm1", &[INF], INF), ("expm1", &[-INF], -1.0),
    ("log", &[1.0], 0.0), ("log", &[0.0], -INF), ("log", &[-0.0], -INF), ("log", &[-1.0], NAN), ("log", &[INF], INF), ("log", &[-INF], NAN),
    ("log2", &[1.0], 0.0), ("log2", &[1024.0], 10.0), ("log2", &[0.125], -3.0), ("log2", &[0.0], -INF), ("log2", &[-1.0], NAN), ("log2", &[INF], INF),
    ("log10", &[1.0], 0.0), ("log10", &[1000.0], 3.0), ("log10", &[0.0], -INF), ("log10", &[-2.0], NAN), ("log10", &[INF], INF),
    ("log1p", &[0.0], 0.0), ("log1p", &[-0.0], -0.0), ("log1p", &[-1.0], -INF), ("log1p", &[-2.0], NAN), ("log1p", &[INF], INF),
    ("sin", &[0.0], 0.0), ("sin", &[-0.0], -0.0), ("sin", &[INF], NAN), ("sin", &[-INF], NAN),
    ("cos", &[0.0], 1.0), ("cos", &[-0.0], 1.0), ("cos", &[INF], NAN),
    ("tan", &[0.0], 0.0), ("tan", &[-0.0], -0.0), ("tan", &[-INF], NAN),
    ("asin", &[0.0], 0.0), ("asin", &[-0.0], -0.0), ("asin", &[1.5], NAN), ("asin", &[-INF], NAN),
    ("acos", &[1.0], 0.0), ("acos", &[-1.5], NAN), ("acos", &[INF], NAN),
    ("atan", &[0.0], 0.0), ("atan", &[-0.0], -0.0), ("atan", &[INF], std::f64::consts::FRAC_PI_2), ("atan", &[-INF], -std::f64::consts::FRAC_PI_2),
    ("atan2", &[0.0, 1.0], 0.0), ("atan2", &[-0.0, 1.0], -0.0), ("atan2", &[0.0, -1.0], std::f64::consts::PI), ("atan2", &[-0.0, -1.0], -std::f64::consts::PI),
    ("atan2", &[0.0, 0.0], 0.0), ("atan2", &[-0.0, 0.0], -0.0), ("atan2", &[0.0, -0.0], std::f64::consts::PI), ("atan2", &[1.0, 0.0], std::f64::consts::FRAC_PI_2),
    ("atan2", &[INF, INF], std::f64::consts::FRAC_PI_4), ("atan2", &[1.0, INF], 0.0), ("atan2", &[1.0, -INF], std::f64::consts::PI), ("atan2", &[-INF, 1.0], -std::f64::consts::FRAC_PI_2),
    ("atan2", &[NAN, 1.0], NAN), ("atan2", &[1.0, NAN], NAN),
    ("sinh", &[0.0], 0.0), ("sinh", &[-0.0], -0.0), ("sinh", &[INF], INF), ("sinh", &[-INF], -INF), ("sinh", &[-1e4], -INF),
    ("cosh", &[0.0], 1.0), ("cosh", &[INF], INF), ("cosh", &[-INF], INF),
    ("tanh", &[0.0], 0.0), ("tanh", &[-0.0], -0.0), ("tanh", &[INF], 1.0), ("tanh", &[-INF], -1.0), ("tanh", &[1e3], 1.0),
    ("asinh", &[0.0], 0.0), ("asinh", &[-0.0], -0.0), ("asinh", &[INF], INF), ("asinh", &[-INF], -INF),
    ("acosh", &[1.0], 0.0), ("acosh", &[0.5], NAN), ("acosh", &[-2.0], NAN), ("acosh", &[INF], INF), ("acosh", &[-INF], NAN),
    ("atanh", &[0.0], 0.0), ("atanh", &[-0.0], -0.0), ("atanh", &[1.0], INF), ("atanh", &[-1.0], -INF), ("atanh", &[1.5], NAN), ("atanh", &[INF], NAN),
    ("erf", &[0.0], 0.0), ("erf", &[-0.0], -0.0), ("erf", &[INF], 1.0), ("erf", &[-INF], -1.0), ("erf", &[30.0], 1.0),
    ("erfc", &[0.0], 1.0), ("erfc", &[INF], 0.0), ("erfc", &[-INF], 2.0), ("erfc", &[40.0], 0.0), ("erfc", &[-40.0], 2.0),
    ("cbrt", &[0.0], 0.0), ("cbrt", &[-0.0], -0.0), ("cbrt", &[INF], INF), ("cbrt", &[-INF], -INF), ("cbrt", &[27.0], 3.0), ("cbrt", &[-8.0], -2.0),
    ("hypot", &[3.0, 4.0], 5.0), ("hypot", &[0.0, -0.0], 0.0), ("hypot", &[INF, NAN], INF), ("hypot", &[NAN, -INF], INF), ("hypot", &[NAN, 1.0], NAN), ("hypot", &[-5.0, 0.0], 5.0),
    ("sigmoid", &[0.0], 0.5), ("sigmoid", &[INF], 1.0), ("sigmoid", &[-INF], 0.0), ("sigmoid", &[1e4], 1.0), ("sigmoid", &[-1e4], 0.0),
    // IEEE 754, 9.2.1
    ("pow", &[NAN, 0.0], 1.0), ("pow", &[INF, -0.0], 1.0), ("pow", &[1.0, NAN], 1.0), ("pow", &[1.0, INF], 1.0), ("pow", &[-1.0, INF], 1.0), ("pow", &[-1.0, -INF], 1.0),
    ("pow", &[0.0, -3.0], INF), ("pow", &[-0.0, -3.0], -INF), ("pow", &[-0.0, -2.5], INF), ("pow", &[-0.0, -17.0], -INF), ("pow", &[-0.0, -18.0], INF), ("pow", &[0.0, -INF], INF),
    ("pow", &[-0.0, 3.0], -0.0), ("pow", &[-0.0, 19.0], -0.0), ("pow", &[-0.0, 20.0], 0.0), ("pow", &[-0.0, 2.5], 0.0), ("pow", &[0.0, INF], 0.0),
    ("pow", &[INF, 0.5], INF), ("pow", &[INF, -0.5], 0.0), ("pow", &[-INF, 19.0], -INF), ("pow", &[-INF, 20.0], INF), ("pow", &[-INF, 0.5], INF), ("pow", &[-INF, -19.0], -0.0), ("pow", &[-INF, -20.0], 0.0),
    ("pow", &[0.5, INF], 0.0), ("pow", &[0.5, -INF], INF), ("pow", &[-0.5, INF], 0.0), ("pow", &[2.0, INF], INF), ("pow", &[2.0, -INF], 0.0), ("pow", &[-2.0, INF], INF),
    ("pow", &[-2.0, 0.5], NAN), ("pow", &[-2.0, 19.0], -524288.0), ("pow", &[-2.0, 20.0], 1048576.0), ("pow", &[-8.0, 1.0 / 3.0], NAN),
    ("pow", &[NAN, 0.5], NAN), ("pow", &[2.0, NAN], NAN), ("pow", &[2.0, 1e9], INF), ("pow", &[2.0, -1e9], 0.0), ("pow", &[-2.0, 1e9], INF), ("pow", &[-3.0, 1000000001.0], -INF),
];

#[test]
fn special_values_are_those_of_ieee_754_and_c() {
    for (name, arguments, expected) in SPECIAL {
        let function = Function::ALL.iter().find(|function| function.name() == *name).unwrap();
        let short: Vec<f32> = arguments.iter().map(|x| *x as f32).collect();
        let (double, single) = (function.double(arguments), function.single(&short));
        let same = |a: f64, b: f64| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
        assert!(same(double, *expected), "{name}{arguments:?} is {double}, not {expected}");
        // A large exponent in single precision is another number.
        if arguments.iter().all(|x| x.is_nan() || f64::from(*x as f32) == *x) {
            assert!(same(f64::from(single), f64::from(*expected as f32)), "{name}{arguments:?} is {single} in f32");
        }
    }
    for function in Function::ALL {
        assert!(SPECIAL.iter().any(|(name, ..)| function.name() == *name), "{function:?}");
    }
}

#[test]
fn no_number_comes_of_nan_whatever_its_bits_are() {
    for function in Function::ALL.iter().filter(|function| function.arguments() == 1) {
        for bits in [1u64, 0x123, 1 << 51, (1 << 51) + 77, (1 << 52) - 1] {
            for sign in [0, 1 << 63] {
                let nan = f64::from_bits(0x7ff0_0000_0000_0000 | bits | sign);
                assert!(function.double(&[nan]).is_nan(), "{function:?} {bits:x}");
                let short = f32::from_bits(0x7f80_0000 | (bits as u32 & 0x7f_ffff) | 1 | (sign >> 32) as u32);
                assert!(function.single(&[short]).is_nan(), "{function:?} {bits:x}");
            }
        }
    }
}
