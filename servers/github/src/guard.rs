//! What calls may not do together: text of an issue can make a model read a private repository and publish what it read.

use crate::Config;
use crate::scope::{ISSUES_MAX, repository, trusted};
use linchpin::{BoxFuture, Principal};
use linchpin_kit::ToolError;
use linchpin_rest::{Args, Ask, Call, Guard, Rest};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum sessions that are told apart, repositories that are remembered for each, and repositories whose visibility is known.
const SESSIONS_MAX: usize = 1_000;
const READ_MAX: usize = 1_000;
const KNOWN_MAX: usize = 10_000;

/// Most repositories whose visibility one write asks for.
const LOOKUPS_MAX: usize = 100;

/// The repositories that each session has read.
pub(crate) struct Sessions {
    allowed: bool,
    lockdown: bool,
    only: Vec<String>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    read: HashMap<Who, HashSet<String>>,
    /// Whether a repository is private.
    private: HashMap<String, bool>,
}

impl Sessions {
    pub(crate) fn new(config: &Config) -> Sessions {
        // Without a token nothing private can be read.
        let allowed = config.allow_cross_visibility || config.api.key.is_none();
        let only = config.repositories.clone();
        Sessions { allowed, lockdown: config.lockdown, only, seen: Mutex::default() }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a repository is private. One that is not there has nothing to hide.
    async fn is_private(&self, rest: &Rest, name: &str) -> Result<bool, ToolError> {
        if let Some(known) = self.seen().private.get(name) {
            return Ok(*known);
        }
        let (owner, repo) = name.split_once('/').unwrap_or((name, ""));
        let ask = Ask::get("/repos/{owner}/{repo}").segment("owner", owner).segment("repo", repo);
        let private = match rest.send(ask).await {
            Ok(reply) => reply.json()?["private"].as_bool().unwrap_or(true),
            Err(error) if error.is_not_found() => return Ok(false),
            Err(error) => return Err(error),
        };
        self.seen().learn(name, private);
        Ok(private)
    }

    /// Refuses what the operator's repositories cannot say by themselves.
    fn check_only(&self, rest: &Rest, call: &Call, args: &Args) -> Result<(), ToolError> {
        let allowed = || format!("Allowed: {}.", self.only.join(", "));
        if !self.only.is_empty() && call.name() == "fork_repository" {
            return Err(
                ToolError::denied("This server is restricted, and a fork is another repository").hint(allowed())
            );
        }
        let searches_issues = matches!(call.name(), "search_issues" | "search_pull_requests");
        // Not every version of GitHub Enterprise Server knows `OR`.
        let (most, what) = match crate::is_enterprise_server(rest.config()) {
            true => (1, "This GitHub searches for issues in one repository at once".to_owned()),
            false => (ISSUES_MAX, format!("GitHub searches for issues in at most {ISSUES_MAX} repositories at once")),
        };
        if searches_issues && crate::scope::width(args, &self.only) > most {
            return Err(ToolError::invalid(what).hint(format!("Name one with repo:OWNER/NAME. {}", allowed())));
        }
        Ok(())
    }

    /// Refuses to write to a public repository what may come from a private one.
    async fn check_write(&self, rest: &Rest, call: &Call, args: &Args) -> Result<(), ToolError> {
        let target = target(args);
        let mut others: Vec<String> = {
            let seen = self.seen();
            let read = seen.read.get(&seen.session(args)).into_iter().flatten();
            read.filter(|name| Some(*name) != target.as_ref()).cloned().collect()
        };
        if others.is_empty() {
            return Ok(());
        }
        others.sort_unstable();
        let (public, place) = match &target {
            Some(name) => (!self.is_private(rest, name).await?, name.as_str()),
            // The one other thing that is written is a new repository.
            None => (!args.is_on("private"), "the new repository"),
        };
        if !public {
            return Ok(());
        }
        let refused = |read: &str| {
            let operator = format!("{} is not allowed then. Ask the user; the operator can set", call.name());
            let told = ToolError::denied(format!("This session has read {read}, and {place} is public"));
            Err(told.hint(format!("{operator} --allow-cross-visibility.")))
        };
        let is_private = |name: &str| format!("{name}, which is private");
        // What is known first: it costs no request.
        let known: Vec<Option<bool>> = {
            let seen = self.seen();
            others.iter().map(|name| seen.private.get(name).copied()).collect()
        };
        if let Some(at) = known.iter().position(|known| *known == Some(true)) {
            return refused(&is_private(&others[at]));
        }
        let unknown = known.iter().filter(|known| known.is_none()).count();
        if unknown > LOOKUPS_MAX || others.len() + 1 >= READ_MAX {
            return refused("so many repositories that one may be private");
        }
        for name in &others {
            if self.is_private(rest, name).await? {
                return refused(&is_private(name));
            }
        }
        Ok(())
    }

    /// In lockdown, refuses what a stranger proposes: the files and commits of a pull request have no author of
    /// their own.
    async fn check_author(&self, rest: &Rest, call: &Call, args: &Args) -> Result<(), ToolError> {
        let denied = || ToolError::denied("The operator restricted this server, and that is outside");
        if args.text("branch").trim_start_matches("refs/").starts_with("pull/") {
            return Err(denied());
        }
        if matches!(call.name(), "get_pull_request_files" | "get_commits") {
            let pull = rest.send(Ask::get(crate::read::PULL).fill(args)).await?.json()?;
            if !trusted(&pull) {
                return Err(denied());
            }
        }
        Ok(())
    }
}

impl Guard for Sessions {
    fn before<'a>(&'a self, rest: &'a Rest, call: &'a Call, args: &'a Args) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            self.check_only(rest, call, args)?;
            if self.lockdown && !call.writes() {
                self.check_author(rest, call, args).await?;
            }
            if call.writes() && !self.allowed {
                self.check_write(rest, call, args).await?;
            }
            Ok(())
        })
    }

    fn after(&self, call: &Call, args: &Args, answer: &Value) {
        if self.allowed {
            return;
        }
        let mut seen = self.seen();
        let session = seen.session(args);
        // An issue that has moved is answered from where it is now.
        let found = match answer.as_array().or_else(|| answer["items"].as_array()) {
            Some(items) => items.as_slice(),
            None if call.writes() => &[],
            None => std::slice::from_ref(answer),
        };
        let mut names: Vec<String> = target(args).into_iter().collect();
        for item in found {
            let Some(name) = repository(item).map(str::to_ascii_lowercase) else { continue };
            if !self.only.is_empty() && !self.only.iter().any(|one| one.eq_ignore_ascii_case(&name)) {
                continue;
            }
            if let Some(private) = item["private"].as_bool().or_else(|| item["repository"]["private"].as_bool()) {
                seen.learn(&name, private);
            }
            names.push(name);
        }
        // What is public can be told to anybody. Of too many others none is forgotten: `check_write` refuses then.
        names.retain(|name| seen.private.get(name) != Some(&false));
        let read = seen.read.entry(session).or_default();
        for name in names {
            if read.len() < READ_MAX {
                read.insert(name);
            }
        }
    }
}

impl Seen {
    /// Whose call it is, as long as there are not too many of them.
    fn session(&self, args: &Args) -> Who {
        let own = args.cx().map_or(Who::Anybody, |cx| Who::of(cx.session_id(), cx.principal(), cx.peer_addr()));
        if self.read.len() < SESSIONS_MAX || self.read.contains_key(&own) { own } else { Who::Anybody }
    }

    fn learn(&mut self, name: &str, private: bool) {
        if self.private.len() < KNOWN_MAX || self.private.contains_key(name) {
            self.private.insert(name.to_owned(), private);
        }
    }
}

/// Whose calls belong together: those of a session, or else of a principal, or else of an address.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Who {
    Session(u64),
    Principal(Arc<str>),
    Address(IpAddr),
    Anybody,
}

impl Who {
    fn of(session: Option<u64>, principal: Option<&Principal>, peer: Option<SocketAddr>) -> Who {
        match (session, principal, peer) {
            (Some(session), ..) => Who::Session(session),
            (None, Some(principal), _) => Who::Principal(principal.identity().clone()),
            (None, None, Some(peer)) => Who::Address(peer.ip()),
            (None, None, None) => Who::Anybody,
        }
    }
}

/// The repository that a call names.
fn target(args: &Args) -> Option<String> {
    let (owner, repo) = (args.text("owner"), args.text("repo"));
    (!owner.is_empty() && !repo.is_empty()).then(|| format!("{owner}/{repo}").to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_without_sessions_are_told_apart_by_who_they_are_or_where_they_are() {
        let peer = |text: &str| Some(text.parse::<SocketAddr>().unwrap());
        let (ann, bob) = (Principal::new("ann"), Principal::new("bob"));
        let near = Who::of(None, None, peer("10.0.0.1:1000"));
        assert_eq!(near, Who::of(None, None, peer("10.0.0.1:2000")), "a client has many connections");
        assert_ne!(near, Who::of(None, None, peer("10.0.0.2:1000")));
        let at = |who| Who::of(None, Some(who), peer("10.0.0.1:1000"));
        assert_eq!(at(&ann), Who::of(None, Some(&Principal::new("ann")), peer("10.0.0.2:1000")));
        assert_ne!(at(&ann), at(&bob));
        assert_ne!(Who::of(Some(1), Some(&ann), None), Who::of(Some(2), Some(&ann), None));
        assert_eq!(Who::of(None, None, None), Who::Anybody);
    }
}
