//! Assignments to tensors in memory (Eq. 14, 16, 17, 18): which element is written, and what becomes of its old value.

use certen_core::{Binary, ElemType, ReduceOp};
use certen_index::Ix;
use certen_syntax::{Code, Diagnostic, Diagnostics, Name, Span};

use super::operands::{WrittenIters, uses};
use super::{MOST_PARTS, Right, Tensors, dimensions};
use crate::assignment::{Assignment, Begin, Node, Tensor, ValueId};
use crate::ast::Id;
use crate::ranges::{Dim, Evidence, Use, names, solve};
use crate::rules::{Evaluated, malformed};

impl Tensors {
    /// The list of all dimensions, for operations that write no list.
    pub(super) fn all_of(&self, dims: &[Dim]) -> Vec<WrittenIters> {
        dims.iter().map(|dim| WrittenIters { entry: Ix::var(dim.iter), span: dim.span }).collect()
    }

    /// An assignment to a tensor in memory (Eq. 14, 16, 17, 18).
    pub(super) fn real(
        &mut self,
        place: &AssignedPlace<'_>,
        right: Right,
        to: &[WrittenIters],
        diagnostics: &mut Diagnostics,
    ) -> Evaluated<usize> {
        let name = place.target_name();
        let weight = self.weight(right.value);
        if weight > MOST_PARTS {
            let message = "this right side is too large: a virtual tensor is computed again wherever it is used";
            let error = Diagnostic::error(Code::E0703, place.span, message);
            let error = error.note(format!("written out, it has more than {MOST_PARTS} operations and operands"));
            return Err(Box::new(error.help("assign parts of it to tensors: without `v`, a value is computed once")));
        }
        let uses = place.target_uses(self, to)?;
        let is_new = self.named(name).is_none();
        let dims = solve(&self.sizes, place.by(), &[Evidence::Dims(right.dims), Evidence::Uses(uses)])?;
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
                return Err(Box::new(Diagnostic::error(Code::E0244, written.span, message).help(help)));
            }
            out.extend(iters);
        }
        let old = Node::Element(name, to.iter().map(|written| written.entry.clone()).collect());
        let (begin, value) = self.begin(&old, right.value, right.contract);
        let missing: Vec<&Dim> = dims.iter().filter(|dim| !out.contains(&dim.iter)).collect();
        if let (Begin::Write, Some(first)) = (begin, missing.first()) {
            let list: Vec<String> = missing.iter().map(|dim| format!("`{}`", dim.iter)).collect();
            let message = format!("the left side misses {}: each element is written more than once", list.join(", "));
            let error = Diagnostic::error(Code::E0244, place.span, message)
                .also(first.span, format!("`{}` is used here", first.iter))
                .help(format!("`add({name}, …)` with `{name}` at the iterators of the left side sums; `contract` does so from zero"));
            return Err(Box::new(error));
        }
        if is_new && right.contract {
            return Err(self.not_introduced(place, to, &dims));
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

    /// How many parts a right side has when it is written out.
    fn weight(&mut self, value: ValueId) -> u64 {
        for at in self.values.all().skip(self.weights.len()) {
            let of = |part: &ValueId| self.weights.get(part.index()).copied().unwrap_or(0);
            let parts = match self.values.get(at) {
                Node::Element(..) | Node::Number(_) => 0,
                Node::Op(_, one, two) => of(one).saturating_add(of(two)),
                Node::Sum(_, part) => of(part),
            };
            self.weights.push(parts.saturating_add(1));
        }
        self.weights.get(value.index()).copied().unwrap_or(u64::MAX)
    }

    /// What becomes of the old value, and the right side without it.
    pub(super) fn begin(&self, old: &Node, value: ValueId, contract: bool) -> (Begin, ValueId) {
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

    /// A contraction names the dimensions that it leaves out by their positions: which ones are left is not written
    /// down, so that a slip in a position would change the shape of the result and go unnoticed.
    fn not_introduced(&self, place: &AssignedPlace<'_>, to: &[WrittenIters], dims: &[Dim]) -> Box<Diagnostic> {
        let name = place.target_name();
        let extent = |written: &WrittenIters| dims.iter().find(|dim| written.entry.as_var() == Some(dim.iter));
        let shape: Vec<String> = to.iter().filter_map(extent).map(|dim| dim.extent.to_string()).collect();
        let message =
            format!("`{name}` has not been introduced, and nothing says which shape this contraction should have");
        let error = malformed(Code::E0243, 17, place.id.span, message);
        let error = error.note(format!("as it is written, it has the shape [{}]", shape.join(", ")));
        Box::new(error.help(format!("introduce it with the shape that is meant: `{name} = tensor([..])`")))
    }

    /// A tensor that was not introduced before it is written, with the shape of the right side.
    pub(super) fn introduced(
        &mut self,
        place: &AssignedPlace<'_>,
        to: &[WrittenIters],
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
pub(crate) struct AssignedPlace<'a> {
    pub id: &'a Id,
    /// The tensor after `@`.
    pub target: Option<&'a Id>,
    pub span: Span,
}

impl AssignedPlace<'_> {
    fn by(&self) -> u8 {
        if self.target.is_some() { 18 } else { 17 }
    }

    fn target_name(&self) -> Name {
        self.target.unwrap_or(self.id).it
    }

    /// The positions of the target, if it is known.
    pub(super) fn target_uses(&self, tensors: &Tensors, to: &[WrittenIters]) -> Evaluated<Vec<Use>> {
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
