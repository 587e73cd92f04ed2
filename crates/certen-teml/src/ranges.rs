//! Ranges of iterators, inferred from how they are used to index tensors (Eq. 14, 15 and 19).
//!
//! An iterator runs from 0. One that only stands alone in index positions must meet dimensions of the same size, for
//! all sizes. One that also stands in a sum, such as `i + 1` or `2*i + k`, runs as far as all its uses allow; which of
//! two bounds is the smaller must not depend on the sizes. Iterators are solved in order: those that stand in positions
//! of their own, then those that are the only unknown of a position: in `X[h + p]` with p known, h runs as far as the
//! largest p allows.
//!
//! Guarantees: every access that is asked about is in bounds, for all sizes; where that is not shown, it is an error
//! with sizes for which it fails, if they are found.

use std::collections::BTreeSet;

use certen_index::{Cond, Facts, Ix, IxError, KnownOrder, Verdict};
use certen_syntax::{Code, Diagnostic, Name, Span};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::rules::{Evaluated, malformed};

/// An iterator of an expression, which is one of its dimensions.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Dim {
    /// Its name.
    pub iter: Name,
    /// How many values it takes, from 0; none if negative.
    pub extent: Ix,
    /// Whether it stands alone wherever it is used.
    pub plain: bool,
    /// The use that decides: where, and which dimension of which tensor that is.
    pub span: Span,
    /// `dimension 2 of A`
    pub source: Source,
}

/// A dimension of a tensor, counted from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Source {
    pub tensor: Name,
    pub position: usize,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "dimension {} of `{}`", self.position, self.tensor)
    }
}

/// An index position.
#[derive(Clone, Debug)]
pub(crate) struct Use {
    pub entry: Ix,
    pub size: Ix,
    pub span: Span,
    pub source: Source,
    /// For the target of an assignment, the equation that demands its shape.
    pub written: Option<u8>,
}

/// What iterators are known from, in order.
pub(crate) enum Evidence {
    /// An expression that has them.
    Dims(Vec<Dim>),
    /// Positions that are indexed here.
    Uses(Vec<Use>),
}

impl Evidence {
    /// The iterators that occur.
    pub(crate) fn iterators(&self, sizes: &Sizes) -> Vec<Name> {
        match self {
            Evidence::Dims(dims) => dims.iter().map(|dim| dim.iter).collect(),
            Evidence::Uses(uses) => {
                uses.iter().flat_map(|used| names(&used.entry)).filter(|name| !sizes.has(*name)).collect()
            }
        }
    }
}

/// What is known of sizes. What is asked has few names, and only what is known of those matters: a program may have
/// very many others.
#[derive(Default)]
pub(crate) struct Sizes {
    names: FxHashSet<Name>,
    /// In order of their first appearance.
    pub listed: Vec<Name>,
    about: FxHashMap<Name, Vec<Cond>>,
    assumed: FxHashSet<Ix>,
}

impl Sizes {
    /// That a name is a size, wherever it stands in the program.
    pub(crate) fn declare(&mut self, name: Name) {
        if self.names.insert(name) {
            self.listed.push(name);
        }
    }

    /// Whether a name is a size.
    pub(crate) fn has(&self, name: Name) -> bool {
        self.names.contains(&name)
    }

    /// That a tensor has a dimension of this size.
    pub(crate) fn assume(&mut self, size: &Ix) {
        if size.as_constant().is_some() || !self.assumed.insert(size.clone()) {
            return;
        }
        let Ok(fact) = Cond::le(&Ix::from(0), size) else { return };
        for name in names(size) {
            self.about.entry(name).or_default().push(fact.clone());
        }
    }

    /// What is known of these names, and that iterators are in their ranges.
    fn local(&self, dims: &[Dim], also: &[&Ix]) -> Result<Facts, IxError> {
        let mut ranges = Vec::with_capacity(dims.len());
        let mut about = also.to_vec();
        for dim in dims {
            let i = Ix::var(dim.iter);
            ranges.push(Cond::le(&Ix::from(0), &i)?.and(Cond::lt(&i, &dim.extent)?));
            about.push(&dim.extent);
        }
        Ok(self.around(&ranges, &about))
    }

    /// What is known of the names in some expressions, and these facts.
    pub(crate) fn around(&self, more: &[Cond], about: &[&Ix]) -> Facts {
        let mut facts = Facts::new();
        let mut mentioned: BTreeSet<Name> = BTreeSet::new();
        about.iter().for_each(|ix| ix.collect_names(&mut mentioned));
        for name in mentioned {
            // Of a size in very many shapes, the first say enough.
            self.about.get(&name).into_iter().flatten().take(64).for_each(|fact| facts.assume(fact.clone()));
        }
        more.iter().for_each(|fact| facts.assume(fact.clone()));
        facts
    }

    /// Whether two sizes are equal, for all sizes.
    pub(crate) fn equal(&self, one: &Ix, two: &Ix) -> bool {
        one == two || self.around(&[], &[one, two]).prove_equal(one, two) == Verdict::Yes
    }
}

pub(crate) fn names(ix: &Ix) -> BTreeSet<Name> {
    let mut names = BTreeSet::new();
    ix.collect_names(&mut names);
    names
}

fn too_complex(span: Span, error: IxError) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(Code::E0216, span, format!("this index cannot be used: {error}")))
}

/// The ranges of all iterators, in the order of their first appearance. `by` is the equation that asks.
pub(crate) fn solve(sizes: &Sizes, by: u8, known: &[Evidence]) -> Evaluated<Vec<Dim>> {
    let mut solver =
        Solver { sizes, by, order: Vec::new(), solved: FxHashMap::default(), affine: FxHashSet::default() };
    solver.run(known)
}

struct Solver<'a> {
    sizes: &'a Sizes,
    by: u8,
    order: Vec<Name>,
    solved: FxHashMap<Name, (Dim, Option<u8>)>,
    /// The iterators that stand in a sum somewhere.
    affine: FxHashSet<Name>,
}

/// An index position with its iterators.
type Position<'a> = (&'a Use, Vec<Name>);

impl Solver<'_> {
    fn run(&mut self, known: &[Evidence]) -> Evaluated<Vec<Dim>> {
        let uses = self.list(known);
        for known in known {
            if let Evidence::Dims(dims) = known {
                dims.iter().try_for_each(|dim| self.meet(dim.clone(), None))?;
            }
        }
        let (single, several): (Vec<_>, Vec<_>) =
            uses.iter().filter(|(_, iters)| !iters.is_empty()).partition(|(_, iters)| iters.len() == 1);
        for (used, iters) in single {
            let extent = self.extent(used, iters[0])?;
            self.meet(self.dim(used, iters[0], extent), used.written)?;
        }
        self.sums(several)?;
        let dims: Vec<Dim> = self.order.iter().filter_map(|iter| Some(self.solved.get(iter)?.0.clone())).collect();
        for (used, _) in &uses {
            self.in_bounds(&dims, used)?;
        }
        Ok(dims)
    }

    /// The iterators in order, and the positions that are indexed here with the iterators of each.
    fn list<'k>(&mut self, known: &'k [Evidence]) -> Vec<Position<'k>> {
        let mut seen: FxHashSet<Name> = FxHashSet::default();
        let mut uses = Vec::new();
        for known in known {
            self.order.extend(known.iterators(self.sizes).into_iter().filter(|iter| seen.insert(*iter)));
            match known {
                Evidence::Dims(dims) => self.affine.extend(dims.iter().filter(|dim| !dim.plain).map(|dim| dim.iter)),
                Evidence::Uses(list) => {
                    for used in list {
                        let iters: Vec<Name> =
                            names(&used.entry).into_iter().filter(|name| !self.sizes.has(*name)).collect();
                        if used.entry.as_var().is_none() {
                            self.affine.extend(iters.iter().copied());
                        }
                        uses.push((used, iters));
                    }
                }
            }
        }
        uses
    }

    /// Solves positions with several iterators: each, as soon as one of its iterators alone is unknown.
    fn sums(&mut self, mut open: Vec<&Position>) -> Evaluated<()> {
        loop {
            let unknown = |iters: &[Name]| -> Vec<Name> {
                iters.iter().copied().filter(|iter| !self.solved.contains_key(iter)).collect()
            };
            let mut found: Vec<(Name, &Use)> = Vec::new();
            open.retain(|(used, iters)| match unknown(iters).as_slice() {
                [] => false,
                [one] => {
                    found.push((*one, used));
                    false
                }
                _ => true,
            });
            if found.is_empty() {
                break;
            }
            let mut dims = Vec::new();
            for (iter, used) in found {
                let extent = self.extent(used, iter)?;
                dims.push((self.dim(used, iter, extent), used.written));
            }
            for (dim, written) in dims {
                self.meet(dim, written)?;
            }
        }
        let Some((used, iters)) = open.first() else { return Ok(()) };
        let unknown: Vec<String> =
            iters.iter().filter(|iter| !self.solved.contains_key(*iter)).map(|iter| format!("`{iter}`")).collect();
        let message = format!("the ranges of {} cannot be inferred", unknown.join(" and "));
        let error = malformed(Code::E0243, self.by, used.span, message);
        let error = error.label(format!("{} says only how large their sum can be", used.source));
        Err(Box::new(error.help("an iterator that stands alone in some position has the range of that dimension")))
    }

    fn dim(&self, used: &Use, iter: Name, extent: Ix) -> Dim {
        Dim { iter, extent, plain: !self.affine.contains(&iter), span: used.span, source: used.source }
    }

    /// How far an iterator may run in a position whose other iterators are known.
    fn extent(&self, used: &Use, iter: Name) -> Evaluated<Ix> {
        if used.entry.as_var() == Some(iter) {
            return Ok(used.size.clone());
        }
        let Some((factor, rest)) = used.entry.linear_in(iter) else {
            let message = format!("`{}` is not an affine expression in `{iter}`", used.entry);
            let error = malformed(Code::E0242, self.by, used.span, message);
            return Err(Box::new(error.help("iterators are added, with numbers as factors: `2*i + k + 1`")));
        };
        let compute = || -> Result<Ix, IxError> {
            let one = Ix::from(1);
            if factor > 0 {
                let room = used.size.sub(&one)?.sub(&self.extreme(&rest, true)?)?;
                return room.floor_div(factor)?.add(&one);
            }
            self.extreme(&rest, false)?.floor_div(factor.checked_neg().ok_or(IxError::Overflow)?)?.add(&one)
        };
        compute().map_err(|error| too_complex(used.span, error))
    }

    /// The largest or smallest value of an expression in iterators that are known.
    fn extreme(&self, of: &Ix, largest: bool) -> Result<Ix, IxError> {
        let mut value = of.clone();
        for name in names(of) {
            let Some((dim, _)) = self.solved.get(&name) else { continue };
            let (factor, rest) = value.linear_in(name).ok_or(IxError::TooComplex)?;
            let last = if (factor > 0) == largest { dim.extent.sub(&Ix::from(1))? } else { Ix::from(0) };
            value = rest.add(&last.scale(factor)?)?;
        }
        Ok(value)
    }

    /// One more bound for an iterator.
    fn meet(&mut self, mut dim: Dim, written: Option<u8>) -> Evaluated<()> {
        let iter = dim.iter;
        dim.plain = !self.affine.contains(&iter);
        let Some((before, before_written)) = self.solved.get(&iter) else {
            self.solved.insert(iter, (dim, written));
            return Ok(());
        };
        if before.extent == dim.extent {
            return Ok(());
        }
        let order = self.sizes.around(&[], &[&before.extent, &dim.extent]).compare(&before.extent, &dim.extent);
        let chosen = match (dim.plain, order) {
            (_, KnownOrder::Equal) | (false, KnownOrder::AtMost) => None,
            (false, KnownOrder::AtLeast) => Some((dim, written)),
            (plain, order) => {
                let written = written.or(*before_written);
                return Err(self.disagree(before, &dim, plain, order, written));
            }
        };
        if let Some(chosen) = chosen {
            self.solved.insert(iter, chosen);
        }
        Ok(())
    }

    fn disagree(&self, one: &Dim, two: &Dim, plain: bool, order: KnownOrder, written: Option<u8>) -> Box<Diagnostic> {
        let iter = one.iter;
        let (code, by) = written.map_or((Code::E0243, self.by), |by| (Code::E0209, by));
        let message = match plain {
            true => format!("`{iter}` runs through dimensions of different sizes: {} and {}", one.extent, two.extent),
            false => {
                format!("how far `{iter}` runs depends on the sizes: below {} and below {}", one.extent, two.extent)
            }
        };
        let mut error = malformed(code, by, two.span, message)
            .label(format!("{}: {}", two.source, two.extent))
            .also(one.span, format!("{}: {}", one.source, one.extent));
        if let KnownOrder::Depends(less, more) = order {
            error = error.note(format!("the first is smaller for {less}, and larger for {more}"));
        }
        Box::new(error)
    }

    fn in_bounds(&self, dims: &[Dim], used: &Use) -> Evaluated<()> {
        if used.entry.as_var().is_some_and(|name| !self.sizes.has(name)) {
            return Ok(());
        }
        let ask = || -> Result<Verdict, IxError> {
            let facts = self.sizes.local(dims, &[&used.entry, &used.size])?;
            let inside = Cond::le(&Ix::from(0), &used.entry)?.and(Cond::lt(&used.entry, &used.size)?);
            Ok(facts.prove(&inside))
        };
        let verdict = ask().map_err(|error| too_complex(used.span, error))?;
        if verdict == Verdict::Yes {
            return Ok(());
        }
        let message = format!("`{}` can be out of bounds", used.entry);
        let mut error = *malformed(Code::E0207, self.by, used.span, message);
        error = error.label(format!("{} has the size {}", used.source, used.size));
        if let Verdict::No(example) = verdict
            && !example.0.is_empty()
        {
            error = error.note(format!("for example {example}"));
        }
        for dim in dims.iter().filter(|dim| used.entry.mentions(dim.iter)) {
            error = error.note(format!(
                "`{}` runs from 0 to {} - 1, because of {}",
                dim.iter,
                bracketed(&dim.extent),
                dim.source
            ));
        }
        Err(Box::new(error))
    }
}

fn bracketed(ix: &Ix) -> String {
    if ix.is_sum() { format!("({ix})") } else { ix.to_string() }
}
