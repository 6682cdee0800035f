//! Tools that contact remotes: fetch, pull, push. Disabled without `--allow-remote`.
//!
//! A remote is identified by its name in the repository's configuration, never by a URL. Its URL is checked first: only
//! https, http, ssh, git, and directories of this machine that are allowed. A directory serves as a remote with its
//! hooks disabled.

use crate::error::{NO_RIGHTS, UPSTREAM};
use crate::exec::output::{Done, Keep, lossy};
use crate::exec::program::args;
use crate::guard::shown_key;
use crate::place::Place;
use crate::repo::{COMMAND_BYTES, Repo, no_dash};

use linchpin_kit::{ErrorKind, ToolError, resolve_symlinks};
use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;

/// The common arguments.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct RemoteArgs {
    /// The repository
    pub(crate) repo_path: String,
    #[serde(default)]
    pub(crate) remote: Option<String>,
    #[serde(default)]
    pub(crate) branch: Option<String>,
}

impl RemoteArgs {
    pub(crate) fn check(&self) -> Result<(), ToolError> {
        for (what, value) in [("remote", &self.remote), ("branch", &self.branch)] {
            no_dash(what, value.as_deref().unwrap_or_default())?;
        }
        Ok(())
    }
}

/// Sets the descriptions of `remote` and `branch`, whose defaults differ for each tool.
pub(crate) fn describe_args(remote: &str, branch: &str) -> impl FnMut(&mut Schema) {
    move |schema: &mut Schema| {
        for (name, text) in [("remote", remote), ("branch", branch)] {
            let property =
                schema.pointer_mut(&format!("/properties/{name}")).and_then(|property| property.as_object_mut());
            if let Some(property) = property {
                property.insert("description".to_owned(), text.into());
            }
        }
    }
}

pub(crate) async fn fetch_now(repo: &Repo, way: &Remote, more: &[String]) -> Result<Done, ToolError> {
    let mut command =
        args(&["fetch", "--quiet", "--no-recurse-submodules", "--no-auto-maintenance", "--no-write-commit-graph"]);
    // Whatever the configuration says about pruning: branches are deleted only on request, and tags never.
    command.extend(args(&["--no-prune", "--no-prune-tags"]));
    command.push(format!("--upload-pack={}", way.program("upload-pack")).into());
    command.extend(more.iter().map(OsString::from));
    way.run(repo, command).await
}

/// The error of a run that contacted a remote: this server's description, then the message of git and the remote.
pub(crate) fn refusal(done: &Done) -> ToolError {
    let said = lossy(&done.err);
    let known = REFUSALS.iter().find(|(what, ..)| said.contains(what));
    let (words, hint) = known.map_or(
        ("The remote rejected the request, or could not be reached", "See the message of git and the remote below."),
        |(_, words, hint)| (*words, *hint),
    );
    let kind = if hint == LOGIN { ErrorKind::Denied } else { UPSTREAM };
    ToolError::new(words).kind(kind).hint(hint).detail(done.message())
}

/// A remote that passed the checks.
pub(crate) struct Remote {
    pub(crate) remote: String,
    /// Its URLs after all rewriting, without credentials, as many as fit into a result.
    pub(crate) urls: Vec<String>,
    /// How many URLs were omitted.
    pub(crate) unnamed: usize,
    /// The protocols allowed for this run.
    pub(crate) protocols: BTreeSet<&'static str>,
    /// The shell-quoted path of git, if the remote is a local directory.
    pub(crate) local: Option<String>,
}

impl Remote {
    pub(crate) async fn to(repo: &Repo, remote: Option<&str>, push: bool) -> Result<Self, ToolError> {
        let remote = remote.filter(|remote| !remote.is_empty()).unwrap_or("origin").to_owned();
        let known = repo.must(&["remote"]).await?.text();
        if !known.lines().any(|name| name == remote) {
            // The configuration may have named it (`branch.*.remote`).
            let shown = if is_plain(&remote) { format!("'{remote}'") } else { "of that name".to_owned() };
            let plain: Vec<&str> = known.lines().filter(|name| is_plain(name)).collect();
            let mut known =
                if plain.is_empty() { "none".to_owned() } else { plain[..plain.len().min(NAMED_MAX)].join(", ") };
            if plain.len() > NAMED_MAX {
                known.push_str(&format!(" and {} more", plain.len() - NAMED_MAX));
            }
            return Err(ToolError::not_found(format!("Unknown remote {shown}"))
                .hint(format!("Pass the name of a configured remote, not a URL. Configured: {known}.")));
        }
        if !repo.guard.network.is_empty() {
            let names: Vec<String> = repo.guard.network.iter().map(|name| shown_key(name)).collect();
            if !repo.config().trust_repo_config {
                return Err(ToolError::denied(format!(
                    "The repository's own configuration redirects network traffic: {}",
                    names.join(", ")
                ))
                .hint("Nothing was sent. The operator can allow it with --trust-repo-config."));
            }
        }
        check_entries(repo, &remote).await?;
        let mut command = vec!["remote", "get-url", "--all"];
        if push {
            command.push("--push");
        }
        command.extend(["--", &remote]);
        let urls = repo.must(&command).await?.text();
        let mut way = Self { remote, urls: Vec::new(), unnamed: 0, protocols: BTreeSet::new(), local: None };
        for url in urls.lines() {
            way.admit(repo, url).await?;
            way.urls.push(without_login(url));
        }
        let fit = repo.budget().part(4).count(&way.urls).min(NAMED_MAX);
        way.unnamed = way.urls.len() - fit;
        way.urls.truncate(fit);
        Ok(way)
    }

    /// A remote's name and URLs.
    pub(crate) fn description(&self) -> String {
        let more = if self.unnamed > 0 { format!(" and {} more", self.unnamed) } else { String::new() };
        format!("{} ({}{more})", self.remote, self.urls.join(", "))
    }

    /// Its name, for errors.
    pub(crate) fn shown(&self) -> &str {
        if is_plain(&self.remote) { &self.remote } else { "?" }
    }

    pub(crate) async fn admit(&mut self, repo: &Repo, url: &str) -> Result<(), ToolError> {
        let protocol = match kind_of(url) {
            Kind::Known(protocol) => {
                let hosts = &repo.config().remote_hosts;
                if !hosts.is_empty()
                    && !host_of(url).is_some_and(|host| hosts.iter().any(|one| one.eq_ignore_ascii_case(host)))
                {
                    return Err(ToolError::denied(format!(
                        "The remote '{}' is on a host that is not allowed",
                        self.shown()
                    ))
                    .hint(format!("Allowed: {}. The operator can add one with --remote-host.", hosts.join(", "))));
                }
                protocol
            }
            Kind::Directory(path) => {
                let refused = |why: String| {
                    ToolError::denied(format!("The remote '{}' is {why}", self.shown()))
                        .hint("The operator can allow its directory with --repository.")
                };
                let path = resolve_symlinks(&repo.place.top.join(path));
                if !repo.bounds.hold(&path) {
                    return Err(refused("a directory outside the allowed repositories".to_owned()));
                }
                let shown = path.display().to_string();
                let bounds = repo.bounds.clone();
                let place = tokio::task::spawn_blocking(move || Place::find(&bounds, &shown))
                    .await
                    .map_err(|_| ToolError::new("Checking the remote failed unexpectedly"))??;
                // Otherwise git would try other names next to the checked one.
                if place.top != path && place.git_dir != path {
                    return Err(refused("not the top level of a repository".to_owned()));
                }
                let hazards = repo.git.reader(&repo.bounds).hazards(&place).await?;
                if !repo.config().trust_repo_config && !hazards.is_empty() {
                    let names: Vec<String> = hazards.iter().map(|name| shown_key(name)).collect();
                    return Err(refused(format!(
                        "a directory whose configuration contains programs: {}",
                        names.join(", ")
                    )));
                }
                let program = repo.git.inner.program.path().to_string_lossy().replace('\'', r"'\''");
                self.local = Some(format!("'{program}'"));
                "file"
            }
            Kind::Unknown => {
                return Err(ToolError::denied(format!(
                    "The URL scheme of the remote '{}' is not allowed",
                    self.shown()
                ))
                .hint("Allowed are https, http, ssh and git."));
            }
        };
        self.protocols.insert(protocol);
        Ok(())
    }

    /// The program that serves the other side. On this machine it is our git with everything disabled; elsewhere git's
    /// default, whatever the configuration says.
    pub(crate) fn program(&self, name: &str) -> String {
        match &self.local {
            Some(git) => format!(
                "{git} -c core.hooksPath=/dev/null -c core.fsmonitor=false -c gc.auto=0 -c receive.autogc=false -c \
                 maintenance.auto=false -c pack.threads=2 -c pack.windowMemory=256m -c core.alternateRefsCommand=true {name}"
            ),
            None => format!("git-{name}"),
        }
    }

    pub(crate) async fn run(&self, repo: &Repo, command: Vec<OsString>) -> Result<Done, ToolError> {
        let protocols: Vec<&str> = self.protocols.iter().copied().collect();
        let vars = vec![("GIT_ALLOW_PROTOCOL", OsString::from(protocols.join(":")))];
        repo.run_with(command, Keep::Head(COMMAND_BYTES), Vec::new(), vars, repo.config().limit(true)).await
    }
}

/// Refuses a remote with a deceptive configuration: groups of remotes, URLs that git reads differently, and refspecs
/// that would move or delete refs of this repository.
async fn check_entries(repo: &Repo, remote: &str) -> Result<(), ToolError> {
    if repo.config().trust_repo_config {
        return Ok(());
    }
    let refused = |why: &str, what: &str| {
        let name = if is_plain(remote) { format!("The remote '{remote}'") } else { "The remote".to_owned() };
        ToolError::denied(format!("{name} {why}: {what}"))
            .hint("Nothing was sent. The operator can allow it with --trust-repo-config.")
    };
    for old in ["remotes", "branches"] {
        if repo.place.common.join(old).join(remote).symlink_metadata().is_ok() {
            return Err(refused("is defined in a legacy file", &format!(".git/{old}")));
        }
    }
    let done = repo.must(&["config", "--list", "-z"]).await?;
    if done.cut {
        return Err(ToolError::new("The configuration is too long to check").hint("Nothing was sent."));
    }
    let fetches = format!("remote.{remote}.fetch");
    let group = format!("remotes.{remote}");
    for entry in done.out.split(|byte| *byte == 0) {
        let entry = lossy(entry);
        let (name, value) = entry.split_once('\n').unwrap_or((&entry, ""));
        let leads = name.starts_with("remote.") && name.ends_with("url") || name.starts_with("url.");
        if leads && (name.contains(odd) || value.contains(odd)) {
            return Err(refused("has a URL with characters that are not allowed", "remote.*.url, url.*.insteadof"));
        }
        if name == group {
            return Err(refused("is a group of other remotes", "remotes.*"));
        }
        if name == fetches && !stays(value, remote) {
            return Err(refused("is set up to replace branches or other refs of this repository", "remote.*.fetch"));
        }
    }
    Ok(())
}

/// Git would read it differently: it contains a line end or invalid UTF-8.
pub(crate) fn odd(c: char) -> bool {
    c.is_control() || c == '\u{fffd}'
}

/// Whether a fetch with this refspec changes only remote-tracking refs and tags.
fn stays(refspec: &str, remote: &str) -> bool {
    let to = match refspec.strip_prefix('+').unwrap_or(refspec).rsplit_once(':') {
        Some((_, to)) if !refspec.starts_with('^') => to,
        _ => return true,
    };
    to.is_empty() || to.starts_with(&format!("refs/remotes/{remote}/")) || to.starts_with("refs/tags/")
}

/// Whether a name is harmless in an error message.
pub(crate) fn is_plain(name: &str) -> bool {
    name.len() <= 100 && name.chars().all(|c| c.is_alphanumeric() || "._-/#@+=,".contains(c))
}

const NAMED_MAX: usize = 20;

const NO_REPOSITORY: &str = "The remote's URL is not a repository";

const LOGIN: &str =
    "GIT_ASKPASS, an ssh agent or a credential helper of the user's configuration can provide credentials.";

/// Messages of git, and what they mean.
pub(crate) const REFUSALS: &[(&str, &str, &str)] = &[
    (
        "Authentication failed",
        "Authentication failed: the user that the server runs as has no valid credentials",
        LOGIN,
    ),
    ("could not read Username", "Authentication failed: the user that the server runs as has no credentials", LOGIN),
    ("could not read Password", "Authentication failed: the user that the server runs as has no credentials", LOGIN),
    // Git's message about a file, usually one in this repository.
    ("': Permission denied", "Permission denied for a file", NO_RIGHTS),
    ("Permission denied", "Permission denied by the remote", "An ssh agent must provide an authorized key."),
    ("Host key verification failed", "The remote's ssh host key is unknown", "Connect with ssh once to accept it."),
    ("Could not resolve host", "The remote's host name could not be resolved", "Check the remote's URL."),
    ("' not found", NO_REPOSITORY, "Check the remote's URL, and whether the account can access it."),
    // The message of GitHub and GitLab over ssh.
    ("Repository not found", NO_REPOSITORY, "Check the remote's URL, and whether the account can access it."),
    ("looking for could not be found", NO_REPOSITORY, "Check the remote's URL, and whether the account can access it."),
    ("returned error: 403", "The remote denied access (403)", LOGIN),
    ("returned error: 5", "The remote failed (HTTP status 5xx)", "Try again later."),
    (
        "SSL certificate",
        "The remote's certificate is not trusted",
        "The user's git configuration sets the trusted certificates.",
    ),
    (
        "certificate verif",
        "The remote's certificate is not trusted",
        "The user's git configuration sets the trusted certificates.",
    ),
    ("unable to update url base from redirection", "The remote redirects to another URL", "Check the remote's URL."),
    ("Failed to connect", "The remote could not be reached", "Check the remote's URL, or try again later."),
    ("unable to connect", "The remote could not be reached", "Check the remote's URL, or try again later."),
    ("Empty reply", "The remote closed the connection", "Try again later."),
    (
        "hung up unexpectedly",
        "The remote closed the connection",
        "Check the remote's URL, and whether the account can access it.",
    ),
    ("not valid: is this a git repository?", "The remote is not a git repository", "Check the remote's URL."),
    ("Connection refused", "The remote refused the connection", "Check the remote's URL, or try again later."),
    ("Connection timed out", "The remote did not answer in time", "Try again later."),
    ("couldn't find remote ref", "The remote has no such branch", "git_fetch without a branch fetches all of them."),
    ("does not appear to be a git repository", "The remote is not a git repository", "Check the remote's URL."),
    (
        "not allowed",
        "The protocol of the remote is not allowed",
        "Allowed are https, http, ssh, git and directories inside the allowed repositories.",
    ),
    ("refusing to fetch into", "A checked-out branch would be replaced", "Fetch another branch, or use git_pull."),
    (
        "cannot lock ref",
        "A ref could not be locked",
        "Another git process is running, or two ref names conflict; try again.",
    ),
    ("No space left", "No space left on the device", "Free disk space first."),
];

/// A URL without credentials and parameters, which may be a token.
fn without_login(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return linchpin_kit::clip(url, 500).text.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let path = path.split(['?', '#']).next().unwrap_or_default();
    linchpin_kit::clip(&format!("{scheme}://{host}{path}"), 500).text.to_owned()
}

/// The host of a network URL, if it is unambiguous.
fn host_of(url: &str) -> Option<&str> {
    let authority = match url.split_once("://") {
        Some((_, rest)) => rest.split('/').next()?,
        None => url.split(':').next()?,
    };
    let host = authority.split_once('@').map_or(authority, |(_, host)| host);
    let host = match host.strip_prefix('[') {
        Some(address) => address.split_once(']')?.0,
        None => host.split(':').next()?,
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-_:".contains(c);
    (!host.is_empty() && host.chars().all(plain)).then_some(host)
}

/// The target of a URL.
enum Kind {
    Known(&'static str),
    Directory(PathBuf),
    Unknown,
}

fn kind_of(url: &str) -> Kind {
    if let Some((scheme, rest)) = url.split_once("://") {
        // `ext::…://` and similar URLs name a helper program.
        return match scheme.to_ascii_lowercase().as_str() {
            "https" => Kind::Known("https"),
            "http" => Kind::Known("http"),
            "ssh" | "git+ssh" | "ssh+git" => Kind::Known("ssh"),
            "git" => Kind::Known("git"),
            // Git decodes `%2e`, and reads `file://x/y` as `/x/y`; neither is needed.
            "file" if rest.starts_with('/') && !rest.contains('%') => Kind::Directory(PathBuf::from(rest)),
            _ => Kind::Unknown,
        };
    }
    // The other side would expand `~`.
    if url.contains("::") || url.starts_with('~') {
        return Kind::Unknown;
    }
    // host:path, unless a slash comes first.
    match (url.find(':'), url.find('/')) {
        (Some(colon), slash) if slash.is_none_or(|slash| colon < slash) => Kind::Known("ssh"),
        _ => Kind::Directory(PathBuf::from(url)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_told_without_its_login_and_a_host_is_read_only_where_it_is_certain() {
        for (url, told, host) in [
            ("https://example.com/x", "https://example.com/x", Some("example.com")),
            ("https://token@example.com/x?key=1#y", "https://example.com/x", Some("example.com")),
            ("https://u:p@example.com:8443/x", "https://example.com:8443/x", Some("example.com")),
            ("http://[::1]:80/x", "http://[::1]:80/x", Some("::1")),
            ("ssh://git@example.com/x", "ssh://example.com/x", Some("example.com")),
            ("git@example.com:x/y", "git@example.com:x/y", Some("example.com")),
            ("https://a@b@c/x", "https://c/x", None),
            ("https://a%2f@b/x", "https://b/x", Some("b")),
            ("https://b%2ec/x", "https://b%2ec/x", None),
            ("https://b\\@c/x", "https://c/x", Some("c")),
            ("https:///x", "https:///x", None),
        ] {
            assert_eq!(without_login(url), told, "{url}");
            assert_eq!(host_of(url), host, "{url}");
        }
        assert!(without_login(&format!("host:{}", "x".repeat(9_000))).len() <= 500);
    }
}
