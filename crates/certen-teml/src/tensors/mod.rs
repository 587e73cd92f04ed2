//! Tensor expressions: E_t and P_stmt of Fig. 8, and the operations of Sec. 4.2, which are made of them.
//!
//! An identifier stands for a tensor, whose iterators are not given yet (ε), or for a virtual tensor, whose iterators
//! are; one that names a real statement stands, as an operand, for the tensor that the statement writes. The
//! where-clauses of Eq. 14 and 15 follow: a list of iterators is given just where there is none yet. The operations of
//! Sec. 4.2 write no lists: they give the dimensions of their operands the iterators `i1`, `i2`, … in order, also where
//! a virtual operand had others.
//!
//! A right side is a tree in an arena in which equal trees are one; a virtual tensor that is used again, or with other
//! iterators again, costs nothing. So a program of any depth takes time and memory in proportion to its length.

mod assigned;
mod names;
mod operands;
mod operations;

use certen_core::{ElemType, Literal, MAX_RANK};
use certen_index::Ix;
use certen_syntax::{Code, Diagnostic, Diagnostics, Name, Span};
use rustc_hash::{FxHashMap, FxHashSet};

pub(crate) use self::assigned::AssignedPlace;
pub(crate) use self::names::IterNames;
use crate::assignment::{Assignment, Begin, Node, Tensor, ValueId, Values};
use crate::ast::{At, Id, Number, TensorExpr};
use crate::ranges::{Dim, Sizes};
use crate::rules::{Evaluated, malformed};

/// More parts of right sides are not made.
const MOST_VALUES: usize = 8_000_000;

/// A right side is written out in loops, and a virtual tensor in it as often as it is used: not more than so many
/// parts.
const MOST_PARTS: u64 = 300_000;

/// What a tensor expression is.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// A tensor without iterators, or a scalar, by its number.
    Tensor(usize),
    /// A virtual tensor.
    Virtual(Virtual),
    /// A real statement, by its number.
    Real(usize),
}

/// A tensor expression whose elements are not in memory.
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
    names: IterNames,
    /// How many parts each right side has when it is written out.
    weights: Vec<u64>,
    renamings: FxHashMap<Vec<(Name, Name)>, u32>,
    renamed: FxHashMap<(ValueId, u32), ValueId>,
    ids: FxHashMap<Name, u64>,
}

/// What is to be assigned.
pub(super) struct Right {
    pub value: ValueId,
    pub dims: Vec<Dim>,
    pub elem: ElemType,
    pub contract: bool,
}

impl Tensors {
    pub(crate) fn new(sizes: Sizes, names: IterNames) -> Tensors {
        Tensors {
            values: Values::new(),
            tensors: Vec::new(),
            assignments: Vec::new(),
            sizes,
            by_name: FxHashMap::default(),
            scalars: FxHashSet::default(),
            shapes: FxHashMap::default(),
            names,
            weights: Vec::new(),
            renamings: FxHashMap::default(),
            renamed: FxHashMap::default(),
            ids: FxHashMap::default(),
        }
    }

    /// The tensor of this name.
    pub(crate) fn named(&self, name: Name) -> Option<usize> {
        self.by_name.get(&name).copied()
    }

    /// Whether a name is that of a tensor or a real statement.
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
        lookup: &dyn Fn(&Id) -> Evaluated<Kind>,
        place: &AssignedPlace<'_>,
        expr: &TensorExpr,
        elem: ElemType,
        diagnostics: &mut Diagnostics,
    ) -> Evaluated<Kind> {
        let &AssignedPlace { id, target, span } = place;
        if self.values.len() > MOST_VALUES {
            return Err(Box::new(Diagnostic::error(Code::E0703, span, "the program has too many operations")));
        }
        let by = |virtual_: u8, real_: u8, real: bool| if real { real_ } else { virtual_ };
        let (right, to) = match expr {
            TensorExpr::New { elem: stated, shape } => {
                return self.introduce(id, stated.unwrap_or(elem), shape.as_deref()).map(Kind::Tensor);
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
                let right = self.transpose(lookup, operand, pairs, *real)?;
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
            Some(to) => self.real(place, right, &to, diagnostics).map(Kind::Real),
            None => {
                if let Some(target) = target {
                    let message = "a virtual tensor is written nowhere, so there is nothing for `@` to name";
                    let error = malformed(Code::E0242, 18, target.span, message);
                    return Err(Box::new(error.help("an operation without `v` writes a tensor")));
                }
                Ok(Kind::Virtual(Virtual { value: right.value, dims: right.dims, elem: right.elem }))
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
}

fn dimensions(count: usize) -> String {
    if count == 1 { "1 dimension".into() } else { format!("{count} dimensions") }
}
