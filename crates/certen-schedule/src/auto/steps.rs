//! Steps as text.

use certen_core::Range;
use certen_loops::{Site, Stmt};
use certen_syntax::Name;

use super::Machine;

/// The elements that a thread combines at a time: few enough that long sums are exact, and enough to be worth a call.
const BLOCK: i64 = 4096;

/// Steps for a nest, as text.
pub(super) struct Steps {
    nest: Name,
    machine: Machine,
    list: Vec<String>,
}

impl Steps {
    pub fn new(nest: Name, machine: &Machine) -> Steps {
        Steps { nest, machine: *machine, list: Vec::new() }
    }

    pub fn path(&self, index: impl std::fmt::Display) -> String {
        format!("{}.{index}", self.nest)
    }

    pub fn add(&mut self, step: String) {
        self.list.push(step);
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn contains(&self, step: &str) -> bool {
        self.list.iter().any(|known| known == step)
    }

    /// Loops inside each other as one.
    pub fn collapse(&mut self, loops: &[Name]) {
        let mut names = loops.iter();
        let Some(mut whole) = names.next().map(Name::to_string) else { return };
        for inner in names {
            self.add(format!("collapse({}, {})", self.path(&whole), self.path(inner)));
            whole = format!("{whole}.{inner}");
        }
    }

    /// Loops in another order, if it is another one.
    pub fn reorder(&mut self, now: &[(Name, &Range)], wanted: &[Name]) {
        if wanted.iter().ne(now.iter().map(|(index, _)| index)) {
            let list: Vec<String> = wanted.iter().map(|index| self.path(index)).collect();
            self.add(format!("reorder([{}])", list.join(", ")));
        }
    }

    /// Some iterations of a loop around a statement together, and the outermost loop for threads.
    pub fn jam(
        &mut self,
        sites: &[Site<'_>],
        site: &Site<'_>,
        (outermost, row): (Name, Name),
        count: i64,
    ) -> Option<()> {
        self.add(format!("unroll_and_jam({}, {count})", self.path(called(sites, site, row)?)));
        let outermost = if outermost == row { format!("{row}.o") } else { called(sites, site, outermost)? };
        self.parallelize(&self.path(outermost));
        Some(())
    }

    /// Gives a loop to threads, if there are any.
    pub fn parallelize(&mut self, path: &str) {
        if self.machine.has_threads {
            self.add(format!("parallelize({path})"));
        }
    }

    /// Combines the iterations of a loop in blocks that threads share, each in lanes, and then the blocks in lanes. Neither how many
    /// threads there are nor how long the loop is decides the order.
    pub fn blocks(&mut self, index: &str, lanes: i64) {
        self.add(format!("parallelize({}, {BLOCK})", self.path(index)));
        let index = index.split('#').next().unwrap_or(index);
        self.add(format!("vectorize({}, {lanes})", self.path(format!("{index}.i"))));
        self.add(format!("vectorize({}, {lanes})", self.path(format!("{index}.o.parts"))));
    }

    /// Fuses products with their additions in a nest or a loop, if the machine can.
    pub fn fuse(&mut self, what: &str) {
        if self.machine.has_fma {
            self.add(format!("fma({what})"));
        }
    }

    pub fn text(&self) -> String {
        self.list.iter().map(|step| format!("{step};\n")).collect()
    }
}

/// Names in a sentence.
pub(super) fn joined(names: &[Name]) -> String {
    names.iter().map(Name::to_string).collect::<Vec<_>>().join(" and ")
}

/// What a loop around a statement is called, among those of the same name.
pub(super) fn called(sites: &[Site<'_>], site: &Site<'_>, index: Name) -> Option<String> {
    let around = site.around.iter().map(|around| around.stmt);
    let of_it = |stmt: &&Stmt| matches!(stmt, Stmt::For { index: found, .. } if *found == index);
    numbered(sites.iter().map(|site| site.stmt), around.into_iter().find(of_it)?)
}

/// What a loop is called among those of the same name in a nest.
pub(super) fn numbered<'a>(nest: impl Iterator<Item = &'a Stmt>, wanted: &Stmt) -> Option<String> {
    let Stmt::For { index, .. } = wanted else { return None };
    let all: Vec<&Stmt> =
        nest.filter(|stmt| matches!(stmt, Stmt::For { index: found, .. } if found == index)).collect();
    let at = all.iter().position(|stmt| std::ptr::eq(*stmt, wanted))?;
    Some(if all.len() == 1 { index.to_string() } else { format!("{index}#{}", at + 1) })
}
