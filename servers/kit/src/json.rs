//! The layout of JSON text. Numbers keep their digits and members their order, which reading and writing values loses.

/// The text without white space between its parts.
///
/// ```
/// assert_eq!(linchpin_kit::json::compact("{ \"a b\": [1.50,\n 2] }"), "{\"a b\":[1.50,2]}");
/// ```
#[must_use]
pub fn compact(json: &str) -> String {
    let mut parts = Parts::default();
    json.chars().filter(|c| parts.is_kept(*c)).collect()
}

/// The text indented by two spaces, as `JSON.stringify(value, null, 2)` does.
///
/// ```
/// assert_eq!(linchpin_kit::json::pretty("{\"a\":[1.50,{}]}"), "{\n  \"a\": [\n    1.50,\n    {}\n  ]\n}");
/// ```
#[must_use]
pub fn pretty(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    write_pretty(json, 0, usize::MAX, &mut out);
    out
}

/// Appends the indented text of something at this depth. Stops when `out` becomes longer than `bytes_max`: then the result is
/// `false`.
pub fn write_pretty(json: &str, mut depth: usize, bytes_max: usize, out: &mut String) -> bool {
    let mut parts = Parts::default();
    let mut chars = json.chars().filter(|c| parts.is_kept(*c)).peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    let mut inside = Parts::default();
    while let Some(c) = chars.next() {
        inside.is_kept(c);
        match c {
            _ if inside.string || c == '"' => out.push(c),
            '{' | '[' => {
                out.push(c);
                if let Some(close) = chars.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(close);
                } else {
                    depth += 1;
                    line(out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(out, depth);
            }
            ':' => out.push_str(": "),
            c => out.push(c),
        }
        if out.len() > bytes_max {
            return false;
        }
    }
    true
}

/// Where in the text we are.
#[derive(Default)]
struct Parts {
    string: bool,
    escaped: bool,
}

impl Parts {
    /// Goes on by a character; whether it is more than white space between two parts.
    fn is_kept(&mut self, c: char) -> bool {
        match c {
            _ if self.escaped => self.escaped = false,
            '\\' if self.string => self.escaped = true,
            '"' => self.string = !self.string,
            ' ' | '\n' | '\r' | '\t' if !self.string => return false,
            _ => {}
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn the_layout_is_that_of_serde_json_and_says_the_same() {
        for text in [
            "null",
            "\"a \\\" b\\\\\"",
            "[]",
            "[ ]",
            "{\"b\":[1,[2,{}],{\"c\":[]}],\"a\":\"x, {}: \\\"y\\n\"}",
            " [ 1 , \"a b\" , true ] ",
            "{\"\": {\"\\\\\": \"\\\\\\\"\"}}",
        ] {
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(pretty(text), serde_json::to_string_pretty(&value).unwrap());
            assert_eq!(compact(text), value.to_string());
            assert_eq!(compact(&pretty(text)), compact(text));
        }
        assert_eq!(
            pretty("[1.50,1e400,12345678901234567890.10]"),
            "[\n  1.50,\n  1e400,\n  12345678901234567890.10\n]"
        );
    }

    #[test]
    fn many_levels_on_many_lines_stop_at_the_limit() {
        let deep = format!("{}{}{}", "[".repeat(60), "1,".repeat(10_000) + "1", "]".repeat(60));
        let mut out = String::new();
        assert!(!write_pretty(&deep, 0, 50_000, &mut out) && out.len() < 50_200);
        let mut out = String::new();
        assert!(write_pretty("{\"a\":1}", 2, 100, &mut out));
        assert_eq!(out, "{\n      \"a\": 1\n    }");
    }
}
