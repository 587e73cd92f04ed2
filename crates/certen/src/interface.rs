//! How a program is called, as a function.

use std::path::Path;

use certen_core::{ElemType, Parameter, Program};
use certen_syntax::Name;
use certen_syntax::schedule::Schedule;

/// What a parameter is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Param {
    /// Its name.
    pub name: Name,
    /// Its type, as written.
    pub ty: String,
    /// Its element type; none if a call tells it.
    pub elem: Option<ElemType>,
    /// Whether it is a number that sizes may depend on, not a tensor.
    pub is_size: bool,
}

/// How a function is called.
#[derive(Clone, Debug)]
pub(crate) struct Interface {
    pub name: Name,
    pub parameters: Vec<Param>,
    /// The declaration on one line.
    pub signature: String,
    /// Whether a call has to tell ranks or element types.
    pub is_open: bool,
    /// The schedules that its text has for it.
    pub schedules: Vec<Schedule>,
}

impl Interface {
    /// That of a program whose file has these schedules for it.
    pub fn of_program(program: &Program, schedules: Vec<Schedule>) -> Interface {
        let parameter = |Parameter { name, ty }: &Parameter| Param {
            name: *name,
            ty: ty.to_string(),
            elem: Some(ty.elem),
            is_size: false,
        };
        let parameters = program.inputs.iter().map(parameter).collect();
        Interface { name: program.name, parameters, signature: declaration(program), is_open: false, schedules }
    }
}

/// A program's interface on one line.
pub(crate) fn declaration(program: &Program) -> String {
    let types = program.types();
    let inputs: Vec<String> = program.inputs.iter().map(|input| format!("{}: {}", input.name, input.ty)).collect();
    let output = |(name, source): &(_, _)| types.get(source).map(|ty| format!("{name}: {ty}"));
    let outputs: Vec<String> = program.outputs.iter().filter_map(output).collect();
    let list = |tensors: Vec<String>| match tensors.len() {
        0..=20 => tensors.join(", "),
        many => format!("{}, … {} more", tensors[..19].join(", "), many - 19),
    };
    format!("{}({}) -> ({})", program.name, list(inputs), list(outputs))
}

/// What a program is called, from its file's name: an identifier.
pub(crate) fn kernel_name(file: &str) -> Name {
    let stem = Path::new(file).file_stem().and_then(|stem| stem.to_str()).unwrap_or("");
    let safe: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    match safe.chars().next() {
        Some(first) if first.is_ascii_alphabetic() => Name::new(&safe),
        _ => Name::new(&format!("kernel_{safe}")),
    }
}
