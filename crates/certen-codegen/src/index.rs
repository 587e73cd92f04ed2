//! Index expressions and conditions in C: the text of an [`Ix`], with C's names and the helper functions.

use certen_core::{ElemType, Range, TensorType};
use certen_index::{Bound, Cond, IndexFunction, Ix, Notation};
use certen_syntax::{Code, Diagnostic, Name};

use crate::emitter::Emitter;
use crate::helpers::Helper;

/// An index expression in C; how tightly it holds together decides about parentheses.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum CIndex {
    Constant(i64),
    Product(String),
    Sum(String),
}

impl CIndex {
    pub(crate) fn text(&self) -> String {
        match self {
            CIndex::Constant(value) => value.to_string(),
            CIndex::Product(text) | CIndex::Sum(text) => text.clone(),
        }
    }

    /// As a factor.
    pub(crate) fn factor(&self) -> String {
        match self {
            CIndex::Constant(value) if *value < 0 => format!("({value})"),
            CIndex::Sum(text) => format!("({text})"),
            other => other.text(),
        }
    }

    pub(crate) fn times(self, size: &CIndex) -> Option<CIndex> {
        Some(match (&self, size) {
            (CIndex::Constant(0), _) | (_, CIndex::Constant(1)) => self,
            (CIndex::Constant(1), _) => size.clone(),
            (CIndex::Constant(a), CIndex::Constant(b)) => CIndex::Constant(a.checked_mul(*b)?),
            _ => CIndex::Product(format!("{}*{}", self.factor(), size.factor())),
        })
    }

    fn plus(self, index: &CIndex) -> Option<CIndex> {
        Some(match (&self, index) {
            (CIndex::Constant(0), _) => index.clone(),
            (_, CIndex::Constant(0)) => self,
            (CIndex::Constant(a), CIndex::Constant(b)) => CIndex::Constant(a.checked_add(*b)?),
            _ => {
                let right = index.text();
                let right = if right.starts_with('-') { format!("({right})") } else { right };
                CIndex::Sum(format!("{} + {right}", self.text()))
            }
        })
    }
}

/// The digits of the least integer.
const LEAST: &str = "9223372036854775808";

pub(crate) fn too_large() -> Diagnostic {
    Diagnostic::error(Code::E0216, None, "an index does not fit in 64 bits")
}

/// A name or a small number cannot be too large: names are sizes, or below what their loops run to.
fn is_simple(ix: &Ix) -> bool {
    ix.as_var().is_some() || ix.as_constant().is_some_and(|constant| constant.unsigned_abs() < 1 << 31)
}

impl Emitter<'_> {
    /// An index expression.
    pub(crate) fn ix(&mut self, ix: &Ix) -> Result<CIndex, Diagnostic> {
        if !is_simple(ix) {
            let bound = self.bound(ix);
            self.limit.join(&bound);
        }
        let text = ix.write(self);
        // C has no literal for the least integer; no index can be so small.
        if text.contains(LEAST) {
            return Err(too_large());
        }
        Ok(match ix.as_constant() {
            Some(constant) => CIndex::Constant(constant),
            None if ix.is_sum() => CIndex::Sum(text),
            None => CIndex::Product(text),
        })
    }

    /// How large an index expression can get.
    pub(crate) fn bound(&self, ix: &Ix) -> Bound {
        ix.bound(&|name| self.bound_of(name))
    }

    /// How large a name can get: the index of a loop around, or a size.
    fn bound_of(&self, name: Name) -> Bound {
        self.ranges.get(&name).cloned().unwrap_or_else(|| Bound::name(name))
    }

    /// From here on the index of a loop is known to be within its range.
    pub(crate) fn bound_index(&mut self, index: Name, range: &Range) {
        let mut bound = self.bound(&range.hi);
        if range.lo.as_constant() != Some(0) {
            bound.join(&self.bound(&range.lo));
        }
        self.ranges.insert(index, bound);
    }

    /// The number of bytes of an array is computed, so it has to fit, too.
    pub(crate) fn bound_bytes(&mut self, ty: &TensorType) {
        let bytes = Bound::number(ty.elem.bytes() as u64);
        let bound = ty.shape.iter().fold(bytes, |product, size| product.times(&self.bound(size)));
        self.limit.join(&bound);
    }

    /// The number of elements.
    pub(crate) fn count(&mut self, ty: &TensorType) -> Result<CIndex, Diagnostic> {
        let mut count = CIndex::Constant(1);
        for size in ty.shape.iter() {
            let size = self.ix(size)?;
            count = count.times(&size).ok_or_else(too_large)?;
        }
        Ok(count)
    }

    /// A condition that can stand in `if (…)`.
    pub(crate) fn cond(&mut self, cond: &Cond) -> Result<String, Diagnostic> {
        let bound = cond.bound(&|name| self.bound_of(name));
        self.limit.join(&bound);
        let text = match cond {
            Cond::And(all) if all.is_empty() => "1".into(),
            Cond::Or(any) if any.is_empty() => "0".into(),
            Cond::Ge(_) | Cond::Eq(_) => cond.write(self),
            Cond::And(list) | Cond::Or(list) => {
                let sign = if matches!(cond, Cond::And(_)) { " && " } else { " || " };
                let mut parts = Vec::with_capacity(list.len());
                for part in list {
                    let text = self.cond(part)?;
                    // Compilers warn of && inside || without parentheses.
                    let compound = matches!(part, Cond::And(_) | Cond::Or(_));
                    parts.push(if compound { format!("({text})") } else { text });
                }
                parts.join(sign)
            }
        };
        if text.contains(LEAST) { Err(too_large()) } else { Ok(text) }
    }

    /// An element of a buffer in scope.
    pub(crate) fn element(&mut self, name: Name, indices: &[Ix]) -> Result<String, Diagnostic> {
        let unknown = || Diagnostic::error(Code::E0702, None, format!("{name} is no buffer in scope"));
        let ty = *self.types.get(&name).ok_or_else(unknown)?;
        self.access(name, ty, indices)
    }

    /// An element of a buffer: row by row, outermost dimension first.
    pub(crate) fn access(&mut self, name: Name, ty: &TensorType, indices: &[Ix]) -> Result<String, Diagnostic> {
        let mut flat = CIndex::Constant(0);
        let mut bound = Bound::default();
        for (index, size) in &joined(indices, &ty.shape) {
            if flat != CIndex::Constant(0) {
                bound = bound.times(&self.bound(size));
                let size = self.ix(size)?;
                flat = flat.times(&size).ok_or_else(too_large)?;
            }
            bound.add(&self.bound(index));
            let index = self.ix(index)?;
            flat = flat.plus(&index).ok_or_else(too_large)?;
        }
        self.limit.join(&bound);
        Ok(format!("{}[{}]", self.c_name(name), flat.text()))
    }
}

/// Indices and sizes, with neighbours as one where that is simpler: a quotient and its remainder are what was divided.
fn joined(indices: &[Ix], shape: &[Ix]) -> Vec<(Ix, Ix)> {
    let mut dims: Vec<(Ix, Ix)> = Vec::with_capacity(indices.len());
    for (index, size) in indices.iter().zip(shape) {
        if let (Some(literal), Some((outer, outer_size))) = (size.as_constant(), dims.last_mut())
            && index.is_sum()
            && let Ok(both) = outer.scale(literal).and_then(|block| block.add(index))
            && let Ok(both_size) = outer_size.scale(literal)
            && both.to_string().len() <= outer.to_string().len()
        {
            (*outer, *outer_size) = (both, both_size);
        } else {
            dims.push((index.clone(), size.clone()));
        }
    }
    dims
}

impl Notation for Emitter<'_> {
    fn has_ceil_div(&self) -> bool {
        false
    }

    fn name(&mut self, name: Name, text: &mut String) {
        *text += &self.c_name(name);
    }

    fn call(&mut self, function: IndexFunction, arguments: &[String]) -> String {
        let helper = match function {
            IndexFunction::FloorDiv => Helper::FloorDiv(ElemType::I64),
            IndexFunction::Min => Helper::Min(ElemType::I64),
            IndexFunction::Max => Helper::Max(ElemType::I64),
        };
        let helper = self.helper(helper);
        // The helpers take two.
        let nested = arguments.iter().cloned().reduce(|all, next| format!("{helper}({all}, {next})"));
        nested.unwrap_or_default()
    }
}
