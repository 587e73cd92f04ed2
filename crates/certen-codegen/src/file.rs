//! The translation unit and its header: everything around the statements.

use std::collections::BTreeSet;

use certen_core::Parameter;
use certen_loops::LoopProgram;
use certen_syntax::Diagnostic;

use crate::emitter::{CFunction, Emitter};
use crate::entry::{ERRORS, essential};
use crate::environment::{ENVIRONMENT, entered};
use crate::helpers::{Helper, LIBRARY};
use crate::stages::splits;
use crate::statements::fetch::FETCH;
use crate::statements::{parallel, vector};
use crate::text::{comment, filled};

/// The C of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CCode {
    /// The program's name in C: its own, unless that means something else there.
    pub name: String,
    /// A translation unit that needs nothing but the standard library. It defines `NAME`, `NAME_strided` and
    /// `NAME_error`; everything else in it is `static`.
    pub source: String,
    /// A header that declares these functions, for C and C++.
    pub header: String,
    /// The part of the source that computes: what a person wants to read.
    pub kernel: String,
    /// A `main` that takes the sizes as arguments, makes up the inputs and calls the program: `main.c`.
    pub driver: String,
    /// A translation unit for the runtime, which checks and copies arrays itself: the same kernel under `certen_abi`
    /// and `certen_call`, which are alike for every program. Short, because every compilation takes time.
    pub native: String,
}

/// Prints a program as C.
///
/// Needs a program that [`verify`](certen_loops::verify) accepts; that is not checked here.
///
/// # Errors
/// E0216 if an index or a size does not fit in 64 bits, E0702 if blocks are too deep inside each other or a value has no
/// expression in C.
pub fn emit_c(program: &LoopProgram) -> Result<CCode, Diagnostic> {
    let native = Emitter::new(program, false).native_text()?;
    Emitter::new(program, true).files(native)
}

/// What compilers have to be told, once for each file, whatever their flags are.
const PRAGMAS: &str = "
/* Vectors are in this text. No compiler is to look for others: GCC 12 makes wrong code of plain loops when it does. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize(\"no-tree-vectorize\", \"no-tree-loop-vectorize\", \"no-tree-slp-vectorize\")
#pragma GCC optimize(\"no-tree-loop-if-convert\", \"fp-contract=off\")
#endif

";

/// Before a loop of code that stands alone; in the runtime's builds a flag says it. GCC is told once for all loops.
const IN_ORDER: &str = "\
/* Before a loop of which Clang is to make no vectors. */
#if defined(__clang__)
#define CERTEN_IN_ORDER _Pragma(\"clang loop vectorize(disable) interleave(disable)\")
#else
#define CERTEN_IN_ORDER
#endif

";

/// The functions that compute, the checks before they are called, whether they can fail, and which of the program's
/// parameters they have.
pub(crate) struct KernelText {
    pub(crate) text: String,
    checks: String,
    fails: bool,
    used: Vec<bool>,
}

/// By which the runtime knows what it loads.
pub(crate) const ABI: &str = "const int32_t certen_abi = 2;\n";

/// What C functions take that get sizes and buffers as the runtime has them.
pub(crate) const PARAMETERS: &str = "const int64_t *certen_sizes, void *const *certen_buffers";

impl Emitter<'_> {
    /// The functions that compute.
    pub(crate) fn kernel(&mut self) -> Result<KernelText, Diagnostic> {
        let program = self.program;
        if splits(program) {
            self.stages()?;
        } else {
            self.block(&program.body, 0)?;
        }
        let main = std::mem::take(&mut self.function);
        let fails = main.fails;
        let (parameters, used) = self.kernel_parameters(&main);
        let function = self.own.finished(&self.entries.kernel, &parameters, main, self.places);
        let text = self.tables() + &std::mem::take(&mut self.functions) + &function;
        Ok(KernelText { text, checks: self.checks()?, fails, used })
    }

    /// Everything that is for people; what is for the runtime was printed by another emitter.
    pub(crate) fn files(mut self, native: String) -> Result<CCode, Diagnostic> {
        let KernelText { text: kernel, checks, fails, used } = self.kernel()?;
        let strides = self.stride_names();
        let entry_points = self.entry_points(&strides, &checks, fails, &used)?;
        let about = self.about();
        let header = self.header(&about, &strides);

        let see = format!("{}.h says how to call it.", self.entries.dense);
        let mut source = comment(&[&about[..], &[String::new(), see]].concat());
        if !strides.is_empty() {
            self.helper(Helper::Alloc);
        }
        source += &beginning(&self.helpers, self.uses_math, &kernel);
        source += if self.is_parallel { parallel::STAND_ALONE } else { "" };
        source += &kernel;
        source += &self.support(&checks);
        source += &entry_points;
        let driver = self.driver()?;
        Ok(CCode { name: self.entries.dense, source, header, kernel, driver, native })
    }

    /// What the runtime compiles: every program with the same signature.
    pub(crate) fn native_text(mut self) -> Result<String, Diagnostic> {
        let kernel = self.kernel()?;
        let (threads, entry) = if self.is_parallel { (parallel::THREADS, parallel::ENTRY) } else { ("", "") };
        let calls = entered("        certen_inside(certen_sizes, certen_buffers);");
        Ok(format!(
            "{}{threads}{}{}\n{ABI}\n{}\n\
             /* Sizes in order; inputs, then outputs. */\nint32_t certen_call({PARAMETERS}){calls}{entry}",
            beginning(&self.helpers, self.uses_math, &kernel.text).trim_start(),
            kernel.text,
            self.magnitude(&kernel.checks),
            self.inside("certen_inside", &kernel),
        ))
    }

    /// The function that checks the sizes and computes.
    pub(crate) fn inside(&self, name: &str, kernel: &KernelText) -> String {
        let program = self.program;
        let KernelText { checks, fails, used, .. } = kernel;
        let sizes = program.sizes.iter().map(|size| self.names.get(*size));
        let named: String =
            sizes.clone().enumerate().map(|(at, c)| format!("    const int64_t {c} = certen_sizes[{at}];\n")).collect();
        let unused: String = sizes.clone().map(|c| format!("    (void){c};\n")).collect();
        let arrays = program.inputs.len() + program.outputs.len();
        let arguments = sizes.map(str::to_owned).chain((0..arrays).map(|at| format!("certen_buffers[{at}]"))).zip(used);
        let arguments: Vec<String> = arguments.filter(|(_, used)| **used).map(|(text, _)| text).collect();
        let call = filled(
            &format!("    {}{}(", if *fails { "return " } else { "" }, self.entries.kernel),
            &arguments,
            ", ",
            ");",
            8,
        );
        let end = if *fails { "" } else { "    return 0;\n" };
        format!(
            "CERTEN_NOINLINE int32_t {name}({PARAMETERS}) {{\n    (void)certen_sizes;\n    \
             (void)certen_buffers;\n{named}{unused}{checks}{call}\n{end}}}\n"
        )
    }

    /// The parameters of the function that computes, and which of the program's those are: only what it uses.
    fn kernel_parameters(&self, main: &CFunction) -> (Vec<String>, Vec<bool>) {
        let program = self.program;
        let arrays = program.inputs.iter().chain(&program.outputs).map(|parameter| parameter.name);
        let names = program.sizes.iter().copied().chain(arrays);
        let used: Vec<bool> = names.map(|name| main.used.contains(&name)).collect();
        let all = [self.size_parameters(), self.array_parameters("restrict ")].concat();
        (all.into_iter().zip(&used).filter(|(_, used)| **used).map(|(text, _)| text).collect(), used)
    }

    /// The signature as the user knows it.
    fn about(&self) -> Vec<String> {
        let program = self.program;
        let list = |parameters: &[Parameter]| {
            let each = parameters.iter().map(|p| format!("{}: {}", p.name, p.ty));
            each.collect::<Vec<_>>().join(", ")
        };
        let mut lines = vec![format!("{}({}) -> ({})", program.name, list(&program.inputs), list(&program.outputs))];
        let facts: Vec<String> = essential(&program.facts).iter().map(ToString::to_string).collect();
        if !facts.is_empty() {
            lines.push(format!("where {}", facts.join(", ")));
        }
        lines
    }

    fn header(&self, about: &[String], strides: &[String]) -> String {
        let name = &self.entries.dense;
        let upper = name.trim_end_matches('_').to_ascii_uppercase();
        let guard = format!("{upper}_H");
        let says = [
            "",
            "Arrays hold their elements row by row. bool is uint8_t, 0 or 1. Inputs may overlap each other, outputs no other",
            "array. The strided function takes signed strides in elements, one for each dimension, or NULL for a dense array.",
            "Nothing is computed if the result is BAD_SIZES, NULL_POINTER, OVERLAP or TOO_LARGE; after NO_MEMORY the content",
            "of the outputs is not specified. Several threads may call at once.",
        ];
        let lines: Vec<String> = about.iter().cloned().chain(says.map(str::to_owned)).collect();
        let width = ERRORS.iter().map(|(word, _)| word.len()).max().unwrap_or(0);
        let codes: String = ERRORS
            .iter()
            .enumerate()
            .map(|(code, (word, meaning))| {
                let space = " ".repeat(width - word.len());
                format!("    {upper}_{word} = {code},{space} /* {meaning} */\n")
            })
            .collect();
        let (dense, strided) = (self.dense_signature(), self.strided_signature(strides));
        format!(
            "{}\n#ifndef {guard}\n#define {guard}\n\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n\
             /* What the functions return. */\nenum {{\n{codes}}};\n\n{dense};\n\n{strided};\n\n\
             /* What a code means, in English. */\nconst char *{}(int32_t code);\n\n\
             #ifdef __cplusplus\n}}\n#endif\n\n#endif\n",
            comment(&lines),
            self.entries.error,
        )
    }
}

/// Includes and helpers, for functions that compute.
pub(crate) fn beginning(helpers: &BTreeSet<Helper>, uses_math: bool, kernel: &str) -> String {
    let mut text = "\n#include <stddef.h>\n#include <stdint.h>\n".to_owned();
    if helpers.contains(&Helper::Alloc) || helpers.contains(&Helper::Scratch) {
        text += "#include <stdlib.h>\n#include <string.h>\n";
    }
    if uses_math {
        text += "#include <math.h>\n";
    }
    text += PRAGMAS;
    text += ENVIRONMENT;
    if kernel.contains("CERTEN_PARALLEL") {
        text += parallel::PRAGMA;
    }
    if kernel.contains("CERTEN_IN_ORDER") {
        text += IN_ORDER;
    }
    if kernel.contains("CERTEN_UNROLL") {
        text += vector::UNROLL;
    }
    if kernel.contains("CERTEN_FETCH") {
        text += FETCH;
    }
    if helpers.iter().any(|helper| matches!(helper, Helper::Lanes(..))) {
        text += vector::BYTES;
    }
    if helpers.iter().any(|helper| matches!(helper, Helper::Library(..))) {
        text += LIBRARY;
    }
    for helper in helpers {
        text += &helper.text();
        text.push('\n');
    }
    text
}
