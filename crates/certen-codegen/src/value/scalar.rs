//! Scalar operations, with as few parentheses as C and its compilers' warnings allow.

use std::collections::HashMap;

use certen_core::{Binary, ElemType, Literal, Term, TermId, Unary};
use certen_loops::as_element;
use certen_math::Function;
use certen_syntax::Diagnostic;

use super::expr::{CExpr, Level, unsupported};
use crate::emitter::Emitter;
use crate::helpers::{Helper, c_type};
use crate::index::CIndex;

impl Emitter<'_> {
    /// A term that is the same in all lanes, or that is in no vector loop.
    pub(super) fn scalar_expr(
        &mut self,
        id: TermId,
        term: &Term,
        exprs: &HashMap<TermId, CExpr>,
    ) -> Result<CExpr, Diagnostic> {
        let terms = &self.program.terms;
        let part = |id: &TermId| exprs.get(id).ok_or_else(unsupported);
        if let Some(literal) = self.known_element(id) {
            return Ok(self.literal(literal, terms.ty(id).elem));
        }
        Ok(match term {
            Term::Ref(..) | Term::Select(..) => {
                let (name, ty, indices) = as_element(terms, id).ok_or_else(unsupported)?;
                let text = if self.is_local(name) { self.c_name(name) } else { self.access(name, ty, indices)? };
                CExpr::new(text, Level::Primary)
            }
            Term::Literal(literal, elem) => self.literal(*literal, *elem),
            Term::Undefined(elem) => self.literal(Literal::whole(0, *elem), *elem),
            Term::Index(ix, elem) => {
                let index = self.ix(ix)?;
                match (elem, &index) {
                    (ElemType::I64, CIndex::Constant(value)) => self.literal(Literal::Int(*value), *elem),
                    (ElemType::I64, CIndex::Product(_)) => CExpr::new(index.text(), Level::Product),
                    (ElemType::I64, CIndex::Sum(_)) => CExpr::new(index.text(), Level::Sum),
                    // A cast holds tighter than a product.
                    (_, CIndex::Product(text)) if text.contains('*') => {
                        CExpr::new(format!("({})({text})", c_type(*elem)), Level::Prefix)
                    }
                    _ => CExpr::new(format!("({}){}", c_type(*elem), index.factor()), Level::Prefix),
                }
            }
            Term::Unary(Unary::Neg, a) if self.is_float(*a) => {
                let a = self.hidden(*a, part(a)?);
                self.unary(Unary::Neg, terms.ty(id).elem, &a)
            }
            Term::Unary(op, a) => self.unary(*op, terms.ty(*a).elem, part(a)?),
            Term::Binary(op @ (Binary::Lt | Binary::Le | Binary::Eq | Binary::Ne), a, b)
                if self.is_decided(*a, *b) || self.is_decided(*b, *a) =>
            {
                self.compared(*op, terms.ty(*a).elem, part(a)?, part(b)?)
            }
            Term::Binary(Binary::Sub, a, b) if self.is_float(*a) && part(a)?.shows_sign => {
                let hidden = self.hidden(*b, part(b)?);
                self.binary(Binary::Sub, terms.ty(id).elem, part(a)?, &hidden, a == b)
            }
            Term::Binary(op, a, b) => self.binary(*op, terms.ty(*a).elem, part(a)?, part(b)?, a == b),
            Term::Choose(cond, a, b) => {
                let (cond, a, b) = (part(cond)?, part(a)?, part(b)?);
                let text = format!("{} ? {} : {}", cond.at(Level::Or), a.at(Level::Or), b.at(Level::Or));
                CExpr::new(text, Level::Conditional)
            }
            Term::Fma(a, b, c) => self.math("fma", terms.ty(*a).elem, &[part(a)?, part(b)?, part(c)?]),
            Term::Cast(to, a) => self.cast(terms.ty(*a).elem, *to, part(a)?),
            Term::Gen(..) | Term::Reduce(..) | Term::Guard(..) | Term::If(..) | Term::Let(..) | Term::Iterate(..) => {
                return Err(unsupported());
            }
            Term::Table(_) | Term::Flatten(_) | Term::Split(..) | Term::Transpose(_) => return Err(unsupported()),
            Term::Concat(..) | Term::PadLeft(..) | Term::PadRight(..) | Term::TruncLeft(..) | Term::TruncRight(..) => {
                return Err(unsupported());
            }
        })
    }

    /// `helper(a)` or `helper(a, b)`
    pub(crate) fn call(&mut self, helper: Helper, arguments: &[&CExpr]) -> CExpr {
        let arguments: Vec<&str> = arguments.iter().map(|expr| expr.text.as_str()).collect();
        CExpr::new(format!("{}({})", self.helper(helper), arguments.join(", ")), Level::Primary)
    }

    fn is_float(&self, id: TermId) -> bool {
        self.program.terms.ty(id).elem.is_float()
    }

    /// An operand of which GCC does not see which sign a zero has.
    fn hidden(&mut self, id: TermId, expr: &CExpr) -> CExpr {
        let terms = &self.program.terms;
        match expr.shows_sign && !matches!(terms.get(id), Term::Literal(..)) {
            true => self.call(Helper::Hidden(terms.ty(id).elem), &[expr]),
            false => expr.clone(),
        }
    }

    /// A function of math.h whose bits are the library's.
    fn library(&mut self, function: &'static str, elem: ElemType) -> Helper {
        self.uses_math = true;
        let helper = Helper::Library(function, elem);
        self.helpers.insert(helper);
        helper
    }

    /// A function of mathematics, by its recipe.
    fn mathematics(&mut self, function: Function, elem: ElemType) -> Helper {
        self.uses_math = true;
        Helper::Function(function, elem)
    }

    /// A function of math.h that compilers may know: its result is exact.
    fn math(&mut self, function: &str, elem: ElemType, arguments: &[&CExpr]) -> CExpr {
        self.uses_math = true;
        let suffix = if elem == ElemType::F32 { "f" } else { "" };
        let arguments: Vec<&str> = arguments.iter().map(|expr| expr.text.as_str()).collect();
        CExpr::new(format!("{function}{suffix}({})", arguments.join(", ")), Level::Primary)
    }

    pub(crate) fn literal(&mut self, literal: Literal, elem: ElemType) -> CExpr {
        let text = match literal {
            Literal::Bool(value) => u8::from(value).to_string(),
            Literal::Int(i64::MIN) => "INT64_MIN".into(),
            Literal::Int(value) if elem == ElemType::I32 && value == i64::from(i32::MIN) => "INT32_MIN".into(),
            Literal::Int(value) if i32::try_from(value).is_err() => format!("INT64_C({value})"),
            Literal::Int(value) => value.to_string(),
            Literal::Float(value) if value.is_nan() => {
                self.uses_math = true;
                "NAN".into()
            }
            Literal::Float(value) if value.is_infinite() => {
                self.uses_math = true;
                if value > 0.0 { "INFINITY".into() } else { "-INFINITY".into() }
            }
            // The shortest digits that read back as the same number.
            Literal::Float(value) if elem == ElemType::F32 => format!("{:?}f", value as f32),
            Literal::Float(value) => format!("{value:?}"),
        };
        let level = if text.starts_with('-') { Level::Prefix } else { Level::Primary };
        CExpr::new(text, level)
    }

    fn unary(&mut self, op: Unary, elem: ElemType, a: &CExpr) -> CExpr {
        let function = match op {
            Unary::Neg if elem.is_int() => return self.call(Helper::Neg(elem), &[a]),
            Unary::Neg => {
                let operand = a.at(Level::Prefix);
                // Not `--a`.
                let operand = if operand.starts_with('-') { format!("({operand})") } else { operand };
                return CExpr::new(format!("-{operand}"), Level::Prefix);
            }
            Unary::Not => return CExpr::new(format!("!{}", a.at(Level::Prefix)), Level::Prefix),
            Unary::Abs if elem.is_int() => return self.call(Helper::Abs(elem), &[a]),
            Unary::Abs => "fabs",
            Unary::Floor => "floor",
            Unary::Ceil => "ceil",
            // To nearest, halves to even, in the rounding mode that programs start with.
            Unary::Round => "rint",
            Unary::Sqrt => "sqrt",
            function => {
                let name = function.function().map_or("", Function::name);
                let helper = match function.function() {
                    Some(function) if !op.is_libm() => self.mathematics(function, elem),
                    _ => self.library(name, elem),
                };
                return self.call(helper, &[a]);
            }
        };
        self.math(function, elem, &[a])
    }

    fn binary(&mut self, op: Binary, elem: ElemType, a: &CExpr, b: &CExpr, same: bool) -> CExpr {
        let infix = |sign: &str, level: Level, left: Level, right: Level| {
            CExpr::new(format!("{} {sign} {}", a.at(left), b.at(right)), level)
        };
        let int = elem.is_int();
        match op {
            Binary::Add if int => self.call(Helper::Add(elem), &[a, b]),
            Binary::Sub if int => self.call(Helper::Sub(elem), &[a, b]),
            Binary::Mul if int => self.call(Helper::Mul(elem), &[a, b]),
            Binary::Add => infix("+", Level::Sum, Level::Sum, Level::Product),
            Binary::Sub => infix("-", Level::Sum, Level::Sum, Level::Product),
            Binary::Mul => infix("*", Level::Product, Level::Product, Level::Prefix),
            Binary::Div => infix("/", Level::Product, Level::Product, Level::Prefix),
            Binary::ControlledDiv => self.call(Helper::ControlledDiv(elem), &[a, b]),
            Binary::FloorDiv => self.call(Helper::FloorDiv(elem), &[a, b]),
            Binary::Mod => self.call(Helper::Mod(elem), &[a, b]),
            Binary::Min => self.call(Helper::Min(elem), &[a, b]),
            Binary::Max => self.call(Helper::Max(elem), &[a, b]),
            Binary::LibmPow => {
                self.library("pow", elem);
                self.call(Helper::Pow(elem), &[a, b])
            }
            Binary::And => infix("&&", Level::And, Level::And, Level::Comparison),
            // Compilers warn of `a && b || c`.
            Binary::Or if a.level == Level::Or => infix("||", Level::Or, Level::Or, Level::Comparison),
            Binary::Or => infix("||", Level::Or, Level::Comparison, Level::Comparison),
            // Compilers warn of comparisons of something with itself; only NaNs make them interesting.
            Binary::Eq | Binary::Le if same && !elem.is_float() => CExpr::new("1".into(), Level::Primary),
            Binary::Ne | Binary::Lt if same && !elem.is_float() => CExpr::new("0".into(), Level::Primary),
            Binary::Lt if !elem.has_arithmetic() => self.call(Helper::Less(elem), &[a, b]),
            Binary::Le if !elem.has_arithmetic() => self.call(Helper::LessEqual(elem), &[a, b]),
            Binary::LibmAtan2 | Binary::LibmHypot => {
                let helper = self.library(op.function().map_or("", Function::name), elem);
                self.call(helper, &[a, b])
            }
            Binary::Pow | Binary::Atan2 | Binary::Hypot => {
                let helper = self.mathematics(op.function().unwrap_or(Function::Pow), elem);
                self.call(helper, &[a, b])
            }
            Binary::Lt | Binary::Le | Binary::Eq | Binary::Ne => {
                // Compilers warn of `!a == b`.
                let left = if a.text.starts_with('!') { Level::Primary } else { Level::Sum };
                infix(op.name(), Level::Comparison, left, Level::Sum)
            }
        }
    }

    /// Whether a compiler may see, and warn, that a comparison with a constant has one result: that of an integer which
    /// was a shorter one.
    fn is_decided(&self, a: TermId, b: TermId) -> bool {
        let terms = &self.program.terms;
        let constant = |id| matches!(terms.get(id), Term::Literal(..) | Term::Index(..));
        matches!(terms.get(a), Term::Cast(to, _) if to.is_int()) && constant(b)
    }

    /// A comparison that compilers do not look into.
    fn compared(&mut self, op: Binary, elem: ElemType, a: &CExpr, b: &CExpr) -> CExpr {
        match op {
            Binary::Lt => self.call(Helper::Less(elem), &[a, b]),
            Binary::Le => self.call(Helper::LessEqual(elem), &[a, b]),
            Binary::Eq => self.call(Helper::Equal(elem), &[a, b]),
            _ => {
                let equal = self.call(Helper::Equal(elem), &[a, b]);
                CExpr::new(format!("!{}", equal.text), Level::Prefix)
            }
        }
    }

    fn cast(&mut self, from: ElemType, to: ElemType, a: &CExpr) -> CExpr {
        match to {
            _ if from == to => a.clone(),
            // Truth values are bytes already.
            ElemType::U8 if from == ElemType::Bool => a.clone(),
            ElemType::Bool => CExpr::new(format!("{} != 0", a.at(Level::Sum)), Level::Comparison),
            ElemType::I32 | ElemType::I64 | ElemType::U8 if from.is_float() => self.call(Helper::FromFloat(to), &[a]),
            _ => CExpr::new(format!("({}){}", c_type(to), a.at(Level::Prefix)), Level::Prefix),
        }
    }
}
