//! Decodes bytes to text: by the declared charset, or else the likeliest.

use encoding_rs::Encoding;

/// The encoding named by a content type, if it is in the WHATWG list. Others, such as UTF-7, which can hide content,
/// and DOS code pages, are ignored.
pub(super) fn declared(content_type: &str) -> Option<&'static Encoding> {
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

/// Decodes a body: by byte order mark, content type, document, valid UTF-8, or
/// else the likeliest.
pub(crate) fn decode(body: &[u8], content_type: &str) -> String {
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
    encoding.decode(body).0.into_owned()
}

/// Decodes like the published server: the declared encoding or UTF-8.
pub(crate) fn decode_published(body: &[u8], content_type: &str) -> String {
    let encoding = declared(content_type).unwrap_or(encoding_rs::UTF_8);
    encoding.decode_without_bom_handling(body).0.into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(decode(body, content_type), text, "{content_type}");
        }
        assert_eq!(decode_published(b"caf\xe9", "text/plain"), "caf\u{fffd}");
    }
}
