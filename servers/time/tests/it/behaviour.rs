//! What the specification's table about time says, row by row.

use crate::common;

use common::{Caller, NOW, clock_at, config, server};
use linchpin::types::version::Revision;
use linchpin_kit::ToolChoice;
use linchpin_time::{Time, Tzdb};
use serde_json::{Value, json};

#[tokio::test]
async fn the_published_tools_come_first_and_every_hint_is_set_in_both_eras() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let caller = Caller::speaking(config(), &[revision]).await;
        let tools = caller.0.tools().await.unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["get_current_time", "convert_time", "time_add", "time_diff"]);
        for tool in tools.iter() {
            let hints = tool.annotations.as_ref().expect("hints");
            let hints = (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint);
            assert_eq!(hints, (Some(true), Some(false), Some(true), Some(false)), "{}", tool.name);
            assert!(tool.output_schema.is_some(), "{}", tool.name);
        }
        let value = caller.value("get_current_time", json!({ "timezone": "Europe/Paris" })).await;
        assert_eq!(value["datetime"], "2026-11-21T10:30:15+01:00", "{revision:?}");
    }
}

#[tokio::test]
async fn texts_are_the_published_ones_byte_for_byte() {
    let caller = Caller::new().await;
    let (text, _) = caller.call("get_current_time", json!({ "timezone": "Asia/Kathmandu" })).await.unwrap();
    assert_eq!(
        text,
        "{\n  \"timezone\": \"Asia/Kathmandu\",\n  \"datetime\": \"2026-11-21T15:15:15+05:45\",\n  \"day_of_week\": \"Saturday\",\n  \"is_dst\": false\n}"
    );
    let args = json!({ "source_timezone": "Asia/Tokyo", "time": "9:5", "target_timezone": "Asia/Kathmandu" });
    let (text, _) = caller.call("convert_time", args).await.unwrap();
    assert_eq!(
        text,
        "{\n  \"source\": {\n    \"timezone\": \"Asia/Tokyo\",\n    \"datetime\": \"2026-11-21T09:05:00+09:00\",\n    \"day_of_week\": \"Saturday\",\n    \"is_dst\": false\n  },\n  \"target\": {\n    \"timezone\": \"Asia/Kathmandu\",\n    \"datetime\": \"2026-11-21T05:50:00+05:45\",\n    \"day_of_week\": \"Saturday\",\n    \"is_dst\": false\n  },\n  \"time_difference\": \"-3.25h\"\n}"
    );
}

#[tokio::test]
async fn the_local_zone_is_written_into_every_zone_argument() {
    let caller = Caller::of(config().with(|config| config.local_timezone = Some("Pacific/Chatham".into()))).await;
    let tools = caller.0.tools().await.unwrap();
    let described = |tool: &str, argument: &str| {
        let tool = tools.iter().find(|t| t.name == tool).expect("the tool");
        let schema: Value = serde_json::from_str(tool.input_schema.get()).expect("a schema");
        schema["properties"][argument]["description"].as_str().expect("a description").to_owned()
    };
    for (tool, argument) in [
        ("get_current_time", "timezone"),
        ("convert_time", "source_timezone"),
        ("convert_time", "target_timezone"),
        ("time_add", "timezone"),
        ("time_diff", "start_timezone"),
    ] {
        assert!(described(tool, argument).contains("'Pacific/Chatham'"), "{tool} {argument}");
    }
    let instructions = caller.0.instructions().expect("instructions");
    assert!(instructions.contains("`Pacific/Chatham`"), "{instructions}");
    assert!(instructions.contains(linchpin_time::embedded_tzdb_version()), "{instructions}");
}

/// Tool, arguments, first line of the error, what the hint must hold.
const REFUSED: &[(&str, &str, &str, &str)] = &[
    ("get_current_time", r#"{"timezone":""}"#, "Missing required argument: timezone", ""),
    (
        "convert_time",
        r#"{"source_timezone":"","time":"9:00","target_timezone":""}"#,
        "Missing required argument: source_timezone",
        "",
    ),
    (
        "convert_time",
        r#"{"source_timezone":"UTC","time":"9:00","target_timezone":""}"#,
        "Missing required argument: target_timezone",
        "",
    ),
    (
        "get_current_time",
        r#"{"timezone":"Nowhere/Land"}"#,
        "Invalid timezone: 'No time zone found with key Nowhere/Land'",
        "IANA name",
    ),
    (
        "get_current_time",
        r#"{"timezone":"europe/paris"}"#,
        "Invalid timezone: 'No time zone found with key europe/paris'",
        "Did you mean Europe/Paris? Names are case-sensitive.",
    ),
    ("get_current_time", r#"{"timezone":"utc"}"#, "Invalid timezone: 'No time zone found with key utc'", "UTC"),
    (
        "get_current_time",
        r#"{"timezone":"Paris"}"#,
        "Invalid timezone: 'No time zone found with key Paris'",
        "Did you mean Europe/Paris?",
    ),
    (
        "get_current_time",
        r#"{"timezone":"new york"}"#,
        "Invalid timezone: 'No time zone found with key new york'",
        "Did you mean America/New_York?",
    ),
    (
        "get_current_time",
        r#"{"timezone":"America/San_Francisco"}"#,
        "Invalid timezone: 'No time zone found with key America/San_Francisco'",
        "IANA name",
    ),
    (
        "get_current_time",
        r#"{"timezone":"Europe/Berln"}"#,
        "Invalid timezone: 'No time zone found with key Europe/Berln'",
        "Europe/Berlin",
    ),
    (
        "get_current_time",
        r#"{"timezone":"Asia/Katmandhu"}"#,
        "Invalid timezone: 'No time zone found with key Asia/Katmandhu'",
        "Asia/Kathmandu",
    ),
    (
        "get_current_time",
        r#"{"timezone":"it's"}"#,
        "Invalid timezone: \"No time zone found with key it's\"",
        "IANA name",
    ),
    (
        "get_current_time",
        r#"{"timezone":"a\u001b[31mb\u0000"}"#,
        "Invalid timezone: 'No time zone found with key a\\x1b[31mb\\x00'",
        "IANA name",
    ),
    (
        "get_current_time",
        r#"{"timezone":"Etc/Unknown"}"#,
        "Invalid timezone: 'No time zone found with key Etc/Unknown'",
        "",
    ),
    (
        "get_current_time",
        r#"{"timezone":"localtime"}"#,
        "Invalid timezone: 'No time zone found with key localtime'",
        "",
    ),
    ("get_current_time", r#"{"timezone":"Europe"}"#, "Invalid timezone: 'No time zone found with key Europe'", ""),
    ("get_current_time", "{}", "invalid arguments for `get_current_time`: ", ""),
    ("get_current_time", r#"{"timezone":7}"#, "invalid arguments for `get_current_time`: ", ""),
    (
        "convert_time",
        r#"{"source_timezone":"X","time":"25:00","target_timezone":"Y"}"#,
        "Invalid timezone: 'No time zone found with key X'",
        "",
    ),
    (
        "convert_time",
        r#"{"source_timezone":"UTC","time":"25:00","target_timezone":"Y"}"#,
        "Invalid timezone: 'No time zone found with key Y'",
        "",
    ),
    (
        "convert_time",
        r#"{"source_timezone":"UTC","time":"25:00","target_timezone":"UTC"}"#,
        "Invalid time format. Expected HH:MM [24-hour format]",
        "",
    ),
    (
        "convert_time",
        r#"{"source_timezone":"UTC","time":"9:00","target_timezone":"UTC","date":"29.3.2026"}"#,
        "Invalid date: 29.3.2026. Expected YYYY-MM-DD",
        "2026-03-29",
    ),
    (
        "convert_time",
        r#"{"source_timezone":"UTC","time":"9:00","target_timezone":"UTC","date":"2026-02-29"}"#,
        "Invalid date: 2026-02-29. Expected YYYY-MM-DD",
        "",
    ),
    (
        "convert_time",
        r#"{"source_timezone":"UTC","time":"9:00","target_timezone":"UTC","fold":2}"#,
        "invalid arguments for `convert_time`: /fold",
        "",
    ),
    (
        "convert_time",
        r#"{"source_timezone":"Europe/Paris","time":"2:30","target_timezone":"UTC","date":"2026-03-29"}"#,
        "Invalid time: 2:30 does not exist in Europe/Paris on 2026-03-29 (skipped by a clock change)",
        "The clock goes from 2026-03-29 02:00 straight to 2026-03-29 03:00.",
    ),
    (
        "convert_time",
        r#"{"source_timezone":"Europe/Paris","time":"2:00","target_timezone":"UTC","date":"2026-03-29","fold":1}"#,
        "Invalid time: 2:00 does not exist in Europe/Paris on 2026-03-29 (skipped by a clock change)",
        "The clock goes from 2026-03-29 02:00 straight to 2026-03-29 03:00.",
    ),
    (
        "convert_time",
        r#"{"source_timezone":"Pacific/Apia","time":"12:00","target_timezone":"UTC","date":"2011-12-30"}"#,
        "Invalid time: 12:00 does not exist in Pacific/Apia on 2011-12-30 (skipped by a clock change)",
        "The clock goes from 2011-12-30 00:00 straight to 2011-12-31 00:00.",
    ),
    (
        "convert_time",
        r#"{"source_timezone":"America/New_York","time":"23:00","target_timezone":"UTC","date":"9999-12-31"}"#,
        "The date is out of range",
        "The range is the year 1 to 9999-12-30T22:00:00Z.",
    ),
    (
        "convert_time",
        r#"{"source_timezone":"Asia/Tokyo","time":"1:00","target_timezone":"UTC","date":"0001-01-01"}"#,
        "The date is out of range",
        "The range is the year 1 to 9999-12-30T22:00:00Z.",
    ),
    (
        "time_diff",
        r#"{"start_timezone":"UTC","start":"9999-12-31T23:59","end":"0001-01-01T00:00"}"#,
        "The date is out of range",
        "The range is the year 1 to 9999-12-30T22:00:00Z.",
    ),
    (
        "time_diff",
        r#"{"start_timezone":"UTC","start":"9999-12-30T22:00:01","end":"0001-01-01T00:00"}"#,
        "The date is out of range",
        "The range is the year 1 to 9999-12-30T22:00:00Z.",
    ),
    ("time_add", r#"{"timezone":"UTC","years":99999999}"#, "The date is out of range", ""),
    ("time_add", r#"{"timezone":"UTC","hours":9223372036854775807}"#, "The date is out of range", ""),
    ("time_add", r#"{"timezone":"UTC","seconds":-9223372036854775808}"#, "The date is out of range", ""),
    ("time_add", r#"{"timezone":"UTC","datetime":"tomorrow"}"#, "Invalid datetime: tomorrow", "Use a format like"),
    (
        "time_add",
        r#"{"timezone":"UTC","datetime":"2026-01-01T00:00[Europe/Paris]"}"#,
        "Invalid datetime: 2026-01-01T00:00[Europe/Paris]",
        "",
    ),
    (
        "time_add",
        r#"{"timezone":"Europe/Paris","datetime":"2026-03-29T02:30"}"#,
        "Invalid time: 02:30 does not exist in Europe/Paris on 2026-03-29 (skipped by a clock change)",
        "",
    ),
    ("time_diff", r#"{"start_timezone":""}"#, "Missing required argument: start_timezone", ""),
    (
        "time_diff",
        r#"{"start_timezone":"UTC","end_timezone":"Mars"}"#,
        "Invalid timezone: 'No time zone found with key Mars'",
        "",
    ),
];

#[tokio::test]
async fn what_cannot_be_done_is_said_with_the_published_first_line_and_what_to_do() {
    let caller = Caller::new().await;
    for (tool, args, first, hint) in REFUSED {
        let error = caller.error(tool, serde_json::from_str(args).unwrap()).await;
        let (line, rest) = error.split_once('\n').unwrap_or((&error, ""));
        let fits = if first.starts_with("invalid arguments") { line.starts_with(first) } else { line == *first };
        assert!(fits, "{tool} {args}: {error}");
        assert!(rest.contains(hint), "{tool} {args}: {error}");
        assert!(rest.is_empty() || rest.starts_with("Hint: "), "{tool} {args}: {error}");
    }
    let long = "x".repeat(10_000);
    let error = caller.error("get_current_time", json!({ "timezone": long })).await;
    assert!(error.len() < 400, "a long name is not repeated whole: {} bytes", error.len());
}

/// Zone, date, time, fold, what the source shows, what UTC shows, whether daylight saving time is in force, the fold
/// told.
type ToolOutput<'a> = (&'a str, &'a str, &'a str, Option<u8>, &'a str, &'a str, bool, Option<u8>);

const CONVERTED: &[ToolOutput<'_>] = &[
    // Irish winter is daylight saving time of minus one hour in the database's main form.
    (
        "Europe/Dublin",
        "2026-01-15",
        "12:00",
        None,
        "2026-01-15T12:00:00+00:00",
        "2026-01-15T12:00:00+00:00",
        true,
        None,
    ),
    (
        "Europe/Dublin",
        "2026-07-15",
        "12:00",
        None,
        "2026-07-15T12:00:00+01:00",
        "2026-07-15T11:00:00+00:00",
        false,
        None,
    ),
    (
        "Asia/Kathmandu",
        "2026-07-15",
        "12:00",
        None,
        "2026-07-15T12:00:00+05:45",
        "2026-07-15T06:15:00+00:00",
        false,
        None,
    ),
    (
        "Asia/Kathmandu",
        "1985-12-31",
        "12:00",
        None,
        "1985-12-31T12:00:00+05:30",
        "1985-12-31T06:30:00+00:00",
        false,
        None,
    ),
    // Half an hour of daylight saving time, in the southern summer.
    (
        "Australia/Lord_Howe",
        "2026-01-15",
        "12:00",
        None,
        "2026-01-15T12:00:00+11:00",
        "2026-01-15T01:00:00+00:00",
        true,
        None,
    ),
    (
        "Australia/Lord_Howe",
        "2026-07-15",
        "12:00",
        None,
        "2026-07-15T12:00:00+10:30",
        "2026-07-15T01:30:00+00:00",
        false,
        None,
    ),
    (
        "Australia/Lord_Howe",
        "2026-04-05",
        "01:45",
        None,
        "2026-04-05T01:45:00+11:00",
        "2026-04-04T14:45:00+00:00",
        true,
        Some(0),
    ),
    (
        "Australia/Lord_Howe",
        "2026-04-05",
        "01:45",
        Some(1),
        "2026-04-05T01:45:00+10:30",
        "2026-04-04T15:15:00+00:00",
        false,
        Some(1),
    ),
    // Two hours of it.
    (
        "Antarctica/Troll",
        "2026-01-15",
        "12:00",
        None,
        "2026-01-15T12:00:00+00:00",
        "2026-01-15T12:00:00+00:00",
        false,
        None,
    ),
    (
        "Antarctica/Troll",
        "2026-07-15",
        "12:00",
        None,
        "2026-07-15T12:00:00+02:00",
        "2026-07-15T10:00:00+00:00",
        true,
        None,
    ),
    // Back for Ramadan.
    (
        "Africa/Casablanca",
        "2025-01-15",
        "12:00",
        None,
        "2025-01-15T12:00:00+01:00",
        "2025-01-15T11:00:00+00:00",
        false,
        None,
    ),
    (
        "Africa/Casablanca",
        "2025-03-15",
        "12:00",
        None,
        "2025-03-15T12:00:00+00:00",
        "2025-03-15T12:00:00+00:00",
        true,
        None,
    ),
    (
        "Europe/Paris",
        "2026-10-25",
        "2:30",
        None,
        "2026-10-25T02:30:00+02:00",
        "2026-10-25T00:30:00+00:00",
        true,
        Some(0),
    ),
    (
        "Europe/Paris",
        "2026-10-25",
        "2:30",
        Some(0),
        "2026-10-25T02:30:00+02:00",
        "2026-10-25T00:30:00+00:00",
        true,
        Some(0),
    ),
    (
        "Europe/Paris",
        "2026-10-25",
        "2:30",
        Some(1),
        "2026-10-25T02:30:00+01:00",
        "2026-10-25T01:30:00+00:00",
        false,
        Some(1),
    ),
    (
        "Europe/Paris",
        "2026-10-25",
        "12:30",
        Some(1),
        "2026-10-25T12:30:00+01:00",
        "2026-10-25T11:30:00+00:00",
        false,
        None,
    ),
    // The other zones whose winter the main form calls daylight saving time.
    (
        "Africa/Windhoek",
        "2010-06-15",
        "12:00",
        None,
        "2010-06-15T12:00:00+01:00",
        "2010-06-15T11:00:00+00:00",
        true,
        None,
    ),
    (
        "Africa/Windhoek",
        "2010-12-15",
        "12:00",
        None,
        "2010-12-15T12:00:00+02:00",
        "2010-12-15T10:00:00+00:00",
        false,
        None,
    ),
    (
        "Africa/Windhoek",
        "2020-06-15",
        "12:00",
        None,
        "2020-06-15T12:00:00+02:00",
        "2020-06-15T10:00:00+00:00",
        false,
        None,
    ),
    (
        "Europe/Prague",
        "1947-01-15",
        "12:00",
        None,
        "1947-01-15T12:00:00+00:00",
        "1947-01-15T12:00:00+00:00",
        true,
        None,
    ),
    // Local mean time has seconds.
    (
        "Europe/Paris",
        "1850-06-01",
        "12:00",
        None,
        "1850-06-01T12:00:00+00:09:21",
        "1850-06-01T11:50:39+00:00",
        false,
        None,
    ),
];

#[tokio::test]
async fn zones_with_unusual_rules_are_told_alike_from_both_databases() {
    for tzdb in [Tzdb::default(), Tzdb::Embedded] {
        let caller = Caller::of(config().with(|config| config.tzdb = tzdb.clone())).await;
        for (zone, date, time, fold, source, target, is_dst, told) in CONVERTED {
            let mut args = json!({ "source_timezone": zone, "time": time, "target_timezone": "UTC", "date": date });
            if let Some(fold) = fold {
                args["fold"] = json!(fold);
            }
            let value = caller.value("convert_time", args).await;
            let context = format!("{zone} {date} {time} {fold:?} {tzdb:?}");
            assert_eq!(value["source"]["datetime"], *source, "{context}");
            assert_eq!(value["target"]["datetime"], *target, "{context}");
            assert_eq!(value["source"]["is_dst"], *is_dst, "{context}");
            assert_eq!(value["source"].get("fold").and_then(Value::as_u64), told.map(u64::from), "{context}");
        }
    }
}

#[tokio::test]
async fn the_day_is_today_in_the_source_zone_and_ambiguous_is_the_first_without_a_word() {
    // 2026-11-21T23:30Z is tomorrow in Tokyo and today in New York.
    let caller = Caller::of(config().with(|config| config.clock = clock_at(NOW + 14 * 3600))).await;
    for (zone, day) in [("Asia/Tokyo", "2026-11-22T09:00:00+09:00"), ("America/New_York", "2026-11-21T09:00:00-05:00")]
    {
        let args = json!({ "source_timezone": zone, "time": "09:00", "target_timezone": "UTC" });
        assert_eq!(caller.value("convert_time", args).await["source"]["datetime"], day);
    }
    // The day the clock is set back in Paris: 2026-10-25T12:00Z.
    let caller = Caller::of(config().with(|config| config.clock = clock_at(1_792_929_600))).await;
    let args = json!({ "source_timezone": "Europe/Paris", "time": "02:30", "target_timezone": "UTC" });
    let value = caller.value("convert_time", args).await;
    assert_eq!(value["source"]["datetime"], "2026-10-25T02:30:00+02:00");
    assert_eq!(value["source"].get("fold"), None, "who does not use `fold` gets the published fields alone");
    // The day it is set forward: 2026-03-29T12:00Z.
    let caller = Caller::of(config().with(|config| config.clock = clock_at(1_774_785_600))).await;
    let args = json!({ "source_timezone": "Europe/Paris", "time": "02:30", "target_timezone": "UTC" });
    let error = caller.error("convert_time", args).await;
    assert!(error.starts_with("Invalid time: 02:30 does not exist in Europe/Paris on 2026-03-29 (skipped"), "{error}");
}

/// Arguments of `time_add`, start, result, seconds, adjusted.
const ADDED: &[(&str, &str, &str, i64, bool)] = &[
    (r#"{"timezone":"UTC"}"#, "2026-11-21T09:30:15+00:00", "2026-11-21T09:30:15+00:00", 0, false),
    // A day over the change keeps the clock's time and has 23 hours; 24 hours do not.
    (
        r#"{"timezone":"Europe/Paris","datetime":"2026-03-28T12:00","days":1}"#,
        "2026-03-28T12:00:00+01:00",
        "2026-03-29T12:00:00+02:00",
        82_800,
        false,
    ),
    (
        r#"{"timezone":"Europe/Paris","datetime":"2026-03-28T12:00","hours":24}"#,
        "2026-03-28T12:00:00+01:00",
        "2026-03-29T13:00:00+02:00",
        86_400,
        false,
    ),
    (
        r#"{"timezone":"Europe/Paris","datetime":"2026-03-29T12:00","days":-1}"#,
        "2026-03-29T12:00:00+02:00",
        "2026-03-28T12:00:00+01:00",
        -82_800,
        false,
    ),
    (
        r#"{"timezone":"Europe/Paris","datetime":"2026-03-28T02:30","days":1}"#,
        "2026-03-28T02:30:00+01:00",
        "2026-03-29T03:30:00+02:00",
        86_400,
        true,
    ),
    (
        r#"{"timezone":"Europe/Paris","datetime":"2026-10-24T02:30","days":1}"#,
        "2026-10-24T02:30:00+02:00",
        "2026-10-25T02:30:00+02:00",
        86_400,
        false,
    ),
    (
        r#"{"timezone":"Europe/Paris","datetime":"2026-10-25T02:30","fold":1,"hours":-1}"#,
        "2026-10-25T02:30:00+01:00",
        "2026-10-25T02:30:00+02:00",
        -3_600,
        false,
    ),
    (
        r#"{"timezone":"UTC","datetime":"2024-01-31","months":1}"#,
        "2024-01-31T00:00:00+00:00",
        "2024-02-29T00:00:00+00:00",
        29 * 86_400,
        false,
    ),
    (
        r#"{"timezone":"UTC","datetime":"2024-02-29 10:00:30","years":1,"weeks":1,"minutes":-1,"seconds":45}"#,
        "2024-02-29T10:00:30+00:00",
        "2025-03-07T10:00:15+00:00",
        372 * 86_400 - 15,
        false,
    ),
    // An offset says the moment, whatever the zone.
    (
        r#"{"timezone":"Asia/Tokyo","datetime":"2026-03-29T14:30:00+02:00","minutes":1}"#,
        "2026-03-29T21:30:00+09:00",
        "2026-03-29T21:31:00+09:00",
        60,
        false,
    ),
    (
        r#"{"timezone":"Asia/Tokyo","datetime":"2026-03-29T12:30:00Z"}"#,
        "2026-03-29T21:30:00+09:00",
        "2026-03-29T21:30:00+09:00",
        0,
        false,
    ),
];

#[tokio::test]
async fn days_follow_the_calendar_and_hours_the_clock() {
    let caller = Caller::new().await;
    for (args, start, result, seconds, adjusted) in ADDED {
        let value = caller.value("time_add", serde_json::from_str(args).unwrap()).await;
        assert_eq!(
            (&value["start"]["datetime"], &value["result"]["datetime"]),
            (&json!(start), &json!(result)),
            "{args}"
        );
        assert_eq!(value["seconds"], *seconds, "{args}");
        assert_eq!(value.get("adjusted").is_some(), *adjusted, "{args}");
    }
}

/// Arguments of `time_diff`, seconds, duration.
const BETWEEN: &[(&str, i64, &str)] = &[
    (r#"{"start_timezone":"UTC"}"#, 0, "PT0S"),
    (r#"{"start_timezone":"UTC","start":"2026-11-20T09:30:15"}"#, 86_400, "P1D"),
    (r#"{"start_timezone":"Europe/Paris","start":"2026-03-28T12:00","end":"2026-03-29T12:00"}"#, 82_800, "P1D"),
    (r#"{"start_timezone":"Europe/Paris","start":"2026-03-29T12:00","end":"2026-03-28T12:00"}"#, -82_800, "-P1D"),
    (
        r#"{"start_timezone":"Europe/Paris","start":"2026-10-25T02:30","end":"2026-10-25T02:30","end_fold":1}"#,
        3_600,
        "PT1H",
    ),
    (
        r#"{"start_timezone":"Asia/Tokyo","start":"2026-01-01T09:00","end_timezone":"America/New_York","end":"2025-12-31T19:00"}"#,
        0,
        "PT0S",
    ),
    (
        r#"{"start_timezone":"UTC","start":"2024-02-29T00:00","end":"2026-03-01T01:02:03"}"#,
        731 * 86_400 + 3_723,
        "P2Y1DT1H2M3S",
    ),
    // From the last time that can be told to the first.
    (
        r#"{"start_timezone":"UTC","start":"9999-12-30T22:00","end":"0001-01-01T00:00"}"#,
        -315_537_804_000,
        "-P9998Y11M29DT22H",
    ),
];

#[tokio::test]
async fn the_time_between_is_counted_in_seconds_and_by_the_calendar() {
    let caller = Caller::new().await;
    for (args, seconds, duration) in BETWEEN {
        let value = caller.value("time_diff", serde_json::from_str(args).unwrap()).await;
        assert_eq!((&value["seconds"], &value["duration"]), (&json!(seconds), &json!(duration)), "{args}");
    }
}

#[tokio::test]
async fn no_input_schema_refers_to_a_definition() {
    // Some providers of models refuse `$ref`.
    let caller = Caller::new().await;
    for tool in caller.0.tools().await.unwrap().iter() {
        let schema = tool.input_schema.get();
        assert!(!schema.contains("$ref") && !schema.contains("$defs"), "{}: {schema}", tool.name);
    }
}

#[tokio::test]
async fn tools_are_chosen_and_named_by_the_common_rules() {
    let mut tools = ToolChoice::default();
    (tools.prefix, tools.toolsets, tools.read_only) = ("auto".parse().unwrap(), vec!["time".into()], true);
    let caller = Caller::of(config().with(|config| config.tools = tools)).await;
    let tools = caller.0.tools().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["time_get_current_time", "time_convert_time"]);
    caller.value("get_current_time", json!({ "timezone": "UTC" })).await;
    assert!(caller.0.call("time_add", json!({ "timezone": "UTC" })).await.is_err(), "not chosen, so unknown");
    let mut tools = ToolChoice::default();
    tools.enable.push("nope".into());
    let (time, _) = Time::open(config().with(|config| config.tools = tools)).unwrap();
    assert!(time.add_to(linchpin::Server::new("x", "0")).unwrap_err().to_string().starts_with("Unknown tool: nope"));
}

#[tokio::test]
async fn an_unknown_tool_is_an_error_of_the_request() {
    let caller = Caller::new().await;
    let error = caller.0.call("get_time", json!({})).await.unwrap_err();
    let rpc = error.rpc().unwrap_or_else(|| panic!("{error}"));
    assert!(rpc.code == -32602 && rpc.message.starts_with("Unknown tool: get_time"), "{rpc}");
}

#[tokio::test]
async fn many_calls_at_once_answer_alike() {
    let caller = std::sync::Arc::new(Caller::new().await);
    let calls = (0..64).map(|n| {
        let caller = caller.clone();
        tokio::spawn(async move {
            let zone = ["Europe/Paris", "Asia/Tokyo", "America/New_York", "Nope"][n % 4];
            (zone, caller.call("get_current_time", json!({ "timezone": zone })).await)
        })
    });
    for call in calls.collect::<Vec<_>>() {
        let (zone, answer) = call.await.unwrap();
        assert_eq!(answer.is_ok(), zone != "Nope");
    }
    let _ = server(config());
}
