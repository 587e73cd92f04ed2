//! Calls: what a called name stands for, and functions on indices, which are evaluated where they are called. Calls of
//! all other functions are matched with a signature in [`super::instantiate`].

use certen_core::TensorType;
use certen_index::Ix;
use certen_syntax::{Code, Diagnostic, Name, Span};

use super::index::Index;
use super::scope::{Checker, Referent};
use super::types::shape_text;
use super::value::{Draft, Judged};
use super::{Checked, Reported};
use crate::ast::{self, Dim, Elem, ExprKind, Ident, Results};
use crate::library::{Declared, DerivedRef, FileRef, FunctionRef};
use crate::typed::{Expr, Kind, Rhs};

impl Checker<'_, '_> {
    pub fn call(
        &mut self,
        name: Ident,
        args: &[ast::Expr],
        named: &[(Ident, ast::Expr)],
        span: Span,
    ) -> Checked<Judged> {
        match self.meaning(name.name) {
            Some(Referent::Wrong) => return Err(Reported),
            Some(_) => {
                let error = Diagnostic::error(Code::E0235, name.span, format!("`{}` is no function", name.name))
                    .help(format!("elements are selected with brackets: `{}[…]`", name.name));
                return self.fail(error);
            }
            None => {}
        }
        match self.world.library.lookup(self.file, name.name) {
            Some(Declared::Function(function)) => {
                if let Some((keyword, _)) = named.first() {
                    let text = format!("`{}` has no argument called `{}`", name.name, keyword.name);
                    return self.error(Code::E0235, keyword.span, text);
                }
                let mut values = Vec::new();
                let ast = self.world.library.function(function);
                for arg in args {
                    let wanted = self.wanted_by_parameter(ast, &values);
                    self.want(arg, wanted.as_ref());
                    values.push((self.expr(arg)?, arg.span));
                }
                if function.file == FileRef::PRELUDE
                    && let Some(vector) = self.of_vectors(name, &values)
                {
                    return Ok(vector);
                }
                self.apply(function, values, span)
            }
            Some(Declared::Const(_)) => {
                let text = format!("`{}` is a constant, not a function", name.name);
                self.error(Code::E0235, name.span, text)
            }
            Some(Declared::Derived(derived)) => self.no_call(derived, name.span),
            None => match self.builtin(name, args, named, span)? {
                Some(value) => Ok(value),
                None => {
                    let mut error =
                        Diagnostic::error(Code::E0201, name.span, format!("there is no function `{}`", name.name));
                    if let Some(near) = self.nearest(name.name) {
                        error = error.meant(name.name, near);
                    }
                    self.fail(error)
                }
            },
        }
    }

    /// What is derived has loops of its own, which are not part of a caller's.
    pub fn no_call<T>(&mut self, derived: DerivedRef, span: Span) -> Checked<T> {
        let derivation = self.world.library.derivation(derived);
        let (name, from) = (derivation.name, derivation.from);
        let text = format!("`{name}` is derived from `{from}`, and cannot be called in the language");
        let error = Diagnostic::error(Code::E0235, span, text).also(derivation.head, "derived here");
        self.fail(error.help(format!("`{from}` means the same; a derivation of this function can rewrite its call")))
    }

    /// `take` and `drop` of the prelude on an index vector: the result is one too, not data.
    fn of_vectors(&mut self, name: Ident, values: &[(Judged, Span)]) -> Option<Judged> {
        let [(Judged::Vector(count), _), (Judged::Vector(parts), _)] = values else { return None };
        let take = match name.name.as_str() {
            "take" => true,
            "drop" => false,
            _ => return None,
        };
        // The length of an index vector is known; where it would not be, the vector is used as data.
        let count = count.first().filter(|_| count.len() == 1).and_then(Index::constant)?;
        let length = parts.len();
        let amount = usize::try_from(count.unsigned_abs()).unwrap_or(length).min(length);
        let from_front = (count >= 0) == take;
        let kept = match (take, from_front) {
            (true, true) => 0..amount,
            (true, false) => length - amount..length,
            (false, true) => 0..length - amount,
            (false, false) => amount..length,
        };
        Some(Judged::Vector(parts[kept].to_vec()))
    }

    /// A call of a function with several results; nothing if it has one.
    pub fn call_several(
        &mut self,
        name: Ident,
        args: &[ast::Expr],
        named: &[(Ident, ast::Expr)],
        span: Span,
    ) -> Checked<Option<(Rhs, Vec<TensorType>)>> {
        if self.meaning(name.name).is_some() || !named.is_empty() {
            return Ok(None);
        }
        let Some(Declared::Function(function)) = self.world.library.lookup(self.file, name.name) else {
            return Ok(None);
        };
        let ast = self.world.library.function(function);
        let several = match &ast.results {
            Results::Named(results) => results.len() > 1,
            Results::Inferred => ast.body.results.len() > 1,
            Results::One(_) => false,
        };
        if !several {
            return Ok(None);
        }
        let mut values = Vec::new();
        for arg in args {
            let wanted = self.wanted_by_parameter(ast, &values);
            self.want(arg, wanted.as_ref());
            values.push((self.expr(arg)?, arg.span));
        }
        let (call, types) = self.instantiated(function, values, span)?;
        Ok(Some((Rhs::Call(call), types)))
    }

    /// A function applied to values, for one result.
    pub fn apply(&mut self, function: FunctionRef, values: Vec<(Judged, Span)>, span: Span) -> Checked<Judged> {
        let ast = self.world.library.function(function);
        if matches!(&ast.results, Results::One(ty) if ty.elem == Elem::Size) {
            return self.index_function(function, values, span);
        }
        // An index that is one of several is lifted to the call.
        let case = values.iter().enumerate().find_map(|(at, (value, _))| match value {
            Judged::Index(Index::Case(case)) if is_index(ast, at) => Some((at, None, case.clone())),
            Judged::Vector(components) if is_index(ast, at) => {
                components.iter().enumerate().find_map(|(component, index)| match index {
                    Index::Case(case) => Some((at, Some(component), case.clone())),
                    Index::Is(_) => None,
                })
            }
            _ => None,
        });
        if let Some((at, component, case)) = case {
            let not = self.made(span, case.0.not())?;
            let replaced = |with: &Index| {
                let mut values = values.clone();
                match (&mut values[at].0, component) {
                    (Judged::Vector(parts), Some(component)) => parts[component] = with.clone(),
                    (value, _) => *value = Judged::Index(with.clone()),
                }
                values
            };
            if let Some(decided) = self.decided(&case.0, &not) {
                let branch = if decided { &case.1 } else { &case.2 };
                return self.apply(function, replaced(branch), span);
            }
            let then = self.guarded(case.0.clone(), |f| f.apply(function, replaced(&case.1), span))?;
            let otherwise = self.guarded(not, |f| f.apply(function, replaced(&case.2), span))?;
            return self.either(case.0.clone(), (then, span), (otherwise, span), span);
        }
        let (call, types) = self.instantiated(function, values, span)?;
        let [ty] = types.as_slice() else {
            let names: Vec<String> = match &ast.results {
                Results::Named(results) => results.iter().map(|result| result.name.name.to_string()).collect(),
                _ => (0..types.len()).map(|at| format!("r{at}")).collect(),
            };
            let text = format!("`{}` gives {} values, and one is wanted here", ast.name.name, types.len());
            let error = Diagnostic::error(Code::E0235, span, text)
                .help(format!("give them names: `let ({}) = …;`", names.join(", ")));
            return self.fail(error);
        };
        let ty = ty.clone();
        Ok(Judged::Data(Draft::fixed(Expr { kind: Kind::Call(Box::new(call)), ty, span })))
    }

    pub fn arity(&mut self, ast: &ast::Function, given: usize, span: Span) -> Checked<()> {
        if given == ast.params.len() {
            return Ok(());
        }
        let wanted = match ast.params.len() {
            1 => "1 argument".to_string(),
            n => format!("{n} arguments"),
        };
        let error = Diagnostic::error(Code::E0235, span, format!("`{}` takes {wanted}, not {given}", ast.name.name))
            .also(ast.span, "declared here");
        let missing: Vec<String> =
            ast.params.iter().skip(given).map(|param| format!("`{}`", param.name.name)).collect();
        self.fail(match missing.as_slice() {
            [] => error,
            [one] => error.note(format!("{one} is missing")),
            several => error.note(format!("{} are missing", several.join(", "))),
        })
    }

    /// A function on indices is evaluated where it is called.
    fn index_function(&mut self, function: FunctionRef, values: Vec<(Judged, Span)>, span: Span) -> Checked<Judged> {
        let ast = self.world.library.function(function);
        self.arity(ast, values.len(), span)?;
        for (param, (value, place)) in ast.params.iter().zip(&values) {
            match (value, param.ty.elem, param.ty.dims.is_empty()) {
                (Judged::Index(_), Elem::Size, true) | (Judged::Vector(_), Elem::Size, false) => {}
                (Judged::Data(_), ..) | (_, Elem::Size, _) => return self.no_index(value, *place),
                _ => {
                    let error =
                        Diagnostic::error(Code::E0231, param.ty.span, "a function that gives an index takes indices")
                            .also(span, "called here");
                    return self.fail(error);
                }
            }
        }
        let (name, signature) = (ast.name.name, ast.span);
        self.inline(function.file, span, |f| {
            for (param, (value, _)) in ast.params.iter().zip(values) {
                if let (Judged::Vector(parts), [Dim::Size(length)]) = (&value, param.ty.dims.as_slice()) {
                    let given = Ix::from(parts.len() as i64);
                    match &length.kind {
                        ExprKind::Name(d) if f.meaning(*d).is_none() && !f.is_constant(*d) => {
                            f.bind(*d, Referent::Size(Judged::Index(given.into())));
                        }
                        _ => {
                            let stated = f.plain_index(length)?;
                            if stated != given {
                                let text =
                                    format!("`{}` has {stated} components, and {given} are given", param.name.name);
                                let error = Diagnostic::error(Code::E0234, span, text);
                                return f.fail(error.also(param.ty.span, "declared here"));
                            }
                        }
                    }
                }
                f.bind(param.name.name, Referent::Size(value));
            }
            for clause in &ast.wheres {
                let Judged::Cond(goal) = f.expr(clause)? else {
                    return f.error(Code::E0231, clause.span, "a `where` clause is a condition on sizes");
                };
                let error = f.unmet(name, clause, span);
                f.require(&goal, |_, _| error)?;
            }
            match f.block(&ast.body)? {
                value @ (Judged::Index(_) | Judged::Vector(_)) => Ok(value),
                _ => f.error(Code::E0236, signature, format!("`{name}` is declared to give an index, and gives data")),
            }
        })
    }

    /// The error that a condition of a function is not met, with what its names stand for here.
    pub fn unmet(&self, function: Name, clause: &ast::Expr, span: Span) -> Diagnostic {
        let mut here: Vec<String> = Vec::new();
        let mut todo = vec![clause];
        while let Some(e) = todo.pop() {
            if let ExprKind::Name(name) = &e.kind {
                let value = match self.meaning(*name) {
                    Some(Referent::Size(Judged::Index(Index::Is(ix)))) if ix.as_var() != Some(*name) => ix.to_string(),
                    Some(Referent::Size(Judged::Vector(parts))) => {
                        let parts = parts.iter().filter_map(Index::plain).cloned().collect::<Vec<Ix>>();
                        shape_text(&parts)
                    }
                    _ => continue,
                };
                let text = format!("{name} is {value}");
                if !here.contains(&text) {
                    here.push(text);
                }
            }
            e.parts(&mut todo);
        }
        here.sort();
        let error = Diagnostic::error(Code::E0239, span, format!("`{function}` needs {clause}"))
            .also(clause.span, "stated here");
        if here.is_empty() { error } else { error.note(format!("here {}", here.join(", "))) }
    }

    /// Checks a function on indices by itself, for index vectors of two components.
    pub fn index_definition(&mut self) -> Checked<()> {
        let Some(ast) = self.current() else { return Err(Reported) };
        let mut values = Vec::new();
        for param in &ast.params {
            let length = match param.ty.dims.as_slice() {
                [] => None,
                [Dim::Size(ast::Expr { kind: ExprKind::Int(length), .. })] => Some((*length).clamp(0, 64)),
                _ => Some(2),
            };
            let mut part = |at: Option<i64>| {
                let base = at.map_or(param.name.name, |at| Name::new(&format!("{}_{at}", param.name.name)));
                let name = self.fresh(base);
                self.sizes.push(name);
                Index::Is(Ix::var(name))
            };
            let value = match length {
                None => Judged::Index(part(None)),
                Some(length) => Judged::Vector((0..length).map(|at| part(Some(at))).collect()),
            };
            values.push((param, value));
        }
        for (param, value) in values {
            if param.ty.elem != Elem::Size {
                return self.error(Code::E0231, param.ty.span, "a function that gives an index takes indices");
            }
            if let (Judged::Vector(parts), [Dim::Size(ast::Expr { kind: ExprKind::Name(d), .. })]) =
                (&value, param.ty.dims.as_slice())
            {
                self.bind(*d, Referent::Size(Judged::Index(Ix::from(parts.len() as i64).into())));
            }
            self.bind(param.name.name, Referent::Size(value));
        }
        for clause in &ast.wheres {
            match self.expr(clause)? {
                Judged::Cond(cond) => self.assume(cond),
                _ => return self.error(Code::E0231, clause.span, "a `where` clause is a condition on sizes"),
            }
        }
        match self.block(&ast.body)? {
            Judged::Index(_) | Judged::Vector(_) => Ok(()),
            _ => {
                let text = format!("`{}` is declared to give an index, and gives data", ast.name.name);
                self.error(Code::E0236, ast.span, text)
            }
        }
    }
}

/// Whether a parameter is of the index level.
fn is_index(function: &ast::Function, at: usize) -> bool {
    function.params.get(at).is_some_and(|param| param.ty.elem == Elem::Size)
}
