//! A program in another notation.
//!
//! TeIL has reductions, diagonals, expansions, projections, multiples and powers that the model language cannot write;
//! the model language has subtraction and division that TeIL cannot. What both have is the same, but for several pairs
//! at once, which TeIL writes one by one, and `red+ i (diag i j e)`, which the model language writes as a contraction
//! (TeIL, Eq. 6). Needs: a typed program. Guarantees: the same meaning (tested in `certen-testgen`).

use std::collections::{HashMap, HashSet};

use certen_core::ReduceOp;
use certen_dialects::algebra::{Arith, Expr, ExprId, Notation, Pair, Program, Stmt, one_by_one};
use certen_syntax::{Code, Diagnostic, Name, Span};

use crate::core_teil::to_core_teil;

/// The program in a notation.
///
/// # Errors
/// If an operation or a name cannot be written there: where it stands.
pub fn translate(program: &Program, notation: Notation) -> Result<Program, Box<Diagnostic>> {
    let language = match notation {
        Notation::Teil | Notation::CoreTeil => "TeIL",
        Notation::Model => "the model language",
    };
    let cannot = |span: Span, text: String| Err(Box::new(Diagnostic::error(Code::E0407, span, text)));
    let sums = if notation == Notation::Model { sums_of_diagonals(program) } else { Sums::default() };
    for id in program.ids() {
        let here = match program.expr(id) {
            _ if sums.inside.contains(&id) || sums.contracted.contains_key(&id) => true,
            Expr::Elem(Arith::Sub | Arith::Div, ..) => notation == Notation::Model,
            Expr::Red(..) | Expr::Diag(..) | Expr::Expa(..) | Expr::Proj(..) | Expr::Scale(..) | Expr::Power(..) => {
                notation != Notation::Model
            }
            _ => true,
        };
        if !here {
            let head = program.notation.head(program.expr(id));
            return cannot(program.span(id), format!("{language} has no `{head}`"));
        }
    }
    let word = |name: Name| notation.reserved().contains(&name.as_str());
    for decl in &program.decls {
        if word(decl.name) {
            return cannot(decl.name_span, format!("`{}` is a word of {language}", decl.name));
        }
        for (size, span) in &decl.shape {
            let mut names = Default::default();
            size.collect_names(&mut names);
            if let Some(name) = names.into_iter().find(|name| word(*name)) {
                return cannot(*span, format!("`{name}` is a word of {language}"));
            }
        }
    }
    Ok(match notation {
        Notation::Teil | Notation::Model => rebuilt(program, notation, &sums),
        Notation::CoreTeil => to_core_teil(program),
    })
}

/// The sums `red+ i (diag i j e)` that are contractions.
fn sums_of_diagonals(program: &Program) -> Sums {
    let mut sums = Sums::default();
    for id in program.ids() {
        let Expr::Red(ReduceOp::Sum, i, mut inside) = *program.expr(id) else { continue };
        let diagonal = program.inner(inside);
        let Expr::Diag(i0, i1, e) = *program.expr(diagonal) else { continue };
        if i != i0.min(i1) {
            continue;
        }
        sums.contracted.insert(id, ((i0, i1), e));
        sums.inside.insert(diagonal);
        while let Expr::Paren(inner) = program.expr(inside) {
            sums.inside.insert(inside);
            inside = *inner;
        }
    }
    sums
}

/// The program with contractions for sums of diagonals; in TeIL, with one pair in each operation.
fn rebuilt(program: &Program, notation: Notation, sums: &Sums) -> Program {
    let mut rebuilt = Program {
        notation,
        decls: program.decls.clone(),
        wheres: program.wheres.clone(),
        end: program.end,
        ..Program::default()
    };
    // What stands inside a contraction of its own has no place of its own; nothing asks for it.
    let mut translated: Vec<ExprId> = Vec::with_capacity(program.exprs.len());
    for id in program.ids() {
        if sums.inside.contains(&id) {
            translated.push(id);
            continue;
        }
        let mut each = |pairs: Vec<Pair>, e: ExprId, make: fn(Box<[Pair]>, ExprId) -> Expr| {
            let one = |e, pair| rebuilt.add(make([pair].into(), e), program.span(id));
            pairs.into_iter().fold(translated[e.index()], one)
        };
        let id = match program.expr(id) {
            Expr::Red(..) if sums.contracted.contains_key(&id) => {
                let (pair, e) = sums.contracted[&id];
                each(vec![pair], e, Expr::Contr)
            }
            Expr::Transp(pairs, e) if notation == Notation::Teil => each(pairs.to_vec(), *e, Expr::Transp),
            Expr::Contr(pairs, e) if notation == Notation::Teil => each(one_by_one(pairs), *e, Expr::Contr),
            other => rebuilt.add(other.map(|e| translated[e.index()]), program.span(id)),
        };
        translated.push(id);
    }
    let stmts = program.stmts.iter().map(|stmt| Stmt { value: translated[stmt.value.index()], ..stmt.clone() });
    rebuilt.stmts = stmts.collect();
    rebuilt
}

/// Sums of diagonals: what each contracts, and the expressions that disappear into them.
#[derive(Default)]
struct Sums {
    contracted: HashMap<ExprId, (Pair, ExprId)>,
    inside: HashSet<ExprId>,
}
