//! `cargo xtask bench`: hands over to the benchmark driver in `bench/`.

use std::process::Command;

use anyhow::{Context as _, Result};

use crate::context::Context;
use crate::tools;

/// Runs `bench/run.py`, or with `client` first `bench/client.py`, with the same arguments, its output going straight to
/// the terminal.
pub(crate) fn command(context: &Context, arguments: &[String]) -> Result<bool> {
    let (program, arguments) = match arguments.split_first() {
        Some((first, rest)) if first == "client" => ("bench/client.py", rest),
        _ => ("bench/run.py", arguments),
    };
    let mut driver = Command::new("python3");
    if program == "bench/client.py" {
        driver.env("BENCH_TS_TOOLS", tools::npm(context, "clients")?).env("BENCH_NODE", tools::node(context)?);
    }
    let status = driver
        .arg(program)
        .args(arguments)
        .current_dir(&context.root)
        .status()
        .context("python3 cannot be started; the benchmark driver is a Python program")?;
    Ok(status.success())
}
