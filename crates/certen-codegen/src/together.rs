//! Many programs in one translation unit: starting a C compiler takes longer than compiling a small program.
//!
//! Every program is printed as [`emit_c`](crate::emit_c) prints it for the runtime, under a name of its own; each
//! helper that they use stands there once. The entry makes all calls of all programs, one after the other: it gets
//! the sizes of each call in turn, then the inputs of all calls, then the outputs of all calls.

use std::collections::BTreeSet;

use certen_loops::LoopProgram;
use certen_syntax::{Diagnostic, Name};

use crate::emitter::Emitter;
use crate::entry::MAGNITUDE;
use crate::environment::entered;
use crate::file::{ABI, PARAMETERS, beginning};
use crate::statements::parallel;

/// Prints programs for the runtime, each with how often it is called. The functions of the one at a place have names that
/// begin with `kernel_PLACE_`.
///
/// # Errors
/// As [`emit_c`](crate::emit_c).
pub fn emit_together(programs: &[(LoopProgram, usize)]) -> Result<String, Diagnostic> {
    let (mut helpers, mut uses_math, mut is_parallel) = (BTreeSet::new(), false, false);
    let (mut functions, mut table) = (String::new(), String::new());
    let (mut inputs, mut most) = (0, 1);
    for (at, (program, calls)) in programs.iter().enumerate() {
        let named = LoopProgram { name: Name::new(&format!("kernel_{at}")), ..program.clone() };
        let mut emitter = Emitter::new(&named, false);
        let kernel = emitter.kernel()?;
        let entry = format!("kernel_{at}_inside");
        functions += &format!("{}\n{}\n", kernel.text, emitter.inside(&entry, &kernel));
        let (sizes, read, written) = (named.sizes.len(), named.inputs.len(), named.outputs.len());
        table += &format!("    {{{entry}, {calls}, {sizes}, {read}, {written}}},\n");
        (inputs, most) = (inputs + calls * read, most.max(read + written));
        helpers.append(&mut emitter.helpers);
        uses_math |= emitter.uses_math;
        is_parallel |= emitter.is_parallel;
    }
    let (threads, entry) = if is_parallel { (parallel::THREADS, parallel::ENTRY) } else { ("", "") };
    let calls = ENTRY
        .replace("PARAMETERS", PARAMETERS)
        .replace("TABLE", &table)
        .replace("INPUTS", &inputs.to_string())
        .replace("MOST", &most.to_string());
    Ok(format!(
        "{}{threads}{MAGNITUDE}\n{functions}\n{ABI}{calls}\n\
         int32_t certen_call({PARAMETERS}){}{entry}",
        beginning(&helpers, uses_math, &functions).trim_start(),
        entered("        certen_inside(certen_sizes, certen_buffers);"),
    ))
}

const ENTRY: &str = "
/* A program: its function, how often it is called, and how many sizes, inputs and outputs it has. */
static const struct certen_program {
    int32_t (*function)(PARAMETERS);
    int64_t calls, sizes, inputs, outputs;
} certen_programs[] = {
TABLE    {NULL, 0, 0, 0, 0}
};

CERTEN_NOINLINE int32_t certen_inside(PARAMETERS) {
    void *const *inputs = certen_buffers, *const *outputs = certen_buffers + INPUTS;
    for (const struct certen_program *program = certen_programs; program->function != NULL; program++) {
        for (int64_t call = 0; call < program->calls; call++) {
            void *own[MOST];
            for (int64_t at = 0; at < program->inputs; at++) own[at] = *inputs++;
            for (int64_t at = 0; at < program->outputs; at++) own[program->inputs + at] = *outputs++;
            const int32_t status = program->function(certen_sizes, own);
            if (status != 0) return status;
            certen_sizes += program->sizes;
        }
    }
    return 0;
}
";
