//! Copies of what a step reads later than it replaces it.
//!
//! Of a read inside loops, those that its indices follow from the outermost on decide where the copy is made: in the innermost of
//! them. Over the other loops that it follows the copy has a dimension each: `A[i, k]` in loops over `i` and `j` is a local of each
//! row `i`, and `A[k, j]` a row that is copied at the beginning of the step. With a copy of a state that has all of its dimensions
//! nothing would be gained.
//!
//! What the innermost loop does not change is read once, too: C compilers cannot see that it stays the same where a buffer is
//! written.
//!
//! Needs: reads inside a step. Guarantees: the same values are read; every access is in bounds, as the verifier shows.

use std::collections::{BTreeSet, HashSet};

use certen_core::{Range, TensorType, TypeError};
use certen_index::{Ix, IxError};
use certen_syntax::Name;

use super::Late;
use crate::ir::{LoopProgram, Mode, Stmt, Target};
use crate::verify::verify;
use crate::walk::{Site, Use, as_element, declared, sites};

/// A read that is to be of a copy.
struct Copy<'a> {
    reads: Vec<&'a Site<'a>>,
    at: &'a [Ix],
    /// Where the copy is made: the way through the blocks of the step.
    way: Vec<(usize, usize)>,
    /// The loops over what it has dimensions for.
    dims: Vec<(Name, &'a Range)>,
}

/// The program with these reads of a state from copies; none if that cannot be, or gains nothing.
pub(super) fn saved(
    program: &LoopProgram,
    iteration: &Site<'_>,
    kept: Name,
    late: &[Late<'_>],
) -> Result<Option<LoopProgram>, TypeError> {
    let Stmt::For { body, .. } = iteration.stmt else { return Ok(None) };
    let inside = sites(body);
    let (mut needed, mut constant): (Vec<Copy<'_>>, Vec<Copy<'_>>) = (Vec::new(), Vec::new());
    for site in &inside {
        for (name, at, how) in site.stmt.uses(&program.terms) {
            if name != kept || how != Use::Read {
                continue;
            }
            let is_late = late.iter().any(|(other, read)| std::ptr::eq(other.stmt, site.stmt) && *read == at);
            let Some(copy) = Copy::of(program, site, at) else {
                if is_late {
                    return Ok(None);
                }
                continue;
            };
            let is_constant = site.loops().last().is_some_and(|(index, _)| !at.iter().any(|ix| ix.mentions(index)));
            let list = match (is_late, is_constant && copy.dims.is_empty()) {
                (true, _) => &mut needed,
                (false, true) => &mut constant,
                (false, false) => continue,
            };
            match list.iter_mut().find(|other| other.at == at && other.way == copy.way) {
                Some(other) => other.reads.push(site),
                None => list.push(copy),
            }
        }
    }
    let needs = needed.len();
    needed.extend(constant);
    for copies in [&needed[..], &needed[..needs]] {
        let changed = with_copies(program, iteration, kept, copies)?;
        if verify(&changed).is_empty() {
            return Ok(Some(changed));
        }
    }
    Ok(None)
}

impl<'a> Copy<'a> {
    fn of(program: &LoopProgram, site: &'a Site<'a>, at: &'a [Ix]) -> Option<Copy<'a>> {
        if site.conds().next().is_some() {
            return None;
        }
        let follows = |index: &Name| at.iter().any(|ix| ix.mentions(*index));
        let loops: Vec<(Name, &Range)> = site.loops().collect();
        let before = loops.iter().take_while(|(index, _)| follows(index)).count();
        let dims: Vec<(Name, &Range)> = loops[before..].iter().copied().filter(|(index, _)| follows(index)).collect();
        // The copy has a fixed size, and its loops run as often wherever the read is.
        let is_fixed = dims.iter().all(|(_, range)| {
            let mut names = BTreeSet::new();
            range.hi.collect_names(&mut names);
            let is_size = names.iter().all(|name| program.sizes.contains(name));
            is_size && !loops[before..].iter().any(|(index, _)| range.lo.mentions(*index))
        });
        let way = site.around[..before].iter().map(|around| (around.at, around.block)).collect();
        (is_fixed && dims.len() < at.len()).then(|| Copy { reads: vec![site], at, way, dims })
    }
}

fn with_copies(
    program: &LoopProgram,
    iteration: &Site<'_>,
    kept: Name,
    copies: &[Copy<'_>],
) -> Result<LoopProgram, TypeError> {
    let mut changed = program.clone();
    let Stmt::For { body, .. } = iteration.stmt else { return Ok(changed) };
    let mut body = body.clone();
    let mut taken: HashSet<Name> = declared(&program.body);
    taken.extend(program.sizes.iter().copied().chain(program.given().map(|(name, _)| name)));
    let mut fresh = |base: &str| {
        let name = Name::fresh(base, |name| taken.contains(&name));
        taken.insert(name);
        name
    };
    let mut made = Vec::new();
    for copy in copies {
        let Some(ty) = copy.reads.iter().find_map(|site| ty_of(program, site, kept)) else { continue };
        let name = fresh(&format!("{kept}_kept"));
        let shape: Vec<Ix> = copy.dims.iter().map(|(_, range)| range.hi.clone()).collect();
        let own = TensorType::new(ty.elem, shape);
        let vars = |names: &[Name]| names.iter().map(|name| Ix::var(*name)).collect::<Vec<Ix>>();
        let dims: Vec<Name> = copy.dims.iter().map(|(index, _)| *index).collect();
        let read = match dims.is_empty() {
            true => changed.terms.reference(name, TensorType::scalar(ty.elem))?,
            false => changed.terms.element(name, own.clone(), vars(&dims))?,
        };
        for site in &copy.reads {
            let way: Vec<(usize, usize)> = site.around.iter().map(|around| (around.at, around.block)).collect();
            let Some(value) = block_at(&mut body, &way).and_then(|block| block.get_mut(site.at)?.value_mut()) else {
                continue;
            };
            *value = changed.terms.rewrite(*value, |terms, id, term| match as_element(terms, id) {
                Some((from, _, at)) if from == kept && at == copy.at => Ok(read),
                _ => terms.add(term),
            })?;
        }
        let mut first = Vec::new();
        if dims.is_empty() {
            let init = changed.terms.element(kept, ty.clone(), copy.at.to_vec())?;
            first.push(Stmt::Local { name, elem: ty.elem, init: Some(init) });
        } else {
            let indices: Vec<Name> = dims.iter().map(|index| fresh(index.as_str())).collect();
            let at = renamed(copy.at, &dims, &indices)?;
            let value = changed.terms.element(kept, ty.clone(), at)?;
            let store = Stmt::Assign { target: Target::Element(name, vars(&indices).into()), op: None, value };
            let around = copy.dims.iter().zip(&indices).rev();
            let copied = around.fold(store, |inner, ((_, range), index)| Stmt::For {
                index: *index,
                range: (*range).clone(),
                mode: Mode::Serial,
                body: vec![inner],
            });
            first.push(Stmt::Alloc(name, own));
            first.extend(copy.way.is_empty().then_some(Stmt::Nest(name)));
            first.push(copied);
        }
        made.push((&copy.way, first, (!dims.is_empty()).then_some(Stmt::Free(name))));
    }
    // Those further inside first: what is put in moves what comes after it.
    made.sort_by_key(|(way, ..)| std::cmp::Reverse(way.len()));
    for (way, first, last) in made {
        if let Some(block) = block_at(&mut body, way) {
            block.splice(0..0, first);
            block.extend(last);
        }
    }
    let way: Vec<(usize, usize)> = iteration.around.iter().map(|around| (around.at, around.block)).collect();
    let place = block_at(&mut changed.body, &way).and_then(|block| block.get_mut(iteration.at));
    if let Some(Stmt::For { body: old, .. }) = place {
        *old = body;
    }
    Ok(changed)
}

/// The type of a buffer that a statement reads.
fn ty_of(program: &LoopProgram, site: &Site<'_>, name: Name) -> Option<TensorType> {
    let parts = program.terms.parts_first(site.stmt.value()?);
    parts
        .into_iter()
        .find_map(|id| as_element(&program.terms, id).filter(|(of, ..)| *of == name).map(|(_, ty, _)| ty.clone()))
}

fn renamed(at: &[Ix], from: &[Name], to: &[Name]) -> Result<Vec<Ix>, IxError> {
    let other = |name: Name| from.iter().position(|index| *index == name).map(|place| Ix::var(to[place]));
    at.iter().map(|ix| ix.substitute(&other)).collect()
}

/// The block at the end of a way.
fn block_at<'a>(mut block: &'a mut Vec<Stmt>, way: &[(usize, usize)]) -> Option<&'a mut Vec<Stmt>> {
    for (at, number) in way {
        block = block.get_mut(*at)?.blocks_mut().nth(*number)?;
    }
    Some(block)
}
