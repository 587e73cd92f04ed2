//! Diagnostics for people (in the style of rustc, by `annotate-snippets`) and for programs (JSON).

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Element, Group, Level, Renderer, Snippet};
use serde_json::{Map, Value, json};

use crate::codes::Blame;
use crate::diagnostic::{Diagnostic, Diagnostics, Label, Remedy, Severity};
use crate::source::{Sources, Span};

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
    footers.extend(diagnostic.advice().map(|help| Level::HELP.message(help).into()));
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

/// The fields of a place: where it begins and ends, in lines, in columns, and in bytes from the beginning of the file.
fn place(sources: &Sources, span: Span) -> Option<Map<String, Value>> {
    let source = sources.get(span.file)?;
    let (begin, end) = (source.position(span.start), source.position(span.end));
    let fields = json!({
        "file": source.name(), "line": begin.line, "column": begin.column, "offset": span.start,
        "end_line": end.line, "end_column": end.column, "end_offset": span.end,
    });
    if let Value::Object(fields) = fields { Some(fields) } else { None }
}

/// A remedy: its `text`; the `option` that it names with a `value`, or the `edit` that it is.
fn remedy(sources: &Sources, diagnostic: &Diagnostic, remedy: &Remedy) -> Value {
    let mut fields = json!({"text": remedy.text(diagnostic.door)});
    if let Some((option, value)) = remedy.option() {
        (fields["option"], fields["value"]) = (json!(option), json!(value));
    }
    if let (Remedy::Rename { from, to }, Some(primary)) = (remedy, &diagnostic.primary)
        && let Some(span) = word(sources, primary.span, from)
        && let Some(mut edit) = place(sources, span)
    {
        edit.insert("text".into(), json!(to));
        fields["edit"] = edit.into();
    }
    fields
}

/// Where a word stands at a place, if it is there once.
fn word(sources: &Sources, span: Span, word: &str) -> Option<Span> {
    let text = sources.get(span.file)?.text().get(span.start as usize..span.end as usize)?;
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let mut found = text.match_indices(word).filter(|(at, word)| {
        !is_part(text[..*at].chars().next_back()) && !is_part(text[at + word.len()..].chars().next())
    });
    let (at, _) = found.next().filter(|_| found.next().is_none())?;
    let start = span.start + u32::try_from(at).ok()?;
    Some(Span { start, end: start + u32::try_from(word.len()).ok()?, ..span })
}

/// One diagnostic as JSON: `code`, `severity`, `blame`, `rule`, `message`, where it begins and ends, then the rest.
pub fn to_json(sources: &Sources, diagnostic: &Diagnostic) -> Value {
    let labels = diagnostic.primary.iter().chain(&diagnostic.secondary).filter(|label| !label.text.is_empty());
    let labels = labels.filter_map(|label| {
        let mut fields = place(sources, label.span)?;
        fields.insert("text".into(), json!(label.text));
        Some(Value::Object(fields))
    });
    let mut fields = json!({
        "code": diagnostic.code.to_string(),
        "severity": match diagnostic.severity { Severity::Error => "error", Severity::Warning => "warning" },
        "blame": match diagnostic.code.blame() {
            Blame::Program => "program",
            Blame::Call => "call",
            Blame::Environment => "environment",
        },
        "rule": diagnostic.rule.map(|rule| rule.name),
        "message": diagnostic.message,
        "file": null,
        "line": null,
        "column": null,
        "labels": labels.collect::<Vec<_>>(),
        "notes": diagnostic.notes,
        "help": diagnostic.advice().collect::<Vec<_>>(),
        "remedies": diagnostic.remedies.iter().map(|it| remedy(sources, diagnostic, it)).collect::<Vec<_>>(),
    });
    if let Some(index) = diagnostic.about {
        fields["loop"] = json!(index.as_str());
    }
    if let (Value::Object(fields), Some(label)) = (&mut fields, &diagnostic.primary) {
        fields.extend(place(sources, label.span).into_iter().flatten());
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Code, Door};

    #[test]
    fn a_remedy_is_an_edit_or_an_option_in_the_words_of_its_door() {
        let mut sources = Sources::new();
        let file = sources.add("t.ten", "fn f() {\n  blurr(x) }\n");
        let error = Diagnostic::error(Code::E0201, Span { file, start: 11, end: 19 }, "there is no function `blurr`");
        let json = to_json(&sources, &error.meant("blurr", "blur"));
        assert_eq!([&json["line"], &json["end_column"], &json["end_offset"]], [&json!(2), &json!(11), &json!(19)]);
        let edit = &json["remedies"][0]["edit"];
        assert_eq!((&edit["offset"], &edit["end_offset"], &edit["text"]), (&json!(11), &json!(16), &json!("blur")));
        let error = Diagnostic::error(Code::E0406, None, "the size `n` is not known");
        let error = error.remedy(Remedy::Size("n".into(), 100));
        let json = to_json(&sources, &error);
        assert_eq!((&json["blame"], &json["help"][0]), (&json!("call"), &json!("give it with `--dim n=100`")));
        let remedy = json!({"option": "dim", "value": "n=100", "text": "give it by name: `n=100`"});
        assert_eq!(to_json(&sources, &Diagnostic { door: Door::Python, ..error })["remedies"][0], remedy);
    }
}
