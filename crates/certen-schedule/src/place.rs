//! Places in loops: where a statement stands, and the text of loops with some statements marked.

use std::fmt::Write as _;

use certen_core::Range;
use certen_index::{Cond, IxError};
use certen_loops::{LoopProgram, Mode, Site, Stmt, sites, within};
use certen_syntax::Name;

/// Where a statement stands: the statements around it, outermost first, and its position in the innermost block.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Place {
    pub path: Vec<Turn>,
    pub at: usize,
}

/// The way into a block of a statement.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Turn {
    pub at: usize,
    /// Which of its blocks: the second one of a condition is 1.
    pub block: usize,
}

impl Place {
    /// Where a statement of the whole body stands.
    pub(crate) fn of(site: &Site<'_>) -> Place {
        let path = site.around.iter().map(|around| Turn { at: around.at, block: around.block }).collect();
        Place { path, at: site.at }
    }

    /// The place of a statement in the body of this one.
    pub(crate) fn inside(&self, at: usize) -> Place {
        self.in_block(0, at)
    }

    /// The place of a statement in a block of this one.
    pub(crate) fn in_block(&self, block: usize, at: usize) -> Place {
        let mut path = self.path.clone();
        path.push(Turn { at: self.at, block });
        Place { path, at }
    }

    /// The place of a statement whose place in the body of this one is known.
    pub(crate) fn join(&self, inner: Place) -> Place {
        let body = self.inside(0);
        Place { path: [body.path, inner.path].concat(), at: inner.at }
    }

    /// Another statement of the same block.
    pub(crate) fn beside(&self, at: usize) -> Place {
        Place { path: self.path.clone(), at }
    }

    /// The statement around it that has this many around itself; at its own depth, it itself.
    pub(crate) fn at_depth(&self, depth: usize) -> Place {
        Place { path: self.path[..depth].to_vec(), at: self.path.get(depth).map_or(self.at, |turn| turn.at) }
    }

    /// The statement around it.
    pub(crate) fn around(&self) -> Option<Place> {
        Some(self.at_depth(self.path.len().checked_sub(1)?))
    }

    /// Whether a statement stands inside this one.
    pub(crate) fn contains(&self, inner: &Place) -> bool {
        inner.path.len() > self.path.len() && inner.at_depth(self.path.len()) == *self
    }
}

/// A loop.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    /// Its index.
    pub index: Name,
    /// Its range.
    pub range: Range,
    /// Its mode.
    pub mode: Mode,
    /// What is repeated.
    pub body: Vec<Stmt>,
}

impl Loop {
    /// A serial loop.
    pub(crate) fn new(index: Name, range: Range, body: Vec<Stmt>) -> Loop {
        Loop { index, range, mode: Mode::Serial, body }
    }

    /// How many iterations it has, if that is a number.
    pub(crate) fn trips(&self) -> Option<i64> {
        self.range.hi.sub(&self.range.lo).ok()?.as_constant().map(|trips| trips.max(0))
    }

    /// What holds in its body.
    pub(crate) fn bounds(&self) -> Result<Cond, IxError> {
        within(self.index, &self.range)
    }
}

impl From<Loop> for Stmt {
    fn from(Loop { index, range, mode, body }: Loop) -> Stmt {
        Stmt::For { index, range, mode, body }
    }
}

/// The statements of a program as text, with some of them marked in the margin.
pub(crate) fn shown(program: &LoopProgram, marked: &[Place]) -> String {
    // The text has one line for each statement and one for each end of a block, in order.
    fn lines(block: &[Stmt], path: &mut Vec<Turn>, marked: &[Place], marks: &mut Vec<bool>) {
        for (at, stmt) in block.iter().enumerate() {
            marks.push(marked.iter().any(|place| place.at == at && place.path == *path));
            for (block, inner) in stmt.blocks().enumerate().filter(|(at, inner)| *at == 0 || !inner.is_empty()) {
                path.push(Turn { at, block });
                lines(inner, path, marked, marks);
                path.pop();
                marks.push(false);
            }
        }
    }
    let mut marks = Vec::new();
    lines(&program.body, &mut Vec::new(), marked, &mut marks);
    let text = program.to_string();
    let all: Vec<&str> = text.lines().collect();
    let body = &all[all.len().saturating_sub(marks.len())..];
    let mut out = String::new();
    for (line, mark) in body.iter().zip(&marks) {
        let _ = writeln!(out, "{} {line}", if *mark { '>' } else { ' ' });
    }
    out
}

/// The statements of a program as text, with those marked in the margin that are asked for.
pub fn marked(program: &LoopProgram, is_marked: impl Fn(&Stmt) -> bool) -> String {
    let sites = sites(&program.body);
    let places: Vec<Place> = sites.iter().filter(|site| is_marked(site.stmt)).map(Place::of).collect();
    shown(program, &places)
}
