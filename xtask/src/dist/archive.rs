//! Archives whose bytes depend on nothing but what is in them: entries in the given order, one time, root's unless said
//! otherwise.

use std::io::{Cursor, Write as _};

use anyhow::{Context as _, Result};
use flate2::{Compression, GzBuilder};

/// A file of an archive.
#[derive(Clone)]
pub(crate) struct Entry {
    /// Its path, without a leading slash.
    pub(crate) path: String,
    pub(crate) bytes: Vec<u8>,
    /// Whether it is a program.
    pub(crate) executable: bool,
}

impl Entry {
    /// A file that is not a program.
    pub(crate) fn file(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Entry {
        Entry { path: path.into(), bytes: bytes.into(), executable: false }
    }

    /// A program.
    pub(crate) fn program(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Entry {
        Entry { executable: true, ..Entry::file(path, bytes) }
    }

    /// The same at another path.
    pub(crate) fn at(&self, path: impl Into<String>) -> Entry {
        Entry { path: path.into(), ..self.clone() }
    }

    fn mode(&self) -> u32 {
        if self.executable { 0o755 } else { 0o644 }
    }
}

/// A directory that is not root's alone.
#[derive(Clone, Copy)]
pub(crate) struct Folder {
    /// Its path, without slashes at its ends.
    pub(crate) path: &'static str,
    pub(crate) mode: u32,
    /// The number of its user and group.
    pub(crate) owner: u64,
}

/// Compresses with gzip. `level` is 1 to 9.
pub(crate) fn gzip(bytes: &[u8], level: u32) -> Result<Vec<u8>> {
    let mut gz = GzBuilder::new().mtime(0).write(Vec::new(), Compression::new(level));
    gz.write_all(bytes)?;
    Ok(gz.finish()?)
}

/// A tar archive of `entries`, with their directories, all of the time `epoch` (seconds since 1970).
pub(crate) fn tar(entries: &[Entry], epoch: u64) -> Result<Vec<u8>> {
    tar_with(&[], entries, epoch)
}

/// The same, with `folders` before the entries.
pub(crate) fn tar_with(folders: &[Folder], entries: &[Entry], epoch: u64) -> Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::new());
    let mut directories = std::collections::BTreeSet::new();
    let header = |kind: tar::EntryType, size: usize, mode: u32| {
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(kind);
        header.set_size(size as u64);
        header.set_mode(mode);
        header.set_mtime(epoch);
        header.set_uid(0);
        header.set_gid(0);
        header
    };
    for folder in folders {
        let path = format!("{}/", folder.path);
        let mut header = header(tar::EntryType::Directory, 0, folder.mode);
        header.set_uid(folder.owner);
        header.set_gid(folder.owner);
        tar.append_data(&mut header, &path, &[][..])?;
        directories.insert(path);
    }
    for entry in entries {
        let parts: Vec<&str> = entry.path.split('/').collect();
        for depth in 1..parts.len() {
            let directory = format!("{}/", parts[..depth].join("/"));
            if directory != "./" && directories.insert(directory.clone()) {
                let mut header = header(tar::EntryType::Directory, 0, 0o755);
                tar.append_data(&mut header, &directory, &[][..])?;
            }
        }
        let mut header = header(tar::EntryType::Regular, entry.bytes.len(), entry.mode());
        tar.append_data(&mut header, &entry.path, &entry.bytes[..]).with_context(|| entry.path.clone())?;
    }
    Ok(tar.into_inner()?)
}

/// A zip archive of `entries`, whose times are the first that the format knows.
pub(crate) fn zip(entries: &[Entry], level: u32) -> Result<Vec<u8>> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for entry in entries {
        let options = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Deflated)
            .compression_level(Some(level.into()))
            .last_modified_time(zip::DateTime::default())
            .unix_permissions(entry.mode());
        zip.start_file(&entry.path, options)?;
        zip.write_all(&entry.bytes)?;
    }
    Ok(zip.finish()?.into_inner())
}

/// A Unix `ar` archive, as Debian packages are.
pub(crate) fn ar(members: &[(&str, Vec<u8>)], epoch: u64) -> Vec<u8> {
    let mut ar = b"!<arch>\n".to_vec();
    for (name, bytes) in members {
        ar.extend(format!("{name:<16}{epoch:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, "100644", bytes.len()).bytes());
        ar.extend(bytes);
        if bytes.len() % 2 == 1 {
            ar.push(b'\n');
        }
    }
    ar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_files_make_the_same_bytes() {
        let entries = [Entry::program("bin/a", b"program".to_vec()), Entry::file("b", b"text".to_vec())];
        let made = || {
            let tar = tar(&entries, 1_700_000_000).unwrap();
            (gzip(&tar, 9).unwrap(), zip(&entries, 9).unwrap(), ar(&[("x", tar.clone())], 1))
        };
        let (first, second) = (made(), made());
        std::thread::sleep(std::time::Duration::from_millis(10));
        assert!(first == second && first == made());
    }

    #[test]
    fn a_tar_archive_names_directories_once_and_programs_as_such() {
        let entries = [Entry::program("bin/a", vec![1]), Entry::file("bin/b", vec![2; 3])];
        let bytes = tar(&entries, 7).unwrap();
        let mut archive = tar::Archive::new(&bytes[..]);
        let seen: Vec<(String, u32, u64)> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let path = entry.path().unwrap().display().to_string();
                (path, entry.header().mode().unwrap(), entry.header().mtime().unwrap())
            })
            .collect();
        assert_eq!(seen, [("bin/".into(), 0o755, 7), ("bin/a".into(), 0o755, 7), ("bin/b".into(), 0o644, 7)]);
    }

    #[test]
    fn members_of_ar_begin_at_even_places() {
        let bytes = ar(&[("odd", vec![b'x']), ("next", vec![b'y'])], 0);
        assert_eq!(bytes.len(), 8 + 60 + 2 + 60 + 2);
        assert_eq!(&bytes[8 + 60..8 + 62], b"x\n");
    }
}
