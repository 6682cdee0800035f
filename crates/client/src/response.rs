//! A successful response.

use crate::Result;
use crate::error::{Error, ErrorKind};
use bytestring::ByteString;
use linchpin_core::json::{Span, read_str};
use linchpin_core::message::{Message, ResultMembers};
use linchpin_types::page::ResultType;

/// A successful response.
pub(crate) struct Response {
    /// The id of its request, which is the token of its progress.
    pub(crate) id: u64,
    pub(crate) message: Message,
    pub(crate) result: Span,
    /// Always [`ResultType::Complete`] in revisions without `resultType`.
    pub(crate) result_type: ResultType,
}

/// The JSON text of a result, and the positions of its members.
#[derive(Clone)]
pub struct ResultText {
    pub(crate) text: ByteString,
    pub(crate) members: ResultMembers,
}

impl Response {
    pub(crate) fn text(&self) -> &str {
        self.message.text(self.result)
    }

    /// Returns the JSON text of a member of the result.
    pub(crate) fn member(&self, member: impl FnOnce(&ResultMembers) -> Option<Span>) -> Option<&str> {
        member(self.message.result()).map(|span| self.message.text(span))
    }

    /// Returns where the members of the result are in its text.
    pub(crate) fn members(&self) -> ResultMembers {
        self.message.result().within(self.result)
    }

    /// Returns how long the result may be cached, from its `ttlMs`.
    pub(crate) fn ttl_ms(&self) -> u64 {
        let ttl_ms = self.member(|members| members.ttl_ms).and_then(|ms| ms.parse::<f64>().ok());
        ttl_ms.filter(|ms| *ms > 0.0).map_or(0, |ms| ms as u64)
    }

    /// Returns the result, which shares the message's memory.
    pub(crate) fn into_text(self) -> ResultText {
        let bytes = self.message.frame().as_bytes().slice(self.result.range());
        // A part of UTF-8 text between two JSON tokens is valid UTF-8.
        let text = ByteString::try_from(bytes).unwrap_or_default();
        ResultText { text, members: self.members() }
    }
}

/// Returns the `resultType`. A missing one means complete.
pub(crate) fn result_type(message: &Message) -> Result<ResultType> {
    match message.result().result_type.map(|span| message.text(span)) {
        None | Some("null") => Ok(ResultType::Complete),
        Some(value) => read_str(value)
            .map(|name| ResultType::from(name.into_owned()))
            .ok_or_else(|| unknown_type(&value.chars().take(80).collect::<String>())),
    }
}

pub(crate) fn unknown_type(value: &str) -> Error {
    let why = format!(
        "the server answered with a result whose `resultType` is {value}, so it is not used: this client knows \"complete\" \
         and \"input_required\", and \"task\" for calls of clients that declare tasks"
    );
    Error::new(ErrorKind::InvalidResponse, why)
}
