//! A rewrite at a place: its arguments understood, its left side matched, its conditions asked, its right side built.

use std::collections::BTreeSet;

use certen_core::{TermId, Terms};
use certen_index::{Condition, Ix, Status};
use certen_syntax::Name;
use rustc_hash::FxHashMap;

use crate::build::Builder;
use crate::context::Context;
use crate::found::{Abstracted, Locals, Matched};
use crate::globals::Globals;
use crate::matching::{Matcher, Misfit};
use crate::pattern::{Binder, Pattern};
use crate::rewrite::{ParameterKind, ParsedRewrite, Rewrite};
use certen_core::script::ScriptArgKind;

/// A rewrite with its arguments.
pub(crate) struct RewriteCall {
    pub rewrite: &'static Rewrite,
    pub parsed: &'static ParsedRewrite,
    pub backwards: bool,
    /// The arguments by the names of their parameters.
    pub args: Vec<(&'static str, ParameterKind, ScriptArgKind)>,
}

/// A rewrite that is tried at a place.
pub(crate) struct Site<'a> {
    pub terms: &'a mut Terms,
    pub globals: &'a Globals,
    /// The term.
    pub at: TermId,
    /// What is known there.
    pub context: &'a Context,
    pub order: &'a RewriteCall,
    /// What has to hold, and what is known of it.
    pub conditions: Vec<Condition>,
}

/// What a rewrite makes of a term.
pub(crate) struct Rewritten {
    pub term: TermId,
    pub conditions: Vec<Condition>,
}

impl Rewritten {
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
    /// What is matched and built here. Conditions may be open or fail.
    ///
    /// # Errors
    /// Why it does not fit.
    pub(crate) fn by_pattern(&mut self) -> Result<TermId, Misfit> {
        let RewriteCall { parsed, backwards, .. } = self.order;
        let (from, to) = if *backwards { (&parsed.right, &parsed.left) } else { (&parsed.left, &parsed.right) };
        let mut found = Matched { formals: parsed.formals.clone(), ..Matched::default() };
        let (mut given, mut filters) = (FxHashMap::default(), FxHashMap::default());
        let determined = &parsed.determined[usize::from(*backwards)];
        for (name, kind, value) in &self.order.args {
            let name = Name::new(name);
            match (kind, value) {
                (ParameterKind::Fresh, ScriptArgKind::Ix(ix)) => {
                    if let Some(own) = ix.as_var().filter(|_| !determined.contains(&name)) {
                        given.insert(name, own);
                        found.names.insert(name, own);
                    }
                }
                (_, ScriptArgKind::Ix(ix)) => {
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
                (_, ScriptArgKind::Cond(cond)) => {
                    found.conditions.insert(name, Abstracted { parameters: None, body: cond.clone() });
                }
                (_, ScriptArgKind::Pattern(text)) => {
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
        found: &'b Matched,
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
        self.builder(&Matched::default(), &given, elem).build(pattern)
    }

    /// The argument for a parameter.
    pub(crate) fn arg(&self, name: &str) -> Option<&ScriptArgKind> {
        self.order.args.iter().find(|(parameter, ..)| *parameter == name).map(|(_, _, value)| value)
    }

    /// The name that a script gives for a parameter.
    pub(crate) fn name(&self, name: &str) -> Option<Name> {
        match self.arg(name) {
            Some(ScriptArgKind::Ix(ix)) => Ix::as_var(ix),
            _ => None,
        }
    }
}
