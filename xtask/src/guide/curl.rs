//! Requests with curl: each is sent to the server that its chapter names, and must be answered with a result.

use anyhow::{Context as _, Result};

use super::examples::serve;
use super::{Shell, documents, note};
use crate::context::Context;
use crate::markdown::blocks;
use crate::process;
use crate::report::Report;

/// The server of the requests, and where it listens in the guide.
const SERVER: &str = "linchpin serve time --http";
const URL: &str = "http://127.0.0.1:8931/mcp";

/// The header whose value is `$SESSION` in later requests.
const SESSION: &str = "mcp-session-id: ";

pub(super) fn check(context: &Context, shell: &Shell, report: &mut Report) -> Result<()> {
    let mut requests = Vec::new();
    for (path, text) in documents(context)? {
        for block in blocks(&text).into_iter().filter(|block| block.language == "sh") {
            let named = text.contains(SERVER);
            requests.extend(curls(&block.code).map(|curl| (format!("{path}:{}", block.line), named, curl)));
        }
    }
    if !process::exists("curl", "--version") {
        report.counts.skipped += requests.len() as u64;
        report.skips.push(format!("{} requests of the guide: curl is not here", requests.len()));
        return Ok(());
    }
    let (_served, url) = serve(shell, SERVER).context(SERVER)?;
    let mut session = String::new();
    for (place, named, curl) in requests {
        let line = curl.replacen("curl ", "curl --silent --show-error --max-time 30 ", 1).replace(URL, &url);
        let done = shell.run(&line, &[("SESSION", &session)])?;
        if let Some(id) = done.output.lines().find_map(|line| line.strip_prefix(SESSION)) {
            id.trim().clone_into(&mut session);
        }
        let right =
            named && done.ok && done.output.contains("\"result\":") && !done.output.contains("\"isError\":true");
        let wrong = (!right).then(|| format!("$ {curl}\n{}\nto `{SERVER}`, which the chapter must name", done.output));
        note(report, &format!("{place}: the request is answered"), wrong);
    }
    Ok(())
}

/// The command lines of curl in a block: from one to the next.
fn curls(code: &str) -> impl Iterator<Item = String> {
    let mut found: Vec<String> = Vec::new();
    for line in code.lines() {
        if line.starts_with("curl ") {
            found.push(String::new());
        }
        if let Some(curl) = found.last_mut() {
            curl.push_str(line);
            curl.push('\n');
        }
    }
    found.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_of_a_block_is_a_command() {
        let found: Vec<String> = curls("x\ncurl a \\\n  -d b\ncurl c\n").collect();
        assert_eq!(found, ["curl a \\\n  -d b\n", "curl c\n"]);
    }
}
