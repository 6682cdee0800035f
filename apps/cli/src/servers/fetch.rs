//! `linchpin serve fetch`.

use super::{Main, Native};
use clap::Args;
use linchpin::Server;
use linchpin_fetch::{Config, Converter, Fetch, SERVICE, convert_stdin, read_hosts, read_proxy};
use linchpin_kit::{Service, ToolChoice, ToolError, Vars};
use std::convert::Infallible;
use std::ffi::OsString;
use std::fmt;
use std::process::ExitCode;
use std::str::FromStr;

/// The command that the server gives this very program to convert a page. It is not for people.
const CONVERT: &str = "__convert";

/// Converts the page on standard input, if that is what these words say.
pub(crate) fn converts(given: &[OsString]) -> Option<ExitCode> {
    let asked = given.len() == 2 && given[1] == CONVERT;
    asked.then(|| convert_stdin().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS))
}

#[derive(Debug, Args)]
pub(crate) struct FetchArgs {
    /// User-Agent header of all requests, for models and users alike.
    #[arg(long, value_name = "TEXT")]
    user_agent: Option<String>,

    /// Use the User-Agent header of the published server.
    #[arg(long)]
    legacy_ua: bool,

    /// Ignore robots.txt.
    #[arg(long)]
    ignore_robots_txt: bool,

    /// Proxy for all requests [default: from HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY].
    #[arg(long, value_name = "URL")]
    proxy_url: Option<Hidden>,

    /// Let the proxy resolve host names that cannot be checked here.
    #[arg(long)]
    proxy_trusts_dns: bool,

    /// Allow every address, including private and loopback addresses.
    #[arg(long)]
    allow_private_ips: bool,

    /// Allow this host to resolve to a private address: example.test, example.test:8080, *.example.test. May be repeated.
    #[arg(long, value_name = "HOST")]
    allow_private_host: Vec<String>,

    /// Fetch from these hosts only. May be repeated.
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,

    /// Never fetch from this host. May be repeated.
    #[arg(long, value_name = "HOST")]
    deny_host: Vec<String>,

    /// Use https only.
    #[arg(long)]
    https_only: bool,

    /// Header for one host; its value is secret. May be repeated. MCP_FETCH_HEADERS_FILE keeps it off the command line.
    #[arg(long, value_name = "HOST:NAME=VALUE")]
    header: Vec<Hidden>,

    /// Maximum page size after decompression [default: 10 MiB].
    #[arg(long, value_name = "BYTES")]
    max_bytes: Option<usize>,

    /// Timeout of a fetch, in seconds [default: 30].
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,

    /// How long pages are cached, in seconds; 0 disables the cache [default: 300].
    #[arg(long, value_name = "SECONDS")]
    cache_ttl: Option<u64>,

    /// Number of retries for a busy site, at most 3 [default: 3].
    #[arg(long, value_name = "N")]
    retries: Option<u32>,

    /// Match the published server exactly, without this server's improvements.
    #[arg(long)]
    compat: bool,
}

/// A value that may be secret.
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
    const ABOUT: &'static str = "Web pages as text, without access to private networks";
    const EXAMPLES: &'static str = "  \
  linchpin serve fetch
  linchpin serve fetch --allow-host docs.rs --allow-host '*.example.org'
  linchpin serve fetch --allow-private-host wiki.internal
";
    const NOTES: &'static str = "Each flag has an equivalent environment variable, MCP_FETCH_ and its name (headers: \
                                 MCP_FETCH_HEADERS, one per line); the command line takes precedence. MCP_FETCH_HEADERS_FILE names a file \
                                 of headers, MCP_FETCH_HEADERS_KEYRING=SERVICE/ACCOUNT an entry of the keyring (in programs \
                                 built with the feature keyring).";
    const SERVICE: Service = SERVICE;
    const MAIN: Main = Main::Nothing;
    const SECRETS: &'static [&'static str] = &["header"];

    type Config = Config;

    fn config(self, vars: Vars<'_>) -> Result<Config, ToolError> {
        let mut config = Config::from_env(vars)?;
        config.converter = Converter::this_program([CONVERT]).unwrap_or_default();
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

    fn add(config: Config, server: Server) -> Result<(Server, Vec<String>), ToolError> {
        let (fetch, warnings) = Fetch::open(config)?;
        Ok((fetch.add_to(server)?.state(()), warnings))
    }
}
