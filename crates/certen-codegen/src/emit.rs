//! The printer of C: what it knows while it prints, and the C of a program.
//!
//! The other modules add to [`Emitter`]: `file` puts the translation unit and the header together, `stages` divides
//! long programs, `statements`, `expr` and `index` print what is inside.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use certen_core::{ElemType, TensorType};
use certen_loops::LoopProgram;
use certen_syntax::{Diagnostic, Name};

use crate::helpers::Helper;
use crate::names::CNames;
use crate::scan::{declared_names, read_names, swapped_names};

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
    let mut own = |name: &str| names.fresh(name);
    let own = Own {
        status: own("status"),
        memory: own("memory"),
        begin: own("begin"),
        end: own("end"),
        context: own("context"),
        shared: own("shared"),
        failed: own("failed"),
    };
    let mut emitter = Emitter {
        program,
        names,
        own,
        helpers: BTreeSet::new(),
        uses_math: false,
        is_parallel: false,
        locals: HashMap::new(),
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
pub(crate) struct Own {
    pub(crate) status: String,
    pub(crate) memory: String,
    /// Of functions for parallel loops: the range, the structure of what is used from outside, and its last member.
    pub(crate) begin: String,
    pub(crate) end: String,
    pub(crate) context: String,
    pub(crate) shared: String,
    pub(crate) failed: String,
}

/// What is printed of one C function.
#[derive(Default)]
pub(crate) struct Function {
    pub(crate) body: String,
    /// Names that occur.
    pub(crate) used: HashSet<Name>,
    /// Buffers that are written.
    pub(crate) written: HashSet<Name>,
    /// Buffers on the heap that occur but were allocated before, with their places.
    pub(crate) earlier: BTreeMap<usize, (Name, ElemType)>,
    pub(crate) allocated: HashSet<Name>,
    /// Whether it can run out of memory, and whether it speaks of the array of memory at all.
    pub(crate) fails: bool,
    pub(crate) uses_memory: bool,
}

pub(crate) struct Emitter<'a> {
    pub(crate) program: &'a LoopProgram,
    pub(crate) names: CNames,
    pub(crate) own: Own,
    pub(crate) helpers: BTreeSet<Helper>,
    pub(crate) uses_math: bool,
    /// Whether there is a parallel loop.
    pub(crate) is_parallel: bool,
    /// Local scalars in scope; other names without dimensions are buffers.
    pub(crate) locals: HashMap<Name, ElemType>,
    /// Names that some value reads.
    pub(crate) read: HashSet<Name>,
    /// Buffers that exchange their contents: their pointers change, so that none is `restrict`.
    pub(crate) swapped: HashSet<Name>,
    /// Types of the buffers in scope.
    pub(crate) types: HashMap<Name, &'a TensorType>,
    /// Functions that the program's own one calls.
    pub(crate) functions: String,
    /// The one that is being printed.
    pub(crate) function: Function,
    pub(crate) indent: usize,
    /// Whether the body is printed as stages.
    pub(crate) staged: bool,
    /// How many places the array of memory has, and which of them are not in use.
    pub(crate) places: usize,
    pub(crate) empty: Vec<usize>,
    /// The places of the buffers that were taken from the heap.
    pub(crate) heap: HashMap<Name, usize>,
    /// The positions of sizes, inputs and outputs among the program's parameters.
    pub(crate) positions: HashMap<Name, usize>,
}

pub(crate) type Emitted<T> = Result<T, Diagnostic>;

impl Emitter<'_> {
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
        self.locals.contains_key(&name)
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
}
