//! Expressions: one arm for each form, entrywise arithmetic, blocks and types that are stated.

use std::sync::Arc;

use certen_core::{Binary, ElemType, Literal, TensorType, Unary};
use certen_index::{Cond, Ix, Verdict};
use certen_syntax::{Code, Diagnostic, Name, Span};

use super::index::Index;
use super::scope::{Function, Meaning};
use super::signature::Asked;
use super::value::{Draft, Flex, Value, block_expr, constant_size, index_expr};
use super::{Checked, Reported};
use crate::Found;
use crate::ast::{self, BinaryOp, ExprKind, UnaryOp};
use crate::typed::{self, Bound, Expr, Kind};

/// Constants and `let`s of literals up to this many numbers stay flexible: they are written again at each use.
const SMALL: usize = 64;

/// Constants and index functions inside each other.
const MAX_INLINED: usize = 200;

impl<'l> Function<'_, 'l> {
    /// What an expression stands for.
    pub fn expr(&mut self, e: &ast::Expr) -> Checked<Value> {
        Ok(match &e.kind {
            ExprKind::Name(name) => return self.name(*name, e.span),
            ExprKind::Int(value) => Value::Index(Ix::from(*value).into()),
            ExprKind::Float(value) => {
                let ty = TensorType::scalar(ElemType::F64);
                let expr = Expr { kind: Kind::Literal(Literal::Float(*value)), ty, span: e.span };
                Value::Data(Draft { expr, flex: Flex::Float })
            }
            ExprKind::Bool(value) => Value::Cond(if *value { Cond::always() } else { Cond::never() }),
            ExprKind::Text(_) => {
                return self.error(Code::E0103, e.span, "a text has a meaning only as the first argument of `einsum`");
            }
            ExprKind::Paren(inner) => return self.expr(inner),
            ExprKind::List(parts) => return self.list(parts, e.span),
            ExprKind::Unary(op, a) => return self.unary(*op, a, e.span),
            ExprKind::Binary(op, a, b) => return self.binary(*op, a, b, e.span),
            ExprKind::Select(base, selectors) => return self.select(base, selectors, e.span),
            ExprKind::Call(name, args, named) => return self.call(*name, args, named, e.span),
            ExprKind::If(cond, then, otherwise) => return self.conditional(cond, then, otherwise, e.span),
            ExprKind::Block(block) => return self.block(block),
            ExprKind::Comprehension(parts) => Value::Data(self.comprehension(parts, e.span)?),
            ExprKind::With(with) => Value::Data(self.with_loop(with, e.span)?),
            ExprKind::Iterate(iterate) => {
                let made = self.iterate(iterate, e.span)?;
                if made.states.len() != 1 {
                    return self.error(
                        Code::E0235,
                        e.span,
                        format!("an iteration of {} states gives {0} values", made.states.len()),
                    );
                }
                let ty = made.states[0].1.ty.clone();
                Value::Data(Draft::fixed(Expr { kind: Kind::Iterate(Box::new(made)), ty, span: e.span }))
            }
        })
    }

    /// An expression as data.
    pub fn data(&mut self, e: &ast::Expr) -> Checked<Draft> {
        let value = self.expr(e)?;
        self.to_data(value, e.span)
    }

    /// An expression as an index without cases.
    pub fn plain_index(&mut self, e: &ast::Expr) -> Checked<Ix> {
        match self.expr(e)? {
            Value::Index(index) => match index.plain() {
                Some(ix) => Ok(ix.clone()),
                None => self.error(Code::E0216, e.span, "a size or bound cannot depend on an `if`"),
            },
            value => self.no_index(&value, e.span),
        }
    }

    /// The error that something is no index.
    pub fn no_index<T>(&mut self, value: &Value, span: Span) -> Checked<T> {
        let error = match value {
            Value::Data(_) => {
                Diagnostic::error(Code::E0231, span, "this is data, and data never becomes an index or size")
                    .note(
                        "shapes and indices are made of sizes, indices and literals: they are known before any data is",
                    )
                    .help("reading at places that data names (gather, scatter) is not in this version")
            }
            Value::Vector(parts) => {
                let text = format!("one index is wanted here, not an index vector of {} components", parts.len());
                Diagnostic::error(Code::E0231, span, text)
            }
            Value::Cond(_) => Diagnostic::error(Code::E0231, span, "an index is wanted here, not a condition"),
            Value::Index(_) => Diagnostic::error(Code::E0231, span, "an index vector is wanted here, not one index"),
        };
        self.fail(error)
    }

    /// A value as data: an index takes the element type of its context.
    pub fn to_data(&mut self, value: Value, span: Span) -> Checked<Draft> {
        Ok(match value {
            Value::Data(draft) => draft,
            Value::Index(index) => Draft { expr: index_data(&index, span), flex: Flex::Int },
            Value::Vector(parts) => {
                let parts: Vec<Expr> = parts.iter().map(|part| index_data(part, span)).collect();
                Draft { expr: self.stack(parts, TensorType::scalar(ElemType::I64), span), flex: Flex::Int }
            }
            Value::Cond(cond) => Draft::fixed(truth(cond, span)),
        })
    }

    /// Parts of one type along a new first dimension. Without parts, an empty tensor of such parts.
    fn stack(&mut self, parts: Vec<Expr>, part: TensorType, span: Span) -> Expr {
        let size = Ix::from(parts.len() as i64);
        let shape: Arc<[Ix]> = std::iter::once(size.clone()).chain(part.shape.iter().cloned()).collect();
        let ty = TensorType { elem: part.elem, shape };
        if !parts.is_empty() {
            return Expr { kind: Kind::Stack(parts), ty, span };
        }
        self.zeros(&ty, span)
    }

    fn name(&mut self, name: Name, span: Span) -> Checked<Value> {
        match self.meaning(name) {
            Some(Meaning::Size(value) | Meaning::Alias(value)) => {
                let mut value = value.clone();
                if let Value::Data(draft) = &mut value {
                    draft.expr.span = span;
                }
                return Ok(value);
            }
            Some(Meaning::Tensor(unique, ty)) => return Ok(Value::Data(Self::var(*unique, ty.clone(), span))),
            Some(Meaning::Wrong) => return Err(Reported),
            None => {}
        }
        match self.world.library.lookup(self.file, name) {
            Some(Found::Const(constant)) => {
                let value = &self.world.library.constant(constant);
                self.inline(constant.file, span, |function| {
                    let made = function.expr(&value.value)?;
                    match (&value.ty, made) {
                        (Some(ty), made) => {
                            let mut draft = function.to_data(made, value.value.span)?;
                            function.must_have(&mut draft, ty, &format!("`{name}`"))?;
                            Ok(Value::Data(draft))
                        }
                        (None, made) => Ok(made),
                    }
                })
            }
            Some(Found::Function(_)) => {
                let text = format!("`{name}` is a function: it is called as `{name}(…)`");
                self.error(Code::E0235, span, text)
            }
            None => self.unknown(name, span),
        }
    }

    /// Evaluates something of another place as part of this function.
    pub fn inline<T>(
        &mut self,
        file: crate::FileRef,
        span: Span,
        what: impl FnOnce(&mut Self) -> Checked<T>,
    ) -> Checked<T> {
        if self.inlined >= MAX_INLINED {
            return self.error(Code::E0217, span, "constants and index functions that use each other too deeply");
        }
        self.inlined += 1;
        let made = self.elsewhere(file, what);
        self.inlined -= 1;
        made
    }

    fn unknown<T>(&mut self, name: Name, span: Span) -> Checked<T> {
        let mut error = Diagnostic::error(Code::E0201, span, format!("`{name}` is not declared"));
        let in_types = |param: &ast::Param| {
            param.ty.span.file == span.file && param.ty.span.start <= span.start && span.end <= param.ty.span.end
        };
        if self.current().params.iter().any(in_types) {
            error = error.help(format!("a size is bound where it stands alone, as in `x: f64[{name}]`; or let the caller say it: `{name}: size`"));
            return self.fail(error);
        }
        if let Some(near) = self.nearest(name) {
            error = error.help(format!("did you mean `{near}`?"));
        }
        self.fail(error)
    }

    /// The visible name most like one that is not there.
    pub fn nearest(&self, name: Name) -> Option<String> {
        let names = self.visible().chain(self.world.library.names(self.file)).map(|name| name.as_str().to_string());
        let names = names.chain(super::builtin::NAMES.iter().map(|name| name.to_string()));
        let distance = |other: &String| strsim::damerau_levenshtein(name.as_str(), other);
        let limit = name.as_str().len() / 3;
        names
            .filter(|other| !other.contains('.') && distance(other) <= limit)
            .min_by_key(|other| (distance(other), other.clone()))
    }

    fn list(&mut self, parts: &[ast::Expr], span: Span) -> Checked<Value> {
        let values = parts.iter().map(|part| self.expr(part)).collect::<Checked<Vec<Value>>>()?;
        if values.iter().all(|value| matches!(value, Value::Index(_))) {
            let index = |value| if let Value::Index(index) = value { Some(index) } else { None };
            return Ok(Value::Vector(values.into_iter().filter_map(index).collect()));
        }
        let mut drafts = Vec::new();
        for (value, part) in values.into_iter().zip(parts) {
            drafts.push(self.to_data(value, part.span)?);
        }
        let mut first = drafts.remove(0);
        for draft in &mut drafts {
            self.unify(&mut first, draft, span)?;
            self.same_shape(&first, draft, span, "the parts of a tensor literal have different shapes")?;
        }
        // The last one may have fixed the type of all.
        let (elem, flex) = (first.elem(), first.flex);
        for draft in &mut drafts {
            self.settle(draft, elem, flex);
        }
        let part = first.expr.ty.clone();
        let parts = std::iter::once(first).chain(drafts).map(|draft| draft.expr).collect();
        Ok(Value::Data(Draft { expr: self.stack(parts, part, span), flex }))
    }

    /// Gives a draft the element type that all parts of something have agreed on.
    pub fn settle(&mut self, draft: &mut Draft, elem: ElemType, flex: Flex) {
        if draft.flex != Flex::No {
            super::value::set_elem(&mut draft.expr, elem);
            draft.flex = flex;
        }
    }

    // Element types

    /// Makes two operands have one element type.
    pub fn unify(&mut self, a: &mut Draft, b: &mut Draft, span: Span) -> Checked<()> {
        match (a.flex, b.flex) {
            (Flex::No, Flex::No) if a.elem() == b.elem() => Ok(()),
            (Flex::No, Flex::No) => {
                let text = format!("{} and {} do not mix", a.elem(), b.elem());
                let error = Diagnostic::error(Code::E0232, span, text)
                    .also(a.expr.span, format!("this is {}", a.elem()))
                    .also(b.expr.span, format!("this is {}", b.elem()))
                    .help(format!("convert one of them: `{}(…)`", a.elem()));
                self.fail(error)
            }
            (Flex::No, _) => self.give(b, a.elem()),
            (_, Flex::No) => self.give(a, b.elem()),
            (Flex::Int, Flex::Int) | (Flex::Float, Flex::Float) => Ok(()),
            (Flex::Int, Flex::Float) => {
                self.settle(a, ElemType::F64, Flex::Float);
                Ok(())
            }
            (Flex::Float, Flex::Int) => {
                self.settle(b, ElemType::F64, Flex::Float);
                Ok(())
            }
        }
    }

    /// Gives an element type to an expression.
    pub fn give(&mut self, draft: &mut Draft, elem: ElemType) -> Checked<()> {
        if draft.can_be(elem) {
            draft.take(elem);
            return Ok(());
        }
        let span = draft.expr.span;
        let error = match draft.flex {
            Flex::No => Diagnostic::error(Code::E0232, span, format!("{elem} is wanted here, not {}", draft.elem()))
                .help(format!("convert it: `{elem}(…)`")),
            Flex::Float => Diagnostic::error(Code::E0232, span, format!("a number with a point is no {elem}")),
            Flex::Int => Diagnostic::error(Code::E0232, span, format!("a number is no {elem}")),
        };
        self.fail(error)
    }

    // Shapes

    /// Whether two shapes are equal for all sizes; if not, the error shows both.
    pub fn same_shape(&mut self, a: &Draft, b: &Draft, span: Span, what: &str) -> Checked<()> {
        let error = || {
            Diagnostic::error(Code::E0206, span, what)
                .also(a.expr.span, format!("this has the shape {}", shape_text(&a.expr.ty.shape)))
                .also(b.expr.span, format!("this has the shape {}", shape_text(&b.expr.ty.shape)))
        };
        if a.rank() != b.rank() {
            return self.fail(error());
        }
        for (left, right) in a.expr.ty.shape.iter().zip(b.expr.ty.shape.iter()) {
            match self.facts().prove_equal(left, right) {
                Verdict::Yes => {}
                Verdict::No(sizes) => {
                    let note = if sizes.0.is_empty() {
                        format!("{left} is not {right}")
                    } else {
                        format!("{left} is not {right} for example where {sizes}")
                    };
                    let mut error = error().note(note);
                    if let Some(clause) = self.where_clause(&Cond::eq(left, right)) {
                        error = error.help(clause);
                    }
                    return self.fail(error);
                }
                Verdict::Unknown => {
                    let note = format!("it could not be shown that {left} is {right}");
                    return self.fail(error().note(note));
                }
            }
        }
        Ok(())
    }

    /// The shape of an entrywise operation: that of both, or of the one that is no scalar.
    pub fn entrywise(&mut self, a: &Draft, b: &Draft, span: Span) -> Checked<Arc<[Ix]>> {
        match (a.rank(), b.rank()) {
            (0, _) => Ok(b.expr.ty.shape.clone()),
            (_, 0) => Ok(a.expr.ty.shape.clone()),
            _ => {
                self.same_shape(a, b, span, "operands of different shapes")?;
                Ok(a.expr.ty.shape.clone())
            }
        }
    }

    // Operators

    fn unary(&mut self, op: UnaryOp, a: &ast::Expr, span: Span) -> Checked<Value> {
        match (op, self.expr(a)?) {
            (UnaryOp::Neg, Value::Index(index)) => {
                let made = index.map(&|ix| ix.scale(-1));
                Ok(Value::Index(self.made(span, made)?))
            }
            (UnaryOp::Neg, Value::Vector(parts)) => {
                let made = parts.iter().map(|part| part.map(&|ix| ix.scale(-1))).collect();
                Ok(Value::Vector(self.made(span, made)?))
            }
            (UnaryOp::Not, Value::Cond(cond)) => {
                let made = cond.not();
                Ok(Value::Cond(self.made(span, made)?))
            }
            (op, value) => {
                let draft = self.to_data(value, a.span)?;
                let op = if op == UnaryOp::Neg { Unary::Neg } else { Unary::Not };
                Ok(Value::Data(self.apply_unary(op, draft, span)?))
            }
        }
    }

    /// An operation on each element.
    pub fn apply_unary(&mut self, op: Unary, mut a: Draft, span: Span) -> Checked<Draft> {
        if op.result(a.elem()).is_none() && a.flex == Flex::Int && op.result(ElemType::F64).is_some() {
            self.settle(&mut a, ElemType::F64, Flex::Float);
        }
        let Some(elem) = op.result(a.elem()) else {
            let text = format!("`{}` of elements of type {}", op.name(), a.elem());
            let error = Diagnostic::error(Code::E0232, span, text);
            return self.fail(match a.elem().is_int() {
                true => error.help("convert it: `f64(…)`"),
                false => error,
            });
        };
        let ty = TensorType { elem, shape: a.expr.ty.shape.clone() };
        Ok(Draft { flex: a.flex, expr: Expr { kind: Kind::Unary(op, Box::new(a.expr)), ty, span } })
    }

    fn binary(&mut self, op: BinaryOp, a: &ast::Expr, b: &ast::Expr, span: Span) -> Checked<Value> {
        match op {
            BinaryOp::And | BinaryOp::Or => return self.logic(op == BinaryOp::And, a, b, span),
            BinaryOp::MatMul => {
                let (left, right) = (self.data(a)?, self.data(b)?);
                return Ok(Value::Data(self.matrix_product(left, right, span)?));
            }
            _ => {}
        }
        let (left, right) = (self.expr(a)?, self.expr(b)?);
        self.operate(op, (left, a.span), (right, b.span), span)
    }

    /// An operator that evaluates both of its operands.
    pub fn operate(
        &mut self,
        op: BinaryOp,
        (left, left_span): (Value, Span),
        (right, right_span): (Value, Span),
        span: Span,
    ) -> Checked<Value> {
        let of_indices: Option<fn(&Ix, &Ix) -> Result<Ix, certen_index::IxError>> = match op {
            BinaryOp::Add => Some(Ix::add),
            BinaryOp::Sub => Some(Ix::sub),
            BinaryOp::Mul => Some(Ix::mul),
            _ => None,
        };
        if let Some(f) = of_indices
            && let Some(made) = self.zip_indices(&left, &right, &|a, b| f(a, b), span)?
        {
            return Ok(made);
        }
        if let Some(f) = comparison(op)
            && let Some(cond) = self.compare_indices(&left, &right, f, op == BinaryOp::Ne, span)?
        {
            return Ok(Value::Cond(cond));
        }
        if op == BinaryOp::Concat {
            return self.concatenate((left, left_span), (right, right_span), span);
        }
        if let (BinaryOp::Pow, Value::Index(base), Value::Index(exponent)) = (op, &left, &right)
            && let Some(exponent @ 0..=16) = exponent.constant()
        {
            let power = |ix: &Ix| (0..exponent).try_fold(Ix::from(1), |product, _| product.mul(ix));
            let made = base.map(&power);
            return Ok(Value::Index(self.made(span, made)?));
        }
        let (left, right) = (self.to_data(left, left_span)?, self.to_data(right, right_span)?);
        let (op, left, right) = match op {
            BinaryOp::Add => (Binary::Add, left, right),
            BinaryOp::Sub => (Binary::Sub, left, right),
            BinaryOp::Mul => (Binary::Mul, left, right),
            BinaryOp::Div => (Binary::Div, left, right),
            BinaryOp::Pow => (Binary::Pow, left, right),
            BinaryOp::Lt => (Binary::Lt, left, right),
            BinaryOp::Le => (Binary::Le, left, right),
            BinaryOp::Gt => (Binary::Lt, right, left),
            BinaryOp::Ge => (Binary::Le, right, left),
            BinaryOp::Eq => (Binary::Eq, left, right),
            BinaryOp::Ne => (Binary::Ne, left, right),
            BinaryOp::And | BinaryOp::Or | BinaryOp::Concat | BinaryOp::MatMul => return Err(Reported),
        };
        Ok(Value::Data(self.apply_binary(op, left, right, span)?))
    }

    /// An operation on the elements of two operands.
    pub fn apply_binary(&mut self, op: Binary, mut a: Draft, mut b: Draft, span: Span) -> Checked<Draft> {
        self.unify(&mut a, &mut b, span)?;
        let shape = self.entrywise(&a, &b, span)?;
        if op.result(a.elem()).is_none() && a.flex == Flex::Int && op.result(ElemType::F64).is_some() {
            self.settle(&mut a, ElemType::F64, Flex::Float);
            self.settle(&mut b, ElemType::F64, Flex::Float);
        }
        let Some(elem) = op.result(a.elem()) else {
            let text = format!("`{}` of elements of type {}", op.name(), a.elem());
            let error = Diagnostic::error(Code::E0232, span, text);
            return self.fail(match (op, a.elem().is_int()) {
                (Binary::Div, true) => {
                    error.help("`floor_div(a, b)` rounds down; for a fraction convert both: `f64(a) / f64(b)`")
                }
                (Binary::Pow, true) => error.help("write the product, or convert it: `f64(a)`"),
                (Binary::FloorDiv | Binary::Mod, false) => {
                    error.help("these are of integers; `floor(a / b)` of floats")
                }
                _ => error,
            });
        };
        let compares = matches!(op, Binary::Lt | Binary::Le | Binary::Eq | Binary::Ne);
        let flex = if compares { Flex::No } else { a.flex };
        let ty = TensorType { elem, shape };
        Ok(Draft { flex, expr: Expr { kind: Kind::Binary(op, Box::new(a.expr), Box::new(b.expr)), ty, span } })
    }

    /// Index arithmetic, if both operands are of the index level: one index goes with each component of a vector.
    pub fn zip_indices(
        &mut self,
        left: &Value,
        right: &Value,
        f: &dyn Fn(&Ix, &Ix) -> Result<Ix, certen_index::IxError>,
        span: Span,
    ) -> Checked<Option<Value>> {
        let made: Result<Value, _> = match (left, right) {
            (Value::Index(a), Value::Index(b)) => a.zip(b, f).map(Value::Index),
            (Value::Vector(a), Value::Index(b)) => {
                a.iter().map(|a| a.zip(b, f)).collect::<Result<_, _>>().map(Value::Vector)
            }
            (Value::Index(a), Value::Vector(b)) => {
                b.iter().map(|b| a.zip(b, f)).collect::<Result<_, _>>().map(Value::Vector)
            }
            (Value::Vector(a), Value::Vector(b)) if a.len() == b.len() => {
                a.iter().zip(b).map(|(a, b)| a.zip(b, f)).collect::<Result<_, _>>().map(Value::Vector)
            }
            (Value::Vector(a), Value::Vector(b)) => {
                let text = format!("index vectors of {} and {} components", a.len(), b.len());
                return self.error(Code::E0206, span, text);
            }
            _ => return Ok(None),
        };
        self.made(span, made).map(Some)
    }

    /// A condition, if both operands are of the index level. Of vectors it must hold for every component; `!=` for some.
    fn compare_indices(
        &mut self,
        left: &Value,
        right: &Value,
        f: fn(&Ix, &Ix) -> Result<Cond, certen_index::IxError>,
        some: bool,
        span: Span,
    ) -> Checked<Option<Cond>> {
        let pairs: Vec<(&Index, &Index)> = match (left, right) {
            (Value::Index(a), Value::Index(b)) => vec![(a, b)],
            (Value::Vector(a), Value::Index(b)) => a.iter().map(|a| (a, b)).collect(),
            (Value::Index(a), Value::Vector(b)) => b.iter().map(|b| (a, b)).collect(),
            (Value::Vector(a), Value::Vector(b)) if a.len() == b.len() => a.iter().zip(b).collect(),
            (Value::Vector(a), Value::Vector(b)) => {
                let text = format!("index vectors of {} and {} components", a.len(), b.len());
                return self.error(Code::E0206, span, text);
            }
            _ => return Ok(None),
        };
        let first = if some { Cond::never() } else { Cond::always() };
        let made = pairs.into_iter().try_fold(first, |cond, (a, b)| {
            let next = a.compare(b, &|a, b| f(a, b))?;
            Ok(if some { cond.or(next) } else { cond.and(next) })
        });
        self.made(span, made).map(Some)
    }

    /// `&&` and `||`: a condition on the left guards the right side.
    fn logic(&mut self, and: bool, a: &ast::Expr, b: &ast::Expr, span: Span) -> Checked<Value> {
        match self.expr(a)? {
            Value::Cond(left) => {
                let made = if and { Ok(left.clone()) } else { left.not() };
                let known = self.made(span, made)?;
                match self.guarded(known, |function| function.expr(b))? {
                    Value::Cond(right) => Ok(Value::Cond(if and { left.and(right) } else { left.or(right) })),
                    value => {
                        let mut right = self.to_data(value, b.span)?;
                        self.give(&mut right, ElemType::Bool)?;
                        let other = truth(if and { Cond::never() } else { Cond::always() }, span);
                        let other = self.repeated(other, &right.expr.ty, span);
                        let (then, otherwise) = if and { (right.expr, other) } else { (other, right.expr) };
                        let ty = then.ty.clone();
                        let kind = Kind::If(left, Box::new(then), Box::new(otherwise));
                        Ok(Value::Data(Draft::fixed(Expr { kind, ty, span })))
                    }
                }
            }
            value => {
                let left = self.to_data(value, a.span)?;
                let right = self.data(b)?;
                let op = if and { Binary::And } else { Binary::Or };
                Ok(Value::Data(self.apply_binary(op, left, right, span)?))
            }
        }
    }

    /// `a ++ b`: index vectors, or tensors along their outermost dimension.
    fn concatenate(&mut self, (left, ls): (Value, Span), (right, rs): (Value, Span), span: Span) -> Checked<Value> {
        if let (Value::Vector(a), Value::Vector(b)) = (&left, &right) {
            return Ok(Value::Vector(a.iter().chain(b).cloned().collect()));
        }
        let (mut a, mut b) = (self.to_data(left, ls)?, self.to_data(right, rs)?);
        self.unify(&mut a, &mut b, span)?;
        if a.rank() == 0 || b.rank() == 0 || a.rank() != b.rank() {
            let error = Diagnostic::error(Code::E0206, span, "`++` joins two tensors of the same rank, at least 1")
                .also(a.expr.span, format!("this has the shape {}", shape_text(&a.expr.ty.shape)))
                .also(b.expr.span, format!("this has the shape {}", shape_text(&b.expr.ty.shape)));
            return self.fail(error);
        }
        for at in 1..a.rank() {
            let (left, right) = (&a.expr.ty.shape[at], &b.expr.ty.shape[at]);
            if self.facts().prove_equal(left, right) != Verdict::Yes {
                let text = format!("`++` joins tensors that differ only in their first dimension: {left} and {right}");
                let error = Diagnostic::error(Code::E0206, span, text)
                    .also(a.expr.span, format!("this has the shape {}", shape_text(&a.expr.ty.shape)))
                    .also(b.expr.span, format!("this has the shape {}", shape_text(&b.expr.ty.shape)));
                return self.fail(error);
            }
        }
        let made = a.expr.ty.shape[0].add(&b.expr.ty.shape[0]);
        let size = self.made(span, made)?;
        let shape: Arc<[Ix]> = std::iter::once(size).chain(a.expr.ty.shape[1..].iter().cloned()).collect();
        let ty = TensorType { elem: a.elem(), shape };
        let kind = Kind::Concat(Box::new(a.expr), Box::new(b.expr));
        Ok(Value::Data(Draft { flex: a.flex, expr: Expr { kind, ty, span } }))
    }

    // Conditions

    fn conditional(
        &mut self,
        cond: &ast::Expr,
        then: &ast::Block,
        otherwise: &ast::Block,
        span: Span,
    ) -> Checked<Value> {
        match self.expr(cond)? {
            Value::Cond(cond) => {
                let made = cond.not();
                let not = self.made(span, made)?;
                match self.decided(&cond, &not) {
                    Some(true) => return self.block(then),
                    Some(false) => return self.block(otherwise),
                    None => {}
                }
                let first = self.guarded(cond.clone(), |function| function.block(then))?;
                let second = self.guarded(not, |function| function.block(otherwise))?;
                self.either(cond, (first, then.span), (second, otherwise.span), span)
            }
            Value::Data(condition) => {
                if condition.rank() > 0 || condition.elem() != ElemType::Bool || condition.flex != Flex::No {
                    let text = format!("a condition is one truth value, not {}", condition.expr.ty);
                    let error = Diagnostic::error(Code::E0232, cond.span, text);
                    return self.fail(if condition.rank() > 0 {
                        error.help("to choose element by element: `select(c, a, b)`")
                    } else {
                        error.help("compare it with something: `x > 0`")
                    });
                }
                let (a, b) = (self.block(then)?, self.block(otherwise)?);
                let (a, b) = (self.to_data(a, then.span)?, self.to_data(b, otherwise.span)?);
                Ok(Value::Data(self.choose(condition, a, b, span)?))
            }
            value => self.no_condition(&value, cond.span),
        }
    }

    /// Whether what holds here decides a condition, whose opposite is given.
    pub fn decided(&self, cond: &Cond, not: &Cond) -> Option<bool> {
        let holds = |cond: &Cond| cond.is_always() || self.facts().prove(cond) == Verdict::Yes;
        if holds(cond) {
            Some(true)
        } else if holds(not) {
            Some(false)
        } else {
            None
        }
    }

    fn no_condition<T>(&mut self, value: &Value, span: Span) -> Checked<T> {
        let what = if matches!(value, Value::Vector(_)) { "an index vector" } else { "an index" };
        self.error(Code::E0232, span, format!("a condition is wanted here, not {what}"))
    }

    /// Lazily one of two values by a condition on indices.
    pub fn either(
        &mut self,
        cond: Cond,
        (a, a_span): (Value, Span),
        (b, b_span): (Value, Span),
        span: Span,
    ) -> Checked<Value> {
        match (a, b) {
            (Value::Index(a), Value::Index(b)) => Ok(Value::Index(Index::case(cond, a, b))),
            (Value::Vector(a), Value::Vector(b)) if a.len() == b.len() => {
                let choose = |(a, b)| Index::case(cond.clone(), a, b);
                Ok(Value::Vector(a.into_iter().zip(b).map(choose).collect()))
            }
            (Value::Cond(a), Value::Cond(b)) => {
                let made = cond.not();
                let not = self.made(span, made)?;
                Ok(Value::Cond(cond.and(a).or(not.and(b))))
            }
            (a, b) => {
                let (mut a, mut b) = (self.to_data(a, a_span)?, self.to_data(b, b_span)?);
                self.unify(&mut a, &mut b, span)?;
                self.same_shape(&a, &b, span, "the branches of `if` have different shapes")?;
                let ty = a.expr.ty.clone();
                let kind = Kind::If(cond, Box::new(a.expr), Box::new(b.expr));
                Ok(Value::Data(Draft { flex: a.flex, expr: Expr { kind, ty, span } }))
            }
        }
    }

    /// One of two, element by element, by truth values.
    pub fn choose(&mut self, condition: Draft, mut a: Draft, mut b: Draft, span: Span) -> Checked<Draft> {
        self.unify(&mut a, &mut b, span)?;
        let shape = self.entrywise(&a, &b, span)?;
        let branch = if a.rank() > 0 { &a } else { &b };
        let shape = if shape.is_empty() {
            condition.expr.ty.shape.clone()
        } else {
            if condition.rank() > 0 {
                self.same_shape(&condition, branch, span, "the condition and the branches have different shapes")?;
            }
            shape
        };
        let ty = TensorType { elem: a.elem(), shape };
        let kind = Kind::Choose(Box::new(condition.expr), Box::new(a.expr), Box::new(b.expr));
        Ok(Draft { flex: a.flex, expr: Expr { kind, ty, span } })
    }

    // Blocks

    /// A block with one result.
    pub fn block(&mut self, block: &ast::Block) -> Checked<Value> {
        if let ([], [result]) = (block.lets.as_slice(), block.results.as_slice()) {
            return self.expr(result);
        }
        self.scoped(|function| {
            let lets = function.lets(&block.lets)?;
            let [result] = block.results.as_slice() else {
                let text = format!("this block gives {} values, and one is wanted", block.results.len());
                return function.error(Code::E0235, block.span, text);
            };
            match function.expr(result)? {
                Value::Data(draft) => Ok(Value::Data(Draft { expr: block_expr(lets, draft.expr), flex: draft.flex })),
                value => Ok(value),
            }
        })
    }

    /// A block that gives several values, as many as wanted if that is known. The names stay bound.
    pub fn block_values(
        &mut self,
        block: &ast::Block,
        wanted: Option<usize>,
    ) -> Checked<(Vec<typed::Let>, Vec<Draft>)> {
        let mut lets = self.lets(&block.lets)?;
        if let [only] = block.results.as_slice()
            && wanted != Some(1)
            && let Some((bound, types)) = self.several(only)?
        {
            let base = Name::new("result");
            let names: Vec<(Name, TensorType)> = types.into_iter().map(|ty| (self.fresh(base), ty)).collect();
            let values = names.iter().map(|(name, ty)| Self::var(*name, ty.clone(), only.span)).collect::<Vec<_>>();
            lets.push(typed::Let { names, value: bound });
            return self.count(values, wanted, block.span).map(|values| (lets, values));
        }
        let mut values = Vec::new();
        for result in &block.results {
            values.push(self.data(result)?);
        }
        self.count(values, wanted, block.span).map(|values| (lets, values))
    }

    fn count(&mut self, values: Vec<Draft>, wanted: Option<usize>, span: Span) -> Checked<Vec<Draft>> {
        match wanted {
            Some(wanted) if wanted != values.len() => {
                self.error(Code::E0235, span, format!("{} values are given, and {wanted} wanted", values.len()))
            }
            _ => Ok(values),
        }
    }

    /// What gives several values at once: a call of such a function, or an iteration of several states.
    fn several(&mut self, e: &ast::Expr) -> Checked<Option<(Bound, Vec<TensorType>)>> {
        match &e.kind {
            ExprKind::Paren(inner) => self.several(inner),
            ExprKind::Iterate(iterate) if iterate.states.len() != 1 => {
                let made = self.iterate(iterate, e.span)?;
                let types = made.states.iter().map(|(_, init)| init.ty.clone()).collect();
                Ok(Some((Bound::Iterate(made), types)))
            }
            ExprKind::Call(name, args, named) => self.call_several(*name, args, named, e.span),
            _ => Ok(None),
        }
    }

    /// Bindings in order. One that is wrong leaves its names without further messages.
    fn lets(&mut self, lets: &[ast::Let]) -> Checked<Vec<typed::Let>> {
        let mut made = Vec::new();
        let mut wrong = false;
        for binding in lets {
            match self.binding(binding) {
                Ok(typed) => made.extend(typed),
                Err(Reported) => {
                    wrong = true;
                    binding.names.iter().for_each(|name| self.bind(name.name, Meaning::Wrong));
                }
            }
        }
        if wrong { Err(Reported) } else { Ok(made) }
    }

    fn binding(&mut self, binding: &ast::Let) -> Checked<Option<typed::Let>> {
        if let [name] = binding.names.as_slice() {
            let mut value = self.expr(&binding.value)?;
            if let Some(ty) = &binding.ty
                && ty.elem != ast::Elem::Size
            {
                let mut draft = self.to_data(value, binding.value.span)?;
                self.must_have(&mut draft, ty, &format!("`{}`", name.name))?;
                value = Value::Data(draft);
            }
            let Value::Data(draft) = value else {
                self.bind(name.name, Meaning::Alias(value));
                return Ok(None);
            };
            if draft.flex != Flex::No && constant_size(&draft.expr, SMALL).is_some() {
                self.bind(name.name, Meaning::Alias(Value::Data(draft)));
                return Ok(None);
            }
            let unique = self.fresh(name.name);
            let ty = draft.expr.ty.clone();
            self.bind(name.name, Meaning::Tensor(unique, ty.clone()));
            return Ok(Some(typed::Let { names: vec![(unique, ty)], value: Bound::Expr(draft.expr) }));
        }
        let wanted = binding.names.len();
        let Some((value, types)) = self.several(&binding.value)? else {
            let text = format!("{wanted} names for one value");
            let error = Diagnostic::error(Code::E0235, binding.value.span, text)
                .help("functions with several results and iterations with several states give several values");
            return self.fail(error);
        };
        if types.len() != wanted {
            let text = format!("{wanted} names for {} values", types.len());
            return self.error(Code::E0235, binding.value.span, text);
        }
        let mut names = Vec::new();
        for (ident, ty) in binding.names.iter().zip(types) {
            let unique = self.fresh(ident.name);
            self.bind(ident.name, Meaning::Tensor(unique, ty.clone()));
            names.push((unique, ty));
        }
        Ok(Some(typed::Let { names, value }))
    }

    /// Checks that an expression has a type that is stated.
    pub fn must_have(&mut self, draft: &mut Draft, ty: &ast::Type, what: &str) -> Checked<()> {
        let elem = self.elem_of(ty)?;
        if !draft.can_be(elem) {
            let found = if draft.flex == Flex::No { draft.elem().to_string() } else { "a number".into() };
            let error = Diagnostic::error(Code::E0236, draft.expr.span, format!("{what} has elements of type {found}"))
                .also(ty.span, format!("{elem} is stated here"))
                .help(format!("convert it: `{elem}(…)`"));
            return self.fail(error);
        }
        draft.take(elem);
        let asked = self.asked(ty)?;
        let least: usize = asked.iter().map(|dim| if let Asked::Many(least) = dim { *least } else { 1 }).sum();
        let open = asked.iter().any(|dim| matches!(dim, Asked::Many(_)));
        let shape = draft.expr.ty.shape.clone();
        let wrong = |note: Option<String>| {
            let text = format!("{what} has the shape {}", shape_text(&shape));
            let error =
                Diagnostic::error(Code::E0236, draft.expr.span, text).also(ty.span, "another shape is stated here");
            match note {
                Some(note) => error.note(note),
                None => error,
            }
        };
        if shape.len() < least || (!open && shape.len() != least) {
            let error = wrong(None);
            return self.fail(error);
        }
        let mut rest = shape.len() - least;
        let mut at = 0;
        for dim in asked {
            match dim {
                Asked::Size(size) => {
                    match self.facts().prove_equal(&shape[at], &size) {
                        Verdict::Yes => {}
                        Verdict::No(sizes) => {
                            let place = if shape.len() == 1 { String::new() } else { format!("dimension {at} is ") };
                            let example =
                                if sizes.0.is_empty() { String::new() } else { format!(", for example where {sizes}") };
                            let mut error = wrong(Some(format!("{place}{}, and not {size}{example}", shape[at])));
                            if let Some(clause) = self.where_clause(&Cond::eq(&shape[at], &size)) {
                                error = error.help(clause);
                            }
                            return self.fail(error);
                        }
                        Verdict::Unknown => {
                            let note = format!("it could not be shown that {} is {size}", shape[at]);
                            let error = wrong(Some(note));
                            return self.fail(error);
                        }
                    }
                    at += 1;
                }
                Asked::One => at += 1,
                Asked::Many(least) => {
                    at += least + rest;
                    rest = 0;
                }
            }
        }
        Ok(())
    }

    // Iterations

    pub fn iterate(&mut self, iterate: &ast::Iterate, span: Span) -> Checked<typed::Iterate> {
        let times = self.plain_index(&iterate.times)?;
        let mut inits = Vec::new();
        for (_, init) in &iterate.states {
            inits.push(self.data(init)?);
        }
        // A first value that is a literal takes the type that the body gives to it.
        if inits.iter().any(|init| init.flex != Flex::No) {
            for elem in [None, Some(ElemType::F64), Some(ElemType::F32), Some(ElemType::I32), Some(ElemType::I64)] {
                let mut tried = inits.clone();
                if let Some(elem) = elem {
                    tried.iter_mut().filter(|init| init.can_be(elem)).for_each(|init| init.take(elem));
                }
                let (made, ..) = self.probing(|function| function.steps(iterate, &times, &mut tried, span));
                if made.is_ok() {
                    inits = tried;
                    break;
                }
            }
        }
        self.steps(iterate, &times, &mut inits, span)
    }

    fn steps(
        &mut self,
        iterate: &ast::Iterate,
        times: &Ix,
        inits: &mut [Draft],
        span: Span,
    ) -> Checked<typed::Iterate> {
        for init in inits.iter_mut() {
            init.flex = Flex::No;
        }
        let base = iterate.step.map_or(Name::new("t"), |step| step.name);
        let (step, index) = self.new_index(base);
        let made = super::index::within(&index, &Ix::from(0), times);
        let facts = vec![self.made(span, made)?];
        self.under(facts, |function| {
            if let Some(ident) = iterate.step {
                function.bind_index(ident, Value::Index(index.into()))?;
            }
            let mut states = Vec::new();
            for ((ident, _), init) in iterate.states.iter().zip(inits.iter()) {
                let unique = function.fresh(ident.name);
                function.bind(ident.name, Meaning::Tensor(unique, init.expr.ty.clone()));
                states.push((unique, init.expr.clone()));
            }
            let (lets, mut values) = function.block_values(&iterate.body, Some(states.len()))?;
            for (value, (name, init)) in values.iter_mut().zip(&states) {
                if !value.can_be(init.ty.elem) {
                    let text =
                        format!("the state `{name}` is {} before a step and {} after it", init.ty.elem, value.elem());
                    let error = Diagnostic::error(Code::E0236, value.expr.span, text);
                    return function.fail(error);
                }
                value.take(init.ty.elem);
                let before = Draft::fixed(init.clone());
                let what = format!("the state `{name}` has another shape after a step");
                function.same_shape(&before, value, value.expr.span, &what)?;
            }
            let results = values.into_iter().map(|draft| draft.expr).collect();
            Ok(typed::Iterate { times: times.clone(), step, states, body: typed::Block { lets, results } })
        })
    }
}

fn comparison(op: BinaryOp) -> Option<fn(&Ix, &Ix) -> Result<Cond, certen_index::IxError>> {
    Some(match op {
        BinaryOp::Lt => Cond::lt,
        BinaryOp::Le => Cond::le,
        BinaryOp::Gt => |a, b| Cond::lt(b, a),
        BinaryOp::Ge => |a, b| Cond::le(b, a),
        BinaryOp::Eq => Cond::eq,
        BinaryOp::Ne => |a, b| Cond::eq(a, b)?.not(),
        _ => return None,
    })
}

/// An index, perhaps one of several by conditions, as data.
fn index_data(index: &Index, span: Span) -> Expr {
    match index {
        Index::Is(ix) => index_expr(ix, ElemType::I64, span),
        Index::Case(case) => {
            let (then, otherwise) = (index_data(&case.1, span), index_data(&case.2, span));
            let ty = then.ty.clone();
            Expr { kind: Kind::If(case.0.clone(), Box::new(then), Box::new(otherwise)), ty, span }
        }
    }
}

/// A condition as data.
fn truth(cond: Cond, span: Span) -> Expr {
    let ty = TensorType::scalar(ElemType::Bool);
    let literal = |value| Expr { kind: Kind::Literal(Literal::Bool(value)), ty: ty.clone(), span };
    match (cond.is_always(), cond.is_never()) {
        (true, _) => literal(true),
        (_, true) => literal(false),
        _ => Expr { kind: Kind::If(cond, Box::new(literal(true)), Box::new(literal(false))), ty, span },
    }
}

/// A shape as it is written.
pub(super) fn shape_text(shape: &[Ix]) -> String {
    let sizes: Vec<String> = shape.iter().map(Ix::to_string).collect();
    format!("[{}]", sizes.join(", "))
}
