//! The theorems of ATL's compiler as properties of programs of the whole calculus: with every construct of Core, at sizes
//! 0, 1 and primes, over every element type.
//!
//! - `loops.rs`: loops mean what the evaluator says (Thm. 6.2 and 6.3), in exact and in the machine's numbers, with
//!   destinations that are undefined before; their stores are well-formed (Sec. 4.2, 4.3 and 6.5);
//! - `padding.rs`: what is shown to be padding is (Thm. 6.1), and truncations cut nothing else;
//! - `native.rs`: so does native code, bit for bit, also with infinities among the inputs, and under sanitizers.

#[path = "../common/mod.rs"]
mod common;
mod constructs;
mod loops;
mod native;
mod padding;

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU32, Ordering};

use certen_core::{Domain, EvalError, Evaluator, Fault, Tensor};
use certen_loops::{FpMode, LoopProgram, lower, verify};
use certen_syntax::{Code, Diagnostic, Name};
use certen_testgen::calculus::{Case, Size, Truncations};
use common::for_bytes;

/// Steps of the evaluator and of the interpreter after which a program is left out.
const FUEL: [u64; 2] = [200_000, 2_000_000];

/// How many programs a property is tested with: `CERTEN_CASES`, twice as many in the slow set, else a few.
fn cases(default: u32) -> u32 {
    match certen_testgen::cases() {
        _ if std::env::var_os("CERTEN_CASES").is_none() => default,
        cases if cases >= 10_000 => 2 * cases,
        cases => cases,
    }
}

/// Runs a test on generated programs. It says whether it did something; for most of them it must.
fn for_cases(default: u32, seed: u8, test: impl Fn(&Case) -> bool) {
    let make = |bytes: &[u8]| Case::new(bytes, "generated", Truncations::Legal);
    let (done, all) = (Cell::new(0), Cell::new(0));
    let show = |bytes: &[u8]| {
        let case = make(bytes);
        format!("{:?}\n{}", case.runs, case.program)
    };
    for_bytes(cases(default), seed, show, |bytes| {
        all.set(all.get() + 1);
        done.set(done.get() + u32::from(test(&make(bytes))));
    });
    assert!(2 * done.get() >= all.get(), "only {} of {} programs could be compared", done.get(), all.get());
}

/// The bytes of so many cases.
fn bytes_of_cases(cases: u32, seed: u8) -> Vec<Vec<u8>> {
    let all = RefCell::new(Vec::new());
    for_bytes(cases, seed, |_| String::new(), |bytes| all.borrow_mut().push(bytes.to_vec()));
    all.into_inner()
}

type Outputs<V> = Vec<(Name, Tensor<V>)>;

/// What the evaluator says; nothing if it takes too long, or the domain has no such operation.
fn evaluated<D: Domain>(case: &Case, run: &[Size], domain: &D, inputs: Outputs<D::Value>) -> Option<Outputs<D::Value>> {
    let evaluator = Evaluator::new(&case.program, domain, run.iter().copied(), inputs).expect("a call of the program");
    match evaluator.with_fuel(FUEL[0]).run() {
        Ok(outputs) => Some(outputs),
        Err(EvalError::Fuel | EvalError::Fault(Fault::Unsupported(_) | Fault::TooLarge)) => None,
        Err(error) => panic!("{error}\n{}", case.program),
    }
}

/// The loops of a program, verified. Nothing if the verifier cannot follow an index, as with a truncation by a remainder
/// under a flattening with a symbolic size; one program in 200 may be like that.
fn lowered(case: &Case) -> Option<LoopProgram> {
    static ALL: AtomicU32 = AtomicU32::new(0);
    static NOT_SHOWN: AtomicU32 = AtomicU32::new(0);
    // Every operation is compared, so sums are made as they are written.
    let loops = lower(&case.program, FpMode::Strict);
    let complaints = match &loops {
        Ok(loops) => verify(loops),
        Err(error) if error.code == Code::E0702 => vec![error.clone()],
        Err(error) => panic!("{error:?}\n{}", case.program),
    };
    let all = ALL.fetch_add(1, Ordering::Relaxed);
    if complaints.is_empty() {
        return loops.ok();
    }
    let is_refuted = |complaint: &Diagnostic| complaint.notes.iter().any(|note| note.contains(" not "));
    let unknown = |complaint: &Diagnostic| complaint.message.contains("not shown") && !is_refuted(complaint);
    let few = NOT_SHOWN.fetch_add(1, Ordering::Relaxed) * 200 <= all + 200;
    assert!(few && complaints.iter().all(unknown), "{complaints:?}\n{}\n{loops:?}", case.program);
    None
}
