//! Elaboration into Core: TeIL's Fig. 6 with symbols for indices, Fig. 9 with a new name for each assignment.
//!
//! `x = e` becomes a generation over the indices of x whose body is `[[e]]` at those indices: index-free operations
//! disappear, and no outer product is ever formed. An assignment that overwrites x binds a new name, so that a
//! statement reads the old memory and makes a new one. Statements that reach no output are left out.
//! [`elaborate_shared`] computes once what [`sharing`](super::sharing) has found. Needs: a typed program. Guarantees:
//! the same values as `certen_figures::semantics` (tested in `certen-testgen`).

use std::collections::{HashMap, HashSet};

use certen_core::{
    Binary, Binding, ElemType, Literal, Parameter, Program, Range, ReduceOp, TensorType, Term, TermId, Terms, TypeError,
};
use certen_index::{Cond, Ix};
use certen_syntax::{Code, Diagnostic, Name};

use super::ast::{Arith, Expr};
use super::fig6::{Equation, Reduction, equation, is_product};
use super::sharing::{Holder, Sharing};
use super::typed::Typed;

/// Elaborates a program, as written, over elements of a type; `name` is what the result is called.
///
/// # Errors
/// Only if the element type does not have the program's arithmetic; otherwise a typed program elaborates.
pub fn elaborate(typed: &Typed, name: Name, elem: ElemType) -> Result<Program, Box<Diagnostic>> {
    let program = &typed.program;
    let quotient = program.exprs.iter().position(|expr| matches!(expr, Expr::Elem(Arith::Div, ..)));
    if let Some(at) = quotient.filter(|_| !elem.is_float()) {
        let text =
            format!("{} divides floating-point numbers, not {elem}", (program.notation.words().arith)(Arith::Div));
        return Err(Box::new(Diagnostic::error(Code::E0504, program.spans[at], text)));
    }
    elaborate_with(Sharing::none(typed), typed, name, elem)
}

/// Elaborates a program with its common subexpressions computed once; none if it has none that are worth it.
///
/// # Errors
/// As [`elaborate`].
pub fn elaborate_shared(typed: &Typed, name: Name, elem: ElemType) -> Result<Option<Program>, Box<Diagnostic>> {
    let sharing = Sharing::of(typed);
    if sharing.is_none() {
        return Ok(None);
    }
    elaborate_with(sharing, typed, name, elem).map(Some)
}

fn elaborate_with(sharing: Sharing, typed: &Typed, name: Name, elem: ElemType) -> Result<Program, Box<Diagnostic>> {
    Elaborator::new(typed, elem, sharing).program(name).map_err(|error| {
        let text = format!("the program has no meaning over {elem}: {error}");
        Box::new(Diagnostic::error(Code::E0701, None, text))
    })
}

struct Elaborator<'a> {
    typed: &'a Typed,
    elem: ElemType,
    terms: Terms,
    sharing: Sharing,
    /// Names that are in use.
    taken: HashSet<Name>,
    /// How many versions of a name there are; an input is one.
    versions: HashMap<Name, u64>,
    /// What the value of each statement is called.
    bound: HashMap<usize, Name>,
    free_indices: Vec<Name>,
    sum_indices: Vec<Name>,
}

enum Pending {
    Eval(Equation<Ix>, usize),
    Combine(Binary),
    Reduce(ReduceOp, Name, Ix),
    Number(Ix),
    /// As [`Task::Number`], a literal if it is known.
    Exponent(Ix),
}

impl<'a> Elaborator<'a> {
    fn new(typed: &'a Typed, elem: ElemType, sharing: Sharing) -> Self {
        let declared = typed.program.decls.iter().map(|decl| decl.name);
        let shared = sharing.shared.iter().map(|shared| shared.name);
        let taken = typed.sizes.iter().copied().chain(declared).chain(shared).collect();
        Elaborator {
            typed,
            elem,
            terms: Terms::new(typed.facts.clone()),
            sharing,
            taken,
            versions: typed.inputs().iter().map(|&name| (name, 1)).collect(),
            bound: HashMap::new(),
            free_indices: Vec::new(),
            sum_indices: Vec::new(),
        }
    }

    fn program(&mut self, name: Name) -> Result<Program, TypeError> {
        let typed = self.typed;
        let inputs: Vec<Parameter> =
            typed.inputs().iter().map(|&name| Parameter { name, ty: self.declared(name) }).collect();
        let mut bindings = Vec::new();
        let mut next = 0;
        for at in (0..typed.program.stmts.len()).filter(|&at| typed.flow.live[at]) {
            while let Some(shared) = self.sharing.shared.get(next).filter(|shared| shared.stmt == at) {
                let name = shared.name;
                let term = self.shared(next)?;
                bindings.push(Binding { name, term });
                next += 1;
            }
            if self.sharing.stmts[at] == Some(Holder::Stmt(at)) {
                let term = self.stmt(at)?;
                let name = self.version(typed.program.stmts[at].target);
                self.bound.insert(at, name);
                bindings.push(Binding { name, term });
            }
        }
        let holder = |name: &Name| typed.flow.last.get(name).and_then(|&at| self.sharing.stmts[at]);
        let shown = |name: &Name| (*name, holder(name).map_or(*name, |holder| self.holder(holder)));
        Ok(Program {
            name,
            sizes: typed.sizes.clone(),
            facts: typed.facts.conjuncts().to_vec(),
            inputs,
            bindings,
            outputs: typed.outputs().iter().map(shown).collect(),
            terms: std::mem::take(&mut self.terms),
        })
    }

    fn declared(&self, name: Name) -> TensorType {
        let shape: Vec<Ix> = self.typed.declared(name).into_iter().flatten().map(|(size, _)| size.clone()).collect();
        TensorType::new(self.elem, shape)
    }

    /// What a value's holder is called.
    fn holder(&self, holder: Holder) -> Name {
        match holder {
            Holder::Input(name) => name,
            Holder::Stmt(at) => self.bound.get(&at).copied().unwrap_or(self.typed.program.stmts[at].target),
            Holder::Shared(at) => self.sharing.shared[at].name,
        }
    }

    /// A name for the next value of a tensor: its own if nothing has it yet.
    fn version(&mut self, name: Name) -> Name {
        let count = self.versions.entry(name).or_insert(0);
        *count += 1;
        if *count == 1 {
            return name;
        }
        loop {
            let fresh = Name::new(&format!("{name}_{}", *count - 1));
            if self.taken.insert(fresh) {
                return fresh;
            }
            *count += 1;
        }
    }

    /// St-Stmt (Fig. 9): `∀ k̄ ≤ ī. let r_k̄ = [[e]] Γ μ k̄`.
    fn stmt(&mut self, at: usize) -> Result<TermId, TypeError> {
        let stmt = &self.typed.program.stmts[at];
        let shape = self.declared(stmt.target).shape;
        self.generation(&shape, |index| Equation::Same((stmt.value, index)))
    }

    /// A value with a binding of its own.
    fn shared(&mut self, at: usize) -> Result<TermId, TypeError> {
        let (typed, id) = (self.typed, self.sharing.shared[at].expr);
        let shape: Vec<Ix> = typed.shape(id).iter().map(|dim| (*dim.size).clone()).collect();
        self.generation(&shape, |index| equation(typed, id, index, from_zero))
    }

    fn generation(&mut self, shape: &[Ix], element: impl FnOnce(Vec<Ix>) -> Equation<Ix>) -> Result<TermId, TypeError> {
        let names: Vec<Name> = (0..shape.len()).map(|n| self.index_name("i", n)).collect();
        let mut term = self.expr(element(names.iter().map(|name| Ix::var(*name)).collect()))?;
        for (name, size) in names.iter().zip(shape).rev() {
            term = self.terms.add(Term::Gen(*name, Range::to(size.clone()), term))?;
        }
        Ok(term)
    }

    /// The name of the nth index of a kind; it is not the name of a tensor or size.
    fn index_name(&mut self, base: &str, n: usize) -> Name {
        let names = if base == "i" { &mut self.free_indices } else { &mut self.sum_indices };
        while names.len() <= n {
            let name = Name::fresh(&format!("{base}{}", names.len() + 1), |name| self.taken.contains(&name));
            self.taken.insert(name);
            names.push(name);
        }
        names[n]
    }

    fn expr(&mut self, element: Equation<Ix>) -> Result<TermId, TypeError> {
        let mut tasks = vec![Pending::Eval(element, 0)];
        let mut values: Vec<TermId> = Vec::new();
        let missing = || TypeError("an operand is missing".into());
        while let Some(task) = tasks.pop() {
            match task {
                Pending::Eval(Equation::Same((id, index)), depth) => match self.sharing.held[id.index()] {
                    Some(holder) => {
                        let shape: Vec<Ix> = self.sharing.shape(self.typed, holder).cloned().collect();
                        let ty = TensorType::new(self.elem, shape);
                        values.push(self.terms.element(self.holder(holder), ty, index)?);
                    }
                    None => tasks.push(Pending::Eval(equation(self.typed, id, index, from_zero), depth)),
                },
                Pending::Eval(Equation::Read(_, name, index), _) => {
                    values.push(self.terms.element(name, self.declared(name), index)?);
                }
                Pending::Eval(Equation::Combine(op, left, right), depth) => {
                    tasks.push(Pending::Combine(op));
                    tasks.push(Pending::Eval(Equation::Same(right), depth));
                    tasks.push(Pending::Eval(Equation::Same(left), depth));
                }
                Pending::Eval(Equation::Reduce(reduction), depth) => {
                    let name = self.index_name("k", depth);
                    tasks.push(Pending::Reduce(reduction.op, name, reduction.size().clone()));
                    tasks.push(Pending::Eval(reduction.at(&Ix::var(name)), depth + 1));
                }
                Pending::Eval(Equation::Scale(n, e), depth) => {
                    tasks.push(Pending::Combine(Binary::Mul));
                    tasks.push(Pending::Eval(Equation::Same(e), depth));
                    tasks.push(Pending::Number(n));
                }
                Pending::Eval(Equation::Power(n, e), depth) if !is_product(&n, self.elem) => {
                    tasks.push(Pending::Combine(Binary::Pow));
                    tasks.push(Pending::Exponent(n));
                    tasks.push(Pending::Eval(Equation::Same(e), depth));
                }
                Pending::Eval(Equation::Power(n, e), depth) => {
                    tasks.push(Pending::Eval(Equation::Reduce(Reduction::power(n, e)), depth));
                }
                Pending::Number(n) => values.push(self.terms.add(Term::Index(n, self.elem))?),
                Pending::Exponent(n) => values.push(self.terms.add(match n.as_constant() {
                    Some(n) => Term::Literal(Literal::whole(n, self.elem), self.elem),
                    None => Term::Index(n, self.elem),
                })?),
                Pending::Combine(op) => {
                    let (right, left) = (values.pop().ok_or_else(missing)?, values.pop().ok_or_else(missing)?);
                    values.push(self.terms.add(Term::Binary(op, left, right))?);
                }
                Pending::Reduce(op, name, size) => {
                    let body = values.pop().ok_or_else(missing)?;
                    values.push(self.terms.add(Term::Reduce(op, name, Range::to(size), Cond::always(), body))?);
                }
            }
        }
        values.pop().ok_or_else(missing)
    }
}

/// The index of a slice, which counts from 1.
fn from_zero(slice: &Ix) -> Ix {
    slice.sub(&Ix::from(1)).unwrap_or_else(|_| slice.clone())
}
