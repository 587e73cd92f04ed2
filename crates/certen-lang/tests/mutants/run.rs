//! Accepted programs, run by the reference evaluator: no access of what they are turned into leaves its tensor either.

use certen_core::domain::{Machine, Scalar};
use certen_core::{EvalError, Evaluator, Tensor};
use certen_lang::{CheckedFile, FunctionRef, Known, passes, to_core};
use certen_syntax::{Diagnostics, Name};

use crate::sizes;

/// Runs every function of the main file that is not polymorphic at some small sizes; says what is wrong with one.
pub fn runs(file: &mut CheckedFile) -> Result<(), String> {
    let entries: Vec<FunctionRef> = file.library().own_functions().collect();
    for entry in entries {
        let Some(typed) = file.instantiate(entry, &Known::default(), &mut Diagnostics::new()) else { continue };
        let mut elaborated = typed.clone();
        passes::run(&mut elaborated);
        let core = to_core(&elaborated, Name::new("main")).map_err(|error| error.message)?;
        let all = sizes(&typed.functions[typed.entry]);
        // The smallest, and some that are near to 2 and 3.
        let some =
            all.iter().take(1).chain(all.iter().filter(|tuple| tuple.iter().all(|(_, n)| (2..=3).contains(n))).take(2));
        for tuple in some {
            let size = |name: Name| tuple.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
            let inputs = core.inputs.iter().map(|input| {
                let shape = input.ty.shape_at(&size).expect("a shape has a value");
                let count = shape.iter().product::<usize>();
                let elements = (0..count).map(|n| Scalar::from_f64((1 + n % 7) as f64, input.ty.elem));
                (input.name, Tensor::new(shape, elements.collect()).expect("as many elements as the shape says"))
            });
            let known = tuple.iter().copied().filter(|(name, _)| core.sizes.contains(name)).collect::<Vec<_>>();
            let ran = Evaluator::new(&core, &Machine, known, inputs).and_then(|evaluator| evaluator.run());
            if let Err(error @ (EvalError::OutOfBounds(_) | EvalError::EmptyReduction | EvalError::Call(_))) = ran {
                return Err(format!("at {tuple:?}: {error}"));
            }
        }
    }
    Ok(())
}
