//! What is wrong is refused: one mistake in a program that is otherwise well-typed.
//!
//! Some mistakes are wrong wherever they are made. Of an index or a bound that is moved by one, or of two sizes that are
//! exchanged, the oracle decides by trying sizes up to 4: where it goes wrong, the program must not be accepted.

use std::cell::Cell;

use certen::{Module, Options};
use certen_testgen::ten::oracle::Trouble;
use certen_testgen::ten::tree::Program;
use certen_testgen::ten::{TenMistake, TenSample};

use crate::cases;
use crate::common::for_bytes;

/// How many sizes are tried, at most.
const TRIED: usize = 30;

/// A program with a mistake, if it can be made there.
fn broken(bytes: &[u8], mistake: TenMistake) -> Option<(TenSample, Program)> {
    let sample = TenSample::with_bounds(bytes);
    let choice =
        bytes.iter().fold(7, |choice: u64, byte| choice.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(*byte));
    let program = mistake.make(&sample.program, choice)?;
    Some((sample, program))
}

/// Whether a program goes wrong at sizes that are allowed.
fn goes_wrong(sample: &TenSample, program: &Program) -> Option<Trouble> {
    let all = sample.all_sizes(4);
    let step = all.len().div_ceil(TRIED);
    all.iter().step_by(step).find_map(|sizes| {
        let inputs = sample.inputs(sizes).into_iter().map(|(name, (_, value))| (name, value)).collect();
        program.run(&inputs, sizes).err().filter(|trouble| *trouble != Trouble::TooMuch)
    })
}

fn refused(mistake: TenMistake, cases: u32) {
    let (wrong, made) = (Cell::new(0), Cell::new(0));
    let show = |bytes: &[u8]| broken(bytes, mistake).map_or(String::new(), |(_, program)| program.text());
    let seed = 120 + TenMistake::ALL.iter().position(|one| *one == mistake).unwrap_or(0) as u8;
    for_bytes(cases, seed, show, |bytes| {
        let Some((sample, program)) = broken(bytes, mistake) else { return };
        made.set(made.get() + 1);
        let accepted = Module::from_text("broken.ten", program.text(), &Options::default()).is_ok();
        if mistake.is_certain() {
            wrong.set(wrong.get() + 1);
            assert!(!accepted, "{mistake:?} is accepted");
        } else if let Some(trouble) = goes_wrong(&sample, &program) {
            wrong.set(wrong.get() + 1);
            assert!(!accepted, "{mistake:?} is accepted, but there is {trouble:?}");
        }
    });
    assert!(wrong.get() * 20 >= made.get(), "{} of {} are wrong: too few to say something", wrong.get(), made.get());
    assert!(made.get() * 4 >= cases, "{} of {cases} can be made", made.get());
}

#[test]
fn accesses_out_of_bounds_are_refused() {
    refused(TenMistake::Index, cases());
}

#[test]
fn bounds_that_reach_too_far_are_refused() {
    refused(TenMistake::Bound, cases());
}

#[test]
fn exchanged_sizes_are_refused() {
    refused(TenMistake::Swapped, cases());
}

#[test]
fn other_mistakes_are_refused() {
    for mistake in TenMistake::ALL.into_iter().filter(|mistake| mistake.is_certain()) {
        refused(mistake, cases() / 5);
    }
}
