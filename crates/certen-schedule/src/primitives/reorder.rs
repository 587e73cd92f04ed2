//! `reorder`: loops inside each other get another order.
//!
//! The loop that shall be outermost is exchanged with its neighbours until it is; then the next one. A pair of iterations
//! that may not change places is then never asked to do so on the way, if their order is the same in the end.

use certen_loops::verify_changed;

use super::exchange::{Exchanged, exchange};
use super::{Example, Primitive};
use crate::nest::Nest;
use crate::place::{Place, Turn};
use crate::refusal::{Done, Refusal};

pub(crate) const PRIMITIVE: Primitive = Primitive {
    name: "reorder",
    usage: "reorder([loop, loop, …])",
    about: "The loops, which are inside each other, get this order, outermost first. Other loops between them keep their \
            places. Where a loop is not the only statement of the one around it, it gets one of its own first, as by \
            `fission`: the accumulator of a sum becomes a buffer, one for each iteration of the loops that move inside.",
    legal: "As for `interchange`, for each two loops whose order changes.",
    peers: "Halide, TVM: reorder; Exo: reorder_loops; TeML: interchange; Tiramisu: interchange",
    example: Example {
        program: "loops product\nsize m, n, k\nwhere m >= 0, n >= 0, k >= 1\ninput a : f64[m, k]\ninput b : f64[k, n]\n\
                  output c : f64[m, n]\nnest c\nfor i in 0..m {\n    for j in 0..n {\n        local acc : f64 = 0.0\n        \
                  for l in 0..k {\n            acc += a[i, l] * b[l, j]\n        }\n        c[i, j] = acc\n    }\n}\n",
        steps: "reorder([i, l, j])",
    },
    apply: |nest, args| {
        let paths = args.paths("loops")?;
        args.end()?;
        let mut places = Vec::with_capacity(paths.len());
        for (path, span) in paths {
            places.push(nest.find((path, span))?);
        }
        reorder(nest, &places)
    },
};

/// Gives the loops at some places, which are inside each other, the order in which they are named.
///
/// Ranges that were solved for several indices, one after the other, can become so complex that the verifier does not see
/// that accesses are in bounds; conditions keep what was known before.
pub(crate) fn reorder(nest: &mut Nest, wanted: &[Place]) -> Done<()> {
    let before = nest.clone();
    if !ordered(nest, wanted, true)? {
        return Ok(());
    }
    let violations = |after: &Nest| verify_changed(&after.program, &before.program).len();
    let found = violations(nest);
    if found > 0 {
        let mut guarded = before.clone();
        if ordered(&mut guarded, wanted, false).is_ok() && violations(&guarded) < found {
            *nest = guarded;
        }
    }
    Ok(())
}

/// The same; says whether a range was solved for another index.
fn ordered(nest: &mut Nest, wanted: &[Place], solve: bool) -> Done<bool> {
    let mut solved = false;
    let mut sorted = wanted.to_vec();
    sorted.sort_by_key(|place| place.path.len());
    for pair in sorted.windows(2) {
        let (one, two) = nest.called_both(&pair[0], &pair[1]);
        if pair[0] == pair[1] {
            return Err(Refusal::cannot(format!("{one} is named twice")).at(&pair[0]));
        }
        if !pair[0].contains(&pair[1]) {
            let refusal = Refusal::cannot(format!("{one} and {two} are not inside each other"));
            return Err(refusal.at(&pair[0]).at(&pair[1]));
        }
    }
    let (Some(top), Some(bottom)) = (sorted.first(), sorted.last()) else { return Ok(false) };
    let around = nest.loops_around(bottom).into_iter().map(|(place, _)| place);
    let mut chain: Vec<Place> = around.filter(|place| place.path.len() >= top.path.len()).collect();
    chain.push(bottom.clone());
    // The loops by their first positions in the chain: as they shall stand, and as they stand.
    let mut named = wanted.iter().filter_map(|place| chain.iter().position(|other| other == place));
    let goal: Vec<usize> = chain
        .iter()
        .enumerate()
        .filter_map(|(at, p)| if sorted.contains(p) { named.next() } else { Some(at) })
        .collect();
    let mut order: Vec<usize> = (0..chain.len()).collect();
    for (to, wanted) in goal.iter().enumerate() {
        let from = order.iter().position(|at| at == wanted).unwrap_or(to);
        for at in (to..from).rev() {
            let old = chain[at + 1].clone();
            let exchanged = exchange(nest, &chain[at], &old, solve).map_err(Refusal::unmarked)?;
            let Exchanged { outer, inner, conditions, .. } = exchanged;
            solved |= exchanged.solved;
            for place in &mut chain[at + 2..] {
                let mut path = inner.path.clone();
                path.push(Turn { at: inner.at, block: 0 });
                path.extend(std::iter::repeat_n(Turn { at: 0, block: 0 }, conditions));
                path.extend(place.path.iter().skip(old.path.len() + 1));
                place.path = path;
            }
            (chain[at], chain[at + 1]) = (outer, inner);
            order.swap(at, at + 1);
        }
    }
    Ok(solved)
}
