//! Checking: from the syntax tree to the typed tree.
//!
//! A function is checked once for each *instance*: the lengths of its shape variables, the element types that its
//! classes stand for. Sizes stay symbolic, so one check holds for all sizes that satisfy its facts. A call is checked
//! against the instance's signature alone: the arguments' types fit, the `where` clause is proved where the call
//! stands.
//!
//! Checking evaluates the index level ([`index`]), gives every expression a type, infers the bounds of comprehensions
//! ([`comprehension`], [`bounds`]) and proves every access ([`access`]). The guarantees are those of [`crate::typed`].
//! Truncations are judged last, in the Core of each function that has some.
//!
//! Needs: a [`Library`] without cycles of calls. Recursion follows the nesting of expressions and of calls between
//! polymorphic functions, so callers run it on a thread with a large stack.

mod access;
mod block;
mod bounds;
mod builtin;
mod call;
mod comprehension;
mod condition;
mod einsum;
mod expr;
mod index;
mod instance;
mod instantiate;
mod plan;
mod scope;
mod select;
mod signature;
mod stated;
mod stretch;
mod types;
mod value;
mod wanted;
mod with;

use std::collections::{BTreeMap, HashMap, HashSet};

use certen_core::ElemType;
use certen_syntax::{Code, Diagnostic, Diagnostics, Name, Span};

use crate::ast::{self, Elem, Results};
use crate::library::{ConstRef, FileRef, FunctionRef, Library};
use crate::typed::{self, FunctionId};
use crate::{passes, to_core, tree};
use instance::{Argument, Instance};
use scope::Checker;

/// What is known of the arguments of an entry whose signature leaves ranks or element types open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// The ranks of parameters.
    pub ranks: BTreeMap<Name, usize>,
    /// The element types of parameters.
    pub elems: BTreeMap<Name, ElemType>,
    /// The values of `size` parameters that say how many dimensions there are.
    pub values: BTreeMap<Name, i64>,
}

/// The largest rank that is tried when a polymorphic function is checked by itself.
const SAMPLE_RANKS: usize = 3;

/// An error that is already among the diagnostics.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reported;

type Checked<T> = Result<T, Reported>;

/// A file whose functions are all checked, with everything that they call. An instance is checked once, however often
/// it is asked for.
pub struct CheckedFile {
    library: Library,
    instances: Instances,
}

impl CheckedFile {
    /// Checks every function of the main file: those that are polymorphic at ranks 0 to 3 and at two element types.
    /// Nothing, if something is wrong.
    pub fn new(library: Library, diagnostics: &mut Diagnostics) -> Option<CheckedFile> {
        library.check_cycles(diagnostics);
        if diagnostics.has_errors() {
            return None;
        }
        let mut instances = Instances::default();
        let mut world = World::new(&library, &mut instances);
        for constant in library.constants_of(FileRef::MAIN) {
            world.check_constant(constant);
        }
        for function in library.own_functions() {
            world.check_by_itself(function);
        }
        if !world.diagnostics.has_errors() {
            world.check_truncations();
        }
        diagnostics.extend(world.diagnostics.iter().cloned());
        (!diagnostics.has_errors()).then_some(CheckedFile { library, instances })
    }

    /// The file as it was read.
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// Adds a function to the main file that nothing can call. It is checked when it is instantiated.
    pub fn add(&mut self, function: ast::Function) -> FunctionRef {
        self.library.add(function)
    }

    /// A function for what is known of its arguments, and every function that it calls.
    pub fn instantiate(
        &mut self,
        entry: FunctionRef,
        known: &Known,
        diagnostics: &mut Diagnostics,
    ) -> Option<typed::Program> {
        // What was refused is refused again, with its errors.
        self.instances.known.retain(|_, id| id.is_some());
        let mut world = World::new(&self.library, &mut self.instances);
        let made = world.entry(entry, known);
        diagnostics.extend(world.diagnostics.iter().cloned());
        let entry = made.ok()?;
        (!diagnostics.has_errors()).then(|| self.instances.program(entry))
    }
}

/// The functions that a [`CheckedFile`] checks, and those that they call, with nothing proved of accesses, partitions,
/// calls and reductions: for tests that look for what is out of bounds by running them.
#[doc(hidden)]
pub fn unproved(library: &Library, diagnostics: &mut Diagnostics) -> Vec<typed::Function> {
    let mut instances = Instances::default();
    let mut world = World { proves: false, ..World::new(library, &mut instances) };
    for function in library.own_functions() {
        world.check_by_itself(function);
    }
    diagnostics.extend(world.diagnostics.iter().cloned());
    instances.functions
}

/// The instances that were checked.
#[derive(Default)]
struct Instances {
    functions: Vec<typed::Function>,
    /// Where each size of an instance comes from, beside [`Instances::functions`].
    sources: Vec<Vec<signature::SizeSource>>,
    /// The instances that each one asked for, in order, beside [`Instances::functions`].
    asked: Vec<Vec<FunctionId>>,
    /// The same for those that are being checked.
    asking: Vec<Vec<FunctionId>>,
    /// None while it is checked, and if it is wrong.
    known: HashMap<(FunctionRef, Instance), Option<FunctionId>>,
    names: HashSet<Name>,
}

impl Instances {
    fn push(&mut self, mut typed: typed::Function, sources: Vec<signature::SizeSource>, asked: Vec<FunctionId>) {
        typed.name = Name::fresh(typed.source.as_str(), |name| self.names.contains(&name));
        self.names.insert(typed.name);
        self.functions.push(typed);
        self.sources.push(sources);
        self.asked.push(asked);
    }

    /// An instance with all that it asked for, numbered and named as if nothing else had been checked.
    fn program(&self, entry: FunctionId) -> typed::Program {
        let mut alone = Instances::default();
        let mut numbers = HashMap::new();
        self.copy(entry, &mut alone, &mut numbers);
        typed::Program { functions: alone.functions, entry: numbers[&entry] }
    }

    fn copy(&self, id: FunctionId, alone: &mut Instances, numbers: &mut HashMap<FunctionId, FunctionId>) {
        for &asked in &self.asked[id] {
            if !numbers.contains_key(&asked) {
                self.copy(asked, alone, numbers);
            }
        }
        let mut function = self.functions[id].clone();
        tree::renumber(&mut function.body, &|called| numbers[&called]);
        numbers.insert(id, alone.functions.len());
        alone.push(function, Vec::new(), Vec::new());
    }
}

/// Everything that is shared by the functions that are checked.
struct World<'l> {
    library: &'l Library,
    instances: &'l mut Instances,
    diagnostics: Diagnostics,
    /// What was reported: an error of a polymorphic function is the same in each of its instances.
    reported: HashSet<(Code, Option<Span>)>,
    /// Whether accesses and conditions are proved; not so for [`unproved`].
    proves: bool,
}

impl<'l> World<'l> {
    fn new(library: &'l Library, instances: &'l mut Instances) -> World<'l> {
        World { library, instances, diagnostics: Diagnostics::new(), reported: HashSet::new(), proves: true }
    }

    /// Keeps what was found in a function. Errors of an instance are shown beside the call that needs it.
    fn report(&mut self, found: Diagnostics, call: Option<(Span, &str)>) {
        for mut diagnostic in found.into_sorted() {
            if self.reported.insert((diagnostic.code, diagnostic.primary.as_ref().map(|label| label.span))) {
                if let Some((span, text)) = call {
                    diagnostic = diagnostic.also(span, text);
                }
                self.diagnostics.push(diagnostic);
            }
        }
    }

    /// The instance of a function, checked when it is first asked for.
    fn instance(&mut self, function: FunctionRef, instance: Instance, call: Option<Span>) -> Checked<FunctionId> {
        let key = (function, instance);
        let known = match self.instances.known.get(&key) {
            Some(known) => *known,
            None => {
                // A call of itself finds this; cycles were reported when the library was loaded.
                self.instances.known.insert(key.clone(), None);
                let made = self.check_instance(function, &key.1, call).ok();
                self.instances.known.insert(key, made);
                made
            }
        };
        let id = known.ok_or(Reported)?;
        if let Some(asking) = self.instances.asking.last_mut() {
            asking.push(id);
        }
        Ok(id)
    }

    fn check_instance(
        &mut self,
        function: FunctionRef,
        instance: &Instance,
        call: Option<Span>,
    ) -> Checked<FunctionId> {
        self.instances.asking.push(Vec::new());
        let mut checker = Checker::new(self, function);
        let made = checker.definition(instance);
        let found = checker.take_errors();
        let remark = format!("in this call{}", instance.describe());
        self.report(found, call.map(|span| (span, remark.as_str())));
        let asked = self.instances.asking.pop().unwrap_or_default();
        let (typed, sources) = made?;
        self.instances.push(typed, sources, asked);
        Ok(self.instances.functions.len() - 1)
    }

    /// Every function that truncates is judged by itself, with parameters that have no padding: what is legal then is
    /// legal wherever it is called.
    fn check_truncations(&mut self) {
        let functions = &self.instances.functions;
        let truncating: Vec<FunctionId> = (0..functions.len()).filter(|&id| truncates(&functions[id])).collect();
        if truncating.is_empty() {
            return;
        }
        let mut program = typed::Program { functions: functions.clone(), entry: 0 };
        passes::run(&mut program);
        for entry in truncating {
            program.entry = entry;
            let own = show_truncating_lets(&mut program.functions[entry]);
            let mut found = Diagnostics::new();
            found.extend(to_core::truncations(&program));
            self.report(found, None);
            let function = &mut program.functions[entry];
            function.results.truncate(own);
            function.body.results.truncate(own);
        }
    }

    fn check_constant(&mut self, constant: ConstRef) {
        let name = &self.library.constant(constant).name;
        let mut checker = Checker::of_file(self, constant.file);
        // What is wrong is among the errors.
        let _ = checker.name(name.name, name.span);
        let found = checker.take_errors();
        self.report(found, None);
    }

    /// Checks a function without a call: all sample instances until one is wrong.
    fn check_by_itself(&mut self, function: FunctionRef) {
        let ast = self.library.function(function);
        if matches!(&ast.results, Results::One(ty) if ty.elem == Elem::Size) {
            let mut checker = Checker::new(self, function);
            // What is wrong is among the errors.
            let _ = checker.index_definition();
            let found = checker.take_errors();
            return self.report(found, None);
        }
        let samples = instance::samples(self.library, function.file, ast, SAMPLE_RANKS);
        // One that is wrong ends it: the others would repeat its errors.
        let _ = samples.into_iter().try_for_each(|sample| self.instance(function, sample, None).map(|_| ()));
    }

    fn entry(&mut self, function: FunctionRef, known: &Known) -> Checked<FunctionId> {
        let ast = self.library.function(function);
        if let Results::One(ty) = &ast.results
            && ty.elem == Elem::Size
        {
            let text = format!("`{}` gives an index: it can be called, but not run by itself", ast.name.name);
            self.report(Diagnostics::from(Diagnostic::error(Code::E0235, ty.span, text)), None);
            return Err(Reported);
        }
        let arguments: Vec<Argument> = ast
            .params
            .iter()
            .map(|param| Argument {
                rank: known.ranks.get(&param.name.name).copied(),
                value: known.values.get(&param.name.name).copied(),
                elem: known.elems.get(&param.name.name).copied(),
                place: None,
            })
            .collect();
        match instance::solve(self.library, function.file, ast, &arguments, instance::Asker::Entry) {
            Ok(instance) => self.instance(function, instance, None),
            Err(error) => {
                self.report(Diagnostics::from(*error), None);
                Err(Reported)
            }
        }
    }
}

/// Whether a function has a truncation of its own.
fn truncates(function: &typed::Function) -> bool {
    let mut found = false;
    tree::walk_block(&function.body, &mut |met| found |= is_truncation(&met));
    found
}

fn is_truncation(met: &tree::Met<'_>) -> bool {
    matches!(met, tree::Met::Expr(expr) if matches!(expr.kind, typed::Kind::Trunc(..)))
}

/// Makes the `let`s of a function that truncate results of it: those that are never read are judged too. Gives the
/// number of results that it had.
fn show_truncating_lets(function: &mut typed::Function) -> usize {
    let own = function.results.len();
    let mut taken: HashSet<Name> = function.results.iter().map(|(name, _)| *name).collect();
    for bound in &function.body.lets {
        let (typed::Rhs::Expr(e), [(name, ty)]) = (&bound.value, bound.names.as_slice()) else { continue };
        let mut found = false;
        tree::walk(e, &mut |met| found |= is_truncation(&met));
        if found {
            let shown = Name::fresh(name.as_str(), |name| taken.contains(&name));
            taken.insert(shown);
            function.results.push((shown, ty.clone()));
            let kind = typed::Kind::Var(*name);
            function.body.results.push(typed::Expr { kind, ty: ty.clone(), span: e.span });
        }
    }
    own
}

fn too_complex(span: Span, error: certen_index::IxError) -> Diagnostic {
    Diagnostic::error(Code::E0216, span, format!("this expression over sizes cannot be used: {error}"))
}
