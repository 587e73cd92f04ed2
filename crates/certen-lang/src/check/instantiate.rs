//! Instantiation: the arguments of a call are matched with a signature. The ranks and element types of the arguments
//! say which instance is meant, and it is checked once. Then the sizes must agree with those that the signature states,
//! and its `where` clause is proved at the call.

use std::collections::{BTreeMap, HashMap};

use certen_core::{ElemType, TensorType};
use certen_index::{Ix, Verdict};
use certen_syntax::{Code, Diagnostic, Name, Span};

use super::index::Index;
use super::instance::{Argument, Asker, Axes, Instance, class_has, class_name, parts, solve};
use super::scope::{Checker, Referent};
use super::signature::SizeSource;
use super::value::{Draft, Flex, Judged};
use super::{Checked, Reported};
use crate::ast::{self, Dim, Elem, ExprKind};
use crate::library::{Declared, FunctionRef};
use crate::typed::{self, FunctionId};

/// A call beside the signature that it is matched with.
struct Matched<'l> {
    function: FunctionRef,
    ast: &'l ast::Function,
    /// Where the call stands.
    span: Span,
    /// Where each argument stands.
    places: Vec<Span>,
    /// What the names of the signature stand for.
    lengths: BTreeMap<Name, usize>,
    sizes: HashMap<Name, Ix>,
    vectors: HashMap<Name, Vec<Ix>>,
}

/// A size that the signature states for a dimension of an argument: which argument, the expression, and its size here.
type Stated<'l> = (usize, &'l ast::Expr, Ix);

impl<'l> Checker<'_, 'l> {
    /// A call of the instance that the arguments ask for, and the types of its results.
    pub fn instantiated(
        &mut self,
        function: FunctionRef,
        values: Vec<(Judged, Span)>,
        span: Span,
    ) -> Checked<(typed::Call, Vec<TensorType>)> {
        let library = self.world.library;
        let ast = library.function(function);
        self.arity(ast, values.len(), span)?;
        let mut matched = Matched {
            function,
            ast,
            span,
            places: values.iter().map(|(_, place)| *place).collect(),
            lengths: BTreeMap::new(),
            sizes: HashMap::new(),
            vectors: HashMap::new(),
        };
        let (mut arguments, drafts) = self.arguments(&mut matched, values)?;
        literal_types(ast, &mut arguments, &drafts);
        let instance = match solve(library, function.file, ast, &arguments, Asker::Call(span)) {
            Ok(instance) => instance,
            Err(error) => return self.fail(*error),
        };
        matched.lengths = instance.lengths.clone();
        let (args, stated) = self.shapes(&mut matched, &instance, drafts)?;
        let stated = self.bind_sizes(&mut matched, stated);
        let id: FunctionId = self.world.instance(function, instance, Some(span))?;
        self.conditions(&matched, stated)?;
        let (sizes, types) = self.results(&matched, id)?;
        Ok((typed::Call { function: id, sizes, args }, types))
    }

    /// What is known of each argument, and the tensors among them.
    fn arguments(
        &mut self,
        matched: &mut Matched<'l>,
        values: Vec<(Judged, Span)>,
    ) -> Checked<(Vec<Argument>, Vec<Option<Draft>>)> {
        let mut arguments = Vec::new();
        let mut drafts: Vec<Option<Draft>> = Vec::new();
        for (param, (value, place)) in matched.ast.params.iter().zip(values) {
            let known = Argument { place: Some(place), ..Argument::default() };
            if param.ty.elem != Elem::Size {
                let draft = self.as_data(value, place)?;
                let elem = (draft.flex == Flex::No).then(|| draft.elem());
                arguments.push(Argument { rank: Some(draft.rank()), elem, ..known });
                drafts.push(Some(draft));
                continue;
            }
            drafts.push(None);
            let plain = |index: &Index| index.plain().cloned();
            match (&value, param.ty.dims.is_empty()) {
                (Judged::Index(index), true) => {
                    let Some(ix) = plain(index) else { return self.no_cases(matched.ast, place) };
                    arguments.push(Argument { value: ix.as_constant(), ..known });
                    matched.sizes.insert(param.name.name, ix);
                }
                (Judged::Vector(parts), false) => {
                    let Some(parts) = parts.iter().map(plain).collect::<Option<Vec<Ix>>>() else {
                        return self.no_cases(matched.ast, place);
                    };
                    arguments.push(Argument { rank: Some(parts.len()), ..known });
                    matched.vectors.insert(param.name.name, parts);
                }
                (Judged::Index(_), false) => {
                    let text = format!("`{}` is an index vector: `[k]`", param.name.name);
                    return self.error(Code::E0231, place, text);
                }
                _ => return self.no_index(&value, place),
            }
        }
        Ok((arguments, drafts))
    }

    /// A call with several results cannot be lifted out of the cases of an index.
    fn no_cases<T>(&mut self, function: &ast::Function, span: Span) -> Checked<T> {
        let text = format!("this index depends on an `if`, and `{}` gives several values", function.name.name);
        let error = Diagnostic::error(Code::E0216, span, text).help("put the `if` around calls with plain indices");
        self.fail(error)
    }

    /// Gives each tensor its element type, and matches its dimensions with those of its parameter.
    fn shapes(
        &mut self,
        matched: &mut Matched<'l>,
        instance: &Instance,
        drafts: Vec<Option<Draft>>,
    ) -> Checked<(Vec<typed::Expr>, Vec<Stated<'l>>)> {
        let mut args = Vec::new();
        let mut stated = Vec::new();
        for (at, (param, draft)) in matched.ast.params.iter().zip(drafts).enumerate() {
            let Some(mut draft) = draft else { continue };
            self.give_class(&mut draft, instance, param, matched.places[at])?;
            let mut dims = draft.expr.ty.shape.iter().cloned();
            for (position, part) in parts(param.name.name, &param.ty).into_iter().enumerate() {
                match part {
                    Axes::One(Dim::Size(expr)) => stated.extend(dims.next().map(|size| (at, expr, size))),
                    Axes::One(_) => {
                        let key = Name::new(&format!("{}.{position}", param.name.name));
                        matched.vectors.insert(key, dims.next().into_iter().collect());
                    }
                    Axes::Many(key, _, _) => {
                        let length = instance.lengths.get(&key).copied().unwrap_or(0);
                        let sizes: Vec<Ix> = dims.by_ref().take(length).collect();
                        let Some(known) = matched.vectors.get(&key) else {
                            matched.vectors.insert(key, sizes);
                            continue;
                        };
                        for (size, known) in sizes.iter().zip(known) {
                            self.agrees(matched, at, size, known)?;
                        }
                    }
                }
            }
            args.push(draft.expr);
        }
        Ok((args, stated))
    }

    /// Gives a tensor the element type that its parameter has in an instance.
    fn give_class(&mut self, draft: &mut Draft, instance: &Instance, param: &ast::Param, place: Span) -> Checked<()> {
        let elem = match param.ty.elem {
            Elem::Is(elem) => elem,
            class => instance.elems.iter().find(|(of, _)| *of == class).map_or(ElemType::F64, |(_, elem)| *elem),
        };
        if draft.can_be(elem) {
            return self.give(draft, elem);
        }
        let found = if draft.flex == Flex::No { draft.elem().to_string() } else { "a number".into() };
        let text = format!("`{}` is {elem}, and this is {found}", param.name.name);
        let mut error = Diagnostic::error(Code::E0232, place, text).also(param.ty.span, "declared here");
        if !matches!(param.ty.elem, Elem::Is(_)) {
            error = error.note(format!("`{}` is one type in the whole signature", class_name(param.ty.elem)));
        }
        self.fail(error.help(format!("convert it: `{elem}(…)`")))
    }

    /// Plain names bind, in order; everything else must then agree, and is given back.
    fn bind_sizes(&self, matched: &mut Matched<'l>, stated: Vec<Stated<'l>>) -> Vec<Stated<'l>> {
        let mut others = Vec::new();
        for (at, expr, size) in stated {
            if let ExprKind::Name(name) = &expr.kind
                && !matched.sizes.contains_key(name)
                && !matched.lengths.contains_key(name)
                && !matches!(self.world.library.lookup(matched.function.file, *name), Some(Declared::Const(_)))
            {
                matched.sizes.insert(*name, size);
            } else {
                others.push((at, expr, size));
            }
        }
        others
    }

    /// Evaluates a part of the signature where its names stand for what the call gives.
    fn in_signature<T>(&mut self, matched: &Matched, of: impl FnOnce(&mut Self) -> Checked<T>) -> Checked<T> {
        self.inline(matched.function.file, matched.span, |f| {
            for (name, length) in &matched.lengths {
                f.bind(*name, Referent::Size(Judged::Index(Ix::from(*length as i64).into())));
            }
            for (name, ix) in &matched.sizes {
                f.bind(*name, Referent::Size(Judged::Index(ix.clone().into())));
            }
            for (name, parts) in &matched.vectors {
                let parts = parts.iter().map(|part| Index::Is(part.clone())).collect();
                f.bind(*name, Referent::Size(Judged::Vector(parts)));
            }
            of(f)
        })
    }

    /// What the signature asks of the call: the lengths of index vectors, the sizes of tensors, its `where` clause.
    fn conditions(&mut self, matched: &Matched<'l>, stated: Vec<Stated<'l>>) -> Checked<()> {
        for (param, place) in matched.ast.params.iter().zip(&matched.places) {
            let (Some(parts), [Dim::Size(length)]) = (matched.vectors.get(&param.name.name), param.ty.dims.as_slice())
            else {
                continue;
            };
            let given = parts.len();
            let stated = self.in_signature(matched, |f| f.plain_index(length))?;
            if stated.as_constant() != Some(given as i64) {
                let text = format!("`{}` has {stated} components, and {given} are given", param.name.name);
                let error = Diagnostic::error(Code::E0234, *place, text).also(param.ty.span, "declared here");
                return self.fail(error);
            }
        }
        for (at, expr, size) in stated {
            let stated = self.in_signature(matched, |f| f.plain_index(expr))?;
            self.agrees(matched, at, &size, &stated)?;
        }
        for clause in &matched.ast.wheres {
            let (goal, error) = self.in_signature(matched, |f| {
                Ok((f.expr(clause)?, f.unmet(matched.ast.name.name, clause, matched.span)))
            })?;
            let Judged::Cond(goal) = goal else { return Err(Reported) };
            self.require(&goal, |_, _| error)?;
        }
        Ok(())
    }

    /// The sizes that an instance is called with, and the types of its results for them.
    fn results(&mut self, matched: &Matched, id: FunctionId) -> Checked<(Vec<Ix>, Vec<TensorType>)> {
        let sizes: Option<Vec<Ix>> = self.world.instances.sources[id]
            .iter()
            .map(|source| match source {
                SizeSource::Name(name) => matched.sizes.get(name).cloned(),
                SizeSource::Part(key, at) => matched.vectors.get(key).and_then(|parts| parts.get(*at)).cloned(),
            })
            .collect();
        // The definition takes its sizes from where arguments give them; another size would be a mistake of ours.
        let Some(sizes) = sizes else {
            let text = format!("internal error: the arguments do not tell a size of `{}`", matched.ast.name.name);
            return self.error(Code::E0701, matched.span, text);
        };
        let names: HashMap<Name, Ix> =
            self.world.instances.functions[id].sizes.iter().map(|size| size.name).zip(sizes.iter().cloned()).collect();
        let mut types = Vec::new();
        for (_, ty) in self.world.instances.functions[id].results.clone() {
            let made: Result<Vec<Ix>, _> =
                ty.shape.iter().map(|size| size.substitute(&|name| names.get(&name).cloned())).collect();
            let mut shape = Vec::new();
            for size in self.made(matched.span, made)? {
                shape.push(self.made(matched.span, self.simpler(&size))?);
            }
            types.push(TensorType::new(ty.elem, shape));
        }
        Ok((sizes, types))
    }

    /// Checks that a size of an argument is what the signature says.
    fn agrees(&mut self, matched: &Matched, at: usize, size: &Ix, stated: &Ix) -> Checked<()> {
        let verdict = self.facts().prove_equal(size, stated);
        if verdict == Verdict::Yes {
            return Ok(());
        }
        let (function, param) = (matched.ast.name.name, &matched.ast.params[at]);
        let text =
            format!("`{}` of `{function}` has a dimension of size {size}, and {stated} is wanted", param.name.name);
        let mut error = Diagnostic::error(Code::E0206, matched.places[at], text).also(param.ty.span, "declared here");
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

/// A class that only literals ask for is what they are by default. A float among them makes all of them floats.
fn literal_types(ast: &ast::Function, arguments: &mut [Argument], drafts: &[Option<Draft>]) {
    let is_class = |class| !matches!(class, Elem::Is(_) | Elem::Size);
    let fixed = |class: Elem| {
        ast.params.iter().zip(&*arguments).any(|(param, argument)| param.ty.elem == class && argument.elem.is_some())
    };
    let defaults: Vec<(Elem, ElemType)> = ast
        .params
        .iter()
        .zip(drafts)
        .filter(|(param, _)| is_class(param.ty.elem) && !fixed(param.ty.elem))
        .filter_map(|(param, draft)| Some((param.ty.elem, draft.as_ref()?.elem())))
        .map(|(class, elem)| (class, if class_has(class, elem) { elem } else { ElemType::F64 }))
        .collect();
    for (class, elem) in defaults {
        for (param, argument) in ast.params.iter().zip(arguments.iter_mut()) {
            if param.ty.elem == class && (argument.elem.is_none() || elem == ElemType::F64) {
                argument.elem = Some(elem);
            }
        }
    }
}
