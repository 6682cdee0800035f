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
    ("linchpin call echo message=hi -- $EXAMPLES/echo", "Tool echo: hi"),
    ("linchpin read echo://hi -- $EXAMPLES/echo", "Resource echo: hi"),
    ("linchpin call query sql='SELECT 6 * 7, NULL' -- $EXAMPLES/sqlite-explorer shop.db", "42 | NULL"),
    ("linchpin call query sql='CREATE TABLE t (a)' -- $EXAMPLES/sqlite-explorer shop.db; true", "readonly database"),
    (
        "linchpin tools -- $EXAMPLES/dynamic; linchpin call upgrade_auth permission=admin -- $EXAMPLES/dynamic",
        "upgraded",
    ),
    ("$EXAMPLES/observed", "Sunny in Oslo."),
    ("$EXAMPLES/method", "buy milk"),
    ("$EXAMPLES/typed", "Oslo: [11.0, 12.0, 13.0]"),
    ("$EXAMPLES/errors", "refund: "),
    ("$EXAMPLES/crawl", "two 1.0 speaks 2026-07-28: 1 tools"),
    ("printf 'add {\"text\":\"milk\"}\\ny\\nlist\\n\\n' | $EXAMPLES/approve", "milk"),
    ("$EXAMPLES/login; true", "usage"),
    ("$EXAMPLES/tls 2>&1; true", "usage"),
];

/// Servers over HTTP, which take their address as the last argument and say where they listen: what is asked of them at `$URL`, and
/// what that must print.
const SERVERS: &[(&str, &str, &str)] = &[
    ("transports", "linchpin call $URL hello", "Hello, client of 2026-07-28!"),
    ("transports", "linchpin call --transport sse ${URL%/mcp}/sse hello", "Hello, client of"),
    ("transports", "linchpin call hello.sock hello", "Hello, client of 2026-07-28!"),
    ("mount", "linchpin call $URL greet name=Ada", "Hello, Ada!"),
    ("oauth-proxy https://auth.example acme", "linchpin tools $URL 2>&1; true", "auth.example"),
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
    let mut words = program.split(' ');
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).arg("127.0.0.1:0").current_dir(&shell.home).stdin(Stdio::null()).stderr(Stdio::piped());
    command.env("LINCHPIN_CLIENT_ID", "client").env("LINCHPIN_CLIENT_SECRET", "secret");
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
