//! One comparison: loops and meaning at a setting, sizes and a seed, all elements of all outputs.
//!
//! Memory that nothing was written to is *undefined* in the exact settings, and stays so through every operation; on the
//! machine it is garbage. Where the meaning itself has no value (a division by zero in the field, a minimum over nothing),
//! nothing is compared.

use std::fmt;

use certen_core::domain::magnitude::{Magnitude, Measured};
use certen_core::domain::{Element, Exact, Field, MODULUS, Machine, Partial, Scalar, ShortRational, splitmix};
use certen_core::{
    Binary, Domain, ElemType, EvalError, Evaluator, Fault, Literal, Named, Program, Tensor, Unary, index_of,
};
use certen_loops::{Event, Interpreter, LoopProgram};
use certen_syntax::Name;

use crate::inputs::{self, Literals, Place, Setting};

/// One comparison of all outputs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Point {
    /// Where values are taken from.
    pub setting: Setting,
    /// The sizes, in the program's order.
    pub sizes: Vec<(Name, i64)>,
    /// What the inputs are made from.
    pub seed: u64,
    /// Elements that were compared.
    pub elements: usize,
    /// FNV-1a (64 bits) of the expected outputs: one line for each element, row by row, output by output; `undefined` where
    /// a value is, `none` where the meaning has none.
    pub digest: u64,
}

/// The first element that differs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// Where values are taken from.
    pub setting: Setting,
    /// The sizes, in the program's order.
    pub sizes: Vec<(Name, i64)>,
    /// What the inputs are made from.
    pub seed: u64,
    /// The output.
    pub output: Name,
    /// The element; empty if the loops give no values at all.
    pub index: Vec<i64>,
    /// What the program means.
    pub expected: String,
    /// What the loops compute.
    pub found: String,
}

/// Why nothing was compared.
pub(crate) enum Skipped {
    /// The steps did not suffice.
    Steps,
    /// The setting has no values for an operation of the program.
    Setting,
    /// The sizes have no value here.
    Sizes,
}

pub(crate) enum Found {
    Same(Point),
    Differs(Box<Difference>),
    Skipped(Skipped),
}

/// What is compared, and where what happens is noted.
pub(crate) struct Compared<'a> {
    pub program: &'a Program,
    pub nest: &'a LoopProgram,
    pub literals: &'a Literals,
    pub observer: &'a mut dyn FnMut(Event),
}

impl Compared<'_> {
    /// Compares all outputs in at most so many steps, and leaves those that were not taken.
    pub fn at(&mut self, setting: Setting, sizes: &[(Name, i64)], seed: u64, fuel: &mut u64) -> Found {
        let literals = self.literals;
        match setting {
            Setting::Field => {
                let domain = Partial(Field { seed });
                let pair = Pair { reference: &domain, nest: &domain, given: &inputs::field, lift: &Clone::clone };
                self.in_domains(setting, sizes, seed, fuel, &pair)
            }
            Setting::Coins => {
                let domain = Partial(Coins(Field { seed }));
                let pair = Pair { reference: &domain, nest: &domain, given: &inputs::field, lift: &Clone::clone };
                self.in_domains(setting, sizes, seed, fuel, &pair)
            }
            Setting::Integers => {
                let domain = Partial(Field { seed });
                let given = |place| inputs::integer(literals, place);
                let pair = Pair { reference: &domain, nest: &domain, given: &given, lift: &Clone::clone };
                self.in_domains(setting, sizes, seed, fuel, &pair)
            }
            Setting::Rationals => {
                let domain = Partial(ShortRational);
                let given = |place| inputs::rational(literals, place);
                let pair = Pair { reference: &domain, nest: &domain, given: &given, lift: &Clone::clone };
                self.in_domains(setting, sizes, seed, fuel, &pair)
            }
            Setting::Machine | Setting::Nans | Setting::Infinities => {
                let given = |place| inputs::machine(setting, place);
                let lift = |value: &Scalar| Measured::given(*value);
                let pair = Pair { reference: &Magnitude, nest: &Garbage, given: &given, lift: &lift };
                self.in_domains(setting, sizes, seed, fuel, &pair)
            }
            Setting::Bits => {
                let given = |place| inputs::machine(setting, place);
                let pair = Pair { reference: &Machine, nest: &Garbage, given: &given, lift: &|value| *value };
                self.in_domains(setting, sizes, seed, fuel, &pair)
            }
        }
    }

    fn in_domains<R: Domain, N: Domain>(
        &mut self,
        setting: Setting,
        sizes: &[(Name, i64)],
        seed: u64,
        fuel: &mut u64,
        pair: &Pair<'_, R, N>,
    ) -> Found
    where
        R::Value: Judge<N::Value>,
        N::Value: Shown,
    {
        // Preparing takes a look at every term and statement, some ten times as fast as running it.
        let overhead = (self.program.terms.len() + self.nest.terms.len()) as u64 / 8;
        let inputs = match fuel.checked_sub(overhead) {
            Some(left) => {
                *fuel = left;
                self.inputs(sizes, seed, fuel, pair)
            }
            None => Err(Skipped::Steps),
        };
        let inputs = match inputs {
            Ok(inputs) => inputs,
            Err(skipped) => return Found::Skipped(skipped),
        };
        let expected = match self.expected(sizes, &inputs, fuel, pair) {
            Ok(expected) => expected,
            Err(skipped) => return Found::Skipped(skipped),
        };
        let different = |output: Name, index: Vec<i64>, expected: String, found: String| {
            let sizes = sizes.to_vec();
            let [expected, found] =
                [expected, found].map(|text| if setting == Setting::Integers { signed(text) } else { text });
            Found::Differs(Box::new(Difference { setting, sizes, seed, output, index, expected, found }))
        };
        let first = self.program.outputs.first().map_or(self.program.name, |(name, _)| *name);
        let failed = |error: &EvalError| different(first, Vec::new(), "values".into(), error.to_string());
        let run = Interpreter::new(self.nest, pair.nest, sizes.iter().copied(), inputs)
            .and_then(|interpreter| interpreter.run_within(fuel, self.observer));
        let found = match run {
            Ok(found) => found,
            Err(EvalError::Fuel | EvalError::Memory) => return Found::Skipped(Skipped::Steps),
            // Loops compute whole tensors, the meaning only what is read of them.
            Err(EvalError::Fault(Fault::Unsupported(_) | Fault::TooLarge)) => return Found::Skipped(Skipped::Setting),
            Err(error) => return failed(&error),
        };
        let (mut elements, mut digest) = (0, Digest::new());
        for ((name, expected), (_, found)) in expected.iter().zip(&found) {
            if expected.shape() != found.shape() {
                let [expected, found] = [expected.shape(), found.shape()].map(|shape| format!("the shape {shape:?}"));
                return different(*name, Vec::new(), expected, found);
            }
            let shape = found.shape();
            for (position, (expected, found)) in expected.data().iter().zip(found.data()).enumerate() {
                digest.add(&expected.as_ref().map_or_else(|| "none".into(), |value| value.text()));
                let Some(expected) = expected else { continue };
                match expected.judge(found, setting) {
                    Some(true) => elements += 1,
                    None => {}
                    Some(false) => {
                        let index = index_of(shape, position);
                        return different(*name, index, expected.text(), found.text());
                    }
                }
            }
        }
        if expected.len() != found.len() {
            return different(
                first,
                Vec::new(),
                format!("{} outputs", expected.len()),
                format!("{} outputs", found.len()),
            );
        }
        Found::Same(Point { setting, sizes: sizes.to_vec(), seed, elements, digest: digest.0 })
    }

    /// The inputs, as the loops get them.
    fn inputs<R: Domain, N: Domain>(
        &self,
        sizes: &[(Name, i64)],
        seed: u64,
        fuel: &mut u64,
        pair: &Pair<'_, R, N>,
    ) -> Result<Named<N::Value>, Skipped> {
        let mut inputs = Vec::with_capacity(self.program.inputs.len());
        for (input, parameter) in self.program.inputs.iter().enumerate() {
            let shape = self.shape_of(&parameter.ty, sizes).ok_or(Skipped::Sizes)?;
            let count = shape.iter().fold(1usize, |product, size| product.saturating_mul(*size));
            *fuel = fuel.checked_sub(1 + count as u64 / 8).ok_or(Skipped::Steps)?;
            let element = |position: usize| -> Result<N::Value, Skipped> {
                Ok((pair.given)(Place { seed, input, position, count, elem: parameter.ty.elem }))
            };
            let tensor = Tensor::from_fn(shape, element).ok_or(Skipped::Steps)??;
            inputs.push((parameter.name, tensor));
        }
        Ok(inputs)
    }

    /// What the program means; none for an element that has no value.
    fn expected<R: Domain, N: Domain>(
        &self,
        sizes: &[(Name, i64)],
        inputs: &Named<N::Value>,
        fuel: &mut u64,
        pair: &Pair<'_, R, N>,
    ) -> Result<Named<Option<R::Value>>, Skipped> {
        let inputs = || inputs.iter().map(|(name, tensor)| (*name, tensor.map(|value| (pair.lift)(value))));
        let evaluator =
            || Evaluator::new(self.program, pair.reference, sizes.iter().copied(), inputs()).map_err(skipped);
        match evaluator()?.run_within(fuel) {
            Ok(outputs) => {
                Ok(outputs.into_iter().map(|(name, tensor)| (name, tensor.map(|v| Some(v.clone())))).collect())
            }
            // A minimum over nothing somewhere: what does not depend on it is asked for element by element.
            Err(EvalError::EmptyReduction | EvalError::Fault(Fault::Undefined)) => {
                let mut evaluator = evaluator()?.with_fuel(*fuel);
                let outputs = self.by_element(sizes, &mut evaluator);
                *fuel = evaluator.fuel();
                outputs
            }
            Err(error) => Err(skipped(error)),
        }
    }

    fn by_element<R: Domain>(
        &self,
        sizes: &[(Name, i64)],
        evaluator: &mut Evaluator<'_, R>,
    ) -> Result<Named<Option<R::Value>>, Skipped> {
        let mut outputs = Vec::with_capacity(self.program.outputs.len());
        for (name, _) in &self.program.outputs {
            let shape = self.shape(*name, sizes);
            let element = |position: usize| match evaluator.element(*name, &index_of(&shape, position)) {
                Ok(value) => Ok(Some(value)),
                Err(EvalError::EmptyReduction | EvalError::Fault(Fault::Undefined)) => Ok(None),
                Err(error) => Err(skipped(error)),
            };
            outputs.push((*name, Tensor::from_fn(shape.clone(), element).ok_or(Skipped::Steps)??));
        }
        Ok(outputs)
    }

    fn shape_of(&self, ty: &certen_core::TensorType, sizes: &[(Name, i64)]) -> Option<Vec<usize>> {
        ty.shape_at(&|name| sizes.iter().find(|(known, _)| *known == name).map(|(_, size)| *size)).ok()
    }

    /// The shape of an output.
    fn shape(&self, output: Name, sizes: &[(Name, i64)]) -> Vec<usize> {
        let source = self.program.outputs.iter().find(|(name, _)| *name == output).map(|(_, source)| *source);
        let ty = source.and_then(|source| self.program.type_of(source));
        ty.and_then(|ty| self.shape_of(ty, sizes)).unwrap_or_default()
    }
}

fn skipped(error: EvalError) -> Skipped {
    match error {
        EvalError::Fuel | EvalError::Memory => Skipped::Steps,
        EvalError::Fault(_) => Skipped::Setting,
        _ => Skipped::Sizes,
    }
}

/// The domains of both sides, and the inputs of both.
struct Pair<'a, R: Domain, N: Domain> {
    reference: &'a R,
    nest: &'a N,
    given: &'a dyn Fn(Place) -> N::Value,
    lift: &'a dyn Fn(&N::Value) -> R::Value,
}

/// A value for people, and for digests.
trait Shown {
    fn text(&self) -> String;
}

/// A value of the meaning beside one of the loops.
trait Judge<Found>: Shown {
    /// Whether they agree; none if nothing can be said.
    fn judge(&self, found: &Found, setting: Setting) -> Option<bool>;
}

impl<V: fmt::Display> Shown for Option<V> {
    fn text(&self) -> String {
        self.as_ref().map_or_else(|| "undefined".into(), V::to_string)
    }
}

impl Judge<Option<Element>> for Option<Element> {
    fn judge(&self, found: &Option<Element>, _: Setting) -> Option<bool> {
        self.as_ref().map(|expected| found.as_ref() == Some(expected))
    }
}

impl Judge<Option<Exact>> for Option<Exact> {
    fn judge(&self, found: &Option<Exact>, _: Setting) -> Option<bool> {
        self.as_ref().map(|expected| found.as_ref() == Some(expected))
    }
}

impl Shown for Scalar {
    fn text(&self) -> String {
        self.to_string()
    }
}

impl Judge<Scalar> for Scalar {
    fn judge(&self, found: &Scalar, _: Setting) -> Option<bool> {
        Some(self.same_bits(found))
    }
}

impl Shown for Measured {
    fn text(&self) -> String {
        self.value.to_string()
    }
}

impl Judge<Scalar> for Measured {
    fn judge(&self, found: &Scalar, _: Setting) -> Option<bool> {
        self.is_known().then(|| self.accepts(*found))
    }
}

/// The machine, on which memory that nothing was written to is something.
struct Garbage;

impl Domain for Garbage {
    type Value = Scalar;

    fn literal(&self, literal: Literal, elem: ElemType) -> Result<Scalar, Fault> {
        Machine.literal(literal, elem)
    }

    fn index(&self, index: i64, elem: ElemType) -> Result<Scalar, Fault> {
        Machine.index(index, elem)
    }

    fn undefined(&self, elem: ElemType) -> Result<Scalar, Fault> {
        Ok(if elem.is_float() { Scalar::from_f64(f64::NAN, elem) } else { Scalar::from_i64(0x5a5a_5a5a, elem) })
    }

    fn unary(&self, op: Unary, elem: ElemType, a: &Scalar) -> Result<Scalar, Fault> {
        Machine.unary(op, elem, a)
    }

    fn binary(&self, op: Binary, elem: ElemType, a: &Scalar, b: &Scalar) -> Result<Scalar, Fault> {
        Machine.binary(op, elem, a, b)
    }

    fn fma(&self, elem: ElemType, a: &Scalar, b: &Scalar, c: &Scalar) -> Result<Scalar, Fault> {
        Machine.fma(elem, a, b, c)
    }

    fn choose(&self, cond: &Scalar, a: &Scalar, b: &Scalar) -> Result<Scalar, Fault> {
        Machine.choose(cond, a, b)
    }

    fn cast(&self, from: ElemType, to: ElemType, a: &Scalar) -> Result<Scalar, Fault> {
        Machine.cast(from, to, a)
    }
}

/// A small integer as people write it, which the field has as its representative.
fn signed(text: String) -> String {
    match text.parse::<u64>() {
        Ok(number) if number > MODULUS / 2 => format!("-{}", MODULUS - number.min(MODULUS)),
        _ => text,
    }
}

/// The field, in which a comparison is a random function of what is compared.
struct Coins(Field);

impl Coins {
    fn toss(&self, salt: u64, elem: ElemType, a: &Element, b: &Element) -> Element {
        let bits = |element: &Element| match element {
            Element::Number(number) => *number,
            Element::Bool(truth) => u64::from(*truth),
        };
        let mixed = splitmix(splitmix(bits(a) ^ splitmix(salt ^ self.0.seed)) ^ bits(b));
        Element::Bool((mixed ^ elem as u64) & 1 == 1)
    }
}

impl Domain for Coins {
    type Value = Element;

    fn literal(&self, literal: Literal, elem: ElemType) -> Result<Element, Fault> {
        self.0.literal(literal, elem)
    }

    fn index(&self, index: i64, elem: ElemType) -> Result<Element, Fault> {
        self.0.index(index, elem)
    }

    fn unary(&self, op: Unary, elem: ElemType, a: &Element) -> Result<Element, Fault> {
        self.0.unary(op, elem, a)
    }

    fn binary(&self, op: Binary, elem: ElemType, a: &Element, b: &Element) -> Result<Element, Fault> {
        match op {
            Binary::Eq => Ok(self.toss(1, elem, a, b)),
            Binary::Ne => self.0.unary(Unary::Not, ElemType::Bool, &self.toss(1, elem, a, b)),
            Binary::Lt => Ok(self.toss(2, elem, a, b)),
            Binary::Le => Ok(self.toss(3, elem, a, b)),
            _ => self.0.binary(op, elem, a, b),
        }
    }

    fn choose(&self, cond: &Element, a: &Element, b: &Element) -> Result<Element, Fault> {
        self.0.choose(cond, a, b)
    }

    fn cast(&self, from: ElemType, to: ElemType, a: &Element) -> Result<Element, Fault> {
        self.0.cast(from, to, a)
    }
}

/// FNV-1a, 64 bits, of lines.
struct Digest(u64);

impl Digest {
    fn new() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, line: &str) {
        for byte in line.bytes().chain([b'\n']) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
