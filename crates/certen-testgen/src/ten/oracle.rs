//! What a generated program means, element by element at given sizes, and whether it goes wrong there.
//!
//! Everything is computed eagerly but the branches of conditions on indices, as the language says. Every access, shape,
//! stated type and `where` clause is looked at when it is met; nothing of the code under test takes part. Values are
//! whole numbers (truth values are 0 and 1) that both f64 and i64 represent, so every order of computation gives the same.

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

    fn ix(&mut self, scope: &Scope, e: &Ix) -> Outcome<i64> {
        Ok(match e {
            Ix::Lit(value) => *value,
            Ix::Name(name) => *scope.indices.get(name).ok_or(Trouble::Type(format!("no {name}")))?,
            Ix::Add(a, b) => self.ix(scope, a)? + self.ix(scope, b)?,
            Ix::Sub(a, b) => self.ix(scope, a)? - self.ix(scope, b)?,
            Ix::Mul(a, b) => self.ix(scope, a)? * self.ix(scope, b)?,
            Ix::Min(a, b) => self.ix(scope, a)?.min(self.ix(scope, b)?),
            Ix::Max(a, b) => self.ix(scope, a)?.max(self.ix(scope, b)?),
            Ix::FloorDiv(a, k) => self.ix(scope, a)?.div_euclid(*k),
            Ix::Mod(a, k) => self.ix(scope, a)?.rem_euclid(*k),
            Ix::If(c, a, b) => {
                let chosen = if self.cond(scope, c)? { a } else { b };
                self.ix(scope, chosen)?
            }
            Ix::Call(name, args) => {
                let mut given = Vec::new();
                for arg in args {
                    given.push(self.ix(scope, arg)?);
                }
                let known = self.program.index_functions.iter().find(|f| f.name == *name);
                let Some(function) = known.cloned().or_else(|| prelude::index_function(name)) else {
                    return wrong(format!("no {name}"));
                };
                let mut inner = Scope::default();
                inner.indices.extend(function.params.iter().cloned().zip(given));
                for clause in &function.wheres {
                    if !self.cond(&inner, clause)? {
                        return wrong(format!("where of {name}"));
                    }
                }
                self.ix(&inner, &function.body)?
            }
        })
    }

    fn cond(&mut self, scope: &Scope, c: &Cond) -> Outcome<bool> {
        let compare = |op: &str, a: i64, b: i64| match op {
            "<" => a < b,
            "<=" => a <= b,
            ">" => a > b,
            ">=" => a >= b,
            "==" => a == b,
            _ => a != b,
        };
        Ok(match c {
            Cond::Cmp(op, a, b) => compare(op, self.ix(scope, a)?, self.ix(scope, b)?),
            Cond::And(a, b) => self.cond(scope, a)? && self.cond(scope, b)?,
            Cond::Or(a, b) => self.cond(scope, a)? || self.cond(scope, b)?,
            Cond::Not(a) => !self.cond(scope, a)?,
            Cond::All(op, a, b) => {
                let (a, b) = self.pair(scope, a, b)?;
                a.iter().zip(&b).all(|(a, b)| compare(op, *a, *b))
            }
        })
    }

    /// Two vectors; one index is as long as the other.
    fn pair(&mut self, scope: &Scope, a: &IxVec, b: &IxVec) -> Outcome<(Vec<i64>, Vec<i64>)> {
        Ok(match (a, b) {
            (IxVec::One(a), b) => {
                let (a, b) = (self.ix(scope, a)?, self.vector(scope, b)?);
                (vec![a; b.len()], b)
            }
            (a, IxVec::One(b)) => {
                let (a, b) = (self.vector(scope, a)?, self.ix(scope, b)?);
                let length = a.len();
                (a, vec![b; length])
            }
            (a, b) => {
                let (a, b) = (self.vector(scope, a)?, self.vector(scope, b)?);
                if a.len() != b.len() {
                    return wrong("vectors of different lengths");
                }
                (a, b)
            }
        })
    }

    fn vector(&mut self, scope: &Scope, v: &IxVec) -> Outcome<Vec<i64>> {
        Ok(match v {
            IxVec::Name(name) => scope.vectors.get(name).cloned().ok_or(Trouble::Type(format!("no {name}")))?,
            IxVec::List(parts) => parts.iter().map(|part| self.ix(scope, part)).collect::<Outcome<_>>()?,
            IxVec::One(one) => vec![self.ix(scope, one)?],
            IxVec::Shape(name) => match scope.tensors.get(name) {
                Some(value) => value.shape.clone(),
                None => return wrong(format!("no {name}")),
            },
            IxVec::Op(op, a, b) => {
                let (a, b) = self.pair(scope, a, b)?;
                let one = |(a, b): (&i64, &i64)| match *op {
                    "+" => a + b,
                    "-" => a - b,
                    "*" => a * b,
                    "min" => *a.min(b),
                    _ => *a.max(b),
                };
                a.iter().zip(&b).map(one).collect()
            }
        })
    }

    // Functions

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

    /// Binds the sizes that the types of parameters name.
    fn bind(&mut self, function: &Function, args: &[Given], scope: &mut Scope) -> Outcome<()> {
        let mut lengths: HashMap<String, usize> = HashMap::new();
        for ((name, ty), arg) in function.params.iter().zip(args) {
            match (arg, ty.dims.as_slice()) {
                (Given::Ix(value), _) => drop(lengths.insert(name.clone(), usize::try_from(*value).unwrap_or(0))),
                (Given::Vec(parts), [TypeDim::Size(Ix::Name(d))]) => drop(lengths.insert(d.clone(), parts.len())),
                _ => {}
            }
        }
        for _ in 0..2 {
            for ((_, ty), arg) in function.params.iter().zip(args) {
                let Given::Data(value) = arg else { continue };
                let known = |dim: &TypeDim| match dim {
                    TypeDim::Size(_) | TypeDim::One => Some(1),
                    TypeDim::Rest(s) => lengths.get(s).copied(),
                    TypeDim::Ranked(d, _, s) => lengths.get(s).or(lengths.get(d)).copied(),
                    TypeDim::Many(_) => None,
                };
                let sum: usize = ty.dims.iter().filter_map(known).sum();
                let Some(rest) = value.shape.len().checked_sub(sum) else { return wrong("rank of an argument") };
                let open: Vec<TypeDim> = ty.dims.iter().filter(|dim| known(dim).is_none()).cloned().collect();
                match open.as_slice() {
                    [TypeDim::Rest(s)] => drop(lengths.insert(s.clone(), rest)),
                    [TypeDim::Ranked(d, _, s)] => {
                        lengths.insert(d.clone(), rest);
                        lengths.insert(s.clone(), rest);
                    }
                    [] if rest != 0 => return wrong("rank of an argument"),
                    _ => {}
                }
                for dim in &ty.dims {
                    if let TypeDim::Ranked(d, _, s) = dim
                        && let Some(length) = lengths.get(d).copied()
                    {
                        lengths.insert(s.clone(), length);
                    }
                }
            }
        }
        for ((_, ty), arg) in function.params.iter().zip(args) {
            let Given::Data(value) = arg else { continue };
            let mut at = 0;
            for dim in &ty.dims {
                match dim {
                    TypeDim::Size(Ix::Name(name)) => {
                        let size = value.shape.get(at).copied().unwrap_or(0);
                        scope.indices.entry(name.clone()).or_insert(size);
                        at += 1;
                    }
                    TypeDim::Size(_) | TypeDim::One => at += 1,
                    TypeDim::Rest(s) | TypeDim::Ranked(_, _, s) => {
                        let length = lengths.get(s).copied().unwrap_or(0);
                        let Some(sizes) = value.shape.get(at..at + length) else { return wrong("rank") };
                        scope.vectors.entry(s.clone()).or_insert_with(|| sizes.to_vec());
                        at += length;
                    }
                    TypeDim::Many(_) => at = value.shape.len(),
                }
            }
        }
        for (name, length) in lengths {
            if !scope.vectors.contains_key(&name) {
                scope.indices.entry(name).or_insert(length as i64);
            }
        }
        Ok(())
    }

    fn must_have(&mut self, scope: &Scope, value: &Value, ty: &Type) -> Outcome<()> {
        let mut at = 0;
        for dim in &ty.dims {
            let sizes = match dim {
                TypeDim::Size(size) => vec![self.ix(scope, size)?],
                TypeDim::Rest(s) | TypeDim::Ranked(_, _, s) => self.vector(scope, &IxVec::Name(s.clone()))?,
                TypeDim::One => value.shape.get(at).copied().into_iter().collect(),
                TypeDim::Many(_) => value.shape[at.min(value.shape.len())..].to_vec(),
            };
            if value.shape.get(at..at + sizes.len()) != Some(&sizes) {
                return wrong(format!("{:?} is not {:?}", value.shape, ty.dims));
            }
            at += sizes.len();
        }
        if at == value.shape.len() { Ok(()) } else { wrong("rank of a stated type") }
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

    /// The ranges of a pattern, and its names.
    fn ranges(&mut self, scope: &Scope, part: &Part) -> Outcome<Vec<(i64, i64)>> {
        let mut ranges = Vec::new();
        for slot in &part.slots {
            match slot {
                Slot::Index(_, (lower, _), (upper, _)) => ranges.push((self.ix(scope, lower)?, self.ix(scope, upper)?)),
                Slot::Rest(_, (lower, _), (upper, _)) => {
                    let (lower, upper) = self.pair(scope, lower, upper)?;
                    ranges.extend(lower.into_iter().zip(upper));
                }
                Slot::Dot | Slot::Dots => {}
            }
        }
        Ok(ranges)
    }

    /// The element of a partition at an index of its own.
    fn element(&mut self, scope: &Scope, part: &Part, index: &[i64]) -> Outcome<Value> {
        let mut scope = scope.clone();
        let singles = part.slots.iter().filter(|slot| matches!(slot, Slot::Index(..))).count();
        let mut at = 0;
        for slot in &part.slots {
            match slot {
                Slot::Index(name, ..) => {
                    scope.indices.insert(name.clone(), index[at]);
                    at += 1;
                }
                Slot::Rest(name, ..) => {
                    let own = index[at..at + index.len() - singles].to_vec();
                    for (place, i) in own.iter().enumerate() {
                        scope.indices.insert(format!("{name}[{place}]"), *i);
                    }
                    at += own.len();
                    scope.vectors.insert(name.clone(), own);
                }
                Slot::Dot | Slot::Dots => {}
            }
        }
        self.expr(&scope, &part.body)
    }

    /// For each dimension of a result: the index of the partition that it belongs to, or none for one of the body's.
    fn places(part: &Part, indices: usize, rank: usize) -> Vec<Option<usize>> {
        let singles = part.slots.iter().filter(|slot| matches!(slot, Slot::Index(..))).count();
        let dots = part.slots.iter().filter(|slot| matches!(slot, Slot::Dot)).count();
        let mut next = 0..indices;
        let mut places = Vec::new();
        for slot in &part.slots {
            match slot {
                Slot::Index(..) => places.push(next.next()),
                Slot::Rest(..) => places.extend(next.by_ref().take(indices - singles).map(Some)),
                Slot::Dot => places.push(None),
                Slot::Dots => places.extend(std::iter::repeat_n(None, rank.saturating_sub(indices + dots))),
            }
        }
        places.resize(rank.max(places.len()), None);
        places
    }

    fn comprehension(&mut self, scope: &Scope, parts: &[Part]) -> Outcome<Value> {
        let Some(last) = parts.last() else { return wrong("no partition") };
        let own = self.ranges(scope, last)?;
        let mut cell = None;
        let mut values: Vec<(&Part, usize, Elements)> = Vec::new();
        let rank = own.len() + self.vector(scope, &last.cell)?.len();
        for part in parts {
            let ranges = self.ranges(scope, part)?;
            let mut elements = Elements::new();
            let lengths: Vec<i64> = ranges.iter().map(|(lower, upper)| (upper - lower).max(0)).collect();
            for offset in indices(&lengths) {
                let index: Vec<i64> = offset.iter().zip(&ranges).map(|(i, (lower, _))| i + lower).collect();
                // Where an earlier partition has all of the cell, this one is not computed.
                let places = Self::places(part, ranges.len(), rank);
                let taken = values.iter().any(|(before, count, earlier)| {
                    let theirs = Self::places(before, *count, rank);
                    let pairs = theirs.iter().zip(&places).filter_map(|(theirs, ours)| Some((theirs.as_ref()?, ours)));
                    let key = pairs.map(|(_, ours)| ours.map(|at| index[at])).collect::<Option<Vec<i64>>>();
                    key.is_some_and(|key| earlier.contains_key(&key))
                });
                if taken {
                    continue;
                }
                if index.iter().any(|i| *i < 0) {
                    return Err(Trouble::OutOfBounds("a partition before its result".into()));
                }
                let value = self.element(scope, part, &index)?;
                if std::ptr::eq(part, last) {
                    cell = Some(value.shape.clone());
                }
                elements.insert(index, value);
            }
            values.push((part, ranges.len(), elements));
        }
        let cell = match cell {
            Some(cell) => cell,
            None => self.vector(scope, &last.cell)?,
        };
        let mut cells = cell.iter();
        let shape: Vec<i64> = Self::places(last, own.len(), rank)
            .into_iter()
            .map(|place| match place {
                Some(at) => own[at].1.max(0),
                None => cells.next().copied().unwrap_or(0),
            })
            .collect();
        for (part, count, elements) in &values {
            for (index, value) in elements {
                if value.shape.len() + count != rank {
                    return wrong("rank of a partition");
                }
                let mut cells = value.shape.iter();
                for (place, size) in Self::places(part, *count, rank).into_iter().zip(&shape) {
                    match place {
                        Some(at) if index[at] >= *size => {
                            return Err(Trouble::OutOfBounds(format!("a partition at {index:?} of {shape:?}")));
                        }
                        None if cells.next() != Some(size) => return wrong("cell of a partition"),
                        _ => {}
                    }
                }
            }
        }
        let places: Vec<_> = values.iter().map(|(part, count, _)| Self::places(part, *count, rank)).collect();
        Value::build(shape, |index| {
            for ((_, count, elements), places) in values.iter().zip(&places) {
                let mut own = vec![0; *count];
                let mut inner = Vec::new();
                for (place, i) in places.iter().zip(index) {
                    match place {
                        Some(at) => own[*at] = *i,
                        None => inner.push(*i),
                    }
                }
                if let Some(value) = elements.get(&own) {
                    return value.get(&inner);
                }
            }
            Ok(0.0)
        })
    }

    fn with(&mut self, scope: &Scope, parts: &[Part], op: &WithOp) -> Outcome<Value> {
        let mut elements: BTreeMap<Vec<i64>, Value> = BTreeMap::new();
        let mut order: Vec<Vec<i64>> = Vec::new();
        for part in parts {
            let ranges = self.ranges(scope, part)?;
            let lengths: Vec<i64> = ranges.iter().map(|(lower, upper)| (upper - lower).max(0)).collect();
            for offset in indices(&lengths) {
                let index: Vec<i64> = offset.iter().zip(&ranges).map(|(i, (lower, _))| i + lower).collect();
                if let Entry::Vacant(place) = elements.entry(index) {
                    let value = self.element(scope, part, place.key())?;
                    order.push(place.key().clone());
                    place.insert(value);
                }
            }
        }
        match op {
            WithOp::Fold(op, neutral) => {
                let mut so_far = self.expr(scope, neutral)?;
                let function = self.program.functions.iter().find(|f| f.name == *op).cloned();
                for index in order {
                    let next = elements.get(&index).cloned().unwrap_or_else(|| Value::scalar(0.0));
                    so_far = match &function {
                        Some(function) => {
                            let results = self.apply(function, vec![Given::Data(so_far), Given::Data(next)])?;
                            results.into_iter().next().ok_or(Trouble::Type("no result".into()))?
                        }
                        None => {
                            if so_far.shape != next.shape {
                                return wrong("shapes of a fold");
                            }
                            entrywise(&so_far, &next, |x, y| combine(op, x, y))?
                        }
                    };
                    self.step(so_far.data.len())?;
                    if so_far.data.iter().any(|x| x.abs() > EXACT / 1024.0) {
                        return Err(Trouble::TooMuch);
                    }
                }
                Ok(so_far)
            }
            WithOp::Genarray(shape, default) => {
                let frame: Vec<i64> = self.vector(scope, shape)?.into_iter().map(|size| size.max(0)).collect();
                let default = match default {
                    Some(default) => self.expr(scope, default)?,
                    None => {
                        let cell = match (elements.values().next(), parts.first()) {
                            (Some(value), _) => value.shape.clone(),
                            (None, Some(part)) => self.vector(scope, &part.cell)?,
                            (None, None) => return wrong("no default"),
                        };
                        let count = cell.iter().product::<i64>() as usize;
                        Value { shape: cell, data: vec![0.0; count] }
                    }
                };
                filled(&frame, &elements, &default.shape, |_, inner| default.get(inner))
            }
            WithOp::Modarray(array) => {
                let array = self.expr(scope, array)?;
                let count = match parts.first() {
                    Some(part) => self.ranges(scope, part)?.len(),
                    None => array.shape.len(),
                };
                if count > array.shape.len() {
                    return wrong("too many indices");
                }
                let (frame, cell) = array.shape.split_at(count);
                filled(frame, &elements, cell, |outer, inner| array.get(&[outer, inner].concat()))
            }
        }
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
