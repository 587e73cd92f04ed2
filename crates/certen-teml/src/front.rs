//! P_prog: the statements of a program, one after the other, each changing the state (Fig. 7 to 9).
//!
//! A state maps identifiers to tensor expressions and loop nests (Sec. 3.2). What a program means is not its last state
//! but the real statements on the way, in the order of the text, and its `codegen` statements, which are paths side
//! by side.
//!
//! Guarantees: a mistake gives one message, and what depends on it gives none; statements that have nothing to do with
//! it are still evaluated.

use std::fmt::Write as _;

use certen_core::ElemType;
use certen_index::Ix;
use certen_syntax::{Code, Diagnostic, Diagnostics, FileId, Name, Sources, Span, near};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::assignment::{Entry, Route, Statements};
use crate::ast::{At, Expr, Id, Iters, LoopExpr, LoopOp, Program, Stmt, TensorExpr};
use crate::loops::{Context, Loops, Nest};
use crate::nest::{self, Leaf};
use crate::nests;
use crate::parse::parse;
use crate::ranges::{Sizes, names};
use crate::rules::{Evaluated, malformed};
use crate::tensors::{AssignedPlace, IterNames, Kind, Tensors};
use crate::tree::{Defined, tree};

/// How many statements are shown with their states.
const MOST_SHOWN: usize = 1000;
/// How many paths a program may have.
const MOST_PATHS: usize = 1000;

/// A program that was evaluated.
#[derive(Clone, Debug)]
pub struct Front {
    /// What it means.
    pub statements: Statements,
    /// Its `codegen` statements.
    pub routes: Vec<Route>,
    /// The states on the way, for people.
    pub states: String,
    /// The trees of each `codegen` statement.
    #[cfg(test)]
    pub(crate) nests: Vec<Vec<Nest>>,
}

/// What an identifier stands for.
enum Introduced {
    Tensor(Kind),
    Loop(Nest),
    /// A statement with a mistake, which was reported.
    Broken,
}

/// Reads and evaluates a program; nothing if it has errors.
pub fn read(
    sources: &Sources,
    file: FileId,
    name: Name,
    elem: ElemType,
    diagnostics: &mut Diagnostics,
) -> Option<Front> {
    let mut found = Diagnostics::new();
    let program = parse(sources, file, &mut found);
    let front = evaluate(&program, name, elem, &mut found);
    let sound = !found.has_errors();
    diagnostics.extend(found.iter().cloned());
    sound.then_some(front)
}

/// Evaluates a program.
fn evaluate(program: &Program, name: Name, elem: ElemType, diagnostics: &mut Diagnostics) -> Front {
    let (sizes, names) = scan(program, diagnostics);
    let mut state = Evaluation {
        tensors: Tensors::new(sizes, names),
        loops: Loops::default(),
        known: FxHashMap::default(),
        defined: Defined::default(),
        built: FxHashMap::default(),
        writers: FxHashMap::default(),
        paths: FxHashMap::default(),
        states: String::new(),
        count: 0,
        routes: Vec::new(),
        #[cfg(test)]
        nests: Vec::new(),
        elem,
    };
    for stmt in &program.statements {
        state.count += 1;
        let done = state.statement(stmt, diagnostics);
        let id = match &stmt.it {
            Stmt::Assign { id, .. } => Some(id.it),
            _ => None,
        };
        match done {
            Ok(Some(known)) => {
                state.show(&stmt.it, id, Some(&known));
                if let Some(id) = id {
                    if let Introduced::Tensor(Kind::Virtual(found)) = &known {
                        state.defined.insert(found.value, state.count, id);
                    }
                    if let Introduced::Tensor(Kind::Real(at)) = &known {
                        state.built.insert(*at, (state.count, id));
                        state.writers.insert(state.tensors.assignments[*at].target, id);
                    }
                    state.known.insert(id, known);
                }
            }
            Ok(None) => state.show(&stmt.it, id, None),
            Err(error) => {
                diagnostics.extend(error.map(|error| *error));
                if let Some(id) = id {
                    state.known.insert(id, Introduced::Broken);
                }
            }
        }
    }
    #[cfg(test)]
    let nests = std::mem::take(&mut state.nests);
    let Evaluation { tensors, states, routes, count, .. } = state;
    let states = match count.checked_sub(MOST_SHOWN) {
        Some(more @ 1..) => format!("{states}… and {more} more\n"),
        _ => states,
    };
    let statements = Statements {
        name,
        sizes: tensors.sizes.listed,
        tensors: tensors.tensors,
        assignments: tensors.assignments,
        values: tensors.values,
    };
    Front {
        statements,
        routes,
        states,
        #[cfg(test)]
        nests,
    }
}

/// The names that a program uses, each for one thing.
fn scan(program: &Program, diagnostics: &mut Diagnostics) -> (Sizes, IterNames) {
    let mut sizes = Sizes::default();
    let (mut ids, mut iterators) = (FxHashSet::default(), FxHashSet::default());
    // Loops and virtual tensors leave no trace in what a program becomes: iterators may have their names.
    let mut others: FxHashSet<Name> = FxHashSet::default();
    let mut places: FxHashMap<Name, Span> = FxHashMap::default();
    let mut lists = |list: Option<&Iters>| {
        list.into_iter().flat_map(|list| &list.it).for_each(|entry| iterators.extend(names(&entry.it)));
    };
    for stmt in &program.statements {
        match &stmt.it {
            Stmt::Assign { id, target, value } => {
                match value {
                    Expr::Tensor(expr) if expr.is_kept() => ids.extend([id.it, target.unwrap_or(*id).it]),
                    _ => others.extend([id.it]),
                }
                match value {
                    Expr::Tensor(TensorExpr::New { shape, .. }) => {
                        for size in shape.iter().flatten() {
                            for name in names(&size.it) {
                                sizes.declare(name);
                                places.entry(name).or_insert(size.span);
                            }
                        }
                    }
                    Expr::Tensor(TensorExpr::Eq { from, to, .. }) => {
                        lists(from.as_ref());
                        lists(Some(to));
                    }
                    Expr::Tensor(TensorExpr::Op { operands: [(_, one), (_, two)], to, .. }) => {
                        [one, two, to].into_iter().for_each(|list| lists(list.as_ref()));
                    }
                    _ => {}
                }
            }
            Stmt::Codegen { name, .. } => others.extend(name.map(|name| name.it)),
            Stmt::Init { .. } => {}
        }
    }
    for &name in sizes.listed.iter().filter(|name| ids.contains(*name) || others.contains(*name)) {
        let message = format!("`{name}` is a size here, and a tensor or loop elsewhere");
        if let Some(&span) = places.get(&name) {
            diagnostics.push(Diagnostic::error(Code::E0211, span, message));
        }
    }
    iterators.retain(|name| !sizes.has(*name));
    (sizes, IterNames::new(ids, iterators))
}

struct Evaluation {
    tensors: Tensors,
    loops: Loops,
    known: FxHashMap<Name, Introduced>,
    defined: Defined,
    /// The states in which real statements got their names.
    built: FxHashMap<usize, (usize, Name)>,
    /// The last statements that write tensors.
    writers: FxHashMap<Name, Name>,
    /// Where the paths stand.
    paths: FxHashMap<Name, Span>,
    states: String,
    count: usize,
    routes: Vec<Route>,
    #[cfg(test)]
    nests: Vec<Vec<Nest>>,
    elem: ElemType,
}

/// A mistake; none if it was reported where it was made.
type Done<T> = Result<T, Option<Box<Diagnostic>>>;

impl Evaluation {
    fn statement(&mut self, stmt: &At<Stmt>, diagnostics: &mut Diagnostics) -> Done<Option<Introduced>> {
        match &stmt.it {
            Stmt::Assign { id, target, value: Expr::Tensor(expr) } => {
                if operands(expr).iter().any(|id| self.is_broken(id)) {
                    return Err(None);
                }
                let Evaluation { tensors, known, .. } = self;
                let named: FxHashMap<Name, usize> =
                    operands(expr).iter().filter_map(|id| Some((id.it, tensors.named(id.it)?))).collect();
                let lookup = |id: &Id| lookup(known, &named, id);
                let place = AssignedPlace { id, target: target.as_ref(), span: stmt.span };
                let kind = tensors.assign(&lookup, &place, expr, self.elem, diagnostics);
                Ok(Some(Introduced::Tensor(kind?)))
            }
            Stmt::Assign { value: Expr::Loop(expr), .. } => {
                if expr.ids.iter().any(|id| matches!(self.known.get(&id.it), Some(Introduced::Broken))) {
                    return Err(None);
                }
                let nest = match expr.op.it {
                    LoopOp::Build => self.build(expr, stmt.span)?,
                    _ => self.transform(expr, stmt.span)?,
                };
                Ok(Some(Introduced::Loop(nest)))
            }
            Stmt::Codegen { name, loops } => {
                self.codegen(name.as_ref(), loops, stmt.span)?;
                Ok(None)
            }
            Stmt::Init { id, value } => {
                if self.is_broken(id) {
                    return Err(None);
                }
                self.tensors.init(id, value, stmt.span)?;
                Ok(None)
            }
        }
    }

    /// Whether an operand is a statement with a mistake, and not a tensor beside.
    fn is_broken(&self, id: &Id) -> bool {
        matches!(self.known.get(&id.it), Some(Introduced::Broken)) && self.tensors.named(id.it).is_none()
    }

    /// Eq. 19.
    fn build(&self, expr: &LoopExpr, span: Span) -> Evaluated<Nest> {
        let Some(id) = expr.ids.first() else {
            return Err(Box::new(Diagnostic::error(Code::E0246, span, "there is nothing to build")));
        };
        let at = match self.known.get(&id.it) {
            Some(Introduced::Tensor(Kind::Real(at))) => *at,
            None => return Err(unknown(&self.known, id, 19)),
            Some(other) => {
                let what = match other {
                    Introduced::Loop(_) => "a loop",
                    Introduced::Tensor(Kind::Virtual(_)) => "a virtual tensor",
                    _ => "a tensor, which no statement of this name writes",
                };
                let message = format!("`{}` is {what}: loops are built around assignments", id.it);
                let error = malformed(Code::E0245, 19, id.span, message);
                let writer = self.writers.get(&id.it);
                return Err(Box::new(match (other, writer) {
                    (Introduced::Tensor(Kind::Tensor(_)), Some(name)) => {
                        error.help(format!("`{name}` writes it: `build({name})`"))
                    }
                    (Introduced::Tensor(Kind::Virtual(_)), _) => {
                        error.help(format!("`eq({}, -> [..])` assigns it", id.it))
                    }
                    _ => *error,
                }));
            }
        };
        let assignment = &self.tensors.assignments[at];
        let iterators = nests::iterators(&self.tensors.values, assignment)?;
        self.loops.build(at, assignment.id, &iterators, span)
    }

    fn nest(&self, id: &Id) -> Evaluated<Nest> {
        match self.known.get(&id.it) {
            Some(Introduced::Loop(nest)) => Ok(nest.clone()),
            None => Err(unknown(&self.known, id, 26)),
            Some(_) => {
                let error =
                    malformed(Code::E0245, 26, id.span, format!("`{}` is a tensor expression, and no loop", id.it));
                Err(Box::new(error.help(format!("`l = build({})` makes one of an assignment", id.it))))
            }
        }
    }

    fn transform(&mut self, expr: &LoopExpr, span: Span) -> Evaluated<Nest> {
        let mut nests = Vec::with_capacity(expr.ids.len());
        for id in &expr.ids {
            nests.push(self.nest(id)?);
        }
        let Evaluation { tensors, loops, built, .. } = self;
        let leaf = |leaf: &Leaf| shown_leaf(built, leaf);
        let taken = |name: Name| tensors.is_name(name);
        loops.evaluate(&Context { sizes: &tensors.sizes, taken: &taken, leaf: &leaf }, expr, nests, span)
    }

    fn codegen(&mut self, name: Option<&Id>, loops: &[Id], span: Span) -> Done<()> {
        let mut entries = Vec::with_capacity(loops.len());
        #[cfg(test)]
        self.nests.push(Vec::new());
        for id in loops {
            if matches!(self.known.get(&id.it), Some(Introduced::Broken)) {
                return Err(None);
            }
            let nest = self.nest(id)?;
            let target = nest.assignments.first().map(|&at| self.tensors.assignments[at].target);
            let elem = target.and_then(|target| self.tensors.named(target)).map(|at| self.tensors.tensors[at].elem);
            #[cfg(test)]
            self.nests.last_mut().into_iter().for_each(|nests| nests.push(nest.clone()));
            let steps = self.loops.steps(&nest, elem.unwrap_or(self.elem), id.span);
            entries.push(Entry { assignments: nest.assignments.to_vec(), steps });
        }
        if self.routes.len() >= MOST_PATHS {
            let message = format!("there are at most {MOST_PATHS} `codegen` statements");
            return Err(Some(Box::new(Diagnostic::error(Code::E0703, span, message))));
        }
        let name = match name {
            Some(name) => {
                if let Some(before) = self.paths.get(&name.it) {
                    let message = format!("two paths are called `{}`", name.it);
                    let error = Diagnostic::error(Code::E0202, name.span, message);
                    return Err(Some(Box::new(error.also(*before, "the first one"))));
                }
                name.it
            }
            None => {
                let last = loops.last().map_or("path", |id| id.it.as_str());
                Name::fresh(last, |name| self.paths.contains_key(&name))
            }
        };
        self.paths.insert(name, span);
        self.routes.push(Route { name, span, entries });
        Ok(())
    }

    /// Writes down what a statement has changed.
    fn show(&mut self, stmt: &Stmt, id: Option<Name>, known: Option<&Introduced>) {
        if self.count > MOST_SHOWN {
            return;
        }
        let (now, before) = (self.count, self.count - 1);
        let before = if before == 0 { "∅".to_owned() } else { format!("σ{before}") };
        let changed = match (id, known) {
            (Some(id), Some(Introduced::Tensor(kind))) => {
                format!("{before}{{{id} ↦ {}}}", tree(&self.tensors, &self.defined, kind))
            }
            (Some(id), Some(Introduced::Loop(nest))) => {
                let leaf = |leaf: &Leaf| shown_leaf(&self.built, leaf);
                let ranges = nest::ranges(&nest.items);
                let ranges = if ranges.is_empty() { ranges } else { format!(", {ranges}") };
                format!("{before}{{{id} ↦ {}}}{ranges}", nest::shown(&nest.items, &leaf))
            }
            _ => before.clone(),
        };
        let _ = writeln!(self.states, "σ{now} = P⟦{stmt}⟧ {before}\n   = {changed}");
    }
}

/// The ids that a tensor expression reads.
fn operands(expr: &TensorExpr) -> Vec<Id> {
    match expr {
        TensorExpr::New { .. } => Vec::new(),
        TensorExpr::Eq { operand, .. } | TensorExpr::Transpose { operand, .. } => vec![*operand],
        TensorExpr::Op { operands: [(one, _), (two, _)], .. } => vec![*one, *two],
        TensorExpr::Contract { operands, .. } => operands.to_vec(),
        TensorExpr::Entrywise { operands, .. } | TensorExpr::Outer { operands, .. } => operands.clone(),
    }
}

fn lookup(known: &FxHashMap<Name, Introduced>, tensors: &FxHashMap<Name, usize>, id: &Id) -> Evaluated<Kind> {
    match known.get(&id.it) {
        Some(Introduced::Tensor(kind)) => Ok(kind.clone()),
        Some(Introduced::Loop(_)) => {
            let message = format!("`{}` is a loop, and no tensor expression", id.it);
            Err(malformed(Code::E0245, 15, id.span, message))
        }
        // A tensor that a statement with a mistake writes.
        Some(Introduced::Broken) | None => match tensors.get(&id.it) {
            Some(&at) => Ok(Kind::Tensor(at)),
            None => Err(unknown(known, id, 15)),
        },
    }
}

fn unknown(known: &FxHashMap<Name, Introduced>, id: &Id, by: u8) -> Box<Diagnostic> {
    let error = malformed(Code::E0201, by, id.span, format!("`{}` has not been introduced", id.it));
    Box::new(match near(id.it.as_str(), known.keys().map(|name| name.as_str())) {
        Some(near) => error.meant(id.it, near),
        None => *error,
    })
}

/// A statement in a tree: σ4(D), with what stands for its iterators where they are no longer loops.
fn shown_leaf(built: &FxHashMap<usize, (usize, Name)>, leaf: &Leaf) -> String {
    let changed = |(_, at): &&(Name, Ix)| at.as_var().is_none();
    let values: Vec<String> = leaf.at.iter().filter(changed).map(|(name, at)| format!("{name} ↦ {at}")).collect();
    let name = match built.get(&leaf.assignment) {
        Some((state, name)) => format!("σ{state}({name})"),
        None => "…".into(),
    };
    if values.is_empty() { name } else { format!("{name}{{{}}}", values.join(", ")) }
}
