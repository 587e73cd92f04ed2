//! A program at given sizes: the same computation, with numbers in place of its symbolic sizes.
//!
//! Every index expression and condition is rewritten, every term is typed again, so shapes become numbers and what
//! depends on sizes alone is decided. Nothing else changes: the operations and their order are those of the program
//! with symbolic sizes, so floats have the same bits. Names are never shadowed in Core, so substitution captures
//! nothing.

use certen_index::{Cond, Facts, Ix, IxError};
use certen_syntax::Name;
use rustc_hash::FxHashMap;

use crate::{Binding, Carried, Parameter, Program, Range, TensorType, Term, TermId, Terms, TypeError};

impl Program {
    /// The program with these values of its sizes, and no symbolic ones.
    ///
    /// # Errors
    /// If a size is missing, the sizes are excluded by the program's facts, or a number does not fit in 64 bits.
    pub fn at_sizes(&self, sizes: &FxHashMap<Name, i64>) -> Result<Program, TypeError> {
        if let Some(missing) = self.sizes.iter().find(|name| !sizes.contains_key(name)) {
            return Err(TypeError(format!("the size {missing} is not given")));
        }
        if let Some(fact) = self.facts.iter().find(|fact| !fact.eval(&|n| sizes.get(&n).copied()).unwrap_or(false)) {
            return Err(TypeError(format!("{fact} does not hold")));
        }
        let at = At(sizes);
        let input = |Parameter { name, ty }: &Parameter| Ok(Parameter { name: *name, ty: at.ty(ty)? });
        let inputs = self.inputs.iter().map(input).collect::<Result<_, TypeError>>()?;
        let mut terms = Terms::new(Facts::new());
        let mut places: Vec<Result<TermId, TypeError>> = Vec::with_capacity(self.terms.len());
        for (_, term) in self.terms.iter() {
            // A term that no binding has may be impossible at these sizes.
            let place = at.term(term, &places).and_then(|term| terms.add(term));
            places.push(place);
        }
        let binding =
            |Binding { name, term }: &Binding| Ok(Binding { name: *name, term: places[term.index()].clone()? });
        Ok(Program {
            name: self.name,
            sizes: Vec::new(),
            facts: Vec::new(),
            inputs,
            bindings: self.bindings.iter().map(binding).collect::<Result<_, TypeError>>()?,
            outputs: self.outputs.clone(),
            terms,
        })
    }
}

struct At<'a>(&'a FxHashMap<Name, i64>);

impl At<'_> {
    fn ix(&self, ix: &Ix) -> Result<Ix, IxError> {
        ix.substitute(&|name| self.0.get(&name).map(|&value| Ix::from(value)))
    }

    fn cond(&self, cond: &Cond) -> Result<Cond, IxError> {
        cond.substitute(&|name| self.0.get(&name).map(|&value| Ix::from(value)))
    }

    fn ty(&self, ty: &TensorType) -> Result<TensorType, TypeError> {
        let shape = ty.shape.iter().map(|size| self.ix(size)).collect::<Result<Vec<_>, _>>()?;
        Ok(TensorType::new(ty.elem, shape))
    }

    fn range(&self, range: &Range) -> Result<Range, IxError> {
        Ok(Range { lo: self.ix(&range.lo)?, hi: self.ix(&range.hi)? })
    }

    fn term(&self, term: &Term, places: &[Result<TermId, TypeError>]) -> Result<Term, TypeError> {
        let part = |id: &TermId| places[id.index()].clone();
        Ok(match term {
            Term::Ref(name, ty) => Term::Ref(*name, self.ty(ty)?),
            Term::Gen(name, range, body) => Term::Gen(*name, self.range(range)?, part(body)?),
            Term::Reduce(op, name, range, cond, body) => {
                Term::Reduce(*op, *name, self.range(range)?, self.cond(cond)?, part(body)?)
            }
            Term::Guard(cond, body) => Term::Guard(self.cond(cond)?, part(body)?),
            Term::If(cond, yes, no) => Term::If(self.cond(cond)?, part(yes)?, part(no)?),
            Term::Let(name, value, body) => Term::Let(*name, part(value)?, part(body)?),
            Term::Iterate(steps, step, states, shown) => {
                let state = |Carried { name, init, next }: &Carried| {
                    Ok(Carried { name: *name, init: part(init)?, next: part(next)? })
                };
                let states = states.iter().map(state).collect::<Result<_, TypeError>>()?;
                Term::Iterate(self.ix(steps)?, *step, states, *shown)
            }
            Term::Select(tensor, indices) => {
                let indices = indices.iter().map(|index| self.ix(index)).collect::<Result<_, _>>()?;
                Term::Select(part(tensor)?, indices)
            }
            Term::Flatten(a) => Term::Flatten(part(a)?),
            Term::Split(block, a) => Term::Split(*block, part(a)?),
            Term::Transpose(a) => Term::Transpose(part(a)?),
            Term::Concat(a, b) => Term::Concat(part(a)?, part(b)?),
            Term::PadLeft(n, a) => Term::PadLeft(self.ix(n)?, part(a)?),
            Term::PadRight(n, a) => Term::PadRight(self.ix(n)?, part(a)?),
            Term::TruncLeft(n, a) => Term::TruncLeft(self.ix(n)?, part(a)?),
            Term::TruncRight(n, a) => Term::TruncRight(self.ix(n)?, part(a)?),
            Term::Literal(literal, elem) => Term::Literal(*literal, *elem),
            Term::Index(ix, elem) => Term::Index(self.ix(ix)?, *elem),
            Term::Undefined(elem) => Term::Undefined(*elem),
            Term::Unary(op, a) => Term::Unary(*op, part(a)?),
            Term::Binary(op, a, b) => Term::Binary(*op, part(a)?, part(b)?),
            Term::Choose(a, b, c) => Term::Choose(part(a)?, part(b)?, part(c)?),
            Term::Fma(a, b, c) => Term::Fma(part(a)?, part(b)?, part(c)?),
            Term::Cast(elem, a) => Term::Cast(*elem, part(a)?),
        })
    }
}
