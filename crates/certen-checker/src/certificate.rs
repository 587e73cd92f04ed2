//! Certificates as data and as JSON.
//!
//! ```text
//! { "certificate": 1,
//!   "core": the program, as text,        "nest": the loops, as text,
//!   "bounds": [claim…], "races": [claim…], "values": [claim…],     claim = { "what": sentence, "witness": […] }
//!   "schedule": "none" | "proved" | "tested",
//!   "steps": [{ "step": text, "conditions": [{ "what": sentence, "status": "proved" | "seen" | "open" | "fails",
//!               "proofs": [{ "facts": [condition…], "goal": condition, "witness": […] }] }] }],
//!   "seed": 16 hexadecimal digits,
//!   "tested": whether there are any tests,
//!   "tests": [{ "inputs": "field" | "small", "sizes": { name: number, … }, "elements": number, "digest": … }],
//!   "seal": 64 hexadecimal digits,
//!   "about": anything }
//! ```
//!
//! A schedule is proved if every condition of every step is. The seed is a hash of core, nest and steps, but for the
//! witnesses; inputs of tests come from it. The seal is a hash of all that stands before it. A certificate has one
//! text, but for spaces and line breaks between its parts: fields in this order, no other fields, no other spelling of
//! numbers and texts.

use certen_index::{Cond, Witness};
use certen_syntax::Name;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::json::{list, object, quoted};
use crate::obligations::Kind;
use crate::points::Test;
use crate::rejection::Rejection;
use crate::witness;

/// What is claimed of a compiled program, and why.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The program, which says what is meant.
    pub core: String,
    /// The loops that it was made into.
    pub nest: String,
    /// That accesses are in bounds.
    pub bounds: Vec<Claim>,
    /// That iterations are independent.
    pub races: Vec<Claim>,
    /// That locals and outputs have values.
    pub values: Vec<Claim>,
    /// The schedule that was applied.
    pub steps: Vec<Step>,
    /// Where program and loops were run side by side.
    pub tests: Vec<Test>,
    /// For people; nothing rests on it.
    pub about: Value,
}

/// An obligation that is met.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The obligation's sentence.
    pub what: String,
    /// Why it holds.
    pub witness: Witness,
}

/// A step of a schedule.
#[derive(Clone, Debug)]
pub struct Step {
    /// As it was written.
    pub step: String,
    /// What has to hold for it to keep the meaning.
    pub conditions: Vec<Condition>,
}

/// A condition of a step.
#[derive(Clone, Debug)]
pub struct Condition {
    /// A sentence.
    pub what: String,
    /// Whether it holds.
    pub status: Status,
    /// Why it holds, if it is proved.
    pub proofs: Vec<Proof>,
}

/// What is known of a condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// It holds for all sizes: there are proofs.
    Proved,
    /// It holds because there is nothing that could go wrong, says the maker of the certificate: no two accesses to
    /// compare. The checker does not know the steps, and takes the word for it.
    Seen,
    /// It is not known to hold or not to hold.
    Open,
    /// It does not hold; that the step keeps the meaning all the same is only tested.
    Fails,
}

impl Status {
    /// As it stands in a certificate.
    pub fn word(self) -> &'static str {
        match self {
            Status::Proved => "proved",
            Status::Seen => "seen",
            Status::Open => "open",
            Status::Fails => "fails",
        }
    }
}

/// A proof that needs all of its facts.
#[derive(Clone, Debug)]
pub struct Proof {
    /// What is known.
    pub facts: Vec<Cond>,
    /// What follows.
    pub goal: Cond,
    /// Why.
    pub witness: Witness,
}

impl Certificate {
    /// The claims by field.
    pub fn claims(&self) -> [(&'static str, Kind, &[Claim]); 3] {
        [
            ("bounds", Kind::Bounds, &self.bounds),
            ("races", Kind::Races, &self.races),
            ("values", Kind::Values, &self.values),
        ]
    }

    /// Whether every condition of every step holds for all sizes.
    pub fn is_proved(&self) -> bool {
        let mut conditions = self.steps.iter().flat_map(|step| &step.conditions);
        conditions.all(|condition| matches!(condition.status, Status::Proved | Status::Seen))
    }

    /// What is known of the schedule, in a word.
    fn schedule(&self) -> &'static str {
        match (self.steps.is_empty(), self.is_proved()) {
            (true, _) => "none",
            (false, true) => "proved",
            (false, false) => "tested",
        }
    }

    /// What the inputs of tests come from.
    pub fn seed(&self) -> u64 {
        let steps = list(self.steps.iter().map(|step| step.json(false)));
        let text = list([quoted(&self.core), quoted(&self.nest), steps]);
        Sha256::digest(text).iter().take(8).fold(0, |seed, byte| seed << 8 | u64::from(*byte))
    }

    /// As text for a file: JSON with one claim, step or test on a line.
    pub fn text(&self) -> String {
        let fields = self.fields(self.seed());
        let lines = fields.iter().map(|(name, value)| {
            let value = match value {
                Written::List(items) if !items.is_empty() => format!("[\n  {}\n]", items.join(",\n  ")),
                other => other.compact(),
            };
            format!("{}: {value}", quoted(name))
        });
        format!("{{\n{}\n}}\n", lines.collect::<Vec<_>>().join(",\n"))
    }

    /// The same as data.
    pub fn json(&self) -> Value {
        // The text is JSON, however it came about.
        serde_json::from_str(&self.text()).unwrap_or_default()
    }

    /// All fields in order, with the seal.
    fn fields(&self, seed: u64) -> Vec<(&'static str, Written)> {
        let one = |text: &str| Written::One(quoted(text));
        let mut fields =
            vec![("certificate", Written::One("1".into())), ("core", one(&self.core)), ("nest", one(&self.nest))];
        for (field, _, claims) in self.claims() {
            fields.push((field, Written::List(claims.iter().map(Claim::json).collect())));
        }
        fields.push(("schedule", one(self.schedule())));
        fields.push(("steps", Written::List(self.steps.iter().map(|step| step.json(true)).collect())));
        fields.push(("seed", one(&format!("{seed:016x}"))));
        fields.push(("tested", Written::One((!self.tests.is_empty()).to_string())));
        fields.push(("tests", Written::List(self.tests.iter().map(Test::json).collect())));
        fields.push(("seal", one(&hash(&compact(&fields)))));
        fields.push(("about", Written::One(self.about.to_string())));
        fields
    }

    /// Reads a certificate. What it claims is not checked, except that it is written in the one way.
    ///
    /// # Errors
    /// If it is not.
    pub fn read(text: &str) -> Result<Certificate, Rejection> {
        Certificate::read_with_seed(text).map(|(certificate, _)| certificate)
    }

    /// The same, with its [`seed`](Certificate::seed).
    pub(crate) fn read_with_seed(text: &str) -> Result<(Certificate, u64), Rejection> {
        let json: Value = serde_json::from_str(text).map_err(|error| Rejection::new("certificate", error))?;
        let whole = Field { at: String::new(), value: &json };
        let claim = |field: &Field| -> Result<Claim, Rejection> {
            Ok(Claim { what: field.get("what")?.text()?, witness: field.get("witness")?.witness()? })
        };
        if whole.get("certificate")?.value.as_u64() != Some(1) {
            return Err(Rejection::new("certificate", "this version of Certen knows certificates of the first kind"));
        }
        let certificate = Certificate {
            core: whole.get("core")?.text()?,
            nest: whole.get("nest")?.text()?,
            bounds: whole.get("bounds")?.each(claim)?,
            races: whole.get("races")?.each(claim)?,
            values: whole.get("values")?.each(claim)?,
            steps: whole.get("steps")?.each(Step::read)?,
            tests: whole.get("tests")?.each(read_test)?,
            about: whole.get("about")?.value.clone(),
        };
        let seed = certificate.seed();
        let written = compact(&certificate.fields(seed));
        if without_space(text) == written {
            return Ok((certificate, seed));
        }
        same(&json, &serde_json::from_str(&written).map_err(|error| Rejection::new("certificate", error))?, "")?;
        // What one value cannot show: a field that stands there twice.
        Err(Rejection::new("certificate", "it is not written as certificates are"))
    }
}

/// A hash of all fields of a certificate that count: those before `seal`.
pub fn seal(certificate: &Map<String, Value>) -> String {
    let counts = certificate.iter().filter(|(name, _)| !matches!(name.as_str(), "seal" | "about"));
    hash(&object(counts.map(|(name, value)| (name.as_str(), value.to_string()))))
}

fn hash(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The value of a field, as JSON.
enum Written {
    One(String),
    List(Vec<String>),
}

impl Written {
    fn compact(&self) -> String {
        match self {
            Written::One(text) => text.clone(),
            Written::List(items) => format!("[{}]", items.join(",")),
        }
    }
}

fn compact(fields: &[(&'static str, Written)]) -> String {
    object(fields.iter().map(|(name, value)| (*name, value.compact())))
}

impl Claim {
    fn json(&self) -> String {
        object([("what", quoted(&self.what)), ("witness", witness::write(&self.witness))])
    }
}

impl Proof {
    fn json(&self, with_witness: bool) -> String {
        let facts = list(self.facts.iter().map(|fact| quoted(&fact.to_string())));
        let witness = with_witness.then(|| ("witness", witness::write(&self.witness)));
        object([("facts", facts), ("goal", quoted(&self.goal.to_string()))].into_iter().chain(witness))
    }
}

impl Condition {
    fn json(&self, with_witnesses: bool) -> String {
        let proofs = list(self.proofs.iter().map(|proof| proof.json(with_witnesses)));
        object([("what", quoted(&self.what)), ("status", quoted(self.status.word())), ("proofs", proofs)])
    }
}

impl Step {
    fn json(&self, with_witnesses: bool) -> String {
        let conditions = list(self.conditions.iter().map(|condition| condition.json(with_witnesses)));
        object([("step", quoted(&self.step)), ("conditions", conditions)])
    }

    fn read(field: &Field) -> Result<Step, Rejection> {
        let cond = |field: &Field| witness::cond(&field.text()?).map_err(|why| field.wrong(why));
        let proof = |field: &Field| -> Result<Proof, Rejection> {
            let facts = field.get("facts")?.each(cond)?;
            Ok(Proof { facts, goal: cond(&field.get("goal")?)?, witness: field.get("witness")?.witness()? })
        };
        let condition = |field: &Field| -> Result<Condition, Rejection> {
            let status = field.get("status")?;
            let word = status.text()?;
            let all = [Status::Proved, Status::Seen, Status::Open, Status::Fails];
            let proofs = field.get("proofs")?.each(proof)?;
            let status = all.into_iter().find(|known| known.word() == word);
            let status = status.filter(|status| (*status == Status::Proved) != proofs.is_empty());
            let status =
                status.ok_or_else(|| field.wrong("there are proofs of what is proved, and of nothing else"))?;
            Ok(Condition { what: field.get("what")?.text()?, status, proofs })
        };
        Ok(Step { step: field.get("step")?.text()?, conditions: field.get("conditions")?.each(condition)? })
    }
}

fn read_test(field: &Field) -> Result<Test, Rejection> {
    let sizes = field.get("sizes")?;
    let sizes =
        sizes.value.as_object().ok_or_else(|| sizes.wrong("sizes with their values"))?.iter().map(|(name, value)| {
            let value = value.as_i64().ok_or_else(|| field.wrong(format!("the size {name} is no 64-bit integer")))?;
            Ok((Name::new(name), value))
        });
    let elements = field.get("elements")?;
    Ok(Test {
        small: field.get("inputs")?.text()? == "small",
        sizes: sizes.collect::<Result<_, Rejection>>()?,
        elements: elements.value.as_u64().ok_or_else(|| elements.wrong("this is no number of elements"))?,
        digest: field.get("digest")?.text()?,
    })
}

/// A part of a certificate, and where it stands.
struct Field<'a> {
    at: String,
    value: &'a Value,
}

impl<'a> Field<'a> {
    fn wrong(&self, why: impl std::fmt::Display) -> Rejection {
        Rejection::new(if self.at.is_empty() { "certificate" } else { &self.at }, why)
    }

    fn get(&self, name: &str) -> Result<Field<'a>, Rejection> {
        let at = if self.at.is_empty() { name.into() } else { format!("{}.{name}", self.at) };
        match self.value.get(name) {
            Some(value) => Ok(Field { at, value }),
            None => Err(Rejection::new(at, "this is missing")),
        }
    }

    fn text(&self) -> Result<String, Rejection> {
        self.value.as_str().map(str::to_owned).ok_or_else(|| self.wrong("this is no text"))
    }

    fn witness(&self) -> Result<Witness, Rejection> {
        witness::read(self.value).map_err(|why| self.wrong(why))
    }

    fn each<T>(&self, read: impl Fn(&Field<'a>) -> Result<T, Rejection>) -> Result<Vec<T>, Rejection> {
        let list = self.value.as_array().ok_or_else(|| self.wrong("this is no list"))?;
        list.iter().enumerate().map(|(at, value)| read(&Field { at: format!("{}[{at}]", self.at), value })).collect()
    }
}

/// What was read is what would be written; else the field where it is not.
fn same(read: &Value, written: &Value, at: &str) -> Result<(), Rejection> {
    if read == written {
        return Ok(());
    }
    let other = || Rejection::new(if at.is_empty() { "certificate" } else { at }, format!("this should be {written}"));
    match (read, written) {
        (Value::Object(read), Value::Object(written)) => {
            for (name, value) in written {
                let at = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
                match read.get(name) {
                    Some(found) => same(found, value, &at)?,
                    None => return Err(Rejection::new(at, "this is missing")),
                }
            }
            let unknown = read.keys().find(|name| !written.contains_key(*name));
            Err(unknown
                .map_or_else(other, |name| Rejection::new(name.as_str(), "certificates have no such field here")))
        }
        (Value::Array(read), Value::Array(written)) if read.len() == written.len() => {
            let mut parts = read.iter().zip(written).enumerate();
            parts.try_for_each(|(nth, (read, written))| same(read, written, &format!("{at}[{nth}]")))
        }
        _ => Err(other()),
    }
}

/// A JSON text without spaces and line breaks between its parts.
fn without_space(text: &str) -> String {
    let (mut kept, mut quoted, mut escaped) = (String::with_capacity(text.len()), false, false);
    for c in text.chars() {
        if !quoted && matches!(c, ' ' | '\n' | '\r' | '\t') {
            continue;
        }
        kept.push(c);
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            _ => {}
        }
    }
    kept
}
