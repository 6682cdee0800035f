//! Headers that are kept for long: as text, until somebody asks for them.

use http::{HeaderMap, HeaderName, HeaderValue};
use std::sync::OnceLock;

/// The headers of a request whose call may become a task. A `HeaderMap` would keep 100 bytes for each, and the transport's read
/// buffer with their values.
pub(crate) struct KeptHeaders {
    /// `name:value`, a line each. A space before the name marks a value that is sensitive.
    text: Box<[u8]>,
    map: OnceLock<Box<HeaderMap>>,
}

impl KeptHeaders {
    pub(crate) fn new(headers: &HeaderMap) -> KeptHeaders {
        let line = |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len() + 3;
        let mut text = Vec::with_capacity(headers.iter().map(line).sum());
        for (name, value) in headers {
            text.extend_from_slice(if value.is_sensitive() { b" " } else { b"" });
            text.extend_from_slice(name.as_str().as_bytes());
            text.push(b':');
            text.extend_from_slice(value.as_bytes());
            text.push(b'\n');
        }
        KeptHeaders { text: text.into(), map: OnceLock::new() }
    }

    pub(crate) fn map(&self) -> &HeaderMap {
        self.map.get_or_init(|| Box::new(self.read()))
    }

    fn read(&self) -> HeaderMap {
        let mut map = HeaderMap::new();
        for line in self.text.split(|byte| *byte == b'\n') {
            let (is_sensitive, line) = line.strip_prefix(b" ").map_or((false, line), |line| (true, line));
            let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
            if let (Ok(name), Ok(mut value)) =
                (HeaderName::from_bytes(&line[..colon]), HeaderValue::from_bytes(&line[colon + 1..]))
            {
                value.set_sensitive(is_sensitive);
                map.append(name, value);
            }
        }
        map
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_the_same_when_they_are_read_again() {
        let mut headers = HeaderMap::new();
        assert_eq!(KeptHeaders::new(&headers).map(), &headers);
        for (name, value) in [("host", "localhost:80"), ("x-mark", ""), ("x-mark", "two: \t\u{e9}"), ("via", " a")] {
            headers.append(name, HeaderValue::from_bytes(value.as_bytes()).expect("a value"));
        }
        let mut secret = HeaderValue::from_static("Bearer t");
        secret.set_sensitive(true);
        headers.insert("authorization", secret);
        let kept = KeptHeaders::new(&headers);
        assert_eq!(kept.map(), &headers);
        assert!(kept.map()["authorization"].is_sensitive() && !kept.map()["host"].is_sensitive());
    }
}
