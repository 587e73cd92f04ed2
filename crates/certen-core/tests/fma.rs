//! `fma(a, b, c)`: one rounding on the machine, none in exact domains, a multiplication and an addition to whoever counts.

use certen_core::domain::{Exact, Field, Machine, MaybePadding, Padded, Partial, Rational, Scalar};
use certen_core::{Domain, ElemType, EvalError, Evaluator, Literal, Program, Tensor, parse_program};
use certen_syntax::{Name, Sources};

fn program(text: &str) -> Program {
    let mut sources = Sources::new();
    let file = sources.add("t.core", text);
    parse_program(&sources, file).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"))
}

/// `fma` and its two operations, of the same numbers, as elements of a tensor.
const BOTH: &str = "core both
size n
where n >= 1
input a : f64[n]
input c : f64[]
fused = gen i in 0..n. fma(a[i], a[i], c)
apart = gen i in 0..n. a[i] * a[i] + c
output fused
output apart
";

fn values<D: Domain>(domain: &D, value: impl Fn(f64) -> D::Value) -> Result<[D::Value; 2], EvalError> {
    let program = program(BOTH);
    let name = Name::new;
    let e = f64::EPSILON;
    let inputs = [
        (name("a"), Tensor::new(vec![1], vec![value(1.0 + e)]).unwrap()),
        (name("c"), Tensor::new(vec![], vec![value(-1.0 - 2.0 * e)]).unwrap()),
    ];
    let mut evaluator = Evaluator::new(&program, domain, [(name("n"), 1)], inputs)?;
    Ok([evaluator.element(name("fused"), &[0])?, evaluator.element(name("apart"), &[0])?])
}

#[test]
fn the_machine_rounds_once_and_exact_domains_never() {
    let square = f64::EPSILON * f64::EPSILON;
    let expected = [Scalar::F64(square), Scalar::F64(0.0)];
    assert_eq!(values(&Machine, Scalar::F64).unwrap(), expected);
    assert_eq!(values(&Partial(Machine), |v| Some(Scalar::F64(v))).unwrap(), expected.map(Some));
    let padded = values(&Padded(Machine), |v| MaybePadding::computed(Scalar::F64(v))).unwrap();
    assert_eq!(padded.map(|v| (v.value, v.is_padding)), expected.map(|v| (v, false)));

    let exact = |v: f64| Rational.literal(Literal::Float(v), ElemType::F64).unwrap();
    let [fused, apart]: [Exact; 2] = values(&Rational, exact).unwrap();
    assert_eq!((&fused, &apart), (&exact(square), &exact(square)));
    let field = Field { seed: 1 };
    let element = |v: f64| field.literal(Literal::Float(v), ElemType::F64).unwrap();
    let [fused, apart] = values(&field, element).unwrap();
    assert_eq!(fused, apart);
}

#[test]
fn an_undefined_operand_makes_it_undefined() {
    for at in 0..3 {
        let operands: Vec<&str> = (0..3).map(|k| if k == at { "undefined.f64" } else { "1.0" }).collect();
        let program = program(&format!("core t\nr = fma({})\noutput r\n", operands.join(", ")));
        let domain = Partial(Rational);
        let mut evaluator = Evaluator::new(&program, &domain, [], []).unwrap();
        assert_eq!(evaluator.element(Name::new("r"), &[]), Ok(None));
    }
}

#[test]
fn it_is_a_multiplication_and_an_addition() {
    let program = program(
        "core t\nsize n\nwhere n >= 1\ninput a : f32[n]\n\
         r = gen i in 0..n. sum j in 0..n. fma(a[i], a[j], a[i] * a[j])\noutput r\n",
    );
    assert_eq!(program.multiplications().unwrap().to_string(), "2*n*n");
    assert_eq!(program.operations().unwrap().to_string(), "4*n*n");
}

#[test]
fn sizes_are_put_into_its_operands() {
    let program = program(
        "core t\nsize n\nwhere n >= 1\ninput a : f64[n]\n\
         r = fma(a[n - 1], index.f64(n), 2.0)\noutput r\n",
    );
    let program = program.at_sizes(&[(Name::new("n"), 5)].into_iter().collect()).unwrap();
    assert!(program.to_string().contains("fma(a[4], index.f64(5), 2.0)"), "{program}");
}
