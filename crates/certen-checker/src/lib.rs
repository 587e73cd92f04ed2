//! Certificates: what is claimed of a compiled program, and a small checker that takes nobody's word for it.
//!
//! A [`Certificate`] is about a program of Core, what it means, and a nest of loops, what is made into C. It claims:
//!
//! - every access of the nest is in bounds, for all sizes; the iterations of its parallel and vector loops are
//!   independent; every local has a value before it is read. [`obligations`] derives from the nest, in an order of its
//!   own, what has to be shown, and the certificate has one witness for each. Where one is missing or left over, or
//!   [`certen_index::check`] does not accept it, the certificate is rejected;
//! - nest and program give the same values in the field at sizes and inputs that [`tests`] derives from the texts. The
//!   checker runs both, the nest by an interpreter of its own, the program by the reference evaluator. Where no point is
//!   small enough there are no tests, the certificate says so, and nothing relates the nest to the program;
//! - each condition of a step of a schedule that is said to be proved has proofs, which need all of their facts. The
//!   checker does not know the steps: that these are their conditions is the word of whoever made the certificate.
//!   `certen verify --check` takes the steps again and compares.
//!
//! [`check`] needs the text of a certificate and the program that it is to be about. It shares with the compiler the
//! data types of Core and loops, their texts and the evaluator. It does not use the prover's search, the verifier of
//! loops, the lowering or the transformations. What remains trusted: this crate and those data types; that the front
//! end has made the program from the file; that a step has these conditions and that they suffice; that the nest agrees
//! with the program where it was not run; the code generator, the C compiler and the runtime.
//!
//! Everything in a certificate has one spelling, but for what stands under `about`, which is for people. So a
//! certificate that was changed in one place is rejected, even where the change would be harmless, and even if the seal,
//! a hash of all that counts, was made anew. The seal keeps no secret: whoever makes everything anew makes another
//! certificate, which is as good as its witnesses and tests.

mod certificate;
mod machine;
mod obligations;
mod points;
mod races;
mod witness;

use std::fmt;

use certen_core::{Parameter, Program};
use certen_index::{Cond, Witness};
use certen_loops::{LoopProgram, parse_loops};
use certen_syntax::{Name, Sources};

pub use certificate::{Certificate, Claim, Condition, Proof, Status, Step, seal};
pub use obligations::{Kind, Obligation, obligations};
pub use points::{Test, tests};

/// Why a certificate is rejected, or a program has none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The field of the certificate, such as `bounds[3].witness`; of a program, `nest`.
    pub at: String,
    /// What is wrong with it.
    pub why: String,
}

impl Fault {
    fn new(at: impl Into<String>, why: impl fmt::Display) -> Fault {
        Fault { at: at.into(), why: why.to_string() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.why)
    }
}

impl std::error::Error for Fault {}

/// Accepts a certificate of a program, and gives it.
///
/// # Errors
/// The first thing that does not hold.
pub fn check(text: &str, meaning: &Program) -> Result<Certificate, Fault> {
    let certificate = Certificate::read(text)?;
    if certificate.core != meaning.to_string() {
        return Err(Fault::new("core", "this is another program than the certificate's"));
    }
    let nest = read_nest(&certificate.nest)?;
    same_interface(meaning, &nest)?;
    let wanted = obligations(&nest)?;
    for (field, kind, claims) in certificate.claims() {
        let mut wanted = wanted.iter().filter(|obligation| obligation.kind == kind);
        for (at, claim) in claims.iter().enumerate() {
            let at = || format!("{field}[{at}]");
            let Some(obligation) = wanted.next() else {
                return Err(Fault::new(at(), "nothing of the nest asks for this"));
            };
            if obligation.what != claim.what {
                return Err(Fault::new(at() + ".what", format!("here it has to be shown that {}", obligation.what)));
            }
            obligation.accept(&claim.witness).map_err(|why| Fault::new(at() + ".witness", why))?;
        }
        if let Some(left) = wanted.next() {
            return Err(Fault::new(field, format!("it is not shown that {}", left.what)));
        }
    }
    for (step, taken) in certificate.steps.iter().enumerate() {
        for (condition, claim) in taken.conditions.iter().enumerate() {
            for (proof, shown) in claim.proofs.iter().enumerate() {
                let at = format!("steps[{step}].conditions[{condition}].proofs[{proof}]");
                shown.accept().map_err(|why| Fault::new(at, why))?;
            }
        }
    }
    let seed = certificate.seed();
    let replayed = tests(meaning, &nest, seed)?;
    if replayed.len() != certificate.tests.len() {
        return Err(Fault::new("tests", format!("there have to be {} of them", replayed.len())));
    }
    for (at, (replayed, test)) in replayed.iter().zip(&certificate.tests).enumerate() {
        if replayed != test {
            return Err(Fault::new(format!("tests[{at}]"), format!("a run gives {}", replayed.json())));
        }
    }
    Ok(certificate)
}

/// The nest, from the one text that it has.
///
/// # Errors
/// If this is not the text of a nest.
pub fn read_nest(text: &str) -> Result<LoopProgram, Fault> {
    let mut sources = Sources::new();
    let file = sources.add("nest", text);
    let nest = parse_loops(&sources, file).map_err(|errors| {
        let first = errors.into_sorted().into_iter().next();
        Fault::new("nest", first.map_or("it cannot be read".into(), |error| error.message))
    })?;
    if nest.to_string() == text { Ok(nest) } else { Err(Fault::new("nest", "it is not written as nests are")) }
}

/// The nest is called as the program is.
fn same_interface(meaning: &Program, nest: &LoopProgram) -> Result<(), Fault> {
    let types = meaning.types();
    // An output that has the name of an input has another one in the nest.
    let renamed = |name| meaning.inputs.iter().any(|input| input.name == name);
    let mut outputs = nest.outputs.iter().zip(&meaning.outputs);
    let is_same = |(output, (name, shown)): (&Parameter, &(Name, Name))| {
        types.get(shown) == Some(&output.ty) && (output.name == *name || renamed(*name))
    };
    let same = nest.name == meaning.name
        && nest.sizes == meaning.sizes
        && nest.facts == meaning.facts
        && nest.inputs == meaning.inputs
        && nest.outputs.len() == meaning.outputs.len()
        && outputs.all(is_same);
    if same { Ok(()) } else { Err(Fault::new("nest", "its sizes, inputs or outputs are not those of the program")) }
}

impl Obligation {
    /// Accepts a witness: of the goal, or that nothing satisfies the facts, so that nobody ever comes by.
    fn accept(&self, witness: &Witness) -> Result<(), certen_index::Rejected> {
        certen_index::check(&self.facts, &self.goal, witness)
            .or_else(|rejected| certen_index::check(&self.facts, &Cond::never(), witness).map_err(|_| rejected))
    }
}

impl Proof {
    /// Accepts a proof in which nothing is superfluous.
    fn accept(&self) -> Result<(), String> {
        certen_index::check(&self.facts, &self.goal, &self.witness).map_err(|why| why.to_string())?;
        let used = witness::hypotheses(&self.witness);
        match (0..self.facts.len()).find(|fact| !used.contains(fact)) {
            Some(fact) => Err(format!("nothing rests on the fact {}", self.facts[fact])),
            None => Ok(()),
        }
    }
}
