//! Helper functions of generated C: what C leaves undefined or open, decided as in the Machine domain.

mod library;
mod recipe;
mod turn;
pub(crate) mod vectors;

use certen_core::ElemType;
use certen_math::{Function, Table};

pub(crate) use library::LIBRARY;
pub(crate) use turn::sides;
use vectors::{LaneShape, Vector, VectorCall};

/// The C type of an element.
pub(crate) fn c_type(elem: ElemType) -> &'static str {
    match elem {
        ElemType::F32 => "float",
        ElemType::F64 => "double",
        ElemType::I32 => "int32_t",
        ElemType::I64 => "int64_t",
        ElemType::U8 | ElemType::Bool => "uint8_t",
    }
}

/// A helper function. Printed in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Helper {
    /// Memory for a buffer, in code that stands alone.
    Alloc,
    /// The same in the runtime's code: memory that the runtime keeps between calls.
    Scratch,
    /// What was stored past the caches is seen by others.
    Fence,
    /// A function of the mathematical library that no compiler computes itself.
    Library(&'static str, ElemType),
    /// A power: of a small whole exponent a product, else the library's.
    Pow(ElemType),
    /// The bits of a float.
    ToBits(ElemType),
    /// The float that has these bits.
    FromBits(ElemType),
    /// Numbers that functions of mathematics look up.
    Table(Table),
    /// What a function of mathematics does for arguments that are rare.
    Rare(Function, ElemType),
    /// A function of mathematics, by its recipe.
    Function(Function, ElemType),
    /// The number of lanes.
    Lanes(LaneShape),
    /// A type of vectors.
    Vector(Vector),
    /// A function over vectors.
    VectorCall(VectorCall),
    /// A copy of rows as columns, so many at a time; with something that is added to each element.
    Turn(ElemType, i64, bool),
    /// `a + b` that wraps.
    Add(ElemType),
    /// `a - b` that wraps.
    Sub(ElemType),
    /// `a * b` that wraps.
    Mul(ElemType),
    /// `-a` that wraps.
    Neg(ElemType),
    /// The absolute value, which wraps.
    Abs(ElemType),
    /// The quotient towards minus infinity, 0 for a zero divisor.
    FloorDiv(ElemType),
    /// Its remainder.
    Mod(ElemType),
    /// The smaller; a NaN is handed on.
    Min(ElemType),
    /// The larger; a NaN is handed on.
    Max(ElemType),
    /// 0 where the numerator is 0.
    ControlledDiv(ElemType),
    /// A float as an integer, saturating.
    FromFloat(ElemType),
    /// The value itself. GCC 12 makes `-x` of `0.0 - x`, and of `-x + 0.0`, where the same expression shows that `x` is
    /// not -0.0: a zero gets the wrong sign then, at every level of optimisation. It does not see through a function.
    Hidden(ElemType),
    /// Comparisons by a function, because compilers warn of `byte < 0`.
    Less(ElemType),
    /// As [`Helper::Less`].
    LessEqual(ElemType),
    /// As [`Helper::Less`].
    Equal(ElemType),
}

/// At the end of a function that stores past the caches.
const FENCE: &str = "\
/* What was stored past the caches comes before what is stored from here on, for other threads too. */
static inline void certen_fence(void) {
#if defined(__SSE__)
    __builtin_ia32_sfence();
#endif
}
";

/// Where the runtime's code has its buffers from.
const SCRATCH: &str = "\
/* Where memory is taken from, and given back to. */
typedef struct {
    void *(*take)(size_t bytes);
    void (*give)(void *memory);
} certen_memory;

/* Atomic, because the same file may be loaded again while its code runs. */
static const certen_memory *_Atomic certen_kept;

/* Called before anything else. */
void certen_use_memory(const certen_memory *memory) {
    certen_kept = memory;
}

/* Aligned memory for so many elements of so many bytes, or NULL if there is not enough. */
static void *certen_alloc(int64_t count, size_t bytes) {
    const certen_memory *memory = certen_kept;
    const size_t size = count > 0 ? (size_t)count * bytes : 1;
    return memory ? memory->take(size) : aligned_alloc(64, (size + 63) / 64 * 64);
}

static void certen_free(void *buffer) {
    const certen_memory *memory = certen_kept;
    if (memory) memory->give(buffer);
    else free(buffer);
}
";

impl Helper {
    /// The one of several with the same name that is printed.
    pub(crate) fn canonical(self) -> Helper {
        match self {
            Helper::VectorCall(call) => Helper::VectorCall(call.canonical()),
            other => other,
        }
    }

    /// Its name in C.
    pub(crate) fn name(self) -> String {
        let (word, elem) = match self {
            Helper::Alloc | Helper::Scratch => return "certen_alloc".into(),
            Helper::Fence => return "certen_fence".into(),
            Helper::Library(function, elem) => return format!("certen_{}", library::name(function, elem)),
            Helper::ToBits(elem) => ("bits", elem),
            Helper::FromBits(elem) => ("of_bits", elem),
            Helper::Table(table) => return recipe::table_name(table),
            Helper::Function(function, elem) => (function.name(), elem),
            Helper::Rare(function, elem) => return format!("{}_rare", Helper::Function(function, elem).name()),
            Helper::Lanes(shape) => return shape.lanes(),
            Helper::Vector(vector) => return vector.register(),
            Helper::VectorCall(call) => return call.name(),
            Helper::FromFloat(elem) => return format!("certen_{elem}_from_f64"),
            Helper::Turn(elem, side, false) => return format!("certen_turn_{elem}x{side}"),
            Helper::Turn(elem, side, true) => return format!("certen_turn_add_{elem}x{side}"),
            Helper::Add(elem) => ("add", elem),
            Helper::Sub(elem) => ("sub", elem),
            Helper::Mul(elem) => ("mul", elem),
            Helper::Neg(elem) => ("neg", elem),
            Helper::Abs(elem) => ("abs", elem),
            Helper::FloorDiv(elem) => ("floor_div", elem),
            Helper::Mod(elem) => ("mod", elem),
            Helper::Min(elem) => ("min", elem),
            Helper::Max(elem) => ("max", elem),
            Helper::Pow(elem) => ("libm_pow", elem),
            Helper::ControlledDiv(elem) => ("controlled_div", elem),
            Helper::Hidden(elem) => ("hidden", elem),
            Helper::Less(elem) => ("lt", elem),
            Helper::LessEqual(elem) => ("le", elem),
            Helper::Equal(elem) => ("eq", elem),
        };
        format!("certen_{word}_{elem}")
    }

    /// What its definition uses.
    pub(crate) fn needs(self) -> Vec<Helper> {
        match self {
            Helper::Vector(vector) => vec![Helper::Lanes(vector.shape)],
            Helper::VectorCall(call) => match call.function() {
                Some((function, elem)) => [call.needs(), recipe::vector_needs(function, elem, call.shape)].concat(),
                None => call.needs(),
            },
            Helper::Function(function, elem) => recipe::needs(function, elem),
            Helper::Rare(function, elem) => recipe::rare_needs(function, elem),
            _ => Vec::new(),
        }
    }

    /// Its definition in C: a table.
    pub(crate) fn text(self) -> String {
        let name = self.name();
        let function = |result: &str, parameters: &str, comment: &str, body: &str| {
            format!("/* {comment} */\nstatic inline {result} {name}({parameters}) {{\n    {body}\n}}\n")
        };
        let unary = |elem: ElemType, comment: &str, body: &str| {
            let ty = c_type(elem);
            function(ty, &format!("{ty} a"), comment, &body.replace("TYPE", ty))
        };
        let binary = |elem: ElemType, comment: &str, body: &str| {
            let ty = c_type(elem);
            function(ty, &format!("{ty} a, {ty} b"), comment, &body.replace("TYPE", ty))
        };
        // Unsigned arithmetic wraps; the conversion back keeps the bits.
        let wrapping = |elem: ElemType, sign: &str| {
            binary(elem, &format!("a {sign} b, wrapping around"), &format!("return (TYPE)((uTYPE)a {sign} (uTYPE)b);"))
        };
        let least = |elem: ElemType, comment: &str, sign: &str| match elem.is_float() {
            true => binary(
                elem,
                &format!("{comment}; NaN if one of them is"),
                &format!("return a != a || a {sign} b ? a : b;"),
            ),
            false => binary(elem, comment, &format!("return a {sign} b ? a : b;")),
        };
        let compared = |elem: ElemType, sign: &str| {
            let (ty, truth) = (c_type(elem), c_type(ElemType::Bool));
            function(truth, &format!("{ty} a, {ty} b"), &format!("a {sign} b"), &format!("return a {sign} b;"))
        };
        match self {
            // The entry point has made sure that the number of bytes fits.
            Helper::Alloc => format!(
                "/* Aligned memory for so many elements of so many bytes, or NULL if there is not enough. */\n\
                 static void *{name}(int64_t count, size_t bytes) {{\n    \
                     size_t size = count > 0 ? (size_t)count * bytes : 1;\n    \
                     return aligned_alloc(64, (size + 63) / 64 * 64);\n\
                 }}\n"
            ),
            Helper::Scratch => SCRATCH.into(),
            Helper::Fence => FENCE.into(),
            Helper::Library(function, elem) => library::declaration(function, elem),
            Helper::Pow(elem) => library::power(elem),
            Helper::ToBits(elem) => recipe::conversion(elem, true),
            Helper::FromBits(elem) => recipe::conversion(elem, false),
            Helper::Table(table) => recipe::table(table),
            Helper::Function(function, elem) => recipe::text(function, elem),
            Helper::Rare(function, elem) => recipe::rare_text(function, elem),
            Helper::Lanes(shape) => shape.text(),
            Helper::Vector(vector) => vector.text(),
            Helper::VectorCall(call) => match call.function() {
                Some((function, elem)) => recipe::vector_text(function, elem, call.shape, &name),
                None => call.text(),
            },
            Helper::Turn(elem, side, adds) => turn::text(elem, side, adds),
            Helper::Add(elem) => wrapping(elem, "+"),
            Helper::Sub(elem) => wrapping(elem, "-"),
            Helper::Mul(elem) => wrapping(elem, "*"),
            Helper::Neg(elem) => unary(elem, "-a, wrapping around", "return (TYPE)(0 - (uTYPE)a);"),
            Helper::Abs(elem) => {
                unary(elem, "The absolute value of a, wrapping around", "return a >= 0 ? a : (TYPE)(0 - (uTYPE)a);")
            }
            // Without branches, so that GCC moves a division out of the loops that do not change it.
            Helper::FloorDiv(elem) => binary(
                elem,
                "a / b rounded towards minus infinity; 0 if b is 0",
                "if (b == 0) return 0;\n    if (b == -1) return (TYPE)(0 - (uTYPE)a);\n    \
                 TYPE quotient = a / b, remainder = a % b;\n    \
                 return quotient - ((remainder != 0) & ((remainder < 0) != (b < 0)));",
            ),
            Helper::Mod(elem) => binary(
                elem,
                "The remainder of the division of a by b that rounds towards minus infinity; 0 if b is 0",
                "if (b == 0 || b == -1) return 0;\n    TYPE remainder = a % b;\n    \
                 return remainder + ((remainder != 0) & ((remainder < 0) != (b < 0))) * b;",
            ),
            Helper::Min(elem) => least(elem, "The smaller of a and b", "<="),
            Helper::Max(elem) => least(elem, "The larger of a and b", ">="),
            Helper::ControlledDiv(elem) => binary(elem, "a / b, or 0 where a is 0", "return a == 0 ? 0 : a / b;"),
            Helper::FromFloat(elem) => {
                let (low, least, high, most) = match elem {
                    ElemType::I64 => ("< -9223372036854775808.0", "INT64_MIN", "9223372036854775808.0", "INT64_MAX"),
                    ElemType::I32 => ("<= -2147483649.0", "INT32_MIN", "2147483648.0", "INT32_MAX"),
                    _ => ("<= -1.0", "0", "256.0", "255"),
                };
                let (ty, comment) = (c_type(elem), format!("a without its fraction, or the nearest {elem}; 0 for NaN"));
                let bounds = format!("if (a {low}) return {least};\n    if (a >= {high}) return {most};");
                function(ty, "double a", &comment, &format!("if (a != a) return 0;\n    {bounds}\n    return ({ty})a;"))
            }
            Helper::Hidden(elem) => unary(elem, "a, of which GCC 12 would think that 0.0 - a is -a", "return a;"),
            Helper::Less(elem) => compared(elem, "<"),
            Helper::LessEqual(elem) => compared(elem, "<="),
            Helper::Equal(elem) => compared(elem, "=="),
        }
    }
}
