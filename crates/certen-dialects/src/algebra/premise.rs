//! What the typing rules demand: one [`Premise`] for each way that a rule of TeIL's Fig. 8 or 12 or of
//! the model language's Fig. 7 to 9 can fail.
//!
//! A premise knows its rule's name in the paper and its error's code, so that messages, tests and the generator of
//! mistakes all speak of the same list.

use certen_core::ReduceOp;
use certen_syntax::{Code, Rule};

use super::ast::{Arith, Expr, ExprId, Notation};

/// What a rule demands, one for each way it can fail.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Premise {
    /// Nat: a size is at least one.
    NatSize,
    /// OK-Prog: names of allocations are unique.
    UniqueName,
    /// T-Var: the name is allocated.
    VarDeclared,
    /// T-Add, t-elem (of `+`, `-` and `/`): both operands have the same shape.
    AddShapes,
    /// T-Mul, t-elem (of `*`): both operands have the same shape.
    MulShapes,
    /// T-SMul: the scalar stands on the left.
    SMulScalarLeft,
    /// t-sdiv: the scalar stands on the right.
    SDivScalarRight,
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
    /// Eq. 5: the factor is a natural number.
    ScaleFactor,
    /// Eq. 5, by analogy: the exponent is a natural number.
    PowerExponent,
    /// OK-Stmt: the target is allocated.
    TargetDeclared,
    /// OK-Stmt: both sides have the same shape.
    TargetShape,
}

impl Premise {
    /// Every premise of a notation's rules.
    pub fn of(notation: Notation) -> impl Iterator<Item = Premise> {
        use Premise::*;
        let (teil, model) = (notation != Notation::Model, notation == Notation::Model);
        let all = [
            (true, [NatSize, UniqueName, VarDeclared, AddShapes, MulShapes, SMulScalarLeft].as_slice()),
            (model, &[SDivScalarRight]),
            (teil, &[RedPosition]),
            (true, &[TranspPosition, TranspDistinct, DiagPosition, DiagDistinct, DiagSizes]),
            (teil, &[ExpaPosition, ExpaSize, ProjPosition, ProjIndex, ProjBound, ScaleFactor, PowerExponent]),
            (true, &[TargetDeclared, TargetShape]),
        ];
        all.into_iter().filter(|(here, _)| *here).flat_map(|(_, premises)| premises.iter().copied())
    }

    /// The code of its error.
    pub fn code(self) -> Code {
        match self {
            Premise::NatSize | Premise::ExpaSize | Premise::ScaleFactor | Premise::PowerExponent => Code::E0203,
            Premise::UniqueName => Code::E0202,
            Premise::VarDeclared | Premise::TargetDeclared => Code::E0201,
            Premise::AddShapes | Premise::MulShapes | Premise::SMulScalarLeft | Premise::SDivScalarRight => Code::E0206,
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

    /// The rule it is a premise of. What only TeIL has keeps TeIL's rule.
    pub fn rule(self, notation: Notation) -> Rule {
        let (full, core, model) = match self {
            Premise::NatSize => ("Nat", "Nat", "Nat"),
            Premise::UniqueName => ("OK-Prog", "OK-Prog", "s-var"),
            Premise::VarDeclared => ("T-Var", "T-Var", "t-var"),
            Premise::AddShapes => ("T-Add", "T-Add", "t-elem"),
            Premise::MulShapes => ("T-Mul", "T-Mul", "t-elem"),
            Premise::SMulScalarLeft => ("T-SMul", "T-SMul", "t-smul"),
            Premise::SDivScalarRight => ("t-sdiv", "t-sdiv", "t-sdiv"),
            Premise::RedPosition => ("T-Red+", "T-Red+^core", "T-Red+"),
            Premise::TranspPosition | Premise::TranspDistinct => ("T-Transp", "T-Transp^core", "t-trans"),
            Premise::DiagPosition | Premise::DiagDistinct | Premise::DiagSizes => ("T-Diag", "T-Diag^core", "t-contr"),
            Premise::ExpaPosition | Premise::ExpaSize => ("T-Expa", "T-Expa^core", "T-Expa"),
            Premise::ProjPosition | Premise::ProjIndex | Premise::ProjBound => ("T-Proj", "T-Proj^core", "T-Proj"),
            Premise::ScaleFactor => ("Eq. 5", "Eq. 5", "Eq. 5"),
            Premise::PowerExponent => ("Eq. 5 of red*", "Eq. 5 of red*", "Eq. 5 of red*"),
            Premise::TargetDeclared | Premise::TargetShape => ("OK-Stmt", "OK-Stmt", "ok-stmt"),
        };
        let name = match notation {
            Notation::Teil => full,
            Notation::CoreTeil => core,
            Notation::Model => model,
        };
        let paper = match (notation, self) {
            (Notation::Model, Premise::NatSize) => "model language, Def. 2",
            (Notation::Model, Premise::UniqueName) => "model language, Fig. 7",
            (Notation::Model, Premise::TargetDeclared | Premise::TargetShape) => "model language, Fig. 8",
            (Notation::Model, _) if name != full => "model language, Fig. 9",
            (_, Premise::SDivScalarRight) => "model language, Fig. 9",
            (_, Premise::NatSize) => "TeIL, Sec. 3.1",
            (_, Premise::ScaleFactor | Premise::PowerExponent) => "TeIL, Sec. 3.6",
            (_, Premise::UniqueName) => "TeIL, Fig. 8 and Sec. 3.2",
            _ if name == full => "TeIL, Fig. 8",
            _ => "TeIL, Fig. 12",
        };
        Rule { name, paper }
    }
}

/// The rule by which an expression has its type; reductions other than the sum have rules by analogy (Sec. 3.3).
pub(super) fn rule_of(expr: &Expr, scalar: impl Fn(ExprId) -> bool, notation: Notation) -> &'static str {
    let by = |premise: Premise| premise.rule(notation).name;
    match (expr, notation) {
        (Expr::Var(_), _) => by(Premise::VarDeclared),
        (Expr::Paren(_), Notation::Model) => "t-paren",
        (Expr::Paren(_), _) => "T-Paren",
        (Expr::Elem(Arith::Mul, a, _), _) if scalar(*a) => by(Premise::SMulScalarLeft),
        (Expr::Elem(Arith::Mul, ..), _) => by(Premise::MulShapes),
        (Expr::Elem(Arith::Div, _, b), _) if scalar(*b) => by(Premise::SDivScalarRight),
        (Expr::Elem(..), _) => by(Premise::AddShapes),
        (Expr::Prod(..), Notation::Model) => "t-prod",
        (Expr::Prod(..), _) => "T-Prod",
        (Expr::Red(op, ..), _) => red_rule(*op, notation),
        (Expr::Transp(..), _) => by(Premise::TranspPosition),
        (Expr::Contr(..), Notation::Model) | (Expr::Diag(..), _) => by(Premise::DiagPosition),
        (Expr::Contr(..), _) => "Eq. 6",
        (Expr::Expa(..), _) => by(Premise::ExpaPosition),
        (Expr::Proj(..), _) => by(Premise::ProjPosition),
        (Expr::Scale(..), _) => by(Premise::ScaleFactor),
        (Expr::Power(..), _) => by(Premise::PowerExponent),
    }
}

pub(super) fn red_rule(op: ReduceOp, notation: Notation) -> &'static str {
    match (op, notation == Notation::CoreTeil) {
        (ReduceOp::Prod, false) => "T-Red*",
        (ReduceOp::Min, false) => "T-Redmin",
        (ReduceOp::Max, false) => "T-Redmax",
        (_, false) => "T-Red+",
        (ReduceOp::Prod, true) => "T-Red*^core",
        (ReduceOp::Min, true) => "T-Redmin^core",
        (ReduceOp::Max, true) => "T-Redmax^core",
        (_, true) => "T-Red+^core",
    }
}
