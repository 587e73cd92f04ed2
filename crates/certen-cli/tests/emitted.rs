//! Emitted files in the hands of C and C++ compilers: no warning, nothing that sanitizers find, and the page about C
//! is true.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{CERTEN, command, run};

const STRICT: [&str; 6] = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every program below a directory that is run by a test: those in `examples`, and some with expected values.
fn programs(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            programs(&path, found);
        } else if path.extension().is_some_and(|ending| ["ten", "teil", "model", "core"].iter().any(|e| ending == *e)) {
            found.push(path);
        }
    }
}

/// Emits a program with a main function.
fn emit(program: &Path, directory: &Path) -> common::Ran {
    let stem = program.file_stem().unwrap().to_str().unwrap();
    let mut certen = command(CERTEN, &root());
    certen.arg("emit").arg(program).arg("-o").arg(directory).arg("--main");
    // The function that the file is named after, or its first one.
    let text = fs::read_to_string(program).unwrap();
    let functions: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("fn ")?.split_once('(').map(|(name, _)| name)).collect();
    if let Some(first) = functions.first() {
        certen.args(["--fn", if functions.contains(&stem) { stem } else { first }]);
    }
    run(&mut certen)
}

#[test]
fn programs_compile_without_a_warning() {
    let mut examples = Vec::new();
    programs(&root().join("examples"), &mut examples);
    assert!(examples.len() > 60, "{examples:?}");
    let count = examples.len();
    for folder in ["core", "teil/figures", "model/figures", "ten/figures", "ten/c"] {
        programs(&root().join("tests/programs").join(folder), &mut examples);
    }
    let directory = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for (at, program) in examples.iter().enumerate() {
        let place = directory.path().join(at.to_string());
        fs::create_dir(&place).unwrap();
        let ran = emit(program, &place);
        if at < count {
            assert_eq!(ran.status, Some(0), "{}: {}", program.display(), ran.err);
        }
        // One command for many files: their names have to differ. Main functions are much alike.
        for file in ran.out.lines().filter(|file| file.ends_with(".c") && (at % 8 == 0 || !file.ends_with("/main.c"))) {
            let file = Path::new(file);
            let renamed = place.join(format!("{at}_{}", file.file_name().unwrap().to_str().unwrap()));
            fs::rename(file, &renamed).unwrap();
            files.push(renamed);
        }
    }
    assert!(files.len() > count + 40, "{} files", files.len());
    // Two compilers at a time.
    std::thread::scope(|scope| {
        for half in files.chunks(files.len().div_ceil(2)) {
            let directory = directory.path();
            scope.spawn(move || {
                let cc = run(command("cc", directory).args(STRICT).args(["-O1", "-c"]).args(half));
                assert_eq!((cc.status, cc.err.as_str()), (Some(0), ""));
            });
        }
    });
}

#[test]
fn mains_run_under_sanitizers() {
    let slices = [
        ("2 3 5", Ok("C: sum ")),
        ("0 3 5", Err("a size is excluded")),
        ("2 3 9223372036854775806", Err("so large")),
        ("2 3 9223372036854775808", Err("has to be an integer")),
        ("2 3 -9223372036854775809", Err("has to be an integer")),
        ("2 3 99999999999999999999999", Err("has to be an integer")),
        ("2 3", Err("usage")),
        ("2 3 x", Err("has to be an integer")),
        ("2 3 5x", Err("has to be an integer")),
    ];
    for (program, calls) in [
        ("examples/slices.teil", &slices[..]),
        ("examples/physics/heat3d.ten", &[("3 5 1 7", Ok("result: sum "))]),
        ("examples/physics/ising.ten", &[("7 3", Ok("result: sum "))]),
        ("examples/learning/attention.ten", &[("2 3 5 7 1", Ok("result: sum "))]),
        ("examples/images/pyramid.ten", &[("11 13", Ok("result: sum "))]),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let ran = emit(&root().join(program), directory.path());
        assert_eq!(ran.status, Some(0), "{}", ran.err);
        let files: Vec<&str> = ran.out.lines().filter(|file| file.ends_with(".c")).collect();
        let flags = ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-o", "a.out"];
        let cc = run(command("cc", directory.path()).args(STRICT).args(flags).args(&files).arg("-lm"));
        assert_eq!((cc.status, cc.err.as_str()), (Some(0), ""), "{program}");
        let main = directory.path().join("a.out");
        for (sizes, says) in calls {
            let ran = run(command(main.to_str().unwrap(), directory.path()).args(sizes.split(' ')));
            match says {
                Ok(says) => {
                    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""), "{program} {sizes}");
                    let time = ran.out.lines().last().unwrap();
                    assert!(ran.out.starts_with(says) && time.starts_with("time: "), "{}", ran.out);
                }
                Err(says) => {
                    let is_short = ran.err.lines().count() == 1 && ran.err.contains(says);
                    assert!(matches!(ran.status, Some(1 | 2)) && is_short, "{program} {sizes}: {ran:?}");
                }
            }
        }
    }
}

#[test]
fn directories_are_checked() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let emit = |out: &Path, more: &[&str]| {
        let program = root().join("examples/slices.teil");
        run(command(CERTEN, directory.path()).arg("emit").arg(program).arg("-o").arg(out).args(more))
    };
    fs::write(path("file"), "kept").unwrap();
    let ran = emit(&path("file"), &[]);
    assert_eq!(ran.status, Some(2), "{ran:?}");
    assert!(ran.err.contains("is not a directory"), "{}", ran.err);
    assert_eq!(fs::read_to_string(path("file")).unwrap(), "kept");
    assert_eq!(emit(&path("gone"), &[]).status, Some(3));
    assert_eq!(emit(directory.path(), &["--main", "--to", "core"]).status, Some(2));
    // What is there is replaced as a whole.
    fs::write(path("slices.c"), "old").unwrap();
    assert_eq!(emit(directory.path(), &["--main"]).status, Some(0));
    assert!(fs::read_to_string(path("slices.c")).unwrap().ends_with("}\n"));
    let mut names: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["file", "main.c", "slices.c", "slices.h"]);
}

/// The block of a page in a language.
fn block(page: &str, language: &str) -> String {
    let (_, rest) = page.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

/// The page's example prints what the page says, as C, and as C++ where there is a compiler for it.
#[test]
fn the_page_about_c_is_true() {
    let page = fs::read_to_string(root().join("docs/guide/calling.md")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::write(path("blur.ten"), block(&page, "ten")).unwrap();
    fs::write(path("example.c"), block(&page, "c")).unwrap();
    let emitted = run(command(CERTEN, directory.path()).args(["emit", "blur.ten", "-o", "."]));
    assert_eq!((emitted.status, emitted.err.as_str()), (Some(0), ""));
    let flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-g", "-fsanitize=address,undefined"];
    let cc = run(command("cc", directory.path()).args(flags).args(["example.c", "blur.c", "-o", "example", "-lm"]));
    assert_eq!((cc.status, cc.err.as_str()), (Some(0), ""));
    let ran = run(&mut command(path("example").to_str().unwrap(), directory.path()));
    assert_eq!((ran.status, ran.out, ran.err.as_str()), (Some(0), block(&page, "text"), ""));

    if std::process::Command::new("c++").arg("--version").output().is_err() {
        return;
    }
    fs::copy(path("example.c"), path("example.cc")).unwrap();
    let steps: [&[&str]; 2] = [
        &["cc", "-std=c11", "-c", "blur.c"],
        &["c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "example.cc", "blur.o"],
    ];
    for step in steps {
        let ran = run(command(step[0], directory.path()).args(&step[1..]));
        assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
    }
    let ran = run(&mut command(path("a.out").to_str().unwrap(), directory.path()));
    assert_eq!((ran.status, ran.out), (Some(0), block(&page, "text")));
}

/// A program that was compiled before starts quickly: in less than 20 ms, and the first time, with the C compiler, in less
/// than 500 ms. The machine may be busy. Time is limited in the slow set, which is optimised.
#[test]
fn small_programs_start_quickly() {
    let cache = tempfile::tempdir().unwrap();
    let time = || {
        let start = std::time::Instant::now();
        let mut certen = command(CERTEN, &root());
        certen.args(["run", "examples/slices.teil", "--in", "A=iota", "--in", "B=2"]);
        certen.args(["--dim", "k=2", "--dim", "m=2", "--dim", "n=3"]).env("CERTEN_CACHE", cache.path());
        assert_eq!(run(&mut certen).status, Some(0));
        start.elapsed().as_millis()
    };
    time();
    let warm = (0..10).map(|_| time()).min().unwrap();
    assert!(cfg!(debug_assertions) || warm < 200, "{warm} ms");
}
