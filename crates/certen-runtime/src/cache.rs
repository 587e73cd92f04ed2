//! Compiled kernels on disk, found again by their content.
//!
//! An entry is a shared object whose name is a hash of everything that it was made from: the C text, the compiler's
//! real path and version, its flags (with the processor's features) and the number of the calling convention. So an
//! entry is never out of date, only unused, and any number of processes can share a directory:
//!
//! - An entry is built in a directory of its own inside the cache's, synced, and renamed to its name. Two builders of
//!   the same entry both succeed, and the last one stays.
//! - An entry ends with a hash of its name and its own bytes. It is checked before the entry is loaded, because the
//!   system's loader maps a file without looking at its length, and a truncated one would kill the process; and because
//!   one that was copied over another would compute something else. Loaders ignore what follows a shared object. A
//!   damaged entry is removed and built again.
//! - A builder loads what it built before it is renamed, so it never depends on an entry that another process may
//!   remove, and what cannot be loaded never becomes an entry.
//! - Where an entry cannot be written, because the disk is full or the directory read-only, the kernel is built in a
//!   temporary directory and not kept.
//! - A process that inserts removes the entries that were unused for longest until the size is below the limit.
//! - A note can stand beside an entry: what is known of it from a run. It is written like an entry, and goes with it.
//!
//! Whoever can write to the directory can make us run their code. So it is created for its owner alone, and one that
//! belongs to or can be written by others is not used.

use std::env;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use sha2::{Digest, Sha256};

use crate::compiler::Compiler;
use crate::error::RuntimeError;
use crate::files::sync_directory;
use crate::unfinished::PrivateDirectory;

/// Unless `$CERTEN_CACHE_MAX_BYTES` says otherwise: 1 GiB.
const DEFAULT_MAX_BYTES: u64 = 1 << 30;

/// What the names of directories that entries are built in begin with.
const BUILD_PREFIX: &str = ".certen-build-";

/// A directory of an unfinished build is removed when it is this old: its process is gone.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// More than a compiler needs for a kernel, mostly.
const PROBE_BYTES: usize = 1 << 18;

/// Stands before the hash at the end of an entry.
const TRAILER: &[u8; 16] = b"certen-sha-256:\n";

/// A kernel that was found or built.
pub(crate) struct Loaded<T> {
    /// What the caller made of it.
    pub loaded: T,
    /// How long its compilation took; none if it was there.
    pub time: Option<Duration>,
    /// Its entry; none if it is not kept.
    pub entry: Option<PathBuf>,
}

/// A directory of compiled kernels.
#[derive(Debug)]
pub struct Cache {
    directory: PathBuf,
    max_bytes: u64,
    /// Set if the directory is a temporary one, which goes away with the cache.
    _temporary: Option<PrivateDirectory>,
}

impl Cache {
    /// The cache in a directory, which is created if it does not exist.
    ///
    /// # Errors
    /// If it cannot be created, or belongs to or can be written by someone else.
    pub fn at(directory: impl Into<PathBuf>) -> Result<Cache, RuntimeError> {
        let directory = directory.into();
        Cache::open(&directory).map_err(|refusal| {
            let error = match refusal {
                Refusal::Io(error) => error,
                Refusal::Untrusted(why) => io::Error::new(io::ErrorKind::PermissionDenied, why),
            };
            RuntimeError::Io { action: "use as a cache", path: directory, error }
        })
    }

    fn open(directory: &Path) -> Result<Cache, Refusal> {
        create_private(directory)?;
        // The compiler gets paths inside it as arguments, where one that begins with `-` would be misunderstood.
        let directory = fs::canonicalize(directory)?;
        Ok(Cache { directory, max_bytes: DEFAULT_MAX_BYTES, _temporary: None })
    }

    /// The user's cache: `$CERTEN_CACHE`, else `$XDG_CACHE_HOME/certen`, else `$HOME/.cache/certen`. Where these are
    /// not set, cannot be created, or are not the user's alone, it is a temporary directory that lives as long as the
    /// value. `$CERTEN_CACHE_MAX_BYTES` limits its size.
    ///
    /// # Errors
    /// If `$CERTEN_CACHE` is set and cannot be created, if no temporary directory can be, or if the limit is no number.
    pub fn default_location() -> Result<Cache, RuntimeError> {
        let cache = match from_environment(|name| env::var_os(name).map(PathBuf::from)) {
            Some(CacheDirectory { directory, chosen }) => match Cache::open(&directory) {
                Ok(cache) => cache,
                Err(Refusal::Io(error)) if chosen => {
                    return Err(RuntimeError::Io { action: "use as a cache", path: directory, error });
                }
                Err(_) => Cache::temporary()?,
            },
            None => Cache::temporary()?,
        };
        match env::var("CERTEN_CACHE_MAX_BYTES") {
            Err(_) => Ok(cache),
            Ok(text) => match text.trim().parse() {
                Ok(bytes) => Ok(cache.with_max_bytes(bytes)),
                Err(_) => Err(RuntimeError::Setting {
                    name: "CERTEN_CACHE_MAX_BYTES",
                    wanted: "a number of bytes",
                    found: text,
                }),
            },
        }
    }

    /// A cache that lives as long as the value.
    ///
    /// # Errors
    /// If no temporary directory can be created.
    pub fn temporary() -> Result<Cache, RuntimeError> {
        let parent = env::temp_dir();
        let temporary =
            PrivateDirectory::new(&parent, "certen-").map_err(RuntimeError::io("create a directory in", &parent))?;
        let directory = temporary.path().to_path_buf();
        Ok(Cache { directory, max_bytes: DEFAULT_MAX_BYTES, _temporary: Some(temporary) })
    }

    /// The same cache with another limit on the size of its entries together. 0 keeps nothing.
    pub fn with_max_bytes(self, max_bytes: u64) -> Cache {
        Cache { max_bytes, ..self }
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// How many entries it has, and their bytes.
    pub fn usage(&self) -> (usize, u64) {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let bytes = entries.filter(|entry| is_entry_name(&entry.file_name().to_string_lossy()));
        let bytes = bytes.filter_map(|entry| Some(entry.metadata().ok()?.len()));
        bytes.fold((0, 0), |(count, sum), bytes| (count + 1, sum + bytes))
    }

    /// Where the answer of a compiler, with its flags, to a question can be kept: beside the entries.
    pub fn answer(&self, compiler: &Compiler, question: &str) -> PathBuf {
        self.directory.join(format!("{}.answer", key(compiler, 0, question)))
    }

    fn entry(&self, compiler: &Compiler, abi: i32, c_text: &str) -> PathBuf {
        self.directory.join(format!("{}.so", key(compiler, abi, c_text)))
    }

    /// Whether there is an entry, whole or not.
    pub(crate) fn has(&self, compiler: &Compiler, abi: i32, c_text: &str) -> bool {
        self.entry(compiler, abi, c_text).exists()
    }

    /// A loaded entry.
    ///
    /// `load` is called with the path of a whole shared object, as the compiler wrote it. An entry that is damaged or
    /// that it refuses is built again, once.
    pub(crate) fn load_or_build<T>(
        &self,
        compiler: &Compiler,
        abi: i32,
        c_text: &str,
        load: impl Fn(&Path) -> Result<T, RuntimeError>,
    ) -> Result<Loaded<T>, RuntimeError> {
        let entry = self.entry(compiler, abi, c_text);
        if is_sealed(&entry) {
            if let Ok(loaded) = load(&entry) {
                touch(&entry);
                return Ok(Loaded { loaded, time: None, entry: Some(entry) });
            }
            // It cannot be of use to anyone. If another process was faster to remove or replace it, so be it.
            let _ = fs::remove_file(&entry);
        }

        match self.build(compiler, c_text, &load, Some(entry)) {
            // A full disk, or a directory that can only be read: the kernel runs all the same, and is not kept.
            Err(error @ RuntimeError::Io { .. }) if self._temporary.is_none() => {
                let elsewhere = Cache::temporary().and_then(|cache| cache.build(compiler, c_text, &load, None));
                elsewhere.map_err(|_| error)
            }
            other => other,
        }
    }

    /// Builds and loads, in a directory of its own; then it becomes an entry, if it is to be one.
    fn build<T>(
        &self,
        compiler: &Compiler,
        c_text: &str,
        load: impl Fn(&Path) -> Result<T, RuntimeError>,
        entry: Option<PathBuf>,
    ) -> Result<Loaded<T>, RuntimeError> {
        let failed = |error| RuntimeError::io("write to", &self.directory)(error);
        let build = PrivateDirectory::new(&self.directory, BUILD_PREFIX).map_err(failed)?;
        let start = Instant::now();
        let object = compiler.compile(c_text, build.path()).map_err(|error| match (&error, probe(build.path())) {
            // What the compiler says of a full disk is hard to understand.
            (RuntimeError::CompilerFailed { .. } | RuntimeError::Io { .. }, Err(reason)) => failed(reason),
            _ => error,
        })?;
        let time = start.elapsed();
        if let Some(entry) = &entry {
            seal(&object, entry).map_err(failed)?;
        }
        let loaded = load(&object)?;
        if let Some(entry) = &entry {
            // What is known of an entry that was here before is not known of this one.
            let _ = fs::remove_file(note_path(entry));
            fs::rename(&object, entry).map_err(failed)?;
            sync_directory(&self.directory);
            self.evict();
        }
        Ok(Loaded { loaded, time: Some(time), entry })
    }

    /// Removes the entries that were unused for longest until the size is within the limit, and what crashed processes
    /// left. Best effort: other processes may be doing the same, and a cache that is too large still works.
    fn evict(&self) {
        let Ok(listing) = fs::read_dir(&self.directory) else { return };
        let mut entries = Vec::new();
        for found in listing.flatten() {
            let (Ok(about), name) = (found.metadata(), found.file_name()) else { continue };
            let name = name.to_string_lossy();
            let modified = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            if about.is_file() && is_entry_name(&name) {
                entries.push((modified, found.path(), about.len()));
            } else if about.is_dir() && name.starts_with(BUILD_PREFIX) {
                let age = SystemTime::now().duration_since(modified).unwrap_or_default();
                if age > ABANDONED {
                    let _ = fs::remove_dir_all(found.path());
                }
            }
        }
        entries.sort();
        let mut total: u64 = entries.iter().map(|(_, _, bytes)| bytes).sum();
        for (_, path, bytes) in entries {
            if total <= self.max_bytes {
                break;
            }
            if fs::remove_file(&path).is_ok() {
                let _ = fs::remove_file(note_path(&path));
                total -= bytes;
            }
        }
    }
}

/// Where the note of an entry is.
fn note_path(entry: &Path) -> PathBuf {
    entry.with_extension("note")
}

/// The note beside an entry, if there is one.
pub(crate) fn read_note(entry: &Path) -> Option<String> {
    fs::read_to_string(note_path(entry)).ok()
}

/// Writes a note beside an entry: whole, or not at all.
pub(crate) fn write_note(entry: &Path, text: &str) -> io::Result<()> {
    let directory = entry.parent().ok_or(io::ErrorKind::NotFound)?;
    let build = PrivateDirectory::new(directory, BUILD_PREFIX)?;
    let path = build.path().join("note");
    let mut file = File::create(&path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&path, note_path(entry))?;
    sync_directory(directory);
    Ok(())
}

/// Where the environment wants the cache.
#[derive(PartialEq, Debug)]
struct CacheDirectory {
    directory: PathBuf,
    /// Whether it was asked for by name, so that a failure is to be told.
    chosen: bool,
}

fn from_environment(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<CacheDirectory> {
    let set = |name| variable(name).filter(|path| !path.as_os_str().is_empty());
    if let Some(directory) = set("CERTEN_CACHE") {
        return Some(CacheDirectory { directory, chosen: true });
    }
    // Relative paths in these variables are invalid and to be ignored (XDG Base Directory Specification).
    let absolute = |name| set(name).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")))?;
    Some(CacheDirectory { directory: base.join("certen"), chosen: false })
}

/// The hash of all that decides what a compiled kernel is. Each part is preceded by its length, so that no two lists of
/// parts are the same text.
fn key(compiler: &Compiler, abi: i32, c_text: &str) -> String {
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    part(&abi.to_le_bytes());
    part(compiler.real_path().as_os_str().as_encoded_bytes());
    part(compiler.version().as_bytes());
    for argument in compiler.arguments() {
        part(argument.as_encoded_bytes());
    }
    for flag in compiler.flags() {
        part(flag.as_bytes());
    }
    part(c_text.as_bytes());
    let mut text = String::with_capacity(64);
    for byte in hash.finalize() {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Whether a file of the size of a compiled kernel can be written.
fn probe(directory: &Path) -> io::Result<()> {
    let path = directory.join("probe");
    let written = File::create(&path).and_then(|mut file| {
        file.write_all(&[0; PROBE_BYTES])?;
        file.sync_all()
    });
    let _ = fs::remove_file(path);
    written
}

fn is_entry_name(name: &str) -> bool {
    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    name.strip_suffix(".so").is_some_and(|key| key.len() == 64 && key.bytes().all(hex))
}

/// What an entry of this name with these bytes ends with.
fn hash(entry: &Path, bytes: &[u8]) -> [u8; 32] {
    let name = entry.file_name().unwrap_or_default().as_encoded_bytes();
    let mut hash = Sha256::new();
    hash.update((name.len() as u64).to_le_bytes());
    hash.update(name);
    hash.update(bytes);
    hash.finalize().into()
}

/// Appends the hash of a file that is to become an entry to it, and makes sure that it is on disk.
fn seal(path: &Path, entry: &Path) -> io::Result<()> {
    let hash = hash(entry, &fs::read(path)?);
    let mut file = OpenOptions::new().append(true).open(path)?;
    file.write_all(TRAILER)?;
    file.write_all(&hash)?;
    file.sync_all()
}

/// Whether an entry is there and ends with the hash of its name and what comes before.
fn is_sealed(entry: &Path) -> bool {
    let Ok(bytes) = fs::read(entry) else { return false };
    let Some((body, end)) = bytes.split_last_chunk::<32>() else { return false };
    body.strip_suffix(TRAILER).is_some_and(|body| hash(entry, body) == *end)
}

/// Marks an entry as used now. If that fails it is only thrown away earlier.
fn touch(path: &Path) {
    if let Ok(file) = File::open(path) {
        let _ = file.set_modified(SystemTime::now());
    }
}

/// Why a directory is not used.
enum Refusal {
    Io(io::Error),
    /// Others could put their code into it.
    Untrusted(&'static str),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        Refusal::Io(error)
    }
}

/// Creates a directory for its owner alone, or checks that an existing one is ours and that only we can write to it.
#[cfg(unix)]
fn create_private(directory: &Path) -> Result<(), Refusal> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let found = fs::metadata(directory)?;
    if !found.is_dir() {
        return Err(io::Error::from(io::ErrorKind::NotADirectory).into());
    }
    if found.uid() != effective_user() {
        return Err(Refusal::Untrusted("it belongs to another user"));
    }
    if found.mode() & 0o022 != 0 {
        return Err(Refusal::Untrusted("other users can write to it"));
    }
    Ok(())
}

#[cfg(not(unix))]
fn create_private(directory: &Path) -> Result<(), Refusal> {
    Ok(fs::create_dir_all(directory)?)
}

/// The user that the process acts for.
#[cfg(unix)]
fn effective_user() -> u32 {
    // SAFETY: this is the C library's declaration; `uid_t` is 32 bits wide on every system that Rust supports.
    unsafe extern "C" {
        safe fn geteuid() -> u32;
    }
    geteuid()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_chooses_the_place() {
        let place = |variables: &[(&str, &str)]| {
            let of = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| PathBuf::from(value));
            from_environment(of).map(|place| (place.directory.display().to_string(), place.chosen))
        };
        let at = |path: &str, chosen| Some((path.to_string(), chosen));
        let (own, xdg, home) = (("CERTEN_CACHE", "c"), ("XDG_CACHE_HOME", "/x"), ("HOME", "/h"));
        assert_eq!(place(&[own, xdg, home]), at("c", true));
        assert_eq!(place(&[("CERTEN_CACHE", ""), xdg, home]), at("/x/certen", false));
        assert_eq!(place(&[("XDG_CACHE_HOME", "relative"), home]), at("/h/.cache/certen", false));
        assert_eq!(place(&[("HOME", "")]), None);
        assert_eq!(place(&[]), None);
    }

    #[test]
    fn seals_break() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("entry");
        fs::write(&path, b"some bytes")?;
        assert!(!is_sealed(&path));
        seal(&path, &path)?;
        assert!(is_sealed(&path));
        let whole = fs::read(&path)?;
        // Under another name it is another kernel's.
        let other = directory.path().join("other");
        fs::copy(&path, &other)?;
        assert!(!is_sealed(&other));
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length])?;
            assert!(!is_sealed(&path), "{length}");
            let mut changed = whole.clone();
            changed[length] ^= 1;
            fs::write(&path, changed)?;
            assert!(!is_sealed(&path), "{length}");
        }
        Ok(())
    }

    #[test]
    fn names_of_entries() {
        let key = "0123456789abcdef".repeat(4);
        assert!(is_entry_name(&format!("{key}.so")));
        for name in [format!("{key}.o"), format!("0{key}.so"), format!("{}.so", key.to_uppercase()), ".so".into()] {
            assert!(!is_entry_name(&name), "{name}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn directories_are_private() -> Result<(), Box<dyn std::error::Error>> {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let parent = tempfile::tempdir()?;
        let directory = parent.path().join("a/b");
        let cache = Cache::at(&directory)?;
        assert_eq!(fs::metadata(cache.directory())?.mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(Cache::temporary()?.directory())?.mode() & 0o777, 0o700);
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777))?;
        let error = Cache::at(&directory).map(drop).map_err(|error| error.to_string());
        assert_eq!(error, Err(format!("cannot use as a cache {}: other users can write to it", directory.display())));
        Ok(())
    }
}
