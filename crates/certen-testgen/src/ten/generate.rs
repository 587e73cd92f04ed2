//! Well-typed `.ten` programs from arbitrary bytes: types come first, expressions are made to have them.
//!
//! The generator knows each size as a sum ([`Dim`]) and each index with its range, so it writes only accesses that are in
//! bounds for all sizes; bounds that a comprehension leaves out are fixed by an access that asks for just them. Where the
//! bytes end, the simplest choice is taken: fewer bytes give smaller programs.

mod forms;
mod index;
mod loops;
mod polymorphic;
mod whole;

use std::collections::BTreeMap;

use super::tree::{
    Arg, Block, Cond, Dim, Elem, Expr, Function, IndexFunction, Iterate, Ix, IxVec, Let, Part, Program, Sel, Slot,
    Type, TypeDim, WithOp, Written,
};

/// The largest rank of a generated tensor.
const MAX_RANK: usize = 4;

/// A tensor that can be named.
#[derive(Clone, Debug)]
pub(super) struct Var {
    pub name: String,
    pub elem: Elem,
    pub dims: Vec<Dim>,
}

/// An index and its range.
#[derive(Clone, Debug)]
struct Bound {
    name: String,
    lower: i64,
    upper: Dim,
}

/// What can be named where an expression stands.
#[derive(Clone, Default, Debug)]
struct Scope {
    /// The sizes and the least value of each.
    lows: BTreeMap<String, i64>,
    vars: Vec<Var>,
    indices: Vec<Bound>,
    /// Index vectors, from 0 to below these.
    vectors: Vec<(String, Vec<Dim>)>,
}

impl Scope {
    /// The least value of a size; very small if it is not known.
    fn low(&self, dim: &Dim) -> i64 {
        let low = |atom: &Ix| match atom {
            Ix::Name(name) => self.lows.get(name).copied().unwrap_or(0),
            _ => 0,
        };
        dim.low(&low).unwrap_or(i64::MIN / 4)
    }

    fn at_most(&self, a: &Dim, b: &Dim) -> bool {
        self.low(&b.plus(-1, a)) >= 0
    }
}

/// A parameter of a function that can be called.
#[derive(Clone, Debug)]
pub(super) enum Parameter {
    Data(Elem, Vec<Dim>),
    /// `0 <= k`, and `k` is below this.
    Index(Dim),
}

/// How the type of a polymorphic function's result tells the types of its arguments.
#[derive(Clone, Copy, Debug)]
enum Rule {
    /// So many arguments of the same type; the first size at least this.
    Same(usize, i64),
    /// The outermost size of the argument is larger by this.
    Longer(i64),
    /// The argument has one more dimension in front, of at least this size.
    InFront(i64),
    /// The argument has one more dimension at the end, of at least this size.
    AtEnd(i64),
    /// An index vector, and a tensor with dimensions for it in front.
    At,
}

/// A function that can be called.
#[derive(Clone, Debug)]
enum Known {
    Plain { name: String, sizes: Vec<(String, i64)>, params: Vec<Parameter>, results: Vec<(Elem, Vec<Dim>)> },
    Any { name: String, rule: Rule },
}

/// A generated program and what is known of `main`.
#[derive(Clone, Debug)]
pub struct TenSample {
    /// The program.
    pub program: Program,
    /// The sizes of `main` and the least value of each.
    pub(super) sizes: Vec<(String, i64)>,
    /// Its tensors.
    pub(super) tensors: Vec<Var>,
    /// Its `size` parameters, which are below these.
    pub(super) amounts: Vec<(String, Dim)>,
    /// Which elements its inputs have.
    pub(super) seed: u64,
}

/// Makes a program from bytes. Without `infer`, every bound is written.
pub(super) fn generate(bytes: &[u8], infer: bool) -> TenSample {
    let mut made =
        Generator { bytes, at: 0, next: 0, known: Vec::new(), program: Program::default(), infer, budget: 0 };
    made.helpers();
    for _ in 0..made.pick(4) {
        if made.flip() {
            made.polymorphic();
        } else {
            let Plain { name, sizes, params, results, .. } = made.plain(false);
            made.known.push(Known::Plain { name, sizes, params, results });
        }
    }
    let main = made.plain(true);
    let mut tensors = Vec::new();
    let mut amounts = Vec::new();
    for (name, param) in main.names.into_iter().zip(main.params) {
        match param {
            Parameter::Data(elem, dims) => tensors.push(Var { name, elem, dims }),
            Parameter::Index(upper) => amounts.push((name, upper)),
        }
    }
    let seed =
        bytes.iter().fold(bytes.len() as u64, |seed, byte| certen_core::domain::splitmix(seed ^ u64::from(*byte)));
    TenSample { program: made.program, sizes: main.sizes, tensors, amounts, seed }
}

struct Generator<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The number of the next name.
    next: usize,
    known: Vec<Known>,
    program: Program,
    infer: bool,
    /// How many more expressions this function may have.
    budget: usize,
}

fn lit(value: i64) -> Ix {
    Ix::Lit(value)
}

fn name(name: &str) -> Ix {
    Ix::Name(name.into())
}

fn var(name: &str) -> Expr {
    Expr::Var(name.into())
}

fn ixs(dims: &[Dim]) -> Vec<Ix> {
    dims.iter().map(Dim::ix).collect()
}

fn shape(dims: &[Dim]) -> IxVec {
    IxVec::List(ixs(dims))
}

fn data(e: Expr) -> Arg {
    Arg::Data(e)
}

fn binary(op: &'static str, a: Expr, b: Expr) -> Expr {
    Expr::Binary(op, a.into(), b.into())
}

fn type_of(elem: Elem, dims: &[Dim]) -> Type {
    Type { elem, dims: dims.iter().map(|dim| TypeDim::Size(dim.ix())).collect() }
}

impl Generator<'_> {
    /// A number below `count`; 0 where the bytes have ended.
    fn pick(&mut self, count: usize) -> usize {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        usize::from(byte) % count.max(1)
    }

    fn flip(&mut self) -> bool {
        self.pick(2) == 1
    }

    fn fresh(&mut self, base: &str) -> String {
        self.next += 1;
        format!("{base}{}", self.next)
    }

    // Functions

    /// Functions on indices, and functions that folds use.
    fn helpers(&mut self) {
        let (i, n) = (|| name("i"), || name("n"));
        if self.flip() {
            let body = match self.pick(2) {
                0 => Ix::Min(Ix::Max(i().into(), lit(0).into()).into(), n().shifted(-1).into()),
                _ => Ix::If(
                    Cond::Cmp("<", i(), lit(0)).into(),
                    lit(0).into(),
                    Ix::If(Cond::Cmp("<", i(), n()).into(), i().into(), n().shifted(-1).into()).into(),
                ),
            };
            self.program.index_functions.push(IndexFunction {
                name: "near".into(),
                params: vec!["i".into(), "n".into()],
                wheres: vec![Cond::Cmp(">=", n(), lit(1))],
                body,
            });
        }
        if self.flip() {
            let (op, identity): (&'static str, _) = [("+", 0), ("*", 1), ("-", 0)][self.pick(3)];
            let elem = if self.flip() { Elem::I64 } else { Elem::F64 };
            let of = || Type { elem, dims: Vec::new() };
            let right = if op == "+" || op == "*" { var("b") } else { binary("*", var("b"), Expr::Num(2, elem)) };
            self.program.functions.push(Function {
                name: format!("step_{}", elem.word()),
                params: vec![("a".into(), of()), ("b".into(), of())],
                results: vec![("result".into(), of())],
                stated: true,
                associative: (op != "-").then_some(identity),
                wheres: Vec::new(),
                body: Block { lets: Vec::new(), results: vec![binary(op, var("a"), right)] },
            });
        }
    }

    /// A function whose ranks are fixed.
    fn plain(&mut self, main: bool) -> Plain {
        let mut scope = Scope::default();
        let mut sizes: Vec<(String, i64)> = Vec::new();
        let mut wheres = Vec::new();
        for at in 0..1 + self.pick(3) {
            let size = ["n", "m", "k"][at].to_string();
            let low = [0, 0, 1, 2, 3][self.pick(5)];
            if low > 0 {
                wheres.push(Cond::Cmp(">=", name(&size), lit(low)));
            }
            scope.lows.insert(size.clone(), low);
            sizes.push((size, low));
        }
        let mut params: Vec<(String, Type)> = Vec::new();
        let mut kinds = Vec::new();
        // Every size is bound by a parameter of its own; more parameters have sizes made of them.
        for at in 0..sizes.len() + self.pick(3) {
            let elem = if self.flip() { Elem::F64 } else { Elem::I64 };
            let mut dims: Vec<Dim> = sizes.get(at).map(|(size, _)| Dim::name(size)).into_iter().collect();
            for _ in 0..self.pick(3) {
                let dim = self.size(&scope);
                dims.push(dim);
            }
            let mut ty = type_of(elem, &dims);
            // Another name for a size that is already known.
            if self.pick(8) == 1 && at >= sizes.len() && dims.first() == Some(&Dim::name("n")) {
                let alias = self.fresh("p");
                wheres.push(Cond::Cmp("==", name(&alias), name("n")));
                ty.dims[0] = TypeDim::Size(name(&alias));
            }
            let tensor = self.fresh("x");
            params.push((tensor.clone(), ty));
            scope.vars.push(Var { name: tensor, elem, dims: dims.clone() });
            kinds.push(Parameter::Data(elem, dims));
        }
        if self.pick(3) == 1 {
            let amount = self.fresh("a");
            let upper = Dim::name(&sizes[self.pick(sizes.len())].0).shifted(1 + self.pick(2) as i64);
            wheres.push(Cond::Cmp("<=", lit(0), name(&amount)));
            wheres.push(Cond::Cmp("<", name(&amount), upper.ix()));
            params.push((amount.clone(), Type { elem: Elem::Size, dims: Vec::new() }));
            scope.indices.push(Bound { name: amount.clone(), lower: 0, upper: upper.clone() });
            scope.lows.insert(amount, 0);
            kinds.push(Parameter::Index(upper));
        }
        self.budget = if main { 40 } else { 15 };
        let count = [1, 1, 1, 2][self.pick(4)];
        let mut lets = Vec::new();
        for _ in 0..self.pick(if main { 4 } else { 2 }) {
            self.binding(&mut scope, &mut lets, 3);
        }
        let mut results = Vec::new();
        let mut values = Vec::new();
        let mut types = Vec::new();
        // A caller finds the sizes of the results from those of the arguments.
        let named = Scope { lows: sizes.iter().cloned().collect(), ..Scope::default() };
        for at in 0..count {
            let elem = [Elem::F64, Elem::I64, Elem::F64, Elem::I64, Elem::Bool][self.pick(5)];
            let dims = self.shape(&named, 3);
            let value = self.expr(&scope, elem, &dims, 4);
            values.push(fixed(value, elem));
            let result = if count == 1 { "result".into() } else { format!("r{at}") };
            types.push((result, type_of(elem, &dims)));
            results.push((elem, dims));
        }
        let function = if main { "main".into() } else { self.fresh("plain") };
        let stated = self.flip();
        self.program.functions.push(Function {
            name: function.clone(),
            params: params.clone(),
            results: types,
            stated,
            associative: None,
            wheres,
            body: Block { lets, results: values },
        });
        let names = params.into_iter().map(|(name, _)| name).collect();
        Plain { name: function, sizes, params: kinds, names, results }
    }

    // Types

    fn size(&mut self, c: &Scope) -> Dim {
        let names: Vec<String> = c.lows.keys().cloned().collect();
        if names.is_empty() {
            return Dim::from(1 + self.pick(3) as i64);
        }
        let one = Dim::name(&names[self.pick(names.len())]);
        match self.pick(10) {
            0..=4 => one,
            5 => one.shifted(1),
            6 => Dim::from(self.pick(4) as i64),
            7 if c.low(&one) >= 1 => one.shifted(-1),
            8 => one.plus(1, &one),
            9 => one.plus(1, &Dim::name(&names[self.pick(names.len())])),
            _ => Dim::from(2),
        }
    }

    fn shape(&mut self, c: &Scope, most: usize) -> Vec<Dim> {
        (0..self.pick(most + 1)).map(|_| self.size(c)).collect()
    }

    // Lets

    fn binding(&mut self, c: &mut Scope, lets: &mut Vec<Let>, depth: usize) {
        let several: Vec<Known> = self
            .known
            .iter()
            .filter(|known| matches!(known, Known::Plain { results, .. } if results.len() > 1))
            .cloned()
            .collect();
        if !several.is_empty() && self.flip() {
            let chosen = several[self.pick(several.len())].clone();
            if let Known::Plain { name, sizes, params, results } = chosen
                && let Some((args, values)) = self.arguments(c, &sizes, &params, BTreeMap::new(), depth)
                && !args.iter().any(|arg| matches!(arg, Arg::Ix(Ix::If(..) | Ix::Call(..))))
            {
                let mut names = Vec::new();
                for (elem, dims) in results {
                    let tensor = self.fresh("t");
                    names.push(tensor.clone());
                    let dims = dims.iter().map(|dim| dim.with(&values)).collect();
                    c.vars.push(Var { name: tensor, elem, dims });
                }
                lets.push(Let { names, ty: None, value: Expr::Call(name, args) });
                return;
            }
        }
        let elem = if self.flip() { Elem::F64 } else { Elem::I64 };
        let dims = self.shape(c, 3);
        if self.pick(6) == 5 {
            let other = self.shape(c, 2);
            let (iterate, _) = self.iteration(c, &[(elem, dims.clone()), (elem, other.clone())], depth);
            let names = vec![self.fresh("t"), self.fresh("t")];
            for (tensor, dims) in names.iter().zip([dims, other]) {
                c.vars.push(Var { name: tensor.clone(), elem, dims });
            }
            lets.push(Let { names, ty: None, value: iterate });
            return;
        }
        let value = self.expr(c, elem, &dims, depth);
        let tensor = self.fresh("t");
        let ty = (self.pick(3) == 1).then(|| type_of(elem, &dims));
        lets.push(Let { names: vec![tensor.clone()], ty, value: fixed(value, elem) });
        c.vars.push(Var { name: tensor, elem, dims });
    }

    fn iteration(&mut self, c: &Scope, states: &[(Elem, Vec<Dim>)], depth: usize) -> (Expr, ()) {
        let depth = depth.saturating_sub(1);
        let times = match self.pick(3) {
            0 => Dim::from(2),
            1 => Dim::from(self.pick(3) as i64),
            _ => self.size(c),
        };
        let mut inner = c.clone();
        let step = self.flip().then(|| self.fresh("t"));
        if let Some(step) = &step {
            inner.indices.push(Bound { name: step.clone(), lower: 0, upper: times.clone() });
        }
        let mut firsts = Vec::new();
        for (elem, dims) in states {
            let first = self.expr(c, *elem, dims, depth);
            let state = self.fresh("w");
            inner.vars.push(Var { name: state.clone(), elem: *elem, dims: dims.clone() });
            firsts.push((state, fixed(first, *elem)));
        }
        let mut results = Vec::new();
        for ((elem, dims), (state, _)) in states.iter().zip(&firsts) {
            let value = self.expr(&inner, *elem, dims, depth);
            let op = ["+", "-", "min", "max"][self.pick(4)];
            results.push(if self.flip() { binary(op, var(state), value) } else { value });
        }
        let body = Block { lets: Vec::new(), results };
        (Expr::Iterate(Iterate { step, times: times.ix(), states: firsts, body }.into()), ())
    }

    // Calls

    /// Arguments for a function with some of its sizes given; none if an index cannot be found.
    fn arguments(
        &mut self,
        c: &Scope,
        sizes: &[(String, i64)],
        params: &[Parameter],
        mut values: BTreeMap<String, Dim>,
        depth: usize,
    ) -> Option<(Vec<Arg>, BTreeMap<String, Dim>)> {
        for (size, low) in sizes {
            if !values.contains_key(size) {
                let mut dim = self.size(c);
                if c.low(&dim) < *low {
                    dim = dim.shifted(*low);
                }
                values.insert(size.clone(), dim);
            }
            if c.low(&values[size]) < *low {
                return None;
            }
        }
        let mut args = Vec::new();
        for param in params {
            args.push(match param {
                Parameter::Data(elem, dims) => {
                    let dims: Vec<Dim> = dims.iter().map(|dim| dim.with(&values)).collect();
                    data(self.expr(c, *elem, &dims, depth.saturating_sub(1)))
                }
                Parameter::Index(upper) => Arg::Ix(self.index(c, &upper.with(&values))?),
            });
        }
        Some((args, values))
    }

    /// A call of a function of the program.
    fn call(&mut self, c: &Scope, elem: Elem, dims: &[Dim], depth: usize) -> Option<Expr> {
        if self.known.is_empty() {
            return None;
        }
        let chosen = self.pick(self.known.len());
        let chosen = self.known[chosen].clone();
        match chosen {
            Known::Plain { name, sizes, params, results } => {
                let [(own, result)] = results.as_slice() else { return None };
                if *own != elem || result.len() != dims.len() {
                    return None;
                }
                let mut values: BTreeMap<String, Dim> = BTreeMap::new();
                for (own, wanted) in result.iter().zip(dims) {
                    match (own.terms.iter().next(), own.terms.len()) {
                        (Some((Ix::Name(size), 1)), 1) => {
                            let value = wanted.shifted(-own.plus);
                            if *values.entry(size.clone()).or_insert(value.clone()) != value {
                                return None;
                            }
                        }
                        (None, _) if own == wanted => {}
                        _ => return None,
                    }
                }
                if result.iter().zip(dims).any(|(own, wanted)| own.with(&values) != *wanted) {
                    return None;
                }
                let (args, _) = self.arguments(c, &sizes, &params, values, depth)?;
                Some(Expr::Call(name, args))
            }
            Known::Any { name, rule } => {
                if elem == Elem::Bool {
                    return None;
                }
                let argument = |g: &mut Self, dims: Vec<Dim>| {
                    (dims.len() <= MAX_RANK).then(|| data(fixed(g.expr(c, elem, &dims, depth), elem)))
                };
                let args = match rule {
                    Rule::Same(count, least) => {
                        let needs_one = least > 0 || dims.is_empty();
                        if needs_one && dims.first().is_none_or(|dim| c.low(dim) < least) {
                            return None;
                        }
                        (0..count).map(|_| argument(self, dims.to_vec())).collect::<Option<Vec<_>>>()?
                    }
                    Rule::Longer(by) => {
                        let mut dims = dims.to_vec();
                        let first = dims.first_mut()?;
                        *first = first.shifted(by);
                        vec![argument(self, dims)?]
                    }
                    Rule::InFront(least) | Rule::AtEnd(least) => {
                        let mut extra = self.size(c);
                        if c.low(&extra) < least {
                            extra = extra.shifted(least);
                        }
                        let front = matches!(rule, Rule::InFront(_));
                        let all = if front { [&[extra], dims].concat() } else { [dims, &[extra]].concat() };
                        vec![argument(self, all)?]
                    }
                    Rule::At => {
                        let mut front = Vec::new();
                        let mut at = Vec::new();
                        for _ in 0..self.pick(3) {
                            let dim = self.size(c);
                            at.push(self.index(c, &dim)?);
                            front.push(dim);
                        }
                        vec![Arg::Vec(IxVec::List(at)), argument(self, [&front, dims].concat())?]
                    }
                };
                Some(Expr::Call(name, args))
            }
        }
    }

    // Expressions

    /// An expression of a type.
    fn expr(&mut self, c: &Scope, elem: Elem, dims: &[Dim], depth: usize) -> Expr {
        if depth == 0 || self.budget == 0 || self.at >= self.bytes.len() {
            return self.leaf(c, elem, dims);
        }
        self.budget -= 1;
        for _ in 0..6 {
            let made = match (elem, self.pick(3)) {
                (Elem::Bool, 0 | 1) => Some(self.truth(c, dims, depth - 1)),
                (_, 0) => self.simple(c, elem, dims, depth - 1),
                (_, 1) => self.structure(c, elem, dims, depth - 1),
                _ => self.whole(c, elem, dims, depth - 1),
            };
            if let Some(made) = made {
                return made;
            }
        }
        self.leaf(c, elem, dims)
    }
}

/// A plain function as others see it.
struct Plain {
    name: String,
    sizes: Vec<(String, i64)>,
    params: Vec<Parameter>,
    names: Vec<String>,
    results: Vec<(Elem, Vec<Dim>)>,
}

/// Whole numbers and indices are of the index level until they meet data: where that matters they are converted.
fn fixed(e: Expr, elem: Elem) -> Expr {
    fn open(e: &Expr) -> bool {
        match e {
            Expr::Num(_, elem) | Expr::Index(_, elem) => *elem == Elem::I64,
            Expr::Stack(parts) => parts.iter().all(open),
            Expr::Unary(_, a) | Expr::Select(a, _) | Expr::Reduce(_, _, a) | Expr::Guard(_, a) => open(a),
            Expr::Binary(_, a, b) | Expr::If(_, a, b) | Expr::Choose(_, a, b) | Expr::IfData(_, a, b) => {
                open(a) && open(b)
            }
            Expr::Block(block) => block.results.iter().all(open),
            Expr::Comprehension(parts) => parts.iter().all(|part| open(&part.body)),
            Expr::With(parts, op) => {
                parts.iter().all(|part| open(&part.body))
                    && match op {
                        WithOp::Genarray(_, default) => default.as_deref().is_none_or(open),
                        WithOp::Modarray(e) | WithOp::Fold(_, e) => open(e),
                    }
            }
            Expr::Shift(_, _, a) | Expr::Split(_, a) | Expr::Reshape(_, a) => open(a),
            Expr::Einsum(_, parts) => parts.iter().all(open),
            _ => false,
        }
    }
    if elem == Elem::I64 && open(&e) { Expr::Cast(elem, e.into()) } else { e }
}
