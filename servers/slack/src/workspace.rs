//! What is known of the workspace: the ids of names, and which channels are private.

use crate::Config;
use linchpin::transport::web::HostRule;
use linchpin_kit::{ErrorKind, ToolError};
use linchpin_rest::{Ask, Rest};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long something is known: channels are renamed, and become private.
const KNOWN_FOR: Duration = Duration::from_secs(600);

/// Pages of a list that are read to find a name, and items of a page.
const PAGES_MAX: usize = 50;
const PAGE: &str = "999";

/// What the operator allows, and what was learnt.
pub(crate) struct Workspace {
    pub(crate) team: Option<String>,
    pub(crate) mentions: bool,
    pub(crate) link_hosts: Vec<HostRule>,
    /// The API with the token of a user.
    pub(crate) user: Option<Rest>,
    private: bool,
    direct: bool,
    channels: Mutex<BTreeMap<String, Known>>,
    people: Mutex<People>,
}

/// A channel.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    name: String,
    kind: Kind,
    since: Instant,
}

/// Who can read a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Everybody in the workspace.
    Public,
    /// Its members.
    Private,
    /// Those who write to each other.
    Direct,
}

/// The pages of the list of people that were read, and the cursor of the next one, unless all were.
#[derive(Debug, Clone, Default)]
struct People {
    since: Option<Instant>,
    pages: Vec<Arc<[Person]>>,
    next: String,
    seen: BTreeSet<String>,
}

/// Somebody of the workspace.
#[derive(Debug, Clone)]
struct Person {
    id: String,
    /// No guest, no bot, and still there.
    is_member: bool,
    handle: String,
    shown: Vec<String>,
}

impl Workspace {
    pub(crate) fn new(config: Config, user: Option<Rest>) -> Workspace {
        Workspace {
            team: config.team,
            mentions: config.allow_mentions,
            link_hosts: config.link_hosts,
            user,
            private: config.private_channels,
            direct: config.direct_messages,
            channels: Mutex::default(),
            people: Mutex::default(),
        }
    }

    /// The one of this server.
    pub(crate) fn of(rest: &Rest) -> Result<&Workspace, ToolError> {
        rest.state().ok_or_else(|| ToolError::new("The server was not opened as this crate opens it"))
    }

    /// Whether the operator allows channels of this kind.
    pub(crate) fn allows(&self, kind: Kind) -> bool {
        match kind {
            Kind::Public => true,
            Kind::Private => self.private,
            Kind::Direct => self.direct,
        }
    }

    /// The kinds that are listed, in the words of the API.
    pub(crate) fn types(&self) -> Vec<&'static str> {
        let all = [
            ("public_channel", Kind::Public),
            ("private_channel", Kind::Private),
            ("mpim", Kind::Direct),
            ("im", Kind::Direct),
        ];
        all.into_iter().filter(|(_, kind)| self.allows(*kind)).map(|(word, _)| word).collect()
    }

    /// The id of a channel that the caller may use.
    pub(crate) async fn channel(&self, rest: &Rest, given: &str) -> Result<String, ToolError> {
        let given = given.trim();
        if !is_channel(given) {
            return self.channel_named(rest, given).await;
        }
        // The engine compares it with the channels that the operator names, private or not.
        if !rest.config().only.is_empty() || self.private && self.direct {
            return Ok(given.to_owned());
        }
        let kind = match (self.known(given), given.starts_with('D')) {
            (Some(known), _) => known.kind,
            (None, true) => Kind::Direct,
            (None, false) => self.ask(rest, given).await?.kind,
        };
        if self.allows(kind) {
            return Ok(given.to_owned());
        }
        Err(match kind {
            Kind::Direct => ToolError::denied("That is a direct message, which the operator does not allow")
                .hint("The operator can set --direct-messages."),
            _ => ToolError::denied("That channel is private, which the operator does not allow")
                .hint("The operator can set --private-channels, or name the channel with --channel."),
        })
    }

    async fn channel_named(&self, rest: &Rest, given: &str) -> Result<String, ToolError> {
        let name = given.strip_prefix('#').unwrap_or(given).to_lowercase();
        if name.is_empty() || is_person(given) || !name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c)) {
            return Err(ToolError::invalid(
                "Invalid argument channel_id: expected an id such as C0123456789, or #name",
            )
            .hint("For direct messages, use the id that slack_open_dm returns."));
        }
        if let Some(id) = self.find(rest, &name) {
            return Ok(id);
        }
        match rest.config().only.as_slice() {
            [] => self.read_channels(rest, &name).await?,
            only => {
                for id in only {
                    if self.known(id).is_none() {
                        self.ask(rest, id).await.map(drop).or_else(not_there)?;
                    }
                }
            }
        }
        self.find(rest, &name).ok_or_else(|| {
            ToolError::not_found("There is no channel of this name among those that this server may use")
                .hint("Names and ids are in slack_list_channels.")
        })
    }

    /// Reads the list of channels until this name.
    async fn read_channels(&self, rest: &Rest, name: &str) -> Result<(), ToolError> {
        let ask = Ask::get("/conversations.list")
            .always()
            .query("types", self.types().join(","))
            .query("exclude_archived", "true")
            .query("limit", PAGE);
        let (mut cursor, mut seen) = (String::new(), BTreeSet::new());
        for _ in 0..PAGES_MAX {
            let (page, next) = self.page(rest, &ask, &cursor).await?;
            let mut channels = page["channels"].as_array().into_iter().flatten();
            let found = channels.any(|channel| self.learn(channel).is_some_and(|known| known.name == name));
            // A cursor that comes again ends the list.
            if found || next.is_empty() || !seen.insert(next.clone()) {
                break;
            }
            cursor = next;
        }
        Ok(())
    }

    /// Reads a page of a list, and the cursor of the next one.
    async fn page(&self, rest: &Rest, ask: &Ask, cursor: &str) -> Result<(Value, String), ToolError> {
        let of_team = self.team.iter().map(|team| ("team_id", team.as_str()));
        let pairs = of_team.chain((!cursor.is_empty()).then_some(("cursor", cursor)));
        let ask = pairs.fold(ask.clone(), |ask, (name, value)| ask.query(name, value));
        let page = rest.send(ask).await?.json()?;
        let next =
            page.pointer("/response_metadata/next_cursor").and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok((page, next))
    }

    async fn ask(&self, rest: &Rest, id: &str) -> Result<Known, ToolError> {
        let answer = rest.send(Ask::get("/conversations.info").query("channel", id)).await?.json()?;
        let known = self.learn(&answer["channel"]);
        known.ok_or_else(|| {
            ToolError::new("Slack did not say what kind of channel that is").kind(ErrorKind::Upstream { status: None })
        })
    }

    /// Remembers a channel, unless Slack does not say what kind it is.
    pub(crate) fn learn(&self, channel: &Value) -> Option<Known> {
        let is = |name: &str| channel[name].as_bool();
        let kind = match (is("is_im"), is("is_mpim"), is("is_private")) {
            (Some(true), ..) | (_, Some(true), _) => Kind::Direct,
            (.., Some(true)) => Kind::Private,
            (.., Some(false)) => Kind::Public,
            (.., None) => return None,
        };
        let name = channel["name"].as_str().unwrap_or_default().to_owned();
        let known = Known { name, kind, since: Instant::now() };
        self.locked().insert(channel["id"].as_str()?.to_owned(), known.clone());
        Some(known)
    }

    fn known(&self, id: &str) -> Option<Known> {
        self.locked().get(id).filter(|known| known.since.elapsed() < KNOWN_FOR).cloned()
    }

    /// The channel of this name that may be used. Others are known too: they were asked for.
    fn find(&self, rest: &Rest, name: &str) -> Option<String> {
        // Where channels are named, nothing else was learnt.
        let named = !rest.config().only.is_empty();
        let may = |known: &Known| named || self.allows(known.kind);
        let channels = self.locked();
        let mut fresh = channels.iter().filter(|(_, known)| known.since.elapsed() < KNOWN_FOR);
        fresh.find(|(_, known)| known.name == name && may(known)).map(|(id, _)| id.clone())
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Known>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id of a user, by id or name.
    pub(crate) async fn person(&self, rest: &Rest, given: &str) -> Result<String, ToolError> {
        let given = given.trim();
        if is_person(given) {
            return Ok(given.to_owned());
        }
        let name = given.strip_prefix('@').unwrap_or(given).to_lowercase();
        if name.is_empty() {
            return Err(ToolError::invalid("Expected the id of a user such as U0123456789, or @name"));
        }
        let people = self.people(rest).await?;
        let all = || people.iter().flat_map(|page| page.iter());
        if let Some(person) = all().find(|person| person.handle == name) {
            return Ok(person.id.clone());
        }
        let same: Vec<&str> =
            all().filter(|person| person.shown.contains(&name)).map(|person| person.id.as_str()).collect();
        match same[..] {
            [one] => Ok(one.to_owned()),
            [] => Err(ToolError::not_found("No user has this name").hint("Names and ids are in slack_get_users.")),
            _ => Err(ToolError::invalid("Several people have this name").hint(format!(
                "Use one of their ids: {}.",
                same.iter().take(10).copied().collect::<Vec<_>>().join(", ")
            ))),
        }
    }

    /// The ids of those who are neither guests nor bots.
    pub(crate) async fn members(&self, rest: &Rest) -> Result<BTreeSet<String>, ToolError> {
        let people = self.people(rest).await?;
        Ok(people
            .iter()
            .flat_map(|page| page.iter())
            .filter(|person| person.is_member)
            .map(|person| person.id.clone())
            .collect())
    }

    /// The people of the workspace. What was read stays when a page fails, so that the next call goes on there.
    async fn people(&self, rest: &Rest) -> Result<Vec<Arc<[Person]>>, ToolError> {
        let mut people = self.known_people().clone();
        if people.since.is_none_or(|since| since.elapsed() >= KNOWN_FOR) {
            people = People { since: Some(Instant::now()), ..People::default() };
        }
        let ask = Ask::get("/users.list").always().query("limit", PAGE);
        while people.pages.is_empty() || !people.next.is_empty() {
            let read = self.page(rest, &ask, &people.next).await;
            if read.as_ref().is_err_and(|error| error.error_kind() == Some(ErrorKind::Invalid)) {
                // The cursor may be too old.
                *self.known_people() = People::default();
            }
            let (page, next) = read?;
            let members = page["members"].as_array().into_iter().flatten();
            people.pages.push(members.filter_map(person).collect());
            // A cursor that comes again ends the list.
            let goes_on = people.pages.len() < PAGES_MAX && people.seen.insert(next.clone());
            people.next = if goes_on { next } else { String::new() };
            self.known_people().clone_from(&people);
        }
        Ok(people.pages)
    }

    fn known_people(&self) -> std::sync::MutexGuard<'_, People> {
        self.people.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who is still there.
fn person(member: &Value) -> Option<Person> {
    let text = |path: &str| member.pointer(path).and_then(Value::as_str).unwrap_or_default().to_lowercase();
    let shown = ["/profile/display_name", "/profile/real_name", "/real_name"].map(text);
    let shown: BTreeSet<String> = shown.into_iter().filter(|name| !name.is_empty()).collect();
    let guest = ["is_restricted", "is_ultra_restricted", "is_stranger", "is_bot"];
    let is_member = guest.iter().all(|name| member[*name] != true);
    let id = member["id"].as_str().filter(|_| member["deleted"] != true)?.to_owned();
    Some(Person { id, is_member, handle: text("/name"), shown: shown.into_iter().collect() })
}

/// A channel that is not there has no name; other failures count.
fn not_there(error: ToolError) -> Result<(), ToolError> {
    match error.error_kind() {
        Some(ErrorKind::NotFound | ErrorKind::Denied) => Ok(()),
        _ => Err(error),
    }
}

/// Whether this is the id of a channel or a direct message.
pub(crate) fn is_channel(text: &str) -> bool {
    is_id_of(text, "CGD")
}

fn is_person(text: &str) -> bool {
    is_id_of(text, "UWB")
}

/// Ids have nine characters or more. A shorter word is one if it has a digit, and otherwise a name in capitals.
fn is_id_of(text: &str, kinds: &str) -> bool {
    let rest = text.strip_prefix(|first: char| kinds.contains(first)).unwrap_or_default();
    let is_long = rest.len() >= 8 || rest.bytes().any(|byte| byte.is_ascii_digit());
    is_long && rest.len() <= 30 && rest.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
}
