//! What differs between the notations of the algebra: the words of messages, and the text of programs.

use std::fmt;

use certen_index::Ix;

use super::ast::{Arith, Expr, ExprId, Pair, Program};
use crate::{model, teil};

/// Which notation a program is written in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Notation {
    /// Full TeIL.
    #[default]
    Teil,
    /// Core-TeIL (TeIL, Fig. 12), the part of TeIL whose operations work on the first dimension or dimensions only, and
    /// whose transpositions exchange neighbours: the file begins with `mode core`. Its text leaves those positions out;
    /// as data they are there, so that a Core-TeIL program *is* a TeIL program.
    CoreTeil,
    /// The model language.
    Model,
}

/// How messages of a notation speak.
pub(super) struct Words {
    /// What is done to a tensor before it is used.
    pub declared: &'static str,
    /// The act of it.
    pub declaration: &'static str,
    /// The word that does it.
    pub declare: &'static str,
    /// The operations entry by entry.
    pub arith: fn(Arith) -> &'static str,
    /// A transposition.
    pub transp: fn(Pair) -> String,
    /// The diagonal that a contraction sums along, of dimensions.
    pub diagonal: &'static str,
    /// The rule of an empty program, and its figure.
    pub empty: (&'static str, &'static str),
}

const TEIL: Words = Words {
    declared: "allocated",
    declaration: "an allocation",
    declare: "alloc",
    arith: |op| match op {
        Arith::Add => "`add`",
        Arith::Sub => "`sub`",
        Arith::Mul => "`mul`",
        Arith::Div => "`div`",
    },
    transp: |(i0, i1)| format!("`transp {i0} {i1}` of the right-hand side"),
    diagonal: "the diagonal",
    empty: ("OK-Empty", "TeIL, Fig. 8"),
};

const MODEL: Words = Words {
    declared: "declared",
    declaration: "a declaration",
    declare: "var",
    arith: |op| match op {
        Arith::Add => "`+`",
        Arith::Sub => "`-`",
        Arith::Mul => "`*`",
        Arith::Div => "`/`",
    },
    transp: |(i0, i1)| format!("the right-hand side with `^ [{i0} {i1}]` behind it"),
    diagonal: "a contraction",
    empty: ("ok-empty", "model language, Fig. 8"),
};

impl Notation {
    pub(super) fn words(self) -> &'static Words {
        match self {
            Notation::Teil | Notation::CoreTeil => &TEIL,
            Notation::Model => &MODEL,
        }
    }

    /// Sizes as a user would write them.
    pub(crate) fn shape<'a>(self, sizes: impl IntoIterator<Item = &'a Ix>) -> String {
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
    pub(super) fn head(self, expr: &Expr) -> String {
        match self {
            Notation::Teil | Notation::CoreTeil => teil::head(self, expr),
            Notation::Model => model::head(expr),
        }
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
