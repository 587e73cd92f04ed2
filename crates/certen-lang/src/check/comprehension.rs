//! Comprehensions: patterns, generators, partitions (SaC, Sec. 4 and 5.2).
//!
//! A partition is first *planned*: its indices get unique names, its written bounds are evaluated, and bounds that are
//! missing are inferred from its body ([`FindShapes`](super::bounds::FindShapes)). Then its body is checked where its
//! ranges hold and where no earlier partition has the index: the first partition wins.

use certen_core::TensorType;
use certen_index::{Cond, Ix, KnownOrder, Verdict};
use certen_syntax::{Code, Diagnostic, Name, Rule, Span};

use super::Checked;
use super::access::Access;
use super::bounds::{FindShapes, Upper, selections_with};
use super::index::{Index, extent, within};
use super::scope::Function;
use super::types::shape_text;
use super::value::{Draft, Value};
use crate::ast::{self, Bound, ExprKind, Ident, Pattern, Selector, Subject};
use crate::typed::{self, Expr, Kind};

/// Bounds that are left out are found in the body.
const FIND_SHAPES: Rule = Rule { name: "find-shapes", paper: "SaC, Sec. 5.2" };

/// The last partition gives the shape.
const LAST_PARTITION: Rule = Rule { name: "last partition", paper: "SaC, Sec. 4" };

/// All elements have one shape.
const HOMOGENEITY: Rule = Rule { name: "shape homogeneity", paper: "SaC, Sec. 6" };

/// A partition or generator before its body is checked.
pub(super) struct Plan {
    pub slots: Vec<Slot>,
    /// Unique names, outermost first.
    pub indices: Vec<Name>,
    /// What the user calls them.
    shown: Vec<String>,
    bindings: Vec<(Ident, Value)>,
    pub lower: Vec<End>,
    pub upper: Vec<End>,
    pub span: Span,
}

/// A place in a pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
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
    /// It was found.
    Found(Ix),
}

impl End {
    fn ix(&self) -> Option<&Ix> {
        match self {
            End::Written(ix) | End::Found(ix) => Some(ix),
            End::Missing | End::Dot => None,
        }
    }
}

impl Plan {
    /// The range of each index, once all are known.
    pub fn ranges(&self) -> Vec<typed::Range> {
        let written = |end: &End| matches!(end, End::Written(_));
        let ends = self.lower.iter().zip(&self.upper);
        ends.map(|(lower, upper)| typed::Range {
            lower: lower.ix().cloned().unwrap_or_else(|| Ix::from(0)),
            upper: upper.ix().cloned().unwrap_or_else(|| Ix::from(0)),
            lower_written: written(lower),
            upper_written: written(upper),
        })
        .collect()
    }

    /// For each dimension of a result of some rank: the index that it belongs to, or none for one of the body's.
    pub fn positions(&self, rank: usize) -> Vec<Option<usize>> {
        let fixed = self.slots.iter().filter(|slot| **slot != Slot::Dots).count();
        let rest = rank.saturating_sub(fixed);
        let mut positions = Vec::new();
        for slot in &self.slots {
            match slot {
                Slot::Index(at) => positions.push(Some(*at)),
                Slot::Dot => positions.push(None),
                Slot::Dots => positions.extend(std::iter::repeat_n(None, rest)),
            }
        }
        positions.resize(rank.max(positions.len()), None);
        positions
    }

    fn dots(&self) -> (usize, bool) {
        (self.slots.iter().filter(|slot| **slot == Slot::Dot).count(), self.slots.contains(&Slot::Dots))
    }
}

impl Function<'_, '_> {
    pub fn comprehension(&mut self, parts: &[ast::Partition], span: Span) -> Checked<Draft> {
        let Some((last, earlier)) = parts.split_last() else {
            return self.error(Code::E0103, span, "a comprehension without partitions");
        };
        let mut plan = self.plan(&last.pattern, &last.generator, None, Some(&last.body), last.span)?;
        let probed = self.infer(&mut plan, &last.body, None)?;
        self.starts_at_zero(&plan)?;
        if earlier.is_empty() {
            let body = match probed {
                Some(body) => body,
                None => self.evaluate(&plan, &last.body, Vec::new())?,
            };
            let total = self.total(&plan, &body)?;
            return self.assemble(vec![(plan, body)], total, span);
        }
        // The shape of the last body is needed first. Where bounds are being inferred further out, one walk over a body
        // has to do; else nested comprehensions would double the work at every level.
        let (total, probed) = match (probed, self.probe.is_some()) {
            (Some(body), _) => (self.total(&plan, &body)?, Some(body)),
            (None, true) => {
                let body = self.evaluate(&plan, &last.body, Vec::new())?;
                (self.total(&plan, &body)?, Some(body))
            }
            (None, false) => {
                let (made, _, errors) = self.probing(|function| function.evaluate(&plan, &last.body, Vec::new()));
                let Ok(body) = made else {
                    self.keep(errors);
                    return Err(super::Reported);
                };
                (self.total(&plan, &body)?, None)
            }
        };
        let mut plans = Vec::new();
        for part in earlier {
            let mut plan = self.plan(&part.pattern, &part.generator, Some(total.len()), Some(&part.body), part.span)?;
            let probed = self.infer(&mut plan, &part.body, Some(&total))?;
            self.stays_inside(&plan, &total, Some(LAST_PARTITION), part.span)?;
            plans.push((plan, probed));
        }
        plans.push((plan, probed));
        let mut made: Vec<(Plan, Draft)> = Vec::new();
        for ((plan, probed), part) in plans.into_iter().zip(parts) {
            let mut facts = Vec::new();
            for (before, _) in &made {
                facts.extend(self.not_in(before, &plan, total.len(), span)?);
            }
            let mut body = match probed {
                Some(body) => body,
                None => self.evaluate(&plan, &part.body, facts)?,
            };
            self.fits(&plan, &body, &total)?;
            if let Some((_, first)) = made.first_mut() {
                self.unify(first, &mut body, span)?;
            }
            made.push((plan, body));
        }
        self.assemble(made, total, span)
    }

    // Plans

    /// The indices of a pattern and its written bounds. `rank` is that of the result, if it is known.
    pub fn plan(
        &mut self,
        pattern: &Pattern,
        generator: &[ast::Relation],
        rank: Option<usize>,
        body: Option<&ast::Expr>,
        span: Span,
    ) -> Checked<Plan> {
        let mut bounds = Vec::new();
        for relation in generator {
            let lower = self.bound(relation.lower.as_ref(), false)?;
            let upper = self.bound(relation.upper.as_ref(), true)?;
            bounds.push((relation, lower, upper));
        }
        let own: Vec<ast::Slot> = match pattern {
            Pattern::Vector(name) => vec![ast::Slot::Rest(*name)],
            Pattern::List(slots, _) => slots.clone(),
        };
        let singles = own.iter().filter(|slot| matches!(slot, ast::Slot::Index(_))).count();
        let rest = own.iter().find_map(|slot| if let ast::Slot::Rest(name) = slot { Some(*name) } else { None });
        let length = match rest {
            None => 0,
            Some(name) => {
                let vector = |bound: &Option<Written>| match bound {
                    Some(Written::At(parts, true, _)) => Some(parts.len()),
                    _ => None,
                };
                let by_bounds = bounds.iter().find_map(|(relation, lower, upper)| {
                    let length = vector(lower).or_else(|| vector(upper))?;
                    match relation.subject {
                        Subject::All => length.checked_sub(singles),
                        Subject::One(one) => (one.name == name.name).then_some(length),
                    }
                });
                let dots = own.iter().filter(|slot| matches!(slot, ast::Slot::Dot(_))).count();
                let by_use = match (by_bounds, body) {
                    (None, Some(body)) => self.length_by_use(name, body),
                    (length, _) => length,
                };
                match by_use.or_else(|| rank.and_then(|rank| rank.checked_sub(singles + dots))) {
                    Some(length) => length,
                    None => {
                        let text = format!("nothing says how many indices `{}` has", name.name);
                        let error = Diagnostic::error(Code::E0230, name.span, text)
                            .help(format!("bound it: `{0} < shape(x)`, or select with it: `x[{0}]`", name.name));
                        return self.fail(error);
                    }
                }
            }
        };
        let mut plan = Plan {
            slots: Vec::new(),
            indices: Vec::new(),
            shown: Vec::new(),
            bindings: Vec::new(),
            lower: Vec::new(),
            upper: Vec::new(),
            span,
        };
        // Which indices a name of the pattern stands for.
        let mut named: Vec<(Name, std::ops::Range<usize>)> = Vec::new();
        for slot in own {
            match slot {
                ast::Slot::Dot(_) => plan.slots.push(Slot::Dot),
                ast::Slot::Dots(_) => plan.slots.push(Slot::Dots),
                ast::Slot::Index(ident) => {
                    if named.iter().any(|(name, _)| *name == ident.name) {
                        let text = format!("`{}` stands twice in this pattern", ident.name);
                        return self.error(Code::E0202, ident.span, text);
                    }
                    let (name, ix) = self.new_index(ident.name);
                    named.push((ident.name, plan.indices.len()..plan.indices.len() + 1));
                    plan.slots.push(Slot::Index(plan.indices.len()));
                    plan.indices.push(name);
                    plan.shown.push(ident.name.to_string());
                    plan.bindings.push((ident, Value::Index(ix.into())));
                }
                ast::Slot::Rest(ident) => {
                    let mut parts = Vec::new();
                    named.push((ident.name, plan.indices.len()..plan.indices.len() + length));
                    for at in 0..length {
                        let (name, ix) = self.new_component(ident.name, at);
                        plan.slots.push(Slot::Index(plan.indices.len()));
                        plan.indices.push(name);
                        plan.shown.push(format!("{}[{at}]", ident.name));
                        parts.push(Index::Is(ix));
                    }
                    plan.bindings.push((ident, Value::Vector(parts)));
                }
            }
        }
        plan.lower = vec![End::Missing; plan.indices.len()];
        plan.upper = vec![End::Missing; plan.indices.len()];
        for (relation, lower, upper) in bounds {
            let range = match relation.subject {
                Subject::All => 0..plan.indices.len(),
                Subject::One(one) => match named.iter().find(|(name, _)| *name == one.name) {
                    Some((_, range)) => range.clone(),
                    None => return self.error(Code::E0103, one.span, "this is no index of the pattern"),
                },
            };
            for (bound, ends, what) in [(lower, &mut plan.lower, "lower"), (upper, &mut plan.upper, "upper")] {
                let Some(bound) = bound else { continue };
                if ends[range.clone()].iter().any(|end| !matches!(end, End::Missing)) {
                    let text = format!("a second {what} bound for the same index");
                    return self.error(Code::E0202, relation.span, text);
                }
                match bound {
                    Written::Dot => ends[range.clone()].fill(End::Dot),
                    Written::At(parts, false, _) => {
                        let part = parts.first().cloned().unwrap_or_else(|| Ix::from(0));
                        ends[range.clone()].fill(End::Written(part));
                    }
                    Written::At(parts, true, span) => {
                        if parts.len() != range.len() {
                            let text = format!(
                                "a bound of {} components for {} {}",
                                parts.len(),
                                range.len(),
                                if range.len() == 1 { "index" } else { "indices" }
                            );
                            return self.error(Code::E0233, span, text);
                        }
                        for (end, part) in ends[range.clone()].iter_mut().zip(parts) {
                            *end = End::Written(part);
                        }
                    }
                }
            }
        }
        for end in &mut plan.lower {
            if matches!(end, End::Missing | End::Dot) {
                *end = End::Found(Ix::from(0));
            }
        }
        Ok(plan)
    }

    /// A written bound. A dot is the end of the range whichever relation stands beside it.
    fn bound(&mut self, bound: Option<&(Bound, bool)>, upper: bool) -> Checked<Option<Written>> {
        let Some((bound, reached)) = bound else { return Ok(None) };
        let e = match bound {
            Bound::Dot(_) => return Ok(Some(Written::Dot)),
            Bound::At(e) => e,
        };
        let (parts, vector) = match self.expr(e)? {
            Value::Index(index) => (vec![index], false),
            Value::Vector(parts) => (parts, true),
            value => return self.no_index(&value, e.span),
        };
        // Ranges are half open: `<` below and `<=` above move by one.
        let step = Ix::from(i64::from(*reached == upper));
        let mut plain = Vec::new();
        for part in parts {
            match part.plain() {
                Some(ix) => {
                    let made = ix.add(&step);
                    plain.push(self.made(e.span, made)?);
                }
                None => return self.error(Code::E0216, e.span, "a bound cannot depend on an `if`"),
            }
        }
        Ok(Some(Written::At(plain, vector, e.span)))
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
                        Ok(Value::Vector(parts)) => Some(parts.len()),
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

    // Bounds

    /// Finds the upper bounds that are missing: from the body, else from the shape of the result. If bounds are being
    /// inferred further out, the body that was evaluated for it is given back.
    fn infer(&mut self, plan: &mut Plan, body: &ast::Expr, total: Option<&[Ix]>) -> Checked<Option<Draft>> {
        let frame: Option<Vec<Ix>> = total.map(|total| {
            let positions = plan.positions(total.len());
            let size = |at: usize| positions.iter().position(|place| *place == Some(at)).and_then(|d| total.get(d));
            (0..plan.indices.len()).map(|at| size(at).cloned().unwrap_or_else(|| Ix::from(0))).collect()
        });
        for at in 0..plan.indices.len() {
            if matches!(plan.upper[at], End::Dot) {
                match &frame {
                    // It is the user's choice, so a stage that is read again must not infer another end.
                    Some(frame) => plan.upper[at] = End::Written(frame[at].clone()),
                    None => {
                        let text = "the last partition gives the shape, so its upper bound cannot be `.`";
                        return self.error(Code::E0230, plan.span, text);
                    }
                }
            }
        }
        let missing: Vec<usize> =
            (0..plan.indices.len()).filter(|at| matches!(plan.upper[*at], End::Missing)).collect();
        if missing.is_empty() {
            return Ok(None);
        }
        let wanted: Vec<Name> = missing.iter().map(|at| plan.indices[*at]).collect();
        let open = self.open.len();
        self.open.extend(&wanted);
        let mut facts = Vec::new();
        for (index, lower) in plan.indices.iter().zip(&plan.lower) {
            if let Some(lower) = lower.ix() {
                let made = Cond::le(lower, &Ix::var(*index));
                facts.push(self.made(plan.span, made)?);
            }
        }
        let (made, mut accesses, errors) = self.probing(|function| {
            function.under(facts, |function| {
                function.bind_pattern(plan)?;
                function.data(body)
            })
        });
        self.open.truncate(open);
        let draft = match made {
            Ok(draft) => draft,
            Err(reported) => {
                self.keep(errors);
                return Err(reported);
            }
        };
        let known = plan
            .indices
            .iter()
            .zip(plan.lower.iter().zip(&plan.upper))
            .filter_map(|(name, (lower, upper))| Some((*name, lower.ix()?.clone(), upper.ix()?.clone())))
            .collect();
        let find =
            FindShapes { facts: self.facts(), accesses: &accesses, guards: self.guards, open: &self.open, known };
        let found = find.all(&wanted);
        let unbounded = |(name, upper): &(Name, Upper)| match upper {
            Upper::Nothing => plan.indices.iter().position(|index| index == name).map(|at| plan.shown[at].clone()),
            _ => None,
        };
        let unbounded: Vec<String> = found.iter().filter_map(unbounded).collect();
        if frame.is_none() && !unbounded.is_empty() {
            let listed = unbounded.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ");
            let sizes = vec!["n"; unbounded.len()].join(", ");
            let (pattern, help) = match unbounded.as_slice() {
                [one] => (one.clone(), "n".to_string()),
                all => (format!("[{}]", all.join(", ")), format!("[{sizes}]")),
            };
            let error = Diagnostic::error(Code::E0230, plan.span, format!("there is no upper bound for {listed}"))
                .rule(FIND_SHAPES)
                .note(format!("no selection in the body says how far {listed} may go"))
                .help(format!("write it behind the body, for example `| {pattern} < {help}`"));
            return self.fail(error);
        }
        for (name, upper) in found {
            let Some(at) = plan.indices.iter().position(|index| *index == name) else { continue };
            plan.upper[at] = match (upper, &frame) {
                (Upper::Is(size), _) => End::Found(size),
                (Upper::Nothing, frame) => match frame {
                    Some(frame) => End::Found(frame[at].clone()),
                    None => continue,
                },
                (Upper::Unclear(candidates, _), _) if self.probe.is_some() => End::Found(candidates[0].0.clone()),
                (Upper::Unclear(candidates, order), _) => {
                    let error = self.unclear(&plan.shown[at], &candidates, order, plan.span);
                    return self.fail(error);
                }
            };
        }
        if let Some(outer) = &mut self.probe {
            let ranges = ranges_of(plan);
            accesses.iter_mut().for_each(|access| access.ranges.extend(ranges.iter().cloned()));
            outer.extend(accesses);
            return Ok(Some(draft));
        }
        Ok(None)
    }

    fn unclear(&self, shown: &str, [first, second]: &[(Ix, Span); 2], order: KnownOrder, span: Span) -> Diagnostic {
        let text = format!("two bounds for `{shown}`, and which is the smaller depends on the sizes");
        let mut error = Diagnostic::error(Code::E0237, span, text)
            .rule(FIND_SHAPES)
            .also(first.1, format!("here `{shown}` must be below {}", first.0))
            .also(second.1, format!("here `{shown}` must be below {}", second.0));
        if let KnownOrder::Depends(less, more) = order {
            error = error.note(format!("{} is smaller where {less}, and {} where {more}", first.0, second.0));
        }
        match self.equal_condition(&first.0, &second.0) {
            Some(clause) => error
                .help(format!("if they are meant to be equal, say so: `where {clause}`"))
                .help("or write the bound behind the body"),
            None => error.help("write the bound behind the body"),
        }
    }

    /// The last partition gives the shape, which begins at 0.
    fn starts_at_zero(&mut self, plan: &Plan) -> Checked<()> {
        for (at, range) in plan.ranges().iter().enumerate() {
            let made = Cond::le(&Ix::from(0), &range.lower)
                .and_then(|goal| Ok(goal.or(Cond::le(&range.upper, &range.lower)?)));
            let goal = self.made(plan.span, made)?;
            let (shown, lower) = (plan.shown[at].clone(), range.lower.clone());
            self.require(&goal, |_, _| {
                let text = format!("`{shown}` begins at {lower}, before the first element");
                Diagnostic::error(Code::E0238, plan.span, text).rule(LAST_PARTITION)
            })?;
        }
        Ok(())
    }

    /// A partition must stay inside the shape of the result.
    pub fn stays_inside(&mut self, plan: &Plan, total: &[Ix], rule: Option<Rule>, span: Span) -> Checked<()> {
        let positions = plan.positions(total.len());
        if positions.len() != total.len() {
            let text = format!("a partition of {} dimensions in a result of {}", positions.len(), total.len());
            return self.error(Code::E0233, span, text);
        }
        let ranges = plan.ranges();
        for (dim, place) in positions.iter().enumerate() {
            let Some(at) = place else { continue };
            let (range, size) = (&ranges[*at], &total[dim]);
            let made = Cond::le(&Ix::from(0), &range.lower)
                .and_then(|low| Ok(low.and(Cond::le(&range.upper, size)?)))
                .and_then(|goal| Ok(goal.or(Cond::le(&range.upper, &range.lower)?)));
            let goal = self.made(span, made)?;
            let text = format!(
                "this part leaves the result: `{}` goes from {} to below {}",
                plan.shown[*at], range.lower, range.upper
            );
            let note = format!("the result has the shape {}", shape_text(total));
            self.require(&goal, |_, verdict| {
                let error = Diagnostic { rule, ..Diagnostic::error(Code::E0238, span, text) };
                match verdict {
                    Verdict::No(_) => error.note(note),
                    _ => error.note(note).note("it could not be shown to stay inside"),
                }
            })?;
        }
        Ok(())
    }

    /// What holds of the indices of a partition where an earlier one has them not; nothing if the earlier one has an index
    /// for a dimension in which this one has none.
    pub fn not_in(&mut self, before: &Plan, plan: &Plan, rank: usize, span: Span) -> Checked<Option<Cond>> {
        let mut inside = Cond::always();
        let ranges = before.ranges();
        for (theirs, ours) in before.positions(rank).into_iter().zip(plan.positions(rank)) {
            match (theirs, ours) {
                (None, _) => {}
                (Some(_), None) => return Ok(None),
                (Some(theirs), Some(ours)) => {
                    let index = Ix::var(plan.indices[ours]);
                    let made = within(&index, &ranges[theirs].lower, &ranges[theirs].upper);
                    inside = inside.and(self.made(span, made)?);
                }
            }
        }
        let made = inside.not();
        self.made(span, made).map(Some)
    }

    // Bodies

    fn bind_pattern(&mut self, plan: &Plan) -> Checked<()> {
        for (ident, value) in &plan.bindings {
            self.bind_index(*ident, value.clone())?;
        }
        Ok(())
    }

    /// Checks a body where the ranges of its indices, and more, hold.
    pub fn evaluate(&mut self, plan: &Plan, body: &ast::Expr, more: Vec<Cond>) -> Checked<Draft> {
        let ranges = ranges_of(plan);
        let mut facts = more;
        for (name, lower, upper) in &ranges {
            let made = within(&Ix::var(*name), lower, upper);
            facts.push(self.made(plan.span, made)?);
        }
        let outer = self.ranges.len();
        let seen = self.probe.as_ref().map_or(0, Vec::len);
        self.ranges.extend(ranges.iter().cloned());
        let made = self.under(facts, |function| {
            function.bind_pattern(plan)?;
            function.data(body)
        });
        self.ranges.truncate(outer);
        if let Some(accesses) = &mut self.probe {
            accesses[seen..].iter_mut().for_each(|access: &mut Access| access.ranges.extend(ranges.iter().cloned()));
        }
        let draft = made?;
        let draft = self.outside(draft)?;
        for size in draft.expr.ty.shape.iter() {
            if let Some(at) = plan.indices.iter().position(|index| size.mentions(*index)) {
                let text = format!("the shape of the body depends on the index `{}`", plan.shown[at]);
                let error = Diagnostic::error(Code::E0233, body.span, text).note(format!(
                    "it is {}; all elements of a tensor have one shape",
                    shape_text(&draft.expr.ty.shape)
                ));
                return self
                    .fail(error.help("range over the largest shape, and leave elements out with `guard(c, e)`"));
            }
        }
        Ok(draft)
    }

    /// The shape that a partition gives: its upper bounds, and the body's dimensions where its dots are and last.
    fn total(&mut self, plan: &Plan, body: &Draft) -> Checked<Vec<Ix>> {
        let (dots, _) = plan.dots();
        if dots > body.rank() {
            let text = format!("{dots} dots for a body of {} dimensions", body.rank());
            let error = Diagnostic::error(Code::E0233, plan.span, text)
                .also(body.expr.span, format!("this has the shape {}", shape_text(&body.expr.ty.shape)));
            return self.fail(error);
        }
        let mut cells = body.expr.ty.shape.iter();
        let mut total = Vec::new();
        let ranges = plan.ranges();
        for place in plan.positions(plan.indices.len() + body.rank()) {
            match place {
                Some(at) => {
                    let made = extent(self.facts(), &Ix::from(0), &ranges[at].upper);
                    total.push(self.made(plan.span, made)?);
                }
                None => total.extend(cells.next().cloned()),
            }
        }
        Ok(total)
    }

    /// The body of an earlier partition must have the result's sizes where it has no indices.
    fn fits(&mut self, plan: &Plan, body: &Draft, total: &[Ix]) -> Checked<()> {
        let (dots, _) = plan.dots();
        let rank = plan.indices.len() + body.rank();
        let wrong = |note: String| {
            Diagnostic::error(Code::E0233, body.expr.span, "this partition has another shape than the last one")
                .rule(HOMOGENEITY)
                .note(format!("its elements have the shape {}", shape_text(&body.expr.ty.shape)))
                .note(note)
        };
        if rank != total.len() || dots > body.rank() {
            let error = wrong(format!("the last partition gives the shape {}", shape_text(total)));
            return self.fail(error);
        }
        let cells = plan.positions(rank).into_iter().enumerate().filter(|(_, place)| place.is_none());
        for ((dim, _), size) in cells.zip(body.expr.ty.shape.iter()) {
            if self.facts().prove_equal(size, &total[dim]) != Verdict::Yes {
                let error =
                    wrong(format!("{size} should be {}: the result has the shape {}", total[dim], shape_text(total)));
                return self.fail(error);
            }
        }
        Ok(())
    }

    /// The comprehension of checked partitions.
    fn assemble(&mut self, mut made: Vec<(Plan, Draft)>, total: Vec<Ix>, span: Span) -> Checked<Draft> {
        // The first body has met all others, so it knows what they agreed on.
        let (elem, flex) = made
            .first()
            .map(|(_, body)| (body.elem(), body.flex))
            .unwrap_or((certen_core::ElemType::F64, super::value::Flex::No));
        let count = made.first().map_or(0, |(plan, _)| plan.indices.len());
        // Where one partition has indices or dots that another leaves out, all dimensions are written out, so that the
        // patterns stay of one length when dots become indices.
        let uneven =
            made.len() > 1 && made.iter().any(|(plan, _)| plan.indices.len() != count || plan.dots() != (0, false));
        let mut partitions = Vec::new();
        for (plan, mut body) in made.drain(..) {
            self.release(&plan.indices);
            self.settle(&mut body, elem, flex)?;
            let (dots, rest) = plan.dots();
            let rest_length = body.rank() - dots;
            let mut pattern: Vec<typed::Slot> = plan
                .slots
                .iter()
                .map(|slot| match slot {
                    Slot::Index(at) => typed::Slot::Index(plan.indices[*at]),
                    Slot::Dot => typed::Slot::Dots(1),
                    Slot::Dots => typed::Slot::Dots(rest_length),
                })
                .collect();
            if uneven && !rest && rest_length > 0 {
                pattern.push(typed::Slot::Dots(rest_length));
            }
            partitions.push(typed::Partition { pattern, ranges: plan.ranges(), body: body.expr });
        }
        let ty = TensorType::new(elem, total);
        Ok(Draft { expr: Expr { kind: Kind::Comprehension(partitions), ty, span }, flex })
    }
}

/// A bound that is written: its components, and whether it is a vector.
enum Written {
    Dot,
    At(Vec<Ix>, bool, Span),
}

fn ranges_of(plan: &Plan) -> Vec<(Name, Ix, Ix)> {
    plan.indices.iter().zip(plan.ranges()).map(|(name, range)| (*name, range.lower, range.upper)).collect()
}
