//! What a definition means: its indices told from its sizes, ranges inferred, and what each statement does to its tensor.

use std::collections::{BTreeMap, BTreeSet};

use certen_core::ElemType;
use certen_syntax::{Code, Diagnostic, Name, Span};

use super::parse::{Assignment, Definition, Ex};
use super::ranges::{Place, infer};
use crate::index::{Comparison, Condition, Index};
use crate::kernel::{Effect, Fault, Kernel, Op, Range, Read as KernelRead, Statement, Tensor, Value};
use crate::language::Language;
use crate::text::{Read, undeclared, unsupported};

const READING: &str =
    "Tensor Comprehensions infers the ranges from other accesses, and reads outside of the tensor here";

/// The kernel of a definition.
pub(super) fn kernel(definition: &Definition) -> Read<Kernel> {
    let mut maker = Maker::new(definition)?;
    for statement in &definition.statements {
        maker.statement(statement)?;
    }
    let mut outputs = Vec::new();
    for (name, span) in &definition.results {
        let found = maker.kernel.tensors.iter().position(|tensor| tensor.name == *name);
        // A statement that has no meaning defines nothing.
        match found {
            Some(at) if maker.defined.contains(&at) => outputs.push(at),
            _ if !maker.kernel.faults.is_empty() => {}
            _ => {
                let error = Diagnostic::error(Code::E0201, *span, format!("no statement defines the result `{name}`"));
                return Err(Box::new(error.label("not defined")));
            }
        }
    }
    maker.kernel.outputs = outputs;
    Ok(maker.kernel)
}

struct Maker {
    kernel: Kernel,
    defined: BTreeSet<usize>,
    /// The indices of the statement that is read, in the order of their first use.
    indices: Vec<Name>,
    places: Vec<Place>,
}

impl Maker {
    fn new(definition: &Definition) -> Read<Maker> {
        let mut sizes: Vec<Name> = Vec::new();
        let mut tensors: Vec<Tensor> = Vec::new();
        for parameter in &definition.parameters {
            let (name, span, shape) = (parameter.name, parameter.span, parameter.shape.clone());
            if let Some(first) = tensors.iter().find(|tensor| tensor.name == name) {
                let error = Diagnostic::error(Code::E0202, span, format!("`{name}` is declared twice"));
                return Err(Box::new(error.label("declared again").also(first.span, "first declared here")));
            }
            sizes.extend(shape.iter().filter_map(Index::name).filter(|size| !sizes.contains(size)).collect::<Vec<_>>());
            sizes.dedup();
            tensors.push(Tensor { name, elem: parameter.elem, shape, span, is_input: true });
        }
        if let Some(tensor) = tensors.iter().find(|tensor| sizes.contains(&tensor.name)) {
            let text = format!("`{}` is the name of a size and of a tensor", tensor.name);
            return Err(Box::new(Diagnostic::error(Code::E0211, tensor.span, text)));
        }
        let kernel = Kernel {
            name: definition.name,
            language: Language::Tc,
            span: definition.span,
            sizes,
            facts: Vec::new(),
            tensors,
            statements: Vec::new(),
            outputs: Vec::new(),
            faults: Vec::new(),
            notes: Vec::new(),
            unwritten: None,
        };
        Ok(Maker { kernel, defined: BTreeSet::new(), indices: Vec::new(), places: Vec::new() })
    }

    fn statement(&mut self, statement: &Assignment) -> Read<()> {
        self.indices = Vec::new();
        self.places = Vec::new();
        for (at, (index, span)) in statement.indices.iter().enumerate() {
            if self.kernel.sizes.contains(index) || self.tensor(*index).is_some() {
                return Err(unsupported(*span, "an index on the left side that is a size or a tensor"));
            }
            if statement.indices[..at].iter().any(|(other, _)| other == index) {
                return Err(unsupported(*span, "an index that stands twice on the left side"));
            }
        }
        let mut stated = BTreeMap::new();
        for (index, span, low, high) in &statement.bounds {
            let (low, high) = (self.index(low)?, self.index(high)?);
            if let Some(depends) = self.indices.first() {
                return Err(unsupported(*span, format!("a bound that depends on the index `{depends}`")));
            }
            stated.insert(*index, Range { name: *index, low, high });
        }
        let body = self.value(&statement.value)?;
        for exists in &statement.exists {
            self.value(exists)?;
        }
        for (index, _) in &statement.indices {
            self.meet(*index);
        }
        let mut indices = std::mem::take(&mut self.indices);
        indices.extend(stated.keys().filter(|index| !indices.contains(index)).copied().collect::<Vec<_>>());
        let inferred = infer(&self.kernel.tensors, &self.kernel.sizes, &indices, stated, &self.places);
        let open: Vec<Name> = indices.iter().filter(|index| !inferred.ranges.contains_key(index)).copied().collect();
        if let Some(index) = open.first() {
            let text = format!("the range of `{index}` cannot be inferred");
            let error = Diagnostic::error(Code::E1003, statement.span, text).label("in this statement");
            let error = error.help(format!("state it: `where {index} in 0:N`"));
            let reading = "Tensor Comprehensions refuses this statement";
            self.kernel.faults.push(Fault::of(error, reading));
            return Ok(());
        }
        let kept = |index: &Name| statement.indices.iter().any(|(name, _)| name == index);
        let range = |index: &Name| inferred.ranges[index].clone();
        let ranges: Vec<Range> = statement.indices.iter().map(|(index, _)| range(index)).collect();
        let summed: Vec<Range> = indices.iter().filter(|index| !kept(index)).map(range).collect();
        let body = match (statement.reduction, summed.first()) {
            (_, None) => body,
            (Some((reduction, _)), Some(_)) => Value::Reduce(reduction, summed, Box::new(body)),
            (None, Some(range)) => {
                let text = format!("`{}` stands on the right side only, and nothing is reduced", range.name);
                let error = Diagnostic::error(Code::E1003, statement.span, text).label("in this statement");
                let error = error.help("write `+=!`, `max=!` or another reduction for `=`");
                self.kernel.faults.push(Fault::of(error, "Tensor Comprehensions refuses this statement"));
                return Ok(());
            }
        };
        for fact in inferred.facts {
            if !self.kernel.facts.contains(&fact) {
                self.kernel.facts.push(fact);
            }
        }
        let (target, effect) = self.target(statement, &ranges, &body)?;
        let span = statement.span;
        self.kernel.statements.push(Statement { target, span, ranges, effect, body, agreements: inferred.agreements });
        Ok(())
    }

    /// The tensor of a statement, and what happens to it.
    fn target(&mut self, statement: &Assignment, ranges: &[Range], body: &Value) -> Read<(usize, Effect)> {
        let Assignment { target: name, span, reduction, .. } = statement;
        if let Some(at) = self.tensor(*name) {
            let tensor = &self.kernel.tensors[at];
            if tensor.shape.len() != ranges.len() {
                let text = format!("`{name}` has {} dimensions, not {}", tensor.shape.len(), ranges.len());
                return Err(Box::new(Diagnostic::error(Code::E0234, *span, text)));
            }
            self.defined.insert(at);
            let effect = match reduction {
                Some((reduction, false)) => Effect::Combine(*reduction),
                Some((_, true)) | None => Effect::Replace,
            };
            return Ok((at, effect));
        }
        let shape = ranges.iter().map(|range| range.high.clone()).collect();
        let elem = self.elem(body);
        let accumulates = matches!(reduction, Some((_, false)));
        if accumulates {
            let text =
                format!("`{name}` is added to before anything defines it: it begins with what the caller passes");
            let note = Diagnostic::warning(Code::W1001, *span, text).help("`!` after the sign begins with nothing");
            self.kernel.notes.push(note);
        }
        self.kernel.tensors.push(Tensor { name: *name, elem, shape, span: *span, is_input: accumulates });
        let at = self.kernel.tensors.len() - 1;
        self.defined.insert(at);
        let effect = match reduction {
            Some((reduction, false)) => Effect::Combine(*reduction),
            _ => Effect::Define,
        };
        Ok((at, effect))
    }

    /// The element type of what a statement defines: the widest that it reads.
    fn elem(&self, body: &Value) -> ElemType {
        let found = body.natural(&self.kernel.tensors);
        // Bytes have no arithmetic of their own.
        found.filter(|elem| elem.has_arithmetic()).unwrap_or(ElemType::F32)
    }

    fn tensor(&self, name: Name) -> Option<usize> {
        self.kernel.tensors.iter().position(|tensor| tensor.name == name)
    }

    fn meet(&mut self, index: Name) {
        if !self.indices.contains(&index) {
            self.indices.push(index);
        }
    }

    /// An expression that is a size or an index.
    fn index(&mut self, ex: &Ex) -> Read<Index> {
        Ok(match ex {
            Ex::Int(value) => Index::Num(*value),
            Ex::Name(name, _) if self.kernel.sizes.contains(name) => Index::Name(*name),
            Ex::Name(name, span) if self.tensor(*name).is_some() => return Err(data_dependent(*span)),
            Ex::Name(name, _) => {
                self.meet(*name);
                Index::Name(*name)
            }
            Ex::Size(name, at, span) => self.size(*name, *at, *span)?,
            Ex::Neg(a) => Index::Num(0) - self.index(a)?,
            Ex::Binary(op, a, b, span) => {
                let (a, b) = (self.index(a)?, self.index(b)?);
                let made = match op {
                    Op::Add => Some(a + b),
                    Op::Sub => Some(a - b),
                    Op::Mul => Some(a * b),
                    Op::Div => a.floor_div(&b),
                    Op::Mod => a.modulo(&b),
                    _ => None,
                };
                made.ok_or_else(|| unsupported(*span, "this operation in an index"))?
            }
            Ex::Apply(function, parts, span) => match (function.as_str(), &parts[..]) {
                ("min" | "fmin", [a, b]) => self.index(a)?.min(self.index(b)?),
                ("max" | "fmax", [a, b]) => self.index(a)?.max(self.index(b)?),
                ("int32" | "int", [a]) => self.index(a)?,
                _ => return Err(data_dependent(*span)),
            },
            Ex::Number(_, span) | Ex::Not(_, span) | Ex::Choose(_, _, _, span) => {
                return Err(unsupported(*span, "this expression as an index"));
            }
        })
    }

    fn size(&self, name: Name, at: usize, span: Span) -> Read<Index> {
        let missing = || undeclared(span, name, "it is no tensor that is declared or defined above");
        let tensor = &self.kernel.tensors[self.tensor(name).ok_or_else(missing)?];
        tensor.shape.get(at).cloned().ok_or_else(|| {
            let text = format!("`{name}` has {} dimensions, counted from 0", tensor.shape.len());
            Box::new(Diagnostic::error(Code::E0234, span, text))
        })
    }

    fn value(&mut self, ex: &Ex) -> Read<Value> {
        Ok(match ex {
            Ex::Number(value, _) => Value::Number(*value),
            Ex::Int(value) => Value::Number(*value as f64),
            Ex::Name(name, span) => match self.tensor(*name) {
                Some(tensor) => self.access(tensor, &[], *span)?,
                None => Value::Index(self.index(ex)?),
            },
            Ex::Size(..) => Value::Index(self.index(ex)?),
            Ex::Neg(a) => Value::Neg(Box::new(self.value(a)?)),
            Ex::Not(a, _) => Value::Not(Box::new(self.value(a)?)),
            Ex::Binary(op, a, b, _) => Value::binary(*op, self.value(a)?, self.value(b)?),
            Ex::Choose(condition, yes, no, _) => {
                let on_indices = if self.is_index(condition) { self.condition(condition)? } else { None };
                let (yes, no) = (self.value(yes)?, self.value(no)?);
                match on_indices {
                    Some(condition) => Value::Choose { condition, is_lazy: true, yes: Box::new(yes), no: Box::new(no) },
                    None => Value::Select(Box::new(self.value(condition)?), Box::new(yes), Box::new(no)),
                }
            }
            Ex::Apply(name, parts, span) => match self.tensor(*name) {
                Some(tensor) => self.access(tensor, parts, *span)?,
                None => self.call(*name, parts, *span)?,
            },
        })
    }

    /// Whether no tensor is read.
    fn is_index(&self, ex: &Ex) -> bool {
        match ex {
            Ex::Number(..) => false,
            Ex::Int(..) | Ex::Size(..) => true,
            Ex::Name(name, _) => self.tensor(*name).is_none(),
            Ex::Apply(name, parts, _) => {
                matches!(name.as_str(), "min" | "max") && parts.iter().all(|part| self.is_index(part))
            }
            Ex::Neg(a) | Ex::Not(a, _) => self.is_index(a),
            Ex::Binary(_, a, b, _) => self.is_index(a) && self.is_index(b),
            Ex::Choose(..) => false,
        }
    }

    /// A condition on indices; none if it is no condition.
    fn condition(&mut self, ex: &Ex) -> Read<Option<Condition>> {
        let Ex::Binary(op, a, b, _) = ex else {
            return Ok(match ex {
                Ex::Not(a, _) => self.condition(a)?.map(|a| Condition::Not(Box::new(a))),
                _ => None,
            });
        };
        let comparison = match op {
            Op::Less => Comparison::Less,
            Op::AtMost => Comparison::AtMost,
            Op::Equal => Comparison::Equal,
            Op::Unequal => Comparison::Unequal,
            Op::And | Op::Or => {
                let make = if *op == Op::And { Condition::And } else { Condition::Or };
                let both = (self.condition(a)?, self.condition(b)?);
                let (Some(a), Some(b)) = both else { return Ok(None) };
                return Ok(Some(make(Box::new(a), Box::new(b))));
            }
            _ => return Ok(None),
        };
        Ok(Some(Condition::compare(comparison, self.index(a)?, self.index(b)?)))
    }

    fn access(&mut self, tensor: usize, parts: &[Ex], span: Span) -> Read<Value> {
        let (name, rank) = (self.kernel.tensors[tensor].name, self.kernel.tensors[tensor].shape.len());
        if parts.len() != rank {
            let text = format!("`{name}` has {rank} dimensions, and is accessed by {}", parts.len());
            let error = Diagnostic::error(Code::E0234, span, text);
            return Err(Box::new(error.also(self.kernel.tensors[tensor].span, "declared here")));
        }
        let mut at = Vec::new();
        for (dimension, part) in parts.iter().enumerate() {
            let index = self.index(part)?;
            self.places.push(Place { tensor, dimension, index: index.clone(), span });
            at.push(index);
        }
        Ok(Value::Read(KernelRead { tensor, at, span, reading: READING }))
    }

    fn call(&mut self, name: Name, parts: &[Ex], span: Span) -> Read<Value> {
        let mut values: Vec<Value> = parts.iter().map(|part| self.value(part)).collect::<Read<_>>()?;
        let op = match name.as_str() {
            "min" | "fmin" => Some(Op::Min),
            "max" | "fmax" => Some(Op::Max),
            "pow" => Some(Op::Pow),
            _ => None,
        };
        Ok(match (op, name.as_str(), values.len()) {
            (Some(op), _, 2) => {
                let second = values.remove(1);
                Value::binary(op, values.remove(0), second)
            }
            (None, "float" | "float32", 1) => Value::Cast(ElemType::F32, Box::new(values.remove(0))),
            (None, "double" | "float64", 1) => Value::Cast(ElemType::F64, Box::new(values.remove(0))),
            (None, "fabs" | "abs", 1) => Value::Call(Name::new("abs"), values),
            (
                None,
                "exp" | "log" | "sqrt" | "rsqrt" | "tanh" | "sin" | "cos" | "tan" | "sigmoid" | "floor" | "ceil"
                | "round" | "exp2" | "erf" | "asin" | "acos" | "atan" | "cosh" | "sinh" | "log2" | "log10" | "log1p"
                | "expm1" | "cbrt",
                1,
            ) => Value::Call(name, values),
            _ => {
                return Err(undeclared(
                    span,
                    name,
                    "it is no tensor that is declared or defined above, and no function",
                ));
            }
        })
    }
}

fn data_dependent(span: Span) -> Box<Diagnostic> {
    unsupported(span, "an index that is an element of a tensor")
}
