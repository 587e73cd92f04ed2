//! Statements in C: loops, conditions, buffers, assignments.
//!
//! `memory` prints buffers, `parallel` and `vector` the loops whose iterations are independent, `turned` copies that exchange
//! dimensions, `fetch` hints of what will be read, `tile` keeps sums in registers. Bodies of loops are blocks again, so these are parts of one module.

pub(crate) mod fetch;
mod memory;
pub(crate) mod parallel;
mod tile;
mod turned;
pub(crate) mod vector;

use certen_core::{ElemType, Range, ReduceOp, TermId};
use certen_loops::{MAX_NESTING, Mode, Stmt, Target, changes_outside};
use certen_syntax::{Code, Diagnostic, Name};

use crate::emitter::Emitter;
use crate::helpers::{Helper, c_type};

impl<'a> Emitter<'a> {
    fn nest_comment(&mut self, buffer: Name) {
        let text = match self.types.get(&buffer) {
            Some(ty) => format!("{buffer}: {ty}"),
            None => buffer.to_string(),
        };
        self.line(&format!("/* {} */", text.replace("*/", "* /")));
    }

    pub(crate) fn block(&mut self, block: &'a [Stmt], depth: usize) -> Result<(), Diagnostic> {
        if depth > MAX_NESTING {
            let message = format!("more than {MAX_NESTING} blocks inside each other");
            return Err(Diagnostic::error(Code::E0702, None, message));
        }
        for (at, stmt) in block.iter().enumerate() {
            self.fetch_for(block, at)?;
            self.fetch_blocks(block, at);
            self.copy_tiles(block, at)?;
            self.stmt(stmt, depth)?;
            self.ahead.clear();
        }
        for tile in block.iter().filter_map(Stmt::declares) {
            self.made.remove(&tile);
        }
        // What the outermost block declares stays known: a later stage may use it.
        if depth > 0 {
            for stmt in block {
                match stmt {
                    Stmt::Local { name, .. } => {
                        self.locals.remove(name);
                    }
                    Stmt::Alloc(name, _) => {
                        self.types.remove(name);
                    }
                    Stmt::Nest(_) | Stmt::Free(_) | Stmt::Swap(..) => {}
                    Stmt::For { .. } | Stmt::If { .. } | Stmt::Assign { .. } => {}
                }
            }
        }
        Ok(())
    }

    fn inner(&mut self, block: &'a [Stmt], depth: usize) -> Result<(), Diagnostic> {
        self.indent += 1;
        self.block(block, depth + 1)?;
        self.indent -= 1;
        Ok(())
    }

    fn stmt(&mut self, stmt: &'a Stmt, depth: usize) -> Result<(), Diagnostic> {
        match stmt {
            Stmt::Nest(name) => self.nest_comment(*name),
            Stmt::Alloc(name, ty) if self.lanes.is_some() => self.vector_alloc(*name, ty)?,
            Stmt::Alloc(name, ty) => self.alloc(*name, ty, depth)?,
            Stmt::Free(name) => {
                if let Some(place) = self.heap.remove(name) {
                    self.release(*name, place);
                }
            }
            Stmt::Swap(a, b) => self.swap(*a, *b)?,
            // Only a loop of one iteration may change what is around it, and there is nothing to share.
            Stmt::For { index, range, mode, body } if mode.is_parallel() && changes_outside(body) => {
                self.plain_for((*index, range), None, body, depth)?;
            }
            Stmt::For { mode: Mode::Parallel | Mode::ParallelVector, .. } => self.parallel_for(stmt, depth)?,
            Stmt::For { index, range, mode: Mode::Vector, body } => {
                self.vector_for((*index, range), None, body, depth)?;
            }
            Stmt::For { index, range, mode: Mode::Serial, body } => {
                self.plain_for((*index, range), None, body, depth)?;
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
            Stmt::Local { name, elem, init } if self.lanes.is_some() => self.vector_local(*name, *elem, *init)?,
            Stmt::Local { name, elem, init } => {
                // A local that is assigned later begins as zero, which compilers remove: they cannot always see that
                // it is assigned on every path.
                let value = match init {
                    Some(value) => self.value(*value)?,
                    None => zero(*elem).into(),
                };
                self.locals.insert(*name, *elem);
                let c = self.c_name(*name);
                self.line(&format!("{} {c} = {value};", c_type(*elem)));
                if !self.read.contains(name) {
                    self.line(&format!("(void){c};"));
                }
            }
            Stmt::Assign { target, op, value } if self.lanes.is_some() => self.vector_assign(target, *op, *value)?,
            Stmt::Assign { target, op, value } => self.assign(target, *op, *value)?,
        }
        Ok(())
    }

    /// A loop, one iteration after the other: all of its range, or from one number up to another.
    fn plain_for(
        &mut self,
        (index, range): (Name, &'a Range),
        part: Option<(&str, &str)>,
        body: &'a [Stmt],
        depth: usize,
    ) -> Result<(), Diagnostic> {
        if part.is_none()
            && let Some(copy) = self.turned(index, range, body)
        {
            return self.turned_for(&copy);
        }
        let (lo, hi) = self.ends(range, part)?;
        if part.is_none()
            && let Some((lanes, shape)) = self.lanes_of_sum(index, range, body)
        {
            return self.folded_for((index, range), (lo, hi), (lanes, shape), body, depth);
        }
        match self.unrolled(range, body).filter(|_| part.is_none()) {
            Some(count) => self.line(&format!("CERTEN_UNROLL({count})")),
            None => self.in_order(body),
        }
        self.counted_for((index, range), (&lo, &hi), body, depth)
    }

    /// What stands before a loop of which Clang would make vectors.
    fn in_order(&mut self, body: &[Stmt]) {
        // It looks for them in innermost loops only, and there is nothing to find in lanes.
        let is_innermost = !body.iter().any(|stmt| matches!(stmt, Stmt::For { .. }));
        if self.stands_alone && self.lanes.is_none() && is_innermost {
            self.line("CERTEN_IN_ORDER");
        }
    }

    /// Where a loop begins and ends: as its range says, or as it is given a part of it.
    fn ends(&mut self, range: &Range, part: Option<(&str, &str)>) -> Result<(String, String), Diagnostic> {
        Ok(match part {
            Some((lo, hi)) => (lo.to_owned(), hi.to_owned()),
            None => (self.ix(&range.lo)?.text(), self.ix(&range.hi)?.text()),
        })
    }

    fn counted_for(
        &mut self,
        (index, range): (Name, &Range),
        (lo, hi): (&str, &str),
        body: &'a [Stmt],
        depth: usize,
    ) -> Result<(), Diagnostic> {
        self.bound_index(index, range);
        let i = self.names.get(index).to_owned();
        self.line(&format!("for (int64_t {i} = {lo}; {i} < {hi}; {i}++) {{"));
        self.fetch_ahead(index)?;
        self.inner(body, depth)?;
        self.ranges.shift_remove(&index);
        self.line("}");
        Ok(())
    }

    fn assign(&mut self, target: &Target, op: Option<ReduceOp>, value: TermId) -> Result<(), Diagnostic> {
        let elem = self.program.terms.ty(value).elem;
        let value = self.value(value)?;
        let place = match target {
            Target::Local(name) => self.c_name(*name),
            Target::Element(name, indices) => {
                self.function.written.insert(*name);
                self.element(*name, indices)?
            }
        };
        let text = match op {
            None => format!("{place} = {value};"),
            Some(op) => self.combined(op, elem, &place, &value),
        };
        self.line(&text);
        Ok(())
    }

    /// The statement that combines something with a value.
    fn combined(&mut self, op: ReduceOp, elem: ElemType, place: &str, value: &str) -> String {
        let helper = match op {
            ReduceOp::Sum if elem.is_int() => Helper::Add(elem),
            ReduceOp::Prod if elem.is_int() => Helper::Mul(elem),
            ReduceOp::Sum => return format!("{place} += {value};"),
            ReduceOp::Prod => return format!("{place} *= {value};"),
            ReduceOp::Min => Helper::Min(elem),
            ReduceOp::Max => Helper::Max(elem),
            ReduceOp::All => return format!("{place} = {place} && ({value});"),
            ReduceOp::Any => return format!("{place} = {place} || ({value});"),
        };
        format!("{place} = {}({place}, {value});", self.helper(helper))
    }
}

fn zero(elem: ElemType) -> &'static str {
    match elem {
        ElemType::F32 => "0.0f",
        ElemType::F64 => "0.0",
        _ => "0",
    }
}
