//! The second tier: contractions of one form, compiled once they are worth it.
//!
//! The form of a contraction is everything but its letters and sizes. How much work was done for a form is counted for
//! the whole process, and the code is kept for it; forms that were not used for longest are forgotten first.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use certen_core::{ElemType, Program};
use certen_dialects::einsum::{Axis, Einsum, Product};
use certen_loops::FpMode;
use certen_runtime::{RuntimeError, View, ViewMut, default_threads, with_threads};
use rustc_hash::FxHashMap;

use crate::front::Accepted;
use crate::options::Options;
use crate::pipeline::Module;

/// How many multiplications and additions of a form are made in loops of Rust before it is compiled. They make 5e9 to 2e10 in
/// a second and thread, to compile takes about 0.3 seconds: a program that stops here has not waited more than twice as
/// long as possible.
pub(super) const WORTH_COMPILING: u64 = 2_000_000_000;

/// How many forms are remembered. Each takes a few hundred kilobytes once it is compiled.
const FORMS: usize = 256;

/// What contractions of one form share.
#[derive(Default)]
pub(super) struct Compiled {
    /// How much was done so far, or is about to be.
    pub work: AtomicU64,
    /// The program with its native code, once it was worth compiling; nothing if it cannot be compiled here.
    pub module: OnceLock<Option<Module>>,
}

impl std::fmt::Debug for Compiled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compiled").field("work", &self.work).finish_non_exhaustive()
    }
}

impl Compiled {
    /// What contractions of this form share.
    pub fn of(einsum: &Einsum, steps: &[Product], elem: ElemType) -> Arc<Compiled> {
        static KNOWN: OnceLock<Mutex<Forms>> = OnceLock::new();
        let key = key(einsum, steps, elem);
        KNOWN.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner).get(key, FORMS)
    }

    /// Whether it should be compiled now: if as much was done, with the next call, as that is worth.
    pub fn is_due(&self, next: u64) -> bool {
        let done = self.work.load(Ordering::Relaxed).saturating_add(next);
        done >= WORTH_COMPILING && self.module.get().is_none()
    }

    /// Counts a call; gives the program with native code, if it is there.
    pub fn count(&self, work: u64) -> Option<&Module> {
        let sum = |done: u64| Some(done.saturating_add(work));
        // It never refuses.
        let _ = self.work.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum);
        self.module.get()?.as_ref()
    }
}

/// The forms that are known, with the time of their last use.
#[derive(Default)]
struct Forms {
    known: FxHashMap<Box<[u8]>, (Arc<Compiled>, u64)>,
    now: u64,
}

impl Forms {
    fn get(&mut self, key: Box<[u8]>, most: usize) -> Arc<Compiled> {
        self.now += 1;
        if self.known.len() >= most
            && !self.known.contains_key(&key)
            && let Some(oldest) = self.known.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone())
        {
            self.known.remove(&oldest);
        }
        let (form, used) = self.known.entry(key).or_default();
        *used = self.now;
        form.clone()
    }
}

/// A form as bytes: no two forms have the same. Indices, operands and steps are few, so each number is a byte.
fn key(einsum: &Einsum, steps: &[Product], elem: ElemType) -> Box<[u8]> {
    const END: u8 = u8::MAX;
    const ONE: u8 = u8::MAX - 1;
    let mut key = vec![elem as u8];
    for axes in einsum.operands() {
        key.extend(axes.iter().map(|axis| if let Axis::Index(index) = axis { *index as u8 } else { ONE }));
        key.push(END);
    }
    key.push(END);
    for step in steps {
        key.extend(step.factors.iter().map(|factor| *factor as u8));
        key.push(END);
        key.extend(step.kept.iter().map(|index| *index as u8));
        key.push(END);
    }
    key.into_boxed_slice()
}

/// A program with its native code; none if there is no compiler, or it cannot be compiled so that its operations, which so
/// many of its nests need steps for, are those of the loops.
pub(super) fn module(core: Program, planned: usize) -> Option<Module> {
    let options = Options { fp: FpMode::Fused, ..Options::default() };
    let module = Module::new(Accepted::core(core), &options);
    let (plans, _) = module.planned().ok()?;
    (plans.len() >= planned && module.native().is_ok()).then_some(module)
}

/// Calls native code.
pub(super) fn call(
    module: &Module,
    sizes: &[i64],
    operands: &[View<'_>],
    out: &mut ViewMut<'_>,
    threads: Option<NonZeroUsize>,
) -> Result<(), RuntimeError> {
    // What is made for these sizes alone makes the same operations.
    let own = module.specialised(sizes).ok().flatten();
    let whole = module;
    let module = own.as_deref().unwrap_or(whole);
    let sizes = module.sizes_left(whole, sizes);
    let Ok(kernel) = module.native() else { return Err(RuntimeError::BadKernel("it is not there".into())) };
    let threads = threads.map_or_else(default_threads, Ok)?;
    with_threads(threads, || kernel.call_strided(&sizes, operands, std::slice::from_mut(out)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_form_is_forgotten() {
        let mut forms = Forms::default();
        let mut get = |name: u8| forms.get([name].into(), 2);
        let a = get(b'a');
        a.work.store(7, Ordering::Relaxed);
        get(b'b');
        assert!(Arc::ptr_eq(&a, &get(b'a')));
        get(b'c');
        assert!(Arc::ptr_eq(&a, &get(b'a')), "b was older");
        get(b'b');
        get(b'c');
        assert!(!Arc::ptr_eq(&a, &get(b'a')));
    }
}
