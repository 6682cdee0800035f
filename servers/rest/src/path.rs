//! Paths of requests: a template of the table, and values that can never leave their segment.

use crate::arg::{Arg, Kind, Slashes};
use linchpin_kit::ToolError;
use percent_encoding::percent_decode_str;
use url::Url;

/// Maximum bytes of a value in a path.
const VALUE_BYTES_MAX: usize = 2_000;

/// The names in a template: `/repos/{owner}/{repo}` has two.
pub(crate) fn names(template: &str) -> impl Iterator<Item = &str> {
    template.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name)
}

/// Adds the path of a template to a URL.
///
/// No text becomes a part of a URL as it is: values are checked (also what they are when they are decoded), and each segment
/// is encoded. A template may have several names in a segment: `/compare/{base}...{head}`.
pub(crate) fn extend(url: &mut Url, template: &str, values: &[(&str, Slashes, String)]) -> Result<(), ToolError> {
    let mut segments = Vec::new();
    for part in template.split('/').filter(|part| !part.is_empty()) {
        // A value that is several segments ends one and begins another.
        let (mut segment, mut rest) = (String::new(), part);
        while let Some((before, (name, after))) =
            rest.split_once('{').map(|(b, r)| (b, r.split_once('}').unwrap_or((r, ""))))
        {
            let found = values.iter().find(|(known, ..)| *known == name);
            let Some((_, slashes, value)) = found else {
                return Err(ToolError::invalid(format!("Missing required argument: {name}")));
            };
            let bad = |why: &str| ToolError::invalid(format!("Invalid argument {name}: {why}"));
            if value.len() > VALUE_BYTES_MAX {
                return Err(bad("it is too long"));
            }
            segment.push_str(before);
            if *slashes == Slashes::Separate {
                for (n, one) in value.split('/').enumerate() {
                    safe(one, false).map_err(bad)?;
                    if n > 0 {
                        segments.push(std::mem::take(&mut segment));
                    }
                    segment.push_str(one);
                }
            } else {
                safe(value, *slashes == Slashes::Encoded).map_err(bad)?;
                segment.push_str(value);
            }
            rest = after;
        }
        segments.push(segment + rest);
    }
    // Some servers know an address only with its last slash.
    if !segments.is_empty() && template.ends_with('/') {
        segments.push(String::new());
    }
    let mut path = url.path_segments_mut().map_err(|()| ToolError::invalid("The base URL cannot have a path"))?;
    path.pop_if_empty().extend(segments);
    Ok(())
}

/// Whether a text is the path of a file, none of whose names leads elsewhere: for [`Arg::like`], where a path is not part of the
/// URL.
///
/// ```
/// assert!(linchpin_rest::is_path("src/main.rs"));
/// assert!(!["../x", "a/%2e%2e/b", "/a", "a//b", ""].into_iter().any(linchpin_rest::is_path));
/// ```
#[must_use]
pub fn is_path(text: &str) -> bool {
    text.len() <= VALUE_BYTES_MAX && text.split('/').all(|name| safe(name, false).is_ok())
}

/// Why a value is not a segment. It is checked as it is and as a server that decodes it, once or several times, would see it.
fn safe(value: &str, slashes: bool) -> Result<(), &'static str> {
    let mut seen = value.to_owned();
    loop {
        if seen.trim().is_empty() {
            return Err("it is empty");
        }
        if seen.chars().any(char::is_control) {
            return Err("it has control characters");
        }
        if !slashes && seen.contains(['/', '\\']) {
            return Err("it has a slash");
        }
        // Some servers cut a segment at its first semicolon.
        let name = |part: &str| part.split(';').next().unwrap_or_default().trim().to_owned();
        if seen.split(['/', '\\']).any(|part| matches!(name(part).as_str(), "." | "..") || slashes && part.is_empty()) {
            return Err("it is not one name");
        }
        let decoded = percent_decode_str(&seen).decode_utf8_lossy().into_owned();
        if decoded == seen {
            return Ok(());
        }
        seen = decoded;
    }
}

/// How the slashes of a path's values are meant, by the row's arguments.
pub(crate) fn slashes(args: &[Arg], name: &str) -> Slashes {
    let arg = args.iter().find(|arg| arg.wire_name() == name || arg.name == name);
    match arg.map(|arg| arg.kind) {
        Some(Kind::Segment(slashes)) => slashes,
        _ => Slashes::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(template: &str, slashes: Slashes, value: &str) -> Result<String, String> {
        let mut url = Url::parse("https://api.example/v3").unwrap();
        extend(&mut url, template, &[("x", slashes, value.to_owned())]).map_err(|e| e.message().to_owned())?;
        Ok(url.to_string())
    }

    #[test]
    fn values_stay_in_their_segment() {
        for (value, want) in [
            ("a", "https://api.example/v3/s/a/t"),
            ("a b#c?.txt", "https://api.example/v3/s/a%20b%23c%3F.txt/t"),
            ("x&y=1;z", "https://api.example/v3/s/x&y=1;z/t"),
            ("100%", "https://api.example/v3/s/100%25/t"),
            ("a%20b", "https://api.example/v3/s/a%2520b/t"),
            ("...", "https://api.example/v3/s/.../t"),
            ("ä{y}", "https://api.example/v3/s/%C3%A4%7By%7D/t"),
            ("https://evil.example", ""),
            ("..", ""),
            (".", ""),
            ("", ""),
            ("%2e%2e", ""),
            ("%252E%2e", ""),
            ("a/b", ""),
            ("a%2fb", ""),
            ("a\\b", ""),
            ("a%5Cb", ""),
            ("..%00", ""),
            ("a\nb", ""),
            (" .. ", ""),
            ("..;x", ""),
            (" ", ""),
            ("@evil.example/", ""),
        ] {
            assert_eq!(url("/s/{x}/t", Slashes::Refused, value).unwrap_or_default(), want, "{value:?}");
        }
    }

    #[test]
    fn a_last_slash_stays() {
        let kind = Slashes::Refused;
        assert_eq!(url("/s/{x}/", kind, "a").unwrap(), "https://api.example/v3/s/a/");
        assert!(url("/s/{x}/", kind, "").is_err());
        assert_eq!(url("/", kind, "a").unwrap(), "https://api.example/v3");
    }

    #[test]
    fn paths_of_files_are_many_segments_and_projects_are_one() {
        let (file, project) = (Slashes::Separate, Slashes::Encoded);
        assert_eq!(url("/c/{x}", file, "src/a b.rs").unwrap(), "https://api.example/v3/c/src/a%20b.rs");
        assert_eq!(url("/p/{x}", project, "group/sub").unwrap(), "https://api.example/v3/p/group%2Fsub");
        assert_eq!(url("/kb/{x}:retrieve", Slashes::Refused, "A1").unwrap(), "https://api.example/v3/kb/A1:retrieve");
        for bad in ["../x", "a/../b", "a/%2e%2e/b", "/a", "a/", "a//b", "", "..", "a/./b"] {
            assert!(url("/c/{x}", file, bad).is_err(), "{bad}");
            assert!(url("/p/{x}", project, bad).is_err(), "{bad}");
        }
        assert!(url("/c/{y}", file, "a").is_err());
        assert_eq!(url("/c/{x}...{x}.diff", Slashes::Refused, "a").unwrap(), "https://api.example/v3/c/a...a.diff");
        assert_eq!(url("/c/{x}:{x}/d", file, "a/b").unwrap(), "https://api.example/v3/c/a/b:a/b/d");
    }
}
