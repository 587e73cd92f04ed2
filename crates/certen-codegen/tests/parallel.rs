//! Parallel loops in C: the same bits whoever runs the parts, no data races, memory that runs out in the middle.

use std::path::Path;
use std::process::Command;

use certen_codegen::emit_c;
use certen_loops::{parse_loops, verify};
use certen_syntax::Sources;

/// A buffer, a local and an index from outside; private memory; a loop inside another; ranges that depend on indices.
const PROGRAM: &str = "loops f
size m, n
where m >= 1, n >= 1
input x : f64[m, n]
output z : f64[m, n]
output s : f64[m]
local scale : f64 = 3.0
alloc u : f64[n]
parallel for j in 0..n {
    u[j] = index.f64(j) * scale
}
for t in 0..2 {
    parallel for i in 0..m {
        alloc row : f64[n]
        local acc : f64 = 0.0
        for j in 0..n {
            row[j] = x[i, j] * u[j] + index.f64(t) + scale
        }
        for j in 0..n {
            acc += row[j]
        }
        for k in 0..min(i, 2) {
            for j in k..k {
                acc = 0.0
            }
        }
        parallel for j in 0..n {
            z[i, j] = row[n - 1 - j]
        }
        s[i] = acc
        free row
    }
}
free u
";

/// Calls the program with sizes that are worth threads and with small ones, and compares with what it should compute.
const DRIVER: &str = r#"
static double x[211*101], z[211*101], s[211];

/* Whether every element is what it should be. */
static int is_right(int64_t m, int64_t n) {
    for (int64_t i = 0; i < m; i++) {
        double acc = 0.0;
        for (int64_t j = 0; j < n; j++) {
            const double row = x[i*n + j] * ((double)j * 3.0) + 1.0 + 3.0;
            acc += row;
            if (z[i*n + (n - 1 - j)] != row) return 0;
        }
        if (s[i] != acc) return 0;
    }
    return 1;
}

static int32_t run(int64_t m, int64_t n) {
    for (int at = 0; at < 211*101; at++) x[at] = at % 13 - 0.1, z[at] = -1.0;
#ifdef NATIVE
    const int64_t sizes[] = {m, n};
    void *const buffers[] = {x, z, s};
    return certen_call(sizes, buffers);
#else
    return f(m, n, x, z, s);
#endif
}

int main(void) {
    prepare();
    const int64_t sizes[][2] = {{211, 101}, {3, 5}, {1, 1}, {2, 101}};
    for (int at = 0; at < 4; at++) {
        if (run(sizes[at][0], sizes[at][1]) != 0 || !is_right(sizes[at][0], sizes[at][1])) return 1;
    }
    return finish();
}
"#;

/// Runs the program and a driver around it as one file; with `-DNATIVE` as the runtime has it, else as it stands alone.
fn run(before: &str, after: &str, flags: &[&str]) -> String {
    run_with(0, before, after, flags)
}

/// With more buffers than that: a program that has many of them gives them back in another way.
fn run_with(buffers: usize, before: &str, after: &str, flags: &[&str]) -> String {
    let more: String = (0..buffers).map(|at| format!("alloc a{at} : f64[m]\nfree a{at}\n")).collect();
    let mut sources = Sources::new();
    let file = sources.add("f.loops", format!("{PROGRAM}{more}"));
    let program = parse_loops(&sources, file).unwrap_or_else(|errors| panic!("{errors:?}"));
    assert!(verify(&program).is_empty(), "{:?}", verify(&program));
    let code = emit_c(&program).unwrap();
    let source = if flags.contains(&"-DNATIVE") { code.native } else { code.source };
    // Alone, loops without memory of their own stay where they are.
    let expected = if flags.contains(&"-DNATIVE") { (4, 0) } else { (2, 4) };
    assert_eq!((source.matches("certen_parallel(").count(), source.matches("CERTEN_PARALLEL(").count()), expected);
    let dir = tempfile::tempdir().unwrap();
    let text = format!("{before}\n#include \"f.c\"\n{after}{DRIVER}");
    std::fs::write(dir.path().join("f.c"), source).unwrap();
    std::fs::write(dir.path().join("driver.c"), text).unwrap();
    let out = compile(dir.path(), flags);
    let ran = Command::new(out).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{:?} {flags:?}\n{out}{err}", ran.status);
    out.into_owned()
}

fn compile(dir: &Path, flags: &[&str]) -> std::path::PathBuf {
    let out = dir.join("driver");
    let mut command = Command::new("cc");
    command.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-O1"]).args(flags);
    let output = command.arg(dir.join("driver.c")).arg("-o").arg(&out).arg("-lm").output().unwrap();
    assert!(output.status.success(), "{flags:?}\n{}", String::from_utf8_lossy(&output.stderr));
    out
}

const NOTHING: &str = "static void prepare(void) {}\nstatic int finish(void) { return 0; }\n";

#[test]
fn without_threads_it_is_a_plain_call() {
    run("", NOTHING, &["-fsanitize=undefined,address"]);
    run("", NOTHING, &["-DNATIVE", "-fsanitize=undefined,address"]);
}

#[test]
fn openmp_shares_the_parts() {
    run("", NOTHING, &["-fopenmp"]);
}

#[test]
fn threads_that_are_given_share_the_parts() {
    let pool = "
static int calls;

static void backwards(int64_t begin, int64_t end, certen_range *part, void *context) {
    calls++;
    for (int64_t at = end - 1; at >= begin; at -= 2) part(at, at + 1, context);
    for (int64_t at = end - 2; at >= begin; at -= 2) part(at, at + 1, context);
}

static void prepare(void) { certen_use_threads(backwards); }

/* Only the large sizes are worth it. */
static int finish(void) { return calls != 2; }
";
    run("", pool, &["-DNATIVE", "-fsanitize=undefined,address"]);
}

#[test]
fn clang_makes_no_vectors_of_them() {
    let mut sources = Sources::new();
    let text = "loops f\nsize n\nwhere n >= 0\ninput x : f64[n]\noutput y : f64[n]\n\
                parallel for i in 0..n {\n  y[i] = 2.0 * x[i]\n}\n";
    let file = sources.add("f.loops", text);
    let code = emit_c(&parse_loops(&sources, file).unwrap()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("f.c"), code.source).unwrap();
    for openmp in ["-fno-openmp", "-fopenmp"] {
        let mut command = Command::new("clang");
        command.args(["-std=c11", "-Wall", "-Wextra", "-O3", "-Rpass=loop-vectorize", "-c", "f.c", openmp]);
        // Where it is not installed there is nothing to see.
        let Ok(output) = command.current_dir(dir.path()).output() else { return };
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !said.contains("warning") && !said.contains("i < n;"), "{said}");
    }
}

/// The sanitizer watches two threads that run the parts in turn.
#[test]
fn there_are_no_data_races() {
    let pool = "
#include <pthread.h>

struct half { int64_t begin, end; certen_range *part; void *context; };

static void *work(void *half) {
    struct half *of = half;
    for (int64_t at = of->begin; at < of->end; at += 2) of->part(at, at + 1, of->context);
    return 0;
}

static void in_two(int64_t begin, int64_t end, certen_range *part, void *context) {
    struct half halves[2] = {{begin, end, part, context}, {begin + 1, end, part, context}};
    pthread_t other;
    if (pthread_create(&other, 0, work, &halves[1]) != 0) abort();
    work(&halves[0]);
    pthread_join(other, 0);
}

static void prepare(void) { certen_use_threads(in_two); }
static int finish(void) { return 0; }
";
    run("", pool, &["-DNATIVE", "-fsanitize=thread", "-g"]);
}

#[test]
fn memory_that_runs_out_in_a_part_is_reported_and_given_back() {
    let before = "
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static long left = 1000000, taken, freed;

static void *take(size_t bytes) {
    if (left-- <= 0) return 0;
    taken++;
    return malloc(bytes);
}

static void give(void *memory) {
    if (memory) freed++;
    free(memory);
}

#define malloc(bytes) take(bytes)
#define aligned_alloc(alignment, bytes) take(bytes)
#define calloc(count, bytes) take((count)*(bytes))
#define free(memory) give(memory)
";
    let after = "
static void backwards(int64_t begin, int64_t end, certen_range *part, void *context) {
    for (int64_t at = end - 1; at >= begin; at--) part(at, at + 1, context);
}

static int32_t run(int64_t m, int64_t n);

static void prepare(void) {
    certen_use_threads(backwards);
    for (long limit = 0; limit < 423; limit += 47) {
        left = limit;
        printf(\"%ld: %d\\n\", limit, (int)run(211, 101));
        if (taken != freed) exit(1);
    }
    left = 1000000;
}

static int finish(void) { return taken != freed; }
";
    for buffers in [0, 20] {
        let printed = run_with(buffers, before, after, &["-DNATIVE", "-fsanitize=undefined,address"]);
        // A buffer, and 211 rows twice: less is not enough.
        assert_eq!(printed.lines().count(), 9);
        assert!(printed.lines().all(|line| line.ends_with(": 1")), "{printed}");
    }
}
