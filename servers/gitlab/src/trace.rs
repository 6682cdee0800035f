//! Logs of jobs: their end, without what only terminals understand.

use crate::original::PROJECT;
use linchpin_kit::ToolError;
use linchpin_rest::{Answer, Args, Ask, Call, Rest, get, int};
use serde_json::json;

pub(crate) const TRACE: Call = get("job_trace", "", "", "", "/projects/{project_id}/jobs/{job_id}/trace")
    .args(&[
        PROJECT,
        int("job_id").range(1, i64::MAX).about("Id of the job."),
        int("lines").range(1, 2_000).default("200").local().about("From the end of the log."),
        int("skip").range(0, i64::MAX).default("0").local().about("Last lines to leave out."),
    ])
    .keep("lines_total lines trace:20000");

/// Bytes of the end of a log, whatever it has in lines.
const BYTES_MAX: usize = 20_000;

/// The last lines of a log.
pub(crate) async fn tail(rest: &Rest, args: Args) -> Result<Answer, ToolError> {
    let reply = rest.send(Ask::of(&TRACE, &args).header("accept", "text/plain")).await?;
    let whole = String::from_utf8_lossy(&reply.body);
    let plain = plain(&whole);
    let total = plain.lines().count();
    let number = |name: &str| args.int(name).and_then(|n| usize::try_from(n).ok()).unwrap_or_default();
    let end = total.saturating_sub(number("skip"));
    let begin = end.saturating_sub(number("lines"));
    let mut lines: Vec<&str> = plain.lines().take(end).skip(begin).collect();
    let mut bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
    while bytes > BYTES_MAX && lines.len() > 1 {
        bytes -= lines.remove(0).len() + 1;
    }
    let text = lines.join("\n");
    let from = text.len().saturating_sub(BYTES_MAX);
    let from = (from..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    Ok(json!({ "lines_total": total, "lines": lines.len(), "trace": reply.cleaned(&text[from..]) }).into())
}

/// A log without colors and marks of sections; what was overwritten in a line is not there.
fn plain(log: &str) -> String {
    let mut out = String::with_capacity(log.len());
    for line in log.lines() {
        let line = without_sequences(line);
        let shown = line.split('\r').rfind(|part| !part.is_empty()).unwrap_or_default();
        let is_mark = shown.starts_with("section_start:") || shown.starts_with("section_end:");
        if !is_mark {
            out.push_str(shown);
            out.push('\n');
        }
    }
    out
}

/// Without `ESC [ … letter`.
fn without_sequences(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        out.push_str(before);
        let end = after.find(|c: char| c.is_ascii_alphabetic());
        rest = end.map_or("", |end| &after[end + 1..]);
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn a_log_is_what_a_terminal_would_show() {
        let log = "\u{1b}[0KRunning\u{1b}[0;m\n\
            section_start:1700000000:step_script\r\u{1b}[0K\u{1b}[36;1mExecuting\u{1b}[0;m\n\
            10%\r50%\r100%\n\
            section_end:1700000000:step_script\r\u{1b}[0K\nä\u{1b}[31";
        assert_eq!(plain(log), "Running\nExecuting\n100%\nä\n");
    }
}
