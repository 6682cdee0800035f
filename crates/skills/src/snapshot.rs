//! All skills at one moment: entries, files and directories that fit each other.

use crate::digest;
use crate::files::Files;
use crate::front_matter::FrontMatter;
use crate::limits::{ALL_BYTES_MAX, DESCRIPTION_CHARS_MAX, SKILL_BYTES_MAX, SKILL_FILES_MAX, SKILLS_MAX};
use crate::path::{self, SKILL_MD};
use bytes::Bytes;
use linchpin_types::resource::Resource;
use linchpin_types::skill::{Skill, SkillResource, SkillResources};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;

/// Maximum bytes of a page of a list, unless one entry is longer.
const PAGE_BYTES_MAX: usize = 256 << 10;
/// Maximum items of a page.
const PAGE_ITEMS_MAX: usize = 100;

/// A file as it is served.
pub(crate) struct File {
    pub(crate) bytes: Bytes,
    pub(crate) media_type: &'static str,
}

/// See the module's documentation.
#[derive(Default)]
pub(crate) struct Snapshot {
    /// Sorted by URI.
    pub(crate) skills: Vec<Skill>,
    /// The entries as JSON, in the same order.
    rendered: Vec<Bytes>,
    files: HashMap<String, File>,
    /// Children of each directory, sorted by URI.
    directories: HashMap<String, Vec<Resource>>,
    /// The pages of the whole list, by the cursor that leads to each: rendered once.
    pages: BTreeMap<String, Page>,
    /// What was left out, one sentence each.
    pub(crate) problems: Vec<String>,
    /// What is served but may be read differently by others.
    pub(crate) warnings: Vec<String>,
}

/// A page of `skills/list`.
#[derive(Clone)]
pub(crate) struct Page {
    /// The array of entries as JSON.
    pub(crate) entries: Bytes,
    pub(crate) next: Option<String>,
}

impl Snapshot {
    /// Makes a snapshot of these files. `digests`: whether entries list files with their digests.
    ///
    /// # Errors
    /// Those of reading: then nothing can be said of the files at this moment.
    pub(crate) fn of(files: &mut dyn Files, digests: bool) -> io::Result<Snapshot> {
        let sizes = files.sizes();
        let mut snapshot = Snapshot::default();
        let roots: Vec<&str> = sizes.keys().filter_map(|path| path.strip_suffix(SKILL_MD)?.strip_suffix('/')).collect();
        let (mut total, mut read) = (0, BTreeMap::<String, Bytes>::new());
        for root in roots {
            let own = || sizes.range(format!("{root}/")..format!("{root}0")).map(|(path, size)| (path.as_str(), *size));
            let new: u64 = own().filter(|(path, _)| !read.contains_key(*path)).map(|(_, size)| size).sum();
            let admitted = check_files(root, own()).and_then(|()| {
                let why = |what: &str| Err(what.to_owned());
                match (snapshot.skills.len() >= SKILLS_MAX, total + new > ALL_BYTES_MAX) {
                    (true, _) => why("there are more than 1,000 skills"),
                    (_, true) => why("all skills together are larger than 64 MiB"),
                    _ => Ok(()),
                }
            });
            if let Err(why) = admitted {
                snapshot.problems.push(format!("{root}: {why}"));
                continue;
            }
            let mut contents = BTreeMap::new();
            for (path, size) in own() {
                let bytes = match read.get(path) {
                    Some(bytes) => bytes.clone(),
                    None => files.read(path)?,
                };
                if bytes.len() as u64 != size {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        format!("{path} changed while it was read"),
                    ));
                }
                contents.insert(path, bytes);
            }
            match snapshot.add(root, &contents, digests) {
                Ok(()) => {
                    total += new;
                    read.extend(contents.into_iter().map(|(path, bytes)| (path.to_owned(), bytes)));
                }
                Err(why) => snapshot.problems.push(format!("{root}: {why}")),
            }
        }
        snapshot.finish(read);
        Ok(snapshot)
    }

    fn add(&mut self, root: &str, contents: &BTreeMap<&str, Bytes>, digests: bool) -> Result<(), String> {
        let skill_md = format!("{root}/{SKILL_MD}");
        let front = FrontMatter::read(&contents[skill_md.as_str()]).map_err(|why| format!("{SKILL_MD}, {why}"))?;
        check_front_matter(root, &front)?;
        self.warnings.extend(front.warnings.iter().map(|warning| format!("{root}: {SKILL_MD}, {warning}")));
        let resources = match digests {
            false => SkillResources::Dynamic,
            true => SkillResources::Listed(
                contents
                    .iter()
                    .map(|(file, bytes)| SkillResource::new(path::uri(file), digest::of(bytes), bytes.len() as u64))
                    .collect(),
            ),
        };
        self.skills.push(Skill::new(path::uri(&skill_md), front.members, resources));
        Ok(())
    }

    /// Renders what was added.
    fn finish(&mut self, read: BTreeMap<String, Bytes>) {
        self.skills.sort_unstable_by(|a, b| a.uri.cmp(&b.uri));
        // Entries are texts and numbers: JSON has them all.
        let json = |skill: &Skill| Bytes::from(serde_json::to_vec(skill).unwrap_or_else(|_| b"{}".to_vec()));
        self.rendered = self.skills.iter().map(json).collect();
        let mut cursor = Some(String::new());
        while let Some(after) = cursor {
            let page = self.render(&after);
            cursor = page.next.clone();
            self.pages.insert(after, page);
        }
        for (name, bytes) in read {
            self.place(&name, bytes.len() as u64);
            let guessed =
                || if std::str::from_utf8(&bytes).is_ok() { "text/plain" } else { "application/octet-stream" };
            let media_type = path::media_type(&name).unwrap_or_else(guessed);
            self.files.insert(path::uri(&name), File { bytes, media_type });
        }
        for children in self.directories.values_mut() {
            children.sort_unstable_by(|a, b| a.uri.cmp(&b.uri));
        }
        let types: HashMap<&str, &str> = self.files.iter().map(|(uri, file)| (uri.as_str(), file.media_type)).collect();
        for child in self.directories.values_mut().flatten().filter(|child| child.mime_type.is_none()) {
            child.mime_type = types.get(child.uri.as_str()).map(|kind| (*kind).to_owned());
        }
    }

    /// Adds a file to its directory, and that to its own.
    fn place(&mut self, file: &str, size: u64) {
        let (mut path, mut child) = (file, Resource::new(path::uri(file), name_of(file)).with_size(size));
        while let Some((parent, _)) = path.rsplit_once('/') {
            let siblings = self.directories.entry(path::uri(parent)).or_default();
            if siblings.iter().any(|sibling| sibling.uri == child.uri) {
                return;
            }
            siblings.push(child);
            child = Resource::new(path::uri(parent), name_of(parent)).with_mime_type(DIRECTORY);
            path = parent;
        }
    }

    /// The page after a cursor, which is the URI of the last entry before it. `None` for what was never a cursor.
    pub(crate) fn page(&self, cursor: &str) -> Option<Page> {
        match self.pages.get(cursor) {
            Some(page) => Some(page.clone()),
            // The skills changed since: the position stays.
            None if cursor.starts_with("skill://") => Some(self.render(cursor)),
            None => None,
        }
    }

    fn render(&self, after: &str) -> Page {
        let start = self.skills.partition_point(|skill| skill.uri.as_str() <= after);
        let mut entries = vec![b'['];
        let mut end = start;
        for entry in self.rendered[start..].iter().take(PAGE_ITEMS_MAX) {
            if end > start {
                if entries.len() + entry.len() > PAGE_BYTES_MAX {
                    break;
                }
                entries.push(b',');
            }
            entries.extend_from_slice(entry);
            end += 1;
        }
        entries.push(b']');
        let next = (end < self.skills.len()).then(|| self.skills[end - 1].uri.clone());
        Page { entries: entries.into(), next }
    }

    /// The entry of a skill as JSON.
    pub(crate) fn entry(&self, uri: &str) -> Option<&Bytes> {
        let at = self.skills.binary_search_by(|skill| skill.uri.as_str().cmp(uri)).ok()?;
        self.rendered.get(at)
    }

    /// A file by its URI, letter for letter.
    pub(crate) fn file(&self, uri: &str) -> Option<&File> {
        self.files.get(uri)
    }

    /// The children of a directory after a cursor, which is the URI of the last one before them, and the next cursor.
    pub(crate) fn directory(&self, uri: &str, cursor: &str) -> Option<(&[Resource], Option<&str>)> {
        let children = self.directories.get(uri)?;
        let start = children.partition_point(|child| child.uri.as_str() <= cursor);
        let end = children.len().min(start + PAGE_ITEMS_MAX);
        let next = (end < children.len()).then(|| children[end - 1].uri.as_str());
        Some((&children[start..end], next))
    }
}

const DIRECTORY: &str = "inode/directory";

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// What can be said of a skill's files without reading them.
fn check_files<'a>(root: &str, files: impl Iterator<Item = (&'a str, u64)>) -> Result<(), String> {
    let (mut count, mut bytes, mut names) = (0, 0, BTreeSet::new());
    for (file, size) in files {
        (count, bytes) = (count + 1, bytes + size);
        if count > SKILL_FILES_MAX {
            return Err(format!("it has more than {SKILL_FILES_MAX} files"));
        }
        for segment in file.split('/') {
            if let Some(why) = path::refused_name(segment) {
                return Err(format!("the file name {segment:?} cannot be served: {why}"));
            }
        }
        if !names.insert(path::folded(file)) {
            return Err(format!("two files differ only in case: {:?}", &file[root.len() + 1..]));
        }
    }
    match bytes > SKILL_BYTES_MAX {
        true => Err(format!("its files are larger than {} MiB together", SKILL_BYTES_MAX >> 20)),
        false => Ok(()),
    }
}

fn check_front_matter(root: &str, front: &FrontMatter) -> Result<(), String> {
    let text = |member: &str| match front.members.get(member) {
        Some(Value::String(text)) => Ok(text.as_str()),
        Some(_) => Err(format!("`{member}` must be a text; quote it")),
        None => Err(format!("`{member}` is missing")),
    };
    let (name, description) = (text("name")?, text("description")?);
    if !path::is_skill_name(name) {
        return Err(format!("the name `{name}` must be 1 to 64 of a-z, 0-9 and single hyphens inside"));
    }
    if name != name_of(root) {
        return Err(format!("the name `{name}` must be that of the directory, `{}`", name_of(root)));
    }
    if description.trim().is_empty() || description.chars().count() > DESCRIPTION_CHARS_MAX {
        return Err(format!("`description` must have 1 to {DESCRIPTION_CHARS_MAX} characters"));
    }
    let metadata = front.members.get("metadata").and_then(Value::as_object);
    match metadata.into_iter().flatten().find(|(key, _)| key.starts_with("io.modelcontextprotocol/")) {
        Some((key, _)) => Err(format!("the key `{key}` of `metadata` is reserved")),
        None => Ok(()),
    }
}
