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
mod log;
mod pieces;
mod pow;
mod recipe;
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
    /// Natural logarithm.
    Log "log" 1 false log::log,
    /// Sine.
    Sin "sin" 1 true trig::sin,
    /// Cosine.
    Cos "cos" 1 true trig::cos,
    /// Hyperbolic tangent.
    Tanh "tanh" 1 true hyperbolic::tanh,
    /// Error function.
    Erf "erf" 1 true erf::erf,
    /// Power.
    Pow "pow" 2 false pow::pow,
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
