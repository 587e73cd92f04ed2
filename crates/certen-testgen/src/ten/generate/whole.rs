//! Operations on whole tensors: the built-in ones and those of the prelude, each found from the shape that it gives.

use super::*;

impl Generator<'_> {
    /// Operations on whole tensors.
    pub(super) fn whole(&mut self, c: &Scope, elem: Elem, dims: &[Dim], depth: usize) -> Option<Expr> {
        // One arm for each operation: a table of what makes a tensor of this shape.
        let longer = |by: i64| {
            let mut all = dims.to_vec();
            if let Some(first) = all.first_mut() {
                *first = first.shifted(by);
            }
            all
        };
        let first = dims.first().cloned().unwrap_or(Dim::from(0));
        let low = c.low(&first);
        let by = 1 + self.pick(2) as i64;
        let number = elem != Elem::Bool;
        let call = |name: &str, args: Vec<Arg>| Some(Expr::Call(name.into(), args));
        let choice = self.pick(34);
        // What makes a tensor needs one; what is left needs none.
        if dims.is_empty() && !matches!(choice, 0..=4 | 30..=33) {
            return None;
        }
        match choice {
            0..=2 => {
                // A selection from something larger.
                let at = self.pick(dims.len() + 1);
                let extra = self.size(c);
                let index = self.index(c, &extra)?;
                let mut all = dims.to_vec();
                all.insert(at, extra);
                if all.len() > MAX_RANK {
                    return None;
                }
                let e = self.expr(c, elem, &all, depth);
                let mut sels: Vec<Sel> = match self.pick(3) {
                    0 if at > 0 => vec![Sel::Dots],
                    _ => (0..at).map(|_| Sel::Dot).collect(),
                };
                let ends = matches!(sels.as_slice(), [Sel::Dots]);
                sels.push(Sel::At(index));
                match self.pick(3) {
                    _ if ends => sels.extend((at + 1..all.len()).map(|_| Sel::Dot)),
                    0 => sels.push(Sel::Dots),
                    1 => sels.extend((at + 1..all.len()).map(|_| Sel::Dot)),
                    _ => {}
                }
                Some(Expr::Select(fixed(e, elem).into(), sels))
            }
            3 => {
                // By several indices at once.
                let mut front = Vec::new();
                let mut at = Vec::new();
                for _ in 0..1 + self.pick(2) {
                    let extra = self.size(c);
                    at.push(self.index(c, &extra)?);
                    front.push(extra);
                }
                let all = [&front, dims].concat();
                if all.len() > MAX_RANK {
                    return None;
                }
                let e = fixed(self.expr(c, elem, &all, depth), elem);
                match self.pick(3) {
                    0 => call("sel", vec![Arg::Vec(IxVec::List(at)), data(e)]),
                    1 => Some(Expr::Select(e.into(), vec![Sel::Vec(IxVec::List(at))])),
                    _ => Some(Expr::Select(e.into(), at.into_iter().map(Sel::At).collect())),
                }
            }
            4 => {
                let axis = self.pick(dims.len() + 1);
                let extra = self.size(c);
                let index = self.index(c, &extra)?;
                let mut all = dims.to_vec();
                all.insert(axis, extra);
                if all.len() > MAX_RANK {
                    return None;
                }
                let e = fixed(self.expr(c, elem, &all, depth), elem);
                call("project", vec![Arg::Ix(lit(axis as i64)), Arg::Ix(index), data(e)])
            }
            5 | 6 => {
                // A slice, perhaps of an inner dimension.
                let axis = self.pick(dims.len());
                let mut all = dims.to_vec();
                let kind = self.pick(3);
                all[axis] = all[axis].shifted(if kind == 2 { by + 1 } else { by });
                let slice = match kind {
                    0 => Sel::Slice(Some(lit(by)), None),
                    1 => Sel::Slice(None, Some(dims[axis].ix())),
                    _ => Sel::Slice(Some(lit(by)), Some(dims[axis].shifted(by).ix())),
                };
                let e = fixed(self.expr(c, elem, &all, depth), elem);
                let sels = (0..axis).map(|_| Sel::Dot).chain([slice]).collect();
                Some(Expr::Select(e.into(), sels))
            }
            7 if dims.len() >= 2 => {
                let all = [&[dims[1].clone(), dims[0].clone()], &dims[2..]].concat();
                Some(Expr::Unary("transpose", self.expr(c, elem, &all, depth).into()))
            }
            8 if low >= by => {
                let op = ["pad_l", "pad_r"][self.pick(2)];
                Some(Expr::Shift(op, lit(by), self.expr(c, elem, &longer(-by), depth).into()))
            }
            9 => {
                // What is cut has to be padding.
                let (cut, pad) = [("trunc_l", "pad_l"), ("trunc_r", "pad_r")][self.pick(2)];
                let amount = match c.indices.first().filter(|bound| c.lows.contains_key(&bound.name)) {
                    Some(amount) if self.flip() => name(&amount.name),
                    _ => lit(by),
                };
                let padded = Expr::Shift(pad, amount.clone(), self.expr(c, elem, dims, depth).into());
                Some(Expr::Shift(cut, amount, padded.into()))
            }
            10 => {
                // A part in front and the rest after it.
                let (front, back) = match first.terms.iter().next() {
                    Some((atom, count)) if first.terms.len() > 1 || *count > 1 => {
                        let front = Dim { plus: 0, terms: BTreeMap::from([(atom.clone(), 1)]) };
                        let back = first.plus(-1, &front);
                        (front, back)
                    }
                    _ if low >= by => (Dim::from(by), first.shifted(-by)),
                    _ => return None,
                };
                if c.low(&front) < 0 || c.low(&back) < 0 {
                    return None;
                }
                let (front, back) = if self.flip() { (front, back) } else { (back, front) };
                let part = |g: &mut Self, size: Dim| {
                    let e = g.expr(c, elem, &[&[size], &dims[1..]].concat(), depth);
                    fixed(e, elem)
                };
                let (a, b) = (part(self, front), part(self, back));
                match self.pick(3) {
                    0 => call("vstack", vec![data(a), data(b)]),
                    1 => call("concat", vec![Arg::Ix(lit(0)), data(a), data(b)]),
                    _ => Some(binary("++", a, b)),
                }
            }
            11 => {
                let e = fixed(self.expr(c, elem, dims, depth), elem);
                match self.pick(4) {
                    0 => call("reverse", vec![data(e)]),
                    1 => call("reverse_on", vec![Arg::Ix(lit(self.pick(dims.len()) as i64)), data(e)]),
                    2 if number => call("zeros_like", vec![data(e)]),
                    _ => {
                        let fill = if number { Expr::Num(by, elem) } else { Expr::Bool(true) };
                        call("shift", vec![Arg::Ix(lit(self.pick(5) as i64 - 2)), data(fill), data(e)])
                    }
                }
            }
            12 => {
                let axis = self.pick(dims.len());
                let most = c.low(&dims[axis]).clamp(0, 3);
                let by = self.pick((2 * most + 1) as usize) as i64 - most;
                let e = fixed(self.expr(c, elem, dims, depth), elem);
                match axis {
                    0 if self.flip() => call("rotate", vec![Arg::Ix(lit(by)), data(e)]),
                    axis => call("rotate_on", vec![Arg::Ix(lit(axis as i64)), Arg::Ix(lit(by)), data(e)]),
                }
            }
            13 => {
                let sign = if self.flip() { 1 } else { -1 };
                let e = fixed(self.expr(c, elem, &longer(by), depth), elem);
                call("drop", vec![Arg::Vec(IxVec::List(vec![lit(sign * by)])), data(e)])
            }
            14 if first.terms.is_empty() && first.plus > 0 => {
                let sign = if self.flip() { 1 } else { -1 };
                let mut all = dims.to_vec();
                let size = self.size(c);
                all[0] = size.shifted(first.plus);
                let e = fixed(self.expr(c, elem, &all, depth), elem);
                call("take", vec![Arg::Vec(IxVec::List(vec![lit(sign * first.plus)])), data(e)])
            }
            15 | 16 if number => {
                let (left, right) = dims.split_at(self.pick(dims.len() + 1));
                let (a, b) = (self.expr(c, elem, left, depth), self.expr(c, elem, right, depth));
                call("outer", vec![data(fixed(a, elem)), data(fixed(b, elem))])
            }
            17 => {
                let axis = self.pick(dims.len());
                let mut all = dims.to_vec();
                let size = all.remove(axis);
                let e = fixed(self.expr(c, elem, &all, depth), elem);
                call("expand", vec![Arg::Ix(lit(axis as i64)), Arg::Ix(size.ix()), data(e)])
            }
            18 if dims.len() == 1 && elem == Elem::I64 => call("iota", vec![Arg::Ix(first.ix())]),
            18 if dims.len() == 2 && elem == Elem::F64 && dims[0] == dims[1] => call("eye", vec![Arg::Ix(first.ix())]),
            18 if elem == Elem::F64 => {
                let made = if self.flip() { "zeros" } else { "ones" };
                call(made, vec![Arg::Vec(shape(dims))])
            }
            19 if dims.len() < MAX_RANK => {
                let e = fixed(self.expr(c, elem, &[&[first], dims].concat(), depth), elem);
                call("diagonal", vec![data(e)])
            }
            20 if number && dims.len() == 2 && dims[0] == dims[1] => {
                let e = fixed(self.expr(c, elem, &dims[..1], depth), elem);
                call("diagonal_matrix", vec![data(e)])
            }
            20 if number && dims.len() == 2 => {
                let e = fixed(self.expr(c, elem, dims, depth), elem);
                call("lower_triangle", vec![data(e)])
            }
            21 if dims.len() >= 3 => {
                let all = [&[dims[2].clone(), dims[1].clone(), dims[0].clone()], &dims[3..]].concat();
                let e = fixed(self.expr(c, elem, &all, depth), elem);
                call("swap_axes", vec![Arg::Ix(lit(0)), Arg::Ix(lit(1)), data(e)])
            }
            22 if dims.len() >= 2 => {
                let (last, front) = dims.split_last()?;
                let e = fixed(self.expr(c, elem, &[std::slice::from_ref(last), front].concat(), depth), elem);
                call("axes_to_back", vec![Arg::Ix(lit(1)), data(e)])
            }
            23 if number => {
                let e = fixed(self.expr(c, elem, &longer(if by == 1 { 1 } else { 2 }), depth), elem);
                call(if by == 1 { "diff" } else { "laplace1d" }, vec![data(e)])
            }
            24 if number => {
                // A number with a size makes literals of vectors.
                let size = Dim::from(by + 1);
                if dims.len() == 1 && self.flip() {
                    let e = fixed(self.expr(c, elem, &longer(by), depth), elem);
                    let w = fixed(self.expr(c, elem, &[size], depth), elem);
                    return call("conv1d", vec![data(e), data(w)]);
                }
                if first.terms.is_empty() && (1..=3).contains(&first.plus) {
                    let parts = (0..first.plus).map(|_| self.expr(c, elem, &dims[1..], depth)).collect();
                    return Some(Expr::Stack(parts));
                }
                None
            }
            25 if dims.len() >= 2 && dims[1].terms.is_empty() && dims[1].plus > 0 => {
                let size = dims[1].plus;
                let all = [&[first.shifted(size - 1)], &dims[2..]].concat();
                let e = fixed(self.expr(c, elem, &all, depth), elem);
                call("window", vec![Arg::Ix(lit(size)), data(e)])
            }
            26 if dims.len() >= 2 && dims[1].terms.is_empty() && (1..=3).contains(&dims[1].plus) => {
                // Blocks of an axis that they divide.
                let size = dims[1].plus;
                let all = [&[Dim::from(0).plus(size, &first)], &dims[2..]].concat();
                Some(Expr::Split(size, self.expr(c, elem, &all, depth).into()))
            }
            27 if dims.len() < MAX_RANK
                && first.plus % 2 == 0
                && first.terms.values().all(|count| count % 2 == 0)
                && low > 0 =>
            {
                let half = Dim {
                    plus: first.plus / 2,
                    terms: first.terms.iter().map(|(atom, count)| (atom.clone(), count / 2)).collect(),
                };
                match self.pick(3) {
                    0 => {
                        let all = [&[half], &dims[1..]].concat();
                        let e = fixed(self.expr(c, elem, &all, depth), elem);
                        call("repeat", vec![Arg::Ix(lit(2)), data(e)])
                    }
                    1 => {
                        let all = [&[half, Dim::from(2)], &dims[1..]].concat();
                        Some(Expr::Unary("flatten", self.expr(c, elem, &all, depth).into()))
                    }
                    _ => {
                        let all = [&[Dim::from(2), half], &dims[1..]].concat();
                        let e = fixed(self.expr(c, elem, &all, depth), elem);
                        Some(Expr::Reshape(shape(dims), e.into()))
                    }
                }
            }
            28 if low > 2 * by => {
                let made = if self.flip() { "pad_clamp" } else { "pad_periodic" };
                if made == "pad_periodic" && low < 3 * by {
                    return None;
                }
                let e = fixed(self.expr(c, elem, &longer(-2 * by), depth), elem);
                call(made, vec![Arg::Ix(lit(by)), data(e)])
            }
            29 if number => {
                let axis = self.pick(dims.len());
                let mut all = dims.to_vec();
                all[axis] = all[axis].shifted(1);
                let e = fixed(self.expr(c, elem, &all, depth), elem);
                call("diff_on", vec![Arg::Ix(lit(axis as i64)), data(e)])
            }
            30 | 31 if number && dims.len() <= 2 => {
                let inner = self.size(c);
                let (left, right) = dims.split_at(dims.len() / 2 + usize::from(dims.len() == 1 && self.flip()));
                let a = self.expr(c, elem, &[left, std::slice::from_ref(&inner)].concat(), depth);
                let b = self.expr(c, elem, &[std::slice::from_ref(&inner), right].concat(), depth);
                let (a, b) = (fixed(a, elem), fixed(b, elem));
                match (self.pick(4), dims.len()) {
                    (0, 0) => call("dot", vec![data(a), data(b)]),
                    (0, 2) => call("matmul", vec![data(a), data(b)]),
                    (1, 0) => Some(Expr::Einsum("k,k".into(), vec![a, b])),
                    (1, 2) => Some(Expr::Einsum("ik,kj->ij".into(), vec![a, b])),
                    (2, _) => call("tensordot", vec![Arg::Ix(lit(1)), data(a), data(b)]),
                    _ => Some(binary("@", a, b)),
                }
            }
            32 if number && dims.len() <= 2 => {
                // The sum of a diagonal, and other sums that einsum writes.
                let n = self.size(c);
                if dims.is_empty() && self.flip() {
                    let e = fixed(self.expr(c, elem, &[n.clone(), n], depth), elem);
                    return if self.flip() {
                        call("trace", vec![data(e)])
                    } else {
                        Some(Expr::Einsum("ii".into(), vec![e]))
                    };
                }
                let all = [dims, &[n]].concat();
                let e = fixed(self.expr(c, elem, &all, depth), elem);
                let spec = ["a->", "ia->i", "ija->ji"][dims.len()];
                if dims.len() == 2 && dims[0] != dims[1] {
                    return None;
                }
                Some(Expr::Einsum(spec.into(), vec![e]))
            }
            _ => None,
        }
    }
}
