//! Typed programs: a program with the shape of every expression.

use std::collections::HashMap;
use std::sync::Arc;

use certen_index::{Facts, Ix, Verdict};
use certen_syntax::{Name, Span};

use super::ast::{Expr, ExprId, Program};
use super::flow::Flow;
use super::premise::{Premise, rule_of};

/// A dimension: its size, and where that size was declared.
#[derive(Clone, Debug)]
pub struct Dim {
    /// The size.
    pub size: Arc<Ix>,
    /// The place in a declaration or `expa`.
    pub origin: Span,
}

/// The dimensions of an expression, shared by all that have the same.
pub(super) type Shape = Arc<[Dim]>;

/// A program that is well-typed, with what typing found out.
#[derive(Clone, Debug)]
pub struct Typed {
    /// The program.
    pub program: Program,
    /// The symbolic sizes, in order of first appearance.
    pub sizes: Vec<Name>,
    /// What holds of the sizes: at least one each, and the `where` clauses.
    pub facts: Facts,
    pub(super) types: Vec<Shape>,
    pub(super) decls: HashMap<Name, usize>,
    /// Which assignments are read, and which statements matter.
    pub flow: Flow,
}

impl Typed {
    /// The type of an expression.
    pub fn shape(&self, id: ExprId) -> &[Dim] {
        &self.types[id.index()]
    }

    /// Whether a size is shown to be 1; only conditions can show it of a name.
    pub fn is_one(&self, size: &Ix) -> bool {
        match size.as_constant() {
            Some(size) => size == 1,
            None => !self.program.wheres.is_empty() && self.facts.prove_equal(size, &Ix::from(1)) == Verdict::Yes,
        }
    }

    /// The declared sizes of a tensor.
    pub fn declared(&self, name: Name) -> Option<&[(Ix, Span)]> {
        self.decls.get(&name).map(|&at| self.program.decls[at].shape.as_slice())
    }

    /// The tensors that the caller gives, in order of declaration.
    pub fn inputs(&self) -> &[Name] {
        &self.flow.inputs
    }

    /// The tensors that the caller gets, in order of declaration.
    pub fn outputs(&self) -> &[Name] {
        &self.flow.outputs
    }

    /// The typing derivation of a statement, one line per expression, for people; at most `limit` lines.
    pub fn derivation(&self, stmt: usize, limit: usize) -> String {
        let target = &self.program.stmts[stmt];
        let notation = self.program.notation;
        let shape = |dims: &[Dim]| notation.shape(dims.iter().map(|dim| &*dim.size));
        let ok = Premise::TargetShape.rule(notation).name;
        let mut lines = vec![(0, target.target.to_string(), shape(self.shape(target.value)), ok)];
        let mut todo = vec![(1usize, target.value)];
        while let Some((depth, id)) = todo.pop() {
            if lines.len() == limit {
                lines.push((0, "…".into(), String::new(), ""));
                break;
            }
            let expr = self.program.expr(id);
            if let Expr::Paren(inner) = expr {
                todo.push((depth, *inner));
                continue;
            }
            let scalar = |id: ExprId| self.shape(id).is_empty();
            lines.push((depth.min(30), notation.head(expr), shape(self.shape(id)), rule_of(expr, scalar, notation)));
            let parts: Vec<ExprId> = expr.parts().collect();
            todo.extend(parts.into_iter().rev().map(|part| (depth + 1, part)));
        }
        let left = |(depth, head, ..): &(usize, String, String, &str)| "    ".repeat(*depth).len() + head.len();
        let (wide, shapes) =
            (lines.iter().map(left).max().unwrap_or(0), lines.iter().map(|l| l.2.len()).max().unwrap_or(0));
        let line = |(depth, head, shape, rule): (usize, String, String, &str)| {
            let head = format!("{}{head}", "    ".repeat(depth));
            format!("{head:wide$}  {shape:shapes$}  {rule}").trim_end().to_owned() + "\n"
        };
        lines.into_iter().map(line).collect()
    }
}
