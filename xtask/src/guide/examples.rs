//! Starts the programs of `examples/` and uses them.
//!
//! Those with tests of their own (`test = true` in the manifest) are run by these.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};

use super::{Shell, note};
use crate::context::Context;
use crate::report::Report;

/// Programs that need nobody, and servers on standard input and output: a command line, and what it must print.
/// `$EXAMPLES` is where the programs are.
const COMMANDS: &[(&str, &str)] = &[
    ("linchpin call add a=2 b=40 -- $EXAMPLES/adder", "42"),
    ("linchpin call add a=2 b=40 -- $EXAMPLES/low-level", "42"),
    ("linchpin call write_note name=a text=hi -- $EXAMPLES/notes", "\"bytes\":2"),
    ("linchpin call clear_notes --answer yes=true -- $EXAMPLES/notes", "deleted 0 notes"),
    ("$EXAMPLES/method", "buy milk"),
    ("$EXAMPLES/typed", "Oslo: [11.0, 12.0, 13.0]"),
    ("$EXAMPLES/errors", "refund: "),
    ("$EXAMPLES/crawl", "two 1.0 speaks 2026-07-28: 1 tools"),
    ("printf 'add {\"text\":\"milk\"}\\ny\\nlist\\n\\n' | $EXAMPLES/approve", "milk"),
    ("$EXAMPLES/login; true", "usage"),
    ("$EXAMPLES/tls 2>&1; true", "usage"),
    ("$EXAMPLES/oauth-proxy 2>&1; true", "usage"),
];

/// Servers over HTTP, which take their address as an argument and say where they listen: what is asked of them at `$URL`, and
/// what that must print.
const SERVERS: &[(&str, &str, &str)] = &[
    ("mount", "linchpin call $URL greet name=Ada", "Hello, Ada!"),
    ("guarded", "linchpin tools $URL 2>&1; true", "linchpin auth login"),
];

pub(super) fn check(context: &Context, shell: &Shell, report: &mut Report) -> Result<()> {
    let folder = std::path::absolute(context.binary("examples"))?.display().to_string();
    for (command, expected) in COMMANDS {
        let done = shell.run(command, &[("EXAMPLES", &folder)])?;
        let right = done.ok && done.output.contains(expected);
        note(report, command, (!right).then(|| format!("it must print `{expected}`:\n{}", done.output)));
    }
    for (name, command, expected) in SERVERS {
        let (_served, url) =
            serve(shell, &format!("{folder}/{name}")).with_context(|| format!("the example {name}"))?;
        let done = shell.run(command, &[("URL", &url)])?;
        let right = done.ok && done.output.contains(expected);
        note(report, command, (!right).then(|| format!("{name} must answer `{expected}`:\n{}", done.output)));
    }
    Ok(())
}

/// A server that ends when it is dropped.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serve(shell: &Shell, program: &str) -> Result<(Served, String)> {
    let mut command = Command::new(program);
    command.arg("127.0.0.1:0").current_dir(&shell.home).stdin(Stdio::null()).stderr(Stdio::piped());
    let mut served = Served(command.spawn().context("cannot be started")?);
    let said = BufReader::new(served.0.stderr.take().context("no standard error")?).lines();
    for line in said {
        let line = line?;
        if let Some(at) = line.find("http://") {
            return Ok((served, line[at..].split_whitespace().next().unwrap_or_default().to_owned()));
        }
    }
    anyhow::bail!("it ended before it said where it listens")
}
