//! `cargo xtask bench`: hands over to the benchmark driver in `bench/`.

use std::process::Command;

use anyhow::{Context as _, Result};

use crate::context::Context;

/// Runs `bench/run.py` with the same arguments, its output going straight to the terminal.
pub(crate) fn command(context: &Context, arguments: &[String]) -> Result<bool> {
    let status = Command::new("python3")
        .arg("bench/run.py")
        .args(arguments)
        .current_dir(&context.root)
        .status()
        .context("python3 cannot be started; the benchmark driver is a Python program")?;
    Ok(status.success())
}
