//! Decides about requests.

use crate::clock::Clock;
use crate::config::{Config, implications};
use crate::credentials::{self, Sent};
use crate::introspect::{Failed, INACTIVE_S, Questions};
use crate::issuer::Issuer;
use crate::jwt::{self, Audiences, Why};
use crate::keys::Keys;
use crate::limit::BadTokens;
use crate::mode::Dpop;
use crate::proof;
use crate::proxies::TrustedProxies;
use crate::refuse::{BOUND, EXPIRED, INVALID, Refusals, UNBOUND};
use crate::remembered::{Known, Remembered, TokenHash, Verdict};
use crate::replay::Replay;
use http::{Method, request};
use linchpin_core::Principal;
use linchpin_core::gate::{Admit, Refusal};
use linchpin_oauth::dpop::{self, Expected};
use linchpin_oauth::{Jws, Scopes, Secret, sha256};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::runtime::Handle;

/// A guard at work.
pub(crate) struct Checker {
    pub(crate) refusals: Refusals,
    pub(crate) clock: Clock,
    issuers: Vec<Arc<Issuer>>,
    keys: Vec<Keys>,
    audiences: Audiences,
    /// Path, and URL as proofs have it, of each resource.
    targets: Vec<(String, String)>,
    implied: BTreeMap<String, Scopes>,
    optional: bool,
    proxies: TrustedProxies,
    remembered: Remembered,
    bad: BadTokens,
    replay: Replay,
    questions: Questions,
}

/// A token, and what else of its request matters.
#[derive(Clone)]
struct Presented {
    method: Method,
    resource: usize,
    /// The URL of the request, for its proof.
    target: Option<String>,
    token: String,
    /// The proof, where the token was sent as bound to a key.
    proof: Option<Result<String, &'static str>>,
    from: Option<IpAddr>,
}

/// A request that may come in, if its proof was not used before.
struct Admitted {
    principal: Principal,
    /// What the store has to be asked about.
    proof: Option<String>,
}

impl Checker {
    pub(crate) fn new(config: &Config, metadata: Vec<String>) -> Result<Checker, String> {
        let issuer = |trusted: &crate::issuer::TrustedIssuer| {
            let own = || {
                #[cfg(feature = "web")]
                return Some(Arc::new(crate::fetch::WebFetch::new(&trusted.url)) as Arc<dyn crate::fetch::Fetch>);
                #[cfg(not(feature = "web"))]
                None
            };
            let fetch = config.fetch.clone().or_else(|| own().filter(|_| trusted.is_remote()));
            Issuer::new(trusted.clone(), fetch, config.clock.clone())
        };
        let target = |url: &String| {
            let path = url.parse::<http::Uri>().map(|uri| uri.path().to_owned()).unwrap_or_default();
            (path, dpop::target(url).unwrap_or_default())
        };
        Ok(Checker {
            refusals: Refusals {
                metadata,
                base: config.require.iter().collect(),
                asked: config.require.iter().chain(&config.ask_for).collect(),
                dpop: config.dpop,
            },
            clock: config.clock.clone(),
            issuers: config.issuers.iter().map(issuer).collect(),
            keys: config.keys.clone(),
            audiences: Audiences { resources: config.resources.clone() },
            targets: config.resources.iter().map(target).collect(),
            implied: implications(&config.implies)?,
            optional: config.optional,
            proxies: config.proxies.clone(),
            remembered: Remembered::default(),
            bad: BadTokens::default(),
            replay: Replay::new(config.nonces, config.replay.clone()),
            questions: Questions::default(),
        })
    }

    /// The first issuer.
    pub(crate) fn issuer(&self) -> Option<&Arc<Issuer>> {
        self.issuers.first()
    }

    /// Decides about a request by its head.
    pub(crate) fn admit(self: &Arc<Self>, head: &request::Parts, peer: Option<SocketAddr>) -> Admit {
        let resource = self.resource(head.uri.path());
        let (token, proof) = match credentials::of(head) {
            Sent::Nothing if self.optional => return Admit::Open,
            Sent::Nothing => return Admit::No(self.refusals.login(resource)),
            Sent::Malformed(why) => return Admit::No(self.refusals.malformed(why)),
            Sent::Bearer(token) => (token, None),
            Sent::Dpop { .. } if !self.refusals.dpop.is_on() => return Admit::No(self.refusals.login(resource)),
            Sent::Dpop { token, proof } => (token, Some(proof)),
        };
        let (hash, now) = (sha256(token.as_bytes()), self.clock.now());
        match self.remembered.get(&hash, now) {
            Some(Verdict::Good(known))
                if proof.is_none() && known.bound.is_none() && !self.refusals.dpop.is_required() =>
            {
                decided(self.holds(known, resource, now))
            }
            seen => {
                let presented = Presented {
                    method: head.method.clone(),
                    resource,
                    target: proof.is_some().then(|| self.target(head.uri.path(), resource)),
                    token: token.to_owned(),
                    proof: proof.map(|proof| proof.map(str::to_owned)),
                    from: self.proxies.client(&head.headers, peer),
                };
                match seen {
                    Some(Verdict::Good(known)) => self.settle(presented.resource, self.decide(&presented, known, now)),
                    Some(Verdict::Inactive) => Admit::No(self.refused(&presented, INVALID, now)),
                    None => self.first_sight(presented, hash, now),
                }
            }
        }
    }

    /// Verifies a token outside of a request to the endpoint. There is no proof.
    pub(crate) fn verify(self: &Arc<Self>, token: &str) -> Admit {
        let (hash, now) = (sha256(token.as_bytes()), self.clock.now());
        let token = token.to_owned();
        let presented = Presented { method: Method::GET, resource: 0, target: None, token, proof: None, from: None };
        match self.remembered.get(&hash, now) {
            Some(Verdict::Good(known)) => self.settle(presented.resource, self.decide(&presented, known, now)),
            Some(Verdict::Inactive) => Admit::No(self.refused(&presented, INVALID, now)),
            None => self.first_sight(presented, hash, now),
        }
    }

    /// Decides about a token that is not remembered.
    fn first_sight(self: &Arc<Self>, presented: Presented, hash: TokenHash, now: u64) -> Admit {
        let busy = || presented.from.and_then(|from| self.bad.exceeded(from, now));
        if Keys::claims(&presented.token) && !self.keys.is_empty() {
            let found = self.keys.iter().map(|keys| keys.find(&presented.token, now));
            let found = found.reduce(|one, other| one.or(other)).unwrap_or(Err(INVALID));
            // Keys cannot be guessed: the bad ones of others behind the same address do not keep a good one out.
            return match (found, busy()) {
                (Ok(known), _) => {
                    self.settle(presented.resource, self.decide(&presented, self.with_implied(known), now))
                }
                (Err(_), Some(seconds)) => Admit::No(self.refusals.busy(seconds)),
                (Err(why), None) => Admit::No(self.refused(&presented, why, now)),
            };
        }
        if let Some(seconds) = busy() {
            return Admit::No(self.refusals.busy(seconds));
        }
        let jws = Jws::read(&presented.token);
        let named = jws.as_ref().ok().and_then(Jws::unverified_issuer);
        let at = named.and_then(|named| self.issuers.iter().position(|issuer| issuer.trusted.url == named));
        if let (Ok(jws), Some(at)) = (&jws, at) {
            let issuer = &self.issuers[at];
            if let Some(known) = issuer.known() {
                match jwt::verify(jws, &known.keys, &issuer.trusted, at, &self.audiences, now) {
                    Ok(known) => {
                        return self.settle(presented.resource, self.learned(&presented, hash, known, now));
                    }
                    Err(Why::Bad(why)) => return Admit::No(self.refused(&presented, why, now)),
                    Err(Why::UnknownKey) if !issuer.may_learn() => {
                        return Admit::No(self.refused(&presented, INVALID, now));
                    }
                    Err(Why::UnknownKey) => {}
                }
            }
            let checker = self.clone();
            return Admit::Later(Box::pin(async move { checker.after_learning(presented, hash, at).await }));
        }
        // A JWT is not the business of those who are asked about other tokens.
        let opaque = jws.is_err() && !presented.token.starts_with("eyJ");
        let asked = self.issuers.iter().any(|issuer| issuer.trusted.introspection.is_some());
        if !opaque || !asked || presented.token.len() > Jws::BYTES_MAX {
            return Admit::No(self.refused(&presented, INVALID, now));
        }
        // It is bad until an issuer says otherwise: whoever leaves before that has sent it all the same.
        if let Some(from) = presented.from {
            self.bad.count(from, now);
        }
        let checker = self.clone();
        Admit::Later(Box::pin(async move { checker.ask(presented, hash).await }))
    }

    /// Verifies a token with the keys that its issuer has now.
    async fn after_learning(
        self: Arc<Self>,
        presented: Presented,
        hash: TokenHash,
        at: usize,
    ) -> Result<Principal, Refusal> {
        let issuer = &self.issuers[at];
        let Some(known) = issuer.learn().await else { return Err(self.refusals.away()) };
        let now = self.clock.now();
        let verified = match Jws::read(&presented.token) {
            Ok(jws) => jwt::verify(&jws, &known.keys, &issuer.trusted, at, &self.audiences, now),
            Err(_) => Err(Why::Bad(INVALID)),
        };
        match verified {
            Ok(known) => self.settled(presented.resource, self.learned(&presented, hash, known, now)?).await,
            Err(Why::Bad(why)) => Err(self.refused(&presented, why, now)),
            Err(Why::UnknownKey) => Err(self.refused(&presented, INVALID, now)),
        }
    }

    /// Asks the issuers about a token, and decides about its request.
    async fn ask(self: Arc<Self>, presented: Presented, hash: TokenHash) -> Result<Principal, Refusal> {
        let answer = self.introspected(&presented.token, hash).await;
        if let (Ok(_) | Err(Failed::Away), Some(from)) = (&answer, presented.from) {
            self.bad.forgive(from);
        }
        match answer {
            Ok(known) => {
                let now = self.clock.now();
                self.settled(presented.resource, self.decide(&presented, known, now)?).await
            }
            Err(Failed::Away) => Err(self.refusals.away()),
            Err(Failed::Bad(why)) => Err(self.refusals.invalid(presented.resource, why)),
        }
    }

    /// What the issuers say of a token, one after the other, unless somebody else just asked them.
    async fn introspected(self: &Arc<Self>, token: &str, hash: TokenHash) -> Result<Known, Failed> {
        let _turn = self.questions.turn(hash).await;
        match self.remembered.get(&hash, self.clock.now()) {
            Some(Verdict::Good(known)) => return Ok(known),
            Some(Verdict::Inactive) => return Err(Failed::Bad(INVALID)),
            None => {}
        }
        let (mut away, mut why) = (false, INVALID);
        for (at, issuer) in self.issuers.iter().enumerate().filter(|(_, i)| i.trusted.introspection.is_some()) {
            match self.questions.ask(issuer, at, token, &self.audiences).await {
                Ok((known, end)) => {
                    let mut known = self.with_implied(known);
                    known.principal = known.principal.with_revocation(self.inactivity(token, hash));
                    self.remembered.put(hash, token.len(), Verdict::Good(known.clone()), end);
                    return Ok(known);
                }
                Err(Failed::Bad(said)) => why = said,
                Err(Failed::Away) => away = true,
            }
        }
        if away {
            return Err(Failed::Away);
        }
        self.remembered.put(hash, token.len(), Verdict::Inactive, self.clock.now() + INACTIVE_S);
        Err(Failed::Bad(why))
    }

    /// Whether the issuers have taken back a token that they knew: what they said last. When that is old, they are asked again in the
    /// background.
    fn inactivity(self: &Arc<Self>, token: &str, hash: TokenHash) -> impl Fn() -> bool + Send + Sync + 'static {
        let (checker, token, asking) = (Arc::downgrade(self), Secret::new(token), Arc::new(AtomicBool::new(false)));
        move || {
            let Some(checker) = checker.upgrade() else { return true };
            match checker.remembered.get(&hash, checker.clock.now()) {
                Some(Verdict::Good(_)) => false,
                Some(Verdict::Inactive) => true,
                None => {
                    if let (false, Ok(runtime)) = (asking.swap(true, Ordering::AcqRel), Handle::try_current()) {
                        let (token, asking) = (token.clone(), asking.clone());
                        runtime.spawn(async move {
                            // If they are away, the token goes on as it does for requests while it is remembered.
                            let _ = checker.introspected(token.expose(), hash).await;
                            asking.store(false, Ordering::Release);
                        });
                    }
                    false
                }
            }
        }
    }

    /// Remembers a token that was verified, and decides about its request.
    fn learned(&self, presented: &Presented, hash: TokenHash, known: Known, now: u64) -> Result<Admitted, Refusal> {
        let known = self.with_implied(known);
        let end = seconds(&known.principal).map_or(u64::MAX, |expiry| expiry.saturating_add(known.leeway_s));
        self.remembered.put(hash, presented.token.len(), Verdict::Good(known.clone()), end.min(now + REMEMBER_S));
        self.decide(presented, known, now)
    }

    /// Decides about a request whose token is valid.
    fn decide(&self, presented: &Presented, known: Known, now: u64) -> Result<Admitted, Refusal> {
        let mut shared = None;
        let (mode, resource) = (self.refusals.dpop, presented.resource);
        let wrong = |why| Err(self.refusals.proof(resource, "invalid_token", why));
        match (&known.bound, &presented.proof) {
            (None, None) if mode.is_required() => return wrong(UNBOUND),
            (None, None) => {}
            (None, Some(_)) => return wrong(UNBOUND),
            (Some(_), None) if mode.is_on() => return wrong(BOUND),
            (Some(_), None) => return Err(self.refusals.invalid(resource, BOUND)),
            (Some(bound), Some(sent)) => {
                let target = presented.target.as_deref().unwrap_or_default();
                let expected = Expected::new(presented.method.as_str(), target, now)
                    .with(|expected| expected.access_token = Some(&presented.token));
                let sent = sent.as_deref().map_err(|why| *why);
                shared = proof::check(sent, bound, &expected, &self.replay, &self.refusals, resource)?;
            }
        }
        Ok(Admitted { principal: self.holds(known, resource, now)?, proof: shared })
    }

    /// The answer to a request, which may have to wait for the store.
    fn settle(self: &Arc<Self>, resource: usize, decision: Result<Admitted, Refusal>) -> Admit {
        match decision {
            Err(refusal) => Admit::No(refusal),
            Ok(Admitted { principal, proof: None }) => Admit::Yes(principal),
            Ok(admitted) => {
                let checker = self.clone();
                Admit::Later(Box::pin(async move { checker.settled(resource, admitted).await }))
            }
        }
    }

    /// Waits until the store has said whether the proof of a request was used before, if that is for it to say.
    async fn settled(&self, resource: usize, admitted: Admitted) -> Result<Principal, Refusal> {
        let Some(key) = &admitted.proof else { return Ok(admitted.principal) };
        match self.replay.is_first(key).await {
            Ok(true) => Ok(admitted.principal),
            Ok(false) => Err(self.refusals.proof(resource, "invalid_dpop_proof", proof::AGAIN)),
            Err(error) => {
                tracing::warn!(%error, "the store of DPoP proofs does not answer");
                Err(self.refusals.store_away())
            }
        }
    }

    /// What is asked of every token, each time.
    fn holds(&self, known: Known, resource: usize, now: u64) -> Result<Principal, Refusal> {
        if seconds(&known.principal).is_some_and(|expiry| expiry.saturating_add(known.leeway_s) <= now) {
            return Err(self.refusals.invalid(resource, EXPIRED));
        }
        if let Some((at, family)) = &known.family
            && self.issuers[*at].trusted.revocation.as_ref().is_some_and(|revocation| (revocation.is_revoked)(family))
        {
            return Err(self.refusals.invalid(resource, INVALID));
        }
        if self.refusals.base.iter().all(|scope| known.principal.has_scope(scope)) {
            return Ok(known.principal);
        }
        Err(self.refusals.missing(resource, Some(&known.principal), &[]))
    }

    /// Counts a bad token of an address.
    fn refused(&self, presented: &Presented, why: &'static str, now: u64) -> Refusal {
        if let Some(from) = presented.from {
            self.bad.count(from, now);
        }
        self.refusals.invalid(presented.resource, why)
    }

    fn with_implied(&self, mut known: Known) -> Known {
        if !self.implied.is_empty() {
            let granted: Scopes = known.principal.scopes().collect();
            let implied = granted
                .iter()
                .filter_map(|scope| self.implied.get(scope))
                .fold(granted.clone(), |all, more| all.union(more));
            known.principal = known.principal.with_scopes(implied.iter());
        }
        known
    }

    /// Whether the body of an admitted request is the one of its proof.
    pub(crate) fn is_body_of(&self, headers: &http::HeaderMap, body: &[u8]) -> Result<(), Refusal> {
        if self.refusals.dpop == Dpop::Off {
            return Ok(());
        }
        let Some(Ok(proof)) = headers.get(credentials::DPOP).map(|proof| proof.to_str()) else { return Ok(()) };
        match proof::is_of(proof, body) {
            true => Ok(()),
            false => Err(self.refusals.proof(0, "invalid_dpop_proof", "the proof is for another body")),
        }
    }

    /// The resource that a path belongs to.
    pub(crate) fn resource(&self, path: &str) -> usize {
        self.targets.iter().position(|(own, _)| own == path).unwrap_or(0)
    }

    /// The URL of a request as its sender knows it. Behind a router the path may be a part of it.
    fn target(&self, path: &str, resource: usize) -> String {
        let Some((own, target)) = self.targets.get(resource) else { return String::new() };
        // The messages of HTTP+SSE go to a place of their own.
        let beside = path.ends_with("/message").then(|| {
            let origin = target.strip_suffix(own.trim_end_matches('/')).unwrap_or(target);
            format!("{origin}{path}")
        });
        beside.unwrap_or_else(|| target.clone())
    }
}

/// How long a verified token is remembered at most, in seconds.
const REMEMBER_S: u64 = 300;

fn decided(decision: Result<Principal, Refusal>) -> Admit {
    decision.map_or_else(Admit::No, Admit::Yes)
}

/// When an authentication expires, in seconds since 1970.
fn seconds(principal: &Principal) -> Option<u64> {
    principal.expires()?.duration_since(std::time::UNIX_EPOCH).ok().map(|since| since.as_secs())
}
