//! A program at given sizes: the same computation, with numbers in place of its symbolic sizes, or of some of them.
//!
//! Every index expression and condition is rewritten, every term is typed again, so shapes become numbers and what
//! depends on sizes alone is decided. Nothing else changes: the operations and their order are those of the program
//! with symbolic sizes, so floats have the same bits. Names are never shadowed in Core, so substitution captures
//! nothing.

use std::collections::BTreeSet;

use certen_index::{Cond, Facts, Ix};
use certen_syntax::Name;
use rustc_hash::FxHashMap;

use crate::program::{Binding, Parameter, Program};
use crate::term::{Term, Terms};
use crate::types::{TensorType, TypeError};

impl Program {
    /// The program with these values of its sizes; sizes without a value stay.
    ///
    /// # Errors
    /// If the sizes are excluded by the program's facts, or a number does not fit in 64 bits.
    pub fn at_sizes(&self, sizes: &FxHashMap<Name, i64>) -> Result<Program, TypeError> {
        let number = |name: Name| sizes.get(&name).map(|&value| Ix::from(value));
        let typed = |ty: &TensorType| ty.with_sizes(|size| size.substitute(&number));
        let input = |Parameter { name, ty }: &Parameter| Ok(Parameter { name: *name, ty: typed(ty)? });
        let inputs = self.inputs.iter().map(input).collect::<Result<_, TypeError>>()?;
        // What is left to know once numbers are put in: nothing of what they decide.
        let left = |fact: &Cond| -> Result<Option<Cond>, TypeError> {
            let left = fact.substitute(&number)?;
            let mut names = BTreeSet::new();
            left.collect_names(&mut names);
            Ok(Some(left).filter(|_| !names.is_empty()))
        };
        let mut facts = Vec::new();
        for fact in &self.facts {
            let put_in = left(fact)?;
            if put_in.is_none() && !fact.eval(&|name| sizes.get(&name).copied()).unwrap_or(false) {
                return Err(TypeError(format!("{fact} does not hold")));
            }
            facts.extend(put_in);
        }
        let mut known = Facts::new();
        for fact in self.terms.facts().conjuncts() {
            left(fact)?.into_iter().for_each(|fact| known.assume(fact));
        }
        let mut terms = Terms::new(known);
        // A term that no binding has may be impossible at these sizes.
        let roots = self.bindings.iter().map(|binding| binding.term);
        let copies = terms.copy_from(&self.terms, roots, |term| match term {
            Term::Ref(name, ty) => Ok::<Term, TypeError>(Term::Ref(name, typed(&ty)?)),
            term => Ok(term.substitute(&number)?),
        })?;
        let binding = |Binding { name, term }: &Binding| Binding { name: *name, term: copies[term] };
        Ok(Program {
            name: self.name,
            sizes: self.sizes.iter().copied().filter(|name| !sizes.contains_key(name)).collect(),
            facts,
            inputs,
            bindings: self.bindings.iter().map(binding).collect(),
            outputs: self.outputs.clone(),
            terms,
        })
    }
}
