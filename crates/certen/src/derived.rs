//! Derived functions: a program that means what another one means, and is computed in another way.
//!
//! `derive g from f { … }` begins with the program of `f`, which stays the meaning of `g`: the loops of `g` come from the program
//! at the end of its rewrites, nothing is lifted on top of that, and what is validated is that they compute what `f` says. After
//! every rewrite the program may cut off nothing but padding, and its accesses are shown to be in bounds.
//!
//! What is known of a derivation is known of each of its rewrites: conditions, proved for all sizes or not. If one is not, the
//! comparison of the loops with the meaning has to reach everything; what differs there is blamed on the rewrite that made the
//! difference, found by comparing the programs before and after each.

use std::sync::{Arc, OnceLock};

use certen_core::script::{Derivation, ScriptArg, ScriptArgKind, Tactic};
use certen_core::{Binding, Program, print_term};
use certen_derive::{Derived, Law, Refused, Taken, derive};
use certen_loops::FpMode;
use certen_syntax::{Code, Diagnostic, Label, Name, Remedy};
use certen_validate::{Agreement, agree};

use crate::blame::doubted;
use crate::options::is_strict;
use crate::sound::{bounds, truncations};

/// Steps of the evaluator that the comparison of two programs may take.
const BUDGET: u64 = 400_000;

/// A derivation, made when someone first asks for it.
#[derive(Debug)]
pub(crate) struct DerivedOnce {
    pub derivation: Derivation,
    /// The pieces of scripts that it knows.
    pub tactics: Arc<[Tactic]>,
    made: OnceLock<Result<Derived, Box<Refused>>>,
}

impl DerivedOnce {
    pub fn new(derivation: Derivation, tactics: Arc<[Tactic]>) -> DerivedOnce {
        DerivedOnce { derivation, tactics, made: OnceLock::new() }
    }

    fn made(&self, before: &Program, name: Name, fp: FpMode) -> Result<&Derived, &Refused> {
        let made = self.made.get_or_init(|| {
            let mut check = |program: &Program| {
                let mut found = truncations(program);
                // What is cut wrongly has no loops whose accesses could be looked at.
                if found.is_empty() {
                    found = bounds(program);
                }
                found.retain(Diagnostic::is_error);
                found
            };
            let steps = &self.derivation.steps;
            let derived = derive(before, name, steps, &self.tactics, &mut check);
            let derived = derived.and_then(|derived| strictly(before, derived, fp));
            derived.map_err(|mut refused| {
                // What is wrong before the first step is shown at the head of the derivation.
                let label = || Label { span: self.derivation.head, text: String::new() };
                refused.diagnostic.primary.get_or_insert_with(label);
                refused
            })
        });
        made.as_ref().map_err(|refused| &**refused)
    }
}

/// A derivation, unless floats would be added in another order where that is forbidden.
fn strictly(before: &Program, derived: Derived, fp: FpMode) -> Result<Derived, Box<Refused>> {
    let is_free = |taken: &Taken| taken.rewrite.law == Law::Exact;
    let Some(at) = derived.taken.iter().position(|taken| !is_free(taken)).filter(|_| is_strict(before, fp)) else {
        return Ok(derived);
    };
    let Derived { mut taken, .. } = derived;
    let before = if at == 0 { before } else { &taken[at - 1].after }.clone();
    let text = format!("`{}` may round floats differently, which strict floating point forbids", taken[at].step);
    let error = Diagnostic::error(Code::E0903, taken[at].step.span, text);
    let laws = format!("`{}` is an equation of a ring: it holds for numbers that do not round", taken[at].rewrite.name);
    taken.truncate(at);
    Err(Box::new(Refused {
        at,
        diagnostic: error.note(laws).remedy(Remedy::Fp("relaxed", "allows it")),
        before,
        taken,
    }))
}

/// The derivations that lead from a function to what is run.
#[derive(Clone, Debug)]
pub(crate) struct Derivations {
    /// In the order in which they are made; at least one.
    pub path: Arc<[Arc<DerivedOnce>]>,
}

impl Derivations {
    /// The rewrites that were made, in order.
    pub fn taken(&self) -> impl Iterator<Item = &Taken> {
        self.path.iter().filter_map(|one| one.made.get()).flat_map(|made| match made {
            Ok(derived) => &derived.taken,
            Err(refused) => &refused.taken,
        })
    }

    /// The program that they end with.
    pub fn made<'a>(&'a self, core: &'a Program, fp: FpMode) -> Result<&'a Program, &'a Refused> {
        let next = |program, one: &'a Arc<DerivedOnce>| Ok(&one.made(program, self.name_of(one, core), fp)?.program);
        self.path.iter().try_fold(core, next)
    }

    /// Whether all of them were made, or refused, before.
    pub fn is_made(&self) -> bool {
        self.path.iter().any(|one| matches!(one.made.get(), Some(Err(_))))
            || self.path.iter().all(|one| one.made.get().is_some())
    }

    /// Each with the rewrites that could be made.
    pub fn rewritings<'a>(&'a self, core: &'a Program, fp: FpMode) -> Vec<Rewriting<'a>> {
        let mut before = core;
        let mut found = Vec::new();
        for one in self.path.iter() {
            let derivation = &one.derivation;
            match one.made(before, self.name_of(one, core), fp) {
                Ok(derived) => {
                    found.push(Rewriting { derivation, before, taken: &derived.taken, refused: None });
                    before = &derived.program;
                }
                Err(refused) => {
                    let (taken, refused) = (refused.taken.as_slice(), Some(&refused.diagnostic));
                    found.push(Rewriting { derivation, before, taken, refused });
                    break;
                }
            }
        }
        found
    }

    /// What the program of a derivation is called: the last one as the whole is.
    fn name_of(&self, one: &Arc<DerivedOnce>, core: &Program) -> Name {
        let is_last = self.path.last().is_some_and(|last| Arc::ptr_eq(last, one));
        if is_last { core.name } else { one.derivation.name }
    }

    /// The numbers that its steps are given, in order.
    pub fn numbers(&self) -> Vec<i64> {
        let steps = self.path.iter().flat_map(|one| &one.derivation.steps);
        steps.flat_map(|step| &step.args).filter_map(number).collect()
    }

    /// The same with other numbers, in the same order.
    pub fn with_numbers(&self, numbers: &mut dyn Iterator<Item = i64>) -> Derivations {
        let mut one = |one: &Arc<DerivedOnce>| {
            let mut derivation = one.derivation.clone();
            for arg in derivation.steps.iter_mut().flat_map(|step| &mut step.args) {
                if let Some(old) = number(arg) {
                    arg.kind = ScriptArgKind::Ix(numbers.next().unwrap_or(old).into());
                }
            }
            Arc::new(DerivedOnce::new(derivation, one.tactics.clone()))
        };
        Derivations { path: self.path.iter().map(&mut one).collect() }
    }

    /// That a rewrite is not shown to keep the meaning, if one is not.
    pub fn doubt(&self) -> Option<Diagnostic> {
        let taken = self.taken().find(|taken| !taken.is_proved())?;
        let text = format!("`{}` is not shown to keep the meaning for all sizes", taken.step);
        Some(doubted(Diagnostic::error(Code::E0805, taken.step.span, text), &taken.conditions).note(after(taken)))
    }

    /// The error for loops that differ from the meaning, at the rewrite that made the difference, or if that is not seen, at
    /// the first that is not shown to keep the meaning; none if every rewrite is.
    /// Steps are shown as they are `written`, also where they are taken with smaller numbers.
    pub fn blamed(
        &self,
        core: &Program,
        written: &Derivations,
        difference: &dyn std::fmt::Display,
    ) -> Option<Diagnostic> {
        let mut before = core;
        for (at, taken) in self.taken().enumerate() {
            if let Agreement::Differs { .. } = agree(before, &taken.after, BUDGET) {
                let step = written.taken().nth(at).map_or(&taken.step, |taken| &taken.step);
                let text = format!("the derivation changes the meaning: after `{step}`, {difference}");
                let error = doubted(Diagnostic::error(Code::E0705, step.span, text), &taken.conditions);
                let error = error.note(after(taken));
                // What is proved and wrong is a mistake of the prover.
                return Some(match taken.is_proved() {
                    true => error.note("every condition of this rewrite is proved: this is a bug in Certen"),
                    false => error.help("the program before this rewrite agrees with what is meant: leave it out"),
                });
            }
            before = &taken.after;
        }
        // The sizes at which programs are compared may be too small to show it: what is not proved is suspect.
        let at = self.taken().position(|taken| !taken.is_proved())?;
        let (taken, step) = (self.taken().nth(at)?, &written.taken().nth(at)?.step);
        let text = format!("the derivation changes the meaning: {difference}");
        let error = doubted(Diagnostic::error(Code::E0705, step.span, text), &taken.conditions).note(after(taken));
        Some(error.help("this is the first rewrite that is not shown to keep the meaning: leave it out"))
    }
}

/// A number that a step is given, such as the size of tiles.
fn number(arg: &ScriptArg) -> Option<i64> {
    match &arg.kind {
        ScriptArgKind::Ix(ix) => ix.as_constant().filter(|number| *number > 0),
        ScriptArgKind::Cond(_) | ScriptArgKind::Pattern(_) => None,
    }
}

/// One derivation of a program, as far as it got.
#[derive(Clone, Copy, Debug)]
pub struct Rewriting<'a> {
    /// What it says.
    pub derivation: &'a Derivation,
    /// The program that it begins with.
    pub before: &'a Program,
    /// The rewrites that were made, in order.
    pub taken: &'a [Taken],
    /// Why the next one could not be.
    pub refused: Option<&'a Diagnostic>,
}

fn after(taken: &Taken) -> String {
    format!("the program after this step:\n{}", bindings(&taken.after))
}

/// What a program computes, without what it declares.
pub(crate) fn bindings(program: &Program) -> String {
    let line = |binding: &Binding| format!("    {} = {}", binding.name, print_term(&program.terms, binding.term));
    program.bindings.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use certen_core::parse_program;
    use certen_core::script::{self, parse_steps};
    use certen_derive::rewrites;
    use certen_index::{Condition, Status};
    use certen_syntax::{Cursor, Diagnostics, Sources, lex};

    use super::*;
    use crate::begin::Begin;
    use crate::front::Accepted;
    use crate::{Module, Options};

    fn core(body: &str) -> Program {
        let mut sources = Sources::new();
        let text = format!("core t\nsize n\nwhere n >= 1\ninput x : f64[n]\ny = {body}\noutput y\n");
        let file = sources.add("t.core", text);
        parse_program(&sources, file).unwrap_or_else(|errors| panic!("{errors:?}"))
    }

    /// A module whose derivation has led to these programs, whatever it would have done, with a condition at each
    /// that nothing has shown.
    fn pretended(programs: &[&str], status: Status, options: &Options) -> Module {
        let mut sources = Sources::new();
        let steps: String = (0..programs.len()).skip(1).map(|at| format!("step{at}(64);\n")).collect();
        let file = sources.add("t.ten", format!("derive t from f {{\n{steps}}}\n"));
        let mut diagnostics = Diagnostics::new();
        let tokens = lex(sources.get(file).unwrap(), file, &mut diagnostics);
        let derivation = script::derivation(&mut Cursor::new(&tokens), &mut diagnostics).unwrap();
        let taken = derivation.steps.iter().zip(&programs[1..]).enumerate().map(|(of, (step, program))| Taken {
            step: step.clone(),
            of,
            rewrite: rewrites()[0],
            after: core(program),
            conditions: vec![Condition { what: "all is well".into(), about: None, status: status.clone() }],
        });
        let derived = Derived { taken: taken.collect(), program: core(programs[programs.len() - 1]) };
        let one = DerivedOnce { derivation, tactics: Arc::default(), made: OnceLock::from(Ok(derived)) };
        let begin = Begin::Derived(Derivations { path: [Arc::new(one)].into() });
        Module::new(Accepted { begin, ..Accepted::core(core(programs[0])) }, options)
    }

    #[test]
    fn a_difference_is_blamed_on_the_rewrite_that_made_it() {
        let programs = ["gen i in 0..n. x[i] + x[i]", "gen i in 0..n. 2.0 * x[i]", "gen i in 0..n. 3.0 * x[i]"];
        let failure = pretended(&programs, Status::Open, &Options::default()).validation().unwrap_err();
        let [error] = failure.diagnostics() else { panic!("{failure}") };
        assert_eq!(error.code, Code::E0705);
        assert!(error.message.starts_with("the derivation changes the meaning: after `step2(64)`, "), "{failure}");
        assert_eq!(error.primary.as_ref().map(|label| label.span.start), Some(29));
        assert!(error.notes.contains(&"it is not shown that all is well".to_owned()), "{failure}");
        assert!(error.notes.iter().any(|note| note.contains("y = gen i in 0..n. 3.0 * x[i]")), "{failure}");
        // What was proved all the same says who is to blame.
        let failure = pretended(&programs, Status::Proved(Vec::new()), &Options::default()).validation().unwrap_err();
        assert!(failure.to_string().contains("this is a bug in Certen"), "{failure}");
    }

    #[test]
    fn what_is_not_proved_is_tested_or_refused() {
        let programs = ["gen i in 0..n. x[i] + x[i]", "gen i in 0..n. 2.0 * x[i]"];
        let module = pretended(&programs, Status::Open, &Options::default());
        assert!(!module.validation().unwrap().proved);
        assert!(pretended(&programs, Status::Proved(Vec::new()), &Options::default()).validation().unwrap().proved);
        let options = Options { require_proof: true, ..Options::default() };
        let failure = pretended(&programs, Status::Open, &options).validation().unwrap_err();
        assert_eq!(failure.diagnostics()[0].code, Code::E0805);
        assert!(failure.to_string().contains("`step1(64)` is not shown to keep the meaning"), "{failure}");
        assert!(pretended(&programs, Status::Proved(Vec::new()), &options).validation().is_ok());
    }

    #[test]
    fn numbers_are_found_and_replaced_in_order() {
        let mut sources = Sources::new();
        let file = sources.add("t.ten", "derive t from f { a(64, n, 32) at i; b({ 8.0 }, i < 4); c(n + 1, 16); }");
        let mut diagnostics = Diagnostics::new();
        let tokens = lex(sources.get(file).unwrap(), file, &mut diagnostics);
        let derivation = script::derivation(&mut Cursor::new(&tokens), &mut diagnostics).unwrap();
        let derivations = Derivations { path: [Arc::new(DerivedOnce::new(derivation, Arc::default()))].into() };
        assert_eq!(derivations.numbers(), [64, 32, 16]);
        let small = derivations.with_numbers(&mut [4, 2, 1].into_iter());
        let steps: Vec<String> = small.path[0].derivation.steps.iter().map(ToString::to_string).collect();
        assert_eq!(steps, ["a(4, n, 2) at i", "b({ 8.0 }, i <= 3)", "c(n + 1, 1)"]);
    }

    #[test]
    fn floats_are_not_reordered_where_that_is_forbidden() {
        let mut sources = Sources::new();
        let file = sources.add("steps", "tile_sum(4) at k");
        let steps = parse_steps(sources.get(file).unwrap(), file, &mut Diagnostics::new()).unwrap();
        let program = core("sum k in 0..n. x[k]");
        let made = || derive(&program, program.name, &steps, &[], &mut |_| Vec::new()).unwrap();
        assert!(strictly(&program, made(), FpMode::Relaxed).is_ok());
        let refused = strictly(&program, made(), FpMode::Strict).unwrap_err();
        assert_eq!((refused.at, refused.taken.len(), refused.diagnostic.code), (0, 0, Code::E0903));
    }
}
