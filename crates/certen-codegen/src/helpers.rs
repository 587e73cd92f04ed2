//! Helper functions of generated C: what C leaves undefined or open, decided as in the Machine domain.

use certen_core::ElemType;

use crate::library;
use crate::vector::types::{Shape, Vector, VectorCall};

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
    /// Memory for a buffer.
    Alloc,
    /// A function of the mathematical library that no compiler computes itself.
    Library(&'static str, ElemType),
    /// A power: of a small whole exponent a product, else the library's.
    Pow(ElemType),
    /// The number of lanes.
    Lanes(Shape),
    /// A type of vectors.
    Vector(Vector),
    /// A function over vectors.
    VectorCall(VectorCall),
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
    /// Comparisons by a function, because compilers warn of `byte < 0`.
    Less(ElemType),
    /// As [`Helper::Less`].
    LessEqual(ElemType),
    /// As [`Helper::Less`].
    Equal(ElemType),
}

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
            Helper::Alloc => return "certen_alloc".into(),
            Helper::Library(function, elem) => return format!("certen_{}", library::name(function, elem)),
            Helper::Lanes(shape) => return shape.lanes(),
            Helper::Vector(vector) => return vector.register(),
            Helper::VectorCall(call) => return call.name(),
            Helper::FromFloat(elem) => return format!("certen_{elem}_from_f64"),
            Helper::Add(elem) => ("add", elem),
            Helper::Sub(elem) => ("sub", elem),
            Helper::Mul(elem) => ("mul", elem),
            Helper::Neg(elem) => ("neg", elem),
            Helper::Abs(elem) => ("abs", elem),
            Helper::FloorDiv(elem) => ("floor_div", elem),
            Helper::Mod(elem) => ("mod", elem),
            Helper::Min(elem) => ("min", elem),
            Helper::Max(elem) => ("max", elem),
            Helper::Pow(elem) => ("pow", elem),
            Helper::ControlledDiv(elem) => ("controlled_div", elem),
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
            Helper::VectorCall(call) => call.needs(),
            _ => Vec::new(),
        }
    }

    /// Its definition in C.
    pub(crate) fn text(self) -> String {
        let name = self.name();
        let binary = |elem: ElemType, comment: &str, body: &str| {
            let ty = c_type(elem);
            format!("/* {comment} */\nstatic inline {ty} {name}({ty} a, {ty} b) {{\n{body}}}\n")
        };
        // Unsigned arithmetic wraps; the conversion back keeps the bits.
        let wrapping = |elem: ElemType, sign: &str, comment: &str| {
            let ty = c_type(elem);
            binary(elem, comment, &format!("    return ({ty})((u{ty})a {sign} (u{ty})b);\n"))
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
            Helper::Library(function, elem) => library::declaration(function, elem),
            Helper::Pow(elem) => library::power(elem),
            Helper::Lanes(shape) => shape.text(),
            Helper::Vector(vector) => vector.text(),
            Helper::VectorCall(call) => call.text(),
            Helper::Add(elem) => wrapping(elem, "+", "a + b, wrapping around"),
            Helper::Sub(elem) => wrapping(elem, "-", "a - b, wrapping around"),
            Helper::Mul(elem) => wrapping(elem, "*", "a * b, wrapping around"),
            Helper::Neg(elem) | Helper::Abs(elem) => {
                let ty = c_type(elem);
                let (comment, kept) = match self {
                    Helper::Neg(_) => ("-a, wrapping around", ""),
                    _ => ("The absolute value of a, wrapping around", "a >= 0 ? a : "),
                };
                format!(
                    "/* {comment} */\nstatic inline {ty} {name}({ty} a) {{\n    \
                     return {kept}({ty})(0 - (u{ty})a);\n}}\n"
                )
            }
            Helper::FloorDiv(elem) => {
                let ty = c_type(elem);
                binary(
                    elem,
                    "a / b rounded towards minus infinity; 0 if b is 0",
                    &format!(
                        "    if (b == 0) return 0;\n    if (b == -1) return ({ty})(0 - (u{ty})a);\n    \
                         {ty} quotient = a / b, remainder = a % b;\n    \
                         return remainder != 0 && (remainder < 0) != (b < 0) ? quotient - 1 : quotient;\n"
                    ),
                )
            }
            Helper::Mod(elem) => {
                let ty = c_type(elem);
                binary(
                    elem,
                    "The remainder of the division of a by b that rounds towards minus infinity; 0 if b is 0",
                    &format!(
                        "    if (b == 0 || b == -1) return 0;\n    {ty} remainder = a % b;\n    \
                         return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;\n"
                    ),
                )
            }
            Helper::Min(elem) | Helper::Max(elem) => {
                let (comment, sign) = match self {
                    Helper::Min(_) => ("The smaller of a and b", "<="),
                    _ => ("The larger of a and b", ">="),
                };
                if elem.is_float() {
                    let comment = format!("{comment}; NaN if one of them is");
                    binary(elem, &comment, &format!("    return a != a || a {sign} b ? a : b;\n"))
                } else {
                    binary(elem, comment, &format!("    return a {sign} b ? a : b;\n"))
                }
            }
            Helper::ControlledDiv(elem) => binary(elem, "a / b, or 0 where a is 0", "    return a == 0 ? 0 : a / b;\n"),
            Helper::FromFloat(elem) => {
                let ty = c_type(elem);
                let (low, least, high, most) = match elem {
                    ElemType::I64 => ("< -9223372036854775808.0", "INT64_MIN", "9223372036854775808.0", "INT64_MAX"),
                    ElemType::I32 => ("<= -2147483649.0", "INT32_MIN", "2147483648.0", "INT32_MAX"),
                    _ => ("<= -1.0", "0", "256.0", "255"),
                };
                format!(
                    "/* a without its fraction, or the nearest {elem}; 0 for NaN */\n\
                     static inline {ty} {name}(double a) {{\n    \
                     if (a != a) return 0;\n    if (a {low}) return {least};\n    if (a >= {high}) return {most};\n    \
                     return ({ty})a;\n}}\n"
                )
            }
            Helper::Less(elem) | Helper::LessEqual(elem) | Helper::Equal(elem) => {
                let sign = match self {
                    Helper::Less(_) => "<",
                    Helper::LessEqual(_) => "<=",
                    _ => "==",
                };
                let (ty, truth) = (c_type(elem), c_type(ElemType::Bool));
                format!(
                    "/* a {sign} b */\nstatic inline {truth} {name}({ty} a, {ty} b) {{\n    return a {sign} b;\n}}\n"
                )
            }
        }
    }
}
