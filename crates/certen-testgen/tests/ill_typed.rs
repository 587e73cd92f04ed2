//! Ill-typed programs are refused, by the rule that they violate, and nothing makes the front door fail.

mod common;

use arbitrary::Unstructured;
use certen_core::ElemType;
use certen_dialects::algebra::{Notation, Premise, elaborate};
use certen_syntax::{Diagnostic, render_all, to_json};
use certen_testgen::{Broken, Mistake, Sample, cases, mutate};
use common::{diagnose_in, for_bytes};

/// The one error of a program must be the expected one.
fn refused(mode: Notation, mistake: Mistake, broken: &Broken) {
    let (typed, diagnostics, _) = diagnose_in(mode, &broken.text);
    assert!(typed.is_none(), "{mistake:?} is accepted");
    let diagnostics = diagnostics.into_sorted();
    let errors: Vec<&Diagnostic> = diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).collect();
    let [error] = errors.as_slice() else { panic!("{mistake:?} gives {errors:#?}") };
    assert_eq!(error.code, broken.code, "{error:?}");
    assert_eq!(error.rule.map(|rule| rule.name), broken.rule.as_deref(), "{error:?}");
}

const MODES: [Notation; 3] = [Notation::Teil, Notation::CoreTeil, Notation::Model];

/// Every premise of every rule that can fail, and every other mistake, in all languages, each at several places.
#[test]
fn every_premise_is_violated_and_reported() {
    let each = (cases() / 50).max(5);
    for (number, mode) in MODES.into_iter().enumerate() {
        let mistakes = Mistake::all(mode);
        let premises = mistakes.iter().filter(|mistake| matches!(mistake, Mistake::Premise(_))).count();
        assert_eq!(premises, Premise::of(mode).count() - if mode == Notation::CoreTeil { 3 } else { 0 });
        for (at, mistake) in mistakes.into_iter().enumerate() {
            let make = |bytes: &[u8]| Sample::broken(mode, mistake, &mut Unstructured::new(bytes));
            let seed = (80 * number + at) as u8;
            for_bytes(each, seed, |bytes| make(bytes).text, |bytes| refused(mode, mistake, &make(bytes)));
        }
    }
}

#[test]
fn ill_typed_programs_are_refused_with_a_rule() {
    let make = |bytes: &[u8]| {
        let mut choices = Unstructured::new(bytes);
        let mode = *choices.choose(&MODES).expect("languages");
        let mistake = *choices.choose(&Mistake::all(mode)).expect("mistakes");
        (mode, mistake, Sample::broken(mode, mistake, &mut choices))
    };
    let test = |bytes: &[u8]| {
        let (mode, mistake, broken) = make(bytes);
        refused(mode, mistake, &broken);
    };
    for_bytes(cases(), 201, |bytes| make(bytes).2.text, test);
}

/// Reads, checks, renders and, if there is something to, elaborates and lowers: without a panic, and it ends.
fn survives(mode: Notation, text: &str) {
    let (typed, diagnostics, sources) = diagnose_in(mode, text);
    let diagnostics = diagnostics.into_sorted();
    assert_eq!(typed.is_none(), diagnostics.iter().any(Diagnostic::is_error), "{text}");
    render_all(&sources, &diagnostics, true);
    diagnostics.iter().for_each(|diagnostic| drop(to_json(&sources, diagnostic)));
    if let Some(typed) = typed {
        let printed = diagnose_in(mode, &typed.program.to_string()).0;
        let again = printed.expect("what is accepted is accepted as it is printed");
        assert_eq!(again.program.to_string(), typed.program.to_string());
        let program = elaborate(&typed, "mutated".into(), ElemType::F64).expect("typed programs elaborate");
        program.check().expect("elaborated programs are well-formed");
        let loops = certen_loops::lower(&program).expect("elaborated programs can be lowered");
        assert!(certen_loops::verify(&loops).is_empty(), "{loops}");
    }
}

#[test]
fn mutated_programs_are_accepted_or_refused() {
    let make = |bytes: &[u8]| {
        let mut choices = Unstructured::new(bytes);
        let sample = Sample::from_choices(&mut choices);
        // The rest of the bytes may be short, so that the edits also come from the end.
        let mut edits: Vec<u8> = bytes.iter().rev().copied().collect();
        edits.extend(choices.take_rest());
        (sample.mode, mutate(&sample.text(), &mut Unstructured::new(&edits)))
    };
    let test = |bytes: &[u8]| {
        let (mode, text) = make(bytes);
        survives(mode, &text);
    };
    for_bytes(cases(), 202, |bytes| make(bytes).1, test);
}

#[test]
fn arbitrary_bytes_are_accepted_or_refused() {
    // Mostly letters, brackets and digits get further.
    let teil =
        ["alloc ", "A ", "B ", "n ", ": ", "[", "]", "= ", "add ", "red+ ", "1 ", "0 ", "(", ")", ", ", "\n", "where "];
    let model =
        ["var ", "A ", "B ", "n ", ": ", "[", "]", "= ", "# ", ". ", "^ ", "/ ", "1 ", "2 ", "(", ")", "\n", "type "];
    for (mode, words) in [(Notation::Teil, teil.as_slice()), (Notation::Model, &model)] {
        let make = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        for_bytes(cases(), 203, make, |bytes| survives(mode, &make(bytes)));
        let make = |bytes: &[u8]| bytes.iter().map(|byte| words[usize::from(*byte) % words.len()]).collect::<String>();
        for_bytes(cases(), 204, make, |bytes| survives(mode, &make(bytes)));
    }
}
