//! With-loops: genarray, modarray and fold (SaC, Sec. 2).

use certen_core::{Literal, ReduceOp, TensorType};
use certen_index::Ix;
use certen_syntax::{Code, Diagnostic, Name, Span};

use super::Checked;
use super::index::extent;
use super::plan::{End, Plan, PlanSlot};
use super::scope::Checker;
use super::types::shape_text;
use super::value::{Draft, Flex, Judged};
use crate::ast::{self, FoldOp, WithOp};
use crate::library::Declared;
use crate::typed::{self, Expr, Generator, Kind, WithDefault};

impl Checker<'_, '_> {
    pub fn with_loop(&mut self, with: &ast::With, span: Span) -> Checked<Draft> {
        match &with.operation {
            WithOp::Genarray(shape, default) => {
                let frame = self.sizes_of(shape)?;
                let default = match default {
                    Some(default) => Some(self.data(default)?),
                    None => None,
                };
                let generators = self.generators(with, Some(&frame), span)?;
                self.genarray(generators, frame, default, span)
            }
            WithOp::Modarray(array) => {
                let array = self.data(array)?;
                let shape = array.expr.ty.shape.to_vec();
                let generators = self.generators(with, Some(&shape), span)?;
                self.modarray(generators, array, span)
            }
            WithOp::Fold(op, neutral) => {
                let neutral = self.data(neutral)?;
                let generators = self.generators(with, None, span)?;
                self.fold(*op, neutral, generators, span)
            }
        }
    }

    /// An index vector of sizes; one index is a vector of one.
    pub fn sizes_of(&mut self, shape: &ast::Expr) -> Checked<Vec<Ix>> {
        let parts = match self.expr(shape)? {
            Judged::Vector(parts) => parts,
            Judged::Index(index) => vec![index],
            value => {
                let help = "a size that is known only at run time is a parameter: `k: size`";
                return self.no_index_but(&value, shape.span, help);
            }
        };
        let mut sizes = Vec::new();
        for part in parts {
            let Some(ix) = part.plain() else {
                return self.error(Code::E0216, shape.span, "a size cannot depend on an `if`");
            };
            sizes.push(self.made(shape.span, extent(self.facts(), &Ix::from(0), ix))?);
        }
        Ok(sizes)
    }

    /// The generators, each checked where no earlier one has its indices. `shape` is what dots refer to: the frame of a
    /// genarray, or the whole array of a modarray, of which a generator may range over the first dimensions.
    fn generators(&mut self, with: &ast::With, shape: Option<&[Ix]>, span: Span) -> Checked<Vec<(Plan, Draft)>> {
        let whole = matches!(with.operation, WithOp::Genarray(..));
        let mut made: Vec<(Plan, Draft)> = Vec::new();
        for (pattern, relation, body) in &with.generators {
            let rank = shape.map(<[Ix]>::len);
            let mut plan = self.plan(pattern, std::slice::from_ref(relation), rank, None, relation.span)?;
            if plan.slots.iter().any(|slot| !matches!(slot, PlanSlot::Index(_))) {
                let error = Diagnostic::error(Code::E0233, relation.span, "the pattern of a with-loop has no dots")
                    .help("comprehensions have them: `{ [i, .] -> … }`");
                return self.fail(error);
            }
            let count = plan.indices.len();
            if let Some(shape) = shape
                && (count > shape.len() || (whole && count < shape.len()))
            {
                let text = format!("{count} indices for the shape {}", shape_text(shape));
                return self.error(Code::E0233, relation.span, text);
            }
            if let Some((first, _)) = made.first()
                && first.indices.len() != count
            {
                let text = format!("generators of {} and of {count} indices in one with-loop", first.indices.len());
                return self.error(Code::E0233, relation.span, text);
            }
            for (at, upper) in plan.upper.iter_mut().enumerate() {
                if matches!(upper, End::Dot | End::Missing) {
                    match shape.and_then(|shape| shape.get(at)) {
                        Some(size) => *upper = End::Found(size.clone()),
                        None => {
                            let text = "a fold has no shape that `.` could be the end of";
                            let error = Diagnostic::error(Code::E0230, relation.span, text).help("write the bound");
                            return self.fail(error);
                        }
                    }
                }
            }
            if let Some(shape) = shape {
                self.stays_inside(&plan, &shape[..count], None, relation.span)?;
            }
            let mut facts = Vec::new();
            for (before, _) in &made {
                facts.extend(self.not_in(before, &plan, count, span)?);
            }
            let mut body = self.evaluate(&plan, body, facts)?;
            if let Some((_, first)) = made.first_mut() {
                self.unify(first, &mut body, span)?;
                self.same_shape(first, &body, span, "the elements of the generators have different shapes")?;
            }
            made.push((plan, body));
        }
        Ok(made)
    }

    fn genarray(
        &mut self,
        mut generators: Vec<(Plan, Draft)>,
        frame: Vec<Ix>,
        default: Option<Draft>,
        span: Span,
    ) -> Checked<Draft> {
        let mut default = match (default, generators.first()) {
            (Some(default), _) => default,
            (None, Some((_, body))) => {
                let expr = self.zeros(&body.expr.ty, span);
                Draft { expr, flex: body.flex }
            }
            (None, None) => {
                return self.error(Code::E0230, span, "nothing says what the elements are: there is no default either");
            }
        };
        if let Some((_, body)) = generators.first_mut() {
            self.unify(body, &mut default, span)?;
            if default.rank() == 0 && body.rank() > 0 {
                let place = default.expr.span;
                let error = Diagnostic::error(Code::E0206, place, "the default is a scalar, and the elements are not")
                    .also(body.expr.span, format!("this has the shape {}", shape_text(&body.expr.ty.shape)))
                    .help("without a default the elements are zero: `genarray(shape)`");
                return self.fail(error);
            }
            self.same_shape(body, &default, span, "the default element has another shape than the elements")?;
        }
        let shape: Vec<Ix> = frame.iter().chain(default.expr.ty.shape.iter()).cloned().collect();
        let (elem, flex) = (default.elem(), default.flex);
        let generators = self.settled(generators, elem, flex)?;
        let kind = Kind::With(Box::new(typed::With { generators, frame, default: WithDefault::Cell(default.expr) }));
        Ok(Draft { expr: Expr { kind, ty: TensorType::new(elem, shape), span }, flex })
    }

    fn modarray(&mut self, mut generators: Vec<(Plan, Draft)>, mut array: Draft, span: Span) -> Checked<Draft> {
        let count = generators.first().map_or(array.rank(), |(plan, _)| plan.indices.len());
        let frame: Vec<Ix> = array.expr.ty.shape[..count].to_vec();
        if let Some((_, body)) = generators.first_mut() {
            self.unify(body, &mut array, span)?;
            let mut cell = array.expr.clone();
            cell.ty = TensorType::new(array.elem(), &array.expr.ty.shape[count..]);
            let cell = Draft { expr: cell, flex: array.flex };
            self.same_shape(&cell, body, span, "the elements have another shape than those of the array")?;
        }
        let (ty, elem, flex) = (array.expr.ty.clone(), array.elem(), array.flex);
        let generators = self.settled(generators, elem, flex)?;
        let kind = Kind::With(Box::new(typed::With { generators, frame, default: WithDefault::Array(array.expr) }));
        Ok(Draft { expr: Expr { kind, ty, span }, flex })
    }

    fn settled(
        &mut self,
        generators: Vec<(Plan, Draft)>,
        elem: certen_core::ElemType,
        flex: Flex,
    ) -> Checked<Vec<Generator>> {
        let mut made = Vec::new();
        for (plan, mut body) in generators {
            self.release(&plan.indices);
            self.settle(&mut body, elem, flex)?;
            let indices = plan.indices.iter().copied().zip(plan.ranges()).collect();
            made.push(Generator { indices, body: body.expr });
        }
        Ok(made)
    }

    fn fold(
        &mut self,
        op: FoldOp,
        mut neutral: Draft,
        mut generators: Vec<(Plan, Draft)>,
        span: Span,
    ) -> Checked<Draft> {
        if let Some((_, body)) = generators.first_mut() {
            self.unify(body, &mut neutral, span)?;
            self.same_shape(body, &neutral, span, "the first value has another shape than the elements")?;
        }
        let reduce = match op {
            FoldOp::Sum => Some(ReduceOp::Sum),
            FoldOp::Prod => Some(ReduceOp::Prod),
            FoldOp::Min => Some(ReduceOp::Min),
            FoldOp::Max => Some(ReduceOp::Max),
            FoldOp::All => Some(ReduceOp::All),
            FoldOp::Any => Some(ReduceOp::Any),
            FoldOp::Function(_) => None,
        };
        let op = match (reduce, op) {
            (Some(op), _) => {
                if op.combine().result(neutral.elem()) != Some(neutral.elem()) {
                    let text = format!("`{}` of elements of type {}", op.combine().name(), neutral.elem());
                    return self.error(Code::E0232, span, text);
                }
                typed::FoldOp::Reduce(op)
            }
            (None, FoldOp::Function(ident)) => {
                let found = self.world.library.lookup(self.file, ident.name);
                if let Some(Declared::Derived(derived)) = found {
                    return self.no_call(derived, ident.span);
                }
                let Some(Declared::Function(function)) = found else {
                    let mut error =
                        Diagnostic::error(Code::E0201, ident.span, format!("there is no function `{}`", ident.name));
                    if let Some(near) = self.nearest(ident.name) {
                        error = error.meant(ident.name, near);
                    }
                    return self.fail(error);
                };
                // What the function's parameters are decides the type of literals.
                let parameter = self.world.library.function(function).params.first().map(|param| param.ty.elem);
                if let (Some(ast::Elem::Is(elem)), true) = (parameter, neutral.flex != Flex::No) {
                    self.give(&mut neutral, elem)?;
                }
                neutral.flex = Flex::No;
                let ty = neutral.expr.ty.clone();
                let (so_far, element) = (self.fresh(Name::new("so_far")), self.fresh(Name::new("element")));
                let args = [so_far, element].map(|name| Judged::Data(Self::var(name, ty.clone(), ident.span)));
                let next = self.apply(function, args.into_iter().map(|value| (value, ident.span)).collect(), span)?;
                let mut next = self.as_data(next, span)?;
                self.give(&mut next, ty.elem)?;
                let before = Draft::fixed(Expr { kind: Kind::Var(so_far), ty, span });
                self.same_shape(&before, &next, span, "the function gives another shape than it takes")?;
                let associative = self.world.library.function(function).associative.is_some();
                typed::FoldOp::Function { so_far, element, next: next.expr, associative }
            }
            (None, _) => return Err(super::Reported),
        };
        let (ty, elem, flex) = (neutral.expr.ty.clone(), neutral.elem(), neutral.flex);
        let generators = self.settled(generators, elem, flex)?;
        let kind = Kind::Fold(Box::new(typed::Fold { generators, neutral: neutral.expr, op }));
        Ok(Draft { expr: Expr { kind, ty, span }, flex })
    }

    /// Zeros of a type.
    pub fn zeros(&mut self, ty: &TensorType, span: Span) -> Expr {
        let zero = Expr { kind: Kind::Literal(Literal::whole(0, ty.elem)), ty: TensorType::scalar(ty.elem), span };
        self.repeated(zero, ty, span)
    }

    /// A scalar in every element of a type.
    pub fn repeated(&mut self, scalar: Expr, ty: &TensorType, span: Span) -> Expr {
        if ty.is_scalar() {
            return scalar;
        }
        let (pattern, ranges) = self.over(&ty.shape);
        let partition = typed::Partition { pattern, ranges, body: scalar };
        Expr { kind: Kind::Comprehension(vec![partition]), ty: ty.clone(), span }
    }

    /// A pattern of fresh indices over a shape.
    pub fn over(&mut self, shape: &[Ix]) -> (Vec<typed::Slot>, Vec<typed::Range>) {
        let mut range = |size: &Ix| {
            let (index, _) = self.new_index(Name::new("i"));
            let range =
                typed::Range { lower: Ix::from(0), upper: size.clone(), lower_written: false, upper_written: true };
            (typed::Slot::Index(index), range)
        };
        shape.iter().map(&mut range).unzip()
    }
}
