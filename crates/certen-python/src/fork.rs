//! Forks while something is compiled.
//!
//! A forked child has one thread, and the memory of its parent as it was: a lock that another thread held stays locked
//! for ever. Compiling takes locks here and there (names are interned, programs are remembered, trees are built on a
//! thread of their own), and Python forks at any time, since the interpreter's lock is not held meanwhile. So a thread
//! that compiles goes through a gate, and a fork waits until no thread is inside. Kernels that run need no gate: they hold no
//! lock that a child could miss. No thread inside waits for the interpreter's lock, so that the fork does not wait for ever; and no
//! thread goes through the gate while it holds another lock, which a child would miss as well.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Shared by those who compile, held alone by a fork.
static GATE: RwLock<()> = RwLock::new(());

thread_local! {
    /// What a thread that forks holds from before to after, in the parent and in the child.
    static HELD: RefCell<Option<RwLockWriteGuard<'static, ()>>> = const { RefCell::new(None) };
}

/// Does work that compiles something, without the interpreter's lock.
pub fn compiling<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    // What runs around a fork may compile too: it is alone already.
    let is_alone = HELD.with_borrow(Option::is_some);
    py.detach(|| {
        let _inside = (!is_alone).then(|| GATE.read().unwrap_or_else(PoisonError::into_inner));
        work()
    })
}

#[pyfunction]
fn before_fork(py: Python<'_>) {
    if HELD.with_borrow(Option::is_some) {
        return;
    }
    py.detach(|| {
        let alone = GATE.write().unwrap_or_else(PoisonError::into_inner);
        HELD.set(Some(alone));
    });
}

#[pyfunction]
fn after_fork() {
    HELD.set(None);
}

/// Asks Python to tell of forks, once however often the module is imported.
///
/// # Errors
/// If Python cannot.
pub fn register(py: Python<'_>) -> PyResult<()> {
    static REGISTERED: AtomicBool = AtomicBool::new(false);
    let os = py.import("os")?;
    // Some systems do not fork.
    if !os.hasattr("register_at_fork")? || REGISTERED.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    let hooks = PyDict::new(py);
    hooks.set_item("before", wrap_pyfunction!(before_fork, py)?)?;
    hooks.set_item("after_in_parent", wrap_pyfunction!(after_fork, py)?)?;
    hooks.set_item("after_in_child", wrap_pyfunction!(after_fork, py)?)?;
    os.call_method("register_at_fork", (), Some(&hooks)).map(drop)
}
