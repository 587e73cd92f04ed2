//! A program at every stage of the road, as text for people.
//!
//! A [`View`] shows what a stage has made, or what is found out about it. Views are data: `certen explain --only` and its
//! help, Python's `explain` and the tests read the list.

use certen_core::Program;
use certen_figures::analysis::analysis_text;
use certen_figures::reshapes::reshapes;
use certen_index::Ix;
use certen_syntax::Name;
use certen_syntax::schedule::Step;
use certen_validate::Agreement;

use crate::failure::Failure;
use crate::optimise::Optimised;
use crate::pipeline::Module;
use crate::stage::Stage;

/// What is shown of a stage.
#[derive(Debug)]
pub struct View {
    /// What people call it.
    pub name: &'static str,
    /// What it shows.
    pub about: &'static str,
    /// The stage that it looks at.
    pub stage: Stage,
    /// The text, if the program has something to show; one that is asked for by name says that it has not.
    show: fn(&Asked<'_>) -> Result<Option<String>, Failure>,
}

/// What a view is made of.
struct Asked<'a> {
    module: &'a Module,
    /// The same with its products in the order for the sizes, if that is another one.
    ordered: Option<&'a Module>,
    sizes: &'a [(Name, i64)],
    /// Whether the view is asked for by its name.
    by_name: bool,
}

/// All views, in the order of the road.
pub static VIEWS: [View; 19] = [
    View {
        name: "written",
        about: "A `.ten` program as the checker understood it: one function for each instance",
        stage: Stage::Checked,
        show: |asked| Ok(asked.pass("written")),
    },
    View {
        name: "bounds",
        about: "… with the bounds of all indices written out",
        stage: Stage::Checked,
        show: |asked| Ok(asked.pass("bounds")),
    },
    View {
        name: "dots",
        about: "… without dots in patterns",
        stage: Stage::Checked,
        show: |asked| Ok(asked.pass("dots")),
    },
    View {
        name: "with-loops",
        about: "… with comprehensions as with-loops",
        stage: Stage::Checked,
        show: |asked| Ok(asked.pass("with-loops")),
    },
    View {
        name: "demands",
        about: "… with what each function demands of its arguments",
        stage: Stage::Checked,
        show: |asked| Ok(asked.pass("demands")),
    },
    View {
        name: "states",
        about: "The state of a TeML program after each statement: its trees",
        stage: Stage::Checked,
        show: |asked| Ok(asked.module.states().map(str::to_owned)),
    },
    View {
        name: "typed",
        about: "The typing derivation of each statement",
        stage: Stage::Checked,
        show: |asked| {
            let Some(typed) = asked.module.typed() else { return Ok(None) };
            let derivations = (0..typed.program.stmts.len()).map(|stmt| typed.derivation(stmt, DERIVATION_LINES));
            Ok(Some(derivations.collect::<Vec<_>>().join("\n")))
        },
    },
    View {
        name: "analysis",
        about: "What each statement reads, whether it is dead, can be computed in place, and shares values with others",
        stage: Stage::Checked,
        show: |Asked { module, .. }| {
            Ok(module.typed().map(|typed| analysis_text(typed, module.sources(), ANALYSED_STATEMENTS)))
        },
    },
    View {
        name: "core",
        about: "The program in Core",
        stage: Stage::Core,
        show: |asked| Ok(Some(asked.module.core().to_string())),
    },
    View {
        name: "derived",
        about: "The program in Core that its derivation ends with, which loops are made from",
        stage: Stage::Rewritten,
        show: |asked| match asked.module.derived() {
            Ok(None) => Ok(None),
            Ok(Some(derived)) => Ok(Some(derived.to_string())),
            Err(failure) => Ok(Some(format!("{failure}\n"))),
        },
    },
    View {
        name: "padding",
        about: "How much of each tensor in Core is padding: its pad type",
        stage: Stage::Core,
        show: |asked| match asked.module.padding() {
            padded if !padded.is_empty() => {
                Ok(Some(padded.iter().map(|(name, ty)| format!("{name} : {ty}\n")).collect()))
            }
            _ => Ok(asked.by_name.then(|| "nothing is padded, split, guarded or cut\n".into())),
        },
    },
    View {
        name: "reshapes",
        about: "How many constructs that move elements the program in Core has",
        stage: Stage::Core,
        // Only where it is asked for: that everything has generations says nothing.
        show: |Asked { module, by_name, .. }| match by_name {
            true => Ok(Some(format!("{}\n", reshapes(module.derived()?.unwrap_or(module.core()))))),
            false => Ok(None),
        },
    },
    View {
        name: "laws",
        about: "Which laws made the program simpler, and what it is then",
        stage: Stage::Rewritten,
        show: |asked| asked.module.typed().map(|_| asked.module.laws()).transpose(),
    },
    View {
        name: "optimised",
        about: "Which contractions were lifted, and the Core program that loops are made from",
        stage: Stage::Rewritten,
        show: |asked| or_remark(optimised(asked)),
    },
    View {
        name: "schedule",
        about: "The steps of the schedule, as they could be written in the file; of an automatic one, why these",
        stage: Stage::Planned,
        show: |Asked { module, by_name, .. }| match module.steps() {
            [] => Ok(by_name.then(|| "no steps\n".into())),
            steps => Ok(Some(schedule(module, steps)?)),
        },
    },
    View {
        name: "steps",
        about: "The program after each rewrite of a derivation, the loops after each step of the schedule, with what is known of \
                each",
        stage: Stage::Scheduled,
        show: |Asked { module, by_name, .. }| match *by_name || !module.steps().is_empty() || module.is_derived() {
            true => or_remark(module.walk().map(|walk| walk.text())),
            false => Ok(None),
        },
    },
    View {
        name: "loops",
        about: "The loops",
        stage: Stage::Parallelise,
        show: |Asked { module, by_name, .. }| match module.loops() {
            // Who asks for the loops of a schedule wants to know that there are none.
            Err(failure) if *by_name && !module.steps().is_empty() => Err(failure),
            loops => or_remark(loops.map(|loops| loops.to_string())),
        },
    },
    View {
        name: "c",
        about: "The C code",
        stage: Stage::C,
        show: |asked| or_remark(asked.module.c().map(|c| c.kernel)),
    },
    View {
        name: "count",
        about: "How many multiplications it makes",
        stage: Stage::Rewritten,
        show: |asked| Ok(Some(count(asked.ordered.unwrap_or(asked.module), asked.sizes))),
    },
];

impl View {
    /// The view of this name.
    pub fn named(name: &str) -> Option<&'static View> {
        VIEWS.iter().find(|view| view.name == name)
    }

    fn title(&self) -> &'static str {
        if self.name == "count" { "multiplications" } else { self.name }
    }
}

impl Asked<'_> {
    /// A `.ten` program after a pass of its checker.
    fn pass(&self, name: &str) -> Option<String> {
        self.module.stages().into_iter().find_map(|(found, text)| (found == name).then_some(text))
    }
}

/// What cannot be made is a remark in the text: the other stages are worth seeing.
fn or_remark(result: Result<String, Failure>) -> Result<Option<String>, Failure> {
    Ok(Some(result.unwrap_or_else(|failure| format!("{failure}\n"))))
}

/// How many lines a statement's derivation may have.
const DERIVATION_LINES: usize = 200;

/// How many statements the analyses are shown of.
pub const ANALYSED_STATEMENTS: usize = 200;

impl Module {
    /// The program in these views, or in all that say something of it: the title of each, and a text. Multiplications are
    /// counted as a formula, and as a number if the sizes are given; if all are, an automatic schedule is the one for them.
    ///
    /// # Errors
    /// As [`Module::laws`]; as [`Module::loops`], if the loops of a schedule are asked for. What cannot be lowered yet is a
    /// remark in the text, no error.
    pub fn explain(&self, only: &[&View], sizes: &[(Name, i64)]) -> Result<Vec<(&'static str, String)>, Failure> {
        let is_asked = |view: &View| only.iter().any(|wanted| wanted.name == view.name);
        let (planned, ordered) = (self.planned_at(sizes), self.ordered_at(sizes));
        let mut sections = Vec::new();
        for view in VIEWS.iter().filter(|view| only.is_empty() || is_asked(view)) {
            let module = planned.as_ref().filter(|_| view.stage >= Stage::Planned).unwrap_or(self);
            let asked = Asked { module, ordered: ordered.as_deref(), sizes, by_name: is_asked(view) };
            sections.extend((view.show)(&asked)?.map(|text| (view.title(), text)));
        }
        Ok(sections)
    }
}

/// The steps, one to a line; an automatic schedule nest by nest.
fn schedule(module: &Module, steps: &[Step]) -> Result<String, Failure> {
    if !module.is_automatic() {
        return Ok(steps.iter().map(|step| format!("{step};\n")).collect());
    }
    let (plans, _) = module.planned()?;
    Ok(plans.iter().map(|plan| format!("// {}\n{}", plan.why, plan.steps)).collect::<Vec<_>>().join("\n"))
}

/// What was lifted, how it compares with the program as written, and the program that loops are made from.
fn optimised(asked: &Asked<'_>) -> Result<String, Failure> {
    let module = asked.ordered.unwrap_or(asked.module);
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
    let lifted = if report.is_empty() { "nothing was lifted\n".into() } else { report.to_string() };
    let sizes = if asked.ordered.is_some() { "the order of products is the best one for these sizes\n" } else { "" };
    Ok(format!("{lifted}{sizes}{checked}\n\n{program}"))
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
