//! Sums of products: nests with one sum, over one loop or several, and nothing but loops around it.

use certen_core::{ElemType, Parameter, Range, ReduceOp, Term, TermId};
use certen_index::Ix;
use certen_loops::{FpMode, LoopProgram, Site, Stmt, Target, Use};
use certen_syntax::Name;

use super::steps::Steps;
use super::{Form, Machine, Planned, outside};
use crate::primitives::fma::adds_product;
use crate::primitives::stream::is_only_stored;

/// Sums of fewer terms are short.
const SHORT: i64 = 4;

/// An output of so many bytes is larger than the caches, whatever a machine says of its third one; and the bytes of a line.
pub const STREAMED_BYTES: i64 = 64 << 20;
pub(super) const LINE_BYTES: i64 = 64;

/// Bytes of a page of memory.
pub(super) const PAGE_BYTES: i64 = 4096;

/// What it costs to store an element, in tenths of an operation: with its neighbours in a vector, beside the element of the row
/// before, anywhere, in another page than its neighbours, or where divisions say.
pub(super) const STORED_ALONG: i64 = 5;
pub(super) const STORED_ACROSS: i64 = 20;
pub(super) const STORED_APART: i64 = 40;
pub(super) const STORED_FAR: i64 = 200;
pub(super) const STORED_PERMUTED: i64 = 160;

/// What it costs to pack an element that has no neighbour to be moved with, in tenths of an operation: if its neighbours in
/// memory are in other panels, or in the same one; or if it is picked out of a window.
pub(super) const PACKED_APART: i64 = 30;
pub(super) const PACKED_ACROSS: i64 = 50;
pub(super) const PACKED_PICKED: i64 = 80;

/// An operand is packed once, before loops that it does not depend on, if it has no more bytes than this.
pub(super) const MOST_PACKED: i64 = 64 << 20;

/// A nest that sums products.
pub(super) struct SumNest<'a> {
    nest: Name,
    /// What may be assumed of its floats.
    pub fp: FpMode,
    /// The loops of the result, outermost first.
    pub free: Vec<(Name, &'a Range)>,
    /// The loops of the sum.
    pub summed: Vec<(Name, &'a Range)>,
    /// Whether these are sums of sums, which are to be one.
    pub joins: bool,
    /// The indices of the result.
    pub at: &'a [Ix],
    /// Whether the result is stored, not combined with what is there.
    pub overwrites: bool,
    /// What is read in the sum.
    pub reads: Vec<(Name, &'a [Ix])>,
    /// What the innermost sum is multiplied with, in how many loops of sums.
    pub scales: Vec<(Name, &'a [Ix], usize)>,
    /// The local in which the outermost sum is made.
    pub local: Name,
    /// The index along which the elements of the result lie side by side.
    pub lanes: Option<Name>,
    pub elem: ElemType,
    /// The result, if it is to be stored past the caches: an output that is larger than they are and never read, in rows of
    /// whole cache lines.
    pub streamed: Option<Name>,
    /// Whether products are added in it.
    adds_products: bool,
}

impl<'a> SumNest<'a> {
    pub fn of(program: &'a LoopProgram, nest: Name, sites: &[Site<'a>], fp: FpMode) -> Option<SumNest<'a>> {
        let outside = outside(sites);
        // Buffers come and go between nests, and states change places.
        let is_other = |site: &Site<'_>| match site.stmt {
            Stmt::If { .. } => true,
            Stmt::Alloc(..) | Stmt::Swap(..) => site.loops().count() > outside,
            _ => false,
        };
        if sites.iter().any(is_other) {
            return None;
        }
        let mut stores = sites.iter().filter(|site| site.stmt.element().is_some());
        let (store, None) = (stores.next()?, stores.next()) else { return None };
        let (result, at) = store.stmt.element()?;
        let overwrites = matches!(store.stmt, Stmt::Assign { op: None, .. });
        // Of sums inside each other, those around the innermost one add its result, or multiples of it.
        let local = |site: &Site<'_>| match site.stmt {
            Stmt::Assign { target: Target::Local(name), .. } => Some(*name),
            _ => None,
        };
        let locals: Vec<Name> = sites.iter().filter_map(local).collect();
        let is_local = |id: &TermId| matches!(program.terms.get(*id), Term::Ref(name, _) if locals.contains(name));
        let has_result = |value| program.terms.parts_first(value).iter().any(is_local);
        let sums = sites.iter().filter(|site| local(site).is_some());
        let (outer, inner): (Vec<_>, Vec<_>) = sums.partition(|site| site.stmt.value().is_some_and(has_result));
        let [sum] = inner.as_slice() else { return None };
        let is_sum = |site: &&Site<'_>| matches!(site.stmt, Stmt::Assign { op: Some(ReduceOp::Sum), .. });
        if !outer.iter().chain(&inner).all(is_sum) {
            return None;
        }
        let free: Vec<(Name, &Range)> = store.loops().skip(outside).collect();
        let summed: Vec<(Name, &Range)> = sum.loops().skip(outside + free.len()).collect();
        let begins_at_0 = |(_, range): &(Name, &Range)| range.lo.as_constant() == Some(0);
        if !free.iter().chain(&summed).all(begins_at_0) {
            return None;
        }
        if summed.is_empty() {
            return None;
        }
        let is_dense = |index: &Name| at.last()?.linear_in(*index).filter(|(step, _)| *step == 1);
        let lanes = free.iter().map(|(index, _)| *index).find(|index| is_dense(index).is_some());
        let elem = program.terms.ty(sum.stmt.value()?).elem;
        let reads_of = |site: &Site<'a>| {
            let uses = site.stmt.uses(&program.terms).into_iter();
            let reads = uses.filter(|(_, indices, how)| *how == Use::Read && !indices.is_empty());
            reads.map(|(name, indices, _)| (name, indices)).collect::<Vec<_>>()
        };
        let reads = reads_of(sum);
        let scales = outer.iter().flat_map(|site| {
            let depth = site.loops().count() - outside - free.len();
            reads_of(site).into_iter().map(move |(name, at)| (name, at, depth))
        });
        let scales = scales.collect();
        let is_plain = |site: &&Site<'_>| site.stmt.value().is_some_and(|value| is_local(&value));
        let joins = fp != FpMode::Strict && !outer.is_empty() && outer.iter().all(is_plain);
        let outermost = outer.iter().chain(&inner).min_by_key(|site| site.loops().count());
        let local = outermost.and_then(|site| local(site))?;
        let adds_products = sites.iter().any(|site| adds_product(&program.terms, site.stmt));
        let streamed = Some(result).filter(|result| overwrites && is_streamed(program, *result));
        Some(SumNest {
            nest,
            fp,
            free,
            summed,
            joins,
            at,
            overwrites,
            reads,
            scales,
            local,
            lanes,
            elem,
            streamed,
            adds_products,
        })
    }

    /// Whether its loops have nothing in them but each other and the sum, once sums are joined.
    pub fn is_perfect(&self) -> bool {
        self.joins || self.summed.len() == 1
    }

    /// Which operands of the sum have an index.
    pub fn operands(&self, index: Name) -> Vec<bool> {
        self.reads.iter().map(|(_, at)| mentions(at, index) && self.is_summed(at)).collect()
    }

    /// Whether two dimensions of the result have different operands, so that one can be rows and the other lanes.
    pub fn has_rows(&self) -> bool {
        let all: Vec<Vec<bool>> = self.free.iter().map(|(index, _)| self.operands(*index)).collect();
        let apart =
            |a: &[bool], b: &[bool]| a.contains(&true) && b.contains(&true) && !a.iter().zip(b).any(|(a, b)| *a && *b);
        all.iter().any(|a| all.iter().any(|b| apart(a, b)))
    }

    /// How many iterations the loop over an index has, if that is a number.
    pub fn count(&self, index: Name) -> Option<i64> {
        self.free.iter().chain(&self.summed).find(|(own, _)| *own == index).and_then(|(_, range)| size(range))
    }

    /// The indices of all of its loops.
    pub fn loops(&self) -> impl Iterator<Item = Name> {
        self.free.iter().chain(&self.summed).map(|(index, _)| *index)
    }

    /// A schedule of these steps, with fused operations where they are allowed.
    pub fn planned(&self, mut steps: Steps, why: String) -> Planned {
        if self.fp != FpMode::Strict && self.adds_products {
            steps.fuse(self.nest.as_str());
        }
        Planned { nest: self.nest, steps: steps.text(), why, with: Vec::new(), form: Form::Nest }
    }

    /// Whether it is known to have so few terms that nothing is gained by keeping their sums at hand.
    pub fn is_short(&self) -> bool {
        self.terms().is_some_and(|terms| terms < SHORT)
    }

    /// How many terms it has, if that is a number.
    pub fn terms(&self) -> Option<i64> {
        self.summed.iter().try_fold(1i64, |product, (_, range)| product.checked_mul(size(range)?))
    }

    /// The first steps for it, whatever follows: sums of sums are one.
    pub fn steps(&self, machine: &Machine) -> Steps {
        let mut steps = Steps::new(self.nest, machine);
        for (index, _) in self.summed.iter().rev().skip(1).filter(|_| self.joins) {
            steps.add(format!("join_sums({})", steps.path(index)));
        }
        steps
    }

    /// The index of the lanes along which a window moves, if a nest is about one.
    pub fn window_lanes(&self) -> Option<Name> {
        let v = self.lanes.filter(|_| self.elem.is_float() && self.is_perfect())?;
        let mut windows = self.reads.iter().filter(|(_, at)| mentions(at, v)).peekable();
        windows.peek()?;
        let is_along = |at: &[Ix]| {
            let (last, others) = (at.last(), &at[..at.len() - 1]);
            last.and_then(|ix| ix.linear_in(v)).is_some_and(|(step, _)| step == 1) && !mentions(others, v)
        };
        windows.all(|(_, at)| self.is_window(at) && is_along(at)).then_some(v)
    }

    /// Whether the sum runs over an operand.
    pub fn is_summed(&self, at: &[Ix]) -> bool {
        self.summed.iter().any(|(index, _)| mentions(at, *index))
    }

    /// Whether an operand is read at a place that moves with the result and with the sum, as the image of a convolution is.
    pub fn is_window(&self, at: &[Ix]) -> bool {
        let moves = |ix: &Ix, loops: &[(Name, &Range)]| loops.iter().any(|(index, _)| ix.mentions(*index));
        at.iter().any(|ix| moves(ix, &self.free) && moves(ix, &self.summed))
    }

    /// The operands of the lanes that the sum runs over.
    pub fn panels(&self) -> impl Iterator<Item = &(Name, &'a [Ix])> {
        let has_lanes = |at: &[Ix]| self.lanes.is_some_and(|lanes| mentions(at, lanes));
        self.reads.iter().filter(move |(_, at)| has_lanes(at) && self.is_summed(at))
    }
}

/// Whether something is an output that is stored past the caches, and its rows are whole cache lines.
fn is_streamed(program: &LoopProgram, name: Name) -> bool {
    let output = program.outputs.iter().find(|output| output.name == name);
    output.is_some_and(|output| has_whole_lines(output) && is_large(program, output))
}

/// Whether no cache holds an output, and nothing reads it.
pub(super) fn is_large(program: &LoopProgram, output: &Parameter) -> bool {
    let bytes = output.ty.elem.bytes() as i64;
    let total = output.ty.shape.iter().try_fold(bytes, |total, size| total.checked_mul(size.as_constant()?));
    total.is_some_and(|total| total >= STREAMED_BYTES) && is_only_stored(program, output.name)
}

/// Whether the rows of an output are whole cache lines.
pub(super) fn has_whole_lines(output: &Parameter) -> bool {
    let bytes = output.ty.elem.bytes() as i64;
    output.ty.shape.last().and_then(Ix::as_constant).is_some_and(|size| size.saturating_mul(bytes) % LINE_BYTES == 0)
}

pub(super) fn mentions(at: &[Ix], index: Name) -> bool {
    at.iter().any(|ix| ix.mentions(index))
}

/// Whether the elements at these indices lie side by side along an index.
pub(super) fn is_along(at: &[Ix], index: Name) -> bool {
    at.split_last().is_some_and(|(last, others)| {
        last.linear_in(index).is_some_and(|(step, _)| step == 1) && !mentions(others, index)
    })
}

/// The number of iterations of a loop from 0, if it is a number.
pub(super) fn size(range: &Range) -> Option<i64> {
    range.hi.as_constant()
}
