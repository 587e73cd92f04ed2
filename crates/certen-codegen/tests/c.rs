//! Emitted C: its text, that compilers do not complain, and that it computes what the interpreter does, bit for bit.

mod common;

use std::fmt::Write as _;

use certen_codegen::{emit_c, emit_together};
use certen_core::domain::{Machine, Scalar};
use certen_core::{Binary, ElemType, Literal, Parameter, ReduceOp, TensorType, Term, TermId, Terms, Unary};
use certen_index::{Facts, Ix};
use certen_loops::{FpMode, Interpreter, LoopProgram, Stmt, Target, lower};
use certen_syntax::Name;
use common::{compile, core, emitted, inputs, loops, same_bits};

const MATMUL: &str = "core matmul
size l, m, n
where l >= 1, m >= 1, n >= 1
input A : f64[l, m]
input B : f64[m, n]
C = gen i1 in 0..l. gen i2 in 0..n. sum k1 in 0..m. A[i1, k1] * B[k1, i2]
output C
";

#[test]
fn matmul_reads_like_c() {
    let code = emitted(&lower(&core(MATMUL), FpMode::Relaxed).unwrap());
    assert_eq!(
        code.kernel,
        "\
static void matmul_kernel(int64_t l, int64_t m, int64_t n, const double *restrict A, const double *restrict B,
    double *restrict C) {
    /* C: f64[l, n] */
    for (int64_t i1 = 0; i1 < l; i1++) {
        for (int64_t i2 = 0; i2 < n; i2++) {
            double acc = 0.0;
            CERTEN_IN_ORDER
            for (int64_t k1 = 0; k1 < m; k1++) {
                acc += A[i1*m + k1] * B[k1*n + i2];
            }
            C[i1*n + i2] = acc;
        }
    }
}
"
    );
    let entry = "\
CERTEN_NOINLINE int32_t matmul_inside(int64_t l, int64_t m, int64_t n, const double *A, const int64_t *A_strides,
    const double *B, const int64_t *B_strides, double *C, const int64_t *C_strides) {
    /* No index, size or number of bytes below is larger than this. */
    const double most = 8.0*certen_magnitude(l)*certen_magnitude(m) + 8.0*certen_magnitude(l)*certen_magnitude(n) +
        8.0*certen_magnitude(m)*certen_magnitude(n) + certen_magnitude(l) + certen_magnitude(m) +
        certen_magnitude(n) + 1.0;
    if (!(most <= (double)(PTRDIFF_MAX / 2))) return 5;
    if (!(l >= 1 && m >= 1 && n >= 1)) return 2;
    struct certen_array arrays[3] = {
        {.in = A, .strides = A_strides, .bytes = sizeof *A, .rank = 2, .shape = {l, m}},
        {.in = B, .strides = B_strides, .bytes = sizeof *B, .rank = 2, .shape = {m, n}},
        {.out = C, .strides = C_strides, .bytes = sizeof *C, .rank = 2, .shape = {l, n}},
    };
    int32_t error = certen_begin(arrays, 2, 3);
    if (error == 0) matmul_kernel(l, m, n, arrays[0].in, arrays[1].in, arrays[2].out);
    return certen_end(arrays, 3, error);
}

int32_t matmul_strided(int64_t l, int64_t m, int64_t n, const double *A, const int64_t *A_strides, const double *B,
    const int64_t *B_strides, double *C, const int64_t *C_strides) {
    const certen_environment certen_was = certen_enter();
    const int32_t certen_status =
        matmul_inside(l, m, n, A, A_strides, B, B_strides, C, C_strides);
    certen_leave(certen_was);
    return certen_status;
}

int32_t matmul(int64_t l, int64_t m, int64_t n, const double *A, const double *B, double *C) {
    return matmul_strided(l, m, n, A, NULL, B, NULL, C, NULL);
}
";
    assert!(code.source.contains(entry), "{}", code.source);
}

/// All bindings in one program: one compilation.
#[test]
fn programs_compute_the_same_bits() {
    let header = "core f\nsize m, n\nwhere m >= 2, n >= 3\ninput x : f64[m, n]\ninput y : f64[n]\ninput s : f64[]\n\
                  input b : bool[n]\ninput k : i64[m]\ninput q : f32[2, n]\ninput c : f64[3, 5, 2]\ninput u : u8[n]\n\
                  input w : i32[m]\n";
    let terms = [
        "gen i in 0..n. gen j in 0..m. x[j, i]",
        "gen i in 1..n. y[i] - y[i - 1]",
        "sum i in 0..m. sum j in 0..n. x[i, j]",
        "sum i in 0..m. x[i]",
        "gen i in 0..m. (sum j in 0..n. x[i, j] * y[j]) * (product j in 0..n. y[j])",
        "gen i in 0..m. sum j in 0..n where j != i && (j >= 1 || i == 2). x[i, j]",
        "all j in 0..n. b[j] || y[j] < 3.0",
        "any j in 0..n. !b[j] && y[j] != y[0]",
        "gen i in 0..m. minimum j in 0..n. x[i, j]",
        "minimum i in 0..m. maximum j in 1..n. x[i, j] - s",
        "maximum i in 0..m. k[i]",
        "gen i in 0..m. gen j in 0..n. guard(j >= 1, x[i, j - 1]) + guard(j < n - 1, x[i, j + 1])",
        "gen i in 0..n + 2. if i < n then y[i] else if i < n + 1 then s else 1.0",
        "gen i in 0..n. (y[i] + s) * (y[i] - (s - y[0])) / -(-y[1])",
        "gen i in 0..m. let a = gen j in 0..n. x[i, j] * 2.0 in sum j in 0..n. a[j] * a[j]",
        "gen i in 0..m. let a = s * 2.0 in a + a * index.f64(3*i - floor_div(i - 3, 2))",
        "gen i in 0..m. floor_div(k[i], -3) + mod(k[i], 4) * index.i64(i*i - 1)",
        "gen i in 0..m. floor_div(w[i], cast.i32(k[0])) - abs(-w[i])",
        "gen i in 0..m. gen j in 0..n. index.f64(min(2*i - 3, floor_div(j, 2)) - max(i, n)) * index.f64(i*j)",
        "gen i in 0..n. cast.u8(y[i]) < u[i]",
        "gen i in 0..n. cast.i32(q[1, i])",
        "gen i in 0..n. sqrt(abs(q[1, i])) * f32(0.1) + floor(q[0, i])",
        "gen i in 0..n. round(y[i]) + ceil(y[i])",
        "gen i in 0..n. select(b[i], min(y[i], s), controlled_div(y[i], y[0]))",
        "gen i in 0..3. gen j in 0..2. c[i, 4, j] + c[2, i + 1, 1 - j]",
        "gen i in 0..2. gen j in 0..n. cast.f64(q[i, j]) * 1e-300",
        "gen i in 0..n. cast.bool(u[i]) == b[i]",
    ];
    let mut text = header.to_owned();
    for (at, term) in terms.iter().enumerate() {
        writeln!(text, "t{at} = {term}").unwrap();
    }
    // Used later, not an output; an output under two names; outputs that show inputs or have their names.
    text += "a1 = gen i in 0..n. t13[i] * 2.0\na2 = gen i in 0..n. a1[i] + a1[0]\na3 = s * 2.0\na4 = a3 + a2[1]\n";
    for at in 0..terms.len() {
        writeln!(text, "output t{at}").unwrap();
    }
    text += "output again = t1\noutput y = y\noutput a4\noutput s = t2\n";
    same_bits(&lower(&core(&text), FpMode::Relaxed).unwrap());
}

#[test]
fn many_nests_become_stages() {
    let mut text = "core many\nsize n\nwhere n >= 1\ninput x : f64[n]\ninput y : f64[n]\ninput s : f64[]\n\
                    x0 = gen i in 0..n. x[i]\ns0 = s\n"
        .to_owned();
    for at in 1..60 {
        writeln!(text, "x{at} = gen i in 0..n. x{0}[i] + y[i] * s{0}", at - 1).unwrap();
        writeln!(text, "s{at} = s{0} * 0.5 + sum i in 0..n. x{0}[i]", at - 1).unwrap();
    }
    text += "z = gen i in 0..n. let a = gen j in 0..n. x59[j] * 2.0 in a[i] + a[0]\noutput z\noutput s59\n";
    let program = lower(&core(&text), FpMode::Relaxed).unwrap();
    assert!(emitted(&program).source.contains("CERTEN_NOINLINE int32_t many_stage_5("));
    same_bits(&program);
}

/// Stages and parts of long values are functions of their programs.
#[test]
fn long_programs_share_a_translation_unit() {
    let nest = |value: &str| format!("nest y\nfor i in 0..n {{\n  y[i] = {value}\n}}\n");
    let body = nest("x[i]").repeat(60) + &nest(&vec!["x[i]"; 2100].join(" + "));
    let program = loops(&format!("loops long\nsize n\nwhere n >= 0\ninput x : f64[n]\noutput y : f64[n]\n{body}"));
    let c = emit_together(&[(program.clone(), 1), (program, 1)]).unwrap();
    assert!(["kernel_1_stage_1(", "kernel_1_value_1("].iter().all(|name| c.contains(name)), "{c}");
    compile(tempfile::tempdir().unwrap().path(), "together.o", &c, &["-c"]);
}

#[test]
fn names_of_c_are_avoided() {
    let text = "core exp\nsize double, int\nwhere double >= 1, int >= 1\ninput float : f64[double, int]\n\
                input _x : f64[int]\ninput sin : f64[]\ninput status : f64[]\n\
                malloc = gen for in 0..double. gen main in 0..int. exp(float[for, main] + _x[main]) * sin * status\n\
                certen_call = gen for in 0..double. sum t_1 in 0..int. malloc[for, t_1]\n\
                memory = gen for in 0..double + 1. guard(for >= 1, certen_call[for - 1])\noutput memory\n";
    let text = text.replace("for", "while").replace(" exp(", " sqrt(");
    same_bits(&lower(&core(&text), FpMode::Relaxed).unwrap());
}

#[test]
fn empty_and_scalar_programs_are_legal_c() {
    let dir = tempfile::tempdir().unwrap();
    let nothing = loops("loops nothing\n");
    compile(dir.path(), "nothing.o", &emitted(&nothing).source, &["-c"]);
    let unused = loops("loops unused\nsize n\ninput x : f64[n]\noutput y : f64[]\nlocal a : f64 = 1.0\ny = 1.0\n");
    compile(dir.path(), "unused.o", &emitted(&unused).source, &["-c"]);
    let code = emitted(&unused);
    std::fs::write(dir.path().join("unused.h"), &code.header).unwrap();
    let user = "#include \"unused.h\"\nint main(void) { double x[2] = {0, 0}, y; return unused(2, x, &y); }\n";
    std::fs::write(dir.path().join("unused.c"), &code.source).unwrap();
    compile(dir.path(), "user", user, &[dir.path().join("unused.c").to_str().unwrap()]);
}

#[test]
fn long_and_deep_expressions_compile() {
    let header = "core f\ninput s : f64[]\ninput r : f64[2]\n";
    let long: Vec<String> = (0..5_000).map(|at| format!("r[{}] * s", at % 2)).collect();
    let deep = format!("{}s{}", "-(r[0] - ".repeat(5_000), ")".repeat(5_000));
    same_bits(
        &lower(&core(&format!("{header}t = {}\nu = {deep}\noutput t\noutput u\n", long.join(" + "))), FpMode::Relaxed)
            .unwrap(),
    );
    // A hundred thousand are emitted, too.
    let long: Vec<String> = (0..100_000).map(|at| format!("r[{}]", at % 2)).collect();
    let program = lower(&core(&format!("{header}t = {}\noutput t\n", long.join(" - "))), FpMode::Relaxed).unwrap();
    assert!(emit_c(&program).unwrap().source.lines().all(|line| line.len() < 5000));
}

/// A small generator: the same expressions on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// A random scalar term of an element type, over one input of each type.
fn random_term(random: &mut Random, terms: &mut Terms, elem: ElemType, depth: u32) -> TermId {
    let leaf = depth == 0 || random.below(8) == 0;
    let floats =
        [0.0, -0.0, 1.0, -1.5, 0.1f32 as f64, 1e30, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 3e-40, -2147483648.5];
    let ints = [0, 1, -1, 2, -3, 7, i64::from(i32::MIN), i64::from(i32::MAX), i64::MIN, i64::MAX];
    let term = if leaf {
        match random.below(3) {
            0 => {
                let literal = match elem {
                    ElemType::F64 => Literal::Float(random.pick(&floats)),
                    ElemType::F32 => Literal::Float(f64::from(random.pick(&floats) as f32)),
                    ElemType::I64 => Literal::Int(random.pick(&ints)),
                    ElemType::I32 => Literal::Int(i64::from(random.pick(&ints) as i32)),
                    ElemType::U8 => Literal::Int(random.pick(&[0, 1, 255, 7])),
                    ElemType::Bool => Literal::Bool(random.below(2) == 0),
                };
                Term::Literal(literal, elem)
            }
            1 if elem.has_arithmetic() => Term::Index(Ix::from(random.pick(&[-5, 0, 3])), elem),
            _ => {
                let input = terms.reference(Name::new(elem.name()), TensorType::new(elem, [Ix::from(4)])).unwrap();
                Term::Select(input, [Ix::from(random.below(4) as i64)].into())
            }
        }
    } else {
        let mut part = |random: &mut Random, elem| random_term(random, terms, elem, depth - 1);
        match (random.below(7), elem) {
            (6, ElemType::F32 | ElemType::F64) => Term::Fma(part(random, elem), part(random, elem), part(random, elem)),
            (0, _) => {
                let from = random.pick(&ElemType::ALL);
                Term::Cast(elem, part(random, from))
            }
            (1, _) => {
                let cond = part(random, ElemType::Bool);
                Term::Choose(cond, part(random, elem), part(random, elem))
            }
            (_, ElemType::U8) => {
                let a = part(random, ElemType::I64);
                Term::Cast(elem, a)
            }
            (2, ElemType::Bool) => Term::Unary(Unary::Not, part(random, elem)),
            (3 | 4, ElemType::Bool) => {
                let of = random.pick(&ElemType::ALL);
                let op = random.pick(&[Binary::Lt, Binary::Le, Binary::Eq, Binary::Ne]);
                Term::Binary(op, part(random, of), part(random, of))
            }
            (_, ElemType::Bool) => {
                let op = random.pick(&[Binary::And, Binary::Or]);
                Term::Binary(op, part(random, elem), part(random, elem))
            }
            (2, _) => {
                // Those that are the same on every machine.
                let op = match elem.is_float() {
                    true => random.pick(&[
                        Unary::Neg,
                        Unary::Neg,
                        Unary::Abs,
                        Unary::Floor,
                        Unary::Ceil,
                        Unary::Round,
                        Unary::Sqrt,
                    ]),
                    false => random.pick(&[Unary::Neg, Unary::Abs]),
                };
                Term::Unary(op, part(random, elem))
            }
            _ => {
                let op = match elem.is_float() {
                    true => random.pick(&[
                        Binary::Add,
                        Binary::Sub,
                        Binary::Sub,
                        Binary::Mul,
                        Binary::Div,
                        Binary::ControlledDiv,
                        Binary::Min,
                        Binary::Max,
                    ]),
                    false => random.pick(&[
                        Binary::Add,
                        Binary::Sub,
                        Binary::Mul,
                        Binary::FloorDiv,
                        Binary::Mod,
                        Binary::Min,
                        Binary::Max,
                    ]),
                };
                Term::Binary(op, part(random, elem), part(random, elem))
            }
        }
    };
    terms.add(term).unwrap()
}

/// Every operator as the left and as the right part of every other: a product with a sum on its left, a difference of
/// differences, a negated product. Indices likewise.
#[test]
fn every_pair_of_operators_keeps_its_meaning() {
    let floats = [
        "(A) + (B)",
        "(A) - (B)",
        "(A) * (B)",
        "(A) / (B)",
        "min(A, B)",
        "-(A)",
        "fma(A, B, A)",
        "select((A) < (B), A, B)",
    ];
    let ints = ["(A) + (B)", "(A) - (B)", "(A) * (B)", "floor_div(A, B)", "mod(A, B)", "max(A, B)", "-(A)", "abs(A)"];
    let bools = ["(A) && (B)", "(A) || (B)", "(A) == (B)", "(A) != (B)", "!(A)"];
    let indices = ["(A) + (B)", "(A) - (B)", "(A)*(B)", "floor_div(A, 3)", "mod(A, 4)", "min(A, B)", "ceil_div(A, 2)"];
    let mut text = "core f\nsize n\nwhere n >= 2\ninput d : f64[3]\ninput e : i64[3]\ninput b : bool[3]\n".to_owned();
    let mut count = 0;
    for (operators, leaves, index) in [
        (&floats[..], ["d[0]", "d[1]", "d[2]"], false),
        (&ints, ["e[0]", "e[1]", "e[2]"], false),
        (&bools, ["b[0]", "b[1]", "b[2]"], false),
        (&indices, ["i", "j", "n"], true),
    ] {
        for outer in operators {
            for inner in operators {
                let inner = inner.replace('A', leaves[1]).replace('B', leaves[2]);
                for (left, right) in [(inner.as_str(), leaves[0]), (leaves[0], &inner)] {
                    let term = outer.replace('A', left).replace('B', right);
                    let term = if index { format!("gen i in 0..n. gen j in 1..n. index.i64({term})") } else { term };
                    writeln!(text, "t{count} = {term}").unwrap();
                    count += 1;
                }
            }
        }
    }
    (0..count).for_each(|at| writeln!(text, "output t{at}").unwrap());
    same_bits(&lower(&core(&text), FpMode::Relaxed).unwrap());
}

/// Rounded once, in the precision of its type, by the C library's function and by the machine's instruction.
#[test]
fn a_fused_multiplication_and_addition_has_the_same_bits() {
    let mut text = "core f\ninput x : f64[7]\ninput y : f32[7]\n".to_owned();
    for (elem, input, e) in [("f64", "x", f64::EPSILON), ("f32", "y", f64::from(f32::EPSILON))] {
        let near = |k: f64| format!("({elem}(1.0) + {elem}({k}) * {elem}({e:?}))");
        let tiny = format!("fma({0}, {0}, -({elem}(1.0) + {elem}(2.0) * {elem}({e:?})))", near(1.0));
        let thirds =
            format!("gen i in 0..7. fma({input}[i] / {elem}(3.0), {0}, {input}[6 - i] / {elem}(7.0))", near(3.0));
        writeln!(text, "tiny_{elem} = {tiny}\nthirds_{elem} = {thirds}").unwrap();
    }
    writeln!(text, "output tiny_f64\noutput thirds_f64\noutput tiny_f32\noutput thirds_f32").unwrap();
    let program = lower(&core(&text), FpMode::Relaxed).unwrap();
    let code = emitted(&program);
    assert!(code.source.contains("fma(") && code.source.contains("fmaf("), "{}", code.source);
    same_bits(&program);
    let (sizes, tensors) = inputs(&program);
    let outputs = Interpreter::new(&program, &Machine, sizes, tensors).unwrap().run().unwrap();
    let tiny = |name: &str| outputs.iter().find(|(n, _)| n.as_str() == name).unwrap().1.data()[0];
    assert_eq!(tiny("tiny_f64"), Scalar::F64(f64::EPSILON * f64::EPSILON));
    assert_eq!(tiny("tiny_f32"), Scalar::F32(f32::EPSILON * f32::EPSILON));
}

/// Precedence, conversions, corner cases: thousands of random expressions, compiled once.
#[test]
fn random_expressions_have_the_same_bits() {
    let mut random = Random(42);
    let mut terms = Terms::new(Facts::new());
    let mut body = Vec::new();
    let parameter = |prefix: &str, elem: ElemType, count: i64| Parameter {
        name: Name::new(&format!("{prefix}{elem}")),
        ty: TensorType::new(elem, [Ix::from(count)]),
    };
    const COUNT: i64 = 150;
    for elem in ElemType::ALL {
        for at in 0..COUNT {
            let value = random_term(&mut random, &mut terms, elem, 1 + (at % 6) as u32);
            let target = Target::Element(Name::new(&format!("out_{elem}")), [Ix::from(at)].into());
            let op = match (at % 5, elem) {
                (0, ElemType::Bool) => Some(random.pick(&[ReduceOp::All, ReduceOp::Any])),
                (0, ElemType::U8) => None,
                (0, _) => Some(random.pick(&[ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Min, ReduceOp::Max])),
                _ => None,
            };
            if op.is_some() {
                body.push(Stmt::Assign { target: target.clone(), op: None, value });
            }
            body.push(Stmt::Assign { target, op, value });
        }
    }
    let program = LoopProgram {
        name: Name::new("random"),
        sizes: Vec::new(),
        facts: Vec::new(),
        inputs: ElemType::ALL.map(|elem| parameter("", elem, 4)).to_vec(),
        outputs: ElemType::ALL.map(|elem| parameter("out_", elem, COUNT)).to_vec(),
        constants: Vec::new(),
        streamed: Vec::new(),
        body,
        terms,
    };
    same_bits(&program);
    let printed = program.to_string();
    assert_eq!(loops(&printed).to_string(), printed);
}

/// Loops that read what they wrote some iterations before, divided by small numbers: GCC 12 makes wrong code of some if it
/// looks for vectors.
#[test]
fn recurrences_in_blocks_have_the_same_bits() {
    let (mut outputs, mut body) = (String::new(), String::new());
    for step in 2..8 {
        for distance in 1..13 {
            let (y, u) = (format!("y_{step}_{distance}"), format!("u_{step}_{distance}"));
            let blocks = 40 / step;
            for out in [&y, &u] {
                writeln!(outputs, "output {out} : f64[60]").unwrap();
                writeln!(body, "for i in 0..60 {{\n  {out}[i] = x[i]\n}}").unwrap();
            }
            let at = format!("i + {step}*o");
            writeln!(body, "for o in 0..{blocks} {{\n  for i in 0..{step} {{").unwrap();
            writeln!(body, "    {y}[{at} + {distance}] = 2.0 * {y}[{at}]\n  }}\n}}").unwrap();
            // The same, unrolled.
            writeln!(body, "for o in 0..{blocks} {{").unwrap();
            for i in 0..step {
                writeln!(body, "  {u}[{step}*o + {}] = 2.0 * {u}[{step}*o + {i}]", i + distance).unwrap();
            }
            body += "}\n";
        }
    }
    let program = loops(&format!("loops f\ninput x : f64[60]\n{outputs}{body}"));
    same_bits(&program);
}

/// Integers summed and multiplied in lanes that are summed in the end, unrolled and not: the same.
#[test]
fn lanes_of_integers_have_the_same_bits() {
    let (mut outputs, mut body) = (String::new(), String::new());
    for elem in ["i32", "i64"] {
        for width in 2..9 {
            for (op, first) in [("+=", 0), ("*=", 1)] {
                let kind = if op == "+=" { "sum" } else { "product" };
                let (out, p) = (format!("{kind}_{elem}_{width}"), format!("p_{kind}_{elem}_{width}"));
                writeln!(outputs, "output {out} : {elem}[]").unwrap();
                writeln!(body, "alloc {p} : {elem}[{width}]\nfor i in 0..{width} {{\n  {p}[i] = {elem}({first})\n}}")
                    .unwrap();
                writeln!(body, "for o in 0..{} {{\n  for i in 0..{width} {{", 48 / width).unwrap();
                writeln!(body, "    {p}[i] {op} x_{elem}[i + {width}*o]\n  }}\n}}").unwrap();
                writeln!(body, "{out} = {elem}(0)\nfor i in 0..{width} {{\n  {out} += {p}[i]\n}}\nfree {p}").unwrap();
            }
        }
    }
    let program = loops(&format!("loops f\ninput x_i32 : i32[60]\ninput x_i64 : i64[60]\n{outputs}{body}"));
    same_bits(&program);
}
