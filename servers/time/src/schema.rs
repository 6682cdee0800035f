//! Input schemas, with the local zone in the descriptions.

use serde_json::{Value, json};

fn zone(which: &str, examples: &str, argument: &str, local: &str) -> Value {
    let which =
        if which.is_empty() { "IANA time zone name".to_owned() } else { format!("{which} IANA time zone name") };
    json!({
        "type": "string",
        "description": format!(
            "{which}, case included (e.g., {examples}). Use '{local}' as local timezone if no {argument} provided by the user."
        ),
    })
}

fn short_zone(local: &str) -> Value {
    json!({ "type": "string", "description": format!("IANA time zone name; the local one is '{local}'") })
}

fn fold() -> Value {
    json!({
        "type": "integer",
        "enum": [0, 1],
        "description": "If it occurs twice: 0 first (default), 1 second",
    })
}

fn datetime() -> Value {
    json!({ "type": "string", "description": "2026-03-29T14:30, local or with an offset. Default: now." })
}

fn count(what: &str) -> Value {
    json!({ "type": "integer", "description": what })
}

const EXAMPLES: &str = "'America/New_York', 'Europe/London'";

pub(crate) fn current(local: &str) -> Value {
    json!({
        "type": "object",
        "properties": { "timezone": zone("", EXAMPLES, "timezone", local) },
        "required": ["timezone"],
    })
}

pub(crate) fn convert(local: &str) -> Value {
    json!({
        "type": "object",
        "properties": {
            "source_timezone": zone("Source", EXAMPLES, "source timezone", local),
            "time": { "type": "string", "description": "Time to convert in 24-hour format (HH:MM)" },
            "target_timezone": zone("Target", "'Asia/Tokyo', 'America/Los_Angeles'", "target timezone", local),
            "date": { "type": "string", "description": "Date in the source zone (YYYY-MM-DD). Default: today." },
            "fold": fold(),
        },
        "required": ["source_timezone", "time", "target_timezone"],
    })
}

pub(crate) fn add(local: &str) -> Value {
    json!({
        "type": "object",
        "properties": {
            "timezone": short_zone(local),
            "datetime": datetime(),
            "fold": fold(),
            "years": count("Years"),
            "months": count("Months; at most to the month's last day"),
            "weeks": count("Weeks"),
            "days": count("Days"),
            "hours": count("Hours"),
            "minutes": count("Minutes"),
            "seconds": count("Seconds"),
        },
        "required": ["timezone"],
    })
}

pub(crate) fn diff(local: &str) -> Value {
    json!({
        "type": "object",
        "properties": {
            "start_timezone": short_zone(local),
            "start": datetime(),
            "start_fold": fold(),
            "end_timezone": {
                "type": "string",
                "description": "Default: start_timezone",
            },
            "end": datetime(),
            "end_fold": fold(),
        },
        "required": ["start_timezone"],
    })
}
