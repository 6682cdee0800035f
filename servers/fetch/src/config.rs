//! Configuration from flags and environment variables.

use crate::convert::worker::Converter;
use http::{HeaderName, HeaderValue};
use linchpin::transport::web::{HostRule, Proxy, Reach, WebOptions};
use linchpin_kit::flag::{self, Flag};
use linchpin_kit::{ToolChoice, ToolError};
use std::fmt;
use std::str::FromStr;

linchpin_kit::options! {
    /// The configuration. The default behaves like the published server, plus the additions listed in the README.
    #[derive(Debug, Clone)]
    pub struct Config: "MCP_FETCH" {
        /// User-Agent header of all requests.
        ///
        /// Instead of the two for tool and prompt.
        pub user_agent: Option<String> = None => flag::text("TEXT").excludes(&["legacy-ua"]),
        /// Use the User-Agent header of the published server.
        pub legacy_ua: bool = false => flag::switch().excludes(&["user-agent"]),
        /// Ignore robots.txt.
        pub ignore_robots_txt: bool = false => flag::switch(),
        /// Proxy for all requests.
        ///
        /// Instead of those of the environment, which are read for each request.
        pub proxy_url: Option<Proxy> = None
            => flag::with("URL", |proxy, text| read_proxy(text).map(|read| *proxy = Some(read))).secret()
                .default("from HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY"),
        /// Uses the proxies of the environment if `proxy_url` is not set.
        pub env_proxies: bool = true,
        /// Let the proxy resolve host names, whose addresses are then not checked.
        pub proxy_trusts_dns: bool = false => flag::switch(),
        /// Allow every address, including private and loopback addresses.
        pub allow_private_ips: bool = false => flag::switch(),
        /// Allow this host to have private addresses: `example.test`, `example.test:8080`, `*.example.test`. May be
        /// repeated.
        pub allow_private_hosts: Vec<HostRule> = Vec::new() => hosts("allow-private-host"),
        /// Fetch from this host only. May be repeated.
        ///
        /// Empty means all.
        pub allow_hosts: Vec<HostRule> = Vec::new() => hosts("allow-host"),
        /// Never fetch from this host. May be repeated.
        ///
        /// Takes precedence over the others.
        pub deny_hosts: Vec<HostRule> = Vec::new() => hosts("deny-host"),
        /// Use https only.
        pub https_only: bool = false => flag::switch(),
        /// Maximum size of a page after decompression, in bytes.
        pub max_bytes: usize = 10 << 20 => flag::bytes(),
        /// Timeout of a fetch, in seconds.
        ///
        /// In milliseconds here; with robots.txt, redirects and conversion.
        pub timeout_ms: u64 = 30_000 => flag::seconds_in_ms().named("timeout"),
        /// How long pages are cached, in seconds; 0 disables the cache.
        pub cache_ttl_ms: u64 = 300_000 => flag::seconds_in_ms().named("cache-ttl"),
        /// Number of retries for a busy site, at most 3.
        pub retries_max: u32 = 3 => flag::number("N").named("retries"),
        /// Header for one host; its value is secret. May be repeated.
        ///
        /// In `MCP_FETCH_HEADERS` one per line.
        pub headers: Vec<HostHeader> = Vec::new()
            => flag::repeated_with("HOST:NAME=VALUE", '\n', str::parse).named("header").variable("MCP_FETCH_HEADERS")
                .secret().adds(),
        /// Match the published server's results where ours differ.
        pub compat: bool = false => flag::switch(),
        /// Where HTML, feeds and PDF documents are converted. By default in this process, which is for small pages only.
        pub converter: Converter = Converter::default(),
        /// The enabled tools and their names.
        pub tools: ToolChoice = ToolChoice::default() => flag::group(),
    }
}

fn hosts(name: &str) -> Flag<Vec<HostRule>> {
    flag::repeated_with("HOST", ',', read_host).named(name).host().adds()
}

impl Config {
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
    texts.into_iter().map(|text| read_host(&text)).collect()
}

fn read_host(text: &str) -> Result<HostRule, ToolError> {
    text.parse::<HostRule>().map_err(|e| ToolError::new(e.to_string()))
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
    use linchpin_kit::Vars;

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
