//! Variants of a program side by side: compiled, run on the same inputs, compared, and timed in turns.
//!
//! What a time on a machine is worth depends on what else the machine does. So variants run in rounds, one after the
//! other in each, beginning with another one every time; of each the best round is told, and the median, which shows how
//! far others have disturbed it. Inputs are made once, all variants read the same ones and write the same outputs, and
//! each runs before it is timed.
//!
//! Needs: a C compiler. Guarantees: only variants whose results agree are timed; integers agree exactly, floats as far
//! as another order of the same operations can make them differ, or exactly where they have to be computed as written.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use certen_core::domain::Scalar;
use certen_core::{ElemType, TensorType, index_of};
use certen_runtime::{Array, NativeKernel, RuntimeError, default_threads, with_threads};
use certen_syntax::{Code, Diagnostic, Name};

use crate::call::{Call, Input, InputArray, is_free};
use crate::choice::Choice;
use crate::failure::Failure;
use crate::options::{Options, is_strict};
use crate::pipeline::Module;
use crate::texts::Texts;

/// A round of a variant lasts at least this long: what is shorter runs several times in it.
const SHORTEST_ROUND: Duration = Duration::from_millis(1);

/// How often something runs in a round, at most.
const MOST_RUNS: u128 = 10_000;

/// Rounds, where the caller does not say how many.
const ROUNDS: std::ops::RangeInclusive<u128> = 3..=1000;

/// Sums of a few terms: what may differ by less is not worth a message.
const FEWEST_OPERATIONS: i64 = 16;

/// How variants are timed.
#[derive(Clone, Debug)]
pub struct BenchOptions {
    /// With how many threads, each by itself; none for as many as there are by default.
    pub threads: Vec<NonZeroUsize>,
    /// How many rounds; none for as many as the time allows.
    pub rounds: Option<NonZeroUsize>,
    /// How long the rounds of a variant may take together.
    pub time: Duration,
    /// By how much floats may differ, of the largest one; none for what follows from the number of operations.
    pub tolerance: Option<f64>,
}

impl Default for BenchOptions {
    fn default() -> BenchOptions {
        BenchOptions { threads: Vec::new(), rounds: None, time: Duration::from_secs(1), tolerance: None }
    }
}

/// What was measured.
#[derive(Debug)]
pub struct Bench {
    /// The program as it was written.
    pub module: Module,
    /// The sizes that it was run at.
    pub sizes: Vec<(Name, i64)>,
    /// How many arithmetic operations a run makes, as the program says: what a variant computes again is not counted.
    pub operations: Option<i64>,
    /// How many rounds there were.
    pub rounds: usize,
    /// The variants, in the order asked for.
    pub entrants: Vec<Entrant>,
}

/// A variant that was to be timed.
#[derive(Debug)]
pub struct Entrant {
    /// Which.
    pub choice: Choice,
    /// How long it took from the text to native code.
    pub made: Duration,
    /// What came of it.
    pub result: Result<Measured, Failure>,
}

/// A variant that was timed.
#[derive(Debug)]
pub struct Measured {
    /// How many rewrites of its derivation and steps of its schedule lead to its loops.
    pub steps: usize,
    /// Whether all of them are shown to keep the meaning; else that was tested.
    pub proved: bool,
    /// How long the C compiler took; none if the cache had the code.
    pub compile: Option<Duration>,
    /// The times, for each number of threads.
    pub times: Vec<Times>,
}

/// Times of a variant with a number of threads.
#[derive(Clone, Debug)]
pub struct Times {
    /// How many threads.
    pub threads: NonZeroUsize,
    /// The time of a run in the best round.
    pub best: Duration,
    /// The time of a run in the round in the middle.
    pub median: Duration,
    /// How many runs a round had.
    pub runs: u32,
}

/// Times variants of the function that the options name; of all that there are, if none is asked for. Inputs that the call
/// does not give are random, with fixed seeds. `progress` is told what is being done.
///
/// # Errors
/// If the text is not accepted, it has no such variant, or the call does not fit it. What is wrong with a single variant
/// is said there.
///
/// ```
/// use certen::{BenchOptions, Call, Options, Texts, bench};
///
/// let text = "fn twice(x: f64[n]) -> f64[n] { 2 * x }
///     schedule blocks for twice { split(i, 32); }";
/// let options = BenchOptions { rounds: 2.try_into().ok(), ..BenchOptions::default() };
/// let call = Call::new().dim("n", 100);
/// let found = bench(&Texts::read("twice.ten", text), &Options::default(), &[], call, &options, &|_| ())?;
/// let names: Vec<String> = found.entrants.iter().map(|entrant| entrant.choice.to_string()).collect();
/// assert_eq!(names, ["none", "auto", "blocks"]);
/// assert!(found.entrants.iter().all(|entrant| entrant.result.is_ok()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn bench(
    texts: &Texts,
    options: &Options,
    choices: &[Choice],
    call: Call,
    how: &BenchOptions,
    progress: &dyn Fn(String),
) -> Result<Bench, Failure> {
    let plain = Module::from_texts(texts, &Options { schedule: Choice::None, ..options.clone() })?;
    let choices = plain.chosen(choices)?;
    let call = with_random_inputs(call, &plain);
    let failed = |error: RuntimeError| plain.runtime_failure(&error);
    let threads = match how.threads.as_slice() {
        [] => vec![default_threads().map_err(failed)?],
        threads => threads.to_vec(),
    };
    let bound = call.bind(&plain, None, ElemType::bytes).map_err(|error| plain.refuse(*error))?;
    let operations = plain.operations().and_then(|formula| formula.eval(&plain.size(&bound)).ok());
    let make = |choice: &Choice| {
        progress(format!("compiling {choice}"));
        let begin = Instant::now();
        let made = made(texts, &Options { schedule: choice.clone(), ..options.clone() }, &call, &bound.sizes);
        (begin.elapsed(), made)
    };
    let made: Vec<(Duration, Result<Arc<Module>, Failure>)> = choices.iter().map(make).collect();
    let floats = Floats { tolerance: how.tolerance, operations, strict: is_strict(plain.core(), options.fp) };
    // Results are kept twice: those of the first variant, and those of the others one after the other.
    is_free(bytes_of_outputs(&plain, &bound.sizes).saturating_mul(2)).map_err(|error| plain.refuse(*error))?;
    let mut arrays = Arrays {
        inputs: bound.inputs.iter().flatten().map(InputArray::array).collect(),
        outputs: plain.signature().allocate_outputs(&bound.sizes).map_err(failed)?,
    };
    let mut reference = None;
    let mut results: Vec<Result<(&Module, Vec<Row<'_>>), Failure>> = Vec::new();
    for (choice, (_, made)) in choices.iter().zip(&made) {
        progress(format!("running {choice}"));
        let rows = made.as_ref().map_err(Failure::clone).and_then(|module| {
            let sizes = module.sizes_left(&plain, &bound.sizes);
            let row = |threads| first_runs(module, &sizes, threads, &mut arrays, choice, &mut reference, &floats);
            Ok((module.as_ref(), threads.iter().map(row).collect::<Result<_, _>>()?))
        });
        results.push(rows);
    }
    let rounds = in_turns(&mut results, &mut arrays, how, progress);
    let measured = |result: Result<_, _>| result.and_then(|(module, rows)| Measured::new(module, rows));
    let results: Vec<Result<Measured, Failure>> = results.into_iter().map(measured).collect();
    let sizes = plain.core().sizes.iter().copied().zip(bound.sizes.iter().copied()).collect();
    let took: Vec<Duration> = made.iter().map(|(took, _)| *took).collect();
    let entrants = choices.into_iter().zip(took).zip(results);
    let entrants = entrants.map(|((choice, made), result)| Entrant { choice, made, result }).collect();
    Ok(Bench { sizes, operations, rounds, entrants, module: plain })
}

/// A call that gives all inputs: those that are missing are random.
fn with_random_inputs(call: Call, module: &Module) -> Call {
    module.core().inputs.iter().zip(1..).fold(call, |call, (input, seed)| match call.inputs.contains_key(&input.name) {
        true => call,
        false => call.input(input.name, Input::Random(seed)),
    })
}

/// How much memory the results take.
fn bytes_of_outputs(module: &Module, sizes: &[i64]) -> u128 {
    let value = |name: Name| module.core().sizes.iter().position(|&n| n == name).map(|at| sizes[at]);
    let bytes = |ty: &TensorType| {
        let shape = ty.shape_at(&value).unwrap_or_default();
        shape.iter().fold(ty.elem.bytes() as u128, |bytes, &size| bytes.saturating_mul(size as u128))
    };
    module.signature().outputs.iter().map(bytes).fold(0, u128::saturating_add)
}

/// A variant as native code, for these sizes if its schedule looks at them, for which there is enough memory.
fn made(texts: &Texts, options: &Options, call: &Call, sizes: &[i64]) -> Result<Arc<Module>, Failure> {
    let module = Module::from_texts(texts, options)?;
    call.check_memory(&module, module.loops()?).map_err(|error| module.refuse(*error))?;
    if let Some(own) = module.specialised(sizes)? {
        return Ok(own);
    }
    module.native()?;
    Ok(Arc::new(module))
}

/// What variants read and write.
struct Arrays<'a> {
    inputs: Vec<&'a Array>,
    outputs: Vec<Array>,
}

/// A variant with a number of threads.
struct Row<'a> {
    kernel: &'a NativeKernel,
    /// What it is called with of the sizes.
    sizes: Vec<i64>,
    threads: NonZeroUsize,
    /// How often it runs in a round.
    runs: u32,
    /// The time of a run in each round.
    times: Vec<Duration>,
}

impl Row<'_> {
    fn run(&self, arrays: &mut Arrays<'_>) -> Result<Duration, RuntimeError> {
        let Arrays { inputs, outputs } = arrays;
        let begin = Instant::now();
        with_threads(self.threads, || (0..self.runs).try_for_each(|_| self.kernel.call(&self.sizes, inputs, outputs)))?;
        Ok(begin.elapsed() / self.runs)
    }
}

/// Runs a variant for the first time, and compares its results with those of the first one.
fn first_runs<'a>(
    module: &'a Module,
    sizes: &[i64],
    threads: &NonZeroUsize,
    arrays: &mut Arrays<'_>,
    choice: &Choice,
    reference: &mut Option<(Choice, Vec<Array>)>,
    floats: &Floats,
) -> Result<Row<'a>, Failure> {
    let failed = |error: RuntimeError| module.runtime_failure(&error);
    let mut row =
        Row { kernel: module.native()?, sizes: sizes.to_vec(), threads: *threads, runs: 1, times: Vec::new() };
    row.run(arrays).map_err(failed)?;
    match reference {
        None => {
            let copies: Result<Vec<Array>, _> = arrays.outputs.iter().map(Array::try_clone).collect();
            let which = "a copy of the results".to_owned();
            let copies = copies.map_err(|error| failed(RuntimeError::Array { which, error }))?;
            *reference = Some((choice.clone(), copies));
        }
        Some((first, expected)) => {
            if let Some(difference) = floats.difference(expected, arrays) {
                return Err(module.refuse(difference.diagnostic(module, choice, first)));
            }
        }
    }
    // The first run has touched memory for the first time, and started threads.
    let once = row.run(arrays).map_err(failed)?;
    row.runs = (SHORTEST_ROUND.as_nanos() / once.as_nanos().max(1) + 1).min(MOST_RUNS) as u32;
    row.times.push(once);
    Ok(row)
}

/// Times what has run before, in rounds; says how many there were.
fn in_turns(
    results: &mut [Result<(&Module, Vec<Row<'_>>), Failure>],
    arrays: &mut Arrays<'_>,
    how: &BenchOptions,
    progress: &dyn Fn(String),
) -> usize {
    let of = |(at, result): (usize, &Result<(_, Vec<Row<'_>>), _>)| {
        (0..result.as_ref().map_or(0, |(_, rows)| rows.len())).map(move |row| (at, row))
    };
    let turns: Vec<(usize, usize)> = results.iter().enumerate().flat_map(of).collect();
    let rows = results.iter_mut().flatten().flat_map(|(_, rows)| rows);
    // What the runs before the first round took is only good for a guess.
    let expected = rows.map(|row| row.times.drain(..).sum::<Duration>() * row.runs);
    let rounds = match (how.rounds, expected.max()) {
        (_, None) => 0,
        (Some(rounds), _) => rounds.get(),
        (None, Some(longest)) => {
            let rounds = how.time.as_nanos() / longest.as_nanos().max(1);
            rounds.clamp(*ROUNDS.start(), *ROUNDS.end()) as usize
        }
    };
    for round in 0..rounds {
        progress(format!("round {} of {rounds}", round + 1));
        for turn in 0..turns.len() {
            let (variant, row) = turns[(turn + round) % turns.len()];
            let Ok((module, rows)) = &mut results[variant] else { continue };
            match rows[row].run(arrays) {
                Ok(time) => rows[row].times.push(time),
                Err(error) => results[variant] = Err(module.runtime_failure(&error)),
            }
        }
    }
    rounds
}

impl Measured {
    fn new(module: &Module, rows: Vec<Row<'_>>) -> Result<Measured, Failure> {
        let times = |mut row: Row<'_>| {
            row.times.sort_unstable();
            let (best, median) = (row.times.first()?, row.times.get(row.times.len() / 2)?);
            Some(Times { threads: row.threads, best: *best, median: *median, runs: row.runs })
        };
        Ok(Measured {
            steps: module.all_steps()?.len(),
            proved: module.validation()?.proved,
            compile: module.native()?.compile_time(),
            times: rows.into_iter().filter_map(times).collect(),
        })
    }
}

/// How floats are compared.
struct Floats {
    tolerance: Option<f64>,
    operations: Option<i64>,
    strict: bool,
}

/// The first element that is not the same.
struct Deviation {
    output: usize,
    index: Vec<i64>,
    expected: Option<Scalar>,
    found: Option<Scalar>,
    /// By how much it may differ.
    allowed: Option<f64>,
}

impl Floats {
    fn difference(&self, expected: &[Array], arrays: &Arrays<'_>) -> Option<Deviation> {
        let elements: usize = expected.iter().map(Array::len).sum();
        let each = |operations: i64| operations / i64::try_from(elements.max(1)).unwrap_or(i64::MAX);
        let operations = self.operations.map_or(FEWEST_OPERATIONS, each).max(FEWEST_OPERATIONS) as f64;
        let inputs = arrays.inputs.iter().map(|input| largest(input)).fold(0.0, f64::max);
        expected.iter().zip(&arrays.outputs).enumerate().find_map(|(output, (expected, found))| {
            if expected.bytes() == found.bytes() {
                return None;
            }
            let rounding = match expected.elem() {
                ElemType::F64 => Some(f64::EPSILON),
                ElemType::F32 => Some(f32::EPSILON.into()),
                _ => None,
            };
            let allowed = rounding.map(|rounding| match (self.tolerance, self.strict) {
                (Some(tolerance), _) => tolerance * largest(expected),
                (None, true) => 0.0,
                (None, false) => rounding * operations * largest(expected).max(inputs),
            });
            let equal = |at: &usize| match (expected.get(*at), found.get(*at), allowed) {
                (Some(a), Some(b), Some(allowed)) => {
                    let (a, b) = (a.to_f64(), b.to_f64());
                    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= allowed
                }
                (a, b, _) => a == b,
            };
            let at = (0..expected.len()).find(|at| !equal(at))?;
            let (expected_value, found) = (expected.get(at), found.get(at));
            Some(Deviation { output, index: index_of(expected.shape(), at), expected: expected_value, found, allowed })
        })
    }
}

/// The largest magnitude that is finite.
fn largest(array: &Array) -> f64 {
    let of = |value: f64| if value.is_finite() { value.abs() } else { 0.0 };
    match (array.as_slice::<f64>(), array.as_slice::<f32>()) {
        (Some(values), _) => values.iter().fold(0.0, |largest, value| of(*value).max(largest)),
        (_, Some(values)) => values.iter().fold(0.0, |largest, value| of((*value).into()).max(largest)),
        _ => 0.0,
    }
}

impl Deviation {
    fn diagnostic(&self, module: &Module, choice: &Choice, first: &Choice) -> Diagnostic {
        let output = module.core().outputs.get(self.output).map_or_else(String::new, |(name, _)| name.to_string());
        let shown = |value: Option<Scalar>| value.map_or_else(String::new, |value| value.to_string());
        let (found, expected) = (shown(self.found), shown(self.expected));
        let text = format!(
            "`{choice}` computes something other than `{first}`: {output}{:?} is {found} instead of {expected}",
            self.index
        );
        let error = Diagnostic::error(Code::E0705, None, text);
        match self.allowed {
            Some(allowed) => error
                .note(format!("they may differ by {allowed:.1e} here"))
                .help("if such differences are the program's nature, allow them with `--tolerance`"),
            None => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use certen_runtime::ArrayError;

    use super::*;

    const RELAXED: Floats = Floats { tolerance: None, operations: Some(40), strict: false };

    /// Where the results of a run differ from those expected.
    fn found(floats: &Floats, expected: &Array, found: Array) -> Option<Vec<i64>> {
        let arrays = Arrays { inputs: Vec::new(), outputs: vec![found] };
        let expected = expected.try_clone().ok()?;
        floats.difference(&[expected], &arrays).map(|difference| difference.index)
    }

    #[test]
    fn floats_agree_up_to_rounding() -> Result<(), ArrayError> {
        let one = |values: [f64; 4]| Array::from_vec(&[2, 2], values.to_vec());
        let expected = one([1.0, f64::NAN, f64::INFINITY, -1000.0])?;
        let near = |by: f64| one([1.0 + by, f64::NAN, f64::INFINITY, -1000.0]);
        // Sixteen operations for each element, of which the largest is a thousand.
        assert_eq!(found(&RELAXED, &expected, near(1e-12)?), None);
        assert_eq!(found(&RELAXED, &expected, near(1e-11)?), Some(vec![0, 0]));
        assert_eq!(found(&RELAXED, &expected, one([1.0, 1.0, f64::INFINITY, -1000.0])?), Some(vec![0, 1]));
        assert_eq!(found(&RELAXED, &expected, one([1.0, f64::NAN, f64::NEG_INFINITY, -1000.0])?), Some(vec![1, 0]));
        let strict = Floats { strict: true, ..RELAXED };
        assert_eq!(found(&strict, &expected, near(0.0)?), None);
        assert_eq!(found(&strict, &expected, near(1e-15)?), Some(vec![0, 0]));
        let loose = Floats { tolerance: Some(1e-3), ..RELAXED };
        assert_eq!(found(&loose, &expected, near(0.5)?), None);
        assert_eq!(found(&loose, &expected, near(2.0)?), Some(vec![0, 0]));
        let single = |value: f32| Array::from_vec(&[1], vec![value]);
        assert_eq!(found(&RELAXED, &single(1.0)?, single(1.0 + 1e-6)?), None);
        assert_eq!(found(&RELAXED, &single(1.0)?, single(1.0 + 1e-5)?), Some(vec![0]));
        Ok(())
    }

    #[test]
    fn integers_agree_exactly() -> Result<(), ArrayError> {
        let one = |value: i64| Array::from_vec(&[3, 1], vec![1 << 60, 2, value]);
        assert_eq!(found(&RELAXED, &one(3)?, one(3)?), None);
        let loose = Floats { tolerance: Some(1.0), ..RELAXED };
        assert_eq!(found(&loose, &one(3)?, one(4)?), Some(vec![2, 0]));
        Ok(())
    }

    #[test]
    fn zeros_of_both_signs_agree() -> Result<(), ArrayError> {
        let one = |value: f64| Array::from_vec(&[], vec![value]);
        let strict = Floats { strict: true, ..RELAXED };
        assert_eq!(found(&strict, &one(0.0)?, one(-0.0)?), None);
        Ok(())
    }
}
