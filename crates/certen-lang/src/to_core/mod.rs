//! With-loops to Core: the typed tree, after the passes, as one flat program.
//!
//! Calls are inlined, and tensor expressions are *pulled*: [`Build::element`] builds the scalar term of an expression
//! at given indices, [`Build::tensor`] the whole tensor, which is a generation around an element, unless the user wrote
//! an order of computation and storage, which [`structure`] and [`shapes`] keep. Indices and sizes of a function are
//! never substituted into text; they are looked up in its [`Activation`], where they stand for index expressions over
//! names of Core, which are fresh where they have to be. So nothing is captured.
//!
//! A with-loop is a generation over its frame and cell whose element is a chain of lazy `if`s over its generators; a
//! condition that the facts and the ranges around prove is left out, so a generator over the whole frame leaves none.
//! What gets a name of its own is decided in [`policy`], and only there.
//!
//! Needs: a typed tree without comprehensions ([`crate::passes`]). Guarantees: a program that
//! [`Program::check`](certen_core::Program::check) accepts and that means the same. Recursive in the depth of
//! expressions and calls: run it on a thread with a large stack.

mod calls;
mod element;
mod folds;
mod iterate;
mod names;
mod padding;
mod policy;
mod scopes;
mod shapes;
mod structure;
mod tables;

use std::collections::HashMap;

use certen_core::{Binding, Parameter, Program as Core, Range, TensorType, Term, TermId, Terms, TypeError};
use certen_index::{Cond, Facts, Ix, IxError, Verdict};
use certen_syntax::{Code, Diagnostic, Name, Span};

use crate::typed::{Expr, Function, Kind, Program};
use names::{CoreNames, GivenName};
use padding::Places;
use policy::{Nature, Placement, Survey};
use scopes::Frame;

/// The Core program of the entry of a typed program; `name` is what it is called.
///
/// # Errors
/// E0216 if an index expression that arises does not fit in 64 bits, E0241 if a truncation cuts more than padding. A
/// typed tree that keeps the guarantees of [`crate::typed`] has no other errors; one that does not is refused with
/// E0701.
pub fn to_core(program: &Program, name: Name) -> Result<Core, Diagnostic> {
    let (core, places) = build(program, name)?;
    match places.truncations(&core).into_iter().next() {
        Some(error) => Err(error),
        None => Ok(core),
    }
}

/// What is wrong with the truncations of the entry of a typed program. What cannot become Core has none: that is
/// reported when it is compiled.
pub(crate) fn truncations(program: &Program) -> Vec<Diagnostic> {
    build(program, "truncations".into()).map_or(Vec::new(), |(core, places)| places.truncations(&core))
}

/// The Core program, and where its truncations and its padding stand in the text.
fn build(program: &Program, name: Name) -> Result<(Core, Places), Diagnostic> {
    let Some(entry) = program.functions.get(program.entry) else {
        return Err(Diagnostic::error(Code::E0701, None, "the program has no entry"));
    };
    let mut facts = Facts::new();
    entry.facts.iter().for_each(|fact| facts.assume(fact.clone()));
    let mut build = Build {
        program,
        terms: Terms::new(facts),
        bindings: Vec::new(),
        names: CoreNames::default(),
        scopes: vec![Frame::program()],
        activations: Vec::new(),
        natures: HashMap::new(),
        functions: vec![None; program.functions.len()],
        places: Places::default(),
        ordered: HashMap::new(),
        lists: HashMap::new(),
        tables: HashMap::new(),
        steps: 0,
    };
    let outputs = build.entry(entry)?;
    let core = Core {
        name,
        sizes: entry.sizes.iter().map(|size| size.name).collect(),
        facts: entry.facts.clone(),
        inputs: entry.params.iter().map(|(name, ty)| Parameter { name: *name, ty: ty.clone() }).collect(),
        bindings: build.bindings,
        outputs,
        terms: build.terms,
    };
    core.check().map_err(|error| ill_formed(entry.span, error))?;
    Ok((core, build.places))
}

/// What the names of one call of a function stand for: a place in [`Build::activations`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Activation(usize);

/// What a name of the typed tree stands for.
enum Denoted<'a> {
    /// A size or an index.
    Index(Ix),
    /// A tensor of Core.
    Stored(Name, TensorType),
    /// An expression that is put in its place.
    View(View<'a>),
}

/// What a name meant before it got another meaning.
struct Before<'a> {
    act: Activation,
    name: Name,
    before: Option<Denoted<'a>>,
}

struct View<'a> {
    expr: &'a Expr,
    act: Activation,
    reads: usize,
    survey: Survey,
}

struct Build<'a> {
    program: &'a Program,
    terms: Terms,
    bindings: Vec<Binding>,
    names: CoreNames,
    /// The scopes that are open, that of the program first.
    scopes: Vec<Frame>,
    /// What is in scope in a function has one meaning for each name, so one map for each call is enough.
    activations: Vec<HashMap<Name, Denoted<'a>>>,
    natures: HashMap<*const Expr, Nature>,
    functions: Vec<Option<Nature>>,
    places: Places,
    /// What [`Build::has_order`] found.
    ordered: HashMap<*const Expr, bool>,
    /// What [`Build::table`] found, and the names of tables.
    lists: HashMap<*const Expr, Option<TermId>>,
    tables: HashMap<TermId, Name>,
    /// Elements and tensors that were built.
    steps: usize,
}

type Built<T> = Result<T, Diagnostic>;

/// Elements and tensors that are built before a program is refused: functions are written out where they are called,
/// and functions that call each other twice double at every level.
const MAX_STEPS: usize = 2_000_000;

/// The tree does not keep its guarantees.
fn ill_formed(span: impl Into<Option<Span>>, error: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::error(Code::E0701, span, format!("ill-formed Core: {error}"))
}

fn bad_index(span: Span) -> impl Fn(IxError) -> Diagnostic {
    move |error| Diagnostic::error(Code::E0216, span, format!("an index expression cannot be used: {error}"))
}

fn ill_typed(span: Span) -> impl Fn(TypeError) -> Diagnostic {
    move |error| ill_formed(span, error)
}

impl<'a> Build<'a> {
    fn entry(&mut self, entry: &'a Function) -> Built<Vec<(Name, Name)>> {
        let mut own = HashMap::new();
        for size in &entry.sizes {
            self.names.reserve(size.name);
            own.insert(size.name, Denoted::Index(Ix::var(size.name)));
        }
        for (name, ty) in &entry.params {
            self.names.reserve(*name);
            own.insert(*name, Denoted::Stored(*name, ty.clone()));
        }
        let act = self.activation(own);
        for bound in &entry.body.lets {
            self.names.statement();
            self.bind_let(bound, act, entry.span)?;
        }
        let mut outputs = Vec::new();
        for ((name, _), result) in entry.results.iter().zip(&entry.body.results) {
            self.names.statement();
            let (shown, _) = self.store(result, act, *name, Placement { depth: 0, guard: Cond::always() })?;
            outputs.push((*name, shown));
        }
        Ok(outputs)
    }

    // Names of the typed tree

    fn activation(&mut self, meanings: HashMap<Name, Denoted<'a>>) -> Activation {
        self.activations.push(meanings);
        Activation(self.activations.len() - 1)
    }

    fn meaning(&self, act: Activation, name: Name) -> Option<&Denoted<'a>> {
        self.activations.get(act.0).and_then(|names| names.get(&name))
    }

    fn mean(&mut self, act: Activation, name: Name, meaning: Denoted<'a>) {
        if let Some(names) = self.activations.get_mut(act.0) {
            names.insert(name, meaning);
        }
    }

    /// Gives a name a meaning for a while; what it meant before is to be [restored](Build::restore). Indices whose
    /// scopes are beside each other can have one name, and a view brings its own indices into the scope of others.
    fn mean_for_now(&mut self, act: Activation, name: Name, meaning: Denoted<'a>) -> Before<'a> {
        let before = self.activations.get_mut(act.0).and_then(|names| names.insert(name, meaning));
        Before { act, name, before }
    }

    fn restore(&mut self, before: impl DoubleEndedIterator<Item = Before<'a>>) {
        for Before { act, name, before } in before.rev() {
            if let Some(names) = self.activations.get_mut(act.0) {
                match before {
                    Some(meaning) => names.insert(name, meaning),
                    None => names.remove(&name),
                };
            }
        }
    }

    fn index_of(&self, act: Activation, name: Name) -> Option<Ix> {
        match self.meaning(act, name) {
            Some(Denoted::Index(ix)) => Some(ix.clone()),
            _ => None,
        }
    }

    fn ix(&self, act: Activation, ix: &Ix, span: Span) -> Built<Ix> {
        match (ix.as_constant(), ix.as_var()) {
            (Some(_), _) => Ok(ix.clone()),
            (_, Some(name)) => Ok(self.index_of(act, name).unwrap_or_else(|| ix.clone())),
            _ => ix.substitute(&|name| self.index_of(act, name)).map_err(bad_index(span)),
        }
    }

    fn cond(&self, act: Activation, cond: &Cond, span: Span) -> Built<Cond> {
        cond.substitute(&|name| self.index_of(act, name)).map_err(bad_index(span))
    }

    fn range(&self, act: Activation, range: &crate::typed::Range, span: Span) -> Built<Range> {
        Ok(Range { lo: self.ix(act, &range.lower, span)?, hi: self.ix(act, &range.upper, span)? })
    }

    fn shape(&self, act: Activation, expr: &Expr) -> Built<Vec<Ix>> {
        expr.ty.shape.iter().map(|size| self.ix(act, size, expr.span)).collect()
    }

    // Scopes

    fn depth(&self) -> usize {
        self.scopes.len() - 1
    }

    fn open(&mut self, scope: Frame) {
        self.scopes.push(scope);
    }

    /// Ends the innermost scope: its `let`s are put around its content.
    fn close(&mut self, content: TermId, span: Span) -> Built<TermId> {
        let Some(scope) = self.scopes.pop() else { return Ok(content) };
        scope.names.iter().rev().for_each(|given| self.names.give_back(given));
        scope
            .lets
            .into_iter()
            .rev()
            .try_fold(content, |body, (name, value)| self.add(Term::Let(name, value, body), span))
    }

    /// Opens a loop over a range; its index, which is named after a name of the user's or is one of i, j, k, l.
    fn open_loop(&mut self, base: Option<Name>, range: &Range, stated: bool, span: Span) -> Built<Name> {
        let base = base.unwrap_or_else(|| {
            let free = ["i", "j", "k", "l"].into_iter().map(Name::new).find(|name| self.names.depth(*name).is_none());
            free.unwrap_or("i".into())
        });
        let given = self.names.index(base, self.scopes.len());
        let name = given.name;
        self.open(Frame::counting(given, range, stated).map_err(bad_index(span))?);
        Ok(name)
    }

    /// Leaves the scopes further in than a depth for a while: what is built does not see their names.
    fn leave(&mut self, depth: usize) -> Vec<Frame> {
        let hidden = self.scopes.split_off(depth + 1);
        hidden.iter().flat_map(|scope| &scope.names).for_each(|given| self.names.give_back(given));
        hidden
    }

    fn enter_again(&mut self, hidden: Vec<Frame>) {
        for scope in hidden {
            let depth = self.scopes.len();
            scope.names.iter().for_each(|given| self.names.take_back(given, depth));
            self.scopes.push(scope);
        }
    }

    fn add(&mut self, term: Term, span: Span) -> Built<TermId> {
        let id = self.terms.add(term).map_err(ill_typed(span))?;
        self.places.note(&self.terms, id, span);
        Ok(id)
    }

    /// Whether a condition holds wherever the facts and everything known in the open scopes do.
    fn is_known(&self, cond: &Cond) -> bool {
        let assumed = || self.scopes.iter().flat_map(|scope| &scope.known);
        if cond.is_always() || assumed().any(|known| known == cond) || self.terms.facts().prove(cond) == Verdict::Yes {
            return true;
        }
        if self.scopes.len() == 1 {
            return false;
        }
        let mut facts = self.terms.facts().clone();
        assumed().for_each(|known| facts.assume(known.clone()));
        facts.prove(cond) == Verdict::Yes
    }

    /// What of a conjunction is not known.
    fn unknown_part(&self, cond: Cond) -> Cond {
        match cond {
            Cond::And(all) => {
                let open = all.into_iter().filter(|cond| !self.is_known(cond));
                open.fold(Cond::always(), Cond::and)
            }
            cond if self.is_known(&cond) => Cond::always(),
            cond => cond,
        }
    }

    // Stored tensors

    /// Stores an expression in a scope; what it is called there.
    fn store(
        &mut self,
        expr: &'a Expr,
        act: Activation,
        base: Name,
        placement: Placement,
    ) -> Built<(Name, TensorType)> {
        let hidden = self.leave(placement.depth);
        let given = self.names.tensor(base, placement.depth);
        let guard = self.unknown_part(placement.guard);
        let term = if guard.is_always() { self.tensor(expr, act)? } else { self.guarded(expr, act, &guard)? };
        let stored = self.bind(given, term);
        self.enter_again(hidden);
        Ok(stored)
    }

    /// Binds a term in the innermost scope, unless it has a name already.
    fn bind(&mut self, given: GivenName, term: TermId) -> (Name, TensorType) {
        if let Term::Ref(name, ty) = self.terms.get(term) {
            self.names.give_back(&given);
            return (*name, ty.clone());
        }
        let (name, ty) = (given.name, self.terms.ty(term).clone());
        let depth = self.depth();
        match self.scopes.last_mut() {
            Some(scope) if depth > 0 => {
                scope.lets.push((name, term));
                scope.names.push(given);
            }
            _ => self.bindings.push(Binding { name, term }),
        }
        (name, ty)
    }

    /// A reference to a term, which is bound in the innermost scope unless it is as simple as a reference.
    fn named(&mut self, term: TermId, base: &str, span: Span) -> Built<TermId> {
        if matches!(self.terms.get(term), Term::Ref(..) | Term::Literal(..)) {
            return Ok(term);
        }
        let given = self.names.tensor(Name::new(base), self.depth());
        let (name, ty) = self.bind(given, term);
        self.add(Term::Ref(name, ty), span)
    }

    /// Refuses a program that becomes too large.
    fn count_step(&mut self, span: Span) -> Built<()> {
        self.steps += 1;
        if self.steps <= MAX_STEPS {
            return Ok(());
        }
        let text = "the program becomes too large when its calls are written out";
        Err(Diagnostic::error(Code::E0703, span, text).help("give what is used several times a name with `let`"))
    }

    /// The term of a whole tensor.
    fn tensor(&mut self, expr: &'a Expr, act: Activation) -> Built<TermId> {
        self.count_step(expr.span)?;
        if let Some((inner, inner_act)) = self.result(expr, act)? {
            return self.tensor(inner, inner_act);
        }
        if expr.ty.is_scalar() {
            return self.pull(expr, act, &[]);
        }
        if let Some(term) = self.table(expr)? {
            return Ok(term);
        }
        if let Some(term) = self.reshaped(expr, act)? {
            return Ok(term);
        }
        if let Some(term) = self.structured(expr, act)? {
            return Ok(term);
        }
        match &expr.kind {
            Kind::Var(name) => self.read(act, *name, &[], expr.span),
            Kind::Stored(a) => self.tensor(a, act),
            Kind::Iterate(iterate) => self.only_state(iterate, act, expr.span),
            Kind::Fold(fold) if policy::has_no_elements(expr) => self.fold_by_function(fold, act, &expr.ty, expr.span),
            _ => {
                let shape = self.frame_shape(expr, act)?;
                let hints = self.hints(expr);
                self.generation(&shape, &hints, expr.span, |build, indices| build.pull(expr, act, indices))
            }
        }
    }

    /// The whole tensor where a condition holds, else zeros.
    fn guarded(&mut self, expr: &'a Expr, act: Activation, guard: &Cond) -> Built<TermId> {
        if expr.ty.is_scalar() || self.has_order(expr) {
            self.open(Frame::branch(guard));
            let term = self.tensor(expr, act)?;
            let term = self.close(term, expr.span)?;
            return self.add(Term::Guard(guard.clone(), term), expr.span);
        }
        if policy::has_no_elements(expr) {
            let term = self.tensor(expr, act)?;
            return self.add(Term::Guard(guard.clone(), term), expr.span);
        }
        let shape = self.frame_shape(expr, act)?;
        let hints = self.hints(expr);
        self.generation(&shape, &hints, expr.span, |build, indices| {
            build.open(Frame::branch(guard));
            let term = build.pull(expr, act, indices)?;
            let term = build.close(term, expr.span)?;
            build.add(Term::Guard(guard.clone(), term), expr.span)
        })
    }

    fn under(&mut self, guard: &Cond, term: TermId, span: Span) -> Built<TermId> {
        if guard.is_always() { Ok(term) } else { self.add(Term::Guard(guard.clone(), term), span) }
    }

    /// A generation over a shape, named after the hints.
    fn generation(
        &mut self,
        shape: &[Ix],
        hints: &[Option<Name>],
        span: Span,
        element: impl FnOnce(&mut Self, &[Ix]) -> Built<TermId>,
    ) -> Built<TermId> {
        let mut loops = Vec::new();
        for (at, size) in shape.iter().enumerate() {
            let base = hints.get(at).copied().flatten();
            let range = Range::to(size.clone());
            loops.push((self.open_loop(base, &range, false, span)?, range));
        }
        let indices: Vec<Ix> = loops.iter().map(|(name, _)| Ix::var(*name)).collect();
        let mut term = element(self, &indices)?;
        for (name, range) in loops.into_iter().rev() {
            term = self.close(term, span)?;
            term = self.add(Term::Gen(name, range, term), span)?;
        }
        Ok(term)
    }

    /// The shape of an expression; that of a with-loop begins with its frame.
    fn frame_shape(&self, expr: &Expr, act: Activation) -> Built<Vec<Ix>> {
        let mut shape = self.shape(act, expr)?;
        if let Kind::With(with) = &expr.kind {
            for (size, frame) in shape.iter_mut().zip(&with.frame) {
                *size = self.ix(act, frame, expr.span)?;
            }
        }
        Ok(shape)
    }

    /// An element of a tensor by name, or the tensor if there are no indices.
    fn read(&mut self, act: Activation, name: Name, indices: &[Ix], span: Span) -> Built<TermId> {
        match self.meaning(act, name) {
            Some(Denoted::Stored(name, ty)) => {
                let (name, ty) = (*name, ty.clone());
                self.terms.element(name, ty, indices).map_err(ill_typed(span))
            }
            _ => Err(ill_formed(span, format!("the tensor {name} is not bound"))),
        }
    }
}
