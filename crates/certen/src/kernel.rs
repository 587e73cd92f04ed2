//! Kernels: a function that is called again and again, with arrays of whatever sizes.
//!
//! A [`Module`] is one program. A [`Kernel`] makes programs as calls need them: an instance for each rank and element
//! type that a `.ten` function leaves open, and of each instance a program for the sizes that it is called with, which
//! a compiler optimises best, but for the size of a batch, where small ones decide how its elements are computed. Since every such program has to be compiled, only the first few sizes get one; all others
//! are served by the program with symbolic sizes. Results have the same bits either way: numbers are put in after the
//! order of operations was chosen, for all sizes or for those of the call.
//!
//! Guarantees: what was prepared for some types and sizes is found again without looking at the program; kernels can be
//! called from several threads at once; no lock is held while something is compiled or run.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use certen_core::{ElemType, TensorType};
use certen_lang::Known;
use certen_runtime::{View, ViewMut, default_threads, with_threads};
use certen_syntax::schedule::Schedule;
use certen_syntax::{Code, Diagnostic, Name};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::call::{Arguments, is_free};
use crate::failure::Failure;
use crate::front::Accepted;
use crate::interface::{Interface, Param};
use crate::options::Options;
use crate::pipeline::{Module, SPECIALISED};
use crate::ten::TenFile;
use crate::texts::{Dialect, Texts};

/// For which sizes code is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sizing {
    /// For the first [`SPECIALISED`] combinations of sizes that a kernel is called with, each by itself.
    #[default]
    Specialised,
    /// Once, for all sizes.
    Symbolic,
}

/// How many calls with different types or sizes are remembered.
const REMEMBERED: usize = 4096;

/// From this many bytes on, every run asks whether there is still memory.
const LARGE: u128 = 1 << 28;

/// A function to be called with arrays.
///
/// ```
/// use certen::{Array, Kernel, Name, Options, Sizing};
///
/// let text = "fn scale(x: f64[n], factor: f64) -> f64[n] { factor * x }";
/// let kernel = Kernel::from_text("scale.ten", text, &Options::default(), Sizing::Specialised)?;
/// let (x, factor) = (Array::from_vec(&[3], vec![1.0, 2.0, 3.0])?, Array::from_vec(&[], vec![10.0])?);
///
/// let inputs = [(Name::new("x"), x.elem(), x.shape()), (Name::new("factor"), factor.elem(), factor.shape())];
/// let prepared = kernel.prepare(&inputs, &[])?;
/// let mut result = Array::zeros(prepared.outputs()[0].elem, &prepared.outputs()[0].shape)?;
/// prepared.run(&[(&x).into(), (&factor).into()], &mut [(&mut result).into()], None)?;
/// assert_eq!(result.as_slice::<f64>(), Some(&[10.0, 20.0, 30.0][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Kernel {
    text: Text,
    options: Options,
    sizing: Sizing,
    interface: Interface,
    /// The program with what is open left to the options, or why there is none.
    symbolic: Result<Arc<Instance>, Failure>,
    /// By ranks and element types; none where it takes the values of `size` parameters, then also by those.
    instances: Mutex<FxHashMap<CallKey, Option<Arc<Instance>>>>,
    prepared: RwLock<FxHashMap<CallKey, Arc<Prepared>>>,
    /// How many combinations of sizes got code of their own, or were tried.
    specialised: AtomicUsize,
}

/// A text of which programs are made: a `.ten` file is checked once for all of them.
enum Text {
    Ten(Arc<TenFile>),
    Other(Texts),
}

impl Text {
    fn read(texts: Texts) -> Result<Text, Failure> {
        match Dialect::of(texts.name()) {
            Some(Dialect::Ten) => Ok(Text::Ten(Arc::new(TenFile::of_texts(&texts)?))),
            _ => Ok(Text::Other(texts)),
        }
    }

    fn module(&self, options: &Options) -> Result<Module, Failure> {
        match self {
            Text::Ten(file) => Ok(Module::new(Accepted::ten(file, options)?, options)),
            Text::Other(texts) => Module::from_texts(texts, options),
        }
    }
}

/// What distinguishes calls: the names, element types and sizes of the inputs, and the numbers.
#[derive(Clone, PartialEq, Eq, Hash)]
struct CallKey {
    inputs: SmallVec<[OneInput; 4]>,
    dims: SmallVec<[(Name, i64); 2]>,
}

type OneInput = (Name, ElemType, SmallVec<[usize; 4]>);

impl CallKey {
    fn new(inputs: &[InputType<'_>], dims: &[(Name, i64)]) -> CallKey {
        let inputs = inputs.iter().map(|(name, elem, shape)| (*name, *elem, SmallVec::from_slice(shape)));
        CallKey { inputs: inputs.collect(), dims: SmallVec::from_slice(dims) }
    }
}

/// An input of a call: its name, its element type and its sizes.
pub type InputType<'a> = (Name, ElemType, &'a [usize]);

/// A program with symbolic sizes, and those made from it.
struct Instance {
    module: Arc<Module>,
    specialised: Mutex<Vec<(Vec<i64>, Arc<Module>)>>,
}

/// The functions that a text defines, in order; of a dialect without functions, the program.
///
/// # Errors
/// If the text is not accepted.
pub fn functions(texts: &Texts, options: &Options) -> Result<Vec<Name>, Failure> {
    match Dialect::of(texts.name()) {
        Some(Dialect::Ten) => {
            Ok(TenFile::of_texts(texts)?.interfaces().into_iter().map(|interface| interface.name).collect())
        }
        _ => Ok(vec![Module::from_texts(texts, options)?.core().name]),
    }
}

impl Kernel {
    /// A function of a text: that of the options, or `main`, or the only one. The dialect comes from the ending of
    /// `name`, which messages show.
    ///
    /// # Errors
    /// If it is not an accepted program. What depends on open ranks or element types is checked in a call.
    pub fn from_text(
        name: &str,
        text: impl Into<String>,
        options: &Options,
        sizing: Sizing,
    ) -> Result<Kernel, Failure> {
        Kernel::new(Texts::read(name, text), options, sizing)
    }

    /// As [`Kernel::from_text`], with what the text imports at hand.
    ///
    /// # Errors
    /// As [`Kernel::from_text`].
    pub fn new(texts: Texts, options: &Options, sizing: Sizing) -> Result<Kernel, Failure> {
        let text = Text::read(texts)?;
        let symbolic = text.module(options);
        let interface = match (&text, &symbolic) {
            (Text::Ten(file), _) => file.interface(options.function)?,
            (Text::Other(_), Ok(module)) => Interface::of_program(module.core(), module.schedules().1.into_owned()),
            (Text::Other(_), Err(failure)) => return Err(failure.clone()),
        };
        let symbolic = symbolic.map(Instance::new);
        let has_sizes = interface.parameters.iter().any(|parameter| parameter.is_size);
        match symbolic {
            Err(failure) if !interface.is_open && !has_sizes => Err(failure),
            symbolic => Ok(Kernel {
                text,
                options: options.clone(),
                sizing,
                interface,
                symbolic,
                instances: Mutex::default(),
                prepared: RwLock::default(),
                specialised: AtomicUsize::new(0),
            }),
        }
    }

    /// The function's name.
    pub fn name(&self) -> Name {
        self.interface.name
    }

    /// The function's declaration on one line.
    pub fn signature(&self) -> &str {
        &self.interface.signature
    }

    /// What it is called with, in order.
    pub fn parameters(&self) -> &[Param] {
        &self.interface.parameters
    }

    /// The schedules that its text has for it, in the order of the text.
    pub fn schedules(&self) -> &[Schedule] {
        &self.interface.schedules
    }

    /// The program with symbolic sizes. Open element types are those of the options.
    ///
    /// # Errors
    /// If a rank is open, or something depends on the value of a `size` parameter.
    pub fn module(&self) -> Result<&Module, Failure> {
        self.symbolic.as_ref().map(|instance| &*instance.module).map_err(Failure::clone)
    }

    /// Finds or makes the code for a call: with inputs of these element types and shapes, and these values of `size`
    /// parameters and of sizes that no array tells.
    ///
    /// # Errors
    /// If the arguments do not fit the function, or it cannot be compiled for them.
    pub fn prepare(&self, inputs: &[InputType<'_>], dims: &[(Name, i64)]) -> Result<Arc<Prepared>, Failure> {
        if let Some(prepared) = self.prepared(inputs, dims) {
            return Ok(prepared);
        }
        let key = CallKey::new(inputs, dims);
        let prepared = Arc::new(self.make(inputs, dims)?);
        let mut remembered = self.prepared.write().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= REMEMBERED {
            remembered.clear();
        }
        Ok(remembered.entry(key).or_insert(prepared).clone())
    }

    /// What was prepared for such a call, if it was.
    pub fn prepared(&self, inputs: &[InputType<'_>], dims: &[(Name, i64)]) -> Option<Arc<Prepared>> {
        let key = CallKey::new(inputs, dims);
        self.prepared.read().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()
    }

    fn make(&self, inputs: &[InputType<'_>], dims: &[(Name, i64)]) -> Result<Prepared, Failure> {
        let instance = self.instance(inputs, dims)?;
        let module = &instance.module;
        let dims: BTreeMap<Name, i64> = dims.iter().copied().collect();
        let given = inputs.iter().map(|(name, elem, shape)| (*name, Some((*elem, *shape)))).collect();
        let arguments = Arguments { inputs: given, dims: &dims };
        let refused = |error: Box<Diagnostic>| module.refuse(*error);
        arguments.known_names(module, false).map_err(refused)?;
        let fitted = arguments.fit(module, Some(module.loops()?), ElemType::bytes).map_err(refused)?;
        let sizes = fitted.sizes(module.core());
        let specialised = match self.sizing {
            Sizing::Specialised if !sizes.is_empty() => self.specialised(&instance, &sizes)?,
            Sizing::Specialised | Sizing::Symbolic => None,
        };
        let module = specialised.or_else(|| module.ordered(&sizes)).unwrap_or_else(|| module.clone());
        let sizes = module.sizes_left(&instance.module, &sizes);
        module.native()?;
        let shapes = module.signature().outputs;
        let value = |name: Name| module.core().sizes.iter().position(|&n| n == name).map(|at| sizes[at]);
        let output = |((name, _), ty): (&(Name, Name), TensorType)| {
            let shape = ty.shape_at(&value).map_err(|error| {
                module.refuse(Diagnostic::error(Code::E0408, None, format!("the result `{name}`: {error}")))
            });
            Ok(ResultShape { name: *name, elem: ty.elem, shape: shape? })
        };
        let outputs = module.core().outputs.iter().zip(shapes).map(output).collect::<Result<_, Failure>>()?;
        let operations = module.operations().and_then(|formula| formula.eval(&value).ok());
        Ok(Prepared { module, sizes, outputs, operations, bytes: fitted.bytes })
    }

    /// The program for these arguments, with symbolic sizes: one for all values of `size` parameters, if there is one.
    fn instance(&self, inputs: &[InputType<'_>], dims: &[(Name, i64)]) -> Result<Arc<Instance>, Failure> {
        if let Ok(symbolic) = &self.symbolic
            && !self.interface.is_open
        {
            return Ok(symbolic.clone());
        }
        let mut tries = vec![&[][..], dims];
        tries.dedup();
        for (last, dims) in tries.iter().enumerate().map(|(at, dims)| (at + 1 == tries.len(), *dims)) {
            let mut key = CallKey::new(inputs, dims);
            key.inputs.iter_mut().for_each(|(_, _, shape)| shape.fill(0));
            match lock(&self.instances).get(&key) {
                Some(Some(instance)) => return Ok(instance.clone()),
                Some(None) => continue,
                None => {}
            }
            let known = Known {
                ranks: inputs.iter().map(|(name, _, shape)| (*name, shape.len())).collect(),
                elems: inputs.iter().map(|(name, elem, _)| (*name, *elem)).collect(),
                values: dims.iter().copied().collect(),
            };
            let options = Options { known, function: Some(self.name()), ..self.options.clone() };
            let made = self.text.module(&options).map(Instance::new);
            let mut instances = lock(&self.instances);
            if instances.len() >= REMEMBERED {
                instances.clear();
            }
            match made {
                Ok(made) => return Ok(instances.entry(key).or_insert(Some(made.clone())).clone().unwrap_or(made)),
                Err(failure) if last => return Err(failure),
                Err(_) => drop(instances.insert(key, None)),
            }
        }
        // The last round returns.
        self.symbolic.clone()
    }

    /// The program of an instance for these sizes; none if the one for all sizes has to do.
    fn specialised(&self, instance: &Instance, sizes: &[i64]) -> Result<Option<Arc<Module>>, Failure> {
        if let Some(module) = instance.find(sizes) {
            return Ok(Some(module));
        }
        if let Some(module) = instance.module.for_batches(sizes)? {
            return Ok(Some(module));
        }
        let more = |count: usize| (count < SPECIALISED).then_some(count + 1);
        if self.specialised.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_err() {
            return Ok(None);
        }
        let Some(module) = instance.module.native_at(sizes)? else { return Ok(None) };
        let mut made = lock(&instance.specialised);
        if let Some((_, module)) = made.iter().find(|(known, _)| known == sizes) {
            // Another thread was faster.
            self.specialised.fetch_sub(1, Ordering::Relaxed);
            return Ok(Some(module.clone()));
        }
        let module = Arc::new(module);
        made.push((sizes.to_vec(), module.clone()));
        Ok(Some(module))
    }
}

impl Instance {
    fn new(module: Module) -> Arc<Instance> {
        Arc::new(Instance { module: Arc::new(module), specialised: Mutex::default() })
    }

    /// The program for these sizes, if it was made.
    fn find(&self, sizes: &[i64]) -> Option<Arc<Module>> {
        lock(&self.specialised).iter().find(|(known, _)| known == sizes).map(|(_, module)| module.clone())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A result: its name, element type and sizes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResultShape {
    /// Its name.
    pub name: Name,
    /// Its element type.
    pub elem: ElemType,
    /// Its sizes.
    pub shape: Vec<usize>,
}

/// A function compiled for arguments of some types and sizes.
pub struct Prepared {
    module: Arc<Module>,
    sizes: Vec<i64>,
    outputs: Vec<ResultShape>,
    operations: Option<i64>,
    bytes: u128,
}

impl Prepared {
    /// What it computes, in order.
    pub fn outputs(&self) -> &[ResultShape] {
        &self.outputs
    }

    /// How many operations a run makes, if that fits in 63 bits.
    pub fn operations(&self) -> Option<i64> {
        self.operations
    }

    /// The program that is run.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Runs it on inputs in the order of the program, with as many threads as told, or as are the default. Outputs need
    /// not be zero.
    ///
    /// # Errors
    /// If an array does not have its element type or sizes, an element occurs twice in an output, or memory runs out.
    pub fn run(
        &self,
        inputs: &[View<'_>],
        outputs: &mut [ViewMut<'_>],
        threads: Option<NonZeroUsize>,
    ) -> Result<(), Failure> {
        let failed = |error| self.module.runtime_failure(&error);
        if self.bytes >= LARGE {
            is_free(self.bytes).map_err(|error| self.module.refuse(*error))?;
        }
        let kernel = self.module.native()?;
        let threads = threads.map_or_else(default_threads, Ok).map_err(failed)?;
        with_threads(threads, || kernel.call_strided(&self.sizes, inputs, outputs)).map_err(failed)
    }
}
