//! Text arguments without a copy.

use bytestring::ByteString;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;
use std::ops::Deref;

/// A string argument that shares the memory of the received message, without a copy.
///
/// Use it instead of `String` for large texts. It keeps the whole message in memory while it lives. A text with JSON
/// escapes is copied.
///
/// ```
/// # use linchpin_server::{Server, Text};
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Document { body: Text }
///
/// let server = Server::new("words", "1.0")
///     .tool(("count", "Counts words."), |q: Document| q.body.as_str().split_whitespace().count().to_string());
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Text(ByteString);

/// Texts in messages shorter than this are copied.
const WORTH_BYTES: usize = 4 << 10;

thread_local! {
    /// The message whose arguments are being decoded on this thread.
    static MESSAGE: RefCell<Option<ByteString>> = const { RefCell::new(None) };
}

/// Decodes with `message` available for sharing.
pub(crate) fn within<R>(message: &ByteString, decode: impl FnOnce() -> R) -> R {
    if message.len() < WORTH_BYTES {
        return decode();
    }
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            MESSAGE.set(None);
        }
    }
    MESSAGE.set(Some(message.clone()));
    let _reset = Reset;
    decode()
}

impl Text {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn sharing(part: &str) -> Text {
        MESSAGE.with_borrow(|message| match message {
            Some(message) if message.as_bytes().as_ptr_range().contains(&part.as_ptr()) => {
                Text(message.slice_ref(part))
            }
            _ => Text(part.into()),
        })
    }
}

impl Deref for Text {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text(text.into())
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text(text.into())
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text, E> {
                Ok(Text::sharing(text))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Text, E> {
                Ok(text.into())
            }
            fn visit_string<E: Error>(self, text: String) -> Result<Text, E> {
                Ok(text.into())
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

impl JsonSchema for Text {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "String".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_texts_share_the_message_and_others_are_copied() {
        let long = "x".repeat(WORTH_BYTES);
        let message: ByteString = format!(r#"["{long}","a\nb"]"#).into();
        let texts: Vec<Text> = within(&message, || serde_json::from_str(&message).unwrap());
        assert_eq!((texts[0].as_str(), texts[1].as_str()), (long.as_str(), "a\nb"));
        assert_eq!(texts[0].as_ptr(), message[2..].as_ptr(), "not copied");
        let elsewhere = format!("\"{long}\"");
        let text: Text = within(&message, || serde_json::from_str(&elsewhere).unwrap());
        assert_eq!(text.as_str(), long, "a text of another message is copied");
        assert!(MESSAGE.with_borrow(Option::is_none));
    }
}
