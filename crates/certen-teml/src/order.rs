//! The order of a `codegen` list: which statements run when, `init`s included, and whether that is right.
//!
//! A list may have the statements in another order than the text, and leave some out. It is right by construction if
//! all outputs get their values by the same operations from the same values (`numbers.rs`); otherwise its loops have to
//! be compared with the meaning. A list that reads what nothing in it has written, or does not write an output, is
//! refused.

use std::collections::{HashMap, HashSet};

use certen_syntax::{Code, Diagnostic, Name};

use crate::assignment::{Assignment, Route, Statements};
use crate::expression::Expression;
use crate::flow::{Flow, too_complex};
use crate::numbers::{Number, Numbers};

fn wrong(route: &Route, message: String) -> Diagnostic {
    Diagnostic::error(Code::E0249, route.span, message)
}

/// All statements in their order, `init`s among them: each before the first entry that uses its tensor and stands after
/// it in the text. Entries stay together.
///
/// # Errors
/// E0249 for a statement that is listed twice.
pub(crate) fn order(statements: &Statements, flow: &Flow, route: &Route) -> Result<Vec<Vec<usize>>, Vec<Diagnostic>> {
    let mut inits: HashMap<Name, Vec<usize>> = HashMap::new();
    for (at, assignment) in statements.assignments.iter().enumerate().rev().filter(|(_, a)| a.init) {
        inits.entry(assignment.target).or_default().push(at);
    }
    // The last of each list is the first in the text.
    let mut due = |tensor: Name, before: usize, order: &mut Vec<Vec<usize>>| {
        let waiting = inits.entry(tensor).or_default();
        // What is overwritten as a whole need not be written.
        let mut last = None;
        while let Some(at) = waiting.pop_if(|at| *at < before) {
            last = Some(at);
        }
        order.extend(last.map(|at| vec![at]));
    };
    let mut order = Vec::new();
    let mut errors = Vec::new();
    let mut listed = HashSet::new();
    for entry in &route.entries {
        for &at in &entry.assignments {
            let Some(assignment) = statements.assignments.get(at) else { continue };
            if !listed.insert(at) {
                let message = format!("`{}` computes `{}` twice", route.name, assignment.id);
                errors.push(wrong(route, message).also(assignment.span, "this statement"));
                continue;
            }
            let used = flow.reads.get(at).into_iter().flatten().map(|(name, _)| *name).chain([assignment.target]);
            used.for_each(|tensor| due(tensor, at, &mut order));
        }
        order.push(entry.assignments.clone());
    }
    let ends_with_init = |at: usize| statements.assignments.get(at).is_some_and(|assignment| assignment.init);
    for (tensor, last) in flow.outputs.iter().filter(|(_, last)| ends_with_init(*last)) {
        due(*tensor, last + 1, &mut order);
    }
    if errors.is_empty() { Ok(order) } else { Err(errors) }
}

/// The values of all tensors when a program has run, and those of its paths, beside each other.
pub(crate) struct Runs<'a> {
    statements: &'a Statements,
    flow: &'a Flow,
    numbers: Numbers,
    given: HashMap<Name, Number>,
    /// Those of the program, in the order of the text.
    meant: HashMap<Name, Number>,
}

impl<'a> Runs<'a> {
    /// Runs the program.
    ///
    /// # Errors
    /// E0216 for an index that becomes too complex.
    pub fn new(statements: &'a Statements, flow: &'a Flow) -> Result<Runs<'a>, Vec<Diagnostic>> {
        let mut numbers = Numbers::default();
        let given: HashMap<Name, Number> = flow.inputs.iter().map(|name| (*name, numbers.given(*name))).collect();
        let mut runs = Runs { statements, flow, numbers, meant: HashMap::new(), given };
        let mut errors = Vec::new();
        let mut now = runs.given.clone();
        for (at, assignment) in statements.assignments.iter().enumerate() {
            runs.step(at, assignment, &mut now, &mut errors);
        }
        runs.meant = now;
        if errors.is_empty() { Ok(runs) } else { Err(errors) }
    }

    /// What a statement makes of the values that are there.
    fn step(
        &mut self,
        at: usize,
        assignment: &Assignment,
        now: &mut HashMap<Name, Number>,
        errors: &mut Vec<Diagnostic>,
    ) {
        let value = Expression::of(&self.statements.values, assignment.value);
        match self.numbers.made(assignment, &value, &self.flow.written[at], |name| now.get(&name).copied()) {
            Ok(number) => {
                now.insert(assignment.target, number);
            }
            Err(error) => errors.push(too_complex(assignment)(error)),
        }
    }

    /// Whether the statements in this order give every output the value that it has in the program, by the same
    /// operations on the same values: then their loops compute the meaning by construction.
    ///
    /// # Errors
    /// E0249 for a statement that reads what nothing has written, and for an output that nothing writes.
    pub fn is_right(&mut self, route: &Route, order: &[Vec<usize>]) -> Result<bool, Vec<Diagnostic>> {
        let (statements, flow) = (self.statements, self.flow);
        let mut errors = Vec::new();
        let mut now = self.given.clone();
        let mut written = HashSet::new();
        for &at in order.iter().flatten() {
            let Some(assignment) = statements.assignments.get(at) else { continue };
            for (name, _) in flow.reads.get(at).into_iter().flatten().filter(|(name, _)| !now.contains_key(name)) {
                let message = format!("`{}` reads `{name}`, which nothing before it has written", assignment.id);
                let error = wrong(route, message).also(assignment.span, "this statement");
                errors.push(error.help("list the loops that write it before those that read it"));
            }
            self.step(at, assignment, &mut now, &mut errors);
            written.insert(assignment.target);
        }
        for (name, _) in flow.outputs.iter().filter(|(name, _)| !written.contains(name)) {
            let message = format!("`{}` does not compute `{name}`, which is an output", route.name);
            errors.push(wrong(route, message).help(format!("list the loops that write `{name}`")));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        Ok(flow.outputs.iter().all(|(name, _)| self.meant.get(name) == now.get(name)))
    }
}
