//! Operands: what an identifier stands for, with the iterators that it is given (where-clauses of Eq. 14 and 15).

use certen_core::{Binary, ElemType};
use certen_index::Ix;
use certen_syntax::{Code, Diagnostic, Name, Span};
use rustc_hash::FxHashSet;

use super::{Kind, Right, Tensors, Virtual, dimensions};
use crate::assignment::{Node, Tensor, ValueId};
use crate::ast::{At, Id, Iters};
use crate::ranges::{Dim, Evidence, Source, Use, names, solve};
use crate::rules::{Evaluated, malformed};

/// An operand with its iterators.
pub(super) struct Operand {
    pub value: ValueId,
    pub known: Evidence,
    pub elem: ElemType,
    pub id: Id,
}

/// An entry of the list of iterators of a target.
pub(super) struct WrittenIters {
    pub entry: Ix,
    pub span: Span,
}

impl Tensors {
    /// The tensor that an operand stands for, or the virtual tensor.
    pub(super) fn resolve(
        &self,
        lookup: &dyn Fn(&Id) -> Evaluated<Kind>,
        id: &Id,
    ) -> Evaluated<Result<usize, Virtual>> {
        Ok(match lookup(id)? {
            Kind::Tensor(at) => Ok(at),
            Kind::Virtual(found) => Err(found),
            Kind::Real(at) => match self.named(self.assignments[at].target) {
                Some(at) => Ok(at),
                None => return Err(Box::new(Diagnostic::error(Code::E0201, id.span, "this tensor is gone"))),
            },
        })
    }

    /// An operand with its list of iterators: the where-clauses of Eq. 14 and 15.
    pub(super) fn operand(
        &mut self,
        lookup: &dyn Fn(&Id) -> Evaluated<Kind>,
        id: &Id,
        list: Option<&Iters>,
        by: u8,
    ) -> Evaluated<Operand> {
        let found = self.resolve(lookup, id)?;
        match (found, list) {
            (Err(found), None) => {
                Ok(Operand { value: found.value, known: Evidence::Dims(found.dims), elem: found.elem, id: *id })
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
                Ok(Operand { value, known: Evidence::Dims(Vec::new()), elem, id: *id })
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
                    let message = format!("`{name}` has {}, and the list {}", dimensions(shape.len()), list.it.len());
                    return Err(Box::new(malformed(Code::E0242, by, list.span, message).also(span, "introduced here")));
                }
                let written = self.written(list);
                let entries = written.iter().map(|written| written.entry.clone()).collect();
                let value = self.values.add(Node::Element(name, entries));
                let known = Evidence::Uses(uses(name, &shape, &written, None));
                Ok(Operand { value, known, elem, id: *id })
            }
        }
    }

    /// A list of iterators, under the names that they have here.
    pub(super) fn written(&mut self, list: &Iters) -> Vec<WrittenIters> {
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
            WrittenIters { entry: ix, span: entry.span }
        };
        list.it.iter().map(|one| entry(self, one)).collect()
    }

    /// The extents of an operand, in the order of its dimensions.
    pub(super) fn extents(&self, found: &Result<usize, Virtual>) -> Vec<Ix> {
        match found {
            Ok(at) => self.tensors[*at].shape.clone(),
            Err(found) => found.dims.iter().map(|dim| dim.extent.clone()).collect(),
        }
    }

    /// An operand of an operation without lists: its dimensions get these iterators.
    pub(super) fn instance(&mut self, id: &Id, found: &Result<usize, Virtual>, iters: &[Name]) -> Operand {
        match found {
            Ok(at) => {
                let Tensor { name, shape, elem, .. } = self.tensors[*at].clone();
                let written: Vec<WrittenIters> =
                    iters.iter().map(|&iter| WrittenIters { entry: Ix::var(iter), span: id.span }).collect();
                let entries = written.iter().map(|written| written.entry.clone()).collect();
                let value = self.values.add(Node::Element(name, entries));
                Operand { value, known: Evidence::Uses(uses(name, &shape, &written, None)), elem, id: *id }
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
                Operand { value, known: Evidence::Dims(dims.collect()), elem: found.elem, id: *id }
            }
        }
    }

    /// A right side with other names for some iterators, all at once.
    pub(super) fn rename(&mut self, value: ValueId, map: Vec<(Name, Name)>) -> ValueId {
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
    pub(super) fn one_type(&self, operands: &[Operand]) -> Evaluated<ElemType> {
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

    pub(super) fn operation(&mut self, op: Binary, one: ValueId, two: ValueId, dims: &[Dim]) -> ValueId {
        let value = self.values.add(Node::Op(op, one, two));
        self.shapes.entry(value).or_insert_with(|| dims.iter().map(|dim| dim.extent.clone()).collect());
        value
    }

    /// Operands with lists, and the ranges of their iterators.
    pub(super) fn joint(
        &mut self,
        operands: Vec<Operand>,
        op: Option<Binary>,
        by: u8,
        target: Vec<Use>,
    ) -> Evaluated<Right> {
        let elem = self.one_type(&operands)?;
        let values: Vec<ValueId> = operands.iter().map(|operand| operand.value).collect();
        let mut known: Vec<Evidence> = operands.into_iter().map(|operand| operand.known).collect();
        let own: FxHashSet<Name> = known.iter().flat_map(|known| known.iterators(&self.sizes)).collect();
        known.push(Evidence::Uses(target));
        let dims = solve(&self.sizes, by, &known)?;
        let value = match (op, values.as_slice()) {
            (Some(op), [one, two]) => self.operation(op, *one, *two, &dims[..own.len().min(dims.len())]),
            _ => values[0],
        };
        Ok(Right { value, dims, elem, contract: false })
    }
}

pub(super) fn uses(tensor: Name, shape: &[Ix], written: &[WrittenIters], target: Option<u8>) -> Vec<Use> {
    let one = |(at, (size, written)): (usize, (&Ix, &WrittenIters))| Use {
        entry: written.entry.clone(),
        size: size.clone(),
        span: written.span,
        source: Source { tensor, position: at + 1 },
        written: target,
    };
    shape.iter().zip(written).enumerate().map(one).collect()
}
