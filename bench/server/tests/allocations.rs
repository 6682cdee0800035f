//! The allocation budget of a simple call, on every path, as README.md beside the benchmark defends it.

use std::process::Command;

/// The most allocations one `echo` may make in the server: by path, both eras.
const BUDGET: &[(&str, f64)] = &[
    ("in process, modern", 4.0),
    ("in process, legacy", 4.0),
    ("stdio, modern", 4.0),
    ("stdio, legacy", 4.0),
    ("HTTP, modern", 14.0),
    ("HTTP, legacy", 12.0),
];
/// Over a thousand calls a table may grow once or a timer may be renewed.
const SLACK: f64 = 0.1;

#[test]
fn a_simple_call_stays_within_its_allocation_budget_on_every_path() {
    let out = Command::new(env!("CARGO_BIN_EXE_bench-allocs")).arg("--json").output();
    let out = out.expect("bench-allocs runs");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).expect("text");
    let rows: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("one object a line")).collect();
    assert_eq!(rows.len(), BUDGET.len(), "{text}");
    for (path, most) in BUDGET {
        let row = rows.iter().find(|row| row["case"] == *path);
        let row = row.unwrap_or_else(|| panic!("{path} is not counted: {text}"));
        let made = row["count"].as_f64().unwrap_or(f64::MAX);
        let resized = row["reallocs"].as_f64().unwrap_or(f64::MAX);
        assert!(made > 0.0, "{path}: the counter does not count");
        assert!(made + resized <= most + SLACK, "{path}: {made} allocations and {resized} resizes, budget {most}");
    }
}
