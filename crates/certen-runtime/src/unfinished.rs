//! What must not outlive the process: compilers that it runs, and the directories that they work in.
//!
//! A process that a signal ends runs no destructors. So a command that wants to leave nothing behind calls
//! [`clean_up_on_signals`] once. From then on what is unfinished is listed, and a signal that asks the process to end
//! first stops the compilers, each with the programs that it runs in turn, and removes the directories.
//!
//! A library does not take over its host's signals. Without that call nothing is listed, and no lock is taken that a
//! fork could find taken.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

/// What is unfinished now, in a process that cleans up on signals.
static LISTED: OnceLock<Mutex<Unfinished>> = OnceLock::new();

#[derive(Default)]
struct Unfinished {
    /// The groups of processes of compilers that were not waited for: no other group can have their numbers.
    groups: Vec<u32>,
    directories: Vec<PathBuf>,
}

fn listed() -> Option<MutexGuard<'static, Unfinished>> {
    LISTED.get().map(|listed| listed.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A program that was started, in a group of its own, so that it can be stopped with the programs that it runs.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn start(command: &mut Command) -> io::Result<Running> {
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(command, 0);
        // Held until the new process is listed.
        let listed = listed();
        let child = command.spawn()?;
        if let Some(mut listed) = listed {
            listed.groups.push(child.id());
        }
        Ok(Running(child))
    }

    /// What it says, to be read by one reader.
    pub(crate) fn stdout(&mut self) -> Option<ChildStdout> {
        self.0.stdout.take()
    }

    /// How it ended, if it has.
    pub(crate) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        // Held while its number may become another's.
        let listed = listed();
        let status = self.0.try_wait()?;
        if let (Some(mut listed), Some(_)) = (listed, status) {
            listed.groups.retain(|group| *group != self.0.id());
        }
        Ok(status)
    }

    /// Stops it, if it has not ended, and all that it runs.
    pub(crate) fn stop(&mut self) {
        let listed = listed();
        stop_group(self.0.id());
        // It may have ended in the meantime.
        let _ = self.0.kill();
        let _ = self.0.wait();
        if let Some(mut listed) = listed {
            listed.groups.retain(|group| *group != self.0.id());
        }
    }
}

/// A new directory that only its owner can use, and that goes away with the value.
#[derive(Debug)]
pub(crate) struct PrivateDirectory {
    /// None while it is being dropped.
    directory: Option<TempDir>,
    path: PathBuf,
}

impl PrivateDirectory {
    pub(crate) fn new(parent: &Path, prefix: &str) -> io::Result<PrivateDirectory> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(prefix);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o700));
        }
        let listed = listed();
        let directory = builder.tempdir_in(parent)?;
        let path = directory.path().to_path_buf();
        if let Some(mut listed) = listed {
            listed.directories.push(path.clone());
        }
        Ok(PrivateDirectory { directory: Some(directory), path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        drop(self.directory.take());
        if let Some(mut listed) = listed() {
            listed.directories.retain(|path| *path != self.path);
        }
    }
}

/// Stops and removes what is unfinished, for good: a thread that wants to begin or end something waits for ever.
#[cfg(unix)]
fn give_up() {
    let Some(listed) = listed() else { return };
    listed.groups.iter().for_each(|group| stop_group(*group));
    for directory in &listed.directories {
        // A program that is being stopped may still write into it.
        for _ in 0..100 {
            match fs::remove_dir_all(directory) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => thread::sleep(Duration::from_millis(10)),
                _ => break,
            }
        }
    }
    std::mem::forget(listed);
}

#[cfg(unix)]
fn stop_group(group: u32) {
    if let Ok(group) = i32::try_from(group) {
        signals::send(-group, signals::SIGKILL);
    }
}

#[cfg(not(unix))]
fn stop_group(_: u32) {}

/// From now on, a signal that asks this process to end (SIGTERM, SIGINT, SIGHUP) stops the compilers that it runs and
/// removes their directories before it ends it. A signal that the process ignores it goes on ignoring. For commands
/// only: it takes over the signals of the whole process.
///
/// # Errors
/// If the system has no pipe or thread for it.
#[cfg(unix)]
pub fn clean_up_on_signals() -> io::Result<()> {
    if LISTED.set(Mutex::default()).is_err() {
        return Ok(());
    }
    let received = signals::receive(&[signals::SIGHUP, signals::SIGINT, signals::SIGTERM])?;
    thread::Builder::new().name("certen signals".into()).spawn(move || {
        if let Some(signal) = received.next() {
            give_up();
            signals::end_by(signal);
        }
    })?;
    Ok(())
}

/// There are no signals here.
///
/// # Errors
/// None.
#[cfg(not(unix))]
pub fn clean_up_on_signals() -> io::Result<()> {
    Ok(())
}

/// The system's signals: a handler does nothing but write the signal's number into a pipe, where a thread waits that may
/// do anything.
#[cfg(unix)]
mod signals {
    use std::io::{self, PipeReader, Read};
    use std::os::fd::IntoRawFd;
    use std::sync::atomic::{AtomicI32, Ordering};

    pub(super) const SIGHUP: i32 = 1;
    pub(super) const SIGINT: i32 = 2;
    pub(super) const SIGKILL: i32 = 9;
    pub(super) const SIGTERM: i32 = 15;
    /// What a process can do with a signal beside calling a handler.
    const DEFAULT: usize = 0;
    const IGNORE: usize = 1;

    // SAFETY: these are the C library's declarations; a handler is an address, or one of the two numbers above.
    unsafe extern "C" {
        safe fn kill(process: i32, signal: i32) -> i32;
        safe fn getpid() -> i32;
        fn signal(signal: i32, handler: usize) -> usize;
        fn write(file: i32, bytes: *const u8, count: usize) -> isize;
    }

    /// Where the handler writes.
    static PIPE: AtomicI32 = AtomicI32::new(-1);

    extern "C" fn handler(signal: i32) {
        let number = signal as u8;
        // SAFETY: `write` may be called by a handler, and gets one byte of the stack. The pipe is open as long as the
        // process lives, and far from full: after the first signal the process ends.
        unsafe { write(PIPE.load(Ordering::Relaxed), &raw const number, 1) };
    }

    /// The signals that were sent.
    pub(super) struct Received(PipeReader);

    impl Received {
        /// Waits for one.
        pub(super) fn next(&self) -> Option<i32> {
            let mut number = [0];
            (&self.0).read_exact(&mut number).ok()?;
            Some(i32::from(number[0]))
        }
    }

    pub(super) fn send(process: i32, signal: i32) {
        kill(process, signal);
    }

    /// Has these signals received instead of ending the process.
    pub(super) fn receive(signals: &[i32]) -> io::Result<Received> {
        let (reader, writer) = io::pipe()?;
        PIPE.store(writer.into_raw_fd(), Ordering::Relaxed);
        for number in signals {
            // SAFETY: the handler is a function of the type that handlers have, and is there as long as the process.
            unsafe {
                if signal(*number, handler as extern "C" fn(i32) as usize) == IGNORE {
                    signal(*number, IGNORE);
                }
            }
        }
        Ok(Received(reader))
    }

    /// Ends the process as the signal would have.
    pub(super) fn end_by(number: i32) {
        // SAFETY: it is one of the two numbers that are no handlers.
        unsafe { signal(number, DEFAULT) };
        kill(getpid(), number);
    }
}
