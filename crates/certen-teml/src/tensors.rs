//! Tensor expressions: E_t and P_stmt of Fig. 8, and the operations of Sec. 4.2, which are made of them.
//!
//! An identifier stands for a tensor, whose iterators are not given yet (ε), or for a virtual tensor, whose iterators are;
//! one that names a real statement stands, as an operand, for the tensor that the statement writes. The where-clauses of Eq. 14
//! and 15 follow: a list of iterators is given just where there is none yet. The operations of Sec. 4.2 write no lists: they
//! give the dimensions of their operands the iterators `i1`, `i2`, … in order, also where a virtual operand had others.
//!
//! A right side is a tree in an arena in which equal trees are one; a virtual tensor that is used again, or with other
//! iterators again, costs nothing. So a program of any depth takes time and memory in proportion to its length.

use certen_core::{Binary, ElemType, Literal, MAX_RANK, ReduceOp};
use certen_index::Ix;
use certen_syntax::{Code, Diagnostic, Diagnostics, Name, Span};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::assignment::{Assignment, Begin, Node, Tensor, ValueId, Values};
use crate::ast::{At, Id, Iters, Number, TensorExpr};
use crate::ranges::{Dim, Known, Sizes, Source, Use, names, solve};
use crate::rules::{Evaluated, malformed};

/// More parts of right sides are not made.
const MOST_VALUES: usize = 8_000_000;

/// What a tensor expression is.
#[derive(Clone, Debug)]
pub(crate) enum Meaning {
    /// A tensor without iterators, or a scalar, by its number.
    Tensor(usize),
    /// A virtual tensor.
    Virtual(Virtual),
    /// A real statement, by its number.
    Real(usize),
}

/// A tensor expression whose elements are nowhere in memory.
#[derive(Clone, Debug)]
pub(crate) struct Virtual {
    /// Its elements, over its iterators.
    pub value: ValueId,
    /// Its dimensions.
    pub dims: Vec<Dim>,
    /// The type of its elements.
    pub elem: ElemType,
}

/// Everything about tensors that a program has made so far.
pub(crate) struct Tensors {
    pub values: Values,
    pub tensors: Vec<Tensor>,
    pub assignments: Vec<Assignment>,
    pub sizes: Sizes,
    /// The tensors by name, and whether each is a `scalar()`.
    by_name: FxHashMap<Name, usize>,
    scalars: FxHashSet<usize>,
    /// The shape of every part of a right side that is an operation.
    pub shapes: FxHashMap<ValueId, Vec<Ix>>,
    names: Names,
    renamings: FxHashMap<Vec<(Name, Name)>, u32>,
    renamed: FxHashMap<(ValueId, u32), ValueId>,
    ids: FxHashMap<Name, u64>,
}

/// Names for iterators, which have to differ from those of sizes, tensors and statements.
pub(crate) struct Names {
    /// What the program uses for tensors, statements and loops.
    pub ids: FxHashSet<Name>,
    /// What the program uses as iterators.
    pub iterators: FxHashSet<Name>,
    replaced: FxHashMap<Name, Name>,
    generated: Vec<Name>,
    summed: u64,
}

impl Names {
    pub(crate) fn new(ids: FxHashSet<Name>, iterators: FxHashSet<Name>) -> Names {
        Names { ids, iterators, replaced: FxHashMap::default(), generated: Vec::new(), summed: 0 }
    }

    /// The iterator that the program calls so.
    fn iterator(&mut self, name: Name, sizes: &Sizes) -> Name {
        if !self.ids.contains(&name) {
            return name;
        }
        if let Some(&other) = self.replaced.get(&name) {
            return other;
        }
        let taken = |name: Name| self.ids.contains(&name) || self.iterators.contains(&name) || sizes.has(name);
        let other = Name::fresh(name.as_str(), taken);
        self.iterators.insert(other);
        self.replaced.insert(name, other);
        other
    }

    /// The iterators `i1`, `i2`, … that operations without lists use.
    fn generated(&mut self, count: usize, sizes: &Sizes) -> Vec<Name> {
        while self.generated.len() < count {
            let base = format!("i{}", self.generated.len() + 1);
            let name = Name::fresh(&base, |name| self.ids.contains(&name) || sizes.has(name));
            self.generated.push(name);
        }
        self.generated[..count].to_vec()
    }

    /// An iterator that nothing else uses.
    fn summed(&mut self, base: &str, sizes: &Sizes) -> Name {
        let taken = |name: Name| self.ids.contains(&name) || self.iterators.contains(&name) || sizes.has(name);
        Name::numbered(base, &mut self.summed, taken)
    }
}

/// An operand with its iterators.
struct Operand {
    value: ValueId,
    known: Known,
    elem: ElemType,
    id: Id,
}

/// What is to be assigned.
struct Right {
    value: ValueId,
    dims: Vec<Dim>,
    elem: ElemType,
    contract: bool,
}

/// An entry of the list of iterators of a target.
struct Written {
    entry: Ix,
    span: Span,
}

impl Tensors {
    pub(crate) fn new(sizes: Sizes, names: Names) -> Tensors {
        Tensors {
            values: Values::new(),
            tensors: Vec::new(),
            assignments: Vec::new(),
            sizes,
            by_name: FxHashMap::default(),
            scalars: FxHashSet::default(),
            shapes: FxHashMap::default(),
            names,
            renamings: FxHashMap::default(),
            renamed: FxHashMap::default(),
            ids: FxHashMap::default(),
        }
    }

    /// The tensor of this name.
    pub(crate) fn named(&self, name: Name) -> Option<usize> {
        self.by_name.get(&name).copied()
    }

    /// Whether a name is that of a tensor, a statement or a loop.
    pub(crate) fn is_name(&self, name: Name) -> bool {
        self.names.ids.contains(&name)
    }

    /// Whether a tensor is a `scalar()`: without iterators, where others wait for them.
    pub(crate) fn is_scalar(&self, tensor: usize) -> bool {
        self.scalars.contains(&tensor)
    }

    /// E_t and P_stmt (Eq. 12 to 18, 30 to 35): what `id` stands for after `id = expr` or `id = @target: expr`.
    pub(crate) fn assign(
        &mut self,
        lookup: &dyn Fn(&Id) -> Evaluated<Meaning>,
        id: &Id,
        target: Option<&Id>,
        expr: &TensorExpr,
        span: Span,
        elem: ElemType,
        diagnostics: &mut Diagnostics,
    ) -> Evaluated<Meaning> {
        if self.values.len() > MOST_VALUES {
            return Err(Box::new(Diagnostic::error(Code::E0703, span, "the program has too many operations")));
        }
        let place = Place { id, target, span };
        let by = |virtual_: u8, real_: u8, real: bool| if real { real_ } else { virtual_ };
        let (right, to) = match expr {
            TensorExpr::New { elem: stated, shape } => {
                return self.introduce(id, stated.unwrap_or(elem), shape.as_deref()).map(Meaning::Tensor);
            }
            TensorExpr::Eq { operand, from, to } => {
                let operand = self.operand(lookup, operand, from.as_ref(), 14)?;
                let to = self.written(to);
                let right = self.joint(vec![operand], None, 14, place.target_uses(self, &to)?)?;
                (right, Some(to))
            }
            TensorExpr::Op { op, operands: [(one, first), (two, second)], to } => {
                let one = self.operand(lookup, one, first.as_ref(), 15)?;
                let two = self.operand(lookup, two, second.as_ref(), 15)?;
                let to = to.as_ref().map(|to| self.written(to));
                let uses = match &to {
                    Some(to) => place.target_uses(self, to)?,
                    None => Vec::new(),
                };
                (self.joint(vec![one, two], Some(*op), 15, uses)?, to)
            }
            TensorExpr::Entrywise { real, op, operands } => {
                let right = self.entrywise(lookup, *op, operands, by(30, 31, *real))?;
                let to = real.then(|| self.all_of(&right.dims));
                (right, to)
            }
            TensorExpr::Transpose { real, operand, pairs } => {
                let right = self.transpose(lookup, operand, pairs)?;
                let to = real.then(|| self.all_of(&right.dims));
                (right, to)
            }
            TensorExpr::Contract { real, operands, pairs } => {
                let (right, rest) = self.contract(lookup, operands, pairs, *real)?;
                let to = real.then(|| self.all_of(&right.dims[..rest]));
                (right, to)
            }
            TensorExpr::Outer { real, operands } => {
                let right = self.outer(lookup, operands, by(34, 35, *real))?;
                let to = real.then(|| self.all_of(&right.dims));
                (right, to)
            }
        };
        match to {
            Some(to) => self.real(&place, right, &to, diagnostics).map(Meaning::Real),
            None => {
                if let Some(target) = target {
                    let message = "a virtual tensor is written nowhere, so there is nothing for `@` to name";
                    let error = malformed(Code::E0242, 18, target.span, message);
                    return Err(Box::new(error.help("an operation without `v` writes a tensor")));
                }
                Ok(Meaning::Virtual(Virtual { value: right.value, dims: right.dims, elem: right.elem }))
            }
        }
    }

    /// `init(id, number)`
    pub(crate) fn init(&mut self, id: &Id, value: &At<Number>, span: Span) -> Evaluated<usize> {
        let Some(at) = self.named(id.it) else {
            let message = format!("`{}` is not a tensor", id.it);
            let error = malformed(Code::E0201, 17, id.span, message);
            return Err(Box::new(error.help(format!("introduce it first: `{} = tensor([..])` or `scalar()`", id.it))));
        };
        let Tensor { elem, shape, .. } = self.tensors[at].clone();
        let literal = match value.it {
            Number::Int(number) => Literal::whole(number, elem),
            Number::Float(number) => {
                Literal::Float(if elem == ElemType::F32 { f64::from(number as f32) } else { number })
            }
        };
        if !literal.fits(elem) {
            let message = format!("this number is no {elem}, which the elements of `{}` are", id.it);
            return Err(Box::new(Diagnostic::error(Code::E0232, value.span, message)));
        }
        let iters = self.names.generated(shape.len(), &self.sizes);
        let assignment = Assignment {
            id: self.unique(id.it),
            target: id.it,
            out: iters.iter().map(|&iter| Ix::var(iter)).collect(),
            iterators: iters.into_iter().zip(shape).collect(),
            begin: Begin::Write,
            value: self.values.add(Node::Number(literal)),
            init: true,
            span,
        };
        self.assignments.push(assignment);
        Ok(self.assignments.len() - 1)
    }

    /// Eq. 12, 13: a new tensor.
    fn introduce(&mut self, id: &Id, elem: ElemType, shape: Option<&[At<Ix>]>) -> Evaluated<usize> {
        let by = if shape.is_some() { 13 } else { 12 };
        if let Some(before) = self.named(id.it) {
            let error = malformed(Code::E0202, by, id.span, format!("`{}` is introduced twice", id.it));
            return Err(Box::new(error.also(self.tensors[before].span, "first here")));
        }
        let sizes = shape.unwrap_or_default();
        if sizes.len() > MAX_RANK {
            let message = format!("a tensor has at most {MAX_RANK} dimensions, not {}", sizes.len());
            return Err(malformed(Code::E0213, by, id.span, message));
        }
        if let Some(size) = sizes.iter().find(|size| size.it.as_constant().is_some_and(|size| size < 0)) {
            return Err(malformed(Code::E0216, by, size.span, format!("a size is at least 0, not {}", size.it)));
        }
        let at = self.add_tensor(Tensor {
            name: id.it,
            elem,
            shape: sizes.iter().map(|size| size.it.clone()).collect(),
            span: id.span,
        });
        if shape.is_none() {
            self.scalars.insert(at);
        }
        Ok(at)
    }

    fn add_tensor(&mut self, tensor: Tensor) -> usize {
        tensor.shape.iter().for_each(|size| self.sizes.assume(size));
        self.by_name.insert(tensor.name, self.tensors.len());
        self.tensors.push(tensor);
        self.tensors.len() - 1
    }

    /// A name that no statement has yet.
    fn unique(&mut self, id: Name) -> Name {
        let count = self.ids.entry(id).or_default();
        *count += 1;
        if *count == 1 {
            return id;
        }
        let names = &self.names;
        let sizes = &self.sizes;
        *count -= 1;
        let name = Name::numbered(&format!("{id}_"), count, |name| {
            name == Name::new(&format!("{id}_1"))
                || names.ids.contains(&name)
                || names.iterators.contains(&name)
                || sizes.has(name)
        });
        self.ids.entry(name).or_insert(1);
        name
    }

    // Operands

    /// The tensor that an operand stands for, or the virtual tensor.
    fn resolve(&self, lookup: &dyn Fn(&Id) -> Evaluated<Meaning>, id: &Id) -> Evaluated<Result<usize, Virtual>> {
        Ok(match lookup(id)? {
            Meaning::Tensor(at) => Ok(at),
            Meaning::Virtual(found) => Err(found),
            Meaning::Real(at) => match self.named(self.assignments[at].target) {
                Some(at) => Ok(at),
                None => return Err(Box::new(Diagnostic::error(Code::E0201, id.span, "this tensor is gone"))),
            },
        })
    }

    /// An operand with its list of iterators: the where-clauses of Eq. 14 and 15.
    fn operand(
        &mut self,
        lookup: &dyn Fn(&Id) -> Evaluated<Meaning>,
        id: &Id,
        list: Option<&Iters>,
        by: u8,
    ) -> Evaluated<Operand> {
        let found = self.resolve(lookup, id)?;
        match (found, list) {
            (Err(found), None) => {
                Ok(Operand { value: found.value, known: Known::Dims(found.dims), elem: found.elem, id: *id })
            }
            (Err(found), Some(list)) => {
                let message = format!("`{}` is virtual: it already has iterators", id.it);
                let has: Vec<String> = found.dims.iter().map(|dim| dim.iter.to_string()).collect();
                let error = malformed(Code::E0242, by, list.span, message)
                    .label("where-clause: a list stands only where there is none yet (I′ = ε)")
                    .note(format!("its iterators are [{}]", has.join(", ")));
                Err(Box::new(error.help("leave the list out")))
            }
            (Ok(at), None) if self.is_scalar(at) => {
                let elem = self.tensors[at].elem;
                let value = self.values.add(Node::Element(self.tensors[at].name, Vec::new()));
                Ok(Operand { value, known: Known::Dims(Vec::new()), elem, id: *id })
            }
            (Ok(at), Some(list)) if self.is_scalar(at) => {
                let message = format!("`{}` is a scalar, which has no iterators", self.tensors[at].name);
                let error = malformed(Code::E0242, by, list.span, message);
                Err(Box::new(
                    error
                        .label("where-clause: a list stands only where there is none yet (I′ = ε)")
                        .help("leave the list out"),
                ))
            }
            (Ok(at), None) => {
                let Tensor { name, shape, span, .. } = &self.tensors[at];
                let message = format!("`{name}` has no iterators yet, and is given none");
                let lists: Vec<String> = (1..=shape.len()).map(|k| format!("i{k}")).collect();
                let error = malformed(Code::E0242, by, id.span, message)
                    .label("where-clause: without a list, iterators must be there (I′ ≠ ε)")
                    .also(*span, format!("it has {}", dimensions(shape.len())));
                Err(Box::new(error.help(format!("give it a list, such as `[{}]`", lists.join(", ")))))
            }
            (Ok(at), Some(list)) => {
                let Tensor { name, shape, span, elem } = self.tensors[at].clone();
                if shape.len() != list.it.len() {
                    let message = format!("`{name}` has {}, and {} iterators", dimensions(shape.len()), list.it.len());
                    return Err(Box::new(malformed(Code::E0242, by, list.span, message).also(span, "introduced here")));
                }
                let written = self.written(list);
                let entries = written.iter().map(|written| written.entry.clone()).collect();
                let value = self.values.add(Node::Element(name, entries));
                let known = Known::Uses(uses(name, &shape, &written, None));
                Ok(Operand { value, known, elem, id: *id })
            }
        }
    }

    /// A list of iterators, under the names that they have here.
    fn written(&mut self, list: &Iters) -> Vec<Written> {
        let entry = |this: &mut Tensors, entry: &At<Ix>| {
            let replaced: Vec<(Name, Name)> = names(&entry.it)
                .into_iter()
                .filter(|name| !this.sizes.has(*name))
                .map(|name| (name, this.names.iterator(name, &this.sizes)))
                .filter(|(old, new)| old != new)
                .collect();
            let new = |name: Name| replaced.iter().find(|(old, _)| *old == name).map(|(_, new)| Ix::var(*new));
            let ix = if replaced.is_empty() {
                entry.it.clone()
            } else {
                entry.it.substitute(&new).unwrap_or(entry.it.clone())
            };
            Written { entry: ix, span: entry.span }
        };
        list.it.iter().map(|one| entry(self, one)).collect()
    }

    /// The extents of an operand, in the order of its dimensions.
    fn extents(&self, found: &Result<usize, Virtual>) -> Vec<Ix> {
        match found {
            Ok(at) => self.tensors[*at].shape.clone(),
            Err(found) => found.dims.iter().map(|dim| dim.extent.clone()).collect(),
        }
    }

    /// An operand of an operation without lists: its dimensions get these iterators.
    fn instance(&mut self, id: &Id, found: &Result<usize, Virtual>, iters: &[Name]) -> Operand {
        match found {
            Ok(at) => {
                let Tensor { name, shape, elem, .. } = self.tensors[*at].clone();
                let written: Vec<Written> =
                    iters.iter().map(|&iter| Written { entry: Ix::var(iter), span: id.span }).collect();
                let entries = written.iter().map(|written| written.entry.clone()).collect();
                let value = self.values.add(Node::Element(name, entries));
                Operand { value, known: Known::Uses(uses(name, &shape, &written, None)), elem, id: *id }
            }
            Err(found) => {
                let mut map: Vec<(Name, Name)> =
                    found.dims.iter().map(|dim| dim.iter).zip(iters.iter().copied()).collect();
                map.retain(|(old, new)| old != new);
                let value = self.rename(found.value, map);
                let dims = found.dims.iter().zip(iters).map(|(dim, &iter)| Dim {
                    iter,
                    span: id.span,
                    plain: true,
                    ..dim.clone()
                });
                Operand { value, known: Known::Dims(dims.collect()), elem: found.elem, id: *id }
            }
        }
    }

    /// A right side with other names for some iterators, all at once.
    fn rename(&mut self, value: ValueId, map: Vec<(Name, Name)>) -> ValueId {
        if map.is_empty() {
            return value;
        }
        let count = self.renamings.len() as u32;
        let number = *self.renamings.entry(map.clone()).or_insert(count);
        let new = |name: Name| map.iter().find(|(old, _)| *old == name).map(|(_, new)| Ix::var(*new));
        let rename = |ix: &Ix| ix.substitute(&new).unwrap_or_else(|_| ix.clone());
        let mut todo = vec![value];
        while let Some(&id) = todo.last() {
            if self.renamed.contains_key(&(id, number)) {
                todo.pop();
                continue;
            }
            let part = |id: ValueId| self.renamed.get(&(id, number)).copied();
            let node = match self.values.get(id) {
                Node::Element(name, entries) => Ok(Node::Element(*name, entries.iter().map(rename).collect())),
                Node::Number(literal) => Ok(Node::Number(*literal)),
                Node::Op(op, a, b) => match (part(*a), part(*b)) {
                    (Some(one), Some(two)) => Ok(Node::Op(*op, one, two)),
                    (one, _) => Err(if one.is_none() { *a } else { *b }),
                },
                // The iterators of a sum are its own: nothing is renamed to them.
                Node::Sum(iters, a) => part(*a).map(|a| Node::Sum(iters.clone(), a)).ok_or(*a),
            };
            match node {
                Err(first) => todo.push(first),
                Ok(node) => {
                    let new = self.values.add(node);
                    if let Some(shape) = self.shapes.get(&id).cloned() {
                        self.shapes.entry(new).or_insert(shape);
                    }
                    self.renamed.insert((id, number), new);
                    todo.pop();
                }
            }
        }
        self.renamed.get(&(value, number)).copied().unwrap_or(value)
    }

    /// One type of elements for all operands.
    fn one_type(&self, operands: &[Operand]) -> Evaluated<ElemType> {
        let first = &operands[0];
        match operands.iter().find(|operand| operand.elem != first.elem) {
            None => Ok(first.elem),
            Some(other) => {
                let message = format!("operands of different types: {} and {}", first.elem, other.elem);
                let error = Diagnostic::error(Code::E0232, other.id.span, message).label(other.elem.name());
                Err(Box::new(error.also(first.id.span, first.elem.name())))
            }
        }
    }

    fn operation(&mut self, op: Binary, one: ValueId, two: ValueId, dims: &[Dim]) -> ValueId {
        let value = self.values.add(Node::Op(op, one, two));
        self.shapes.entry(value).or_insert_with(|| dims.iter().map(|dim| dim.extent.clone()).collect());
        value
    }

    /// Operands with lists, and the ranges of their iterators.
    fn joint(&mut self, operands: Vec<Operand>, op: Option<Binary>, by: u8, target: Vec<Use>) -> Evaluated<Right> {
        let elem = self.one_type(&operands)?;
        let values: Vec<ValueId> = operands.iter().map(|operand| operand.value).collect();
        let mut known: Vec<Known> = operands.into_iter().map(|operand| operand.known).collect();
        let own: FxHashSet<Name> = known.iter().flat_map(|known| known.iterators(&self.sizes)).collect();
        known.push(Known::Uses(target));
        let dims = solve(&self.sizes, by, &known)?;
        let value = match (op, values.as_slice()) {
            (Some(op), [one, two]) => self.operation(op, *one, *two, &dims[..own.len().min(dims.len())]),
            _ => values[0],
        };
        Ok(Right { value, dims, elem, contract: false })
    }

    // The operations of Sec. 4.2

    fn entrywise(
        &mut self,
        lookup: &dyn Fn(&Id) -> Evaluated<Meaning>,
        op: Binary,
        operands: &[Id],
        by: u8,
    ) -> Evaluated<Right> {
        let mut list = Vec::with_capacity(operands.len());
        let mut first: Option<(Id, usize)> = None;
        for id in operands {
            let found = self.resolve(lookup, id)?;
            let rank = self.extents(&found).len();
            let &mut (one, expected) = first.get_or_insert((*id, rank));
            if rank != expected {
                let message =
                    format!("`{}` has {}, `{}` has {}", one.it, dimensions(expected), id.it, dimensions(rank));
                let error = malformed(Code::E0243, by, id.span, message);
                return Err(Box::new(error.help("operands of an entrywise operation have the same shape")));
            }
            let iters = self.names.generated(rank, &self.sizes);
            list.push(self.instance(id, &found, &iters));
        }
        let elem = self.one_type(&list)?;
        let values: Vec<ValueId> = list.iter().map(|operand| operand.value).collect();
        let known: Vec<Known> = list.into_iter().map(|operand| operand.known).collect();
        let dims = solve(&self.sizes, by, &known)?;
        let value = values.iter().skip(1).fold(values[0], |one, &two| self.operation(op, one, two, &dims));
        Ok(Right { value, dims, elem, contract: false })
    }

    fn transpose(
        &mut self,
        lookup: &dyn Fn(&Id) -> Evaluated<Meaning>,
        operand: &Id,
        pairs: &[At<[i64; 2]>],
    ) -> Evaluated<Right> {
        let found = self.resolve(lookup, operand)?;
        let rank = self.extents(&found).len();
        let iters = self.names.generated(rank, &self.sizes);
        let one = self.instance(operand, &found, &iters);
        let (value, elem) = (one.value, one.elem);
        let mut dims = solve(&self.sizes, 32, &[one.known])?;
        for pair in pairs {
            let [first, second] = positions(pair, [rank, rank], [operand, operand], 32)?;
            if first == second {
                return Err(malformed(Code::E0205, 32, pair.span, "two different dimensions are exchanged"));
            }
            dims.swap(first, second);
        }
        Ok(Right { value, dims, elem, contract: false })
    }

    /// The product, its dimensions with those that are summed at the end, and how many there are before.
    fn contract(
        &mut self,
        lookup: &dyn Fn(&Id) -> Evaluated<Meaning>,
        [one, two]: &[Id; 2],
        pairs: &[At<[i64; 2]>],
        real: bool,
    ) -> Evaluated<(Right, usize)> {
        let found = [self.resolve(lookup, one)?, self.resolve(lookup, two)?];
        let extents = [self.extents(&found[0]), self.extents(&found[1])];
        let ranks = [extents[0].len(), extents[1].len()];
        let mut iters: [Vec<Option<Name>>; 2] = [vec![None; ranks[0]], vec![None; ranks[1]]];
        let mut summed: Vec<Name> = Vec::with_capacity(pairs.len());
        for pair in pairs {
            let [first, second] = positions(pair, ranks, [one, two], 33)?;
            if iters[0][first].is_some() || iters[1][second].is_some() {
                return Err(malformed(Code::E0205, 33, pair.span, "a dimension is contracted twice"));
            }
            let (a, b) = (&extents[0][first], &extents[1][second]);
            if !self.sizes.equal(a, b) {
                let message = format!("the contracted dimensions have different sizes: {a} and {b}");
                let error = malformed(Code::E0243, 33, pair.span, message)
                    .also(one.span, format!("dimension {} of `{}`: {a}", first + 1, one.it))
                    .also(two.span, format!("dimension {} of `{}`: {b}", second + 1, two.it));
                return Err(Box::new(error));
            }
            let name = self.names.summed(if real { "k" } else { "s" }, &self.sizes);
            summed.push(name);
            (iters[0][first], iters[1][second]) = (Some(name), Some(name));
        }
        let rest = ranks[0] + ranks[1] - 2 * pairs.len();
        if rest > MAX_RANK {
            return Err(malformed(
                Code::E0213,
                33,
                one.span,
                format!("the result has {rest} dimensions; there can be {MAX_RANK}"),
            ));
        }
        let mut free = self.names.generated(rest, &self.sizes).into_iter();
        let order: Vec<Name> = {
            let mut order = Vec::with_capacity(rest);
            for iter in iters.iter_mut().flatten().filter(|iter| iter.is_none()) {
                *iter = free.next();
                order.extend(*iter);
            }
            order.extend(summed.iter().copied());
            order
        };
        let iters = iters.map(|list| list.into_iter().flatten().collect::<Vec<Name>>());
        let operands = vec![self.instance(one, &found[0], &iters[0]), self.instance(two, &found[1], &iters[1])];
        let Right { value, dims, elem, .. } = self.joint(operands, Some(Binary::Mul), 33, Vec::new())?;
        let mut by_name: FxHashMap<Name, Dim> = dims.into_iter().map(|dim| (dim.iter, dim)).collect();
        let mut dims: Vec<Dim> = order.iter().filter_map(|iter| by_name.remove(iter)).collect();
        if real {
            return Ok((Right { value, dims, elem, contract: true }, rest));
        }
        let sums = dims.split_off(rest.min(dims.len())).into_iter().map(|dim| (dim.iter, dim.extent)).collect();
        let value = self.values.add(Node::Sum(sums, value));
        self.shapes.entry(value).or_insert_with(|| dims.iter().map(|dim| dim.extent.clone()).collect());
        Ok((Right { value, dims, elem, contract: false }, rest))
    }

    fn outer(&mut self, lookup: &dyn Fn(&Id) -> Evaluated<Meaning>, operands: &[Id], by: u8) -> Evaluated<Right> {
        let mut found = Vec::with_capacity(operands.len());
        for id in operands {
            let one = self.resolve(lookup, id)?;
            found.push((id, self.extents(&one).len(), one));
        }
        let rank: usize = found.iter().map(|(_, rank, _)| rank).sum();
        if rank > MAX_RANK {
            let message = format!("the result has {rank} dimensions; there can be {MAX_RANK}");
            return Err(malformed(Code::E0213, by, operands[0].span, message));
        }
        let iters = self.names.generated(rank, &self.sizes);
        let mut list = Vec::with_capacity(found.len());
        let mut at = 0;
        for (id, rank, one) in &found {
            list.push(self.instance(id, one, &iters[at..at + rank]));
            at += rank;
        }
        let elem = self.one_type(&list)?;
        let values: Vec<ValueId> = list.iter().map(|operand| operand.value).collect();
        let mut parts: Vec<Vec<Dim>> = Vec::with_capacity(list.len());
        for operand in list {
            parts.push(solve(&self.sizes, by, &[operand.known])?);
        }
        // Eq. 34 multiplies from the right.
        let (mut value, mut dims) = (values[values.len() - 1], parts.pop().unwrap_or_default());
        for (&one, part) in values.iter().rev().skip(1).zip(parts.into_iter().rev()) {
            dims.splice(0..0, part);
            value = self.operation(Binary::Mul, one, value, &dims);
        }
        Ok(Right { value, dims, elem, contract: false })
    }

    // Assignments

    /// The list of all dimensions, for operations that write no list.
    fn all_of(&self, dims: &[Dim]) -> Vec<Written> {
        dims.iter().map(|dim| Written { entry: Ix::var(dim.iter), span: dim.span }).collect()
    }

    /// An assignment to a tensor in memory (Eq. 14, 16, 17, 18).
    fn real(
        &mut self,
        place: &Place<'_>,
        right: Right,
        to: &[Written],
        diagnostics: &mut Diagnostics,
    ) -> Evaluated<usize> {
        let name = place.target_name();
        let uses = place.target_uses(self, to)?;
        let is_new = self.named(name).is_none();
        let dims = solve(&self.sizes, place.by(), &[Known::Dims(right.dims), Known::Uses(uses)])?;
        let mut out: Vec<Name> = Vec::with_capacity(to.len());
        for written in to {
            let iters: Vec<Name> = names(&written.entry).into_iter().filter(|name| !self.sizes.has(*name)).collect();
            let fits = match iters.as_slice() {
                [] => true,
                [one] => written.entry.linear_in(*one).is_some_and(|(factor, _)| factor > 0) && !out.contains(one),
                _ => false,
            };
            if !fits {
                let message = format!("`{}` does not say which element of `{name}` is written, once", written.entry);
                let help = "a position of the target is an iterator of its own, perhaps with a factor and an offset, or a number";
                return Err(Box::new(malformed(Code::E0244, place.by(), written.span, message).help(help)));
            }
            out.extend(iters);
        }
        let old = Node::Element(name, to.iter().map(|written| written.entry.clone()).collect());
        let (begin, value) = self.begin(&old, right.value, right.contract);
        let missing: Vec<&Dim> = dims.iter().filter(|dim| !out.contains(&dim.iter)).collect();
        if let (Begin::Write, Some(first)) = (begin, missing.first()) {
            let list: Vec<String> = missing.iter().map(|dim| format!("`{}`", dim.iter)).collect();
            let message = format!("the left side misses {}: each element is written more than once", list.join(", "));
            let error = malformed(Code::E0244, place.by(), place.span, message)
                .also(first.span, format!("`{}` is used here", first.iter))
                .help(format!("`add({name}, …)` with `{name}` at the iterators of the left side sums; `contract` does so from zero"));
            return Err(Box::new(error));
        }
        if is_new {
            self.introduced(place, to, &dims, right.elem, diagnostics)?;
        }
        let elem = self.named(name).map(|at| self.tensors[at].elem);
        if elem.is_some_and(|elem| elem != right.elem) {
            let message = format!(
                "elements of `{name}` are {}, and the right side is {}",
                elem.map_or("", ElemType::name),
                right.elem
            );
            return Err(Box::new(Diagnostic::error(Code::E0232, place.span, message)));
        }
        let mut iterators: Vec<(Name, Ix)> = Vec::with_capacity(dims.len());
        let extent = |iter: Name| dims.iter().find(|dim| dim.iter == iter).map(|dim| (iter, dim.extent.clone()));
        iterators.extend(out.iter().filter_map(|iter| extent(*iter)));
        iterators.extend(missing.iter().map(|dim| (dim.iter, dim.extent.clone())));
        let assignment = Assignment {
            id: self.unique(place.id.it),
            target: name,
            out: to.iter().map(|written| written.entry.clone()).collect(),
            iterators,
            begin,
            value,
            init: false,
            span: place.span,
        };
        self.assignments.push(assignment);
        Ok(self.assignments.len() - 1)
    }

    /// What becomes of the old value, and the right side without it.
    fn begin(&self, old: &Node, value: ValueId, contract: bool) -> (Begin, ValueId) {
        if contract {
            return (Begin::Contract, value);
        }
        if let Node::Op(op, one, two) = self.values.get(value) {
            let is_old = |id: &ValueId| self.values.get(*id) == old;
            let begin = |op, negated| Begin::Accumulate { op, negated };
            match op {
                Binary::Add if is_old(one) => return (begin(ReduceOp::Sum, false), *two),
                Binary::Add if is_old(two) => return (begin(ReduceOp::Sum, false), *one),
                Binary::Sub if is_old(one) => return (begin(ReduceOp::Sum, true), *two),
                Binary::Mul if is_old(one) => return (begin(ReduceOp::Prod, false), *two),
                Binary::Mul if is_old(two) => return (begin(ReduceOp::Prod, false), *one),
                _ => {}
            }
        }
        (Begin::Write, value)
    }

    /// A tensor that was not introduced before it is written, with the shape of the right side.
    fn introduced(
        &mut self,
        place: &Place<'_>,
        to: &[Written],
        dims: &[Dim],
        elem: ElemType,
        diagnostics: &mut Diagnostics,
    ) -> Evaluated<()> {
        let name = place.target_name();
        let mut shape = Vec::with_capacity(to.len());
        for written in to {
            let dim = written.entry.as_var().and_then(|iter| dims.iter().find(|dim| dim.iter == iter));
            let Some(dim) = dim else {
                let message = format!("the shape of `{name}` cannot be inferred from `{}`", written.entry);
                let error = malformed(Code::E0243, place.by(), written.span, message);
                return Err(Box::new(error.help(format!("introduce it first: `{name} = tensor([..])`"))));
            };
            if dim.extent.as_constant().is_some_and(|extent| extent < 0) {
                let message = format!("the range of `{}` has {} values", dim.iter, dim.extent);
                return Err(Box::new(
                    malformed(Code::E0243, place.by(), written.span, message).label(dim.source.to_string()),
                ));
            }
            shape.push(dim.extent.clone());
        }
        let listed: Vec<String> = shape.iter().map(Ix::to_string).collect();
        let message = format!("`{name}` is introduced here, with the shape [{}]", listed.join(", "));
        let help = format!("`{name} = tensor([{}])` says so", listed.join(", "));
        diagnostics
            .push(Diagnostic::warning(Code::W0307, place.id.span, message).rule(crate::rules::equation(17)).help(help));
        self.add_tensor(Tensor { name, elem, shape, span: place.id.span });
        Ok(())
    }
}

/// Where a statement stands and what it is called.
struct Place<'a> {
    id: &'a Id,
    target: Option<&'a Id>,
    span: Span,
}

impl Place<'_> {
    fn by(&self) -> u8 {
        if self.target.is_some() { 18 } else { 17 }
    }

    fn target_name(&self) -> Name {
        self.target.unwrap_or(self.id).it
    }

    /// The positions of the target, if it is known.
    fn target_uses(&self, tensors: &Tensors, to: &[Written]) -> Evaluated<Vec<Use>> {
        let name = self.target_name();
        let Some(at) = tensors.named(name) else {
            let Some(target) = self.target else { return Ok(Vec::new()) };
            let error = malformed(Code::E0201, 18, target.span, format!("`{name}` has not been introduced"));
            return Err(Box::new(error.help(format!("introduce it first: `{name} = tensor([..])`"))));
        };
        let Tensor { shape, span, .. } = &tensors.tensors[at];
        if shape.len() != to.len() {
            let message = format!("`{name}` has {}, and the left side {}", dimensions(shape.len()), to.len());
            let error = malformed(Code::E0209, self.by(), self.span, message);
            return Err(Box::new(error.also(*span, "introduced here")));
        }
        Ok(uses(name, shape, to, Some(self.by())))
    }
}

fn uses(tensor: Name, shape: &[Ix], written: &[Written], target: Option<u8>) -> Vec<Use> {
    let one = |(at, (size, written)): (usize, (&Ix, &Written))| Use {
        entry: written.entry.clone(),
        size: size.clone(),
        span: written.span,
        source: Source { tensor, position: at + 1 },
        written: target,
    };
    shape.iter().zip(written).enumerate().map(one).collect()
}

/// Two positions, from 0.
fn positions(pair: &At<[i64; 2]>, ranks: [usize; 2], ids: [&Id; 2], by: u8) -> Evaluated<[usize; 2]> {
    let mut found = [0; 2];
    for side in 0..2 {
        let (position, rank, id) = (pair.it[side], ranks[side], ids[side]);
        found[side] = match usize::try_from(position) {
            Ok(at) if (1..=rank).contains(&at) => at - 1,
            _ => {
                let message = format!("`{}` has {}, and no dimension {position}", id.it, dimensions(rank));
                return Err(Box::new(malformed(Code::E0204, by, pair.span, message).label("positions count from 1")));
            }
        };
    }
    Ok(found)
}

fn dimensions(count: usize) -> String {
    if count == 1 { "1 dimension".into() } else { format!("{count} dimensions") }
}
