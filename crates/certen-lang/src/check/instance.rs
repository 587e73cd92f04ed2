//! Instances: which instance of a function its arguments ask for.
//!
//! The dimensions of a type are single sizes and *segments* of several sizes (`s...`, `d:s`, `*`). The lengths of the
//! segments follow from the ranks of the arguments: in a type with one segment of unknown length it is what the others
//! leave; types with more wait until other parameters have told some.

use std::collections::{BTreeMap, HashSet};

use certen_core::ElemType;
use certen_syntax::{Code, Diagnostic, Name, Remedy, Span};

use crate::ast::{self, Dim, Elem, ExprKind};
use crate::library::{Declared, FileRef, Library};

/// The largest rank of a tensor.
pub(super) const MAX_RANK: usize = 8;

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
pub(super) enum Asker {
    /// The caller of the whole program.
    Entry,
    /// A call at this place.
    Call(Span),
}

/// A dimension of a type, or a segment of several.
pub(super) enum Axes<'a> {
    One(&'a Dim),
    /// The segment's key, the name of its length if it has one, its least length, and whether it has a name.
    Many(Name, Option<Name>, usize),
}

/// The dimensions of a parameter's type. A segment without a name is known by the parameter and its position.
pub(super) fn parts<'a>(owner: Name, ty: &'a ast::Type) -> Vec<Axes<'a>> {
    let anonymous = |at: usize| Name::new(&format!("{owner}.{at}"));
    let part = |(at, dim): (usize, &'a Dim)| match dim {
        Dim::Size(_) | Dim::One(_) => Axes::One(dim),
        Dim::Rest(name) => Axes::Many(name.name, None, 0),
        Dim::Ranked { rank, least, shape } => Axes::Many(shape.name, Some(rank.name), *least),
        Dim::Any(_) => Axes::Many(anonymous(at), None, 0),
        Dim::Some(_) => Axes::Many(anonymous(at), None, 1),
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

pub(super) fn is_constant(library: &Library, file: FileRef, name: Name) -> bool {
    matches!(library.lookup(file, name), Some(Declared::Const(_)))
}

/// What is known so far of the instance that a call asks for.
struct Solver<'a> {
    library: &'a Library,
    file: FileRef,
    function: &'a ast::Function,
    open: Asker,
    ranks: HashSet<Name>,
    lengths: BTreeMap<Name, usize>,
}

/// The instance that the arguments ask for.
pub(super) fn solve(
    library: &Library,
    file: FileRef,
    function: &ast::Function,
    arguments: &[Argument],
    open: Asker,
) -> Result<Instance, Box<Diagnostic>> {
    let mut solver = Solver { library, file, function, open, ranks: rank_names(function), lengths: BTreeMap::new() };
    loop {
        let before = solver.lengths.len();
        for (param, argument) in function.params.iter().zip(arguments) {
            match (param.ty.elem == Elem::Size, param.ty.dims.is_empty(), argument.rank) {
                (true, true, _) => solver.rank_parameter(param, argument)?,
                (true, false, Some(length)) => solver.index_vector(param, argument, length)?,
                (false, _, Some(rank)) => solver.tensor(param, argument, rank)?,
                (_, _, None) => {}
            }
        }
        if solver.lengths.len() == before {
            break;
        }
    }
    solver.all_known()?;
    let elems = solver.elements(arguments)?;
    Ok(Instance { lengths: solver.lengths, elems })
}

impl Solver<'_> {
    fn place(&self, param: &ast::Param) -> Span {
        match self.open {
            Asker::Entry => param.ty.span,
            Asker::Call(span) => span,
        }
    }

    fn refuse(&self, param: &ast::Param, argument: &Argument, text: String) -> Result<(), Box<Diagnostic>> {
        let error = Diagnostic::error(Code::E0234, argument.place.unwrap_or(self.place(param)), text);
        Err(Box::new(match self.open {
            Asker::Call(_) => error.also(param.ty.span, "declared here"),
            Asker::Entry => error,
        }))
    }

    /// The name of an index vector's length, if its parameter names it.
    fn vector_length(&self, param: &ast::Param) -> Option<Name> {
        match param.ty.dims.as_slice() {
            [Dim::Size(ast::Expr { kind: ExprKind::Name(d), .. })] if param.ty.elem == Elem::Size => {
                (!is_constant(self.library, self.file, *d)).then_some(*d)
            }
            _ => None,
        }
    }

    /// A `size` parameter can be a number of dimensions, which must be known.
    fn rank_parameter(&mut self, param: &ast::Param, argument: &Argument) -> Result<(), Box<Diagnostic>> {
        let name = param.name.name;
        if !self.ranks.contains(&name) || self.lengths.contains_key(&name) {
            return Ok(());
        }
        let text = match (argument.value, self.open) {
            (Some(value), _) if (0..=MAX_RANK as i64).contains(&value) => {
                self.lengths.insert(name, value as usize);
                return Ok(());
            }
            (None, Asker::Entry) => return Ok(()),
            (Some(value), _) => {
                format!("`{name}` is a number of dimensions, from 0 to {MAX_RANK}, not {value}")
            }
            (None, Asker::Call(_)) => format!("`{name}` is a number of dimensions, so it must be a literal"),
        };
        self.refuse(param, argument, text)
    }

    fn index_vector(&mut self, param: &ast::Param, argument: &Argument, length: usize) -> Result<(), Box<Diagnostic>> {
        let Some(d) = self.vector_length(param) else { return Ok(()) };
        let known = *self.lengths.entry(d).or_insert(length);
        if known == length {
            return Ok(());
        }
        let name = param.name.name;
        self.refuse(param, argument, format!("the index vector `{name}` has {length} components; `{d}` is {known}"))
    }

    fn tensor(&mut self, param: &ast::Param, argument: &Argument, rank: usize) -> Result<(), Box<Diagnostic>> {
        let name = param.name.name;
        let parts = parts(name, &param.ty);
        let known = |part: &Axes| match part {
            Axes::One(_) => Some(1),
            Axes::Many(key, length, _) => self.lengths.get(key).or(length.and_then(|d| self.lengths.get(&d))).copied(),
        };
        let sum: usize = parts.iter().filter_map(known).sum();
        let unknown: Vec<&Axes> = parts.iter().filter(|part| known(part).is_none()).collect();
        let least: usize = unknown.iter().map(|part| if let Axes::Many(_, _, least) = part { *least } else { 0 }).sum();
        if rank < sum + least || (unknown.is_empty() && rank != sum) {
            let wants = if unknown.is_empty() { format!("{sum}") } else { format!("at least {}", sum + least) };
            let many = if rank == 1 { "1 dimension".to_owned() } else { format!("{rank} dimensions") };
            let function = self.function.name.name;
            let text = match self.open {
                Asker::Entry => format!("`{name}` has {many}; `{function}` takes {wants}"),
                Asker::Call(_) => format!("this has {many}, and `{name}` of `{function}` has {wants}"),
            };
            return self.refuse(param, argument, text);
        }
        if let [Axes::Many(key, length, _)] = unknown.as_slice() {
            self.lengths.insert(*key, rank - sum);
            if let Some(d) = length {
                self.lengths.insert(*d, rank - sum);
            }
        }
        for part in &parts {
            if let Axes::Many(key, Some(d), least) = part
                && let Some(&length) = self.lengths.get(d)
            {
                if length < *least {
                    let text = format!("`{key}` has {length} dimensions; it needs at least {least}");
                    return self.refuse(param, argument, text);
                }
                self.lengths.insert(*key, length);
            }
        }
        Ok(())
    }

    /// Refuses what the arguments leave open.
    fn all_known(&self) -> Result<(), Box<Diagnostic>> {
        for param in &self.function.params {
            let name = param.name.name;
            let known = |name: &Name| self.lengths.contains_key(name);
            let scalar_rank = param.ty.elem == Elem::Size && param.ty.dims.is_empty() && self.ranks.contains(&name);
            if parts(name, &param.ty).iter().all(|part| !matches!(part, Axes::Many(key, ..) if !known(key)))
                && self.vector_length(param).is_none_or(|d| known(&d))
                && (!scalar_rank || known(&name))
            {
                continue;
            }
            let text = match self.open {
                Asker::Entry => {
                    format!("`{}` works for any rank: the rank of `{name}` is not known", self.function.name.name)
                }
                Asker::Call(_) => format!("the number of dimensions of `{name}` does not follow from the arguments"),
            };
            let error = Diagnostic::error(Code::E0234, self.place(param), text);
            return Err(Box::new(match self.open {
                Asker::Entry if scalar_rank => error.remedy(Remedy::Size(name, 1)),
                Asker::Entry => error.remedy(Remedy::Rank(name, 2)),
                Asker::Call(_) => error,
            }));
        }
        Ok(())
    }

    /// What the classes of element types stand for.
    fn elements(&self, arguments: &[Argument]) -> Result<Vec<(Elem, ElemType)>, Box<Diagnostic>> {
        let mut elems: Vec<(Elem, ElemType)> = Vec::new();
        for (param, argument) in self.function.params.iter().zip(arguments) {
            let class = param.ty.elem;
            let Some(elem) = argument.elem.filter(|_| !matches!(class, Elem::Is(_) | Elem::Size)) else { continue };
            if !class_has(class, elem) {
                let text = format!(
                    "`{}` has elements of type {elem}; `{}` takes {}",
                    param.name.name,
                    self.function.name.name,
                    match class {
                        Elem::Float => "f32 or f64",
                        _ => "numbers: f32, f64, i32 or i64",
                    }
                );
                return Err(Box::new(Diagnostic::error(Code::E0232, self.place(param), text)));
            }
            if !elems.iter().any(|(of, _)| *of == class) {
                elems.push((class, elem));
            }
        }
        for class in self.function.params.iter().map(|param| param.ty.elem) {
            if !matches!(class, Elem::Is(_) | Elem::Size) && !elems.iter().any(|(of, _)| *of == class) {
                elems.push((class, ElemType::F64));
            }
        }
        elems.sort_by_key(|(class, _)| class_name(*class));
        Ok(elems)
    }
}

/// Instances at which a function is checked by itself.
pub(super) fn samples(library: &Library, file: FileRef, function: &ast::Function, most: usize) -> Vec<Instance> {
    let ranks = rank_names(function);
    let open = !ranks.is_empty()
        || function
            .params
            .iter()
            .any(|param| parts(param.name.name, &param.ty).iter().any(|part| matches!(part, Axes::Many(..))));
    let least = function.params.iter().flat_map(|param| parts(param.name.name, &param.ty)).fold(
        BTreeMap::<Name, usize>::new(),
        |mut least, part| {
            if let Axes::Many(key, length, n) = part {
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
                    if let Axes::Many(key, d, _) = part {
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
                let size = |part: &Axes| match part {
                    Axes::One(_) => 1,
                    Axes::Many(key, ..) => lengths.get(key).copied().unwrap_or(0),
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
    samples
}
