//! Plans: the first walk over a partition (SaC, Sec. 4). The indices of its pattern get unique names, and its written
//! bounds are evaluated; bounds that are missing stay open.

use std::ops::Range;

use certen_index::{Cond, Ix, IxError};
use certen_syntax::{Code, Diagnostic, Name, Span};

use super::Checked;
use super::bounds::selections_with;
use super::index::Index;
use super::scope::Checker;
use super::value::Judged;
use crate::ast::{self, Bound, ExprKind, Ident, Pattern, Selector, Subject};
use crate::typed;

/// A partition or generator before its body is checked.
pub(super) struct Plan {
    pub slots: Vec<PlanSlot>,
    /// Unique names, outermost first.
    pub indices: Vec<Name>,
    /// What the user calls them.
    pub shown: Vec<String>,
    pub bindings: Vec<(Ident, Judged)>,
    pub lower: Vec<End>,
    pub upper: Vec<End>,
    pub span: Span,
}

/// A place in a pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PlanSlot {
    /// An index, by its position among the indices.
    Index(usize),
    Dot,
    Dots,
}

/// An end of a range.
#[derive(Clone)]
pub(super) enum End {
    /// Nothing is written.
    Missing,
    /// `.`
    Dot,
    /// It is written.
    Written(Ix),
    /// It is what a type states.
    Stated(Ix),
    /// It was found.
    Found(Ix),
}

impl End {
    pub fn ix(&self) -> Option<&Ix> {
        match self {
            End::Written(ix) | End::Stated(ix) | End::Found(ix) => Some(ix),
            End::Missing | End::Dot => None,
        }
    }
}

impl Plan {
    /// The range of each index, once all are known.
    pub fn ranges(&self) -> Vec<typed::Range> {
        // Where a stage is read again, the types of names are not there.
        let written = |end: &End| matches!(end, End::Written(_) | End::Stated(_));
        let ends = self.lower.iter().zip(&self.upper);
        ends.map(|(lower, upper)| typed::Range {
            lower: lower.ix().cloned().unwrap_or_else(|| Ix::from(0)),
            upper: upper.ix().cloned().unwrap_or_else(|| Ix::from(0)),
            lower_written: written(lower),
            upper_written: written(upper),
        })
        .collect()
    }

    /// What has to hold of its bounds, or there is nothing between some of them.
    pub fn unless_empty(&self, goal: Cond) -> Result<Cond, IxError> {
        self.ranges().iter().try_fold(goal, |goal, range| Ok(goal.or(Cond::le(&range.upper, &range.lower)?)))
    }

    /// For each dimension of a result of some rank: the index that it belongs to, or none for one of the body's.
    pub fn positions(&self, rank: usize) -> Vec<Option<usize>> {
        let fixed = self.slots.iter().filter(|slot| **slot != PlanSlot::Dots).count();
        let rest = rank.saturating_sub(fixed);
        let mut positions = Vec::new();
        for slot in &self.slots {
            match slot {
                PlanSlot::Index(at) => positions.push(Some(*at)),
                PlanSlot::Dot => positions.push(None),
                PlanSlot::Dots => positions.extend(std::iter::repeat_n(None, rest)),
            }
        }
        positions.resize(rank.max(positions.len()), None);
        positions
    }

    pub fn dots(&self) -> (usize, bool) {
        (self.slots.iter().filter(|slot| **slot == PlanSlot::Dot).count(), self.slots.contains(&PlanSlot::Dots))
    }

    /// The range of each index beside its name.
    pub fn named_ranges(&self) -> Vec<(Name, Ix, Ix)> {
        self.indices.iter().zip(self.ranges()).map(|(name, range)| (*name, range.lower, range.upper)).collect()
    }

    fn push(&mut self, name: Name, shown: String) {
        self.slots.push(PlanSlot::Index(self.indices.len()));
        self.indices.push(name);
        self.shown.push(shown);
        self.lower.push(End::Missing);
        self.upper.push(End::Missing);
    }
}

/// A bound that is written: its components, and whether it is a vector.
enum WrittenBound {
    Dot,
    At(Vec<Ix>, bool, Span),
}

/// A relation of a generator with its bounds.
type Bounded<'a> = (&'a ast::Relation, Option<WrittenBound>, Option<WrittenBound>);

/// A name of a pattern, and which indices it stands for.
type Named = (Name, Range<usize>);

impl Checker<'_, '_> {
    /// The indices of a pattern and its written bounds. `rank` is that of the result, if it is known.
    pub fn plan(
        &mut self,
        pattern: &Pattern,
        generator: &[ast::Relation],
        rank: Option<usize>,
        body: Option<&ast::Expr>,
        span: Span,
    ) -> Checked<Plan> {
        let mut bounds: Vec<Bounded> = Vec::new();
        for relation in generator {
            let lower = self.bound(relation.lower.as_ref(), false)?;
            let upper = self.bound(relation.upper.as_ref(), true)?;
            bounds.push((relation, lower, upper));
        }
        let slots = match pattern {
            Pattern::Vector(name) => &vec![ast::Slot::Rest(*name)],
            Pattern::List(slots, _) => slots,
        };
        let length = self.rest_length(slots, &bounds, rank, body)?;
        let (mut plan, named) = self.name_indices(slots, length, span)?;
        for bounded in bounds {
            self.place_bounds(&mut plan, &named, bounded)?;
        }
        for end in &mut plan.lower {
            if matches!(end, End::Missing | End::Dot) {
                *end = End::Found(Ix::from(0));
            }
        }
        Ok(plan)
    }

    /// How many indices the vector of a pattern has: by its bounds, by its use in the body, or by what is left of the
    /// result's rank.
    fn rest_length(
        &mut self,
        slots: &[ast::Slot],
        bounds: &[Bounded],
        rank: Option<usize>,
        body: Option<&ast::Expr>,
    ) -> Checked<usize> {
        let Some(name) =
            slots.iter().find_map(|slot| if let ast::Slot::Rest(name) = slot { Some(*name) } else { None })
        else {
            return Ok(0);
        };
        let singles = slots.iter().filter(|slot| matches!(slot, ast::Slot::Index(_))).count();
        let vector = |bound: &Option<WrittenBound>| match bound {
            Some(WrittenBound::At(parts, true, _)) => Some(parts.len()),
            _ => None,
        };
        let by_bounds = bounds.iter().find_map(|(relation, lower, upper)| {
            let length = vector(lower).or_else(|| vector(upper))?;
            match relation.subject {
                Subject::All => length.checked_sub(singles),
                Subject::One(one) => (one.name == name.name).then_some(length),
            }
        });
        let dots = slots.iter().filter(|slot| matches!(slot, ast::Slot::Dot(_))).count();
        let length = by_bounds
            .or_else(|| self.length_by_use(name, body?))
            .or_else(|| rank.and_then(|rank| rank.checked_sub(singles + dots)));
        let Some(length) = length else {
            let text = format!("nothing says how many indices `{}` has", name.name);
            let error = Diagnostic::error(Code::E0230, name.span, text)
                .help(format!("bound it: `{0} < shape(x)`, or select with it: `x[{0}]`", name.name));
            return self.fail(error);
        };
        Ok(length)
    }

    fn name_indices(&mut self, slots: &[ast::Slot], length: usize, span: Span) -> Checked<(Plan, Vec<Named>)> {
        let mut plan = Plan {
            slots: Vec::new(),
            indices: Vec::new(),
            shown: Vec::new(),
            bindings: Vec::new(),
            lower: Vec::new(),
            upper: Vec::new(),
            span,
        };
        let mut named: Vec<Named> = Vec::new();
        for slot in slots {
            let first = plan.indices.len();
            match *slot {
                ast::Slot::Dot(_) => plan.slots.push(PlanSlot::Dot),
                ast::Slot::Dots(_) => plan.slots.push(PlanSlot::Dots),
                ast::Slot::Index(ident) => {
                    if named.iter().any(|(name, _)| *name == ident.name) {
                        let text = format!("`{}` stands twice in this pattern", ident.name);
                        return self.error(Code::E0202, ident.span, text);
                    }
                    let (name, ix) = self.new_index(ident.name);
                    named.push((ident.name, first..first + 1));
                    plan.push(name, ident.name.to_string());
                    plan.bindings.push((ident, Judged::Index(ix.into())));
                }
                ast::Slot::Rest(ident) => {
                    let mut parts = Vec::new();
                    named.push((ident.name, first..first + length));
                    for at in 0..length {
                        let (name, ix) = self.new_component(ident.name, at);
                        plan.push(name, format!("{}[{at}]", ident.name));
                        parts.push(Index::Is(ix));
                    }
                    plan.bindings.push((ident, Judged::Vector(parts)));
                }
            }
        }
        Ok((plan, named))
    }

    /// Puts the bounds of a relation where the indices are that it speaks of.
    fn place_bounds(&mut self, plan: &mut Plan, named: &[Named], (relation, lower, upper): Bounded) -> Checked<()> {
        let range = match relation.subject {
            Subject::All => 0..plan.indices.len(),
            Subject::One(one) => match named.iter().find(|(name, _)| *name == one.name) {
                Some((_, range)) => range.clone(),
                None => return self.error(Code::E0103, one.span, "this is no index of the pattern"),
            },
        };
        for (bound, ends, what) in [(lower, &mut plan.lower, "lower"), (upper, &mut plan.upper, "upper")] {
            let Some(bound) = bound else { continue };
            let ends = &mut ends[range.clone()];
            if ends.iter().any(|end| !matches!(end, End::Missing)) {
                return self.error(Code::E0202, relation.span, format!("a second {what} bound for the same index"));
            }
            match bound {
                WrittenBound::Dot => ends.fill(End::Dot),
                WrittenBound::At(parts, false, _) => {
                    ends.fill(End::Written(parts.first().cloned().unwrap_or_else(|| Ix::from(0))));
                }
                WrittenBound::At(parts, true, span) if parts.len() != ends.len() => {
                    let indices = if ends.len() == 1 { "index" } else { "indices" };
                    let text = format!("a bound of {} components for {} {indices}", parts.len(), ends.len());
                    return self.error(Code::E0233, span, text);
                }
                WrittenBound::At(parts, true, _) => {
                    ends.iter_mut().zip(parts).for_each(|(end, part)| *end = End::Written(part));
                }
            }
        }
        Ok(())
    }

    /// A written bound. A dot is the end of the range whichever relation stands beside it.
    fn bound(&mut self, bound: Option<&(Bound, bool)>, upper: bool) -> Checked<Option<WrittenBound>> {
        let Some((bound, reached)) = bound else { return Ok(None) };
        let e = match bound {
            Bound::Dot(_) => return Ok(Some(WrittenBound::Dot)),
            Bound::At(e) => e,
        };
        let (parts, vector) = match self.expr(e)? {
            Judged::Index(index) => (vec![index], false),
            Judged::Vector(parts) => (parts, true),
            value => return self.no_index(&value, e.span),
        };
        // Ranges are half open: `<` below and `<=` above move by one.
        let step = Ix::from(i64::from(*reached == upper));
        let mut plain = Vec::new();
        for part in parts {
            match part.plain() {
                Some(ix) => {
                    plain.push(self.made(e.span, ix.add(&step))?);
                }
                None => return self.error(Code::E0216, e.span, "a bound cannot depend on an `if`"),
            }
        }
        Ok(Some(WrittenBound::At(plain, vector, e.span)))
    }

    /// The number of indices that a vector has where the body selects with it: the smallest.
    fn length_by_use(&mut self, name: Ident, body: &ast::Expr) -> Option<usize> {
        let mut found = Vec::new();
        selections_with(body, name.name, &mut found);
        let mut least: Option<usize> = None;
        for (base, selectors) in found {
            let (Ok(tensor), ..) = self.probing(|function| function.data(base)) else { continue };
            let mut others = Some(0);
            let mut own = 0;
            for selector in selectors {
                let taken = match selector {
                    Selector::Dot(_) | Selector::Slice(..) => Some(1),
                    Selector::Dots(_) => None,
                    Selector::At(ast::Expr { kind: ExprKind::Name(n), .. }) if *n == name.name => {
                        own += 1;
                        Some(0)
                    }
                    Selector::At(e) => match self.probing(|function| function.expr(e)).0 {
                        Ok(Judged::Vector(parts)) => Some(parts.len()),
                        _ => Some(1),
                    },
                };
                others = others.zip(taken).map(|(a, b)| a + b);
            }
            if let (1, Some(others)) = (own, others)
                && let Some(length) = tensor.rank().checked_sub(others)
            {
                least = Some(least.map_or(length, |least| least.min(length)));
            }
        }
        least
    }
}
