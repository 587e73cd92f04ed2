//! The state of checking one function: names in scope, what holds, what was found.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use certen_core::{ElemType, TensorType};
use certen_index::{Cond, Facts, Ix, IxError};
use certen_syntax::{Code, Diagnostic, Diagnostics, Name, Remedy, Span};

use super::value::{Draft, Judged};
use super::wanted::WantedValues;
use super::{Checked, Reported, World, too_complex};
use crate::ast::{self, Elem, Ident};
use crate::library::{Declared, FileRef, FunctionRef};
use crate::typed::{Expr, Kind};

/// An access of a body whose bounds are being inferred.
#[derive(Clone, Debug)]
pub(super) struct Access {
    /// The index.
    pub index: Ix,
    /// The size that it must stay below.
    pub size: Ix,
    /// How many index-level conditions stand around it.
    pub guards: usize,
    /// What holds there, if there are some.
    pub facts: Option<Rc<Facts>>,
    /// The ranges of the indices that are bound further in, innermost last.
    pub ranges: Vec<(Name, Ix, Ix)>,
    /// Where it stands.
    pub span: Span,
}

/// What a name stands for.
#[derive(Clone, Debug)]
pub(super) enum Referent {
    /// A size or an index-level parameter.
    Size(Judged),
    /// An index, a `let` of the index level or of a small constant.
    Alias(Judged),
    /// A tensor, under its unique name.
    Tensor(Name, TensorType),
    /// Something whose definition is wrong: no further message.
    Wrong,
}

/// A function that is being checked.
pub(super) struct Checker<'w, 'l> {
    pub world: &'w mut World<'l>,
    /// Where its names are looked up.
    pub file: FileRef,
    /// What is checked.
    source: Option<FunctionRef>,
    /// Its sizes: what a `where` clause can speak of.
    pub sizes: Vec<Name>,
    /// What its element classes stand for.
    pub elems: Vec<(Elem, ElemType)>,
    names: HashMap<Name, Referent>,
    /// What the names meant outside the open scopes.
    hidden: Vec<(Name, Option<Referent>)>,
    used: HashSet<Name>,
    /// What the user calls indices whose unique names differ.
    renamed: HashMap<Name, Name>,
    used_in_order: Vec<Name>,
    facts: Facts,
    /// What holds in the whole function, where more holds.
    outermost: Option<Facts>,
    errors: Diagnostics,
    /// The accesses of a body whose bounds are not known yet; they are not proved.
    pub probe: Option<Vec<Access>>,
    /// Index-level conditions around.
    pub guards: usize,
    /// The ranges of the indices around, innermost last.
    pub ranges: Vec<(Name, Ix, Ix)>,
    /// Indices around whose ranges are being inferred.
    pub open: Vec<Name>,
    /// How deep constants and index functions are inside each other.
    pub inlined: usize,
    /// The shapes that comprehensions and iterations should have, by where they stand.
    pub wanted: HashMap<Span, WantedValues>,
    /// The indices whose upper bound is what a type states, and where.
    pub stated: HashMap<Name, Span>,
}

impl<'w, 'l> Checker<'w, 'l> {
    /// A function.
    pub fn new(world: &'w mut World<'l>, function: FunctionRef) -> Checker<'w, 'l> {
        Checker { source: Some(function), ..Checker::of_file(world, function.file) }
    }

    /// The scope of a file, outside any function.
    pub fn of_file(world: &'w mut World<'l>, file: FileRef) -> Checker<'w, 'l> {
        Checker {
            world,
            file,
            source: None,
            sizes: Vec::new(),
            elems: Vec::new(),
            names: HashMap::new(),
            hidden: Vec::new(),
            used: HashSet::new(),
            renamed: HashMap::new(),
            used_in_order: Vec::new(),
            facts: Facts::new(),
            outermost: None,
            errors: Diagnostics::new(),
            probe: None,
            guards: 0,
            ranges: Vec::new(),
            open: Vec::new(),
            inlined: 0,
            wanted: HashMap::new(),
            stated: HashMap::new(),
        }
    }

    /// The definition, if it is that of a function.
    pub fn current(&self) -> Option<&'l ast::Function> {
        self.source.map(|source| self.world.library.function(source))
    }

    /// Whether a name is that of a constant.
    pub fn is_constant(&self, name: Name) -> bool {
        matches!(self.world.library.lookup(self.file, name), Some(Declared::Const(_)))
    }

    // Errors

    pub fn take_errors(self) -> Diagnostics {
        self.errors
    }

    pub fn fail<T>(&mut self, mut error: Diagnostic) -> Checked<T> {
        if !self.renamed.is_empty() {
            let renamed = &self.renamed;
            let places = error.primary.iter_mut().chain(&mut error.secondary).map(|label| &mut label.text);
            let meant = error
                .remedies
                .iter_mut()
                .filter_map(|it| if let Remedy::Rename { to, .. } = it { Some(to) } else { None });
            let texts = std::iter::once(&mut error.message)
                .chain(&mut error.notes)
                .chain(&mut error.help)
                .chain(places)
                .chain(meant);
            texts.for_each(|text| *text = with_names(text, renamed));
        }
        self.errors.push(error);
        Err(Reported)
    }

    pub fn error<T>(&mut self, code: Code, span: Span, message: impl Into<String>) -> Checked<T> {
        self.fail(Diagnostic::error(code, span, message))
    }

    /// An index expression, or the error that it cannot be made.
    pub fn made<T>(&mut self, span: Span, made: Result<T, IxError>) -> Checked<T> {
        made.or_else(|error| self.fail(too_complex(span, error)))
    }

    /// Evaluates something without keeping its errors and names; the accesses that it makes are listed, not proved.
    pub fn probing<T>(&mut self, what: impl FnOnce(&mut Self) -> Checked<T>) -> (Checked<T>, Vec<Access>, Diagnostics) {
        let errors = std::mem::take(&mut self.errors);
        let outer = self.probe.replace(Vec::new());
        let names = self.used_in_order.len();
        let made = what(self);
        for name in self.used_in_order.drain(names..) {
            self.used.remove(&name);
        }
        let accesses = std::mem::replace(&mut self.probe, outer).unwrap_or_default();
        (made, accesses, std::mem::replace(&mut self.errors, errors))
    }

    /// Keeps errors that a probe found.
    pub fn keep(&mut self, errors: Diagnostics) {
        self.errors.extend(errors.into_sorted());
    }

    // Facts

    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// What holds in the whole function.
    pub fn outermost(&self) -> &Facts {
        self.outermost.as_ref().unwrap_or(&self.facts)
    }

    /// Adds what holds in the whole function.
    pub fn assume(&mut self, fact: Cond) {
        self.facts.assume(fact);
    }

    /// Evaluates something where more holds. Names that it binds end with it.
    pub fn under<T>(&mut self, facts: Vec<Cond>, what: impl FnOnce(&mut Self) -> Checked<T>) -> Checked<T> {
        let mut inner = self.facts().clone();
        facts.into_iter().for_each(|fact| inner.assume(fact));
        let outer = std::mem::replace(&mut self.facts, inner);
        let first = self.outermost.is_none();
        if first {
            self.outermost = Some(outer.clone());
        }
        let made = self.scoped(what);
        if first {
            self.outermost = None;
        }
        self.facts = outer;
        made
    }

    /// A size without the minima and maxima that the facts decide. Those of the whole function come first: a size that
    /// leaves a branch where more is known should be what it is elsewhere.
    pub fn simpler(&self, size: &Ix) -> Result<Ix, IxError> {
        match &self.outermost {
            Some(outermost) => size.simplified(outermost)?.simplified(&self.facts),
            None => size.simplified(&self.facts),
        }
    }

    /// Evaluates something where a condition of the program holds.
    pub fn guarded<T>(&mut self, cond: Cond, what: impl FnOnce(&mut Self) -> Checked<T>) -> Checked<T> {
        self.guards += 1;
        let made = self.under(vec![cond], what);
        self.guards -= 1;
        made
    }

    // Names

    /// Evaluates something; names that it binds end with it.
    pub fn scoped<T>(&mut self, what: impl FnOnce(&mut Self) -> Checked<T>) -> Checked<T> {
        let open = self.hidden.len();
        let made = what(self);
        while self.hidden.len() > open {
            match self.hidden.pop() {
                Some((name, Some(meaning))) => self.names.insert(name, meaning),
                Some((name, None)) => self.names.remove(&name),
                None => None,
            };
        }
        made
    }

    /// Evaluates something in another file's scope, in which nothing of this function is visible.
    pub fn elsewhere<T>(&mut self, file: FileRef, what: impl FnOnce(&mut Self) -> Checked<T>) -> Checked<T> {
        let names = std::mem::take(&mut self.names);
        let hidden = std::mem::take(&mut self.hidden);
        let here = std::mem::replace(&mut self.file, file);
        let made = what(self);
        self.names = names;
        self.hidden = hidden;
        self.file = here;
        made
    }

    pub fn bind(&mut self, name: Name, meaning: Referent) {
        let before = self.names.insert(name, meaning);
        self.hidden.push((name, before));
    }

    pub fn meaning(&self, name: Name) -> Option<&Referent> {
        self.names.get(&name)
    }

    pub fn visible(&self) -> impl Iterator<Item = Name> {
        self.names.keys().copied()
    }

    /// A name that nothing in the function has: the given one, or a variant of it.
    pub fn fresh(&mut self, base: Name) -> Name {
        let name =
            if self.used.contains(&base) { Name::fresh(base.as_str(), |name| self.used.contains(&name)) } else { base };
        self.used.insert(name);
        self.stated.remove(&name);
        self.used_in_order.push(name);
        name
    }

    /// Binds an index under a unique name. Indices may hide each other and tensors, but not a size: shapes in messages
    /// would then lie.
    pub fn bind_index(&mut self, ident: Ident, meaning: Judged) -> Checked<()> {
        if let Some(Referent::Size(_)) = self.meaning(ident.name) {
            let text = format!("`{}` is a size here, and cannot be an index too", ident.name);
            let error = Diagnostic::error(Code::E0211, ident.span, text).help("give the index another name");
            return self.fail(error);
        }
        self.bind(ident.name, Referent::Alias(meaning));
        Ok(())
    }

    /// A new index.
    pub fn new_index(&mut self, base: Name) -> (Name, Ix) {
        let name = self.fresh(base);
        if name != base {
            self.renamed.insert(name, base);
        }
        (name, Ix::var(name))
    }

    /// Ends indices: what stands beside their scope may have the same names again.
    pub fn release(&mut self, indices: &[Name]) {
        for index in indices {
            self.used.remove(index);
        }
    }

    /// A new index that is a component of an index vector.
    pub fn new_component(&mut self, vector: Name, at: usize) -> (Name, Ix) {
        let name = self.fresh(Name::new(&format!("{vector}_{at}")));
        self.renamed.insert(name, Name::new(&format!("{vector}[{at}]")));
        (name, Ix::var(name))
    }

    /// A reference to a tensor.
    pub fn var(name: Name, ty: TensorType, span: Span) -> Draft {
        Draft::fixed(Expr { kind: Kind::Var(name), ty, span })
    }
}

/// A text in which names stand as the user wrote them.
fn with_names(text: &str, renamed: &HashMap<Name, Name>) -> String {
    let mut shown = String::with_capacity(text.len());
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut rest = text;
    while let Some(start) = rest.find(is_word) {
        let (before, from) = rest.split_at(start);
        let (word, behind) = from.split_at(from.find(|c| !is_word(c)).unwrap_or(from.len()));
        shown.push_str(before);
        shown.push_str(renamed.get(&Name::new(word)).map_or(word, |name| name.as_str()));
        rest = behind;
    }
    shown + rest
}
