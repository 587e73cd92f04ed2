//! Other forms of a program mean the same: Core-TeIL and back, three-address form, and every form through its text.

mod common;

use std::cell::Cell;

use certen_core::domain::{Element, Field, Partial};
use certen_core::{Tensor, parse_program};
use certen_dialects::algebra::{Arith, Expr, Notation, Typed};
use certen_figures::three_address::three_address;
use certen_figures::translate::translate;
use certen_syntax::{Name, Sources};
use certen_testgen::{Sample, cases};
use common::{checked, core, evaluate, for_models, for_samples, typed, typed_in};

/// A division by zero is undefined, also where nothing reads it.
const FIELD: Partial<Field> = Partial(Field { seed: 2 });

type Outputs = Vec<(Name, Tensor<Option<Element>>)>;

fn given(sample: &Sample) -> Outputs {
    let each = |at: usize| (Name::new(sample.name(at)), sample.bits(at).map(|bits| Some(Element::reduce(*bits))));
    sample.inputs().into_iter().map(each).collect()
}

fn outputs(typed: &Typed, sample: &Sample) -> Outputs {
    evaluate(&core(typed), &FIELD, &sample.sizes(), given(sample))
}

/// What a program says, without its parentheses and spelling.
fn meaning_of_text(typed: &Typed) -> (Vec<String>, Vec<String>) {
    let program = &typed.program;
    let stmts = (0..program.stmts.len()).map(|at| typed.derivation(at, usize::MAX)).collect();
    let text = program.to_string();
    (
        stmts,
        text.lines().take_while(|line| !line.contains(" = ") || line.starts_with("where")).map(str::to_owned).collect(),
    )
}

#[test]
fn printing_a_program_and_reading_it_gives_the_same_program() {
    for_samples(cases(), 21, |sample| {
        let original = checked(sample);
        let printed = original.program.to_string();
        let again = typed_in(sample.mode, &printed);
        assert_eq!(again.program.to_string(), printed);
        assert_eq!(again.program.notation, original.program.notation);
        assert_eq!(meaning_of_text(&again), meaning_of_text(&original));
    });
}

/// TeIL, Sec. 4.1: Core-TeIL can express the same operations.
#[test]
fn full_teil_and_core_teil_agree() {
    for_samples(cases(), 22, |sample| {
        if sample.mode == Notation::Model {
            return;
        }
        let original = checked(sample);
        let expected = outputs(&original, sample);
        let restricted = typed(&translate(&original.program, Notation::CoreTeil).unwrap().to_string());
        assert_eq!(restricted.program.notation, Notation::CoreTeil);
        assert_eq!(outputs(&restricted, sample), expected);
        let general = typed(&translate(&restricted.program, Notation::Teil).unwrap().to_string());
        assert_eq!(general.program.notation, Notation::Teil);
        assert_eq!(outputs(&general, sample), expected);
    });
}

/// What the model language can write of a TeIL program means the same there, and written back.
#[test]
fn teil_and_the_model_language_agree() {
    let written = Cell::new(0);
    for_samples(4 * cases(), 25, |sample| {
        if sample.mode == Notation::Model {
            return;
        }
        let original = checked(sample);
        let Ok(model) = translate(&original.program, Notation::Model) else { return };
        written.set(written.get() + 1);
        let model = typed_in(Notation::Model, &model.to_string());
        assert_eq!(translate(&model.program, Notation::Model).unwrap().to_string(), model.program.to_string());
        let expected = outputs(&original, sample);
        assert_eq!(outputs(&model, sample), expected);
        let back = typed(&translate(&model.program, Notation::Teil).unwrap().to_string());
        assert_eq!(outputs(&back, sample), expected);
    });
    assert!(written.get() >= cases() / 20, "only {} programs", written.get());
}

/// What TeIL and Core-TeIL can write of a program of the model language, which is all but `-` and `/`, means the same
/// there, and written back.
#[test]
fn the_model_language_and_teil_agree() {
    let written = Cell::new(0);
    for_models(4 * cases(), 26, |sample| {
        let original = checked(sample);
        let only_here = |expr: &Expr| matches!(expr, Expr::Elem(Arith::Sub | Arith::Div, ..));
        let foreign = original.program.exprs.iter().any(only_here);
        for notation in [Notation::Teil, Notation::CoreTeil] {
            let teil = translate(&original.program, notation);
            assert_eq!(teil.is_err(), foreign, "{teil:?}");
            let Ok(teil) = teil else { return };
            written.set(written.get() + 1);
            let teil = typed(&teil.to_string());
            let expected = outputs(&original, sample);
            assert_eq!(outputs(&teil, sample), expected);
            let back = translate(&teil.program, Notation::Model);
            // Core-TeIL may have a transposition between a sum and its diagonal, which then are no contraction.
            assert!(back.is_ok() || notation == Notation::CoreTeil, "{back:?}");
            let Ok(back) = back else { continue };
            assert_eq!(outputs(&typed_in(Notation::Model, &back.to_string()), sample), expected);
        }
    });
    assert!(written.get() >= cases() / 5, "only {} programs", written.get());
}

/// TeIL, Sec. 3.3. Only names are operands, and the caller sees the same inputs and outputs.
#[test]
fn three_address_form_agrees() {
    for_samples(cases(), 23, |sample| {
        let original = checked(sample);
        let flat = typed_in(sample.mode, &three_address(&original).to_string());
        assert_eq!((flat.inputs(), flat.outputs()), (original.inputs(), original.outputs()));
        assert_eq!(outputs(&flat, sample), outputs(&original, sample));
        let program = &flat.program;
        for stmt in &program.stmts {
            assert!(
                program.expr(stmt.value).parts().all(|part| program.expr(part).parts().next().is_none()),
                "{program}"
            );
        }
    });
}

#[test]
fn printing_core_and_reading_it_gives_the_same_program() {
    for_samples(cases(), 24, |sample| {
        let program = core(&checked(sample));
        let printed = program.to_string();
        let mut sources = Sources::new();
        let file = sources.add("generated.core", printed.as_str());
        let again = parse_program(&sources, file).unwrap_or_else(|errors| panic!("{printed}\n{errors:?}"));
        assert_eq!(again.to_string(), printed);
        again.check().expect("well-formed");
        let run = |program| evaluate(program, &FIELD, &sample.sizes(), given(sample));
        assert_eq!(run(&again), run(&program));
    });
}
