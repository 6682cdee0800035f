//! Configuration from flags and environment variables.

use crate::convert::worker::Converter;
use http::{HeaderName, HeaderValue};
use linchpin::transport::web::{HostRule, Proxy, Reach, WebOptions};
use linchpin_kit::{ToolChoice, ToolError, Vars};
use std::fmt;
use std::str::FromStr;

/// The configuration. The default behaves like the published server, plus the additions listed in the README.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// The `User-Agent` of all requests, instead of the two for tool and prompt (`--user-agent`).
    pub user_agent: Option<String>,
    /// Uses the `User-Agent` of the published server (`--legacy-ua`).
    pub legacy_ua: bool,
    /// Ignores robots.txt (`--ignore-robots-txt`).
    pub ignore_robots_txt: bool,
    /// The proxy for all requests, instead of those of the environment (`--proxy-url`).
    pub proxy_url: Option<Proxy>,
    /// Uses the proxies of the environment if `proxy_url` is not set. Default `true`.
    pub env_proxies: bool,
    /// Lets the proxy resolve names without address checks (`--proxy-trusts-dns`).
    pub proxy_trusts_dns: bool,
    /// Allows all addresses, including private and loopback ones (`--allow-private-ips`).
    pub allow_private_ips: bool,
    /// Hosts that may have private addresses (`--allow-private-host`).
    pub allow_private_hosts: Vec<HostRule>,
    /// Allowed hosts; empty means all (`--allow-host`).
    pub allow_hosts: Vec<HostRule>,
    /// Denied hosts; takes precedence over the others (`--deny-host`).
    pub deny_hosts: Vec<HostRule>,
    /// Allows `https` only (`--https-only`).
    pub https_only: bool,
    /// Maximum size of a page in bytes, decoded. Default 10 MiB (`--max-bytes`).
    pub max_bytes: usize,
    /// Timeout of a fetch including robots.txt, redirects and conversion, in milliseconds. Default 30,000 (`--timeout`,
    /// in seconds).
    pub timeout_ms: u64,
    /// How long a page is cached, in milliseconds; 0 disables the cache. Default 300,000 (`--cache-ttl`, in seconds).
    pub cache_ttl_ms: u64,
    /// Maximum retries if a server is busy, at most 3. Default 3 (`--retries`).
    pub retries_max: u32,
    /// Headers for specific hosts (`--header`).
    pub headers: Vec<HostHeader>,
    /// Uses the result formats of the published server where ours differ (`--compat`).
    pub compat: bool,
    /// Where HTML, feeds and PDF documents are converted. Default: in this process, which is for small pages only.
    pub converter: Converter,
    /// The enabled tools and their names.
    pub tools: ToolChoice,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            user_agent: None,
            legacy_ua: false,
            ignore_robots_txt: false,
            proxy_url: None,
            env_proxies: true,
            proxy_trusts_dns: false,
            allow_private_ips: false,
            allow_private_hosts: Vec::new(),
            allow_hosts: Vec::new(),
            deny_hosts: Vec::new(),
            https_only: false,
            max_bytes: 10 << 20,
            timeout_ms: 30_000,
            cache_ttl_ms: 300_000,
            retries_max: 3,
            headers: Vec::new(),
            compat: false,
            converter: Converter::default(),
            tools: ToolChoice::default(),
        }
    }
}

impl Config {
    /// Changes some of these options.
    ///
    /// ```
    /// # use linchpin_fetch::Config;
    /// let config = Config::default().with(|config| config.https_only = true);
    /// ```
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// The configuration from environment variables: `MCP_FETCH_` and the name of the flag in capitals. Lists are
    /// separated by commas, headers by newlines. Headers, and a proxy with a password, may also come from a file
    /// (`MCP_FETCH_HEADERS_FILE`) or the keyring (`MCP_FETCH_HEADERS_KEYRING`). Proxy variables (`HTTPS_PROXY`, …) are
    /// read for each request.
    ///
    /// # Errors
    /// When a variable is invalid. Errors never contain header values.
    pub fn from_env(vars: Vars<'_>) -> Result<Self, ToolError> {
        let mut config = Self { tools: vars.tool_choice("MCP_FETCH")?, ..Self::default() };
        config.user_agent = vars.text("MCP_FETCH_USER_AGENT");
        for (name, target) in [
            ("MCP_FETCH_LEGACY_UA", &mut config.legacy_ua),
            ("MCP_FETCH_IGNORE_ROBOTS_TXT", &mut config.ignore_robots_txt),
            ("MCP_FETCH_PROXY_TRUSTS_DNS", &mut config.proxy_trusts_dns),
            ("MCP_FETCH_ALLOW_PRIVATE_IPS", &mut config.allow_private_ips),
            ("MCP_FETCH_HTTPS_ONLY", &mut config.https_only),
            ("MCP_FETCH_COMPAT", &mut config.compat),
        ] {
            vars.switch(name, target)?;
        }
        if let Some(proxy) = vars.secret("MCP_FETCH_PROXY_URL")? {
            config.proxy_url = Some(read_proxy(proxy.reveal())?);
        }
        for (name, target) in [
            ("MCP_FETCH_ALLOW_PRIVATE_HOST", &mut config.allow_private_hosts),
            ("MCP_FETCH_ALLOW_HOST", &mut config.allow_hosts),
            ("MCP_FETCH_DENY_HOST", &mut config.deny_hosts),
        ] {
            *target = read_hosts(vars.list(name, ',').unwrap_or_default())?;
        }
        vars.number("MCP_FETCH_MAX_BYTES", &mut config.max_bytes)?;
        vars.number("MCP_FETCH_RETRIES", &mut config.retries_max)?;
        for (name, target) in
            [("MCP_FETCH_TIMEOUT", &mut config.timeout_ms), ("MCP_FETCH_CACHE_TTL", &mut config.cache_ttl_ms)]
        {
            let mut seconds = *target / 1_000;
            vars.number(name, &mut seconds)?;
            *target = seconds.saturating_mul(1_000);
        }
        let headers = vars.secret_lines("MCP_FETCH_HEADERS")?;
        config.headers = headers.iter().map(|line| line.reveal().parse()).collect::<Result<_, _>>()?;
        Ok(config)
    }

    /// The two user agents: of the tool, and of the prompt.
    pub(crate) fn user_agents(&self) -> Result<[HeaderValue; 2], ToolError> {
        if let Some(own) = &self.user_agent {
            let value = HeaderValue::from_str(own).map_err(|_| {
                ToolError::new("Invalid user agent").hint("Use printable ASCII characters without line breaks.")
            })?;
            return Ok([value.clone(), value]);
        }
        let name = |whom: &str| match self.legacy_ua {
            true => format!("ModelContextProtocol/1.0 ({whom}; +https://github.com/modelcontextprotocol/servers)"),
            // Also contains the token that robots.txt rules for MCP use.
            false => format!("LinchpinFetch/{} ({whom}; ModelContextProtocol/1.0)", env!("CARGO_PKG_VERSION")),
        };
        let value = |whom| HeaderValue::from_str(&name(whom)).map_err(|e| ToolError::new(e.to_string()));
        Ok([value("Autonomous")?, value("User-Specified")?])
    }

    /// The options of the HTTP client.
    pub(crate) fn web(&self) -> WebOptions {
        WebOptions::default().with(|web| {
            web.reach = if self.allow_private_ips { Reach::Any } else { Reach::Public };
            web.connect_ms_max = self.timeout_ms.min(10_000);
            web.request_ms_max = Some(self.timeout_ms);
            // One more than allowed, so that the limit of the reader applies first, with its own message.
            web.body_bytes_max = Some(self.max_bytes.saturating_add(1 << 20));
            web.proxy = self.proxy_url.clone();
            web.proxies = self.env_proxies;
            web.proxy_trusts_dns = self.proxy_trusts_dns;
            web.https_only = self.https_only;
            web.web_ports_only = true;
            web.only_hosts = self.allow_hosts.clone();
            web.deny_hosts = self.deny_hosts.clone();
            web.trusted_hosts = self.allow_private_hosts.clone();
            web.decompress = true;
            web.retries_max = self.retries_max;
        })
    }
}

/// Parses a proxy address: with a scheme, or as `host:port`. A single word is refused as a likely mistake.
///
/// # Errors
/// When it is invalid; the error does not contain a password.
pub fn read_proxy(text: &str) -> Result<Proxy, ToolError> {
    let host = text.trim().rsplit('@').next().unwrap_or_default();
    let port = host.trim_end_matches('/').rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    if !text.contains("://") && port.is_none() {
        return Err(ToolError::new(format!("invalid proxy: {host} (use http://host:port or socks5://host:port)")));
    }
    text.parse::<Proxy>().map_err(|e| ToolError::new(e.to_string()))
}

/// Parses hosts as in `--allow-host`, `--deny-host` and `--allow-private-host`.
///
/// # Errors
/// When one is invalid.
pub fn read_hosts(texts: impl IntoIterator<Item = String>) -> Result<Vec<HostRule>, ToolError> {
    texts.into_iter().map(|text| text.parse::<HostRule>().map_err(|e| ToolError::new(e.to_string()))).collect()
}

/// A header for one host: `HOST:NAME=VALUE`, the host with or without a port. The value is a secret: it is never
/// printed, is sent over `https` only (or to this machine itself), and is not sent to other hosts after a redirect.
#[derive(Clone)]
pub struct HostHeader {
    pub(crate) host: HostRule,
    pub(crate) name: HeaderName,
    pub(crate) value: HeaderValue,
}

impl FromStr for HostHeader {
    type Err = ToolError;

    fn from_str(text: &str) -> Result<Self, ToolError> {
        let bad = |what: &str| {
            ToolError::new(format!("Invalid header: {what}"))
                .hint("Write HOST:NAME=VALUE, for example example.com:Authorization=Bearer …")
        };
        // The text after `=` is never printed.
        let (left, value) = text.split_once('=').ok_or_else(|| bad("= is missing"))?;
        let (host, name) = left.rsplit_once(':').ok_or_else(|| bad(": is missing before the ="))?;
        let host: HostRule = host.parse().map_err(|_| bad("the host is invalid"))?;
        let name: HeaderName = name.trim().parse().map_err(|_| bad("the header name is invalid"))?;
        if REFUSED.contains(&name.as_str()) {
            return Err(bad("this header is set by the HTTP client"));
        }
        let mut value =
            HeaderValue::from_str(value.trim()).map_err(|_| bad("the value contains invalid characters"))?;
        value.set_sensitive(true);
        Ok(Self { host, name, value })
    }
}

impl fmt::Debug for HostHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostHeader").field("host", &self.host).field("name", &self.name).finish_non_exhaustive()
    }
}

const REFUSED: [&str; 6] = ["host", "content-length", "transfer-encoding", "connection", "te", "upgrade"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_says_what_flags_say() {
        let get = |name: &str| {
            let value = match name {
                "MCP_FETCH_USER_AGENT" => "Mine/1",
                "MCP_FETCH_IGNORE_ROBOTS_TXT" => "1",
                "MCP_FETCH_ALLOW_HOST" => "a.test, *.b.test",
                "MCP_FETCH_TIMEOUT" => "5",
                "MCP_FETCH_CACHE_TTL" => "0",
                "MCP_FETCH_MAX_BYTES" => "1000",
                "MCP_FETCH_PROXY_URL" => "socks://p:1",
                "MCP_FETCH_HEADERS" => "a.test:X-Key=hidden\nb.test:8443:Authorization=Bearer hid=den",
                _ => return None,
            };
            Some(value.to_owned())
        };
        let config = Config::from_env(Vars::new(&get)).unwrap();
        assert_eq!(config.user_agent.as_deref(), Some("Mine/1"));
        assert!(config.ignore_robots_txt && !config.allow_private_ips);
        assert_eq!((config.timeout_ms, config.cache_ttl_ms, config.max_bytes), (5_000, 0, 1_000));
        assert_eq!(config.allow_hosts.len(), 2);
        assert!(config.headers[1].host.matches("https://b.test:8443/"));
        assert_eq!(config.headers[1].value, "Bearer hid=den");
        assert!(!format!("{config:?}").contains("hid"), "{config:?}");
    }

    #[test]
    fn a_proxy_is_an_address_and_not_a_word() {
        for good in
            ["http://proxy", "socks5h://me:hid@proxy:1080", "proxy:3128", "me:hid@proxy:3128/", "HTTPS://[::1]:1"]
        {
            assert!(read_proxy(good).is_ok(), "{good}");
        }
        for bad in ["nope", "", "me:hid@nope", "proxy.test", "proxy:", "proxy:port", "ftp://me:hid@proxy:21", "http://"]
        {
            let error = read_proxy(bad).unwrap_err().to_string();
            assert!(error.contains("(use http://host:port or socks5://host:port)"), "{bad}: {error}");
            assert!(!error.contains("hid"), "{bad}: {error}");
        }
    }

    #[test]
    fn headers_that_make_no_sense_are_refused_without_their_value() {
        for bad in [
            "",
            "a.test",
            "a.test=hidden",
            "a.test:=hidden",
            ":X=hidden",
            "a.test:Host=hidden",
            "a/b:X=hidden",
            "a:X=hid\u{7}den",
        ] {
            let error = bad.parse::<HostHeader>().unwrap_err().to_string();
            assert!(!error.contains("hid"), "{error}");
        }
    }

    #[test]
    fn names_tell_tool_and_prompt_apart() {
        let names = |config: Config| config.user_agents().unwrap().map(|value| value.to_str().unwrap().to_owned());
        let [tool, prompt] = names(Config::default());
        assert!(tool.contains("(Autonomous; ModelContextProtocol/1.0)"), "{tool}");
        assert!(prompt.contains("(User-Specified; ModelContextProtocol/1.0)"), "{prompt}");
        let [tool, _] = names(Config { legacy_ua: true, ..Config::default() });
        assert!(tool.starts_with("ModelContextProtocol/1.0 (Autonomous; +https://"), "{tool}");
        assert!(Config { user_agent: Some("a\nb".to_owned()), ..Config::default() }.user_agents().is_err());
    }
}
