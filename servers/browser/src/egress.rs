//! Where the browser may go: one set of rules for the URLs that tools are given, for the requests that the browser
//! announces (CDP), and for the connections that it makes (the proxy).

use linchpin::transport::web::{ForwardProxy, Lookup, Web, WebError, WebErrorKind};
use linchpin_kit::{ErrorKind, ToolError, redact_urls};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use url::Url;

use crate::config::Config;

/// Refusals that are remembered, so that tools can say why a page did not load.
const REFUSALS_MAX: usize = 32;

/// The rules.
#[derive(Debug)]
pub(crate) struct Egress {
    web: Web,
    data_urls: bool,
    refusals: Mutex<VecDeque<(String, String)>>,
}

impl Egress {
    pub(crate) fn new(config: &Config) -> Self {
        Self::of(config, Web::new(config.web()))
    }

    /// The same with a custom name lookup.
    pub(crate) fn with_lookup(config: &Config, lookup: impl Lookup) -> Self {
        Self::of(config, Web::with_lookup(config.web(), lookup))
    }

    fn of(config: &Config, web: Web) -> Self {
        Self { web, data_urls: config.allow_data_urls, refusals: Mutex::default() }
    }

    /// Reads a URL that a tool was told to open.
    ///
    /// # Errors
    /// When it is none, of a scheme that is not of the web, or of a host that is not allowed.
    pub(crate) fn destination(&self, text: &str) -> Result<Url, ToolError> {
        let url = Url::parse(text.trim()).map_err(|e| {
            ToolError::invalid(format!("Cannot navigate to invalid URL: {e}"))
                .hint("Use an absolute URL such as https://example.com/.")
        })?;
        match url.scheme() {
            "http" | "https" => self.request(url.as_str()).map_err(|e| refused(&e))?,
            "about" if url.path() == "blank" => {}
            "data" if self.data_urls => {}
            "data" => {
                return Err(ToolError::denied("data: URLs are not opened")
                    .hint("The operator can allow them with --allow-data-urls."));
            }
            scheme => {
                return Err(ToolError::denied(format!("{scheme}: URLs are not opened"))
                    .hint("Only http and https are allowed."));
            }
        }
        Ok(url)
    }

    /// Whether the browser may request this URL, as far as it says without a name lookup.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn request(&self, url: &str) -> Result<(), WebError> {
        // Of these the browser makes no connection: they are a page's own.
        if ["data:", "blob:", "about:"].iter().any(|scheme| url.starts_with(scheme)) {
            return Ok(());
        }
        let allowed = self.web.allows(url);
        if let Err(e) = &allowed {
            self.note(url, e);
        }
        allowed
    }

    /// A proxy with these rules.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) async fn proxy(self: &Arc<Self>) -> std::io::Result<ForwardProxy> {
        let heard = self.clone();
        ForwardProxy::start(self.web.clone(), move |url, why| heard.note(url, why)).await
    }

    fn note(&self, url: &str, error: &WebError) {
        let Some(host) = Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned)) else { return };
        tracing::debug!(host, %error, "not connected");
        let mut all = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(known, _)| *known != host);
        if all.len() == REFUSALS_MAX {
            all.pop_front();
        }
        all.push_back((host, error.to_string()));
    }

    /// Why the host of this URL was not connected to the last time, if it was refused.
    pub(crate) fn refusal(&self, url: &str) -> Option<String> {
        let url = Url::parse(url).ok()?;
        let all = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().find(|(host, _)| Some(host.as_str()) == url.host_str()).map(|(_, why)| why.clone())
    }
}

/// The error of a refused URL.
fn refused(error: &WebError) -> ToolError {
    let kind = match error.kind() {
        WebErrorKind::Refused => ErrorKind::Denied,
        WebErrorKind::Timeout => ErrorKind::Timeout,
        _ => ErrorKind::Invalid,
    };
    let error = ToolError::new(redact_urls(&error.to_string())).kind(kind);
    match kind {
        ErrorKind::Denied => error.hint("The operator decides which hosts are reachable."),
        _ => error,
    }
}
