//! From bytes to text: content types, encodings, JSON formatting, and the work budget.

use bytes::Bytes;
use encoding_rs::Encoding;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use std::borrow::Cow;
use std::cell::Cell;
use std::io::Read;
use std::time::Instant;

/// The work budget of a conversion: a deadline, and the units of the current part. A unit is about one byte processed.
/// Everything that can be superlinear in the size of the page takes from it, and stops when it is used up.
#[derive(Debug)]
pub(crate) struct Work {
    deadline: Instant,
    left: Cell<usize>,
    over: Cell<bool>,
    late: Cell<bool>,
    /// Units since the last check of the clock.
    unseen: Cell<usize>,
    #[cfg(test)]
    spent: Cell<usize>,
    /// Replaces the clock in tests: the time is up when this much was spent.
    #[cfg(test)]
    late_after: usize,
}

/// Units between two checks of the clock: well below a millisecond.
const LOOK_UNITS: usize = 8 << 10;

impl Work {
    pub(crate) fn until(deadline: Instant) -> Self {
        let (left, unseen) = (Cell::new(usize::MAX), Cell::new(LOOK_UNITS));
        Work {
            deadline,
            left,
            over: Cell::new(false),
            late: Cell::new(false),
            unseen,
            #[cfg(test)]
            spent: Cell::new(0),
            #[cfg(test)]
            late_after: usize::MAX,
        }
    }

    /// A budget whose time is up when this much was spent.
    #[cfg(test)]
    pub(crate) fn late_after(units: usize) -> Self {
        let deadline = Instant::now() + std::time::Duration::from_secs(3_600);
        Work { late_after: units, ..Work::until(deadline) }
    }

    /// Starts another part of the work with this many units.
    pub(crate) fn begin(&self, units: usize) {
        self.left.set(units);
        self.over.set(false);
    }

    /// Spends units; `false` if the budget is used up or the time is up.
    pub(crate) fn spend(&self, units: usize) -> bool {
        let units = units.saturating_add(1);
        #[cfg(test)]
        self.spent.set(self.spent.get().saturating_add(units));
        match self.left.get().checked_sub(units) {
            Some(left) => self.left.set(left),
            None => self.over.set(true),
        }
        self.unseen.set(self.unseen.get().saturating_add(units));
        if self.unseen.get() >= LOOK_UNITS {
            self.unseen.set(0);
            self.is_late();
        }
        !self.is_over()
    }

    /// Whether the budget is used up.
    pub(crate) fn is_over(&self) -> bool {
        self.over.get() || self.late.get()
    }

    /// Checks the clock.
    pub(crate) fn is_late(&self) -> bool {
        #[cfg(test)]
        if self.spent.get() > self.late_after {
            self.late.set(true);
        }
        self.late.set(self.late.get() || Instant::now() > self.deadline);
        self.late.get()
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The total spent.
    #[cfg(test)]
    pub(crate) fn spent(&self) -> usize {
        self.spent.get()
    }
}

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

/// The encoding named by a content type, if it is in the WHATWG list. Others, such as UTF-7, which can hide content,
/// and DOS code pages, are ignored.
fn declared(content_type: &str) -> Option<&'static Encoding> {
    let lower = content_type.to_ascii_lowercase();
    let at = lower.find("charset=")? + "charset=".len();
    let label = content_type[at..].trim_start_matches(['"', '\'', ' ']);
    let end = label.find(['"', '\'', ';', ' ', ',']).unwrap_or(label.len());
    Encoding::for_label(&label.as_bytes()[..end])
}

/// The encoding declared in the first bytes of a document: `<meta charset>`, or the XML declaration.
fn in_document(body: &[u8]) -> Option<&'static Encoding> {
    let beginning = String::from_utf8_lossy(&body[..body.len().min(2_048)]).to_ascii_lowercase();
    let after = |what: &str| {
        let at = beginning.find(what)? + what.len();
        let label = beginning[at..].trim_start_matches([' ', '=', '"', '\'']);
        let end = label.find(['"', '\'', ';', ' ', '>', '/', '?']).unwrap_or(label.len());
        Encoding::for_label(&label.as_bytes()[..end])
    };
    let found = if beginning.contains("<meta") { after("charset") } else { None };
    let found = found.or_else(|| beginning.trim_start().starts_with("<?xml").then(|| after("encoding")).flatten());
    // A declaration in ASCII cannot be UTF-16 (a WHATWG rule).
    found.map(|encoding| match encoding == encoding_rs::UTF_16LE || encoding == encoding_rs::UTF_16BE {
        true => encoding_rs::UTF_8,
        false => encoding,
    })
}

/// Decodes a body, and returns the name of its encoding: by byte order mark, content type, document, valid UTF-8, or
/// else the likeliest.
pub(crate) fn decode(body: &[u8], content_type: &str) -> (String, &'static str) {
    let named = declared(content_type).or_else(|| in_document(body));
    let encoding = match named {
        Some(encoding) => encoding,
        None if Encoding::for_bom(body).is_some() || std::str::from_utf8(body).is_ok() => encoding_rs::UTF_8,
        None => {
            let mut detector = chardetng::EncodingDetector::new(chardetng::Iso2022JpDetection::Deny);
            detector.feed(&body[..body.len().min(256 << 10)], true);
            detector.guess(None, chardetng::Utf8Detection::Deny)
        }
    };
    let (text, encoding, _) = encoding.decode(body);
    (text.into_owned(), encoding.name())
}

/// Decodes like the published server: the declared encoding or UTF-8.
pub(crate) fn decode_published(body: &[u8], content_type: &str) -> (String, &'static str) {
    let encoding = declared(content_type).unwrap_or(encoding_rs::UTF_8);
    let (text, _) = encoding.decode_without_bom_handling(body);
    (text.into_owned(), encoding.name())
}

/// Maximum content codings of a body; legitimate pages have at most two.
pub(crate) const CODINGS_MAX: usize = 3;

/// Why a body cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packed {
    /// Too many content codings.
    Often,
    /// A coding that is supported only as the only one.
    Unread,
    Broken,
    TooLong,
}

/// Decodes the content codings of a body, last first; each output has at most `bytes_max` bytes. A truncated body, or
/// one that is not `whole`, is decoded as far as possible. Unknown codings are ignored.
///
/// # Errors
/// When it cannot be decoded.
pub(crate) fn unpack(body: Bytes, codings: &[String], bytes_max: usize, whole: bool) -> Result<Bytes, Packed> {
    let known = ["gzip", "x-gzip", "deflate", "br", "zstd"];
    let codings: Vec<&str> = codings.iter().map(String::as_str).filter(|coding| known.contains(coding)).collect();
    if codings.len() > CODINGS_MAX {
        return Err(Packed::Often);
    }
    if codings.iter().any(|coding| ["br", "zstd"].contains(coding)) {
        return Err(Packed::Unread);
    }
    let mut bytes = body;
    for coding in codings.into_iter().rev() {
        let input = &bytes[..];
        // `deflate` comes with or without a zlib header.
        let zlib =
            input.len() > 1 && input[0] & 15 == 8 && (usize::from(input[0]) * 256 + usize::from(input[1])) % 31 == 0;
        let unpacked: Box<dyn Read> = match coding {
            "deflate" if zlib => Box::new(ZlibDecoder::new(input)),
            "deflate" => Box::new(DeflateDecoder::new(input)),
            _ => Box::new(MultiGzDecoder::new(input)),
        };
        let mut out = Vec::new();
        let read = unpacked.take((bytes_max as u64).saturating_add(1)).read_to_end(&mut out);
        match read {
            Err(_) if whole => return Err(Packed::Broken),
            // The header names a coding that was not applied.
            Err(_) if out.is_empty() => continue,
            _ => {}
        }
        if whole && out.len() > bytes_max {
            return Err(Packed::TooLong);
        }
        out.truncate(bytes_max);
        bytes = out.into();
    }
    Ok(bytes)
}

/// JSON indented by two spaces; `None` if it is invalid, nested too deeply, or would become too large. Members keep
/// their order and numbers their digits.
pub(crate) fn pretty_json(text: &str) -> Option<String> {
    serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
    let bytes_max = text.len().saturating_mul(8) + 1_024;
    let mut out = String::with_capacity(text.len() * 2);
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    let newline = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if in_string {
            out.push(c);
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            ' ' | '\t' | '\r' | '\n' => {}
            '"' => {
                in_string = true;
                out.push(c);
            }
            '{' | '[' => {
                while chars.next_if(char::is_ascii_whitespace).is_some() {}
                out.push(c);
                if let Some(end) = chars.next_if(|next| *next == '}' || *next == ']') {
                    out.push(end);
                    continue;
                }
                depth += 1;
                newline(&mut out, depth);
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                newline(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                newline(&mut out, depth);
            }
            ':' => out.push_str(": "),
            other => out.push(other),
        }
        if depth > JSON_DEPTH_MAX || out.len() > bytes_max {
            return None;
        }
    }
    Some(out)
}

const JSON_DEPTH_MAX: usize = 64;

/// Escapes tags named `error`: only the server writes `<error>…</error>`.
pub(crate) fn without_marks(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut done = 0;
    for (at, _) in text.match_indices('<') {
        let rest = text[at + 1..].trim_start().trim_start_matches('/').trim_start();
        let marked = rest.get(..5).is_some_and(|word| word.eq_ignore_ascii_case("error"))
            && !rest[5..].starts_with(|c: char| c.is_alphanumeric() || c == '-' || c == '_');
        if marked {
            out.push_str(&text[done..at]);
            out.push_str("&lt;");
            done = at + 1;
        }
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
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

    #[test]
    fn charsets_are_found_where_pages_name_them() {
        for (body, content_type, text) in [
            (&b"caf\xe9"[..], "text/plain; charset=iso-8859-1", "café"),
            (b"caf\xe9", "text/plain; charset=\"ISO-8859-1\"", "café"),
            ("café".as_bytes(), "text/plain", "café"),
            ("café".as_bytes(), "text/plain; charset=nonsense", "café"),
            (b"\xef\xbb\xbfx", "text/plain; charset=iso-8859-1", "x"),
            (b"\xff\xfea\0\xe9\0", "text/plain", "aé"),
            (b"<meta charset=windows-1252>\x80", "text/html", "<meta charset=windows-1252>€"),
            (
                b"<meta http-equiv=Content-Type content=\"text/html; charset=koi8-r\">\xd7",
                "text/html",
                "<meta http-equiv=Content-Type content=\"text/html; charset=koi8-r\">в",
            ),
            (
                b"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\xe9",
                "text/xml",
                "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>é",
            ),
            (b"<meta charset=utf-16>\xc3\xa9", "text/html", "<meta charset=utf-16>é"),
            (b"na\xefve caf\xe9 fa\xe7ade d\xe9j\xe0 vu", "text/plain", "naïve café façade déjà vu"),
            (b"\x82\xb1\x82\xf1\x82\xc9\x82\xbf\x82\xcd\x90\xa2\x8a\x45", "text/plain", "こんにちは世界"),
        ] {
            assert_eq!(decode(body, content_type).0, text, "{content_type}");
        }
        assert_eq!(decode_published(b"caf\xe9", "text/plain").0, "caf\u{fffd}");
    }

    #[test]
    fn json_is_laid_out_without_changing_what_it_says() {
        for (text, want) in [
            (
                "{\"b\":1,\"a\":[1.50,1e400,{}],\"s\":\"x,{}\\\"y\"}",
                "{\n  \"b\": 1,\n  \"a\": [\n    1.50,\n    1e400,\n    {}\n  ],\n  \"s\": \"x,{}\\\"y\"\n}",
            ),
            ("[ ]", "[]"),
            (" [ 1 , \"a b\" ] ", "[\n  1,\n  \"a b\"\n]"),
            ("null", "null"),
        ] {
            assert_eq!(pretty_json(text).as_deref(), Some(want));
        }
        for bad in ["{", "{}x", "", &"[".repeat(200), &format!("{}{}", "[".repeat(100), "]".repeat(100))] {
            assert_eq!(pretty_json(bad), None);
        }
        // Many levels on many lines would be indentation only.
        let deep = format!("{}{}{}", "[".repeat(60), "1,".repeat(10_000) + "1", "]".repeat(60));
        assert_eq!(pretty_json(&deep), None);
    }

    #[test]
    fn only_we_say_error() {
        for (text, want) in [
            ("a </error> b", "a &lt;/error> b"),
            ("<ERROR>Content truncated", "&lt;ERROR>Content truncated"),
            ("< / error x>", "&lt; / error x>"),
            ("<error/>", "&lt;error/>"),
            ("<errors> <error-code> a<b é<", "<errors> <error-code> a<b é<"),
        ] {
            assert_eq!(without_marks(text), want);
        }
    }
}
