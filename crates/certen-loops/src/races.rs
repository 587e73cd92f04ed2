//! Races: whether the iterations of a loop may run in any order, or at the same time.
//!
//! Two iterations are *independent* if no element that one of them writes is used by the other. What is declared inside the
//! loop is private to an iteration. For everything else:
//!
//! - a local from outside is not assigned, unless lanes of a vector [combine](combined) into it; buffers from outside are
//!   not exchanged;
//! - a buffer that is written is used at different elements in different iterations, whatever the two accesses are.
//!
//! Most buffers are indexed by the loop's own index in one dimension, in every access alike: that needs no proof. For
//! other accesses, the loop's index and the indices of the loops inside are taken twice, under their ranges and the
//! conditions around the access, and the prover has to show that the elements differ: `4*i + r` with `0 <= r < 4` does.
//! Elements differ if one index of them does, because every access is in bounds. A loop that is shown to have at most one
//! iteration needs nothing of all that.
//!
//! Needs: nothing; a program that is otherwise ill-formed gives some answer. Guarantees: an accepted loop has the same
//! effect in every order of its iterations, and in parallel. Takes time in proportion to the body, but for a bounded
//! number of questions to the prover.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use certen_core::Range;
use certen_index::{Cond, Facts, Ix, IxError, Verdict};
use certen_syntax::{Code, Diagnostic, Name};

use crate::ir::{LoopProgram, Mode, Stmt, Target};
use crate::walk::{Use, combined};

/// Different accesses of one buffer that are compared with each other; a loop with more is not accepted.
const MAX_ACCESSES: usize = 64;

/// Why the iterations of a loop are not shown to be independent.
#[derive(Debug)]
pub(crate) enum Race {
    /// A local from outside is assigned.
    Local(Name),
    /// A buffer from outside is exchanged with another.
    Swap(Name),
    /// Two accesses of one buffer, the first of them a write.
    Accesses { write: String, other: String, other_writes: bool, verdict: Verdict },
    /// Too many accesses of one buffer to compare them all.
    TooMany(Name),
}

impl Race {
    /// For people, of a loop over this index.
    pub(crate) fn diagnostic(&self, mode: Mode, index: Name) -> Diagnostic {
        let begin = format!("the iterations of the {}loop over {index} are not", mode.word());
        let error = |text: String| Diagnostic { about: Some(index), ..Diagnostic::error(Code::E0702, None, text) };
        match self {
            Race::Local(name) => error(format!("{begin} independent: each assigns {name}, a local from outside"))
                .note(format!("for example the iterations {index} = 0 and {index} = 1")),
            Race::Swap(name) => error(format!("{begin} independent: each exchanges {name}, a buffer from outside"))
                .note(format!("for example the iterations {index} = 0 and {index} = 1")),
            Race::TooMany(name) => {
                error(format!("{begin} shown to be independent: there are too many different accesses of {name}"))
            }
            Race::Accesses { write, other, other_writes, verdict } => {
                let does = if *other_writes { "writes" } else { "reads" };
                match verdict {
                    Verdict::No(found) => {
                        let value = |name: Name| found.0.get(&name).copied().unwrap_or(0);
                        let (one, two) = (value(first(index)), value(second(index)));
                        let others: Vec<String> = found
                            .0
                            .iter()
                            .filter(|(name, _)| !name.as_str().ends_with('\''))
                            .map(|(name, value)| format!("{name} = {value}"))
                            .collect();
                        let others =
                            if others.is_empty() { String::new() } else { format!(", with {}", others.join(", ")) };
                        error(format!("{begin} independent: one writes {write}, another {does} {other}"))
                            .note(format!("for example the iterations {index} = {one} and {index} = {two}{others}"))
                    }
                    _ => error(format!(
                        "{begin} shown to be independent: for {index} = i1, one writes {write}, for {index} = i2, \
                         another {does} {other}"
                    )),
                }
            }
        }
    }
}

/// Checks that the iterations of a loop are independent, where `facts` hold around it.
pub(crate) fn check_independent(
    program: &LoopProgram,
    mut facts: impl FnMut() -> Facts,
    (index, range, mode): (Name, &Range, Mode),
    body: &[Stmt],
) -> Result<(), Box<Race>> {
    let race = match check_different(program, &mut facts, (index, range, mode), body) {
        Ok(()) => return Ok(()),
        Err(race) => race,
    };
    // One iteration is independent, whatever it does.
    let alone = range.lo.add(&Ix::from(1)).and_then(|next| Cond::le(&range.hi, &next));
    match alone {
        Ok(alone) if facts().prove(&alone) == Verdict::Yes => Ok(()),
        _ => Err(race),
    }
}

/// Whether the iterations of a loop are shown to be independent of each other, so that it can have this mode, where `facts`
/// hold around it.
pub fn are_independent(
    program: &LoopProgram,
    facts: impl FnOnce() -> Facts,
    (index, range, mode): (Name, &Range, Mode),
    body: &[Stmt],
) -> bool {
    check_different(program, facts, (index, range, mode), body).is_ok()
}

/// Checks that any two iterations of a loop are independent.
fn check_different(
    program: &LoopProgram,
    facts: impl FnOnce() -> Facts,
    (index, range, mode): (Name, &Range, Mode),
    body: &[Stmt],
) -> Result<(), Box<Race>> {
    let uses = Uses::of(program, (index, mode), body)?;
    let mut general = Vec::new();
    for (name, accesses) in &uses.shared {
        if !uses.same_dimension(index, accesses) {
            let mut seen = HashSet::new();
            let different: Vec<&Access> =
                accesses.iter().filter(|access| seen.insert((access.indices, access.path, access.write))).collect();
            if different.len() > MAX_ACCESSES {
                return Err(Box::new(Race::TooMany(*name)));
            }
            general.push((*name, different));
        }
    }
    if general.is_empty() {
        return Ok(());
    }
    let facts = facts();
    let mut shown = HashSet::new();
    for (name, accesses) in general {
        for (at, write) in accesses.iter().enumerate().filter(|(_, access)| access.write) {
            // Of two writes, each stands first once.
            for other in accesses.iter().enumerate().filter(|(b, other)| !other.write || *b >= at).map(|(_, a)| a) {
                let verdict = uses.differ(&facts, (index, range), write, other, &mut shown).unwrap_or(Verdict::Unknown);
                if verdict != Verdict::Yes {
                    let text = |access: &Access| Target::Element(name, access.indices.into()).to_string();
                    return Err(Box::new(Race::Accesses {
                        write: text(write),
                        other: text(other),
                        other_writes: other.write,
                        verdict,
                    }));
                }
            }
        }
    }
    Ok(())
}

/// The copies of a name in two iterations. No name that is written has such a sign in it.
fn first(name: Name) -> Name {
    Name::new(&format!("{name}'"))
}

fn second(name: Name) -> Name {
    Name::new(&format!("{name}''"))
}

/// An access of a buffer from outside that the loop writes.
struct Access<'a> {
    indices: &'a [Ix],
    write: bool,
    /// The innermost block around it, see [`Uses::paths`].
    path: usize,
}

/// What stands around an access, inside the loop.
enum Entry<'a> {
    Index(Name, &'a Range),
    Holds(&'a Cond),
    HoldsNot(&'a Cond),
}

/// What a body does to things from outside.
struct Uses<'a> {
    /// All that is declared inside.
    private: HashSet<Name>,
    /// The accesses of each buffer from outside that is written.
    shared: BTreeMap<Name, Vec<Access<'a>>>,
    /// Blocks inside the loop: the enclosing one, and how they are entered. The first is the loop's own body.
    paths: Vec<(usize, Option<Entry<'a>>)>,
}

impl<'a> Uses<'a> {
    fn of(program: &'a LoopProgram, (index, mode): (Name, Mode), body: &'a [Stmt]) -> Result<Uses<'a>, Box<Race>> {
        let mut uses = Uses { private: HashSet::new(), shared: BTreeMap::new(), paths: vec![(0, None)] };
        let mut blocks: Vec<(&[Stmt], usize)> = vec![(body, 0)];
        let mut at = 0;
        while let Some(&(block, path)) = blocks.get(at) {
            at += 1;
            let mut enter = |around, body: &'a [Stmt]| {
                uses.paths.push((path, Some(around)));
                blocks.push((body, uses.paths.len() - 1));
            };
            for stmt in block {
                match stmt {
                    Stmt::For { index, range, body, .. } => {
                        uses.private.insert(*index);
                        enter(Entry::Index(*index, range), body);
                    }
                    Stmt::If { cond, then, otherwise } => {
                        enter(Entry::Holds(cond), then);
                        enter(Entry::HoldsNot(cond), otherwise);
                    }
                    Stmt::Alloc(name, _) | Stmt::Local { name, .. } => {
                        uses.private.insert(*name);
                    }
                    Stmt::Nest(_) | Stmt::Free(_) | Stmt::Swap(..) | Stmt::Assign { .. } => {}
                }
            }
        }
        uses.private.insert(index);
        if mode == Mode::Vector {
            uses.private.extend(combined(&program.terms, body).into_keys());
        }
        for stmt in blocks.iter().flat_map(|(block, _)| *block) {
            match stmt {
                Stmt::Assign { target: Target::Local(name), .. } if !uses.private.contains(name) => {
                    return Err(Box::new(Race::Local(*name)));
                }
                Stmt::Assign { target: Target::Element(name, _), .. } if !uses.private.contains(name) => {
                    uses.shared.entry(*name).or_default();
                }
                Stmt::Swap(a, b) => {
                    if let Some(name) = [a, b].into_iter().find(|name| !uses.private.contains(name)) {
                        return Err(Box::new(Race::Swap(*name)));
                    }
                }
                Stmt::Nest(_) | Stmt::Alloc(..) | Stmt::Free(_) | Stmt::Local { .. } | Stmt::Assign { .. } => {}
                Stmt::For { .. } | Stmt::If { .. } => {}
            }
        }
        let mut writes = Vec::new();
        for (block, path) in blocks {
            for (name, indices, how) in block.iter().flat_map(|stmt| stmt.uses(&program.terms)) {
                let Some(accesses) = uses.shared.get_mut(&name) else { continue };
                match how {
                    Use::Read => accesses.push(Access { indices, write: false, path }),
                    Use::Write | Use::Combine(_) | Use::Exchange => {
                        writes.push((name, Access { indices, write: true, path }));
                    }
                }
            }
        }
        for (name, access) in writes {
            uses.shared.entry(name).or_default().push(access);
        }
        Ok(uses)
    }

    /// Whether all accesses have the same index in some dimension, which is another one in every iteration.
    fn same_dimension(&self, index: Name, accesses: &[Access]) -> bool {
        let Some(one) = accesses.first() else { return true };
        (0..one.indices.len()).any(|dimension| {
            let ix = &one.indices[dimension];
            self.moves_with(index, ix) && accesses.iter().all(|access| access.indices.get(dimension) == Some(ix))
        })
    }

    /// Whether an expression is a multiple of the index, not zero, and something that no iteration changes.
    fn moves_with(&self, index: Name, ix: &Ix) -> bool {
        let at = |value: i64| ix.substitute(&|name| (name == index).then(|| Ix::from(value)));
        let difference = at(0).and_then(|zero| at(1)?.sub(&zero));
        let Some(factor) = difference.ok().and_then(|d| d.as_constant()).filter(|&factor| factor != 0) else {
            return false;
        };
        let rest = Ix::var(index).scale(factor).and_then(|moving| ix.sub(&moving));
        let mut names = BTreeSet::new();
        rest.is_ok_and(|rest| {
            rest.collect_names(&mut names);
            !names.iter().any(|name| self.private.contains(name))
        })
    }

    /// Whether two accesses are of different elements in any two different iterations.
    fn differ(
        &self,
        facts: &Facts,
        (index, range): (Name, &Range),
        one: &Access,
        two: &Access,
        shown: &mut HashSet<(usize, usize, bool, Cond)>,
    ) -> Result<Verdict, IxError> {
        let same = one.indices == two.indices && one.path == two.path;
        let mut goal = Cond::never();
        for (a, b) in one.indices.iter().zip(two.indices) {
            let copied = |ix: &Ix, copy: fn(Name) -> Name| {
                ix.substitute(&|name| self.private.contains(&name).then(|| Ix::var(copy(name))))
            };
            goal = goal.or(Cond::eq(&copied(a, first)?, &copied(b, second)?)?.not()?);
        }
        // Copies of a statement ask the same again and again: what decides is how far apart their elements are.
        let question = (one.path, two.path, same, goal.clone());
        if shown.contains(&question) {
            return Ok(Verdict::Yes);
        }
        let mut facts = facts.clone();
        for (access, copy) in [(one, first as fn(Name) -> Name), (two, second)] {
            let rename = |name: Name| self.private.contains(&name).then(|| Ix::var(copy(name)));
            let mut within = |name: Name, range: &Range| {
                let i = Ix::var(copy(name));
                let (lo, hi) = (range.lo.substitute(&rename)?, range.hi.substitute(&rename)?);
                facts.assume(Cond::le(&lo, &i)?.and(Cond::lt(&i, &hi)?));
                Ok::<(), IxError>(())
            };
            within(index, range)?;
            let mut path = access.path;
            let mut conditions = Vec::new();
            while let Some((outer, Some(around))) = self.paths.get(path) {
                match around {
                    Entry::Index(name, range) => within(*name, range)?,
                    Entry::Holds(cond) => conditions.push(cond.substitute(&rename)?),
                    Entry::HoldsNot(cond) => conditions.push(cond.not()?.substitute(&rename)?),
                }
                path = *outer;
            }
            conditions.into_iter().for_each(|cond| facts.assume(cond));
        }
        let (i, j) = (Ix::var(first(index)), Ix::var(second(index)));
        for order in if same { vec![Cond::lt(&i, &j)?] } else { vec![Cond::lt(&i, &j)?, Cond::lt(&j, &i)?] } {
            // As part of the goal, so that a counterexample tells the iterations.
            let verdict = facts.prove(&order.not()?.or(goal.clone()));
            if verdict != Verdict::Yes {
                return Ok(verdict);
            }
        }
        shown.insert(question);
        Ok(Verdict::Yes)
    }
}
