//! Git's patches and `--numstat`.

use crate::exec::output::{fields, lossy};

use schemars::JsonSchema;
use serde::Serialize;

/// Rewrites git's patches with the headers of the published server: for each file a blank line, `--- a/…`, `+++ b/…`,
/// then the hunks unchanged.
pub(crate) fn patches(out: &[u8]) -> Vec<u8> {
    let mut shown = Vec::with_capacity(out.len());
    let mut header: Option<Header> = None;
    for line in out.split_inclusive(|byte| *byte == b'\n') {
        if let Some(rest) = line.strip_prefix(b"diff --git ") {
            if let Some(done) = header.take() {
                done.write(&mut shown);
            }
            header = Some(Header::of(rest));
            continue;
        }
        if header.as_mut().is_some_and(|open| open.take(line)) {
            continue;
        }
        if let Some(done) = header.take() {
            done.write(&mut shown);
        }
        shown.extend_from_slice(line);
    }
    if let Some(done) = header {
        done.write(&mut shown);
    }
    shown
}

/// A file's header lines, before its hunks.
#[derive(Default)]
struct Header {
    pub(crate) old: Vec<u8>,
    pub(crate) new: Vec<u8>,
    pub(crate) added: bool,
    pub(crate) deleted: bool,
    pub(crate) binary: bool,
}

impl Header {
    /// From `a/path b/path` if the two are certainly equal.
    pub(crate) fn symmetric(names: &[u8]) -> Option<Self> {
        let names = names.strip_suffix(b"\n").unwrap_or(names);
        let (old, new) = names.split_at(names.len() / 2);
        let (old, new) = (unquoted(old), unquoted(new.strip_prefix(b" ")?));
        let path = old.strip_prefix(b"a/").filter(|path| new.strip_prefix(b"b/") == Some(path))?.to_vec();
        Some(Self { old: path.clone(), new: path, ..Self::default() })
    }

    /// From `a/path b/path`; only needed if both are equal, in which case the middle is known.
    pub(crate) fn of(names: &[u8]) -> Self {
        let names = names.strip_suffix(b"\n").unwrap_or(names);
        let path = if names.first() == Some(&b'"') {
            let mut end = 1;
            while end < names.len() && names[end] != b'"' {
                end += if names[end] == b'\\' { 2 } else { 1 };
            }
            unquoted(&names[..=end.min(names.len() - 1)])
        } else {
            names[..names.len() / 2].to_vec()
        };
        let path = path.get(2..).unwrap_or_default().to_vec();
        Self { old: path.clone(), new: path, ..Self::default() }
    }

    /// Parses a header line; `false` if it is none.
    pub(crate) fn take(&mut self, line: &[u8]) -> bool {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let name =
            |prefix: &[u8]| line.strip_prefix(prefix).map(|name| unquoted(name.strip_suffix(b"\t").unwrap_or(name)));
        if line.starts_with(b"new file mode ") {
            self.added = true;
        } else if line.starts_with(b"deleted file mode ") {
            self.deleted = true;
        } else if let Some(path) = name(b"rename from ") {
            self.old = path;
        } else if let Some(path) = name(b"rename to ") {
            self.new = path;
        } else if let Some(path) = name(b"--- ") {
            if path != b"/dev/null" {
                self.old = path.get(2..).unwrap_or_default().to_vec();
            }
        } else if let Some(path) = name(b"+++ ") {
            if path != b"/dev/null" {
                self.new = path.get(2..).unwrap_or_default().to_vec();
            }
        } else {
            let known: [&[u8]; 5] =
                [b"old mode ", b"new mode ", b"similarity index ", b"dissimilarity index ", b"index "];
            return known.iter().any(|known| line.starts_with(known));
        }
        true
    }

    pub(crate) fn write(&self, shown: &mut Vec<u8>) {
        let mut side = |mark: &[u8], absent: bool, prefix: &[u8], path: &[u8]| {
            shown.extend_from_slice(mark);
            if absent {
                shown.extend_from_slice(b"/dev/null");
            } else {
                shown.extend_from_slice(prefix);
                shown.extend_from_slice(path);
            }
        };
        side(b"\n--- ", self.added, b"a/", &self.old);
        side(b"\n+++ ", self.deleted, b"b/", &self.new);
        shown.push(b'\n');
    }
}

/// Statistics of git's patches, as from `--numstat`; `None` if the patches do not tell, or contain anything unknown.
pub(crate) fn patch_stats(out: &[u8]) -> Option<Vec<FileStat>> {
    let mut stats: Vec<FileStat> = Vec::new();
    let mut lines = out.split_inclusive(|byte| *byte == b'\n').peekable();
    while let Some(line) = lines.next() {
        let mut header = Header::symmetric(line.strip_prefix(b"diff --git ")?);
        let mut renamed = 0;
        while let Some(line) = lines.next_if(|line| !line.starts_with(b"@@ ") && !line.starts_with(b"diff --git ")) {
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            if text.starts_with(b"Binary files ") && text.ends_with(b" differ") {
                header.as_mut()?.binary = true;
                continue;
            }
            let names = [&b"rename from "[..], b"copy from ", b"rename to ", b"copy to "];
            if let Some(at) = names.iter().position(|name| text.starts_with(name)) {
                let name = unquoted(&text[names[at].len()..]);
                let header = header.get_or_insert_default();
                renamed += 1;
                if at < 2 { header.old = name } else { header.new = name }
            } else if !Header::default().take(line) {
                return None;
            }
        }
        let header = header?;
        let mut stat = FileStat {
            path: lossy(&header.new),
            from: (renamed == 2).then(|| lossy(&header.old)),
            added: (!header.binary).then_some(0),
            removed: (!header.binary).then_some(0),
        };
        while let Some(line) = lines.next_if(|line| line.starts_with(b"@@ ")) {
            let (mut old, mut new) = hunk_size(line)?;
            while old > 0 || new > 0 {
                match lines.next()?.first()? {
                    b'-' => (old, stat.removed) = (old.checked_sub(1)?, Some(stat.removed? + 1)),
                    b'+' => (new, stat.added) = (new.checked_sub(1)?, Some(stat.added? + 1)),
                    b' ' | b'\n' => (old, new) = (old.checked_sub(1)?, new.checked_sub(1)?),
                    b'\\' => {}
                    _ => return None,
                }
            }
            lines.next_if(|line| line.starts_with(b"\\"));
        }
        // Without a hunk (renamed, emptied, mode changed) only `--numstat` tells whether git considers the file binary.
        // A file that became a symlink, or the reverse, has two patches but is counted once.
        let counted = stat.added != Some(0) || stat.removed != Some(0);
        if !counted || stats.last().is_some_and(|last| last.path == stat.path) {
            return None;
        }
        stats.push(stat);
    }
    Some(stats)
}

/// The line counts before and after, from `@@ -1,2 +3 @@`.
fn hunk_size(line: &[u8]) -> Option<(u64, u64)> {
    let line = lossy(line);
    let mut parts = line.split(' ').skip(1);
    let mut size = |mark: char| {
        let range = parts.next()?.strip_prefix(mark)?;
        range.split_once(',').map_or(Some(1), |(_, count)| count.parse().ok())
    };
    Some((size('-')?, size('+')?))
}

/// A name as git quotes it: with escapes and in quotes if it contains anything unusual.
pub(crate) fn unquoted(name: &[u8]) -> Vec<u8> {
    let Some(inner) = name.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")) else { return name.to_vec() };
    let mut plain = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            plain.push(byte);
            continue;
        }
        match bytes.next() {
            Some(digit @ b'0'..=b'7') => {
                let mut value = u32::from(digit - b'0');
                for _ in 0..2 {
                    if let Some(digit) = bytes.next_if(|byte| (b'0'..=b'7').contains(byte)) {
                        value = value * 8 + u32::from(digit - b'0');
                    }
                }
                plain.push(u8::try_from(value & 0xff).unwrap_or(b'?'));
            }
            Some(b'n') => plain.push(b'\n'),
            Some(b't') => plain.push(b'\t'),
            Some(b'r') => plain.push(b'\r'),
            Some(b'a') => plain.push(7),
            Some(b'b') => plain.push(8),
            Some(b'f') => plain.push(12),
            Some(b'v') => plain.push(11),
            Some(other) => plain.push(other),
            None => {}
        }
    }
    plain
}

/// The statistics of a changed file.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FileStat {
    pub(crate) path: String,
    /// The old path of a renamed file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<String>,
    /// Lines added; absent for binary files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) added: Option<u64>,
    /// Lines removed; absent for binary files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) removed: Option<u64>,
}

/// Parses the records of `--numstat -z`.
pub(crate) fn file_stats(out: &[u8]) -> Vec<FileStat> {
    let mut stats: Vec<FileStat> = Vec::new();
    let mut records = fields(out).into_iter();
    while let Some(record) = records.next() {
        let mut parts = record.splitn(3, '\t');
        let (Some(added), Some(removed), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let (from, path) = match path {
            "" => (records.next(), records.next().unwrap_or_default()),
            path => (None, path.to_owned()),
        };
        stats.push(FileStat { path, from, added: added.parse().ok(), removed: removed.parse().ok() });
    }
    stats
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_patches_are_unquoted() {
        for (quoted, plain) in [
            (&br#""a/caf\303\251""#[..], "a/café".as_bytes()),
            (br#""a\tb\"c\\""#, b"a\tb\"c\\"),
            (b"plain name", b"plain name"),
        ] {
            assert_eq!(unquoted(quoted), plain);
        }
    }
}
