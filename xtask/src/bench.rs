//! `cargo xtask bench`: hands over to the benchmark driver in `bench/`.

use std::process::Command;

use anyhow::{Context as _, Result};

use crate::context::Context;
use crate::{postgres, published, tools};

/// Runs `bench/run.py`, or `bench/client.py`, `bench/servers.py`, `bench/browser.py`, `bench/gateway.py`, `bench/auth.py` or
/// `bench/tasks.py` when its name comes first, with the same arguments, its output going straight to the terminal.
pub(crate) fn command(context: &Context, arguments: &[String]) -> Result<bool> {
    let (program, arguments) = match arguments.split_first() {
        Some((first, rest)) if first == "client" => ("bench/client.py", rest),
        Some((first, rest)) if first == "servers" => ("bench/servers.py", rest),
        Some((first, rest)) if first == "browser" => ("bench/browser.py", rest),
        Some((first, rest)) if first == "gateway" => ("bench/gateway.py", rest),
        Some((first, rest)) if first == "auth" => ("bench/auth.py", rest),
        Some((first, rest)) if first == "tasks" => ("bench/tasks.py", rest),
        _ => ("bench/run.py", arguments),
    };
    let mut driver = Command::new("python3");
    if program == "bench/client.py" {
        driver.env("BENCH_TS_TOOLS", tools::npm(context, "clients")?).env("BENCH_NODE", tools::node(context)?);
    }
    if program == "bench/gateway.py" {
        driver.env("BENCH_NODE", tools::node(context)?);
    }
    if program == "bench/servers.py" {
        driver.env("BENCH_PUBLISHED", published::install(context)?);
        // Without it that server is left out, and the driver says so.
        if let Ok(programs) = postgres::programs(context)? {
            driver.env(postgres::VARIABLE, programs);
        }
    }
    let status = driver
        .arg(program)
        .args(arguments)
        .current_dir(&context.root)
        .status()
        .context("python3 cannot be started; the benchmark driver is a Python program")?;
    Ok(status.success())
}
