//! Comprehensions and with-loops of every form: lists, vectors and named rests of indices, dots, several partitions, bounds
//! written, left out or `.`.

use super::*;

impl Generator<'_> {
    pub(super) fn range(&mut self, c: &Scope, dim: &Dim) -> ((i64, Written), (Dim, Written)) {
        let end = [Written::Yes, Written::Other, Written::Dot][self.pick(3)];
        let how = [Written::Yes, Written::Other][self.pick(2)];
        let by = 1 + self.pick(2) as i64;
        match self.pick(5) {
            0 => ((0, Written::No), (dim.clone(), end)),
            1 => ((by, how), (dim.clone(), end)),
            2 => ((0, Written::Dot), (dim.shifted(-by), how)),
            3 => ((1, Written::Yes), (dim.shifted(-by), how)),
            _ if c.low(dim) >= by => ((0, Written::No), (Dim::from(by), how)),
            _ => ((0, Written::Yes), (dim.clone(), end)),
        }
    }

    pub(super) fn comprehension(&mut self, c: &Scope, elem: Elem, dims: &[Dim], depth: usize) -> Option<Expr> {
        // One arm for each way to write bounds: a table.
        let rank = dims.len();
        if rank == 0 {
            return None;
        }
        let style = self.pick(6);
        let count = 1 + self.pick(rank);
        // Which dimensions have an index.
        let mut indexed: Vec<bool> = (0..rank).map(|at| at < count).collect();
        if style == 2 {
            indexed.iter_mut().for_each(|one| *one = self.flip());
            if !indexed.contains(&true) {
                indexed[rank - 1] = true;
            }
        }
        let cell: Vec<Dim> = dims.iter().zip(&indexed).filter(|(_, one)| !**one).map(|(dim, _)| dim.clone()).collect();
        let own: Vec<Dim> = dims.iter().zip(&indexed).filter(|(_, one)| **one).map(|(dim, _)| dim.clone()).collect();
        let infer = self.infer && elem != Elem::Bool && self.flip();
        // A condition around all selections leaves the bounds to the type of a `let`.
        let by_type = self.infer && elem != Elem::Bool && !infer && style <= 2 && self.flip();
        let several = style <= 2 && self.pick(3) == 1;
        let mut parts = Vec::new();
        let mut covered = 0;
        for _ in 0..if several { 1 + self.pick(2) } else { 0 } {
            let mut inner = c.clone();
            let mut slots = Vec::new();
            for (dim, one) in dims.iter().zip(&indexed) {
                if !one {
                    slots.push(Slot::Dot);
                    continue;
                }
                let ((lower, how), (upper, end)) = self.range(c, dim);
                let i = self.fresh("j");
                let known = if own.len() == 1 { lower.max(covered) } else { lower };
                inner.indices.push(Bound { name: i.clone(), lower: known, upper: upper.clone() });
                if own.len() == 1 && lower == 0 && upper.terms.is_empty() {
                    covered = covered.max(upper.plus);
                }
                slots.push(Slot::Index(i, (lit(lower), how), (upper.ix(), end)));
            }
            let body = self.expr(&inner, elem, &cell, depth.saturating_sub(1));
            let joint = self.flip();
            parts.push(Part { slots: self.dots(slots, rank), body, joint, cell: shape(&cell) });
        }
        let mut inner = c.clone();
        let mut anchor: Vec<Sel> = Vec::new();
        let mut anchored: Vec<Dim> = Vec::new();
        let written = |inferred: bool, how: usize| match (inferred, how) {
            (true, _) => Written::No,
            (false, 0) => Written::Other,
            (false, _) => Written::Yes,
        };
        let mut slots = Vec::new();
        match style {
            3..=5 => {
                let split = if style == 3 { own.len() } else { self.pick(own.len() + 1) };
                let (front, back) = own.split_at(split);
                let mut rest = |g: &mut Self, uppers: &[Dim]| {
                    let iv = g.fresh("v");
                    let by = if infer { g.pick(2) as i64 } else { 0 };
                    inner.vectors.push((iv.clone(), uppers.to_vec()));
                    for (at, upper) in uppers.iter().enumerate() {
                        inner.indices.push(Bound { name: format!("{iv}[{at}]"), lower: 0, upper: upper.clone() });
                    }
                    let vector = IxVec::Name(iv.clone());
                    anchor.push(Sel::Vec(match by {
                        0 => vector,
                        by => IxVec::Op("+", vector.into(), IxVec::One(lit(by)).into()),
                    }));
                    anchored.extend(uppers.iter().map(|upper| upper.shifted(by)));
                    // The length of a vector must be found: from a bound, or where it stands alone in a selection.
                    let end = if infer && by == 0 { Written::No } else { Written::Yes };
                    Slot::Rest(iv, (IxVec::One(lit(0)), Written::No), (shape(uppers), end))
                };
                let slot = rest(self, front);
                slots.push(slot);
                for upper in back {
                    let i = self.fresh("j");
                    inner.indices.push(Bound { name: i.clone(), lower: 0, upper: upper.clone() });
                    anchor.push(Sel::At(name(&i)));
                    anchored.push(upper.clone());
                    slots.push(Slot::Index(i, (lit(0), Written::No), (upper.ix(), written(infer, 1))));
                }
            }
            _ => {
                for (dim, one) in dims.iter().zip(&indexed) {
                    if !one {
                        slots.push(Slot::Dot);
                        continue;
                    }
                    let i = self.fresh("j");
                    let inferred = infer && self.pick(4) != 3;
                    let mut lower = if self.pick(5) == 4 { 1 } else { 0 };
                    let how = if lower == 0 { [Written::No, Written::Yes][self.pick(2)] } else { Written::Yes };
                    if inferred {
                        let (at, size) = match self.pick(5) {
                            0 | 1 => (name(&i), dim.clone()),
                            2 => (name(&i).shifted(1), dim.shifted(1)),
                            3 => (Ix::Sub(dim.shifted(-1).ix().into(), name(&i).into()), dim.clone()),
                            _ => (Ix::Mul(lit(2).into(), name(&i).into()), dim.plus(1, dim)),
                        };
                        anchor.push(Sel::At(at));
                        anchored.push(size);
                    }
                    let end = written(inferred || by_type, self.pick(3));
                    slots.push(Slot::Index(i.clone(), (lit(lower), how), (dim.ix(), end)));
                    if own.len() == 1 {
                        lower = lower.max(covered);
                    }
                    inner.indices.push(Bound { name: i, lower, upper: dim.clone() });
                }
                slots = self.dots(slots, rank);
            }
        }
        let mut body = self.expr(&inner, elem, &cell, depth);
        if by_type && let Some(last) = inner.indices.last() {
            let elsewhere = Cond::Cmp("!=", name(&last.name), lit(1 + self.pick(2) as i64));
            let other = self.expr(&inner, elem, &cell, depth.min(1));
            body = Expr::If(elsewhere, body.into(), other.into());
        }
        let joint = self.flip();
        let mut lets = Vec::new();
        if infer && !anchor.is_empty() {
            let tensor = self.fresh("t");
            let value = self.expr(c, elem, &anchored, depth.min(2));
            lets.push(Let { names: vec![tensor.clone()], ty: None, value: fixed(value, elem) });
            let op = ["+", "-", "max"][self.pick(3)];
            body = binary(op, Expr::Select(var(&tensor).into(), anchor), body);
        }
        parts.push(Part { slots, body, joint, cell: shape(&cell) });
        let made = Expr::Comprehension(parts);
        if by_type {
            let tensor = self.fresh("t");
            let ty = Some(type_of(elem, dims));
            let lets = vec![Let { names: vec![tensor.clone()], ty, value: fixed(made, elem) }];
            return Some(Expr::Block(Block { lets, results: vec![var(&tensor)] }.into()));
        }
        if lets.is_empty() {
            return Some(made);
        }
        Some(Expr::Block(Block { lets, results: vec![made] }.into()))
    }

    /// Dots at the end may be left out, and a run of dots may be `...`.
    pub(super) fn dots(&mut self, mut slots: Vec<Slot>, rank: usize) -> Vec<Slot> {
        let is_dot = |slot: &Slot| matches!(slot, Slot::Dot);
        let first = slots.iter().position(is_dot);
        let Some(first) = first else {
            if slots.len() == rank && self.pick(8) == 7 {
                slots.push(Slot::Dots);
            }
            return slots;
        };
        let run = slots[first..].iter().take_while(|slot| is_dot(slot)).count();
        let only = slots.iter().filter(|slot| is_dot(slot)).count() == run;
        match self.pick(3) {
            0 if only && first + run == slots.len() => slots.truncate(first),
            1 if only => drop(slots.splice(first..first + run, [Slot::Dots])),
            1 => drop(slots.splice(first..first + run, [Slot::Dots])),
            _ => {}
        }
        slots
    }

    /// A generator of a with-loop over some sizes.
    pub(super) fn generator(
        &mut self,
        c: &Scope,
        elem: Elem,
        frame: &[Dim],
        cell: &[Dim],
        (dots, depth): (bool, usize),
    ) -> Part {
        let mut inner = c.clone();
        let whole = self.flip();
        let by = self.pick(2) as i64;
        let how_low = if dots && by == 0 { [Written::Yes, Written::Dot][self.pick(2)] } else { Written::Yes };
        let cut = if whole { 0 } else { self.pick(2) as i64 };
        let choices: &[Written] = if dots && cut == 0 {
            &[Written::Yes, Written::Other, Written::Dot]
        } else {
            &[Written::Yes, Written::Other]
        };
        let how = choices[self.pick(choices.len())];
        let lower = if whole { 0 } else { by };
        let how_low = if lower > 0 { Written::Yes } else { how_low };
        let mut slots = Vec::new();
        if self.pick(3) == 2 {
            let iv = self.fresh("v");
            let uppers: Vec<Dim> = frame.iter().map(|dim| dim.shifted(-cut)).collect();
            for (at, upper) in uppers.iter().enumerate() {
                inner.indices.push(Bound { name: format!("{iv}[{at}]"), lower, upper: upper.clone() });
            }
            inner.vectors.push((iv.clone(), uppers.clone()));
            // The length of the vector comes from one of its bounds.
            let listed = how == Written::Dot || self.flip();
            let how_low = if how == Written::Dot { Written::Yes } else { how_low };
            let low = if listed { IxVec::List(vec![lit(lower); frame.len()]) } else { IxVec::One(lit(lower)) };
            slots.push(Slot::Rest(iv, (low, how_low), (shape(&uppers), how)));
        } else {
            for dim in frame {
                let i = self.fresh("j");
                let upper = dim.shifted(-cut);
                slots.push(Slot::Index(i.clone(), (lit(lower), how_low), (upper.ix(), how)));
                inner.indices.push(Bound { name: i, lower, upper });
            }
        }
        let body = self.expr(&inner, elem, cell, depth.saturating_sub(1));
        Part { slots, body, joint: true, cell: shape(cell) }
    }

    pub(super) fn genarray(&mut self, c: &Scope, elem: Elem, dims: &[Dim], depth: usize) -> Option<Expr> {
        if dims.is_empty() || elem == Elem::Bool {
            return None;
        }
        let (frame, cell) = dims.split_at(1 + self.pick(dims.len()));
        let mut parts = Vec::new();
        for _ in 0..self.pick(3) {
            parts.push(self.generator(c, elem, frame, cell, (true, depth)));
        }
        let default = if parts.is_empty() || self.flip() {
            let e = self.expr(c, elem, cell, depth.min(1));
            Some(fixed(e, elem).into())
        } else {
            None
        };
        Some(Expr::With(parts, WithOp::Genarray(shape(frame), default)))
    }

    pub(super) fn modarray(&mut self, c: &Scope, elem: Elem, dims: &[Dim], depth: usize) -> Option<Expr> {
        if dims.is_empty() {
            return None;
        }
        let (frame, cell) = dims.split_at(1 + self.pick(dims.len()));
        let array = self.expr(c, elem, dims, depth);
        let mut parts = Vec::new();
        for _ in 0..1 + self.pick(2) {
            parts.push(self.generator(c, elem, frame, cell, (true, depth)));
        }
        Some(Expr::With(parts, WithOp::Modarray(fixed(array, elem).into())))
    }

    pub(super) fn fold(&mut self, c: &Scope, elem: Elem, dims: &[Dim], depth: usize) -> Option<Expr> {
        if elem == Elem::Bool {
            return None;
        }
        let mut op = ["+", "max", "min", "*"][self.pick(4)].to_string();
        let step = format!("step_{}", elem.word());
        if dims.is_empty() && self.flip() && self.program.functions.iter().any(|f| f.name == step) {
            op = step;
        }
        let frame: Vec<Dim> = (0..1 + self.pick(2)).map(|_| self.size(c)).collect();
        let mut parts = vec![self.generator(c, elem, &frame, dims, (false, depth))];
        if self.pick(4) == 3 {
            parts.push(self.generator(c, elem, &frame, dims, (false, depth)));
        }
        let first = match dims {
            // A regrouped fold begins with the identity of its operator.
            [] => Expr::Num(i64::from(op == "*" || self.associative_identity(&op) == Some(1)), elem),
            dims => self.expr(c, elem, dims, depth.min(1)),
        };
        Some(Expr::With(parts, WithOp::Fold(op, first.into())))
    }

    pub(super) fn associative_identity(&self, function: &str) -> Option<i64> {
        self.program.functions.iter().find(|f| f.name == function)?.associative
    }
}
