//! The project's own commands, run as `cargo xtask COMMAND`:
//!
//! - `test` builds everything, then runs the tests of Rust and of the Python package side by side; `test FILTER` only those
//!   of Rust whose name has the filter in it; `test --slow` runs the named slow set too, with 10,000 generated programs per property
//!   (20,000 in `.ten`, Core and einsum, 5,000 of those under sanitizers) and 100,000 questions to the prover, which z3
//!   is asked too, NumPy computes the examples again, and gcc and clang are examined as by `certen doctor`;
//! - `bench` times Certen beside other compilers and libraries: it installs the versions that are pinned here in an
//!   environment of its own, `target/bench`, builds the package optimised, and runs `python -m certen.bench` with the
//!   arguments that it got; `bench --with-torch` installs PyTorch too, which takes several gigabytes;
//! - `bless` rewrites what tests expect to what they now get: read the diff before committing it;
//! - `counts` counts the instructions of some kernels and compares them with `tests/instructions.txt`; `counts --bless` writes
//!   them there. It needs valgrind, which it installs where it may, and is left out elsewhere;
//! - `ci` does what has to pass before a change lands: tests, format, lints, documentation.
//!
//! What takes the time of `test`: first building (the crates and some sixty test programs, each of which is linked), then
//! C compilers, which the tests of native code, of the documentation and of Python start thousands of times. The binaries
//! of Rust's tests run one after another, and many of them have one long test at the end, so that a second core is free
//! for Python's tests. No test of this set depends on time; what measures it is in the slow set.
//!
//! What else needs Python (3.11 or newer) gets it in an environment of its own, `target/python`, made once.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs};

const USAGE: &str =
    "usage: cargo xtask (test [--slow] [FILTER] | bench [--with-torch] [ARG…] | bless | counts [--bless] | ci)";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let ok = match words.as_slice() {
        ["test"] => all_tests(),
        ["test", "--slow"] => test(&[]) && slow(),
        ["test", filter] => test(&[filter]),
        ["bench", "--with-torch", args @ ..] => bench(&[PEERS, &[TORCH]].concat(), args),
        ["bench", args @ ..] => bench(PEERS, args),
        ["bless"] => bless(),
        ["counts"] => counts(&[]),
        ["counts", "--bless"] => counts(&[("CERTEN_BLESS", "1")]),
        ["ci"] => ci(),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Every test of the workspace, the examples in its documentation, and the programs in `tests/`.
fn test(filter: &[&str]) -> bool {
    cargo(&[&["test", "--workspace", "--quiet", "--"], filter].concat(), &[])
}

/// The tests of Rust and those of Python, side by side.
fn all_tests() -> bool {
    let Some(python) = python_with_package(&[]) else { return false };
    std::thread::scope(|scope| {
        // What it says is shown at the end, not between the lines of the others.
        let python = scope.spawn(|| python_tests(&python, &["-q"], &[]).output());
        let rust = test(&[]);
        let Ok(Ok(said)) = python.join() else { return false };
        print!("{}{}", String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
        rust && said.status.success()
    })
}

/// The test of how long the prover takes.
const QUICK: &str = "answers_come_quickly";

/// The slow set: generated programs in the thousands, and tests too slow for every day.
fn slow() -> bool {
    let Some(python) = python(&[Package::Z3, Package::Numpy]) else { return false };
    let programs = [("CERTEN_CASES", "10000")];
    let contractions = [("CERTEN_CASES", "20000")];
    let questions = [("CERTEN_CASES", "100000"), ("CERTEN_Z3_PYTHON", &*python)];
    let examples = [("CERTEN_NUMPY_PYTHON", &*python)];
    cargo(&["test", "--release", "-p", "certen-testgen", "-p", "certen-cli", "--", "--include-ignored"], &programs)
        && cargo(&["test", "--release", "-p", "certen", "--test", "examples", "--", "--include-ignored"], &examples)
        && cargo(&["test", "--release", "-p", "certen", "--test", "doctor", "--", "--ignored", "--nocapture"], &[])
        && cargo(&["test", "--release", "-p", "certen", "--test", "certificates", "--test", "atl_holes"], &[])
        && cargo(&["test", "--release", "-p", "certen-core", "-p", "certen-teml", "--tests"], &[])
        && cargo(&["test", "--release", "-p", "certen-index", "--", "--include-ignored", "--skip", QUICK], &questions)
        // Time is measured alone.
        && cargo(&["test", "--release", "-p", "certen-index", "--", "--ignored", "--nocapture", QUICK], &questions)
        && python_with_package(&[Package::Maturin, Package::Mypy]).is_some_and(|python| {
            let tests = python_tests(&python, &["-q", "-m", "slow or not slow"], &contractions).status();
            tests.is_ok_and(|status| status.success())
        })
}

/// Builds the Python package; a Python that can run its tests, some of which need more packages.
fn python_with_package(more: &[Package]) -> Option<String> {
    let packages = [&[Package::Numpy, Package::Pytest], more].concat();
    let python = python(&packages)?;
    // With all targets of the workspace, dependencies have the features that they have in tests: nothing is built
    // twice.
    if !cargo(&["build", "--workspace", "--all-targets", "--quiet"], &[]) {
        return None;
    }
    place_extension("debug").then_some(python)
}

/// Puts the extension into the Python package, as it was built with this profile.
fn place_extension(profile: &str) -> bool {
    let (prefix, suffix) = (env::consts::DLL_PREFIX, env::consts::DLL_SUFFIX);
    let built = target().join(profile).join(format!("{prefix}_certen{suffix}"));
    let package = workspace().join("python/certen/_certen.abi3.so");
    // Another Python may have the old one in memory: it is not written over.
    let _ = fs::remove_file(&package);
    if let Err(error) = fs::copy(&built, &package) {
        eprintln!("cannot copy {}: {error}", built.display());
        return false;
    }
    true
}

/// What is compared with Certen.
const PEERS: &[&str] = &[
    "numpy==2.4.6",
    "opt_einsum==3.4.0",
    "jax==0.10.2",
    "numba==0.68.1",
    "halide==21.0.0",
    "apache-tvm==0.27.0.post1",
];
const TORCH: &str = "torch==2.15.0";

/// Certen beside its peers.
fn bench(packages: &[&str], args: &[&str]) -> bool {
    let Some(python) = environment(&target().join("bench"), packages) else { return false };
    let package = workspace().join("python").display().to_string();
    cargo(&["build", "--release", "--quiet", "--package", "certen-python"], &[])
        && place_extension("release")
        && run(&python, &[&["-m", "certen.bench"], args].concat(), &[("PYTHONPATH", &package)])
}

/// The tests of the Python package.
fn python_tests(python: &str, options: &[&str], environment: &[(&str, &str)]) -> Command {
    println!("$ python -m pytest {} python/tests", options.join(" "));
    let mut tests = Command::new(python);
    tests.args(["-m", "pytest"]).args(options).arg("python/tests").envs(environment.iter().copied());
    tests.env("PYTHONPATH", workspace().join("python")).current_dir(workspace());
    tests
}

/// Lints and format of what is written in Python.
fn python_lint() -> bool {
    let Some(python) = python(&[Package::Ruff]) else { return false };
    run(&python, &["-m", "ruff", "check", "--quiet", "python"], &[])
        && run(&python, &["-m", "ruff", "format", "--check", "--quiet", "python"], &[])
}

/// A package of Python's that something here needs.
#[derive(Clone, Copy)]
enum Package {
    Maturin,
    Mypy,
    Numpy,
    Pytest,
    Ruff,
    Z3,
}

impl Package {
    /// What is installed.
    fn requirement(self) -> &'static str {
        match self {
            Package::Maturin => "maturin>=1.9.4,<2",
            Package::Mypy => "mypy>=1.14",
            Package::Numpy => "numpy>=2.2.5",
            Package::Pytest => "pytest>=8",
            // Formatters differ between versions.
            Package::Ruff => "ruff==0.17.4",
            Package::Z3 => "z3-solver",
        }
    }
}

fn target() -> PathBuf {
    workspace().join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

fn workspace() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// A Python for tests and lints.
fn python(packages: &[Package]) -> Option<String> {
    let packages: Vec<&str> = packages.iter().map(|package| package.requirement()).collect();
    environment(&target().join("python"), &packages)
}

/// A Python that has these packages: each is installed once, and again when another version is wanted.
fn environment(place: &Path, packages: &[&str]) -> Option<String> {
    let python = place.join("bin/python").display().to_string();
    let is_there = || {
        let code = "import sys; assert sys.version_info >= (3, 11)";
        let status = Command::new(&python).args(["-c", code]).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    if !is_there() {
        if !run("python3", &["-m", "venv", "--clear", &place.display().to_string()], &[]) {
            eprintln!("cannot make an environment for Python in {}", place.display());
            return None;
        }
        if !is_there() {
            eprintln!("Python 3.11 or newer is needed, as `python3`");
            return None;
        }
    }
    let list = place.join("installed");
    let mut installed = fs::read_to_string(&list).unwrap_or_default();
    let is_missing = |wanted: &&str| !installed.lines().any(|line| line == *wanted);
    let missing: Vec<&str> = packages.iter().copied().filter(is_missing).collect();
    if missing.is_empty() {
        return Some(python);
    }
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    if !run(&python, &[&install, missing.as_slice()].concat(), &[]) {
        return None;
    }
    missing.iter().for_each(|requirement| installed.extend([*requirement, "\n"]));
    if let Err(error) = fs::write(&list, installed) {
        eprintln!("cannot write {}: {error}", list.display());
        return None;
    }
    Some(python)
}

/// Rewrites expectations: headers of programs, snapshots, generated documentation.
fn bless() -> bool {
    cargo(&["test", "--workspace", "--quiet"], &[("CERTEN_BLESS", "1")])
}

/// Counts instructions, which are the same at every run, by valgrind.
fn counts(environment: &[(&str, &str)]) -> bool {
    let is_there = || {
        let status = Command::new("valgrind").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    if !is_there() {
        run("apt-get", &["install", "--quiet", "--yes", "valgrind"], &[]);
    }
    if !is_there() {
        println!("skipped: instructions are not counted without valgrind, which cannot be installed");
        return true;
    }
    let name = "kernels_make_as_many_instructions_as_before";
    // With the whole workspace, dependencies have the features that they have in tests: nothing is built twice.
    cargo(&["test", "--workspace", "--test", "machine_code", "--", "--ignored", "--nocapture", name], environment)
}

fn ci() -> bool {
    let workspace = env!("CARGO_MANIFEST_DIR");
    println!("checking {workspace}/..");
    all_tests()
        && counts(&[])
        && python_lint()
        && cargo(&["fmt", "--all", "--check"], &[])
        && cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"], &[])
        && cargo(&["doc", "--workspace", "--no-deps", "--quiet"], &[("RUSTDOCFLAGS", "-D warnings")])
}

fn cargo(args: &[&str], environment: &[(&str, &str)]) -> bool {
    run(&env::var("CARGO").unwrap_or_else(|_| "cargo".into()), args, environment)
}

fn run(program: &str, args: &[&str], environment: &[(&str, &str)]) -> bool {
    let name = Path::new(program).file_name().unwrap_or_default().display();
    println!("$ {name} {}", args.join(" "));
    match Command::new(program).args(args).envs(environment.iter().copied()).current_dir(workspace()).status() {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("cannot run {name}: {error}");
            false
        }
    }
}
