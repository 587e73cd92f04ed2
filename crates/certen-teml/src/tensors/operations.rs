//! The operations of Sec. 4.2, which write no lists of iterators.

use certen_core::{Binary, MAX_RANK};
use certen_syntax::{Code, Name};
use rustc_hash::FxHashMap;

use super::{Kind, Right, Tensors, dimensions};
use crate::assignment::{Node, ValueId};
use crate::ast::{At, Id};
use crate::ranges::{Dim, Evidence, solve};
use crate::rules::{Evaluated, malformed};

impl Tensors {
    pub(super) fn entrywise(
        &mut self,
        lookup: &dyn Fn(&Id) -> Evaluated<Kind>,
        op: Binary,
        operands: &[Id],
        by: u8,
    ) -> Evaluated<Right> {
        let mut list = Vec::with_capacity(operands.len());
        let mut first: Option<(Id, usize)> = None;
        for id in operands {
            let found = self.resolve(lookup, id)?;
            let rank = self.extents(&found).len();
            let &mut (one, expected) = first.get_or_insert((*id, rank));
            if rank != expected {
                let message =
                    format!("`{}` has {}, `{}` has {}", one.it, dimensions(expected), id.it, dimensions(rank));
                let error = malformed(Code::E0243, by, id.span, message);
                return Err(Box::new(error.help("operands of an entrywise operation have the same shape")));
            }
            let iters = self.names.generated(rank, &self.sizes);
            list.push(self.instance(id, &found, &iters));
        }
        let elem = self.one_type(&list)?;
        let values: Vec<ValueId> = list.iter().map(|operand| operand.value).collect();
        let known: Vec<Evidence> = list.into_iter().map(|operand| operand.known).collect();
        let dims = solve(&self.sizes, by, &known)?;
        let value = values.iter().skip(1).fold(values[0], |one, &two| self.operation(op, one, two, &dims));
        Ok(Right { value, dims, elem, contract: false })
    }

    pub(super) fn transpose(
        &mut self,
        lookup: &dyn Fn(&Id) -> Evaluated<Kind>,
        operand: &Id,
        pairs: &[At<[i64; 2]>],
        real: bool,
    ) -> Evaluated<Right> {
        let found = self.resolve(lookup, operand)?;
        let rank = self.extents(&found).len();
        let mut order: Vec<usize> = (0..rank).collect();
        for pair in pairs {
            let [first, second] = positions(pair, [rank, rank], [operand, operand], 32)?;
            if first == second {
                return Err(malformed(Code::E0205, 32, pair.span, "two different dimensions are exchanged"));
            }
            order.swap(first, second);
        }
        let mut iters = self.names.generated(rank, &self.sizes);
        if !real {
            // The dimensions of the result are `i1`, `i2`, … in order, so the operand gets them in another one.
            for (&of, iter) in order.iter().zip(self.names.generated(rank, &self.sizes)) {
                iters[of] = iter;
            }
        }
        let one = self.instance(operand, &found, &iters);
        let (value, elem) = (one.value, one.elem);
        let dims = solve(&self.sizes, 32, &[one.known])?;
        let dims = order.iter().filter_map(|&of| dims.get(of).cloned()).collect();
        Ok(Right { value, dims, elem, contract: false })
    }

    /// The product, its dimensions with those that are summed at the end, and how many there are before.
    pub(super) fn contract(
        &mut self,
        lookup: &dyn Fn(&Id) -> Evaluated<Kind>,
        [one, two]: &[Id; 2],
        pairs: &[At<[i64; 2]>],
        real: bool,
    ) -> Evaluated<(Right, usize)> {
        let found = [self.resolve(lookup, one)?, self.resolve(lookup, two)?];
        let extents = [self.extents(&found[0]), self.extents(&found[1])];
        let ranks = [extents[0].len(), extents[1].len()];
        let mut iters: [Vec<Option<Name>>; 2] = [vec![None; ranks[0]], vec![None; ranks[1]]];
        let mut summed: Vec<Name> = Vec::with_capacity(pairs.len());
        for pair in pairs {
            let [first, second] = positions(pair, ranks, [one, two], 33)?;
            if iters[0][first].is_some() || iters[1][second].is_some() {
                return Err(malformed(Code::E0205, 33, pair.span, "a dimension is contracted twice"));
            }
            let (a, b) = (&extents[0][first], &extents[1][second]);
            if !self.sizes.equal(a, b) {
                let message = format!("the contracted dimensions have different sizes: {a} and {b}");
                let error = malformed(Code::E0243, 33, pair.span, message)
                    .also(one.span, format!("dimension {} of `{}`: {a}", first + 1, one.it))
                    .also(two.span, format!("dimension {} of `{}`: {b}", second + 1, two.it));
                return Err(Box::new(error));
            }
            let name = self.names.summed(if real { "k" } else { "s" }, &self.sizes);
            summed.push(name);
            (iters[0][first], iters[1][second]) = (Some(name), Some(name));
        }
        let rest = ranks[0] + ranks[1] - 2 * pairs.len();
        if rest > MAX_RANK {
            return Err(malformed(
                Code::E0213,
                33,
                one.span,
                format!("the result has {rest} dimensions; there can be {MAX_RANK}"),
            ));
        }
        let mut free = self.names.generated(rest, &self.sizes).into_iter();
        let order: Vec<Name> = {
            let mut order = Vec::with_capacity(rest);
            for iter in iters.iter_mut().flatten().filter(|iter| iter.is_none()) {
                *iter = free.next();
                order.extend(*iter);
            }
            order.extend(summed.iter().copied());
            order
        };
        let iters = iters.map(|list| list.into_iter().flatten().collect::<Vec<Name>>());
        let operands = vec![self.instance(one, &found[0], &iters[0]), self.instance(two, &found[1], &iters[1])];
        let Right { value, dims, elem, .. } = self.joint(operands, Some(Binary::Mul), 33, Vec::new())?;
        let mut by_name: FxHashMap<Name, Dim> = dims.into_iter().map(|dim| (dim.iter, dim)).collect();
        let mut dims: Vec<Dim> = order.iter().filter_map(|iter| by_name.remove(iter)).collect();
        if real {
            return Ok((Right { value, dims, elem, contract: true }, rest));
        }
        let sums = dims.split_off(rest.min(dims.len())).into_iter().map(|dim| (dim.iter, dim.extent)).collect();
        let value = self.values.add(Node::Sum(sums, value));
        self.shapes.entry(value).or_insert_with(|| dims.iter().map(|dim| dim.extent.clone()).collect());
        Ok((Right { value, dims, elem, contract: false }, rest))
    }

    pub(super) fn outer(
        &mut self,
        lookup: &dyn Fn(&Id) -> Evaluated<Kind>,
        operands: &[Id],
        by: u8,
    ) -> Evaluated<Right> {
        let mut found = Vec::with_capacity(operands.len());
        for id in operands {
            let one = self.resolve(lookup, id)?;
            found.push((id, self.extents(&one).len(), one));
        }
        let rank: usize = found.iter().map(|(_, rank, _)| rank).sum();
        if rank > MAX_RANK {
            let message = format!("the result has {rank} dimensions; there can be {MAX_RANK}");
            return Err(malformed(Code::E0213, by, operands[0].span, message));
        }
        let iters = self.names.generated(rank, &self.sizes);
        let mut list = Vec::with_capacity(found.len());
        let mut at = 0;
        for (id, rank, one) in &found {
            list.push(self.instance(id, one, &iters[at..at + rank]));
            at += rank;
        }
        let elem = self.one_type(&list)?;
        let values: Vec<ValueId> = list.iter().map(|operand| operand.value).collect();
        let mut parts: Vec<Vec<Dim>> = Vec::with_capacity(list.len());
        for operand in list {
            parts.push(solve(&self.sizes, by, &[operand.known])?);
        }
        // Eq. 34 multiplies from the right.
        let (mut value, mut dims) = (values[values.len() - 1], parts.pop().unwrap_or_default());
        for (&one, part) in values.iter().rev().skip(1).zip(parts.into_iter().rev()) {
            dims.splice(0..0, part);
            value = self.operation(Binary::Mul, one, value, &dims);
        }
        Ok(Right { value, dims, elem, contract: false })
    }
}

/// Two positions, from 0.
fn positions(pair: &At<[i64; 2]>, ranks: [usize; 2], ids: [&Id; 2], by: u8) -> Evaluated<[usize; 2]> {
    let mut found = [0; 2];
    for side in 0..2 {
        let (position, rank, id) = (pair.it[side], ranks[side], ids[side]);
        found[side] = match usize::try_from(position) {
            Ok(at) if (1..=rank).contains(&at) => at - 1,
            _ => {
                let message = format!("`{}` has {}, and no dimension {position}", id.it, dimensions(rank));
                return Err(Box::new(malformed(Code::E0204, by, pair.span, message).label("positions count from 1")));
            }
        };
    }
    Ok(found)
}
