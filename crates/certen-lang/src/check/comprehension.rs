//! Comprehensions: patterns, generators, partitions (SaC, Sec. 4 and 5.2).
//!
//! A partition is first planned ([`super::plan`]), and bounds that are missing are inferred from its body
//! ([`FindShapes`](super::bounds::FindShapes)). Then its body is checked where its ranges hold and where no earlier
//! partition has the index: the first partition wins.

use certen_core::TensorType;
use certen_index::{Cond, Ix, KnownOrder, Verdict};
use certen_syntax::{Code, Diagnostic, Name, Rule, Span};

use super::Checked;
use super::bounds::{FindShapes, Upper};
use super::index::{extent, within};
use super::plan::{End, Plan, PlanSlot};
use super::scope::{Access, Checker};
use super::types::shape_text;
use super::value::Draft;
use super::wanted::Wanted;
use crate::ast;
use crate::typed::{self, Expr, Kind};

/// Bounds that are left out are found in the body.
const FIND_SHAPES: Rule = Rule { name: "find-shapes", paper: "SaC, Sec. 5.2" };

/// The last partition gives the shape.
const LAST_PARTITION: Rule = Rule { name: "last partition", paper: "SaC, Sec. 4" };

/// All elements have one shape.
const HOMOGENEITY: Rule = Rule { name: "shape homogeneity", paper: "SaC, Sec. 6" };

impl Checker<'_, '_> {
    pub fn comprehension(&mut self, parts: &[ast::Partition], span: Span) -> Checked<Draft> {
        let Some((last, earlier)) = parts.split_last() else {
            return self.error(Code::E0103, span, "a comprehension without partitions");
        };
        let wanted = self.wanted_at(span, 0);
        let rank = wanted.as_ref().map(|wanted| wanted.shape.len());
        let mut plan = self.plan(&last.pattern, &last.generator, rank, Some(&last.body), last.span)?;
        let probed = self.infer(&mut plan, &last.body, wanted.as_ref(), true)?;
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
        let frame = Wanted::new(&total, last.span);
        let mut plans = Vec::new();
        for part in earlier {
            let mut plan = self.plan(&part.pattern, &part.generator, Some(total.len()), Some(&part.body), part.span)?;
            let probed = self.infer(&mut plan, &part.body, Some(&frame), false)?;
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

    /// Finds the upper bounds that are missing: from the body, else from the shape that the result should have. If bounds
    /// are being inferred further out, the body that was evaluated for it is given back.
    fn infer(
        &mut self,
        plan: &mut Plan,
        body: &ast::Expr,
        wanted: Option<&Wanted>,
        last: bool,
    ) -> Checked<Option<Draft>> {
        let frame = self.frame(plan, body, wanted);
        for (upper, size) in plan.upper.iter_mut().zip(&frame) {
            if matches!(upper, End::Dot) {
                *upper = match size {
                    // It is the user's choice, so a stage that is read again must not infer another end.
                    Some(size) => End::Written(size.clone()),
                    None if !last => End::Written(Ix::from(0)),
                    None => {
                        let text = "the last partition gives the shape, so its upper bound cannot be `.`";
                        return self.error(Code::E0230, plan.span, text);
                    }
                };
            }
        }
        let missing = plan.indices.iter().zip(&plan.upper).filter(|(_, upper)| matches!(upper, End::Missing));
        let wanted_ends: Vec<Name> = missing.map(|(index, _)| *index).collect();
        if wanted_ends.is_empty() {
            return Ok(None);
        }
        let (draft, mut accesses) = self.probe_body(plan, &wanted_ends, body)?;
        let ends = plan.indices.iter().zip(plan.lower.iter().zip(&plan.upper));
        let known =
            ends.filter_map(|(name, (lower, upper))| Some((*name, lower.ix()?.clone(), upper.ix()?.clone()))).collect();
        let find = FindShapes {
            facts: self.facts(),
            accesses: &accesses,
            guards: self.guards,
            open: &self.open,
            known,
            stated: plan
                .indices
                .iter()
                .copied()
                .zip(&frame)
                .filter_map(|(name, size)| Some((name, size.clone()?)))
                .collect(),
            sizes: &self.sizes,
            shapes: last,
        };
        let found = find.all(&wanted_ends);
        self.take_found(plan, found, wanted.filter(|_| last).map(|wanted| wanted.from), last)?;
        if let Some(outer) = &mut self.probe {
            let ranges = plan.named_ranges();
            accesses.iter_mut().for_each(|access| access.ranges.extend(ranges.iter().cloned()));
            outer.extend(accesses);
            return Ok(Some(draft));
        }
        Ok(None)
    }

    /// What the shape of the result says of the end of each index. What it says of the elements is wanted of the body.
    fn frame(&mut self, plan: &Plan, body: &ast::Expr, wanted: Option<&Wanted>) -> Vec<Option<Ix>> {
        let mut frame = vec![None; plan.indices.len()];
        let Some(wanted) = wanted else { return frame };
        let positions = plan.positions(wanted.shape.len());
        if positions.len() != wanted.shape.len() {
            return frame;
        }
        for (place, size) in positions.iter().zip(wanted.shape.iter()) {
            place.iter().for_each(|at| frame[*at].clone_from(size));
        }
        // A number has nothing that is left out.
        let cell = Some(wanted.inside(|dim| positions[dim].is_none())).filter(|cell| !cell.shape.is_empty());
        self.want(body, cell.as_ref());
        frame
    }

    /// Evaluates a body while the upper bounds of some indices are open, and lists what it accesses.
    fn probe_body(&mut self, plan: &Plan, wanted: &[Name], body: &ast::Expr) -> Checked<(Draft, Vec<Access>)> {
        let open = self.open.len();
        self.open.extend(wanted);
        let mut facts = Vec::new();
        for (index, lower) in plan.indices.iter().zip(&plan.lower) {
            if let Some(lower) = lower.ix() {
                facts.push(self.made(plan.span, Cond::le(lower, &Ix::var(*index)))?);
            }
        }
        let (made, accesses, errors) = self.probing(|function| {
            function.under(facts, |function| {
                function.bind_pattern(plan)?;
                function.data(body)
            })
        });
        self.open.truncate(open);
        match made {
            Ok(draft) => Ok((draft, accesses)),
            Err(reported) => {
                self.keep(errors);
                Err(reported)
            }
        }
    }

    /// Puts the upper bounds that were found into a plan. `from` is the type that states the others.
    fn take_found(
        &mut self,
        plan: &mut Plan,
        found: Vec<(Name, Upper)>,
        from: Option<Span>,
        last: bool,
    ) -> Checked<()> {
        let position = |plan: &Plan, name: &Name| plan.indices.iter().position(|index| index == name);
        let unbounded: Vec<String> = found
            .iter()
            .filter(|(_, upper)| matches!(upper, Upper::Nothing))
            .filter_map(|(name, _)| position(plan, name).map(|at| plan.shown[at].clone()))
            .collect();
        if last && !unbounded.is_empty() {
            return self.fail(no_bound(&unbounded, plan.span));
        }
        for (name, upper) in found {
            let Some(at) = position(plan, &name) else { continue };
            plan.upper[at] = match upper {
                Upper::Is(size) => End::Found(size),
                Upper::Stated(size) => match from {
                    Some(from) => {
                        self.stated.insert(name, from);
                        End::Stated(size)
                    }
                    None => End::Found(size),
                },
                // It leaves the result, which is said where partitions have to stay inside.
                Upper::Nothing => End::Found(Ix::from(0)),
                Upper::Unclear(candidates, _) if self.probe.is_some() => End::Found(candidates[0].0.clone()),
                Upper::Unclear(candidates, order) => {
                    let error = self.unclear(&plan.shown[at], &candidates, order, plan.span);
                    return self.fail(error);
                }
            };
        }
        Ok(())
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
                .help("or write the bound after the body"),
            None => error.help("write the bound after the body"),
        }
    }

    /// The last partition gives the shape, which begins at 0.
    fn starts_at_zero(&mut self, plan: &Plan) -> Checked<()> {
        for (at, range) in plan.ranges().iter().enumerate() {
            let made = Cond::le(&Ix::from(0), &range.lower).and_then(|goal| plan.unless_empty(goal));
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
                .and_then(|goal| plan.unless_empty(goal));
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

    /// What holds of the indices of a partition where an earlier one does not have them; nothing if the earlier one has an
    /// index for a dimension in which this one has none.
    pub fn not_in(&mut self, before: &Plan, plan: &Plan, rank: usize, span: Span) -> Checked<Option<Cond>> {
        let mut inside = Cond::always();
        let ranges = before.ranges();
        for (theirs, ours) in before.positions(rank).into_iter().zip(plan.positions(rank)) {
            match (theirs, ours) {
                (None, _) => {}
                (Some(_), None) => return Ok(None),
                (Some(theirs), Some(ours)) => {
                    let index = Ix::var(plan.indices[ours]);
                    inside = inside.and(self.made(span, within(&index, &ranges[theirs].lower, &ranges[theirs].upper))?);
                }
            }
        }
        self.made(span, inside.not()).map(Some)
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
        let ranges = plan.named_ranges();
        let mut facts = more;
        for (name, lower, upper) in &ranges {
            facts.push(self.made(plan.span, within(&Ix::var(*name), lower, upper))?);
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
                    total.push(self.made(plan.span, extent(self.facts(), &Ix::from(0), &ranges[at].upper))?);
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
                    PlanSlot::Index(at) => typed::Slot::Index(plan.indices[*at]),
                    PlanSlot::Dot => typed::Slot::Dots(1),
                    PlanSlot::Dots => typed::Slot::Dots(rest_length),
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

fn no_bound(unbounded: &[String], span: Span) -> Diagnostic {
    let listed = unbounded.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ");
    let (pattern, help) = match unbounded {
        [one] => (one.clone(), "n".to_string()),
        all => (format!("[{}]", all.join(", ")), format!("[{}]", vec!["n"; all.len()].join(", "))),
    };
    Diagnostic::error(Code::E0230, span, format!("there is no upper bound for {listed}"))
        .rule(FIND_SHAPES)
        .note(format!("nothing in the body says how far {listed} may go"))
        .help(format!("write it after the body, for example `| {pattern} < {help}`, or state the type of the result"))
}
