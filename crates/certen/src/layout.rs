//! The passes between the schedule and the verifier: memory, vectors, threads.
//!
//! A schedule says which loops of the nests that it touches threads share, and in which order they run: the compiler
//! chooses that only for nests whose loops no step has changed. It makes vectors of loops that no step said `vectorize` of.
//! Needs: loops with a buffer for each tensor. Guarantees: each pass keeps the values and what the verifier accepts.

use std::collections::HashSet;

use certen_loops::{Lend, LoopProgram, Stmt, pad, parallelise, reuse, statements, verify};
use certen_schedule::{Scheduled, vectorise};
use certen_syntax::{Diagnostic, Name};

use crate::options::Options;
use crate::stage::Stage;

/// A pass from loops to loops.
pub(crate) struct LoopPass {
    pub stage: Stage,
    pub run: fn(LoopProgram, &Layout<'_>) -> Result<LoopProgram, Diagnostic>,
}

/// The passes, in order.
pub(crate) const LAYOUT: &[LoopPass] = &[
    LoopPass {
        stage: Stage::Reuse,
        // The caller's arrays are not padded, so they lend no memory to what is.
        run: |loops, layout| reuse(loops, if layout.options.vector.is_some() { Lend::Buffers } else { Lend::Outputs }),
    },
    LoopPass {
        stage: Stage::Pad,
        run: |loops, layout| match layout.options.vector {
            Some(vector) => pad(loops, vector),
            None => Ok(loops),
        },
    },
    LoopPass { stage: Stage::Vectorise, run: |loops, layout| Ok(vectorise(loops, |nest| layout.is_free(nest))) },
    LoopPass {
        stage: Stage::Parallelise,
        run: |loops, layout| match layout.options.parallel {
            true => Ok(parallelise(loops, |nest| layout.is_free(nest))),
            false => Ok(loops),
        },
    },
];

/// What the passes need to know.
pub(crate) struct Layout<'a> {
    options: &'a Options,
    /// The nests whose loops the schedule has not changed; none if there is no schedule.
    untouched: Option<HashSet<Name>>,
}

impl<'a> Layout<'a> {
    pub fn new(options: &'a Options, scheduled: Option<&Scheduled>) -> Layout<'a> {
        let untouched = scheduled.map(untouched);
        Layout { options, untouched }
    }

    /// Whether the compiler may choose for this nest.
    fn is_free(&self, nest: Option<Name>) -> bool {
        match (&self.untouched, nest) {
            (None, _) => true,
            (Some(untouched), Some(nest)) => untouched.contains(&nest),
            (Some(_), None) => false,
        }
    }

    /// The first pass whose loops the verifier refuses, though it accepts those before; none if it refuses what the passes
    /// begin with.
    pub fn blamed(&self, passes: &[LoopPass], mut loops: LoopProgram) -> Option<Stage> {
        if !verify(&loops).is_empty() {
            return None;
        }
        for pass in passes {
            loops = (pass.run)(loops, self).ok()?;
            if !verify(&loops).is_empty() {
                return Some(pass.stage);
            }
        }
        None
    }
}

/// The nests whose loops a schedule has not changed.
fn untouched(scheduled: &Scheduled) -> HashSet<Name> {
    let mut touched = HashSet::new();
    let mut before = &scheduled.before;
    for run in scheduled.taken.chunk_by(|one, next| one.is_of_operations() == next.is_of_operations()) {
        let Some(last) = run.last() else { continue };
        if !last.is_of_operations() {
            let old = nests(before);
            let changed = nests(&last.after).into_iter().filter(|nest| !old.contains(nest));
            touched.extend(changed.map(|(name, _)| name));
        }
        before = &last.after;
    }
    nests(&scheduled.program).into_iter().map(|(name, _)| name).filter(|name| !touched.contains(name)).collect()
}

/// The nests of a program, and what each consists of, without those inside it.
fn nests(program: &LoopProgram) -> Vec<(Name, Vec<&Stmt>)> {
    let mut nests: Vec<(Name, Vec<&Stmt>)> = Vec::new();
    let mut open: Vec<&[Stmt]> = vec![&program.body];
    while let Some(block) = open.pop() {
        let mut own = None;
        for stmt in block {
            match stmt {
                Stmt::Nest(name) => {
                    own = Some(nests.len());
                    nests.push((*name, Vec::new()));
                }
                Stmt::Alloc(..) | Stmt::Free(_) => {}
                stmt if statements(std::slice::from_ref(stmt)).any(|stmt| matches!(stmt, Stmt::Nest(_))) => {
                    open.extend(stmt.blocks().map(Vec::as_slice));
                }
                stmt => {
                    if let Some((_, nest)) = own.and_then(|own| nests.get_mut(own)) {
                        nest.push(stmt);
                    }
                }
            }
        }
    }
    nests
}

#[cfg(test)]
mod tests {
    use certen_core::Range;
    use certen_loops::parse_loops;
    use certen_syntax::Sources;

    use super::*;

    #[test]
    fn a_pass_that_breaks_the_loops_is_named() {
        let text = "loops t\nsize n\ninput x : f64[n]\noutput y : f64[n]\nnest y\nfor i in 0..n {\n  y[i] = x[i]\n}\n";
        let mut sources = Sources::new();
        let file = sources.add("t.loops", text);
        let loops = parse_loops(&sources, file).unwrap_or_else(|errors| panic!("{errors:?}"));
        let options = Options::default();
        let layout = Layout::new(&options, None);
        assert_eq!(layout.blamed(LAYOUT, loops.clone()), None);
        let too_far: fn(LoopProgram, &Layout<'_>) -> Result<LoopProgram, Diagnostic> = |mut loops, _| {
            for stmt in &mut loops.body {
                if let Stmt::For { range: Range { hi, .. }, .. } = stmt {
                    *hi = hi.add(&1.into()).unwrap();
                }
            }
            Ok(loops)
        };
        let passes = [
            LoopPass { stage: Stage::Reuse, run: |loops, _| reuse(loops, Lend::Outputs) },
            LoopPass { stage: Stage::Pad, run: too_far },
            LoopPass { stage: Stage::Vectorise, run: |loops, _| Ok(loops) },
        ];
        assert_eq!(layout.blamed(&passes, loops), Some(Stage::Pad));
    }
}
