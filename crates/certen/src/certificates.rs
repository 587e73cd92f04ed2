//! Certificates of programs: every obligation of the checker put to the prover, and the answers written down.
//!
//! What has to be shown comes from [`certen_checker`], which derives it again when it checks, so that there is one list
//! and nothing here has to be believed. Needs: loops that the verifier accepts. Guarantees: a certificate that is given
//! was accepted by the checker.

use std::path::Path;
use std::sync::Arc;

use certen_checker::{
    Certificate, Claim, Condition, Kind, Obligation, Proof, Rejection, Status, Step, obligations, read_nest, tests,
};
use certen_index::{Cond, Decision, Facts, Witness};
use certen_syntax::{Code, Diagnostic, Name};
use serde_json::json;

use crate::check::checked;
use crate::failure::Failure;
use crate::front::Accepted;
use crate::interface::Interface;
use crate::options::Options;
use crate::pipeline::Module;
use crate::ten::TenFile;
use crate::texts::{Dialect, Imports, read_program};

/// What a certificate does not show, for people.
pub const TRUSTED: [&str; 5] = [
    "the front end: that the program in Core is what the file says",
    "the lowering and every step of a derivation or schedule that is only tested: that the loops agree with the program at \
     sizes and inputs that were not tested",
    "the conditions of each step of a derivation or schedule that is proved: that these are all, and that they suffice",
    "the code generator, the C compiler and the runtime: that the machine code does what the loops say at sizes and inputs \
     that were not tried",
    "the checker, with the data types and texts of Core, loops and conditions, and the reference evaluator",
];

/// A function of a file, and its program; or why a call has to tell more before there is one.
pub type NamedModule = (Name, Result<Module, Failure>);

/// The programs of a file: each function of a `.ten` file, unless the options name one. A function that works for
/// several ranks or element types, or needs the values of its sizes, may have none.
///
/// # Errors
/// If the file is not accepted.
pub fn programs(path: impl AsRef<Path>, options: &Options) -> Result<Vec<NamedModule>, Failure> {
    let path = path.as_ref();
    let (name, text) = read_program(path)?;
    if Dialect::of(&name) != Some(Dialect::Ten) || options.function.is_some() {
        let module = Module::from_text(&name, text, options)?;
        return Ok(vec![(options.function.unwrap_or(module.core().name), Ok(module))]);
    }
    let file = Arc::new(TenFile::read(&name, text, &mut Imports::from_disk(&name))?);
    checked(&file, options)?;
    let mut found = Vec::new();
    for Interface { name, parameters, is_open, .. } in file.interfaces() {
        let options = Options { function: Some(name), ..options.clone() };
        match Accepted::ten(&file, &options).map(|accepted| Module::new(accepted, &options)) {
            Err(failure) if !is_open && !parameters.iter().any(|parameter| parameter.is_size) => return Err(failure),
            module => found.push((name, module)),
        }
    }
    Ok(found)
}

impl Module {
    /// Accepts a certificate of this program with its loops, its derivation and its schedule. The checker does not know the
    /// steps, so they are taken again and what is found is compared with what the certificate says.
    ///
    /// # Errors
    /// E0706, with the field that does not hold. As [`Module::loops`].
    pub fn check_certificate(&self, text: &str) -> Result<Certificate, Failure> {
        let rejected = |rejection: Rejection| self.refuse(does_not_hold(&rejection));
        let certificate = certen_checker::check(text, self.core()).map_err(rejected)?;
        let other = |at: &str| Rejection {
            at: at.into(),
            why: "it was made with another schedule or version of Certen".into(),
        };
        if certificate.nest != self.loops()?.to_string() {
            return Err(rejected(other("nest")));
        }
        let steps = self.certified_steps()?;
        if steps.len() != certificate.steps.len() {
            return Err(rejected(other("steps")));
        }
        let known = |step: &Step| -> Vec<(String, Status)> {
            step.conditions.iter().map(|condition| (condition.what.clone(), condition.status)).collect()
        };
        for (at, (own, said)) in steps.iter().zip(&certificate.steps).enumerate() {
            if own.step != said.step {
                return Err(rejected(other(&format!("steps[{at}].step"))));
            }
            if known(own) != known(said) {
                return Err(rejected(other(&format!("steps[{at}].conditions"))));
            }
        }
        Ok(certificate)
    }

    /// What is known of the steps of its derivation, then of its schedule.
    fn certified_steps(&self) -> Result<Vec<Step>, Failure> {
        let mut steps: Vec<Step> =
            self.accepted.begin.taken().into_iter().map(|(step, found)| certified(step, &found)).collect();
        if let Some(scheduled) = self.scheduled()? {
            steps.extend(scheduled.taken.iter().map(|taken| certified(taken.step.to_string(), &taken.conditions)));
        }
        Ok(steps)
    }

    /// What can be shown of the program's loops, in a form that [`certen_checker::check`] accepts.
    ///
    /// # Errors
    /// If there are no loops, the verifier refuses them, or they do not compute what the program means; else it is a
    /// bug in Certen.
    pub fn certificate(&self) -> Result<Certificate, Failure> {
        let loops = self.loops()?;
        self.verified()?;
        // Loops that were refused are not certified.
        let validation = self.validation()?;
        let rejected = |rejection: Rejection| self.refuse(does_not_hold(&rejection));
        let text = loops.to_string();
        let nest = read_nest(&text).map_err(rejected)?;
        let mut about = json!({
            "made by": concat!("certen ", env!("CARGO_PKG_VERSION")),
            "compared": validation.settings(),
            "trusted": TRUSTED,
        });
        if let Some(optimised) = self.optimisation()?.filter(|optimised| !optimised.report.is_empty()) {
            about["lifted"] = optimised.report.to_string().lines().map(str::trim).collect();
        }
        let mut certificate = Certificate {
            core: self.core().to_string(),
            nest: text,
            bounds: Vec::new(),
            races: Vec::new(),
            values: Vec::new(),
            steps: self.certified_steps()?,
            tests: Vec::new(),
            about,
        };
        let mut prover = Prover::default();
        for obligation in obligations(&nest).map_err(rejected)? {
            let Some(witness) = prover.witness(&obligation) else {
                let text = format!("it is not shown that {}", obligation.what);
                return Err(self.refuse(Diagnostic::error(Code::E0702, None, text)));
            };
            let claims = match obligation.kind {
                Kind::Bounds => &mut certificate.bounds,
                Kind::Races => &mut certificate.races,
                Kind::Values => &mut certificate.values,
            };
            claims.push(Claim { what: obligation.what, witness });
        }
        certificate.tests = tests(self.core(), &nest, certificate.seed()).map_err(rejected)?;
        certen_checker::check(&certificate.text(), self.core()).map_err(rejected)
    }
}

/// The error of a certificate that is rejected.
fn does_not_hold(rejection: &Rejection) -> Diagnostic {
    let error = Diagnostic::error(Code::E0706, None, format!("the certificate does not hold: {}", rejection.why));
    error.note(format!("in its field {}", rejection.at))
}

/// What is known of a step.
fn certified(step: String, conditions: &[certen_schedule::Condition]) -> Step {
    // Of the facts of a proof, those that it rests on.
    let proof = |proof: &certen_schedule::Proof| {
        let (facts, witness) = proof.witness.with_used_facts(&proof.facts);
        Proof { facts, goal: proof.goal.clone(), witness }
    };
    let condition = |condition: &certen_schedule::Condition| {
        let (status, proofs) = match &condition.status {
            certen_schedule::Status::Proved(proofs) if proofs.is_empty() => (Status::Seen, Vec::new()),
            certen_schedule::Status::Proved(proofs) => (Status::Proved, proofs.iter().map(proof).collect()),
            certen_schedule::Status::Open => (Status::Open, Vec::new()),
            certen_schedule::Status::Fails(_) => (Status::Fails, Vec::new()),
        };
        Condition { what: condition.what.clone(), status, proofs }
    };
    Step { step, conditions: conditions.iter().map(condition).collect() }
}

/// Facts are put together once for all obligations of a block.
#[derive(Default)]
struct Prover {
    facts: Arc<[Cond]>,
    known: Facts,
}

impl Prover {
    fn witness(&mut self, obligation: &Obligation) -> Option<Witness> {
        if !Arc::ptr_eq(&self.facts, &obligation.facts) {
            self.facts = obligation.facts.clone();
            self.known = Facts::new();
            self.facts.iter().for_each(|fact| self.known.assume(fact.clone()));
        }
        // In unreachable code, everything holds.
        [&obligation.goal, &Cond::never()].into_iter().find_map(|goal| match self.known.decide(goal) {
            Decision::Proved(witness) => Some(witness),
            _ => None,
        })
    }
}
