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

/// What is added: no progress, no waiting for ever, and nobody between the request and this machine.
const OPTIONS: &str = "--silent --show-error --max-time 30 --noproxy '*'";

/// The header whose value is `$SESSION` in later requests.
const SESSION: &str = "mcp-session-id: ";

pub(super) fn check(context: &Context, shell: &Shell, report: &mut Report) -> Result<()> {
    let mut chapters = Vec::new();
    for (path, text) in documents(context)? {
        let blocks = blocks(&text).into_iter().filter(|block| block.language == "sh");
        let requests: Vec<(usize, String)> =
            blocks.flat_map(|block| curls(&block.code).into_iter().map(move |curl| (block.line, curl))).collect();
        if !requests.is_empty() {
            chapters.push((path, text, requests));
        }
    }
    note(report, "the guide has requests", chapters.is_empty().then(|| "there is no line of curl".to_owned()));
    if !process::exists("curl", "--version") {
        let requests: usize = chapters.iter().map(|(.., requests)| requests.len()).sum();
        report.absorb(Report::skipped(format!("{requests} requests of the guide: curl is not here")));
        return Ok(());
    }
    let (_served, url) = serve(shell, SERVER).context(SERVER)?;
    for (path, text, requests) in chapters {
        let mut session = String::new();
        for (line, curl) in requests {
            let place = format!("{path}:{line}: the request is answered");
            if !text.contains(SERVER) || !curl.contains(URL) {
                note(report, &place, Some(format!("{curl}It must be for {URL}, and the chapter must name `{SERVER}`")));
                continue;
            }
            let command = format!("curl {OPTIONS} {}", &curl["curl ".len()..]).replace(URL, &url);
            let done = shell.run(&command, &[("SESSION", &session)])?;
            if let Some(id) = done.output.lines().find_map(|line| line.strip_prefix(SESSION)) {
                id.trim().clone_into(&mut session);
            }
            let answered = done.output.contains("\"result\":") && !done.output.contains("\"isError\":true");
            let wrong = (!done.ok || !answered).then(|| format!("$ {curl}{}", done.output));
            note(report, &place, wrong);
        }
    }
    Ok(())
}

/// The command lines of curl in a block, with the lines that continue them.
fn curls(code: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut open = false;
    for line in code.lines() {
        if !open && line.starts_with("curl ") {
            open = true;
            found.push(String::new());
        }
        if let (true, Some(curl)) = (open, found.last_mut()) {
            curl.push_str(line);
            curl.push('\n');
            // Quotes may be open at the end of a line, too.
            open = line.ends_with('\\') || curl.matches('\'').count() % 2 == 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_of_a_block_is_a_command() {
        let found = curls("x\ncurl a \\\n  -d 'b\n  c'\nls\ncurl d\n");
        assert_eq!(found, ["curl a \\\n  -d 'b\n  c'\n", "curl d\n"]);
    }
}
