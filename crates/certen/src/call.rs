//! Calls: which arrays a program is run on, and the sizes that follow from them.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Display;

use certen_core::domain::Scalar;
use certen_core::{ElemType, Parameter, Program, TensorType};
use certen_index::Ix;
use certen_lang::Known;
use certen_loops::{LoopProgram, peak_bytes};
use certen_runtime::{Array, ArrayError, RuntimeError, available_bytes};
use certen_syntax::{Code, Diagnostic, Name, Remedy, Rule};

use crate::pipeline::Module;

/// What an input holds.
pub enum Input {
    /// These elements.
    Array(Array),
    /// Numbers from a fixed generator with this seed, uniform in [0, 1).
    Random(u64),
    /// 0, 1, 2, … row by row.
    Iota,
    /// The same whole number everywhere.
    Whole(i128),
    /// The same number everywhere.
    Fill(f64),
}

impl From<Array> for Input {
    fn from(array: Array) -> Input {
        Input::Array(array)
    }
}

/// Inputs and sizes for a run.
#[derive(Default)]
pub struct Call {
    pub(crate) inputs: BTreeMap<Name, Input>,
    pub(crate) dims: BTreeMap<Name, i64>,
    pub(crate) allow_missing: bool,
}

impl Call {
    /// Nothing given yet.
    pub fn new() -> Call {
        Call::default()
    }

    /// Gives an input.
    pub fn input(mut self, name: impl Into<Name>, input: impl Into<Input>) -> Call {
        self.inputs.insert(name.into(), input.into());
        self
    }

    /// Gives a size.
    pub fn dim(mut self, name: impl Into<Name>, size: i64) -> Call {
        self.dims.insert(name.into(), size);
        self
    }

    /// The inputs that are given, by name.
    pub fn inputs(&self) -> impl Iterator<Item = (Name, &Input)> {
        self.inputs.iter().map(|(name, input)| (*name, input))
    }

    /// Lets inputs be missing: they are uninitialised, which only the domain of undefined values can bear.
    pub fn allow_missing(mut self) -> Call {
        self.allow_missing = true;
        self
    }

    /// What the call tells of a `.ten` function that leaves ranks or element types open: those of its arrays, and its
    /// numbers.
    pub fn known(&self) -> Known {
        let arrays = || {
            self.inputs.iter().filter_map(|(name, input)| match input {
                Input::Array(array) => Some((*name, array)),
                Input::Random(_) | Input::Iota | Input::Whole(_) | Input::Fill(_) => None,
            })
        };
        Known {
            ranks: arrays().map(|(name, array)| (name, array.shape().len())).collect(),
            elems: arrays().map(|(name, array)| (name, array.elem())).collect(),
            values: self.dims.clone(),
        }
    }
}

/// A call whose sizes are known and whose arrays fit.
pub(crate) struct BoundCall<'a> {
    /// The sizes, in the program's order.
    pub sizes: Vec<i64>,
    /// The inputs, in the program's order; none where one is missing and may be.
    pub inputs: Vec<Option<InputArray<'a>>>,
}

/// An input: the caller's array, or one made for the call.
pub(crate) enum InputArray<'a> {
    /// The caller's, not copied.
    Borrowed(&'a Array),
    /// Made for the call.
    Owned(Array),
}

impl InputArray<'_> {
    /// The array.
    pub fn array(&self) -> &Array {
        match self {
            InputArray::Borrowed(array) => array,
            InputArray::Owned(array) => array,
        }
    }
}

/// The largest magnitude of a size that memory does not limit: one that is no dimension of an input, and the product of
/// those beside a size 0.
const MAX_PARAMETER: u64 = 1 << 31;

/// A size's value and what told it.
type Sizes = BTreeMap<Name, (i64, String)>;

impl Call {
    /// Finds the sizes of a call and checks everything against the program. `bytes` is what an element takes in memory;
    /// with loops, they say which buffers there are, else the program as written does.
    ///
    /// # Errors
    /// If an input is missing, unknown, or of the wrong shape or type; if a size is unknown, contradictory or excluded
    /// by the program; if memory does not suffice.
    pub(crate) fn bind<'a>(
        &'a self,
        module: &Module,
        loops: Option<&LoopProgram>,
        bytes: impl Fn(ElemType) -> usize,
    ) -> Result<BoundCall<'a>, Box<Diagnostic>> {
        let program = module.core();
        self.given().known_names(module, self.allow_missing)?;
        let fitted = self.given().fit(module, loops, bytes)?;
        let mut inputs = Vec::with_capacity(program.inputs.len());
        for parameter in &program.inputs {
            let expected = || concrete(parameter.name, &parameter.ty, &fitted.value());
            inputs.push(match self.inputs.get(&parameter.name) {
                None => None,
                Some(Input::Array(array)) => Some(InputArray::Borrowed(array)),
                Some(Input::Random(seed)) => {
                    Some(made(parameter.name, Array::random(parameter.ty.elem, &expected()?, *seed))?)
                }
                Some(Input::Iota) => Some(made(parameter.name, Array::iota(parameter.ty.elem, &expected()?))?),
                Some(Input::Whole(value)) => {
                    let scalar = whole(*value, parameter.ty.elem).ok_or_else(|| no_element(parameter, value))?;
                    Some(made(parameter.name, Array::filled(&expected()?, scalar))?)
                }
                Some(Input::Fill(value)) => {
                    let scalar = number(*value, parameter.ty.elem).ok_or_else(|| no_element(parameter, value))?;
                    Some(made(parameter.name, Array::filled(&expected()?, scalar))?)
                }
            });
        }
        Ok(BoundCall { sizes: fitted.sizes(program), inputs })
    }

    /// Refuses loops that take more memory at a time than there is, with inputs that fit the program.
    pub(crate) fn check_memory(&self, module: &Module, loops: &LoopProgram) -> Result<(), Box<Diagnostic>> {
        self.given().fit(module, Some(loops), ElemType::bytes).map(drop)
    }

    /// What is given, without the elements.
    fn given(&self) -> Arguments<'_> {
        fn shape(input: &Input) -> Option<(ElemType, &[usize])> {
            match input {
                Input::Array(array) => Some((array.elem(), array.shape())),
                Input::Random(_) | Input::Iota | Input::Whole(_) | Input::Fill(_) => None,
            }
        }
        Arguments { inputs: self.inputs.iter().map(|(name, input)| (*name, shape(input))).collect(), dims: &self.dims }
    }
}

/// What a call gives: the inputs with their types and shapes, or nothing of those that are yet to be made; and sizes.
pub(crate) struct Arguments<'a> {
    pub inputs: BTreeMap<Name, Option<(ElemType, &'a [usize])>>,
    pub dims: &'a BTreeMap<Name, i64>,
}

/// The sizes of a call.
pub(crate) struct Fitted {
    known: Sizes,
    /// What the call needs in memory besides the arrays that are given.
    pub bytes: u128,
}

impl Fitted {
    /// A size's value.
    fn value(&self) -> impl Fn(Name) -> Option<i64> {
        |name| self.known.get(&name).map(|(value, _)| *value)
    }

    /// The values of a program's sizes, in its order.
    pub fn sizes(&self, program: &Program) -> Vec<i64> {
        program.sizes.iter().map(|name| self.value()(*name).unwrap_or(0)).collect()
    }
}

impl Arguments<'_> {
    /// Finds the sizes and checks everything against the program: see [`Call::bind`].
    pub fn fit(
        &self,
        module: &Module,
        loops: Option<&LoopProgram>,
        bytes: impl Fn(ElemType) -> usize,
    ) -> Result<Fitted, Box<Diagnostic>> {
        let program = module.core();
        let known = self.sizes(program)?;
        let value = |name: Name| known.get(&name).map(|(value, _)| *value);
        // Dimensions are limited by memory, or by `concrete`. What is no dimension is limited here, so that index
        // arithmetic, which is proved for all integers, does not leave the machine's.
        let dimensions: HashSet<Ix> = program.inputs.iter().flat_map(|input| input.ty.shape.iter().cloned()).collect();
        for (name, (value, by)) in &known {
            if value.unsigned_abs() > MAX_PARAMETER && !dimensions.contains(&Ix::var(*name)) {
                let text =
                    format!("{name} = {value} ({by}) is too large: an index parameter is at most {MAX_PARAMETER}");
                return Err(Box::new(fail(Code::E0409, text)));
            }
        }
        for fact in &program.facts {
            if !fact.eval(&value).unwrap_or(false) {
                let mut names = Default::default();
                fact.collect_names(&mut names);
                let told =
                    names.iter().filter_map(|name| known.get(name).map(|(v, by)| format!("{name} = {v} ({by})")));
                let told: Vec<String> = told.collect();
                let error = fail(Code::E0409, format!("the program holds only where {fact}"));
                return Err(Box::new(error.note(format!("here {}", told.join(", ")))));
            }
        }
        let shape = |name: Name, ty: &TensorType| concrete(name, ty, &value);
        for parameter in &program.inputs {
            let expected = shape(parameter.name, &parameter.ty)?;
            if let Some(Some((elem, found))) = self.inputs.get(&parameter.name) {
                check_array(parameter, (*elem, found), &expected, &known)?;
            }
        }
        let own = loops.map(|loops| peak_bytes(loops, &value, &bytes));
        let bytes = self.fits_in_memory(program, own, bytes, &shape)?;
        Ok(Fitted { known, bytes })
    }

    /// Every name that is given is one of the program's, and every input that it needs is given.
    pub fn known_names(&self, module: &Module, allow_missing: bool) -> Result<(), Box<Diagnostic>> {
        let program = module.core();
        let have_values = module.inputs_have_values();
        let is_fixed = |name: &Name| module.fixed().is_some_and(|fixed| fixed.contains_key(name));
        let list = |names: Vec<Name>| match names.as_slice() {
            [] => "the program has none".to_owned(),
            names => format!("it has {}", names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")),
        };
        let inputs: Vec<Name> = program.inputs.iter().map(|input| input.name).collect();
        if let Some(unknown) = self.inputs.keys().find(|name| !inputs.contains(name)) {
            let error = fail(Code::E0402, format!("the program has no input `{unknown}`"));
            return Err(Box::new(error.note(list(inputs))));
        }
        if let Some(unknown) = self.dims.keys().find(|name| !program.sizes.contains(name) && !is_fixed(name)) {
            let error = fail(Code::E0402, format!("the program has no size `{unknown}`"));
            return Err(Box::new(error.note(list(program.sizes.clone()))));
        }
        let missing: Vec<String> = program
            .inputs
            .iter()
            .filter(|input| (have_values || !allow_missing) && !self.inputs.contains_key(&input.name))
            .map(|input| format!("`{}` : {}", input.name, input.ty))
            .collect();
        if !missing.is_empty() {
            let error = fail(Code::E0401, format!("missing input: {}", missing.join(", ")));
            let error = if allow_missing {
                error.rule(Rule { name: "d-in-var", paper: "model language, Fig. 15" })
            } else {
                error
            };
            return Err(Box::new(error.remedy(Remedy::Input)));
        }
        Ok(())
    }

    /// The sizes, from `dim` and from the arrays: a dimension `n`, `n + 1` or `2*n` tells n.
    fn sizes(&self, program: &Program) -> Result<Sizes, Box<Diagnostic>> {
        let mut known: Sizes = self.dims.iter().map(|(name, value)| (*name, (*value, "the call".to_owned()))).collect();
        let mut waiting: Vec<(&Ix, i64, String)> = Vec::new();
        for parameter in &program.inputs {
            let Some(Some((_, shape))) = self.inputs.get(&parameter.name) else { continue };
            if shape.len() != parameter.ty.rank() {
                let text = format!(
                    "`{}` has {} dimensions, {:?}, but the program declares {}",
                    parameter.name,
                    shape.len(),
                    shape,
                    parameter.ty
                );
                return Err(Box::new(fail(Code::E0403, text)));
            }
            for (at, (size, &found)) in parameter.ty.shape.iter().zip(*shape).enumerate() {
                let told = format!("dimension {} of `{}`", at + 1, parameter.name);
                waiting.push((size, i64::try_from(found).unwrap_or(i64::MAX), told));
            }
        }
        // Each round learns a size or ends; dimensions that mention a single unknown size tell it.
        loop {
            let before = known.len();
            waiting.retain(|(size, found, told)| match solve(size, *found, &known) {
                Some((name, value)) => {
                    known.insert(name, (value, told.clone()));
                    false
                }
                None => true,
            });
            if known.len() == before {
                break;
            }
        }
        if let Some(unknown) = program.sizes.iter().find(|name| !known.contains_key(name)) {
            let error = fail(Code::E0406, format!("the size `{unknown}` is not known"));
            return Err(Box::new(error.remedy(Remedy::Size(*unknown, 100))));
        }
        Ok(known)
    }

    /// What a run takes in memory; refused if there is less. Counted are the tensors made for the call, the results,
    /// and what is held at a time on the way: `own` bytes if that is known, else the largest set of intermediate
    /// tensors that is needed at a time. `bytes` is what an element takes.
    fn fits_in_memory(
        &self,
        program: &Program,
        own: Option<u128>,
        bytes: impl Fn(ElemType) -> usize,
        shape: &impl Fn(Name, &TensorType) -> Result<Vec<usize>, Box<Diagnostic>>,
    ) -> Result<u128, Box<Diagnostic>> {
        let types = program.types();
        let size = |name: Name, ty: &TensorType| -> Result<u128, Box<Diagnostic>> {
            let count = shape(name, ty)?.iter().try_fold(1u128, |n, &size| n.checked_mul(size as u128));
            Ok(count.and_then(|n| n.checked_mul(bytes(ty.elem) as u128)).unwrap_or(u128::MAX))
        };
        let mut always = 0u128;
        for input in &program.inputs {
            if !matches!(self.inputs.get(&input.name), Some(Some(_))) {
                always = always.saturating_add(size(input.name, &input.ty)?);
            }
        }
        for (name, source) in &program.outputs {
            if let Some(ty) = types.get(source) {
                always = always.saturating_add(size(*name, ty)?);
            }
        }
        let shown: HashSet<Name> = program.outputs.iter().map(|(_, source)| *source).collect();
        let (mut now, mut peak) = (0u128, 0u128);
        for (binding, last_uses) in program.bindings.iter().zip(program.last_uses()) {
            let Some(last_uses) = last_uses.filter(|_| !shown.contains(&binding.name)) else { continue };
            now = now.saturating_add(size(binding.name, program.terms.ty(binding.term))?);
            peak = peak.max(now);
            for name in last_uses {
                if let Some(ty) = types.get(&name) {
                    now = now.saturating_sub(size(name, ty)?);
                }
            }
        }
        let total = always.saturating_add(own.unwrap_or(peak));
        is_free(total)?;
        Ok(total)
    }
}

/// Refuses a run that needs more bytes than there are.
pub(crate) fn is_free(bytes: u128) -> Result<(), Box<Diagnostic>> {
    let limit = available_bytes().map_or(i64::MAX as u128, u128::from);
    if bytes > limit {
        let text = format!("the tensors of this run need {} MiB, but {} MiB are free", bytes >> 20, limit >> 20);
        return Err(Box::new(fail(Code::E0408, text)));
    }
    Ok(())
}

fn fail(code: Code, text: String) -> Diagnostic {
    Diagnostic::error(code, None, text)
}

/// The value of the one size in `size` that is not known, if the dimension's value tells it.
fn solve(size: &Ix, found: i64, known: &Sizes) -> Option<(Name, i64)> {
    let mut names = Default::default();
    size.collect_names(&mut names);
    let mut unknown = names.into_iter().filter(|name| !known.contains_key(name));
    let (Some(name), None) = (unknown.next(), unknown.next()) else { return None };
    let at = |value: i64| size.eval(&|n| if n == name { Some(value) } else { known.get(&n).map(|(v, _)| *v) }).ok();
    // Sizes are affine in a single name wherever this can succeed: try the value that two points predict.
    let (zero, one) = (at(0)?, at(1)?);
    let slope = one.checked_sub(zero).filter(|&slope| slope != 0)?;
    let value = found.checked_sub(zero)?.checked_div(slope)?;
    (at(value) == Some(found)).then_some((name, value))
}

/// The sizes of a tensor. One without elements takes no memory, however large its other sizes are, but loops go through
/// them: their product is limited, so that a file of a hundred bytes cannot keep a run busy for ever.
fn concrete(name: Name, ty: &TensorType, value: &impl Fn(Name) -> Option<i64>) -> Result<Vec<usize>, Box<Diagnostic>> {
    let sizes = ty.shape.iter().map(|size| {
        let found =
            size.eval(value).map_err(|error| fail(Code::E0403, format!("{size}, a size of `{name}`: {error}")))?;
        usize::try_from(found).map_err(|_| fail(Code::E0403, format!("{size}, a size of `{name}`, is {found}")))
    });
    let sizes = sizes.collect::<Result<Vec<usize>, _>>().map_err(Box::new)?;
    let others = sizes.iter().filter(|size| **size != 0).fold(1u64, |n, &size| n.saturating_mul(size as u64));
    if sizes.contains(&0) && others > MAX_PARAMETER {
        let text =
            format!("`{name}` has the shape {sizes:?}, which is too large for loops although it has no elements");
        let error = fail(Code::E0409, text);
        return Err(Box::new(
            error.note(format!("beside a size 0, the product of the others is at most {MAX_PARAMETER}")),
        ));
    }
    Ok(sizes)
}

fn check_array(
    Parameter { name, ty }: &Parameter,
    (elem, shape): (ElemType, &[usize]),
    expected: &[usize],
    known: &Sizes,
) -> Result<(), Box<Diagnostic>> {
    if elem != ty.elem {
        let error =
            fail(Code::E0404, format!("`{name}` has elements of type {elem}, but the program wants {}", ty.elem));
        return Err(Box::new(error.remedy(Remedy::Elem)));
    }
    if shape != expected {
        let text = format!("`{name}` has shape {shape:?}, but {ty} is {expected:?} here");
        let mut names = Default::default();
        ty.shape.iter().for_each(|size| size.collect_names(&mut names));
        let told: Vec<String> = names
            .iter()
            .filter_map(|name| known.get(name).map(|(value, by)| format!("{name} = {value} comes from {by}")))
            .collect();
        return Err(Box::new(told.into_iter().fold(fail(Code::E0403, text), Diagnostic::note)));
    }
    Ok(())
}

fn made<'a>(name: Name, array: Result<Array, ArrayError>) -> Result<InputArray<'a>, Box<Diagnostic>> {
    array.map(InputArray::Owned).map_err(|error| {
        let error = RuntimeError::Array { which: format!("`{name}`"), error };
        Box::new(fail(error.code(), error.to_string()))
    })
}

/// A whole number as an element: the nearest float, else the number itself if the type holds it.
fn whole(value: i128, elem: ElemType) -> Option<Scalar> {
    match elem {
        ElemType::F64 => Some(Scalar::F64(value as f64)),
        ElemType::F32 => Some(Scalar::F32(value as f32)),
        ElemType::I64 | ElemType::I32 | ElemType::U8 | ElemType::Bool => {
            let value = i64::try_from(value).ok()?;
            let scalar = Scalar::from_i64(value, elem);
            (scalar.cast(ElemType::I64) == Scalar::I64(value)).then_some(scalar)
        }
    }
}

/// A number as an element, in the same way.
fn number(value: f64, elem: ElemType) -> Option<Scalar> {
    match elem.is_float() {
        true => Some(Scalar::from_f64(value, elem)),
        // Exact, or larger than any element.
        false => (value.fract() == 0.0).then(|| whole(value as i128, elem)).flatten(),
    }
}

fn no_element(Parameter { name, ty }: &Parameter, value: impl Display) -> Box<Diagnostic> {
    Box::new(fail(Code::E0404, format!("`{name}` has elements of type {}, and {value} is none", ty.elem)))
}
