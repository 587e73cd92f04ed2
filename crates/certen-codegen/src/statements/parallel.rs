//! Parallel loops in C.
//!
//! A parallel loop becomes three things: a function that runs a range of its iterations, with all that it uses from
//! outside as parameters; a structure that holds these; and a *range function*, `NAME_part_1(begin, end, context)`,
//! which calls the one with what is in the other. Where the loop stood, the structure is filled, and
//! `certen_parallel` runs the range function over the whole range: by the runtime's threads, in code that stands alone by
//! OpenMP if the compiler was told to, else directly. A loop that has little to do is run directly in any case. In code
//! that stands alone, a loop without memory or vectors of its own stays where it is, with a pragma before it. Every part
//! is run in the standard floating-point environment, by the runtime's threads too.
//!
//! What runs out of memory notes that in the structure. Parts of the loop run at the same time, so it is atomic there.

use std::collections::HashSet;

use certen_loops::{MIN_PARALLEL_WORK, Mode, Stmt, declared, work};
use certen_syntax::{Diagnostic, Name};

use crate::emitter::{Emitter, OwnNames};
use crate::helpers::{Helper, c_type};
use crate::scan::allocates;
use crate::text::filled;

/// How the runtime's code runs parallel loops: by the threads that it is given.
pub(crate) const THREADS: &str = "\
/* Runs the iterations of a loop from begin up to end. */
typedef void certen_range(int64_t begin, int64_t end, void *context);

typedef void certen_sharing(int64_t begin, int64_t end, certen_range *part, void *context);

/* Atomic, because the same file may be loaded again while its code runs. */
static certen_sharing *_Atomic certen_threads;

/* Runs the iterations of a loop whose order does not matter, in parts at the same time. */
static void certen_parallel(int64_t begin, int64_t end, certen_range *part, void *context) {
    certen_sharing *share = certen_threads;
    if (share) share(begin, end, part, context);
    else part(begin, end, context);
}

";

/// The function through which the runtime gives its threads.
pub(crate) const ENTRY: &str = "
/* Threads for parallel loops; called before anything else. */
void certen_use_threads(certen_sharing *threads) {
    certen_threads = threads;
}
";

/// How code that stands alone runs them: by OpenMP, if the compiler was told to.
pub(crate) const STAND_ALONE: &str = "\
/* Runs the iterations of a loop from begin up to end. */
typedef void certen_range(int64_t begin, int64_t end, void *context);

/* Runs the iterations of a loop whose order does not matter: with OpenMP in parts at the same time. */
static void certen_parallel(int64_t begin, int64_t end, certen_range *part, void *context) {
#ifdef _OPENMP
    if (begin >= end) return;
    const int64_t length = end - begin, parts = length < 64 ? length : 64;
#pragma omp parallel for schedule(static)
    for (int64_t at = 0; at < parts; at++) {
        const int64_t size = length / parts, larger = length % parts;
        const int64_t first = begin + at*size + (at < larger ? at : larger);
        const certen_environment was = certen_enter();
        part(first, first + size + (at < larger), context);
        certen_leave(was);
    }
#else
    part(begin, end, context);
#endif
}

";

/// Around a loop of code that stands alone. Compilers warn of a pragma that they do not know.
pub(crate) const PRAGMA: &str = "\
/* Around a loop whose iterations may run at the same time; worth it if the condition holds. */
#ifdef _OPENMP
#define CERTEN_PRAGMA(text) _Pragma(#text)
#define CERTEN_PARALLEL(condition) CERTEN_PRAGMA(omp parallel if (condition))
#define CERTEN_BEGIN const certen_environment certen_was = certen_enter(); CERTEN_PRAGMA(omp for schedule(static))
#define CERTEN_END certen_leave(certen_was);
#else
#define CERTEN_PARALLEL(condition)
#define CERTEN_BEGIN
#define CERTEN_END
#endif

";

/// Something from outside that a loop uses.
struct Captured {
    name: String,
    /// As a member, and as a parameter.
    member: String,
    parameter: String,
}

/// What the parts of a loop share: the name of the structure and of the range function, what the structure holds, and
/// whether a part can run out of memory.
struct Context {
    part: String,
    captured: Vec<Captured>,
    fails: bool,
}

impl Context {
    fn is_empty(&self) -> bool {
        self.captured.is_empty() && !self.fails
    }
}

impl<'a> Emitter<'a> {
    /// A parallel loop: a function for its iterations, and its call.
    pub(super) fn parallel_for(&mut self, stmt: &'a Stmt, depth: usize) -> Result<(), Diagnostic> {
        let Stmt::For { index, range, mode, body } = stmt else { return Ok(()) };
        let index = *index;
        let (lo, hi) = self.ends(range, None)?;
        let work = self.work_text(stmt)?;
        if self.stands_alone && !allocates(body) && *mode == Mode::Parallel {
            let condition = work.map_or("1".into(), |work| format!("{work} >= {MIN_PARALLEL_WORK}.0"));
            self.line(&format!("CERTEN_PARALLEL({condition}) {{"));
            self.indent += 1;
            self.line("CERTEN_BEGIN");
            self.in_order(body);
            let streamed = std::mem::take(&mut self.function.streams);
            self.counted_for((index, range), (&lo, &hi), body, depth)?;
            // Each thread for what it has stored.
            if std::mem::replace(&mut self.function.streams, streamed) {
                self.line(&format!("{}();", Helper::Fence.name()));
            }
            self.line("CERTEN_END");
            self.indent -= 1;
            self.line("}");
            return Ok(());
        }
        self.is_parallel = true;

        // Its memory is its own.
        let outer = std::mem::take(&mut self.function);
        let (heap, empty) = (std::mem::take(&mut self.heap), std::mem::take(&mut self.empty));
        let (places, staged) = (std::mem::replace(&mut self.places, 0), std::mem::replace(&mut self.staged, false));
        let indent = std::mem::replace(&mut self.indent, 1);
        let (begin, end) = (self.own.begin.clone(), self.own.end.clone());
        match mode.is_vector() {
            true => self.vector_for((index, range), Some((&begin, &end)), body, depth)?,
            false => self.plain_for((index, range), Some((&begin, &end)), body, depth)?,
        }
        let function = std::mem::replace(&mut self.function, outer);
        let own_places = std::mem::replace(&mut self.places, places);
        (self.heap, self.empty, self.staged, self.indent) = (heap, empty, staged, indent);

        let captured = self.captured(index, body, &function.used, &function.written);
        self.function.written.extend(&function.written);
        let fails = function.fails;
        let name = self.names.numbered(&format!("{}_loop", self.entries.dense));
        let part = self.names.numbered(&format!("{}_part", self.entries.dense));
        let bounds = [format!("int64_t {begin}"), format!("int64_t {end}")];
        let parameters: Vec<String> = bounds.into_iter().chain(captured.iter().map(|c| c.parameter.clone())).collect();
        let text = self.own.finished(&name, &parameters, function, own_places);
        self.functions += &text;
        self.functions.push('\n');
        let context = Context { part, captured, fails };
        self.range_function(&name, &context);
        self.call_parts(&context, (&lo, &hi), work);
        Ok(())
    }

    /// The structure of what a loop uses, and the range function, which calls the loop's function with what is in it.
    fn range_function(&mut self, name: &str, context: &Context) {
        let OwnNames { begin, end, context: pointer, shared, failed, .. } = &self.own;
        let Context { part, captured, fails } = context;
        let mut fields: String = captured.iter().map(|c| format!("    {};\n", c.member)).collect();
        if *fails {
            fields += &format!("    _Atomic int32_t {failed};\n");
        }
        let mut prelude = format!("    (void){pointer};\n");
        if !context.is_empty() {
            prelude = format!("    struct {part} *{shared} = {pointer};\n");
            self.functions += &format!("struct {part} {{\n{fields}}};\n\n");
        }
        let members = captured.iter().map(|c| format!("{shared}->{}", c.name));
        let arguments: Vec<String> = [begin.clone(), end.clone()].into_iter().chain(members).collect();
        let (start, finish) = match fails {
            true => (format!("    if ({name}("), format!(") != 0) {shared}->{failed} = 1;")),
            false => (format!("    {name}("), ");".to_owned()),
        };
        let call = filled(&start, &arguments, ", ", &finish, 8);
        self.functions += &format!(
            "CERTEN_NOINLINE void {part}(int64_t {begin}, int64_t {end}, void *{pointer}) {{\n{prelude}{call}\n}}\n\n"
        );
    }

    /// Where the loop stood: the structure is filled, and the range function is run over the whole range.
    fn call_parts(&mut self, context: &Context, (lo, hi): (&str, &str), work: Option<String>) {
        let (shared, failed) = (self.own.shared.clone(), self.own.failed.clone());
        let Context { part, captured, fails } = context;
        let mut given = "0".to_owned();
        if !context.is_empty() {
            self.line("{");
            self.indent += 1;
            let mut values: Vec<String> = captured.iter().map(|c| format!(".{0} = {0}", c.name)).collect();
            if *fails {
                values.push(format!(".{failed} = 0"));
            }
            let text = filled(&format!("struct {part} {shared} = {{"), &values, ", ", "};", 4 * self.indent + 4);
            self.line(&text);
            given = format!("&{shared}");
        }
        match work {
            Some(work) => {
                self.line(&format!("if ({work} < {MIN_PARALLEL_WORK}.0) {part}({lo}, {hi}, {given});"));
                self.line(&format!("else certen_parallel({lo}, {hi}, {part}, {given});"));
            }
            None => self.line(&format!("certen_parallel({lo}, {hi}, {part}, {given});")),
        }
        if *fails {
            self.give_up_if(&format!("{shared}.{failed} != 0"));
        }
        if !context.is_empty() {
            self.indent -= 1;
            self.line("}");
        }
    }

    /// What a loop uses from outside, in the order of names in C; used here, because it is passed on.
    fn captured(
        &mut self,
        index: Name,
        body: &'a [Stmt],
        used: &HashSet<Name>,
        written: &HashSet<Name>,
    ) -> Vec<Captured> {
        let mut private = declared(body);
        private.insert(index);
        let mut names: Vec<Name> = used.iter().copied().filter(|name| !private.contains(name)).collect();
        // Sizes, then the caller's arrays, as the user knows them; then the rest.
        names.sort_by_key(|name| {
            (self.positions.get(name).copied().unwrap_or(usize::MAX), self.names.get(*name).to_owned())
        });
        let mut captured = Vec::with_capacity(names.len());
        for name in names {
            let c = self.c_name(name);
            let (member, parameter) = match (self.locals.get(&name), self.types.get(&name)) {
                (Some(elem), _) => {
                    let text = format!("{} {c}", c_type(*elem));
                    (text.clone(), text)
                }
                (None, Some(ty)) => {
                    let (kind, elem) = (if written.contains(&name) { "" } else { "const " }, c_type(ty.elem));
                    (format!("{kind}{elem} *{c}"), format!("{kind}{elem} *{}{c}", self.restrict(name)))
                }
                (None, None) => (format!("int64_t {c}"), format!("int64_t {c}")),
            };
            captured.push(Captured { name: c, member, parameter });
        }
        captured
    }

    /// About how many operations a loop makes, as an expression; none if that is known to be enough.
    fn work_text(&mut self, stmt: &Stmt) -> Result<Option<String>, Diagnostic> {
        let work = work(self.program, std::slice::from_ref(stmt));
        if work.extents.is_empty() && work.operations >= MIN_PARALLEL_WORK {
            return Ok(None);
        }
        // As floating-point numbers, which cannot overflow.
        let mut factors = Vec::with_capacity(work.extents.len() + 1);
        for extent in &work.extents {
            let text = self.ix(extent)?.text();
            factors.push(if extent.as_var().is_some() {
                format!("(double){text}")
            } else {
                format!("(double)({text})")
            });
        }
        factors.push(format!("{}.0", work.operations));
        Ok(Some(factors.join("*")))
    }
}
