//! Data flow: which assignment each name reads, and which statements matter.
//!
//! TeIL leaves markers for inputs and outputs to its users (Sec. 3.1), the model language has them (Sec. 5). Here: with
//! no marker in a program, the inputs are the names that are read before they are assigned and the outputs are all
//! assigned names; with any marker, unmarked names are internal, and an uninitialised one that reaches an output is an
//! error.

use std::collections::{HashMap, HashSet};

use certen_syntax::{Code, Diagnostic, Diagnostics, Name, Span};

use super::ast::{Decl, Expr, Program};

/// Where a name's value comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// Memory as it was before the first statement.
    Initial,
    /// The assignment of this statement.
    Stmt(usize),
}

/// What data flow found out.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// The tensors that the caller gives.
    pub inputs: Vec<Name>,
    /// The tensors that the caller gets.
    pub outputs: Vec<Name>,
    /// For each expression that is a name, what it reads.
    pub reads: Vec<Option<Origin>>,
    /// For each statement, whether its value reaches an output.
    pub live: Vec<bool>,
    /// What each assigned name holds at the end.
    pub last: HashMap<Name, usize>,
}

/// Analyses a program whose names are all declared. With an error there is no flow.
pub(super) fn analyse(program: &Program, diagnostics: &mut Diagnostics) -> Option<Flow> {
    let mut flow = Flow { reads: vec![None; program.exprs.len()], ..Flow::default() };
    let mut read_first = HashSet::new();
    for (at, stmt) in program.stmts.iter().enumerate() {
        for id in program.exprs_of(at) {
            let Expr::Var(name) = program.expr(id) else { continue };
            let origin = flow.last.get(name).map_or(Origin::Initial, |&from| Origin::Stmt(from));
            if origin == Origin::Initial {
                read_first.insert(*name);
            }
            flow.reads[id.index()] = Some(origin);
        }
        flow.last.insert(stmt.target, at);
    }
    let marked = program.decls.iter().any(|decl| decl.marker.is_some());
    let is_output = |decl: &Decl| if marked { decl.marker.output } else { flow.last.contains_key(&decl.name) };
    for decl in &program.decls {
        if if marked { decl.marker.input } else { read_first.contains(&decl.name) } {
            flow.inputs.push(decl.name);
        }
        if is_output(decl) {
            flow.outputs.push(decl.name);
        }
    }
    let initialised: HashSet<Name> = flow.inputs.iter().copied().collect();
    let mut broken = false;

    let mut waiting = Vec::new();
    for decl in program.decls.iter().filter(|decl| is_output(decl)) {
        match flow.last.get(&decl.name) {
            Some(&at) => waiting.push(at),
            None if initialised.contains(&decl.name) => {}
            None => {
                let text = format!("the output `{}` is never assigned", decl.name);
                diagnostics.push(Diagnostic::error(Code::E0212, decl.name_span, text));
                broken = true;
            }
        }
    }
    flow.live = vec![false; program.stmts.len()];
    let declared: HashMap<Name, Span> = program.decls.iter().map(|decl| (decl.name, decl.name_span)).collect();
    let declare = program.notation.words().declare;
    let mut blamed = HashSet::new();
    while let Some(at) = waiting.pop() {
        if std::mem::replace(&mut flow.live[at], true) {
            continue;
        }
        for id in program.exprs_of(at) {
            match (program.expr(id), flow.reads[id.index()]) {
                (_, Some(Origin::Stmt(from))) => waiting.push(from),
                (Expr::Var(name), Some(Origin::Initial)) if !initialised.contains(name) && blamed.insert(*name) => {
                    let text = format!("an output depends on `{name}`, which has no value here");
                    let error =
                        Diagnostic::error(Code::E0212, program.span(id), text).label("read before it is assigned");
                    let error = match declared.get(name) {
                        Some(&span) => error.also(span, "not marked as an input"),
                        None => error,
                    };
                    diagnostics.push(error.help(format!("mark it with `{declare} input {name}`, or assign it first")));
                    broken = true;
                }
                _ => {}
            }
        }
    }
    for (stmt, _) in program.stmts.iter().zip(&flow.live).filter(|(_, live)| !**live) {
        let text = format!("this value of `{}` reaches no output", stmt.target);
        diagnostics.push(Diagnostic::warning(Code::W0302, stmt.target_span, text));
    }
    (!broken).then_some(flow)
}
