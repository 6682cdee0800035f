//! `--auth login` and `--auth github`, `google`, …: an authorization server of the program's own, in front of the server.

use super::keyring::keyring;
use super::store::StoreArgs;
use super::url::origin;
use crate::fail::Failure;
use crate::shell;
use clap::Args;
use linchpin::guard::{Introspection, Scopes};
use linchpin::issuer::{Issuer, Upstream, Users};
use linchpin::transport::Gate;
use linchpin_kit::Vars;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

/// Where users log in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Here: whoever reads the terminal, or the users of a file.
    Here(Option<PathBuf>),
    /// At a provider, and which account, tenant or URL of it.
    Provider(&'static str, String),
}

/// Providers, and what their names are followed by.
const PROVIDERS: [(&str, Option<&str>); 8] = [
    ("github", None),
    ("google", None),
    ("entra", Some("TENANT")),
    ("auth0", Some("DOMAIN")),
    ("okta", Some("DOMAIN")),
    ("keycloak", Some("URL of a realm")),
    ("workos", Some("DOMAIN")),
    ("oidc", Some("URL")),
];

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Place, String> {
        let (name, rest) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        if name == "login" && rest != Some("") {
            return Ok(Place::Here(rest.map(PathBuf::from)));
        }
        match (PROVIDERS.iter().find(|(known, _)| *known == name), rest) {
            (Some((known, None)), None) => Ok(Place::Provider(known, String::new())),
            (Some((known, Some(_))), Some(rest)) if !rest.is_empty() => Ok(Place::Provider(known, rest.to_owned())),
            (Some((known, Some(what))), _) => Err(format!("expected {known}:{what}")),
            _ => Err("not a place to log in at".to_owned()),
        }
    }
}

/// What an authorization server of the program's own is told.
#[derive(Debug, Args)]
pub(crate) struct IssuerArgs {
    /// With a provider, allow only matching accounts: @example.com (a verified address), user:NAME, org:NAME,
    /// group:NAME or tenant:ID. May be repeated.
    #[arg(long, value_name = "RULE", requires = "auth")]
    allow: Vec<String>,

    #[command(flatten)]
    pub(super) store: StoreArgs,
}

impl IssuerArgs {
    /// Whether it was said who may log in.
    pub(super) fn has_rules(&self) -> bool {
        !self.allow.is_empty()
    }

    /// Returns the gate of a server at `url`, whose tools demand these scopes; `accept` says who else is let in.
    pub(crate) fn gate(
        &self,
        place: &Place,
        url: &str,
        scopes: &Scopes,
        proxies: &[IpAddr],
        accept: impl FnOnce(Issuer) -> Issuer,
    ) -> Result<Arc<dyn Gate>, Failure> {
        let issuer = Issuer::new(origin(url)).resource(url).trusted_proxies(proxies.iter().copied());
        let mut issuer = self.store.of(issuer)?;
        for scope in scopes.iter() {
            let sentence = match scope {
                "read" => "use the tools that only read",
                "write" => "use the tools that change something",
                _ => "",
            };
            issuer = issuer.scope(scope, sentence);
        }
        for rule in &self.allow {
            issuer = issuer.allow(rule);
        }
        let issuer = place.logs_in(accept(issuer))?;
        issuer.check().map_err(Failure::usage)?;
        Ok(Arc::new(issuer))
    }
}

impl Place {
    /// Lets users log in there.
    pub(super) fn logs_in(&self, issuer: Issuer) -> Result<Issuer, Failure> {
        Ok(match self {
            Place::Here(None) => issuer.users(Users::once()),
            Place::Here(Some(file)) => {
                let hint = || format!("create it with `linchpin user add NAME --file {}`", shell::path(file));
                issuer.users(Users::file(file).map_err(|why| Failure::of_file(why, file, hint))?)
            }
            Place::Provider(name, at) => issuer.upstream(provider(name, at)?),
        })
    }
}

/// A client identifier and its secret, from these variables.
fn client(id: &str, secret: &str) -> Result<(Option<String>, Option<String>), Failure> {
    let get = |name: &str| std::env::var(name).ok();
    let vars = Vars::new(&get).keyring(&keyring);
    let known = vars.secret(secret).map_err(|error| Failure::usage(error.to_string()))?;
    Ok((vars.text(id), known.map(|secret| secret.reveal().to_owned())))
}

/// How an authorization server is asked about opaque tokens, if the variables for that are set. They are not those of a login's
/// provider, whose secret no other server may see.
pub(super) fn introspection() -> Result<Option<Introspection>, Failure> {
    const ID: &str = "LINCHPIN_INTROSPECTION_CLIENT_ID";
    const SECRET: &str = "LINCHPIN_INTROSPECTION_CLIENT_SECRET";
    match client(ID, SECRET)? {
        (Some(id), Some(secret)) => Ok(Some(Introspection::secret(id, secret))),
        (None, None) => Ok(None),
        (id, _) => {
            let missing = if id.is_some() { SECRET } else { ID };
            Err(Failure::usage(format!("{missing} is not set")).hint(format!("set both {ID} and {SECRET}, or neither")))
        }
    }
}

/// The provider, with the client that this program is there.
fn provider(name: &str, at: &str) -> Result<Upstream, Failure> {
    let unset = |what: &str, which: &str| {
        Failure::usage(format!("{what} is not set: the {which} of your OAuth app at {name}"))
            .hint("register one there, with the callback URL ORIGIN/callback, and set LINCHPIN_CLIENT_ID and LINCHPIN_CLIENT_SECRET")
    };
    let (id, secret) = client("LINCHPIN_CLIENT_ID", "LINCHPIN_CLIENT_SECRET")?;
    let id = id.ok_or_else(|| unset("LINCHPIN_CLIENT_ID", "client id"))?;
    let secret = secret.ok_or_else(|| unset("LINCHPIN_CLIENT_SECRET", "client secret"))?;
    Ok(match name {
        "github" => Upstream::github(id, secret),
        "google" => Upstream::google(id, secret),
        "entra" => Upstream::entra(at, id, secret),
        "auth0" => Upstream::auth0(at, id, secret),
        "okta" => Upstream::okta(at, id, secret),
        "keycloak" => Upstream::keycloak(at, id, secret),
        "workos" => Upstream::workos(at, id, secret),
        _ => Upstream::oidc(at, id, secret),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_to_log_in_at_are_read_as_they_are_written() {
        let rows = [
            ("login", Some(Place::Here(None))),
            ("login:users.toml", Some(Place::Here(Some("users.toml".into())))),
            ("github", Some(Place::Provider("github", String::new()))),
            ("keycloak:https://k/realms/m", Some(Place::Provider("keycloak", "https://k/realms/m".into()))),
            ("login:", None),
            ("github:x", None),
            ("entra", None),
            ("okta:", None),
            ("gitlab", None),
        ];
        for (text, expected) in rows {
            assert_eq!(text.parse::<Place>().ok(), expected, "{text}");
        }
    }
}
