//! The doctor: what Certen finds on this machine, and whether its C compilers compute what they are told.
//!
//! [`Report::new`] looks around; [`Examination`] has a compiler make the kernels of a [`sweep()`] and compares every element
//! with the loop interpreter. A compiler that passes is remembered beside the cache of kernels, by its path, version and flags
//! and Certen's version ([`passed`], [`remember`]); one that fails is examined again each time.

mod examine;
mod sweep;

use std::fs;
use std::path::PathBuf;

use certen_runtime::{Cache, Candidate, Compiler, Cpu, RuntimeError, available_bytes, default_threads, write_text};
use certen_schedule::Machine;
use serde_json::{Value, json};

use crate::pipeline::machine;

pub use examine::{Examination, Findings, Specimen, WrongElement};
pub use sweep::{sample, sweep};

/// What there is on this machine.
#[derive(Debug)]
pub struct Report {
    /// What the processor calls itself.
    pub cpu: Option<String>,
    /// Its features that code may use.
    pub features: Vec<&'static str>,
    /// The instruction sets that it has.
    pub sets: Vec<Cpu>,
    /// The one that kernels are made for.
    pub chosen: Cpu,
    /// The machine that automatic schedules are written for.
    pub machine: Machine,
    /// The compilers by the names that are looked for, or why there is none; the first is the one that is used.
    pub compilers: Vec<Candidate>,
    /// Where compiled kernels are kept.
    pub cache: PathBuf,
    /// How many there are, and their bytes.
    pub kept: (usize, u64),
    /// Threads that share a loop.
    pub threads: usize,
    /// Bytes of free memory, where the system tells.
    pub memory: Option<u64>,
}

impl Report {
    /// Looks around.
    ///
    /// # Errors
    /// If a variable of the environment has no meaning, or there is no place for a cache.
    pub fn new() -> Result<Report, RuntimeError> {
        let (cache, chosen) = (Cache::default_location()?, Cpu::from_environment()?);
        Ok(Report {
            cpu: Cpu::model(),
            features: Cpu::Native.features(),
            sets: Cpu::here(),
            chosen,
            machine: machine(chosen)?,
            compilers: Compiler::all()?,
            cache: cache.directory().to_path_buf(),
            kept: cache.usage(),
            threads: default_threads()?.get(),
            memory: available_bytes(),
        })
    }

    /// The compilers without those that are another name of one before.
    pub fn distinct(&self) -> Vec<&Compiler> {
        let mut distinct: Vec<&Compiler> = Vec::new();
        for compiler in self.compilers.iter().filter_map(|(_, found)| found.as_ref().ok()) {
            if !distinct.iter().any(|known| known.is_same(compiler)) {
                distinct.push(compiler);
            }
        }
        distinct
    }

    /// For programs that read it.
    pub fn json(&self) -> Value {
        let compiler = |(name, found): &Candidate| match found {
            Ok(found) => json!({"name": name, "path": found.real_path(), "version": found.version()}),
            Err(why) => json!({"name": name, "missing": why}),
        };
        json!({
            "cpu": {
                "model": self.cpu,
                "features": self.features,
                "sets": self.sets.iter().map(Cpu::to_string).collect::<Vec<_>>(),
                "chosen": self.chosen.to_string(),
            },
            "machine": {
                "vector_bytes": self.machine.vector_bytes,
                "unit_bytes": self.machine.unit_bytes,
                "registers": self.machine.registers,
                "fma": self.machine.has_fma,
                "l2_bytes": self.machine.l2_bytes,
            },
            "compilers": self.compilers.iter().map(compiler).collect::<Vec<_>>(),
            "cache": {"directory": self.cache, "entries": self.kept.0, "bytes": self.kept.1},
            "threads": self.threads,
            "memory": self.memory,
        })
    }
}

/// What a compiler is asked; another sweep, or other code, is another question.
fn question(kernels: usize) -> String {
    format!("certen {} doctor: {kernels} kernels", env!("CARGO_PKG_VERSION"))
}

/// What a compiler has passed before, with these flags: kernels and elements.
pub fn passed(cache: &Cache, compiler: &Compiler, kernels: usize) -> Option<(usize, u64)> {
    let text = fs::read_to_string(cache.answer(compiler, &question(kernels))).ok()?;
    let found: Value = serde_json::from_str(&text).ok()?;
    Some((usize::try_from(found["kernels"].as_u64()?).ok()?, found["elements"].as_u64()?))
}

/// Remembers that a compiler has passed. Best effort: where nothing can be written, it is examined again.
pub fn remember(cache: &Cache, compiler: &Compiler, kernels: usize, found: &Findings) {
    let about = json!({
        "kernels": found.kernels,
        "elements": found.elements,
        "compiler": compiler.real_path(),
        "version": compiler.version(),
        "flags": compiler.flags(),
    });
    let _ = write_text(cache.answer(compiler, &question(kernels)), &format!("{about:#}\n"));
}
