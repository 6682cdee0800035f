//! Loading a skill: content is only returned after it has been verified.

use crate::digest;
use crate::entry::clip;
use crate::error::{Error, Result};
use crate::front_matter::{FrontMatter, difference};
use crate::limits::SKILL_BYTES_MAX;
use crate::path;
use crate::request;
use base64::Engine as _;
use bytes::Bytes;
use linchpin_client::Connection;
use linchpin_types::content::ResourceContents;
use linchpin_types::resource::ReadResourceResult;
use linchpin_types::skill::{Skill, SkillResource, SkillResources};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// A skill whose `SKILL.md` has been read and verified against its entry.
///
/// The entry is pinned: the files of the skill are those that it lists, regardless of what the server lists later.
///
/// ```
/// # use linchpin::skills::{Error, LoadedSkill};
/// async fn faq(skill: &LoadedSkill) -> Result<String, Error> {
///     println!("{}", skill.body());
///     Ok(String::from_utf8_lossy(&skill.file("faq.md").await?).into_owned())
/// }
/// ```
pub struct LoadedSkill {
    connection: Connection,
    entry: Skill,
    text: String,
    body_at: usize,
    kept: Mutex<Kept>,
}

/// Files that were read.
#[derive(Default)]
struct Kept {
    files: HashMap<String, Bytes>,
    /// Bytes read of a skill whose files are not listed.
    read: u64,
}

pub(crate) async fn load(connection: &Connection, entry: &Skill) -> Result<LoadedSkill> {
    let mut entry = entry.clone();
    let mut bytes = read(connection, &entry.uri).await?;
    let mut front = verify(&entry, &bytes);
    if matches!(front, Err(Error::Unverified { .. })) {
        entry = request::get(connection, &entry.uri).await?;
        front = verify(&entry, &bytes);
        if matches!(front, Err(Error::Unverified { .. })) {
            bytes = read(connection, &entry.uri).await?;
            front = verify(&entry, &bytes);
        }
    }
    let body_at = front?.body_at;
    let text = String::from_utf8(bytes.to_vec()).map_err(|_| unverified(&entry.uri, "the encoding (UTF-8)"))?;
    let kept = Kept { files: HashMap::from([(entry.uri.clone(), bytes.clone())]), read: bytes.len() as u64 };
    Ok(LoadedSkill { connection: connection.clone(), entry, text, body_at, kept: Mutex::new(kept) })
}

/// Checks a `SKILL.md` against its entry.
fn verify(entry: &Skill, bytes: &[u8]) -> Result<FrontMatter> {
    match &entry.resources {
        SkillResources::Listed(files) => {
            let file = files.iter().find(|file| file.uri == entry.uri);
            verify_file(file.ok_or_else(|| Error::Unlisted(entry.uri.clone()))?, bytes)?;
        }
        SkillResources::Dynamic if bytes.len() as u64 > SKILL_BYTES_MAX => return Err(too_large(&entry.uri)),
        SkillResources::Dynamic => {}
    }
    let front = FrontMatter::read(bytes).map_err(|why| unverified(&entry.uri, &format!("the front matter ({why})")))?;
    match difference(&entry.frontmatter, &front.members) {
        Some(member) => Err(unverified(&entry.uri, &format!("`{}` of the front matter", clip(member)))),
        None => Ok(front),
    }
}

fn verify_file(file: &SkillResource, bytes: &[u8]) -> Result<()> {
    if bytes.len() as u64 != file.size {
        return Err(unverified(&file.uri, &format!("the size ({} bytes instead of {})", bytes.len(), file.size)));
    }
    match digest::of(bytes) == file.digest {
        true => Ok(()),
        false => Err(unverified(&file.uri, "the digest")),
    }
}

fn unverified(uri: &str, differs: &str) -> Error {
    Error::Unverified { uri: clip(uri), differs: differs.to_owned() }
}

fn too_large(uri: &str) -> Error {
    Error::Invalid(format!("{} is more than the {} MiB of a skill", clip(uri), SKILL_BYTES_MAX >> 20))
}

/// Reads a file, past the cache: what is verified is what the server has now.
async fn read(connection: &Connection, uri: &str) -> Result<Bytes> {
    let params = serde_json::json!({ "uri": uri });
    let result = connection.request("resources/read", params).json::<ReadResourceResult>().await?.into_inner();
    let mut own = result.contents.into_iter().filter(|contents| contents.uri() == uri);
    match (own.next(), own.next()) {
        (Some(ResourceContents::Text(text)), None) => Ok(text.text.into()),
        (Some(ResourceContents::Blob(blob)), None) => base64::engine::general_purpose::STANDARD
            .decode(&blob.blob)
            .map(Bytes::from)
            .map_err(|_| Error::Invalid(format!("{} is not base64", clip(uri)))),
        _ => Err(Error::Invalid(format!("the server returned something else than {}", clip(uri)))),
    }
}

impl LoadedSkill {
    /// Returns the whole text of `SKILL.md`.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text of `SKILL.md` after its front matter.
    pub fn body(&self) -> &str {
        &self.text[self.body_at..]
    }

    /// Returns the entry that the skill was verified against.
    pub fn entry(&self) -> &Skill {
        &self.entry
    }

    /// Returns whether all files are verified by digest. This is not possible for a skill whose files are generated on
    /// request.
    pub fn verified(&self) -> bool {
        matches!(self.entry.resources, SkillResources::Listed(_))
    }

    /// Returns the paths of the files below the skill's directory, including `SKILL.md`. Empty if they are not known.
    pub fn files(&self) -> Vec<String> {
        let SkillResources::Listed(files) = &self.entry.resources else { return Vec::new() };
        files.iter().filter_map(|file| path::below(self.root(), &file.uri)).collect()
    }

    /// Reads and verifies a file by its path below the skill's directory, for example `scripts/run.py`. The file is
    /// kept for later calls. Cancel-safe.
    ///
    /// # Errors
    /// [`Error::Unlisted`] if the entry does not list the file; [`Error::Unverified`] if the file differs from the
    /// entry; `Error::Invalid` if the response is not this file, or the files of a skill without digests are larger
    /// than 16 MiB; [`Error::Request`] if the request failed.
    pub async fn file(&self, path: &str) -> Result<Bytes> {
        let uri = self.resolve(path).ok_or_else(|| Error::Unlisted(clip(path)))?;
        if let Some(kept) = self.kept.lock().unwrap_or_else(PoisonError::into_inner).files.get(&uri) {
            return Ok(kept.clone());
        }
        let bytes = read(&self.connection, &uri).await?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match &self.entry.resources {
            SkillResources::Listed(files) => {
                let file = files.iter().find(|file| file.uri == uri).ok_or_else(|| Error::Unlisted(clip(&uri)))?;
                verify_file(file, &bytes)?;
            }
            SkillResources::Dynamic => {
                kept.read += bytes.len() as u64;
                if kept.read > SKILL_BYTES_MAX {
                    return Err(too_large(&uri));
                }
            }
        }
        kept.files.insert(uri, bytes.clone());
        Ok(bytes)
    }

    /// The URI of a path, if it is a file of this skill.
    fn resolve(&self, path: &str) -> Option<String> {
        match &self.entry.resources {
            SkillResources::Listed(files) => {
                let found = files.iter().find(|file| path::below(self.root(), &file.uri).as_deref() == Some(path));
                found.map(|file| file.uri.clone())
            }
            SkillResources::Dynamic => {
                let uri = format!("{}/{path}", self.root());
                path::below(self.root(), &uri).map(|_| uri)
            }
        }
    }

    fn root(&self) -> &str {
        path::root_of(&self.entry.uri).unwrap_or_default()
    }

    /// Returns the combined digest of all files of the skill; `None` if the files cannot be verified.
    ///
    /// A host should bind the user's approval to this digest, the URI, and its own name for the server. When the digest
    /// changes, the approval is no longer valid.
    pub fn resource_set(&self) -> Option<String> {
        let SkillResources::Listed(files) = &self.entry.resources else { return None };
        let mut lines: Vec<String> = files.iter().map(|file| format!("{} {}\n", file.uri, file.digest)).collect();
        lines.sort_unstable();
        Some(digest::of(lines.concat().as_bytes()))
    }
}

impl fmt::Debug for LoadedSkill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadedSkill")
            .field("uri", &self.entry.uri)
            .field("verified", &self.verified())
            .finish_non_exhaustive()
    }
}
