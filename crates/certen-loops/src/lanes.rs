//! Lanes: which loops can run several iterations at a time, one in each lane of a vector, and how many.
//!
//! A value *varies* in a loop if it can differ between iterations: an element at an index that mentions the loop's, a
//! local of the loop, and what is computed from those. A loop has lanes if everything that varies is an element that lies
//! beside that of the next iteration or a few places from it, a number that grows with the index, or made of these by an
//! operation that vectors have; the loops inside run alike for all iterations. Both sides of a choice are computed, and one
//! is taken: they are in bounds by themselves (`Term::Choose` has no condition on indices).
//!
//! The loops that the compiler marks are chosen by this, and the C back end prints vectors where it says so; others stay
//! plain loops. Needs: iterations that are independent of each other, which the verifier proves. Guarantees: lanes make the
//! operations of each iteration in their order, so the bits stay; what is combined is so to the bit in any order.

use std::collections::{HashMap, HashSet};

use certen_core::{Binary, ElemType, Range, ReduceOp, TensorType, Term, TermId, Terms};
use certen_index::Ix;
use certen_math::{Function, Precision};
use certen_syntax::Name;

use crate::ir::{MAX_NESTING, Mode, Stmt, Target};
use crate::walk::{as_element, combined};

/// The longest and the shortest vectors that there are, in bytes.
const MAX_BYTES: i64 = 64;
const MIN_BYTES: i64 = 16;

/// How far from each other the elements of neighbouring lanes are at most.
pub const MAX_DISTANCE: i64 = 4;

/// So many operations pay for storing an element to a place of its own.
const PER_SCATTERED: usize = 3;

/// Buffers of more elements are not kept in lanes.
const MAX_ELEMENTS: i64 = 64;

/// Values of more terms than this are not computed in lanes.
const MAX_TERMS: usize = 2000;

/// The lanes of a loop.
#[derive(Clone, Debug)]
pub struct Lanes {
    /// The loop's index.
    pub index: Name,
    /// Bytes of the widest value that varies: all others have as many lanes as vectors of this.
    pub widest: usize,
    /// Locals from outside that the iterations combine into.
    pub combined: HashMap<Name, (ElemType, ReduceOp)>,
    /// Whether iterations may be made again: none reads what one of them writes.
    pub repeats: bool,
    /// Locals and small buffers of the loop: each lane has its own.
    own: HashSet<Name>,
}

impl Lanes {
    /// The lanes of a loop over an index; none if it has none. `ty` knows the types of buffers from outside.
    pub fn of<'a>(
        terms: &Terms,
        ty: impl Fn(Name) -> Option<&'a TensorType>,
        index: Name,
        body: &[Stmt],
    ) -> Option<Lanes> {
        let combined = combined(terms, body);
        let repeats = combined.is_empty();
        let lanes = Lanes { index, widest: 1, combined, repeats, own: HashSet::new() };
        let mut scan = Scan::new(terms, ty, lanes);
        scan.block(body, 0)?;
        let Scan { mut lanes, written, read, operations, scattered, .. } = scan;
        lanes.repeats &= written.is_disjoint(&read);
        (operations >= PER_SCATTERED * scattered).then_some(lanes)
    }

    /// The lanes in which a value is computed whose results are used one after the other; none if it has none, or is only
    /// loaded.
    pub fn of_value(terms: &Terms, index: Name, value: TermId) -> Option<Lanes> {
        if as_element(terms, value).is_some() || !matches!(terms.get(value), Term::Unary(..) | Term::Binary(..)) {
            return None;
        }
        let lanes = Lanes { index, widest: 1, combined: HashMap::new(), repeats: false, own: HashSet::new() };
        let mut scan = Scan::new(terms, |_| None, lanes);
        let varies = scan.value(value)?;
        varies.then_some(scan.lanes)
    }

    /// The most lanes that a loop is to have, on the machine with the longest vectors: a power of two; none if it has so
    /// few iterations that vectors do not pay. What is left over at the end is made one by one, or with some of those before
    /// once more.
    pub fn most(&self, range: &Range) -> Option<i64> {
        let longest = MAX_BYTES / self.widest as i64;
        let Some(trips) = range.hi.sub(&range.lo).ok().and_then(|trips| trips.as_constant()) else {
            return Some(longest);
        };
        let shortest = (MIN_BYTES / self.widest as i64).max(2);
        let candidates = std::iter::successors(Some(longest), |lanes| Some(lanes / 2));
        let steps = |lanes: i64| match self.repeats && trips >= lanes {
            true => trips / lanes + i64::from(trips % lanes > 0),
            false => trips / lanes + trips % lanes,
        };
        let best = candidates.take_while(|lanes| *lanes >= shortest).min_by_key(|lanes| steps(*lanes))?;
        (5 * steps(best) <= 3 * trips).then_some(best)
    }

    /// Whether an element or local is another one in each lane.
    pub fn varies(&self, name: Name, indices: &[Ix]) -> bool {
        self.own.contains(&name) || indices.iter().any(|ix| ix.mentions(self.index))
    }

    /// Whether a buffer is one that each lane has by itself.
    pub fn is_own(&self, name: Name) -> bool {
        self.own.contains(&name)
    }

    /// By how much an index that is used as a number grows from lane to lane, if always by the same.
    pub fn step(&self, ix: &Ix) -> Option<i64> {
        ix.linear_in(self.index).map(|(step, _)| step)
    }

    /// How far from each other the elements of neighbouring lanes are, if that is near.
    pub fn distance(&self, ty: &TensorType, indices: &[Ix]) -> Option<i64> {
        if indices.is_empty() || indices.len() != ty.rank() {
            return None;
        }
        let mut dimensions = indices.iter().zip(ty.shape.iter()).skip(1);
        let place = dimensions.try_fold(indices[0].clone(), |place, (ix, size)| place.mul(size)?.add(ix));
        let (distance, _) = place.ok()?.linear_in(self.index)?;
        let is_small = ty.elem.bytes() < 4;
        (distance == 1 || (!is_small && (2..=MAX_DISTANCE).contains(&distance))).then_some(distance)
    }
}

struct Scan<'a, F> {
    terms: &'a Terms,
    ty: F,
    lanes: Lanes,
    /// Buffers from outside.
    written: HashSet<Name>,
    read: HashSet<Name>,
    /// How many operations are made in lanes, and how many elements are stored that do not lie side by side.
    operations: usize,
    scattered: usize,
}

impl<'t, 'a, F: Fn(Name) -> Option<&'a TensorType>> Scan<'t, F> {
    fn new(terms: &'t Terms, ty: F, lanes: Lanes) -> Self {
        let (written, read) = (HashSet::new(), HashSet::new());
        Scan { terms, ty, lanes, written, read, operations: 0, scattered: 0 }
    }

    fn block(&mut self, block: &[Stmt], depth: usize) -> Option<()> {
        if depth > MAX_NESTING {
            return None;
        }
        let index = self.lanes.index;
        for stmt in block {
            match stmt {
                Stmt::Nest(_) => {}
                Stmt::Local { name, elem, init } => {
                    if let Some(value) = init {
                        self.value(*value)?;
                    }
                    self.lanes.own.insert(*name);
                    self.widen(*elem);
                }
                Stmt::Alloc(name, ty) => {
                    let sizes = ty.shape.iter().map(Ix::as_constant);
                    let count =
                        sizes.map(|size| size.filter(|size| *size > 0)).try_fold(1, |n: i64, s| n.checked_mul(s?));
                    count.filter(|count| *count <= MAX_ELEMENTS)?;
                    self.lanes.own.insert(*name);
                    self.widen(ty.elem);
                }
                Stmt::Free(name) => self.lanes.is_own(*name).then_some(())?,
                Stmt::Assign { target, op, value } => {
                    self.value(*value)?;
                    match target {
                        Target::Local(name) if self.lanes.combined.contains_key(name) => {}
                        Target::Local(name) if self.lanes.is_own(*name) => {}
                        Target::Local(_) => return None,
                        Target::Element(name, indices) if self.lanes.is_own(*name) => self.is_uniform(indices)?,
                        Target::Element(name, indices) => {
                            self.lanes.repeats &= op.is_none();
                            self.written.insert(*name);
                            let ty = (self.ty)(*name)?;
                            match self.lanes.distance(ty, indices)? {
                                1 => {}
                                _ if op.is_none() => self.scattered += 1,
                                _ => return None,
                            }
                        }
                    }
                    self.widen(self.terms.ty(*value).elem);
                }
                Stmt::For { range, mode: Mode::Serial, body, .. } => {
                    (!range.lo.mentions(index) && !range.hi.mentions(index)).then_some(())?;
                    self.block(body, depth + 1)?;
                }
                Stmt::If { cond, then, otherwise } => {
                    let mut names = Default::default();
                    cond.collect_names(&mut names);
                    (!names.contains(&index)).then_some(())?;
                    self.block(then, depth + 1)?;
                    self.block(otherwise, depth + 1)?;
                }
                _ => return None,
            }
        }
        Some(())
    }

    /// Whether an element is at the same place in all lanes.
    fn is_uniform(&self, indices: &[Ix]) -> Option<()> {
        (!indices.iter().any(|ix| ix.mentions(self.lanes.index))).then_some(())
    }

    fn widen(&mut self, elem: ElemType) {
        self.lanes.widest = self.lanes.widest.max(elem.bytes());
    }

    /// Whether a value varies; none if something that does is nothing that vectors have.
    fn value(&mut self, root: TermId) -> Option<bool> {
        let order = self.terms.parts_first(root);
        if order.len() > MAX_TERMS {
            return None;
        }
        let mut varying: HashSet<TermId> = HashSet::new();
        for id in order {
            let term = self.terms.get(id);
            let varies = match (as_element(self.terms, id), term) {
                (Some((name, _, indices)), _) if self.lanes.is_own(name) => {
                    self.is_uniform(indices)?;
                    true
                }
                (Some((name, ty, indices)), _) => {
                    self.read.insert(name);
                    let varies = self.lanes.varies(name, indices);
                    if varies {
                        self.lanes.distance(ty, indices)?;
                    }
                    varies
                }
                (None, Term::Index(ix, _)) => {
                    let varies = ix.mentions(self.lanes.index);
                    if varies {
                        self.lanes.step(ix)?;
                        // It is counted in 64 bits before it is converted.
                        self.widen(ElemType::I64);
                    }
                    varies
                }
                (None, _) => {
                    let varies = term.parts().iter().any(|part| varying.contains(part));
                    if varies {
                        self.operation(term)?;
                        self.operations += 1;
                    }
                    varies
                }
            };
            if varies {
                self.widen(self.terms.ty(id).elem);
                varying.insert(id);
            }
        }
        Some(varying.contains(&root))
    }

    /// Whether vectors have an operation.
    fn operation(&mut self, term: &Term) -> Option<()> {
        let elem = |id: &TermId| self.terms.ty(*id).elem;
        let has_vectors = match term {
            Term::Unary(op, a) if op.function().is_some() => self.function(op.function(), op.is_libm(), elem(a))?,
            Term::Binary(op, a, _) if op.function().is_some() => self.function(op.function(), op.is_libm(), elem(a))?,
            Term::Binary(Binary::FloorDiv | Binary::Mod, ..) => false,
            Term::Cast(to, from) => {
                // Converted by way of f64, as one by one.
                if elem(from).is_float() && !to.is_float() && *to != ElemType::Bool {
                    self.widen(ElemType::F64);
                }
                true
            }
            Term::Unary(..) | Term::Binary(..) | Term::Choose(..) | Term::Fma(..) => true,
            _ => false,
        };
        has_vectors.then_some(())
    }

    /// Whether vectors have a function of mathematics: if it is a recipe. It may compute in double precision.
    fn function(&mut self, function: Option<Function>, is_libm: bool, elem: ElemType) -> Option<bool> {
        let precision = if elem == ElemType::F32 { Precision::Single } else { Precision::Double };
        if function?.recipe(precision).working == Precision::Double {
            self.widen(ElemType::F64);
        }
        Some(!is_libm)
    }
}
