//! Where a snapshot takes files from: memory, or a directory.

use crate::limits::{DEPTH_MAX, ENTRIES_MAX};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Files by their path, with `/` between its segments.
pub(crate) trait Files {
    /// The size of each.
    fn sizes(&self) -> BTreeMap<String, u64>;
    /// The bytes of one.
    fn read(&mut self, path: &str) -> io::Result<Bytes>;
}

/// A set of skill files in memory, for [`Skills::dynamic`](crate::Skills::dynamic).
///
/// ```
/// use linchpin_skills::SkillFiles;
///
/// let files = SkillFiles::new()
///     .file("desk/SKILL.md", "---\nname: desk\ndescription: How the desk works.\n---\n")
///     .file("desk/hours.md", "9 to 5");
/// ```
#[derive(Clone, Debug, Default)]
pub struct SkillFiles(BTreeMap<String, Bytes>);

impl SkillFiles {
    /// Creates an empty set of files.
    pub fn new() -> SkillFiles {
        SkillFiles::default()
    }

    /// Adds a file by its path, for example `refunds/SKILL.md`.
    pub fn file(mut self, path: impl Into<String>, content: impl AsRef<[u8]>) -> SkillFiles {
        self.0.insert(path.into(), Bytes::copy_from_slice(content.as_ref()));
        self
    }
}

impl<P: Into<String>, B: AsRef<[u8]>> FromIterator<(P, B)> for SkillFiles {
    fn from_iter<I: IntoIterator<Item = (P, B)>>(files: I) -> SkillFiles {
        files.into_iter().fold(SkillFiles::new(), |all, (path, content)| all.file(path, content))
    }
}

impl Files for SkillFiles {
    fn sizes(&self) -> BTreeMap<String, u64> {
        let mut sizes = BTreeMap::new();
        sizes.extend(self.0.iter().map(|(path, bytes)| (path.clone(), bytes.len() as u64)));
        sizes
    }

    fn read(&mut self, path: &str) -> io::Result<Bytes> {
        self.0.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// The files below a directory, as they were when it was walked.
#[derive(PartialEq)]
pub(crate) struct Walked {
    root: PathBuf,
    /// What the paths of all files begin with: the name of the directory if it is a skill itself.
    prefix: String,
    files: BTreeMap<String, Stamp>,
    /// What was passed over, one sentence each.
    pub(crate) problems: Vec<String>,
}

/// What shows that a file changed.
#[derive(PartialEq)]
struct Stamp {
    size: u64,
    modified: Option<SystemTime>,
    file: (u64, u64),
}

impl Walked {
    /// Walks a directory. Hidden files, links that lead outside, and what is neither file nor directory are passed
    /// over.
    pub(crate) fn new(root: &Path) -> io::Result<Walked> {
        let root = root.canonicalize()?;
        if !root.is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotADirectory, format!("{} is not a directory", root.display())));
        }
        let own = root.join(crate::path::SKILL_MD).is_file();
        let name = root.file_name().and_then(|name| name.to_str()).filter(|_| own);
        let prefix = name.map(|name| format!("{name}/")).unwrap_or_default();
        let mut walked = Walked { root: root.clone(), prefix, files: BTreeMap::new(), problems: Vec::new() };
        let mut seen = 0;
        walked.walk(&root, &mut String::new(), 0, &mut seen)?;
        Ok(walked)
    }

    fn walk(&mut self, directory: &Path, at: &mut String, depth: usize, seen: &mut usize) -> io::Result<()> {
        if depth > DEPTH_MAX {
            self.problems.push(format!("{at}: directories are nested deeper than {DEPTH_MAX}"));
            return Ok(());
        }
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            *seen += 1;
            if *seen > ENTRIES_MAX {
                let why = format!("there are more than {ENTRIES_MAX} files and directories");
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
            let Ok(name) = entry.file_name().into_string() else {
                self.problems.push(format!("{at}{}: the name is not UTF-8", entry.file_name().to_string_lossy()));
                continue;
            };
            if name.starts_with('.') {
                continue;
            }
            let length = at.len();
            at.push_str(&name);
            self.visit(&entry.path(), at, depth, seen)?;
            at.truncate(length);
        }
        Ok(())
    }

    fn visit(&mut self, path: &Path, at: &mut String, depth: usize, seen: &mut usize) -> io::Result<()> {
        let link = fs::symlink_metadata(path)?.is_symlink();
        // A link to a file inside is that file; one to a directory could lead in circles.
        let inside =
            !link || path.canonicalize().is_ok_and(|target| target.starts_with(&self.root) && target.is_file());
        if !inside {
            self.problems.push(format!("{at}: the link leads outside, nowhere, or to a directory"));
            return Ok(());
        }
        let found = fs::metadata(path)?;
        if found.is_dir() {
            at.push('/');
            self.walk(path, at, depth + 1, seen)
        } else if found.is_file() {
            let stamp = Stamp { size: found.len(), modified: found.modified().ok(), file: identity(&found) };
            self.files.insert(format!("{}{at}", self.prefix), stamp);
            Ok(())
        } else {
            self.problems.push(format!("{at}: it is neither a file nor a directory"));
            Ok(())
        }
    }
}

#[cfg(unix)]
fn identity(found: &fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt as _;
    (found.ino(), found.ctime_nsec().cast_unsigned())
}

#[cfg(not(unix))]
fn identity(_: &fs::Metadata) -> (u64, u64) {
    (0, 0)
}

impl Files for Walked {
    fn sizes(&self) -> BTreeMap<String, u64> {
        let mut sizes = BTreeMap::new();
        sizes.extend(self.files.iter().map(|(path, stamp)| (path.clone(), stamp.size)));
        sizes
    }

    fn read(&mut self, path: &str) -> io::Result<Bytes> {
        use std::io::Read as _;
        let (Some(stamp), Some(below)) = (self.files.get(path), path.strip_prefix(self.prefix.as_str())) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let place = self.root.join(below);
        // Between walking and reading it may have become a link or a pipe.
        if !place.canonicalize()?.starts_with(&self.root) || !fs::metadata(&place)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("{path} changed while it was read")));
        }
        let mut bytes = Vec::with_capacity(stamp.size as usize);
        fs::File::open(&place)?.take(stamp.size + 1).read_to_end(&mut bytes)?;
        Ok(bytes.into())
    }
}
