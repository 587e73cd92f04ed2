//! Chains of small tensors, one for each element of a batch: `t[z, …] = Σ_a P[…] * u[z, …]`, then `v[z, …]` of `t[z, …]`, and so on.
//!
//! Elements of the batch go through the whole chain, so that what is made on the way stays in the caches. Lanes are [`across`]
//! elements, or [`within`] one where its rows nearly fill vectors; what is cheaper for an element is taken.
//!
//! Applies: to nests that follow each other, with the same outermost loop `z`, whose results later ones read, at the same `z`, and
//! nothing else does; all other sizes are small numbers. The last of them is a sum, to which an element may be added that lies as
//! the result does: its rows are stored by copies that exchange dimensions. The summands of an element are added in the order of the program.

mod across;
mod within;

use certen_core::{Binary, ElemType, Range, Term, TermId};
use certen_index::Ix;
use certen_loops::{FpMode, LoopProgram, Site, Stmt, Use, as_element, sites};
use certen_syntax::Name;
use indexmap::IndexMap;

use super::steps::Steps;
use super::sum::{SumNest, mentions, size};
use super::{Form, Machine, Planned, Proposal};

/// The loops inside the batch have at most so many iterations.
const MOST: i64 = 32;

/// Vector registers that hold no sums, but what is multiplied.
const OPERANDS: i64 = 3;

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
    /// What it reads that is the same for all of the batch, and the loops over its dimensions; none if not all are loops.
    shared: Option<Vec<(Name, Vec<Name>)>>,
}

/// The loop of a sum, and one of the result that what is read of the batch lacks.
struct Sum {
    index: Name,
    terms: i64,
    rows: Option<(Name, i64)>,
    /// Whether it is stored as it is, or added to what lies as the result does.
    is_plain: bool,
}

/// Plans for the chains of a program: for each what could be done, the best first.
pub(super) fn plans<'a>(
    program: &'a LoopProgram,
    nests: &IndexMap<Name, Vec<Site<'a>>>,
    machine: &Machine,
    fp: FpMode,
    is_asked: &dyn Fn(&Name) -> bool,
) -> Vec<Vec<Planned>> {
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
    let proposals = |chain: &Chain<'_, '_>| {
        let all = [within::proposal(chain, machine, fp), across::proposal(chain, machine, fp)];
        let mut all: Vec<Proposal> = all.into_iter().flatten().collect();
        all.sort_by_key(|proposal| proposal.cost);
        all.into_iter().map(|proposal| proposal.plan).collect()
    };
    // What comes first may have nothing to do with the others.
    let own =
        |chain: &[Link<'_>]| (0..chain.len()).find_map(|from| Some(proposals(&Chain::of(program, &chain[from..])?)));
    chains.filter_map(own).collect()
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
        let (mut reads, mut shared): (Vec<(Name, Vec<Name>)>, _) = (Vec::new(), Some(Vec::new()));
        for (name, at, how) in sites.iter().flat_map(|site| site.stmt.uses(&program.terms)) {
            if how != Use::Read || at.is_empty() {
                continue;
            }
            if !mentions(at, batch.0) {
                let others = at.iter().map(Ix::as_var).collect::<Option<Vec<Name>>>();
                shared = shared.and_then(|known| Some(known.into_iter().chain([(name, others?)]).collect()));
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
                let terms = small(range)?;
                let lack = |(index, _): &(Name, i64)| reads.iter().all(|(_, others)| !others.contains(index));
                let is_plain = is_stored_along(program, store.stmt.value()?, free.last()?.0);
                Some(Sum { index: *index, terms, rows: free.iter().rev().copied().find(lack), is_plain })
            }
            None if sites.iter().all(is_entrywise) => None,
            _ => return None,
        };
        Some(Link { nest, batch: *batch, free, sum, result, elem, reads, shared })
    }

    /// How many elements its result has for each of the batch.
    fn elements(&self) -> i64 {
        self.free.iter().fold(1, |elements: i64, (_, size)| elements.saturating_mul(*size))
    }
}

/// A chain of nests: the last one, and those before it.
#[derive(Clone, Copy)]
struct Chain<'c, 'a> {
    last: &'c Link<'a>,
    stages: &'c [Link<'a>],
}

impl<'c, 'a> Chain<'c, 'a> {
    /// The chain, if its results are used in it alone.
    fn of(program: &LoopProgram, links: &'c [Link<'a>]) -> Option<Chain<'c, 'a>> {
        let (last, stages) = links.split_last()?;
        let is_one = |stage: &Link<'_>| stage.elem == last.elem && is_own(program, stage, links);
        (!stages.is_empty() && stages.iter().all(is_one)).then_some(Chain { last, stages })
    }

    fn links(&self) -> impl DoubleEndedIterator<Item = &'c Link<'a>> + use<'c, 'a> {
        self.stages.iter().chain([self.last])
    }

    /// The nest that a nest is in when it is computed in the loop of the last one.
    fn home(&self, link: &Link<'_>) -> Name {
        if link.nest == self.last.nest { link.nest } else { link.result }
    }

    /// What a nest reads of the batch that the chain does not make.
    fn inputs<'l>(&self, link: &'l Link<'_>) -> impl Iterator<Item = &'l (Name, Vec<Name>)> + use<'l, 'c, 'a> {
        let stages = self.stages;
        link.reads.iter().filter(move |(name, _)| !stages.iter().any(|stage| stage.result == *name))
    }

    /// How many elements of inputs and results come and go for each of the batch.
    fn moved(&self) -> i64 {
        let read = |link: &'c Link<'a>| {
            let size = |index: &Name| {
                let mut own = link.free.iter().copied().chain(link.sum.iter().map(|sum| (sum.index, sum.terms)));
                own.find(|(other, _)| other == index).map_or(1, |(_, size)| size)
            };
            self.inputs(link).map(|(_, others)| others.iter().map(size).product::<i64>()).sum::<i64>()
        };
        self.last.elements() + self.links().map(read).sum::<i64>()
    }

    /// Fuses the products of sums with their additions: what is entrywise stays as it is without a schedule.
    fn fuse(&self, steps: &mut Steps, fp: FpMode) {
        for (link, sum) in self.links().filter_map(|link| Some((link, link.sum.as_ref()?))) {
            if fp != FpMode::Strict {
                steps.fuse(&format!("{}.{}", self.home(link), sum.index));
            }
        }
    }

    fn what(&self) -> String {
        format!("{} nests over {}, whose elements are small", self.stages.len() + 1, self.last.batch.0)
    }

    fn planned(&self, steps: Steps, why: String) -> Planned {
        let with = self.stages.iter().map(|stage| stage.nest).collect();
        Planned { nest: self.last.nest, with, steps: steps.text(), why, form: Form::Nest }
    }
}

/// Whether the result of a nest is used in its chain alone.
fn is_own(program: &LoopProgram, link: &Link<'_>, chain: &[Link<'_>]) -> bool {
    let is_output = program.outputs.iter().any(|output| output.name == link.result);
    let uses = |site: &Site<'_>| site.stmt.uses(&program.terms).iter().any(|(name, ..)| *name == link.result);
    let is_in_chain = |site: &Site<'_>| site.nest.is_some_and(|nest| chain.iter().any(|link| link.nest == nest));
    !is_output && sites(&program.body).iter().filter(|site| uses(site)).all(is_in_chain)
}

/// Whether a value is a sum as it is, or with an element added that lies along a loop.
fn is_stored_along(program: &LoopProgram, value: TermId, along: Name) -> bool {
    let is_sum = |id: TermId| matches!(program.terms.get(id), Term::Ref(..));
    let is_added = |id: TermId| {
        as_element(&program.terms, id)
            .and_then(|(_, _, at)| at.split_last())
            .is_some_and(|(last, others)| *last == Ix::var(along) && !mentions(others, along))
    };
    match program.terms.get(value) {
        Term::Binary(Binary::Add, a, b) => is_sum(*a) && is_added(*b) || is_sum(*b) && is_added(*a),
        _ => is_sum(value),
    }
}

/// How many iterations a loop has, if these are few.
fn small(range: &Range) -> Option<i64> {
    size(range).filter(|size| (1..=MOST).contains(size) && range.lo.as_constant() == Some(0))
}
