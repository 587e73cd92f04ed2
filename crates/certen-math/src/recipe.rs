//! Recipes: functions as lists of operations, each of which IEEE 754 or the arithmetic of bits defines exactly.
//!
//! A recipe has no branches: its steps are made in their order, for a number or for all lanes of a vector at once, and give
//! the same bits wherever each step does. What only few arguments need stands apart, as a recipe of its own
//! ([`Rare`]): its result takes the place of the other's where a condition holds, so that code may leave it out when the
//! condition holds in no lane.
//!
//! Guarantees: a step uses steps before it only, of the kinds that it takes; [`Recipe::kinds`] says which they are.

use crate::coefficients::TWO_OVER_PI;

/// The precision of floating-point numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Precision {
    /// Of 32 bits.
    Single,
    /// Of 64 bits.
    Double,
}

/// What a step gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A float of the recipe's working precision.
    Float,
    /// As many bits, as an unsigned integer that wraps.
    Bits,
    /// Whether something holds.
    Truth,
}

/// A table that recipes look into.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Table {
    /// `2/pi` times powers of two.
    TwoOverPi,
}

impl Table {
    /// Its name in C.
    pub fn name(self) -> &'static str {
        match self {
            Table::TwoOverPi => "two_over_pi",
        }
    }

    /// Its elements, a power of two of them.
    pub fn elements(self) -> &'static [f64] {
        match self {
            Table::TwoOverPi => &TWO_OVER_PI,
        }
    }
}

/// The place of a step in its recipe.
pub type Place = usize;

/// One operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// An argument, converted to the working precision.
    Argument(usize),
    /// A float, by the bits of its value in double precision; finite, and exact in the working precision.
    Float(u64),
    /// An integer of as many bits as the working precision has.
    Integer(u64),
    /// An operation on one value.
    One(One, Place),
    /// An operation on two values.
    Two(Two, Place, Place),
    /// `a * b + c`, rounded once.
    Fma(Place, Place, Place),
    /// The second where the first holds, else the third: floats or bits.
    Select(Place, Place, Place),
    /// The element of a table that bits number: a float.
    Look(Table, Place),
}

/// Operations on one value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum One {
    /// `-a` of a float.
    Neg,
    /// The absolute value of a float.
    Abs,
    /// The square root of a float.
    Sqrt,
    /// A float rounded to single precision.
    Single,
    /// The bits of a float.
    ToBits,
    /// The float that has these bits.
    FromBits,
    /// Bits moved up, zeros after them.
    Up(u32),
    /// Bits moved down, zeros before them.
    Down(u32),
    /// Not.
    Not,
}

/// Operations on two values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Two {
    /// `a + b` of floats.
    Add,
    /// `a - b` of floats.
    Sub,
    /// `a * b` of floats.
    Mul,
    /// `a / b` of floats.
    Div,
    /// `a < b` of floats.
    Less,
    /// `a <= b` of floats.
    LessEqual,
    /// `a == b` of floats.
    Equal,
    /// `a + b` of bits.
    Plus,
    /// `a - b` of bits.
    Minus,
    /// Bits that both have.
    And,
    /// Bits that one has.
    Or,
    /// Bits that only one has.
    Xor,
    /// Whether bits are equal.
    Same,
    /// Both hold.
    Both,
    /// One holds.
    Either,
}

/// What few arguments need.
#[derive(Clone, Debug)]
pub struct Rare {
    /// The step that says for which.
    pub when: Place,
    /// Their result, from the same arguments.
    pub recipe: Box<Recipe>,
}

/// A function as a list of operations.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Of arguments and result.
    pub precision: Precision,
    /// In which it computes: at least as precise.
    pub working: Precision,
    /// How many arguments it has.
    pub arguments: usize,
    /// In their order.
    pub steps: Vec<Step>,
    /// The step that is the result: a float.
    pub result: Place,
    /// What only few arguments need.
    pub rare: Option<Rare>,
}

impl Step {
    /// The steps that it uses.
    pub fn uses(self) -> impl Iterator<Item = Place> {
        let [a, b, c] = match self {
            Step::Argument(_) | Step::Float(_) | Step::Integer(_) => [None; 3],
            Step::One(_, a) | Step::Look(_, a) => [Some(a), None, None],
            Step::Two(_, a, b) => [Some(a), Some(b), None],
            Step::Fma(a, b, c) | Step::Select(a, b, c) => [Some(a), Some(b), Some(c)],
        };
        [a, b, c].into_iter().flatten()
    }

    /// The same with other steps in the place of those that it uses.
    pub fn renamed(self, f: impl Fn(Place) -> Place) -> Step {
        match self {
            Step::Argument(_) | Step::Float(_) | Step::Integer(_) => self,
            Step::One(op, a) => Step::One(op, f(a)),
            Step::Look(table, a) => Step::Look(table, f(a)),
            Step::Two(op, a, b) => Step::Two(op, f(a), f(b)),
            Step::Fma(a, b, c) => Step::Fma(f(a), f(b), f(c)),
            Step::Select(a, b, c) => Step::Select(f(a), f(b), f(c)),
        }
    }
}

impl Recipe {
    /// The kind of each step; none if a step takes another kind than it is given.
    pub fn kinds(&self) -> Option<Vec<Kind>> {
        let mut kinds: Vec<Kind> = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let of = |place: &Place| kinds.get(*place).copied();
            let all = |kind: Kind, places: &[&Place]| places.iter().all(|place| of(place) == Some(kind));
            let kind = match step {
                Step::Argument(at) => (*at < self.arguments).then_some(Kind::Float)?,
                Step::Float(_) => Kind::Float,
                Step::Integer(_) => Kind::Bits,
                Step::One(op, a) => {
                    let (takes, gives) = op.kinds();
                    all(takes, &[a]).then_some(gives)?
                }
                Step::Two(op, a, b) => {
                    let (takes, gives) = op.kinds();
                    all(takes, &[a, b]).then_some(gives)?
                }
                Step::Fma(a, b, c) => all(Kind::Float, &[a, b, c]).then_some(Kind::Float)?,
                Step::Select(mask, a, b) => {
                    let kind = of(a).filter(|kind| *kind != Kind::Truth)?;
                    (all(Kind::Truth, &[mask]) && all(kind, &[b])).then_some(kind)?
                }
                Step::Look(_, at) => all(Kind::Bits, &[at]).then_some(Kind::Float)?,
            };
            kinds.push(kind);
        }
        let ends = kinds.get(self.result) == Some(&Kind::Float);
        let rare = self.rare.as_ref().is_none_or(|rare| kinds.get(rare.when) == Some(&Kind::Truth));
        (ends && rare).then_some(kinds)
    }
}

impl One {
    /// What it takes and gives.
    pub fn kinds(self) -> (Kind, Kind) {
        match self {
            One::Neg | One::Abs | One::Sqrt | One::Single => (Kind::Float, Kind::Float),
            One::ToBits => (Kind::Float, Kind::Bits),
            One::FromBits => (Kind::Bits, Kind::Float),
            One::Up(_) | One::Down(_) => (Kind::Bits, Kind::Bits),
            One::Not => (Kind::Truth, Kind::Truth),
        }
    }
}

impl Two {
    /// What it takes and gives.
    pub fn kinds(self) -> (Kind, Kind) {
        match self {
            Two::Add | Two::Sub | Two::Mul | Two::Div => (Kind::Float, Kind::Float),
            Two::Less | Two::LessEqual | Two::Equal => (Kind::Float, Kind::Truth),
            Two::Plus | Two::Minus | Two::And | Two::Or | Two::Xor => (Kind::Bits, Kind::Bits),
            Two::Same => (Kind::Bits, Kind::Truth),
            Two::Both | Two::Either => (Kind::Truth, Kind::Truth),
        }
    }
}
