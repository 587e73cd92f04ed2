//! `einsum`: sums of products of arrays, in NumPy's notation and with its meaning.
//!
//! A [`Contraction`] is an einsum for operands of given shapes, with the order in which they are contracted: in one
//! nest of loops as it is written, in the order with the fewest operations (TeIL, Sec. 5; `certen_lift::pairwise`),
//! or along a path of NumPy's. [`Contraction::run`] computes it on arrays with any strides.
//!
//! Two tiers do the work. Most contractions are loops of Rust ([`Nest`]): nothing is compiled. Those that have no tiles
//! ([`Nest::is_tiled`]), and chains of small ones over a batch, are compiled once as many operations were made as that takes time for, all shapes of one form
//! together, or if a call is that large: [`Contraction::prepare`] makes a program of Core with symbolic sizes, which goes
//! along the road to native code; then other shapes use the same code. Operations are counted, never timed, so the same
//! calls always do the same. Both tiers make the same operations on each element in the same order
//! ([`FpMode::Fused`](crate::FpMode::Fused)): results have the same bits. Where there is no C compiler, the loops go on
//! serving. Indices that are never apart are one for both ([`Einsum::merged`]).
//!
//! ```
//! use certen::einsum::{Contraction, Order, Subscripts};
//! use certen::{Array, ElemType};
//!
//! let a = Array::from_vec(&[2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
//! let b = Array::from_vec(&[3], vec![1.0, 10.0, 100.0])?;
//! let subscripts = Subscripts::parse("ij,j->i", 2)?;
//! let product = Contraction::new(&subscripts, &[a.shape(), b.shape()], ElemType::F64, &Order::Best)?;
//! let mut result = Array::zeros(ElemType::F64, &product.output_shape())?;
//! product.prepare();
//! product.run(&[(&a).into(), (&b).into()], (&mut result).into(), None)?;
//! assert_eq!(result.as_slice::<f64>(), Some(&[321.0, 654.0][..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod compiled;
mod plan;
mod report;

use std::num::NonZeroUsize;
use std::sync::Arc;

use certen_core::ElemType;
use certen_dialects::einsum::{Axis, Einsum, Product};
pub use certen_dialects::einsum::{EinsumError, IndexName, Sub, Subscripts};
use certen_runtime::{
    Array, ArrayError, Cpu, Nest, RuntimeError, View, ViewMut, available_bytes, default_threads, with_threads,
};
use certen_syntax::{Code, Diagnostic};

use self::compiled::Compiled;
use self::plan::Plan;
use crate::failure::Failure;
use crate::pipeline::Module;

/// In which order operands are contracted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Order {
    /// All at once, in one nest of loops. Floats are rounded as this nest rounds them.
    AsWritten,
    /// In pairs, with the fewest multiplications and additions; with very many operands, as [`Order::Greedy`].
    Best,
    /// In pairs, the cheapest product first.
    Greedy,
    /// As [`Order::Best`], but no intermediate result has more elements than this: where one would, all that is left is
    /// contracted at once.
    BestWithin(usize),
    /// As [`Order::Greedy`], with the same limit.
    GreedyWithin(usize),
    /// As NumPy's `einsum_path` says: each step takes operands by their positions, and puts its result after the
    /// others.
    Path(Vec<Vec<usize>>),
}

/// An einsum of operands of known shapes, in a certain order.
///
/// It can be used by several threads at once.
#[derive(Debug)]
pub struct Contraction {
    /// As the user wrote it.
    written: Einsum,
    /// With indices that are never apart as one, and for each of these those that it stands for.
    einsum: Einsum,
    groups: Vec<Vec<usize>>,
    plan: Plan,
    elem: ElemType,
    /// The loops of each step.
    nests: Vec<Nest>,
    /// How many times the innermost loops are run through.
    work: u64,
    /// What contractions of this form share; none if compiling one is of no use.
    compiled: Option<Arc<Compiled>>,
}

/// Intermediate results of fewer bytes are not compared with what the machine has free: asking takes longer than using.
const SMALL: u128 = 1 << 26;

/// To copy an element takes about as long as so many operations of native code: where more would be copied than
/// computed, the loops, which need no copies, are better.
const COPY: u64 = 8;

/// Sums of more terms take longer than to store them anywhere.
const LASTING_SUM: usize = 512;

/// Fewer elements than these bytes have are no row.
const ROW_BYTES: usize = 32;

/// Nests of more loops are not compiled: proofs about them and their C code take seconds.
const DEEPEST: usize = 12;

impl Contraction {
    /// Finds what subscripts mean for operands of these shapes, and an order for them.
    ///
    /// # Errors
    /// Where NumPy raises a `ValueError`; and if the path is not one.
    pub fn new(
        subscripts: &Subscripts,
        shapes: &[&[usize]],
        elem: ElemType,
        order: &Order,
    ) -> Result<Contraction, EinsumError> {
        if !elem.has_arithmetic() {
            return Err(EinsumError::Element(elem));
        }
        Contraction::of(Einsum::new(subscripts, shapes)?, elem, order)
    }

    fn of(written: Einsum, elem: ElemType, order: &Order) -> Result<Contraction, EinsumError> {
        let (einsum, groups) = written.merged();
        let plan = Plan::new(&einsum, order)?;
        let mut nests = Vec::with_capacity(plan.steps.len());
        let (mut work, mut in_rows) = (0u64, 0u64);
        let (mut deepest, cpu) = (0, cpu());
        for step in &plan.steps {
            let summed = einsum.summed(&plan.steps, step);
            deepest = deepest.max(step.kept.len() + summed.len());
            let loops: Vec<usize> = apart(&groups, step.kept.iter().chain(&summed)).collect();
            let walked = |index: usize| loops.iter().position(|own| *own == index);
            let walks = |value: &usize| match written.operands().get(*value) {
                Some(axes) => {
                    let of = |axis: &Axis| if let Axis::Index(index) = axis { walked(*index) } else { None };
                    axes.iter().map(of).collect()
                }
                None => {
                    let made = plan.steps.get(value - written.operands().len()).map_or(&[][..], |step| &step.kept);
                    apart(&groups, made).map(walked).collect()
                }
            };
            let factors: Vec<Vec<Option<usize>>> = step.factors.iter().map(walks).collect();
            let kept: Vec<usize> = apart(&groups, &step.kept).collect();
            let sums: Vec<Vec<usize>> = summed.iter().map(|sum| written.shape(&groups[*sum])).collect();
            let nest = Nest::new(&written.shape(&kept), &sums, &factors);
            let nest = nest.ok_or(EinsumError::TooManyOperands(step.factors.len()))?;
            let rows = einsum.is_in_rows(&plan.steps, step);
            let nest = match rows {
                true if cpu.has_fma() => nest.fused(cpu),
                true => nest.in_one_sum(),
                false => nest.in_lanes(),
            };
            let times = written.shape(&loops).iter().fold(1u64, |times, size| times.saturating_mul(*size as u64));
            work = work.saturating_add(times);
            if rows && !nest.is_tiled() {
                in_rows = in_rows.saturating_add(times);
            }
            nests.push(nest);
        }
        // Tiles are as fast in loops of Rust. What is read once and summed waits for memory in either. Through a chain, native code
        // takes some elements at a time.
        let gains = (in_rows > work / 2 || plan.is_chain) && deepest <= DEEPEST;
        let compiled = gains.then(|| Compiled::of(&einsum, &plan.steps, elem));
        Ok(Contraction { written, einsum, groups, plan, elem, nests, work, compiled })
    }

    /// The same with the dimensions of its result in the order in which they are best computed, and at which place each
    /// dimension is then; none if they are already. Where sums are long, how the result lies makes no difference. The
    /// bits are the same.
    ///
    /// ```
    /// use certen::einsum::{Contraction, Order, Subscripts};
    /// let subscripts = Subscripts::parse("zik,zkj->ijz", 2)?;
    /// let shapes: [&[usize]; 2] = [&[10, 40, 5], &[10, 5, 30]];
    /// let products = Contraction::new(&subscripts, &shapes, certen::ElemType::F64, &Order::Best)?;
    /// let (laid_out, places) = products.laid_out(&Order::Best).unwrap();
    /// assert_eq!((laid_out.output_shape(), places), (vec![10, 40, 30], vec![1, 2, 0]));
    /// # Ok::<(), certen::einsum::EinsumError>(())
    /// ```
    pub fn laid_out(&self, order: &Order) -> Option<(Contraction, Vec<usize>)> {
        let (steps, step) = (&self.plan.steps, self.plan.steps.last()?);
        if self.plan.is_chain {
            return None;
        }
        let [left, right] = step.factors[..] else { return None };
        let size = |index: &usize| self.einsum.indices()[*index].size;
        let count = |indices: &[usize]| indices.iter().map(size).fold(1, usize::saturating_mul);
        if !self.einsum.is_in_rows(steps, step) || count(&self.einsum.summed(steps, step)) > LASTING_SUM {
            return None;
        }
        let axes = [left, right].map(|factor| {
            let of = |axis| if let Axis::Index(index) = axis { Some(index) } else { None };
            self.einsum.axes(steps, factor).into_iter().filter_map(of).collect::<Vec<usize>>()
        });
        let has = |which: usize, index: &usize| axes[which].contains(index);
        let own = |which: usize| -> Vec<usize> {
            let alone = |index: &&usize| step.kept.contains(index) && !has(1 - which, index);
            axes[which].iter().filter(alone).copied().collect()
        };
        // The innermost ones are in a row: many, which lie side by side, and were innermost before.
        let price = |which: &usize| {
            let (row, last) = (own(*which), step.kept.last());
            let goes = axes[*which].last().is_some_and(|index| row.contains(index));
            (count(&row) < ROW_BYTES / self.elem.bytes(), !goes, !last.is_some_and(|last| row.contains(last)))
        };
        let inner = [1, 0].into_iter().min_by_key(price)?;
        let both = step.kept.iter().filter(|index| has(0, index) == has(1, index)).copied();
        let kept: Vec<usize> = both.chain(own(1 - inner)).chain(own(inner)).collect();
        let output: Vec<usize> = apart(&self.groups, &kept).collect();
        if output == self.written.output() || output.len() != self.written.output().len() {
            return None;
        }
        let place = |index: &usize| output.iter().position(|own| own == index);
        let places = self.written.output().iter().map(place).collect::<Option<Vec<usize>>>()?;
        let laid_out = Contraction::of(self.written.with_output(output), self.elem, order).ok()?;
        let (steps, step) = (&laid_out.plan.steps, laid_out.plan.steps.last()?);
        // Else its sums would be in another order.
        laid_out.einsum.is_in_rows(steps, step).then_some((laid_out, places))
    }

    /// The sizes of the result.
    pub fn output_shape(&self) -> Vec<usize> {
        self.written.output_shape()
    }

    /// The order as NumPy's `einsum_path` gives it: the positions that each step takes.
    pub fn path(&self) -> &[Vec<usize>] {
        &self.plan.path
    }

    /// How many multiplications and additions are made.
    pub fn flops(&self) -> u128 {
        self.plan.operations(&self.einsum)
    }

    /// If there is one operand and nothing is summed: for each dimension of the result, those of the operand that are
    /// walked along together. Then the result is a view of it.
    ///
    /// ```
    /// use certen::einsum::{Contraction, Order, Subscripts};
    /// let axes = |text: &str, shape: &[usize]| {
    ///     let subscripts = Subscripts::parse(text, 1)?;
    ///     let contraction = Contraction::new(&subscripts, &[shape], certen::ElemType::F64, &Order::AsWritten)?;
    ///     Ok::<_, certen::einsum::EinsumError>(contraction.as_view())
    /// };
    /// assert_eq!(axes("iji->ji", &[2, 3, 2])?, Some(vec![vec![1], vec![0, 2]]));
    /// assert_eq!(axes("ij->i", &[2, 3])?, None);
    /// # Ok::<(), certen::einsum::EinsumError>(())
    /// ```
    pub fn as_view(&self) -> Option<Vec<Vec<usize>>> {
        let [term] = self.written.terms() else { return None };
        if !term.iter().all(|index| self.written.output().contains(index)) {
            return None;
        }
        let along = |index: &usize| (0..term.len()).filter(|at| term[*at] == *index).collect();
        Some(self.written.output().iter().map(along).collect())
    }

    /// Whether [`Contraction::prepare`] would compile something now.
    pub fn is_due(&self) -> bool {
        self.compiled.as_ref().is_some_and(|compiled| compiled.is_due(self.work))
    }

    /// Compiles the contraction if that is due: if as many operations were made for contractions of its form, with
    /// those of the next call, as a compilation is worth. Nothing is locked meanwhile; if several threads come at once,
    /// each compiles.
    pub fn prepare(&self) {
        if let Some(compiled) = &self.compiled
            && compiled.is_due(self.work)
        {
            // Another thread may have been faster; then its program stays.
            let _ = compiled.module.set(self.module());
        }
    }

    /// Computes the result, with native code if it is there. No operand may share memory with the result.
    ///
    /// # Errors
    /// If an array is not of the shape or element type that this contraction is for, or there is no memory for
    /// intermediate results.
    pub fn run(
        &self,
        operands: &[View<'_>],
        mut out: ViewMut<'_>,
        threads: Option<NonZeroUsize>,
    ) -> Result<(), Failure> {
        self.check(operands, &out)?;
        if let Some(compiled) = &self.compiled
            && let Some(module) = compiled.count(self.work)
            && self.copied(operands) <= u128::from(self.work / COPY)
            && self.run_native(module, operands, &mut out, threads)?
        {
            return Ok(());
        }
        match threads {
            Some(threads) => with_threads(threads, || self.run_loops(operands, &mut out)),
            None => {
                default_threads().map_err(|error| failed(&error))?;
                self.run_loops(operands, &mut out)
            }
        }
    }

    fn check(&self, operands: &[View<'_>], out: &ViewMut<'_>) -> Result<(), Failure> {
        let (terms, wanted) = (self.written.operands(), self.written.operands().len());
        if operands.len() != wanted {
            let text = format!("the contraction is of {wanted} operands, but {} are given", operands.len());
            return Err(refused(Code::E0401, text));
        }
        let size = |axis: &Axis| match axis {
            Axis::Index(index) => self.written.indices()[*index].size,
            Axis::One => 1,
        };
        let inputs = operands.iter().zip(terms).enumerate();
        for (at, (view, axes)) in inputs {
            self.check_elem(&format!("operand {at}"), view.elem())?;
            if view.shape().len() != axes.len() || !view.shape().iter().zip(axes).all(|(n, axis)| *n == size(axis)) {
                let wanted: Vec<usize> = axes.iter().map(size).collect();
                let text = format!("operand {at} has shape {:?}, but the contraction is for {wanted:?}", view.shape());
                return Err(refused(Code::E0403, text));
            }
        }
        self.check_elem("the output", out.elem())?;
        if !out.shape().iter().eq(self.written.output().iter().map(|index| &self.written.indices()[*index].size)) {
            let (found, wanted) = (out.shape(), self.output_shape());
            return Err(refused(Code::E0403, format!("the output has shape {found:?}, but the result has {wanted:?}")));
        }
        if out.has_repetitions() {
            return Err(refused(Code::E0403, "an element occurs twice in the output".into()));
        }
        Ok(())
    }

    fn check_elem(&self, which: &str, found: ElemType) -> Result<(), Failure> {
        if found == self.elem {
            return Ok(());
        }
        let text = format!("{which} has elements of type {found}, but the contraction is of {}", self.elem);
        Err(refused(Code::E0404, text))
    }

    /// The contraction as a program.
    fn module(&self) -> Option<Module> {
        let core = self.einsum.to_core(&self.plan.steps, self.elem).ok()?;
        let (steps, has_fma) = (&self.plan.steps, cpu().has_fma());
        let is_planned = |step: &&Product| {
            let (fuses, joins) = (step.factors.len() > 1 && has_fma, self.einsum.summed(steps, step).len() > 1);
            self.elem.is_float() && self.einsum.is_in_rows(steps, step) && (fuses || joins)
        };
        compiled::module(core, steps.iter().filter(is_planned).count())
    }

    /// Native code, if it is there and the machine can run it: copies of operands may take more memory than loops do.
    fn run_native(
        &self,
        module: &Module,
        operands: &[View<'_>],
        out: &mut ViewMut<'_>,
        threads: Option<NonZeroUsize>,
    ) -> Result<bool, Failure> {
        let copied = self.copied(operands).saturating_mul(self.elem.bytes() as u128);
        if !has_room(copied.saturating_add(self.intermediate_bytes())) {
            return Ok(false);
        }
        let sizes: Option<Vec<i64>> = self.einsum.indices().iter().map(|i| i64::try_from(i.size).ok()).collect();
        let Some(sizes) = sizes else { return Ok(false) };
        let called = if self.groups.len() == self.written.indices().len() {
            compiled::call(module, &sizes, operands, out, threads)
        } else {
            self.call_grouped(module, &sizes, operands, out, threads)
        };
        match called {
            Ok(()) => Ok(true),
            Err(error @ RuntimeError::Setting { .. }) => Err(failed(&error)),
            Err(_) => Ok(false),
        }
    }

    /// Calls native code with the dimensions of merged indices as one; what cannot be seen so is copied.
    fn call_grouped(
        &self,
        module: &Module,
        sizes: &[i64],
        operands: &[View<'_>],
        out: &mut ViewMut<'_>,
        threads: Option<NonZeroUsize>,
    ) -> Result<(), RuntimeError> {
        let lengths = |term: &[usize]| term.iter().map(|index| self.groups[*index].len()).collect::<Vec<_>>();
        let refused = |which: &str, error| RuntimeError::Array { which: which.into(), error };
        let strange = || RuntimeError::WrongCall("an array is not of its shape".into());
        let terms: Vec<Vec<usize>> = self.einsum.terms().iter().map(|term| lengths(term)).collect();
        let mut copies: Vec<Option<Array>> = Vec::with_capacity(operands.len());
        for (view, lengths) in operands.iter().zip(&terms) {
            let copy = || view.to_array().map_err(|error| refused("input", error));
            copies.push(if view.grouped(lengths).is_some() { None } else { Some(copy()?) });
        }
        let dense: Vec<Option<View<'_>>> = copies.iter().map(|copy| copy.as_ref().map(View::from)).collect();
        let views = operands.iter().zip(&dense).zip(&terms);
        let views: Option<Vec<View<'_>>> =
            views.map(|((view, dense), lengths)| dense.as_ref().unwrap_or(view).grouped(lengths)).collect();
        let (views, lengths) = (views.ok_or_else(strange)?, lengths(self.einsum.output()));
        if let Some(mut out) = out.grouped(&lengths) {
            return compiled::call(module, sizes, &views, &mut out, threads);
        }
        let mut result = Array::zeros(self.elem, out.shape()).map_err(|error| refused("output", error))?;
        let mut whole = ViewMut::from(&mut result);
        compiled::call(module, sizes, &views, &mut whole.grouped(&lengths).ok_or_else(strange)?, threads)?;
        out.assign(&result).map_err(|error| refused("output", error))
    }

    /// How many elements native code would copy first.
    fn copied(&self, operands: &[View<'_>]) -> u128 {
        let apart = operands.iter().filter(|view| !view.is_dense());
        apart.map(|view| bytes(self.elem, view.shape()) / self.elem.bytes() as u128).fold(0, u128::saturating_add)
    }

    /// What intermediate results take, all together.
    fn intermediate_bytes(&self) -> u128 {
        let inner = self.plan.steps.split_last().map_or(&[][..], |(_, inner)| inner);
        inner.iter().fold(0, |sum: u128, step| sum.saturating_add(bytes(self.elem, &self.made_shape(step))))
    }

    /// The shape of the result of a step, with the indices that the user wrote.
    fn made_shape(&self, step: &Product) -> Vec<usize> {
        apart(&self.groups, &step.kept).map(|index| self.written.indices()[index].size).collect()
    }

    fn run_loops(&self, operands: &[View<'_>], out: &mut ViewMut<'_>) -> Result<(), Failure> {
        if let ([nest], [step]) = (self.nests.as_slice(), self.plan.steps.as_slice())
            && step.factors.iter().copied().eq(0..operands.len())
        {
            return nest.run(operands, out).map_err(|error| failed(&error));
        }
        if !has_room(self.intermediate_bytes()) {
            let text = format!(
                "the intermediate results need {} MiB, but only {} MiB are free; another order may need less",
                self.intermediate_bytes() >> 20,
                available_bytes().unwrap_or(0) >> 20
            );
            return Err(refused(Code::E0408, text));
        }
        // Every intermediate result is used once, and given up then.
        let mut results: Vec<Option<Array>> = Vec::with_capacity(self.plan.steps.len());
        for (at, (step, nest)) in self.plan.steps.iter().zip(&self.nests).enumerate() {
            let taken: Vec<Option<Array>> =
                step.factors.iter().map(|value| self.result(*value, &mut results)).collect();
            let views = step.factors.iter().zip(&taken).map(|(value, taken)| match taken {
                Some(array) => Some(View::from(array)),
                None => operands.get(*value).cloned(),
            });
            let views: Option<Vec<View<'_>>> = views.collect();
            let views = views.ok_or_else(|| refused(Code::E0704, "an order takes a result twice".into()))?;
            if at + 1 == self.plan.steps.len() {
                return nest.run(&views, out).map_err(|error| failed(&error));
            }
            let mut made = Array::zeros(self.elem, &self.made_shape(step)).map_err(|error| no_memory(&error))?;
            nest.run(&views, &mut ViewMut::from(&mut made)).map_err(|error| failed(&error))?;
            results.push(Some(made));
        }
        Ok(())
    }

    /// The intermediate result that a value is; none if it is an operand.
    fn result(&self, value: usize, results: &mut [Option<Array>]) -> Option<Array> {
        results.get_mut(value.checked_sub(self.einsum.operands().len())?)?.take()
    }
}

/// The instruction set that sums of products are made with.
fn cpu() -> Cpu {
    // What is wrong with the setting is said when something is compiled.
    Cpu::from_environment().unwrap_or(Cpu::Sse2)
}

/// The indices that merged ones stand for.
fn apart<'a>(groups: &[Vec<usize>], indices: impl IntoIterator<Item = &'a usize>) -> impl Iterator<Item = usize> {
    indices.into_iter().flat_map(|index| groups[*index].iter().copied())
}

fn bytes(elem: ElemType, shape: &[usize]) -> u128 {
    shape.iter().fold(elem.bytes() as u128, |bytes, size| bytes.saturating_mul(*size as u128))
}

/// Whether so many bytes can be filled.
fn has_room(bytes: u128) -> bool {
    bytes < SMALL || available_bytes().is_none_or(|free| bytes <= u128::from(free))
}

fn refused(code: Code, text: String) -> Failure {
    Failure::new(Arc::default(), vec![Diagnostic::error(code, None, text)])
}

fn failed(error: &RuntimeError) -> Failure {
    refused(error.code(), error.to_string())
}

fn no_memory(error: &ArrayError) -> Failure {
    refused(error.code(), format!("an intermediate result cannot be made: {error}"))
}

#[cfg(test)]
mod tests;
