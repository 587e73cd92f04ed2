//! Questions to the prover, as trees of their own.
//!
//! The prover sees a question only as text. What the question means is said here a second time, by [`tree`], which knows
//! nothing of normal forms: a wrong normal form shows as a wrong answer.

#![allow(dead_code, reason = "every test file uses its own part")]

pub mod corpus;
pub mod generate;
pub mod parse;
pub mod question;
pub mod respell;
pub mod rng;
pub mod tree;

/// How many generated questions a property is tested with: `CERTEN_CASES`, else 3,000. The slow set sets it to 100,000.
pub fn cases() -> u64 {
    std::env::var("CERTEN_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(3_000)
}

/// What `each` finds wrong with the generated questions from `first` on, in order, on all processors.
pub fn failures<F>(first: u64, count: u64, each: F) -> Vec<String>
where
    F: Fn(u64) -> Result<(), String> + Sync,
{
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let share = |worker: u64| {
        let seeds = (first..first + count).filter(move |seed| seed % workers == worker);
        seeds.filter_map(|seed| each(seed).err().map(|why| (seed, why))).collect::<Vec<_>>()
    };
    let mut all: Vec<(u64, String)> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..workers).map(|worker| scope.spawn(move || share(worker))).collect();
        running.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    all.sort();
    all.into_iter().map(|(seed, why)| format!("question {seed}: {why}")).collect()
}

/// Fails with the first few of a list of failures.
pub fn report(failures: &[String], of: u64) {
    let shown = failures.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} of {of} fail\n{shown}", failures.len());
}
