//! Scalars: the value of a term at given indices, as a term of the loops.
//!
//! As in the meaning of Core (TeIL, Fig. 6), a tensor is a function from indices to scalars. On the way down a selection
//! adds its indices in front and a generation takes the first one away, so reading a generated element inlines it
//! (beta); a reduction becomes an accumulator and a loop *before* the statement that needs the value; `if` and `guard`
//! become a local that is assigned under the condition, so no access leaves the condition that made it safe.
//!
//! No recursion over the depth of scalar expressions, only over loops and conditions.

use std::collections::HashMap;

use certen_core::{Term, TermId};
use certen_index::Ix;

use super::store::Destination;
use super::{Bound, Choice, Env, Key, Lowered, Lowering, MAX_STEPS, Stored, bad_index, ill_typed, no_part, not_yet};

enum Pending {
    /// Compute the value of a term at indices.
    Value(TermId, Env, Vec<Ix>),
    /// Build an operation from the values of its parts.
    Combine(TermId),
    /// The value just computed is that of this term.
    Remember(Key),
}

impl Lowering<'_> {
    /// Takes selections, selected generations, `let`s and decided conditions off a term.
    pub(super) fn head(
        &mut self,
        mut term: TermId,
        mut env: Env,
        mut indices: Vec<Ix>,
    ) -> Lowered<(TermId, Env, Vec<Ix>)> {
        loop {
            self.steps += 1;
            if self.steps > MAX_STEPS {
                return Err(not_yet("a term that becomes this large when its parts are inlined")
                    .note("give the parts that are used several times a name of their own"));
            }
            match self.term(term) {
                Term::Select(tensor, own) => {
                    let own = own.iter().map(|ix| self.ix(env, ix)).collect::<Lowered<Vec<Ix>>>()?;
                    indices.splice(0..0, own);
                    term = *tensor;
                }
                Term::Gen(name, range, body) if !indices.is_empty() => {
                    let index = self.ix(env, &range.lo)?.add(&indices.remove(0)).map_err(bad_index)?;
                    env = self.bind(env, *name, Bound::Index(index));
                    term = *body;
                }
                Term::Let(name, value, body) => {
                    env = self.with_let(*name, *value, env)?;
                    term = *body;
                }
                Term::Iterate(..) => {
                    self.whole(term, env)?;
                    return Ok((term, env, indices));
                }
                _ => match self.reshaped(term, env, &mut indices)? {
                    Some(inner) => term = inner,
                    None => match self.branches(term, env, &indices)? {
                        Some(Choice { cond, then, .. }) if cond.is_always() => (term, indices) = then,
                        Some(Choice { cond, otherwise: Some(otherwise), .. }) if cond.is_never() => {
                            (term, indices) = otherwise;
                        }
                        _ => return Ok((term, env, indices)),
                    },
                },
            }
        }
    }

    /// The value of a term at indices, as many as it has dimensions; statements that it needs are pushed before.
    pub(super) fn value(&mut self, term: TermId, env: Env, indices: Vec<Ix>) -> Lowered<TermId> {
        let mut tasks = vec![Pending::Value(term, env, indices)];
        let mut values: Vec<TermId> = Vec::new();
        while let Some(task) = tasks.pop() {
            let value = match task {
                Pending::Value(id, env, indices) => {
                    let key: Key = (id, env, indices.into());
                    if let Some(&known) = self.blocks.iter().rev().find_map(|block| block.known.get(&key)) {
                        values.push(known);
                        continue;
                    }
                    let (id, env, indices) = self.head(key.0, key.1, key.2.to_vec())?;
                    let term = self.term(id);
                    match term {
                        Term::Ref(name, _) => {
                            let Stored { name, ty } = self.stored(env, *name)?;
                            self.out.element(name, ty, indices).map_err(ill_typed)?
                        }
                        Term::Table(table) => {
                            let Stored { name, ty } = self.constant(table);
                            self.out.element(name, ty, indices).map_err(ill_typed)?
                        }
                        Term::Literal(..) | Term::Undefined(_) => self.out.add(term.clone()).map_err(ill_typed)?,
                        Term::Index(ix, elem) => {
                            let ix = self.ix(env, ix)?;
                            self.out.add(Term::Index(ix, *elem)).map_err(ill_typed)?
                        }
                        Term::Unary(..) | Term::Binary(..) | Term::Choose(..) | Term::Fma(..) | Term::Cast(..) => {
                            tasks.extend([Pending::Remember(key), Pending::Combine(id)]);
                            let parts = term.parts().into_iter().rev();
                            tasks.extend(parts.map(|part| Pending::Value(part, env, Vec::new())));
                            continue;
                        }
                        Term::Reduce(..) => {
                            let value = self.reduction(id, env, indices)?;
                            self.block().known.insert(key, value);
                            value
                        }
                        Term::Iterate(.., at) => {
                            let stored = self.whole(id, env)?.get(*at).cloned().ok_or_else(no_part)?;
                            self.out.element(stored.name, stored.ty, indices).map_err(ill_typed)?
                        }
                        Term::Flatten(_) => {
                            let stored = self.whole(id, env)?.first().cloned().ok_or_else(no_part)?;
                            self.out.element(stored.name, stored.ty, indices).map_err(ill_typed)?
                        }
                        _ if self.branches(id, env, &indices)?.is_some() => {
                            let (name, value) = self.local("value", self.program.terms.ty(id).elem, None)?;
                            self.into(id, env, indices, Destination::local(name))?;
                            self.block().known.insert(key, value);
                            value
                        }
                        _ => return Err(no_part()),
                    }
                }
                Pending::Combine(id) => {
                    let term = self.term(id);
                    let parts = term.parts();
                    let computed = values.split_off(values.len().checked_sub(parts.len()).ok_or_else(no_part)?);
                    let known: HashMap<TermId, TermId> = parts.into_iter().zip(computed).collect();
                    let combined = term.clone().with_parts(|part| known.get(&part).copied().unwrap_or(part));
                    self.out.add(combined).map_err(ill_typed)?
                }
                Pending::Remember(key) => {
                    if let Some(&value) = values.last() {
                        self.block().known.insert(key, value);
                    }
                    continue;
                }
            };
            values.push(value);
        }
        values.pop().ok_or_else(no_part)
    }
}
