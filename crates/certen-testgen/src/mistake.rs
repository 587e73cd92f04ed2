//! Programs with exactly one mistake.
//!
//! A mistake is put at a random place of a well-typed program: an expression is replaced by one that violates a premise,
//! or a line is added. Whatever stands around an ill-typed expression has no type and gives no second error, so the
//! mistake is the only one to be reported.

use arbitrary::{Result, Unstructured};
use certen_core::{MAX_RANK, ReduceOp};
use certen_dialects::algebra::{Arith, MAX_NESTING, Notation, Premise};
use certen_syntax::Code;

use crate::generate::{Generator, chance};
use crate::sample::{Expr, Pair, Sample, Size, Symbol, UNKNOWN};

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
    /// A type of the model language that is declared twice.
    TypeTwice,
    /// A type that is not declared before it is used.
    UnknownType,
    /// A name of both a type and a tensor.
    TypeAndTensor,
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
    /// and the one of `expa` always exists. Only the model language has names for types.
    pub fn all(mode: Notation) -> Vec<Mistake> {
        let implied = [Premise::TranspDistinct, Premise::DiagDistinct, Premise::ExpaPosition];
        let premises = Premise::of(mode).filter(|premise| mode != Notation::CoreTeil || !implied.contains(premise));
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
        let types = [Mistake::TypeTwice, Mistake::UnknownType, Mistake::TypeAndTensor];
        let types = types.into_iter().filter(|_| mode == Notation::Model);
        premises.map(Mistake::Premise).chain(others).chain(types).collect()
    }

    /// The code of its error.
    pub fn code(self) -> Code {
        match self {
            Mistake::Premise(premise) => premise.code(),
            Mistake::UndeclaredSize | Mistake::UnknownType => Code::E0201,
            Mistake::TypeTwice => Code::E0202,
            Mistake::SizeAndTensor | Mistake::TypeAndTensor => Code::E0211,
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
    /// The allocation of a tensor, as text.
    fn alloc(&self, marker: &str, name: &str, shape: &[&str]) -> Line {
        Line::Declaration(match self.generator.sample.mode {
            Notation::Model => format!("var {marker}{name} : [{}]", shape.join(" ")),
            _ => format!("alloc {marker}{name} : [{}]", shape.join(", ")),
        })
    }

    fn make(&mut self, mistake: Mistake) -> Result<()> {
        // One arm for each mistake: a table.
        let model = self.generator.sample.mode == Notation::Model;
        let declare = |line: &str| vec![Line::Declaration(line.to_owned())];
        let other = format!("{UNKNOWN}_1");
        match mistake {
            Mistake::Premise(premise) => self.violate(premise)?,
            Mistake::UndeclaredSize if model || chance(self.generator.choices, 1, 2)? => {
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
                self.lines = vec![self.alloc("", UNKNOWN, &[tensor])];
            }
            Mistake::Unsatisfiable => {
                let low = self.generator.choices.int_in_range(2..=9)?;
                let conditions = Line::Declaration(format!("where {UNKNOWN} >= {low}, {UNKNOWN} < {low}"));
                self.lines = vec![self.alloc("", &other, &[UNKNOWN]), conditions];
            }
            Mistake::Uninitialised => {
                let stmt = Line::Statement(format!("{other} = {UNKNOWN}"));
                self.lines = vec![self.alloc("", UNKNOWN, &["2"]), self.alloc("output ", &other, &["2"]), stmt];
            }
            Mistake::NeverAssigned => {
                for tensor in self.generator.sample.inputs() {
                    self.generator.sample.tensors[tensor].input = true;
                }
                self.lines = vec![self.alloc("output ", UNKNOWN, &["2"])];
            }
            Mistake::Rank if chance(self.generator.choices, 1, 2)? => {
                self.lines = vec![self.alloc("", UNKNOWN, &["1"; MAX_RANK + 1])];
            }
            Mistake::Rank => {
                let mut expr = *self.operand(&[])?;
                for _ in 0..=MAX_RANK {
                    expr = match model {
                        true => Expr::Prod(Box::new(expr), self.operand(&[Size::literal(2)])?),
                        false => Expr::Expa(1, Size::literal(2), Box::new(expr)),
                    };
                }
                self.replace(expr)?;
            }
            Mistake::Nesting => {
                let mut expr = *self.operand(&[])?;
                let one = Size::literal(1);
                for _ in 0..=MAX_NESTING {
                    expr = match model {
                        true => Expr::Contr(vec![(1, 2)], Box::new(Expr::Prod(Box::new(expr), self.leaf(&[one; 2])?))),
                        false => Expr::Red(ReduceOp::Sum, 1, Box::new(Expr::Expa(1, one, Box::new(expr)))),
                    };
                }
                self.replace(expr)?;
            }
            Mistake::Bytes => self.lines = vec![self.alloc("", UNKNOWN, &["4000000000"; 2])],
            Mistake::LateAllocation => {
                let (Line::Declaration(late) | Line::Statement(late) | Line::Anywhere(late)) =
                    self.alloc("", UNKNOWN, &["2"]);
                self.lines = vec![Line::Statement(late)];
            }
            Mistake::Character => self.lines = vec![Line::Anywhere("\u{a7}".into())],
            Mistake::Number => self.lines = declare("where 99999999999999999999 >= 1"),
            Mistake::Operand => {
                let tensor = self.generator.choices.choose(&self.generator.sample.tensors)?.name;
                let sign = *self.generator.choices.choose(&["+", "-", "*", "/", "#", ".", "^"])?;
                self.lines = vec![Line::Anywhere(match model {
                    true => format!("{tensor} = {tensor} {sign}"),
                    false => format!("{tensor} = add {tensor}"),
                })];
            }
            Mistake::SizeOverflow => self.lines = declare("where 4000000000 * 4000000000 >= 1"),
            Mistake::TypeTwice => {
                let line = || Line::Declaration(format!("type {UNKNOWN} : [2]"));
                self.lines = vec![line(), line()];
            }
            Mistake::UnknownType => {
                let unused = Line::Declaration(format!("var {other} : {UNKNOWN}"));
                self.lines = vec![unused, Line::Declaration(format!("type {UNKNOWN} : [2]"))];
            }
            Mistake::TypeAndTensor => {
                let tensor = self.generator.choices.choose(&self.generator.sample.tensors)?.name;
                self.lines = declare(&format!("type {tensor} : [2]"));
            }
        }
        Ok(())
    }

    fn violate(&mut self, premise: Premise) -> Result<()> {
        // One arm for each premise that can be violated: a table.
        let mode = self.generator.sample.mode;
        self.rule = Some(premise.rule(mode).name.to_owned());
        let (core, model) = (mode == Notation::CoreTeil, mode == Notation::Model);
        let shape = self.non_scalar()?;
        let rank = shape.len();
        // A position that a tensor of this rank does not have; Core-TeIL means the first one, which a scalar lacks.
        let outside = *self.generator.choices.choose(&[0, rank + 1, rank + 2, 1000])?;
        let (position, operand) = if core { (1, Vec::new()) } else { (outside, shape.clone()) };
        let inside = self.generator.choices.int_in_range(1..=rank)?;
        let broken = match premise {
            Premise::NatSize => {
                let size = self.unnatural()?;
                self.lines = vec![self.alloc("", UNKNOWN, &["2", &size, "3"])];
                return Ok(());
            }
            Premise::UniqueName => {
                let name = self.generator.choices.choose(&self.generator.sample.tensors)?.name;
                self.lines = vec![self.alloc("", name, &["2"])];
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
                let ops = [Arith::Add, Arith::Sub, Arith::Div];
                let ops = if model { ops.as_slice() } else { &ops[..1] };
                let op = *self.generator.choices.choose(ops)?;
                Expr::Elem(op, self.operand(&shape)?, self.operand(&other)?)
            }
            Premise::MulShapes => {
                let other = self.different(&shape)?;
                Expr::Elem(Arith::Mul, self.operand(&shape)?, self.operand(&other)?)
            }
            Premise::SDivScalarRight => Expr::Elem(Arith::Div, self.operand(&[])?, self.operand(&shape)?),
            Premise::SMulScalarLeft => Expr::Elem(Arith::Mul, self.operand(&shape)?, self.operand(&[])?),
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
                Expr::Transp(vec![(first, first + 1)], self.operand(&shape)?)
            }
            Premise::TranspPosition => {
                let pair = self.either_order(inside, outside)?;
                let (pairs, shape) = self.among_others(pair, shape)?;
                Expr::Transp(pairs, self.operand(&shape)?)
            }
            Premise::TranspDistinct => {
                let (pairs, shape) = self.not_distinct(inside, shape)?;
                Expr::Transp(pairs, self.operand(&shape)?)
            }
            Premise::DiagPosition if core => {
                let short = *self.generator.choices.choose(&[0, 1])?;
                Expr::Diag(1, 2, self.operand(&shape[..short])?)
            }
            Premise::DiagPosition => {
                let pair = self.either_order(inside, outside)?;
                let (pairs, shape) = self.among_others(pair, shape)?;
                let part = self.operand(&shape)?;
                self.diagonal(pairs, part)?
            }
            Premise::DiagDistinct => {
                let (pairs, shape) = self.not_distinct(inside, shape)?;
                let part = self.operand(&shape)?;
                self.diagonal(pairs, part)?
            }
            Premise::DiagSizes => {
                let first = if core { 0 } else { inside - 1 };
                let other = self.unequal(shape[first])?;
                let second = if core { 1 } else { self.generator.choices.int_in_range(first + 1..=rank)? };
                let shape = [&shape[..second], &[other], &shape[second..]].concat();
                let pair = if core { (1, 2) } else { self.either_order(first + 1, second + 1)? };
                let (pairs, shape) = self.among_others(pair, shape)?;
                let part = self.operand(&shape)?;
                self.diagonal(pairs, part)?
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

    fn diagonal(&mut self, pairs: Vec<Pair>, part: Box<Expr>) -> Result<Expr> {
        let contract = match self.generator.sample.mode {
            Notation::Model => true,
            Notation::Teil => chance(self.generator.choices, 1, 3)?,
            Notation::CoreTeil => false,
        };
        let (i0, i1) = pairs[0];
        Ok(if contract { Expr::Contr(pairs, part) } else { Expr::Diag(i0, i1, part) })
    }

    /// A pair alone, or in the model language perhaps with one before or after it that has nothing wrong.
    fn among_others(&mut self, pair: Pair, mut shape: Vec<Size>) -> Result<(Vec<Pair>, Vec<Size>)> {
        if self.generator.sample.mode != Notation::Model || !chance(self.generator.choices, 1, 2)? {
            return Ok((vec![pair], shape));
        }
        // Two more dimensions after the others; a position that there was not must not become one of theirs.
        let (rank, size) = (shape.len(), self.generator.some_size()?);
        shape.extend([size, size]);
        let moved = |i: usize| if i > rank { i + 2 } else { i };
        let pair = (moved(pair.0), moved(pair.1));
        let right = (rank + 1, rank + 2);
        Ok((if chance(self.generator.choices, 1, 2)? { vec![pair, right] } else { vec![right, pair] }, shape))
    }

    /// Pairs of which one has the same position twice, or in the model language of which two have the same position.
    fn not_distinct(&mut self, inside: usize, mut shape: Vec<Size>) -> Result<(Vec<Pair>, Vec<Size>)> {
        if self.generator.sample.mode != Notation::Model || !chance(self.generator.choices, 1, 2)? {
            return self.among_others((inside, inside), shape);
        }
        let (rank, size) = (shape.len(), shape[inside - 1]);
        shape.extend([size, size]);
        let (first, second) = ((rank + 1, inside), (inside, rank + 2));
        Ok((vec![first, second], shape))
    }

    fn either_order(&mut self, a: usize, b: usize) -> Result<(usize, usize)> {
        Ok(if chance(self.generator.choices, 1, 2)? { (b, a) } else { (a, b) })
    }

    fn stmt(&mut self) -> Result<&mut (usize, Expr)> {
        let at = self.generator.choices.choose_index(self.generator.sample.stmts.len())?;
        Ok(&mut self.generator.sample.stmts[at])
    }

    /// A tensor.
    fn leaf(&mut self, shape: &[Size]) -> Result<Box<Expr>> {
        self.generator.expr(shape, 0, 1).map(Box::new)
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
                format!("({} - {})", self.generator.sample.symbols[symbol].name, -plus)
            }
            Size { plus, .. } => format!("({})", self.generator.choices.choose(&[plus, -1])?),
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
