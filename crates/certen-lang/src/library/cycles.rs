//! Calls have no cycles: a depth-first search over the functions and constants of a library, and over what each of them
//! uses.

use std::collections::HashMap;

use certen_syntax::{Code, Diagnostic, Diagnostics, Name, Span};

use super::{Declared, FileRef, Library};
use crate::ast::{Block, Dim, Expr, ExprKind, FoldOp, Function, Relation, Results, Type, WithOp};

/// How many names of a cycle are shown on each side.
const SHOWN: usize = 5;

impl Library {
    /// Reports the functions and constants that use themselves, directly or through others.
    pub fn check_cycles(&self, diagnostics: &mut Diagnostics) {
        let mut state: HashMap<Declared, Progress> = HashMap::new();
        let all = self.files().flat_map(|file| {
            let functions = self.functions_of(file).map(Declared::Function);
            functions.chain(self.constants_of(file).map(Declared::Const))
        });
        for root in all {
            if state.contains_key(&root) {
                continue;
            }
            // What is being looked at, from the root on: each with what it uses and the place where the next is used.
            let mut path: Vec<Visit> = Vec::new();
            state.insert(root, Progress::Open(0));
            path.push(Visit { item: root, uses: self.uses(root).into_iter(), at: Span::default() });
            while let Some(open) = path.last_mut() {
                let Some((used, span)) = open.uses.next() else {
                    state.insert(open.item, Progress::Done);
                    path.pop();
                    continue;
                };
                open.at = span;
                match state.get(&used) {
                    Some(Progress::Done) => {}
                    Some(Progress::Open(from)) => diagnostics.push(self.cycle(&path[*from..])),
                    None => {
                        state.insert(used, Progress::Open(path.len()));
                        path.push(Visit { item: used, uses: self.uses(used).into_iter(), at: Span::default() });
                    }
                }
            }
        }
    }

    fn cycle(&self, path: &[Visit]) -> Diagnostic {
        let name = |open: &Visit| match open.item {
            Declared::Function(function) => self.function(function).name.name,
            Declared::Const(constant) => self.constant(constant).name.name,
            Declared::Derived(derived) => self.derivation(derived).name,
        };
        let names: Vec<&str> = path.iter().chain(path.first()).map(|open| name(open).as_str()).collect();
        let shown = match names.len() {
            0..=10 => names.join(" -> "),
            many => format!("{} -> … -> {}", names[..SHOWN].join(" -> "), names[many - SHOWN..].join(" -> ")),
        };
        let at = path.last().map_or(Span::default(), |last| last.at);
        let first = names.first().copied().unwrap_or_default();
        let text = if path.len() == 1 {
            format!("`{first}` uses itself")
        } else {
            format!("`{first}` uses itself, by way of others: {shown}")
        };
        let mut error = Diagnostic::error(Code::E0217, at, text).label("this closes the cycle");
        for open in path.iter().rev().skip(1).rev().take(SHOWN) {
            error = error.also(open.at, format!("in `{}`", name(open)));
        }
        error.help("there is no recursion: `iterate k times` repeats a step, and `fold` combines elements")
    }

    /// The functions and constants that an item uses, and where.
    fn uses(&self, item: Declared) -> Vec<(Declared, Span)> {
        let file = item.file();
        let is_const = |name| matches!(self.lookup(file, name), Some(Declared::Const(_)));
        let mut walk = UseWalk { library: self, file, bound: HashMap::new(), todo: Vec::new(), found: Vec::new() };
        match item {
            Declared::Const(constant) => {
                let constant = self.constant(constant);
                constant.ty.iter().for_each(|ty| walk.ty(ty));
                walk.todo.push(Work::Expr(&constant.value));
            }
            // Nothing calls it; what it is derived from is looked at by itself.
            Declared::Derived(_) => {}
            Declared::Function(function) => {
                let function = self.function(function);
                bound_by_signature(function, is_const).into_iter().for_each(|name| walk.bind(name));
                walk.signature(function);
                walk.todo.push(Work::Block(&function.body));
            }
        }
        walk.run();
        walk.found
    }
}

/// How far the search has come with an item.
enum Progress {
    /// It is this far along the path.
    Open(usize),
    /// Everything that it uses has been looked at.
    Done,
}

struct Visit {
    item: Declared,
    uses: std::vec::IntoIter<(Declared, Span)>,
    /// Where the next one on the path is used.
    at: Span,
}

/// The names that a function's parameters bind: its tensors, and the sizes, shapes and ranks in their types.
fn bound_by_signature(function: &Function, is_const: impl Fn(Name) -> bool) -> Vec<Name> {
    let mut names = Vec::new();
    for param in &function.params {
        names.push(param.name.name);
        for dim in &param.ty.dims {
            match dim {
                // A constant in a type is the constant.
                Dim::Size(Expr { kind: ExprKind::Name(name), .. }) if !is_const(*name) => names.push(*name),
                Dim::Rest(shape) => names.push(shape.name),
                Dim::Ranked { rank, shape, .. } => names.extend([rank.name, shape.name]),
                Dim::Size(_) | Dim::One(_) | Dim::Any(_) | Dim::Some(_) => {}
            }
        }
    }
    names
}

/// A walk over expressions that knows which names are bound around them.
struct UseWalk<'a> {
    library: &'a Library,
    file: FileRef,
    /// How many binders of a name are open.
    bound: HashMap<Name, usize>,
    /// What is still to be seen, last first.
    todo: Vec<Work<'a>>,
    found: Vec<(Declared, Span)>,
}

enum Work<'a> {
    Expr(&'a Expr),
    Block(&'a Block),
    Bind(Name),
    Unbind(Name),
}

impl<'a> UseWalk<'a> {
    fn bind(&mut self, name: Name) {
        *self.bound.entry(name).or_default() += 1;
    }

    fn use_of(&mut self, name: Name, span: Span) {
        if let Some(found) = self.library.lookup(self.file, name) {
            self.found.push((found, span));
        }
    }

    fn run(&mut self) {
        while let Some(work) = self.todo.pop() {
            match work {
                Work::Bind(name) => self.bind(name),
                Work::Unbind(name) => {
                    if let Some(count) = self.bound.get_mut(&name) {
                        *count = count.saturating_sub(1);
                    }
                }
                Work::Expr(expr) => {
                    // What an expression adds is seen in the order it is added.
                    let from = self.todo.len();
                    self.expr(expr);
                    self.todo[from..].reverse();
                }
                Work::Block(block) => {
                    let from = self.todo.len();
                    self.block(block);
                    self.todo[from..].reverse();
                }
            }
        }
    }

    fn signature(&mut self, function: &'a Function) {
        function.params.iter().for_each(|param| self.ty(&param.ty));
        match &function.results {
            Results::Inferred => {}
            Results::One(ty) => self.ty(ty),
            Results::Named(results) => results.iter().for_each(|result| self.ty(&result.ty)),
        }
        self.todo.extend(function.associative.iter().chain(&function.wheres).map(Work::Expr));
    }

    fn ty(&mut self, ty: &'a Type) {
        let sizes = ty.dims.iter().filter_map(|dim| match dim {
            Dim::Size(size) => Some(Work::Expr(size)),
            _ => None,
        });
        self.todo.extend(sizes);
    }

    fn block(&mut self, block: &'a Block) {
        for binding in &block.lets {
            binding.ty.iter().for_each(|ty| self.ty(ty));
            self.todo.push(Work::Expr(&binding.value));
            self.todo.extend(binding.names.iter().map(|name| Work::Bind(name.name)));
        }
        self.todo.extend(block.results.iter().map(Work::Expr));
        self.todo.extend(block.lets.iter().flat_map(|binding| &binding.names).map(|name| Work::Unbind(name.name)));
    }

    fn expr(&mut self, expr: &'a Expr) {
        match &expr.kind {
            ExprKind::Name(name) => {
                if self.bound.get(name).is_none_or(|count| *count == 0) {
                    self.use_of(*name, expr.span);
                }
            }
            ExprKind::Call(function, ..) => {
                self.use_of(function.name, function.span);
                self.parts(expr);
            }
            ExprKind::If(condition, then, otherwise) => {
                self.todo.extend([Work::Expr(condition), Work::Block(then), Work::Block(otherwise)]);
            }
            ExprKind::Block(block) => self.todo.push(Work::Block(block)),
            ExprKind::Comprehension(partitions) => {
                for partition in partitions {
                    self.todo.extend(partition.generator.iter().flat_map(Relation::bounds).map(Work::Expr));
                    self.under(partition.pattern.names(), Work::Expr(&partition.body));
                }
            }
            ExprKind::With(with) => {
                for (pattern, relation, body) in &with.generators {
                    self.todo.extend(relation.bounds().map(Work::Expr));
                    self.under(pattern.names(), Work::Expr(body));
                }
                match &with.operation {
                    WithOp::Genarray(shape, default) => {
                        self.todo.extend([shape].into_iter().chain(default).map(Work::Expr));
                    }
                    WithOp::Modarray(array) => self.todo.push(Work::Expr(array)),
                    WithOp::Fold(op, neutral) => {
                        if let FoldOp::Function(function) = op {
                            self.use_of(function.name, function.span);
                        }
                        self.todo.push(Work::Expr(neutral));
                    }
                }
            }
            ExprKind::Iterate(iterate) => {
                self.todo.push(Work::Expr(&iterate.times));
                self.todo.extend(iterate.states.iter().map(|(_, first)| Work::Expr(first)));
                let states = iterate.states.iter().map(|(state, _)| state.name);
                let names = iterate.step.iter().map(|step| step.name).chain(states).collect();
                self.under(names, Work::Block(&iterate.body));
            }
            // All others bind nothing.
            _ => self.parts(expr),
        }
    }

    fn parts(&mut self, expr: &'a Expr) {
        let mut parts = Vec::new();
        expr.parts(&mut parts);
        self.todo.extend(parts.into_iter().map(Work::Expr));
    }

    /// A body under the names that are bound there.
    fn under(&mut self, names: Vec<Name>, body: Work<'a>) {
        self.todo.extend(names.iter().map(|name| Work::Bind(*name)));
        self.todo.push(body);
        self.todo.extend(names.into_iter().map(Work::Unbind));
    }
}
