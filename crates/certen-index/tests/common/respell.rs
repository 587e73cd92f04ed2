//! The same question in other words.

use super::question::{Goal, Question};
use super::rng::Rng;
use super::tree::{Expr, Formula, Op, int};

/// Operands swapped, sums re-associated, terms moved across comparisons, names renamed, facts and cases reordered.
pub fn respelled(question: &Question, rng: &mut Rng) -> Question {
    let mut facts: Vec<Formula> = question.facts.iter().map(|fact| formula(fact, rng)).collect();
    if facts.len() >= 2 && rng.percent(30) {
        let both = facts.split_off(facts.len() - 2);
        facts.push(Formula::And(both));
    }
    rng.shuffle(&mut facts);
    let mut names: Vec<String> = ["z", "y2", "x_", "size", "k", "i", "tile", "q0"].map(String::from).into();
    rng.shuffle(&mut names);
    names.truncate(question.names.len());
    let goal = match &question.goal {
        Goal::Holds(goal) => Goal::Holds(formula(goal, rng)),
        Goal::Equal(a, b) if rng.percent(50) => Goal::Equal(expr(b, rng), expr(a, rng)),
        Goal::Equal(a, b) => Goal::Holds(formula(&a.clone().eq(b.clone()), rng)),
        Goal::Satisfiable => Goal::Satisfiable,
    };
    Question { names, facts, goal }
}

fn formula(of: &Formula, rng: &mut Rng) -> Formula {
    let mut list = |list: &[Formula]| {
        let mut list: Vec<Formula> = list.iter().map(|one| formula(one, rng)).collect();
        rng.shuffle(&mut list);
        list
    };
    match of {
        Formula::And(all) => Formula::And(list(all)),
        Formula::Or(any) => Formula::Or(list(any)),
        Formula::Not(one) => opposite(one, rng),
        Formula::Compare(op, a, b) => {
            let (a, b) = (expr(a, rng), expr(b, rng));
            comparison(*op, a, b, rng)
        }
    }
}

/// `!` moved inwards by one step, or left where it is.
fn opposite(of: &Formula, rng: &mut Rng) -> Formula {
    if rng.percent(50) {
        return formula(of, rng).not();
    }
    match of {
        Formula::And(all) => Formula::Or(all.iter().map(|one| opposite(one, rng)).collect()),
        Formula::Or(any) => Formula::And(any.iter().map(|one| opposite(one, rng)).collect()),
        Formula::Not(one) => formula(one, rng),
        Formula::Compare(op, a, b) => {
            let op = match op {
                Op::Lt => Op::Ge,
                Op::Le => Op::Gt,
                Op::Gt => Op::Le,
                Op::Ge => Op::Lt,
                Op::Eq => Op::Ne,
                Op::Ne => Op::Eq,
            };
            formula(&a.clone().is(op, b.clone()), rng)
        }
    }
}

fn comparison(op: Op, a: Expr, b: Expr, rng: &mut Rng) -> Formula {
    let turned = match op {
        Op::Lt => Op::Gt,
        Op::Le => Op::Ge,
        Op::Gt => Op::Lt,
        Op::Ge => Op::Le,
        Op::Eq | Op::Ne => op,
    };
    match rng.below(7) {
        0 => b.is(turned, a),
        1 => int(0).is(op, b - a),
        2 => (a - b).is(op, int(0)),
        // A term of the left side goes to the right.
        3 => match a {
            Expr::Add(first, second) => first.is(op, b - *second),
            Expr::Sub(first, second) => first.is(op, b + *second),
            a => a.is(op, b),
        },
        4 => match op {
            Op::Lt => (a + int(1)).le(b),
            Op::Le => a.lt(b + int(1)),
            Op::Eq => Formula::And(vec![a.clone().le(b.clone()), b.le(a)]),
            Op::Ne => Formula::Or(vec![a.clone().lt(b.clone()), b.lt(a)]),
            _ => a.is(op, b),
        },
        5 => {
            let factor = int(rng.between(2, 5));
            (factor.clone() * a).is(op, b * factor)
        }
        _ => a.is(op, b),
    }
}

fn expr(of: &Expr, rng: &mut Rng) -> Expr {
    let swap = rng.percent(50);
    let mut both = |a: &Expr, b: &Expr| {
        let (a, b) = (expr(a, rng), expr(b, rng));
        if swap { (b, a) } else { (a, b) }
    };
    match of {
        Expr::Int(_) | Expr::Name(_) => of.clone(),
        Expr::Add(a, b) => match both(a, b) {
            (a, Expr::Add(b, c)) => a + *b + *c,
            (Expr::Add(a, b), c) => *a + (*b + c),
            (a, b) => a + b,
        },
        Expr::Sub(a, b) => {
            let (a, b) = (expr(a, rng), expr(b, rng));
            if swap { int(-1) * b + a } else { a - b }
        }
        Expr::Mul(a, b) => match both(a, b) {
            // Constants are multiplied out, or not.
            (Expr::Int(k), Expr::Add(b, c)) => int(k) * *b + int(k) * *c,
            (a, b) => a * b,
        },
        Expr::Min(a, b) => {
            let (a, b) = both(a, b);
            a.min(b)
        }
        Expr::Max(a, b) => {
            let (a, b) = both(a, b);
            a.max(b)
        }
        Expr::FloorDiv(a, k) => expr(a, rng).floor_div(*k),
        Expr::CeilDiv(a, k) if swap => (expr(a, rng) + int(k - 1)).floor_div(*k),
        Expr::CeilDiv(a, k) => expr(a, rng).ceil_div(*k),
        Expr::Mod(a, k) if swap => {
            let a = expr(a, rng);
            a.clone() - int(*k) * a.floor_div(*k)
        }
        Expr::Mod(a, k) => expr(a, rng).modulo(*k),
    }
}
