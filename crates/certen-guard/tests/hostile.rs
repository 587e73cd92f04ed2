//! Whatever a file holds, reading it ends with kernels or with errors that have a message: no panic, no deep recursion.

use std::fs;
use std::path::Path;

use certen_guard::{Kernel, Language, faults, read, ten};
use certen_syntax::{Diagnostic, Sources};

fn kernels(text: &str, language: Language) -> Result<Vec<Kernel>, Vec<Diagnostic>> {
    let mut sources = Sources::new();
    let file = sources.add(format!("k.{}", language.ending()), text);
    read(&sources, file, language).map(|(kernels, _)| kernels)
}

/// Reads a text, and everything that can be asked of what was read.
fn try_all(text: &str, language: Language) {
    match kernels(text, language) {
        Ok(kernels) => kernels.iter().for_each(|kernel| {
            let _ = (faults(kernel), ten(kernel));
        }),
        Err(errors) => assert!(!errors.is_empty() && errors.iter().all(|error| !error.message.is_empty())),
    }
}

/// Files of `tests/guard`.
fn files() -> Vec<(String, Language)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/guard");
    let mut found = Vec::new();
    for language in ["taco", "tc", "tvm", "cfdlang", "einsum"] {
        for entry in fs::read_dir(folder.join(language)).unwrap() {
            let path = entry.unwrap().path();
            let language = Language::of(path.to_str().unwrap()).unwrap();
            found.push((fs::read_to_string(path).unwrap(), language));
        }
    }
    found.sort();
    found
}

#[test]
fn pieces_of_kernels_are_read_or_refused() {
    let files = files();
    assert!(files.len() > 200);
    for (at, (text, language)) in files.iter().enumerate() {
        for cut in [text.len() / 3, text.len() / 2, text.len() * 3 / 4, text.len() - 2] {
            let cut = text.floor_char_boundary(cut);
            try_all(&text[..cut], *language);
            // A character left out, and one written twice.
            let (before, after) = text.split_at(cut);
            let mut rest = after.chars();
            if let Some(c) = rest.next() {
                try_all(&format!("{before}{}", rest.as_str()), *language);
                try_all(&format!("{before}{c}{after}"), *language);
            }
        }
        // Other languages' files.
        try_all(text, Language::ALL[at % 4]);
    }
}

#[test]
fn deep_texts_are_refused() {
    let deep = |open: &str, inside: &str, close: &str, n: usize| open.repeat(n) + inside + &close.repeat(n);
    let n = 100_000;
    let cases = [
        (Language::Taco, format!("double a, b\na = {}", deep("(", "b", ")", n))),
        (Language::Taco, format!("double a, b\na = {}b", "-".repeat(n))),
        (Language::Taco, format!("double a, b\na = b{}", " + b".repeat(n))),
        (Language::Taco, format!("double a, b(n{})\na = b(i)", " + n".repeat(n))),
        (Language::Tc, format!("def f(float b) -> (a) {{ a = {} }}", deep("(", "b", ")", n))),
        (Language::Tc, format!("def f(float b) -> (a) {{ a = b{} }}", " * b".repeat(n))),
        (Language::Tc, format!("def f(float b) -> (a) {{ a = {}b }}", "!".repeat(n))),
        (Language::Tc, format!("def f(float b) -> (a) {{ a = {} }}", deep("exp(", "b", ")", n))),
        (Language::Tc, format!("def f(float b) -> (a) {{ a = {}b }}", "b ? b : ".repeat(n))),
        (Language::Cfdlang, format!("var a : []\nvar b : []\na = {}", deep("(", "b", ")", n))),
        (Language::Cfdlang, format!("var a : []\nvar b : []\na = {}", deep("[", "b", "]", n))),
        (Language::Cfdlang, format!("var a : []\nvar b : []\na = b{}", " # b".repeat(n))),
        (Language::Cfdlang, format!("var a : []\nvar b : []\na = [{}]", " b".repeat(n))),
        (Language::Python, deep("(", "b", ")", n)),
        (Language::Python, format!("b{}", " + b".repeat(n))),
        (Language::Python, format!("{}b", "not ".repeat(n))),
        (Language::Python, format!("{}b", "lambda a, b: ".repeat(n))),
        (Language::Python, format!("b{}", ".b".repeat(n))),
        (Language::Python, format!("b{}", "[0]".repeat(n))),
        (Language::Python, format!("{}b", "b if b else ".repeat(n))),
        (Language::Python, deep("{b: ", "b", "}", n)),
        (
            Language::Python,
            (0..600).map(|at| format!("{}if b:\n", " ".repeat(at))).collect::<String>() + &" ".repeat(600) + "b\n",
        ),
    ];
    for (language, text) in cases {
        let found = kernels(&text, language);
        assert!(found.is_err(), "{language}: {}…", &text[..40]);
    }
}

#[test]
fn long_texts_are_read() {
    let many = 3_000;
    let list = format!("a = [{}]\n", "-1, ".repeat(many));
    assert!(kernels(&list, Language::Python).unwrap().is_empty());
    let statements = "a = b + 1\n".repeat(many);
    assert!(kernels(&statements, Language::Python).unwrap().is_empty());
    let lines = "a(i) = b(i)\n".repeat(300);
    assert_eq!(kernels(&format!("double a(n), b(n)\n{lines}"), Language::Taco).unwrap().len(), 300);
}

#[test]
fn numbers_that_are_too_large_are_no_panic() {
    for text in [
        "double a(9223372036854775807), b(9223372036854775807 + 9223372036854775807)\na(i) = b(i)",
        "double a(n), b(n * n * n * n * n)\na(i) = b(i(9223372036854775807, 9223372036854775807, 9223372036854775807))",
    ] {
        try_all(text, Language::Taco);
    }
    try_all(
        "def f(float(9223372036854775807) B) -> (A) { A(i) = B(9223372036854775807 * i + 9223372036854775807) }",
        Language::Tc,
    );
    try_all("def f(float(N) B) -> (A) { A(i) = B(i % 0 + i / 0) where i in 0:N }", Language::Tc);
    try_all(
        "var input a : [9223372036854775807 9223372036854775807]\nvar output b : []\nb = a . [[0] [1]]",
        Language::Cfdlang,
    );
    try_all(
        "import numpy as np\nr = np.einsum('i,i', np.zeros(9223372036854775807), np.zeros(10**30))",
        Language::Python,
    );
}
