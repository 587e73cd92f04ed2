//! How exact functions are: against values with more bits, and single precision against double precision.
//!
//! `values.txt` has arguments, easy and hard, with values of 106 bits. In single precision the function in double precision
//! is exact enough to compare with, on as many arguments as the test wants. `ulps` measures everything, for days.

use certen_math::Function;

/// What the page on functions says, in units in the last place.
fn bound(function: Function, is_single: bool) -> f64 {
    match (function, is_single) {
        (_, true) => 1.0,
        (
            Function::Tan | Function::Tanh | Function::Atan2 | Function::Sigmoid | Function::Sinh | Function::Erfc,
            false,
        ) => 2.0,
        (_, false) => 1.5,
    }
}

/// The distance of two neighbours around a number.
fn unit(value: f64, is_single: bool) -> f64 {
    let (fraction, least) = if is_single { (23, -149) } else { (52, -1074) };
    let exponent = (value.to_bits() >> 52 & 0x7ff) as i32 - 1023;
    // Two factors, because the least power of two is none by itself.
    let place = (exponent - fraction).max(least);
    2f64.powi(place / 2) * 2f64.powi(place - place / 2)
}

/// How far a result is from a sum of two numbers, in units in the last place.
fn error(result: f64, high: f64, low: f64, is_single: bool) -> f64 {
    let largest = if is_single { f64::from(f32::MAX) } else { f64::MAX };
    if high.is_infinite() || high.abs() > largest {
        // Half a unit above the largest number, and from there on.
        let near = is_single && high.abs() < f64::from(f32::MAX) * (1.0 + 6e-8);
        return if result == high.signum() * f64::INFINITY || (near && result == high.signum() * largest) {
            0.0
        } else {
            f64::INFINITY
        };
    }
    let unit = unit(high, is_single);
    if is_single { ((result - high) - low).abs() / unit } else { ((result - high) / unit - low / unit).abs() }
}

#[test]
fn values_are_near_those_with_more_bits() {
    let mut seen = std::collections::HashSet::new();
    for line in include_str!("values.txt").lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let function = *Function::ALL.iter().find(|function| function.name() == words[0]).unwrap();
        let is_single = words[1] == "f32";
        let numbers: Vec<f64> =
            words[2..].iter().map(|word| f64::from_bits(u64::from_str_radix(word, 16).unwrap())).collect();
        let (arguments, value) = numbers.split_at(function.arguments());
        let result = match is_single {
            true => f64::from(function.single(&arguments.iter().map(|x| *x as f32).collect::<Vec<f32>>())),
            false => function.double(arguments),
        };
        let error = error(result, value[0], value[1], is_single);
        assert!(error <= bound(function, is_single), "{function:?} of {arguments:?} is {result}: {error} units off");
        seen.insert((function, is_single));
    }
    assert_eq!(seen.len(), 2 * Function::ALL.len());
}

/// Pseudo-random bits.
fn bits(at: u64) -> u64 {
    let mut z = at.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Arguments of all sizes, half of them where functions are not constant.
fn argument(at: u64) -> f32 {
    match at % 2 {
        0 => f32::from_bits(bits(at) as u32),
        _ => ((bits(at) >> 40) as f32 / (1 << 20) as f32 - 8.0) * [1.0, 0.1, 10.0][(at % 3) as usize],
    }
}

#[test]
fn single_precision_is_double_precision_rounded() {
    for function in Function::ALL {
        let mut worst = 0.0f64;
        for at in 0..40_000 {
            let arguments = [argument(2 * at), argument(2 * at + 1 + at % 2)];
            // Small whole exponents are products that are rounded in each step.
            if *function == Function::Pow && arguments[1].abs() <= 16.0 && arguments[1].fract() == 0.0 {
                continue;
            }
            let (result, value) = (function.single(&arguments), function.double(&arguments.map(f64::from)));
            assert_eq!(result.is_nan(), value.is_nan(), "{function:?} of {arguments:?}");
            if !value.is_nan() {
                let error = error(f64::from(result), value, 0.0, true);
                assert!(error <= 1.0, "{function:?} of {arguments:?} is {result}, not {value}: {error} units off");
                worst = worst.max(error);
            }
        }
        // Some results are rounded.
        assert!(worst > 0.3, "{function:?}: {worst}");
    }
}
