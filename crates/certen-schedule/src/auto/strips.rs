//! Stages in strips: of a chain of stencils and windows, some rows of the result at a time, with the rows of all stages that they
//! need.
//!
//! As written, each stage is computed for the whole image before the next one reads it, from memory if it is large. In a strip of
//! [`ROWS`] rows what a stage makes is still in the caches when the next one reads it. The rows that two strips need are computed
//! for both.
//!
//! Applies: to a nest and the stages that only it, or other stages of it, read, if some of them is read in several rows and together
//! they are not small. All of them are stored row by row, by nests without sums or with sums over windows of known sizes, for
//! which no other strategy would choose other operations. Cost: rows that are computed twice. The operations on the way to an element
//! are those of the nests by themselves.

use certen_core::Range;
use certen_loops::{FpMode, LoopProgram, Site, Stmt, Target, Use};
use certen_syntax::Name;
use indexmap::IndexMap;

use super::steps::{Steps, joined};
use super::sum::{SumNest, mentions, size};
use super::{Form, Machine, Planned, fused, outside, proposals};

/// How many rows a strip has. Of stages that read two rows more, one in sixteen is computed twice.
const ROWS: i64 = 32;

/// How many rows are computed together where they read the same.
const TOGETHER: i64 = 4;

/// A loop of more iterations is not that of a window.
const WINDOW: i64 = 8;

/// More stages do not go into one strip.
const MOST_STAGES: usize = 12;

/// A nest that stores a tensor row by row.
struct Rows<'a> {
    nest: Name,
    result: Name,
    row: (Name, &'a Range),
    /// Steps for its sums, while nothing else is in its loops.
    sums: Vec<String>,
    /// What it reads, and whether it does so in several rows.
    reads: Vec<(Name, bool)>,
}

/// Plans for the stages that go together, each with what could be done, the best first.
pub(super) fn plans<'a>(
    program: &'a LoopProgram,
    nests: &IndexMap<Name, Vec<Site<'a>>>,
    machine: &Machine,
    fp: FpMode,
) -> Vec<Vec<Planned>> {
    let all: Vec<Option<Rows<'a>>> =
        nests.iter().map(|(nest, sites)| Rows::of(program, *nest, sites, machine, fp)).collect();
    let mut done: Vec<usize> = Vec::new();
    let mut plans = Vec::new();
    for last in (0..all.len()).rev().filter(|last| all[*last].is_some()) {
        if done.contains(&last) {
            continue;
        }
        let group = group(program, nests, &all, last);
        let pays = group.len() <= MOST_STAGES + 1 && is_large(program, &group, machine);
        if let Some(plan) = Some(&group).filter(|_| pays).map(|group| planned(group, machine)) {
            done.extend(all.iter().enumerate().filter_map(|(at, rows)| {
                let nest = rows.as_ref()?.nest;
                group.iter().any(|of| of.nest == nest).then_some(at)
            }));
            plans.push(plan);
        }
    }
    plans
}

/// A nest and the stages that only it and they read, in the order of the program.
fn group<'r, 'a>(
    program: &LoopProgram,
    nests: &IndexMap<Name, Vec<Site<'a>>>,
    all: &'r [Option<Rows<'a>>],
    last: usize,
) -> Vec<&'r Rows<'a>> {
    let touches = |sites: &[Site<'_>], name: Name, writes: bool| {
        let uses = sites.iter().flat_map(|site| site.stmt.uses(&program.terms));
        uses.into_iter().any(|(of, _, how)| of == name && (how != Use::Read) == writes)
    };
    let mut found = vec![last];
    // What reads a stage stands after it.
    for at in (0..last).rev() {
        let Some(rows) = &all[at] else { continue };
        let is_buffer = program.body.iter().any(|stmt| matches!(stmt, Stmt::Alloc(name, _) if *name == rows.result));
        let mut others = nests.values().enumerate().filter(|(other, _)| *other != at);
        let is_own = others.all(|(other, sites)| {
            !touches(sites, rows.result, true) && (found.contains(&other) || !touches(sites, rows.result, false))
        });
        let is_read = found.iter().any(|of| all[*of].as_ref().is_some_and(|of| of.reads_any(rows.result)));
        if is_buffer && is_own && is_read {
            found.push(at);
        }
    }
    found.sort_unstable();
    found.into_iter().filter_map(|at| all[at].as_ref()).collect()
}

/// Whether stages are read in several rows, and together are not known to be small.
fn is_large(program: &LoopProgram, group: &[&Rows<'_>], machine: &Machine) -> bool {
    let Some((last, stages)) = group.split_last() else { return false };
    let is_window = stages.iter().any(|stage| group.iter().any(|of| of.reads.contains(&(stage.result, true))));
    let is_short = size(last.row.1).is_some_and(|rows| rows < 2 * ROWS);
    let bytes = stages.iter().try_fold(0i64, |sum, stage| {
        let ty = program.body.iter().find_map(|stmt| match stmt {
            Stmt::Alloc(name, ty) if *name == stage.result => Some(ty),
            _ => None,
        })?;
        let bytes = ty.elem.bytes() as i64;
        sum.checked_add(ty.shape.iter().try_fold(bytes, |all, size| all.checked_mul(size.as_constant()?))?)
    });
    is_window && !is_short && bytes.is_none_or(|bytes| bytes >= machine.l2_bytes / 2)
}

/// What could be done with the stages of a group: rows that read the same are computed together, or not.
fn planned(group: &[&Rows<'_>], machine: &Machine) -> Vec<Planned> {
    let Some((last, stages)) = group.split_last() else { return Vec::new() };
    let names: Vec<Name> = stages.iter().map(|stage| stage.result).collect();
    let nests: Vec<Name> = stages.iter().map(|stage| stage.nest).collect();
    let steps = |together: bool| {
        let mut steps = Steps::new(last.nest, machine);
        group.iter().flat_map(|rows| &rows.sums).for_each(|step| steps.add(step.clone()));
        let (row, _) = last.row;
        steps.add(format!("split({}, {ROWS})", steps.path(row)));
        let strip = steps.path(format!("{row}.o"));
        for stage in names.iter().rev() {
            steps.add(format!("compute_at({stage}, {strip})"));
        }
        for rows in group.iter().filter(|rows| together && rows.reads.iter().any(|(_, several)| *several)) {
            let inner = if rows.nest == last.nest { format!("{row}.i") } else { rows.row.0.to_string() };
            steps.add(format!("unroll_and_jam({}.{inner}, {TOGETHER})", rows.nest));
        }
        steps.parallelize(&strip);
        steps.text()
    };
    let why = format!("{ROWS} rows at a time, with those of {} that they are computed from", joined(&names));
    let plan = |together| Planned {
        nest: last.nest,
        with: nests.clone(),
        steps: steps(together),
        why: why.clone(),
        form: Form::Nest,
    };
    vec![plan(true), plan(false)]
}

impl<'a> Rows<'a> {
    fn of(program: &'a LoopProgram, nest: Name, sites: &[Site<'a>], machine: &Machine, fp: FpMode) -> Option<Rows<'a>> {
        if outside(sites) > 0 || sites.iter().any(|site| matches!(site.stmt, Stmt::If { .. })) {
            return None;
        }
        let mut stores = sites.iter().filter(|site| site.stmt.element().is_some());
        let (store, None) = (stores.next()?, stores.next()) else { return None };
        let Stmt::Assign { target: Target::Element(result, at), op: None, value } = store.stmt else { return None };
        let own: Vec<(Name, &Range)> = store.loops().collect();
        let (row, range) = *own.first()?;
        let is_first = |stmt: &Stmt| matches!(stmt, Stmt::For { index, .. } if *index == row);
        let mut tops = sites.iter().filter(|site| site.around.is_empty() && matches!(site.stmt, Stmt::For { .. }));
        let (top, None) = (tops.next()?, tops.next()) else { return None };
        let is_dense = at.len() >= 2 && own.len() == at.len() && at.first()?.as_var() == Some(row);
        if !is_dense
            || !is_first(top.stmt)
            || range.lo.as_constant() != Some(0)
            || !program.terms.ty(*value).elem.is_float()
        {
            return None;
        }
        let inner = sites.iter().filter_map(|site| match site.stmt {
            Stmt::For { index, range, .. } if !own.iter().any(|(known, _)| known == index) => Some((*index, range)),
            _ => None,
        });
        let windows: Vec<(Name, &Range)> = inner.collect();
        let is_window = |(_, range): &(Name, &Range)| size(range).is_some_and(|terms| terms <= WINDOW);
        if !windows.iter().all(is_window) {
            return None;
        }
        let sums = sums(program, nest, sites, (machine, fp), windows.is_empty())?;
        let mut reads: Vec<(Name, bool)> = Vec::new();
        let mut rows: Vec<(Name, certen_index::Ix)> = Vec::new();
        for (name, at, how) in sites.iter().flat_map(|site| site.stmt.uses(&program.terms)) {
            let Some(first) = at.first().filter(|_| how == Use::Read) else { continue };
            let moves = windows.iter().any(|(index, _)| mentions(std::slice::from_ref(first), *index));
            let differs = rows.iter().any(|(of, other)| *of == name && other != first);
            rows.push((name, first.clone()));
            match reads.iter_mut().find(|(of, _)| *of == name) {
                Some((_, several)) => *several |= moves || differs,
                None => reads.push((name, moves)),
            }
        }
        Some(Rows { nest, result: *result, row: (row, range), sums, reads })
    }

    fn reads_any(&self, name: Name) -> bool {
        self.reads.iter().any(|(of, _)| *of == name)
    }
}

/// The steps for the sums of a nest that it would get by itself; none if another strategy would choose other operations.
fn sums(
    program: &LoopProgram,
    nest: Name,
    sites: &[Site<'_>],
    (machine, fp): (&Machine, FpMode),
    is_plain: bool,
) -> Option<Vec<String>> {
    let combines = |site: &Site<'_>| matches!(site.stmt, Stmt::Assign { op: Some(_), .. });
    if is_plain && !sites.iter().any(combines) {
        return Some(Vec::new());
    }
    let found = SumNest::of(program, nest, sites, fp)?;
    match fused::proposals(&found, machine).first() {
        None if proposals(&found, machine).is_empty() => Some(Vec::new()),
        None => None,
        Some(proposal) => {
            let steps = proposal.plan.steps.lines().map(|step| step.trim_end_matches(';').to_owned());
            Some(steps.collect())
        }
    }
}
