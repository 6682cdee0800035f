//! `linchpin auth-server`: an authorization server alone, for MCP servers elsewhere.

use super::issuer::Place;
use super::place;
use super::store::StoreArgs;
use crate::fail::Failure;
use crate::log;
use crate::show::out::tell;
use clap::{Args, ValueHint};
use linchpin::Server;
use linchpin::issuer::{Issuer, Workload};
use linchpin::transport::{Admit, Bind as _, Gate, IntoService as _, Page, Refusal, http, shutdown_signal};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct AuthServerArgs {
    /// Serve on this address, for example 127.0.0.1:8932.
    #[arg(long, value_name = "ADDR")]
    http: String,

    /// The URL under which clients reach it: https, or http on this machine. It is in all tokens.
    #[arg(long, value_name = "URL")]
    issuer: String,

    /// The URL of an MCP server that tokens are for. May be repeated; clients then name one.
    #[arg(long, value_name = "URL", required = true)]
    resource: Vec<String>,

    /// Where users log in: login (with a code that is printed here), login:USERS.toml (see `linchpin user add`), or a
    /// provider: github, google, entra:TENANT, auth0:DOMAIN, okta:DOMAIN, keycloak:URL, workos:DOMAIN, oidc:URL, with
    /// LINCHPIN_CLIENT_ID and LINCHPIN_CLIENT_SECRET. Without it, only clients that act for themselves get tokens
    /// (`linchpin client add --own-scope`).
    #[arg(long, value_name = "HOW")]
    auth: Option<Place>,

    /// With a provider, allow only matching accounts: @example.com (a verified address), user:NAME, org:NAME,
    /// group:NAME or tenant:ID. May be repeated.
    #[arg(long, value_name = "RULE", requires = "auth")]
    allow: Vec<String>,

    /// A scope that clients can request, and its description for users. May be repeated.
    #[arg(long, value_name = "SCOPE[=WORDS]")]
    scope: Vec<String>,

    /// Grant scopes only to users that match a rule, as in group:admins=files:write. May be repeated.
    #[arg(long, value_name = "RULE=SCOPE,...", value_parser = granted, requires = "auth")]
    grant: Vec<(String, Vec<String>)>,

    /// The name shown to users [default: the host].
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,

    /// Lifetime of access tokens, at most 24h [default: 15m].
    #[arg(long, value_name = "TIME", value_parser = access_life)]
    access_life: Option<Duration>,

    /// Disable dynamic registration: only clients with a metadata document, and those of `linchpin client add`.
    #[arg(long)]
    no_registration: bool,

    /// Enable the device flow: devices without a browser show a code, which the user enters elsewhere.
    #[arg(long, requires = "auth")]
    device: bool,

    /// Accept assertions (ID-JAG) of this identity provider, by its issuer identifier. May be repeated.
    #[arg(long, value_name = "URL")]
    enterprise: Vec<String>,

    /// Accept tokens of a platform (workload identity): its issuer, the subject, and the scopes to grant,
    /// as in https://token.actions.githubusercontent.com,repo:acme/files:ref:refs/heads/main,files:read. May be repeated.
    #[arg(long, value_name = "URL,SUBJECT,SCOPE,...", value_parser = workload)]
    workload: Vec<Workload>,

    /// Accept redirect URIs with this scheme, for programs whose scheme has no dot. May be repeated.
    #[arg(long, value_name = "SCHEME")]
    redirect_scheme: Vec<String>,

    /// Believe this reverse proxy when it names the address of a client (X-Forwarded-For): guesses are counted by it. May be
    /// repeated.
    #[arg(long, value_name = "ADDRESS")]
    trusted_proxy: Vec<IpAddr>,

    /// Append a line of JSON for each login, token and refusal to this file (- for standard error). `linchpin audit FILE`
    /// shows it.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    audit: Option<PathBuf>,

    /// Serve HTTPS with the certificates in this PEM file. It is read again when it changes.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// The PEM file of the certificate's private key.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    #[command(flatten)]
    store: StoreArgs,
}

fn access_life(text: &str) -> Result<Duration, String> {
    let life = crate::duration::read(text)?;
    let is_fine = (Duration::from_secs(1)..=Duration::from_secs(86_400)).contains(&life);
    if is_fine { Ok(life) } else { Err("expected 1s to 24h".to_owned()) }
}

fn workload(text: &str) -> Result<Workload, String> {
    let mut parts = text.split(',');
    match (parts.next(), parts.next()) {
        (Some(issuer), Some(subject)) if issuer.starts_with("http") && !subject.is_empty() => {
            Ok(Workload::new(issuer).subject(subject).scopes(parts))
        }
        _ => Err("expected ISSUER_URL,SUBJECT,SCOPE,...".to_owned()),
    }
}

fn granted(text: &str) -> Result<(String, Vec<String>), String> {
    match text.rsplit_once('=') {
        Some((rule, scopes)) if !rule.is_empty() && !scopes.is_empty() => {
            Ok((rule.to_owned(), scopes.split(',').map(str::to_owned).collect()))
        }
        _ => Err("expected RULE=SCOPE, for example group:admins=files:write".to_owned()),
    }
}

impl AuthServerArgs {
    fn issuer(&self) -> Result<Issuer, Failure> {
        let issuer = Issuer::new(&*self.issuer).trusted_proxies(self.trusted_proxy.iter().copied());
        let mut issuer = self.store.of(issuer)?;
        for resource in &self.resource {
            issuer = issuer.resource(resource);
        }
        for scope in &self.scope {
            let (scope, words) = scope.split_once('=').unwrap_or((scope, ""));
            issuer = issuer.scope(scope, words);
        }
        for rule in &self.allow {
            issuer = issuer.allow(rule);
        }
        for (rule, scopes) in &self.grant {
            issuer = issuer.grant(rule, scopes);
        }
        for scheme in &self.redirect_scheme {
            issuer = issuer.redirect_scheme(scheme);
        }
        if let Some(name) = &self.name {
            issuer = issuer.name(name);
        }
        if let Some(life) = self.access_life {
            issuer = issuer.access_life(life);
        }
        if self.no_registration {
            issuer = issuer.without_registration();
        }
        for provider in &self.enterprise {
            issuer = issuer.enterprise(provider.as_str());
        }
        for workload in &self.workload {
            issuer = issuer.workload(workload.clone());
        }
        issuer = issuer.device(self.device);
        let issuer = match &self.auth {
            Some(place) => place.logs_in(issuer)?,
            None => issuer.only_machines(),
        };
        issuer.check().map_err(Failure::usage)?;
        Ok(issuer)
    }
}

/// The pages of an issuer, and nothing behind them: what it protects is elsewhere.
struct PagesOnly(Issuer);

impl Gate for PagesOnly {
    fn check(&self) -> Result<(), String> {
        Gate::check(&self.0)
    }

    fn admit(&self, _: &::http::request::Parts, _: Option<SocketAddr>) -> Admit {
        Admit::No(Refusal::new(::http::StatusCode::NOT_FOUND, "this is an authorization server, not an MCP server"))
    }

    fn missing(&self, path: &str, principal: Option<&linchpin::Principal>, scopes: &[Arc<str>]) -> Refusal {
        self.0.missing(path, principal, scopes)
    }

    fn page(&self, path: &str) -> Option<Arc<dyn Page>> {
        self.0.page(path)
    }
}

pub(crate) fn run(args: &AuthServerArgs) -> Result<(), Failure> {
    let audit = args.audit.as_deref().map(super::audit).transpose()?;
    if let Some(audit) = &audit {
        log::audit(audit);
    }
    let issuer = args.issuer()?;
    let tls = super::place::tls(args.tls_cert.as_deref(), args.tls_key.as_deref())?;
    let service = Server::new("authorization server", env!("CARGO_PKG_VERSION")).into_shared().map_err(Failure::new)?;
    let gate: Arc<dyn Gate> = Arc::new(PagesOnly(issuer));
    let mut place = http(args.http.as_str()).health().with_graceful_shutdown(shutdown_signal()).guard(gate);
    if let Some(host) = super::url::host(&args.issuer) {
        place = place.allow_host(host);
    }
    if let Some(tls) = tls {
        place = place.tls(tls);
    }
    let (url, resources) = (args.issuer.clone(), args.resource.join(", "));
    let place = place.on_ready(move |addr| {
        tell(&format!(
            "the authorization server {url} is listening on {addr}\nits tokens are for {resources}\n\nAn MCP server of this \
             program takes them with:\n  --auth {url} --public-url {}\n\nPress Ctrl-C to stop.\n",
            resources.split(", ").next().unwrap_or_default()
        ));
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Failure::new)?;
    runtime.block_on(place.serve(service)).map_err(|e| place::refused(&args.http, &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_give_scopes_are_read_as_they_are_written() {
        let rows = [
            ("group:admins=files:write,files:read", Some(("group:admins", 2))),
            ("@example.com=a", Some(("@example.com", 1))),
            ("group:admins", None),
            ("=a", None),
            ("x=", None),
        ];
        for (text, expected) in rows {
            let read = granted(text).ok();
            assert_eq!(read.as_ref().map(|(rule, scopes)| (rule.as_str(), scopes.len())), expected, "{text}");
        }
    }
}
