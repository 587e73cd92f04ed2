//! Building: the term that a pattern says, with the values that a match has found.
//!
//! Everything is built by [`Terms::add`], so it is typed again. A binder gets the name of the matched one that the
//! pattern calls the same; else the name that the script gives; else the pattern's own, in which the pattern's name of
//! a matched binder that it begins with is replaced by the program's: where `i` is `row`, `io` is `rowo`, and the other
//! way round. Names are made fresh where they are taken.

use std::collections::BTreeSet;

use certen_core::{ElemType, Literal, Range, Term, TermId, Terms};
use certen_index::Ix;
use certen_syntax::Name;
use rustc_hash::FxHashMap;

use crate::context::Context;
use crate::found::{Locals, Matched};
use crate::globals::Globals;
use crate::matching::Misfit;
use crate::names::{Substitution, instantiate, select};
use crate::pattern::{Argument, Binder, CondPattern, IndexPattern, Pattern};

/// What building needs to know.
pub(crate) struct Builder<'a> {
    pub terms: &'a mut Terms,
    pub found: &'a Matched,
    /// What is bound around the place, and by binders that are built.
    pub context: Context,
    /// Names that a script gives to binders.
    pub given: &'a FxHashMap<Name, Name>,
    pub globals: &'a Globals,
    /// Names that occur in the term which is rewritten: new ones are others, so that none of these has to change.
    pub inside: BTreeSet<Name>,
    /// The element type of numbers.
    pub elem: ElemType,
    pub locals: Locals,
    pub tensors: Vec<(Name, TermId)>,
}

impl Builder<'_> {
    fn undetermined(&self, what: &str) -> Misfit {
        Misfit { why: format!("{what} is not determined by the term; give it as a parameter"), matched: usize::MAX }
    }

    /// The term. One arm for each form of patterns.
    ///
    /// # Errors
    /// What is not determined, or how the term would be ill-typed.
    pub(crate) fn build(&mut self, pattern: &Pattern) -> Result<TermId, Misfit> {
        let term = match pattern {
            Pattern::Any => return Err(self.undetermined("`_`")),
            Pattern::Meta(name, args) => return self.meta(*name, args),
            Pattern::Tensor(name) => return self.tensor(*name),
            Pattern::Gen(binder, body) => {
                let range = self.range(binder)?;
                let (name, body) = self.under(binder.name, &range, |builder| builder.build(body))?;
                Term::Gen(name, range, body)
            }
            Pattern::Reduce(op, binder, cond, body) => {
                let Some(op) = op.or(self.found.reduce) else { return Err(self.undetermined("the reduction")) };
                let range = self.range(binder)?;
                let (name, (cond, body)) =
                    self.under(binder.name, &range, |builder| Ok((builder.cond(cond)?, builder.build(body)?)))?;
                Term::Reduce(op, name, range, cond, body)
            }
            Pattern::Guard(cond, body) => {
                let (cond, body) = (self.cond(cond)?, self.build(body)?);
                if cond.is_always() {
                    return Ok(body);
                }
                Term::Guard(cond, body)
            }
            Pattern::If(cond, a, b) => Term::If(self.cond(cond)?, self.build(a)?, self.build(b)?),
            Pattern::Let(name, value, body) => {
                let value = self.build(value)?;
                let own = self.name_for(*name)?;
                let ty = self.terms.ty(value).clone();
                let reference = self.terms.reference(own, ty.clone())?;
                let mark = self.context.mark();
                self.context.tensors.push((own, ty));
                self.tensors.push((*name, reference));
                let body = self.build(body);
                self.tensors.pop();
                self.context.reset(mark);
                Term::Let(own, value, body?)
            }
            Pattern::Select(tensor, indices) => {
                let tensor = self.build(tensor)?;
                let indices = indices.iter().map(|index| self.ix(index)).collect::<Result<Vec<Ix>, Misfit>>()?;
                return Ok(select(self.terms, tensor, &indices)?);
            }
            Pattern::Reshape(a) => {
                let Some(outline) = &self.found.reshape else { return Err(self.undetermined("`reshape`")) };
                let part = self.build(a)?;
                outline.clone().with_parts(|_| part)
            }
            Pattern::Flatten(a) => Term::Flatten(self.build(a)?),
            Pattern::Transpose(a) => Term::Transpose(self.build(a)?),
            Pattern::Split(k, a) => {
                let k = self.ix(k)?;
                let Some(number) = k.as_constant() else {
                    return Err(Misfit {
                        why: format!("blocks of {k}: their size has to be a number"),
                        matched: usize::MAX,
                    });
                };
                Term::Split(number, self.build(a)?)
            }
            Pattern::Concat(a, b) => Term::Concat(self.build(a)?, self.build(b)?),
            Pattern::PadLeft(k, a) => Term::PadLeft(self.ix(k)?, self.build(a)?),
            Pattern::PadRight(k, a) => Term::PadRight(self.ix(k)?, self.build(a)?),
            Pattern::TruncLeft(k, a) => Term::TruncLeft(self.ix(k)?, self.build(a)?),
            Pattern::TruncRight(k, a) => Term::TruncRight(self.ix(k)?, self.build(a)?),
            Pattern::Number(number) => {
                let literal = match (*number, self.elem) {
                    (Literal::Int(value), elem) if elem.is_float() => Literal::whole(value, elem),
                    (Literal::Float(value), ElemType::F32) => Literal::Float(f64::from(value as f32)),
                    (literal, _) => literal,
                };
                Term::Literal(literal, self.elem)
            }
            Pattern::Index(ix) => Term::Index(self.ix(ix)?, self.elem),
            Pattern::Unary(op, a) => {
                let Some(op) = op.or(self.found.unary) else { return Err(self.undetermined("`fun`")) };
                Term::Unary(op, self.build(a)?)
            }
            Pattern::Binary(op, a, b) => {
                let Some(op) = op.or(self.found.binary) else { return Err(self.undetermined("`op`")) };
                Term::Binary(op, self.build(a)?, self.build(b)?)
            }
            Pattern::Choose(a, b, c) => Term::Choose(self.build(a)?, self.build(b)?, self.build(c)?),
            Pattern::Cast(elem, a) => Term::Cast(*elem, self.build(a)?),
        };
        Ok(self.terms.add(term)?)
    }

    /// Builds inside a binder, and gives its name.
    fn under<T>(
        &mut self,
        name: Name,
        range: &Range,
        inner: impl FnOnce(&mut Self) -> Result<T, Misfit>,
    ) -> Result<(Name, T), Misfit> {
        let own = self.name_for(name)?;
        let mark = self.context.mark();
        self.context.bind(own, range);
        self.locals.push((name, Ix::var(own)));
        let built = inner(self);
        self.locals.pop();
        self.context.reset(mark);
        Ok((own, built?))
    }

    fn name_for(&self, name: Name) -> Result<Name, Misfit> {
        let taken = |name: Name| self.context.binds(name) || self.globals.names.contains(&name);
        if let Some(given) = self.given.get(&name) {
            if taken(*given) {
                return Err(Misfit { why: format!("the name {given} is taken"), matched: usize::MAX });
            }
            return Ok(*given);
        }
        if let Some(matched) = self.found.names.get(&name) {
            return Ok(Name::fresh(matched.as_str(), taken));
        }
        let begins = |(pattern, own): (&Name, &Name)| {
            name.as_str().strip_prefix(pattern.as_str()).map(|rest| format!("{own}{rest}"))
        };
        // The way back: `i`, where `io` is `rowo`.
        let ends = |(pattern, own): (&Name, &Name)| {
            let rest = pattern.as_str().strip_prefix(name.as_str()).filter(|rest| !rest.is_empty())?;
            own.as_str().strip_suffix(rest).filter(|base| !base.is_empty()).map(str::to_owned)
        };
        let names = || self.found.names.iter();
        let base = names().filter_map(begins).max().or_else(|| names().filter_map(ends).max());
        let base = base.unwrap_or_else(|| name.to_string());
        Ok(Name::fresh(&base, |name| taken(name) || self.inside.contains(&name)))
    }

    fn range(&mut self, binder: &Binder) -> Result<Range, Misfit> {
        Ok(Range { lo: self.ix(&binder.lo)?, hi: self.ix(&binder.hi)? })
    }

    fn ix(&self, index: &IndexPattern) -> Result<Ix, Misfit> {
        let mut open = Vec::new();
        match (self.found.ix(self.terms, index, &self.locals, &mut open), open.first()) {
            (Some(ix), None) => Ok(ix),
            (_, Some(name)) => Err(self.undetermined(name.as_str())),
            (None, None) => Err(Misfit { why: format!("`{index}` has no value here"), matched: usize::MAX }),
        }
    }

    fn cond(&self, cond: &CondPattern) -> Result<certen_index::Cond, Misfit> {
        let mut open = Vec::new();
        match (self.found.cond(self.terms, cond, &self.locals, &mut open), open.first()) {
            (Some(cond), None) => Ok(cond),
            (_, Some(name)) => Err(self.undetermined(name.as_str())),
            (None, None) => Err(Misfit { why: "a condition has no value here".into(), matched: usize::MAX }),
        }
    }

    fn tensor(&mut self, name: Name) -> Result<TermId, Misfit> {
        if let Some((_, reference)) = self.tensors.iter().rev().find(|(tensor, _)| *tensor == name) {
            return Ok(*reference);
        }
        let around = self.context.tensors.iter().rev().find(|(tensor, _)| *tensor == name).map(|(_, ty)| ty.clone());
        match around.or_else(|| self.globals.inputs.get(&name).cloned()) {
            Some(ty) => Ok(self.terms.reference(name, ty)?),
            None => Err(Misfit { why: format!("there is no tensor {name} at this place"), matched: usize::MAX }),
        }
    }

    fn meta(&mut self, name: Name, args: &[Argument]) -> Result<TermId, Misfit> {
        let Some(value) = self.found.terms.get(&name) else { return Err(self.undetermined(name.as_str())) };
        let mut substitution = Substitution::default();
        let parameters = self.found.parameters(name, &value.parameters);
        for (own, arg) in parameters.into_iter().zip(args) {
            match arg {
                Argument::Index(index) => {
                    substitution.indices.insert(own, self.ix(index)?);
                }
                Argument::Term(pattern) => {
                    let term = self.build(pattern)?;
                    // What is put in gets the new names, not what it is put into.
                    let (context, bound) = (&self.context, self.terms.names_of(value.body).bound);
                    let taken = |name: Name| bound.contains(&name) || context.binds(name);
                    let used = |name: Name| self.inside.contains(&name);
                    let term = instantiate(self.terms, term, Substitution::default(), &taken, &used)?;
                    substitution.tensors.insert(own, term);
                }
            }
        }
        let (context, globals, inside) = (&self.context, self.globals, &self.inside);
        let around = |name: Name| context.binds(name) || globals.names.contains(&name);
        Ok(instantiate(self.terms, value.body, substitution, &around, &|name| inside.contains(&name))?)
    }
}
