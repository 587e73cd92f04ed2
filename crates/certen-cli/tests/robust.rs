//! Threads and the environment of native code: full disks, read-only caches, crashes, compilers that misbehave, several
//! processes at once. Whatever happens, the answer is right or an error, and the cache holds whole entries or none.
#![cfg(unix)]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::{CERTEN, Ran, command, run};

/// Enough work for threads: a product of matrices.
const PROGRAM: &str = "alloc A : [l, m]\nalloc B : [m, n]\nalloc C : [l, n]\nC = contr 2 3 (prod A B)\n";

struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("mm.teil"), PROGRAM).unwrap();
        Place { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn cache(&self) -> PathBuf {
        self.path("cache")
    }

    /// `certen run mm.teil …` with a cache of its own.
    fn certen(&self, program: &str, before: &[&str], size: usize) -> Command {
        let mut certen = command(program, self.directory.path());
        certen.args(before);
        certen.args(["run", "mm.teil", "--in", "A=random:1", "--in", "B=random:2"]);
        for name in ["l", "m", "n"] {
            certen.args(["--dim", &format!("{name}={size}")]);
        }
        certen.env("CERTEN_CACHE", self.cache());
        certen
    }

    fn run(&self) -> Ran {
        run(&mut self.certen(CERTEN, &[], 3))
    }

    /// A shell script that can be a compiler. It knows its version.
    fn compiler(&self, name: &str, script: &str) -> PathBuf {
        let path = self.path(name);
        let text = format!("#!/bin/sh\ncase \"$*\" in *--version*) echo fake 1.0; exit 0;; esac\n{script}\n");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// The entries of the cache, and whatever else is in it besides a note for each.
    fn files(&self) -> (usize, usize) {
        let Ok(listing) = fs::read_dir(self.cache()) else { return (0, 0) };
        let names: Vec<PathBuf> = listing.map(|file| file.unwrap().path()).collect();
        let ending = |wanted: &str| names.iter().filter(|name| name.extension().is_some_and(|e| e == wanted)).count();
        let (entries, notes) = (ending("so"), ending("note"));
        assert!(notes <= entries);
        (entries, names.len() - entries - notes)
    }
}

fn is_root() -> bool {
    run(Command::new("id").arg("-u")).out.trim() == "0"
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let place = Place::new();
    let outputs: Vec<Vec<u8>> = ["1", "2", "3", "7"]
        .into_iter()
        .map(|threads| {
            let file = format!("C{threads}.npy");
            let mut certen = place.certen(CERTEN, &[], 61);
            let ran = run(certen.args(["--threads", threads, "--out", &format!("C={file}")]));
            assert_eq!(ran.status, Some(0), "{ran:?}");
            fs::read(place.path(&file)).unwrap()
        })
        .collect();
    assert!(outputs.iter().all(|output| *output == outputs[0]));
    let json = run(place.certen(CERTEN, &[], 3).args(["--threads", "3", "--time", "--json"]));
    assert!(json.out.contains("\"threads\":3"), "{json:?}");
}

#[test]
fn the_number_of_threads_is_checked() {
    let place = Place::new();
    for wrong in ["0", "-1", "many", "1025", ""] {
        let ran = run(place.certen(CERTEN, &[], 3).args(["--threads", wrong]));
        assert_eq!(ran.status, Some(2), "{ran:?}");
        assert!(ran.err.contains("--threads"), "{ran:?}");
    }
    for wrong in ["0", "x", "99999"] {
        let ran = run(place.certen(CERTEN, &[], 3).env("CERTEN_THREADS", wrong));
        assert_eq!(ran.status, Some(2), "{ran:?}");
        let says = format!("CERTEN_THREADS should be a number of threads from 1 to 1024, but is `{wrong}`");
        assert!(ran.err.contains("E0407") && ran.err.contains(&says), "{ran:?}");
    }
    // What is given in the call counts.
    let mut both = place.certen(CERTEN, &[], 3);
    assert_eq!(run(both.env("CERTEN_THREADS", "x").args(["--threads", "2"])).status, Some(0));
    let ran = run(place.certen(CERTEN, &[], 3).env("CERTEN_THREADS", "3").arg("--time"));
    assert!(ran.out.contains("3 threads"), "{ran:?}");
}

#[test]
fn a_signal_leaves_neither_a_compiler_nor_its_directory() {
    for signal in ["TERM", "INT", "HUP"] {
        let place = Place::new();
        let compiler =
            place.compiler("slow", &format!("sleep 1000 & echo $! > {}; wait", place.path("child").display()));
        let given = ["--default-signal=TERM,INT,HUP", CERTEN];
        let mut certen = place.certen("env", &given, 3).env("CC", compiler).stderr(Stdio::null()).spawn().unwrap();
        let begin = Instant::now();
        let child = loop {
            match fs::read_to_string(place.path("child")) {
                Ok(text) if text.ends_with('\n') => break text.trim().to_owned(),
                _ => thread::sleep(Duration::from_millis(10)),
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "the compiler was not started");
        };
        assert_eq!(place.files(), (0, 1));
        run(Command::new("kill").args(["-s", signal, &certen.id().to_string()]));
        assert_eq!(certen.wait().unwrap().code(), None, "{signal}");
        assert_eq!(place.files(), (0, 0), "{signal}");
        // Whoever was stopped may be there until its new parent has noticed.
        let state = || fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        let is_gone = || state().rsplit(')').next().is_none_or(|rest| rest.is_empty() || rest.starts_with(" Z"));
        let begin = Instant::now();
        while !is_gone() {
            assert!(begin.elapsed() < Duration::from_secs(10), "{signal}: {}", state());
            thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn an_entry_that_was_copied_over_another_is_not_used() {
    let place = Place::new();
    let run_other = |text: &str| {
        fs::write(place.path("mm.teil"), text).unwrap();
        run(&mut place.certen(CERTEN, &[], 3))
    };
    let entries = || {
        let all = fs::read_dir(place.cache()).unwrap().map(|file| file.unwrap().path());
        all.filter(|file| file.extension().is_some_and(|ending| ending == "so")).collect::<Vec<PathBuf>>()
    };
    let right = run_other(PROGRAM);
    let first = entries();
    assert_eq!((right.status, first.len()), (Some(0), 1), "{right:?}");
    assert_eq!(run_other(&PROGRAM.replace("contr 2 3 (prod A B)", "contr 2 3 (prod (add A A) B)")).status, Some(0));
    let second = entries().into_iter().find(|entry| *entry != first[0]).unwrap();
    fs::copy(second, &first[0]).unwrap();
    assert_eq!(run_other(PROGRAM).out, right.out);
}

#[test]
fn a_full_disk_is_told_and_leaves_nothing() {
    let place = Place::new();
    // No file may be larger than a few blocks, here or anywhere.
    let limited = "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\"";
    let ran = run(&mut place.certen("sh", &["-c", limited, CERTEN], 3));
    assert_eq!(ran.status, Some(3), "{ran:?}");
    let says = format!("cannot write to {}: File too large", place.cache().canonicalize().unwrap().display());
    assert!(ran.err.contains("E0603") && ran.err.contains(&says), "{ran:?}");
    assert_eq!(place.files(), (0, 0));
    assert_eq!(place.run().status, Some(0));
    assert_eq!(place.files(), (1, 0));
    // What is there already can be used.
    assert_eq!(run(&mut place.certen("sh", &["-c", limited, CERTEN], 3)).status, Some(0));
}

#[test]
fn a_cache_that_can_only_be_read_is_done_without() {
    let place = Place::new();
    let directory = if is_root() {
        // Root may write to any directory but those of the kernel.
        PathBuf::from("/sys")
    } else {
        fs::create_dir(place.cache()).unwrap();
        fs::set_permissions(place.cache(), fs::Permissions::from_mode(0o500)).unwrap();
        place.cache()
    };
    let ran = run(place.certen(CERTEN, &[], 3).env("CERTEN_CACHE", &directory));
    let expected = place.run();
    if !is_root() {
        fs::set_permissions(place.cache(), fs::Permissions::from_mode(0o700)).unwrap();
    }
    assert_eq!(ran.status, Some(0), "{ran:?}");
    assert_eq!(ran.out, expected.out);
}

/// Waits for something that another process does.
fn until(mut condition: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(30) {
        if condition() {
            return true;
        }
        thread::sleep(Duration::from_millis(2));
    }
    false
}

#[test]
fn a_crash_in_the_middle_of_a_build_leaves_no_entry() {
    let place = Place::new();
    let slow = place.compiler("slow-cc", "touch started\nsleep 3\nexec cc \"$@\"");
    let mut certen = place.certen(CERTEN, &[], 3);
    let mut child = certen.env("CC", slow).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let started = until(|| place.path("started").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(started);
    assert_eq!(place.files().0, 0);
    // At any other moment.
    for moment in [1, 20, 60, 90, 130] {
        let mut certen = place.certen(CERTEN, &[], 3);
        let mut child = certen.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(Duration::from_millis(moment));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let ran = place.run();
    assert_eq!(ran.status, Some(0), "{ran:?}");
    assert!(ran.out.starts_with("C : f64[3, 3]"), "{ran:?}");
    assert_eq!(place.files().0, 1);
}

#[test]
fn processes_that_compile_the_same_at_once() {
    let place = Place::new();
    let start = || place.certen(CERTEN, &[], 3).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let children: Vec<_> = (0..8).map(|_| start()).collect();
    let outputs: Vec<_> = children.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    for output in &outputs {
        assert!(output.status.success(), "{output:?}");
        assert_eq!(output.stdout, outputs[0].stdout);
    }
    assert_eq!(place.files(), (1, 0));
}

#[test]
fn a_compiler_that_hangs_is_stopped() {
    let place = Place::new();
    let hangs = place.compiler("hanging-cc", "exec sleep 100");
    let silent = place.path("silent-cc");
    fs::write(&silent, "#!/bin/sh\nexec sleep 100\n").unwrap();
    fs::set_permissions(&silent, fs::Permissions::from_mode(0o755)).unwrap();
    for (compiler, says) in [
        (hangs, "E0602"),
        // It does not even know its version. Nobody asked for native code, so the evaluator runs.
        (silent, "asked for its version, it did not end within 1 s"),
    ] {
        let mut certen = place.certen(CERTEN, &[], 3);
        let ran = run(certen.env("CC", &compiler).env("CERTEN_CC_TIMEOUT", "1"));
        assert!(ran.err.contains(says) && ran.err.contains("did not end within 1 s"), "{ran:?}");
        assert_eq!(ran.status, Some(if says == "E0602" { 3 } else { 0 }), "{ran:?}");
        assert_eq!(place.files(), (0, 0));
    }
    let ran = run(place.certen(CERTEN, &[], 3).env("CERTEN_CC_TIMEOUT", "soon"));
    assert_eq!(ran.status, Some(2), "{ran:?}");
    assert!(ran.err.contains("CERTEN_CC_TIMEOUT should be a number of seconds"), "{ran:?}");
}

#[test]
fn a_compiler_that_prints_garbage_is_refused() {
    let place = Place::new();
    let garbage = [
        ("head -c 100000 /dev/urandom >&2; exit 1", "bytes more"),
        ("head -c 100000 /dev/urandom; exit 0", "it made no file"),
        ("while [ \"$1\" != -o ]; do shift; done; head -c 20000 /dev/urandom > \"$2\"", "not a kernel"),
        ("while [ \"$1\" != -o ]; do shift; done; : > \"$2\"", "not a kernel"),
        ("yes garbage >&2", "did not stop to complain"),
    ];
    for (script, says) in garbage {
        let compiler = place.compiler("garbage-cc", script);
        let ran = run(place.certen(CERTEN, &[], 3).env("CC", &compiler));
        assert_eq!(ran.status, Some(3), "{script}: {ran:?}");
        assert!(ran.err.contains("E0602") && ran.err.contains(says), "{script}: {ran:?}");
        assert_eq!(place.files(), (0, 0), "{script}");
    }
    // A version without end.
    let endless = place.path("endless-cc");
    fs::write(&endless, "#!/bin/sh\nexec yes\n").unwrap();
    fs::set_permissions(&endless, fs::Permissions::from_mode(0o755)).unwrap();
    let ran = run(place.certen(CERTEN, &[], 3).env("CC", &endless).env("CERTEN_CC_TIMEOUT", "5"));
    assert!(ran.err.contains("the reference evaluator runs instead"), "{ran:?}");
}

#[test]
fn progress_is_for_terminals() {
    let place = Place::new();
    let slow = place.compiler("slow-cc", "sleep 1.3\nexec cc \"$@\"");
    let piped = run(place.certen(CERTEN, &[], 3).env("CC", &slow));
    assert_eq!((piped.status, piped.err.as_str()), (Some(0), ""));
    fs::remove_dir_all(place.cache()).unwrap();
    let words: Vec<String> =
        place.certen(CERTEN, &[], 3).get_args().map(|word| word.to_string_lossy().into_owned()).collect();
    let mut terminal = command("script", place.directory.path());
    terminal.args(["-qec", &format!("'{CERTEN}' {}", words.join(" ")), "/dev/null"]);
    terminal.env("CERTEN_CACHE", place.cache()).env("CC", &slow);
    // Not every system can make a terminal.
    if Path::new("/usr/bin/script").exists() {
        let ran = run(&mut terminal);
        assert!(ran.out.contains("compiling mm… 1 s"), "{ran:?}");
        assert!(ran.out.contains("C : f64[3, 3]"), "{ran:?}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn output_that_is_lost_is_an_error() {
    let place = Place::new();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ended = place.certen(CERTEN, &[], 3).stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(ended.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("cannot write to standard output"));
    let closed = Command::new("sh").arg("-c").arg(format!("'{CERTEN}' explain-error | true")).status().unwrap();
    assert_eq!(closed.code(), Some(0));
}

/// Sizes of an empty array can be of any magnitude, and loops would go through them: the error says what is too large.
#[test]
fn nothing_can_be_huge() {
    let place = Place::new();
    fs::write(place.path("all.ten"), "fn all_of(x: f64[n, m, k]) -> f64 { sum(x) }\n").unwrap();
    let huge = (1i64 << 62).to_string();
    let sizes = ["n=0".to_owned(), format!("m={huge}"), format!("k={huge}")];
    let mut certen = command(CERTEN, place.directory.path());
    certen.args(["run", "all.ten", "--in", "x=iota", "--backend", "native"]).env("CERTEN_CACHE", place.cache());
    sizes.iter().for_each(|size| {
        certen.args(["--dim", size]);
    });
    let ran = run(&mut certen);
    assert!(ran.status == Some(2) && ran.err.contains("E0409"), "{ran:?}");
}
