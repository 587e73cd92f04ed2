//! The soundness hunt: random programs with random schedules, legal and illegal.
//!
//! No accepted schedule changes a value; what is proved is so; and of the schedules that change nothing, nearly all are
//! accepted. Run with `--nocapture`, it prints the acceptance of each primitive.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use certen_core::parse_program;
use certen_loops::{FpMode, lower, verify};
use certen_schedule::{Status, apply, primitives};
use certen_syntax::Sources;
use certen_testgen::schedule::{Hunted, Truth, points, steps, truth};
use certen_validate::{LoopComparison, Outcome, Setting, validate};

/// `CERTEN_CASES`, twice as many in the slow set, else 200.
fn cases() -> u64 {
    match certen_testgen::cases() {
        _ if std::env::var_os("CERTEN_CASES").is_none() => 200,
        cases if cases >= 10_000 => 2 * u64::from(cases),
        cases => cases.into(),
    }
}

/// Points at which a schedule is compared with the evaluator.
const POINTS: usize = 24;

/// What is counted of one primitive, or of all.
#[derive(Clone, Debug, Default)]
struct Count {
    /// Cases that have it.
    cases: usize,
    harmless: usize,
    accepted: usize,
    proved: usize,
    /// Times that it was taken, and could not be.
    taken: usize,
    refused: usize,
}

/// Something that must not be.
#[derive(Clone, Debug)]
struct Failure {
    what: &'static str,
    text: String,
}

#[derive(Default)]
struct Tally {
    all: Count,
    of: BTreeMap<String, Count>,
    long: usize,
    failures: Vec<Failure>,
    /// Harmless but not accepted: why, and the smallest.
    declined: BTreeMap<String, (usize, String)>,
    /// Why steps could not be taken, with an example.
    refusals: BTreeMap<String, (usize, String)>,
    slowest: (Duration, String),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A message without its names and numbers.
fn pattern(message: &str) -> String {
    let words = message.split_whitespace().map(|word| {
        let plain = word.trim_matches(|c: char| !c.is_alphanumeric());
        let is_word = plain.len() > 2 && plain.chars().all(|c| c.is_ascii_lowercase());
        if is_word { word } else { "_" }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn hunt(hunted: &Hunted, tally: &Mutex<Tally>) {
    let (begun, seed) = (Instant::now(), hunted.seed);
    let fail = |what: &'static str, text: String| lock(tally).failures.push(Failure { what, text });
    if let Some((step, before)) = &hunted.panicked {
        fail("a panic", format!("seed {seed}: {step} after {}\n{before}", hunted.text()));
    }
    let points = points(hunted.meaning(), seed, POINTS);
    let mut found = truth(hunted.meaning(), &hunted.scheduled.program, &points, seed);
    let violations = verify(&hunted.scheduled.program);
    let verified = violations.is_empty();
    let core = hunted.core.as_ref().filter(|_| verified);
    let tested = core.map(|core| validate(core, &hunted.scheduled.program, &LoopComparison::default()));
    // A difference in exact numbers is one, whoever finds it.
    if let (Truth::Same(_), Some(Outcome::Differs(difference))) = (&found, &tested)
        && matches!(difference.setting, Setting::Field | Setting::Integers | Setting::Rationals)
    {
        found = Truth::Differs(format!("layer 2: {difference:?}"));
    }
    let proved = hunted.scheduled.is_proved();
    let harmless = matches!(found, Truth::Same(_));
    let accepted = match &tested {
        // What is not proved has to be tried whole.
        Some(Outcome::Agrees(evidence)) => proved || evidence.gap().is_none(),
        Some(Outcome::Nothing(_)) => proved,
        Some(Outcome::Differs(_)) => false,
        // Loops that were not lowered have no other meaning to be compared with: what is proved is accepted.
        None => verified && proved,
    };
    let bad = |again: &Hunted| {
        let now = truth(again.meaning(), &again.scheduled.program, &points, seed);
        std::mem::discriminant(&now) == std::mem::discriminant(&found) && verify(&again.scheduled.program).is_empty()
    };
    match &found {
        Truth::Leaves(_) | Truth::Races(_) if verified => {
            let small = hunted.clone().shrunk(bad);
            fail("verified, but leaves its bounds or races", format!("{found:?}\n{}", small.shown()));
        }
        Truth::Differs(_) if verified && proved => {
            let small = hunted.clone().shrunk(|again| again.scheduled.is_proved() && bad(again));
            fail("proved, but another value", format!("{found:?}\n{}", small.shown()));
        }
        Truth::Differs(_) if accepted => {
            fail("accepted, but another value", format!("{found:?}\n{tested:?}\n{}", hunted.shown()));
        }
        _ => {}
    }
    let mut tally = lock(tally);
    let mut names: Vec<String> = hunted.steps.iter().map(|step| step.name.to_string()).collect();
    for name in &names {
        tally.of.entry(name.clone()).or_default().taken += 1;
    }
    for (step, why) in &hunted.refused {
        tally.of.entry(step.name.to_string()).or_default().refused += 1;
        let example = || (0, format!("{step}: {why} (seed {seed})"));
        tally.refusals.entry(format!("{}: {}", step.name, pattern(why))).or_insert_with(example).0 += 1;
    }
    names.sort_unstable();
    names.dedup();
    let count = |count: &mut Count| {
        count.cases += 1;
        count.harmless += usize::from(harmless);
        count.accepted += usize::from(harmless && accepted);
        count.proved += usize::from(harmless && accepted && proved);
    };
    for name in names {
        count(tally.of.entry(name).or_default());
    }
    count(&mut tally.all);
    tally.long += usize::from(hunted.steps.len() >= 3 && hunted.has_blocks());
    if harmless && !accepted {
        let why = match (violations.first(), &tested) {
            (Some(violation), _) => violation.message.clone(),
            (_, Some(Outcome::Differs(difference))) => format!("layer two differs {difference:?}"),
            (_, Some(Outcome::Nothing(why))) => format!("layer two compares nothing {why}"),
            _ => unproved(hunted),
        };
        let last = hunted.steps.last().map(|step| step.name.to_string()).unwrap_or_default();
        let text = format!("{why}\n{}", hunted.shown());
        let entry = tally.declined.entry(format!("{last}: {}", pattern(&why))).or_insert((0, text.clone()));
        entry.0 += 1;
        if text.len() < entry.1.len() {
            entry.1 = text;
        }
    }
    if hunted.slowest.0 > tally.slowest.0 {
        tally.slowest = (hunted.slowest.0, format!("{} in seed {seed}", hunted.slowest.1));
    }
    // Generous, because other work may go on beside.
    if begun.elapsed() > Duration::from_secs(300) {
        tally.failures.push(Failure { what: "a case that takes too long", text: hunted.shown() });
    }
}

/// The first condition of a schedule that is not proved.
fn unproved(hunted: &Hunted) -> String {
    let conditions = hunted.scheduled.taken.iter().flat_map(|taken| &taken.conditions);
    let unproved = conditions.filter_map(|condition| match &condition.status {
        Status::Proved(_) => None,
        Status::Fails(why) => Some(format!("refuted: {} {why}", condition.what)),
        Status::Open => Some(format!("open: {}", condition.what)),
    });
    unproved.into_iter().next().unwrap_or_default()
}

fn table(tally: &Tally) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{:<16}{:>7}{:>10}{:>10}{:>8}{:>8}   {:>7}{:>9}",
        "primitive", "cases", "harmless", "accepted", "", "proved", "taken", "refused"
    );
    let mut row = |name: &str, count: &Count| {
        let rate = 100.0 * count.accepted as f64 / count.harmless.max(1) as f64;
        let _ = writeln!(
            text,
            "{name:<16}{:>7}{:>10}{:>10}{rate:>7.1}%{:>8}   {:>7}{:>9}",
            count.cases, count.harmless, count.accepted, count.proved, count.taken, count.refused
        );
    };
    tally.of.iter().for_each(|(name, count)| row(name, count));
    row("all", &tally.all);
    text
}

/// Writes a report that is too long for a test's output to the file that an environment variable names, if it does.
fn report(tally: &Tally, variable: &str) {
    let Some(path) = std::env::var_os(variable) else { return };
    let mut text = table(tally);
    let mut failures: Vec<&Failure> = tally.failures.iter().collect();
    failures.sort_by_key(|failure| failure.text.len());
    for failure in failures {
        let _ = writeln!(text, "\n==== {}\n{}", failure.what, failure.text);
    }
    let mut declined: Vec<_> = tally.declined.iter().collect();
    declined.sort_by_key(|(_, (times, _))| std::cmp::Reverse(*times));
    for (why, (times, smallest)) in declined {
        let _ = writeln!(text, "\n---- {times} harmless ones declined: {why}\n{smallest}");
    }
    let mut refusals: Vec<_> = tally.refusals.values().collect();
    refusals.sort_by_key(|(times, _)| std::cmp::Reverse(*times));
    let _ = writeln!(text, "\n~~~~ refused");
    for (times, example) in refusals {
        let _ = writeln!(text, "{times:>6} {example}");
    }
    let _ = std::fs::write(path, text);
}

/// Hunts over so many seeds.
#[allow(clippy::print_stdout, reason = "the table is what the test is run for")]
fn tally(cases: u64, make: fn(u64) -> Hunted) -> Tally {
    let tally = Mutex::new(Tally::default());
    let first: u64 = std::env::var("CERTEN_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let (next, end) = (AtomicU64::new(first), first + cases);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        break;
                    }
                    hunt(&make(seed), &tally);
                }
            });
        }
    });
    let tally = tally.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    println!("{}", table(&tally));
    println!("the slowest step: {:?}, {}\n", tally.slowest.0, tally.slowest.1);
    tally
}

fn no_failures(tally: &Tally) {
    if let Some(Failure { what, text }) = tally.failures.iter().min_by_key(|failure| failure.text.len()) {
        panic!("{} failures; the smallest is {what}: {text}", tally.failures.len());
    }
}

#[test]
fn no_accepted_schedule_changes_a_value() {
    let tally = tally(cases(), Hunted::new);
    report(&tally, "CERTEN_HUNT");
    no_failures(&tally);
    for primitive in primitives() {
        let taken = tally.of.get(primitive.name).map_or(0, |count| count.taken);
        assert!(taken > 0, "`{}` was never taken", primitive.name);
    }
    let all = &tally.all;
    assert!(2 * tally.long >= all.cases, "only {} of {} have three steps and a block size", tally.long, all.cases);
    assert!(10 * all.harmless >= 4 * all.cases, "only {} of {} change nothing", all.harmless, all.cases);
    assert!(100 * all.accepted >= 95 * all.harmless, "{} of {} are accepted", all.accepted, all.harmless);
}

/// Each has a fusion that is wrong where two loops have several iterations at once, which takes larger sizes than most.
#[test]
fn what_was_accepted_and_wrong_is_not() {
    let tally = Mutex::new(Tally::default());
    for seed in [101_513, 105_302] {
        hunt(&Hunted::new(seed), &tally);
    }
    no_failures(&tally.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner));
}

/// Here most orders are wrong: the conditions of steps decide.
#[test]
fn what_is_proved_of_loops_with_dependences_is_so() {
    let tally = tally(cases(), Hunted::dependent);
    report(&tally, "CERTEN_HUNT_DEPENDENT");
    no_failures(&tally);
    let all = &tally.all;
    assert!(10 * all.harmless <= 9 * all.cases, "{} of {} change nothing", all.harmless, all.cases);
    assert!(10 * all.proved >= 2 * all.cases, "only {} of {} are proved", all.proved, all.cases);
}

/// An image is smoothed, sharpened and clipped, and multiplied by a matrix.
const PIPELINE: &str = "core pipeline
size m, n, q
where m >= 0, n >= 0, q >= 0
input x : f64[m + 2, n + 2]
input b : f64[n, q]
input d : f64[q]
rows = gen i in 0..m + 2. gen j in 0..n. x[i, j] + 2.0 * x[i, j + 1] + x[i, j + 2]
cols = gen i in 0..m. gen j in 0..n. rows[i, j] + 2.0 * rows[i + 1, j] + rows[i + 2, j]
sharp = gen i in 0..m. gen j in 0..n. x[i + 1, j + 1] - 0.125 * cols[i, j]
clipped = gen i in 0..m. gen j in 0..n. max(sharp[i, j], 0.0)
c = gen i in 0..m. gen j in 0..q. sum k in 0..n. clipped[i, k] * b[k, j]
y = gen i in 0..m. gen j in 0..q. c[i, j] + d[j]
output y
";

/// Forty steps for it.
const FORTY: &str = "inline(sharp); tile([c.i, c.j], [6, 8]); tile([i, j], [12, 16]); parallelize(i.o); \
                        tile([rows.i, rows.j], [4, 8]); reorder([rows.j.o, rows.i.o, rows.i.i, rows.j.i]); \
                        reorder([rows.i.o, rows.j.o, rows.i.i, rows.j.i]); peel(rows.j.o, tail); vectorize(rows.j.i, 4); \
                        parallelize(rows.i.o); split(cols.i, 5); split(cols.j, 8); reorder([cols.i.o, cols.j.o, cols.i.i, cols.j.i]); \
                        vectorize(cols.j.i, 4); fma(cols); fma(rows); split(clipped.i, 5); fuse_outer(cols.i.o, clipped.i.o); \
                        layout(clipped, pad, 4); layout(rows, pad, 4); split(c.k, 4); \
                        reorder([c.i.o, c.k.o, c.j.o, c.i.i, c.k.i, c.j.i]); stage(b, c.j.o, [1, 0]); registers(acc, c.k.i); fma(c); \
                        peel(c.k.o, tail); unroll_and_jam(c.i.i, 2); vectorize(y.j.i, 8); peel(y.j.o, tail); parallelize(c.i.o); \
                        vectorize(clipped.j, 4); split(clipped.j.o, 2); parallelize(cols.i.o); guard(clipped.i.i); \
                        unroll(b_staged.c1); split(c.j.i.before, 4); vectorize(c.j.i.after, 4); split(c.i.i.before, 3); \
                        interchange(c.i.i.before.o, c.i.i.before.i); unroll(c.i.i.before.i)";

/// Time is measured where the code is optimised, and the best of several runs counts: other work may go on beside.
#[test]
fn forty_steps_take_less_than_a_second() {
    let mut sources = Sources::new();
    let file = sources.add("pipeline.core", PIPELINE);
    let core = parse_program(&sources, file).expect("a program of Core");
    let loops = lower(&core, FpMode::Relaxed).expect("it can be lowered");
    let schedule = steps(FORTY);
    assert_eq!(schedule.len(), 40);
    let once = || {
        let begun = Instant::now();
        let scheduled = apply(loops.clone(), &schedule, FpMode::Relaxed)
            .unwrap_or_else(|refused| panic!("{:?}", refused.diagnostic));
        let outcome = validate(&core, &scheduled.program, &LoopComparison::default());
        (begun.elapsed(), scheduled, outcome)
    };
    let (mut best, scheduled, outcome) = once();
    for taken in &scheduled.taken {
        assert!(taken.is_proved() && taken.violations().is_empty(), "{}\n{}", taken.step, taken.after);
    }
    let Outcome::Agrees(evidence) = outcome else { panic!("{outcome:?}\n{}", scheduled.program) };
    assert!(evidence.steps <= evidence.budget, "{} of {} steps", evidence.steps, evidence.budget);
    if cfg!(not(debug_assertions)) {
        for _ in 0..9 {
            best = best.min(once().0);
        }
        assert!(best < Duration::from_secs(1), "{best:?}");
    }
}
