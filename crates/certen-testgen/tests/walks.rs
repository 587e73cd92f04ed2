//! Long walks: rewrites chosen at random, one after the other, at places that nobody has chosen for them. Whatever the engine
//! takes with its conditions proved means the same as what it began with.

use std::collections::BTreeSet;

use certen_core::domain::splitmix;
use certen_core::script;
use certen_core::{Program, Term, parse_program, print_term};
use certen_derive::{ParameterKind, derive, rewrites};
use certen_lift::{Agreement, agree};
use certen_syntax::{Diagnostics, Name, Sources};

const PROGRAMS: [&str; 5] = [
    "size m, k, n\nwhere m >= 0, k >= 0, n >= 0\ninput a : f64[m, k]\ninput b : f64[k, n]\n\
     result = gen i in 0..m. gen j in 0..n. sum q in 0..k. a[i, q] * b[q, j]",
    "size m, n\nwhere m >= 0, n >= 0\ninput x : f64[n, m]\n\
     rows = gen i in 0..n. gen j in 0..m. guard(j >= 1, x[i, j - 1]) + x[i, j]\n\
     result = gen i in 0..n. gen j in 0..m. guard(i >= 1, rows[i - 1, j]) + rows[i, j]",
    "size n\nwhere n >= 0\ninput f : f64[n]\n\
     result = trunc_r(3*ceil_div(n, 3) - n, flatten(gen i in 0..ceil_div(n, 3). let s = gen j in 0..4. \
     guard(j + 3*i >= 1 && j + 3*i <= n, f[j + 3*i - 1]) in gen q in 0..3. guard(q + 3*i < n, s[q] * s[q + 1])))",
    "size m, n\nwhere m >= 2, n >= 1\ninput c : f64[m]\n\
     result = transpose(concat(gen i in 0..m - 1. gen j in 0..n. (if i == j then c[i] else 0.0), \
     pad_l(1, gen i in 1..2. gen j in 0..n. sum q in 0..m where q >= j. 1.0 * c[q])))",
    "size m, n\nwhere m >= 1, n >= 0\ninput x : f64[n]\n\
     result = sum i in 0..m. gen j in 0..n. guard(j <= i, guard(i < n, x[j] * x[i])) + x[j]",
];

/// How many steps are tried on a walk.
const STEPS: usize = 150;

/// How many walks there are. With `CERTEN_CASES=700` thousands of steps are taken, nearly all rewrites in both directions.
fn walks() -> u64 {
    std::env::var("CERTEN_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(30)
}

/// A source of random numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = splitmix(self.0);
        (self.0 >> 16) as usize % limit.max(1)
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

fn core(text: &str) -> Program {
    let text = format!("core t\n{text}\noutput result\n");
    let mut sources = Sources::new();
    let file = sources.add("t.core", text.as_str());
    parse_program(&sources, file).unwrap_or_else(|errors| panic!("{text}\n{errors:?}"))
}

/// A step that somebody could have written.
fn step(program: &Program, dice: &mut Dice) -> String {
    let rewrite = *dice.pick(rewrites());
    let bound: Vec<Name> = program
        .terms
        .iter()
        .filter_map(|(_, term)| match term {
            Term::Gen(name, ..) | Term::Reduce(_, name, ..) | Term::Let(name, ..) => Some(*name),
            _ => None,
        })
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let index = |dice: &mut Dice| {
        let name = if dice.below(2) == 0 { *dice.pick(&program.sizes) } else { *dice.pick(&bound) };
        match dice.below(8) {
            0 | 1 => "0".into(),
            2 => "1".into(),
            3 => format!("{name} - 1"),
            4 => format!("min({name}, 1)"),
            5 => format!("floor_div({name}, 2)"),
            _ => name.to_string(),
        }
    };
    let count = dice.below(rewrite.parameters.len() + 1);
    let is_all = dice.below(2) == 0;
    let mut args = Vec::new();
    for (_, kind) in &rewrite.parameters[..if is_all { rewrite.parameters.len() } else { count }] {
        args.push(match kind {
            ParameterKind::Index => index(dice),
            ParameterKind::Number => (1 + dice.below(4)).to_string(),
            ParameterKind::Fresh => format!("new{}", dice.below(3)),
            ParameterKind::Cond => match dice.below(3) {
                0 => "true".into(),
                1 => format!("{} < {}", index(dice), index(dice)),
                _ => format!("{} <= {} && 0 <= {}", index(dice), index(dice), index(dice)),
            },
            ParameterKind::Term => {
                // Something that occurs.
                let terms: Vec<_> = program.terms.iter().map(|(id, _)| id).collect();
                format!("{{ {} }}", print_term(&program.terms, *dice.pick(&terms)))
            }
        });
    }
    let backwards = if dice.below(3) == 0 { "backwards " } else { "" };
    let args = if args.is_empty() { String::new() } else { format!("({})", args.join(", ")) };
    let at = match dice.below(3) {
        0 => String::new(),
        1 => format!(" at {}", dice.pick(&bound)),
        _ => format!(" at {}#{}", dice.pick(&bound), 1 + dice.below(3)),
    };
    let everywhere = if dice.below(8) == 0 { " everywhere" } else { "" };
    format!("{backwards}{}{args}{at}{everywhere};", rewrite.name)
}

#[test]
fn whatever_is_taken_keeps_the_meaning() {
    let (mut taken, mut compared) = (0, 0);
    for seed in 0..walks() {
        let mut dice = Dice(splitmix(seed));
        let first = core(PROGRAMS[seed as usize % PROGRAMS.len()]);
        let mut now = first.clone();
        let mut so_far = Vec::new();
        for _ in 0..STEPS {
            let text = step(&now, &mut dice);
            let mut sources = Sources::new();
            let file = sources.add("script", text.as_str());
            let Some(steps) = script::parse_steps(sources.get(file).unwrap(), file, &mut Diagnostics::new()) else {
                panic!("{text}");
            };
            let Ok(derived) = derive(&now, Name::new("t"), &steps, &[], &mut |_| Vec::new()) else { continue };
            if !derived.is_proved() || derived.program.terms.len() > 150 {
                continue;
            }
            so_far.push(text);
            taken += 1;
            let agreement = agree(&first, &derived.program, 300_000);
            match &agreement {
                Agreement::Agrees { elements, .. } | Agreement::OutOfBudget { elements } => compared += elements,
                // Who takes steps shows that accesses are in bounds; here nobody does.
                Agreement::Differs { values, .. } if values[1].ends_with("out of bounds") => continue,
                Agreement::Differs { values, .. } if values[1].contains("undefined") => continue,
                Agreement::Differs { .. } => {
                    panic!(
                        "{}\n{agreement:?}\n{first}\nbefore the last step\n{now}\nafter\n{}",
                        so_far.join("\n"),
                        derived.program
                    );
                }
            }
            now = derived.program;
        }
    }
    assert!(taken > 200 && compared > 1000, "{taken} steps, {compared} elements");
}
