//! Files that appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::RuntimeError;

/// Writes a file through a temporary one in the same directory, which is synced and then renamed.
///
/// An existing file is replaced and keeps its permissions, a link is followed. After an error the directory is as it was. What exists and is not
/// a regular file is refused: a rename would replace a device.
pub(crate) fn write_atomically<E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<&mut File>) -> Result<(), E>,
) -> Result<(), E> {
    let (target, permissions) = match fs::metadata(path) {
        Ok(found) if !found.is_file() => return Err(io::Error::other("it exists and is not a regular file").into()),
        Ok(found) => (fs::canonicalize(path)?, Some(found.permissions())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => (path.to_path_buf(), None),
        Err(error) => return Err(error.into()),
    };
    let directory = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".certen-").suffix(".tmp");
    #[cfg(unix)]
    {
        // What any other program would ask for; the process's mask takes away what the user does not want.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    // The reason, without the temporary's name, which means nothing to the user.
    let mut temporary = builder.tempfile_in(&directory).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::new(io::ErrorKind::NotFound, "there is no such directory"),
        kind => io::Error::from(kind),
    })?;
    let mut out = BufWriter::with_capacity(1 << 16, temporary.as_file_mut());
    write(&mut out)?;
    out.flush()?;
    drop(out);
    if let Some(permissions) = permissions {
        temporary.as_file().set_permissions(permissions)?;
    }
    temporary.as_file().sync_all()?;
    temporary.persist(&target).map_err(|error| error.error)?;
    sync_directory(&directory);
    Ok(())
}

/// Writes a text file that appears whole or not at all.
///
/// # Errors
/// If the operating system refuses; then the directory is as it was.
pub fn write_text(path: impl AsRef<Path>, text: &str) -> Result<(), RuntimeError> {
    let path = path.as_ref();
    write_atomically(path, |out| out.write_all(text.as_bytes())).map_err(RuntimeError::io("write", path))
}

/// Makes a rename in a directory last over a power failure, where the system can; the file is whole either way.
pub(crate) fn sync_directory(directory: &Path) {
    if let Ok(directory) = File::open(directory) {
        let _ = directory.sync_all();
    }
}
