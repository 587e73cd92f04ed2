//! Building recipes: formulas in Rust's operators that note down steps.
//!
//! A step that is there already is not noted again, and what the result does not use is left out at the end.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Sub};

use crate::recipe::{Kind, One, Place, Precision, Rare, Recipe, Step, Table, Two};

/// The notebook.
pub(crate) struct Builder {
    precision: Precision,
    working: Precision,
    notes: RefCell<Notes>,
}

#[derive(Default)]
struct Notes {
    steps: Vec<Step>,
    kinds: Vec<Kind>,
    known: HashMap<Step, Place>,
}

/// A value that a step gives. Floats, bits and truth values have the same operators where they mean the same.
#[derive(Clone, Copy)]
pub(crate) struct V<'b> {
    notes: &'b Builder,
    at: Place,
}

impl Builder {
    /// For arguments of this precision, computing in that one.
    pub(crate) fn new(precision: Precision, working: Precision) -> Builder {
        Builder { precision, working, notes: RefCell::default() }
    }

    /// What it computes in, and what its results have to be precise in.
    pub(crate) fn working(&self) -> Precision {
        self.working
    }

    pub(crate) fn precision(&self) -> Precision {
        self.precision
    }

    fn note(&self, step: Step, kind: Kind) -> V<'_> {
        let mut notes = self.notes.borrow_mut();
        let next = notes.steps.len();
        let at = *notes.known.entry(step).or_insert(next);
        if at == next {
            notes.steps.push(step);
            notes.kinds.push(kind);
        }
        V { notes: self, at }
    }

    pub(crate) fn argument(&self, number: usize) -> V<'_> {
        self.note(Step::Argument(number), Kind::Float)
    }

    /// A float: rounded to the working precision.
    pub(crate) fn float(&self, value: f64) -> V<'_> {
        let value = if self.working == Precision::Single { f64::from(value as f32) } else { value };
        match (value.is_finite(), self.working) {
            (true, _) => self.note(Step::Float(value.to_bits()), Kind::Float),
            (false, Precision::Double) => self.bits(value.to_bits()).float(),
            (false, Precision::Single) => self.bits(u64::from((value as f32).to_bits())).float(),
        }
    }

    /// An integer: as many of its bits as the working precision has.
    pub(crate) fn bits(&self, value: u64) -> V<'_> {
        let value = if self.working == Precision::Single { value & u64::from(u32::MAX) } else { value };
        self.note(Step::Integer(value), Kind::Bits)
    }

    /// A polynomial, the lowest coefficient first, in halves that do not wait for each other: pairs, pairs of pairs and so on.
    pub(crate) fn estrin<'b>(&'b self, x: V<'b>, c: &[f64]) -> V<'b> {
        let mut terms: Vec<V<'b>> = c.iter().map(|c| self.float(*c)).collect();
        let mut power = x;
        while terms.len() > 1 {
            let pair = |pair: &[V<'b>]| if let [low, high] = pair { high.fma(power, *low) } else { pair[0] };
            terms = terms.chunks(2).map(pair).collect();
            power = power * power;
        }
        terms.first().copied().unwrap_or_else(|| self.float(0.0))
    }

    /// The same but for the first coefficient, which is added last and so rounds alone.
    pub(crate) fn estrin_last<'b>(&'b self, x: V<'b>, c: &[f64]) -> V<'b> {
        match c {
            [first, rest @ ..] => x.fma(self.estrin(x, rest), self.float(*first)),
            [] => self.float(0.0),
        }
    }

    /// The element of a table that bits number, after the last one the first again.
    pub(crate) fn look<'b>(&'b self, table: Table, at: V<'b>) -> V<'b> {
        let at = at & self.bits(table.elements().len() as u64 - 1);
        self.note(Step::Look(table, at.at), Kind::Float)
    }

    /// The recipe that ends with this, whose rare arguments have another one.
    pub(crate) fn recipe(&self, result: V<'_>, rare: Option<(V<'_>, Recipe)>) -> Recipe {
        let notes = self.notes.borrow();
        let mut used = vec![false; notes.steps.len()];
        used[result.at] = true;
        if let Some((when, _)) = &rare {
            used[when.at] = true;
        }
        for at in (0..notes.steps.len()).rev() {
            if used[at] {
                notes.steps[at].uses().for_each(|before| used[before] = true);
            }
        }
        let place = |at: Place| used[..at].iter().filter(|used| **used).count();
        let kept = notes.steps.iter().zip(&used).filter(|(_, used)| **used);
        let steps: Vec<Step> = kept.map(|(step, _)| step.renamed(place)).collect();
        let arguments = |step: &Step| if let Step::Argument(at) = step { at + 1 } else { 0 };
        let own = steps.iter().map(arguments).max().unwrap_or(0);
        Recipe {
            precision: self.precision,
            working: self.working,
            arguments: own.max(rare.as_ref().map_or(0, |(_, recipe)| recipe.arguments)),
            steps,
            result: place(result.at),
            rare: rare.map(|(when, recipe)| Rare { when: place(when.at), recipe: Box::new(recipe) }),
        }
    }
}

impl<'b> V<'b> {
    fn kind(self) -> Kind {
        self.notes.notes.borrow().kinds[self.at]
    }

    fn one(self, op: One) -> V<'b> {
        self.notes.note(Step::One(op, self.at), op.kinds().1)
    }

    fn two(self, op: Two, other: V<'b>) -> V<'b> {
        self.notes.note(Step::Two(op, self.at, other.at), op.kinds().1)
    }

    /// One operation of floats, another of bits.
    fn either(self, floats: Two, bits: Two, other: V<'b>) -> V<'b> {
        self.two(if self.kind() == Kind::Float { floats } else { bits }, other)
    }

    /// `self * b + c`, rounded once.
    pub(crate) fn fma(self, b: V<'b>, c: V<'b>) -> V<'b> {
        self.notes.note(Step::Fma(self.at, b.at, c.at), Kind::Float)
    }

    pub(crate) fn abs(self) -> V<'b> {
        self.one(One::Abs)
    }

    pub(crate) fn sqrt(self) -> V<'b> {
        self.one(One::Sqrt)
    }

    /// Rounded to single precision.
    pub(crate) fn single(self) -> V<'b> {
        self.one(One::Single)
    }

    pub(crate) fn bits(self) -> V<'b> {
        self.one(One::ToBits)
    }

    pub(crate) fn float(self) -> V<'b> {
        self.one(One::FromBits)
    }

    pub(crate) fn up(self, places: u32) -> V<'b> {
        self.one(One::Up(places))
    }

    pub(crate) fn down(self, places: u32) -> V<'b> {
        self.one(One::Down(places))
    }

    pub(crate) fn less(self, other: V<'b>) -> V<'b> {
        self.two(Two::Less, other)
    }

    pub(crate) fn at_most(self, other: V<'b>) -> V<'b> {
        self.two(Two::LessEqual, other)
    }

    /// Whether floats, or bits, are equal.
    pub(crate) fn same(self, other: V<'b>) -> V<'b> {
        self.either(Two::Equal, Two::Same, other)
    }

    pub(crate) fn is_nan(self) -> V<'b> {
        !self.same(self)
    }

    /// Of truth values: the first where this holds, else the second.
    pub(crate) fn select(self, a: V<'b>, b: V<'b>) -> V<'b> {
        self.notes.note(Step::Select(self.at, a.at, b.at), a.kind())
    }

    /// The sign of a float, as bits.
    pub(crate) fn sign(self) -> V<'b> {
        let sign = if self.notes.working == Precision::Single { 1 << 31 } else { 1 << 63 };
        self.bits() & self.notes.bits(sign)
    }

    /// A float with the sign changed where bits of a sign say so.
    pub(crate) fn signed(self, sign: V<'b>) -> V<'b> {
        (self.bits() ^ sign).float()
    }
}

macro_rules! operator {
    ($trait:ident $method:ident $floats:ident $bits:ident) => {
        impl<'b> $trait for V<'b> {
            type Output = V<'b>;

            fn $method(self, other: V<'b>) -> V<'b> {
                self.either(Two::$floats, Two::$bits, other)
            }
        }
    };
}

macro_rules! with_numbers {
    ($trait:ident $method:ident) => {
        impl<'b> $trait<f64> for V<'b> {
            type Output = V<'b>;

            fn $method(self, other: f64) -> V<'b> {
                $trait::$method(self, self.notes.float(other))
            }
        }

        impl<'b> $trait<V<'b>> for f64 {
            type Output = V<'b>;

            fn $method(self, other: V<'b>) -> V<'b> {
                $trait::$method(other.notes.float(self), other)
            }
        }
    };
}

operator!(Add add Add Plus);
operator!(Sub sub Sub Minus);
operator!(Mul mul Mul Mul);
operator!(Div div Div Div);
with_numbers!(Add add);
with_numbers!(Sub sub);
with_numbers!(Mul mul);
with_numbers!(Div div);

impl<'b> BitAnd for V<'b> {
    type Output = V<'b>;

    fn bitand(self, other: V<'b>) -> V<'b> {
        self.two(if self.kind() == Kind::Truth { Two::Both } else { Two::And }, other)
    }
}

impl<'b> BitOr for V<'b> {
    type Output = V<'b>;

    fn bitor(self, other: V<'b>) -> V<'b> {
        self.two(if self.kind() == Kind::Truth { Two::Either } else { Two::Or }, other)
    }
}

impl<'b> BitXor for V<'b> {
    type Output = V<'b>;

    fn bitxor(self, other: V<'b>) -> V<'b> {
        self.two(Two::Xor, other)
    }
}

impl<'b> Neg for V<'b> {
    type Output = V<'b>;

    fn neg(self) -> V<'b> {
        self.one(One::Neg)
    }
}

impl<'b> Not for V<'b> {
    type Output = V<'b>;

    fn not(self) -> V<'b> {
        self.one(One::Not)
    }
}
