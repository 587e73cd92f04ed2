//! Printing and reading are inverse, on random programs that use every form of Core.

use std::collections::BTreeSet;
use std::mem::{Discriminant, discriminant};

use arbitrary::{Result, Unstructured};
use certen_core::{
    Binary, Binding, Carried, ElemType, Literal, Parameter, Program, Range, ReduceOp, Table, TensorType, Term, TermId,
    Terms, Unary, parse_program,
};
use certen_index::{Cond, Facts, Ix, Verdict};
use certen_syntax::{Name, Sources};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Names that the grammar also uses; each is taken at most once.
const WORDS: [&str; 16] = [
    "sum", "gen", "if", "then", "else", "let", "in", "where", "exp", "min", "cast", "index", "iterate", "f64", "nan",
    "true",
];

/// Builds random well-formed programs out of random bytes; out of bytes, everything becomes a leaf.
struct Generator<'a, 'b> {
    u: &'a mut Unstructured<'b>,
    terms: Terms,
    /// In scope, innermost last.
    indices: Vec<Name>,
    tensors: Vec<(Name, TensorType)>,
    names: usize,
}

impl Generator<'_, '_> {
    /// A name that was not used yet. Indices are never called by words that their own text gives a meaning.
    fn fresh(&mut self, base: &str) -> Result<Name> {
        self.names += 1;
        let word = WORDS.get(self.names).filter(|word| !matches!(**word, "true" | "min") || base == "t");
        Ok(match word {
            Some(word) if self.u.ratio(1, 3)? => Name::new(word),
            _ => Name::new(&format!("{base}{}", self.names)),
        })
    }

    fn ix(&mut self) -> Result<Ix> {
        let name = *self.u.choose(&self.indices)?;
        let (var, constant) = (Ix::var(name), Ix::from(i64::from(self.u.arbitrary::<i8>()?)));
        let ix = match self.u.int_in_range(0..=5)? {
            0 => Ok(constant),
            1 => var.add(&constant),
            2 => constant.sub(&var),
            3 => var.scale(3).and_then(|e| e.floor_div(4)),
            4 => var.min_with(&constant),
            _ => Ok(var),
        };
        Ok(ix.unwrap())
    }

    fn size(&mut self) -> Result<Ix> {
        Ok(match self.u.int_in_range(0..=3)? {
            0 => Ix::from(self.u.int_in_range(0..=5)?),
            1 => Ix::var("m"),
            2 => Ix::var("n").add(&Ix::from(2)).unwrap(),
            _ => Ix::var("n"),
        })
    }

    fn cond(&mut self) -> Result<Cond> {
        let (a, b) = (self.ix()?, self.ix()?);
        let one = match self.u.int_in_range(0..=3)? {
            0 => Cond::lt(&a, &b),
            1 => Cond::le(&a, &b),
            2 => Cond::eq(&a, &b),
            _ => Cond::eq(&a, &b).and_then(|c| c.not()),
        }
        .unwrap();
        Ok(match self.u.int_in_range(0..=5)? {
            // Out of bytes, all choices are the first one: it must not go on.
            0..=2 => one,
            3 => one.and(self.cond()?),
            4 => one.or(self.cond()?),
            _ => Cond::always(),
        })
    }

    fn elem(&mut self) -> Result<ElemType> {
        self.u.choose(&ElemType::ALL).copied()
    }

    fn ty(&mut self) -> Result<TensorType> {
        let rank = self.u.int_in_range(0..=3)?;
        let shape = (0..rank).map(|_| self.size()).collect::<Result<Vec<Ix>>>()?;
        Ok(TensorType::new(self.elem()?, shape))
    }

    fn literal(&mut self, elem: ElemType) -> Result<Literal> {
        let special = self.u.ratio(1, 4)?;
        let pick = self.u.int_in_range(0..=5)?;
        let float = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, -2.0, 1e30][pick];
        let float = if special { float } else { f64::from_bits(self.u.arbitrary()?) };
        let float = if float.is_nan() { f64::NAN } else { float };
        let int = if special { [0, 1, -1, i64::MIN, i64::MAX, 7][pick] } else { self.u.arbitrary()? };
        Ok(match elem {
            ElemType::F64 => Literal::Float(float),
            ElemType::F32 => Literal::Float(f64::from(float as f32)),
            ElemType::I64 => Literal::Int(int),
            ElemType::I32 => Literal::Int(i64::from(int as i32)),
            ElemType::U8 => Literal::Int(i64::from(int as u8)),
            ElemType::Bool => Literal::Bool(self.u.arbitrary()?),
        })
    }

    fn with_index<T>(&mut self, body: impl FnOnce(&mut Self, Name) -> Result<T>) -> Result<T> {
        let name = self.fresh("i")?;
        self.indices.push(name);
        let result = body(self, name);
        self.indices.pop();
        result
    }

    fn add(&mut self, term: Term) -> TermId {
        self.terms.add(term).unwrap()
    }

    /// A random term of a type.
    fn term(&mut self, ty: &TensorType, depth: usize) -> Result<TermId> {
        if depth == 0 || self.u.is_empty() {
            return self.leaf(ty);
        }
        let part = depth - 1;
        let resized = |old: usize, new: &[Ix]| {
            TensorType::new(ty.elem, new.iter().chain(&ty.shape[old..]).cloned().collect::<Vec<_>>())
        };
        let term = match self.u.int_in_range(0..=9)? {
            0 => Term::Guard(self.cond()?, self.term(ty, part)?),
            1 => Term::If(self.cond()?, self.term(ty, part)?, self.term(ty, part)?),
            2 => {
                let value_ty = self.ty()?;
                let (value, name) = (self.term(&value_ty, part)?, self.fresh("t")?);
                self.tensors.push((name, value_ty));
                let body = self.term(ty, part);
                self.tensors.pop();
                Term::Let(name, value, body?)
            }
            3 => self.iterate(ty, part)?,
            4 => {
                let outer = (0..self.u.int_in_range(0..=2)?).map(|_| self.size()).collect::<Result<Vec<_>>>()?;
                let tensor = self.term(&resized(0, &outer), part)?;
                Term::Select(tensor, outer.iter().map(|_| self.ix()).collect::<Result<_>>()?)
            }
            5 => {
                let op = *self.u.choose(ReduceOp::ALL)?;
                if op.combine().result(ty.elem) != Some(ty.elem) {
                    return self.leaf(ty);
                }
                let range = Range { lo: self.ix()?, hi: self.ix()? };
                self.with_index(|g, name| Ok(Term::Reduce(op, name, range, g.cond()?, g.term(ty, part)?)))?
            }
            _ if ty.is_scalar() => self.scalar(ty.elem, part)?,
            6 if ty.rank() >= 2 => match (self.u.arbitrary()?, ty.shape[1].as_constant().filter(|k| *k > 0)) {
                (true, Some(k)) => Term::Split(k, self.term(&resized(2, &[ty.shape[0].scale(k).unwrap()]), part)?),
                _ => Term::Transpose(self.term(&resized(2, &[ty.shape[1].clone(), ty.shape[0].clone()]), part)?),
            },
            7 => {
                let (size, k) = (ty.shape[0].clone(), Ix::from(self.u.int_in_range(0..=3)?));
                let (less, more) = (resized(1, &[size.sub(&k).unwrap()]), resized(1, &[size.add(&k).unwrap()]));
                let fits = self.terms.facts().prove(&Cond::le(&k, &size).unwrap()) == Verdict::Yes;
                match self.u.int_in_range(0..=5)? {
                    0 if fits => Term::PadLeft(k, self.term(&less, part)?),
                    1 if fits => Term::PadRight(k, self.term(&less, part)?),
                    2 if fits => Term::Concat(self.term(&resized(1, &[k]), part)?, self.term(&less, part)?),
                    3 => Term::TruncLeft(k, self.term(&more, part)?),
                    4 => Term::TruncRight(k, self.term(&more, part)?),
                    _ => Term::Flatten(self.term(&resized(1, &[Ix::from(1), size]), part)?),
                }
            }
            _ => {
                let lo = if self.u.ratio(1, 4)? { self.ix()? } else { Ix::from(0) };
                let range = Range { hi: ty.shape[0].add(&lo).unwrap(), lo };
                let inner = resized(1, &[]);
                self.with_index(|g, name| Ok(Term::Gen(name, range, g.term(&inner, part)?)))?
            }
        };
        Ok(self.add(term))
    }

    fn iterate(&mut self, ty: &TensorType, part: usize) -> Result<Term> {
        let mut types = vec![ty.clone()];
        if self.u.arbitrary()? {
            types.push(self.ty()?);
        }
        let at = self.u.int_in_range(0..=types.len() - 1)?;
        types.swap(0, at);
        let mut states = Vec::new();
        for ty in &types {
            let init = self.term(ty, part)?;
            states.push(Carried { name: self.fresh("s")?, init, next: init });
        }
        let (outside, step) = (self.tensors.len(), self.fresh("i")?);
        self.indices.push(step);
        self.tensors.extend(states.iter().map(|s| s.name).zip(types.iter().cloned()));
        for (state, ty) in states.iter_mut().zip(&types) {
            state.next = self.term(ty, part)?;
        }
        self.tensors.truncate(outside);
        self.indices.pop();
        Ok(Term::Iterate(self.ix()?, step, states.into(), at))
    }

    fn scalar(&mut self, elem: ElemType, part: usize) -> Result<Term> {
        let unary: Vec<Unary> = Unary::ALL.iter().copied().filter(|op| op.result(elem).is_some()).collect();
        Ok(match self.u.int_in_range(0..=5)? {
            0 if !unary.is_empty() => Term::Unary(*self.u.choose(&unary)?, self.term(&TensorType::scalar(elem), part)?),
            1 => {
                let cond = self.term(&TensorType::scalar(ElemType::Bool), part)?;
                let [a, b] = [self.term(&TensorType::scalar(elem), part)?, self.term(&TensorType::scalar(elem), part)?];
                Term::Choose(cond, a, b)
            }
            2 => {
                let from = TensorType::scalar(self.elem()?);
                Term::Cast(elem, self.term(&from, part)?)
            }
            3 if elem.is_float() => {
                let ty = TensorType::scalar(elem);
                Term::Fma(self.term(&ty, part)?, self.term(&ty, part)?, self.term(&ty, part)?)
            }
            _ => {
                let operand = if elem == ElemType::Bool { self.elem()? } else { elem };
                let fits = |op: &Binary| op.result(operand) == Some(elem);
                let binary: Vec<Binary> = Binary::ALL.iter().copied().filter(fits).collect();
                if binary.is_empty() {
                    return Ok(Term::Undefined(elem));
                }
                let op = *self.u.choose(&binary)?;
                let operand = TensorType::scalar(operand);
                Term::Binary(op, self.term(&operand, part)?, self.term(&operand, part)?)
            }
        })
    }

    fn leaf(&mut self, ty: &TensorType) -> Result<TermId> {
        let named: Vec<Name> = self.tensors.iter().filter(|(_, t)| t == ty).map(|(name, _)| *name).collect();
        let term = match self.u.int_in_range(0..=4)? {
            0 | 1 if !named.is_empty() => Term::Ref(*self.u.choose(&named)?, ty.clone()),
            2 if ty.elem.has_arithmetic() => Term::Index(self.ix()?, ty.elem),
            3 if self.u.ratio(1, 4)? => Term::Undefined(ty.elem),
            4 => {
                let shape: Vec<usize> =
                    (0..self.u.int_in_range(1..=2)?).map(|_| self.u.int_in_range(0..=3)).collect::<Result<_>>()?;
                let count = shape.iter().product();
                let elements = (0..count).map(|_| self.literal(ty.elem)).collect::<Result<_>>()?;
                let indices = shape.iter().map(|_| self.ix()).collect::<Result<_>>()?;
                let table = self.add(Term::Table(Table::new(ty.elem, shape, elements).unwrap()));
                Term::Select(table, indices)
            }
            _ => Term::Literal(self.literal(ty.elem)?, ty.elem),
        };
        let mut id = self.add(term);
        let missing = if self.terms.ty(id) == ty { 0 } else { ty.rank() };
        for size in ty.shape[..missing].iter().rev() {
            let name = self.fresh("i")?;
            id = self.add(Term::Gen(name, Range::to(size.clone()), id));
        }
        Ok(id)
    }

    fn program(mut self) -> Result<Program> {
        let (sizes, mut inputs, mut bindings) = (self.indices.clone(), Vec::new(), Vec::new());
        for _ in 0..self.u.int_in_range(0..=3)? {
            let parameter = Parameter { name: self.fresh("t")?, ty: self.ty()? };
            self.tensors.push((parameter.name, parameter.ty.clone()));
            inputs.push(parameter);
        }
        for _ in 0..self.u.int_in_range(1..=3)? {
            let ty = self.ty()?;
            let term = self.term(&ty, 5)?;
            let name = self.fresh("t")?;
            self.tensors.push((name, self.terms.ty(term).clone()));
            bindings.push(Binding { name, term });
        }
        let mut outputs = Vec::new();
        for (name, _) in &self.tensors {
            if self.u.arbitrary()? {
                outputs.push((if self.u.arbitrary()? { *name } else { Name::new(&format!("{name}_out")) }, *name));
            }
        }
        let facts = self.terms.facts().conjuncts().to_vec();
        Ok(Program { name: Name::new("random"), sizes, facts, inputs, bindings, outputs, terms: self.terms })
    }
}

fn random_program(bytes: &[u8]) -> Option<Program> {
    let mut facts = Facts::new();
    facts.assume(Cond::le(&Ix::from(1), &Ix::var("n")).unwrap());
    facts.assume(Cond::le(&Ix::from(0), &Ix::var("m")).unwrap());
    facts.assume(Cond::le(&Ix::var("m"), &Ix::var("n")).unwrap());
    let generator = Generator {
        u: &mut Unstructured::new(bytes),
        terms: Terms::new(facts),
        indices: vec![Name::new("m"), Name::new("n")],
        tensors: Vec::new(),
        names: 0,
    };
    generator.program().ok()
}

fn read(text: &str) -> Program {
    let mut sources = Sources::new();
    let file = sources.add("t.core", text);
    parse_program(&sources, file).unwrap_or_else(|errors| panic!("{text}\n{errors:#?}"))
}

/// A term without its parts.
fn form(term: &Term) -> String {
    let text = format!("{term:?}");
    let mut pieces = text.split("TermId(");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |form, piece| form + "part" + piece.trim_start_matches(|c: char| c.is_ascii_digit()))
}

fn same_terms(a: &Terms, x: TermId, b: &Terms, y: TermId) -> bool {
    let mut todo = vec![(x, y)];
    while let Some((x, y)) = todo.pop() {
        let (left, right) = (a.get(x), b.get(y));
        if form(left) != form(right) || a.ty(x) != b.ty(y) {
            return false;
        }
        todo.extend(left.parts().into_iter().zip(right.parts()));
    }
    true
}

fn check(program: &Program) {
    program.check().unwrap_or_else(|error| panic!("{program}\n{error}"));
    let text = program.to_string();
    let again = read(&text);
    assert_eq!(again.to_string(), text);
    assert_eq!((again.name, &again.sizes, &again.facts), (program.name, &program.sizes, &program.facts));
    assert_eq!((&again.inputs, &again.outputs), (&program.inputs, &program.outputs));
    assert_eq!(again.bindings.len(), program.bindings.len());
    for (a, b) in program.bindings.iter().zip(&again.bindings) {
        assert_eq!(a.name, b.name);
        assert!(same_terms(&program.terms, a.term, &again.terms, b.term), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn printing_and_reading_are_inverse(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        if let Some(program) = random_program(&bytes) {
            check(&program);
        }
    }
}

#[test]
fn random_programs_use_every_form() {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let bytes = prop::collection::vec(any::<u8>(), 600);
    let mut forms: Vec<Discriminant<Term>> = Vec::new();
    let mut operations = BTreeSet::new();
    for _ in 0..1500 {
        let tree = bytes.new_tree(&mut runner).unwrap();
        let Some(program) = random_program(&tree.current()) else { continue };
        for (_, term) in program.terms.iter() {
            if !forms.contains(&discriminant(term)) {
                forms.push(discriminant(term));
            }
            match term {
                Term::Unary(op, _) => operations.insert(op.name()),
                Term::Binary(op, ..) => operations.insert(op.name()),
                Term::Reduce(op, ..) => operations.insert(op.name()),
                _ => false,
            };
        }
    }
    assert_eq!(forms.len(), 25);
    // `-` is the name of two.
    assert_eq!(operations.len(), Unary::ALL.len() + Binary::ALL.len() + ReduceOp::ALL.len() - 1);
}
