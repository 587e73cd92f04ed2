//! Python files walked: what variables hold, as far as the text tells, and the kernels that are met on the way.
//!
//! Statements are looked at in their order, each scope by itself: the tensor expressions of a scope are one kernel, each
//! call of `einsum` is one. Nothing is executed; what a loop or a branch assigns is not known after it.

use std::collections::BTreeSet;

use certen_syntax::{Diagnostic, FileId, Name, Sources};
use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{ExceptHandler, Expr, ExprCall, Number, Operator, Parameters, Stmt, UnaryOp};

use crate::einsum;
use crate::index::Index;
use crate::kernel::Kernel;
use crate::python::{Argument, Arguments, Imports, Known, Script, path};
use crate::text::stem;
use crate::tvm::{Scope, Stages, is_tvm};

/// The kernels of a file, and what else its reader should know.
pub(crate) fn read(sources: &Sources, file: FileId) -> Result<(Vec<Kernel>, Vec<Diagnostic>), Vec<Diagnostic>> {
    let script = Script::parse(sources, file)?;
    let mut walk = Walk {
        script: &script,
        imports: Imports::default(),
        kernels: Vec::new(),
        notes: Vec::new(),
        errors: Vec::new(),
    };
    let name = stem(sources, file);
    walk.scope(&script.module.body, Scope::new(), Stages::new(), &name);
    let Walk { mut kernels, notes, errors, .. } = walk;
    if !errors.is_empty() {
        return Err(errors);
    }
    kernels.sort_by_key(|kernel| kernel.span.start);
    let mut taken = BTreeSet::new();
    for kernel in &mut kernels {
        kernel.name = Name::fresh(kernel.name.as_str(), |name| taken.contains(&name));
        taken.insert(kernel.name);
    }
    Ok((kernels, notes))
}

struct Walk<'a> {
    script: &'a Script<'a>,
    imports: Imports,
    kernels: Vec<Kernel>,
    notes: Vec<Diagnostic>,
    errors: Vec<Diagnostic>,
}

/// Calls in the expressions of one statement, the inner ones first.
struct Calls<'a>(Vec<&'a ExprCall>);

impl<'a> Visitor<'a> for Calls<'a> {
    fn visit_stmt(&mut self, _: &'a Stmt) {}

    fn visit_expr(&mut self, expr: &'a Expr) {
        walk_expr(self, expr);
        if let Expr::Call(call) = expr {
            self.0.push(call);
        }
    }
}

impl<'a> Walk<'a> {
    /// The statements of a function, or of the file.
    fn scope(&mut self, body: &'a [Stmt], mut scope: Scope<'a>, mut stages: Stages, name: &str) {
        self.statements(body, &mut scope, &mut stages);
        self.kernels.extend(stages.kernel(name));
    }

    fn statements(&mut self, body: &'a [Stmt], scope: &mut Scope<'a>, stages: &mut Stages) {
        for statement in body {
            self.imports.learn(statement);
            self.einsums(statement, scope);
            self.statement(statement, scope, stages);
        }
    }

    /// Calls of `einsum` in a statement, its blocks left out.
    fn einsums(&mut self, statement: &'a Stmt, scope: &Scope<'a>) {
        let mut calls = Calls(Vec::new());
        walk_stmt(&mut calls, statement);
        for call in calls.0 {
            let Some(path) = self.imports.full(&call.func) else { continue };
            if path != "einsum" && !path.ends_with(".einsum") {
                continue;
            }
            let arguments = self.arguments(call, scope, &mut Stages::new());
            match einsum::call(self.script, call, &path, &arguments) {
                Ok(kernel) => self.kernels.push(kernel),
                Err(note) => self.notes.push(*note),
            }
        }
    }

    fn statement(&mut self, statement: &'a Stmt, scope: &mut Scope<'a>, stages: &mut Stages) {
        match statement {
            Stmt::FunctionDef(function) => {
                let (mut inside, mut inner) = (scope.clone(), stages.inside());
                self.parameters(&function.parameters, &mut inside, &mut inner);
                self.scope(&function.body, inside, inner, function.name.as_str());
                scope.insert(function.name.as_str().to_owned(), Known::Function(function));
            }
            Stmt::ClassDef(class) => self.scope(&class.body, scope.clone(), stages.inside(), class.name.as_str()),
            Stmt::Assign(assign) => {
                let mut value = self.value(&assign.value, scope, stages);
                if matches!(value, Known::Unknown)
                    && let Some(shape) = self.script.comment(statement).and_then(einsum::commented)
                {
                    value = shape;
                }
                for target in &assign.targets {
                    self.assign(target, value.clone(), scope, stages);
                }
            }
            Stmt::AnnAssign(assign) => {
                let known = einsum::annotated(&assign.annotation);
                let value = assign.value.as_ref().map(|value| self.value(value, scope, stages));
                let value = value.filter(|value| !matches!(value, Known::Unknown)).or(known);
                self.assign(&assign.target, value.unwrap_or(Known::Unknown), scope, stages);
            }
            Stmt::AugAssign(assign) => self.assign(&assign.target, Known::Unknown, scope, stages),
            Stmt::Expr(expr) => {
                self.value(&expr.value, scope, stages);
            }
            Stmt::Return(result) => {
                if let Some(value) = &result.value {
                    self.value(value, scope, stages);
                }
            }
            Stmt::With(with) => self.statements(&with.body, scope, stages),
            Stmt::For(_) | Stmt::While(_) | Stmt::If(_) | Stmt::Try(_) | Stmt::Match(_) => {
                self.branches(statement, scope, stages);
            }
            _ => {}
        }
    }

    /// Statements that may run once, often or never: what they assign is not known after them.
    fn branches(&mut self, statement: &'a Stmt, scope: &mut Scope<'a>, stages: &mut Stages) {
        let bodies: Vec<&'a [Stmt]> = match statement {
            Stmt::For(statement) => vec![&statement.body, &statement.orelse],
            Stmt::While(statement) => vec![&statement.body, &statement.orelse],
            Stmt::If(statement) => {
                let others = statement.elif_else_clauses.iter().map(|clause| &clause.body[..]);
                [&statement.body[..]].into_iter().chain(others).collect()
            }
            Stmt::Try(statement) => {
                let handlers = statement.handlers.iter().map(|ExceptHandler::ExceptHandler(it)| &it.body[..]);
                [&statement.body[..]]
                    .into_iter()
                    .chain(handlers)
                    .chain([&statement.orelse[..], &statement.finalbody[..]])
                    .collect()
            }
            Stmt::Match(statement) => statement.cases.iter().map(|case| &case.body[..]).collect(),
            _ => Vec::new(),
        };
        let before = scope.clone();
        let mut changed = BTreeSet::new();
        for body in bodies {
            let mut inside = before.clone();
            if let Stmt::For(statement) = statement {
                self.assign(&statement.target, Known::Unknown, &mut inside, stages);
            }
            self.statements(body, &mut inside, stages);
            assigned(body, &mut changed);
        }
        for name in changed {
            let opaque = Known::Opaque(stages.size(&name));
            scope.insert(name, opaque);
        }
    }

    fn parameters(&mut self, parameters: &'a Parameters, scope: &mut Scope<'a>, stages: &mut Stages) {
        for parameter in parameters.iter() {
            let name = parameter.name().as_str();
            let annotated = parameter.annotation().and_then(einsum::annotated);
            let commented = || {
                let lines = parameters.iter().filter(|it| self.script.line(it) == self.script.line(&parameter)).count();
                self.script.comment(&parameter).filter(|_| lines == 1).and_then(einsum::commented)
            };
            let known = annotated.or_else(commented).unwrap_or_else(|| Known::Opaque(stages.size(name)));
            scope.insert(name.to_owned(), known);
        }
    }

    fn assign(&mut self, target: &'a Expr, value: Known<'a>, scope: &mut Scope<'a>, stages: &mut Stages) {
        match target {
            Expr::Name(name) => {
                let name = name.id.as_str();
                if let Known::Tensor(tensor) = value {
                    stages.named(tensor, name);
                }
                let value = if let Known::Unknown = value { Known::Opaque(stages.size(name)) } else { value };
                scope.insert(name.to_owned(), value);
            }
            Expr::Tuple(_) | Expr::List(_) => {
                let targets = match target {
                    Expr::Tuple(tuple) => &tuple.elts,
                    Expr::List(list) => &list.elts,
                    _ => return,
                };
                let mut parts = match value {
                    Known::List(parts) if parts.len() == targets.len() => parts,
                    _ => vec![Known::Unknown; targets.len()],
                };
                for (target, value) in targets.iter().zip(parts.drain(..)) {
                    self.assign(target, value, scope, stages);
                }
            }
            _ => {}
        }
    }

    fn arguments(&mut self, call: &'a ExprCall, scope: &Scope<'a>, stages: &mut Stages) -> Arguments<'a> {
        let mut found = Vec::new();
        for expr in &call.arguments.args {
            found.push(Argument { name: None, known: self.value(expr, scope, stages), expr });
        }
        for keyword in &call.arguments.keywords {
            let known = self.value(&keyword.value, scope, stages);
            // `**options` has no name that is known.
            let name = Some(keyword.arg.as_ref().map_or("**", |name| name.as_str()));
            found.push(Argument { name, known, expr: &keyword.value });
        }
        Arguments(found)
    }

    /// What an expression is, as far as it is known.
    fn value(&mut self, expr: &'a Expr, scope: &Scope<'a>, stages: &mut Stages) -> Known<'a> {
        match expr {
            Expr::NumberLiteral(literal) => match &literal.value {
                Number::Int(value) => value.as_i64().map_or(Known::Unknown, |value| Known::Index(Index::Num(value))),
                Number::Float(value) => Known::Number(*value),
                Number::Complex { .. } => Known::Unknown,
            },
            Expr::StringLiteral(text) => Known::Text(text.value.to_str().to_owned()),
            Expr::Name(name) => scope.get(name.id.as_str()).cloned().unwrap_or(Known::Unknown),
            Expr::Tuple(tuple) => Known::List(tuple.elts.iter().map(|part| self.value(part, scope, stages)).collect()),
            Expr::List(list) => Known::List(list.elts.iter().map(|part| self.value(part, scope, stages)).collect()),
            Expr::Lambda(lambda) => Known::Lambda(lambda),
            Expr::UnaryOp(unary) => match (unary.op, self.value(&unary.operand, scope, stages)) {
                (UnaryOp::USub, Known::Index(index)) => Known::Index(Index::Num(0) - index),
                (UnaryOp::USub, Known::Number(number)) => Known::Number(-number),
                _ => Known::Unknown,
            },
            Expr::BinOp(binary) => {
                let left = self.value(&binary.left, scope, stages);
                arithmetic(binary.op, &left, &self.value(&binary.right, scope, stages))
            }
            Expr::Attribute(attribute) => {
                let known = self.value(&attribute.value, scope, stages);
                attribute_of(stages, &known, attribute.attr.as_str())
            }
            Expr::Subscript(subscript) => {
                let at = self.value(&subscript.slice, scope, stages);
                match (self.value(&subscript.value, scope, stages), at) {
                    (Known::List(parts), Known::Index(at)) => {
                        let at = at.number().and_then(|at| usize::try_from(at).ok());
                        at.and_then(|at| parts.get(at).cloned()).unwrap_or(Known::Unknown)
                    }
                    _ => Known::Unknown,
                }
            }
            Expr::Call(call) => self.call(call, scope, stages),
            _ => Known::Unknown,
        }
    }

    fn call(&mut self, call: &'a ExprCall, scope: &Scope<'a>, stages: &mut Stages) -> Known<'a> {
        // A variable of a module's name hides it.
        let hidden = path(&call.func).and_then(|path| scope.get(path.split('.').next()?).cloned());
        let full = self.imports.full(&call.func).filter(|_| hidden.is_none());
        if let Expr::Attribute(attribute) = &*call.func
            && full.as_deref().is_none_or(|path| !is_library(path))
        {
            let arguments = self.arguments(call, scope, stages);
            return match self.value(&attribute.value, scope, stages) {
                Known::Array(shape) => {
                    einsum::method(&shape, attribute.attr.as_str(), &arguments).unwrap_or(Known::Unknown)
                }
                // A generator of random numbers has the functions of its library.
                _ => einsum::made(&format!(".{}", attribute.attr.as_str()), &arguments).unwrap_or(Known::Unknown),
            };
        }
        let arguments = self.arguments(call, scope, stages);
        let Some(path) = full else { return Known::Unknown };
        if is_tvm(&path) {
            let span = self.script.span(call);
            return stages.call(self.script, &self.imports, scope, &path, &arguments, span).unwrap_or_else(|error| {
                self.errors.push(*error);
                Known::Unknown
            });
        }
        match (path.as_str(), arguments.0.first().map(|first| &first.known)) {
            ("int", Some(known @ Known::Index(_))) => known.clone(),
            ("len", Some(Known::List(parts))) => Known::Index(Index::Num(parts.len() as i64)),
            _ => einsum::made(&path, &arguments).unwrap_or(Known::Unknown),
        }
    }
}

/// Whether a path begins with a module that is known.
fn is_library(path: &str) -> bool {
    let known = ["tvm", "numpy", "torch", "jax", "tensorflow", "cupy", "opt_einsum", "dask"];
    known.contains(&path.split('.').next().unwrap_or_default())
}

/// Names that statements assign, their blocks included.
fn assigned(body: &[Stmt], names: &mut BTreeSet<String>) {
    fn target(expr: &Expr, names: &mut BTreeSet<String>) {
        match expr {
            Expr::Name(name) => {
                names.insert(name.id.as_str().to_owned());
            }
            Expr::Tuple(tuple) => tuple.elts.iter().for_each(|part| target(part, names)),
            Expr::List(list) => list.elts.iter().for_each(|part| target(part, names)),
            Expr::Starred(starred) => target(&starred.value, names),
            _ => {}
        }
    }
    for statement in body {
        match statement {
            Stmt::Assign(assign) => assign.targets.iter().for_each(|it| target(it, names)),
            Stmt::AnnAssign(assign) => target(&assign.target, names),
            Stmt::AugAssign(assign) => target(&assign.target, names),
            Stmt::For(it) => {
                target(&it.target, names);
                assigned(&it.body, names);
                assigned(&it.orelse, names);
            }
            Stmt::While(it) => {
                assigned(&it.body, names);
                assigned(&it.orelse, names);
            }
            Stmt::If(it) => {
                assigned(&it.body, names);
                it.elif_else_clauses.iter().for_each(|clause| assigned(&clause.body, names));
            }
            Stmt::With(it) => assigned(&it.body, names),
            Stmt::Try(it) => {
                assigned(&it.body, names);
                it.handlers.iter().for_each(|ExceptHandler::ExceptHandler(handler)| assigned(&handler.body, names));
                assigned(&it.orelse, names);
                assigned(&it.finalbody, names);
            }
            Stmt::Match(it) => it.cases.iter().for_each(|case| assigned(&case.body, names)),
            _ => {}
        }
    }
}

/// What an attribute of a value is.
fn attribute_of<'a>(stages: &Stages, known: &Known<'a>, attribute: &str) -> Known<'a> {
    let sizes = |shape: &[Index]| Known::List(shape.iter().cloned().map(Known::Index).collect());
    match (known, attribute) {
        (Known::Tensor(tensor), "shape") => stages.tensors.get(*tensor).map_or(Known::Unknown, |it| sizes(&it.shape)),
        (Known::Array(shape), "shape") => sizes(shape),
        (Known::Array(shape), "T") => Known::Array(shape.iter().rev().cloned().collect()),
        (Known::Array(shape), "ndim") => Known::Index(Index::Num(shape.len() as i64)),
        _ => Known::Unknown,
    }
}

fn arithmetic<'a>(op: Operator, a: &Known<'a>, b: &Known<'a>) -> Known<'a> {
    if let (Known::List(a), Known::List(b), Operator::Add) = (a, b, op) {
        return Known::List([a.clone(), b.clone()].concat());
    }
    let (Some(a), Some(b)) = (a.index(), b.index()) else { return Known::Unknown };
    let made = match op {
        Operator::Add => Some(a + b),
        Operator::Sub => Some(a - b),
        Operator::Mult => Some(a * b),
        Operator::FloorDiv => a.floor_div(&b),
        Operator::Mod => a.modulo(&b),
        _ => None,
    };
    // What the prover cannot take stays unknown.
    made.filter(|index| index.ix().is_ok()).map_or(Known::Unknown, Known::Index)
}
