//! Contractions for which a tile is not worth its while at these sizes: a product and its addition are one operation.
//!
//! So they have the same bits as those with a tile.
//!
//! Applies: to sums of products of floats that may be rounded otherwise, with rows and lanes or over a window. Other sums stay as they are,
//! unless the mode asks for fused operations: where each addition waits for the one before, a fused one takes longer. Cost:
//! none.

use certen_loops::FpMode;

use super::sum::SumNest;
use super::{LAST, Machine, Proposal};

pub(super) fn proposals(found: &SumNest<'_>, machine: &Machine) -> Vec<Proposal> {
    let applies = match found.fp {
        FpMode::Relaxed => found.has_rows() || found.window_lanes().is_some(),
        FpMode::Fused => true,
        FpMode::Strict => false,
    };
    if !applies || !found.elem.is_float() {
        return Vec::new();
    }
    let why = "a sum of products: each product and its addition are one operation".to_owned();
    vec![Proposal { plan: found.planned(found.steps(machine), why), cost: LAST }]
}
