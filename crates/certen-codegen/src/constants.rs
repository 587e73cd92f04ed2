//! Tables of constants: static arrays before the functions that read them.
//!
//! An element at known indices is printed as its number, so that coefficients of an unrolled loop need no memory. A table that
//! is only read like this is not printed.

use certen_core::{Literal, TermId};
use certen_index::Ix;
use certen_loops::as_element;

use crate::emitter::Emitter;
use crate::helpers::c_type;
use crate::text::filled;

impl Emitter<'_> {
    /// The number that an element of a table is, if its indices are known.
    pub(crate) fn known_element(&self, id: TermId) -> Option<Literal> {
        let (name, _, indices) = as_element(&self.program.terms, id)?;
        let index = indices.iter().map(Ix::as_constant).collect::<Option<Vec<i64>>>()?;
        self.constants.get(&name)?.get(&index)
    }

    /// Whether a term is an element of a table.
    pub(crate) fn is_constant(&self, id: TermId) -> bool {
        as_element(&self.program.terms, id).is_some_and(|(name, ..)| self.constants.contains_key(&name))
    }

    /// The arrays of the tables that were read.
    pub(crate) fn tables(&mut self) -> String {
        let mut text = String::new();
        let read = std::mem::take(&mut self.tables);
        for constant in self.program.constants.iter().filter(|constant| read.contains(&constant.name)) {
            let (elem, table) = (constant.table.ty().elem, &constant.table);
            let numbers: Vec<String> = table.elements().iter().map(|number| self.literal(*number, elem).text).collect();
            // C has no arrays without elements, and nothing reads this one.
            let (count, numbers) = if numbers.is_empty() { (1, vec!["0".into()]) } else { (numbers.len(), numbers) };
            let name = self.made.get(&constant.name).map_or(constant.name.as_str(), String::as_str);
            text += &format!("/* {}: {} */\n", constant.name.as_str().replace("*/", "* /"), table.ty());
            let begin = format!("static const {} {name}[{count}] = {{\n    ", c_type(elem));
            text += &filled(&begin, &numbers, ", ", "\n};\n\n", 4);
        }
        text
    }
}
