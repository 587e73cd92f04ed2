//! Well-typed `.ten` programs from arbitrary bytes: types come first, expressions are made to have them.
//!
//! The generator knows each size as a sum ([`Dim`]) and each index with its range, so it writes only accesses that are in
//! bounds for all sizes; bounds that a comprehension leaves out are fixed by an access that asks for just them. Where the
//! bytes end, the simplest choice is taken: fewer bytes give smaller programs.

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
    let seed = bytes.iter().fold(bytes.len() as u64, |seed, byte| crate::sample::splitmix(seed ^ u64::from(*byte)));
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

    /// A function for any rank.
    fn polymorphic(&mut self) {
        let function = self.fresh("poly");
        let (x, y) = (|| var("x"), || var("y"));
        let v = |name: &str| IxVec::Name(name.into());
        let rest = |s: &str| TypeDim::Rest(s.into());
        let size = |e: Ix| TypeDim::Size(e);
        let small = |g: &mut Self| g.pick(5) as i64 - 2;
        let at = |e: Expr, sels: Vec<Sel>| Expr::Select(e.into(), sels);
        let over = |infer: bool, rest: &str, upper: IxVec| {
            Slot::Rest(
                rest.into(),
                (IxVec::One(lit(0)), Written::No),
                (upper, if infer { Written::No } else { Written::Yes }),
            )
        };
        let index = |infer: bool, i: &str, upper: Ix| {
            Slot::Index(i.into(), (lit(0), Written::No), (upper, if infer { Written::No } else { Written::Yes }))
        };
        let none = || IxVec::List(Vec::new());
        let part = |slots: Vec<Slot>, body: Expr, cell: IxVec| {
            Expr::Comprehension(vec![Part { slots, body, joint: false, cell }])
        };
        let infer = self.infer && self.flip();
        let constant = Expr::Num(small(self), Elem::I64);
        // The dimensions of the parameters, those of the result, conditions, the body, and how it is called.
        let s_dims = |g: &mut Self| if g.flip() { rest("s") } else { TypeDim::Ranked("d".into(), false, "s".into()) };
        let (params, result, wheres, body, rule): (Vec<Vec<TypeDim>>, Vec<TypeDim>, Vec<Cond>, Expr, Rule) = match self
            .pick(10)
        {
            0 => {
                let dims = s_dims(self);
                let body = binary("+", at(x(), vec![Sel::Vec(v("iv"))]), constant);
                let body = part(vec![over(infer, "iv", v("s"))], body, none());
                (vec![vec![dims.clone()]], vec![dims], vec![], body, Rule::Same(1, 0))
            }
            1 => {
                let dims = s_dims(self);
                let op = ["+", "-", "*", "min"][self.pick(4)];
                let body = match self.pick(3) {
                    0 => binary(op, x(), y()),
                    1 => {
                        let both = binary(op, at(x(), vec![Sel::Vec(v("iv"))]), at(y(), vec![Sel::Vec(v("iv"))]));
                        part(vec![over(infer, "iv", v("s"))], both, none())
                    }
                    _ => {
                        let slots = vec![Slot::Rest(
                            "iv".into(),
                            (IxVec::Op("*", v("s").into(), IxVec::One(lit(0)).into()), Written::Yes),
                            (IxVec::Shape("y".into()), Written::Yes),
                        )];
                        let body = binary(op, at(y(), vec![Sel::Vec(v("iv"))]), constant);
                        let part = Part { slots, body, joint: false, cell: none() };
                        Expr::With(vec![part], WithOp::Modarray(x().into()))
                    }
                };
                (vec![vec![dims.clone()], vec![dims.clone()]], vec![dims], vec![], body, Rule::Same(2, 0))
            }
            2 => {
                let dims = vec![size(name("n")), rest("r")];
                let backwards = at(x(), vec![Sel::At(Ix::Sub(name("n").shifted(-1).into(), name("i").into()))]);
                let body = part(vec![index(infer, "i", name("n"))], backwards, v("r"));
                (vec![dims.clone()], dims, vec![], body, Rule::Same(1, 0))
            }
            3 => {
                let dims = vec![size(name("n")), rest("r")];
                let first = at(x(), vec![Sel::At(lit(0)), Sel::Vec(v("rv"))]);
                let own = at(x(), vec![Sel::At(name("i")), Sel::Vec(v("rv"))]);
                let slots = vec![index(infer, "i", name("n")), over(infer, "rv", v("r"))];
                let body = part(slots, binary("-", own, first), none());
                (vec![dims.clone()], dims, vec![Cond::Cmp(">=", name("n"), lit(1))], body, Rule::Same(1, 1))
            }
            4 => {
                let by = 1 + self.pick(2) as i64;
                let (own, next) = (at(x(), vec![Sel::At(name("i"))]), at(x(), vec![Sel::At(name("i").shifted(by))]));
                let upper = name("n").shifted(-by);
                let body = part(vec![index(infer, "i", upper.clone())], binary("-", next, own), v("r"));
                (
                    vec![vec![size(name("n")), rest("r")]],
                    vec![size(upper), rest("r")],
                    vec![Cond::Cmp(">=", name("n"), lit(by))],
                    body,
                    Rule::Longer(by),
                )
            }
            5 => {
                let body = Expr::Reduce("sum", Some(vec![0]), x().into());
                (vec![vec![size(name("n")), rest("r")]], vec![rest("r")], vec![], body, Rule::InFront(0))
            }
            6 => {
                let op = ["sum", "max", "min"][self.pick(3)];
                let least = i64::from(op != "sum");
                let wheres = if least == 1 { vec![Cond::Cmp(">=", name("n"), lit(1))] } else { vec![] };
                let inner = Expr::Reduce(op, None, at(x(), vec![Sel::Vec(v("iv"))]).into());
                let body = part(vec![over(false, "iv", v("s"))], inner, none());
                (vec![vec![rest("s"), size(name("n"))]], vec![rest("s")], wheres, body, Rule::AtEnd(least))
            }
            7 => {
                let inner = at(x(), vec![Sel::Vec(v("iv")), Sel::At(name("j"))]);
                let slots = vec![over(infer, "iv", v("s")), index(infer, "j", name("n"))];
                let body = part(slots, binary("*", inner, Expr::Num(2, Elem::I64)), none());
                let dims = vec![rest("s"), size(name("n"))];
                (vec![dims.clone()], dims, vec![], body, Rule::Same(1, 0))
            }
            8 => {
                let dims = vec![TypeDim::Ranked("d".into(), true, "s".into())];
                let part = Part {
                    slots: vec![Slot::Rest(
                        "iv".into(),
                        (IxVec::One(lit(0)), Written::Dot),
                        (v("s"), if self.flip() { Written::Dot } else { Written::Yes }),
                    )],
                    body: binary("+", at(x(), vec![Sel::Vec(v("iv"))]), constant.clone()),
                    joint: false,
                    cell: none(),
                };
                let default = self.flip().then(|| constant.into());
                let body = Expr::With(vec![part], WithOp::Genarray(IxVec::Shape("x".into()), default));
                (vec![dims.clone()], dims, vec![], body, Rule::Same(1, 0))
            }
            _ => {
                let body = at(x(), vec![Sel::Vec(v("v"))]);
                let dims = vec![TypeDim::Ranked("d".into(), false, "s".into()), rest("r")];
                let wheres = vec![Cond::All("<=", IxVec::One(lit(0)), v("v")), Cond::All("<", v("v"), v("s"))];
                (vec![dims], vec![rest("r")], wheres, body, Rule::At)
            }
        };
        let mut all: Vec<(String, Type)> = Vec::new();
        if matches!(rule, Rule::At) {
            all.push(("v".into(), Type { elem: Elem::Size, dims: vec![size(name("d"))] }));
        }
        let of = |dims: Vec<TypeDim>| Type { elem: Elem::Num, dims };
        all.extend(["x", "y"].into_iter().map(String::from).zip(params.into_iter().map(of)));
        let stated = self.flip();
        self.program.functions.push(Function {
            name: function.clone(),
            params: all,
            results: vec![("result".into(), of(result))],
            stated,
            associative: None,
            wheres,
            body: Block { lets: Vec::new(), results: vec![body] },
        });
        self.known.push(Known::Any { name: function, rule });
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

    // Indices

    /// An index-level expression that is at least 0 and below a size, if there is one.
    fn index(&mut self, c: &Scope, dim: &Dim) -> Option<Ix> {
        let mut all: Vec<Ix> = Vec::new();
        let low = c.low(dim);
        if low >= 1 {
            all.extend([lit(0), dim.shifted(-1).ix(), lit((low - 1).min(3))]);
        }
        let last = || dim.shifted(-1).ix();
        for bound in c.indices.iter().rev().take(5) {
            let i = || name(&bound.name);
            let gap = c.low(&dim.plus(-1, &bound.upper));
            if gap >= 0 {
                all.extend([i(), i(), i().shifted(gap.min(3)), Ix::Sub(last().into(), i().into())]);
                all.push(Ix::FloorDiv(i().into(), 2));
                let by = self.pick(2) as i64;
                if by <= low {
                    let call = if self.flip() { "periodic" } else { "mirror" };
                    all.push(Ix::Call(call.into(), vec![i().shifted(-by), dim.ix()]));
                }
            }
            if gap + bound.lower >= 0 && bound.lower > 0 {
                all.push(i().shifted(-bound.lower));
            }
            let double = c.low(&dim.plus(-2, &bound.upper));
            if double >= -1 {
                let twice = Ix::Mul(lit(2).into(), i().into());
                all.extend([twice.clone(), twice.shifted((double + 1).min(2))]);
            }
            if low >= 1 {
                let far = i().shifted(self.pick(5) as i64 - 2);
                all.push(match self.program.index_functions.first() {
                    Some(function) if self.flip_of(&far) => Ix::Call(function.name.clone(), vec![far, dim.ix()]),
                    _ => Ix::Call("clamp".into(), vec![far, dim.ix()]),
                });
                all.push(Ix::Mod(i().into(), low.min(3)));
            }
            for other in c.indices.iter().rev().take(3).filter(|other| other.name != bound.name) {
                if c.low(&dim.plus(-1, &bound.upper).plus(-1, &other.upper)) >= -1 {
                    all.push(Ix::Add(i().into(), name(&other.name).into()));
                }
            }
        }
        if all.is_empty() {
            return None;
        }
        let chosen = self.pick(all.len());
        if self.pick(16) == 15
            && let Some(bound) = c.indices.last()
        {
            let other = all[self.pick(all.len())].clone();
            let cond = Cond::Cmp("<", name(&bound.name), lit(1));
            return Some(Ix::If(cond.into(), all[chosen].clone().into(), other.into()));
        }
        Some(all.swap_remove(chosen))
    }

    /// A choice that takes no byte, so that what follows does not depend on it.
    fn flip_of(&self, e: &Ix) -> bool {
        super::text::index(e).len().is_multiple_of(2)
    }

    /// A condition on what is in scope, and the scope where it holds.
    fn condition(&mut self, c: &Scope) -> (Cond, Scope) {
        let mut inner = c.clone();
        if !c.indices.is_empty() && self.flip() {
            let at = self.pick(c.indices.len());
            let bound = &c.indices[at];
            let i = name(&bound.name);
            match self.pick(4) {
                0 => {
                    let lower = bound.lower.max(1);
                    inner.indices[at].lower = lower;
                    (Cond::Cmp("<=", lit(lower), i), inner)
                }
                1 => {
                    let upper = bound.upper.shifted(-1);
                    let cond = Cond::Cmp("<", i, upper.ix());
                    inner.indices[at].upper = upper;
                    (cond, inner)
                }
                2 => (Cond::Not(Cond::Cmp("==", i, lit(1)).into()), inner),
                _ => (Cond::Or(Cond::Cmp("!=", i.clone(), lit(0)).into(), Cond::Cmp(">", i, lit(2)).into()), inner),
            }
        } else {
            let names: Vec<String> = c.lows.keys().cloned().collect();
            if names.is_empty() {
                return (Cond::Cmp("<", lit(1), lit(2)), inner);
            }
            let size = names[self.pick(names.len())].clone();
            let low = c.lows[&size] + 1;
            inner.lows.insert(size.clone(), low);
            (Cond::Cmp(">=", name(&size), lit(low)), inner)
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

    /// Something without parts, or nearly.
    fn leaf(&mut self, c: &Scope, elem: Elem, dims: &[Dim]) -> Expr {
        if elem == Elem::Bool {
            let a = self.leaf(c, Elem::I64, dims);
            return binary("<", Expr::Cast(Elem::I64, a.into()), Expr::Num(1, Elem::I64));
        }
        let same: Vec<&Var> = c.vars.iter().filter(|var| var.elem == elem && var.dims == dims).collect();
        if !same.is_empty() && self.pick(4) != 3 {
            return var(&same[same.len() - 1 - self.pick(same.len())].name);
        }
        if self.flip()
            && let Some(access) = self.access(c, elem, dims)
        {
            return access;
        }
        let small = self.pick(5) as i64;
        let number = Expr::Num(if small == 4 { -1 } else { small }, elem);
        if dims.is_empty() {
            if self.flip() && !c.indices.is_empty() {
                let i = name(&c.indices[self.pick(c.indices.len())].name);
                return Expr::Index(i.shifted(self.pick(3) as i64 - 1), elem);
            }
            return number;
        }
        if self.pick(4) == 0 {
            return Expr::Call("full".into(), vec![Arg::Vec(shape(dims)), data(number)]);
        }
        // All elements differ, so that it is seen where they are taken from.
        let names: Vec<String> = dims.iter().map(|_| self.fresh("j")).collect();
        let step = |sum: Ix, i: &String| Ix::Add(Ix::Mul(lit(3).into(), sum.into()).into(), name(i).into());
        let number = names.iter().skip(1).fold(name(&names[0]).shifted(small - 2), step);
        let index = |(i, dim): (&String, &Dim)| Slot::Index(i.clone(), (lit(0), Written::No), (dim.ix(), Written::Yes));
        let slots = names.iter().zip(dims).map(index).collect();
        let body = Expr::Index(number, elem);
        Expr::Comprehension(vec![Part { slots, body, joint: self.flip(), cell: IxVec::List(Vec::new()) }])
    }

    /// A selection from a tensor in scope.
    fn access(&mut self, c: &Scope, elem: Elem, dims: &[Dim]) -> Option<Expr> {
        // By a whole index vector.
        if !c.vectors.is_empty() && self.flip() {
            let (vector, uppers) = c.vectors[self.pick(c.vectors.len())].clone();
            let all = [uppers.as_slice(), dims].concat();
            let fits = |tensor: &&Var| {
                tensor.elem == elem
                    && tensor.dims.len() == all.len()
                    && tensor.dims[uppers.len()..] == *dims
                    && uppers.iter().zip(&tensor.dims).all(|(upper, size)| c.at_most(upper, size))
            };
            if let Some(tensor) = c.vars.iter().rev().find(fits) {
                return Some(Expr::Select(var(&tensor.name).into(), vec![Sel::Vec(IxVec::Name(vector))]));
            }
        }
        let fits = |tensor: &&Var| tensor.elem == elem && tensor.dims.len() > dims.len() && tensor.dims.ends_with(dims);
        let all: Vec<Var> = c.vars.iter().filter(fits).cloned().collect();
        if all.is_empty() {
            return None;
        }
        let tensor = &all[self.pick(all.len())];
        let mut at = Vec::new();
        for dim in &tensor.dims[..tensor.dims.len() - dims.len()] {
            at.push(self.index(c, dim)?);
        }
        let sels = match self.pick(4) {
            0 => vec![Sel::Vec(IxVec::List(at))],
            1 if at.len() > 1 => {
                let last = at.split_off(at.len() - 1);
                [vec![Sel::Vec(IxVec::List(at))], last.into_iter().map(Sel::At).collect()].concat()
            }
            _ => at.into_iter().map(Sel::At).collect(),
        };
        Some(Expr::Select(var(&tensor.name).into(), sels))
    }

    /// Truth values.
    fn truth(&mut self, c: &Scope, dims: &[Dim], depth: usize) -> Expr {
        let elem = if self.flip() { Elem::F64 } else { Elem::I64 };
        match self.pick(6) {
            4 => {
                let op = if self.flip() { "&&" } else { "||" };
                let (a, b) = (self.expr(c, Elem::Bool, dims, depth), self.expr(c, Elem::Bool, dims, depth));
                binary(op, a, b)
            }
            5 => Expr::Unary("!", self.expr(c, Elem::Bool, dims, depth).into()),
            _ => {
                let op = ["<", "<=", ">", ">=", "==", "!="][self.pick(6)];
                let a = self.expr(c, elem, dims, depth);
                let right: &[Dim] = if self.flip() { dims } else { &[] };
                let b = self.expr(c, elem, right, depth);
                // A comparison of indices is no data.
                binary(op, Expr::Cast(elem, a.into()), b)
            }
        }
    }

    /// Entrywise operations and choices.
    fn simple(&mut self, c: &Scope, elem: Elem, dims: &[Dim], depth: usize) -> Option<Expr> {
        Some(match self.pick(12) {
            0..=3 => {
                let op = ["+", "-", "*", "min", "max", "+"][self.pick(6)];
                let (left, right): (&[Dim], &[Dim]) = match self.pick(4) {
                    0 => (dims, &[]),
                    1 => (&[], dims),
                    _ => (dims, dims),
                };
                let (a, b) = (self.expr(c, elem, left, depth), self.expr(c, elem, right, depth));
                binary(op, a, b)
            }
            4 => Expr::Unary(["-", "abs"][self.pick(2)], self.expr(c, elem, dims, depth).into()),
            5 if elem == Elem::I64 => {
                let op = ["mod", "floor_div"][self.pick(2)];
                binary(op, self.expr(c, elem, dims, depth), Expr::Num(2 + self.pick(2) as i64, elem))
            }
            5 => Expr::Unary(["floor", "round", "ceil"][self.pick(3)], self.expr(c, elem, dims, depth).into()),
            6 => {
                let cond = self.truth(c, dims, depth.saturating_sub(1));
                let (a, b) = (self.expr(c, elem, dims, depth), self.expr(c, elem, dims, depth));
                Expr::Choose(cond.into(), a.into(), b.into())
            }
            7 => {
                let cond = self.truth(c, &[], depth.saturating_sub(1));
                let (a, b) = (self.expr(c, elem, dims, depth), self.expr(c, elem, dims, depth));
                Expr::IfData(cond.into(), a.into(), b.into())
            }
            8 | 9 => {
                let (cond, inner) = self.condition(c);
                let (a, b) = (self.expr(&inner, elem, dims, depth), self.expr(c, elem, dims, depth));
                Expr::If(cond, a.into(), b.into())
            }
            10 => {
                // An access that a condition makes safe.
                let bound = c.indices.last()?.clone();
                let size = self.size(c);
                let value = self.expr(c, elem, &[std::slice::from_ref(&size), dims].concat(), depth.min(1));
                let tensor = self.fresh("t");
                let at = name(&bound.name).shifted(self.pick(7) as i64 - 3);
                let inside =
                    Cond::And(Cond::Cmp("<=", lit(0), at.clone()).into(), Cond::Cmp("<", at.clone(), size.ix()).into());
                let access = Expr::Select(var(&tensor).into(), vec![Sel::At(at)]);
                let result = if self.flip() {
                    Expr::Guard(inside, access.into())
                } else {
                    Expr::If(inside, access.into(), self.expr(c, elem, dims, depth.min(1)).into())
                };
                let lets = vec![Let { names: vec![tensor], ty: None, value: fixed(value, elem) }];
                Expr::Block(Block { lets, results: vec![result] }.into())
            }
            _ => match (elem, self.flip()) {
                (Elem::F64, false) => Expr::Cast(Elem::F64, self.expr(c, Elem::I64, dims, depth).into()),
                (_, _) => Expr::Cast(elem, self.expr(c, Elem::Bool, dims, depth).into()),
            },
        })
    }

    /// Comprehensions, with-loops, iterations, reductions, blocks, calls.
    fn structure(&mut self, c: &Scope, elem: Elem, dims: &[Dim], depth: usize) -> Option<Expr> {
        match self.pick(12) {
            0..=3 => self.comprehension(c, elem, dims, depth),
            4 => self.genarray(c, elem, dims, depth),
            5 => self.modarray(c, elem, dims, depth),
            6 => self.fold(c, elem, dims, depth),
            7 => Some(self.iteration(c, &[(elem, dims.to_vec())], depth).0),
            8 => {
                let mut inner = c.clone();
                let mut lets = Vec::new();
                self.binding(&mut inner, &mut lets, depth);
                let result = self.expr(&inner, elem, dims, depth);
                Some(Expr::Block(Block { lets, results: vec![result] }.into()))
            }
            9 => self.reduction(c, elem, dims, depth),
            _ => self.call(c, elem, dims, depth),
        }
    }

    fn reduction(&mut self, c: &Scope, elem: Elem, dims: &[Dim], depth: usize) -> Option<Expr> {
        let op = ["sum", "max", "min", "sum", "prod"][self.pick(5)];
        let mut all = dims.to_vec();
        let mut axes: Vec<i64> = Vec::new();
        for _ in 0..1 + self.pick(2) {
            let mut extra = self.size(c);
            if c.low(&extra) < 1 && (op == "max" || op == "min") {
                extra = extra.shifted(1);
            }
            let at = self.pick(all.len() + 1);
            all.insert(at, extra);
            axes.iter_mut().filter(|axis| **axis >= at as i64).for_each(|axis| *axis += 1);
            axes.push(at as i64);
        }
        if all.len() > MAX_RANK {
            return None;
        }
        axes.sort_unstable();
        let negative = self.pick(3) == 1;
        let rank = all.len() as i64;
        let shown = axes.iter().map(|axis| if negative { axis - rank } else { *axis }).collect();
        let axes = if dims.is_empty() && self.flip() { None } else { Some(shown) };
        // The reductions of index vectors are index-level functions over literals.
        let e = self.expr(c, elem, &all, depth);
        Some(Expr::Reduce(op, axes, fixed(e, elem).into()))
    }

    fn range(&mut self, c: &Scope, dim: &Dim) -> ((i64, Written), (Dim, Written)) {
        let end = [Written::Yes, Written::Other, Written::Dot][self.pick(3)];
        let how = [Written::Yes, Written::Other][self.pick(2)];
        let by = 1 + self.pick(2) as i64;
        match self.pick(5) {
            0 => ((0, Written::No), (dim.clone(), end)),
            1 => ((by, how), (dim.clone(), end)),
            2 => ((0, Written::Dot), (dim.shifted(-by), how)),
            3 => ((1, Written::Yes), (dim.shifted(-by), how)),
            _ if c.low(dim) >= by => ((0, Written::No), (Dim::from(by), how)),
            _ => ((0, Written::Yes), (dim.clone(), end)),
        }
    }

    fn comprehension(&mut self, c: &Scope, elem: Elem, dims: &[Dim], depth: usize) -> Option<Expr> {
        let rank = dims.len();
        if rank == 0 {
            return None;
        }
        let style = self.pick(6);
        let count = 1 + self.pick(rank);
        // Which dimensions have an index.
        let mut indexed: Vec<bool> = (0..rank).map(|at| at < count).collect();
        if style == 2 {
            indexed.iter_mut().for_each(|one| *one = self.flip());
            if !indexed.contains(&true) {
                indexed[rank - 1] = true;
            }
        }
        let cell: Vec<Dim> = dims.iter().zip(&indexed).filter(|(_, one)| !**one).map(|(dim, _)| dim.clone()).collect();
        let own: Vec<Dim> = dims.iter().zip(&indexed).filter(|(_, one)| **one).map(|(dim, _)| dim.clone()).collect();
        let infer = self.infer && elem != Elem::Bool && self.flip();
        let several = style <= 2 && self.pick(3) == 1;
        let mut parts = Vec::new();
        let mut covered = 0;
        for _ in 0..if several { 1 + self.pick(2) } else { 0 } {
            let mut inner = c.clone();
            let mut slots = Vec::new();
            for (dim, one) in dims.iter().zip(&indexed) {
                if !one {
                    slots.push(Slot::Dot);
                    continue;
                }
                let ((lower, how), (upper, end)) = self.range(c, dim);
                let i = self.fresh("j");
                let known = if own.len() == 1 { lower.max(covered) } else { lower };
                inner.indices.push(Bound { name: i.clone(), lower: known, upper: upper.clone() });
                if own.len() == 1 && lower == 0 && upper.terms.is_empty() {
                    covered = covered.max(upper.plus);
                }
                slots.push(Slot::Index(i, (lit(lower), how), (upper.ix(), end)));
            }
            let body = self.expr(&inner, elem, &cell, depth.saturating_sub(1));
            let joint = self.flip();
            parts.push(Part { slots: self.dots(slots, rank), body, joint, cell: shape(&cell) });
        }
        let mut inner = c.clone();
        let mut anchor: Vec<Sel> = Vec::new();
        let mut anchored: Vec<Dim> = Vec::new();
        let written = |inferred: bool, how: usize| match (inferred, how) {
            (true, _) => Written::No,
            (false, 0) => Written::Other,
            (false, _) => Written::Yes,
        };
        let mut slots = Vec::new();
        match style {
            3..=5 => {
                let split = if style == 3 { own.len() } else { self.pick(own.len() + 1) };
                let (front, back) = own.split_at(split);
                let mut rest = |g: &mut Self, uppers: &[Dim]| {
                    let iv = g.fresh("v");
                    let by = if infer { g.pick(2) as i64 } else { 0 };
                    inner.vectors.push((iv.clone(), uppers.to_vec()));
                    for (at, upper) in uppers.iter().enumerate() {
                        inner.indices.push(Bound { name: format!("{iv}[{at}]"), lower: 0, upper: upper.clone() });
                    }
                    let vector = IxVec::Name(iv.clone());
                    anchor.push(Sel::Vec(match by {
                        0 => vector,
                        by => IxVec::Op("+", vector.into(), IxVec::One(lit(by)).into()),
                    }));
                    anchored.extend(uppers.iter().map(|upper| upper.shifted(by)));
                    // The length of a vector must be found: from a bound, or where it stands alone in a selection.
                    let end = if infer && by == 0 { Written::No } else { Written::Yes };
                    Slot::Rest(iv, (IxVec::One(lit(0)), Written::No), (shape(uppers), end))
                };
                let slot = rest(self, front);
                slots.push(slot);
                for upper in back {
                    let i = self.fresh("j");
                    inner.indices.push(Bound { name: i.clone(), lower: 0, upper: upper.clone() });
                    anchor.push(Sel::At(name(&i)));
                    anchored.push(upper.clone());
                    slots.push(Slot::Index(i, (lit(0), Written::No), (upper.ix(), written(infer, 1))));
                }
            }
            _ => {
                for (dim, one) in dims.iter().zip(&indexed) {
                    if !one {
                        slots.push(Slot::Dot);
                        continue;
                    }
                    let i = self.fresh("j");
                    let inferred = infer && self.pick(4) != 3;
                    let mut lower = if self.pick(5) == 4 { 1 } else { 0 };
                    let how = if lower == 0 { [Written::No, Written::Yes][self.pick(2)] } else { Written::Yes };
                    if inferred {
                        let (at, size) = match self.pick(5) {
                            0 | 1 => (name(&i), dim.clone()),
                            2 => (name(&i).shifted(1), dim.shifted(1)),
                            3 => (Ix::Sub(dim.shifted(-1).ix().into(), name(&i).into()), dim.clone()),
                            _ => (Ix::Mul(lit(2).into(), name(&i).into()), dim.plus(1, dim)),
                        };
                        anchor.push(Sel::At(at));
                        anchored.push(size);
                    }
                    slots.push(Slot::Index(i.clone(), (lit(lower), how), (dim.ix(), written(inferred, self.pick(3)))));
                    if own.len() == 1 {
                        lower = lower.max(covered);
                    }
                    inner.indices.push(Bound { name: i, lower, upper: dim.clone() });
                }
                slots = self.dots(slots, rank);
            }
        }
        let mut body = self.expr(&inner, elem, &cell, depth);
        let joint = self.flip();
        let mut lets = Vec::new();
        if infer && !anchor.is_empty() {
            let tensor = self.fresh("t");
            let value = self.expr(c, elem, &anchored, depth.min(2));
            lets.push(Let { names: vec![tensor.clone()], ty: None, value: fixed(value, elem) });
            let op = ["+", "-", "max"][self.pick(3)];
            body = binary(op, Expr::Select(var(&tensor).into(), anchor), body);
        }
        parts.push(Part { slots, body, joint, cell: shape(&cell) });
        let made = Expr::Comprehension(parts);
        if lets.is_empty() {
            return Some(made);
        }
        Some(Expr::Block(Block { lets, results: vec![made] }.into()))
    }

    /// Dots at the end may be left out, and a run of dots may be `...`.
    fn dots(&mut self, mut slots: Vec<Slot>, rank: usize) -> Vec<Slot> {
        let is_dot = |slot: &Slot| matches!(slot, Slot::Dot);
        let first = slots.iter().position(is_dot);
        let Some(first) = first else {
            if slots.len() == rank && self.pick(8) == 7 {
                slots.push(Slot::Dots);
            }
            return slots;
        };
        let run = slots[first..].iter().take_while(|slot| is_dot(slot)).count();
        let only = slots.iter().filter(|slot| is_dot(slot)).count() == run;
        match self.pick(3) {
            0 if only && first + run == slots.len() => slots.truncate(first),
            1 if only => drop(slots.splice(first..first + run, [Slot::Dots])),
            1 => drop(slots.splice(first..first + run, [Slot::Dots])),
            _ => {}
        }
        slots
    }

    /// A generator of a with-loop over some sizes.
    fn generator(&mut self, c: &Scope, elem: Elem, frame: &[Dim], cell: &[Dim], (dots, depth): (bool, usize)) -> Part {
        let mut inner = c.clone();
        let whole = self.flip();
        let by = self.pick(2) as i64;
        let how_low = if dots && by == 0 { [Written::Yes, Written::Dot][self.pick(2)] } else { Written::Yes };
        let cut = if whole { 0 } else { self.pick(2) as i64 };
        let choices: &[Written] = if dots && cut == 0 {
            &[Written::Yes, Written::Other, Written::Dot]
        } else {
            &[Written::Yes, Written::Other]
        };
        let how = choices[self.pick(choices.len())];
        let lower = if whole { 0 } else { by };
        let how_low = if lower > 0 { Written::Yes } else { how_low };
        let mut slots = Vec::new();
        if self.pick(3) == 2 {
            let iv = self.fresh("v");
            let uppers: Vec<Dim> = frame.iter().map(|dim| dim.shifted(-cut)).collect();
            for (at, upper) in uppers.iter().enumerate() {
                inner.indices.push(Bound { name: format!("{iv}[{at}]"), lower, upper: upper.clone() });
            }
            inner.vectors.push((iv.clone(), uppers.clone()));
            // The length of the vector comes from one of its bounds.
            let listed = how == Written::Dot || self.flip();
            let how_low = if how == Written::Dot { Written::Yes } else { how_low };
            let low = if listed { IxVec::List(vec![lit(lower); frame.len()]) } else { IxVec::One(lit(lower)) };
            slots.push(Slot::Rest(iv, (low, how_low), (shape(&uppers), how)));
        } else {
            for dim in frame {
                let i = self.fresh("j");
                let upper = dim.shifted(-cut);
                slots.push(Slot::Index(i.clone(), (lit(lower), how_low), (upper.ix(), how)));
                inner.indices.push(Bound { name: i, lower, upper });
            }
        }
        let body = self.expr(&inner, elem, cell, depth.saturating_sub(1));
        Part { slots, body, joint: true, cell: shape(cell) }
    }

    fn genarray(&mut self, c: &Scope, elem: Elem, dims: &[Dim], depth: usize) -> Option<Expr> {
        if dims.is_empty() || elem == Elem::Bool {
            return None;
        }
        let (frame, cell) = dims.split_at(1 + self.pick(dims.len()));
        let mut parts = Vec::new();
        for _ in 0..self.pick(3) {
            parts.push(self.generator(c, elem, frame, cell, (true, depth)));
        }
        let default = if parts.is_empty() || self.flip() {
            let e = self.expr(c, elem, cell, depth.min(1));
            Some(fixed(e, elem).into())
        } else {
            None
        };
        Some(Expr::With(parts, WithOp::Genarray(shape(frame), default)))
    }

    fn modarray(&mut self, c: &Scope, elem: Elem, dims: &[Dim], depth: usize) -> Option<Expr> {
        if dims.is_empty() {
            return None;
        }
        let (frame, cell) = dims.split_at(1 + self.pick(dims.len()));
        let array = self.expr(c, elem, dims, depth);
        let mut parts = Vec::new();
        for _ in 0..1 + self.pick(2) {
            parts.push(self.generator(c, elem, frame, cell, (true, depth)));
        }
        Some(Expr::With(parts, WithOp::Modarray(fixed(array, elem).into())))
    }

    fn fold(&mut self, c: &Scope, elem: Elem, dims: &[Dim], depth: usize) -> Option<Expr> {
        if elem == Elem::Bool {
            return None;
        }
        let mut op = ["+", "max", "min", "*"][self.pick(4)].to_string();
        let step = format!("step_{}", elem.word());
        if dims.is_empty() && self.flip() && self.program.functions.iter().any(|f| f.name == step) {
            op = step;
        }
        let frame: Vec<Dim> = (0..1 + self.pick(2)).map(|_| self.size(c)).collect();
        let mut parts = vec![self.generator(c, elem, &frame, dims, (false, depth))];
        if self.pick(4) == 3 {
            parts.push(self.generator(c, elem, &frame, dims, (false, depth)));
        }
        let first = match dims {
            // A regrouped fold begins with the identity of its operator.
            [] => Expr::Num(i64::from(op == "*" || self.associative_identity(&op) == Some(1)), elem),
            dims => self.expr(c, elem, dims, depth.min(1)),
        };
        Some(Expr::With(parts, WithOp::Fold(op, first.into())))
    }

    fn associative_identity(&self, function: &str) -> Option<i64> {
        self.program.functions.iter().find(|f| f.name == function)?.associative
    }

    /// Operations on whole tensors.
    fn whole(&mut self, c: &Scope, elem: Elem, dims: &[Dim], depth: usize) -> Option<Expr> {
        let longer = |by: i64| {
            let mut all = dims.to_vec();
            if let Some(first) = all.first_mut() {
                *first = first.shifted(by);
            }
            all
        };
        let first = dims.first().cloned().unwrap_or(Dim::from(0));
        let low = c.low(&first);
        let by = 1 + self.pick(2) as i64;
        let number = elem != Elem::Bool;
        let call = |name: &str, args: Vec<Arg>| Some(Expr::Call(name.into(), args));
        let choice = self.pick(34);
        // What makes a tensor needs one; what is left needs none.
        if dims.is_empty() && !matches!(choice, 0..=4 | 30..=33) {
            return None;
        }
        match choice {
            0..=2 => {
                // A selection from something larger.
                let at = self.pick(dims.len() + 1);
                let extra = self.size(c);
                let index = self.index(c, &extra)?;
                let mut all = dims.to_vec();
                all.insert(at, extra);
                if all.len() > MAX_RANK {
                    return None;
                }
                let e = self.expr(c, elem, &all, depth);
                let mut sels: Vec<Sel> = match self.pick(3) {
                    0 if at > 0 => vec![Sel::Dots],
                    _ => (0..at).map(|_| Sel::Dot).collect(),
                };
                let ends = matches!(sels.as_slice(), [Sel::Dots]);
                sels.push(Sel::At(index));
                match self.pick(3) {
                    _ if ends => sels.extend((at + 1..all.len()).map(|_| Sel::Dot)),
                    0 => sels.push(Sel::Dots),
                    1 => sels.extend((at + 1..all.len()).map(|_| Sel::Dot)),
                    _ => {}
                }
                Some(Expr::Select(fixed(e, elem).into(), sels))
            }
            3 => {
                // By several indices at once.
                let mut front = Vec::new();
                let mut at = Vec::new();
                for _ in 0..1 + self.pick(2) {
                    let extra = self.size(c);
                    at.push(self.index(c, &extra)?);
                    front.push(extra);
                }
                let all = [&front, dims].concat();
                if all.len() > MAX_RANK {
                    return None;
                }
                let e = fixed(self.expr(c, elem, &all, depth), elem);
                match self.pick(3) {
                    0 => call("sel", vec![Arg::Vec(IxVec::List(at)), data(e)]),
                    1 => Some(Expr::Select(e.into(), vec![Sel::Vec(IxVec::List(at))])),
                    _ => Some(Expr::Select(e.into(), at.into_iter().map(Sel::At).collect())),
                }
            }
            4 => {
                let axis = self.pick(dims.len() + 1);
                let extra = self.size(c);
                let index = self.index(c, &extra)?;
                let mut all = dims.to_vec();
                all.insert(axis, extra);
                if all.len() > MAX_RANK {
                    return None;
                }
                let e = fixed(self.expr(c, elem, &all, depth), elem);
                call("project", vec![Arg::Ix(lit(axis as i64)), Arg::Ix(index), data(e)])
            }
            5 | 6 => {
                // A slice, perhaps of an inner dimension.
                let axis = self.pick(dims.len());
                let mut all = dims.to_vec();
                let kind = self.pick(3);
                all[axis] = all[axis].shifted(if kind == 2 { by + 1 } else { by });
                let slice = match kind {
                    0 => Sel::Slice(Some(lit(by)), None),
                    1 => Sel::Slice(None, Some(dims[axis].ix())),
                    _ => Sel::Slice(Some(lit(by)), Some(dims[axis].shifted(by).ix())),
                };
                let e = fixed(self.expr(c, elem, &all, depth), elem);
                let sels = (0..axis).map(|_| Sel::Dot).chain([slice]).collect();
                Some(Expr::Select(e.into(), sels))
            }
            7 if dims.len() >= 2 => {
                let all = [&[dims[1].clone(), dims[0].clone()], &dims[2..]].concat();
                Some(Expr::Unary("transpose", self.expr(c, elem, &all, depth).into()))
            }
            8 if low >= by => {
                let op = ["pad_l", "pad_r"][self.pick(2)];
                Some(Expr::Shift(op, lit(by), self.expr(c, elem, &longer(-by), depth).into()))
            }
            9 => {
                let op = ["trunc_l", "trunc_r"][self.pick(2)];
                match c.indices.first().filter(|bound| c.lows.contains_key(&bound.name)) {
                    Some(amount) if self.flip() => {
                        let mut all = dims.to_vec();
                        all[0] = all[0].plus(1, &Dim::name(&amount.name));
                        Some(Expr::Shift(op, name(&amount.name), self.expr(c, elem, &all, depth).into()))
                    }
                    _ => Some(Expr::Shift(op, lit(by), self.expr(c, elem, &longer(by), depth).into())),
                }
            }
            10 => {
                // A part in front and the rest behind it.
                let (front, back) = match first.terms.iter().next() {
                    Some((atom, count)) if first.terms.len() > 1 || *count > 1 => {
                        let front = Dim { plus: 0, terms: BTreeMap::from([(atom.clone(), 1)]) };
                        let back = first.plus(-1, &front);
                        (front, back)
                    }
                    _ if low >= by => (Dim::from(by), first.shifted(-by)),
                    _ => return None,
                };
                if c.low(&front) < 0 || c.low(&back) < 0 {
                    return None;
                }
                let (front, back) = if self.flip() { (front, back) } else { (back, front) };
                let part = |g: &mut Self, size: Dim| {
                    let e = g.expr(c, elem, &[&[size], &dims[1..]].concat(), depth);
                    fixed(e, elem)
                };
                let (a, b) = (part(self, front), part(self, back));
                match self.pick(3) {
                    0 => call("vstack", vec![data(a), data(b)]),
                    1 => call("concat", vec![Arg::Ix(lit(0)), data(a), data(b)]),
                    _ => Some(binary("++", a, b)),
                }
            }
            11 => {
                let e = fixed(self.expr(c, elem, dims, depth), elem);
                match self.pick(4) {
                    0 => call("reverse", vec![data(e)]),
                    1 => call("reverse_on", vec![Arg::Ix(lit(self.pick(dims.len()) as i64)), data(e)]),
                    2 if number => call("zeros_like", vec![data(e)]),
                    _ => {
                        let fill = if number { Expr::Num(by, elem) } else { Expr::Bool(true) };
                        call("shift", vec![Arg::Ix(lit(self.pick(5) as i64 - 2)), data(fill), data(e)])
                    }
                }
            }
            12 => {
                let axis = self.pick(dims.len());
                let most = c.low(&dims[axis]).clamp(0, 3);
                let by = self.pick((2 * most + 1) as usize) as i64 - most;
                let e = fixed(self.expr(c, elem, dims, depth), elem);
                match axis {
                    0 if self.flip() => call("rotate", vec![Arg::Ix(lit(by)), data(e)]),
                    axis => call("rotate_on", vec![Arg::Ix(lit(axis as i64)), Arg::Ix(lit(by)), data(e)]),
                }
            }
            13 => {
                let sign = if self.flip() { 1 } else { -1 };
                let e = fixed(self.expr(c, elem, &longer(by), depth), elem);
                call("drop", vec![Arg::Vec(IxVec::List(vec![lit(sign * by)])), data(e)])
            }
            14 if first.terms.is_empty() && first.plus > 0 => {
                let sign = if self.flip() { 1 } else { -1 };
                let mut all = dims.to_vec();
                let size = self.size(c);
                all[0] = size.shifted(first.plus);
                let e = fixed(self.expr(c, elem, &all, depth), elem);
                call("take", vec![Arg::Vec(IxVec::List(vec![lit(sign * first.plus)])), data(e)])
            }
            15 | 16 if number => {
                let (left, right) = dims.split_at(self.pick(dims.len() + 1));
                let (a, b) = (self.expr(c, elem, left, depth), self.expr(c, elem, right, depth));
                call("outer", vec![data(fixed(a, elem)), data(fixed(b, elem))])
            }
            17 => {
                let axis = self.pick(dims.len());
                let mut all = dims.to_vec();
                let size = all.remove(axis);
                let e = fixed(self.expr(c, elem, &all, depth), elem);
                call("expand", vec![Arg::Ix(lit(axis as i64)), Arg::Ix(size.ix()), data(e)])
            }
            18 if dims.len() == 1 && elem == Elem::I64 => call("iota", vec![Arg::Ix(first.ix())]),
            18 if dims.len() == 2 && elem == Elem::F64 && dims[0] == dims[1] => call("eye", vec![Arg::Ix(first.ix())]),
            18 if elem == Elem::F64 => {
                let made = if self.flip() { "zeros" } else { "ones" };
                call(made, vec![Arg::Vec(shape(dims))])
            }
            19 if dims.len() < MAX_RANK => {
                let e = fixed(self.expr(c, elem, &[&[first], dims].concat(), depth), elem);
                call("diagonal", vec![data(e)])
            }
            20 if number && dims.len() == 2 && dims[0] == dims[1] => {
                let e = fixed(self.expr(c, elem, &dims[..1], depth), elem);
                call("diagonal_matrix", vec![data(e)])
            }
            20 if number && dims.len() == 2 => {
                let e = fixed(self.expr(c, elem, dims, depth), elem);
                call("lower_triangle", vec![data(e)])
            }
            21 if dims.len() >= 3 => {
                let all = [&[dims[2].clone(), dims[1].clone(), dims[0].clone()], &dims[3..]].concat();
                let e = fixed(self.expr(c, elem, &all, depth), elem);
                call("swap_axes", vec![Arg::Ix(lit(0)), Arg::Ix(lit(1)), data(e)])
            }
            22 if dims.len() >= 2 => {
                let (last, front) = dims.split_last()?;
                let e = fixed(self.expr(c, elem, &[std::slice::from_ref(last), front].concat(), depth), elem);
                call("axes_to_back", vec![Arg::Ix(lit(1)), data(e)])
            }
            23 if number => {
                let e = fixed(self.expr(c, elem, &longer(if by == 1 { 1 } else { 2 }), depth), elem);
                call(if by == 1 { "diff" } else { "laplace1d" }, vec![data(e)])
            }
            24 if number => {
                // A number with a size makes literals of vectors.
                let size = Dim::from(by + 1);
                if dims.len() == 1 && self.flip() {
                    let e = fixed(self.expr(c, elem, &longer(by), depth), elem);
                    let w = fixed(self.expr(c, elem, &[size], depth), elem);
                    return call("conv1d", vec![data(e), data(w)]);
                }
                if first.terms.is_empty() && (1..=3).contains(&first.plus) {
                    let parts = (0..first.plus).map(|_| self.expr(c, elem, &dims[1..], depth)).collect();
                    return Some(Expr::Stack(parts));
                }
                None
            }
            25 if dims.len() >= 2 && dims[1].terms.is_empty() && dims[1].plus > 0 => {
                let size = dims[1].plus;
                let all = [&[first.shifted(size - 1)], &dims[2..]].concat();
                let e = fixed(self.expr(c, elem, &all, depth), elem);
                call("window", vec![Arg::Ix(lit(size)), data(e)])
            }
            26 if dims.len() >= 2 && dims[1].terms.is_empty() && (1..=3).contains(&dims[1].plus) => {
                // Blocks of an axis that they divide.
                let size = dims[1].plus;
                let all = [&[Dim::from(0).plus(size, &first)], &dims[2..]].concat();
                Some(Expr::Split(size, self.expr(c, elem, &all, depth).into()))
            }
            27 if dims.len() < MAX_RANK
                && first.plus % 2 == 0
                && first.terms.values().all(|count| count % 2 == 0)
                && low > 0 =>
            {
                let half = Dim {
                    plus: first.plus / 2,
                    terms: first.terms.iter().map(|(atom, count)| (atom.clone(), count / 2)).collect(),
                };
                match self.pick(3) {
                    0 => {
                        let all = [&[half], &dims[1..]].concat();
                        let e = fixed(self.expr(c, elem, &all, depth), elem);
                        call("repeat", vec![Arg::Ix(lit(2)), data(e)])
                    }
                    1 => {
                        let all = [&[half, Dim::from(2)], &dims[1..]].concat();
                        Some(Expr::Unary("flatten", self.expr(c, elem, &all, depth).into()))
                    }
                    _ => {
                        let all = [&[Dim::from(2), half], &dims[1..]].concat();
                        let e = fixed(self.expr(c, elem, &all, depth), elem);
                        Some(Expr::Reshape(shape(dims), e.into()))
                    }
                }
            }
            28 if low > 2 * by => {
                let made = if self.flip() { "pad_clamp" } else { "pad_periodic" };
                if made == "pad_periodic" && low < 3 * by {
                    return None;
                }
                let e = fixed(self.expr(c, elem, &longer(-2 * by), depth), elem);
                call(made, vec![Arg::Ix(lit(by)), data(e)])
            }
            29 if number => {
                let axis = self.pick(dims.len());
                let mut all = dims.to_vec();
                all[axis] = all[axis].shifted(1);
                let e = fixed(self.expr(c, elem, &all, depth), elem);
                call("diff_on", vec![Arg::Ix(lit(axis as i64)), data(e)])
            }
            30 | 31 if number && dims.len() <= 2 => {
                let inner = self.size(c);
                let (left, right) = dims.split_at(dims.len() / 2 + usize::from(dims.len() == 1 && self.flip()));
                let a = self.expr(c, elem, &[left, std::slice::from_ref(&inner)].concat(), depth);
                let b = self.expr(c, elem, &[std::slice::from_ref(&inner), right].concat(), depth);
                let (a, b) = (fixed(a, elem), fixed(b, elem));
                match (self.pick(4), dims.len()) {
                    (0, 0) => call("dot", vec![data(a), data(b)]),
                    (0, 2) => call("matmul", vec![data(a), data(b)]),
                    (1, 0) => Some(Expr::Einsum("k,k".into(), vec![a, b])),
                    (1, 2) => Some(Expr::Einsum("ik,kj->ij".into(), vec![a, b])),
                    (2, _) => call("tensordot", vec![Arg::Ix(lit(1)), data(a), data(b)]),
                    _ => Some(binary("@", a, b)),
                }
            }
            32 if number && dims.len() <= 2 => {
                // The sum of a diagonal, and other sums that einsum writes.
                let n = self.size(c);
                if dims.is_empty() && self.flip() {
                    let e = fixed(self.expr(c, elem, &[n.clone(), n], depth), elem);
                    return if self.flip() {
                        call("trace", vec![data(e)])
                    } else {
                        Some(Expr::Einsum("ii".into(), vec![e]))
                    };
                }
                let all = [dims, &[n]].concat();
                let e = fixed(self.expr(c, elem, &all, depth), elem);
                let spec = ["a->", "ia->i", "ija->ji"][dims.len()];
                if dims.len() == 2 && dims[0] != dims[1] {
                    return None;
                }
                Some(Expr::Einsum(spec.into(), vec![e]))
            }
            _ => None,
        }
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
