//! Any bytes as a program: accepted or refused, never a panic. What is accepted lowers, verifies and prints as C.
#![no_main]

use certen::{Module, Options};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (Some((first, rest)), Ok(_)) = (bytes.split_first(), std::str::from_utf8(bytes)) else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let name = ["fuzz.teil", "fuzz.core", "fuzz.model", "fuzz.ten", "fuzz.teml"][usize::from(first % 5)];
    match Module::from_text(name, text, &Options::default()) {
        Ok(module) => {
            let printed = module.core().to_string();
            assert!(Module::from_text("again.core", printed, &Options::default()).is_ok());
            let _ = module.c();
        }
        Err(failure) => assert!(!failure.to_string().is_empty()),
    }
});
