//! Blocks and iterations: what binds names.

use certen_core::{ElemType, TensorType};
use certen_index::{Cond, Ix};
use certen_syntax::{Code, Diagnostic, Name, Span};

use super::scope::{Checker, Referent};
use super::value::{Draft, Flex, Judged, block_expr, constant_size};
use super::wanted::Wanted;
use super::{Checked, Reported};
use crate::ast::{self, ExprKind};
use crate::typed::{self, Rhs};

/// Constants and `let`s of literals up to this many numbers stay flexible: they are written again at each use.
const SMALL: usize = 64;

impl Checker<'_, '_> {
    /// A block with one result.
    pub fn block(&mut self, block: &ast::Block) -> Checked<Judged> {
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
                Judged::Data(draft) => Ok(Judged::Data(Draft { expr: block_expr(lets, draft.expr), flex: draft.flex })),
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

    /// Checks a stated type of the index level.
    fn must_be_index(&mut self, value: &Judged, ty: &ast::Type, span: Span) -> Checked<()> {
        match (value, ty.dims.as_slice()) {
            (Judged::Index(_), []) => Ok(()),
            (Judged::Vector(parts), [ast::Dim::Size(length)]) => {
                let stated = self.plain_index(length)?;
                if stated.as_constant() == Some(parts.len() as i64) {
                    return Ok(());
                }
                let text = format!("an index vector of {} components, and {stated} are stated", parts.len());
                let error = Diagnostic::error(Code::E0236, span, text).also(ty.span, "stated here");
                self.fail(error)
            }
            (Judged::Data(_) | Judged::Cond(_), _) => self.no_index(value, span),
            _ => {
                let text = "one index and an index vector are different things: `size` and `size[2]`";
                let error = Diagnostic::error(Code::E0236, span, text).also(ty.span, "stated here");
                self.fail(error)
            }
        }
    }

    /// What gives several values at once: a call of such a function, or an iteration of several states.
    fn several(&mut self, e: &ast::Expr) -> Checked<Option<(Rhs, Vec<TensorType>)>> {
        match &e.kind {
            ExprKind::Paren(inner) => self.several(inner),
            ExprKind::Iterate(iterate) if iterate.states.len() != 1 => {
                let made = self.iterate(iterate, e.span)?;
                let types = made.states.iter().map(|(_, init)| init.ty.clone()).collect();
                Ok(Some((Rhs::Iterate(made), types)))
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
                    binding.names.iter().for_each(|name| self.bind(name.name, Referent::Wrong));
                }
            }
        }
        if wrong { Err(Reported) } else { Ok(made) }
    }

    fn binding(&mut self, binding: &ast::Let) -> Checked<Option<typed::Let>> {
        if let [name] = binding.names.as_slice() {
            let wanted = binding.ty.as_ref().and_then(|ty| self.wanted_by(ty));
            self.want(&binding.value, wanted.as_ref());
            let mut value = self.expr(&binding.value)?;
            if let Some(ty) = &binding.ty
                && ty.elem == ast::Elem::Size
            {
                self.must_be_index(&value, ty, binding.value.span)?;
            } else if let Some(ty) = &binding.ty {
                let mut draft = self.as_data(value, binding.value.span)?;
                self.must_have(&mut draft, ty, &format!("`{}`", name.name))?;
                value = Judged::Data(draft);
            }
            let Judged::Data(draft) = value else {
                self.bind(name.name, Referent::Alias(value));
                return Ok(None);
            };
            if draft.flex != Flex::No && constant_size(&draft.expr, SMALL).is_some() {
                self.bind(name.name, Referent::Alias(Judged::Data(draft)));
                return Ok(None);
            }
            let unique = self.fresh(name.name);
            let ty = draft.expr.ty.clone();
            self.bind(name.name, Referent::Tensor(unique, ty.clone()));
            return Ok(Some(typed::Let { names: vec![(unique, ty)], value: Rhs::Expr(draft.expr) }));
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
            self.bind(ident.name, Referent::Tensor(unique, ty.clone()));
            names.push((unique, ty));
        }
        Ok(Some(typed::Let { names, value }))
    }

    // Iterations

    pub fn iterate(&mut self, iterate: &ast::Iterate, span: Span) -> Checked<typed::Iterate> {
        let times = self.plain_index(&iterate.times)?;
        let mut inits = Vec::new();
        for (at, (_, init)) in iterate.states.iter().enumerate() {
            let wanted = self.wanted_at(span, at);
            self.want(init, wanted.as_ref());
            inits.push(self.data(init)?);
        }
        // A first value that is a literal takes the type that the body gives to it.
        if inits.iter().any(|init| init.flex != Flex::No) {
            for elem in [None, Some(ElemType::F64), Some(ElemType::F32), Some(ElemType::I32), Some(ElemType::I64)] {
                let mut tried = inits.clone();
                if let Some(elem) = elem {
                    let fits = tried.iter_mut().filter(|init| init.can_be(elem)).all(|init| init.take(elem).is_ok());
                    if !fits {
                        continue;
                    }
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
        let facts = vec![self.made(span, super::index::within(&index, &Ix::from(0), times))?];
        // Where bounds are inferred, an access may go as far as the steps let it.
        let range = (step, Ix::from(0), times.clone());
        let seen = self.probe.as_ref().map_or(0, Vec::len);
        self.ranges.push(range.clone());
        let made = self.step(facts, iterate, times, inits, (step, index));
        self.ranges.pop();
        if let Some(accesses) = &mut self.probe {
            accesses[seen..].iter_mut().for_each(|access| access.ranges.push(range.clone()));
        }
        made
    }

    /// One step, where its number is in range.
    fn step(
        &mut self,
        facts: Vec<Cond>,
        iterate: &ast::Iterate,
        times: &Ix,
        inits: &[Draft],
        (step, index): (Name, Ix),
    ) -> Checked<typed::Iterate> {
        self.under(facts, |function| {
            if let Some(ident) = iterate.step {
                function.bind_index(ident, Judged::Index(index.into()))?;
            }
            let mut states = Vec::new();
            for ((ident, _), init) in iterate.states.iter().zip(inits.iter()) {
                let unique = function.fresh(ident.name);
                function.bind(ident.name, Referent::Tensor(unique, init.expr.ty.clone()));
                states.push((unique, init.expr.clone()));
            }
            let wanted: Vec<Option<Wanted>> =
                states.iter().map(|(_, init)| Some(Wanted::new(&init.ty.shape, init.span))).collect();
            function.want_block(&iterate.body, &wanted);
            let (lets, mut values) = function.block_values(&iterate.body, Some(states.len()))?;
            for (value, (name, init)) in values.iter_mut().zip(&states) {
                if !value.can_be(init.ty.elem) {
                    let text =
                        format!("the state `{name}` is {} before a step and {} after it", init.ty.elem, value.elem());
                    let error = Diagnostic::error(Code::E0236, value.expr.span, text);
                    return function.fail(error);
                }
                function.give(value, init.ty.elem)?;
                let before = Draft::fixed(init.clone());
                let what = format!("the state `{name}` has another shape after a step");
                function.same_shape(&before, value, value.expr.span, &what)?;
            }
            let results = values.into_iter().map(|draft| draft.expr).collect();
            Ok(typed::Iterate { times: times.clone(), step, states, body: typed::Block { lets, results } })
        })
    }
}
