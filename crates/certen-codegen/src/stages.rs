//! Long programs as stages.
//!
//! A program of many nests is printed as functions of a bounded number of nests that share the array of memory, because
//! C compilers take more than twice as long for a function of twice the length.

use std::collections::HashMap;

use certen_loops::{LoopProgram, Stmt};
use certen_syntax::{Diagnostic, Name};

use crate::emitter::Emitter;
use crate::helpers::c_type;
use crate::scan::walk;
use crate::text::{filled, signature};

/// A program with more nests than this is printed as stages.
const MAX_NESTS_IN_FUNCTION: usize = 50;

/// Nests in one stage.
const NESTS_IN_STAGE: usize = 20;

impl<'a> Emitter<'a> {
    /// The body as calls of functions that hold a bounded number of nests each.
    pub(crate) fn stages(&mut self) -> Result<(), Diagnostic> {
        (self.staged, self.plain) = (true, false);
        let mut rest = self.program.body.as_slice();
        while !rest.is_empty() {
            let mut nests = 0;
            let too_many = |stmt: &Stmt| {
                let full = nests >= NESTS_IN_STAGE && divides(stmt);
                nests += usize::from(matches!(stmt, Stmt::Nest(_)));
                full
            };
            let (stage, others) = rest.split_at(rest.iter().position(too_many).unwrap_or(rest.len()));
            rest = others;
            self.stage(stage)?;
        }
        Ok(())
    }

    /// A function for some statements of the outermost block, and its call.
    fn stage(&mut self, stage: &'a [Stmt]) -> Result<(), Diagnostic> {
        let outer = std::mem::take(&mut self.function);
        self.block(stage, 0)?;
        let mut function = std::mem::replace(&mut self.function, outer);
        // Buffers of earlier stages.
        let kind = |name: &Name| if function.written.contains(name) { "" } else { "const " };
        let mut prelude = String::new();
        for (place, (name, elem)) in &function.earlier {
            let (c, memory) = (self.names.get(*name), &self.own.memory);
            let restrict = self.restrict(*name);
            prelude += &format!("    {}{} *{restrict}{c} = {memory}[{place}];\n", kind(name), c_type(*elem));
        }
        // Sizes and the caller's buffers, in the order of the program's parameters.
        let mut used: Vec<(usize, Name)> =
            function.used.iter().filter_map(|name| Some((*self.positions.get(name)?, *name))).collect();
        used.sort_unstable_by_key(|(position, _)| *position);
        let (mut parameters, mut arguments) = (Vec::new(), Vec::new());
        for (position, name) in used {
            let c = self.names.get(name);
            parameters.push(match self.types.get(&name) {
                Some(ty) if position >= self.program.sizes.len() => {
                    format!("{}{} *restrict {c}", kind(&name), c_type(ty.elem))
                }
                _ => format!("int64_t {c}"),
            });
            arguments.push(name);
        }
        let mut arguments: Vec<String> = arguments.into_iter().map(|name| self.c_name(name)).collect();
        if function.uses_memory || !prelude.is_empty() {
            parameters.push(format!("void **{}", self.own.memory));
            arguments.push(self.own.memory.clone());
        }
        let name = self.names.numbered(&format!("{}_stage", self.entries.dense));
        let result = if function.fails { "int32_t" } else { "void" };
        let start = signature(&format!("CERTEN_NOINLINE {result} {name}"), &parameters);
        function.body += if function.fails { "    return 0;\n" } else { "" };
        self.functions += &format!("{start} {{\n{prelude}{}}}\n\n", function.body);
        let call = filled(&format!("{name}("), &arguments, ", ", ")", 8);
        // The function around all stages ends with the fence.
        self.function.streams |= function.streams;
        self.function.fails |= function.fails;
        self.function.jumps |= function.fails;
        self.line(&if function.fails { format!("if ({call} != 0) goto done;") } else { format!("{call};") });
        Ok(())
    }
}

/// Whether a statement of the outermost block ends a nest.
fn divides(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Nest(_) | Stmt::Alloc(..) | Stmt::Free(_))
}

/// Whether the body becomes stages: there are many nests, and they share nothing but buffers.
pub(crate) fn splits(program: &LoopProgram) -> bool {
    if program.body.iter().filter(|stmt| matches!(stmt, Stmt::Nest(_))).count() <= MAX_NESTS_IN_FUNCTION {
        return false;
    }
    // A local of the outermost block must not be read in another nest than its own.
    let mut nest = 0;
    let mut owner: HashMap<Name, usize> = HashMap::new();
    let mut shared = false;
    for stmt in &program.body {
        if let Stmt::Local { name, .. } = stmt {
            owner.insert(*name, nest);
        }
        nest += usize::from(divides(stmt));
        walk(program, std::slice::from_ref(stmt), &mut |name| {
            shared |= owner.get(&name).is_some_and(|&declared| declared != nest);
        });
    }
    !shared
}
