//! The published server beside ours, call by call: PyPI `mcp-server-time` 2026.10.19.
//!
//! Differences that are meant, each with its reason; none of them has a flag to restore the old form:
//! - What is no name of a zone but a path, a directory or has a NUL gets the same error as an unknown name. Theirs is the
//!   exception of the runtime, and names directories of the machine.
//! - Arguments that are missing or of the wrong type are explained in our words; theirs names a validation library.
//! - Digits of other scripts are not read as a time.
//! - The name of this machine's own zone file, `localtime`, is no IANA name; theirs takes it where the file exists.
//! - Their runtime puts `Error executing tool NAME: ` before every error sentence; ours begins with the sentence.
//! - Errors may have a second line, `Hint: …`.
//! - The description of `target_timezone` does not suggest `America/San_Francisco`, which does not exist.

use crate::common;
use crate::table;

use common::{Answer, Caller};
use linchpin::client::{Client, Connection};
use linchpin::transport::Child;
use linchpin_time::{Config, Tzdb};
use serde_json::{Value, json};
use std::path::PathBuf;
use table::{World, check, python};

fn installed(name: &str) -> PathBuf {
    let root = std::env::var_os("LINCHPIN_PUBLISHED").expect("LINCHPIN_PUBLISHED names an installation");
    PathBuf::from(root).join("py/bin").join(name)
}

async fn theirs() -> Connection {
    let child = Child::new(installed("mcp-server-time")).args(["--local-timezone", "Europe/Paris"]);
    Client::new("test", "0").connect(child).await.expect("the published server starts")
}

async fn ask(connection: &Connection, tool: &str, arguments: Value) -> Answer {
    let result = connection.call(tool, arguments).await.expect("an answer");
    if result.is_error() {
        return Err(result.text());
    }
    Ok((result.text(), serde_json::from_str(result.structured().expect("structured content")).expect("JSON")))
}

fn ours() -> Config {
    Config::default().with(|config| config.local_timezone = Some("Europe/Paris".into()))
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn the_lists_have_the_same_names_arguments_and_hints() {
    let (theirs, ours) = (theirs().await.tools().await.unwrap(), Caller::of(ours()).await.0.tools().await.unwrap());
    for (at, tool) in theirs.iter().enumerate() {
        assert_eq!(tool.name, ours[at].name, "the same order, before our own");
        assert_eq!(tool.annotations, ours[at].annotations);
        let schema = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        let (their_input, our_input) = (schema(tool.input_schema.get()), schema(ours[at].input_schema.get()));
        assert_eq!(their_input["required"], our_input["required"]);
        for (name, property) in their_input["properties"].as_object().unwrap() {
            assert_eq!(property["type"], our_input["properties"][name]["type"], "{name}");
        }
        let (their_output, our_output) =
            (tool.output_schema.as_ref().unwrap().get(), ours[at].output_schema.as_ref().unwrap().get());
        let (their_output, our_output) = (schema(their_output), schema(our_output));
        assert_eq!(their_output["required"], our_output["required"]);
        for name in their_output["properties"].as_object().unwrap().keys() {
            assert!(our_output["properties"].get(name).is_some(), "{name}");
        }
    }
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn conversions_and_errors_are_the_same_texts() {
    let (theirs, ours) = (theirs().await, Caller::of(ours()).await);
    let zones = [
        "UTC",
        "Etc/UTC",
        "Europe/Paris",
        "Europe/Dublin",
        "Asia/Kathmandu",
        "Asia/Kolkata",
        "Australia/Lord_Howe",
        "Antarctica/Troll",
        "Africa/Casablanca",
        "America/New_York",
        "America/St_Johns",
        "Pacific/Chatham",
        "Pacific/Kiritimati",
        "Pacific/Marquesas",
        "Etc/GMT+12",
        "EST5EDT",
        "Factory",
    ];
    let times = ["09:00", "9:5", "0:00", "23:59", "12:30"];
    let mut compared = 0;
    for (at, source) in zones.iter().enumerate() {
        for target in zones.iter().skip(at % 3).step_by(3) {
            let time = times[compared % times.len()];
            let args = json!({ "source_timezone": source, "time": time, "target_timezone": target });
            // Midnight may fall between the two calls.
            let mut pair = (Ok(Default::default()), Ok(Default::default()));
            for _ in 0..3 {
                pair =
                    (ask(&theirs, "convert_time", args.clone()).await, ours.call("convert_time", args.clone()).await);
                if pair.0 == pair.1 {
                    break;
                }
            }
            assert_eq!(pair.0, pair.1, "{args}");
            compared += 1;
        }
    }
    assert!(compared > 80, "{compared}");
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn refusals_have_the_same_first_line() {
    let (theirs, ours) = (theirs().await, Caller::of(ours()).await);
    for (tool, args) in [
        ("get_current_time", json!({ "timezone": "" })),
        ("get_current_time", json!({ "timezone": "Mars/Base" })),
        ("get_current_time", json!({ "timezone": "europe/paris" })),
        ("get_current_time", json!({ "timezone": "utc" })),
        ("get_current_time", json!({ "timezone": "it's" })),
        ("get_current_time", json!({ "timezone": "a\\b" })),
        ("get_current_time", json!({ "timezone": "a\nb" })),
        ("get_current_time", json!({ "timezone": "ä" })),
        ("convert_time", json!({ "source_timezone": "", "time": "9:00", "target_timezone": "" })),
        ("convert_time", json!({ "source_timezone": "UTC", "time": "9:00", "target_timezone": "" })),
        ("convert_time", json!({ "source_timezone": "A", "time": "x", "target_timezone": "B" })),
        ("convert_time", json!({ "source_timezone": "UTC", "time": "x", "target_timezone": "B" })),
        ("convert_time", json!({ "source_timezone": "UTC", "time": "25:00", "target_timezone": "UTC" })),
        ("convert_time", json!({ "source_timezone": "UTC", "time": "9:60", "target_timezone": "UTC" })),
        ("convert_time", json!({ "source_timezone": "UTC", "time": "9", "target_timezone": "UTC" })),
        ("convert_time", json!({ "source_timezone": "UTC", "time": " 9:00", "target_timezone": "UTC" })),
        ("convert_time", json!({ "source_timezone": "UTC", "time": "9:00:00", "target_timezone": "UTC" })),
        ("convert_time", json!({ "source_timezone": "UTC", "time": "", "target_timezone": "UTC" })),
    ] {
        let (theirs, ours) = (ask(&theirs, tool, args.clone()).await, ours.call(tool, args.clone()).await);
        let (theirs, ours) = (theirs.unwrap_err(), ours.unwrap_err());
        let prefix = format!("Error executing tool {tool}: ");
        let theirs = theirs.strip_prefix(&prefix).unwrap_or(&theirs);
        let first = ours.lines().next().unwrap_or_default();
        assert_eq!(theirs.lines().next().unwrap_or_default(), first, "{args}");
    }
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn paths_are_refused_by_both_and_only_theirs_tells_directories() {
    let (theirs, ours) = (theirs().await, Caller::of(ours()).await);
    for key in
        ["../../etc/passwd", "/etc/passwd", "/usr/share/zoneinfo/UTC", "Europe", "UTC\0", "posixrules", "zone.tab"]
    {
        let args = json!({ "timezone": key });
        assert!(ask(&theirs, "get_current_time", args.clone()).await.is_err(), "{key}");
        let said = ours.error("get_current_time", args).await;
        assert!(said.starts_with("Invalid timezone: 'No time zone found with key "), "{said}");
    }
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn the_time_now_is_the_same_text_up_to_the_second() {
    let (theirs, ours) = (theirs().await, Caller::of(ours()).await);
    for zone in ["UTC", "Europe/Dublin", "Asia/Kathmandu", "Australia/Lord_Howe", "America/New_York"] {
        let args = json!({ "timezone": zone });
        let mut pair = (Ok(Default::default()), Ok(Default::default()));
        // The second may change between the two calls.
        for _ in 0..10 {
            pair = (
                ask(&theirs, "get_current_time", args.clone()).await,
                ours.call("get_current_time", args.clone()).await,
            );
            if pair.0 == pair.1 {
                break;
            }
        }
        assert_eq!(pair.0, pair.1, "{zone}");
    }
}

/// The published server's installation brings a database in the main form. Of the version of ours nothing may differ; of
/// another one, only the zones whose rules changed in between, from 1970 on: new versions correct a lot before.
#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn the_built_in_database_tells_what_the_packaged_one_of_python_tells() {
    let table = python(installed("python").to_str().expect("a path"), true);
    let embedded = World::of(Tzdb::Embedded);
    let same = table.same(&embedded.time.tzdb());
    let compared = embedded.compare(&table, if same { i64::MIN } else { 0 }).await;
    eprintln!(
        "{} rows, {} zones; packaged {}, ours {}",
        compared.rows,
        compared.zones.len(),
        table.version,
        embedded.time.tzdb()
    );
    assert!(compared.zones.len() > 400 && compared.rows > 50_000);
    check(&compared, same, "the built-in database");
}
