//! Loop nests as trees: the domain L of Sec. 3.1, with what happens to them when a transformation copies, cuts or
//! fuses.
//!
//! The paper identifies an iterator with its range (lb, ub, st), in which the loop inside a block has the values that
//! the whole loop had: (b + v*i, b + v*i + (v - 1), 1). That is how trees are shown, and what decides whether a bound
//! leaves its scope. The loops of `certen-schedule` count from the beginning of the block; a nest keeps that range as
//! well, and the names that the steps there give to their loops, so that a position in the tree can be said as a name.
//! Both are the same nest: a property that is tested with random loop expressions.
//!
//! Trees are never changed, since loop expressions leave what their operands stand for; parts are shared.

use std::rc::Rc;

use certen_index::{Cond, Facts, Ix, IxError, Verdict};
use certen_syntax::Name;
use rustc_hash::{FxHashMap, FxHashSet};

/// A part of a tree.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Loop(Rc<Loop>),
    /// What happens only in some iterations: of an unrolled loop whose last block may be smaller.
    Guard(Rc<Guard>),
    Leaf(Rc<Leaf>),
    /// The loops of a statement begin: no part of the paper's trees, but of the names of loops.
    Label(Name),
}

/// How the iterations of a loop run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    Serial,
    Parallel,
    /// With this number of lanes, if it was said.
    Vector(Option<i64>),
}

/// A loop.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    /// What steps call it.
    pub index: Name,
    /// From here…
    pub lo: Ix,
    /// … to before here.
    pub hi: Ix,
    /// The first value in the paper's sense.
    pub lb: Ix,
    /// The last value in the paper's sense.
    pub ub: Ix,
    pub mode: Mode,
    pub body: Vec<Item>,
}

/// Statements under a condition.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    pub cond: Cond,
    pub body: Vec<Item>,
}

/// A statement.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    /// Its number.
    pub assignment: usize,
    /// Its iterators, in terms of the loops around it.
    pub at: Vec<(Name, Ix)>,
}

impl Loop {
    /// What holds in its body.
    pub(crate) fn within(&self) -> Result<Cond, IxError> {
        let i = Ix::var(self.index);
        Ok(Cond::le(&self.lo, &i)?.and(Cond::lt(&i, &self.hi)?))
    }

    /// Its range as the paper writes it, inclusive.
    pub(crate) fn shown(&self) -> String {
        format!("({}, {}, 1)", self.lb, self.ub)
    }
}

impl From<Loop> for Item {
    fn from(found: Loop) -> Item {
        Item::Loop(Rc::new(found))
    }
}

/// Other expressions for indices that are free in a tree, and other names for those that are bound.
#[derive(Clone, Default)]
pub(crate) struct Edit {
    /// As steps count.
    pub indices: FxHashMap<Name, Ix>,
    /// As the paper counts.
    pub values: FxHashMap<Name, Ix>,
    pub names: FxHashMap<Name, Name>,
}

impl Edit {
    /// For one index.
    pub(crate) fn index(name: Name, index: Ix, value: Ix) -> Edit {
        let mut edit = Edit::default();
        edit.indices.insert(name, index);
        edit.values.insert(name, value);
        edit
    }

    fn ix(&self, free: &FxHashMap<Name, Ix>, ix: &Ix) -> Result<Ix, IxError> {
        ix.substitute(&|name| free.get(&name).cloned().or_else(|| self.names.get(&name).map(|name| Ix::var(*name))))
    }

    /// The edited parts.
    pub(crate) fn items(&self, items: &[Item]) -> Result<Vec<Item>, IxError> {
        items.iter().map(|item| self.item(item)).collect()
    }

    pub(crate) fn item(&self, item: &Item) -> Result<Item, IxError> {
        Ok(match item {
            Item::Label(name) => Item::Label(*name),
            Item::Leaf(leaf) => {
                let at = leaf.at.iter().map(|(name, ix)| Ok((*name, self.ix(&self.values, ix)?)));
                Item::Leaf(Rc::new(Leaf { assignment: leaf.assignment, at: at.collect::<Result<_, IxError>>()? }))
            }
            Item::Guard(guard) => {
                let cond = guard.cond.substitute(&|name| {
                    self.indices.get(&name).cloned().or_else(|| self.names.get(&name).map(|name| Ix::var(*name)))
                })?;
                Item::Guard(Rc::new(Guard { cond, body: self.items(&guard.body)? }))
            }
            Item::Loop(found) => Loop {
                index: self.names.get(&found.index).copied().unwrap_or(found.index),
                lo: self.ix(&self.indices, &found.lo)?,
                hi: self.ix(&self.indices, &found.hi)?,
                lb: self.ix(&self.values, &found.lb)?,
                ub: self.ix(&self.values, &found.ub)?,
                mode: found.mode,
                body: self.items(&found.body)?,
            }
            .into(),
        })
    }
}

/// Calls a function with every loop and the stage that it is in, in the order of the text.
pub(crate) fn each_loop(items: &[Item], mut stage: Option<Name>, call: &mut dyn FnMut(Option<Name>, &Rc<Loop>)) {
    for item in items {
        match item {
            Item::Label(name) => stage = Some(*name),
            Item::Leaf(_) => {}
            Item::Guard(guard) => each_loop(&guard.body, stage, call),
            Item::Loop(found) => {
                call(stage, found);
                each_loop(&found.body, stage, call);
            }
        }
    }
}

/// The names of all loops.
pub(crate) fn loop_names(items: &[Item]) -> FxHashSet<Name> {
    let mut names = FxHashSet::default();
    each_loop(items, None, &mut |_, found| {
        names.insert(found.index);
    });
    names
}

/// How many statements a list of parts is, with loops and conditions.
pub(crate) fn statements(items: &[Item]) -> usize {
    let inside = |item: &Item| match item {
        Item::Loop(found) => statements(&found.body),
        Item::Guard(guard) => statements(&guard.body),
        Item::Leaf(_) | Item::Label(_) => 0,
    };
    items.iter().map(|item| 1 + inside(item)).sum()
}

/// The parts that are part of the paper's trees.
pub(crate) fn parts(items: &[Item]) -> impl DoubleEndedIterator<Item = &Item> {
    items.iter().filter(|item| !matches!(item, Item::Label(_)))
}

/// The only part, if it is a loop.
pub(crate) fn only_loop(items: &[Item]) -> Option<&Rc<Loop>> {
    let mut parts = parts(items);
    match (parts.next(), parts.next()) {
        (Some(Item::Loop(found)), None) => Some(found),
        _ => None,
    }
}

/// A copy in which every loop has `suffix` after its name; `taken` gets the new names.
pub(crate) fn copy(
    items: &[Item],
    suffix: &str,
    mut edit: Edit,
    taken: &mut dyn FnMut(Name) -> bool,
) -> Result<Vec<Item>, IxError> {
    let mut names: Vec<Name> = Vec::new();
    each_loop(items, None, &mut |_, found| names.push(found.index));
    for name in names {
        edit.names.entry(name).or_insert_with(|| Name::fresh(&format!("{name}.{suffix}"), &mut *taken));
    }
    edit.items(items)
}

/// The same parts, without the parts of minima and maxima in bounds that never decide.
pub(crate) fn simplified(items: &[Item], facts: &Facts, index: Name) -> Result<Vec<Item>, IxError> {
    let mut out = Vec::with_capacity(items.len());
    for item in items {
        match item {
            Item::Loop(found) => {
                let mut new =
                    Loop { lo: found.lo.simplified(facts)?, hi: found.hi.simplified(facts)?, ..(**found).clone() };
                let mut inside = facts.clone();
                inside.assume(new.within()?);
                new.body = simplified(&found.body, &inside, index)?;
                out.push(new.into());
            }
            Item::Guard(guard) => {
                let opposite = guard.cond.not()?;
                let mut names = Default::default();
                guard.cond.collect_names(&mut names);
                let asked = guard.cond.is_always() || guard.cond.is_never() || names.contains(&index);
                let mut inside = facts.clone();
                inside.assume(guard.cond.clone());
                let body = simplified(&guard.body, &inside, index)?;
                if asked && facts.prove(&guard.cond) == Verdict::Yes {
                    out.extend(body);
                } else if !(asked && facts.prove(&opposite) == Verdict::Yes) {
                    out.push(Item::Guard(Rc::new(Guard { cond: guard.cond.clone(), body })));
                }
            }
            other => out.push(other.clone()),
        }
    }
    Ok(out)
}

/// The stage of a part of a list, where that of the list is known.
pub(crate) fn stage_at(items: &[Item], at: usize, stage: Option<Name>) -> Option<Name> {
    let label = |item: &Item| if let Item::Label(name) = item { Some(*name) } else { None };
    items.iter().take(at + 1).rev().find_map(label).or(stage)
}

/// Makes one loop of two of equal range in a list (Eq. 22, 23), as the step `fuse_outer` does.
pub(crate) fn fuse(
    items: &[Item],
    one: usize,
    two: usize,
    stage: Option<Name>,
    taken: &mut dyn FnMut(Name) -> bool,
) -> Result<Vec<Item>, IxError> {
    let (Some(Item::Loop(a)), Some(Item::Loop(b))) = (items.get(one), items.get(two)) else {
        return Ok(items.to_vec());
    };
    let label = |item: &Item| if let Item::Label(name) = item { Some(*name) } else { None };
    let stages = [stage_at(items, one, stage), stage_at(items, two, stage)];
    let shift = b.lo.sub(&a.lo)?;
    let shift_value = b.lb.sub(&a.lb)?;
    let i = Ix::var(a.index);
    let mut edit = Edit::index(b.index, i.add(&shift)?, i.add(&shift_value)?);
    if loop_names(&b.body).contains(&a.index) {
        let new = Name::fresh(a.index.as_str(), &mut *taken);
        edit.names.insert(a.index, new);
    }
    let body_b = edit.items(&b.body)?;
    let last_stage = a.body.iter().rev().find_map(label).or(stages[0]);
    let behind = parts(&items[two + 1..]).next().is_some()
        && !items.get(two + 1).is_some_and(|item| matches!(item, Item::Label(_)));
    let label_behind = stages[0] != stages[1] && behind;
    let has_loop = !loop_names(&body_b).is_empty();
    let label_inside = stages[1] != last_stage && (!label_behind || has_loop);
    let mut body = a.body.clone();
    body.extend(stages[1].filter(|_| label_inside).map(Item::Label));
    body.extend(body_b);
    let mode = if a.mode == b.mode { a.mode } else { Mode::Serial };
    let mut out: Vec<Item> = items[..one].to_vec();
    out.push(Loop { mode, body, ..(**a).clone() }.into());
    out.extend(stages[1].filter(|_| label_behind).map(Item::Label));
    out.extend_from_slice(&items[two + 1..]);
    Ok(out)
}

/// A tree as the paper writes it: ⟨i1, [⟨i2, [σ4(D)]⟩]⟩.
pub(crate) fn shown(items: &[Item], leaf: &dyn Fn(&Leaf) -> String) -> String {
    const MOST: usize = 48;
    fn write(items: &[Item], leaf: &dyn Fn(&Leaf) -> String, left: &mut usize, out: &mut String) {
        let mut first = true;
        for item in parts(items) {
            if !std::mem::take(&mut first) {
                out.push_str(", ");
            }
            if *left == 0 {
                out.push('…');
                return;
            }
            *left -= 1;
            match item {
                Item::Leaf(found) => out.push_str(&leaf(found)),
                Item::Guard(guard) => {
                    out.push_str(&format!("⟨if {}, [", guard.cond));
                    write(&guard.body, leaf, left, out);
                    out.push_str("]⟩");
                }
                Item::Loop(found) => {
                    out.push_str(&format!("⟨{}, [", found.index));
                    write(&found.body, leaf, left, out);
                    out.push_str("]⟩");
                }
                Item::Label(_) => {}
            }
        }
    }
    let mut out = String::new();
    let mut left = MOST;
    let top = parts(items).count() != 1 || only_loop(items).is_none();
    out.push_str(if top { "⟨•, [" } else { "" });
    write(items, leaf, &mut left, &mut out);
    out.push_str(if top { "]⟩" } else { "" });
    out
}

/// The ranges of a tree's loops, outermost first: `i1 = (0, N - 1, 1)`.
pub(crate) fn ranges(items: &[Item]) -> String {
    const MOST: usize = 16;
    let mut all: Vec<String> = Vec::new();
    let mut count = 0;
    each_loop(items, None, &mut |_, found| {
        count += 1;
        if all.len() < MOST {
            let mode = match found.mode {
                Mode::Serial => "",
                Mode::Parallel => " parallel",
                Mode::Vector(_) => " vector",
            };
            let text = format!("{} = {}{mode}", found.index, found.shown());
            if !all.contains(&text) {
                all.push(text);
            }
        }
    });
    if count > MOST {
        all.push("…".into());
    }
    all.join(", ")
}
