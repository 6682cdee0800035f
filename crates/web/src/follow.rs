//! Following redirects, one checked hop after the other.

use super::{Address, Web, WebError, WebResponse, error};
use bytes::Bytes;
use http::header::{AUTHORIZATION, COOKIE, LOCATION, PROXY_AUTHORIZATION};
use http::{HeaderMap, HeaderName, Method, StatusCode};
use url::Url;

impl Web {
    /// Sends a GET and follows at most `hops_max` redirects.
    ///
    /// Every hop is checked like the first, and a redirect from `https` to `http` is rejected. Headers that carry
    /// credentials (the usual ones, and values marked sensitive) are dropped when the origin changes. A redirect
    /// without a target is returned as it is. The client's timeout applies to each hop, not to all together.
    ///
    /// # Errors
    /// Those of [`Web::send`]; also if a redirect is not allowed, leads to something other than an http:// or https://
    /// URL, or is one too many.
    pub async fn follow(&self, uri: &http::Uri, headers: HeaderMap, hops_max: u32) -> Result<WebResponse, WebError> {
        let mut url = error::parsed(&uri.to_string())?;
        let mut headers = headers;
        for _ in 0..=hops_max {
            let address = Address::of(url.clone())?;
            let answer =
                self.request_until(Method::GET, &address, headers.clone(), Bytes::new(), self.deadline()).await?;
            if !redirects(answer.parts.status) {
                return Ok(answer);
            }
            let Some(next) = target(&url, &answer.parts.headers)? else { return Ok(answer) };
            if url.scheme() == "https" && next.scheme() != "https" {
                let (from, to) = (error::host(&url), error::host(&next));
                return Err(WebError::refused(&to, &format!("is where {from} redirects to without TLS")));
            }
            if url.origin() != next.origin() {
                drop_credentials(&mut headers);
            }
            url = next;
        }
        Err(WebError::invalid(format!("{} redirects more than {hops_max} times", error::host(&url))))
    }
}

/// Whether a status is a redirect.
pub(super) fn redirects(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Returns the target of a redirect, if it has one.
pub(super) fn target(from: &Url, headers: &HeaderMap) -> Result<Option<Url>, WebError> {
    let Some(location) = headers.get(LOCATION) else { return Ok(None) };
    let next = location.to_str().ok().and_then(|location| from.join(location).ok());
    match next.filter(|next| matches!(next.scheme(), "http" | "https") && next.has_host()) {
        Some(next) => Ok(Some(next)),
        None => Err(WebError::invalid(format!(
            "{} redirects to something that is not an http:// or https:// URL",
            error::host(from)
        ))),
    }
}

fn drop_credentials(headers: &mut HeaderMap) {
    for name in [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION, DPOP] {
        headers.remove(name);
    }
    let marked: Vec<HeaderName> =
        headers.iter().filter(|(_, value)| value.is_sensitive()).map(|(name, _)| name.clone()).collect();
    for name in marked {
        headers.remove(name);
    }
}

const DPOP: HeaderName = HeaderName::from_static("dpop");
