//! Mathematics: elementary functions, written once, as data.
//!
//! Each [`Function`] has a [`Recipe`] for each precision: a list of operations that IEEE 754 defines exactly, without
//! branches. The interpreter of recipes ([`Function::double`], [`Function::single`]) is what the reference evaluator and the
//! interpreters of loops use; the code generator prints the same recipes as C, for numbers and for vectors of any width. So
//! everybody computes the same bits, whatever compiler, vectors or processor there are. There is no other definition of these
//! functions anywhere.
//!
//! Each family of functions is a file that opens with its method and the bound of its error; `derive.py` derives the
//! coefficients.
//!
//! Needs: nothing. Guarantees: results within the errors that `docs/reference/functions.md` lists, all special values those
//! of IEEE 754 and C.

mod build;
#[rustfmt::skip]
mod coefficients;
mod erf;
mod evaluate;
mod exp;
mod hyperbolic;
mod inverse;
mod log;
mod pieces;
mod pow;
mod recipe;
mod roots;
mod trig;

use std::sync::OnceLock;

pub use pow::MAX_MULTIPLIED;
pub use recipe::{Kind, One, Place, Precision, Rare, Recipe, Step, Table, Two};

macro_rules! functions {
    ($($(#[$doc:meta])* $variant:ident $name:literal $arguments:literal $total:literal $family:ident::$recipe:ident,)*) => {
        /// An elementary function.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum Function {
            $($(#[$doc])* $variant,)*
        }

        impl Function {
            /// Every one.
            pub const ALL: &'static [Function] = &[$(Function::$variant),*];

            /// Its name in mathematics, and in C where C has it.
            pub fn name(self) -> &'static str {
                match self { $(Function::$variant => $name),* }
            }

            /// How many arguments it has.
            pub fn arguments(self) -> usize {
                match self { $(Function::$variant => $arguments),* }
            }

            /// Whether it has a value for all finite arguments.
            pub fn is_total(self) -> bool {
                match self { $(Function::$variant => $total),* }
            }

            fn build(self, precision: Precision) -> Recipe {
                match self { $(Function::$variant => $family::$recipe(precision)),* }
            }
        }
    };
}

functions! {
    /// Exponential.
    Exp "exp" 1 true exp::exp,
    /// Power of 2.
    Exp2 "exp2" 1 true exp::exp2,
    /// `exp(x) - 1`.
    Expm1 "expm1" 1 true exp::expm1,
    /// Natural logarithm.
    Log "log" 1 false log::log,
    /// Logarithm to the base 2.
    Log2 "log2" 1 false log::log2,
    /// Logarithm to the base 10.
    Log10 "log10" 1 false log::log10,
    /// `log(1 + x)`.
    Log1p "log1p" 1 false log::log1p,
    /// Sine.
    Sin "sin" 1 true trig::sin,
    /// Cosine.
    Cos "cos" 1 true trig::cos,
    /// Tangent.
    Tan "tan" 1 true trig::tan,
    /// Arc sine.
    Asin "asin" 1 false inverse::asin,
    /// Arc cosine.
    Acos "acos" 1 false inverse::acos,
    /// Arc tangent.
    Atan "atan" 1 true inverse::atan,
    /// The angle of a point, of which the second coordinate is the first argument.
    Atan2 "atan2" 2 true inverse::atan2,
    /// Hyperbolic sine.
    Sinh "sinh" 1 true hyperbolic::sinh,
    /// Hyperbolic cosine.
    Cosh "cosh" 1 true hyperbolic::cosh,
    /// Hyperbolic tangent.
    Tanh "tanh" 1 true hyperbolic::tanh,
    /// Inverse of the hyperbolic sine.
    Asinh "asinh" 1 true hyperbolic::asinh,
    /// Inverse of the hyperbolic cosine.
    Acosh "acosh" 1 false hyperbolic::acosh,
    /// Inverse of the hyperbolic tangent.
    Atanh "atanh" 1 false hyperbolic::atanh,
    /// Error function.
    Erf "erf" 1 true erf::erf,
    /// `1 - erf(x)`.
    Erfc "erfc" 1 true erf::erfc,
    /// Power.
    Pow "pow" 2 false pow::pow,
    /// Cube root.
    Cbrt "cbrt" 1 true roots::cbrt,
    /// `sqrt(x^2 + y^2)`.
    Hypot "hypot" 2 true roots::hypot,
    /// `1 / (1 + exp(-x))`.
    Sigmoid "sigmoid" 1 true exp::sigmoid,
}

impl Function {
    /// How it is computed, with arguments and results of a precision.
    pub fn recipe(self, precision: Precision) -> &'static Recipe {
        static RECIPES: [[OnceLock<Recipe>; 2]; Function::ALL.len()] =
            [const { [const { OnceLock::new() }; 2] }; Function::ALL.len()];
        RECIPES[self as usize][precision as usize].get_or_init(|| self.build(precision))
    }

    /// Its value; an argument that is missing counts as 0.
    pub fn double(self, arguments: &[f64]) -> f64 {
        self.value(Precision::Double, arguments)
    }

    /// Its value in single precision.
    pub fn single(self, arguments: &[f32]) -> f32 {
        let [x, y] = [0, 1].map(|at| arguments.get(at).map_or(0.0, |x| f64::from(*x)));
        self.value(Precision::Single, &[x, y]) as f32
    }

    fn value(self, precision: Precision, arguments: &[f64]) -> f64 {
        let [x, y] = [0, 1].map(|at| arguments.get(at).copied().unwrap_or(0.0));
        evaluate::value(self.recipe(precision), &[x, y])
    }
}
