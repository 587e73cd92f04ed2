//! The check of a certificate: everything that it claims, in the order of its text.

use std::collections::HashSet;

use certen_core::{Parameter, Program, Table, Term};
use certen_index::{Cond, Witness};
use certen_loops::{LoopProgram, parse_loops};
use certen_syntax::{Name, Sources};

use crate::certificate::{Certificate, Proof};
use crate::obligations::{Obligation, obligations};
use crate::points::tests;
use crate::rejection::Rejection;
use crate::witness;

/// Accepts a certificate of a program, and gives it.
///
/// # Errors
/// The first thing that does not hold.
pub fn check(text: &str, meaning: &Program) -> Result<Certificate, Rejection> {
    let (certificate, seed) = Certificate::read_with_seed(text)?;
    if certificate.core != meaning.to_string() {
        return Err(Rejection::new("core", "this is another program than the certificate's"));
    }
    let nest = read_nest(&certificate.nest)?;
    same_interface(meaning, &nest)?;
    same_tables(meaning, &nest)?;
    let wanted = obligations(&nest)?;
    for (field, kind, claims) in certificate.claims() {
        let mut wanted = wanted.iter().filter(|obligation| obligation.kind == kind);
        for (at, claim) in claims.iter().enumerate() {
            let at = || format!("{field}[{at}]");
            let Some(obligation) = wanted.next() else {
                return Err(Rejection::new(at(), "nothing of the nest asks for this"));
            };
            if obligation.what != claim.what {
                return Err(Rejection::new(
                    at() + ".what",
                    format!("here it has to be shown that {}", obligation.what),
                ));
            }
            obligation.accept(&claim.witness).map_err(|why| Rejection::new(at() + ".witness", why))?;
        }
        if let Some(left) = wanted.next() {
            return Err(Rejection::new(field, format!("it is not shown that {}", left.what)));
        }
    }
    for (step, taken) in certificate.steps.iter().enumerate() {
        for (condition, claim) in taken.conditions.iter().enumerate() {
            for (proof, shown) in claim.proofs.iter().enumerate() {
                let at = format!("steps[{step}].conditions[{condition}].proofs[{proof}]");
                shown.accept().map_err(|why| Rejection::new(at, why))?;
            }
        }
    }
    let replayed = tests(meaning, &nest, seed)?;
    if replayed.len() != certificate.tests.len() {
        return Err(Rejection::new("tests", format!("there have to be {} of them", replayed.len())));
    }
    for (at, (replayed, test)) in replayed.iter().zip(&certificate.tests).enumerate() {
        if replayed != test {
            return Err(Rejection::new(format!("tests[{at}]"), format!("a run gives {}", replayed.json())));
        }
    }
    Ok(certificate)
}

/// The nest, from the one text that it has.
///
/// # Errors
/// If this is not the text of a nest.
pub fn read_nest(text: &str) -> Result<LoopProgram, Rejection> {
    let mut sources = Sources::new();
    let file = sources.add("nest", text);
    let nest = parse_loops(&sources, file).map_err(|errors| {
        let first = errors.into_sorted().into_iter().next();
        Rejection::new("nest", first.map_or("it cannot be read".into(), |error| error.message))
    })?;
    if nest.to_string() == text { Ok(nest) } else { Err(Rejection::new("nest", "it is not written as nests are")) }
}

/// The nest is called as the program is.
fn same_interface(meaning: &Program, nest: &LoopProgram) -> Result<(), Rejection> {
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
    if same { Ok(()) } else { Err(Rejection::new("nest", "its sizes, inputs or outputs are not those of the program")) }
}

/// The nest has no tables but the program's: the tests may not reach every element of a long one.
fn same_tables(meaning: &Program, nest: &LoopProgram) -> Result<(), Rejection> {
    let tables =
        meaning.terms.iter().filter_map(|(_, term)| if let Term::Table(table) = term { Some(table) } else { None });
    let known: HashSet<&Table> = tables.collect();
    match nest.constants.iter().find(|constant| !known.contains(&constant.table)) {
        Some(other) => Err(Rejection::new("nest", format!("the program has no table like {}", other.name))),
        None => Ok(()),
    }
}

impl Obligation {
    /// Accepts a witness: of the goal, or that nothing satisfies the facts, so that the place is unreachable.
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
