//! Dependences: whether two parts of the loops can be run in another order.
//!
//! An *access* is a read, a write or a combination (`+=`) of an element of a buffer, or of a local. Two accesses
//! *conflict* if they can be of the same element and one of them writes; two combinations with the same operation do
//! not, because sums can be made in any order. To change the order of two parts, it is enough that no access of one
//! conflicts with an access of the other, in those iterations whose order changes.
//!
//! [`apart`] puts that question to the prover. The indices of the loops around both parts, and of the loops inside of
//! them, are taken twice, with one and two strokes behind their names: `i'` of the first access, `i''` of the second.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use certen_core::{Range, ReduceOp, Term, TermId};
use certen_index::{Cond, Counterexample, Decision, Facts, Ix, IxError, Proof, Status};
use certen_loops::{LoopProgram, Stmt, Target, as_element};
use certen_syntax::Name;

use crate::edit::declared;
use crate::nest::within;

/// More pairs of accesses than this are not compared.
const MAX_PAIRS: usize = 100_000;

/// More questions than this are not put to the prover.
const MAX_QUESTIONS: usize = 2000;

/// What an access does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Kind {
    Read,
    Write,
    Combine(ReduceOp),
}

/// An access, and what stands around it inside of its part.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Access {
    pub name: Name,
    pub indices: Box<[Ix]>,
    pub kind: Kind,
    /// Loops around it, outermost first.
    pub loops: Vec<(Name, Range)>,
    /// Conditions around it.
    pub conds: Vec<Cond>,
}

/// A buffer, and the numbers in those of its dimensions that have nothing else.
type Bucket = (Name, Vec<i64>);

impl Access {
    /// The buffer, and the numbers in those of its dimensions that have nothing else.
    fn bucket(&self, fixed: &HashMap<Name, Vec<bool>>) -> Bucket {
        let fixed = fixed.get(&self.name).into_iter().flatten();
        let numbers =
            self.indices.iter().zip(fixed).filter(|(_, fixed)| **fixed).filter_map(|(ix, _)| ix.as_constant());
        (self.name, numbers.collect())
    }

    fn text(&self) -> String {
        Target::Element(self.name, self.indices.clone()).to_string()
    }
}

/// The accesses of a part to what it does not declare itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    pub accesses: Vec<Access>,
    /// What it declares: indices, locals, buffers.
    pub private: HashSet<Name>,
    /// Buffers from outside that it exchanges.
    pub swapped: Vec<Name>,
}

impl Part {
    /// The accesses of a block.
    pub(crate) fn of(program: &LoopProgram, block: &[Stmt]) -> Part {
        Part::beside(program, block, declared(block))
    }

    /// The accesses of a block to what is not `private`: what the block declares, and what is declared around it but
    /// is another one in each iteration that is asked about.
    pub(crate) fn beside(program: &LoopProgram, block: &[Stmt], private: HashSet<Name>) -> Part {
        let mut part = Part { private, ..Part::default() };
        part.walk(program, block, &mut Vec::new(), &mut Vec::new());
        let mut seen = HashSet::new();
        part.accesses.retain(|access| seen.insert(access.clone()));
        part
    }

    fn walk(&mut self, program: &LoopProgram, block: &[Stmt], loops: &mut Vec<(Name, Range)>, conds: &mut Vec<Cond>) {
        for stmt in block {
            match stmt {
                Stmt::For { index, range, body, .. } => {
                    loops.push((*index, range.clone()));
                    self.walk(program, body, loops, conds);
                    loops.pop();
                }
                Stmt::If { cond, then, otherwise } => {
                    conds.push(cond.clone());
                    self.walk(program, then, loops, conds);
                    conds.pop();
                    // Nothing is known of a condition whose opposite cannot be written.
                    conds.push(cond.not().unwrap_or(Cond::always()));
                    self.walk(program, otherwise, loops, conds);
                    conds.pop();
                }
                Stmt::Local { init: Some(value), .. } => self.reads(program, *value, loops, conds),
                Stmt::Assign { target, op, value } => {
                    self.reads(program, *value, loops, conds);
                    let kind = op.map_or(Kind::Write, Kind::Combine);
                    let indices: &[Ix] = match target {
                        Target::Local(_) => &[],
                        Target::Element(_, indices) => indices,
                    };
                    self.add(target.name(), indices, kind, loops, conds);
                }
                Stmt::Swap(a, b) => self.swapped.extend([*a, *b].iter().filter(|name| !self.private.contains(name))),
                Stmt::Nest(_) | Stmt::Alloc(..) | Stmt::Free(_) | Stmt::Local { init: None, .. } => {}
            }
        }
    }

    fn reads(&mut self, program: &LoopProgram, value: TermId, loops: &[(Name, Range)], conds: &[Cond]) {
        for id in program.terms.parts_first(value) {
            if let Term::Ref(..) | Term::Select(..) = program.terms.get(id)
                && let Some((name, _, indices)) = as_element(&program.terms, id)
            {
                self.add(name, indices, Kind::Read, loops, conds);
            }
        }
    }

    fn add(&mut self, name: Name, indices: &[Ix], kind: Kind, loops: &[(Name, Range)], conds: &[Cond]) {
        if self.private.contains(&name) {
            return;
        }
        self.accesses.push(Access {
            name,
            indices: indices.into(),
            kind,
            loops: loops.to_vec(),
            conds: conds.to_vec(),
        });
    }

    /// Whether it touches nothing from outside.
    pub(crate) fn is_empty(&self) -> bool {
        self.accesses.is_empty() && self.swapped.is_empty()
    }

    /// The same part with combinations as writes: at the same time, two of them are a race.
    pub(crate) fn strict(mut self) -> Part {
        for access in self.accesses.iter_mut().filter(|access| access.kind != Kind::Read) {
            access.kind = Kind::Write;
        }
        self
    }

    /// The accesses of those names that a condition holds for.
    pub(crate) fn only(mut self, wanted: impl Fn(Name) -> bool) -> Part {
        self.accesses.retain(|access| wanted(access.name));
        self.swapped.retain(|name| wanted(*name));
        self
    }

    /// Whether it writes a buffer or local from outside.
    pub(crate) fn writes(&self, name: Name) -> bool {
        self.swapped.contains(&name) || self.accesses.iter().any(|a| a.name == name && a.kind != Kind::Read)
    }

    /// The accesses that read a buffer or local from outside, also by combining.
    pub(crate) fn reads_of(&self, name: Name) -> impl Iterator<Item = &Access> {
        self.accesses.iter().filter(move |access| access.name == name && access.kind != Kind::Write)
    }
}

/// The copy of an index for the first access.
pub(crate) fn first(name: Name) -> Name {
    Name::new(&format!("{name}'"))
}

/// The copy of an index for the second access.
pub(crate) fn second(name: Name) -> Name {
    Name::new(&format!("{name}''"))
}

/// Whether no access of one part conflicts with an access of another, in iterations of the loops around both for which
/// `when` holds: a condition on the [`first`] copies of these loops' indices, for the first part, and on the [`second`]
/// ones. `facts` hold around the loops.
pub(crate) fn apart(facts: &Facts, loops: &[(Name, Range)], one: &Part, two: &Part, when: &Cond) -> Status {
    match try_apart(facts, loops, one, two, when) {
        Ok(status) => status,
        Err(_) => Status::Open,
    }
}

/// Whether the iterations of a loop whose body is this part can run at the same time.
pub(crate) fn independent(facts: &Facts, index: Name, range: &Range, body: Part) -> Status {
    let body = body.strict();
    match Cond::lt(&Ix::var(first(index)), &Ix::var(second(index))) {
        Ok(earlier) => apart(facts, &[(index, range.clone())], &body, &body, &earlier),
        Err(_) => Status::Open,
    }
}

fn try_apart(facts: &Facts, loops: &[(Name, Range)], one: &Part, two: &Part, when: &Cond) -> Result<Status, IxError> {
    for (part, other) in [(one, two), (two, one)] {
        if let Some(name) = part
            .swapped
            .iter()
            .find(|name| other.accesses.iter().any(|a| a.name == **name) || other.swapped.contains(name))
        {
            return Ok(Status::Fails(format!("`{name}` is exchanged with another buffer")));
        }
    }
    let mut proofs = Vec::new();
    let (mut pairs, mut asked, mut open) = (0, 0, false);
    let fixed = fixed_dimensions([one, two]);
    let mut candidates: HashMap<Bucket, Vec<(&Access, Vec<Ix>)>> = HashMap::new();
    for b in &two.accesses {
        candidates.entry(b.bucket(&fixed)).or_default().push((b, copied(loops, two, second, b)?));
    }
    let mut questions = Questions { facts, loops, parts: [one, two], when: when.not()?, known: HashMap::new() };
    for a in &one.accesses {
        let Some(others) = candidates.get(&a.bucket(&fixed)) else { continue };
        let at = copied(loops, one, first, a)?;
        for (b, other) in others.iter().filter(|(b, _)| conflict(a.kind, b.kind)) {
            pairs += 1;
            if pairs > MAX_PAIRS || asked > MAX_QUESTIONS {
                return Ok(Status::Open);
            }
            let Some((facts, goal)) = questions.put((a, &at), (b, other))? else { continue };
            asked += 1;
            match Proof::find(facts, goal) {
                Ok(proof) => proofs.push(proof),
                Err(Decision::Refuted(found)) => return Ok(Status::Fails(told(a, b, loops, &found))),
                Err(_) => open = true,
            }
        }
    }
    Ok(if open { Status::Open } else { Status::Proved(proofs) })
}

/// The dimensions of each buffer in which every index is a number: elements whose numbers differ are different, as those of
/// the copies of a statement that was unrolled.
fn fixed_dimensions(parts: [&Part; 2]) -> HashMap<Name, Vec<bool>> {
    let mut fixed: HashMap<Name, Vec<bool>> = HashMap::new();
    for access in parts.iter().flat_map(|part| &part.accesses) {
        let dimensions = fixed.entry(access.name).or_insert_with(|| vec![true; access.indices.len()]);
        for (fixed, ix) in dimensions.iter_mut().zip(&access.indices) {
            *fixed &= ix.as_constant().is_some();
        }
    }
    fixed
}

fn conflict(a: Kind, b: Kind) -> bool {
    match (a, b) {
        (Kind::Read, Kind::Read) => false,
        (Kind::Combine(one), Kind::Combine(two)) => one != two,
        _ => true,
    }
}

/// The names of one side: the indices of loops around both parts, and what the part declares.
fn renamed(loops: &[(Name, Range)], part: &Part, copy: fn(Name) -> Name) -> impl Fn(Name) -> Option<Ix> {
    move |name| {
        let own = loops.iter().any(|(index, _)| *index == name) || part.private.contains(&name);
        own.then(|| Ix::var(copy(name)))
    }
}

/// The indices of an access, in the names of its side.
fn copied(loops: &[(Name, Range)], part: &Part, copy: fn(Name) -> Name, access: &Access) -> Result<Vec<Ix>, IxError> {
    access.indices.iter().map(|ix| ix.substitute(&renamed(loops, part, copy))).collect()
}

/// What stands around an access inside of its part: loops and conditions.
type Around<'a> = (&'a [(Name, Range)], &'a [Cond]);

/// The questions whether two accesses are of different elements. Copies of a statement ask the same again and again:
/// what decides is how far apart their elements are.
struct Questions<'a> {
    facts: &'a Facts,
    loops: &'a [(Name, Range)],
    parts: [&'a Part; 2],
    /// That the order of the two accesses does not change.
    when: Cond,
    /// What holds around two accesses, and what was asked there.
    known: HashMap<[Around<'a>; 2], (Facts, HashSet<Cond>)>,
}

impl<'a> Questions<'a> {
    /// What is to be shown of two accesses, with their indices, and what is known; nothing if that was asked before.
    fn put(&mut self, a: (&'a Access, &[Ix]), b: (&'a Access, &[Ix])) -> Result<Option<(&Facts, Cond)>, IxError> {
        // As part of the goal, so that a counterexample tells the iterations.
        let mut goal = self.when.clone();
        for (a, b) in a.1.iter().zip(b.1) {
            goal = goal.or(Cond::eq(a, b)?.not()?);
        }
        let around = [a.0, b.0].map(|access| (access.loops.as_slice(), access.conds.as_slice()));
        let (facts, asked) = match self.known.entry(around) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let mut facts = self.facts.clone();
                let copies: [fn(Name) -> Name; 2] = [first, second];
                for ((part, copy), (loops, conds)) in self.parts.into_iter().zip(copies).zip(around) {
                    let rename = renamed(self.loops, part, copy);
                    for (name, range) in self.loops.iter().chain(loops) {
                        let range = Range { lo: range.lo.substitute(&rename)?, hi: range.hi.substitute(&rename)? };
                        facts.assume(within(copy(*name), &range)?);
                    }
                    for cond in conds {
                        facts.assume(cond.substitute(&rename)?);
                    }
                }
                new.insert((facts, HashSet::new()))
            }
        };
        Ok(asked.insert(goal.clone()).then_some((facts, goal)))
    }
}

/// Two accesses that conflict, in two iterations.
fn told(a: &Access, b: &Access, loops: &[(Name, Range)], found: &Counterexample) -> String {
    let does = |kind| match kind {
        Kind::Read => "reads",
        Kind::Write => "writes",
        Kind::Combine(_) => "adds to",
    };
    let at = |copy: fn(Name) -> Name, access: &Access| {
        let value = |name: &Name| found.0.get(&copy(*name)).map(|value| format!("{name} = {value}"));
        let values: Vec<String> = loops.iter().chain(&access.loops).filter_map(|(name, _)| value(name)).collect();
        if values.is_empty() { "one iteration".into() } else { format!("the iteration {}", values.join(", ")) }
    };
    let sizes: Vec<String> = found
        .0
        .iter()
        .filter(|(name, _)| !name.as_str().ends_with('\''))
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    let with = if sizes.is_empty() { String::new() } else { format!(", with {}", sizes.join(", ")) };
    format!(
        "{} {} {}, {} {} {}{with}",
        at(first, a),
        does(a.kind),
        a.text(),
        at(second, b).replace("the iteration", "and the iteration"),
        does(b.kind),
        b.text()
    )
}
