//! The loops of every example and test program agree with the meaning, quickly.

#![allow(clippy::print_stdout)]

mod common;

use std::time::Instant;

use certen_loops::verify;
use certen_validate::{Outcome, validate};
use common::{by_hand, programs};

#[test]
fn every_program_agrees_with_its_meaning() {
    let mut failed = Vec::new();
    for case in programs("examples").into_iter().chain(programs("tests/programs")).chain(by_hand()) {
        let start = Instant::now();
        assert!(verify(&case.nest).is_empty(), "{}", case.nest);
        let verified = start.elapsed();
        let outcome = validate(&case.meaning, &case.nest, &case.trial());
        let time = start.elapsed() - verified;
        match outcome {
            Outcome::Agrees(evidence) => {
                println!("{:40} verify {verified:6.1?} validate {time:6.1?} {evidence}", case.name);
            }
            Outcome::Nothing(why) => println!("{:40} {time:6.1?} nothing: {why}", case.name),
            Outcome::Differs(difference) => failed.push(format!("{}: {difference}", case.name)),
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
