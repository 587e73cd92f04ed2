//! Races: what has to be shown for the iterations of a loop to be independent of each other.
//!
//! What is declared in the loop is an iteration's own. Where a local from outside is assigned, or a buffer from outside
//! exchanged, there is at most one iteration; but the lanes of a vector may combine integers or truth values into a local
//! that they do not read, always by the same operation, because that gives the same bits in any order. Of a buffer from
//! outside that is written, two different iterations use different elements: of every two accesses, one of them a write.
//! The names that are an iteration's own are taken twice, `i'` and `i''`, with the ranges and conditions around each
//! access, and the goal for `i' < i''` is that the indices differ in some dimension. Two accesses that are not the same are compared both ways.
//!
//! Where all accesses of a buffer have the same index in some dimension, which is a multiple of the loop's index plus
//! something that belongs to no iteration, there is one obligation instead, for that dimension.
//! Elements differ if one index does, because every access is in bounds.

use std::collections::HashSet;

use certen_core::{Range, ReduceOp, Term, TermId, Terms};
use certen_index::{Cond, Ix, IxError};
use certen_loops::{Mode, Stmt, Target, as_element};
use certen_syntax::Name;

/// Different accesses of one buffer that are compared with each other; where there are more, there is at most one
/// iteration.
pub(crate) const MAX_ACCESSES: usize = 64;

/// What has to be shown of a loop: a sentence, what is known beyond what holds around the loop, and the goal.
pub(crate) struct Needed {
    pub what: String,
    pub facts: Vec<Cond>,
    pub goal: Cond,
}

/// What holds of the index of a loop.
pub(crate) fn within(index: &Ix, range: &Range) -> Result<[Cond; 2], IxError> {
    Ok([Cond::le(&range.lo, index)?, Cond::lt(index, &range.hi)?])
}

/// What has to be shown of a loop that is not serial.
pub(crate) fn needed(
    terms: &Terms,
    (index, range, mode): (Name, &Range, Mode),
    body: &[Stmt],
) -> Result<Vec<Needed>, IxError> {
    let body = Body::of(terms, index, body)?;
    let word = mode.word();
    let at_most_one = |why: String| -> Result<Needed, IxError> {
        let goal = Cond::le(&range.hi, &range.lo.add(&Ix::from(1))?)?;
        let what = format!("there is at most one of the {word}iterations over {index}, which {why}");
        Ok(Needed { what, facts: Vec::new(), goal })
    };
    let written = match body.written(mode) {
        Ok(written) => written,
        Err(why) => return Ok(vec![at_most_one(why)?]),
    };
    let pairs = Pairs { index, range, body: &body };
    let mut found = Vec::new();
    for (name, accesses) in written.iter().zip(body.accesses(&written)) {
        if let Some(ix) = pairs.same_index(&accesses) {
            let (facts, goal) = pairs.one(ix)?;
            let what = format!("{word}iterations over {index} use different elements of {name}: {ix} differs");
            found.push(Needed { what, facts, goal });
        } else if accesses.len() > MAX_ACCESSES {
            found.push(at_most_one(format!("use {name} in more than {MAX_ACCESSES} ways"))?);
            break;
        } else {
            pairs.all(*name, word, &accesses, &mut found)?;
        }
    }
    Ok(found)
}

/// How a block inside the loop is entered.
enum Entry<'a> {
    Loop(Name, &'a Range),
    Holds(Cond),
}

#[derive(PartialEq, Eq, Hash, Clone, Copy)]
struct Access<'a> {
    indices: &'a [Ix],
    block: usize,
    write: bool,
}

/// The body of the loop.
struct Body<'a> {
    terms: &'a Terms,
    /// Its blocks: the one around each, and how it is entered. The body itself comes first and is entered in no way.
    blocks: Vec<(usize, Option<Entry<'a>>, &'a [Stmt])>,
    /// The names that are declared in it, with the loop's index.
    own: HashSet<Name>,
}

impl<'a> Body<'a> {
    fn of(terms: &'a Terms, index: Name, body: &'a [Stmt]) -> Result<Body<'a>, IxError> {
        let mut found = Body { terms, blocks: vec![(0, None, body)], own: HashSet::from([index]) };
        let mut at = 0;
        while let Some(&(_, _, block)) = found.blocks.get(at) {
            for stmt in block {
                match stmt {
                    Stmt::For { index, range, body, .. } => {
                        found.own.insert(*index);
                        found.blocks.push((at, Some(Entry::Loop(*index, range)), body));
                    }
                    Stmt::If { cond, then, otherwise } => {
                        found.blocks.push((at, Some(Entry::Holds(cond.clone())), then));
                        found.blocks.push((at, Some(Entry::Holds(cond.not()?)), otherwise));
                    }
                    Stmt::Alloc(name, _) | Stmt::Local { name, .. } => {
                        found.own.insert(*name);
                    }
                    Stmt::Nest(_) | Stmt::Free(_) | Stmt::Swap(..) | Stmt::Assign { .. } => {}
                }
            }
            at += 1;
        }
        Ok(found)
    }

    /// All statements, with the block that each is in.
    fn lines(&self) -> impl Iterator<Item = (usize, &'a Stmt)> {
        self.blocks.iter().enumerate().flat_map(|(at, (.., block))| block.iter().map(move |stmt| (at, stmt)))
    }

    /// The buffers from outside that are written, in the order of the first writes; or why there is at most one iteration.
    fn written(&self, mode: Mode) -> Result<Vec<Name>, String> {
        let mut written = Vec::new();
        for (_, stmt) in self.lines() {
            match stmt {
                Stmt::Assign { target, .. } if self.own.contains(&target.name()) => {}
                Stmt::Assign { target: Target::Element(name, _), .. } => {
                    if !written.contains(name) {
                        written.push(*name);
                    }
                }
                Stmt::Assign { target: Target::Local(name), op, .. } => {
                    if mode != Mode::Vector || !op.is_some_and(|op| self.is_combined(*name, op)) {
                        return Err(format!("assign {name}, a local from outside"));
                    }
                }
                Stmt::Swap(a, b) => {
                    if !self.own.contains(a) || !self.own.contains(b) {
                        return Err(format!("exchange {a} and {b}"));
                    }
                }
                Stmt::Nest(_) | Stmt::Alloc(..) | Stmt::Free(_) => {}
                Stmt::For { .. } | Stmt::If { .. } | Stmt::Local { .. } => {}
            }
        }
        Ok(written)
    }

    /// The value that a statement computes.
    fn value(stmt: &Stmt) -> Option<TermId> {
        match stmt {
            Stmt::Assign { value, .. } => Some(*value),
            Stmt::Local { init, .. } => *init,
            Stmt::Nest(_) | Stmt::Alloc(..) | Stmt::Free(_) | Stmt::Swap(..) => None,
            Stmt::For { .. } | Stmt::If { .. } => None,
        }
    }

    /// Whether a local is only combined with integers or truth values, by one operation, and not read.
    fn is_combined(&self, name: Name, by: ReduceOp) -> bool {
        let is_read = |id: &TermId| matches!(self.terms.get(*id), Term::Ref(read, _) if *read == name);
        self.lines().all(|(_, stmt)| {
            let is_other = matches!(stmt, Stmt::Assign { target: Target::Local(target), op, value }
                if *target == name && (*op != Some(by) || self.terms.ty(*value).elem.is_float()));
            !is_other && !Body::value(stmt).is_some_and(|value| self.terms.parts_first(value).iter().any(is_read))
        })
    }

    /// The accesses of each of these buffers, none twice.
    fn accesses(&self, written: &[Name]) -> Vec<Vec<Access<'a>>> {
        let mut accesses: Vec<Vec<Access>> = written.iter().map(|_| Vec::new()).collect();
        let mut seen = HashSet::new();
        let mut add = |name: Name, access: Access<'a>| {
            if let Some(at) = written.iter().position(|written| *written == name)
                && seen.insert((name, access))
            {
                accesses[at].push(access);
            }
        };
        for (block, stmt) in self.lines() {
            for id in Body::value(stmt).into_iter().flat_map(|value| self.terms.parts_first(value)) {
                if let Some((name, _, indices)) = as_element(self.terms, id) {
                    add(name, Access { indices, block, write: false });
                }
            }
            if let Stmt::Assign { target: Target::Element(name, indices), .. } = stmt {
                add(*name, Access { indices, block, write: true });
            }
        }
        accesses
    }
}

/// Two iterations of a loop.
struct Pairs<'a> {
    index: Name,
    range: &'a Range,
    body: &'a Body<'a>,
}

/// A name of one of the two iterations.
fn copy(name: Name, sign: &str) -> Ix {
    Ix::var(Name::new(&format!("{name}{sign}")))
}

const SIGNS: [&str; 2] = ["'", "''"];

impl Pairs<'_> {
    /// The first index that all accesses have in the same dimension and that is another one in each iteration.
    fn same_index<'b>(&self, accesses: &[Access<'b>]) -> Option<&'b Ix> {
        let first = accesses.first()?;
        let found = first.indices.iter().enumerate().find(|(dimension, ix)| {
            let moves = ix.linear_in(self.index).is_some_and(|(factor, rest)| {
                let mut names = Default::default();
                rest.collect_names(&mut names);
                factor != 0 && !names.iter().any(|name| self.body.own.contains(name))
            });
            moves && accesses.iter().all(|access| access.indices.get(*dimension) == Some(*ix))
        });
        found.map(|(_, ix)| ix)
    }

    /// That every two accesses of a buffer, one of them a write, are of different elements.
    fn all(&self, name: Name, word: &str, accesses: &[Access], found: &mut Vec<Needed>) -> Result<(), IxError> {
        let element = |access: &Access| Target::Element(name, access.indices.into());
        for (at, write) in accesses.iter().enumerate().filter(|(_, access)| access.write) {
            // Of two writes, each stands first once.
            let others = accesses.iter().enumerate().filter(|(other, access)| !access.write || *other >= at);
            for (_, other) in others {
                let same = (write.indices, write.block) == (other.indices, other.block);
                for forwards in [true, false].into_iter().filter(|forwards| *forwards || !same) {
                    let (facts, goal) = self.two(write, other, forwards)?;
                    let what = format!(
                        "of {word}iterations over {}, one writes another element {} than {} one {} as {}",
                        self.index,
                        element(write),
                        if forwards { "a later" } else { "an earlier" },
                        if other.write { "writes" } else { "reads" },
                        element(other),
                    );
                    found.push(Needed { what, facts, goal });
                }
            }
        }
        Ok(())
    }

    /// That one index differs.
    fn one(&self, ix: &Ix) -> Result<(Vec<Cond>, Cond), IxError> {
        let mut facts = Vec::new();
        for sign in SIGNS {
            facts.extend(self.within(self.index, self.range, sign)?);
        }
        let goal = self.differ(std::slice::from_ref(ix), std::slice::from_ref(ix))?;
        Ok((facts, self.ordered(true)?.or(goal)))
    }

    /// That two accesses are of different elements.
    fn two(&self, one: &Access, two: &Access, forwards: bool) -> Result<(Vec<Cond>, Cond), IxError> {
        let mut facts = Vec::new();
        for (access, sign) in [one, two].into_iter().zip(SIGNS) {
            facts.extend(self.within(self.index, self.range, sign)?);
            let mut at = access.block;
            while let Some((outer, Some(around), _)) = self.body.blocks.get(at) {
                match around {
                    Entry::Loop(index, range) => facts.extend(self.within(*index, range, sign)?),
                    Entry::Holds(cond) => facts.push(cond.substitute(&self.renamed(sign))?),
                }
                at = *outer;
            }
        }
        Ok((facts, self.ordered(forwards)?.or(self.differ(one.indices, two.indices)?)))
    }

    fn renamed(&self, sign: &str) -> impl Fn(Name) -> Option<Ix> {
        move |name| self.body.own.contains(&name).then(|| copy(name, sign))
    }

    fn within(&self, index: Name, range: &Range, sign: &str) -> Result<[Cond; 2], IxError> {
        let (lo, hi) = (range.lo.substitute(&self.renamed(sign))?, range.hi.substitute(&self.renamed(sign))?);
        within(&copy(index, sign), &Range { lo, hi })
    }

    /// That the first iteration does not come before the second, or not after it.
    fn ordered(&self, forwards: bool) -> Result<Cond, IxError> {
        let [one, two] = SIGNS.map(|sign| copy(self.index, sign));
        if forwards { Cond::le(&two, &one) } else { Cond::le(&one, &two) }
    }

    /// That the indices are not all the same.
    fn differ(&self, one: &[Ix], two: &[Ix]) -> Result<Cond, IxError> {
        one.iter().zip(two).try_fold(Cond::never(), |any, (a, b)| {
            let (a, b) = (a.substitute(&self.renamed(SIGNS[0]))?, b.substitute(&self.renamed(SIGNS[1]))?);
            Ok(any.or(Cond::eq(&a, &b)?.not()?))
        })
    }
}
