//! The allocation budget of a simple call, on every path, and of an idle session, as README.md beside the benchmark defends it.

use std::process::Command;

/// The most allocations one `echo` may make in the server: by path, both eras.
const BUDGET: &[(&str, f64)] = &[
    ("in process, modern", 4.0),
    ("in process, legacy", 4.0),
    ("stdio, modern", 4.0),
    ("stdio, legacy", 4.0),
    ("HTTP, modern", 16.0),
    ("HTTP, legacy", 13.0),
];
/// The most bytes one `tools/list` of a thousand tools may ask for: nothing is as large as the list, 282 KiB.
const LISTED: &[(&str, f64)] = &[
    ("list of 1000 tools, stdio, modern", 1_024.0),
    ("list of 1000 tools, stdio, legacy", 1_024.0),
    ("list of 1000 tools, HTTP, modern", 16_384.0),
    ("list of 1000 tools, HTTP, legacy", 16_384.0),
];
/// The most bytes that the endpoint may hold for an idle session of a revision with sessions.
const IDLE_SESSION: u64 = 1_024;
/// Over a thousand calls a table may grow once or a timer may be renewed.
const SLACK: f64 = 0.1;

#[test]
fn calls_and_lists_stay_within_their_allocation_budgets_on_every_path() {
    let out = Command::new(env!("CARGO_BIN_EXE_bench-allocs")).arg("--json").output();
    let out = out.expect("bench-allocs runs");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).expect("text");
    let rows: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("one object a line")).collect();
    assert_eq!(rows.len(), BUDGET.len() + LISTED.len(), "{text}");
    let row = |path: &str| rows.iter().find(|row| row["case"] == path).unwrap_or_else(|| panic!("no {path}: {text}"));
    for (path, most) in LISTED {
        let (bytes, resized) = (row(path)["bytes"].as_f64(), row(path)["reallocs"].as_f64());
        assert!(bytes.is_some_and(|bytes| bytes <= *most), "{path}: {bytes:?} bytes, budget {most}");
        assert_eq!(resized, Some(0.0), "{path}: resizes");
    }
    for (path, most) in BUDGET {
        let row = row(path);
        let made = row["count"].as_f64().unwrap_or(f64::MAX);
        let resized = row["reallocs"].as_f64().unwrap_or(f64::MAX);
        assert!(made > 0.0, "{path}: the counter does not count");
        assert!(made + resized <= most + SLACK, "{path}: {made} allocations and {resized} resizes, budget {most}");
    }
}

#[test]
fn an_idle_session_over_http_holds_at_most_a_kibibyte() {
    let out = Command::new(env!("CARGO_BIN_EXE_bench-allocs")).arg("sessions").output().expect("bench-allocs runs");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).expect("text");
    let bytes: u64 = text.trim().parse().unwrap_or_else(|e| panic!("{e}: {text}"));
    assert!(bytes >= 64, "{bytes}: the counter does not count");
    assert!(bytes <= IDLE_SESSION, "{bytes} bytes of {IDLE_SESSION}");
}
