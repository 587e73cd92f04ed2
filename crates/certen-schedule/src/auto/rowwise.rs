//! Several sums of a row, as for means and norms: each is made in lanes.
//!
//! A sum along memory is one addition after the other, each of which waits for the one before. In as many lanes as
//! [`thin`](super::thin) has for single sums it waits for memory instead; sums inside each other are one.
//!
//! Applies: to nests with sums along memory that are more than one sum and its result. Cost: none beside that of the loops as they
//! are.

use certen_core::{ReduceOp, Term};
use certen_loops::{FpMode, LoopProgram, Site, Stmt, Target, Use, statements};
use certen_syntax::Name;

use super::steps::{Steps, called};
use super::sum::{is_along, mentions, size};
use super::thin::LANE_BYTES;
use super::{Form, Machine, Planned, outside};
use crate::primitives::fma::adds_product;

/// The steps for a nest with these statements.
pub(super) fn plan(
    program: &LoopProgram,
    nest: Name,
    sites: &[Site<'_>],
    machine: &Machine,
    fp: FpMode,
) -> Option<Planned> {
    if fp != FpMode::Relaxed {
        return None;
    }
    let outside = outside(sites);
    let mut steps = Steps::new(nest, machine);
    let mut count = 0;
    let adds = |site: &Site<'_>| adds_product(&program.terms, site.stmt);
    let waits = |site: &Site<'_>| matches!(site.stmt, Stmt::Assign { target: Target::Local(_), op: Some(_), .. });
    let mut is_kept_waiting = false;
    // The last ones first: what a step makes of a loop changes the numbers of those after it.
    for site in sites.iter().rev() {
        let Some(sum) = Sum::of(program, sites, site, outside) else {
            is_kept_waiting |= waits(site) && adds(site);
            continue;
        };
        for (index, around) in &sum.joined {
            steps.add(format!("join_sums({})", steps.path(called(sites, around, *index)?)));
        }
        if sum.is_long {
            let innermost = steps.path(called(sites, site, sum.index)?);
            steps.add(format!("vectorize({innermost}, {})", sum.lanes));
        }
        count += 1;
    }
    // Where each addition waits for the one before, a fused one takes longer.
    if count > 0 && !is_kept_waiting && sites.iter().any(adds) {
        steps.fuse(nest.as_str());
    }
    if steps.is_empty() {
        return None;
    }
    let is_of_sum = |stmt: &Stmt| {
        let inside = statements(std::slice::from_ref(stmt));
        let stores = |stmt: &Stmt| matches!(stmt, Stmt::Assign { target: Target::Element(..), .. });
        !inside.into_iter().any(stores)
    };
    let mut rows = sites.iter().filter(|site| site.around.len() == outside && matches!(site.stmt, Stmt::For { .. }));
    if let (Some(site), None) = (rows.next(), rows.next())
        && let Stmt::For { index, .. } = site.stmt
        && !is_of_sum(site.stmt)
    {
        steps.parallelize(&steps.path(index));
    }
    let sums = if count == 1 { "a sum".to_owned() } else { format!("{count} sums") };
    let why = format!("{sums} along memory, beside other things: in lanes, whatever the machine has");
    Some(Planned { nest, with: Vec::new(), steps: steps.text(), why, form: Form::Sums })
}

/// A sum in a local.
struct Sum<'a> {
    /// Its innermost loop.
    index: Name,
    lanes: i64,
    /// Whether it is not known to have fewer terms than lanes.
    is_long: bool,
    /// The loops around that add up such sums, the innermost first, and what adds to them.
    joined: Vec<(Name, &'a Site<'a>)>,
}

impl<'a> Sum<'a> {
    fn of(program: &LoopProgram, sites: &'a [Site<'a>], site: &'a Site<'a>, outside: usize) -> Option<Sum<'a>> {
        let Stmt::Assign { target: Target::Local(local), op: Some(ReduceOp::Sum), value } = site.stmt else {
            return None;
        };
        let Stmt::For { index, range, body, .. } = site.around.last()?.stmt else { return None };
        let elem = program.terms.ty(*value).elem;
        let is_alone = body.len() == 1 && site.loops().count() > outside && elem.is_float();
        let uses = site.stmt.uses(&program.terms);
        let mut read = uses.iter().filter(|(_, at, how)| *how == Use::Read && mentions(at, *index)).peekable();
        read.peek()?;
        if !is_alone || !read.all(|(_, at, _)| is_along(at, *index)) || range.lo.as_constant() != Some(0) {
            return None;
        }
        let lanes = LANE_BYTES / elem.bytes() as i64;
        let is_long = size(range).is_none_or(|terms| terms >= lanes);
        let mut found = Sum { index: *index, lanes, is_long, joined: Vec::new() };
        // What adds the sum as it is to another one stands beside the loop of the sum.
        let (mut inner, mut depth) = (*local, site.around.len() - 1);
        while let Some(outer) = sites.iter().find(|outer| {
            let is_sum = |value| matches!(program.terms.get(value), Term::Ref(name, _) if *name == inner);
            let adds = matches!(outer.stmt, Stmt::Assign { target: Target::Local(_), op: Some(ReduceOp::Sum), value }
                if is_sum(*value));
            let is_beside = outer.around.len() == depth
                && outer.around.iter().zip(&site.around).all(|(a, b)| std::ptr::eq(a.stmt, b.stmt));
            adds && is_beside && depth > outside
        }) {
            let (Stmt::Assign { target, .. }, Some(Stmt::For { index, .. })) =
                (outer.stmt, outer.around.last().map(|around| around.stmt))
            else {
                break;
            };
            found.joined.push((*index, outer));
            (inner, depth) = (target.name(), depth - 1);
        }
        Some(found)
    }
}
