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
    ("$EXAMPLES/extension", "buy milk, milk the cow"),
    ("$EXAMPLES/typed", "Oslo: [11.0, 12.0, 13.0]"),
    ("$EXAMPLES/errors", "refund: "),
    ("$EXAMPLES/crawl", "two 1.0 speaks 2026-07-28: 1 tools"),
    ("printf 'add {\"text\":\"milk\"}\\ny\\nlist\\n\\n' | $EXAMPLES/approve", "milk"),
    ("printf 'y\\n' | $EXAMPLES/use-skill $EXAMPLES/skills", "limits.md: "),
    ("printf 'n\\n' | $EXAMPLES/use-skill $EXAMPLES/skills | grep -c limits.md; true", "0"),
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
    let manifest = std::fs::read_to_string(context.root.join("examples/Cargo.toml"))?;
    let forgotten = forgotten(&manifest);
    let wrong = (!forgotten.is_empty()).then(|| format!("add {} to xtask/src/guide/examples.rs", forgotten.join(", ")));
    note(report, "every example is run", wrong);
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

/// The examples that nothing runs: those with tests of their own are run by these.
fn forgotten(manifest: &str) -> Vec<String> {
    let Ok(manifest) = manifest.parse::<toml::Table>() else {
        return vec!["the manifest is not valid TOML".to_owned()];
    };
    let examples = manifest.get("example").and_then(toml::Value::as_array);
    let name = |example: &toml::Value| example.get("name").and_then(toml::Value::as_str).unwrap_or_default().to_owned();
    let untested = examples.into_iter().flatten().filter(|example| example.get("test").is_none()).map(name);
    let is_run = |name: &String| {
        COMMANDS.iter().any(|(command, _)| command.split([' ', ';']).any(|word| word == format!("$EXAMPLES/{name}")))
            || SERVERS.iter().any(|(server, ..)| server.split(' ').next() == Some(name))
    };
    untested.filter(|name| !is_run(name)).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_that_nothing_runs_is_named() {
        let manifest =
            "[[example]]\nname = \"adder\"\n[[example]]\nname = \"new\"\n[[example]]\nname = \"own\"\ntest = true\n";
        assert_eq!(forgotten(manifest), ["new"]);
    }
}
