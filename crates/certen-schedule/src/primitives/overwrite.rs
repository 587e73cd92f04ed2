//! `overwrite`: of two ways to make an element, one is always taken, and the other one writes over it.
//!
//! `if c { x[i] = a } else { x[i] = b }` in loops becomes the loops with `x[i] = b`, and after them loops of their own with
//! `if c { x[i] = a }`. What is made everywhere has no condition left in it, so that it can be tiled and vectorised, and
//! where the condition seldom holds, little is made twice.

use certen_index::Ix;
use certen_loops::{Stmt, Target, Use, declared, statements};
use certen_syntax::Name;

use super::fission::fission;
use super::{Example, Primitive};
use crate::edit::Edit;
use crate::nest::Nest;
use crate::place::{Loop, Place};
use crate::refusal::{Done, Refusal};

pub(crate) const PRIMITIVE: Primitive = Primitive {
    name: "overwrite",
    usage: "overwrite(loop)",
    about: "The body of the loop, or of those in it, is a condition, both of whose blocks store the same element: the \
            block with loops in it, or else the second one, is done always. Where the condition says so, the other one \
            stores over it, in loops of its own after these, which get the suffix `where`.",
    legal: "No iteration uses what another one stores. What the block reads that is done always is there everywhere.",
    peers: "ISL and Pluto: statements of their own for each branch; Halide: an update definition on part of the domain",
    example: Example {
        program: "loops corner\nsize n, p\nwhere n >= 0, p >= 0\ninput a : f64[n, p]\noutput c : f64[n, n]\nnest c\n\
                  for i in 0..n {\n    for j in 0..n {\n        if i == j {\n            c[i, j] = 1.0\n        } else {\n            \
                  local acc : f64 = 0.0\n            for k in 0..p {\n                acc += a[i, k] * a[j, k]\n            }\n            \
                  c[i, j] = acc\n        }\n    }\n}\n",
        steps: "overwrite(i)",
    },
    apply: |nest, args| {
        let place = nest.find(args.path("a loop")?)?;
        args.end()?;
        overwrite(nest, &place)
    },
};

fn overwrite(nest: &mut Nest, place: &Place) -> Done<()> {
    let (mut at, mut loops) = (place.clone(), Vec::new());
    let (cond, then, otherwise) = loop {
        match nest.stmt(&at) {
            Some(Stmt::For { body, .. }) if body.len() == 1 => {
                loops.push(nest.loop_at(&at)?);
                at = at.inside(0);
            }
            Some(Stmt::If { cond, then, otherwise }) if !loops.is_empty() && !otherwise.is_empty() => {
                break (cond.clone(), then.clone(), otherwise.clone());
            }
            _ => {
                let refusal = Refusal::cannot("the body is not a condition with two blocks, and nothing else");
                return Err(refusal.at(place));
            }
        }
    };
    let has_loops = |block: &[Stmt]| statements(block).any(|stmt| matches!(stmt, Stmt::For { .. }));
    let (cond, then, otherwise) = match has_loops(&then) && !has_loops(&otherwise) {
        true => (cond.not()?, otherwise, then),
        false => (cond, then, otherwise),
    };
    let (one, two) = (stored(nest, &then), stored(nest, &otherwise));
    if one.is_none() || one != two {
        let refusal = Refusal::cannot("the blocks of the condition do not store the same element").at(&at);
        return Err(refusal.note("each has to end with it, and to store or allocate nothing else"));
    }
    let first = Stmt::If { cond, then, otherwise: Vec::new() };
    // Loops of their own are those that `fission` makes, when it can.
    let mut divided = nest.clone();
    divided.replace(&at, otherwise.iter().cloned().chain([first.clone()]))?;
    fission(&mut divided, place, &at.beside(at.at + otherwise.len()))?;
    nest.take_conditions(divided);
    let around =
        |body: Vec<Stmt>| loops.iter().rev().fold(body, |body, one: &Loop| vec![Loop { body, ..one.clone() }.into()]);
    let second = nest.copy(&around(vec![first]), "where", Edit::default())?;
    let label = nest.stage(place).filter(|_| place.path.is_empty()).map(|stage| nest.piece(stage, "where"));
    let all = around(otherwise).into_iter().chain(label.map(Stmt::Nest)).chain(second);
    nest.replace(place, all.collect::<Vec<_>>())
}

/// The element that a block ends with storing, if it stores nothing else and does not read what is stored there.
pub(super) fn stored(nest: &Nest, block: &[Stmt]) -> Option<(Name, Box<[Ix]>)> {
    let Some(Stmt::Assign { target: Target::Element(name, at), op: None, .. }) = block.last() else { return None };
    let own = declared(block);
    let mut stores = 0;
    for stmt in statements(block) {
        match stmt {
            Stmt::Assign { target: Target::Element(..), .. } => stores += 1,
            Stmt::Assign { target: Target::Local(local), .. } if !own.contains(local) => return None,
            Stmt::Alloc(..) | Stmt::Free(_) | Stmt::Swap(..) | Stmt::Nest(_) => return None,
            _ => {}
        }
        let uses = stmt.uses(&nest.program.terms);
        if uses.iter().any(|(used, _, how)| used == name && *how == Use::Read) {
            return None;
        }
    }
    (stores == 1).then(|| (*name, at.clone()))
}
