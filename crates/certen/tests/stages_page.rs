//! `docs/contributing/stages.md` is the list of stages, and the stages that run are those of the list, in its order.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use certen::{Call, Choice, Input, Module, Options, Stage, VIEWS};

const HEAD: &str = "# The stages\n\n\
    What happens between text and machine code, in order. This page is written by `crates/certen/tests/stages_page.rs` from \
    `crates/certen/src/stage.rs`; `crates/certen/src/pipeline.rs` runs the stages, `certen explain FILE --time-passes` shows \
    how long each takes.\n";

fn page() -> String {
    let mut page = HEAD.to_owned();
    for (number, stage) in Stage::ALL.iter().enumerate() {
        let (from, to) = stage.types();
        let _ = write!(page, "\n## {}. {stage}: {from} → {to}\n\n{}\n\n", number + 1, stage.about());
        let _ = writeln!(page, "*Afterwards:* {}", stage.guarantees());
        let views: Vec<String> =
            VIEWS.iter().filter(|view| view.stage == *stage).map(|view| format!("`{}`", view.name)).collect();
        if !views.is_empty() {
            let _ = writeln!(page, "\n*Shown by* `certen explain --only`: {}", views.join(", "));
        }
    }
    page
}

#[test]
fn the_page_of_stages_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/contributing/stages.md");
    if std::env::var_os("CERTEN_BLESS").is_some() {
        fs::write(&path, page()).unwrap();
    } else {
        assert!(fs::read_to_string(&path).unwrap() == page(), "{path:?} is not of today: run `cargo xtask bless`");
    }
}

/// Stages that ran, in the order in which they came to their end.
fn ran(text: &str, options: &Options) -> Vec<Stage> {
    let module = Module::from_text("t.ten", text, options).unwrap();
    let call = Call::new().input("x", Input::Iota).dim("n", 5);
    module.run(&call).unwrap();
    module.run(&call).unwrap();
    module.passes().iter().map(|pass| pass.stage).collect()
}

#[test]
fn every_stage_runs_once_in_the_order_of_the_list() {
    let without = |stages: &[Stage]| -> Vec<Stage> {
        Stage::ALL.iter().copied().filter(|stage| !stages.contains(stage)).collect()
    };
    let plain = "fn f(x: f64[n]) -> f64[n] { { [i] -> 2 * x[i] } }\n".to_owned();
    assert_eq!(ran(&plain, &Options::default()), without(&[Stage::Scheduled]));
    let scheduled = plain + "schedule f { split(i, 8); }\n";
    assert_eq!(ran(&scheduled, &Options::default()), without(&[Stage::Planned]));
    let product = "fn f(x: f64[n, n]) -> f64[n, n] { { [i, j] -> sum({ [k] -> x[i, k] * x[k, j] }) } }\n";
    assert_eq!(ran(product, &Options { schedule: Choice::Auto, ..Options::default() }), Stage::ALL);
}
