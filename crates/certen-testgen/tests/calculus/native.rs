//! Native code against the evaluator, many programs at once.
//!
//! A program is lowered as it is written, so that every operation is made in the evaluator's order, and rounds as it does:
//! results are equal bit for bit. Only the functions of the C library may differ, by what [`certen_core::domain::magnitude`]
//! allows, since a C compiler computes them more exactly where it knows their arguments.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use certen_core::domain::magnitude::{Magnitude, Measured};
use certen_core::domain::{Machine, Scalar};
use certen_core::{Program, Tensor, Term, parse_program};
use certen_loops::{FpMode, Lend, LoopProgram, lower, pad, parallelise, reuse, verify};
use certen_runtime::Cache;
use certen_syntax::Sources;
use certen_testgen::calculus::{Case, Truncations};

use super::common::batch::{Batch, Wanted};
use super::{bytes_of_cases, cases, evaluated, lowered};

/// How many programs are compiled at once.
const BATCH: usize = 25;

/// C compilers take their time.
const MOST: u32 = 5_000;

/// Whether a program calls the C library.
fn calls_library(program: &Program) -> bool {
    let calls = |term: &Term| matches!(term, Term::Unary(op, _) if op.is_libm());
    program.terms.iter().any(|(_, term)| calls(term))
}

/// Loops as they are lowered, with buffers that share memory and loops that threads share, or with padded rows: what of
/// these users get, in turn.
fn stored(loops: LoopProgram, at: usize) -> LoopProgram {
    let stored = match at % 3 {
        0 => Ok(loops),
        1 => reuse(loops, Lend::Outputs).map(|loops| parallelise(loops, |_| true)),
        _ => reuse(loops, Lend::Buffers).and_then(|loops| pad(loops, 4)),
    };
    let stored = stored.unwrap_or_else(|error| panic!("{error:?}"));
    let complaints = verify(&stored);
    assert!(complaints.is_empty(), "{complaints:?}\n{stored}");
    stored
}

/// Adds a program with its runs, of which every second has infinities and NaNs among its inputs; false if no run can be
/// evaluated.
fn add(batch: &mut Batch, at: usize, case: &Case) -> bool {
    let Some(loops) = lowered(case) else { return false };
    let loops = stored(loops, at);
    let mut runs = Vec::new();
    for (count, run) in case.runs.iter().enumerate() {
        let given =
            if (count + at).is_multiple_of(2) { case.inputs(run, Scalar::from_i64) } else { case.planted(run, 5) };
        let wanted: Option<Vec<Wanted>> = if calls_library(&case.program) {
            let measured = given.iter().map(|(name, tensor)| (*name, tensor.map(|value| Measured::given(*value))));
            let outputs = evaluated(case, run, &Magnitude, measured.collect());
            outputs.map(|outputs| outputs.into_iter().map(|(_, tensor)| Wanted::Bounds(tensor)).collect())
        } else {
            let outputs = evaluated(case, run, &Machine, given.clone());
            outputs.map(|outputs| outputs.into_iter().map(|(_, tensor)| Wanted::Bits(tensor)).collect())
        };
        runs.extend(wanted.map(|wanted| (run, given, wanted)));
    }
    if runs.is_empty() {
        return false;
    }
    batch.program(&loops);
    for (run, given, wanted) in runs {
        batch.call(&loops, run, &given, wanted, &case.program.to_string());
    }
    true
}

/// Compiles generated programs in batches, on two threads, and says how many could be compared.
fn in_batches(default: u32, seed: u8, run: impl Fn(Batch, &Path) + Sync) {
    let all: Vec<(usize, Vec<u8>)> = bytes_of_cases(cases(default).min(MOST), seed).into_iter().enumerate().collect();
    let batches = Mutex::new(all.chunks(BATCH).collect::<Vec<_>>());
    let added = AtomicUsize::new(0);
    let work = || {
        while let Some(chunk) = { batches.lock().map_or(None, |mut batches| batches.pop()) } {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let mut batch = Batch::new();
            for (at, bytes) in chunk {
                let case = Case::new(bytes, &format!("program_{at}"), Truncations::Legal);
                added.fetch_add(usize::from(add(&mut batch, *at, &case)), Ordering::Relaxed);
            }
            run(batch, directory.path());
        }
    };
    std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(work))));
    let (added, all) = (added.into_inner(), all.len());
    assert!(2 * added >= all, "only {added} of {all} programs could be compared");
}

#[test]
fn native_code_agrees_with_the_evaluator() {
    in_batches(50, 57, |batch, directory| {
        batch.run(&Cache::at(directory).expect("a cache"));
    });
}

/// No access outside a buffer or after its end, no leak, no undefined behaviour: under the sanitizers of addresses and
/// undefined behaviour, with buffers of exactly their size, outputs full of garbage before.
#[test]
fn native_code_agrees_under_sanitizers() {
    in_batches(100, 58, |batch, directory| {
        batch.run_sanitized(directory);
    });
}

/// The batch of one text of C, called on an output of three elements and garbage.
fn sanitized(body: &str) {
    let mut sources = Sources::new();
    let file = sources.add("one.core", "core one\nsize n\nt = gen i in 0..3. 1.0\noutput t\n");
    let loops = lower(&parse_program(&sources, file).expect("a program"), FpMode::Relaxed).expect("loops");
    let mut batch = Batch::new();
    batch.program(&loops);
    let c = format!(
        "#include <stdint.h>\nint32_t certen_call(const int64_t *sizes, void *const *buffers) {{\n    {body}\n}}\n"
    );
    let wanted = Tensor::new(vec![3], vec![Scalar::F64(1.0); 3]).expect("three elements");
    batch.call(&loops, &[("n".into(), 3)], &Vec::new(), vec![Wanted::Bits(wanted)], "");
    batch.run_sanitized_text(&c, tempfile::tempdir().expect("a temporary directory").path());
}

const FILL: &str = "double *t = buffers[0]; for (int64_t i = 0; i < 3; i++) t[i] = 1.0;";

#[test]
fn sanitizers_are_silent_where_all_is_well() {
    sanitized(&format!("{FILL} return (int32_t)(sizes[0] - 3);"));
}

#[test]
#[should_panic(expected = "heap-buffer-overflow")]
fn sanitizers_report_a_store_behind_the_end() {
    sanitized(&format!("{FILL} t[sizes[0]] = 1.0; return 0;"));
}

#[test]
#[should_panic(expected = "signed integer overflow")]
fn sanitizers_report_undefined_behaviour() {
    sanitized(&format!("{FILL} return (int32_t)(sizes[0] + INT64_MAX);"));
}

#[test]
#[should_panic(expected = "not 1.0")]
fn what_was_not_written_is_garbage() {
    sanitized("double *t = buffers[0]; t[0] = t[1] = 1.0; return (int32_t)(sizes[0] - 3);");
}
