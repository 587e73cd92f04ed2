//! `fuse_inner`: the loops in the body of a loop become one (TeML, Eq. 23).

use certen_loops::Stmt;

use super::fuse_outer::{fuse, same_length};
use super::{Example, Primitive};
use crate::nest::Nest;
use crate::place::Place;
use crate::refusal::{Done, Refusal};

pub(crate) const PRIMITIVE: Primitive = Primitive {
    name: "fuse_inner",
    usage: "fuse_inner(loop)",
    about: "The loops directly in the body of `loop` that follow each other and are equally long become one, as by \
            `fuse_outer`.",
    legal: "As for `fuse_outer`, for each two of them.",
    peers: "TeML: fuse_inner; Pluto: maximal fusion; OpenMP 6: fuse",
    example: Example {
        program: "loops both\nsize m, n\nwhere m >= 0, n >= 1\ninput x : f64[m, n]\noutput y : f64[m]\noutput z : f64[m]\n\
                  nest y\nfor i in 0..m {\n    y[i] = 0.0\n    for k in 0..n {\n        y[i] += x[i, k]\n    }\n    \
                  z[i] = 0.0\n    for l in 0..n {\n        z[i] += x[i, l] * x[i, l]\n    }\n}\n",
        steps: "fuse_inner(i)",
    },
    apply: |nest, args| {
        let place = nest.find(args.path("a loop")?)?;
        args.end()?;
        fuse_inner(nest, &place)
    },
};

/// Fuses the neighbours of equal length in the body of the loop at a place.
pub(crate) fn fuse_inner(nest: &mut Nest, place: &Place) -> Done<()> {
    let index = nest.loop_at(place)?.index;
    let mut why = None;
    let (mut done, mut at) = (0, 0);
    loop {
        let body = nest.loop_at(place)?.body;
        let mut loops = body.iter().enumerate().skip(at).filter(|(_, stmt)| matches!(stmt, Stmt::For { .. }));
        let (Some((one, first)), Some((two, second))) = (loops.next(), loops.next()) else { break };
        let (Stmt::For { range: a, .. }, Stmt::For { range: b, .. }) = (first, second) else { break };
        at = two;
        if !same_length(&nest.facts(&place.inside(one))?, a, b) {
            continue;
        }
        let before = nest.clone();
        match fuse(nest, &place.inside(one), &place.inside(two)) {
            Ok(fused) => {
                done += 1;
                at = fused.place.at;
            }
            Err(refusal) => {
                *nest = before;
                why.get_or_insert(if done == 0 { refusal } else { refusal.unmarked() });
            }
        }
    }
    match (done, why) {
        (1.., _) => Ok(()),
        (0, Some(refusal)) => Err(refusal),
        _ => {
            let refusal =
                Refusal::cannot(format!("no two equally long loops follow each other in the loop over {index}"));
            Err(refusal.at(place).help("`fuse_outer` also fuses loops of different lengths"))
        }
    }
}
