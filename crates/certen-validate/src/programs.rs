//! Two programs of Core compared on elements of their outputs, exactly: the check of a rewrite.
//!
//! A few elements of each output, at small sizes that satisfy the facts ([`crate::cover`]), on the inputs of the exact
//! settings ([`crate::inputs`]), computed by the reference evaluator from both programs. Programs that use order are compared
//! in the rationals, which have one. Where one element takes too many steps, both programs are made smaller
//! ([`crate::shrink`]). Deterministic: the same programs are compared on the same elements everywhere, within a number of
//! steps, not a time.

use certen_core::domain::{Field, ShortRational, splitmix};
use certen_core::{Domain, EvalError, Evaluator, Fault, Program, Tensor, index_of};
use certen_syntax::Name;

use crate::cover::{self, Row};
use crate::inputs::{self, Literals, Place};
use crate::shrink::shrunk;

/// What a comparison found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Agreement {
    /// All elements that were compared are equal.
    Agrees {
        /// How many they are.
        elements: usize,
        /// Whether literal sizes were replaced by smaller ones.
        smaller: bool,
    },
    /// As far as the steps went, elements are equal.
    OutOfBudget {
        /// How many were compared; perhaps none.
        elements: usize,
    },
    /// An element has two values.
    Differs {
        /// The output.
        output: Name,
        /// The element.
        index: Vec<i64>,
        /// The sizes.
        sizes: Vec<(Name, i64)>,
        /// What the first program and what the second one gives.
        values: [String; 2],
    },
}

/// How many elements of an output are compared; one with at most that many is compared whole.
const ELEMENTS: usize = 8;

/// Compares two programs with the same inputs and outputs, in at most about `budget` steps of the evaluator. Where one
/// element takes more, they are compared at smaller literal sizes, in as many steps again.
pub fn agree(before: &Program, after: &Program, budget: u64) -> Agreement {
    match agree_at_own_sizes(before, after, budget) {
        Agreement::OutOfBudget { elements: 0 } => match shrunk(before, after) {
            Some((before, after)) => match agree_at_own_sizes(&before, &after, budget) {
                Agreement::Agrees { elements, .. } => Agreement::Agrees { elements, smaller: true },
                agreement => agreement,
            },
            None => Agreement::OutOfBudget { elements: 0 },
        },
        agreement => agreement,
    }
}

fn agree_at_own_sizes(before: &Program, after: &Program, budget: u64) -> Agreement {
    let mut comparison = Comparison { before, after, compared: 0, out_of_budget: false };
    let (choices, literals) = (cover::few(before), Literals::of(before));
    if choices.is_empty() {
        return Agreement::OutOfBudget { elements: 0 };
    }
    let share = budget / choices.len() as u64;
    for (round, sizes) in choices.iter().enumerate() {
        // A multiple of 4: few elements are compared, so that no share of them should be one and the same number.
        let seed = 4 * (1 + round as u64);
        let exact = before
            .terms
            .uses_order()
            .then(|| comparison.at(&ShortRational, sizes, seed, share, |place| inputs::rational(&literals, place)));
        let found = match exact {
            // What the rationals do not have, a field can stand for.
            None | Some(Err(NoValues)) => comparison.at(&Field { seed }, sizes, seed, share, inputs::field),
            Some(found) => found,
        };
        if let Ok(Some(difference)) = found {
            return difference;
        }
    }
    match comparison {
        Comparison { compared: elements, out_of_budget: false, .. } => Agreement::Agrees { elements, smaller: false },
        Comparison { compared: elements, .. } => Agreement::OutOfBudget { elements },
    }
}

/// The two programs' values cannot be computed in a domain.
struct NoValues;

struct Comparison<'a> {
    before: &'a Program,
    after: &'a Program,
    compared: usize,
    out_of_budget: bool,
}

impl Comparison<'_> {
    /// Compares elements in a domain, at sizes; inputs are made of positions and element types.
    fn at<D: Domain>(
        &mut self,
        domain: &D,
        sizes: &Row,
        seed: u64,
        budget: u64,
        element: impl Fn(Place) -> Option<D::Value>,
    ) -> Result<Option<Agreement>, NoValues> {
        let value = |name: Name| sizes.iter().find(|(size, _)| *size == name).map(|(_, value)| *value);
        let mut left = budget;
        let mut inputs = Vec::new();
        for (number, input) in self.before.inputs.iter().enumerate() {
            let Ok(shape) = input.ty.shape_at(&value) else { return Ok(None) };
            let count = shape.iter().try_fold(1u64, |product, size| product.checked_mul(*size as u64));
            // Filling an input is about ten times as fast as evaluating a step.
            let Some(rest) = count.and_then(|count| left.checked_sub(1 + count / 10)) else {
                self.out_of_budget = true;
                return Ok(None);
            };
            left = rest;
            let (elem, elements) = (input.ty.elem, shape.iter().product());
            let at = |position: usize| {
                element(Place { seed, input: number, position, count: elements, elem }).ok_or(NoValues)
            };
            let Some(Ok(tensor)) = Tensor::from_fn(shape, at) else { return Ok(None) };
            inputs.push((input.name, tensor));
        }
        let evaluator = |program| {
            Evaluator::new(program, domain, sizes.iter().copied(), inputs.clone()).map(|e| e.with_fuel(left / 2))
        };
        let (Ok(mut first), Ok(mut second)) = (evaluator(self.before), evaluator(self.after)) else { return Ok(None) };
        // Asking for an element takes a look at every binding.
        let overhead = 1 + (self.before.bindings.len() + self.after.bindings.len()) as u64 / 10;
        let mut asked = 0;
        let types = self.before.types();
        for (output, shown) in &self.before.outputs {
            let Some(Ok(shape)) = types.get(shown).map(|ty| ty.shape_at(&value)) else { continue };
            for index in sampled(&shape) {
                asked += overhead;
                if asked > left {
                    self.out_of_budget = true;
                    return Ok(None);
                }
                let expected = match first.element(*output, &index) {
                    Ok(value) => value,
                    Err(EvalError::Fuel) => {
                        self.out_of_budget = true;
                        return Ok(None);
                    }
                    Err(EvalError::Fault(Fault::Unsupported(_))) => return Err(NoValues),
                    // What is undefined there may be anything here.
                    Err(_) => continue,
                };
                let found = match second.element(*output, &index) {
                    Err(EvalError::Fuel) => {
                        self.out_of_budget = true;
                        return Ok(None);
                    }
                    Ok(value) if value == expected => {
                        self.compared += 1;
                        continue;
                    }
                    Ok(value) => format!("{value:?}"),
                    Err(error) => error.to_string(),
                };
                let values = [format!("{expected:?}"), found];
                return Ok(Some(Agreement::Differs { output: *output, index, sizes: sizes.clone(), values }));
            }
        }
        Ok(None)
    }
}

/// All elements of a small tensor; the first, the last and some others of a large one.
fn sampled(shape: &[usize]) -> Vec<Vec<i64>> {
    let count = shape.iter().fold(1u64, |product, size| product.saturating_mul(*size as u64));
    let positions: Vec<u64> = match count {
        count if count <= ELEMENTS as u64 => (0..count).collect(),
        _ => {
            let middle = (2..ELEMENTS as u64).map(|at| splitmix(at) % count);
            [0, count - 1].into_iter().chain(middle).collect()
        }
    };
    positions.into_iter().map(|position| index_of(shape, position as usize)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use certen_core::parse_program;
    use certen_syntax::Sources;

    fn core(body: &str) -> Program {
        let text = format!(
            "core t\nsize m, n\nwhere m >= 1, n >= 1\ninput A : f64[m, n]\ninput x : f64[n]\n{body}\noutput y\n"
        );
        let mut sources = Sources::new();
        let file = sources.add("t.core", text.as_str());
        parse_program(&sources, file).unwrap_or_else(|errors| panic!("{text}\n{errors:?}"))
    }

    fn compared(before: &str, after: &str) -> Agreement {
        agree(&core(before), &core(after), 100_000)
    }

    #[test]
    fn equal_programs_agree() {
        let [before, after] = [
            "y = gen i in 0..m. sum k in 0..n. A[i, k] * x[k]",
            "t = gen i in 0..m. gen k in 0..n. x[k] * A[i, k]\ny = gen i in 0..m. sum k in 0..n. t[i, k]",
        ];
        assert!(matches!(compared(before, after), Agreement::Agrees { elements: 3.., .. }));
    }

    #[test]
    fn a_difference_is_found_and_shown() {
        for (before, after) in [
            ("y = sum k in 0..n. x[k]", "y = sum k in 1..n. x[k]"),
            ("y = gen i in 0..m. A[i, 0] * x[0]", "y = gen i in 0..m. A[i, 0] + x[0]"),
            // Seen with the order of the rationals only: in the field, `min` is something else.
            ("y = min(x[0] * x[0], f64(0.0))", "y = x[0] * x[0]"),
            // Different at numbers that are not whole only.
            ("y = gen i in 0..m. gen j in 0..n. floor(A[i, j])", "y = A"),
            ("y = gen i in 0..m. gen j in 0..n. round(A[i, j])", "y = gen i in 0..m. gen j in 0..n. floor(A[i, j])"),
            // Different only where m is not 1.
            ("y = A[m - 1, 0]", "y = A[0, 0]"),
        ] {
            let found = compared(before, after);
            assert!(
                matches!(&found, Agreement::Differs { values, .. } if values[0] != values[1]),
                "{before}: {found:?}"
            );
        }
    }

    #[test]
    fn what_is_too_large_is_compared_at_smaller_sizes() {
        let text = "y = sum k in 0..1000000. sum l in 0..2000000. x[0] * x[0]";
        assert!(matches!(compared(text, text), Agreement::Agrees { elements: 1.., smaller: true }));
        let lifted = "y = index.f64(2000000) * (index.f64(1000000) * (x[0] * x[0]))";
        assert!(matches!(compared(text, lifted), Agreement::Agrees { elements: 1.., smaller: true }));
        let wrong = "y = sum k in 0..1000000. sum l in 0..1000000. x[0] * x[0]";
        assert!(matches!(compared(text, wrong), Agreement::Differs { .. }));
        // Conditions may speak of sizes.
        let text = "y = sum k in 0..1000000 where k >= 3. sum l in 0..1000000. x[0] * x[0]";
        assert_eq!(compared(text, text), Agreement::OutOfBudget { elements: 0 });
    }

    #[test]
    fn functions_that_the_rationals_do_not_have() {
        let text = "y = max(exp(x[0]), f64(0.0))";
        assert!(matches!(compared(text, text), Agreement::Agrees { elements: 1.., .. }));
    }
}
