//! Three-address form (TeIL, Sec. 3.3): only names as operands of operations.
//!
//! Every nested operation gets a declaration and an assignment of its own. Inputs and outputs are marked explicitly,
//! because the new names must not become outputs. Guarantees: the same outputs (tested in `certen-testgen`).

use std::collections::HashSet;

use certen_dialects::algebra::{Decl, Expr, ExprId, Marker, Program, Stmt, Typed};
use certen_syntax::{Name, Span};

/// The program in three-address form, in the same notation.
pub fn three_address(typed: &Typed) -> Program {
    let program = &typed.program;
    let (inputs, outputs): (HashSet<Name>, HashSet<Name>) =
        (typed.inputs().iter().copied().collect(), typed.outputs().iter().copied().collect());
    let mark = |decl: &Decl| Decl {
        marker: Marker { input: inputs.contains(&decl.name), output: outputs.contains(&decl.name) },
        ..decl.clone()
    };
    let mut flat = Program {
        notation: program.notation,
        decls: program.decls.iter().map(mark).collect(),
        wheres: program.wheres.clone(),
        ..Program::default()
    };
    let mut taken: HashSet<Name> = typed.sizes.iter().copied().chain(program.decls.iter().map(|d| d.name)).collect();
    let mut count = 0u64;
    // The name that holds the value of each expression.
    let mut named: Vec<Option<Name>> = vec![None; program.exprs.len()];
    for (at, stmt) in program.stmts.iter().enumerate() {
        let value = program.inner(stmt.value);
        for id in program.exprs_of(at) {
            let expr = program.expr(id);
            let held = match expr {
                Expr::Var(name) if id != value => *name,
                Expr::Paren(inner) => match named[inner.index()] {
                    Some(name) => name,
                    None => continue,
                },
                _ if id == value => {
                    let value = operation(&mut flat, expr, &named, program.span(id));
                    flat.stmts.push(Stmt { target: stmt.target, target_span: stmt.target_span, value });
                    continue;
                }
                _ => {
                    let name = Name::numbered("t", &mut count, |name| !taken.insert(name));
                    let shape = typed.shape(id).iter().map(|dim| ((*dim.size).clone(), dim.origin)).collect();
                    let span = program.span(id);
                    flat.decls.push(Decl { marker: Marker::default(), name, name_span: span, shape });
                    let value = operation(&mut flat, expr, &named, span);
                    flat.stmts.push(Stmt { target: name, target_span: span, value });
                    name
                }
            };
            named[id.index()] = Some(held);
        }
    }
    flat
}

/// Adds an operation whose operands are the names that hold them.
fn operation(program: &mut Program, expr: &Expr, named: &[Option<Name>], span: Span) -> ExprId {
    let mut operand = |id: ExprId| {
        let name = named[id.index()].unwrap_or_else(|| Name::new("_"));
        program.add(Expr::Var(name), span)
    };
    let flat = expr.map(&mut operand);
    program.add(flat, span)
}
