//! Scripts on programs of Core, as text: what they make, and that it means the same.

use certen_core::script;
use certen_core::{Program, parse_program, print_term};
use certen_derive::{Derived, Refused, derive};
use certen_syntax::{Diagnostic, Diagnostics, Name, Sources};
use certen_validate::{Agreement, agree};

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
            panic!("step {}: {}\n{}", refused.at, refused.diagnostic.message, refused.diagnostic.notes.join("\n"));
        }
    };
    for step in &derived.taken {
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

/// How often each construct that moves elements stands in a program: generations, concatenations, truncations,
/// transpositions, flattenings, splits, paddings.
fn moves(program: &Program) -> [usize; 7] {
    let text = text(program);
    ["gen ", "concat(", "trunc_", "transpose(", "flatten(", "split(", "pad_"].map(|word| text.matches(word).count())
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
    assert_eq!(moves(&derived.program), [10, 2, 2, 1, 2, 0, 0]);
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
         range_gen(0, max(h - 2, 0)) at i#2;
         swap_gens at i#2;
         split_gen(min(w, 1)) at j#2;
         split_gen(max(w - 1, min(w, 1))) at j#3;
         shift_gen(0) at j#3;
         range_gen(0, max(w - 2, 0)) at j#3;
         swap_gens at j#2;
         swap_gens at j#3;
         swap_gens at j#4;
         tile_gen(64) at i#3;
         guard_gen at io;
         split_gen(floor_div(max(h - 2, 0), 64)) at io;
         swap_gens at ii in io#1;
         tile_gen(64) at j in io#1;
         guard_gen at jo;
         split_gen(floor_div(max(w - 2, 0), 64)) at jo;
         shift_gen(0) at jo#2;
         shift_gen(0) at io#2;
         swap_gens at ii in io#2;
         tile_gen(64) at j in io#2;
         guard_gen at jo in io#2;
         guard_guard everywhere;
         simplify;
         swap_gens at ji in jo#1;
         bind(rows, { gen r in 0..66. gen c in 0..64. x[64*io + r, 64*jo + c] + x[64*io + r, 64*jo + c + 1] + x[64*io + r, 64*jo + c + 2] }) at ii in jo#1;",
    );
    assert_eq!(moves(&derived.program), [21, 6, 3, 7, 3, 0, 0]);
    let text = text(&derived.program);
    let tile = "gen jo in 0..floor_div(max(w - 2, 0), 64). transpose(let rows = gen r in 0..66. gen c in 0..64. \
        x[64*io + r, c + 64*jo] + x[64*io + r, c + 64*jo + 1] + x[64*io + r, c + 64*jo + 2] in \
        gen ii in 0..64. gen ji in 0..64. rows[ii, ji] + rows[ii + 1, ji] + rows[ii + 2, ji])";
    assert!(text.contains(tile), "{text}");
}

/// What is said of a step that cannot be taken: the code, the message, and a part of a note or help.
fn refused(program: &str, steps: &str) -> (String, String, String) {
    let refused = taken(&core(program), steps).expect_err(steps);
    let error = &refused.diagnostic;
    let more: Vec<String> = error.notes.iter().cloned().chain(error.advice()).collect();
    (error.code.to_string(), error.message.clone(), more.join("\n"))
}

#[test]
fn mistakes_are_explained() {
    for (steps, code, message, more) in [
        ("tile_gem(4) at i;", "E0901", "there is no rewrite `tile_gem`", "did you mean `tile_gen`?"),
        ("tile_gen at i;", "E0901", "`tile_gen` takes", "k, a positive number"),
        ("tile_gen(n) at i;", "E0901", "`tile_gen` needs a positive number for k", ""),
        ("tile_gen(0) at i;", "E0901", "`tile_gen` needs a positive number for k", ""),
        ("split_gen(z) at i;", "E0901", "there is no size or index `z` in the program at this step", "binds i, j, q"),
        ("tile_gen(4) at p;", "E0902", "nothing binds `p` at this step", "the program binds i, j, q"),
        ("tile_gen(4) at i#2;", "E0902", "there is one such place, and no number 2", ""),
        ("tile_gen(4) at i in j;", "E0902", "nothing binds `i` in that place at this step", ""),
        ("tile_gen(4) at { x[_] };", "E0902", "there is no term like `x[_]` at this step", ""),
        ("tile_gen(4) at { a[] };", "E0902", "this pattern cannot be read", ""),
        ("inline;", "E0903", "there is no place where `inline` fits", "it rewrites let x = A in B(x)"),
        ("swap_gens at j;", "E0903", "`swap_gens` does not fit here", "is not a generation"),
        ("split_gen(4) at i;", "E0904", "`split_gen` needs a condition that fails here", "4 <= m: not for m = 0"),
        ("split_gen(j) at i;", "E0903", "`split_gen` does not fit here", "j is not bound around this place"),
        ("tile_gen(4, i, j) at j;", "E0903", "`tile_gen` does not fit here", "the name i is taken"),
        ("simplify;", "E0903", "there is no place where `simplify` fits", "it would change nothing"),
        ("bind(y, { a[i, 0] });", "E0903", "there is no place where `bind` fits", ""),
        ("bind(a, { a[_, q] });", "E0903", "there is no place where `bind` fits", "the name a is taken"),
    ] {
        let found = refused(MATMUL, steps);
        assert!(
            found.0 == code && found.1.starts_with(message) && found.2.contains(more),
            "{steps}\n{}: {}\n{}",
            found.0,
            found.1,
            found.2
        );
    }
    // The place is marked.
    let (_, _, notes) = refused(MATMUL, "tile_gen(4) at i; swap_gens at ii;");
    assert!(notes.contains("flatten(gen io in 0..ceil_div(m, 4). >>> gen ii in 0..4. guard("), "{notes}");
}

#[test]
fn what_the_caller_finds_refuses_a_step() {
    let program = core(MATMUL);
    let mut sources = Sources::new();
    let file = sources.add("script", "tile_gen(4) at i; tile_gen(2) at j;");
    let steps = script::parse_steps(sources.get(file).unwrap(), file, &mut Diagnostics::new()).unwrap();
    let mut count = 0;
    let refused = derive(&program, Name::new("t"), &steps, &[], &mut |_| {
        count += 1;
        let error = Diagnostic::error(certen_syntax::Code::E0701, None, "too far").note("for example");
        if count == 2 { vec![error] } else { Vec::new() }
    })
    .expect_err("the second step is refused");
    assert_eq!((refused.at, refused.taken.len(), refused.diagnostic.code.to_string()), (1, 1, "E0905".to_string()));
    assert!(refused.diagnostic.message.ends_with("too far") && refused.diagnostic.notes.len() == 2);
}

#[test]
fn no_program_is_too_large_or_too_deep() {
    let deep = |levels: usize| {
        let terms = "abs(".repeat(levels) + "x[0]" + &")".repeat(levels);
        format!("core t\nsize n\nwhere n >= 1\ninput x : f64[n]\nresult = {terms}\noutput result\n")
    };
    let (code, _, notes) = refused(&deep(30_000), "simplify;");
    assert_eq!(code, "E0903", "{notes}");
    // What is just shallow enough is no trouble for any rewrite that goes to the bottom.
    let bottom = core(&deep(490).replace("x[0]", "guard(n >= 1, x[0])"));
    for steps in
        ["simplify;", "backwards times_one;", "bind(t, { x[0] });", "guard_true everywhere;", "tile(2) at { x };"]
    {
        let found = taken(&bottom, steps);
        assert!(found.is_ok(), "{steps}: {:?}", found.err().map(|refused| refused.diagnostic.message));
    }
    assert!(taken(&bottom, "backwards inline(t, { x[0] });").is_ok_and(|derived| derived.program.bindings.len() == 2));
    // As a tree it is 2^60 terms.
    let doubled: String = (1..60).map(|at| format!("y{at} = y{0} + y{0}\n", at - 1)).collect();
    let text = format!("core t\nsize n\nwhere n >= 1\ninput x : f64[n]\ny0 = x[0]\n{doubled}output y59\n");
    let inlined = "inline; ".repeat(59);
    let (code, _, notes) = refused(&text, &inlined);
    assert!(code == "E0903" && notes.contains("terms; a derivation can have"), "{notes}");
    // Patterns.
    for long in ["+ x[0] ".repeat(20_000), "* (x[0] ".repeat(100), "- x[0] * x[0] ".repeat(5_000)] {
        let (code, _, notes) = refused(
            &deep(1),
            &format!("bind(t, {{ x[0] {long}}});", long = long.clone() + &")".repeat(long.matches('(').count())),
        );
        assert!(code == "E0903" && notes.contains("in a pattern"), "{notes}");
    }
    let index = "+ n ".repeat(20_000);
    let (code, message, _) = refused(&deep(1), &format!("tile(2) at {{ x[0 {index}] }};"));
    assert!(code == "E0902" && message.contains("operators in a pattern"), "{message}");
    // A rewrite that never ends.
    assert!(taken(&core(&deep(1)), "backwards times_one everywhere;").is_ok());
}

/// Each piece writes its parameter twice: thirty of them would write it 2^30 times.
#[test]
fn pieces_do_not_make_patterns_too_long() {
    for (first, twice, says) in [
        ("bind(t, { p });", "({ p + p })", "its patterns have more than"),
        ("tile(2) at { p };", "({ p + p })", "its patterns have more than"),
        // Short patterns, but very many of them.
        ("simplify at p;", "({ x[n - 1] + x[n - 1] + x[n - 1] }); piece(p)", "its patterns have more than"),
        // Index expressions have a limit of their own.
        ("split_gen(p) at i;", "(max(mod(p, 7), floor_div(p, 3)))", "this argument is too large"),
    ] {
        let mut text = format!("derivation piece0(p) {{ {first} }}\n");
        for at in 1..=30 {
            let steps = twice.replace("piece", &format!("piece{}", at - 1));
            text += &format!("derivation piece{at}(p) {{ piece{}{steps}; }}\n", at - 1);
        }
        let mut sources = Sources::new();
        let mut diagnostics = Diagnostics::new();
        let file = sources.add("pieces", text);
        let pieces = script::parse_tactics(sources.get(file).unwrap(), file, &mut diagnostics);
        let given = if first.starts_with("split") { "n" } else { "{ x[0] }" };
        let file = sources.add("script", format!("piece30({given});"));
        let steps = script::parse_steps(sources.get(file).unwrap(), file, &mut diagnostics).expect("a script");
        assert!(!diagnostics.has_errors() && pieces.len() == 31, "{diagnostics:?}");
        let refused = derive(&core(MATMUL), Name::new("t"), &steps, &pieces, &mut |_| Vec::new()).expect_err(first);
        let error = &refused.diagnostic;
        assert!(error.code.to_string() == "E0901" && error.message.contains(says), "{first}: {}", error.message);
    }
}

#[test]
fn numbers_that_do_not_fit_are_refused() {
    let most = i64::MAX;
    for steps in [
        format!("tile_gen({most}) at i; tile_gen({most}) at ii; tile_gen({most}) at ii;"),
        format!("tile_gen(2) at i; backwards guard_true({most}*io < {most}*ii + n) at j; tile_gen({most}) at io;"),
        format!("split_gen({most}*m) at i;"),
        format!("shift_gen({most}) at i; shift_gen(-{most}) at i; shift_gen({most} - m) at i;"),
        format!("tile({most}) at i; tile({most}) at i; merge_gens; merge_gens; tile({most}) at i;"),
    ] {
        if let Ok(derived) = taken(&core(MATMUL), &steps) {
            assert!(derived.program.check().is_ok(), "{steps}");
        }
    }
}
