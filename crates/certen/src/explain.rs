//! A program at every stage of the road, as text for people.

use std::fmt;

use certen_core::Program;
use certen_index::Ix;
use certen_lift::Agreement;
use certen_syntax::Name;

use crate::{Failure, Module, Optimised};

/// The stages: each has a variant, a name, and a sentence about it.
macro_rules! stages {
    ($($stage:ident, $name:literal, $about:literal;)*) => {
        /// A stage of the road, or what is found out at one.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Stage {
            $(#[doc = concat!($about, ".")] $stage,)*
        }

        impl Stage {
            /// All stages, in the order of the road.
            pub const ALL: &[Stage] = &[$(Stage::$stage),*];

            /// What people call it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Stage::$stage => $name,)*
                }
            }

            /// What it shows.
            pub fn about(self) -> &'static str {
                match self {
                    $(Stage::$stage => $about,)*
                }
            }
        }
    };
}

stages! {
    Written, "written", "A `.ten` program as the checker understood it: one function for each instance";
    Bounds, "bounds", "… with the bounds of all indices written out";
    Dots, "dots", "… without dots in patterns";
    WithLoops, "with-loops", "… with comprehensions as with-loops";
    Demands, "demands", "… with what each function demands of its arguments";
    States, "states", "The state of a TeML program after each statement: its trees";
    Typed, "typed", "The typing derivation of each statement";
    Analysis, "analysis", "What each statement reads, whether it is dead, can be computed in place, and shares values with others";
    Core, "core", "The program in Core";
    Derived, "derived", "The program in Core that its derivation ends with, which loops are made from";
    Padding, "padding", "How much of each tensor in Core is padding: its pad type";
    Reshapes, "reshapes", "How many constructs that move elements the program in Core has";
    Laws, "laws", "Which laws made the program simpler, and what it is then";
    Optimised, "optimised", "Which contractions were lifted, and the Core program that loops are made from";
    Steps, "steps", "The program after each rewrite of a derivation, the loops after each step of the schedule, with what is known of each";
    Loops, "loops", "The loops";
    C, "c", "The C code";
    Count, "count", "How many multiplications it makes";
}

impl Stage {
    /// The stage of this name.
    pub fn named(name: &str) -> Option<Stage> {
        Stage::ALL.iter().copied().find(|stage| stage.name() == name)
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How many lines a statement's derivation may have.
const DERIVATION_LINES: usize = 200;

/// How many statements the analyses are shown of.
pub const ANALYSED_STATEMENTS: usize = 200;

impl Module {
    /// The program at these stages, or at all that say something of it: the title of each, and a text. Multiplications
    /// are counted as a formula, and as a number if the sizes are given.
    ///
    /// # Errors
    /// As [`Module::laws`]; as [`Module::loops`], if the loops of a schedule are asked for. What cannot be lowered yet is a remark in the text, no error: the other stages are worth
    /// seeing.
    pub fn explain(&self, only: &[Stage], sizes: &[(Name, i64)]) -> Result<Vec<(&'static str, String)>, Failure> {
        let wanted = |stage| only.is_empty() || only.contains(&stage);
        let mut sections: Vec<(&str, String)> = Vec::new();
        let passes = [Stage::Written, Stage::Bounds, Stage::Dots, Stage::WithLoops, Stage::Demands];
        if passes.into_iter().any(wanted) {
            let is_wanted = |found: &str| Stage::named(found).is_some_and(wanted);
            sections.extend(self.stages().into_iter().filter(|(found, _)| is_wanted(found)));
        }
        if wanted(Stage::States)
            && let Some(states) = self.states()
        {
            sections.push(("states", states.to_owned()));
        }
        if wanted(Stage::Typed)
            && let Some(typed) = self.typed()
        {
            let derivations = (0..typed.program.stmts.len()).map(|stmt| typed.derivation(stmt, DERIVATION_LINES));
            sections.push(("typed", derivations.collect::<Vec<_>>().join("\n")));
        }
        if wanted(Stage::Analysis)
            && let Some(typed) = self.typed()
        {
            sections.push(("analysis", typed.analysis_text(self.sources(), ANALYSED_STATEMENTS)));
        }
        if wanted(Stage::Core) {
            sections.push(("core", self.core().to_string()));
        }
        if wanted(Stage::Derived) && !self.rewritings().is_empty() {
            let derived = self.derived().map(|derived| derived.unwrap_or(self.core()).to_string());
            sections.push(("derived", derived.unwrap_or_else(|failure| format!("{failure}\n"))));
        }
        let padded = if wanted(Stage::Padding) { self.padding() } else { Vec::new() };
        if !padded.is_empty() {
            let lines = padded.iter().map(|(name, ty)| format!("{name} : {ty}\n"));
            sections.push(("padding", lines.collect()));
        } else if only.contains(&Stage::Padding) {
            sections.push(("padding", "nothing is padded, split, guarded or cut\n".into()));
        }
        // Only where it is asked for: that everything has generations says nothing.
        if only.contains(&Stage::Reshapes) {
            sections.push(("reshapes", format!("{}\n", self.derived()?.unwrap_or(self.core()).reshapes())));
        }
        if wanted(Stage::Laws) && self.typed().is_some() {
            sections.push(("laws", self.laws()?));
        }
        let or_remark = |result: Result<String, Failure>| result.unwrap_or_else(|failure| format!("{failure}\n"));
        if wanted(Stage::Optimised) {
            sections.push(("optimised", or_remark(optimised(self))));
        }
        if only.contains(&Stage::Steps)
            || (wanted(Stage::Steps) && (!self.steps().is_empty() || !self.rewritings().is_empty()))
        {
            sections.push(("steps", or_remark(self.walk().map(|walk| walk.text()))));
        }
        // Who asks for the loops of a schedule wants to know that there are none.
        if only.contains(&Stage::Loops) && !self.steps().is_empty() {
            self.loops()?;
        }
        if wanted(Stage::Loops) {
            sections.push(("loops", or_remark(self.loops().map(|loops| loops.to_string()))));
        }
        if wanted(Stage::C) {
            sections.push(("c", or_remark(self.c().map(|c| c.kernel))));
        }
        if wanted(Stage::Count) {
            sections.push(("multiplications", count(self, sizes)));
        }
        Ok(sections)
    }
}

/// What was lifted, how it compares with the program as written, and the program that loops are made from.
fn optimised(module: &Module) -> Result<String, Failure> {
    if module.derived()?.is_some() {
        return Ok("nothing is optimised on top of a derivation\n".into());
    }
    let Some(Optimised { program, report, agreement, .. }) = module.optimisation()? else {
        return Ok("nothing to optimise: the program is compiled as written\n".into());
    };
    let checked = match agreement {
        Agreement::Agrees { elements, smaller } => {
            let sizes = if *smaller { ", both at smaller sizes" } else { "" };
            format!("checked: {elements} elements agree with the program as written{sizes}")
        }
        Agreement::OutOfBudget { elements: 0 } => "not checked: a single element would take too long".into(),
        Agreement::OutOfBudget { elements } => {
            format!("checked: {elements} elements agree with the program as written; more would take too long")
        }
        Agreement::Differs { .. } => "checked: it differs".into(),
    };
    let lifted = if report.contractions.is_empty() { "nothing was lifted\n".into() } else { report.to_string() };
    Ok(format!("{lifted}{checked}\n\n{program}"))
}

/// The numbers of multiplications, as written and optimised, as formulas and as numbers where the sizes are known.
fn count(module: &Module, sizes: &[(Name, i64)]) -> String {
    let value = |name: Name| sizes.iter().find(|(n, _)| *n == name).map(|(_, size)| *size);
    let number = |formula: &Ix| match formula.as_constant() {
        Some(_) => String::new(),
        None => formula.eval(&value).map_or_else(|_| String::new(), |number| format!(" = {number}")),
    };
    let counted = |program: &Program| match program.multiplications() {
        Ok(formula) => format!("{formula}{}", number(&formula)),
        Err(error) => format!("cannot be counted: {error}"),
    };
    let how = "counted in the Core programs: one for each `*` and each factor of a product, times the ranges around it";
    let optimised = match module.optimisation() {
        Ok(None) if let Ok(Some(derived)) = module.derived() => format!("{} derived\n", counted(derived)),
        Ok(Some(optimised)) => format!("{} optimised\n", counted(&optimised.program)),
        Ok(None) => "nothing to optimise\n".into(),
        Err(failure) => format!("{failure}\n"),
    };
    format!("{} as written\n{optimised}({how})\n", counted(module.core()))
}
