//! Listing the skills of a server.

use crate::entry::clip;
use crate::error::{Error, Result};
use crate::limits::{PAGES_MAX, SKILLS_MAX};
use crate::load::{self, LoadedSkill};
use crate::request::{get, read};
use linchpin_client::{Connection, Listing, Refusal};
use linchpin_types::capability::extension;
use linchpin_types::resource::Resource;
use linchpin_types::skill::{Skill, SkillResources};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::HashSet;
use std::fmt;
use std::ops::Deref;

/// Extends a connection with the skills of its server.
///
/// Servers of revisions with sessions announce skills to clients that declare the extension, with
/// `Client::extension("io.modelcontextprotocol/skills", &json!({}))`.
///
/// ```
/// # use linchpin::prelude::*;
/// # use linchpin::skills::{Error, SkillsExt};
/// async fn instructions(server: &Connection, name: &str) -> Result<Option<String>, Error> {
///     let skills = server.skills().await?;
///     let Some(skill) = skills.iter().find(|skill| skill.name() == name) else { return Ok(None) };
///     // A host should ask its user for approval here, and show the name of the server.
///     let loaded = skill.load().await?;
///     Ok(Some(loaded.body().to_owned()))
/// }
/// ```
pub trait SkillsExt {
    /// Returns whether the server announces skills.
    fn has_skills(&self) -> bool;

    /// Lists the skills, without reading any files. An empty list does not mean that the server has no skills.
    ///
    /// Entries that violate the specification are returned separately, in the list's `refused`. Cancel-safe.
    ///
    /// # Errors
    /// [`Error::NotOffered`] if the server does not announce skills; [`Error::Invalid`] if its list has more than 1,000
    /// entries or pages, or a duplicate page or entry; [`Error::Request`] if a request failed.
    fn skills(&self) -> impl Future<Output = Result<Listing<RemoteSkill>>> + Send;

    /// Returns the entry of the skill whose `SKILL.md` has this URI, whether the server lists it or not. Cancel-safe.
    ///
    /// # Errors
    /// [`Error::NotOffered`] if there is no such skill; [`Error::Invalid`] if the entry violates the specification;
    /// [`Error::Request`] if the request failed.
    fn skill(&self, uri: &str) -> impl Future<Output = Result<RemoteSkill>> + Send;

    /// Lists the children of a directory, if the server supports that. Only files in the entry of a skill are part of
    /// the skill. Cancel-safe.
    ///
    /// # Errors
    /// [`Error::NotOffered`] if the server does not announce directory listings; otherwise see [`SkillsExt::skills`].
    fn skill_directory(&self, uri: &str) -> impl Future<Output = Result<Vec<Resource>>> + Send;
}

impl SkillsExt for Connection {
    fn has_skills(&self) -> bool {
        self.capabilities().extensions.contains_key(extension::SKILLS)
    }

    async fn skills(&self) -> Result<Listing<RemoteSkill>> {
        offered(self)?;
        let mut listing = Listing::default();
        let mut seen = HashSet::new();
        let pages = Pages::new("skills/list", None);
        for entry in pages.all(self, |page| page.skills).await? {
            let uri = uri_of(&entry);
            if !seen.insert(uri.clone()) {
                return Err(Error::Invalid(format!("the server lists {} twice", clip(&uri))));
            }
            match read(&entry) {
                Ok(entry) => listing.items.push(RemoteSkill { connection: self.clone(), entry }),
                Err(why) => listing.refused.push(Refusal::new(clip(&uri), why)),
            }
        }
        Ok(listing)
    }

    async fn skill(&self, uri: &str) -> Result<RemoteSkill> {
        offered(self)?;
        let entry = get(self, uri).await?;
        Ok(RemoteSkill { connection: self.clone(), entry })
    }

    async fn skill_directory(&self, uri: &str) -> Result<Vec<Resource>> {
        let capabilities = self.capabilities();
        let settings = capabilities.extensions.get(extension::SKILLS).map_or("{}", |settings| settings.get());
        if serde_json::from_str::<Settings>(settings).unwrap_or_default().directory_read != Some(true) {
            return Err(Error::NotOffered("the server does not list directories of skills".to_owned()));
        }
        let children = Pages::new("resources/directory/read", Some(uri)).all(self, |page| page.resources).await?;
        let read = |child: Box<RawValue>| {
            serde_json::from_str(child.get()).map_err(|why| Error::Invalid(format!("a resource cannot be read: {why}")))
        };
        children.into_iter().map(read).collect()
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Settings {
    directory_read: Option<bool>,
}

fn offered(connection: &Connection) -> Result<()> {
    match connection.has_skills() {
        true => Ok(()),
        false => Err(Error::NotOffered("the server does not announce skills".to_owned())),
    }
}

/// The pages of a list, within bounds.
struct Pages<'a> {
    method: &'static str,
    uri: Option<&'a str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    #[serde(default)]
    skills: Vec<Box<RawValue>>,
    #[serde(default)]
    resources: Vec<Box<RawValue>>,
    #[serde(default)]
    next_cursor: Option<String>,
}

impl<'a> Pages<'a> {
    fn new(method: &'static str, uri: Option<&'a str>) -> Pages<'a> {
        Pages { method, uri }
    }

    async fn all(
        &self,
        connection: &Connection,
        items: impl Fn(Page) -> Vec<Box<RawValue>>,
    ) -> Result<Vec<Box<RawValue>>> {
        let (mut all, mut cursors, mut cursor) = (Vec::new(), HashSet::new(), None::<String>);
        for _ in 0..PAGES_MAX {
            let mut params = serde_json::Map::new();
            params.extend(self.uri.map(|uri| ("uri".to_owned(), uri.into())));
            params.extend(cursor.take().map(|cursor| ("cursor".to_owned(), cursor.into())));
            let mut page = connection.request(self.method, params).json::<Page>().await?.into_inner();
            let next = page.next_cursor.take();
            all.extend(items(page));
            if all.len() > SKILLS_MAX {
                return Err(Error::Invalid(format!("{} goes on past {SKILLS_MAX} entries", self.method)));
            }
            let Some(next) = next else { return Ok(all) };
            if !cursors.insert(next.clone()) {
                return Err(Error::Invalid(format!("{} returns the same cursor twice", self.method)));
            }
            cursor = Some(next);
        }
        Err(Error::Invalid(format!("{} goes on past {PAGES_MAX} pages", self.method)))
    }
}

fn uri_of(entry: &RawValue) -> String {
    #[derive(Deserialize)]
    struct Named {
        uri: String,
    }
    serde_json::from_str::<Named>(entry.get()).map_or_else(|_| "(no URI)".to_owned(), |named| named.uri)
}

/// A skill of a server, as described by its entry. Its files have not been read yet. Dereferences to the entry.
///
/// Everything in it is a claim of the server, including `allowed-tools`; none of it grants any permission. The skill is
/// identified by the server and the URI together: another server may use the same URI, and another skill of this server
/// the same name.
///
/// ```
/// # use linchpin::skills::{Error, RemoteSkill};
/// async fn body(skill: &RemoteSkill) -> Result<Option<String>, Error> {
///     if !skill.is_verifiable() {
///         return Ok(None);
///     }
///     Ok(Some(skill.load().await?.body().to_owned()))
/// }
/// ```
#[derive(Clone)]
pub struct RemoteSkill {
    connection: Connection,
    entry: Skill,
}

impl RemoteSkill {
    /// Reads `SKILL.md`, and verifies its size, its digest, and the members of its front matter. No other file is read.
    ///
    /// If the file differs from the entry, the skill may have changed, so the entry is requested once more.
    /// Cancel-safe.
    ///
    /// # Errors
    /// [`Error::Unverified`] if it still differs; otherwise see [`SkillsExt::skill`].
    pub async fn load(&self) -> Result<LoadedSkill> {
        load::load(&self.connection, &self.entry).await
    }

    /// Returns the entry.
    pub fn entry(&self) -> &Skill {
        &self.entry
    }

    /// Returns whether the entry lists files with digests, so that they can be verified.
    pub fn is_verifiable(&self) -> bool {
        matches!(self.entry.resources, SkillResources::Listed(_))
    }
}

impl Deref for RemoteSkill {
    type Target = Skill;

    fn deref(&self) -> &Skill {
        &self.entry
    }
}

impl fmt::Debug for RemoteSkill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RemoteSkill").field(&self.entry).finish()
    }
}
