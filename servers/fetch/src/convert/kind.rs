//! The kind of a body, by its content type and its first bytes.

use super::charset::declared;
use encoding_rs::Encoding;

/// The kind of a body, by its type and its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Html,
    Json,
    /// RSS, Atom, or XML that may be one of them.
    Xml,
    Pdf,
    Plain,
    Binary,
}

/// The rule of the published server: `<html` in the first 100 characters, `text/html`, or no type.
pub(crate) fn is_html(text: &str, content_type: &str) -> bool {
    let beginning = text.char_indices().nth(100).map_or(text, |(at, _)| &text[..at]);
    beginning.contains("<html") || content_type.contains("text/html") || content_type.is_empty()
}

/// Detects the kind of a body.
pub(crate) fn kind(body: &[u8], content_type: &str) -> Kind {
    let essence = essence(content_type);
    if body.starts_with(b"%PDF-") || essence == "application/pdf" {
        return Kind::Pdf;
    }
    if is_binary(body, content_type, &essence) {
        return Kind::Binary;
    }
    let beginning = String::from_utf8_lossy(&body[..body.len().min(400)]).to_ascii_lowercase();
    let beginning = beginning.trim_start_matches(['\u{feff}', '\u{fffd}', ' ', '\t', '\r', '\n']);
    let html = |text: &str| text.contains("<html") || text.starts_with("<!doctype html");
    match essence.as_str() {
        "text/html" | "application/xhtml+xml" => Kind::Html,
        "" if beginning.starts_with("<?xml") && !html(beginning) => Kind::Xml,
        "" => Kind::Html,
        _ if is_html(&String::from_utf8_lossy(&body[..body.len().min(400)]), content_type) => Kind::Html,
        "application/json" | "text/json" => Kind::Json,
        "application/xml" | "text/xml" => Kind::Xml,
        other if other.ends_with("+json") => Kind::Json,
        other if other.ends_with("+xml") => Kind::Xml,
        _ => Kind::Plain,
    }
}

/// A content type for errors: only type and subtype, because it is third-party content.
pub(crate) fn type_shown(content_type: &str) -> &str {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    let token =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b));
    match essence.split_once('/') {
        Some((kind, subtype)) if token(kind) && token(subtype) && essence.len() <= TYPE_SHOWN_MAX => essence,
        _ if content_type.trim().is_empty() => "no content type",
        _ => "an unusual content type",
    }
}

const TYPE_SHOWN_MAX: usize = 60;

fn essence(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Whether a body is binary, judged by its first bytes.
fn is_binary(body: &[u8], content_type: &str, essence: &str) -> bool {
    let wide = |encoding: &Encoding| encoding == encoding_rs::UTF_16LE || encoding == encoding_rs::UTF_16BE;
    if Encoding::for_bom(body).is_some() || declared(content_type).is_some_and(wide) {
        return false;
    }
    let beginning = &body[..body.len().min(4_096)];
    let odd = beginning.iter().filter(|b| **b < 0x20 && !b"\t\n\r\x0c\x1b".contains(b)).count();
    if beginning.contains(&0) || odd * 20 > beginning.len() {
        return true;
    }
    let media = ["image/", "audio/", "video/", "font/"].iter().any(|kind| essence.starts_with(kind));
    let packed = ["application/octet-stream", "application/zip", "application/gzip", "application/wasm"];
    // Types that do not imply text are accepted only if the bytes are text.
    (media || packed.contains(&essence)) && std::str::from_utf8(body).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_by_type_and_bytes() {
        use Kind::*;
        for (body, content_type, want) in [
            (&b"<html>"[..], "text/plain", Html),
            (b"<p>x", "text/html; charset=utf-8", Html),
            (b"<p>x", "", Html),
            (b"<?xml version='1.0'?><html>", "application/xhtml+xml", Html),
            (b"<?xml version='1.0'?><rss>", "", Xml),
            (b"<rss>", "application/rss+xml", Xml),
            (b"{}", "application/json", Json),
            (b"{}", "application/ld+json;x=y", Json),
            (b"{}", "text/plain", Plain),
            (b"x", "text/markdown", Plain),
            (b"%PDF-1.7", "application/octet-stream", Pdf),
            (b"x", "application/pdf", Pdf),
            (b"\x89PNG\r\n\x1a\n\0\0", "image/png", Binary),
            (b"\x89PNG", "image/png", Binary),
            (b"<svg/>", "image/svg+xml", Xml),
            (b"a\0b", "text/plain", Binary),
            (b"a\0b\0", "text/plain; charset=utf-16le", Plain),
            (b"\xff\xfea\0", "text/plain", Plain),
            (b"caf\xe9", "text/plain", Plain),
            (b"caf\xe9", "application/octet-stream", Binary),
            (b"cafe", "application/octet-stream", Plain),
            (b"\x1f\x8b\x08\0", "application/gzip", Binary),
            (b"", "text/html", Html),
            (b"", "", Html),
        ] {
            assert_eq!(kind(body, content_type), want, "{content_type} {body:?}");
        }
    }
}
