//! The interpreter of recipes: one number at a time.

use std::cell::RefCell;

use crate::recipe::{One, Precision, Recipe, Step, Two};

thread_local! {
    /// The values of the steps: floats and integers by their bits, truth values as 0 and 1.
    static VALUES: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

macro_rules! evaluate {
    ($name:ident $float:ident $bits:ident) => {
        fn $name(recipe: &Recipe, arguments: &[f64], values: &mut Vec<u64>) -> f64 {
            values.clear();
            for step in &recipe.steps {
                let float = |at: usize| $float::from_bits(values[at] as $bits);
                let bits = |at: usize| values[at] as $bits;
                let value = match *step {
                    Step::Argument(at) => u64::from((arguments[at] as $float).to_bits()),
                    Step::Float(value) => u64::from((f64::from_bits(value) as $float).to_bits()),
                    Step::Integer(value) => value,
                    Step::One(op, a) => match op {
                        One::Neg => u64::from((-float(a)).to_bits()),
                        One::Abs => u64::from(float(a).abs().to_bits()),
                        One::Sqrt => u64::from(float(a).sqrt().to_bits()),
                        One::Single => u64::from($float::from(float(a) as f32).to_bits()),
                        One::ToBits | One::FromBits => values[a],
                        One::Up(places) => u64::from(bits(a) << places),
                        One::Down(places) => u64::from(bits(a) >> places),
                        One::Not => values[a] ^ 1,
                    },
                    Step::Two(op, a, b) => match op {
                        Two::Add => u64::from((float(a) + float(b)).to_bits()),
                        Two::Sub => u64::from((float(a) - float(b)).to_bits()),
                        Two::Mul => u64::from((float(a) * float(b)).to_bits()),
                        Two::Div => u64::from((float(a) / float(b)).to_bits()),
                        Two::Less => u64::from(float(a) < float(b)),
                        Two::LessEqual => u64::from(float(a) <= float(b)),
                        Two::Equal => u64::from(float(a) == float(b)),
                        Two::Plus => u64::from(bits(a).wrapping_add(bits(b))),
                        Two::Minus => u64::from(bits(a).wrapping_sub(bits(b))),
                        Two::And | Two::Both => values[a] & values[b],
                        Two::Or | Two::Either => values[a] | values[b],
                        Two::Xor => values[a] ^ values[b],
                        Two::Same => u64::from(values[a] == values[b]),
                    },
                    Step::Fma(a, b, c) => u64::from(float(a).mul_add(float(b), float(c)).to_bits()),
                    Step::Select(mask, a, b) => values[if values[mask] == 1 { a } else { b }],
                    Step::Look(table, at) => u64::from((table.elements()[values[at] as usize] as $float).to_bits()),
                };
                values.push(value);
            }
            let is_rare = recipe.rare.as_ref().filter(|rare| values[rare.when] == 1);
            let result = f64::from($float::from_bits(values[recipe.result] as $bits));
            match is_rare {
                Some(rare) => with(&rare.recipe, arguments, values),
                None => result,
            }
        }
    };
}

evaluate!(single f32 u32);
evaluate!(double f64 u64);

fn with(recipe: &Recipe, arguments: &[f64], values: &mut Vec<u64>) -> f64 {
    let result = match recipe.working {
        Precision::Single => single(recipe, arguments, values),
        Precision::Double => double(recipe, arguments, values),
    };
    if recipe.precision == Precision::Single { f64::from(result as f32) } else { result }
}

/// The value of a recipe. Arguments and result of single precision are exact as f64.
pub(crate) fn value(recipe: &Recipe, arguments: &[f64]) -> f64 {
    VALUES.with_borrow_mut(|values| with(recipe, arguments, values))
}
