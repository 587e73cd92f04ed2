//! Loops run in the prime field.

use certen_core::domain::{Element, Field, Partial};
use certen_core::{ElemType, Tensor};
use certen_loops::{Interpreter, LoopProgram};
use certen_syntax::Name;

/// The value of a size.
pub fn value(sizes: &[(Name, i64)], name: Name) -> Option<i64> {
    sizes.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

/// The outputs of a run: none is the content of memory that nothing was written to.
pub type Values = Vec<(Name, Tensor<Option<Element>>)>;

/// Runs a program in the prime field, on inputs that are the same in every run.
pub fn run(program: &LoopProgram, sizes: &[(Name, i64)]) -> Result<Values, String> {
    let field = Partial(Field { seed: 7 });
    let mut inputs = Vec::new();
    for (number, input) in program.inputs.iter().enumerate() {
        let shape = input.ty.shape_at(&|name| value(sizes, name)).map_err(|error| format!("{error:?}"))?;
        let element = |at: usize| -> Result<Option<Element>, String> {
            let bits = (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (number as u64) << 32;
            Ok(Some(match input.ty.elem {
                ElemType::Bool => Element::Bool(bits >> 40 & 1 == 1),
                _ => Element::reduce(bits),
            }))
        };
        inputs.push((input.name, Tensor::from_fn(shape, element).unwrap()?));
    }
    let interpreter = Interpreter::new(program, &field, sizes.iter().copied(), inputs);
    interpreter.and_then(Interpreter::run).map_err(|error| error.to_string())
}
