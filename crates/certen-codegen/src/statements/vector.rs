//! Vector loops in C.
//!
//! The iterations of a vector loop are independent of each other, so several can be made at once, in the lanes of a
//! vector. The C compiler is not asked to find them: its vectorisers are off, because GCC 12 makes wrong code of plain
//! loops with them. A loop that has [`Lanes`] is printed with vectors in it, by the extension of GCC and Clang:
//!
//! ```c
//! for (int64_t j = 0; j < n; j = j + CERTEN_LANES_8X8) {
//!     if (j > n - CERTEN_LANES_8X8) j = n - CERTEN_LANES_8X8;
//!     *(certen_f64x8_m *)&y[j] = a * *(const certen_f64x8_m *)&x[j];
//! }
//! ```
//!
//! A sum of floats is made in its order, but what it is a sum of is computed in lanes where that is more than a load.
//!
//! The last vector makes some iterations again, which changes nothing where none reads what another one writes; else what
//! is left over is made one by one, and so are the iterations of a loop that has fewer than a vector has lanes.
//! How many lanes a vector has is decided in C, by what the machine has. Loops of few iterations around are unrolled, so
//! that a small buffer that they all use (the tile of a product) is kept in registers. A vector loop without lanes stays a
//! plain loop. Guarantees: the operations of each iteration and their order stay the same, so the bits do; integers and
//! truth values are combined in another order, which gives the same bits.

use std::collections::HashMap;

use certen_core::{ElemType, Range, ReduceOp, TensorType, Term, TermId};
use certen_index::Ix;
use certen_loops::{Lanes, MAX_NESTING, Mode, Stmt, Target};
use certen_syntax::{Diagnostic, Name};

use crate::emitter::{Emitter, VectorLoop};
use crate::helpers::Helper;
use crate::helpers::vectors::{Lane, LaneShape};
use crate::value::{CExpr, Level};

/// The shortest vectors that there are, in bytes.
const MIN_BYTES: i64 = 16;

/// Loops of more iterations are not unrolled, nor those that become more statements.
const MAX_UNROLLED: i64 = 16;
const MAX_UNROLLED_STATEMENTS: i64 = 256;

/// Before a loop that is unrolled.
pub(crate) const UNROLL: &str = "\
/* Before a loop of so few iterations that they are written one after the other. */
#define CERTEN_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define CERTEN_UNROLL(count) CERTEN_PRAGMA(unroll count)
#else
#define CERTEN_UNROLL(count) CERTEN_PRAGMA(GCC unroll count)
#endif

";

/// Before the types of vectors.
pub(crate) const BYTES: &str = "\
#if !defined(__GNUC__)
#error \"this file needs the vectors of GCC or Clang\"
#endif

/* The bytes of this machine's vectors. */
#if defined(__AVX512F__) && defined(__AVX512BW__)
#define CERTEN_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define CERTEN_VECTOR_BYTES 32
#else
#define CERTEN_VECTOR_BYTES 16
#endif
#if defined(__aarch64__)
#include <arm_neon.h>
#endif

";

/// How many iterations a loop has, if that is a number above 0.
pub(super) fn length(range: &Range) -> Option<i64> {
    range.hi.sub(&range.lo).ok()?.as_constant().filter(|length| *length > 0)
}

/// Where a vector loop begins and ends, its index and how many lanes it has, as texts; and its length, if that is a number.
struct Ends {
    lo: String,
    hi: String,
    i: String,
    step: String,
    length: Option<i64>,
}

impl Ends {
    fn difference(&self) -> String {
        match self.lo.as_str() {
            "0" => self.hi.clone(),
            lo if lo.chars().all(|c| c.is_alphanumeric() || c == '_') => format!("{} - {lo}", self.hi),
            lo => format!("{} - ({lo})", self.hi),
        }
    }
}

/// What becomes of the iterations that fill no vector.
enum Tail {
    /// There are none.
    None,
    /// They are made with some of those before once more.
    Again,
    /// They are left over.
    OneByOne,
}

/// A loop whose vectors begin, after the first, where those of a buffer do: whether it is the first, and what is stored.
struct Aligned<'a> {
    first: String,
    to: (Name, &'a [Ix]),
    elem: ElemType,
}

impl<'a> Emitter<'a> {
    /// The lanes of a vector loop and how many there are, if it is to be printed with vectors.
    pub(super) fn lanes_of(&self, index: Name, range: &Range, body: &[Stmt]) -> Option<(Lanes, LaneShape)> {
        // Its own lanes would be in those of a loop around.
        if self.lanes.is_some() {
            return None;
        }
        let lanes = Lanes::of(&self.program.terms, |name| self.types.get(&name).copied(), index, body)?;
        let shape = LaneShape { most: lanes.most(range)?, widest: lanes.widest as i64 };
        Some((lanes, shape))
    }

    /// A vector loop from one number up to another, which are perhaps only a part of its range.
    pub(super) fn vector_for(
        &mut self,
        (index, range): (Name, &'a Range),
        part: Option<(&str, &str)>,
        body: &'a [Stmt],
        depth: usize,
    ) -> Result<(), Diagnostic> {
        let Some((lanes, shape)) = self.lanes_of(index, range, body) else {
            return self.plain_for((index, range), part, body, depth);
        };
        let (lo, hi) = self.ends(range, part)?;
        self.helper(Helper::Lanes(shape));
        let (i, step) = (self.names.get(index).to_owned(), shape.lanes());
        let length = if part.is_none() { length(range) } else { None };
        let ends = Ends { lo, hi, i, step, length };
        let combined: Vec<(Name, (ElemType, ReduceOp))> = lanes.combined.iter().map(|(n, c)| (*n, *c)).collect();
        let repeats = lanes.repeats;
        self.lanes = Some(VectorLoop { lanes, shape, accumulators: HashMap::new() });
        self.bound_index(index, range);
        // All iterations, whatever the machine's vectors are.
        if combined.is_empty() && length.is_some_and(|length| length % shape.most == 0) {
            self.vectors(&ends, Tail::None, body, depth)?;
        } else if repeats && length.is_some_and(|length| length >= shape.most) {
            self.vectors(&ends, Tail::Again, body, depth)?;
        } else if repeats && length.is_none() {
            self.line(&format!("if ({} >= {}) {{", ends.difference(), ends.step));
            self.indent += 1;
            self.vectors(&ends, Tail::Again, body, depth)?;
            self.indent -= 1;
            self.line("} else {");
            self.indent += 1;
            self.lanes = None;
            self.plain_for((index, range), Some((&ends.lo, &ends.hi)), body, depth)?;
            self.indent -= 1;
            self.line("}");
        } else {
            self.line("{");
            self.indent += 1;
            let lines = self.accumulators(combined)?;
            self.line(&format!("int64_t {} = {};", ends.i, ends.lo));
            self.vectors(&ends, Tail::OneByOne, body, depth)?;
            lines.iter().for_each(|line| self.line(line));
            self.lanes = None;
            if self.stands_alone {
                self.line("CERTEN_IN_ORDER");
            }
            self.line(&format!("for (; {i} < {hi}; {i}++) {{", i = ends.i, hi = ends.hi));
            self.inner(body, depth)?;
            self.line("}");
            self.indent -= 1;
            self.line("}");
        }
        self.lanes = None;
        self.ranges.shift_remove(&index);
        Ok(())
    }

    /// The loop over vectors.
    fn vectors(&mut self, ends: &Ends, tail: Tail, body: &'a [Stmt], depth: usize) -> Result<(), Diagnostic> {
        let Ends { lo, hi, i, step, length } = ends;
        let shape = self.lanes.as_ref().map(|active| active.shape);
        let count = length.zip(shape).map(|(length, shape)| vectors(length, shape));
        if let Some(count) = count.filter(|count| (2..=MAX_UNROLLED).contains(count)) {
            self.line(&format!("CERTEN_UNROLL({count})"));
        }
        let aligned = if let Tail::OneByOne = tail { None } else { self.streamed_in(body) };
        match tail {
            Tail::OneByOne => self.line(&format!("for (; {i} <= {hi} - {step}; {i} = {i} + {step}) {{")),
            Tail::None | Tail::Again => {
                let start = aligned.as_ref().map_or_else(String::new, |aligned| format!(", {} = 1", aligned.first));
                self.line(&format!("for (int64_t {i} = {lo}{start}; {i} < {hi}; {i} = {i} + {step}) {{"));
            }
        }
        if aligned.is_some() || matches!(tail, Tail::Again) {
            self.line(&format!("    if ({i} > {hi} - {step}) {i} = {hi} - {step};"));
        }
        self.fetch_next_rows(body)?;
        self.inner(body, depth)?;
        if let Some(Aligned { first, to: (to, at), elem }) = aligned {
            let (place, register) = (self.element(to, at)?, self.register(Lane::Value(elem))?);
            let past = format!("(int64_t)((uintptr_t)&{place} % sizeof({register}) / sizeof({place}))");
            self.line(&format!("    if ({first}) {i} = {i} - {past};"));
            self.line(&format!("    {first} = 0;"));
        }
        self.line("}");
        Ok(())
    }

    /// What a vector loop stores past the caches, if its vectors may overlap: after the first one they can begin where lines do.
    fn streamed_in(&mut self, body: &'a [Stmt]) -> Option<Aligned<'a>> {
        let active = self.lanes.as_ref().filter(|active| active.lanes.repeats)?;
        let mut stores = body.iter().filter_map(|stmt| match stmt {
            Stmt::Assign { target: Target::Element(name, at), op: None, value }
                if self.program.streamed.contains(name) && self.program.terms.ty(*value).elem.is_float() =>
            {
                Some((*name, at.as_ref(), self.program.terms.ty(*value).elem))
            }
            _ => None,
        });
        let (name, at, elem) = stores.next()?;
        let is_dense = self.types.get(&name).and_then(|ty| active.lanes.distance(ty, at)) == Some(1);
        let aligned = is_dense && stores.next().is_none();
        aligned.then(|| Aligned { first: self.names.numbered("first"), to: (name, at), elem })
    }

    /// The lanes in which a loop computes what it combines into a local, if it does nothing else and they pay.
    pub(super) fn lanes_of_sum(&self, index: Name, range: &Range, body: &[Stmt]) -> Option<(Lanes, LaneShape)> {
        let [Stmt::Assign { target: Target::Local(name), op: Some(_), value }] = body else { return None };
        if self.lanes.is_some() {
            return None;
        }
        let terms = &self.program.terms;
        let reads =
            terms.parts_first(*value).iter().any(|id| matches!(terms.get(*id), Term::Ref(read, _) if read == name));
        let lanes = Lanes::of_value(terms, index, *value).filter(|_| !reads)?;
        let shape = LaneShape { most: lanes.most(range)?, widest: lanes.widest as i64 };
        Some((lanes, shape))
    }

    /// A loop that combines values into a local, in their order: the values are computed in lanes, and combined one by
    /// one.
    pub(super) fn folded_for(
        &mut self,
        (index, range): (Name, &Range),
        (lo, hi): (String, String),
        (lanes, shape): (Lanes, LaneShape),
        body: &'a [Stmt],
        depth: usize,
    ) -> Result<(), Diagnostic> {
        let [Stmt::Assign { target, op: Some(op), value }] = body else { return Ok(()) };
        let elem = self.program.terms.ty(*value).elem;
        self.helper(Helper::Lanes(shape));
        let (i, step) = (self.names.get(index).to_owned(), shape.lanes());
        self.line("{");
        self.indent += 1;
        self.bound_index(index, range);
        self.line(&format!("int64_t {i} = {lo};"));
        self.line(&format!("for (; {i} <= {hi} - {step}; {i} = {i} + {step}) {{"));
        self.indent += 1;
        self.lanes = Some(VectorLoop { lanes, shape, accumulators: HashMap::new() });
        let lane = self.lane_of(elem)?;
        let (expr, register) = (self.expr_of(*value)?, self.register(lane)?);
        let (several, value) = (self.names.numbered("several"), self.in_lane(&expr, lane)?.text);
        self.line(&format!("const {register} {several} = {value};"));
        self.lanes = None;
        let (place, at) = (self.c_name(target.name()), self.own.at.clone());
        let one = self.combined(*op, elem, &place, &format!("{several}[{at}]"));
        self.line(&format!("CERTEN_UNROLL({})", shape.most));
        self.line(&format!("for (int {at} = 0; {at} < {step}; {at}++) {one}"));
        self.indent -= 1;
        self.line("}");
        if length(range).is_none_or(|length| length % shape.most != 0) {
            if self.stands_alone {
                self.line("CERTEN_IN_ORDER");
            }
            self.line(&format!("for (; {i} < {hi}; {i}++) {{"));
            self.inner(body, depth)?;
            self.line("}");
        }
        self.ranges.shift_remove(&index);
        self.indent -= 1;
        self.line("}");
        Ok(())
    }

    /// Declares what the lanes combine into; the lines after the vectors, which combine the lanes.
    fn accumulators(&mut self, mut combined: Vec<(Name, (ElemType, ReduceOp))>) -> Result<Vec<String>, Diagnostic> {
        combined.sort_by_key(|(name, _)| self.names.get(*name).to_owned());
        let mut lines = Vec::with_capacity(combined.len());
        for (name, (elem, op)) in combined {
            let (lane, c) = (self.lane_of(elem)?, self.c_name(name));
            let begin = match op {
                ReduceOp::Sum => "0",
                ReduceOp::Prod => "1",
                // The same again changes nothing.
                ReduceOp::Min | ReduceOp::Max | ReduceOp::All | ReduceOp::Any => &c,
            };
            let begin = self.in_lane(&CExpr::new(begin.into(), Level::Primary), lane)?.text;
            let (register, lanes) = (self.register(lane)?, self.names.numbered(&format!("{c}_lanes")));
            self.line(&format!("{register} {lanes} = {begin};"));
            let at = self.own.at.clone();
            let value = self.combined(op, elem, &c, &format!("{lanes}[{at}]"));
            let shape = self.lanes.as_ref().map(|active| active.shape.lanes()).unwrap_or_default();
            lines.push(format!("for (int {at} = 0; {at} < {shape}; {at}++) {value}"));
            if let Some(active) = &mut self.lanes {
                active.accumulators.insert(name, lanes);
            }
        }
        Ok(lines)
    }

    /// A local of a vector loop: in a register, each lane its own.
    pub(super) fn vector_local(&mut self, name: Name, elem: ElemType, init: Option<TermId>) -> Result<(), Diagnostic> {
        let lane = self.lane_of(elem)?;
        let register = self.register(lane)?;
        let value = match init {
            Some(value) => {
                let expr = self.expr_of(value)?;
                self.in_lane(&expr, lane)?.text
            }
            None => format!("({register}){{0}}"),
        };
        self.locals.insert(name, elem);
        let c = self.c_name(name);
        self.line(&format!("{register} {c} = {value};"));
        if !self.read.contains(&name) {
            self.line(&format!("(void){c};"));
        }
        Ok(())
    }

    /// A small buffer of a vector loop: an array of registers.
    pub(super) fn vector_alloc(&mut self, name: Name, ty: &'a TensorType) -> Result<(), Diagnostic> {
        self.types.insert(name, ty);
        let count = self.count(ty)?.text();
        let lane = self.lane_of(ty.elem)?;
        let (register, c) = (self.register(lane)?, self.c_name(name));
        self.line(&format!("{register} {c}[{count}];"));
        Ok(())
    }

    /// An assignment in a vector loop.
    pub(super) fn vector_assign(
        &mut self,
        target: &Target,
        op: Option<ReduceOp>,
        value: TermId,
    ) -> Result<(), Diagnostic> {
        let elem = self.program.terms.ty(value).elem;
        let (value, lane) = (self.expr_of(value)?, self.lane_of(elem)?);
        let is_own = matches!(target, Target::Element(..)) && self.is_own(target.name());
        let (place, in_memory) = match target {
            Target::Local(name) => (self.lane_local(*name), false),
            Target::Element(name, indices) => (self.element(*name, indices)?, !is_own),
        };
        if in_memory {
            self.function.written.insert(target.name());
        }
        let value = match op {
            None => value,
            Some(op @ (ReduceOp::Sum | ReduceOp::Prod)) if elem.is_float() && !is_own => {
                let place = if in_memory { self.place(&place, elem)? } else { place };
                let line = self.combined(op, elem, &place, &value.text);
                self.line(&line);
                return Ok(());
            }
            Some(op) => {
                let old = match in_memory {
                    true => self.loaded(&place, elem)?,
                    false => CExpr::in_lanes(place.clone(), Level::Primary, lane),
                };
                self.vector_binary(op.combine(), elem, &old, &value)?
            }
        };
        let distance = match (target, &self.lanes) {
            (Target::Element(name, indices), Some(active)) if in_memory => {
                self.types.get(name).and_then(|ty| active.lanes.distance(ty, indices))
            }
            _ => None,
        };
        if let Some(distance @ 2..) = distance {
            let text = self.scattered(&place, elem, &value, distance)?;
            self.line(&text);
            return Ok(());
        }
        let streams = in_memory && op.is_none() && elem.is_float() && self.program.streamed.contains(&target.name());
        let text = match in_memory {
            true if streams => {
                self.function.streams = true;
                self.helper(Helper::Fence);
                self.streamed(&place, elem, &value)?
            }
            true => self.stored(&place, elem, &value)?,
            false => format!("{place} = {};", self.in_lane(&value, lane)?.text),
        };
        self.line(&text);
        Ok(())
    }

    /// How often a loop in order is to be unrolled, if it is around a vector loop, or in one.
    pub(super) fn unrolled(&self, range: &Range, body: &[Stmt]) -> Option<i64> {
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
                    let (_, shape) = self.lanes_of(*index, range, body)?;
                    let length = length(range)?;
                    let times = vectors(length, shape).checked_add(length % shape.most)?;
                    (times.checked_mul(self.statements(body, depth + 1)?.0)?, true)
                }
                Stmt::For { mode: Mode::Parallel | Mode::ParallelVector, .. } | Stmt::Swap(..) => return None,
                // In a vector loop an array of registers.
                Stmt::Alloc(..) | Stmt::Free(_) if self.lanes.is_some() => (0, false),
                Stmt::Alloc(..) | Stmt::Free(_) => return None,
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

/// How many of the shortest vectors so many iterations are.
fn vectors(length: i64, shape: LaneShape) -> i64 {
    length / (MIN_BYTES / shape.widest).clamp(1, shape.most)
}
