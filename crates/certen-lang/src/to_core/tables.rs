//! Lists of numbers as tables of Core.
//!
//! A list of more than [`MOST_READS`] numbers that is read at indices that are not known is a table: a binding of the program,
//! one for equal lists. Shorter lists, and lists with other elements, are chains of `if`s or stored ([`super::policy`]).

use certen_core::{Literal, Table, Term, TermId, Unary};
use certen_index::Ix;
use certen_syntax::Name;

use super::policy::MOST_READS;
use super::{Build, Built, ill_typed};
use crate::typed::{Expr, Kind, epsilon};

impl<'a> Build<'a> {
    /// The element of a list that is a table; nothing if it is none, or if its indices are known.
    pub(super) fn table_element(&mut self, expr: &'a Expr, indices: &[Ix]) -> Built<Option<TermId>> {
        if indices.iter().all(|ix| ix.as_constant().is_some()) {
            return Ok(None);
        }
        let Some(table) = self.table(expr)? else { return Ok(None) };
        let ty = self.terms.ty(table).clone();
        let name = match self.tables.get(&table) {
            Some(name) => *name,
            None => {
                let hidden = self.leave(0);
                let given = self.names.tensor(Name::new("table"), 0);
                let (name, _) = self.bind(given, table);
                self.enter_again(hidden);
                self.tables.insert(table, name);
                name
            }
        };
        self.terms.element(name, ty, indices).map(Some).map_err(ill_typed(expr.span))
    }

    /// The table that an expression is, if it is one.
    pub(super) fn table(&mut self, expr: &'a Expr) -> Built<Option<TermId>> {
        if !matches!(expr.kind, Kind::Stack(_)) {
            return Ok(None);
        }
        let key = std::ptr::from_ref(expr);
        if let Some(known) = self.lists.get(&key) {
            return Ok(*known);
        }
        let mut numbers = Vec::new();
        let found = match collect(expr, &mut numbers) && numbers.len() > MOST_READS {
            true => {
                let size = |ix: &Ix| usize::try_from(ix.as_constant()?).ok();
                let shape: Vec<usize> = expr.ty.shape.iter().filter_map(size).collect();
                let table = Table::new(expr.ty.elem, shape, numbers).map_err(ill_typed(expr.span))?;
                Some(self.add(Term::Table(table), expr.span)?)
            }
            false => None,
        };
        self.lists.insert(key, found);
        Ok(found)
    }
}

/// Collects the numbers of a list, row by row; false if there is anything else in it.
fn collect(expr: &Expr, numbers: &mut Vec<Literal>) -> bool {
    match &expr.kind {
        Kind::Stack(parts) => parts.iter().all(|part| collect(part, numbers)),
        _ => number(expr).map(|number| numbers.push(number)).is_some(),
    }
}

/// The number that an expression is, if it is one: a literal, one with a minus before it, or an index that is known.
pub(super) fn number(expr: &Expr) -> Option<Literal> {
    let elem = expr.ty.elem;
    let number = match &expr.kind {
        Kind::Literal(literal) => *literal,
        Kind::Epsilon => epsilon(elem),
        Kind::Index(ix) => Literal::whole(ix.as_constant()?, elem),
        Kind::Unary(Unary::Neg, operand) => match operand.kind {
            Kind::Literal(Literal::Float(value)) => Literal::Float(-value),
            Kind::Literal(Literal::Int(value)) => Literal::Int(value.checked_neg()?),
            _ => return None,
        },
        _ => return None,
    };
    number.fits(elem).then_some(number)
}
