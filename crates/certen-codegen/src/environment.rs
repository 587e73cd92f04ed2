//! The floating-point environment: results are defined in one, whatever the caller's is.
//!
//! Another library in the process may have set the rounding mode, or made the processor take subnormal numbers for zero:
//! linking with `-ffast-math` is enough. Every entry point and every thread's part of a loop enters the standard
//! environment and leaves it again. What computes in between is a function that is not inlined, so that no compiler
//! moves its operations out of it.

/// Enters and leaves; the registers are only written where something differs.
pub(crate) const ENVIRONMENT: &str = "\
/* Results are those of one floating-point environment: to nearest, with subnormal numbers, without traps. */
#if defined(__GNUC__) && defined(__SSE2_MATH__)
typedef uint32_t certen_environment;

static inline certen_environment certen_enter(void) {
    const certen_environment was = __builtin_ia32_stmxcsr();
    if ((was & 0xffc0) != 0x1f80) __builtin_ia32_ldmxcsr(0x1f80);
    return was;
}

static inline void certen_leave(certen_environment was) {
    if ((was & 0xffc0) != 0x1f80) __builtin_ia32_ldmxcsr(was);
}
#elif defined(__GNUC__) && defined(__aarch64__)
typedef uint64_t certen_environment;

static inline certen_environment certen_enter(void) {
    certen_environment was;
    __asm__ volatile(\"mrs %0, fpcr\" : \"=r\"(was));
    if (was != 0) __asm__ volatile(\"msr fpcr, %0\" : : \"r\"((certen_environment)0));
    return was;
}

static inline void certen_leave(certen_environment was) {
    if (was != 0) __asm__ volatile(\"msr fpcr, %0\" : : \"r\"(was));
}
#else
#include <fenv.h>
typedef fenv_t certen_environment;

static inline certen_environment certen_enter(void) {
    certen_environment was;
    fegetenv(&was);
    fesetenv(FE_DFL_ENV);
    return was;
}

static inline void certen_leave(certen_environment was) {
    fesetenv(&was);
}
#endif

#if defined(__GNUC__)
#define CERTEN_NOINLINE static __attribute__((noinline))
#else
#define CERTEN_NOINLINE static
#endif

";

/// The body of an entry point that calls a function which is not inlined.
pub(crate) fn entered(call: &str) -> String {
    format!(
        " {{\n    const certen_environment certen_was = certen_enter();\n    const int32_t certen_status =\n{call}\n    \
         certen_leave(certen_was);\n    return certen_status;\n}}\n"
    )
}
