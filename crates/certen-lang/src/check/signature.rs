//! Signatures: what a definition declares, and its check at one instance.

use std::collections::HashSet;

use certen_core::{ElemType, TensorType};
use certen_index::{Cond, Ix, Verdict};
use certen_syntax::{Code, Diagnostic, Name, Span};

use super::index::Index;
use super::instance::{Axes, Instance, MAX_RANK, class_name, is_constant, parts, rank_names};
use super::scope::{Checker, Referent};
use super::value::Judged;
use super::wanted::Wanted;
use super::{Checked, Reported};
use crate::ast::{self, Dim, Elem, ExprKind, Results};
use crate::typed;

/// The most components of an index vector that is a parameter.
pub(super) const MAX_VECTOR: usize = 64;

/// Where a size of an instance comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum SizeSource {
    /// A size or `size` parameter of this name.
    Name(Name),
    /// A component of a segment or index vector.
    Part(Name, usize),
}

/// What the parameters of a definition declare.
#[derive(Default)]
struct DeclaredSizes {
    sizes: Vec<typed::Size>,
    /// Where each size comes from.
    sources: Vec<SizeSource>,
    facts: Vec<Cond>,
}

/// A dimension that a result's type asks for.
pub(super) enum Asked {
    /// This size.
    Size(Ix),
    /// Any size.
    One,
    /// Any number of sizes, at least so many.
    Many(usize),
}

impl Checker<'_, '_> {
    /// The element type that a type names.
    pub fn elem_of(&mut self, ty: &ast::Type) -> Checked<ElemType> {
        match ty.elem {
            Elem::Is(elem) => Ok(elem),
            Elem::Size => self.error(Code::E0231, ty.span, "`size` is the type of an index, and this is data"),
            class => match self.elems.iter().find(|(known, _)| *known == class) {
                Some((_, elem)) => Ok(*elem),
                None => {
                    let text =
                        format!("no parameter has a type with `{}`, so nothing says what it is", class_name(class));
                    self.error(Code::E0234, ty.span, text)
                }
            },
        }
    }

    /// The sizes that a type names, where everything in it is bound.
    pub fn asked(&mut self, ty: &ast::Type) -> Checked<Vec<Asked>> {
        let mut asked = Vec::new();
        for dim in &ty.dims {
            match dim {
                Dim::Size(ast::Expr { kind: ExprKind::Name(name), span })
                    if self.meaning(*name).is_none() && self.world.library.lookup(self.file, *name).is_none() =>
                {
                    let error = Diagnostic::error(Code::E0201, *span, format!("`{name}` is not declared"))
                        .note("a size is declared where it first stands as a dimension of a parameter")
                        .help("a dimension of a result that has no name is written `.`");
                    return self.fail(error);
                }
                Dim::Size(expr) => asked.push(Asked::Size(self.plain_index(expr)?)),
                Dim::One(_) => asked.push(Asked::One),
                Dim::Any(_) => asked.push(Asked::Many(0)),
                Dim::Some(_) => asked.push(Asked::Many(1)),
                Dim::Rest(name) | Dim::Ranked { shape: name, .. } => match self.meaning(name.name).cloned() {
                    Some(Referent::Size(Judged::Vector(sizes))) => {
                        for size in sizes {
                            match size.plain() {
                                Some(ix) => asked.push(Asked::Size(ix.clone())),
                                None => return self.error(Code::E0216, name.span, "a size cannot be a choice"),
                            }
                        }
                    }
                    _ => {
                        let text = format!("`{}` is no shape that a parameter has", name.name);
                        return self.error(Code::E0201, name.span, text);
                    }
                },
            }
        }
        Ok(asked)
    }

    /// Checks a definition for one instance.
    pub fn definition(&mut self, instance: &Instance) -> Checked<(typed::Function, Vec<SizeSource>)> {
        let Some(function) = self.current() else { return Err(Reported) };
        self.elems = instance.elems.clone();
        let mut seen: HashSet<Name> = HashSet::new();
        if let Some(twice) = function.params.iter().find(|param| !seen.insert(param.name.name)) {
            let text = format!("two parameters are called `{}`", twice.name.name);
            return self.error(Code::E0202, twice.name.span, text);
        }
        let mut declared = DeclaredSizes::default();
        self.size_parameters(function, instance, &mut declared)?;
        self.sizes_of_tensors(function, instance, &mut declared)?;
        declared.facts.iter().for_each(|fact| self.assume(fact.clone()));
        self.sizes = declared.sizes.iter().map(|size| size.name).collect();
        let params = self.tensor_parameters(function, &mut declared)?;
        self.assume_wheres(function, &mut declared)?;
        let (body, results) = self.function_body(function)?;
        if let Some(identity) = &function.associative {
            self.operator(function, identity, &params, &results)?;
        }
        let typed = typed::Function {
            name: function.name.name,
            source: function.name.name,
            sizes: declared.sizes,
            facts: declared.facts,
            params,
            results,
            body,
            span: function.span,
        };
        Ok((typed, declared.sources))
    }

    /// A new size. One that is not given as an argument is that of a dimension, and not negative.
    fn declare(&mut self, base: Name, given: bool, source: SizeSource, declared: &mut DeclaredSizes) -> Index {
        let name = self.fresh(base);
        declared.sizes.push(typed::Size { name, given });
        declared.sources.push(source);
        if !given {
            declared.facts.push(not_negative(&Ix::var(name)));
        }
        Index::Is(Ix::var(name))
    }

    /// Numbers of dimensions, which the instance knows, and the parameters of type `size`.
    fn size_parameters(
        &mut self,
        function: &ast::Function,
        instance: &Instance,
        declared: &mut DeclaredSizes,
    ) -> Checked<()> {
        let ranks = rank_names(function);
        for d in &ranks {
            if let Some(&length) = instance.lengths.get(d) {
                self.bind(*d, Referent::Size(Judged::Index(Index::Is(Ix::from(length as i64)))));
            }
        }
        for param in function.params.iter().filter(|param| param.ty.elem == Elem::Size) {
            let name = param.name.name;
            let value = match param.ty.dims.as_slice() {
                [] if ranks.contains(&name) => continue,
                [] => Judged::Index(self.declare(name, true, SizeSource::Name(name), declared)),
                [Dim::Size(length)] => {
                    let length = self.plain_index(length)?;
                    let length = length.as_constant().and_then(|n| usize::try_from(n).ok());
                    let Some(length) = length.filter(|length| *length <= MAX_VECTOR) else {
                        let text =
                            format!("the length of an index vector is a number that is known, at most {MAX_VECTOR}");
                        return self.error(Code::E0234, param.ty.span, text);
                    };
                    let component = |at| {
                        let base = Name::new(&format!("{name}_{at}"));
                        self.declare(base, true, SizeSource::Part(name, at), declared)
                    };
                    Judged::Vector((0..length).map(component).collect())
                }
                _ => {
                    let text = "an index vector has one dimension: `size[d]`, or `size[2]`";
                    return self.error(Code::E0234, param.ty.span, text);
                }
            };
            self.bind(name, Referent::Size(value));
        }
        Ok(())
    }

    /// The sizes that the types of tensors declare.
    fn sizes_of_tensors(
        &mut self,
        function: &ast::Function,
        instance: &Instance,
        declared: &mut DeclaredSizes,
    ) -> Checked<()> {
        for param in function.params.iter().filter(|param| param.ty.elem != Elem::Size) {
            let owner = param.name.name;
            for (at, part) in parts(owner, &param.ty).into_iter().enumerate() {
                let (key, value) = match part {
                    Axes::One(Dim::Size(ast::Expr { kind: ExprKind::Name(name), span })) => {
                        if self.meaning(*name).is_some() || is_constant(self.world.library, self.file, *name) {
                            continue;
                        }
                        if function.params.iter().any(|other| other.name.name == *name) {
                            let text = format!("`{name}` is a parameter, and cannot be a size too");
                            return self.error(Code::E0211, *span, text);
                        }
                        (*name, Judged::Index(self.declare(*name, false, SizeSource::Name(*name), declared)))
                    }
                    Axes::One(Dim::One(_)) => {
                        let key = Name::new(&format!("{owner}.{at}"));
                        let base = Name::new(&format!("{owner}_{at}"));
                        (key, Judged::Vector(vec![self.declare(base, false, SizeSource::Part(key, 0), declared)]))
                    }
                    Axes::One(_) => continue,
                    Axes::Many(key, _, _) if self.meaning(key).is_some() => continue,
                    Axes::Many(key, _, _) => {
                        let length = instance.lengths.get(&key).copied().unwrap_or(0);
                        let base = if key.as_str().contains('.') { owner } else { key };
                        let component = |part| {
                            let base = Name::new(&format!("{base}_{part}"));
                            self.declare(base, false, SizeSource::Part(key, part), declared)
                        };
                        (key, Judged::Vector((0..length).map(component).collect()))
                    }
                };
                self.bind(key, Referent::Size(value));
            }
        }
        Ok(())
    }

    /// The tensors among the parameters. Whatever their types state for a size is not negative.
    fn tensor_parameters(
        &mut self,
        function: &ast::Function,
        declared: &mut DeclaredSizes,
    ) -> Checked<Vec<(Name, TensorType)>> {
        let mut params = Vec::new();
        for param in function.params.iter().filter(|param| param.ty.elem != Elem::Size) {
            let shape = self.declared(param)?;
            for size in shape.iter().filter(|size| size.as_var().is_none()) {
                let fact = not_negative(size);
                if !fact.is_always() {
                    self.assume(fact.clone());
                    declared.facts.push(fact);
                }
            }
            if shape.len() > MAX_RANK {
                let text = format!("a tensor of {} dimensions; there can be {MAX_RANK}", shape.len());
                return self.error(Code::E0213, param.ty.span, text);
            }
            let ty = TensorType::new(self.elem_of(&param.ty)?, shape);
            let unique = self.fresh(param.name.name);
            self.bind(param.name.name, Referent::Tensor(unique, ty.clone()));
            params.push((unique, ty));
        }
        Ok(params)
    }

    fn assume_wheres(&mut self, function: &ast::Function, declared: &mut DeclaredSizes) -> Checked<()> {
        for clause in &function.wheres {
            let Judged::Cond(cond) = self.expr(clause)? else {
                let error = Diagnostic::error(Code::E0231, clause.span, "a `where` clause is a condition on sizes")
                    .help("data is not known when a program is checked; sizes and `size` parameters are");
                return self.fail(error);
            };
            self.assume(cond.clone());
            declared.facts.push(cond);
        }
        if self.facts().satisfiable() != Verdict::Yes && self.facts().prove(&Cond::never()) == Verdict::Yes {
            let span = function.wheres.first().map_or(function.span, |clause| clause.span);
            return self.error(Code::E0210, span, "no sizes satisfy this: the function could never be called");
        }
        Ok(())
    }

    /// An operator that is declared associative takes two of a type and gives one; so is its identity.
    fn operator(
        &mut self,
        function: &ast::Function,
        identity: &ast::Expr,
        params: &[(Name, TensorType)],
        results: &[(Name, TensorType)],
    ) -> Checked<()> {
        let ([(_, a), (_, b)], [(_, result)], 2) = (params, results, function.params.len()) else {
            return self.error(Code::E0235, function.span, "an associative function takes two tensors and gives one");
        };
        let operands = [a, b].map(|ty| Self::var(function.name.name, ty.clone(), function.name.span));
        let mut given = self.data(identity)?;
        self.give(&mut given, result.elem)?;
        let result = Self::var(function.name.name, result.clone(), function.name.span);
        for operand in &operands {
            if operand.elem() != result.elem() {
                let text = format!(
                    "an associative function takes and gives one type, not {} and {}",
                    operand.elem(),
                    result.elem()
                );
                return self.error(Code::E0235, function.span, text);
            }
            self.same_shape(operand, &result, function.span, "an associative function takes and gives one shape")?;
        }
        self.same_shape(&result, &given, identity.span, "the identity has another shape than the results")
    }

    /// The shape that a parameter declares.
    fn declared(&mut self, param: &ast::Param) -> Checked<Vec<Ix>> {
        let mut shape = Vec::new();
        for (at, dim) in param.ty.dims.iter().enumerate() {
            let key = match dim {
                Dim::Size(expr) => {
                    shape.push(self.plain_index(expr)?);
                    continue;
                }
                Dim::Rest(name) | Dim::Ranked { shape: name, .. } => name.name,
                Dim::One(_) | Dim::Any(_) | Dim::Some(_) => Name::new(&format!("{}.{at}", param.name.name)),
            };
            if let Some(Referent::Size(Judged::Vector(sizes))) = self.meaning(key) {
                shape.extend(sizes.iter().filter_map(|size| size.plain().cloned()));
            }
        }
        Ok(shape)
    }

    /// The body of a function against the results that it declares.
    fn function_body(&mut self, function: &ast::Function) -> Checked<(typed::Block, Vec<(Name, TensorType)>)> {
        let declared: Vec<(Option<Name>, Option<&ast::Type>, Span)> = match &function.results {
            Results::Inferred => vec![(None, None, function.name.span)],
            Results::One(ty) => vec![(None, Some(ty), ty.span)],
            Results::Named(results) => {
                let mut names = HashSet::new();
                for result in results {
                    if !names.insert(result.name.name) {
                        let text = format!("two results are called `{}`", result.name.name);
                        return self.error(Code::E0202, result.name.span, text);
                    }
                }
                results.iter().map(|result| (Some(result.name.name), Some(&result.ty), result.ty.span)).collect()
            }
        };
        let count = if matches!(function.results, Results::Inferred) { None } else { Some(declared.len()) };
        let wanted: Vec<Option<Wanted>> =
            declared.iter().map(|(_, ty, _)| ty.and_then(|ty| self.wanted_by(ty))).collect();
        self.want_block(&function.body, &wanted);
        let (lets, mut values) = self.block_values(&function.body, count)?;
        let several = values.len() > 1;
        let mut results = Vec::new();
        for (at, draft) in values.iter_mut().enumerate() {
            let (name, ty, _) = declared.get(at).copied().unwrap_or((None, None, function.name.span));
            let mut stated = draft.expr.ty.shape.clone();
            if let Some(ty) = ty {
                let what = match name {
                    Some(name) => format!("the result `{name}`"),
                    None => format!("the result of `{}`", function.name.name),
                };
                self.must_have(draft, ty, &what)?;
                // Callers see the sizes as they are stated, which have been shown to be equal.
                let sizes =
                    self.asked(ty)?.into_iter().map(|dim| if let Asked::Size(size) = dim { Some(size) } else { None });
                if let Some(sizes) = sizes.collect::<Option<Vec<Ix>>>() {
                    stated = sizes.into();
                }
            }
            // Several results without names are numbered.
            let unnamed = || if several { Name::new(&format!("result{at}")) } else { Name::new("result") };
            results.push((name.unwrap_or_else(unnamed), TensorType { elem: draft.elem(), shape: stated }));
        }
        let values = values.into_iter().map(|draft| draft.expr).collect();
        Ok((typed::Block { lets, results: values }, results))
    }
}

fn not_negative(ix: &Ix) -> Cond {
    Cond::le(&Ix::from(0), ix).unwrap_or_else(|_| Cond::always())
}
