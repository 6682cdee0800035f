//! Fetching for `gzip-file-as-resource`: through `linchpin::transport::web` only, from public addresses or from hosts
//! that the operator allowed.

use crate::Options;
use http::HeaderMap;
use linchpin::prelude::*;
use linchpin::transport::web::{HostRule, Lookup, NoHost, Reach, Web, WebError, WebErrorKind, WebOptions};
use std::time::Duration;

const REDIRECTS_MAX: u32 = 5;

/// Fetches within the operator's limits.
#[derive(Debug)]
pub(crate) struct Fetcher {
    web: Web,
}

impl Fetcher {
    pub(crate) fn new(options: &Options) -> Fetcher {
        Fetcher { web: Web::new(rules(options)) }
    }

    pub(crate) fn with_lookup(options: &Options, lookup: impl Lookup) -> Fetcher {
        Fetcher { web: Web::with_lookup(rules(options), lookup) }
    }

    /// Fetches a URL. Every redirect is checked like the first URL.
    pub(crate) async fn fetch(&self, options: &Options, url: &str) -> Result<Vec<u8>> {
        let uri: http::Uri = url.parse().map_err(|e| Error::tool(format!("`data` is not a valid URL: {e}")))?;
        let most = options.fetch_bytes_max;
        let work = async {
            let mut answer = self.web.follow(&uri, HeaderMap::new(), REDIRECTS_MAX).await?;
            let status = answer.parts.status;
            let body = if status.is_success() { answer.body.read_all(most).await? } else { Default::default() };
            Ok::<_, WebError>((status, body))
        };
        let done = tokio::time::timeout(Duration::from_millis(options.fetch_ms_max), work).await;
        match done {
            Err(_) => Err(Error::tool(format!("fetching took longer than {} ms", options.fetch_ms_max))),
            Ok(Err(e)) if e.kind() == WebErrorKind::Refused => Err(Error::tool(format!("refused: {e}"))),
            Ok(Err(e)) => Err(Error::tool(e.to_string())),
            Ok(Ok((status, body))) if status.is_success() => Ok(body.to_vec()),
            Ok(Ok((status, _))) => Err(Error::tool(format!("the server returned status {}", status.as_u16()))),
        }
    }
}

/// The allowed hosts. IP addresses in the list may be private, because they cannot be redirected by DNS; names may not.
fn rules(options: &Options) -> WebOptions {
    let lasting = |rule: &&HostRule| is_address(&rule.to_string());
    WebOptions::default().with(|web| {
        web.reach = Reach::Public;
        web.request_ms_max = Some(options.fetch_ms_max);
        web.body_bytes_max = Some(options.fetch_bytes_max);
        web.proxy_trusts_dns = false;
        web.web_ports_only = true;
        web.only_hosts = options.fetch_hosts.clone();
        web.trusted_hosts = options.fetch_hosts.iter().filter(lasting).cloned().collect();
    })
}

/// Parses a list of hosts as in `GZIP_ALLOWED_DOMAINS`: separated by commas; a name includes its subdomains.
///
/// # Errors
/// When one is invalid.
pub fn allowed_domains(list: &str) -> std::result::Result<Vec<HostRule>, NoHost> {
    let domains = list.split(',').map(str::trim).filter(|domain| !domain.is_empty());
    let rule = |domain: &str| match is_address(domain) || domain.starts_with(['.', '*']) {
        true => domain.parse(),
        false => format!(".{domain}").parse(),
    };
    domains.map(rule).collect()
}

/// Whether a host is an IP address, or this machine by name, so that DNS cannot change it.
fn is_address(host: &str) -> bool {
    let host = if host.starts_with('[') { host } else { host.rsplit_once(':').map_or(host, |(host, _)| host) };
    host.starts_with('[') || host == "localhost" || host.parse::<std::net::IpAddr>().is_ok()
}
