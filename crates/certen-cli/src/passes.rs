//! `--time-passes`: how long each stage of the road took, and how large is what it made.

use certen::{Module, Passed};
use serde_json::{Value, json};

/// A line for each stage that ran, in their order, and one for all together.
pub fn text(module: &Module) -> String {
    let passes = module.passes();
    let line = |name: &str, milliseconds: f64, size: String| format!("{name:<12} {milliseconds:>10.3} ms  {size}");
    let one = |pass: &Passed| {
        let size = pass.size.map_or_else(String::new, |(count, what)| format!("{count:>8} {what}"));
        line(pass.stage.name(), milliseconds(pass), size).trim_end().to_owned() + "\n"
    };
    let all = line("all", passes.iter().map(milliseconds).sum(), String::new());
    passes.iter().map(one).collect::<String>() + all.trim_end() + "\n"
}

/// The same for programs.
pub fn json(module: &Module) -> Value {
    let one = |pass: &Passed| {
        let (size, unit) = pass.size.unzip();
        json!({"stage": pass.stage.name(), "seconds": pass.time.as_secs_f64(), "size": size, "unit": unit})
    };
    module.passes().iter().map(one).collect()
}

fn milliseconds(pass: &Passed) -> f64 {
    1e3 * pass.time.as_secs_f64()
}
