//! The programs of `examples/atl`: the evaluation of *A Verified Compiler for a Functional Tensor Language*, Fig. 6.
//!
//! Every program computes what its mathematics says, written out below as loops over plain numbers; one that is
//! derived from another equals it in the prime field, by proof and by test; loops and native code agree with the
//! evaluator. Elements are small whole numbers, so all of that holds bit for bit. Sizes are such that tiles fit, do
//! not fit, are larger than the tensor, and 0 and 1; none is square. `tests/by_hand` has the same programs scheduled
//! by hand, which have to agree too. `examples/atl/README.md` shows what each program is made of, with Fig. 6's
//! numbers, and is checked (`CERTEN_BLESS` writes it anew).

use std::path::{Path, PathBuf};
use std::{env, fs};

use certen::road::core::Program;
use certen::road::core::script::{Derivation, ScriptStep, Tactic};
use certen::road::derive::{prelude, rewrites};
use certen::road::figures::reshapes::reshapes;
use certen::road::lang::ast::Item;
use certen::road::lang::format::format;
use certen::road::lang::parse::parse;
use certen::road::syntax::{Diagnostics, Sources};
use certen::road::validate::{Agreement, agree};
use certen::{Array, Backend, Call, DomainChoice, Module, Name, Options, Output, RunOptions, Values};

/// A function of `examples/atl`, what the paper calls it, and its row of Fig. 6.
struct Row {
    file: &'static str,
    function: &'static str,
    called: &'static str,
    /// Generations, concatenations, truncations, transpositions, flattenings, splits.
    paper: [u64; 6],
}

const fn row(file: &'static str, function: &'static str, called: &'static str, paper: [u64; 6]) -> Row {
    Row { file, function, called, paper }
}

const FIG_6: [Row; 13] = [
    row("conv", "gather", "Gather", [3, 0, 0, 0, 0, 0]),
    row("conv", "scatter", "Scatter", [3, 0, 0, 0, 0, 0]),
    row("conv", "im2col_conv", "Im2col Conv", [3, 0, 0, 0, 0, 0]),
    row("conv", "im2col_mat", "Im2col Mat", [7, 0, 0, 0, 0, 0]),
    row("matmul", "matmul", "Matmul", [2, 0, 0, 0, 0, 0]),
    row("matmul", "tiled_matmul", "Tiled Matmul", [4, 0, 2, 1, 2, 0]),
    row("matmul", "tiled_tails_matmul", "Tiled+Tails Matmul", [10, 2, 2, 1, 2, 0]),
    row("blur", "two_stage_blur", "Two-Stage Blur", [4, 0, 0, 0, 0, 0]),
    row("blur", "fused_blur", "Fused Blur", [2, 0, 0, 0, 0, 0]),
    row("blur", "fused_tails_blur", "Fused+Tails Blur", [8, 4, 0, 0, 0, 0]),
    row("blur", "tiled_blur", "Tiled+Tails+Staged Blur", [21, 6, 3, 7, 3, 0]),
    row("tensor_add", "tensor_add", "Tensor Add", [4, 0, 0, 0, 0, 0]),
    row("tensor_add", "split_tensor_add", "Split Tensor Add", [1, 0, 0, 0, 0, 3]),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/atl")
}

fn read(file: &str) -> String {
    let path = folder().join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn options(function: &str) -> Options {
    Options { function: Some(Name::new(function)), ..Options::default() }
}

fn module(file: &str, function: &str) -> Module {
    let path = folder().join(format!("{file}.ten"));
    let module = Module::from_file(path, &options(function)).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(module.warnings().is_empty(), "{function}: {:?}", module.warnings());
    module
}

/// The most elements that loops are interpreted for.
const MOST_INTERPRETED: usize = 300;

/// Sizes by name, and inputs made from them.
type Sizes<'a> = &'a [(&'a str, i64)];

/// Whole numbers below a bound, the same for every program that has an input of this name.
fn numbers(name: &str, count: usize, below: u64) -> Vec<f64> {
    let mut state = name.bytes().fold(1u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    (0..count).map(|_| next() as f64).collect()
}

/// A call with these sizes, and its inputs in the order of the signature.
fn call(module: &Module, sizes: Sizes<'_>, below: u64) -> (Call, Vec<Vec<f64>>) {
    let (mut call, mut inputs) = (Call::new(), Vec::new());
    for (name, size) in sizes {
        call = call.dim(*name, *size);
    }
    for input in &module.core().inputs {
        let value = |name: Name| sizes.iter().find(|(n, _)| Name::new(n) == name).map(|(_, size)| *size);
        let shape: Vec<usize> = input.ty.shape.iter().map(|size| size.eval(&value).unwrap() as usize).collect();
        let elements = numbers(input.name.as_str(), shape.iter().product(), below);
        inputs.push(elements.clone());
        call = call.input(input.name, Array::from_vec(&shape, elements).unwrap());
    }
    (call, inputs)
}

fn run(module: &Module, call: &Call, backend: Backend, domain: DomainChoice) -> (Vec<usize>, Vec<String>) {
    let options = RunOptions { backend, domain, ..RunOptions::default() };
    let (outputs, _) = module.run_with(call, &options).unwrap_or_else(|failure| panic!("{failure}"));
    let [output] = outputs.as_slice() else { panic!("{} outputs", outputs.len()) };
    (output.shape.clone(), shown(output))
}

fn shown(output: &Output) -> Vec<String> {
    match &output.values {
        Values::Array(array) => (0..array.len()).filter_map(|at| array.get(at)).map(|v| v.to_string()).collect(),
        Values::Field(values) => values.iter().map(ToString::to_string).collect(),
        _ => panic!("neither numbers nor elements of the field"),
    }
}

/// Checks programs that compute the same, the original first, against a direct computation at several sizes.
fn check(
    programs: &[Module],
    all_sizes: &[Sizes<'_>],
    direct: impl Fn(&dyn Fn(&str) -> usize, &[Vec<f64>]) -> Vec<f64>,
) {
    for sizes in all_sizes {
        let size = |name: &str| sizes.iter().find(|(n, _)| *n == name).map_or(0, |(_, size)| *size as usize);
        let mut original = None;
        for module in programs {
            let name = module.core().name;
            let (small, inputs) = call(module, sizes, 9);
            let wanted: Vec<String> = direct(&size, &inputs).iter().map(|v| format!("{:?}", v + 0.0)).collect();
            let found = run(module, &small, Backend::Interp, DomainChoice::Machine);
            assert_eq!(found.1, wanted, "{name} at {sizes:?} differs from its mathematics");
            let native = run(module, &small, Backend::Native, DomainChoice::Machine);
            assert_eq!(native, found, "{name} at {sizes:?}: native code differs from the evaluator");
            let (large, _) = call(module, sizes, 1 << 30);
            let exact = run(module, &large, Backend::Interp, DomainChoice::Field);
            if exact.1.len() <= MOST_INTERPRETED {
                let loops = run(module, &large, Backend::Loops, DomainChoice::Field);
                assert_eq!(loops, exact, "{name} at {sizes:?}: loops differ from the evaluator");
            }
            let original = original.get_or_insert_with(|| exact.clone());
            assert_eq!(exact, *original, "{name} at {sizes:?} differs from {}", programs[0].core().name);
        }
    }
}

fn modules(file: &str, functions: &[&str]) -> Vec<Module> {
    functions.iter().map(|function| module(file, function)).collect()
}

#[test]
fn matmul() {
    let programs = modules("matmul", &["matmul", "tiled_matmul", "tiled_tails_matmul"]);
    let sizes = [[8, 5, 12], [7, 3, 9], [0, 2, 5], [5, 2, 0], [1, 1, 1], [3, 0, 2], [4, 1, 7], [13, 2, 4], [2, 6, 11]];
    let sizes = sizes.map(|[m, k, n]| [("m", m), ("k", k), ("n", n)]);
    check(&programs, &sizes.each_ref().map(|s| &s[..]), |size, inputs| {
        let (m, k, n) = (size("m"), size("k"), size("n"));
        let mut c = vec![0.0; m * n];
        for (i, j, q) in product3(m, n, k) {
            c[i * n + j] += inputs[0][i * k + q] * inputs[1][q * n + j];
        }
        c
    });
}

fn product3(a: usize, b: usize, c: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..a).flat_map(move |i| (0..b).flat_map(move |j| (0..c).map(move |k| (i, j, k))))
}

#[test]
fn tensor_add() {
    let programs = modules("tensor_add", &["tensor_add", "split_tensor_add"]);
    let sizes = [0, 1, 2, 7].map(|m| [("m", m)]);
    check(&programs, &sizes.each_ref().map(|s| &s[..]), |_, inputs| {
        inputs[0].iter().zip(&inputs[1]).map(|(a, b)| a + b).collect()
    });
}

#[test]
fn gather_and_scatter() {
    let programs = modules("conv", &["gather", "scatter", "gather_again"]);
    let sizes = [[2, 3, 5, 4], [1, 1, 1, 1], [0, 2, 3, 1], [3, 0, 4, 2], [2, 3, 0, 1], [1, 2, 6, 0], [1, 2, 7, 3]];
    let sizes = sizes.map(|[b, c, w, k]| [("b", b), ("c", c), ("w", w), ("k", k)]);
    check(&programs, &sizes.each_ref().map(|s| &s[..]), |size, inputs| {
        let (b, c, w, k) = (size("b"), size("c"), size("w"), size("k"));
        convolution(b, k, w, &|n, q, p| {
            let at = |h: usize, r: usize| inputs[0][(n * c + h) * w + p + r] * inputs[1][(q * c + h) * w + r];
            (0..c).map(|h| (0..w - p).map(|r| at(h, r)).sum::<f64>()).sum()
        })
    });
}

#[test]
fn im2col() {
    let programs = modules("conv", &["im2col_conv", "im2col_mat"]);
    let sizes = [[2, 3, 7, 4, 3], [1, 1, 1, 1, 1], [0, 2, 3, 1, 2], [2, 1, 3, 2, 4], [2, 2, 3, 1, 0], [3, 0, 5, 2, 2]];
    let sizes = sizes.map(|[b, c, w, k, r]| [("b", b), ("c", c), ("w", w), ("k", k), ("r", r)]);
    check(&programs, &sizes.each_ref().map(|s| &s[..]), |size, inputs| {
        let (b, c, w, k, r) = (size("b"), size("c"), size("w"), size("k"), size("r"));
        convolution(b, k, w + 1 - r, &|n, q, p| {
            let at = |h: usize, s: usize| inputs[0][(n * c + h) * w + p + s] * inputs[1][(q * c + h) * r + s];
            (0..c).map(|h| (0..r).map(|s| at(h, s)).sum::<f64>()).sum()
        })
    });
}

fn convolution(b: usize, k: usize, w: usize, at: &dyn Fn(usize, usize, usize) -> f64) -> Vec<f64> {
    product3(b, k, w).map(|(n, q, p)| at(n, q, p)).collect()
}

#[test]
fn a_kernel_with_one_element() {
    let programs = modules("conv", &["conv1", "conv1_collapsed"]);
    let sizes = [[5, 8], [5, 7], [8, 5], [0, 3], [1, 1], [3, 0], [1, 3]].map(|[m, n]| [("m", m), ("n", n)]);
    check(&programs, &sizes.each_ref().map(|s| &s[..]), |size, inputs| {
        let at = |i: usize| i.checked_sub(2).and_then(|from| inputs[0].get(from)).copied().unwrap_or(0.0);
        (0..size("n")).map(at).collect()
    });
}

#[test]
fn pipeline() {
    let programs = modules("pipeline", &["pipeline", "tiled_pipeline"]);
    let sizes = [0, 1, 7, 8, 9, 16, 21].map(|n| [("n", n)]);
    check(&programs, &sizes.each_ref().map(|s| &s[..]), |size, inputs| {
        let square = |i: usize| inputs[0][i] * inputs[0][i];
        (0..size("n")).map(|i| if i == 0 { square(i) } else { square(i - 1) + square(i) }).collect()
    });
}

/// The 3 x 3 box sum.
fn box_sum(size: &dyn Fn(&str) -> usize, inputs: &[Vec<f64>]) -> Vec<f64> {
    let (h, w) = (size("h"), size("w"));
    let near = |i: usize, n: usize| i.saturating_sub(1)..(i + 2).min(n);
    let at = |i: usize, j: usize| near(i, h).map(|r| near(j, w).map(|c| inputs[0][r * w + c]).sum::<f64>()).sum();
    (0..h).flat_map(|i| (0..w).map(move |j| (i, j))).map(|(i, j)| at(i, j)).collect()
}

/// Heights and widths: all pairs of two lists.
fn images(heights: &[i64], widths: &[i64]) -> Vec<[(&'static str, i64); 2]> {
    heights.iter().flat_map(|&h| widths.iter().map(move |&w| [("h", h), ("w", w)])).collect()
}

#[test]
fn blur() {
    let programs = modules("blur", &["two_stage_blur", "fused_blur", "fused_tails_blur"]);
    let sizes = images(&[0, 1, 2, 3, 6], &[0, 1, 2, 5, 7]);
    check(&programs, &sizes.iter().map(|s| &s[..]).collect::<Vec<_>>(), box_sum);
}

/// 66 and 130 hold one and two tiles of 64 and the edge; at 64 and 65 no tile fits, and at 131 one column is left.
#[test]
fn tiled_blur() {
    let programs = modules("blur", &["two_stage_blur", "tiled_blur"]);
    let mut sizes = images(&[0, 1, 63, 66], &[0, 1, 65, 131]);
    sizes.extend(images(&[64, 67, 130], &[2, 66]));
    sizes.push([("h", 131), ("w", 133)]);
    check(&programs, &sizes.iter().map(|s| &s[..]).collect::<Vec<_>>(), box_sum);
}

/// The same program with tiles of 4 x 4, at every size around them.
#[test]
fn blur_in_small_tiles() {
    let text = read("blur.ten").replace("f64", "@").replace("64", "4").replace("65", "5").replace("66", "6");
    let small = text.replace('@', "f64");
    let tiled = Module::from_text("small.ten", small, &options("tiled_blur")).unwrap_or_else(|f| panic!("{f}"));
    let mut programs = modules("blur", &["two_stage_blur"]);
    programs.push(tiled);
    let sizes = images(&[0, 1, 2, 3, 5, 6, 7, 10, 13], &[0, 1, 2, 4, 6, 9, 10, 14]);
    check(&programs, &sizes.iter().map(|s| &s[..]).collect::<Vec<_>>(), box_sum);
}

/// A bufferless version would hide that the sums along the rows are kept for one tile, inside the loops over tiles.
#[test]
fn the_buffer_of_a_tile_is_inside_of_the_loops_over_tiles() {
    let blur = derived(&module("blur", "tiled_blur")).to_string();
    let inside = "gen jo in 0..floor_div(max(w - 2, 0), 64). let tile = gen p in 0..66. gen q in 0..64. ";
    assert!(blur.contains(inside), "{blur}");
    let pipeline = derived(&module("pipeline", "tiled_pipeline")).to_string();
    assert!(pipeline.contains("gen io in 0..ceil_div(n, 8). let tile = gen t in 0..9. "), "{pipeline}");
}

/// The program that a derived function is computed by; of others, the program itself.
fn derived(module: &Module) -> &Program {
    module.derived().unwrap_or_else(|failure| panic!("{failure}")).unwrap_or(module.core())
}

/// What is derived, with the file that it was written in by hand; none if it was not.
const DERIVED: [(&str, &str, Option<&str>); 11] = [
    ("conv", "scatter", Some("conv")),
    ("conv", "gather_again", None),
    ("conv", "im2col_mat", Some("conv")),
    ("conv", "conv1_collapsed", Some("conv")),
    ("matmul", "tiled_matmul", Some("matmul")),
    ("matmul", "tiled_tails_matmul", Some("matmul")),
    ("blur", "fused_blur", Some("blur")),
    ("blur", "fused_tails_blur", Some("blur")),
    ("blur", "tiled_blur", Some("tiled_blur")),
    ("tensor_add", "split_tensor_add", Some("tensor_add")),
    ("pipeline", "tiled_pipeline", Some("pipeline")),
];

/// Every condition of every rewrite is proved, for all sizes.
#[test]
fn derivations_are_proved() {
    for (file, function, _) in DERIVED {
        let module = module(file, function);
        assert!(module.derived().unwrap_or_else(|failure| panic!("{failure}")).is_some(), "{function}");
        for rewriting in module.rewritings() {
            for taken in rewriting.taken {
                assert!(taken.is_proved(), "{function}: {} {:?}", taken.step, taken.conditions);
            }
        }
        assert!(module.validation().unwrap_or_else(|failure| panic!("{failure}")).proved, "{function}");
    }
}

/// What a person wrote and what a script made are the same tensors.
#[test]
fn derivations_agree_with_what_was_written_by_hand() {
    for (file, function, by_hand) in DERIVED {
        let Some(by_hand) = by_hand else { continue };
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/by_hand/{by_hand}.ten"));
        let written = Module::from_file(path, &options(function)).unwrap_or_else(|failure| panic!("{failure}"));
        let module = module(file, function);
        let agreement = agree(written.core(), derived(&module), 20_000_000);
        assert!(matches!(agreement, Agreement::Agrees { elements: 1.., .. }), "{function}: {agreement:?}");
    }
}

/// The derivations of `examples/atl`.
fn scripts() -> Vec<Derivation> {
    let mut scripts = Vec::new();
    for file in ["blur", "conv", "matmul", "pipeline", "tensor_add"] {
        let (mut sources, mut diagnostics) = (Sources::new(), Diagnostics::new());
        let id = sources.add(file, read(&format!("{file}.ten")));
        let items = parse(sources.get(id).unwrap(), id, &mut diagnostics).items;
        scripts.extend(items.into_iter().filter_map(|item| match item {
            Item::Derive(script) => Some(script),
            _ => None,
        }));
        assert!(!diagnostics.has_errors(), "{file}: {diagnostics:?}");
    }
    scripts
}

/// The rewrites and pieces that steps name, and those that the pieces do.
fn used(steps: &[ScriptStep], pieces: &[Tactic]) -> Vec<Name> {
    let mut names: Vec<Name> = steps.iter().map(|step| step.name).collect();
    let mut at = 0;
    while let Some(name) = names.get(at).copied() {
        let inner = pieces.iter().filter(|piece| piece.name == name).flat_map(|piece| &piece.steps);
        names.extend(inner.map(|step| step.name));
        at += 1;
    }
    names
}

/// `settle` is short for two rewrites, and both of them are used elsewhere.
const PIECES_OF_ONE_SCRIPT: [&str; 1] = ["settle"];

/// The tiled blur is no trick: its script is short, and made of what other scripts are made of.
#[test]
fn the_script_of_the_tiled_blur_is_short_and_has_nothing_of_its_own() {
    let pieces = prelude(&mut Sources::new(), &mut Diagnostics::new());
    let scripts = scripts();
    assert_eq!(scripts.len(), DERIVED.len());
    let blur = scripts.iter().find(|script| script.name == Name::new("tiled_blur")).unwrap();

    let text = read("blur.ten");
    let (_, text) = text.split_once("derive tiled_blur from two_stage_blur {\n").unwrap();
    let (text, _) = text.split_once("\n}").unwrap();
    assert!(text.lines().count() <= 40, "{text}");
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.starts_with("//")).collect();
    assert_eq!(lines.len(), blur.steps.len(), "a step a line");
    for (line, step) in lines.iter().zip(&blur.steps) {
        assert!(line.starts_with(step.name.as_str()) && line.ends_with(';'), "{line} is not {step}");
    }

    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/rewrites.md");
    let documented = fs::read_to_string(page).unwrap();
    for name in used(&blur.steps, &pieces) {
        let is_piece = pieces.iter().any(|piece| piece.name == name);
        assert!(is_piece || rewrites().iter().any(|rewrite| rewrite.name == name.as_str()), "{name} is neither");
        assert!(documented.contains(&format!("\n### {name}\n")), "{name} is not documented");
        let users = scripts.iter().filter(|script| used(&script.steps, &pieces).contains(&name)).count();
        let least = if PIECES_OF_ONE_SCRIPT.contains(&name.as_str()) { 1 } else { 2 };
        assert!(users >= least, "{name} is used by {users} scripts");
    }
}

const TABLE: &str = "<!-- The table below is written by crates/certen/tests/atl.rs -->\n";

#[test]
#[expect(clippy::print_stdout, reason = "the table is what people want to see")]
fn figure_6() {
    let mut table = "| program | function | gen | concat | trunc | transpose | flatten | split |\n".to_owned();
    table += "|---|---|--:|--:|--:|--:|--:|--:|\n";
    for Row { file, function, called, paper } in &FIG_6 {
        let found = reshapes(derived(&module(file, function)));
        let [numbers @ .., pads] = found.0;
        assert_eq!(numbers, *paper, "{called}: {found}");
        assert_eq!(pads, 0, "{called}");
        let cell = |number: &u64| if *number == 0 { "-".into() } else { number.to_string() };
        let cells: Vec<String> = paper.iter().map(cell).collect();
        table += &format!("| {called} | [`{function}`]({file}.ten) | {} |\n", cells.join(" | "));
    }
    println!("{table}");
    let readme = read("README.md");
    let (before, after) = readme.split_once(TABLE).expect("README.md has the mark of the table");
    if env::var_os("CERTEN_BLESS").is_some() {
        fs::write(folder().join("README.md"), format!("{before}{TABLE}\n{table}")).unwrap();
    } else {
        assert_eq!(after.trim(), table.trim(), "run with CERTEN_BLESS=1 to write it anew");
    }
}

#[test]
fn house_style() {
    for entry in fs::read_dir(folder()).unwrap().flatten().filter(|e| e.path().extension().is_some_and(|e| e == "ten"))
    {
        let path = entry.path();
        let text = fs::read_to_string(&path).unwrap();
        let mut sources = Sources::new();
        let file = sources.add("program", text.as_str());
        let formatted = format(sources.get(file).unwrap(), file).unwrap_or_else(|_| panic!("{}", path.display()));
        assert_eq!(text, formatted, "{}", path.display());
    }
}
