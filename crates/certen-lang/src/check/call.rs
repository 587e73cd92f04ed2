//! Calls: arguments are matched with a signature, the instance that they ask for is checked once, and its `where` clause
//! is proved where the call stands.

use std::collections::HashMap;

use certen_core::{ElemType, TensorType};
use certen_index::{Ix, Verdict};
use certen_syntax::{Code, Diagnostic, Name, Span};

use super::index::Index;
use super::scope::{Function, Meaning};
use super::signature::{Argument, Open, Part, SizeSource, class_has, class_name, parts, solve};
use super::types::shape_text;
use super::value::{Draft, Flex, Value};
use super::{Checked, Reported};
use crate::ast::{self, Dim, Elem, ExprKind, Ident, Results};
use crate::typed::{self, Bound, Expr, FunctionId, Kind};
use crate::{DerivedRef, FileRef, Found, FunctionRef};

/// What the names of a signature stand for in a call.
#[derive(Default)]
struct Matched {
    sizes: HashMap<Name, Ix>,
    vectors: HashMap<Name, Vec<Ix>>,
}

impl<'l> Function<'_, 'l> {
    pub fn call(
        &mut self,
        name: Ident,
        args: &[ast::Expr],
        named: &[(Ident, ast::Expr)],
        span: Span,
    ) -> Checked<Value> {
        match self.meaning(name.name) {
            Some(Meaning::Wrong) => return Err(Reported),
            Some(_) => {
                let error = Diagnostic::error(Code::E0235, name.span, format!("`{}` is no function", name.name))
                    .help(format!("elements are selected with brackets: `{}[…]`", name.name));
                return self.fail(error);
            }
            None => {}
        }
        match self.world.library.lookup(self.file, name.name) {
            Some(Found::Function(function)) => {
                if let Some((keyword, _)) = named.first() {
                    let text = format!("`{}` has no argument called `{}`", name.name, keyword.name);
                    return self.error(Code::E0235, keyword.span, text);
                }
                let mut values = Vec::new();
                for arg in args {
                    values.push((self.expr(arg)?, arg.span));
                }
                if function.file == FileRef::PRELUDE
                    && let Some(vector) = self.of_vectors(name, &values)
                {
                    return Ok(vector);
                }
                self.apply(function, values, span)
            }
            Some(Found::Const(_)) => {
                let text = format!("`{}` is a constant, not a function", name.name);
                self.error(Code::E0235, name.span, text)
            }
            Some(Found::Derived(derived)) => self.no_call(derived, name.span),
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

    /// What is derived has loops of its own, which are no part of a caller's.
    pub fn no_call<T>(&mut self, derived: DerivedRef, span: Span) -> Checked<T> {
        let derivation = self.world.library.derivation(derived);
        let (name, from) = (derivation.name, derivation.from);
        let text = format!("`{name}` is derived from `{from}`, and cannot be called in the language");
        let error = Diagnostic::error(Code::E0235, span, text).also(derivation.head, "derived here");
        self.fail(error.help(format!("`{from}` means the same; a derivation of this function can rewrite its call")))
    }

    /// `take` and `drop` of the prelude on an index vector: the result is one too, not data.
    fn of_vectors(&mut self, name: Ident, values: &[(Value, Span)]) -> Option<Value> {
        let [(Value::Vector(count), _), (Value::Vector(parts), _)] = values else { return None };
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
        Some(Value::Vector(parts[kept].to_vec()))
    }

    /// A call of a function with several results; nothing if it has one.
    pub fn call_several(
        &mut self,
        name: Ident,
        args: &[ast::Expr],
        named: &[(Ident, ast::Expr)],
        span: Span,
    ) -> Checked<Option<(Bound, Vec<TensorType>)>> {
        if self.meaning(name.name).is_some() || !named.is_empty() {
            return Ok(None);
        }
        let Some(Found::Function(function)) = self.world.library.lookup(self.file, name.name) else { return Ok(None) };
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
            values.push((self.expr(arg)?, arg.span));
        }
        let (call, types) = self.instantiated(function, values, span)?;
        Ok(Some((Bound::Call(call), types)))
    }

    /// A function applied to values, for one result.
    pub fn apply(&mut self, function: FunctionRef, values: Vec<(Value, Span)>, span: Span) -> Checked<Value> {
        let ast = self.world.library.function(function);
        if matches!(&ast.results, Results::One(ty) if ty.elem == Elem::Size) {
            return self.index_function(function, values, span);
        }
        // An index that is one of several is lifted to the call.
        let case = values.iter().enumerate().find_map(|(at, (value, _))| match value {
            Value::Index(Index::Case(case)) if is_index(ast, at) => Some((at, None, case.clone())),
            Value::Vector(components) if is_index(ast, at) => {
                components.iter().enumerate().find_map(|(component, index)| match index {
                    Index::Case(case) => Some((at, Some(component), case.clone())),
                    Index::Is(_) => None,
                })
            }
            _ => None,
        });
        if let Some((at, component, case)) = case {
            let made = case.0.not();
            let not = self.made(span, made)?;
            let replaced = |with: &Index| {
                let mut values = values.clone();
                match (&mut values[at].0, component) {
                    (Value::Vector(parts), Some(component)) => parts[component] = with.clone(),
                    (value, _) => *value = Value::Index(with.clone()),
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
            let error = Diagnostic::error(
                Code::E0235,
                span,
                format!("`{}` gives {} values, and one is wanted here", ast.name.name, types.len()),
            )
            .help(format!("give them names: `let ({}) = …;`", names.join(", ")));
            return self.fail(error);
        };
        let ty = ty.clone();
        Ok(Value::Data(Draft::fixed(Expr { kind: Kind::Call(Box::new(call)), ty, span })))
    }

    fn arity(&mut self, ast: &ast::Function, given: usize, span: Span) -> Checked<()> {
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
    fn index_function(&mut self, function: FunctionRef, values: Vec<(Value, Span)>, span: Span) -> Checked<Value> {
        let ast = self.world.library.function(function);
        self.arity(ast, values.len(), span)?;
        for (param, (value, place)) in ast.params.iter().zip(&values) {
            match (value, param.ty.elem, param.ty.dims.is_empty()) {
                (Value::Index(_), Elem::Size, true) | (Value::Vector(_), Elem::Size, false) => {}
                (Value::Data(_), ..) | (_, Elem::Size, _) => return self.no_index(value, *place),
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
                if let (Value::Vector(parts), [Dim::Size(length)]) = (&value, param.ty.dims.as_slice()) {
                    let given = Ix::from(parts.len() as i64);
                    match &length.kind {
                        ExprKind::Name(d) if f.meaning(*d).is_none() && !f.is_constant(*d) => {
                            f.bind(*d, Meaning::Size(Value::Index(given.into())));
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
                f.bind(param.name.name, Meaning::Size(value));
            }
            for clause in &ast.wheres {
                let Value::Cond(goal) = f.expr(clause)? else {
                    return f.error(Code::E0231, clause.span, "a `where` clause is a condition on sizes");
                };
                let error = f.unmet(name, clause, span);
                f.require(&goal, |_, _| error)?;
            }
            match f.block(&ast.body)? {
                value @ (Value::Index(_) | Value::Vector(_)) => Ok(value),
                _ => f.error(Code::E0236, signature, format!("`{name}` is declared to give an index, and gives data")),
            }
        })
    }

    /// A call with several results cannot be lifted out of the cases of an index.
    fn no_cases<T>(&mut self, function: &ast::Function, span: Span) -> Checked<T> {
        let text = format!("this index depends on an `if`, and `{}` gives several values", function.name.name);
        let error = Diagnostic::error(Code::E0216, span, text).help("put the `if` around calls with plain indices");
        self.fail(error)
    }

    /// The error that a condition of a function is not met, with what its names stand for here.
    fn unmet(&self, function: Name, clause: &ast::Expr, span: Span) -> Diagnostic {
        let mut here: Vec<String> = Vec::new();
        let mut todo = vec![clause];
        while let Some(e) = todo.pop() {
            if let ExprKind::Name(name) = &e.kind {
                let value = match self.meaning(*name) {
                    Some(Meaning::Size(Value::Index(Index::Is(ix)))) if ix.as_var() != Some(*name) => ix.to_string(),
                    Some(Meaning::Size(Value::Vector(parts))) => {
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
                None => Value::Index(part(None)),
                Some(length) => Value::Vector((0..length).map(|at| part(Some(at))).collect()),
            };
            values.push((param, value));
        }
        for (param, value) in values {
            if param.ty.elem != Elem::Size {
                return self.error(Code::E0231, param.ty.span, "a function that gives an index takes indices");
            }
            if let (Value::Vector(parts), [Dim::Size(ast::Expr { kind: ExprKind::Name(d), .. })]) =
                (&value, param.ty.dims.as_slice())
            {
                self.bind(*d, Meaning::Size(Value::Index(Ix::from(parts.len() as i64).into())));
            }
            self.bind(param.name.name, Meaning::Size(value));
        }
        for clause in &ast.wheres {
            match self.expr(clause)? {
                Value::Cond(cond) => self.assume(cond),
                _ => return self.error(Code::E0231, clause.span, "a `where` clause is a condition on sizes"),
            }
        }
        match self.block(&ast.body)? {
            Value::Index(_) | Value::Vector(_) => Ok(()),
            _ => {
                let text = format!("`{}` is declared to give an index, and gives data", ast.name.name);
                self.error(Code::E0236, ast.span, text)
            }
        }
    }

    /// Matches arguments with a signature.
    fn instantiated(
        &mut self,
        function: FunctionRef,
        values: Vec<(Value, Span)>,
        span: Span,
    ) -> Checked<(typed::Call, Vec<TensorType>)> {
        let library = self.world.library;
        let ast = library.function(function);
        self.arity(ast, values.len(), span)?;
        let mut arguments = Vec::new();
        let mut drafts: Vec<Option<Draft>> = Vec::new();
        let mut matched = Matched::default();
        let mut spans = Vec::new();
        for (param, (value, place)) in ast.params.iter().zip(values) {
            spans.push(place);
            if param.ty.elem != Elem::Size {
                let draft = self.as_data(value, place)?;
                let elem = (draft.flex == Flex::No).then(|| draft.elem());
                arguments.push(Argument { rank: Some(draft.rank()), value: None, elem, place: Some(place) });
                drafts.push(Some(draft));
                continue;
            }
            drafts.push(None);
            let plain = |index: &Index| index.plain().cloned();
            match (&value, param.ty.dims.is_empty()) {
                (Value::Index(index), true) => {
                    let Some(ix) = plain(index) else { return self.no_cases(ast, place) };
                    arguments.push(Argument { rank: None, value: ix.as_constant(), elem: None, place: Some(place) });
                    matched.sizes.insert(param.name.name, ix);
                }
                (Value::Vector(parts), false) => {
                    let Some(parts) = parts.iter().map(plain).collect::<Option<Vec<Ix>>>() else {
                        return self.no_cases(ast, place);
                    };
                    arguments.push(Argument { rank: Some(parts.len()), value: None, elem: None, place: Some(place) });
                    matched.vectors.insert(param.name.name, parts);
                }
                (Value::Index(_), false) => {
                    let text = format!("`{}` is an index vector: `[k]`", param.name.name);
                    return self.error(Code::E0231, place, text);
                }
                _ => return self.no_index(&value, place),
            }
        }
        // A class that only literals ask for is what they are by default.
        let fixed = |class: Elem| {
            ast.params
                .iter()
                .zip(&arguments)
                .find_map(|(param, argument)| (param.ty.elem == class).then_some(argument.elem).flatten())
        };
        let defaults: Vec<(Elem, ElemType)> = ast
            .params
            .iter()
            .zip(&drafts)
            .filter(|(param, _)| !matches!(param.ty.elem, Elem::Is(_) | Elem::Size) && fixed(param.ty.elem).is_none())
            .filter_map(|(param, draft)| Some((param.ty.elem, draft.as_ref()?)))
            .map(|(class, draft)| (class, if class_has(class, draft.elem()) { draft.elem() } else { ElemType::F64 }))
            .collect();
        for (class, elem) in defaults {
            // A float among the literals makes all of them floats.
            for (param, argument) in ast.params.iter().zip(arguments.iter_mut()) {
                if param.ty.elem == class && (argument.elem.is_none() || elem == ElemType::F64) {
                    argument.elem = Some(elem);
                }
            }
        }
        let solved = solve(library, function.file, ast, &arguments, Open::Call(span));
        let instance = match solved {
            Ok(instance) => instance,
            Err(error) => return self.fail(*error),
        };
        let mut args = Vec::new();
        let mut deferred: Vec<(usize, usize, ast::Expr, Ix)> = Vec::new();
        for (at, param) in ast.params.iter().enumerate() {
            let Some(mut draft) = drafts[at].take() else { continue };
            let elem = match param.ty.elem {
                Elem::Is(elem) => elem,
                class => instance.elems.iter().find(|(of, _)| *of == class).map_or(ElemType::F64, |(_, elem)| *elem),
            };
            if !draft.can_be(elem) {
                let found = if draft.flex == Flex::No { draft.elem().to_string() } else { "a number".into() };
                let mut error = Diagnostic::error(
                    Code::E0232,
                    spans[at],
                    format!("`{}` is {elem}, and this is {found}", param.name.name),
                )
                .also(param.ty.span, "declared here");
                if !matches!(param.ty.elem, Elem::Is(_)) {
                    error = error.note(format!("`{}` is one type in the whole signature", class_name(param.ty.elem)));
                }
                return self.fail(error.help(format!("convert it: `{elem}(…)`")));
            }
            self.give(&mut draft, elem)?;
            let mut dims = draft.expr.ty.shape.iter().cloned();
            for (position, part) in parts(param.name.name, &param.ty).into_iter().enumerate() {
                match part {
                    Part::One(Dim::Size(expr)) => {
                        let Some(size) = dims.next() else { continue };
                        deferred.push((at, position, expr.clone(), size));
                    }
                    Part::One(_) => {
                        let key = Name::new(&format!("{}.{position}", param.name.name));
                        matched.vectors.insert(key, dims.next().into_iter().collect());
                    }
                    Part::Many(key, _, _) => {
                        let length = instance.lengths.get(&key).copied().unwrap_or(0);
                        let sizes: Vec<Ix> = dims.by_ref().take(length).collect();
                        match matched.vectors.get(&key) {
                            None => {
                                matched.vectors.insert(key, sizes);
                            }
                            Some(known) => {
                                let known = known.clone();
                                for (size, known) in sizes.iter().zip(&known) {
                                    self.agrees(ast, param, spans[at], size, known)?;
                                }
                            }
                        }
                    }
                }
            }
            args.push(draft.expr);
        }
        // Plain names bind, in order; everything else must then agree.
        let mut checks = Vec::new();
        for (at, _, expr, size) in deferred {
            if let ExprKind::Name(name) = &expr.kind
                && !matched.sizes.contains_key(name)
                && !instance.lengths.contains_key(name)
                && !matches!(library.lookup(function.file, *name), Some(Found::Const(_)))
            {
                matched.sizes.insert(*name, size);
            } else {
                checks.push((at, expr, size));
            }
        }
        let lengths = instance.lengths.clone();
        let id: FunctionId = self.world.instance(function, instance, Some(span))?;
        let bind = |f: &mut Self, matched: &Matched| {
            for (name, length) in &lengths {
                f.bind(*name, Meaning::Size(Value::Index(Ix::from(*length as i64).into())));
            }
            for (name, ix) in &matched.sizes {
                f.bind(*name, Meaning::Size(Value::Index(ix.clone().into())));
            }
            for (name, parts) in &matched.vectors {
                let parts = parts.iter().map(|part| Index::Is(part.clone())).collect();
                f.bind(*name, Meaning::Size(Value::Vector(parts)));
            }
        };
        for (param, place) in ast.params.iter().zip(&spans) {
            let (Some(parts), [Dim::Size(length)]) = (matched.vectors.get(&param.name.name), param.ty.dims.as_slice())
            else {
                continue;
            };
            let given = parts.len();
            let stated = self.inline(function.file, span, |f| {
                bind(f, &matched);
                f.plain_index(length)
            })?;
            if stated.as_constant() != Some(given as i64) {
                let text = format!("`{}` has {stated} components, and {given} are given", param.name.name);
                let error = Diagnostic::error(Code::E0234, *place, text).also(param.ty.span, "declared here");
                return self.fail(error);
            }
        }
        for (at, expr, size) in checks {
            let stated = self.inline(function.file, span, |f| {
                bind(f, &matched);
                f.plain_index(&expr)
            })?;
            self.agrees(ast, &ast.params[at], spans[at], &size, &stated)?;
        }
        for clause in &ast.wheres {
            let (goal, error) = self.inline(function.file, span, |f| {
                bind(f, &matched);
                Ok((f.expr(clause)?, f.unmet(ast.name.name, clause, span)))
            })?;
            let Value::Cond(goal) = goal else { return Err(Reported) };
            self.require(&goal, |_, _| error)?;
        }
        let sizes: Option<Vec<Ix>> = self.world.sources[id]
            .iter()
            .map(|source| match source {
                SizeSource::Name(name) => matched.sizes.get(name).cloned(),
                SizeSource::Part(key, at) => matched.vectors.get(key).and_then(|parts| parts.get(*at)).cloned(),
            })
            .collect();
        // The definition takes its sizes from where arguments give them; another size would be a mistake of ours.
        let Some(sizes) = sizes else {
            let text = format!("internal error: the arguments do not tell a size of `{}`", ast.name.name);
            return self.error(Code::E0701, span, text);
        };
        let names: HashMap<Name, Ix> =
            self.world.functions[id].sizes.iter().map(|size| size.name).zip(sizes.iter().cloned()).collect();
        let mut types = Vec::new();
        for (_, ty) in self.world.functions[id].results.clone() {
            let made: Result<Vec<Ix>, _> =
                ty.shape.iter().map(|size| size.substitute(&|name| names.get(&name).cloned())).collect();
            let mut shape = Vec::new();
            for size in self.made(span, made)? {
                let made = self.simpler(&size);
                shape.push(self.made(span, made)?);
            }
            types.push(TensorType::new(ty.elem, shape));
        }
        Ok((typed::Call { function: id, sizes, args }, types))
    }

    /// Checks that a size of an argument is what the signature says.
    fn agrees(
        &mut self,
        function: &ast::Function,
        param: &ast::Param,
        place: Span,
        size: &Ix,
        stated: &Ix,
    ) -> Checked<()> {
        match self.facts().prove_equal(size, stated) {
            Verdict::Yes => Ok(()),
            verdict => {
                let text = format!(
                    "`{}` of `{}` has a dimension of size {size}, and {stated} is wanted",
                    param.name.name, function.name.name
                );
                let mut error = Diagnostic::error(Code::E0206, place, text).also(param.ty.span, "declared here");
                if let Verdict::No(sizes) = &verdict
                    && !sizes.0.is_empty()
                {
                    error = error.note(format!("they differ for example where {sizes}"));
                }
                if let Some(clause) = self.equal_clause(size, stated) {
                    error = error.help(clause);
                }
                self.fail(error)
            }
        }
    }
}

/// Whether a parameter is of the index level.
fn is_index(function: &ast::Function, at: usize) -> bool {
    function.params.get(at).is_some_and(|param| param.ty.elem == Elem::Size)
}
