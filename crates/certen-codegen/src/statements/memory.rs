//! Buffers: on the stack or the heap, and given back on every path.
//!
//! A program of few buffers frees those that it has where it fails. One of many notes them in an array, and a failure
//! jumps to the end, where everything in the array is freed.

use certen_core::TensorType;
use certen_syntax::{Code, Diagnostic, Name};

use crate::emitter::{CFunction, Emitter, OwnNames};
use crate::helpers::{Helper, c_type};
use crate::text::signature;

/// The largest buffer on the stack, and all of them together, in bytes.
const MAX_ON_STACK: usize = 16 << 10;
const MAX_STACK: usize = 64 << 10;

impl<'a> Emitter<'a> {
    /// A small buffer of a known size lives on the stack unless stages share it, others are taken from the heap.
    pub(super) fn alloc(&mut self, name: Name, ty: &'a TensorType, depth: usize) -> Result<(), Diagnostic> {
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
        let helper = if self.stands_alone { Helper::Alloc } else { Helper::Scratch };
        let call = format!("{}({}, sizeof({elem}))", self.helper(helper), count.text());
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

    /// Leaves the function if there is no memory, and frees what it has.
    pub(super) fn give_up_if(&mut self, condition: &str) {
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
        let free = self.own.free;
        live.iter().for_each(|live| self.line(&format!("    {free}({live});")));
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

    /// Frees a buffer of the heap where it ends; others may have its place in the array.
    pub(super) fn release(&mut self, name: Name, place: usize) {
        if self.plain {
            self.function.live.retain(|live| *live != name);
            let buffer = self.c_name(name);
            return self.line(&format!("{}({buffer});", self.own.free));
        }
        let memory = &self.own.memory;
        let (free, forget) = (format!("{}({memory}[{place}]);", self.own.free), format!("{memory}[{place}] = NULL;"));
        self.line(&free);
        self.line(&forget);
        self.function.uses_memory = true;
        self.empty.push(place);
    }

    /// What C may assume of the pointer to a buffer: nothing else points there, unless buffers are swapped.
    pub(crate) fn restrict(&self, name: Name) -> &'static str {
        if self.swapped.contains(&name) { "" } else { "restrict " }
    }

    /// Two buffers exchange their memory: the pointers and what the array of memory says.
    pub(super) fn swap(&mut self, a: Name, b: Name) -> Result<(), Diagnostic> {
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
}

impl OwnNames {
    /// The text of a function that computes, which frees its memory on every path.
    pub(crate) fn finished(&self, name: &str, parameters: &[String], mut function: CFunction, places: usize) -> String {
        let (status, memory) = (&self.status, &self.memory);
        let result = if function.fails { "int32_t" } else { "void" };
        let mut text = signature(&format!("static {result} {name}"), parameters) + " {\n";
        if function.streams {
            function.body += &format!("    {}();\n", Helper::Fence.name());
        }
        if !function.jumps {
            text += &function.body;
            return text + if function.fails { "    return 0;\n}\n" } else { "}\n" };
        }
        text += &format!("    int32_t {status} = 1;\n");
        // A function that calls parallel loops may fail without having memory itself.
        if places > 0 {
            text += &format!("    void *{memory}[{places}] = {{NULL}};\n");
        }
        text += &function.body;
        text += &format!("    {status} = 0;\ndone:\n");
        if places > 0 {
            text += &format!("    for (int at = 0; at < {places}; at++) {}({memory}[at]);\n", self.free);
        }
        text + &format!("    return {status};\n}}\n")
    }
}
