//! The second part of `docs/reference/rewrites.md` is what the prelude of derivations and the rewrites say of themselves.

use std::path::Path;
use std::{env, fs};

/// Where the part of the page begins that is made.
const MARK: &str = "<!-- Everything below is written by crates/certen-derive/tests/page.rs -->\n";

#[test]
fn the_page_is_that_of_the_pieces_and_rewrites() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/rewrites.md");
    let written = fs::read_to_string(&path).unwrap_or_default();
    let (by_hand, _) = written.split_once(MARK).unwrap_or_else(|| panic!("{} has no mark", path.display()));
    let mut page = format!("{by_hand}{MARK}\n## Pieces that every script knows\n");
    let mut found = 0;
    let is_piece = |paragraph: &&str| paragraph.lines().any(|line| line.starts_with("derivation "));
    for paragraph in certen_derive::PRELUDE.split("\n\n").filter(is_piece) {
        let (about, code): (Vec<&str>, Vec<&str>) = paragraph.lines().partition(|line| line.starts_with("//"));
        let about: Vec<&str> = about.iter().map(|line| line.trim_start_matches('/').trim()).collect();
        let name = code[0].trim_start_matches("derivation ").split('(').next().unwrap_or_default();
        assert!(!about.is_empty() && code[0].starts_with("derivation "), "{paragraph}");
        page += &format!("\n### {name}\n\n{}\n\n```text\n{}\n```\n", about.join("\n"), code.join("\n"));
        found += 1;
    }
    assert!(found >= 5);
    page += &format!("\n{}", certen_derive::page());
    if env::var_os("CERTEN_BLESS").is_some() {
        fs::write(&path, &page).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    } else {
        assert_eq!(written, page, "run with CERTEN_BLESS=1 to write it anew");
    }
}
