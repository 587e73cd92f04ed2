//! The stages of the road from text to machine code, as data.
//!
//! `explain`, `--time-passes`, messages about the compiler's own mistakes and the page of stages
//! (`docs/contributing/stages.md`) come from this list; `pipeline.rs` runs it.

use std::fmt;
use std::time::Duration;

macro_rules! stages {
    ($($stage:ident $name:literal: $from:literal => $to:literal, $about:literal, $guarantees:literal;)*) => {
        /// A stage of the road.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Stage {
            $(#[doc = $about] $stage,)*
        }

        impl Stage {
            /// All stages, in the order of the road.
            pub const ALL: &[Stage] = &[$(Stage::$stage),*];

            /// What people call it.
            pub fn name(self) -> &'static str {
                match self { $(Stage::$stage => $name,)* }
            }

            /// What happens there.
            pub fn about(self) -> &'static str {
                match self { $(Stage::$stage => $about,)* }
            }

            /// What it takes, and what it makes.
            pub fn types(self) -> (&'static str, &'static str) {
                match self { $(Stage::$stage => ($from, $to),)* }
            }

            /// What holds afterwards.
            pub fn guarantees(self) -> &'static str {
                match self { $(Stage::$stage => $guarantees,)* }
            }
        }
    };
}

stages! {
    Checked "checked": "text" => "typed program",
        "A front door parses the text and checks it by the rules of its notation.",
        "Every access is in bounds for all sizes that the program admits.";
    Core "core": "typed program" => "Core",
        "The program is written in Core: this is what it means.",
        "Core is well-typed; truncations cut off nothing but padding.";
    Rewritten "rewritten": "Core" => "Core",
        "Contractions are lifted and common values shared, or the rewrites of a derivation are made.",
        "The values are those of the program as written: elements of both are compared.";
    Lowered "lowered": "Core" => "loops",
        "Each tensor becomes a nest of loops that stores its elements.",
        "Every element is stored once, at its place.";
    Planned "planned": "loops" => "steps",
        "The compiler writes a schedule, if it is asked to: strategies propose steps for each nest.",
        "Every condition of every step that it writes is proved for all sizes.";
    Scheduled "scheduled": "loops" => "loops",
        "The steps of the schedule change the loops.",
        "Each condition of each step is proved for all sizes, fails, or is open; none is forgotten.";
    Reuse "reuse": "loops" => "loops",
        "Tensors that are not needed at the same time share memory.",
        "No tensor is overwritten before its last use.";
    Pad "pad": "loops" => "loops",
        "The rows of buffers are padded to whole vectors, if that is asked for.",
        "Padding is never read as a value.";
    Vectorise "vectorise": "loops" => "loops",
        "Innermost loops whose iterations are independent become vector loops, unless a step has decided it.",
        "Every element is computed by the same operations in the same order.";
    Parallelise "parallelise": "loops" => "loops",
        "Outer loops whose iterations are independent are shared among threads, in nests that no step has changed.",
        "Results have the same bits for any number of threads.";
    Verified "verified": "loops" => "loops",
        "The verifier looks at every access and every loop that threads or lanes share.",
        "Accesses are in bounds, locals are assigned before they are read, and nothing races, for all sizes.";
    Validated "validated": "loops" => "evidence",
        "The loops run in the interpreter beside the program as written, in the evaluator.",
        "All outputs agree at sizes that reach every part of the loops, unless every step is proved.";
    C "c": "loops" => "C",
        "The loops are printed as C11.",
        "Entry points check their callers' sizes, pointers and strides; no index overflows.";
    Native "native": "C" => "machine code",
        "The C compiler translates it, or the cache has the result.",
        "A cache entry is used only for the text, flags and compiler that made it.";
    Tried "tried": "machine code" => "machine code",
        "The machine code runs once beside the loops that it was made from.",
        "All bits are equal where it was tried; the trial says where that was.";
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A stage that ran.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Passed {
    /// Which one.
    pub stage: Stage,
    /// How long it took, without the stages before it.
    pub time: Duration,
    /// How large is what it made, and in what that is counted.
    pub size: Option<(usize, &'static str)>,
}
