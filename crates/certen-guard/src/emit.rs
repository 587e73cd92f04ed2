//! A kernel as a `.ten` program, for the compiler to do the rest.
//!
//! Each statement becomes a `let`: a comprehension over the ranges, with a reduction inside. A tensor that is assigned
//! again gets a new name. Ranges begin at zero there, so indices are shifted. What is known of sizes is the `where`
//! clause. Names that the language keeps for itself get an underscore.

use std::collections::{BTreeMap, BTreeSet};

use certen_core::ElemType;
use certen_syntax::Name;

use crate::index::{Condition, Index};
use crate::kernel::{Effect, Kernel, Op, Range, Read, Reduction, Statement, Value};
use crate::prove::sizes;

/// Why there is no `.ten` program.
pub type Unwritten = String;

/// Words that no tensor, size or index of a `.ten` program is called.
const RESERVED: &[&str] = &[
    "fn",
    "let",
    "if",
    "else",
    "where",
    "const",
    "import",
    "with",
    "iterate",
    "times",
    "true",
    "false",
    "genarray",
    "modarray",
    "fold",
    "size",
    "schedule",
    "derive",
    "f32",
    "f64",
    "i32",
    "i64",
    "u8",
    "bool",
    "any",
    "num",
    "float",
    "associative",
    "derivation",
    "shape",
    "dim",
    "sum",
    "prod",
    "min",
    "max",
    "abs",
    "floor",
    "ceil",
    "round",
    "sqrt",
    "exp",
    "log",
    "sin",
    "cos",
    "tanh",
    "pow",
    "select",
    "guard",
    "mod",
    "floor_div",
    "ceil_div",
    "einsum",
    "sigmoid",
    "main",
    "_",
];

/// The program, a single function.
///
/// # Errors
/// If the language cannot say it.
pub fn ten(kernel: &Kernel) -> Result<String, Unwritten> {
    if let Some(reason) = &kernel.unwritten {
        return Err(reason.clone());
    }
    Writer::new(kernel).program()
}

struct Writer<'a> {
    kernel: &'a Kernel,
    /// The names of sizes and indices.
    names: BTreeMap<Name, Name>,
    taken: BTreeSet<Name>,
    /// The name under which each tensor can be read now.
    current: Vec<Name>,
}

/// A name that the program can have.
fn allowed(base: Name, taken: &BTreeSet<Name>) -> Name {
    let word: String = base.as_str().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let base = match word.as_str() {
        word if RESERVED.contains(&word) => format!("{word}_"),
        digits if digits.starts_with(|c: char| c.is_ascii_digit()) => format!("k{digits}"),
        word => word.to_owned(),
    };
    Name::fresh(&base, |name| taken.contains(&name))
}

impl<'a> Writer<'a> {
    fn new(kernel: &'a Kernel) -> Writer<'a> {
        let mut writer = Writer { kernel, names: BTreeMap::new(), taken: BTreeSet::new(), current: Vec::new() };
        for size in &kernel.sizes {
            writer.rename(*size);
        }
        for tensor in &kernel.tensors {
            let name = allowed(tensor.name, &writer.taken);
            writer.taken.insert(name);
            writer.current.push(name);
        }
        writer
    }

    fn rename(&mut self, name: Name) -> Name {
        let new = allowed(name, &self.taken);
        self.taken.insert(new);
        self.names.insert(name, new);
        new
    }

    fn program(mut self) -> Result<String, Unwritten> {
        let kernel = self.kernel;
        let mut parameters: Vec<String> = self.loose_sizes().iter().map(|size| format!("{size}: size")).collect();
        for (at, tensor) in kernel.tensors.iter().enumerate().filter(|(_, tensor)| tensor.is_input) {
            parameters.push(format!("{}: {}", self.current[at], self.typed(at, tensor.elem)?));
        }
        let conditions: Vec<String> =
            sizes(kernel).iter().map(|condition| self.condition(condition)).collect::<Result<_, _>>()?;
        let conditions =
            if conditions.is_empty() { String::new() } else { format!(" where {}", conditions.join(", ")) };
        let mut results = Vec::new();
        for output in &kernel.outputs {
            let tensor = kernel.tensors.get(*output).ok_or("an output is missing")?;
            results.push(format!("{}: {}", allowed(tensor.name, &BTreeSet::new()), self.typed(*output, tensor.elem)?));
        }
        let (mut lines, mut defined) = (String::new(), BTreeSet::new());
        for statement in &kernel.statements {
            let value = self.statement(statement)?;
            let tensor = kernel.tensors.get(statement.target).ok_or("a tensor is missing")?;
            let is_there = tensor.is_input || !defined.insert(statement.target);
            let name = if is_there { allowed(tensor.name, &self.taken) } else { self.current[statement.target] };
            self.taken.insert(name);
            self.current[statement.target] = name;
            lines += &format!("    let {name}: {} = {value};\n", self.typed(statement.target, tensor.elem)?);
        }
        let given: Vec<&str> = kernel.outputs.iter().map(|output| self.current[*output].as_str()).collect();
        let given = if let [only] = given[..] { only.to_owned() } else { format!("({})", given.join(", ")) };
        let name = allowed(kernel.name, &BTreeSet::new());
        let head = format!("fn {name}({}) -> ({}){conditions}", parameters.join(", "), results.join(", "));
        Ok(format!("// {}, read by `certen guard`.\n{head} {{\n{lines}    {given}\n}}\n", kernel.language))
    }

    /// Sizes that no input has alone: parameters of their own.
    fn loose_sizes(&self) -> Vec<Name> {
        let inputs = self.kernel.tensors.iter().filter(|tensor| tensor.is_input);
        let bound: BTreeSet<Name> = inputs.flat_map(|tensor| &tensor.shape).filter_map(Index::name).collect();
        let loose = self.kernel.sizes.iter().filter(|size| !bound.contains(size));
        loose.filter_map(|size| self.names.get(size).copied()).collect()
    }

    fn typed(&self, tensor: usize, elem: ElemType) -> Result<String, Unwritten> {
        let shape = &self.kernel.tensors[tensor].shape;
        let sizes: Vec<String> = shape.iter().map(|size| self.index(size)).collect::<Result<_, _>>()?;
        Ok(if sizes.is_empty() { elem.to_string() } else { format!("{elem}[{}]", sizes.join(", ")) })
    }

    fn index(&self, index: &Index) -> Result<String, Unwritten> {
        let renamed = self.names.iter().map(|(old, new)| (*old, Index::Name(*new))).collect();
        let ix = index.with(&renamed).ix().map_err(|_| "an index is too large")?;
        Ok(ix.to_string())
    }

    fn condition(&self, condition: &Condition) -> Result<String, Unwritten> {
        let renamed = self.names.iter().map(|(old, new)| (*old, Index::Name(*new))).collect();
        Ok(condition.with(&renamed).to_string())
    }

    /// What an assignment makes of its tensor.
    fn statement(&mut self, statement: &Statement) -> Result<String, Unwritten> {
        let elem = self.kernel.tensors.get(statement.target).ok_or("a tensor is missing")?.elem;
        let shape = self.kernel.tensors[statement.target].shape.clone();
        let bounds: Vec<String> = shape.iter().map(|size| self.index(size)).collect::<Result<_, _>>()?;
        let names = self.names.clone();
        let indices: Vec<Name> = statement.ranges.iter().map(|range| self.rename(range.name)).collect();
        let here = format!("{}{}", self.current[statement.target], selected(&indices));
        let value = self.value(&statement.body, elem)?;
        let value = match statement.effect {
            Effect::Define | Effect::Replace => value,
            Effect::Combine(Reduction::Sum) => format!("{here} + {value}"),
            Effect::Combine(Reduction::Product) => format!("{here} * {value}"),
            Effect::Combine(Reduction::Min) => format!("min({here}, {value})"),
            Effect::Combine(Reduction::Max) => format!("max({here}, {value})"),
        };
        let mut inside = Vec::new();
        for (range, (index, size)) in statement.ranges.iter().zip(indices.iter().zip(&shape)) {
            if range.low != Index::Num(0) {
                inside.push(format!("{} <= {index}", self.index(&range.low)?));
            }
            if range.high.ix() != size.ix() {
                inside.push(format!("{index} < {}", self.index(&range.high)?));
            }
        }
        let value = match (inside.is_empty(), statement.effect) {
            (true, _) => value,
            (false, Effect::Define) => return Err("it stores a part of a tensor that has no other part".into()),
            (false, _) => format!("if {} {{ {value} }} else {{ {here} }}", inside.join(" && ")),
        };
        indices.iter().for_each(|index| {
            self.taken.remove(index);
        });
        self.names = names;
        Ok(if indices.is_empty() { value } else { comprehension(&indices, &value, &bounds) })
    }

    fn value(&mut self, value: &Value, elem: ElemType) -> Result<String, Unwritten> {
        Ok(match value {
            Value::Number(number) => literal(*number, elem)?,
            Value::Index(index) => format!("{elem}({})", self.index(index)?),
            Value::Read(read) => self.read(read, elem)?,
            Value::Neg(a) => format!("(-{})", self.value(a, elem)?),
            Value::Not(a) => format!("(!{})", self.truth(a)?),
            Value::Binary(op, a, b) if op.compares() || matches!(op, Op::And | Op::Or) => {
                format!("{elem}({})", self.compared(*op, a, b)?)
            }
            Value::Binary(op, a, b) => {
                let (a, b) = (self.value(a, elem)?, self.value(b, elem)?);
                binary(*op, &a, &b, elem)?
            }
            Value::Call(function, parts) => {
                let parts: Vec<String> = parts.iter().map(|part| self.value(part, elem)).collect::<Result<_, _>>()?;
                called(function.as_str(), &parts, elem)?
            }
            Value::Cast(to, inside) => {
                let natural = inside.natural(&self.kernel.tensors).unwrap_or(*to);
                let inside = self.value(inside, natural)?;
                let cast = if natural == *to { inside } else { format!("{to}({inside})") };
                if *to == elem { cast } else { format!("{elem}({cast})") }
            }
            Value::Choose { condition, yes, no, .. } => {
                let (yes, no) = (self.value(yes, elem)?, self.value(no, elem)?);
                format!("(if {} {{ {yes} }} else {{ {no} }})", self.condition(condition)?)
            }
            Value::Select(condition, yes, no) => {
                let condition = self.truth(condition)?;
                format!("select({condition}, {}, {})", self.value(yes, elem)?, self.value(no, elem)?)
            }
            Value::Reduce(reduction, ranges, body) => self.reduce(*reduction, ranges, body, elem)?,
        })
    }

    fn reduce(
        &mut self,
        reduction: Reduction,
        ranges: &[Range],
        body: &Value,
        elem: ElemType,
    ) -> Result<String, Unwritten> {
        if ranges.is_empty() {
            return self.value(body, elem);
        }
        let names = self.names.clone();
        let bounds: Vec<String> = ranges.iter().map(|range| self.index(&range.extent())).collect::<Result<_, _>>()?;
        let indices: Vec<Name> = ranges.iter().map(|range| self.rename(range.name)).collect();
        let shifted: BTreeMap<Name, Index> = ranges
            .iter()
            .filter(|range| range.low != Index::Num(0))
            .map(|range| (range.name, Index::Name(range.name) + range.low.clone()))
            .collect();
        let body = if shifted.is_empty() { self.value(body, elem)? } else { self.value(&body.with(&shifted), elem)? };
        indices.iter().for_each(|index| {
            self.taken.remove(index);
        });
        self.names = names;
        let function = match reduction {
            Reduction::Sum => "sum",
            Reduction::Product => "prod",
            Reduction::Min => "min",
            Reduction::Max => "max",
        };
        Ok(format!("{function}({})", comprehension(&indices, &body, &bounds)))
    }

    fn read(&mut self, read: &Read, elem: ElemType) -> Result<String, Unwritten> {
        let tensor = self.kernel.tensors.get(read.tensor).ok_or("a tensor is missing")?;
        let at: Vec<String> = read.at.iter().map(|index| self.index(index)).collect::<Result<_, _>>()?;
        let name = self.current[read.tensor];
        let text = if at.is_empty() { name.to_string() } else { format!("{name}[{}]", at.join(", ")) };
        Ok(if tensor.elem == elem { text } else { format!("{elem}({text})") })
    }

    /// A value as a truth value.
    fn truth(&mut self, value: &Value) -> Result<String, Unwritten> {
        match value {
            Value::Binary(op, a, b) if op.compares() || matches!(op, Op::And | Op::Or) => self.compared(*op, a, b),
            Value::Not(a) => Ok(format!("(!{})", self.truth(a)?)),
            other => {
                let elem = other.natural(&self.kernel.tensors).unwrap_or(ElemType::F64);
                let zero = literal(0.0, elem)?;
                Ok(format!("({} != {zero})", self.value(other, elem)?))
            }
        }
    }

    fn compared(&mut self, op: Op, a: &Value, b: &Value) -> Result<String, Unwritten> {
        if let Op::And | Op::Or = op {
            let sign = if op == Op::And { "&&" } else { "||" };
            return Ok(format!("({} {sign} {})", self.truth(a)?, self.truth(b)?));
        }
        let both = Value::binary(op, a.clone(), b.clone());
        let elem = both.natural(&self.kernel.tensors).unwrap_or(ElemType::F64);
        let sign = match op {
            Op::Less => "<",
            Op::AtMost => "<=",
            Op::Equal => "==",
            _ => "!=",
        };
        Ok(format!("({} {sign} {})", self.value(a, elem)?, self.value(b, elem)?))
    }
}

fn selected(indices: &[Name]) -> String {
    if indices.is_empty() { String::new() } else { format!("[{}]", listed(indices)) }
}

fn listed(indices: &[Name]) -> String {
    indices.iter().map(|index| index.as_str()).collect::<Vec<_>>().join(", ")
}

fn comprehension(indices: &[Name], value: &str, bounds: &[String]) -> String {
    let indices = listed(indices);
    format!("{{ [{indices}] -> {value} | [{indices}] < [{}] }}", bounds.join(", "))
}

fn literal(number: f64, elem: ElemType) -> Result<String, Unwritten> {
    match elem {
        ElemType::F64 if number.is_finite() => Ok(format!("{number:?}")),
        ElemType::F32 if number.is_finite() => Ok(format!("f32({number:?})")),
        ElemType::I32 | ElemType::I64 if number.fract() == 0.0 && number.abs() < 9e15 => {
            Ok(format!("{elem}({number})"))
        }
        _ => Err(format!("the number {number} is no {elem}")),
    }
}

fn binary(op: Op, a: &str, b: &str, elem: ElemType) -> Result<String, Unwritten> {
    Ok(match op {
        Op::Add => format!("({a} + {b})"),
        Op::Sub => format!("({a} - {b})"),
        Op::Mul => format!("({a} * {b})"),
        Op::Div if elem.is_float() => format!("({a} / {b})"),
        Op::Div => return Err("a quotient of integers is rounded in other ways by other languages".into()),
        Op::FloorDiv if elem.is_float() => format!("floor({a} / {b})"),
        Op::FloorDiv => format!("floor_div({a}, {b})"),
        Op::Mod if elem.is_float() => return Err("there is no remainder of floats".into()),
        Op::Mod => format!("mod({a}, {b})"),
        Op::Pow => format!("pow({a}, {b})"),
        Op::Min => format!("min({a}, {b})"),
        Op::Max => format!("max({a}, {b})"),
        Op::Less | Op::AtMost | Op::Equal | Op::Unequal | Op::And | Op::Or => {
            return Err("a truth value stands where a number is wanted".into());
        }
    })
}

/// A function of floats, by the names that the frameworks have for it.
fn called(function: &str, parts: &[String], elem: ElemType) -> Result<String, Unwritten> {
    let one = if elem.is_float() { literal(1.0, elem)? } else { String::new() };
    let both = parts.join(", ");
    Ok(match (function, parts) {
        ("abs", [_]) => format!("abs({both})"),
        ("floor" | "ceil" | "round" | "sqrt" | "exp" | "log" | "sin" | "cos" | "tanh" | "sigmoid", [_])
            if elem.is_float() =>
        {
            format!("{function}({both})")
        }
        ("rsqrt", [a]) if elem.is_float() => format!("({one} / sqrt({a}))"),
        ("exp2", [a]) if elem.is_float() => format!("pow({}, {a})", literal(2.0, elem)?),
        ("tan", [a]) if elem.is_float() => format!("(sin({a}) / cos({a}))"),
        _ => return Err(format!("`.ten` has no function `{function}` of {} {elem}", parts.len())),
    })
}
