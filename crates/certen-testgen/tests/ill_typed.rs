//! Ill-typed programs are refused, by the rule that they violate, and nothing makes the front door fail.

mod common;

use std::time::{Duration, Instant};

use arbitrary::Unstructured;
use certen_core::ElemType;
use certen_dialects::algebra::{Notation, Premise, elaborate};
use certen_syntax::{Diagnostic, Sources, render_all, to_json};
use certen_testgen::{Broken, Mistake, Sample, cases, mutate};
use common::{diagnose, for_bytes};

/// The one error of a program must be the expected one.
fn refused(mistake: Mistake, broken: &Broken) {
    let (typed, diagnostics) = diagnose(&broken.text);
    assert!(typed.is_none(), "{mistake:?} is accepted");
    let errors: Vec<&Diagnostic> = diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).collect();
    let [error] = errors.as_slice() else { panic!("{mistake:?} gives {errors:#?}") };
    assert_eq!(error.code, broken.code, "{error:?}");
    assert_eq!(error.rule.map(|rule| rule.name), broken.rule.as_deref(), "{error:?}");
}

/// Every premise of every rule that can fail, and every other mistake, in both languages, each at several places.
#[test]
fn every_premise_is_violated_and_reported() {
    let each = (cases() / 50).max(5);
    for (number, mode) in [Notation::Teil, Notation::CoreTeil].into_iter().enumerate() {
        let mistakes = Mistake::all(mode);
        let premises = mistakes.iter().filter(|mistake| matches!(mistake, Mistake::Premise(_))).count();
        assert_eq!(premises, Premise::of(mode).count() - if mode == Notation::Teil { 0 } else { 3 });
        for (at, mistake) in mistakes.into_iter().enumerate() {
            let make = |bytes: &[u8]| Sample::broken(mode, mistake, &mut Unstructured::new(bytes));
            let seed = (100 * number + at) as u8;
            for_bytes(each, seed, |bytes| make(bytes).text, |bytes| refused(mistake, &make(bytes)));
        }
    }
}

#[test]
fn ill_typed_programs_are_refused_with_a_rule() {
    let make = |bytes: &[u8]| {
        let mut choices = Unstructured::new(bytes);
        let mode = if choices.arbitrary().unwrap_or(false) { Notation::CoreTeil } else { Notation::Teil };
        let mistake = *choices.choose(&Mistake::all(mode)).expect("mistakes");
        (mistake, Sample::broken(mode, mistake, &mut choices))
    };
    let test = |bytes: &[u8]| {
        let (mistake, broken) = make(bytes);
        refused(mistake, &broken);
    };
    for_bytes(cases(), 201, |bytes| make(bytes).1.text, test);
}

/// Reads, checks, renders and, if there is something to, elaborates and lowers: without a panic, and in a moment.
fn survives(text: &str) {
    let start = Instant::now();
    let (typed, diagnostics) = diagnose(text);
    assert_eq!(typed.is_none(), diagnostics.iter().any(Diagnostic::is_error), "{text}");
    let mut sources = Sources::new();
    sources.add("generated.teil", text);
    render_all(&sources, &diagnostics, true);
    diagnostics.iter().for_each(|diagnostic| drop(to_json(&sources, diagnostic)));
    if let Some(typed) = typed {
        let again = diagnose(&typed.program.to_string()).0.expect("what is accepted is accepted as it is printed");
        assert_eq!(again.program.to_string(), typed.program.to_string());
        let program = elaborate(&typed, "mutated".into(), ElemType::F64).expect("typed programs elaborate");
        program.check().expect("elaborated programs are well-formed");
        let loops = certen_loops::lower(&program).expect("TeIL programs can be lowered");
        assert!(certen_loops::verify(&loops).is_empty(), "{loops}");
    }
    assert!(start.elapsed() < Duration::from_secs(10), "{:?} for\n{text}", start.elapsed());
}

#[test]
fn mutated_programs_are_accepted_or_refused() {
    let make = |bytes: &[u8]| {
        let mut choices = Unstructured::new(bytes);
        let text = Sample::from_choices(&mut choices).text();
        // The rest of the bytes may be short, so that the edits also come from the end.
        let mut edits: Vec<u8> = bytes.iter().rev().copied().collect();
        edits.extend(choices.take_rest());
        mutate(&text, &mut Unstructured::new(&edits))
    };
    for_bytes(cases(), 202, make, |bytes| survives(&make(bytes)));
}

#[test]
fn arbitrary_bytes_are_accepted_or_refused() {
    let make = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    for_bytes(cases(), 203, make, |bytes| survives(&make(bytes)));
    // Mostly letters, brackets and digits get further.
    let make = |bytes: &[u8]| {
        let words = [
            "alloc ", "A ", "B ", "n ", ": ", "[", "]", "= ", "add ", "red+ ", "1 ", "0 ", "(", ")", ", ", "\n",
            "where ",
        ];
        bytes.iter().map(|byte| words[usize::from(*byte) % words.len()]).collect::<String>()
    };
    for_bytes(cases(), 204, make, |bytes| survives(&make(bytes)));
}
