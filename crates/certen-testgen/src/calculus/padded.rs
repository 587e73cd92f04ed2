//! Tensors that are padding at one end of a dimension, and truncations of it (ATL, Sec. 6).
//!
//! [`Generator::padded`] makes a tensor that is padding there by one of the ways in which padding comes about or is carried
//! along: pads, guards, blocks that are not full, and every construct that hands it on. What is cut of it is nothing
//! that a store computes, for all sizes.

use arbitrary::Result;
use certen_core::{Range, ReduceOp, TensorType, Term, TermId};
use certen_index::{Cond, Ix};

use super::index::{Known, le, lt, minus, ok, plus, width, zero};
use super::reshape::resized;
use super::{DEPTH, Generator, elem};

/// Which end of a dimension, and how much of it.
#[derive(Clone, Debug)]
struct End {
    dimension: usize,
    left: bool,
    amount: Ix,
}

impl End {
    /// The same of a tensor that has so many dimensions more in front.
    fn deeper(&self, by: usize) -> End {
        End { dimension: self.dimension + by, ..self.clone() }
    }

    /// The type with the padding.
    fn enlarged(&self, ty: &TensorType) -> TensorType {
        let mut shape = ty.shape.to_vec();
        shape[self.dimension] = plus(&shape[self.dimension], &self.amount);
        TensorType::new(ty.elem, shape)
    }
}

impl Generator<'_, '_> {
    /// A truncation of padding that has a type.
    pub(super) fn truncation(&mut self, ty: &TensorType, part: usize) -> Result<TermId> {
        match self.u.int_in_range(0..=7)? {
            0 => return self.tiled(ty, part),
            1 => return self.tiled_twice(ty, part),
            2 => return self.blocks(ty, part),
            3 => return self.tails(ty, part),
            _ => {}
        }
        let end = self.end(0)?;
        let body = self.padded(ty, &end, part)?;
        let amount = if self.chance(4)? && ty.shape[0] == zero() {
            // More than there is, where all is padding.
            plus(&end.amount, &Ix::from(1))
        } else {
            end.amount
        };
        let term = if end.left { Term::TruncLeft(amount, body) } else { Term::TruncRight(amount, body) };
        Ok(self.reshaped(term, ty))
    }

    /// A truncation of anything, outside a term or inside generations only.
    pub(super) fn truncation_outside(&mut self) -> Result<TermId> {
        let elem = elem(self.u)?;
        let outer = self.u.int_in_range(0..=1)?;
        let mut inner = self.ty(elem, 2)?;
        if inner.is_scalar() {
            inner = TensorType::new(elem, [Ix::var("n")]);
        }
        if outer == 0 {
            return self.cut(&inner);
        }
        let size = self.size()?;
        let range = self.range(&size)?;
        self.with_index(&range, &size, |g, name| {
            let body = g.cut(&inner)?;
            Ok(g.add(Term::Gen(name, range.clone(), body)))
        })
    }

    fn cut(&mut self, ty: &TensorType) -> Result<TermId> {
        if self.chance(3)? {
            return self.truncation(ty, DEPTH - 1);
        }
        // As much padding as is cut, or more, or less.
        let end = self.end(0)?;
        let cut = match self.u.int_in_range(0..=2)? {
            0 => end.amount.clone(),
            1 => plus(&end.amount, &Ix::from(1)),
            _ => Ix::from(self.u.int_in_range(0..=2)?),
        };
        let body = self.padded(ty, &end, DEPTH - 2)?;
        let left = end.left != self.chance(6)?;
        Ok(self.add(if left { Term::TruncLeft(cut, body) } else { Term::TruncRight(cut, body) }))
    }

    fn end(&mut self, dimension: usize) -> Result<End> {
        let amount = match self.u.int_in_range(0..=5)? {
            0 => Ix::var("n"),
            1 => Ix::var("q"),
            2 => ok(Ix::var("n").modulo(2)),
            _ => Ix::from(self.u.int_in_range(0..=2)?),
        };
        Ok(End { dimension, left: self.chance(2)?, amount })
    }

    /// A tensor whose type is larger by padding at one end.
    fn padded(&mut self, ty: &TensorType, end: &End, fuel: usize) -> Result<TermId> {
        // One arm for each construct of Core: a table.
        let Some(part) = fuel.checked_sub(1) else { return self.guarded_generation(ty, end, 0) };
        let large = end.enlarged(ty);
        let d = end.dimension;
        let term = match self.u.int_in_range(0..=13)? {
            0 | 1 if d == 0 => {
                let body = self.term(ty, part)?;
                if end.left {
                    Term::PadLeft(end.amount.clone(), body)
                } else {
                    Term::PadRight(end.amount.clone(), body)
                }
            }
            2 if d == 0 => {
                let all = self.all_padding(&resized(ty, 1, std::slice::from_ref(&end.amount)), part)?;
                let body = self.term(ty, part)?;
                if end.left { Term::Concat(all, body) } else { Term::Concat(body, all) }
            }
            3 if d > 0 => {
                let amount = Ix::from(1);
                let less = minus(&ty.shape[0], &amount);
                if !self.holds(&le(&zero(), &less)) {
                    return self.guarded_generation(ty, end, part);
                }
                let one = self.padded(&resized(ty, 1, &[amount]), end, part)?;
                let two = self.padded(&resized(ty, 1, &[less]), end, part)?;
                if self.chance(2)? { Term::Concat(one, two) } else { Term::Concat(two, one) }
            }
            4 if d > 0 => {
                let end = End { dimension: d - 1, ..end.clone() };
                let (size, inner) = (&ty.shape[0], TensorType::new(ty.elem, ty.shape[1..].to_vec()));
                let range = self.range(size)?;
                return self.with_index(&range, size, |g, name| {
                    let body = g.padded(&inner, &end, part)?;
                    Ok(g.add(Term::Gen(name, range.clone(), body)))
                });
            }
            5 => {
                let value = self.padded(ty, end, part)?;
                return self.with_let(value, |_, reference| Ok(reference));
            }
            6 => Term::If(self.cond()?, self.padded(ty, end, part)?, self.padded(ty, end, part)?),
            7 => Term::Guard(self.cond()?, self.padded(ty, end, part)?),
            8 if ty.elem.has_arithmetic() => {
                let size = self.size()?;
                let range = self.range(&size)?;
                return self.with_index(&range, &size, |g, name| {
                    let cond = if g.chance(3)? { g.cond()? } else { Cond::always() };
                    let body = g.padded(ty, end, part)?;
                    Ok(g.add(Term::Reduce(ReduceOp::Sum, name, range.clone(), cond, body)))
                });
            }
            9 if ty.rank() >= 2 => {
                let mut shape = ty.shape.to_vec();
                shape.swap(0, 1);
                let dimension = [1, 0].get(d).copied().unwrap_or(d);
                let inner = self.padded(&TensorType::new(ty.elem, shape), &End { dimension, ..end.clone() }, part)?;
                Term::Transpose(inner)
            }
            10 => {
                let size = self.size()?;
                let Some(at) = self.inside(&size)? else { return self.guarded_generation(ty, end, part) };
                let more = TensorType::new(ty.elem, [&[size], &*ty.shape].concat());
                let tensor = self.padded(&more, &end.deeper(1), part)?;
                Term::Select(tensor, [at].into())
            }
            11 => {
                let parts = [Ix::from(1), ty.shape[0].clone()];
                Term::Flatten(self.padded(&resized(ty, 1, &parts), &end.deeper(1), part)?)
            }
            12 => {
                // More padding at the same end, and a truncation of what is more.
                let more = Ix::from(self.u.int_in_range(0..=2)?);
                let inner = self.padded(ty, &End { amount: plus(&end.amount, &more), ..end.clone() }, part)?;
                match (d, end.left) {
                    (0, true) => Term::TruncLeft(more, inner),
                    (0, false) => Term::TruncRight(more, inner),
                    _ => return self.guarded_generation(ty, end, part),
                }
            }
            _ => return self.guarded_generation(ty, end, part),
        };
        Ok(self.reshaped(term, &large))
    }

    /// Generations, the one of the padded dimension over more than there is, and values under the condition that the
    /// index is not in the padding.
    fn guarded_generation(&mut self, ty: &TensorType, end: &End, fuel: usize) -> Result<TermId> {
        let (size, inner) = (ty.shape[0].clone(), TensorType::new(ty.elem, ty.shape[1..].to_vec()));
        if end.dimension > 0 {
            let end = End { dimension: end.dimension - 1, ..end.clone() };
            let range = Range::to(width(&size));
            return self.with_index(&range, &size, |g, name| {
                let body = g.guarded_generation(&inner, &end, fuel)?;
                Ok(g.add(Term::Gen(name, range.clone(), body)))
            });
        }
        let more = plus(&size, &end.amount);
        let range = self.range(&more)?;
        self.with_index(&range, &more, |g, name| {
            let at = minus(&Ix::var(name), &range.lo);
            let (cond, at) =
                if end.left { (le(&end.amount, &at), minus(&at, &end.amount)) } else { (lt(&at, &size), at) };
            let body = g.knowing(Known { at, size: Some(size) }, |g| g.term(&inner, fuel))?;
            let body = g.add(Term::Guard(cond, body));
            Ok(g.add(Term::Gen(name, range.clone(), body)))
        })
    }

    /// A tensor without values.
    fn all_padding(&mut self, ty: &TensorType, part: usize) -> Result<TermId> {
        let term = match self.u.int_in_range(0..=3)? {
            0 if ty.elem.has_arithmetic() => {
                let name = self.fresh("i");
                let none = Range { lo: Ix::from(2), hi: Ix::from(1) };
                Term::Reduce(ReduceOp::Sum, name, none, Cond::always(), self.term(ty, part)?)
            }
            1 => Term::PadLeft(ty.shape[0].clone(), self.term(&resized(ty, 1, &[zero()]), part)?),
            2 => {
                let n = Ix::var("n");
                Term::Guard(lt(&n, &Ix::from(1)), self.term(ty, part)?)
            }
            _ => Term::Guard(Cond::never(), self.term(ty, part)?),
        };
        Ok(self.reshaped(term, ty))
    }

    fn tile(&mut self) -> Result<i64> {
        self.u.choose(&[2, 3, 4]).copied()
    }

    /// `C*ceil_div(n, C) - n`
    fn surplus(size: &Ix, tile: i64) -> Ix {
        minus(&ok(ok(size.ceil_div(tile)).scale(tile)), size)
    }

    /// `trunc_r s (flatten (gen io < ceil_div(n, C). gen ii < C. guard(io*C + ii < n, e)))`, or the same from the left.
    fn tiled(&mut self, ty: &TensorType, part: usize) -> Result<TermId> {
        let (size, inner) = (ty.shape[0].clone(), TensorType::new(ty.elem, ty.shape[1..].to_vec()));
        let (tile, left) = (self.tile()?, self.chance(4)?);
        let surplus = Self::surplus(&size, tile);
        let blocks = ok(size.ceil_div(tile));
        let (outer, block) = (Range::to(blocks.clone()), Range::to(Ix::from(tile)));
        let nested = self.with_index(&outer, &blocks, |g, io| {
            g.with_index(&block, &Ix::from(tile), |g, ii| {
                let flat = plus(&ok(Ix::var(io).scale(tile)), &Ix::var(ii));
                let (cond, at) =
                    if left { (le(&surplus, &flat), minus(&flat, &surplus)) } else { (lt(&flat, &size), flat) };
                let body = g.knowing(Known { at, size: Some(size.clone()) }, |g| g.term(&inner, part))?;
                let body = g.add(Term::Guard(cond, body));
                let body = g.add(Term::Gen(ii, block.clone(), body));
                Ok(g.add(Term::Gen(io, outer.clone(), body)))
            })
        })?;
        let flat = self.add(Term::Flatten(nested));
        let term = if left { Term::TruncLeft(surplus, flat) } else { Term::TruncRight(surplus, flat) };
        Ok(self.reshaped(term, ty))
    }

    /// Tiles of two dimensions, as in ATL's tiled matrix product (Sec. 7.1.2).
    fn tiled_twice(&mut self, ty: &TensorType, part: usize) -> Result<TermId> {
        if ty.rank() < 2 {
            return self.tiled(ty, part);
        }
        let (rows, columns) = (ty.shape[0].clone(), ty.shape[1].clone());
        let inner = TensorType::new(ty.elem, ty.shape[2..].to_vec());
        let (r, c) = (self.tile()?, self.tile()?);
        let (row_blocks, column_blocks) = (ok(rows.ceil_div(r)), ok(columns.ceil_div(c)));
        let [io_range, jo_range] = [&row_blocks, &column_blocks].map(|blocks| Range::to(blocks.clone()));
        let [ii_range, ji_range] = [r, c].map(|tile| Range::to(Ix::from(tile)));
        let (io, jo, ji, ii) = (self.fresh("io"), self.fresh("jo"), self.fresh("ji"), self.fresh("ii"));
        let [i, j] = [(io, r, ii), (jo, c, ji)].map(|(o, tile, i)| plus(&ok(Ix::var(o).scale(tile)), &Ix::var(i)));
        let cond = lt(&i, &rows).and(lt(&j, &columns));
        let body = self.knowing(Known { at: i, size: Some(rows.clone()) }, |g| {
            g.knowing(Known { at: j, size: Some(columns.clone()) }, |g| g.term(&inner, part))
        })?;
        let body = self.add(Term::Guard(cond, body));
        let body = self.add(Term::Gen(ii, ii_range, body));
        let body = self.add(Term::Gen(ji, ji_range, body));
        let body = self.add(Term::Gen(jo, jo_range, body));
        let body = self.add(Term::Flatten(body));
        let body = self.add(Term::TruncRight(Self::surplus(&columns, c), body));
        let body = self.add(Term::Transpose(body));
        let body = self.add(Term::Gen(io, io_range, body));
        let body = self.add(Term::Flatten(body));
        Ok(self.reshaped(Term::TruncRight(Self::surplus(&rows, r), body), ty))
    }

    /// `trunc_r s (flatten (split C e))`
    fn blocks(&mut self, ty: &TensorType, part: usize) -> Result<TermId> {
        let tile = self.tile()?;
        let body = self.term(ty, part)?;
        let body = self.add(Term::Split(tile, body));
        let body = self.add(Term::Flatten(body));
        Ok(self.reshaped(Term::TruncRight(Self::surplus(&ty.shape[0], tile), body), ty))
    }

    /// Whole blocks without a condition, the last one with it, concatenated and truncated (Sec. 7.1.3).
    fn tails(&mut self, ty: &TensorType, part: usize) -> Result<TermId> {
        let (size, inner) = (ty.shape[0].clone(), TensorType::new(ty.elem, ty.shape[1..].to_vec()));
        let tile = self.tile()?;
        let (whole, all) = (ok(size.floor_div(tile)), ok(size.ceil_div(tile)));
        let block = Range::to(Ix::from(tile));
        let mut halves = Vec::new();
        for (range, rest) in [(Range::to(whole.clone()), false), (Range { lo: whole.clone(), hi: all }, true)] {
            let (io, ii) = (self.fresh("io"), self.fresh("ii"));
            let flat = plus(&ok(Ix::var(io).scale(tile)), &Ix::var(ii));
            let known = Known { at: flat.clone(), size: Some(size.clone()) };
            let mut body = self.knowing(known, |g| g.term(&inner, part))?;
            if rest {
                body = self.add(Term::Guard(lt(&flat, &size), body));
            }
            let body = self.add(Term::Gen(ii, block.clone(), body));
            halves.push(self.add(Term::Gen(io, range, body)));
        }
        let body = self.add(Term::Concat(halves[0], halves[1]));
        let body = self.add(Term::Flatten(body));
        Ok(self.reshaped(Term::TruncRight(Self::surplus(&size, tile), body), ty))
    }
}
