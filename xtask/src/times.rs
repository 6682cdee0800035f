//! How long each stage took, as a table: written by every run, and shown in CONTRIBUTING.

use std::time::Duration;

use crate::schedule::Done;

/// A Markdown table of stages with their begin and duration in seconds.
pub(crate) fn table(done: &[Done], whole: Duration) -> String {
    let mut text = String::from("| stage | begins at s | takes s | checks |\n|---|--:|--:|--:|\n");
    for done in done {
        let (began, took) = (done.began.as_secs(), done.took.as_secs_f64());
        let counts = done.report.counts;
        let checks = match counts.passed + counts.failed {
            0 => "skipped".to_string(),
            checks => checks.to_string(),
        };
        text.push_str(&format!("| {} | {began} | {took:.0} | {checks} |\n", done.stage));
    }
    text.push_str(&format!("| **all** | | **{}** | |\n", whole.as_secs()));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Report;

    #[test]
    fn every_stage_has_a_row_and_skipped_ones_say_so() {
        let done = |stage, began, took, report| Done {
            stage,
            began: Duration::from_secs(began),
            took: Duration::from_secs(took),
            report,
        };
        let rows = [
            done("fmt", 0, 2, Report::one(true, String::new())),
            done("keyring", 2, 0, Report::skipped("no bus".into())),
        ];
        let expected = "| stage | begins at s | takes s | checks |\n|---|--:|--:|--:|\n\
                        | fmt | 0 | 2 | 1 |\n| keyring | 2 | 0 | skipped |\n| **all** | | **2** | |\n";
        assert_eq!(table(&rows, Duration::from_secs(2)), expected);
    }
}
