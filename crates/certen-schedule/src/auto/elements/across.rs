//! A lane for each element: as many elements of the batch as a vector has lanes run through the whole chain together.
//!
//! What is made on the way stays in the caches and lies with the batch last, so that vectors are full whatever the other sizes are.
//! Inputs are brought into that order by `pack`, and rows of the result go back as they are made (libCEED's blocked elements,
//! Firedrake's cross-element vectors).

use certen_loops::FpMode;
use certen_syntax::Name;

use super::{Chain, Link, OPERANDS, Sum};
use crate::auto::steps::Steps;
use crate::auto::sum::size;
use crate::auto::tile::blocks;
use crate::auto::{Machine, Proposal};

/// How many tensors of the chain are in use at a time.
const IN_USE: i64 = 3;

/// What it costs, in hundredths of a step of the processor for a vector: a term of a sum, and an element that is brought into
/// another order on its way in and out (measured on Zen 5).
const TERM: i64 = 65;
const MOVED: i64 = 300;

pub(super) fn proposal(chain: &Chain<'_, '_>, machine: &Machine, fp: FpMode) -> Option<Proposal> {
    let Chain { last, stages } = *chain;
    let lanes = machine.vector_bytes / last.elem.bytes() as i64;
    let bytes = IN_USE * lanes * chain.links().map(Link::elements).max()? * last.elem.bytes() as i64;
    let count = size(last.batch.1);
    if count.is_some_and(|count| count < 2 * lanes) || bytes > machine.l2_bytes {
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
    for link in chain.links() {
        let nest = chain.home(link);
        let z = if link.nest == last.nest { inner.clone() } else { link.batch.0.to_string() };
        let listed = |loops: &[Name]| {
            let loops = loops.iter().map(Name::to_string).chain([z.clone()]);
            loops.map(|index| format!("{nest}.{index}")).collect::<Vec<_>>().join(", ")
        };
        let order = order(link);
        let outermost = format!("{nest}.{}", order.first()?);
        steps.add(format!("reorder([{}])", listed(&order)));
        for (name, others) in chain.inputs(link) {
            steps.add(format!("pack({name}, {outermost}, [{}])", listed(others)));
        }
        in_registers(&mut steps, link, nest, &z, machine);
    }
    if count.is_none_or(|count| count % lanes != 0) {
        steps.add(format!("round({outer})"));
    }
    steps.parallelize(&outer);
    chain.fuse(&mut steps, fp);
    let why = format!("{}: {lanes} of them at a time go through all nests, a lane for each", chain.what());
    let each = |link: &Link<'_>| link.elements() * link.sum.as_ref().map_or(100, |sum| sum.terms * TERM);
    let cost = (chain.links().map(each).sum::<i64>() + chain.moved() * MOVED) / lanes;
    Some(Proposal { plan: chain.planned(steps, why), cost })
}

/// The loops of a nest inside the batch, with the one last that stays in registers.
fn order(link: &Link<'_>) -> Vec<Name> {
    let rows = link.sum.as_ref().and_then(|sum| sum.rows).map(|(index, _)| index);
    let others = link.free.iter().map(|(index, _)| *index).filter(|index| Some(*index) != rows);
    others.chain(rows).collect()
}

/// Rows of a sum stay in registers, each a vector of the loop `z` of the nest that has this name.
fn in_registers(steps: &mut Steps, link: &Link<'_>, nest: Name, z: &str, machine: &Machine) {
    let path = |index: &str| format!("{nest}.{index}");
    let Some(Sum { index, rows, .. }) = &link.sum else { return };
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
