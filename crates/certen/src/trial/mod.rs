//! The trial: machine code run once, beside the loops that it was made from.
//!
//! Loops are compared with the meaning before code is made of them ([`crate::Module::validation`]); what the code generator
//! and the C compiler make of the loops is tried here. The loops fix every operation and its order, so that all bits have
//! to be equal (`beside.rs`), on two sets of inputs (`given.rs`):
//!
//! - Code for all sizes: every element, at small sizes that reach each part of vector loops, and where threads share
//!   loops (`points.rs`).
//! - Code for given sizes: every element, as long as [`BUDGET`] lasts. Beyond, single elements are compared with the
//!   meaning (`elements.rs`), and the same loops are compiled with smaller numbers and tried in every element
//!   (`smaller.rs`).
//!
//! Steps are counted, never timed, so that the same is tried everywhere. What was found is noted beside the kernel's entry in
//! the cache, for these loops and this meaning, so that it happens once; a kernel that fails is refused, and nothing is
//! noted.

pub(crate) mod beside;
mod elements;
pub(crate) mod given;
mod points;
mod smaller;

use std::fmt;

use certen_core::Program;
use certen_loops::{Cost, LoopProgram};
use certen_runtime::NativeKernel;
use certen_syntax::{Code, Diagnostic, Name};
use certen_validate::{Reached, cover};
use serde_json::{Value, json};

use beside::{Beside, WrongBits};
use given::{Set, TrialInputs};
use points::{Point, divides, points};
pub use smaller::Build;
use smaller::{Smaller, is_beyond};

/// Steps of the loop interpreter that a trial may take: about 50 ms (it makes 50 to 90 million in a second). Code for all sizes
/// is tried at sizes with a vector and a remainder even if that takes more, up to four times as many.
pub const BUDGET: u64 = 2_500_000;

/// Steps of a run that matters more than time.
const ESSENTIAL: u64 = 4 * BUDGET;

/// What a run takes besides its steps: names are resolved, arrays are made, the kernel is called.
const OVERHEAD: u64 = 1_000;

/// Changes whenever less was compared before: what is noted by an older version does not count.
const VERSION: u32 = 3;

/// Runs of machine code in which every element was compared with the loops, bit by bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Runs {
    /// Combinations of sizes.
    pub sizes: u64,
    /// Elements, in all runs.
    pub elements: u64,
    /// How many of the runs had loops that threads share.
    pub divided: u64,
}

/// What a trial has found: no difference.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Trial {
    /// The code itself, in every element.
    pub whole: Runs,
    /// The same loops with smaller numbers, in every element.
    pub smaller: Runs,
    /// Single elements of large outputs that have the bits that the program means.
    pub exact: u64,
    /// Single elements that are within the bound of any order of summation.
    pub bounded: u64,
    /// Steps of the loop interpreter.
    pub steps: u64,
    /// Whether this was found before, for the same code.
    pub before: bool,
    /// What was not compared, and why.
    pub left_out: Vec<String>,
}

impl Trial {
    /// How many elements were compared.
    pub fn elements(&self) -> u64 {
        self.whole.elements + self.smaller.elements + self.exact + self.bounded
    }

    /// For programs that read it.
    pub fn json(&self) -> Value {
        let runs = |runs: &Runs| json!({"sizes": runs.sizes, "elements": runs.elements, "divided": runs.divided});
        json!({
            "whole": runs(&self.whole),
            "smaller": runs(&self.smaller),
            "exact": self.exact,
            "bounded": self.bounded,
            "steps": self.steps,
            "left_out": self.left_out,
        })
    }

    fn from_json(json: &Value) -> Option<Trial> {
        let runs = |runs: &Value| {
            let number = |field: &str| runs[field].as_u64();
            Some(Runs { sizes: number("sizes")?, elements: number("elements")?, divided: number("divided")? })
        };
        let left_out = json["left_out"].as_array()?.iter().filter_map(|why| Some(why.as_str()?.to_owned()));
        Some(Trial {
            whole: runs(&json["whole"])?,
            smaller: runs(&json["smaller"])?,
            exact: json["exact"].as_u64()?,
            bounded: json["bounded"].as_u64()?,
            steps: json["steps"].as_u64()?,
            before: true,
            left_out: left_out.collect(),
        })
    }
}

impl fmt::Display for Runs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes =
            if self.sizes == 1 { "1 choice of sizes".into() } else { format!("{} choices of sizes", self.sizes) };
        write!(f, "every element at {sizes} ({} elements", self.elements)?;
        if self.divided > 0 {
            write!(f, ", threads share loops at {}", self.divided)?;
        }
        write!(f, "), all bits equal to the loops'")
    }
}

impl fmt::Display for Trial {
    /// One line; what was left out after it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut found = Vec::new();
        if self.whole.elements > 0 {
            found.push(self.whole.to_string());
        }
        match (self.exact, self.bounded) {
            (0, 0) => {}
            (exact, 0) => found.push(format!("{exact} single elements with the bits that the program means")),
            (exact, bounded) => found.push(format!(
                "single elements beside the meaning, {exact} with equal bits, {bounded} within the bound of any order of \
                 summation"
            )),
        }
        if self.smaller.elements > 0 {
            found.push(format!("the same loops with smaller numbers: {}", self.smaller));
        }
        if found.is_empty() {
            found.push("nothing could be compared".into());
        }
        f.write_str(&found.join("; "))?;
        self.left_out.iter().try_for_each(|why| write!(f, "; left out: {why}"))
    }
}

/// Why a run ended.
enum Stopped {
    /// It takes more steps than are left.
    Steps,
    /// It cannot be made, or not be compared.
    LeftOut(String),
    /// An element differs from the loops.
    Differs(Box<WrongBits>),
    /// A single element differs from the meaning.
    Means(Box<Diagnostic>),
    /// The code breaks its contract.
    Broken(String),
}

impl Stopped {
    fn left_out(why: impl fmt::Display) -> Stopped {
        Stopped::LeftOut(why.to_string())
    }
}

/// What machine code was made from.
pub(crate) struct MachineCode<'a> {
    /// What it means.
    pub core: &'a Program,
    /// The program that the loops were lowered from: it makes the same operations.
    pub lowered: &'a Program,
    pub loops: &'a LoopProgram,
    /// How many operations a run makes, if sizes are given and that is known.
    pub operations: Option<i64>,
}

/// What was found with smaller numbers, or why nothing was compared; E0707 if something differs.
type Small = Result<Result<Trial, String>, Box<Diagnostic>>;

impl MachineCode<'_> {
    /// Whether a trial needs the same loops with smaller numbers, too.
    pub fn is_large(&self) -> bool {
        is_beyond(self.loops)
    }

    /// Compiles the same loops with smaller numbers, and compares every element.
    pub fn tried_small(&self, build: &Build<'_>) -> Small {
        let Smaller { loops, kernel, numbers } = match Smaller::of(self.loops, build) {
            Ok(smaller) => smaller,
            Err(why) => return Ok(Err(why)),
        };
        let found = every_element(Beside { loops: &loops, kernel: &kernel, given: &TrialInputs::new(self.core) });
        found.map(Ok).map_err(|error| Box::new(error.note(format!("found with smaller numbers: {numbers}"))))
    }
}

/// Runs machine code, unless it has passed before, and compares what it computes. What is found with smaller numbers comes
/// from `small`.
///
/// # Errors
/// E0707 if something differs.
pub(crate) fn tried(
    code: &MachineCode<'_>,
    kernel: &NativeKernel,
    small: impl FnOnce() -> Small,
) -> Result<Trial, Box<Diagnostic>> {
    // The same code may be made of something else.
    let head = format!("trial {VERSION} {:016x} ", hash(&[&code.loops.to_string(), &code.core.to_string()]));
    let noted = kernel.note().and_then(|note| Trial::from_json(&serde_json::from_str(note.strip_prefix(&head)?).ok()?));
    if let Some(noted) = noted {
        return Ok(noted);
    }
    let found = match code.loops.sizes.is_empty() {
        true => at_own_sizes(code, kernel, small)?,
        false => at_small_sizes(code, kernel)?,
    };
    kernel.set_note(&format!("{head}{}\n", found.json()));
    Ok(found)
}

/// FNV-1a, of texts.
fn hash(texts: &[&str]) -> u64 {
    let add = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    texts.iter().flat_map(|text| text.bytes().chain([0])).fold(0xcbf2_9ce4_8422_2325, add)
}

/// Code for all sizes: every element, at the points that matter most, then where a part of the loops was not reached.
fn at_small_sizes(code: &MachineCode<'_>, kernel: &NativeKernel) -> Result<Trial, Box<Diagnostic>> {
    let (core, loops) = (code.core, code.loops);
    let given = TrialInputs::new(core);
    let mut runs = Tried::new(Beside { loops, kernel, given: &given });
    for point in points(core, loops, BUDGET) {
        runs.at(&point)?;
    }
    let cost = Cost::of(loops);
    for wanted in runs.reached.wanted(loops) {
        let Some(row) = cover::row(core, wanted.sizes.iter().copied()) else { continue };
        if !runs.reached.has(&wanted) {
            let (cost, sizes) = (cost.at(row.iter().copied()), row.into_iter().map(|(_, size)| size).collect());
            runs.at(&Point { sizes, set: Set::Tame, cost, essential: false, divided: false })?;
        }
    }
    Ok(runs.finished())
}

/// Code for given sizes: every element, or single ones and every one with smaller numbers.
fn at_own_sizes(
    code: &MachineCode<'_>,
    kernel: &NativeKernel,
    small: impl FnOnce() -> Small,
) -> Result<Trial, Box<Diagnostic>> {
    let loops = code.loops;
    if !code.is_large() {
        return every_element(Beside { loops, kernel, given: &TrialInputs::new(code.core) });
    }
    let mut trial = Trial::default();
    match elements::compared(code, kernel, &mut trial) {
        Ok(()) => {}
        Err(Stopped::Means(error)) => return Err(error),
        Err(Stopped::Broken(why)) => return Err(Box::new(wrong(loops, &[], &Stopped::Broken(why)))),
        Err(Stopped::LeftOut(why)) => trial.left_out.push(format!("single elements, {why}")),
        Err(Stopped::Steps | Stopped::Differs(_)) => {}
    }
    match small()? {
        Ok(found) => {
            trial.smaller = found.whole;
            trial.steps += found.steps;
            trial.left_out.extend(found.left_out);
        }
        Err(why) => trial.left_out.push(format!("every element, {why}")),
    }
    Ok(trial)
}

/// Every element of code for given sizes, on both sets of inputs as far as the budget goes.
fn every_element(beside: Beside<'_>) -> Result<Trial, Box<Diagnostic>> {
    let (cost, divided) = (Cost::of(beside.loops).at([]), divides(beside.loops));
    let mut runs = Tried::new(beside);
    for set in [Set::Tame, Set::Wild] {
        runs.at(&Point { sizes: Vec::new(), set, cost, essential: set == Set::Tame, divided })?;
    }
    Ok(runs.finished())
}

/// Runs in which every element is compared.
struct Tried<'a> {
    beside: Beside<'a>,
    reached: Reached,
    left: u64,
    spent: u64,
    found: Runs,
    last: Option<Vec<i64>>,
    /// Runs that would have taken too long.
    too_long: u64,
    left_out: Vec<String>,
}

impl<'a> Tried<'a> {
    fn new(beside: Beside<'a>) -> Tried<'a> {
        let reached = Reached::new(beside.loops);
        Tried {
            beside,
            reached,
            left: BUDGET,
            spent: 0,
            found: Runs::default(),
            last: None,
            too_long: 0,
            left_out: Vec::new(),
        }
    }

    fn at(&mut self, point: &Point) -> Result<(), Box<Diagnostic>> {
        let overhead = OVERHEAD + self.beside.loops.terms.len() as u64;
        let most = if point.essential { ESSENTIAL } else { self.left.saturating_sub(overhead) };
        if point.cost > most {
            self.too_long += 1;
            return Ok(());
        }
        let mut fuel = most;
        let reached = &mut self.reached;
        let found = self.beside.at(&point.sizes, point.set, &mut fuel, &mut |event| reached.note(event));
        let spent = most - fuel + overhead;
        self.left = self.left.saturating_sub(spent);
        self.spent += spent;
        match found {
            Ok(elements) => {
                self.found.elements += elements;
                if self.last.as_ref() != Some(&point.sizes) {
                    self.found.sizes += 1;
                    self.found.divided += u64::from(point.divided);
                }
                self.last = Some(point.sizes.clone());
            }
            Err(Stopped::Steps) => self.too_long += 1,
            Err(Stopped::LeftOut(why)) if self.left_out.contains(&why) => {}
            Err(Stopped::LeftOut(why)) => self.left_out.push(why),
            Err(stopped) => return Err(Box::new(wrong(self.beside.loops, &point.sizes, &stopped))),
        }
        Ok(())
    }

    fn finished(mut self) -> Trial {
        if self.too_long > 0 {
            let runs = if self.too_long == 1 { "1 run".into() } else { format!("{} runs", self.too_long) };
            self.left_out.push(format!("{runs} beyond the budget of {BUDGET} steps"));
        }
        Trial { whole: self.found, steps: self.spent, left_out: self.left_out, ..Trial::default() }
    }
}

/// The error for code that is wrong.
fn wrong(loops: &LoopProgram, sizes: &[i64], stopped: &Stopped) -> Diagnostic {
    let text = match stopped {
        Stopped::Differs(difference) => {
            let WrongBits { output, index, expected, found } = &**difference;
            let index: Vec<String> = index.iter().map(i64::to_string).collect();
            let at = if index.is_empty() { String::new() } else { format!("[{}]", index.join(", ")) };
            format!("the compiled code gives {output}{at} = {found}, but its loops give {expected}{}", of(loops, sizes))
        }
        Stopped::Broken(why) => format!("the compiled code breaks its contract{}: {why}", of(loops, sizes)),
        _ => format!("the compiled code cannot be tried{}", of(loops, sizes)),
    };
    refused(text)
}

/// An error that says what to do.
fn refused(text: String) -> Diagnostic {
    Diagnostic::error(Code::E0707, None, text)
        .note("this is a bug of Certen or of the C compiler; the code is not used")
        .help("`certen doctor` tries the C compiler; set the environment variable CC to another one")
}

fn of(loops: &LoopProgram, sizes: &[i64]) -> String {
    let one = |(name, size): (&Name, &i64)| format!("{name} = {size}");
    let all: Vec<String> = loops.sizes.iter().zip(sizes).map(one).collect();
    if all.is_empty() { String::new() } else { format!(" for {}", all.join(", ")) }
}
