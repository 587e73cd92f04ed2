//! Well-typed programs from bytes.
//!
//! Expressions are made from the outside in: for a wanted shape, an operation that can have it, then parts of the shapes
//! that the operation needs. All languages come from the one generator; which one it is decides what is drawn. Three
//! measures keep a program small: fuel bounds the number of operations of a statement, [`STEPS`] the number of elements
//! that its evaluation visits, and [`EXACT`](crate::EXACT) the magnitude of its values.

use std::collections::HashSet;

use arbitrary::{Result, Unstructured};
use certen_core::ReduceOp;
use certen_core::domain::splitmix;
use certen_dialects::algebra::{Arith, Notation};

use crate::EXACT;
use crate::sample::{Declared, Expr, Pair, Sample, Size, Symbol};

/// How many elements the evaluation of one statement may visit.
const STEPS: i64 = 4_000;

/// The same with padding, which only the model language has.
const PADDED_STEPS: i64 = 32_000;

/// The vector length that the padding is counted for.
const VECTOR: i64 = 8;

/// The largest rank of an intermediate tensor.
const MAX_RANK: usize = 6;

/// The largest rank of an allocation.
const MAX_DECLARED_RANK: usize = 4;

/// How many tensors are allocated before expressions make do with what there is.
const TENSORS: usize = 6;

const LITERALS: [i64; 5] = [2, 3, 1, 5, 7];

/// Names of tensors: plain ones, ones that later stages would like to use themselves, and words of other languages.
pub(crate) const TENSOR_NAMES: [&str; 30] = [
    "A", "B", "C", "x", "y", "u", "v", "A_1", "A_2", "t1", "t2", "i1", "k1", "acc", "sum", "gen", "let", "A_out",
    "input", "output", "mode", "core", "int", "double", "restrict", "main", "buffers", "malloc", "in", "index",
];

/// Names of sizes, likewise.
pub(crate) const SIZE_NAMES: [&str; 14] =
    ["n", "m", "k", "l", "h", "i2", "k2", "B_1", "t3", "sizes", "size_t", "for", "then", "NULL"];

impl Sample {
    /// A well-typed program; never fails, whatever the bytes.
    pub fn generate(bytes: &[u8]) -> Sample {
        Sample::from_choices(&mut Unstructured::new(bytes))
    }

    /// As [`Sample::generate`], leaving the bytes that it does not need.
    pub fn from_choices(choices: &mut Unstructured<'_>) -> Sample {
        let modes = [Notation::Teil, Notation::Model, Notation::Teil, Notation::CoreTeil, Notation::Model];
        let mode = choices.choose(&modes).copied().unwrap_or_default();
        Sample::in_mode(mode, choices)
    }

    /// As [`Sample::from_choices`], in the given language.
    pub fn in_mode(mode: Notation, choices: &mut Unstructured<'_>) -> Sample {
        Generator::of_program(mode, choices).sample
    }
}

impl<'a, 'b> Generator<'a, 'b> {
    /// A generator that has just made a program.
    pub(crate) fn of_program(mode: Notation, choices: &'a mut Unstructured<'b>) -> Self {
        let sample = Sample {
            mode,
            symbols: Vec::new(),
            tensors: Vec::new(),
            wheres: Vec::new(),
            wheres_at: 0,
            stmts: Vec::new(),
            seed: 0,
        };
        let mut generator = Generator { choices, sample, pool: Vec::new(), tensor_names: TENSOR_NAMES.to_vec() };
        // Choices fail only where there is nothing to choose from, which does not happen.
        generator.program().expect("something to choose from");
        generator
    }
}

/// True in `times` of `of` cases; false where the bytes have ended.
pub(crate) fn chance(choices: &mut Unstructured<'_>, times: u8, of: u8) -> Result<bool> {
    Ok(choices.int_in_range(0..=of - 1)? >= of - times)
}

/// A generator in the middle of a program. Mistakes use it to extend a program with more well-typed parts.
pub(crate) struct Generator<'a, 'b> {
    pub choices: &'a mut Unstructured<'b>,
    pub sample: Sample,
    /// The sizes that dimensions have.
    pub pool: Vec<Size>,
    pub tensor_names: Vec<&'static str>,
}

/// The operations with which an expression of a wanted shape can begin.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Leaf,
    Elem(Arith),
    ScalarMul,
    ScalarDiv,
    Prod,
    Red(usize, Size),
    Transp,
    Diag(usize, usize),
    Contr(Size),
    Expa,
    Proj(usize, Size),
    Scale,
    Power,
}

impl Generator<'_, '_> {
    fn program(&mut self) -> Result<()> {
        self.sample.seed = splitmix(self.choices.arbitrary()?);
        self.sizes()?;
        let most = if self.is_model() { 12 } else { 6 };
        for _ in 0..self.choices.int_in_range(1..=most)? {
            self.stmt()?;
        }
        self.declare_symbols();
        if chance(self.choices, 2, 5)? {
            self.markers()?;
        }
        self.sample.wheres_at = self.choices.int_in_range(0..=self.sample.tensors.len())?;
        Ok(())
    }

    /// Symbols with numbers and conditions that hold of them, and the pool of sizes; not all have the same number.
    fn sizes(&mut self) -> Result<()> {
        let mut names = SIZE_NAMES.to_vec();
        for at in 0..self.choices.int_in_range(0..=3)? {
            let name = names.remove(self.choices.choose_index(names.len())?);
            self.symbol(at, name)?;
            let factor = *self.choices.choose(&[1, 1, 1, 2])?;
            let plus = *self.choices.choose(&[0, 0, 0, 1])?;
            self.pool.push(Size::symbol(at, 0));
            self.pool.push(Size { symbol: Some(at), factor, plus });
        }
        for _ in 0..self.choices.int_in_range(1..=3)? {
            self.pool.push(Size::literal(*self.choices.choose(&LITERALS)?));
        }
        let first = self.sample.value(self.pool[0]);
        if self.pool.iter().all(|size| self.sample.value(*size) == first) {
            self.pool.push(Size::literal(first % 5 + 1));
        }
        Ok(())
    }

    fn symbol(&mut self, at: usize, name: &'static str) -> Result<()> {
        let mut symbol =
            Symbol { name, value: *self.choices.choose(&[3, 2, 4, 5, 1])?, low: 1, equal: None, at_most: None };
        let earlier = match at {
            0 => None,
            _ => Some(self.choices.choose_index(at)?),
        };
        let clause = match (self.choices.int_in_range(0..=7)?, earlier) {
            (0 | 1, _) => None,
            (2, _) => {
                symbol.low = self.choices.int_in_range(1..=symbol.value)?;
                Some(format!("{name} >= {}", symbol.low))
            }
            (3, _) => {
                symbol.low = self.choices.int_in_range(1..=symbol.value)?;
                Some(format!("{} < {name} < {}", symbol.low - 1, symbol.value + 3))
            }
            (4, _) => {
                symbol.equal = Some(Size::literal(symbol.value));
                Some(format!("{name} == {}", symbol.value))
            }
            (_, None) => None,
            (kind, Some(other)) => {
                let (above, value) = (self.sample.symbols[other].name, self.sample.symbols[other].value);
                match kind {
                    // At most 1 would be 1: a size that equals others without a clause that says so.
                    5 if self.sample.symbols[other].equal.is_some() => None,
                    5 => {
                        symbol.value = self.choices.int_in_range(1..=value)?;
                        symbol.at_most = Some(other);
                        Some(format!("{above} >= {name}"))
                    }
                    6 => {
                        symbol.value = value;
                        symbol.equal = Some(Size::symbol(other, 0));
                        Some(format!("{above} = {name}"))
                    }
                    _ => {
                        symbol.value = value + 1;
                        symbol.equal = Some(Size::symbol(other, 1));
                        Some(format!("{name} == {above} + 1"))
                    }
                }
            }
        };
        self.sample.wheres.extend(clause);
        self.sample.symbols.push(symbol);
        Ok(())
    }

    fn is_model(&self) -> bool {
        self.sample.mode == Notation::Model
    }

    /// An assignment to a tensor, new or old. One whose values could become too large is replaced by a simpler one; if
    /// there is none, not even a name or a product of names, there is no assignment. The first one always is.
    fn stmt(&mut self) -> Result<()> {
        let old = !self.sample.tensors.is_empty() && chance(self.choices, 2, 5)?;
        let target = if old || self.sample.tensors.len() >= TENSORS {
            self.choices.choose_index(self.sample.tensors.len())?
        } else {
            let shape = self.shape()?;
            self.declare(shape)?
        };
        let shape = self.sample.tensors[target].shape.clone();
        let mut fuel = self.choices.int_in_range(1..=12)?;
        loop {
            let all = if self.is_model() { PADDED_STEPS } else { STEPS };
            let steps = all / shape.iter().map(|size| self.visits(*size)).product::<i64>();
            let value = self.expr(&shape, fuel, steps)?;
            self.sample.stmts.push((target, value));
            if self.sample.magnitude() <= EXACT {
                return Ok(());
            }
            self.sample.stmts.pop();
            if fuel == 0 {
                return Ok(());
            }
            fuel /= 2;
        }
    }

    pub(crate) fn shape(&mut self) -> Result<Vec<Size>> {
        let rank = *self.choices.choose(&[1, 2, 2, 3, 0, 4])?;
        let mut shape = Vec::new();
        for _ in 0..rank {
            let size = self.some_size()?;
            if self.volume(&shape) * self.sample.value(size) <= STEPS / 8 {
                shape.push(size);
            }
        }
        Ok(shape)
    }

    pub(crate) fn some_size(&mut self) -> Result<Size> {
        self.choices.choose(&self.pool).copied()
    }

    /// How many elements evaluation visits along a dimension.
    fn visits(&self, size: Size) -> i64 {
        let size = self.sample.value(size);
        if self.is_model() { (size + VECTOR - 1) / VECTOR * VECTOR } else { size }
    }

    fn volume(&self, shape: &[Size]) -> i64 {
        shape.iter().map(|size| self.sample.value(*size)).product()
    }

    pub(crate) fn declare(&mut self, shape: Vec<Size>) -> Result<usize> {
        let name = self.tensor_names.remove(self.choices.choose_index(self.tensor_names.len())?);
        let shape = shape.into_iter().map(|size| self.alias(size)).collect::<Result<_>>()?;
        self.sample.tensors.push(Declared { name, shape, input: false, output: false });
        Ok(self.sample.tensors.len() - 1)
    }

    /// A size that is equal, perhaps by a `where` clause.
    fn alias(&mut self, size: Size) -> Result<Size> {
        let normal = self.sample.normal(size);
        let mut equal = vec![size, normal];
        for at in 0..self.sample.symbols.len() {
            let symbol = self.sample.normal(Size::symbol(at, 0));
            let apart = normal.plus - symbol.plus;
            if (symbol.symbol, symbol.factor) == (normal.symbol, normal.factor) && apart.abs() <= 1 {
                equal.push(Size::symbol(at, apart));
            }
        }
        self.choices.choose(&equal).copied()
    }

    /// An expression of a shape that visits at most this many elements for each of its own.
    pub(crate) fn expr(&mut self, shape: &[Size], fuel: u32, steps: i64) -> Result<Expr> {
        let Some(fuel) = fuel.checked_sub(1) else { return self.leaf(shape) };
        let operation = self.operation(shape, steps)?;
        let (rank, core) = (shape.len(), self.sample.mode == Notation::CoreTeil);
        let with = |at: usize, size: Size| [&shape[..at], &[size], &shape[at..]].concat();
        Ok(match operation {
            Operation::Leaf => self.leaf(shape)?,
            Operation::Elem(op) => {
                let (a, b) = self.both(shape, shape, fuel, steps)?;
                Expr::Elem(op, a, b)
            }
            Operation::ScalarMul => {
                let (a, b) = self.both(&[], shape, fuel, steps)?;
                Expr::Elem(Arith::Mul, a, b)
            }
            Operation::ScalarDiv => {
                let (a, b) = self.both(shape, &[], fuel, steps)?;
                Expr::Elem(Arith::Div, a, b)
            }
            Operation::Prod => {
                let (left, right) = shape.split_at(self.choices.int_in_range(0..=rank)?);
                let (a, b) = self.both(left, right, fuel, steps)?;
                Expr::Prod(a, b)
            }
            Operation::Red(at, size) => {
                let op = *self.choices.choose(&[ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Min, ReduceOp::Max])?;
                let part = self.operand(&with(at, size), fuel, steps / self.sample.value(size))?;
                Expr::Red(op, at + 1, part)
            }
            Operation::Transp => {
                let pairs = self.exchanges(rank)?;
                let mut before = shape.to_vec();
                pairs.iter().for_each(|(i0, i1)| before.swap(i0 - 1, i1 - 1));
                Expr::Transp(pairs, self.operand(&before, fuel, steps)?)
            }
            Operation::Diag(first, second) => {
                let copy = self.alias(shape[first])?;
                let (i0, i1) = self.either_order(first, second)?;
                Expr::Diag(i0, i1, self.operand(&with(second, copy), fuel, steps)?)
            }
            Operation::Contr(size) => {
                let (pairs, before, visits) = self.contractions(shape, size, steps)?;
                Expr::Contr(pairs, self.operand(&before, fuel, steps / visits)?)
            }
            Operation::Expa => {
                let at = if core { 0 } else { self.choices.choose_index(rank)? };
                let size = self.alias(shape[at])?;
                let before = [&shape[..at], &shape[at + 1..]].concat();
                Expr::Expa(at + 1, size, self.operand(&before, fuel, steps)?)
            }
            Operation::Scale => {
                let factor = self.some_size()?;
                let factor = self.alias(factor)?;
                Expr::Scale(factor, self.operand(shape, fuel, steps)?)
            }
            Operation::Power => {
                let exponent = self.some_size()?;
                let exponent = self.alias(exponent)?;
                Expr::Power(exponent, Box::new(Expr::Paren(Box::new(self.expr(shape, fuel, steps)?))))
            }
            Operation::Proj(at, size) => {
                let slice = self.slice(size)?;
                Expr::Proj(at + 1, slice, self.operand(&with(at, size), fuel, steps)?)
            }
        })
    }

    /// Pairs of different dimensions to exchange: one, or in the model language perhaps more.
    fn exchanges(&mut self, rank: usize) -> Result<Vec<Pair>> {
        if self.sample.mode == Notation::CoreTeil {
            let first = self.choices.int_in_range(1..=rank - 1)?;
            return Ok(vec![(first, first + 1)]);
        }
        let mut free: Vec<usize> = (0..rank).collect();
        let mut pairs = Vec::new();
        while free.len() >= 2 && (pairs.is_empty() || self.is_model() && chance(self.choices, 1, 2)?) {
            let second = free.remove(self.choices.int_in_range(1..=free.len() - 1)?);
            let first = free.remove(self.choices.choose_index(free.iter().filter(|at| **at < second).count())?);
            pairs.push(self.either_order(first, second)?);
        }
        Ok(pairs)
    }

    /// Pairs of dimensions whose contraction leaves a shape: one of a size that fits, or in the model language perhaps
    /// more. Also the shape before, and how many elements the sums visit for each that is left.
    fn contractions(&mut self, shape: &[Size], mut size: Size, steps: i64) -> Result<(Vec<Pair>, Vec<Size>, i64)> {
        let mut before: Vec<(Size, Option<usize>)> = shape.iter().map(|size| (*size, None)).collect();
        let (mut count, mut visits) = (0, 1);
        loop {
            for copy in [size, self.alias(size)?] {
                let at = self.choices.int_in_range(0..=before.len())?;
                before.insert(at, (copy, Some(count)));
            }
            (count, visits) = (count + 1, visits * self.visits(size));
            size = self.some_size()?;
            let sizes: Vec<Size> = before.iter().map(|(size, _)| *size).collect();
            let fits = self.fits(&sizes, &[size, size]) && visits * self.visits(size) <= steps;
            if !self.is_model() || !fits || !chance(self.choices, 1, 3)? {
                let positions = |pair: usize| (0..).zip(&before).filter(move |(_, (_, of))| *of == Some(pair));
                let pairs = (0..count).map(|pair| positions(pair).map(|(at, _)| at).collect::<Vec<usize>>());
                let pairs = pairs.collect::<Vec<_>>();
                let pairs = pairs.into_iter().map(|pair| self.either_order(pair[0], pair[1])).collect::<Result<_>>()?;
                return Ok((pairs, sizes, visits));
            }
        }
    }

    /// Whether a tensor with more dimensions is not too large.
    fn fits(&self, shape: &[Size], more: &[Size]) -> bool {
        shape.len() + more.len() <= MAX_RANK && self.volume(shape) * self.volume(more) <= STEPS
    }

    /// An operation that an expression of this shape can begin with, and that keeps within the limits.
    fn operation(&mut self, shape: &[Size], steps: i64) -> Result<Operation> {
        let (rank, core, model) = (shape.len(), self.sample.mode == Notation::CoreTeil, self.is_model());
        let mut possible = vec![Operation::Leaf];
        if steps >= 2 {
            possible.extend([Operation::Elem(Arith::Add), Operation::Elem(Arith::Mul), Operation::ScalarMul]);
            if model {
                possible.extend([Operation::Elem(Arith::Sub), Operation::Elem(Arith::Div), Operation::ScalarDiv]);
            }
        }
        possible.push(Operation::Prod);
        let size = self.some_size()?;
        let affordable = self.visits(size) <= steps;
        if !core && self.fits(shape, &[size, size]) && affordable {
            possible.extend([Operation::Contr(size); 2]);
        }
        if rank >= 2 {
            possible.push(Operation::Transp);
        }
        if model {
            return self.choices.choose(&possible).copied();
        }
        let at = self.choices.int_in_range(0..=if core { 0 } else { rank })?;
        if self.fits(shape, &[size]) {
            possible.extend([Operation::Proj(at, size)]);
            if affordable {
                possible.extend([Operation::Red(at, size); 3]);
            }
        }
        if rank >= 1 {
            possible.push(Operation::Expa);
            let first = at.min(rank - 1);
            if self.fits(shape, &[shape[first]]) {
                let second = if core { 1 } else { self.choices.int_in_range(first + 1..=rank)? };
                possible.push(Operation::Diag(first, second));
            }
        }
        possible.extend([Operation::Scale, Operation::Power]);
        self.choices.choose(&possible).copied()
    }

    fn both(&mut self, left: &[Size], right: &[Size], fuel: u32, steps: i64) -> Result<(Box<Expr>, Box<Expr>)> {
        let first = self.choices.int_in_range(0..=fuel)?;
        let left = self.operand(left, first, steps / 2)?;
        let right = *self.operand(right, fuel - first, steps / 2)?;
        Ok((left, self.right(right)))
    }

    /// The right operand of an operation: operators of the model language associate to the left.
    fn right(&self, expr: Expr) -> Box<Expr> {
        let closed = !self.is_model() || matches!(expr, Expr::Var(_) | Expr::Paren(_));
        Box::new(if closed { expr } else { Expr::Paren(Box::new(expr)) })
    }

    /// An expression, in parentheses or not: the grammar does not need them.
    fn operand(&mut self, shape: &[Size], fuel: u32, steps: i64) -> Result<Box<Expr>> {
        let expr = self.expr(shape, fuel, steps)?;
        let likely = u8::from(!matches!(expr, Expr::Var(_))) * 4 + 1;
        Ok(Box::new(if chance(self.choices, likely, 8)? { Expr::Paren(Box::new(expr)) } else { expr }))
    }

    /// Two positions, from 1, in either order where the language lets one write them.
    fn either_order(&mut self, first: usize, second: usize) -> Result<(usize, usize)> {
        let exchanged = self.sample.mode != Notation::CoreTeil && chance(self.choices, 1, 3)?;
        Ok(if exchanged { (second + 1, first + 1) } else { (first + 1, second + 1) })
    }

    /// The index of a slice that every dimension of this size has.
    fn slice(&mut self, size: Size) -> Result<Size> {
        let low = self.sample.low(size);
        let mut possible = vec![Size::literal(self.choices.int_in_range(1..=low.max(1))?), self.alias(size)?];
        if low >= 2 {
            possible.push(Size { plus: size.plus - 1, ..size });
        }
        if let Size { symbol: Some(symbol), factor: 1, plus: 0 } = size {
            let below = (0..self.sample.symbols.len()).filter(|at| self.sample.symbols[*at].at_most == Some(symbol));
            possible.extend(below.map(|at| Size::symbol(at, 0)));
        }
        self.choices.choose(&possible).copied()
    }

    /// A tensor of the shape: an old one, a new one, or made from what there is.
    fn leaf(&mut self, shape: &[Size]) -> Result<Expr> {
        let tensors = &self.sample.tensors;
        let fitting: Vec<usize> =
            (0..tensors.len()).filter(|at| self.sample.same(&tensors[*at].shape, shape)).collect();
        // The model language makes do with vectors and scalars, which there may be more of.
        let room = tensors.len() < TENSORS && shape.len() <= MAX_DECLARED_RANK || self.is_model() && shape.len() <= 1;
        let new = room && (fitting.is_empty() || tensors.len() < TENSORS && chance(self.choices, 1, 3)?);
        if !new && !fitting.is_empty() {
            return self.choices.choose(&fitting).copied().map(Expr::Var);
        }
        if new {
            return self.declare(shape.to_vec()).map(Expr::Var);
        }
        if shape.len() > MAX_DECLARED_RANK {
            let (left, right) = shape.split_at(MAX_DECLARED_RANK / 2);
            let (left, right) = (self.leaf(left)?, self.leaf(right)?);
            return Ok(Expr::Prod(Box::new(left), self.right(right)));
        }
        if self.is_model() {
            let mut expr = self.leaf(&shape[..1])?;
            for size in &shape[1..] {
                expr = Expr::Prod(Box::new(expr), Box::new(self.leaf(&[*size])?));
            }
            return Ok(expr);
        }
        // An element of some tensor, repeated.
        let some = self.choices.choose_index(self.sample.tensors.len())?;
        let mut expr = Expr::Var(some);
        for size in self.sample.tensors[some].shape.clone() {
            expr = Expr::Proj(1, self.slice(size)?, Box::new(expr));
        }
        for size in shape.iter().rev() {
            expr = Expr::Expa(1, self.alias(*size)?, Box::new(Expr::Paren(Box::new(expr))));
        }
        Ok(expr)
    }

    /// Sizes are declared by standing in an allocation, so symbols that stand in none get one.
    fn declare_symbols(&mut self) {
        let declared: HashSet<usize> =
            self.sample.tensors.iter().flat_map(|tensor| &tensor.shape).filter_map(|size| size.symbol).collect();
        let shape: Vec<Size> =
            (0..self.sample.symbols.len()).filter(|at| !declared.contains(at)).map(|at| Size::symbol(at, 0)).collect();
        if !shape.is_empty() {
            let name = self.tensor_names.remove(0);
            self.sample.tensors.push(Declared { name, shape, input: false, output: false });
        }
    }

    /// Marks an output or more, and as inputs what they need and perhaps others. Tensors that only dead statements read
    /// may stay without a value.
    fn markers(&mut self) -> Result<()> {
        let last = self.sample.stmts.len() - 1;
        let sure = self.sample.stmts[self.choices.int_in_range(0..=last)?].0;
        let mut needed = HashSet::new();
        for at in 0..self.sample.tensors.len() {
            if at == sure || chance(self.choices, 1, 4)? {
                self.sample.tensors[at].output = true;
                needed.insert(at);
            }
        }
        for (target, value) in self.sample.stmts.iter().rev() {
            if needed.remove(target) {
                needed.extend(value.reads());
            }
        }
        for at in 0..self.sample.tensors.len() {
            self.sample.tensors[at].input = needed.contains(&at) || chance(self.choices, 1, 5)?;
        }
        Ok(())
    }
}
