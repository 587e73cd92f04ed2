//! Rows copied as columns, in squares that are turned in registers.

use std::fmt::Write;

use certen_core::ElemType;

use super::c_type;

/// How many elements the side of a square can have, the most first: rows of 32 bytes, whatever the machine has, because compilers
/// make shorter vectors of them; and four elements.
pub(crate) fn sides(elem: ElemType) -> &'static [i64] {
    if elem.bytes() == 4 { &[8, 4] } else { &[4] }
}

/// Lanes of two vectors, by their numbers.
pub(super) const SHUFFLE: &str = "\
#if !defined(CERTEN_SHUFFLE)
#if defined(__clang__) || __GNUC__ >= 12
#define CERTEN_SHUFFLE(mask, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define CERTEN_SHUFFLE(mask, a, b, ...) __builtin_shuffle(a, b, (mask){__VA_ARGS__})
#endif
#endif
";

/// The function, which may add elements that lie as the target does. Each round exchanges blocks of pairs of rows, first of single
/// elements, then of twice as many, by shuffles that AVX2 has instructions for.
pub(super) fn text(elem: ElemType, side: i64, adds: bool) -> String {
    let ty = c_type(elem);
    let name = format!("{elem}x{side}");
    let vector = format!("certen_turned_{name}");
    let mut rounds = String::new();
    let mut distance = 1;
    while distance < side {
        let mask = |high: i64| {
            let lanes = (0..side).map(|lane| mask(lane, distance, high, side).to_string());
            lanes.collect::<Vec<_>>().join(", ")
        };
        let (before, after) = if distance.trailing_zeros() % 2 == 0 { ("a", "b") } else { ("b", "a") };
        for row in (0..side).filter(|row| row & distance == 0) {
            let other = row + distance;
            for (to, high) in [(row, 0), (other, 1)] {
                let _ = writeln!(
                    rounds,
                    "        {after}[{to}] = CERTEN_SHUFFLE({vector}_mask, {before}[{row}], {before}[{other}], {});",
                    mask(high)
                );
            }
        }
        distance *= 2;
    }
    let last = if side.trailing_zeros().is_multiple_of(2) { "a" } else { "b" };
    let added = |place: &str| if adds { place } else { "" }.to_owned();
    let (what, function) = if adds { (" and adds others", "turn_add") } else { ("", "turn") };
    let more = added(&format!(", const {ty} *more, int64_t step"));
    let (row_added, one_added) =
        (added(&format!(" + *(const {vector} *)&more[(at + row)*step]")), added(" + more[at*step + row]"));
    format!(
        "{types}\
         /* Copies {side} rows of so many elements as columns, which are so far from each other{what}. */\n\
         static inline void certen_{function}_{name}(const {ty} *const rows[{side}], {ty} *restrict to, int64_t stride, int64_t count{more}) {{\n    \
             const int64_t whole = count - count % {side};\n    \
             for (int64_t at = 0; at < whole; at = at + {side}) {{\n        \
                 {vector} a[{side}], b[{side}];\n        \
                 CERTEN_UNROLL({side})\n        \
                 for (int row = 0; row < {side}; row++) a[row] = *(const {vector} *)&rows[row][at];\n\
         {rounds}        \
                 CERTEN_UNROLL({side})\n        \
                 for (int row = 0; row < {side}; row++) *({vector} *)&to[(at + row)*stride] = {last}[row]{row_added};\n    \
             }}\n    \
             for (int64_t at = whole; at < count; at++) {{\n        \
                 CERTEN_UNROLL({side})\n        \
                 for (int row = 0; row < {side}; row++) to[at*stride + row] = rows[row][at]{one_added};\n    \
             }}\n\
         }}\n",
        types = types(elem, side)
    )
}

/// The vectors of the function, which those with and without an addition have in common.
fn types(elem: ElemType, side: i64) -> String {
    let (row, bytes) = (side * elem.bytes() as i64, elem.bytes());
    let (guard, vector) =
        (format!("CERTEN_TURNED_{elem}X{side}").to_uppercase(), format!("certen_turned_{elem}x{side}"));
    format!(
        "{SHUFFLE}\
         #if !defined({guard})\n\
         #define {guard}\n\
         typedef {ty} {vector} __attribute__((vector_size({row}), aligned({bytes}), may_alias));\n\
         typedef int{bits}_t {vector}_mask __attribute__((vector_size({row})));\n\
         #endif\n",
        ty = c_type(elem),
        bits = 8 * bytes
    )
}

/// Which lane of two rows goes to a lane, if blocks of `distance` lanes are exchanged: of the first row the even blocks stay, and
/// those of the other one come between them.
fn mask(lane: i64, distance: i64, high: i64, side: i64) -> i64 {
    let block = lane / distance;
    match block % 2 {
        0 => lane + high * distance,
        _ => side + lane - distance + high * distance,
    }
}
