//! Evaluation with padding (model language, Sec. 4): it computes the same, and where Thm. 2 needs more than it says.

use certen::road::loops::peak_bytes;
use certen::road::runtime::available_bytes;
use certen::road::syntax::Code;
use certen::{
    Array, Backend, Call, Choice, DomainChoice, ElemType, FpMode, Input, Module, Name, Options, Output, RunOptions,
    Values,
};

const FUEL: u64 = 10_000_000;

fn module(text: &str) -> Module {
    Module::from_text("padding.model", text, &Options::default()).unwrap()
}

fn shown(outputs: &[Output]) -> Vec<(Vec<usize>, Vec<String>)> {
    let each = |output: &Output| {
        let elements = match &output.values {
            Values::Array(array) => (0..array.len()).filter_map(|at| array.get(at)).map(|v| v.to_string()).collect(),
            Values::Exact(values) => values.iter().map(ToString::to_string).collect(),
            Values::Field(values) => values.iter().map(ToString::to_string).collect(),
            Values::Partial(values) => values.iter().map(|v| v.map_or("undefined".into(), |v| v.to_string())).collect(),
        };
        (output.shape.clone(), elements)
    };
    outputs.iter().map(each).collect()
}

fn unpadded(module: &Module, call: &Call, domain: DomainChoice) -> Vec<(Vec<usize>, Vec<String>)> {
    let options = RunOptions { backend: Backend::Interp, domain, ..RunOptions::default() };
    shown(&module.run_with(call, &options).unwrap().0)
}

fn vector(elements: &[f64]) -> Array {
    Array::from_vec(&[elements.len()], elements.to_vec()).unwrap()
}

/// Thm. 2 and 3 on a program with every operation, for vector lengths below, at, above and beside the sizes.
#[test]
fn padding_stays_zero_and_changes_nothing() {
    let module = module(
        "var input A : [2 3]\nvar input B : [3 5]\nvar input s : []\nvar output C : [2 5]\nvar output D : [5 2]\n\
         var output E : [2 5]\nvar output t : []\nvar output F : [5 3]\n\
         C = (A # B) . [2 3]\nD = (C + (s * C)) ^ [1 2]\nE = ((D ^ [2 1]) - C) / C\nE = E / s\n\
         t = ((D # E) . [1 4]) . [1 2]\nF = (B # A) . [1 4] # (A / A) . [[2 3]]\n",
    );
    let call = || Call::new().input("A", Input::Iota).input("B", Input::Iota).input("s", Input::Fill(3.0));
    for domain in [DomainChoice::Machine, DomainChoice::Rational, DomainChoice::Field, DomainChoice::Undefined] {
        let expected = unpadded(&module, &call(), domain);
        for length in [1, 2, 3, 4, 7] {
            let run = module.run_padded(&call(), length, domain, FUEL).unwrap();
            assert!(run.spills.is_empty(), "{domain:?}, {length}: {:?}", run.spills);
            assert_eq!(shown(&run.outputs), expected, "{domain:?}, {length}");
        }
    }
}

/// 0 * undefined is undefined (Def. 4), so that an undefined operand reaches the padding of an outer product.
#[test]
fn an_undefined_operand_breaks_theorem_2() {
    let module = module("var a : [3]\nvar b : [2]\nvar c : [3 2]\nc = a # b\n");
    let call = || Call::new().input("a", Input::Iota).allow_missing();
    let run = module.run_padded(&call(), 4, DomainChoice::Undefined, FUEL).unwrap();
    let [spill] = run.spills.as_slice() else { panic!("{:?}", run.spills) };
    assert_eq!((spill.code, spill.rule.unwrap().name), (Code::W0306, "Thm. 2"));
    // The first row of padding: a[3] is zero and padding, b[0] is undefined.
    assert!(spill.primary.as_ref().is_some_and(|label| label.text.contains("c[3, 0]")), "{spill:?}");
    // With a vector length that divides the sizes there is no padding to break.
    assert!(module.run_padded(&call(), 1, DomainChoice::Undefined, FUEL).unwrap().spills.is_empty());
}

/// Over IEEE floats 0 * infinity is not 0; a sum over the padding then changes the result. Native code has no padding, or
/// one that stays zero and is not summed.
#[test]
fn an_infinity_breaks_theorem_2_but_not_native_code() {
    let text = "var input a : [3]\nvar input b : [2]\nvar c : [3 2]\nvar output d : [3]\nvar output e : [2]\n\
         var input f : [3]\nc = a # b\ne = (c # f) . [1 3]\nd = (c # b) . [2 3]\n";
    let module = module(text);
    let call = || {
        Call::new()
            .input("a", vector(&[1.0, 2.0, 3.0]))
            .input("b", vector(&[f64::INFINITY, 1.0]))
            .input("f", vector(&[1.0, 1.0, 1.0]))
    };
    let run = module.run_padded(&call(), 4, DomainChoice::Machine, FUEL).unwrap();
    assert_eq!(run.spills.first().map(|spill| spill.code), Some(Code::W0306));
    let expected = unpadded(&module, &call(), DomainChoice::Machine);
    assert_eq!(expected[1].1, ["inf", "6.0"], "without padding");
    assert_eq!(shown(&run.outputs)[1].1, ["NaN", "6.0"], "the padding of c, 0 * infinity, is summed with the rest");
    assert_eq!(shown(&module.run(&call()).unwrap()), expected, "native code");
    // Nothing may be lifted over the outer product, or there would be none.
    for (vector, fp) in [(2, FpMode::Relaxed), (4, FpMode::Relaxed), (4, FpMode::Strict), (8, FpMode::Strict)] {
        // An automatic schedule computes `c` where it is read.
        let options = Options { vector: Some(vector), fp, schedule: Choice::None, ..Options::default() };
        let padded = Module::from_text("padding.model", text, &options).unwrap();
        assert_eq!(shown(&padded.run(&call()).unwrap()), expected, "native code, padded to {vector}");
        let loops = padded.loops().unwrap().to_string();
        assert!(fp == FpMode::Relaxed || loops.contains(&format!("alloc c : f64[3, {vector}]")), "{loops}");
    }
}

/// Rows of buffers that are longer than they need to be, at sizes below, at and above multiples of the vector length:
/// native code computes the same, bit for bit.
#[test]
fn padded_layouts_compute_the_same() {
    let text = "var input A : [m n]\nvar input B : [n m]\nvar input s : []\nvar T : [m m]\nvar U : [m n]\n\
                var output V : [m n]\nvar output W : [n n]\n\
                T = (A # B) . [2 3]\nU = (T # A) . [2 3]\nU = U + (s * U)\nU = U - (B ^ [1 2] / U)\nV = U * (U - A)\n\
                W = (B # U) . [2 3]\n";
    let module = |vector| {
        let options = Options { vector, fp: FpMode::Strict, ..Options::default() };
        Module::from_text("padding.model", text, &options).unwrap()
    };
    let dense = module(None);
    for vector in [1, 2, 4, 8] {
        let padded = module(Some(vector));
        for (m, n) in [(1, 1), (2, 3), (3, vector), (5, vector + 1), (7, 13)] {
            let call = || {
                let infinite = |rows: i64, columns: i64| {
                    let element = |at: i64| if at % 11 == 3 { f64::INFINITY } else { at as f64 / 7.0 - 1.0 };
                    let elements = (0..rows * columns).map(element).collect();
                    Array::from_vec(&[rows as usize, columns as usize], elements).unwrap()
                };
                Call::new().input("A", infinite(m, n)).input("B", infinite(n, m)).input("s", Input::Fill(3.0))
            };
            let (expected, found) = (dense.run(&call()).unwrap(), padded.run(&call()).unwrap());
            assert_eq!(shown(&found), shown(&expected), "{vector}: {m}, {n}");
        }
    }
}

/// A vector length that is no length is the caller's mistake.
#[test]
fn layouts_need_a_vector_length() {
    for vector in [0, -1, i64::MIN] {
        let options = Options { vector: Some(vector), ..Options::default() };
        let module = Module::from_text("it.teil", "alloc a : [2]\nalloc b : [2]\nb = a\n", &options).unwrap();
        let failure = module.loops().map(|_| ()).unwrap_err();
        assert_eq!(failure.diagnostics()[0].code, Code::E0407);
    }
}

/// What does not fit is refused before it starts: an iteration holds each state twice.
#[test]
fn states_are_counted_twice() {
    let text = "core it\nsize n, k\nwhere n >= 1\n\
                s = sum j in 0..n. (iterate t in 0..k (a = gen i in 0..n. gen l in 0..n. 1.0) then \
                (a = gen i in 0..n. gen l in 0..n. a[l, i] + 1.0) give a)[j, 0]\noutput s\n";
    let module = Module::from_text("it.core", text, &Options::default()).unwrap();
    let sizes = |n: i64| move |name: Name| Some(if name == Name::new("n") { n } else { 2 });
    assert_eq!(peak_bytes(module.loops().unwrap(), &sizes(100), &ElemType::bytes), 2 * 8 * 100 * 100);
    let small = shown(&module.run(&Call::new().dim("n", 5).dim("k", 2)).unwrap());
    assert_eq!(small[0].1, ["15.0"]);
    // One state would fit, two do not.
    let elements = available_bytes().unwrap_or(1 << 50) / 8 * 9 / 10;
    let n = i64::try_from(elements.isqrt()).unwrap();
    let failure = module.run(&Call::new().dim("n", n).dim("k", 2)).map(|_| ()).unwrap_err();
    assert_eq!(failure.diagnostics()[0].code, Code::E0408);
}

/// d-in-var (Fig. 15): an input that is marked has a value; what is not marked may be undefined.
#[test]
fn marked_inputs_are_given() {
    let call = || Call::new().input("a", Input::Iota).allow_missing();
    let options = RunOptions { backend: Backend::Interp, domain: DomainChoice::Undefined, ..RunOptions::default() };
    let marked = module("var input a : [2]\nvar input b : [2]\nvar output c : [2]\nc = a / b\n");
    let failure = marked.run_with(&call(), &options).map(|_| ()).unwrap_err();
    let error = &failure.diagnostics()[0];
    assert_eq!((error.code, error.rule.map(|rule| rule.name)), (Code::E0401, Some("d-in-var")));
    // Def. 8: 0 / undefined is 0, anything else by undefined is undefined.
    let unmarked = module("var a : [2]\nvar b : [2]\nvar c : [2]\nc = a / b\n");
    let (outputs, _) = unmarked.run_with(&call(), &options).unwrap();
    assert_eq!(shown(&outputs)[0].1, ["0.0", "undefined"]);
    let divisor = Call::new().input("a", Input::Iota).input("b", Input::Fill(0.0));
    let (outputs, _) = unmarked.run_with(&divisor, &options).unwrap();
    assert_eq!(shown(&outputs)[0].1, ["0.0", "undefined"], "Def. 4: v / 0 is undefined");
}

#[test]
fn padding_is_for_the_model_language_and_a_vector_length() {
    let text = "alloc a : [2]\nalloc b : [2]\nb = a\n";
    let teil = Module::from_text("it.teil", text, &Options::default()).unwrap();
    let call = Call::new().input("a", Input::Iota);
    let code = |module: &Module, length| {
        let failure = module.run_padded(&call, length, DomainChoice::Machine, FUEL).map(|_| ()).unwrap_err();
        failure.diagnostics()[0].code
    };
    assert_eq!(code(&teil, 4), Code::E0407);
    let model = module("var a : [2]\nvar b : [2]\nb = a\n");
    assert_eq!([code(&model, 0), code(&model, -3)], [Code::E0407; 2]);
    assert_eq!([code(&model, i64::MAX), code(&model, 1 << 60)], [Code::E0408; 2]);
    assert_eq!(code(&model, 1_000_000_007), Code::E0408);
}
