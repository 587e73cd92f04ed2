//! Kernels: C text made callable.
//!
//! The C text defines, besides whatever it likes,
//!
//! ```c
//! const int32_t certen_abi = 2;
//! int32_t certen_call(const int64_t *sizes, void *const *buffers);
//! ```
//!
//! and, if it has parallel loops,
//!
//! ```c
//! void certen_use_threads(void (*threads)(int64_t begin, int64_t end, void (*part)(int64_t, int64_t, void *), void *));
//! ```
//!
//! which is called once, before anything else, with the function that runs a range in parts on several threads. If it has
//! buffers of its own, likewise
//!
//! ```c
//! void certen_use_memory(const struct { void *(*take)(size_t); void (*give)(void *); } *memory);
//! ```
//!
//! whose functions it calls from the threads that run its code.
//!
//! `sizes` are the values of the signature's sizes, in order. `buffers` are the inputs, then the outputs: dense, in
//! row-major order, aligned to their elements, none of them overlapping an output, never null. It returns 0 if all is
//! well, 1 if it could not allocate memory, 5 if an index or a number of bytes would not fit in 64 bits; anything else
//! is a bug. Arrays that are not dense are copied here, so that the C text stays short: compiling it is what a first
//! run waits for.
//!
//! Needs: C text that keeps to its [`Signature`], see [`NativeKernel::build`]. Guarantees: nothing is called with
//! arguments that the signature does not allow, so a kernel whose text was proved in bounds stays in bounds.

use std::error::Error as _;
use std::ffi::c_void;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use certen_core::{ElemType, TensorType};
use certen_index::{Cond, Ix};
use certen_syntax::Name;
use libloading::Library;

use crate::array::{Array, ArrayError};
use crate::cache::{self, Cache, Loaded};
use crate::compiler::Compiler;
use crate::cpu::Cpu;
use crate::error::RuntimeError;
use crate::pool::{self, ParallelFunction};
use crate::scratch::{MEMORY, Memory};
use crate::view::{Layout, View, ViewMut};

/// The number of the calling convention that this module describes; `certen_abi` in the C text.
pub const ABI: i32 = 2;

/// The C type of `certen_call`.
type EntryFunction = unsafe extern "C" fn(*const i64, *const *mut c_void) -> i32;

/// The C type of `certen_use_threads`.
type UseThreads = unsafe extern "C" fn(ParallelFunction);

/// The C type of `certen_use_memory`.
type UseMemory = unsafe extern "C" fn(*const Memory);

/// What a kernel is called with: the names of its sizes, what holds of them, and the types of its tensors in terms of
/// them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signature {
    /// The symbolic sizes, in the order of the call.
    pub sizes: Vec<Name>,
    /// The conditions on the sizes under which the kernel was shown to be in bounds.
    pub facts: Vec<Cond>,
    /// The tensors that are read.
    pub inputs: Vec<TensorType>,
    /// The tensors that are written.
    pub outputs: Vec<TensorType>,
}

impl Signature {
    /// New outputs for a call with these sizes, all zero.
    ///
    /// # Errors
    /// If the sizes do not fit the signature, or there is no memory.
    pub fn allocate_outputs(&self, sizes: &[i64]) -> Result<Vec<Array>, RuntimeError> {
        self.check_sizes(sizes)?;
        let allocate = |(at, ty): (usize, &TensorType)| {
            let which = || format!("output {}", at + 1);
            let shape = self.shape(ty, sizes, which)?;
            Array::zeros(ty.elem, &shape).map_err(|error| RuntimeError::Array { which: which(), error })
        };
        self.outputs.iter().enumerate().map(allocate).collect()
    }

    /// The value of a size in a call.
    fn value<'a>(&'a self, sizes: &'a [i64]) -> impl Fn(Name) -> Option<i64> + 'a {
        |name| self.sizes.iter().position(|&size| size == name).and_then(|at| sizes.get(at).copied())
    }

    /// Whether there are as many sizes as names, and they satisfy the facts.
    fn check_sizes(&self, sizes: &[i64]) -> Result<(), RuntimeError> {
        count("sizes", self.sizes.len(), sizes.len())?;
        for fact in &self.facts {
            // A condition that cannot be evaluated, because it overflows, was not shown to hold either.
            if !fact.eval(&self.value(sizes)).unwrap_or(false) {
                let sizes = self.sizes.iter().copied().zip(sizes.iter().copied()).collect();
                return Err(RuntimeError::ExcludedSizes { fact: fact.to_string(), sizes });
            }
        }
        Ok(())
    }

    /// The shape that a type has for these sizes.
    fn shape(&self, ty: &TensorType, sizes: &[i64], which: impl Fn() -> String) -> Result<Vec<usize>, RuntimeError> {
        let value = self.value(sizes);
        let size = |size: &Ix| {
            let wrong =
                |why: String| RuntimeError::WrongCall(format!("{}: the type {ty} has no shape: {why}", which()));
            let found = size.eval(&value).map_err(|error| wrong(error.to_string()))?;
            usize::try_from(found).map_err(|_| wrong(format!("{size} is {found}")))
        };
        ty.shape.iter().map(size).collect()
    }

    /// Whether an array has this type for these sizes.
    fn check(
        &self,
        ty: &TensorType,
        sizes: &[i64],
        array: &Layout,
        which: impl Fn() -> String,
    ) -> Result<(), RuntimeError> {
        let wrong = |error| Err(RuntimeError::Array { which: which(), error });
        if array.elem != ty.elem {
            return wrong(ArrayError::Element { expected: ty.elem, found: array.elem });
        }
        let expected = self.shape(ty, sizes, &which)?;
        if array.shape[..] != expected {
            return wrong(ArrayError::Shape { expected, found: array.shape.to_vec() });
        }
        Ok(())
    }
}

fn count(what: &str, expected: usize, found: usize) -> Result<(), RuntimeError> {
    if expected == found {
        return Ok(());
    }
    Err(RuntimeError::WrongCall(format!("the kernel is called with {found} {what}, but has {expected}")))
}

/// The machine's compiler, for an instruction set.
fn compiler_for(cpu: Option<Cpu>) -> Result<Compiler, RuntimeError> {
    Compiler::find()?.for_cpu(cpu.map_or_else(Cpu::from_environment, Ok)?)
}

/// A compiled and loaded kernel. It can be called from several threads at once.
pub struct NativeKernel {
    signature: Signature,
    compile_time: Option<Duration>,
    /// Points into `library`, which is unloaded with the kernel.
    entry: EntryFunction,
    /// Where the cache keeps it.
    kept: Option<PathBuf>,
    _library: Library,
}

impl NativeKernel {
    /// Compiles C text with the machine's compiler, or finds it in the user's cache, and loads it. The code is for an
    /// instruction set, by default that of [`Cpu::from_environment`].
    ///
    /// The text is trusted, as generated code has to be by its caller: this function and [`NativeKernel::call`]
    /// are safe only for a text that, called as this module describes with arrays that have the signature's types for
    /// the given sizes, touches no memory but theirs and its own, writes only to outputs, keeps 0 and 1 in those of
    /// type `bool`, and may be called from several threads at once. The back end generates such texts.
    ///
    /// # Errors
    /// If there is no compiler, if it fails, or if the cache or the compiled code cannot be used.
    pub fn build(c_text: &str, signature: Signature, cpu: Option<Cpu>) -> Result<NativeKernel, RuntimeError> {
        let compiler = compiler_for(cpu)?;
        NativeKernel::build_with(&compiler, &Cache::default_location()?, c_text, signature)
    }

    /// Whether the user's cache has an entry for C text, so that it need not be compiled.
    pub fn is_kept(c_text: &str, cpu: Option<Cpu>) -> bool {
        let (Ok(compiler), Ok(cache)) = (compiler_for(cpu), Cache::default_location()) else { return false };
        cache.has(&compiler, ABI, c_text)
    }

    /// As [`NativeKernel::build`], with a compiler and a cache of one's own.
    ///
    /// # Errors
    /// As [`NativeKernel::build`].
    pub fn build_with(
        compiler: &Compiler,
        cache: &Cache,
        c_text: &str,
        signature: Signature,
    ) -> Result<NativeKernel, RuntimeError> {
        let Loaded { loaded: (library, entry), time, entry: kept } =
            cache.load_or_build(compiler, ABI, c_text, load)?;
        Ok(NativeKernel { signature, compile_time: time, entry, kept, _library: library })
    }

    /// The note that was written for the kernel, by this or another process: see [`NativeKernel::set_note`].
    pub fn note(&self) -> Option<String> {
        self.kept.as_ref().and_then(|entry| cache::read_note(entry))
    }

    /// Writes a note for the kernel, which stays as long as the cache keeps the kernel. Best effort: where nothing can be
    /// written, there is no note the next time.
    pub fn set_note(&self, text: &str) {
        if let Some(entry) = &self.kept {
            let _ = cache::write_note(entry, text);
        }
    }

    /// How long the C compiler took; none if the cache had the kernel.
    pub fn compile_time(&self) -> Option<Duration> {
        self.compile_time
    }

    /// What it is called with.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Runs the kernel. Everything is checked against the signature first: how many sizes and arrays there are, the
    /// facts about the sizes, the element types and the shapes. Outputs need not be zero.
    ///
    /// # Errors
    /// If an argument does not fit the signature (then nothing was run), or if the kernel ran out of memory (then what
    /// the outputs hold is not specified).
    pub fn call(&self, sizes: &[i64], inputs: &[&Array], outputs: &mut [Array]) -> Result<(), RuntimeError> {
        let inputs: Vec<View<'_>> = inputs.iter().map(|array| View::from(*array)).collect();
        let mut outputs: Vec<ViewMut<'_>> = outputs.iter_mut().map(ViewMut::from).collect();
        self.call_strided(sizes, &inputs, &mut outputs)
    }

    /// As [`NativeKernel::call`], on arrays with strides. Dense arrays are used as they are, others through a copy. An
    /// output cannot overlap another array: a caller with such arrays copies one of them.
    ///
    /// # Errors
    /// As [`NativeKernel::call`], and if an element occurs twice in an output.
    pub fn call_strided(
        &self,
        sizes: &[i64],
        inputs: &[View<'_>],
        outputs: &mut [ViewMut<'_>],
    ) -> Result<(), RuntimeError> {
        let signature = &self.signature;
        signature.check_sizes(sizes)?;
        count("inputs", signature.inputs.len(), inputs.len())?;
        count("outputs", signature.outputs.len(), outputs.len())?;
        for (at, (ty, view)) in signature.inputs.iter().zip(inputs).enumerate() {
            signature.check(ty, sizes, &view.layout, || format!("input {}", at + 1))?;
        }
        for (at, (ty, view)) in signature.outputs.iter().zip(outputs.iter()).enumerate() {
            signature.check(ty, sizes, &view.layout, || format!("output {}", at + 1))?;
        }

        let refused = |at: usize, what: &str| {
            let which = format!("{what} {}", at + 1);
            move |error| RuntimeError::Array { which, error }
        };
        let mut copies = Vec::new();
        for (at, view) in inputs.iter().enumerate() {
            copies.push(if view.is_dense() { None } else { Some(view.to_array().map_err(refused(at, "input"))?) });
        }
        let mut results = Vec::new();
        for (at, view) in outputs.iter().enumerate() {
            if view.has_repetitions() {
                return Err(RuntimeError::WrongCall(format!("output {}: an element occurs twice", at + 1)));
            }
            results.push(match view.is_dense() {
                true => None,
                false => Some(Array::zeros(view.layout.elem, &view.layout.shape).map_err(refused(at, "output"))?),
            });
        }

        let read = inputs.iter().zip(&copies).map(|(view, copy)| match copy {
            Some(copy) => copy.bytes().as_ptr(),
            None => view.data(),
        });
        let written = outputs.iter_mut().zip(&mut results).map(|(view, result)| match result {
            Some(result) => result.bytes_mut().as_mut_ptr(),
            None => view.data(),
        });
        let buffers: Vec<*mut c_void> = read.map(<*const u8>::cast_mut).chain(written).map(<*mut u8>::cast).collect();
        // SAFETY: the library is loaded, and the symbol has this type, by the contract of `build`. The pointers are
        // valid for the arrays that the signature describes, checked above: those of views that are dense, or copies.
        // Inputs are only read; outputs are borrowed mutably, so they overlap neither each other nor inputs.
        let status = unsafe { (self.entry)(sizes.as_ptr(), buffers.as_ptr()) };

        for (at, (view, result)) in outputs.iter_mut().zip(results).enumerate() {
            // A kernel that gave up has written nothing that counts.
            if status != 0 {
                break;
            }
            // Only truth values need a look.
            if view.elem() == ElemType::Bool {
                let written = result.as_ref().map_or_else(|| &*view.elements_mut(), Array::bytes);
                if written.iter().any(|&byte| byte > 1) {
                    view.elements_mut().fill(0);
                    let why = format!("it left a truth value in output {} that is neither 0 nor 1", at + 1);
                    return Err(RuntimeError::BadKernel(why));
                }
            }
            if let Some(result) = result {
                view.assign(&result).map_err(refused(at, "output"))?;
            }
        }
        match status {
            0 => Ok(()),
            1 => Err(RuntimeError::KernelOutOfMemory),
            5 => {
                let sizes = signature.sizes.iter().copied().zip(sizes.iter().copied()).collect();
                Err(RuntimeError::SizesTooLarge { sizes })
            }
            other => Err(RuntimeError::BadKernel(format!("it returned the unknown status {other}"))),
        }
    }
}

impl fmt::Debug for NativeKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NativeKernel { signature, compile_time, .. } = self;
        f.debug_struct("NativeKernel").field("signature", signature).field("compile_time", compile_time).finish()
    }
}

/// Loads a shared object and finds its entry, if it is of this calling convention.
fn load(path: &Path) -> Result<(Library, EntryFunction), RuntimeError> {
    // The loader's own words are the source of the error.
    let bad = |error: libloading::Error| {
        RuntimeError::BadKernel(error.source().map_or_else(|| error.to_string(), |source| source.to_string()))
    };
    let library = open(path).map_err(bad)?;
    // SAFETY: by the contract of `build` the symbol is an `int32_t` constant.
    let abi = unsafe { library.get::<*const i32>(b"certen_abi").map_err(bad)?.read() };
    if abi != ABI {
        let why = format!("it has the calling convention {abi}, this program has {ABI}");
        return Err(RuntimeError::BadKernel(why));
    }
    // SAFETY: by the contract of `build` the symbol is a function of this type. The copy of the pointer is used only
    // while the library is loaded: the kernel holds both.
    let entry = unsafe { *library.get::<EntryFunction>(b"certen_call").map_err(bad)? };
    // SAFETY: by the contract of `build` the symbols, if they are there, are functions of these types. They only keep the
    // pointers, atomically: the library may be loaded already, and run elsewhere.
    unsafe {
        if let Ok(use_memory) = library.get::<UseMemory>(b"certen_use_memory") {
            use_memory(&raw const MEMORY);
        }
        if let Ok(use_threads) = library.get::<UseThreads>(b"certen_use_threads") {
            use_threads(pool::parallel);
        }
    }
    Ok((library, entry))
}

/// Maps a shared object, binding every symbol now: a missing one is an error here, not the end of the process later.
#[cfg(unix)]
fn open(path: &Path) -> Result<Library, libloading::Error> {
    use libloading::os::unix::{Library as Unix, RTLD_LOCAL, RTLD_NOW};
    // SAFETY: generated code has no constructors; the file is whole, which the cache has made sure of.
    unsafe { Unix::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map(Library::from)
}

#[cfg(not(unix))]
fn open(path: &Path) -> Result<Library, libloading::Error> {
    // SAFETY: as above.
    unsafe { Library::new(path) }
}

#[cfg(test)]
mod tests;
