//! A `main` for people who want to try a program from C: it makes up inputs, and prints the sum of each output and the time.
//!
//! The sizes are arguments of the command. The program itself is asked first whether it accepts them, by a call without
//! arrays: an answer about sizes comes before one about pointers. Only then are shapes computed from them.

use std::collections::BTreeSet;

use certen_core::{ElemType, Parameter};
use certen_syntax::{Diagnostic, Name};

use crate::emitter::Emitter;
use crate::entry::ERRORS;
use crate::helpers::c_type;
use crate::text::filled;

const START: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void certen_give_up(const char *why) {
    fprintf(stderr, "%s\n", why);
    exit(1);
}

static double certen_seconds(void) {
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
"#;

const READ: &str = r#"/* Whether a text is a 64-bit integer, and which. INT64_MIN and INT64_MAX count as none: strtoll returns them for what
   does not fit. */
static int certen_read(const char *text, int64_t *value) {
    char *end;
    const long long number = strtoll(text, &end, 10);
    *value = (int64_t)number;
    return end != text && *end == 0 && number > INT64_MIN && number < INT64_MAX;
}

"#;

const NEW: &str = r#"/* Memory for so many elements, all zero. */
static void *certen_new(int64_t count, size_t bytes) {
    void *memory = calloc(count > 0 ? (size_t)count : 1, bytes);
    if (memory == NULL) certen_give_up("there is not enough memory");
    return memory;
}

"#;

const RANDOM: &str = r"/* SplitMix64: the same numbers on every run. */
static uint64_t certen_random(void) {
    static uint64_t state = 0;
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

";

/// A made-up element of an input, in C.
fn made_up(elem: ElemType) -> &'static str {
    match elem {
        ElemType::F64 => "(double)(certen_random() >> 11) / 9007199254740992.0",
        ElemType::F32 => "(float)(certen_random() >> 40) / 16777216.0f",
        ElemType::I32 => "(int32_t)(certen_random() % 19) - 9",
        ElemType::I64 => "(int64_t)(certen_random() % 19) - 9",
        ElemType::U8 => "(uint8_t)(certen_random() % 256)",
        ElemType::Bool => "(uint8_t)(certen_random() % 2)",
    }
}

impl Emitter<'_> {
    /// The text of `main.c`.
    pub(crate) fn driver(&mut self) -> Result<String, Diagnostic> {
        let program = self.program;
        let (name, explain) = (self.entries.dense.clone(), self.entries.error.clone());
        let c = |emitter: &Self, parameter: &Parameter| emitter.names.get(parameter.name).to_owned();
        let sizes: Vec<String> = program.sizes.iter().map(|size| self.names.get(*size).to_owned()).collect();
        let arrays: Vec<&Parameter> = program.inputs.iter().chain(&program.outputs).collect();
        let [argc, argv, error, start, time] =
            ["argc", "argv", "error", "start", "seconds"].map(|base| self.names.fresh(base));

        let mut before = format!(
            "/* Runs {name} on made-up inputs, and prints the sum of each output and the time. */\n\
             #include \"{name}.h\"\n{START}\n"
        );
        before += if sizes.is_empty() { "" } else { READ };
        before += if arrays.is_empty() { "" } else { NEW };
        before += if program.inputs.is_empty() { "" } else { RANDOM };
        // The helpers of the program are static in its own file; `main.c` needs its own.
        let helpers = std::mem::take(&mut self.helpers);
        let mut text = String::new();
        let elems: BTreeSet<ElemType> = program.inputs.iter().map(|parameter| parameter.ty.elem).collect();
        for elem in elems {
            text += &format!(
                "static void certen_fill_{elem}({0} *array, int64_t count) {{\n    \
                 for (int64_t i = 0; i < count; i++) array[i] = {1};\n}}\n\n",
                c_type(elem),
                made_up(elem)
            );
        }
        text += &format!("int main(int {argc}, char **{argv}) {{\n");
        let usage: String = sizes.iter().map(|size| format!(" {size}")).collect();
        text += &format!("    if ({argc} != {}) {{\n", sizes.len() + 1);
        text += &format!("        fprintf(stderr, \"usage: %s{usage}\\n\", {argv}[0]);\n        return 2;\n    }}\n");
        for (at, size) in sizes.iter().enumerate() {
            text += &format!("    int64_t {size};\n    if (!certen_read({argv}[{}], &{size})) ", at + 1);
            text += &format!("certen_give_up(\"{size} has to be an integer of 64 bits\");\n");
        }
        let without = sizes.iter().cloned().chain(arrays.iter().map(|_| "NULL".to_owned())).collect::<Vec<_>>();
        text += "    /* Without arrays, it says what it thinks of the sizes. */\n";
        text += &filled(&format!("    int32_t {error} = {name}("), &without, ", ", ");", 8);
        let code = |word| ERRORS.iter().position(|(known, _)| *known == word).unwrap_or(0);
        let (bad, large) = (code("BAD_SIZES"), code("TOO_LARGE"));
        text += &format!("\n    if ({error} == {bad} || {error} == {large}) certen_give_up({explain}({error}));\n");
        for parameter in &arrays {
            let (array, elem) = (c(self, parameter), c_type(parameter.ty.elem));
            let count = self.count(&parameter.ty)?;
            text += &format!("    {elem} *{array} = certen_new({}, sizeof *{array});\n", count.text());
        }
        for parameter in &program.inputs {
            let count = self.count(&parameter.ty)?;
            text += &format!("    certen_fill_{}({}, {});\n", parameter.ty.elem, c(self, parameter), count.text());
        }
        text += &format!("    const double {start} = certen_seconds();\n");
        let all = sizes.into_iter().chain(arrays.iter().map(|parameter| c(self, parameter))).collect::<Vec<_>>();
        text += &filled(&format!("    {error} = {name}("), &all, ", ", ");", 8);
        text += &format!("\n    const double {time} = certen_seconds() - {start};\n");
        text += &format!("    if ({error} != 0) certen_give_up({explain}({error}));\n");
        let (sum, index) = (self.names.fresh("sum"), self.names.fresh("i"));
        for (at, parameter) in program.outputs.iter().enumerate() {
            let (array, count) = (c(self, parameter), self.count(&parameter.ty)?.text());
            let declared = if at == 0 { "double " } else { "" };
            text += &format!("    {declared}{sum} = 0.0;\n");
            text += &format!("    for (int64_t {index} = 0; {index} < {count}; {index}++) ");
            text += &format!("{sum} += (double){array}[{index}];\n");
            text += &format!("    printf(\"{}: sum %.17g\\n\", {sum});\n", printable(&parameter.name));
        }
        text += &format!("    printf(\"time: %.9f s\\n\", {time});\n");
        for parameter in &arrays {
            text += &format!("    free({});\n", c(self, parameter));
        }
        for helper in std::mem::replace(&mut self.helpers, helpers) {
            before += &(helper.text() + "\n");
        }
        Ok(before + &text + "    return 0;\n}\n")
    }
}

/// A name inside a format string.
fn printable(name: &Name) -> String {
    name.as_str().replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%")
}
