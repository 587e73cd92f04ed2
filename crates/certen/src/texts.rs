//! The texts of a program: a file, and what it imports.
//!
//! Imports are looked for beside the file that has them. [`Texts::read`] reads them once; what is made from texts never
//! looks at a disk again, so that a kernel does not change with its files, and can be sent to where they are not.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use certen_lang::Library;
use certen_syntax::{Code, Diagnostic, Diagnostics, Sources};

use crate::deep::deeply;
use crate::failure::Failure;

/// Which language a file is in, by its ending.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// `.teil`: TeIL and Core-TeIL.
    Teil,
    /// `.model`: the model language.
    Model,
    /// `.teml`: TeML.
    Teml,
    /// `.ten`: the language that users write by hand.
    Ten,
    /// `.core`: the textual form of Core.
    Core,
}

impl Dialect {
    /// The dialect of a file name.
    pub fn of(name: &str) -> Option<Dialect> {
        match Path::new(name).extension()?.to_str()? {
            "teil" => Some(Dialect::Teil),
            "model" => Some(Dialect::Model),
            "teml" => Some(Dialect::Teml),
            "ten" => Some(Dialect::Ten),
            "core" => Some(Dialect::Core),
            _ => None,
        }
    }

    /// The dialect of a file name, which has to have one.
    pub(crate) fn required(name: &str) -> Result<Dialect, Failure> {
        Dialect::of(name).ok_or_else(|| {
            let error = Diagnostic::error(Code::E0104, None, format!("{name}: the file's ending names no dialect"));
            let endings = "programs of the tensor language end in `.ten`, TeIL programs in `.teil`, model language \
                           programs in `.model`, TeML programs in `.teml`, Core programs in `.core`";
            Failure::new(Arc::default(), vec![error.help(endings)])
        })
    }
}

/// A file that was read, or could not be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct File {
    /// Where it was looked for.
    pub path: String,
    /// What messages call it: two ways to one file give one name. None if it could not be read.
    pub name: Option<String>,
    /// What it says; why it could not be read, if it could not.
    pub text: String,
}

/// A text, and those that it imports.
///
/// ```
/// use certen::Texts;
/// let texts = Texts::read("twice.ten", "fn twice(x: f64[n]) -> f64[n] { x + x }");
/// assert_eq!((texts.name(), texts.imported().len()), ("twice.ten", 0));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Texts {
    name: String,
    text: String,
    imported: Vec<File>,
}

impl Texts {
    /// A text of this name, which tells its dialect, with all that it imports.
    pub fn read(name: impl Into<String>, text: impl Into<String>) -> Texts {
        let (name, text) = (name.into(), text.into());
        let mut imports = Imports::from_disk(&name);
        if Dialect::of(&name) == Some(Dialect::Ten) {
            let mut sources = Sources::new();
            let file = sources.add(&name, text.as_str());
            // What is wrong is said when the program is compiled.
            deeply(|| {
                let mut read = |from: &str, path: &str| imports.read(from, path);
                drop(Library::load(&mut sources, file, &mut read, &mut Diagnostics::new()));
            });
        }
        Texts { name, text, imported: imports.read }
    }

    /// Texts that were read before; nothing is looked for on a disk.
    pub fn known(name: impl Into<String>, text: impl Into<String>, imported: Vec<File>) -> Texts {
        Texts { name: name.into(), text: text.into(), imported }
    }

    /// What messages call the text.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it imports, and what that imports.
    pub fn imported(&self) -> &[File] {
        &self.imported
    }

    /// Finds what was read.
    pub(crate) fn imports(&self) -> Imports<'_> {
        Imports { names: HashMap::new(), known: Some(&self.imported), read: Vec::new() }
    }
}

/// Finds imported files, relative to the importing one, and what messages call each.
pub(crate) struct Imports<'a> {
    /// What files are called, by where they really are.
    names: HashMap<PathBuf, String>,
    /// What was read before; then nothing else is.
    known: Option<&'a [File]>,
    /// What was looked for on disk.
    read: Vec<File>,
}

impl Imports<'_> {
    /// Of a file with this path, which need not exist.
    pub fn from_disk(main: &str) -> Imports<'static> {
        let real = Path::new(main).canonicalize().unwrap_or_else(|_| main.into());
        Imports { names: HashMap::from([(real, main.to_owned())]), known: None, read: Vec::new() }
    }

    /// The name and the text of a file that another one imports.
    pub fn read(&mut self, from: &str, path: &str) -> Result<(String, String), String> {
        let path = tidy(&Path::new(from).with_file_name("").join(path));
        let place = path.display().to_string();
        let Some(known) = self.known else {
            let found = self.look(&path);
            let (name, text) = match found.clone() {
                Ok((name, text)) => (Some(name), text),
                Err(reason) => (None, reason),
            };
            self.read.push(File { path: place, name, text });
            return found;
        };
        match known.iter().find(|file| file.path == place) {
            Some(File { name: Some(name), text, .. }) => Ok((name.clone(), text.clone())),
            Some(File { name: None, text, .. }) => Err(text.clone()),
            None => Err(format!("there is no file {place}")),
        }
    }

    fn look(&mut self, path: &Path) -> Result<(String, String), String> {
        if Dialect::of(&path.display().to_string()) != Some(Dialect::Ten) {
            return Err("its name does not end in `.ten`".into());
        }
        if !path.exists() {
            return Err(format!("there is no file {}", path.display()));
        }
        let text = read_text(path)?;
        let real = path.canonicalize().map_err(|error| error.to_string())?;
        let name = self.names.entry(real).or_insert_with(|| path.display().to_string());
        Ok((name.clone(), text))
    }
}

/// A path without `.` inside.
fn tidy(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}

/// The name and text of a program's file.
///
/// # Errors
/// If it cannot be read, is not text, or its ending names no dialect.
pub fn read_program(path: &Path) -> Result<(String, String), Failure> {
    let name = path.display().to_string();
    // A file that is no program is not read.
    if path.is_file() {
        Dialect::required(&name)?;
    }
    match read_text(path) {
        Ok(text) => Ok((name, text)),
        Err(reason) => {
            let error = Diagnostic::error(Code::E0104, None, format!("{name}: {reason}"));
            Err(Failure::new(Arc::default(), vec![error]))
        }
    }
}

/// The text of a file, or why it has none.
pub(crate) fn read_text(path: &Path) -> Result<String, String> {
    match std::fs::metadata(path) {
        Err(error) => return Err(error.to_string()),
        Ok(meta) if meta.is_dir() => return Err("is a directory".into()),
        // A pipe or a device may have no end.
        Ok(meta) if !meta.is_file() => return Err("is not a regular file".into()),
        Ok(meta) if meta.len() > Sources::MAX_BYTES as u64 => return Err("is larger than 4 GiB".into()),
        Ok(_) => {}
    }
    match std::fs::read(path).map(String::from_utf8) {
        Ok(Ok(text)) => Ok(text),
        Ok(Err(error)) => Err(format!("is not UTF-8 text, at byte {}", error.utf8_error().valid_up_to())),
        Err(error) => Err(error.to_string()),
    }
}
