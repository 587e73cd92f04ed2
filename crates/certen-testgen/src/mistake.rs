//! Programs with exactly one mistake.
//!
//! A mistake is put at a random place of a well-typed program: an expression is replaced by one that violates a premise,
//! or a line is added. Whatever stands around an ill-typed expression has no type and gives no second error, so the
//! mistake is the only one to be reported.

use arbitrary::{Result, Unstructured};
use certen_core::{MAX_RANK, ReduceOp};
use certen_dialects::algebra::{MAX_NESTING, Notation, Premise};
use certen_syntax::Code;

use crate::generate::{Generator, chance};
use crate::sample::{Expr, Sample, Size, Symbol, UNKNOWN};

/// What is wrong with a program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mistake {
    /// A premise of a typing rule is violated.
    Premise(Premise),
    /// A size that stands in no allocation.
    UndeclaredSize,
    /// A name of both a tensor and a size.
    SizeAndTensor,
    /// Conditions that no sizes satisfy.
    Unsatisfiable,
    /// An output that depends on a tensor without a value.
    Uninitialised,
    /// An output that is never assigned.
    NeverAssigned,
    /// Too many dimensions.
    Rank,
    /// Too many reductions inside each other.
    Nesting,
    /// An allocation of too many bytes.
    Bytes,
    /// An allocation after a statement.
    LateAllocation,
    /// A character that no token has.
    Character,
    /// A number of more than 64 bits.
    Number,
    /// An operation without its operand.
    Operand,
    /// A size whose value has more than 64 bits.
    SizeOverflow,
}

/// A program with a mistake, and how it must be reported.
#[derive(Clone, Debug)]
pub struct Broken {
    /// The program.
    pub text: String,
    /// The only error's code.
    pub code: Code,
    /// The rule that it must name.
    pub rule: Option<String>,
}

impl Mistake {
    /// Every mistake that can be made in a language. In Core-TeIL positions are implied, so two of them cannot be equal
    /// and the one of `expa` always exists.
    pub fn all(mode: Notation) -> Vec<Mistake> {
        let implied = [Premise::TranspDistinct, Premise::DiagDistinct, Premise::ExpaPosition];
        let premises = Premise::of(mode).filter(|premise| mode == Notation::Teil || !implied.contains(premise));
        let others = [
            Mistake::UndeclaredSize,
            Mistake::SizeAndTensor,
            Mistake::Unsatisfiable,
            Mistake::Uninitialised,
            Mistake::NeverAssigned,
            Mistake::Rank,
            Mistake::Nesting,
            Mistake::Bytes,
            Mistake::LateAllocation,
            Mistake::Character,
            Mistake::Number,
            Mistake::Operand,
            Mistake::SizeOverflow,
        ];
        premises.map(Mistake::Premise).chain(others).collect()
    }

    /// The code of its error.
    pub fn code(self) -> Code {
        match self {
            Mistake::Premise(premise) => premise.code(),
            Mistake::UndeclaredSize => Code::E0201,
            Mistake::SizeAndTensor => Code::E0211,
            Mistake::Unsatisfiable => Code::E0210,
            Mistake::Uninitialised | Mistake::NeverAssigned => Code::E0212,
            Mistake::Rank => Code::E0213,
            Mistake::Nesting => Code::E0214,
            Mistake::Bytes => Code::E0215,
            Mistake::LateAllocation => Code::E0105,
            Mistake::Character => Code::E0101,
            Mistake::Number => Code::E0102,
            Mistake::Operand => Code::E0103,
            Mistake::SizeOverflow => Code::E0216,
        }
    }
}

impl Sample {
    /// A program with just this mistake, which [`Mistake::all`] has for this language.
    pub fn broken(mode: Notation, mistake: Mistake, choices: &mut Unstructured<'_>) -> Broken {
        let mut breaking = Breaking { generator: Generator::of_program(mode, choices), lines: Vec::new(), rule: None };
        breaking.make(mistake).expect("something to choose from");
        let Breaking { generator: Generator { choices, sample, .. }, lines, rule } = breaking;
        let mut text: Vec<String> = sample.text().lines().map(str::to_owned).collect();
        for line in lines {
            // Behind the allocations: what is allocated a second time was allocated before.
            let header = text.len() - sample.stmts.len();
            let at = match line {
                Line::Declaration(_) => header,
                Line::Statement(_) => text.len(),
                Line::Anywhere(_) => choices.int_in_range(header..=text.len()).unwrap_or(header),
            };
            let (Line::Declaration(line) | Line::Statement(line) | Line::Anywhere(line)) = line;
            text.insert(at, line);
        }
        Broken { text: text.join("\n") + "\n", code: mistake.code(), rule }
    }
}

/// A line to be added to the text.
enum Line {
    /// Among the allocations.
    Declaration(String),
    /// As the last one.
    Statement(String),
    /// Behind the allocations.
    Anywhere(String),
}

struct Breaking<'a, 'b> {
    generator: Generator<'a, 'b>,
    lines: Vec<Line>,
    rule: Option<String>,
}

impl Breaking<'_, '_> {
    fn make(&mut self, mistake: Mistake) -> Result<()> {
        let declare = |line: &str| vec![Line::Declaration(line.to_owned())];
        match mistake {
            Mistake::Premise(premise) => self.violate(premise)?,
            Mistake::UndeclaredSize if chance(self.generator.choices, 1, 2)? => {
                self.lines = declare(&format!("where {UNKNOWN} >= 1"));
            }
            Mistake::UndeclaredSize => {
                let symbol = Symbol { name: UNKNOWN, value: 1, low: 1, equal: None, at_most: None };
                self.generator.sample.symbols.push(symbol);
                let size = Size::symbol(self.generator.sample.symbols.len() - 1, 0);
                let shape = self.non_scalar()?;
                let part = self.operand(&shape)?;
                self.replace(Expr::Expa(1, size, part))?;
            }
            Mistake::SizeAndTensor => {
                let tensor = self.generator.choices.choose(&self.generator.sample.tensors)?.name;
                self.lines = declare(&format!("alloc {UNKNOWN} : [{tensor}]"));
            }
            Mistake::Unsatisfiable => {
                let low = self.generator.choices.int_in_range(2..=9)?;
                self.lines = vec![
                    Line::Declaration(format!("alloc {UNKNOWN}_1 : [{UNKNOWN}]")),
                    Line::Declaration(format!("where {UNKNOWN} >= {low}, {UNKNOWN} < {low}")),
                ];
            }
            Mistake::Uninitialised => {
                self.lines = vec![
                    Line::Declaration(format!("alloc {UNKNOWN} : [2]")),
                    Line::Declaration(format!("alloc output {UNKNOWN}_1 : [2]")),
                    Line::Statement(format!("{UNKNOWN}_1 = {UNKNOWN}")),
                ];
            }
            Mistake::NeverAssigned => {
                let reads = Line::Declaration(format!("alloc output {UNKNOWN} : [2]"));
                for tensor in self.generator.sample.inputs() {
                    self.generator.sample.tensors[tensor].input = true;
                }
                self.lines = vec![reads];
            }
            Mistake::Rank if chance(self.generator.choices, 1, 2)? => {
                self.lines = declare(&format!("alloc {UNKNOWN} : [{}]", vec!["1"; MAX_RANK + 1].join(", ")));
            }
            Mistake::Rank => {
                let mut expr = *self.operand(&[])?;
                for _ in 0..=MAX_RANK {
                    expr = Expr::Expa(1, Size::literal(2), Box::new(expr));
                }
                self.replace(expr)?;
            }
            Mistake::Nesting => {
                let mut expr = *self.operand(&[])?;
                for _ in 0..=MAX_NESTING {
                    expr = Expr::Red(ReduceOp::Sum, 1, Box::new(Expr::Expa(1, Size::literal(1), Box::new(expr))));
                }
                self.replace(expr)?;
            }
            Mistake::Bytes => self.lines = declare(&format!("alloc {UNKNOWN} : [4000000000, 4000000000]")),
            Mistake::LateAllocation => self.lines = vec![Line::Statement(format!("alloc {UNKNOWN} : [2]"))],
            Mistake::Character => self.lines = vec![Line::Anywhere("\u{a7}".into())],
            Mistake::Number => self.lines = declare("where 99999999999999999999 >= 1"),
            Mistake::Operand => {
                let tensor = self.generator.choices.choose(&self.generator.sample.tensors)?.name;
                self.lines = vec![Line::Anywhere(format!("{tensor} = add {tensor}"))];
            }
            Mistake::SizeOverflow => self.lines = declare("where 4000000000 * 4000000000 >= 1"),
        }
        Ok(())
    }

    fn violate(&mut self, premise: Premise) -> Result<()> {
        let mode = self.generator.sample.mode;
        self.rule = Some(premise.rule(mode).name.to_owned());
        let core = mode == Notation::CoreTeil;
        let shape = self.non_scalar()?;
        let rank = shape.len();
        // A position that a tensor of this rank does not have; Core-TeIL means the first one, which a scalar lacks.
        let outside = *self.generator.choices.choose(&[0, rank + 1, rank + 2, 1000])?;
        let (position, operand) = if core { (1, Vec::new()) } else { (outside, shape.clone()) };
        let inside = self.generator.choices.int_in_range(1..=rank)?;
        let broken = match premise {
            Premise::NatSize => {
                let size = self.unnatural()?;
                self.lines = vec![Line::Declaration(format!("alloc {UNKNOWN} : [2, {size}, 3]"))];
                return Ok(());
            }
            Premise::UniqueName => {
                let name = self.generator.choices.choose(&self.generator.sample.tensors)?.name;
                self.lines = vec![Line::Declaration(format!("alloc {name} : [2]"))];
                return Ok(());
            }
            Premise::TargetDeclared => {
                self.stmt()?.0 = usize::MAX;
                return Ok(());
            }
            Premise::TargetShape => {
                let target = self.stmt()?.0;
                let declared = self.generator.sample.tensors[target].shape.clone();
                let other = self.different(&declared)?;
                let value = *self.operand(&other)?;
                let wrong = self.generator.sample.stmts.iter_mut().find(|(at, _)| *at == target);
                wrong.into_iter().for_each(|stmt| stmt.1 = value.clone());
                return Ok(());
            }
            Premise::VarDeclared => Expr::Var(usize::MAX),
            Premise::AddShapes => {
                let other = self.different(&shape)?;
                Expr::Add(self.operand(&shape)?, self.operand(&other)?)
            }
            Premise::MulShapes => {
                let other = self.different(&shape)?;
                Expr::Mul(self.operand(&shape)?, self.operand(&other)?)
            }
            Premise::SDivScalarRight => unreachable!("TeIL has no division"),
            Premise::SMulScalarLeft => Expr::Mul(self.operand(&shape)?, self.operand(&[])?),
            Premise::RedPosition => {
                let (op, name) = *self.generator.choices.choose(&[
                    (ReduceOp::Sum, "T-Red+"),
                    (ReduceOp::Prod, "T-Red*"),
                    (ReduceOp::Min, "T-Redmin"),
                    (ReduceOp::Max, "T-Redmax"),
                ])?;
                self.rule = Some(name.to_owned() + if core { "^core" } else { "" });
                Expr::Red(op, position, self.operand(&operand)?)
            }
            Premise::TranspPosition if core => {
                let first = *self.generator.choices.choose(&[0, rank, rank + 1, 1000])?;
                Expr::Transp(first, first + 1, self.operand(&shape)?)
            }
            Premise::TranspPosition => {
                let (i0, i1) = self.either_order(inside, outside)?;
                Expr::Transp(i0, i1, self.operand(&shape)?)
            }
            Premise::TranspDistinct => Expr::Transp(inside, inside, self.operand(&shape)?),
            Premise::DiagPosition if core => {
                let short = *self.generator.choices.choose(&[0, 1])?;
                Expr::Diag(1, 2, self.operand(&shape[..short])?)
            }
            Premise::DiagPosition => {
                let (i0, i1) = self.either_order(inside, outside)?;
                let part = self.operand(&shape)?;
                self.diagonal(i0, i1, part)?
            }
            Premise::DiagDistinct => {
                let part = self.operand(&shape)?;
                self.diagonal(inside, inside, part)?
            }
            Premise::DiagSizes => {
                let first = if core { 0 } else { inside - 1 };
                let other = self.unequal(shape[first])?;
                let second = if core { 1 } else { self.generator.choices.int_in_range(first + 1..=rank)? };
                let part = self.operand(&[&shape[..second], &[other], &shape[second..]].concat())?;
                let (i0, i1) = if core { (1, 2) } else { self.either_order(first + 1, second + 1)? };
                self.diagonal(i0, i1, part)?
            }
            Premise::ExpaPosition => {
                let at = *self.generator.choices.choose(&[0, rank + 2, rank + 3, 1000])?;
                Expr::Expa(at, Size::literal(2), self.operand(&shape)?)
            }
            Premise::ExpaSize => {
                let size = self.below_one()?;
                Expr::Expa(1, size, self.operand(&shape)?)
            }
            Premise::ScaleFactor => {
                let factor = self.below_one()?;
                Expr::Scale(factor, self.operand(&shape)?)
            }
            Premise::PowerExponent => {
                let exponent = self.below_one()?;
                Expr::Power(exponent, Box::new(Expr::Paren(self.operand(&shape)?)))
            }
            Premise::ProjPosition => Expr::Proj(position, Size::literal(1), self.operand(&operand)?),
            Premise::ProjIndex => {
                let index = self.below_one()?;
                Expr::Proj(1, index, self.operand(&shape)?)
            }
            Premise::ProjBound => {
                let at = if core { 1 } else { inside };
                let size = shape[at - 1];
                let beyond = Size { plus: size.plus + 1, ..size };
                let index = *self.generator.choices.choose(&[beyond, Size::literal(100)])?;
                Expr::Proj(at, index, self.operand(&shape)?)
            }
        };
        self.replace(broken)
    }

    fn diagonal(&mut self, i0: usize, i1: usize, part: Box<Expr>) -> Result<Expr> {
        let contract = self.generator.sample.mode == Notation::Teil && chance(self.generator.choices, 1, 3)?;
        Ok(if contract { Expr::Contr(i0, i1, part) } else { Expr::Diag(i0, i1, part) })
    }

    fn either_order(&mut self, a: usize, b: usize) -> Result<(usize, usize)> {
        Ok(if chance(self.generator.choices, 1, 2)? { (b, a) } else { (a, b) })
    }

    fn stmt(&mut self) -> Result<&mut (usize, Expr)> {
        let at = self.generator.choices.choose_index(self.generator.sample.stmts.len())?;
        Ok(&mut self.generator.sample.stmts[at])
    }

    /// A small well-typed expression.
    fn operand(&mut self, shape: &[Size]) -> Result<Box<Expr>> {
        self.generator.expr(shape, 2, 100).map(Box::new)
    }

    fn non_scalar(&mut self) -> Result<Vec<Size>> {
        let mut shape = self.generator.shape()?;
        if shape.is_empty() {
            shape.push(self.generator.some_size()?);
        }
        Ok(shape)
    }

    /// A size of the pool that is not equal to this one; the pool has different ones.
    fn unequal(&mut self, size: Size) -> Result<Size> {
        let sample = &self.generator.sample;
        let others = self.generator.pool.iter().filter(|other| sample.normal(**other) != sample.normal(size));
        let others: Vec<Size> = others.copied().collect();
        self.generator.choices.choose(&others).copied()
    }

    /// Another shape, with dimensions.
    fn different(&mut self, shape: &[Size]) -> Result<Vec<Size>> {
        let mut other = shape.to_vec();
        if shape.is_empty() || chance(self.generator.choices, 1, 3)? {
            other.push(self.generator.some_size()?);
        } else {
            let at = self.generator.choices.choose_index(shape.len())?;
            other[at] = self.unequal(shape[at])?;
        }
        Ok(other)
    }

    /// A number that is less than one, or a size that can be.
    fn below_one(&mut self) -> Result<Size> {
        let mut sizes = vec![Size::literal(0)];
        sizes.extend((0..self.generator.sample.symbols.len()).map(|at| Size::symbol(at, -9)));
        self.generator.choices.choose(&sizes).copied()
    }

    fn unnatural(&mut self) -> Result<String> {
        Ok(match self.below_one()? {
            Size { symbol: Some(symbol), plus, .. } => {
                format!("{} - {}", self.generator.sample.symbols[symbol].name, -plus)
            }
            Size { plus, .. } => (*self.generator.choices.choose(&[plus, -1])?).to_string(),
        })
    }

    /// Puts an expression in the place of a random one.
    fn replace(&mut self, broken: Expr) -> Result<()> {
        let choices = &mut *self.generator.choices;
        let at = choices.choose_index(self.generator.sample.stmts.len())?;
        let mut place = &mut self.generator.sample.stmts[at].1;
        while !matches!(place, Expr::Var(_)) && chance(choices, 3, 4)? {
            let mut parts = place.parts_mut();
            let at = choices.choose_index(parts.len())?;
            place = parts.swap_remove(at);
        }
        *place = broken;
        Ok(())
    }
}
