//! Chains of small tensors, one for each element of a batch: `t[z, …] = Σ_a P[…] * u[z, …]`, then `v[z, …]` of `t[z, …]`, and so on.
//!
//! As many elements of the batch as a vector has lanes run through the whole chain together, a lane for each. What is made on the
//! way stays in the caches and lies with the batch last, so that vectors are full whatever the other sizes are. Inputs are
//! brought into that order by `pack`, and rows of the result go back as they are made (libCEED's blocked elements, Firedrake's
//! cross-element vectors).
//!
//! Applies: to nests that follow each other, with the same outermost loop `z`, whose results later ones read, at the same `z`, and
//! nothing else does; all other sizes are small numbers. The last of them is a sum and nothing more, for its rows are stored by
//! copies that exchange dimensions. Cost, for a vector of elements: its operations, and two moves for each element of
//! inputs and results. The summands of an element are added in the order of the program.

use certen_core::{ElemType, Range, Term};
use certen_index::Ix;
use certen_loops::{FpMode, LoopProgram, Site, Stmt, Use, sites};
use certen_syntax::Name;
use indexmap::IndexMap;

use super::steps::Steps;
use super::sum::{SumNest, mentions, size};
use super::tile::blocks;
use super::{Machine, Planned};

/// The loops inside the batch have at most so many iterations.
const MOST: i64 = 32;

/// Vector registers that hold no sums, but what is multiplied.
const OPERANDS: i64 = 3;

/// How many tensors of the chain are in use at a time.
const IN_USE: i64 = 3;

/// A nest of a chain.
struct Link<'a> {
    nest: Name,
    /// The loop over the batch, and the loops inside it that the result has.
    batch: (Name, &'a Range),
    free: Vec<(Name, i64)>,
    sum: Option<Sum>,
    result: Name,
    elem: ElemType,
    /// What it reads of the batch, and the loops over the other dimensions there.
    reads: Vec<(Name, Vec<Name>)>,
}

/// The loop of a sum, and one of the result that what is read of the batch lacks.
struct Sum {
    index: Name,
    rows: Option<(Name, i64)>,
    /// Whether it is stored as it is.
    is_plain: bool,
}

/// Plans for the chains of a program, and the nests that each is about.
pub(super) fn plans<'a>(
    program: &'a LoopProgram,
    nests: &IndexMap<Name, Vec<Site<'a>>>,
    machine: &Machine,
    fp: FpMode,
    is_asked: &dyn Fn(&Name) -> bool,
) -> Vec<(Planned, Vec<Name>)> {
    let mut chains: Vec<Vec<Link<'a>>> = vec![Vec::new()];
    for (nest, sites) in nests {
        let link = Link::of(program, *nest, sites, fp).filter(|link| link.sum.is_none() || is_asked(nest));
        let goes_on = |chain: &Vec<Link<'a>>| match (chain.last(), &link) {
            (Some(last), Some(link)) => last.batch.1 == link.batch.1,
            _ => false,
        };
        if !chains.last().is_some_and(goes_on) {
            chains.push(Vec::new());
        }
        if let (Some(chain), Some(link)) = (chains.last_mut(), link) {
            chain.push(link);
        }
    }
    let ends = |chain: &[Link<'_>]| chain.iter().rposition(|link| link.sum.as_ref().is_some_and(|sum| sum.is_plain));
    let chains = chains.iter().filter_map(|chain| chain.get(..=ends(chain)?));
    chains.filter_map(|chain| plan(program, chain, machine, fp)).collect()
}

impl<'a> Link<'a> {
    fn of(program: &'a LoopProgram, nest: Name, sites: &[Site<'a>], fp: FpMode) -> Option<Link<'a>> {
        let mut stores = sites.iter().filter(|site| site.stmt.element().is_some());
        let (store, None) = (stores.next()?, stores.next()) else { return None };
        let (result, at) = store.stmt.element()?;
        let elem = program.terms.ty(store.stmt.value()?).elem;
        let loops: Vec<(Name, &Range)> = store.loops().collect();
        let (batch, inside) = loops.split_first()?;
        let free: Vec<(Name, i64)> =
            inside.iter().map(|(index, range)| Some((*index, small(range)?))).collect::<Option<_>>()?;
        let is_plain = matches!(store.stmt, Stmt::Assign { op: None, .. }) && batch.1.lo.as_constant() == Some(0);
        let wanted = [batch.0].into_iter().chain(free.iter().map(|(index, _)| *index)).map(Ix::var);
        if !is_plain || !elem.is_float() || free.is_empty() || !wanted.eq(at.iter().cloned()) {
            return None;
        }
        let mut reads: Vec<(Name, Vec<Name>)> = Vec::new();
        for (name, at, how) in sites.iter().flat_map(|site| site.stmt.uses(&program.terms)) {
            if how != Use::Read || !mentions(at, batch.0) {
                continue;
            }
            let (first, others) = at.split_first()?;
            let others = others.iter().map(Ix::as_var).collect::<Option<Vec<Name>>>()?;
            if *first != Ix::var(batch.0) {
                return None;
            }
            if !reads.contains(&(name, others.clone())) {
                reads.push((name, others));
            }
        }
        // Buffers of the program come and go between its nests.
        let is_entrywise = |site: &Site<'_>| {
            site.loops().next().is_none() || matches!(site.stmt, Stmt::For { .. } | Stmt::Assign { .. })
        };
        let sum = match SumNest::of(program, nest, sites, fp) {
            // Where products are fused with additions by themselves, they are here.
            Some(found) if found.has_rows() => {
                let [(index, range)] = found.summed.as_slice() else { return None };
                small(range)?;
                let lack = |(index, _): &(Name, i64)| reads.iter().all(|(_, others)| !others.contains(index));
                let is_plain = matches!(program.terms.get(store.stmt.value()?), Term::Ref(..));
                Some(Sum { index: *index, rows: free.iter().rev().copied().find(lack), is_plain })
            }
            None if sites.iter().all(is_entrywise) => None,
            _ => return None,
        };
        Some(Link { nest, batch: *batch, free, sum, result, elem, reads })
    }

    /// Its loops inside the batch, with the one last that stays in registers.
    fn order(&self) -> Vec<Name> {
        let rows = self.sum.as_ref().and_then(|sum| sum.rows).map(|(index, _)| index);
        let others = self.free.iter().map(|(index, _)| *index).filter(|index| Some(*index) != rows);
        others.chain(rows).collect()
    }

    /// Rows of a sum stay in registers, each a vector of the loop `z` of the nest that has this name.
    fn in_registers(&self, steps: &mut Steps, nest: Name, z: &str, machine: &Machine) {
        let path = |index: &str| format!("{nest}.{index}");
        let Some(Sum { index, rows, .. }) = &self.sum else { return };
        let mut inside = vec![path(index.as_str())];
        let most = machine.registers - OPERANDS;
        match rows {
            Some((row, size)) if *size > most => {
                let block = blocks(*size, blocks(*size, most));
                let ends = if size % block == 0 { "" } else { ", inwards" };
                steps.add(format!("split({}, {block}{ends})", path(row.as_str())));
                inside.push(path(&format!("{row}.i")));
            }
            Some((row, _)) => inside.push(path(row.as_str())),
            None => {}
        }
        inside.push(path(z));
        steps.add(format!("reorder([{}])", inside.join(", ")));
    }
}

/// The steps for a chain, and its nests; none if nothing is gained.
fn plan(program: &LoopProgram, chain: &[Link<'_>], machine: &Machine, fp: FpMode) -> Option<(Planned, Vec<Name>)> {
    let (last, stages) = chain.split_last()?;
    let lanes = machine.vector_bytes / last.elem.bytes() as i64;
    let elements = |link: &Link<'_>| link.free.iter().map(|(_, size)| size).product::<i64>();
    let bytes = IN_USE * lanes * chain.iter().map(elements).max()? * last.elem.bytes() as i64;
    let count = size(last.batch.1);
    let are_few = count.is_some_and(|count| count < 2 * lanes);
    let is_one = |stage: &Link<'_>| stage.elem == last.elem && is_own(program, stage, chain);
    if stages.is_empty() || are_few || bytes > machine.l2_bytes || !stages.iter().all(is_one) {
        return None;
    }
    let mut steps = Steps::new(last.nest, machine);
    let (outer, inner) = (steps.path(format!("{}.o", last.batch.0)), format!("{}.i", last.batch.0));
    steps.add(format!("split({}, {lanes})", steps.path(last.batch.0)));
    for stage in stages.iter().rev() {
        steps.add(format!("compute_at({}, {outer})", stage.result));
    }
    for stage in stages {
        let order: Vec<String> = (1..=stage.free.len()).chain([0]).map(|dim| dim.to_string()).collect();
        steps.add(format!("skew({outer}, {}.{}, -{lanes})", stage.result, stage.batch.0));
        steps.add(format!("layout({}, [{}])", stage.result, order.join(", ")));
    }
    for link in chain {
        let (nest, z) = match link.nest == last.nest {
            true => (last.nest, inner.clone()),
            false => (link.result, link.batch.0.to_string()),
        };
        let listed = |loops: &[Name]| {
            let loops = loops.iter().map(Name::to_string).chain([z.clone()]);
            loops.map(|index| format!("{nest}.{index}")).collect::<Vec<_>>().join(", ")
        };
        let order = link.order();
        let outermost = format!("{nest}.{}", order.first()?);
        steps.add(format!("reorder([{}])", listed(&order)));
        for (name, others) in link.reads.iter().filter(|(name, _)| !stages.iter().any(|stage| stage.result == *name)) {
            steps.add(format!("pack({name}, {outermost}, [{}])", listed(others)));
        }
        link.in_registers(&mut steps, nest, &z, machine);
    }
    if count.is_none_or(|count| count % lanes != 0) {
        steps.add(format!("round({outer})"));
    }
    steps.parallelize(&outer);
    // Of the sums alone: what is entrywise stays as it is without a schedule.
    for (link, sum) in chain.iter().filter_map(|link| Some((link, link.sum.as_ref()?))).filter(|_| fp != FpMode::Strict)
    {
        let nest = if link.nest == last.nest { last.nest } else { link.result };
        steps.fuse(&format!("{nest}.{}", sum.index));
    }
    let why = format!(
        "{} nests over {}, whose elements are small: {lanes} of them at a time go through all nests, a lane for each",
        chain.len(),
        last.batch.0
    );
    let plan = Planned { nest: last.nest, steps: steps.text(), why, separates: false };
    Some((plan, chain.iter().map(|link| link.nest).collect()))
}

/// Whether the result of a nest is used in its chain alone.
fn is_own(program: &LoopProgram, link: &Link<'_>, chain: &[Link<'_>]) -> bool {
    let is_output = program.outputs.iter().any(|output| output.name == link.result);
    let uses = |site: &Site<'_>| site.stmt.uses(&program.terms).iter().any(|(name, ..)| *name == link.result);
    let is_in_chain = |site: &Site<'_>| site.nest.is_some_and(|nest| chain.iter().any(|link| link.nest == nest));
    !is_output && sites(&program.body).iter().filter(|site| uses(site)).all(is_in_chain)
}

/// How many iterations a loop has, if these are few.
fn small(range: &Range) -> Option<i64> {
    size(range).filter(|size| (1..=MOST).contains(size) && range.lo.as_constant() == Some(0))
}
