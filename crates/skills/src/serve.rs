//! Serving skills.

use crate::files::SkillFiles;
use crate::snapshot::{File, Snapshot};
use crate::source::{OnChange, Watched, left_out};
use bytes::Bytes;
use linchpin_core::service::BoxFuture;
use linchpin_core::{Reply, ReplyKind, ResultWriter};
use linchpin_server::{CacheScope, Cx, Error, IntoResult, Register, Resource, Resources, Result, Server};
use linchpin_types::capability::extension;
use linchpin_types::content::ResourceContents;
use linchpin_types::skill::Skill;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Skills that a server serves: `Server::new(…).with(Skills::dir("skills")?)`.
///
/// A skill is a directory with a `SKILL.md`, whose YAML front matter contains the directory's name and a description.
/// Skills are served in every revision, according to the extension `io.modelcontextprotocol/skills`: `skills/list` and
/// `skills/get` return entries with the digests of all files, `resources/read` reads files, and `resources/list`
/// contains each `SKILL.md`.
///
/// Skills are served from consistent snapshots, so that lists, digests and files match each other. A skill that
/// violates the format is skipped, and the reason is logged. Hidden files, links to directories, and links that lead
/// outside of the directory are not served.
///
/// Limits: 512 files and 16 MiB per skill; 1,000 skills and 64 MiB in total.
///
/// ```no_run
/// # use linchpin::prelude::*;
/// # use linchpin::skills::Skills;
/// # fn main() -> std::io::Result<()> {
/// let server = Server::new("billing", "1.0").with(Skills::dir("skills")?.directories(true));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Skills {
    source: Source,
    directories: bool,
    strict: bool,
    digests: bool,
    cache: (u64, CacheScope),
}

#[derive(Clone)]
enum Source {
    Fixed(Arc<Snapshot>),
    Watched(Arc<Watched>),
    Dynamic(Maker),
}

type Maker = Arc<dyn Fn(Cx) -> BoxFuture<'static, Result<SkillFiles>> + Send + Sync>;

impl Skills {
    /// Serves the skills below a directory, or the directory itself if it contains a `SKILL.md`.
    ///
    /// The skills are read immediately. From the first request on, the directory is checked every two seconds, or less
    /// often if that takes long. After it has changed and settled, a new snapshot replaces the previous one as a whole,
    /// and clients are notified.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn dir(path: impl AsRef<Path>) -> io::Result<Skills> {
        Ok(Skills::of(Source::Watched(Arc::new(Watched::new(path.as_ref())?))))
    }

    /// Serves skills that are part of the program.
    ///
    /// ```
    /// # use linchpin::prelude::*;
    /// # use linchpin::skills::Skills;
    /// const GREET: &str = "---\nname: greet\ndescription: Greets a customer.\n---\nSay hello.\n";
    ///
    /// let server = Server::new("shop", "1.0").with(Skills::embedded([("greet/SKILL.md", GREET)]));
    /// ```
    ///
    /// Use `include_str!("…")` to embed a file. A skill that violates the format prevents the server from starting.
    pub fn embedded<P: Into<String>, B: AsRef<[u8]>>(files: impl IntoIterator<Item = (P, B)>) -> Skills {
        let mut files: SkillFiles = files.into_iter().collect();
        // Memory can always be read.
        let snapshot = Snapshot::of(&mut files, true).unwrap_or_default();
        Skills::of(Source::Fixed(Arc::new(snapshot))).strict(true)
    }

    /// Serves skills that are generated for each request, for example for the current user.
    ///
    /// They are not in `resources/list`, they must not be cached by shared caches, and their files have no digests
    /// unless [`Skills::digests`] is set.
    ///
    /// ```
    /// # use linchpin::prelude::*;
    /// # use linchpin::skills::{SkillFiles, Skills};
    /// let skills = Skills::dynamic(|cx: Cx| async move {
    ///     let who = cx.principal().map_or("guest", |who| who.subject());
    ///     let text = format!("---\nname: desk\ndescription: How {who} works.\n---\n");
    ///     Ok(SkillFiles::new().file("desk/SKILL.md", text))
    /// });
    /// let server = Server::new("desk", "1.0").with(skills);
    /// ```
    pub fn dynamic<F, Fut>(make: F) -> Skills
    where
        F: Fn(Cx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<SkillFiles>> + Send + 'static,
    {
        let mut skills = Skills::of(Source::Dynamic(Arc::new(move |cx| Box::pin(make(cx)))));
        skills.digests = false;
        skills
    }

    fn of(source: Source) -> Skills {
        let cache = (0, CacheScope::Private);
        Skills { source, directories: false, strict: false, digests: true, cache }
    }

    /// Sets whether directories can be listed (`resources/directory/read`). Default: no.
    pub fn directories(mut self, on: bool) -> Skills {
        self.directories = on;
        self
    }

    /// Sets whether a skill that violates the format prevents the server from starting. By default such a skill is
    /// skipped, except for [`Skills::embedded`]. It has no effect on `Skills::dynamic`, nor on changes of a directory
    /// after the start.
    pub fn strict(mut self, on: bool) -> Skills {
        self.strict = on;
        self
    }

    /// Sets whether entries of [`Skills::dynamic`] list files with their digests. Default: no. The files must then be
    /// the same for the next request, or hosts reject them.
    pub fn digests(mut self, on: bool) -> Skills {
        if matches!(self.source, Source::Dynamic(_)) {
            self.digests = on;
        }
        self
    }

    /// Sets how long (in milliseconds) and in which scope entries and files may be cached. Default: no caching. The
    /// scope of [`Skills::dynamic`] is always private.
    pub fn cache(mut self, ttl_ms: u64, scope: CacheScope) -> Skills {
        self.cache = (ttl_ms, if matches!(self.source, Source::Dynamic(_)) { CacheScope::Private } else { scope });
        self
    }

    /// Returns what was skipped and why, one sentence each. Empty for `Skills::dynamic`.
    pub fn problems(&self) -> Vec<String> {
        self.fixed().map(|snapshot| snapshot.problems.clone()).unwrap_or_default()
    }

    /// Returns the entries of the skills. Empty for [`Skills::dynamic`].
    pub fn entries(&self) -> Vec<Skill> {
        self.fixed().map(|snapshot| snapshot.skills.clone()).unwrap_or_default()
    }

    fn fixed(&self) -> Option<Arc<Snapshot>> {
        match &self.source {
            Source::Fixed(snapshot) => Some(snapshot.clone()),
            Source::Watched(watched) => Some(watched.latest()),
            Source::Dynamic(_) => None,
        }
    }

    async fn snapshot(&self, cx: &Cx) -> Result<Arc<Snapshot>> {
        match &self.source {
            Source::Fixed(snapshot) => Ok(snapshot.clone()),
            Source::Watched(watched) => Ok(watched.current().await),
            Source::Dynamic(make) => {
                let mut files = make(cx.clone()).await?;
                let snapshot = Snapshot::of(&mut files, self.digests).map_err(Error::internal)?;
                for problem in &snapshot.problems {
                    tracing::warn!("{}", left_out(problem));
                }
                Ok(Arc::new(snapshot))
            }
        }
    }

    async fn read_uri(&self, cx: &Cx, uri: &str) -> Result<ResourceContents> {
        let snapshot = self.snapshot(cx).await?;
        let File { bytes, media_type } = snapshot.file(uri).ok_or_else(Error::not_found)?;
        let contents = match std::str::from_utf8(bytes) {
            Ok(text) => ResourceContents::text(uri, text),
            Err(_) => ResourceContents::blob(uri, bytes),
        };
        Ok(contents.with_mime_type(*media_type))
    }
}

impl Register for Skills {
    fn register(server: Server<Skills>) -> Server<Skills> {
        let skills = server.registered();
        let settings = if skills.directories { json!({ "directoryRead": true }) } else { json!({}) };
        let resources = server.resources();
        let (own, listed) = (Arc::downgrade(&skills), resources.clone());
        let changed: Arc<OnChange> = Arc::new(move |old, new| {
            if let Some(skills) = own.upgrade() {
                publish(&listed, &skills, old, new);
            }
        });
        if let Source::Watched(watched) = &skills.source {
            watched.on_change(&changed);
        }
        let mut server = server
            .extension(extension::SKILLS, settings)
            .announce_resources()
            // The server keeps who is told of changes.
            .on_shutdown(move || {
                let _kept = &changed;
                std::future::ready(())
            })
            .method("skills/list", list)
            .method("skills/get", get)
            .resource(
                Resource::new("skill://{+path}")
                    .name("skill-file")
                    .description("A file of a skill; `skills/list` names them.")
                    .cache(skills.cache.0, skills.cache.1),
                read,
            );
        if skills.directories {
            server = server.method("resources/directory/read", directory);
        }
        if skills.strict {
            server = skills.problems().iter().fold(server, |server, why| server.problem(format!("skill {why}")));
        }
        for skill in skills.entries() {
            if let Err(why) = insert(&resources, &skills, &skill) {
                server = server.problem(why.to_string());
            }
        }
        server
    }
}

/// The definition of a skill's `SKILL.md` in `resources/list`.
fn definition(skills: &Skills, skill: &Skill) -> Resource {
    Resource::new(skill.uri.as_str())
        .name(skill.name())
        .description(skill.description())
        .mime_type("text/markdown")
        .cache(skills.cache.0, skills.cache.1)
}

fn insert(resources: &Resources, skills: &Arc<Skills>, skill: &Skill) -> Result<(), Box<dyn std::error::Error>> {
    Ok(resources.insert_with(skills.clone(), definition(skills, skill), read)?)
}

/// Changes the list of resources to that of a new snapshot.
fn publish(resources: &Resources, skills: &Arc<Skills>, old: &Snapshot, new: &Snapshot) {
    let by_uri = |snapshot: &Snapshot| {
        let mut skills = BTreeMap::<String, Skill>::new();
        skills.extend(snapshot.skills.iter().map(|skill| (skill.uri.clone(), skill.clone())));
        skills
    };
    let (old, new) = (by_uri(old), by_uri(new));
    for uri in old.keys().filter(|uri| !new.contains_key(*uri)) {
        let _ = resources.remove(uri);
    }
    for (uri, skill) in &new {
        let done = match old.get(uri) {
            Some(before) if before == skill => Ok(()),
            Some(_) => resources.replace_with(skills.clone(), definition(skills, skill), read).map_err(Into::into),
            None => insert(resources, skills, skill),
        };
        if let Err(why) = done {
            tracing::warn!("{uri} is not listed: {why}");
        }
    }
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Cursor {
    cursor: Option<String>,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct OfUri {
    uri: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct OfDirectory {
    uri: String,
    cursor: Option<String>,
}

async fn list(skills: &Skills, cx: &Cx, q: Cursor) -> Result<Answer> {
    let snapshot = skills.snapshot(cx).await?;
    let page = snapshot.page(q.cursor.as_deref().unwrap_or_default());
    let page = page.ok_or_else(|| Error::invalid_params("unknown cursor; begin again without one"))?;
    Ok(Answer { member: "skills", value: page.entries, next: page.next, cache: skills.cache })
}

async fn get(skills: &Skills, cx: &Cx, q: OfUri) -> Result<Answer> {
    let snapshot = skills.snapshot(cx).await?;
    let entry = snapshot.entry(&q.uri).cloned();
    let entry = entry.ok_or_else(|| Error::invalid_params(format!("no skill is served at {}", clip(&q.uri))))?;
    Ok(Answer { member: "skill", value: entry, next: None, cache: skills.cache })
}

async fn directory(skills: &Skills, cx: &Cx, q: OfDirectory) -> Result<Answer> {
    let snapshot = skills.snapshot(cx).await?;
    let children = snapshot.directory(&q.uri, q.cursor.as_deref().unwrap_or_default());
    let (children, next) = children
        .ok_or_else(|| Error::invalid_params(format!("no directory of skills is served at {}", clip(&q.uri))))?;
    let value = Bytes::from(serde_json::to_vec(children)?);
    Ok(Answer { member: "resources", value, next: next.map(str::to_owned), cache: skills.cache })
}

async fn read(skills: &Skills, cx: &Cx) -> Result<ResourceContents> {
    skills.read_uri(cx, cx.uri().unwrap_or_default()).await
}

fn clip(uri: &str) -> String {
    uri.chars().take(200).collect()
}

/// A result of one member that is JSON already.
struct Answer {
    member: &'static str,
    value: Bytes,
    next: Option<String>,
    cache: (u64, CacheScope),
}

impl IntoResult for Answer {
    fn into_result(self) -> Result<Map<String, Value>, Error> {
        let mut members = Map::from_iter([(self.member.to_owned(), serde_json::from_slice(&self.value)?)]);
        members.extend(self.next.map(|next| ("nextCursor".to_owned(), next.into())));
        Ok(members)
    }

    fn into_reply(self, mut out: ResultWriter) -> Reply {
        out.key(self.member);
        out.push(&self.value);
        if let Some(next) = &self.next {
            out.key("nextCursor");
            out.string(next);
        }
        let (ttl_ms, scope) = self.cache;
        if out.features().cache_hints {
            out.key("ttlMs");
            out.push(ttl_ms.to_string().as_bytes());
            out.key("cacheScope");
            out.string(if scope == CacheScope::Public { "public" } else { "private" });
        }
        out.finish(ReplyKind::Complete)
    }
}

impl fmt::Debug for Skills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Skills").field("directories", &self.directories).finish_non_exhaustive()
    }
}
