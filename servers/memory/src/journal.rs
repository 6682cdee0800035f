//! The history and the times, in one file next to the memory file, whose published format has no place for them.
//!
//! A change adds a line for each entity it touched, with the times of creation and change and a fingerprint of its line
//! in the memory file; and a line for itself, with the records before and after. A time is valid only while the
//! fingerprint matches, so lines written by other programs never get a time of this server.
//!
//! The lines are written after the change itself, in a single write and under the same lock. If the process is killed
//! in between, the change has no lines: undoing an older change then finds unexpected records and refuses, and the time
//! is unknown. An incomplete line is skipped.

use crate::files::{self, Stamp, io_fault};
use crate::format::Entity;
use crate::graph::{Change, Graph, Item, Kind};
use jiff::Timestamp;
use linchpin_kit::ToolError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// Maximum bytes of the file before it is rewritten without outdated lines; then at most a quarter of it is changes,
/// and a quarter times, the newest ones.
const FILE_BYTES_MAX: u64 = 32 << 20;
/// Maximum bytes of a change's line; a larger change is listed but cannot be undone.
const LINE_BYTES_MAX: usize = 4 << 20;
/// Outdated lines of times, beyond as many as the valid ones, before the file is rewritten.
const TIMES_LINES_SPARE: usize = 1_000;

/// A change.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) id: u64,
    /// The time, RFC 3339 in UTC.
    pub(crate) time: String,
    pub(crate) tool: String,
    /// The change that this one undoes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) undoes: Option<u64>,
    /// The number of changed records.
    pub(crate) records: usize,
    /// The records before and after; empty if they were too large to keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) changes: Option<Vec<Change>>,
}

/// The changes that are undone: those with an undo that is not undone itself.
pub(crate) fn undone(entries: &[Entry]) -> HashSet<u64> {
    let mut undone = HashSet::new();
    for entry in entries.iter().rev() {
        if let Some(older) = entry.undoes.filter(|_| !undone.contains(&entry.id)) {
            undone.insert(older);
        }
    }
    undone
}

/// When an entity was created and changed, as far as known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "camelCase")]
pub(crate) struct When {
    /// When it was created, UTC. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) created: Option<String>,
    /// When it was last changed, UTC. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) updated: Option<String>,
    /// It was changed at an unknown time after this, UTC: by another program, or when this server was killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) changed_after: Option<String>,
}

/// The last change of an entity, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last {
    At(u64),
    /// After this time.
    After(u64),
    Unknown,
}

/// The content of a line of times.
#[derive(Debug)]
struct Known {
    created: Option<u64>,
    updated: u64,
    /// The fingerprint of the entity's line in the memory file.
    line: u64,
}

/// A line of times; without `updated` the times are unknown from then on.
#[derive(Debug, Serialize, Deserialize)]
struct TimesLine {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    created: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    updated: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<String>,
}

/// The fields of a change's line that identify it.
#[derive(Deserialize)]
struct Numbered {
    id: u64,
}

/// The beginnings of lines, also of incomplete ones: of times and of changes.
const TIMES_START: &[u8] = b"{\"name\":\"";
const CHANGE_START: &[u8] = b"{\"id\":";

/// The file and its content.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    /// The number of changes to keep; 0 keeps none.
    pub(crate) keep: usize,
    /// Whether times are kept.
    times: bool,
    known: HashMap<String, Known>,
    /// Changes in the file, other lines in it, and the number of the next change.
    changes: usize,
    lines: usize,
    next: u64,
    seen: Option<Seen>,
    /// Why the file cannot be used in this state.
    wrong: Option<ToolError>,
}

#[derive(Debug)]
struct Seen {
    stamp: Stamp,
    /// The end of the last complete line.
    read: u64,
    /// Kept open, so that its inode number is not reused.
    _held: Option<File>,
}

impl Journal {
    pub(crate) fn new(path: PathBuf, keep: usize, times: bool) -> Self {
        Self { path, keep, times, known: HashMap::new(), changes: 0, lines: 0, next: 1, seen: None, wrong: None }
    }

    /// Whether times are kept.
    pub(crate) fn keeps_times(&self) -> bool {
        self.times
    }

    /// Whether the file is unchanged since it was read.
    pub(crate) fn is_fresh(&self) -> bool {
        let stamp = fs::symlink_metadata(&self.path).ok().map(|meta| Stamp::of(&meta));
        stamp.as_ref() == self.seen.as_ref().map(|seen| &seen.stamp)
    }

    fn fail(&self, what: &str, error: &std::io::Error) -> ToolError {
        io_fault(what, &self.path, error)
    }

    fn forget(&mut self) {
        *self = Self::new(std::mem::take(&mut self.path), self.keep, self.times);
    }

    /// Reads new lines of the file. After an error nothing is known.
    pub(crate) fn refresh(&mut self) -> Result<(), ToolError> {
        if !self.is_fresh()
            && let Err(fault) = self.read_on()
        {
            self.forget();
            let meta = fs::symlink_metadata(&self.path).ok();
            self.seen = meta.map(|meta| Seen { stamp: Stamp::of(&meta), read: 0, _held: None });
            self.wrong = Some(fault);
        }
        self.wrong.clone().map_or(Ok(()), Err)
    }

    fn open(&self) -> Result<Option<(File, fs::Metadata)>, ToolError> {
        let fail = |error: std::io::Error| self.fail("read the history", &error);
        let file = match files::options().read(true).open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(fail(error)),
        };
        let meta = file.metadata().map_err(fail)?;
        if !meta.is_file() || meta.len() > FILE_BYTES_MAX * 2 {
            let why = if meta.is_file() { "is too large" } else { "is not a regular file" };
            return Err(ToolError::new(format!("The history {why}: {}", self.path.display())));
        }
        Ok(Some((file, meta)))
    }

    fn read_on(&mut self) -> Result<(), ToolError> {
        let Some((mut file, meta)) = self.open()? else {
            self.forget();
            return Ok(());
        };
        let stamp = Stamp::of(&meta);
        if self.wrong.is_some() || !self.seen.as_ref().is_some_and(|seen| seen.stamp.continues_in(&stamp)) {
            self.forget();
        }
        let from = self.seen.as_ref().map_or(0, |seen| seen.read);
        let mut bytes = Vec::new();
        let read =
            file.seek(SeekFrom::Start(from)).and_then(|_| (&mut file).take(FILE_BYTES_MAX * 2).read_to_end(&mut bytes));
        read.map_err(|e| self.fail("read the history", &e))?;
        // The last line may still be incomplete; it is read again next time.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        bytes[..whole].split(|byte| *byte == b'\n').for_each(|line| self.take(line));
        let (changes, lines) = (self.changes, self.lines);
        self.take(&bytes[whole..]);
        let nothing = self.known.is_empty() && self.changes == 0;
        (self.changes, self.lines) = (changes, lines);
        let ours = [TIMES_START, CHANGE_START];
        let ours = || bytes.split(|byte| *byte == b'\n').any(|line| ours.iter().any(|start| line.starts_with(start)));
        if nothing && from == 0 && !bytes.trim_ascii().is_empty() && !ours() {
            return Err(ToolError::new(format!("Not a history file: {}", self.path.display())).hint(
                "It has other content and is not changed. Move it away, or disable --history and --timestamps.",
            ));
        }
        self.seen = Some(Seen { stamp, read: from + whole as u64, _held: cfg!(unix).then_some(file) });
        Ok(())
    }

    /// Parses a line of the file; incomplete and foreign lines are skipped.
    fn take(&mut self, bytes: &[u8]) {
        if bytes.trim_ascii().is_empty() {
            return;
        }
        if let Ok(Numbered { id }) = serde_json::from_slice(bytes) {
            self.changes += 1;
            self.next = id.saturating_add(1);
            return;
        }
        self.lines += 1;
        let Ok(line) = serde_json::from_slice::<TimesLine>(bytes) else { return };
        let updated = line.updated.as_deref().and_then(seconds);
        let fingerprint = line.line.as_deref().and_then(|hex| u64::from_str_radix(hex, 16).ok());
        match (updated, fingerprint) {
            (Some(updated), Some(fingerprint)) => {
                let created = line.created.as_deref().and_then(seconds);
                self.known.insert(line.name, Known { created, updated, line: fingerprint });
            }
            _ => drop(self.known.remove(&line.name)),
        }
    }

    /// The changes kept, oldest first.
    pub(crate) fn entries(&self) -> Result<Vec<Entry>, ToolError> {
        self.newest(self.keep)
    }

    fn newest(&self, count: usize) -> Result<Vec<Entry>, ToolError> {
        if let Some(wrong) = &self.wrong {
            return Err(wrong.clone());
        }
        let Some((file, _)) = self.open()? else { return Ok(Vec::new()) };
        let mut bytes = Vec::new();
        let read = file.take(FILE_BYTES_MAX * 2).read_to_end(&mut bytes);
        read.map_err(|e| self.fail("read the history", &e))?;
        let changes = bytes.split(|byte| *byte == b'\n').filter(|line| !line.starts_with(TIMES_START));
        let mut entries: Vec<Entry> = changes.filter_map(|line| serde_json::from_slice(line).ok()).collect();
        let surplus = entries.len().saturating_sub(count);
        Ok(entries.split_off(surplus))
    }

    /// The last change of this entity. `graph` must not be older than this state.
    pub(crate) fn last(&self, graph: &Graph, item: &Item<Entity>) -> Last {
        let name = &item.value().name;
        match self.known.get(name) {
            // With two entities of the same name, the time could belong to either.
            Some(_) if graph.is_there_twice(name) => Last::Unknown,
            Some(known) if known.line == fingerprint(&*item.record.line) => Last::At(known.updated),
            Some(known) => Last::After(known.updated),
            None => Last::Unknown,
        }
    }

    /// The same as text, with the creation time.
    pub(crate) fn when(&self, graph: &Graph, item: &Item<Entity>) -> When {
        match self.last(graph, item) {
            Last::Unknown => When::default(),
            Last::After(at) => When { changed_after: Some(rfc3339(at)), ..When::default() },
            Last::At(at) => {
                let created = self.known.get(&item.value().name).and_then(|known| known.created).map(rfc3339);
                When { created, updated: Some(rfc3339(at)), changed_after: None }
            }
        }
    }

    /// Records that these changes were made now; call it under the lock. `graph` is the resulting graph. With `undoes`,
    /// restored entities keep their creation time from the history.
    pub(crate) fn record(
        &mut self,
        graph: &Graph,
        tool: &str,
        undoes: Option<u64>,
        mut changes: Vec<Change>,
    ) -> Result<(), ToolError> {
        if self.keep == 0 && !self.times {
            return Ok(());
        }
        self.refresh()?;
        let now = now();
        let mut text = String::new();
        let touched = if self.times { self.touch(&mut changes, undoes.is_some(), now) } else { BTreeSet::new() };
        touched.iter().for_each(|name| write_times(name, self.known.get(name), &mut text));
        if self.keep > 0 {
            let records = changes.len();
            let mut entry =
                Entry { id: self.next, time: rfc3339(now), tool: tool.into(), undoes, records, changes: Some(changes) };
            let write =
                |entry: &Entry| serde_json::to_string(entry).map_err(|e| self.fail("write the history", &e.into()));
            let mut line = write(&entry)?;
            if line.len() > LINE_BYTES_MAX {
                entry.changes = None;
                line = write(&entry)?;
            }
            text.extend([&line, "\n"]);
        }
        if text.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.append(text) {
            // The file contains less than this state: read it again.
            self.forget();
            return Err(self.fail("write the history", &error));
        }
        self.lines += touched.len();
        if self.keep > 0 {
            (self.changes, self.next) = (self.changes + 1, self.next + 1);
        }
        let spare = self.lines > self.known.len() * 2 + TIMES_LINES_SPARE
            || self.keep > 0 && self.changes > self.keep.saturating_mul(2).max(16)
            || self.seen.as_ref().is_some_and(|seen| seen.read > FILE_BYTES_MAX);
        if spare { self.shorten(graph) } else { Ok(()) }
    }

    /// Sets the times of the entities in these changes; returns their names. A change that removes an entity records
    /// when it was created.
    fn touch(&mut self, changes: &mut [Change], undoing: bool, now: u64) -> BTreeSet<String> {
        let mut touched = BTreeSet::new();
        for change in changes.iter_mut().filter(|change| change.kind == Kind::Entity) {
            let Some(name) = change.after.as_deref().or(change.before.as_deref()).and_then(name_of) else { continue };
            let before = change.before.as_deref().map(fingerprint);
            let created = match (self.known.remove(&name), before) {
                (Some(known), Some(before)) if known.line == before => known.created,
                // An entity that another program changed in between may have been recreated by it.
                (_, Some(_)) => None,
                (_, None) if undoing => change.created.as_deref().and_then(seconds),
                (_, None) => Some(now),
            };
            match &change.after {
                Some(after) => {
                    let line = fingerprint(after);
                    self.known.insert(name.clone(), Known { created, updated: now, line });
                }
                None => change.created = created.map(rfc3339),
            }
            touched.insert(name);
        }
        touched
    }

    fn append(&mut self, mut text: String) -> std::io::Result<()> {
        let mut file = files::options().read(true).append(true).create(true).open(&self.path)?;
        let bytes = file.metadata()?.len();
        // A process killed during a write left an incomplete line.
        if bytes > self.seen.as_ref().map_or(0, |seen| seen.read) {
            text.insert(0, '\n');
        }
        file.write_all(text.as_bytes())?;
        let stamp = Stamp::of(&file.metadata()?);
        self.seen = Some(Seen { stamp, read: bytes + text.len() as u64, _held: cfg!(unix).then_some(file) });
        Ok(())
    }

    /// Rewrites the file with what is still valid: times of existing entities, and changes, the newest ones if it would
    /// be too large.
    fn shorten(&mut self, graph: &Graph) -> Result<(), ToolError> {
        let most = usize::try_from(FILE_BYTES_MAX / 4).unwrap_or(usize::MAX);
        let mut times: Vec<(&String, &Known)> = self.known.iter().filter(|(name, _)| graph.has(name)).collect();
        times.sort_unstable_by(|a, b| b.1.updated.cmp(&a.1.updated).then(a.0.cmp(b.0)));
        let mut text = String::new();
        for (name, known) in times {
            let length = text.len();
            write_times(name, Some(known), &mut text);
            if text.len() > most {
                text.truncate(length);
                break;
            }
        }
        let mut lines: Vec<String> = Vec::new();
        let mut bytes = 0;
        // A server that keeps none leaves those of others.
        let count = if self.keep == 0 { usize::MAX } else { self.keep };
        for entry in self.newest(count)?.iter().rev() {
            lines.push(serde_json::to_string(entry).unwrap_or_default() + "\n");
            bytes += lines.last().map_or(0, String::len);
            if bytes > most && lines.len() > 1 {
                lines.pop();
                break;
            }
        }
        text.extend(lines.into_iter().rev());
        // As it was, so that others whom it was shared with can still write to it.
        let like = fs::symlink_metadata(&self.path).ok();
        files::replace(&self.path, text.as_bytes(), like.as_ref())?;
        self.forget();
        self.refresh()
    }
}

fn write_times(name: &str, known: Option<&Known>, text: &mut String) {
    let line = TimesLine {
        name: name.to_owned(),
        created: known.and_then(|known| known.created).map(rfc3339),
        updated: known.map(|known| rfc3339(known.updated)),
        line: known.map(|known| format!("{:016x}", known.line)),
    };
    text.push_str(&serde_json::to_string(&line).unwrap_or_default());
    text.push('\n');
}

/// The name in an entity's line.
fn name_of(line: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    serde_json::from_str::<Named>(line).ok().map(|named| named.name)
}

/// Hashes a text (FNV-1a). The hash is stored in files, so it must be the same in every build.
pub(crate) fn fingerprint(text: impl AsRef<[u8]>) -> u64 {
    let one = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    text.as_ref().iter().fold(0xcbf2_9ce4_8422_2325, one)
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The inverse of [`rfc3339`]; `None` for any other format. A date alone is the start of that day.
pub(crate) fn seconds(text: &str) -> Option<u64> {
    let midnight = || format!("{text}T00:00:00Z");
    let text = if text.len() == 10 { midnight() } else { text.to_owned() };
    let seconds = u64::try_from(text.parse::<Timestamp>().ok()?.as_second()).ok()?;
    (rfc3339(seconds) == text).then_some(seconds)
}

/// Formats seconds since 1970 as `2026-11-21T09:14:06Z`.
fn rfc3339(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    time.unwrap_or(Timestamp::MAX).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    fn change(text: &str) -> Vec<Change> {
        vec![Change { kind: Kind::Entity, at: 0, before: None, after: Some(text.into()), created: None }]
    }

    fn journal(keep: usize) -> (tempfile::TempDir, Journal) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.jsonl.history");
        (dir, Journal::new(path, keep, false))
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
            assert_eq!(super::seconds(text), Some(seconds));
        }
        assert_eq!(seconds("2026-11-21"), seconds("2026-11-21T00:00:00Z"));
        for wrong in [
            "",
            "2026",
            "2026-02-29",
            "2026-13-01",
            "2026-00-10",
            "2026-01-00",
            "1969-12-31",
            "2026-11-21T24:00:00Z",
            "2026-11-21T09:14:06",
            "2026-11-21t09:14:06z",
            "2026-11-21T09:14:06+01:00",
            "+026-11-21",
            "äääää",
            "0000-01-01",
            "99999-01-01",
            "2026-11-21T09:60:06Z",
        ] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }

    fn add(journal: &mut Journal, text: &str) {
        journal.record(&Graph::default(), "t", None, change(text)).unwrap();
    }

    fn ids(journal: &Journal) -> Vec<u64> {
        journal.entries().unwrap().iter().map(|entry| entry.id).collect()
    }

    #[test]
    fn numbers_go_on_where_another_process_stopped_and_torn_lines_are_skipped() {
        let (_dir, mut ours) = journal(50);
        let mut theirs = Journal::new(ours.path.clone(), 50, false);
        add(&mut ours, "x");
        add(&mut theirs, "x");
        add(&mut ours, "x");
        let mut torn = std::fs::read(&ours.path).unwrap();
        torn.truncate(torn.len() - 5);
        std::fs::write(&ours.path, torn).unwrap();
        add(&mut theirs, "y");
        assert_eq!(ids(&ours), [1, 2, 3]);
        // Only the end of the line is missing.
        let mut torn = std::fs::read(&ours.path).unwrap();
        torn.pop();
        std::fs::write(&ours.path, torn).unwrap();
        add(&mut ours, "z");
        assert_eq!(ids(&ours), [1, 2, 3, 4]);
    }

    #[test]
    fn it_keeps_the_newest_and_stays_small() {
        let (_dir, mut journal) = journal(10);
        for n in 0..100 {
            add(&mut journal, &n.to_string());
        }
        assert_eq!(ids(&journal), (91..=100).collect::<Vec<u64>>());
        assert!(std::fs::read_to_string(&journal.path).unwrap().lines().count() <= 20);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_is_shared_with_a_group_stays_so_when_it_is_written_anew() {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
        let (_dir, mut journal) = journal(10);
        add(&mut journal, "x");
        fs::set_permissions(&journal.path, fs::Permissions::from_mode(0o660)).unwrap();
        let before = fs::metadata(&journal.path).unwrap();
        for n in 0..30 {
            add(&mut journal, &n.to_string());
        }
        let after = fs::metadata(&journal.path).unwrap();
        assert_ne!(after.ino(), before.ino(), "it was written anew");
        assert_eq!((after.mode() & 0o777, after.gid()), (0o660, before.gid()));
    }

    #[test]
    fn what_is_too_large_is_listed_without_its_records() {
        let (_dir, mut journal) = journal(1_000);
        add(&mut journal, &"x".repeat(LINE_BYTES_MAX));
        let entries = journal.entries().unwrap();
        assert!(entries[0].changes.is_none() && entries[0].records == 1);
        let almost = "x".repeat(LINE_BYTES_MAX - 500);
        for _ in 0..10 {
            add(&mut journal, &almost);
            assert!(std::fs::metadata(&journal.path).unwrap().len() <= FILE_BYTES_MAX);
        }
        assert_eq!(ids(&journal).last(), Some(&11));
    }

    #[test]
    fn undoing_an_undo_makes_the_first_one_stand_again() {
        let entry =
            |id, undoes| Entry { id, time: String::new(), tool: String::new(), undoes, records: 0, changes: None };
        let entries = [entry(1, None), entry(2, Some(1)), entry(3, Some(2)), entry(4, None), entry(5, Some(4))];
        assert_eq!(undone(&entries), HashSet::from([2, 4]));
    }
}
