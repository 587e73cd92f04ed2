//! The mathematical library: functions whose last bits are its own.
//!
//! A C compiler that knows `tanh` computes it itself where the argument is a constant, makes `x * x` of `pow(x, 2)` and
//! merges `sin` and `cos`; then bits depend on what it could see. Generated code calls these functions under names that no
//! compiler knows, so that the library computes them always, as it does for the interpreter. They are called only where a program
//! wants them (`libm_tanh`): other functions are recipes (`recipe.rs`). Square roots, rounding and `fma` are exact and stay the
//! compiler's.

use certen_core::{ElemType, MAX_MULTIPLIED};

use super::{Helper, c_type};

/// How a function gets its name. GCC knows functions by their names in C. LLVM knows them by those that the linker sees, so
/// that it must not see which function is called; that its result depends on nothing else it may know.
pub(crate) const LIBRARY: &str = "\
/* Functions of the mathematical library. Compilers do not compute them, not even where arguments are constants. */
#if defined(__GNUC__) && !defined(__clang__)
#define CERTEN_TEXT(text) #text
#define CERTEN_LABEL(prefix, name) CERTEN_TEXT(prefix) #name
#define CERTEN_CALLED(prefix, name) CERTEN_LABEL(prefix, name)
#define CERTEN_LIBRARY(type, name, parameters, arguments) \\
    extern type certen_##name parameters __asm__(CERTEN_CALLED(__USER_LABEL_PREFIX__, name)) __attribute__((const));
#else
#ifdef __clang__
#define CERTEN_OPAQUE __attribute__((const, noinline))
#else
#define CERTEN_OPAQUE
#endif
#define CERTEN_LIBRARY(type, name, parameters, arguments) \\
    static CERTEN_OPAQUE type certen_##name parameters { \\
        type (*volatile function) parameters = name; \\
        return function arguments; \\
    }
#endif

";

/// The name of a function in math.h.
pub(crate) fn name(function: &str, elem: ElemType) -> String {
    format!("{function}{}", if elem == ElemType::F32 { "f" } else { "" })
}

/// Makes a function known under our name for it.
pub(crate) fn declaration(function: &str, elem: ElemType) -> String {
    let (ty, name) = (c_type(elem), name(function, elem));
    match function {
        "pow" | "atan2" | "hypot" => format!("CERTEN_LIBRARY({ty}, {name}, ({ty} x, {ty} y), (x, y))\n"),
        _ => format!("CERTEN_LIBRARY({ty}, {name}, ({ty} x), (x))\n"),
    }
}

/// A power, as the Machine domain has it: `certen_core::by_squaring` if the exponent is small and whole.
pub(crate) fn power(elem: ElemType) -> String {
    let (ty, name, library) = (c_type(elem), Helper::Pow(elem).name(), Helper::Library("pow", elem).name());
    format!(
        "/* x to the power y: a product if y is whole and at most {MAX_MULTIPLIED} in magnitude */\n\
         static inline {ty} {name}({ty} x, {ty} y) {{\n    \
         const {ty} size = y < 0 ? -y : y;\n    \
         if (!(size <= {MAX_MULTIPLIED}) || size != ({ty})(int32_t)size) return {library}(x, y);\n    \
         const int32_t k = (int32_t)size;\n    \
         if (k == 0) return 1;\n    \
         int32_t bit = {MAX_MULTIPLIED};\n    \
         {ty} power = x;\n    \
         while (bit > k) bit >>= 1;\n    \
         while (bit >>= 1) {{\n        \
         power *= power;\n        \
         if (k & bit) power *= x;\n    \
         }}\n    \
         return y < 0 ? 1 / power : power;\n}}\n"
    )
}
