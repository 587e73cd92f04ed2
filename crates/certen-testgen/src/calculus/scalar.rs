//! Scalar terms over every element type.

use arbitrary::Result;
use certen_core::{Binary, ElemType, Literal, Table, TensorType, Term, TermId, Unary};

use super::{Generator, elem};

impl Generator<'_, '_> {
    pub(super) fn constant(&mut self, elem: ElemType) -> Result<TermId> {
        if self.chance(4)? {
            return self.in_table(elem);
        }
        let term = match elem.has_arithmetic() && self.chance(2)? {
            true => Term::Index(self.ix()?, elem),
            false => Term::Literal(self.literal(elem)?, elem),
        };
        Ok(self.add(term))
    }

    /// An element of a small table.
    fn in_table(&mut self, elem: ElemType) -> Result<TermId> {
        let rank = self.u.int_in_range(1..=2)?;
        let shape = (0..rank).map(|_| self.u.int_in_range(1..=4)).collect::<Result<Vec<usize>>>()?;
        let count = shape.iter().product();
        let elements = (0..count).map(|_| self.literal(elem)).collect::<Result<_>>()?;
        let table = Table::new(elem, shape, elements).expect("as many elements as its shape says");
        let table = self.add(Term::Table(table));
        self.select(table, rank)
    }

    fn literal(&mut self, elem: ElemType) -> Result<Literal> {
        let value = self.u.int_in_range(-2..=3)?;
        Ok(match elem {
            // A half is as exact as a whole number.
            ElemType::F32 | ElemType::F64 if self.chance(5)? => Literal::Float(value as f64 + 0.5),
            ElemType::U8 => Literal::Int(if value < 0 { 255 + value } else { value }),
            _ => Literal::whole(value, elem),
        })
    }

    fn part(&mut self, elem: ElemType, part: usize) -> Result<TermId> {
        self.term(&TensorType::scalar(elem), part)
    }

    pub(super) fn scalar(&mut self, elem: ElemType, part: usize) -> Result<TermId> {
        let term = match elem {
            _ if self.chance(8)? => self.cast(elem, part)?,
            _ if self.chance(8)? => Term::Choose(self.truth(part)?, self.part(elem, part)?, self.part(elem, part)?),
            ElemType::Bool => return self.truth(part),
            ElemType::U8 => self.cast(elem, part)?,
            ElemType::F32 | ElemType::F64 => self.float(elem, part)?,
            ElemType::I32 | ElemType::I64 => self.integer(elem, part)?,
        };
        Ok(self.add(term))
    }

    fn cast(&mut self, to: ElemType, part: usize) -> Result<Term> {
        let from = elem(self.u)?;
        Ok(Term::Cast(to, self.part(from, part)?))
    }

    fn truth(&mut self, part: usize) -> Result<TermId> {
        let term = match self.u.int_in_range(0..=5)? {
            0 => Term::Unary(Unary::Not, self.part(ElemType::Bool, part)?),
            1 => {
                let op = *self.u.choose(&[Binary::And, Binary::Or])?;
                Term::Binary(op, self.part(ElemType::Bool, part)?, self.part(ElemType::Bool, part)?)
            }
            _ => {
                let op = *self.u.choose(&[Binary::Lt, Binary::Le, Binary::Eq, Binary::Ne])?;
                let of = elem(self.u)?;
                Term::Binary(op, self.part(of, part)?, self.part(of, part)?)
            }
        };
        Ok(self.add(term))
    }

    fn float(&mut self, elem: ElemType, part: usize) -> Result<Term> {
        let a = self.part(elem, part)?;
        Ok(match self.u.int_in_range(0..=15)? {
            0 => Term::Unary(*self.u.choose(&[Unary::Neg, Unary::Abs])?, a),
            1 => Term::Unary(*self.u.choose(&[Unary::Floor, Unary::Ceil, Unary::Round])?, a),
            2 | 3 => {
                let factor = Term::Literal(self.literal(elem)?, elem);
                Term::Binary(Binary::Mul, self.add(factor), a)
            }
            4 => {
                let divisor = Literal::Float(*self.u.choose(&[2.0, 3.0, -4.0])?);
                let divisor = self.add(Term::Literal(divisor, elem));
                Term::Binary(Binary::Div, a, divisor)
            }
            5 => Term::Binary(Binary::ControlledDiv, a, self.part(elem, part)?),
            6 if self.chance(3)? => Term::Unary(*self.u.choose(&[Unary::Tanh, Unary::Sin, Unary::Exp])?, a),
            6 => {
                let positive = self.add(Term::Unary(Unary::Abs, a));
                Term::Unary(Unary::Sqrt, positive)
            }
            7 | 8 => Term::Binary(*self.u.choose(&[Binary::Min, Binary::Max])?, a, self.part(elem, part)?),
            9 => {
                let factor = Term::Literal(self.literal(elem)?, elem);
                Term::Fma(self.add(factor), a, self.part(elem, part)?)
            }
            _ => Term::Binary(*self.u.choose(&[Binary::Add, Binary::Sub])?, a, self.part(elem, part)?),
        })
    }

    fn integer(&mut self, elem: ElemType, part: usize) -> Result<Term> {
        let a = self.part(elem, part)?;
        Ok(match self.u.int_in_range(0..=7)? {
            0 => Term::Unary(*self.u.choose(&[Unary::Neg, Unary::Abs])?, a),
            1 => Term::Binary(*self.u.choose(&[Binary::FloorDiv, Binary::Mod])?, a, self.part(elem, part)?),
            2 => Term::Binary(Binary::Mul, a, self.part(elem, part)?),
            3 => Term::Binary(*self.u.choose(&[Binary::Min, Binary::Max])?, a, self.part(elem, part)?),
            _ => Term::Binary(*self.u.choose(&[Binary::Add, Binary::Sub])?, a, self.part(elem, part)?),
        })
    }
}
