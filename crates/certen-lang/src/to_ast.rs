//! The typed tree as a program again: every stage of elaboration as a `.ten` text that parses, checks and means the same.
//!
//! Each instance is a function with the name of the instance and the types that it was instantiated with. A size that
//! some tensor has as a plain dimension is bound by it; all other index-level parameters become parameters `k: size` in
//! front of the tensors, in the order of [`typed::Function::sizes`], and calls pass them in front. Of the ranges those
//! ends are shown that are marked as written.
//!
//! Two things that the typed tree says with types the text has to say with words: a number or index is data of the
//! element type that its surroundings want, and where they want none it is converted (`f32(2.0)`, `f64(i)`); and a fold
//! with a function calls it by its name, where one that is associative states its identity.

use std::collections::{HashMap, HashSet};

use certen_core::{Binary, ElemType, Literal, ReduceOp, TensorType, Unary};
use certen_index::{Cond, IndexFunction, Ix, Notation};
use certen_syntax::{Diagnostics, Name, Sources, Span};

use crate::ast::{self, BinaryOp, ExprKind, Ident, UnaryOp};
use crate::parse::parse_expr;
use crate::tree::{Met, names_of, walk_block};
use crate::typed::{
    Block, Bound, Call, Expr, FoldOp, Function, FunctionId, Generator, Iterate, Kind, Partition, Program, Range, Side,
    Slot, WithDefault,
};

/// The program as a file: its functions in order, the entry among them.
pub fn to_ast(program: &Program) -> ast::File {
    let mut writer = Writer::new(program);
    let mut items = Vec::new();
    for (id, function) in program.functions.iter().enumerate() {
        let made = writer.function(id, function);
        items.extend(writer.steps.drain(..).map(ast::Item::Function));
        items.push(ast::Item::Function(made));
    }
    ast::File { items }
}

/// How index expressions are written: as the parser of index expressions reads them, but `min` and `max` take two.
struct Pairs;

impl Notation for Pairs {
    fn call(&mut self, function: IndexFunction, arguments: &[String]) -> String {
        let word = match function {
            IndexFunction::FloorDiv => "floor_div",
            IndexFunction::Min => "min",
            IndexFunction::Max => "max",
        };
        let pair = |a: String, b: &String| format!("{word}({a}, {b})");
        let mut arguments = arguments.iter();
        let first = arguments.next().cloned().unwrap_or_default();
        arguments.fold(first, pair)
    }
}

fn node(kind: ExprKind) -> ast::Expr {
    ast::Expr { kind, span: Span::default() }
}

fn ident(name: Name) -> Ident {
    Ident { name, span: Span::default() }
}

fn name(name: Name) -> ast::Expr {
    node(ExprKind::Name(name))
}

fn call(function: &str, args: Vec<ast::Expr>) -> ast::Expr {
    node(ExprKind::Call(ident(function.into()), args, Vec::new()))
}

fn list(parts: impl IntoIterator<Item = ast::Expr>) -> ast::Expr {
    node(ExprKind::List(parts.into_iter().collect()))
}

fn negated(e: ast::Expr) -> ast::Expr {
    node(ExprKind::Unary(UnaryOp::Neg, Box::new(e)))
}

fn int(value: i64) -> ast::Expr {
    match value.checked_neg() {
        Some(positive) if value < 0 => negated(node(ExprKind::Int(positive))),
        // The smallest integer has no opposite.
        None => node(ExprKind::Binary(BinaryOp::Sub, Box::new(int(value + 1)), Box::new(int(1)))),
        _ => node(ExprKind::Int(value)),
    }
}

/// The text of an index expression or condition as a tree.
fn parsed(text: &str) -> ast::Expr {
    let mut sources = Sources::new();
    let file = sources.add("", text);
    let read = sources.get(file).and_then(|source| parse_expr(source, file, &mut Diagnostics::new()));
    read.unwrap_or_else(|| name(text.into()))
}

fn ix(ix: &Ix) -> ast::Expr {
    match (ix.as_constant(), ix.as_var()) {
        (Some(value), _) => int(value),
        (_, Some(var)) => name(var),
        _ => parsed(&ix.write(&mut Pairs)),
    }
}

fn cond(cond: &Cond) -> ast::Expr {
    match (cond.is_always(), cond.is_never()) {
        (true, _) => parsed("0 == 0"),
        (_, true) => parsed("0 == 1"),
        _ => parsed(&cond.write(&mut Pairs)),
    }
}

fn ty(ty: &TensorType) -> ast::Type {
    let dims = ty.shape.iter().map(|size| ast::Dim::Size(ix(size))).collect();
    ast::Type { elem: ast::Elem::Is(ty.elem), dims, span: Span::default() }
}

/// Whether the text of an expression would be of the index level by itself.
fn is_index_like(e: &Expr) -> bool {
    match &e.kind {
        Kind::Index(_) | Kind::Literal(Literal::Int(_)) => true,
        Kind::Stack(parts) => parts.iter().all(is_index_like),
        _ => false,
    }
}

/// Whether an expression takes the element type that its surroundings want.
fn adapts(e: &Expr) -> bool {
    match &e.kind {
        Kind::Index(_) | Kind::Literal(Literal::Int(_) | Literal::Float(_)) => true,
        Kind::Unary(Unary::Neg | Unary::Abs, a) => adapts(a),
        Kind::Binary(_, a, b) => adapts(a) && adapts(b),
        Kind::Stack(parts) => parts.iter().all(adapts),
        _ => false,
    }
}

/// Whether the surroundings say which element type is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Known,
    Open,
}

struct Writer<'a> {
    program: &'a Program,
    /// For each function, whether a size is a parameter of its own in the text.
    passed: Vec<Vec<bool>>,
    /// The identities of functions that are used as associative ones.
    identities: HashMap<FunctionId, &'a Expr>,
    /// Functions that had to be made for folds, to stand before the function that uses them.
    steps: Vec<ast::Function>,
    taken: HashSet<Name>,
}

impl<'a> Writer<'a> {
    fn new(program: &'a Program) -> Self {
        let mut identities = HashMap::new();
        for function in &program.functions {
            walk_block(&function.body, &mut |met| {
                if let Met::Expr(Expr { kind: Kind::Fold(fold), .. }) = met
                    && let FoldOp::Function { associative: true, .. } = &fold.op
                    && let Some(step) = fold_step(&fold.op)
                {
                    identities.insert(step, &fold.neutral);
                }
            });
        }
        Writer {
            program,
            passed: program.functions.iter().map(passed).collect(),
            identities,
            steps: Vec::new(),
            taken: program.functions.iter().map(|function| function.name).collect(),
        }
    }

    fn function(&mut self, id: FunctionId, function: &'a Function) -> ast::Function {
        let sizes = function.sizes.iter().zip(&self.passed[id]).filter(|(_, passed)| **passed);
        let size = ast::Type { elem: ast::Elem::Size, dims: Vec::new(), span: Span::default() };
        let mut params: Vec<ast::Param> =
            sizes.map(|(k, _)| ast::Param { name: ident(k.name), ty: size.clone() }).collect();
        params.extend(function.params.iter().map(|(n, t)| ast::Param { name: ident(*n), ty: ty(t) }));
        let bound = |fact: &Cond| {
            let mut sizes = function.sizes.iter().zip(&self.passed[id]);
            sizes.any(|(k, passed)| !passed && *fact == Cond::Ge(Ix::var(k.name)))
        };
        let wheres = function.facts.iter().filter(|fact| !bound(fact)).map(cond).collect();
        let results = match function.results.as_slice() {
            [(n, t)] if n.as_str() == "result" => ast::Results::One(ty(t)),
            several => {
                ast::Results::Named(several.iter().map(|(n, t)| ast::Param { name: ident(*n), ty: ty(t) }).collect())
            }
        };
        let associative = self.identities.get(&id).copied().map(|identity| self.expr(identity, Wanted::Known));
        ast::Function {
            name: ident(function.name),
            params,
            results,
            associative,
            wheres,
            body: self.block(&function.body, Wanted::Known),
            span: Span::default(),
        }
    }

    fn block(&mut self, block: &'a Block, wanted: Wanted) -> ast::Block {
        let mut lets = Vec::new();
        for bound in &block.lets {
            let names = bound.names.iter().map(|(n, _)| ident(*n)).collect();
            let mut stated = None;
            let value = match &bound.value {
                Bound::Expr(e) => {
                    // Without its type it would be an index, or of another element type.
                    stated = adapts(e).then(|| ty(&e.ty));
                    self.expr(e, if stated.is_some() { Wanted::Known } else { Wanted::Open })
                }
                Bound::Call(called) => self.call(called),
                Bound::Iterate(iterate) => self.iterate(iterate),
            };
            lets.push(ast::Let { names, ty: stated, value });
        }
        let results = block.results.iter().map(|e| self.expr(e, wanted)).collect();
        ast::Block { lets, results, span: Span::default() }
    }

    /// A block for one expression.
    fn braced(&mut self, e: &'a Expr, wanted: Wanted) -> Box<ast::Block> {
        Box::new(match &e.kind {
            Kind::Block(block) => self.block(block, wanted),
            _ => ast::Block { lets: Vec::new(), results: vec![self.expr(e, wanted)], span: Span::default() },
        })
    }

    fn call(&mut self, called: &'a Call) -> ast::Expr {
        let Some(function) = self.program.functions.get(called.function) else { return list([]) };
        let sizes = called.sizes.iter().zip(&self.passed[called.function]).filter(|(_, passed)| **passed);
        let mut args: Vec<ast::Expr> = sizes.map(|(size, _)| ix(size)).collect();
        args.extend(called.args.iter().map(|arg| self.expr(arg, Wanted::Known)));
        node(ExprKind::Call(ident(function.name), args, Vec::new()))
    }

    fn iterate(&mut self, iterate: &'a Iterate) -> ast::Expr {
        let mut counts = false;
        walk_block(&iterate.body, &mut |met| counts |= names_of(&met).contains(&iterate.step));
        let states = iterate.states.iter();
        let states = states.map(|(state, first)| (ident(*state), self.expr(first, Wanted::Open))).collect();
        node(ExprKind::Iterate(Box::new(ast::Iterate {
            step: counts.then(|| ident(iterate.step)),
            times: ix(&iterate.times),
            states,
            body: self.block(&iterate.body, Wanted::Known),
        })))
    }

    fn expr(&mut self, e: &'a Expr, wanted: Wanted) -> ast::Expr {
        match &e.kind {
            Kind::Var(var) => name(*var),
            Kind::Literal(literal) => self.literal(*literal, e.ty.elem, wanted),
            Kind::Index(index) => match wanted {
                Wanted::Known => ix(index),
                Wanted::Open => call(e.ty.elem.name(), vec![ix(index)]),
            },
            Kind::Stack(parts) => {
                // One part that is data makes the list data, and the others are of its type.
                let wanted = |at: usize| if at == 0 { Wanted::Open } else { Wanted::Known };
                let parts: Vec<ast::Expr> =
                    parts.iter().enumerate().map(|(at, part)| self.expr(part, wanted(at))).collect();
                list(parts)
            }
            Kind::Select(a, indices) => {
                let at = indices.iter().map(|index| ast::Selector::At(ix(index))).collect();
                node(ExprKind::Select(Box::new(self.expr(a, Wanted::Open)), at))
            }
            Kind::Comprehension(partitions) => {
                node(ExprKind::Comprehension(partitions.iter().map(|p| self.partition(p)).collect()))
            }
            Kind::With(with) => {
                let generators = with.generators.iter().map(|generator| self.generator(generator)).collect();
                let operation = match &with.default {
                    WithDefault::Cell(cell) => {
                        let frame = list(with.frame.iter().map(ix));
                        ast::WithOp::Genarray(frame, Some(self.expr(cell, Wanted::Open)))
                    }
                    WithDefault::Array(array) => ast::WithOp::Modarray(self.expr(array, Wanted::Open)),
                };
                node(ExprKind::With(Box::new(ast::With { generators, operation })))
            }
            Kind::Fold(fold) => {
                let generators = fold.generators.iter().map(|generator| self.generator(generator)).collect();
                let op = match &fold.op {
                    FoldOp::Reduce(op) => fold_op(*op),
                    function => ast::FoldOp::Function(ident(self.step(function, &fold.neutral, &e.ty))),
                };
                let operation = ast::WithOp::Fold(op, self.expr(&fold.neutral, Wanted::Open));
                node(ExprKind::With(Box::new(ast::With { generators, operation })))
            }
            Kind::Unary(op, a) => {
                let a = self.expr(a, wanted);
                match op {
                    Unary::Neg => negated(a),
                    Unary::Not => node(ExprKind::Unary(UnaryOp::Not, Box::new(a))),
                    _ => call(op.name(), vec![a]),
                }
            }
            Kind::Binary(op, a, b) => self.binary(*op, a, b, wanted),
            Kind::Choose(c, a, b) => {
                let c = self.expr(c, Wanted::Open);
                let (a, b) = self.pair(a, b, wanted);
                call("select", vec![c, a, b])
            }
            Kind::If(c, a, b) => {
                let (then, otherwise) = (self.braced(a, Wanted::Open), self.braced(b, Wanted::Open));
                node(ExprKind::If(Box::new(cond(c)), then, otherwise))
            }
            Kind::Guard(c, a) => call("guard", vec![cond(c), self.expr(a, Wanted::Open)]),
            Kind::Cast(a) => call(e.ty.elem.name(), vec![self.expr(a, Wanted::Open)]),
            Kind::Reduce(_, axes, a) if axes.is_empty() => self.expr(a, wanted),
            Kind::Reduce(op, axes, a) => {
                let axis = match axes.as_slice() {
                    [_, ..] if axes.len() == a.ty.rank() => None,
                    [axis] => Some(int(*axis as i64)),
                    axes => Some(list(axes.iter().map(|axis| int(*axis as i64)))),
                };
                let named = axis.map(|axis| (ident("axis".into()), axis)).into_iter().collect();
                let a = self.expr(a, Wanted::Open);
                node(ExprKind::Call(ident(reduce_name(*op).into()), vec![a], named))
            }
            Kind::Call(called) => self.call(called),
            Kind::Iterate(iterate) => self.iterate(iterate),
            Kind::Block(block) => node(ExprKind::Block(Box::new(self.block(block, wanted)))),
            Kind::Flatten(a) => call("flatten", vec![self.expr(a, Wanted::Open)]),
            Kind::Split(k, a) => call("split", vec![int(*k), self.expr(a, Wanted::Open)]),
            Kind::Transpose(a) => call("transpose", vec![self.expr(a, Wanted::Open)]),
            Kind::Stored(a) => call("stored", vec![self.expr(a, Wanted::Open)]),
            Kind::Concat(a, b) => {
                let (a, b) = (self.expr(a, Wanted::Open), self.expr(b, Wanted::Open));
                node(ExprKind::Binary(BinaryOp::Concat, Box::new(a), Box::new(b)))
            }
            Kind::Pad(side, k, a) => {
                let word = if *side == Side::Left { "pad_l" } else { "pad_r" };
                call(word, vec![ix(k), self.expr(a, Wanted::Open)])
            }
            Kind::Trunc(side, k, a) => {
                let word = if *side == Side::Left { "trunc_l" } else { "trunc_r" };
                call(word, vec![ix(k), self.expr(a, Wanted::Open)])
            }
            Kind::Reshape(a) => call("reshape", vec![list(e.ty.shape.iter().map(ix)), self.expr(a, Wanted::Open)]),
        }
    }

    fn literal(&self, literal: Literal, elem: ElemType, wanted: Wanted) -> ast::Expr {
        let (number, default) = match literal {
            Literal::Bool(value) => return node(ExprKind::Bool(value)),
            // By itself a whole number would be an index.
            Literal::Int(value) => (int(value), None),
            Literal::Float(value) => (float(value), Some(ElemType::F64)),
        };
        if wanted == Wanted::Known || default == Some(elem) { number } else { call(elem.name(), vec![number]) }
    }

    /// Two operands of one element type: one that has a type of its own says it for the other.
    fn pair(&mut self, a: &'a Expr, b: &'a Expr, wanted: Wanted) -> (ast::Expr, ast::Expr) {
        let known = |other: &Expr| if adapts(other) { wanted } else { Wanted::Known };
        // Of two that are indices, one must be data all the same.
        let left = if is_index_like(a) && is_index_like(b) { Wanted::Open } else { known(b) };
        (self.expr(a, left), self.expr(b, known(a)))
    }

    fn binary(&mut self, op: Binary, a: &'a Expr, b: &'a Expr, wanted: Wanted) -> ast::Expr {
        let compares = matches!(op, Binary::Lt | Binary::Le | Binary::Eq | Binary::Ne);
        let (a, b) = self.pair(a, b, if compares { Wanted::Open } else { wanted });
        let op = match op {
            Binary::Add => BinaryOp::Add,
            Binary::Sub => BinaryOp::Sub,
            Binary::Mul => BinaryOp::Mul,
            Binary::Div => BinaryOp::Div,
            Binary::And => BinaryOp::And,
            Binary::Or => BinaryOp::Or,
            Binary::Lt => BinaryOp::Lt,
            Binary::Le => BinaryOp::Le,
            Binary::Eq => BinaryOp::Eq,
            Binary::Ne => BinaryOp::Ne,
            Binary::ControlledDiv | Binary::FloorDiv | Binary::Mod | Binary::Min | Binary::Max | Binary::Pow => {
                return call(op.name(), vec![a, b]);
            }
        };
        node(ExprKind::Binary(op, Box::new(a), Box::new(b)))
    }

    fn partition(&mut self, partition: &'a Partition) -> ast::Partition {
        let mut slots = Vec::new();
        for slot in &partition.pattern {
            match slot {
                Slot::Index(index) => slots.push(ast::Slot::Index(ident(*index))),
                Slot::Dots(dots) => slots.extend((0..*dots).map(|_| ast::Slot::Dot(Span::default()))),
            }
        }
        let indices = partition.pattern.iter().filter_map(|slot| match slot {
            Slot::Index(index) => Some(*index),
            Slot::Dots(_) => None,
        });
        let ranges: Vec<(Name, &Range)> = indices.zip(&partition.ranges).collect();
        ast::Partition {
            pattern: ast::Pattern::List(slots, Span::default()),
            body: self.expr(&partition.body, Wanted::Open),
            generator: relations(&ranges),
            span: Span::default(),
        }
    }

    fn generator(&mut self, generator: &'a Generator) -> (ast::Pattern, ast::Relation, ast::Expr) {
        let slots = generator.indices.iter().map(|(index, _)| ast::Slot::Index(ident(*index))).collect();
        let ranges: Vec<&Range> = generator.indices.iter().map(|(_, range)| range).collect();
        let body = self.expr(&generator.body, Wanted::Open);
        (ast::Pattern::List(slots, Span::default()), of_all(&ranges, true, true), body)
    }

    /// The function that a fold combines with: the one that the user named, or one that is made of the expression.
    fn step(&mut self, op: &'a FoldOp, neutral: &'a Expr, state: &TensorType) -> Name {
        if let Some(function) = fold_step(op).and_then(|id| self.program.functions.get(id)) {
            return function.name;
        }
        let step = Name::fresh("step", |name| self.taken.contains(&name));
        self.taken.insert(step);
        if let FoldOp::Function { so_far, element, next, associative } = op {
            let param = |n: Name| ast::Param { name: ident(n), ty: ty(state) };
            let associative = associative.then(|| self.expr(neutral, Wanted::Known));
            let body = *self.braced(next, Wanted::Known);
            self.steps.push(ast::Function {
                name: ident(step),
                params: vec![param(*so_far), param(*element)],
                results: ast::Results::One(ty(state)),
                associative,
                wheres: Vec::new(),
                body,
                span: Span::default(),
            });
        }
        step
    }
}

/// Which sizes are parameters of their own: those that the user passes, and those that no tensor has as a dimension.
fn passed(function: &Function) -> Vec<bool> {
    let dims: HashSet<Name> =
        function.params.iter().flat_map(|(_, ty)| ty.shape.iter()).filter_map(Ix::as_var).collect();
    function.sizes.iter().map(|size| size.given || !dims.contains(&size.name)).collect()
}

/// The function that a fold calls for each step, if the step is nothing but that.
fn fold_step(op: &FoldOp) -> Option<FunctionId> {
    let FoldOp::Function { so_far, element, next, .. } = op else { return None };
    let Kind::Call(called) = &next.kind else { return None };
    let is = |e: &Expr, wanted: Name| matches!(e.kind, Kind::Var(name) if name == wanted);
    match called.args.as_slice() {
        [a, b] if is(a, *so_far) && is(b, *element) => Some(called.function),
        _ => None,
    }
}

fn fold_op(op: ReduceOp) -> ast::FoldOp {
    match op {
        ReduceOp::Sum => ast::FoldOp::Sum,
        ReduceOp::Prod => ast::FoldOp::Prod,
        ReduceOp::Min => ast::FoldOp::Min,
        ReduceOp::Max => ast::FoldOp::Max,
        ReduceOp::All => ast::FoldOp::All,
        ReduceOp::Any => ast::FoldOp::Any,
    }
}

fn reduce_name(op: ReduceOp) -> &'static str {
    match op {
        ReduceOp::Sum => "sum",
        ReduceOp::Prod => "prod",
        ReduceOp::Min => "min",
        ReduceOp::Max => "max",
        ReduceOp::All => "all",
        ReduceOp::Any => "any",
    }
}

/// A number; infinities and what is no number are quotients.
fn float(value: f64) -> ast::Expr {
    let quotient = |a: f64| {
        let (a, b) = (node(ExprKind::Float(a)), node(ExprKind::Float(0.0)));
        node(ExprKind::Binary(BinaryOp::Div, Box::new(a), Box::new(b)))
    };
    match value {
        _ if value.is_nan() => quotient(0.0),
        _ if value.is_sign_negative() => negated(float(-value)),
        _ if value.is_infinite() => quotient(1.0),
        _ => node(ExprKind::Float(value)),
    }
}

/// `lower <= [i, j] < upper`, without an end that is not wanted.
fn of_all(ranges: &[&Range], lower: bool, upper: bool) -> ast::Relation {
    let bound = |end: fn(&Range) -> &Ix| ast::Bound::At(list(ranges.iter().map(|range| ix(end(range)))));
    ast::Relation {
        lower: lower.then(|| (bound(|range| &range.lower), true)),
        subject: ast::Subject::All,
        upper: upper.then(|| (bound(|range| &range.upper), false)),
        span: Span::default(),
    }
}

/// The ends of ranges that are written: for all indices at once if the same ends are, else for each.
fn relations(ranges: &[(Name, &Range)]) -> Vec<ast::Relation> {
    let written = |range: &Range| (range.lower_written, range.upper_written);
    let Some((_, first)) = ranges.first() else { return Vec::new() };
    let (lower, upper) = written(first);
    if ranges.iter().all(|(_, range)| written(range) == (lower, upper)) {
        let all: Vec<&Range> = ranges.iter().map(|(_, range)| *range).collect();
        return if lower || upper { vec![of_all(&all, lower, upper)] } else { Vec::new() };
    }
    let shown = ranges.iter().filter(|(_, range)| range.lower_written || range.upper_written);
    shown
        .map(|(index, range)| ast::Relation {
            lower: range.lower_written.then(|| (ast::Bound::At(ix(&range.lower)), true)),
            subject: ast::Subject::One(ident(*index)),
            upper: range.upper_written.then(|| (ast::Bound::At(ix(&range.upper)), false)),
            span: Span::default(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use certen_core::Binary;
    use certen_syntax::{Diagnostics, Sources};

    use super::to_ast;
    use crate::parse::parse;
    use crate::passes;
    use crate::testing::*;
    use crate::typed::{Fold, FoldOp, Kind, Program};

    /// The text, which is read as the same text again.
    fn text(program: &Program) -> String {
        let text = to_ast(program).to_string();
        let mut sources = Sources::new();
        let file = sources.add("stage.ten", text.clone());
        let mut diagnostics = Diagnostics::new();
        let read = parse(sources.get(file).unwrap(), file, &mut diagnostics);
        assert!(!diagnostics.has_errors(), "{text}\n{diagnostics:?}");
        assert_eq!(read.to_string(), text);
        text
    }

    #[test]
    fn every_stage_is_a_program() {
        let body = binary(Binary::Add, at(var("a", "n,m"), "i"), number(-1.5));
        let inner = comprehension(vec![partition("i,.", &[("0", "n-1")], body)], "n-1,m");
        let mut stage = program(vec![function("f", "n,m", &[("a", "n,m")], vec![bind("b", inner)], var("b", "n-1,m"))]);
        let mut texts = vec![text(&stage)];
        for pass in passes::ALL {
            (pass.run)(&mut stage);
            texts.push(text(&stage));
        }
        let binding = |text: &String| {
            let words: Vec<&str> = text.split_whitespace().collect();
            words.join(" ").split(" { ").skip(1).collect::<Vec<_>>().join(" { ").split(';').next().map(String::from)
        };
        let lines: Vec<String> = texts.iter().filter_map(binding).collect();
        assert_eq!(
            lines,
            [
                "let b = { [i, .] -> a[i] + -1.5 }",
                "let b = { [i, .] -> a[i] + -1.5 | [0] <= [i] < [n - 1] }",
                "let b = { [i, t1] -> (a[i] + -1.5)[t1] | [0, 0] <= [i, t1] < [n - 1, m] }",
                "let b = with { ([0, 0] <= [i, t1] < [n - 1, m]) : (a[i] + -1.5)[t1] } : genarray( [n - 1, m], 0.0 )",
            ]
        );
        assert!(texts[0].starts_with("fn f(a: f64[n, m]) -> f64[n-1, m] {"), "{}", texts[0]);
    }

    #[test]
    fn sizes_that_no_dimension_binds_are_passed() {
        let mut f = function("f", "k,n", &[("x", "n+k")], vec![], at(var("x", "n+k"), "n"));
        f.facts.push(certen_index::Cond::lt(&ix("0"), &ix("k")).unwrap());
        assert_eq!(
            text(&program(vec![f])),
            "fn f(k: size, n: size, x: f64[k+n]) -> f64 where k >= 0, n >= 0, k >= 1 {\n    x[n]\n}\n"
        );
    }

    #[test]
    fn a_fold_names_its_function() {
        let next = binary(Binary::Add, var("s", ""), var("e", ""));
        let op = FoldOp::Function { so_far: "s".into(), element: "e".into(), next, associative: true };
        let generators = vec![generator(&[("i", "0", "n")], at(var("x", "n"), "i"))];
        let fold = expr(Kind::Fold(Box::new(Fold { generators, neutral: number(0.0), op })), "");
        let text = text(&program(vec![function("f", "n", &[("x", "n")], vec![], fold)]));
        assert!(text.starts_with("fn step(s: f64, e: f64) -> f64 associative(0.0) {"), "{text}");
        assert!(text.contains("fold(step, 0.0)"), "{text}");
    }
}
