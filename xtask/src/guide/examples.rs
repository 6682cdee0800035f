//! Starts the programs of `examples/` and uses them.
//!
//! Those with tests of their own (`test = true` in the manifest) are run by these.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};

use super::{Shell, note};
use crate::context::Context;
use crate::login;
use crate::report::Report;

/// Programs that need nobody, and servers on standard input and output: a command line, and what it must print.
/// `$EXAMPLES` is where the programs are.
const COMMANDS: &[(&str, &str)] = &[
    ("linchpin call add a=2 b=40 -- $EXAMPLES/adder", "42"),
    ("linchpin prompts -- $EXAMPLES/low-level", "example-prompt"),
    ("linchpin prompt example-prompt arg1=rain -- $EXAMPLES/low-level", "Write a poem."),
    (
        "linchpin inspect --method prompts/get --params '{\"name\":\"other\"}' -- $EXAMPLES/low-level 2>&1; true",
        "unknown prompt",
    ),
    ("linchpin call write_note name=a text=hi -- $EXAMPLES/notes", "\"bytes\":2"),
    ("linchpin call clear_notes --answer yes=true -- $EXAMPLES/notes", "deleted 0 notes"),
    ("linchpin call echo message=hi -- $EXAMPLES/echo", "Tool echo: hi"),
    ("linchpin read echo://hi -- $EXAMPLES/echo", "Resource echo: hi"),
    ("linchpin call query sql='SELECT 6 * 7, NULL' -- $EXAMPLES/sqlite-explorer shop.db", "42 | NULL"),
    ("linchpin call query sql='CREATE TABLE t (a)' -- $EXAMPLES/sqlite-explorer shop.db; true", "readonly database"),
    ("linchpin call list_messages channel=rust -- $EXAMPLES/dynamic", "rust has no messages yet"),
    ("linchpin call put_message channel=rust message=hi -- $EXAMPLES/dynamic 2>&1; true", "no tool `put_message`"),
    (GUARDED, "#client:bot\nrequires a login\nthe token is not valid\ninvalid_scope\n"),
    (UPGRADES, "upgraded\nexpected one of \nupgraded\nUnknown tool\n"),
    ("$EXAMPLES/observed", "Sunny in Oslo."),
    ("$EXAMPLES/method", "buy milk"),
    ("$EXAMPLES/extension", "buy milk, milk the cow"),
    ("$EXAMPLES/typed", "Oslo: [11.0, 12.0, 13.0]"),
    ("$EXAMPLES/errors", "refund: "),
    ("$EXAMPLES/crawl", "two 1.0 speaks 2026-07-28: 1 tools"),
    ("printf 'add {\"text\":\"milk\"}\\ny\\nlist\\n\\n' | $EXAMPLES/approve", "> milk"),
    (USAGE, "10"),
    ("printf 'y\\n' | $EXAMPLES/use-skill $EXAMPLES/skills", "limits.md: "),
    ("printf 'n\\n' | $EXAMPLES/use-skill $EXAMPLES/skills | grep -c limits.md; true", "0"),
];

/// Those that need words say so, with exit code 2: two lines each.
const USAGE: &str = "for name in login oauth-proxy sqlite-explorer tls use-skill; do \
     $EXAMPLES/$name 2>&1; echo $?; done | grep -c '^usage: \\|^2$'";

/// A session in which permissions are asked for: to write, once more, for all, and once more.
const UPGRADES: &str = r#"
call() {
    echo "{\"jsonrpc\":\"2.0\",\"id\":$1,\"method\":\"tools/call\",\"params\":$(params $2)}"
    sleep 0.2
}
params() {
    echo "{\"name\":\"upgrade_auth\",\"arguments\":{\"permission\":\"$1\"}}"
}
(
    client='{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"sh","version":"1"}}'
    echo "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":$client}"
    echo '{"jsonrpc":"2.0","method":"notifications/initialized"}'
    call 1 write; call 2 write; call 3 admin; call 4 admin
) | $EXAMPLES/dynamic | grep -o 'upgraded\|expected one of \|Unknown tool'
"#;

/// An authorization server gives a program a token with both scopes, with which it calls the tool; without a token, with another
/// one, and as one that may not have the tool's scope, it is refused.
const GUARDED: &str = r#"
port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
issuer=http://127.0.0.1:$(port); guarded=127.0.0.1:$(port); url=http://$guarded/mcp
export LINCHPIN_STORE=sqlite:guarded.db
timeout 60 linchpin auth-server --http ${issuer#http://} --issuer $issuer --resource $url --scope mcp --scope notes:write &
first=$!
timeout 60 $EXAMPLES/guarded $issuer $guarded &
second=$!
trap 'kill $first $second' EXIT
call() {
    linchpin call $url clear "$@"
}
login() {
    secret=$(linchpin client add $1 --secret --own-scope mcp $2)
    SECRET=$secret call --client-id $1 --client-secret-env SECRET --client-credentials
}
for _ in $(seq 100); do
    call 2>&1 | grep -q 'requires a login' && break # Both answer.
    sleep 0.1
done
login bot "--own-scope notes:write"
for refused in "call" "call --bearer wrong" "login reader"; do
    $refused 2>&1 | grep -o 'requires a login\|the token is not valid\|invalid_scope' | head -n 1
done
"#;

/// Servers over HTTP, which take their address as the last argument and say where they listen: what is asked of them at `$URL`, and
/// what that must print. `$EXAMPLES` is where clients among the programs are.
const SERVERS: &[(&str, &str, &str)] = &[
    ("transports", "linchpin call $URL hello", "Hello, client of 2026-07-28!"),
    ("transports", "linchpin call --transport sse ${URL%/mcp}/sse hello", "Hello, client of"),
    ("transports", "linchpin call hello.sock hello", "Hello, client of 2026-07-28!"),
    ("mount", "linchpin call $URL greet name=Ada", "Hello, Ada!"),
    ("mount", "$EXAMPLES/login $URL", "greet: Greets somebody."),
    (TLS, "SSL_CERT_FILE=certificate.pem linchpin call $URL hello", "Hello over TLS!"),
    ("oauth-proxy https://auth.example acme", "linchpin tools $URL 2>&1; true", "auth.example"),
];

/// The server that needs a certificate, which openssl makes.
const TLS: &str = "tls certificate.pem key.pem localhost";

pub(super) fn check(context: &Context, shell: &Shell, report: &mut Report) -> Result<()> {
    let manifest = std::fs::read_to_string(context.root.join("examples/Cargo.toml"))?;
    let forgotten = forgotten(&manifest);
    let wrong = (!forgotten.is_empty()).then(|| format!("add {} to xtask/src/guide/examples.rs", forgotten.join(", ")));
    note(report, "every example is run", wrong);
    let chapter = std::fs::read_to_string(context.root.join(super::GUIDE).join("examples.md"))?;
    let wrong = miscounted(&chapter, |name| {
        let source = context.root.join(format!("examples/{name}/main.rs"));
        std::fs::read_to_string(source).map_or(0, |text| text.lines().count())
    });
    let wrong = (!wrong.is_empty()).then(|| wrong.join("\n"));
    note(report, "examples have as many lines as their chapter says, and no more than the others'", wrong);
    let folder = std::path::absolute(context.binary("examples"))?.display().to_string();
    for (command, expected) in COMMANDS {
        let done = shell.run(command, &[("EXAMPLES", &folder)])?;
        let right = done.ok && done.output.contains(expected);
        note(report, command, (!right).then(|| format!("it must print `{expected}`:\n{}", done.output)));
    }
    let certificate = login::certificate(&shell.home);
    for (name, command, expected) in SERVERS {
        if let (TLS, Err(error)) = (*name, &certificate) {
            report.counts.skipped += 1;
            report.skips.push(format!("the example {name}: {error:#}"));
            continue;
        }
        let (_served, url) =
            serve(shell, &format!("{folder}/{name}")).with_context(|| format!("the example {name}"))?;
        let done = shell.run(command, &[("URL", &url), ("EXAMPLES", &folder)])?;
        let right = done.ok && done.output.contains(expected);
        note(report, command, (!right).then(|| format!("{name} must answer `{expected}`:\n{}", done.output)));
    }
    Ok(())
}

/// A server that ends when it is dropped.
pub(super) struct Served(Child);

impl Served {
    pub(super) fn spawn(mut command: Command) -> Result<Served> {
        Ok(Served(command.spawn().context("cannot be started")?))
    }
}

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
        let commands = COMMANDS.iter().map(|(command, _)| command).chain(SERVERS.iter().map(|(_, command, _)| command));
        commands.flat_map(|command| command.split([' ', ';', '\n'])).any(|word| word == format!("$EXAMPLES/{name}"))
            || SERVERS.iter().any(|(server, ..)| server.split(' ').next() == Some(name))
    };
    untested.filter(|name| !is_run(name)).collect()
}

/// Rows of `| [NAME](…) | OURS | THEIRS |` that are not so.
fn miscounted(chapter: &str, lines_of: impl Fn(&str) -> usize) -> Vec<String> {
    let (mut wrong, mut counted) = (Vec::new(), 0);
    for row in chapter.lines().filter(|row| row.starts_with("| [")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, name, ours, theirs, ..] = cells[..] else { continue };
        let number = |cell: &str| cell.split(',').next().and_then(|cell| cell.parse::<usize>().ok());
        let (Some(ours), Some(theirs)) = (number(ours), number(theirs)) else { continue };
        let name = name[1..].split(']').next().unwrap_or_default();
        let now = lines_of(name);
        counted += 1;
        if now != ours || now > theirs {
            wrong.push(format!("{name} has {now} lines; the chapter says {ours}, and {theirs} for the other"));
        }
    }
    if counted == 0 {
        wrong.push("the chapter has no table of lines".to_owned());
    }
    wrong
}

/// Starts a server with its address as the last argument: it, and its URL.
pub(super) fn serve(shell: &Shell, program: &str) -> Result<(Served, String)> {
    let mut words = program.split(' ');
    let mut command = Command::new(words.next().unwrap_or_default());
    command
        .args(words)
        .arg("127.0.0.1:0")
        .current_dir(&shell.home)
        .env("PATH", &shell.path)
        .stdin(Stdio::null())
        .stderr(Stdio::piped());
    command.env("LINCHPIN_CLIENT_ID", "client").env("LINCHPIN_CLIENT_SECRET", "secret");
    let mut served = Served::spawn(command)?;
    let said = BufReader::new(served.0.stderr.take().context("no standard error")?).lines();
    for line in said {
        let line = line?;
        if let Some(at) = line.find("http://").or_else(|| line.find("https://")) {
            return Ok((served, line[at..].split_whitespace().next().unwrap_or_default().to_owned()));
        }
    }
    anyhow::bail!("it ended before it said where it listens")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_count_of_lines_is_told() {
        let chapter = "| [a](x) | 3 | 5, more |\n| [b](x) | 4 | 9 |\n| [c](x) | does |\n| [d](x) | 7 | 6 |\n";
        let wrong = miscounted(chapter, |name| if name == "d" { 7 } else { 3 });
        assert!(wrong.len() == 2 && wrong[0].starts_with("b has 3") && wrong[1].starts_with("d has 7"), "{wrong:?}");
    }

    #[test]
    fn an_example_that_nothing_runs_is_named() {
        let manifest =
            "[[example]]\nname = \"adder\"\n[[example]]\nname = \"new\"\n[[example]]\nname = \"own\"\ntest = true\n";
        assert_eq!(forgotten(manifest), ["new"]);
    }
}
