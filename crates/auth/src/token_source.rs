//! The tokens for one server: the current one, and coordination of renewals.
//!
//! Many requests may find out at the same moment that they need another token. One task at a time gets it, and everybody
//! who needs the same waits for what it finds, errors included. It is a task of its own because a request may be given
//! up at any time, and a refresh token that was redeemed and then forgotten would lock everybody out.

use crate::address;
use crate::config::Config;
use crate::error::{Error, Kind, quote};
use crate::fetch::{Asker, Fetch};
use crate::flow::{Flow, ResolvedServer, stored_key};
use crate::metadata;
use crate::store::{StoreKey, Stored, Tokens, Turn};
use crate::token::{DPOP, Nonces, header};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, StatusCode, Uri};
use linchpin_oauth::{AuthorizationServerMetadata, Challenge, OFFLINE_ACCESS, Scopes, Secret, dpop::DpopKey};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OnceCell, watch};
use url::Url;

/// How long a refresh waits for that of another program.
const TURN: Duration = Duration::from_secs(30);

/// The shared state of the token sources of one `OAuth`.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) fetch: Arc<dyn Fetch>,
    pub(crate) nonces: Nonces,
    /// The issuer of a pre-registered client without one: the first one it was used with.
    bound: Mutex<Option<String>>,
    /// One task at a time may redeem the refresh token of a key, whichever server it is for.
    refreshing: Mutex<HashMap<StoreKey, Arc<tokio::sync::Mutex<()>>>>,
}

impl Shared {
    pub(crate) fn new(config: Config, fetch: Arc<dyn Fetch>) -> Shared {
        Shared { config, fetch, nonces: Nonces::default(), bound: Mutex::default(), refreshing: Mutex::default() }
    }

    fn lock_of(&self, key: &StoreKey) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self.refreshing.lock().unwrap_or_else(PoisonError::into_inner);
        if locks.len() >= LOCKS_MAX {
            locks.retain(|_, lock| Arc::strong_count(lock) > 1);
        }
        locks.entry(key.clone()).or_default().clone()
    }

    /// Binds a pre-registered client without an issuer to the first one.
    fn bind(&self, issuer: &str, known: &[String]) -> Result<(), Error> {
        if self.config.pre_registered.iter().all(|client| client.issuer.is_some()) {
            return Ok(());
        }
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        let first = bound.get_or_insert_with(|| known.first().map_or(issuer, String::as_str).to_owned());
        if first == issuer {
            return Ok(());
        }
        Err(Error::setup(format!(
            "the client registered beforehand is used with {first}, but the server now names the authorization server \
             {issuer}: say with whom it is registered, pre_registered(Some(issuer), …)"
        )))
    }
}

/// The permission for one server.
pub(crate) struct TokenSource {
    server: Url,
    /// The same, to compare requests with.
    address: Option<Uri>,
    shared: Arc<Shared>,
    loaded: OnceCell<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    permit: Option<Arc<Permit>>,
    /// All scopes requested so far.
    asked: Scopes,
    resolved: Option<Arc<ResolvedServer>>,
    /// Step-ups since the last request that was let through.
    step_ups: u32,
    /// After a failed renewal: no retry before this time, as long as the token is valid.
    renew_from: u64,
    /// When people were sent to log in lately.
    logins: Vec<u64>,
    flight: Option<Refresh>,
}

#[derive(Clone)]
struct Refresh {
    kind: std::mem::Discriminant<Need>,
    outcome: watch::Receiver<Option<Result<(), Error>>>,
}

/// A token in use.
struct Permit {
    key: StoreKey,
    stored: Stored,
    tokens: Tokens,
    dpop: Option<DpopKey>,
    /// When to see to the next one, some time before it ends.
    renew_at: Option<u64>,
    came: Origin,
    /// A request that carried it was let through.
    worked: AtomicBool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Stored,
    Refreshed,
    Granted,
}

impl Permit {
    fn new(key: StoreKey, stored: Stored, came: Origin, now: u64) -> Option<Permit> {
        let tokens = stored.tokens.clone()?;
        let dpop = stored_key(&stored).ok()?;
        let margin = |end: u64| EARLY_S.min(end.saturating_sub(now) / 5);
        let renew_at = tokens.expires_at.map(|end| end.saturating_sub(margin(end)));
        Some(Permit { key, stored, tokens, dpop, renew_at, came, worked: AtomicBool::new(false) })
    }

    fn is_over(&self, now: u64) -> bool {
        self.tokens.expires_at.is_some_and(|end| end <= now)
    }

    fn is(&self, token: Option<&Secret>) -> bool {
        token == Some(&self.tokens.access_token)
    }
}

/// A need for tokens.
#[derive(Clone)]
enum Need {
    /// Replace a token that expires soon.
    Renewal(Secret),
    /// A token, or another one than the one that was refused.
    Token { sent: Option<Secret>, challenge: Challenge },
    /// A token for more.
    Scope { sent: Option<Secret>, challenge: Challenge, scopes: Scopes },
    /// A new login in any case. `refused` if the server rejected a request without a token.
    Login { challenge: Challenge, refused: bool },
}

impl TokenSource {
    pub(crate) fn new(server: Url, shared: Arc<Shared>) -> TokenSource {
        let address = server.as_str().parse().ok();
        TokenSource { server, address, shared, loaded: OnceCell::new(), state: Mutex::default() }
    }

    /// Whether a request goes to the server: to the same origin.
    fn is_for(&self, uri: &Uri) -> bool {
        let same = |own: &Uri| own.scheme() == uri.scheme() && own.authority() == uri.authority();
        // Written alike in nearly all cases. The server's has no user in it.
        self.address.as_ref().is_some_and(same)
            || Url::parse(&uri.to_string()).is_ok_and(|url| url.origin() == self.server.origin())
    }

    /// Adds the token to a request, if there is one; renews it first if it expires soon.
    pub(crate) async fn authorize(self: &Arc<Self>, head: &mut Parts) -> Result<(), Error> {
        // The token is never sent to another server.
        if !self.is_for(&head.uri) {
            return Ok(());
        }
        self.load().await?;
        let now = self.shared.config.now();
        if let Some(permit) = self.permit().filter(|permit| permit.renew_at.is_some_and(|at| at <= now))
            && self.can_renew(&permit)
            && (permit.is_over(now) || self.state().renew_from <= now)
        {
            let renewed = self.need(Need::Renewal(permit.tokens.access_token.clone())).await;
            match renewed {
                Err(error) if error.is_unreachable() && !permit.is_over(now) => {
                    tracing::warn!(%error, server = %self.server, "the access token could not be renewed yet");
                    self.state().renew_from = now + AGAIN_S;
                }
                renewed => renewed?,
            }
        }
        let Some(permit) = self.permit().filter(|permit| !permit.is_over(now)) else { return Ok(()) };
        let token = permit.tokens.access_token.expose();
        let scheme = if permit.dpop.is_some() { "DPoP" } else { "Bearer" };
        head.headers.insert(AUTHORIZATION, header(&format!("{scheme} {token}"))?);
        if let Some(key) = &permit.dpop {
            let address = head.uri.to_string();
            let nonce = self.shared.nonces.of(&address);
            let proof = key.proof(head.method.as_str(), &address, nonce.as_deref(), Some(token), now);
            head.headers.insert(DPOP, header(&proof)?);
        }
        Ok(())
    }

    /// Handles a response. `true` if the request should be retried.
    pub(crate) async fn answered(
        self: &Arc<Self>,
        request: &Parts,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Result<bool, Error> {
        if !self.is_for(&request.uri) {
            return Ok(false);
        }
        self.shared.nonces.keep(&request.uri, headers);
        let sent = sent_token(request);
        match status {
            StatusCode::UNAUTHORIZED => self.turned_away(request, sent, Challenge::of(headers)).await,
            StatusCode::FORBIDDEN => {
                let challenge = Challenge::of(headers);
                match challenge.scope.clone().filter(|_| challenge.is("insufficient_scope")) {
                    Some(scopes) => self.need(Need::Scope { sent, challenge, scopes }).await.map(|()| true),
                    None => Ok(false),
                }
            }
            _ => {
                let mut state = self.state();
                if status.is_success()
                    && let Some(permit) = state.permit.as_ref().filter(|permit| permit.is(sent.as_ref()))
                {
                    permit.worked.store(true, Ordering::Relaxed);
                    state.step_ups = 0;
                }
                Ok(false)
            }
        }
    }

    async fn turned_away(
        self: &Arc<Self>,
        request: &Parts,
        sent: Option<Secret>,
        challenge: Challenge,
    ) -> Result<bool, Error> {
        if challenge.is("use_dpop_nonce") && request.headers.contains_key(DPOP) {
            let nonce = self.shared.nonces.of(&request.uri.to_string());
            if nonce.is_some() && nonce != sent_nonce(request) {
                return Ok(true);
            }
            let why = format!("{} requires a nonce in the DPoP proof but did not send a new one", self.server);
            return Err(Error::new(Kind::NotAccepted, why));
        }
        if let Some(scheme) = &challenge.other {
            return Err(Error::setup(format!(
                "{} requires {} authentication, which is not OAuth: pass the credentials as a header",
                self.server,
                quote(scheme, &[])
            )));
        }
        self.load().await?;
        self.need(Need::Token { sent, challenge }).await.map(|()| true)
    }

    /// Logs in again in any case.
    pub(crate) async fn log_in_now(self: &Arc<Self>) -> Result<(), Error> {
        self.load().await?;
        let (challenge, refused) = self.asker().challenge().await?;
        self.need(Need::Login { challenge, refused }).await
    }

    /// Forgets the token in use.
    pub(crate) fn drop_permit(&self) {
        let mut state = self.state();
        state.permit = None;
        state.asked = Scopes::new();
    }

    /// Satisfies a need: joins a flow in progress, or starts one.
    async fn need(self: &Arc<Self>, need: Need) -> Result<(), Error> {
        for _ in 0..JOINS_MAX {
            let (mut flight, joined) = {
                let mut state = self.state();
                if self.is_met(&state, &need) {
                    return Ok(());
                }
                match &state.flight {
                    Some(flight) => (flight.clone(), true),
                    None => (self.start(&mut state, need.clone()), false),
                }
            };
            let outcome = match flight.outcome.wait_for(Option::is_some).await {
                Ok(outcome) => outcome.clone().unwrap_or(Ok(())),
                Err(_) => Err(Error::login("the authorization ended without a result; try again")),
            };
            let same = flight.kind == std::mem::discriminant(&need);
            if !joined || (same && outcome.is_err()) {
                return outcome;
            }
        }
        // Others were faster each time; the request will show whether their tokens suffice.
        Ok(())
    }

    fn is_met(&self, state: &State, need: &Need) -> bool {
        let now = self.shared.config.now();
        let another = |sent: &Option<Secret>| {
            state.permit.as_ref().is_some_and(|permit| !permit.is_over(now) && !permit.is(sent.as_ref()))
        };
        match need {
            Need::Renewal(token) => !state.permit.as_ref().is_some_and(|permit| permit.is(Some(token))),
            Need::Token { sent, .. } => another(sent),
            Need::Scope { sent, scopes, .. } => another(sent) && state.asked.covers(scopes),
            Need::Login { .. } => false,
        }
    }

    fn start(self: &Arc<Self>, state: &mut State, need: Need) -> Refresh {
        let (tell, outcome) = watch::channel(None);
        let flight = Refresh { kind: std::mem::discriminant(&need), outcome };
        state.flight = Some(flight.clone());
        let this = self.clone();
        tokio::spawn(async move {
            // Cleared before waiters are woken, and also after a panic.
            let landing = RefreshGuard(this.clone());
            let outcome = this.meet(need).await;
            drop(landing);
            let _ = tell.send(Some(outcome));
        });
        flight
    }

    async fn meet(&self, need: Need) -> Result<(), Error> {
        match need {
            Need::Renewal(token) => self.renew(&token).await,
            Need::Token { sent, challenge } => self.replace(sent.as_ref(), &challenge).await,
            Need::Scope { challenge, scopes, .. } => self.step_up(&challenge, &scopes).await,
            Need::Login { challenge, refused } => {
                let known = self.known_issuers().await?;
                let resolved = self.flow().discover(&challenge, &known).await?;
                if !refused && resolved.of_old {
                    let why =
                        format!("{} does not require a login and has no protected-resource metadata", self.server);
                    return Err(Error::new(Kind::Unprotected, why));
                }
                self.log_in(resolved, &challenge, &known).await
            }
        }
    }

    /// Renews the token before it expires. If the authorization server refuses, the token is dropped: the next response
    /// of the MCP server says what to do.
    async fn renew(&self, token: &Secret) -> Result<(), Error> {
        let Some(permit) = self.permit().filter(|permit| permit.is(Some(token))) else { return Ok(()) };
        let resolved = self.state().resolved.clone();
        if self.shared.config.non_interactive.is_some() {
            return match resolved {
                Some(resolved) => self.log_in(ResolvedServer::clone(&resolved), &Challenge::default(), &[]).await,
                None => Ok(()),
            };
        }
        let server = match resolved.filter(|resolved| resolved.key() == permit.key) {
            Some(resolved) => resolved.server.clone(),
            None => self.server_of(&permit.key).await?,
        };
        match self.refresh(&permit, &server).await {
            Err(error) if error.is_refused() => {
                tracing::info!(%error, server = %self.server, "the refresh token is not accepted any more");
                self.forget_tokens(&permit.key).await;
                self.state().permit = None;
                Ok(())
            }
            other => other,
        }
    }

    /// Replaces a rejected token, or gets the first one.
    async fn replace(&self, sent: Option<&Secret>, challenge: &Challenge) -> Result<(), Error> {
        let permit = self.permit();
        let refused = permit.as_ref().filter(|permit| permit.is(sent));
        if let Some(permit) = refused
            && permit.came == Origin::Granted
            && !permit.worked.load(Ordering::Relaxed)
        {
            return Err(self.not_accepted(challenge, permit));
        }
        let known = self.known_issuers().await?;
        let resolved = self.flow().discover(challenge, &known).await?;
        // A refresh token is valid only for its authorization server, and once.
        let can_refresh = |permit: &&Arc<Permit>| {
            let again = permit.came == Origin::Refreshed && !permit.worked.load(Ordering::Relaxed);
            permit.key == resolved.key() && permit.tokens.refresh_token.is_some() && !again
        };
        if let Some(permit) = permit.as_ref().filter(can_refresh) {
            match self.refresh(permit, &resolved.server).await {
                Err(error) if error.is_refused() => {
                    tracing::info!(%error, server = %self.server, "the refresh token is not accepted any more");
                    self.forget_tokens(&permit.key).await;
                }
                other => return other,
            }
        }
        self.log_in(resolved, challenge, &known).await
    }

    /// Requests additional scopes (step-up).
    async fn step_up(&self, challenge: &Challenge, scopes: &Scopes) -> Result<(), Error> {
        {
            let mut state = self.state();
            if state.asked.covers(scopes) {
                let why = "which was requested already: the authorization server did not grant it, or the server does not accept it";
                return Err(Error::new(
                    Kind::NotAccepted,
                    format!("{} requires the scope {scopes:?}, {why}", self.server, scopes = scopes.to_string()),
                ));
            }
            if state.step_ups >= STEP_UPS_MAX {
                let why = format!("{} keeps requiring further scopes ({scopes}); giving up", self.server);
                return Err(Error::new(Kind::NotAccepted, why));
            }
            state.step_ups += 1;
        }
        let known = self.known_issuers().await?;
        let resolved = self.flow().discover(challenge, &known).await?;
        self.log_in(resolved, challenge, &known).await
    }

    /// The whole flow, including the store.
    async fn log_in(&self, resolved: ResolvedServer, challenge: &Challenge, known: &[String]) -> Result<(), Error> {
        let config = &self.shared.config;
        let key = resolved.key();
        self.shared.bind(&key.issuer, known)?;
        let _turn = match config.login.is_some() && config.non_interactive.is_none() {
            true => self.turn(&key, config.login_deadline).await,
            false => None,
        };
        let stored = if config.non_interactive.is_some() { None } else { self.stored(&key).await? };
        if let Some(permit) = stored.as_ref().and_then(|stored| self.of_others(&key, challenge, stored)) {
            let mut state = self.state();
            state.permit = Some(Arc::new(permit));
            state.resolved = Some(Arc::new(resolved));
            return Ok(());
        }
        let before = self.admit(&key)?;
        // A server that required DPoP-bound tokens may not repeat that each time.
        let bound = self.permit().is_some_and(|permit| permit.key == key && permit.dpop.is_some());
        let mut challenge = challenge.clone();
        challenge.dpop |= bound;
        let granted = self.flow().authorize(&resolved, &challenge, &before, stored.as_ref()).await?;
        if config.non_interactive.is_none() {
            self.save(&key, &granted.stored).await;
            self.forget_others(&key).await;
        }
        let permit = Permit::new(key, granted.stored, Origin::Granted, config.now());
        let mut state = self.state();
        state.asked = granted.asked;
        state.permit = permit.map(Arc::new);
        state.resolved = Some(Arc::new(resolved));
        Ok(())
    }

    /// Waits for the turn to get tokens, so that a user is asked once by all programs that start together. `None` if nobody
    /// can say whose turn it is: the user is asked.
    async fn turn(&self, key: &StoreKey, wait: Duration) -> Option<Turn> {
        match tokio::time::timeout(wait, self.shared.config.store.turn(key)).await {
            Ok(Ok(turn)) => Some(turn),
            Ok(Err(error)) => {
                tracing::debug!(%error, "cannot wait for logins of other programs");
                None
            }
            Err(_) => None,
        }
    }

    /// What another program got while this one waited for its turn: tokens other than those that were refused.
    fn of_others(&self, key: &StoreKey, challenge: &Challenge, stored: &Stored) -> Option<Permit> {
        if challenge.is("insufficient_scope") {
            return None;
        }
        let now = self.shared.config.now();
        let tokens = stored.tokens.as_ref().filter(|tokens| tokens.expires_at.is_none_or(|end| end > now))?;
        let refused = self.permit().is_some_and(|permit| permit.is(Some(&tokens.access_token)));
        if refused {
            return None;
        }
        Permit::new(key.clone(), stored.clone(), Origin::Stored, now)
    }

    /// All scopes requested so far from the same authorization server; an error if the user was asked to log in too
    /// often.
    fn admit(&self, key: &StoreKey) -> Result<Scopes, Error> {
        let mut state = self.state();
        if self.shared.config.non_interactive.is_none() {
            let now = self.shared.config.now();
            state.logins.retain(|at| at + LOGINS_S > now);
            if state.logins.len() >= LOGINS_MAX {
                let why = format!("{} keeps requiring a login; wait some minutes before the next attempt", self.server);
                return Err(Error::login(why));
            }
            state.logins.push(now);
        }
        let same = state.permit.as_ref().is_none_or(|permit| permit.key == *key);
        let asked = if same { state.asked.iter() } else { return Ok(Scopes::new()) };
        Ok(asked.filter(|scope| *scope != OFFLINE_ACCESS).collect())
    }

    /// Redeems the refresh token, unless it was already redeemed: by another process, or for another server with the
    /// same resource.
    async fn refresh(&self, permit: &Permit, server: &AuthorizationServerMetadata) -> Result<(), Error> {
        let lock = self.shared.lock_of(&permit.key);
        let _held = lock.lock().await;
        let _turn = self.turn(&permit.key, TURN).await;
        let now = self.shared.config.now();
        let newest = self.stored(&permit.key).await?.filter(|stored| stored.tokens.is_some());
        let stored = newest.unwrap_or_else(|| permit.stored.clone());
        let newer = stored.tokens.as_ref().is_some_and(|tokens| {
            tokens.access_token != permit.tokens.access_token && tokens.expires_at.is_none_or(|end| end > now)
        });
        let next = if newer {
            Permit::new(permit.key.clone(), stored, Origin::Stored, now)
        } else {
            let new = self.flow().refresh(server, &permit.key.resource, &stored).await?;
            self.save(&permit.key, &new).await;
            Permit::new(permit.key.clone(), new, Origin::Refreshed, now)
        };
        if let Some(next) = next {
            self.state().permit = Some(Arc::new(next));
        }
        Ok(())
    }

    /// The metadata of the authorization server that issued the tokens, if only its issuer is known.
    async fn server_of(&self, key: &StoreKey) -> Result<AuthorizationServerMetadata, Error> {
        let asker = self.asker();
        let found = metadata::server(&asker, &key.issuer).await;
        if found.is_err() && key.issuer.trim_end_matches('/') == address::origin(&self.server) {
            return metadata::server_at_origin(&asker).await;
        }
        found
    }

    fn can_renew(&self, permit: &Permit) -> bool {
        self.shared.config.non_interactive.is_some() || permit.tokens.refresh_token.is_some()
    }

    fn not_accepted(&self, challenge: &Challenge, permit: &Permit) -> Error {
        let said = challenge.error_description.as_deref().or(challenge.error.as_deref());
        let said =
            said.map_or(String::new(), |said| format!(" ({})", quote(said, &[permit.tokens.access_token.expose()])));
        let why = format!(
            "{} rejects the token that {} has just issued for it{said}; the operator must correct one of the two",
            self.server, permit.key.issuer
        );
        Error::new(Kind::NotAccepted, why)
    }

    fn flow(&self) -> Flow<'_> {
        Flow { config: &self.shared.config, asker: self.asker(), nonces: &self.shared.nonces }
    }

    pub(crate) fn asker(&self) -> Asker {
        Asker { fetch: self.shared.fetch.clone(), reach: self.shared.config.reach, server: self.server.clone() }
    }

    fn permit(&self) -> Option<Arc<Permit>> {
        self.state().permit.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The use of the store.
impl TokenSource {
    /// Takes up what an earlier run left. What programs get for themselves is never kept, and never mixed with what
    /// people were given.
    async fn load(&self) -> Result<(), Error> {
        self.loaded.get_or_try_init(|| self.take_up()).await.copied()
    }

    async fn take_up(&self) -> Result<(), Error> {
        if self.shared.config.non_interactive.is_some() {
            return Ok(());
        }
        let mut keys = self.keys().await?;
        // The most particular resource first.
        keys.sort_by_key(|key| std::cmp::Reverse(key.resource.len()));
        for key in keys {
            let Some(stored) = self.stored(&key).await? else { continue };
            let now = self.shared.config.now();
            let usable = |permit: &Permit| !permit.is_over(now) || permit.tokens.refresh_token.is_some();
            if let Some(permit) = Permit::new(key, stored, Origin::Stored, now).filter(usable) {
                let mut state = self.state();
                state.asked = permit.tokens.scope.as_deref().map(Scopes::parse).unwrap_or_default();
                state.permit = Some(Arc::new(permit));
                return Ok(());
            }
        }
        Ok(())
    }

    /// The keys under which there is something for this server.
    pub(crate) async fn keys(&self) -> Result<Vec<StoreKey>, Error> {
        let mut keys = self.shared.config.store.list().await.map_err(|e| store_error("read", &e))?;
        keys.retain(|key| Url::parse(&key.resource).is_ok_and(|resource| address::covers(&resource, &self.server)));
        Ok(keys)
    }

    async fn known_issuers(&self) -> Result<Vec<String>, Error> {
        if self.shared.config.non_interactive.is_some() {
            return Ok(Vec::new());
        }
        Ok(self.keys().await?.into_iter().map(|key| key.issuer).collect())
    }

    async fn stored(&self, key: &StoreKey) -> Result<Option<Stored>, Error> {
        self.shared.config.store.load(key).await.map_err(|e| store_error("read", &e))
    }

    /// A token that cannot be stored is still valid.
    async fn save(&self, key: &StoreKey, stored: &Stored) {
        if let Err(error) = self.shared.config.store.save(key, stored).await {
            tracing::warn!(%error, server = %self.server, "the tokens cannot be stored; they are lost when the program ends");
        }
    }

    /// Forgets the tokens under a key, but not the client.
    async fn forget_tokens(&self, key: &StoreKey) {
        let stored = self.stored(key).await;
        let kept = match stored {
            Ok(Some(Stored { client: Some(client), .. })) => {
                let stored = Stored { client: Some(client), ..Stored::default() };
                self.shared.config.store.save(key, &stored).await
            }
            Ok(_) => self.shared.config.store.forget(key).await,
            Err(_) => return,
        };
        if let Err(error) = kept {
            tracing::warn!(%error, server = %self.server, "invalid tokens cannot be removed from the store");
        }
    }

    /// Only the authorization server that the server names now counts.
    async fn forget_others(&self, key: &StoreKey) {
        for other in self.keys().await.unwrap_or_default() {
            if other.issuer != key.issuer {
                self.forget_tokens(&other).await;
            }
        }
    }
}

/// Ends a flight, however it ends.
struct RefreshGuard(Arc<TokenSource>);

impl Drop for RefreshGuard {
    fn drop(&mut self) {
        self.0.state().flight = None;
    }
}

fn store_error(what: &str, error: &std::io::Error) -> Error {
    Error::new(Kind::Store, format!("the stored tokens cannot be {what}: {error}"))
}

/// The token that a request carried.
fn sent_token(request: &Parts) -> Option<Secret> {
    let value = request.headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    ["bearer", "dpop"].iter().any(|known| scheme.eq_ignore_ascii_case(known)).then(|| Secret::from(token.trim()))
}

/// The nonce in the proof that a request carried.
fn sent_nonce(request: &Parts) -> Option<String> {
    let proof = request.headers.get(DPOP)?.to_str().ok()?;
    let claims = URL_SAFE_NO_PAD.decode(proof.split('.').nth(1)?).ok()?;
    let claims: serde_json::Value = serde_json::from_slice(&claims).ok()?;
    claims.get("nonce")?.as_str().map(str::to_owned)
}

/// How long before its end a token is renewed, at most.
const EARLY_S: u64 = 60;
/// How long a renewal that failed is not tried again.
const AGAIN_S: u64 = 10;
/// Step-ups in a row that lead nowhere.
const STEP_UPS_MAX: u32 = 3;
/// Logins within [`LOGINS_S`] seconds.
const LOGINS_MAX: usize = 10;
const LOGINS_S: u64 = 300;
const JOINS_MAX: usize = 4;
const LOCKS_MAX: usize = 256;
