//! Programs of Core: inputs, a flat list of bindings, outputs.

use std::collections::{HashMap, HashSet};
use std::fmt;

use certen_index::{Cond, Ix, IxError};
use certen_syntax::Name;

use crate::ops::{Binary, ReduceOp};
use crate::term::{Range, Term, TermId, Terms};
use crate::types::TensorType;

/// A named tensor of a program's interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: Name,
    /// Its type.
    pub ty: TensorType,
}

/// A name for a term; the term's type is that of [`Terms::ty`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Binding {
    /// Its name, unique in the program.
    pub name: Name,
    /// What it stands for; it refers to inputs and earlier bindings only.
    pub term: TermId,
}

/// A program of Core.
#[derive(Clone, Debug)]
pub struct Program {
    /// What it is called; a C function will have this name.
    pub name: Name,
    /// The symbolic sizes, in the order of the C function's parameters.
    pub sizes: Vec<Name>,
    /// What holds of the sizes. [`Terms::facts`] holds the same for proving.
    pub facts: Vec<Cond>,
    /// The tensors that the caller gives.
    pub inputs: Vec<Parameter>,
    /// The computation, in order.
    pub bindings: Vec<Binding>,
    /// What the caller gets: a name of its own, and the binding or input that it shows.
    pub outputs: Vec<(Name, Name)>,
    /// The terms of all bindings.
    pub terms: Terms,
}

/// Why a program is not well-formed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScopeError(pub String);

impl fmt::Display for ScopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ScopeError {}

impl Program {
    /// The type of an input or binding.
    pub fn type_of(&self, name: Name) -> Option<&TensorType> {
        let input = || self.inputs.iter().find(|p| p.name == name).map(|p| &p.ty);
        let binding = || self.bindings.iter().rev().find(|b| b.name == name).map(|b| self.terms.ty(b.term));
        input().or_else(binding)
    }

    /// The types of all inputs and bindings.
    pub fn types(&self) -> HashMap<Name, TensorType> {
        let inputs = self.inputs.iter().map(|p| (p.name, p.ty.clone()));
        inputs.chain(self.bindings.iter().map(|b| (b.name, self.terms.ty(b.term).clone()))).collect()
    }

    /// Every name that the program uses for anything.
    pub fn names(&self) -> HashSet<Name> {
        let mut names: HashSet<Name> = self.sizes.iter().copied().collect();
        names.extend(self.inputs.iter().map(|input| input.name));
        names.extend(self.bindings.iter().map(|binding| binding.name));
        names.extend(self.outputs.iter().map(|(name, _)| *name));
        for (_, term) in self.terms.iter() {
            if let Term::Ref(name, _) = term {
                names.insert(*name);
            }
            names.extend(term.binders());
        }
        names
    }

    /// Checks what the types of terms cannot: names are unique, bound before they are used, never shadowed, and mean
    /// the tensor that their type says. Shapes do not depend on indices.
    ///
    /// # Errors
    /// The first violation.
    pub fn check(&self) -> Result<(), ScopeError> {
        let mut scope = ScopeCheck { program: self, indices: HashSet::new(), tensors: HashMap::new() };
        for &size in &self.sizes {
            scope.bind_index(size)?;
        }
        for input in &self.inputs {
            scope.bind_tensor(input.name, input.ty.clone())?;
        }
        for fact in &self.facts {
            scope.cond(fact)?;
        }
        for binding in &self.bindings {
            scope.term(binding.term)?;
            scope.bind_tensor(binding.name, self.terms.ty(binding.term).clone())?;
        }
        for (_, shown) in &self.outputs {
            if !scope.tensors.contains_key(shown) {
                return Err(ScopeError(format!("the output {shown} is not bound")));
            }
        }
        let names: HashSet<Name> = self.outputs.iter().map(|(name, _)| *name).collect();
        if names.len() < self.outputs.len() {
            return Err(ScopeError("two outputs have the same name".into()));
        }
        Ok(())
    }

    /// For each binding: nothing if no output needs it, else the earlier bindings that no later one reads.
    ///
    /// One pass from the end: the first reader found is the last one, and a term that was visited is not visited again.
    pub fn last_uses(&self) -> Vec<Option<Vec<Name>>> {
        let positions: HashMap<Name, usize> = self.bindings.iter().enumerate().map(|(at, b)| (b.name, at)).collect();
        let mut ends: Vec<Option<Vec<Name>>> = vec![None; self.bindings.len()];
        // What outputs show is needed to the end.
        let mut live: HashSet<Name> = self.outputs.iter().map(|(_, shown)| *shown).collect();
        let mut reached = self.terms.reachable([]);
        for (at, binding) in self.bindings.iter().enumerate().rev() {
            if !live.contains(&binding.name) {
                continue;
            }
            let mut last = Vec::new();
            reached.enter(binding.term);
            for id in &mut reached {
                if let Term::Ref(name, _) = self.terms.get(id)
                    && positions.get(name).is_some_and(|&defined| defined < at)
                    && live.insert(*name)
                {
                    last.push(*name);
                }
            }
            last.sort_unstable_by_key(|name| positions.get(name));
            ends[at] = Some(last);
        }
        ends
    }

    /// The bindings that mention a value that is not defined, and are no outputs.
    pub(crate) fn partial_bindings(&self) -> HashSet<Name> {
        let undefined = self.terms.having(|term| matches!(term, Term::Undefined(_)));
        let is_shown = |name: Name| self.outputs.iter().any(|(_, shown)| *shown == name);
        let partial = self.bindings.iter().filter(|b| undefined[b.term.index()] && !is_shown(b.name));
        partial.map(|binding| binding.name).collect()
    }

    /// How many multiplications an evaluation makes, as a polynomial in the sizes; factors of products count one each.
    /// What no output needs is not counted, and a `let` or an iteration that several results share counts once: these are
    /// the operations of the program, of which code may make more. A guarded or conditional part counts as if it were
    /// always computed, an operand of a square once.
    ///
    /// # Errors
    /// If the polynomial is too large.
    pub fn multiplications(&self) -> Result<Ix, IxError> {
        self.count(Count::multiplications().counted)
    }

    /// How many scalar operations an evaluation makes, counted as [`Program::multiplications`] counts.
    ///
    /// # Errors
    /// If the polynomial is too large.
    pub fn operations(&self) -> Result<Ix, IxError> {
        self.count(|term| match term {
            Term::Unary(..) | Term::Binary(..) | Term::Choose(..) | Term::Reduce(..) => 1,
            // A multiplication and an addition.
            Term::Fma(..) => 2,
            _ => 0,
        })
    }

    /// How many operations are made, where a term makes so many of its own each time it is evaluated: a reduction is
    /// once for each of its elements.
    fn count(&self, counted: fn(&Term) -> i64) -> Result<Ix, IxError> {
        let mut count = Count::new(counted);
        count.extend(&self.terms);
        if let Some(error) = count.counts.iter().find_map(|count| count.as_ref().err()) {
            return Err(*error);
        }
        // Each state of an iteration is a binding of its own, and so is each of its results.
        let mut iterations = HashSet::new();
        let is_new = |binding: &&Binding| match self.terms.get(binding.term) {
            Term::Iterate(times, step, states, _) => iterations.insert((times, step, states)),
            _ => true,
        };
        let needed = self.bindings.iter().zip(self.last_uses()).filter_map(|(binding, uses)| uses.map(|_| binding));
        needed.filter(is_new).try_fold(Ix::from(0), |sum, b| sum.add(&count.of(&self.terms, b.term)?))
    }
}

/// How often an operation is made in each term of an arena that may grow, as polynomials in the sizes.
pub struct Count {
    counted: fn(&Term) -> i64,
    counts: Vec<Result<Ix, IxError>>,
}

impl Count {
    /// Counts as [`Program::multiplications`] does.
    pub fn multiplications() -> Count {
        Count::new(|term| match term {
            Term::Binary(Binary::Mul, ..) | Term::Fma(..) | Term::Reduce(ReduceOp::Prod, ..) => 1,
            _ => 0,
        })
    }

    fn new(counted: fn(&Term) -> i64) -> Count {
        Count { counted, counts: Vec::new() }
    }

    /// The count of one evaluation of a term: of a tensor, all its elements. Always ask with the same arena.
    ///
    /// # Errors
    /// If the polynomial is too large.
    pub fn of(&mut self, terms: &Terms, id: TermId) -> Result<Ix, IxError> {
        self.extend(terms);
        self.counts[id.index()].clone()
    }

    /// Counts the terms that came since the last time.
    fn extend(&mut self, terms: &Terms) {
        self.counts.reserve(terms.len() - self.counts.len());
        for term in terms.since(self.counts.len()) {
            let count = self.one(terms, term);
            self.counts.push(count);
        }
    }

    fn one(&self, terms: &Terms, term: &Term) -> Result<Ix, IxError> {
        let own = Ix::from((self.counted)(term));
        let of = |id: &TermId| self.counts[id.index()].clone();
        // Most terms count nothing, and then a range need not be measured.
        let times = |range: &Range, count: Ix| match count.as_constant() {
            Some(0) => Ok(count),
            _ => range.extent(terms.facts())?.mul(&count),
        };
        match term {
            Term::Gen(_, range, body) => times(range, of(body)?),
            Term::Reduce(_, _, range, _, body) => times(range, of(body)?.add(&own)?),
            Term::Iterate(steps, _, states, _) => {
                let first = self.sharing_lets(terms, states.iter().map(|s| s.init))?;
                let next = self.sharing_lets(terms, states.iter().map(|s| s.next))?;
                first.add(&times(&Range::to(steps.clone()), next)?)
            }
            // As in a power.
            Term::Binary(_, a, b) if a == b => own.add(&of(a)?),
            _ => term.parts().iter().try_fold(own, |sum, part| sum.add(&of(part)?)),
        }
    }

    /// The count of several terms together: a `let` that stands around more than one of them counts once.
    fn sharing_lets(&self, terms: &Terms, ids: impl Iterator<Item = TermId>) -> Result<Ix, IxError> {
        let mut sum = Ix::from(0);
        let mut known = HashSet::new();
        for mut id in ids {
            while let Term::Let(name, value, body) = terms.get(id) {
                if known.insert((*name, *value)) {
                    sum = sum.add(self.counts[value.index()].as_ref().map_err(|error| *error)?)?;
                }
                id = *body;
            }
            sum = sum.add(self.counts[id.index()].as_ref().map_err(|error| *error)?)?;
        }
        Ok(sum)
    }
}

struct ScopeCheck<'a> {
    program: &'a Program,
    indices: HashSet<Name>,
    tensors: HashMap<Name, TensorType>,
}

enum ScopeVisit<'a> {
    Term(TermId),
    BindIndex(Name),
    UnbindIndex(Name),
    BindTensor(Name, &'a TensorType),
    UnbindTensor(Name),
}

impl<'a> ScopeCheck<'a> {
    fn free(&self, name: Name) -> Result<(), ScopeError> {
        if self.indices.contains(&name) || self.tensors.contains_key(&name) {
            return Err(ScopeError(format!("{name} is bound twice")));
        }
        Ok(())
    }

    fn bind_index(&mut self, name: Name) -> Result<(), ScopeError> {
        self.free(name)?;
        self.indices.insert(name);
        Ok(())
    }

    fn bind_tensor(&mut self, name: Name, ty: TensorType) -> Result<(), ScopeError> {
        self.free(name)?;
        ty.shape.iter().try_for_each(|size| self.ix(size))?;
        self.tensors.insert(name, ty);
        Ok(())
    }

    fn known<'n>(&self, names: impl IntoIterator<Item = &'n Name>) -> Result<(), ScopeError> {
        match names.into_iter().find(|name| !self.indices.contains(name)) {
            Some(name) => Err(ScopeError(format!("the size or index {name} is not bound"))),
            None => Ok(()),
        }
    }

    fn ix(&self, ix: &Ix) -> Result<(), ScopeError> {
        let mut names = Default::default();
        ix.collect_names(&mut names);
        self.known(&names)
    }

    fn cond(&self, cond: &Cond) -> Result<(), ScopeError> {
        let mut names = Default::default();
        cond.collect_names(&mut names);
        self.known(&names)
    }

    fn range(&self, range: &Range) -> Result<(), ScopeError> {
        self.ix(&range.lo)?;
        self.ix(&range.hi)
    }

    /// Visits a term and its parts, each under the names that are bound around it.
    fn term(&mut self, root: TermId) -> Result<(), ScopeError> {
        let terms: &'a Terms = &self.program.terms;
        let mut todo = vec![ScopeVisit::Term(root)];
        while let Some(visit) = todo.pop() {
            let id = match visit {
                ScopeVisit::Term(id) => id,
                ScopeVisit::BindIndex(name) => {
                    self.bind_index(name)?;
                    continue;
                }
                ScopeVisit::UnbindIndex(name) => {
                    self.indices.remove(&name);
                    continue;
                }
                ScopeVisit::BindTensor(name, ty) => {
                    self.bind_tensor(name, ty.clone())?;
                    continue;
                }
                ScopeVisit::UnbindTensor(name) => {
                    self.tensors.remove(&name);
                    continue;
                }
            };
            let term = terms.get(id);
            // The last pushed is visited first.
            match term {
                Term::Ref(name, ty) => match self.tensors.get(name) {
                    Some(bound) if bound == ty => {}
                    Some(bound) => return Err(ScopeError(format!("{name} is {bound}, not {ty}"))),
                    None => return Err(ScopeError(format!("the tensor {name} is not bound"))),
                },
                Term::Gen(name, range, body) => {
                    self.range(range)?;
                    todo.extend([
                        ScopeVisit::UnbindIndex(*name),
                        ScopeVisit::Term(*body),
                        ScopeVisit::BindIndex(*name),
                    ]);
                }
                Term::Reduce(_, name, range, cond, body) => {
                    self.range(range)?;
                    self.bind_index(*name)?;
                    self.cond(cond)?;
                    todo.extend([ScopeVisit::UnbindIndex(*name), ScopeVisit::Term(*body)]);
                }
                Term::Let(name, value, body) => todo.extend([
                    ScopeVisit::UnbindTensor(*name),
                    ScopeVisit::Term(*body),
                    ScopeVisit::BindTensor(*name, terms.ty(*value)),
                    ScopeVisit::Term(*value),
                ]),
                Term::Iterate(times, step, states, _) => {
                    self.ix(times)?;
                    todo.push(ScopeVisit::UnbindIndex(*step));
                    todo.extend(states.iter().map(|s| ScopeVisit::UnbindTensor(s.name)));
                    todo.extend(states.iter().map(|s| ScopeVisit::Term(s.next)));
                    todo.extend(states.iter().map(|s| ScopeVisit::BindTensor(s.name, terms.ty(s.init))));
                    todo.push(ScopeVisit::BindIndex(*step));
                    todo.extend(states.iter().map(|s| ScopeVisit::Term(s.init)));
                }
                other => {
                    let mut names = Default::default();
                    other.collect_names(&mut names);
                    self.known(&names)?;
                    todo.extend(other.parts().into_iter().map(ScopeVisit::Term));
                }
            }
        }
        Ok(())
    }
}
