//! `mirror`: of a symmetric result, the blocks on and above the diagonal are computed, and the others copied from them.
//!
//! The loops over rows and columns are tiled, and those of the blocks of columns begin at the diagonal. What they leave
//! out lies below it: the element at row i and column j is the one at row j and column i, which has the same factors
//! in the other order, and so the same bits (BLAS: `syrk`).

use std::collections::HashMap;

use certen_core::{Binary, Range, Term, TermId, Terms};
use certen_index::Ix;
use certen_loops::{Stmt, Target};
use certen_syntax::Name;

use super::overwrite::stored;
use super::tile::tile;
use super::{Example, Primitive};
use crate::edit::Edit;
use crate::nest::Nest;
use crate::place::{Loop, Place};
use crate::refusal::{Done, Refusal};

/// The rows and columns of a block of the copy: few enough that those of both fit the first cache.
const BLOCK: i64 = 32;

pub(crate) const PRIMITIVE: Primitive = Primitive {
    name: "mirror",
    usage: "mirror(rows, columns, height, width)",
    about: "Two loops over the same range, the second one the body of the first, make a result that is the same if their \
            indices are exchanged: they are tiled, and tiles that lie wholly below the diagonal are left out. After them, what \
            is below the diagonal is copied from above, in loops that get the suffix `mirror`.",
    legal: "The value of an element has the same operands if the indices are exchanged, those of a product or a sum in any \
            order. Otherwise it is refused.",
    peers: "BLAS: syrk; Halide, TVM and TACO have nothing like it",
    example: Example {
        program: "loops gram\nsize n, p\nwhere n >= 0, p >= 0\ninput a : f64[p, n]\noutput c : f64[n, n]\nnest c\n\
                  for i in 0..n {\n    for j in 0..n {\n        local acc : f64 = 0.0\n        for k in 0..p {\n            \
                  acc += a[k, i] * a[k, j]\n        }\n        c[i, j] = acc\n    }\n}\n",
        steps: "mirror(i, j, 32, 16)",
    },
    apply: |nest, args| {
        let (rows, columns) =
            (nest.find(args.path("the loop over rows")?)?, nest.find(args.path("the loop over columns")?)?);
        let (height, width) = (args.at_least(1, "the rows of a tile")?, args.at_least(1, "the columns of a tile")?);
        args.end()?;
        mirror(nest, [&rows, &columns], [height, width])
    },
};

fn mirror(nest: &mut Nest, [rows, columns]: [&Place; 2], [height, width]: [i64; 2]) -> Done<()> {
    let (row, column) = (nest.loop_at(rows)?, nest.loop_at(columns)?);
    let is_body = row.body.len() == 1 && *columns == rows.inside(0);
    if !is_body || row.range != column.range || row.range.lo != Ix::from(0) {
        let refusal =
            Refusal::cannot(format!("{} and {} are not the rows and columns of a square", row.index, column.index));
        return Err(refusal
            .at(rows)
            .at(columns)
            .note("both have to run from 0 to the same end, the second right in the first"));
    }
    let Some((name, at)) = stored(nest, &column.body) else {
        let refusal = Refusal::cannot("the body does not store one element, and nothing else").at(columns);
        return Err(
            refusal.note("it has to end with it, to store or allocate nothing else, and not to read what it stores to")
        );
    };
    let exchange = Edit {
        indices: HashMap::from([(row.index, Ix::var(column.index)), (column.index, Ix::var(row.index))]),
        ..Edit::default()
    };
    let mirrored = exchange.block(&mut nest.program, &column.body)?;
    let across = at.iter().map(|ix| exchange.ix(ix)).collect::<Result<Box<[Ix]>, _>>()?;
    let is_plain = |index| at.iter().filter(|ix| ix.mentions(index)).eq([&Ix::var(index)]);
    let mut same = Same { terms: &nest.program.terms, known: HashMap::new() };
    if !is_plain(row.index) || !is_plain(column.index) || !same.blocks(&column.body, &mirrored) {
        let text = format!("`{name}` is not shown to be symmetric in {} and {}", row.index, column.index);
        return Err(Refusal::cannot(text).at(columns));
    }
    let ty = nest.type_at(rows, name).cloned().ok_or_else(Refusal::lost)?;
    tile(nest, &[rows.clone(), columns.clone()], &[height, width])?;
    let blocks = rows.inside(0);
    let (outer, mut inner) = (nest.loop_at(rows)?, nest.loop_at(&blocks)?);
    inner.range.lo = Ix::var(outer.index).scale(height)?.floor_div(width)?;
    nest.replace(&blocks, [inner.into()])?;
    let value = nest.program.terms.element(name, ty, across)?;
    let copy = Stmt::Assign { target: Target::Element(name, at), op: None, value };
    let mut behind = vec![below(nest, [&row, &column], copy)?];
    if let Some(stage) = nest.stage(rows).filter(|_| rows.path.is_empty()) {
        behind.insert(0, Stmt::Nest(nest.piece(stage, "mirror")));
    }
    let tiles = nest.stmt(rows).cloned().ok_or_else(Refusal::lost)?;
    nest.replace(rows, [tiles].into_iter().chain(behind))
}

/// Loops over what is below the diagonal, in blocks, of which the rows of one are the columns of the other.
fn below(nest: &mut Nest, [row, column]: [&Loop; 2], copy: Stmt) -> Done<Stmt> {
    let end = &row.range.hi;
    let [a, b] = [row, column].map(|one| nest.piece(one.index, "mirror.o"));
    let [i, j] = [row, column].map(|one| nest.piece(one.index, "mirror.i"));
    let begin = |block: Name| Ix::var(block).scale(BLOCK);
    let (down, along) = (begin(a)?.add(&Ix::var(i))?, begin(b)?.add(&Ix::var(j))?);
    let within = |left: Ix| Ok::<_, Refusal>(Range::to(Ix::from(BLOCK).min_with(&left)?));
    let (rows, columns) = (within(end.sub(&begin(a)?)?)?, within(down.sub(&begin(b)?)?)?);
    let edit = Edit { indices: HashMap::from([(row.index, down), (column.index, along)]), ..Edit::default() };
    let body = edit.block(&mut nest.program, &[copy])?;
    let body = vec![Loop::new(i, rows, vec![Loop::new(j, columns, body).into()]).into()];
    let body = vec![Loop::new(b, Range::to(Ix::var(a).add(&Ix::from(1))?), body).into()];
    Ok(Loop::new(a, Range::to(end.ceil_div(BLOCK)?), body).into())
}

/// Whether statements do the same: the operands of products and sums may have changed places, which changes no bit.
struct Same<'a> {
    terms: &'a Terms,
    known: HashMap<(TermId, TermId), bool>,
}

impl Same<'_> {
    /// Blocks, but for the element that they end with storing.
    fn blocks(&mut self, one: &[Stmt], other: &[Stmt]) -> bool {
        one.len() == other.len() && one.iter().zip(other).all(|(one, other)| self.statements(one, other))
    }

    fn statements(&mut self, one: &Stmt, other: &Stmt) -> bool {
        match (one, other) {
            (Stmt::Local { name: a, elem: p, init: Some(x) }, Stmt::Local { name: b, elem: q, init: Some(y) }) => {
                a == b && p == q && self.values(*x, *y)
            }
            (Stmt::For { index: a, range: p, body: x, .. }, Stmt::For { index: b, range: q, body: y, .. }) => {
                a == b && p == q && self.blocks(x, y)
            }
            (Stmt::Assign { target: a, op: p, value: x }, Stmt::Assign { target: b, op: q, value: y }) => {
                let is_store = |target: &Target| matches!(target, Target::Element(..));
                (a == b || is_store(a) && is_store(b)) && p == q && self.values(*x, *y)
            }
            _ => false,
        }
    }

    fn values(&mut self, one: TermId, other: TermId) -> bool {
        if let Some(known) = self.known.get(&(one, other)) {
            return *known;
        }
        let terms = self.terms;
        let is_same = match (terms.get(one), terms.get(other)) {
            (Term::Select(a, p), Term::Select(b, q)) => p == q && self.values(*a, *b),
            (Term::Unary(p, a), Term::Unary(q, b)) => p == q && self.values(*a, *b),
            (Term::Cast(p, a), Term::Cast(q, b)) => p == q && self.values(*a, *b),
            (Term::Binary(p, a, b), Term::Binary(q, c, d)) if p == q => {
                let commutes = matches!(p, Binary::Mul | Binary::Add);
                self.values(*a, *c) && self.values(*b, *d) || commutes && self.values(*a, *d) && self.values(*b, *c)
            }
            (one @ (Term::Ref(..) | Term::Literal(..) | Term::Index(..)), other) => one == other,
            _ => false,
        };
        self.known.insert((one, other), is_same);
        is_same
    }
}
