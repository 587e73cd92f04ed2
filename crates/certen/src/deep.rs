//! Work that recurses as deeply as expressions are nested, on a stack that is large enough for it.
//!
//! The front end of `.ten` follows the nesting of its trees. Trees are dropped recursively too, so they live and die on
//! such a stack.

use std::panic::resume_unwind;
use std::thread;

use certen_runtime::in_standard_environment;

/// How large the stack is; its pages are only used when they are needed. Where so much is not to be had, less is.
const STACK_BYTES: [usize; 3] = [512 << 20, 128 << 20, 16 << 20];

/// Does work on a large stack; on this one if no thread can be started.
pub(crate) fn deeply<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let mut work = Some(work);
    let mut result = None;
    for bytes in STACK_BYTES {
        thread::scope(|scope| {
            // A thread begins in the environment of the one that starts it.
            let run = || result = work.take().map(in_standard_environment);
            if let Ok(thread) = thread::Builder::new().stack_size(bytes).spawn_scoped(scope, run)
                && let Err(panic) = thread.join()
            {
                resume_unwind(panic);
            }
        });
        if let Some(result) = result {
            return result;
        }
    }
    match work {
        Some(work) => in_standard_environment(work),
        // The loop ends only if no thread took the work.
        None => unreachable!("a thread that took the work has returned its result or panicked"),
    }
}

const TAKEN: &str = "a tree is taken only when it is dropped";

/// A tree that is dropped on a large stack.
pub(crate) struct Deep<T: Send>(Option<T>);

impl<T: Send> Deep<T> {
    /// Takes the tree in.
    pub fn new(tree: T) -> Deep<T> {
        Deep(Some(tree))
    }

    /// Looks at the tree on a large stack.
    pub fn with<R: Send>(&self, look: impl FnOnce(&T) -> R + Send) -> R
    where
        T: Sync,
    {
        match &self.0 {
            Some(tree) => deeply(|| look(tree)),
            None => unreachable!("{TAKEN}"),
        }
    }

    /// Changes the tree on a large stack.
    pub fn with_mut<R: Send>(&mut self, change: impl FnOnce(&mut T) -> R + Send) -> R {
        match &mut self.0 {
            Some(tree) => deeply(|| change(tree)),
            None => unreachable!("{TAKEN}"),
        }
    }
}

impl<T: Send> Drop for Deep<T> {
    fn drop(&mut self) {
        if let Some(tree) = self.0.take() {
            deeply(|| drop(tree));
        }
    }
}
