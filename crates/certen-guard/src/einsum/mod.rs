//! Calls of `einsum` in Python sources: what is known of the shapes of their operands, and whether their sizes agree.
//!
//! Shapes are known from literals (`np.zeros((3, 4))`), from annotations (`Float[Array, "m n"]`) and from comments at the
//! end of the line (`# (m, n)`). An operand of which nothing is known has the sizes that its subscripts name.

mod call;
mod shapes;

pub(crate) use call::call;
pub(crate) use shapes::{annotated, commented, made, method};
