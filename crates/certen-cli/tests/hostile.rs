//! Whatever the files hold, the answer is clear, and comes within a second and 200 MB.
//!
//! The limits are the system's own, set by the shell: memory that the process may write to, and time on the processor
//! (which, unlike time on the clock, does not depend on what else the machine does). A process that goes beyond them is
//! ended by a signal, which is not an answer. Without optimisation the second becomes [`SECONDS`].

mod common;

use std::fs;
use std::path::Path;

use common::{CERTEN, Ran, command, run};

/// How long an answer may take: a second, or more in a build that was not optimised.
const SECONDS: u64 = if cfg!(debug_assertions) { 6 } else { 1 };

/// How much memory it may take.
const KIB: u64 = 200_000;

/// Runs `certen LINE` in a directory, within limits.
fn limited(directory: &Path, line: &str, seconds: u64, kib: u64) -> Ran {
    let script = format!("ulimit -c 0 && ulimit -t {seconds} && ulimit -d {kib} && exec \"$0\" \"$@\"");
    run(command("sh", directory).args(["-c", &script, CERTEN]).args(line.split_whitespace()))
}

/// A clear answer within the limits, with the status that is expected: nothing but the verdict if it is 0, else a first
/// line on standard error that begins with the code and holds the words that are expected.
#[track_caller]
fn answer(directory: &Path, line: &str, status: i32, code: &str, words: &str) -> Ran {
    let ran = limited(directory, line, SECONDS, KIB);
    let first = ran.err.lines().next().unwrap_or_default().chars().take(300).collect::<String>();
    assert_eq!(ran.status, Some(status), "{line}: {first}");
    assert!(!ran.err.contains("panicked"), "{line}: {}", ran.err);
    if status == 0 {
        assert!(!ran.err.contains("error"), "{line}: {first}");
    } else {
        assert!(first.starts_with(&format!("error[{code}")) && first.contains(words), "{line}: {first}");
    }
    ran
}

/// The answer to `certen check` of a text.
#[track_caller]
fn check(text: impl AsRef<[u8]>, status: i32, code: &str, words: &str) -> Ran {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("it.teil"), text).unwrap();
    answer(directory.path(), "check it.teil", status, code, words)
}

/// The answer to `certen check` of a text in the model language.
#[track_caller]
fn check_model(text: impl AsRef<[u8]>, status: i32, code: &str, words: &str) -> Ran {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("it.model"), text).unwrap();
    answer(directory.path(), "check it.model", status, code, words)
}

/// Numbers from a fixed generator (the constants are Knuth's).
fn noise(mut state: u64) -> impl Iterator<Item = u8> {
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    })
}

const HUGE: &str = "1000000000000000000";

const AB: &str = "alloc A : [n]\nalloc B : [n]\nB = ";

#[test]
fn limits_are_enforced() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("it.teil"), "alloc A : [n]\nalloc B : [n]\nB = add A A\n").unwrap();
    let line = "run it.teil --in A=1 --dim n=100000000 --backend interp";
    // Memory that the system refuses is reported, not died of.
    let ran = limited(directory.path(), line, 60, KIB);
    assert!(ran.status == Some(3) && ran.err.starts_with("error[E0408]"), "{ran:?}");
    // So is time: this would take years.
    fs::write(directory.path().join("it.teil"), format!("alloc A : []\nalloc B : []\nB = red+ 1 (expa 1 {HUGE} A)\n"))
        .unwrap();
    let line = format!("run it.teil --in A=1 --backend interp --fuel {}", u64::MAX);
    assert_eq!(limited(directory.path(), &line, 1, KIB).status, None);
}

#[test]
fn texts_that_are_no_programs() {
    check("", 0, "", "");
    check(" \t\r\n".repeat(10_000), 0, "", "");
    check("// nothing", 0, "", "");
    check("\u{feff}", 0, "", "");
    check([0; 1000], 1, "E0101", "\\0");
    check(noise(1).take(100_000).collect::<Vec<u8>>(), 2, "E0104", "is not UTF-8 text");
    check(b"alloc A : [4]\nA = \xff\xfe", 2, "E0104", "is not UTF-8 text, at byte 18");
    for seed in 0..3 {
        let printable: Vec<u8> = noise(seed).map(|byte| 32 + byte % 95).take(100_000).collect();
        check(printable, 1, "E0", "");
    }
    check("a".repeat(1_000_000), 1, "E0103", "expected `=`");
    check("9".repeat(1_000_000), 1, "E0102", "too large");
    check("§".repeat(1_000_000), 1, "E0101", "§§§§");
    check("(".repeat(1_000_000), 1, "E0103", "expected");
    check("alloc ".repeat(100_000), 1, "E0103", "");
    check("alloc A : [4] // \u{202e}", 1, "E0101", "changes the order in which text is shown");
}

#[test]
fn three_hundred_sizes_each_below_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let list = |text: &dyn Fn(usize) -> String, count| (0..count).map(text).collect::<Vec<_>>().join(", ");
    let sizes = list(&|at| format!("n{at}: size"), 300);
    let chain = list(&|at| format!("n{at} < n{}", at + 1), 299);
    let text = format!("fn f({sizes}, x: f64[m]) -> f64 where {chain} {{ sum(x) }}\n");
    fs::write(directory.path().join("it.ten"), text).unwrap();
    answer(directory.path(), "check it.ten", 0, "", "");
    answer(directory.path(), "emit it.ten --to c", 0, "", "");
}

#[test]
fn texts_that_are_no_model_programs() {
    const N: usize = 100_000;
    const AB: &str = "var A : [n]\nvar B : [n]\nB = ";
    check_model("", 0, "", "");
    check_model([0; 1000], 1, "E0101", "\\0");
    for seed in 0..3 {
        let printable: Vec<u8> = noise(seed).map(|byte| 32 + byte % 95).take(100_000).collect();
        check_model(printable, 1, "E0", "");
    }
    for piece in ["(", "var ", "type ", "[", ". ", "^ [", "# ", "A = ", "A + ", "var A : [", "type T : "] {
        check_model(piece.repeat(N), 1, "E0", "");
        check_model(format!("{AB}A {}", piece.repeat(N)), 1, "E0", "");
    }
    check_model(format!("{AB}{}A{}\n", "(".repeat(N), ")".repeat(N)), 0, "", "");
    check_model(format!("{AB}{}A{}\n", "(A + ".repeat(N), ")".repeat(N)), 0, "", "");
    check_model(format!("{AB}A{}\n", " + A".repeat(N)), 0, "", "");
    check_model(format!("{AB}A{}\n", " # A".repeat(N)), 1, "E0213", "more than 64");
    check_model(format!("{AB}A{}\n", " ^ [1 2]".repeat(N)), 1, "E0204", "no dimension 2");
    check_model(format!("{AB}A . [{}]\n", "[1 2] ".repeat(N)), 1, "E0204", "no dimension 2");
    check_model(format!("var A : [{}]\n", "1 ".repeat(N)), 1, "E0213", "100000 dimensions are more than 64");
    check_model(format!("var A : [{}n{}]\n", "(".repeat(N), ")".repeat(N)), 1, "E0216", "");
}

/// They may take more memory than a text that is refused, and more time.
#[test]
fn a_hundred_thousand_statements_of_the_model_language() {
    const N: usize = 100_000;
    let few = format!("var A : [n]\nvar B : [n]\nB = A * A\n{}", "B = (A + B) * B\n".repeat(N));
    let declared: String = (0..N).map(|at| format!("var A{at} : mat\n")).collect();
    let assigned: String = (0..N).map(|at| format!("A{at} = A{at} / A{at}\n")).collect();
    let directory = tempfile::tempdir().unwrap();
    for text in [few, format!("type mat : [m n]\n{declared}{assigned}")] {
        fs::write(directory.path().join("it.model"), text).unwrap();
        let ran = limited(directory.path(), "check it.model", 3 * SECONDS, 5 * KIB);
        assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
    }
}

#[test]
fn padding_of_a_billion_billions() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("it.model"), "var A : [n]\nvar B : [n]\nB = A + A\n").unwrap();
    let line = |rest: &str| format!("run it.model --in A=1 --dim n=3 {rest}");
    for (rest, status, code) in [
        ("--pad 0", 2, "E0407"),
        ("--pad -4", 2, "E0407"),
        ("--pad 4 --backend native", 0, ""),
        (&format!("--pad {HUGE}"), 3, "E0408"),
        ("--pad 100000 --fuel 1000", 2, "E0501"),
        ("--pad 4 --backend interp", 0, ""),
    ] {
        answer(directory.path(), &line(rest), status, code, "");
    }
    fs::write(directory.path().join("it.teil"), "alloc A : [3]\nalloc B : [3]\nB = A\n").unwrap();
    answer(directory.path(), "run it.teil --in A=1 --pad 4", 2, "E0407", "model language");
}

#[test]
fn files_that_are_no_programs() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fs::create_dir(path.join("directory.teil")).unwrap();
    fs::write(path.join("it.txt"), "").unwrap();
    answer(path, "check gone.teil", 2, "E0104", "gone.teil");
    answer(path, "check directory.teil", 2, "E0104", "is a directory");
    answer(path, "check it.txt", 2, "E0104", "names no dialect");
    answer(path, "check it.teil/../it.txt", 2, "E0104", "it.txt");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/dev/zero", path.join("endless.teil")).unwrap();
        answer(path, "check endless.teil", 2, "E0104", "is not a regular file");
    }
}

#[test]
fn deep_and_wide_programs_are_accepted() {
    const N: usize = 100_000;
    check(format!("{AB}{}A{}\n", "(".repeat(N), ")".repeat(N)), 0, "", "");
    check(format!("{AB}{}A\n", "add A ".repeat(N)), 0, "", "");
    check(format!("{AB}{}A{}\n", "add A (".repeat(N), ")".repeat(N)), 0, "", "");
    check(format!("{AB}{}A{}\n", "add ".repeat(N), " A".repeat(N)), 0, "", "");
    check(format!("{AB}{}A{}\n", "add (".repeat(N), ") A".repeat(N)), 0, "", "");
    check(format!("alloc A : [{}n]\n", "n + ".repeat(N)), 0, "", "");
}

#[test]
fn deep_and_wide_programs_that_are_too_much() {
    const N: usize = 100_000;
    check(format!("{AB}{}", "(".repeat(N)), 1, "E0103", "found the end of the file");
    check(format!("{AB}{}", "add A ".repeat(N)), 1, "E0103", "found the end of the file");
    check(format!("alloc A : [{}]\n", "1, ".repeat(N) + "1"), 1, "E0213", "100001 dimensions are more than 64");
    check(format!("{AB}{}A\n", "prod A ".repeat(N)), 1, "E0213", "more than 64");
    check(format!("{AB}{}A{}\n", "red+ 1 (expa 1 2 (".repeat(N), "))".repeat(N)), 1, "E0214", "more than 100");
    check(format!("alloc A : [{}n{}]\n", "(".repeat(N), ")".repeat(N)), 1, "E0216", "");
    check(format!("alloc A : [{}n]\n", "-".repeat(N)), 1, "E0216", "");
    check(format!("alloc A : [{}n{}]\n", "max(1, ".repeat(N), ")".repeat(N)), 1, "E0216", "");
    check(format!("alloc A : [n]\nwhere {}n >= 1{}\n", "!(".repeat(N), ")".repeat(N)), 1, "E0216", "");
    let names: Vec<String> = (0..N).map(|i| format!("n{i}")).collect();
    check(format!("alloc A : [{}]\n", names.join(" + ")), 1, "E0216", "");
    check(format!("alloc A : [{}]\n", vec!["(a + b + 1)"; 100].join(" * ")), 1, "E0216", "");
}

#[test]
fn sizes_of_a_billion_billions() {
    check(format!("alloc A : [{HUGE}]\nalloc B : [{HUGE}]\nB = A\n"), 0, "", "");
    check(format!("alloc A : [10, {HUGE}]\n"), 1, "E0215", "");
    check(format!("alloc A : [{HUGE}0]\n"), 1, "E0102", "too large");
    check(format!("alloc A : [n * {HUGE} * {HUGE}]\n"), 1, "E0216", "");
    // An intermediate result may be of any size.
    check(format!("alloc A : [4]\nalloc B : [4]\nB = red+ 1 (expa 1 {HUGE} A)\n"), 0, "", "");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fs::write(path.join("it.teil"), format!("{AB}A\n")).unwrap();
    for backend in ["native", "interp"] {
        answer(path, &format!("run it.teil --in A=1 --backend {backend} --dim n={HUGE}"), 3, "E0408", "MiB");
    }
    answer(path, &format!("run it.teil --in A=1 --dim n={HUGE} --at B[0]"), 3, "E0408", "MiB");
    fs::write(path.join("it.teil"), format!("alloc A : []\nalloc B : []\nB = red+ 1 (expa 1 {HUGE} A)\n")).unwrap();
    answer(path, "run it.teil --in A=1 --backend interp --fuel 100000", 2, "E0501", "steps");
}

#[test]
fn texts_with_nothing_but_mistakes() {
    const N: usize = 100_000;
    let many = [
        (format!("alloc A : [4]\n{}", "A = B\n".repeat(N)), "E0201"),
        (format!("alloc A : [4]\n{}", "A = B ".repeat(N)), "E0201"),
        (format!("alloc A : [4]\nA = {}B\n", "add B ".repeat(N)), "E0201"),
        ("§\n".repeat(N), "E0101"),
        ("§ ".repeat(N), "E0101"),
        ("alloc A : [4]\n".repeat(N), "E0202"),
    ];
    let directory = tempfile::tempdir().unwrap();
    for (text, code) in many {
        fs::write(directory.path().join("it.teil"), &text).unwrap();
        let shown = answer(directory.path(), "check it.teil", 1, code, "").err;
        assert!(shown.ends_with("… and at least 980 more\n") && shown.len() < 50_000, "{shown}");
        let listed = limited(directory.path(), "check it.teil --json", SECONDS, KIB);
        let value: serde_json::Value = serde_json::from_str(&listed.out).unwrap();
        assert_eq!((listed.status, value["diagnostics"].as_array().map(Vec::len)), (Some(1), Some(1000)));
    }
}

/// A `.npy` file, written by hand.
fn npy(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    let length = u16::try_from(header.len()).unwrap().to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), data].concat()
}

#[test]
fn arrays_of_every_kind() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fs::write(path.join("it.teil"), "alloc A : [m, n]\nalloc B : [m, n]\nB = add A A\n").unwrap();
    let little: Vec<u8> = (0..6).flat_map(|i| f64::from(i).to_le_bytes()).collect();
    let big: Vec<u8> = (0..6).flat_map(|i| f64::from(i).to_be_bytes()).collect();
    let columns: Vec<u8> = [0, 3, 1, 4, 2, 5].into_iter().flat_map(|i| f64::from(i).to_le_bytes()).collect();
    let whole = npy("<f8", "False", "(2, 3)", &little);
    let line = "run it.teil --in A=it.npy --backend interp";
    for accepted in [&whole, &npy(">f8", "False", "(2, 3)", &big), &npy("<f8", "True", "(2, 3)", &columns)] {
        fs::write(path.join("it.npy"), accepted).unwrap();
        let ran = answer(path, line, 0, "", "");
        assert_eq!(ran.out, "B : f64[2, 3]\n[[0.0, 2.0, 4.0],\n [6.0, 8.0, 10.0]]\n");
    }
    let huge = |shape: &str| npy("<f8", "False", shape, &little);
    let nested = format!("({}", "(".repeat(60_000));
    let refused: Vec<(Vec<u8>, &str, &str)> = vec![
        (Vec::new(), "E0405", "the file has 0"),
        (b"PK\x03\x04 is how a zip archive begins".to_vec(), "E0405", "does not begin like a .npy file"),
        (noise(2).take(1000).collect(), "E0405", "does not begin like a .npy file"),
        (b"\x93NUMPY\x09\x00".to_vec(), "E0405", "version 9.0"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec(), "E0405", "4294967295 bytes"),
        (whole[..9].to_vec(), "E0405", "it ends in the middle"),
        (whole[..40].to_vec(), "E0405", "but the file has 40"),
        (whole[..whole.len() - 1].to_vec(), "E0405", "has 48 bytes of data, but the file has 47"),
        ([&whole[..], &[0]].concat(), "E0405", "has 48 bytes of data, but the file has 49"),
        (huge("(1000000000000000000,)"), "E0405", "f64[1000000000000000000]"),
        (huge("(1000000000000000000, 1000000000000000000)"), "E0405", "more than 2^64 bytes"),
        (huge("(99999999999999999999,)"), "E0405", ""),
        (huge("(-1, 3)"), "E0405", ""),
        (huge(&nested), "E0405", ""),
        (npy("<c16", "False", "(1, 3)", &little), "E0405", "c16"),
        (npy("<f2", "False", "(2, 3)", &little[..12]), "E0405", "f2"),
        (npy("|O", "False", "(2, 3)", &little), "E0405", "O"),
        (npy("|b1", "False", "(2, 3)", &[0, 1, 2, 0, 1, 0]), "E0405", "neither 0 nor 1"),
        (npy("<f4", "False", "(3, 4)", &little), "E0404", "f32"),
        (npy("<i8", "False", "(2, 3)", &little), "E0404", "i64"),
        (npy("<f8", "False", "(6,)", &little), "E0403", "1 dimensions"),
        (npy("<f8", "False", "(0, 3)", &[]), "E0409", "m >= 1"),
    ];
    for (bytes, code, words) in refused {
        fs::write(path.join("it.npy"), bytes).unwrap();
        answer(path, line, 2, code, words);
    }
    fs::write(path.join("it.npz"), &whole).unwrap();
    answer(path, "run it.teil --in A=it.npz:A", 2, "E0405", "it.npz");
    answer(path, "run it.teil --in A=it.teil/it.npy", 3, "E0603", "it.teil/it.npy");
    answer(path, "run it.teil --in A=gone.npy", 2, "E0405", "gone.npy");
    fs::create_dir(path.join("directory.npy")).unwrap();
    answer(path, "run it.teil --in A=directory.npy", 2, "E0405", "not a regular file");
}

#[test]
fn empty_arrays_of_a_billion_rows() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fs::write(path.join("it.ten"), "fn f(x: f64[n, m]) -> f64 { sum(x) }\n").unwrap();
    for shape in ["(1125899906842624, 0)", "(0, 2147483649)", "(4611686018427387904, 0)"] {
        fs::write(path.join("it.npy"), npy("<f8", "False", shape, &[])).unwrap();
        for backend in ["native", "interp"] {
            let line = format!("run it.ten --in x=it.npy --backend {backend}");
            answer(path, &line, 2, "E0409", "too large for loops although it has no elements");
        }
    }
    fs::write(path.join("it.npy"), npy("<f8", "False", "(1000, 0)", &[])).unwrap();
    assert_eq!(answer(path, "run it.ten --in x=it.npy", 0, "", "").out, "result : f64[]\n0.0\n");
}

/// Programs of so many statements: one that works on two tensors, one that has as many tensors, and
/// a thousand sizes.
fn long_programs(statements: usize) -> [String; 2] {
    let few = "T = transp 1 2 (add B (expa 1 m (proj 1 1 A)))\nB = mul A (transp 2 1 T)\n";
    let few = "alloc input A : [m, n]\nalloc output B : [m, n]\nalloc T : [n, m]\nB = A\n".to_owned()
        + &few.repeat(statements / 2);
    let mut many = String::new();
    (0..statements).for_each(|at| many += &format!("alloc A{at} : [n{}]\n", at % 1000));
    (0..statements).for_each(|at| many += &format!("A{at} = add A{at} A{at}\n"));
    [few, many]
}

/// The processor's seconds that a check takes, by the shell's own account: the best of three tries.
fn seconds(directory: &Path, text: &str) -> f64 {
    fs::write(directory.join("it.teil"), text).unwrap();
    let once = || {
        let ran = run(command("sh", directory).args(["-c", "\"$0\" check it.teil >it.out && times", CERTEN]));
        assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
        // The last line is about the shell's children: `0m1.230s 0m0.120s`, of the program and of the system for it.
        let times = ran.out.lines().last().unwrap_or_default().split_whitespace();
        let parts = times.map(|time| time.trim_end_matches('s').split_once('m').expect("minutes and seconds"));
        parts.map(|(m, s)| 60.0 * m.parse::<f64>().unwrap() + s.parse::<f64>().unwrap()).sum::<f64>()
    };
    (0..3).map(|_| once()).fold(f64::INFINITY, f64::min)
}

/// Ten times the statements take about ten times as long; a pass that is quadratic would take a hundred times as long.
#[track_caller]
fn grows_linearly(small: f64, large: f64) {
    // Short times are noise on a machine that does other things too.
    assert!(large < 25.0 * small.max(0.01) + 0.5, "{small} s, then {large} s");
}

#[test]
fn checking_grows_linearly() {
    let directory = tempfile::tempdir().unwrap();
    let [small, large] = [5_000, 50_000].map(|size| long_programs(size).map(|text| seconds(directory.path(), &text)));
    small.into_iter().zip(large).for_each(|(small, large)| grows_linearly(small, large));
}

/// The promise itself. It holds for an optimised build; any other has ten times as long.
#[test]
#[ignore = "takes long without optimisation"]
fn slow_a_hundred_thousand_statements_in_two_seconds() {
    let directory = tempfile::tempdir().unwrap();
    let limit = if cfg!(debug_assertions) { 20.0 } else { 2.0 };
    let sizes = [1_000, 10_000, 100_000];
    let [small, middle, large] = sizes.map(|size| long_programs(size).map(|text| seconds(directory.path(), &text)));
    assert!(large.iter().all(|&seconds| seconds < limit), "100,000 statements take {large:?} s");
    small.into_iter().zip(middle).for_each(|(small, middle)| grows_linearly(small, middle));
    middle.into_iter().zip(large).for_each(|(middle, large)| grows_linearly(middle, large));
}

/// The answer to `certen guard` of a text in a language.
#[track_caller]
fn guard(text: impl AsRef<[u8]>, ending: &str, status: i32, code: &str, words: &str) -> Ran {
    let directory = tempfile::tempdir().unwrap();
    let file = format!("it.{ending}");
    fs::write(directory.path().join(&file), text).unwrap();
    answer(directory.path(), &format!("guard {file}"), status, code, words)
}

#[test]
fn kernels_of_other_frameworks_are_as_hostile() {
    let deep = |open: &str, close: &str| open.repeat(200_000) + "b" + &close.repeat(200_000);
    guard(format!("double a, b\na = {}", deep("(", ")")), "taco", 2, "E0103", "nested too deeply");
    guard(format!("def f(float b) -> (a) {{ a = {} }}", deep("exp(", ")")), "tc", 2, "E0103", "nested too deeply");
    guard(format!("var a : []\nvar b : []\na = {}", deep("[", "]")), "cfd", 2, "E0103", "nested too deeply");
    guard(format!("a = {}", deep("(", ")")), "py", 2, "E0103", "nested too deeply");
    guard(format!("a = b{}", ".b".repeat(200_000)), "py", 2, "E0103", "nested too deeply");
    for ending in ["taco", "tc", "cfd"] {
        guard(noise(5).take(100_000).collect::<Vec<u8>>(), ending, 2, "E0104", "");
        guard("\0\0\0", ending, 2, "E0101", "");
        guard("(".repeat(100_000), ending, 2, "E0103", "");
    }
    guard("", "taco", 0, "", "");
    guard("", "py", 0, "", "");
    guard("x = 1\n".repeat(50_000), "py", 0, "", "");
    guard("x = [", "py", 2, "E0103", "not Python");
    guard("double a(i)", "txt", 2, "E0104", "ending names no language");
}
