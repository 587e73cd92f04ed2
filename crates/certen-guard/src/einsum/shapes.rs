//! The shapes of arrays, as far as the text tells them.

use certen_syntax::Name;
use ruff_python_ast::Expr;

use crate::index::Index;
use crate::python::{Arguments, Known};

/// What a function of an array library gives.
pub(crate) fn made<'a>(path: &str, arguments: &Arguments<'a>) -> Option<Known<'a>> {
    let (_, function) = path.rsplit_once('.')?;
    let first = arguments.get(0, "shape").map(|argument| &argument.known);
    let all = || arguments.positional().map(|argument| argument.known.index()).collect::<Option<Vec<_>>>();
    let sized = |at: usize| arguments.get(at, "size").or(arguments.get(at, "shape")).and_then(|it| it.known.shape());
    let shape = match function {
        "zeros" | "ones" | "empty" | "rand" | "randn" | "random" | "random_sample" | "standard_normal" => {
            let several = arguments.positional().count() > 1 && !path.starts_with("numpy.zeros");
            match first {
                Some(Known::List(_)) => first.and_then(Known::shape),
                Some(_) if several => all(),
                Some(one) => one.shape(),
                None => sized(0),
            }
        }
        "full" => first.and_then(Known::shape),
        "normal" | "uniform" if path.starts_with("jax.") => arguments.get(1, "shape")?.known.shape(),
        "normal" | "uniform" | "randint" | "integers" => arguments.get(2, "size").and_then(|it| it.known.shape()),
        "eye" | "identity" => {
            let rows = first?.index()?;
            let columns = arguments.positional().nth(1).and_then(|it| it.known.index());
            Some(vec![rows.clone(), columns.unwrap_or(rows)])
        }
        "arange" if arguments.positional().count() == 1 => Some(vec![first?.index()?]),
        "linspace" => arguments.get(2, "num").and_then(|it| it.known.shape()),
        "zeros_like" | "ones_like" | "empty_like" | "asarray" | "ascontiguousarray" => match first? {
            Known::Array(shape) => Some(shape.clone()),
            list => nested(list),
        },
        "array" | "tensor" => nested(first?),
        _ => None,
    };
    shape.map(Known::Array)
}

/// The shape of a nested list.
fn nested(known: &Known<'_>) -> Option<Vec<Index>> {
    match known {
        Known::Index(_) | Known::Number(_) => Some(Vec::new()),
        Known::Array(shape) => Some(shape.clone()),
        Known::List(parts) => {
            let mut shape = nested(parts.first()?)?;
            if !parts.iter().all(|part| nested(part).as_ref() == Some(&shape)) {
                return None;
            }
            shape.insert(0, Index::Num(parts.len() as i64));
            Some(shape)
        }
        _ => None,
    }
}

/// What a method of an array gives.
pub(crate) fn method<'a>(shape: &[Index], method: &str, arguments: &Arguments<'a>) -> Option<Known<'a>> {
    let positional: Vec<&Known<'a>> = arguments.positional().map(|argument| &argument.known).collect();
    let shape = match (method, &positional[..]) {
        ("copy" | "astype" | "float" | "double" | "contiguous" | "to" | "cuda" | "cpu", _) => Some(shape.to_vec()),
        ("transpose" | "T", []) => Some(shape.iter().rev().cloned().collect()),
        ("reshape" | "view", [Known::List(_)]) => positional[0].shape(),
        ("reshape" | "view", _) => positional.iter().map(|known| known.index()).collect(),
        _ => None,
    };
    // A size of -1 is computed when the program runs.
    let is_known = |shape: &Vec<Index>| shape.iter().all(|size| size.number().is_none_or(|size| size >= 0));
    shape.filter(is_known).map(Known::Array)
}

/// A shape in an annotation: `Float[Array, "m n"]`.
pub(crate) fn annotated<'a>(annotation: &Expr) -> Option<Known<'a>> {
    let Expr::Subscript(subscript) = annotation else { return None };
    let Expr::Tuple(parts) = &*subscript.slice else { return None };
    let [_, Expr::StringLiteral(text)] = &parts.elts[..] else { return None };
    sizes(text.value.to_str().split_whitespace())
}

/// A shape in a comment: `# (m, n)`, `# shape: (m, n)`, `# [m, n]`.
pub(crate) fn commented<'a>(comment: &str) -> Option<Known<'a>> {
    let text = comment.strip_prefix("shape").unwrap_or(comment).trim_start_matches([':', ' ', '=']);
    let inside = text.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    let (inside, _) = inside.or_else(|| text.strip_prefix('[')?.split_once(']'))?;
    sizes(inside.split(',').map(str::trim).filter(|word| !word.is_empty()))
}

fn sizes<'a>(words: impl Iterator<Item = &'a str>) -> Option<Known<'static>> {
    let size = |word: &str| match word.parse::<i64>() {
        Ok(size) if size >= 0 => Some(Index::Num(size)),
        Ok(_) => None,
        Err(_) => {
            let is_name = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            is_name.then(|| Index::Name(Name::new(word)))
        }
    };
    words.map(size).collect::<Option<Vec<Index>>>().map(Known::Array)
}
