//! The floating-point environment of a thread.
//!
//! Rust and our results assume one: rounding to nearest, subnormal numbers as they are, no traps. In a process of others
//! a thread may have another one, because a library has set it. [`standard_environment`] and [`in_standard_environment`]
//! let work be done in the standard one, and give the thread back as it was. Compiled kernels do the same at their own entry.
//!
//! On other processors than x86-64 and aarch64 nothing is changed.

use std::marker::PhantomData;

use register::{CONTROL, Register, STANDARD, read, write};

/// Makes the environment of this thread the standard one, until what it returns is dropped. Cheap where it is already.
/// Operations of the same function may be moved before it: the work belongs into functions that are called.
pub fn standard_environment() -> Entered {
    let was = read();
    if !is_standard(was) {
        write(STANDARD);
    }
    Entered(was, PhantomData)
}

/// Does work in the standard environment.
pub fn in_standard_environment<T>(work: impl FnOnce() -> T) -> T {
    let _entered = standard_environment();
    apart(work)
}

/// Not inlined, so that no operation is moved out of the environment.
#[inline(never)]
fn apart<T>(work: impl FnOnce() -> T) -> T {
    work()
}

/// The environment that a thread had, and has again when this is dropped. It stays on its thread.
#[must_use]
pub struct Entered(Register, PhantomData<*const ()>);

impl Drop for Entered {
    fn drop(&mut self) {
        if !is_standard(self.0) {
            write(self.0);
        }
    }
}

fn is_standard(register: Register) -> bool {
    register & CONTROL == STANDARD
}

#[cfg(target_arch = "x86_64")]
mod register {
    use std::arch::asm;

    /// MXCSR.
    pub type Register = u32;
    /// All exceptions masked, to nearest, no flushing.
    pub const STANDARD: Register = 0x1f80;
    /// What is no note of an exception that was.
    pub const CONTROL: Register = 0xffc0;

    pub fn read() -> Register {
        let mut value: Register = 0;
        // SAFETY: it stores 32 bits where the pointer points.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut value, options(nostack, preserves_flags)) };
        value
    }

    pub fn write(value: Register) {
        // SAFETY: it loads 32 bits from where the pointer points. They are the standard environment, which Rust assumes,
        // or what `read` has found, so that no reserved bit is set.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const value, options(nostack, preserves_flags)) };
    }
}

#[cfg(target_arch = "aarch64")]
mod register {
    use std::arch::asm;

    /// FPCR.
    pub type Register = u64;
    pub const STANDARD: Register = 0;
    pub const CONTROL: Register = !0;

    pub fn read() -> Register {
        let value;
        // SAFETY: it only reads a register.
        unsafe { asm!("mrs {}, fpcr", out(reg) value, options(nomem, nostack, preserves_flags)) };
        value
    }

    pub fn write(value: Register) {
        // SAFETY: the standard environment, which Rust assumes, or what `read` has found.
        unsafe { asm!("msr fpcr, {}", in(reg) value, options(nostack, preserves_flags)) };
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod register {
    pub type Register = u32;
    pub const STANDARD: Register = 0;
    pub const CONTROL: Register = 0;

    pub fn read() -> Register {
        STANDARD
    }

    pub fn write(_: Register) {}
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use std::hint::black_box;

    /// Flush to zero, subnormals are zero, towards plus infinity.
    const OTHER: Register = 0x1f80 | 1 << 15 | 1 << 6 | 2 << 13;

    #[test]
    fn work_is_done_in_the_standard_environment_and_the_old_one_comes_back() {
        let was = read();
        write(OTHER);
        let sum = || (black_box(1e-310) + black_box(1e-310), black_box(1.0) + black_box(1e-30));
        let inside = in_standard_environment(sum);
        let (between, outside) = (read() & CONTROL, sum());
        let panicked = std::panic::catch_unwind(|| in_standard_environment(|| panic!("on purpose")));
        let after = read() & CONTROL;
        write(was);
        assert_eq!(inside, (2e-310, 1.0));
        assert_ne!(outside, inside);
        assert_eq!((between, after), (OTHER, OTHER));
        assert!(panicked.is_err());
    }
}
