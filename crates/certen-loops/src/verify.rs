//! The verifier: what every loop program must satisfy before it is run or printed as C.
//!
//! - Names are in scope and hide nothing; buffers are used with their rank and element type; values are scalar terms.
//! - Inputs and constants are never written, every output that has elements is; a local is assigned before it is read, on every path; a buffer that is
//!   allocated in a block is freed in it, once, and not used afterwards.
//! - **Bounds**: every index of every access is shown to be inside its buffer, for all sizes, from the ranges of the
//!   loops and the conditions around it and the facts about sizes.
//! - **Races**: the iterations of every parallel loop are shown to be independent (`races.rs`).
//!
//! One walk over the body. Most accesses are a loop's own index into the size that the loop runs to, and need no
//! proof; for the others the facts of the scope are collected once, and what was shown is remembered.

use std::collections::{BTreeSet, HashMap, HashSet};

use certen_core::{ElemType, Range, ReduceOp, TensorType, Term, TermId};
use certen_index::{Cond, Facts, Ix, Verdict};
use certen_syntax::{Code, Diagnostic, Name};

use crate::ir::{LoopProgram, MAX_NESTING, Mode, Stmt, Target};
use crate::races::check_independent;
use crate::walk::as_element;

/// What is wrong with a program, in order; nothing if it is well-formed. Every error has code E0702.
pub fn verify(program: &LoopProgram) -> Vec<Diagnostic> {
    verified(program, Unchanged::default()).errors
}

/// As [`verify`], of a program that was made of a well-formed one: for the statements at its beginning and its end that are
/// as they were, nothing is proved again.
pub fn verify_changed(program: &LoopProgram, before: &LoopProgram) -> Vec<Diagnostic> {
    verified(program, Unchanged::of(program, before)).errors
}

/// The locals of a program that are not seen to be assigned before they are read, on every path.
pub fn unassigned(program: &LoopProgram) -> HashSet<Name> {
    // Neither bounds nor races are asked about.
    verified(program, Unchanged { first: program.body.len(), last: 0 }).unassigned
}

/// How many statements at the beginning and at the end of a body are those of another one, in the same surroundings.
#[derive(Default)]
struct Unchanged {
    first: usize,
    last: usize,
}

impl Unchanged {
    fn of(program: &LoopProgram, before: &LoopProgram) -> Unchanged {
        let allocated = |program: &LoopProgram| {
            let mut types: HashMap<Name, TensorType> = HashMap::new();
            for stmt in &program.body {
                if let Stmt::Alloc(name, ty) = stmt {
                    types.insert(*name, ty.clone());
                }
            }
            types
        };
        let (now, then) = (allocated(program), allocated(before));
        let is_same = program.sizes == before.sizes
            && program.facts == before.facts
            && program.inputs == before.inputs
            && program.outputs == before.outputs
            && program.constants == before.constants
            && now.iter().all(|(name, ty)| then.get(name).is_none_or(|before| before == ty))
            && program.terms.begins_with(&before.terms);
        if !is_same {
            return Unchanged::default();
        }
        let first = program.body.iter().zip(&before.body).take_while(|(now, then)| now == then).count();
        let backwards = program.body[first..].iter().rev().zip(before.body[first..].iter().rev());
        Unchanged { first, last: backwards.take_while(|(now, then)| now == then).count() }
    }
}

fn verified(program: &LoopProgram, unchanged: Unchanged) -> Verifier<'_> {
    let mut facts = Facts::new();
    program.facts.iter().for_each(|fact| facts.assume(fact.clone()));
    let mut verifier = Verifier {
        program,
        things: HashMap::new(),
        assigned: Assigned::default(),
        written: HashSet::new(),
        unchanged,
        is_known: false,
        scopes: vec![Assumptions { assumed: Vec::new(), facts: Some(facts), shown: HashSet::new() }],
        unassigned: HashSet::new(),
        errors: Vec::new(),
    };
    verifier.interface();
    verifier.block(&program.body, 0);
    for output in &program.outputs {
        if !verifier.written.contains(&output.name) && !verifier.is_empty(&output.ty) {
            verifier.error(format!("the output {} is never written", output.name));
        }
    }
    verifier
}

/// What a name stands for.
#[derive(Clone)]
enum Thing<'a> {
    Size,
    Index(&'a Range),
    Local(ElemType),
    Buffer { ty: &'a TensorType, kind: Origin },
}

#[derive(Clone, Copy, PartialEq)]
enum Origin {
    Input,
    Output,
    Constant,
    /// Allocated in a block at this depth.
    Own(usize),
    Freed,
}

/// What holds in a block.
struct Assumptions {
    /// Beyond what holds around it.
    assumed: Vec<Cond>,
    /// All that holds, once it was needed.
    facts: Option<Facts>,
    /// Indices and sizes that were shown to fit.
    shown: HashSet<(Ix, Ix)>,
}

/// The locals that have a value here, with a log so that a branch can be undone.
#[derive(Default)]
struct Assigned {
    now: HashSet<Name>,
    log: Vec<Name>,
}

impl Assigned {
    fn add(&mut self, name: Name) {
        if self.now.insert(name) {
            self.log.push(name);
        }
    }

    /// Forgets what was added since the log had this length.
    fn undo(&mut self, mark: usize) -> Vec<Name> {
        let undone = self.log.split_off(mark);
        undone.iter().for_each(|name| {
            self.now.remove(name);
        });
        undone
    }
}

struct Verifier<'a> {
    program: &'a LoopProgram,
    things: HashMap<Name, Thing<'a>>,
    assigned: Assigned,
    written: HashSet<Name>,
    unchanged: Unchanged,
    /// Whether what is looked at was proved before.
    is_known: bool,
    scopes: Vec<Assumptions>,
    unassigned: HashSet<Name>,
    errors: Vec<Diagnostic>,
}

impl<'a> Verifier<'a> {
    fn error(&mut self, message: String) {
        self.errors.push(Diagnostic::error(Code::E0702, None, message));
    }

    fn not_assigned(&mut self, name: Name) {
        self.unassigned.insert(name);
        self.error(format!("{name} may be read before it is assigned"));
    }

    /// Whether a tensor is shown to have no elements.
    fn is_empty(&mut self, ty: &TensorType) -> bool {
        let facts = self.facts();
        let none = |size: &Ix| Cond::le(size, &Ix::from(0)).is_ok_and(|goal| facts.prove(&goal) == Verdict::Yes);
        ty.shape.iter().any(none)
    }

    fn interface(&mut self) {
        let program = self.program;
        for size in &program.sizes {
            self.declare(*size, Thing::Size);
        }
        for fact in &program.facts {
            self.cond(fact);
        }
        for (parameters, kind) in [(&program.inputs, Origin::Input), (&program.outputs, Origin::Output)] {
            for parameter in parameters {
                self.shape(&parameter.ty);
                self.declare(parameter.name, Thing::Buffer { ty: &parameter.ty, kind });
            }
        }
        for constant in &program.constants {
            self.declare(constant.name, Thing::Buffer { ty: constant.table.ty(), kind: Origin::Constant });
        }
    }

    /// Brings a name into scope; false if it would hide another one.
    fn declare(&mut self, name: Name, thing: Thing<'a>) -> bool {
        if self.things.contains_key(&name) {
            self.error(format!("{name} is already in scope"));
            return false;
        }
        self.things.insert(name, thing);
        true
    }

    fn names(&mut self, names: BTreeSet<Name>) {
        for name in names {
            if !matches!(self.things.get(&name), Some(Thing::Size | Thing::Index(_))) {
                self.error(format!("the size or index {name} is not in scope"));
            }
        }
    }

    fn ix(&mut self, ix: &Ix) {
        if ix.as_constant().is_some() {
            return;
        }
        let mut names = BTreeSet::new();
        ix.collect_names(&mut names);
        self.names(names);
    }

    fn cond(&mut self, cond: &Cond) {
        let mut names = BTreeSet::new();
        cond.collect_names(&mut names);
        self.names(names);
    }

    fn shape(&mut self, ty: &TensorType) {
        ty.shape.iter().for_each(|size| self.ix(size));
    }

    /// Statements of a block, under facts that hold in it, with an index that is declared in it.
    fn inner(&mut self, assumed: Vec<Cond>, index: Option<(Name, &'a Range)>, body: &'a [Stmt], depth: usize) {
        self.scopes.push(Assumptions { assumed, facts: None, shown: HashSet::new() });
        let declared = index.filter(|(name, range)| self.declare(*name, Thing::Index(range)));
        self.block(body, depth + 1);
        if let Some((name, _)) = declared {
            self.things.remove(&name);
        }
        self.scopes.pop();
    }

    fn block(&mut self, block: &'a [Stmt], depth: usize) {
        if depth > MAX_NESTING {
            return self.error(format!("more than {MAX_NESTING} blocks inside each other"));
        }
        let (mut declared, mark) = (Vec::new(), self.assigned.log.len());
        for (at, stmt) in block.iter().enumerate() {
            if depth == 0 {
                self.is_known = at < self.unchanged.first || at + self.unchanged.last >= block.len();
            }
            match stmt {
                Stmt::Nest(_) => {}
                Stmt::Alloc(name, ty) => {
                    self.shape(ty);
                    if self.declare(*name, Thing::Buffer { ty, kind: Origin::Own(depth) }) {
                        declared.push(*name);
                    }
                }
                Stmt::Free(name) => match self.things.get_mut(name) {
                    Some(Thing::Buffer { kind, .. }) if *kind == Origin::Own(depth) => *kind = Origin::Freed,
                    Some(Thing::Buffer { kind: Origin::Freed, .. }) => self.error(format!("{name} is freed twice")),
                    _ => self.error(format!("{name} is freed, but was not allocated in this block")),
                },
                Stmt::Swap(a, b) => match (self.things.get(a), self.things.get(b)) {
                    (
                        Some(Thing::Buffer { ty, kind: Origin::Own(_) }),
                        Some(Thing::Buffer { ty: other, kind: Origin::Own(_) }),
                    ) if a != b && ty == other && !ty.is_scalar() => {}
                    _ => self.error(format!("{a} and {b} are no two allocated buffers of the same type")),
                },
                Stmt::For { index, range, mode, body } => {
                    self.ix(&range.lo);
                    self.ix(&range.hi);
                    if *mode != Mode::Serial && !self.is_known {
                        let program = self.program;
                        let race =
                            check_independent(program, || self.facts().clone(), (*index, range, *mode), body).err();
                        self.errors.extend(race.map(|race| race.diagnostic(*mode, *index)));
                    }
                    let mark = self.assigned.log.len();
                    let i = Ix::var(*index);
                    let bounds = [Cond::le(&range.lo, &i), Cond::lt(&i, &range.hi)];
                    self.inner(bounds.into_iter().flatten().collect(), Some((*index, range)), body, depth);
                    // What the body assigns has a value afterwards if the body runs at all.
                    if self.assigned.log.len() > mark && !self.runs(range) {
                        self.assigned.undo(mark);
                    }
                }
                Stmt::If { cond, then, otherwise } => self.choice(cond, [then, otherwise], depth),
                Stmt::Local { name, elem, init } => {
                    if let Some(value) = init {
                        self.value(*value, *elem, &format!("the local {name}"));
                    }
                    if self.declare(*name, Thing::Local(*elem)) {
                        declared.push(*name);
                        if init.is_some() {
                            self.assigned.add(*name);
                        }
                    }
                }
                Stmt::Assign { target, op, value } => self.assignment(target, *op, *value),
            }
        }
        for name in declared {
            if let Some(Thing::Buffer { kind: Origin::Own(_), .. }) = self.things.remove(&name) {
                self.error(format!("the buffer {name} is not freed in its block"));
            }
        }
        // Locals of the block end with it.
        for name in self.assigned.undo(mark) {
            if self.things.contains_key(&name) {
                self.assigned.add(name);
            }
        }
    }

    fn choice(&mut self, cond: &Cond, [then, otherwise]: [&'a [Stmt]; 2], depth: usize) {
        self.cond(cond);
        let mark = self.assigned.log.len();
        self.inner(vec![cond.clone()], None, then, depth);
        let accepted = self.assigned.undo(mark);
        self.inner(cond.not().into_iter().collect(), None, otherwise, depth);
        let refused: HashSet<Name> = self.assigned.undo(mark).into_iter().collect();
        accepted.into_iter().filter(|name| refused.contains(name)).for_each(|name| self.assigned.add(name));
    }

    fn assignment(&mut self, target: &Target, op: Option<ReduceOp>, value: TermId) {
        let elem = match (target, self.things.get(&target.name()).cloned()) {
            (Target::Local(name), Some(Thing::Local(elem))) => {
                if op.is_some() && !self.assigned.now.contains(name) {
                    self.not_assigned(*name);
                }
                elem
            }
            (Target::Element(name, indices), Some(Thing::Buffer { ty, kind })) => {
                match kind {
                    Origin::Input => self.error(format!("the input {name} is written")),
                    Origin::Constant => self.error(format!("the constant {name} is written")),
                    Origin::Freed => self.error(format!("{name} is used after it was freed")),
                    Origin::Output | Origin::Own(_) => {}
                }
                self.written.insert(*name);
                self.access(*name, ty, indices);
                ty.elem
            }
            _ => return self.error(format!("{target} cannot be assigned: no such local or buffer in scope")),
        };
        if op.is_some_and(|op| op.combine().result(elem) != Some(elem)) {
            self.error(format!("{target} of type {elem} cannot be combined in this way"));
        }
        self.value(value, elem, &target.to_string());
        if let Target::Local(name) = target {
            self.assigned.add(*name);
        }
    }

    /// A value: in the scalar subset, of names in scope, of the wanted type.
    fn value(&mut self, root: TermId, elem: ElemType, wanted_by: &str) {
        let terms = &self.program.terms;
        if *terms.ty(root) != TensorType::scalar(elem) {
            self.error(format!("{wanted_by} has type {elem}, its value {}", terms.ty(root)));
        }
        let tensor = |it: &mut Self| it.error(format!("the value of {wanted_by} is not made of scalar operations"));
        for id in terms.parts_first(root) {
            match terms.get(id) {
                Term::Ref(_, ty) if !ty.is_scalar() && id != root => {}
                Term::Ref(..) | Term::Select(..) => match as_element(terms, id) {
                    Some((name, ty, indices)) => self.read(name, ty, indices),
                    None => self.error(format!("the value of {wanted_by} is not a scalar")),
                },
                Term::Index(ix, _) => self.ix(ix),
                Term::Literal(..) | Term::Undefined(_) | Term::Unary(..) | Term::Binary(..) => {}
                Term::Choose(..) | Term::Fma(..) | Term::Cast(..) => {}
                Term::Gen(..) | Term::Reduce(..) | Term::Guard(..) | Term::If(..) | Term::Let(..) => tensor(self),
                Term::Iterate(..) | Term::Flatten(_) | Term::Split(..) | Term::Transpose(_) => tensor(self),
                Term::Table(_) | Term::Concat(..) | Term::PadLeft(..) | Term::PadRight(..) => tensor(self),
                Term::TruncLeft(..) | Term::TruncRight(..) => tensor(self),
            }
        }
    }

    fn read(&mut self, name: Name, ty: &TensorType, indices: &[Ix]) {
        match self.things.get(&name) {
            Some(Thing::Local(elem)) => {
                if *ty != TensorType::scalar(*elem) {
                    self.error(format!("the local {name} is used as {ty}"));
                }
                if !self.assigned.now.contains(&name) {
                    self.not_assigned(name);
                }
            }
            Some(Thing::Buffer { ty: declared, kind }) => {
                let (declared, freed) = (*declared, *kind == Origin::Freed);
                if freed {
                    self.error(format!("{name} is used after it was freed"));
                }
                if declared != ty {
                    self.error(format!("the buffer {name} is {declared}, but is used as {ty}"));
                }
                self.access(name, declared, indices);
            }
            _ => self.error(format!("{name} is read, but is no local or buffer in scope")),
        }
    }

    /// An access of a buffer: one index per dimension, each in bounds.
    fn access(&mut self, name: Name, ty: &TensorType, indices: &[Ix]) {
        if indices.len() != ty.rank() {
            return self.error(format!("{name} has {} dimensions, but {} indices are given", ty.rank(), indices.len()));
        }
        for (index, size) in indices.iter().zip(ty.shape.iter()) {
            self.ix(index);
            self.in_bounds(name, index, size);
        }
    }

    fn in_bounds(&mut self, name: Name, index: &Ix, size: &Ix) {
        if self.is_known {
            return;
        }
        // A loop's own index, into the size that the loop runs to.
        if let Some(Thing::Index(range)) = index.as_var().and_then(|name| self.things.get(&name))
            && range.hi == *size
            && range.lo.as_constant().is_some_and(|lo| lo >= 0)
        {
            return;
        }
        let (Ok(low), Ok(high)) = (Cond::le(&Ix::from(0), index), Cond::lt(index, size)) else {
            return self.error(format!("the index {index} of {name} is too complex"));
        };
        let goal = low.clone().and(high);
        if goal.is_always() {
            return;
        }
        let pair = (index.clone(), size.clone());
        if self.scopes.iter().any(|scope| scope.shown.contains(&pair)) {
            return;
        }
        let mut verdict = self.facts().prove(&goal);
        // In padded rows, most indices stay in the row as it was before, and products are not combined with quotients.
        if verdict == Verdict::Unknown
            && let Some(Ok(dense)) = size.unrounded().map(|dense| Cond::lt(index, &dense))
            && self.facts().prove(&low.and(dense)) == Verdict::Yes
        {
            verdict = Verdict::Yes;
        }
        // Unreachable code, such as the body of an empty loop, is never out of bounds.
        if verdict != Verdict::Yes && !matches!(self.facts().satisfiable(), Verdict::No(_)) {
            let message = format!("the index {index} of {name} is not shown to be in 0..{size}");
            let error = Diagnostic::error(Code::E0702, None, message);
            self.errors.push(match verdict {
                Verdict::No(example) => error.note(format!("it is not for {example}")),
                _ => error,
            });
        }
        // An access that fails is reported once per scope.
        if let Some(scope) = self.scopes.last_mut() {
            scope.shown.insert(pair);
        }
    }

    /// Whether a loop over a range runs at least once.
    fn runs(&mut self, range: &Range) -> bool {
        Cond::lt(&range.lo, &range.hi).is_ok_and(|goal| goal.is_always() || self.facts().prove(&goal) == Verdict::Yes)
    }

    /// All that holds in the innermost scope.
    fn facts(&mut self) -> &Facts {
        let last = self.scopes.len() - 1;
        if self.scopes[last].facts.is_none() {
            // The outermost scope always has its facts.
            let known = self.scopes.iter().rposition(|scope| scope.facts.is_some()).unwrap_or(0);
            let mut facts = self.scopes[known].facts.clone().unwrap_or_default();
            for scope in &self.scopes[known + 1..] {
                scope.assumed.iter().for_each(|fact| facts.assume(fact.clone()));
            }
            self.scopes[last].facts = Some(facts);
        }
        self.scopes[last].facts.get_or_insert_default()
    }
}
