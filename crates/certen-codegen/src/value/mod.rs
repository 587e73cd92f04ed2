//! Values: scalar terms as C expressions.
//!
//! Terms are visited in arena order, parts first, so nothing recurses. An expression that has become large or deep is put
//! into a `const` temporary before the statement. The operations and their order stay the same, so the bits do, and
//! neither a C compiler's stack nor our own time suffers from long sums or from parts that are used many times, as those
//! of powers are. In a statement of thousands of operations each temporary is computed by a function of its own: C
//! compilers take time in the square of a basic block's length.
//!
//! What varies between the lanes of a vector loop is printed by `lanes`, everything else by `scalar`.

mod expr;
mod lanes;
mod scalar;

use std::collections::{HashMap, HashSet};

use certen_core::{Binary, Term, TermId, Unary};
use certen_loops::as_element;
use certen_syntax::{Diagnostic, Name};

use crate::emitter::Emitter;
use crate::helpers::c_type;
use crate::text::signature;
use expr::unsupported;
pub(crate) use expr::{CExpr, Level};

/// Operations in one expression, and operations inside each other, beyond which it is put into a temporary.
const MAX_OPERATIONS: usize = 200;
const MAX_DEPTH: usize = 60;

/// Operations in one expression beyond which it is put into a temporary if it is used several times: library functions
/// count as more.
const MAX_REPEATED: usize = 4;

/// Terms in one statement beyond which its temporaries become functions.
const MAX_TERMS_IN_BLOCK: usize = 2000;

impl Emitter<'_> {
    /// The value of a term as a C expression that can be assigned.
    pub(crate) fn value(&mut self, root: TermId) -> Result<String, Diagnostic> {
        Ok(self.expr_of(root)?.text)
    }

    /// The value of a term; temporaries that it needs are written before.
    pub(crate) fn expr_of(&mut self, root: TermId) -> Result<CExpr, Diagnostic> {
        let terms = &self.program.terms;
        let mut exprs: HashMap<TermId, CExpr> = HashMap::new();
        let order = terms.parts_first(root);
        let large = order.len() > MAX_TERMS_IN_BLOCK;
        let repeated = self.repeated(&order);
        for id in order {
            let term = terms.get(id);
            if matches!(term, Term::Ref(_, ty) if !ty.is_scalar()) {
                continue;
            }
            let before = std::mem::take(&mut self.function.used);
            let mut expr = match self.is_in_lanes(id, &exprs) {
                true => self.vector_expr(id, &exprs)?,
                false => self.scalar_expr(id, term, &exprs)?,
            };
            let used = std::mem::replace(&mut self.function.used, before);
            let parts: Vec<&CExpr> = term.parts().iter().filter_map(|part| exprs.get(part)).collect();
            let own = if calls_function(term) { MAX_REPEATED + 1 } else { 1 };
            expr.operations = own + parts.iter().map(|part| part.operations).sum::<usize>();
            expr.shows_sign = expr.lane.is_none() && (self.is_constant(id) || self.shows_sign(term, &exprs));
            expr.depth = 1 + parts.iter().map(|part| part.depth).max().unwrap_or(0);
            if large {
                expr.variables = parts.iter().flat_map(|part| part.variables.iter().cloned()).collect();
                let own = used.iter().map(|name| self.variable(*name, id));
                expr.variables.extend(own);
            }
            self.function.used.extend(used);
            let most = if repeated.contains(&id) { MAX_REPEATED } else { MAX_OPERATIONS };
            if expr.operations > most || expr.depth > MAX_DEPTH {
                let name = self.names.numbered("t");
                let ty = match expr.lane {
                    Some(lane) => self.register(lane)?,
                    None => c_type(terms.ty(id).elem).to_owned(),
                };
                let value = if large { self.part(&ty, &expr) } else { expr.text };
                self.line(&format!("const {ty} {name} = {value};"));
                expr = CExpr { lane: expr.lane, ..CExpr::new(name.clone(), Level::Primary) };
                if large {
                    expr.variables.insert((format!("{ty} {name}"), name));
                }
            }
            exprs.insert(id, expr);
        }
        exprs.remove(&root).ok_or_else(unsupported)
    }

    /// Whether GCC sees which sign a zero has that this makes.
    fn shows_sign(&self, term: &Term, exprs: &HashMap<TermId, CExpr>) -> bool {
        use Unary::{Abs, Ceil, Floor, Neg, Round, Sqrt};
        let shown = |id: &TermId| exprs.get(id).is_some_and(|expr| expr.shows_sign);
        match term {
            Term::Literal(..) | Term::Index(..) | Term::Unary(Abs, _) => true,
            Term::Cast(_, a) => !self.program.terms.ty(*a).elem.is_float() || shown(a),
            Term::Unary(Neg | Sqrt | Floor | Ceil | Round, a) => shown(a),
            Term::Binary(Binary::Add | Binary::Sub | Binary::Mul | Binary::Div, a, b) | Term::Choose(_, a, b) => {
                shown(a) && shown(b)
            }
            _ => false,
        }
    }

    /// The terms of a value that it uses several times.
    fn repeated(&self, order: &[TermId]) -> HashSet<TermId> {
        let (mut once, mut repeated) = (HashSet::new(), HashSet::new());
        for part in order.iter().flat_map(|id| self.program.terms.get(*id).parts()) {
            if !once.insert(part) {
                repeated.insert(part);
            }
        }
        repeated
    }

    /// How a name that occurs in a leaf is passed to a function.
    fn variable(&self, name: Name, leaf: TermId) -> (String, String) {
        let c = self.names.get(name).to_owned();
        let declaration = match as_element(&self.program.terms, leaf) {
            Some((read, ty, _)) if read == name && self.is_local(name) => format!("{} {c}", c_type(ty.elem)),
            Some((read, ty, _)) if read == name => format!("const {} *restrict {c}", c_type(ty.elem)),
            _ => format!("int64_t {c}"),
        };
        (declaration, c)
    }

    /// A call of a new function that computes an expression.
    fn part(&mut self, ty: &str, expr: &CExpr) -> String {
        let name = self.names.numbered(&format!("{}_value", self.entries.dense));
        let (parameters, arguments): (Vec<String>, Vec<String>) = expr.variables.iter().cloned().unzip();
        let start = signature(&format!("CERTEN_NOINLINE {ty} {name}"), &parameters);
        self.functions += &format!("{start} {{\n    return {};\n}}\n\n", expr.text);
        format!("{name}({})", arguments.join(", "))
    }
}

fn calls_function(term: &Term) -> bool {
    let function = match term {
        Term::Unary(op, _) => op.function(),
        Term::Binary(op, ..) => op.function(),
        _ => None,
    };
    function.is_some()
}
