//! The parser, the printer and the formatter against the grammar that is published in `docs/reference/grammar.md`.

mod common;

use std::collections::BTreeSet;

use certen_lang::format::format;
use certen_lang::parse::parse_expr;
use certen_syntax::{Diagnostics, TokenKind, lex};
use common::ebnf::Grammar;
use common::rng::Rng;
use common::tree::{exprs, without_places};
use common::{Text, on_large_stack};

const PAGE: &str = include_str!("../../../docs/reference/grammar.md");

fn cases() -> u64 {
    std::env::var("CERTEN_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(500)
}

/// A text of these tokens, with spaces, line ends and comments between them.
fn write(tokens: &[String], rng: &mut Rng) -> String {
    let mut text = String::new();
    for token in tokens {
        let tight = ["(", ")", "[", "]", ",", ";"];
        match rng.below(100) {
            _ if text.is_empty() => {}
            0..5 => text += "\n",
            5..7 => text += "\n\n \n",
            7..9 => text += " // a  remark\n",
            9..10 => text += "\n// another\n//third \n",
            10..40 if tight.iter().any(|punct| token == punct || text.ends_with(punct)) => {}
            _ => text += " ",
        }
        text += token;
    }
    text
}

fn generated(grammar: &Grammar, seed: u64) -> (Vec<String>, Rng) {
    let mut rng = Rng::new(seed);
    let depth = 10 + rng.below(35);
    let items = 1 + rng.below(3);
    ((0..items).flat_map(|_| grammar.make("item", depth, &mut rng)).collect(), rng)
}

/// The tokens, and the comments without spaces at their ends.
fn contents(text: &str) -> (Vec<TokenKind>, Vec<String>) {
    let text = Text::new(text);
    let (source, file) = text.source();
    let tokens = lex(source, file, &mut Diagnostics::new());
    let mut comments = Vec::new();
    let mut end = 0;
    for token in &tokens {
        let gap = &source.text()[end..token.span.start as usize];
        comments.extend(gap.lines().filter_map(|line| line.find("//").map(|at| line[at..].trim_end().to_owned())));
        end = token.span.end as usize;
    }
    (tokens.into_iter().map(|token| token.kind).collect(), comments)
}

fn formatted(text: &str) -> String {
    let text = Text::new(text);
    let (source, file) = text.source();
    format(source, file).unwrap_or_else(|diagnostics| panic!("{}", text.rendered(&diagnostics)))
}

/// What must hold of a text without mistakes.
fn check_round_trips(text: &str) {
    let read = Text::new(text);
    let tree = read.tree();
    let printed = tree.to_string();
    let again = Text::new(printed.as_str()).tree();
    assert_eq!(without_places(&tree), without_places(&again), "{text}\nis printed as\n{printed}");
    assert_eq!(again.to_string(), printed, "printing what was printed");

    let styled = formatted(text);
    assert_eq!(contents(text), contents(&styled), "{text}\nis formatted as\n{styled}");
    assert_eq!(formatted(&styled), styled, "formatting again, from\n{text}");
    assert!(styled.lines().all(|line| line.trim_end() == line), "spaces at the end of a line:\n{styled}");
    assert!(!styled.contains("\n\n\n") && !styled.starts_with('\n') && !styled.ends_with("\n\n"), "{styled:?}");
    // The printer shows the nesting of operators by indentation, which the formatter does not know.
    let lines = |text: &str| text.lines().map(|line| line.trim_start().to_owned()).collect::<Vec<_>>();
    assert_eq!(lines(&formatted(&printed)), lines(&printed), "the printer writes house style");

    for expr in exprs(&tree) {
        let snippet = Text::new(read.sources().snippet(expr.span));
        let (source, file) = snippet.source();
        let mut diagnostics = Diagnostics::new();
        let alone = parse_expr(source, file, &mut diagnostics);
        assert!(!diagnostics.has_errors(), "{}", snippet.rendered(&diagnostics));
        assert_eq!(without_places(&alone.unwrap()), without_places(expr), "the place of an expression is its text");
    }
}

#[test]
fn every_text_of_the_grammar_is_accepted() {
    on_large_stack(|| {
        let grammar = Grammar::read(PAGE);
        let mut seen = BTreeSet::new();
        for seed in 0..cases() {
            let (tokens, mut rng) = generated(&grammar, seed);
            let text = write(&tokens, &mut rng);
            let result = std::panic::catch_unwind(|| check_round_trips(&text));
            assert!(result.is_ok(), "the text of seed {seed}:\n{text}");
            seen.extend(tokens);
        }
        if cases() >= 500 {
            let unseen: Vec<&str> = grammar.words().into_iter().filter(|word| !seen.contains(*word)).collect();
            assert!(unseen.is_empty(), "no text had {unseen:?}");
        }
    });
}

/// A token left out, doubled or exchanged with another is nearly always a mistake, and never a panic.
#[test]
fn a_text_with_a_wrong_token_is_nearly_always_refused() {
    on_large_stack(|| {
        let grammar = Grammar::read(PAGE);
        let mut refused = 0;
        let mut changed = 0;
        for seed in 0..cases() {
            let (mut tokens, mut rng) = generated(&grammar, seed);
            if tokens.len() < 2 {
                continue;
            }
            let before = tokens.clone();
            let (at, other) = (rng.below(tokens.len()), rng.below(tokens.len()));
            match rng.below(3) {
                0 => drop(tokens.remove(at)),
                1 => tokens.insert(at, tokens[at].clone()),
                _ => tokens.swap(at, other),
            }
            if tokens == before {
                continue;
            }
            changed += 1;
            let text = write(&tokens, &mut rng);
            let read = Text::new(text.as_str());
            let (_, diagnostics) = read.parse();
            for diagnostic in diagnostics.iter() {
                let span = diagnostic.primary.as_ref().unwrap().span;
                assert!(span.start <= span.end && span.end as usize <= text.len());
            }
            if diagnostics.has_errors() {
                refused += 1;
                let (source, file) = read.source();
                assert!(format(source, file).is_err(), "what is refused is not formatted");
            } else {
                check_round_trips(&text);
            }
        }
        assert!(refused * 10 >= changed * 8, "only {refused} of {changed} texts were refused");
    });
}
