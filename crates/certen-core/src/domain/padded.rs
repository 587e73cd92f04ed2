//! Values that know whether they are *padding*: ATL's semantics (Sec. 6.1), which tell elements that nothing computes
//! from zeros, over any other domain.
//!
//! Guards that are false, pads, split and sums of nothing but padding give padding; what moves elements carries it along.
//! To an operation padding is a zero, and what an operation gives is computed.

use super::{Domain, Fault};
use crate::ops::{Binary, Literal, Unary};
use crate::types::ElemType;

/// The domain of another one's values, each with the knowledge whether it is padding.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Padded<D>(pub D);

/// An element, and whether nothing computed it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MaybePadding<V> {
    /// What it is to an operation: padding is zero.
    pub value: V,
    /// Whether it is padding.
    pub is_padding: bool,
}

impl<V> MaybePadding<V> {
    /// An element that was computed.
    pub fn computed(value: V) -> MaybePadding<V> {
        MaybePadding { value, is_padding: false }
    }
}

impl<D: Domain> Domain for Padded<D> {
    type Value = MaybePadding<D::Value>;

    fn literal(&self, literal: Literal, elem: ElemType) -> Result<Self::Value, Fault> {
        self.0.literal(literal, elem).map(MaybePadding::computed)
    }

    fn index(&self, index: i64, elem: ElemType) -> Result<Self::Value, Fault> {
        self.0.index(index, elem).map(MaybePadding::computed)
    }

    fn undefined(&self, elem: ElemType) -> Result<Self::Value, Fault> {
        self.0.undefined(elem).map(MaybePadding::computed)
    }

    fn unary(&self, op: Unary, elem: ElemType, a: &Self::Value) -> Result<Self::Value, Fault> {
        self.0.unary(op, elem, &a.value).map(MaybePadding::computed)
    }

    fn binary(&self, op: Binary, elem: ElemType, a: &Self::Value, b: &Self::Value) -> Result<Self::Value, Fault> {
        self.0.binary(op, elem, &a.value, &b.value).map(MaybePadding::computed)
    }

    fn choose(&self, cond: &Self::Value, a: &Self::Value, b: &Self::Value) -> Result<Self::Value, Fault> {
        self.0.choose(&cond.value, &a.value, &b.value).map(MaybePadding::computed)
    }

    fn fma(&self, elem: ElemType, a: &Self::Value, b: &Self::Value, c: &Self::Value) -> Result<Self::Value, Fault> {
        self.0.fma(elem, &a.value, &b.value, &c.value).map(MaybePadding::computed)
    }

    fn cast(&self, from: ElemType, to: ElemType, a: &Self::Value) -> Result<Self::Value, Fault> {
        self.0.cast(from, to, &a.value).map(MaybePadding::computed)
    }

    fn padding(&self, elem: ElemType) -> Result<Self::Value, Fault> {
        Ok(MaybePadding { value: self.0.padding(elem)?, is_padding: true })
    }

    fn sum(&self, elem: ElemType, sum: &Self::Value, next: &Self::Value) -> Result<Self::Value, Fault> {
        let value = self.0.sum(elem, &sum.value, &next.value)?;
        Ok(MaybePadding { value, is_padding: sum.is_padding && next.is_padding })
    }

    fn computed(&self, a: Self::Value) -> Self::Value {
        MaybePadding::computed(a.value)
    }
}
