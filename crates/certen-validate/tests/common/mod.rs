//! Programs with their loops: those of the examples and tests, and some with tiles written by hand.

#![allow(dead_code)]

pub mod mutate;

use std::path::{Path, PathBuf};

use certen::{Module, Name, Options};
use certen_core::{Program, parse_program};
use certen_loops::{LoopProgram, parse_loops};
use certen_syntax::Sources;
use certen_validate::LoopComparison;

/// A program, what its loops were made from, and its loops.
pub struct Case {
    pub name: String,
    pub meaning: Program,
    pub lowered: Option<Program>,
    pub nest: LoopProgram,
}

impl Case {
    pub fn trial(&self) -> LoopComparison<'_> {
        LoopComparison { lowered: self.lowered.as_ref(), ..LoopComparison::default() }
    }
}

/// The programs below a folder of the project that can be compiled, in the order of their names.
pub fn programs(folder: &str) -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    files.iter().filter_map(|path| case(&root, path)).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or("");
        if path.is_dir() {
            collect(&path, files);
        } else if ["ten", "teil", "model", "core"].contains(&ending) {
            files.push(path);
        }
    }
}

fn case(root: &Path, path: &Path) -> Option<Case> {
    let name = path.strip_prefix(root).unwrap_or(path).display().to_string();
    let function = path.file_stem().and_then(|stem| stem.to_str()).map(Name::new);
    let with = |function| Module::from_file(path, &Options { function, ..Options::default() });
    let module = with(function).or_else(|_| with(None)).ok()?;
    let nest = module.loops().ok()?.clone();
    let lowered = module.optimisation().ok()?.map(|optimised| optimised.program.clone());
    Some(Case { name, meaning: module.core().clone(), lowered, nest })
}

/// A program of Core, and loops for it.
pub fn written(core: &str, loops: &str) -> Case {
    let mut sources = Sources::new();
    let file = sources.add("written.core", core);
    let meaning = parse_program(&sources, file).unwrap_or_else(|errors| panic!("{core}\n{errors:?}"));
    let file = sources.add("written.loops", loops);
    let nest = parse_loops(&sources, file).unwrap_or_else(|errors| panic!("{loops}\n{errors:?}"));
    Case { name: format!("{} by hand", meaning.name), meaning, lowered: None, nest }
}

/// Loops as a schedule makes them, written by hand.
pub fn by_hand() -> Vec<Case> {
    [
        (
            "core scaled\nsize n\ninput x : f64[n]\ny = gen i in 0..n. x[i] * f64(2.0)\noutput y\n",
            "loops scaled\nsize n\ninput x : f64[n]\noutput y : f64[n]\nnest y\n\
             parallel for io in 0..ceil_div(n, 4) {\n    for ii in 0..min(4, n - 4*io) {\n        \
             y[4*io + ii] = x[4*io + ii] * f64(2.0)\n    }\n}\n",
        ),
        (
            "core summed\nsize n\nwhere n >= 0\ninput x : f64[n]\ny = sum i in 0..n. x[i] * x[i]\noutput y\n",
            "loops summed\nsize n\nwhere n >= 0\ninput x : f64[n]\noutput y : f64[]\nnest y\nlocal acc : f64 = f64(0.0)\n\
             for io in 0..floor_div(n, 3) {\n    for ii in 0..3 {\n        acc += x[3*io + ii] * x[3*io + ii]\n    }\n}\n\
             for it in 3*floor_div(n, 3)..n {\n    acc += x[it] * x[it]\n}\ny = acc\n",
        ),
        (
            "core product\nsize m, n, k\ninput a : f64[m, k]\ninput b : f64[k, n]\n\
             c = gen i in 0..m. gen j in 0..n. sum l in 0..k. a[i, l] * b[l, j]\noutput c\n",
            "loops product\nsize m, n, k\ninput a : f64[m, k]\ninput b : f64[k, n]\noutput c : f64[m, n]\nnest c\n\
             parallel for i in 0..m {\n    for j in 0..n {\n        c[i, j] = f64(0.0)\n    }\n    \
             for l in 0..k {\n        for jo in 0..ceil_div(n, 2) {\n            for ji in 0..2 {\n                \
             if 2*jo + ji < n {\n                    \
             c[i, 2*jo + ji] += a[i, l] * b[l, 2*jo + ji]\n                }\n            }\n        }\n    }\n}\n",
        ),
        (
            "core staged\nsize n\nwhere n >= 2\ninput x : f64[n]\n\
             t = gen i in 0..n. x[i] * x[i]\ny = gen i in 0..n - 1. t[i] + t[i + 1]\noutput y\n",
            "loops staged\nsize n\nwhere n >= 2\ninput x : f64[n]\noutput y : f64[n - 1]\nnest y\n\
             for io in 0..ceil_div(n - 1, 4) {\n    alloc t : f64[5]\n    \
             for p in 0..min(5, n - 4*io) {\n        t[p] = x[4*io + p] * x[4*io + p]\n    }\n    \
             for ii in 0..min(4, n - 1 - 4*io) {\n        y[4*io + ii] = t[ii] + t[ii + 1]\n    }\n    free t\n}\n",
        ),
        (
            "core wrapped\nsize n\ninput x : i32[n]\ny = sum i in 0..n. x[i] * x[i]\n\
             z = gen i in 0..n. floor_div(x[i], i32(3)) - x[i]\noutput y\noutput z\n",
            "loops wrapped\nsize n\ninput x : i32[n]\noutput y : i32[]\noutput z : i32[n]\nnest y\n\
             local acc : i32 = i32(0)\nfor i in 0..n {\n    acc += x[i] * x[i]\n}\ny = acc\nnest z\n\
             vector for i in 0..n {\n    z[i] = floor_div(x[i], i32(3)) - x[i]\n}\n",
        ),
        (
            "core largest\nsize n\nwhere n >= 1\ninput x : f64[n]\n\
             y = maximum i in 0..n. x[i]\nb = gen i in 0..n. x[i] < y\noutput y\noutput b\n",
            "loops largest\nsize n\nwhere n >= 1\ninput x : f64[n]\noutput y : f64[]\noutput b : bool[n]\nnest y\n\
             y = x[0]\nfor i in 1..n {\n    y max= x[i]\n}\nnest b\n\
             for i in 0..n {\n    b[i] = x[i] < y\n}\n",
        ),
        // Each element is written several times: the order of the loops decides which value stays.
        (
            "core diagonal\nsize m, n\nwhere m >= 1, n >= 1\ninput x : f64[m, n]\n\
             y = gen k in 0..m + n - 1. x[min(k, m - 1), k - min(k, m - 1)]\noutput y\n",
            "loops diagonal\nsize m, n\nwhere m >= 1, n >= 1\ninput x : f64[m, n]\noutput y : f64[m + n - 1]\nnest y\n\
             for i in 0..m {\n    for j in 0..n {\n        y[i + j] = x[i, j]\n    }\n}\n",
        ),
        // A value goes from each row to the next, one to the left.
        (
            "core shifted\nsize m, n\nwhere m >= 1, n >= 1\ninput x : f64[n]\n\
             y = gen i in 0..m. gen j in 0..n. x[min(i + j, n - 1)]\noutput y\n",
            "loops shifted\nsize m, n\nwhere m >= 1, n >= 1\ninput x : f64[n]\noutput y : f64[m, n]\nnest y\n\
             for i in 0..m {\n    for j in 0..n {\n        if i == 0 || j == n - 1 {\n            \
             y[i, j] = x[min(j, n - 1)]\n        } else {\n            y[i, j] = y[i - 1, j + 1]\n        }\n    }\n}\n",
        ),
    ]
    .iter()
    .map(|(core, loops)| written(core, loops))
    .collect()
}
