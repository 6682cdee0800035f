//! The endpoint of a server: sends requests with credentials, redirects and tap.

use super::error_body;
use super::head::{self, Heads};
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Uri};
use linchpin_core::connector::{Authorizer, BelongsTo, ConnectOptions, Traffic, TransportError};
use linchpin_core::service::boxed;
use linchpin_web::{Address, Web, WebBody, WebError, WebErrorKind, WebResponse};
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use url::Url;

/// A server's address with everything that requests to it need.
pub(super) struct Endpoint {
    pub(super) url: Url,
    /// The same for the client, parsed on the first request.
    address: OnceLock<Address>,
    /// The address as it may be shown.
    pub(super) name: Arc<str>,
    pub(super) web: Web,
    pub(super) heads: Heads,
    pub(super) options: ConnectOptions,
    pub(super) runtime: tokio::runtime::Handle,
    authorizer: Option<Arc<dyn Authorizer>>,
    /// Requests that wait for the authorizer, and perhaps for the user.
    asking: AtomicUsize,
    /// Where a permanent redirect has led.
    moved: OnceLock<Url>,
    /// It has responded before, so that a failed connection is a failed request and not a wrong URL.
    worked: AtomicBool,
}

impl Endpoint {
    /// Must be called in a runtime.
    pub(super) fn new(
        url: Url,
        name: Arc<str>,
        web: Web,
        heads: Heads,
        authorizer: Option<Arc<dyn Authorizer>>,
        options: ConnectOptions,
    ) -> Endpoint {
        let runtime = tokio::runtime::Handle::current();
        let (moved, worked) = (OnceLock::new(), AtomicBool::new(false));
        Endpoint {
            url,
            address: OnceLock::new(),
            name,
            web,
            heads,
            options,
            runtime,
            authorizer,
            asking: AtomicUsize::new(0),
            moved,
            worked,
        }
    }

    /// Sends a request and returns the response, after handling redirects and rejected credentials. `head` builds the
    /// headers, once for each time it is sent.
    pub(super) async fn send(
        &self,
        method: Method,
        body: Bytes,
        head: &(dyn Fn() -> HeaderMap + Send + Sync),
    ) -> Result<WebResponse, TransportError> {
        self.send_to(self.moved.get().unwrap_or(&self.url), method, body, head).await
    }

    /// The same for another address of the same origin.
    pub(super) async fn send_to(
        &self,
        url: &Url,
        method: Method,
        body: Bytes,
        head: &(dyn Fn() -> HeaderMap + Send + Sync),
    ) -> Result<WebResponse, TransportError> {
        let mut url = Cow::Borrowed(url);
        let (mut resent, mut hops) = (0, 0);
        loop {
            let (answer, again) = self.once(&url, &method, body.clone(), head()).await?;
            let status = answer.parts.status;
            if again && resent < RESENDS_MAX {
                resent += 1;
                self.finish(answer.body);
                continue;
            }
            if status == StatusCode::UNAUTHORIZED {
                return Err(self.unauthorized(answer).await);
            }
            if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
                return Ok(answer);
            }
            let next = self.redirected(&url, &method, &answer)?;
            self.finish(answer.body);
            hops += 1;
            if hops > HOPS_MAX {
                return Err(TransportError::Unreachable(
                    format!("{} redirects more than {HOPS_MAX} times", self.name).into(),
                ));
            }
            // Only the server's main address is remembered.
            if status == StatusCode::PERMANENT_REDIRECT && hops == 1 && *url == self.url {
                let _ = self.moved.set(next.clone());
            }
            url = Cow::Owned(next);
        }
    }

    /// Whether a request waits for authorization, which may take as long as a user login.
    pub(super) fn asks(&self) -> bool {
        self.asking.load(Ordering::Relaxed) > 0
    }

    /// Sends one request; returns whether the authorizer requests a retry.
    async fn once(
        &self,
        url: &Url,
        method: &Method,
        body: Bytes,
        headers: HeaderMap,
    ) -> Result<(WebResponse, bool), TransportError> {
        let tapped = self.options.tap.is_some();
        let address = self.address(url)?;
        let Some(authorizer) = &self.authorizer else {
            if tapped {
                self.show_request(method, address.uri(), &headers);
            }
            return self
                .answer(self.web.request_at(method.clone(), &address, headers, body).await)
                .map(|answer| (answer, false));
        };
        let mut parts = http::Request::new(()).into_parts().0;
        (parts.method, parts.uri, parts.headers) = (method.clone(), address.uri().clone(), headers);
        // Permission is for the server, wherever a redirect or an endpoint that it named leads.
        parts.extensions.insert(BelongsTo(self.address(&self.url)?.uri().clone()));
        let asking = Asking::of(&self.asking);
        authorizer.authorize(&mut parts).await.map_err(TransportError::Unauthorized)?;
        drop(asking);
        head::mark(&mut parts.headers);
        if tapped {
            self.show_request(method, &parts.uri, &parts.headers);
        }
        let answer = self.answer(self.web.request_at(method.clone(), &address, parts.headers.clone(), body).await)?;
        let _asking = Asking::of(&self.asking);
        let seen = authorizer.answered(&parts, answer.parts.status, &answer.parts.headers).await;
        seen.map(|again| (answer, again)).map_err(TransportError::Unauthorized)
    }

    /// The address of a URL: that of the server is parsed once.
    fn address(&self, url: &Url) -> Result<Address, TransportError> {
        let parsed = || url.as_str().parse::<Address>().map_err(|e| self.failed(&e));
        if *url != self.url {
            return parsed();
        }
        match self.address.get() {
            Some(address) => Ok(address.clone()),
            None => parsed().map(|address| self.address.get_or_init(|| address).clone()),
        }
    }

    fn answer(&self, answer: Result<WebResponse, WebError>) -> Result<WebResponse, TransportError> {
        let mut answer = answer.map_err(|e| self.failed(&e))?;
        self.worked.store(true, Ordering::Relaxed);
        if self.options.tap.is_some() {
            head::mark(&mut answer.parts.headers);
            let (status, headers) = (answer.parts.status, &answer.parts.headers);
            self.options.show(|| Traffic::Response { status, headers });
        }
        Ok(answer)
    }

    fn show_request(&self, method: &Method, uri: &Uri, headers: &HeaderMap) {
        // A query may contain a key.
        let shown = uri.query().and_then(|_| format!("{}?...", uri.to_string().split('?').next()?).parse().ok());
        let uri = shown.as_ref().unwrap_or(uri);
        self.options.show(|| Traffic::Request { method, uri, headers });
    }

    /// Where a redirect leads, if it may be followed.
    fn redirected(&self, from: &Url, method: &Method, answer: &WebResponse) -> Result<Url, TransportError> {
        let status = answer.parts.status.as_u16();
        let next = match answer.next() {
            Ok(next) => next.and_then(|next| Url::parse(&next).ok()),
            Err(e) => return Err(TransportError::Unreachable(e.text())),
        };
        let Some(next) = next else { return Err(TransportError::Status { status, body: "".into() }) };
        let keeps = method == Method::GET || matches!(status, 307 | 308);
        if keeps && next.origin() == from.origin() {
            return Ok(next);
        }
        let why = format!(
            "{} redirects to {} (status {status}), which is not followed; if that is the right address, use it",
            self.name,
            without_secrets(&next)
        );
        Err(TransportError::Unreachable(why.into()))
    }

    /// The error for status 401, with what the server says about credentials that it was given.
    async fn unauthorized(&self, mut answer: WebResponse) -> TransportError {
        let given = self.authorizer.is_some() || self.heads.have_credentials();
        let (headers, limits) = (&answer.parts.headers, &self.options.limits);
        let reason = if given { error_body::reason(headers, &mut answer.body, limits).await } else { None };
        self.finish(answer.body);
        let why = match (given, reason) {
            (false, _) => "requires credentials (status 401); pass a token or configure a login".to_owned(),
            (true, None) => "does not accept the credentials it was given (status 401)".to_owned(),
            (true, Some(reason)) => format!("does not accept the credentials it was given (status 401): {reason}"),
        };
        TransportError::Unauthorized(format!("{} {why}", self.name).into())
    }

    /// The link error of a failed request.
    fn failed(&self, error: &WebError) -> TransportError {
        match error.kind() {
            WebErrorKind::TooLong => TransportError::Unreadable(error.text()),
            WebErrorKind::Broken => TransportError::CutOff(error.text()),
            _ if self.worked.load(Ordering::Relaxed) => TransportError::CutOff(error.text()),
            _ => TransportError::Unreachable(error.text()),
        }
    }

    /// Drains the rest of an unneeded response, so that its connection can be reused. Limited in size and time: a
    /// stream that continues is closed.
    pub(super) fn finish(&self, mut body: WebBody) {
        if body.is_over() {
            return;
        }
        self.runtime.spawn(boxed(tokio::time::timeout(FINISH, async move {
            let mut left = FINISH_BYTES;
            while let Ok(Some(more)) = body.chunk().await
                && let Some(less) = left.checked_sub(more.len())
            {
                left = less;
            }
        })));
    }
}

/// Origin and path of a URL, for display.
pub(super) fn without_secrets(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

/// The error for a response that will not come.
pub(super) fn closed() -> TransportError {
    TransportError::Closed("the connection was closed".into())
}

const RESENDS_MAX: u32 = 4;
const HOPS_MAX: u32 = 5;
const FINISH: Duration = Duration::from_secs(1);
const FINISH_BYTES: usize = 64 << 10;

/// Counts one question to the authorizer as long as it lives.
struct Asking<'a>(&'a AtomicUsize);

impl Asking<'_> {
    fn of(count: &AtomicUsize) -> Asking<'_> {
        count.fetch_add(1, Ordering::Relaxed);
        Asking(count)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
