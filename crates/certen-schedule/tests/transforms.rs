//! Steps on loops, as data: `tests/transforms` holds programs of loops with steps and what comes of them.
//!
//! A file has three parts between lines of `---`: remarks and `steps: …` with `verdict: …`, the loops, and what the steps
//! make of them, with their conditions, or the message that refuses them. Verdicts:
//!
//! - `proved`: all conditions are shown; then both programs are run in the prime field at all small sizes, and must agree;
//! - `fails`: a condition is refuted; then they must differ somewhere, unless `harmless` stands after it;
//! - `open`: a condition is not decided;
//! - `refused`: the steps cannot be taken.
//!
//! `steps: none` shows the vectors that loops get which no step has touched.
//!
//! `CERTEN_BLESS=1` rewrites the verdict and the last part.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use certen_loops::{FpMode, LoopProgram, parse_loops, verify};
use certen_schedule::{Scheduled, Status, Taken, apply, page, vectorise};
use certen_syntax::schedule::{Step, parse_steps};
use certen_syntax::{Diagnostics, Name, Sources, render_all};
use common::{run, value};

fn files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/transforms");
    let mut files: Vec<PathBuf> = fs::read_dir(root).unwrap().flatten().map(|entry| entry.path()).collect();
    files.sort();
    files
}

fn steps(sources: &mut Sources, text: &str) -> Vec<Step> {
    let mut diagnostics = Diagnostics::new();
    let file = sources.add("steps", text);
    let steps = parse_steps(sources.get(file).unwrap(), file, &mut diagnostics);
    steps.unwrap_or_else(|| panic!("{text}: {:?}", diagnostics.into_sorted()))
}

/// What a file says after the steps are taken.
fn found(name: &str, text: &str) -> String {
    let mut parts = text.split("---\n");
    let (head, program) = (parts.next().unwrap(), parts.next().unwrap_or_else(|| panic!("{name}: no loops")));
    let wanted =
        head.lines().find_map(|line| line.strip_prefix("steps:")).unwrap_or_else(|| panic!("{name}: no steps"));
    let harmless = head.lines().any(|line| line.starts_with("verdict:") && line.ends_with("harmless"));
    let mut sources = Sources::new();
    let file = sources.add(name, program);
    let before = parse_loops(&sources, file).unwrap_or_else(|errors| panic!("{name}: {:?}", errors.into_sorted()));
    assert!(verify(&before).is_empty(), "{name}: the loops as written: {:?}", verify(&before));
    let steps = if wanted.trim() == "none" { Vec::new() } else { steps(&mut sources, wanted.trim()) };
    let (verdict, result) = match apply(before.clone(), &steps, FpMode::Relaxed) {
        Ok(scheduled) if steps.is_empty() => {
            let program = vectorise(before.clone(), |_| true);
            assert!(verify(&program).is_empty(), "{name}: {:?}\n{program}", verify(&program));
            judged(name, &before, &Scheduled { program, ..scheduled }, harmless)
        }
        Ok(scheduled) => judged(name, &before, &scheduled, harmless),
        Err(refused) => ("refused".into(), render_all(&sources, &[refused.diagnostic], false)),
    };
    let head: String = head
        .lines()
        .map(|line| if line.starts_with("verdict:") { format!("verdict: {verdict}\n") } else { format!("{line}\n") })
        .collect();
    format!("{head}---\n{program}---\n{result}")
}

/// The verdict, and the loops with the conditions of all steps.
fn judged(name: &str, before: &LoopProgram, scheduled: &Scheduled, harmless: bool) -> (String, String) {
    let after = &scheduled.program;
    let text = after.to_string();
    let begin = text.lines().take_while(|line| !line.starts_with("output")).count();
    let skipped = text.lines().skip(begin).take_while(|line| line.starts_with("output")).count();
    let mut result: String = text.lines().skip(begin + skipped).map(|line| format!("{line}\n")).collect();
    // The text is a program again.
    let mut sources = Sources::new();
    let file = sources.add("after", text.as_str());
    let again =
        parse_loops(&sources, file).unwrap_or_else(|errors| panic!("{name}:\n{text}{:?}", errors.into_sorted()));
    assert_eq!(again.to_string(), text, "{name}");
    let (mut fails, mut open) = (false, false);
    for taken in &scheduled.taken {
        for condition in &taken.conditions {
            let known = match &condition.status {
                Status::Proved(proofs) => {
                    for proof in proofs {
                        certen_index::check(&proof.facts, &proof.goal, &proof.witness).unwrap();
                    }
                    "proved".into()
                }
                Status::Fails(why) => {
                    fails = true;
                    format!("fails: {why}")
                }
                Status::Open => {
                    open = true;
                    "open".into()
                }
            };
            result += &format!("{}: {}: {known}\n", taken.step, condition.what);
        }
    }
    let violations = scheduled.taken.last().map(Taken::violations).unwrap_or_default();
    for violation in violations {
        result += &format!("violation: {}\n", violation.message);
        violation.notes.iter().for_each(|note| result += &format!("    {note}\n"));
    }
    let difference = difference(before, after);
    match (fails, open, &difference) {
        (false, false, Some(difference)) => panic!("{name}: proved, but {difference}\n{text}"),
        (true, _, None) => assert!(harmless, "{name}: a condition fails, but no value differs\n{result}"),
        (true, _, Some(_)) => assert!(!harmless, "{name}: it is not harmless"),
        _ => {}
    }
    let verdict = match (fails, open) {
        (true, _) if harmless => "fails harmless",
        (true, _) => "fails",
        (_, true) => "open",
        _ => "proved",
    };
    (verdict.into(), result)
}

/// The first difference between two programs at small sizes, in the prime field.
fn difference(before: &LoopProgram, after: &LoopProgram) -> Option<String> {
    let names = &before.sizes;
    let most: i64 = match names.len() {
        0 => 0,
        1 => 40,
        2 => 12,
        3 => 6,
        _ => 3,
    };
    let mut sizes = vec![0; names.len()];
    loop {
        let given: Vec<(Name, i64)> = names.iter().copied().zip(sizes.iter().copied()).collect();
        if before.facts.iter().all(|fact| fact.eval(&|name| value(&given, name)).unwrap_or(false)) {
            let (one, two) = (run(before, &given), run(after, &given));
            match (one, two) {
                (Ok(one), Ok(two)) if one == two => {}
                (one, two) => return Some(format!("at {given:?}: {one:?} is not {two:?}")),
            }
        }
        // The next combination of sizes, the last one fastest.
        let at = (0..sizes.len()).rev().find(|&at| sizes[at] < most)?;
        sizes[at] += 1;
        sizes[at + 1..].fill(0);
    }
}

#[test]
fn transforms() {
    let bless = std::env::var_os("CERTEN_BLESS").is_some();
    let mut wrong = Vec::new();
    for path in files() {
        let text = fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let found = found(&name, &text);
        if found != text {
            if bless {
                fs::write(&path, found).unwrap();
            } else {
                wrong.push(format!("{name}:\n{found}"));
            }
        }
    }
    assert!(wrong.is_empty(), "not as expected; CERTEN_BLESS=1 rewrites them:\n{}", wrong.join("\n"));
}

#[test]
fn the_page_is_complete() {
    let page = page().unwrap_or_else(|why| panic!("{why}"));
    for primitive in certen_schedule::primitives() {
        assert!(format!("\n{page}").contains(&format!("\n## {}\n", primitive.name)), "{}", primitive.name);
        let (before, scheduled) = primitive.example.run().unwrap_or_else(|why| panic!("{}: {why}", primitive.name));
        assert!(verify(&before).is_empty(), "{}: {:?}", primitive.name, verify(&before));
        assert!(scheduled.is_proved(), "{}: the example of a step is right", primitive.name);
        assert_eq!(scheduled.taken.last().map(|taken| taken.step.name.as_str()), Some(primitive.name));
        assert_eq!(difference(&before, &scheduled.program), None, "{}", primitive.name);
    }
}
