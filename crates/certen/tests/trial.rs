//! Machine code that computes something else is refused by the trial; what passes is tried once.

#![allow(clippy::print_stderr)]

use certen::road::runtime::{Cache, Compiler, NativeKernel};
use certen::road::syntax::Code;
use certen::{Module, Name, Options, Trial, trial};

fn module(name: &str, text: &str) -> Module {
    Module::from_text(name, text, &Options::default()).unwrap_or_else(|failure| panic!("{text}\n{failure}"))
}

fn core(body: &str) -> Module {
    module("t.core", &format!("core t\n{body}\n"))
}

/// A kernel of a module's C text, with a change.
fn built(module: &Module, cache: &Cache, change: impl Fn(&str) -> String) -> NativeKernel {
    let c = module.c().unwrap_or_else(|failure| panic!("{failure}"));
    let text = change(&c.native);
    let compiler = Compiler::find().unwrap_or_else(|error| panic!("{error}"));
    NativeKernel::build_with(compiler, cache, &text, module.signature())
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

struct Kept {
    cache: Cache,
    _folder: tempfile::TempDir,
}

fn cache() -> Kept {
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let cache = Cache::at(folder.path().join("cache")).unwrap_or_else(|error| panic!("{error}"));
    Kept { cache, _folder: folder }
}

fn passes(module: &Module, cache: &Cache) -> Trial {
    let kernel = built(module, cache, str::to_owned);
    trial(module, &kernel).unwrap_or_else(|failure| panic!("{failure}"))
}

#[track_caller]
fn caught(module: &Module, from: &str, to: &str) {
    let kept = cache();
    assert!(passes(module, &kept.cache).exact > 0);
    let sabotage = |text: &str| {
        assert!(text.contains(from), "{from} is not in\n{text}");
        text.replacen(from, to, 1)
    };
    let kernel = built(module, &kept.cache, sabotage);
    for _ in 0..2 {
        let failure = trial(module, &kernel).expect_err("the code was changed");
        assert_eq!(failure.diagnostics()[0].code, Code::E0705);
    }
}

const MATMUL: &str = "input a : f64[70, 33]\ninput b : f64[33, 65]\n\
                      c = gen i in 0..70. gen j in 0..65. sum k in 0..33. a[i, k] * b[k, j]\noutput c";

#[test]
fn sabotaged_code_is_caught() {
    let matmul = core(MATMUL);
    let c = matmul.c().unwrap_or_else(|failure| panic!("{failure}")).native;
    assert!(c.contains("33"), "{c}");
    caught(&matmul, " * ", " + ");
    caught(&core("input x : f64[1000]\ny = gen i in 0..1000. x[i] * f64(2.5)\noutput y"), "2.5", "2.75");
    caught(&core("input x : f32[64]\ny = gen i in 0..64. x[i] / f32(3.0)\noutput y"), "3.0", "3.0000002");
    caught(&core("input x : i32[64]\ny = gen i in 0..64. x[i] * i32(7)\noutput y"), "7", "9");
}

#[test]
fn what_has_passed_is_not_tried_again() {
    let kept = cache();
    let first = passes(&core(MATMUL), &kept.cache);
    assert!(!first.before && first.exact >= 30 && first.bounded == 0, "{first:?}");
    assert_eq!(first.to_string(), format!("the compiled code was run: {} elements have equal bits", first.exact));
    let again = passes(&core(MATMUL), &kept.cache);
    assert!(again.before && again.to_string() == "the compiled code was tried before");
    // The same code for something else would be.
    let other = core(&MATMUL.replace("core t", "core u").replace("a[i, k] * b[k, j]", "b[k, j] * a[i, k]"));
    let kernel = built(&core(MATMUL), &kept.cache, str::to_owned);
    assert!(!trial(&other, &kernel).unwrap_or_else(|failure| panic!("{failure}")).before);
}

#[test]
fn quotients_by_literals_come_out() {
    let kept = cache();
    let mean = core(
        "input x : f32[30, 40]\ny = gen i in 0..30. (sum j in 0..40. x[i, j]) / f32(40.0)\n\
         z = gen i in 0..30. x[i, 0] / f32(6.0) + y[i]\noutput y\noutput z",
    );
    let found = passes(&mean, &kept.cache);
    assert!(found.exact > 20 && found.bounded == 0, "{found:?}");
}

#[test]
fn functions_are_within_their_bound() {
    let kept = cache();
    let found = passes(&core("input x : f64[100]\ny = gen i in 0..100. exp(x[i]) + sqrt(x[i])\noutput y"), &kept.cache);
    assert!(found.exact == 0 && found.bounded > 20, "{found:?}");
}

#[test]
fn what_is_too_much_is_left_out_and_says_so() {
    let kept = cache();
    let large = core("input x : f64[100000, 1000]\ny = sum i in 0..100000. sum j in 0..1000. x[i, j]\noutput y");
    let found = passes(&large, &kept.cache);
    assert_eq!(found.to_string(), "the compiled code was not tried: the arrays take more than 64 MiB");
    let symbolic = core("size n\ninput x : f64[n]\ny = gen i in 0..n. x[i]\noutput y");
    assert_eq!(passes(&symbolic, &kept.cache).left_out.as_deref(), Some("it is for all sizes"));
}

#[test]
fn every_element_type_and_no_dimensions() {
    let kept = cache();
    for elem in ["f32", "f64", "i32", "i64"] {
        let text = format!(
            "input x : {elem}[]\ninput v : {elem}[5]\ny = gen i in 0..5. x * v[i] - x\nz = x\noutput y\noutput z"
        );
        assert!(passes(&core(&text), &kept.cache).exact > 0, "{elem}");
    }
    let text = "input b : bool[9]\ninput u : u8[9]\ny = gen i in 0..9. select(b[i], cast.i64(u[i]), i64(-1))\noutput y";
    assert!(passes(&core(text), &kept.cache).exact > 0);
    let empty = core("input x : f64[0]\ny = gen i in 0..0. x[i]\noutput y");
    assert!(passes(&empty, &kept.cache).left_out.is_some());
}

/// No correct code is refused: the examples, at sizes that are no multiples of anything.
#[test]
fn the_examples_pass() {
    let kept = cache();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut tried = 0;
    for folder in ["linalg", "learning", "fluids", "images", "physics"].map(|name| folder.join(name)) {
        let mut files: Vec<_> =
            std::fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.path()).collect();
        files.sort();
        for file in files.into_iter().filter(|file| file.extension().is_some_and(|ending| ending == "ten")) {
            let function = file.file_stem().and_then(|stem| stem.to_str()).map(Name::new);
            let Ok(module) = Module::from_file(&file, &Options { function, ..Options::default() }) else { continue };
            let core = module.core();
            let sizes = core.sizes.iter().zip([19, 11, 7, 13, 5, 3].iter().cycle()).map(|(name, size)| (*name, *size));
            let Some(sizes) = certen::road::rewrite::repaired(core, sizes.collect()) else { continue };
            let Ok(small) = core.at_sizes(&sizes) else { continue };
            let Ok(module) = Module::from_text("t.core", small.to_string(), &Options::default()) else { continue };
            let found = passes(&module, &kept.cache);
            tried += usize::from(found.left_out.is_none());
            if std::env::var_os("CERTEN_SHOW").is_some() {
                eprintln!("{}: {found}", file.display());
            }
        }
    }
    assert!(tried >= 30, "{tried}");
}
