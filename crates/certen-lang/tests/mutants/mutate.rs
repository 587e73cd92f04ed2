//! Mutants: a program with one number or name of the index level changed by one.
//!
//! The places are those where an index, a bound, a stride, an offset or a size stands: between the brackets of a
//! selection, in generators and `where` clauses, in the conditions of `if` and `guard`, in the shape of a `genarray`, in
//! arguments that are indices. Types stay as they are; that of a result is left out first, since it would refuse most
//! mutants for their shape.

use certen_lang::ast::{Block, Bound, Elem, Expr, ExprKind, File, Function, Item, Relation, Results, Selector, WithOp};
use certen_lang::parse::parse;
use certen_syntax::{Diagnostics, Name, Sources, Span};

/// A changed program, and what was changed.
pub struct Mutant {
    pub text: String,
    pub change: String,
}

fn read(text: &str) -> File {
    let mut sources = Sources::new();
    let file = sources.add("original", text);
    let mut diagnostics = Diagnostics::new();
    let ast = parse(sources.get(file).unwrap(), file, &mut diagnostics);
    assert!(!diagnostics.has_errors());
    ast
}

/// A text in which functions do not say what they give, those on indices aside.
pub fn without_results(text: &str) -> String {
    let mut text = text.to_owned();
    for item in read(&text).items.iter().rev() {
        if let Item::Function(Function { results: Results::One(ty), .. }) = item
            && ty.elem != Elem::Size
            && let Some(arrow) = text[..ty.span.start as usize].rfind("->")
        {
            text.replace_range(arrow..ty.span.end as usize, "");
        }
    }
    text
}

/// All mutants of a text.
pub fn mutants(text: &str) -> Vec<Mutant> {
    let ast = read(text);
    let mut places = Places { file: &ast, found: Vec::new() };
    for item in &ast.items {
        if let Item::Function(function) = item {
            function.wheres.iter().for_each(|clause| places.index(clause));
            places.block(&function.body);
        }
    }
    places.found.sort_by_key(|(span, _)| span.start);
    let mut mutants = Vec::new();
    for (span, number) in places.found {
        let (start, end) = (span.start as usize, span.end as usize);
        let old = &text[start..end];
        for step in [1, -1] {
            let new = match number {
                Some(number) if number + step < 0 => format!("({})", number + step),
                Some(number) => (number + step).to_string(),
                None if step == 1 => format!("({old} + 1)"),
                None => format!("({old} - 1)"),
            };
            let line = 1 + text[..start].matches('\n').count();
            let column = start - text[..start].rfind('\n').map_or(0, |at| at + 1) + 1;
            mutants.push(Mutant {
                change: format!("{line}:{column}: {old} becomes {new}"),
                text: format!("{}{new}{}", &text[..start], &text[end..]),
            });
        }
    }
    mutants
}

struct Places<'a> {
    file: &'a File,
    found: Vec<(Span, Option<i64>)>,
}

impl Places<'_> {
    /// An expression of the index level: its names and numbers.
    fn index(&mut self, e: &Expr) {
        match &e.kind {
            ExprKind::Int(number) => self.found.push((e.span, Some(*number))),
            ExprKind::Name(_) => self.found.push((e.span, None)),
            ExprKind::Select(_, selectors) => self.selectors(selectors),
            // The argument is a tensor.
            ExprKind::Call(name, ..) if matches!(name.name.as_str(), "shape" | "dim") => {}
            ExprKind::If(cond, then, otherwise) => {
                self.index(cond);
                self.index_block(then);
                self.index_block(otherwise);
            }
            _ => {
                let mut parts = Vec::new();
                e.parts(&mut parts);
                parts.into_iter().for_each(|part| self.index(part));
            }
        }
    }

    fn index_block(&mut self, block: &Block) {
        block.lets.iter().for_each(|binding| self.index(&binding.value));
        block.results.iter().for_each(|result| self.index(result));
    }

    fn block(&mut self, block: &Block) {
        block.lets.iter().for_each(|binding| self.data(&binding.value));
        block.results.iter().for_each(|result| self.data(result));
    }

    /// An expression of the data level: what is of the index level inside it.
    fn data(&mut self, e: &Expr) {
        match &e.kind {
            ExprKind::Select(base, selectors) => {
                self.data(base);
                self.selectors(selectors);
            }
            ExprKind::Call(name, args, named) => {
                for (at, arg) in args.iter().enumerate() {
                    if self.takes_index(name.name, at) { self.index(arg) } else { self.data(arg) }
                }
                named.iter().for_each(|(_, arg)| self.index(arg));
            }
            ExprKind::If(cond, then, otherwise) => {
                if speaks_of_data(cond) {
                    self.data(cond)
                } else {
                    self.index(cond)
                }
                self.block(then);
                self.block(otherwise);
            }
            ExprKind::Comprehension(partitions) => {
                for partition in partitions {
                    partition.generator.iter().for_each(|relation| self.relation(relation));
                    self.data(&partition.body);
                }
            }
            ExprKind::With(with) => {
                for (_, relation, body) in &with.generators {
                    self.relation(relation);
                    self.data(body);
                }
                match &with.operation {
                    WithOp::Genarray(shape, default) => {
                        self.index(shape);
                        default.iter().for_each(|default| self.data(default));
                    }
                    WithOp::Modarray(e) | WithOp::Fold(_, e) => self.data(e),
                }
            }
            ExprKind::Iterate(iterate) => {
                self.index(&iterate.times);
                iterate.states.iter().for_each(|(_, init)| self.data(init));
                self.block(&iterate.body);
            }
            ExprKind::Block(block) => self.block(block),
            _ => {
                let mut parts = Vec::new();
                e.parts(&mut parts);
                parts.into_iter().for_each(|part| self.data(part));
            }
        }
    }

    fn selectors(&mut self, selectors: &[Selector]) {
        for selector in selectors {
            match selector {
                Selector::At(e) => self.index(e),
                Selector::Slice(from, to, _) => from.iter().chain(to).for_each(|e| self.index(e)),
                Selector::Dot(_) | Selector::Dots(_) => {}
            }
        }
    }

    fn relation(&mut self, relation: &Relation) {
        for (bound, _) in relation.lower.iter().chain(&relation.upper) {
            if let Bound::At(e) = bound {
                self.index(e);
            }
        }
    }

    /// Whether an argument of a function is of the index level.
    fn takes_index(&self, name: Name, at: usize) -> bool {
        let own = |item: &Item| matches!(item, Item::Function(function) if function.name.name == name);
        if let Some(Item::Function(Function { params, .. })) = self.file.items.iter().find(|item| own(item)) {
            return params.get(at).is_some_and(|param| param.ty.elem == Elem::Size);
        }
        let first = ["guard", "split", "reshape", "pad_l", "pad_r", "trunc_l", "trunc_r", "take", "drop"];
        at == 0 && first.contains(&name.as_str())
    }
}

/// Whether an expression reads a tensor or has a number with a point.
fn speaks_of_data(e: &Expr) -> bool {
    let mut todo = vec![e];
    while let Some(e) = todo.pop() {
        if matches!(e.kind, ExprKind::Select(..) | ExprKind::Float(_)) {
            return true;
        }
        e.parts(&mut todo);
    }
    false
}
