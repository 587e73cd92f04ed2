//! Programs as text, in their own notation: what its parser reads back as the same program, up to parentheses.

mod model;
mod teil;

use std::fmt;

use certen_index::Ix;

use super::ast::{Expr, ExprId, Notation, Program};

impl Notation {
    /// Sizes as a user would write them.
    pub(super) fn shape<'a>(self, sizes: impl IntoIterator<Item = &'a Ix>) -> String {
        match self {
            Notation::Teil | Notation::CoreTeil => teil::shape(sizes),
            Notation::Model => model::shape(sizes),
        }
    }

    /// An expression whose operations are all the notation's.
    fn expr(self, program: &Program, id: ExprId) -> String {
        match self {
            Notation::Teil | Notation::CoreTeil => teil::expr_text(program, id),
            Notation::Model => model::expr_text(program, id),
        }
    }

    /// An operation without its operands, as a user would write it.
    pub fn head(self, expr: &Expr) -> String {
        match self {
            Notation::Teil | Notation::CoreTeil => teil::head(self, expr),
            Notation::Model => model::head(expr),
        }
    }
}

/// Text that a single argument can be: anything else stands in parentheses.
fn argument(ix: &Ix) -> String {
    match ix.as_constant() {
        Some(value) if value >= 0 => value.to_string(),
        _ => ix.as_var().map_or_else(|| format!("({ix})"), |name| name.to_string()),
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.notation == Notation::CoreTeil {
            writeln!(f, "mode core")?;
        }
        let declare = self.notation.words().declare;
        for decl in &self.decls {
            let shape = self.notation.shape(decl.shape.iter().map(|(size, _)| size));
            writeln!(f, "{declare} {}{} : {shape}", decl.marker, decl.name)?;
        }
        for clause in &self.wheres {
            writeln!(f, "where {}", clause.cond)?;
        }
        for stmt in &self.stmts {
            writeln!(f, "{} = {}", stmt.target, self.notation.expr(self, stmt.value))?;
        }
        Ok(())
    }
}
