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

fn fold() -> Value {
    json!({
        "type": "integer",
        "enum": [0, 1],
        "description": "Selects one of two equal local times when the clock is set back: 0 the first (default), 1 the second.",
    })
}

fn datetime(default: &str) -> Value {
    json!({
        "type": "string",
        "description": format!(
            "Date and local time in the zone (2026-03-29T14:30), or with an offset (2026-03-29T14:30:00+02:00, …Z). {default}"
        ),
    })
}

fn count(what: &str) -> Value {
    json!({ "type": "integer", "default": 0, "description": format!("{what}; negative to subtract.") })
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
            "timezone": zone("", EXAMPLES, "timezone", local),
            "datetime": datetime("Default: now."),
            "fold": fold(),
            "years": count("Calendar years to add"),
            "months": count("Calendar months to add (the day is limited to the last day of the month)"),
            "weeks": count("Calendar weeks to add"),
            "days": count("Calendar days to add"),
            "hours": count("Hours to add after that"),
            "minutes": count("Minutes to add after that"),
            "seconds": count("Seconds to add after that"),
        },
        "required": ["timezone"],
    })
}

pub(crate) fn diff(local: &str) -> Value {
    json!({
        "type": "object",
        "properties": {
            "start_timezone": zone("The first time's", EXAMPLES, "timezone", local),
            "start": datetime("Default: now."),
            "start_fold": fold(),
            "end_timezone": {
                "type": "string",
                "description": "The other time's IANA time zone name. Default: that of the first time.",
            },
            "end": datetime("Default: now."),
            "end_fold": fold(),
        },
        "required": ["start_timezone"],
    })
}
