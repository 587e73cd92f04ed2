//! A program at given sizes: the same computation, with numbers in place of its symbolic sizes.
//!
//! Every index expression and condition is rewritten, every term is typed again, so shapes become numbers and what
//! depends on sizes alone is decided. Nothing else changes: the operations and their order are those of the program
//! with symbolic sizes, so floats have the same bits. Names are never shadowed in Core, so substitution captures
//! nothing.

use certen_index::{Facts, Ix};
use certen_syntax::Name;
use rustc_hash::FxHashMap;

use crate::program::{Binding, Parameter, Program};
use crate::term::{Term, Terms, TypeError};
use crate::types::TensorType;

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
        let number = |name: Name| sizes.get(&name).map(|&value| Ix::from(value));
        let typed = |ty: &TensorType| ty.with_sizes(|size| size.substitute(&number));
        let input = |Parameter { name, ty }: &Parameter| Ok(Parameter { name: *name, ty: typed(ty)? });
        let inputs = self.inputs.iter().map(input).collect::<Result<_, TypeError>>()?;
        let mut terms = Terms::new(Facts::new());
        // A term that no binding has may be impossible at these sizes.
        let roots = self.bindings.iter().map(|binding| binding.term);
        let copies = terms.copy_from(&self.terms, roots, |term| match term {
            Term::Ref(name, ty) => Ok::<Term, TypeError>(Term::Ref(name, typed(&ty)?)),
            term => Ok(term.substitute(&number)?),
        })?;
        let binding = |Binding { name, term }: &Binding| Binding { name: *name, term: copies[term] };
        Ok(Program {
            name: self.name,
            sizes: Vec::new(),
            facts: Vec::new(),
            inputs,
            bindings: self.bindings.iter().map(binding).collect(),
            outputs: self.outputs.clone(),
            terms,
        })
    }
}
