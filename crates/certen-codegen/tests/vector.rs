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

/// The lines of C that say what will be read soon.
fn fetched(text: &str) -> Vec<String> {
    let code = emitted(&loops(text)).kernel;
    code.lines().filter(|line| line.contains("CERTEN_FETCH")).map(|line| line.trim().to_owned()).collect()
}

#[test]
fn what_a_tile_is_combined_with_is_fetched_before_its_sum() {
    let weighted = TILED.replace("29", "129").replace("output C", "input S : f64[8, 32]\noutput C");
    let weighted = weighted.replace("= acc[i, j]", "= S[4*i.o + i, 16*j.o + j] * acc[i, j]");
    let elements = ["", " + 8", " + 15"].map(|lane| format!("CERTEN_FETCH(S[(i + 4*i_o)*32 + 16*j_o{lane}]);"));
    assert_eq!(fetched(&weighted), elements);
    same_bits(&loops(&weighted));
    // A short sum; nothing else is read; what is read may not be there.
    assert!(fetched(&weighted.replace("129", "29")).is_empty());
    assert!(fetched(&TILED.replace("29", "129")).is_empty());
    let guarded = weighted
        .replace("      vector for j in 0..16 {\n        C[", "      vector for j in 0..16 - i.o {\n        C[");
    assert!(fetched(&guarded).is_empty());
}

#[test]
fn rows_in_different_pages_are_fetched_for_the_next_tile() {
    let wide = |columns: i64| {
        let columns_and_tiles =
            [("32]", format!("{columns}]")), ("j.o in 0..2", format!("j.o in 0..{}", columns / 16))];
        columns_and_tiles.iter().fold(TILED.replace("29", "3"), |text, (from, to)| text.replace(from, to))
    };
    let lines = ["", " + 8"].map(|lane| format!("CERTEN_FETCH_AFTER(B[l*512 + 16*j_o{lane}], 128);"));
    assert_eq!(fetched(&wide(512)), lines);
    same_bits(&loops(&wide(512)));
    // Rows in one page; tiles that do not follow each other.
    assert!(fetched(&wide(496)).is_empty());
    let apart = wide(512).replace("16*j.o", "32*j.o").replace("j.o in 0..32", "j.o in 0..16");
    assert!(fetched(&apart).is_empty());
}

/// Two nests for each block of a batch.
const BLOCKS: &str = "loops blocks
input u : f64[64, 7, 7]
output v : f64[64, 7, 7]
for z.o in 0..8 {
  alloc t : f64[7, 7, 8]
  for i in 0..7 {
    for j in 0..7 {
      vector for z in 0..8 {
        t[i, j, z] = u[8*z.o + z, i, j] * 2.0
      }
    }
  }
  for p in 0..7 {
    for q in 0..7 {
      vector for y in 0..8 {
        v[8*z.o + y, p, q] = t[p, q, y] + t[q, p, y]
      }
    }
  }
  free t
}
";

#[test]
fn nests_fetch_what_others_store_of_a_block_and_read_of_the_next() {
    // 49 lines of 64 bytes in 49 iterations.
    let store = "CERTEN_FETCH_TO_STORE(v[8*z_o*7*7], 448*i + 64*j + at*64);";
    let read = "CERTEN_FETCH_AFTER(u[8*z_o*7*7], 448*p + 64*q + 3136 + at*64);";
    assert_eq!(fetched(BLOCKS), [store, read]);
    same_bits(&loops(BLOCKS));
    // Larger blocks have more lines than there are iterations.
    let large = BLOCKS.replace("v : f64[64, 7, 7]", "v : f64[64, 7, 49]").replace("p, q]", "p, 7*q]");
    assert_eq!(fetched(&large), [&*store.replace("7*7]", "7*49]").replace("448*i + 64*j", "3136*i + 448*j"), read]);
    // A last block that stays at its last row.
    let cut = BLOCKS.replace("u[8*z.o + z", "u[min(59, 8*z.o + z)");
    assert_eq!(fetched(&cut), [store, read]);
    // Another part of the input lies beside each; nests that follow each other for each row of a block alone.
    let columns = BLOCKS.replace("u[8*z.o + z, i, j]", "u[i, j, z.o]").replace("u : f64[64, 7, 7]", "u : f64[7, 7, 8]");
    assert_eq!(fetched(&columns), [store]);
    // The first nest reads nothing: what comes after it is a sum.
    let cleared =
        BLOCKS.replace("alloc t : f64[7, 7, 8]", "alloc t : f64[7, 7, 8]\nfor w in 0..7 {\nt[w, 0, 0] = 0.0\n}");
    assert_eq!(fetched(&cleared), [store]);
    let inside = BLOCKS.replace("alloc t", "for w in 0..2 {\nalloc t").replace("free t", "free t\n}");
    assert!(fetched(&inside).is_empty());
    // A few elements; a single nest.
    assert!(fetched(&BLOCKS.replace("8*z.o", "z.o")).is_empty());
    let (head, _) = BLOCKS.split_once("  for p").unwrap();
    assert!(fetched(&(head.replace("t[i, j, z] = u", "v[8*z.o + z, i, j] = u") + "  free t\n}\n")).is_empty());
}

/// Short rows of an image, of which each iteration comes to two more.
const IMAGES: &str = "loops pool
input x : f64[40, 60, 60]
output y : f64[40, 29, 29]
for b in 0..40 {
  for i in 0..29 {
    vector for j in 0..29 {
      local most : f64 = x[b, 2*i, 2*j]
      for u in 0..3 {
        most max= x[b, 2*i + u, 2*j + 1]
      }
      y[b, i, j] = most
    }
  }
}
";

#[test]
fn vectors_fetch_rows_that_come_soon() {
    // Of the last row that is read: 8 iterations of two rows of 480 bytes later, two lines for every other element.
    let lines =
        [7680, 7744, 7200, 7264].map(|bytes| format!("CERTEN_FETCH_AFTER(x[(b*60 + 2*i + 2)*60 + 2*j + 1], {bytes});"));
    assert_eq!(fetched(IMAGES), lines);
    stands_alone(&emitted(&loops(IMAGES)));
    // Few images are in a cache; long rows are seen; what is read does not move with the rows.
    for (from, to) in [("40", "4"), ("60]", "600]"), ("2*i", "0")] {
        assert!(fetched(&IMAGES.replace(from, to)).is_empty(), "{from}");
    }
    // An index of which a loop inside decides how large it gets.
    let inside =
        IMAGES.replace("for u in 0..3 {", "for w in 0..3 {\nfor u in 0..w + 1 {").replace("j + 1]", "j + 1]\n}");
    assert!(fetched(&inside).iter().all(|line| !line.contains('u') && !line.contains('w')), "{inside}");
    stands_alone(&emitted(&loops(&inside)));
}

#[test]
fn vectors_whose_lanes_lie_apart_fetch_ahead() {
    let text = "loops apart
size n
where n >= 0
input q : f64[n, 4]
output y : f64[n, 3]
vector for i in 0..n {
  for j in 0..3 {
    y[i, j] = q[i, j] * q[i, j + 1] + q[i, 0] * 2.0 - q[i, 3]
  }
}
";
    let of = |how: &str, element: &str, lines: i64| {
        let line = |at: i64| format!("{how}({element}, {});", 4096 + 64 * at);
        (0..lines).map(line).collect::<Vec<_>>()
    };
    let wanted = [of("CERTEN_FETCH_AFTER", "q[i*4]", 4), of("CERTEN_FETCH_TO_STORE", "y[i*3]", 3)].concat();
    let mut found = fetched(text);
    found.sort();
    assert_eq!(found, wanted);
    same_bits(&loops(&text.replace("n >= 0", "n == 37")));
    // A few elements are in a cache.
    let few = text.replace("size n\nwhere n >= 0\n", "").replace("[n,", "[100,").replace("0..n", "0..100");
    assert!(fetched(&few).is_empty());
}

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
                for (int64_t j = 0; j < 16; j = j + CERTEN_LANES_8X8) {
                    *(certen_f64x8_m *)&acc[i*16 + j] = (certen_f64x8){0};
                }
            }
            for (int64_t l = 0; l < 29; l++) {
                CERTEN_UNROLL(4)
                for (int64_t i = 0; i < 4; i++) {
                    CERTEN_UNROLL(8)
                    for (int64_t j = 0; j < 16; j = j + CERTEN_LANES_8X8) {
                        *(certen_f64x8_m *)&acc[i*16 + j] += A[(i + 4*i_o)*29 + l] *
                                *(const certen_f64x8_m *)&B[l*32 + j + 16*j_o];
                    }
                }
            }
            CERTEN_UNROLL(4)
            for (int64_t i = 0; i < 4; i++) {
                CERTEN_UNROLL(8)
                for (int64_t j = 0; j < 16; j = j + CERTEN_LANES_8X8) {
                    *(certen_f64x8_m *)&C[(i + 4*i_o)*32 + j + 16*j_o] = *(const certen_f64x8_m *)&acc[i*16 + j];
                }
            }
        }
    }
}
"
    );
    let types = "\
#define CERTEN_LANES_8X8 (CERTEN_VECTOR_BYTES < 64 ? CERTEN_VECTOR_BYTES / 8 : 8)

typedef double certen_f64x8 __attribute__((vector_size(CERTEN_LANES_8X8 * 8)));
typedef double certen_f64x8_m __attribute__((vector_size(CERTEN_LANES_8X8 * 8), aligned(8), may_alias));
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
    assert!(!source.contains("CERTEN_VECTOR_BYTES"), "{source}");
    assert!(source.contains("i < 8; i++"), "{source}");
}

/// Lanes that lie side by side, and all that is the same in every lane: locals, elements, sizes, whole expressions.
#[test]
fn loops_of_vectors_have_the_same_bits() {
    for elem in ["f64", "f32"] {
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
        assert!(code.kernel.contains("j = j + CERTEN_LANES_"), "{}", code.kernel);
        same_bits(&program);
        stands_alone(&code);
    }
}

/// What people get compiles without warnings too.
fn stands_alone(code: &CCode) {
    let dir = tempfile::tempdir().unwrap();
    for (file, flags) in [("a", ["-c", "-Wconversion", "-O2"]), ("b", ["-c", "-fopenmp", "-O1"])] {
        compile(dir.path(), file, &code.source, &flags);
    }
}

/// Bodies of vector loops that have lanes, and such that stay plain loops: in order, from the first element to the last.
#[test]
fn other_vector_loops_have_the_same_bits() {
    let with_lanes = [
        "y[i] = index.f64(i) * x[i]",
        "y[i] = index.f64(3*i + 2) + x[i]",
        "y[i] = min(x[i], 1.0)",
        "y[i] = max(x[i + 1], x[i])",
        "y[i] = sqrt(abs(x[i]))",
        "y[i] = floor(x[i]) + ceil(x[i + 1]) * round(x[i + 2])",
        "y[i] = select(b[i], x[i], -x[i])",
        "y[i] = select(x[i] < x[i + 1] && !b[i], x[i], 0.5)",
        "y[i] = cast.f64(f[i]) * x[i]",
        "g[i] = cast.f32(x[i])",
        "g[i] = select(f[i] < f32(0.5), f[i], cast.f32(k[i]))",
        "h[i] = k[i] * k[i] + 7",
        "h[i] = min(-k[i], abs(k[i] - 3))",
        "h[i] = cast.i64(x[i] * 1e18)",
        "q[i] = cast.i32(x[i] * 1e9) + q0[i]",
        "u[i] = cast.u8(x[i] * 100.0)",
        "u[i] = cast.u8(q0[i])",
        "u[i] = cast.u8(b[i])",
        "c[i] = x[i] < x[i + 1] || b[i]",
        "c[i] = b[i] == (u0[i] < u0[i + 1])",
        "c[i] = cast.bool(x[i]) && cast.bool(u0[i])",
        "y[i] = x[i]\ny[i] max= x[i + 2]",
        "alloc own : f64[2]\nown[0] = x[i]\nown[1] = x[i + 1]\ny[i] = own[0] / own[1]\nfree own",
        "local t : bool = x[i] < 1.0\nfor j in 0..3 {\n  t = t && b[i + j]\n}\nc[i] = t",
        "local t : i64 = k[i]\nfor j in 0..3 {\n  t += k[i + j]\n}\nh[i] = t",
        "y[i] = x[2*i]",
        "y[i] = x[3*i + 2] * x[4*i]",
        "g[i] = f[2*i] + f[3*i + 1] * f[4*i + 2]",
        "h[i] = k[2*i] + k[i]",
        "q[i] = q0[4*i] - q0[2*i + 1]",
        "t[i, 1] = x[2*i + 1] * x[i] + x[i + 1] * 0.5",
        "y[i] = tanh(x[i]) + pow(x[i], x[i + 1])",
        "g[i] = exp(f[i]) * log1p(f[i + 1])",
    ];
    let without = [
        "y[i] = x[LAST - i]",
        "y[i] = x[5*i]",
        "c[i] = b[2*i]",
        "y[LAST - i] = x[i]",
        "t[i, 1] = x[i]",
        "y[i] = m[i, i]",
        "y[i] = libm_tanh(x[i])",
        "h[i] = floor_div(k[i], 3)",
        "y[i] = x[i]\nif i <= 3 {\n  y[i] += x[i + 8]\n}",
        "y[i] = 0.0\nfor j in 0..i {\n  y[i] += x[j]\n}",
    ];
    let outputs = [
        ("y", "f64[N]"),
        ("t", "f64[N, 2]"),
        ("g", "f32[N]"),
        ("h", "i64[N]"),
        ("q", "i32[N]"),
        ("u", "u8[N]"),
        ("c", "bool[N]"),
    ];
    // Whole vectors, with a rest, less than a vector; and numbers that only the caller knows.
    for length in [8, 13, 16, 35, 3] {
        for symbolic in [true, false] {
            let mut text = "loops f\nsize n\nwhere n == N\ninput x : f64[5*N + 8]\ninput m : f64[N, N]\n\
                            input b : bool[2*N + 8]\ninput f : f32[4*N]\ninput k : i64[2*N + 8]\ninput q0 : i32[4*N]\n\
                            input u0 : u8[N + 1]\n"
                .to_owned();
            let mut statements = String::new();
            for (at, body) in with_lanes.iter().chain(&without).enumerate() {
                let (name, ty) = outputs.iter().find(|(name, _)| writes(body, name)).unwrap();
                text += &format!("output {name}_{at} : {ty}\n");
                if *name == "t" {
                    statements += &format!("for i in 0..N {{\n  t_{at}[i, 0] = 0.0\n}}\n");
                }
                let own = body.replace(&format!("{name}["), &format!("{name}_{at}["));
                statements += &format!("vector for i in 0..N {{\n{own}\n}}\n");
            }
            let text = text.replace("where n == N", &format!("where n == {length}"));
            let size = if symbolic { "n".to_owned() } else { length.to_string() };
            let text = (text + &statements).replace("LAST", &format!("{size} - 1")).replace('N', &size);
            let program = loops(&text);
            let kernel = emitted(&program).kernel;
            if symbolic {
                assert_eq!(kernel.matches("i = i + CERTEN_LANES_").count(), with_lanes.len(), "{kernel}");
            }
            same_bits(&program);
        }
    }
}

/// What lanes combine has the same bits in any order: integers and truth values.
#[test]
fn integers_are_combined_in_lanes() {
    let mut text = "loops f\nsize n\nwhere n == 37\ninput b : bool[n]\n".to_owned();
    let (mut outputs, mut body) = (String::new(), String::new());
    for (elem, ops) in [("i32", ["+=", "*=", "min=", "max="].as_slice()), ("i64", &["+=", "*=", "min=", "max="])] {
        text += &format!("input x_{elem} : {elem}[n]\n");
        for (at, op) in ops.iter().enumerate() {
            outputs += &format!("output s_{elem}_{at} : {elem}[]\n");
            body += &format!(
                "local a_{elem}_{at} : {elem} = {elem}(3)\nvector for i in 0..n {{\n  \
                 a_{elem}_{at} {op} x_{elem}[i] * {elem}(5)\n}}\ns_{elem}_{at} = a_{elem}_{at}\n"
            );
        }
    }
    for (name, op, begin) in [("every", "and=", "true"), ("some", "or=", "false")] {
        outputs += &format!("output {name} : bool[]\n");
        body += &format!(
            "local a_{name} : bool = {begin}\nvector for i in 0..n {{\n  a_{name} {op} b[i] || x_i64[i] < 3\n}}\n\
             {name} = a_{name}\n"
        );
    }
    let program = loops(&format!("{text}{outputs}{body}"));
    let code = emitted(&program);
    assert_eq!(code.kernel.matches("i = i + CERTEN_LANES_").count(), 10, "{}", code.kernel);
    same_bits(&program);
    stands_alone(&code);
}

/// A variable of ours captures none of the user's.
#[test]
fn what_is_combined_may_have_any_name() {
    for (elem, mode) in [("f64", ""), ("i64", "vector ")] {
        let program = loops(&format!(
            "loops f\nsize n\nwhere n == 37\ninput x : {elem}[n]\noutput s : {elem}[]\nlocal at : {elem} = {elem}(3)\n\
             {mode}for i in 0..n {{\n  at += x[i] * x[i]\n}}\ns = at\n"
        ));
        let kernel = emitted(&program).kernel;
        assert!(kernel.contains("for (int at_1 = 0; at_1 < "), "{kernel}");
        same_bits(&program);
    }
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
    assert!(kernel.contains("const certen_f64x8 t") && kernel.contains("const double t"), "{kernel}");
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

/// A choice between truth values is made with integers of their size: both have one function.
#[test]
fn masks_and_integers_share_their_functions() {
    let program = loops(
        "loops t\nsize n\ninput x : i64[n]\ninput y : i64[n]\noutput z : i64[n]\nnest z\nvector for i in 0..n {\n    \
         z[i] = select(select(x[i] < y[i], 0 < x[i], 1 < y[i]), x[i], y[i])\n}\n",
    );
    let native = emitted(&program).native;
    assert_eq!(native.matches("certen_i64x8 certen_select_i64x8(").count(), 1, "{native}");
}

/// Outputs that are stored past the caches, by one thread and by several.
const STREAMED: &str = "loops streamed
size n
where n >= 0
input x : f64[n]
input z : f32[n]
output y : f64[n]
output w : f32[n]
stream y, w
vector for i in 0..n {
  y[i] = 2.0 * x[i]
}
parallel vector for i in 0..n {
  w[i] = z[i] * z[i]
}
";

#[test]
fn what_is_stored_past_the_caches_has_the_same_bits() {
    let program = loops(STREAMED);
    assert_eq!(loops(&program.to_string()).to_string(), program.to_string());
    let code = emitted(&program);
    // Each function that stores so ends with a fence.
    assert_eq!(code.kernel.matches("certen_stream_f64x8((certen_f64x8_m *)&y[i], ").count(), 1, "{}", code.kernel);
    assert_eq!(code.kernel.matches("certen_stream_f32x16((certen_f32x16_m *)&w[i], ").count(), 1, "{}", code.kernel);
    assert_eq!(code.kernel.matches("    certen_fence();\n}").count(), 2, "{}", code.kernel);
    same_bits(&program);
}

#[test]
fn what_stages_store_past_the_caches_ends_with_a_fence() {
    let nests: String = (0..60).map(|_| "nest y\nvector for i in 0..n {\n  y[i] = 2.0 * x[i]\n}\n").collect();
    let program =
        loops(&format!("loops staged\nsize n\nwhere n >= 0\ninput x : f64[n]\noutput y : f64[n]\nstream y\n{nests}"));
    let kernel = emitted(&program).kernel;
    assert!(kernel.contains("staged_stage_1("), "{kernel}");
    assert_eq!(kernel.matches("    certen_fence();\n}").count(), 1, "{kernel}");
}

/// Copies that exchange dimensions: of every element type that is turned, for all remainders of rows and of what is in them, with
/// rows that are chosen by a minimum, in either order of the loops, where a row has no elements, and where rows go on through
/// several loops.
#[test]
fn copies_that_exchange_dimensions_have_the_same_bits() {
    for elem in ["f64", "f32"] {
        let (mut inputs, mut outputs, mut body) = (String::new(), String::new(), String::new());
        for (at, (rows, columns)) in
            [(4, 4), (8, 8), (5, 3), (9, 17), (16, 31), (11, 8), (3, 5)].into_iter().enumerate()
        {
            inputs += &format!("input x{at} : {elem}[{rows}, 3, {columns}]\n");
            outputs +=
                &format!("output y{at} : {elem}[3, {columns}, {rows}]\noutput z{at} : {elem}[{columns}, {rows}]\n");
            let last = rows - 2;
            body += &format!(
                "for a in 0..3 {{\n  for j in 0..{rows} {{\n    for k in 0..{columns} {{\n      \
                 y{at}[a, k, j] = x{at}[min(j, {last}), a, k]\n    }}\n  }}\n}}\n\
                 for k in 0..{columns} {{\n  for j in 0..{rows} {{\n    z{at}[k, j] = x{at}[j, 1, k]\n  }}\n}}\n"
            );
        }
        inputs += &format!("input v : {elem}[13, n]\n");
        outputs += &format!("output w : {elem}[n, 16]\n");
        body += "for j in 0..16 {\n  for k in 0..n {\n    w[k, j] = v[min(j, 12), k]\n  }\n}\n";
        inputs += &format!("input c : {elem}[9, 3, 2, 5]\n");
        outputs += &format!("output d : {elem}[3, 2, 5, 9]\n");
        body += "for a in 0..3 {\n  for b in 0..2 {\n    for j in 0..9 {\n      for k in 0..5 {\n        \
                 d[a, b, k, j] = c[j, a, b, k]\n      }\n    }\n  }\n}\n";
        let program = loops(&format!("loops f\nsize n\nwhere n >= 0\n{inputs}{outputs}{body}"));
        let code = emitted(&program);
        let sides = if elem == "f32" { [8, 4] } else { [4, 4] };
        for side in sides {
            assert!(code.source.contains(&format!("certen_turn_{elem}x{side}(rows")), "{}", code.source);
        }
        same_bits(&program);
        stands_alone(&code);
    }
}
