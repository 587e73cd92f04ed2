//! Tests of the road from the typed tree on: trees by hand, with short words for their parts, and their value.

mod dots;
mod to_ast;
mod to_core;

use certen_core::domain::{Machine, Scalar};
use certen_core::{Binary, ElemType, Evaluator, Literal, ReduceOp, Tensor, TensorType, print_term};
use certen_index::{Cond, Ix};
use certen_syntax::{Name, Span};

use crate::passes;
use crate::to_core::to_core;
use crate::typed::{Block, Expr, Function, Generator, Kind, Let, Partition, Program, Range, Rhs, Size, Slot};

fn ix(text: &str) -> Ix {
    match text.split_once(['+', '-']) {
        Some((a, b)) if !a.is_empty() => {
            let (a, b) = (ix(a), ix(b));
            if text.contains('-') { a.sub(&b).unwrap() } else { a.add(&b).unwrap() }
        }
        _ => text.parse::<i64>().map_or_else(|_| Ix::var(text), Ix::from),
    }
}

fn ixs(text: &str) -> Vec<Ix> {
    text.split(',').filter(|part| !part.is_empty()).map(ix).collect()
}

fn ty(shape: &str) -> TensorType {
    TensorType::new(ElemType::F64, ixs(shape))
}

fn expr(kind: Kind, shape: &str) -> Expr {
    Expr { kind, ty: ty(shape), span: Span::default() }
}

fn var(name: &str, shape: &str) -> Expr {
    expr(Kind::Var(name.into()), shape)
}

fn number(value: f64) -> Expr {
    expr(Kind::Literal(Literal::Float(value)), "")
}

fn at(e: Expr, indices: &str) -> Expr {
    let indices = ixs(indices);
    let ty = TensorType::new(e.ty.elem, e.ty.shape[indices.len()..].to_vec());
    Expr { kind: Kind::Select(Box::new(e), indices), ty, span: Span::default() }
}

fn binary(op: Binary, a: Expr, b: Expr) -> Expr {
    let ty = if a.ty.is_scalar() { b.ty.clone() } else { a.ty.clone() };
    Expr { kind: Kind::Binary(op, Box::new(a), Box::new(b)), ty, span: Span::default() }
}

fn sum(e: Expr) -> Expr {
    let axes = (0..e.ty.rank()).collect();
    expr(Kind::Reduce(ReduceOp::Sum, axes, Box::new(e)), "")
}

fn range(lower: &str, upper: &str) -> Range {
    Range { lower: ix(lower), upper: ix(upper), lower_written: false, upper_written: false }
}

/// `[i, .] -> body | lower <= i < upper`, with the bounds of the indices in order.
fn partition(pattern: &str, ranges: &[(&str, &str)], body: Expr) -> Partition {
    let slot = |part: &str| match part.strip_prefix('.') {
        Some(dots) => Slot::Dots(dots.parse().unwrap_or(1)),
        None => Slot::Index(part.into()),
    };
    let pattern = pattern.split(',').map(slot).collect();
    Partition { pattern, ranges: ranges.iter().map(|(lo, hi)| range(lo, hi)).collect(), body }
}

fn comprehension(partitions: Vec<Partition>, shape: &str) -> Expr {
    expr(Kind::Comprehension(partitions), shape)
}

fn generator(indices: &[(&str, &str, &str)], body: Expr) -> Generator {
    let indices = indices.iter().map(|(name, lo, hi)| (Name::new(name), range(lo, hi))).collect();
    Generator { indices, body }
}

fn bind(name: &str, e: Expr) -> Let {
    Let { names: vec![(name.into(), e.ty.clone())], value: Rhs::Expr(e) }
}

/// A function of sizes that are at least 0 and of tensors `x: n,m`.
fn function(name: &str, sizes: &str, params: &[(&str, &str)], lets: Vec<Let>, result: Expr) -> Function {
    let sizes: Vec<Name> = sizes.split(',').filter(|size| !size.is_empty()).map(Name::new).collect();
    Function {
        name: name.into(),
        source: name.into(),
        facts: sizes.iter().map(|size| Cond::le(&Ix::from(0), &Ix::var(*size)).unwrap()).collect(),
        sizes: sizes.into_iter().map(|name| Size { name, given: false }).collect(),
        params: params.iter().map(|(name, shape)| (Name::new(name), ty(shape))).collect(),
        results: vec![("result".into(), result.ty.clone())],
        body: Block { lets, results: vec![result] },
        span: Span::default(),
    }
}

/// The last of the functions is run.
fn program(functions: Vec<Function>) -> Program {
    Program { entry: functions.len() - 1, functions }
}

/// The bindings of the Core of a program, after all passes.
fn core_text(program: &Program) -> Vec<String> {
    let mut program = program.clone();
    passes::run(&mut program);
    let core = to_core(&program, "test".into()).unwrap();
    core.bindings.iter().map(|b| format!("{} = {}", b.name, print_term(&core.terms, b.term))).collect()
}

/// The value of a program's first result; inputs count on from 1.
fn value(program: &Program, sizes: &[(&str, i64)]) -> (Vec<usize>, Vec<f64>) {
    let mut program = program.clone();
    passes::run(&mut program);
    let core = to_core(&program, "test".into()).unwrap();
    let sizes: Vec<(Name, i64)> = sizes.iter().map(|(name, value)| (Name::new(name), *value)).collect();
    let size = |name: Name| sizes.iter().find(|(size, _)| *size == name).map(|(_, value)| *value);
    let inputs = core.inputs.iter().map(|input| {
        let shape = input.ty.shape_at(&size).unwrap();
        let count = shape.iter().product::<usize>();
        (input.name, Tensor::new(shape, (1..=count).map(|n| Scalar::F64(n as f64)).collect()).unwrap())
    });
    let outputs = Evaluator::new(&core, &Machine, sizes.clone(), inputs).unwrap().run().unwrap();
    let number = |scalar: &Scalar| if let Scalar::F64(value) = scalar { *value } else { f64::NAN };
    (outputs[0].1.shape().to_vec(), outputs[0].1.data().iter().map(number).collect())
}
