//! Results for people and for programs: tensors as nested brackets, or as JSON.

use certen::road::core::domain::{Element, Exact, Scalar};
use certen::{Output, Values};
use serde_json::{Value, json};

/// Tensors with more elements than this are shown by their corners.
const SHOWN_WHOLE: usize = 200;

/// How many elements of a long dimension are shown on each side.
const EDGE: usize = 3;

/// An output as text: its name and type, then its elements.
pub fn text(output: &Output) -> String {
    let sizes: Vec<String> = output.shape.iter().map(usize::to_string).collect();
    let domain = match &output.values {
        Values::Array(_) => "",
        Values::Exact(_) => ", as exact rationals",
        Values::Field(_) => ", modulo 2^61 - 1",
        Values::Partial(_) => ", or undefined",
    };
    let head = format!("{} : {}[{}]{domain}\n", output.name, output.elem, sizes.join(", "));
    head + &nested(output) + "\n"
}

/// An output as text in the middle of a line: its elements, then its type; further lines are indented.
pub fn value(output: &Output, indent: usize) -> String {
    let sizes: Vec<String> = output.shape.iter().map(usize::to_string).collect();
    let shape = if sizes.is_empty() { String::new() } else { format!("[{}]", sizes.join(", ")) };
    let elements = nested(output).replace('\n', &format!("\n{}", " ".repeat(indent)));
    format!("{elements} : {}{shape}", output.elem)
}

/// An output for programs: its type, shape and elements.
pub fn entry(output: &Output) -> Value {
    json!({"type": output.elem.name(), "shape": output.shape, "data": data(output)})
}

/// The elements in nested brackets, a row per line.
fn nested(output: &Output) -> String {
    enum Piece {
        Block(usize, usize),
        Text(String),
    }
    let shape = &output.shape;
    if shape.contains(&0) {
        return "[]".into();
    }
    let whole = shape.iter().product::<usize>() <= SHOWN_WHOLE;
    let strides: Vec<usize> = (0..shape.len()).map(|d| shape[d + 1..].iter().product()).collect();
    let mut text = String::new();
    let mut todo = vec![Piece::Block(0, 0)];
    while let Some(piece) = todo.pop() {
        let (depth, at) = match piece {
            Piece::Block(depth, at) => (depth, at),
            Piece::Text(piece) => {
                text += &piece;
                continue;
            }
        };
        if depth == shape.len() {
            text += &element(&output.values, at);
            continue;
        }
        let size = shape[depth];
        let between = match shape.len() - depth {
            1 => ", ".to_owned(),
            left => format!(",{}{}", "\n".repeat(left - 1), " ".repeat(depth + 1)),
        };
        let cut = !whole && size > 2 * EDGE;
        let mut pieces = vec![Piece::Text("[".into())];
        let mut i = 0;
        while i < size {
            if i > 0 {
                pieces.push(Piece::Text(between.clone()));
            }
            if cut && i == EDGE {
                pieces.push(Piece::Text("…".into()));
                i = size - EDGE;
                continue;
            }
            pieces.push(Piece::Block(depth + 1, at + i * strides[depth]));
            i += 1;
        }
        pieces.push(Piece::Text("]".into()));
        todo.extend(pieces.into_iter().rev());
    }
    text
}

fn element(values: &Values, at: usize) -> String {
    match values {
        Values::Array(array) => array.get(at).map_or_else(String::new, |value| value.to_string()),
        Values::Exact(values) => values[at].to_string(),
        Values::Field(values) => values[at].to_string(),
        Values::Partial(values) => values[at].map_or_else(|| "undefined".into(), |value| value.to_string()),
    }
}

/// An output's elements as a flat list.
pub fn data(output: &Output) -> Value {
    match &output.values {
        Values::Array(array) => (0..array.len()).map(|at| array.get(at).map_or(Value::Null, scalar)).collect(),
        Values::Exact(values) => values
            .iter()
            .map(|value| match value {
                Exact::Bool(value) => json!(value),
                number => json!(number.to_string()),
            })
            .collect(),
        Values::Field(values) => values
            .iter()
            .map(|value| match value {
                Element::Bool(value) => json!(value),
                number => json!(number.to_string()),
            })
            .collect(),
        Values::Partial(values) => values.iter().map(|value| value.map_or(Value::Null, scalar)).collect(),
    }
}

/// A number as JSON; those that JSON does not have as strings.
pub fn scalar(value: Scalar) -> Value {
    let float = |value: f64, finite: Value| match value {
        value if value.is_nan() => json!("NaN"),
        f64::INFINITY => json!("Infinity"),
        f64::NEG_INFINITY => json!("-Infinity"),
        _ => finite,
    };
    match value {
        Scalar::F64(value) => float(value, json!(value)),
        // The shortest text of an f32 is not that of the f64 with the same value.
        Scalar::F32(value) => {
            float(value.into(), value.to_string().parse::<f64>().map_or(Value::Null, |value| json!(value)))
        }
        Scalar::I64(value) => json!(value),
        Scalar::I32(value) => json!(value),
        Scalar::U8(value) => json!(value),
        Scalar::Bool(value) => json!(value),
    }
}
