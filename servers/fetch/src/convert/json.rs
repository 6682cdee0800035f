//! JSON as it is easy to read.

/// JSON indented by two spaces; `None` if it is invalid, nested too deeply, or would become too large. Members keep
/// their order and numbers their digits.
pub(crate) fn pretty(text: &str) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(pretty(text).as_deref(), Some(want));
        }
        for bad in ["{", "{}x", "", &"[".repeat(200), &format!("{}{}", "[".repeat(100), "]".repeat(100))] {
            assert_eq!(pretty(bad), None);
        }
        // Many levels on many lines would be indentation only.
        let deep = format!("{}{}{}", "[".repeat(60), "1,".repeat(10_000) + "1", "]".repeat(60));
        assert_eq!(pretty(&deep), None);
    }
}
