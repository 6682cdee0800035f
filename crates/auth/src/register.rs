//! Which client to be at an authorization server.
//!
//! Specification: "Client Registration": a pre-registered client, else the client metadata document, else dynamic
//! registration, else an error that says what the user can do.

use crate::address;
use crate::client::{Client, Credential, Method};
use crate::config::Config;
use crate::error::{Error, Kind, quote};
use crate::fetch::{Asker, JSON, is_good};
use crate::metadata;
use crate::store::Registered;
use http::HeaderMap;
use linchpin_oauth::{AuthorizationServerMetadata as Server, OFFLINE_ACCESS, Scopes, Secret};
use serde_json::{Value, json};
use url::Url;

/// The metadata of a new registration.
pub(crate) struct RegistrationMetadata<'a> {
    pub(crate) redirect_uri: &'a str,
    pub(crate) scopes: Option<&'a Scopes>,
}

/// The client to log in with; registers one if that is the way. `stored` is what an earlier registration with the same
/// authorization server left.
pub(crate) async fn client(
    config: &Config,
    asker: &Asker,
    server: &Server,
    stored: Option<&Registered>,
    metadata: &RegistrationMetadata<'_>,
) -> Result<Client, Error> {
    if let Some(client) = standing(config, server)? {
        return Ok(client);
    }
    let fits = |client: &&Registered| client.redirect_uris.iter().any(|uri| uri == metadata.redirect_uri);
    if let Some(client) = stored.filter(fits).and_then(|stored| remembered(stored, config.now())) {
        return Ok(client);
    }
    register(config, asker, server, metadata).await
}

/// The client that tokens were given to, for asking for more of them.
pub(crate) fn known(config: &Config, server: &Server, stored: Option<&Registered>) -> Result<Option<Client>, Error> {
    let dynamic = stored.and_then(|stored| remembered(stored, config.now()));
    dynamic.map_or_else(|| standing(config, server), |client| Ok(Some(client)))
}

/// A client that needs no registration: pre-registered, or with a client metadata document.
fn standing(config: &Config, server: &Server) -> Result<Option<Client>, Error> {
    let ours = config.pre_registered.iter().find(|client| client.is_for(&server.issuer));
    if let Some(ours) = ours {
        return Client::new(&ours.id, &ours.credential, server).map(Some);
    }
    // Credentials of one server are invalid at another, and sending them there would leak them.
    if let Some(other) = config.pre_registered.first() {
        let theirs = other.issuer.clone().unwrap_or_default();
        return Err(Error::unregistered(format!(
            "the client was registered beforehand with {theirs}, but the server now names the authorization server {}: \
             register the client there too and add it with pre_registered(Some({:?}), …), or leave pre_registered out",
            server.issuer, server.issuer
        )));
    }
    let Some(document) = config.client_metadata_url.as_deref().filter(|_| server.client_id_metadata_document_supported)
    else {
        return Ok(None);
    };
    if !is_document_address(document) {
        return Err(Error::setup("the address of the client metadata document must be https and have a path"));
    }
    let credential = match &config.client_key {
        Some(key)
            if server
                .token_endpoint_auth_methods_supported
                .as_ref()
                .is_none_or(|all| all.iter().any(|m| m == Method::Jwt.name())) =>
        {
            Credential::Key(key.clone())
        }
        _ => Credential::None,
    };
    Client::new(document, &credential, server).map(Some)
}

fn is_document_address(address: &str) -> bool {
    Url::parse(address).is_ok_and(|url| url.scheme() == "https" && url.path() != "/" && url.fragment().is_none())
}

/// A client registered earlier, if it has not ended.
fn remembered(stored: &Registered, now: u64) -> Option<Client> {
    let ended = stored.client_secret_expires_at.is_some_and(|at| at != 0 && at <= now);
    (!ended).then(|| from_registration(stored.clone()))?.ok()
}

fn from_registration(registered: Registered) -> Result<Client, Error> {
    let (default, credential) = match &registered.client_secret {
        Some(secret) => (Method::Basic, Credential::Secret(secret.clone())),
        None => (Method::None, Credential::None),
    };
    let method = match registered.token_endpoint_auth_method.as_deref() {
        None => default,
        Some(name) => match Method::named(name) {
            Some(Method::None) => Method::None,
            Some(method @ (Method::Basic | Method::Post)) if registered.client_secret.is_some() => method,
            _ => {
                let why = format!(
                    "the authorization server registered the client for {}, which it cannot do",
                    quote(name, &[])
                );
                return Err(Error::new(Kind::Registration, why));
            }
        },
    };
    Ok(Client { id: registered.client_id.clone(), credential, method, registered: Some(registered) })
}

/// Dynamic client registration (RFC 7591).
async fn register(
    config: &Config,
    asker: &Asker,
    server: &Server,
    metadata: &RegistrationMetadata<'_>,
) -> Result<Client, Error> {
    let Some(endpoint) = &server.registration_endpoint else {
        let document =
            if server.client_id_metadata_document_supported { ", or set client_metadata_url(…)" } else { "" };
        return Err(Error::unregistered(format!(
            "the authorization server {} does not register clients by itself: register one with its operator and add \
             it with pre_registered(Some({:?}), client id, client secret){document}",
            server.issuer, server.issuer
        )));
    };
    let method = wanted_method(server)?;
    let mut request = json!({
        "client_name": config.client_name,
        "redirect_uris": [metadata.redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "application_type": application_type(metadata.redirect_uri),
    });
    if let Some(method) = method {
        request["token_endpoint_auth_method"] = json!(method.name());
    }
    if let Some(scopes) = metadata.scopes {
        request["scope"] = json!(scopes.to_string());
    }
    let what = "the registration endpoint";
    let body = request.to_string().into();
    let answer = asker.post(what, endpoint, JSON, HeaderMap::new(), body).await?;
    let document: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
    if !is_good(answer.status()) {
        return Err(refused(server, answer.status().as_u16(), &document));
    }
    let text = |name: &str| document.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let Some(id) = text("client_id") else {
        let why = format!("the authorization server {} registered the client but gave it no client_id", server.issuer);
        return Err(Error::new(Kind::Registration, why));
    };
    let method = text("token_endpoint_auth_method").map(str::to_owned).or(method.map(|m| m.name().to_owned()));
    from_registration(Registered {
        client_id: id.to_owned(),
        client_secret: text("client_secret").map(Secret::from),
        token_endpoint_auth_method: method,
        client_secret_expires_at: document.get("client_secret_expires_at").and_then(Value::as_u64),
        redirect_uris: vec![metadata.redirect_uri.to_owned()],
    })
}

/// The authentication method to register: public if supported, because a program on a user's machine cannot keep a
/// secret. `None` if the server does not declare its methods; then it decides.
fn wanted_method(server: &Server) -> Result<Option<Method>, Error> {
    let Some(taken) = &server.token_endpoint_auth_methods_supported else { return Ok(None) };
    let first = [Method::None, Method::Basic, Method::Post].into_iter().find(|m| taken.iter().any(|t| t == m.name()));
    first.map(Some).ok_or_else(|| {
        Error::unregistered(format!(
            "the authorization server {} supports only clients with {}: register one with its operator and add it with \
             pre_registered(Some({:?}), …)",
            server.issuer,
            quote(&taken.join(", "), &[]),
            server.issuer
        ))
    })
}

/// The application type of a redirect URI: `web` only for an `https` URL on another host.
fn application_type(redirect_uri: &str) -> &'static str {
    match Url::parse(redirect_uri) {
        Ok(url) if url.scheme() == "https" && !address::is_loopback(&url) => "web",
        _ => "native",
    }
}

fn refused(server: &Server, status: u16, document: &Value) -> Error {
    if matches!(status, 404 | 405) && metadata::is_assumed(server) {
        return Error::discovery(format!(
            "the server at {} has no login: it names no authorization server; it needs a token from its operator",
            server.issuer
        ));
    }
    let text = |name: &str| document.get(name).and_then(Value::as_str).map(|text| quote(text, &[]));
    let code = text("error").unwrap_or_else(|| format!("status {status}"));
    let why = text("error_description").map_or(String::new(), |why| format!(": {why}"));
    let hint = if code == "invalid_redirect_uri" {
        "; the server must allow the login's redirect URI"
    } else {
        "; a client registered with its operator can be added with pre_registered(…)"
    };
    Error::new(
        Kind::Registration,
        format!("the authorization server {} did not register the client: {code}{why}{hint}", server.issuer),
    )
}

/// The scopes to register: those requested now, and those that may be requested later.
pub(crate) fn scopes(now: Option<&Scopes>, supported: Option<&Scopes>) -> Option<Scopes> {
    let all = now?.union(supported.unwrap_or(&Scopes::new()));
    // Registering for it is for the server to offer, not for the resource.
    let fits = |scope: &&str| *scope != OFFLINE_ACCESS || now.is_some_and(|now| now.has(scope));
    Some(all.iter().filter(fits).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_of_which_nothing_is_known_and_that_registers_nobody_has_no_login() {
        let assumed = metadata::without_metadata("https://a.example");
        let known = assumed.clone().with(|server| server.scopes_supported = Some(["read"].into_iter().collect()));
        for (server, status, no_login) in
            [(&assumed, 404, true), (&assumed, 405, true), (&assumed, 400, false), (&known, 404, false)]
        {
            let error = refused(server, status, &Value::Null);
            assert_eq!(error.to_string().contains("has no login"), no_login, "{status}: {error}");
            assert_eq!(error.is_registration(), !no_login, "{status}: {error}");
        }
    }

    #[test]
    fn only_an_address_elsewhere_makes_a_web_application() {
        let rows = [
            ("http://127.0.0.1:3000/callback", "native"),
            ("http://localhost/callback", "native"),
            ("https://localhost/callback", "native"),
            ("my-app://callback", "native"),
            ("https://app.example/callback", "web"),
        ];
        for (uri, want) in rows {
            assert_eq!(application_type(uri), want, "{uri}");
        }
    }

    #[test]
    fn a_registration_is_read_with_its_defaults() {
        let rows = [
            (None, None, Some(Method::None)),
            (Some("s"), None, Some(Method::Basic)),
            (Some("s"), Some("none"), Some(Method::None)),
            (Some("s"), Some("client_secret_post"), Some(Method::Post)),
            (None, Some("client_secret_post"), None),
            (Some("s"), Some("tls_client_auth"), None),
        ];
        for (secret, method, want) in rows {
            let registered = Registered {
                client_id: "id".to_owned(),
                client_secret: secret.map(Secret::from),
                token_endpoint_auth_method: method.map(str::to_owned),
                ..Registered::default()
            };
            assert_eq!(from_registration(registered).ok().map(|client| client.method), want, "{secret:?} {method:?}");
        }
    }
}
