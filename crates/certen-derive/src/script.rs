//! Derivations as they are written.
//!
//! ```text
//! derivation := "derive" NAME "from" NAME "{" (step ";")* "}"
//! tactic     := "derivation" NAME "(" [NAME ("," NAME)*] ")" "{" (step ";")* "}"
//! step       := ["backwards"] NAME ["(" [arg ("," arg)*] ")"] ["at" address] ["everywhere"]
//! arg        := index expression | condition | "{" pattern "}"
//! address    := place ("in" place)*
//! place      := (NAME | "{" pattern "}") ["#" INT]
//! ```

use certen_index::{Cond, Ix};
use certen_syntax::{Name, Span};

/// A script: how a program is derived from another one.
#[derive(Clone, PartialEq, Debug)]
pub struct Derivation {
    /// The program that it makes.
    pub name: Name,
    /// The program that it begins with.
    pub from: Name,
    /// What is done, in order.
    pub steps: Vec<Step>,
    /// Where its names stand, with the word `derive`.
    pub head: Span,
    /// Where all of it stands.
    pub span: Span,
}

/// A piece of scripts with a name and parameters.
#[derive(Clone, PartialEq, Debug)]
pub struct Tactic {
    /// Its name.
    pub name: Name,
    /// What its steps leave open: names that stand for arguments.
    pub parameters: Vec<Name>,
    /// What is done, in order.
    pub steps: Vec<Step>,
    /// Where it stands.
    pub span: Span,
}

/// One rewrite, or a piece of script by its name.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// Whether the right side is replaced by the left one.
    pub backwards: bool,
    /// Which one.
    pub name: Name,
    /// Its parameters.
    pub args: Vec<Arg>,
    /// Where: from the term itself to what it stands in. None for the first place where it can be done.
    pub at: Vec<Place>,
    /// Whether it is done at every place.
    pub everywhere: bool,
    /// Where it stands, without the `;`.
    pub span: Span,
}

/// An argument of a step.
#[derive(Clone, PartialEq, Debug)]
pub struct Arg {
    /// What it is.
    pub kind: ArgKind,
    /// Where it stands.
    pub span: Span,
}

/// What an argument is.
#[derive(Clone, PartialEq, Debug)]
pub enum ArgKind {
    /// `64`, `io`, `h - 1`
    Ix(Ix),
    /// `1 <= i && i < n`
    Cond(Cond),
    /// `{ x[_, _] }`, without the braces
    Pattern(String),
}

/// A term of a program.
#[derive(Clone, PartialEq, Debug)]
pub struct Place {
    /// Which.
    pub kind: PlaceKind,
    /// Which of several, from 1.
    pub nth: Option<usize>,
    /// Where it is written.
    pub span: Span,
}

/// How a term is named.
#[derive(Clone, PartialEq, Debug)]
pub enum PlaceKind {
    /// The term that binds this index or tensor; `result` is the whole program.
    Binder(Name),
    /// A term like this, without the braces.
    Pattern(String),
}
