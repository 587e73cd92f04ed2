//! The loops that a step works on: places in them, what holds at a place, and why a step cannot be done.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Write as _;

use certen_core::{Range, TensorType, TypeError};
use certen_index::{Cond, Condition, Decision, Facts, Ix, IxError, Proof, Status};
use certen_loops::{LoopProgram, Mode, Stmt, declarations};
use certen_syntax::schedule::Path;
use certen_syntax::{Code, Diagnostic, Name, Span, near};

use crate::depend::Part;
use crate::edit::Edit;

/// A step makes no more statements than this of fewer: copies of copies grow without end.
pub(crate) const MOST_STATEMENTS: usize = 4096;

/// What a step comes to.
pub(crate) type Done<T> = Result<T, Refusal>;

/// Why a step cannot be done.
#[derive(Debug)]
pub(crate) struct Refusal {
    diagnostic: Box<Diagnostic>,
    /// Statements that it speaks of.
    marked: Vec<Place>,
}

impl From<Diagnostic> for Refusal {
    fn from(diagnostic: Diagnostic) -> Refusal {
        Refusal { diagnostic: Box::new(diagnostic), marked: Vec::new() }
    }
}

impl From<IxError> for Refusal {
    fn from(error: IxError) -> Refusal {
        Diagnostic::error(Code::E0803, None, format!("an index would be too complex: {error}")).into()
    }
}

impl From<TypeError> for Refusal {
    fn from(error: TypeError) -> Refusal {
        Diagnostic::error(Code::E0803, None, format!("the loops would be ill-formed: {error}")).into()
    }
}

impl Refusal {
    /// That a step cannot be done here (E0803).
    pub(crate) fn cannot(message: impl Into<String>) -> Refusal {
        Diagnostic::error(Code::E0803, None, message).into()
    }

    /// A statement that it speaks of, which is marked where the loops are shown.
    pub(crate) fn at(mut self, place: &Place) -> Refusal {
        self.marked.push(place.clone());
        self
    }

    /// Without marks: it speaks of statements that the step has already moved.
    pub(crate) fn unmarked(mut self) -> Refusal {
        self.marked.clear();
        self
    }

    /// A further fact.
    pub(crate) fn note(mut self, text: impl Into<String>) -> Refusal {
        self.diagnostic = Box::new(self.diagnostic.note(text));
        self
    }

    /// What could be done instead.
    pub(crate) fn help(mut self, text: impl Into<String>) -> Refusal {
        self.diagnostic = Box::new(self.diagnostic.help(text));
        self
    }

    /// The error of a step at a place in the text, with the loops at that step.
    pub(crate) fn located(self, program: &LoopProgram, span: Span) -> Diagnostic {
        let mut error = *self.diagnostic;
        if error.primary.is_none() {
            let at = Diagnostic::error(error.code, span, String::new());
            error.primary = at.primary;
        }
        // What a step is called and takes has nothing to do with the loops.
        if error.code == Code::E0801 {
            return error;
        }
        error.note(format!("the loops at this step:\n{}", shown(program, &self.marked)))
    }
}

/// Whether a loop is a piece of one of this name: `i.o` of `i`.
fn is_piece(index: Name, whole: &str) -> bool {
    index.as_str().strip_prefix(whole).is_some_and(|rest| rest.starts_with('.'))
}

/// The statements of a program as text, with some of them marked in the margin.
pub(crate) fn shown(program: &LoopProgram, marked: &[Place]) -> String {
    // The text has one line for each statement and one for each end of a block, in order.
    fn lines(block: &[Stmt], here: &mut Place, marked: &[Place], marks: &mut Vec<bool>) {
        for (at, stmt) in block.iter().enumerate() {
            here.at = at;
            marks.push(marked.contains(here));
            let mut enter = |body: &[Stmt], otherwise: bool| {
                here.path.push(Turn { at, otherwise });
                lines(body, here, marked, marks);
                here.path.pop();
                here.at = at;
                marks.push(false);
            };
            match stmt {
                Stmt::For { body, .. } => enter(body, false),
                Stmt::If { then, otherwise, .. } => {
                    enter(then, false);
                    if !otherwise.is_empty() {
                        enter(otherwise, true);
                    }
                }
                _ => {}
            }
        }
    }
    let mut marks = Vec::new();
    lines(&program.body, &mut Place { path: Vec::new(), at: 0 }, marked, &mut marks);
    let text = program.to_string();
    let all: Vec<&str> = text.lines().collect();
    let body = &all[all.len().saturating_sub(marks.len())..];
    let mut out = String::new();
    for (line, mark) in body.iter().zip(&marks) {
        let _ = writeln!(out, "{} {line}", if *mark { '>' } else { ' ' });
    }
    out
}

/// The statements of a program as text, with those marked in the margin that are asked for.
pub fn marked(program: &LoopProgram, is_marked: impl Fn(&Stmt) -> bool) -> String {
    fn find(block: &[Stmt], path: &[Turn], is_marked: &dyn Fn(&Stmt) -> bool, found: &mut Vec<Place>) {
        for (at, stmt) in block.iter().enumerate() {
            if is_marked(stmt) {
                found.push(Place { path: path.to_vec(), at });
            }
            let inside = |otherwise| [path, &[Turn { at, otherwise }]].concat();
            match stmt {
                Stmt::For { body, .. } => find(body, &inside(false), is_marked, found),
                Stmt::If { then, otherwise, .. } => {
                    find(then, &inside(false), is_marked, found);
                    find(otherwise, &inside(true), is_marked, found);
                }
                _ => {}
            }
        }
    }
    let mut found = Vec::new();
    find(&program.body, &[], &is_marked, &mut found);
    shown(program, &found)
}

/// Where a statement stands: the statements around it, outermost first, and its position in the innermost block.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Place {
    pub path: Vec<Turn>,
    pub at: usize,
}

/// The way into a statement's block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Turn {
    pub at: usize,
    /// Whether it is the second block of a condition.
    pub otherwise: bool,
}

impl Place {
    /// The place of a statement in the body of this one.
    pub(crate) fn inside(&self, at: usize) -> Place {
        let mut path = self.path.clone();
        path.push(Turn { at: self.at, otherwise: false });
        Place { path, at }
    }

    /// Whether a place is in the statement at this one.
    fn holds(&self, inner: &Place) -> bool {
        let depth = self.path.len();
        inner.path.starts_with(&self.path) && inner.path.get(depth).is_some_and(|turn| turn.at == self.at)
    }

    /// The statement around it.
    pub(crate) fn around(&self) -> Option<Place> {
        let (last, path) = self.path.split_last()?;
        Some(Place { path: path.to_vec(), at: last.at })
    }

    /// Whether a statement stands inside of this one.
    pub(crate) fn contains(&self, inner: &Place) -> bool {
        inner.path.len() > self.path.len()
            && inner.path[..self.path.len()] == self.path[..]
            && inner.path[self.path.len()].at == self.at
    }
}

/// A loop.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    /// Its index.
    pub index: Name,
    /// Its range.
    pub range: Range,
    /// Its mode.
    pub mode: Mode,
    /// What is repeated.
    pub body: Vec<Stmt>,
}

impl Loop {
    /// A serial loop.
    pub(crate) fn new(index: Name, range: Range, body: Vec<Stmt>) -> Loop {
        Loop { index, range, mode: Mode::Serial, body }
    }

    /// How many iterations it has, if that is a number.
    pub(crate) fn trips(&self) -> Option<i64> {
        self.range.hi.sub(&self.range.lo).ok()?.as_constant().map(|trips| trips.max(0))
    }

    /// What holds in its body.
    pub(crate) fn bounds(&self) -> Result<Cond, IxError> {
        within(self.index, &self.range)
    }
}

impl From<Loop> for Stmt {
    fn from(Loop { index, range, mode, body }: Loop) -> Stmt {
        Stmt::For { index, range, mode, body }
    }
}

/// That an index is in a range.
pub(crate) fn within(index: Name, range: &Range) -> Result<Cond, IxError> {
    let i = Ix::var(index);
    Ok(Cond::le(&range.lo, &i)?.and(Cond::lt(&i, &range.hi)?))
}

/// A loop that a path can mean.
struct Found {
    place: Place,
    index: Name,
    stage: Option<Name>,
}

/// The name of a loop, with its stage.
fn within_stage(found: &Found) -> String {
    match found.stage {
        Some(stage) => format!("{stage}.{}", found.index),
        None => found.index.to_string(),
    }
}

/// The loops that a step works on, and the conditions that it has put.
#[derive(Clone)]
pub(crate) struct Nest {
    pub program: LoopProgram,
    /// Whether every operation on floats has to be made as written: no sum in another order, none fused with a product.
    pub strict: bool,
    conditions: Vec<Condition>,
    /// The indices of loops that have nothing to do with those that the step has named: they are in other stages, and
    /// neither around nor inside of them. How often each occurs; none before a loop is named.
    far: RefCell<Option<HashMap<Name, usize>>>,
}

impl Nest {
    pub(crate) fn new(program: LoopProgram, strict: bool) -> Nest {
        Nest { program, strict, conditions: Vec::new(), far: RefCell::new(None) }
    }

    pub(crate) fn finish(self) -> (LoopProgram, Vec<Condition>) {
        (self.program, self.conditions)
    }

    /// That the program has no more than [`MOST_STATEMENTS`], or no more than it had.
    pub(crate) fn has_not_grown(&self, before: &[Stmt]) -> Done<()> {
        match statements(&self.program.body) {
            now if now > MOST_STATEMENTS && now > statements(before) => {
                Err(Refusal::cannot(format!("this would make {now} statements; at most {MOST_STATEMENTS} are made")))
            }
            _ => Ok(()),
        }
    }

    // Places

    /// The block in which a place is.
    pub(crate) fn block(&self, place: &Place) -> &[Stmt] {
        let mut block: &[Stmt] = &self.program.body;
        for turn in &place.path {
            block = match block.get(turn.at) {
                Some(Stmt::For { body, .. }) => body,
                Some(Stmt::If { then, otherwise, .. }) => {
                    if turn.otherwise {
                        otherwise
                    } else {
                        then
                    }
                }
                _ => &[],
            };
        }
        block
    }

    /// The same, to be changed.
    pub(crate) fn block_mut(&mut self, place: &Place) -> Done<&mut Vec<Stmt>> {
        let lost = || Refusal::cannot("a place in the loops is gone");
        let mut block = &mut self.program.body;
        for turn in &place.path {
            block = match block.get_mut(turn.at).ok_or_else(lost)? {
                Stmt::For { body, .. } => body,
                Stmt::If { then, otherwise, .. } => {
                    if turn.otherwise {
                        otherwise
                    } else {
                        then
                    }
                }
                _ => return Err(lost()),
            };
        }
        Ok(block)
    }

    /// The statement at a place.
    pub(crate) fn stmt(&self, place: &Place) -> Option<&Stmt> {
        self.block(place).get(place.at)
    }

    /// Puts other statements in the place of one.
    pub(crate) fn replace(&mut self, place: &Place, with: impl IntoIterator<Item = Stmt>) -> Done<()> {
        let block = self.block_mut(place)?;
        if place.at >= block.len() {
            return Err(Refusal::cannot("a place in the loops is gone"));
        }
        block.splice(place.at..=place.at, with);
        Ok(())
    }

    /// The loop at a place.
    pub(crate) fn loop_at(&self, place: &Place) -> Done<Loop> {
        match self.stmt(place) {
            Some(Stmt::For { index, range, mode, body }) => {
                Ok(Loop { index: *index, range: range.clone(), mode: *mode, body: body.clone() })
            }
            _ => Err(Refusal::cannot("there is no loop at this place").at(place)),
        }
    }

    /// All loops, with the stage of each, in the order of the text.
    fn loops(&self) -> Vec<Found> {
        fn walk(block: &[Stmt], here: &Place, stage: Option<Name>, found: &mut Vec<Found>) {
            let mut stage = stage;
            for (at, stmt) in block.iter().enumerate() {
                let place = Place { path: here.path.clone(), at };
                let inside = |otherwise| {
                    let mut path = place.path.clone();
                    path.push(Turn { at, otherwise });
                    Place { path, at: 0 }
                };
                match stmt {
                    Stmt::Nest(name) => stage = Some(*name),
                    Stmt::For { index, body, .. } => {
                        let inner = inside(false);
                        found.push(Found { place, index: *index, stage });
                        walk(body, &inner, stage, found);
                    }
                    Stmt::If { then, otherwise, .. } => {
                        walk(then, &inside(false), stage, found);
                        walk(otherwise, &inside(true), stage, found);
                    }
                    _ => {}
                }
            }
        }
        let mut found = Vec::new();
        walk(&self.program.body, &Place { path: Vec::new(), at: 0 }, None, &mut found);
        found
    }

    /// The loop that a path means.
    pub(crate) fn find(&self, named: (&Path, Span)) -> Done<Place> {
        let loops = self.loops();
        let place = self.found(&loops, named)?;
        let stage = self.stage(&place);
        let is_far = |found: &&Found| found.stage != stage && !found.place.holds(&place) && !place.holds(&found.place);
        let mut now: HashMap<Name, usize> = HashMap::new();
        for far in loops.iter().filter(is_far) {
            *now.entry(far.index).or_default() += 1;
        }
        let mut far = self.far.borrow_mut();
        *far = Some(match far.take() {
            Some(before) => {
                now.into_iter().filter_map(|(name, count)| Some((name, count.min(*before.get(&name)?)))).collect()
            }
            None => now,
        });
        Ok(place)
    }

    fn found(&self, loops: &[Found], (path, span): (&Path, Span)) -> Done<Place> {
        let text = |parts: &[Name]| parts.iter().map(|part| part.as_str()).collect::<Vec<_>>().join(".");
        let whole = text(&path.parts);
        let staged = path.parts.split_first().filter(|(_, rest)| !rest.is_empty());
        let staged = staged.map(|(stage, rest)| (*stage, text(rest)));
        let is_output =
            |stage: Option<Name>| stage.is_some_and(|stage| self.program.outputs.iter().any(|o| o.name == stage));
        let of_stage = |found: &&Found| {
            staged.as_ref().is_some_and(|(stage, index)| found.stage == Some(*stage) && found.index.as_str() == index)
        };
        let mut matching: Vec<&Found> =
            loops.iter().filter(|found| found.index.as_str() == whole && is_output(found.stage)).collect();
        if matching.is_empty() {
            matching = loops.iter().filter(of_stage).collect();
        }
        // A loop of the result that has become others is not looked for in other stages.
        let became = |found: &Found| is_output(found.stage) && is_piece(found.index, &whole);
        if matching.is_empty() && !loops.iter().any(became) {
            matching = loops.iter().filter(|found| found.index.as_str() == whole).collect();
        }
        let error = |message: String| Diagnostic::error(Code::E0802, span, message);
        match (path.nth, matching.as_slice()) {
            (None, [one]) => Ok(one.place.clone()),
            (Some(nth), several) if (1..=several.len()).contains(&nth) => Ok(several[nth - 1].place.clone()),
            (_, []) => {
                let names: BTreeSet<String> = loops.iter().map(|found| self.called(found)).collect();
                let error = error(format!("there is no loop `{path}`"));
                let of_it: Vec<&String> = names.iter().filter(|name| name.starts_with(&format!("{whole}."))).collect();
                if !of_it.is_empty() {
                    return Err(error.note(format!("it has become {}", listed(of_it.into_iter()))).into());
                }
                let error = match near(&whole, names.iter().map(String::as_str)) {
                    Some(near) => error.help(format!("did you mean `{near}`?")),
                    None if names.is_empty() => error.note("there are no loops at this step"),
                    None => error.note(format!("the loops are {}", listed(names.iter()))),
                };
                Err(error.into())
            }
            (Some(nth), several) => {
                Err(error(format!("there is no loop number {nth} of the name `{whole}`: there are {}", several.len()))
                    .into())
            }
            (None, several) => {
                let ways: BTreeSet<String> = match several.iter().map(|found| found.stage).collect::<HashSet<_>>().len()
                {
                    1 => (1..=several.len()).map(|nth| format!("{path}#{nth}")).collect(),
                    // Of outputs too, whose name can be left out elsewhere.
                    _ => several.iter().map(|found| within_stage(found)).collect(),
                };
                let refusal: Refusal = error(format!("there are {} loops `{path}`", several.len()))
                    .help(format!("say which: {}", listed(ways.iter())))
                    .into();
                Err(several.iter().fold(refusal, |refusal, found| refusal.at(&found.place)))
            }
        }
    }

    /// What a schedule calls the loops of a kind.
    pub(crate) fn called_where(&self, kind: impl Fn(&Stmt) -> bool) -> Vec<String> {
        let loops = self.loops();
        loops
            .iter()
            .filter(|found| self.stmt(&found.place).is_some_and(&kind))
            .map(|found| self.called(found))
            .collect()
    }

    /// The loop at a place in a sentence, with its stage: `b.i`.
    pub(crate) fn called_at(&self, place: &Place) -> Option<String> {
        let Some(Stmt::For { index, .. }) = self.stmt(place) else { return None };
        Some(match self.stage(place) {
            Some(stage) => format!("the loop `{stage}.{index}`"),
            None => format!("the loop `{index}`"),
        })
    }

    /// The loops at two places in a sentence.
    pub(crate) fn called_both(&self, one: &Place, two: &Place) -> (String, String) {
        let called = |place| self.called_at(place).unwrap_or_else(|| "a statement".into());
        (called(one), called(two))
    }

    /// What a schedule calls a loop.
    fn called(&self, found: &Found) -> String {
        match found.stage {
            Some(stage) if !self.program.outputs.iter().any(|output| output.name == stage) => {
                format!("{stage}.{}", found.index)
            }
            _ => found.index.to_string(),
        }
    }

    /// The stage in which a place is.
    pub(crate) fn stage(&self, place: &Place) -> Option<Name> {
        let mut stage = None;
        let mut path = Vec::new();
        let ends = place.path.iter().map(|turn| (turn.at, Some(*turn))).chain([(place.at, None)]);
        for (end, turn) in ends {
            let block = self.block(&Place { path: path.clone(), at: 0 });
            for stmt in block.iter().take(end + 1) {
                if let Stmt::Nest(name) = stmt {
                    stage = Some(*name);
                }
            }
            path.extend(turn);
        }
        stage
    }

    /// The loops around a place, outermost first, with their places.
    pub(crate) fn loops_around(&self, place: &Place) -> Vec<(Place, Loop)> {
        let mut around = Vec::new();
        for depth in 0..place.path.len() {
            let outer = Place { path: place.path[..depth].to_vec(), at: place.path[depth].at };
            if let Ok(found) = self.loop_at(&outer) {
                around.push((outer, found));
            }
        }
        around
    }

    // What is known

    /// All that holds where a statement stands: of sizes, of the loops and of the conditions around it.
    pub(crate) fn facts(&self, place: &Place) -> Done<Facts> {
        let mut facts = Facts::new();
        self.program.facts.iter().for_each(|fact| facts.assume(fact.clone()));
        for depth in 0..place.path.len() {
            let turn = place.path[depth];
            match self.stmt(&Place { path: place.path[..depth].to_vec(), at: turn.at }) {
                Some(Stmt::For { index, range, .. }) => facts.assume(within(*index, range)?),
                Some(Stmt::If { cond, .. }) => facts.assume(if turn.otherwise { cond.not()? } else { cond.clone() }),
                _ => {}
            }
        }
        Ok(facts)
    }

    /// The type of a buffer, wherever it is declared.
    pub(crate) fn buffer(&self, name: Name) -> Option<&TensorType> {
        let parameters = self.program.inputs.iter().chain(&self.program.outputs);
        let given = parameters.filter(|parameter| parameter.name == name).map(|parameter| &parameter.ty).next();
        given.or_else(|| {
            declarations(&self.program.body).into_iter().find_map(|(declared, stmt)| match stmt {
                Stmt::Alloc(_, ty) if declared == name => Some(ty),
                _ => None,
            })
        })
    }

    /// The type of a buffer that is in scope at a place.
    pub(crate) fn type_at(&self, place: &Place, name: Name) -> Option<&TensorType> {
        let parameters = self.program.inputs.iter().chain(&self.program.outputs);
        let given = parameters.filter(|parameter| parameter.name == name).map(|parameter| &parameter.ty).next();
        given.or_else(|| {
            (0..=place.path.len()).rev().find_map(|depth| {
                let block = self.block(&Place { path: place.path[..depth].to_vec(), at: 0 });
                block.iter().find_map(|stmt| match stmt {
                    Stmt::Alloc(declared, ty) if *declared == name => Some(ty),
                    _ => None,
                })
            })
        })
    }

    // Names

    /// A name that nothing in the program has: this one, or with a number behind it.
    pub(crate) fn fresh(&self, base: &str) -> Name {
        let taken = self.taken();
        match Name::new(base) {
            free if !taken.contains(&free) => free,
            _ => Name::fresh(base, |name| taken.contains(&name)),
        }
    }

    /// All names of the program, but for the indices of loops that are far from those that the step has named: each stage
    /// can have its `i.o`.
    pub(crate) fn taken(&self) -> HashSet<Name> {
        let program = &self.program;
        let parameters = program.inputs.iter().chain(&program.outputs).map(|parameter| parameter.name);
        let mut taken: HashSet<Name> = program.sizes.iter().copied().chain(parameters).collect();
        let far = self.far.borrow();
        let mut seen: HashMap<Name, usize> = HashMap::new();
        for (name, stmt) in declarations(&program.body) {
            let count = seen.entry(name).or_default();
            *count += 1;
            let is_far = far.as_ref().and_then(|far| far.get(&name)).is_some_and(|far| *count <= *far);
            if !(is_far && matches!(stmt, Stmt::For { .. })) {
                taken.insert(name);
            }
        }
        taken
    }

    /// The name of a piece of a loop, `i.o` of `i`: nothing near has it.
    pub(crate) fn piece(&self, index: Name, suffix: &str) -> Name {
        self.fresh(&format!("{index}.{suffix}"))
    }

    /// A block in which what is declared at a position has another name from there on, which nothing has.
    pub(crate) fn renamed_from(&mut self, block: &[Stmt], at: usize, name: Name) -> Done<Vec<Stmt>> {
        let edit = Edit { names: HashMap::from([(name, self.fresh(name.as_str()))]), ..Edit::default() };
        let mut renamed = block[..at].to_vec();
        renamed.extend(edit.block(&mut self.program, &block[at..])?);
        Ok(renamed)
    }

    /// A copy of a block in which everything that it declares has another name: indices of loops with `suffix` behind a
    /// point, locals and buffers with a number.
    pub(crate) fn copy(&mut self, block: &[Stmt], suffix: &str, indices: Edit) -> Done<Vec<Stmt>> {
        let mut taken = self.taken();
        self.copy_beside(block, suffix, indices, &mut taken)
    }

    /// The same, beside other copies that are not yet in the program: `taken` has all names, and gets those of this copy.
    pub(crate) fn copy_beside(
        &mut self,
        block: &[Stmt],
        suffix: &str,
        indices: Edit,
        taken: &mut HashSet<Name>,
    ) -> Done<Vec<Stmt>> {
        let mut edit = indices;
        for (name, stmt) in declarations(block) {
            if edit.names.contains_key(&name) {
                continue;
            }
            let base = match stmt {
                Stmt::For { .. } => format!("{name}.{suffix}"),
                _ => name.to_string(),
            };
            let new = Name::fresh(&base, |name| taken.contains(&name));
            taken.insert(new);
            edit.names.insert(name, new);
        }
        Ok(edit.block(&mut self.program, block)?)
    }

    // Conditions

    /// What of a part conflicts: where operations are made as written, sums do not commute either.
    pub(crate) fn ordered(&self, part: Part) -> Part {
        if self.strict { part.strict() } else { part }
    }

    /// A condition that makes the step right.
    pub(crate) fn condition(&mut self, what: impl Into<String>, status: Status) {
        self.conditions.push(Condition { what: what.into(), status });
    }

    /// A condition on indices and sizes, put to the prover.
    pub(crate) fn require(&mut self, what: impl Into<String>, facts: &Facts, goal: Cond) {
        let status = match Proof::find(facts, goal) {
            Ok(proof) => Status::Proved(vec![proof]),
            Err(Decision::Refuted(found)) => Status::Fails(format!("for example {found}")),
            Err(_) => Status::Open,
        };
        self.condition(what, status);
    }
}

/// Things in a sentence.
pub(crate) fn listed(things: impl Iterator<Item = impl std::fmt::Display>) -> String {
    things.map(|thing| format!("`{thing}`")).collect::<Vec<_>>().join(", ")
}

/// How many statements a block has, with those inside of others.
pub(crate) fn statements(block: &[Stmt]) -> usize {
    let (mut blocks, mut count) = (vec![block], 0);
    while let Some(block) = blocks.pop() {
        count += block.len();
        for stmt in block {
            match stmt {
                Stmt::For { body, .. } => blocks.push(body),
                Stmt::If { then, otherwise, .. } => blocks.extend([then.as_slice(), otherwise]),
                _ => {}
            }
        }
    }
    count
}
