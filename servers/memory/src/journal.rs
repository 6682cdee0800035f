//! The history of changes, in a file beside the memory file: one line for each change, with the records before and after.
//!
//! It is written after the change itself, under the same lock. A process that is killed between the two leaves a change
//! without a line; undoing an older one then finds other records than it expects and refuses. A torn line is skipped.

use crate::files::{self, io_fault};
use crate::graph::Change;
use linchpin_kit::Fault;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes of the file before it is cut to the newest half.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Bytes of one line; a change that needs more is listed but cannot be undone.
const LINE_BYTES_MAX: usize = 4 << 20;

/// One change.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) id: u64,
    /// When, RFC 3339 in UTC.
    pub(crate) time: String,
    pub(crate) tool: String,
    /// The change that this one undid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) undoes: Option<u64>,
    /// How many records it changed.
    pub(crate) records: usize,
    /// What; nothing when it was too much to keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) changes: Option<Vec<Change>>,
}

/// How far the file was read, so that the next line gets the next number without reading it all again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tail {
    bytes: u64,
    lines: usize,
    next: u64,
}

#[derive(Debug)]
pub(crate) struct Journal {
    pub(crate) path: PathBuf,
    /// How many entries count.
    pub(crate) keep: usize,
}

impl Journal {
    /// Adds an entry; call it under the lock. `tail` is what the last call left there.
    pub(crate) fn append(
        &self,
        tail: &mut Option<Tail>,
        tool: &str,
        undoes: Option<u64>,
        changes: Vec<Change>,
    ) -> Result<(), Fault> {
        let fail = |error: std::io::Error| io_fault("write the history", &self.path, &error);
        let mut file = files::options().read(true).append(true).create(true).open(&self.path).map_err(fail)?;
        let meta = file.metadata().map_err(fail)?;
        if !meta.is_file() {
            return Err(Fault::new(format!("The history is not a file: {}", self.path.display())));
        }
        let bytes = meta.len();
        let known = match *tail {
            Some(known) if known.bytes == bytes => known,
            _ => self.count(&mut file, bytes)?,
        };
        let records = changes.len();
        let mut entry =
            Entry { id: known.next, time: now(), tool: tool.into(), undoes, records, changes: Some(changes) };
        let mut line = serde_json::to_string(&entry).map_err(|e| fail(e.into()))?;
        if line.len() > LINE_BYTES_MAX {
            entry.changes = None;
            line = serde_json::to_string(&entry).map_err(|e| fail(e.into()))?;
        }
        line.push('\n');
        // A process that was killed while it wrote left a line without an end.
        if bytes > 0 && !ends_a_line(&mut file).map_err(fail)? {
            line.insert(0, '\n');
        }
        file.write_all(line.as_bytes()).map_err(fail)?;
        let now = Tail { bytes: bytes + line.len() as u64, lines: known.lines + 1, next: known.next + 1 };
        *tail = Some(now);
        if now.bytes > FILE_BYTES_MAX || now.lines > self.keep.saturating_mul(2).max(16) {
            self.shorten()?;
            *tail = None;
        }
        Ok(())
    }

    fn count(&self, file: &mut std::fs::File, bytes: u64) -> Result<Tail, Fault> {
        let entries = self.parse(file)?;
        Ok(Tail { bytes, lines: entries.len(), next: entries.last().map_or(1, |last| last.id.saturating_add(1)) })
    }

    /// The entries that count, oldest first.
    pub(crate) fn read(&self) -> Result<Vec<Entry>, Fault> {
        let mut file = match files::options().read(true).open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(io_fault("read the history", &self.path, &error)),
        };
        let mut entries = self.parse(&mut file)?;
        let surplus = entries.len().saturating_sub(self.keep);
        Ok(entries.split_off(surplus))
    }

    fn parse(&self, file: &mut std::fs::File) -> Result<Vec<Entry>, Fault> {
        let fail = |error: std::io::Error| io_fault("read the history", &self.path, &error);
        file.seek(SeekFrom::Start(0)).map_err(fail)?;
        let mut bytes = Vec::new();
        // Twice the bound: one line may have been added before the file is shortened.
        file.take(FILE_BYTES_MAX * 2).read_to_end(&mut bytes).map_err(fail)?;
        let lines = bytes.split(|byte| *byte == b'\n');
        Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
    }

    fn shorten(&self) -> Result<(), Fault> {
        let mut kept = Vec::new();
        let mut bytes = 0;
        for entry in self.read()?.iter().rev() {
            let line = serde_json::to_string(entry).unwrap_or_default();
            bytes += line.len() as u64 + 1;
            if bytes > FILE_BYTES_MAX / 2 {
                break;
            }
            kept.push(line);
        }
        kept.reverse();
        let mut text = kept.join("\n");
        text.push('\n');
        files::replace(&self.path, text.as_bytes(), None).map(|_| ())
    }
}

/// Which entries are undone: those with an undoing entry that is not undone itself.
pub(crate) fn undone(entries: &[Entry]) -> HashSet<u64> {
    let mut undone = HashSet::new();
    for entry in entries.iter().rev() {
        if let Some(older) = entry.undoes.filter(|_| !undone.contains(&entry.id)) {
            undone.insert(older);
        }
    }
    undone
}

fn ends_a_line(file: &mut std::fs::File) -> std::io::Result<bool> {
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

fn now() -> String {
    rfc3339(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

/// Seconds since 1970 as `2026-11-21T09:14:06Z` (days from civil, after Howard Hinnant).
fn rfc3339(seconds: u64) -> String {
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (time / 3_600, time % 3_600 / 60, time % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Kind;

    fn change(text: &str) -> Vec<Change> {
        vec![Change { kind: Kind::Entity, at: 0, before: None, after: Some(text.into()) }]
    }

    fn journal(keep: usize) -> (tempfile::TempDir, Journal) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.jsonl.history");
        (dir, Journal { path, keep })
    }

    #[test]
    fn times_are_written_as_rfc_3339() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_795_252_446, "2026-11-21T09:14:06Z"),
            (4_102_444_799, "2099-12-31T23:59:59Z"),
        ] {
            assert_eq!(rfc3339(seconds), text);
        }
    }

    #[test]
    fn numbers_go_on_where_another_process_stopped_and_torn_lines_are_skipped() {
        let (_dir, journal) = journal(50);
        let mut tails = [None, None];
        for process in [0, 1, 0] {
            journal.append(&mut tails[process], "t", None, change("x")).unwrap();
        }
        let mut torn = std::fs::read(&journal.path).unwrap();
        torn.truncate(torn.len() - 5);
        std::fs::write(&journal.path, torn).unwrap();
        journal.append(&mut tails[1], "t", None, change("y")).unwrap();
        let ids: Vec<u64> = journal.read().unwrap().iter().map(|entry| entry.id).collect();
        assert_eq!(ids, [1, 2, 3]);
    }

    #[test]
    fn it_keeps_the_newest_and_stays_small() {
        let (_dir, journal) = journal(10);
        let mut tail = None;
        for n in 0..100 {
            journal.append(&mut tail, "t", None, change(&n.to_string())).unwrap();
        }
        let ids: Vec<u64> = journal.read().unwrap().iter().map(|entry| entry.id).collect();
        assert_eq!(ids, (91..=100).collect::<Vec<u64>>());
        assert!(std::fs::read_to_string(&journal.path).unwrap().lines().count() <= 20);
    }

    #[test]
    fn what_is_too_large_is_listed_without_its_records() {
        let (_dir, journal) = journal(1_000);
        let mut tail = None;
        let large = "x".repeat(LINE_BYTES_MAX);
        journal.append(&mut tail, "t", None, change(&large)).unwrap();
        let entries = journal.read().unwrap();
        assert!(entries[0].changes.is_none() && entries[0].records == 1);
        let almost = "x".repeat(LINE_BYTES_MAX - 500);
        for _ in 0..6 {
            journal.append(&mut tail, "t", None, change(&almost)).unwrap();
            assert!(std::fs::metadata(&journal.path).unwrap().len() <= FILE_BYTES_MAX);
        }
        assert_eq!(journal.read().unwrap().last().unwrap().id, 7);
    }

    #[test]
    fn undoing_an_undo_makes_the_first_one_stand_again() {
        let entry =
            |id, undoes| Entry { id, time: String::new(), tool: String::new(), undoes, records: 0, changes: None };
        let entries = [entry(1, None), entry(2, Some(1)), entry(3, Some(2)), entry(4, None), entry(5, Some(4))];
        assert_eq!(undone(&entries), HashSet::from([2, 4]));
    }
}
