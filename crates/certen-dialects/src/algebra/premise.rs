//! What the typing rules demand: one [`Premise`] for each way that a rule of TeIL's Fig. 8 or 12 can fail.
//!
//! A premise knows its rule's name in the paper and its error's code, so that messages, tests and the generator of
//! mistakes all speak of the same list.

use certen_core::ReduceOp;
use certen_syntax::{Code, Rule};

use super::ast::{Arith, Expr, ExprId};
use super::notation::Notation;

/// What a rule demands, one for each way it can fail.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Premise {
    /// Nat: a size is at least one.
    NatSize,
    /// OK-Prog: names of allocations are unique.
    UniqueName,
    /// T-Var: the name is allocated.
    VarDeclared,
    /// T-Add: both operands have the same shape.
    AddShapes,
    /// T-Mul: both operands have the same shape.
    MulShapes,
    /// T-SMul: the scalar stands on the left.
    SMulScalarLeft,
    /// T-Red: the position exists.
    RedPosition,
    /// T-Transp: both positions exist.
    TranspPosition,
    /// T-Transp: the positions differ.
    TranspDistinct,
    /// T-Diag: both positions exist.
    DiagPosition,
    /// T-Diag: the positions differ.
    DiagDistinct,
    /// T-Diag: both dimensions have the same size.
    DiagSizes,
    /// T-Expa: the position exists, or is the next one.
    ExpaPosition,
    /// T-Expa: the new size is a natural number.
    ExpaSize,
    /// T-Proj: the position exists.
    ProjPosition,
    /// T-Proj: the index is a natural number.
    ProjIndex,
    /// T-Proj: m <= n.
    ProjBound,
    /// OK-Stmt: the target is allocated.
    TargetDeclared,
    /// OK-Stmt: both sides have the same shape.
    TargetShape,
}

impl Premise {
    /// Every premise.
    pub const ALL: [Premise; 19] = [
        Premise::NatSize,
        Premise::UniqueName,
        Premise::VarDeclared,
        Premise::AddShapes,
        Premise::MulShapes,
        Premise::SMulScalarLeft,
        Premise::RedPosition,
        Premise::TranspPosition,
        Premise::TranspDistinct,
        Premise::DiagPosition,
        Premise::DiagDistinct,
        Premise::DiagSizes,
        Premise::ExpaPosition,
        Premise::ExpaSize,
        Premise::ProjPosition,
        Premise::ProjIndex,
        Premise::ProjBound,
        Premise::TargetDeclared,
        Premise::TargetShape,
    ];

    /// The code of its error.
    pub fn code(self) -> Code {
        match self {
            Premise::NatSize | Premise::ExpaSize => Code::E0203,
            Premise::UniqueName => Code::E0202,
            Premise::VarDeclared | Premise::TargetDeclared => Code::E0201,
            Premise::AddShapes | Premise::MulShapes | Premise::SMulScalarLeft => Code::E0206,
            Premise::RedPosition
            | Premise::TranspPosition
            | Premise::DiagPosition
            | Premise::ExpaPosition
            | Premise::ProjPosition => Code::E0204,
            Premise::TranspDistinct | Premise::DiagDistinct => Code::E0205,
            Premise::DiagSizes => Code::E0208,
            Premise::ProjIndex | Premise::ProjBound => Code::E0207,
            Premise::TargetShape => Code::E0209,
        }
    }

    /// The rule it is a premise of.
    pub fn rule(self, notation: Notation) -> Rule {
        let fig8 = |name| Rule { name, paper: "TeIL, Fig. 8" };
        let either = |full, core| match notation {
            Notation::Teil => fig8(full),
            Notation::CoreTeil => Rule { name: core, paper: "TeIL, Fig. 12" },
        };
        match self {
            Premise::NatSize => Rule { name: "Nat", paper: "TeIL, Sec. 3.1" },
            Premise::UniqueName => Rule { name: "OK-Prog", paper: "TeIL, Fig. 8 and Sec. 3.2" },
            Premise::VarDeclared => fig8("T-Var"),
            Premise::AddShapes => fig8("T-Add"),
            Premise::MulShapes => fig8("T-Mul"),
            Premise::SMulScalarLeft => fig8("T-SMul"),
            Premise::RedPosition => either("T-Red+", "T-Red+^core"),
            Premise::TranspPosition | Premise::TranspDistinct => either("T-Transp", "T-Transp^core"),
            Premise::DiagPosition | Premise::DiagDistinct | Premise::DiagSizes => either("T-Diag", "T-Diag^core"),
            Premise::ExpaPosition | Premise::ExpaSize => either("T-Expa", "T-Expa^core"),
            Premise::ProjPosition | Premise::ProjIndex | Premise::ProjBound => either("T-Proj", "T-Proj^core"),
            Premise::TargetDeclared | Premise::TargetShape => fig8("OK-Stmt"),
        }
    }
}

/// The rule by which an expression has its type; reductions other than the sum have rules by analogy (Sec. 3.3).
pub(super) fn rule_of(expr: &Expr, scalar: impl Fn(ExprId) -> bool, notation: Notation) -> &'static str {
    match expr {
        Expr::Var(_) => "T-Var",
        Expr::Paren(_) => "T-Paren",
        Expr::Elem(Arith::Mul, a, _) if scalar(*a) => Premise::SMulScalarLeft.rule(notation).name,
        Expr::Elem(Arith::Mul, ..) => Premise::MulShapes.rule(notation).name,
        Expr::Elem(..) => Premise::AddShapes.rule(notation).name,
        Expr::Prod(..) => "T-Prod",
        Expr::Red(op, ..) => red_rule(*op, notation),
        Expr::Transp(..) => Premise::TranspPosition.rule(notation).name,
        Expr::Diag(..) => Premise::DiagPosition.rule(notation).name,
        Expr::Contr(..) => "Eq. 6",
        Expr::Expa(..) => Premise::ExpaPosition.rule(notation).name,
        Expr::Proj(..) => Premise::ProjPosition.rule(notation).name,
    }
}

pub(super) fn red_rule(op: ReduceOp, notation: Notation) -> &'static str {
    match (op, notation) {
        (ReduceOp::Prod, Notation::Teil) => "T-Red*",
        (ReduceOp::Min, Notation::Teil) => "T-Redmin",
        (ReduceOp::Max, Notation::Teil) => "T-Redmax",
        (_, Notation::Teil) => "T-Red+",
        (ReduceOp::Prod, Notation::CoreTeil) => "T-Red*^core",
        (ReduceOp::Min, Notation::CoreTeil) => "T-Redmin^core",
        (ReduceOp::Max, Notation::CoreTeil) => "T-Redmax^core",
        (_, Notation::CoreTeil) => "T-Red+^core",
    }
}
