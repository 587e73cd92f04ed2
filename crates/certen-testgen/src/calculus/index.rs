//! Sizes of dimensions, indices that are inside them for a reason, and conditions.

use arbitrary::Result;
use certen_core::{ElemType, Range, TensorType};
use certen_index::{Cond, Ix, IxError};
use certen_syntax::Name;

use super::Generator;

/// The elements that a tensor has at most, at the largest sizes.
const MOST_ELEMENTS: i64 = 600;

/// An index-level expression, and how many values from 0 on it may have; of a size nothing is known.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) at: Ix,
    pub(super) size: Option<Ix>,
}

/// Generated expressions stay far below any limit.
pub(super) fn ok(ix: std::result::Result<Ix, IxError>) -> Ix {
    ix.expect("expressions are small")
}

/// The same of conditions.
pub(super) fn sure(cond: std::result::Result<Cond, IxError>) -> Cond {
    cond.expect("conditions are small")
}

pub(super) fn plus(a: &Ix, b: &Ix) -> Ix {
    ok(a.add(b))
}

pub(super) fn minus(a: &Ix, b: &Ix) -> Ix {
    ok(a.sub(b))
}

pub(super) fn le(a: &Ix, b: &Ix) -> Cond {
    sure(Cond::le(a, b))
}

pub(super) fn lt(a: &Ix, b: &Ix) -> Cond {
    sure(Cond::lt(a, b))
}

pub(super) fn zero() -> Ix {
    Ix::from(0)
}

/// A number of any sign, and the size of a range from 0 to it.
fn any_sign(less: i64) -> (Ix, Ix) {
    let hi = minus(&Ix::var("k"), &Ix::from(less));
    let size = ok(hi.max_with(&zero()));
    (hi, size)
}

/// What is added to a lower bound to give the upper one of a range of this size.
pub(super) fn width(size: &Ix) -> Ix {
    [0, 1].map(any_sign).into_iter().find(|(_, wide)| wide == size).map_or_else(|| size.clone(), |(hi, _)| hi)
}

fn largest(size: &Ix) -> i64 {
    let value = |name: Name| match name.as_str() {
        "m" => Some(5),
        "k" => Some(3),
        _ => Some(7),
    };
    size.eval(&value).map_or(MOST_ELEMENTS, |size| size.max(1))
}

impl Generator<'_, '_> {
    pub(super) fn not_empty(&self, size: &Ix) -> bool {
        self.holds(&le(&Ix::from(1), size))
    }

    pub(super) fn size(&mut self) -> Result<Ix> {
        let [m, n, q] = ["m", "n", "q"].map(Ix::var);
        Ok(match self.u.int_in_range(0..=15)? {
            0..=3 => n,
            4 | 5 => m,
            6 => q,
            7 => plus(&n, &Ix::from(1)),
            8 => minus(&n, &Ix::from(1)),
            9 => ok(m.mul(&n)),
            10 => ok(n.ceil_div(*self.u.choose(&[2, 3])?)),
            11 => ok(n.scale(2)),
            12 => any_sign(i64::from(self.chance(2)?)).1,
            _ => Ix::from(*self.u.choose(&[2, 1, 3, 6, 5, 4, 0])?),
        })
    }

    pub(super) fn ty(&mut self, elem: ElemType, rank: usize) -> Result<TensorType> {
        let rank = *self.u.choose(&[1, 0, 2, 1, 2, 3, 2, 4])?.min(&rank);
        let mut shape = Vec::new();
        let mut elements = 1;
        for _ in 0..rank {
            let mut size = self.size()?;
            if elements * largest(&size) > MOST_ELEMENTS {
                size = Ix::from(if self.chance(2)? { 1 } else { 2 });
            }
            elements *= largest(&size);
            shape.push(size);
        }
        Ok(TensorType::new(elem, shape))
    }

    /// Any index-level expression.
    pub(super) fn ix(&mut self) -> Result<Ix> {
        let at = self.u.choose(&self.indices)?.at.clone();
        let constant = Ix::from(self.u.int_in_range(-2..=2)?);
        Ok(match self.u.int_in_range(0..=5)? {
            0 => constant,
            1 => plus(&at, &constant),
            2 => minus(&constant, &at),
            3 => minus(&at, &self.u.choose(&self.indices)?.at),
            4 => ok(at.modulo(*self.u.choose(&[2, 3])?)),
            _ => ok(at.floor_div(2)),
        })
    }

    pub(super) fn cond(&mut self) -> Result<Cond> {
        let (a, b) = (self.ix()?, self.ix()?);
        let one = le(&a, &b);
        Ok(match self.u.int_in_range(0..=5)? {
            0 | 1 => one,
            2 => one.or(sure(Cond::eq(&self.ix()?, &b))),
            3 => one.and(lt(&self.ix()?, &b)),
            4 => sure(Cond::eq(&a, &b)),
            _ => sure(sure(Cond::eq(&a, &b)).not()),
        })
    }

    /// An index that is inside a dimension for a reason, if there is one.
    pub(super) fn inside(&mut self, size: &Ix) -> Result<Option<Ix>> {
        let mut found = Vec::new();
        let last = minus(size, &Ix::from(1));
        for Known { at, size: own } in self.indices.iter().rev() {
            let Some(own) = own else { continue };
            let Some(room @ 0..) = minus(size, own).as_constant() else { continue };
            found.extend([at.clone(), plus(at, &Ix::from(room)), minus(&last, at)]);
        }
        if self.not_empty(size) {
            found.extend([zero(), last]);
        }
        if found.is_empty() { Ok(None) } else { Ok(Some(self.u.choose(&found)?.clone())) }
    }

    /// What a body is under an index of a range, or under a condition that makes an expression an index.
    pub(super) fn knowing<T>(&mut self, known: Known, body: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.indices.push(known);
        let result = body(self);
        self.indices.pop();
        result
    }

    /// What a body is under a new index of a range, whose size may not be that of any dimension.
    pub(super) fn with_index<'s, T>(
        &mut self,
        range: &Range,
        size: impl Into<Option<&'s Ix>>,
        body: impl FnOnce(&mut Self, Name) -> Result<T>,
    ) -> Result<T> {
        let name = self.fresh("i");
        let known = Known { at: minus(&Ix::var(name), &range.lo), size: size.into().cloned() };
        self.knowing(known, |g| body(g, name))
    }

    /// A range of a size, which does not always begin at 0.
    pub(super) fn range(&mut self, size: &Ix) -> Result<Range> {
        let lo = match self.u.int_in_range(0..=7)? {
            0..=4 => zero(),
            5 => Ix::from(2),
            6 => Ix::from(-1),
            _ => Ix::var("k"),
        };
        Ok(Range { hi: plus(&lo, &width(size)), lo })
    }
}
