//! The names of a whole program, which every place in it knows.

use std::collections::HashSet;

use certen_core::{Program, TensorType, Term, TermId, Terms};
use certen_syntax::Name;
use rustc_hash::FxHashMap;

use crate::pattern::{Pattern, Words, parse};

/// The program's names around and inside its one term.
pub(crate) struct Globals {
    /// Sizes, inputs and outputs.
    pub names: HashSet<Name>,
    pub sizes: HashSet<Name>,
    pub inputs: FxHashMap<Name, TensorType>,
    /// Everything that is bound anywhere.
    pub used: HashSet<Name>,
    /// Indices that are bound anywhere.
    pub indices: HashSet<Name>,
    /// Tensors that are bound anywhere.
    pub tensors: HashSet<Name>,
}

impl Globals {
    /// The names of a program, without those of its terms.
    pub(crate) fn of(program: &Program) -> Globals {
        let mut names: HashSet<Name> = program.sizes.iter().copied().collect();
        names.extend(program.inputs.iter().map(|input| input.name));
        Globals {
            names,
            sizes: program.sizes.iter().copied().collect(),
            inputs: program.inputs.iter().map(|input| (input.name, input.ty.clone())).collect(),
            used: HashSet::new(),
            indices: HashSet::new(),
            tensors: HashSet::new(),
        }
    }

    /// Takes up the names that a term binds.
    pub(crate) fn look_at(&mut self, terms: &Terms, root: TermId) {
        self.used = self.names.clone();
        self.indices.clear();
        self.tensors.clear();
        for id in terms.reachable([root]) {
            let term = terms.get(id);
            let bound = term.binders();
            self.used.extend(&bound);
            match term {
                Term::Let(name, ..) => {
                    self.tensors.insert(*name);
                }
                Term::Iterate(_, step, states, _) => {
                    self.indices.insert(*step);
                    self.tensors.extend(states.iter().map(|state| state.name));
                }
                _ => self.indices.extend(bound),
            }
        }
    }

    /// Reads a script's pattern: names mean the program's.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub(crate) fn pattern(&self, text: &str) -> Result<Pattern, String> {
        let index = |name: Name| self.sizes.contains(&name) || self.indices.contains(&name);
        let tensor = |name: Name| self.inputs.contains_key(&name) || self.tensors.contains(&name);
        parse(text, Words { index: &index, tensor: &tensor })
    }
}
