//! The examination of a compiler: many small kernels, every element beside the loop interpreter.
//!
//! A [`Specimen`] takes the road of every program, from its text to loops; the interpreter says which bits its outputs have
//! for the inputs of a trial, tame and wild ones. That is made once, in batches; then each compiler and instruction set gets
//! the same translation units, with the flags of real kernels, and all their elements are compared.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use certen_core::domain::{Machine, Scalar};
use certen_core::{ElemType, Named, Parameter, Tensor, index_of};
use certen_loops::{Interpreter, LoopProgram};
use certen_runtime::{Array, Cache, Compiler, RuntimeError, default_threads, with_threads};
use certen_syntax::{Diagnostic, Name};

use crate::batch::Batch;
use crate::check::scheduled;
use crate::options::Options;
use crate::pipeline::Module;
use crate::ten::TenFile;
use crate::texts::Imports;
use crate::trial::beside::{THREADS, other_than};
use crate::trial::given::{Set, TrialInputs};

/// Kernels of a translation unit.
const TOGETHER: usize = 64;

/// Differences that are kept: the first ones tell enough.
const KEPT: usize = 20;

/// A kernel that compilers are examined with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Specimen {
    /// In the `.ten` language: one function `f`.
    pub text: String,
    /// Steps that its loops are transformed by.
    pub schedule: Option<String>,
    /// The sizes that it is called with.
    pub sizes: Vec<Vec<(&'static str, i64)>>,
}

impl fmt::Display for Specimen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        self.schedule.as_ref().map_or(Ok(()), |steps| write!(f, "\nwith the schedule {steps}"))
    }
}

/// An element that a compiler's code computes differently.
#[derive(Clone, Debug)]
pub struct WrongElement {
    /// The kernel.
    pub specimen: Specimen,
    /// Its loops, as they are printed in C.
    pub loops: String,
    /// The sizes of the call.
    pub sizes: Vec<(Name, i64)>,
    /// The element: `result[3, 1]`.
    pub element: String,
    /// What it is.
    pub found: Scalar,
    /// What it has to be.
    pub expected: Scalar,
}

impl fmt::Display for WrongElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.sizes.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        let at = if sizes.is_empty() { String::new() } else { format!(" at {}", sizes.join(", ")) };
        write!(f, "{} is {}, not {}{at} in\n{}", self.element, self.found, self.expected, self.specimen)
    }
}

/// What an examination has found.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Kernels that were compiled.
    pub kernels: usize,
    /// Elements that were compared.
    pub elements: u64,
    /// Elements that differ.
    pub wrong: u64,
    /// The first elements that differ, one for each output of a call.
    pub differences: Vec<WrongElement>,
}

impl Findings {
    fn add(&mut self, other: Findings) {
        self.kernels += other.kernels;
        self.elements += other.elements;
        self.wrong += other.wrong;
        let room = KEPT.saturating_sub(self.differences.len());
        self.differences.extend(other.differences.into_iter().take(room));
    }
}

/// Kernels with all that their outputs have to be.
#[derive(Debug)]
pub struct Examination {
    batches: Vec<PreparedBatch>,
    /// Kernels that have no code, and why: a step of their schedule may be refused.
    pub refused: Vec<(Specimen, String)>,
}

/// A translation unit, and what each output of its calls has to be.
#[derive(Debug)]
struct PreparedBatch {
    batch: Batch,
    c: Result<String, String>,
    outputs: Vec<Output>,
    refused: Vec<(Specimen, String)>,
}

#[derive(Debug)]
struct Output {
    specimen: Specimen,
    loops: String,
    sizes: Vec<(Name, i64)>,
    name: Name,
    expected: Tensor<Scalar>,
}

impl Examination {
    /// Takes kernels to their loops and runs these. `progress` is told of each kernel.
    pub fn new(specimens: Vec<Specimen>, progress: &(dyn Fn(usize) + Sync)) -> Examination {
        let chunks: Vec<&[Specimen]> = specimens.chunks(TOGETHER).collect();
        let mut batches = in_parallel(&chunks, |chunk| {
            let prepared = PreparedBatch::new(chunk);
            progress(chunk.len());
            prepared
        });
        let refused = batches.iter_mut().flat_map(|batch| std::mem::take(&mut batch.refused)).collect();
        Examination { batches, refused }
    }

    /// How many kernels are compiled.
    pub fn kernels(&self) -> usize {
        self.batches.iter().map(|prepared| prepared.batch.len()).sum()
    }

    /// Compiles all kernels with a compiler and its flags, calls them, and compares. `progress` is told of each kernel.
    ///
    /// # Errors
    /// If the compiler fails, or what it makes cannot be loaded or called.
    pub fn with(&self, compiler: &Compiler, progress: &(dyn Fn(usize) + Sync)) -> Result<Findings, RuntimeError> {
        let cache = Cache::temporary()?.with_max_bytes(0);
        let each = in_parallel(&self.batches, |prepared| {
            let found = prepared.with(compiler, &cache);
            progress(prepared.batch.len());
            found
        });
        let mut all = Findings::default();
        for found in each {
            all.add(found?);
        }
        Ok(all)
    }
}

impl PreparedBatch {
    fn new(specimens: &[Specimen]) -> PreparedBatch {
        let batch = Batch::new();
        let mut prepared = PreparedBatch { batch, c: Ok(String::new()), outputs: Vec::new(), refused: Vec::new() };
        prepared.all(specimens);
        prepared.c = prepared.batch.c().map_err(|error| error.message);
        prepared
    }

    /// Adds kernels, which are read as one file; one that is no program is found by reading each for itself.
    fn all(&mut self, specimens: &[Specimen]) {
        let text = |(at, specimen): (usize, &Specimen)| {
            let steps = specimen.schedule.as_ref().map_or(String::new(), |steps| format!("{steps};"));
            format!("{}\nschedule f{at} {{ {steps} }}\n", specimen.text.replacen("fn f(", &format!("fn f{at}("), 1))
        };
        let text: String = specimens.iter().enumerate().map(text).collect();
        let file = TenFile::read("kernels.ten", text, &mut Imports::from_disk("kernels.ten"));
        match (file.map(|file| scheduled(&file, &Options::default())), specimens) {
            (Ok(modules), _) if modules.len() == specimens.len() => {
                for (specimen, module) in specimens.iter().zip(&modules) {
                    if let Err(why) = self.add(specimen, module) {
                        self.refused.push((specimen.clone(), why));
                    }
                }
            }
            (Ok(_), [only]) => self.refused.push((only.clone(), "it is not one function".into())),
            (Err(failure), [only]) => self.refused.push((only.clone(), failure.to_string())),
            _ => specimens.chunks(1).for_each(|each| self.all(each)),
        }
    }

    fn add(&mut self, specimen: &Specimen, module: &Module) -> Result<(), String> {
        let loops = module.loops().map_err(|failure| failure.to_string())?;
        let given = TrialInputs::new(module.core());
        let mut calls = Vec::new();
        for sizes in &specimen.sizes {
            let value = |name: Name| Some(sizes.iter().find(|(size, _)| name.as_str() == *size)?.1);
            let sizes: Option<Vec<(Name, i64)>> = loops.sizes.iter().map(|name| Some((*name, value(*name)?))).collect();
            let sizes = sizes.ok_or("a size has no value")?;
            for set in [Set::Tame, Set::Wild] {
                let inputs = inputs(loops, &sizes, &given, set)?;
                let run = Interpreter::new(loops, &Machine, sizes.iter().copied(), inputs.clone());
                let outputs = run.and_then(Interpreter::run).map_err(|error| error.to_string())?;
                calls.push((sizes.clone(), inputs, outputs));
            }
        }
        let refused = |violations: Vec<Diagnostic>| violations.into_iter().map(|it| it.message).collect::<Vec<_>>();
        self.batch.program(loops.clone()).map_err(|violations| refused(violations).join("; "))?;
        let text = loops.to_string();
        for (sizes, inputs, outputs) in calls {
            self.call(specimen, loops, &text, sizes, &inputs, outputs)?;
        }
        Ok(())
    }

    fn call(
        &mut self,
        specimen: &Specimen,
        loops: &LoopProgram,
        text: &str,
        sizes: Vec<(Name, i64)>,
        inputs: &Named<Scalar>,
        outputs: Named<Scalar>,
    ) -> Result<(), String> {
        let array = |(input, (_, tensor)): (&Parameter, &(Name, Tensor<Scalar>))| {
            Array::from_tensor(input.ty.elem, tensor).map_err(|error| error.to_string())
        };
        let arrays = loops.inputs.iter().zip(inputs).map(array).collect::<Result<Vec<_>, _>>()?;
        let mut before = Vec::new();
        for ((_, tensor), output) in outputs.iter().zip(&loops.outputs) {
            // Before the call each element holds something else; truth values are bytes, so that what is none shows.
            let other = tensor.map(|value| other_than(byte(*value)));
            let elem = if output.ty.elem == ElemType::Bool { ElemType::U8 } else { output.ty.elem };
            before.push(Array::from_tensor(elem, &other).map_err(|error| error.to_string())?);
        }
        self.batch.call(&sizes.iter().map(|(_, value)| *value).collect::<Vec<_>>(), arrays, before);
        self.outputs.extend(outputs.into_iter().map(|(name, tensor)| Output {
            specimen: specimen.clone(),
            loops: text.to_owned(),
            sizes: sizes.clone(),
            name,
            expected: tensor.map(|value| byte(*value)),
        }));
        Ok(())
    }

    fn with(&self, compiler: &Compiler, cache: &Cache) -> Result<Findings, RuntimeError> {
        let c = self.c.as_ref().map_err(|why| RuntimeError::BadKernel(why.clone()))?;
        let outputs = with_threads(THREADS, || self.batch.run(c, compiler, cache))?;
        let mut all = Findings { kernels: self.batch.len(), ..Findings::default() };
        for (found, wanted) in outputs.iter().zip(&self.outputs) {
            all.add(wanted.compared(found));
        }
        Ok(all)
    }
}

impl Output {
    fn compared(&self, found: &Array) -> Findings {
        let mut all = Findings { elements: self.expected.data().len() as u64, ..Findings::default() };
        let pairs = self.expected.data().iter().enumerate().map(|(at, expected)| (at, *expected, found.get(at)));
        let differ = |(at, expected, found): (usize, Scalar, Option<Scalar>)| {
            found.filter(|found| !found.same_bits(&expected)).map(|found| (at, expected, found))
        };
        for (at, expected, found) in pairs.filter_map(differ) {
            all.wrong += 1;
            if all.differences.is_empty() {
                let element = format!("{}{:?}", self.name, index_of(self.expected.shape(), at));
                let (specimen, loops, sizes) = (self.specimen.clone(), self.loops.clone(), self.sizes.clone());
                all.differences.push(WrongElement { specimen, loops, sizes, element, found, expected });
            }
        }
        all
    }
}

/// A truth value as a byte; anything else as it is.
fn byte(value: Scalar) -> Scalar {
    match value {
        Scalar::Bool(value) => Scalar::U8(u8::from(value)),
        other => other,
    }
}

fn inputs(loops: &LoopProgram, sizes: &[(Name, i64)], given: &TrialInputs, set: Set) -> Result<Named<Scalar>, String> {
    let value = |name: Name| Some(sizes.iter().find(|(size, _)| *size == name)?.1);
    let tensor = |(number, Parameter { name, ty }): (usize, &Parameter)| {
        let shape = ty.shape_at(&value).map_err(|error| error.to_string())?;
        let element = |position: usize| Ok::<_, String>(given.element(set, ty.elem, number, position));
        Ok((*name, Tensor::from_fn(shape, element).ok_or("there is no memory")??))
    };
    loops.inputs.iter().enumerate().map(tensor).collect()
}

/// Does some work for each thing, on as many threads as loops would have; the results are in the things' order.
fn in_parallel<T: Sync, R: Send>(things: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let threads = default_threads().map_or(1, NonZeroUsize::get).min(things.len().max(1));
    let worker = || {
        while let Some((at, thing)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            things.get(at).map(|thing| (at, thing))
        } {
            let result = work(thing);
            done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((at, result));
        }
    };
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(worker))));
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}
