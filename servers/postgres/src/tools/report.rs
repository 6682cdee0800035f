//! Results that PostgreSQL builds as JSON.

use crate::value::Cell;
use linchpin_kit::ToolOutput;
use linchpin_kit::json::pretty;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum characters of a comment, default or definition.
pub(super) const TEXT_CHARS_MAX: usize = 2_000;

/// A JSON object.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Report(pub Cell);

impl JsonSchema for Report {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Report".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "object" })
    }
}

/// The tool output for this JSON.
pub(super) fn report(json: &str) -> ToolOutput<Report> {
    let cell = Cell::from_json(json);
    ToolOutput::outside(pretty(cell.get()), Report(cell))
}

/// Shortens every string in the JSON to this many characters and ends it with `…`. Also returns whether any was
/// shortened.
pub(super) fn clipped(json: &str, chars_max: usize) -> (String, bool) {
    let (mut out, mut cut) = (String::with_capacity(json.len()), false);
    let (mut inside, mut count) = (false, 0_usize);
    let mut letters = json.chars();
    while let Some(letter) = letters.next() {
        if letter == '"' {
            (inside, count) = (!inside, 0);
            out.push(letter);
            continue;
        }
        // An escape sequence counts as one character.
        let escape = if inside && letter == '\\' { letters.next() } else { None };
        let code: String = if escape == Some('u') { letters.by_ref().take(4).collect() } else { String::new() };
        count += usize::from(inside);
        if count <= chars_max {
            out.push(letter);
            out.extend(escape);
            out.push_str(&code);
        } else if count == chars_max + 1 {
            cut = true;
            out.push('…');
        }
    }
    (out, cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters_and_stay_json() {
        for (json, expected) in [
            (r#"{"a": "abc", "b": 12345}"#, r#"{"a": "abc", "b": 12345}"#),
            (r#"{"a" : "abcd"}"#, r#"{"a" : "abc…"}"#),
            (
                r#"["äöü", "äöüß", "\"\\\n", "\u0001\u0002\u0003\u0004"]"#,
                r#"["äöü", "äöü…", "\"\\\n", "\u0001\u0002\u0003…"]"#,
            ),
        ] {
            let (out, cut) = clipped(json, 3);
            assert_eq!((out.as_str(), cut), (expected, json != expected));
            serde_json::from_str::<serde_json::Value>(&out).unwrap();
        }
    }
}
