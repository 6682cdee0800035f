//! Traces and metrics in a real OpenTelemetry collector: PyPI's `rotel`, which brings its program along.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::context::Context;
use crate::report::{Counts, Report};
use crate::server::{Running, free_port};
use crate::{process, tools};

/// How long the collector may take to show what it was sent.
const SHOWN_S_MAX: u64 = 20;

/// What the collector must show of `examples/observed`.
const SHOWN: &[&str] = &[
    "service.name: Str(weather)",
    "Name           : tools/call forecast",
    "Kind           : SPAN_KIND_SERVER",
    "Kind           : SPAN_KIND_CLIENT",
    "mcp.protocol.version: Str(2026-07-28)",
    "Name: mcp.server.operation.duration",
    "Name: mcp.client.operation.duration",
];

/// Runs `examples/observed` against a collector, and looks at what that shows.
pub(crate) fn check(context: &Context) -> Result<Report> {
    let python = tools::python(context, "py-rotel")?;
    let find = "import os, rotel; print(os.path.join(os.path.dirname(rotel.__file__), 'rotel-agent'), end='')";
    let found = Command::new(python).args(["-c", find]).output().context("Python cannot be started")?;
    let program = String::from_utf8(found.stdout).unwrap_or_default();
    let results = context.results("collector")?;
    let (log, port) = (results.join("rotel.log"), free_port()?);
    let mut collector = Command::new(program);
    collector.args(["start", "--exporter", "blackhole", "--debug-log", "traces", "--debug-log", "metrics"]);
    collector.args(["--debug-log-verbosity", "detailed", "--pid-file"]).arg(results.join("pid"));
    collector.args(["--otlp-http-endpoint", &format!("127.0.0.1:{port}")]);
    collector.args(["--otlp-grpc-endpoint", &format!("127.0.0.1:{}", free_port()?)]);
    let _running = Running::start(&mut collector, port, &log)?;
    let mut observed = process::cargo();
    observed.args(["run", "--locked", "--package", "linchpin-examples", "--example", "observed"]);
    observed.current_dir(&context.root).env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://127.0.0.1:{port}"));
    let ran = process::run(&mut observed, &results.join("observed.log"), Duration::from_secs(600))?;
    if !ran.ok {
        return Ok(Report::one(false, ran.output));
    }
    let began = Instant::now();
    loop {
        let shown = std::fs::read_to_string(&log).unwrap_or_default();
        let missing: Vec<&str> = SHOWN.iter().copied().filter(|line| !shown.contains(line)).collect();
        if missing.is_empty() || began.elapsed() > Duration::from_secs(SHOWN_S_MAX) {
            let mut report = Report::default();
            for line in SHOWN {
                report.counts.add(Counts::one(!missing.contains(line)));
            }
            if !missing.is_empty() {
                report.text = format!("the collector does not show {missing:?}:\n{shown}\n");
            }
            return Ok(report);
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}
