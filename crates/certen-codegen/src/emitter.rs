//! The state of printing: what the printer knows of the program and of the C function that it is in.
//!
//! The modules that print add methods to [`Emitter`], each for its own part of a program. Here is only what all of them
//! use: the names in C, the helpers that were used, and the lines of the function.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use certen_core::{ElemType, Table, TensorType};
use certen_index::{Bound, Ix};
use certen_loops::{Lanes, LoopProgram};
use certen_syntax::Name;
use indexmap::IndexMap;

use crate::helpers::Helper;
use crate::helpers::vectors::LaneShape;
use crate::names::CNames;
use crate::scan::{allocations, declared_names, read_names, swapped_names};
use crate::text::{MAX_WIDTH, broken};

/// With more buffers than this, those that were taken are noted in an array.
const MAX_PLAIN_BUFFERS: usize = 8;

/// The C names that the entry points need, free of the user's.
#[derive(Clone)]
pub(crate) struct EntryNames {
    pub(crate) dense: String,
    pub(crate) strided: String,
    /// The function that the second calls in the standard floating-point environment.
    pub(crate) inside: String,
    pub(crate) error: String,
    pub(crate) kernel: String,
}

/// C names of variables that every function may need.
pub(crate) struct OwnNames {
    pub(crate) status: String,
    pub(crate) memory: String,
    /// The function that takes memory back.
    pub(crate) free: &'static str,
    /// Of functions for parallel loops: the range, the structure of what is used from outside, and its last member.
    pub(crate) begin: String,
    pub(crate) end: String,
    pub(crate) context: String,
    pub(crate) shared: String,
    pub(crate) failed: String,
    /// The place of a lane in its vector.
    pub(crate) at: String,
}

/// The vector loop that is being printed.
pub(crate) struct VectorLoop {
    pub(crate) lanes: Lanes,
    pub(crate) shape: LaneShape,
    /// The names in C of what the lanes combine into.
    pub(crate) accumulators: HashMap<Name, String>,
}

/// What an iteration of a loop fetches for later.
pub(crate) enum Ahead {
    /// What the next tile reads: elements of this one, and how many bytes are between the two.
    Rows { elements: Vec<(Name, Vec<Ix>)>, bytes: i64 },
    /// Lines of what other nests read or store.
    Lines(Vec<LinesAhead>),
}

/// So many lines that are fetched, from so many bytes after an element on.
pub(crate) struct LinesAhead {
    pub(crate) element: (Name, Vec<Ix>),
    pub(crate) bytes: Ix,
    pub(crate) lines: i64,
    pub(crate) to_store: bool,
}

/// What is printed of one C function.
#[derive(Default)]
pub(crate) struct CFunction {
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
    /// Whether it stores past the caches.
    pub(crate) streams: bool,
}

pub(crate) struct Emitter<'a> {
    pub(crate) program: &'a LoopProgram,
    pub(crate) names: CNames,
    pub(crate) own: OwnNames,
    pub(crate) entries: EntryNames,
    /// How large the indices of the loops around can get, the innermost last.
    pub(crate) ranges: IndexMap<Name, Bound>,
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
    pub(crate) function: CFunction,
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
    pub(crate) lanes: Option<VectorLoop>,
    /// The names in C of tables, and of the copies of tiles that were made.
    pub(crate) made: HashMap<Name, String>,
    /// The tables, and which of them were read.
    pub(crate) constants: HashMap<Name, &'a Table>,
    pub(crate) tables: HashSet<Name>,
    /// What the loops over these indices fetch for later.
    pub(crate) ahead: HashMap<Name, Ahead>,
}

impl<'a> Emitter<'a> {
    /// A printer that has not printed anything yet.
    pub(crate) fn new(program: &'a LoopProgram, stands_alone: bool) -> Self {
        let mut names = CNames::new();
        // Callers see these names, so nothing inside can take them.
        let dense = names.own(program.name);
        let mut own = |ending: &str| names.fresh(&format!("{dense}_{ending}"));
        let (strided, inside, error, kernel) = (own("strided"), own("inside"), own("error"), own("kernel"));
        let entries = EntryNames { dense, strided, inside, error, kernel };
        names.add(declared_names(program));
        let mut own = |name: &str| names.fresh(name);
        let own = OwnNames {
            status: own("status"),
            memory: own("memory"),
            free: if stands_alone { "free" } else { "certen_free" },
            begin: own("begin"),
            end: own("end"),
            context: own("context"),
            shared: own("shared"),
            failed: own("failed"),
            at: own("at"),
        };
        let mut emitter = Emitter {
            program,
            names,
            own,
            entries,
            ranges: IndexMap::new(),
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
            function: CFunction::default(),
            indent: 1,
            plain: allocations(program) <= MAX_PLAIN_BUFFERS,
            staged: false,
            places: 0,
            empty: Vec::new(),
            heap: HashMap::new(),
            positions: HashMap::new(),
            lanes: None,
            made: HashMap::new(),
            constants: HashMap::new(),
            tables: HashSet::new(),
            ahead: HashMap::new(),
        };
        let parameters = program.inputs.iter().chain(&program.outputs).map(|parameter| &parameter.name);
        emitter.positions = program.sizes.iter().chain(parameters).enumerate().map(|(at, name)| (*name, at)).collect();
        emitter.types.extend(program.given());
        for constant in &program.constants {
            let name = format!("{}_{}", emitter.entries.dense, emitter.names.get(constant.name));
            emitter.made.insert(constant.name, emitter.names.fresh(&name));
            emitter.constants.insert(constant.name, &constant.table);
        }
        emitter
    }

    /// The C name of a name, which is used here.
    pub(crate) fn c_name(&mut self, name: Name) -> String {
        self.mark(name);
        self.made.get(&name).cloned().unwrap_or_else(|| self.names.get(name).to_owned())
    }

    pub(crate) fn mark(&mut self, name: Name) {
        if self.constants.contains_key(&name) {
            self.tables.insert(name);
            return;
        }
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

    /// A line of the function, broken after an operator or comma where it is too long.
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
