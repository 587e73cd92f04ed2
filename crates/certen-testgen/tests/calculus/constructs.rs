//! The generator makes every construct of Core, each in programs that can be compared.

use std::collections::{BTreeMap, BTreeSet};

use certen_core::{Program, Range, Term, TermId};
use certen_testgen::calculus::{Case, Truncations};

use super::{bytes_of_cases, cases};

fn kind(program: &Program, id: TermId) -> String {
    let scalar = if program.terms.ty(id).is_scalar() { "" } else { " of a tensor" };
    let lower = |range: &Range| if range.lo.as_constant() == Some(0) { "" } else { " from elsewhere" };
    match program.terms.get(id) {
        Term::Ref(..) => "ref".into(),
        Term::Gen(_, range, _) => format!("gen{}", lower(range)),
        Term::Reduce(op, _, _, cond, _) => {
            let restricted = if cond.is_always() { "" } else { " where" };
            format!("{}{restricted}{scalar}", op.name())
        }
        Term::Guard(..) => format!("guard{scalar}"),
        Term::If(..) => format!("if{scalar}"),
        Term::Let(..) => format!("let{scalar}"),
        Term::Iterate(_, _, states, _) => format!("iterate {}", states.len()),
        Term::Select(..) => format!("select{scalar}"),
        Term::Flatten(_) => "flatten".into(),
        Term::Split(k, a) => {
            let whole = program.terms.ty(*a).shape[0].modulo(*k).is_ok_and(|rest| rest.as_constant() == Some(0));
            format!("split{}", if whole { "" } else { " with a rest" })
        }
        Term::Transpose(_) => "transpose".into(),
        Term::Concat(..) => "concat".into(),
        Term::PadLeft(..) => "pad_l".into(),
        Term::PadRight(..) => "pad_r".into(),
        Term::TruncLeft(..) => "trunc_l".into(),
        Term::TruncRight(..) => "trunc_r".into(),
        Term::Literal(_, elem) => format!("literal {elem}"),
        Term::Table(_) => "table".into(),
        Term::Index(..) => "index".into(),
        Term::Undefined(_) => "undefined".into(),
        Term::Unary(op, _) => format!("unary {}", op.name()),
        Term::Binary(op, ..) => format!("binary {}", op.name()),
        Term::Choose(..) => "choose".into(),
        Term::Fma(..) => "fma".into(),
        Term::Cast(elem, _) => format!("cast {elem}"),
    }
}

#[test]
fn every_construct_is_generated() {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for bytes in bytes_of_cases(cases(300), 50) {
        let program = Case::new(&bytes, "generated", Truncations::Legal).program;
        let roots = program.bindings.iter().map(|binding| binding.term);
        let kinds: BTreeSet<String> = program.terms.reachable(roots).map(|id| kind(&program, id)).collect();
        kinds.into_iter().for_each(|kind| *found.entry(kind).or_default() += 1);
    }
    for wanted in [
        "gen",
        "gen from elsewhere",
        "sum",
        "sum where",
        "sum of a tensor",
        "sum where of a tensor",
        "product",
        "minimum",
        "minimum where",
        "maximum of a tensor",
        "all",
        "any",
        "guard",
        "guard of a tensor",
        "if",
        "if of a tensor",
        "let",
        "table",
        "let of a tensor",
        "iterate 1",
        "iterate 2",
        "iterate 3",
        "select",
        "select of a tensor",
        "flatten",
        "split",
        "split with a rest",
        "transpose",
        "concat",
        "pad_l",
        "pad_r",
        "trunc_l",
        "trunc_r",
        "index",
        "choose",
        "fma",
        "cast f32",
        "cast f64",
        "cast i32",
        "cast i64",
        "cast u8",
        "cast bool",
        "literal u8",
        "literal bool",
        "binary controlled_div",
        "binary /",
        "binary floor_div",
        "binary mod",
        "binary <",
        "binary &&",
        "unary !",
        "unary sqrt",
        "unary round",
    ] {
        assert!(found.contains_key(wanted), "no program has {wanted}: {found:#?}");
    }
}
