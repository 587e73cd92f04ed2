//! Every rewrite is an equation: on generated instances whose side conditions hold, both sides have the same shape
//! and the same elements; and every side condition is needed, which an instance shows that violates only this one.
//!
//! `CERTEN_CASES` says how many instances of each rewrite are tried.

mod engine;
mod instance;
mod meaning;
mod template;

use std::sync::atomic::{AtomicU64, Ordering};

use certen_core::Program;
use certen_derive::{Derived, Law, Refused, Rewrite, rewrites};
use certen_index::Status;
use certen_syntax::{Code, Diagnostic};

use instance::{Rng, instance};
use template::Instance;

fn cases() -> u64 {
    std::env::var("CERTEN_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(40)
}

/// An instance whose left side is well-typed.
struct Tried {
    instance: Instance,
    left: Program,
    right: Result<Program, String>,
    /// Which side conditions hold.
    held: Vec<bool>,
}

/// What has to occur at least once is looked for so long.
fn many() -> u64 {
    cases().max(500)
}

fn instances(rewrite: &Rewrite, count: u64) -> impl Iterator<Item = Tried> {
    let seed = rewrite.name.bytes().fold(5u64, |hash, byte| hash.wrapping_mul(131).wrapping_add(byte.into()));
    (0..count).filter_map(move |case| {
        let mut rng = Rng::new(seed ^ (case << 40));
        // Chance makes many terms that are ill-typed.
        (0..60).find_map(|_| {
            let instance = instance(rewrite, &mut rng);
            let left = meaning::program(&instance.fill(rewrite.left), instance.elem).ok()?;
            let right = meaning::program(&instance.fill(rewrite.right), instance.elem);
            let held = rewrite.conditions.iter().map(|condition| meaning::holds(condition, &instance, false)).collect();
            Some(Tried { instance, left, right, held })
        })
    })
}

/// Tests every rewrite, and says what is wrong with each.
fn for_each_rewrite(test: impl Fn(&Rewrite) -> Result<(), String>) {
    let wrong: Vec<String> = rewrites()
        .iter()
        .filter_map(|rewrite| test(rewrite).err().map(|error| format!("{}: {error}", rewrite.name)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn both_sides_are_equal_where_the_conditions_hold() {
    for_each_rewrite(|rewrite| {
        let mut good = 0;
        for Tried { instance, left, right, held } in instances(rewrite, cases()) {
            if held.contains(&false) {
                continue;
            }
            good += 1;
            let right = match right {
                Ok(right) => right,
                // There is no such type.
                Err(error) if error.contains("depends on the index") => continue,
                Err(error) => return Err(format!("{error}\n{left}")),
            };
            if let Some(how) = meaning::difference(&left, &right, instance.elem, rewrite.law) {
                return Err(format!("{how}\n{left}\n{right}"));
            }
        }
        if good * 5 >= cases() { Ok(()) } else { Err(format!("{good} of {} instances meet the conditions", cases())) }
    });
}

#[test]
fn every_condition_is_needed() {
    for_each_rewrite(|rewrite| {
        for (number, condition) in rewrite.conditions.iter().enumerate() {
            let alone = |tried: &Tried| tried.held.iter().enumerate().all(|(at, held)| *held == (at != number));
            let shown = instances(rewrite, many()).filter(alone).any(|tried| match &tried.right {
                Err(_) => true,
                Ok(right) => meaning::difference(&tried.left, right, tried.instance.elem, rewrite.law).is_some(),
            });
            if !shown {
                return Err(format!("no instance shows that `{condition}` is needed"));
            }
        }
        Ok(())
    });
}

/// What is said to need the laws of a ring does: there are floats for which the sides differ in a bit.
#[test]
fn a_ring_is_needed_where_it_is_said_to_be() {
    for_each_rewrite(|rewrite| {
        let differs = |tried: Tried| match (tried.right, tried.instance.elem.starts_with('f')) {
            (Ok(right), true) if !tried.held.contains(&false) => {
                meaning::difference(&tried.left, &right, tried.instance.elem, Law::Exact).is_some()
            }
            _ => false,
        };
        match rewrite.law {
            Law::Ring if !instances(rewrite, many()).any(differs) => Err("every bit is kept".into()),
            _ => Ok(()),
        }
    });
}

/// What the engine made of instances of one rewrite.
#[derive(Default, Debug)]
struct Counts {
    taken: u64,
    alike: u64,
    proved: u64,
    refused: u64,
}

impl Counts {
    /// One instance in one direction: where the conditions hold the engine gives the other side, where they do not it
    /// never says that it has proved them.
    fn look(&mut self, from: &Program, to: &Program, elem: &str, step: &str, held: bool) -> Result<(), String> {
        let is_proved = |derived: &Derived| {
            derived
                .taken
                .iter()
                .flat_map(|taken| &taken.conditions)
                .all(|condition| matches!(condition.status, Status::Proved(_)))
        };
        let found: Result<Derived, Box<Refused>> = engine::take(from, step);
        if !held {
            return match found {
                Ok(derived) if is_proved(&derived) => Err(format!("{step} is proved, but wrong\n{from}\n{to}")),
                Ok(_) => Ok(()),
                Err(_) => {
                    self.refused += 1;
                    Ok(())
                }
            };
        }
        let derived = match found {
            Ok(derived) => derived,
            // The prover knows larger sizes.
            Err(refused) if refused.diagnostic.code == Code::E0904 || is_nothing(&refused) => return Ok(()),
            Err(refused) => {
                let Diagnostic { message, notes, .. } = &refused.diagnostic;
                return Err(format!("{step}: {message}\n{notes:?}\n{from}\n{to}"));
            }
        };
        self.taken += 1;
        self.proved += u64::from(is_proved(&derived));
        if engine::canonical(&derived.program) == engine::canonical(to) {
            self.alike += 1;
            return Ok(());
        }
        // It may be simpler than the text.
        match meaning::difference(&derived.program, to, elem, Law::Exact) {
            None => Ok(()),
            Some(how) => Err(format!("{step}: {how}\n{from}\n{}\n{to}", derived.program)),
        }
    }
}

/// Whether a step was refused because there is nothing to do: a guard to be split has one part, a term to be named
/// does not occur.
fn is_nothing(refused: &Refused) -> bool {
    let said = ["it would change nothing", "does not occur in this place"];
    refused.diagnostic.notes.iter().any(|note| said.iter().any(|said| note.contains(said)))
}

/// `bind` is not taken backwards: `inline` is its way back.
const ONE_WAY: [&str; 1] = ["bind"];

/// `simplify` says of no term what it becomes, so that its two sides are alike; it has a test of its own.
const NO_EQUATION: [&str; 1] = ["simplify"];

/// In each direction the engine takes enough of the instances, and refuses some whose conditions are violated.
#[test]
fn the_engine_does_what_the_texts_say() {
    for_each_rewrite(|rewrite| {
        if NO_EQUATION.contains(&rewrite.name) {
            return Ok(());
        }
        let ways = if ONE_WAY.contains(&rewrite.name) { 1 } else { 2 };
        let mut counts = [Counts::default(), Counts::default()];
        let is_refused = |counts: &[Counts]| counts[..ways].iter().all(|counts| counts.refused > 0);
        for (case, Tried { instance, .. }) in (0..).zip(instances(rewrite, many())) {
            if case >= cases() && (rewrite.conditions.is_empty() || is_refused(&counts)) {
                break;
            }
            let held = rewrite.conditions.iter().all(|condition| meaning::holds(condition, &instance, true));
            let side = |text: &str| engine::whole(&instance.fill(text), instance.elem).ok();
            let (Some(left), Some(right)) = (side(rewrite.left), side(rewrite.right)) else { continue };
            if engine::canonical(&left) == engine::canonical(&right) {
                continue;
            }
            let [forwards, backwards] = &mut counts;
            forwards.look(&left, &right, instance.elem, &engine::step(rewrite, &instance, false), held)?;
            if ways == 2 {
                backwards.look(&right, &left, instance.elem, &engine::step(rewrite, &instance, true), held)?;
            }
        }
        // Terms that are simpler than the text, and what the prover does not know, are few. Backwards there may be
        // several functions that give a term, and several ways to split a guard.
        for (Counts { taken, alike, proved, .. }, least) in counts[..ways].iter().zip([3, 1]) {
            if taken * 4 < cases() || alike * 4 < taken * least || proved * 10 < taken * 9 {
                return Err(format!("of {} instances: {counts:?}", cases()));
            }
        }
        if !rewrite.conditions.is_empty() && !is_refused(&counts) {
            return Err(format!("no instance was refused: {counts:?}"));
        }
        Ok(())
    });
}

/// `simplify` says of no term what it becomes; on both sides of all other rewrites it keeps the meaning.
#[test]
fn simplifying_keeps_the_meaning() {
    let simplified = AtomicU64::new(0);
    for_each_rewrite(|rewrite| {
        for Tried { instance, .. } in
            instances(rewrite, cases()).filter(|tried| !tried.held.contains(&false)).step_by(4)
        {
            for text in [rewrite.left, rewrite.right] {
                let Ok(program) = engine::whole(&instance.fill(text), instance.elem) else { continue };
                let Ok(derived) = engine::take(&program, "simplify at result;") else { continue };
                simplified.fetch_add(1, Ordering::Relaxed);
                if let Some(how) = meaning::difference(&program, &derived.program, instance.elem, Law::Exact) {
                    return Err(format!("{how}\n{program}\n{}", derived.program));
                }
            }
        }
        Ok(())
    });
    let simplified = simplified.into_inner();
    assert!(simplified > 50, "{simplified} terms were simplified");
}
