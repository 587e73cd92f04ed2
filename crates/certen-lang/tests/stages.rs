//! Every stage of elaboration is a program: its text parses, checks, and computes what the program computes.

use certen_core::domain::{Machine, Scalar};
use certen_core::{ElemType, Evaluator, Named, Program, Tensor};
use certen_lang::{CheckedFile, Known, Library, passes, to_core, typed};
use certen_syntax::{Diagnostics, Name, Sources};

/// The typed tree of the function `main` of a text.
fn checked(text: &str) -> Result<typed::Program, String> {
    let mut sources = Sources::new();
    let file = sources.add("test.ten", text);
    let mut diagnostics = Diagnostics::new();
    let library = Library::load(&mut sources, file, &mut |_, _| Err("no imports".into()), &mut diagnostics);
    let program = CheckedFile::new(library, &mut diagnostics).and_then(|mut file| {
        let entry = file.library().entry(Some("main".into())).map_err(|error| diagnostics.push(error)).ok()?;
        file.instantiate(file.library().meaning(entry)?, &Known::default(), &mut diagnostics)
    });
    program.ok_or_else(|| {
        let messages: Vec<String> =
            diagnostics.into_sorted().iter().map(|d| format!("{} {} {:?}", d.code, d.message, d.notes)).collect();
        messages.join("\n")
    })
}

fn core(program: &typed::Program) -> Program {
    let mut program = program.clone();
    passes::run(&mut program);
    to_core(&program, "main".into()).unwrap()
}

/// The outputs, where inputs are numbers that look arbitrary.
fn outputs(program: &Program, sizes: &[(&str, i64)]) -> Named<Scalar> {
    let sizes: Vec<(Name, i64)> = sizes.iter().map(|(name, value)| (Name::new(name), *value)).collect();
    let size = |name: Name| sizes.iter().find(|(size, _)| *size == name).map(|(_, value)| *value);
    let inputs = program.inputs.iter().map(|input| {
        let shape = input.ty.shape_at(&size).unwrap();
        let number = |at: usize| {
            let number = (at as i64 * 7 + 3) % 11 - 4;
            match input.ty.elem {
                ElemType::F64 => Scalar::F64(number as f64 / 2.0),
                ElemType::F32 => Scalar::F32(number as f32 / 2.0),
                ElemType::I64 => Scalar::I64(number),
                ElemType::I32 => Scalar::I32(number as i32),
                ElemType::U8 => Scalar::U8(number.unsigned_abs() as u8),
                ElemType::Bool => Scalar::Bool(number > 0),
            }
        };
        let count = shape.iter().product::<usize>();
        (input.name, Tensor::new(shape, (0..count).map(number).collect()).unwrap())
    });
    let sizes = sizes.iter().copied().filter(|(name, _)| program.sizes.contains(name));
    Evaluator::new(program, &Machine, sizes.collect::<Vec<_>>(), inputs).unwrap().run().unwrap()
}

/// Programs and sizes to run them at. `main` is the entry.
/// What it shows, its text, and the sizes to run it at.
type Sample = (&'static str, &'static str, &'static [(&'static str, i64)]);

const PROGRAMS: &[Sample] = &[
    (
        "names beside each other",
        "fn main(x: f64[n]) where n >= 2 {
        let w = { [i] -> x[i+1] }; let s = with { ([0] <= [i] < [n]) : x[i] } : fold(+, 0.0);
        { [i] -> w[0] * 10.0 + x[i] + s * sum({ [k] -> x[k] }) | i < n }
    }",
        &[("n", 4)],
    ),
    (
        "rows and a border",
        "fn main(x: f64[n]) -> f64[n] {
        { [i] -> (x[i-1] + x[i+1]) / 2.0 | [1] <= [i] < [n-1]; [i] -> x[i] | [i] < [n] }
    }",
        &[("n", 5)],
    ),
    (
        "a matrix product",
        "fn main(a: f64[m, k], b: f64[k, n]) { { [i, j] -> sum({ [l] -> a[i, l] * b[l, j] }) } }",
        &[("m", 2), ("k", 3), ("n", 5)],
    ),
    (
        "@ of all ranks",
        "fn main(a: f64[m, k], b: f64[k, n], x: f64[k]) {
        let c = a @ b; let d = a @ x; let e = x @ b; let s = x @ x; c + s * sum(d) * sum(e)
    }",
        &[("m", 2), ("k", 3), ("n", 5)],
    ),
    (
        "softmax by rows",
        "fn main(a: f64[n, m]) where m >= 1 {
        { [i] -> { let e = exp(a[i] - max(a[i])); e / sum(e) } }
    }",
        &[("n", 3), ("m", 2)],
    ),
    ("dots", "fn main(a: f64[n, m]) { { [., i, .] -> a + i | i < 3 } }", &[("n", 2), ("m", 1)]),
    ("triple dots", "fn main(a: f64[n, m]) { { [..., i] -> a * i | i < 2 } }", &[("n", 2), ("m", 3)]),
    (
        "a prefix of indices",
        "fn main(a: f64[n, m]) where n >= 1 { { iv -> a[iv] + 1.0 | [1] <= iv < [n] } }",
        &[("n", 3), ("m", 2)],
    ),
    (
        "with-loops",
        "fn main(x: f64[n]) where n >= 2 {
        let g = with { ([1] <= [i] < [n-1]) : x[i] * 2.0; ([0] <= [i] < [1]) : 7.0 } : genarray([n], 1.0);
        let m = with { ([0] <= [i] < [2]) : g[i] + 1.0 } : modarray(x);
        let s = with { ([0] <= [i] < [n]) : m[i]; } : fold(max, -100.0);
        g + m * s
    }",
        &[("n", 5)],
    ),
    (
        "folds with functions",
        "fn half(a: f64, b: f64) -> f64 { a / 2.0 + b }
    fn add(a: f64, b: f64) -> f64 associative(0.0) { a + b }
    fn main(x: f64[n], a: f64[n, m]) {
        let p = with { ([0] <= [i] < [n]) : x[i] } : fold(half, 1.0);
        let q = with { ([0, 0] <= [i, j] < [n, m]) : a[i, j] } : fold(add, 0.0);
        p * 100.0 + q
    }",
        &[("n", 3), ("m", 2)],
    ),
    (
        "reductions along axes",
        "fn main(a: f32[n, m, 2]) where n >= 1, m >= 1 {
        let s = sum(a, axis = 1); let t = max(a, axis = [0, 2]); sum(s) * t / 3.0
    }",
        &[("n", 2), ("m", 3)],
    ),
    (
        "guards and indices as data",
        "fn main(x: f32[n]) { { [i] -> guard(1 <= i && i < n, x[i-1]) * i + 2 | i < n } }",
        &[("n", 4)],
    ),
    (
        "integers",
        "fn main(x: i32[n], y: i64[n]) -> (a: i32[n], b: i64[n]) {
        (mod(x * 3 + 1, 5), max(floor_div(y, 2), -1) + { [i] -> i | i < n })
    }",
        &[("n", 5)],
    ),
    ("truth values", "fn main(x: f64[n]) -> bool { all(x < 10.0 && !(x == 3.0)) || any(x != x) }", &[("n", 5)]),
    (
        "calls",
        "fn scale(k: size, x: num[s...]) -> num[s...] { x * k }
    fn both(x: f64[n]) -> (lo: f64, hi: f64) where n >= 1 { (min(x), max(x)) }
    fn main(x: f64[n], a: f64[n, 3]) where n >= 1 {
        let (lo, hi) = both(x); let y = scale(3, x); sum(scale(2, a), axis = 1) + (y - lo) / (hi - lo)
    }",
        &[("n", 4)],
    ),
    (
        "iterations",
        "fn main(x: f64[n], k: size) where k >= 0 {
        let (u, v) = iterate t < k (u = x, v = 1.0) { (u * 0.5 + t, v + sum(u)) };
        let w = iterate 3 times w = u { w + v };
        w
    }",
        &[("n", 3), ("k", 2)],
    ),
    (
        "moving elements",
        "fn main(a: f64[n, 4], k: size) where k >= 0 {
        let f = flatten(a); let s = split(3, f); let t = transpose(a);
        sum(s) + sum(pad_l(k, f ++ f)) + sum(trunc_r(1, pad_r(1, t))) + sum(reshape([2 * n, 2], a)[0..n])
    }",
        &[("n", 3), ("k", 2)],
    ),
    (
        "lists and slices",
        "fn main(x: f64[n]) where n >= 3 {
        let w = [0.25, 0.5, 0.25]; let e = [1, 2, 3];
        { [i] -> sum({ [k] -> w[k] * x[i + k] | k < 3 }) } + sum(e)
    }",
        &[("n", 5)],
    ),
    ("einsum", "fn main(a: f64[m, k], b: f64[k, n]) { einsum(\"ij,jk->ki\", a, b) }", &[("m", 2), ("k", 3), ("n", 5)]),
    (
        "choices",
        "fn main(x: f64[n], k: size) where n >= 1 {
        let y = select(x > 0.0, x, -x);
        if k > 3 { y } else { if x[0] > 0.0 { y * 2.0 } else { y } }
    }",
        &[("n", 3), ("k", 5)],
    ),
    ("constants", "const W = [1, 2, 1]; const G = 9.81; fn main(x: f32[n]) { x * G + W[1] }", &[("n", 3)]),
];

fn on_a_deep_stack(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(256 << 20).spawn(work).unwrap().join().unwrap();
}

/// What is wrong with the stages of a program.
fn check_stages(what: &str, program: &typed::Program, sizes: &[(&str, i64)], wrong: &mut Vec<String>) {
    let expected = outputs(&core(program), sizes);
    for (stage, text) in passes::stages(program) {
        match checked(&text) {
            Err(error) => wrong.push(format!("{what}, {stage}: {error}\n{text}")),
            Ok(again) if outputs(&core(&again), sizes) != expected => {
                wrong.push(format!("{what}, {stage}: another value\n{text}"));
            }
            Ok(_) => {}
        }
    }
}

#[test]
fn every_stage_means_the_same() {
    on_a_deep_stack(|| {
        let mut wrong = Vec::new();
        for (what, text, sizes) in PROGRAMS {
            match checked(text) {
                Ok(program) => check_stages(what, &program, sizes, &mut wrong),
                Err(error) => wrong.push(format!("{what}: {error}")),
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    });
}

/// The programs of the paper's figures, at the sizes that they state; those that have a mistake, or do not say all sizes
/// and ranks, are left out.
#[test]
fn every_stage_of_the_figures_means_the_same() {
    on_a_deep_stack(|| {
        let (mut wrong, mut count) = (Vec::new(), 0);
        let files = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/programs/ten/figures");
        for file in std::fs::read_dir(files).unwrap() {
            let path = file.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let dims = text.lines().find_map(|line| line.strip_prefix("//@ dims:")).unwrap_or_default();
            let dims = dims.split(',').filter_map(|dim| dim.split_once('='));
            let sizes: Vec<(&str, i64)> =
                dims.map(|(name, size)| (name.trim(), size.trim().parse().unwrap())).collect();
            let known = |size: &typed::Size| sizes.iter().any(|(name, _)| *name == size.name.as_str());
            if let Ok(program) = checked(&text)
                && program.functions[program.entry].sizes.iter().all(known)
            {
                count += 1;
                check_stages(&path.display().to_string(), &program, &sizes, &mut wrong);
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
        assert!(count >= 40, "only {count} figures were compared");
    });
}
