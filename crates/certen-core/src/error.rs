//! Why an evaluation has no result.

use std::fmt;

use certen_index::IxError;
use certen_syntax::Code;

use crate::domain::Fault;

/// Why an evaluation has no result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EvalError {
    /// The domain has no value for an operation.
    Fault(Fault),
    /// The fuel is used up.
    Fuel,
    /// There is no memory for a tensor.
    Memory,
    /// An index outside its tensor. Accepted programs have none.
    OutOfBounds(String),
    /// A minimum or maximum over nothing.
    EmptyReduction,
    /// An index expression has no value.
    Index(IxError),
    /// The sizes or inputs are not those of the program.
    Call(String),
}

impl EvalError {
    /// The error's code in the index.
    pub fn code(&self) -> Code {
        match self {
            EvalError::Fault(Fault::Undefined) => Code::E0503,
            EvalError::Fault(Fault::TooLarge) => Code::E0502,
            EvalError::Fault(Fault::Unsupported(_)) => Code::E0504,
            EvalError::Fuel => Code::E0501,
            EvalError::Memory => Code::E0408,
            EvalError::Call(_) => Code::E0403,
            EvalError::OutOfBounds(_) | EvalError::EmptyReduction | EvalError::Index(_) => Code::E0701,
        }
    }
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvalError::Fault(fault) => write!(f, "{fault}"),
            EvalError::Fuel => write!(f, "the evaluation was stopped: it takes more steps than its fuel allows"),
            EvalError::Memory => write!(f, "there is not enough memory for the tensors of this evaluation"),
            EvalError::OutOfBounds(access) => write!(f, "the access {access} is out of bounds"),
            EvalError::EmptyReduction => write!(f, "a minimum or maximum over an empty range"),
            EvalError::Index(error) => write!(f, "an index has no value: {error}"),
            EvalError::Call(text) => write!(f, "{text}"),
        }
    }
}

impl std::error::Error for EvalError {}

impl From<Fault> for EvalError {
    fn from(fault: Fault) -> EvalError {
        EvalError::Fault(fault)
    }
}

impl From<IxError> for EvalError {
    fn from(error: IxError) -> EvalError {
        EvalError::Index(error)
    }
}
