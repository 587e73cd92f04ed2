//! Tests: where a program and its loops are run side by side, and what comes out.
//!
//! Nothing is chosen: sizes come from a short list of small numbers and from the numbers that stand in the nest (a tile
//! of 8 gives 7, 8, 9 and 17) and in the facts, as far as these allow, inputs from the seed of the certificate. Runs
//! are in the field, with *undefined* as a value. Every second point has small signed numbers as inputs, so that
//! comparisons go both ways. A point is left out where the program itself has no value, or it or the nest takes more steps
//! than there is fuel for. The fuel is counted, so everyone leaves out the same points; programs of large fixed sizes have
//! none. A nest that is too slow at all points is refused.
//!
//! An element that the program leaves undefined can be anything in the nest; every other has to be the same.

use std::collections::{BTreeSet, HashSet};
use std::ops::RangeInclusive;

use certen_core::domain::{Element, Field, Partial};
use certen_core::{ElemType, EvalError, Evaluator, Named, Parameter, Program, Tensor};
use certen_index::Cond;
use certen_loops::LoopProgram;
use certen_syntax::Name;
use sha2::{Digest, Sha256};

use crate::json::{object, quoted};
use crate::machine::{FieldValue, run};
use crate::rejection::Rejection;

/// Points that are tried.
const POINTS: usize = 16;

/// Steps of the reference evaluator at one point, if there are several to choose from.
const FUEL: u64 = 15_000;

/// Steps of the reference evaluator at the one point of a program of fixed sizes.
const FIXED_FUEL: u64 = 60_000;

/// How many more steps the nest may take: a schedule can compute things twice.
const MORE: u64 = 8;

/// Steps of the nest after which no further point is begun.
const ENOUGH: u64 = 60_000;

/// Elements of the inputs of one point.
const MAX_INPUTS: usize = 20_000;

/// A place where a program and its loops agree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Test {
    /// Whether the inputs are small signed numbers and not any elements of the field.
    pub small: bool,
    /// The sizes, in the program's order.
    pub sizes: Vec<(Name, i64)>,
    /// How many elements were compared.
    pub elements: u64,
    /// A hash of their values.
    pub digest: String,
}

impl Test {
    /// As it stands in a certificate.
    pub(crate) fn json(&self) -> String {
        let sizes = object(self.sizes.iter().map(|(name, value)| (name.as_str(), value.to_string())));
        let inputs = quoted(if self.small { "small" } else { "field" });
        let (elements, digest) = (self.elements.to_string(), quoted(&self.digest));
        object([("inputs", inputs), ("sizes", sizes), ("elements", elements), ("digest", digest)])
    }
}

/// Runs a program and its loops at all points that the texts and the seed give.
///
/// # Errors
/// If they do not agree.
pub fn tests(meaning: &Program, nest: &LoopProgram, seed: u64) -> Result<Vec<Test>, Rejection> {
    let (mut tests, mut spent) = (Vec::new(), 0);
    let mut too_slow = None;
    let fuel = if meaning.sizes.is_empty() { FIXED_FUEL } else { FUEL };
    for (at, sizes) in points(meaning, nest).into_iter().enumerate() {
        let small = at % 2 == 1;
        let mut random = Random(seed ^ (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let field = Partial(Field { seed: random.next() });
        let Some(inputs) = inputs(&meaning.inputs, &sizes, small, &mut random) else { continue };
        let expected = Evaluator::new(meaning, &field, sizes.iter().copied(), inputs.clone())
            .and_then(|evaluator| evaluator.with_fuel(fuel).run());
        let Ok(expected) = expected else { continue };
        let place = || sizes.iter().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().join(", ");
        let differs = |why: String| Rejection::new("tests", format!("for {}: {why}", place()));
        let (found, left) = match run(nest, &field, &sizes, inputs, MORE * fuel) {
            Ok(ran) => ran,
            Err(error) => {
                let rejection = differs(format!("the nest has no value: {error}"));
                if error != EvalError::Fuel {
                    return Err(rejection);
                }
                too_slow = Some(rejection);
                continue;
            }
        };
        let (elements, digest) = compare(&expected, &found).map_err(differs)?;
        tests.push(Test { small, sizes, elements, digest });
        spent += MORE * fuel - left;
        if spent > ENOUGH {
            break;
        }
    }
    match too_slow {
        Some(rejection) if tests.is_empty() => Err(rejection),
        _ => Ok(tests),
    }
}

/// How many elements are defined, and a hash of them.
fn compare(expected: &Named<FieldValue>, found: &Named<FieldValue>) -> Result<(u64, String), String> {
    let (mut elements, mut hash) = (0, Sha256::new());
    if expected.len() != found.len() {
        return Err("there are other outputs".into());
    }
    for ((name, expected), (_, found)) in expected.iter().zip(found) {
        if expected.shape() != found.shape() {
            return Err(format!("{name} has shape {:?}, in the nest {:?}", expected.shape(), found.shape()));
        }
        for (at, (expected, found)) in expected.data().iter().zip(found.data()).enumerate() {
            let Some(expected) = expected else { continue };
            if found.as_ref() != Some(expected) {
                let found = found.map_or("undefined".into(), |found| found.to_string());
                return Err(format!("element {at} of {name}, row by row, is {expected}, in the nest {found}"));
            }
            elements += 1;
            hash.update(match expected {
                Element::Number(value) => value.to_le_bytes(),
                Element::Bool(value) => u64::from(*value).to_be_bytes(),
            });
        }
    }
    let digest = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    Ok((elements, digest))
}

/// Inputs at these sizes; none if a size is negative or there would be too many elements.
fn inputs(
    parameters: &[Parameter],
    sizes: &[(Name, i64)],
    small: bool,
    random: &mut Random,
) -> Option<Named<FieldValue>> {
    let value = |name| sizes.iter().find(|(size, _)| *size == name).map(|(_, value)| *value);
    let (mut inputs, mut left) = (Vec::new(), MAX_INPUTS);
    for Parameter { name, ty } in parameters {
        let shape = ty.shape_at(&value).ok()?;
        let elements = shape.iter().try_fold(1usize, |product, size| product.checked_mul(*size))?;
        left = left.checked_sub(elements)?;
        let mut element = || {
            let bits = random.next();
            Some(match ty.elem {
                ElemType::Bool => Element::Bool(bits & 1 == 1),
                _ if small => Element::from((bits % 19) as i64 - 9),
                _ => Element::reduce(bits),
            })
        };
        inputs.push((*name, Tensor::new(shape, (0..elements).map(|_| element()).collect())?));
    }
    Some(inputs)
}

/// The sizes at which a program and its loops are run, none twice.
fn points(meaning: &Program, nest: &LoopProgram) -> Vec<Vec<(Name, i64)>> {
    if meaning.sizes.is_empty() {
        return vec![Vec::new(); 2];
    }
    let mut conditions = meaning.facts.clone();
    // No dimension of an input is negative.
    conditions.extend(meaning.inputs.iter().flat_map(|input| input.ty.shape.iter().cloned().map(Cond::Ge)));
    let facts: Vec<String> = conditions.iter().map(Cond::to_string).collect();
    let candidates = candidates(&nest.to_string(), &facts.join(", "));
    let mut points: Vec<Vec<(Name, i64)>> = Vec::new();
    for turn in 0..4 * POINTS {
        if points.len() == POINTS {
            break;
        }
        if let Some(point) = point(&meaning.sizes, &conditions, &candidates, turn)
            && !points.contains(&point)
        {
            points.push(point);
        }
    }
    points
}

/// Values of sizes that are worth trying: small ones, those around numbers of the nest, those that the facts ask for.
fn candidates(nest: &str, facts: &str) -> Vec<i64> {
    let mut candidates = vec![3, 5, 1, 2, 7, 0, 4];
    for (at, number) in numbers(nest, 4..=64).into_iter().rev().take(3).enumerate() {
        candidates.extend([number + 1, number]);
        if at < 2 && number <= 16 {
            candidates.extend([number - 1, 2 * number + 1]);
        }
    }
    for number in numbers(facts, 8..=10_000) {
        candidates.extend([number, number + 1]);
    }
    let mut seen = HashSet::new();
    candidates.retain(|candidate| seen.insert(*candidate));
    candidates
}

/// The numbers of a text that are in a range, smallest first, none twice.
fn numbers(text: &str, wanted: RangeInclusive<i64>) -> BTreeSet<i64> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.')));
    words.filter_map(|word| word.parse().ok()).filter(|number| wanted.contains(number)).collect()
}

/// Sizes that satisfy the conditions: the first found, where each size begins at another candidate on each turn.
fn point(sizes: &[Name], conditions: &[Cond], candidates: &[i64], turn: usize) -> Option<Vec<(Name, i64)>> {
    // A condition is looked at as soon as its last size has a value.
    let mut due: Vec<Vec<&Cond>> = vec![Vec::new(); sizes.len()];
    for cond in conditions {
        let mut names = Default::default();
        cond.collect_names(&mut names);
        let last = names.iter().filter_map(|name| sizes.iter().position(|size| size == name)).max();
        due.get_mut(last.unwrap_or(0))?.push(cond);
    }
    let (mut tried, mut values) = (vec![0], Vec::<i64>::new());
    for _ in 0..2_000 {
        let at = values.len();
        if at == sizes.len() {
            return Some(sizes.iter().copied().zip(values).collect());
        }
        let next = tried.last_mut()?;
        if *next == candidates.len() {
            tried.pop();
            values.pop()?;
            continue;
        }
        let value = candidates[(*next + turn * (2 * at + 1) + at) % candidates.len()];
        *next += 1;
        values.push(value);
        let known = |name| sizes.iter().position(|size| *size == name).and_then(|at| values.get(at).copied());
        if due[at].iter().all(|cond| cond.eval(&known) == Ok(true)) {
            tried.push(0);
        } else {
            values.pop();
        }
    }
    None
}

/// Pseudo-random numbers: splitmix64, after Steele, Lea and Flood.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ bits >> 31
    }
}
