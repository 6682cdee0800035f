//! Requests to issuers.

use bytes::Bytes;
use http::{Request, Response};
use linchpin_core::service::BoxFuture;

/// An HTTP client for a guard's requests to issuers: for metadata, keys and token introspection.
///
/// ```
/// use bytes::Bytes;
/// use http::{Request, Response};
/// use linchpin_core::service::BoxFuture;
/// use linchpin_guard::Fetch;
///
/// /// Sends no requests, for guards with configured keys.
/// struct Offline;
///
/// impl Fetch for Offline {
///     fn fetch(&self, _: Request<Bytes>, _: usize) -> BoxFuture<'static, Result<Response<Bytes>, String>> {
///         Box::pin(async { Err("this server has no network".to_owned()) })
///     }
/// }
/// ```
pub trait Fetch: Send + Sync + 'static {
    /// Sends a request and reads the whole response.
    ///
    /// An implementation must not follow redirects, and must reject bodies of more than `max` bytes. The guard applies
    /// a timeout.
    ///
    /// # Errors
    /// The reason why the request failed, without its headers or body.
    fn fetch(&self, request: Request<Bytes>, max: usize) -> BoxFuture<'static, Result<Response<Bytes>, String>>;
}

/// The project's HTTP client: to the host that the operator named wherever it is, to all others at public addresses
/// only.
#[cfg(feature = "web")]
pub(crate) struct WebFetch(linchpin_web::Web);

#[cfg(feature = "web")]
impl WebFetch {
    pub(crate) fn new(issuer: &str) -> WebFetch {
        use linchpin_web::{Reach, Web, WebOptions, is_loopback};
        let host = issuer.split("://").nth(1).unwrap_or_default().split('/').next().unwrap_or_default();
        WebFetch(Web::new(WebOptions::default().with(|options| {
            options.reach = if is_loopback(issuer) { Reach::PublicOrLoopback } else { Reach::Public };
            options.trusted_hosts = host.parse().into_iter().collect();
            options.https_only = issuer.starts_with("https:");
            options.connect_ms_max = 5_000;
        })))
    }
}

#[cfg(feature = "web")]
impl Fetch for WebFetch {
    fn fetch(&self, request: Request<Bytes>, max: usize) -> BoxFuture<'static, Result<Response<Bytes>, String>> {
        let web = self.0.clone();
        Box::pin(async move {
            let mut answer = web.send(request).await.map_err(|e| e.to_string())?;
            let body = answer.body.read_all(max).await.map_err(|e| e.to_string())?;
            Ok(Response::from_parts(answer.parts, body))
        })
    }
}
