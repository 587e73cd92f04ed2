//! Outputs that are stored past the caches.
//!
//! What is stored as usual is read first, and pushes out what is read next to it. Applies: to outputs that no cache holds and nothing
//! reads, whose rows are stored from one end to the other. Cost: none.

use std::collections::HashSet;

use certen_core::{Parameter, Terms};
use certen_loops::{LoopProgram, Site, Stmt, as_element, sites};

use super::sum::{has_whole_lines, is_along, is_large, size};
use super::{Form, Planned};

/// Rows of fewer elements have too many ends.
const LONG: i64 = 256;

/// The steps for the outputs that no strategy has stored yet.
pub(super) fn plans(program: &LoopProgram) -> Vec<Planned> {
    let large = program.outputs.iter().filter(|output| {
        output.ty.elem.is_float() && !program.streamed.contains(&output.name) && is_large(program, output)
    });
    let large: Vec<&Parameter> = large.collect();
    if large.is_empty() {
        return Vec::new();
    }
    let all = sites(&program.body);
    large.into_iter().filter_map(|output| plan(&program.terms, &all, output)).collect()
}

fn plan(terms: &Terms, all: &[Site<'_>], output: &Parameter) -> Option<Planned> {
    let name = output.name;
    let stores = || all.iter().filter(|site| site.stmt.element().is_some_and(|(to, _)| to == name));
    let is_along = |site: &Site<'_>| {
        let (Some((index, range)), Some((_, at))) = (site.loops().last(), site.stmt.element()) else { return false };
        let is_plain = matches!(site.stmt, Stmt::Assign { op: None, .. });
        is_plain && is_along(at, index) && size(range) >= Some(LONG)
    };
    let nest = stores().find(|site| is_along(site))?.nest?;
    // What is only copied is better computed there at once.
    if stores().all(|site| site.stmt.value().is_some_and(|value| as_element(terms, value).is_some())) {
        return None;
    }
    // Vectors begin where lines do in one of several rows only.
    let innermost = |site: &Site<'_>| site.around.iter().map(|around| (around.at, around.block)).collect::<Vec<_>>();
    let mut seen = HashSet::new();
    let is_single = stores().filter(|site| is_along(site)).all(|site| seen.insert(innermost(site)));
    if !(is_single || has_whole_lines(output)) {
        return None;
    }
    // Single rows and columns around may be stored as usual.
    let inside = |site: &Site<'_>| site.loops().filter_map(|(_, range)| size(range)).fold(1, i64::saturating_mul);
    let along = |is: bool| stores().filter(|site| is_along(site) == is).map(inside).fold(0, i64::saturating_add);
    let why = format!("{name} is larger than the caches, and nothing reads it");
    let plan = Planned { nest, with: Vec::new(), steps: format!("stream({name});\n"), why, form: Form::Nest };
    (along(false) < along(true) / 16).then_some(plan)
}
