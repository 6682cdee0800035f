//! `git status --porcelain=v2`.

use crate::exec::output::fields;

use linchpin_kit::Paging;
use schemars::JsonSchema;
use serde::Serialize;

/// The state of the work tree.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Status {
    /// The current branch; absent if HEAD is detached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) branch: Option<String>,
    /// The current commit; absent before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) head: Option<String>,
    /// The upstream branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) upstream: Option<String>,
    /// Local commits that the upstream lacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ahead: Option<u64>,
    /// Upstream commits that the branch lacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) behind: Option<u64>,
    /// Whether nothing is staged, changed or untracked.
    pub(crate) clean: bool,
    /// Changed and untracked paths.
    pub(crate) entries: Vec<StatusEntry>,
    #[serde(flatten)]
    pub(crate) paging: Paging,
}

/// A changed or untracked path.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct StatusEntry {
    pub(crate) path: String,
    /// The staged change: `.` none, `A` added, `M` modified, `D` deleted, `R` renamed, `C` copied, `T` type changed, `U`
    /// conflict, `?` untracked.
    pub(crate) staged: char,
    /// The unstaged change, in the same letters.
    pub(crate) unstaged: char,
    /// The path it was renamed or copied from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<String>,
}

impl Status {
    pub(crate) fn empty() -> Self {
        Self {
            branch: None,
            head: None,
            upstream: None,
            ahead: None,
            behind: None,
            clean: true,
            entries: Vec::new(),
            paging: Paging::whole(),
        }
    }
}

pub(crate) fn parse_status(out: &[u8]) -> Status {
    let mut status = Status::empty();
    let mut records = fields(out).into_iter();
    while let Some(record) = records.next() {
        let (kind, rest) = record.split_once(' ').unwrap_or((&record, ""));
        let entry = |skip: usize, from: Option<String>| {
            let mut letters = rest.chars();
            let (staged, unstaged) = (letters.next().unwrap_or('.'), letters.next().unwrap_or('.'));
            let path = rest.splitn(skip + 1, ' ').nth(skip).unwrap_or_default().to_owned();
            StatusEntry { path, staged, unstaged, from }
        };
        match kind {
            "#" => {
                let (key, value) = rest.split_once(' ').unwrap_or((rest, ""));
                match key {
                    "branch.oid" if value != "(initial)" => status.head = Some(value.to_owned()),
                    "branch.head" if value != "(detached)" => status.branch = Some(value.to_owned()),
                    "branch.upstream" => status.upstream = Some(value.to_owned()),
                    "branch.ab" => {
                        let mut numbers = value.split(' ').map(|n| n.trim_start_matches(['+', '-']).parse().ok());
                        (status.ahead, status.behind) = (numbers.next().flatten(), numbers.next().flatten());
                    }
                    _ => {}
                }
            }
            "1" => status.entries.push(entry(7, None)),
            // The limit may have cut the old path of the last one.
            "2" => status.entries.extend(records.next().map(|from| entry(8, Some(from)))),
            "u" => status.entries.push(entry(9, None)),
            "?" => status.entries.push(StatusEntry { path: rest.to_owned(), staged: '?', unstaged: '?', from: None }),
            _ => {}
        }
    }
    status.clean = status.entries.is_empty();
    status
}
