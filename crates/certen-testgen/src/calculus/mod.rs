//! Programs of Core with every construct of the calculus, made from arbitrary bytes.
//!
//! A [`Case`] is a program that [`Program::check`] accepts, with sizes to run it at. Every read of it is in bounds for a
//! reason that a reader can name: a range, a condition, a constant. A truncation cuts only padding (ATL, Sec. 6), also
//! for such a reason ([`Truncations::Legal`]); asked for ([`Truncations::Any`]), some cut whatever they find, which is what
//! a check of padding has to refuse.
//!
//! Sizes are 0, 1 and primes; one size is no dimension and may be negative; the sizes of dimensions are these, literals,
//! sums, products and rounded quotients of them. Elements are of every type. Over floats, products have a constant
//! factor, so that values stay small ([`certen_core::domain::magnitude`] says when they are exact).

mod elements;
mod index;
mod padded;
mod reshape;
mod scalar;
mod term;

use arbitrary::{Result, Unstructured};
use certen_core::{Binding, ElemType, Parameter, Program, TensorType, Term, TermId, Terms};
use certen_index::{Cond, Facts, Ix, Verdict};
use certen_syntax::Name;

use index::Known;

/// A size with its value.
pub type Size = (Name, i64);

/// A program, and sizes to run it at.
#[derive(Clone, Debug)]
pub struct Case {
    /// Accepted by [`Program::check`].
    pub program: Program,
    /// The sizes of each run; all satisfy the program's facts.
    pub runs: Vec<Vec<Size>>,
}

/// What truncations may cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Truncations {
    /// Padding, by construction.
    Legal,
    /// Padding or values. A first binding has a truncation outside, or under generations, so that what it cuts can be
    /// looked at.
    Any,
}

impl Case {
    /// The case of some bytes. Where they end, the simplest choices are taken.
    ///
    /// # Panics
    /// If the generator has made a program that is not well-formed.
    pub fn new(bytes: &[u8], name: &str, truncations: Truncations) -> Case {
        let mut u = Unstructured::new(bytes);
        generate(&mut u, name, truncations).expect("where the bytes end, there are simple choices")
    }
}

/// Names of the sizes: a dimension that may be 0, one that is at least 1, one that is at most the second, and a number
/// of any sign.
const SIZES: [&str; 4] = ["m", "n", "q", "k"];

/// How many nested constructs a binding has at most.
const DEPTH: usize = 5;

struct Generator<'u, 'b> {
    u: &'u mut Unstructured<'b>,
    terms: Terms,
    truncations: Truncations,
    /// In scope.
    tensors: Vec<(Name, TensorType)>,
    indices: Vec<Known>,
    names: usize,
}

fn generate(u: &mut Unstructured<'_>, name: &str, truncations: Truncations) -> Result<Case> {
    let sizes = SIZES.map(Name::new);
    let [m, n, q, _] = sizes.map(Ix::var);
    let facts = vec![
        Cond::Ge(m.clone()),
        Cond::Ge(n.sub(&Ix::from(1)).expect("small")),
        Cond::Ge(q.clone()),
        Cond::Ge(n.sub(&q).expect("small")),
    ];
    let mut known = Facts::new();
    facts.iter().for_each(|fact| known.assume(fact.clone()));
    let runs = (0..2).map(|_| run(u, sizes)).collect::<Result<Vec<_>>>()?;
    let [first, second] = [(), ()].map(|()| elem(u));
    let (first, second) = (first?, second?);
    let shapes = [
        ("x", first, vec![m.clone(), n.clone()]),
        ("y", second, vec![n.clone()]),
        ("s", first, vec![]),
        ("z", first, vec![Ix::from(2), n, Ix::from(3)]),
        ("w", second, vec![q, Ix::from(1), m, Ix::from(2)]),
    ];
    let input =
        |(name, elem, shape): (&str, _, Vec<Ix>)| Parameter { name: name.into(), ty: TensorType::new(elem, shape) };
    let inputs: Vec<Parameter> = shapes.into_iter().map(input).collect();
    let mut generator = Generator {
        u,
        terms: Terms::new(known),
        truncations,
        tensors: inputs.iter().map(|p| (p.name, p.ty.clone())).collect(),
        indices: sizes.map(|size| Known { at: Ix::var(size), size: None }).to_vec(),
        names: 0,
    };
    let (mut bindings, mut outputs) = (Vec::new(), Vec::new());
    for at in 0..generator.u.int_in_range(1..=3)? {
        let term = if at == 0 && truncations == Truncations::Any {
            generator.truncation_outside()?
        } else {
            let elem = if generator.chance(3)? { elem(generator.u)? } else { first };
            let ty = generator.ty(elem, 4)?;
            generator.term(&ty, DEPTH)?
        };
        let name = Name::new(&format!("t{at}"));
        generator.tensors.push((name, generator.terms.ty(term).clone()));
        bindings.push(Binding { name, term });
        if at == 0 || !generator.chance(6)? {
            outputs.push((name, name));
        }
    }
    if generator.chance(6)? {
        let (_, shown) = *generator.u.choose(&outputs)?;
        outputs.push((Name::new("again"), shown));
    }
    if generator.chance(8)? {
        outputs.push((Name::new("given"), generator.u.choose(&inputs)?.name));
    }
    let terms = generator.terms;
    let program = Program { name: name.into(), sizes: sizes.to_vec(), facts, inputs, bindings, outputs, terms };
    program.check().unwrap_or_else(|error| panic!("{error}\n{program}"));
    Ok(Case { program, runs })
}

fn run(u: &mut Unstructured<'_>, [m, n, q, k]: [Name; 4]) -> Result<Vec<Size>> {
    let n_value = *u.choose(&[3, 1, 2, 5, 7])?;
    Ok(vec![
        (m, *u.choose(&[2, 0, 1, 3, 5])?),
        (n, n_value),
        (q, u.int_in_range(0..=n_value)?),
        (k, u.int_in_range(-2..=3)?),
    ])
}

/// Floats and integers more often than bytes and truth values.
fn elem(u: &mut Unstructured<'_>) -> Result<ElemType> {
    use ElemType::*;
    u.choose(&[F64, F64, F64, F64, I64, I64, F32, F32, I32, I32, U8, Bool]).copied()
}

impl Generator<'_, '_> {
    /// One in so many, and never where the bytes have ended.
    fn chance(&mut self, of: u8) -> Result<bool> {
        Ok(self.u.int_in_range(1..=of)? == of && of > 1)
    }

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
}
