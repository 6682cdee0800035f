//! Configuration of a server for an API: the same for all of them.

use crate::profile::{Base, KeyPlace, Profile};
use linchpin::transport::web::{HostRule, Proxy, WebOptions, is_loopback, roots_from_pem};
use linchpin_kit::{Secret, ToolChoice, ToolError, flag};
use std::path::PathBuf;
use url::Url;

linchpin_kit::options! {
    /// The configuration of a server for an API: a group in that server's own, see [`Config::settle_for`].
    #[derive(Debug, Clone)]
    pub struct Config {
        /// URL that all requests begin with, instead of the API's own.
        pub api_url: Option<String> = None => flag::url("URL"),
        /// URLs of the API's [further bases](crate::Api::bases), by their names. For an option of the server's own.
        pub base_urls: Vec<(&'static str, String)> = Vec::new(),
        /// The key.
        pub key: Option<Secret> = None,
        /// How the key is sent instead of as the API says: the name of a header, and what comes before the key. For an option of
        /// the server's own.
        pub key_header: Option<(&'static str, &'static str)> = None,
        /// What the server is restricted to; empty is everything. Servers have an option of their own for it.
        pub only: Vec<String> = Vec::new(),
        /// Values of arguments that callers leave out, by the arguments' names: such as an organization. Servers have options of
        /// their own for them.
        pub defaults: Vec<(&'static str, String)> = Vec::new(),
        /// Leaves out what people without rights wrote, where the API says who has them. For an option of the server's own.
        pub lockdown: bool = false,
        /// Allow an http:// URL of another machine: keys are then sent without encryption.
        pub allow_http: bool = false => flag::switch(),
        /// File of additional root certificates, PEM.
        pub ca_file: Option<PathBuf> = None => flag::file("FILE"),
        /// Proxy for all requests.
        pub proxy_url: Option<Proxy> = None
            => flag::with("URL", |proxy, text| read_proxy(text).map(|read| *proxy = Some(read))).secret()
                .default("from HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY"),
        /// Uses the proxies of the environment if `proxy_url` is not set.
        pub env_proxies: bool = true,
        /// Timeout of a request with its turn and its retries, in seconds.
        ///
        /// In milliseconds here.
        pub timeout_ms: u64 = 30_000 => flag::seconds_in_ms().named("timeout"),
        /// Longest response in bytes, decompressed.
        pub body_bytes_max: usize = 10 << 20,
        /// Retries when the server is busy, at most 3.
        pub retries_max: u32 = 3,
        /// Shortest time between two requests, in milliseconds.
        ///
        /// Instead of the API's.
        pub pace_ms: Option<u64> = None => flag::maybe_number("MS").default("what the API allows everybody"),
        /// The enabled tools and their names.
        pub tools: ToolChoice = ToolChoice::default() => flag::group(),
    }
}

impl Config {
    /// The URL that all paths begin with.
    pub(crate) fn base(&self, api: &Profile) -> Result<Url, ToolError> {
        self.checked_url(self.api_url.as_deref().unwrap_or(api.base))
    }

    /// The URL of a further base. If the API's own was replaced, it is below that one.
    pub(crate) fn further_base(&self, api: &Profile, base: &Base) -> Result<Url, ToolError> {
        if let Some((_, url)) = self.base_urls.iter().find(|(name, _)| *name == base.name) {
            return self.checked_url(url);
        }
        if self.api_url.is_none() {
            return self.checked_url(base.url);
        }
        let mut url = self.base(api)?;
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().push(base.name);
        }
        Ok(url)
    }

    fn checked_url(&self, given: &str) -> Result<Url, ToolError> {
        let bad = |why: &str| ToolError::new(format!("Invalid URL of the API: {why}")).hint("Write https://host/path.");
        // It may have a password, which is not shown.
        let url = Url::parse(given).map_err(|e| bad(&e.to_string()))?;
        if !url.has_host() || !matches!(url.scheme(), "http" | "https") {
            return Err(bad("it is not an https:// URL"));
        }
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
            return Err(bad("it has more than a host and a path"));
        }
        if url.scheme() == "http" && !self.allow_http && !is_loopback(given) {
            return Err(bad("requests would be sent without TLS").hint("Use https://, or --allow-http."));
        }
        Ok(url)
    }

    /// The key, which is there if the API demands one.
    pub(crate) fn checked_key(&self, api: &Profile) -> Result<Option<Secret>, ToolError> {
        let names = api.key.variables;
        match (&self.key, api.key.place) {
            (_, KeyPlace::None) => Ok(None),
            (None, _) if !api.key.optional => {
                Err(ToolError::new(format!("{} environment variable is required", names.join(" or ")))
                    .hint(format!("{} Or name a file with {}_FILE.", api.key.obtain, names[0]).trim_start()))
            }
            (None, _) => Ok(None),
            (Some(key), _)
                if key.reveal().is_empty() || !key.reveal().bytes().all(|b| b.is_ascii_graphic() || b == b' ') =>
            {
                Err(ToolError::new(format!("{} is not a valid key", names[0]))
                    .hint("It has characters that no key has."))
            }
            (Some(key), _) => Ok(Some(key.clone())),
        }
    }

    /// The options of the HTTP client, with the proxy and the certificates of this configuration: it connects to the hosts of
    /// these URLs only. For servers that ask others too, for example for tokens.
    ///
    /// # Errors
    /// When the file of certificates cannot be read, or a URL has no host.
    pub fn web<'a>(&self, bases: impl Iterator<Item = &'a Url> + Clone) -> Result<WebOptions, ToolError> {
        let roots = match &self.ca_file {
            None => Vec::new(),
            Some(path) => {
                let bad = |e: String| ToolError::new(format!("{} cannot be read: {e}", path.display()));
                let pem = std::fs::read(path).map_err(|e| bad(e.to_string()))?;
                roots_from_pem(&pem).map_err(|e| bad(e.to_string()))?
            }
        };
        let host = |base: &Url| {
            let host = match (base.host_str(), base.port_or_known_default()) {
                (Some(host), Some(port)) => format!("{host}:{port}"),
                _ => String::new(),
            };
            host.parse().map_err(|_| ToolError::new("Invalid URL of the API: its host is invalid"))
        };
        let hosts = bases.clone().map(host).collect::<Result<Vec<HostRule>, _>>()?;
        let https_only = bases.into_iter().all(|base| base.scheme() == "https");
        Ok(WebOptions::default().with(|web| {
            web.only_hosts = hosts;
            web.https_only = https_only;
            web.connect_ms_max = self.timeout_ms.min(10_000);
            web.body_bytes_max = Some(self.body_bytes_max);
            web.proxy = self.proxy_url.clone();
            web.proxies = self.env_proxies;
            web.decompress = true;
            web.extra_roots = roots;
        }))
    }
}

/// Reads the address of a proxy. The error does not contain a password.
fn read_proxy(text: &str) -> Result<Proxy, ToolError> {
    text.parse::<Proxy>().map_err(|e| ToolError::new(e.to_string()))
}
