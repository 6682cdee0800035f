//! Serializes the requests and notifications that this side sends.

use crate::features::Features;
use crate::id::Id;
use crate::json::write_str;
use bytes::Bytes;
use linchpin_types::logging::LoggingLevel;
use std::io::Write;

/// Serializes a notification. `members` are the members of `params` without braces; if empty, `params` is left out.
pub fn notification(method: &str, members: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(64 + method.len() + members.len());
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"method\":");
    write_str(&mut out, method);
    if !members.is_empty() {
        out.extend_from_slice(b",\"params\":{");
        out.extend_from_slice(members);
        out.push(b'}');
    }
    out.push(b'}');
    out.into()
}

/// Serializes a request that this side sends. `params` is a whole JSON object.
pub fn request(id: u64, method: &str, params: &str) -> Bytes {
    let mut out = Vec::with_capacity(64 + method.len() + params.len());
    let _ = write!(out, "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":");
    write_str(&mut out, method);
    out.extend_from_slice(b",\"params\":");
    out.extend_from_slice(params.as_bytes());
    out.push(b'}');
    out.into()
}

/// Serializes `notifications/progress` for the request with this token (as JSON text). Numbers that are not finite
/// become 0.
pub fn progress(features: &Features, token: &str, progress: f64, total: Option<f64>, message: Option<&str>) -> Bytes {
    let mut out = Vec::with_capacity(64 + token.len());
    out.extend_from_slice(b"\"progressToken\":");
    out.extend_from_slice(token.as_bytes());
    out.extend_from_slice(b",\"progress\":");
    number(&mut out, progress);
    if let Some(total) = total {
        out.extend_from_slice(b",\"total\":");
        number(&mut out, total);
    }
    if let Some(message) = message.filter(|_| features.progress_message) {
        out.extend_from_slice(b",\"message\":");
        write_str(&mut out, message);
    }
    notification("notifications/progress", &out)
}

/// Serializes `notifications/message`. `data` is JSON text.
pub fn log(level: LoggingLevel, logger: Option<&str>, data: &str) -> Bytes {
    let mut out = Vec::with_capacity(48 + data.len());
    out.extend_from_slice(b"\"level\":");
    write_str(&mut out, level.as_str());
    if let Some(logger) = logger {
        out.extend_from_slice(b",\"logger\":");
        write_str(&mut out, logger);
    }
    out.extend_from_slice(b",\"data\":");
    out.extend_from_slice(data.as_bytes());
    notification("notifications/message", &out)
}

/// Serializes `notifications/cancelled` for a request that this side has sent.
pub fn cancelled(id: u64, reason: &str) -> Bytes {
    let mut out = Vec::new();
    let _ = write!(out, "\"requestId\":{id},\"reason\":");
    write_str(&mut out, reason);
    notification("notifications/cancelled", &out)
}

/// Serializes the first message of a `subscriptions/listen` stream. `granted` are the members of the granted filter,
/// without braces.
pub fn acknowledged(id: &Id, granted: &[u8]) -> Bytes {
    let mut out = Vec::new();
    subscription_meta(&mut out, id);
    out.extend_from_slice(b",\"notifications\":{");
    out.extend_from_slice(granted);
    out.push(b'}');
    notification("notifications/subscriptions/acknowledged", &out)
}

/// Appends `"_meta":{…subscriptionId…}`, without surrounding braces.
pub fn subscription_meta(out: &mut Vec<u8>, id: &Id) {
    out.extend_from_slice(b"\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":");
    out.extend_from_slice(id.as_bytes());
    out.push(b'}');
}

fn number(out: &mut Vec<u8>, n: f64) {
    let n = if n.is_finite() { n } else { 0.0 };
    // Integers are written without a fraction, as strict integer parsers expect.
    let _ = if n.fract() == 0.0 && n.abs() < 9e15 { write!(out, "{}", n as i64) } else { write!(out, "{n}") };
}
