//! Forms of expressions: accesses, conditions, arithmetic, structure, reductions.

use super::*;

impl Generator<'_> {
    /// Something without parts, or nearly.
    pub(super) fn leaf(&mut self, c: &Scope, elem: Elem, dims: &[Dim]) -> Expr {
        if elem == Elem::Bool {
            let a = self.leaf(c, Elem::I64, dims);
            return binary("<", Expr::Cast(Elem::I64, a.into()), Expr::Num(1, Elem::I64));
        }
        let same: Vec<&Var> = c.vars.iter().filter(|var| var.elem == elem && var.dims == dims).collect();
        if !same.is_empty() && self.pick(4) != 3 {
            return var(&same[same.len() - 1 - self.pick(same.len())].name);
        }
        if self.flip()
            && let Some(access) = self.access(c, elem, dims)
        {
            return access;
        }
        let small = self.pick(5) as i64;
        let number = Expr::Num(if small == 4 { -1 } else { small }, elem);
        if dims.is_empty() {
            if self.flip() && !c.indices.is_empty() {
                let i = name(&c.indices[self.pick(c.indices.len())].name);
                return Expr::Index(i.shifted(self.pick(3) as i64 - 1), elem);
            }
            return number;
        }
        if self.pick(4) == 0 {
            return Expr::Call("full".into(), vec![Arg::Vec(shape(dims)), data(number)]);
        }
        // All elements differ, so that it is seen where they are taken from.
        let names: Vec<String> = dims.iter().map(|_| self.fresh("j")).collect();
        let step = |sum: Ix, i: &String| Ix::Add(Ix::Mul(lit(3).into(), sum.into()).into(), name(i).into());
        let number = names.iter().skip(1).fold(name(&names[0]).shifted(small - 2), step);
        let index = |(i, dim): (&String, &Dim)| Slot::Index(i.clone(), (lit(0), Written::No), (dim.ix(), Written::Yes));
        let slots = names.iter().zip(dims).map(index).collect();
        let body = Expr::Index(number, elem);
        Expr::Comprehension(vec![Part { slots, body, joint: self.flip(), cell: IxVec::List(Vec::new()) }])
    }

    /// A selection from a tensor in scope.
    pub(super) fn access(&mut self, c: &Scope, elem: Elem, dims: &[Dim]) -> Option<Expr> {
        // By a whole index vector.
        if !c.vectors.is_empty() && self.flip() {
            let (vector, uppers) = c.vectors[self.pick(c.vectors.len())].clone();
            let all = [uppers.as_slice(), dims].concat();
            let fits = |tensor: &&Var| {
                tensor.elem == elem
                    && tensor.dims.len() == all.len()
                    && tensor.dims[uppers.len()..] == *dims
                    && uppers.iter().zip(&tensor.dims).all(|(upper, size)| c.at_most(upper, size))
            };
            if let Some(tensor) = c.vars.iter().rev().find(fits) {
                return Some(Expr::Select(var(&tensor.name).into(), vec![Sel::Vec(IxVec::Name(vector))]));
            }
        }
        let fits = |tensor: &&Var| tensor.elem == elem && tensor.dims.len() > dims.len() && tensor.dims.ends_with(dims);
        let all: Vec<Var> = c.vars.iter().filter(fits).cloned().collect();
        if all.is_empty() {
            return None;
        }
        let tensor = &all[self.pick(all.len())];
        let mut at = Vec::new();
        for dim in &tensor.dims[..tensor.dims.len() - dims.len()] {
            at.push(self.index(c, dim)?);
        }
        let sels = match self.pick(4) {
            0 => vec![Sel::Vec(IxVec::List(at))],
            1 if at.len() > 1 => {
                let last = at.split_off(at.len() - 1);
                [vec![Sel::Vec(IxVec::List(at))], last.into_iter().map(Sel::At).collect()].concat()
            }
            _ => at.into_iter().map(Sel::At).collect(),
        };
        Some(Expr::Select(var(&tensor.name).into(), sels))
    }

    /// Truth values.
    pub(super) fn truth(&mut self, c: &Scope, dims: &[Dim], depth: usize) -> Expr {
        let elem = if self.flip() { Elem::F64 } else { Elem::I64 };
        match self.pick(6) {
            4 => {
                let op = if self.flip() { "&&" } else { "||" };
                let (a, b) = (self.expr(c, Elem::Bool, dims, depth), self.expr(c, Elem::Bool, dims, depth));
                binary(op, a, b)
            }
            5 => Expr::Unary("!", self.expr(c, Elem::Bool, dims, depth).into()),
            _ => {
                let op = ["<", "<=", ">", ">=", "==", "!="][self.pick(6)];
                let a = self.expr(c, elem, dims, depth);
                let right: &[Dim] = if self.flip() { dims } else { &[] };
                let b = self.expr(c, elem, right, depth);
                // A comparison of indices is no data.
                binary(op, Expr::Cast(elem, a.into()), b)
            }
        }
    }

    /// Entrywise operations and choices.
    pub(super) fn simple(&mut self, c: &Scope, elem: Elem, dims: &[Dim], depth: usize) -> Option<Expr> {
        Some(match self.pick(12) {
            0..=3 => {
                let op = ["+", "-", "*", "min", "max", "+"][self.pick(6)];
                let (left, right): (&[Dim], &[Dim]) = match self.pick(4) {
                    0 => (dims, &[]),
                    1 => (&[], dims),
                    _ => (dims, dims),
                };
                let (a, b) = (self.expr(c, elem, left, depth), self.expr(c, elem, right, depth));
                binary(op, a, b)
            }
            4 => Expr::Unary(["-", "abs"][self.pick(2)], self.expr(c, elem, dims, depth).into()),
            5 if elem == Elem::I64 => {
                let op = ["mod", "floor_div"][self.pick(2)];
                binary(op, self.expr(c, elem, dims, depth), Expr::Num(2 + self.pick(2) as i64, elem))
            }
            5 => Expr::Unary(["floor", "round", "ceil"][self.pick(3)], self.expr(c, elem, dims, depth).into()),
            6 => {
                let cond = self.truth(c, dims, depth.saturating_sub(1));
                let (a, b) = (self.expr(c, elem, dims, depth), self.expr(c, elem, dims, depth));
                Expr::Choose(cond.into(), a.into(), b.into())
            }
            7 => {
                let cond = self.truth(c, &[], depth.saturating_sub(1));
                let (a, b) = (self.expr(c, elem, dims, depth), self.expr(c, elem, dims, depth));
                Expr::IfData(cond.into(), a.into(), b.into())
            }
            8 | 9 => {
                let (cond, inner) = self.condition(c);
                let (a, b) = (self.expr(&inner, elem, dims, depth), self.expr(c, elem, dims, depth));
                Expr::If(cond, a.into(), b.into())
            }
            10 => {
                // An access that a condition makes safe.
                let bound = c.indices.last()?.clone();
                let size = self.size(c);
                let value = self.expr(c, elem, &[std::slice::from_ref(&size), dims].concat(), depth.min(1));
                let tensor = self.fresh("t");
                let at = name(&bound.name).shifted(self.pick(7) as i64 - 3);
                let inside =
                    Cond::And(Cond::Cmp("<=", lit(0), at.clone()).into(), Cond::Cmp("<", at.clone(), size.ix()).into());
                let access = Expr::Select(var(&tensor).into(), vec![Sel::At(at)]);
                let result = if self.flip() {
                    Expr::Guard(inside, access.into())
                } else {
                    Expr::If(inside, access.into(), self.expr(c, elem, dims, depth.min(1)).into())
                };
                let lets = vec![Let { names: vec![tensor], ty: None, value: fixed(value, elem) }];
                Expr::Block(Block { lets, results: vec![result] }.into())
            }
            _ => match (elem, self.flip()) {
                (Elem::F64, false) => Expr::Cast(Elem::F64, self.expr(c, Elem::I64, dims, depth).into()),
                (_, _) => Expr::Cast(elem, self.expr(c, Elem::Bool, dims, depth).into()),
            },
        })
    }

    /// Comprehensions, with-loops, iterations, reductions, blocks, calls.
    pub(super) fn structure(&mut self, c: &Scope, elem: Elem, dims: &[Dim], depth: usize) -> Option<Expr> {
        match self.pick(12) {
            0..=3 => self.comprehension(c, elem, dims, depth),
            4 => self.genarray(c, elem, dims, depth),
            5 => self.modarray(c, elem, dims, depth),
            6 => self.fold(c, elem, dims, depth),
            7 => Some(self.iteration(c, &[(elem, dims.to_vec())], depth).0),
            8 => {
                let mut inner = c.clone();
                let mut lets = Vec::new();
                self.binding(&mut inner, &mut lets, depth);
                let result = self.expr(&inner, elem, dims, depth);
                Some(Expr::Block(Block { lets, results: vec![result] }.into()))
            }
            9 => self.reduction(c, elem, dims, depth),
            _ => self.call(c, elem, dims, depth),
        }
    }

    pub(super) fn reduction(&mut self, c: &Scope, elem: Elem, dims: &[Dim], depth: usize) -> Option<Expr> {
        let op = ["sum", "max", "min", "sum", "prod"][self.pick(5)];
        let mut all = dims.to_vec();
        let mut axes: Vec<i64> = Vec::new();
        for _ in 0..1 + self.pick(2) {
            let mut extra = self.size(c);
            if c.low(&extra) < 1 && (op == "max" || op == "min") {
                extra = extra.shifted(1);
            }
            let at = self.pick(all.len() + 1);
            all.insert(at, extra);
            axes.iter_mut().filter(|axis| **axis >= at as i64).for_each(|axis| *axis += 1);
            axes.push(at as i64);
        }
        if all.len() > MAX_RANK {
            return None;
        }
        axes.sort_unstable();
        let negative = self.pick(3) == 1;
        let rank = all.len() as i64;
        let shown = axes.iter().map(|axis| if negative { axis - rank } else { *axis }).collect();
        let axes = if dims.is_empty() && self.flip() { None } else { Some(shown) };
        // The reductions of index vectors are index-level functions over literals.
        let e = self.expr(c, elem, &all, depth);
        Some(Expr::Reduce(op, axes, fixed(e, elem).into()))
    }
}
