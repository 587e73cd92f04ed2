//! The entry points of emitted C, called as C programs call them: what they accept, what they refuse and with which
//! code, under sanitizers.

use std::process::Command;

use certen_codegen::{CCode, emit_c};
use certen_core::parse_program;
use certen_loops::{FpMode, lower, verify};
use certen_syntax::Sources;

fn emitted(core: &str) -> CCode {
    let mut sources = Sources::new();
    let file = sources.add("t.core", core);
    let program =
        lower(&parse_program(&sources, file).unwrap_or_else(|errors| panic!("{errors:?}")), FpMode::Relaxed).unwrap();
    assert_eq!(verify(&program), []);
    emit_c(&program).unwrap()
}

/// Compiles a program with its user, without a warning, and runs them.
fn run(code: &CCode, user: &str) {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("f.c"), &code.source).unwrap();
    std::fs::write(path("f.h"), &code.header).unwrap();
    std::fs::write(path("user.c"), user).unwrap();
    let flags = ["-std=c11", "-g", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"];
    let mut command = Command::new("cc");
    command.args(flags).arg("-fsanitize=address,undefined").arg("-fno-sanitize-recover=all");
    let compiled =
        command.arg(path("f.c")).arg(path("user.c")).arg("-o").arg(path("user")).arg("-lm").output().unwrap();
    assert!(compiled.status.success(), "{}\n{}", String::from_utf8_lossy(&compiled.stderr), code.source);
    let ran = Command::new(path("user")).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && said.is_empty(), "{said}\n{}", code.source);
}

/// y is the transposed of x + v, z the sums of the rows of x.
const PROGRAM: &str = "core f
size m, n
where m >= 1, n >= 0
input x : f64[m, n]
input v : f64[m, n]
input k : i32[]
y = gen i in 0..n. gen j in 0..m. x[j, i] + v[j, i]
z = gen i in 0..m. cast.f64(k) + sum j in 0..n. x[i, j]
output y
output z
";

const USER: &str = r#"
#include "f.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) do { \
    if (!(condition)) { fprintf(stderr, "line %d: %s\n", __LINE__, #condition); exit(1); } \
} while (0)

static const int32_t k = 7;
static double x[3][5], v[3][5], y[5][3], z[3];

/* Whether an element of y is right, for x as seen by the caller. */
static void expect(double (*element)(int i, int j)) {
    for (int i = 0; i < 3; i++) {
        double sum = 7.0;
        for (int j = 0; j < 5; j++) {
            CHECK(y[j][i] == element(i, j) + v[i][j]);
            sum += element(i, j);
        }
        CHECK(z[i] == sum);
    }
}

static double plain(int i, int j) { return 10*i + j; }
static double backwards(int i, int j) { return 10*(2 - i) + 4 - j; }
static double repeated(int i, int j) { (void)i; return j; }

int main(void) {
    double *none = NULL;
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 5; j++) { x[i][j] = 10*i + j; v[i][j] = 100*j - i; }
    }
    CHECK(F_OK == 0 && F_NO_MEMORY == 1 && F_BAD_SIZES == 2 && F_NULL_POINTER == 3 && F_OVERLAP == 4 && F_TOO_LARGE == 5);
    CHECK(f(3, 5, x[0], v[0], &k, y[0], z) == F_OK);
    expect(plain);

    /* Sizes */
    CHECK(f(0, 5, x[0], v[0], &k, y[0], z) == F_BAD_SIZES);
    CHECK(f(3, -1, x[0], v[0], &k, y[0], z) == F_BAD_SIZES);
    CHECK(f(-3, -5, x[0], v[0], &k, y[0], z) == F_BAD_SIZES);
    const int64_t large[] = {INT64_MIN, INT64_MIN + 1, INT64_MAX, INT64_C(1) << 62, INT64_C(1) << 60};
    for (int i = 0; i < 5; i++) {
        CHECK(f(large[i], 5, x[0], v[0], &k, y[0], z) == F_TOO_LARGE);
        CHECK(f(3, large[i], x[0], v[0], &k, y[0], z) == F_TOO_LARGE);
        CHECK(f(large[i], 0, NULL, NULL, &k, NULL, z) == F_TOO_LARGE);
        CHECK(f(large[i], large[i], x[0], v[0], &k, y[0], z) == F_TOO_LARGE);
    }
    CHECK(f(INT64_C(1) << 40, INT64_C(1) << 40, x[0], v[0], &k, y[0], z) == F_TOO_LARGE);
    /* Large, but not too large: then the pointers are looked at. */
    CHECK(f(1, INT64_C(1) << 58, NULL, v[0], &k, y[0], z) == F_NULL_POINTER);
    CHECK(f(INT64_C(1) << 29, INT64_C(1) << 29, NULL, v[0], &k, y[0], z) == F_NULL_POINTER);

    /* Pointers */
    CHECK(f(3, 5, NULL, v[0], &k, y[0], z) == F_NULL_POINTER);
    CHECK(f(3, 5, x[0], v[0], NULL, y[0], z) == F_NULL_POINTER);
    CHECK(f(3, 5, x[0], v[0], &k, none, z) == F_NULL_POINTER);
    CHECK(f(3, 0, NULL, NULL, &k, none, z) == F_OK && z[0] == 7.0);
    CHECK(f(3, 0, NULL, NULL, &k, none, none) == F_NULL_POINTER);

    /* Overlap */
    double a[100];
    for (int i = 0; i < 100; i++) a[i] = i;
    CHECK(f(3, 5, a, a, &k, y[0], z) == F_OK && y[4][2] == 28.0);
    CHECK(f(3, 5, a, a + 7, &k, y[0], z) == F_OK);
    CHECK(f(3, 5, a, v[0], &k, a, z) == F_OVERLAP);
    CHECK(f(3, 5, a, v[0], &k, a + 14, z) == F_OVERLAP);
    CHECK(f(3, 5, a + 14, v[0], &k, a, z) == F_OVERLAP);
    CHECK(f(3, 5, a, v[0], &k, a + 20, a + 34) == F_OVERLAP);
    CHECK(f(3, 5, a, v[0], &k, a + 15, a + 30) == F_OK && a[29] == 14.0 + v[2][4]);
    CHECK(f(3, 0, a, v[0], &k, a, a) == F_OK);

    /* Strides */
    const int64_t dense[] = {5, 1}, minus[] = {-5, -1}, rows[] = {0, 1}, wide[] = {12, 2}, back[] = {-1, -5};
    CHECK(f_strided(3, 5, x[0], dense, v[0], NULL, &k, NULL, y[0], NULL, z, NULL) == F_OK);
    expect(plain);
    CHECK(f_strided(3, 5, &x[2][4], minus, v[0], dense, &k, dense, y[0], NULL, z, NULL) == F_OK);
    expect(backwards);
    CHECK(f_strided(3, 5, x[0], rows, v[0], dense, &k, NULL, y[0], NULL, z, NULL) == F_OK);
    expect(repeated);
    double columns[5][3];
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 5; j++) columns[j][i] = x[i][j];
    }
    const int64_t transposed[] = {1, 3}, one[] = {1};
    CHECK(f_strided(3, 5, columns[0], transposed, v[0], dense, &k, NULL, y[0], NULL, z, one) == F_OK);
    expect(plain);

    /* Outputs with strides: what lies between the elements is kept. */
    double spread[60], reversed[15];
    for (int i = 0; i < 60; i++) spread[i] = -1.0;
    CHECK(f_strided(3, 5, x[0], NULL, v[0], NULL, &k, NULL, spread, wide, z, NULL) == F_OK);
    for (int j = 0; j < 5; j++) {
        for (int i = 0; i < 12; i++) {
            double wanted = i < 6 && i % 2 == 0 ? x[i/2][j] + v[i/2][j] : -1.0;
            CHECK(spread[12*j + i] == wanted);
        }
    }
    CHECK(f_strided(3, 5, x[0], NULL, v[0], NULL, &k, NULL, reversed + 14, back, z, NULL) == F_OK);
    for (int j = 0; j < 5; j++) {
        for (int i = 0; i < 3; i++) CHECK(reversed[14 - j - 5*i] == x[i][j] + v[i][j]);
    }

    /* Outputs with an element twice, and strides that reach too far */
    const int64_t same[] = {0, 1}, crossing[] = {1, 1}, near[] = {2, 1}, far[] = {INT64_MIN, 1}, high[] = {1, INT64_MAX};
    CHECK(f_strided(3, 5, x[0], NULL, v[0], NULL, &k, NULL, y[0], same, z, NULL) == F_OVERLAP);
    CHECK(f_strided(3, 5, x[0], NULL, v[0], NULL, &k, NULL, y[0], crossing, z, NULL) == F_OVERLAP);
    CHECK(f_strided(3, 5, x[0], NULL, v[0], NULL, &k, NULL, y[0], near, z, NULL) == F_OVERLAP);
    CHECK(f_strided(3, 5, x[0], far, v[0], NULL, &k, NULL, y[0], NULL, z, NULL) == F_TOO_LARGE);
    CHECK(f_strided(3, 5, x[0], NULL, v[0], high, &k, NULL, y[0], NULL, z, NULL) == F_TOO_LARGE);
    CHECK(f_strided(1, 5, x[0], far, v[0], NULL, &k, NULL, y[0], NULL, z, NULL) == F_OK && y[0][0] == x[0][0] + v[0][0]);
    CHECK(f_strided(3, 5, x[0], NULL, v[0], NULL, &k, NULL, x[0], dense, z, NULL) == F_OVERLAP);
    /* The whole extent counts, also what lies between the elements. */
    CHECK(f_strided(3, 5, x[0], NULL, v[0], NULL, &k, NULL, spread, wide, spread + 1, NULL) == F_OVERLAP);

    /* An address that a double may not have */
    char bytes[sizeof x + 1];
    memcpy(bytes + 1, x, sizeof x);
    CHECK(f(3, 5, (const double *)(const void *)(bytes + 1), v[0], &k, y[0], z) == F_OK);
    expect(plain);

    for (int32_t i = 0; i < 6; i++) CHECK(strcmp(f_error(i), f_error(i + 1)) != 0);
    CHECK(strcmp(f_error(-1), f_error(6)) == 0);
    return 0;
}
"#;

#[test]
fn callers_are_told_what_is_wrong() {
    run(&emitted(PROGRAM), USER);
}

/// Nothing is taken for a user's name, whatever that is: the entry points' own, their parameters and variables, those
/// of the helpers, names of C, and names that differ only in characters that C does not know.
#[test]
fn names_are_not_captured() {
    let names = ["f_strided", "f_error", "f_kernel", "arrays", "most", "error", "x_strides", "status", "memory", "at"];
    let strange = ["certen_begin", "certen_magnitude", "i", "t_1", "F_OK", "NULL", "size_t", "memcpy", "SIZE_MAX", "f"];
    let mut text = "core f\nsize n, a, d, e\nwhere n >= 1, a >= 1, d >= 0, e >= 0\ninput x : f64[n, a]\n".to_owned();
    for name in names.into_iter().chain(strange) {
        text += &format!("input {name} : f64[n]\n");
    }
    let sum: Vec<String> = names.into_iter().chain(strange).map(|name| format!("{name}[j]")).collect();
    text += &format!("result = gen j in 0..n. x[j, 0] + {}\noutput result\noutput count = result\n", sum.join(" + "));
    let arguments = "one, ".repeat(names.len() + strange.len());
    let user = format!(
        "#include \"f.h\"\nint main(void) {{\n    double one[2] = {{1.0, 2.0}}, r[2], c[2];\n    \
         return f(2, 1, 0, 0, one, {arguments}r, c) == F_OK && r[1] == 42.0 && c[0] == 21.0 ? 0 : 1;\n}}\n"
    );
    run(&emitted(&text), &user);
}

/// So many arrays that they are described on the heap.
#[test]
fn many_arrays() {
    let mut text = "core f\nsize n\nwhere n >= 0\ninput x : f64[n]\n".to_owned();
    (0..100).for_each(|at| text += &format!("y{at} = gen i in 0..n. x[i] + {at}.0\n"));
    (0..100).for_each(|at| text += &format!("output y{at}\n"));
    let outputs = |last: &str| (0..99).map(|at| format!("y[{at}], ")).collect::<String>() + last;
    let user = format!(
        "#include \"f.h\"\nint main(void) {{\n    double x[2] = {{1.0, 2.0}}, y[100][2];\n    \
         if (f(2, x, {}) != F_OVERLAP || f(2, x, {}) != F_OK) return 1;\n    return y[99][1] == 101.0 ? 0 : 1;\n}}\n",
        outputs("y[50]"),
        outputs("y[99]")
    );
    run(&emitted(&text), &user);
}

/// Constants that make indices too large for any sizes are found when C is printed.
#[test]
fn what_never_fits_is_no_program() {
    let mut sources = Sources::new();
    let text = "core f\nsize n\ninput x : f64[4611686018427387904, 8, n]\ny = gen i in 0..n. x[0, 0, i]\noutput y\n";
    let file = sources.add("t.core", text);
    let code = lower(&parse_program(&sources, file).unwrap(), FpMode::Relaxed)
        .map(|loops| emit_c(&loops).map_err(|error| error.code.to_string()));
    assert!(matches!(&code, Ok(Err(code)) if code == "E0216"), "{code:?}");
}
