//! Programs with numbers in place of sizes.
//!
//! A program is compiled for all sizes. Where its schedule is automatic, the sizes of a call choose tiles and the order of
//! products, so that a few combinations of sizes get code of their own. Guarantees: numbers are put in after the order of
//! operations was chosen, so that they change no bits.

use std::sync::{Arc, OnceLock, PoisonError};

use certen_core::{Program, TensorType};
use certen_index::Ix;
use certen_loops::FpMode;
use certen_schedule::{Form, Planned, STREAMED_BYTES, at_sizes};
use certen_syntax::{Blame, Name};
use rustc_hash::FxHashMap;

use super::{Made, Module};
use crate::failure::Failure;
use crate::front::Accepted;
use crate::optimise::{Optimised, compared, lifted_at};

/// How many combinations of sizes get code of their own.
pub const SPECIALISED: usize = 8;

/// Loops that are no longer than this are written out by C compilers where their length is a number.
const WRITTEN_OUT: i64 = 8;

/// A size that is larger has blocks and panels of its own.
const LARGE: i64 = 128;

/// Sizes of a call, and the program for them, if there is one.
pub(super) type Specialised = (Vec<i64>, Option<Arc<Module>>);

/// The size of a batch that stands for others is a multiple of this, so of all lengths of vectors.
const FULL: i64 = 64;

impl Module {
    /// The program for all sizes with its products in the order that is best for these; none if that is the one that it has.
    /// Only automatic schedules, where floats are relaxed, have several orders. Which one it is depends on the sizes alone.
    pub fn ordered(&self, sizes: &[i64]) -> Option<Arc<Module>> {
        let has_one = !self.is_automatic() || !self.accepted.begin.is_lowering() || self.fp() != FpMode::Relaxed;
        if has_one || sizes.is_empty() {
            return None;
        }
        let lifted = lifted_at(self.core(), self.rewritten().ok()?, sizes)?;
        let text = lifted.program.to_string();
        let orders = || self.made.orders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, module)) = orders().iter().find(|(known, _)| *known == text) {
            return Some(module.clone());
        }
        let found = compared(self.core(), lifted).ok()?;
        let made = Made { optimised: OnceLock::from(Ok(Some(found))), ..Made::default() };
        let accepted = self.in_core(self.core().clone());
        let module = Arc::new(Module { accepted, options: self.as_automatic(), made });
        orders().push((text, module.clone()));
        Some(module)
    }

    /// The program for these values of its sizes, in their order; none if it cannot be written down. It makes the same
    /// operations in the same order: numbers are put in after the order was chosen. Only the order of products of three and
    /// more may be another one ([`Module::explain`] shows it).
    pub fn at_sizes(&self, sizes: &[i64]) -> Option<Module> {
        let ordered = self.ordered(sizes);
        ordered.as_deref().unwrap_or(self).with_numbers(&self.by_name(sizes))
    }

    /// With the numbers that are given in place of their sizes.
    fn with_numbers(&self, sizes: &FxHashMap<Name, i64>) -> Option<Module> {
        let begins_here = self.accepted.begin.is_lowering();
        let optimised = match self.optimisation().ok()? {
            None if begins_here => None,
            None => Some(Optimised::unchanged(self.rewritten().ok()?.at_sizes(sizes).ok()?)),
            Some(found) => Some(Optimised { program: found.program.at_sizes(sizes).ok()?, ..found.clone() }),
        };
        let mut made = Made { optimised: OnceLock::from(Ok(optimised)), ..Made::default() };
        // The user's schedule is made for the loops of all sizes; numbers are put into what it has made of them. One that
        // is automatic looks at the sizes: it keeps the order of operations whatever they are.
        let replans = begins_here && self.is_automatic();
        if (!self.steps().is_empty() && !replans) || !begins_here {
            made.loops = OnceLock::from(Ok(at_sizes(self.loops().ok()?, sizes).ok()?));
            made.validation = OnceLock::from(Ok(self.validation().ok()?.clone()));
        }
        if replans {
            made.like = Some(self.planned().ok()?.0.clone());
        }
        let accepted = self.in_core(self.core().at_sizes(sizes).ok()?);
        let options = if replans { self.as_automatic() } else { self.as_given() };
        let module = Module { accepted, options, made };
        (!replans || module.planned().is_ok()).then_some(module)
    }

    /// A form of the program in Core, from the same text.
    fn in_core(&self, core: Program) -> Accepted {
        let mut accepted = Accepted::core(core);
        accepted.sources = self.accepted.sources.clone();
        accepted.warnings = self.accepted.warnings.clone();
        accepted
    }

    /// The program for these sizes, as a call with them has it: if its schedule is automatic, and none is missing.
    pub fn planned_at(&self, sizes: &[(Name, i64)]) -> Option<Module> {
        let all = self.all_sizes(sizes)?;
        let open = self.batched(&all).and_then(|(ordered, batch, alike)| {
            let base = ordered.as_deref().unwrap_or(self);
            base.planned_for_batches(batch, &alike)
        });
        self.is_automatic().then(|| open.or_else(|| self.replanned(&all)))?
    }

    /// The program with its products in the order for these sizes, if that is another one and none is missing.
    pub(crate) fn ordered_at(&self, sizes: &[(Name, i64)]) -> Option<Arc<Module>> {
        self.ordered(&self.all_sizes(sizes)?)
    }

    /// The values of its sizes, if it has sizes and all are given.
    fn all_sizes(&self, given: &[(Name, i64)]) -> Option<Vec<i64>> {
        let size = |name: &Name| given.iter().find(|(known, _)| known == name).map(|(_, size)| *size);
        let all: Vec<i64> = self.core().sizes.iter().map(size).collect::<Option<_>>()?;
        Some(all).filter(|all| !all.is_empty())
    }

    /// Native code for calls with these sizes and any batch; none if there is no batch, another size is large, or the plans look at
    /// the batch.
    ///
    /// A batch is a size of which there is a dimension only where arrays begin, as of elements, images or pairs of matrices. Small
    /// sizes decide how its elements are computed, so that one kernel serves every batch as well as one of its own would.
    ///
    /// # Errors
    /// As [`Module::native_at`].
    pub(crate) fn for_batches(&self, sizes: &[i64]) -> Result<Option<Arc<Module>>, Failure> {
        let Some((ordered, batch, alike)) = self.batched(sizes) else { return Ok(None) };
        let base = ordered.as_deref().unwrap_or(self);
        let known = || base.made.batches.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, module)) = known().iter().find(|(known, _)| *known == alike) {
            return Ok(module.clone());
        }
        if known().len() >= SPECIALISED {
            return Ok(None);
        }
        let open = base.planned_for_batches(batch, &alike);
        let made = open.map_or(Ok(None), Module::if_native)?.map(Arc::new);
        known().push((alike, made.clone()));
        Ok(made)
    }

    /// The program with its products in the order for these sizes, if that is another one; which of the sizes is a batch; and the sizes
    /// with a batch that stands for others. None if there is no batch, or the schedule does not look at sizes.
    fn batched(&self, sizes: &[i64]) -> Option<(Option<Arc<Module>>, usize, Vec<i64>)> {
        if !self.is_automatic() || !self.accepted.begin.is_lowering() || self.steps().is_empty() {
            return None;
        }
        let batch = self.batch()?;
        Some((self.ordered(sizes), batch, self.batch_like(batch, sizes)?))
    }

    /// These sizes with a batch that stands for all that are planned alike: the largest whose results go through the caches, or the
    /// smallest whose results do not. None if other sizes are large: a batch can be rows that are tiled for the caches then.
    fn batch_like(&self, batch: usize, sizes: &[i64]) -> Option<Vec<i64>> {
        if sizes.iter().enumerate().any(|(at, size)| at != batch && *size > LARGE) {
            return None;
        }
        let mut alike = sizes.to_vec();
        alike[batch] = 1;
        let value = |name: Name| self.core().sizes.iter().position(|size| *size == name).map(|at| alike[at]);
        let bytes = |ty: &TensorType| {
            let shape = ty.shape_at(&value).ok()?;
            shape.iter().try_fold(ty.elem.bytes() as i64, |bytes, size| bytes.checked_mul(i64::try_from(*size).ok()?))
        };
        let each = self.signature().outputs.iter().map(bytes).collect::<Option<Vec<i64>>>()?.into_iter().max()?;
        let most = (STREAMED_BYTES - 1) / each.max(1);
        let through = most / FULL * FULL;
        alike[batch] = if sizes[batch] > most { through.checked_add(FULL)? } else { through };
        Some(alike).filter(|alike| alike[batch] > 0)
    }

    /// The program with numbers for all sizes but the batch, if its plans are those for this one.
    fn planned_for_batches(&self, batch: usize, sizes: &[i64]) -> Option<Module> {
        let mut numbers = self.by_name(sizes);
        let closed = self.with_numbers(&numbers)?;
        numbers.remove(&self.core().sizes[batch]);
        let open = self.with_numbers(&numbers)?;
        let plans = |module: &Module| -> Option<Vec<(Name, String)>> {
            let plans = module.planned().ok()?.0.iter().filter(|plan| plan.form != Form::Shared);
            Some(plans.map(|plan| (plan.nest, plan.why.clone())).collect())
        };
        let (of_open, of_closed) = (plans(&open)?, plans(&closed)?);
        (open.changes_loops() && of_open == of_closed).then_some(open)
    }

    fn by_name(&self, sizes: &[i64]) -> FxHashMap<Name, i64> {
        self.core().sizes.iter().copied().zip(sizes.iter().copied()).collect()
    }

    /// Which of its sizes is a batch: that of the first dimension of all results, where no other dimension speaks of it.
    fn batch(&self) -> Option<usize> {
        let (core, signature) = (self.core(), self.signature());
        let first = |shape: &[Ix]| shape.first().and_then(Ix::as_var);
        let batch = first(&signature.outputs.first()?.shape)?;
        let leads = |shape: &[Ix]| first(shape) == Some(batch);
        let is_elsewhere = |shape: &[Ix]| shape.iter().skip(usize::from(leads(shape))).any(|size| size.mentions(batch));
        let inputs = core.inputs.iter().map(|input| &input.ty);
        let is_batch = signature.outputs.iter().all(|ty| leads(&ty.shape))
            && !inputs.chain(&signature.outputs).any(|ty| is_elsewhere(&ty.shape));
        core.sizes.iter().position(|size| *size == batch).filter(|_| is_batch)
    }

    /// Native code for these sizes alone; none if the one for all sizes has to do.
    ///
    /// # Errors
    /// If there is no compiler, or what it makes is wrong.
    pub(crate) fn native_at(&self, sizes: &[i64]) -> Result<Option<Module>, Failure> {
        self.at_sizes(sizes).map_or(Ok(None), Module::if_native)
    }

    fn if_native(self) -> Result<Option<Module>, Failure> {
        match self.native() {
            Err(failure) if failure.blame() == Blame::Environment || failure.is_wrong_code() => Err(failure),
            // What the verifier does not see with these numbers, it has seen for all.
            Err(_) => Ok(None),
            Ok(_) => Ok(Some(self)),
        }
    }

    /// The program for these sizes alone, if that is worth it: its schedule looks at them, or its loops are so short that the
    /// C compiler writes them out.
    fn replanned(&self, sizes: &[i64]) -> Option<Module> {
        let is_short = sizes.iter().all(|size| *size <= WRITTEN_OUT);
        self.at_sizes(sizes).filter(|module| is_short || module.changes_loops())
    }

    /// Whether its schedule says how loops run. Which operations are made does not depend on sizes.
    fn changes_loops(&self) -> bool {
        self.planned().is_ok_and(|(plans, _)| plans.iter().any(Planned::changes_loops))
    }

    /// The program for the sizes of a call, if its schedule looks at them; none if this one has to do. Its numbers are put in,
    /// or only its order is the one for them.
    ///
    /// # Errors
    /// As [`Module::native_at`].
    pub(crate) fn specialised(&self, sizes: &[i64]) -> Result<Option<Arc<Module>>, Failure> {
        let known = || self.made.specialised.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, module)) = known().iter().find(|(at, _)| at == sizes) {
            return Ok(module.clone());
        }
        if sizes.is_empty() || !self.is_automatic() || self.steps().is_empty() {
            return Ok(None);
        }
        let batches = self.for_batches(sizes)?;
        if batches.is_none() && known().len() >= SPECIALISED {
            return Ok(self.ordered(sizes));
        }
        let module = match batches {
            Some(module) => Some(module),
            None => {
                let own = self.replanned(sizes).map_or(Ok(None), Module::if_native)?;
                let module = own.map(Arc::new).or_else(|| self.ordered(sizes));
                known().push((sizes.to_vec(), module.clone()));
                module
            }
        };
        let mut passes = self.made.passes.lock().unwrap_or_else(PoisonError::into_inner);
        for pass in module.iter().flat_map(|module| module.passes()) {
            if !passes.iter().any(|own| own.stage == pass.stage) {
                passes.push(pass);
            }
        }
        Ok(module)
    }

    /// What of the sizes of a call of another program this one, which was made of it, is called with: those without numbers.
    pub(crate) fn sizes_left(&self, whole: &Module, sizes: &[i64]) -> Vec<i64> {
        let names = whole.core().sizes.iter().zip(sizes);
        names.filter(|(name, _)| self.core().sizes.contains(name)).map(|(_, size)| *size).collect()
    }
}
