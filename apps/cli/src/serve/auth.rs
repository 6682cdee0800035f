//! Who may use a server over HTTP: `--auth` and its kin.

#[cfg(feature = "web")]
use super::issuer::{IssuerArgs, Place};
use super::place::Clients;
use super::url::{host, origin};
use crate::fail::Failure;
use crate::shell;
use clap::Args;
#[cfg(feature = "client")]
use clap::{ArgMatches, Command, FromArgMatches};
use linchpin::Server;
use linchpin::guard::{Guard, Keys, Scopes, TrustedIssuer};
#[cfg(feature = "web")]
use linchpin::issuer::Issuer;
use linchpin::transport::Gate;
use linchpin_kit::{Service, ToolChoice};
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

/// One `--auth`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Auth {
    /// One random token, which ends with the process.
    Token,
    /// The keys in a file.
    Keys(PathBuf),
    /// Access tokens of the authorization server with this URL.
    Issuer(String),
    /// A login at an authorization server of our own.
    #[cfg(feature = "web")]
    Login(Place),
}

impl FromStr for Auth {
    type Err = String;

    fn from_str(text: &str) -> Result<Auth, String> {
        match text.split_once(':') {
            None if text == "token" => Ok(Auth::Token),
            Some(("keys", file)) if !file.is_empty() => Ok(Auth::Keys(file.into())),
            Some(("https" | "http", rest)) if rest.starts_with("//") => Ok(Auth::Issuer(text.to_owned())),
            #[cfg(feature = "web")]
            _ => text.parse().map(Auth::Login).map_err(|_| EXPECTED.to_owned()),
            #[cfg(not(feature = "web"))]
            _ => Err(EXPECTED.to_owned()),
        }
    }
}

const EXPECTED: &str = "expected token, keys:FILE, login, login:USERS.toml, github, google, entra:TENANT, auth0:DOMAIN, \
                        okta:DOMAIN, keycloak:URL, workos:DOMAIN, oidc:URL, or the URL of an authorization server";

/// Who may use the server.
#[derive(Debug, Args)]
#[command(next_help_heading = "Authorization")]
pub(crate) struct AuthArgs {
    /// Require a token: token (a random one, printed at start), keys:FILE (see `linchpin auth key new`), or the
    /// URL of an authorization server; may be repeated. Or require a login: login (with a code that is printed),
    /// login:USERS.toml, or at a provider: github, google, entra:TENANT, auth0:DOMAIN, okta:DOMAIN, keycloak:URL,
    /// workos:DOMAIN, oidc:URL, with LINCHPIN_CLIENT_ID and LINCHPIN_CLIENT_SECRET. Opaque tokens are
    /// checked by introspection if LINCHPIN_INTROSPECTION_CLIENT_ID and LINCHPIN_INTROSPECTION_CLIENT_SECRET are set.
    #[arg(long, value_name = "HOW", requires = "http")]
    auth: Vec<Auth>,

    /// The URL under which clients reach the server, for example https://mcp.example.com/mcp. Access
    /// tokens must be issued for this URL.
    #[arg(long, value_name = "URL", requires = "http")]
    public_url: Option<String>,

    /// Also accept tokens of the authorization server for this audience, beside those for the public URL: an app id of Entra, an
    /// API identifier of Auth0. May be repeated.
    #[arg(long, value_name = "NAME", requires = "auth")]
    audience: Vec<String>,

    /// With auto, require the scope `read` for tools that only read, and `write` for all others.
    #[arg(long, value_name = "auto", value_parser = ["auto"], requires = "auth")]
    scopes: Option<String>,

    /// Require this scope for a tool, named as in --enable-tools. May be repeated.
    #[arg(long = "tool-scope", value_name = "TOOL=SCOPE", value_parser = tool_scope, requires = "auth")]
    tool_scope: Vec<(String, String)>,

    /// Listen beyond this machine without authorization: anyone who reaches the address can use the server.
    #[arg(long, requires = "http", conflicts_with = "auth")]
    no_auth_i_know: bool,

    /// Believe this reverse proxy when it names the address of a client (X-Forwarded-For): bad tokens and guesses are counted
    /// by it. May be repeated.
    #[arg(long, value_name = "ADDRESS", requires = "auth")]
    trusted_proxy: Vec<IpAddr>,

    #[cfg(feature = "web")]
    #[command(flatten)]
    issuer: IssuerArgs,
}

/// The same for a command that does not know its tools: those that set scopes of tools are hidden, and refused by
/// [`AuthArgs::without_scopes`].
#[cfg(feature = "client")]
#[derive(Debug)]
pub(crate) struct ToollessAuthArgs(pub(crate) AuthArgs);

#[cfg(feature = "client")]
impl Args for ToollessAuthArgs {
    fn augment_args(command: Command) -> Command {
        let command = AuthArgs::augment_args(command);
        command.mut_arg("scopes", |arg| arg.hide(true)).mut_arg("tool_scope", |arg| arg.hide(true))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

#[cfg(feature = "client")]
impl FromArgMatches for ToollessAuthArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<ToollessAuthArgs, clap::Error> {
        AuthArgs::from_arg_matches(matches).map(ToollessAuthArgs)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

fn tool_scope(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((tool, scope)) if !tool.is_empty() && !scope.is_empty() => Ok((tool.to_owned(), scope.to_owned())),
        _ => Err("expected TOOL=SCOPE".to_owned()),
    }
}

/// The gate of a server, and what clients need to pass it.
pub(crate) struct Protection {
    pub(crate) gate: Arc<dyn Gate>,
    pub(super) pass: Pass,
}

/// What clients send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pass {
    /// Nothing: there is no authorization.
    #[default]
    Nothing,
    /// This token.
    Token(String),
    /// A key that the operator gave out.
    Key,
    /// What they get by logging in, under this URL.
    Login(String),
}

impl fmt::Debug for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Protection").finish_non_exhaustive()
    }
}

impl AuthArgs {
    /// Sets the scopes of the server's tools.
    pub(crate) fn scoped(&self, server: Server) -> Result<Server, Failure> {
        if self.scopes.is_none() && self.tool_scope.is_empty() {
            return Ok(server);
        }
        let names = server.tools().names();
        if names.is_empty() {
            return Err(Failure::usage(
                "--scopes and --tool-scope are for tools, and this server has none: leave them out",
            ));
        }
        if let Some((tool, _)) = self.tool_scope.iter().find(|(tool, _)| !names.contains(tool)) {
            return Err(Failure::usage(format!("--tool-scope: there is no tool {tool}"))
                .hint(format!("tools: {}", names.join(", "))));
        }
        let auto = self.scopes.is_some();
        Ok(server.scopes_for_tools(|name, reads| {
            let own: Vec<String> =
                self.tool_scope.iter().filter(|(tool, _)| tool == name).map(|(_, scope)| scope.clone()).collect();
            match own.is_empty() && auto {
                true => vec![if reads { "read" } else { "write" }.to_owned()],
                false => own,
            }
        }))
    }

    /// Replaces the names of tools by those under which they are listed. Names of no tool are left to [`AuthArgs::scoped`].
    pub(super) fn find_tools(&mut self, servers: &[(&Service, &ToolChoice)]) -> Result<(), Failure> {
        for (tool, _) in &mut self.tool_scope {
            let found = servers.iter().filter_map(|(service, choice)| choice.exposed(service, tool));
            let found: Vec<String> = found.collect();
            match found.as_slice() {
                [one] => tool.clone_from(one),
                [_, _, ..] if !found.contains(tool) => {
                    return Err(Failure::usage(format!("--tool-scope: several servers have a tool named {tool}"))
                        .hint(format!("use one of: {}", found.join(", "))));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Refuses scopes of tools, for a command that does not know its tools.
    #[cfg(feature = "client")]
    pub(crate) fn without_scopes(&self) -> Result<(), Failure> {
        if self.scopes.is_none() && self.tool_scope.is_empty() {
            return Ok(());
        }
        Err(Failure::usage("--scopes and --tool-scope work with `linchpin serve` only").hint(
            "here every key and every token may call every tool; --no-tools of `linchpin bridge` hides tools from all",
        ))
    }

    /// Returns the gate for a server at this address. `None` if everybody may use it.
    pub(crate) fn protection(
        &self,
        clients: Clients,
        addr: &str,
        tls: bool,
        sse: bool,
    ) -> Result<Option<Protection>, Failure> {
        #[cfg(feature = "web")]
        if !self.auth.iter().any(|auth| matches!(auth, Auth::Login(_))) {
            if self.issuer.store.is_given() {
                return Err(Failure::usage("--store and its options are for logins: add --auth login, or a provider"));
            }
            if self.issuer.has_rules() {
                return Err(Failure::usage("--allow is for logins at a provider, and says nothing of tokens and keys")
                    .hint("add the provider, for example --auth github; who gets tokens of --auth URL is up to that server"));
            }
        }
        if self.auth.is_empty() {
            if clients == Clients::Anybody && !is_local(addr) && !self.no_auth_i_know {
                let why = format!("{addr} can be reached from other machines, and nobody would have to log in");
                return Err(Failure::usage(why)
                    .hint("add --auth token, --auth keys:FILE or --auth URL (an authorization server)")
                    .hint("or say that it is meant: --no-auth-i-know"));
            }
            return Ok(None);
        }
        if !self.audience.is_empty() && !self.auth.iter().any(|auth| matches!(auth, Auth::Issuer(_))) {
            return Err(Failure::usage("--audience is for tokens of an authorization server: add --auth URL"));
        }
        let url = self.url(addr, tls)?;
        let mut accepted = Accepted::default();
        let mut pass = Pass::Nothing;
        for auth in &self.auth {
            let own = match auth {
                Auth::Token => {
                    let (keys, token) = Keys::once("token", self.all_scopes());
                    accepted.keys.push(keys);
                    Pass::Token(token.expose().to_owned())
                }
                Auth::Keys(file) => {
                    let hint = || format!("create it with `linchpin auth key new NAME --file {}`", shell::path(file));
                    accepted.keys.push(Keys::file(file).map_err(|why| Failure::of_file(why, file, hint))?);
                    Pass::Key
                }
                #[cfg(feature = "web")]
                Auth::Login(_) => Pass::Login(url.clone().unwrap_or_default()),
                Auth::Issuer(issuer) => {
                    accepted.issuers.push(self.trusted(issuer)?);
                    Pass::Login(url.clone().unwrap_or_default())
                }
            };
            // What clients are told is the first.
            pass = if pass == Pass::Nothing { own } else { pass };
        }
        let sse = url.as_deref().filter(|_| sse).map(|url| format!("{}/sse", origin(url)));
        #[cfg(feature = "web")]
        if let Some(place) = self.login()? {
            let url = url.unwrap_or_default();
            let accept = move |issuer: Issuer| {
                sse.into_iter().fold(issuer, Issuer::also_at).accept(move |guard| accepted.clone().by(guard))
            };
            let gate = self.issuer.gate(place, &url, &self.all_scopes(), &self.trusted_proxy, accept)?;
            return Ok(Some(Protection { gate, pass }));
        }
        let guard = url.as_deref().map_or_else(Guard::for_keys, Guard::new);
        let guard = accepted.by(guard.trusted_proxies(self.trusted_proxy.iter().copied()));
        let guard = sse.into_iter().fold(guard, Guard::also_at);
        guard.check().map_err(Failure::usage)?;
        Ok(Some(Protection { gate: Arc::new(guard), pass }))
    }

    /// Where users log in, if they do.
    #[cfg(feature = "web")]
    fn login(&self) -> Result<Option<&Place>, Failure> {
        let mut places =
            self.auth.iter().filter_map(|auth| if let Auth::Login(place) = auth { Some(place) } else { None });
        let first = places.next();
        match places.next() {
            None => Ok(first),
            Some(_) => Err(Failure::usage("only one --auth can be a login")
                .hint("to offer several providers, name one that brokers them, such as Keycloak: --auth keycloak:URL")),
        }
    }

    /// An authorization server, and what is known of its tokens.
    fn trusted(&self, issuer: &str) -> Result<TrustedIssuer, Failure> {
        let issuer = self.audience.iter().fold(TrustedIssuer::new(issuer), TrustedIssuer::audience);
        #[cfg(feature = "web")]
        if let Some(introspection) = super::issuer::introspection()? {
            // The secret, and tokens, would go to both.
            if self.auth.iter().filter(|auth| matches!(auth, Auth::Issuer(_))).count() > 1 {
                let why = "introspection is for one authorization server, and --auth names several";
                return Err(Failure::usage(why).hint("serve twice, or unset LINCHPIN_INTROSPECTION_CLIENT_ID"));
            }
            return Ok(issuer.introspection(introspection));
        }
        Ok(issuer)
    }

    /// The URL that clients use, if it was given, and its host.
    pub(crate) fn public(&self) -> Result<Option<(&str, &str)>, Failure> {
        let Some(url) = self.public_url.as_deref() else { return Ok(None) };
        let is_web = url.starts_with("https://") || url.starts_with("http://");
        let host = host(url).filter(|_| is_web && !url.contains(|c: char| c.is_whitespace() || c.is_control()));
        host.map(|host| Some((url, host))).ok_or_else(|| {
            Failure::usage(format!("--public-url: {url} is not a usable URL"))
                .hint("for example --public-url https://mcp.example.com/mcp")
        })
    }

    /// The public URL. On this machine it is the address.
    fn url(&self, addr: &str, tls: bool) -> Result<Option<String>, Failure> {
        if self.public_url.is_some() {
            return Ok(self.public_url.clone());
        }
        if self.auth.iter().all(|auth| matches!(auth, Auth::Token | Auth::Keys(_))) {
            return Ok(None);
        }
        if is_local(addr) && !addr.ends_with(":0") {
            return Ok(Some(format!("{}://{addr}/mcp", if tls { "https" } else { "http" })));
        }
        Err(Failure::usage("this --auth needs --public-url, for example --public-url https://mcp.example.com/mcp")
            .hint("it is the URL that clients connect to, and that their tokens must be for"))
    }

    /// Every scope that a tool demands.
    fn all_scopes(&self) -> Scopes {
        let auto = if self.scopes.is_some() { &["read", "write"][..] } else { &[] };
        auto.iter().copied().chain(self.tool_scope.iter().map(|(_, scope)| scope.as_str())).collect()
    }
}

/// Who is let in without a login here.
#[derive(Clone, Default)]
struct Accepted {
    keys: Vec<Keys>,
    issuers: Vec<TrustedIssuer>,
}

impl Accepted {
    fn by(self, guard: Guard) -> Guard {
        let guard = self.keys.into_iter().fold(guard, Guard::keys);
        self.issuers.into_iter().fold(guard, Guard::issuer)
    }
}

/// Whether only programs of this machine reach an address.
fn is_local(addr: &str) -> bool {
    let host = addr.rsplit_once(':').map_or(addr, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    // What has no port is not an address at all, which is said elsewhere.
    host == "localhost" || !addr.contains(':') || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ways_in_are_read_as_they_are_written() {
        let rows = [
            ("token", Some(Auth::Token)),
            ("keys:a/keys.toml", Some(Auth::Keys("a/keys.toml".into()))),
            ("https://login.example.com/x", Some(Auth::Issuer("https://login.example.com/x".into()))),
            ("http://localhost:9", Some(Auth::Issuer("http://localhost:9".into()))),
            ("keys:", None),
            ("tokens", None),
            ("login.example.com", None),
            ("https:login", None),
        ];
        for (text, expected) in rows {
            assert_eq!(text.parse::<Auth>().ok(), expected, "{text}");
        }
    }

    #[test]
    fn a_public_url_is_checked_and_its_host_is_known_without_authorization() {
        #[derive(clap::Parser)]
        struct Line {
            #[arg(long)]
            http: Option<String>,
            #[command(flatten)]
            auth: AuthArgs,
        }
        for (url, host) in [
            ("https://mcp.example.com/mcp", Some("mcp.example.com")),
            ("http://mcp.example.com:8080", Some("mcp.example.com")),
            ("foo", None),
            ("ftp://mcp.example.com", None),
            ("https:///mcp", None),
            ("https://a b/mcp", None),
        ] {
            let line: Line = clap::Parser::parse_from(["x", "--http", "127.0.0.1:0", "--public-url", url]);
            assert_eq!(line.auth.public().ok().flatten().map(|(_, host)| host), host, "{url}");
            assert!(line.http.is_some());
        }
    }

    #[test]
    fn addresses_of_this_machine_are_told_from_others() {
        let rows = [
            ("127.0.0.1:1", true),
            ("[::1]:1", true),
            ("localhost:0", true),
            ("0.0.0.0:1", false),
            ("[::]:1", false),
            ("192.0.2.1:1", false),
            ("box:1", false),
            ("localhost.example.com:1", false),
        ];
        for (addr, expected) in rows {
            assert_eq!(is_local(addr), expected, "{addr}");
        }
    }
}
