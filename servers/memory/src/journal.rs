//! The history and the timestamps, in two files beside the memory file, which keeps the published format.
//!
//! The history has one line for each change, with the records before and after. The times have one line for each change
//! of an entity: when it was created and changed, and a fingerprint of its line in the memory file as this server wrote
//! it. A time counts only as long as the fingerprint fits, so that what another program wrote is never given a time of
//! ours.
//!
//! Both are written after the change itself, under the same lock. A process that is killed in between leaves a change
//! without a line: undoing an older one then finds other records than it expects and refuses, and the time is one that
//! is not known. A torn line is skipped.

use crate::files::{self, Stamp, io_fault};
use crate::format::Entity;
use crate::graph::{Change, Graph, Item, Kind};
use linchpin_kit::ToolError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::{self, File};
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
    /// The change that this one undoes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) undoes: Option<u64>,
    /// The number of changed records.
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
    ) -> Result<(), ToolError> {
        let fail = |error: std::io::Error| io_fault("write the history", &self.path, &error);
        let mut file = files::options().read(true).append(true).create(true).open(&self.path).map_err(fail)?;
        let meta = file.metadata().map_err(fail)?;
        if !meta.is_file() {
            return Err(ToolError::new(format!("The history is not a regular file: {}", self.path.display())));
        }
        let bytes = meta.len();
        let known = match *tail {
            Some(known) if known.bytes == bytes => known,
            _ => self.count(&mut file, bytes)?,
        };
        let records = changes.len();
        let mut entry =
            Entry { id: known.next, time: rfc3339(now()), tool: tool.into(), undoes, records, changes: Some(changes) };
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

    fn count(&self, file: &mut std::fs::File, bytes: u64) -> Result<Tail, ToolError> {
        let entries = self.parse(file)?;
        Ok(Tail { bytes, lines: entries.len(), next: entries.last().map_or(1, |last| last.id.saturating_add(1)) })
    }

    /// The entries that count, oldest first.
    pub(crate) fn read(&self) -> Result<Vec<Entry>, ToolError> {
        let mut file = match files::options().read(true).open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(io_fault("read the history", &self.path, &error)),
        };
        let mut entries = self.parse(&mut file)?;
        let surplus = entries.len().saturating_sub(self.keep);
        Ok(entries.split_off(surplus))
    }

    fn parse(&self, file: &mut std::fs::File) -> Result<Vec<Entry>, ToolError> {
        let fail = |error: std::io::Error| io_fault("read the history", &self.path, &error);
        file.seek(SeekFrom::Start(0)).map_err(fail)?;
        let mut bytes = Vec::new();
        // Twice the bound: one line may have been added before the file is shortened.
        file.take(FILE_BYTES_MAX * 2).read_to_end(&mut bytes).map_err(fail)?;
        let lines = bytes.split(|byte| *byte == b'\n');
        Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
    }

    fn shorten(&self) -> Result<(), ToolError> {
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

/// Bytes of the file of times before it is written anew without what is out of date; then the newest half fits at most.
const TIMES_BYTES_MAX: u64 = 16 << 20;
/// Lines beyond twice those that count before it is written anew.
const TIMES_LINES_SPARE: usize = 1_000;

/// When an entity came and changed, as far as that is known.
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

/// When an entity was changed last, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last {
    At(u64),
    /// Later than this.
    After(u64),
    Unknown,
}

/// Keys that are not ours, as they were written.
type Others = BTreeMap<String, Box<RawValue>>;

/// What a line of the times says.
#[derive(Debug)]
struct Known {
    created: Option<u64>,
    updated: u64,
    /// The fingerprint of the entity's line in the memory file.
    line: u64,
    others: Others,
}

/// A line of the times; without `updated` it says that nothing is known any more.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TimesLine {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    created: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    updated: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<String>,
}

/// How every line of ours begins, also one that a killed process left unfinished.
const TIMES_START: &[u8] = b"{\"name\":\"";

/// The file of times, and what it says.
#[derive(Debug)]
pub(crate) struct Times {
    path: PathBuf,
    known: HashMap<String, Known>,
    /// Objects that are not ours: kept.
    foreign: Vec<Box<str>>,
    /// Lines in the file, and those of them that cannot be read and were not torn.
    lines: usize,
    unreadable: usize,
    seen: Option<TimesSeen>,
    /// Why the file as it was seen is of no use.
    wrong: Option<ToolError>,
}

#[derive(Debug)]
struct TimesSeen {
    stamp: Stamp,
    /// Up to the end of the last whole line.
    read: u64,
    /// Open, so that its number is not given to another file.
    _held: Option<File>,
}

impl Times {
    pub(crate) fn of(path: PathBuf) -> Self {
        Self { path, known: HashMap::new(), foreign: Vec::new(), lines: 0, unreadable: 0, seen: None, wrong: None }
    }

    /// Whether the file is as it was when it was read.
    pub(crate) fn is_fresh(&self) -> bool {
        let stamp = fs::symlink_metadata(&self.path).ok().map(|meta| Stamp::of(&meta));
        stamp.as_ref() == self.seen.as_ref().map(|seen| &seen.stamp)
    }

    fn fail(&self, what: &str, error: &std::io::Error) -> ToolError {
        io_fault(what, &self.path, error)
    }

    fn forget(&mut self) {
        *self = Self::of(std::mem::take(&mut self.path));
    }

    /// Reads what is new in the file. After an error nothing is known.
    pub(crate) fn refresh(&mut self) -> Result<(), ToolError> {
        if !self.is_fresh()
            && let Err(fault) = self.read_on()
        {
            self.forget();
            let meta = fs::symlink_metadata(&self.path).ok();
            self.seen = meta.map(|meta| TimesSeen { stamp: Stamp::of(&meta), read: 0, _held: None });
            self.wrong = Some(fault);
        }
        self.wrong.clone().map_or(Ok(()), Err)
    }

    fn read_on(&mut self) -> Result<(), ToolError> {
        let mut file = match files::options().read(true).open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                self.forget();
                return Ok(());
            }
            Err(error) => return Err(self.fail("read the times", &error)),
        };
        let meta = file.metadata().map_err(|e| self.fail("read the times", &e))?;
        if !meta.is_file() || meta.len() > TIMES_BYTES_MAX * 2 {
            let why = if meta.is_file() { "are too large" } else { "are not in a regular file" };
            return Err(ToolError::new(format!("The times {why}: {}", self.path.display())));
        }
        let stamp = Stamp::of(&meta);
        if self.wrong.is_some() || !self.seen.as_ref().is_some_and(|seen| seen.stamp.continues_in(&stamp)) {
            self.forget();
        }
        let from = self.seen.as_ref().map_or(0, |seen| seen.read);
        let mut bytes = Vec::new();
        let read = file
            .seek(SeekFrom::Start(from))
            .and_then(|_| (&mut file).take(TIMES_BYTES_MAX * 2).read_to_end(&mut bytes));
        read.map_err(|e| self.fail("read the times", &e))?;
        // The last line may still be being written; it is looked at again.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        bytes[..whole].split(|byte| *byte == b'\n').for_each(|line| self.take(line));
        if let Ok(last) = serde_json::from_slice(&bytes[whole..]) {
            self.learn(last, Others::new());
        }
        let foreign = self.known.is_empty() && self.unreadable + self.foreign.len() > 0;
        if foreign && from == 0 && !bytes.windows(TIMES_START.len()).any(|part| part == TIMES_START) {
            return Err(ToolError::new(format!("Not a timestamps file: {}", self.path.display()))
                .hint("It has other content and is not changed. Move it away, or disable --timestamps."));
        }
        self.seen = Some(TimesSeen { stamp, read: from + whole as u64, _held: cfg!(unix).then_some(file) });
        Ok(())
    }

    /// One line of the file.
    fn take(&mut self, bytes: &[u8]) {
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        if bytes.trim_ascii().is_empty() {
            return;
        }
        self.lines += 1;
        let Ok(text) = std::str::from_utf8(bytes) else {
            self.unreadable += 1;
            return;
        };
        if let Ok(line) = serde_json::from_str::<TimesLine>(text) {
            self.learn(line, Others::new());
            return;
        }
        // Torn lines are no news: the process that wrote them was killed.
        let Ok(mut members) = serde_json::from_str::<Others>(text) else {
            self.unreadable += usize::from(!bytes.starts_with(TIMES_START) && !TIMES_START.starts_with(bytes));
            return;
        };
        let mut own = |key: &str| members.remove(key).and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
        match own("name") {
            Some(name) => {
                let line = TimesLine { name, created: own("created"), updated: own("updated"), line: own("line") };
                self.learn(line, members);
            }
            None => self.foreign.push(text.into()),
        }
    }

    fn learn(&mut self, line: TimesLine, others: Others) {
        let updated = line.updated.as_deref().and_then(seconds);
        let fingerprint = line.line.as_deref().and_then(|hex| u64::from_str_radix(hex, 16).ok());
        match (updated, fingerprint) {
            (Some(updated), Some(fingerprint)) => {
                let created = line.created.as_deref().and_then(seconds);
                self.known.insert(line.name, Known { created, updated, line: fingerprint, others });
            }
            _ => drop(self.known.remove(&line.name)),
        }
    }

    /// What is wrong with the file, for whoever starts the server.
    pub(crate) fn warning(&self) -> Option<String> {
        (self.unreadable > 0).then(|| {
            format!(
                "{} lines of {} are invalid; they are saved separately when the file is rewritten.",
                self.unreadable,
                self.path.display()
            )
        })
    }

    /// When this entity was changed last. `graph` must not be older than what is known here.
    pub(crate) fn last(&self, graph: &Graph, item: &Item<Entity>) -> Last {
        let name = &item.value().name;
        match self.known.get(name) {
            // Which of two entities of one name is meant nobody knows.
            Some(_) if graph.is_there_twice(name) => Last::Unknown,
            Some(known) if known.line == fingerprint(&*item.record.line) => Last::At(known.updated),
            Some(known) => Last::After(known.updated),
            None => Last::Unknown,
        }
    }

    /// The same in words, with when it was created.
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

    /// Writes down that these changes were made now; call it under the lock. `graph` is the one they led to. A change
    /// that takes an entity away learns when that was created, for the history. `undoing`: what comes back was created
    /// when the history says, not now.
    pub(crate) fn record(&mut self, graph: &Graph, changes: &mut [Change], undoing: bool) -> Result<(), ToolError> {
        self.refresh()?;
        let now = now();
        let mut touched = BTreeSet::new();
        for change in changes.iter_mut().filter(|change| change.kind == Kind::Entity) {
            let Some(name) = change.after.as_deref().or(change.before.as_deref()).and_then(name_of) else { continue };
            let before = change.before.as_deref().map(fingerprint);
            // What somebody else changed in between may have been made anew by them.
            let known = self.known.remove(&name);
            let (created, others) = match (known, before) {
                (Some(known), Some(before)) if known.line == before => (known.created, known.others),
                (Some(known), Some(_)) => (None, known.others),
                (_, None) if undoing => (change.created.as_deref().and_then(seconds), Others::new()),
                (_, None) => (Some(now), Others::new()),
                (None, Some(_)) => (None, Others::new()),
            };
            match &change.after {
                Some(after) => {
                    let line = fingerprint(after);
                    self.known.insert(name.clone(), Known { created, updated: now, line, others });
                }
                None => change.created = created.map(rfc3339),
            }
            touched.insert(name);
        }
        if touched.is_empty() {
            return Ok(());
        }
        let mut text = String::new();
        touched.iter().for_each(|name| write_times(name, self.known.get(name), &mut text));
        if let Err(error) = self.append(text, touched.len()) {
            // The file says less than is known here: go by the file again.
            self.forget();
            return Err(self.fail("write the times", &error));
        }
        let spare = self.lines > self.known.len() * 2 + self.foreign.len() + TIMES_LINES_SPARE;
        if spare || self.seen.as_ref().is_some_and(|seen| seen.read > TIMES_BYTES_MAX) {
            self.shorten(graph)?;
        }
        Ok(())
    }

    fn append(&mut self, mut text: String, lines: usize) -> std::io::Result<()> {
        let mut file = files::options().read(true).append(true).create(true).open(&self.path)?;
        let bytes = file.metadata()?.len();
        // A process that was killed while it wrote left a line without an end.
        if bytes > self.seen.as_ref().map_or(0, |seen| seen.read) {
            text.insert(0, '\n');
        }
        file.write_all(text.as_bytes())?;
        let stamp = Stamp::of(&file.metadata()?);
        self.lines += lines;
        self.seen = Some(TimesSeen { stamp, read: bytes + text.len() as u64, _held: cfg!(unix).then_some(file) });
        Ok(())
    }

    /// Writes the file anew with what counts: entities that are there, the newest ones if it would be too much.
    fn shorten(&mut self, graph: &Graph) -> Result<(), ToolError> {
        let mut entries: Vec<(&String, &Known)> = self.known.iter().filter(|(name, _)| graph.has(name)).collect();
        entries.sort_by(|a, b| b.1.updated.cmp(&a.1.updated).then(a.0.cmp(b.0)));
        let mut text = String::new();
        let foreign: usize = self.foreign.iter().map(|line| line.len() + 1).sum();
        let room = foreign as u64 <= TIMES_BYTES_MAX / 4;
        for line in self.foreign.iter().filter(|_| room) {
            text.push_str(line);
            text.push('\n');
        }
        for (name, known) in entries {
            let length = text.len();
            write_times(name, Some(known), &mut text);
            if text.len() as u64 > TIMES_BYTES_MAX / 2 {
                text.truncate(length);
                break;
            }
        }
        if self.unreadable > 0 || !room {
            let aside = files::beside(&self.path, "bad");
            fs::rename(&self.path, aside).map_err(|e| self.fail("put aside the times", &e))?;
        }
        files::replace(&self.path, text.as_bytes(), None)?;
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
    for (key, value) in known.iter().flat_map(|known| &known.others) {
        text.pop();
        text.push_str(&format!(",{}:{}}}", serde_json::Value::from(key.as_str()), value.get()));
    }
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

/// Tells one text from another (FNV-1a). It is in files, so it must stay the same in every build.
pub(crate) fn fingerprint(text: impl AsRef<[u8]>) -> u64 {
    let one = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    text.as_ref().iter().fold(0xcbf2_9ce4_8422_2325, one)
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The opposite of [`rfc3339`]; `None` for everything that it would write otherwise. A day alone is its beginning.
pub(crate) fn seconds(text: &str) -> Option<u64> {
    let midnight;
    let text = if text.len() == 10 {
        midnight = format!("{text}T00:00:00Z");
        &midnight
    } else {
        text
    };
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (year, month) = if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let (era, year_of_era) = (year / 400, year % 400);
    let day_of_year = (153 * month + 2) / 5 + day.checked_sub(1)?;
    let days = era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let time = number(11, 13)? * 3_600 + number(14, 16)? * 60 + number(17, 19)?;
    let seconds = days.checked_sub(719_468)? * 86_400 + time;
    (rfc3339(seconds) == text).then_some(seconds)
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
    fn change(text: &str) -> Vec<Change> {
        vec![Change { kind: Kind::Entity, at: 0, before: None, after: Some(text.into()), created: None }]
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
