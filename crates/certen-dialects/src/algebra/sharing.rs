//! Common subexpressions (model language, Sec. 5): values that are computed once though they are written more often.
//!
//! Value numbering: expressions that apply the same operation to the same values have the same value. Parentheses do
//! not count, `+` and `*` entry by entry commute, and a name has the value of the assignment that reaches it, so that
//! equal values are found across statements, and never across a redefinition.
//!
//! Then, from whole values to their parts, each value that occurs more than once is shared if that pays:
//!
//! - it is a reduction, a contraction or an operation entry by entry. Never a tensor product, of which only what is
//!   asked for is computed, and never a transposition, diagonal, slice or expansion, which compute nothing. What is an
//!   operation on nothing but products and expansions counts as one: no outer product is ever stored;
//! - an element of it is evaluated once for each element of the result and each index of the reductions around it. The
//!   sum of this over all occurrences is larger than the number of its elements for some sizes and smaller for none
//!   ([`Ix::never_less_than`]): for a slice or a trace of a large product the whole is not computed.
//!
//! A statement whose value is already held shows what holds it. Needs: a typed program. Guarantees: within an element,
//! every operation stays and keeps its order, so results are the same bit for bit (up to which of two NaNs a sum of
//! NaNs is); one pass up and one down, without recursion.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use certen_index::Ix;
use certen_syntax::Name;

use super::ast::{Arith, Expr, ExprId, Pair};
use super::flow::Origin;
use super::typed::Typed;

/// What holds a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Holder {
    /// Memory as it was before the first statement.
    Input(Name),
    /// The binding of a statement.
    Stmt(usize),
    /// One of [`Sharing::shared`].
    Shared(usize),
}

/// A value with a binding of its own.
#[derive(Clone, Copy, Debug)]
pub struct Shared {
    /// What it is called; nothing else in the program is.
    pub name: Name,
    /// Where it first occurs.
    pub expr: ExprId,
    /// The statement before which it is bound.
    pub stmt: usize,
}

/// Which values are held where. Only live statements take part.
pub struct Sharing {
    /// The values with bindings of their own, in order.
    pub shared: Vec<Shared>,
    /// For each expression, what holds its value, if that is not computed in its place.
    pub held: Vec<Option<Holder>>,
    /// For each statement, what holds its value: its own binding, or another one.
    pub stmts: Vec<Option<Holder>>,
}

/// A value by its number; the parts of a value have smaller ones.
type ValueId = u32;

/// What makes values equal.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    /// The value of a name before the first statement.
    Input(Name),
    /// A name that holds a value which is not shared: reading it is not computing it.
    Held(ValueId),
    /// An operation; its parts are values.
    Made(Expr),
}

struct NumberedValue {
    parts: Vec<ValueId>,
    /// How many elements it has, unless that is too large.
    size: Option<Ix>,
    /// How often an element of it evaluates one of each part; none is once, or more often than can be counted.
    inner: Option<Ix>,
    /// Whether it stands in memory, or something of its size does that it is made from.
    solid: bool,
    /// Whether its occurrences may read one binding.
    shareable: bool,
    /// Whether it is what a name holds.
    leaf: bool,
}

impl NumberedValue {
    fn readable(&self) -> bool {
        self.leaf || self.shareable
    }
}

impl Sharing {
    /// Nothing is shared: every statement has its own binding, and names read the ones that reach them.
    pub fn none(typed: &Typed) -> Sharing {
        let read = |(expr, origin): (&Expr, &Option<Origin>)| match (expr, origin) {
            (Expr::Var(_), Some(Origin::Stmt(at))) => Some(Holder::Stmt(*at)),
            (Expr::Var(name), _) => Some(Holder::Input(*name)),
            _ => None,
        };
        let live = |(at, live): (usize, &bool)| live.then_some(Holder::Stmt(at));
        Sharing {
            shared: Vec::new(),
            held: typed.program.exprs.iter().zip(&typed.flow.reads).map(read).collect(),
            stmts: typed.flow.live.iter().enumerate().map(live).collect(),
        }
    }

    /// Whether every live statement has its own binding and no value one besides.
    pub fn is_none(&self) -> bool {
        let own = |(at, holder): (usize, &Option<Holder>)| holder.is_none_or(|holder| holder == Holder::Stmt(at));
        self.shared.is_empty() && self.stmts.iter().enumerate().all(own)
    }

    /// Finds what a program can share.
    pub fn of(typed: &Typed) -> Sharing {
        let mut numbering = Numbering {
            typed,
            numbers: HashMap::new(),
            values: Vec::new(),
            of: Vec::with_capacity(typed.program.exprs.len()),
        };
        for at in 0..typed.program.exprs.len() {
            let value = numbering.number(ExprId(at as u32));
            numbering.of.push(value);
        }
        let bound = numbering.worthwhile();
        numbering.plan(&bound)
    }
}

struct Numbering<'a> {
    typed: &'a Typed,
    numbers: HashMap<Key, ValueId>,
    values: Vec<NumberedValue>,
    /// The value of each expression.
    of: Vec<ValueId>,
}

impl Numbering<'_> {
    /// The value of an expression whose parts have theirs.
    fn number(&mut self, id: ExprId) -> ValueId {
        let program = &self.typed.program;
        let ordered = |(a, b): Pair| (a.min(b), a.max(b));
        let made = program.expr(id).map(|part| ExprId(self.of[part.index()]));
        let key = match made {
            Expr::Var(name) => match self.typed.flow.reads[id.index()] {
                Some(Origin::Stmt(at)) => {
                    let held = self.of[program.stmts[at].value.index()];
                    if self.values[held as usize].readable() {
                        return held;
                    }
                    Key::Held(held)
                }
                _ => Key::Input(name),
            },
            Expr::Paren(inner) => return inner.0,
            Expr::Elem(op @ (Arith::Add | Arith::Mul), a, b) => Key::Made(Expr::Elem(op, a.min(b), a.max(b))),
            Expr::Transp(pairs, e) => Key::Made(Expr::Transp(pairs.into_iter().map(ordered).collect(), e)),
            Expr::Contr(pairs, e) => Key::Made(Expr::Contr(pairs.into_iter().map(ordered).collect(), e)),
            Expr::Diag(i0, i1, e) => Key::Made(Expr::Diag(i0.min(i1), i0.max(i1), e)),
            other => Key::Made(other),
        };
        let next = self.values.len() as ValueId;
        match self.numbers.entry(key) {
            Entry::Occupied(known) => return *known.get(),
            Entry::Vacant(new) => new.insert(next),
        };
        let value = self.value(id);
        self.values.push(value);
        next
    }

    fn value(&mut self, id: ExprId) -> NumberedValue {
        let typed = self.typed;
        let expr = typed.program.expr(id);
        let shape = typed.shape(id);
        let inner = match expr {
            Expr::Red(_, i, e) => product(reduced(typed, &[(*i, *i)], *e)),
            Expr::Contr(pairs, e) => product(reduced(typed, pairs, *e)),
            _ => None,
        };
        let solid = |part: ExprId| self.values[self.of[part.index()] as usize].solid;
        let scalar = |part: ExprId| typed.shape(part).is_empty();
        let solid = shape.is_empty()
            || match expr {
                Expr::Var(_) | Expr::Red(..) | Expr::Contr(..) => true,
                Expr::Elem(_, a, b) => [*a, *b].into_iter().any(|part| !scalar(part) && solid(part)),
                Expr::Prod(a, b) => (scalar(*a) && solid(*b)) || (scalar(*b) && solid(*a)),
                Expr::Paren(e)
                | Expr::Transp(_, e)
                | Expr::Diag(_, _, e)
                | Expr::Proj(_, _, e)
                | Expr::Scale(_, e)
                | Expr::Power(_, e) => solid(*e),
                Expr::Expa(..) => false,
            };
        NumberedValue {
            parts: expr.parts().map(|part| self.of[part.index()]).collect(),
            size: product(shape.iter().map(|dim| &*dim.size)),
            inner,
            solid,
            shareable: match expr {
                Expr::Red(..) | Expr::Contr(..) => true,
                Expr::Elem(..) | Expr::Scale(..) | Expr::Power(..) => solid,
                _ => false,
            },
            leaf: matches!(expr, Expr::Var(_)),
        }
    }

    /// For each value, whether its occurrences read one binding: a statement's, or one of its own.
    fn worthwhile(&self) -> Vec<bool> {
        let program = &self.typed.program;
        let mut bound = vec![false; self.values.len()];
        let mut assigned = vec![false; self.values.len()];
        // How often each value occurs, up to 2, and how often its elements are evaluated, or less than that.
        let mut occurrences = vec![0u8; self.values.len()];
        let mut evaluations = vec![Ix::from(0); self.values.len()];
        for (stmt, _) in program.stmts.iter().zip(&self.typed.flow.live).filter(|(_, live)| **live) {
            let at = self.of[stmt.value.index()] as usize;
            if !std::mem::replace(&mut assigned[at], true) {
                occurrences[at] = 1;
                evaluations[at] = self.values[at].size.clone().unwrap_or(Ix::from(0));
            }
        }
        for (at, value) in self.values.iter().enumerate().rev() {
            let (mut occurs, mut evaluated) = (occurrences[at], std::mem::replace(&mut evaluations[at], Ix::from(0)));
            if occurs == 0 {
                continue;
            }
            if let Some(size) = &value.size
                && value.shareable
                && (assigned[at] || occurs > 1 && evaluated != *size && evaluated.never_less_than(size, &|_| 1))
            {
                bound[at] = true;
                (occurs, evaluated) = (1, size.clone());
            }
            let evaluated = match &value.inner {
                // What is too much to count counts as less.
                Some(inner) => evaluated.mul(inner).unwrap_or(evaluated),
                None => evaluated,
            };
            for &part in &value.parts {
                let part = part as usize;
                occurrences[part] = occurrences[part].saturating_add(occurs).min(2);
                if let Ok(sum) = evaluations[part].add(&evaluated) {
                    evaluations[part] = sum;
                }
            }
        }
        bound
    }

    /// Where each value is held, statement by statement.
    fn plan(&self, bound: &[bool]) -> Sharing {
        let typed = self.typed;
        let program = &typed.program;
        let mut sharing = Sharing {
            shared: Vec::new(),
            held: vec![None; program.exprs.len()],
            stmts: vec![None; program.stmts.len()],
        };
        let mut known: Vec<Option<Holder>> = vec![None; self.values.len()];
        for (key, &value) in &self.numbers {
            if let Key::Input(name) = key {
                known[value as usize] = Some(Holder::Input(*name));
            }
        }
        let outputs: HashSet<Name> = typed.outputs().iter().copied().collect();
        let taken: HashSet<Name> = typed.sizes.iter().copied().chain(program.decls.iter().map(|d| d.name)).collect();
        let mut count = 0u64;
        for (at, stmt) in program.stmts.iter().enumerate().filter(|(at, _)| typed.flow.live[*at]) {
            let root = self.of[stmt.value.index()] as usize;
            for id in program.exprs_of(at) {
                let value = self.of[id.index()] as usize;
                if !self.values[value].readable() || value == root && !matches!(program.expr(id), Expr::Var(_)) {
                    continue;
                }
                if known[value].is_none() && bound[value] {
                    let name = Name::numbered("shared", &mut count, |name| taken.contains(&name));
                    known[value] = Some(Holder::Shared(sharing.shared.len()));
                    sharing.shared.push(Shared { name, expr: id, stmt: at });
                }
                sharing.held[id.index()] = known[value];
            }
            let show = known[root].filter(|holder| {
                let last = typed.flow.last.get(&stmt.target) == Some(&at) && outputs.contains(&stmt.target);
                !last || sharing.shape(typed, *holder).eq(declared(typed, stmt.target))
            });
            if self.values[root].readable() || show.is_some() {
                sharing.held[stmt.value.index()] = known[root];
            }
            let holder = show.unwrap_or(Holder::Stmt(at));
            sharing.stmts[at] = Some(holder);
            known[root].get_or_insert(holder);
            if let Some(&name) = self.numbers.get(&Key::Held(root as ValueId)) {
                known[name as usize].get_or_insert(holder);
            }
        }
        sharing
    }
}

impl Sharing {
    /// The sizes of what a holder holds.
    pub fn shape<'a>(&self, typed: &'a Typed, holder: Holder) -> Box<dyn Iterator<Item = &'a Ix> + 'a> {
        match holder {
            Holder::Input(name) => Box::new(declared(typed, name)),
            Holder::Stmt(at) => Box::new(declared(typed, typed.program.stmts[at].target)),
            Holder::Shared(at) => Box::new(typed.shape(self.shared[at].expr).iter().map(|dim| &*dim.size)),
        }
    }
}

fn declared(typed: &Typed, name: Name) -> impl Iterator<Item = &Ix> {
    typed.declared(name).into_iter().flatten().map(|(size, _)| size)
}

/// The sizes that a reduction along diagonals runs over.
fn reduced<'a>(typed: &'a Typed, pairs: &[Pair], part: ExprId) -> impl Iterator<Item = &'a Ix> {
    let shape = typed.shape(part);
    pairs.iter().filter_map(|(i, _)| shape.get(*i as usize - 1)).map(|dim| &*dim.size)
}

/// The product of sizes, unless that is too large.
fn product<'a>(sizes: impl IntoIterator<Item = &'a Ix>) -> Option<Ix> {
    sizes.into_iter().try_fold(Ix::from(1), |product, size| product.mul(size).ok())
}
