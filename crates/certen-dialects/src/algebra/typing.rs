//! Typing (TeIL, Fig. 8 and 12; model language, Fig. 7 to 9).
//!
//! One function per rule, named after TeIL's; one [`Premise`] for everything a rule can fail on. Expressions are
//! visited in the order of the arena, parts first, so that a program is typed in one pass without recursion (Lemma 4.1:
//! typing is syntax-directed, computable and unique). An expression whose part is ill-typed has no type and gives no
//! second error. Guarantees: in a program without errors every expression has a type, and no evaluation of it leaves a
//! tensor's domain (Lemma 4.3, Thm. 4.6; tested in `certen-testgen`).

mod premises;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use certen_core::MAX_RANK;
use certen_index::{Cond, Facts, Ix, Verdict};
use certen_syntax::{Code, Diagnostic, Diagnostics, Name, Rule, Span};

use super::ast::{Arith, Expr, ExprId, Notation, Pair, Program};
use super::flow;
use super::premise::Premise;
use super::typed::{Dim, Shape, Typed};
use premises::with_counterexample;

/// The largest number of reductions inside each other.
pub const MAX_NESTING: usize = 100;

/// Types a program. Errors and warnings go to `diagnostics`; with an error there is no typed program. A program that
/// could not be read whole is not typed: what is missing would be blamed on the rest.
pub fn check(program: Program, diagnostics: &mut Diagnostics) -> Option<Typed> {
    if diagnostics.has_errors() {
        return None;
    }
    let mut checker = Checker {
        program: &program,
        facts: Facts::new(),
        sizes: Vec::new(),
        size_spans: HashMap::new(),
        decls: HashMap::new(),
        context: HashMap::new(),
        blamed: HashSet::new(),
        types: Vec::with_capacity(program.exprs.len()),
        nesting: Vec::with_capacity(program.exprs.len()),
        diagnostics,
    };
    checker.declarations();
    if checker.diagnostics.iter().any(|diagnostic| diagnostic.code == Code::E0210) {
        // Of a program that has no sizes, nothing else is worth a message.
        return None;
    }
    checker.expressions();
    for at in 0..program.stmts.len() {
        checker.ok_stmt(at);
    }
    let Checker { facts, sizes, decls, types, .. } = checker;
    if program.stmts.is_empty() && !diagnostics.has_errors() {
        let span = program.decls.first().map_or(program.end, |decl| decl.name_span);
        let (name, paper) = program.notation.words().empty;
        let rule = Rule { name, paper };
        diagnostics.push(Diagnostic::warning(Code::W0301, span, "the program has no statements").rule(rule));
    }
    if diagnostics.has_errors() {
        return None;
    }
    let flow = flow::analyse(&program, diagnostics)?;
    let types = types.into_iter().collect::<Option<Vec<Shape>>>()?;
    Some(Typed { program, sizes, facts, types, decls, flow })
}

struct Checker<'a> {
    program: &'a Program,
    facts: Facts,
    sizes: Vec<Name>,
    size_spans: HashMap<Name, Span>,
    decls: HashMap<Name, usize>,
    /// Γ: the shape of each declared tensor.
    context: HashMap<Name, Shape>,
    types: Vec<Option<Shape>>,
    /// Sizes that an error was given for.
    blamed: HashSet<Span>,
    /// How many reductions stand inside each other, at most.
    nesting: Vec<usize>,
    diagnostics: &'a mut Diagnostics,
}

/// A failed rule: the error to report, or nothing if a part has failed before.
type Judgement<T> = Result<T, Option<Box<Diagnostic>>>;

impl Checker<'_> {
    /// Γ, from the declarations, and what is known of the sizes.
    fn declarations(&mut self) {
        let program = self.program;
        for (size, span) in program.decls.iter().flat_map(|decl| &decl.shape) {
            let mut names = Default::default();
            size.collect_names(&mut names);
            for name in names {
                // A size is declared where it first stands.
                if let Entry::Vacant(first) = self.size_spans.entry(name) {
                    first.insert(*span);
                    self.sizes.push(name);
                    self.facts.assume(Cond::Ge(Ix::var(name).sub(&Ix::from(1)).unwrap_or(Ix::from(0))));
                }
            }
        }
        for clause in &program.wheres {
            let mut names = Default::default();
            clause.cond.collect_names(&mut names);
            if let Some(unknown) = names.iter().find(|name| !self.size_spans.contains_key(name)) {
                self.diagnostics.push(self.unknown_size(*unknown, clause.span));
            } else {
                self.facts.assume(clause.cond.clone());
            }
        }
        if let Some(clause) = program.wheres.first()
            && let Verdict::No(_) = self.facts.satisfiable()
        {
            let last = program.wheres.last().map_or(clause.span, |last| last.span);
            let error = Diagnostic::error(Code::E0210, clause.span.to(last), "no sizes satisfy these conditions");
            self.diagnostics.push(error.note("sizes are at least 1"));
        }
        for (at, decl) in program.decls.iter().enumerate() {
            self.declaration(at);
            let dims = decl.shape.iter().map(|(size, span)| Dim { size: Arc::new(size.clone()), origin: *span });
            self.context.entry(decl.name).or_insert_with(|| dims.collect());
        }
    }

    /// One declaration: a fresh name, sizes from Nat, of a number of bytes that can exist.
    fn declaration(&mut self, at: usize) {
        let decl = &self.program.decls[at];
        if let Some(&first) = self.decls.get(&decl.name) {
            let declared = self.words().declared;
            let text = format!("`{}` is {declared} twice", decl.name);
            let error = self.violation(Premise::UniqueName, decl.name_span, text);
            let first = self.program.decls[first].name_span;
            let error = error.label(format!("{declared} again")).also(first, format!("first {declared} here"));
            self.diagnostics.push(error);
            return;
        }
        self.decls.insert(decl.name, at);
        if let Some(&span) = self.size_spans.get(&decl.name) {
            let text = format!("`{}` is the name of a tensor and of a size", decl.name);
            self.diagnostics
                .push(Diagnostic::error(Code::E0211, decl.name_span, text).also(span, "used as a size here"));
        }
        for (size, span) in &decl.shape {
            if let Err(Some(error)) = self.natural(Premise::NatSize, size, *span, "a size") {
                // A shape with a name stands in many declarations.
                if self.blamed.insert(*span) {
                    self.diagnostics.push(*error);
                }
            }
        }
        if decl.shape.len() > MAX_RANK {
            self.diagnostics.push(rank_error(decl.name_span, decl.shape.len()));
        }
        // Eight bytes an element; sizes that are not known count as the least they can be.
        let bytes = decl
            .shape
            .iter()
            .try_fold(8i64, |bytes, (size, _)| bytes.checked_mul(size.as_constant().map_or(1, |size| size.max(1))));
        if bytes.is_none() {
            let text = format!("`{}` has more bytes than 63 bits can count", decl.name);
            self.diagnostics.push(Diagnostic::error(Code::E0215, decl.name_span, text));
        }
    }

    fn expressions(&mut self) {
        for (at, expr) in self.program.exprs.iter().enumerate() {
            let id = ExprId(at as u32);
            let inside = expr.parts().map(|part| self.nesting[part.index()]).max().unwrap_or(0);
            let own = match expr {
                Expr::Red(..) | Expr::Power(..) => 1,
                Expr::Contr(pairs, _) => pairs.len(),
                _ => 0,
            };
            self.nesting.push(inside + own);
            let judged = self.judge(id, expr).and_then(|shape| {
                let span = self.program.span(id);
                if shape.len() > MAX_RANK {
                    return Err(Some(Box::new(rank_error(span, shape.len()))));
                }
                if own > 0 && inside + own > MAX_NESTING {
                    let text = format!("more than {MAX_NESTING} reductions stand inside each other");
                    return Err(Some(Box::new(Diagnostic::error(Code::E0214, span, text))));
                }
                Ok(shape)
            });
            self.types.push(match judged {
                Ok(shape) => Some(shape),
                Err(error) => {
                    self.diagnostics.extend(error.map(|error| *error));
                    None
                }
            });
        }
    }

    /// `Γ ⊢ e : ī`, by the one rule that fits.
    fn judge(&self, id: ExprId, expr: &Expr) -> Judgement<Shape> {
        match expr {
            Expr::Var(name) => self.t_var(id, *name),
            Expr::Paren(e) => self.t_paren(*e),
            Expr::Elem(op, e0, e1) => self.t_elem(id, *op, *e0, *e1),
            Expr::Prod(e0, e1) => self.t_prod(*e0, *e1),
            Expr::Red(_, i, e) => self.t_red(id, *i, *e),
            Expr::Transp(pairs, e) => self.t_transp(id, pairs, *e),
            Expr::Diag(i0, i1, e) => self.t_diag(id, *i0, *i1, *e),
            Expr::Contr(pairs, e) => self.t_contr(id, pairs, *e),
            Expr::Expa(i, n, e) => self.t_expa(id, *i, n, *e),
            Expr::Proj(i, m, e) => self.t_proj(id, *i, m, *e),
            Expr::Scale(n, e) => self.t_times(Premise::ScaleFactor, id, n, *e, "the factor"),
            Expr::Power(n, e) => self.t_times(Premise::PowerExponent, id, n, *e, "the exponent"),
        }
    }

    /// T-Var: Γ(x) = ī.
    fn t_var(&self, id: ExprId, name: Name) -> Judgement<Shape> {
        match self.context.get(&name) {
            Some(shape) => Ok(shape.clone()),
            None => {
                let error = self.undeclared(Premise::VarDeclared, name, self.program.span(id));
                Err(Some(Box::new(error)))
            }
        }
    }

    /// T-Paren: parentheses change nothing.
    fn t_paren(&self, e: ExprId) -> Judgement<Shape> {
        self.shape(e)
    }

    /// T-Add, T-Mul, t-elem: both operands have the same shape; T-SMul, t-smul: or a scalar stands on the left of a
    /// product; t-sdiv: or on the right of a quotient.
    fn t_elem(&self, id: ExprId, op: Arith, e0: ExprId, e1: ExprId) -> Judgement<Shape> {
        let (left, right) = (self.shape(e0)?, self.shape(e1)?);
        let what = (self.words().arith)(op);
        match op {
            Arith::Mul if left.is_empty() => return Ok(right),
            Arith::Mul if right.is_empty() => {
                let text = format!("in {what}, the scalar stands on the left");
                return self.fail(Premise::SMulScalarLeft, id, text, |error| {
                    let both = error.also(self.program.span(e0), self.named(&left)).also(self.program.span(e1), "[]");
                    both.help("exchange the operands")
                });
            }
            Arith::Div if right.is_empty() => return Ok(left),
            Arith::Div if left.is_empty() => {
                let text = format!("in {what}, the scalar stands on the right");
                return self.fail(Premise::SDivScalarRight, id, text, |error| {
                    error.also(self.program.span(e0), "[]").also(self.program.span(e1), self.named(&right))
                });
            }
            _ => {}
        }
        let premise = if op == Arith::Mul { Premise::MulShapes } else { Premise::AddShapes };
        self.same_shape(premise, id, (e0, &left), (e1, &right), what)?;
        Ok(left)
    }

    /// T-Prod: the shapes one after the other.
    fn t_prod(&self, e0: ExprId, e1: ExprId) -> Judgement<Shape> {
        let (left, right) = (self.shape(e0)?, self.shape(e1)?);
        Ok(left.iter().chain(right.iter()).cloned().collect())
    }

    /// T-Red: the dimension at `i` disappears.
    fn t_red(&self, id: ExprId, i: i64, e: ExprId) -> Judgement<Shape> {
        let shape = self.shape(e)?;
        let i = self.position(Premise::RedPosition, id, i, e, &shape)?;
        Ok(without(&shape, |at| at == i))
    }

    /// T-Transp: the dimensions of each pair are exchanged.
    fn t_transp(&self, id: ExprId, pairs: &[Pair], e: ExprId) -> Judgement<Shape> {
        let shape = self.shape(e)?;
        let mut dims = shape.to_vec();
        for (i0, i1) in self.pairs((Premise::TranspPosition, Premise::TranspDistinct), id, pairs, e, &shape)? {
            dims.swap(i0, i1);
        }
        Ok(dims.into())
    }

    /// T-Diag: the dimensions at `i0` and `i1` have equal size; the later one disappears.
    fn t_diag(&self, id: ExprId, i0: i64, i1: i64, e: ExprId) -> Judgement<Shape> {
        let shape = self.shape(e)?;
        let diagonals = self.diagonals(id, &[(i0, i1)], e, &shape)?;
        Ok(without(&shape, |at| diagonals.iter().any(|(_, later)| *later == at)))
    }

    /// TeIL, Eq. 6: contr i0 i1 e := red+ i0 (diag i0 i1 e), for each pair, which may come in either order.
    fn t_contr(&self, id: ExprId, pairs: &[Pair], e: ExprId) -> Judgement<Shape> {
        let shape = self.shape(e)?;
        let diagonals = self.diagonals(id, pairs, e, &shape)?;
        Ok(without(&shape, |at| diagonals.iter().any(|(i0, i1)| *i0 == at || *i1 == at)))
    }

    /// Pairs of dimensions, each of equal size.
    fn diagonals(&self, id: ExprId, pairs: &[Pair], e: ExprId, shape: &Shape) -> Judgement<Vec<(usize, usize)>> {
        let pairs = self.pairs((Premise::DiagPosition, Premise::DiagDistinct), id, pairs, e, shape)?;
        for &(i0, i1) in &pairs {
            let (n0, n1) = (&shape[i0], &shape[i1]);
            let verdict = self.equal(&n0.size, &n1.size);
            if verdict == Verdict::Yes {
                continue;
            }
            let text = match verdict {
                Verdict::Unknown => format!("dimensions not shown to be of equal size: {} and {}", n0.size, n1.size),
                _ => format!("{} of dimensions of different size: {} and {}", self.words().diagonal, n0.size, n1.size),
            };
            return self.fail(Premise::DiagSizes, id, text, |error| {
                let error = error.label(format!("dimensions {} and {} of {}", i0 + 1, i1 + 1, self.named(shape)));
                self.explain_sizes(error, n0, n1, &verdict)
            });
        }
        Ok(pairs)
    }

    /// T-Expa: a new dimension of size `n` at `i`.
    fn t_expa(&self, id: ExprId, i: i64, n: &Ix, e: ExprId) -> Judgement<Shape> {
        let shape = self.shape(e)?;
        let at = usize::try_from(i).ok().filter(|i| (1..=shape.len() + 1).contains(i));
        let Some(at) = at else {
            let text = format!("`expa` at position {i} of {}", self.named(&shape));
            return self.fail(Premise::ExpaPosition, id, text, |error| {
                error.note(format!("the new dimension can stand at 1 to {}", shape.len() + 1))
            });
        };
        self.sizes_declared(n, id)?;
        self.natural(Premise::ExpaSize, n, self.program.span(id), "the new size")?;
        let mut dims = shape.to_vec();
        dims.insert(at - 1, Dim { size: Arc::new(n.clone()), origin: self.program.span(id) });
        Ok(dims.into())
    }

    /// T-Proj: m <= n; the dimension at `i` disappears.
    fn t_proj(&self, id: ExprId, i: i64, m: &Ix, e: ExprId) -> Judgement<Shape> {
        let shape = self.shape(e)?;
        let i = self.position(Premise::ProjPosition, id, i, e, &shape)?;
        self.sizes_declared(m, id)?;
        self.natural(Premise::ProjIndex, m, self.program.span(id), "the index of a slice")?;
        let n = &shape[i];
        let verdict = Cond::le(m, &n.size).map_or(Verdict::Unknown, |goal| self.facts.prove(&goal));
        if verdict == Verdict::Yes {
            return Ok(without(&shape, |at| at == i));
        }
        let text = format!("slice {m} of a dimension of size {}", n.size);
        self.fail(Premise::ProjBound, id, text, |error| {
            let error = error.label(format!("dimension {} of {}", i + 1, self.named(&shape)));
            let error = error.also(n.origin, format!("the size {} comes from here", n.size));
            let error = with_counterexample(error, &verdict);
            // A condition helps only if some size satisfies it.
            if n.size.as_constant().is_some() && m.as_constant().is_some() {
                return error.help(format!("slices are counted from 1 to {}", n.size));
            }
            self.suggest_where(error, Cond::le(m, &n.size).ok())
        })
    }

    /// Eq. 5 and its analogue: as `red+ 1 (expa 1 n e)`, so n is a natural number.
    fn t_times(&self, premise: Premise, id: ExprId, n: &Ix, e: ExprId, what: &str) -> Judgement<Shape> {
        let shape = self.shape(e)?;
        self.sizes_declared(n, id)?;
        self.natural(premise, n, self.program.span(id), what)?;
        Ok(shape)
    }

    /// OK-Stmt: Γ(x) = ī and Γ ⊢ e : ī.
    fn ok_stmt(&mut self, at: usize) {
        let stmt = &self.program.stmts[at];
        let error = match (self.context.get(&stmt.target), &self.types[stmt.value.index()]) {
            (None, _) => self.undeclared(Premise::TargetDeclared, stmt.target, stmt.target_span),
            (Some(_), None) => return,
            (Some(declared), Some(value)) => {
                let Some((at, verdict)) = self.mismatch(declared, value) else { return };
                let text = format!(
                    "`{}` has shape {}, but the right-hand side has shape {}",
                    stmt.target,
                    self.named(declared),
                    self.named(value)
                );
                let error = self.violation(Premise::TargetShape, self.program.span(stmt.value), text);
                let error = error.label(self.named(value)).also(stmt.target_span, self.named(declared));
                let error = match (at.and_then(|at| declared.get(at)), at.and_then(|at| value.get(at))) {
                    (Some(n0), Some(n1)) => self.explain_sizes(error, n0, n1, &verdict),
                    _ => error,
                };
                match self.transposition(declared, value) {
                    Some((i0, i1)) => {
                        let exchanged = (self.words().transp)((i0 as i64, i1 as i64));
                        error.help(format!("{exchanged} has the declared shape"))
                    }
                    None => error,
                }
            }
        };
        self.diagnostics.push(error);
    }

    /// The two positions whose exchange makes one shape the other, if there is just one such pair.
    fn transposition(&self, declared: &Shape, value: &Shape) -> Option<(usize, usize)> {
        if declared.len() != value.len() || declared.len() > 8 || self.program.notation == Notation::CoreTeil {
            return None;
        }
        let differ: Vec<usize> = (0..value.len()).filter(|&at| *declared[at].size != *value[at].size).collect();
        match differ.as_slice() {
            &[i0, i1] if *declared[i0].size == *value[i1].size && *declared[i1].size == *value[i0].size => {
                Some((i0 + 1, i1 + 1))
            }
            _ => None,
        }
    }
}

fn without(shape: &Shape, gone: impl Fn(usize) -> bool) -> Shape {
    shape.iter().enumerate().filter(|(at, _)| !gone(*at)).map(|(_, dim)| dim.clone()).collect()
}

fn rank_error(span: Span, rank: usize) -> Diagnostic {
    Diagnostic::error(Code::E0213, span, format!("{rank} dimensions are more than {MAX_RANK}"))
}
