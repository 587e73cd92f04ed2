//! Index expressions and conditions in C.
//!
//! The text of an [`Ix`] is a sum of products of names, numbers and calls, which is C as it stands, up to the names and
//! the functions that it calls.

use certen_core::{ElemType, TensorType};
use certen_index::{Cond, Ix};
use certen_syntax::{Code, Diagnostic, Name};

use crate::emit::Emitter;
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

    fn times(self, size: &CIndex) -> Option<CIndex> {
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

fn too_large() -> Diagnostic {
    Diagnostic::error(Code::E0216, None, "an index does not fit in 64 bits")
}

impl Emitter<'_> {
    /// An index expression.
    pub(crate) fn ix(&mut self, ix: &Ix) -> Result<CIndex, Diagnostic> {
        if let Some(constant) = ix.as_constant() {
            // C has no literal for the least integer; no index can be so small.
            return if constant == i64::MIN { Err(too_large()) } else { Ok(CIndex::Constant(constant)) };
        }
        if let Some(name) = ix.as_var() {
            return Ok(CIndex::Product(self.name(name)));
        }
        let renamed = ix.substitute(&|name| self.renamed(name)).map_err(|_| too_large())?;
        let mut names = Default::default();
        ix.collect_names(&mut names);
        names.into_iter().for_each(|name| self.mark(name));
        let text = self.functions(&renamed.to_string())?;
        Ok(if is_sum(&text) { CIndex::Sum(text) } else { CIndex::Product(text) })
    }

    /// The functions of index expressions, as our helpers. Only functions are followed by a parenthesis.
    fn functions(&mut self, text: &str) -> Result<String, Diagnostic> {
        if text.contains("9223372036854775808") {
            return Err(too_large());
        }
        let mut text = text.to_owned();
        let helpers = [Helper::FloorDiv(ElemType::I64), Helper::Min(ElemType::I64), Helper::Max(ElemType::I64)];
        for (function, helper) in ["floor_div(", "min(", "max("].into_iter().zip(helpers) {
            if text.contains(function) {
                let name = self.helper(helper);
                text = text.replace(function, &format!("{name}("));
            }
        }
        Ok(text)
    }

    /// The C name as an index of its own, if it is another one.
    fn renamed(&self, name: Name) -> Option<Ix> {
        let c = self.names.get(name);
        (c != name.as_str()).then(|| Ix::var(c))
    }

    /// A condition that can stand in `if (…)`.
    pub(crate) fn cond(&mut self, cond: &Cond) -> Result<String, Diagnostic> {
        match cond {
            Cond::Ge(_) | Cond::Eq(_) => {
                let mut names = Default::default();
                cond.collect_names(&mut names);
                names.into_iter().for_each(|name| self.mark(name));
                let renamed = cond.substitute(&|name| self.renamed(name)).map_err(|_| too_large())?;
                self.functions(&match renamed {
                    always if always.is_always() => "1".into(),
                    never if never.is_never() => "0".into(),
                    other => other.to_string(),
                })
            }
            Cond::And(all) if all.is_empty() => Ok("1".into()),
            Cond::Or(any) if any.is_empty() => Ok("0".into()),
            Cond::And(list) | Cond::Or(list) => {
                let sign = if matches!(cond, Cond::And(_)) { " && " } else { " || " };
                let mut parts = Vec::with_capacity(list.len());
                for part in list {
                    let text = self.cond(part)?;
                    let compound = matches!(part, Cond::And(_) | Cond::Or(_));
                    parts.push(if compound { format!("({text})") } else { text });
                }
                Ok(parts.join(sign))
            }
        }
    }

    /// An element of a buffer: row by row, outermost dimension first.
    pub(crate) fn access(&mut self, name: Name, ty: &TensorType, indices: &[Ix]) -> Result<String, Diagnostic> {
        let mut flat = CIndex::Constant(0);
        for (index, size) in indices.iter().zip(ty.shape.iter()) {
            if flat != CIndex::Constant(0) {
                let size = self.ix(size)?;
                flat = flat.times(&size).ok_or_else(too_large)?;
            }
            let index = self.ix(index)?;
            flat = flat.plus(&index).ok_or_else(too_large)?;
        }
        Ok(format!("{}[{}]", self.name(name), flat.text()))
    }
}

/// Whether an expression's outermost operation is `+` or `-`.
fn is_sum(text: &str) -> bool {
    let mut depth = 0;
    text.starts_with('-')
        || text.chars().any(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth == 0 && c == ' '
        })
}
