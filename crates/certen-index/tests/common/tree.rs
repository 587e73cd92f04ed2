//! Expressions and conditions as they are written, with what they mean: as numbers, as text, as SMT-LIB.

use std::ops;

/// An integer expression; a name is a position in a list of names.
#[derive(Clone, PartialEq, Debug)]
pub enum Expr {
    Int(i64),
    Name(usize),
    Add(Box<Expr>, Box<Expr>),
    Sub(Box<Expr>, Box<Expr>),
    Mul(Box<Expr>, Box<Expr>),
    FloorDiv(Box<Expr>, i64),
    CeilDiv(Box<Expr>, i64),
    Mod(Box<Expr>, i64),
    Min(Box<Expr>, Box<Expr>),
    Max(Box<Expr>, Box<Expr>),
}

/// How two expressions are compared.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Op {
    Lt,
    Le,
    Gt,
    Ge,
    Eq,
    Ne,
}

/// A condition.
#[derive(Clone, PartialEq, Debug)]
pub enum Formula {
    Compare(Op, Expr, Expr),
    /// All hold; with none, true.
    And(Vec<Formula>),
    /// One holds; with none, false.
    Or(Vec<Formula>),
    Not(Box<Formula>),
}

impl ops::Add for Expr {
    type Output = Expr;
    fn add(self, other: Expr) -> Expr {
        Expr::Add(self.into(), other.into())
    }
}

impl ops::Sub for Expr {
    type Output = Expr;
    fn sub(self, other: Expr) -> Expr {
        Expr::Sub(self.into(), other.into())
    }
}

impl ops::Mul for Expr {
    type Output = Expr;
    fn mul(self, other: Expr) -> Expr {
        Expr::Mul(self.into(), other.into())
    }
}

/// A number as an expression.
pub fn int(value: i64) -> Expr {
    Expr::Int(value)
}

impl Expr {
    pub fn floor_div(self, divisor: i64) -> Expr {
        Expr::FloorDiv(self.into(), divisor)
    }

    pub fn ceil_div(self, divisor: i64) -> Expr {
        Expr::CeilDiv(self.into(), divisor)
    }

    pub fn modulo(self, divisor: i64) -> Expr {
        Expr::Mod(self.into(), divisor)
    }

    pub fn min(self, other: Expr) -> Expr {
        Expr::Min(self.into(), other.into())
    }

    pub fn max(self, other: Expr) -> Expr {
        Expr::Max(self.into(), other.into())
    }

    pub fn is(self, op: Op, other: Expr) -> Formula {
        Formula::Compare(op, self, other)
    }

    pub fn lt(self, other: Expr) -> Formula {
        self.is(Op::Lt, other)
    }

    pub fn le(self, other: Expr) -> Formula {
        self.is(Op::Le, other)
    }

    pub fn ge(self, other: Expr) -> Formula {
        self.is(Op::Ge, other)
    }

    pub fn eq(self, other: Expr) -> Formula {
        self.is(Op::Eq, other)
    }

    /// `low <= self < end`
    pub fn within(self, low: Expr, end: Expr) -> Formula {
        Formula::And(vec![low.le(self.clone()), self.lt(end)])
    }

    /// The parts, for functions of one or two expressions.
    fn parts(&self) -> (Option<&Expr>, Option<&Expr>) {
        match self {
            Expr::Int(_) | Expr::Name(_) => (None, None),
            Expr::FloorDiv(a, _) | Expr::CeilDiv(a, _) | Expr::Mod(a, _) => (Some(a), None),
            Expr::Add(a, b) | Expr::Sub(a, b) | Expr::Mul(a, b) | Expr::Min(a, b) | Expr::Max(a, b) => {
                (Some(a), Some(b))
            }
        }
    }

    /// The value where names have these values, if no step leaves 64 bits.
    pub fn eval(&self, values: &[i64]) -> Option<i64> {
        Some(match self {
            Expr::Int(value) => *value,
            Expr::Name(at) => values[*at],
            Expr::Add(a, b) => a.eval(values)?.checked_add(b.eval(values)?)?,
            Expr::Sub(a, b) => a.eval(values)?.checked_sub(b.eval(values)?)?,
            Expr::Mul(a, b) => a.eval(values)?.checked_mul(b.eval(values)?)?,
            Expr::FloorDiv(a, k) => a.eval(values)?.div_euclid(*k),
            Expr::CeilDiv(a, k) => {
                let a = a.eval(values)?;
                a.div_euclid(*k) + i64::from(a.rem_euclid(*k) != 0)
            }
            Expr::Mod(a, k) => a.eval(values)?.rem_euclid(*k),
            Expr::Min(a, b) => a.eval(values)?.min(b.eval(values)?),
            Expr::Max(a, b) => a.eval(values)?.max(b.eval(values)?),
        })
    }

    /// The expression with a name replaced.
    pub fn replaced(&self, name: usize, by: &Expr) -> Expr {
        let part = |e: &Expr| e.replaced(name, by);
        match self {
            Expr::Name(at) if *at == name => by.clone(),
            Expr::Int(_) | Expr::Name(_) => self.clone(),
            Expr::Add(a, b) => part(a) + part(b),
            Expr::Sub(a, b) => part(a) - part(b),
            Expr::Mul(a, b) => part(a) * part(b),
            Expr::FloorDiv(a, k) => part(a).floor_div(*k),
            Expr::CeilDiv(a, k) => part(a).ceil_div(*k),
            Expr::Mod(a, k) => part(a).modulo(*k),
            Expr::Min(a, b) => part(a).min(part(b)),
            Expr::Max(a, b) => part(a).max(part(b)),
        }
    }

    /// Whether names are multiplied.
    pub fn has_product(&self) -> bool {
        let is_product = matches!(self, Expr::Mul(a, b) if a.last_name().is_some() && b.last_name().is_some());
        let (a, b) = self.parts();
        is_product || [a, b].into_iter().flatten().any(Expr::has_product)
    }

    /// The last of the names that occur.
    pub fn last_name(&self) -> Option<usize> {
        let (a, b) = self.parts();
        let own = if let Expr::Name(at) = self { Some(*at) } else { None };
        [a, b].into_iter().flatten().filter_map(Expr::last_name).chain(own).max()
    }

    /// The text that the prover reads.
    pub fn text(&self, names: &[String]) -> String {
        let factor = |e: &Expr| match e {
            Expr::Add(..) | Expr::Sub(..) => format!("({})", e.text(names)),
            Expr::Int(..0) => format!("({})", e.text(names)),
            _ => e.text(names),
        };
        match self {
            Expr::Int(value) => value.to_string(),
            Expr::Name(at) => names[*at].clone(),
            Expr::Add(a, b) => match &**b {
                Expr::Add(..) | Expr::Sub(..) => format!("{} + ({})", a.text(names), b.text(names)),
                _ => format!("{} + {}", a.text(names), b.text(names)),
            },
            Expr::Sub(a, b) => format!("{} - {}", a.text(names), factor(b)),
            Expr::Mul(a, b) => match &**b {
                Expr::Mul(..) => format!("{}*({})", factor(a), b.text(names)),
                _ => format!("{}*{}", factor(a), factor(b)),
            },
            Expr::FloorDiv(a, k) => format!("floor_div({}, {k})", a.text(names)),
            Expr::CeilDiv(a, k) => format!("ceil_div({}, {k})", a.text(names)),
            Expr::Mod(a, k) => format!("mod({}, {k})", a.text(names)),
            Expr::Min(a, b) => format!("min({}, {})", a.text(names), b.text(names)),
            Expr::Max(a, b) => format!("max({}, {})", a.text(names), b.text(names)),
        }
    }

    /// The expression in SMT-LIB 2, whose `div` and `mod` round down for positive divisors.
    pub fn smt(&self, names: &[String]) -> String {
        let two = |f: &str, a: &Expr, b: &Expr| format!("({f} {} {})", a.smt(names), b.smt(names));
        let choice = |f: &str, a: &Expr, b: &Expr| {
            let (a, b) = (a.smt(names), b.smt(names));
            format!("(ite ({f} {a} {b}) {a} {b})")
        };
        match self {
            Expr::Int(value @ ..0) => format!("(- {})", value.unsigned_abs()),
            Expr::Int(value) => value.to_string(),
            Expr::Name(at) => format!("|{}|", names[*at]),
            Expr::Add(a, b) => two("+", a, b),
            Expr::Sub(a, b) => two("-", a, b),
            Expr::Mul(a, b) => two("*", a, b),
            Expr::FloorDiv(a, k) => format!("(div {} {k})", a.smt(names)),
            Expr::CeilDiv(a, k) => format!("(- (div (- {}) {k}))", a.smt(names)),
            Expr::Mod(a, k) => format!("(mod {} {k})", a.smt(names)),
            Expr::Min(a, b) => choice("<=", a, b),
            Expr::Max(a, b) => choice(">=", a, b),
        }
    }
}

impl Op {
    fn text(self) -> &'static str {
        match self {
            Op::Lt => "<",
            Op::Le => "<=",
            Op::Gt => ">",
            Op::Ge => ">=",
            Op::Eq => "==",
            Op::Ne => "!=",
        }
    }

    fn holds(self, a: i64, b: i64) -> bool {
        match self {
            Op::Lt => a < b,
            Op::Le => a <= b,
            Op::Gt => a > b,
            Op::Ge => a >= b,
            Op::Eq => a == b,
            Op::Ne => a != b,
        }
    }
}

impl Formula {
    pub fn not(self) -> Formula {
        Formula::Not(self.into())
    }

    /// Whether it holds where names have these values, if no step leaves 64 bits.
    pub fn eval(&self, values: &[i64]) -> Option<bool> {
        match self {
            Formula::Compare(op, a, b) => Some(op.holds(a.eval(values)?, b.eval(values)?)),
            Formula::And(all) => all.iter().try_fold(true, |held, one| Some(held && one.eval(values)?)),
            Formula::Or(any) => any.iter().try_fold(false, |held, one| Some(held || one.eval(values)?)),
            Formula::Not(one) => one.eval(values).map(|held| !held),
        }
    }

    /// What is compared, in order.
    pub fn comparisons(&self) -> Vec<(&Expr, &Expr)> {
        match self {
            Formula::Compare(_, a, b) => vec![(a, b)],
            Formula::And(list) | Formula::Or(list) => list.iter().flat_map(Formula::comparisons).collect(),
            Formula::Not(one) => one.comparisons(),
        }
    }

    /// The condition with a name replaced.
    pub fn replaced(&self, name: usize, by: &Expr) -> Formula {
        let each = |list: &[Formula]| list.iter().map(|one| one.replaced(name, by)).collect();
        match self {
            Formula::Compare(op, a, b) => a.replaced(name, by).is(*op, b.replaced(name, by)),
            Formula::And(all) => Formula::And(each(all)),
            Formula::Or(any) => Formula::Or(each(any)),
            Formula::Not(one) => one.replaced(name, by).not(),
        }
    }

    pub fn has_product(&self) -> bool {
        match self {
            Formula::Compare(_, a, b) => a.has_product() || b.has_product(),
            Formula::And(list) | Formula::Or(list) => list.iter().any(Formula::has_product),
            Formula::Not(one) => one.has_product(),
        }
    }

    pub fn last_name(&self) -> Option<usize> {
        match self {
            Formula::Compare(_, a, b) => a.last_name().max(b.last_name()),
            Formula::And(list) | Formula::Or(list) => list.iter().filter_map(Formula::last_name).max(),
            Formula::Not(one) => one.last_name(),
        }
    }

    /// The text that the prover reads.
    pub fn text(&self, names: &[String]) -> String {
        let joined = |list: &[Formula], by: &str| {
            let part = |one: &Formula| match one {
                Formula::Compare(..) | Formula::Not(_) => one.text(names),
                _ => format!("({})", one.text(names)),
            };
            list.iter().map(part).collect::<Vec<_>>().join(by)
        };
        match self {
            Formula::Compare(op, a, b) => format!("{} {} {}", a.text(names), op.text(), b.text(names)),
            Formula::And(all) if all.is_empty() => "true".into(),
            Formula::Or(any) if any.is_empty() => "false".into(),
            Formula::And(all) => joined(all, " && "),
            Formula::Or(any) => joined(any, " || "),
            Formula::Not(one) => format!("!({})", one.text(names)),
        }
    }

    /// The condition in SMT-LIB 2.
    pub fn smt(&self, names: &[String]) -> String {
        let joined = |list: &[Formula]| list.iter().map(|one| one.smt(names)).collect::<Vec<_>>().join(" ");
        match self {
            Formula::Compare(Op::Ne, a, b) => format!("(not (= {} {}))", a.smt(names), b.smt(names)),
            Formula::Compare(Op::Eq, a, b) => format!("(= {} {})", a.smt(names), b.smt(names)),
            Formula::Compare(op, a, b) => format!("({} {} {})", op.text(), a.smt(names), b.smt(names)),
            Formula::And(all) if all.is_empty() => "true".into(),
            Formula::Or(any) if any.is_empty() => "false".into(),
            Formula::And(all) => format!("(and {})", joined(all)),
            Formula::Or(any) => format!("(or {})", joined(any)),
            Formula::Not(one) => format!("(not {})", one.smt(names)),
        }
    }
}
