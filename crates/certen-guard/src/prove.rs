//! Whether a kernel is safe: every access shown to be inside its tensor, and sizes that have to agree shown to be equal,
//! for all sizes that satisfy what is known of them.
//!
//! Known is that sizes are at least 1, and that every range has at least one value: a framework is not called with less.
//! What cannot be shown is a [`Fault`], with sizes and indices that break it if there are any. They are shown only if they
//! break it in the walk of `replay` too.

use std::collections::BTreeMap;

use certen_index::{Cond, Decision, Facts, IxError, Verdict};
use certen_syntax::{Code, Diagnostic, Name};

use crate::index::{Comparison, Condition, Index, Values};
use crate::kernel::{Agreement, Effect, Fault, Kernel, Range, Read, Side, Statement, Tensor, Value};
use crate::replay::{self, Around};

/// All that makes a kernel unsafe, in the order of its text.
pub fn faults(kernel: &Kernel) -> Vec<Fault> {
    let mut faults = kernel.faults.clone();
    let sizes = known(kernel);
    if let Verdict::No(_) = sizes.satisfiable() {
        let text = "there are no sizes for which every range of this kernel has a value";
        faults.push(Fault::of(Diagnostic::error(Code::E1003, kernel.span, text).label("this kernel"), ""));
    }
    for statement in &kernel.statements {
        let mut walk = Walk { kernel, faults: Vec::new(), scope: Vec::new() };
        for agreement in &statement.agreements {
            walk.agreement(&sizes, agreement);
        }
        // Sizes that do not agree make accesses that leave tensors: one mistake, one message.
        if walk.faults.is_empty() {
            let facts = walk.entered(&sizes, &statement.ranges);
            walk.stores(&sizes, statement);
            walk.value(&facts, &statement.body);
        }
        faults.append(&mut walk.faults);
    }
    faults.sort_by_key(|fault| fault.diagnostic.primary.as_ref().map(|label| label.span.start));
    faults.dedup_by(|b, a| b.diagnostic == a.diagnostic);
    faults
}

/// What is known of the sizes of a kernel.
fn known(kernel: &Kernel) -> Facts {
    let mut facts = Facts::new();
    for condition in sizes(kernel) {
        assume(&mut facts, condition.cond());
    }
    facts
}

/// The conditions on sizes under which a kernel is called.
pub fn sizes(kernel: &Kernel) -> Vec<Condition> {
    let least = |extent: Index| Condition::compare(Comparison::AtMost, 1, extent);
    let mut conditions: Vec<Condition> = kernel.sizes.iter().map(|size| least(Index::Name(*size))).collect();
    conditions.extend(kernel.facts.iter().cloned());
    let mut add = |ranges: &[Range]| {
        for range in ranges {
            let extent = range.extent();
            let mut names = Default::default();
            extent.names(&mut names);
            let condition = least(extent);
            // Ranges can depend on other indices; that they have values is not for a caller to say.
            let is_on_sizes = !names.is_empty() && names.iter().all(|name| kernel.sizes.contains(name));
            if is_on_sizes && !conditions.contains(&condition) {
                conditions.push(condition);
            }
        }
    };
    for statement in &kernel.statements {
        add(&statement.ranges);
        each_reduction(&statement.body, &mut add);
    }
    conditions
}

fn each_reduction(value: &Value, visit: &mut impl FnMut(&[Range])) {
    if let Value::Reduce(_, ranges, _) = value {
        visit(ranges);
    }
    value.parts().into_iter().for_each(|part| each_reduction(part, visit));
}

fn assume(facts: &mut Facts, fact: Result<Cond, IxError>) {
    // What the prover cannot express is not assumed.
    if let Ok(fact) = fact {
        facts.assume(fact);
    }
}

/// What was found about a goal.
enum Found {
    Proved,
    /// Sizes and indices where it does not hold.
    Broken(Values),
    Open,
}

fn decide(facts: &Facts, goal: Result<Cond, IxError>) -> Found {
    match goal.map(|goal| facts.decide(&goal)) {
        Ok(Decision::Proved(_)) => Found::Proved,
        Ok(Decision::Refuted(found)) => Found::Broken(found.0),
        Ok(Decision::Unknown) | Err(_) => Found::Open,
    }
}

struct Walk<'a> {
    kernel: &'a Kernel,
    faults: Vec<Fault>,
    scope: Vec<Around>,
}

impl Walk<'_> {
    fn entered(&mut self, facts: &Facts, ranges: &[Range]) -> Facts {
        let mut inside = facts.clone();
        for range in ranges {
            let low = Condition::compare(Comparison::AtMost, range.low.clone(), range.name);
            let high = Condition::compare(Comparison::Less, range.name, range.high.clone());
            assume(&mut inside, low.cond());
            assume(&mut inside, high.cond());
            self.scope.push(Around::Range(range.clone()));
        }
        inside
    }

    fn value(&mut self, facts: &Facts, value: &Value) {
        let depth = self.scope.len();
        match value {
            Value::Read(read) => self.read(facts, read),
            Value::Reduce(_, ranges, body) => {
                let facts = self.entered(facts, ranges);
                self.value(&facts, body);
                self.scope.truncate(depth);
            }
            Value::Choose { condition, is_lazy: true, yes, no } => {
                for (condition, value) in [(condition.clone(), yes), (Condition::Not(Box::new(condition.clone())), no)]
                {
                    let mut inside = facts.clone();
                    assume(&mut inside, condition.cond());
                    self.scope.push(Around::Condition(condition));
                    self.value(&inside, value);
                    self.scope.truncate(depth);
                }
            }
            _ => value.parts().into_iter().for_each(|part| self.value(facts, part)),
        }
    }

    fn read(&mut self, facts: &Facts, read: &Read) {
        let Some(tensor) = self.kernel.tensors.get(read.tensor) else { return };
        for (dimension, (index, size)) in read.at.iter().zip(&tensor.shape).enumerate() {
            let low = Condition::compare(Comparison::AtMost, 0, index.clone());
            let high = Condition::compare(Comparison::Less, index.clone(), size.clone());
            for (goal, is_low) in [(low, true), (high, false)] {
                let found = decide(facts, goal.cond());
                if let Found::Broken(_) | Found::Open = found {
                    let fault = self.outside(read, tensor, dimension, is_low, found);
                    self.faults.push(fault);
                    return;
                }
            }
        }
    }

    /// An access that leaves its tensor, or may.
    fn outside(&self, read: &Read, tensor: &Tensor, dimension: usize, is_low: bool, found: Found) -> Fault {
        let (index, size) = (&read.at[dimension], &tensor.shape[dimension]);
        let wanted =
            if is_low { format!("{index} must be at least 0") } else { format!("{index} must be below {size}") };
        let used = match (is_low, self.reach(index)) {
            (false, Some(high)) => format!("{index} up to {high}"),
            _ => index.to_string(),
        };
        let is_open = matches!(found, Found::Open);
        let example = self.replayed(found, |values| replay::leaves(self.kernel, &self.scope, read, values));
        let message = match (is_open, &example) {
            (true, None) => "this access is not shown to be inside the tensor",
            _ => "this access can be out of bounds",
        };
        let mut diagnostic = Diagnostic::error(Code::E1001, read.span, message).label(wanted);
        diagnostic = diagnostic.also(tensor.span, format!("`{}` is {} here", tensor.name, shown(&tensor.shape)));
        let table = format!("declared: `{}` is {}; used: {}", tensor.name, shown(&tensor.shape), self.walked(read));
        diagnostic = diagnostic.note(table);
        if let Some(values) = &example {
            let at: Vec<i128> = read.at.iter().filter_map(|index| index.value(values)).collect();
            let shape: Vec<i128> = tensor.shape.iter().filter_map(|size| size.value(values)).collect();
            let text = format!("for example {}: the access is {at:?}, and the shape {shape:?}", listed(values));
            diagnostic = diagnostic.note(text);
        }
        if !read.reading.is_empty() {
            diagnostic = diagnostic.note(read.reading);
        }
        Fault {
            diagnostic,
            tensor: Some((tensor.name, dimension)),
            declared: size.to_string(),
            used,
            example: example.into_iter().flatten().collect(),
            reading: read.reading.into(),
        }
    }

    /// The largest value of an index that is one.
    fn reach(&self, index: &Index) -> Option<Index> {
        let name = index.name()?;
        self.scope.iter().rev().find_map(|around| match around {
            Around::Range(range) if range.name == name => Some(range.high.clone() - Index::Num(1)),
            _ => None,
        })
    }

    /// An access with the ranges of its indices: `[k, y] with k in 0..h, y in 0..m`.
    fn walked(&self, read: &Read) -> String {
        let at: Vec<String> = read.at.iter().map(Index::to_string).collect();
        let mut names = Default::default();
        read.at.iter().for_each(|index| index.names(&mut names));
        let ranges: Vec<String> = self
            .scope
            .iter()
            .filter_map(|around| match around {
                Around::Range(range) if names.contains(&range.name) => {
                    Some(format!("{} in {}..{}", range.name, range.low, range.high))
                }
                _ => None,
            })
            .collect();
        let with = if ranges.is_empty() { String::new() } else { format!(" with {}", ranges.join(", ")) };
        format!("[{}]{with}", at.join(", "))
    }

    /// A counterexample with all names, if the replay agrees that it is one.
    fn replayed(&self, found: Found, breaks: impl Fn(&Values) -> bool) -> Option<Values> {
        let Found::Broken(values) = found else { return None };
        let completed = replay::completed(self.kernel, &self.scope, &values);
        completed.into_iter().chain([values]).find(|values| breaks(values))
    }

    fn agreement(&mut self, facts: &Facts, agreement: &Agreement) {
        let Agreement { by, first, second, reading } = agreement;
        let goal = Condition::compare(Comparison::Equal, first.size.clone(), second.size.clone());
        let found = decide(facts, goal.cond());
        if let Found::Proved = found {
            return;
        }
        let example = self.replayed(found, |values| replay::differ(self.kernel, &first.size, &second.size, values));
        let message =
            format!("{by} has two sizes: {} is {}, {} is {}", first.what, first.size, second.what, second.size);
        let mut diagnostic = Diagnostic::error(Code::E1002, second.span, message);
        diagnostic = diagnostic.label(format!("{} here", second.size));
        diagnostic = diagnostic.also(first.span, format!("{} here", first.size));
        diagnostic = self.declared(diagnostic, [first, second]);
        if let Some(values) = example.as_ref().filter(|values| !values.is_empty()) {
            let both = [&first.size, &second.size].map(|size| size.value(values).unwrap_or_default());
            let whats = [&first.what, &second.what];
            let text =
                format!("for example {}: {} is {}, {} is {}", listed(values), whats[0], both[0], whats[1], both[1]);
            diagnostic = diagnostic.note(text);
        }
        if !reading.is_empty() {
            diagnostic = diagnostic.note(reading);
        }
        let tensor = second.tensor.and_then(|(at, dimension)| Some((self.kernel.tensors.get(at)?.name, dimension)));
        let (declared, used) = (second.size.to_string(), first.size.to_string());
        let example = example.into_iter().flatten().collect();
        self.faults.push(Fault { diagnostic, tensor, declared, used, example, reading: reading.clone() });
    }

    /// The declarations of both tensors, side by side.
    fn declared(&self, diagnostic: Diagnostic, sides: [&Side; 2]) -> Diagnostic {
        let mut tensors: Vec<usize> = sides.iter().filter_map(|side| side.tensor.map(|(at, _)| at)).collect();
        tensors.dedup();
        let shapes: Vec<String> = tensors
            .iter()
            .filter_map(|at| self.kernel.tensors.get(*at))
            .map(|tensor| format!("`{}` is {}", tensor.name, shown(&tensor.shape)))
            .collect();
        if shapes.is_empty() { diagnostic } else { diagnostic.note(format!("declared: {}", shapes.join(", "))) }
    }

    /// Stores stay inside, and begin where the tensor begins if it is made there.
    fn stores(&mut self, facts: &Facts, statement: &Statement) {
        let Some(tensor) = self.kernel.tensors.get(statement.target) else { return };
        for (dimension, (range, size)) in statement.ranges.iter().zip(&tensor.shape).enumerate() {
            let is_whole = statement.effect == Effect::Define;
            let begins = match is_whole {
                true => Condition::compare(Comparison::Equal, range.low.clone(), 0),
                false => Condition::compare(Comparison::AtMost, 0, range.low.clone()),
            };
            let ends = Condition::compare(Comparison::AtMost, range.high.clone(), size.clone());
            let (begun, ended) = (decide(facts, begins.cond()), decide(facts, ends.cond()));
            let found = match (begun, ended) {
                (Found::Proved, Found::Proved) => continue,
                (Found::Proved, found) | (found, _) => found,
            };
            let example = self.replayed(found, |values| replay::store_leaves(range, size, is_whole, values));
            let stored = format!("{} in {}..{}", range.name, range.low, range.high);
            let message = format!("the elements that are stored are not those of `{}`", tensor.name);
            let mut diagnostic =
                Diagnostic::error(Code::E1003, statement.span, message).label(format!("stores {stored}"));
            diagnostic = diagnostic.note(format!("`{}` is {}", tensor.name, shown(&tensor.shape)));
            if let Some(values) = example.as_ref().filter(|values| !values.is_empty()) {
                diagnostic = diagnostic.note(format!("for example {}", listed(values)));
            }
            let tensor = Some((tensor.name, dimension));
            let example = example.into_iter().flatten().collect();
            let (declared, reading) = (size.to_string(), String::new());
            self.faults.push(Fault { diagnostic, tensor, declared, used: stored, example, reading });
            return;
        }
    }
}

/// A shape as messages show it.
pub fn shown(shape: &[Index]) -> String {
    let sizes: Vec<String> = shape.iter().map(Index::to_string).collect();
    format!("[{}]", sizes.join(", "))
}

fn listed(values: &BTreeMap<Name, i64>) -> String {
    let values: Vec<String> = values.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    values.join(", ")
}
