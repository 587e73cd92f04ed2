//! Texts: what is printed is read as it was, formatting keeps everything, and nothing makes the front door fail.

use certen::{Module, Options};
use certen_lang::format::format;
use certen_lang::parse::parse;
use certen_syntax::{Diagnostics, Sources, lex, render_all, to_json};
use certen_testgen::ten::{TenSample, scramble};

use crate::common::for_bytes;
use crate::{cases, for_programs};

/// The tree of a text as Rust shows it, without places and parentheses.
fn tree(text: &str) -> String {
    let mut sources = Sources::new();
    let file = sources.add("generated.ten", text);
    let mut diagnostics = Diagnostics::new();
    let source = sources.get(file).expect("the text was added");
    let read = parse(source, file, &mut diagnostics);
    assert!(!diagnostics.has_errors(), "{}", render_all(&sources, &diagnostics.into_sorted(), false));
    without_parens(&without_spans(&format!("{read:?}")))
}

fn without_spans(shown: &str) -> String {
    let mut out = String::new();
    let mut rest = shown;
    while let Some(at) = rest.find("Span {") {
        out += &rest[..at];
        rest = rest[at..].find('}').map_or("", |end| &rest[at + end + 1..]);
    }
    out + rest
}

/// `Paren(Expr { kind: X, span: })` becomes `X`.
fn without_parens(shown: &str) -> String {
    const BEGIN: &str = "Paren(Expr { kind: ";
    const END: &str = ", span:  })";
    let mut out = String::new();
    // How many brackets are open in each parenthesis that is taken away.
    let mut open: Vec<usize> = Vec::new();
    let mut at = 0;
    while let Some(c) = shown[at..].chars().next() {
        if shown[at..].starts_with(BEGIN) {
            open.push(0);
            at += BEGIN.len();
            continue;
        }
        if open.last() == Some(&0) && shown[at..].starts_with(END) {
            open.pop();
            at += END.len();
            continue;
        }
        if let Some(depth) = open.last_mut() {
            match c {
                '(' | '[' | '{' => *depth += 1,
                ')' | ']' | '}' => *depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        out.push(c);
        at += c.len_utf8();
    }
    out
}

fn printed(text: &str) -> String {
    let mut sources = Sources::new();
    let file = sources.add("generated.ten", text);
    parse(sources.get(file).expect("the text was added"), file, &mut Diagnostics::new()).to_string()
}

#[test]
fn what_is_printed_is_read_as_the_same_tree() {
    assert_eq!(tree("const A = ((1)) + (2);"), tree("const A = 1 + 2;"));
    assert_ne!(tree("const A = (1 + 2) * 3;"), tree("const A = 1 + 2 * 3;"));
    for_programs(cases(), 110, |sample| {
        let text = sample.text();
        let again = printed(&text);
        assert_eq!(tree(&again), tree(&text), "printed as\n{again}");
        assert_eq!(printed(&again), again);
    });
}

/// The tokens of a text, and its comments.
fn tokens(text: &str) -> (Vec<String>, Vec<String>) {
    let mut sources = Sources::new();
    let file = sources.add("generated.ten", text);
    let all = lex(sources.get(file).expect("the text was added"), file, &mut Diagnostics::new());
    let token = |span: certen_syntax::Span| text[span.start as usize..span.end as usize].to_string();
    let comments = text.lines().filter_map(|line| line.find("//").map(|at| line[at..].trim_end().to_string()));
    (all.iter().map(|one| token(one.span)).collect(), comments.collect())
}

fn formatted(text: &str) -> String {
    let mut sources = Sources::new();
    let file = sources.add("generated.ten", text);
    match format(sources.get(file).expect("the text was added"), file) {
        Ok(text) => text,
        Err(errors) => panic!("{}", render_all(&sources, &errors.into_sorted(), false)),
    }
}

/// Lines, spaces and comments where someone may have put them.
fn untidy(text: &str) -> String {
    let mut out = String::new();
    let mut quoted = false;
    for (at, c) in text.chars().enumerate() {
        quoted ^= c == '"';
        match (c, at % 11) {
            _ if quoted => out.push(c),
            (';', 0..=3) => out += ";  // after\n\n\n   ",
            ('{', 0..=2) => out += "{ // in\n",
            (',', 0..=1) => out += " ,\n\t",
            (' ', 0..=4) => out += "   ",
            _ => out.push(c),
        }
    }
    out + "\n// the end"
}

#[test]
fn formatting_keeps_tokens_and_comments_and_is_done_once() {
    for_programs(cases(), 111, |sample| {
        let text = untidy(&sample.text());
        let once = formatted(&text);
        assert_eq!(tokens(&once), tokens(&text), "{once}");
        assert_eq!(formatted(&once), once);
        assert_eq!(tree(&once), tree(&text));
    });
}

/// The whole front end and its messages.
fn survives(text: &str) {
    match Module::from_text("scrambled.ten", text, &Options::default()) {
        Ok(module) => module.core().check().expect("what is accepted is well-formed"),
        Err(failure) => {
            assert!(!failure.diagnostics().is_empty());
            render_all(failure.sources(), failure.diagnostics(), true);
            failure.diagnostics().iter().for_each(|one| drop(to_json(failure.sources(), one)));
        }
    }
}

#[test]
fn scrambled_texts_are_accepted_or_refused() {
    let make = |bytes: &[u8]| {
        let choice =
            bytes.iter().fold(3, |choice: u64, byte| choice.wrapping_mul(0x0000_0100_0000_01b3) ^ u64::from(*byte));
        scramble(&TenSample::generate(bytes).text(), choice)
    };
    for_bytes(4 * cases(), 112, make, |bytes| survives(&make(bytes)));
}
