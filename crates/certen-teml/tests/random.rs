//! Random statements in random orders: the loops of the statements in their order compute the meaning, and loops that are
//! said to be equal by construction are equal.

use certen_core::domain::splitmix;
use certen_core::{Binary, ElemType, Literal, ReduceOp};
use certen_index::Ix;
use certen_loops::verify;
use certen_syntax::{Name, Span};
use certen_teml::nests::Paths;
use certen_teml::to_core::meaning;
use certen_teml::{Assignment, Begin, Entry, Node, Route, Statements, Tensor, ValueId, Values};
use certen_validate::{LoopComparison, Outcome, validate};

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(1);
        (splitmix(self.0) % bound as u64) as usize
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

const TENSORS: [(&str, usize, bool); 6] =
    [("a", 2, false), ("b", 2, false), ("c", 2, false), ("x", 1, false), ("y", 1, false), ("z", 1, true)];

fn size(long: bool) -> Ix {
    if long { Ix::var("n").add(&Ix::from(1)).unwrap() } else { Ix::var("n") }
}

/// An element of a tensor at some of these iterators; the long tensor may be read one further.
fn element(random: &mut Random, values: &mut Values, iterators: &[Name]) -> ValueId {
    let (name, rank, long) = *random.pick(&TENSORS);
    let index = |random: &mut Random| {
        let shift = if long { random.below(2) as i64 } else { 0 };
        Ix::var(*random.pick(iterators)).add(&Ix::from(shift)).unwrap()
    };
    let indices = (0..rank).map(|_| index(random)).collect();
    values.add(Node::Element(Name::new(name), indices))
}

fn value(random: &mut Random, values: &mut Values, iterators: &[Name], depth: usize, sums: &mut usize) -> ValueId {
    match random.below(6) {
        0 if depth > 0 && *sums < 2 => {
            *sums += 1;
            let k = Name::new(&format!("k{sums}"));
            let more: Vec<Name> = iterators.iter().copied().chain([k]).collect();
            let body = value(random, values, &more, depth - 1, sums);
            values.add(Node::Sum(vec![(k, Ix::var("n"))], body))
        }
        1..=3 if depth > 0 => {
            let a = value(random, values, iterators, depth - 1, sums);
            let b = value(random, values, iterators, depth - 1, sums);
            values.add(Node::Op(*random.pick(&[Binary::Add, Binary::Sub, Binary::Mul]), a, b))
        }
        _ => element(random, values, iterators),
    }
}

fn assignment(random: &mut Random, values: &mut Values, at: usize) -> Assignment {
    let (target, rank, long) = *random.pick(&TENSORS);
    let (target, id, span) = (Name::new(target), Name::new(&format!("s{at}")), Span::default());
    let names: Vec<Name> = ["i", "j", "l"].map(Name::new).to_vec();
    let n = || Ix::var("n");
    let mut out: Vec<Ix> = names[..rank].iter().map(|name| Ix::var(*name)).collect();
    let init = random.below(8) == 0;
    let mut iterators: Vec<(Name, Ix)> = names[..rank].iter().map(|name| (*name, n())).collect();
    if init {
        iterators.iter_mut().for_each(|(_, extent)| *extent = size(long));
        let value = values.add(Node::Number(Literal::Float(random.below(3) as f64)));
        return Assignment { id, target, out, iterators, begin: Begin::Write, value, init, span };
    }
    match random.below(6) {
        0 if rank == 2 => out.swap(0, 1),
        0 => out[0] = n().sub(&Ix::from(1)).unwrap().sub(&out[0]).unwrap(),
        1 if long => out[0] = out[0].add(&Ix::from(1)).unwrap(),
        2 if long => iterators[0].1 = size(true),
        _ => {}
    }
    // Another element of the long tensor would be one too far.
    if iterators[0].1 != n() {
        let value = values.add(Node::Number(Literal::Float(2.0)));
        return Assignment { id, target, out, iterators, begin: Begin::Write, value, init, span };
    }
    let begin = match random.below(5) {
        0 => Begin::Contract,
        1 => Begin::Accumulate { op: ReduceOp::Sum, negated: false },
        2 => Begin::Accumulate { op: ReduceOp::Sum, negated: true },
        3 if random.below(3) == 0 => Begin::Accumulate { op: ReduceOp::Prod, negated: false },
        _ => Begin::Write,
    };
    if begin != Begin::Write && random.below(2) == 0 {
        iterators.push((names[2], n()));
    }
    let used: Vec<Name> = iterators.iter().map(|(name, _)| *name).collect();
    let value = value(random, values, &used, 3, &mut 0);
    Assignment { id, target, out, iterators, begin, value, init, span }
}

/// Statements, with sums of their own in each.
fn program(random: &mut Random) -> Statements {
    let tensor = |(name, rank, long): (&str, usize, bool)| Tensor {
        name: Name::new(name),
        elem: ElemType::F64,
        shape: vec![size(long); rank],
        span: Span::default(),
    };
    let mut values = Values::new();
    let count = 1 + random.below(6);
    let assignments = (0..count).map(|at| assignment(random, &mut values, at)).collect();
    let tensors = TENSORS.into_iter().map(tensor).collect();
    Statements { name: Name::new("p"), sizes: vec![Name::new("n")], tensors, assignments, values }
}

#[test]
fn loops_that_are_said_to_be_equal_are() {
    let rounds: u64 = std::env::var("CERTEN_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(600);
    let (mut meanings, mut equal, mut other, mut refused) = (0, 0, 0, 0);
    for round in 0..rounds {
        let mut random = Random(round << 32);
        let statements = program(&mut random);
        let Ok(meant) = meaning(&statements) else { continue };
        meanings += 1;
        let mut paths = Paths::new(&statements, &meant).unwrap();
        let mut order: Vec<usize> =
            (0..statements.assignments.len()).filter(|at| !statements.assignments[*at].init).collect();
        for shuffled in [false, true] {
            if shuffled {
                for at in (1..order.len()).rev() {
                    order.swap(at, random.below(at + 1));
                }
                order.truncate(order.len() - usize::from(!order.is_empty() && random.below(3) == 0));
            }
            let entries = order.iter().map(|at| Entry { assignments: vec![*at], steps: Vec::new() }).collect();
            let route = Route { name: Name::new("l"), span: Span::default(), entries };
            let found = match paths.path(route) {
                Ok(found) => found,
                Err(_) => {
                    refused += 1;
                    break;
                }
            };
            assert!(shuffled || found.in_order, "round {round}: {}\n{}", meant.core, found.loops);
            let errors = verify(&found.loops);
            assert!(errors.is_empty(), "round {round}: {errors:?}\n{}", found.loops);
            let trial = LoopComparison { lowered: found.lowered.as_deref(), ..LoopComparison::default() };
            match validate(&meant.core, &found.loops, &trial) {
                Outcome::Differs(difference) if found.in_order => {
                    panic!("round {round}: {difference}\n{}\n{}", meant.core, found.loops)
                }
                _ if found.in_order => equal += 1,
                _ => other += 1,
            }
        }
    }
    let counts = format!("{meanings} meanings, {equal} equal by construction, {other} other orders, {refused} refused");
    assert!(meanings > rounds / 3 && equal > rounds / 3 && other > 0, "{counts}");
}
