//! The typed tree as a program again: every stage of elaboration as a `.ten` text that parses, checks and means the
//! same.
//!
//! Each instance is a function with the name of the instance and the types that it was instantiated with. A size that
//! some tensor has as a plain dimension is bound by it; all other index-level parameters become parameters `k: size` in
//! front of the tensors, in the order of [`typed::Function::sizes`], and calls pass them in front. Of each range, the
//! ends that are marked as written are shown.
//!
//! Two things that the typed tree says with types the text has to say with words: a number or index is data of the
//! element type that its surroundings want, and where they want none it is converted (`f32(2.0)`, `f64(i)`); and a fold
//! with a function calls it by its name, where one that is associative states its identity.

mod nodes;

use std::collections::{HashMap, HashSet};

use certen_core::{Binary, ElemType, Literal, ReduceOp, TensorType, Unary};
use certen_index::{Cond, Ix};
use certen_syntax::{Name, Span};

use crate::ast::{self, BinaryOp, ExprKind, UnaryOp};
use crate::tree::{Met, names_of, walk_block};
use crate::typed::{
    Block, Call, Expr, Fold, FoldOp, Function, FunctionId, Generator, Iterate, Kind, Partition, Program, Range, Rhs,
    Side, Slot, WithDefault, epsilon,
};
use nodes::{call, cond, ident, int, ix, list, name, negated, node, ty};

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
                Rhs::Expr(e) => {
                    // Without its type it would be an index, or of another element type.
                    stated = adapts(e).then(|| ty(&e.ty));
                    self.expr(e, if stated.is_some() { Wanted::Known } else { Wanted::Open })
                }
                Rhs::Call(called) => self.call(called),
                Rhs::Iterate(iterate) => self.iterate(iterate),
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
            Kind::Epsilon => self.literal(epsilon(e.ty.elem), e.ty.elem, wanted),
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
            Kind::Fold(fold) => self.fold(fold, &e.ty),
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
            Kind::Guard(c, a) => self.applied("guard", Some(cond(c)), a),
            Kind::Cast(a) => self.applied(e.ty.elem.name(), None, a),
            Kind::Reduce(_, axes, a) if axes.is_empty() => self.expr(a, wanted),
            Kind::Reduce(op, axes, a) => self.reduce(*op, axes, a),
            Kind::Call(called) => self.call(called),
            Kind::Iterate(iterate) => self.iterate(iterate),
            Kind::Block(block) => node(ExprKind::Block(Box::new(self.block(block, wanted)))),
            Kind::Flatten(a) => self.applied("flatten", None, a),
            Kind::Split(k, a) => self.applied("split", Some(int(*k)), a),
            Kind::Transpose(a) => self.applied("transpose", None, a),
            Kind::Stored(a) => self.applied("stored", None, a),
            Kind::Concat(a, b) => {
                let (a, b) = (self.expr(a, Wanted::Open), self.expr(b, Wanted::Open));
                node(ExprKind::Binary(BinaryOp::Concat, Box::new(a), Box::new(b)))
            }
            Kind::Pad(Side::Left, k, a) => self.applied("pad_l", Some(ix(k)), a),
            Kind::Pad(Side::Right, k, a) => self.applied("pad_r", Some(ix(k)), a),
            Kind::Trunc(Side::Left, k, a) => self.applied("trunc_l", Some(ix(k)), a),
            Kind::Trunc(Side::Right, k, a) => self.applied("trunc_r", Some(ix(k)), a),
            Kind::Reshape(a) => self.applied("reshape", Some(list(e.ty.shape.iter().map(ix))), a),
        }
    }

    /// A built-in function of a tensor, which some other argument can stand before.
    fn applied(&mut self, word: &str, before: Option<ast::Expr>, a: &'a Expr) -> ast::Expr {
        let a = self.expr(a, Wanted::Open);
        call(word, before.into_iter().chain([a]).collect())
    }

    fn fold(&mut self, fold: &'a Fold, ty: &TensorType) -> ast::Expr {
        let generators = fold.generators.iter().map(|generator| self.generator(generator)).collect();
        let op = match &fold.op {
            FoldOp::Reduce(op) => fold_op(*op),
            function => ast::FoldOp::Function(ident(self.step(function, &fold.neutral, ty))),
        };
        let operation = ast::WithOp::Fold(op, self.expr(&fold.neutral, Wanted::Open));
        node(ExprKind::With(Box::new(ast::With { generators, operation })))
    }

    fn reduce(&mut self, op: ReduceOp, axes: &[usize], a: &'a Expr) -> ast::Expr {
        let axis = match axes {
            [_, ..] if axes.len() == a.ty.rank() => None,
            [axis] => Some(int(*axis as i64)),
            axes => Some(list(axes.iter().map(|axis| int(*axis as i64)))),
        };
        let named = axis.map(|axis| (ident("axis".into()), axis)).into_iter().collect();
        let a = self.expr(a, Wanted::Open);
        node(ExprKind::Call(ident(reduce_name(op).into()), vec![a], named))
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
        // Of two that are indices, one must still be data.
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
            Binary::ControlledDiv
            | Binary::FloorDiv
            | Binary::Mod
            | Binary::Min
            | Binary::Max
            | Binary::Pow
            | Binary::Atan2
            | Binary::Hypot
            | Binary::LibmPow
            | Binary::LibmAtan2
            | Binary::LibmHypot => {
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

/// A number; infinities and what is not a number are quotients.
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
