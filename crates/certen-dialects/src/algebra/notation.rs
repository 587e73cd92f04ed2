//! What differs between the notations of the algebra, beside the text of programs: the words of messages.

use super::ast::{Arith, Notation, Pair};

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
    /// Words that cannot name anything.
    pub reserved: &'static [&'static str],
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
    reserved: &[
        "alloc", "where", "add", "mul", "prod", "red", "redmin", "redmax", "transp", "diag", "contr", "expa", "proj",
        "true", "false",
    ],
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
    transp: |(i0, i1)| format!("the right-hand side with `^ [{i0} {i1}]` after it"),
    diagonal: "a contraction",
    empty: ("ok-empty", "model language, Fig. 8"),
    reserved: &["var", "type", "where", "true", "false"],
};

impl Notation {
    pub(super) fn words(self) -> &'static Words {
        match self {
            Notation::Teil | Notation::CoreTeil => &TEIL,
            Notation::Model => &MODEL,
        }
    }

    /// Words that cannot name a tensor, a type or a size.
    pub fn reserved(self) -> &'static [&'static str] {
        self.words().reserved
    }
}
