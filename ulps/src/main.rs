//! How exact the functions are: `certen-ulps FUNCTION PRECISION [COUNT]`, as README.md says.
//!
//! Arguments are made in pieces, each from its number alone, so that a run can be stopped and continued.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::{env, fs, process};

use certen_math::{Function, MAX_MULTIPLIED};
use rug::Float;
use rug::ops::Pow;

/// Into how many pieces a run is divided.
const PIECES: u64 = 256;

/// The bits of what functions are compared with.
const BITS: u32 = 150;

/// The largest error, and its argument.
#[derive(Clone, Copy, Default)]
struct Worst {
    error: f64,
    arguments: [f64; 2],
}

/// What MPFR says.
fn reference(function: Function, [x, y]: [f64; 2]) -> Float {
    let (x, y) = (Float::with_val(BITS, x), Float::with_val(BITS, y));
    match function {
        Function::Exp => x.exp(),
        Function::Exp2 => x.exp2(),
        Function::Expm1 => x.exp_m1(),
        Function::Log => x.ln(),
        Function::Log2 => x.log2(),
        Function::Log10 => x.log10(),
        Function::Log1p => x.ln_1p(),
        Function::Sin => x.sin(),
        Function::Cos => x.cos(),
        Function::Tan => x.tan(),
        Function::Asin => x.asin(),
        Function::Acos => x.acos(),
        Function::Atan => x.atan(),
        Function::Atan2 => x.atan2(&y),
        Function::Sinh => x.sinh(),
        Function::Cosh => x.cosh(),
        Function::Tanh => x.tanh(),
        Function::Asinh => x.asinh(),
        Function::Acosh => x.acosh(),
        Function::Atanh => x.atanh(),
        Function::Erf => x.erf(),
        Function::Erfc => x.erfc(),
        Function::Pow => x.pow(&y),
        Function::Cbrt => x.cbrt(),
        Function::Hypot => x.hypot(&y),
        Function::Sigmoid => ((-x).exp() + 1u32).recip(),
    }
}

/// How far a result is from a value, in units in the last place of the value.
fn error(result: f64, value: &Float, single: bool) -> f64 {
    let (digits, least, most) = if single { (24, -149, f64::from(f32::MAX)) } else { (53, -1074, f64::MAX) };
    if value.is_nan() || result.is_nan() {
        return if value.is_nan() && result.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let unit = |exponent: i32| Float::with_val(BITS, 1) << (exponent - digits).max(least);
    let Some(exponent) = value.get_exp() else {
        // Zero and infinity.
        return if value.is_zero() == (result == 0.0) && value.is_infinite() == result.is_infinite() { 0.0 } else { f64::INFINITY };
    };
    if result.is_infinite() {
        // The next number after the largest, if there were one.
        let end = Float::with_val(BITS, most) + unit(digits - least.abs() + if single { 253 } else { 2045 });
        let distance = (end - value.clone().abs()) / unit(exponent);
        return if value.is_sign_negative() == (result < 0.0) { distance.to_f64().max(0.0) } else { f64::INFINITY };
    }
    ((Float::with_val(BITS, result) - value).abs() / unit(exponent)).to_f64()
}

/// Pseudo-random bits.
fn bits(at: u64) -> u64 {
    let mut z = at.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The argument with a number: uniform in bits, or where functions vary.
fn argument(at: u64, single: bool, varies: f64) -> f64 {
    let random = bits(at);
    match at % 2 {
        0 if single => f64::from(f32::from_bits(random as u32)),
        0 => f64::from_bits(random),
        _ => {
            let value = (random >> 11) as f64 / (1u64 << 53) as f64 * 2.0 - 1.0;
            let value = value * [varies, varies / 8.0, varies / 300.0][(random % 3) as usize];
            if single { f64::from(value as f32) } else { value }
        }
    }
}

/// Up to which size a function varies.
fn varies(function: Function, single: bool) -> f64 {
    match function {
        Function::Exp | Function::Expm1 | Function::Sinh | Function::Cosh | Function::Sigmoid => {
            if single { 105.0 } else { 750.0 }
        }
        Function::Exp2 => if single { 150.0 } else { 1080.0 },
        Function::Asin | Function::Acos | Function::Atanh => 1.0,
        Function::Tanh => 22.0,
        Function::Erf => 6.5,
        Function::Erfc => if single { 11.0 } else { 28.0 },
        _ => 300.0,
    }
}

/// The worst of a piece: of all arguments of single precision, or of a number of them.
fn piece(function: Function, single: bool, count: Option<u64>, piece: u64) -> Worst {
    let mut worst = Worst::default();
    let (from, to) = match count {
        None => (piece << 24, (piece + 1) << 24),
        Some(count) => (count / PIECES * piece, count / PIECES * (piece + 1)),
    };
    let varies = varies(function, single);
    for at in from..to {
        let arguments = match count {
            None => [f64::from(f32::from_bits(at as u32)), 0.0],
            Some(_) => [argument(2 * at + (at & 1), single, varies), argument(2 * at + 1 + (at >> 1 & 1), single, varies)],
        };
        let [x, y] = arguments;
        // A product, which is another definition.
        if function == Function::Pow && y.fract() == 0.0 && y.abs() <= MAX_MULTIPLIED as f64 {
            continue;
        }
        let result = if single { f64::from(function.single(&[x as f32, y as f32])) } else { function.double(&arguments) };
        let error = error(result, &reference(function, arguments), single);
        if error > worst.error {
            worst = Worst { error, arguments };
        }
    }
    worst
}

fn measure(function: Function, single: bool, count: Option<u64>) {
    let precision = if single { "f32" } else { "f64" };
    let path = format!("ulps-{}-{precision}.txt", function.name());
    let head = format!("{count:?}");
    // Pieces that an earlier run has done.
    let mut done: BTreeMap<u64, Worst> = BTreeMap::new();
    let kept = fs::read_to_string(&path).unwrap_or_default();
    for line in kept.lines().skip(1).filter(|_| kept.lines().next() == Some(&head)) {
        let numbers: Vec<u64> = line.split(' ').filter_map(|word| u64::from_str_radix(word, 16).ok()).collect();
        if let [at, error, x, y] = numbers[..] {
            done.insert(at, Worst { error: f64::from_bits(error), arguments: [f64::from_bits(x), f64::from_bits(y)] });
        }
    }
    for at in 0..PIECES {
        if done.contains_key(&at) {
            continue;
        }
        done.insert(at, piece(function, single, count, at));
        let mut text = head.clone();
        for (at, Worst { error, arguments: [x, y] }) in &done {
            let _ = write!(text, "\n{at:x} {:x} {:x} {:x}", error.to_bits(), x.to_bits(), y.to_bits());
        }
        if let Err(error) = fs::write(&path, text + "\n") {
            eprintln!("{path}: {error}");
            process::exit(3);
        }
    }
    let worst = done.values().max_by(|a, b| a.error.total_cmp(&b.error)).copied().unwrap_or_default();
    let arguments = &worst.arguments[..function.arguments()];
    println!("{} {precision}: {:.3} at {arguments:?}", function.name(), worst.error);
}

fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    let functions: Vec<Function> = Function::ALL
        .iter()
        .copied()
        .filter(|function| words.first().is_some_and(|word| word == "all" || word == function.name()))
        .collect();
    let single = match words.get(1).map(String::as_str) {
        Some("f32") => true,
        Some("f64") => false,
        _ => {
            eprintln!("certen-ulps FUNCTION|all f32|f64 [COUNT]: see README.md");
            process::exit(2);
        }
    };
    let count = words.get(2).and_then(|word| word.parse::<u64>().ok());
    for function in functions {
        if count.is_none() && (!single || function.arguments() > 1) {
            eprintln!("{}: say how many arguments", function.name());
            continue;
        }
        measure(function, single, count);
    }
}
