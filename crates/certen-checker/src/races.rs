//! Races: what has to be shown for the iterations of a loop to be independent of each other.
//!
//! What is declared in the loop is an iteration's own. Where a local from outside is assigned, or a buffer from outside
//! exchanged, there is at most one iteration; but the lanes of a vector may combine integers or truth values into a local
//! that they do not read, always by the same operation, because that gives the same bits in any order. Of a buffer from outside that is written, two different iterations use
//! different elements: of every two accesses, one of them a write. The names that are an iteration's own are taken
//! twice, `i'` and `i''`, with the ranges and conditions around each access, and the goal for `i' < i''` is that the
//! indices differ in some dimension. Two accesses that are not the same are compared both ways.
//!
//! Where all accesses of a buffer have the same index in some dimension, which is a multiple of the loop's index plus
//! something that belongs to no iteration, there is one obligation instead, for that dimension.
//! Elements differ if one index does, because every access is in bounds.

use std::collections::HashSet;

use certen_core::{Range, ReduceOp, Term, TermId};
use certen_index::{Cond, Ix, IxError};
use certen_loops::{Mode, Stmt, Target, as_element};
use certen_syntax::Name;

use crate::obligations::{Kind, Walk, Walked, joined, text, within};

/// Different accesses of one buffer that are compared with each other; where there are more, there is at most one
/// iteration.
pub(crate) const MAX_ACCESSES: usize = 64;

/// How a block inside of the loop is entered.
enum Around<'a> {
    Loop(Name, &'a Range),
    Holds(Cond),
}

/// A block: the one around it, and how it is entered. The loop's own body comes first and is entered in no way.
type Blocks<'a> = Vec<(usize, Option<Around<'a>>, &'a [Stmt])>;

#[derive(PartialEq, Eq, Hash, Clone, Copy)]
struct Access<'a> {
    indices: &'a [Ix],
    block: usize,
    write: bool,
}

/// Adds what has to be shown of a loop that is not serial.
pub(crate) fn oblige<'a>(
    walk: &mut Walk<'a>,
    (index, range, mode): (Name, &'a Range, Mode),
    body: &'a [Stmt],
) -> Walked<()> {
    let (blocks, own) = blocks(index, body)?;
    let lines = || blocks.iter().enumerate().flat_map(|(at, (.., block))| block.iter().map(move |stmt| (at, stmt)));
    let word = mode.word();
    let at_most_one = |walk: &mut Walk<'a>, why: String| {
        let goal = range.lo.add(&Ix::from(1)).and_then(|next| Cond::le(&range.hi, &next)).map_err(text)?;
        let what = format!("there is at most one of the {word}iterations over {index}, which {why}");
        walk.oblige(Kind::Races, what, walk.facts(), goal)
    };
    // The buffers that are written, in the order of the first writes.
    let mut written = Vec::new();
    let terms = &walk.nest.terms;
    let reads = |name: Name, root: TermId| {
        terms.parts_first(root).iter().any(|id| matches!(terms.get(*id), Term::Ref(read, _) if *read == name))
    };
    let is_combined = |name: Name, by: Option<ReduceOp>| {
        mode == Mode::Vector
            && by.is_some()
            && lines().all(|(_, stmt)| match stmt {
                Stmt::Assign { target, op, value } => {
                    let same = *target != Target::Local(name) || (*op == by && !terms.ty(*value).elem.is_float());
                    same && !reads(name, *value)
                }
                Stmt::Local { init: Some(value), .. } => !reads(name, *value),
                _ => true,
            })
    };
    for (_, stmt) in lines() {
        match stmt {
            Stmt::Assign { target: Target::Local(name), op, .. } if !own.contains(name) && is_combined(*name, *op) => {}
            Stmt::Assign { target: Target::Local(name), .. } if !own.contains(name) => {
                return at_most_one(walk, format!("assign {name}, a local from outside"));
            }
            Stmt::Swap(a, b) if !own.contains(a) || !own.contains(b) => {
                return at_most_one(walk, format!("exchange {a} and {b}"));
            }
            Stmt::Assign { target: Target::Element(name, _), .. } if !own.contains(name) && !written.contains(name) => {
                written.push(*name);
            }
            _ => {}
        }
    }
    let mut accesses: Vec<Vec<Access>> = written.iter().map(|_| Vec::new()).collect();
    let mut seen = HashSet::new();
    let mut add = |name: Name, access: Access<'a>| {
        if let Some(at) = written.iter().position(|written| *written == name)
            && seen.insert((name, access))
        {
            accesses[at].push(access);
        }
    };
    for (block, stmt) in lines() {
        if let Stmt::Assign { value, .. } | Stmt::Local { init: Some(value), .. } = stmt {
            for id in terms.parts_first(*value) {
                if let Term::Ref(..) | Term::Select(..) = terms.get(id)
                    && let Some((name, _, indices)) = as_element(terms, id)
                {
                    add(name, Access { indices, block, write: false });
                }
            }
        }
        if let Stmt::Assign { target: Target::Element(name, indices), .. } = stmt {
            add(*name, Access { indices, block, write: true });
        }
    }
    let pairs = Pairs { index, range, blocks: &blocks, own: &own };
    for (name, accesses) in written.iter().zip(&accesses) {
        let element = |access: &Access| Target::Element(*name, access.indices.into());
        if let Some(ix) = pairs.same_index(accesses) {
            let (facts, goal) = pairs.one(ix).map_err(text)?;
            let what = format!("{word}iterations over {index} use different elements of {name}: {ix} differs");
            walk.oblige(Kind::Races, what, joined(&walk.facts(), facts), goal)?;
            continue;
        }
        if accesses.len() > MAX_ACCESSES {
            return at_most_one(walk, format!("use {name} in more than {MAX_ACCESSES} ways"));
        }
        for (at, write) in accesses.iter().enumerate().filter(|(_, access)| access.write) {
            // Of two writes, each stands first once.
            let others = accesses.iter().enumerate().filter(|(other, access)| !access.write || *other >= at);
            for (_, other) in others {
                for forwards in [true, false] {
                    let same = (write.indices, write.block) == (other.indices, other.block);
                    if same && !forwards {
                        continue;
                    }
                    let (facts, goal) = pairs.two(write, other, forwards).map_err(text)?;
                    let (does, order) = (if other.write { "writes" } else { "reads" }, ["later", "earlier"]);
                    let what = format!(
                        "of {word}iterations over {index}, one writes another element {} than a{} one {does} as {}",
                        element(write),
                        if forwards { format!(" {}", order[0]) } else { format!("n {}", order[1]) },
                        element(other),
                    );
                    walk.oblige(Kind::Races, what, joined(&walk.facts(), facts), goal)?;
                }
            }
        }
    }
    Ok(())
}

/// All blocks of the body, and the names that are declared in it, with the loop's index.
fn blocks(index: Name, body: &[Stmt]) -> Walked<(Blocks<'_>, HashSet<Name>)> {
    let (mut blocks, mut own): (Blocks, _) = (vec![(0, None, body)], HashSet::from([index]));
    let mut at = 0;
    while let Some((_, _, block)) = blocks.get(at) {
        for stmt in *block {
            match stmt {
                Stmt::For { index, range, body, .. } => {
                    own.insert(*index);
                    blocks.push((at, Some(Around::Loop(*index, range)), body));
                }
                Stmt::If { cond, then, otherwise } => {
                    blocks.push((at, Some(Around::Holds(cond.clone())), then));
                    blocks.push((at, Some(Around::Holds(cond.not().map_err(text)?)), otherwise));
                }
                Stmt::Alloc(name, _) | Stmt::Local { name, .. } => {
                    own.insert(*name);
                }
                _ => {}
            }
        }
        at += 1;
    }
    Ok((blocks, own))
}

/// Two iterations of a loop.
struct Pairs<'a> {
    index: Name,
    range: &'a Range,
    blocks: &'a Blocks<'a>,
    own: &'a HashSet<Name>,
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
                factor != 0 && !names.iter().any(|name| self.own.contains(name))
            });
            moves && accesses.iter().all(|access| access.indices.get(*dimension) == Some(*ix))
        });
        found.map(|(_, ix)| ix)
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
            while let Some((outer, Some(around), _)) = self.blocks.get(at) {
                match around {
                    Around::Loop(index, range) => facts.extend(self.within(*index, range, sign)?),
                    Around::Holds(cond) => facts.push(cond.substitute(&self.renamed(sign))?),
                }
                at = *outer;
            }
        }
        Ok((facts, self.ordered(forwards)?.or(self.differ(one.indices, two.indices)?)))
    }

    fn renamed(&self, sign: &str) -> impl Fn(Name) -> Option<Ix> {
        move |name| self.own.contains(&name).then(|| copy(name, sign))
    }

    fn within(&self, index: Name, range: &Range, sign: &str) -> Result<[Cond; 2], IxError> {
        let (lo, hi) = (range.lo.substitute(&self.renamed(sign))?, range.hi.substitute(&self.renamed(sign))?);
        within(&copy(index, sign), &Range { lo, hi })
    }

    /// That the first iteration does not come before the second, or not behind it.
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
