//! Lanes within an element: rows of about a vector are filled up to whole vectors, and one element after the other goes through the
//! whole chain.
//!
//! Each nest has its lanes in a loop of its result that nothing of the batch is read along, unless that is filled up, too: operands
//! that all elements share, the matrices, are copied into rows of whole vectors once, and what is made on the way lies in such rows.
//! So no row of an input is loaded as a vector, whatever its length. What is computed beyond the end of a row is never read as an
//! element: `round` and `pack` have that proved.
//!
//! Cost: operations for whole vectors, and the lines of inputs and results, which come one element at a time.

use certen_loops::FpMode;
use certen_syntax::Name;

use super::{Chain, Link, OPERANDS, Sum};
use crate::auto::steps::Steps;
use crate::auto::tile::blocks;
use crate::auto::{Machine, Proposal};

/// The shortest vectors.
const SHORTEST_BYTES: i64 = 16;

/// So many lanes are tried for the nests of a chain.
const MOST_TRIED: usize = 1000;

/// What it costs, in hundredths of a step of the processor: a fused operation; a line, where what is in use takes so many bytes at
/// most (measured on Zen 5). An operation takes so long that fewer sums at a time are no faster.
const OPERATION: i64 = 66;
const LINES: [(i64, i64); 3] = [(16 << 10, 900), (64 << 10, 1700), (i64::MAX, 2300)];
const FEWEST: i64 = 8;
const LINE_BYTES: i64 = 64;

pub(super) fn proposal(chain: &Chain<'_, '_>, machine: &Machine, fp: FpMode) -> Option<Proposal> {
    let bytes = chain.last.elem.bytes() as i64;
    if chain.links().map(Link::elements).max()?.checked_mul(bytes)? > machine.l2_bytes {
        return None;
    }
    let lengths = std::iter::successors(Some(machine.vector_bytes), |length| Some(length / 2));
    let lengths = lengths.take_while(|length| *length >= SHORTEST_BYTES).map(|length| length / bytes);
    // Rows of inputs begin anywhere in a line: they are loaded as vectors only where nothing else can be done.
    let rows = |lanes: i64| [false, true].into_iter().find_map(|loads| Rows::of(chain, machine, lanes, loads));
    let all = lengths.filter_map(|lanes| rows(lanes)?.proposal(chain, machine, fp));
    all.min_by_key(|proposal| proposal.cost)
}

/// A nest of a chain with its lanes.
struct Row {
    /// Which of its loops has the lanes.
    at: usize,
    lanes: (Name, i64),
    /// How many vectors that is.
    vectors: i64,
    /// The loop whose iterations stay in registers beside each other, and how many at a time.
    beside: Option<(Name, i64, i64)>,
}

/// A chain with the lanes of its nests, in vectors of a length.
struct Rows {
    lanes: i64,
    /// Whether rows of inputs that fill vectors are loaded as such.
    loads_inputs: bool,
    rows: Vec<Row>,
}

impl Rows {
    fn of(chain: &Chain<'_, '_>, machine: &Machine, lanes: i64, loads_inputs: bool) -> Option<Rows> {
        let mut found = Rows { lanes, loads_inputs, rows: Vec::new() };
        let (links, mut tried) = (chain.links().rev().collect::<Vec<_>>(), 0);
        found.fill(chain, &links, machine, &mut tried).then(|| {
            found.rows.reverse();
            found
        })
    }

    /// Chooses lanes for the nests that have none, from the last on; whether that could be done.
    fn fill(&mut self, chain: &Chain<'_, '_>, links: &[&Link<'_>], machine: &Machine, tried: &mut usize) -> bool {
        let Some(link) = links.get(self.rows.len()) else { return true };
        *tried += 1;
        if *tried > MOST_TRIED {
            return false;
        }
        // What is read of the batch is rather filled up than copied, and results are stored along their last dimension.
        let mut order: Vec<usize> = (0..link.free.len()).rev().collect();
        order.sort_by_key(|at| link.shared.iter().flatten().any(|(_, others)| others.contains(&link.free[*at].0)));
        for at in order {
            if let Some(row) = self.row(chain, link, at, machine).filter(|row| self.fits(chain, links, link, row)) {
                self.rows.push(row);
                if self.fill(chain, links, machine, tried) {
                    return true;
                }
                self.rows.pop();
            }
        }
        false
    }

    /// A nest with its lanes in one of its loops; none if what it reads does not allow that, or no sums would be beside each other.
    fn row(&self, chain: &Chain<'_, '_>, link: &Link<'_>, at: usize, machine: &Machine) -> Option<Row> {
        let (index, size) = link.free[at];
        let is_last = link.nest == chain.last.nest;
        let is_full = self.loads_inputs && size % self.lanes == 0;
        // Rows of inputs have the length that they have, and results are stored along their memory.
        let is_along = |others: &[Name]| others.last() == Some(&index) && is_full;
        let mut inputs = chain.inputs(link);
        if (is_last && at + 1 != link.free.len())
            || !inputs.all(|(_, others)| !others.contains(&index) || is_along(others))
        {
            return None;
        }
        let vectors = blocks(size, self.lanes);
        let beside = match &link.sum {
            None => None,
            Some(_) => {
                // A vector is used for several sums.
                let operands = || link.reads.iter().chain(link.shared.iter().flatten()).map(|(_, others)| others);
                let shares = |row: &Name| operands().any(|others| others.contains(&index) && !others.contains(row));
                let mut others = link.free.iter().rev().filter(|(row, _)| *row != index && shares(row));
                let (row, size) = *others.next()?;
                let most = (machine.registers - OPERANDS) / vectors;
                (most > 0).then_some(())?;
                Some((row, size, blocks(size, blocks(size, most))))
            }
        };
        Some(Row { at, lanes: (index, size), vectors, beside })
    }

    /// Whether what a nest makes is read along its lanes by those after it, or one element for all lanes.
    fn fits(&self, chain: &Chain<'_, '_>, links: &[&Link<'_>], link: &Link<'_>, row: &Row) -> bool {
        let mut readers = links.iter().zip(&self.rows).flat_map(|(reader, own)| {
            let reads = reader.reads.iter().filter(|(name, _)| *name == link.result);
            reads.map(move |(_, others)| (others, own.lanes.0))
        });
        link.nest == chain.last.nest
            || readers.all(|(others, lanes)| others.get(row.at) == Some(&lanes) || !others.contains(&lanes))
    }

    /// The steps, and what they cost.
    fn proposal(&self, chain: &Chain<'_, '_>, machine: &Machine, fp: FpMode) -> Option<Proposal> {
        let Chain { last, stages } = *chain;
        let mut steps = Steps::new(last.nest, machine);
        let z = steps.path(last.batch.0);
        for stage in stages.iter().rev() {
            steps.add(format!("compute_at({}, {z})", stage.result));
        }
        for (stage, row) in stages.iter().zip(&self.rows) {
            if row.at + 1 != stage.free.len() {
                let others = (0..stage.free.len()).filter(|at| *at != row.at);
                let order: Vec<String> = others.chain([row.at]).map(|at| (at + 1).to_string()).collect();
                steps.add(format!("layout({}, [0, {}])", stage.result, order.join(", ")));
            }
        }
        for (link, row) in chain.links().zip(&self.rows) {
            self.packs(&mut steps, chain, link, row, &z)?;
        }
        for (link, row) in chain.links().zip(&self.rows) {
            in_registers(&mut steps, link, row, chain.home(link));
        }
        if self.rows.iter().any(|row| row.lanes.1 % self.lanes != 0) {
            steps.add(format!("round({z}, {})", self.lanes));
        }
        steps.parallelize(&z);
        chain.fuse(&mut steps, fp);
        let why = format!(
            "{}: each goes through all nests, its rows filled up to multiples of {}, a lane for each of their elements",
            chain.what(),
            self.lanes
        );
        Some(Proposal { plan: chain.planned(steps, why), cost: self.cost(chain) })
    }

    /// Rows of whole vectors of what all elements share.
    fn packs(&self, steps: &mut Steps, chain: &Chain<'_, '_>, link: &Link<'_>, row: &Row, z: &str) -> Option<()> {
        let nest = chain.home(link);
        let (lanes, size) = row.lanes;
        let mut packed: Vec<&(Name, Vec<Name>)> = Vec::new();
        for operand in link.shared.as_ref()? {
            let (name, others) = operand;
            let is_there = others.last() == Some(&lanes) && size % self.lanes == 0;
            if !others.contains(&lanes) || is_there || packed.contains(&operand) {
                continue;
            }
            let own = others.iter().filter(|other| **other != lanes).chain([&lanes]);
            let own: Vec<String> = own.map(|index| format!("{nest}.{index}")).collect();
            let multiple = if size % self.lanes == 0 { String::new() } else { format!(", {}", self.lanes) };
            steps.add(format!("pack({name}, {z}, [{}]{multiple})", own.join(", ")));
            packed.push(operand);
        }
        Some(())
    }

    fn cost(&self, chain: &Chain<'_, '_>) -> i64 {
        let bytes = chain.last.elem.bytes() as i64;
        let each = |(link, row): (&Link<'_>, &Row)| {
            let others = link.elements() / row.lanes.1;
            match (&link.sum, row.beside) {
                (Some(sum), Some((_, size, block))) => {
                    let tiles = others / size * blocks(size, block);
                    tiles * sum.terms * (block * row.vectors).max(FEWEST) * OPERATION
                }
                _ => others * row.vectors * 2 * OPERATION,
            }
        };
        let operations: i64 = chain.links().zip(&self.rows).map(each).sum();
        let filled = |(link, row): (&Link<'_>, &Row)| link.elements() / row.lanes.1 * row.vectors * self.lanes;
        let stage = chain.links().zip(&self.rows).map(filled).max().unwrap_or_default();
        let in_use = (chain.moved() + 2 * stage) * bytes;
        let line = LINES.iter().find(|(most, _)| in_use <= *most).map_or(0, |(_, cost)| *cost);
        operations.max(chain.moved() * bytes / LINE_BYTES * line)
    }
}

/// The loops of a nest, those that stay in registers inside the sum.
fn in_registers(steps: &mut Steps, link: &Link<'_>, row: &Row, nest: Name) {
    let path = |index: &dyn std::fmt::Display| format!("{nest}.{index}");
    let lanes = row.lanes.0;
    let beside = row.beside.map(|(index, ..)| index);
    let others = link.free.iter().map(|(index, _)| *index).filter(|index| *index != lanes && Some(*index) != beside);
    let order: Vec<Name> = others.chain(beside).chain([lanes]).collect();
    if order.iter().ne(link.free.iter().map(|(index, _)| index)) {
        let list: Vec<String> = order.iter().map(|index| path(index)).collect();
        steps.add(format!("reorder([{}])", list.join(", ")));
    }
    if let (Some(Sum { index, .. }), Some((beside, size, block))) = (&link.sum, row.beside) {
        let inner = match block < size {
            true => {
                let ends = if size % block == 0 { "" } else { ", inwards" };
                steps.add(format!("split({}, {block}{ends})", path(&beside)));
                format!("{beside}.i")
            }
            false => beside.to_string(),
        };
        steps.add(format!("reorder([{}, {}, {}])", path(index), path(&inner), path(&lanes)));
    }
}
