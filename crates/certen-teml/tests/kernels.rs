//! The kernels of `examples/teml`: every path of each is proved to keep the meaning, and compared with it.

use std::fs;
use std::path::{Path, PathBuf};

use certen_core::ElemType;
use certen_index::Status;
use certen_loops::FpMode;
use certen_schedule::apply;
use certen_syntax::{Diagnostics, Name, Sources, render_all};
use certen_teml::{Compiled, compile};
use certen_validate::{LoopComparison, Outcome, validate};

fn kernels() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/teml");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut kernels: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|e| e == "teml")).collect();
    kernels.sort();
    assert!(kernels.len() > 10, "{}", kernels.len());
    kernels
}

fn compiled(path: &Path) -> Result<Compiled, String> {
    let mut sources = Sources::new();
    let name = path.file_stem().unwrap().to_str().unwrap();
    let file = sources.add(name, fs::read_to_string(path).unwrap());
    let mut diagnostics = Diagnostics::new();
    let compiled = compile(&sources, file, Name::new(name), ElemType::F64, &mut diagnostics);
    let found = render_all(&sources, &diagnostics.into_sorted(), false);
    if found.is_empty() { compiled.ok_or_else(|| "nothing".into()) } else { Err(found) }
}

#[test]
fn every_path_is_proved_and_agrees() {
    let mut wrong = String::new();
    for kernel in kernels() {
        let compiled = match compiled(&kernel) {
            Ok(compiled) => compiled,
            Err(found) => {
                wrong += &found;
                continue;
            }
        };
        assert!(compiled.paths.len() >= 2, "{}: {} paths", kernel.display(), compiled.paths.len());
        for path in &compiled.paths {
            let name = format!("{} of {}", path.name, kernel.display());
            if !path.in_order {
                wrong += &format!("{name}: another order\n");
            }
            let scheduled = match apply(path.loops.clone(), &path.steps, FpMode::Relaxed) {
                Ok(scheduled) => scheduled,
                Err(refused) => {
                    wrong += &format!("{name}: step {}: {:?}\n", path.steps[refused.at], refused.diagnostic);
                    continue;
                }
            };
            for taken in &scheduled.taken {
                for condition in &taken.conditions {
                    if !matches!(condition.status, Status::Proved(_)) {
                        wrong += &format!("{name}: {}: {}: {:?}\n", taken.step, condition.what, condition.status);
                    }
                }
                if !taken.violations().is_empty() {
                    wrong += &format!("{name}: {}: {:?}\n", taken.step, taken.violations());
                }
            }
            let trial = LoopComparison { lowered: path.lowered.as_deref(), ..LoopComparison::default() };
            match validate(&compiled.core, &scheduled.program, &trial) {
                Outcome::Agrees(_) => {}
                Outcome::Differs(difference) => wrong += &format!("{name}: {difference}\n{}\n", scheduled.program),
                Outcome::Nothing(why) => wrong += &format!("{name}: {why}\n"),
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
