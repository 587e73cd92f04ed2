//! The hunt of automatic schedules: random programs, contractions most of all, with the schedule that the compiler writes.
//!
//! No value changes. In strict mode, and of integers, native code has the evaluator's bits; else it is within the bound of
//! rounding ([`certen_core::domain::magnitude`]). The bits are the same for all sizes and for given ones, for every
//! length of vectors, and with 1, 2 and 3 threads. What is written is written again, and pasted it makes the same loops, proved.
//!
//! `CERTEN_CASES=2000 CERTEN_SEED=0 cargo test -p certen-testgen --test automatic -- --nocapture` hunts longer.

#![allow(clippy::print_stdout)]

use std::fmt::Display;
use std::num::NonZeroUsize;
use std::ops::AddAssign;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use certen::{Array, Batch, Choice, Cpu, FpMode, Module, Name, Options};
use certen_core::domain::magnitude::{Magnitude, Measured, compare};
use certen_core::domain::{Machine, Scalar, splitmix};
use certen_core::{Domain, Evaluator, Tensor};
use certen_loops::{Interpreter, LoopProgram};
use certen_runtime::{Cache, Compiler, with_threads};
use certen_testgen::contraction::Contraction;
use certen_testgen::schedule::{Meaning, points, unscheduled};
use certen_testgen::ten::TenSample;

/// `CERTEN_CASES`, a fifth of it in the slow set, else 45.
fn cases() -> u64 {
    match certen_testgen::cases() {
        _ if std::env::var_os("CERTEN_CASES").is_none() => 45,
        cases if cases >= 10_000 => u64::from(cases) / 5,
        cases => cases.into(),
    }
}

/// Programs that are compiled together.
const BATCH: u64 = 15;

/// Steps of the evaluator and of the interpreter after which a point is left out.
const FUEL: u64 = 2_000_000;

/// Elements of an input from which on a point is left out.
const MOST_ELEMENTS: usize = 1 << 20;

/// Lengths of vectors for which a schedule is written, whatever this machine has.
const CPUS: [Cpu; 3] = [Cpu::Sse2, Cpu::Avx2, Cpu::Avx512];

type Sizes = Vec<(Name, i64)>;
type Tensors = Vec<(Name, Tensor<Scalar>)>;

/// A program, and where it is run.
struct Case {
    file: &'static str,
    text: String,
    /// Sizes at which the evaluator is asked, and some at which it would take too long.
    few: Vec<Sizes>,
    many: Option<Sizes>,
}

impl Case {
    fn new(seed: u64) -> Case {
        let (file, text) = match seed % 10 {
            0..=7 => {
                let Contraction { text, few, many } = Contraction::new(seed);
                return Case { file: "t.core", text, few, many: Some(many) };
            }
            8 => ("t.core", unscheduled(seed).to_string()),
            _ => {
                let bytes: Vec<u8> = (0..120).map(|at| splitmix(seed ^ (at << 32)) as u8).collect();
                ("t.ten", TenSample::generate(&bytes).text())
            }
        };
        let module = Module::from_text(file, text.as_str(), &Options::default());
        let module = module.unwrap_or_else(|failure| panic!("seed {seed}\n{text}\n{failure}"));
        Case { file, few: points(Meaning::Core(module.core()), seed, 3), text, many: None }
    }

    fn module(&self, fp: FpMode, cpu: Cpu, schedule: Choice) -> Result<Module, String> {
        let options = Options { schedule, fp, cpu: Some(cpu), ..Options::default() };
        Module::from_text(self.file, self.text.as_str(), &options).map_err(|failure| failure.to_string())
    }

    /// Whether the automatic schedule of a module is proved, written again, and the same schedule when it is pasted.
    fn is_plain_text(&self, module: &Module, text: &str, fp: FpMode, cpu: Cpu) -> Result<(), String> {
        let failed = |failure: certen::Failure| failure.to_string();
        if !module.validation().map_err(failed)?.proved {
            return Err("it is not proved".into());
        }
        if self.module(fp, cpu, Choice::Default)?.planned().map_err(failed)? != module.planned().map_err(failed)? {
            return Err("it is not written again".into());
        }
        let pasted = self.module(fp, cpu, Choice::Text { name: "schedule".into(), text: text.into() })?;
        pasted.validation().map_err(failed)?;
        match pasted.loops().map_err(failed)?.to_string() == module.loops().map_err(failed)?.to_string() {
            true => Ok(()),
            false => Err("pasted, it makes other loops".into()),
        }
    }
}

/// What a program is called with: whole numbers at every other point, else numbers with many digits. Nothing if that is much.
fn inputs(loops: &LoopProgram, sizes: &Sizes, seed: u64) -> Option<Tensors> {
    let size = |name| sizes.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    let one = |(at, input): (u64, &certen_core::Parameter)| {
        let shape = input.ty.shape_at(&size).expect("every size has a value");
        if shape.iter().product::<usize>() > MOST_ELEMENTS {
            return None;
        }
        let array = Array::random(input.ty.elem, &shape, splitmix(seed ^ at)).expect("memory for a small array");
        let tensor = array.to_tensor().expect("memory for a small tensor");
        let whole = |value: &Scalar| match value {
            Scalar::F64(x) => Scalar::F64((x * 7.0).floor() - 3.0),
            Scalar::F32(x) => Scalar::F32((x * 7.0).floor() - 3.0),
            other => *other,
        };
        Some((input.name, if seed.is_multiple_of(2) { tensor.map(whole) } else { tensor }))
    };
    (0..).zip(&loops.inputs).map(one).collect()
}

/// The bits that loops give; nothing if that takes too long.
fn interpreted(loops: &LoopProgram, sizes: &Sizes, given: &Tensors) -> Result<Option<Vec<Tensor<Scalar>>>, String> {
    use certen_core::EvalError::{Fuel, Memory};
    let own = loops.sizes.iter().filter_map(|name| sizes.iter().find(|(known, _)| known == name).copied());
    let made = Interpreter::new(loops, &Machine, own, given.clone()).and_then(|made| made.with_fuel(FUEL).run());
    match made {
        Ok(outputs) => Ok(Some(outputs.into_iter().map(|(_, tensor)| tensor).collect())),
        Err(Fuel | Memory) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// What the program means; nothing if that takes too long, or has no value.
fn evaluated<D: Domain>(
    module: &Module,
    domain: &D,
    sizes: &Sizes,
    given: Vec<(Name, Tensor<D::Value>)>,
) -> Option<Vec<Tensor<D::Value>>> {
    let made = Evaluator::new(module.core(), domain, sizes.iter().copied(), given).ok()?.with_fuel(FUEL).run().ok()?;
    Some(made.into_iter().map(|(_, tensor)| tensor).collect())
}

fn same(found: &[Tensor<Scalar>], expected: &[Tensor<Scalar>]) -> Result<(), String> {
    for (output, (found, expected)) in found.iter().zip(expected).enumerate() {
        let mut pairs = found.data().iter().zip(expected.data());
        if let Some(at) = pairs.position(|(found, expected)| !found.same_bits(expected)) {
            let (found, expected) = (found.data()[at], expected.data()[at]);
            return Err(format!("element {at} of output {output} is {found}, not {expected}"));
        }
    }
    Ok(())
}

/// Whether loops give what the program means: bit for bit in strict mode.
fn right(
    module: &Module,
    fp: FpMode,
    sizes: &Sizes,
    given: &Tensors,
    found: &[Tensor<Scalar>],
) -> Result<bool, String> {
    if fp == FpMode::Strict {
        let Some(expected) = evaluated(module, &Machine, sizes, given.clone()) else { return Ok(false) };
        return same(found, &expected).map(|()| true);
    }
    let measured = given.iter().map(|(name, tensor)| (*name, tensor.map(|value| Measured::given(*value)))).collect();
    let Some(expected) = evaluated(module, &Magnitude, sizes, measured) else { return Ok(false) };
    let mut pairs = expected.iter().zip(found);
    pairs.try_for_each(|(expected, found)| compare(expected, found).map(|_| ())).map(|()| true)
}

/// What native code is to give in the calls of a batch.
enum Wanted {
    Bits(Vec<Tensor<Scalar>>),
    /// What the call before gave.
    Again,
    /// Anything.
    Any,
}

#[derive(Default)]
struct Native {
    batch: Batch,
    /// What each call is to give, how many outputs it has, and what is shown where it does not.
    wanted: Vec<(Wanted, usize, String)>,
}

impl Native {
    fn call(&mut self, loops: &LoopProgram, sizes: &Sizes, given: &Tensors, wanted: Wanted, shown: String) {
        let size = |name: Name| sizes.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        let own: Vec<i64> = loops.sizes.iter().filter_map(|name| size(*name)).collect();
        let elems = loops.inputs.iter().map(|input| input.ty.elem);
        let given = elems.zip(given).map(|(elem, (_, tensor))| Array::from_tensor(elem, tensor).expect("memory"));
        let empty = loops.outputs.iter().map(|output| {
            let shape = output.ty.shape_at(&size).expect("every size has a value");
            Array::zeros(output.ty.elem, &shape).expect("memory")
        });
        self.batch.call(&own, given.collect(), empty.collect());
        self.wanted.push((wanted, loops.outputs.len(), shown));
    }

    fn program(&mut self, loops: &LoopProgram) -> Result<(), String> {
        self.batch.program(loops.clone()).map_err(|errors| format!("the verifier says {errors:?}\n{loops}"))
    }

    /// Makes all calls with 1, 2 and 3 threads.
    fn run(&self, cpu: Cpu, cache: &Cache, wrong: &mut Vec<String>) {
        if self.batch.is_empty() {
            return;
        }
        let compiler = Compiler::find().expect("a C compiler").for_cpu(cpu).expect("it is here");
        let c = self.batch.c().expect("loops can be printed");
        let outputs = [1, 2, 3].map(|threads| {
            let run = || self.batch.run(&c, &compiler, cache).expect("native code runs");
            let outputs = with_threads(NonZeroUsize::new(threads).expect("not 0"), run);
            outputs.iter().map(|array| array.to_tensor().expect("memory")).collect::<Vec<_>>()
        });
        let (mut at, mut before) = (0, 0..0);
        for (wanted, count, shown) in &self.wanted {
            let own = at..at + count;
            let [one, two, three] = outputs.each_ref().map(|outputs| &outputs[own.clone()]);
            let mut hold = |what: &str, held: Result<(), String>| {
                if let Err(error) = held {
                    wrong.push(format!("{what}: {error}\n{shown}"));
                }
            };
            hold("2 threads", same(two, one));
            hold("3 threads", same(three, one));
            match wanted {
                Wanted::Bits(bits) => hold("native code, not the interpreter's bits", same(one, bits)),
                Wanted::Again => hold("for given sizes, not the bits for all", same(one, &outputs[0][before])),
                Wanted::Any => {}
            }
            (at, before) = (own.end, own);
        }
    }
}

/// What is counted, so that it is known to happen.
#[derive(Default, Debug)]
struct Tally {
    cases: usize,
    /// Cases that have a schedule, a tile, and sums that were separated.
    planned: usize,
    tiles: usize,
    separated: usize,
    /// Points at which loops ran, at which the program has a value, and for which there are loops with numbers.
    points: usize,
    right: usize,
    specialised: usize,
    /// … whose products have another order there.
    ordered: usize,
    /// Cases that ran with enough work for threads.
    many: usize,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, more: Tally) {
        self.cases += more.cases;
        self.planned += more.planned;
        self.tiles += more.tiles;
        self.separated += more.separated;
        self.points += more.points;
        self.right += more.right;
        self.specialised += more.specialised;
        self.ordered += more.ordered;
        self.many += more.many;
    }
}

/// Compares all that can be said of a case without a C compiler, and adds calls of it to a batch.
fn hunt(seed: u64, cpu: Cpu, native: &mut Native, tally: &mut Tally) -> Result<(), String> {
    let case = Case::new(seed);
    let fp = if seed.is_multiple_of(3) { FpMode::Strict } else { FpMode::Relaxed };
    let shown = |error: &dyn Display| format!("seed {seed}, {fp:?}, {cpu}: {error}\n{}", case.text);
    let shown_failure = |failure: certen::Failure| shown(&failure);
    let automatic = |cpu| case.module(fp, cpu, Choice::Default).map_err(|error| shown(&error));
    let module = automatic(cpu)?;
    let (plans, steps) = module.planned().map_err(shown_failure)?;
    let text: String = plans.iter().map(|plan| plan.steps.as_str()).collect();
    let loops = module.loops().map_err(shown_failure)?;
    module.verified().map_err(shown_failure)?;
    tally.cases += 1;
    tally.planned += usize::from(!steps.is_empty());
    tally.tiles += usize::from(text.contains("reorder("));
    tally.separated += usize::from(text.contains("separate("));
    if !steps.is_empty() {
        case.is_plain_text(&module, &text, fp, cpu).map_err(|error| shown(&format!("{error}\n{text}")))?;
    }
    // Where one of them has no fused operations, floats are rounded otherwise.
    let is_like = |other: &Cpu| fp == FpMode::Strict || other.has_fma() == cpu.has_fma();
    let others = CPUS.into_iter().filter(|other| *other != cpu && is_like(other) && !steps.is_empty());
    let others = others.map(automatic).collect::<Result<Vec<Module>, _>>()?;
    let values = |sizes: &Sizes| -> Vec<i64> {
        let value = |name: &Name| sizes.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
        module.core().sizes.iter().filter_map(value).collect()
    };
    let at = |sizes: &Sizes| module.at_sizes(&values(sizes));
    native.program(loops).map_err(|error| shown(&error))?;
    let mut special: Option<(Module, Sizes, Tensors, Wanted)> = None;
    for (round, sizes) in (0..).zip(&case.few) {
        let Some(given) = inputs(loops, sizes, 2 * seed + round) else { continue };
        let here = |error: &dyn Display| shown(&format!("at {sizes:?}: {error}\n{text}\n{loops}"));
        let Some(bits) = interpreted(loops, sizes, &given).map_err(|error| here(&error))? else { continue };
        tally.points += 1;
        tally.right += usize::from(right(&module, fp, sizes, &given, &bits).map_err(|error| here(&error))?);
        for other in &others {
            let loops = other.loops().map_err(shown_failure)?;
            if let Some(found) = interpreted(loops, sizes, &given).map_err(|error| here(&error))? {
                same(&found, &bits).map_err(|error| here(&format!("other vectors: {error}\n{loops}")))?;
            }
        }
        if let Some(fixed) = at(sizes).filter(|_| !sizes.is_empty()) {
            let loops = fixed.loops().map_err(shown_failure)?;
            // Products of three and more may have another order at these sizes; it is the same for all sizes, then.
            let bits = match module.ordered(&values(sizes)) {
                None => Some(bits.clone()),
                Some(ordered) => {
                    tally.ordered += 1;
                    let loops = ordered.loops().map_err(shown_failure)?;
                    interpreted(loops, sizes, &given).map_err(|error| here(&error))?
                }
            };
            let found = interpreted(loops, sizes, &given).map_err(|error| here(&error))?;
            if let Some((found, bits)) = found.zip(bits) {
                same(&found, &bits).map_err(|error| here(&format!("given sizes: {error}\n{loops}")))?;
                tally.specialised += 1;
                special = Some((fixed, sizes.clone(), given.clone(), Wanted::Bits(bits)));
            }
        }
        native.call(loops, sizes, &given, Wanted::Bits(bits), here(&"all sizes"));
    }
    if let Some(many) = case.many
        && let Some(given) = inputs(loops, &many, 2 * seed)
    {
        native.call(loops, &many, &given, Wanted::Any, shown(&format!("at {many:?}\n{text}\n{loops}")));
        if let Some(fixed) = at(&many) {
            let wanted = if module.ordered(&values(&many)).is_some() { Wanted::Any } else { Wanted::Again };
            special = Some((fixed, many, given, wanted));
            tally.many += 1;
        }
    }
    if let Some((fixed, sizes, given, wanted)) = special {
        let loops = fixed.loops().map_err(shown_failure)?;
        native.program(loops).map_err(|error| shown(&error))?;
        native.call(loops, &sizes, &given, wanted, shown(&format!("for {sizes:?} alone\n{loops}")));
    }
    Ok(())
}

#[test]
fn automatic_schedules_change_no_value() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let cache = Cache::at(directory.path()).expect("a cache");
    let first: u64 = std::env::var("CERTEN_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let (next, end) = (AtomicU64::new(first), first + cases());
    let cpus = if Cpu::here().is_empty() { vec![Cpu::Native] } else { Cpu::here() };
    let all = Mutex::new((Tally::default(), Vec::new()));
    let work = || {
        loop {
            let begin = next.fetch_add(BATCH, Ordering::Relaxed);
            if begin >= end {
                break;
            }
            let cpu = cpus[(begin / BATCH) as usize % cpus.len()];
            let (mut native, mut tally, mut wrong) = (Native::default(), Tally::default(), Vec::new());
            for seed in begin..end.min(begin + BATCH) {
                wrong.extend(hunt(seed, cpu, &mut native, &mut tally).err());
            }
            native.run(cpu, &cache, &mut wrong);
            let mut all = all.lock().expect("no panic");
            let (sum, failures) = &mut *all;
            *sum += tally;
            failures.append(&mut wrong);
        }
    };
    std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(work))));
    let (tally, mut wrong) = all.into_inner().expect("no panic");
    println!("{tally:?}");
    wrong.sort_by_key(String::len);
    if let Some(path) = std::env::var_os("CERTEN_HUNT") {
        std::fs::write(path, wrong.join("\n\n====\n")).expect("a report");
    }
    assert!(wrong.is_empty(), "{} failures; the smallest is {}", wrong.len(), wrong[0]);
    let Tally { cases, planned, tiles, separated, points, right, specialised, many, ordered: _ } = tally;
    assert!(
        5 * planned >= 2 * cases && 4 * tiles >= cases,
        "{planned} and {tiles} of {cases} have a schedule and tiles"
    );
    assert!(30 * separated >= cases, "sums are separated in {separated} of {cases}");
    assert!(10 * right >= 8 * points, "{right} of {points} points have a value");
    assert!(2 * specialised >= points && 2 * many >= cases, "few sizes are given: {tally:?}");
}
