//! Types: an element type and a shape of symbolic sizes.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use certen_index::{Ix, IxError};
use certen_syntax::Name;

/// The type of the elements of a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum ElemType {
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
    /// 32-bit integers that wrap.
    I32,
    /// 64-bit integers that wrap.
    I64,
    /// Bytes: loaded, stored, compared, cast.
    U8,
    /// Truth values.
    Bool,
}

impl ElemType {
    /// Every element type.
    pub const ALL: [ElemType; 6] =
        [ElemType::F32, ElemType::F64, ElemType::I32, ElemType::I64, ElemType::U8, ElemType::Bool];

    /// As it is written in programs.
    pub fn name(self) -> &'static str {
        match self {
            ElemType::F32 => "f32",
            ElemType::F64 => "f64",
            ElemType::I32 => "i32",
            ElemType::I64 => "i64",
            ElemType::U8 => "u8",
            ElemType::Bool => "bool",
        }
    }

    /// How many bytes an element takes.
    pub fn bytes(self) -> usize {
        match self {
            ElemType::F64 | ElemType::I64 => 8,
            ElemType::F32 | ElemType::I32 => 4,
            ElemType::U8 | ElemType::Bool => 1,
        }
    }

    /// f32 or f64.
    pub fn is_float(self) -> bool {
        matches!(self, ElemType::F32 | ElemType::F64)
    }

    /// i32 or i64.
    pub fn is_int(self) -> bool {
        matches!(self, ElemType::I32 | ElemType::I64)
    }

    /// Whether `+ - *`, min and max work on it.
    pub fn has_arithmetic(self) -> bool {
        self.is_float() || self.is_int()
    }
}

impl fmt::Display for ElemType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ElemType {
    type Err = ();

    fn from_str(text: &str) -> Result<ElemType, ()> {
        ElemType::ALL.into_iter().find(|elem| elem.name() == text).ok_or(())
    }
}

/// An element type and a shape; a scalar has the empty shape.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TensorType {
    /// The type of the elements.
    pub elem: ElemType,
    /// The sizes, outermost first.
    pub shape: Arc<[Ix]>,
}

impl TensorType {
    /// A tensor type.
    pub fn new(elem: ElemType, shape: impl Into<Arc<[Ix]>>) -> TensorType {
        TensorType { elem, shape: shape.into() }
    }

    /// The type of single elements.
    pub fn scalar(elem: ElemType) -> TensorType {
        TensorType { elem, shape: Arc::from([]) }
    }

    /// How many dimensions it has.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The shape where sizes have these values; a size that would be negative is 0.
    ///
    /// # Errors
    /// If a size has no value, or one that does not fit in 64 bits.
    pub fn shape_at(&self, value: &impl Fn(Name) -> Option<i64>) -> Result<Vec<usize>, IxError> {
        self.shape.iter().map(|size| Ok(usize::try_from(size.eval(value)?).unwrap_or(0))).collect()
    }

    /// The type with other sizes.
    ///
    /// # Errors
    /// What the function says.
    pub fn with_sizes<E>(&self, size: impl FnMut(&Ix) -> Result<Ix, E>) -> Result<TensorType, E> {
        Ok(TensorType { elem: self.elem, shape: self.shape.iter().map(size).collect::<Result<_, E>>()? })
    }

    /// Whether it has no dimensions.
    pub fn is_scalar(&self) -> bool {
        self.shape.is_empty()
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.shape.iter().map(Ix::to_string).collect();
        write!(f, "{}[{}]", self.elem, sizes.join(", "))
    }
}

/// Why a term or table cannot be built.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypeError(pub String);

impl fmt::Display for TypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TypeError {}

impl From<IxError> for TypeError {
    fn from(error: IxError) -> TypeError {
        TypeError(error.to_string())
    }
}
