//! `certen doctor`: what is on this machine, a compiler that passes, one that does not.
#![cfg(unix)]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use common::{CERTEN, Ran, command, run};
use serde_json::Value;

/// Runs the doctor with a cache of its own.
fn doctor(directory: &Path, args: &[&str]) -> Ran {
    let cache = directory.join("cache");
    run(command(CERTEN, directory).env("CERTEN_CACHE", cache).args(["doctor", "--quick", "--cpu", "native"]).args(args))
}

/// A script in place of a compiler.
fn script(directory: &Path, name: &str, text: &str) -> String {
    let path = directory.join(name);
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[test]
fn a_compiler_that_has_passed_is_remembered() {
    let directory = tempfile::tempdir().unwrap();
    let compiler = script(directory.path(), "honest", "exec cc \"$@\"");
    let ran = doctor(directory.path(), &["--compiler", &compiler]);
    assert_eq!(ran.status, Some(0), "{ran:?}");
    for word in ["processor: ", "features: ", "threads: ", "cache: ", "C compilers:", "elements, all equal, "] {
        assert!(ran.out.contains(word), "{word}: {}", ran.out);
    }
    let ran = doctor(directory.path(), &["--compiler", &compiler]);
    assert!(ran.status == Some(0) && ran.out.contains("all equal (examined before)"), "{ran:?}");
    let ran = doctor(directory.path(), &["--compiler", &compiler, "--json"]);
    let found: Value = serde_json::from_str(&ran.out).unwrap();
    assert!(found["ok"] == true && found["examined"][0]["before"] == true, "{found}");
    assert!(found["examined"][0]["kernels"].as_u64() > Some(100), "{found}");
    // Another compiler at the same place has not been examined.
    script(directory.path(), "honest", "case \"$1\" in --version) echo other 1.0;; *) exit 7;; esac");
    let ran = doctor(directory.path(), &["--compiler", &compiler]);
    assert!(ran.status == Some(3) && ran.out.contains("failed: the C compiler"), "{ran:?}");
}

#[test]
fn a_compiler_that_makes_wrong_code_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let change =
        "for a in \"$@\"; do case \"$a\" in *.c) sed -i 's/ - y\\[/ + y[/g' \"$a\";; esac; done\nexec cc \"$@\"";
    let compiler = script(directory.path(), "wrong", change);
    for _ in 0..2 {
        let ran = doctor(directory.path(), &["--compiler", &compiler]);
        assert_eq!(ran.status, Some(3), "{ran:?}");
        assert!(
            ran.out.contains(" WRONG:\n") && ran.out.contains(", not ") && ran.out.contains("\nfn f("),
            "{}",
            ran.out
        );
    }
    let ran = doctor(directory.path(), &["--compiler", "/nonexistent/cc"]);
    assert!(ran.status == Some(3) && ran.err.contains("E0601"), "{ran:?}");
}
