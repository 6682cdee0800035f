//! Reads and writes JSON without losing digits of numbers.
//!
//! A [`Value`] holds numbers in binary, which loses digits (`1.10`, 40-digit integers) and rejects some numbers (`1e400`). A value
//! read by this module has marked strings in place of the numbers that a [`Value`] cannot hold as written; this module writes
//! them as numbers again.
//!
//! ```
//! use linchpin_core::exact;
//!
//! let value = exact::read(r#"{"count":3,"price":1.10}"#)?;
//! assert_eq!(value["count"], 3);
//! assert_eq!(exact::number(&value["price"]), Some("1.10"));
//! assert_eq!(exact::text(&value), r#"{"count":3,"price":1.10}"#);
//! # Ok::<(), serde_json::Error>(())
//! ```

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Number, Value};
use std::borrow::Cow;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::OnceLock;

/// Reads JSON.
///
/// # Errors
/// If it is not valid JSON.
pub fn read(json: &str) -> serde_json::Result<Value> {
    serde_json::from_str(&marked(json))
}

/// Converts a value to JSON; `null` if it cannot be serialized.
pub fn of<T: Serialize + ?Sized>(value: &T) -> Value {
    serde_json::to_string(value).and_then(|json| read(&json)).unwrap_or_default()
}

/// Writes JSON on one line.
pub fn text(value: &Value) -> String {
    restored(value.to_string())
}

/// Writes JSON over several lines.
pub fn pretty(value: &Value) -> String {
    restored(format!("{value:#}"))
}

/// Converts a value to JSON text, ready to send.
pub fn raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(text(value)).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Returns the text of a marked number.
pub fn number(value: &Value) -> Option<&str> {
    value.as_str()?.strip_prefix(mark())
}

/// What a marked string begins with. It is another in each process, so that no server can write it.
fn mark() -> &'static str {
    static MARK: OnceLock<String> = OnceLock::new();
    MARK.get_or_init(|| format!("number-{:016x}:", RandomState::new().hash_one(())))
}

/// JSON with marked strings in place of numbers that a [`Value`] would change.
fn marked(json: &str) -> Cow<'_, str> {
    let bytes = json.as_bytes();
    let (mut out, mut kept, mut at) = (String::new(), 0, 0);
    while let Some(&byte) = bytes.get(at) {
        let begin = at;
        at += 1;
        match byte {
            b'"' => at = end_of_string(bytes, at),
            b'-' | b'0'..=b'9' => {
                at += bytes[at..]
                    .iter()
                    .take_while(|b| matches!(b, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'))
                    .count();
                let number = &json[begin..at];
                if is_number(number) && !is_kept(number) {
                    out.push_str(&json[kept..begin]);
                    out.extend(["\"", mark(), number, "\""]);
                    kept = at;
                }
            }
            _ => {}
        }
    }
    if kept == 0 {
        return Cow::Borrowed(json);
    }
    out.push_str(&json[kept..]);
    Cow::Owned(out)
}

/// Where a string ends that begins before `at`.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'\\' => at += 1,
            b'"' => break,
            _ => {}
        }
    }
    at
}

fn is_number(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

/// Whether a number is written as it was read.
fn is_kept(number: &str) -> bool {
    // Most are of this kind.
    if number.len() <= 18 && number.bytes().all(|b| b.is_ascii_digit()) {
        return true;
    }
    serde_json::from_str::<Number>(number).is_ok_and(|read| read.to_string() == number)
}

/// JSON with numbers in place of marked strings.
fn restored(json: String) -> String {
    if !json.contains(mark()) {
        return json;
    }
    let start = format!("\"{}", mark());
    let mut out = String::with_capacity(json.len());
    for (n, part) in json.split(&start).enumerate() {
        match part.split_once('"') {
            Some((number, rest)) if n > 0 && is_number(number) => out.extend([number, rest]),
            // Something else took the number's place, such as dots that hide a secret.
            _ if n > 0 => out.extend(["\"", part]),
            _ => out.push_str(part),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_they_were_read() {
        for json in [
            "12345678901234567890123",
            "1e400",
            r#"{"a":[1.10,-0,1E5,1e-7,0.1,-12.50,18446744073709551616],"b":{"1.10":"1.10 \" 2.20"},"c":1.0}"#,
            r#"{"plain":[0,-1,2.5,true,null,"text"]}"#,
        ] {
            assert_eq!(text(&read(json).unwrap()), json);
            assert_eq!(text(&of(&RawValue::from_string(json.to_owned()).unwrap())), json);
            let joined = |text: &str| text.split_whitespace().collect::<String>();
            assert_eq!(joined(&pretty(&read(json).unwrap())), joined(json));
        }
        for wrong in ["01", "1.", "-", "1e", "[1.10", "\"1.10", ""] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert_eq!(marked(r#"{"a":1,"b":"1.10"}"#), r#"{"a":1,"b":"1.10"}"#);
    }

    #[test]
    fn what_took_the_place_of_a_number_is_a_string() {
        let value = Value::String(format!("{}•••", mark()));
        assert_eq!(text(&value), "\"•••\"");
    }
}
