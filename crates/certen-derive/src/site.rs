//! A rewrite at a place: its arguments understood, its left side matched, its conditions asked, its right side built.

use std::collections::{BTreeSet, HashSet};

use certen_core::{Program, TensorType, TermId, Terms};
use certen_index::{Condition, Ix, Status};
use certen_syntax::Name;
use rustc_hash::FxHashMap;

use crate::build::Builder;
use crate::context::Context;
use crate::found::{Abstracted, Found, Locals};
use crate::matching::{Matcher, Misfit};
use crate::pattern::{Binder, Pattern, Words, parse};
use crate::rewrite::{How, Kind, Parsed, Rewrite};
use crate::script::ArgKind;

/// The program's names around and inside of its one term.
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
                certen_core::Term::Let(name, ..) => {
                    self.tensors.insert(*name);
                }
                certen_core::Term::Iterate(_, step, states, _) => {
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

/// A rewrite with its arguments.
pub(crate) struct Order {
    pub rewrite: &'static Rewrite,
    pub parsed: &'static Parsed,
    pub backwards: bool,
    /// The arguments by the names of their parameters.
    pub args: Vec<(&'static str, Kind, ArgKind)>,
}

/// A rewrite that is tried at a place.
pub(crate) struct Site<'a> {
    pub terms: &'a mut Terms,
    pub globals: &'a Globals,
    /// The term.
    pub at: TermId,
    /// What is known there.
    pub context: &'a Context,
    pub order: &'a Order,
    /// What has to hold, and what is known of it.
    pub conditions: Vec<Condition>,
}

/// What a rewrite makes of a term.
pub(crate) struct Made {
    pub term: TermId,
    pub conditions: Vec<Condition>,
}

impl Made {
    /// Whether all conditions are proved.
    pub(crate) fn is_proved(&self) -> bool {
        self.conditions.iter().all(|condition| matches!(condition.status, Status::Proved(_)))
    }

    /// The first condition that fails.
    pub(crate) fn failure(&self) -> Option<&Condition> {
        self.conditions.iter().find(|condition| matches!(condition.status, Status::Fails(_)))
    }
}

impl Site<'_> {
    /// Takes the rewrite here. Conditions may be open or fail.
    ///
    /// # Errors
    /// Why it does not fit.
    pub(crate) fn make(mut self) -> Result<Made, Misfit> {
        let term = match self.order.rewrite.how {
            How::Code(code) => code(&mut self)?,
            How::Pattern => self.by_pattern()?,
        };
        Ok(Made { term, conditions: self.conditions })
    }

    fn by_pattern(&mut self) -> Result<TermId, Misfit> {
        let Order { parsed, backwards, .. } = self.order;
        let (from, to) = if *backwards { (&parsed.right, &parsed.left) } else { (&parsed.left, &parsed.right) };
        let mut found = Found { formals: parsed.formals.clone(), ..Found::default() };
        let (mut given, mut filters) = (FxHashMap::default(), FxHashMap::default());
        let determined = &parsed.determined[usize::from(*backwards)];
        for (name, kind, value) in &self.order.args {
            let name = Name::new(name);
            match (kind, value) {
                (Kind::Fresh, ArgKind::Ix(ix)) => {
                    if let Some(own) = ix.as_var().filter(|_| !determined.contains(&name)) {
                        given.insert(name, own);
                        found.names.insert(name, own);
                    }
                }
                (_, ArgKind::Ix(ix)) => {
                    let mut names = BTreeSet::new();
                    ix.collect_names(&mut names);
                    let is_unknown =
                        |name: &&Name| !self.globals.sizes.contains(name) && !self.context.indices.contains(name);
                    if let Some(inner) = names.iter().find(is_unknown) {
                        let why = format!("{name} is to be {ix}, but {inner} is not bound around this place");
                        return Err(Misfit { why, matched: usize::MAX });
                    }
                    found.indices.insert(name, Abstracted { parameters: None, body: ix.clone() });
                }
                (_, ArgKind::Cond(cond)) => {
                    found.conditions.insert(name, Abstracted { parameters: None, body: cond.clone() });
                }
                (_, ArgKind::Pattern(text)) => {
                    let pattern = self.globals.pattern(text).map_err(|why| Misfit { why, matched: usize::MAX })?;
                    if determined.contains(&name) {
                        filters.insert(name, pattern);
                    } else {
                        let body = self.literally(&pattern)?;
                        found.terms.insert(name, Abstracted { parameters: None, body });
                    }
                }
            }
        }
        let mut matcher = Matcher::new(self.terms, found, self.context, false);
        matcher.filters = filters;
        matcher.run(from, self.at)?;
        let found = std::mem::take(&mut matcher.found);
        let facts = self.context.facts(self.terms);
        for side in &parsed.sides {
            let condition = found.side(self.terms, side, &facts).map_err(|why| Misfit { why, matched: usize::MAX })?;
            let fails = matches!(condition.status, Status::Fails(_));
            self.conditions.push(condition);
            if fails {
                // Nothing needs to be built.
                return Ok(self.at);
            }
        }
        let elem = self.terms.ty(self.at).elem;
        self.builder(&found, &given, elem).build(to)
    }

    /// A builder for this place.
    pub(crate) fn builder<'b>(
        &'b mut self,
        found: &'b Found,
        given: &'b FxHashMap<Name, Name>,
        elem: certen_core::ElemType,
    ) -> Builder<'b> {
        let names = self.terms.names_of(self.at);
        Builder {
            terms: self.terms,
            inside: names.bound.into_iter().chain(names.free).collect(),
            found,
            context: self.context.clone(),
            given,
            globals: self.globals,
            elem,
            locals: Locals::new(),
            tensors: Vec::new(),
        }
    }

    /// The term that a script's pattern is, if nothing in it is left open.
    ///
    /// # Errors
    /// What is left open, or how the term would be ill-typed.
    pub(crate) fn literally(&mut self, pattern: &Pattern) -> Result<TermId, Misfit> {
        let elem = self.terms.ty(self.at).elem;
        let mut given = FxHashMap::default();
        let mut todo = vec![pattern];
        while let Some(next) = todo.pop() {
            if let Pattern::Gen(Binder { name, .. }, _)
            | Pattern::Reduce(_, Binder { name, .. }, ..)
            | Pattern::Let(name, ..) = next
                && !self.context.binds(*name)
                && !self.globals.names.contains(name)
            {
                given.insert(*name, *name);
            }
            todo.extend(next.parts());
        }
        self.builder(&Found::default(), &given, elem).build(pattern)
    }

    /// The argument for a parameter.
    pub(crate) fn arg(&self, name: &str) -> Option<&ArgKind> {
        self.order.args.iter().find(|(parameter, ..)| *parameter == name).map(|(_, _, value)| value)
    }

    /// The name that a script gives for a parameter.
    pub(crate) fn name(&self, name: &str) -> Option<Name> {
        match self.arg(name) {
            Some(ArgKind::Ix(ix)) => Ix::as_var(ix),
            _ => None,
        }
    }
}
