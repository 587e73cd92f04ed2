//! Programs as the generator makes them: trees whose sizes are known both as text and as numbers.

use std::collections::HashSet;
use std::fmt::Write;

use certen_core::domain::splitmix;
use certen_core::{ReduceOp, Tensor};
use certen_dialects::algebra::{Arith, Notation};
use certen_syntax::Name;

/// A name that no generated tensor or size has.
pub(crate) const UNKNOWN: &str = "unknown";

/// What names of types begin with; no tensor or size has such a name.
const TYPE: &str = "type_";

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

/// Two positions of dimensions, from 1.
pub type Pair = (usize, usize);

/// An expression. Positions count from 1; in Core-TeIL they are the ones that its text leaves out. In the model language
/// the right operand of an operator is a name or stands in parentheses: operators associate to the left.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the languages' own words")]
pub enum Expr {
    /// One of [`Sample::tensors`], or a name that is not allocated if there are fewer.
    Var(usize),
    Paren(Box<Expr>),
    Elem(Arith, Box<Expr>, Box<Expr>),
    Prod(Box<Expr>, Box<Expr>),
    Red(ReduceOp, usize, Box<Expr>),
    /// TeIL has one pair.
    Transp(Vec<Pair>, Box<Expr>),
    Diag(usize, usize, Box<Expr>),
    /// TeIL has one pair.
    Contr(Vec<Pair>, Box<Expr>),
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
            Expr::Elem(_, a, b) | Expr::Prod(a, b) => vec![a, b],
            Expr::Paren(e)
            | Expr::Red(_, _, e)
            | Expr::Transp(_, e)
            | Expr::Diag(_, _, e)
            | Expr::Contr(_, e)
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
            Expr::Elem(_, a, b) | Expr::Prod(a, b) => vec![a, b],
            Expr::Paren(e)
            | Expr::Red(_, _, e)
            | Expr::Transp(_, e)
            | Expr::Diag(_, _, e)
            | Expr::Contr(_, e)
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

    /// The expressions that it divides by.
    pub fn divisors(&self) -> Vec<&Expr> {
        let own = if let Expr::Elem(Arith::Div, _, divisor) = self { Some(&**divisor) } else { None };
        own.into_iter().chain(self.parts().into_iter().flat_map(Expr::divisors)).collect()
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

    /// A tensor's elements before the first statement: from -2 to 2, or from 1 to 5 if something is divided by them, so
    /// that most quotients are defined.
    pub fn elements(&self, tensor: usize) -> Tensor<i64> {
        let mut divisors = self.stmts.iter().flat_map(|(_, value)| value.divisors());
        let low = if divisors.any(|divisor| divisor.reads().contains(&tensor)) { 1 } else { -2 };
        self.bits(tensor).map(|bits| (bits % 5) as i64 + low)
    }

    /// Whether it divides: then not all its values are integers, and some may be undefined.
    pub fn divides(&self) -> bool {
        self.stmts.iter().any(|(_, value)| !value.divisors().is_empty())
    }

    /// As many pseudo-random bit patterns as a tensor has elements.
    pub fn bits(&self, tensor: usize) -> Tensor<u64> {
        let shape = self.concrete(&self.tensors[tensor].shape);
        let count = shape.iter().product::<usize>() as u64;
        let data = (0..count).map(|at| splitmix(self.seed ^ splitmix(((tensor as u64) << 32) | at))).collect();
        Tensor::new(shape, data).unwrap_or_else(|| Tensor::scalar(0))
    }

    /// The name of a tensor.
    pub fn name(&self, tensor: usize) -> &'static str {
        self.tensors.get(tensor).map_or(UNKNOWN, |tensor| tensor.name)
    }

    /// The program's text.
    pub fn text(&self) -> String {
        let mut text = Text { sample: self, out: String::new(), spelled: self.seed as usize, types: Vec::new() };
        text.program();
        text.out
    }
}

struct Text<'a> {
    sample: &'a Sample,
    out: String,
    /// How many sizes were written: equal ones are spelled differently.
    spelled: usize,
    /// The shapes that have names, in order.
    types: Vec<&'a [Size]>,
}

impl<'a> Text<'a> {
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
            match sample.mode {
                Notation::Model => self.infix(value),
                _ => self.expr(value),
            }
            self.out.push('\n');
        }
    }

    fn alloc(&mut self, tensor: &'a Declared) {
        let model = self.sample.mode == Notation::Model;
        let shape = if model { self.type_of(&tensor.shape) } else { self.sizes(&tensor.shape) };
        let word = if model { "var" } else { "alloc" };
        let markers = [("input ", tensor.input), ("output ", tensor.output)];
        let markers: String = markers.iter().filter(|(_, set)| *set).map(|(word, _)| *word).collect();
        let _ = writeln!(self.out, "{word} {markers}{} : {shape}", tensor.name);
    }

    fn sizes(&mut self, shape: &[Size]) -> String {
        let shape: Vec<String> = shape.iter().map(|size| self.size(*size)).collect();
        format!("[{}]", shape.join(", "))
    }

    /// A shape in the model language: as it is, or by a name; one that has a name already goes by either.
    fn type_of(&mut self, shape: &'a [Size]) -> String {
        self.spelled += 1;
        let known = self.types.iter().position(|named| *named == shape);
        let name = match known {
            Some(at) if !self.spelled.is_multiple_of(3) => at,
            None if self.spelled.is_multiple_of(3) => {
                let sizes = self.arguments(shape);
                self.types.push(shape);
                let _ = writeln!(self.out, "type {TYPE}{} : {sizes}", self.types.len());
                self.types.len() - 1
            }
            _ => return self.arguments(shape),
        };
        format!("{TYPE}{}", name + 1)
    }

    fn arguments(&mut self, shape: &[Size]) -> String {
        let shape: Vec<String> = shape.iter().map(|size| self.argument(*size)).collect();
        format!("[{}]", shape.join(if self.spelled.is_multiple_of(2) { " " } else { ", " }))
    }

    fn infix(&mut self, expr: &Expr) {
        let sign = match expr {
            Expr::Elem(op, ..) => arith_sign(*op),
            Expr::Contr(..) => ".",
            Expr::Transp(..) => "^",
            _ => "#",
        };
        match (expr, expr.parts().as_slice()) {
            (Expr::Paren(e), _) => {
                self.out += " (";
                self.infix(e);
                self.out += " )";
            }
            (Expr::Transp(pairs, e) | Expr::Contr(pairs, e), _) => {
                self.infix(e);
                self.spelled += 1;
                let comma = if self.spelled.is_multiple_of(2) { "," } else { "" };
                let each: Vec<String> = pairs.iter().map(|(i0, i1)| format!("[{i0}{comma} {i1}]")).collect();
                let list = each.join(if self.spelled.is_multiple_of(3) { ", " } else { " " });
                // One pair needs no second brackets, but may have them.
                let bare = pairs.len() == 1 && !self.spelled.is_multiple_of(4);
                let _ = if bare { write!(self.out, " {sign} {list}") } else { write!(self.out, " {sign} [{list}]") };
            }
            (_, [left, right]) => {
                self.infix(left);
                let _ = write!(self.out, " {sign}");
                // Only a mistake stands here without parentheses of its own.
                let closed = matches!(right, Expr::Var(_) | Expr::Paren(_));
                self.out += if closed { "" } else { " (" };
                self.infix(right);
                self.out += if closed { "" } else { " )" };
            }
            (Expr::Var(tensor), _) => {
                let _ = write!(self.out, " {}", self.sample.name(*tensor));
            }
            _ => {}
        }
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
            Expr::Elem(op, ..) => arith_word(*op).into(),
            Expr::Prod(..) => "prod".into(),
            Expr::Red(op, i, _) => format!("{}{}", red_word(*op), positions(&[*i])),
            Expr::Transp(pairs, _) if self.sample.mode == Notation::CoreTeil => format!("transp {}", pairs[0].0),
            Expr::Transp(pairs, _) => format!("transp {} {}", pairs[0].0, pairs[0].1),
            Expr::Diag(i0, i1, _) => format!("diag{}", positions(&[*i0, *i1])),
            Expr::Contr(pairs, _) => format!("contr {} {}", pairs[0].0, pairs[0].1),
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

/// How TeIL writes an operation entry by entry; it has no words for the model language's own.
fn arith_word(op: Arith) -> &'static str {
    match op {
        Arith::Add => "add",
        Arith::Sub => "sub",
        Arith::Mul => "mul",
        Arith::Div => "div",
    }
}

/// How the model language writes it.
fn arith_sign(op: Arith) -> &'static str {
    match op {
        Arith::Add => "+",
        Arith::Sub => "-",
        Arith::Mul => "*",
        Arith::Div => "/",
    }
}
