//! `docs/reference/steps.md` ends with the page of all steps, as they are today.

use std::fs;
use std::path::Path;

use certen::road::schedule::{page, primitives};

/// Where the part of the page begins that is made.
const MARK: &str = "<!-- Everything below is written by crates/certen/tests/schedules_page.rs -->\n";

#[test]
fn the_page_of_steps_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/steps.md");
    let written = fs::read_to_string(&path).unwrap();
    let (by_hand, _) = written.split_once(MARK).expect("the page has the mark");
    let found = format!("{by_hand}{MARK}\n{}", page().unwrap().trim_end()) + "\n";
    if std::env::var_os("CERTEN_BLESS").is_some() {
        fs::write(&path, &found).unwrap();
    } else {
        assert!(written == found, "docs/reference/steps.md is not of today: run `cargo xtask bless`");
    }
    let missing: Vec<&str> = primitives().iter().map(|step| step.name).filter(|name| !found.contains(name)).collect();
    assert!(missing.is_empty(), "the page says nothing of {missing:?}");
}
