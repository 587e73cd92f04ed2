//! The index level: sizes, indices, conditions and vectors of them.

use super::*;

impl Oracle<'_> {
    pub(super) fn ix(&mut self, scope: &Scope, e: &Ix) -> Outcome<i64> {
        Ok(match e {
            Ix::Lit(value) => *value,
            Ix::Name(name) => *scope.indices.get(name).ok_or(Trouble::Type(format!("no {name}")))?,
            Ix::Add(a, b) => self.ix(scope, a)? + self.ix(scope, b)?,
            Ix::Sub(a, b) => self.ix(scope, a)? - self.ix(scope, b)?,
            Ix::Mul(a, b) => self.ix(scope, a)? * self.ix(scope, b)?,
            Ix::Min(a, b) => self.ix(scope, a)?.min(self.ix(scope, b)?),
            Ix::Max(a, b) => self.ix(scope, a)?.max(self.ix(scope, b)?),
            Ix::FloorDiv(a, k) => self.ix(scope, a)?.div_euclid(*k),
            Ix::Mod(a, k) => self.ix(scope, a)?.rem_euclid(*k),
            Ix::If(c, a, b) => {
                let chosen = if self.cond(scope, c)? { a } else { b };
                self.ix(scope, chosen)?
            }
            Ix::Call(name, args) => {
                let mut given = Vec::new();
                for arg in args {
                    given.push(self.ix(scope, arg)?);
                }
                let known = self.program.index_functions.iter().find(|f| f.name == *name);
                let Some(function) = known.cloned().or_else(|| prelude::index_function(name)) else {
                    return wrong(format!("no {name}"));
                };
                let mut inner = Scope::default();
                inner.indices.extend(function.params.iter().cloned().zip(given));
                for clause in &function.wheres {
                    if !self.cond(&inner, clause)? {
                        return wrong(format!("where of {name}"));
                    }
                }
                self.ix(&inner, &function.body)?
            }
        })
    }

    pub(super) fn cond(&mut self, scope: &Scope, c: &Cond) -> Outcome<bool> {
        let compare = |op: &str, a: i64, b: i64| match op {
            "<" => a < b,
            "<=" => a <= b,
            ">" => a > b,
            ">=" => a >= b,
            "==" => a == b,
            _ => a != b,
        };
        Ok(match c {
            Cond::Cmp(op, a, b) => compare(op, self.ix(scope, a)?, self.ix(scope, b)?),
            Cond::And(a, b) => self.cond(scope, a)? && self.cond(scope, b)?,
            Cond::Or(a, b) => self.cond(scope, a)? || self.cond(scope, b)?,
            Cond::Not(a) => !self.cond(scope, a)?,
            Cond::All(op, a, b) => {
                let (a, b) = self.pair(scope, a, b)?;
                a.iter().zip(&b).all(|(a, b)| compare(op, *a, *b))
            }
        })
    }

    /// Two vectors; one index is as long as the other.
    pub(super) fn pair(&mut self, scope: &Scope, a: &IxVec, b: &IxVec) -> Outcome<(Vec<i64>, Vec<i64>)> {
        Ok(match (a, b) {
            (IxVec::One(a), b) => {
                let (a, b) = (self.ix(scope, a)?, self.vector(scope, b)?);
                (vec![a; b.len()], b)
            }
            (a, IxVec::One(b)) => {
                let (a, b) = (self.vector(scope, a)?, self.ix(scope, b)?);
                let length = a.len();
                (a, vec![b; length])
            }
            (a, b) => {
                let (a, b) = (self.vector(scope, a)?, self.vector(scope, b)?);
                if a.len() != b.len() {
                    return wrong("vectors of different lengths");
                }
                (a, b)
            }
        })
    }

    pub(super) fn vector(&mut self, scope: &Scope, v: &IxVec) -> Outcome<Vec<i64>> {
        Ok(match v {
            IxVec::Name(name) => scope.vectors.get(name).cloned().ok_or(Trouble::Type(format!("no {name}")))?,
            IxVec::List(parts) => parts.iter().map(|part| self.ix(scope, part)).collect::<Outcome<_>>()?,
            IxVec::One(one) => vec![self.ix(scope, one)?],
            IxVec::Shape(name) => match scope.tensors.get(name) {
                Some(value) => value.shape.clone(),
                None => return wrong(format!("no {name}")),
            },
            IxVec::Op(op, a, b) => {
                let (a, b) = self.pair(scope, a, b)?;
                let one = |(a, b): (&i64, &i64)| match *op {
                    "+" => a + b,
                    "-" => a - b,
                    "*" => a * b,
                    "min" => *a.min(b),
                    _ => *a.max(b),
                };
                a.iter().zip(&b).map(one).collect()
            }
        })
    }

    // Functions
}
