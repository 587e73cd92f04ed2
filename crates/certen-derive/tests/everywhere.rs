//! Every rewrite tried at every place, in both directions: what the engine says is proved does not change a value.
//!
//! The programs are ATL's examples, and all that their derivations come through, so that there are guards, tiles,
//! tails and buffers around the places. Arguments are taken from short lists made of a program's own names. Most
//! steps do not fit, or a condition fails; of the others a part, chosen by numbers that are always the same, is
//! compared with the program before. `CERTEN_CASES` says how many are tried.

#[path = "rewrites/template.rs"]
#[allow(dead_code)]
mod template;

use std::collections::BTreeMap;
use std::path::Path;

use certen_core::{Program, Term, padding, parse_program};
use certen_derive::script::parse_steps;
use certen_derive::{Derived, Kind, Rewrite, derive, prelude, rewrites};
use certen_rewrite::{Agreement, agree, splitmix};
use certen_syntax::{Code, Diagnostic, Diagnostics, Name, Sources};

use template::named_outside_of_arguments;

fn cases() -> u64 {
    std::env::var("CERTEN_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(4_000)
}

/// Programs and the steps of their derivations.
const PROGRAMS: [(&str, &str); 7] = [
    (
        "size m, k, n\nwhere m >= 0, k >= 0, n >= 0\ninput a : f64[m, k]\ninput b : f64[k, n]\n\
         result = gen i in 0..m. gen j in 0..n. sum q in 0..k. a[i, q] * b[q, j]",
        "tails(i, 2, floor_div(m, 2), io, ii); swap_gens at ii; tails(j, 3, floor_div(n, 3), jo, ji); tile_sum(2) at q",
    ),
    (
        "size m\nwhere m >= 0\ninput a : f64[m, 3, 2]\nresult = gen i in 0..m. gen j in 0..3. gen l in 0..2. a[i, j, l]",
        "merge_gens(x) at i; merge_gens(y) at x; backwards eta(z) at result",
    ),
    (
        "size b, w\nwhere b >= 0, w >= 0\ninput x : f64[b, w]\ninput f : f64[b, w]\n\
         result = gen p in 0..w. sum h in 0..b. sum r in 0..w. guard(p + r < w, x[h, p + r] * f[h, r])",
        "shift_sum(p) at r; range_sum(0, w, p <= r) at r; swap_sums at h; backwards sum_gen at p; backwards sum_gen at p",
    ),
    (
        "size n, m\nwhere m >= 0, n >= 0\ninput c : f64[m]\n\
         result = gen i in 0..n. sum j in 0..m. guard(j <= i, (if i == j + 2 then 1.0 else 0.0) * c[j])",
        "if_guard; guard_mul; times_one; guard_guard; collapse_sum(i - 2)",
    ),
    (
        "size n\nwhere n >= 0\ninput f : f64[n]\nsquares = gen s in 0..n. f[s] * f[s]\n\
         result = gen i in 0..n. guard(i >= 1, squares[i - 1]) + squares[i]",
        "tile_gen(2) at i; guard_same(0 <= 2*io + ii - 1 && 2*io + ii - 1 < n) at { guard(_, squares[_]) }; \
         backwards guard_true(0 <= 2*io + ii && 2*io + ii < n) at { squares[2*io + ii] }; \
         bind(tile, { gen t in 2*io - 1..2*io + 2. guard(0 <= t && t < n, squares[t]) }) at ii; fuse(squares)",
    ),
    (
        "size h, w\nwhere h >= 0, w >= 0\ninput x : f64[h, w]\n\
         rows = gen r in 0..h. gen c in 0..w. guard(c >= 1, x[r, c - 1]) + x[r, c]\n\
         result = gen i in 0..h. gen j in 0..w. guard(i >= 1, rows[i - 1, j]) + rows[i, j]",
        "edges(i, h); swap_gens at i#2; edges(j, w) at { transpose(_) }; fuse(rows); guard_true everywhere",
    ),
    (
        "size n\nwhere n >= 1\ninput f : f64[n, 4]\n\
         result = flatten(gen i in 0..n. let t = gen k in 0..4. f[i, k] - f[0, k] in \
         concat(pad_r(1, t), trunc_l(1, pad_l(1, gen k in 0..2. maximum l in 0..k + 1. t[l] * t[k]))))",
        "let_concat at t; guard_reshape; let_reshape at t",
    ),
];

fn core(text: &str) -> Program {
    let mut sources = Sources::new();
    let file = sources.add("t.core", format!("core t\n{text}\noutput result\n"));
    parse_program(&sources, file).unwrap_or_else(|errors| panic!("{text}\n{errors:?}"))
}

/// What is cut off may be padding only; that reads are in bounds is not looked at here.
fn check(program: &Program) -> Vec<Diagnostic> {
    let wrong = |_| Diagnostic::error(Code::E0903, None, "values are cut off");
    padding::check(program).into_iter().map(wrong).collect()
}

fn take(program: &Program, steps: &str) -> Option<Derived> {
    let mut sources = Sources::new();
    let mut diagnostics = Diagnostics::new();
    let tactics = prelude(&mut sources, &mut diagnostics);
    let file = sources.add("steps", format!("{steps};"));
    let steps = parse_steps(sources.get(file)?, file, &mut diagnostics)?;
    derive(program, Name::new("t"), &steps, &tactics, &mut check).ok()
}

/// The programs, and those that their steps come through.
fn programs() -> Vec<Program> {
    let mut all = Vec::new();
    for (text, script) in PROGRAMS {
        let mut program = core(text);
        for step in script.split("; ") {
            all.push(program.clone());
            // A step that does not fit is left out.
            if let Some(derived) = take(&program, step) {
                program = derived.program;
            }
        }
        all.push(program);
    }
    all
}

/// What a program binds, and its sizes.
fn names(program: &Program) -> (Vec<Name>, Vec<Name>) {
    let (mut indices, mut all) = (program.sizes.clone(), Vec::new());
    for (_, term) in program.terms.iter() {
        match term {
            Term::Gen(name, ..) | Term::Reduce(_, name, ..) => {
                indices.push(*name);
                all.push(*name);
            }
            Term::Let(name, ..) => all.push(*name),
            _ => {}
        }
    }
    all.extend(program.bindings.iter().map(|binding| binding.name));
    for list in [&mut indices, &mut all] {
        list.sort_unstable();
        list.dedup();
    }
    (indices, all)
}

struct Numbers(u64);

impl Numbers {
    fn pick<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        self.0 = splitmix(self.0);
        list.get((self.0 >> 20) as usize % list.len().max(1))
    }
}

/// A step with arguments that might do.
fn step(rewrite: &Rewrite, program: &Program, numbers: &mut Numbers) -> Option<String> {
    let (indices, places) = names(program);
    let backwards = *numbers.pick(&[false, true])?;
    let known = named_outside_of_arguments(if backwards { rewrite.right } else { rewrite.left });
    let open: Vec<_> = rewrite.parameters.iter().filter(|(name, _)| !known.iter().any(|k| k == name)).collect();
    let mut args = Vec::new();
    for (at, (name, kind)) in open.iter().enumerate() {
        let i = numbers.pick(&indices)?.to_string();
        let n = numbers.pick(&program.sizes)?.to_string();
        let texts = match kind {
            Kind::Fresh if open[at..].iter().all(|(_, kind)| *kind == Kind::Fresh) => break,
            Kind::Fresh => vec![format!("own_{name}")],
            Kind::Number => vec!["2".into(), "3".into(), "1".into()],
            Kind::Index => {
                vec!["0".into(), "1".into(), i.clone(), n.clone(), format!("min({n}, 1)"), format!("{i} + 1")]
            }
            Kind::Cond => vec![format!("0 <= {i}"), format!("{i} < {n}"), format!("1 <= {i}"), format!("{i} == 0")],
            Kind::Term => vec!["{ x[_, _] }".into(), "{ 1 }".into(), "{ rows }".into()],
        };
        args.push(numbers.pick(&texts)?.clone());
    }
    let args = if args.is_empty() { String::new() } else { format!("({})", args.join(", ")) };
    let place = numbers.pick(&places)?;
    let nth = numbers.pick(&["", "#2", "#3"])?;
    let everywhere = numbers.pick(&["", "", "", " everywhere"])?;
    let direction = if backwards { "backwards " } else { "" };
    Some(format!("{direction}{}{args} at {place}{nth}{everywhere}", rewrite.name))
}

#[test]
fn what_is_proved_does_not_change_a_value() {
    let programs = programs();
    let mut numbers = Numbers(1);
    let mut taken: BTreeMap<&str, u64> = BTreeMap::new();
    for _ in 0..cases() {
        let (Some(rewrite), Some(program)) = (numbers.pick(rewrites()), numbers.pick(&programs)) else { continue };
        let Some(step) = step(rewrite, program, &mut numbers) else { continue };
        let Some(derived) = take(program, &step).filter(Derived::is_proved) else { continue };
        *taken.entry(rewrite.name).or_default() += 1;
        match agree(program, &derived.program, 400_000) {
            // A read may have left the guard that made it safe: who takes a step looks at that.
            Agreement::Differs { values, .. } if values[1].contains("out of bounds") => {}
            differs @ Agreement::Differs { .. } => panic!("{step}: {differs:?}\n{program}\n{}", derived.program),
            _ => {}
        }
    }
    let all: u64 = taken.values().sum();
    assert!(all * 20 >= cases() && taken.len() > 30, "{all} steps were taken: {taken:?}");
}
