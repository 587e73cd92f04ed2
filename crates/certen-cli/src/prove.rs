//! `certen prove`: does a condition hold for all integers that satisfy others?

use certen::road::index::{Cond, Counterexample, Decision, Facts, Verdict, parse_cond};
use certen::road::syntax::{Blame, Code, Cursor, Diagnostic, Diagnostics, Sources, lex};
use clap::Args;
use serde_json::{Value, json};

use crate::common::Outcome;
use crate::report::Report;

#[derive(Args)]
pub struct ProveArgs {
    /// What is to hold for all integers: `i*n + j < m*n`
    #[arg(allow_hyphen_values = true)]
    goal: String,
    /// What is known: `0 <= i < m, 0 <= j < n`
    #[arg(long = "where", value_name = "CONDITIONS", allow_hyphen_values = true)]
    given: Vec<String>,
    /// Print the steps that prove it, which a separate checker has accepted
    #[arg(long)]
    witness: bool,
    /// Print JSON on standard output
    #[arg(long)]
    json: bool,
}

pub fn prove(args: &ProveArgs) -> Outcome {
    let report = Report::new(args.json);
    let mut sources = Sources::new();
    let read = read(args, &mut sources);
    let (facts, goal) = read.map_err(|diagnostics| {
        report.refuse(&sources, &diagnostics);
        Blame::Program
    })?;
    let decision = match facts.decide(&goal) {
        // A counterexample speaks of the goal's names; others may have no values at all.
        Decision::Refuted(_) if facts.satisfiable() != Verdict::Yes => Decision::Unknown,
        decision => decision,
    };
    if args.json {
        report.json(&answer(&decision, args.witness));
    } else {
        report.text(&match &decision {
            Decision::Proved(witness) if args.witness => format!("yes\n{}{witness}", hypotheses(&facts, &goal)),
            Decision::Proved(_) => "yes\n".into(),
            Decision::Refuted(at) if at.0.is_empty() => "no\n".into(),
            Decision::Refuted(at) => format!("no, for example {at}\n"),
            Decision::Unknown => "cannot tell\n".into(),
        });
    }
    if matches!(decision, Decision::Proved(_)) { Ok(()) } else { Err(Blame::Program) }
}

/// The facts and the goal; facts that nothing satisfies would prove everything.
fn read(args: &ProveArgs, sources: &mut Sources) -> Result<(Facts, Cond), Vec<Diagnostic>> {
    let mut facts = Facts::new();
    for text in &args.given {
        conditions(sources, "where", text)?.into_iter().for_each(|cond| facts.assume(cond));
    }
    let goal = conditions(sources, "goal", &args.goal)?.into_iter().fold(Cond::always(), Cond::and);
    if matches!(facts.satisfiable(), Verdict::No(_)) {
        return Err(vec![Diagnostic::error(Code::E0210, None, "no integers satisfy the conditions of `--where`")]);
    }
    Ok((facts, goal))
}

/// Conditions with commas between them.
fn conditions(sources: &mut Sources, name: &str, text: &str) -> Result<Vec<Cond>, Vec<Diagnostic>> {
    let file = sources.add(name, text);
    let mut diagnostics = Diagnostics::new();
    let tokens = sources.get(file).map(|source| lex(source, file, &mut diagnostics)).unwrap_or_default();
    if diagnostics.has_errors() {
        return Err(diagnostics.into_sorted());
    }
    let mut cursor = Cursor::new(&tokens);
    let mut conditions = Vec::new();
    loop {
        conditions.push(parse_cond(&mut cursor).map_err(|error| vec![error])?);
        if !cursor.eat(",") {
            break;
        }
    }
    if cursor.at_end() { Ok(conditions) } else { Err(vec![cursor.expected("`,` or the end")]) }
}

/// What the steps of a witness call hypotheses.
fn hypotheses(facts: &Facts, goal: &Cond) -> String {
    let opposite = match goal.not() {
        Ok(Cond::And(all)) => all,
        Ok(other) => vec![other],
        Err(_) => Vec::new(),
    };
    let known = facts.conjuncts().iter().map(|cond| (cond, "known"));
    let assumed = opposite.iter().map(|cond| (cond, "the opposite of the goal"));
    let line = |(at, (cond, why)): (usize, (&Cond, &str))| format!("hypothesis {at}: {cond}  ({why})\n");
    known.chain(assumed).enumerate().map(line).collect()
}

fn answer(decision: &Decision, with_witness: bool) -> Value {
    let values = |Counterexample(values): &Counterexample| -> Value {
        values.iter().map(|(name, value)| (name.to_string(), json!(value))).collect::<serde_json::Map<_, _>>().into()
    };
    match decision {
        Decision::Proved(witness) if with_witness => {
            json!({"ok": true, "answer": "yes", "witness": witness.to_string()})
        }
        Decision::Proved(_) => json!({"ok": true, "answer": "yes"}),
        Decision::Refuted(at) => json!({"ok": true, "answer": "no", "counterexample": values(at)}),
        Decision::Unknown => json!({"ok": true, "answer": "cannot tell"}),
    }
}
