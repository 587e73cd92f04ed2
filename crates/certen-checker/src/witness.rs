//! Witnesses as JSON: a flat list of entries, each a word with what it needs.
//!
//! ```text
//! ["given", ROW, HYPOTHESIS]           ["reversed", ROW, HYPOTHESIS]      ["one", ROW]
//! ["low", ROW, IX, K]                  ["high", ROW, IX, K]               the axioms of floor_div(IX, K)
//! ["min", ROW, AT, IX, IX, …]          ["max", ROW, AT, IX, IX, …]        a minimum or maximum and one of its parts
//! ["sum", ROW, TIMES, OF, TIMES, OF, …]
//! ["product", ROW, OF, OF]             ["multiple", ROW, OF, OF, IX]
//! ["end", OF]                                                             the contradiction
//! ["either", HYPOTHESIS, CASES]        ["sign", IX]
//! ["reached_min", IX, IX, …]           ["reached_max", IX, IX, …]
//! ```
//!
//! An entry of the last two lines is followed by the entries of each of its cases, one case after the other. Rows and
//! other expressions are texts, with names that may have points (`i.o`) and signs of their copies (`i'`). The list is
//! flat so that no depth of cases makes JSON deep. Steps that do not rest on each other stand in the order of their
//! rows, so that a proof has one text.

use std::collections::BTreeSet;

use certen_index::{
    CaseSplit, Cond, Extreme, Ix, ProofEnd, ProofStep, Reason, Refutation, Witness, parse_cond, parse_ix,
};
use certen_syntax::{Cursor, Diagnostic, Name, Span, Token, TokenKind};
use serde_json::Value;

use crate::json::{list, quoted};

/// Cases inside each other, as in [`certen_index::check`].
const MAX_DEPTH: usize = 512;

/// A witness as JSON.
pub(crate) fn write(witness: &Witness) -> String {
    let mut entries = Vec::new();
    let root = ordered(&witness.root, &[]);
    let mut todo = vec![&root];
    while let Some(derivation) = todo.pop() {
        entries.extend(derivation.steps.iter().map(step));
        match &derivation.end {
            ProofEnd::Contradiction(row) => entries.push(entry("end", [row.to_string()])),
            ProofEnd::Cases(split, cases) => {
                entries.push(match split {
                    CaseSplit::Either(hypothesis) => entry("either", [hypothesis.to_string(), cases.len().to_string()]),
                    CaseSplit::Sign(e) => entry("sign", [text(e)]),
                    CaseSplit::Reached(extreme) => {
                        entry(if extreme.max { "reached_max" } else { "reached_min" }, extreme.parts.iter().map(text))
                    }
                });
                todo.extend(cases.iter().rev());
            }
        }
    }
    list(entries)
}

fn entry(word: &str, parts: impl IntoIterator<Item = String>) -> String {
    list([quoted(word)].into_iter().chain(parts))
}

/// A derivation whose steps come as early as they can, of several the one with the smallest row first. `places` says
/// where the rows of the derivations around it have gone.
fn ordered(derivation: &Refutation, places: &[usize]) -> Refutation {
    let (outer, steps) = (places.len(), &derivation.steps);
    // Of each step: how many of the others it waits for, and which wait for it.
    let (mut waits, mut waiting) = (vec![0; steps.len()], vec![Vec::new(); steps.len()]);
    for (at, step) in steps.iter().enumerate() {
        let own: BTreeSet<usize> =
            rests_on(&step.reason).into_iter().filter(|row| (outer..outer + at).contains(row)).collect();
        waits[at] = own.len();
        own.into_iter().for_each(|row| waiting[row - outer].push(at));
    }
    let mut ready: BTreeSet<(&Ix, usize)> =
        steps.iter().enumerate().filter(|(at, _)| waits[*at] == 0).map(|(at, step)| (&step.row, at)).collect();
    let (mut order, mut places) = (Vec::new(), places.to_vec());
    places.resize(outer + steps.len(), 0);
    while let Some((_, at)) = ready.pop_first() {
        places[outer + at] = outer + order.len();
        order.push(at);
        for &next in &waiting[at] {
            waits[next] -= 1;
            if waits[next] == 0 {
                ready.insert((&steps[next].row, next));
            }
        }
    }
    let place = |row: &usize| places.get(*row).copied().unwrap_or(*row);
    let moved = |reason: &Reason| match reason {
        Reason::Sum(parts) => {
            let mut parts: Vec<(i64, usize)> = parts.iter().map(|(times, of)| (*times, place(of))).collect();
            parts.sort_by_key(|(_, of)| *of);
            Reason::Sum(parts)
        }
        Reason::Product(a, b) => Reason::Product(place(a).min(place(b)), place(a).max(place(b))),
        Reason::Multiple(a, b, factor) => Reason::Multiple(place(a), place(b), factor.clone()),
        other => other.clone(),
    };
    let step = |at: &usize| ProofStep { row: steps[*at].row.clone(), reason: moved(&steps[*at].reason) };
    let end = match &derivation.end {
        ProofEnd::Contradiction(row) => ProofEnd::Contradiction(place(row)),
        ProofEnd::Cases(split, cases) => {
            ProofEnd::Cases(split.clone(), cases.iter().map(|case| ordered(case, &places)).collect())
        }
    };
    Refutation { steps: order.iter().map(step).collect(), end }
}

/// The rows that a step is made from.
fn rests_on(reason: &Reason) -> Vec<usize> {
    match reason {
        Reason::Sum(parts) => parts.iter().map(|(_, of)| *of).collect(),
        Reason::Product(a, b) | Reason::Multiple(a, b, _) => vec![*a, *b],
        _ => Vec::new(),
    }
}

fn text(ix: &Ix) -> String {
    quoted(&ix.to_string())
}

fn step(step: &ProofStep) -> String {
    let row = text(&step.row);
    match &step.reason {
        Reason::Given(at) => entry("given", [row, at.to_string()]),
        Reason::Reversed(at) => entry("reversed", [row, at.to_string()]),
        Reason::QuotientLow(e, k) => entry("low", [row, text(e), k.to_string()]),
        Reason::QuotientHigh(e, k) => entry("high", [row, text(e), k.to_string()]),
        Reason::Extreme(extreme, at) => {
            let parts = [row, at.to_string()].into_iter().chain(extreme.parts.iter().map(text));
            entry(if extreme.max { "max" } else { "min" }, parts)
        }
        Reason::Sum(parts) => {
            let parts = parts.iter().flat_map(|(times, of)| [times.to_string(), of.to_string()]);
            entry("sum", [row].into_iter().chain(parts))
        }
        Reason::Product(a, b) => entry("product", [row, a.to_string(), b.to_string()]),
        Reason::Multiple(a, b, factor) => entry("multiple", [row, a.to_string(), b.to_string(), text(factor)]),
        Reason::One => entry("one", [row]),
    }
}

/// A witness from JSON.
pub(crate) fn read(value: &Value) -> Result<Witness, String> {
    let mut entries = value.as_array().ok_or("a witness is a list")?.iter();
    let root = derivation(&mut entries, 0)?;
    match entries.next() {
        None => Ok(Witness { root }),
        Some(entry) => Err(format!("{entry} stands beyond the end")),
    }
}

fn derivation<'a>(entries: &mut impl Iterator<Item = &'a Value>, depth: usize) -> Result<Refutation, String> {
    if depth > MAX_DEPTH {
        return Err("too many cases inside each other".into());
    }
    let mut steps = Vec::new();
    loop {
        let entry = entries.next().ok_or("it has no end")?;
        let wrong = || format!("{entry} is no entry of a witness");
        let all = entry.as_array().map(Vec::as_slice).unwrap_or_default();
        let (word, rest) = all.split_first().ok_or_else(wrong)?;
        let (split, cases) = match (word.as_str().ok_or_else(wrong)?, rest) {
            ("end", [row]) => return Ok(Refutation { steps, end: ProofEnd::Contradiction(count(row)?) }),
            ("either", [hypothesis, cases]) => (CaseSplit::Either(count(hypothesis)?), count(cases)?),
            ("sign", [e]) => (CaseSplit::Sign(ix(e)?), 2),
            (word @ ("reached_min" | "reached_max"), parts) => {
                (CaseSplit::Reached(extreme(word == "reached_max", parts)?), parts.len())
            }
            (word, [row, rest @ ..]) => {
                let reason = reason(word, rest).and_then(|found| found.ok_or_else(wrong))?;
                steps.push(ProofStep { row: ix(row)?, reason });
                continue;
            }
            _ => return Err(wrong()),
        };
        // No more are made than there are entries for.
        let mut found = Vec::new();
        for _ in 0..cases {
            found.push(derivation(entries, depth + 1)?);
        }
        return Ok(Refutation { steps, end: ProofEnd::Cases(split, found) });
    }
}

fn reason(word: &str, rest: &[Value]) -> Result<Option<Reason>, String> {
    Ok(Some(match (word, rest) {
        ("given", [at]) => Reason::Given(count(at)?),
        ("reversed", [at]) => Reason::Reversed(count(at)?),
        ("low", [e, k]) => Reason::QuotientLow(ix(e)?, number(k)?),
        ("high", [e, k]) => Reason::QuotientHigh(ix(e)?, number(k)?),
        ("min" | "max", [at, parts @ ..]) => Reason::Extreme(extreme(word == "max", parts)?, count(at)?),
        ("sum", parts) if parts.len().is_multiple_of(2) => Reason::Sum(
            parts
                .chunks_exact(2)
                .map(|pair| Ok((number(&pair[0])?, count(&pair[1])?)))
                .collect::<Result<_, String>>()?,
        ),
        ("product", [a, b]) => Reason::Product(count(a)?, count(b)?),
        ("multiple", [a, b, factor]) => Reason::Multiple(count(a)?, count(b)?, ix(factor)?),
        ("one", []) => Reason::One,
        _ => return Ok(None),
    }))
}

fn extreme(max: bool, parts: &[Value]) -> Result<Extreme, String> {
    Ok(Extreme { max, parts: parts.iter().map(ix).collect::<Result<_, String>>()? })
}

/// The number of a row, hypothesis or part. There are always far fewer than 2^32.
fn count(value: &Value) -> Result<usize, String> {
    let count = value.as_u64().and_then(|value| u32::try_from(value).ok());
    count.map(|count| count as usize).ok_or_else(|| format!("{value} counts nothing"))
}

fn number(value: &Value) -> Result<i64, String> {
    value.as_i64().ok_or_else(|| format!("{value} is no 64-bit integer"))
}

fn ix(value: &Value) -> Result<Ix, String> {
    let text = value.as_str().ok_or_else(|| format!("{value} is no text"))?;
    whole(text, parse_ix)
}

/// A condition from its text.
pub(crate) fn cond(text: &str) -> Result<Cond, String> {
    whole(text, parse_cond)
}

fn whole<T>(text: &str, parse: fn(&mut Cursor<'_>) -> Result<T, Diagnostic>) -> Result<T, String> {
    let tokens = tokens(text)?;
    let mut cursor = Cursor::new(&tokens);
    let read = parse(&mut cursor).map_err(|error| error.message)?;
    if cursor.at_end() { Ok(read) } else { Err(format!("`{text}` goes on after its end")) }
}

/// The tokens of an expression. Unlike in programs, names have points and signs of copies.
fn tokens(text: &str) -> Result<Vec<Token>, String> {
    const SIGNS: [&str; 14] = ["<=", ">=", "==", "!=", "&&", "||", "<", ">", "+", "-", "*", "(", ")", ","];
    let token = |kind| Token { kind, span: Span::default(), first_on_line: false };
    let (mut tokens, mut rest) = (Vec::new(), text.trim_start());
    while let Some(first) = rest.chars().next() {
        let length = |part: fn(char) -> bool| rest.find(|c| !part(c)).unwrap_or(rest.len());
        let (kind, length) = if first.is_ascii_digit() {
            let length = length(|c| c.is_ascii_digit());
            let value = rest[..length].parse().map_err(|_| format!("a number of `{text}` does not fit"))?;
            (TokenKind::Int(value), length)
        } else if first.is_ascii_alphabetic() || first == '_' {
            let length = length(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '\''));
            (TokenKind::Name(Name::new(&rest[..length])), length)
        } else {
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
            let sign = sign.ok_or_else(|| format!("`{text}` is no expression"))?;
            (TokenKind::Punct(sign), sign.len())
        };
        tokens.push(token(kind));
        rest = rest[length..].trim_start();
    }
    tokens.push(token(TokenKind::End));
    Ok(tokens)
}

/// The hypotheses that a witness rests on.
pub(crate) fn hypotheses(witness: &Witness) -> BTreeSet<usize> {
    let mut used = BTreeSet::new();
    let mut todo = vec![&witness.root];
    while let Some(derivation) = todo.pop() {
        used.extend(derivation.steps.iter().filter_map(|step| match step.reason {
            Reason::Given(at) | Reason::Reversed(at) => Some(at),
            _ => None,
        }));
        if let ProofEnd::Cases(split, cases) = &derivation.end {
            if let CaseSplit::Either(at) = split {
                used.insert(*at);
            }
            todo.extend(cases);
        }
    }
    used
}
