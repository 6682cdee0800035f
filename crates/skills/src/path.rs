//! Names of skills and files, and their URIs.

use crate::limits::NAME_CHARS_MAX;

/// The file that every skill has.
pub(crate) const SKILL_MD: &str = "SKILL.md";

/// Whether it is the name of a skill: 1 to 64 of `a-z`, `0-9` and single inner hyphens.
pub(crate) fn is_skill_name(name: &str) -> bool {
    let letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    (1..=NAME_CHARS_MAX).contains(&name.len())
        && name.split('-').all(|part| !part.is_empty() && part.bytes().all(letter))
}

/// Returns why a name, as one segment of a path, is not portable to all systems; `None` if it is.
///
/// A server does not serve a skill that contains a file with such a name, and a host does not write one.
///
/// ```
/// use linchpin_skills::refused_name;
///
/// assert!(refused_name("faq.md").is_none());
/// assert!(refused_name("con.txt").is_some() && refused_name("..").is_some());
/// ```
pub fn refused_name(name: &str) -> Option<&'static str> {
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_ascii_uppercase();
    let numbered = |prefix: &str| {
        stem.strip_prefix(prefix).is_some_and(|n| n.len() == 1 && n != "0" && n.as_bytes()[0].is_ascii_digit())
    };
    if name.is_empty() || name == "." || name == ".." {
        Some("it is not a name")
    } else if name.len() > 255 {
        Some("it is longer than 255 bytes")
    } else if name.chars().any(|c| c.is_control() || "<>:\"/\\|?*".contains(c)) {
        Some("it contains a character that some systems do not allow")
    } else if name.ends_with(['.', ' ']) || name.starts_with(' ') {
        Some("it begins or ends with a space, or ends with a dot")
    } else if matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL") || numbered("COM") || numbered("LPT") {
        Some("it is the name of a device on Windows")
    } else if name.chars().any(is_combining) {
        Some("it contains letters written as two characters; write them as one (NFC)")
    } else {
        None
    }
}

/// Marks that make another letter of the one before: some systems write them as one character, others as two.
fn is_combining(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}' | '\u{3099}' | '\u{309a}')
}

#[cfg(feature = "serve")]
/// How names are compared where case does not count.
pub(crate) fn folded(path: &str) -> String {
    path.to_lowercase()
}

/// The URI of a path below the root of all skills.
#[cfg(feature = "serve")]
pub(crate) fn uri(path: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(path.len() + 8);
    out.push_str("skill://");
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/!$&'()*+,;=@".contains(&byte) {
            out.push(byte.into());
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// The root of the skill whose `SKILL.md` has this URI, without a slash at its end.
#[cfg(feature = "host")]
pub(crate) fn root_of(skill_md: &str) -> Option<&str> {
    skill_md.strip_suffix(SKILL_MD)?.strip_suffix('/').filter(|root| {
        root.split_once("://")
            .is_some_and(|(scheme, path)| !scheme.is_empty() && !path.is_empty() && !path.starts_with('/'))
    })
}

/// The path of a URI below `root`, decoded. `None` if it is not below it, or not plainly so.
#[cfg(feature = "host")]
pub(crate) fn below(root: &str, uri: &str) -> Option<String> {
    let path = uri.strip_prefix(root)?.strip_prefix('/')?;
    if path.contains(['?', '#', '\\']) {
        return None;
    }
    let decoded: Option<Vec<String>> = path.split('/').map(decode).collect();
    let plain = |segment: &String| {
        !segment.is_empty() && segment != "." && segment != ".." && !segment.contains(['/', '\\', '\0'])
    };
    decoded.filter(|segments| segments.iter().all(plain)).map(|segments| segments.join("/"))
}

/// Decodes percent encoding.
#[cfg(feature = "host")]
pub(crate) fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        rest = more;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let hex = std::str::from_utf8(rest.get(..2)?).ok().filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(hex, 16).ok()?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).ok()
}

/// The media type of a file by its name. `None` if only its bytes tell.
#[cfg(feature = "serve")]
pub(crate) fn media_type(name: &str) -> Option<&'static str> {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase())?;
    Some(match extension.as_str() {
        "md" | "markdown" => "text/markdown",
        "txt" | "log" => "text/plain",
        "py" => "text/x-python",
        "js" | "mjs" | "cjs" => "text/javascript",
        "ts" => "text/x-typescript",
        "rs" => "text/x-rust",
        "sh" | "bash" => "text/x-shellscript",
        "html" | "htm" => "text/html",
        "css" => "text/css",
        "csv" => "text/csv",
        "json" => "application/json",
        "yaml" | "yml" => "application/yaml",
        "toml" => "application/toml",
        "xml" => "application/xml",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "svg" => "image/svg+xml",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_skills_are_lower_case_words_with_single_hyphens() {
        let long = "a".repeat(64);
        for name in ["a", "pdf-processing", "a1-2b", &long] {
            assert!(is_skill_name(name), "{name}");
        }
        for name in ["", "A", "a_b", "-a", "a-", "a--b", "a b", "é", "a/b", "..", &format!("{long}a")] {
            assert!(!is_skill_name(name), "{name}");
        }
    }

    #[test]
    fn names_that_some_systems_cannot_keep_are_refused() {
        for name in ["a.md", "COM10", "COM0", "console.txt", "ä.md", "名前", "a b.md", "-rf"] {
            assert_eq!(refused_name(name), None, "{name}");
        }
        let long = "x".repeat(256);
        for name in [
            "",
            ".",
            "..",
            "a/b",
            "a\\b",
            "a:b",
            "a\0",
            "a\n",
            "a.",
            "a ",
            " a",
            "CON",
            "con.txt",
            "nul .md",
            "lpt9",
            "COM1.tar.gz",
            "a\u{308}.md",
            &long,
        ] {
            assert!(refused_name(name).is_some(), "{name}");
        }
    }

    #[cfg(all(feature = "serve", feature = "host"))]
    #[test]
    fn a_uri_says_where_a_file_is_below_its_skill_and_nothing_else_does() {
        assert_eq!(uri("a b/ü%.md"), "skill://a%20b/%C3%BC%25.md");
        assert_eq!(below("skill://a%20b", &uri("a b/ü%.md")).as_deref(), Some("ü%.md"));
        for uri in [
            "skill://a",
            "skill://a/",
            "skill://ab/c",
            "skill://a//c",
            "skill://a/../c",
            "skill://a/%2e%2E/c",
            "skill://a/b%2fc",
            "skill://a/b%5Cc",
            "skill://a/b?c",
            "skill://a/b#c",
            "skill://A/b",
            "skill://a/%zz",
            "skill://a/%ff",
            "other://a/b",
        ] {
            assert_eq!(below("skill://a", uri), None, "{uri}");
        }
        assert_eq!(root_of("skill://a/b/SKILL.md"), Some("skill://a/b"));
        for uri in [
            "skill://SKILL.md",
            "skill:///SKILL.md",
            "SKILL.md",
            "skill://a/skill.md",
            "skill://a/XSKILL.md",
            "://a/SKILL.md",
        ] {
            assert_eq!(root_of(uri), None, "{uri}");
        }
    }
}
