//! A program as one term: its bindings are `let`s around what it shows.

use std::collections::BTreeSet;

use certen_core::{Binding, Program, ScopeError, Term, TermId, Terms, TypeError};
use certen_syntax::Name;

use crate::globals::Globals;
use crate::matching::shown;
use crate::names::{MAX_NESTING, depth_of, tree_size};

/// Terms that are larger as trees are refused.
const MAX_SIZE: u64 = 50_000;

/// A program with one output, as one term.
pub(crate) struct Whole {
    pub terms: Terms,
    pub root: TermId,
    /// What the binding of the root is called.
    pub result: Name,
    pub globals: Globals,
    /// The program that it was, without bindings and terms.
    frame: Program,
}

impl Whole {
    /// A program as one term.
    ///
    /// # Errors
    /// If it has several outputs, or none.
    pub(crate) fn new(program: &Program, name: Name) -> Result<Whole, String> {
        let [(_, shown)] = program.outputs.as_slice() else {
            return Err(format!("the program has {} outputs; a derivation is of one", program.outputs.len()));
        };
        let mut terms = program.terms.clone();
        let wrong = |error: TypeError| error.to_string();
        let root = match program.bindings.iter().position(|binding| binding.name == *shown) {
            Some(last) => {
                let mut root = program.bindings[last].term;
                for binding in program.bindings[..last].iter().rev() {
                    root = terms.add(Term::Let(binding.name, binding.term, root)).map_err(wrong)?;
                }
                root
            }
            None => {
                let ty = program.type_of(*shown).cloned().ok_or_else(|| format!("there is no {shown}"))?;
                terms.reference(*shown, ty).map_err(wrong)?
            }
        };
        let mut globals = Globals::of(program);
        let is_input = globals.inputs.contains_key(shown);
        let result = if is_input { Name::fresh("result", |name| globals.names.contains(&name)) } else { *shown };
        globals.names.insert(result);
        globals.names.extend(program.outputs.iter().map(|(name, _)| *name));
        globals.look_at(&terms, root);
        let frame = Program {
            name,
            sizes: program.sizes.clone(),
            facts: program.facts.clone(),
            inputs: program.inputs.clone(),
            bindings: Vec::new(),
            outputs: program.outputs.iter().map(|(name, _)| (*name, result)).collect(),
            terms: Terms::new(program.terms.facts().clone()),
        };
        Ok(Whole { terms, root, result, globals, frame })
    }

    /// Replaces the whole by another term.
    pub(crate) fn set(&mut self, root: TermId) {
        self.root = root;
        self.globals.look_at(&self.terms, root);
    }

    /// The program: `let`s at the outside are bindings again.
    ///
    /// # Errors
    /// If names are not in scope.
    pub(crate) fn program(&self) -> Result<Program, ScopeError> {
        let (mut names, mut roots, mut rest) = (Vec::new(), Vec::new(), self.root);
        while let Term::Let(name, value, body) = self.terms.get(rest) {
            names.push(*name);
            roots.push(*value);
            rest = *body;
        }
        names.push(self.result);
        roots.push(rest);
        let (terms, roots) = self.terms.extract(&roots);
        let bindings = names.into_iter().zip(roots).map(|(name, term)| Binding { name, term }).collect();
        let program = Program { bindings, terms, ..self.frame.clone() };
        program.check()?;
        Ok(program)
    }

    /// Refuses shapes that depend on indices, which Core does not have.
    pub(crate) fn has_regular_shapes(&self) -> Result<(), String> {
        for id in self.terms.reachable([self.root]) {
            for size in self.terms.ty(id).shape.iter() {
                let mut names = BTreeSet::new();
                size.collect_names(&mut names);
                if let Some(index) = names.iter().find(|name| !self.globals.sizes.contains(name)) {
                    let term = shown(&self.terms, id);
                    return Err(format!("the size {size} of `{term}` would depend on the index {index}"));
                }
            }
        }
        Ok(())
    }

    /// Refuses terms that would take too long.
    pub(crate) fn is_manageable(&self) -> Result<(), String> {
        let depth = depth_of(&self.terms, self.root);
        if depth > MAX_NESTING {
            return Err(format!("the program is nested {depth} levels deep; a derivation can have {MAX_NESTING}"));
        }
        let size = tree_size(&self.terms, self.root);
        if size > MAX_SIZE {
            return Err(format!("the program has {size} terms; a derivation can have {MAX_SIZE}"));
        }
        Ok(())
    }
}
