//! `separate`: a local that loops compute for each element is computed before, for all of them, in loops of its own.
//!
//! `y[i] = sum_k a[i, k] * x[k] + sum_k b[i, k] * z[k]` is one nest with two sums, for which there is no good order of loops. Apart,
//! each is a nest with one sum. What is paid is a buffer that is written and read once.

use std::collections::BTreeSet;

use certen_core::{ElemType, Range, TensorType};
use certen_index::Ix;
use certen_loops::{Stmt, Target, Use, declared, statements};
use certen_syntax::Name;

use super::{Example, Primitive};
use crate::bounds::room;
use crate::nest::{Nest, as_stage};
use crate::place::{Loop, Place};
use crate::refusal::{Done, Refusal};
use crate::rewrite::with_reads;

pub(crate) const PRIMITIVE: Primitive = Primitive {
    name: "separate",
    usage: "separate(loop, local)",
    about: "A local that is declared and computed in the body of the loop, or in that of the innermost loop where nothing but \
            loops inside each other is around it: it is computed for all iterations first, in a nest of its own with the same \
            loops, and kept in a buffer `N_local`, where N is the nest of the loop.",
    legal: "Always: it is refused where the loop changes something that the local is computed from.",
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
        let (local, _) = args.word("a local")?;
        args.end()?;
        separate(nest, &place, local)
    },
};

fn separate(nest: &mut Nest, place: &Place, local: Name) -> Done<()> {
    let mut loops = vec![nest.loop_at(place)?];
    let mut at = place.clone();
    while let [Stmt::For { .. }] = loops.last().map_or(&[][..], |inner| &inner.body) {
        at = at.inside(0);
        loops.push(nest.loop_at(&at)?);
    }
    let body = loops.last().map(|inner| inner.body.clone()).unwrap_or_default();
    let (first, last, elem) = computed(&body, local).ok_or_else(|| {
        let refusal = Refusal::cannot(format!("no local `{local}` is computed in the innermost of these loops"));
        refusal.at(place).note("its body has to declare it, and to compute it in the statements after that")
    })?;
    let moved = &body[first..=last];
    stands_alone(nest, place, &loops[0], moved, local)?;
    let facts = nest.facts(place)?;
    let (mut shape, mut indices): (Vec<Ix>, Vec<Ix>) = (Vec::new(), Vec::new());
    for Loop { index, range, .. } in &loops {
        let changes = loops.iter().any(|other| range.hi.mentions(other.index));
        if changes || range.lo.as_constant() != Some(0) {
            let text = format!("the loop over {index} does not begin at 0, or is not always of the same length");
            let refusal = Refusal::cannot(text);
            return Err(refusal.at(place).note(format!("its range is {}..{}", range.lo, range.hi)));
        }
        shape.push(room(&facts, &Range::to(range.hi.clone()))?);
        indices.push(Ix::var(*index));
    }
    let stage = nest.stage(place);
    let to = nest.fresh(&stage.map_or_else(|| local.to_string(), |stage| format!("{stage}_{local}")));
    let ty = TensorType::new(elem, shape);
    let around =
        |body: Vec<Stmt>| loops.iter().rev().fold(body, |body, one: &Loop| vec![Loop { body, ..one.clone() }.into()]);
    let value = nest.program.terms.reference(local, TensorType::scalar(elem))?;
    let target = Target::Element(to, indices.clone().into());
    let store = Stmt::Assign { target, op: None, value };
    let own = around(moved.iter().cloned().chain([store]).collect());
    let read = nest.program.terms.element(to, ty.clone(), indices)?;
    // What stands before may have another local of this name in a block.
    let mut rest = body[..first].to_vec();
    let with_element = &mut |_: &mut _, _: &[_], name, _: &[_]| Ok((name == local).then_some(read));
    rest.extend(with_reads(&mut nest.program, &body[last + 1..], with_element)?);
    let before = [Stmt::Alloc(to, ty)].into_iter().chain(stage.map(|_| Stmt::Nest(to))).chain(own);
    let block = nest.block_mut(place)?;
    // Where the label of the nest stands right before the loop, it still stands once.
    let is_labelled = place.at > 0 && block.get(place.at - 1).and_then(as_stage).is_some();
    let begin = if is_labelled { place.at - 1 } else { place.at };
    let label = stage.map(Stmt::Nest);
    let after = label.into_iter().chain(around(rest)).chain([Stmt::Free(to)]);
    block.splice(begin..=place.at, before.chain(after).collect::<Vec<_>>());
    Ok(())
}

/// The statements of a block that declare and compute a local.
fn computed(body: &[Stmt], local: Name) -> Option<(usize, usize, ElemType)> {
    let declares = |stmt: &Stmt| match stmt {
        Stmt::Local { name, elem, .. } if *name == local => Some(*elem),
        _ => None,
    };
    let first = body.iter().position(|stmt| declares(stmt).is_some())?;
    let assigns = |stmt: &Stmt| {
        let to = |stmt: &Stmt| matches!(stmt, Stmt::Assign { target: Target::Local(name), .. } if *name == local);
        statements(std::slice::from_ref(stmt)).any(to)
    };
    let last = first + body[first..].iter().rposition(assigns)?;
    Some((first, last, declares(&body[first])?))
}

/// That statements compute a local, and nothing else, from what the loop around them does not change.
fn stands_alone(nest: &Nest, place: &Place, around: &Loop, moved: &[Stmt], local: Name) -> Done<()> {
    let terms = &nest.program.terms;
    let cannot = |text: String| Err(Refusal::cannot(text).at(place));
    let (own, inside) = (declared(moved), declared(&around.body));
    let mut changed: BTreeSet<Name> = BTreeSet::new();
    for (name, _, how) in statements(&around.body).flat_map(|stmt| stmt.uses(terms)) {
        if how != Use::Read {
            changed.insert(name);
        }
    }
    if let Some(Stmt::Local { name, .. }) = moved.iter().skip(1).find(|stmt| matches!(stmt, Stmt::Local { .. })) {
        return cannot(format!("`{name}` is declared while `{local}` is computed"));
    }
    for stmt in statements(moved) {
        if matches!(stmt, Stmt::Alloc(..) | Stmt::Free(_) | Stmt::Swap(..) | Stmt::Nest(_)) {
            return cannot(format!("`{local}` is computed with buffers of its own"));
        }
        for (name, _, how) in stmt.uses(terms) {
            let is_own = own.contains(&name);
            if how != Use::Read && !is_own {
                return cannot(format!("what computes `{local}` writes `{name}`, too"));
            }
            if !is_own && (inside.contains(&name) || changed.contains(&name)) {
                return cannot(format!(
                    "`{local}` is computed from `{name}`, which the loop over {} changes",
                    around.index
                ));
            }
        }
    }
    Ok(())
}
