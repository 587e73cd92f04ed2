//! `separate`: a local or buffer that loops compute for each element is computed before, for all of them, in loops of its own.
//!
//! `y[i] = sum_k a[i, k] * x[k] + sum_k b[i, k] * z[k]` is one nest with two sums, for which there is no good order of loops. Apart,
//! each is a nest with one sum. What is paid is a buffer that is written and read once. Likewise, a row of a matrix that is
//! multiplied and then used in each iteration becomes a product of matrices.

use std::collections::BTreeSet;

use certen_core::{Range, TensorType};
use certen_index::Ix;
use certen_loops::{Stmt, Target, Use, declarations, declared, statements};
use certen_syntax::Name;

use super::{Example, Primitive};
use crate::bounds::room;
use crate::edit::Edit;
use crate::nest::{Nest, as_stage};
use crate::place::{Loop, Place};
use crate::refusal::{Done, Refusal};
use crate::rewrite::with_reads;

pub(crate) const PRIMITIVE: Primitive = Primitive {
    name: "separate",
    usage: "separate(loop, name)",
    about: "A local or buffer that is declared and computed in the body of the loop, or in that of the innermost loop where \
            nothing but loops inside each other is around it: it is computed for all iterations first, in a nest of its own with \
            the same loops. A local is kept in a buffer `N_local`, where N is the nest of the loop; a buffer gets a dimension for \
            each of the loops.",
    legal: "Always: it is refused where the loop changes something else that it is computed from.",
    peers: "ISL and Pluto: loop distribution with scalar expansion; Halide: a Func of its own with compute_root",
    example: Example {
        program: "loops both\nsize m, n\nwhere m >= 0, n >= 0\ninput a : f64[m, n]\ninput b : f64[m, n]\ninput x : f64[n]\n\
                  output y : f64[m]\nnest y\nfor i in 0..m {\n    local acc : f64 = 0.0\n    for k in 0..n {\n        \
                  acc += a[i, k] * x[k]\n    }\n    local acc_1 : f64 = 0.0\n    for k in 0..n {\n        \
                  acc_1 += b[i, k] * x[k]\n    }\n    y[i] = acc + acc_1\n}\n",
        steps: "separate(i, acc)",
    },
    apply: |nest, args| {
        let place = nest.find(args.path("a loop")?)?;
        let (name, _) = args.word("a local or buffer")?;
        args.end()?;
        separate(nest, &place, name)
    },
};

fn separate(nest: &mut Nest, place: &Place, name: Name) -> Done<()> {
    let mut loops = vec![nest.loop_at(place)?];
    let mut at = place.clone();
    while let [Stmt::For { .. }] = loops.last().map_or(&[][..], |inner| &inner.body) {
        at = at.inside(0);
        loops.push(nest.loop_at(&at)?);
    }
    let body = loops.last().map(|inner| inner.body.clone()).unwrap_or_default();
    let Computed { first, last, ty } = Computed::of(nest, &body, name).ok_or_else(|| {
        let refusal =
            Refusal::cannot(format!("no local or buffer `{name}` is computed in the innermost of these loops"));
        refusal.at(place).note("its body has to declare it, and to compute it in the statements after that")
    })?;
    let moved = &body[first..=last];
    stands_alone(nest, place, &loops[0], moved, name)?;
    let facts = nest.facts(place)?;
    let (mut shape, mut indices): (Vec<Ix>, Vec<Ix>) = (Vec::new(), Vec::new());
    for Loop { index, range, .. } in &loops {
        let changes = loops.iter().any(|other| range.hi.mentions(other.index));
        if changes || range.lo.as_constant() != Some(0) {
            let text = format!("the loop over {index} does not begin at 0, or is not always of the same length");
            let refusal = Refusal::cannot(text);
            return Err(refusal.at(place).note(format!("its range is {}..{}", range.lo, range.hi)));
        }
        if ty.shape.iter().any(|size| size.mentions(*index)) {
            return Err(Refusal::cannot(format!("`{name}` is not of the same size for every {index}")).at(place));
        }
        shape.push(room(&facts, &Range::to(range.hi.clone()))?);
        indices.push(Ix::var(*index));
    }
    shape.extend(ty.shape.iter().cloned());
    let whole = TensorType::new(ty.elem, shape);
    let stage = nest.stage(place);
    let is_local = matches!(&moved[0], Stmt::Local { name: local, .. } if *local == name);
    let to = match is_local {
        true => nest.fresh(&stage.map_or_else(|| name.to_string(), |stage| format!("{stage}_{name}"))),
        false if declarations(&nest.program.body).filter(|(other, _)| *other == name).count() == 1 => name,
        false => nest.fresh(name.as_str()),
    };
    let (own, rest) = match is_local {
        true => with_local(nest, &body, (first, last), name, (to, &whole, &indices))?,
        false => {
            let expanded = [(name, (whole.clone(), indices))].into();
            let edit = Edit { expanded, names: [(name, to)].into(), ..Edit::default() };
            let is_about =
                |stmt: &&Stmt| matches!(stmt, Stmt::Alloc(of, _) | Stmt::Free(of) | Stmt::Nest(of) if *of == name);
            let without = |part: &[Stmt]| part.iter().filter(|stmt| !is_about(stmt)).cloned().collect::<Vec<_>>();
            // What stands before may have another buffer of this name in a block.
            let mut rest = without(&body[..first]);
            rest.extend(edit.block(&mut nest.program, &without(&body[last + 1..]))?);
            (edit.block(&mut nest.program, moved)?, rest)
        }
    };
    let around =
        |body: Vec<Stmt>| loops.iter().rev().fold(body, |body, one: &Loop| vec![Loop { body, ..one.clone() }.into()]);
    let (own, rest) = (around(own), around(rest));
    before(nest, place, (to, whole), own, rest)?;
    Ok(())
}

/// In place of a loop: what computes a buffer, in a nest of its own where there are nests, and what reads it. Where the former
/// stands.
pub(super) fn before(
    nest: &mut Nest,
    place: &Place,
    (to, ty): (Name, TensorType),
    own: Vec<Stmt>,
    rest: Vec<Stmt>,
) -> Done<Place> {
    let stage = nest.stage(place);
    let block = nest.block_mut(place)?;
    // Where the label of the nest stands right before the loop, it still stands once.
    let is_labelled = place.at > 0 && block.get(place.at - 1).and_then(as_stage).is_some();
    let begin = if is_labelled { place.at - 1 } else { place.at };
    let first = [Stmt::Alloc(to, ty)].into_iter().chain(stage.map(|_| Stmt::Nest(to)));
    let first: Vec<Stmt> = first.collect();
    let computed = place.beside(begin + first.len());
    let after = stage.map(Stmt::Nest).into_iter().chain(rest).chain([Stmt::Free(to)]);
    block.splice(begin..=place.at, first.into_iter().chain(own).chain(after).collect::<Vec<_>>());
    Ok(computed)
}

/// A body without what computes a local: that by itself, which stores the local in a buffer, and the rest, which reads it there.
fn with_local(
    nest: &mut Nest,
    body: &[Stmt],
    (first, last): (usize, usize),
    local: Name,
    (to, whole, indices): (Name, &TensorType, &[Ix]),
) -> Done<(Vec<Stmt>, Vec<Stmt>)> {
    let value = nest.program.terms.reference(local, TensorType::scalar(whole.elem))?;
    let store = Stmt::Assign { target: Target::Element(to, indices.into()), op: None, value };
    let own = body[first..=last].iter().cloned().chain([store]).collect();
    let read = nest.program.terms.element(to, whole.clone(), indices.to_vec())?;
    // What stands before may have another local of this name in a block.
    let mut rest = body[..first].to_vec();
    let with_element = &mut |_: &mut _, _: &[_], name, _: &[_]| Ok((name == local).then_some(read));
    rest.extend(with_reads(&mut nest.program, &body[last + 1..], with_element)?);
    Ok((own, rest))
}

/// Which statements of a block compute a local, its declaration first, or a buffer, and its type.
pub(super) struct Computed {
    pub first: usize,
    pub last: usize,
    pub ty: TensorType,
}

impl Computed {
    pub fn of(nest: &Nest, body: &[Stmt], name: Name) -> Option<Computed> {
        let (declared, ty) = body.iter().enumerate().find_map(|(at, stmt)| match stmt {
            Stmt::Local { name: local, elem, .. } if *local == name => Some((at, TensorType::scalar(*elem))),
            Stmt::Alloc(buffer, ty) if *buffer == name => Some((at, ty.clone())),
            _ => None,
        })?;
        let writes = |stmt: &Stmt| {
            let uses = statements(std::slice::from_ref(stmt)).flat_map(|stmt| stmt.uses(&nest.program.terms));
            uses.into_iter().any(|(of, _, how)| of == name && how != Use::Read)
        };
        let last = declared + body[declared..].iter().rposition(writes)?;
        let first = match &body[declared] {
            Stmt::Alloc(..) => declared + body[declared..].iter().position(writes)?,
            _ => declared,
        };
        Some(Computed { first, last, ty })
    }
}

/// That statements compute a local or buffer, and nothing else, from what the loop around them does not change.
pub(super) fn stands_alone(nest: &Nest, place: &Place, around: &Loop, moved: &[Stmt], target: Name) -> Done<()> {
    let terms = &nest.program.terms;
    let cannot = |text: String| Err(Refusal::cannot(text).at(place));
    let (own, inside) = (declared(moved), declared(&around.body));
    let mut changed: BTreeSet<Name> = BTreeSet::new();
    for (name, _, how) in statements(&around.body).flat_map(|stmt| stmt.uses(terms)) {
        if how != Use::Read {
            changed.insert(name);
        }
    }
    for (at, stmt) in moved.iter().enumerate() {
        if let Stmt::Local { name, .. } | Stmt::Alloc(name, _) | Stmt::Free(name) = stmt
            && (at > 0 || *name != target)
        {
            return cannot(format!("`{name}` begins or ends while `{target}` is computed"));
        }
    }
    for stmt in statements(moved) {
        if let Stmt::Swap(one, _) = stmt {
            return cannot(format!("`{target}` is computed with a buffer `{one}` that is exchanged with another"));
        }
        for (name, _, how) in stmt.uses(terms) {
            let is_own = name == target || own.contains(&name);
            if how != Use::Read && !is_own {
                return cannot(format!("what computes `{target}` writes `{name}`, too"));
            }
            if !is_own && (inside.contains(&name) || changed.contains(&name)) {
                return cannot(format!(
                    "`{target}` is computed from `{name}`, which the loop over {} changes",
                    around.index
                ));
            }
        }
    }
    Ok(())
}
