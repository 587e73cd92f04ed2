//! What there is in a nest: what a person who writes the next step of a schedule looks at.

use certen_core::{ElemType, TensorType};
use certen_loops::{LoopProgram, Mode, Stmt};
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
    /// How many iterations it has, if that is a number.
    pub trips: Option<i64>,
    pub mode: Mode,
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
    pub locals: Vec<(Name, ElemType)>,
    /// How many statements there are.
    pub statements: usize,
}

impl Look {
    pub(super) fn at(program: &LoopProgram) -> Look {
        let mut look = Look::default();
        let rank = |name: Name, ty: &TensorType| (ty.rank() > 0).then(|| (name, ty.rank()));
        let parameters = program.inputs.iter().chain(&program.outputs);
        look.parameters = parameters.filter_map(|parameter| rank(parameter.name, &parameter.ty)).collect();
        look.walk(&program.body, None, None);
        look.name(program);
        look
    }

    fn walk(&mut self, block: &[Stmt], parent: Option<usize>, stage: Option<Name>) {
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
                }
                Stmt::Local { name, elem, .. } => self.locals.push((*name, *elem)),
                Stmt::For { index, range, mode, body } => {
                    let here = self.loops.len();
                    let trips = range.hi.sub(&range.lo).ok().and_then(|trips| trips.as_constant());
                    let perfect = matches!(body.as_slice(), [Stmt::For { .. }]);
                    let (path, children) = (String::new(), Vec::new());
                    let (index, mode, next) = (*index, *mode, None);
                    self.loops.push(Seen { path, index, stage, parent, children, perfect, next, trips, mode });
                    if let Some(parent) = parent {
                        self.loops[parent].children.push(here);
                    }
                    if let Some(last) = last {
                        self.loops[last].next = Some(here);
                    }
                    last = Some(here);
                    self.walk(body, Some(here), stage);
                }
                Stmt::If { then, otherwise, .. } => {
                    self.walk(then, parent, stage);
                    self.walk(otherwise, parent, stage);
                }
                _ => {}
            }
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

    /// The loops that another one follows.
    pub(super) fn followed(&self) -> Vec<usize> {
        (0..self.loops.len()).filter(|at| self.loops[*at].next.is_some()).collect()
    }

    /// A loop and those inside of it, each the whole body of the one before.
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
