//! Scripts on programs of Core, as text: what they make, and that it means the same.

use certen_core::{Program, parse_program, print_term};
use certen_derive::{Derived, Refused, derive, script};
use certen_rewrite::{Agreement, agree};
use certen_syntax::{Diagnostics, Name, Sources};

fn core(text: &str) -> Program {
    let mut sources = Sources::new();
    let file = sources.add("t.core", text);
    parse_program(&sources, file).unwrap_or_else(|errors| panic!("{text}\n{errors:?}"))
}

fn taken(program: &Program, steps: &str) -> Result<Derived, Box<Refused>> {
    let mut sources = Sources::new();
    let mut diagnostics = Diagnostics::new();
    let file = sources.add("script", steps);
    let parsed = script::parse_steps(sources.get(file).unwrap(), file, &mut diagnostics);
    let parsed = parsed.unwrap_or_else(|| panic!("{steps}\n{diagnostics:?}"));
    let tactics = certen_derive::prelude(&mut sources, &mut diagnostics);
    assert!(!diagnostics.has_errors(), "{diagnostics:?}");
    derive(program, Name::new("derived"), &parsed, &tactics, &mut |_| Vec::new())
}

/// Takes the steps, and compares what comes of each with what there was.
fn derived(program: &str, steps: &str) -> Derived {
    let program = core(program);
    let derived = match taken(&program, steps) {
        Ok(derived) => derived,
        Err(refused) => {
            refused.taken.iter().for_each(|taken| eprintln!("{}\n  {}", taken.step.name, text(&taken.after)));
            panic!("step {}: {}\n{}", refused.at, refused.diagnostic.message, refused.diagnostic.notes.join("\n"));
        }
    };
    for step in &derived.taken {
        if std::env::var("SHOW").is_ok() {
            eprintln!("{}\n  {}", step.step.name, text(&step.after));
        }
        for condition in &step.conditions {
            assert!(step.is_proved(), "{}: {condition:?}", step.step.name);
        }
        let agreement = agree(&program, &step.after, 2_000_000);
        assert!(
            matches!(agreement, Agreement::Agrees { elements: 1.., .. }),
            "{}: {agreement:?}\n{}",
            step.step.name,
            step.after
        );
    }
    derived
}

fn text(program: &Program) -> String {
    let bindings: Vec<String> =
        program.bindings.iter().map(|b| format!("{} = {}", b.name, print_term(&program.terms, b.term))).collect();
    bindings.join("\n  ")
}

const MATMUL: &str = "core matmul\nsize m, k, n\nwhere m >= 0, k >= 0, n >= 0\ninput a : f64[m, k]\ninput b : f64[k, n]\n\
    result = gen i in 0..m. gen j in 0..n. sum q in 0..k. a[i, q] * b[q, j]\noutput result\n";

#[test]
fn matmul_tiled() {
    let derived = derived(
        MATMUL,
        "tile_gen(4) at i;
         guard_gen;
         swap_gens at ii;
         tile_gen(4) at j;
         guard_gen everywhere;
         guard_guard everywhere;",
    );
    assert_eq!(
        text(&derived.program),
        "result = trunc_r(4*ceil_div(m, 4) - m, flatten(gen io in 0..ceil_div(m, 4). transpose(trunc_r(4*ceil_div(n, 4) - n, \
         flatten(gen jo in 0..ceil_div(n, 4). gen ji in 0..4. gen ii in 0..4. guard(ji + 4*jo < n && ii + 4*io < m, \
         sum q in 0..k. a[ii + 4*io, q] * b[q, ji + 4*jo]))))))"
    );
}

#[test]
fn matmul_there_and_back() {
    let steps = "tile_gen(4) at i; guard_gen; swap_gens at ii; tile_gen(4) at j;
         backwards tile_gen(0); backwards swap_gens; backwards guard_gen; backwards tile_gen(0);";
    let derived = derived(MATMUL, steps);
    assert_eq!(text(&derived.program), "result = gen i in 0..m. gen j in 0..n. sum q in 0..k. a[i, q] * b[q, j]");
}
