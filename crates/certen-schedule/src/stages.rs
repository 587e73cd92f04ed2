//! Stages that are kept in buffers of their own: where such a buffer is allocated, which statements compute it, which ones
//! read it, and what it takes to compute it at another place.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use certen_core::TensorType;
use certen_index::Cond;
use certen_loops::{Mode, Site, Stmt, Use, declarations, declared, declared_at_top, for_each_mut, sites, statements};
use certen_syntax::schedule::Path;
use certen_syntax::{Code, Diagnostic, Name, Span, near};

use crate::depend::{Footprint, apart};
use crate::edit::Edit;
use crate::nest::Nest;
use crate::place::{Loop, Place};
use crate::refusal::{Done, Refusal, listed};

/// A buffer that a block allocates.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub name: Name,
    pub ty: TensorType,
    /// Where it is allocated.
    pub alloc: Place,
    /// Where it is freed, in the same block.
    pub free: usize,
}

/// A stored stage whose computation can be taken out of its place.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    pub stored: Stored,
    /// The block in which it is computed and read: that of the allocation, or one in the only loop that does both.
    pub block: Place,
    /// The statements that compute it, by their position in the block.
    pub makers: Vec<usize>,
    /// The statements that read it.
    pub users: Vec<usize>,
}

impl Stage {
    /// Where the statements stand that compute it.
    pub(crate) fn maker_places(&self) -> Vec<Place> {
        self.makers.iter().map(|at| self.block.beside(*at)).collect()
    }
}

/// What a statement does to a buffer.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Touch {
    pub reads: bool,
    pub writes: bool,
    pub swaps: bool,
}

/// The buffer that a step speaks of by one name.
pub(crate) fn name_of((path, span): (&Path, Span)) -> Done<Name> {
    match path.parts.as_slice() {
        [name] => Ok(*name),
        parts => {
            let joined = parts.iter().map(|part| part.as_str()).collect::<Vec<_>>().join(".");
            let error = Diagnostic::error(Code::E0802, span, format!("there is no stage or buffer `{joined}`"));
            Err(error.note("stages and buffers have names without points").into())
        }
    }
}

impl Nest {
    /// All buffers that are allocated, in the order of the text.
    pub(crate) fn allocated(&self) -> Vec<Stored> {
        let stored = |site: &Site<'_>| {
            let Stmt::Alloc(name, ty) = site.stmt else { return None };
            let alloc = Place::of(site);
            let freed = |stmt: &Stmt| matches!(stmt, Stmt::Free(freed) if freed == name);
            let free = site.at + self.block(&alloc)[site.at..].iter().position(freed)?;
            Some(Stored { name: *name, ty: ty.clone(), alloc, free })
        };
        sites(&self.program.body).iter().filter_map(stored).collect()
    }

    /// The allocated buffer that a path means: `t`, or `t#2` for the second of this name.
    pub(crate) fn stored(&self, (path, span): (&Path, Span)) -> Done<Stored> {
        let name = name_of((path, span))?;
        let all = self.allocated();
        let mut named: Vec<Stored> = all.iter().filter(|stored| stored.name == name).cloned().collect();
        let is = |parameters: &[certen_core::Parameter]| parameters.iter().any(|parameter| parameter.name == name);
        let error = |message: String| Diagnostic::error(Code::E0802, span, message);
        match path.nth {
            None if named.len() == 1 => Ok(named.remove(0)),
            Some(nth) if (1..=named.len()).contains(&nth) => Ok(named.remove(nth - 1)),
            _ if is(&self.program.outputs) => {
                let refusal = Refusal::cannot(format!("`{name}` is an output: all of it has to be there in the end"));
                Err(refusal.help("`registers` keeps a part of it at hand for a while"))
            }
            _ if is(&self.program.inputs) => {
                let refusal = Refusal::cannot(format!("`{name}` is an input: it is the caller's"));
                Err(refusal.help(format!("`stage({name}, loop)` copies the part that an iteration reads")))
            }
            _ if self.program.constants.iter().any(|constant| constant.name == name) => {
                Err(Refusal::cannot(format!("`{name}` is a constant: it is never computed")))
            }
            _ if named.is_empty() => {
                let names: BTreeSet<&str> = all.iter().map(|stored| stored.name.as_str()).collect();
                let error = error(format!("there is no stage `{name}` that has a buffer of its own"));
                Err(match near(name.as_str(), names.iter().copied()) {
                    Some(near) => error.help(format!("did you mean `{near}`?")),
                    None if names.is_empty() => error.note("no buffer is allocated at this step"),
                    None => error.note(format!("there are {}", listed(names.iter()))),
                }
                .into())
            }
            _ => {
                let ways = (1..=named.len()).map(|nth| format!("{name}#{nth}"));
                let refusal: Refusal = error(format!("there are {} buffers `{name}`", named.len()))
                    .help(format!("say which: {}", listed(ways)))
                    .into();
                Err(refusal.at_all(named.iter().map(|stored| &stored.alloc)))
            }
        }
    }

    /// What a block does to a buffer.
    pub(crate) fn touch(&self, block: &[Stmt], buffer: Name) -> Touch {
        let mut touch = Touch::default();
        for stmt in statements(block) {
            let own = if let Stmt::Assign { .. } = stmt { stmt.element() } else { None };
            for (name, indices, how) in stmt.uses(&self.program.terms) {
                match how {
                    _ if name != buffer => {}
                    // A statement that reads only the element that it writes computes that element.
                    Use::Read => touch.reads |= own != Some((buffer, indices)),
                    Use::Write | Use::Combine(_) => touch.writes = true,
                    Use::Exchange => touch.swaps = true,
                }
            }
        }
        touch
    }

    /// The computation of a stored stage, if it can be taken out of its place.
    pub(crate) fn made(&self, stored: &Stored) -> Done<Stage> {
        let name = stored.name;
        let mut span = stored.alloc.at + 1..stored.free;
        let mut home = stored.alloc.clone();
        let (mut makers, mut users);
        loop {
            (makers, users) = (Vec::new(), Vec::new());
            let block = self.block(&home);
            for (at, stmt) in block.iter().enumerate().take(span.end).skip(span.start) {
                let touch = self.touch(std::slice::from_ref(stmt), name);
                if touch.swaps {
                    let refusal = Refusal::cannot(format!("`{name}` is exchanged with another buffer"));
                    return Err(refusal.at(&home.beside(at)));
                }
                if touch.writes {
                    makers.push(at);
                }
                if touch.reads {
                    users.push(at);
                }
            }
            let Some(&both) = makers.iter().find(|at| users.contains(at)) else { break };
            let place = home.beside(both);
            let used = |(_, block): &(usize, &Vec<Stmt>)| self.touch(block, name) != Touch::default();
            let only = makers.len() == 1 && users.len() == 1;
            let blocks: Vec<_> = block
                .get(both)
                .filter(|_| only)
                .into_iter()
                .flat_map(|stmt| stmt.blocks().enumerate().filter(used))
                .collect();
            let &[(inner, _)] = blocks.as_slice() else {
                let refusal = Refusal::cannot(format!("`{name}` is read by the loops that compute it"));
                return Err(refusal.at(&place));
            };
            let inner = place.in_block(inner, 0);
            span = 0..self.block(&inner).len();
            home = inner;
        }
        let (Some(&last), Some(&user)) = (makers.last(), users.first()) else {
            let what = if makers.is_empty() { "written" } else { "read" };
            return Err(Refusal::cannot(format!("`{name}` is never {what}")).at(&stored.alloc));
        };
        if user < last {
            let refusal = Refusal::cannot(format!("`{name}` is read before all of it is computed"));
            return Err(refusal.at(&home.beside(user)).at(&home.beside(last)));
        }
        self.with_locals(&home, span, &mut makers);
        let stage = Stage { stored: stored.clone(), block: home.clone(), makers, users };
        let part = Footprint::of(&self.program, &self.statements(&stage));
        if let Some(other) = part.accesses.iter().find(|access| access.how != Use::Read && access.name != name) {
            let refusal = Refusal::cannot(format!("the loops of `{name}` compute `{}` too", other.name));
            return Err(refusal.at_all(&stage.maker_places()).help("`fission` gives them loops of their own"));
        }
        if let Some(other) = part.swapped.first() {
            let refusal = Refusal::cannot(format!("the loops of `{name}` exchange `{other}` with another buffer"));
            return Err(refusal.at_all(&stage.maker_places()));
        }
        Ok(stage)
    }

    /// Adds the locals of the block that only these statements use, and what assigns them.
    fn with_locals(&self, home: &Place, span: Range<usize>, makers: &mut Vec<usize>) {
        let block = self.block(home);
        let as_local = |stmt: &Stmt| if let Stmt::Local { name, .. } = stmt { Some(*name) } else { None };
        let own: Vec<Name> = block.iter().take(span.end).skip(span.start).filter_map(as_local).collect();
        if own.is_empty() {
            return;
        }
        let locals: HashSet<Name> = own.iter().copied().collect();
        // Which statements speak of a local, and what each of those changes.
        let mut uses: HashMap<Name, Vec<usize>> = HashMap::new();
        let mut changed: HashMap<usize, HashSet<Name>> = HashMap::new();
        for (at, stmt) in block.iter().enumerate().skip(span.start) {
            let part = Footprint::of(&self.program, std::slice::from_ref(stmt));
            let declared = as_local(stmt);
            let used: HashSet<Name> = part.accesses.iter().map(|access| access.name).chain(declared).collect();
            for name in used.intersection(&locals) {
                uses.entry(*name).or_default().push(at);
            }
            let writes = part.accesses.iter().filter(|access| access.how != Use::Read).map(|access| access.name);
            changed.insert(at, writes.chain(declared).collect());
        }
        let mut all: HashSet<usize> = makers.iter().copied().collect();
        // The last one first: it may be computed from those before it.
        for local in own.into_iter().rev() {
            let used = uses.remove(&local).unwrap_or_default();
            let others = used.iter().filter(|at| !all.contains(at));
            let only = |at: &usize| changed.get(at).is_some_and(|names| names.iter().all(|name| *name == local));
            if used.iter().any(|at| all.contains(at)) && others.clone().all(only) {
                let others: Vec<usize> = others.copied().collect();
                all.extend(others);
            }
        }
        *makers = all.into_iter().collect();
        makers.sort_unstable();
    }

    /// The statements that compute a stage.
    pub(crate) fn statements(&self, stage: &Stage) -> Vec<Stmt> {
        let block = self.block(&stage.block);
        stage.makers.iter().filter_map(|&at| block.get(at).cloned()).collect()
    }

    /// That what a stage is computed from is the same where its last reader ends as where it is computed now.
    pub(crate) fn keeps_sources(&mut self, stage: &Stage) -> Done<()> {
        let name = stage.stored.name;
        let (Some(&first), Some(&last)) = (stage.makers.first(), stage.users.last()) else { return Ok(()) };
        let block = self.block(&stage.block);
        let makers: HashSet<usize> = stage.makers.iter().copied().collect();
        let between = (first..=last).filter(|at| !makers.contains(at)).filter_map(|at| block.get(at).cloned());
        let between: Vec<Stmt> = between.collect();
        let without = |mut part: Footprint| {
            part.accesses.retain(|access| access.name != name);
            part
        };
        let made = without(self.ordered(Footprint::of(&self.program, &self.statements(stage))));
        let other = without(Footprint::of(&self.program, &between));
        let facts = self.facts(&stage.block)?;
        let status = apart(&facts, &[], &made, &other, &Cond::always());
        self.condition(format!("what `{name}` is computed from is not overwritten before it is read"), status);
        Ok(())
    }

    /// Takes the allocation, the computation and the end of a stage away. What it is computed from stays until its last
    /// reader has ended.
    pub(crate) fn take_out(&mut self, stage: &Stage) -> Done<()> {
        let made = Footprint::of(&self.program, &self.statements(stage));
        let sources: HashSet<Name> = made.accesses.iter().map(|access| access.name).collect();
        let (first, last) = (stage.makers.first().copied(), stage.users.last().copied());
        let (Some(first), Some(last)) = (first, last) else { return Ok(()) };
        let last_maker = stage.makers.last().copied().unwrap_or(first);
        let Stored { name, alloc, free, .. } = &stage.stored;
        let makers: HashSet<usize> = stage.makers.iter().copied().collect();
        let same = stage.block.path == alloc.path;
        let reader = self.stage(&stage.block.beside(last));
        let block = self.block_mut(&stage.block)?;
        let (mut out, mut late) = (Vec::with_capacity(block.len()), Vec::new());
        for (at, stmt) in std::mem::take(block).into_iter().enumerate() {
            let is_label =
                (!same || at > alloc.at) && at < last_maker && matches!(&stmt, Stmt::Nest(label) if label == name);
            if (same && (at == alloc.at || at == *free)) || makers.contains(&at) || is_label {
                continue;
            }
            match &stmt {
                Stmt::Free(freed) if (first..last).contains(&at) && sources.contains(freed) => late.push(stmt),
                _ => out.push(stmt),
            }
            if at == last {
                out.append(&mut late);
            }
        }
        *block = out;
        if !same {
            let block = self.block_mut(alloc)?;
            block.remove(*free);
            block.remove(alloc.at);
            // What is left of the loop belongs to the stage that reads.
            for stmt in block {
                match (&stmt, reader) {
                    (Stmt::Nest(label), Some(reader)) if label == name => *stmt = Stmt::Nest(reader),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// The names that are visible in the body of a loop, and those that its enclosing blocks declare later.
    pub(crate) fn visible(&self, inside: &Place) -> HashSet<Name> {
        let program = &self.program;
        let given = program.given().map(|(name, _)| name);
        let mut visible: HashSet<Name> = program.sizes.iter().copied().chain(given).collect();
        for depth in 0..=inside.path.len() {
            let around = inside.at_depth(depth);
            visible.extend(declared_at_top(self.block(&around)));
            if depth < inside.path.len() {
                visible.extend(self.stmt(&around).and_then(Stmt::declares));
            }
        }
        visible
    }

    /// Statements for the beginning of a loop's body, with other names where theirs are taken there.
    pub(crate) fn named_apart(&mut self, place: &Place, stmts: &[Stmt]) -> Done<Vec<Stmt>> {
        let body = self.loop_at(place)?.body;
        let visible = self.visible(&place.inside(0));
        let own: HashSet<Name> = declared_at_top(stmts).collect();
        let later = declared(&body);
        let mut taken = self.taken();
        taken.extend(declared(stmts));
        let mut edit = Edit::default();
        for (name, _) in declarations(stmts) {
            // Of a local that is taken along, the declaration further out is its own.
            let clashes = if own.contains(&name) { later.contains(&name) } else { visible.contains(&name) };
            if clashes && !edit.names.contains_key(&name) {
                let new = Name::fresh(name.as_str(), |name| taken.contains(&name));
                taken.insert(new);
                edit.names.insert(name, new);
            }
        }
        Ok(edit.block(&mut self.program, stmts)?)
    }

    /// The label of the stage in which a place is, unless the statements after it begin with one.
    pub(crate) fn label(&self, place: &Place, behind: &[Stmt]) -> Option<Stmt> {
        let first = behind.iter().find(|stmt| !matches!(stmt, Stmt::Alloc(..)));
        match first {
            Some(Stmt::Nest(_)) => None,
            _ => self.stage(place).map(Stmt::Nest),
        }
    }

    /// Whether threads or lanes run the iterations of a loop or of one around it.
    pub(crate) fn modes_around(&self, place: &Place) -> Done<Vec<Mode>> {
        let mut modes: Vec<Mode> = self.loops_around(place).iter().map(|(_, around)| around.mode).collect();
        modes.push(self.loop_at(place)?.mode);
        Ok(modes)
    }
}

/// Loops inside loops in these modes are not shared again between threads or lanes.
pub(crate) fn demoted(stmts: &mut [Stmt], around: &[Mode]) {
    for_each_mut(stmts, |stmt| {
        if let Stmt::For { mode, .. } = stmt {
            let inner = *mode != Mode::Serial && around.contains(&Mode::Vector);
            if inner || (*mode == Mode::Parallel && around.contains(&Mode::Parallel)) {
                *mode = Mode::Serial;
            }
        }
    });
}

/// Loops over a box, around one statement: the first range outermost.
pub(crate) fn loops_over(ranges: Vec<(Name, certen_core::Range)>, inner: Stmt) -> Stmt {
    ranges.into_iter().rev().fold(inner, |inner, (index, range)| Loop::new(index, range, vec![inner]).into())
}
