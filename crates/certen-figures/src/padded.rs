//! Runs with padding: the model language's Fig. 13 and 14, in any domain.

use std::collections::HashMap;

use certen_core::{Domain, ElemType, EvalError, Literal, Tensor};
use certen_dialects::algebra::Typed;
use certen_syntax::{Code, Diagnostic, Name, Rule};

use crate::semantics::{Memory, Semantics, Spill};

/// The warning that padding is not zero after a statement.
pub fn warning(typed: &Typed, spill: &Spill) -> Diagnostic {
    let stmt = &typed.program.stmts[spill.stmt];
    let name = stmt.target;
    let text = format!("the padding of `{name}` is not zero after this statement");
    let place: Vec<String> = spill.index.iter().map(i64::to_string).collect();
    let warning = Diagnostic::warning(Code::W0306, stmt.target_span, text);
    let warning = warning.label(format!("{name}[{}], counted from 0, is padding", place.join(", ")));
    warning.rule(Rule { name: "Thm. 2", paper: "model language, Sec. 4.2" })
}

/// Values by name, and where padding was not zero.
type Watched<V> = (Vec<(Name, Tensor<V>)>, Vec<Spill>);

/// The outputs without their padding, and where it was not zero. Tensors that are not inputs begin undefined, or as
/// zeros in a domain that cannot say so: no statement that reaches an output reads them before they are assigned.
///
/// # Errors
/// As [`Semantics::run_padded`].
pub fn evaluate<D: Domain>(
    mut semantics: Semantics<'_, D>,
    typed: &Typed,
    domain: &D,
    elem: ElemType,
    inputs: Vec<(Name, Tensor<D::Value>)>,
) -> Result<Watched<D::Value>, EvalError> {
    let zero = domain.literal(Literal::whole(0, elem), elem)?;
    let initial = domain.undefined(elem).unwrap_or(zero);
    let inputs: HashMap<Name, Tensor<D::Value>> = inputs.into_iter().collect();
    let mut memory = Memory::new();
    for decl in &typed.program.decls {
        let given = inputs.get(&decl.name).map(Tensor::data);
        let first = |at: usize| Ok(given.and_then(|data| data.get(at)).unwrap_or(&initial).clone());
        memory.insert(decl.name, semantics.store(decl.name, first)?);
    }
    let (memory, spills) = semantics.run_padded(memory)?;
    let outside = |name: Name| EvalError::OutOfBounds(name.to_string());
    let output = |&name: &Name| {
        let store = memory.get(&name).ok_or_else(|| outside(name))?;
        Ok((name, semantics.cropped(name, store)?))
    };
    Ok((typed.outputs().iter().map(output).collect::<Result<_, EvalError>>()?, spills))
}
