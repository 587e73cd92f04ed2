//! Nests that become one (Eq. 22, 23).

use std::rc::Rc;

use certen_index::{Ix, IxError};
use certen_syntax::schedule::{Arg, ArgKind};
use certen_syntax::{Code, Name};
use rustc_hash::FxHashSet;

use super::Nest;
use super::expression::{LoopExpression, path_of, step, too_complex};
use crate::ast::At;
use crate::nest::{Edit, Item, Loop, each_loop, fuse, parts};
use crate::rules::Evaluated;

impl LoopExpression<'_> {
    /// Eq. 22.
    pub(super) fn fuse_outer(&mut self, other: Nest, r: &At<i64>) -> Evaluated<()> {
        let (one, _) = self.position(r)?;
        let theirs =
            LoopExpression { context: self.context, by: self.by, span: self.span, nest: other, steps: Vec::new() };
        let (two, at) = theirs.position(r)?;
        let mut edit = Edit::default();
        for (a, b) in one.iter().zip(&two).take(at + 1) {
            let same = |x: &Ix, y: &Ix| -> Result<bool, IxError> {
                let y = y.substitute(&|name| edit.values.get(&name).cloned())?;
                Ok(self.context.sizes.equal(x, &y))
            };
            let equal = same(&a.lb, &b.lb).and_then(|lower| Ok(lower && same(&a.ub, &b.ub)?));
            if !equal.map_err(too_complex(self.span))? {
                let message = format!("the loops that are to be fused differ: `{}` and `{}`", a.index, b.index);
                let error = self.malformed(Code::E0246, r.span, message);
                let error =
                    error.note(format!("`{}` runs over {}, `{}` over {}", a.index, a.shown(), b.index, b.shown()));
                return Err(Box::new(error.note(theirs.shown().replacen("the nest", "the second nest", 1))));
            }
            edit.values.insert(b.index, Ix::var(a.index));
        }
        let mine: FxHashSet<usize> = self.nest.assignments.iter().copied().collect();
        if theirs.nest.assignments.iter().any(|statement| mine.contains(statement)) {
            return Err(self.malformed(Code::E0246, self.span, "both nests have the same statement"));
        }
        let mut items = self.nest.items.clone();
        items.extend(theirs.nest.items.iter().cloned());
        let assignments = self.nest.assignments.iter().chain(theirs.nest.assignments.iter()).copied();
        self.nest.assignments = Rc::new(assignments.collect());
        self.nest.items = items;
        let args = vec![self.path(&one[0], r.span), self.path(&two[0], r.span), Self::int(r.it, r.span)];
        self.fuse_levels(at + 1)?;
        self.step("fuse_outer", args);
        Ok(())
    }

    /// Fuses the two loops at the top, and then the only two inside, so many times.
    fn fuse_levels(&mut self, levels: usize) -> Evaluated<()> {
        let mut around: Vec<Rc<Loop>> = Vec::new();
        let mut stage = None;
        for _ in 0..levels {
            let items = around.last().map_or(&self.nest.items, |found| &found.body);
            let loops: Vec<usize> =
                items.iter().enumerate().filter(|(_, item)| matches!(item, Item::Loop(_))).map(|(at, _)| at).collect();
            let &[one, two] = loops.as_slice() else {
                let text = "the loops that are to be fused do not follow each other";
                return Err(self.malformed(Code::E0246, self.span, text));
            };
            let fused = self.fused(items, one, two, stage)?;
            stage = crate::nest::stage_at(items, one, stage);
            match around.len() {
                0 => self.nest.items = fused,
                depth => {
                    let with = vec![Loop { body: fused, ..(*around[depth - 1]).clone() }.into()];
                    self.nest.items = self.replaced(&around, depth - 1, with);
                }
            }
            around = self.chain()[..around.len() + 1].to_vec();
        }
        Ok(())
    }

    fn fused(&self, items: &[Item], one: usize, two: usize, stage: Option<Name>) -> Evaluated<Vec<Item>> {
        let names = self.taken();
        let is_taken = self.is_taken(&names);
        fuse(items, one, two, stage, &mut |name| is_taken(name)).map_err(too_complex(self.span))
    }

    /// Eq. 23: the loops inside loop r - 1 become one.
    pub(super) fn fuse_inner(&mut self, r: &At<i64>) -> Evaluated<()> {
        self.at_least(r, 1, "the position of a loop")?;
        let chain = self.chain();
        let depth = usize::try_from(r.it - 1).unwrap_or(usize::MAX);
        if depth > chain.len() {
            self.position(&At { it: r.it - 1, span: r.span })?;
        }
        let mut stage = None;
        if depth > 0 {
            each_loop(&self.nest.items, None, &mut |of, found| {
                if Rc::ptr_eq(found, &chain[depth - 1]) {
                    stage = of;
                }
            });
        }
        let mut items = if depth == 0 { self.nest.items.clone() } else { chain[depth - 1].body.clone() };
        let mut first: Option<Rc<Loop>> = None;
        for item in parts(&items) {
            let Item::Loop(found) = item else {
                let message = format!("not all that stands at level {} are loops", r.it);
                return Err(self.malformed(Code::E0246, r.span, message));
            };
            let first = first.get_or_insert_with(|| found.clone());
            if !(self.context.sizes.equal(&first.lb, &found.lb) && self.context.sizes.equal(&first.ub, &found.ub)) {
                let message = format!(
                    "the loops at level {} differ: `{}` runs over {}, `{}` over {}",
                    r.it,
                    first.index,
                    first.shown(),
                    found.index,
                    found.shown()
                );
                return Err(self.malformed(Code::E0246, r.span, message));
            }
        }
        if first.is_none() {
            return Err(self.malformed(Code::E0246, r.span, format!("there is no loop at level {}", r.it)));
        }
        let args = (depth > 0).then(|| vec![self.path(&chain[depth - 1], r.span)]);
        let mut count = 0;
        loop {
            let mut loops = items.iter().enumerate().filter(|(_, item)| matches!(item, Item::Loop(_)));
            let (Some((one, a)), Some((two, b))) = (loops.next(), loops.next()) else { break };
            count += 1;
            if let (None, Item::Loop(a), Item::Loop(b)) = (&args, a, b) {
                let pair = [a, b].map(|found| path_of(&items, found));
                let paths = pair.into_iter().flatten().map(|path| Arg { kind: ArgKind::Path(path), span: r.span });
                let args = paths.collect();
                self.steps.push(step("fuse_outer", args, self.span));
            }
            items = self.fused(&items, one, two, stage)?;
            if depth == 0 {
                self.nest.items = items.clone();
            } else {
                let with = vec![Loop { body: items.clone(), ..(*chain[depth - 1]).clone() }.into()];
                self.nest.items = self.replaced(&chain, depth - 1, with);
            }
        }
        if let (Some(args), 1..) = (args, count) {
            self.step("fuse_inner", args);
        }
        Ok(())
    }
}
