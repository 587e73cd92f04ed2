//! The tree as text: `Display` for files, functions, types, patterns and expressions.
//!
//! Parentheses stand only where precedence needs them, and around what ends in a block (`if`, `with`, `iterate`) where
//! it is an operand. `+ - * /` directly in the brackets of a selection or type stand without spaces: `x[i+1]`. A
//! block's bindings and the partitions of a comprehension have lines of their own; other lines are broken at brackets
//! and operators where they would be longer than 100 columns (see [`pretty`](crate::pretty)).
//!
//! Guarantee: the text of a tree that was read is read as the same tree, up to places and [`ExprKind::Paren`]. Nothing
//! recurses: what is still to be printed waits on a stack.

use std::fmt;

use crate::ast::{
    BinaryOp, Block, Bound, Const, Dim, Elem, Expr, ExprKind, File, FoldOp, Function, Ident, Import, Item, Iterate,
    Let, Param, Partition, Pattern, Relation, Results, Selector, Slot, Subject, Type, UnaryOp, With, WithOp,
};
use crate::pretty::{Chunk, layout};

/// How tightly unary operators bind: looser than the power.
const UNARY: u8 = 7;
/// What needs no parentheses anywhere.
const ATOM: u8 = 9;

/// What is to be printed.
enum Todo<'a> {
    Chunk(Chunk),
    /// With parentheses if it binds less tightly.
    Expr(&'a Expr, u8, Spaces),
    Block(&'a Block),
}

/// Whether spaces stand around `+ - * /`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spaces {
    Around,
    None,
}

/// Things in the order in which they are printed.
#[derive(Default)]
struct Seq<'a>(Vec<Todo<'a>>);

impl<'a> Seq<'a> {
    fn piece(&mut self, piece: Chunk) -> &mut Self {
        self.0.push(Todo::Chunk(piece));
        self
    }

    fn text(&mut self, text: impl Into<String>) -> &mut Self {
        self.piece(Chunk::Text(text.into()))
    }

    fn name(&mut self, name: &Ident) -> &mut Self {
        self.text(name.name.as_str())
    }

    fn expr(&mut self, expr: &'a Expr, tightness: u8) -> &mut Self {
        self.within(expr, tightness, Spaces::Around)
    }

    /// An expression directly in the brackets of a selection or type.
    fn index(&mut self, expr: &'a Expr, tightness: u8) -> &mut Self {
        self.within(expr, tightness, Spaces::None)
    }

    fn within(&mut self, expr: &'a Expr, tightness: u8, spaces: Spaces) -> &mut Self {
        self.0.push(Todo::Expr(expr, tightness, spaces));
        self
    }

    fn block(&mut self, block: &'a Block) -> &mut Self {
        self.0.push(Todo::Block(block));
        self
    }

    /// Something in brackets, on lines of its own if it does not fit.
    fn bracketed(&mut self, open: &str, close: &str, space: &'static str, inner: impl FnOnce(&mut Self)) -> &mut Self {
        self.piece(Chunk::Open).text(open).piece(Chunk::Indent).piece(Chunk::Break(space));
        inner(self);
        self.piece(Chunk::Dedent).piece(Chunk::Break(space)).text(close).piece(Chunk::Close)
    }

    fn separated<T>(&mut self, between: Chunk, parts: &'a [T], one: impl Fn(&mut Self, &'a T)) -> &mut Self {
        for (at, part) in parts.iter().enumerate() {
            if at > 0 {
                self.text(",").piece(between.clone());
            }
            one(self, part);
        }
        self
    }

    fn list<T>(&mut self, open: &str, close: &str, parts: &'a [T], one: impl Fn(&mut Self, &'a T)) -> &mut Self {
        if parts.is_empty() {
            return self.text(open).text(close);
        }
        self.bracketed(open, close, "", |seq| {
            seq.separated(Chunk::Break(" "), parts, one);
        })
    }
}

fn print<'a>(start: Seq<'a>) -> String {
    let mut todo: Vec<Todo<'a>> = start.0.into_iter().rev().collect();
    let mut pieces = Vec::new();
    while let Some(next) = todo.pop() {
        let mut seq = Seq::default();
        match next {
            Todo::Chunk(piece) => pieces.push(piece),
            Todo::Expr(expr, tightness, spaces) => seq.put_expr(without_parens(expr), tightness, spaces),
            Todo::Block(block) => seq.put_block(block),
        }
        todo.extend(seq.0.into_iter().rev());
    }
    layout(&pieces)
}

fn without_parens(mut expr: &Expr) -> &Expr {
    while let ExprKind::Paren(inner) = &expr.kind {
        expr = inner;
    }
    expr
}

fn precedence(expr: &Expr) -> u8 {
    match &expr.kind {
        ExprKind::Binary(op, _, _) => op.precedence(),
        ExprKind::Unary(..) => UNARY,
        ExprKind::Int(i64::MIN) => BinaryOp::Sub.precedence(),
        ExprKind::Int(value) if *value < 0 => UNARY,
        ExprKind::Float(value) if value.is_sign_negative() => UNARY,
        ExprKind::If(..) | ExprKind::With(_) | ExprKind::Iterate(_) => 0,
        _ => ATOM,
    }
}

/// Whether many of these stand on a line of a list.
fn is_short(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) | ExprKind::Name(_))
}

impl<'a> Seq<'a> {
    fn put_expr(&mut self, expr: &'a Expr, tightness: u8, spaces: Spaces) {
        if precedence(expr) < tightness {
            self.bracketed("(", ")", "", |seq| seq.put_kind(&expr.kind, Spaces::Around));
        } else {
            self.put_kind(&expr.kind, spaces);
        }
    }

    fn put_kind(&mut self, kind: &'a ExprKind, spaces: Spaces) {
        match kind {
            ExprKind::Name(name) => self.text(name.as_str()),
            // Its absolute value is not a literal.
            ExprKind::Int(i64::MIN) => self.text(format!("-{} - 1", i64::MAX)),
            ExprKind::Int(value) => self.text(value.to_string()),
            ExprKind::Float(value) => self.text(format!("{value:?}")),
            ExprKind::Bool(value) => self.text(value.to_string()),
            ExprKind::Text(text) => self.text(quoted(text)),
            ExprKind::Paren(inner) => self.expr(inner, 0),
            ExprKind::List(parts) if !parts.is_empty() && parts.iter().all(is_short) => {
                self.bracketed("[", "]", "", |seq| {
                    seq.separated(Chunk::Fill, parts, |seq, part| {
                        seq.expr(part, 0);
                    });
                })
            }
            ExprKind::List(parts) => self.list("[", "]", parts, |seq, part| {
                seq.expr(part, 0);
            }),
            ExprKind::Unary(op, operand) => {
                let symbol = match op {
                    UnaryOp::Neg => "-",
                    UnaryOp::Not => "!",
                };
                self.text(symbol).within(operand, UNARY, spaces)
            }
            ExprKind::Binary(BinaryOp::Pow, base, exponent) => self.expr(base, ATOM).text("^").expr(exponent, UNARY),
            ExprKind::Binary(op, left, right) => self.chain(*op, left, right, spaces),
            ExprKind::Select(tensor, selectors) => self.expr(tensor, ATOM).list("[", "]", selectors, Seq::put_selector),
            ExprKind::Call(function, args, named) => self.call(function, args, named),
            ExprKind::If(condition, then, otherwise) => {
                self.piece(Chunk::Open).text("if ").within(condition, 0, spaces).text(" ").block(then).text(" else ");
                match otherwise.results.as_slice() {
                    [result] if otherwise.lets.is_empty() && matches!(result.kind, ExprKind::If(..)) => {
                        self.within(result, 0, spaces)
                    }
                    _ => self.block(otherwise),
                };
                self.piece(Chunk::Close)
            }
            ExprKind::Block(block) => self.block(block),
            ExprKind::Comprehension(partitions) => self.comprehension(partitions),
            ExprKind::With(with) => self.with(with),
            ExprKind::Iterate(iterate) => self.iterate(iterate, spaces),
        };
    }

    /// Operators of one precedence, which associate to the left.
    fn chain(&mut self, op: BinaryOp, left: &'a Expr, right: &'a Expr, spaces: Spaces) -> &mut Self {
        let tightness = op.precedence();
        let mut rest = vec![(op, right)];
        let mut first = without_parens(left);
        while let ExprKind::Binary(op, left, right) = &first.kind
            && op.precedence() == tightness
            && !op.is_comparison()
        {
            rest.push((*op, right));
            first = without_parens(left);
        }
        let above = tightness + 1;
        let first_tightness = if op.is_comparison() { above } else { tightness };
        self.piece(Chunk::Open).piece(Chunk::Indent).within(first, first_tightness, spaces);
        for (op, operand) in rest.into_iter().rev() {
            let tight = matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div);
            if spaces == Spaces::None && tight {
                self.text(op.symbol());
            } else {
                self.piece(Chunk::Break(" ")).text(op.symbol()).text(" ");
            }
            self.within(operand, above, spaces);
        }
        self.piece(Chunk::Dedent).piece(Chunk::Close)
    }

    fn call(&mut self, function: &Ident, args: &'a [Expr], named: &'a [(Ident, Expr)]) -> &mut Self {
        self.name(function);
        if args.is_empty() && named.is_empty() {
            return self.text("()");
        }
        self.bracketed("(", ")", "", |seq| {
            seq.separated(Chunk::Break(" "), args, |seq, arg| {
                seq.expr(arg, 0);
            });
            for (at, (name, value)) in named.iter().enumerate() {
                if at + args.len() > 0 {
                    seq.text(",").piece(Chunk::Break(" "));
                }
                seq.name(name).text(" = ").expr(value, 0);
            }
        })
    }

    fn put_selector(&mut self, selector: &'a Selector) {
        match selector {
            Selector::At(index) => {
                self.index(index, 0);
            }
            Selector::Dot(_) => {
                self.text(".");
            }
            Selector::Dots(_) => {
                self.text("...");
            }
            Selector::Slice(lower, upper, _) => {
                if let Some(lower) = lower {
                    self.index(lower, 0);
                }
                self.text("..");
                if let Some(upper) = upper {
                    self.index(upper, 0);
                }
            }
        }
    }

    fn put_block(&mut self, block: &'a Block) {
        if block.lets.is_empty() {
            self.bracketed("{", "}", " ", |seq| seq.put_values(&block.results));
        } else {
            self.body(block);
        }
    }

    /// A block that is always on lines of its own.
    fn body(&mut self, block: &'a Block) {
        self.text("{").piece(Chunk::Indent).piece(Chunk::Hard);
        self.put_inside(block);
        self.piece(Chunk::Dedent).piece(Chunk::Hard).text("}");
    }

    fn put_inside(&mut self, block: &'a Block) {
        for (at, binding) in block.lets.iter().enumerate() {
            if at > 0 {
                self.piece(Chunk::Hard);
            }
            self.put_let(binding);
        }
        if !block.lets.is_empty() && !block.results.is_empty() {
            self.piece(Chunk::Hard);
        }
        self.put_values(&block.results);
    }

    fn put_values(&mut self, values: &'a [Expr]) {
        match values {
            [value] => self.expr(value, 0),
            [] => self,
            values => self.list("(", ")", values, |seq, value| {
                seq.expr(value, 0);
            }),
        };
    }

    fn put_let(&mut self, binding: &'a Let) {
        self.text("let ");
        match binding.names.as_slice() {
            [name] => self.name(name),
            names => {
                let names: Vec<&str> = names.iter().map(|name| name.name.as_str()).collect();
                self.text(format!("({})", names.join(", ")))
            }
        };
        self.put_stated(binding.ty.as_ref()).text(" = ").expr(&binding.value, 0).text(";");
    }

    fn put_stated(&mut self, ty: Option<&'a Type>) -> &mut Self {
        if let Some(ty) = ty {
            self.text(": ").put_type(ty);
        }
        self
    }

    fn comprehension(&mut self, partitions: &'a [Partition]) -> &mut Self {
        if let [partition] = partitions {
            return self.bracketed("{", "}", " ", |seq| seq.put_partition(partition));
        }
        self.lines(partitions, |seq, partition| seq.put_partition(partition))
    }

    /// Things in braces, each on a line of its own.
    fn lines<T>(&mut self, parts: &'a [T], one: impl Fn(&mut Self, &'a T)) -> &mut Self {
        self.text("{").piece(Chunk::Indent);
        for part in parts {
            self.piece(Chunk::Hard);
            one(self, part);
            self.text(";");
        }
        self.piece(Chunk::Dedent).piece(Chunk::Hard).text("}")
    }

    fn put_partition(&mut self, partition: &'a Partition) {
        self.piece(Chunk::Open).put_pattern(&partition.pattern);
        self.text(" -> ").expr(&partition.body, 0);
        if !partition.generator.is_empty() {
            // After a brace there is room.
            let braced = matches!(
                partition.body.kind,
                ExprKind::Block(_) | ExprKind::Comprehension(_) | ExprKind::If(..) | ExprKind::Iterate(_)
            );
            self.piece(Chunk::Indent)
                .piece(if braced { Chunk::Text(" ".into()) } else { Chunk::Break(" ") })
                .text("| ");
            self.separated(Chunk::Fill, &partition.generator, |seq, relation| {
                seq.put_relation(relation, &partition.pattern);
            });
            self.piece(Chunk::Dedent);
        }
        self.piece(Chunk::Close);
    }

    fn put_pattern(&mut self, pattern: &Pattern) {
        match pattern {
            Pattern::Vector(name) => self.name(name),
            Pattern::List(slots, _) => self.put_slots(slots.iter()),
        };
    }

    fn put_slots<'s>(&mut self, slots: impl Iterator<Item = &'s Slot>) -> &mut Self {
        let parts: Vec<String> = slots
            .map(|slot| match slot {
                Slot::Index(name) => name.name.to_string(),
                Slot::Dot(_) => ".".into(),
                Slot::Dots(_) => "...".into(),
                Slot::Rest(name) => format!("{}...", name.name),
            })
            .collect();
        self.text(format!("[{}]", parts.join(", ")))
    }

    fn put_relation(&mut self, relation: &'a Relation, pattern: &Pattern) {
        let symbol = |equal: bool| if equal { "<=" } else { "<" };
        if let Some((bound, equal)) = &relation.lower {
            self.put_bound(bound).text(format!(" {} ", symbol(*equal)));
        }
        match (relation.subject, pattern) {
            (Subject::One(name), _) => self.name(&name),
            (Subject::All, Pattern::Vector(name)) => self.name(name),
            (Subject::All, Pattern::List(slots, _)) => {
                self.put_slots(slots.iter().filter(|slot| matches!(slot, Slot::Index(_) | Slot::Rest(_))))
            }
        };
        if let Some((bound, equal)) = &relation.upper {
            self.text(format!(" {} ", symbol(*equal))).put_bound(bound);
        }
    }

    fn put_bound(&mut self, bound: &'a Bound) -> &mut Self {
        match bound {
            Bound::Dot(_) => self.text("."),
            Bound::At(expr) => self.expr(expr, BinaryOp::Concat.precedence()),
        }
    }

    fn with(&mut self, with: &'a With) -> &mut Self {
        self.text("with ");
        let generator = |seq: &mut Self, (pattern, relation, body): &'a (Pattern, Relation, Expr)| {
            seq.text("(").put_relation(relation, pattern);
            seq.text(") : ").expr(body, 0);
        };
        match with.generators.as_slice() {
            [] => self.text("{ }"),
            [one] => self.bracketed("{", "}", " ", |seq| generator(seq, one)),
            several => self.lines(several, generator),
        };
        self.text(" : ");
        match &with.operation {
            WithOp::Genarray(shape, default) => self.text("genarray").bracketed("(", ")", "", |seq| {
                seq.expr(shape, 0);
                if let Some(default) = default {
                    seq.text(",").piece(Chunk::Break(" ")).expr(default, 0);
                }
            }),
            WithOp::Modarray(tensor) => self.text("modarray").bracketed("(", ")", "", |seq| {
                seq.expr(tensor, 0);
            }),
            WithOp::Fold(op, neutral) => {
                let op = match op {
                    FoldOp::Sum => "+",
                    FoldOp::Prod => "*",
                    FoldOp::Min => "min",
                    FoldOp::Max => "max",
                    FoldOp::All => "&&",
                    FoldOp::Any => "||",
                    FoldOp::Function(name) => name.name.as_str(),
                };
                self.text("fold").bracketed("(", ")", "", |seq| {
                    seq.text(op).text(",").piece(Chunk::Break(" ")).expr(neutral, 0);
                })
            }
        }
    }

    fn iterate(&mut self, iterate: &'a Iterate, spaces: Spaces) -> &mut Self {
        let bound = BinaryOp::Concat.precedence();
        self.piece(Chunk::Open).text("iterate ");
        match &iterate.step {
            Some(step) => self.name(step).text(" < ").within(&iterate.times, bound, spaces).text(" "),
            None => self.within(&iterate.times, bound, spaces).text(" times "),
        };
        match iterate.states.as_slice() {
            [(name, value)] => self.name(name).text(" = ").within(value, 0, spaces),
            several => self.list("(", ")", several, |seq, (name, value)| {
                seq.name(name).text(" = ").expr(value, 0);
            }),
        };
        self.text(" ").block(&iterate.body).piece(Chunk::Close)
    }

    fn put_type(&mut self, ty: &'a Type) -> &mut Self {
        self.text(match ty.elem {
            Elem::Is(elem) => elem.name(),
            Elem::Any => "any",
            Elem::Num => "num",
            Elem::Float => "float",
            Elem::Size => "size",
        });
        if ty.dims.is_empty() {
            return self;
        }
        self.list("[", "]", &ty.dims, |seq, dim| {
            match dim {
                Dim::Size(size) => seq.index(size, BinaryOp::Add.precedence()),
                Dim::Rest(name) => seq.name(name).text("..."),
                Dim::Ranked { rank, least: 0, shape } => seq.text(format!("{}:{}", rank.name, shape.name)),
                Dim::Ranked { rank, least, shape } => seq.text(format!("{}>{}:{}", rank.name, least - 1, shape.name)),
                Dim::One(_) => seq.text("."),
                Dim::Any(_) => seq.text("*"),
                Dim::Some(_) => seq.text("+"),
            };
        })
    }

    fn put_param(&mut self, param: &'a Param) {
        self.name(&param.name).put_stated(Some(&param.ty));
    }

    fn put_function(&mut self, function: &'a Function) {
        self.piece(Chunk::Open).text("fn ").name(&function.name);
        self.list("(", ")", &function.params, Seq::put_param);
        match &function.results {
            Results::Inferred => {}
            Results::One(ty) => {
                self.text(" -> ").put_type(ty);
            }
            Results::Named(results) => {
                self.text(" -> ").list("(", ")", results, Seq::put_param);
            }
        }
        if let Some(identity) = &function.associative {
            self.text(" associative(").expr(identity, 0).text(")");
        }
        if !function.wheres.is_empty() {
            self.piece(Chunk::Indent).piece(Chunk::Break(" ")).text("where ");
            self.separated(Chunk::Fill, &function.wheres, |seq, condition| {
                seq.expr(condition, 0);
            });
            self.piece(Chunk::Dedent);
        }
        self.piece(Chunk::Close).text(" ").body(&function.body);
    }

    fn put_const(&mut self, constant: &'a Const) {
        self.text("const ").name(&constant.name).put_stated(constant.ty.as_ref());
        self.text(" = ").expr(&constant.value, 0).text(";");
    }

    fn put_import(&mut self, import: &Import) {
        self.text("import ").text(quoted(&import.path)).text(";");
    }

    /// A schedule or a script, which stand as they are.
    fn put_lines(&mut self, text: &impl fmt::Display) {
        for (at, line) in text.to_string().lines().enumerate() {
            if at > 0 {
                self.piece(Chunk::Hard);
            }
            self.text(line);
        }
    }

    fn put_item(&mut self, item: &'a Item) {
        match item {
            Item::Import(import) => self.put_import(import),
            Item::Const(constant) => self.put_const(constant),
            Item::Function(function) => self.put_function(function),
            Item::Schedule(schedule) => self.put_lines(schedule),
            Item::Derive(derivation) => self.put_lines(derivation),
            Item::Tactic(tactic) => self.put_lines(tactic),
        }
    }

    fn put_file(&mut self, file: &'a File) {
        for (at, item) in file.items.iter().enumerate() {
            // What has several lines stands apart from what is around it.
            let apart = |at: usize| {
                let item = file.items.get(at);
                item.is_some_and(|item| !matches!(item, Item::Import(_) | Item::Const(_)))
            };
            if at > 0 && (apart(at - 1) || apart(at)) {
                self.piece(Chunk::Hard);
            }
            self.put_item(item);
            self.piece(Chunk::Hard);
        }
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

macro_rules! display {
    ($($node:ty: $put:expr;)*) => {
        $(impl fmt::Display for $node {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut seq = Seq::default();
                $put(&mut seq, self);
                f.write_str(&print(seq))
            }
        })*
    };
}

display! {
    File: Seq::put_file;
    Item: Seq::put_item;
    Function: Seq::put_function;
    Block: Seq::put_block;
    Let: Seq::put_let;
    Type: Seq::put_type;
    Pattern: Seq::put_pattern;
    Partition: Seq::put_partition;
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut seq = Seq::default();
        seq.expr(self, 0);
        f.write_str(&print(seq))
    }
}
