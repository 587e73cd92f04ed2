//! The page of all rewrites, `docs/REWRITES.md`: made from their texts, which are what the engine does.

use std::fmt::Write as _;

use crate::rewrite::{Law, ParameterKind, Rewrite};
use crate::rules::{FAMILIES, named};

const HEAD: &str = "\
# Rewrites

The steps of derivations ([DERIVATIONS.md](DERIVATIONS.md)). Each is an equation between terms of Core, which can be
taken in both directions: forwards the left side becomes the right one, `backwards` the other way round. Both sides
are what the engine matches and builds, and are tested on generated terms.

In an equation, `E(i)` is any term that may mention the index `i`, other upper-case names are terms or conditions
(`P`, `Q`) that may not, and lower-case names are index expressions. `reduce` is any reduction, `op` any operation
on two numbers, `reshape` any of `flatten`, `transpose`, `split`, `pad_l`, `pad_r`, `trunc_l` and `trunc_r`.
`size(A)` is the outermost size of a tensor.

A step is written with the parameters that the side which is matched does not determine; new names may be left out
at the end. Where that side does not show what belongs to what, all parameters are given, in the order in which they
are listed. Conditions are proved for all sizes where the step is taken, from the ranges and guards around it. An
*exact* rewrite keeps every bit. One *of a ring* uses laws that floats do not have, such as another order of a sum,
or that zero times anything is zero.

<!-- What follows is made by certen_derive::page() -->

";

/// The page.
pub fn page() -> String {
    let mut page = HEAD.to_owned();
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
