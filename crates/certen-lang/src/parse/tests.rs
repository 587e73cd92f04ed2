use certen_syntax::{Diagnostics, Sources, render};

use super::*;

fn errors(text: &str) -> String {
    let mut sources = Sources::new();
    let file = sources.add("t.ten", text);
    let mut diagnostics = Diagnostics::new();
    parse(sources.get(file).unwrap(), file, &mut diagnostics);
    diagnostics.iter().map(|d| render(&sources, d, false)).collect()
}

#[test]
fn everything_of_the_language_is_read() {
    assert_eq!(errors(include_str!("everything.ten")), "");
}
