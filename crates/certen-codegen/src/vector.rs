//! Vector loops in C.
//!
//! The iterations of a vector loop are independent of each other, so several can be made at once, in the lanes of a
//! vector. What compilers make of a plain loop depends on its length and its surroundings: GCC unrolls one of 8
//! iterations before it looks for vectors, and then finds few. So a loop of a known length is printed with vectors in it,
//! by the extension of GCC and Clang:
//!
//! ```c
//! for (int64_t j = 0; j < 16; j += certen_f64_v64_lanes) {
//!     *(certen_f64_m64 *)&acc[j] += a * *(const certen_f64_m64 *)&B[k*n + j];
//! }
//! ```
//!
//! How many lanes a vector has is decided in C, by what the machine has: at most so many that they divide the loop; for
//! other compilers it is one, and the text is that of a plain loop. Loops of few iterations around are unrolled, so that
//! a small buffer that they all use (the tile of a product) is kept in registers.
//!
//! Needs for that: all that varies with the index is of one type, f32 or f64, and made of additions, subtractions,
//! multiplications, divisions, `fma` and elements that lie side by side. A loop that is not like that stays a plain
//! loop, with a pragma that tells compilers what they could not see. Guarantees: the operations of each iteration and
//! their order stay the same, so the bits do.

use std::collections::{BTreeSet, HashMap, HashSet};

use certen_core::{Binary, ElemType, Range, ReduceOp, Term, TermId, Terms, Unary};
use certen_index::Ix;
use certen_loops::{MAX_NESTING, Mode, Stmt, Target, as_element, parts_first};
use certen_syntax::Name;

use crate::emit::{Emitted, Emitter};
use crate::expr::MAX_TERMS_IN_BLOCK;
use crate::helpers::{Helper, c_type};

/// The longest and the shortest vectors that there are, in bytes.
const MAX_BYTES: i64 = 64;
const MIN_BYTES: i64 = 16;

/// Loops of more iterations are not unrolled, nor those that become more statements.
const MAX_UNROLLED: i64 = 16;
const MAX_UNROLLED_STATEMENTS: i64 = 256;

/// Before a vector loop that is printed as a plain one. Clang says where it does not follow.
pub(crate) const PRAGMA: &str = "\
/* Before a loop whose iterations do not depend on each other. */
#if defined(__clang__)
#pragma clang diagnostic ignored \"-Wpass-failed\"
#define CERTEN_VECTOR_LOOP _Pragma(\"clang loop vectorize(enable)\")
#elif defined(__GNUC__)
#define CERTEN_VECTOR_LOOP _Pragma(\"GCC ivdep\")
#else
#define CERTEN_VECTOR_LOOP
#endif

";

/// Before a loop that is unrolled.
pub(crate) const UNROLL: &str = "\
/* Before a loop of so few iterations that they are written one after the other. */
#define CERTEN_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define CERTEN_UNROLL(count) CERTEN_PRAGMA(unroll count)
#elif defined(__GNUC__)
#define CERTEN_UNROLL(count) CERTEN_PRAGMA(GCC unroll count)
#else
#define CERTEN_UNROLL(count)
#endif

";

/// Before the types of vectors.
pub(crate) const BYTES: &str = "\
/* The bytes of this machine's vectors. */
#if defined(__AVX512F__)
#define CERTEN_VECTOR_BYTES 64
#elif defined(__AVX__)
#define CERTEN_VECTOR_BYTES 32
#else
#define CERTEN_VECTOR_BYTES 16
#endif

";

/// A vector loop whose lanes are printed.
pub(crate) struct Lanes {
    index: Name,
    elem: ElemType,
    /// Vectors have at most so many bytes.
    bytes: i64,
    /// Locals of the loop: each lane has its own.
    locals: HashSet<Name>,
}

impl Lanes {
    /// The lanes of a vector loop, if it can be printed with vectors.
    fn of(terms: &Terms, index: Name, range: &Range, body: &[Stmt]) -> Option<Lanes> {
        let length = length(range)?;
        let elem = first_type(terms, body)?;
        let bytes = length.checked_mul(elem.bytes() as i64)?;
        // The largest power of two that divides it.
        let bytes = (bytes & bytes.wrapping_neg()).min(MAX_BYTES);
        if !elem.is_float() || bytes < MIN_BYTES {
            return None;
        }
        let mut lanes = Lanes { index, elem, bytes, locals: HashSet::new() };
        lanes.block(terms, body, 0).then_some(lanes)
    }

    fn block(&mut self, terms: &Terms, block: &[Stmt], depth: usize) -> bool {
        let mut statements = block.iter();
        depth <= MAX_NESTING
            && statements.all(|stmt| match stmt {
                Stmt::Nest(_) => true,
                Stmt::Local { name, elem, init } => {
                    let fits = *elem == self.elem && init.is_none_or(|value| self.value(terms, value));
                    self.locals.insert(*name);
                    fits
                }
                Stmt::Assign { target, op, value } => {
                    let stored = match target {
                        Target::Local(name) => self.locals.contains(name),
                        Target::Element(_, indices) => self.is_dense(indices),
                    };
                    let combined = matches!(op, None | Some(ReduceOp::Sum | ReduceOp::Prod));
                    stored && combined && terms.ty(*value).elem == self.elem && self.value(terms, *value)
                }
                Stmt::For { range, mode: Mode::Serial, body, .. } => {
                    !range.lo.mentions(self.index)
                        && !range.hi.mentions(self.index)
                        && self.block(terms, body, depth + 1)
                }
                Stmt::If { cond, then, otherwise } => {
                    let mut names = BTreeSet::new();
                    cond.collect_names(&mut names);
                    !names.contains(&self.index)
                        && self.block(terms, then, depth + 1)
                        && self.block(terms, otherwise, depth + 1)
                }
                Stmt::For { .. } | Stmt::Alloc(..) | Stmt::Free(_) | Stmt::Swap(..) => false,
            })
    }

    /// Whether all of a value that varies with the index is something that vectors have.
    fn value(&self, terms: &Terms, root: TermId) -> bool {
        let order = parts_first(terms, root);
        if order.len() > MAX_TERMS_IN_BLOCK {
            return false;
        }
        let mut varying: HashMap<TermId, bool> = HashMap::new();
        for id in order {
            let term = terms.get(id);
            let varies = match (as_element(terms, id), term) {
                (Some((name, _, indices)), _) => {
                    let varies = self.varies(name, indices);
                    if varies && !indices.is_empty() && !self.is_dense(indices) {
                        return false;
                    }
                    varies
                }
                (None, Term::Index(ix, _)) if ix.mentions(self.index) => return false,
                (None, _) => {
                    let varies = term.parts().iter().any(|part| varying.get(part) == Some(&true));
                    let has_vectors = matches!(
                        term,
                        Term::Unary(Unary::Neg, _)
                            | Term::Binary(Binary::Add | Binary::Sub | Binary::Mul | Binary::Div, ..)
                            | Term::Fma(..)
                    );
                    if varies && !has_vectors {
                        return false;
                    }
                    varies
                }
            };
            if varies && terms.ty(id).elem != self.elem {
                return false;
            }
            varying.insert(id, varies);
        }
        true
    }

    /// Whether an element or local is another one in each lane.
    pub(crate) fn varies(&self, name: Name, indices: &[Ix]) -> bool {
        self.locals.contains(&name) || indices.iter().any(|ix| ix.mentions(self.index))
    }

    /// Whether the elements of neighbouring lanes are neighbours.
    fn is_dense(&self, indices: &[Ix]) -> bool {
        let Some((last, outer)) = indices.split_last() else { return false };
        let rest = last.sub(&Ix::var(self.index));
        last.mentions(self.index)
            && rest.is_ok_and(|rest| !rest.mentions(self.index))
            && !outer.iter().any(|ix| ix.mentions(self.index))
    }

    fn helper(&self) -> Helper {
        Helper::Vector(self.elem, self.bytes)
    }

    /// The type of a vector.
    pub(crate) fn register(&self) -> String {
        self.helper().name()
    }

    /// The type of a vector of elements in memory.
    pub(crate) fn memory(&self) -> String {
        in_memory(self.elem, self.bytes)
    }

    /// The function that computes `fma` of vectors.
    pub(crate) fn fma(&self) -> Helper {
        Helper::VectorFma(self.elem, self.bytes)
    }
}

/// How many iterations a loop has, if that is a number above 0.
fn length(range: &Range) -> Option<i64> {
    range.hi.sub(&range.lo).ok()?.as_constant().filter(|length| *length > 0)
}

/// The type of the first value that a block computes.
fn first_type(terms: &Terms, block: &[Stmt]) -> Option<ElemType> {
    let mut todo: Vec<&Stmt> = block.iter().rev().collect();
    while let Some(stmt) = todo.pop() {
        match stmt {
            Stmt::Local { elem, .. } => return Some(*elem),
            Stmt::Assign { value, .. } => return Some(terms.ty(*value).elem),
            Stmt::For { body, .. } => todo.extend(body.iter().rev()),
            Stmt::If { then, otherwise, .. } => todo.extend(otherwise.iter().rev().chain(then.iter().rev())),
            _ => {}
        }
    }
    None
}

impl<'a> Emitter<'a> {
    /// A vector loop: of vectors if it can be, else a plain one.
    pub(crate) fn vector_for(&mut self, index: Name, range: &Range, body: &'a [Stmt], depth: usize) -> Emitted<()> {
        let lanes = match self.lanes {
            // Its own lanes would be in those of a loop around.
            Some(_) => None,
            None => Lanes::of(&self.program.terms, index, range, body),
        };
        let Some(lanes) = lanes else {
            self.line("CERTEN_VECTOR_LOOP");
            return self.sequential_for(index, range, body, depth);
        };
        let most = length(range).map_or(1, |length| vectors(length, lanes.elem));
        let helper = self.helper(lanes.helper());
        self.lanes = Some(lanes);
        let (lo, hi) = (self.ix(&range.lo)?.text(), self.ix(&range.hi)?.text());
        self.bound_index(index, range);
        let j = self.names.get(index).to_owned();
        if (2..=MAX_UNROLLED).contains(&most) {
            self.line(&format!("CERTEN_UNROLL({most})"));
        }
        self.line(&format!("for (int64_t {j} = {lo}; {j} < {hi}; {j} += {helper}_lanes) {{"));
        self.inner(body, depth)?;
        self.lanes = None;
        self.end_of_iteration(index, body);
        self.ranges.remove(&index);
        self.line("}");
        Ok(())
    }

    /// How often a loop in order is to be unrolled, if it is around a vector loop, or in one.
    pub(crate) fn unrolled(&self, range: &Range, body: &[Stmt]) -> Option<i64> {
        let length = length(range).filter(|length| (2..=MAX_UNROLLED).contains(length))?;
        let (statements, has_vectors) = self.statements(body, 0)?;
        let short = length.checked_mul(statements)? <= MAX_UNROLLED_STATEMENTS;
        (short && (has_vectors || self.lanes.is_some())).then_some(length)
    }

    /// How many statements a block is with all its loops unrolled, and whether some are of vectors; none if a loop cannot
    /// be unrolled or if there are too many.
    fn statements(&self, block: &[Stmt], depth: usize) -> Option<(i64, bool)> {
        let (mut count, mut has_vectors) = (0i64, false);
        if depth > MAX_NESTING {
            return None;
        }
        for stmt in block {
            let (more, vectors) = match stmt {
                Stmt::Nest(_) => (0, false),
                Stmt::Local { .. } | Stmt::Assign { .. } => (1, false),
                Stmt::If { then, otherwise, .. } => {
                    let (a, b) = (self.statements(then, depth + 1)?, self.statements(otherwise, depth + 1)?);
                    (a.0 + b.0, a.1 || b.1)
                }
                Stmt::For { range, mode: Mode::Serial, body, .. } => {
                    let length = length(range).filter(|length| *length <= MAX_UNROLLED)?;
                    let (inner, vectors) = self.statements(body, depth + 1)?;
                    (length.checked_mul(inner)?, vectors)
                }
                Stmt::For { index, range, mode: Mode::Vector, body } => {
                    let lanes = Lanes::of(&self.program.terms, *index, range, body)?;
                    let most = vectors(length(range)?, lanes.elem);
                    (most.checked_mul(self.statements(body, depth + 1)?.0)?, true)
                }
                Stmt::For { mode: Mode::Parallel, .. } | Stmt::Alloc(..) | Stmt::Free(_) | Stmt::Swap(..) => {
                    return None;
                }
            };
            count = count.checked_add(more)?;
            has_vectors |= vectors;
            if count > MAX_UNROLLED_STATEMENTS {
                return None;
            }
        }
        Some((count, has_vectors))
    }
}

/// How many of the shortest vectors so many elements are.
fn vectors(length: i64, elem: ElemType) -> i64 {
    length.saturating_mul(elem.bytes() as i64) / MIN_BYTES
}

fn in_memory(elem: ElemType, bytes: i64) -> String {
    format!("certen_{elem}_m{bytes}")
}

/// The definition of the types of vectors of at most so many bytes.
pub(crate) fn types(elem: ElemType, bytes: i64) -> String {
    let (register, memory, ty) = (Helper::Vector(elem, bytes).name(), in_memory(elem, bytes), c_type(elem));
    let size = match bytes {
        MIN_BYTES => MIN_BYTES.to_string(),
        MAX_BYTES => "CERTEN_VECTOR_BYTES".into(),
        _ => format!("CERTEN_VECTOR_BYTES < {bytes} ? CERTEN_VECTOR_BYTES : {bytes}"),
    };
    format!(
        "/* Vectors of {elem} of at most {bytes} bytes, in registers and in memory; of one element where there are none. */\n\
         #if defined(__GNUC__)\n\
         typedef {ty} {register} __attribute__((vector_size({size})));\n\
         typedef {ty} {memory} __attribute__((vector_size({size}), aligned({align}), may_alias));\n\
         #else\ntypedef {ty} {register};\ntypedef {ty} {memory};\n#endif\n\
         enum {{ {register}_lanes = sizeof({register}) / sizeof({ty}) }};\n",
        align = elem.bytes(),
    )
}

/// The definition of the function that computes `fma` of vectors. GCC has it as one instruction only by name.
pub(crate) fn fma(elem: ElemType, bytes: i64) -> String {
    let (name, register) = (Helper::VectorFma(elem, bytes).name(), Helper::Vector(elem, bytes).name());
    let (letters, mask, function) = match elem {
        ElemType::F32 => ("ps", "unsigned short", "fmaf"),
        _ => ("pd", "unsigned char", "fma"),
    };
    let mut text = format!(
        "/* a * b + c, rounded once */\nstatic inline {register} {name}({register} a, {register} b, {register} c) {{\n\
         #if !defined(__GNUC__)\n    return {function}(a, b, c);\n"
    );
    if bytes >= 64 {
        text += &format!(
            "#elif defined(__AVX512F__) && !defined(__clang__)\n    \
             return __builtin_ia32_vfmadd{letters}512_mask(a, b, c, ({mask})-1, 4);\n"
        );
    }
    let short = if bytes >= 32 { "256" } else { "" };
    text += &format!(
        "#elif defined(__FMA__) && !defined(__clang__)\n    return __builtin_ia32_vfmadd{letters}{short}(a, b, c);\n"
    );
    text += &format!(
        "#else\n    {register} result = c;\n    \
         for (int at = 0; at < {register}_lanes; at++) result[at] = {function}(a[at], b[at], c[at]);\n    \
         return result;\n#endif\n}}\n"
    );
    text
}
