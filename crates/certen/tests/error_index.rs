//! The error index is true: its programs give what their pages say, and `docs/reference/errors.md` is the index of today.

use std::fs;
use std::path::Path;

use certen::guard::{self, Language};
use certen::road::syntax::{Code, Diagnostic, error_index};
use certen::{Module, Options};

/// What checking a text says: the codes of its errors and warnings, and whether it is accepted.
fn verdict(dialect: &str, text: &str) -> (Vec<Code>, bool) {
    let codes = |diagnostics: &[Diagnostic]| diagnostics.iter().map(|d| d.code).collect::<Vec<Code>>();
    let name = format!("example.{dialect}");
    if Language::of(&name).is_some() {
        return match guard::text(&name, text, None) {
            Ok(guarded) => {
                let faults = guarded.kernels().iter().flat_map(|kernel| kernel.faults());
                let all = faults.map(|fault| &fault.diagnostic).chain(guarded.notes());
                (all.map(|diagnostic| diagnostic.code).collect(), guarded.is_safe())
            }
            Err(failure) => (codes(failure.diagnostics()), false),
        };
    }
    match Module::from_text(&name, text, &Options::default()) {
        // What is wrong with a derivation or a schedule is known when loops are made.
        Ok(module) => match module.steps() {
            [] if matches!(module.derived(), Ok(None)) => (codes(module.warnings()), true),
            _ => module
                .c()
                .map_or_else(|failure| (codes(failure.diagnostics()), false), |_| (codes(module.warnings()), true)),
        },
        Err(failure) => (codes(failure.diagnostics()), false),
    }
}

#[test]
fn wrong_examples_give_their_code_and_right_ones_do_not() {
    let mut tested = 0;
    for (code, example) in Code::ALL.iter().filter_map(|&code| Some((code, code.example()?))) {
        let is_error = code.to_string().starts_with('E');
        let (codes, accepted) = verdict(example.dialect, example.wrong);
        assert!(codes.contains(&code), "{code}: the wrong program gives {codes:?}");
        assert_eq!(accepted, !is_error, "{code}: the wrong program");
        let unexpected: Vec<Code> = codes.into_iter().filter(|found| *found != code && *found != Code::W0301).collect();
        assert_eq!(unexpected, [], "{code}: the wrong program shows other mistakes as well");
        let (codes, accepted) = verdict(example.dialect, example.right);
        assert!(accepted && !codes.contains(&code), "{code}: the right program gives {codes:?}");
        tested += 1;
    }
    assert!(tested >= 20, "only {tested} codes have examples");
}

#[test]
fn the_printed_index_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/errors.md");
    if std::env::var_os("CERTEN_BLESS").is_some() {
        fs::write(&path, error_index()).unwrap();
    }
    let printed = fs::read_to_string(&path).unwrap_or_default();
    assert!(printed == error_index(), "docs/reference/errors.md is not of today: run `cargo xtask bless`");
}
