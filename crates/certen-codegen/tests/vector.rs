//! Vector loops in C: their text, that compilers do not complain, and that they have the interpreter's bits.

mod common;

use certen_codegen::{CCode, emit_c};
use common::{compile, emitted, loops, same_bits};

/// A product in tiles of 4 rows and 16 columns that are kept in registers.
const TILED: &str = "loops tiled
input A : f64[8, 29]
input B : f64[29, 32]
output C : f64[8, 32]
for i.o in 0..2 {
  for j.o in 0..2 {
    alloc acc : f64[4, 16]
    for i in 0..4 {
      vector for j in 0..16 {
        acc[i, j] = 0.0
      }
    }
    for l in 0..29 {
      for i in 0..4 {
        vector for j in 0..16 {
          acc[i, j] += A[4*i.o + i, l] * B[l, 16*j.o + j]
        }
      }
    }
    for i in 0..4 {
      vector for j in 0..16 {
        C[4*i.o + i, 16*j.o + j] = acc[i, j]
      }
    }
    free acc
  }
}
";

#[test]
fn a_tile_reads_like_c() {
    let code = emitted(&loops(TILED));
    assert_eq!(
        code.kernel,
        "\
static void tiled_kernel(const double *restrict A, const double *restrict B, double *restrict C) {
    for (int64_t i_o = 0; i_o < 2; i_o++) {
        for (int64_t j_o = 0; j_o < 2; j_o++) {
            double acc[64];
            CERTEN_UNROLL(4)
            for (int64_t i = 0; i < 4; i++) {
                CERTEN_UNROLL(8)
                for (int64_t j = 0; j < 16; j += certen_f64_v64_lanes) {
                    *(certen_f64_m64 *)&acc[i*16 + j] = (certen_f64_v64){0};
                }
            }
            for (int64_t l = 0; l < 29; l++) {
                CERTEN_UNROLL(4)
                for (int64_t i = 0; i < 4; i++) {
                    CERTEN_UNROLL(8)
                    for (int64_t j = 0; j < 16; j += certen_f64_v64_lanes) {
                        *(certen_f64_m64 *)&acc[i*16 + j] += A[(i + 4*i_o)*29 + l] *
                                *(const certen_f64_m64 *)&B[l*32 + j + 16*j_o];
                    }
                }
            }
            CERTEN_UNROLL(4)
            for (int64_t i = 0; i < 4; i++) {
                CERTEN_UNROLL(8)
                for (int64_t j = 0; j < 16; j += certen_f64_v64_lanes) {
                    *(certen_f64_m64 *)&C[(i + 4*i_o)*32 + j + 16*j_o] = *(const certen_f64_m64 *)&acc[i*16 + j];
                }
            }
        }
    }
}
"
    );
    let types = "\
#if defined(__GNUC__)
typedef double certen_f64_v64 __attribute__((vector_size(CERTEN_VECTOR_BYTES)));
typedef double certen_f64_m64 __attribute__((vector_size(CERTEN_VECTOR_BYTES), aligned(8), may_alias));
#else
typedef double certen_f64_v64;
typedef double certen_f64_m64;
#endif
enum { certen_f64_v64_lanes = sizeof(certen_f64_v64) / sizeof(double) };
";
    assert!(code.source.contains(types), "{}", code.source);
    same_bits(&loops(TILED));
    stands_alone(&code);
}

/// The macros are there only where they are used.
#[test]
fn what_is_not_used_is_not_defined() {
    let plain = "loops f\ninput x : f64[8]\noutput y : f64[8]\nfor i in 0..8 {\n  y[i] = x[i]\n}\n";
    let source = emitted(&loops(plain)).source;
    assert!(!source.contains("CERTEN_VECTOR") && !source.contains("CERTEN_UNROLL"), "{source}");
    let backwards = plain.replace("for", "vector for").replace("x[i]", "x[7 - i]");
    let source = emitted(&loops(&backwards)).source;
    assert!(source.contains("CERTEN_VECTOR_LOOP\n") && !source.contains("CERTEN_VECTOR_BYTES"), "{source}");
    assert!(source.contains("i < 8; i++"), "{source}");
}

/// Lanes that lie side by side, and all that is the same in every lane: locals, elements, sizes, whole expressions.
#[test]
fn loops_of_vectors_have_the_same_bits() {
    for (elem, vectors) in [("f64", [2, 4, 6, 8, 12, 40].as_slice()), ("f32", &[4, 8, 12, 40])] {
        let mut text = format!("loops f\nsize n\nwhere n >= 1\ninput s : {elem}[]\n");
        let mut body = format!("local scale : {elem} = s * {elem}(3.0)\n");
        let lengths = [1, 2, 3, 4, 6, 7, 8, 12, 40];
        for l in lengths {
            text += &format!("input x{l} : {elem}[n, {l}]\ninput w{l} : {elem}[3, {l} + 2]\n");
            body += &format!(
                "parallel for i in 0..n {{
  vector for j in 0..{l} {{
    local total : {elem} = {elem}(0.1)
    local last : {elem}
    for k in 0..3 {{
      total += x{l}[i, j] * w{l}[k, j + k] / scale
      if k <= i {{
        last = fma(w{l}[k, j], scale, -total)
      }} else {{
        last = scale
      }}
    }}
    y{l}[i, j] = (total - last) * (s + index.{elem}(i)) - min(s, scale)
  }}
  v{l}[i, 0] = s
  vector for j in i + 1..i + 1 + {l} {{
    v{l}[i, j - i] = {elem}(-0.0)
    v{l}[i, j - i] += x{l}[i, j - i - 1] / {elem}(3.0)
    v{l}[i, j - i] *= fma(s, {elem}(0.3), fma(x{l}[i, j - i - 1], scale, s))
  }}
}}
vector for j in 0..{l} {{
  z{l}[j] = -fma(scale, s, {elem}(0.7)) - w{l}[0, j + 2] * w{l}[1, j + 1]
}}
"
            );
        }
        for l in lengths {
            text +=
                &format!("output y{l} : {elem}[n, {l}]\noutput z{l} : {elem}[{l}]\noutput v{l} : {elem}[n, {l} + 1]\n");
        }
        let program = loops(&(text + &body));
        let code = emitted(&program);
        // Those that are whole vectors.
        assert_eq!(code.kernel.matches("_lanes) {").count(), 3 * vectors.len(), "{}", code.kernel);
        assert_eq!(code.kernel.matches("CERTEN_VECTOR_LOOP\n").count(), 3 * (lengths.len() - vectors.len()));
        same_bits(&program);
        stands_alone(&code);
    }
}

/// What people get compiles without warnings too, and where there are no vectors: each is then of one element.
fn stands_alone(code: &CCode) {
    let dir = tempfile::tempdir().unwrap();
    for (file, flags) in [("a", ["-c", "-Wconversion", "-O2"]), ("b", ["-c", "-fopenmp", "-O1"])] {
        compile(dir.path(), file, &code.source, &flags);
    }
    let source = code.source.replace("__GNUC__", "CERTEN_NO_SUCH_COMPILER");
    compile(dir.path(), "c", &source, &["-c", "-O0", "-Wno-unused-function"]);
}

/// What vectors are not made of: the loops stay plain.
#[test]
fn other_vector_loops_have_the_same_bits() {
    let bodies = [
        "y[i] = x[7 - i]",
        "y[i] = x[2*i]",
        "y[7 - i] = x[i]",
        "t[i, 1] = x[i]",
        "y[i] = m[i, i]",
        "y[i] = index.f64(i) * x[i]",
        "y[i] = min(x[i], 1.0)",
        "y[i] = sqrt(abs(x[i]))",
        "y[i] = select(b[i], x[i], -x[i])",
        "y[i] = cast.f64(f[i]) * x[i]",
        "g[i] = cast.f32(x[i])",
        "h[i] = k[i] * k[i] + 7",
        "c[i] = x[i] < x[i + 1] || b[i]",
        "y[i] = x[i]\nif i <= 3 {\n  y[i] += x[i + 8]\n}",
        "y[i] = 0.0\nfor j in 0..i {\n  y[i] += x[j]\n}",
        "alloc u : f64[2]\nu[0] = x[i]\nu[1] = x[i + 1]\ny[i] = u[0] / u[1]\nfree u",
        "vector for j in 0..2 {\n  m2[i, j] = x[i + j]\n}",
        "y[i] = x[i]\ny[i] max= x[i + 2]",
    ];
    let outputs =
        [("y", "f64[8]"), ("t", "f64[8, 2]"), ("g", "f32[8]"), ("h", "i64[8]"), ("c", "bool[8]"), ("m2", "f64[8, 2]")];
    let mut text = "loops f\ninput x : f64[16]\ninput m : f64[8, 8]\ninput b : bool[8]\ninput f : f32[8]\n\
                    input k : i64[8]\n"
        .to_owned();
    let mut statements = String::new();
    for (at, body) in bodies.iter().enumerate() {
        let (name, ty) = outputs.iter().find(|(name, _)| writes(body, name)).unwrap();
        text += &format!("output {name}_{at} : {ty}\n");
        if *name == "t" {
            statements += &format!("for i in 0..8 {{\n  t_{at}[i, 0] = 0.0\n}}\n");
        }
        statements +=
            &format!("vector for i in 0..8 {{\n{}\n}}\n", body.replace(&format!("{name}["), &format!("{name}_{at}[")));
    }
    let program = loops(&(text + &statements));
    let kernel = emitted(&program).kernel;
    assert_eq!(kernel.matches("CERTEN_VECTOR_LOOP\n").count(), bodies.len(), "{kernel}");
    // The one inside of another has vectors.
    assert_eq!(kernel.matches("_lanes").count(), 1, "{kernel}");
    same_bits(&program);
}

fn writes(body: &str, name: &str) -> bool {
    body.lines().any(|line| line.trim_start().starts_with(&format!("{name}[")))
}

/// Parts that become temporaries are vectors, or scalars where all lanes share them.
#[test]
fn long_sums_in_lanes_have_temporaries() {
    let sum = |part: &str| vec![part; 130].join(" + ");
    let text = format!(
        "loops f\ninput x : f64[8]\ninput s : f64[]\noutput y : f64[8]\nvector for i in 0..8 {{\n  \
         y[i] = ({}) * ({})\n}}\n",
        sum("x[i] * s"),
        sum("s * 0.1")
    );
    let program = loops(&text);
    let kernel = emitted(&program).kernel;
    assert!(kernel.contains("const certen_f64_v64 t") && kernel.contains("const double t"), "{kernel}");
    same_bits(&program);
}

/// A loop of one iteration may change what is around it; whoever runs it, that must not be lost.
#[test]
fn a_loop_of_one_iteration_changes_what_is_around_it() {
    for mode in ["vector", "parallel"] {
        let text = format!(
            "loops f\ninput x : f64[3]\noutput y : f64[3]\nfor i in 0..3 {{\n  local acc : f64 = 0.5\n  \
             {mode} for k in 0..1 {{\n    acc += x[i + k]\n  }}\n  y[i] = acc\n}}\n"
        );
        let native = emit_c(&loops(&text)).unwrap().native;
        let line = "        for (int64_t k = 0; k < 1; k++) {\n            acc += x[i + k];\n";
        assert!(native.contains(line) && !native.contains("certen_parallel"), "{native}");
    }
}
