//! Questions from a seed.
//!
//! Random facts seldom have consequences, so most questions are made from what is known to be near the truth: a
//! situation from index arithmetic with its parameters chosen at random ([`situation`]), a sum of facts with a little
//! slack, an identity, or the exact least value that an expression has under bounded facts. Goals are then off by one as
//! often as not. Facts are chosen to hold at a hidden point, except for a few questions.

use super::question::{Goal, Question};
use super::rng::Rng;
use super::tree::{Expr, Formula, Op, int};

const NAMES: [&str; 4] = ["a", "b", "c", "n"];

/// The question of a seed.
pub fn question(seed: u64) -> Question {
    let rng = &mut Rng::new(seed);
    let mut question = match rng.below(100) {
        0..34 => situation(rng),
        34..52 => tight(rng),
        52..68 => combination(rng),
        68..80 => identity(rng),
        80..97 => random(rng),
        _ => product(rng),
    };
    if rng.percent(15) {
        let strange = Expr::Name(question.names.len() - 1).le(int(rng.between(20, 90)));
        question.facts.push(strange);
    }
    rng.shuffle(&mut question.facts);
    if let Goal::Holds(Formula::Compare(Op::Eq, a, b)) = &question.goal
        && rng.percent(50)
    {
        question.goal = Goal::Equal(a.clone(), b.clone());
    }
    if rng.percent(4) {
        question.goal = Goal::Satisfiable;
    }
    question
}

/// The question of a seed with a name replaced by a product of two names in some of its conditions, or in all. Whether
/// such a question has an answer at all is not for a prover to promise: only that its answer is right.
pub fn with_products(seed: u64) -> Question {
    let Question { names, mut facts, goal } = question(seed);
    let rng = &mut Rng::new(!seed);
    let replaced = rng.below(names.len());
    let by = Expr::Name(rng.below(names.len())) * Expr::Name(rng.below(names.len()));
    let share = *rng.pick(&[50, 100]);
    for fact in &mut facts {
        if rng.percent(share) {
            *fact = fact.replaced(replaced, &by);
        }
    }
    let goal = match goal {
        Goal::Holds(goal) => Goal::Holds(goal.replaced(replaced, &by)),
        Goal::Equal(a, b) => Goal::Equal(a.replaced(replaced, &by), b.replaced(replaced, &by)),
        Goal::Satisfiable => Goal::Satisfiable,
    };
    Question { names, facts, goal }
}

fn named(count: usize) -> Vec<String> {
    NAMES[NAMES.len() - count..].iter().map(|name| (*name).into()).collect()
}

fn divisor(rng: &mut Rng) -> i64 {
    if rng.percent(8) { *rng.pick(&[16, 64]) } else { rng.between(1, 9) }
}

fn constant(rng: &mut Rng) -> i64 {
    match rng.below(20) {
        0 => *rng.pick(&[63, 64, 100, 1000, -64, -1000]),
        _ => rng.between(-6, 6),
    }
}

/// Any expression of the linear fragment.
fn expression(rng: &mut Rng, names: usize, depth: usize) -> Expr {
    if depth == 0 || rng.percent(20) {
        return if rng.percent(75) { Expr::Name(rng.below(names)) } else { int(constant(rng)) };
    }
    let a = expression(rng, names, depth - 1);
    match rng.below(14) {
        0..3 => a + expression(rng, names, depth - 1),
        3..6 => a - expression(rng, names, depth - 1),
        6..8 => int(constant(rng)) * a,
        8 => a.floor_div(divisor(rng)),
        9 => a.ceil_div(divisor(rng)),
        10 | 11 => a.modulo(divisor(rng)),
        12 => a.min(expression(rng, names, depth - 1)),
        _ => a.max(expression(rng, names, depth - 1)),
    }
}

fn comparison(rng: &mut Rng, names: usize, depth: usize) -> Formula {
    let op = *rng.pick(&[Op::Lt, Op::Le, Op::Le, Op::Ge, Op::Gt, Op::Eq, Op::Ne]);
    expression(rng, names, depth).is(op, expression(rng, names, depth))
}

fn formula(rng: &mut Rng, names: usize, depth: usize) -> Formula {
    match rng.below(10) {
        0 => Formula::And(vec![comparison(rng, names, depth), comparison(rng, names, depth)]),
        1 | 2 => Formula::Or(vec![comparison(rng, names, depth), comparison(rng, names, depth)]),
        3 => formula(rng, names, 1).not(),
        _ => comparison(rng, names, depth),
    }
}

/// A point at which facts are made to hold.
fn hidden_point(rng: &mut Rng, names: usize) -> Vec<i64> {
    (0..names).map(|_| if rng.percent(90) { rng.between(-4, 9) } else { rng.between(-70, 1100) }).collect()
}

/// Facts that mostly hold at a point.
fn facts(rng: &mut Rng, names: usize, most: usize) -> Vec<Formula> {
    let point = hidden_point(rng, names);
    let mut facts = Vec::new();
    for (at, value) in point.iter().enumerate() {
        match rng.below(10) {
            0..3 => facts.push(int(value - rng.between(0, 5)).le(Expr::Name(at))),
            3..6 => facts.push(Expr::Name(at).within(int(value - rng.between(0, 6)), int(value + rng.between(1, 7)))),
            _ => {}
        }
    }
    for _ in 0..rng.below(most + 1) {
        let fact = formula(rng, names, 2);
        let keep = rng.percent(10) || fact.eval(&point) == Some(true);
        facts.push(if keep { fact } else { fact.not() });
    }
    facts.truncate(5);
    facts
}

fn random(rng: &mut Rng) -> Question {
    let names = 2 + rng.below(3);
    let facts = facts(rng, names, 3);
    Question { names: named(names), facts, goal: Goal::Holds(formula(rng, names, 2)) }
}

/// A sum of facts `e >= 0` with positive factors is at least zero: a goal that follows from them, weakened or
/// strengthened a little, alone or as one of two cases.
fn combination(rng: &mut Rng) -> Question {
    let names = 2 + rng.below(3);
    let mut facts = facts(rng, names, 2);
    let mut sum = int(rng.between(-2, 3));
    for _ in 0..2 + rng.below(2) {
        let depth = 1 + rng.below(2);
        let e = expression(rng, names, depth);
        let factor = int(rng.between(1, 4));
        match rng.below(6) {
            // In either case the same.
            0 => {
                let other = expression(rng, names, 1);
                facts.push(Formula::Or(vec![e.clone().ge(int(0)), other.clone().ge(int(2)).not()]));
                facts.push(Formula::Or(vec![e.clone().ge(int(0)), other.ge(int(1))]));
            }
            1 => facts.push(e.clone().is(Op::Eq, int(rng.between(0, 3)))),
            _ => facts.push(e.clone().ge(int(0))),
        }
        sum = sum + factor * e;
    }
    facts.reverse();
    facts.truncate(5);
    let goal = match rng.below(8) {
        0 => Formula::Or(vec![sum.ge(int(0)), comparison(rng, names, 1)]),
        1 => {
            let k = divisor(rng);
            sum.floor_div(k).ge(int(0))
        }
        2 => Formula::And(vec![sum.ge(int(0)), comparison(rng, names, 1)]),
        _ => sum.ge(int(0)),
    };
    Question { names: named(names), facts, goal: Goal::Holds(goal) }
}

/// Facts that bound every name, and the exact least value of an expression, or a remainder that it never has.
fn tight(rng: &mut Rng) -> Question {
    let names = 2 + rng.below(2);
    let mut facts = Vec::new();
    let mut point = Vec::new();
    for at in 0..names {
        let low = rng.between(-12, 6);
        let end = rng.between(low + 1, 13);
        facts.push(Expr::Name(at).within(int(low), int(end)));
        point.push(rng.between(low, end - 1));
    }
    for _ in 0..rng.below(3) {
        let fact = formula(rng, names, 2);
        let keep = rng.percent(10) || fact.eval(&point) == Some(true);
        facts.push(if keep { fact } else { fact.not() });
    }
    let e = expression(rng, names, 3);
    let mut question = Question { names: named(names), facts, goal: Goal::Satisfiable };
    let k = divisor(rng).max(2);
    let (mut least, mut residues) = (None::<i64>, vec![false; k as usize]);
    question.find(12, &mut |values| {
        if let Some(value) = e.eval(values) {
            least = Some(least.map_or(value, |least| least.min(value)));
            residues[value.rem_euclid(k) as usize] = true;
        }
        false
    });
    let Some(least) = least else {
        // No point at all: everything follows, and the facts are unsatisfiable.
        question.goal = if rng.percent(50) { Goal::Satisfiable } else { Goal::Holds(comparison(rng, names, 2)) };
        return question;
    };
    let missing = residues.iter().position(|seen| !seen).filter(|_| rng.percent(50));
    let slack = *rng.pick(&[-1, 0, 0, 0, 1, 1]);
    question.goal = Goal::Holds(match (missing, rng.below(3)) {
        (Some(missing), _) => {
            let residue = (missing as i64 + i64::from(rng.percent(40))).rem_euclid(k);
            e.modulo(k).is(Op::Ne, int(residue))
        }
        (None, 0) => (e - int(least + slack)).floor_div(k).ge(int(0)),
        (None, 1) => int(0).le(e - int(least + slack)),
        (None, _) => int(least + slack).le(e),
    });
    question
}

/// Equalities of index arithmetic, right or nearly right, between expressions chosen at random.
fn identity(rng: &mut Rng) -> Question {
    let names = 2 + rng.below(2);
    let facts = facts(rng, names, 1);
    let depth = 1 + rng.below(2);
    let e = expression(rng, names, depth);
    let f = expression(rng, names, 1);
    let (k, l) = (divisor(rng), rng.between(1, 6));
    let off = int(if rng.percent(55) { 0 } else { rng.between(-1, 1) });
    let (left, right) = match rng.below(16) {
        0 => (e.clone().floor_div(k).floor_div(l), (e + off).floor_div(k * l)),
        1 => (e.clone().ceil_div(k).ceil_div(l), (e + off).ceil_div(k * l)),
        2 => (e.clone().modulo(k * l).modulo(k), (e + off).modulo(k)),
        3 => ((int(k) * e.clone() + f.clone()).floor_div(k), e + (f + off).floor_div(k)),
        4 => (e.clone().ceil_div(k), (e + int(k - 1) + off).floor_div(k)),
        5 => (int(k) * e.clone().floor_div(k) + e.clone().modulo(k), e + off),
        6 => (e.clone().modulo(k * l).floor_div(k), (e + off).floor_div(k).modulo(l)),
        7 => ((int(l) * e.clone()).floor_div(k * l), (e + off).floor_div(k)),
        8 => (e.clone().min(f.clone()) + e.clone().max(f.clone()), e + f + off),
        9 => (e.clone().max(f.clone()).floor_div(k), e.floor_div(k).max((f + off).floor_div(k))),
        10 => (e.clone().max(f.clone()) - f.clone(), (e - f + off).max(int(0))),
        11 => ((e.clone() + f.clone()).modulo(k), (e.modulo(k) + (f + off).modulo(k)).modulo(k)),
        12 => ((int(l) * e.clone()).modulo(k * l), int(l) * (e + off).modulo(k)),
        13 => ((int(-1) - e.clone()).floor_div(k), int(-1) - (e + off).floor_div(k)),
        14 => (int(k) * e.clone().ceil_div(k) - e.clone(), (off - e).modulo(k)),
        _ => (e.clone().min(f.clone()).max(e.clone()), e + off),
    };
    let op = *rng.pick(&[Op::Eq, Op::Eq, Op::Eq, Op::Le, Op::Ge]);
    Question { names: named(names), facts, goal: Goal::Holds(left.is(op, right)) }
}

/// The situations of tiling, tails, windows and layouts.
fn situation(rng: &mut Rng) -> Question {
    let [a, b, c, n] = [0, 1, 2, 3].map(Expr::Name);
    let k = divisor(rng);
    let off = *rng.pick(&[0, 0, 0, 1, -1, 2]);
    let slack = int(off);
    let positive = n.clone().ge(int(1));
    let (facts, goals): (Vec<Formula>, Vec<Formula>) = match rng.below(12) {
        // Tiles of k, with and without a guard.
        0 => {
            let place = int(k) * a.clone() + b.clone();
            let mut facts =
                vec![positive, a.clone().within(int(0), n.clone().ceil_div(k)), b.clone().within(int(0), int(k))];
            facts.extend(rng.percent(50).then(|| place.clone().lt(n.clone())));
            let goals = vec![
                place.clone().lt(n.clone() + slack.clone()),
                place.clone().lt(n.clone() + int(k - 1) + slack.clone()),
                place.clone().floor_div(k).eq(a.clone() + slack.clone()),
                place.modulo(k).eq(b + slack.clone()),
                (int(k) * a.clone()).lt(n.clone() - slack.clone()),
                a.le((n - slack).floor_div(k)),
            ];
            (facts, goals)
        }
        // What is left after whole tiles.
        1 => {
            let facts = vec![n.clone().ge(int(0)), a.clone().within(int(k) * n.clone().floor_div(k), n.clone())];
            let goals = vec![
                (n.clone() - a.clone()).le(int(k - 1) - slack.clone()),
                a.clone().floor_div(k).eq((n.clone() - slack.clone()).floor_div(k)),
                (a.clone().modulo(k) + slack.clone()).lt(n.clone().modulo(k)),
                n.modulo(k).ge(int(1) + slack),
            ];
            (facts, goals)
        }
        // Rows of k, flattened and back.
        2 => {
            let l = rng.between(1, 5);
            let facts = vec![
                b.clone().within(int(0), int(k)),
                a.clone().within(int(0), n.clone()),
                c.clone().eq(int(k) * a.clone() + b.clone()),
            ];
            let goals = vec![
                c.clone().floor_div(k).eq(a.clone() + slack.clone()),
                c.clone().modulo(k).eq(b.clone() + slack.clone()),
                c.clone().lt(int(k) * n - slack.clone()),
                c.clone().floor_div(k * l).eq((a.clone() + slack.clone()).floor_div(l)),
                c.modulo(k * l).eq(int(k) * (a + slack).modulo(l) + b),
            ];
            (facts, goals)
        }
        // Windows of w with stride s.
        3 => {
            let (s, w) = (rng.between(1, 5), rng.between(1, 6));
            let outputs = (n.clone() - int(w)).floor_div(s) + int(1);
            let facts = vec![n.clone().ge(int(w)), a.clone().within(int(0), outputs), b.clone().within(int(0), int(w))];
            let goals = vec![
                (int(s) * a.clone() + b.clone() + slack.clone()).lt(n.clone()),
                (int(s) * a.clone() + int(w)).le(n.clone() - slack.clone()),
                a.lt((n - int(w) + int(s)).floor_div(s) - slack),
            ];
            (facts, goals)
        }
        // Clamped reads.
        4 => {
            let place = (a.clone() + int(constant(rng))).max(int(0)).min(n.clone() - int(1));
            let low = if rng.percent(70) { positive } else { n.clone().ge(int(0)) };
            let other = (n.clone() - int(1)).min(a + slack.clone()).max(int(0));
            let goals = vec![place.clone().within(int(0), n.clone() - slack), place.clone().eq(other), place.lt(n)];
            (vec![low], goals)
        }
        // Slices with a step.
        5 => {
            let facts = vec![
                int(0).le(a.clone()),
                b.clone().le(n.clone()),
                c.clone().within(int(0), (b.clone() - a.clone()).ceil_div(k)),
            ];
            let place = a.clone() + int(k) * c;
            let goals = vec![
                place.clone().within(int(0), n - slack.clone()),
                place.lt(b.clone() - slack.clone()),
                a.lt(b - slack),
            ];
            (facts, goals)
        }
        // Concatenation.
        6 => {
            let facts =
                vec![a.clone().ge(int(0)), b.clone().ge(int(0)), c.clone().within(int(0), a.clone() + b.clone())];
            let goals = vec![
                Formula::Or(vec![
                    c.clone().lt(a.clone()),
                    (c.clone() - a.clone()).within(int(0), b.clone() - slack.clone()),
                ]),
                (c.clone() - a.clone()).max(int(0)).lt(b.max(int(1)) - slack.clone()),
                c.clone().min(a.clone() + slack).le(a),
            ];
            (facts, goals)
        }
        // A common factor.
        7 => {
            let (p, q) = (rng.between(1, 12), rng.between(1, 12));
            let g = (1..=p).filter(|d| p % d == 0 && q % d == 0).max().unwrap_or(1);
            let facts = vec![(int(p) * a.clone()).eq(int(q) * b.clone() + int(g * rng.between(0, 1)))];
            let goals = vec![
                a.clone().modulo((q / g).max(1)).eq(slack.clone()),
                b.clone().modulo((p / g).max(1)).eq(slack.clone()),
                (int(p) * a.clone() - int(q) * b.clone()).modulo(g).eq(slack.clone()),
                a.eq(b + slack),
            ];
            (facts, goals)
        }
        // Remainders by two divisors.
        8 => {
            let (p, q) = (rng.between(2, 9), rng.between(2, 9));
            let value = rng.between(0, 80);
            let both = (1..).map(|times| times * p).find(|multiple| multiple % q == 0).unwrap_or(p * q);
            let facts = vec![
                n.clone().modulo(p).eq(int(value.rem_euclid(p))),
                n.clone().modulo(q).eq(int((value + off.max(0)).rem_euclid(q))),
            ];
            let goals = vec![
                n.clone().modulo(both).eq(int(value.rem_euclid(both))),
                n.clone().is(Op::Ne, int(value + 1)),
                n.modulo(p * q).is(Op::Ne, int(rng.between(0, p * q - 1))),
            ];
            (facts, goals)
        }
        // Wavefronts of a and b over rows of n.
        9 => {
            let (low, high) = ((c.clone() - b.clone() + int(1)).max(int(0)), c.clone().min(n.clone() - int(1)));
            let facts = vec![
                positive,
                b.clone().ge(int(1)),
                c.clone().within(int(0), n.clone() + b.clone() - int(1)),
                Formula::And(vec![low.clone().le(a.clone()), a.clone().le(high.clone())]),
            ];
            let goals = vec![
                a.clone().within(int(0), n - slack.clone()),
                (c.clone() - a.clone()).within(int(0), b - slack.clone()),
                low.le(high - slack.clone()),
                c.ge(a + slack),
            ];
            (facts, goals)
        }
        // Gaps between multiples.
        10 => {
            let (k, l) = (rng.between(2, 9), rng.between(2, 9));
            let facts = vec![
                (int(k) * a.clone() + int(rng.between(0, 2))).le(n.clone()),
                n.clone().lt(int(k) * a.clone() + int(k)),
                (int(k * l) * b.clone()).le(n.clone()),
                n.clone().lt(int(k * l) * b.clone() + int(k * l)),
            ];
            let goals = vec![
                a.clone().eq(n.floor_div(k) + slack.clone()),
                a.clone().floor_div(l).eq(b.clone() + slack.clone()),
                (int(l) * b.clone() + slack.clone()).le(a.clone()),
                a.le(int(l) * b + int(l - 1) - slack),
            ];
            (facts, goals)
        }
        // Broadcasting: a size of 1 fits any other.
        _ => {
            let facts = vec![
                a.clone().ge(int(1)),
                b.clone().ge(int(1)),
                Formula::Or(vec![a.clone().eq(b.clone()), a.clone().eq(int(1)), b.clone().eq(int(1))]),
                c.clone().within(int(0), a.clone().max(b.clone())),
            ];
            let goals = vec![
                Formula::Or(vec![c.clone().lt(a.clone() - slack.clone()), a.clone().eq(int(1))]),
                c.clone().min(a.clone() - int(1)).within(int(0), a.clone()),
                Formula::Or(vec![c.lt(a.clone().min(b.clone()) + slack), a.is(Op::Ne, b)]),
            ];
            (facts, goals)
        }
    };
    let goal = match rng.below(8) {
        0 => Formula::And(vec![rng.pick(&goals).clone(), rng.pick(&goals).clone()]),
        1 => Formula::Or(vec![rng.pick(&goals).clone(), comparison(rng, 4, 1)]),
        2 => Formula::Or(vec![rng.pick(&goals).clone(), rng.pick(&goals).clone().not()]),
        _ => rng.pick(&goals).clone(),
    };
    Question { names: named(4), facts, goal: Goal::Holds(goal) }
}

/// Flattened indices and other products of two names.
fn product(rng: &mut Rng) -> Question {
    let [i, j, m, n] = [0, 1, 2, 3].map(Expr::Name);
    let off = int(*rng.pick(&[0, 0, 0, 1, -1]));
    let mut facts =
        vec![n.clone().ge(int(1)), i.clone().within(int(0), m.clone()), j.clone().within(int(0), n.clone())];
    facts.extend(rng.percent(50).then(|| m.clone().ge(int(rng.between(0, 3)))));
    let place = i.clone() * n.clone() + j.clone();
    let k = divisor(rng);
    let goal = match rng.below(8) {
        0 | 1 => place.within(int(0), m * n - off),
        2 => (int(k) * place + j.clone().modulo(k)).lt(int(k) * m * n + off),
        3 => (n.clone() * (i + int(1))).le(n * m - off),
        4 => (j * m.clone() + i).lt(m * n - off),
        5 => (int(k) * place.clone() + j.clone().modulo(k)).floor_div(k).eq(place + off),
        6 => (m.clone() * n.clone()).ge(n + off),
        _ => (i * j).lt(m * n - off),
    };
    Question { names: named(4), facts, goal: Goal::Holds(goal) }
}
