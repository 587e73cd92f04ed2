//! Random statements, and random transformations of their loops.

use super::{Dim, SIZES, Stmt, Value, Written};
use crate::draw::Draw;

/// Tensors have at most this many dimensions.
const MAX_RANK: usize = 4;

/// Nests have at most this many loops: the oracle runs over all of them.
const MAX_DEPTH: usize = 5;

impl Written {
    /// A program of a few statements.
    pub fn generate(seed: u64) -> Written {
        let mut draw = Draw::new(seed);
        let mut program = Written::default();
        for at in 0..2 + draw.below(2) {
            let shape = (0..1 + draw.below(3)).map(|_| Dim { size: draw.below(SIZES.len()), less: 0 }).collect();
            program.tensors.push((format!("A{at}"), shape));
        }
        for number in 0..1 + draw.below(4) {
            for _ in 0..20 {
                if program.add(number, &mut draw) {
                    break;
                }
            }
        }
        program
    }

    /// Adds a statement, if this draw is one.
    fn add(&mut self, number: usize, draw: &mut Draw) -> bool {
        let (Some((a, a_shape)), Some((b, b_shape))) =
            (draw.pick(&self.tensors).cloned(), draw.pick(&self.tensors).cloned())
        else {
            return false;
        };
        let id = format!("T{number}");
        if a_shape.is_empty() || b_shape.is_empty() {
            return false;
        }
        match draw.below(8) {
            0 => self.contract(id, (a, a_shape), (b, b_shape), None, draw),
            1 => {
                let other = draw.pick(&self.tensors).cloned();
                self.contract(id, (a, a_shape), (b, b_shape), other, draw)
            }
            2 => self.entrywise(id, (a, a_shape), (b, b_shape), draw),
            3 => self.transpose(id, (a, a_shape), draw),
            4 => self.outerproduct(id, (a, a_shape), (b, b_shape)),
            5 => self.operation(id, (a, a_shape), (b, b_shape), draw),
            6 => self.accumulation(id, (a, a_shape), (b, b_shape), draw),
            _ => self.stencil(id, (a, a_shape), draw),
        }
    }

    /// Puts a statement at the end. It writes a tensor of its own, or one that is there.
    fn push(&mut self, id: String, expr: &str, stmt: Stmt, draw: Option<&mut Draw>) -> bool {
        let shape: Vec<Dim> = stmt.out.iter().map(|iterator| stmt.ranges[*iterator]).collect();
        if shape.len() > MAX_RANK || stmt.ranges.len() > MAX_DEPTH {
            return false;
        }
        let same: Vec<String> =
            self.tensors.iter().filter(|(_, other)| *other == shape).map(|(name, _)| name.clone()).collect();
        let again = draw.and_then(|draw| if draw.chance(4) { draw.pick(&same).cloned() } else { None });
        let (target, text) = match again {
            Some(target) => (target.clone(), format!("{}{id} = @{target}: {expr}\n", stmt.text)),
            None => {
                // A fresh name has the shape that is inferred; that of a contraction is introduced.
                if self.stmts.len().is_multiple_of(2) && !expr.starts_with("contract(") {
                    self.late.insert(id.clone());
                }
                self.tensors.push((id.clone(), shape));
                (id.clone(), format!("{}{id} = {expr}\n", stmt.text))
            }
        };
        self.stmts.push(Stmt { id, target, text, ..stmt });
        true
    }

    /// `contract(a, b, [r, s])`; with a third tensor, that times or plus a virtual one.
    fn contract(
        &mut self,
        id: String,
        (a, a_shape): Tensor,
        (b, b_shape): Tensor,
        other: Option<Tensor>,
        draw: &mut Draw,
    ) -> bool {
        let (r, s) = (draw.below(a_shape.len()), draw.below(b_shape.len()));
        if a_shape[r] != b_shape[s] {
            return false;
        }
        let ranges: Vec<Dim> = a_shape.iter().chain(&b_shape).copied().collect();
        let left: Vec<usize> = (0..a_shape.len()).collect();
        let right: Vec<usize> = (0..b_shape.len()).map(|at| if at == s { r } else { a_shape.len() + at }).collect();
        // The second iterator of the pair is the first one; its place stays empty.
        let keep = |at: &usize| *at != a_shape.len() + s;
        let number = |at: usize| (0..at).filter(keep).count();
        let ranges_kept: Vec<Dim> = (0..ranges.len()).filter(keep).map(|at| ranges[at]).collect();
        let out: Vec<usize> = (0..ranges.len()).filter(keep).filter(|at| *at != r).map(number).collect();
        let product = Value::Op('*', element(&a, left.iter().map(|at| number(*at))).into(), {
            element(&b, right.iter().map(|at| number(*at))).into()
        });
        let sum = Value::Sum(vec![number(r)], product.into());
        let pair = format!("[{}, {}]", r + 1, s + 1);
        let Some((c, c_shape)) = other else {
            let stmt = plain(ranges_kept, out, sum, String::new());
            return self.push(id, &format!("contract({a}, {b}, {pair})"), stmt, Some(draw));
        };
        let shape: Vec<Dim> = out.iter().map(|at| ranges_kept[*at]).collect();
        if shape != c_shape {
            return false;
        }
        let virtual_text = format!("v{id} = vcontract({a}, {b}, {pair})\n");
        let (op, word) = [('*', "mul"), ('+', "add")][draw.below(2)];
        let value = Value::Op(op, sum.into(), element(&c, out.iter().copied()).into());
        let stmt = plain(ranges_kept, out, value, virtual_text);
        self.push(id.clone(), &format!("entrywise_{word}(v{id}, {c})"), stmt, Some(draw))
    }

    fn entrywise(&mut self, id: String, (a, a_shape): Tensor, (b, b_shape): Tensor, draw: &mut Draw) -> bool {
        if a_shape != b_shape {
            return false;
        }
        let (op, word) = [('+', "add"), ('-', "sub"), ('*', "mul")][draw.below(3)];
        let out: Vec<usize> = (0..a_shape.len()).collect();
        let both = [&a, &b].map(|name| Box::new(element(name, out.iter().copied())));
        let [x, y] = both;
        let stmt = plain(a_shape, out, Value::Op(op, x, y), String::new());
        self.push(id, &format!("entrywise_{word}({a}, {b})"), stmt, Some(draw))
    }

    fn transpose(&mut self, id: String, (a, a_shape): Tensor, draw: &mut Draw) -> bool {
        let (r, s) = (draw.below(a_shape.len()), draw.below(a_shape.len()));
        if r == s {
            return false;
        }
        let indices: Vec<usize> = (0..a_shape.len()).collect();
        let mut out = indices.clone();
        out.swap(r, s);
        let stmt = plain(a_shape, out, element(&a, indices.into_iter()), String::new());
        self.push(id, &format!("transpose({a}, [[{}, {}]])", r + 1, s + 1), stmt, Some(draw))
    }

    fn outerproduct(&mut self, id: String, (a, a_shape): Tensor, (b, b_shape): Tensor) -> bool {
        let first = a_shape.len();
        let ranges: Vec<Dim> = a_shape.into_iter().chain(b_shape).collect();
        let out: Vec<usize> = (0..ranges.len()).collect();
        let value = Value::Op('*', element(&a, 0..first).into(), element(&b, first..ranges.len()).into());
        let stmt = plain(ranges, out, value, String::new());
        self.push(id, &format!("outerproduct({a}, {b})"), stmt, None)
    }

    /// `op(a, b, [I, J] -> K)` with iterators that may be shared.
    fn operation(&mut self, id: String, a: Tensor, b: Tensor, draw: &mut Draw) -> bool {
        let (ranges, left, right) = shared(&a.1, &b.1, draw);
        let (op, word) = [('+', "add"), ('-', "sub"), ('*', "mul")][draw.below(3)];
        let out = draw.shuffled((0..ranges.len()).collect());
        let text = format!("{word}({}, {}, [{}, {}] -> {})", a.0, b.0, list(&left), list(&right), list(&out));
        let value = Value::Op(op, element(&a.0, left.into_iter()).into(), element(&b.0, right.into_iter()).into());
        self.push(id, &text, plain(ranges, out, value, String::new()), Some(draw))
    }

    /// A virtual product, added up into a tensor that begins with zeros, or with what is there.
    fn accumulation(&mut self, id: String, a: Tensor, b: Tensor, draw: &mut Draw) -> bool {
        let (ranges, left, right) = shared(&a.1, &b.1, draw);
        let all: Vec<usize> = draw.shuffled((0..ranges.len()).collect());
        let out: Vec<usize> = all[..draw.below(all.len() + 1)].to_vec();
        let shape: Vec<Dim> = out.iter().map(|at| ranges[*at]).collect();
        if out.is_empty() || out.len() > MAX_RANK || ranges.len() > MAX_DEPTH {
            return false;
        }
        let mut text = format!("v{id} = vmul({}, {}, [{}, {}])\n", a.0, b.0, list(&left), list(&right));
        let same = self.tensors.iter().filter(|(_, other)| *other == shape);
        let same: Vec<String> =
            same.map(|(name, _)| name.clone()).filter(|name| *name != a.0 && *name != b.0).collect();
        let old = if draw.chance(2) { draw.pick(&same).cloned() } else { None };
        let target = old.unwrap_or_else(|| {
            let target = format!("S{id}");
            let sizes: Vec<String> = shape.iter().map(|dim| super::size(*dim)).collect();
            text += &format!("{target} = tensor([{}])\ninit({target}, 0)\n", sizes.join(", "));
            target
        });
        let fresh = !self.tensors.iter().any(|(name, _)| *name == target);
        text += &format!("{id} = @{target}: add({target}, v{id}, [{}, ] -> {})\n", list(&out), list(&out));
        let product = Value::Op('*', element(&a.0, left.into_iter()).into(), element(&b.0, right.into_iter()).into());
        if fresh {
            // It is introduced in the statement's own text, and begins with zeros.
            let summed = (0..ranges.len()).filter(|at| !out.contains(at)).collect();
            let stmt = Stmt { text, ..plain(ranges, out, Value::Sum(summed, product.into()), String::new()) };
            self.tensors.push((target.clone(), shape));
            self.late.insert(target.clone());
            self.stmts.push(Stmt { id, target, ..stmt });
        } else {
            let stmt = plain(ranges, out, product, text);
            self.stmts.push(Stmt { id, target, adds: true, ..stmt });
        }
        true
    }

    /// `a[.., i+1, ..] - a[.., i, ..]`, which is smaller by one.
    fn stencil(&mut self, id: String, (a, a_shape): Tensor, draw: &mut Draw) -> bool {
        let along = draw.below(a_shape.len());
        if a_shape[along].less > 1 {
            return false;
        }
        let mut ranges = a_shape;
        ranges[along].less += 1;
        let out: Vec<usize> = (0..ranges.len()).collect();
        let name = |at: usize, more: bool| if more && at == along { format!("i{at}+1") } else { format!("i{at}") };
        let text = |more: bool| out.iter().map(|at| name(*at, more)).collect::<Vec<_>>().join(", ");
        let indices = |more: usize| out.iter().map(|at| (*at, if *at == along { more } else { 0 })).collect();
        let value =
            Value::Op('-', Value::Element(a.clone(), indices(1)).into(), Value::Element(a.clone(), indices(0)).into());
        let expr = format!("sub({a}, {a}, [[{}], [{}]] -> [{}])", text(true), text(false), text(false));
        self.push(id, &expr, plain(ranges, out, value, String::new()), None)
    }
}

type Tensor = (String, Vec<Dim>);

fn plain(ranges: Vec<Dim>, out: Vec<usize>, value: Value, text: String) -> Stmt {
    Stmt { id: String::new(), target: String::new(), out, ranges, adds: false, value, text }
}

fn element(name: &str, iterators: impl Iterator<Item = usize>) -> Value {
    Value::Element(name.into(), iterators.map(|iterator| (iterator, 0)).collect())
}

fn list(iterators: &[usize]) -> String {
    format!("[{}]", iterators.iter().map(|at| format!("i{at}")).collect::<Vec<_>>().join(", "))
}

/// Iterators for two tensors: those of the second may be some of the first.
fn shared(a: &[Dim], b: &[Dim], draw: &mut Draw) -> (Vec<Dim>, Vec<usize>, Vec<usize>) {
    let mut ranges = a.to_vec();
    let left: Vec<usize> = (0..a.len()).collect();
    let mut right = Vec::new();
    for dim in b {
        let same: Vec<usize> = (0..a.len()).filter(|at| ranges[*at] == *dim && !right.contains(at)).collect();
        match draw.pick(&same).filter(|_| !draw.clone().chance(3)) {
            Some(at) => right.push(*at),
            None => {
                right.push(ranges.len());
                ranges.push(*dim);
            }
        }
    }
    (ranges, left, right)
}

/// Transformations of a statement's nest `L`, one of the other. Whether each fits is not known here.
pub fn transformations(stmt: &Stmt, seed: u64) -> Vec<String> {
    let mut draw = Draw::new(seed);
    let mut depth = stmt.ranges.len();
    let mut found = Vec::new();
    for _ in 0..draw.below(5) {
        let (r, s) = (1 + draw.below(depth), 1 + draw.below(depth));
        let factor = [2, 3, 4][draw.below(3)];
        found.push(match draw.below(9) {
            0 => {
                depth += 1;
                format!("stripmine(L, {r}, {factor})")
            }
            1 | 2 => format!("interchange(L, {}, {})", r.min(s), r.max(s)),
            3 => format!("parallelize(L, {r})"),
            4 => format!("vectorize(L, {depth}, 4)"),
            5 => format!("unroll(L, {r}, {factor})"),
            6 => {
                depth *= 2;
                format!("tile(L, {factor})")
            }
            7 => format!("unroll_and_jam(L, {r}, {factor})"),
            _ => format!("skew(L, {}, {}, 1)", r.min(s), r.max(s)),
        });
    }
    found
}
