//! Functions and statements in C.
//!
//! Memory is taken by `malloc` and given back on every path: what is taken is noted in an array, and a failure jumps
//! to the end, where everything in it is freed. A program of many nests is printed as stages, functions of a bounded
//! number of nests that share this array, because C compilers take more than twice as long for a function of twice
//! the length.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use certen_core::{ElemType, Parameter, ReduceOp, TensorType, Term, TermId};
use certen_loops::{LoopProgram, MAX_NESTING, Stmt, Target};
use certen_syntax::{Code, Diagnostic, Name};

use crate::helpers::{Helper, c_type};
use crate::names::CNames;

/// A program with more nests than this is printed as stages.
const MAX_NESTS_IN_FUNCTION: usize = 50;

/// Nests in one stage.
const NESTS_IN_STAGE: usize = 20;

/// The C of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CCode {
    /// A translation unit that needs nothing but the standard library.
    ///
    /// It defines the program's function, and, unless `CERTEN_NO_TRAMPOLINE` is defined, `certen_abi` and
    /// `certen_call`.
    pub source: String,
    /// A header that declares the program's function, for C and C++.
    pub header: String,
}

/// Prints a program as C.
///
/// # Errors
/// For a program that [`verify`](certen_loops::verify) does not accept, and for constants that do not fit in 64 bits.
pub fn emit_c(program: &LoopProgram) -> Result<CCode, Diagnostic> {
    let mut names = CNames::new();
    names.add(declared_names(program));
    let own = Own { status: names.fresh("status"), memory: names.fresh("memory") };
    let mut emitter = Emitter {
        program,
        names,
        own,
        helpers: BTreeSet::new(),
        uses_math: false,
        locals: HashSet::new(),
        read: read_names(program),
        swapped: swapped_names(program),
        types: HashMap::new(),
        functions: String::new(),
        function: Function::default(),
        indent: 1,
        staged: false,
        places: 0,
        empty: Vec::new(),
        heap: HashMap::new(),
        positions: HashMap::new(),
    };
    let parameters = program.inputs.iter().chain(&program.outputs).map(|parameter| &parameter.name);
    emitter.positions = program.sizes.iter().chain(parameters).enumerate().map(|(at, name)| (*name, at)).collect();
    for parameter in program.inputs.iter().chain(&program.outputs) {
        emitter.types.insert(parameter.name, &parameter.ty);
    }
    emitter.program()
}

/// C names of variables that every function may need.
struct Own {
    status: String,
    memory: String,
}

/// What is printed of one C function.
#[derive(Default)]
pub(crate) struct Function {
    body: String,
    /// Names that occur.
    pub(crate) used: HashSet<Name>,
    /// Buffers that are written.
    written: HashSet<Name>,
    /// Buffers on the heap that occur but were allocated before, with their places.
    earlier: BTreeMap<usize, (Name, ElemType)>,
    allocated: HashSet<Name>,
    /// Whether it can run out of memory, and whether it speaks of the array of memory at all.
    fails: bool,
    uses_memory: bool,
}

pub(crate) struct Emitter<'a> {
    pub(crate) program: &'a LoopProgram,
    pub(crate) names: CNames,
    own: Own,
    helpers: BTreeSet<Helper>,
    pub(crate) uses_math: bool,
    /// Local scalars in scope; other names without dimensions are buffers.
    locals: HashSet<Name>,
    /// Names that some value reads.
    read: HashSet<Name>,
    /// Buffers that exchange their contents: their pointers change, so that none is `restrict`.
    swapped: HashSet<Name>,
    /// Types of the buffers in scope.
    types: HashMap<Name, &'a TensorType>,
    /// Functions that the program's own one calls.
    pub(crate) functions: String,
    /// The one that is being printed.
    pub(crate) function: Function,
    indent: usize,
    /// Whether the body is printed as stages.
    staged: bool,
    /// How many places the array of memory has, and which of them are not in use.
    places: usize,
    empty: Vec<usize>,
    /// The places of the buffers that were taken from the heap.
    heap: HashMap<Name, usize>,
    /// The positions of sizes, inputs and outputs among the program's parameters.
    positions: HashMap<Name, usize>,
}

type Emitted<T> = Result<T, Diagnostic>;

impl<'a> Emitter<'a> {
    // Names and text

    /// The C name of a name, which is used here.
    pub(crate) fn c_name(&mut self, name: Name) -> String {
        self.mark(name);
        self.names.get(name).to_owned()
    }

    pub(crate) fn mark(&mut self, name: Name) {
        self.function.used.insert(name);
        if let (Some(place), Some(ty)) = (self.heap.get(&name), self.types.get(&name))
            && !self.function.allocated.contains(&name)
        {
            self.function.earlier.insert(*place, (name, ty.elem));
        }
    }

    pub(crate) fn is_local(&self, name: Name) -> bool {
        self.locals.contains(&name)
    }

    /// The name of a helper, which is used here.
    pub(crate) fn helper(&mut self, helper: Helper) -> String {
        self.helpers.insert(helper);
        helper.name()
    }

    /// A line of the function.
    pub(crate) fn line(&mut self, text: &str) {
        for _ in 0..self.indent {
            self.function.body.push_str("    ");
        }
        self.function.body.push_str(text);
        self.function.body.push('\n');
    }

    // The file

    fn program(mut self) -> Emitted<CCode> {
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
            self.own.finished(&format!("int32_t {name}"), &parameters("restrict "), main, unused, self.places);

        let about = self.about();
        let mut source = format!("{about}\n#include <stdint.h>\n");
        if self.helpers.contains(&Helper::Alloc) {
            source += "#include <stdlib.h>\n";
        }
        if self.uses_math {
            source += "#include <math.h>\n";
        }
        source += "\n#if defined(__clang__)\n#pragma STDC FP_CONTRACT OFF\n#endif\n\n";
        if !self.functions.is_empty() {
            source += "#if defined(__GNUC__)\n#define CERTEN_NOINLINE static __attribute__((noinline))\n#else\n\
                       #define CERTEN_NOINLINE static\n#endif\n\n";
        }
        for helper in &self.helpers {
            source += &helper.text();
            source.push('\n');
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
    fn about(&self) -> String {
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
    fn trampoline(&self, name: &str) -> String {
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
        format!(
            "\n#ifndef CERTEN_NO_TRAMPOLINE\nconst int32_t certen_abi = 1;\n\n\
             /* Sizes in order; inputs, then outputs. */\n\
             int32_t certen_call(const int64_t *sizes, void *const *buffers) {{\n{unused}{call}\n}}\n#endif\n"
        )
    }

    /// The body as calls of functions that hold a bounded number of nests each.
    fn stages(&mut self) -> Emitted<()> {
        self.staged = true;
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
    fn stage(&mut self, stage: &'a [Stmt]) -> Emitted<()> {
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
        let name = self.names.numbered("stage");
        let result = if function.fails { "int32_t" } else { "void" };
        let start = signature(&format!("CERTEN_NOINLINE {result} {name}"), &parameters);
        function.body += if function.fails { "    return 0;\n" } else { "" };
        self.functions += &format!("{start} {{\n{prelude}{}}}\n\n", function.body);
        let call = wrapped(&format!("{name}("), &arguments, ")", 8);
        self.function.fails |= function.fails;
        self.line(&if function.fails { format!("if ({call} != 0) goto done;") } else { format!("{call};") });
        Ok(())
    }

    fn nest_comment(&mut self, buffer: Name) {
        let text = match self.types.get(&buffer) {
            Some(ty) => format!("{buffer}: {ty}"),
            None => buffer.to_string(),
        };
        self.line(&format!("/* {} */", text.replace("*/", "* /")));
    }

    // Statements

    fn block(&mut self, block: &'a [Stmt], depth: usize) -> Emitted<()> {
        if depth > MAX_NESTING {
            let message = format!("more than {MAX_NESTING} blocks inside each other");
            return Err(Diagnostic::error(Code::E0702, None, message));
        }
        block.iter().try_for_each(|stmt| self.stmt(stmt, depth))?;
        if depth > 0 {
            for stmt in block {
                match stmt {
                    Stmt::Local { name, .. } => {
                        self.locals.remove(name);
                    }
                    Stmt::Alloc(name, _) => {
                        self.types.remove(name);
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn inner(&mut self, block: &'a [Stmt], depth: usize) -> Emitted<()> {
        self.indent += 1;
        self.block(block, depth + 1)?;
        self.indent -= 1;
        Ok(())
    }

    fn stmt(&mut self, stmt: &'a Stmt, depth: usize) -> Emitted<()> {
        match stmt {
            Stmt::Nest(name) => self.nest_comment(*name),
            Stmt::Alloc(name, ty) => self.alloc(*name, ty)?,
            Stmt::Free(name) => {
                if let Some(place) = self.heap.remove(name) {
                    let memory = &self.own.memory;
                    let (free, forget) = (format!("free({memory}[{place}]);"), format!("{memory}[{place}] = NULL;"));
                    self.line(&free);
                    self.line(&forget);
                    self.function.uses_memory = true;
                    self.empty.push(place);
                }
            }
            Stmt::Swap(a, b) => self.swap(*a, *b)?,
            Stmt::For { index, range, body } => {
                let (lo, hi) = (self.ix(&range.lo)?.text(), self.ix(&range.hi)?.text());
                let i = self.names.get(*index).to_owned();
                self.line(&format!("for (int64_t {i} = {lo}; {i} < {hi}; {i}++) {{"));
                self.inner(body, depth)?;
                self.line("}");
            }
            Stmt::If { cond, then, otherwise } => {
                let cond = self.cond(cond)?;
                self.line(&format!("if ({cond}) {{"));
                self.inner(then, depth)?;
                if !otherwise.is_empty() {
                    self.line("} else {");
                    self.inner(otherwise, depth)?;
                }
                self.line("}");
            }
            Stmt::Local { name, elem, init } => {
                // A local that is assigned later begins as zero, which compilers remove: they cannot always see that
                // it is assigned on every path.
                let value = match init {
                    Some(value) => self.value(*value)?,
                    None => zero(*elem).into(),
                };
                self.locals.insert(*name);
                let c = self.c_name(*name);
                self.line(&format!("{} {c} = {value};", c_type(*elem)));
                if !self.read.contains(name) {
                    self.line(&format!("(void){c};"));
                }
            }
            Stmt::Assign { target, op, value } => self.assign(target, *op, *value)?,
        }
        Ok(())
    }

    /// A buffer without dimensions lives on the stack unless stages share it, others are taken from the heap.
    fn alloc(&mut self, name: Name, ty: &'a TensorType) -> Emitted<()> {
        self.types.insert(name, ty);
        let (c, elem) = (self.c_name(name), c_type(ty.elem));
        if ty.is_scalar() && !self.staged {
            self.line(&format!("{elem} {c}[1];"));
            return Ok(());
        }
        let sizes = ty.shape.iter().map(|size| Ok(self.ix(size)?.text())).collect::<Emitted<Vec<String>>>()?;
        let place = self.empty.pop().unwrap_or(self.places);
        self.places = self.places.max(place + 1);
        (self.function.fails, self.function.uses_memory) = (true, true);
        self.heap.insert(name, place);
        self.function.allocated.insert(name);
        let alloc = self.helper(Helper::Alloc);
        let (rank, sizes) = if sizes.is_empty() { (1, "1".into()) } else { (sizes.len(), sizes.join(", ")) };
        let call = format!("{alloc}({rank}, (const int64_t[]){{{sizes}}}, sizeof({elem}))");
        self.line(&format!("{elem} *{}{c} = {}[{place}] = {call};", self.restrict(name), self.own.memory));
        let give_up = if self.staged { "return 1" } else { "goto done" };
        self.line(&format!("if ({c} == NULL) {give_up};"));
        Ok(())
    }

    fn restrict(&self, name: Name) -> &'static str {
        if self.swapped.contains(&name) { "" } else { "restrict " }
    }

    /// Two buffers exchange their memory: the pointers and what the array of memory says.
    fn swap(&mut self, a: Name, b: Name) -> Emitted<()> {
        let (Some(&first), Some(&second)) = (self.heap.get(&a), self.heap.get(&b)) else {
            return Err(Diagnostic::error(Code::E0702, None, format!("{a} or {b} is no buffer in scope")));
        };
        self.function.written.extend([a, b]);
        self.function.uses_memory = true;
        let (a, b, memory) = (self.c_name(a), self.c_name(b), self.own.memory.clone());
        self.line(&format!("{a} = {memory}[{second}];"));
        self.line(&format!("{b} = {memory}[{first}];"));
        self.line(&format!("{memory}[{first}] = {a};"));
        self.line(&format!("{memory}[{second}] = {b};"));
        Ok(())
    }

    fn assign(&mut self, target: &Target, op: Option<ReduceOp>, value: TermId) -> Emitted<()> {
        let elem = self.program.terms.ty(value).elem;
        let value = self.value(value)?;
        let place = match target {
            Target::Local(name) => self.c_name(*name),
            Target::Element(name, indices) => {
                let unknown = || Diagnostic::error(Code::E0702, None, format!("{name} is no buffer in scope"));
                let ty = *self.types.get(name).ok_or_else(unknown)?;
                self.function.written.insert(*name);
                self.access(*name, ty, indices)?
            }
        };
        let combined =
            |emitter: &mut Self, helper: Helper| format!("{place} = {}({place}, {value});", emitter.helper(helper));
        let text = match op {
            None => format!("{place} = {value};"),
            Some(ReduceOp::Sum) if elem.is_int() => combined(self, Helper::Add(elem)),
            Some(ReduceOp::Prod) if elem.is_int() => combined(self, Helper::Mul(elem)),
            Some(ReduceOp::Sum) => format!("{place} += {value};"),
            Some(ReduceOp::Prod) => format!("{place} *= {value};"),
            Some(ReduceOp::Min) => combined(self, Helper::Min(elem)),
            Some(ReduceOp::Max) => combined(self, Helper::Max(elem)),
            Some(ReduceOp::All) => format!("{place} = {place} && ({value});"),
            Some(ReduceOp::Any) => format!("{place} = {place} || ({value});"),
        };
        self.line(&text);
        Ok(())
    }
}

fn zero(elem: ElemType) -> &'static str {
    match elem {
        ElemType::F32 => "0.0f",
        ElemType::F64 => "0.0",
        _ => "0",
    }
}

/// Whether a statement of the outermost block ends a nest.
fn divides(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Nest(_) | Stmt::Alloc(..) | Stmt::Free(_))
}

/// Whether the body becomes stages: there are many nests, and they share nothing but buffers.
fn splits(program: &LoopProgram) -> bool {
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

/// Every local and buffer that statements read or write.
fn walk(program: &LoopProgram, block: &[Stmt], visit: &mut impl FnMut(Name)) {
    let mut todo: Vec<&[Stmt]> = vec![block];
    let value = |root: TermId, visit: &mut dyn FnMut(Name)| {
        for id in certen_loops::parts_first(&program.terms, root) {
            if let Term::Ref(name, _) = program.terms.get(id) {
                visit(*name);
            }
        }
    };
    while let Some(block) = todo.pop() {
        for stmt in block {
            match stmt {
                Stmt::For { body, .. } => todo.push(body),
                Stmt::If { then, otherwise, .. } => todo.extend([then.as_slice(), otherwise.as_slice()]),
                Stmt::Local { init: Some(init), .. } => value(*init, visit),
                Stmt::Swap(a, b) => [*a, *b].into_iter().for_each(&mut *visit),
                Stmt::Assign { target, value: assigned, .. } => {
                    visit(target.name());
                    value(*assigned, visit);
                }
                _ => {}
            }
        }
    }
}

/// Every name that a value reads; a combining assignment reads its target too, but C compilers do not count that.
fn read_names(program: &LoopProgram) -> HashSet<Name> {
    let mut names = HashSet::new();
    for (_, term) in program.terms.iter() {
        if let Term::Ref(name, _) = term {
            names.insert(*name);
        }
    }
    names
}

/// Every buffer that exchanges its content with another.
fn swapped_names(program: &LoopProgram) -> HashSet<Name> {
    let mut names = HashSet::new();
    each_block(program, |block| {
        for stmt in block {
            if let Stmt::Swap(a, b) = stmt {
                names.extend([*a, *b]);
            }
        }
    });
    names
}

/// Visits every block.
fn each_block(program: &LoopProgram, mut visit: impl FnMut(&[Stmt])) {
    let mut todo: Vec<&[Stmt]> = vec![&program.body];
    while let Some(block) = todo.pop() {
        visit(block);
        for stmt in block {
            match stmt {
                Stmt::For { body, .. } => todo.push(body),
                Stmt::If { then, otherwise, .. } => todo.extend([then.as_slice(), otherwise.as_slice()]),
                _ => {}
            }
        }
    }
}

/// Every name that the program declares, its own first.
fn declared_names(program: &LoopProgram) -> Vec<Name> {
    let mut names = vec![program.name];
    names.extend(&program.sizes);
    names.extend(program.inputs.iter().chain(&program.outputs).map(|p| p.name));
    each_block(program, |block| {
        for stmt in block {
            match stmt {
                Stmt::Alloc(name, _) | Stmt::Local { name, .. } | Stmt::For { index: name, .. } => names.push(*name),
                _ => {}
            }
        }
    });
    names
}

/// `begin a, b, …end`, on one line if it fits, else an item per line.
fn wrapped(begin: &str, items: &[String], end: &str, indent: usize) -> String {
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
    /// The program's whole function, which frees its memory on every path.
    fn finished(
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
        text += &format!("    int32_t {status} = 1;\n    void *{memory}[{places}] = {{NULL}};\n");
        text += &function.body;
        text += &format!("    {status} = 0;\ndone:\n");
        text += &format!("    for (int at = 0; at < {places}; at++) free({memory}[at]);\n    return {status};\n");
        text + "}\n"
    }
}
