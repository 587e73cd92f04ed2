//! Diagnostics for people (in the style of rustc, by `annotate-snippets`) and for programs (JSON).

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Element, Group, Level, Renderer, Snippet};
use serde_json::{Value, json};

use crate::diagnostic::{Diagnostic, Diagnostics, Label, Severity};
use crate::source::Sources;

/// How many diagnostics [`render_all`] shows before it only counts them.
pub const MAX_RENDERED: usize = 20;

/// Lines longer than this are not shown: the message and position remain.
const MAX_SHOWN_BYTES: usize = 4096;

/// One diagnostic as text, with colours if asked for.
pub fn render(sources: &Sources, diagnostic: &Diagnostic, colour: bool) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let code = diagnostic.code.to_string();
    let mut group = Group::with_title(level.primary_title(&diagnostic.message).id(&code));
    let mut footers: Vec<Element<'_>> = Vec::new();
    let labels: Vec<(&Label, AnnotationKind)> = diagnostic
        .primary
        .iter()
        .map(|label| (label, AnnotationKind::Primary))
        .chain(diagnostic.secondary.iter().map(|label| (label, AnnotationKind::Context)))
        .collect();
    for snippet in snippets(sources, &labels) {
        group = match snippet {
            Shown::Text(snippet) => group.element(snippet),
            Shown::Place(place) => group.element(Level::NOTE.message(place)),
        };
    }
    let verb = if diagnostic.is_error() { "violates" } else { "see" };
    let rule = diagnostic.rule.map(|rule| format!("{verb} {} ({})", rule.name, rule.paper));
    footers.extend(diagnostic.notes.iter().cloned().chain(rule).map(|note| Level::NOTE.message(note).into()));
    footers.extend(diagnostic.help.iter().map(|help| Level::HELP.message(help).into()));
    let group = footers.into_iter().fold(group, Group::element);
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let text = renderer.decor_style(DecorStyle::Ascii).term_width(140).render(&[group]);
    // The renderer pads empty source lines; text that people paste and tests compare has no trailing blanks.
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n") + "\n"
}

enum Shown<'a> {
    Text(Snippet<'a, annotate_snippets::Annotation<'a>>),
    Place(String),
}

/// One snippet per file, primary label's file first; places whose lines are too long to show are named instead.
fn snippets<'a>(sources: &'a Sources, labels: &[(&'a Label, AnnotationKind)]) -> Vec<Shown<'a>> {
    let mut files: Vec<_> = Vec::new();
    for (label, _) in labels {
        if !files.contains(&label.span.file) {
            files.push(label.span.file);
        }
    }
    let mut shown = Vec::new();
    for file in files {
        let Some(source) = sources.get(file) else { continue };
        let mut placed = Vec::new();
        for (label, kind) in labels.iter().filter(|(label, _)| label.span.file == file) {
            let (lines, number) = source.whole_lines(label.span.start, label.span.end);
            if lines.len() > MAX_SHOWN_BYTES {
                let at = source.position(label.span.start);
                let remark = if label.text.is_empty() { "here" } else { &label.text };
                shown.push(Shown::Place(format!("{}:{}:{}: {remark}", source.name(), at.line, at.column)));
            } else {
                placed.push((label, kind, lines, number));
            }
        }
        let Some(first) = placed.iter().map(|p| p.2.start).min() else { continue };
        let last = placed.iter().map(|p| p.2.end).max().unwrap_or(first);
        let number = placed.iter().map(|p| p.3).min().unwrap_or(1);
        let annotations = placed.into_iter().map(|(label, kind, ..)| {
            let range = label.span.start as usize - first..label.span.end as usize - first;
            let text = (!label.text.is_empty()).then_some(label.text.as_str());
            kind.span(range).label(text)
        });
        let text = &source.text()[first..last];
        let snippet = Snippet::source(text).line_start(number).path(source.name()).fold(true).annotations(annotations);
        shown.push(Shown::Text(snippet));
    }
    shown
}

/// Diagnostics as text, one after another with a blank line between; past [`MAX_RENDERED`] they are only counted.
pub fn render_all(sources: &Sources, diagnostics: &[Diagnostic], colour: bool) -> String {
    let mut text: Vec<String> = diagnostics.iter().take(MAX_RENDERED).map(|d| render(sources, d, colour)).collect();
    if let Some(more) = diagnostics.len().checked_sub(MAX_RENDERED).filter(|&more| more > 0) {
        let least = if diagnostics.len() < Diagnostics::MAX { "" } else { "at least " };
        text.push(format!("… and {least}{more} more\n"));
    }
    text.join("\n")
}

/// One diagnostic as JSON: `code`, `severity`, `rule`, `message`, `file`, `line`, `column`, then the rest.
pub fn to_json(sources: &Sources, diagnostic: &Diagnostic) -> Value {
    let place = |label: &Label| sources.locate(label.span).map(|(file, at)| (file.to_owned(), at.line, at.column));
    let (file, line, column) = diagnostic
        .primary
        .as_ref()
        .and_then(place)
        .map_or((Value::Null, Value::Null, Value::Null), |(file, line, column)| {
            (json!(file), json!(line), json!(column))
        });
    let labels: Vec<Value> = diagnostic
        .primary
        .iter()
        .chain(&diagnostic.secondary)
        .filter(|label| !label.text.is_empty())
        .filter_map(|label| {
            let (file, line, column) = place(label)?;
            Some(json!({"file": file, "line": line, "column": column, "text": label.text}))
        })
        .collect();
    json!({
        "code": diagnostic.code.to_string(),
        "severity": match diagnostic.severity { Severity::Error => "error", Severity::Warning => "warning" },
        "rule": diagnostic.rule.map(|rule| rule.name),
        "message": diagnostic.message,
        "file": file,
        "line": line,
        "column": column,
        "labels": labels,
        "notes": diagnostic.notes,
        "help": diagnostic.help,
    })
}
