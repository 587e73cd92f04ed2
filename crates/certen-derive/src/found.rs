//! What metavariables stand for, and index expressions and conditions of patterns with these values.

use certen_core::{Binary, Range, ReduceOp, Term, TermId, Terms, Unary};
use certen_index::{Cond, Condition, Facts, Ix, IxError, Proof, Status};
use certen_syntax::Name;
use rustc_hash::FxHashMap;

use crate::context::in_range;
use crate::pattern::{CondPattern, IndexPattern};

/// Something with parameters: indices and tensors that arguments take the place of.
#[derive(Clone, Debug)]
pub(crate) struct Abstracted<T> {
    /// None if a script has given it: then it has the program's names for what the rewrite calls its parameters.
    pub parameters: Option<Vec<Name>>,
    pub body: T,
}

/// What a match has found.
#[derive(Clone, Default, Debug)]
pub(crate) struct Matched {
    /// The program's names for what the pattern binds: indices and tensors.
    pub names: FxHashMap<Name, Name>,
    pub indices: FxHashMap<Name, Abstracted<Ix>>,
    pub conditions: FxHashMap<Name, Abstracted<Cond>>,
    pub terms: FxHashMap<Name, Abstracted<TermId>>,
    pub reduce: Option<ReduceOp>,
    pub unary: Option<Unary>,
    pub binary: Option<Binary>,
    pub reshape: Option<Term>,
    /// What the rewrite calls the parameters of metavariables.
    pub formals: FxHashMap<Name, Vec<Name>>,
}

/// Names that stand for other expressions than the match has found: what the built side binds.
pub(crate) type Locals = Vec<(Name, Ix)>;

/// An expression whose value is not known yet in text: the mark of a metavariable.
pub(crate) fn unknown(name: Name) -> Name {
    Name::new(&format!("?{name}"))
}

impl Matched {
    /// The value of an expression. What is unknown stands in it by its mark, and is listed.
    ///
    /// None if it cannot be said: a divisor is unknown or no positive number, or a value too large.
    pub(crate) fn ix(&self, terms: &Terms, index: &IndexPattern, locals: &Locals, open: &mut Vec<Name>) -> Option<Ix> {
        let both = |a: &IndexPattern, b: &IndexPattern, open: &mut Vec<Name>| {
            Some((self.ix(terms, a, locals, open)?, self.ix(terms, b, locals, open)?))
        };
        let divided =
            |a: &IndexPattern, b: &IndexPattern, open: &mut Vec<Name>, by: fn(&Ix, i64) -> Result<Ix, IxError>| {
                let (a, b) = both(a, b, open)?;
                by(&a, b.as_constant()?).ok()
            };
        match index {
            IndexPattern::Any => None,
            IndexPattern::Number(value) => Some(Ix::from(*value)),
            IndexPattern::Known(name) => Some(Ix::var(*name)),
            IndexPattern::Var(name) => {
                if let Some((_, ix)) = locals.iter().rev().find(|(local, _)| local == name) {
                    return Some(ix.clone());
                }
                if let Some(own) = self.names.get(name) {
                    return Some(Ix::var(*own));
                }
                if let Some(value) = self.indices.get(name) {
                    return Some(value.body.clone());
                }
                if !open.contains(name) {
                    open.push(*name);
                }
                Some(Ix::var(unknown(*name)))
            }
            IndexPattern::Meta(name, args) => {
                let Some(value) = self.indices.get(name) else {
                    if !open.contains(name) {
                        open.push(*name);
                    }
                    return None;
                };
                let values = self.arguments(terms, args, locals, open)?;
                let by = self.by(*name, &value.parameters, values);
                value.body.substitute(&|name| by.get(&name).cloned()).ok()
            }
            IndexPattern::Add(a, b) => both(a, b, open).and_then(|(a, b)| a.add(&b).ok()),
            IndexPattern::Sub(a, b) => both(a, b, open).and_then(|(a, b)| a.sub(&b).ok()),
            IndexPattern::Mul(a, b) => both(a, b, open).and_then(|(a, b)| a.mul(&b).ok()),
            IndexPattern::FloorDiv(a, b) => divided(a, b, open, Ix::floor_div),
            IndexPattern::CeilDiv(a, b) => divided(a, b, open, Ix::ceil_div),
            IndexPattern::Mod(a, b) => divided(a, b, open, Ix::modulo),
            IndexPattern::Min(a, b) => both(a, b, open).and_then(|(a, b)| a.min_with(&b).ok()),
            IndexPattern::Max(a, b) => both(a, b, open).and_then(|(a, b)| a.max_with(&b).ok()),
            IndexPattern::Size(name, at) => match self.terms.get(name) {
                Some(value) => terms.ty(value.body).shape.get(*at).cloned(),
                None => {
                    if !open.contains(name) {
                        open.push(*name);
                    }
                    None
                }
            },
        }
    }

    /// The value of an expression in which nothing is unknown.
    pub(crate) fn whole_ix(&self, terms: &Terms, index: &IndexPattern, locals: &Locals) -> Option<Ix> {
        let mut open = Vec::new();
        self.ix(terms, index, locals, &mut open).filter(|_| open.is_empty())
    }

    fn arguments(
        &self,
        terms: &Terms,
        args: &[IndexPattern],
        locals: &Locals,
        open: &mut Vec<Name>,
    ) -> Option<Vec<Ix>> {
        args.iter().map(|arg| self.ix(terms, arg, locals, open)).collect()
    }

    /// Which name is replaced by which argument.
    fn by(&self, name: Name, parameters: &Option<Vec<Name>>, values: Vec<Ix>) -> FxHashMap<Name, Ix> {
        self.parameters(name, parameters).into_iter().zip(values).collect()
    }

    /// What is replaced by arguments in the value of a metavariable.
    pub(crate) fn parameters(&self, name: Name, parameters: &Option<Vec<Name>>) -> Vec<Name> {
        match (parameters, self.formals.get(&name)) {
            (Some(parameters), _) => parameters.clone(),
            (None, Some(formals)) => {
                formals.iter().map(|formal| self.names.get(formal).copied().unwrap_or(*formal)).collect()
            }
            (None, None) => Vec::new(),
        }
    }

    /// The value of a condition, or None as for expressions.
    pub(crate) fn cond(
        &self,
        terms: &Terms,
        cond: &CondPattern,
        locals: &Locals,
        open: &mut Vec<Name>,
    ) -> Option<Cond> {
        let compared =
            |a: &IndexPattern, b: &IndexPattern, open: &mut Vec<Name>, by: fn(&Ix, &Ix) -> Result<Cond, IxError>| {
                by(&self.ix(terms, a, locals, open)?, &self.ix(terms, b, locals, open)?).ok()
            };
        match cond {
            CondPattern::Any => None,
            CondPattern::Meta(name, args) => {
                let Some(value) = self.conditions.get(name) else {
                    if !open.contains(name) {
                        open.push(*name);
                    }
                    return None;
                };
                let values = self.arguments(terms, args, locals, open)?;
                let by = self.by(*name, &value.parameters, values);
                value.body.substitute(&|name| by.get(&name).cloned()).ok()
            }
            CondPattern::Le(a, b) => compared(a, b, open, Cond::le),
            CondPattern::Lt(a, b) => compared(a, b, open, Cond::lt),
            CondPattern::Eq(a, b) => compared(a, b, open, Cond::eq),
            CondPattern::And(all) => {
                all.iter().try_fold(Cond::always(), |sum, part| Some(sum.and(self.cond(terms, part, locals, open)?)))
            }
            CondPattern::Or(any) => {
                any.iter().try_fold(Cond::never(), |sum, part| Some(sum.or(self.cond(terms, part, locals, open)?)))
            }
            CondPattern::Not(inner) => self.cond(terms, inner, locals, open)?.not().ok(),
        }
    }

    /// The value of a condition in which nothing is unknown.
    pub(crate) fn whole_cond(&self, terms: &Terms, cond: &CondPattern, locals: &Locals) -> Option<Cond> {
        let mut open = Vec::new();
        self.cond(terms, cond, locals, &mut open).filter(|_| open.is_empty())
    }

    /// What is known of a side condition, where the facts hold.
    ///
    /// # Errors
    /// The first name that has no value.
    pub(crate) fn side(
        &self,
        terms: &Terms,
        side: &crate::pattern::SideCondition,
        facts: &Facts,
    ) -> Result<Condition, String> {
        let cannot = |open: &[Name]| match open.first() {
            Some(name) => format!("the condition `{}` speaks of {name}, which is not determined", side.text),
            None => format!("the condition `{}` cannot be said of these indices", side.text),
        };
        let mut facts = facts.clone();
        let mut open = Vec::new();
        let mut locals = Locals::new();
        let mut quantified = Vec::new();
        let mut given = Vec::new();
        for binder in &side.forall {
            let own = self.names.get(&binder.name).copied();
            let own = own.unwrap_or_else(|| Name::new(&format!("{}'", binder.name)));
            let range = match (
                self.ix(terms, &binder.lo, &locals, &mut open),
                self.ix(terms, &binder.hi, &locals, &mut open),
            ) {
                (Some(lo), Some(hi)) if open.is_empty() => Range { lo, hi },
                _ => return Err(cannot(&open)),
            };
            in_range(own, &range).for_each(|cond| facts.assume(cond));
            quantified.push(format!("{own} in {}..{}", range.lo, range.hi));
            locals.push((binder.name, Ix::var(own)));
        }
        for cond in &side.given {
            match self.cond(terms, cond, &locals, &mut open) {
                Some(cond) if open.is_empty() => {
                    given.push(cond.to_string());
                    facts.assume(cond);
                }
                _ => return Err(cannot(&open)),
            }
        }
        let goal = match self.cond(terms, &side.goal, &locals, &mut open) {
            Some(goal) if open.is_empty() => goal,
            _ => return Err(cannot(&open)),
        };
        let mut what = self.said(terms, &side.goal, &locals).unwrap_or_else(|| goal.to_string());
        if !given.is_empty() {
            what += &format!(" where {}", given.join(" and "));
        }
        if !quantified.is_empty() {
            what += &format!(", for all {}", quantified.join(", "));
        }
        Ok(Condition { what, about: None, status: status(&facts, goal) })
    }
}

impl Matched {
    /// A condition as the rewrite says it, with values: `m + 1 <= m`, where its normal form is `false`.
    fn said(&self, terms: &Terms, cond: &CondPattern, locals: &Locals) -> Option<String> {
        let pair = |a: &IndexPattern, sign: &str, b: &IndexPattern| {
            let value = |index: &IndexPattern| self.whole_ix(terms, index, locals);
            Some(format!("{} {sign} {}", value(a)?, value(b)?))
        };
        match cond {
            CondPattern::Le(a, b) => pair(a, "<=", b),
            CondPattern::Lt(a, b) => pair(a, "<", b),
            CondPattern::Eq(a, b) => pair(a, "==", b),
            CondPattern::And(all) if !all.is_empty() => {
                let all: Option<Vec<String>> = all.iter().map(|part| self.said(terms, part, locals)).collect();
                Some(all?.join(" && "))
            }
            other => self.whole_cond(terms, other, locals).map(|cond| cond.to_string()),
        }
    }
}

/// What is known of a goal.
pub(crate) fn status(facts: &Facts, goal: Cond) -> Status {
    match Proof::find(facts, goal) {
        Ok(proof) => Status::Proved(vec![proof]),
        Err(certen_index::Decision::Refuted(found)) if found.0.is_empty() => Status::Fails("it never holds".into()),
        Err(certen_index::Decision::Refuted(found)) => Status::Fails(format!("not for {found}")),
        Err(_) => Status::Open,
    }
}
