//! Whether blocks of one loop were run in both orders.
//!
//! A step that brings statements into one loop is wrong where one of them has to do with what another one does in a later
//! iteration. Such iterations there have to be in some run: a block in an earlier iteration than another one, and in a
//! later one, wherever the conditions around them allow it. Blocks are the body of the loop and the loops and branches
//! that stand in it, not those in loops further inside.

use std::collections::{HashMap, HashSet};

use certen_core::Range;
use certen_index::{Cond, Ix, Verdict};
use certen_loops::{Around, Event, LoopProgram, Mode, Stmt};
use certen_syntax::Name;

use crate::reach::{again, places, reachable};

/// How often the prover is asked for sizes.
const QUESTIONS: usize = 48;

/// Blocks of one loop that are looked at, the first ones.
const MOST_BLOCKS: usize = 12;

/// A loop with blocks in it.
struct Shared<'a> {
    /// What is around its statements, the loop itself last.
    path: Vec<Around<'a>>,
    /// What is around the statements of each block, further inside; nothing around those of the body.
    blocks: Vec<Vec<Around<'a>>>,
}

/// What is known of a loop or condition.
#[derive(Clone, Default)]
struct Place {
    /// The loop that it is, among those with blocks.
    shared: Option<usize>,
    /// The loop that it begins an iteration of, if it is the first place in its body.
    begins: Option<usize>,
    /// The blocks that it has: in which loop, and which.
    blocks: [Option<(usize, usize)>; 2],
}

/// A loop, and a block that is run in an earlier iteration than another one.
pub(crate) type Pair = (usize, usize, usize);

/// What all runs have done.
pub(crate) struct Order<'a> {
    nest: &'a LoopProgram,
    places: Vec<Place>,
    shared: Vec<Shared<'a>>,
    /// Blocks that were run.
    ran: HashSet<(usize, usize)>,
    seen: HashSet<Pair>,
    /// Those that cannot be, and how often it was asked.
    never: HashSet<Pair>,
    asked: usize,
}

/// A loop that is run.
struct Current {
    iteration: u64,
    /// The first and the last iteration in which each block was run.
    blocks: Vec<Option<(u64, u64)>>,
}

/// What one run has done.
pub(crate) struct OrderRun {
    /// Each loop, as far as it has come.
    current: Vec<Current>,
    ran: HashSet<(usize, usize)>,
    seen: HashSet<Pair>,
}

impl<'a> Order<'a> {
    /// Nothing yet.
    pub fn new(nest: &'a LoopProgram) -> Order<'a> {
        let (mut found, mut shared): (Vec<Place>, Vec<Shared<'a>>) = (Vec::new(), Vec::new());
        // The places of the statements around, by their addresses.
        let mut known: HashMap<*const Stmt, usize> = HashMap::new();
        let mut begun = HashSet::new();
        for (at, site) in places(nest).enumerate() {
            known.insert(std::ptr::from_ref(site.stmt), at);
            let mut place = Place::default();
            let is_loop = |around: &Around<'_>| matches!(around.stmt, Stmt::For { .. });
            let around = site.around.iter().rposition(is_loop);
            let outer = around.and_then(|at| found[*known.get(&std::ptr::from_ref(site.around[at].stmt))?].shared);
            if let Some((around, outer)) = around.zip(outer) {
                if around + 1 == site.around.len() && begun.insert(outer) {
                    place.begins = Some(outer);
                }
                for (arm, block) in site.stmt.blocks().enumerate().take(2) {
                    let blocks = &mut shared[outer].blocks;
                    if !block.is_empty() && blocks.len() < MOST_BLOCKS {
                        place.blocks[arm] = Some((outer, blocks.len()));
                        let own = Around { stmt: site.stmt, at: site.at, block: arm };
                        blocks.push(site.around[around + 1..].iter().copied().chain([own]).collect());
                    }
                }
            }
            // Iterations of other loops are shown to be independent.
            if let Stmt::For { mode: Mode::Serial, .. } = site.stmt {
                let own = Around { stmt: site.stmt, at: site.at, block: 0 };
                place.shared = Some(shared.len());
                shared.push(Shared {
                    path: site.around.iter().copied().chain([own]).collect(),
                    blocks: vec![Vec::new()],
                });
            }
            found.push(place);
        }
        let (ran, seen, never) = Default::default();
        Order { nest, places: found, shared, ran, seen, never, asked: 0 }
    }

    /// A run that begins.
    pub fn run(&self) -> OrderRun {
        let current = |shared: &Shared<'_>| Current { iteration: 0, blocks: vec![None; shared.blocks.len()] };
        OrderRun { current: self.shared.iter().map(current).collect(), ran: HashSet::new(), seen: HashSet::new() }
    }

    /// Adds a run that has come to its end.
    pub fn add(&mut self, mut run: OrderRun) {
        (0..self.shared.len()).for_each(|shared| run.end(self, shared));
        self.ran.extend(run.ran);
        self.seen.extend(run.seen);
    }

    /// Pairs of blocks that were run, but never in this order.
    fn missing(&self) -> Vec<Pair> {
        let mut missing = Vec::new();
        for (shared, Shared { blocks, .. }) in self.shared.iter().enumerate() {
            let ran: Vec<usize> = (0..blocks.len()).filter(|block| self.ran.contains(&(shared, *block))).collect();
            for one in &ran {
                let pairs = ran.iter().filter(|two| *two != one).map(|two| (shared, *one, *two));
                missing.extend(pairs.filter(|pair| !self.seen.contains(pair) && !self.never.contains(pair)));
            }
        }
        missing
    }

    /// Sizes for what is missing, with what it is.
    pub fn wanted(&mut self) -> Vec<(Pair, Vec<(Name, i64)>)> {
        let mut wanted = Vec::new();
        for pair in self.missing() {
            if self.asked == QUESTIONS {
                break;
            }
            self.asked += 1;
            match self.facts(pair).map(|facts| reachable(self.nest, facts)) {
                Some(Verdict::Yes) => drop(self.never.insert(pair)),
                Some(Verdict::No(example)) => {
                    let value = |name: &Name| example.0.get(name).copied().unwrap_or(3);
                    wanted.push((pair, self.nest.sizes.iter().map(|name| (*name, value(name))).collect()));
                }
                _ => {}
            }
        }
        wanted
    }

    /// Whether two blocks were run in this order meanwhile.
    pub fn has(&self, pair: Pair) -> bool {
        self.seen.contains(&pair)
    }

    /// What is still missing and not shown never to be, in words.
    pub fn unreached(&self) -> Vec<String> {
        let words = |(shared, one, two): Pair| {
            let Shared { path, blocks } = &self.shared[shared];
            let index = path.last().and_then(index_of).map(|name| name.to_string()).unwrap_or_default();
            let [one, two] = [one, two].map(|block| blocks[block].last().map_or("any".into(), in_words));
            format!("an iteration of the loop over {index} {one}, before another one {two}")
        };
        self.missing().into_iter().map(words).collect()
    }

    /// The facts under which a block is run in an earlier iteration than another one.
    fn facts(&self, (shared, one, two): Pair) -> Option<Vec<Cond>> {
        let Shared { path, blocks } = &self.shared[shared];
        let (last, before) = path.split_last()?;
        let index = index_of(last)?;
        let holds = |around: &Around<'_>| around.stmt.holds_in(around.block).ok();
        let mut facts: Vec<Cond> = before.iter().chain([last]).chain(&blocks[one]).filter_map(holds).collect();
        let renamed: Vec<Name> = [last].into_iter().chain(&blocks[two]).filter_map(index_of).collect();
        let later = |name: Name| renamed.contains(&name).then(|| again(name));
        facts
            .extend([last].into_iter().chain(&blocks[two]).filter_map(|around| holds(around)?.substitute(&later).ok()));
        facts.extend(Cond::lt(&Ix::var(index), &again(index)));
        Some(facts)
    }
}

fn index_of(around: &Around<'_>) -> Option<Name> {
    match around.stmt {
        Stmt::For { index, .. } => Some(*index),
        _ => None,
    }
}

/// `where n > 3`, `with the loop over j in 0..n`
pub(crate) fn in_words(around: &Around<'_>) -> String {
    match around.stmt {
        Stmt::For { index, range: Range { lo, hi }, .. } => format!("with the loop over {index} in {lo}..{hi}"),
        Stmt::If { cond, .. } if around.block == 0 => format!("where {cond}"),
        Stmt::If { cond, .. } => format!("where {cond} does not hold"),
        _ => String::new(),
    }
}

impl OrderRun {
    /// Notes what happens.
    pub fn note(&mut self, order: &Order<'_>, event: Event) {
        let (at, block, iterations) = match event {
            Event::Loop { place, iterations } => (place, 0, iterations),
            Event::Branch { place, holds } => (place, usize::from(!holds), 1),
            _ => return,
        };
        let Some(place) = order.places.get(at) else { return };
        if let Some(outer) = place.begins {
            self.current[outer].iteration += 1;
        }
        if let Some((outer, block)) = place.blocks[block].filter(|_| iterations > 0) {
            let Current { iteration: now, ref mut blocks } = self.current[outer];
            blocks[block].get_or_insert((now, now)).1 = now;
        }
        if let Some(shared) = place.shared {
            self.end(order, shared);
            self.current[shared].blocks[0] = (iterations > 0).then_some((1, iterations));
        }
    }

    /// A loop has ended.
    fn end(&mut self, order: &Order<'_>, shared: usize) {
        let Current { iteration, blocks } = &mut self.current[shared];
        *iteration = 0;
        if blocks.len() == 1 {
            return;
        }
        for (one, earlier) in blocks.iter().enumerate() {
            let Some((first, _)) = earlier else { continue };
            if !order.ran.contains(&(shared, one)) {
                self.ran.insert((shared, one));
            }
            for (two, later) in blocks.iter().enumerate().filter(|(two, _)| *two != one) {
                if later.is_some_and(|(_, last)| *first < last) && !order.seen.contains(&(shared, one, two)) {
                    self.seen.insert((shared, one, two));
                }
            }
        }
        blocks.fill(None);
    }
}
