//! `fission`: a loop is distributed over the statements of its body.
//!
//! A loop in the body gets a loop of its own; so does what stands before and after it. A local or a buffer of the body that
//! is used on more than one side gets a dimension for the loop (scalar expansion): each iteration still has its own.
//! Conditions between the two loops are cut in the same way, which is always right: they depend on indices alone.

use std::collections::{HashMap, HashSet};

use certen_core::{Range, TensorType};
use certen_index::{Cond, Facts, Ix};
use certen_loops::{Stmt, Target, declarations, declared, statements};
use certen_syntax::Name;

use super::{Example, Primitive};
use crate::bounds::room;
use crate::depend::{Footprint, apart, first, second};
use crate::edit::{Edit, used};
use crate::nest::Nest;
use crate::place::{Loop, Place};
use crate::refusal::{Done, Refusal};

pub(crate) const PRIMITIVE: Primitive = Primitive {
    name: "fission",
    usage: "fission(loop, inner)",
    about: "The loop `inner`, in the body of the loop `i`, gets a loop over `i` of its own. What stands before it gets \
            the loop `i.before`, what stands after it `i.after`. A local or buffer of the body that is used on more \
            than one side gets a dimension for `i`. If there are loops in between, they are cut as well.",
    legal: "What stands from `inner` on in an iteration has nothing to do with what stands before it in a later \
            iteration, and what stands after it nothing with `inner` in a later one: neither writes what the other \
            uses.",
    peers: "Exo: fission; ISL and Pluto: loop distribution; Halide: compute_root; OpenMP 6: fission",
    example: Example {
        program: "loops product\nsize m, n, k\nwhere m >= 0, n >= 0, k >= 1\ninput a : f64[m, k]\ninput b : f64[k, n]\n\
                  output c : f64[m, n]\nnest c\nfor i in 0..m {\n    for j in 0..n {\n        local acc : f64 = 0.0\n        \
                  for l in 0..k {\n            acc += a[i, l] * b[l, j]\n        }\n        c[i, j] = acc\n    }\n}\n",
        steps: "fission(j, l)",
    },
    apply: |nest, args| {
        let outer = nest.find(args.path("a loop")?)?;
        let inner = nest.find(args.path("a loop inside it")?)?;
        args.end()?;
        if !outer.contains(&inner) {
            let (one, two) = nest.called_both(&outer, &inner);
            let refusal = Refusal::cannot(format!("{two} is not inside {one}"));
            return Err(refusal.at(&outer).at(&inner));
        }
        fission(nest, &outer, &inner).map(|_| ())
    },
};

/// Distributes the loop at a place around the statement at another place inside it; gives the places of both
/// afterwards. The inner one is then the only statement of the outer one, or of the conditions in between.
pub(crate) fn fission(nest: &mut Nest, outer: &Place, inner: &Place) -> Done<(Place, Place)> {
    let around = if let Some(Stmt::For { index, .. }) = nest.stmt(inner) { Some(*index) } else { None };
    let mut at = inner.clone();
    let mut depth = 0;
    while at.path.len() > outer.path.len() {
        at = cut(nest, &at, around)?;
        depth += 1;
    }
    let inner = (0..depth).fold(at.clone(), |place, _| place.inside(0));
    Ok((at, inner))
}

/// Cuts the statement around a place into what stands before that place, the place, and what stands after it. Gives the
/// place of the middle, whose only statement is the one at the place. `inner` is the index of the loop that gets loops of its own.
fn cut(nest: &mut Nest, at: &Place, inner: Option<Name>) -> Done<Place> {
    let (Some(around), Some(turn)) = (at.around(), at.path.last().copied()) else { return Err(Refusal::lost()) };
    match nest.stmt(&around).cloned() {
        Some(Stmt::For { index, range, mode, body }) => {
            if body.len() == 1 {
                return Ok(around);
            }
            let whole = Loop { index, range, mode, body };
            put_conditions(nest, &around, &whole, at.at, inner)?;
            let names = [nest.piece(index, "before"), index, nest.piece(index, "after")];
            let sides = Sides::of(nest, &around, &whole.body, at.at, Some((&whole.range, index, names)))?;
            let piece = |side: usize, body| Loop { index: names[side], body, ..whole.clone() }.into();
            sides.put(nest, &around, piece)
        }
        Some(Stmt::If { cond, then, otherwise }) => {
            let (cond, body, other) =
                if turn.block == 1 { (cond.not()?, otherwise, then) } else { (cond, then, otherwise) };
            if body.len() == 1 && other.is_empty() && turn.block == 0 {
                return Ok(around);
            }
            let mut sides = Sides::of(nest, &around, &body, at.at, None)?;
            if !other.is_empty() {
                // It never runs together with the others, so it can stand anywhere.
                sides.first = Some(Stmt::If { cond: cond.not()?, then: other, otherwise: Vec::new() });
            }
            sides.put(nest, &around, |_, then| Stmt::If { cond: cond.clone(), then, otherwise: Vec::new() })
        }
        _ => Err(Refusal::lost()),
    }
}

/// When a loop can be cut around a statement of its body.
fn put_conditions(nest: &mut Nest, place: &Place, whole: &Loop, at: usize, inner: Option<Name>) -> Done<()> {
    let what = inner.map_or("the cut".into(), |index| format!("the loop over {index}"));
    let facts = nest.facts(place)?;
    let i = whole.index;
    let loops = [(i, whole.range.clone())];
    let earlier = Cond::lt(&Ix::var(first(i)), &Ix::var(second(i)))?;
    let private = declared(&whole.body);
    let part = |block: &[Stmt]| nest.ordered(Footprint::beside(&nest.program, block, private.clone()));
    let (before, middle, after) = (part(&whole.body[..at]), part(&whole.body[at..=at]), part(&whole.body[at + 1..]));
    let both = part(&whole.body[at..]);
    let mut found = Vec::new();
    if !before.is_empty() {
        let status = apart(&facts, &loops, &both, &before, &earlier);
        found.push((
            format!("what stands before {what} has nothing to do with it and what follows in an earlier {i}"),
            status,
        ));
    }
    if !after.is_empty() {
        let status = apart(&facts, &loops, &after, &middle, &earlier);
        found.push((format!("what stands after {what} has nothing to do with it in a later {i}"), status));
    }
    for (what, status) in found {
        match inner {
            Some(index) => nest.condition_of(index, what, status),
            None => nest.condition(what, status),
        }
    }
    Ok(())
}

/// The sides of a cut.
const BEFORE: usize = 0;
const MIDDLE: usize = 1;
const AFTER: usize = 2;

/// Where what a body declares goes when it is cut.
struct Homes {
    /// What only one of the outer sides uses, and which.
    homes: HashMap<Name, usize>,
    /// What the middle or several sides use, with its name and type outside.
    types: HashMap<Name, (Name, TensorType)>,
    /// The same, in the order of the text.
    shared: Vec<(Name, TensorType)>,
}

impl Homes {
    fn of(
        nest: &Nest,
        place: &Place,
        body: &[Stmt],
        blocks: [&[Stmt]; 3],
        index: Option<(&Range, Name, [Name; 3])>,
    ) -> Done<Homes> {
        let facts = nest.facts(place)?;
        let uses = blocks.map(|block| used(&nest.program, block));
        let swapped = swapped(body);
        let mut found = Homes { homes: HashMap::new(), types: HashMap::new(), shared: Vec::new() };
        for stmt in body {
            let (name, ty) = match stmt {
                Stmt::Alloc(name, ty) => (*name, ty.clone()),
                Stmt::Local { name, elem, .. } => (*name, TensorType::scalar(*elem)),
                _ => continue,
            };
            if let [before, false, after] = uses.each_ref().map(|used| used.contains(&name))
                && !(before && after)
            {
                if before || after {
                    found.homes.insert(name, if before { BEFORE } else { AFTER });
                }
                continue;
            }
            if let (Some((_, index, _)), true) = (index, swapped.contains(&name)) {
                let refusal = Refusal::cannot(format!(
                    "the loop over {index} cannot be cut here: each iteration has a buffer {name} of its own, whose \
                     content it exchanges with another one"
                ));
                return Err(refusal.at(place));
            }
            let ty = expanded(&facts, name, &ty, index.map(|(range, index, _)| (range, index)))?;
            // In the block around, something else can have this name.
            let same = declarations(nest.block(place)).filter(|(other, _)| *other == name).count();
            let new = if same > 1 { nest.fresh(name.as_str()) } else { name };
            found.shared.push((new, ty.clone()));
            found.types.insert(name, (new, ty));
        }
        Ok(found)
    }
}

/// What becomes of a body that is cut.
struct Sides {
    /// Buffers of more than one side.
    shared: Vec<(Name, TensorType)>,
    /// A statement before all sides.
    first: Option<Stmt>,
    /// The statements before the cut, at it, and after it.
    bodies: [Vec<Stmt>; 3],
    /// The stage that begins before the cut.
    stage: Option<Name>,
}

impl Sides {
    /// The sides of a body that is cut around one of its statements. If it is the body of a loop, its range, its index
    /// and the index of the loop on each side are given.
    fn of(
        nest: &mut Nest,
        place: &Place,
        body: &[Stmt],
        at: usize,
        index: Option<(&Range, Name, [Name; 3])>,
    ) -> Done<Sides> {
        let body = &unmistakable(nest, body)?;
        let blocks = [&body[..at], &body[at..=at], &body[at + 1..]];
        let Homes { homes, types, shared } = Homes::of(nest, place, body, blocks, index)?;
        let mut bodies = [const { Vec::new() }; 3];
        let mut ends = [const { Vec::new() }; 3];
        let mut edits = Vec::with_capacity(3);
        for side in [BEFORE, MIDDLE, AFTER] {
            let mut edit = Edit::default();
            let mut front = Vec::new();
            if let Some((range, index, names)) = index {
                if side != MIDDLE {
                    edit.indices.insert(index, Ix::var(names[side]));
                }
                front.push(Ix::var(names[side]).sub(&range.lo)?);
            }
            edit.expanded = types.iter().map(|(name, (_, ty))| (*name, (ty.clone(), front.clone()))).collect();
            edit.names = types.iter().map(|(name, (new, _))| (*name, *new)).collect();
            edits.push(edit);
        }
        // Declarations that move to another side stand first there.
        for stmt in body {
            let name = match stmt {
                Stmt::Alloc(name, _) | Stmt::Free(name) | Stmt::Local { name, init: None, .. } => name,
                _ => continue,
            };
            if let Some(home) = homes.get(name) {
                let moved = edits[*home].stmt(&mut nest.program, stmt)?;
                let list = if let Stmt::Free(_) = stmt { &mut ends } else { &mut bodies };
                list[*home].push(moved);
            }
        }
        let mut stage = None;
        for (side, block) in blocks.into_iter().enumerate() {
            for stmt in block {
                let edited = match stmt {
                    Stmt::Alloc(..) | Stmt::Free(_) | Stmt::Local { init: None, .. } => continue,
                    Stmt::Local { name, init: Some(value), .. } if types.contains_key(name) => {
                        let assign = Stmt::Assign { target: Target::Local(*name), op: None, value: *value };
                        edits[side].stmt(&mut nest.program, &assign)?
                    }
                    other => edits[side].stmt(&mut nest.program, other)?,
                };
                if let (Stmt::Nest(name), BEFORE) = (&edited, side) {
                    stage = Some(*name);
                }
                bodies[side].push(edited);
            }
            bodies[side].append(&mut ends[side]);
        }
        Ok(Sides { shared, first: None, bodies, stage })
    }

    /// Replaces the whole by the sides, each in a statement of its own; gives the place of the middle.
    fn put(self, nest: &mut Nest, place: &Place, make: impl Fn(usize, Vec<Stmt>) -> Stmt) -> Done<Place> {
        let outer_stage = nest.stage(place);
        let mut all: Vec<Stmt> = self.shared.iter().map(|(name, ty)| Stmt::Alloc(*name, ty.clone())).collect();
        all.extend(self.first);
        let mut middle = place.at;
        for (side, body) in self.bodies.into_iter().enumerate() {
            if side == MIDDLE {
                all.extend(self.stage.map(Stmt::Nest));
                middle = place.at + all.len();
            }
            if body.iter().any(|stmt| !matches!(stmt, Stmt::Nest(_))) {
                all.push(make(side, body));
            }
        }
        all.extend(self.stage.and(outer_stage).map(Stmt::Nest));
        all.extend(self.shared.into_iter().map(|(name, _)| Stmt::Free(name)));
        nest.replace(place, all)?;
        Ok(place.beside(middle))
    }
}

/// The type of a local or buffer that has one for each iteration of a loop, or exists outside a condition.
fn expanded(facts: &Facts, name: Name, ty: &TensorType, index: Option<(&Range, Name)>) -> Done<TensorType> {
    let mut shape = Vec::with_capacity(ty.rank() + 1);
    if let Some((range, _)) = index {
        shape.push(room(facts, range)?);
    }
    for size in ty.shape.iter() {
        let largest = match index {
            Some((range, index)) => size.most_over(index, (&range.lo, &range.hi.sub(&Ix::from(1))?), true)?,
            None => Some(size.clone()),
        };
        let Some(largest) = largest else {
            return Err(Refusal::cannot(format!("the largest size of the buffer {name} is not known: {ty}")));
        };
        // Outside, the size may be negative where the loop does not run at all.
        shape.push(Range::to(largest.simplified(facts)?).extent(facts)?);
    }
    Ok(TensorType::new(ty.elem, shape))
}

/// A body in which no local or buffer is called like another one that is declared further inside.
fn unmistakable(nest: &mut Nest, body: &[Stmt]) -> Done<Vec<Stmt>> {
    let mut count: HashMap<Name, usize> = HashMap::new();
    declarations(body).for_each(|(name, _)| *count.entry(name).or_default() += 1);
    let mut body = body.to_vec();
    for at in 0..body.len() {
        if let Stmt::Alloc(name, _) | Stmt::Local { name, .. } = body[at]
            && count.get(&name).is_some_and(|count| *count > 1)
        {
            body = nest.renamed_from(&body, at, name)?;
        }
    }
    Ok(body)
}

/// The buffers that a block exchanges.
fn swapped(block: &[Stmt]) -> HashSet<Name> {
    let swaps = statements(block).filter_map(|stmt| if let Stmt::Swap(a, b) = stmt { Some([*a, *b]) } else { None });
    swaps.flatten().collect()
}
