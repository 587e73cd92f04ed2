//! Lemma 4.1 (TeIL; the model language's rules are syntax-directed too, as its Lemma 3 needs): typing is computable and unique; and the generator keeps its promises.

mod common;

use std::collections::HashSet;

use certen_dialects::algebra::{Arith, Expr, Notation, Typed};
use certen_syntax::Name;
use certen_testgen::{EXACT, Sample, cases, oracle};
use common::{checked, for_samples};

/// The shapes of all expressions at the sample's sizes.
fn shapes(typed: &Typed, sample: &Sample) -> Vec<Vec<i64>> {
    let sizes = sample.sizes();
    let value = |name: Name| sizes.iter().find(|(size, _)| *size == name).map(|(_, value)| *value);
    let program = &typed.program;
    let ids = (0..program.stmts.len()).flat_map(|at| program.exprs_of(at));
    let shape = |id| typed.shape(id).iter().map(|dim| dim.size.eval(&value).expect("sizes have values")).collect();
    ids.map(shape).collect()
}

#[test]
fn lemma_4_1_types_are_those_of_fig_8() {
    for_samples(cases(), 1, |sample| {
        let typed = checked(sample);
        let expected = sample.stmts.iter().flat_map(|(_, value)| oracle::shapes(sample, value).expect("a type"));
        assert_eq!(shapes(&typed, sample), expected.collect::<Vec<_>>());
        for (stmt, (target, _)) in typed.program.stmts.iter().zip(&sample.stmts) {
            let declared = typed.declared(stmt.target).expect("the target is allocated");
            assert_eq!(declared.len(), sample.tensors[*target].shape.len());
        }
    });
}

#[test]
fn lemma_4_1_types_are_unique() {
    for_samples(cases(), 2, |sample| {
        let (first, second) = (checked(sample), checked(sample));
        assert_eq!(first.program, second.program);
        let types = |typed: &Typed| {
            let ids = (0..typed.program.stmts.len()).flat_map(|at| typed.program.exprs_of(at));
            ids.map(|id| typed.shape(id).iter().map(|dim| dim.size.to_string()).collect()).collect::<Vec<Vec<_>>>()
        };
        assert_eq!(types(&first), types(&second));
        assert_eq!((first.inputs(), first.outputs()), (second.inputs(), second.outputs()));
    });
}

#[test]
fn inputs_and_outputs_are_those_of_the_markers_or_the_data_flow() {
    for_samples(cases(), 3, |sample| {
        let typed = checked(sample);
        let names = |list: Vec<usize>| list.into_iter().map(|at| Name::new(sample.name(at))).collect::<Vec<_>>();
        assert_eq!(typed.inputs(), names(sample.inputs()));
        assert_eq!(typed.outputs(), names(sample.outputs()));
        assert!(!typed.outputs().is_empty());
    });
}

/// What the other tests rely on: both languages, every operation, and whatever else makes a program interesting, each in
/// at least one of a hundred programs.
#[test]
fn the_generator_covers_the_language() {
    let counts = std::cell::RefCell::new(std::collections::HashMap::<&str, u32>::new());
    for_samples(500, 4, |sample| {
        let typed = checked(sample);
        assert!(sample.magnitude() <= EXACT);
        assert!(sample.tensors.len() <= if sample.mode == Notation::Model { 18 } else { 7 });
        let mut seen = HashSet::new();
        for expr in &typed.program.exprs {
            seen.insert(match expr {
                Expr::Var(_) => "name",
                Expr::Paren(_) => "parentheses",
                Expr::Elem(Arith::Mul, a, _) if typed.shape(*a).is_empty() => "mul by a scalar",
                Expr::Elem(Arith::Div, _, b) if typed.shape(*b).is_empty() => "div by a scalar",
                Expr::Elem(Arith::Add, ..) => "add",
                Expr::Elem(Arith::Sub, ..) => "sub",
                Expr::Elem(Arith::Mul, ..) => "mul",
                Expr::Elem(Arith::Div, ..) => "div",
                Expr::Prod(..) => "prod",
                Expr::Red(op, ..) => op.name(),
                Expr::Transp(pairs, _) if pairs.len() > 1 => "transp of several pairs",
                Expr::Transp(pairs, _) if pairs[0].0 > pairs[0].1 => "transp backwards",
                Expr::Transp(..) => "transp",
                Expr::Diag(i0, i1, _) if i0 > i1 => "diag backwards",
                Expr::Diag(..) => "diag",
                Expr::Contr(pairs, _) if pairs.len() > 1 => "contr of several pairs",
                Expr::Contr(pairs, _) if pairs[0].0 > pairs[0].1 => "contr backwards",
                Expr::Contr(..) => "contr",
                Expr::Expa(_, n, _) if n.as_constant().is_none() => "expa by a symbol",
                Expr::Expa(..) => "expa",
                Expr::Proj(_, m, _) if m.as_constant().is_none() => "proj of a symbol",
                Expr::Proj(..) => "proj",
                Expr::Scale(..) => "scale",
                Expr::Power(..) => "power",
            });
        }
        let targets: Vec<usize> = sample.stmts.iter().map(|(target, _)| *target).collect();
        let marked = sample.tensors.iter().any(|tensor| tensor.input || tensor.output);
        let ranks = sample.tensors.iter().map(|tensor| tensor.shape.len());
        let dims = sample.tensors.iter().flat_map(|tensor| &tensor.shape);
        let facts = [
            ("core", typed.program.notation == Notation::CoreTeil),
            ("full", typed.program.notation == Notation::Teil),
            ("model", typed.program.notation == Notation::Model),
            ("a name of a type", sample.text().contains("\ntype ")),
            ("twelve statements", sample.stmts.len() == 12),
            (
                "six dimensions",
                typed
                    .program
                    .stmts
                    .iter()
                    .zip(0..)
                    .any(|(_, at)| typed.program.exprs_of(at).any(|id| typed.shape(id).len() == 6)),
            ),
            ("markers", marked),
            ("no markers", !marked),
            ("where", !sample.wheres.is_empty()),
            ("reassignment", targets.iter().collect::<HashSet<_>>().len() < targets.len()),
            ("reads the old value", sample.stmts.iter().any(|(target, value)| value.reads().contains(target))),
            ("six statements", sample.stmts.len() == 6),
            ("a scalar", ranks.clone().any(|rank| rank == 0)),
            ("four dimensions", ranks.clone().any(|rank| rank == 4)),
            ("a symbol", !typed.sizes.is_empty()),
            ("n + 1", dims.clone().any(|size| size.symbol.is_some() && size.plus != 0)),
            ("2 * n", dims.clone().any(|size| size.factor == 2)),
            ("equal by a where clause", sample.symbols.iter().any(|symbol| symbol.equal.is_some())),
        ];
        seen.extend(facts.into_iter().filter(|(_, holds)| *holds).map(|(name, _)| name));
        seen.into_iter().for_each(|what| *counts.borrow_mut().entry(what).or_default() += 1);
    });
    let counts = counts.into_inner();
    assert_eq!(counts.len(), 45, "{counts:?}");
    assert!(counts.values().all(|count| *count >= 5), "{counts:?}");
}
