//! Programs of the whole calculus, with iterations, reshape operators, conditions and `let`s: their loops are shown to be
//! in bounds, and compute what the evaluator says, interpreted in the prime field and in the machine's numbers, and
//! natively bit for bit.
//!
//! A generated program is well-typed, and every read of its is in bounds because of a loop, a condition or a constant.
//! Sizes are 0, 1 and primes; one size is no dimension and may be negative. Over f64, products have a constant factor, so
//! that no value becomes infinite.

mod common;

use std::cell::{Cell, RefCell};

use arbitrary::{Result, Unstructured};
use certen_core::domain::{Element, Field, Machine, Scalar};
use certen_core::{
    Binary, Binding, Carried, Domain, ElemType, EvalError, Evaluator, Fault, Literal, Parameter, Program, Range,
    ReduceOp, Tensor, TensorType, Term, TermId, Terms, Unary,
};
use certen_index::{Cond, Facts, Ix, Verdict};
use certen_loops::{Interpreter, LoopProgram, lower, parse_loops, verify};
use certen_runtime::Cache;
use certen_syntax::{Name, Sources};
use common::batch::Batch;
use common::for_bytes;

/// `CERTEN_CASES`, else 200.
fn cases() -> u32 {
    if std::env::var_os("CERTEN_CASES").is_some() { certen_testgen::cases() } else { 200 }
}

/// A program, and sizes to run it on.
#[derive(Clone)]
struct Case {
    program: Program,
    sizes: Vec<(Name, i64)>,
}

struct Generator<'u, 'b> {
    u: &'u mut Unstructured<'b>,
    terms: Terms,
    elem: ElemType,
    tensors: Vec<(Name, TensorType)>,
    /// With their ranges; sizes have none.
    indices: Vec<(Name, Option<Range>)>,
    names: usize,
}

impl Case {
    fn new(bytes: &[u8], name: &str) -> Case {
        // Where the bytes end, the simplest choices are taken, and none of them fails.
        Case::generate(&mut Unstructured::new(bytes), name).expect("the generator always finds something")
    }

    fn generate(u: &mut Unstructured<'_>, name: &str) -> Result<Case> {
        let [m, n, k] = ["m", "n", "k"].map(Name::new);
        let values = [*u.choose(&[2, 0, 1, 5])?, *u.choose(&[3, 1, 2, 7])?, u.int_in_range(-2..=3)?];
        let facts = vec![Cond::Ge(Ix::var(m)), Cond::Ge(Ix::var(n).sub(&Ix::from(1)).unwrap())];
        let mut known = Facts::new();
        facts.iter().for_each(|fact| known.assume(fact.clone()));
        let elem = *u.choose(&[ElemType::F64, ElemType::I64])?;
        let shapes = [("x", vec![Ix::var(m), Ix::var(n)]), ("y", vec![Ix::var(n)]), ("s", vec![])];
        let input = |(name, shape): (&str, Vec<Ix>)| Parameter { name: name.into(), ty: TensorType::new(elem, shape) };
        let inputs: Vec<Parameter> = shapes.into_iter().map(input).collect();
        let mut generator = Generator {
            u,
            terms: Terms::new(known),
            elem,
            tensors: inputs.iter().map(|p| (p.name, p.ty.clone())).collect(),
            indices: [m, n, k].map(|size| (size, None)).to_vec(),
            names: 0,
        };
        let (mut bindings, mut outputs) = (Vec::new(), Vec::new());
        for at in 0..generator.u.int_in_range(1..=3)? {
            let ty = generator.ty(2)?;
            let term = generator.term(&ty, 5)?;
            let name = Name::new(&format!("t{at}"));
            generator.tensors.push((name, ty));
            bindings.push(Binding { name, term });
            outputs.push((name, name));
        }
        let terms = generator.terms;
        let program = Program { name: name.into(), sizes: vec![m, n, k], facts, inputs, bindings, outputs, terms };
        program.check().unwrap_or_else(|error| panic!("{error}\n{program}"));
        Ok(Case { program, sizes: [m, n, k].into_iter().zip(values).collect() })
    }

    fn inputs<V>(&self, value: impl Fn(i64, ElemType) -> V) -> Vec<(Name, Tensor<V>)> {
        let size = |name| self.sizes.iter().find(|(n, _)| *n == name).map(|(_, value)| *value);
        let mut next = 3;
        let mut tensors = Vec::new();
        for Parameter { name, ty } in &self.program.inputs {
            let element = |_| {
                next = (next * 7 + 5) % 23;
                Ok::<V, ()>(value(next - 11, ty.elem))
            };
            tensors.push((*name, Tensor::from_fn(ty.shape_at(&size).unwrap(), element).unwrap().unwrap()));
        }
        tensors
    }

    fn lowered(&self) -> LoopProgram {
        let loops = lower(&self.program).unwrap_or_else(|error| panic!("{error:?}\n{}", self.program));
        let complaints = verify(&loops);
        assert!(complaints.is_empty(), "{complaints:?}\n{}\n{loops}", self.program);
        loops
    }

    /// What the evaluator says; nothing if it takes too long, or the domain has no such operation.
    fn evaluated<D: Domain>(&self, domain: &D, inputs: Vec<(Name, Tensor<D::Value>)>) -> Option<Outputs<D>> {
        let evaluator = Evaluator::new(&self.program, domain, self.sizes.iter().copied(), inputs).unwrap();
        match evaluator.with_fuel(300_000).run() {
            Ok(outputs) => Some(outputs),
            Err(EvalError::Fuel | EvalError::Fault(Fault::Unsupported(_))) => None,
            Err(error) => panic!("{error}\n{}", self.program),
        }
    }
}

type Outputs<D> = Vec<(Name, Tensor<<D as Domain>::Value>)>;

impl Generator<'_, '_> {
    fn fresh(&mut self, base: &str) -> Name {
        self.names += 1;
        Name::new(&format!("{base}{}", self.names))
    }

    fn add(&mut self, term: Term) -> TermId {
        self.terms.add(term.clone()).unwrap_or_else(|error| panic!("{error}: {term:?}"))
    }

    fn holds(&self, cond: &Cond) -> bool {
        self.terms.facts().prove(cond) == Verdict::Yes
    }

    fn not_empty(&self, size: &Ix) -> bool {
        self.holds(&Cond::le(&Ix::from(1), size).unwrap())
    }

    fn size(&mut self) -> Result<Ix> {
        let [m, n] = ["m", "n"].map(Ix::var);
        Ok(match self.u.int_in_range(0..=7)? {
            0..=2 => n,
            3 => m,
            4 => n.add(&Ix::from(1)).unwrap(),
            5 => m.mul(&n).unwrap(),
            _ => Ix::from(*self.u.choose(&[2, 1, 3, 6])?),
        })
    }

    fn ty(&mut self, rank: usize) -> Result<TensorType> {
        let rank = self.u.int_in_range(0..=rank)?;
        let shape = (0..rank).map(|_| self.size()).collect::<Result<Vec<Ix>>>()?;
        Ok(TensorType::new(self.elem, shape))
    }

    fn ix(&mut self) -> Result<Ix> {
        let (name, _) = self.u.choose(&self.indices)?;
        let (var, constant) = (Ix::var(*name), Ix::from(self.u.int_in_range(-2..=2)?));
        Ok(match self.u.int_in_range(0..=3)? {
            0 => constant,
            1 => var.add(&constant).unwrap(),
            2 => constant.sub(&var).unwrap(),
            _ => var.floor_div(2).unwrap(),
        })
    }

    fn cond(&mut self) -> Result<Cond> {
        let (a, b) = (self.ix()?, self.ix()?);
        let one = Cond::le(&a, &b).unwrap();
        Ok(match self.u.int_in_range(0..=3)? {
            0 => one,
            1 => one.or(Cond::eq(&self.ix()?, &b).unwrap()),
            2 => one.and(Cond::lt(&self.ix()?, &b).unwrap()),
            _ => Cond::eq(&a, &b).unwrap().not().unwrap(),
        })
    }

    /// An index that is inside a dimension for a reason, if there is one.
    fn inside(&mut self, size: &Ix) -> Result<Option<Ix>> {
        let runs = |range: &Range| range.hi == *size && range.lo == Ix::from(0);
        let own = self.indices.iter().filter(|(_, range)| range.as_ref().is_some_and(runs));
        let mut found: Vec<Ix> = own.map(|(name, _)| Ix::var(*name)).collect();
        let last = size.sub(&Ix::from(1)).unwrap();
        found.extend(found.iter().map(|i| last.sub(i).unwrap()).collect::<Vec<_>>());
        if self.not_empty(size) {
            found.extend([Ix::from(0), last]);
        }
        if found.is_empty() { Ok(None) } else { Ok(Some(self.u.choose(&found)?.clone())) }
    }

    /// An element or slice of a tensor, under a condition where there is no other reason.
    fn select(&mut self, tensor: TermId, dimensions: usize) -> Result<TermId> {
        let shape = self.terms.ty(tensor).shape.clone();
        let (mut indices, mut guard) = (Vec::new(), Cond::always());
        for size in &shape[..dimensions] {
            indices.push(match self.inside(size)? {
                Some(index) if !self.u.ratio(1, 4)? => index,
                _ => {
                    let index = self.ix()?;
                    let low = Cond::le(&Ix::from(0), &index).unwrap();
                    guard = guard.and(low.and(Cond::lt(&index, size).unwrap()));
                    index
                }
            });
        }
        if dimensions == 0 {
            return Ok(tensor);
        }
        let element = self.add(Term::Select(tensor, indices.into()));
        Ok(if guard.is_always() { element } else { self.add(Term::Guard(guard, element)) })
    }

    fn with_index<T>(&mut self, range: &Range, body: impl FnOnce(&mut Self, Name) -> Result<T>) -> Result<T> {
        let name = self.fresh("i");
        self.indices.push((name, Some(range.clone())));
        let result = body(self, name);
        self.indices.pop();
        result
    }

    /// A tensor of the type's elements for each index.
    fn generation(&mut self, ty: &TensorType, fuel: usize) -> Result<TermId> {
        let Some((size, inner)) = ty.shape.split_first() else { return self.term(ty, fuel) };
        let lo = Ix::from(if self.u.ratio(1, 4)? { 2 } else { 0 });
        let range = Range { hi: size.add(&lo).unwrap(), lo };
        let inner = TensorType::new(ty.elem, inner.to_vec());
        let term = self.with_index(&range, |g, name| Ok(Term::Gen(name, range.clone(), g.term(&inner, fuel)?)))?;
        Ok(self.add(term))
    }

    fn leaf(&mut self, ty: &TensorType) -> Result<TermId> {
        let fitting: Vec<(Name, TensorType)> =
            self.tensors.iter().filter(|(_, t)| t.shape.ends_with(&ty.shape)).cloned().collect();
        if !fitting.is_empty() && !self.u.ratio(1, 4)? {
            // What was bound last would hardly be used otherwise.
            let at = if self.u.arbitrary()? { fitting.len() - 1 } else { self.u.choose_index(fitting.len())? };
            let (name, of) = fitting[at].clone();
            let tensor = self.add(Term::Ref(name, of.clone()));
            return self.select(tensor, of.rank() - ty.rank());
        }
        if !ty.is_scalar() {
            return self.generation(ty, 0);
        }
        let term = match self.u.ratio(1, 2)? {
            true => Term::Index(self.ix()?, ty.elem),
            false => Term::Literal(self.literal()?, ty.elem),
        };
        Ok(self.add(term))
    }

    fn literal(&mut self) -> Result<Literal> {
        let value = self.u.int_in_range(-2..=3)?;
        Ok(if self.elem == ElemType::I64 { Literal::Int(value) } else { Literal::Float(value as f64) })
    }

    fn term(&mut self, ty: &TensorType, fuel: usize) -> Result<TermId> {
        if fuel == 0 {
            return self.leaf(ty);
        }
        let part = fuel - 1;
        let term = match self.u.int_in_range(0..=11)? {
            0 => return self.leaf(ty),
            1 => {
                let value_ty = self.ty(2)?;
                let (value, name) = (self.term(&value_ty, part)?, self.fresh("v"));
                self.tensors.push((name, value_ty));
                let body = self.term(ty, part);
                self.tensors.pop();
                Term::Let(name, value, body?)
            }
            2 => Term::If(self.cond()?, self.term(ty, part)?, self.term(ty, part)?),
            3 => Term::Guard(self.cond()?, self.term(ty, part)?),
            4 | 5 => self.iterate(ty, part)?,
            6 => {
                let size = self.size()?;
                let shape: Vec<Ix> = [size].into_iter().chain(ty.shape.iter().cloned()).collect();
                let tensor = self.term(&TensorType::new(ty.elem, shape), part)?;
                return self.select(tensor, 1);
            }
            7 => self.reduction(ty, part)?,
            _ if ty.is_scalar() => self.scalar(ty, part)?,
            8 => return self.generation(ty, part),
            _ => return self.reshape(ty, part),
        };
        Ok(self.add(term))
    }

    fn iterate(&mut self, ty: &TensorType, part: usize) -> Result<Term> {
        let mut types = vec![ty.clone()];
        while types.len() < 3 && self.u.ratio(1, 3)? {
            types.push(self.ty(2)?);
        }
        let mut states = Vec::new();
        for ty in &types {
            let init = self.term(ty, part)?;
            states.push(Carried { name: self.fresh("a"), init, next: init });
        }
        let times = match self.u.int_in_range(0..=3)? {
            0 => Ix::var("k"),
            1 => self.ix()?,
            _ => Ix::from(*self.u.choose(&[2, 0, 3, 1])?),
        };
        let outside = self.tensors.len();
        self.tensors.extend(states.iter().map(|s| s.name).zip(types.iter().cloned()));
        let step = self.with_index(&Range::to(times.clone()), |g, step| {
            for (state, ty) in states.iter_mut().zip(&types) {
                state.next = g.term(ty, part)?;
            }
            Ok(step)
        });
        self.tensors.truncate(outside);
        Ok(Term::Iterate(times, step?, states.into(), 0))
    }

    fn reduction(&mut self, ty: &TensorType, part: usize) -> Result<Term> {
        let op = *self.u.choose(&[ReduceOp::Sum, ReduceOp::Min, ReduceOp::Max])?;
        let mut size = self.size()?;
        let always = self.u.arbitrary()?;
        if op != ReduceOp::Sum && !(always && self.not_empty(&size)) {
            // Of at least two elements, all but one are at least one.
            size = Ix::from(self.u.int_in_range(2..=3)?);
        }
        let range = Range::to(size);
        self.with_index(&range, |g, name| {
            let cond = match (always, op) {
                (true, _) => Cond::always(),
                (false, ReduceOp::Sum) => g.cond()?,
                (false, _) => Cond::eq(&Ix::var(name), &Ix::from(g.u.int_in_range(0..=2)?)).unwrap().not().unwrap(),
            };
            Ok(Term::Reduce(op, name, range.clone(), cond, g.term(ty, part)?))
        })
    }

    fn scalar(&mut self, ty: &TensorType, part: usize) -> Result<Term> {
        let a = self.term(ty, part)?;
        Ok(match self.u.int_in_range(0..=5)? {
            0 => Term::Unary(*self.u.choose(&[Unary::Neg, Unary::Abs])?, a),
            1 if self.elem == ElemType::F64 => {
                let factor = Term::Literal(self.literal()?, self.elem);
                Term::Binary(Binary::Mul, self.add(factor), a)
            }
            1 => Term::Binary(Binary::Mul, a, self.term(ty, part)?),
            2 => {
                let b = self.term(ty, part)?;
                let cond = self.add(Term::Binary(Binary::Lt, a, b));
                Term::Choose(cond, b, a)
            }
            3 => Term::Binary(*self.u.choose(&[Binary::Min, Binary::Max])?, a, self.term(ty, part)?),
            _ => Term::Binary(*self.u.choose(&[Binary::Add, Binary::Sub])?, a, self.term(ty, part)?),
        })
    }

    fn reshape(&mut self, ty: &TensorType, part: usize) -> Result<TermId> {
        let resized = |old: usize, new: &[Ix]| {
            let shape: Vec<Ix> = new.iter().chain(&ty.shape[old..]).cloned().collect();
            TensorType::new(ty.elem, shape)
        };
        let size = ty.shape[0].clone();
        let amount = Ix::from(self.u.int_in_range(0..=2)?);
        let less = size.sub(&amount).unwrap();
        let fits = self.holds(&Cond::le(&amount, &size).unwrap());
        let term = match self.u.int_in_range(0..=7)? {
            0 if ty.rank() >= 2 => Term::Transpose(self.term(&resized(2, &[ty.shape[1].clone(), size]), part)?),
            1 if ty.rank() >= 2 && ty.shape[1].as_constant().is_some_and(|k| k > 0) => {
                let k = ty.shape[1].as_constant().unwrap_or(1);
                Term::Split(k, self.term(&resized(2, &[size.scale(k).unwrap()]), part)?)
            }
            2 if fits => Term::PadLeft(amount, self.term(&resized(1, &[less]), part)?),
            3 if fits => Term::PadRight(amount, self.term(&resized(1, &[less]), part)?),
            4 if fits => {
                let (front, back) = (self.term(&resized(1, &[amount]), part)?, self.term(&resized(1, &[less]), part)?);
                if self.u.arbitrary()? { Term::Concat(front, back) } else { Term::Concat(back, front) }
            }
            5 => {
                // Only padding can be cut off.
                let inner = self.term(&resized(1, &[size]), part)?;
                let padded = self.add(Term::PadLeft(amount.clone(), inner));
                Term::TruncLeft(amount, padded)
            }
            6 => {
                // Only padding can be cut off.
                let inner = self.term(&resized(1, &[size]), part)?;
                let padded = self.add(Term::PadRight(amount.clone(), inner));
                Term::TruncRight(amount, padded)
            }
            _ => {
                let (m, n) = (Ix::var("m"), Ix::var("n"));
                let parts = match size.as_constant() {
                    _ if size == m.mul(&n).unwrap() => [m, n],
                    Some(6) => [Ix::from(2), Ix::from(3)],
                    _ if self.u.arbitrary()? => [size, Ix::from(1)],
                    _ => [Ix::from(1), size],
                };
                Term::Flatten(self.term(&resized(1, &parts), part)?)
            }
        };
        let term = self.add(term);
        // Sizes are known up to what the facts say; the type must be as it was wanted.
        assert_eq!(self.terms.ty(term), ty);
        Ok(term)
    }
}

/// Runs a test on generated programs, and says for how many of them the test did something.
fn for_cases(seed: u8, test: impl Fn(&Case) -> bool) {
    let done = Cell::new(0);
    let show = |bytes: &[u8]| {
        let case = Case::new(bytes, "generated");
        format!("{:?}\n{}", case.sizes, case.program)
    };
    for_bytes(cases(), seed, show, |bytes| done.set(done.get() + u32::from(test(&Case::new(bytes, "generated")))));
    assert!(done.get() >= cases() / 4, "only {} of {} programs could be compared", done.get(), cases());
}

fn agree<D: Domain>(seed: u8, domain: &D, value: impl Fn(i64, ElemType) -> D::Value) {
    for_cases(seed, |case| {
        let loops = case.lowered();
        let Some(expected) = case.evaluated(domain, case.inputs(&value)) else { return false };
        let interpreter = Interpreter::new(&loops, domain, case.sizes.clone(), case.inputs(&value)).unwrap();
        match interpreter.with_fuel(3_000_000).run() {
            Err(EvalError::Fuel | EvalError::Fault(Fault::Unsupported(_))) => false,
            Err(error) => panic!("{error}\n{loops}"),
            // Compared as they are shown, so that the two zeros differ.
            Ok(found) => {
                assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{loops}");
                true
            }
        }
    });
}

#[test]
fn loops_agree_with_the_evaluator_in_the_machines_numbers() {
    agree(51, &Machine, Scalar::from_i64);
}

#[test]
fn loops_agree_with_the_evaluator_in_the_field() {
    agree(52, &Field { seed: 3 }, |value, _| Element::reduce((value + 100) as u64));
}

#[test]
fn printing_loops_and_reading_them_gives_the_same_loops() {
    for_cases(53, |case| {
        let printed = case.lowered().to_string();
        let mut sources = Sources::new();
        let file = sources.add("generated.loops", printed.as_str());
        let again = parse_loops(&sources, file).unwrap_or_else(|errors| panic!("{printed}\n{errors:?}"));
        assert_eq!(again.to_string(), printed);
        assert!(verify(&again).is_empty(), "{printed}");
        true
    });
}

#[test]
fn native_code_agrees_with_the_evaluator() {
    let all = RefCell::new(Vec::new());
    for_bytes(cases(), 54, |_| String::new(), |bytes| all.borrow_mut().push(bytes.to_vec()));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let cache = Cache::at(directory.path()).expect("a cache");
    let (all, mut added) = (all.into_inner(), 0);
    for (first, chunk) in all.chunks(50).enumerate() {
        let mut batch = Batch::new();
        for (at, bytes) in chunk.iter().enumerate() {
            let at = first * 50 + at;
            let case = Case::new(bytes, &format!("program_{at}"));
            let inputs = case.inputs(Scalar::from_i64);
            if let Some(outputs) = case.evaluated(&Machine, inputs.clone()) {
                batch.add(at, &case.program, &case.sizes, &inputs, &outputs, &case.program.to_string());
                added += 1;
            }
        }
        batch.run(&cache);
    }
    assert!(added >= all.len() / 4, "only {added} of {} programs could be compared", all.len());
}
