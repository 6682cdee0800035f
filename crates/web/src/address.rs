//! Addresses of requests, parsed once.

use super::{WebError, error};
use http::Uri;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use url::{Position, Url};

/// A URL that was parsed once, for many requests to it. Cheap to clone. `Debug` shows the host alone.
///
/// ```
/// use linchpin_web::{Address, Web};
///
/// # async fn example(web: &Web) -> Result<(), linchpin_web::WebError> {
/// let address: Address = "https://example.com/mcp".parse()?;
/// for _ in 0..10 {
///     web.request_at(http::Method::GET, &address, http::HeaderMap::new(), bytes::Bytes::new()).await?;
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Address(Arc<Parsed>);

struct Parsed {
    url: Url,
    uri: Uri,
    host: String,
}

impl Address {
    pub(super) fn of(url: Url) -> Result<Address, WebError> {
        let host = error::host(&url);
        // A fragment is not sent.
        let uri = Uri::try_from(&url[..Position::AfterQuery])
            .map_err(|e| WebError::invalid(format!("the request to {host} cannot be sent: {e}")))?;
        Ok(Address(Arc::new(Parsed { url, uri, host })))
    }

    /// Returns the URL without its fragment.
    pub fn uri(&self) -> &Uri {
        &self.0.uri
    }

    pub(super) fn url(&self) -> &Url {
        &self.0.url
    }

    /// Host and, where it is not the usual one, port.
    pub(super) fn host(&self) -> &str {
        &self.0.host
    }
}

impl FromStr for Address {
    type Err = WebError;

    fn from_str(url: &str) -> Result<Address, WebError> {
        Address::of(error::parsed(url)?)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Address").field(&self.host()).finish()
    }
}
