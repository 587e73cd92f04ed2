//! The C compiler: which one, with which flags, and what it said.
//!
//! Native code is made by the machine's own C compiler: the one that `$CC` names (with arguments, if it has any), else
//! the first of `cc`, `gcc` and `clang` on the PATH. The flags are fixed but for the features of the processor ([`Cpu`]).
//!
//! A program that only calls itself a compiler may do anything: it is not waited for longer than `$CERTEN_CC_TIMEOUT`
//! seconds, and what it says is not kept beyond a limit.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::cpu::Cpu;
use crate::error::RuntimeError;
use crate::unfinished::Running;

/// How long a compiler may take, unless `$CERTEN_CC_TIMEOUT` says otherwise.
const TIME_LIMIT: Duration = Duration::from_secs(600);

/// A compiler whose messages are longer than this is stopped, in bytes.
const MAX_MESSAGES: u64 = 64 << 20;

/// How much of an answer to the question for the version is read, in bytes.
const MAX_VERSION: u64 = 64 << 10;

/// How much of a compiler's messages is kept, in bytes.
const MAX_STDERR: u64 = 4000;

/// Programs that are looked for on the PATH, in this order.
const NAMES: [&str; 3] = ["cc", "gcc", "clang"];

/// The flags on every machine. Floating-point operations are those of the C text, in its order: nothing is fused,
/// reassociated or assumed finite. Only errno, which nothing reads, is given up.
const FLAGS: [&str; 6] = ["-std=c11", "-O3", "-fPIC", "-shared", "-ffp-contract=off", "-fno-math-errno"];

/// A longer text has hundreds of loops, which its vectors make fast anyway: GCC takes two and a half times as long for it with `-O3` as
/// with `-O1`.
const LONG_TEXT: usize = 256 << 10;

/// No compiler looks for vectors: they are in the C text. GCC 12 makes wrong code of plain loops when it does.
const SCALAR_GCC: [&str; 4] =
    ["-fno-tree-vectorize", "-fno-tree-loop-vectorize", "-fno-tree-slp-vectorize", "-fno-tree-loop-if-convert"];
const SCALAR_CLANG: [&str; 2] = ["-fno-vectorize", "-fno-slp-vectorize"];

/// A C compiler that was found and answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Compiler {
    /// As it is run: some compilers look at the name they are called by.
    program: PathBuf,
    /// Arguments that come with the program: `-m64` in `CC="gcc -m64"`.
    arguments: Vec<OsString>,
    real_path: PathBuf,
    version: String,
    flags: Vec<&'static str>,
    time_limit: Duration,
}

/// What a name stands for: a compiler, or why there is none.
pub type Candidate = (String, Result<Compiler, String>);

impl Compiler {
    /// The machine's C compiler. It is looked for once in the life of the process.
    ///
    /// # Errors
    /// [`RuntimeError::NoCompiler`], with what was tried; [`RuntimeError::Setting`] if the time limit is no number.
    pub fn find() -> Result<&'static Compiler, RuntimeError> {
        static FOUND: OnceLock<Result<Compiler, String>> = OnceLock::new();
        let limit = time_limit()?;
        let found = FOUND.get_or_init(|| match env::var_os("CC").filter(|value| !value.is_empty()) {
            Some(value) => from_variable(&value, limit),
            None => NAMES
                .into_iter()
                .find_map(|name| on_path(name).and_then(|path| Compiler::ask(path, Vec::new(), limit).ok()))
                .ok_or_else(|| "neither `cc` nor `gcc` nor `clang` is on the PATH".to_string()),
        });
        found.as_ref().map_err(|tried| RuntimeError::NoCompiler { tried: tried.clone() })
    }

    /// All that [`Compiler::find`] would look at: what `$CC` names, if it is set, then those on the PATH; why there is none,
    /// where there is none.
    ///
    /// # Errors
    /// [`RuntimeError::Setting`] if the time limit is no number.
    pub fn all() -> Result<Vec<Candidate>, RuntimeError> {
        let limit = time_limit()?;
        let chosen = env::var_os("CC").filter(|value| !value.is_empty());
        let chosen = chosen.map(|value| ("$CC".to_owned(), from_variable(&value, limit)));
        let named = |name: &str| match on_path(name) {
            Some(path) => (name.to_owned(), Compiler::ask(path, Vec::new(), limit)),
            None => (name.to_owned(), Err("is not on the PATH".to_owned())),
        };
        Ok(chosen.into_iter().chain(NAMES.map(named)).collect())
    }

    /// The C compiler at a path.
    ///
    /// # Errors
    /// [`RuntimeError::NoCompiler`] if there is none.
    pub fn at(path: impl Into<PathBuf>) -> Result<Compiler, RuntimeError> {
        Compiler::ask(path.into(), Vec::new(), TIME_LIMIT).map_err(|tried| RuntimeError::NoCompiler { tried })
    }

    /// Asks a program for its version; that it answers is what makes it a compiler.
    fn ask(program: PathBuf, arguments: Vec<OsString>, time_limit: Duration) -> Result<Compiler, String> {
        let cannot = |why: String| format!("`{}` cannot be run: {why}", program.display());
        let real_path = fs::canonicalize(&program).map_err(|error| cannot(error.to_string()))?;
        let mut question = command(&program);
        question.args(&arguments).arg("--version").stdout(Stdio::piped()).stderr(Stdio::null());
        let mut asked = Running::start(&mut question).map_err(|error| cannot(error.to_string()))?;
        // Read elsewhere: what is not read after all was said would stop the one who says it.
        let (send, answer) = mpsc::channel();
        if let Some(stdout) = asked.stdout() {
            let reader = thread::Builder::new().spawn(move || {
                let mut bytes = Vec::new();
                let _ = stdout.take(MAX_VERSION).read_to_end(&mut bytes);
                let _ = send.send(bytes);
            });
            reader.map_err(|error| cannot(error.to_string()))?;
        }
        let status =
            wait(&mut asked, time_limit, || 0).map_err(|why| cannot(format!("asked for its version, {why}")))?;
        if !status.success() {
            return Err(cannot(format!("asked for its version, it ended with {status}")));
        }
        let answer = answer.recv_timeout(time_limit).unwrap_or_default();
        let version = String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_string();
        let flags = flags(&version, Cpu::Native);
        Ok(Compiler { program, arguments, real_path, version, flags, time_limit })
    }

    /// The same compiler, for code of an instruction set.
    ///
    /// # Errors
    /// If this processor does not have it.
    pub fn for_cpu(&self, cpu: Cpu) -> Result<Compiler, RuntimeError> {
        if !cpu.is_here() {
            return Err(RuntimeError::Setting {
                name: "the instruction set",
                wanted: "one that this processor has",
                found: cpu.to_string(),
            });
        }
        Ok(Compiler { flags: flags(&self.version, cpu), ..self.clone() })
    }

    /// Where it is, links resolved.
    pub fn real_path(&self) -> &Path {
        &self.real_path
    }

    /// Whether another one is the same program with the same flags.
    pub fn is_same(&self, other: &Compiler) -> bool {
        (&self.real_path, &self.arguments, &self.flags) == (&other.real_path, &other.arguments, &other.flags)
    }

    /// The first line that it says about its version.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The flags that it is called with, the processor's features among them.
    pub fn flags(&self) -> &[&'static str] {
        &self.flags
    }

    /// What comes before the flags on its command line.
    pub(crate) fn arguments(&self) -> &[OsString] {
        &self.arguments
    }

    /// Compiles `kernel.c`, a new file with this text, to `kernel.so`, both in a directory that is only ours. Returns
    /// the path of the shared object.
    pub(crate) fn compile(&self, c_text: &str, directory: &Path) -> Result<PathBuf, RuntimeError> {
        let [source, object, messages] = ["kernel.c", "kernel.so", "messages"].map(|name| directory.join(name));
        fs::write(&source, c_text).map_err(RuntimeError::io("write", &source))?;
        // Messages go to a file, not to memory, because there may be any number of them.
        let stderr = File::create(&messages).map_err(RuntimeError::io("write", &messages))?;
        let mut command = command(&self.program);
        command
            .args(&self.arguments)
            .args(&self.flags)
            // The last one counts.
            .args((c_text.len() > LONG_TEXT).then_some("-O1"))
            .arg("-o")
            .args([&object, &source])
            .arg("-lm")
            .env("TMPDIR", directory)
            .stdout(Stdio::null())
            .stderr(stderr);
        let mut child = Running::start(&mut command).map_err(|error| RuntimeError::NoCompiler {
            tried: format!("`{}` cannot be run: {error}", self.program.display()),
        })?;
        let said = || fs::metadata(&messages).map_or(0, |messages| messages.len());
        let status = match wait(&mut child, self.time_limit, said) {
            // Something that only looks like a compiler may succeed without making anything.
            Ok(status) if status.success() && object.is_file() => return Ok(object),
            Ok(status) if status.success() => "it made no file".into(),
            Ok(status) => status.to_string(),
            Err(why) => why,
        };
        let stderr = beginning(&messages).map_err(RuntimeError::io("read", &messages))?;
        Err(RuntimeError::CompilerFailed { compiler: self.program.clone(), status, stderr })
    }
}

/// A command that cannot wait for input, and speaks English.
fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).env("LC_ALL", "C");
    command
}

/// How long a compiler may take.
fn time_limit() -> Result<Duration, RuntimeError> {
    let Some(value) = env::var_os("CERTEN_CC_TIMEOUT").filter(|value| !value.is_empty()) else {
        return Ok(TIME_LIMIT);
    };
    let seconds = value.to_str().and_then(|text| text.trim().parse().ok()).filter(|seconds| *seconds > 0);
    seconds.map(Duration::from_secs).ok_or_else(|| RuntimeError::Setting {
        name: "CERTEN_CC_TIMEOUT",
        wanted: "a number of seconds",
        found: value.to_string_lossy().into_owned(),
    })
}

/// Waits until a program ends, and stops one that takes too long or says too much.
fn wait(child: &mut Running, limit: Duration, said: impl Fn() -> u64) -> Result<ExitStatus, String> {
    let begin = Instant::now();
    let mut pause = Duration::from_micros(200);
    let why = loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) => {}
            Err(error) => break error.to_string(),
        }
        if begin.elapsed() > limit {
            break format!("it did not end within {} s", limit.as_secs());
        }
        if said() > MAX_MESSAGES {
            break "it did not stop to complain".into();
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(5));
    };
    child.stop();
    Err(why)
}

/// The compiler that the variable CC names: a program, and arguments separated by spaces.
fn from_variable(value: &OsStr, limit: Duration) -> Result<Compiler, String> {
    // A path with spaces is taken as a whole if it exists.
    let whole = Path::new(value);
    let (name, arguments) = if whole.is_file() {
        (whole.to_path_buf(), Vec::new())
    } else {
        let text = value.to_str().ok_or("the variable CC is not UTF-8 text")?;
        let mut words = text.split_whitespace();
        (words.next().unwrap_or_default().into(), words.map(OsString::from).collect())
    };
    let program = if name.components().count() > 1 { Some(name.clone()) } else { on_path(&name) };
    let Some(program) = program else {
        return Err(format!("the variable CC names `{}`, which is not on the PATH", name.display()));
    };
    Compiler::ask(program, arguments, limit).map_err(|why| format!("the variable CC names `{}`; {why}", name.display()))
}

/// Looks for a program in the absolute directories of the PATH.
fn on_path(name: impl AsRef<Path>) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let candidates = env::split_paths(&path).filter(|directory| directory.is_absolute());
    candidates.map(|directory| directory.join(name.as_ref())).find(|file| is_executable(file))
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(file).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(file: &Path) -> bool {
    file.is_file()
}

/// The flags of a compiler that says this about its version.
fn flags(version: &str, cpu: Cpu) -> Vec<&'static str> {
    let scalar: &[&str] = if version.contains("clang") { &SCALAR_CLANG } else { &SCALAR_GCC };
    [&FLAGS[..], scalar, &cpu.flags()].concat()
}

/// The beginning of a file of messages.
fn beginning(messages: &Path) -> io::Result<String> {
    let file = File::open(messages)?;
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    file.take(MAX_STDERR).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(match length.saturating_sub(MAX_STDERR) {
        0 => text.trim_end().to_string(),
        more => format!("{}\n… and {more} bytes more", text.trim_end()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_a_compiler_that_says_who_it_is() -> Result<(), RuntimeError> {
        let compiler = Compiler::find()?;
        assert!(compiler.real_path().is_absolute());
        assert!(!compiler.version().is_empty());
        assert!(compiler.flags().iter().all(|flag| !flag.contains("native")));
        assert_eq!(compiler, Compiler::find()?);
        Ok(())
    }

    #[test]
    fn what_cannot_be_run_is_not_a_compiler() {
        for path in ["/nonexistent/cc", "/dev/null", "/"] {
            let error = Compiler::at(path).err();
            assert!(error.is_some_and(|error| error.code() == certen_syntax::Code::E0601), "{path}");
        }
        let error = from_variable(OsStr::new("no-such-compiler -O2"), TIME_LIMIT).err();
        assert_eq!(error.as_deref(), Some("the variable CC names `no-such-compiler`, which is not on the PATH"));
        assert!(from_variable(OsStr::new("  "), TIME_LIMIT).is_err());
    }

    #[test]
    fn a_variable_may_hold_arguments() -> Result<(), String> {
        let compiler = from_variable(OsStr::new("cc -g0 -DX=1"), TIME_LIMIT)?;
        assert_eq!(compiler.arguments(), ["-g0", "-DX=1"]);
        Ok(())
    }

    #[test]
    fn failure_keeps_the_beginning_of_the_messages() -> Result<(), RuntimeError> {
        let directory = tempfile::tempdir().map_err(RuntimeError::io("create", Path::new("a directory")))?;
        let text = "int f(void) { return nothing; }\n".repeat(200);
        match Compiler::find()?.compile(&text, directory.path()) {
            Err(RuntimeError::CompilerFailed { stderr, .. }) => {
                assert!(stderr.contains("kernel.c:1"), "{stderr}");
                assert!(stderr.contains("bytes more") && (stderr.len() as u64) < MAX_STDERR + 100, "{stderr}");
            }
            other => panic!("{other:?}"),
        }
        Ok(())
    }
}
