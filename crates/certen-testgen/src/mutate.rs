//! Texts that are hardly programs: what a slip of the hand or a broken file makes of one.

use arbitrary::{Result, Unstructured};

const WORDS: [&str; 39] = [
    "add",
    "mul",
    "prod",
    "red+",
    "red*",
    "redmin",
    "redmax",
    "transp",
    "diag",
    "contr",
    "expa",
    "proj",
    "alloc",
    "where",
    "input",
    "output",
    "mode core",
    "var",
    "type",
    "+",
    "-",
    "*",
    "/",
    "#",
    ".",
    "^",
    ". [1 2]",
    "^ [[1 2] [3 4]]",
    "(",
    ")",
    "[",
    "]",
    "=",
    ":",
    ",",
    "0",
    "2",
    "9223372036854775807",
    "\n",
];

/// A text with a few tokens deleted, doubled, exchanged or replaced, and perhaps arbitrary bytes among them.
pub fn mutate(text: &str, choices: &mut Unstructured<'_>) -> String {
    let mut tokens: Vec<String> = text.split_inclusive([' ', '\n']).map(str::to_owned).collect();
    let edits = choices.int_in_range(1..=5).unwrap_or(1);
    for _ in 0..edits {
        // Choices fail only where there is no token left.
        if edit(&mut tokens, choices).is_err() {
            break;
        }
    }
    tokens.concat()
}

fn edit(tokens: &mut Vec<String>, choices: &mut Unstructured<'_>) -> Result<()> {
    let at = choices.choose_index(tokens.len())?;
    match choices.int_in_range(0..=5)? {
        0 => drop(tokens.remove(at)),
        1 => tokens.insert(at, tokens[at].clone()),
        2 => {
            let other = choices.choose_index(tokens.len())?;
            tokens.swap(at, other);
        }
        3 => tokens[at] = format!("{} ", choices.choose(&WORDS)?),
        4 => tokens.insert(at, format!("{} ", choices.choose(&WORDS)?)),
        _ => {
            let count = choices.int_in_range(1..=8)?;
            let bytes = choices.bytes(count.min(choices.len()))?;
            tokens.insert(at, String::from_utf8_lossy(bytes).into_owned());
        }
    }
    Ok(())
}
