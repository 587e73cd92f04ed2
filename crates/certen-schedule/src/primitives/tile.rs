//! `tile`: loops inside each other become loops over tiles, and inside a tile.

use super::reorder::reorder;
use super::split::split;
use super::{Example, Primitive};
use crate::nest::Nest;
use crate::place::{Place, Turn};
use crate::refusal::{Done, Refusal};

pub(crate) const PRIMITIVE: Primitive = Primitive {
    name: "tile",
    usage: "tile([loop, loop, …], [size, size, …])",
    about: "Each loop is split by its size, and the loops over blocks come before those inside a block: of `i` and `j`, \
            the order is `i.o`, `j.o`, `i.i`, `j.i`.",
    legal: "As for `reorder`: no two iterations change places of which one writes what the other one uses.",
    peers: "Halide and TVM: tile; TeML: tile; OpenMP: tile; Exo: tile2D of its library",
    example: Example {
        program: "loops turn\nsize m, n\nwhere m >= 0, n >= 0\ninput x : f64[m, n]\noutput y : f64[n, m]\nnest y\n\
                  for i in 0..n {\n    for j in 0..m {\n        y[i, j] = x[j, i]\n    }\n}\n",
        steps: "tile([i, j], [16, 8])",
    },
    apply: |nest, args| {
        let paths = args.paths("loops")?;
        let mut places = Vec::with_capacity(paths.len());
        for path in paths {
            places.push(nest.find(path)?);
        }
        let sizes = args.ints(1, "the sizes of tiles")?;
        args.end()?;
        tile(nest, &places, &sizes)
    },
};

/// Tiles the loops at some places, which are inside each other.
pub(crate) fn tile(nest: &mut Nest, places: &[Place], sizes: &[i64]) -> Done<()> {
    if places.len() != sizes.len() || places.is_empty() {
        let (loops, sizes) = (places.len(), sizes.len());
        let refusal = Refusal::cannot(format!("each loop needs the size of its tiles: loops: {loops}, sizes: {sizes}"));
        return Err(places.iter().fold(refusal, Refusal::at));
    }
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by_key(|&at| places[at].path.len());
    for pair in order.windows(2) {
        let (outer, inner) = (&places[pair[0]], &places[pair[1]]);
        let (one, two) = (nest.loop_at(outer)?.index, nest.loop_at(inner)?.index);
        if outer == inner {
            return Err(Refusal::cannot(format!("the loop over {one} is named twice")).at(outer));
        }
        if !outer.contains(inner) {
            let refusal = Refusal::cannot(format!("the loops over {one} and {two} are not inside each other"));
            return Err(refusal.at(outer).at(inner));
        }
    }
    // From the innermost one outwards, so that the places of the others stay.
    for &at in order.iter().rev() {
        split(nest, &places[at], sizes[at])?;
    }
    // Each loop stands deeper now by the inner parts of those around it.
    let moved = |place: &Place| {
        let mut path = place.path.clone();
        for outer in order.iter().rev().map(|&at| &places[at]).filter(|outer| outer.contains(place)) {
            path.insert(outer.path.len() + 1, Turn { at: 0, block: 0 });
        }
        Place { path, at: place.at }
    };
    let blocks: Vec<Place> = places.iter().map(moved).collect();
    let inside: Vec<Place> = blocks.iter().map(|place| place.inside(0)).collect();
    reorder(nest, &blocks.into_iter().chain(inside).collect::<Vec<_>>())
}
