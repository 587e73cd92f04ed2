//! Arguments: the sizes and inputs that a program is run on, checked against what it says of them.

use std::collections::HashMap;

use certen_index::Cond;
use certen_syntax::Name;

use crate::error::EvalError;
use crate::program::Parameter;
use crate::tensor::{Named, Tensor};

/// Sizes and inputs that fit a program.
#[derive(Clone, Debug)]
pub struct Arguments<V> {
    sizes: HashMap<Name, i64>,
    inputs: Named<V>,
}

impl<V> Arguments<V> {
    /// Checks sizes against a program's facts, and inputs against its parameters, whose order they get.
    ///
    /// # Errors
    /// If a fact does not hold, an input is missing, or an input's shape is not what the program says.
    pub fn new(
        facts: &[Cond],
        parameters: &[Parameter],
        sizes: impl IntoIterator<Item = (Name, i64)>,
        inputs: impl IntoIterator<Item = (Name, Tensor<V>)>,
    ) -> Result<Arguments<V>, EvalError> {
        let mut arguments = Arguments { sizes: sizes.into_iter().collect(), inputs: Vec::new() };
        for fact in facts {
            if !fact.eval(&|name| arguments.size(name))? {
                return Err(EvalError::Call(format!("the sizes do not satisfy {fact}")));
            }
        }
        let mut given: HashMap<Name, Tensor<V>> = inputs.into_iter().collect();
        for Parameter { name, ty } in parameters {
            let Some(tensor) = given.remove(name) else {
                return Err(EvalError::Call(format!("the input {name} is missing")));
            };
            for size in ty.shape.iter() {
                let value = size.eval(&|name| arguments.size(name))?;
                if value < 0 {
                    return Err(EvalError::Call(format!("{size}, a size of {name}, is {value}")));
                }
            }
            let shape = ty.shape_at(&|name| arguments.size(name))?;
            if tensor.shape() != shape {
                let text = format!("{name} has shape {:?}, but {ty} is {shape:?}", tensor.shape());
                return Err(EvalError::Call(text));
            }
            arguments.inputs.push((*name, tensor));
        }
        Ok(arguments)
    }

    /// The value of a size; none if the program has no such size.
    pub fn size(&self, name: Name) -> Option<i64> {
        self.sizes.get(&name).copied()
    }

    /// Takes the inputs out, in the order of the parameters.
    pub fn take_inputs(&mut self) -> Named<V> {
        std::mem::take(&mut self.inputs)
    }
}
