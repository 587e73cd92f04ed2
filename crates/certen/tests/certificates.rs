//! Certificates of all examples and of all programs in `tests/programs`.

#![allow(clippy::print_stdout, reason = "what was counted is told")]

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use certen::road::checker::{Obligation, check, obligations};
use certen::road::index::{Cond, Facts, Verdict};
use certen::road::loops::{FpMode, parse_loops, verify};
use certen::road::schedule::{apply, vectorise};
use certen::road::syntax::schedule::parse_steps;
use certen::road::syntax::{Diagnostics, Sources};
use certen::{ElemType, Module, Name, Options, Texts, functions};

/// All programs below a folder, in order.
fn programs(folder: &str) -> Vec<PathBuf> {
    let (mut found, mut todo) = (Vec::new(), vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder)]);
    while let Some(folder) = todo.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let ending = path.extension().and_then(|ending| ending.to_str());
            match ending {
                _ if path.is_dir() => todo.push(path),
                Some("ten" | "teil" | "model" | "core") => found.push(path),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

/// All functions of a file that can be compiled without being told more.
fn modules(path: &Path) -> Vec<(String, Module)> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).unwrap();
    let options = Options { elem: ElemType::F64, ..Options::default() };
    let Ok(functions) = functions(&Texts::read(&name, text.clone()), &options) else { return Vec::new() };
    let is_ten = name.ends_with(".ten");
    let module = |function: Name| {
        let options = Options { function: is_ten.then_some(function), ..options.clone() };
        let module = Module::from_text(&name, text.clone(), &options).ok()?;
        module.loops().ok()?;
        Some((format!("{}:{function}", path.file_name()?.display()), module))
    };
    functions.into_iter().filter_map(module).collect()
}

/// The time that this thread has computed, where the system tells: other tests are not to blame.
fn computed() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.and_then(|text| text.split(' ').next()?.parse().ok());
    static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    nanoseconds.map_or_else(|| BEGIN.elapsed(), Duration::from_nanos)
}

/// A certificate of at most so many bytes is checked in 50 ms and made in 300 ms, a longer one in proportion.
const SHORT: usize = 256 * 1024;

fn certified(folder: &str) {
    let (mut longest, mut count, mut tested, mut bad) = ((Duration::ZERO, String::new()), 0, 0, Vec::new());
    let (mut made, mut slowest) = ((Duration::ZERO, String::new()), [0.0f64; 2]);
    for path in programs(folder) {
        for (name, module) in modules(&path) {
            let begin = computed();
            let certificate = match module.certificate() {
                Ok(certificate) => certificate,
                Err(failure) => {
                    bad.push(format!("{name}: {failure}"));
                    continue;
                }
            };
            let making = computed() - begin;
            let text = certificate.text();
            let begin = computed();
            if let Err(rejection) = check(&text, module.core()) {
                bad.push(format!("{name}: {rejection}"));
            }
            let took = computed() - begin;
            longest = longest.max((took, format!("{name}, {} bytes", text.len())));
            made = made.max((making, name));
            let seconds = |took: Duration| took.as_secs_f64() * SHORT as f64 / text.len().max(SHORT) as f64;
            slowest = [slowest[0].max(seconds(took)), slowest[1].max(seconds(making))];
            count += 1;
            tested += usize::from(!certificate.tests.is_empty());
        }
    }
    println!(
        "{folder}: {count} certificates, {tested} with tests; longest check {longest:?}, made in at most {made:?}"
    );
    // Times are limited in the slow set, which is optimised. To make one, every access is proved in bounds and the loops are
    // compared with the meaning.
    assert!(cfg!(debug_assertions) || slowest[0] < 0.05, "{} s in proportion; {longest:?}", slowest[0]);
    assert!(cfg!(debug_assertions) || slowest[1] < 0.3, "{} s in proportion; {made:?}", slowest[1]);
    assert!(bad.is_empty(), "{} of {count}:\n{}", bad.len(), bad.join("\n"));
}

#[test]
fn examples() {
    certified("examples");
}

#[test]
fn test_programs() {
    certified("tests/programs");
}

fn is_proved(obligation: &Obligation) -> bool {
    let mut facts = Facts::new();
    obligation.facts.iter().for_each(|fact| facts.assume(fact.clone()));
    [&obligation.goal, &Cond::never()].into_iter().any(|goal| facts.prove(goal) == Verdict::Yes)
}

/// Whatever the verifier accepts, the checker's obligations can be proved of: also of loops that schedules have made.
#[test]
fn transformed_loops() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/transforms");
    let (mut count, mut loops, mut bad) = (0, 0, Vec::new());
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let steps = text.lines().find_map(|line| line.strip_prefix("steps:")).unwrap();
        let program = text.split("---\n").nth(1).unwrap();
        let mut sources = Sources::new();
        let (steps, program) = (sources.add("steps", steps), sources.add("loops", program));
        let before = parse_loops(&sources, program).unwrap();
        let nests = match parse_steps(sources.get(steps).unwrap(), steps, &mut Diagnostics::new()) {
            // The vectors of loops that no step has touched.
            None => vec![before.clone(), vectorise(before, |_| true)],
            Some(steps) => {
                let taken = match apply(before.clone(), &steps, FpMode::Relaxed) {
                    Ok(scheduled) => scheduled.taken,
                    Err(refused) => refused.taken,
                };
                [before].into_iter().chain(taken.into_iter().map(|taken| taken.after)).collect()
            }
        };
        for nest in nests {
            if !verify(&nest).is_empty() {
                continue;
            }
            loops += 1;
            let name = path.file_stem().unwrap().display();
            match obligations(&nest) {
                Err(rejection) => bad.push(format!("{name}: {rejection}")),
                Ok(found) => {
                    count += found.len();
                    let open = found.iter().filter(|obligation| !is_proved(obligation));
                    bad.extend(open.map(|obligation| format!("{name}: {}", obligation.what)));
                }
            }
        }
    }
    println!("{count} obligations of {loops} programs of loops, {} not proved", bad.len());
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}
