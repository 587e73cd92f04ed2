//! The list of all rewrites in `docs/reference/rewrites.md`: made from their texts, which are what the engine does.

use std::fmt::Write as _;

use crate::rewrite::{Law, ParameterKind, Rewrite};
use crate::rules::{FAMILIES, named};

/// The sections of all families.
pub fn page() -> String {
    let mut page = String::new();
    for family in FAMILIES {
        let _ = write!(page, "## {}\n\n{}\n\n", family.title, family.about);
        family.rewrites.iter().for_each(|rewrite| page += &section(rewrite));
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

/// How a step is written: with the parameters that the side which is matched does not determine.
fn usage(rewrite: &Rewrite, backwards: bool) -> String {
    let determined = match named(rewrite.name) {
        Some((_, Ok(parsed))) => parsed.determined[usize::from(backwards)].as_slice(),
        _ => &[],
    };
    let is_open = |name: &str| !determined.iter().any(|known| known.as_str() == name);
    let open: Vec<&str> = rewrite.parameters.iter().map(|(name, _)| *name).filter(|name| is_open(name)).collect();
    if open.is_empty() { rewrite.name.into() } else { format!("{}({})", rewrite.name, open.join(", ")) }
}

fn section(rewrite: &Rewrite) -> String {
    let Rewrite { name, left, right, about, .. } = rewrite;
    let mut text = format!("### {name}\n\n{about}\n\n```text\n  {left}\n= {right}\n```\n\n");
    if !rewrite.conditions.is_empty() {
        let conditions: Vec<String> = rewrite.conditions.iter().map(|condition| format!("`{condition}`")).collect();
        let _ = write!(text, "**If** {}.\n\n", conditions.join(" and "));
    }
    let usages = [false, true].map(|backwards| usage(rewrite, backwards));
    let _ = write!(text, "`{}`; `backwards {}`\n\n", usages[0], usages[1]);
    if !rewrite.parameters.is_empty() {
        let parameter = |(name, kind): &(&str, ParameterKind)| format!("`{name}` is {}", kind.name());
        let parameters: Vec<String> = rewrite.parameters.iter().map(parameter).collect();
        let _ = write!(text, "{}. ", parameters.join(", "));
    }
    let law = match rewrite.law {
        Law::Exact => "Exact.",
        Law::Ring => "Of a ring.",
    };
    let _ = write!(text, "{law}\n\n");
    text
}
