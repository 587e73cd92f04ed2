//! What a program is run on: the options that give inputs and sizes.

use std::collections::BTreeSet;
use std::path::PathBuf;

use certen::road::runtime::{NpyError, read_npy, read_npz};
use certen::road::syntax::{Code, Diagnostic};
use certen::{Array, Call, DomainChoice, Input, Name};
use clap::{Args, ValueEnum};

/// The options that give inputs and sizes.
#[derive(Args)]
pub struct InputArgs {
    /// An input: NAME=FILE.npy, NAME=FILE.npz:KEY, NAME=random:SEED, NAME=iota or NAME=3.5
    #[arg(long = "in", value_name = "NAME=SOURCE", value_parser = input)]
    pub inputs: Vec<(Name, InputSource)>,
    /// A size that no array tells, or a `size` parameter: `n=100`
    #[arg(long = "dim", value_name = "NAME=SIZE", value_parser = dim)]
    pub dims: Vec<(Name, i64)>,
}

/// What the elements are.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub enum DomainArg {
    F64,
    Rational,
    Field,
    Undefined,
}

impl DomainArg {
    pub fn choice(self) -> DomainChoice {
        match self {
            DomainArg::F64 => DomainChoice::Machine,
            DomainArg::Rational => DomainChoice::Rational,
            DomainArg::Field => DomainChoice::Field,
            DomainArg::Undefined => DomainChoice::Undefined,
        }
    }
}

/// Where an input comes from.
#[derive(Clone, Debug)]
pub enum InputSource {
    Npy(PathBuf),
    Npz(PathBuf, String),
    Random(u64),
    Iota,
    Whole(i128),
    Fill(f64),
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Reads `NAME=VALUE`.
pub fn named(text: &str) -> Result<(Name, &str), String> {
    let (name, value) = text.split_once('=').ok_or("it has the form NAME=VALUE")?;
    if is_name(name) { Ok((Name::new(name), value)) } else { Err(format!("`{name}` is not a name")) }
}

fn input(text: &str) -> Result<(Name, InputSource), String> {
    let (name, value) = named(text)?;
    if let Some(seed) = value.strip_prefix("random:") {
        let seed = seed.parse().map_err(|_| format!("`{seed}` is not a seed: a whole number from 0 to 2^64 - 1"))?;
        return Ok((name, InputSource::Random(seed)));
    }
    if value == "iota" {
        return Ok((name, InputSource::Iota));
    }
    // There is a float -0 and no whole one.
    if let Some(number) = value.parse().ok().filter(|number| *number != 0 || !value.starts_with('-')) {
        return Ok((name, InputSource::Whole(number)));
    }
    if let Ok(number) = value.parse() {
        return Ok((name, InputSource::Fill(number)));
    }
    if let Some((path, key)) = value.rsplit_once(':').filter(|(path, _)| path.ends_with(".npz")) {
        return Ok((name, InputSource::Npz(path.into(), key.into())));
    }
    if value.ends_with(".npy") {
        return Ok((name, InputSource::Npy(value.into())));
    }
    Err("an input is FILE.npy, FILE.npz:KEY, random:SEED, iota or a number".into())
}

/// Reads `n=100`. The program knows which sizes may be negative.
pub fn dim(text: &str) -> Result<(Name, i64), String> {
    let (name, value) = named(text)?;
    let size = value.parse().map_err(|_| format!("`{value}` is not a size: a whole number below 2^63"))?;
    Ok((name, size))
}

/// Reads `x=2`.
pub fn rank(text: &str) -> Result<(Name, usize), String> {
    let (name, value) = named(text)?;
    let rank = value.parse().map_err(|_| format!("`{value}` is not a number of dimensions"))?;
    Ok((name, rank))
}

/// Reads `C[0,2]`, or `s` for a tensor without dimensions.
pub fn place(text: &str) -> Result<(Name, Vec<i64>), String> {
    let (name, inside) = match text.split_once('[') {
        None => (text, ""),
        Some((name, rest)) => (name, rest.strip_suffix(']').ok_or("it has the form NAME[I,J,…]")?),
    };
    if !is_name(name) {
        return Err(format!("`{name}` is not a name"));
    }
    let number = |part: &str| part.trim().parse().map_err(|_| format!("`{}` is not an index", part.trim()));
    let parts = (!inside.trim().is_empty()).then(|| inside.split(','));
    let index = parts.into_iter().flatten().map(number).collect::<Result<_, _>>()?;
    Ok((Name::new(name), index))
}

impl InputArgs {
    /// The call, with the arrays read.
    pub fn call(&self) -> Result<Call, Diagnostic> {
        Ok(self.dims.iter().fold(self.arrays()?, |call, (name, size)| call.dim(*name, *size)))
    }

    /// The call without its sizes.
    pub fn arrays(&self) -> Result<Call, Diagnostic> {
        let given = self.inputs.iter().map(|(name, _)| name).chain(self.dims.iter().map(|(name, _)| name));
        let mut seen = BTreeSet::new();
        if let Some(again) = given.copied().find(|name| !seen.insert(*name)) {
            return Err(Diagnostic::error(Code::E0407, None, format!("`{again}` is given twice")));
        }
        let mut call = Call::new();
        for (name, source) in &self.inputs {
            let read = |result: Result<Array, NpyError>| {
                result.map(Input::Array).map_err(|e| Diagnostic::error(e.code(), None, format!("`{name}`: {e}")))
            };
            let input = match source {
                InputSource::Npy(path) => read(read_npy(path))?,
                InputSource::Npz(path, key) => read(read_npz(path, key))?,
                InputSource::Random(seed) => Input::Random(*seed),
                InputSource::Iota => Input::Iota,
                InputSource::Whole(value) => Input::Whole(*value),
                InputSource::Fill(value) => Input::Fill(*value),
            };
            call = call.input(*name, input);
        }
        Ok(call)
    }
}
