//! Signatures: which instance of a function its arguments ask for, and what a definition declares.
//!
//! The dimensions of a type are single sizes and *segments* of several sizes (`s...`, `d:s`, `*`). The lengths of the
//! segments follow from the ranks of the arguments: in a type with one segment of unknown length it is what the others
//! leave; types with more wait until other parameters have told some.

use std::collections::{BTreeMap, HashSet};

use certen_core::{ElemType, TensorType};
use certen_index::{Cond, Ix};
use certen_syntax::{Code, Diagnostic, Diagnostics, Name, Remedy, Span};

use super::index::Index;
use super::scope::{Function, Meaning};
use super::value::Value;
use super::{Checked, Reported};
use crate::ast::{self, Dim, Elem, ExprKind, Results};
use crate::typed;
use crate::{FileRef, Found, Library};

/// The largest rank of a tensor.
pub(super) const MAX_RANK: usize = 8;

/// The most components of an index vector that is a parameter.
pub(super) const MAX_VECTOR: usize = 64;

/// An instance of a function: the lengths of its segments and ranks, and what its element classes stand for.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Instance {
    pub lengths: BTreeMap<Name, usize>,
    pub elems: Vec<(Elem, ElemType)>,
}

impl Instance {
    /// What is special about it, for messages.
    pub fn describe(&self) -> String {
        let dims = |n: usize| if n == 1 { "1 dimension".into() } else { format!("{n} dimensions") };
        let named = self.lengths.iter().filter(|(name, _)| !name.as_str().contains('.'));
        let mut parts: Vec<String> = named.map(|(name, n)| format!("`{name}` has {}", dims(*n))).collect();
        parts.extend(self.elems.iter().map(|(class, elem)| format!("`{}` is {elem}", class_name(*class))));
        if parts.is_empty() { String::new() } else { format!(", where {}", parts.join(" and ")) }
    }
}

/// The word for a class of element types.
pub(super) fn class_name(class: Elem) -> &'static str {
    match class {
        Elem::Is(elem) => elem.name(),
        Elem::Any => "any",
        Elem::Num => "num",
        Elem::Float => "float",
        Elem::Size => "size",
    }
}

/// Whether a class has an element type.
pub(super) fn class_has(class: Elem, elem: ElemType) -> bool {
    match class {
        Elem::Is(own) => own == elem,
        Elem::Any => true,
        Elem::Num => elem.has_arithmetic(),
        Elem::Float => elem.is_float(),
        Elem::Size => false,
    }
}

/// What is known of an argument before its type is matched.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Argument {
    /// The rank of a tensor, the length of an index vector.
    pub rank: Option<usize>,
    /// The number that an index is.
    pub value: Option<i64>,
    /// The element type of a tensor.
    pub elem: Option<ElemType>,
    /// Where it stands in a call.
    pub place: Option<Span>,
}

/// Who asks for an instance: what is open is then told by whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Open {
    /// The caller of the whole program.
    Entry,
    /// A call at this place.
    Call(Span),
}

/// Where a size of an instance comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum SizeSource {
    /// A size or `size` parameter of this name.
    Name(Name),
    /// A component of a segment or index vector.
    Part(Name, usize),
}

/// A dimension of a type, or a segment of several.
pub(super) enum Part<'a> {
    One(&'a Dim),
    /// The segment's key, the name of its length if it has one, its least length, and whether it has a name.
    Many(Name, Option<Name>, usize),
}

/// The dimensions of a parameter's type. A segment without a name is known by the parameter and its position.
pub(super) fn parts<'a>(owner: Name, ty: &'a ast::Type) -> Vec<Part<'a>> {
    let anonymous = |at: usize| Name::new(&format!("{owner}.{at}"));
    let part = |(at, dim): (usize, &'a Dim)| match dim {
        Dim::Size(_) | Dim::One(_) => Part::One(dim),
        Dim::Rest(name) => Part::Many(name.name, None, 0),
        Dim::Ranked { rank, least, shape } => Part::Many(shape.name, Some(rank.name), *least),
        Dim::Any(_) => Part::Many(anonymous(at), None, 0),
        Dim::Some(_) => Part::Many(anonymous(at), None, 1),
    };
    ty.dims.iter().enumerate().map(part).collect()
}

/// The names that say how many dimensions there are: `d` in `d:s` and in `size[d]`.
pub(super) fn rank_names(function: &ast::Function) -> HashSet<Name> {
    let mut names = HashSet::new();
    for param in &function.params {
        for dim in &param.ty.dims {
            match dim {
                Dim::Ranked { rank, .. } => {
                    names.insert(rank.name);
                }
                Dim::Size(ast::Expr { kind: ExprKind::Name(name), .. }) if param.ty.elem == Elem::Size => {
                    names.insert(*name);
                }
                _ => {}
            }
        }
    }
    names
}

fn is_constant(library: &Library, file: FileRef, name: Name) -> bool {
    matches!(library.lookup(file, name), Some(Found::Const(_)))
}

/// The instance that the arguments ask for.
pub(super) fn solve(
    library: &Library,
    file: FileRef,
    function: &ast::Function,
    arguments: &[Argument],
    open: Open,
) -> Result<Instance, Box<Diagnostic>> {
    let ranks = rank_names(function);
    let mut lengths: BTreeMap<Name, usize> = BTreeMap::new();
    let at = |param: &ast::Param| match open {
        Open::Entry => param.ty.span,
        Open::Call(span) => span,
    };
    let refuse = |param: &ast::Param, place: Option<Span>, text: String| {
        let error = Diagnostic::error(Code::E0234, place.unwrap_or(at(param)), text);
        Err(Box::new(if matches!(open, Open::Call(_)) { error.also(param.ty.span, "declared here") } else { error }))
    };
    loop {
        let before = lengths.len();
        for (param, argument) in function.params.iter().zip(arguments) {
            let name = param.name.name;
            if param.ty.elem == Elem::Size && param.ty.dims.is_empty() {
                if ranks.contains(&name) && !lengths.contains_key(&name) {
                    match (argument.value, open) {
                        (Some(value), _) if (0..=MAX_RANK as i64).contains(&value) => {
                            lengths.insert(name, value as usize);
                        }
                        (Some(value), _) => {
                            return refuse(
                                param,
                                argument.place,
                                format!("`{name}` is a number of dimensions, from 0 to {MAX_RANK}, not {value}"),
                            );
                        }
                        (None, Open::Call(_)) => {
                            return refuse(
                                param,
                                argument.place,
                                format!("`{name}` is a number of dimensions, so it must be a literal"),
                            );
                        }
                        (None, Open::Entry) => {}
                    }
                }
                continue;
            }
            let Some(rank) = argument.rank else { continue };
            if param.ty.elem == Elem::Size {
                if let [Dim::Size(ast::Expr { kind: ExprKind::Name(d), .. })] = param.ty.dims.as_slice()
                    && !is_constant(library, file, *d)
                {
                    match lengths.get(d) {
                        None => {
                            lengths.insert(*d, rank);
                        }
                        Some(known) if *known != rank => {
                            return refuse(
                                param,
                                argument.place,
                                format!("the index vector `{name}` has {rank} components; `{d}` is {known}"),
                            );
                        }
                        Some(_) => {}
                    }
                }
                continue;
            }
            let parts = parts(name, &param.ty);
            let known = |part: &Part| match part {
                Part::One(_) => Some(1),
                Part::Many(key, length, _) => lengths.get(key).or(length.and_then(|d| lengths.get(&d))).copied(),
            };
            let sum: usize = parts.iter().filter_map(known).sum();
            let unknown: Vec<&Part> = parts.iter().filter(|part| known(part).is_none()).collect();
            let least: usize =
                unknown.iter().map(|part| if let Part::Many(_, _, least) = part { *least } else { 0 }).sum();
            if rank < sum + least || (unknown.is_empty() && rank != sum) {
                let wants = if unknown.is_empty() { format!("{sum}") } else { format!("at least {}", sum + least) };
                let many = match rank {
                    1 => "1 dimension".to_owned(),
                    _ => format!("{rank} dimensions"),
                };
                let text = match open {
                    Open::Entry => format!("`{name}` has {many}; `{}` takes {wants}", function.name.name),
                    Open::Call(_) => format!("this has {many}, and `{name}` of `{}` has {wants}", function.name.name),
                };
                return refuse(param, argument.place, text);
            }
            if let [Part::Many(key, length, _)] = unknown.as_slice() {
                lengths.insert(*key, rank - sum);
                if let Some(d) = length {
                    lengths.insert(*d, rank - sum);
                }
            }
            for part in &parts {
                if let Part::Many(key, Some(d), least) = part
                    && let Some(&length) = lengths.get(d)
                {
                    if length < *least {
                        return refuse(
                            param,
                            argument.place,
                            format!("`{key}` has {length} dimensions; it needs at least {least}"),
                        );
                    }
                    lengths.insert(*key, length);
                }
            }
        }
        if lengths.len() == before {
            break;
        }
    }
    for param in &function.params {
        let name = param.name.name;
        let mut unknown = parts(name, &param.ty)
            .into_iter()
            .filter(|part| matches!(part, Part::Many(key, ..) if !lengths.contains_key(key)));
        let scalar_rank = param.ty.elem == Elem::Size && param.ty.dims.is_empty() && ranks.contains(&name);
        let open_vector = param.ty.elem == Elem::Size
            && matches!(param.ty.dims.as_slice(), [Dim::Size(ast::Expr { kind: ExprKind::Name(d), .. })]
                if !lengths.contains_key(d) && !is_constant(library, file, *d));
        if unknown.next().is_some() || open_vector || (scalar_rank && !lengths.contains_key(&name)) {
            let text = match open {
                Open::Entry => {
                    format!("`{}` works for any rank: the rank of `{name}` is not known", function.name.name)
                }
                Open::Call(_) => format!("the number of dimensions of `{name}` does not follow from the arguments"),
            };
            let error = Diagnostic::error(Code::E0234, at(param), text);
            return Err(Box::new(match open {
                Open::Entry if scalar_rank => error.remedy(Remedy::Size(name, 1)),
                Open::Entry => error.remedy(Remedy::Rank(name, 2)),
                Open::Call(_) => error,
            }));
        }
    }
    let mut elems: Vec<(Elem, ElemType)> = Vec::new();
    for (param, argument) in function.params.iter().zip(arguments) {
        let class = param.ty.elem;
        if matches!(class, Elem::Is(_) | Elem::Size) {
            continue;
        }
        let known = elems.iter().position(|(of, _)| *of == class);
        match (known, argument.elem) {
            (None, Some(elem)) if class_has(class, elem) => elems.push((class, elem)),
            (_, Some(elem)) if !class_has(class, elem) => {
                let text = format!(
                    "`{}` has elements of type {elem}; `{}` takes {}",
                    param.name.name,
                    function.name.name,
                    match class {
                        Elem::Float => "f32 or f64",
                        _ => "numbers: f32, f64, i32 or i64",
                    }
                );
                return Err(Box::new(Diagnostic::error(Code::E0232, at(param), text)));
            }
            _ => {}
        }
    }
    for param in &function.params {
        let class = param.ty.elem;
        if !matches!(class, Elem::Is(_) | Elem::Size) && !elems.iter().any(|(of, _)| *of == class) {
            elems.push((class, ElemType::F64));
        }
    }
    elems.sort_by_key(|(class, _)| class_name(*class));
    Ok(Instance { lengths, elems })
}

/// Instances at which a function is checked by itself.
pub(super) fn samples(
    library: &Library,
    file: FileRef,
    function: &ast::Function,
    most: usize,
) -> Result<Vec<Instance>, Diagnostics> {
    let ranks = rank_names(function);
    let open = !ranks.is_empty()
        || function
            .params
            .iter()
            .any(|param| parts(param.name.name, &param.ty).iter().any(|part| matches!(part, Part::Many(..))));
    let least = function.params.iter().flat_map(|param| parts(param.name.name, &param.ty)).fold(
        BTreeMap::<Name, usize>::new(),
        |mut least, part| {
            if let Part::Many(key, length, n) = part {
                let key = length.unwrap_or(key);
                let known = least.entry(key).or_default();
                *known = (*known).max(n);
            }
            least
        },
    );
    let classes: Vec<Elem> = function.params.iter().map(|param| param.ty.elem).collect();
    let class_open = classes.iter().any(|class| !matches!(class, Elem::Is(_) | Elem::Size));
    let mut samples: Vec<Instance> = Vec::new();
    for variant in 0..if class_open { 2 } else { 1 } {
        for rank in 0..=if open { most } else { 0 } {
            let length = |key: Name| rank.max(least.get(&key).copied().unwrap_or(0)).min(MAX_RANK);
            let mut lengths = BTreeMap::new();
            for param in &function.params {
                for part in parts(param.name.name, &param.ty) {
                    if let Part::Many(key, d, _) = part {
                        lengths.insert(key, length(d.unwrap_or(key)));
                    }
                }
            }
            for d in &ranks {
                if !is_constant(library, file, *d) {
                    lengths.insert(*d, length(*d));
                }
            }
            let too_large = function.params.iter().any(|param| {
                let size = |part: &Part| match part {
                    Part::One(_) => 1,
                    Part::Many(key, ..) => lengths.get(key).copied().unwrap_or(0),
                };
                parts(param.name.name, &param.ty).iter().map(size).sum::<usize>() > MAX_RANK
            });
            let mut elems: Vec<(Elem, ElemType)> = Vec::new();
            for class in &classes {
                let elem = match (class, variant) {
                    (Elem::Is(_) | Elem::Size, _) => continue,
                    (_, 0) => ElemType::F64,
                    (Elem::Any, _) => ElemType::Bool,
                    (Elem::Num, _) => ElemType::I64,
                    (Elem::Float, _) => ElemType::F32,
                };
                if !elems.iter().any(|(of, _)| of == class) {
                    elems.push((*class, elem));
                }
            }
            elems.sort_by_key(|(class, _)| class_name(*class));
            let sample = Instance { lengths, elems };
            if !too_large && !samples.contains(&sample) {
                samples.push(sample);
            }
        }
    }
    Ok(samples)
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

impl Function<'_, '_> {
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
                    Some(Meaning::Size(Value::Vector(sizes))) => {
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
        let library = self.world.library;
        let file = self.file;
        let Some(function) = self.current() else { return Err(Reported) };
        self.elems = instance.elems.clone();
        let ranks = rank_names(function);
        let mut sizes: Vec<typed::Size> = Vec::new();
        let mut sources: Vec<SizeSource> = Vec::new();
        let mut seen: HashSet<Name> = HashSet::new();
        for param in &function.params {
            if !seen.insert(param.name.name) {
                let text = format!("two parameters are called `{}`", param.name.name);
                return self.error(Code::E0202, param.name.span, text);
            }
        }
        for d in &ranks {
            if let Some(&length) = instance.lengths.get(d) {
                self.bind(*d, Meaning::Size(Value::Index(Index::Is(Ix::from(length as i64)))));
            }
        }
        for param in function.params.iter().filter(|param| param.ty.elem == Elem::Size) {
            let name = param.name.name;
            match param.ty.dims.as_slice() {
                [] if ranks.contains(&name) => {}
                [] => {
                    let unique = self.fresh(name);
                    sizes.push(typed::Size { name: unique, given: true });
                    sources.push(SizeSource::Name(name));
                    self.bind(name, Meaning::Size(Value::Index(Ix::var(unique).into())));
                }
                [Dim::Size(length)] => {
                    let length = self.plain_index(length)?;
                    let length = length.as_constant().and_then(|n| usize::try_from(n).ok());
                    let Some(length) = length.filter(|length| *length <= MAX_VECTOR) else {
                        let text =
                            format!("the length of an index vector is a number that is known, at most {MAX_VECTOR}");
                        return self.error(Code::E0234, param.ty.span, text);
                    };
                    let mut parts = Vec::new();
                    for at in 0..length {
                        let unique = self.fresh(Name::new(&format!("{name}_{at}")));
                        sizes.push(typed::Size { name: unique, given: true });
                        sources.push(SizeSource::Part(name, at));
                        parts.push(Index::Is(Ix::var(unique)));
                    }
                    self.bind(name, Meaning::Size(Value::Vector(parts)));
                }
                _ => {
                    return self.error(
                        Code::E0234,
                        param.ty.span,
                        "an index vector has one dimension: `size[d]`, or `size[2]`",
                    );
                }
            }
        }
        let mut facts: Vec<Cond> = Vec::new();
        let tensors = || function.params.iter().filter(|param| param.ty.elem != Elem::Size);
        for param in tensors() {
            for (at, part) in parts(param.name.name, &param.ty).into_iter().enumerate() {
                match part {
                    Part::One(Dim::Size(ast::Expr { kind: ExprKind::Name(name), span })) => {
                        if self.meaning(*name).is_some() || is_constant(library, file, *name) {
                            continue;
                        }
                        if function.params.iter().any(|other| other.name.name == *name) {
                            let text = format!("`{name}` is a parameter, and cannot be a size too");
                            return self.error(Code::E0211, *span, text);
                        }
                        let unique = self.fresh(*name);
                        sizes.push(typed::Size { name: unique, given: false });
                        sources.push(SizeSource::Name(*name));
                        self.bind(*name, Meaning::Size(Value::Index(Ix::var(unique).into())));
                        facts.push(not_negative(&Ix::var(unique)));
                    }
                    Part::One(Dim::One(_)) => {
                        let key = Name::new(&format!("{}.{at}", param.name.name));
                        let unique = self.fresh(Name::new(&format!("{}_{at}", param.name.name)));
                        sizes.push(typed::Size { name: unique, given: false });
                        sources.push(SizeSource::Part(key, 0));
                        self.bind(key, Meaning::Size(Value::Vector(vec![Index::Is(Ix::var(unique))])));
                        facts.push(not_negative(&Ix::var(unique)));
                    }
                    Part::One(_) => {}
                    Part::Many(key, _, _) => {
                        if self.meaning(key).is_some() {
                            continue;
                        }
                        let length = instance.lengths.get(&key).copied().unwrap_or(0);
                        let base = if key.as_str().contains('.') { param.name.name } else { key };
                        let mut components = Vec::new();
                        for part in 0..length {
                            let unique = self.fresh(Name::new(&format!("{base}_{part}")));
                            sizes.push(typed::Size { name: unique, given: false });
                            sources.push(SizeSource::Part(key, part));
                            components.push(Index::Is(Ix::var(unique)));
                            facts.push(not_negative(&Ix::var(unique)));
                        }
                        self.bind(key, Meaning::Size(Value::Vector(components)));
                    }
                }
            }
        }
        facts.iter().for_each(|fact| self.assume(fact.clone()));
        self.sizes = sizes.iter().map(|size| size.name).collect();
        let mut params = Vec::new();
        for param in tensors() {
            let shape = self.declared(param)?;
            for size in shape.iter().filter(|size| size.as_var().is_none()) {
                let fact = not_negative(size);
                if !fact.is_always() {
                    self.assume(fact.clone());
                    facts.push(fact);
                }
            }
            if shape.len() > MAX_RANK {
                let text = format!("a tensor of {} dimensions; there can be {MAX_RANK}", shape.len());
                return self.error(Code::E0213, param.ty.span, text);
            }
            let ty = TensorType::new(self.elem_of(&param.ty)?, shape);
            let unique = self.fresh(param.name.name);
            self.bind(param.name.name, Meaning::Tensor(unique, ty.clone()));
            params.push((unique, ty));
        }
        for clause in &function.wheres {
            match self.expr(clause)? {
                Value::Cond(cond) => {
                    self.assume(cond.clone());
                    facts.push(cond);
                }
                _ => {
                    let error = Diagnostic::error(Code::E0231, clause.span, "a `where` clause is a condition on sizes")
                        .help("data is not known when a program is checked; sizes and `size` parameters are");
                    return self.fail(error);
                }
            }
        }
        if self.facts().satisfiable() != certen_index::Verdict::Yes && self.impossible() {
            let span = function.wheres.first().map_or(function.span, |clause| clause.span);
            return self.error(Code::E0210, span, "no sizes satisfy this: the function could never be called");
        }
        let (body, results) = self.function_body(function)?;
        if let Some(identity) = &function.associative {
            self.operator(function, identity, &params, &results)?;
        }
        let typed = typed::Function {
            name: function.name.name,
            source: function.name.name,
            sizes,
            facts,
            params,
            results,
            body,
            span: function.span,
        };
        Ok((typed, sources))
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

    fn impossible(&self) -> bool {
        matches!(self.facts().prove(&Cond::never()), certen_index::Verdict::Yes)
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
            if let Some(Meaning::Size(Value::Vector(sizes))) = self.meaning(key) {
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
