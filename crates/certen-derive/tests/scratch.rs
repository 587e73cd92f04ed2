//! Scratch.
use certen_core::{Program, parse_program};
use certen_derive::{derive, script::parse_steps};
use certen_index::Status;
use certen_syntax::{Diagnostics, Name, Sources};

fn core(path: &str) -> Program {
    let mut sources = Sources::new();
    let file = sources.add(path, std::fs::read_to_string(path).unwrap());
    parse_program(&sources, file).unwrap()
}

#[test]
fn scripts() {
    let only = std::env::var("ONLY").unwrap_or_default();
    let verbose = std::env::var_os("VERBOSE").is_some();
    let mut files: Vec<_> = std::fs::read_dir("/tmp/d3s").unwrap().flatten().map(|e| e.path()).collect();
    files.sort();
    let mut bad = 0;
    for path in files {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let Some((name, from)) = name.split_once('.') else { continue };
        if from == "core" || !name.contains(&only) {
            continue;
        }
        let before = core(&format!("/tmp/d3s/{from}.core"));
        let mut sources = Sources::new();
        let file = sources.add(name, std::fs::read_to_string(&path).unwrap());
        let mut diagnostics = Diagnostics::new();
        let steps = parse_steps(sources.get(file).unwrap(), file, &mut diagnostics);
        let Some(steps) = steps else {
            println!("== {name}: {:?}", diagnostics);
            continue;
        };
        let start = std::time::Instant::now();
        let mut check = |program: &Program| {
            let violations = certen_core::padding::check(program);
            violations.iter().for_each(|v| println!("   PADDING {v:?}"));
            Vec::new()
        };
        match derive(
            &before,
            Name::new(name),
            &steps,
            &certen_derive::prelude(&mut sources, &mut Diagnostics::new()),
            &mut check,
        ) {
            Ok(derived) => {
                let conds: Vec<_> = derived.taken.iter().flat_map(|t| &t.conditions).collect();
                let open = conds.iter().filter(|c| !matches!(c.status, Status::Proved(_))).count();
                println!(
                    "== {name}: {} steps, {} conditions, {open} open, {:?}",
                    derived.taken.len(),
                    conds.len(),
                    start.elapsed()
                );
                for t in &derived.taken {
                    if verbose {
                        println!(
                            "-- {}\n{}",
                            t.step,
                            t.after
                                .bindings
                                .iter()
                                .map(|b| format!("{} = {}", b.name, certen_core::print_term(&t.after.terms, b.term)))
                                .collect::<Vec<_>>()
                                .join("\n")
                        );
                    }
                    for c in &t.conditions {
                        if !matches!(c.status, Status::Proved(_)) {
                            println!("   OPEN {}: {:?}", t.step, c.what);
                        }
                    }
                }
                println!("{}", derived.program);
                println!("{}", derived.program.reshapes());
                println!("{:?}", certen_rewrite::agree(&before, &derived.program, 3_000_000));
            }
            Err(refused) => {
                bad += 1;
                if verbose {
                    for t in &refused.taken {
                        println!(
                            "-- {}\n{}",
                            t.step,
                            t.after
                                .bindings
                                .iter()
                                .map(|b| format!("{} = {}", b.name, certen_core::print_term(&t.after.terms, b.term)))
                                .collect::<Vec<_>>()
                                .join("\n")
                        );
                    }
                }
                println!(
                    "== {name}: REFUSED at {} `{}`: {:?}\n{}",
                    refused.at,
                    steps.get(refused.at).map_or(String::new(), |s| s.to_string()),
                    refused.diagnostic,
                    refused.before
                );
            }
        }
    }
    assert_eq!(bad, 0);
}
