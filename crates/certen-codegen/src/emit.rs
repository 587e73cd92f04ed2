//! The printer of C: what it knows while it prints, and the C of a program.
//!
//! The other modules add to [`Emitter`]: `file` puts the translation unit and the header together, `stages` divides
//! long programs, `statements`, `expr` and `index` print what is inside.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use certen_core::{ElemType, TensorType};
use certen_index::Bound;
use certen_loops::LoopProgram;
use certen_syntax::{Diagnostic, Name};

use crate::entry::EntryNames;
use crate::helpers::Helper;
use crate::names::CNames;
use crate::scan::{allocations, declared_names, read_names, swapped_names};
use crate::vector::Active;

/// Columns of a line.
const MAX_WIDTH: usize = 118;

/// With more buffers than this, those that were taken are noted in an array.
const MAX_PLAIN_BUFFERS: usize = 8;

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
    /// A translation unit for the runtime, which checks and copies arrays itself: the same kernel behind `certen_abi`
    /// and `certen_call`, which are alike for every program. Short, because every compilation takes time.
    pub native: String,
}

/// Prints a program as C.
///
/// # Errors
/// For a program that [`verify`](certen_loops::verify) does not accept, and for constants that do not fit in 64 bits.
pub fn emit_c(program: &LoopProgram) -> Result<CCode, Diagnostic> {
    let native = emitter(program, false).native_text()?;
    emitter(program, true).files(native)
}

/// A printer that has not printed anything yet.
pub(crate) fn emitter(program: &LoopProgram, stands_alone: bool) -> Emitter<'_> {
    let mut names = CNames::new();
    // Callers see these names, so nothing inside can take them.
    let dense = names.own(program.name);
    let mut own = |ending: &str| names.fresh(&format!("{dense}_{ending}"));
    let (strided, inside, error, kernel) = (own("strided"), own("inside"), own("error"), own("kernel"));
    let entries = EntryNames { dense, strided, inside, error, kernel };
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
        entries,
        ranges: HashMap::new(),
        limit: Bound::default(),
        stack: 0,
        helpers: BTreeSet::new(),
        uses_math: false,
        stands_alone,
        is_parallel: false,
        locals: HashMap::new(),
        read: read_names(program),
        swapped: swapped_names(program),
        types: HashMap::new(),
        functions: String::new(),
        function: Function::default(),
        indent: 1,
        plain: allocations(program) <= MAX_PLAIN_BUFFERS,
        staged: false,
        places: 0,
        empty: Vec::new(),
        heap: HashMap::new(),
        positions: HashMap::new(),
        lanes: None,
    };
    let parameters = program.inputs.iter().chain(&program.outputs).map(|parameter| &parameter.name);
    emitter.positions = program.sizes.iter().chain(parameters).enumerate().map(|(at, name)| (*name, at)).collect();
    for parameter in program.inputs.iter().chain(&program.outputs) {
        emitter.types.insert(parameter.name, &parameter.ty);
    }
    emitter
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
    /// Buffers that it has taken from the heap and not freed yet, if there is no array of memory.
    pub(crate) live: Vec<Name>,
    /// Whether it can run out of memory, whether it then jumps to the end, and whether it speaks of the array of memory.
    pub(crate) fails: bool,
    pub(crate) jumps: bool,
    pub(crate) uses_memory: bool,
}

pub(crate) struct Emitter<'a> {
    pub(crate) program: &'a LoopProgram,
    pub(crate) names: CNames,
    pub(crate) own: Own,
    pub(crate) entries: EntryNames,
    /// How large the indices of the loops around can get.
    pub(crate) ranges: HashMap<Name, Bound>,
    /// How large anything that is computed with indices and sizes can get.
    pub(crate) limit: Bound,
    /// How many bytes of buffers are on the stack.
    pub(crate) stack: usize,
    pub(crate) helpers: BTreeSet<Helper>,
    pub(crate) uses_math: bool,
    /// Whether the code is for people, where OpenMP runs parallel loops, or for the runtime, which has threads.
    pub(crate) stands_alone: bool,
    /// Whether there is a parallel loop that is divided by `certen_parallel`.
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
    /// Whether buffers are few and freed by name, without an array of memory.
    pub(crate) plain: bool,
    /// Whether the body is printed as stages.
    pub(crate) staged: bool,
    /// How many places the array of memory has, and which of them are not in use.
    pub(crate) places: usize,
    pub(crate) empty: Vec<usize>,
    /// The places of the buffers that were taken from the heap.
    pub(crate) heap: HashMap<Name, usize>,
    /// The positions of sizes, inputs and outputs among the program's parameters.
    pub(crate) positions: HashMap<Name, usize>,
    /// The vector loop around, if it is printed with vectors.
    pub(crate) lanes: Option<Active>,
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
        let helper = helper.canonical();
        if self.helpers.insert(helper) {
            helper.needs().into_iter().for_each(|needed| {
                self.helper(needed);
            });
        }
        helper.name()
    }

    /// A line of the function, broken behind an operator or comma where it is too long.
    pub(crate) fn line(&mut self, text: &str) {
        let mut rest = text;
        let mut margin = 4 * self.indent;
        loop {
            self.function.body.extend(std::iter::repeat_n(' ', margin));
            let (line, next) = broken(rest, MAX_WIDTH.saturating_sub(margin).max(40));
            self.function.body.push_str(line);
            self.function.body.push('\n');
            if next.is_empty() {
                return;
            }
            (rest, margin) = (next, 4 * self.indent + 8);
        }
    }
}

/// The beginning of a C text that fits in a width, and the rest: broken behind an operator, inside as few parentheses as
/// possible, never inside an index. The text has no strings, so that a space is a space.
fn broken(text: &str, width: usize) -> (&str, &str) {
    if text.len() <= width || text.starts_with("/*") || !text.is_ascii() {
        return (text, "");
    }
    // Neither end of a line should be a stub.
    const STUB: usize = 12;
    let (mut depth, mut inside, mut before) = (0usize, 0usize, ' ');
    let mut best: Option<(usize, usize)> = None;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '[' => inside += 1,
            ']' => inside = inside.saturating_sub(1),
            ' ' if inside == 0 && "+-*/,;=&|?:<>".contains(before) => {
                let fits = at <= width && at >= width / 3 && at + STUB < text.len();
                // Where nothing fits, the first place is the least bad one.
                if (fits && best.is_none_or(|(least, _)| depth <= least)) || (at > width && best.is_none()) {
                    best = Some((depth, at));
                }
            }
            _ => {}
        }
        if at > width && best.is_some() {
            break;
        }
        before = c;
    }
    best.map_or((text, ""), |(_, at)| (&text[..at], &text[at + 1..]))
}
