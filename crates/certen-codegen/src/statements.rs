//! Statements in C: loops, conditions, buffers, assignments.

use certen_core::{ElemType, Range, ReduceOp, TensorType, TermId};
use certen_loops::{MAX_NESTING, Mode, Stmt, Target, changes_outside};
use certen_syntax::{Code, Diagnostic, Name};

use crate::emit::{Emitted, Emitter};
use crate::helpers::{Helper, c_type};

/// The largest buffer on the stack, and all of them together, in bytes.
const MAX_ON_STACK: usize = 16 << 10;
const MAX_STACK: usize = 64 << 10;

impl<'a> Emitter<'a> {
    pub(crate) fn nest_comment(&mut self, buffer: Name) {
        let text = match self.types.get(&buffer) {
            Some(ty) => format!("{buffer}: {ty}"),
            None => buffer.to_string(),
        };
        self.line(&format!("/* {} */", text.replace("*/", "* /")));
    }

    pub(crate) fn block(&mut self, block: &'a [Stmt], depth: usize) -> Emitted<()> {
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

    pub(crate) fn inner(&mut self, block: &'a [Stmt], depth: usize) -> Emitted<()> {
        self.indent += 1;
        self.block(block, depth + 1)?;
        self.indent -= 1;
        Ok(())
    }

    pub(crate) fn stmt(&mut self, stmt: &'a Stmt, depth: usize) -> Emitted<()> {
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
    pub(crate) fn plain_for(
        &mut self,
        (index, range): (Name, &Range),
        part: Option<(&str, &str)>,
        body: &'a [Stmt],
        depth: usize,
    ) -> Emitted<()> {
        let (lo, hi) = self.ends(range, part)?;
        if part.is_none()
            && let Some((lanes, shape)) = self.lanes_of_sum(index, range, body)
        {
            return self.folded_for((index, range), (lo, hi), (lanes, shape), body, depth);
        }
        match self.unrolled(range, body).filter(|_| part.is_none()) {
            Some(count) => self.line(&format!("CERTEN_UNROLL({count})")),
            None => {
                // Clang looks for vectors in innermost loops only, and there is nothing to find in lanes.
                let is_innermost = !body.iter().any(|stmt| matches!(stmt, Stmt::For { .. }));
                if self.stands_alone && self.lanes.is_none() && is_innermost {
                    self.line("CERTEN_IN_ORDER");
                }
            }
        }
        self.counted_for((index, range), (&lo, &hi), body, depth)
    }

    /// Where a loop begins and ends: as its range says, or as it is given a part of it.
    pub(crate) fn ends(&mut self, range: &Range, part: Option<(&str, &str)>) -> Emitted<(String, String)> {
        Ok(match part {
            Some((lo, hi)) => (lo.to_owned(), hi.to_owned()),
            None => (self.ix(&range.lo)?.text(), self.ix(&range.hi)?.text()),
        })
    }

    pub(crate) fn counted_for(
        &mut self,
        (index, range): (Name, &Range),
        (lo, hi): (&str, &str),
        body: &'a [Stmt],
        depth: usize,
    ) -> Emitted<()> {
        self.bound_index(index, range);
        let i = self.names.get(index).to_owned();
        self.line(&format!("for (int64_t {i} = {lo}; {i} < {hi}; {i}++) {{"));
        self.inner(body, depth)?;
        self.ranges.remove(&index);
        self.line("}");
        Ok(())
    }

    /// A small buffer of a known size lives on the stack unless stages share it, others are taken from the heap.
    fn alloc(&mut self, name: Name, ty: &'a TensorType, depth: usize) -> Emitted<()> {
        self.types.insert(name, ty);
        self.bound_bytes(ty);
        let (c, elem) = (self.c_name(name), c_type(ty.elem));
        if let Some(count) = self.count_on_stack(name, ty, depth) {
            self.line(&format!("{elem} {c}[{count}];"));
            return Ok(());
        }
        let count = self.count(ty)?;
        self.function.fails = true;
        self.function.allocated.insert(name);
        let start = format!("{elem} *{}{c} = ", self.restrict(name));
        let call = format!("{}({}, sizeof({elem}))", self.helper(Helper::Alloc), count.text());
        if self.plain {
            self.heap.insert(name, 0);
            self.line(&format!("{start}{call};"));
            self.give_up_if(&format!("{c} == NULL"));
            self.function.live.push(name);
            return Ok(());
        }
        let place = self.empty.pop().unwrap_or(self.places);
        self.places = self.places.max(place + 1);
        self.function.uses_memory = true;
        self.heap.insert(name, place);
        self.line(&format!("{start}{}[{place}] = {call};", self.own.memory));
        self.give_up_if(&format!("{c} == NULL"));
        Ok(())
    }

    /// Where memory has run out, what was taken is given back.
    pub(crate) fn give_up_if(&mut self, condition: &str) {
        self.function.fails = true;
        if !self.plain {
            let give_up = if self.staged { "return 1" } else { "goto done" };
            self.function.jumps |= !self.staged;
            return self.line(&format!("if ({condition}) {give_up};"));
        }
        let live: Vec<String> = self.function.live.iter().map(|name| self.names.get(*name).to_owned()).collect();
        if live.is_empty() {
            return self.line(&format!("if ({condition}) return 1;"));
        }
        self.line(&format!("if ({condition}) {{"));
        live.iter().for_each(|live| self.line(&format!("    free({live});")));
        self.line("    return 1;");
        self.line("}");
    }

    /// How many elements a buffer has, if it fits on the stack: at least 1, because C has no empty arrays.
    fn count_on_stack(&mut self, name: Name, ty: &TensorType, depth: usize) -> Option<usize> {
        let mut sizes = ty.shape.iter().map(|size| size.as_constant().and_then(|size| usize::try_from(size).ok()));
        let count = sizes.try_fold(1usize, |product, size| product.checked_mul(size?))?.max(1);
        let bytes = count.checked_mul(ty.elem.bytes())?;
        let shared = self.staged && depth == 0;
        if shared || self.swapped.contains(&name) || bytes > MAX_ON_STACK || self.stack + bytes > MAX_STACK {
            return None;
        }
        self.stack += bytes;
        Some(count)
    }

    fn release(&mut self, name: Name, place: usize) {
        if self.plain {
            self.function.live.retain(|live| *live != name);
            let free = format!("free({});", self.c_name(name));
            return self.line(&free);
        }
        let memory = &self.own.memory;
        let (free, forget) = (format!("free({memory}[{place}]);"), format!("{memory}[{place}] = NULL;"));
        self.line(&free);
        self.line(&forget);
        self.function.uses_memory = true;
        self.empty.push(place);
    }

    pub(crate) fn restrict(&self, name: Name) -> &'static str {
        if self.swapped.contains(&name) { "" } else { "restrict " }
    }

    /// Two buffers exchange their memory: the pointers and what the array of memory says.
    fn swap(&mut self, a: Name, b: Name) -> Emitted<()> {
        let (Some(&first), Some(&second)) = (self.heap.get(&a), self.heap.get(&b)) else {
            return Err(Diagnostic::error(Code::E0702, None, format!("{a} or {b} is no buffer in scope")));
        };
        self.function.written.extend([a, b]);
        if self.plain {
            let elem = self.types.get(&a).map_or("void", |ty| c_type(ty.elem));
            let (a, b, other) = (self.c_name(a), self.c_name(b), self.names.numbered("other"));
            self.line(&format!("{elem} *{other} = {a};"));
            self.line(&format!("{a} = {b};"));
            self.line(&format!("{b} = {other};"));
            return Ok(());
        }
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
        let text = match op {
            None => format!("{place} = {value};"),
            Some(op) => self.combined(op, elem, &place, &value)?,
        };
        self.line(&text);
        Ok(())
    }

    /// The statement that combines something with a value.
    pub(crate) fn combined(&mut self, op: ReduceOp, elem: ElemType, place: &str, value: &str) -> Emitted<String> {
        let helper = match op {
            ReduceOp::Sum if elem.is_int() => Helper::Add(elem),
            ReduceOp::Prod if elem.is_int() => Helper::Mul(elem),
            ReduceOp::Sum => return Ok(format!("{place} += {value};")),
            ReduceOp::Prod => return Ok(format!("{place} *= {value};")),
            ReduceOp::Min => Helper::Min(elem),
            ReduceOp::Max => Helper::Max(elem),
            ReduceOp::All => return Ok(format!("{place} = {place} && ({value});")),
            ReduceOp::Any => return Ok(format!("{place} = {place} || ({value});")),
        };
        Ok(format!("{place} = {}({place}, {value});", self.helper(helper)))
    }
}

pub(crate) fn zero(elem: ElemType) -> &'static str {
    match elem {
        ElemType::F32 => "0.0f",
        ElemType::F64 => "0.0",
        _ => "0",
    }
}
