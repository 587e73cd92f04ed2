//! What there is in a nest: what a person who writes the next step of a schedule looks at.

use certen_core::{TensorType, TermId};
use certen_index::Ix;
use certen_loops::{LoopProgram, Stmt, Target, as_element};
use certen_syntax::Name;

/// A loop, and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// What a schedule calls it.
    pub path: String,
    pub index: Name,
    pub stage: Option<Name>,
    /// The loop around it.
    pub parent: Option<usize>,
    /// The loops directly in its body.
    pub children: Vec<usize>,
    /// Whether its body is one loop and nothing else.
    pub perfect: bool,
    /// The next loop of the same block.
    pub next: Option<usize>,
    /// How many iterations it has.
    pub length: Option<Ix>,
    /// Buffers that it writes and reads, with their ranks.
    pub writes: Vec<(Name, usize)>,
    pub reads: Vec<(Name, usize)>,
    /// Whether its body is a local with a loop after it, which adds to it.
    pub makes_sums: bool,
    /// The locals in its body that a loop after each computes, and the buffers.
    pub sums: Vec<Name>,
    /// The locals inside that a condition after each sets.
    pub chosen: Vec<Name>,
    /// Whether sums are added up, and nothing else is done.
    pub adds_sums: bool,
    /// Whether a condition with two blocks is all that it has, perhaps in further loops.
    pub chooses: bool,
    /// Whether a buffer whose sizes are numbers is allocated in it.
    pub has_tile: bool,
    /// Whether the end of a loop in it depends on its index, as in blocks of which the last is not full.
    pub has_rest: bool,
}

/// An element of a buffer that is read.
#[derive(Clone, Debug)]
pub(super) struct Read {
    pub buffer: Name,
    /// The loops around it, outermost first.
    pub around: Vec<usize>,
    /// Those of them that its indices have.
    pub along: Vec<usize>,
}

impl Seen {
    /// How many iterations it has, if that is a number.
    pub(super) fn trips(&self) -> Option<i64> {
        self.length.as_ref().and_then(Ix::as_constant)
    }
}

/// The loops, stages and buffers of a program.
#[derive(Clone, Debug, Default)]
pub(super) struct Look {
    pub loops: Vec<Seen>,
    /// Names of `nest` labels, in order.
    pub stages: Vec<Name>,
    /// Allocated buffers that have dimensions.
    pub buffers: Vec<(Name, usize)>,
    /// Those of them that are allocated in a loop.
    pub inner: Vec<(Name, usize)>,
    /// Parameters that have dimensions: inputs, then outputs.
    pub parameters: Vec<(Name, usize)>,
    /// Everything that is read at the index of a loop.
    pub reads: Vec<Read>,
    /// How many statements there are.
    pub statements: usize,
}

impl Look {
    pub(super) fn at(program: &LoopProgram) -> Look {
        let mut look = Look::default();
        let rank = |name: Name, ty: &TensorType| (ty.rank() > 0).then(|| (name, ty.rank()));
        let parameters = program.inputs.iter().chain(&program.outputs);
        look.parameters = parameters.filter_map(|parameter| rank(parameter.name, &parameter.ty)).collect();
        look.walk(program, &program.body, None, None);
        look.name(program);
        look
    }

    fn walk(&mut self, program: &LoopProgram, block: &[Stmt], parent: Option<usize>, stage: Option<Name>) {
        let mut stage = stage;
        let mut last: Option<usize> = None;
        for stmt in block {
            self.statements += 1;
            match stmt {
                Stmt::Nest(name) => {
                    stage = Some(*name);
                    if !self.stages.contains(name) {
                        self.stages.push(*name);
                    }
                }
                Stmt::Alloc(name, ty) if ty.rank() > 0 => {
                    self.buffers.push((*name, ty.rank()));
                    if parent.is_some() {
                        self.inner.push((*name, ty.rank()));
                    }
                    if ty.shape.iter().all(|size| size.as_constant().is_some()) {
                        self.around(parent).into_iter().for_each(|at| self.loops[at].has_tile = true);
                    }
                }
                Stmt::For { index, range, body, .. } => {
                    let here = self.loops.len();
                    let length = range.hi.sub(&range.lo).ok();
                    let perfect = matches!(body.as_slice(), [Stmt::For { .. }]);
                    let (path, children, writes, reads) = (String::new(), Vec::new(), Vec::new(), Vec::new());
                    let makes_sums = matches!(body.as_slice(), [Stmt::Local { .. }, Stmt::For { .. }, ..]);
                    let adds_sums = makes_sums && matches!(&body[2..], [Stmt::Assign { target: Target::Local(_), .. }]);
                    for at in self.around(parent) {
                        self.loops[at].has_rest |= range.hi.mentions(self.loops[at].index);
                    }
                    let (index, next, has_tile, has_rest) = (*index, None, false, false);
                    let seen = Seen {
                        path,
                        index,
                        stage,
                        parent,
                        children,
                        perfect,
                        next,
                        length,
                        writes,
                        reads,
                        makes_sums,
                        sums: sums(body),
                        chosen: chosen(body),
                        adds_sums,
                        chooses: chooses(body),
                        has_tile,
                        has_rest,
                    };
                    self.loops.push(seen);
                    if let Some(parent) = parent {
                        self.loops[parent].children.push(here);
                    }
                    if let Some(last) = last {
                        self.loops[last].next = Some(here);
                    }
                    last = Some(here);
                    self.walk(program, body, Some(here), stage);
                }
                Stmt::Assign { target, value, .. } => self.uses(program, target, *value, parent),
                _ => stmt.blocks().for_each(|block| self.walk(program, block, parent, stage)),
            }
        }
    }

    /// A loop and those around it, outermost first.
    fn around(&self, inner: Option<usize>) -> Vec<usize> {
        let mut around: Vec<usize> = std::iter::successors(inner, |at| self.loops[*at].parent).collect();
        around.reverse();
        around
    }

    /// Notes what a statement uses at all loops around it.
    fn uses(&mut self, program: &LoopProgram, target: &Target, value: TermId, parent: Option<usize>) {
        let rank = |name: Name, indices: &[Ix]| (!indices.is_empty()).then_some((name, indices.len()));
        let written = match target {
            Target::Element(name, indices) => rank(*name, indices),
            Target::Local(_) => None,
        };
        let parts = program.terms.parts_first(value);
        let elements: Vec<_> = parts.into_iter().filter_map(|id| as_element(&program.terms, id)).collect();
        let read: Vec<(Name, usize)> = elements.iter().filter_map(|(name, _, indices)| rank(*name, indices)).collect();
        let around = self.around(parent);
        for (buffer, _, indices) in elements {
            let has = |at: &&usize| indices.iter().any(|ix| ix.mentions(self.loops[**at].index));
            let along: Vec<usize> = around.iter().filter(has).copied().collect();
            if !along.is_empty() {
                self.reads.push(Read { buffer, around: around.clone(), along });
            }
        }
        for at in around {
            let seen = &mut self.loops[at];
            let add = |to: &mut Vec<(Name, usize)>, thing| {
                if !to.contains(&thing) {
                    to.push(thing);
                }
            };
            written.into_iter().for_each(|thing| add(&mut seen.writes, thing));
            read.iter().for_each(|thing| add(&mut seen.reads, *thing));
        }
    }

    /// Gives each loop its name: the stage in front of it unless that is an output, and a number if there are several.
    fn name(&mut self, program: &LoopProgram) {
        let is_output = |stage: Option<Name>| program.outputs.iter().any(|output| Some(output.name) == stage);
        let paths = self.loops.iter().map(|seen| match seen.stage {
            Some(stage) if !is_output(Some(stage)) => format!("{stage}.{}", seen.index),
            _ => seen.index.to_string(),
        });
        let paths: Vec<String> = paths.collect();
        for (at, seen) in self.loops.iter_mut().enumerate() {
            let same = |path: &&String| **path == paths[at];
            seen.path = match paths.iter().filter(same).count() {
                1 => paths[at].clone(),
                _ => format!("{}#{}", paths[at], paths[..at].iter().filter(same).count() + 1),
            };
        }
    }

    /// The loops that one of the same length follows.
    pub(super) fn rows(&self) -> Vec<usize> {
        let length = |at: Option<usize>| at.and_then(|at| self.loops[at].length.as_ref());
        let same = |at: &usize| length(self.loops[*at].next) == length(Some(*at));
        self.followed().into_iter().filter(same).collect()
    }

    /// The loops over blocks that have a buffer for each block.
    pub(super) fn tiled(&self) -> Vec<&Seen> {
        self.that(|seen| seen.has_tile && seen.has_rest)
    }

    /// The loops of which something holds.
    pub(super) fn that(&self, holds: impl Fn(&Seen) -> bool) -> Vec<&Seen> {
        self.loops.iter().filter(|seen| holds(seen)).collect()
    }

    /// The loops that another one follows.
    pub(super) fn followed(&self) -> Vec<usize> {
        (0..self.loops.len()).filter(|at| self.loops[*at].next.is_some()).collect()
    }

    /// A loop and those inside it, each the whole body of the one before.
    pub(super) fn chain(&self, from: usize) -> Vec<usize> {
        let mut chain = vec![from];
        while let Some(last) = chain.last().and_then(|at| self.loops.get(*at)).filter(|seen| seen.perfect) {
            match last.children.first() {
                Some(inner) => chain.push(*inner),
                None => break,
            }
        }
        chain
    }
}

/// The locals of a block that a loop follows at once, and the buffers.
fn sums(block: &[Stmt]) -> Vec<Name> {
    let sum = |pair: &[Stmt]| match pair {
        [Stmt::Local { name, .. }, Stmt::For { .. }] | [Stmt::Alloc(name, _), ..] => Some(*name),
        _ => None,
    };
    block.windows(2).filter_map(sum).collect()
}

/// The locals in a block and in its loops that a condition follows at once.
fn chosen(block: &[Stmt]) -> Vec<Name> {
    let here = block.windows(2).filter_map(|pair| match pair {
        [Stmt::Local { name, .. }, Stmt::If { .. }] => Some(*name),
        _ => None,
    });
    let inside =
        block.iter().flat_map(|stmt| if let Stmt::For { body, .. } = stmt { chosen(body) } else { Vec::new() });
    here.chain(inside).collect()
}

/// Whether a block is one condition with two blocks, or a loop around one.
fn chooses(block: &[Stmt]) -> bool {
    match block {
        [Stmt::For { body, .. }] => chooses(body),
        [Stmt::If { otherwise, .. }] => !otherwise.is_empty(),
        _ => false,
    }
}
