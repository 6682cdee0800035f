//! Configuration of a server for an API: the same for all of them.

use crate::Api;
use crate::api::KeyPlace;
use linchpin::transport::web::{HostRule, Proxy, WebOptions, is_loopback, roots_from_pem};
use linchpin_kit::{Secret, ToolChoice, ToolError, Vars};
use std::path::PathBuf;
use url::Url;

/// The configuration of a server for an API.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// The URL that all paths begin with, instead of the API's own (`--api-url`).
    pub api_url: Option<String>,
    /// The key.
    pub key: Option<Secret>,
    /// What the server is restricted to; empty is everything (`--only`).
    pub only: Vec<String>,
    /// Leaves out what people without rights wrote, where the API says who has them (`--lockdown`).
    pub lockdown: bool,
    /// Allows `http` for other hosts than this machine (`--allow-http`).
    pub allow_http: bool,
    /// A file of further root certificates, PEM (`--ca-file`).
    pub ca_file: Option<PathBuf>,
    /// The proxy for all requests, instead of those of the environment (`--proxy-url`).
    pub proxy: Option<Proxy>,
    /// Uses the proxies of the environment if `proxy` is not set. Default `true`.
    pub env_proxies: bool,
    /// How long a request may take with its turns and retries, in milliseconds. Default 30,000 (`--timeout`, in seconds).
    pub timeout_ms: u64,
    /// Longest response in bytes, decompressed. Default 10 MiB.
    pub body_bytes_max: usize,
    /// Retries when the server is busy, at most 3. Default 3.
    pub retries_max: u32,
    /// Shortest time between the beginnings of two requests, in milliseconds, instead of the API's (`--pace-ms`).
    pub pace_ms: Option<u64>,
    /// The enabled tools and their names.
    pub tools: ToolChoice,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            api_url: None,
            key: None,
            only: Vec::new(),
            lockdown: false,
            allow_http: false,
            ca_file: None,
            proxy: None,
            env_proxies: true,
            timeout_ms: 30_000,
            body_bytes_max: 10 << 20,
            retries_max: 3,
            pace_ms: None,
            tools: ToolChoice::default(),
        }
    }
}

impl Config {
    /// Changes some of these options.
    ///
    /// ```
    /// # use linchpin_rest::Config;
    /// let config = Config::default().with(|config| config.timeout_ms = 5_000);
    /// ```
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// The configuration from environment variables: the API's own for key and URL, and `MCP_` with the name of the service
    /// and of the flag in capitals (`MCP_GITHUB_TIMEOUT`) for the rest. Key and proxy may also come from a file (`…_FILE`) or
    /// the keyring (`…_KEYRING`).
    ///
    /// # Errors
    /// When a variable is invalid. Errors never contain the key.
    pub fn from_env(api: &Api, vars: Vars<'_>) -> Result<Self, ToolError> {
        let prefix = format!("MCP_{}", api.service.to_ascii_uppercase().replace('-', "_"));
        let name = |what: &str| format!("{prefix}_{what}");
        let mut config = Self { tools: vars.tool_choice(&prefix)?, ..Self::default() };
        config.key = vars.secret_of(api.key.variables)?;
        let own = api.base_variables.iter().find_map(|variable| vars.text(variable));
        config.api_url = vars.text(&name("API_URL")).or(own);
        config.only = vars.list(&name("ONLY"), ',').unwrap_or_default();
        vars.switch(&name("LOCKDOWN"), &mut config.lockdown)?;
        vars.switch(&name("ALLOW_HTTP"), &mut config.allow_http)?;
        config.ca_file = vars.path(&name("CA_FILE"));
        if let Some(proxy) = vars.secret(&name("PROXY_URL"))? {
            config.proxy = Some(read_proxy(proxy.reveal())?);
        }
        let mut seconds = config.timeout_ms / 1_000;
        vars.number(&name("TIMEOUT"), &mut seconds)?;
        config.timeout_ms = seconds.saturating_mul(1_000);
        let mut pace = u64::MAX;
        vars.number(&name("PACE_MS"), &mut pace)?;
        config.pace_ms = Some(pace).filter(|pace| *pace != u64::MAX);
        Ok(config)
    }

    /// The URL that all paths begin with.
    pub(crate) fn base(&self, api: &Api) -> Result<Url, ToolError> {
        let given = self.api_url.as_deref().unwrap_or(api.base);
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
    pub(crate) fn checked_key(&self, api: &Api) -> Result<Option<Secret>, ToolError> {
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

    /// The options of the HTTP client: it connects to the API's host only.
    pub(crate) fn web(&self, base: &Url) -> Result<WebOptions, ToolError> {
        let roots = match &self.ca_file {
            None => Vec::new(),
            Some(path) => {
                let bad = |e: String| ToolError::new(format!("{} cannot be read: {e}", path.display()));
                let pem = std::fs::read(path).map_err(|e| bad(e.to_string()))?;
                roots_from_pem(&pem).map_err(|e| bad(e.to_string()))?
            }
        };
        let host = match (base.host_str(), base.port_or_known_default()) {
            (Some(host), Some(port)) => format!("{host}:{port}"),
            _ => String::new(),
        };
        let host: HostRule = host.parse().map_err(|_| ToolError::new("Invalid URL of the API: its host is invalid"))?;
        Ok(WebOptions::default().with(|web| {
            web.only_hosts = vec![host];
            web.https_only = base.scheme() == "https";
            web.connect_ms_max = self.timeout_ms.min(10_000);
            web.body_bytes_max = Some(self.body_bytes_max);
            web.proxy = self.proxy.clone();
            web.proxies = self.env_proxies;
            web.decompress = true;
            web.extra_roots = roots;
        }))
    }
}

/// Reads the address of a proxy.
///
/// # Errors
/// When it is invalid; the error does not contain a password.
pub fn read_proxy(text: &str) -> Result<Proxy, ToolError> {
    text.parse::<Proxy>().map_err(|e| ToolError::new(e.to_string()))
}
