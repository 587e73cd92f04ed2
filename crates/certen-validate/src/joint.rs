//! Whether loops were run several times *at once*.
//!
//! That each loop has had several iterations in some run, and that each condition has held, says little of a block whose
//! statements depend on each other across iterations: a condition that holds in one iteration of a loop that always has six
//! has not been tried, nor has a sum over nothing beside a loop of eight. So for each body of a loop and each branch of a
//! condition it is counted, run by run, in how many iterations of every loop around it was it run: a bit for each loop with
//! several of them, or with many. What no run has shown is asked of the prover, as in `reach.rs`: two copies of what holds
//! in the block, for two iterations of the loop.

use std::collections::HashMap;

use certen_core::Range;
use certen_index::{Cond, Ix, Verdict};
use certen_loops::{Around, Event, LoopProgram, Stmt};
use certen_syntax::Name;

use crate::order::{Order, OrderRun, Pair, in_words};
use crate::reach::{again, places, reachable};

/// Iterations that are several, and iterations that are many.
const ITERATIONS: [u64; 2] = [2, 3];

/// How often the prover is asked for sizes.
const QUESTIONS: usize = 48;

/// Loops around a block that are looked at, the outermost ones: as many as there are bits.
const MOST_LOOPS: usize = 64;

/// One bit for each loop around a block, the outermost one first: has it several iterations with the block, has it many?
type Bits = [u64; 2];

/// The body of a loop, or a branch of a condition.
struct Block<'a> {
    /// What is around its statements, the loop or condition itself last.
    path: Vec<Around<'a>>,
    /// The loops of these, by their places.
    loops: Vec<usize>,
    /// How many iterations of each are several, and many: fewer if it never has more.
    needed: Vec<[u64; 2]>,
    /// Whether the last loop is the one whose body it is.
    is_body: bool,
    /// The block that it stands in.
    parent: Option<usize>,
}

/// The blocks of a nest.
pub(crate) struct Blocks<'a> {
    nest: &'a LoopProgram,
    blocks: Vec<Block<'a>>,
    /// The blocks of each place.
    of: Vec<[Option<usize>; 2]>,
    /// The blocks in a loop, its body among them, by the loop's place, and which of their loops it is.
    inside: Vec<Vec<(usize, usize)>>,
}

/// What one run has done.
pub(crate) struct Run {
    /// Of the current iterations of the loops around each block: in how many the block was run, and how, further inside.
    counts: Vec<Vec<(u64, Bits)>>,
    /// The blocks that were run, and how.
    found: Vec<Option<Bits>>,
    order: OrderRun,
}

/// What should happen in some run.
#[derive(Clone, Copy)]
pub(crate) enum Wish {
    /// A block in two iterations of a loop around it.
    Twice(usize, usize),
    /// A block in an earlier iteration than another one.
    Before(Pair),
}

/// What the prover says of two iterations of a loop with a block.
#[derive(Clone, Copy, PartialEq)]
enum Answer {
    Never,
    Possible,
}

/// What all runs have done together.
pub(crate) struct Joint<'a> {
    blocks: Blocks<'a>,
    runs: Vec<Vec<Option<Bits>>>,
    answers: HashMap<(usize, usize), Answer>,
    order: Order<'a>,
}

impl<'a> Blocks<'a> {
    fn of(nest: &'a LoopProgram) -> Blocks<'a> {
        let mut found = Blocks { nest, blocks: Vec::new(), of: Vec::new(), inside: Vec::new() };
        // The places of the statements around, by their addresses.
        let mut known: HashMap<*const Stmt, usize> = HashMap::new();
        for (place, site) in places(nest).enumerate() {
            known.insert(std::ptr::from_ref(site.stmt), place);
            found.inside.push(Vec::new());
            let mut of = [None; 2];
            for (arm, statements) in site.stmt.blocks().enumerate().take(2) {
                if statements.is_empty() {
                    continue;
                }
                let own = Around { stmt: site.stmt, at: site.at, block: arm };
                let path: Vec<Around<'a>> = site.around.iter().copied().chain([own]).collect();
                let place_of = |around: &Around<'_>| known.get(&std::ptr::from_ref(around.stmt)).copied();
                let (mut loops, mut needed) = (Vec::new(), Vec::new());
                for around in &path {
                    if let (Stmt::For { range, .. }, Some(place)) = (around.stmt, place_of(around))
                        && loops.len() < MOST_LOOPS
                    {
                        loops.push(place);
                        needed.push(ITERATIONS.map(|count| count.min(most_iterations(range))));
                    }
                }
                let parent = site.around.last().and_then(|last| found.of.get(place_of(last)?)?[last.block.min(1)]);
                let is_body = matches!(site.stmt, Stmt::For { .. });
                let block = found.blocks.len();
                loops.iter().enumerate().for_each(|(level, place)| found.inside[*place].push((block, level)));
                found.blocks.push(Block { path, loops, needed, is_body, parent });
                of[arm] = Some(block);
            }
            found.of.push(of);
        }
        found
    }

    /// The facts under which a block is run in two iterations of a loop around it.
    fn twice(&self, block: usize, level: usize) -> Option<Vec<Cond>> {
        let path = &self.blocks[block].path;
        let indices = path.iter().enumerate().filter_map(|(at, around)| match around.stmt {
            Stmt::For { index, .. } => Some((at, *index)),
            _ => None,
        });
        let inner: Vec<(usize, Name)> = indices.skip(level).collect();
        let (from, index) = *inner.first()?;
        let later = |name: Name| inner.iter().any(|(_, inner)| *inner == name).then(|| again(name));
        let mut facts = Vec::new();
        for (at, around) in path.iter().enumerate() {
            let Ok(holds) = around.stmt.holds_in(around.block) else { continue };
            if at >= from {
                facts.extend(holds.substitute(&later));
            }
            facts.push(holds);
        }
        facts.extend(Cond::lt(&Ix::var(index), &again(index)));
        Some(facts)
    }

    /// Two iterations of a loop with a block, in words.
    fn words(&self, block: usize, level: usize) -> String {
        let Block { path, .. } = &self.blocks[block];
        let index = path.iter().filter_map(|around| match around.stmt {
            Stmt::For { index, .. } => Some(*index),
            _ => None,
        });
        let index = index.skip(level).map(|name| name.to_string()).next().unwrap_or_default();
        let what = path.last().map(in_words).unwrap_or_default();
        format!("two iterations of the loop over {index} {what}")
    }
}

/// How many iterations a loop has, if it is the same number at all sizes.
fn most_iterations(range: &Range) -> u64 {
    let count = range.hi.sub(&range.lo).ok().and_then(|count| count.as_constant());
    count.map_or(u64::MAX, |count| count.max(0) as u64)
}

impl Run {
    /// Notes what happens.
    pub fn note(&mut self, joint: &Joint<'_>, event: Event) {
        self.order.note(&joint.order, event);
        let blocks = &joint.blocks;
        match event {
            Event::Loop { place, iterations } => {
                for (block, level) in blocks.inside.get(place).into_iter().flatten() {
                    self.end(&blocks.blocks[*block], *block, *level);
                }
                if let Some(counts) = blocks.of.get(place).and_then(|of| self.counts.get_mut(of[0]?)) {
                    counts.iter_mut().last().into_iter().for_each(|(count, _)| *count = iterations);
                }
            }
            Event::Branch { place, holds } => {
                let Some(block) = blocks.of.get(place).and_then(|of| of[usize::from(!holds)]) else { return };
                match self.counts[block].last_mut() {
                    Some((count, _)) => *count += 1,
                    None => self.found[block] = Some([0; 2]),
                }
            }
            _ => {}
        }
    }

    /// The loops around a block, from the innermost to this one, have ended.
    fn end(&mut self, Block { needed, .. }: &Block<'_>, block: usize, level: usize) {
        let counts = &mut self.counts[block];
        for at in (level..counts.len()).rev() {
            let (count, mut bits) = std::mem::take(&mut counts[at]);
            if count == 0 {
                continue;
            }
            for (bits, needed) in bits.iter_mut().zip(needed[at]) {
                *bits |= u64::from(count >= needed) << at;
            }
            let outside = match at.checked_sub(1) {
                Some(outer) => {
                    counts[outer].0 += 1;
                    &mut counts[outer].1
                }
                None => self.found[block].get_or_insert_default(),
            };
            outside.iter_mut().zip(bits).for_each(|(all, more)| *all |= more);
        }
    }
}

impl<'a> Joint<'a> {
    /// Nothing yet.
    pub fn new(nest: &'a LoopProgram) -> Joint<'a> {
        Joint { blocks: Blocks::of(nest), runs: Vec::new(), answers: HashMap::new(), order: Order::new(nest) }
    }

    /// A run that begins.
    pub fn run(&self) -> Run {
        let counts = self.blocks.blocks.iter().map(|block| vec![Default::default(); block.loops.len()]);
        Run { counts: counts.collect(), found: vec![None; self.blocks.blocks.len()], order: self.order.run() }
    }

    /// Adds a run that has come to its end.
    pub fn add(&mut self, mut run: Run) {
        for (at, block) in self.blocks.blocks.iter().enumerate() {
            run.end(block, at, 0);
        }
        self.runs.push(run.found);
        self.order.add(run.order);
    }

    /// The bits of all runs of a block; none if there are none.
    fn anywhere(&self, block: usize) -> Option<Bits> {
        let found = self.runs.iter().filter_map(|run| run[block]);
        found.reduce(|one, two| [one[0] | two[0], one[1] | two[1]])
    }

    /// The blocks that were run, but in no run in several iterations of a loop around them.
    fn missing(&self) -> impl Iterator<Item = (usize, usize)> {
        self.blocks.blocks.iter().enumerate().flat_map(move |(at, block)| {
            let seen = self.anywhere(at).map_or(u64::MAX, |bits| bits[0]);
            // A loop of its own is asked for in any case.
            let levels = block.loops.len() - usize::from(block.is_body);
            (0..levels).filter(move |level| seen >> level & 1 == 0).map(move |level| (at, level))
        })
    }

    /// Whether the prover has said of a block, or of one around it, that no two iterations of a loop run it.
    fn is_never(&self, block: usize, level: usize) -> bool {
        let blocks = std::iter::successors(Some(block), |block| self.blocks.blocks[*block].parent);
        blocks.into_iter().any(|block| self.answers.get(&(block, level)) == Some(&Answer::Never))
    }

    /// Sizes for what is missing, with what it is.
    pub fn wanted(&mut self) -> Vec<(Wish, Vec<(Name, i64)>)> {
        let mut wanted = Vec::new();
        for (block, level) in self.missing().collect::<Vec<_>>() {
            if self.answers.len() >= QUESTIONS || self.is_never(block, level) {
                continue;
            }
            let verdict = self.blocks.twice(block, level).map(|facts| reachable(self.blocks.nest, facts));
            let is_never = verdict == Some(Verdict::Yes);
            self.answers.insert((block, level), if is_never { Answer::Never } else { Answer::Possible });
            if let Some(Verdict::No(example)) = verdict {
                let value = |name: &Name| example.0.get(name).copied().unwrap_or(3);
                let sizes = self.blocks.nest.sizes.iter().map(|name| (*name, value(name))).collect();
                wanted.push((Wish::Twice(block, level), sizes));
            }
        }
        wanted.extend(self.order.wanted().into_iter().map(|(pair, sizes)| (Wish::Before(pair), sizes)));
        wanted
    }

    /// Whether it has happened meanwhile.
    pub fn has(&self, wish: Wish) -> bool {
        match wish {
            Wish::Twice(block, level) => self.anywhere(block).is_some_and(|bits| bits[0] >> level & 1 == 1),
            Wish::Before(pair) => self.order.has(pair),
        }
    }

    /// What is still missing and not shown never to be, in words.
    pub fn unreached(&self) -> Vec<String> {
        let possible = self.missing().filter(|(block, level)| !self.is_never(*block, *level));
        let words = possible.map(|(block, level)| self.blocks.words(block, level));
        words.chain(self.order.unreached()).collect()
    }

    /// Whether each block has a run with several iterations at once of all the loops around it that have them in any.
    pub fn together(&self) -> bool {
        (0..self.blocks.blocks.len()).all(|block| {
            let anywhere = self.anywhere(block).unwrap_or_default()[0];
            anywhere == 0 || self.runs.iter().any(|run| run[block].is_some_and(|bits| bits[0] & anywhere == anywhere))
        })
    }

    /// Whether each block that was run has a run with many iterations at once of all the loops around it.
    pub fn is_full(&self) -> bool {
        (0..self.blocks.blocks.len()).all(|block| {
            let levels = 0..self.blocks.blocks[block].loops.len();
            let wanted =
                levels.filter(|level| !self.is_never(block, *level)).fold(0, |bits, level| bits | 1u64 << level);
            let mut runs = self.runs.iter().filter_map(|run| run[block]).peekable();
            runs.peek().is_none() || runs.any(|bits| bits[1] & wanted == wanted)
        })
    }
}
