//! Derived functions from end to end: what they mean, what they are made of, and what is known of them.

use certen::road::syntax::Code;
use certen::{
    Backend, Call, Choice, DomainChoice, Failure, File, FpMode, Input, Kernel, Module, Name, Options, RunOptions,
    Sizing, Texts, Values, functions,
};

const MATMUL: &str = "
fn matmul(a: f64[m, k], b: f64[k, n]) -> f64[m, n] {
    { [i, j] -> sum({ [q] -> a[i, q] * b[q, j] }) }
}

derivation blocks(i, k) {
    tile_gen(k) at i;
    guard_gen;
}

derive rows from matmul { blocks(i, 4); }

derive tiled from rows {
    swap_gens at ii;
    tile_gen(3) at j;
    guard_gen everywhere;
    guard_guard everywhere;
}

schedule tiled { parallelize(io); }

schedule lanes for tiled { unroll(q, 2); }
";

fn options(function: &str) -> Options {
    Options { function: Some(Name::new(function)), ..Options::default() }
}

fn module(text: &str, function: &str) -> Module {
    made(text, &options(function)).unwrap_or_else(|failure| panic!("{failure}"))
}

fn made(text: &str, options: &Options) -> Result<Module, Failure> {
    Module::from_text("t.ten", text, options)
}

fn refused(text: &str, options: &Options) -> Failure {
    made(text, options).and_then(|module| module.c().map(drop)).unwrap_err()
}

#[test]
fn the_meaning_stays_and_the_loops_are_others() {
    let (plain, tiled) = (module(MATMUL, "matmul"), module(MATMUL, "tiled"));
    let (plain_core, core) = (plain.core().to_string(), tiled.core().to_string());
    assert_eq!(plain_core.replace("core matmul", "core tiled"), core);
    let derived = tiled.derived().unwrap().unwrap();
    assert_eq!(tiled.rewritten().unwrap().to_string(), derived.to_string());
    assert!(derived.to_string().starts_with("core tiled\n") && derived.to_string().contains("flatten("), "{derived}");
    let loops = tiled.loops().unwrap().to_string();
    assert!(loops.contains("parallel for io in 0..ceil_div(m, 4)") && loops.contains("for jo in"), "{loops}");
    assert!(tiled.validation().unwrap().proved);
    assert!(plain.derived().unwrap().is_none());
    let steps = tiled.all_steps().unwrap();
    let expected = ["tile_gen(4) at i", "guard_gen", "swap_gens at ii", "tile_gen(3) at j"];
    assert_eq!(steps[..4], expected);
    assert_eq!(steps.last().map(String::as_str), Some("parallelize(io)"));
}

#[test]
fn values_are_those_of_the_function_at_every_size() {
    let unscheduled = Options { schedule: Choice::None, ..options("matmul") };
    let plain = made(MATMUL, &unscheduled).unwrap_or_else(|failure| panic!("{failure}"));
    let tiled = module(MATMUL, "tiled");
    for sizes in [[0, 0, 0], [1, 1, 1], [4, 5, 3], [8, 2, 6], [7, 3, 11], [3, 0, 2]] {
        let call = ["m", "k", "n"].into_iter().zip(sizes).fold(Call::new(), |call, (name, size)| call.dim(name, size));
        let call = call.input("a", Input::Random(1)).input("b", Input::Random(2));
        let field = RunOptions { domain: DomainChoice::Field, backend: Backend::Loops, ..RunOptions::default() };
        let native = RunOptions { backend: Backend::Native, ..RunOptions::default() };
        for options in [&field, &native] {
            let [expected, found] = [&plain, &tiled].map(|module| {
                let (outputs, _) = module.run_with(&call, options).unwrap_or_else(|failure| panic!("{failure}"));
                match &outputs[0].values {
                    Values::Field(elements) => format!("{elements:?}"),
                    Values::Array(array) => format!("{:?}", array.as_slice::<f64>()),
                    Values::Exact(_) | Values::Partial(_) => panic!("not asked for"),
                }
            });
            assert_eq!(expected, found, "at {sizes:?}");
        }
    }
}

#[test]
fn nothing_is_lifted_on_top() {
    let text = "fn chain(a: f64[n, n], b: f64[n, n], c: f64[n, n]) -> f64[n, n] {
        einsum(\"ij,jk,kl->il\", a, b, c)
    }
    derive same from chain { }";
    assert!(module(text, "chain").optimisation().unwrap().is_some());
    let same = module(text, "same");
    assert!(same.optimisation().unwrap().is_none());
    assert_eq!(same.derived().unwrap().unwrap().to_string(), same.core().to_string());
}

#[test]
fn a_derived_function_has_schedules_and_kernels_of_its_own() {
    let lanes = Options { schedule: Choice::Variant(Name::new("lanes")), ..options("tiled") };
    let loops = made(MATMUL, &lanes).unwrap().loops().unwrap().to_string();
    assert!(!loops.contains("parallel") && loops.contains("for jo in"), "{loops}");
    let texts = Texts::read("t.ten", MATMUL);
    let names: Vec<Name> = functions(&texts, &Options::default()).unwrap();
    assert_eq!(names, ["matmul", "rows", "tiled"].map(Name::new));
    let kernel = Kernel::new(texts, &options("tiled"), Sizing::Specialised).unwrap();
    assert_eq!(kernel.name(), Name::new("tiled"));
    assert_eq!(kernel.schedules().len(), 2);
    let shapes = [[5usize, 2], [2, 7]];
    let inputs: Vec<_> =
        ["a", "b"].into_iter().zip(&shapes).map(|(n, s)| (Name::new(n), certen::ElemType::F64, &s[..])).collect();
    let prepared = kernel.prepare(&inputs, &[]).unwrap();
    assert_eq!(prepared.outputs()[0].shape, [5, 7]);
}

#[test]
fn a_certificate_holds_the_rewrites_before_the_steps() {
    let tiled = module(MATMUL, "tiled");
    let certificate = tiled.certificate().unwrap();
    let steps: Vec<&str> = certificate.steps.iter().map(|step| step.step.as_str()).collect();
    assert_eq!(steps, tiled.all_steps().unwrap().iter().map(String::as_str).collect::<Vec<_>>());
    let text = certificate.text();
    assert!(module(MATMUL, "tiled").check_certificate(&text).is_ok());
    // The same program in another way is another certificate's.
    let other = MATMUL.replace("tile_gen(3)", "tile_gen(5)");
    let failure = module(&other, "tiled").check_certificate(&text).unwrap_err();
    assert_eq!(failure.diagnostics()[0].code, Code::E0706);
    let longer = MATMUL.replace("guard_guard everywhere;", "guard_guard everywhere; swap_factors; swap_factors;");
    let failure = module(&longer, "tiled").check_certificate(&text).unwrap_err();
    assert!(failure.to_string().contains("in its field steps"), "{failure}");
}

#[test]
fn proofs_can_be_required_and_roundings_kept() {
    let text = "fn total(x: f64[n]) -> f64 { sum({ [i] -> x[i] }) }
        derive blocks from total { tile_sum(4) at i; }
        fn twice(x: f64[n]) -> f64[n] { { [i] -> 2 * x[i] } }
        derive tiled from twice { tile_gen(4) at i; }";
    let with = |function: &str, fp| Options { fp, require_proof: true, ..options(function) };
    assert!(made(text, &with("blocks", FpMode::Relaxed)).unwrap().c().is_ok());
    assert!(made(text, &with("tiled", FpMode::Strict)).unwrap().c().is_ok());
    let failure = refused(text, &with("blocks", FpMode::Strict));
    assert_eq!(failure.diagnostics()[0].code, Code::E0903);
    assert!(failure.to_string().contains("strict floating point forbids"), "{failure}");
    // What is rounded on the way to a whole number is rounded as well.
    let counted = text.replace("-> f64 { sum({ [i] -> x[i] }) }", "-> i64 { i64(sum({ [i] -> x[i] })) }");
    assert_eq!(refused(&counted, &with("blocks", FpMode::Strict)).diagnostics()[0].code, Code::E0903);
    // Integers are a ring.
    let whole = text.replace("f64", "i64");
    assert!(made(&whole, &with("blocks", FpMode::Strict)).unwrap().c().is_ok());
}

#[test]
fn derivations_and_pieces_are_imported() {
    let main = "import \"lib.ten\"; derive mine from theirs { cut(i, 2); }";
    let lib = "fn f(x: f64[n]) -> f64[n] where n >= 2 { { [i] -> x[i] * x[i] } }
        derive theirs from f { shift_gen(1); } derivation cut(i, at) { split_gen(at) at i; }";
    let file = File { path: "lib.ten".into(), name: Some("lib.ten".into()), text: lib.into() };
    let texts = Texts::known("main.ten", main, vec![file]);
    let mine = Module::from_texts(&texts, &options("mine")).unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(mine.all_steps().unwrap(), ["shift_gen(1)", "split_gen(2) at i"]);
    assert!(mine.c().is_ok());
    let rewritings = mine.rewritings();
    assert_eq!(rewritings.iter().map(|it| it.derivation.name.as_str()).collect::<Vec<_>>(), ["theirs", "mine"]);
    // A mistake in what is imported is shown there.
    let broken =
        File { path: "lib.ten".into(), name: Some("lib.ten".into()), text: lib.replace("shift_gen(1)", "shft(1)") };
    let failure =
        Module::from_texts(&Texts::known("main.ten", main, vec![broken]), &options("mine")).unwrap().c().unwrap_err();
    assert!(failure.to_string().contains("lib.ten:2:32"), "{failure}");
}

#[test]
fn the_function_that_is_run_may_be_derived() {
    let text = "fn f(x: f64[n]) -> f64[n] { { [i] -> x[i] + 1 } } derive main from f { tile_gen(2); }";
    let module = made(text, &Options::default()).unwrap();
    assert!(module.c().unwrap().kernel.contains("t_kernel("));
    let open = "fn f(x: any[...]) { x } derive g from f { beta; }";
    let known = Options { elem: certen::ElemType::F64, ..options("g") };
    assert!(made(open, &known).and_then(|module| module.c().map(drop)).is_err());
}

#[test]
fn long_scripts_and_garbage_are_refused_or_taken() {
    let function = "fn f(x: f64[m, n]) -> f64[m, n] { { [i, j] -> x[i, j] } }\n";
    let there = "swap_gens at i; backwards swap_gens at { transpose(_) };\n".repeat(400);
    let module = module(&format!("{function}derive g from f {{ {there} }}"), "g");
    assert_eq!(module.all_steps().unwrap().len(), 800);
    assert!(module.c().is_ok());
    let many = |steps: String| refused(&format!("{function}derive g from f {{ {steps} }}"), &options("g"));
    // The program grows until it is refused.
    assert!(many("tile_gen(2) everywhere; backwards transpose_twice;".repeat(3000)).diagnostics().len() == 1);
    assert_eq!(many(format!("beta at {{ {}x{} }};", "(".repeat(50_000), ")".repeat(50_000))).diagnostics().len(), 1);
    assert_eq!(many(format!("beta at {{ x{} }};", " + x".repeat(50_000))).diagnostics().len(), 1);
    assert_eq!(many(format!("beta at i{};", " in i".repeat(20_000))).diagnostics().len(), 1);
    assert_eq!(many("nonsense;".repeat(20_000)).diagnostics().len(), 1);
    let tower: String = (0..200).map(|at| format!("derivation t{at}() {{ t{0}(); t{0}(); }}\n", at + 1)).collect();
    let failure = refused(&format!("{function}{tower}derive g from f {{ t0(); }}"), &options("g"));
    assert_eq!(failure.diagnostics()[0].code, Code::E0901);
}

/// Sizes that cancel for the prover only: the result has the type that was declared all the same.
#[test]
fn results_have_the_type_that_is_declared() {
    let text = "fn f(x: f64[n]) -> f64[n] { { [i] -> 2 * x[i] } }
        derive g from f { split_gen(min(n, 1)) at i; split_gen(max(n - 1, min(n, 1))) at i#2; }";
    let module = made(text, &options("g")).unwrap();
    assert_eq!(module.loops().unwrap().outputs[0].ty.to_string(), "f64[n]");
    let certificate = module.certificate().unwrap_or_else(|failure| panic!("{failure}"));
    module.check_certificate(&certificate.text()).unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn values_of_lets_that_get_another_type_are_simplified() {
    let text = "fn f(x: f64[n]) -> f64[n] {
            let t = { [i] -> x[i] * 2.0 | [i] < [n] };
            { [j] -> t[j] + t[n - 1 - j] | [j] < [n] }
        }
        derive g from f { range_gen(0, min(n, n + n)) at i; range_gen(0, min(n, n + n)) at j; simplify; }";
    let module = made(text, &options("g")).unwrap();
    assert!(module.validation().unwrap_or_else(|failure| panic!("{failure}")).proved);
}
