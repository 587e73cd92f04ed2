//! The normal form and the thin prover against brute force.

use std::collections::BTreeMap;

use certen_syntax::{Cursor, Diagnostic, Diagnostics, Name, Sources, lex};
use proptest::prelude::*;

use crate::check::check;
use crate::cond::Cond;
use crate::facts::{Facts, Verdict};
use crate::ix::{Ix, IxError};
use crate::parse::{parse_cond, parse_ix};
use crate::witness::{ProofEnd, ProofStep, Reason, Refutation, Witness};

fn parsed<T>(text: &str, parse: impl Fn(&mut Cursor<'_>) -> Result<T, Diagnostic>) -> Result<T, Diagnostic> {
    let mut sources = Sources::new();
    let file = sources.add("t", text);
    let tokens = lex(sources.get(file).unwrap(), file, &mut Diagnostics::new());
    let mut cursor = Cursor::new(&tokens);
    let value = parse(&mut cursor)?;
    assert!(cursor.at_end(), "{text} was not read whole");
    Ok(value)
}

pub(crate) fn ix(text: &str) -> Ix {
    parsed(text, parse_ix).unwrap()
}

fn cond(text: &str) -> Cond {
    parsed(text, parse_cond).unwrap()
}

#[test]
fn spelling_does_not_matter() {
    for (a, b) in [
        ("n + n", "2*n"),
        ("(m + 1)*(n + 1)", "m*n + n + m + 1"),
        ("floor_div(4*n + 7, 4)", "n + 1 + floor_div(3, 4)"),
        ("ceil_div(n + 8, 4)", "2 + ceil_div(n, 4)"),
        ("mod(n, 4) + 4*floor_div(n, 4)", "n"),
        ("min(m, n)", "min(n, m)"),
    ] {
        assert_eq!(ix(a), ix(b), "{a} and {b}");
    }
}

#[test]
fn what_is_rounded_up_is_written_so() {
    for text in ["ceil_div(n, 4)", "ceil_div(h + 1 - r, 64)", "3*m + ceil_div(h + 1 - r, 64) + 2"] {
        let written = ix(text).to_string();
        assert!(written.contains("ceil_div") && !written.contains("floor_div"), "{text} is written {written}");
        assert_eq!(ix(&written), ix(text));
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let large = Ix::from(i64::MAX);
    assert_eq!(large.add(&Ix::from(1)), Err(IxError::Overflow));
    assert_eq!(Ix::var("n").floor_div(0), Err(IxError::Divisor));
    let deep = format!("{}n{}", "floor_div(n + ".repeat(40), ", 3)".repeat(40));
    assert!(parsed(&deep, parse_ix).is_err());
    let parentheses = format!("{}n{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(parsed(&parentheses, parse_ix).is_err());
    assert!(parsed(&parentheses, parse_cond).is_err());
}

#[test]
fn equalities_and_bounds_are_used() {
    let mut facts = Facts::new();
    for fact in ["m >= 1", "n >= 1", "k >= 1", "m == n", "k <= m + 2", "2*j >= 7", "j <= 5"] {
        facts.assume(cond(fact));
    }
    for yes in ["m == n", "n + 2 >= k", "m*n >= 1", "j >= 4", "k >= 1 && 2*m == m + n", "k <= 0 || m >= 1"] {
        assert_eq!(facts.prove(&cond(yes)), Verdict::Yes, "{yes}");
    }
    for no in ["m == k", "n + 1 >= k", "j == 4", "m >= 2"] {
        assert!(matches!(facts.prove(&cond(no)), Verdict::No(_)), "{no}");
    }
    assert_eq!(facts.satisfiable(), Verdict::Yes);
    facts.assume(cond("k >= n + 3"));
    assert!(matches!(facts.satisfiable(), Verdict::No(_)));
}

#[test]
fn rounding_and_common_factors_are_those_of_integers() {
    let mut facts = Facts::new();
    for fact in ["2*n <= 7", "3*n >= 7", "2*p == 2*q", "floor_div(p, 2) >= 3", "m >= 1"] {
        facts.assume(cond(fact));
    }
    for yes in ["n == 3", "p == q", "floor_div(p, 2) >= 2", "min(m, n) >= 1", "max(n - 9, 0) >= 0", "i < max(i + 1, m)"]
    {
        assert_eq!(facts.prove(&cond(yes)), Verdict::Yes, "{yes}");
    }
    facts.assume(cond("2*m == 5"));
    assert!(matches!(facts.satisfiable(), Verdict::No(_)));
}

#[test]
fn many_clauses_are_no_burden() {
    let mut facts = Facts::new();
    for at in 0..5000 {
        facts.assume(cond(&format!("n{} + n{} >= n{} - {at}", at % 10, (at + 7) % 10, (at + 3) % 10)));
    }
    facts.assume(cond("n0*n0 == 2*n1*n1"));
    facts.satisfiable();
    facts.prove(&cond("n0 >= n1"));
}

#[test]
fn a_counterexample_far_from_zero_is_found() {
    let mut facts = Facts::new();
    facts.assume(cond("n >= 1"));
    let Verdict::No(counterexample) = facts.prove(&cond("n <= 1000")) else { panic!() };
    assert_eq!(counterexample.to_string(), "n = 1001");
}

#[test]
fn numbers_at_the_end_of_64_bits_are_no_burden() {
    let most = i64::MAX;
    let mut facts = Facts::new();
    facts.assume(cond("a + b - b*c - min(a, c) == 1"));
    facts.assume(cond(&format!("c*max(a, b) - b > {most}*max(a, b) || b + {most}*max(a, b) > c*max(a, b)")));
    facts.assume(cond(&format!("{most}*d - {most}*c >= -{most}")));
    for goal in ["a >= 0", "d >= c", "c*max(a, b) != b", "d + c != 3"] {
        facts.prove(&cond(goal));
    }
    facts.satisfiable();
}

/// The checker is for witnesses of all kinds.
#[test]
fn a_witness_with_huge_numbers_is_rejected() {
    let least = Ix::var("n").scale(i64::MIN).unwrap();
    let row = |constant: i64| least.add(&Ix::from(constant)).unwrap();
    let facts: Vec<Cond> = (0..3).map(|at| Cond::Ge(row(at))).collect();
    let given = (0..3).map(|at| ProofStep { row: row(at as i64), reason: Reason::Given(at) });
    let sum = ProofStep { row: Ix::from(-1), reason: Reason::Sum(vec![(i64::MAX, 0), (i64::MAX, 1), (2, 2)]) };
    let root = Refutation { steps: given.chain([sum]).collect(), end: ProofEnd::Contradiction(3) };
    assert!(check(&facts, &Cond::never(), &Witness { root }).is_err());
}

#[test]
fn many_names_are_no_burden() {
    let mut facts = Facts::new();
    for at in 0..20_000 {
        facts.assume(cond(&format!("n{at} >= 1")));
        facts.assume(cond(&format!("n{at} == n{}", at + 1)));
    }
    assert_eq!(facts.prove(&cond("n0 == n1")), Verdict::Yes);
    assert_ne!(facts.prove(&cond("n0 >= 2")), Verdict::Yes);
    facts.satisfiable();
}

fn arbitrary_ix() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![(-5i64..6).prop_map(|v| v.to_string()), "[mn]".prop_map(|n| n)];
    leaf.prop_recursive(4, 16, 2, |inner| {
        (inner.clone(), inner, 0..7, 1i64..5).prop_map(|(a, b, which, k)| match which {
            0 => format!("({a} + {b})"),
            1 => format!("({a} - {b})"),
            2 => format!("({a} * {b})"),
            3 => format!("floor_div({a}, {k})"),
            4 => format!("min({a}, {b})"),
            5 => format!("max({a}, {b})"),
            _ => format!("mod({a}, {k})"),
        })
    })
}

fn arbitrary_cond() -> impl Strategy<Value = String> {
    let leaf = (arbitrary_ix(), arbitrary_ix(), prop_oneof![Just("<"), Just(">="), Just("=="), Just("!=")])
        .prop_map(|(a, b, op)| format!("{a} {op} {b}"));
    leaf.prop_recursive(2, 6, 2, |inner| {
        (inner.clone(), inner, 0..3).prop_map(|(a, b, which)| match which {
            0 => format!("({a} && {b})"),
            1 => format!("({a} || {b})"),
            _ => format!("!({a})"),
        })
    })
}

fn at(m: i64, n: i64) -> BTreeMap<Name, i64> {
    BTreeMap::from([(Name::new("m"), m), (Name::new("n"), n)])
}

proptest! {
    #[test]
    fn printing_and_reading_are_inverse(text in arbitrary_ix(), condition in arbitrary_cond()) {
        if let Ok(expression) = parsed(&text, parse_ix) {
            prop_assert_eq!(ix(&expression.to_string()), expression);
        }
        if let Ok(condition) = parsed(&condition, parse_cond) {
            prop_assert_eq!(cond(&condition.to_string()), condition);
        }
    }

    #[test]
    fn answers_agree_with_brute_force(fact in arbitrary_cond(), goal in arbitrary_cond()) {
        let (Ok(fact), Ok(goal)) = (parsed(&fact, parse_cond), parsed(&goal, parse_cond)) else { return Ok(()) };
        let mut facts = Facts::new();
        facts.assume(fact.clone());
        let holds = |c: &Cond, point: &BTreeMap<Name, i64>| c.eval(&|n| point.get(&n).copied()).unwrap();
        let points = (-9..10).flat_map(|m| (-9..10).map(move |n| at(m, n)));
        match facts.prove(&goal) {
            Verdict::Yes => for point in points {
                prop_assert!(!holds(&fact, &point) || holds(&goal, &point), "{:?}", point);
            },
            Verdict::No(point) => {
                let extended = |mut other: BTreeMap<Name, i64>| {
                    other.extend(point.0.clone());
                    other
                };
                prop_assert!(points.clone().map(extended).all(|full| !holds(&goal, &full)), "{:?}", point);
                let satisfiable = points.clone().any(|other| holds(&fact, &other));
                prop_assert!(!satisfiable || points.map(extended).any(|full| holds(&fact, &full)), "{:?}", point);
            }
            Verdict::Unknown => {}
        }
        if let Verdict::No(_) = facts.satisfiable() {
            for point in (-9..10).flat_map(|m| (-9..10).map(move |n| at(m, n))) {
                prop_assert!(!holds(&fact, &point), "{:?}", point);
            }
        }
    }
}
