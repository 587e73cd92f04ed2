//! `stream`: an output is stored past the caches.
//!
//! A store of a part of a cache line reads the line first. Where vectors fill whole lines, and nothing reads the output soon,
//! that and the place in the caches are saved: what is written goes to memory by itself.

use certen_loops::{LoopProgram, Stmt, Use, statements};
use certen_syntax::{Code, Diagnostic, Name};

use super::{Example, Primitive};
use crate::nest::Nest;
use crate::refusal::{Done, Refusal};

pub(crate) const PRIMITIVE: Primitive = Primitive {
    name: "stream",
    usage: "stream(output)",
    about: "Vectors of floats that are stored to `output` go past the caches, where they lie at multiples of their own size: \
            arrays of Certen's own do, others are stored to as usual. Worth it for outputs that are larger than the \
            caches, and whose rows are whole cache lines of 64 bytes.",
    legal: "Always: the same is stored. An output that the program reads would be fetched again, and is refused.",
    peers: "Halide and TVM: none; OpenMP: simd nontemporal; Intel compilers: vector nontemporal",
    example: Example {
        program: "loops scale\nsize n\nwhere n >= 0\ninput x : f64[n]\noutput y : f64[n]\nnest y\n\
                  for i in 0..n {\n    y[i] = 2.0 * x[i]\n}\n",
        steps: "vectorize(i, 8); stream(y)",
    },
    apply: |nest, args| {
        let (output, span) = args.word("an output")?;
        args.end()?;
        if !nest.program.outputs.iter().any(|parameter| parameter.name == output) {
            return Err(Diagnostic::error(Code::E0802, span, format!("`{output}` is no output")).into());
        }
        stream(nest, output)
    },
};

/// Has an output stored past the caches.
fn stream(nest: &mut Nest, output: Name) -> Done<()> {
    let program = &mut nest.program;
    if !is_only_stored(program, output) {
        let refusal = Refusal::cannot(format!("`{output}` is read, or added to, by the program"));
        return Err(refusal.note("what was stored past the caches would be fetched again"));
    }
    if !program.streamed.contains(&output) {
        program.streamed.push(output);
    }
    Ok(())
}

/// Whether nothing in a program reads a buffer, or combines with what is there.
pub(crate) fn is_only_stored(program: &LoopProgram, buffer: Name) -> bool {
    let reads =
        |stmt: &Stmt| stmt.uses(&program.terms).iter().any(|(name, _, how)| *name == buffer && *how != Use::Write);
    !statements(&program.body).any(reads)
}
