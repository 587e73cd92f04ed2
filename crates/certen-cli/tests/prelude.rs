//! What the prelude claims in its comments holds, and what the tables in `tests/prelude` claim of it: at ranks 0 to 4, on
//! empty shapes, at every element type, and of calls that must be refused.

mod common;

use std::path::Path;

use common::{CERTEN, command, run};

#[test]
fn the_claims_of_the_prelude_and_of_its_tables_hold() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let ran = run(command(CERTEN, &root).args(["test", "crates/certen-lang/prelude/prelude.ten", "tests/prelude"]));
    assert_eq!(ran.status, Some(0), "{}{}", ran.out, ran.err);
    // A file without claims would hold too.
    let passed = |file: &str| {
        let line = ran.out.lines().find_map(|line| line.strip_prefix(file)?.strip_prefix(": "));
        line.and_then(|line| line.split(' ').next()?.parse::<usize>().ok()).unwrap_or(0)
    };
    assert!(passed("crates/certen-lang/prelude/prelude.ten") >= 100, "{}", ran.out);
    for (table, least) in [("ranks", 150), ("empty", 100), ("elements", 20), ("refused", 30)] {
        assert!(passed(&format!("tests/prelude/{table}.ten")) >= least, "{table}: {}", ran.out);
    }
}
