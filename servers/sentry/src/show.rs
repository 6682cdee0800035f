//! An issue as text: what the published server says in its order, then more.

use linchpin_rest::one_line;
use serde_json::Value;
use std::fmt::Write;

pub(crate) fn issue(issue: &Value) -> String {
    let mut out = String::from("\n");
    for (label, name) in [
        ("Sentry Issue", "title"),
        ("Issue ID", "id"),
        ("Status", "status"),
        ("Level", "level"),
        ("First Seen", "first_seen"),
        ("Last Seen", "last_seen"),
        ("Event Count", "count"),
    ] {
        line(&mut out, label, &one_line(&issue[name]));
    }
    for (label, name) in [("Culprit", "culprit"), ("Release", "release"), ("Permalink", "permalink")] {
        if !issue[name].is_null() {
            line(&mut out, label, &one_line(&issue[name]));
        }
    }
    if let Some(tags) = issue["tags"].as_object().filter(|tags| !tags.is_empty()) {
        let all =
            tags.iter().map(|(name, value)| format!("{}={}", one_line(&Value::from(name.as_str())), one_line(value)));
        line(&mut out, "Tags", &all.collect::<Vec<_>>().join(", "));
    }
    out.push('\n');
    out.push_str(&stacktrace(issue));
    let crumbs = issue["breadcrumbs"].as_array().filter(|crumbs| !crumbs.is_empty());
    for (n, crumb) in crumbs.into_iter().flatten().enumerate() {
        if n == 0 {
            out.push_str("\nBreadcrumbs:\n");
        }
        let parts = ["timestamp", "level", "category", "message", "data"].map(|name| one_line(&crumb[name]));
        let parts: Vec<&str> =
            parts.iter().map(String::as_str).filter(|part| !part.is_empty() && *part != "{}").collect();
        out.push_str(&parts.join(" "));
        out.push('\n');
    }
    out
}

fn line(out: &mut String, label: &str, text: &str) {
    // A String takes everything.
    let _ = writeln!(out, "{label}: {text}");
}

fn stacktrace(issue: &Value) -> String {
    let all = issue["exceptions"].as_array().into_iter().flatten().map(exception);
    let mut all: Vec<String> = all.collect();
    if let Some(left_out) = issue["exceptions_left_out"].as_u64() {
        all.insert(all.len() / 2, format!("[{left_out} of the exceptions between these are left out.]\n"));
    }
    if all.is_empty() { "No stacktrace found\n".to_owned() } else { all.join("\n") }
}

fn exception(exception: &Value) -> String {
    let kind = or(&exception["type"], "Unknown");
    let mut out = format!("Exception: {kind}: {}\n\n", exception["value"].as_str().unwrap_or_default());
    if let Some(frames) = exception["frames"].as_array() {
        out.push_str("Stacktrace:\n");
        if let Some(left_out) = exception["frames_left_out"].as_u64() {
            let _ = writeln!(out, "[{left_out} outer frames are left out.]\n");
        }
        for frame in frames {
            let (file, number) = (or(&frame["filename"], "Unknown"), or(&frame["lineno"], "?"));
            let _ = writeln!(out, "{file}:{number} in {}", or(&frame["function"], "Unknown"));
            for text in frame["context"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                let _ = writeln!(out, "    {text}");
            }
            out.push('\n');
        }
    }
    out
}

fn or(value: &Value, other: &str) -> String {
    if value.is_null() { other.to_owned() } else { one_line(value) }
}
