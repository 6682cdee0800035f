//! What a repository's own configuration may not decide.
//!
//! A repository that came from elsewhere can name programs in its configuration, and git would run them. The names are
//! read here without running anything (`git config --file`, file by file, includes followed by us), and every one of
//! them is set to something harmless for the run, in the environment (`GIT_CONFIG_COUNT`): there a name may hold any
//! character, while `-c` splits at the first `=` and so can be evaded with a driver named `a=b`.

use crate::place::{Bounds, Place, escape};
use crate::run::{Done, Job, Keep, Limit, Program, args, lossy};
use linchpin_kit::{ToolError, resolve_symlinks};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

type Settings = Vec<(String, String)>;
/// What a run is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Changes nothing.
    Read,
    /// May change the repository.
    Write,
    /// May change it and talks to a remote.
    Remote,
}

/// The settings that a repository's runs get.
#[derive(Debug, Clone, Default)]
pub(crate) struct Guard {
    /// Set for every run.
    pub(crate) settings: Settings,
    /// Names in the repository's configuration that were not heeded.
    pub(crate) ignored: BTreeSet<String>,
    /// Names in it that decide where traffic goes: with them, nothing is sent.
    pub(crate) network: BTreeSet<String>,
    /// Whether it names a merge strategy that is a program. Of this setting, picking and rebasing heed the first value
    /// there is, so that none can be set against it.
    pub(crate) strategy: bool,
}

/// Cache of git's listings of configuration files, by their whole content, on which alone a listing depends.
#[derive(Default)]
pub(crate) struct Listings(Mutex<BTreeMap<Vec<u8>, Vec<u8>>>);

/// Configuration can hold passwords.
impl std::fmt::Debug for Listings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listings").finish_non_exhaustive()
    }
}

impl Listings {
    fn of(&self, content: &[u8]) -> Option<Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(content).cloned()
    }

    fn keep(&self, content: Vec<u8>, listing: &[u8]) {
        if listing.len() > LISTING_MAX {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= LISTINGS_MAX {
            kept.clear();
        }
        kept.insert(content, listing.to_owned());
    }
}

/// What reads configuration.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) program: &'a Program,
    pub(crate) listings: &'a Listings,
    pub(crate) bounds: &'a Bounds,
    pub(crate) limit: Limit,
    pub(crate) trust: bool,
    pub(crate) sign: bool,
}

impl Reader<'_> {
    /// Reads what the repository brings along and answers what to set against it.
    pub(crate) async fn guard(self, place: &Place, mode: Mode) -> Result<Guard, ToolError> {
        let mut names = BTreeSet::new();
        let mut strategy = false;
        let entries = self.entries(place, place.configs(), !place.bare).await?;
        if !place.bare {
            self.index(place, entries.iter().any(|(name, _)| name == OBJECT_FORMAT)).await?;
        }
        for (name, value) in entries {
            if name == "pull.twohead" {
                strategy |= !value.split_whitespace().all(|word| STRATEGIES.contains(&word));
            } else if name == "core.worktree" {
                place.check_worktree(self.bounds, &value)?;
            } else if names_a_file(&name) {
                self.read_file(place, &name, &value)?;
            }
            names.insert(name);
        }
        let mut guard = Guard::default();
        if self.trust {
            guard.settings = pairs(SHAPES);
            return Ok(guard);
        }
        guard.strategy = strategy;
        for list in [FIXED, SHAPES] {
            guard.settings.extend(pairs(list));
        }
        if !place.bare {
            // For git's own search, where it has to be left to it.
            guard.settings.push(("safe.bareRepository".into(), "explicit".into()));
        }
        if !self.sign {
            guard.settings.extend(pairs(UNSIGNED));
        }
        if mode != Mode::Read && !place.bare {
            self.submodules(place, &mut guard, &mut names).await?;
        }
        let helpers = names.iter().any(|name| is_helper(name));
        let signs: Vec<String> = names.iter().filter(|name| self.sign && is_signing(name)).cloned().collect();
        for name in names {
            guard.answer(&name, mode);
        }
        if helpers {
            self.own_helpers(&mut guard).await?;
        }
        if mode != Mode::Read && !signs.is_empty() {
            self.own_signing(&mut guard, &signs).await?;
        }
        Ok(guard)
    }

    /// Names in a repository's configuration that would run programs, whatever the mode; for repositories that serve
    /// as remotes, where nothing can be set against them.
    pub(crate) async fn hazards(self, place: &Place) -> Result<BTreeSet<String>, ToolError> {
        let entries = self.entries(place, place.configs(), !place.bare).await?;
        let mut guard = Guard::default();
        // What only a client of other remotes would heed does not matter.
        let section = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
        for (name, value) in entries.iter().filter(|(name, _)| names_a_file(name)) {
            self.read_file(place, name, value)?;
        }
        for (name, _) in entries.iter().filter(|(name, _)| !CLIENT_ONLY.contains(&section(name).as_str())) {
            guard.answer(name, Mode::Remote);
        }
        Ok(guard.ignored)
    }

    /// Looks at the names in the index; `named` says that the configuration holds which kind of object ids there are.
    async fn index(self, place: &Place, named: bool) -> Result<(), ToolError> {
        // Git takes this from the one file only, without what it includes.
        let own = if named { self.file(&place.common.join("config")).await? } else { Vec::new() };
        let format = own.iter().rfind(|(name, _)| name == OBJECT_FORMAT).map(|(_, value)| value.as_str());
        let id = if format == Some("sha256") { 32 } else { 20 };
        let (place, bounds) = (place.clone(), self.bounds.clone());
        let checked = tokio::task::spawn_blocking(move || place.check_index(&bounds, id)).await;
        checked.map_err(|_| ToolError::new("Checking the index failed unexpectedly"))?
    }

    /// The entries of these files and what they include, in files that git itself does not change by the way.
    async fn entries(self, place: &Place, files: Vec<PathBuf>, worktree: bool) -> Result<Settings, ToolError> {
        let mut queue: VecDeque<(PathBuf, usize)> = files.into_iter().map(|file| (file, 0)).collect();
        let mut found = Vec::new();
        let mut read = BTreeSet::new();
        while let Some((file, depth)) = queue.pop_front() {
            if depth > INCLUDE_DEPTH_MAX || read.len() > FILES_MAX {
                return Err(ToolError::new("The repository's configuration includes too many files (include.path)"));
            }
            if !read.insert(file.clone()) {
                continue;
            }
            for (name, value) in self.file(&file).await? {
                if name == "include.path" || name.starts_with("includeif.") && name.ends_with(".path") {
                    let (named, included) = self.included(&file, &name, &value)?;
                    // A file of the work tree may be replaced while git runs, by what git checks out.
                    let inner = included.starts_with(&place.git_dir) || included.starts_with(&place.common);
                    if worktree && included.starts_with(&place.top) && !inner && !self.trust {
                        return Err(escape(&format!("{} includes a file in the work tree", shown_key(&name))));
                    }
                    queue.push_back((named, depth + 1));
                }
                found.push((name, value));
            }
        }
        Ok(found)
    }

    /// The path of what `from` includes: as git names it, which is where it begins to look for what that includes, and
    /// where its links lead.
    fn included(self, from: &Path, name: &str, value: &str) -> Result<(PathBuf, PathBuf), ToolError> {
        // `~/…`, `~user/…` and `%(prefix)/…` are resolved by git's own rules and never mean a place inside.
        let path = match value {
            special if special.starts_with(['~', '%']) && !self.bounds.any => return Err(escape(&shown_key(name))),
            special if special.starts_with("~/") => {
                PathBuf::from(self.program.home().unwrap_or_default()).join(&special[2..])
            }
            special if special.starts_with(['~', '%']) => return Err(escape(&shown_key(name))),
            plain => from.parent().unwrap_or(from).join(plain),
        };
        let settled = resolve_symlinks(&path);
        if self.bounds.hold(&settled) { Ok((path, settled)) } else { Err(escape(&shown_key(name))) }
    }

    /// Refuses a file outside: what is in it can show up in git's words. Where everything may be used, that means
    /// repositories and not every file, so it must be in this one.
    fn read_file(self, place: &Place, name: &str, value: &str) -> Result<(), ToolError> {
        let path = resolve_symlinks(&place.top.join(value));
        let inside = match self.bounds.any {
            true => path.starts_with(&place.top) || path.starts_with(&place.common),
            false => self.bounds.hold(&path),
        };
        // Git has forms of its own for a home, for where it is installed and for what need not be there.
        if inside && !value.starts_with(['~', '%', ':']) {
            return Ok(());
        }
        Err(ToolError::new(escape(&shown_key(name)).message())
            .hint("Nothing was run. Remove it from the repository's configuration, or use a file inside."))
    }

    /// The entries of one file, without what it includes. A file that does not exist has none.
    async fn file(self, path: &Path) -> Result<Settings, ToolError> {
        let at = path.to_owned();
        let content = tokio::task::spawn_blocking(move || content(&at)).await;
        let listing = match content.map_err(|_| unreadable(""))?? {
            Content::None => return Ok(Vec::new()),
            Content::Small(content) => match self.listings.of(&content) {
                Some(known) => known,
                None => {
                    // Git gets the very bytes that the listing is kept under: the file may change meanwhile.
                    let listing = self.list("-".into(), content.clone(), path).await?;
                    self.listings.keep(content, &listing);
                    listing
                }
            },
            Content::Large => self.list(path.as_os_str().to_owned(), Vec::new(), path).await?,
        };
        let records = listing.split(|byte| *byte == 0).filter(|record| !record.is_empty());
        let entry = |record: &[u8]| {
            let mut parts = record.splitn(2, |byte| *byte == b'\n');
            let name = parts.next().unwrap_or_default();
            // A name that is not text could not be set against.
            let name = std::str::from_utf8(name).map_err(|_| {
                ToolError::new("The repository's configuration contains a name that is not valid UTF-8")
                    .hint("Nothing was run.")
            })?;
            let value = parts.next().unwrap_or_default();
            // What is looked at would not be what git reads.
            let path = name == "core.worktree" || name.starts_with("include") || names_a_file(name);
            if path && std::str::from_utf8(value).is_err() {
                return Err(ToolError::new(format!(
                    "The repository's configuration contains a path that is not valid UTF-8: {}",
                    shown_key(name)
                ))
                .hint("Nothing was run."));
            }
            Ok((name.to_owned(), lossy(value)))
        };
        records.map(entry).collect()
    }

    /// Has git list the configuration file `from`; `-` stands for `input`, which is what was in `path`.
    async fn list(self, from: OsString, input: Vec<u8>, path: &Path) -> Result<Vec<u8>, ToolError> {
        let mut list = args(&["config", "--no-includes", "--list", "-z", "--file"]);
        list.push(from);
        let done = self.outside(list, input).await?;
        if !done.good() || done.cut {
            // A file that is included has whatever name the repository gives it.
            let plain = path.file_name().is_some_and(|name| name == "config" || name == "config.worktree");
            let shown = if plain { format!("file {}", path.display()) } else { "an included file".to_owned() };
            let fault = unreadable(&shown);
            return Err(if done.good() { fault } else { fault.detail(done.words()) });
        }
        Ok(done.out)
    }

    /// Runs git away from every repository.
    async fn outside(self, list: Vec<OsString>, input: Vec<u8>) -> Result<Done, ToolError> {
        let job = Job {
            dir: Path::new(if cfg!(windows) { "C:\\" } else { "/" }),
            args: list,
            settings: &[],
            vars: vec![("GIT_DIR", OsString::from("/dev/null"))],
            input,
            keep: Keep::Upto(CONFIG_MAX),
            network: false,
            share: None,
            limit: self.limit,
        };
        self.program.run(job).await
    }

    /// The names in the configuration of populated submodules: git looks into them on its own, with their configuration.
    async fn submodules(self, place: &Place, guard: &mut Guard, names: &mut BTreeSet<String>) -> Result<(), ToolError> {
        let mut queue = VecDeque::from([place.clone()]);
        let mut count = 0;
        while let Some(Place { top, .. }) = queue.front().cloned() {
            let mut vars = queue.pop_front().map(|place| place.pins()).unwrap_or_default();
            vars.push(("GIT_OPTIONAL_LOCKS", OsString::from("0")));
            let job = Job {
                dir: &top,
                args: args(&["ls-files", "--stage", "-z"]),
                settings: &guard.settings,
                vars,
                input: Vec::new(),
                keep: Keep::Records(b"160000 ", CONFIG_MAX),
                network: false,
                share: None,
                limit: self.limit,
            };
            let done = self.program.run(job).await?;
            for record in done.out.split(|byte| *byte == 0) {
                let text = lossy(record);
                let Some((_, path)) = text.split_once('\t') else { continue };
                if std::str::from_utf8(record).is_err() {
                    // It would be looked for under another name, and not found.
                    return Err(ToolError::new("The path of a submodule is not valid UTF-8").hint("Nothing was run."));
                }
                let sub = top.join(path);
                let bounds = self.bounds.clone();
                let looked = tokio::task::spawn_blocking(move || populated(&bounds, &sub)).await;
                let looked = looked.map_err(|_| ToolError::new("Checking a submodule failed unexpectedly"))?;
                let Some(sub_place) = looked? else { continue };
                count += 1;
                if count > SUBMODULES_MAX {
                    return Err(ToolError::new("The repository has too many populated submodules"));
                }
                for (name, _) in self.entries(&sub_place, sub_place.configs(), true).await? {
                    names.insert(name);
                }
                queue.push_back(sub_place);
            }
            // What was found so far holds for the next run already.
            for name in names.iter() {
                guard.answer(name, Mode::Read);
            }
        }
        Ok(())
    }

    /// The helpers of the user's own configuration: dropping the repository's drops them too, so they are named again.
    async fn own_helpers(self, guard: &mut Guard) -> Result<(), ToolError> {
        guard.settings.push(("credential.helper".into(), String::new()));
        let done = self
            .outside(
                args(&["config", "--global", "--includes", "-z", "--get-regexp", r"^credential\..*helper$"]),
                Vec::new(),
            )
            .await?;
        for record in done.out.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
            if let Some((name, value)) = lossy(record).split_once('\n') {
                guard.settings.push((name.to_owned(), value.to_owned()));
            }
        }
        Ok(())
    }

    /// Sets the signing key and program of the user's configuration instead of `named`, those of the repository.
    async fn own_signing(self, guard: &mut Guard, named: &[String]) -> Result<(), ToolError> {
        let asked = args(&["config", "--includes", "-z", "--get-regexp", r"^(user\.signingkey|gpg\..*)$"]);
        let done = self.outside(asked, Vec::new()).await?;
        let own = lossy(&done.out);
        let own = || own.split('\0').filter_map(|record| record.split_once('\n'));
        for name in named {
            let known = own().any(|(own, _)| own == name);
            match name.as_str() {
                "user.signingkey" if !known => {
                    return Err(ToolError::new(
                        "The signing key is set in the repository's configuration, but not in the user's",
                    )
                    .hint("Set user.signingKey in the user's git configuration."));
                }
                "gpg.format" => guard.set(name, "openpgp"),
                // Not read when signing.
                "gpg.ssh.allowedsignersfile" | "gpg.ssh.revocationfile" => guard.set(name, ""),
                _ => {}
            }
        }
        for (name, value) in own() {
            guard.set(name, value);
        }
        Ok(())
    }
}

/// What decides with which key and program is signed.
fn is_signing(name: &str) -> bool {
    name == "user.signingkey" || name.starts_with("gpg.")
}

/// What is in a configuration file.
enum Content {
    /// There is no such file.
    None,
    Small(Vec<u8>),
    /// Too much to be kept.
    Large,
}

fn content(path: &Path) -> Result<Content, ToolError> {
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_file() => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Content::None),
        _ => {
            return Err(ToolError::new("The repository's configuration is not a regular file").hint("Nothing was run."));
        }
    }
    let file = std::fs::File::open(path).map_err(|error| unreadable(&error.kind().to_string()))?;
    let mut content = Vec::new();
    let read = file.take(CONTENT_MAX + 1).read_to_end(&mut content);
    let read = read.map_err(|error| unreadable(&error.kind().to_string()))?;
    Ok(if read as u64 > CONTENT_MAX { Content::Large } else { Content::Small(content) })
}

fn unreadable(why: &str) -> ToolError {
    ToolError::new(format!("The repository's configuration cannot be read: {why}"))
        .hint("Nothing was run. Check the file .git/config.")
}

/// The repository of a submodule that was checked out.
fn populated(bounds: &Bounds, top: &Path) -> Result<Option<Place>, ToolError> {
    if top.join(".git").symlink_metadata().is_err() {
        return Ok(None);
    }
    let shown = top.display().to_string();
    match Place::find(bounds, &shown) {
        Ok(place) => Ok(Some(place)),
        Err(fault) if fault.is_not_found() => Ok(None),
        Err(fault) => Err(fault),
    }
}

impl Guard {
    /// Sets what answers this name, if it is one that must not be heeded.
    fn answer(&mut self, name: &str, mode: Mode) {
        let Some((section, rest)) = name.split_once('.') else { return };
        let (sub, key) = rest.rsplit_once('.').map_or((None, rest), |(sub, key)| (Some(sub), key));
        if NETWORK.iter().any(|(of, what)| *of == section && *what == key) {
            self.network.insert(name.to_owned());
        }
        if let Some((.., value)) = KNOBS.iter().find(|(of, what, _)| *of == section && *what == key) {
            self.set(name, value);
        }
        let known = ANSWERS.iter().find(|(of, with_sub, what, _)| {
            *of == section
                && *what == key
                && match with_sub {
                    Sub::Any => sub.is_some(),
                    Sub::None => sub.is_none(),
                    Sub::Either => true,
                }
        });
        let Some((.., value)) = known else { return };
        let value = match (section, sub, key) {
            ("gpg", Some("x509"), "program") => "gpgsm",
            ("gpg", Some("ssh"), "program") => "ssh-keygen",
            _ => value,
        };
        self.ignored.insert(name.to_owned());
        self.set(name, value);
        if let ("filter", Some(driver)) = (section, sub) {
            // Nothing may be stored or checked out unfiltered by accident; when only looking, unfiltered is the answer.
            self.set(&format!("filter.{driver}.required"), if mode == Mode::Read { "false" } else { "true" });
        }
    }

    fn set(&mut self, name: &str, value: &str) {
        match self.settings.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => value.clone_into(old),
            None => self.settings.push((name.to_owned(), value.to_owned())),
        }
    }

    /// What was not heeded, as advice about this complaint; nothing when it cannot be the cause.
    pub(crate) fn advice(&self, complaint: &str) -> Option<String> {
        let complaint = complaint.to_lowercase();
        let may = |name: &&String| {
            let section = name.split('.').next().unwrap_or_default();
            CAUSES.iter().any(|(of, words)| *of == section && words.iter().any(|word| complaint.contains(word)))
        };
        let names: Vec<String> = self.ignored.iter().filter(may).take(8).map(|name| shown_key(name)).collect();
        (!names.is_empty()).then(|| {
            format!(
                "Disabled, because it is set in the repository's own configuration: {}. The operator can \
                 allow it with --trust-repo-config.",
                names.join(", ")
            )
        })
    }
}

/// Whether a value of this name is the path of a file that git reads: known names, and typical endings of future ones.
fn names_a_file(name: &str) -> bool {
    let (section, key) = (name.split('.').next().unwrap_or_default(), name.rsplit('.').next().unwrap_or_default());
    FILE_SECTIONS.split(' ').any(|known| known == section) && FILE_ENDS.iter().any(|end| key.ends_with(end))
}

/// A name for errors. What stands in its middle is free text, which has no place there unless it is plain.
pub(crate) fn shown_key(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "._-/:@=+*".contains(c);
    if name.len() <= 120 && name.chars().all(plain) {
        return name.to_owned();
    }
    let (section, key) = (name.split('.').next().unwrap_or_default(), name.rsplit('.').next().unwrap_or_default());
    format!("{section}.*.{key}")
}

fn is_helper(name: &str) -> bool {
    name.starts_with("credential.") && name.ends_with(".helper")
}

fn pairs(of: &[(&str, &str)]) -> Settings {
    of.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Whether a name has a middle part.
enum Sub {
    Any,
    None,
    Either,
}

/// Set for every run unless the repository's configuration is trusted: nothing runs by itself.
const FIXED: &[(&str, &str)] = &[
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("diff.external", ""),
    ("core.alternateRefsCommand", "true"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("submodule.recurse", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("push.recurseSubmodules", "no"),
    ("diff.ignoreSubmodules", "dirty"),
    ("diff.submodule", "short"),
    ("status.submoduleSummary", "false"),
    ("protocol.allow", "never"),
    ("protocol.file.allow", "never"),
    ("log.showSignature", "false"),
    ("merge.verifySignatures", "false"),
    // With more than one, git reads parts of the index from where the index says they are.
    ("index.threads", "1"),
    // Larger files are compared by their ids only, and never held whole to be packed.
    ("core.bigFileThreshold", "32m"),
];

/// Set for every run: the shape of what is read, and what we write.
const SHAPES: &[(&str, &str)] = &[
    ("color.ui", "never"),
    ("color.status", "never"),
    ("color.branch", "never"),
    ("color.diff", "never"),
    ("color.grep", "never"),
    ("column.ui", "never"),
    ("column.status", "never"),
    ("column.branch", "never"),
    ("i18n.commitEncoding", "UTF-8"),
    ("i18n.logOutputEncoding", "UTF-8"),
    ("rebase.backend", "merge"),
    ("rebase.updateRefs", "false"),
];

/// Set unless signing was asked for.
const UNSIGNED: &[(&str, &str)] = &[
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("tag.forceSignAnnotated", "false"),
    ("push.gpgSign", "false"),
];

/// What answers a name that a repository's own configuration holds. Names are as git lists them: section and key in
/// lower case. A merge driver becomes one that reports a conflict; with an empty one, git would take "ours" for merged.
const ANSWERS: &[(&str, Sub, &str, &str)] = &[
    ("core", Sub::None, "fsmonitor", "false"),
    ("core", Sub::None, "hookspath", "/dev/null"),
    ("core", Sub::None, "sshcommand", "ssh"),
    ("core", Sub::None, "gitproxy", "none"),
    ("core", Sub::None, "askpass", ""),
    ("core", Sub::None, "editor", ":"),
    ("core", Sub::None, "pager", "cat"),
    ("core", Sub::None, "alternaterefscommand", "true"),
    ("commit", Sub::None, "template", ""),
    ("core", Sub::None, "protecthfs", "true"),
    ("core", Sub::None, "protectntfs", "true"),
    ("sequence", Sub::None, "editor", ":"),
    ("diff", Sub::None, "external", ""),
    ("diff", Sub::Any, "textconv", ""),
    ("diff", Sub::Any, "command", ""),
    ("filter", Sub::Any, "clean", ""),
    ("filter", Sub::Any, "smudge", ""),
    ("filter", Sub::Any, "process", ""),
    ("merge", Sub::Any, "driver", "false"),
    ("gpg", Sub::None, "program", "gpg"),
    ("gpg", Sub::Any, "program", "gpg"),
    ("gpg", Sub::Any, "defaultkeycommand", ""),
    ("credential", Sub::Either, "helper", ""),
    ("trailer", Sub::Any, "command", "true"),
    ("trailer", Sub::Any, "cmd", "true"),
    ("hook", Sub::Any, "command", "true"),
    ("gc", Sub::None, "recentobjectshook", ""),
    ("interactive", Sub::None, "difffilter", "cat"),
    // Of these two git heeds the first value, which is the repository's: the flags of fetch and push decide, and that
    // nothing is fetched by the way (`GIT_NO_LAZY_FETCH`). Here they are named, for advice.
    ("remote", Sub::Any, "uploadpack", "git-upload-pack"),
    ("remote", Sub::Any, "receivepack", "git-receive-pack"),
    ("remote", Sub::Any, "vcs", ""),
    ("remote", Sub::Any, "mirror", "false"),
    ("branch", Sub::Any, "mergeoptions", ""),
    ("pull", Sub::None, "twohead", "ort"),
    ("pull", Sub::None, "octopus", "octopus"),
    ("submodule", Sub::Any, "update", "checkout"),
    ("push", Sub::None, "pushoption", ""),
    ("lfs", Sub::Any, "clean", ""),
    ("lfs", Sub::Any, "smudge", ""),
    ("lfs", Sub::Any, "path", ""),
    ("lfs", Sub::Either, "standalonetransferagent", ""),
    ("lfs", Sub::None, "storage", "lfs"),
];

/// What a repository's own configuration may not raise: processes and threads (the limit on memory is one for each
/// process), memory, and what is compared with what.
/// The values are git's own or smaller; the user's configuration keeps its say where the repository has none. The last
/// lines are for a file whose times the repository could otherwise have taken for those of one outside.
const KNOBS: &[(&str, &str, &str)] = &[
    ("checkout", "workers", "1"),
    ("grep", "threads", "4"),
    ("pack", "threads", "2"),
    ("submodule", "fetchjobs", "1"),
    ("fetch", "parallel", "1"),
    ("http", "maxrequests", "5"),
    ("http", "postbuffer", "1m"),
    ("pack", "window", "10"),
    ("pack", "depth", "50"),
    ("pack", "windowmemory", "256m"),
    ("pack", "deltacachesize", "256m"),
    ("pack", "packsizelimit", "0"),
    ("core", "deltabasecachelimit", "96m"),
    ("core", "maxtreedepth", "2048"),
    ("diff", "renamelimit", "1000"),
    ("merge", "renamelimit", "7000"),
    ("status", "renamelimit", "1000"),
    ("core", "checkstat", "default"),
    ("core", "trustctime", "true"),
];

const OBJECT_FORMAT: &str = "extensions.objectformat";

/// Sections whose keys can be why something failed when they are not heeded, and what git says then, in lower case.
const CAUSES: &[(&str, &[&str])] = &[
    ("filter", &["filter"]),
    ("lfs", &["filter", "lfs"]),
    ("merge", &["merge driver"]),
    ("gpg", &["gpg", "sign"]),
    ("core", &["askpass", "could not read username", "could not read password", "permission denied", "ssh"]),
    ("credential", &["authentication failed", "could not read username", "could not read password"]),
    ("submodule", &["submodule"]),
];

/// What decides where traffic goes and what is believed there.
const NETWORK: &[(&str, &str)] = &[
    ("http", "proxy"),
    ("http", "sslverify"),
    ("http", "sslcainfo"),
    ("http", "sslcapath"),
    ("http", "sslcert"),
    ("http", "sslkey"),
    ("http", "proxysslcainfo"),
    ("http", "proxysslcert"),
    ("http", "proxysslkey"),
    ("http", "cookiefile"),
    ("http", "savecookies"),
    ("http", "curloptresolve"),
    ("http", "delegation"),
    ("http", "followredirects"),
    ("http", "proactiveauth"),
    ("remote", "proxy"),
    ("fetch", "bundleuri"),
    ("transfer", "bundleuri"),
];

/// Strategies that are part of git. Another name would be looked up as a program.
pub(crate) const STRATEGIES: &[&str] = &["ort", "recursive", "resolve", "octopus", "ours", "subtree"];

/// Sections of what the tools use of git, and how the keys in them end that name files: `blame.ignoreRevsFile`,
/// `core.attributesFile`, `core.excludesFile`, `diff.orderFile`, `fsck.skipList`, `fetch.fsck.skipList`,
/// `receive.fsck.skipList`, `gpg.ssh.allowedSignersFile`, `gpg.ssh.revocationFile`, `mailmap.file`. Those of `http` are
/// below `NETWORK`; `commit.template` is not read, because every commit brings its message.
const FILE_SECTIONS: &str = "am apply attr blame branch checkout cherry commit core diff fetch fsck gc gpg grep index log \
     mailmap merge notes pack pull push rebase receive rerere show stash status submodule tag transfer uploadpack user \
     worktree";
const FILE_ENDS: &[&str] = &["file", "skiplist"];

/// Sections that a repository does not heed while it serves as a remote.
const CLIENT_ONLY: &[&str] = &["remote", "branch", "pull", "push", "credential", "submodule", "lfs", "sequence"];

const INCLUDE_DEPTH_MAX: usize = 10;
const FILES_MAX: usize = 256;
const SUBMODULES_MAX: usize = 256;
const CONFIG_MAX: usize = 4 * 1024 * 1024;
const CONTENT_MAX: u64 = 64 * 1024;
const LISTING_MAX: usize = 128 * 1024;
const LISTINGS_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_repository_may_not_raise_is_set_whatever_it_says() {
        for (section, key, value) in KNOBS {
            let name = format!("{section}.{key}");
            let mut guard = Guard::default();
            guard.answer(&name, Mode::Read);
            assert_eq!(guard.settings, [(name, (*value).to_owned())]);
            assert!(guard.ignored.is_empty(), "that is not why anything failed");
        }
    }
}
