//! The engine beside the texts: a step on an instance, and its result up to bound names.

use std::collections::HashMap;
use std::fmt::Write;

use certen_core::script::parse_steps;
use certen_core::{Program, Term, TermId, parse_program};
use certen_derive::{Derived, ParameterKind, Refused, Rewrite, derive};
use certen_index::{Cond, Ix};
use certen_syntax::{Diagnostics, Name, Sources};

use crate::template::{Instance, named_outside_of_arguments};

/// A program that is a term, where `u` is a size that is below another one.
pub fn whole(term: &str, elem: &str) -> Result<Program, String> {
    let text = format!(
        "core t\nsize s1, s2, s3, u\nwhere s1 >= 0, s2 >= 0, s3 >= 0, s3 <= s2, u >= 0, u < s1\n\
         input ta : {elem}[s1, s2]\ninput tb : {elem}[s2]\ninput tc : {elem}[2, s2, 3]\ninput ts : {elem}\n\
         result = {term}\noutput result\n"
    );
    let mut sources = Sources::new();
    let file = sources.add("t.core", text.as_str());
    parse_program(&sources, file).map_err(|errors| format!("{errors:?}\n{text}"))
}

/// Rewrites of which the right side does not show what belongs to what, so that all parameters are given backwards.
const ALL_BACKWARDS: [&str; 2] = ["collapse_sum", "unfold_flatten"];

/// The step that takes an instance from one side to the other.
pub fn step(rewrite: &Rewrite, instance: &Instance, backwards: bool) -> String {
    let from = if backwards { rewrite.right } else { rewrite.left };
    let known = named_outside_of_arguments(from);
    let all = backwards && ALL_BACKWARDS.contains(&rewrite.name);
    let is_open = |(name, _): &&(&str, ParameterKind)| all || !known.iter().any(|known| known == name);
    let open: Vec<_> = rewrite.parameters.iter().filter(is_open).collect();
    let mut args = Vec::new();
    for (at, (name, kind)) in open.iter().enumerate() {
        let text = match kind {
            // Names at the end are the engine's to choose.
            ParameterKind::Fresh if !all && open[at..].iter().all(|(_, kind)| *kind == ParameterKind::Fresh) => break,
            ParameterKind::Fresh => format!("own_{name}"),
            ParameterKind::Term => format!("{{ {} }}", untyped(&instance.upper[*name].text, instance.elem)),
            // Its hole is the index that the other side binds.
            ParameterKind::Cond => instance.upper[*name].text.replace("$0", if all { "own_i" } else { "i" }),
            ParameterKind::Index | ParameterKind::Number => instance.lower[*name].clone(),
        };
        args.push(text);
    }
    let args = if args.is_empty() { String::new() } else { format!("({})", args.join(", ")) };
    format!("{}{}{args} at result;", if backwards { "backwards " } else { "" }, rewrite.name)
}

/// A term as patterns have it: numbers are of the type of the place.
fn untyped(text: &str, elem: &str) -> String {
    let index = format!("index.{elem}(");
    text.replace(&index, "index.(").replace(&format!("{elem}("), "(").replace("index.(", &index)
}

/// Takes a step.
pub fn take(program: &Program, step: &str) -> Result<Derived, Box<Refused>> {
    let mut sources = Sources::new();
    let file = sources.add("step", step);
    let mut diagnostics = Diagnostics::new();
    let steps = parse_steps(sources.get(file).expect("added"), file, &mut diagnostics);
    let steps = steps.unwrap_or_else(|| panic!("{step}: {diagnostics:?}"));
    derive(program, Name::new("t"), &steps, &[], &mut |_| Vec::new())
}

/// A program of one output as text, with names for what it binds in the order in which it does.
pub fn canonical(program: &Program) -> String {
    let mut shown = Shown { program, names: HashMap::new(), text: String::new() };
    let count = program.bindings.len();
    for (at, binding) in program.bindings.iter().enumerate() {
        if at + 1 == count {
            shown.term(binding.term);
        } else {
            shown.text += "let ";
            let name = shown.name();
            shown.names.insert(binding.name, name);
            write!(shown.text, "{name} = ").expect("text");
            shown.term(binding.term);
            shown.text += " in ";
        }
    }
    shown.text
}

struct Shown<'a> {
    program: &'a Program,
    names: HashMap<Name, Name>,
    text: String,
}

impl Shown<'_> {
    fn name(&self) -> Name {
        Name::new(&format!("b{}", self.names.len()))
    }

    fn ix(&self, ix: &Ix) -> Ix {
        ix.substitute(&|name| self.names.get(&name).map(|new| Ix::var(*new))).expect("small")
    }

    fn cond(&self, cond: &Cond) -> Cond {
        cond.substitute(&|name| self.names.get(&name).map(|new| Ix::var(*new))).expect("small")
    }

    fn add(&mut self, text: impl std::fmt::Display) {
        write!(self.text, "{text}").expect("text");
    }

    fn bound(&mut self, name: Name, what: &str, lo: &Ix, hi: &Ix) {
        let (lo, hi) = (self.ix(lo), self.ix(hi));
        let new = self.name();
        self.names.insert(name, new);
        self.add(format!("{what} {new} in {lo}..{hi}. "));
    }

    fn term(&mut self, id: TermId) {
        let program = self.program;
        match program.terms.get(id) {
            Term::Ref(name, _) => self.add(self.names.get(name).copied().unwrap_or(*name)),
            Term::Gen(name, range, body) => {
                self.bound(*name, "gen", &range.lo, &range.hi);
                self.term(*body);
            }
            Term::Reduce(op, name, range, cond, body) => {
                self.bound(*name, op.name(), &range.lo, &range.hi);
                self.add(format!("where {} ", self.cond(cond)));
                self.term(*body);
            }
            // A guard that is true by its form is none.
            Term::Guard(cond, body) if cond.is_always() => self.term(*body),
            Term::Guard(cond, body) => {
                self.add(format!("guard({}, ", self.cond(cond)));
                self.term(*body);
                self.add(")");
            }
            Term::If(cond, a, b) => {
                self.add(format!("if {} then ", self.cond(cond)));
                self.term(*a);
                self.add(" else ");
                self.term(*b);
            }
            Term::Let(name, value, body) => {
                self.add("let ");
                let new = self.name();
                self.names.insert(*name, new);
                self.add(format!("{new} = "));
                self.term(*value);
                self.add(" in ");
                self.term(*body);
            }
            Term::Select(tensor, indices) => {
                // A selection of a selection is one.
                let (mut tensor, mut all) = (*tensor, indices.to_vec());
                while let Term::Select(inner, first) = program.terms.get(tensor) {
                    all.splice(0..0, first.iter().cloned());
                    tensor = *inner;
                }
                self.add("(");
                self.term(tensor);
                let all: Vec<String> = all.iter().map(|ix| self.ix(ix).to_string()).collect();
                self.add(format!(")[{}]", all.join(", ")));
            }
            Term::Index(ix, elem) => self.add(format!("index.{elem}({})", self.ix(ix))),
            other => {
                let amount = match other {
                    Term::PadLeft(k, _) | Term::PadRight(k, _) | Term::TruncLeft(k, _) | Term::TruncRight(k, _) => {
                        self.ix(k).to_string()
                    }
                    Term::Split(k, _) => k.to_string(),
                    Term::Literal(literal, elem) => format!("{literal:?} {elem}"),
                    Term::Unary(op, _) => format!("{op:?}"),
                    Term::Binary(op, ..) => format!("{op:?}"),
                    Term::Cast(elem, _) => elem.to_string(),
                    _ => String::new(),
                };
                let word = format!("{other:?}");
                let word: String = word.chars().take_while(|c| c.is_alphanumeric()).collect();
                self.add(format!("{word}[{amount}]("));
                for part in other.parts() {
                    self.term(part);
                    self.add(", ");
                }
                self.add(")");
            }
        }
    }
}
