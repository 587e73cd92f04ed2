//! Values in lanes: the expressions of vector loops.
//!
//! What does not vary is printed as in any other loop, and put into all lanes where C does not do it by itself.

use std::collections::HashMap;

use certen_core::{Binary, ElemType, Term, TermId, Unary};
use certen_loops::as_element;
use certen_syntax::{Diagnostic, Name};

use super::expr::{CExpr, Level, unsupported};
use crate::emitter::Emitter;
use crate::helpers::Helper;
use crate::helpers::vectors::{Lane, LaneShape, VectorCall, VectorOp};

impl Emitter<'_> {
    /// The shape of the vector loop around.
    fn shape(&self) -> Result<LaneShape, Diagnostic> {
        self.lanes.as_ref().map(|lanes| lanes.shape).ok_or_else(unsupported)
    }

    /// The type of vectors with this in each lane.
    pub(crate) fn register(&mut self, lane: Lane) -> Result<String, Diagnostic> {
        let vector = lane.vector(self.shape()?);
        self.helper(Helper::Vector(vector));
        Ok(vector.register())
    }

    /// The same in memory, where it need not be aligned.
    fn memory(&mut self, lane: Lane) -> Result<String, Diagnostic> {
        let vector = lane.vector(self.shape()?);
        self.helper(Helper::Vector(vector));
        Ok(vector.memory())
    }

    /// What a register holds of a type: of truth values, masks that are as wide as the widest value.
    pub(crate) fn lane_of(&self, elem: ElemType) -> Result<Lane, Diagnostic> {
        Ok(match elem {
            ElemType::Bool => Lane::Mask(self.shape()?.widest as usize),
            elem => Lane::Value(elem),
        })
    }

    /// Whether a term varies from lane to lane of the loop around.
    pub(super) fn is_in_lanes(&self, id: TermId, exprs: &HashMap<TermId, CExpr>) -> bool {
        let Some(active) = &self.lanes else { return false };
        let terms = &self.program.terms;
        match (as_element(terms, id), terms.get(id)) {
            (Some((name, _, indices)), _) => active.lanes.varies(name, indices),
            (None, Term::Index(ix, _)) => ix.mentions(active.lanes.index),
            (None, term) => term.parts().iter().any(|part| exprs.get(part).is_some_and(|expr| expr.lane.is_some())),
        }
    }

    /// A term that varies.
    pub(super) fn vector_expr(&mut self, id: TermId, exprs: &HashMap<TermId, CExpr>) -> Result<CExpr, Diagnostic> {
        let terms = &self.program.terms;
        let part = |id: &TermId| exprs.get(id).ok_or_else(unsupported);
        let elem = |id: &TermId| terms.ty(*id).elem;
        if let Some((name, ty, indices)) = as_element(terms, id) {
            if self.is_local(name) || self.is_own(name) {
                let text = if self.is_local(name) { self.c_name(name) } else { self.element(name, indices)? };
                return Ok(CExpr::in_lanes(text, Level::Primary, self.lane_of(ty.elem)?));
            }
            let element = self.access(name, ty, indices)?;
            let distance = self.lanes.as_ref().and_then(|active| active.lanes.distance(ty, indices));
            return match distance.ok_or_else(unsupported)? {
                1 => self.loaded(&element, ty.elem),
                distance => self.gathered(&element, ty.elem, distance),
            };
        }
        match terms.get(id) {
            Term::Index(ix, to) => {
                let step = self.lanes.as_ref().and_then(|active| active.lanes.step(ix)).ok_or_else(unsupported)?;
                let numbers = self.vector_call(VectorOp::Numbers, Lane::Value(ElemType::I64), &[])?;
                let first = self.ix(ix)?.text();
                let numbers = if step == 1 { numbers.text } else { format!("{} * {step}", numbers.text) };
                let lane = Lane::Value(ElemType::I64);
                // An index in parentheses is a number, whatever its sign.
                let expr = CExpr::in_lanes(format!("{numbers} + ({first})"), Level::Sum, lane);
                self.vector_cast(ElemType::I64, *to, &expr)
            }
            Term::Unary(op, a) => self.vector_unary(*op, elem(a), part(a)?),
            Term::Binary(op, a, b) => self.vector_binary(*op, elem(a), part(a)?, part(b)?),
            Term::Choose(cond, a, b) => {
                let lane = self.lane_of(elem(a))?;
                let cond = self.in_lane(part(cond)?, lane.mask())?;
                let (a, b) = (self.in_lane(part(a)?, lane)?, self.in_lane(part(b)?, lane)?);
                self.vector_call(VectorOp::Select, lane, &[&cond, &a, &b])
            }
            Term::Fma(a, b, c) => {
                self.uses_math = true;
                let lane = Lane::Value(elem(a));
                let [a, b, c] =
                    [self.in_lane(part(a)?, lane)?, self.in_lane(part(b)?, lane)?, self.in_lane(part(c)?, lane)?];
                self.vector_call(VectorOp::Fma, lane, &[&a, &b, &c])
            }
            Term::Cast(to, a) => self.vector_cast(elem(a), *to, part(a)?),
            // Elements are above; the others do not vary.
            Term::Ref(..) | Term::Select(..) | Term::Literal(..) | Term::Undefined(_) => Err(unsupported()),
            Term::Table(_) => Err(unsupported()),
            Term::Gen(..) | Term::Reduce(..) | Term::Guard(..) | Term::If(..) | Term::Let(..) | Term::Iterate(..) => {
                Err(unsupported())
            }
            Term::Flatten(_) | Term::Split(..) | Term::Transpose(_) | Term::Concat(..) => Err(unsupported()),
            Term::PadLeft(..) | Term::PadRight(..) | Term::TruncLeft(..) | Term::TruncRight(..) => Err(unsupported()),
        }
    }

    /// The elements of all lanes, from that of the first one on.
    pub(crate) fn loaded(&mut self, element: &str, elem: ElemType) -> Result<CExpr, Diagnostic> {
        let memory = self.memory(Lane::Value(elem))?;
        let text = format!("*(const {memory} *)&{element}");
        if elem != ElemType::Bool {
            return Ok(CExpr::in_lanes(text, Level::Prefix, Lane::Value(elem)));
        }
        let mask = self.register(Lane::Mask(1))?;
        Ok(CExpr::in_lanes(format!("({mask})({text} != 0)"), Level::Prefix, Lane::Mask(1)))
    }

    /// The elements of all lanes, each so far from the one before, from that of the first one on.
    fn gathered(&mut self, element: &str, elem: ElemType, distance: i64) -> Result<CExpr, Diagnostic> {
        let from = CExpr::new(format!("&{element}"), Level::Prefix);
        self.vector_call(VectorOp::Every(distance), Lane::Value(elem), &[&from])
    }

    /// The elements of all lanes, to be written.
    pub(crate) fn place(&mut self, element: &str, elem: ElemType) -> Result<String, Diagnostic> {
        Ok(format!("*({} *)&{element}", self.memory(Lane::Value(elem))?))
    }

    /// An assignment of all lanes to the elements from that of the first one on.
    pub(crate) fn stored(&mut self, element: &str, elem: ElemType, value: &CExpr) -> Result<String, Diagnostic> {
        let place = self.place(element, elem)?;
        let value = match elem {
            ElemType::Bool => {
                let (value, bytes) = (self.in_lane(value, Lane::Mask(1))?, self.register(Lane::Value(elem))?);
                format!("({bytes})({} & 1)", value.at(Level::Primary))
            }
            elem => self.in_lane(value, Lane::Value(elem))?.text,
        };
        Ok(format!("{place} = {value};"))
    }

    /// The same to elements so far from each other.
    pub(crate) fn scattered(
        &mut self,
        element: &str,
        elem: ElemType,
        value: &CExpr,
        distance: i64,
    ) -> Result<String, Diagnostic> {
        let lane = Lane::Value(elem);
        let to = CExpr::new(format!("&{element}"), Level::Prefix);
        let value = self.in_lane(value, lane)?;
        Ok(format!("{};", self.vector_call(VectorOp::Apart(distance), lane, &[&to, &value])?.text))
    }

    /// The same past the caches, for floats.
    pub(crate) fn streamed(&mut self, element: &str, elem: ElemType, value: &CExpr) -> Result<String, Diagnostic> {
        let lane = Lane::Value(elem);
        let to = CExpr::new(format!("({} *)&{element}", self.memory(lane)?), Level::Prefix);
        let value = self.in_lane(value, lane)?;
        Ok(format!("{};", self.vector_call(VectorOp::Stream, lane, &[&to, &value])?.text))
    }

    /// An expression as a vector of such lanes.
    pub(crate) fn in_lane(&mut self, expr: &CExpr, lane: Lane) -> Result<CExpr, Diagnostic> {
        if expr.lane == Some(lane) {
            return Ok(expr.clone());
        }
        let (register, scalar) = (self.register(lane)?, lane.scalar().1);
        let text = match (expr.lane, lane) {
            (Some(_), _) => {
                return Ok(CExpr::in_lanes(
                    format!("__builtin_convertvector({}, {register})", expr.text),
                    Level::Primary,
                    lane,
                ));
            }
            (None, _) if matches!(expr.text.as_str(), "0" | "0.0" | "0.0f") => {
                return Ok(CExpr::in_lanes(format!("({register}){{0}}"), Level::Primary, lane));
            }
            // To subtract zero changes nothing, not even the sign of a zero.
            (None, Lane::Value(elem)) if elem.is_float() => format!("{} - ({register}){{0}}", expr.at(Level::Sum)),
            (None, Lane::Value(_)) => format!("({scalar}){} + ({register}){{0}}", expr.at(Level::Prefix)),
            (None, Lane::Mask(_)) => format!("({register}){{0}} - ({scalar}){}", expr.at(Level::Prefix)),
        };
        Ok(CExpr::in_lanes(text, Level::Sum, lane))
    }

    fn vector_call(&mut self, call: VectorOp, lane: Lane, arguments: &[&CExpr]) -> Result<CExpr, Diagnostic> {
        let helper = Helper::VectorCall(VectorCall { call, lane, shape: self.shape()? });
        Ok(self.call(helper, arguments).of_lane(lane))
    }

    fn vector_unary(&mut self, op: Unary, elem: ElemType, a: &CExpr) -> Result<CExpr, Diagnostic> {
        let lane = a.lane.ok_or_else(unsupported)?;
        match op {
            Unary::Neg if elem.is_float() => {
                let operand = a.at(Level::Prefix);
                // Not `--a`.
                let operand = if operand.starts_with('-') { format!("({operand})") } else { operand };
                Ok(CExpr::in_lanes(format!("-{operand}"), Level::Prefix, lane))
            }
            Unary::Not => Ok(CExpr::in_lanes(format!("~{}", a.at(Level::Prefix)), Level::Prefix, lane)),
            Unary::Sqrt | Unary::Floor | Unary::Ceil | Unary::Round => {
                self.uses_math = true;
                self.vector_call(VectorOp::Unary(op), lane, &[a])
            }
            Unary::Neg | Unary::Abs => self.vector_call(VectorOp::Unary(op), lane, &[a]),
            function => {
                let function = function.function().filter(|_| !op.is_libm()).ok_or_else(unsupported)?;
                self.uses_math = true;
                self.vector_call(VectorOp::Function(function), lane, &[a])
            }
        }
    }

    /// An operation of which at least one operand varies.
    pub(crate) fn vector_binary(
        &mut self,
        op: Binary,
        elem: ElemType,
        a: &CExpr,
        b: &CExpr,
    ) -> Result<CExpr, Diagnostic> {
        let lane = match elem {
            // As wide as one of them is already.
            ElemType::Bool => a.lane.or(b.lane).ok_or_else(unsupported)?,
            elem => Lane::Value(elem),
        };
        let infix = |sign: &str, (left, right): (Level, Level), level: Level| {
            Ok(CExpr::in_lanes(format!("{} {sign} {}", a.at(left), b.at(right)), level, lane))
        };
        let is_float = elem.is_float();
        match op {
            Binary::Add if is_float => infix("+", (Level::Sum, Level::Product), Level::Sum),
            Binary::Sub if is_float => infix("-", (Level::Sum, Level::Product), Level::Sum),
            Binary::Mul if is_float => infix("*", (Level::Product, Level::Prefix), Level::Product),
            Binary::Div => infix("/", (Level::Product, Level::Prefix), Level::Product),
            Binary::Add | Binary::Sub | Binary::Mul | Binary::Min | Binary::Max | Binary::ControlledDiv => {
                let (a, b) = (self.in_lane(a, lane)?, self.in_lane(b, lane)?);
                self.vector_call(VectorOp::Binary(op), lane, &[&a, &b])
            }
            Binary::And | Binary::Or | Binary::Lt | Binary::Le | Binary::Eq | Binary::Ne if elem == ElemType::Bool => {
                let (a, b) = (self.in_lane(a, lane)?.at(Level::Primary), self.in_lane(b, lane)?.at(Level::Primary));
                let text = match op {
                    Binary::And => format!("{a} & {b}"),
                    Binary::Or => format!("{a} | {b}"),
                    Binary::Lt => format!("~{a} & {b}"),
                    Binary::Le => format!("~{a} | {b}"),
                    Binary::Eq => format!("~({a} ^ {b})"),
                    _ => format!("{a} ^ {b}"),
                };
                // Compilers want parentheses around what is made of bits.
                Ok(CExpr::in_lanes(format!("({text})"), Level::Primary, lane))
            }
            Binary::Lt | Binary::Le | Binary::Eq | Binary::Ne => {
                let mask = self.register(lane.mask())?;
                let (a, b) = (self.in_lane(a, lane)?, self.in_lane(b, lane)?);
                let text = format!("({mask})({} {} {})", a.at(Level::Sum), op.name(), b.at(Level::Sum));
                Ok(CExpr::in_lanes(text, Level::Prefix, lane.mask()))
            }
            Binary::And | Binary::Or | Binary::FloorDiv | Binary::Mod => Err(unsupported()),
            function => {
                let function = function.function().filter(|_| !op.is_libm()).ok_or_else(unsupported)?;
                self.uses_math = true;
                let (a, b) = (self.in_lane(a, lane)?, self.in_lane(b, lane)?);
                self.vector_call(VectorOp::Function(function), lane, &[&a, &b])
            }
        }
    }

    fn vector_cast(&mut self, from: ElemType, to: ElemType, a: &CExpr) -> Result<CExpr, Diagnostic> {
        let lane = Lane::Value(to);
        match (from, to) {
            _ if from == to => Ok(a.clone()),
            (ElemType::Bool, _) => {
                let one = if to.is_float() { "1.0" } else { "1" };
                let one = self.in_lane(&CExpr::new(one.into(), Level::Primary), lane)?;
                let zero = self.in_lane(&CExpr::new("0".into(), Level::Primary), lane)?;
                let mask = self.in_lane(a, lane.mask())?;
                self.vector_call(VectorOp::Select, lane, &[&mask, &one, &zero])
            }
            (_, ElemType::Bool) => {
                let zero = CExpr::new("0".into(), Level::Primary);
                self.vector_binary(Binary::Ne, from, a, &zero)
            }
            (ElemType::F32 | ElemType::F64, ElemType::I32 | ElemType::I64 | ElemType::U8) => {
                let double = self.in_lane(a, Lane::Value(ElemType::F64))?;
                Ok(self.vector_call(VectorOp::To(to), Lane::Value(ElemType::F64), &[&double])?.of_lane(lane))
            }
            _ => self.in_lane(a, lane),
        }
    }

    /// The name in C of a local of the loop around, or of what its lanes combine into.
    pub(crate) fn lane_local(&mut self, name: Name) -> String {
        let accumulator = self.lanes.as_ref().and_then(|active| active.accumulators.get(&name).cloned());
        accumulator.unwrap_or_else(|| self.c_name(name))
    }

    /// Whether each lane of the loop around has its own copy of a buffer.
    pub(crate) fn is_own(&self, name: Name) -> bool {
        self.lanes.as_ref().is_some_and(|active| active.lanes.is_own(name))
    }
}
