//! What a program is made of: its file, the files that it imports, and the prelude.
//!
//! Every file is read and parsed once, however many others import it; files may import each other. A name stands for
//! what the file itself declares, else for what a file that it imports declares, else for what the prelude declares;
//! what the imports of an import declare is not seen. Two meanings of one name, other than hiding the prelude's, are an
//! error at both places. Calls have no cycles ([`Library::check_cycles`]), so that everything that follows can
//! instantiate functions one inside the other, and ends.

mod cycles;
mod derivations;
mod schedules;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::collections::hash_map;

use certen_core::script::{Derivation, Tactic};
use certen_syntax::schedule::Schedule;
use certen_syntax::{Code, Diagnostic, Diagnostics, FileId, Name, Remedy, Sources, Span};

use crate::ast;
use crate::parse::parse;

/// The text of the prelude.
const PRELUDE_TEXT: &str = include_str!("../prelude/prelude.ten");

/// How many files a program may have, the prelude not counted.
const MAX_FILES: usize = 256;

/// How many imports may lead from the main file to another.
const MAX_DEPTH: usize = 64;

/// A file of a library.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct FileRef(u32);

impl FileRef {
    /// The prelude.
    pub const PRELUDE: FileRef = FileRef(0);
    /// The file that the user named.
    pub const MAIN: FileRef = FileRef(1);
}

/// A function of a library.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct FunctionRef {
    /// The file that declares it: its names are looked up there.
    pub file: FileRef,
    index: u32,
}

/// A constant of a library.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ConstRef {
    /// The file that declares it: its names are looked up there.
    pub file: FileRef,
    index: u32,
}

/// A function of a library that is derived from another one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct DerivedRef {
    /// The file that declares it: its names are looked up there.
    pub file: FileRef,
    index: u32,
}

/// What can be run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// A function.
    Function(FunctionRef),
    /// A function that is derived from another one.
    Derived(DerivedRef),
}

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Declared {
    /// A function.
    Function(FunctionRef),
    /// A constant.
    Const(ConstRef),
    /// A function that is derived from another one.
    Derived(DerivedRef),
}

impl Declared {
    /// The file that declares it.
    pub fn file(self) -> FileRef {
        match self {
            Declared::Function(function) => function.file,
            Declared::Const(constant) => constant.file,
            Declared::Derived(derived) => derived.file,
        }
    }
}

/// Reads a file: from the name of the importing file and the path that it writes, the name of the imported file and its
/// text. A name belongs to one file only; that of the main file is the one it has in [`Sources`].
pub type ReadFile<'a> = dyn FnMut(&str, &str) -> Result<(String, String), String> + 'a;

/// A program's files, parsed.
#[derive(Debug)]
pub struct Library {
    /// The prelude, the main file, then what is imported.
    files: Vec<ParsedFile>,
    /// The pieces of scripts that every file knows.
    tactics: Vec<Tactic>,
}

#[derive(Debug, Default)]
struct ParsedFile {
    functions: Vec<ast::Function>,
    constants: Vec<ast::Const>,
    schedules: Vec<Schedule>,
    derivations: Vec<Derivation>,
    tactics: Vec<Tactic>,
    imports: Vec<(ast::Import, FileRef)>,
    /// What the file itself declares.
    names: HashMap<Name, Declared>,
}

impl Library {
    /// Parses a file of `sources`, what it imports, and the prelude. What is wrong with the texts, their imports and
    /// their names is reported; the library holds what could be read.
    pub fn load(
        sources: &mut Sources,
        file: FileId,
        read: &mut ReadFile<'_>,
        diagnostics: &mut Diagnostics,
    ) -> Library {
        let prelude = sources.add("prelude.ten", PRELUDE_TEXT);
        let mut library = Library { files: Vec::new(), tactics: Vec::new() };
        let mut known: HashMap<String, FileRef> = HashMap::new();
        // Breadth first: the shortest way to a file counts.
        let mut todo = vec![(prelude, 0), (file, 0)];
        known.extend(sources.get(file).map(|source| (source.name().to_owned(), FileRef::MAIN)));
        let mut at = 0;
        while let Some(&(file, depth)) = todo.get(at) {
            let this = FileRef(at as u32);
            at += 1;
            let Some(source) = sources.get(file) else {
                library.files.push(ParsedFile::default());
                continue;
            };
            let name = source.name().to_owned();
            let items = parse(source, file, diagnostics).items;
            let (parsed, imports) = ParsedFile::new(this, items, diagnostics);
            library.files.push(parsed);
            for import in imports {
                let found = match read(&name, &import.path) {
                    Ok((name, text)) => match known.entry(name) {
                        hash_map::Entry::Occupied(known) => Ok(*known.get()),
                        hash_map::Entry::Vacant(_) if depth == MAX_DEPTH => {
                            Err(format!("more than {MAX_DEPTH} imports lead from the program's file to it"))
                        }
                        hash_map::Entry::Vacant(_) if todo.len() > MAX_FILES => {
                            Err(format!("a program has at most {MAX_FILES} files"))
                        }
                        hash_map::Entry::Vacant(new) => {
                            let next = FileRef(todo.len() as u32);
                            todo.push((sources.add(new.key(), text), depth + 1));
                            Ok(*new.insert(next))
                        }
                    },
                    Err(reason) => Err(reason),
                };
                match found {
                    Ok(found) => library.add_import(this, import, found, diagnostics),
                    Err(reason) => {
                        let text = format!("cannot import \"{}\": {reason}", import.path);
                        diagnostics.push(Diagnostic::error(Code::E0106, import.span, text));
                    }
                }
            }
        }
        for file in 0..library.files.len() {
            library.check_imports(file, diagnostics);
            library.check_derivations(file, diagnostics);
            library.check_schedules(file, diagnostics);
        }
        library.check_circles(diagnostics);
        library
    }

    fn add_import(&mut self, this: FileRef, import: ast::Import, found: FileRef, diagnostics: &mut Diagnostics) {
        let Some(file) = self.files.get_mut(this.0 as usize) else { return };
        if found == this {
            diagnostics.push(Diagnostic::error(Code::E0202, import.span, "a file does not import itself"));
        } else if let Some((first, _)) = file.imports.iter().find(|(_, known)| *known == found) {
            let text = format!("\"{}\" is imported twice", import.path);
            diagnostics.push(Diagnostic::error(Code::E0202, import.span, text).also(first.span, "first imported here"));
        } else {
            file.imports.push((import, found));
        }
    }

    /// What a file imports has other names than what it declares and than what else it imports.
    fn check_imports(&self, at: usize, diagnostics: &mut Diagnostics) {
        let file = &self.files[at];
        let mut brought: HashMap<Name, (&ast::Import, Declared)> = HashMap::new();
        for (import, imported) in &file.imports {
            let Some(imported) = self.files.get(imported.0 as usize) else { continue };
            let mut names: Vec<(Name, Declared)> = imported.names.iter().map(|(name, found)| (*name, *found)).collect();
            names.sort_by_key(|(_, found)| self.place(*found).start);
            for (name, found) in names {
                if let Some(own) = file.names.get(&name) {
                    let text =
                        format!("`{name}` is declared here, and in \"{}\", which this file imports", import.path);
                    let error = Diagnostic::error(Code::E0202, self.place(*own), text).label("declared here");
                    let error = error.also(import.span, "imported here").also(self.place(found), "declared there");
                    diagnostics.push(error);
                    continue;
                }
                match brought.entry(name) {
                    hash_map::Entry::Vacant(new) => {
                        new.insert((import, found));
                    }
                    hash_map::Entry::Occupied(known) => {
                        let (first, other) = known.get();
                        let text = format!("`{name}` is declared in \"{}\" and in \"{}\"", first.path, import.path);
                        let error = Diagnostic::error(Code::E0202, import.span, text).label("imported here");
                        let error = error.also(first.span, "and here");
                        let error = error.also(self.place(*other), "declared there");
                        diagnostics.push(error.also(self.place(found), "and there"));
                    }
                }
            }
        }
    }

    fn place(&self, found: Declared) -> Span {
        match found {
            Declared::Function(function) => self.function(function).name.span,
            Declared::Const(constant) => self.constant(constant).name.span,
            Declared::Derived(derived) => self.derivation(derived).name_span,
        }
    }

    /// One of the functions.
    pub fn function(&self, function: FunctionRef) -> &ast::Function {
        // A reference comes from a library, and libraries only grow while they are made.
        &self.files[function.file.0 as usize].functions[function.index as usize]
    }

    /// One of the constants.
    pub fn constant(&self, constant: ConstRef) -> &ast::Const {
        &self.files[constant.file.0 as usize].constants[constant.index as usize]
    }

    /// Adds a function to the main file that no name stands for: it sees what the file sees, and nothing calls it.
    pub fn add(&mut self, function: ast::Function) -> FunctionRef {
        let file = FileRef::MAIN;
        let functions = &mut self.files[file.0 as usize].functions;
        functions.push(function);
        FunctionRef { file, index: functions.len() as u32 - 1 }
    }

    /// What a name stands for in a file.
    pub fn lookup(&self, file: FileRef, name: Name) -> Option<Declared> {
        self.visible(file).find_map(|file| file.names.get(&name).copied())
    }

    /// The names that stand for something in a file, in no order; those that the prelude's are hidden by come twice.
    pub fn names(&self, file: FileRef) -> impl Iterator<Item = Name> {
        self.visible(file).flat_map(|file| file.names.keys().copied())
    }

    /// The files whose names a file sees: itself, its imports, the prelude.
    fn visible(&self, file: FileRef) -> impl Iterator<Item = &ParsedFile> {
        let own = self.files.get(file.0 as usize);
        let imports = own.into_iter().flat_map(|own| &own.imports).map(|(_, import)| *import);
        let prelude = (file != FileRef::PRELUDE).then_some(FileRef::PRELUDE);
        own.into_iter().chain(imports.chain(prelude).filter_map(|file| self.files.get(file.0 as usize)))
    }

    /// The functions of the main file, in order.
    pub fn own_functions(&self) -> impl Iterator<Item = FunctionRef> {
        self.functions_of(FileRef::MAIN)
    }

    /// The functions of a file, in order.
    pub fn functions_of(&self, file: FileRef) -> impl Iterator<Item = FunctionRef> {
        let count = self.files.get(file.0 as usize).map_or(0, |parsed| parsed.functions.len());
        (0..count as u32).map(move |index| FunctionRef { file, index })
    }

    /// The constants of a file, in order.
    pub fn constants_of(&self, file: FileRef) -> impl Iterator<Item = ConstRef> {
        let count = self.files.get(file.0 as usize).map_or(0, |parsed| parsed.constants.len());
        (0..count as u32).map(move |index| ConstRef { file, index })
    }

    /// All files, the prelude first.
    pub fn files(&self) -> impl Iterator<Item = FileRef> {
        (0..self.files.len() as u32).map(FileRef)
    }

    /// What of the main file can be run: its functions, then what is derived.
    pub fn own_entries(&self) -> impl Iterator<Item = Entry> {
        self.own_functions().map(Entry::Function).chain(self.own_derivations().map(Entry::Derived))
    }

    /// What an entry is called.
    pub fn entry_name(&self, entry: Entry) -> Name {
        match entry {
            Entry::Function(function) => self.function(function).name.name,
            Entry::Derived(derived) => self.derivation(derived).name,
        }
    }

    /// The function that says what an entry means; none if what is derived begins with none, which was reported.
    pub fn meaning(&self, entry: Entry) -> Option<FunctionRef> {
        match entry {
            Entry::Function(function) => Some(function),
            Entry::Derived(derived) => self.origin(derived).map(|(function, _)| function),
        }
    }

    /// The function that is run: the one that is asked for, else `main`, else the only one of the main file.
    ///
    /// # Errors
    /// If there is no such function, or several and nothing says which.
    pub fn entry(&self, wanted: Option<Name>) -> Result<Entry, Diagnostic> {
        let named = |name: Name| self.own_entries().find(|entry| self.entry_name(*entry) == name);
        let mut own = self.own_entries();
        match (wanted, own.next(), own.next()) {
            (Some(wanted), first, _) => named(wanted).ok_or_else(|| {
                let error = Diagnostic::error(Code::E0402, None, format!("the program has no function `{wanted}`"));
                if first.is_some() { error.note(format!("it has {}", self.listed())) } else { error }
            }),
            (None, None, _) => Err(Diagnostic::error(Code::E0410, None, "the program has no function to run")
                .help("functions are declared with `fn NAME(x: f64[n]) -> f64[n] { … }`")),
            (None, Some(only), None) => Ok(only),
            (None, Some(_), Some(_)) => named(Name::new("main")).ok_or_else(|| {
                Diagnostic::error(Code::E0410, None, "the program has several functions, and none is called `main`")
                    .note(format!("it has {}", self.listed()))
                    .remedy(Remedy::Function)
            }),
        }
    }

    /// The functions of the main file, for messages.
    fn listed(&self) -> String {
        const SHOWN: usize = 20;
        let shown = self.own_entries().take(SHOWN).map(|entry| format!("`{}`", self.entry_name(entry)));
        let shown = shown.collect::<Vec<_>>().join(", ");
        match self.own_entries().count() {
            0..=SHOWN => shown,
            many => format!("{shown} and {} more", many - SHOWN),
        }
    }
}

impl ParsedFile {
    /// A file's declarations by kind, and its imports.
    fn new(file: FileRef, items: Vec<ast::Item>, diagnostics: &mut Diagnostics) -> (ParsedFile, Vec<ast::Import>) {
        let mut parsed = ParsedFile::default();
        let mut imports = Vec::new();
        let mut places: HashMap<Name, Span> = HashMap::new();
        for item in items {
            let (name, span, found) = match item {
                ast::Item::Import(import) => {
                    imports.push(import);
                    continue;
                }
                ast::Item::Schedule(schedule) => {
                    parsed.schedules.push(schedule);
                    continue;
                }
                ast::Item::Tactic(tactic) => {
                    parsed.tactics.push(tactic);
                    continue;
                }
                ast::Item::Derive(derivation) => {
                    let found = Declared::Derived(DerivedRef { file, index: parsed.derivations.len() as u32 });
                    let (name, span) = (derivation.name, derivation.name_span);
                    parsed.derivations.push(derivation);
                    (name, span, found)
                }
                ast::Item::Const(constant) => {
                    let found = Declared::Const(ConstRef { file, index: parsed.constants.len() as u32 });
                    let ast::Ident { name, span } = constant.name;
                    parsed.constants.push(constant);
                    (name, span, found)
                }
                ast::Item::Function(function) => {
                    let found = Declared::Function(FunctionRef { file, index: parsed.functions.len() as u32 });
                    let ast::Ident { name, span } = function.name;
                    parsed.functions.push(function);
                    (name, span, found)
                }
            };
            match places.entry(name) {
                hash_map::Entry::Vacant(new) => {
                    new.insert(span);
                    parsed.names.insert(name, found);
                }
                hash_map::Entry::Occupied(first) => {
                    let text = format!("`{name}` is declared twice");
                    let error = Diagnostic::error(Code::E0202, span, text).label("declared again here");
                    diagnostics.push(error.also(*first.get(), "first declared here"));
                }
            }
        }
        (parsed, imports)
    }
}
