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

#[test]
fn matmul_tiled_with_tails() {
    let derived = derived(
        MATMUL,
        "tile_gen(4) at i;
         guard_gen everywhere;
         split_gen(floor_div(m, 4)) at io;
         swap_gens at ii;
         tile_gen(4) at j;
         guard_gen everywhere;
         split_gen(floor_div(n, 4)) at jo;
         shift_gen(0) at jo#2;
         shift_gen(0) at io#2;
         guard_guard everywhere;
         simplify;",
    );
    assert_eq!(derived.program.reshapes().to_string(), "10 gen, 2 concat, 2 trunc, 1 transpose, 2 flatten");
    assert_eq!(
        text(&derived.program),
        "result = trunc_r(4*ceil_div(m, 4) - m, flatten(concat(gen io in 0..floor_div(m, 4). \
         transpose(trunc_r(4*ceil_div(n, 4) - n, flatten(concat(gen jo in 0..floor_div(n, 4). gen ji in 0..4. \
         gen ii in 0..4. sum q in 0..k. a[ii + 4*io, q] * b[q, ji + 4*jo], gen jo in 0..ceil_div(n, 4) - \
         floor_div(n, 4). gen ji in 0..4. gen ii in 0..4. guard(ji + 4*jo + 4*floor_div(n, 4) < n, sum q in \
         0..k. a[ii + 4*io, q] * b[q, ji + 4*jo + 4*floor_div(n, 4)]))))), gen io in 0..ceil_div(m, 4) - \
         floor_div(m, 4). gen ii in 0..4. gen j in 0..n. guard(ii + 4*io + 4*floor_div(m, 4) < m, sum q in \
         0..k. a[ii + 4*io + 4*floor_div(m, 4), q] * b[q, j]))))"
    );
}

#[test]
fn gathering_and_scattering() {
    let derived = derived(
        "core gather\nsize b, c, w, k\nwhere b >= 0, c >= 0, w >= 0, k >= 0\ninput x : f64[b, c, w]\ninput f : f64[k, c, w]\n\
         result = gen n in 0..b. gen q in 0..k. gen p in 0..w. sum h in 0..c. sum r in 0..w. \
         guard(p + r < w, x[n, h, p + r] * f[q, h, r])\noutput result\n",
        "shift_sum(p) at r;
         range_sum(0, w, p <= r) at r;
         swap_sums at h;
         backwards sum_gen at p;
         backwards sum_gen at q;
         backwards sum_gen at n;
         backwards sum_gen at p;",
    );
    assert_eq!(
        text(&derived.program),
        "result = sum r in 0..w. gen n in 0..b. gen q in 0..k. sum h in 0..c. gen p in 0..w. guard(p <= r, \
         x[n, h, r] * f[q, h, r - p])"
    );
}

#[test]
fn a_sum_with_one_summand() {
    let derived = derived(
        "core conv1\nsize n, m\nwhere m >= 0, n >= 0\ninput c : f64[m]\n\
         result = gen i in 0..n. sum j in 0..m. guard(j <= i, (if i == j + 2 then 1.0 else 0.0) * c[j])\noutput result\n",
        "if_guard; guard_mul; times_one; guard_guard; collapse_sum(i - 2);",
    );
    assert_eq!(text(&derived.program), "result = gen i in 0..n. guard(i >= 2 && i <= m + 1, c[i - 2])");
}

#[test]
fn a_pipeline_in_tiles() {
    let derived = derived(
        "core pipeline\nsize n\nwhere n >= 0\ninput f : f64[n]\nsquares = gen i in 0..n. f[i] * f[i]\n\
         result = gen i in 0..n. guard(i >= 1, squares[i - 1]) + squares[i]\noutput result\n",
        "inline at squares;
         beta everywhere;
         tile_gen(8) at i;
         backwards guard_true(0 <= 8*io + ii && 8*io + ii < n) at { f[8*io + ii] * f[8*io + ii] };
         bind(squares, { gen i in 0..9. guard(1 <= 8*io + i && 8*io + i <= n, f[8*io + i - 1] * f[8*io + i - 1]) }) at ii;",
    );
    assert_eq!(
        text(&derived.program),
        "result = trunc_r(8*ceil_div(n, 8) - n, flatten(gen io in 0..ceil_div(n, 8). let squares = gen i in \
         0..9. guard(i + 8*io >= 1 && i + 8*io <= n, f[i + 8*io - 1] * f[i + 8*io - 1]) in gen ii in 0..8. \
         guard(ii + 8*io < n, squares[ii] + squares[ii + 1])))"
    );
}

const BLUR: &str = "core two_stage_blur\nsize h, w\nwhere h >= 0, w >= 0\ninput x : f64[h, w]\n\
    rows = gen i in 0..h. gen j in 0..w. guard(j >= 1, x[i, j - 1]) + x[i, j] + guard(w >= j + 2, x[i, j + 1])\n\
    result = gen i in 0..h. gen j in 0..w. guard(i >= 1, rows[i - 1, j]) + rows[i, j] + guard(h >= i + 2, rows[i + 1, j])\n\
    output result\n";

#[test]
fn blur_fused() {
    let derived = derived(BLUR, "inline at rows; beta everywhere;");
    assert_eq!(
        text(&derived.program),
        "result = gen i in 0..h. gen j in 0..w. guard(i >= 1, guard(j >= 1, x[i - 1, j - 1]) + x[i - 1, j] + \
         guard(w >= j + 2, x[i - 1, j + 1])) + (guard(j >= 1, x[i, j - 1]) + x[i, j] + guard(w >= j + 2, x[i, \
         j + 1])) + guard(h >= i + 2, guard(j >= 1, x[i + 1, j - 1]) + x[i + 1, j] + guard(w >= j + 2, x[i + \
         1, j + 1]))"
    );
}

#[test]
fn blur_in_tiles() {
    let derived = derived(
        BLUR,
        "inline at rows;
         beta everywhere;
         split_gen(min(h, 1)) at i;
         split_gen(max(h - 1, min(h, 1))) at i#2;
         shift_gen(0) at i#2;
         swap_gens at i#2;
         split_gen(min(w, 1)) at j#2;
         split_gen(max(w - 1, min(w, 1))) at j#3;
         shift_gen(0) at j#3;
         backwards swap_gens at j#3;
         simplify at i#2;",
    );
    assert_eq!(text(&derived.program), "");
}
