//! Padded layouts: rows of buffers that are multiples of a vector length (model language, Sec. 4, Def. 7).
//!
//! With a vector length V, every buffer that the program allocates gets its innermost size rounded up to a multiple of
//! V, so that its rows can be filled by whole vectors and begin where vectors begin. The caller's arrays stay dense.
//!
//! ```text
//! alloc a : f64[m, n]                      alloc a : f64[m, 4*ceil_div(n, 4)]
//!                                          for pad1 in 0..m { for pad2 in n..4*ceil_div(n, 4) { a[pad1, pad2] = 0.0 } }
//! nest a                                   nest a
//! for i in 0..m { for j in 0..n {          for i in 0..m { for j in 0..n {
//!     a[i, j] = x[i, j] + 1.0                  a[i, j] = x[i, j] + 1.0
//! } }                                      } }
//! alloc b : f64[m, n]                      alloc b : f64[m, 4*ceil_div(n, 4)]
//! nest b                                   nest b
//! for i in 0..m { for j in 0..n {          for i in 0..m { for j in 0..4*ceil_div(n, 4) {
//!     b[i, j] = a[i, j] - a[0, j]              b[i, j] = a[i, j] - a[0, j]
//! } }                                      } }
//! ```
//!
//! **Invariant: padding is zero** from the allocation on, after every nest. It is zeroed when the buffer is allocated
//! (rule d-pad-var), unless the next nest fills all of it; afterwards a loop either stays out of it or keeps it zero.
//!
//! **A loop runs over the padding** if all that depends on its index are accesses of padded buffers of this size, with
//! the index in their innermost dimension and nowhere else: reads of the caller's arrays stay inside, and no sum runs
//! over padding, since its accumulator does not depend on the index. There the operations see zeros, but for other
//! operands *any* value: `0 + 0`, `-0`, `min(0, 0)`, `sqrt(0)` are zero, `0 * e` is only if `e` is known to be finite
//! (0 * inf is not a number: Thm. 2 and 3 hold over the reals), `exp(0)`, `0 == 0`, `0 + 1` are not. Where the result
//! is not zero for all values, the padding is zeroed again right after the loop; where a domain without infinities could
//! have no result at all (a division by zero), the loop runs over the real elements.
//!
//! Needs: a program that [`verify`](crate::verify) accepts. Guarantees: so is the result; the same values bit for bit.

use std::collections::{BTreeSet, HashMap, HashSet};

use certen_core::{Binary, ElemType, Literal, Range, ReduceOp, TensorType, Term, TermId, Terms, TypeError, Unary};
use certen_index::{Cond, Ix, Verdict};
use certen_syntax::{Code, Diagnostic, Name};

use crate::ir::{LoopProgram, Mode, Stmt, Target};
use crate::rename::rebuilt;
use crate::walk::{Use, as_element, declarations, statements};

/// Rounds of looking for values that are not zero in the padding before a loop is left as it is.
const MAX_ROUNDS: usize = 8;

/// Pads the innermost dimension of every buffer to a multiple of a vector length; 1 changes nothing.
///
/// # Errors
/// E0407 for a vector length that is less than 1; E0702 for a program that is not well-formed.
pub fn pad(mut program: LoopProgram, vector: i64) -> Result<LoopProgram, Diagnostic> {
    if vector < 1 {
        let text = format!("a vector length is at least 1, not {vector}");
        return Err(Diagnostic::error(Code::E0407, None, text));
    }
    let refused = |TypeError(text)| Diagnostic::error(Code::E0702, None, format!("a layout cannot be padded: {text}"));
    let (own, names) = names_of(&program);
    let rounding = Rounding { vector };
    let padded = |name: Name, ty: &TensorType| Some((name, rounding.ty(ty).filter(|_| own.contains(&name))?));
    let (terms, moved) = rebuilt(&program, padded).map_err(refused)?;
    let index = |at: usize| Name::fresh(&format!("pad{at}"), |name| names.contains(&name));
    let mut pass = Pass { rounding, terms, moved, buffers: HashMap::new(), index: &index };
    let body = std::mem::take(&mut program.body);
    program.body = pass.block(body).map_err(refused)?;
    program.terms = pass.terms;
    Ok(program)
}

/// The buffers that the program allocates, and every name in it.
fn names_of(program: &LoopProgram) -> (HashSet<Name>, HashSet<Name>) {
    let (mut own, mut names) = (HashSet::new(), HashSet::new());
    names.extend(program.sizes.iter().copied().chain(program.given().map(|(name, _)| name)));
    for (name, stmt) in declarations(&program.body) {
        names.insert(name);
        if matches!(stmt, Stmt::Alloc(..)) {
            own.insert(name);
        }
    }
    (own, names)
}

/// Def. 7: sizes, rounded up to multiples of the vector length.
#[derive(Clone, Copy)]
struct Rounding {
    vector: i64,
}

impl Rounding {
    /// The rounded size, if it is another one.
    fn size(self, size: &Ix) -> Option<Ix> {
        let rounded = size.ceil_div(self.vector).and_then(|count| count.scale(self.vector)).ok()?;
        (rounded != *size).then_some(rounded)
    }

    /// The type with its innermost size rounded, if that changes it.
    fn ty(self, ty: &TensorType) -> Option<TensorType> {
        let (last, outer) = ty.shape.split_last()?;
        let shape: Vec<Ix> = outer.iter().cloned().chain([self.size(last)?]).collect();
        Some(TensorType::new(ty.elem, shape))
    }
}

/// A loop over `0..count`, or from another first index.
fn for_each(index: Name, lo: Ix, hi: Ix, body: Vec<Stmt>) -> Stmt {
    Stmt::For { index, range: Range { lo, hi }, mode: Mode::Serial, body }
}

/// Whether a statement, or one inside it, assigns an element of a buffer.
fn writes(stmt: &Stmt, name: Name) -> bool {
    let is_write = |stmt: &Stmt| matches!(stmt, Stmt::Assign { target, .. } if target.name() == name);
    statements(std::slice::from_ref(stmt)).any(is_write)
}

struct Pass<'a> {
    rounding: Rounding,
    terms: Terms,
    /// Where the values of statements are in the new arena.
    moved: Vec<TermId>,
    /// The types of the buffers in scope that are padded, before they were.
    buffers: HashMap<Name, TensorType>,
    /// Indices of loops over padding, which no other name is.
    index: &'a dyn Fn(usize) -> Name,
}

impl Pass<'_> {
    fn block(&mut self, block: Vec<Stmt>) -> Result<Vec<Stmt>, TypeError> {
        let mut done: Vec<Stmt> = Vec::with_capacity(block.len());
        let mut allocated: Vec<(usize, Name, TensorType)> = Vec::new();
        for mut stmt in block {
            for inner in stmt.blocks_mut() {
                *inner = self.block(std::mem::take(inner))?;
            }
            if let Some(value) = stmt.value_mut() {
                *value = self.moved[value.index()];
            }
            let zeroed = match &mut stmt {
                Stmt::Alloc(name, ty) => {
                    if let Some(padded) = self.rounding.ty(ty) {
                        let dense = std::mem::replace(ty, padded);
                        allocated.push((done.len(), *name, dense.clone()));
                        self.buffers.insert(*name, dense);
                    }
                    None
                }
                Stmt::For { index, range, body, .. } => self.run_over_padding(*index, range, body)?,
                _ => None,
            };
            done.push(stmt);
            done.extend(zeroed);
        }
        // The next statement that computes something, for each.
        let mut next: Vec<Option<usize>> = vec![None; done.len() + 1];
        for at in (0..done.len()).rev() {
            let computes = !matches!(done[at], Stmt::Nest(_) | Stmt::Alloc(..) | Stmt::Free(_));
            next[at] = if computes { Some(at) } else { next[at + 1] };
        }
        let mut zeros: HashMap<usize, Stmt> = HashMap::new();
        for (at, name, dense) in allocated {
            if !next[at].is_some_and(|first| self.fills(&done[first], name, &dense)) {
                zeros.insert(at, self.zeroed(name, &dense)?);
            }
            self.buffers.remove(&name);
        }
        let mut stmts = Vec::with_capacity(done.len() + zeros.len());
        for (at, stmt) in done.into_iter().enumerate() {
            stmts.push(stmt);
            stmts.extend(zeros.remove(&at));
        }
        Ok(stmts)
    }

    /// Whether a statement assigns every element of a buffer, padding and all, before it does anything else with it.
    fn fills(&self, stmt: &Stmt, name: Name, dense: &TensorType) -> bool {
        let Some(padded) = self.rounding.ty(dense) else { return false };
        let mut counts: HashMap<Name, &Ix> = HashMap::new();
        let mut stmt = stmt;
        loop {
            match stmt {
                Stmt::For { index, range, body, .. } if range.lo == Ix::from(0) => {
                    counts.insert(*index, &range.hi);
                    // Locals that the element is computed with may come before.
                    let computed = body.iter().all(|stmt| match stmt {
                        Stmt::For { .. } => body.len() == 1 || !writes(stmt, name),
                        _ => true,
                    });
                    match body.last() {
                        Some(last) if computed => stmt = last,
                        _ => return false,
                    }
                }
                Stmt::Assign { target: Target::Element(written, indices), op: None, .. } => {
                    let fits = |(ix, size): (&Ix, &Ix)| ix.as_var().and_then(|i| counts.remove(&i)) == Some(size);
                    return *written == name && indices.iter().zip(padded.shape.iter()).all(fits) && counts.is_empty();
                }
                _ => return false,
            }
        }
    }

    fn zero(&mut self, elem: ElemType) -> Result<TermId, TypeError> {
        self.terms.add(Term::Literal(Literal::whole(0, elem), elem))
    }

    /// The first index of the padding.
    fn behind(&self, size: &Ix) -> Result<Ix, TypeError> {
        let zero = Ix::from(0);
        match Cond::le(&zero, size) {
            Ok(goal) if goal.is_always() || self.terms.facts().prove(&goal) == Verdict::Yes => Ok(size.clone()),
            _ => Ok(size.max_with(&zero)?),
        }
    }

    /// Loops that zero the padding of a whole buffer.
    fn zeroed(&mut self, name: Name, dense: &TensorType) -> Result<Stmt, TypeError> {
        let value = self.zero(dense.elem)?;
        let indices: Vec<Name> = (1..=dense.rank()).map(self.index).collect();
        let target = Target::Element(name, indices.iter().map(|index| Ix::var(*index)).collect());
        let mut stmt = Stmt::Assign { target, op: None, value };
        for (at, (index, size)) in indices.iter().zip(dense.shape.iter()).enumerate().rev() {
            let padded = self.rounding.size(size).filter(|_| at + 1 == dense.rank());
            stmt = match padded {
                Some(padded) => for_each(*index, self.behind(size)?, padded, vec![stmt]),
                None => for_each(*index, Ix::from(0), size.clone(), vec![stmt]),
            };
        }
        Ok(stmt)
    }

    /// Lets a loop run over the padding of what it fills, if that is right; gives the loop that zeroes it again, if the
    /// padding does not stay zero.
    fn run_over_padding(&mut self, index: Name, range: &mut Range, body: &[Stmt]) -> Result<Option<Stmt>, TypeError> {
        let Some(padded) = self.rounding.size(&range.hi).filter(|_| range.lo == Ix::from(0)) else { return Ok(None) };
        let mut fill = Fill::new(&self.terms, &self.buffers, index, &range.hi);
        if fill.block(body, true).is_none() || fill.written.is_empty() || fill.find_not_zero().is_none() {
            return Ok(None);
        }
        let spoiled: BTreeSet<usize> =
            (0..fill.written.len()).filter(|&at| fill.not_zero.contains(&fill.written[at].name)).collect();
        if spoiled.iter().any(|&at| !fill.written[at].always) {
            return Ok(None);
        }
        let mut targets: Vec<(Target, ElemType)> = Vec::new();
        for at in spoiled {
            let PaddedStore { name, indices, .. } = &fill.written[at];
            let target = Target::Element(*name, indices.to_vec().into());
            let elem = self.buffers.get(name).map_or(ElemType::F64, |ty| ty.elem);
            if !targets.iter().any(|(other, _)| *other == target) {
                targets.push((target, elem));
            }
        }
        let first = self.behind(&range.hi)?;
        range.hi = padded.clone();
        let mut again = Vec::with_capacity(targets.len());
        for (target, elem) in targets {
            again.push(Stmt::Assign { target, op: None, value: self.zero(elem)? });
        }
        Ok((!again.is_empty()).then(|| for_each(index, first, padded, again)))
    }
}

/// An element of a padded buffer that a loop over its innermost dimension writes.
struct PaddedStore<'a> {
    name: Name,
    indices: &'a [Ix],
    /// Whether each round of the loop writes just this element: it stands in no other loop and under no condition.
    always: bool,
}

/// A loop over the innermost dimension of what it writes: may it run over the padding, and what stays zero there?
struct Fill<'a> {
    terms: &'a Terms,
    buffers: &'a HashMap<Name, TensorType>,
    index: Name,
    size: &'a Ix,
    written: Vec<PaddedStore<'a>>,
    /// The locals of the loop's body.
    locals: HashSet<Name>,
    /// Values with the local or buffer that they are given to, and how they are combined with what is in it.
    values: Vec<(Name, Option<ReduceOp>, TermId)>,
    /// Locals and buffers that may have another value than zero in the padding.
    not_zero: HashSet<Name>,
}

/// What is known of a value in the padding, for all values of what does not depend on the loop's index.
#[derive(Clone, Copy, Default)]
struct InPadding {
    zero: bool,
    finite: bool,
}

impl<'a> Fill<'a> {
    fn new(terms: &'a Terms, buffers: &'a HashMap<Name, TensorType>, index: Name, size: &'a Ix) -> Fill<'a> {
        let (written, values) = (Vec::new(), Vec::new());
        Fill { terms, buffers, index, size, written, locals: HashSet::new(), values, not_zero: HashSet::new() }
    }

    fn depends(&self, indices: &[Ix]) -> bool {
        indices.iter().any(|ix| ix.mentions(self.index))
    }

    /// Whether an access that depends on the index can be made in the padding.
    fn has_padding(&self, name: Name, indices: &[Ix]) -> bool {
        let Some((last, outer)) = indices.split_last() else { return false };
        let size = self.buffers.get(&name).and_then(|ty| ty.shape.last());
        size == Some(self.size) && last.as_var() == Some(self.index) && !self.depends(outer)
    }

    /// Looks at every statement; none if the loop must not leave the real elements.
    fn block(&mut self, block: &'a [Stmt], always: bool) -> Option<()> {
        for stmt in block {
            match stmt {
                Stmt::Alloc(..) | Stmt::Free(_) | Stmt::Swap(..) => return None,
                Stmt::For { .. } | Stmt::If { .. } => {
                    let mut names = BTreeSet::new();
                    stmt.holds_in(0).ok()?.collect_names(&mut names);
                    if names.contains(&self.index) {
                        return None;
                    }
                }
                Stmt::Local { name, init, .. } => {
                    self.locals.insert(*name);
                    self.values.extend(init.map(|value| (*name, None, value)));
                }
                Stmt::Assign { target, op, value } => {
                    match target {
                        Target::Local(name) if self.locals.contains(name) => {}
                        Target::Element(name, indices) if self.has_padding(*name, indices) => {
                            self.written.push(PaddedStore { name: *name, indices, always });
                        }
                        _ => return None,
                    }
                    self.values.push((target.name(), *op, *value));
                }
                _ => {}
            }
            let outside =
                |(read, indices, _): (Name, &[Ix], Use)| self.depends(indices) && !self.has_padding(read, indices);
            if stmt.uses(self.terms).into_iter().any(outside) {
                return None;
            }
            for inner in stmt.blocks() {
                self.block(inner, false)?;
            }
        }
        Some(())
    }

    /// Finds what may have another value than zero: all that is given such a value, until nothing is added. None if a
    /// value might not exist in some domain, or if this takes too long.
    fn find_not_zero(&mut self) -> Option<()> {
        for _ in 0..MAX_ROUNDS {
            let mut changed = false;
            for at in 0..self.values.len() {
                let (name, op, value) = self.values[at];
                let known = self.known(value)?;
                let old = InPadding { zero: !self.not_zero.contains(&name), finite: false };
                let elem = self.terms.ty(value).elem;
                let zero = op.map_or(Some(known), |op| binary(op.combine(), elem, old, known))?.zero;
                changed |= !zero && self.not_zero.insert(name);
            }
            if !changed {
                return Some(());
            }
        }
        None
    }

    fn known(&self, root: TermId) -> Option<InPadding> {
        let mut found: HashMap<TermId, InPadding> = HashMap::new();
        for id in self.terms.parts_first(root) {
            let of = |part: &TermId| found.get(part).copied().unwrap_or_default();
            let elem = |part: &TermId| self.terms.ty(*part).elem;
            let mut known = match self.terms.get(id) {
                Term::Ref(name, ty) if ty.is_scalar() => {
                    InPadding { zero: self.locals.contains(name) && !self.not_zero.contains(name), finite: false }
                }
                Term::Select(..) => {
                    let (name, _, indices) = as_element(self.terms, id)?;
                    InPadding { zero: self.depends(indices) && !self.not_zero.contains(&name), finite: false }
                }
                Term::Literal(literal, elem) => InPadding {
                    zero: *literal == Literal::whole(0, *elem) || *literal == Literal::Bool(false),
                    finite: !matches!(literal, Literal::Float(value) if !value.is_finite()),
                },
                Term::Index(ix, _) => InPadding { zero: ix.as_constant() == Some(0), finite: true },
                Term::Unary(op, a) => unary(*op, of(a))?,
                Term::Binary(op, a, b) => binary(*op, elem(a), of(a), of(b))?,
                Term::Choose(_, a, b) => {
                    InPadding { zero: of(a).zero && of(b).zero, finite: of(a).finite && of(b).finite }
                }
                Term::Fma(a, b, c) => {
                    let product = binary(Binary::Mul, elem(a), of(a), of(b))?;
                    binary(Binary::Add, elem(a), product, of(c))?
                }
                // A number of another type is as zero as before; a large one can become infinite.
                Term::Cast(to, a) => {
                    let fits = *to == ElemType::F64 || elem(a) != ElemType::F64;
                    InPadding { zero: of(a).zero, finite: of(a).finite && fits }
                }
                _ => InPadding::default(),
            };
            known.finite |= known.zero || !self.terms.ty(id).elem.is_float();
            found.insert(id, known);
        }
        found.get(&root).copied()
    }
}

/// What an operation gives; none if it might give nothing in a domain without infinities.
fn unary(op: Unary, a: InPadding) -> Option<InPadding> {
    let whole = InPadding { zero: a.zero, finite: a.finite };
    Some(match op {
        Unary::Neg | Unary::Abs | Unary::Floor | Unary::Ceil | Unary::Round => whole,
        Unary::Sqrt if a.zero => whole,
        Unary::Not => InPadding::default(),
        Unary::Sqrt => return None,
        function => {
            let function = function.function().filter(|function| function.is_total())?;
            InPadding { zero: a.zero && function.double(&[0.0]) == 0.0, finite: false }
        }
    })
}

/// The same of two values.
fn binary(op: Binary, elem: ElemType, a: InPadding, b: InPadding) -> Option<InPadding> {
    let both = a.zero && b.zero;
    // An integer is finite, so that a product with zero is zero.
    let finite = |known: InPadding| known.finite || !elem.is_float();
    let zero = match op {
        Binary::Add | Binary::Sub | Binary::Min | Binary::Max | Binary::Or => both,
        Binary::Mul => (a.zero && (b.zero || finite(b))) || (b.zero && finite(a)),
        Binary::And => a.zero || b.zero,
        // Zero divided by anything is zero here, and by zero too.
        Binary::FloorDiv | Binary::Mod => a.zero,
        Binary::ControlledDiv if a.zero => true,
        Binary::Div | Binary::ControlledDiv => return None,
        _ if op.function().is_some() => return None,
        _ => false,
    };
    let finite = matches!(op, Binary::Min | Binary::Max) && a.finite && b.finite;
    Some(InPadding { zero, finite })
}
