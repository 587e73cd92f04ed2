//! What a program means: its types, which are as the framework asserts them, and each element of what a statement defines.

use certen_core::ElemType;
use certen_syntax::{Code, Diagnostic, Name, Span};

use super::parse::{Elements, Ex, Program, Sign};
use crate::index::{Comparison, Condition, Index};
use crate::kernel::{Effect, Fault, Kernel, Op, Range, Read as KernelRead, Reduction, Statement, Tensor, Value};
use crate::language::Language;
use crate::text::{Read, undeclared};

const READING: &str =
    "CFDlang asserts this, and its release build does not ask: the code that it makes reads out of bounds";

/// The kernel of a program.
pub(super) fn kernel(program: &Program, name: &str) -> Read<Kernel> {
    let is_marked = program.variables.iter().any(|variable| variable.is_input || variable.is_output);
    let mut maker = Maker { program, index: 0, current: None, problem: None };
    let mut tensors: Vec<Tensor> = Vec::new();
    for variable in &program.variables {
        let mut shape: Vec<Index> = variable.shape.iter().map(|size| Index::Num(*size)).collect();
        if let Some(elements) = &program.elements
            && elements.names.iter().any(|(name, _)| *name == variable.name)
        {
            let at = if elements.is_first { 0 } else { shape.len() };
            shape.insert(at, Index::Num(elements.count));
        }
        let (name, span, is_input) = (variable.name, variable.span, variable.is_input);
        tensors.push(Tensor { name, elem: ElemType::F64, shape, span, is_input });
    }
    for (name, span) in program.elements.iter().flat_map(|elements| &elements.names) {
        maker.variable(*name, *span)?;
    }
    let (mut statements, mut faults) = (Vec::new(), Vec::new());
    let mut assigned = vec![false; tensors.len()];
    for (name, span, value) in &program.statements {
        let target = maker.variable(*name, *span)?;
        maker.names(value)?;
        let made = maker.statement(target, *span, value);
        match made {
            Ok(statement) => statements.push(statement),
            Err(fault) => faults.push(*fault),
        }
        let mut missing = None;
        each_name(value, &mut |name, span| {
            let at = program.variables.iter().position(|variable| variable.name == name);
            if let Some(at) = at.filter(|at| !assigned[*at]) {
                missing = missing.or((!tensors[at].is_input).then_some((at, span)));
            }
        });
        match missing {
            Some((at, _)) if !is_marked => tensors[at].is_input = true,
            Some((at, span)) => {
                let text = format!("`{}` is read before anything is assigned to it", tensors[at].name);
                let error = Diagnostic::error(Code::E0212, span, text).label("it has no value here");
                let error = error.also(tensors[at].span, "not declared as an input");
                faults.push(Fault::of(error, "CFDlang reads what the memory holds"));
            }
            None => {}
        }
        assigned[target] = true;
    }
    let is_output = |at: usize| assigned[at] && (program.variables[at].is_output || !is_marked);
    let outputs: Vec<usize> = (0..tensors.len()).filter(|at| is_output(*at)).collect();
    let unwritten = outputs.is_empty().then(|| "it has no output".to_owned());
    let span = program.statements.first().map(|(_, span, _)| *span);
    Ok(Kernel {
        name: Name::new(name),
        language: Language::Cfdlang,
        span: span.or(program.variables.first().map(|variable| variable.span)).unwrap_or_default(),
        sizes: Vec::new(),
        facts: Vec::new(),
        tensors,
        statements,
        outputs,
        faults,
        notes: Vec::new(),
        unwritten,
    })
}

fn each_name(ex: &Ex, visit: &mut impl FnMut(Name, Span)) {
    match ex {
        Ex::Name(name, span) => visit(*name, *span),
        Ex::Int(..) => {}
        Ex::Paren(inside) => each_name(inside, visit),
        Ex::Stack(parts, _) => parts.iter().for_each(|part| each_name(part, visit)),
        Ex::Binary(_, a, b, _) => {
            each_name(a, visit);
            each_name(b, visit);
        }
    }
}

/// What does not fit.
type Typed<T> = Result<T, Box<Fault>>;

struct Maker<'a> {
    program: &'a Program,
    /// How many indices were made.
    index: u64,
    /// The index of the element, where there are elements.
    current: Option<Name>,
    problem: Option<Span>,
}

impl Maker<'_> {
    fn variable(&self, name: Name, span: Span) -> Read<usize> {
        let found = self.program.variables.iter().position(|variable| variable.name == name);
        found.ok_or_else(|| undeclared(span, name, "declare it above: `var x : [3 4]`"))
    }

    /// Every name is declared.
    fn names(&self, ex: &Ex) -> Read<()> {
        let mut missing = None;
        each_name(ex, &mut |name, span| missing = missing.take().or(self.variable(name, span).err()));
        missing.map_or(Ok(()), Err)
    }

    fn is_repeated(&self, name: Name) -> Option<&Elements> {
        self.program.elements.as_ref().filter(|elements| elements.names.iter().any(|(other, _)| *other == name))
    }

    fn fresh(&mut self, base: &str) -> Name {
        let mut count = self.index;
        let taken = |name: Name| self.program.variables.iter().any(|variable| variable.name == name);
        let name = Name::numbered(base, &mut count, taken);
        self.index = count;
        name
    }

    fn statement(&mut self, target: usize, span: Span, value: &Ex) -> Typed<Statement> {
        let variable = &self.program.variables[target];
        let found = self.shape(value)?;
        if found != variable.shape {
            let text = format!("a value of shape {} is assigned to `{}`", shown(&found), variable.name);
            let error = Diagnostic::error(Code::E1002, span, text);
            let error = error.label(format!("its shape is {}", shown(&variable.shape)));
            let mut fault = Fault::of(error.also(variable.span, "declared here").note(READING), READING);
            (fault.declared, fault.used) = (shown(&variable.shape), shown(&found));
            return Err(Box::new(fault));
        }
        self.index = 0;
        let mut ranges: Vec<Range> = variable.shape.iter().map(|size| Range::up_to(self.fresh("i"), *size)).collect();
        let at: Vec<Index> = ranges.iter().map(|range| Index::Name(range.name)).collect();
        self.current = None;
        if let Some(elements) = self.is_repeated(variable.name) {
            let (count, place) = (elements.count, if elements.is_first { 0 } else { ranges.len() });
            let element = self.fresh("e");
            ranges.insert(place, Range::up_to(element, count));
            self.current = Some(element);
        }
        self.problem = None;
        let body = self.value(value, &at);
        if let Some(read) = self.problem {
            let text = format!("`{}` has no elements, and is computed from one that has", variable.name);
            let error = Diagnostic::error(Code::E1002, read, text).label("this tensor has an element dimension");
            let error = error.also(variable.span, "this one has none").help("name it in `elem`, too");
            return Err(Box::new(Fault::of(error, "CFDlang runs the statement for every element, and keeps the last")));
        }
        Ok(Statement { target, span, ranges, effect: Effect::Define, body, agreements: Vec::new() })
    }

    fn wrong<T>(&self, ex: &Ex, message: String) -> Typed<T> {
        let error = Diagnostic::error(Code::E1002, ex.span(), message).label("here").note(READING);
        Err(Box::new(Fault::of(error, READING)))
    }

    /// The shape of a value for one element.
    fn shape(&self, ex: &Ex) -> Typed<Vec<i64>> {
        match ex {
            Ex::Name(name, _) => {
                let found = self.program.variables.iter().find(|variable| variable.name == *name);
                Ok(found.map(|variable| variable.shape.clone()).unwrap_or_default())
            }
            Ex::Int(..) => Ok(Vec::new()),
            Ex::Paren(inside) => self.shape(inside),
            Ex::Stack(parts, _) => {
                let Some((first, others)) = parts.split_first() else {
                    return self.wrong(ex, "a stack of nothing".into());
                };
                let mut shape = self.shape(first)?;
                for other in others {
                    let found = self.shape(other)?;
                    if found != shape {
                        let text = format!("the parts of a stack have shapes {} and {}", shown(&shape), shown(&found));
                        return self.wrong(other, text);
                    }
                }
                shape.insert(0, parts.len() as i64);
                Ok(shape)
            }
            Ex::Binary(sign, a, b, _) => {
                let left = self.shape(a)?;
                match sign {
                    Sign::Contraction => self.contracted(ex, left, b),
                    Sign::Transposition => self.transposed(ex, left, b),
                    Sign::Product => {
                        let right = self.shape(b)?;
                        match left.is_empty() || right.is_empty() {
                            true => self.wrong(ex, "an outer product with a scalar".into()),
                            false => Ok([left, right].concat()),
                        }
                    }
                    Sign::Entrywise(op) => {
                        let right = self.shape(b)?;
                        match (op, left.is_empty(), right.is_empty()) {
                            (Op::Mul, true, _) => Ok(right),
                            (Op::Div, _, true) => Ok(left),
                            _ if left == right => Ok(left),
                            _ => {
                                let text = format!("operands of shapes {} and {}", shown(&left), shown(&right));
                                self.wrong(ex, text)
                            }
                        }
                    }
                }
            }
        }
    }

    fn contracted(&self, ex: &Ex, shape: Vec<i64>, right: &Ex) -> Typed<Vec<i64>> {
        let Some(lists) = right.lists() else {
            let other = self.shape(right)?;
            return match (shape.split_last(), other.split_first()) {
                (Some((m, left)), Some((n, right))) if m == n => Ok([left, right].concat()),
                (Some((m, _)), Some((n, _))) => {
                    self.wrong(ex, format!("the last dimension has {m} elements, and the first of the other {n}"))
                }
                _ => self.wrong(ex, "a contraction with a scalar".into()),
            };
        };
        if lists.iter().all(Vec::is_empty) {
            return self.wrong(ex, "a contraction over no dimensions".into());
        }
        let mut taken: Vec<i64> = Vec::new();
        for list in &lists {
            for position in list {
                let size = usize::try_from(*position).ok().and_then(|at| shape.get(at));
                let first = list.first().and_then(|first| shape.get(usize::try_from(*first).ok()?));
                match size {
                    None => {
                        let text = format!("there is no dimension {position}: {} are counted from 0", shape.len());
                        return self.wrong(ex, text);
                    }
                    Some(_) if taken.contains(position) => {
                        return self.wrong(ex, format!("dimension {position} is contracted twice"));
                    }
                    Some(size) if Some(size) != first => {
                        let (a, b) = (list.first().copied().unwrap_or_default(), first.copied().unwrap_or_default());
                        let text = format!("dimension {a} has {b} elements, and dimension {position} has {size}");
                        return self.wrong(ex, text);
                    }
                    Some(_) => taken.push(*position),
                }
            }
        }
        Ok((0..).zip(&shape).filter(|(at, _)| !taken.contains(at)).map(|(_, size)| *size).collect())
    }

    fn transposed(&self, ex: &Ex, mut shape: Vec<i64>, right: &Ex) -> Typed<Vec<i64>> {
        let Some(pairs) = right.lists().filter(|pairs| !pairs.is_empty()) else {
            return self.wrong(ex, "a transposition without pairs of dimensions, as in `^ [[0 1]]`".into());
        };
        for pair in pairs {
            match pair[..] {
                [a, b] if a == b => return self.wrong(ex, format!("dimension {a} is exchanged with itself")),
                [a, b] if (0..shape.len() as i64).contains(&a) && (0..shape.len() as i64).contains(&b) => {
                    shape.swap(a as usize, b as usize);
                }
                [..] => {
                    let text = format!("{pair:?} are not two of the {} dimensions, counted from 0", shape.len());
                    return self.wrong(ex, text);
                }
            }
        }
        Ok(shape)
    }

    /// The element of a value at indices; types fit.
    fn value(&mut self, ex: &Ex, at: &[Index]) -> Value {
        match ex {
            Ex::Int(value, _) => Value::Number(*value as f64),
            Ex::Paren(inside) => self.value(inside, at),
            Ex::Name(name, span) => {
                let tensor = self.program.variables.iter().position(|variable| variable.name == *name).unwrap_or(0);
                let mut at = at.to_vec();
                if let Some(elements) = self.is_repeated(*name) {
                    let place = if elements.is_first { 0 } else { at.len() };
                    match self.current {
                        Some(element) => at.insert(place, Index::Name(element)),
                        None => self.problem = Some(*span),
                    }
                }
                Value::Read(KernelRead { tensor, at, span: *span, reading: READING })
            }
            Ex::Stack(parts, _) => {
                let (which, rest) = at.split_first().unwrap_or((&Index::Num(0), &[]));
                let mut parts: Vec<Value> = parts.iter().map(|part| self.value(part, rest)).collect();
                let mut value = parts.pop().unwrap_or(Value::Number(0.0));
                for (place, part) in parts.into_iter().enumerate().rev() {
                    let condition = Condition::compare(Comparison::Equal, which.clone(), place as i64);
                    value = Value::Choose { condition, is_lazy: true, yes: Box::new(part), no: Box::new(value) };
                }
                value
            }
            Ex::Binary(Sign::Entrywise(op), a, b, _) => {
                let scalar = |shape: Typed<Vec<i64>>| shape.is_ok_and(|shape| shape.is_empty());
                let (is_left, is_right) = (scalar(self.shape(a)), scalar(self.shape(b)));
                let a = self.value(a, if is_left { &[] } else { at });
                let b = self.value(b, if is_right { &[] } else { at });
                Value::binary(*op, a, b)
            }
            Ex::Binary(Sign::Product, a, b, _) => {
                let rank = self.shape(a).map_or(0, |shape| shape.len()).min(at.len());
                let (left, right) = at.split_at(rank);
                Value::binary(Op::Mul, self.value(a, left), self.value(b, right))
            }
            Ex::Binary(Sign::Transposition, a, b, _) => {
                let mut at = at.to_vec();
                // The last exchange was made of the result of the others.
                for pair in b.lists().unwrap_or_default().into_iter().rev() {
                    if let [a, b] = pair[..] {
                        at.swap(a as usize, b as usize);
                    }
                }
                self.value(a, &at)
            }
            Ex::Binary(Sign::Contraction, a, b, _) => self.contraction(a, b, at),
        }
    }

    fn contraction(&mut self, a: &Ex, b: &Ex, at: &[Index]) -> Value {
        let shape = self.shape(a).unwrap_or_default();
        let Some(lists) = b.lists() else {
            let index = self.fresh("k");
            let size = shape.last().copied().unwrap_or(0);
            let (left, right) = at.split_at((shape.len().saturating_sub(1)).min(at.len()));
            let left = [left, &[Index::Name(index)]].concat();
            let right = [&[Index::Name(index)], right].concat();
            let product = Value::binary(Op::Mul, self.value(a, &left), self.value(b, &right));
            return Value::Reduce(Reduction::Sum, vec![Range::up_to(index, size)], Box::new(product));
        };
        let mut ranges = Vec::new();
        let mut places: Vec<Option<Index>> = vec![None; shape.len()];
        for list in lists.iter().filter(|list| !list.is_empty()) {
            let index = self.fresh("k");
            let first = list.first().map_or(0, |first| *first as usize);
            ranges.push(Range::up_to(index, shape.get(first).copied().unwrap_or(0)));
            for position in list {
                places[*position as usize] = Some(Index::Name(index));
            }
        }
        let mut kept = at.iter();
        let at: Vec<Index> = places.into_iter().filter_map(|place| place.or_else(|| kept.next().cloned())).collect();
        let body = self.value(a, &at);
        Value::Reduce(Reduction::Sum, ranges, Box::new(body))
    }
}

fn shown(shape: &[i64]) -> String {
    let sizes: Vec<String> = shape.iter().map(i64::to_string).collect();
    format!("[{}]", sizes.join(" "))
}
