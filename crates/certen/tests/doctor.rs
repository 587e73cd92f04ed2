//! The doctor: this machine's compilers pass, and one that makes wrong code does not.

#![allow(clippy::print_stdout)]

use std::fs;

use certen::Cpu;
use certen::doctor::{Examination, Findings, sample, sweep};
use certen::road::runtime::{Compiler, RuntimeError};

fn nothing(_: usize) {}

/// What passes must not have been refused, unless by a step of a schedule.
fn examination(specimens: Vec<certen::doctor::Specimen>) -> Examination {
    let all = specimens.len();
    let examination = Examination::new(specimens, &nothing);
    for (specimen, why) in &examination.refused {
        assert!(specimen.schedule.is_some(), "{specimen}\n{why}");
    }
    assert!(10 * examination.refused.len() <= all, "{} of {all} are refused", examination.refused.len());
    examination
}

fn passes(found: &Findings) {
    let first = found.differences.first().map(|it| format!("{it}\n{}", it.loops)).unwrap_or_default();
    assert_eq!(found.wrong, 0, "{first}");
    assert!(found.kernels > 150 && found.elements > 100_000, "{found:?}");
}

#[test]
fn the_compiler_passes_a_part_of_the_examination() -> Result<(), RuntimeError> {
    passes(&examination(sample(16)).with(Compiler::find()?, &nothing)?);
    Ok(())
}

/// Every form with symbolic sizes has loops: what is refused would not be examined.
#[test]
fn every_form_is_accepted() {
    let is_symbolic = |it: &certen::doctor::Specimen| it.schedule.is_none() && it.text.contains("m >= 1");
    let forms: Vec<_> = sweep().into_iter().filter(is_symbolic).collect();
    assert!(forms.len() > 200);
    examination(forms);
}

/// The whole examination, with every compiler that Debian has.
#[test]
#[ignore = "takes minutes"]
fn gcc_and_clang_pass_with_every_instruction_set() -> Result<(), RuntimeError> {
    let examination = examination(sweep());
    for name in ["gcc", "clang"] {
        let all = Compiler::all()?;
        let Some(compiler) = all.into_iter().find_map(|(found, it)| it.ok().filter(|_| found == name)) else {
            println!("skipped: no {name}");
            continue;
        };
        for cpu in Cpu::here() {
            let found = examination.with(&compiler.for_cpu(cpu)?, &nothing)?;
            println!("{}, {cpu}: {} kernels, {} elements", compiler.version(), found.kernels, found.elements);
            passes(&found);
        }
    }
    Ok(())
}

/// A compiler that adds where it has to subtract.
#[cfg(unix)]
#[test]
fn a_compiler_that_makes_wrong_code_is_found_out() -> Result<(), Box<dyn std::error::Error>> {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir()?;
    let wrapper = folder.path().join("cc");
    let real = Compiler::find()?.real_path().display().to_string();
    let script = format!(
        "#!/bin/sh\nfor a in \"$@\"; do case \"$a\" in *.c) sed -i 's/ - y\\[/ + y[/g' \"$a\";; esac; done\nexec {real} \"$@\"\n"
    );
    fs::write(&wrapper, script)?;
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755))?;
    let found = examination(sample(16)).with(&Compiler::at(&wrapper)?, &nothing)?;
    assert!(found.wrong > 0 && !found.differences.is_empty());
    let text = found.differences[0].to_string();
    assert!(text.contains(" is ") && text.contains("fn f("), "{text}");
    Ok(())
}
