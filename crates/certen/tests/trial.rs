//! Machine code that computes something else is refused by the trial; what passes is tried once.

#![allow(clippy::print_stderr)]

use std::path::Path;

use certen::road::runtime::{Cache, Compiler, NativeKernel, Signature};
use certen::road::syntax::Code;
use certen::{Choice, Module, Name, Options, TRIAL_BUDGET, Trial};

/// Without a schedule, so that tests know the C code that they change.
fn plain() -> Options {
    Options { schedule: Choice::None, ..Options::default() }
}

fn module(name: &str, text: &str) -> Module {
    Module::from_text(name, text, &plain()).unwrap_or_else(|failure| panic!("{text}\n{failure}"))
}

fn core(body: &str) -> Module {
    module("t.core", &format!("core t\n{body}\n"))
}

/// The same on one thread.
fn serial(body: &str) -> Module {
    let options = Options { parallel: false, ..plain() };
    Module::from_text("t.core", format!("core t\n{body}\n"), &options).unwrap_or_else(|failure| panic!("{failure}"))
}

/// A compiler and a cache, in a folder of their own.
struct Kept {
    cache: Cache,
    /// None for the machine's own.
    compiler: Option<Compiler>,
    folder: tempfile::TempDir,
}

fn cache() -> Kept {
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let cache = Cache::at(folder.path().join("cache")).unwrap_or_else(|error| panic!("{error}"));
    Kept { cache, compiler: None, folder }
}

/// The same with a C compiler that reads something other than what it is given: what `sed` makes of it.
#[cfg(unix)]
fn lying(script: &str) -> Kept {
    use std::os::unix::fs::PermissionsExt;
    let kept = cache();
    let path = kept.folder.path().join("lying");
    let cc = Compiler::find().unwrap_or_else(|error| panic!("{error}")).real_path();
    let text = format!(
        "#!/bin/sh\nfor file; do case $file in *.c) sed -i.bak '{script}' \"$file\"; cp \"$file\" '{}' ;; esac; done\n\
         exec '{}' \"$@\"\n",
        kept.folder.path().join("last.c").display(),
        cc.display(),
    );
    let written = std::fs::write(&path, text)
        .and_then(|()| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)));
    written.unwrap_or_else(|error| panic!("{error}"));
    let compiler = Compiler::at(path).unwrap_or_else(|error| panic!("{error}"));
    Kept { compiler: Some(compiler), ..kept }
}

impl Kept {
    fn build(&self, text: &str, signature: Signature) -> NativeKernel {
        self.try_build(text, signature).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    fn try_build(&self, text: &str, signature: Signature) -> Result<NativeKernel, certen::road::runtime::RuntimeError> {
        let compiler = match &self.compiler {
            Some(compiler) => compiler,
            None => Compiler::find()?,
        };
        NativeKernel::build_with(compiler, &self.cache, text, signature)
    }

    /// Compiles a module and tries the code.
    fn tried(&self, module: &Module) -> Result<Trial, certen::Failure> {
        let c = module.c()?;
        let kernel = self.build(&c.native, module.signature());
        module.try_code(&kernel, &|text, signature| self.try_build(text, signature))
    }

    fn passes(&self, module: &Module) -> Trial {
        self.tried(module).unwrap_or_else(|failure| panic!("{failure}\n{}", module.core()))
    }
}

/// Code that the machine's compiler makes passes; what the lying one makes is refused, every time. The message.
#[cfg(unix)]
#[track_caller]
fn caught(module: &Module, script: &str) -> String {
    assert!(cache().passes(module).elements() > 0);
    let kept = lying(script);
    let mut message = String::new();
    for _ in 0..2 {
        let failure = kept.tried(module).expect_err("the code was changed");
        assert_eq!(failure.diagnostics()[0].code, Code::E0707, "{failure}");
        message = failure.to_string();
    }
    let [given, read] = [module.c().unwrap_or_else(|failure| panic!("{failure}")).native, {
        std::fs::read_to_string(kept.folder.path().join("last.c")).unwrap_or_else(|error| panic!("{error}"))
    }];
    assert_ne!(given, read, "{script} changes nothing");
    message
}

const MATMUL: &str = "input a : f64[70, 33]\ninput b : f64[33, 65]\n\
                      c = gen i in 0..70. gen j in 0..65. sum k in 0..33. a[i, k] * b[k, j]\noutput c";

const SYMBOLIC: &str = "size n\nsize m\ninput a : f64[n, m]\ninput b : f64[m, n]\n\
                        c = gen i in 0..n. gen j in 0..n. sum k in 0..m. a[i, k] * b[k, j]\noutput c";

const MAP: &str = "size n\ninput x : f64[n]\ny = gen i in 0..n. x[i] * f64(2.5) + x[i]\noutput y";

#[test]
#[cfg(unix)]
fn wrong_code_for_given_sizes_is_caught() {
    caught(&core(MATMUL), "s/\\] \\* \\*/] + */");
    caught(&core("input x : f64[1000]\ny = gen i in 0..1000. x[i] * f64(2.5)\noutput y"), "s/2\\.5/2.75/");
    // In the last bit.
    caught(&core("input x : f32[64]\ny = gen i in 0..64. x[i] / f32(3.0)\noutput y"), "s/3\\.0f/3.0000002f/");
    caught(&core("input x : i32[64]\ny = gen i in 0..64. x[i] * i32(7)\noutput y"), "s/7/9/");
}

#[test]
#[cfg(unix)]
fn wrong_code_of_an_automatic_schedule_is_caught() {
    let options = Options { schedule: Choice::Auto, ..Options::default() };
    // Blocks of tiles with the numbers of the tiles, and more operations than single elements are worth.
    let large = "input a : f64[1024, 1024]\ninput b : f64[1024, 1024]\n\
                 c = gen i in 0..1024. gen j in 0..1024. sum k in 0..1024. a[i, k] * b[k, j]\noutput c";
    let batched = "input a : f64[8192, 72, 26]\ninput b : f64[8192, 26, 72]\n\
                   c = gen z in 0..8192. gen i in 0..72. gen j in 0..72. sum k in 0..26. a[z, i, k] * b[z, k, j]\noutput c";
    for body in [MATMUL, SYMBOLIC, large, batched] {
        let module = Module::from_text("t.core", format!("core t\n{body}\n"), &options);
        let module = module.unwrap_or_else(|failure| panic!("{failure}"));
        let message = caught(&module, "s/= (certen_f64x8){0};/= (certen_f64x8){1};/");
        assert_eq!(message.contains("found with smaller numbers"), body == batched, "{message}");
    }
}

#[test]
#[cfg(unix)]
fn wrong_code_for_all_sizes_is_caught() {
    let message = caught(&core(SYMBOLIC), "s/+=/-=/");
    assert!(message.contains("the compiled code gives c[0, 0] = "), "{message}");
    assert!(
        message.contains("but its loops give ") && message.contains(" for n = ") && message.contains("certen doctor")
    );
    // The remainder of a vector loop lacks its last iteration.
    caught(&serial(MAP), "s/i < n;/i < n - (n % 8 == 7);/");
    caught(&serial(MAP), "s/i < n;/i < n - (n == 0 ? 0 : n % 32 == 1);/");
    // Nothing is written where there is one element.
    caught(&serial(MAP), "s/i < n;/i < n \\&\\& n != 1;/");
    // A row is added to what was there.
    caught(&serial(MAP), "s/y\\[i\\] =/y[i] +=/");
    // A vector is.
    caught(&serial(MAP), "s/&y\\[i\\] =/\\&y[i] +=/");
}

#[test]
#[cfg(unix)]
fn code_that_is_wrong_only_between_threads_is_caught() {
    let script = "s/for (int64_t i = begin;/for (int64_t i = begin + (begin > 0);/";
    for body in [MAP, SYMBOLIC] {
        assert!(cache().passes(&core(body)).whole.divided > 0);
        // On a machine that is busy, one thread may come to all of it.
        let found = (0..20).find_map(|_| lying(script).tried(&core(body)).err()).expect("the code was changed");
        assert_eq!(found.diagnostics()[0].code, Code::E0707, "{found}");
    }
}

#[test]
#[cfg(unix)]
fn code_that_is_wrong_only_far_from_the_beginning_is_caught() {
    let large =
        core("input x : f64[1000, 1000]\ny = gen i in 0..1000. gen j in 0..998. x[i, j] + x[i, j + 2]\noutput y");
    // At the end of the first dimension, of the second, in the remainder of the second.
    for condition in ["i > 990", "j > 980", "j >= 984 \\&\\& i > 0"] {
        let message = caught(&large, &format!("s/= \\*(/= (double)({condition}) + *(/"));
        assert!(message.contains("but the program means"), "{message}");
    }
    // What only some vector has is found with smaller numbers, where all elements are looked at.
    let message = caught(&large, "s/= \\*(/= (double)(i % 32 == 17 \\&\\& j % 64 == 24) + *(/");
    assert!(message.contains("found with smaller numbers: 102 for 998, 104 for 1000"), "{message}");
}

#[test]
fn what_has_passed_is_not_tried_again() {
    let kept = cache();
    for body in [MATMUL, SYMBOLIC] {
        let first = kept.passes(&core(body));
        assert!(!first.before && first.whole.elements > 1000 && first.left_out.is_empty(), "{first:?}");
        let again = kept.passes(&core(body));
        assert_eq!(again, Trial { before: true, ..first });
    }
    // The same code for something else would be.
    let other = core(&MATMUL.replace("a[i, k] * b[k, j]", "b[k, j] * a[i, k]"));
    let c = core(MATMUL).c().unwrap_or_else(|failure| panic!("{failure}"));
    let kernel = kept.build(&c.native, other.signature());
    let found = other.try_code(&kernel, &|text, signature| kept.try_build(text, signature));
    assert!(!found.unwrap_or_else(|failure| panic!("{failure}")).before);
    // Nor does a note say anything of code that was compiled again.
    for entry in std::fs::read_dir(kept.cache.directory()).into_iter().flatten().flatten() {
        if entry.path().extension().is_some_and(|ending| ending == "so") {
            // Not in place: it is loaded.
            let damaged = std::fs::remove_file(entry.path()).and_then(|()| std::fs::write(entry.path(), "damaged"));
            damaged.unwrap_or_else(|error| panic!("{error}"));
        }
    }
    assert!(!kept.passes(&core(MATMUL)).before);
}

#[test]
fn every_element_of_large_code_is_looked_at_with_smaller_numbers() {
    let kept = cache();
    let blur = core(
        "input x : f32[500, 700]\n\
         y = gen i in 0..498. gen j in 0..700. (x[i, j] + x[i + 1, j] + x[i + 2, j]) / f32(3.0)\noutput y",
    );
    let found = kept.passes(&blur);
    assert!(found.whole.elements == 0 && found.exact + found.bounded > 50, "{found:?}");
    // 498 is 64 + 50, 700 is 64 + 60 and larger than 500.
    assert_eq!((found.smaller.sizes, found.smaller.elements), (1, 2 * 114 * 124), "{found:?}");
    assert!(found.left_out.is_empty() && found.steps <= TRIAL_BUDGET, "{found:?}");
}

#[test]
fn functions_have_the_bits_of_the_library() {
    let kept = cache();
    let found = kept.passes(&core("input x : f64[100]\ny = gen i in 0..100. exp(x[i]) + sqrt(x[i])\noutput y"));
    assert_eq!((found.whole.elements, found.bounded), (200, 0), "{found:?}");
}

#[test]
fn what_is_too_much_is_left_out_and_says_so() {
    let kept = cache();
    let large = core("input x : f64[100000, 1000]\ny = sum i in 0..100000. sum j in 0..1000. x[i, j]\noutput y");
    let found = kept.passes(&large);
    assert_eq!(found.left_out, ["single elements, the arrays take more than 64 MiB"]);
    assert!(found.smaller.elements > 0, "{found:?}");
}

#[test]
fn the_budget_is_kept() {
    let kept = cache();
    let wide = "size n\nsize m\nsize k\nsize l\ninput a : f32[n, m, k, l]\n\
                b = gen i in 0..n. gen j in 0..m. sum s in 0..k. sum t in 0..l. a[i, j, s, t] * a[i, j, s, t]\noutput b";
    for body in [SYMBOLIC, MAP, wide] {
        let found = kept.passes(&core(body));
        assert!(found.whole.sizes > 20 && found.steps <= TRIAL_BUDGET, "{found:?}");
    }
}

#[test]
fn every_element_type_and_no_dimensions() {
    let kept = cache();
    for elem in ["f32", "f64", "i32", "i64"] {
        let text = format!(
            "input x : {elem}[]\ninput v : {elem}[5]\ny = gen i in 0..5. x * v[i] - x\nz = x\noutput y\noutput z"
        );
        assert_eq!(kept.passes(&core(&text)).whole.elements, 12, "{elem}");
    }
    let text = "size n\ninput b : bool[n]\ninput u : u8[n]\n\
                y = gen i in 0..n. select(b[i], cast.i64(u[i]), i64(-1))\nz = gen i in 0..n. !b[i]\noutput y\noutput z";
    assert!(kept.passes(&core(text)).whole.elements > 1000);
    let empty = core("input x : f64[0]\ny = gen i in 0..0. x[i]\noutput y");
    assert!(kept.passes(&empty).elements() == 0);
}

/// No correct code is refused: the examples, for all sizes, and at some that are no multiples of anything.
#[test]
fn the_examples_pass() {
    let kept = cache();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
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
            let sizes = certen::road::lift::repaired(core, sizes.collect());
            let small = sizes.and_then(|sizes| core.at_sizes(&sizes).ok());
            let small = small.and_then(|core| Module::from_text("t.core", core.to_string(), &Options::default()).ok());
            for module in small.iter().chain([&module]) {
                let found = kept.passes(module);
                tried += usize::from(found.elements() > 0);
                if std::env::var_os("CERTEN_SHOW").is_some() {
                    eprintln!("{}: {found} ({} steps)", file.display(), found.steps);
                }
            }
        }
    }
    assert!(tried >= 60, "{tried}");
}

/// `cargo test --release -p certen --test trial -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
fn how_long_a_first_call_waits() {
    let blur = "size n\nsize m\nwhere n >= 2\ninput x : f64[n, m]\n\
                y = gen i in 0..n - 2. gen j in 0..m. (x[i, j] + x[i + 1, j] + x[i + 2, j]) / f64(3.0)\noutput y";
    for (name, body, sizes) in [("blur of 1000 x 1000", blur, [1000, 1000]), ("product of 64 x 64", SYMBOLIC, [64, 64])]
    {
        let kept = cache();
        let symbolic = core(body);
        let names = symbolic.core().sizes.iter().copied().zip(sizes).collect();
        let fixed = symbolic.core().at_sizes(&names).unwrap_or_else(|error| panic!("{error}"));
        for module in [module("t.core", &fixed.to_string()), symbolic] {
            let c = module.c().unwrap_or_else(|failure| panic!("{failure}"));
            let kernel = kept.build(&c.native, module.signature());
            let start = std::time::Instant::now();
            let found = module.try_code(&kernel, &|text, signature| kept.try_build(text, signature));
            let (time, found) = (start.elapsed(), found.unwrap_or_else(|failure| panic!("{failure}")));
            eprintln!(
                "{name}: compiled in {:?}, tried in {time:?}: {found}",
                kernel.compile_time().unwrap_or_default()
            );
        }
    }
}
