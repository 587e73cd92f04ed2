//! Expressions: one arm for each form; names, lists, operators.

use std::sync::Arc;

use certen_core::{Binary, ElemType, Literal, TensorType, Unary, by_squaring};
use certen_index::{Cond, Ix, IxError, Verdict};
use certen_syntax::{Code, Diagnostic, Name, Span, near};

use super::index::Index;
use super::scope::{Checker, Referent};
use super::types::shape_text;
use super::value::{Draft, Flex, Judged, index_expr};
use super::{Checked, Reported, too_complex};
use crate::ast::{self, BinaryOp, ExprKind, UnaryOp};
use crate::library::Declared;
use crate::typed::{Expr, Kind};

/// The largest exponent of a power of indices: all but those of 0, 1 and -1 are then beyond 64 bits.
const MAX_INDEX_POWER: i64 = 63;

/// Constants and index functions inside each other.
const MAX_INLINED: usize = 200;

/// The constants of mathematics and of floats, which everything that a program declares hides.
fn constant(name: Name) -> Option<Kind> {
    let value = match name.as_str() {
        "pi" => std::f64::consts::PI,
        "e" => std::f64::consts::E,
        "inf" => f64::INFINITY,
        "nan" => f64::NAN,
        "eps" => return Some(Kind::Epsilon),
        _ => return None,
    };
    Some(Kind::Literal(Literal::Float(value)))
}

impl<'l> Checker<'_, 'l> {
    /// What an expression stands for.
    pub fn expr(&mut self, e: &ast::Expr) -> Checked<Judged> {
        Ok(match &e.kind {
            ExprKind::Name(name) => return self.name(*name, e.span),
            ExprKind::Int(value) => Judged::Index(Ix::from(*value).into()),
            ExprKind::Float(value) => {
                let ty = TensorType::scalar(ElemType::F64);
                let expr = Expr { kind: Kind::Literal(Literal::Float(*value)), ty, span: e.span };
                Judged::Data(Draft { expr, flex: Flex::Float })
            }
            ExprKind::Bool(value) => Judged::Cond(if *value { Cond::always() } else { Cond::never() }),
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
            ExprKind::Comprehension(parts) => Judged::Data(self.comprehension(parts, e.span)?),
            ExprKind::With(with) => Judged::Data(self.with_loop(with, e.span)?),
            ExprKind::Iterate(iterate) => {
                let made = self.iterate(iterate, e.span)?;
                if made.states.len() != 1 {
                    let text = format!("an iteration of {} states gives {0} values", made.states.len());
                    return self.error(Code::E0235, e.span, text);
                }
                let ty = made.states[0].1.ty.clone();
                Judged::Data(Draft::fixed(Expr { kind: Kind::Iterate(Box::new(made)), ty, span: e.span }))
            }
        })
    }

    /// An expression as data.
    pub fn data(&mut self, e: &ast::Expr) -> Checked<Draft> {
        let value = self.expr(e)?;
        self.as_data(value, e.span)
    }

    /// An expression as an index without cases.
    pub fn plain_index(&mut self, e: &ast::Expr) -> Checked<Ix> {
        match self.expr(e)? {
            Judged::Index(index) => match index.plain() {
                Some(ix) => Ok(ix.clone()),
                None => self.error(Code::E0216, e.span, "a size or bound cannot depend on an `if`"),
            },
            value => self.no_index(&value, e.span),
        }
    }

    /// The error that something is not an index.
    pub fn no_index<T>(&mut self, value: &Judged, span: Span) -> Checked<T> {
        self.no_index_but(value, span, "places and shapes that data decides are not in this version")
    }

    /// The error that something is not an index, with what to do if it is data.
    pub fn no_index_but<T>(&mut self, value: &Judged, span: Span, help: &str) -> Checked<T> {
        let error = match value {
            Judged::Data(Draft {
                expr: Expr { kind: Kind::Binary(Binary::Div, ..), .. },
                flex: Flex::Int | Flex::Float,
            }) => Diagnostic::error(Code::E0231, span, "`/` makes fractions, and a fraction is no index")
                .help("`floor_div(a, 2)` rounds down, `ceil_div(a, 2)` up"),
            Judged::Data(_) => {
                Diagnostic::error(Code::E0231, span, "this is data, and data never becomes an index or size")
                    .note(
                        "shapes and indices are made of sizes, indices and literals: they are known before any data is",
                    )
                    .help(help)
            }
            Judged::Vector(parts) => {
                let text = format!("one index is wanted here, not an index vector of {} components", parts.len());
                Diagnostic::error(Code::E0231, span, text)
            }
            Judged::Cond(_) => Diagnostic::error(Code::E0231, span, "an index is wanted here, not a condition"),
            Judged::Index(_) => Diagnostic::error(Code::E0231, span, "an index vector is wanted here, not one index"),
        };
        self.fail(error)
    }

    /// A value as data: an index takes the element type of its context.
    pub fn as_data(&mut self, value: Judged, span: Span) -> Checked<Draft> {
        Ok(match value {
            Judged::Data(draft) => draft,
            Judged::Index(index) => Draft { expr: index_data(&index, span), flex: Flex::Int },
            Judged::Vector(parts) => {
                let parts: Vec<Expr> = parts.iter().map(|part| index_data(part, span)).collect();
                Draft { expr: self.stack(parts, TensorType::scalar(ElemType::I64), span), flex: Flex::Int }
            }
            Judged::Cond(cond) => Draft::fixed(truth(cond, span)),
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

    /// What a name stands for.
    pub fn name(&mut self, name: Name, span: Span) -> Checked<Judged> {
        match self.meaning(name) {
            Some(Referent::Size(value) | Referent::Alias(value)) => {
                let mut value = value.clone();
                if let Judged::Data(draft) = &mut value {
                    draft.expr.span = span;
                }
                return Ok(value);
            }
            Some(Referent::Tensor(unique, ty)) => return Ok(Judged::Data(Self::var(*unique, ty.clone(), span))),
            Some(Referent::Wrong) => return Err(Reported),
            None => {}
        }
        match self.world.library.lookup(self.file, name) {
            Some(Declared::Const(constant)) => {
                let value = &self.world.library.constant(constant);
                self.inline(constant.file, span, |function| {
                    let wanted = value.ty.as_ref().and_then(|ty| function.wanted_by(ty));
                    function.want(&value.value, wanted.as_ref());
                    let made = function.expr(&value.value)?;
                    match (&value.ty, made) {
                        (Some(ty), made) => {
                            let mut draft = function.as_data(made, value.value.span)?;
                            function.must_have(&mut draft, ty, &format!("`{name}`"))?;
                            Ok(Judged::Data(draft))
                        }
                        (None, made) => Ok(made),
                    }
                })
            }
            Some(Declared::Function(_)) => {
                let text = format!("`{name}` is a function: it is called as `{name}(…)`");
                self.error(Code::E0235, span, text)
            }
            Some(Declared::Derived(derived)) => self.no_call(derived, span),
            None => match constant(name) {
                Some(kind) => {
                    let expr = Expr { kind, ty: TensorType::scalar(ElemType::F64), span };
                    Ok(Judged::Data(Draft { expr, flex: Flex::Float }))
                }
                None => self.unknown(name, span),
            },
        }
    }

    /// Evaluates something of another place as part of this function.
    pub fn inline<T>(
        &mut self,
        file: crate::library::FileRef,
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
        if self.current().is_some_and(|function| function.params.iter().any(in_types)) {
            error = error.help(format!("a size is bound where it stands alone, as in `x: f64[{name}]`; or let the caller say it: `{name}: size`"));
            return self.fail(error);
        }
        if let Some(near) = self.nearest(name) {
            error = error.meant(name, near);
        }
        self.fail(error)
    }

    /// The visible name most like one that is not there.
    pub fn nearest(&self, name: Name) -> Option<&str> {
        let names = self.visible().chain(self.world.library.names(self.file)).map(|name| name.as_str());
        let names = names.chain(super::builtin::names());
        near(name.as_str(), names.filter(|other| !other.contains('.')))
    }

    fn list(&mut self, parts: &[ast::Expr], span: Span) -> Checked<Judged> {
        let values = parts.iter().map(|part| self.expr(part)).collect::<Checked<Vec<Judged>>>()?;
        if values.iter().all(|value| matches!(value, Judged::Index(_))) {
            let index = |value| if let Judged::Index(index) = value { Some(index) } else { None };
            return Ok(Judged::Vector(values.into_iter().filter_map(index).collect()));
        }
        let mut drafts = Vec::new();
        for (value, part) in values.into_iter().zip(parts) {
            drafts.push(self.as_data(value, part.span)?);
        }
        let mut first = drafts.remove(0);
        for draft in &mut drafts {
            self.unify(&mut first, draft, span)?;
            self.same_shape(&first, draft, span, "the parts of a tensor literal have different shapes")?;
        }
        // The last one may have fixed the type of all.
        let (elem, flex) = (first.elem(), first.flex);
        for draft in &mut drafts {
            self.settle(draft, elem, flex)?;
        }
        let part = first.expr.ty.clone();
        let parts = std::iter::once(first).chain(drafts).map(|draft| draft.expr).collect();
        Ok(Judged::Data(Draft { expr: self.stack(parts, part, span), flex }))
    }

    // Operators

    fn unary(&mut self, op: UnaryOp, a: &ast::Expr, span: Span) -> Checked<Judged> {
        match (op, self.expr(a)?) {
            (UnaryOp::Neg, Judged::Index(index)) => {
                let made = index.map(&|ix| ix.scale(-1));
                Ok(Judged::Index(self.made(span, made)?))
            }
            (UnaryOp::Neg, Judged::Vector(parts)) => {
                let made = parts.iter().map(|part| part.map(&|ix| ix.scale(-1))).collect();
                Ok(Judged::Vector(self.made(span, made)?))
            }
            (UnaryOp::Not, Judged::Cond(cond)) => Ok(Judged::Cond(self.made(span, cond.not())?)),
            (op, value) => {
                let draft = self.as_data(value, a.span)?;
                let op = if op == UnaryOp::Neg { Unary::Neg } else { Unary::Not };
                Ok(Judged::Data(self.apply_unary(op, draft, span)?))
            }
        }
    }

    /// An operation on each element.
    pub fn apply_unary(&mut self, op: Unary, mut a: Draft, span: Span) -> Checked<Draft> {
        if op.result(a.elem()).is_none() && a.flex == Flex::Int && op.result(ElemType::F64).is_some() {
            self.settle(&mut a, ElemType::F64, Flex::Float)?;
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

    fn binary(&mut self, op: BinaryOp, a: &ast::Expr, b: &ast::Expr, span: Span) -> Checked<Judged> {
        match op {
            BinaryOp::And | BinaryOp::Or => return self.logic(op == BinaryOp::And, a, b, span),
            BinaryOp::MatMul => {
                let (left, right) = (self.data(a)?, self.data(b)?);
                return Ok(Judged::Data(self.matrix_product(left, right, span)?));
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
        (left, left_span): (Judged, Span),
        (right, right_span): (Judged, Span),
        span: Span,
    ) -> Checked<Judged> {
        let of_indices: Option<OfTwo<Ix>> = match op {
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
            return Ok(Judged::Cond(cond));
        }
        if op == BinaryOp::Concat {
            return self.concatenate((left, left_span), (right, right_span), span);
        }
        if op == BinaryOp::Pow
            && let Some(made) = self.index_power(&left, &right, span)?
        {
            return Ok(made);
        }
        let (left, right) = (self.as_data(left, left_span)?, self.as_data(right, right_span)?);
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
        Ok(Judged::Data(self.apply_binary(op, left, right, span)?))
    }

    /// A power of the index level: exact, as all of it is. With an exponent that is negative or broken, there is none.
    fn index_power(&mut self, base: &Judged, exponent: &Judged, span: Span) -> Checked<Option<Judged>> {
        let constant = if let Judged::Index(exponent) = exponent { exponent.constant() } else { None };
        let Some(k @ 0..) = constant else { return Ok(None) };
        let power = |ix: &Ix| match k {
            0 => Ok(Ix::from(1)),
            1..=MAX_INDEX_POWER => by_squaring(ix, k as u64, Ix::mul),
            _ => Err(IxError::Overflow),
        };
        let made = match base {
            Judged::Index(base) => base.map(&power).map(Judged::Index),
            Judged::Vector(parts) => {
                parts.iter().map(|part| part.map(&power)).collect::<Result<_, _>>().map(Judged::Vector)
            }
            _ => return Ok(None),
        };
        made.map(Some).or_else(|error| {
            self.fail(too_complex(span, error).help(format!("a power of floats may be larger: `f64(a)^{k}`")))
        })
    }

    /// An operation on the elements of two operands.
    pub fn apply_binary(&mut self, op: Binary, mut a: Draft, mut b: Draft, span: Span) -> Checked<Draft> {
        self.unify(&mut a, &mut b, span)?;
        let symbol = if op.name().starts_with(char::is_alphabetic) { "+" } else { op.name() };
        let shape = self.entrywise(&a, &b, symbol, span)?;
        if op.result(a.elem()).is_none() && a.flex == Flex::Int && op.result(ElemType::F64).is_some() {
            self.settle(&mut a, ElemType::F64, Flex::Float)?;
            self.settle(&mut b, ElemType::F64, Flex::Float)?;
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
        // Operations of integers alone keep the type that they have: a float that the context wants is not an operand.
        let whole = matches!(op, Binary::FloorDiv | Binary::Mod);
        let flex = if compares || whole { Flex::No } else { a.flex };
        let ty = TensorType { elem, shape };
        Ok(Draft { flex, expr: Expr { kind: Kind::Binary(op, Box::new(a.expr), Box::new(b.expr)), ty, span } })
    }

    /// Index arithmetic, if both operands are of the index level: one index goes with each component of a vector.
    pub fn zip_indices(
        &mut self,
        left: &Judged,
        right: &Judged,
        f: &dyn Fn(&Ix, &Ix) -> Result<Ix, IxError>,
        span: Span,
    ) -> Checked<Option<Judged>> {
        let made: Result<Judged, _> = match (left, right) {
            (Judged::Index(a), Judged::Index(b)) => a.zip(b, f).map(Judged::Index),
            (Judged::Vector(a), Judged::Index(b)) => {
                a.iter().map(|a| a.zip(b, f)).collect::<Result<_, _>>().map(Judged::Vector)
            }
            (Judged::Index(a), Judged::Vector(b)) => {
                b.iter().map(|b| a.zip(b, f)).collect::<Result<_, _>>().map(Judged::Vector)
            }
            (Judged::Vector(a), Judged::Vector(b)) if a.len() == b.len() => {
                a.iter().zip(b).map(|(a, b)| a.zip(b, f)).collect::<Result<_, _>>().map(Judged::Vector)
            }
            (Judged::Vector(a), Judged::Vector(b)) => {
                let text = format!("index vectors of {} and {} components", a.len(), b.len());
                return self.error(Code::E0206, span, text);
            }
            _ => return Ok(None),
        };
        self.made(span, made).map(Some)
    }

    /// A condition, if both operands are of the index level. Of vectors it must hold for every component; `!=` for
    /// some.
    fn compare_indices(
        &mut self,
        left: &Judged,
        right: &Judged,
        f: OfTwo<Cond>,
        some: bool,
        span: Span,
    ) -> Checked<Option<Cond>> {
        let pairs: Vec<(&Index, &Index)> = match (left, right) {
            (Judged::Index(a), Judged::Index(b)) => vec![(a, b)],
            (Judged::Vector(a), Judged::Index(b)) => a.iter().map(|a| (a, b)).collect(),
            (Judged::Index(a), Judged::Vector(b)) => b.iter().map(|b| (a, b)).collect(),
            (Judged::Vector(a), Judged::Vector(b)) if a.len() == b.len() => a.iter().zip(b).collect(),
            (Judged::Vector(a), Judged::Vector(b)) => {
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
    fn logic(&mut self, and: bool, a: &ast::Expr, b: &ast::Expr, span: Span) -> Checked<Judged> {
        match self.expr(a)? {
            Judged::Cond(left) => {
                let made = if and { Ok(left.clone()) } else { left.not() };
                let known = self.made(span, made)?;
                match self.guarded(known, |function| function.expr(b))? {
                    Judged::Cond(right) => Ok(Judged::Cond(if and { left.and(right) } else { left.or(right) })),
                    value => {
                        let right = self.as_data(value, b.span)?;
                        let mut right = self.outside(right)?;
                        self.give(&mut right, ElemType::Bool)?;
                        let other = truth(if and { Cond::never() } else { Cond::always() }, span);
                        let other = self.repeated(other, &right.expr.ty, span);
                        let (then, otherwise) = if and { (right.expr, other) } else { (other, right.expr) };
                        let ty = then.ty.clone();
                        let kind = Kind::If(left, Box::new(then), Box::new(otherwise));
                        Ok(Judged::Data(Draft::fixed(Expr { kind, ty, span })))
                    }
                }
            }
            value => {
                let left = self.as_data(value, a.span)?;
                let right = self.data(b)?;
                let op = if and { Binary::And } else { Binary::Or };
                Ok(Judged::Data(self.apply_binary(op, left, right, span)?))
            }
        }
    }

    /// `a ++ b`: index vectors, or tensors along their outermost dimension.
    fn concatenate(&mut self, (left, ls): (Judged, Span), (right, rs): (Judged, Span), span: Span) -> Checked<Judged> {
        if let (Judged::Vector(a), Judged::Vector(b)) = (&left, &right) {
            return Ok(Judged::Vector(a.iter().chain(b).cloned().collect()));
        }
        let (mut a, mut b) = (self.as_data(left, ls)?, self.as_data(right, rs)?);
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
        let size = self.made(span, a.expr.ty.shape[0].add(&b.expr.ty.shape[0]))?;
        let shape: Arc<[Ix]> = std::iter::once(size).chain(a.expr.ty.shape[1..].iter().cloned()).collect();
        let ty = TensorType { elem: a.elem(), shape };
        let kind = Kind::Concat(Box::new(a.expr), Box::new(b.expr));
        Ok(Judged::Data(Draft { flex: a.flex, expr: Expr { kind, ty, span } }))
    }
}

/// Something made of two index expressions.
type OfTwo<T> = fn(&Ix, &Ix) -> Result<T, IxError>;

fn comparison(op: BinaryOp) -> Option<OfTwo<Cond>> {
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
