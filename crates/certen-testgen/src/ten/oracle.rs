//! What a generated program means, element by element at given sizes, and whether it goes wrong there.
//!
//! Everything is computed eagerly but the branches of conditions on indices, as the language says. Every access, shape,
//! stated type and `where` clause is looked at when it is met; nothing of the code under test takes part. Values are
//! whole numbers (truth values are 0 and 1) that both f64 and i64 represent, so every order of computation gives the same.

mod calls;
mod index;
mod loops;
mod prelude;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use super::tree::{
    Arg, Block, Cond, Elem, Expr, Function, Iterate, Ix, IxVec, Part, Program, Sel, Slot, Type, TypeDim, WithOp,
};
use crate::EXACT;

/// Why there is no value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// An access outside its tensor, or a minimum of nothing.
    OutOfBounds(String),
    /// A shape that is not what it must be, or a `where` clause that does not hold.
    Type(String),
    /// It takes too long, or a number is too large.
    TooMuch,
}

/// A tensor.
#[derive(Clone, PartialEq, Debug)]
pub struct Value {
    /// Its sizes.
    pub shape: Vec<i64>,
    /// Its elements, row by row.
    pub data: Vec<f64>,
}

pub(super) type Outcome<T> = Result<T, Trouble>;

/// How many elements a run may compute.
const STEPS: u64 = 60_000;

impl Value {
    /// A scalar.
    pub fn scalar(value: f64) -> Value {
        Value { shape: Vec::new(), data: vec![value] }
    }

    /// The sub-tensor at some first indices.
    pub(super) fn at(&self, index: &[i64]) -> Outcome<Value> {
        let inside =
            index.len() <= self.shape.len() && index.iter().zip(&self.shape).all(|(i, size)| 0 <= *i && i < size);
        if !inside {
            return Err(Trouble::OutOfBounds(format!("{index:?} of {:?}", self.shape)));
        }
        let shape = self.shape[index.len()..].to_vec();
        let count = shape.iter().product::<i64>() as usize;
        let place = index.iter().zip(&self.shape).fold(0, |place, (i, size)| place * size + i) as usize;
        Ok(Value { shape, data: self.data[place * count..(place + 1) * count].to_vec() })
    }

    /// A tensor by its elements.
    pub(super) fn build(shape: Vec<i64>, mut element: impl FnMut(&[i64]) -> Outcome<f64>) -> Outcome<Value> {
        let mut data = Vec::new();
        if shape.iter().any(|size| *size < 0) {
            return wrong("a size below 0");
        }
        if shape.iter().product::<i64>() > STEPS as i64 {
            return Err(Trouble::TooMuch);
        }
        for index in indices(&shape) {
            data.push(element(&index)?);
        }
        Ok(Value { shape, data })
    }

    /// The element at an index.
    pub(super) fn get(&self, index: &[i64]) -> Outcome<f64> {
        let value = self.at(index)?;
        if value.shape.is_empty() { Ok(value.data[0]) } else { Err(Trouble::Type("an element".into())) }
    }
}

/// All indices of a shape, in order; none if a size is negative.
pub(super) fn indices(shape: &[i64]) -> Vec<Vec<i64>> {
    let mut all = vec![Vec::new()];
    for size in shape {
        all = all
            .into_iter()
            .flat_map(|index: Vec<i64>| (0..*size).map(move |i| [index.as_slice(), &[i]].concat()))
            .collect();
    }
    all
}

/// The elements of a partition, by their indices.
type Elements = HashMap<Vec<i64>, Value>;

/// What names stand for.
#[derive(Clone, Default)]
struct Scope {
    indices: HashMap<String, i64>,
    vectors: HashMap<String, Vec<i64>>,
    tensors: HashMap<String, Rc<Value>>,
}

/// Runs a program.
pub struct Oracle<'p> {
    program: &'p Program,
    steps: u64,
}

impl Program {
    /// The results of `main`, given its tensors and its `size` parameters by name.
    ///
    /// # Errors
    /// If the program goes wrong with these.
    pub fn run(&self, tensors: &BTreeMap<String, Value>, sizes: &BTreeMap<String, i64>) -> Outcome<Vec<Value>> {
        let Some(main) = self.functions.last() else { return Err(Trouble::Type("no function".into())) };
        let mut args = Vec::new();
        for (name, ty) in &main.params {
            args.push(match ty.elem {
                Elem::Size => Given::Ix(sizes.get(name).copied().ok_or(Trouble::Type(name.clone()))?),
                _ => Given::Data(tensors.get(name).cloned().ok_or(Trouble::Type(name.clone()))?),
            });
        }
        Oracle { program: self, steps: 0 }.apply(main, args)
    }
}

/// An argument.
#[derive(Clone)]
pub(super) enum Given {
    Data(Value),
    Ix(i64),
    Vec(Vec<i64>),
}

fn wrong<T>(text: impl Into<String>) -> Outcome<T> {
    Err(Trouble::Type(text.into()))
}

impl Oracle<'_> {
    fn step(&mut self, count: usize) -> Outcome<()> {
        self.steps += 1 + count as u64;
        if self.steps > STEPS { Err(Trouble::TooMuch) } else { Ok(()) }
    }

    // The index level

    fn apply(&mut self, function: &Function, args: Vec<Given>) -> Outcome<Vec<Value>> {
        if args.len() != function.params.len() {
            return wrong(format!("arguments of {}", function.name));
        }
        let mut scope = Scope::default();
        self.bind(function, &args, &mut scope)?;
        for ((name, _), arg) in function.params.iter().zip(args) {
            match arg {
                Given::Data(value) => drop(scope.tensors.insert(name.clone(), Rc::new(value))),
                Given::Ix(value) => drop(scope.indices.insert(name.clone(), value)),
                Given::Vec(parts) => drop(scope.vectors.insert(name.clone(), parts)),
            }
        }
        for clause in &function.wheres {
            if !self.cond(&scope, clause)? {
                return wrong(format!("where of {}", function.name));
            }
        }
        for ((name, ty), _) in function.params.iter().zip(0..) {
            if let Some(value) = scope.tensors.get(name).cloned() {
                self.must_have(&scope, &value, ty)?;
            }
        }
        let values = self.block(&scope, &function.body)?;
        if values.len() != function.results.len() {
            return wrong("results");
        }
        if function.stated {
            for (value, (_, ty)) in values.iter().zip(&function.results) {
                self.must_have(&scope, value, ty)?;
            }
        }
        Ok(values)
    }

    fn block(&mut self, scope: &Scope, block: &Block) -> Outcome<Vec<Value>> {
        let mut scope = scope.clone();
        for binding in &block.lets {
            let values = self.several(&scope, &binding.value)?;
            if values.len() != binding.names.len() {
                return wrong("names and values");
            }
            for (name, value) in binding.names.iter().zip(values) {
                if let Some(ty) = &binding.ty {
                    self.must_have(&scope, &value, ty)?;
                }
                scope.tensors.insert(name.clone(), Rc::new(value));
            }
        }
        block.results.iter().map(|e| self.expr(&scope, e)).collect()
    }

    fn several(&mut self, scope: &Scope, e: &Expr) -> Outcome<Vec<Value>> {
        match e {
            Expr::Call(name, args) if self.program.functions.iter().any(|f| f.name == *name) => {
                let mut given = Vec::new();
                for arg in args {
                    given.push(self.argument(scope, arg)?);
                }
                match self.program.functions.iter().find(|f| f.name == *name) {
                    Some(function) => self.apply(function, given),
                    None => wrong("no function"),
                }
            }
            Expr::Iterate(iterate) => self.iterate(scope, iterate),
            e => Ok(vec![self.expr(scope, e)?]),
        }
    }

    fn argument(&mut self, scope: &Scope, arg: &Arg) -> Outcome<Given> {
        Ok(match arg {
            Arg::Data(e) => Given::Data(self.expr(scope, e)?),
            Arg::Ix(i) => Given::Ix(self.ix(scope, i)?),
            Arg::Vec(v) => Given::Vec(self.vector(scope, v)?),
        })
    }

    fn iterate(&mut self, scope: &Scope, iterate: &Iterate) -> Outcome<Vec<Value>> {
        let mut states = Vec::new();
        for (_, first) in &iterate.states {
            states.push(self.expr(scope, first)?);
        }
        for step in 0..self.ix(scope, &iterate.times)? {
            let mut scope = scope.clone();
            if let Some(name) = &iterate.step {
                scope.indices.insert(name.clone(), step);
            }
            for ((name, _), value) in iterate.states.iter().zip(&states) {
                scope.tensors.insert(name.clone(), Rc::new(value.clone()));
            }
            let next = self.block(&scope, &iterate.body)?;
            if next.len() != states.len() || next.iter().zip(&states).any(|(a, b)| a.shape != b.shape) {
                return wrong("states");
            }
            states = next;
        }
        Ok(states)
    }

    // Expressions

    fn expr(&mut self, scope: &Scope, e: &Expr) -> Outcome<Value> {
        let value = self.value(scope, e)?;
        self.step(value.data.len())?;
        if value.data.iter().any(|x| x.abs() > EXACT / 1024.0) {
            return Err(Trouble::TooMuch);
        }
        Ok(value)
    }

    fn value(&mut self, scope: &Scope, e: &Expr) -> Outcome<Value> {
        // One arm for each form of expression, as in the language: a table.
        Ok(match e {
            Expr::Var(name) => match scope.tensors.get(name) {
                Some(value) => (**value).clone(),
                None => return wrong(format!("no {name}")),
            },
            Expr::Num(value, _) => Value::scalar(*value as f64),
            Expr::Bool(value) => Value::scalar(f64::from(u8::from(*value))),
            Expr::Index(i, _) => Value::scalar(self.ix(scope, i)? as f64),
            Expr::Cond(c) => Value::scalar(f64::from(u8::from(self.cond(scope, c)?))),
            Expr::Stack(parts) => {
                let mut all = Vec::new();
                for part in parts {
                    all.push(self.expr(scope, part)?);
                }
                stack(all)?
            }
            Expr::Unary(op, a) => {
                let a = self.expr(scope, a)?;
                let f = |x: &f64| match *op {
                    "-" => -x,
                    "!" => 1.0 - x,
                    "abs" => x.abs(),
                    _ => *x,
                };
                match *op {
                    "transpose" => prelude::transposed(&a)?,
                    "flatten" => prelude::flattened(&a)?,
                    _ => Value { data: a.data.iter().map(f).collect(), shape: a.shape },
                }
            }
            Expr::Binary(op, a, b) => {
                let (a, b) = (self.expr(scope, a)?, self.expr(scope, b)?);
                match *op {
                    "++" => prelude::concatenated(0, &a, &b)?,
                    "@" => prelude::product(&a, &b)?,
                    op => entrywise(&a, &b, |x, y| combine(op, x, y))?,
                }
            }
            Expr::Select(a, sels) => {
                let a = self.expr(scope, a)?;
                self.select(scope, &a, sels)?
            }
            Expr::Comprehension(parts) => self.comprehension(scope, parts)?,
            Expr::With(parts, op) => self.with(scope, parts, op)?,
            Expr::If(c, a, b) => {
                let chosen = if self.cond(scope, c)? { a } else { b };
                self.expr(scope, chosen)?
            }
            Expr::Guard(c, a) => match self.cond(scope, c)? {
                true => self.expr(scope, a)?,
                false => {
                    let shape = self.shape_of(scope, a)?;
                    let count = shape.iter().product::<i64>() as usize;
                    Value { shape, data: vec![0.0; count] }
                }
            },
            Expr::IfData(c, a, b) | Expr::Choose(c, a, b) => {
                let (c, a, b) = (self.expr(scope, c)?, self.expr(scope, a)?, self.expr(scope, b)?);
                let shapes: Vec<&Value> = [&a, &b, &c].into_iter().filter(|v| !v.shape.is_empty()).collect();
                if shapes.windows(2).any(|pair| pair[0].shape != pair[1].shape) {
                    return wrong("shapes of a choice");
                }
                let shape = shapes.first().map_or(Vec::new(), |v| v.shape.clone());
                let at = |v: &Value, n: usize| if v.shape.is_empty() { v.data[0] } else { v.data[n] };
                let count = shape.iter().product::<i64>() as usize;
                let data = (0..count).map(|n| if at(&c, n) != 0.0 { at(&a, n) } else { at(&b, n) }).collect();
                Value { shape, data }
            }
            Expr::Cast(elem, a) => {
                let a = self.expr(scope, a)?;
                let f = |x: &f64| if *elem == Elem::Bool { f64::from(u8::from(*x != 0.0)) } else { *x };
                Value { data: a.data.iter().map(f).collect(), shape: a.shape }
            }
            Expr::Reduce(op, axes, a) => {
                let a = self.expr(scope, a)?;
                let rank = a.shape.len() as i64;
                let axes: Vec<i64> = match axes {
                    None => (0..rank).collect(),
                    Some(axes) => axes.iter().map(|axis| if *axis < 0 { axis + rank } else { *axis }).collect(),
                };
                reduce(op, &axes, &a)?
            }
            Expr::Iterate(iterate) => match self.iterate(scope, iterate)?.as_slice() {
                [one] => one.clone(),
                _ => return wrong("several states"),
            },
            Expr::Shift(name, k, a) => {
                let (k, a) = (self.ix(scope, k)?, self.expr(scope, a)?);
                prelude::shifted(name, k, &a)?
            }
            Expr::Split(k, a) => {
                let a = self.expr(scope, a)?;
                prelude::split(*k, &a)?
            }
            Expr::Reshape(shape, a) => {
                let (shape, a) = (self.vector(scope, shape)?, self.expr(scope, a)?);
                if shape.iter().any(|size| *size < 0) || shape.iter().product::<i64>() != a.data.len() as i64 {
                    return wrong("reshape");
                }
                Value { shape, data: a.data }
            }
            Expr::Einsum(spec, args) => {
                let mut all = Vec::new();
                for arg in args {
                    all.push(self.expr(scope, arg)?);
                }
                prelude::einsum(spec, &all)?
            }
            Expr::Call(name, args) => {
                if self.program.functions.iter().any(|f| f.name == *name) {
                    return match self.several(scope, e)?.as_slice() {
                        [one] => Ok(one.clone()),
                        _ => wrong("several results"),
                    };
                }
                let mut given = Vec::new();
                for arg in args {
                    given.push(self.argument(scope, arg)?);
                }
                prelude::call(name, &given)?
            }
            Expr::Block(block) => match self.block(scope, block)?.as_slice() {
                [one] => one.clone(),
                _ => return wrong("several results"),
            },
        })
    }

    /// The shape of an expression that may not have a value: only accesses can be without one.
    fn shape_of(&mut self, scope: &Scope, e: &Expr) -> Outcome<Vec<i64>> {
        match e {
            Expr::Select(a, sels) if sels.iter().all(|sel| matches!(sel, Sel::At(_))) => {
                let a = self.expr(scope, a)?;
                Ok(a.shape.get(sels.len()..).unwrap_or_default().to_vec())
            }
            e => Ok(self.expr(scope, e)?.shape),
        }
    }

    fn select(&mut self, scope: &Scope, a: &Value, sels: &[Sel]) -> Outcome<Value> {
        // For each dimension: one index, or the first index and the length of a part.
        let mut taken: Vec<Result<i64, (i64, i64)>> = Vec::new();
        let mut rest = None;
        let mut slices = 0;
        for sel in sels {
            let size = a.shape.get(taken.len()).copied().unwrap_or(0);
            match sel {
                Sel::At(i) => taken.push(Ok(self.ix(scope, i)?)),
                Sel::Vec(v) => taken.extend(self.vector(scope, v)?.into_iter().map(Ok)),
                Sel::Dot => taken.push(Err((0, -1))),
                Sel::Dots => {
                    if rest.replace(taken.len()).is_some() {
                        return wrong("two `...`");
                    }
                }
                Sel::Slice(from, to) => {
                    slices += 1;
                    let from = from.as_ref().map_or(Ok(0), |from| self.ix(scope, from))?;
                    let to = to.as_ref().map_or(Ok(size), |to| self.ix(scope, to))?;
                    taken.push(Err((from, (to - from).max(0))));
                }
            }
        }
        if rest.is_some() && slices > 0 {
            return wrong("not generated");
        }
        let Some(missing) = a.shape.len().checked_sub(taken.len()) else { return wrong("too many indices") };
        if let Some(at) = rest {
            taken.splice(at..at, (0..missing).map(|_| Err((0, -1))));
        }
        taken.resize(a.shape.len(), Err((0, -1)));
        let whole = |(take, size): (&Result<i64, (i64, i64)>, &i64)| match take {
            Err((from, -1)) => Err((*from, *size)),
            other => *other,
        };
        let taken: Vec<_> = taken.iter().zip(&a.shape).map(whole).collect();
        let shape: Vec<i64> = taken.iter().filter_map(|take| take.err().map(|(_, length)| length)).collect();
        let result = Value::build(shape, |index| {
            let mut index = index.iter();
            let place = |take: &Result<i64, (i64, i64)>| match take {
                Ok(i) => *i,
                Err((from, _)) => from + index.next().copied().unwrap_or(0),
            };
            a.get(&taken.iter().map(place).collect::<Vec<_>>())
        })?;
        // Indices must be inside their dimension even where another dimension is empty.
        for (take, size) in taken.iter().zip(&a.shape) {
            if let Ok(i) = take
                && !(0..*size).contains(i)
                && result.shape.iter().all(|size| *size > 0)
            {
                return Err(Trouble::OutOfBounds(format!("{i} of {size}")));
            }
        }
        Ok(result)
    }
}

fn filled(
    frame: &[i64],
    elements: &BTreeMap<Vec<i64>, Value>,
    cell: &[i64],
    default: impl Fn(&[i64], &[i64]) -> Outcome<f64>,
) -> Outcome<Value> {
    for (index, value) in elements {
        if index.len() != frame.len() || value.shape != cell {
            return wrong("cells of a with-loop");
        }
        if !index.iter().zip(frame).all(|(i, size)| 0 <= *i && i < size) {
            return Err(Trouble::OutOfBounds(format!("a generator at {index:?} of {frame:?}")));
        }
    }
    Value::build([frame, cell].concat(), |index| {
        let (outer, inner) = index.split_at(frame.len());
        match elements.get(outer) {
            Some(value) => value.get(inner),
            None => default(outer, inner),
        }
    })
}

fn stack(parts: Vec<Value>) -> Outcome<Value> {
    let Some(first) = parts.first() else { return wrong("an empty literal") };
    if parts.iter().any(|part| part.shape != first.shape) {
        return wrong("parts of a literal");
    }
    let shape = [&[parts.len() as i64], first.shape.as_slice()].concat();
    Ok(Value { shape, data: parts.into_iter().flat_map(|part| part.data).collect() })
}

fn combine(op: &str, x: f64, y: f64) -> f64 {
    let truth = |value: bool| f64::from(u8::from(value));
    match op {
        "+" => x + y,
        "-" => x - y,
        "*" => x * y,
        "min" => x.min(y),
        "max" => x.max(y),
        "mod" => x.rem_euclid(y),
        "floor_div" => (x / y).floor(),
        "<" => truth(x < y),
        "<=" => truth(x <= y),
        ">" => truth(x > y),
        ">=" => truth(x >= y),
        "==" => truth(x == y),
        "!=" => truth(x != y),
        "&&" => truth(x != 0.0 && y != 0.0),
        _ => truth(x != 0.0 || y != 0.0),
    }
}

pub(super) fn entrywise(a: &Value, b: &Value, f: impl Fn(f64, f64) -> f64) -> Outcome<Value> {
    if a.shape.is_empty() {
        return Ok(Value { shape: b.shape.clone(), data: b.data.iter().map(|y| f(a.data[0], *y)).collect() });
    }
    if b.shape.is_empty() {
        return Ok(Value { shape: a.shape.clone(), data: a.data.iter().map(|x| f(*x, b.data[0])).collect() });
    }
    if a.shape != b.shape {
        return wrong(format!("{:?} and {:?}", a.shape, b.shape));
    }
    Ok(Value { shape: a.shape.clone(), data: a.data.iter().zip(&b.data).map(|(x, y)| f(*x, *y)).collect() })
}

pub(super) fn reduce(op: &str, axes: &[i64], a: &Value) -> Outcome<Value> {
    let rank = a.shape.len() as i64;
    if axes.iter().any(|axis| !(0..rank).contains(axis)) {
        return wrong("axes");
    }
    let (start, name) = match op {
        "sum" => (Some(0.0), "+"),
        "prod" => (Some(1.0), "*"),
        "all" => (Some(1.0), "&&"),
        "any" => (Some(0.0), "||"),
        op => (None, op),
    };
    let size = |axis: &i64| a.shape[*axis as usize];
    let kept: Vec<i64> = (0..rank).filter(|axis| !axes.contains(axis)).collect();
    let inner: Vec<i64> = axes.iter().map(size).collect();
    if start.is_none() && inner.contains(&0) {
        return Err(Trouble::OutOfBounds("a minimum of nothing".into()));
    }
    Value::build(kept.iter().map(size).collect(), |outer| {
        let mut so_far = start;
        for index in indices(&inner) {
            let mut place = vec![0; a.shape.len()];
            kept.iter().zip(outer).for_each(|(axis, i)| place[*axis as usize] = *i);
            axes.iter().zip(&index).for_each(|(axis, i)| place[*axis as usize] = *i);
            let next = a.get(&place)?;
            so_far = Some(so_far.map_or(next, |so_far| combine(name, so_far, next)));
        }
        Ok(so_far.unwrap_or(0.0))
    })
}
