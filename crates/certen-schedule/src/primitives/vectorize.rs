//! `vectorize`: iterations that a vector unit runs at the same time, one in each lane.

use certen_index::Ix;
use certen_loops::{Mode, Stmt, sites};
use certen_syntax::{Code, Diagnostic, Name};

use super::unroll::full_blocks;
use super::{Example, Primitive};
use crate::depend::{Footprint, independent};
use crate::nest::Nest;
use crate::partials::{self, Accumulator};
use crate::place::{Loop, Place};
use crate::refusal::{Done, Refusal, listed};

/// The most lanes.
const MOST_LANES: i64 = 64;

pub(crate) const PRIMITIVE: Primitive = Primitive {
    name: "vectorize",
    usage: "vectorize(loop) or vectorize(loop, width)",
    about: "The loop `i` becomes a loop `i.o` over `width` iterations at a time, the lanes of a vector, `i.i`. Those that \
            are left stay as they were, in `i.o.tail`. Without `width`, the loop itself is the vector: its number of \
            iterations is a number up to 64. If the loop combines into something from outside, as a sum does, each lane \
            has a partial sum. After the loop one half of them is added to the other until one is left; if their number is \
            no power of two, they are added in order.",
    legal: "No lane writes what another one uses, but for what the loop only combines into, always with the same \
            operation, and does not read. The verifier shows it again, as the absence of races.",
    peers: "Halide and TVM: vectorize, rfactor; TeML: vectorize; OpenMP: simd, reduction; Exo: replace with instructions",
    example: Example {
        program: "loops dot\nsize n\nwhere n >= 0\ninput a : f64[n]\ninput b : f64[n]\noutput s : f64[]\nnest s\n\
                  local acc : f64 = 0.0\nfor k in 0..n {\n    acc += a[k] * b[k]\n}\ns = acc\n",
        steps: "vectorize(k, 4)",
    },
    apply: |nest, args| {
        let place = nest.find(args.path("a loop")?)?;
        if args.left() == 0 {
            return vectorize(nest, &place, None);
        }
        let (width, span) = args.int("the number of lanes")?;
        args.end()?;
        if !(1..=MOST_LANES).contains(&width) {
            let error = format!("a vector has 1 to {MOST_LANES} lanes, not {width}");
            return Err(Diagnostic::error(Code::E0801, span, error).into());
        }
        vectorize(nest, &place, Some(width))
    },
};

/// The condition of a loop whose iterations run at the same time.
pub(crate) fn sentence(index: Name, accumulators: &[Name]) -> String {
    let but = match accumulators {
        [] => String::new(),
        names => format!(", but for what is combined into {}", listed(names.iter())),
    };
    format!("no iteration of the loop over {index} writes what another one uses{but}")
}

/// Makes the loop at a place a vector loop, or with a width, blocks of its iterations.
pub(crate) fn vectorize(nest: &mut Nest, place: &Place, width: Option<i64>) -> Done<()> {
    let found = nest.loop_at(place)?;
    let index = found.index;
    if let Some((at, inner)) = uneven(&found.body, index) {
        let refusal = Refusal::cannot(format!("the range of the loop over {inner} depends on {index}, the lane"));
        return Err(refusal
            .at(place)
            .at(&place.join(at))
            .note("the lanes of a vector run the same iterations of the loops inside")
            .help(format!("`guard({inner})` makes a condition of it, `interchange` may take the loop outside")));
    }
    let accumulators = partials::of(nest, place)?;
    let (main, vector, width) = match width {
        Some(width) => {
            let pieces = full_blocks(nest, place, width)?;
            if let Some(tail) = &pieces.rest {
                set_mode(nest, &tail.inside(0), Mode::Serial)?;
            }
            // A vector loop inside another one would have no lanes.
            for piece in pieces.main.iter().chain(&pieces.rest).filter(|_| found.mode == Mode::Vector) {
                set_mode(nest, piece, Mode::Serial)?;
            }
            let Some(main) = pieces.main else { return Ok(()) };
            let vector = main.inside(0);
            (main, vector, width)
        }
        None => match found.trips() {
            Some(trips @ 1..=MOST_LANES) => (place.clone(), place.clone(), trips),
            Some(trips) => {
                let message = format!("the loop over {index} has {trips} iterations, a vector 1 to {MOST_LANES} lanes");
                return Err(Refusal::cannot(message)
                    .at(place)
                    .help(format!("`vectorize({index}, 4)` takes four lanes")));
            }
            None => {
                let message = format!("the number of iterations of the loop over {index} is not a number");
                return Err(Refusal::cannot(message)
                    .at(place)
                    .help(format!("`vectorize({index}, 4)` takes four lanes")));
            }
        },
    };
    if width == 1 {
        // One lane is no vector, and may assign what several could not.
        return Ok(());
    }
    set_mode(nest, &vector, Mode::Vector)?;
    let lanes = nest.loop_at(&vector)?;
    let names: Vec<Name> = accumulators.iter().map(Accumulator::name).collect();
    let body = Footprint::of(&nest.program, &lanes.body).only(|name| !names.contains(&name));
    let status = independent(&nest.facts(&vector)?, lanes.index, &lanes.range, body);
    nest.condition_of(lanes.index, sentence(lanes.index, &names), status);
    if accumulators.is_empty() {
        return Ok(());
    }
    let lane = Ix::var(lanes.index).sub(&lanes.range.lo)?;
    partials::of_lanes(nest, (&main, &vector), (width, &lane), &accumulators)
}

fn set_mode(nest: &mut Nest, place: &Place, mode: Mode) -> Done<()> {
    let found = nest.loop_at(place)?;
    nest.replace(place, [Loop { mode, ..found }.into()])
}

/// A loop in a body whose range depends on an index, and its place there.
fn uneven(body: &[Stmt], index: Name) -> Option<(Place, Name)> {
    sites(body).iter().find_map(|site| match site.stmt {
        Stmt::For { index: inner, range, .. } if range.lo.mentions(index) || range.hi.mentions(index) => {
            Some((Place::of(site), *inner))
        }
        _ => None,
    })
}
