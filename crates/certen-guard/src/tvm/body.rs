//! The functions of indices: what each element of a stage is.

use certen_syntax::{Code, Diagnostic, Name, Span};
use ruff_python_ast::{CmpOp, Expr, ExprCall, Number, Operator, UnaryOp};

use super::scope::{Scope, elem};
use crate::index::{Comparison, Condition, Index};
use crate::kernel::{Op, Range, Read as KernelRead, Reduction, Tensor, Value};
use crate::python::{Imports, Known, Script};
use crate::text::{Read, undeclared, unsupported};

const READING: &str = "TVM compares ranges and declared sizes with nothing: the code that it makes reads out of bounds";

/// A reader of one function.
pub(super) struct Body<'b, 'a> {
    pub script: &'b Script<'b>,
    pub imports: &'b Imports,
    pub scope: &'b Scope<'a>,
    pub tensors: &'b [Tensor],
}

impl<'a> Body<'_, 'a> {
    fn known(&self, expr: &Expr) -> Option<&Known<'a>> {
        match expr {
            Expr::Name(name) => self.scope.get(name.id.as_str()),
            _ => None,
        }
    }

    fn tensor(&self, expr: &Expr) -> Option<usize> {
        match self.known(expr)? {
            Known::Tensor(tensor) => Some(*tensor).filter(|tensor| *tensor < self.tensors.len()),
            _ => None,
        }
    }

    /// An element.
    pub fn value(&self, expr: &Expr) -> Read<Value> {
        let span = self.script.span(expr);
        if self.is_index(expr) {
            return match self.index(expr)? {
                Index::Num(number) => Ok(Value::Number(number as f64)),
                index => Ok(Value::Index(index)),
            };
        }
        Ok(match expr {
            Expr::NumberLiteral(literal) => match &literal.value {
                Number::Float(value) => Value::Number(*value),
                Number::Int(value) => {
                    Value::Number(value.as_i64().ok_or_else(|| unsupported(span, "a number this large"))? as f64)
                }
                Number::Complex { .. } => return Err(unsupported(span, "a complex number")),
            },
            Expr::Name(name) => match self.known(expr) {
                Some(Known::Number(value)) => Value::Number(*value),
                Some(Known::Tensor(tensor)) if *tensor < self.tensors.len() => self.access(*tensor, &[], span)?,
                _ => return Err(undeclared(span, Name::new(name.id.as_str()), "it is not known what it holds")),
            },
            Expr::UnaryOp(unary) => {
                let inside = Box::new(self.value(&unary.operand)?);
                match unary.op {
                    UnaryOp::USub => Value::Neg(inside),
                    UnaryOp::UAdd => *inside,
                    UnaryOp::Not => return Err(unsupported(span, "Python's `not`: TVM has `te.all` and `tir.Not`")),
                    UnaryOp::Invert => Value::Not(inside),
                }
            }
            Expr::BinOp(binary) => {
                let op = operator(binary.op).ok_or_else(|| unsupported(span, "this operator"))?;
                Value::binary(op, self.value(&binary.left)?, self.value(&binary.right)?)
            }
            Expr::Compare(compare) => {
                let ([op], [right]) = (&compare.ops[..], &compare.comparators[..]) else {
                    return Err(unsupported(span, "a chain of comparisons: TVM has `te.all`"));
                };
                let (a, b) = (self.value(&compare.left)?, self.value(right)?);
                compared(*op, a, b).ok_or_else(|| unsupported(span, "this comparison"))?
            }
            Expr::Subscript(subscript) => {
                let Some(tensor) = self.tensor(&subscript.value) else {
                    let name = self.script.snippet(&*subscript.value);
                    return Err(undeclared(span, Name::new(name), "it is no tensor that is known here"));
                };
                let parts: Vec<&Expr> = match &*subscript.slice {
                    Expr::Tuple(tuple) => tuple.elts.iter().collect(),
                    one => vec![one],
                };
                self.access(tensor, &parts, span)?
            }
            Expr::Call(call) => self.call(call, span)?,
            Expr::If(_) => return Err(unsupported(span, "Python's conditional: TVM has `te.if_then_else`")),
            Expr::BoolOp(_) => return Err(unsupported(span, "Python's `and` and `or`: TVM has `te.all` and `te.any`")),
            _ => return Err(unsupported(span, "this expression in a function of indices")),
        })
    }

    fn access(&self, tensor: usize, parts: &[&Expr], span: Span) -> Read<Value> {
        let mut at = Vec::new();
        for part in parts {
            match part {
                Expr::Starred(starred) => match self.known(&starred.value) {
                    Some(Known::List(all)) => at.extend(all.iter().filter_map(Known::index)),
                    _ => return Err(unsupported(span, "indices that are not written out")),
                },
                // `A[i]` where `i` stands for all indices.
                one => match self.known(one) {
                    Some(Known::List(all)) => at.extend(all.iter().filter_map(Known::index)),
                    _ => at.push(self.index(one)?),
                },
            }
        }
        let declared = &self.tensors[tensor];
        if declared.shape.len() != at.len() {
            let (name, rank) = (declared.name, declared.shape.len());
            let text = format!("`{name}` has {rank} dimensions, and is accessed by {}", at.len());
            let error = Diagnostic::error(Code::E0234, span, text);
            return Err(Box::new(error.also(declared.span, "declared here")));
        }
        Ok(Value::Read(KernelRead { tensor, at, span, reading: READING }))
    }

    /// Whether an expression is made of indices, sizes and whole numbers.
    fn is_index(&self, expr: &Expr) -> bool {
        match expr {
            Expr::NumberLiteral(literal) => matches!(&literal.value, Number::Int(value) if value.as_i64().is_some()),
            Expr::Name(_) => {
                matches!(self.known(expr), Some(Known::Index(_) | Known::Axis(_) | Known::Opaque(_)))
            }
            Expr::UnaryOp(unary) => unary.op == UnaryOp::USub && self.is_index(&unary.operand),
            Expr::BinOp(binary) => {
                let is_whole = matches!(
                    binary.op,
                    Operator::Add | Operator::Sub | Operator::Mult | Operator::FloorDiv | Operator::Mod
                );
                is_whole && self.is_index(&binary.left) && self.is_index(&binary.right)
            }
            Expr::Attribute(attribute) => attribute.attr.as_str() == "var" && self.is_index(&attribute.value),
            Expr::Subscript(subscript) => self.shape_of(subscript).is_some(),
            Expr::Call(call) => {
                let function = self.imports.full(&call.func);
                let is_whole = function.as_deref().and_then(index_function).is_some();
                is_whole
                    && call.arguments.keywords.is_empty()
                    && call.arguments.args.iter().all(|part| self.is_index(part))
            }
            _ => false,
        }
    }

    /// A size that is asked of a tensor, `A.shape[0]`, or an index out of all of them.
    fn shape_of(&self, subscript: &ruff_python_ast::ExprSubscript) -> Option<Index> {
        let Expr::NumberLiteral(literal) = &*subscript.slice else { return None };
        let Number::Int(at) = &literal.value else { return None };
        let at = at.as_usize()?;
        if let Some(Known::List(all)) = self.known(&subscript.value) {
            return all.get(at)?.index();
        }
        let Expr::Attribute(attribute) = &*subscript.value else { return None };
        let tensor = self.tensor(&attribute.value).filter(|_| attribute.attr.as_str() == "shape")?;
        self.tensors[tensor].shape.get(at).cloned()
    }

    fn index(&self, expr: &Expr) -> Read<Index> {
        let span = self.script.span(expr);
        Ok(match expr {
            Expr::NumberLiteral(literal) => match &literal.value {
                Number::Int(value) => {
                    Index::Num(value.as_i64().ok_or_else(|| unsupported(span, "a number this large"))?)
                }
                _ => return Err(unsupported(span, "an index that is no whole number")),
            },
            Expr::Name(name) => match self.known(expr) {
                Some(Known::Axis(range)) => Index::Name(range.name),
                Some(Known::Tensor(_)) => return Err(data_dependent(span)),
                Some(known) => known.index().ok_or_else(|| unsupported(span, "this as an index"))?,
                None => {
                    let name = Name::new(name.id.as_str());
                    return Err(undeclared(span, name, "it is no index, size or axis that is known here"));
                }
            },
            Expr::UnaryOp(unary) if unary.op == UnaryOp::USub => Index::Num(0) - self.index(&unary.operand)?,
            Expr::BinOp(binary) => {
                let (a, b) = (self.index(&binary.left)?, self.index(&binary.right)?);
                let made = match binary.op {
                    Operator::Add => Some(a + b),
                    Operator::Sub => Some(a - b),
                    Operator::Mult => Some(a * b),
                    Operator::FloorDiv => a.floor_div(&b),
                    Operator::Mod => a.modulo(&b),
                    _ => None,
                };
                made.ok_or_else(|| unsupported(span, "this operation in an index"))?
            }
            Expr::Attribute(attribute) if attribute.attr.as_str() == "var" => self.index(&attribute.value)?,
            Expr::Subscript(subscript) => match self.shape_of(subscript) {
                Some(size) => size,
                None => return Err(data_dependent(span)),
            },
            Expr::Call(call) => self.index_call(call, span)?,
            _ => return Err(unsupported(span, "this expression as an index")),
        })
    }

    fn index_call(&self, call: &ExprCall, span: Span) -> Read<Index> {
        let function = self.imports.full(&call.func);
        if self.tensor(&call.func).is_some() {
            return Err(data_dependent(span));
        }
        let what = function.as_deref().and_then(index_function);
        let parts: Vec<Index> = call.arguments.args.iter().map(|part| self.index(part)).collect::<Read<_>>()?;
        let made = match (what, &parts[..]) {
            (Some(Op::FloorDiv), [a, b]) => a.clone().floor_div(b),
            (Some(Op::Mod), [a, b]) => a.clone().modulo(b),
            (Some(Op::Min), [a, b]) => Some(a.clone().min(b.clone())),
            (Some(Op::Max), [a, b]) => Some(a.clone().max(b.clone())),
            _ => None,
        };
        made.ok_or_else(|| unsupported(span, "this call in an index"))
    }

    /// A condition on indices; none if it is one on elements.
    fn condition(&self, expr: &Expr) -> Read<Option<Condition>> {
        let span = self.script.span(expr);
        match expr {
            Expr::Compare(compare) => {
                let ([op], [right]) = (&compare.ops[..], &compare.comparators[..]) else {
                    return Err(unsupported(span, "a chain of comparisons: TVM has `te.all`"));
                };
                if !self.is_index(&compare.left) || !self.is_index(right) {
                    return Ok(None);
                }
                let (a, b) = (self.index(&compare.left)?, self.index(right)?);
                Ok(Some(match op {
                    CmpOp::Lt => Condition::compare(Comparison::Less, a, b),
                    CmpOp::LtE => Condition::compare(Comparison::AtMost, a, b),
                    CmpOp::Gt => Condition::compare(Comparison::Less, b, a),
                    CmpOp::GtE => Condition::compare(Comparison::AtMost, b, a),
                    CmpOp::Eq => Condition::compare(Comparison::Equal, a, b),
                    CmpOp::NotEq => Condition::compare(Comparison::Unequal, a, b),
                    _ => return Err(unsupported(span, "this comparison")),
                }))
            }
            Expr::Call(call) => {
                let function = self.imports.full(&call.func).unwrap_or_default();
                let parts: Vec<Option<Condition>> = match function.rsplit('.').next().unwrap_or_default() {
                    "all" | "any" | "And" | "Or" | "Not" | "likely" => {
                        call.arguments.args.iter().map(|part| self.condition(part)).collect::<Read<_>>()?
                    }
                    _ => return Ok(None),
                };
                let Some(parts) = parts.into_iter().collect::<Option<Vec<Condition>>>() else { return Ok(None) };
                let joined = |make: fn(Box<Condition>, Box<Condition>) -> Condition| {
                    parts.iter().cloned().reduce(|a, b| make(Box::new(a), Box::new(b)))
                };
                Ok(match function.rsplit('.').next().unwrap_or_default() {
                    "any" | "Or" => joined(Condition::Or),
                    "Not" => parts.first().cloned().map(|condition| Condition::Not(Box::new(condition))),
                    _ => joined(Condition::And),
                })
            }
            _ => Ok(None),
        }
    }

    fn call(&self, call: &ExprCall, span: Span) -> Read<Value> {
        if let Some(tensor) = self.tensor(&call.func) {
            return self.access(tensor, &call.arguments.args.iter().collect::<Vec<_>>(), span);
        }
        if let Expr::Attribute(attribute) = &*call.func
            && attribute.attr.as_str() == "astype"
            && let [Expr::StringLiteral(dtype)] = &call.arguments.args[..]
        {
            let to = elem(dtype.value.to_str(), span)?;
            return Ok(Value::Cast(to, Box::new(self.value(&attribute.value)?)));
        }
        let path = self.imports.full(&call.func).unwrap_or_default();
        let function = path.rsplit('.').next().unwrap_or_default();
        if !path.starts_with("tvm.") {
            return Err(unsupported(span, format!("a call of `{}`", self.script.snippet(&*call.func))));
        }
        let parts = &call.arguments.args;
        let axis = call
            .arguments
            .keywords
            .iter()
            .find(|keyword| keyword.arg.as_ref().is_some_and(|name| name.as_str() == "axis"));
        let reduction = match function {
            "sum" => Some(Reduction::Sum),
            "prod" => Some(Reduction::Product),
            "max" => Some(Reduction::Max),
            "min" => Some(Reduction::Min),
            _ => None,
        };
        if let Some(reduction) = reduction
            && (axis.is_some() || (function == "sum" && parts.len() == 2))
        {
            return self.reduction(reduction, call, axis.map(|keyword| &keyword.value).or(parts.get(1)), span);
        }
        let both = |op: Op| match &parts[..] {
            [a, b] => Ok(Value::binary(op, self.value(a)?, self.value(b)?)),
            _ => Err(unsupported(span, format!("`{function}` of {} arguments", parts.len()))),
        };
        match function {
            "max" | "maximum" => both(Op::Max),
            "min" | "minimum" => both(Op::Min),
            "power" | "pow" => both(Op::Pow),
            "div" | "divide" | "truediv" => both(Op::Div),
            "floordiv" | "indexdiv" => both(Op::FloorDiv),
            "floormod" | "indexmod" => both(Op::Mod),
            "if_then_else" | "Select" => self.choice(function == "if_then_else", call, span),
            "all" | "any" | "And" | "Or" => {
                let op = if matches!(function, "any" | "Or") { Op::Or } else { Op::And };
                let parts: Vec<Value> = parts.iter().map(|part| self.value(part)).collect::<Read<_>>()?;
                let joined = parts.into_iter().reduce(|a, b| Value::binary(op, a, b));
                joined.ok_or_else(|| unsupported(span, format!("`{function}` of nothing")))
            }
            "const" | "cast" | "Cast" => self.constant(function, call, span),
            "min_value" | "max_value" | "infinity" | "inf" => {
                Err(unsupported(span, format!("`{function}`: `.ten` has no such constant")))
            }
            "exp" | "exp2" | "exp10" | "log" | "log2" | "log10" | "log1p" | "sqrt" | "rsqrt" | "tanh" | "tan"
            | "sin" | "cos" | "sinh" | "cosh" | "asin" | "acos" | "atan" | "sigmoid" | "erf" | "floor" | "ceil"
            | "round" | "trunc" | "abs" | "fabs" | "nearbyint" => {
                let name = if function == "fabs" { "abs" } else { function };
                let parts: Vec<Value> = parts.iter().map(|part| self.value(part)).collect::<Read<_>>()?;
                Ok(Value::Call(Name::new(name), parts))
            }
            _ => Err(unsupported(span, format!("`{}` in a function of indices", self.script.snippet(&*call.func)))),
        }
    }

    fn constant(&self, function: &str, call: &ExprCall, span: Span) -> Read<Value> {
        let parts = &call.arguments.args;
        let text = |expr: &Expr| match expr {
            Expr::StringLiteral(text) => Some(text.value.to_str().to_owned()),
            _ => None,
        };
        match (function, &parts[..]) {
            ("const", [value]) => self.value(value),
            ("const", [value, dtype]) => match text(dtype) {
                Some(dtype) => Ok(Value::Cast(elem(&dtype, span)?, Box::new(self.value(value)?))),
                // `A.dtype`: that of what it stands beside.
                None => self.value(value),
            },
            (_, [dtype, value]) => match text(dtype) {
                Some(dtype) => Ok(Value::Cast(elem(&dtype, span)?, Box::new(self.value(value)?))),
                None => Err(unsupported(span, "a cast to a type that is not written")),
            },
            _ => Err(unsupported(span, format!("`{function}` with these arguments"))),
        }
    }

    fn choice(&self, is_lazy: bool, call: &ExprCall, span: Span) -> Read<Value> {
        let [condition, yes, no] = &call.arguments.args[..] else {
            return Err(unsupported(span, "a choice that is not of a condition and two values"));
        };
        let (yes, no) = (Box::new(self.value(yes)?), Box::new(self.value(no)?));
        Ok(match self.condition(condition)? {
            Some(condition) => Value::Choose { condition, is_lazy, yes, no },
            None => Value::Select(Box::new(self.value(condition)?), yes, no),
        })
    }

    fn reduction(&self, reduction: Reduction, call: &ExprCall, axis: Option<&Expr>, span: Span) -> Read<Value> {
        let Some(body) = call.arguments.args.first() else { return Err(unsupported(span, "a reduction of nothing")) };
        let axes: Vec<&Expr> = match axis {
            Some(Expr::List(list)) => list.elts.iter().collect(),
            Some(Expr::Tuple(tuple)) => tuple.elts.iter().collect(),
            Some(one) => vec![one],
            None => Vec::new(),
        };
        let mut ranges: Vec<Range> = Vec::new();
        for axis in axes {
            match self.known(axis) {
                Some(Known::Axis(range)) => ranges.push(range.clone()),
                _ => return Err(unsupported(self.script.span(axis), "an axis that is no `reduce_axis` of this scope")),
            }
        }
        let mut value = self.value(body)?;
        for keyword in &call.arguments.keywords {
            match keyword.arg.as_ref().map(|name| name.as_str()) {
                Some("axis") => {}
                Some("where") if reduction == Reduction::Sum => {
                    let Some(condition) = self.condition(&keyword.value)? else {
                        return Err(unsupported(span, "a `where` that depends on elements"));
                    };
                    let (yes, no) = (Box::new(value), Box::new(Value::Number(0.0)));
                    value = Value::Choose { condition, is_lazy: true, yes, no };
                }
                name => return Err(unsupported(span, format!("`{}=` of a reduction", name.unwrap_or("**")))),
            }
        }
        Ok(Value::Reduce(reduction, ranges, Box::new(value)))
    }
}

/// What a function of indices does, if it is one.
fn index_function(path: &str) -> Option<Op> {
    let (module, function) = path.rsplit_once('.')?;
    if !(module == "tvm" || module.starts_with("tvm.")) {
        return None;
    }
    Some(match function {
        "indexdiv" | "floordiv" | "truncdiv" => Op::FloorDiv,
        "indexmod" | "floormod" | "truncmod" => Op::Mod,
        "min" | "minimum" => Op::Min,
        "max" | "maximum" => Op::Max,
        _ => return None,
    })
}

fn operator(op: Operator) -> Option<Op> {
    Some(match op {
        Operator::Add => Op::Add,
        Operator::Sub => Op::Sub,
        Operator::Mult => Op::Mul,
        Operator::Div => Op::Div,
        Operator::FloorDiv => Op::FloorDiv,
        Operator::Mod => Op::Mod,
        Operator::BitAnd => Op::And,
        Operator::BitOr => Op::Or,
        _ => return None,
    })
}

fn compared(op: CmpOp, a: Value, b: Value) -> Option<Value> {
    Some(match op {
        CmpOp::Lt => Value::binary(Op::Less, a, b),
        CmpOp::LtE => Value::binary(Op::AtMost, a, b),
        CmpOp::Gt => Value::binary(Op::Less, b, a),
        CmpOp::GtE => Value::binary(Op::AtMost, b, a),
        CmpOp::Eq => Value::binary(Op::Equal, a, b),
        CmpOp::NotEq => Value::binary(Op::Unequal, a, b),
        _ => return None,
    })
}

fn data_dependent(span: Span) -> Box<Diagnostic> {
    unsupported(span, "an index that is an element of a tensor")
}
