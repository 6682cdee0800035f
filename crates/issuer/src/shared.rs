//! What all requests to one issuer share.

use crate::answer::Cookies;
use crate::client::{Client, hash, is_document};
use crate::documents::Documents;
use crate::keys::Keys;
use crate::limits::REGISTERED_LIFE;
use crate::pages::Site;
use crate::person::{Allow, Person, SetupError};
use crate::records::{Away, Records, Space};
use crate::redirect::is_loopback;
use crate::revoked::{self, Revoked};
use crate::trusted::{IdentityProvider, Workload};
use crate::upstream::{Openness, Upstream};
use crate::users::{Source, Users};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use linchpin_guard::Guard;
use linchpin_guard::TrustedProxies;
use linchpin_oauth::{OFFLINE_ACCESS, Scopes};
use linchpin_store::{Clock, Store};
use std::collections::HashMap;
use std::sync::{Arc, Once, Weak};
use std::time::Duration;
use url::Url;

/// The configuration as it was checked.
pub(crate) struct Config {
    pub(crate) issuer: String,
    /// The path of the issuer, without a slash at its end: empty at an origin's root.
    pub(crate) path: String,
    pub(crate) origin: String,
    pub(crate) resources: Vec<String>,
    /// Further URLs of the first of them.
    pub(crate) also_at: Vec<String>,
    /// Who else is let in.
    pub(crate) accepts: Vec<Accept>,
    /// Scopes, with a sentence each for users.
    pub(crate) scopes: Vec<(String, String)>,
    /// What every request needs.
    pub(crate) required: Vec<String>,
    pub(crate) clients: HashMap<String, Client>,
    pub(crate) login: Login,
    pub(crate) allow: Vec<Allow>,
    pub(crate) grants: Vec<(Allow, Vec<String>)>,
    pub(crate) schemes: Vec<String>,
    pub(crate) access_life: Duration,
    pub(crate) registration: bool,
    pub(crate) device: bool,
    pub(crate) enterprises: Vec<IdentityProvider>,
    pub(crate) workloads: Vec<Workload>,
    pub(crate) proxies: TrustedProxies,
    /// Whether all nodes remember the proofs that one has seen.
    pub(crate) shared_replay: bool,
    pub(crate) site: Site,
    pub(crate) cookies: Cookies,
}

/// Changes a guard.
pub(crate) type Accept = Arc<dyn Fn(Guard) -> Guard + Send + Sync>;

/// Where users log in.
#[derive(Clone)]
pub(crate) enum Login {
    Users(Arc<Users>),
    Upstream(Arc<Upstream>),
    /// Nowhere: only clients that act for themselves come in.
    Nobody,
}

impl Login {
    /// What tells the places apart where users log in: what one of them knows is not asked of another.
    pub(crate) fn source(&self) -> String {
        match self {
            Login::Users(_) => "users".to_owned(),
            Login::Upstream(upstream) => upstream.url().to_owned(),
            Login::Nobody => String::new(),
        }
    }
}

/// An issuer at work.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) records: Records,
    pub(crate) keys: Keys,
    pub(crate) revoked: Arc<Revoked>,
    pub(crate) documents: Documents,
    clock: Arc<dyn Clock>,
    following: Once,
}

/// Why there is no such client.
pub(crate) enum NoClient {
    /// The text is for the user.
    Unknown(&'static str),
    Away,
}

impl Shared {
    pub(crate) fn new(config: Config, store: &Store, clock: Arc<dyn Clock>) -> Shared {
        let loopback = config.origin.starts_with("http://");
        Shared {
            documents: Documents::new(loopback, config.schemes.clone()),
            records: Records::new(store),
            keys: Keys::default(),
            revoked: Arc::default(),
            config,
            clock,
            following: Once::new(),
        }
    }

    /// The time in seconds since 1970. It never goes back.
    pub(crate) fn now(&self) -> u64 {
        self.clock.now().as_secs()
    }

    /// Follows the revocations of other nodes, once there is a runtime.
    pub(crate) fn follow(self: &Arc<Self>) {
        if self.following.is_completed() {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        self.following.call_once(|| {
            runtime.spawn(follow(Arc::downgrade(self), self.records.clone()));
        });
    }

    pub(crate) async fn announce_revocation(&self) {
        if let Err(error) = self.records.store().topic().publish(revoked::TOPIC).await {
            tracing::warn!(%error, "other nodes learn of a revocation late");
        }
    }

    /// The address of an endpoint.
    pub(crate) fn url(&self, endpoint: &str) -> String {
        format!("{}/{endpoint}", self.config.issuer.trim_end_matches('/'))
    }

    /// Finds a client.
    pub(crate) async fn client(&self, id: &str) -> Result<Client, NoClient> {
        if let Some(client) = self.config.clients.get(id) {
            return Ok(client.clone());
        }
        if is_document(id) {
            let found = self.documents.client(id, &self.records, self.now()).await;
            return found.map(|client| (*client).clone()).map_err(NoClient::Unknown);
        }
        let name = hash(id);
        match self.records.get::<Client>(Space::Client, &name).await {
            Ok(Some((client, _))) => {
                if client.kind == crate::client::Kind::Registered {
                    // A client that is used is kept. When the store is away now, it is kept as long as before.
                    let _ = self.records.touch(Space::Client, &name, REGISTERED_LIFE).await;
                }
                Ok(client)
            }
            Ok(None) => Err(NoClient::Unknown("no client of this name is registered here")),
            Err(Away) => Err(NoClient::Away),
        }
    }

    /// The resource that a request names, or the only one.
    pub(crate) fn resource<'a>(&self, mut named: impl Iterator<Item = &'a str>) -> Option<&str> {
        let all = &self.config.resources;
        let Some(first) = named.next() else {
            return if all.len() == 1 { all.first().map(String::as_str) } else { None };
        };
        if named.any(|other| other != first) {
            return None;
        }
        all.iter().chain(&self.config.also_at).find(|own| is_same_resource(own, first)).map(String::as_str)
    }

    /// The scopes to ask the user about. `None`: none of those that were asked for exists.
    pub(crate) fn scopes(&self, asked: Option<&str>) -> Option<Scopes> {
        let all = || self.config.scopes.iter().map(|(scope, _)| scope.as_str());
        let asked = asked.map(Scopes::parse).unwrap_or_default();
        if asked.is_empty() {
            return Some(all().collect());
        }
        let known = |scope: &&str| *scope == OFFLINE_ACCESS || all().any(|one| one == *scope);
        let granted: Scopes = asked.iter().filter(known).collect();
        (!granted.is_empty() || self.config.scopes.is_empty()).then_some(granted)
    }

    /// What a scope lets a client do, for users.
    pub(crate) fn sentences(&self, scopes: &Scopes) -> Vec<String> {
        let sentence = |scope: &str| match self.config.scopes.iter().find(|(known, _)| known == scope) {
            Some((_, sentence)) if !sentence.is_empty() => sentence.clone(),
            _ if scope == OFFLINE_ACCESS => "stay signed in until you or this server end it".to_owned(),
            _ => scope.to_owned(),
        };
        scopes.iter().map(sentence).collect()
    }

    /// Whether a user may log in.
    pub(crate) fn admits(&self, person: &Person) -> bool {
        let of_any_tenant =
            matches!(&self.config.login, Login::Upstream(upstream) if upstream.openness() == Openness::AnyTenant);
        Allow::all_admit(&self.config.allow, of_any_tenant, person)
    }

    /// The scopes out of these that a user may give.
    pub(crate) fn limit(&self, scopes: &Scopes, person: &Person) -> Scopes {
        let by_rule = |scope: &str| {
            let mut rules = self.config.grants.iter().filter(|(_, scopes)| scopes.iter().any(|one| one == scope));
            let mut any = false;
            let granted = rules.by_ref().any(|(rule, _)| {
                any = true;
                rule.admits(person)
            });
            granted || !any
        };
        let own = |scope: &str| {
            scope == OFFLINE_ACCESS || person.scopes.as_ref().is_none_or(|scopes| scopes.iter().any(|one| one == scope))
        };
        scopes.iter().filter(|scope| by_rule(scope) && own(scope)).collect()
    }

    /// Whether rules ask for what a provider has to be asked for specially.
    pub(crate) fn needs_orgs(&self) -> bool {
        let grants = self.config.grants.iter().map(|(rule, _)| rule);
        self.config.allow.iter().chain(grants).any(Allow::needs_orgs)
    }

    /// The anti-forgery value of a form: only this issuer makes it, for one transaction in one browser.
    pub(crate) fn form_token(&self, transaction: &str, browser: &str) -> String {
        let bound = format!("{transaction} {browser}");
        URL_SAFE_NO_PAD.encode(self.records.store().seal().seal("form", bound.as_bytes(), b"form"))
    }

    pub(crate) fn is_form_token(&self, token: &str, transaction: &str, browser: &str) -> bool {
        let bound = format!("{transaction} {browser}");
        let Ok(token) = URL_SAFE_NO_PAD.decode(token) else { return false };
        self.records.store().seal().open("form", bound.as_bytes(), &token).is_ok()
    }
}

impl Config {
    /// Checks the address of an issuer: its origin and path.
    pub(crate) fn place(issuer: &str) -> Result<(String, String), SetupError> {
        let url = Url::parse(issuer).map_err(|_| SetupError::new(format!("the issuer {issuer:?} is not a URL")))?;
        if url.scheme() != "https" && !(url.scheme() == "http" && is_loopback(&url)) {
            return Err(SetupError::new(format!(
                "the issuer {issuer} must be https, or http on 127.0.0.1, ::1 or localhost"
            )));
        }
        if url.query().is_some() || issuer.contains('#') || !url.username().is_empty() || url.password().is_some() {
            return Err(SetupError::new(format!("the issuer {issuer} must have no query, fragment or user")));
        }
        Ok((url.origin().ascii_serialization(), url.path().trim_end_matches('/').to_owned()))
    }

    /// Checks that rules say who may log in where anybody could, and reserve scopes that exist.
    pub(crate) fn check_rules(&self) -> Result<(), SetupError> {
        // A mistyped scope would leave the one that was meant open to everybody.
        let is_known = |scope: &&String| self.scopes.iter().any(|(known, _)| known == *scope);
        if let Some(unknown) = self.grants.iter().flat_map(|(_, scopes)| scopes).find(|scope| !is_known(scope)) {
            return Err(SetupError::new(format!(
                "the scope {unknown} is reserved for some users (--grant), but is not one of this issuer's: \
                 add it with scope(\"{unknown}\", …) (--scope), or correct it"
            )));
        }
        let Login::Upstream(upstream) = &self.login else { return Ok(()) };
        let place = upstream.place();
        match upstream.openness() {
            Openness::Closed => Ok(()),
            Openness::Open if !self.allow.is_empty() => Ok(()),
            Openness::AnyTenant if self.allow.iter().any(Allow::is_tenant) => Ok(()),
            Openness::Open => Err(SetupError::new(format!(
                "anybody can have an account at {place}: say who may log in with allow(\"@example.com\"), \
                 \"org:NAME\", \"user:NAME\" or \"group:NAME\" (--allow), or allow_anyone()"
            ))),
            Openness::AnyTenant => Err(SetupError::new(format!(
                "accounts of every tenant are at {place}: restrict them with allow(\"tenant:ID\") (--allow)"
            ))),
        }
    }

    /// Users of a file, if that is where users log in.
    pub(crate) fn users_file(&self) -> Option<&crate::users::File> {
        match &self.login {
            Login::Users(users) => match &users.0 {
                Source::File(file) => Some(file),
                Source::Once(_) => None,
            },
            _ => None,
        }
    }
}

/// Follows the list of revocations until the issuer is gone, and reads the keys again every minute: one that ended must not be known for longer.
async fn follow(shared: Weak<Shared>, records: Records) {
    const AGAIN: Duration = Duration::from_secs(1);
    let mut watch = loop {
        match records.store().topic().watch(&[revoked::TOPIC]).await {
            Ok(watch) => break watch,
            Err(error) => tracing::warn!(%error, "revocations of other nodes are not followed yet"),
        }
        tokio::time::sleep(2 * AGAIN).await;
        if shared.strong_count() == 0 {
            return;
        }
    };
    loop {
        let Some(issuer) = shared.upgrade() else { return };
        let is_read = issuer.revoked.reload(&records).await.is_ok();
        if issuer.keys.known().is_some() {
            // When the store is away, those that are known go on.
            let _ = issuer.keys.ring(&records, issuer.now()).await;
        }
        drop::<Arc<Shared>>(issuer);
        if !is_read {
            tokio::time::sleep(AGAIN).await;
            continue;
        }
        // The end of the issuer is noticed within a minute; expired marks leave the list then, too.
        let _ = tokio::time::timeout(Duration::from_secs(60), watch.next()).await;
    }
}

/// Whether two texts name one resource: the same, but for a slash after an origin.
fn is_same_resource(own: &str, named: &str) -> bool {
    let at_root = Url::parse(own).is_ok_and(|url| url.path() == "/" && url.query().is_none());
    own == named || (at_root && own.trim_end_matches('/') == named.trim_end_matches('/'))
}
