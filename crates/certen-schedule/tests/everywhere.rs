//! Steps of one loop, and those that move stages and buffers, tried on every stage, buffer and loop of the programs in
//! `tests/transforms`, with and without splitting all loops before.
//!
//! Whatever is accepted has to verify, and to compute the same if all its conditions are shown. `CERTEN_EVERYWHERE=DIR` takes
//! the programs of another directory, `*.loops`.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use certen_loops::{FpMode, LoopProgram, Stmt, parse_loops, sites, verify};
use certen_schedule::{Condition, Scheduled, Status, apply};
use certen_syntax::schedule::parse_steps;
use certen_syntax::{Diagnostics, Name, Sources};
use common::{Values, run, value};

/// The programs, each once.
fn programs() -> Vec<(String, LoopProgram)> {
    let given = std::env::var_os("CERTEN_EVERYWHERE").map(PathBuf::from);
    let root = given.clone().unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/transforms"));
    let mut paths: Vec<PathBuf> = fs::read_dir(root).unwrap().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let mut seen = BTreeSet::new();
    let mut programs = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let program = if given.is_some() { text.as_str() } else { text.split("---\n").nth(1).unwrap() };
        if !seen.insert(program.to_owned()) {
            continue;
        }
        let mut sources = Sources::new();
        let file = sources.add("program", program);
        let Ok(program) = parse_loops(&sources, file) else { panic!("{}", path.display()) };
        programs.push((path.file_name().unwrap().to_string_lossy().into_owned(), program));
    }
    programs
}

/// The loops of a program, as steps call them; the stages that have buffers; all buffers.
fn names(program: &LoopProgram) -> (Vec<String>, Vec<String>, Vec<(String, usize)>) {
    let mut loops: Vec<(Option<Name>, Name)> = Vec::new();
    let (mut stages, mut buffers) = (Vec::new(), Vec::new());
    for parameter in program.inputs.iter().chain(&program.outputs) {
        buffers.push((parameter.name.to_string(), parameter.ty.rank()));
    }
    for site in sites(&program.body) {
        match site.stmt {
            Stmt::Alloc(name, ty) => {
                stages.push(name.to_string());
                buffers.push((name.to_string(), ty.rank()));
            }
            Stmt::For { index, .. } => loops.push((site.nest, *index)),
            _ => {}
        }
    }
    let mut paths = Vec::new();
    for (at, (stage, index)) in loops.iter().enumerate() {
        let nth = loops[..at].iter().filter(|known| **known == (*stage, *index)).count() + 1;
        paths.push(match stage {
            Some(stage) => format!("{stage}.{index}#{nth}"),
            None => format!("{index}#{nth}"),
        });
    }
    (paths, stages, buffers)
}

/// Every step of interest.
fn steps(program: &LoopProgram) -> Vec<String> {
    let (loops, stages, buffers) = names(program);
    let mut steps = Vec::new();
    for stage in &stages {
        steps.push(format!("inline({stage})"));
        steps.push(format!("layout({stage}, pad, 3)"));
        steps.push(format!("store_at({stage}, root)"));
        for at in &loops {
            steps.push(format!("compute_at({stage}, {at})"));
            steps.push(format!("store_at({stage}, {at})"));
        }
    }
    for at in &loops {
        let ways = ["first, 2", "last, 1", "tail"];
        steps.extend(ways.iter().map(|way| format!("peel({at}, {way})")));
        steps.push(format!("fma({at})"));
        for step in ["unroll", "unroll_and_jam", "vectorize", "parallelize"] {
            steps.push(format!("{step}({at}, 3)"));
        }
    }
    for (buffer, rank) in &buffers {
        let reversed: Vec<String> = (0..*rank).rev().map(|dim| dim.to_string()).collect();
        for at in &loops {
            steps.push(format!("stage({buffer}, {at}, [{}])", reversed.join(", ")));
            steps.push(format!("registers({buffer}, {at})"));
        }
        if stages.contains(buffer) {
            steps.push(format!("layout({buffer}, [{}])", reversed.join(", ")));
        }
    }
    steps
}

fn taken(program: &LoopProgram, text: &str) -> Option<Scheduled> {
    let mut sources = Sources::new();
    let file = sources.add("steps", text);
    let steps =
        parse_steps(sources.get(file).unwrap(), file, &mut Diagnostics::new()).unwrap_or_else(|| panic!("{text}"));
    apply(program.clone(), &steps, FpMode::Relaxed).ok()
}

/// Some sizes, the same in every run.
fn sizes(program: &LoopProgram) -> Vec<Vec<(Name, i64)>> {
    let mut found = Vec::new();
    for seed in 0u64..200 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d;
        let mut draw = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((state >> 33) % 8) as i64
        };
        let given: Vec<(Name, i64)> = program.sizes.iter().map(|name| (*name, draw())).collect();
        if program.facts.iter().all(|fact| fact.eval(&|name| value(&given, name)).unwrap_or(false))
            && !found.contains(&given)
        {
            found.push(given);
        }
        if found.len() == 6 {
            break;
        }
    }
    found
}

/// What is wrong with a program that steps made of one with these values.
fn complaint(expected: &[(Vec<(Name, i64)>, Values)], scheduled: &Scheduled) -> Option<String> {
    let after = &scheduled.program;
    if let Some(violation) = verify(after).first() {
        // Iterations that are shown to depend on each other are a race, and told as such.
        let refuted = |condition: &Condition| matches!(condition.status, Status::Fails(_));
        let told = scheduled.taken.iter().flat_map(|taken| &taken.conditions).any(refuted);
        return (!told).then(|| format!("{} {:?}", violation.message, violation.notes));
    }
    let mut sources = Sources::new();
    let text = after.to_string();
    let file = sources.add("after", text.as_str());
    match parse_loops(&sources, file) {
        Ok(again) if again.to_string() == text => {}
        _ => return Some("it is not read back".into()),
    }
    if !scheduled.is_proved() {
        return None;
    }
    for (sizes, values) in expected {
        let found = run(after, sizes);
        if found.as_ref() != Ok(values) {
            return Some(format!("at {sizes:?}: expected {values:?}, found {found:?}"));
        }
    }
    None
}

#[test]
fn every_step_everywhere() {
    let mut complaints = Vec::new();
    let (mut accepted, mut proved, mut tried) = (0, 0, 0);
    for (name, program) in programs() {
        let mut expected = Vec::new();
        for sizes in sizes(&program) {
            if let Ok(values) = run(&program, &sizes) {
                expected.push((sizes, values));
            }
        }
        let (loops, ..) = names(&program);
        let mut begins = vec![String::new()];
        begins.push(loops.iter().map(|at| format!("split({at}, 2)")).collect::<Vec<_>>().join("; "));
        for begin in &begins {
            let Some(start) = taken(&program, begin) else { continue };
            for step in steps(&start.program) {
                tried += 1;
                let Some(scheduled) = taken(&start.program, &step) else { continue };
                accepted += 1;
                proved += usize::from(scheduled.is_proved());
                if let Some(why) = complaint(&expected, &scheduled) {
                    complaints.push(format!("{name}: {begin}; {step}: {why}\n{}", scheduled.program));
                }
            }
        }
    }
    finish(&complaints);
    assert!(proved > 100, "{tried} steps, {accepted} accepted, {proved} proved");
}

/// Steps chosen by a seed, one after the other.
#[test]
fn several_steps() {
    let mut complaints = Vec::new();
    let (mut proved, mut state) = (0, 1u64);
    let mut draw = |most: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % most.max(1)
    };
    for (name, program) in programs() {
        let mut expected = Vec::new();
        for sizes in sizes(&program) {
            if let Ok(values) = run(&program, &sizes) {
                expected.push((sizes, values));
            }
        }
        for _ in 0..10 {
            let (mut current, mut done, mut is_proved) = (program.clone(), Vec::new(), true);
            for _ in 0..5 {
                let (loops, ..) = names(&current);
                let Some(at) = loops.get(draw(loops.len())) else { break };
                let all = steps(&current);
                let step = match draw(4) {
                    0 => format!("split({at}, {})", draw(4) + 1),
                    1 => format!("interchange({at}, {})", loops[draw(loops.len())]),
                    _ if all.is_empty() => continue,
                    _ => all[draw(all.len())].clone(),
                };
                let Some(scheduled) = taken(&current, &step) else { continue };
                done.push(step);
                is_proved &= scheduled.is_proved();
                if is_proved {
                    proved += 1;
                    if let Some(why) = complaint(&expected, &scheduled) {
                        complaints.push(format!("{name}: {}: {why}\n{}", done.join("; "), scheduled.program));
                        break;
                    }
                }
                current = scheduled.program;
            }
        }
    }
    finish(&complaints);
    assert!(proved > 100, "{proved} proved");
}

fn finish(complaints: &[String]) {
    let first = complaints.iter().take(8).cloned().collect::<Vec<_>>().join("\n");
    assert!(complaints.is_empty(), "{} complaints:\n{first}", complaints.len());
}
