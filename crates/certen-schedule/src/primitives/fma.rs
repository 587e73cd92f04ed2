//! `fma`: products that are added are fused with the addition, and rounded once.
//!
//! `a * b + c` becomes `fma(a, b, c)`, wherever it stands in a value, and `acc += a * b` becomes `acc = fma(a, b, acc)`. Of
//! two products that are added, the left one is fused: `a * b + c * d` is `fma(a, b, c * d)`. Differences are sums of
//! what is negated, which is exact: `c - a * b` is `fma(-a, b, c)`.

use std::collections::HashMap;

use certen_core::{Binary, ElemType, ReduceOp, TensorType, Term, TermId, Terms, TypeError, Unary};
use certen_loops::{LoopProgram, Stmt, Target, sites};
use certen_syntax::{Code, Diagnostic, Name};

use super::{Example, Primitive};
use crate::nest::Nest;
use crate::place::Place;
use crate::refusal::{Done, Refusal};

pub(crate) const PRIMITIVE: Primitive = Primitive {
    name: "fma",
    usage: "fma(loop) or fma(stage)",
    about: "In a loop or a stage, `a * b + c` becomes `fma(a, b, c)`, which rounds once, and `acc += a * b` becomes \
            `acc = fma(a, b, acc)`. Of two products that are added, the left one is fused. Only floats have it. What \
            other steps do with sums, such as partial sums, they do not do with this: take it last.",
    legal: "Always: over real numbers nothing changes. A rounding less can change the last bits, as another order of a \
            sum does.",
    peers: "C: fma and FP_CONTRACT; Exo: replace with an instruction; Halide and TVM leave it to LLVM",
    example: Example {
        program: "loops dot\nsize n\nwhere n >= 0\ninput a : f64[n]\ninput b : f64[n]\noutput s : f64[]\nnest s\n\
                  local acc : f64 = 0.0\nfor k in 0..n {\n    acc += a[k] * b[k]\n}\ns = acc\n",
        steps: "fma(k)",
    },
    apply: |nest, args| {
        let (path, span) = args.path("a loop or a stage")?;
        args.end()?;
        let stage = path.parts.first().copied().filter(|_| path.parts.len() == 1 && path.nth.is_none());
        let places = match stage.map(|stage| stage_of(nest, stage)) {
            Some(places) if !places.is_empty() => places,
            _ => vec![nest.find((path, span))?],
        };
        if fma(nest, &places)? {
            return Ok(());
        }
        let refusal: Refusal =
            Diagnostic::error(Code::E0803, None, format!("no product of floats is added in `{path}`")).into();
        Err(refusal.at_all(&places))
    },
};

/// The statements of a stage.
fn stage_of(nest: &Nest, wanted: Name) -> Vec<Place> {
    let mut found: Vec<Place> = Vec::new();
    for site in sites(&nest.program.body) {
        let place = Place::of(&site);
        let is_new = !found.last().is_some_and(|outer| outer.contains(&place));
        if site.nest == Some(wanted) && is_new && !matches!(site.stmt, Stmt::Nest(_)) {
            found.push(place);
        }
    }
    found
}

/// Whether a statement itself, not those inside it, adds a product of floats.
pub(crate) fn adds_product(terms: &Terms, stmt: &Stmt) -> bool {
    let Some(value) = stmt.value() else { return false };
    let is_product =
        |id: TermId| matches!(terms.get(id), Term::Binary(Binary::Mul, ..)) && terms.ty(id).elem.is_float();
    let is_sum = matches!(stmt, Stmt::Assign { op: Some(ReduceOp::Sum), .. });
    let adds = |id: &TermId| match *terms.get(*id) {
        Term::Binary(Binary::Add | Binary::Sub, left, right) => is_product(left) || is_product(right),
        _ => false,
    };
    is_sum && is_product(value) || terms.parts_first(value).iter().any(adds)
}

/// Fuses in the statements at some places; false if there is nothing to fuse.
pub(crate) fn fma(nest: &mut Nest, places: &[Place]) -> Done<bool> {
    if nest.strict {
        let refusal = Refusal::cannot("a fused multiply-add rounds once instead of twice");
        return Err(refusal.note("every operation has to be made as written: floating point is strict"));
    }
    let mut fuse = Fuse { known: HashMap::new(), count: 0, place: None, buffers: Vec::new() };
    for place in places {
        let Some(stmt) = nest.stmt(place).cloned() else { continue };
        fuse.place = Some(place.clone());
        let stmt = fuse.stmt(nest, &stmt)?;
        nest.replace(place, [stmt])?;
    }
    Ok(fuse.count > 0)
}

struct Fuse {
    /// Values that were looked at, and what they have become.
    known: HashMap<TermId, TermId>,
    count: usize,
    /// Where the statement stands.
    place: Option<Place>,
    /// Buffers that are allocated inside it.
    buffers: Vec<(Name, TensorType)>,
}

impl Fuse {
    fn block(&mut self, nest: &mut Nest, block: &[Stmt]) -> Done<Vec<Stmt>> {
        let mark = self.buffers.len();
        let out = block.iter().map(|stmt| self.stmt(nest, stmt)).collect();
        self.buffers.truncate(mark);
        out
    }

    fn stmt(&mut self, nest: &mut Nest, stmt: &Stmt) -> Done<Stmt> {
        let mut stmt = stmt.clone();
        stmt.map_blocks(|_, inner| self.block(nest, &inner))?;
        if let Some(value) = stmt.value_mut() {
            *value = self.value(&mut nest.program, *value)?;
        }
        match &mut stmt {
            Stmt::Alloc(name, ty) => self.buffers.push((*name, ty.clone())),
            Stmt::Assign { target, op: op @ Some(ReduceOp::Sum), value } => {
                let elem = nest.program.terms.ty(*value).elem;
                if let Term::Binary(Binary::Mul, a, b) = *nest.program.terms.get(*value)
                    && elem.is_float()
                {
                    let old = self.read(nest, target, elem)?;
                    self.count += 1;
                    *value = nest.program.terms.add(Term::Fma(a, b, old))?;
                    *op = None;
                }
            }
            _ => {}
        }
        Ok(stmt)
    }

    /// What a target holds.
    fn read(&self, nest: &mut Nest, target: &Target, elem: ElemType) -> Done<TermId> {
        let scalar = TensorType::scalar(elem);
        Ok(match target {
            Target::Local(name) => nest.program.terms.reference(*name, scalar)?,
            Target::Element(name, indices) => {
                let inside = self.buffers.iter().rev().find(|(known, _)| known == name).map(|(_, ty)| ty);
                let outside = || self.place.as_ref().and_then(|place| nest.type_at(place, *name));
                let ty = inside.or_else(outside).cloned().unwrap_or(scalar);
                nest.program.terms.element(*name, ty, indices.clone())?
            }
        })
    }

    /// A value in which sums with products are fused.
    fn value(&mut self, program: &mut LoopProgram, root: TermId) -> Result<TermId, TypeError> {
        for id in program.terms.parts_first(root) {
            if self.known.contains_key(&id) {
                continue;
            }
            let term = program.terms.get(id).clone();
            let is_float = program.terms.ty(id).elem.is_float();
            let to = |part: TermId| self.known.get(&part).copied().unwrap_or(part);
            let product = |id: TermId| match *program.terms.get(id) {
                Term::Binary(Binary::Mul, a, b) => Some((to(a), to(b))),
                _ => None,
            };
            let fused = match term {
                Term::Binary(op @ (Binary::Add | Binary::Sub), left, right) if is_float => {
                    match (op, product(left), product(right)) {
                        (Binary::Add, Some((a, b)), _) => Some((a, b, to(right), None)),
                        (Binary::Add, None, Some((a, b))) => Some((a, b, to(left), None)),
                        (_, Some((a, b)), _) => Some((a, b, to(right), Some(2))),
                        (_, None, Some((a, b))) => Some((a, b, to(left), Some(0))),
                        _ => None,
                    }
                }
                _ => None,
            };
            let new = match fused {
                Some((a, b, c, negated)) => {
                    self.count += 1;
                    let mut parts = [a, b, c];
                    if let Some(part) = negated.and_then(|at: usize| parts.get_mut(at)) {
                        *part = program.terms.add(Term::Unary(Unary::Neg, *part))?;
                    }
                    let [a, b, c] = parts;
                    program.terms.add(Term::Fma(a, b, c))?
                }
                None if matches!(term, Term::Ref(..) | Term::Select(..) | Term::Index(..)) => id,
                None => {
                    let moved = term.with_parts(to);
                    program.terms.add(moved)?
                }
            };
            self.known.insert(id, new);
        }
        Ok(self.known.get(&root).copied().unwrap_or(root))
    }
}
