//! A loop expression that is being evaluated: the patterns of Fig. 9, the names of loops, and parts in other parts'
//! places.

use std::rc::Rc;

use certen_index::{Cond, Facts, Ix, IxError};
use certen_syntax::schedule::{Arg, ArgKind, Path, Step};
use certen_syntax::{Code, Diagnostic, Name, Span};
use rustc_hash::FxHashSet;

use super::{Context, Nest};
use crate::ast::At;
use crate::nest::{Item, Loop, Mode, each_loop, loop_names, only_loop, ranges, shown};
use crate::rules::{Evaluated, malformed};

/// A loop expression that is being evaluated.
pub(super) struct LoopExpression<'a> {
    pub context: &'a Context<'a>,
    pub by: u8,
    pub span: Span,
    pub nest: Nest,
    pub steps: Vec<Step>,
}

pub(super) fn too_complex(span: Span) -> impl Fn(IxError) -> Box<Diagnostic> {
    move |error| Box::new(Diagnostic::error(Code::E0216, span, format!("a bound would be too complex: {error}")))
}

pub(super) fn step(name: &str, args: Vec<Arg>, span: Span) -> Step {
    Step { name: Name::new(name), args, span }
}

/// What a step calls a loop of a tree.
pub(super) fn path_of(items: &[Item], wanted: &Rc<Loop>) -> Option<Path> {
    let mut stage = None;
    each_loop(items, None, &mut |of, found| {
        if Rc::ptr_eq(found, wanted) {
            stage = of;
        }
    });
    let stage = stage?;
    let (mut count, mut nth) = (0, 0);
    each_loop(items, None, &mut |of, found| {
        if of == Some(stage) && found.index == wanted.index {
            count += 1;
            if Rc::ptr_eq(found, wanted) {
                nth = count;
            }
        }
    });
    let parts = [stage].into_iter().chain(wanted.index.as_str().split('.').map(Name::new));
    Some(Path { parts: parts.collect(), nth: (count > 1).then_some(nth) })
}

impl LoopExpression<'_> {
    // Patterns

    /// The loops of the perfect part, outermost first.
    pub(super) fn chain(&self) -> Vec<Rc<Loop>> {
        let mut chain: Vec<Rc<Loop>> = Vec::new();
        let mut items = &self.nest.items;
        while let Some(found) = only_loop(items) {
            chain.push(found.clone());
            items = &found.body;
        }
        chain
    }

    pub(super) fn malformed(&self, code: Code, span: Span, message: impl Into<String>) -> Box<Diagnostic> {
        let error = match self.by {
            0 => Diagnostic::error(code, span, message),
            by => *malformed(code, by, span, message),
        };
        Box::new(error.note(self.shown()))
    }

    pub(super) fn shown(&self) -> String {
        let tree = shown(&self.nest.items, self.context.leaf);
        match ranges(&self.nest.items) {
            ranges if ranges.is_empty() => format!("the nest is {tree}"),
            ranges => format!("the nest is {tree}, {ranges}"),
        }
    }

    pub(super) fn at_least(&self, number: &At<i64>, least: i64, what: &str) -> Evaluated<()> {
        if number.it < least {
            let text = format!("{what} is at least {least}, not {}", number.it);
            return Err(self.malformed(Code::E0246, number.span, text));
        }
        Ok(())
    }

    /// The pattern ⟨i1, … ⟨ir, xs⟩ … ⟩: the loops of the perfect part, and the position from 0.
    pub(super) fn position(&self, r: &At<i64>) -> Evaluated<(Vec<Rc<Loop>>, usize)> {
        let chain = self.chain();
        match usize::try_from(r.it) {
            Ok(at) if (1..=chain.len()).contains(&at) => Ok((chain, at - 1)),
            _ => {
                let message = match chain.len() {
                    0 => "nothing here is one loop in which all others are".to_owned(),
                    1 => format!("the nest has one loop, and no loop {}", r.it),
                    all => format!("the nest has {all} loops inside each other, and no loop {}", r.it),
                };
                Err(self.malformed(Code::E0246, r.span, message))
            }
        }
    }

    // Names and places

    pub(super) fn path(&self, found: &Rc<Loop>, span: Span) -> Arg {
        let path = path_of(&self.nest.items, found).unwrap_or(Path { parts: vec![found.index], nth: None });
        Arg { kind: ArgKind::Path(path), span }
    }

    pub(super) fn int(value: i64, span: Span) -> Arg {
        Arg { kind: ArgKind::Int(value), span }
    }

    pub(super) fn step(&mut self, name: &str, args: Vec<Arg>) {
        self.steps.push(step(name, args, self.span));
    }

    /// Whether a loop cannot have a name, since something near has it.
    pub(super) fn taken(&self) -> FxHashSet<Name> {
        loop_names(&self.nest.items)
    }

    pub(super) fn is_taken<'b>(&'b self, names: &'b FxHashSet<Name>) -> impl Fn(Name) -> bool + 'b {
        |name| names.contains(&name) || (self.context.taken)(name) || self.context.sizes.has(name)
    }

    pub(super) fn piece(&self, index: Name, suffix: &str) -> Name {
        let names = self.taken();
        Name::fresh(&format!("{index}.{suffix}"), self.is_taken(&names))
    }

    /// What holds in the loops around a position.
    pub(super) fn facts(&self, around: &[Rc<Loop>]) -> Evaluated<Facts> {
        let ranges: Result<Vec<Cond>, IxError> = around.iter().map(|found| found.within()).collect();
        let ranges = ranges.map_err(too_complex(self.span))?;
        let all: Vec<&Ix> = self.all_bounds();
        Ok(self.context.sizes.around(&ranges, &all))
    }

    pub(super) fn all_bounds(&self) -> Vec<&Ix> {
        fn collect<'b>(items: &'b [Item], out: &mut Vec<&'b Ix>) {
            for item in items {
                match item {
                    Item::Loop(found) => {
                        out.extend([&found.lo, &found.hi]);
                        collect(&found.body, out);
                    }
                    Item::Guard(guard) => collect(&guard.body, out),
                    Item::Leaf(_) | Item::Label(_) => {}
                }
            }
        }
        let mut out = Vec::new();
        collect(&self.nest.items, &mut out);
        out
    }

    /// The tree with other parts in the place of the loop at a position of the perfect part.
    pub(super) fn replaced(&self, chain: &[Rc<Loop>], at: usize, with: Vec<Item>) -> Vec<Item> {
        let put = |items: &[Item], with: Vec<Item>| {
            let mut out = Vec::with_capacity(items.len() + with.len());
            let mut with = Some(with);
            for item in items {
                match item {
                    Item::Label(_) => out.push(item.clone()),
                    _ => out.extend(with.take().unwrap_or_default()),
                }
            }
            out
        };
        let mut with = with;
        for around in chain[..at].iter().rev() {
            with = vec![Loop { body: put(&around.body, with), ..(**around).clone() }.into()];
        }
        put(&self.nest.items, with)
    }

    pub(super) fn replace(&mut self, chain: &[Rc<Loop>], at: usize, with: Vec<Item>) {
        self.nest.items = self.replaced(chain, at, with);
    }

    /// Sec. 3.3.3: how a loop runs.
    pub(super) fn mode(&mut self, r: &At<i64>, mode: Mode) -> Evaluated<()> {
        let (chain, at) = self.position(r)?;
        let with = vec![Loop { mode, ..(*chain[at]).clone() }.into()];
        self.replace(&chain, at, with);
        Ok(())
    }
}
