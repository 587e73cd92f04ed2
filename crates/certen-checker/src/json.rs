//! JSON as text, without a tree of values in between: certificates are long.

use serde_json::Value;

/// A text as JSON.
pub(crate) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// The JSON list of these parts.
pub(crate) fn list(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(","))
}

/// The JSON object of these fields.
pub(crate) fn object<'a>(fields: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let fields = fields.into_iter().map(|(name, value)| quoted(name) + ":" + &value);
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}
