//! `linchpin serve fetch`.

use super::{Main, Native};
use clap::Args;
use linchpin::server::Server;
use linchpin_fetch::{Config, Fetch, SERVICE, read_hosts, read_proxy};
use linchpin_kit::{Fault, Service, ToolChoice, Vars};
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

#[derive(Debug, Args)]
pub(crate) struct FetchArgs {
    /// The name the server goes by with web sites, for models and people alike.
    #[arg(long, value_name = "TEXT")]
    user_agent: Option<String>,

    /// Go by the name of the published server.
    #[arg(long)]
    legacy_ua: bool,

    /// Fetch what robots.txt asks programs not to.
    #[arg(long)]
    ignore_robots_txt: bool,

    /// A proxy for all requests [default: those of HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY].
    #[arg(long, value_name = "URL")]
    proxy_url: Option<Hidden>,

    /// Let the proxy look names up that cannot be checked here.
    #[arg(long)]
    proxy_trusts_dns: bool,

    /// Allow every address, private ones and this machine too.
    #[arg(long)]
    allow_private_ips: bool,

    /// Allow this host to lie at a private address: example.test, example.test:8080, *.example.test. May be repeated.
    #[arg(long, value_name = "HOST")]
    allow_private_host: Vec<String>,

    /// Fetch from these hosts only. May be repeated.
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,

    /// Never fetch from this host. May be repeated.
    #[arg(long, value_name = "HOST")]
    deny_host: Vec<String>,

    /// Speak https only.
    #[arg(long)]
    https_only: bool,

    /// A header for one host; its value is a secret. May be repeated. MCP_FETCH_HEADERS_FILE keeps it off the command line.
    #[arg(long, value_name = "HOST:NAME=VALUE")]
    header: Vec<Hidden>,

    /// Longest page, unpacked [default: 10 MiB].
    #[arg(long, value_name = "BYTES")]
    max_bytes: Option<usize>,

    /// How long a fetch may take, in seconds [default: 30].
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,

    /// How long pages are kept, in seconds; 0 keeps none [default: 300].
    #[arg(long, value_name = "SECONDS")]
    cache_ttl: Option<u64>,

    /// How often a busy site is asked again, at most 3 [default: 3].
    #[arg(long, value_name = "N")]
    retries: Option<u32>,

    /// Answer exactly like the published server where ours improves on it.
    #[arg(long)]
    compat: bool,
}

/// What may hold a secret.
#[derive(Clone)]
struct Hidden(String);

impl FromStr for Hidden {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Hidden, Infallible> {
        Ok(Hidden(text.to_owned()))
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl Native for FetchArgs {
    const NAME: &'static str = "fetch";
    const TITLE: &'static str = "Fetch";
    const ABOUT: &'static str = "Web pages, and no way into private networks";
    const EXAMPLES: &'static str = "  \
  linchpin serve fetch
  linchpin serve fetch --allow-host docs.example.com --allow-host '*.example.org'
  linchpin serve fetch --allow-private-host wiki.internal
";
    const NOTES: &'static str = "Each flag has an environment variable of the same meaning, MCP_FETCH_ and its name (headers: \
                                 MCP_FETCH_HEADERS, a line each); the command line wins. MCP_FETCH_HEADERS_FILE names a file \
                                 of headers, MCP_FETCH_HEADERS_KEYRING=SERVICE/ACCOUNT an entry of the keyring (in programs \
                                 built with the feature keyring).";
    const SERVICE: Service = SERVICE;
    const MAIN: Main = Main::Nothing;
    const SECRETS: &'static [&'static str] = &["header"];

    type Config = Config;

    fn config(self, vars: Vars<'_>) -> Result<Config, Fault> {
        let mut config = Config::from_env(vars)?;
        if self.user_agent.is_some() {
            config.user_agent = self.user_agent;
        }
        if let Some(proxy) = &self.proxy_url {
            config.proxy_url = Some(read_proxy(&proxy.0)?);
        }
        for (given, set) in [
            (self.legacy_ua, &mut config.legacy_ua),
            (self.ignore_robots_txt, &mut config.ignore_robots_txt),
            (self.proxy_trusts_dns, &mut config.proxy_trusts_dns),
            (self.allow_private_ips, &mut config.allow_private_ips),
            (self.https_only, &mut config.https_only),
            (self.compat, &mut config.compat),
        ] {
            *set |= given;
        }
        for (given, set) in [
            (self.allow_private_host, &mut config.allow_private_hosts),
            (self.allow_host, &mut config.allow_hosts),
            (self.deny_host, &mut config.deny_hosts),
        ] {
            set.extend(read_hosts(given)?);
        }
        for header in &self.header {
            config.headers.push(header.0.parse()?);
        }
        if let Some(bytes) = self.max_bytes {
            config.max_bytes = bytes;
        }
        if let Some(seconds) = self.timeout {
            config.timeout_ms = seconds.saturating_mul(1_000);
        }
        if let Some(seconds) = self.cache_ttl {
            config.cache_ttl_ms = seconds.saturating_mul(1_000);
        }
        if let Some(retries) = self.retries {
            config.retries_max = retries;
        }
        Ok(config)
    }

    fn choice(config: &mut Config) -> &mut ToolChoice {
        &mut config.tools
    }

    fn add(config: Config, server: Server) -> Result<(Server, Vec<String>), Fault> {
        let (fetch, warnings) = Fetch::open(config)?;
        Ok((fetch.add_to(server)?.state(()), warnings))
    }
}
