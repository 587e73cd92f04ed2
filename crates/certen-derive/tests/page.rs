//! `docs/REWRITES.md` is what the rewrites say of themselves (`CERTEN_BLESS` writes it anew).

use std::path::Path;
use std::{env, fs};

#[test]
fn the_page_is_that_of_the_rewrites() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/REWRITES.md");
    let page = certen_derive::page();
    if env::var_os("CERTEN_BLESS").is_some() {
        fs::write(&path, &page).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(written, page, "run with CERTEN_BLESS=1 to write it anew");
}
