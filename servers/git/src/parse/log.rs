//! Commits.

use crate::exec::output::fields;
use crate::page::brief;

use schemars::JsonSchema;
use serde::Serialize;

/// One commit.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Commit {
    pub(crate) hash: String,
    pub(crate) author: String,
    pub(crate) email: String,
    /// The author date: ISO 8601 with the author's offset.
    pub(crate) date: String,
    pub(crate) parents: Vec<String>,
    pub(crate) message: String,
}

/// The format that [`commits`] parses: hash, author, email, date, parents, message.
pub(crate) const COMMIT_FORMAT: &str = "--format=%H%x00%an%x00%ae%x00%ai%x00%P%x00%B";

pub(crate) fn commits(out: &[u8]) -> Vec<Commit> {
    let fields = fields(out);
    let commit = |record: &[String]| Commit {
        hash: record[0].clone(),
        author: brief(&record[1]),
        email: brief(&record[2]),
        date: record[3].clone(),
        parents: record[4].split_whitespace().map(str::to_owned).collect(),
        message: record[5].clone(),
    };
    fields.chunks_exact(6).map(commit).collect()
}

/// Formats `2024-01-15 14:30:25 +0100` as the published server does: `2024-01-15 14:30:25+01:00`.
pub(crate) fn python_date(date: &str) -> String {
    match date.rsplit_once(' ') {
        Some((time, zone)) if zone.len() == 5 && zone.is_ascii() => format!("{time}{}:{}", &zone[..3], &zone[3..]),
        _ => date.to_owned(),
    }
}

pub(crate) fn iso_date(date: &str) -> String {
    python_date(date).replacen(' ', "T", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_have_the_published_forms() {
        assert_eq!(python_date("2026-01-03 10:00:00 +0530"), "2026-01-03 10:00:00+05:30");
        assert_eq!(iso_date("2026-01-03 10:00:00 -0930"), "2026-01-03T10:00:00-09:30");
        assert_eq!(python_date("odd"), "odd");
    }
}
