//! The engine: sends a request with its key, its turn, its retries, and only where it may go.

use crate::arg::Args;
use crate::cache::Cache;
use crate::clean::without_key;
use crate::exchange::Exchange;
use crate::keep::Keep;
use crate::pace::Pace;
use crate::problem::{again_in, kind_of};
use crate::profile::{KeyPlace, KeyScopes, Profile, Scope};
use crate::{Ask, Call, Config, Reply, path};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, IF_NONE_MATCH, LOCATION, USER_AGENT};
use http::{Method, Request, Response, StatusCode};
use linchpin::BoxFuture;
use linchpin::transport::web::{RETRIES_MAX, retry_after};
use linchpin_kit::{ErrorKind, Secret, ToolError, redact_urls};
use serde_json::Value;
use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::{Instant, sleep, timeout_at};
use url::Url;

/// A server for an API. Cloning is cheap; clones share connections, cache and pace.
#[derive(Clone)]
pub struct Rest {
    pub(crate) inner: Arc<Inner>,
    pub(crate) state: State,
    pub(crate) each_session: Option<Arc<dyn Fn() -> State + Send + Sync>>,
}

/// What the server of an API keeps for the code of its rows.
pub(crate) type State = Arc<dyn Any + Send + Sync>;

pub(crate) struct Inner {
    pub(crate) api: &'static Profile,
    pub(crate) calls: &'static [Call],
    pub(crate) config: Config,
    /// The API's own first.
    pub(crate) bases: Vec<Place>,
    pub(crate) key: Option<Secret>,
    pub(crate) agent: HeaderValue,
    pub(crate) exchange: Box<dyn Exchange>,
    pub(crate) authorize: Option<Box<dyn Authorize>>,
    pub(crate) guard: Option<Box<dyn Guard>>,
    pub(crate) cache: Mutex<Cache>,
    pub(crate) pace: Arc<Pace>,
    /// What is kept, by how the rows write it.
    pub(crate) keeps: HashMap<&'static str, Keep>,
    /// The tools that write, by the names that they are listed under, of a key that may turn out not to allow that.
    pub(crate) writing: OnceLock<Vec<String>>,
    pub(crate) cannot_write: AtomicU8,
}

/// Whether the key was found not to allow writing, and the tools that write were hidden.
pub(crate) const FOUND: u8 = 1;
pub(crate) const HIDDEN: u8 = 2;

/// Where requests of a base go, and how they prove who is asking.
pub(crate) struct Place {
    pub(crate) name: &'static str,
    pub(crate) url: Url,
    pub(crate) key: KeyPlace,
}

/// Signs requests in a way that is not a key: AWS, or tokens that are renewed.
pub trait Authorize: Send + Sync + 'static {
    /// Adds what proves who is asking. Called for every attempt, with the request as it will be sent.
    fn authorize<'a>(&'a self, request: &'a mut Request<Bytes>) -> BoxFuture<'a, Result<(), ToolError>>;
}

/// A rule across calls: what one has read may forbid what another would write.
pub trait Guard: Send + Sync + 'static {
    /// Refuses a call, or lets it be made. The row and its checked arguments are known, and nothing was sent.
    fn before<'a>(&'a self, rest: &'a Rest, call: &'a Call, args: &'a Args) -> BoxFuture<'a, Result<(), ToolError>>;

    /// Learns what a call answered, before it is shortened.
    fn after(&self, call: &Call, args: &Args, answer: &Value);
}

/// A day, which no clock overflows.
const TIMEOUT_MS_MAX: u64 = 24 * 3_600 * 1_000;
const REDIRECTS_MAX: usize = 5;

impl Rest {
    /// Signs requests in this way. Has no effect once the server has been cloned.
    #[must_use]
    pub fn authorize(mut self, authorize: impl Authorize) -> Rest {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.authorize = Some(Box::new(authorize));
        }
        self
    }

    /// Keeps this rule. Has no effect once the server has been cloned.
    #[must_use]
    pub fn guard(mut self, guard: impl Guard) -> Rest {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.guard = Some(Box::new(guard));
        }
        self
    }

    /// Keeps this value for the code of rows, which gets it by [`Rest::state`]: what a server has beside the table, such as
    /// options of its own.
    #[must_use]
    pub fn with_state<T: Send + Sync + 'static>(self, value: T) -> Rest {
        Rest { state: Arc::new(value), ..self }
    }

    /// Keeps one value for each session, see [`Server::session_state`](linchpin::Server::session_state).
    #[must_use]
    pub fn with_session_state<T: Send + Sync + 'static>(self, make: impl Fn() -> T + Send + Sync + 'static) -> Rest {
        Rest { state: Arc::new(make()), each_session: Some(Arc::new(move || Arc::new(make()))), ..self }
    }

    /// The value that this server keeps, if it is of this type.
    #[must_use]
    pub fn state<T: 'static>(&self) -> Option<&T> {
        self.state.downcast_ref()
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// Sends a request and returns its response, if that is a success.
    ///
    /// The request waits for its turn. If the server is busy and the request may be sent again, it is, at most three times. The
    /// response to a GET may be one that the server has confirmed.
    ///
    /// # Errors
    /// When the request is not allowed or invalid (then nothing was sent), or as the API and the network fail.
    // Boxed here and not in an `async fn`, its code is there once, not once for each server.
    #[inline(never)]
    pub fn send(&self, ask: Ask) -> BoxFuture<'_, Result<Reply, ToolError>> {
        Box::pin(self.retried(ask))
    }

    async fn retried(&self, ask: Ask) -> Result<Reply, ToolError> {
        let inner = &*self.inner;
        let ask = self.restricted(ask)?;
        let (request, place) = (self.request(&ask)?, self.place(&ask)?);
        let timeout = Duration::from_millis(inner.config.timeout_ms.min(TIMEOUT_MS_MAX));
        let by = Instant::now() + timeout;
        let (classes, problems) = (inner.api.classes, ask.problems.unwrap_or(inner.api.problems));
        let class = classes.of(ask.template);
        let mut tried = 0;
        loop {
            let pace = Duration::from_millis(inner.config.pace_ms.unwrap_or(inner.api.limits.pace_ms));
            inner.pace.turn(class, pace, by).await.map_err(|wait| problems.limited(inner.api.title, wait))?;
            let got = match timeout_at(by, self.hops(&ask, &request, place, by)).await {
                Ok(got) => got,
                Err(_) => {
                    let late = format!("{} did not answer within {} s", inner.api.title, timeout.as_secs());
                    Err(ToolError::new(late).kind(ErrorKind::Timeout))
                }
            };
            let response = got.map_err(|error| after_writing(error, &ask))?;
            if inner.key_scopes().is_some_and(|scopes| scopes.forbid_writing(response.headers())) {
                inner.cannot_write.fetch_max(FOUND, Ordering::Relaxed);
            }
            let (status, headers) = (response.status(), response.headers());
            let limits = &inner.api.limits;
            let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let closed = limits.closed_for(headers, epoch);
            let says_limit = headers.contains_key(http::header::RETRY_AFTER) || limits.is_closed(headers);
            let is_limit = status == 429 || limits.statuses.contains(&status.as_u16()) && says_limit;
            let wait = retry_after(headers).or(closed);
            if let Some(wait) = wait.filter(|_| is_limit).or(closed) {
                let all = closed.is_none() && classes.retry_together();
                inner.pace.close((!all).then_some(class), wait);
            }
            if status.is_success() {
                return self.succeeded(response, &ask);
            }
            let busy = is_limit || matches!(status.as_u16(), 502..=504);
            if busy && ask.repeatable && tried < inner.config.retries_max.min(RETRIES_MAX) {
                let pause = wait.unwrap_or(Duration::from_millis(200 << tried));
                if pause <= by.saturating_duration_since(Instant::now()) / 2 {
                    tried += 1;
                    sleep(pause + jitter()).await;
                    continue;
                }
            }
            let kind = if is_limit { ErrorKind::Limited { retry_after: wait } } else { kind_of(status) };
            return Err(after_writing(self.problem(&response, kind, &ask), &ask));
        }
    }

    /// The request with the operator's restriction.
    fn restricted(&self, ask: Ask) -> Result<Ask, ToolError> {
        let (only, scope) = (&self.inner.config.only, self.inner.api.scope);
        if only.is_empty() || ask.always {
            return Ok(ask);
        }
        let names = match scope {
            Scope::None => return Ok(ask),
            Scope::Segments(names) => names,
            Scope::Parameter(name) => &[name][..],
        };
        let values: Option<Vec<String>> = names.iter().map(|name| ask.parameter(name)).collect();
        let allowed = match (values.map(|values| values.join("/")), ask.narrow) {
            // Names in paths have no case, ids in parameters do.
            (Some(about), _) if matches!(scope, Scope::Parameter(_)) => only.contains(&about),
            (Some(about), _) => only.iter().any(|one| one.eq_ignore_ascii_case(&about)),
            (None, Some(narrow)) => return Ok(narrow(ask, only)),
            (None, None) => false,
        };
        if allowed {
            return Ok(ask);
        }
        Err(ToolError::denied("This server is restricted, and that is outside")
            .hint(format!("Allowed: {}.", only.join(", "))))
    }

    /// The base of a request.
    fn place(&self, ask: &Ask) -> Result<&Place, ToolError> {
        let found = self.inner.bases.iter().find(|place| place.name == ask.base);
        found.ok_or_else(|| ToolError::new(format!("{} has no base {}", self.inner.api.title, ask.base)))
    }

    /// The request without its key.
    fn request(&self, ask: &Ask) -> Result<Request<Bytes>, ToolError> {
        let inner = &*self.inner;
        let mut url = self.place(ask)?.url.clone();
        path::extend(&mut url, ask.template, &ask.values)?;
        if !ask.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&ask.query);
        }
        let invalid = || ToolError::invalid("The request has a value that cannot be sent");
        let mut request = Request::builder().method(ask.method.clone()).uri(url.as_str());
        let headers = request.headers_mut().ok_or_else(invalid)?;
        headers.insert(USER_AGENT, inner.agent.clone());
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let fixed = inner.api.headers.iter().map(|(name, value)| (*name, *value));
        for (name, value) in fixed.chain(ask.headers.iter().map(|(name, value)| (*name, value.as_str()))) {
            let name: HeaderName = name.parse().map_err(|_| invalid())?;
            headers.insert(name, HeaderValue::from_str(value).map_err(|_| invalid())?);
        }
        let body = if let Some((media_type, body)) = &ask.raw {
            headers.insert(CONTENT_TYPE, HeaderValue::from_str(media_type).map_err(|_| invalid())?);
            body.clone()
        } else if let Some(form) = &ask.form {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
            url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish().into()
        } else if let Some(json) = &ask.json {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            json.to_string().into()
        } else {
            Bytes::new()
        };
        request.body(body).map_err(|_| invalid())
    }

    /// Sends it and follows redirects, of what only reads, to the same origin, and where the answer is looked at if the operator
    /// has restricted the server: what has moved may be outside now.
    async fn hops(
        &self,
        ask: &Ask,
        request: &Request<Bytes>,
        place: &Place,
        by: Instant,
    ) -> Result<Response<Bytes>, ToolError> {
        let inner = &*self.inner;
        let mut request = request.clone();
        for _ in 0..=REDIRECTS_MAX {
            let url = Url::parse(&request.uri().to_string()).map_err(|_| self.no_redirect("to no URL"))?;
            let key = (request.method() == Method::GET).then(|| cache_key(&request));
            let mut sent = request.clone();
            let mut asked_with = None;
            if let Some((tag, kept)) = key.as_ref().and_then(|key| self.cache(|cache| cache.tag(key))) {
                sent.headers_mut().insert(IF_NONE_MATCH, tag);
                asked_with = Some(kept);
            }
            self.sign(&mut sent, place, url.clone()).await?;
            let mut response = inner.exchange.exchange(sent, by.into_std()).await?;
            if let Some(key) = key {
                response = self.cache(|cache| cache.settle(&key, asked_with, response));
            }
            let status = response.status().as_u16();
            let is_get = request.method() == Method::GET;
            let redirects = matches!(status, 307 | 308) || is_get && matches!(status, 301..=303);
            let Some(target) = response.headers().get(LOCATION).filter(|_| redirects) else { return Ok(response) };
            let target = target.to_str().ok().and_then(|target| url.join(target).ok());
            let target = target.ok_or_else(|| self.no_redirect("to no URL"))?;
            if target.origin() != place.url.origin() {
                return Err(self.no_redirect("to another host, where the key must not go"));
            }
            let is_restricted = !inner.config.only.is_empty() && !ask.always && ask.narrow.is_none();
            if !ask.repeatable || is_restricted {
                return Err(self.moved(ask));
            }
            *request.uri_mut() = target.as_str().parse().map_err(|_| self.no_redirect("to no URL"))?;
        }
        Err(self.no_redirect("too often"))
    }

    /// The error for a redirect that is not followed, whose request has done nothing.
    fn moved(&self, ask: &Ask) -> ToolError {
        let error = ToolError::conflict(format!("{} has this elsewhere now", self.inner.api.title));
        match ask.repeatable {
            true => error.hint("This server is restricted: the operator must allow it under its present name."),
            false => error.hint("Nothing was changed. Read it to see where it is, and use that name."),
        }
    }

    fn no_redirect(&self, where_to: &str) -> ToolError {
        ToolError::new(format!("{} redirects {where_to}", self.inner.api.title))
            .kind(ErrorKind::Upstream { status: None })
    }

    fn cache<T>(&self, with: impl FnOnce(&mut Cache) -> T) -> T {
        with(&mut self.inner.cache.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds the key. The request goes to the origin of the base: redirects elsewhere are not followed, and the client connects
    /// nowhere else.
    async fn sign(&self, request: &mut Request<Bytes>, place: &Place, mut url: Url) -> Result<(), ToolError> {
        let inner = &*self.inner;
        let invalid = || ToolError::new("The key cannot be sent");
        if let Some(key) = &inner.key {
            let own = inner.config.key_header.map(|(name, scheme)| KeyPlace::Header { name, scheme });
            match own.unwrap_or(place.key) {
                KeyPlace::None => {}
                KeyPlace::Header { name, scheme } => {
                    let mut value =
                        HeaderValue::from_str(&format!("{scheme}{}", key.reveal())).map_err(|_| invalid())?;
                    value.set_sensitive(true);
                    request.headers_mut().insert(name.parse::<HeaderName>().map_err(|_| invalid())?, value);
                }
                KeyPlace::Query(name) => {
                    url.query_pairs_mut().append_pair(name, key.reveal());
                    *request.uri_mut() = url.as_str().parse().map_err(|_| invalid())?;
                }
            }
        }
        match &inner.authorize {
            Some(authorize) => authorize.authorize(request).await,
            None => Ok(()),
        }
    }

    /// A success, unless its body says otherwise.
    fn succeeded(&self, response: Response<Bytes>, ask: &Ask) -> Result<Reply, ToolError> {
        let (parts, body) = response.into_parts();
        let mut reply = Reply {
            status: parts.status,
            headers: parts.headers,
            body,
            title: self.inner.api.title,
            key: self.inner.key.clone(),
            parsed: None,
        };
        let failed = ask.problems.unwrap_or(self.inner.api.problems).of_success().and_then(|failed| {
            reply.parsed = reply.json().ok();
            failed(reply.parsed.as_ref()?)
        });
        match failed {
            None => Ok(reply),
            Some(kind) => {
                let Reply { status, headers, body, .. } = reply;
                let mut response = Response::new(body);
                (*response.status_mut(), *response.headers_mut()) = (status, headers);
                Err(after_writing(self.problem(&response, kind, ask), ask))
            }
        }
    }

    fn problem(&self, response: &Response<Bytes>, kind: ErrorKind, ask: &Ask) -> ToolError {
        let (api, status) = (self.inner.api, response.status());
        let body = String::from_utf8_lossy(response.body());
        let hide = |words: String| redact_urls(&without_key(&words, self.key()));
        let problems = ask.problems.unwrap_or(api.problems);
        let error = problems.error(api.title, status, kind, &body, hide);
        let error = match problems.advice(&body) {
            Some(advice) => error.hint(advice),
            None => error,
        };
        match kind {
            ErrorKind::Limited { retry_after: Some(wait) } => error.hint(again_in(wait)),
            ErrorKind::Limited { .. } => error.hint("Try again later."),
            ErrorKind::Denied if status == StatusCode::UNAUTHORIZED => match api.key.variables {
                [] => error,
                [name, ..] => error.hint(format!("The operator must check {name}. {}", api.key.obtain).trim_end()),
            },
            ErrorKind::Upstream { .. } | ErrorKind::Timeout => error.hint("Try again later."),
            _ => error,
        }
    }

    fn key(&self) -> Option<&str> {
        self.inner.key.as_ref().map(Secret::reveal)
    }
}

impl Inner {
    /// How the API tells what this key may do.
    pub(crate) fn key_scopes(&self) -> Option<KeyScopes> {
        let key = self.key.as_ref()?.reveal();
        self.api.key.scopes.filter(|scopes| scopes.has(key))
    }
}

impl std::fmt::Debug for Rest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rest")
            .field("api", &self.inner.api.title)
            .field("config", &self.inner.config)
            .finish_non_exhaustive()
    }
}

/// What changes the answer: everything but the key.
fn cache_key(request: &Request<Bytes>) -> String {
    let headers: &HeaderMap = request.headers();
    let own: String =
        headers.iter().map(|(n, v)| format!("\n{n}: {}", String::from_utf8_lossy(v.as_bytes()))).collect();
    format!("{}{own}", request.uri())
}

/// A request that changes something may have done so although no answer came: that must be said.
fn after_writing(error: ToolError, ask: &Ask) -> ToolError {
    let unknown = matches!(error.error_kind(), Some(ErrorKind::Timeout | ErrorKind::Upstream { .. }));
    match unknown && !ask.repeatable {
        true => error.hint("The request may have taken effect nevertheless. Check before trying again."),
        false => error,
    }
}

/// Something that differs from client to client, so that those that were turned away together do not come back together.
fn jitter() -> Duration {
    use std::hash::{BuildHasher, Hasher};
    Duration::from_millis(std::hash::RandomState::new().build_hasher().finish() % 100)
}
