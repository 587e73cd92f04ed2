//! `certen help`: the help of a command, or a page of the documentation. The pages are part of the program, so that they
//! are installed with it.

use certen::road::syntax::{Code, Diagnostic};
use clap::Args;

use crate::common::Outcome;
use crate::report::Report;

#[derive(Args)]
pub struct HelpArgs {
    /// A command, or a page of the documentation
    topic: Option<String>,
    /// Only this section of the page: `steps split`, `errors E0207`
    section: Option<String>,
}

/// The pages, by the names of their files.
const PAGES: [(&str, &str); 20] = [
    ("first-program", include_str!("../../../docs/guide/first-program.md")),
    ("scheduling", include_str!("../../../docs/guide/scheduling.md")),
    ("calling", include_str!("../../../docs/guide/calling.md")),
    ("guard", include_str!("../../../docs/guide/guard.md")),
    ("language", include_str!("../../../docs/reference/language.md")),
    ("grammar", include_str!("../../../docs/reference/grammar.md")),
    ("prelude", include_str!("../../../docs/reference/prelude.md")),
    ("functions", include_str!("../../../docs/reference/functions.md")),
    ("steps", include_str!("../../../docs/reference/steps.md")),
    ("rewrites", include_str!("../../../docs/reference/rewrites.md")),
    ("errors", include_str!("../../../docs/reference/errors.md")),
    ("commands", include_str!("../../../docs/reference/commands.md")),
    ("python", include_str!("../../../docs/reference/python.md")),
    ("c", include_str!("../../../docs/reference/c.md")),
    ("core", include_str!("../../../docs/reference/core.md")),
    ("teil", include_str!("../../../docs/papers/teil.md")),
    ("model", include_str!("../../../docs/papers/model.md")),
    ("atl", include_str!("../../../docs/papers/atl.md")),
    ("teml", include_str!("../../../docs/papers/teml.md")),
    ("sac", include_str!("../../../docs/papers/sac.md")),
];

/// What the list of commands ends with: the names of all pages.
pub fn pages() -> String {
    let line = |(name, text): &(&str, &str)| format!("  {name:<14}{}\n", text.lines().next().map_or("", title));
    let lines: String = PAGES.iter().map(line).collect();
    format!("Pages of the documentation, as in `certen help steps` and `certen help steps split`:\n{lines}")
}

pub fn help(args: &HelpArgs, mut cli: clap::Command) -> Outcome {
    let report = Report::new(false);
    let page = |name: &str| PAGES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
    cli.build();
    let mut command = |name: &str| cli.find_subcommand_mut(name).map(|found| found.render_long_help().to_string());
    let words: Vec<&str> = args.topic.iter().chain(&args.section).map(String::as_str).collect();
    let found = match *words.as_slice() {
        [] => Some(cli.render_help().to_string()),
        [topic] => page(topic).map(String::from).or_else(|| command(topic)),
        [topic, part, ..] => page(topic).and_then(|text| section(text, part)).map(String::from),
    };
    let Some(text) = found else {
        let error = Diagnostic::error(Code::E0407, None, format!("there is no help about `{}`", words.join(" ")));
        return Err(report.error(error.help("`certen help` lists commands and pages")));
    };
    report.text(&text);
    Ok(())
}

/// The text of a heading.
fn title(line: &str) -> &str {
    line.trim_start_matches('#').trim()
}

/// The part of a page below the first heading that begins with a word, up to the next heading that is not below it.
fn section<'a>(page: &'a str, word: &str) -> Option<&'a str> {
    let level = |line: &str| line.bytes().take_while(|byte| *byte == b'#').count();
    let begins = |line: &str| {
        let title = title(line).trim_start_matches("certen ").to_lowercase();
        title
            .strip_prefix(&word.to_lowercase())
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    };
    let (mut start, mut at, mut fenced) = (None, 0, false);
    for line in page.split_inclusive('\n') {
        fenced ^= line.starts_with("```");
        if level(line) > 0 && !fenced {
            match start {
                None if begins(line) => start = Some((at, level(line))),
                Some((from, above)) if level(line) <= above => return page.get(from..at),
                _ => {}
            }
        }
        at += line.len();
    }
    start.and_then(|(from, _)| page.get(from..))
}

#[cfg(test)]
mod tests {
    use super::{PAGES, section};

    #[test]
    fn a_section_ends_where_the_next_one_begins() {
        let page = "# Page\n\n## one: first\n\n```c\n# not a heading\n```\n### inner\n\n## two\n\ntext\n";
        assert_eq!(section(page, "ONE"), Some("## one: first\n\n```c\n# not a heading\n```\n### inner\n\n"));
        assert_eq!(section(page, "two"), Some("## two\n\ntext\n"));
        assert_eq!((section(page, "on"), section(page, "three")), (None, None));
    }

    #[test]
    fn every_page_begins_with_its_title() {
        assert!(PAGES.iter().all(|(_, text)| text.starts_with("# ")));
    }
}
