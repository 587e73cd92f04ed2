//! Who computes the functions of mathematics: our recipes, or the C library.

use crate::program::{Binding, Program};
use crate::term::{Term, Terms};
use crate::types::TypeError;

impl Program {
    /// The program with the C library's functions in the place of ours, where it has them.
    ///
    /// # Errors
    /// If it is not well-typed.
    pub fn by_libm(&self) -> Result<Program, TypeError> {
        let mut terms = Terms::new(self.terms.facts().clone());
        let roots = self.bindings.iter().map(|binding| binding.term);
        let copies = terms.copy_from(&self.terms, roots, |term| {
            Ok::<Term, TypeError>(match term {
                Term::Unary(op, a) => Term::Unary(op.by_libm(), a),
                Term::Binary(op, a, b) => Term::Binary(op.by_libm(), a, b),
                other => other,
            })
        })?;
        let binding = |Binding { name, term }: &Binding| Binding { name: *name, term: copies[term] };
        Ok(Program {
            name: self.name,
            sizes: self.sizes.clone(),
            facts: self.facts.clone(),
            inputs: self.inputs.clone(),
            bindings: self.bindings.iter().map(binding).collect(),
            outputs: self.outputs.clone(),
            terms,
        })
    }
}
