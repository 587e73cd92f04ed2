//! Parallel loops: which the verifier accepts, what it says of the others, which are marked, how they are interpreted.

use certen_core::Tensor;
use certen_core::domain::{Machine, Scalar};
use certen_index::Ix;
use certen_loops::{Interpreter, LoopProgram, Mode, Stmt, Work, parallelise, parse_loops, statements, verify, work};
use certen_syntax::{Code, Sources};

const HEADER: &str = "loops f\nsize m, n\nwhere n >= 2, m >= 4\ninput x : f64[m, n]\ninput y : f64[n]\n\
                      output z : f64[m, n]\noutput v : f64[4 * n]\noutput s : f64[]\n";

/// Every output is written somewhere, after what is tested.
const END: &str = "z[0, 0] = 0.0\nv[0] = 0.0\ns = 0.0\n";

fn program(body: &str) -> LoopProgram {
    let mut sources = Sources::new();
    let text = format!("{HEADER}{body}{END}");
    let file = sources.add("t.loops", text.as_str());
    parse_loops(&sources, file).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"))
}

#[test]
fn independent_iterations_are_accepted() {
    for body in [
        // The index itself, moved, or multiplied.
        "parallel for i in 0..m {\n for j in 0..n {\n z[i, j] = x[i, j]\n }\n}\n",
        "for i in 0..m {\n parallel for j in 0..n {\n z[i, j] = x[i, j]\n }\n}\n",
        "parallel for i in 0..m - 3 {\n z[i + 3, 0] = x[i, 0] + x[i + 1, 1]\n}\n",
        "parallel for i in 0..m {\n z[-1 * i + m - 1, 1] = 1.0\n}\n",
        "parallel for j in 0..n {\n v[4 * j + 3] = y[j]\n}\n",
        // Reading the same element is allowed, also before it is written.
        "parallel for i in 0..m {\n z[i, 0] = 1.0\n z[i, 1] = z[i, 0]\n z[i, 0] += z[i, 1]\n}\n",
        // Blocks.
        "parallel for i in 0..n {\n for r in 0..4 {\n v[4 * i + r] = 1.0\n }\n}\n",
        "parallel for i in 0..n {\n v[4 * i] = 1.0\n v[4 * i + 2] = v[4 * i + 1]\n}\n",
        "parallel for b in 0..floor_div(n + 31, 32) {\n for r in 0..32 {\n if 32 * b + r < n {\n \
         z[0, 32 * b + r] = 1.0\n }\n }\n}\n",
        // The tail of a block.
        "parallel for b in 0..floor_div(n + 31, 32) {\n for j in 32 * b..min(32 * b + 32, n) {\n z[0, j] = 1.0\n }\n}\n",
        // Different in one dimension or in the other.
        "parallel for i in 0..m {\n for j in 0..n {\n if j >= 1 {\n z[i, j] = 1.0\n } else {\n z[i, 0] = 2.0\n }\n }\n}\n",
        // A condition keeps one of the accesses to one iteration.
        "parallel for j in 0..n {\n if j < 1 {\n z[0, 1] = 1.0\n }\n}\n",
        // Private things.
        "parallel for i in 0..m {\n alloc t : f64[n]\n local a : f64 = 0.0\n for j in 0..n {\n t[j] = x[i, j]\n \
         a += t[j]\n }\n z[i, 0] = a\n free t\n}\n",
        "parallel for i in 0..m {\n alloc t : f64[3]\n alloc u : f64[3]\n t[0] = 1.0\n swap t, u\n z[i, 0] = u[0]\n \
         free t\n free u\n}\n",
        // Locals and buffers from outside that are only read.
        "local a : f64 = 3.0\nparallel for i in 0..m {\n z[i, 0] = a * y[0]\n}\n",
        // One iteration has nobody to disturb, none neither.
        "parallel for i in 0..1 {\n s = 1.0\n}\n",
        "parallel for i in m..0 {\n s = 1.0\n}\n",
        // Inside each other.
        "parallel for i in 0..m {\n parallel for j in 0..n {\n z[i, j] = 1.0\n }\n}\n",
    ] {
        let program = program(body);
        let errors = verify(&program);
        assert!(errors.is_empty(), "{errors:?}\n{body}");
        let text = program.to_string();
        assert!(text.contains("parallel for"));
        let mut sources = Sources::new();
        let file = sources.add("again.loops", text.as_str());
        assert_eq!(parse_loops(&sources, file).unwrap().to_string(), text);
    }
}

#[test]
fn dependent_iterations_are_refused() {
    let begin = "the iterations of the parallel loop over i are not";
    for (body, wanted, note) in [
        (
            "parallel for i in 0..m - 1 {\n z[i, 0] = z[i + 1, 0]\n}\n",
            "independent: one writes z[i, 0], another reads z[i + 1, 0]",
            "for example the iterations i = 1 and i = 0, with m = 4",
        ),
        (
            "parallel for i in 0..m {\n z[i, 0] = 1.0\n z[0, 0] = 2.0\n}\n",
            "independent: one writes z[i, 0], another writes z[0, 0]",
            "for example the iterations i = 0 and i = 1, with m = 4",
        ),
        (
            "parallel for i in 0..m {\n for j in 0..n {\n z[0, j] += x[i, j]\n }\n}\n",
            "independent: one writes z[0, j], another writes z[0, j]",
            "for example the iterations i = 0 and i = 1, with m = 4, n = 2",
        ),
        (
            "parallel for i in 0..n - 1 {\n for r in 0..5 {\n v[4 * i + r] = 1.0\n }\n}\n",
            "independent: one writes v[4*i + r], another writes v[4*i + r]",
            "for example the iterations i = 0 and i = 1, with n = 3",
        ),
        (
            "parallel for i in 0..n {\n s += y[i]\n}\n",
            "independent: one writes s, another writes s",
            "for example the iterations i = 0 and i = 1, with n = 2",
        ),
        (
            "parallel for i in 0..n {\n z[0, floor_div(i, 2)] = 1.0\n}\n",
            "independent: one writes z[0, floor_div(i, 2)], another writes z[0, floor_div(i, 2)]",
            "for example the iterations i = 0 and i = 1, with n = 2",
        ),
        (
            "local a : f64 = 0.0\nparallel for i in 0..n {\n a += y[i]\n}\n",
            "independent: each assigns a, a local from outside",
            "for example the iterations i = 0 and i = 1",
        ),
        (
            "alloc t : f64[3]\nalloc u : f64[3]\nparallel for i in 0..n {\n swap t, u\n}\nfree t\nfree u\n",
            "independent: each exchanges t, a buffer from outside",
            "for example the iterations i = 0 and i = 1",
        ),
        (
            "alloc t : f64[n]\nparallel for i in 0..m {\n for j in 0..n {\n t[j] = x[i, j]\n }\n z[i, 0] = t[0]\n}\nfree t\n",
            "independent: one writes t[j], another reads t[0]",
            "for example the iterations i = 0 and i = 1, with m = 4, n = 2",
        ),
    ] {
        let program = program(body);
        let errors = verify(&program);
        assert_eq!(errors.len(), 1, "{errors:?}\n{body}");
        assert_eq!(errors[0].code, Code::E0702);
        assert_eq!(errors[0].message, format!("{begin} {wanted}"), "{body}");
        assert_eq!(errors[0].notes, [note], "{body}");
        // The same loops in order are well-formed.
        let sequential = body.replace("parallel ", "");
        assert!(verify(&self::program(&sequential)).is_empty());
    }
}

#[test]
fn many_different_accesses_are_refused_soon() {
    let writes: String = (0..1000).map(|k| format!("v[4 * i + {}] = 1.0\n", k % 200)).collect();
    let body = format!("parallel for i in 0..n - 99 {{\nif n >= 400 {{\n{writes}}}\n}}\n");
    let errors = verify(&program(&body));
    assert!(errors[0].message.contains("too many different accesses of v"), "{errors:?}");
}

/// The indices of the loops that are marked, outermost first.
fn marked(program: &LoopProgram) -> Vec<String> {
    let marked = statements(&program.body).filter_map(|stmt| match stmt {
        Stmt::For { index, mode: Mode::Parallel, .. } => Some(index.to_string()),
        _ => None,
    });
    let mut found: Vec<String> = marked.collect();
    found.sort();
    found
}

#[test]
fn the_outermost_loop_that_can_be_shared_is_marked() {
    for (body, wanted) in [
        ("for i in 0..m {\n for j in 0..n {\n z[i, j] = x[i, j]\n }\n}\n", &["i"][..]),
        // Steps depend on each other, elements do not.
        ("for t in 0..m {\n for j in 0..n {\n z[0, j] += x[t, j]\n }\n}\n", &["j"]),
        // A reduction is not divided.
        ("for i in 0..n {\n s += y[i]\n}\n", &[]),
        ("local a : f64 = 0.0\nfor i in 0..n {\n a += y[i]\n}\ns = a\n", &[]),
        // Too little to do, for all sizes.
        ("for i in 0..4 {\n z[i, 0] = 1.0\n}\n", &[]),
        ("for i in 0..4 {\n for j in 0..2 {\n z[i, j] = 1.0\n }\n}\n", &[]),
        // Few iterations give way to many.
        ("for i in 0..3 {\n for j in 0..n {\n z[i, j] = 1.0\n }\n}\n", &["j"]),
        ("for i in 0..1 {\n for j in 0..n {\n z[i, j] = 1.0\n }\n}\n", &["j"]),
        ("for i in 0..3 {\n local a : f64 = 0.0\n for j in 0..n {\n a += y[j]\n }\n z[i, 0] = a\n}\n", &["i"]),
        // Inside a condition.
        ("if m < n {\n for i in 0..m {\n z[i, i] = 1.0\n }\n}\n", &["i"]),
    ] {
        let sequential = program(body);
        let parallel = parallelise(sequential.clone(), |_| true);
        assert_eq!(marked(&parallel), wanted, "{body}");
        let errors = verify(&parallel);
        assert!(errors.is_empty(), "{errors:?}\n{body}");
        assert_eq!(parallel.to_string().replace("parallel ", ""), sequential.to_string());
        assert_eq!(parallelise(parallel.clone(), |_| true).to_string(), parallel.to_string());
    }
}

#[test]
fn work_is_that_of_the_deepest_loop() {
    let of = |body: &str| {
        let program = program(body);
        work(&program, &program.body[..1])
    };
    let n = Ix::var("n");
    assert_eq!(of("z[0, 0] = 1.0 + y[0]\n"), Work { operations: 3, extents: vec![] });
    assert_eq!(of("for i in 0..n {\n z[0, i] = 1.0\n}\n"), Work { operations: 1, extents: vec![n.clone()] });
    assert_eq!(of("for i in 0..n {\n for k in 0..4 {\n v[4 * i + k] = 1.0\n }\n}\n").operations, 4);
    // A triangle counts as the square around it.
    let triangle = of("for i in 0..n {\n for k in 0..i {\n z[0, i] = y[k]\n }\n}\n");
    let row = n.sub(&Ix::from(1)).unwrap().max_with(&Ix::from(0)).unwrap();
    assert_eq!(triangle.extents, [n.clone(), row]);
    // Blocks count as full ones: the last may be smaller, so the first is looked at.
    let blocks = of("for o in 0..ceil_div(n, 4) {\n for i in 0..min(n - 4*o, 4) {\n z[0, 4*o + i] = 1.0\n }\n}\n");
    let value = |size: i64| blocks.extents.iter().map(|ix| ix.eval(&|_| Some(size)).unwrap()).collect::<Vec<_>>();
    assert_eq!((value(100), value(103), value(2)), (vec![25, 4], vec![26, 4], vec![1, 2]));
    // What is left after the blocks does not count, though one loop more of it depends on sizes, unless it is all that
    // there is.
    let lanes = "for j.o in 0..floor_div(n, 4) {\n vector for j.i in 0..4 {\n z[i, 4*j.o + j.i] = 1.0\n }\n}\n";
    let left = "for j.o.tail in floor_div(n, 4)..ceil_div(n, 4) {\n for j.i.tail in 0..n - 4*j.o.tail {\n z[i, 4*j.o.tail + \
                j.i.tail] = 1.0\n }\n}\n";
    let both = of(&format!("for i in 0..n {{\n{lanes}{left}}}\n"));
    assert_eq!(both, Work { operations: 4, extents: vec![n.clone(), n.floor_div(4).unwrap()] });
    assert_eq!(of(&format!("for i in 0..n {{\n{left}}}\n")).extents.len(), 3);
}

#[test]
fn the_interpreter_takes_another_order() {
    // A dependence that the verifier refuses shows in the values.
    let body = "for i in 0..m - 1 {\n z[i + 1, 0] = z[i, 0] + 1.0\n}\n";
    let run = |body: &str| {
        let fill = "for i in 0..m {\n for j in 0..n {\n z[i, j] = 0.0\n }\n}\nfor i in 0..4 * n {\n v[i] = 0.0\n}\n";
        let program = program(&format!("{fill}{body}"));
        let (m, n) = (5, 2);
        let zeros = |shape: Vec<usize>| Tensor::from_fn(shape, |_| Ok::<_, ()>(Scalar::F64(0.0))).unwrap().unwrap();
        let inputs = [("x".into(), zeros(vec![m, n])), ("y".into(), zeros(vec![n]))];
        let sizes = [("m".into(), m as i64), ("n".into(), n as i64)];
        let outputs = Interpreter::new(&program, &Machine, sizes, inputs).unwrap().run().unwrap();
        outputs[0].1.data().to_vec()
    };
    let last = |values: Vec<Scalar>| values[8];
    assert_eq!(last(run(body)), Scalar::F64(4.0));
    assert_ne!(last(run(&format!("parallel {body}"))), Scalar::F64(4.0));
    let independent = "for i in 0..m - 1 {\n z[i + 1, 0] = 1.0\n}\n";
    assert_eq!(run(independent), run(&format!("parallel {independent}")));
}
