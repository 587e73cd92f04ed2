//! The translation unit and its header: everything around the statements.
//!
//! Memory is taken by `malloc` and given back on every path: what is taken is noted in an array, and a failure jumps
//! to the end, where everything in it is freed.

use certen_core::Parameter;

use crate::emit::{CCode, Emitted, Emitter, Function, Own};
use crate::helpers::{Helper, c_type};
use crate::parallel;
use crate::stages::splits;

impl Emitter<'_> {
    pub(crate) fn program(mut self) -> Emitted<CCode> {
        let program = self.program;
        if splits(program) {
            self.stages()?;
        } else {
            self.block(&program.body, 0)?;
        }
        let main = std::mem::take(&mut self.function);
        let name = self.names.get(program.name).to_owned();
        let sizes: Vec<String> =
            program.sizes.iter().map(|size| format!("int64_t {}", self.names.get(*size))).collect();
        let pointers = |restrict: &str| -> Vec<String> {
            let pointer = |kind: &str, parameter: &Parameter| {
                format!("{kind}{} *{restrict}{}", c_type(parameter.ty.elem), self.names.get(parameter.name))
            };
            let inputs = program.inputs.iter().map(|parameter| pointer("const ", parameter));
            inputs.chain(program.outputs.iter().map(|parameter| pointer("", parameter))).collect()
        };
        let parameters = |restrict: &str| [sizes.clone(), pointers(restrict)].concat();
        let all = program.sizes.iter().chain(program.inputs.iter().chain(&program.outputs).map(|p| &p.name));
        let unused =
            all.filter(|name| !main.used.contains(name)).map(|name| self.names.get(*name).to_owned()).collect();
        let function =
            self.own.finished_main(&format!("int32_t {name}"), &parameters("restrict "), main, unused, self.places);

        let about = self.about();
        let mut source = format!("{about}\n#include <stdint.h>\n");
        if self.helpers.contains(&Helper::Alloc) {
            source += "#include <stdlib.h>\n";
        }
        if self.uses_math {
            source += "#include <math.h>\n";
        }
        source += "\n#if defined(__clang__)\n#pragma STDC FP_CONTRACT OFF\n#endif\n\n";
        if self.functions.contains("CERTEN_NOINLINE") {
            source += "#if defined(__GNUC__)\n#define CERTEN_NOINLINE static __attribute__((noinline))\n#else\n\
                       #define CERTEN_NOINLINE static\n#endif\n\n";
        }
        for helper in &self.helpers {
            source += &helper.text();
            source.push('\n');
        }
        if self.is_parallel {
            source += parallel::SUPPORT;
        }
        source += &self.functions;
        source += &function;
        source += &self.trampoline(&name);

        let guard = format!("{}_H", name.to_ascii_uppercase());
        let declaration = signature(&format!("int32_t {name}"), &parameters(""));
        let header = format!(
            "{about}\n#ifndef {guard}\n#define {guard}\n\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {{\n\
             #endif\n\n{declaration};\n\n#ifdef __cplusplus\n}}\n#endif\n\n#endif\n"
        );
        Ok(CCode { source, header })
    }

    /// The signature as the user knows it.
    pub(crate) fn about(&self) -> String {
        let program = self.program;
        let list = |parameters: &[Parameter]| {
            let each = parameters.iter().map(|p| format!("{}: {}", p.name, p.ty));
            each.collect::<Vec<_>>().join(", ")
        };
        let mut lines = vec![format!("{}({}) -> ({})", program.name, list(&program.inputs), list(&program.outputs))];
        if !program.facts.is_empty() {
            let facts: Vec<String> = program.facts.iter().map(ToString::to_string).collect();
            lines.push(format!("where {}", facts.join(", ")));
        }
        lines.extend([
            String::new(),
            "Arrays are dense, row by row. Outputs overlap no other array.".into(),
            "Returns 0, or 1 if memory ran out.".into(),
        ]);
        let lines: Vec<String> =
            lines.iter().map(|line| format!(" * {line}").trim_end().replace("*/", "* /")).collect();
        format!("/*\n{}\n */", lines.join("\n"))
    }

    /// The same signature for every program, for the runtime.
    pub(crate) fn trampoline(&self, name: &str) -> String {
        let program = self.program;
        let sizes = (0..program.sizes.len()).map(|at| format!("sizes[{at}]"));
        let buffers = (0..program.inputs.len() + program.outputs.len()).map(|at| format!("buffers[{at}]"));
        let arguments: Vec<String> = sizes.chain(buffers).collect();
        let mut unused = String::new();
        if program.sizes.is_empty() {
            unused += "    (void)sizes;\n";
        }
        if program.inputs.is_empty() && program.outputs.is_empty() {
            unused += "    (void)buffers;\n";
        }
        let call = wrapped(&format!("    return {name}("), &arguments, ");", 8);
        let threads = if self.is_parallel { format!("\n{}", parallel::ENTRY) } else { String::new() };
        format!(
            "\n#ifndef CERTEN_NO_TRAMPOLINE\nconst int32_t certen_abi = 1;\n\n\
             /* Sizes in order; inputs, then outputs. */\n\
             int32_t certen_call(const int64_t *sizes, void *const *buffers) {{\n{unused}{call}\n}}\n{threads}#endif\n"
        )
    }
}

/// `begin a, b, …end`, on one line if it fits, else an item per line.
pub(crate) fn wrapped(begin: &str, items: &[String], end: &str, indent: usize) -> String {
    let line = format!("{begin}{}{end}", items.join(", "));
    if line.len() <= 118 {
        return line;
    }
    let margin = " ".repeat(indent);
    format!("{begin}\n{margin}{}{end}", items.join(&format!(",\n{margin}")))
}

pub(crate) fn signature(start: &str, parameters: &[String]) -> String {
    let none = ["void".to_owned()];
    wrapped(&format!("{start}("), if parameters.is_empty() { &none } else { parameters }, ")", 4)
}

impl Own {
    /// A function of its own, which frees its memory on every path.
    pub(crate) fn finished(&self, name: &str, parameters: &[String], function: Function, places: usize) -> String {
        let start = format!("static {} {name}", if function.fails { "int32_t" } else { "void" });
        if function.fails {
            return self.finished_main(&start, parameters, function, Vec::new(), places);
        }
        signature(&start, parameters) + " {\n" + &function.body + "}\n"
    }

    /// The program's whole function, which frees its memory on every path.
    fn finished_main(
        &self,
        start: &str,
        parameters: &[String],
        function: Function,
        unused: Vec<String>,
        places: usize,
    ) -> String {
        let (status, memory) = (&self.status, &self.memory);
        let mut text = signature(start, parameters) + " {\n";
        for name in unused {
            text += &format!("    (void){name};\n");
        }
        if !function.fails {
            return text + &function.body + "    return 0;\n}\n";
        }
        text += &format!("    int32_t {status} = 1;\n");
        // A function that calls parallel loops may fail without having memory itself.
        if places > 0 {
            text += &format!("    void *{memory}[{places}] = {{NULL}};\n");
        }
        text += &function.body;
        text += &format!("    {status} = 0;\ndone:\n");
        if places > 0 {
            text += &format!("    for (int at = 0; at < {places}; at++) free({memory}[at]);\n");
        }
        text + &format!("    return {status};\n}}\n")
    }
}
