//! One call of `einsum` as a kernel.

use std::collections::BTreeMap;

use certen_core::ElemType;
use certen_dialects::einsum::{EinsumError, IndexName, Sub, Subscripts};
use certen_syntax::{Code, Diagnostic, Name, Span};
use ruff_python_ast::{Expr, ExprCall};

use crate::apart;
use crate::index::Index;
use crate::kernel::{Agreement, Effect, Fault, Kernel, Op, Range, Read, Reduction, Side, Statement, Tensor, Value};
use crate::language::Language;
use crate::python::{Argument, Arguments, Known, Script};

/// An operand: what it is called, where it stands, its shape if that is known.
struct Operand {
    name: Name,
    span: Span,
    shape: Option<Vec<Index>>,
}

/// The kernel of a call.
///
/// # Errors
/// A warning, if it is not literal enough to be read.
pub(crate) fn call<'a>(
    script: &Script<'_>,
    call: &ExprCall,
    path: &str,
    arguments: &Arguments<'a>,
) -> Result<Kernel, Box<Diagnostic>> {
    let span = script.span(call);
    let unread = |what: &str| {
        let text = format!("this `einsum` is not read: {what}");
        Box::new(Diagnostic::warning(Code::W1001, span, text))
    };
    let mut positional = arguments.positional();
    let Some(first) = positional.next() else { return Err(unread("it has no subscripts")) };
    let Known::Text(subscripts) = &first.known else {
        let is_list = arguments.positional().nth(1).is_some_and(|second| matches!(second.known, Known::List(_)));
        return Err(unread(if is_list {
            "its operands have lists of indices"
        } else {
            "its subscripts are not a literal"
        }));
    };
    let rest: Vec<&Argument<'a>> = positional.collect();
    if rest.iter().any(|argument| matches!(argument.expr, Expr::Starred(_))) {
        return Err(unread("its operands are not written out"));
    }
    let mut operands: Vec<Operand> = Vec::new();
    // PyTorch takes a list of operands, too.
    match (&rest[..], rest.first().map(|only| (only.expr, &only.known))) {
        ([_], Some((Expr::List(list), Known::List(parts)))) if list.elts.len() == parts.len() => {
            for (expr, known) in list.elts.iter().zip(parts) {
                operands.push(operand(script, expr, known, &operands));
            }
        }
        _ => {
            for argument in rest {
                operands.push(operand(script, argument.expr, &argument.known, &operands));
            }
        }
    }
    let elem = if path.starts_with("torch") || path.starts_with("jax") { ElemType::F32 } else { ElemType::F64 };
    let name = Name::new(&format!("einsum_{}", script.line(call)));
    let mut kernel = Kernel {
        name,
        language: Language::Python,
        span,
        sizes: Vec::new(),
        facts: Vec::new(),
        tensors: Vec::new(),
        statements: Vec::new(),
        outputs: Vec::new(),
        faults: Vec::new(),
        notes: Vec::new(),
        unwritten: None,
    };
    if let Err(error) = fill(&mut kernel, subscripts, script.span(first.expr), &operands, elem) {
        let place = match &error {
            EinsumError::Rank { operand, .. } => operands.get(*operand).map_or(span, |operand| operand.span),
            _ => script.span(first.expr),
        };
        let diagnostic = Diagnostic::error(Code::E1005, place, error.to_string()).label("here");
        let reading = "it raises an error when it runs, and only then";
        kernel.faults.push(Fault::of(diagnostic.note(reading), reading));
        kernel.unwritten = Some("it has no meaning".into());
        kernel.statements.clear();
    }
    Ok(kernel)
}

fn operand(script: &Script<'_>, expr: &Expr, known: &Known<'_>, before: &[Operand]) -> Operand {
    let base = match expr {
        Expr::Name(name) => name.id.as_str(),
        _ => "x",
    };
    let name = Name::fresh(base, |name| before.iter().any(|operand| operand.name == name));
    let shape = match known {
        Known::Array(shape) => Some(shape.clone()),
        _ => None,
    };
    Operand { name, span: script.span(expr), shape }
}

/// One dimension of an operand.
struct Axis {
    label: IndexName,
    size: Index,
}

fn fill(kernel: &mut Kernel, text: &str, span: Span, operands: &[Operand], elem: ElemType) -> Result<(), EinsumError> {
    let subscripts = Subscripts::parse(text, operands.len())?;
    if subscripts.operands().len() != operands.len() {
        return Err(EinsumError::Operands { subscripts: subscripts.operands().len(), operands: operands.len() });
    }
    let walked = walked(kernel, &subscripts, operands)?;
    let mut ranges: Vec<(IndexName, Range)> = Vec::new();
    let mut firsts: BTreeMap<usize, Side> = BTreeMap::new();
    let mut agreements = Vec::new();
    for (at, axes) in walked.iter().enumerate() {
        for (dimension, axis) in axes.iter().enumerate() {
            let side = || Side {
                what: format!("dimension {} of `{}`", dimension + 1, operands[at].name),
                tensor: Some((at, dimension)),
                size: axis.size.clone(),
                span: operands[at].span,
            };
            let place = match ranges.iter().position(|(label, _)| *label == axis.label) {
                Some(place) => place,
                None => {
                    let name = apart::index(&word(axis.label));
                    ranges.push((axis.label, Range::up_to(name, axis.size.clone())));
                    ranges.len() - 1
                }
            };
            let is_one = |size: &Index| size.number() == Some(1);
            match firsts.get(&place) {
                // A dimension of size 1 is stretched.
                Some(first) if is_one(&first.size) && !is_one(&axis.size) => {
                    ranges[place].1.high = axis.size.clone();
                    firsts.insert(place, side());
                }
                Some(_) if is_one(&axis.size) => {}
                Some(first) => {
                    let by = format!("`{}`", apart::written(ranges[place].1.name));
                    let reading = "it raises an error when it runs with such arrays, and only then".to_owned();
                    agreements.push(Agreement { by, first: first.clone(), second: side(), reading });
                }
                None => {
                    firsts.insert(place, side());
                }
            }
        }
    }
    let factor = |at: usize| {
        let index = |axis: &Axis| match ranges.iter().find(|(label, _)| *label == axis.label) {
            Some((_, range)) if range.high == axis.size || axis.size.number() != Some(1) => Index::Name(range.name),
            _ => Index::Num(0),
        };
        let at_indices = walked[at].iter().map(index).collect();
        Value::Read(Read { tensor: at, at: at_indices, span: operands[at].span, reading: "" })
    };
    let product = (1..operands.len()).fold(factor(0), |product, at| Value::binary(Op::Mul, product, factor(at)));
    let kept = kept(&subscripts, &ranges);
    let (kept, summed): (Vec<_>, Vec<_>) = (
        kept.iter()
            .filter_map(|label| ranges.iter().find(|(other, _)| other == label))
            .map(|(_, range)| range.clone())
            .collect(),
        ranges.iter().filter(|(label, _)| !kept.contains(label)).map(|(_, range)| range.clone()).collect(),
    );
    let body = if summed.is_empty() { product } else { Value::Reduce(Reduction::Sum, summed, Box::new(product)) };
    for (operand, axes) in operands.iter().zip(&walked) {
        let shape = axes.iter().map(|axis| axis.size.clone()).collect();
        kernel.tensors.push(Tensor { name: operand.name, elem, shape, span: operand.span, is_input: true });
    }
    let shape = kept.iter().map(|range: &Range| range.high.clone()).collect();
    let name = Name::fresh("result", |name| operands.iter().any(|operand| operand.name == name));
    kernel.tensors.push(Tensor { name, elem, shape, span, is_input: false });
    kernel.outputs = vec![operands.len()];
    let target = operands.len();
    kernel.statements.push(Statement { target, span, ranges: kept, effect: Effect::Define, body, agreements });
    let mut names = Default::default();
    kernel.tensors.iter().flat_map(|tensor| &tensor.shape).for_each(|size| size.names(&mut names));
    kernel.sizes = names.into_iter().collect();
    Ok(())
}

/// The labels and sizes of each operand, with ellipses written out where ranks are known.
fn walked(kernel: &mut Kernel, subscripts: &Subscripts, operands: &[Operand]) -> Result<Vec<Vec<Axis>>, EinsumError> {
    let mut walked: Vec<Vec<Axis>> = Vec::new();
    let mut open = Vec::new();
    for (at, (term, operand)) in subscripts.operands().iter().zip(operands).enumerate() {
        let has_ellipsis = term.contains(&Sub::Ellipsis);
        let labels = term.len() - usize::from(has_ellipsis);
        let rank = operand.shape.as_ref().map(Vec::len);
        if let Some(rank) = rank
            && (rank < labels || (!has_ellipsis && rank > labels))
        {
            return Err(EinsumError::Rank { operand: at, indices: labels, ellipsis: has_ellipsis, rank });
        }
        if rank.is_none() && has_ellipsis {
            kernel.unwritten = Some(format!("how many dimensions `{}` has is not known", operand.name));
        }
        let more = rank.map_or(0, |rank| rank - labels);
        let mut names = Vec::new();
        for sub in term {
            match *sub {
                Sub::Label(label) => names.push(subscripts.name(label)),
                Sub::Ellipsis => names.extend((1..=more).rev().map(IndexName::Ellipsis)),
            }
        }
        let axes = names.into_iter().enumerate().map(|(dimension, label)| {
            let size = operand.shape.as_ref().and_then(|shape| shape.get(dimension)).cloned();
            if size.is_none() {
                open.push((at, dimension));
            }
            Axis { label, size: size.unwrap_or(Index::Num(1)) }
        });
        walked.push(axes.collect());
    }
    // What is not known is what the same index has elsewhere, or a size of its own.
    for (at, dimension) in open.clone() {
        let label = walked[at][dimension].label;
        let known = walked.iter().enumerate().find_map(|(other, axes)| {
            axes.iter().enumerate().find_map(|(place, axis)| {
                let is_known = axis.label == label && !open.contains(&(other, place)) && axis.size.number() != Some(1);
                is_known.then(|| axis.size.clone())
            })
        });
        let own = || Index::Name(Name::new(&format!("n_{}", word(label))));
        walked[at][dimension].size = known.unwrap_or_else(own);
    }
    let dropped = walked.iter().flatten().any(|axis| matches!(axis.label, IndexName::Ellipsis(_)));
    if dropped && !subscripts.output().contains(&Sub::Ellipsis) {
        let operand = subscripts.operands().iter().position(|term| term.contains(&Sub::Ellipsis)).unwrap_or(0);
        return Err(EinsumError::EllipsisDropped { operand, shape: Vec::new() });
    }
    Ok(walked)
}

/// The labels of the result, in order.
fn kept(subscripts: &Subscripts, ranges: &[(IndexName, Range)]) -> Vec<IndexName> {
    let mut kept = Vec::new();
    let most =
        ranges.iter().filter_map(|(label, _)| if let IndexName::Ellipsis(n) = label { Some(*n) } else { None }).max();
    for sub in subscripts.output() {
        match *sub {
            Sub::Label(label) => kept.push(subscripts.name(label)),
            Sub::Ellipsis => kept.extend((1..=most.unwrap_or(0)).rev().map(IndexName::Ellipsis)),
        }
    }
    kept
}

fn word(label: IndexName) -> String {
    match label {
        IndexName::Letter(letter) => letter.to_string(),
        IndexName::Number(number) => format!("i{number}"),
        IndexName::Ellipsis(from_right) => format!("d{from_right}"),
    }
}
