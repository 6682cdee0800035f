//! A shell as a reader has it: the programs on the path, a home with a few files, no colours.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::context::Context;
use crate::process::{self, Finished};

/// How long one command may take.
const COMMAND_S_MAX: u64 = 60;

/// What is in the home: file and contents.
const FILES: &[(&str, &str)] = &[
    ("notes/today.md", "# Today\n\n- call Ada\n- write the report\n"),
    ("notes/shopping.md", "milk\neggs\n"),
    ("keys.toml", ""),
    // An empty database.
    ("shop.db", ""),
];

/// A home that is made anew for each run, and the path.
pub(super) struct Shell {
    pub(super) home: PathBuf,
    pub(super) path: String,
    log: PathBuf,
}

impl Shell {
    pub(super) fn new(context: &Context) -> Result<Shell> {
        let folder = context.results("guide")?;
        let home = folder.join("home");
        let _ = std::fs::remove_dir_all(&home);
        for (file, text) in FILES {
            let file = home.join(file);
            std::fs::create_dir_all(file.parent().context("a file without folder")?)?;
            std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        }
        let debug = std::path::absolute(context.target.join("debug"))?;
        let path = format!("{}:{}", debug.display(), std::env::var("PATH").unwrap_or_default());
        Ok(Shell { home: std::path::absolute(home)?, path, log: folder.join("command.log") })
    }

    /// Runs a command line: whether it ended with 0, and what it printed.
    pub(super) fn run(&self, line: &str, variables: &[(&str, &str)]) -> Result<Finished> {
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(&self.home).env_remove("RUST_LOG").envs(variables.iter().copied());
        command.env("HOME", &self.home).env("PATH", &self.path);
        for variable in ["XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"] {
            command.env_remove(variable);
        }
        let mut done = process::run(&mut command, &self.log, Duration::from_secs(COMMAND_S_MAX))?;
        done.output = self.shown(&done.output);
        Ok(done)
    }

    /// Text without the places of this machine.
    pub(super) fn shown(&self, text: &str) -> String {
        text.replace(&self.home.display().to_string(), "~")
    }
}
