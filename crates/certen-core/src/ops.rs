//! Scalar operations of Core: their names, and which element types they take and give.

use certen_math::Function;

use crate::types::ElemType;

/// A number or truth value that stands in a program. Floats are equal if their bits are.
#[derive(Clone, Copy, Debug)]
pub enum Literal {
    /// For f32 and f64.
    Float(f64),
    /// For i32, i64 and u8.
    Int(i64),
    /// For bool.
    Bool(bool),
}

impl Literal {
    fn key(self) -> (u8, u64) {
        match self {
            Literal::Float(value) => (0, value.to_bits()),
            Literal::Int(value) => (1, value as u64),
            Literal::Bool(value) => (2, u64::from(value)),
        }
    }

    /// A whole number as a literal of an element type.
    pub fn whole(value: i64, elem: ElemType) -> Literal {
        match elem {
            ElemType::F32 => Literal::Float(f64::from(value as f32)),
            ElemType::F64 => Literal::Float(value as f64),
            ElemType::I32 | ElemType::I64 | ElemType::U8 => Literal::Int(value),
            ElemType::Bool => Literal::Bool(value != 0),
        }
    }

    /// Whether it can stand for a value of this element type.
    pub fn fits(self, elem: ElemType) -> bool {
        match self {
            Literal::Float(value) => {
                elem == ElemType::F64 || (elem == ElemType::F32 && (value.is_nan() || f64::from(value as f32) == value))
            }
            Literal::Int(value) => match elem {
                ElemType::I64 => true,
                ElemType::I32 => i32::try_from(value).is_ok(),
                ElemType::U8 => u8::try_from(value).is_ok(),
                _ => false,
            },
            Literal::Bool(_) => elem == ElemType::Bool,
        }
    }
}

impl PartialEq for Literal {
    fn eq(&self, other: &Literal) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Literal {}

impl std::hash::Hash for Literal {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

macro_rules! operations {
    ($(#[$doc:meta])* $kind:ident { $($(#[$variant_doc:meta])* $variant:ident $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum $kind {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $kind {
            /// Every one.
            pub const ALL: &'static [$kind] = &[$($kind::$variant),*];

            /// As it is written in the textual form of Core.
            pub fn name(self) -> &'static str {
                match self { $($kind::$variant => $name),* }
            }

            /// The one with this name.
            pub fn from_name(name: &str) -> Option<$kind> {
                match name { $($name => Some($kind::$variant),)* _ => None }
            }
        }
    };
}

operations! {
    /// Operations on one scalar.
    Unary {
        /// `-a`; wraps on integers.
        Neg "-",
        /// Logical not.
        Not "!",
        /// Absolute value; wraps on integers.
        Abs "abs",
        /// Largest integer not above.
        Floor "floor",
        /// Smallest integer not below.
        Ceil "ceil",
        /// Nearest integer, halves to even.
        Round "round",
        /// Square root.
        Sqrt "sqrt",
        /// Exponential.
        Exp "exp",
        /// Natural logarithm.
        Log "log",
        /// Sine.
        Sin "sin",
        /// Cosine.
        Cos "cos",
        /// Hyperbolic tangent.
        Tanh "tanh",
        /// Power of 2.
        Exp2 "exp2",
        /// `exp(a) - 1`.
        Expm1 "expm1",
        /// Logarithm to the base 2.
        Log2 "log2",
        /// Logarithm to the base 10.
        Log10 "log10",
        /// `log(1 + a)`.
        Log1p "log1p",
        /// Tangent.
        Tan "tan",
        /// Arc sine.
        Asin "asin",
        /// Arc cosine.
        Acos "acos",
        /// Arc tangent.
        Atan "atan",
        /// Hyperbolic sine.
        Sinh "sinh",
        /// Hyperbolic cosine.
        Cosh "cosh",
        /// Inverse of the hyperbolic sine.
        Asinh "asinh",
        /// Inverse of the hyperbolic cosine.
        Acosh "acosh",
        /// Inverse of the hyperbolic tangent.
        Atanh "atanh",
        /// Error function.
        Erf "erf",
        /// `1 - erf(a)`.
        Erfc "erfc",
        /// Cube root.
        Cbrt "cbrt",
        /// `1 / (1 + exp(-a))`.
        Sigmoid "sigmoid",
        /// The C library's exponential.
        LibmExp "libm_exp",
        /// The C library's natural logarithm.
        LibmLog "libm_log",
        /// The C library's sine.
        LibmSin "libm_sin",
        /// The C library's cosine.
        LibmCos "libm_cos",
        /// The C library's hyperbolic tangent.
        LibmTanh "libm_tanh",
        /// The C library's `exp2`.
        LibmExp2 "libm_exp2",
        /// The C library's `expm1`.
        LibmExpm1 "libm_expm1",
        /// The C library's `log2`.
        LibmLog2 "libm_log2",
        /// The C library's `log10`.
        LibmLog10 "libm_log10",
        /// The C library's `log1p`.
        LibmLog1p "libm_log1p",
        /// The C library's `tan`.
        LibmTan "libm_tan",
        /// The C library's `asin`.
        LibmAsin "libm_asin",
        /// The C library's `acos`.
        LibmAcos "libm_acos",
        /// The C library's `atan`.
        LibmAtan "libm_atan",
        /// The C library's `sinh`.
        LibmSinh "libm_sinh",
        /// The C library's `cosh`.
        LibmCosh "libm_cosh",
        /// The C library's `cbrt`.
        LibmCbrt "libm_cbrt",
    }
}

operations! {
    /// Operations on two scalars of the same element type.
    Binary {
        /// `a + b`; wraps on integers.
        Add "+",
        /// `a - b`; wraps on integers.
        Sub "-",
        /// `a * b`; wraps on integers.
        Mul "*",
        /// IEEE division.
        Div "/",
        /// Controlled division (model language, Def. 8): 0 where the numerator is 0.
        ControlledDiv "controlled_div",
        /// Integer division towards minus infinity; 0 where the divisor is 0.
        FloorDiv "floor_div",
        /// The remainder of `floor_div`; 0 where the divisor is 0.
        Mod "mod",
        /// The smaller; NaN if one of them is.
        Min "min",
        /// The larger; NaN if one of them is.
        Max "max",
        /// `a` to the power `b`, on floats.
        Pow "pow",
        /// The angle of a point whose second coordinate is `a`.
        Atan2 "atan2",
        /// `sqrt(a^2 + b^2)`
        Hypot "hypot",
        /// The C library's power, unless `b` is small and whole.
        LibmPow "libm_pow",
        /// The C library's `atan2`.
        LibmAtan2 "libm_atan2",
        /// The C library's `hypot`.
        LibmHypot "libm_hypot",
        /// Logical and.
        And "&&",
        /// Logical or.
        Or "||",
        /// `a < b`
        Lt "<",
        /// `a <= b`
        Le "<=",
        /// `a == b`
        Eq "==",
        /// `a != b`
        Ne "!=",
    }
}

operations! {
    /// Operators of reductions; all are associative and commutative over the reals.
    ReduceOp {
        /// Sum, 0 if empty; starts from +0.
        Sum "sum",
        /// Product, 1 if empty.
        Prod "product",
        /// Minimum of at least one element.
        Min "minimum",
        /// Maximum of at least one element.
        Max "maximum",
        /// Whether all hold.
        All "all",
        /// Whether one holds.
        Any "any",
    }
}

/// Which operations are functions of mathematics, by our recipes and by the C library.
macro_rules! mathematics {
    ($kind:ident: $($own:ident)*; $($with:ident $libm:ident)*) => {
        impl $kind {
            /// The function of mathematics that it is, whoever computes it.
            pub fn function(self) -> Option<Function> {
                match self {
                    $($kind::$own => Some(Function::$own),)*
                    $($kind::$with | $kind::$libm => Some(Function::$with),)*
                    _ => None,
                }
            }

            /// Whether the C library computes it, so that its bits depend on that.
            pub fn is_libm(self) -> bool {
                matches!(self, $($kind::$libm)|*)
            }

            /// The same, computed by the C library if it can.
            pub fn by_libm(self) -> $kind {
                match self {
                    $($kind::$with => $kind::$libm,)*
                    other => other,
                }
            }
        }
    };
}

mathematics!(Unary: Asinh Acosh Atanh Erf Erfc Sigmoid;
    Exp LibmExp Exp2 LibmExp2 Expm1 LibmExpm1 Log LibmLog Log2 LibmLog2 Log10 LibmLog10 Log1p LibmLog1p
    Sin LibmSin Cos LibmCos Tan LibmTan Asin LibmAsin Acos LibmAcos Atan LibmAtan
    Sinh LibmSinh Cosh LibmCosh Tanh LibmTanh Cbrt LibmCbrt);
mathematics!(Binary: ; Pow LibmPow Atan2 LibmAtan2 Hypot LibmHypot);

impl Unary {
    /// The element type of the result, if the operation takes this type.
    pub fn result(self, elem: ElemType) -> Option<ElemType> {
        let takes = match self {
            Unary::Not => elem == ElemType::Bool,
            Unary::Neg | Unary::Abs => elem.has_arithmetic(),
            _ => elem.is_float(),
        };
        takes.then_some(elem)
    }
}

impl Binary {
    /// The element type of the result, if the operation takes this type.
    pub fn result(self, elem: ElemType) -> Option<ElemType> {
        match self {
            Binary::Add | Binary::Sub | Binary::Mul | Binary::Min | Binary::Max => {
                elem.has_arithmetic().then_some(elem)
            }
            Binary::Div | Binary::ControlledDiv => elem.is_float().then_some(elem),
            _ if self.function().is_some() => elem.is_float().then_some(elem),
            Binary::FloorDiv | Binary::Mod => elem.is_int().then_some(elem),
            Binary::And | Binary::Or => (elem == ElemType::Bool).then_some(elem),
            _ => Some(ElemType::Bool),
        }
    }
}

impl ReduceOp {
    /// The operation that combines two elements.
    pub fn combine(self) -> Binary {
        match self {
            ReduceOp::Sum => Binary::Add,
            ReduceOp::Prod => Binary::Mul,
            ReduceOp::Min => Binary::Min,
            ReduceOp::Max => Binary::Max,
            ReduceOp::All => Binary::And,
            ReduceOp::Any => Binary::Or,
        }
    }

    /// The value of an empty reduction: minimum and maximum have none.
    pub fn identity(self, elem: ElemType) -> Option<Literal> {
        match self {
            ReduceOp::Sum => Some(Literal::whole(0, elem)),
            ReduceOp::Prod => Some(Literal::whole(1, elem)),
            ReduceOp::All => Some(Literal::Bool(true)),
            ReduceOp::Any => Some(Literal::Bool(false)),
            ReduceOp::Min | ReduceOp::Max => None,
        }
    }
}
