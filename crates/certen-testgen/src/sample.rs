//! Programs as the generator makes them: trees whose sizes are known both as text and as numbers.

use std::collections::HashSet;
use std::fmt::Write;

use certen_core::{ReduceOp, Tensor};
use certen_dialects::algebra::Notation;
use certen_syntax::Name;

/// A name that no generated tensor or size has.
pub(crate) const UNKNOWN: &str = "unknown";

/// A size, `factor * symbol + plus`. Equal as values if equal as text; see [`Sample::normal`] for what is equal by a
/// `where` clause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// Which of [`Sample::symbols`]; a literal has none.
    pub symbol: Option<usize>,
    /// How many times the symbol.
    pub factor: i64,
    /// What is added.
    pub plus: i64,
}

impl Size {
    /// A number.
    pub const fn literal(value: i64) -> Size {
        Size { symbol: None, factor: 0, plus: value }
    }

    /// A symbol and a number.
    pub const fn symbol(symbol: usize, plus: i64) -> Size {
        Size { symbol: Some(symbol), factor: 1, plus }
    }
}

/// A symbolic size.
#[derive(Clone, Debug)]
pub struct Symbol {
    /// Its name.
    pub name: &'static str,
    /// The number it stands for when the program is run.
    pub value: i64,
    /// The least number that it can stand for, by the `where` clauses.
    pub low: i64,
    /// What it equals, by a `where` clause, in terms of earlier symbols.
    pub equal: Option<Size>,
    /// A symbol that it is at most, by a `where` clause.
    pub at_most: Option<usize>,
}

/// An allocation.
#[derive(Clone, Debug)]
pub struct Declared {
    /// Its name.
    pub name: &'static str,
    /// Its sizes.
    pub shape: Vec<Size>,
    /// Whether it is marked as an input.
    pub input: bool,
    /// Whether it is marked as an output.
    pub output: bool,
}

/// An expression. Positions count from 1; in Core-TeIL they are the ones that its text leaves out.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "TeIL's own words")]
pub enum Expr {
    /// One of [`Sample::tensors`], or a name that is not allocated if there are fewer.
    Var(usize),
    Paren(Box<Expr>),
    Add(Box<Expr>, Box<Expr>),
    Mul(Box<Expr>, Box<Expr>),
    Prod(Box<Expr>, Box<Expr>),
    Red(ReduceOp, usize, Box<Expr>),
    Transp(usize, usize, Box<Expr>),
    Diag(usize, usize, Box<Expr>),
    Contr(usize, usize, Box<Expr>),
    Expa(usize, Size, Box<Expr>),
    Proj(usize, Size, Box<Expr>),
    Scale(Size, Box<Expr>),
    Power(Size, Box<Expr>),
}

impl Expr {
    /// The expressions that this one is made of, in order.
    pub fn parts(&self) -> Vec<&Expr> {
        match self {
            Expr::Var(_) => Vec::new(),
            Expr::Add(a, b) | Expr::Mul(a, b) | Expr::Prod(a, b) => vec![a, b],
            Expr::Paren(e)
            | Expr::Red(_, _, e)
            | Expr::Transp(_, _, e)
            | Expr::Diag(_, _, e)
            | Expr::Contr(_, _, e)
            | Expr::Expa(_, _, e)
            | Expr::Proj(_, _, e)
            | Expr::Scale(_, e)
            | Expr::Power(_, e) => vec![e],
        }
    }

    /// The same, to be changed.
    pub fn parts_mut(&mut self) -> Vec<&mut Expr> {
        match self {
            Expr::Var(_) => Vec::new(),
            Expr::Add(a, b) | Expr::Mul(a, b) | Expr::Prod(a, b) => vec![a, b],
            Expr::Paren(e)
            | Expr::Red(_, _, e)
            | Expr::Transp(_, _, e)
            | Expr::Diag(_, _, e)
            | Expr::Contr(_, _, e)
            | Expr::Expa(_, _, e)
            | Expr::Proj(_, _, e)
            | Expr::Scale(_, e)
            | Expr::Power(_, e) => vec![e],
        }
    }

    /// The tensors that it reads.
    pub fn reads(&self) -> HashSet<usize> {
        match self {
            Expr::Var(tensor) => HashSet::from([*tensor]),
            other => other.parts().into_iter().flat_map(Expr::reads).collect(),
        }
    }
}

/// A generated program: well-typed as it comes from [`Sample::generate`].
#[derive(Clone, Debug)]
pub struct Sample {
    /// Which language it is in.
    pub mode: Notation,
    /// The symbolic sizes.
    pub symbols: Vec<Symbol>,
    /// The allocations, in order.
    pub tensors: Vec<Declared>,
    /// The conditions on sizes, as text.
    pub wheres: Vec<String>,
    /// Before which allocation the conditions stand.
    pub wheres_at: usize,
    /// The statements: what is assigned, and what is assigned to it.
    pub stmts: Vec<(usize, Expr)>,
    /// Which elements the inputs have.
    pub seed: u64,
}

impl Sample {
    /// A size with the symbols that `where` clauses define replaced: equal sizes are equal here.
    pub fn normal(&self, mut size: Size) -> Size {
        while let Some(definition) = size.symbol.and_then(|symbol| self.symbols[symbol].equal) {
            size = Size {
                symbol: definition.symbol,
                factor: size.factor * definition.factor,
                plus: size.factor * definition.plus + size.plus,
            };
        }
        size
    }

    fn linear(&self, size: Size, of: impl Fn(&Symbol) -> i64) -> i64 {
        size.symbol.map_or(0, |symbol| size.factor * of(&self.symbols[symbol])) + size.plus
    }

    /// The number that a size stands for.
    pub fn value(&self, size: Size) -> i64 {
        self.linear(size, |symbol| symbol.value)
    }

    /// The least number that it can stand for.
    pub fn low(&self, size: Size) -> i64 {
        self.linear(self.normal(size), |symbol| symbol.low)
    }

    /// Whether two shapes are equal for all sizes.
    pub fn same(&self, a: &[Size], b: &[Size]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(x, y)| self.normal(*x) == self.normal(*y))
    }

    /// The numbers that a shape stands for.
    pub fn concrete(&self, shape: &[Size]) -> Vec<usize> {
        shape.iter().map(|size| usize::try_from(self.value(*size)).unwrap_or(0)).collect()
    }

    /// The symbolic sizes and their numbers.
    pub fn sizes(&self) -> Vec<(Name, i64)> {
        self.symbols.iter().map(|symbol| (symbol.name.into(), symbol.value)).collect()
    }

    /// The tensors whose first value is given: by the markers, else those that are read before they are assigned.
    pub fn inputs(&self) -> Vec<usize> {
        let mut assigned = HashSet::new();
        let mut read_first: HashSet<usize> = HashSet::new();
        for (target, value) in &self.stmts {
            read_first.extend(value.reads().difference(&assigned));
            assigned.insert(*target);
        }
        self.by_marker(|tensor| tensor.input, |at| read_first.contains(&at))
    }

    /// The tensors whose last value is wanted: by the markers, else those that are assigned.
    pub fn outputs(&self) -> Vec<usize> {
        self.by_marker(|tensor| tensor.output, |at| self.stmts.iter().any(|(target, _)| *target == at))
    }

    fn by_marker(&self, marker: impl Fn(&Declared) -> bool, unmarked: impl Fn(usize) -> bool) -> Vec<usize> {
        let marked = self.tensors.iter().any(|tensor| tensor.input || tensor.output);
        let chosen = |at: &usize| if marked { marker(&self.tensors[*at]) } else { unmarked(*at) };
        (0..self.tensors.len()).filter(chosen).collect()
    }

    /// A tensor's elements before the first statement, from -2 to 2.
    pub fn elements(&self, tensor: usize) -> Tensor<i64> {
        self.bits(tensor).map(|bits| (bits % 5) as i64 - 2)
    }

    /// As many pseudo-random bit patterns as a tensor has elements.
    pub fn bits(&self, tensor: usize) -> Tensor<u64> {
        let shape = self.concrete(&self.tensors[tensor].shape);
        let count = shape.iter().product::<usize>() as u64;
        let data = (0..count).map(|at| splitmix(self.seed ^ splitmix(((tensor as u64) << 32) | at))).collect();
        Tensor::new(shape, data).unwrap_or_else(|| Tensor::scalar(0))
    }

    /// A bound on the magnitude of everything that a run with [`Sample::elements`] computes, in any order.
    pub fn magnitude(&self) -> f64 {
        let mut bounds = vec![2.0; self.tensors.len()];
        let mut most = 2.0f64;
        for (target, value) in &self.stmts {
            let (_, bound) = self.bound(value, &bounds);
            most = most.max(bound);
            bounds[*target] = bound;
        }
        most
    }

    /// The shape of an expression and a bound, at least 1, on all its intermediate values.
    fn bound(&self, expr: &Expr, bounds: &[f64]) -> (Vec<i64>, f64) {
        let parts: Vec<(Vec<i64>, f64)> = expr.parts().into_iter().map(|part| self.bound(part, bounds)).collect();
        let shapes: Vec<Vec<i64>> = parts.iter().map(|(shape, _)| shape.clone()).collect();
        let shape = crate::oracle::rule(self, expr, &shapes).unwrap_or_default();
        let of = |at: usize| parts[at].1;
        let bound = match expr {
            Expr::Var(tensor) => bounds[*tensor],
            Expr::Add(..) => of(0) + of(1),
            Expr::Mul(..) | Expr::Prod(..) => of(0) * of(1),
            Expr::Red(ReduceOp::Sum, i, _) => of(0) * parts[0].0[i - 1] as f64,
            Expr::Red(ReduceOp::Prod, i, _) => of(0).powf(parts[0].0[i - 1] as f64),
            Expr::Scale(n, _) => of(0) * self.value(*n) as f64,
            Expr::Power(n, _) => of(0).powf(self.value(*n) as f64),
            Expr::Contr(i0, _, _) => of(0) * parts[0].0[i0 - 1] as f64,
            _ => of(0),
        };
        (shape, bound)
    }

    /// The name of a tensor.
    pub fn name(&self, tensor: usize) -> &'static str {
        self.tensors.get(tensor).map_or(UNKNOWN, |tensor| tensor.name)
    }

    /// The program's text.
    pub fn text(&self) -> String {
        let mut text = Text { sample: self, out: String::new(), spelled: self.seed as usize };
        text.program();
        text.out
    }
}

/// A well-mixed function of 64 bits.
pub(crate) fn splitmix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

struct Text<'a> {
    sample: &'a Sample,
    out: String,
    /// How many sizes were written: equal ones are spelled differently.
    spelled: usize,
}

impl Text<'_> {
    fn program(&mut self) {
        let sample = self.sample;
        if sample.mode == Notation::CoreTeil {
            self.out += "mode core\n";
        }
        for at in 0..=sample.tensors.len() {
            if at == sample.wheres_at && !sample.wheres.is_empty() {
                self.out += &format!("where {}\n", sample.wheres.join(", "));
            }
            if let Some(tensor) = sample.tensors.get(at) {
                self.alloc(tensor);
            }
        }
        for (target, value) in &sample.stmts {
            let _ = write!(self.out, "{} =", sample.name(*target));
            self.expr(value);
            self.out.push('\n');
        }
    }

    fn alloc(&mut self, tensor: &Declared) {
        let shape: Vec<String> = tensor.shape.iter().map(|size| self.size(*size)).collect();
        let markers = [("input ", tensor.input), ("output ", tensor.output)];
        let markers: String = markers.iter().filter(|(_, set)| *set).map(|(word, _)| *word).collect();
        let _ = writeln!(self.out, "alloc {markers}{} : [{}]", tensor.name, shape.join(", "));
    }

    fn size(&mut self, size: Size) -> String {
        self.spelled += 1;
        let Some(symbol) = size.symbol else { return size.plus.to_string() };
        let name = self.sample.symbols[symbol].name;
        let product = match (size.factor, self.spelled % 3) {
            (1, _) => name.to_owned(),
            (2, 0) => format!("{name} + {name}"),
            (factor, 1) => format!("{name} * {factor}"),
            (factor, _) => format!("{factor}*{name}"),
        };
        match size.plus {
            0 => product,
            plus if plus < 0 => format!("{product} - {}", -plus),
            plus if self.spelled.is_multiple_of(2) => format!("{plus} + {product}"),
            plus => format!("{product} + {plus}"),
        }
    }

    /// A size where only a name or a number can stand without parentheses.
    fn argument(&mut self, size: Size) -> String {
        let text = self.size(size);
        if text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') { text } else { format!("({text})") }
    }

    fn expr(&mut self, expr: &Expr) {
        let positions = |list: &[usize]| match self.sample.mode {
            Notation::CoreTeil => String::new(),
            _ => list.iter().map(|at| format!(" {at}")).collect(),
        };
        let head = match expr {
            Expr::Var(tensor) => self.sample.name(*tensor).to_owned(),
            Expr::Paren(_) => "(".into(),
            Expr::Add(..) => "add".into(),
            Expr::Mul(..) => "mul".into(),
            Expr::Prod(..) => "prod".into(),
            Expr::Red(op, i, _) => format!("{}{}", red_word(*op), positions(&[*i])),
            Expr::Transp(i, _, _) if self.sample.mode == Notation::CoreTeil => format!("transp {i}"),
            Expr::Transp(i0, i1, _) => format!("transp {i0} {i1}"),
            Expr::Diag(i0, i1, _) => format!("diag{}", positions(&[*i0, *i1])),
            Expr::Contr(i0, i1, _) => format!("contr {i0} {i1}"),
            Expr::Expa(i, n, _) => format!("expa{} {}", positions(&[*i]), self.argument(*n)),
            Expr::Proj(i, m, _) => format!("proj{} {}", positions(&[*i]), self.argument(*m)),
            Expr::Scale(n, _) => format!("{} *", self.argument(*n)),
            Expr::Power(n, e) => {
                // A mistake may have put anything here.
                let bare = !matches!(**e, Expr::Var(_) | Expr::Paren(_));
                self.out += if bare { " (" } else { "" };
                self.expr(e);
                self.out += if bare { " )" } else { "" };
                let exponent = self.argument(*n);
                let _ = write!(self.out, " ^ {exponent}");
                return;
            }
        };
        let _ = write!(self.out, " {head}");
        expr.parts().into_iter().for_each(|part| self.expr(part));
        if matches!(expr, Expr::Paren(_)) {
            self.out += " )";
        }
    }
}

/// How a reduction is written.
pub(crate) fn red_word(op: ReduceOp) -> &'static str {
    match op {
        ReduceOp::Prod => "red*",
        ReduceOp::Min => "redmin",
        ReduceOp::Max => "redmax",
        _ => "red+",
    }
}
