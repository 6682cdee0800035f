//! Blocks in the languages of others: the TypeScript server is run, nginx proxies a call, and what a unit or an image starts is
//! parsed by the program.
//!
//! The server of rmcp is compiled with the others' servers, in `--all`; here it is compared.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::examples::{Served, serve};
use super::sessions::command_lines;
use super::{Shell, documents, note};
use crate::context::Context;
use crate::markdown::Block;
use crate::report::Report;
use crate::tools;

/// What this module checks.
pub(crate) const LANGUAGES: &[&str] = &["dockerfile", "ini", "nginx", "rs", "ts"];

/// The file that has the server of rmcp as the guide shows it.
const RMCP: &str = "conformance/interop/servers/rmcp/src/hits.rs";

/// What the TypeScript server leaves out: imports, and the catalog.
const TYPESCRIPT: &str = r#"import { McpServer } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import * as z from "zod";
const search = async (query, limit) => `${limit} of ${query}`;
"#;

/// Where the proxied server listens in the guide.
const UPSTREAM: &str = "127.0.0.1:8931";
/// How long nginx may take to listen.
const LISTENING_S_MAX: u64 = 10;

pub(super) fn check(context: &Context, shell: &Shell, report: &mut Report) -> Result<()> {
    for (path, text) in documents(context)? {
        for Block { line, language, code } in crate::markdown::blocks(&text) {
            let place = format!("{path}:{line}");
            match language.as_str() {
                "ts" => match typescript(context, shell, &code) {
                    Ok(wrong) => note(report, &format!("{place}: the server answers"), wrong),
                    Err(error) => {
                        report.counts.skipped += 1;
                        report.skips.push(format!("{place}: {error:#}"));
                    }
                },
                "nginx" => match nginx(context, shell, &code)? {
                    Some(wrong) => note(report, &format!("{place}: nginx passes a call on"), wrong),
                    None => {
                        report.counts.skipped += 1;
                        report.skips.push(format!("{place}: nginx is not here and cannot be installed"));
                    }
                },
                "rs" => {
                    let compiled = std::fs::read_to_string(context.root.join(RMCP)).unwrap_or_default();
                    let same = compiled.contains(&code);
                    note(report, &format!("{place}: is in {RMCP}"), (!same).then_some(code));
                }
                "ini" | "dockerfile" => {
                    let commands = command_lines(&started(&language, &code));
                    let none = commands.is_empty().then(|| "it starts no program".to_owned());
                    note(report, &format!("{place}: starts the program"), none);
                    for command in commands {
                        let done = shell.run(&command, &[])?;
                        let wrong = (!done.ok).then(|| format!("$ {command}\n{}", done.output));
                        note(report, &format!("{place}: the program understands its command line"), wrong);
                    }
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// The command lines of the program that a unit or an image starts.
fn started(language: &str, code: &str) -> String {
    let words = |line: &str| serde_json::from_str::<Vec<String>>(line).unwrap_or_default();
    let of = |start: &str| code.lines().find_map(|line| line.strip_prefix(start)).unwrap_or_default();
    let line = match language {
        "ini" => of("ExecStart=").to_owned(),
        _ => [words(of("ENTRYPOINT ")), words(of("CMD "))].concat().join(" "),
    };
    line.split_once(' ').map(|(_, arguments)| format!("linchpin {arguments}")).unwrap_or_default()
}

fn typescript(context: &Context, shell: &Shell, code: &str) -> Result<Option<String>> {
    let home = tools::npm(context, "servers")?;
    let file = std::path::absolute(home.join("guide.mjs"))?;
    std::fs::write(&file, format!("{TYPESCRIPT}{code}"))?;
    let node = tools::node(context)?;
    let command = format!("linchpin call search query=tea -- {} {}", node.display(), file.display());
    let done = shell.run(&command, &[])?;
    Ok((!done.ok || !done.output.contains("10 of tea")).then_some(done.output))
}

/// What is wrong when a call goes through nginx as the block configures it; `None` where there is no nginx.
fn nginx(context: &Context, shell: &Shell, code: &str) -> Result<Option<Option<String>>> {
    let home = std::path::absolute(context.results("nginx")?)?;
    let Some(program) = tools::nginx(context)? else { return Ok(None) };
    let (_served, url) = serve(shell, "linchpin serve everything --http")?;
    let upstream = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let file = home.join("nginx.conf");
    let _ = std::fs::remove_file(home.join("error.log"));
    std::fs::write(&file, configuration(&home, port, &code.replace(UPSTREAM, upstream)))?;
    let mut command = Command::new(program);
    command.arg("-e").arg(home.join("error.log")).arg("-c").arg(&file);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let _nginx = Served::spawn(command)?;
    let deadline = Instant::now() + Duration::from_secs(LISTENING_S_MAX);
    while TcpStream::connect(("127.0.0.1", port)).is_err() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    // Two steps, each reported on the stream before the answer.
    let call = format!("linchpin call http://127.0.0.1:{port}/mcp trigger-long-running-operation duration=1 steps=2");
    let done = shell.run(&call, &[])?;
    let right = done.ok && done.output.contains("completed");
    let said = || std::fs::read_to_string(home.join("error.log")).unwrap_or_default();
    Ok(Some((!right).then(|| format!("$ {call}\n{}{}", done.output, said()))))
}

/// nginx in the foreground on this port, with nothing outside `home`.
fn configuration(home: &Path, port: u16, location: &str) -> String {
    let home = home.display();
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary: String = temporary.iter().map(|what| format!("{what}_temp_path {home}/{what};\n")).collect();
    format!(
        "daemon off; master_process off; pid {home}/pid;\nevents {{}}\nhttp {{\naccess_log off;\n{temporary}\
         server {{ listen 127.0.0.1:{port};\n{location}}}\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_and_an_image_start_the_program_with_their_arguments() {
        let unit = "[Service]\nExecStart=/usr/bin/linchpin serve time --http 1:2\n";
        assert_eq!(started("ini", unit), "linchpin serve time --http 1:2");
        let image = "ENTRYPOINT [\"/linchpin\"]\nCMD [\"serve\", \"time\"]\n";
        assert_eq!(started("dockerfile", image), "linchpin serve time");
        assert_eq!(started("dockerfile", "CMD serve"), "");
    }
}
