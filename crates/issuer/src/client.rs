//! Clients: what is known of them, whoever says it.

use crate::limits::{NAME_CHARS_MAX, REDIRECT_URIS_MAX};
use crate::redirect;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use linchpin_oauth::{Scopes, Secret, sha256};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use url::Url;

/// A pre-registered client.
///
/// ```
/// use linchpin_issuer::Client;
///
/// let nightly = Client::new("nightly").secret("…").client_credentials(["files:read"]);
/// let desktop = Client::new("desktop").name("Acme Desktop").redirect_uri("http://127.0.0.1/callback");
/// # let _ = (nightly, desktop);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) redirect_uris: Vec<String>,
    pub(crate) auth: ClientAuth,
    pub(crate) kind: Kind,
    /// Whether it is given refresh tokens.
    pub(crate) refresh: bool,
    /// The scopes that it may have without a user; `None` if it may not act for itself.
    pub(crate) own_scopes: Option<Vec<String>>,
    /// Random, in the store: a client that is removed and added again has another.
    #[serde(default)]
    pub(crate) registration: String,
}

/// How a client shows who it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ClientAuth {
    /// It does not: a public client.
    None,
    /// By a secret; this is its hash.
    Secret { sha256: String },
    /// By an assertion that one of these keys signed.
    Keys { jwks: Value },
    /// By an assertion that one of the keys at this URL signed.
    KeysAt { url: String },
}

/// Who says what is known of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// The operator.
    Known,
    /// The document at its id, so its host is proved.
    Document,
    /// The client itself: nothing is proved.
    Registered,
}

impl Client {
    /// Creates a public client without redirect URIs.
    pub fn new(id: impl Into<String>) -> Client {
        let id = id.into();
        Client {
            name: id.clone(),
            id,
            redirect_uris: Vec::new(),
            auth: ClientAuth::None,
            kind: Kind::Known,
            refresh: true,
            own_scopes: None,
            registration: String::new(),
        }
    }

    /// Sets the name that is displayed to users.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Client {
        self.name = name.into();
        self
    }

    /// Adds a redirect URI. A loopback URI matches with any port.
    #[must_use]
    pub fn redirect_uri(mut self, uri: impl Into<String>) -> Client {
        self.redirect_uris.push(uri.into());
        self
    }

    /// Sets the secret with which the client authenticates. Only its hash is stored.
    #[must_use]
    pub fn secret(mut self, secret: impl Into<Secret>) -> Client {
        self.auth = ClientAuth::Secret { sha256: hash(secret.into().expose()) };
        self
    }

    /// Sets the public keys with which the client authenticates (`private_key_jwt`), as a JSON Web Key Set.
    #[must_use]
    pub fn keys(mut self, jwks: Value) -> Client {
        self.auth = ClientAuth::Keys { jwks };
        self
    }

    /// Allows the client to act on its own behalf, without a user, with at most these scopes.
    #[must_use]
    pub fn client_credentials<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Client {
        self.own_scopes = Some(scopes.into_iter().map(Into::into).collect());
        self
    }

    /// Returns the id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the name that is displayed to users.
    pub fn shown_name(&self) -> &str {
        &self.name
    }

    /// Returns the redirect URIs.
    pub fn redirect_uris(&self) -> &[String] {
        &self.redirect_uris
    }

    /// Returns the authentication method of the client: `none`, `client_secret_basic` or `private_key_jwt`.
    pub fn auth_method(&self) -> &'static str {
        match self.auth {
            ClientAuth::None => "none",
            ClientAuth::Secret { .. } => "client_secret_basic",
            ClientAuth::Keys { .. } | ClientAuth::KeysAt { .. } => "private_key_jwt",
        }
    }

    /// Returns the scopes that the client may be granted without a user, if it may act on its own behalf.
    pub fn own_scopes(&self) -> Option<&[String]> {
        self.own_scopes.as_deref()
    }

    /// Returns whether the client used dynamic registration, so that none of its metadata is verified.
    pub fn is_self_registered(&self) -> bool {
        self.kind == Kind::Registered
    }

    /// What its tokens without a user are marked with, so that they end when it is removed.
    pub(crate) fn mark(&self) -> String {
        hash(&format!("client {} {}", self.registration, self.id))[..22].to_owned()
    }

    /// Whether answers to a request may go to this address.
    pub(crate) fn redirects_to(&self, uri: &str) -> bool {
        self.redirect_uris.iter().any(|registered| redirect::is_same(registered, uri))
    }

    /// Whether a secret is the client's. Hashes are compared, so the time tells nothing.
    pub(crate) fn has_secret(&self, secret: &str) -> bool {
        matches!(&self.auth, ClientAuth::Secret { sha256 } if Secret::new(hash(secret)) == Secret::new(sha256.as_str()))
    }
}

/// SHA-256 in base64url.
pub(crate) fn hash(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(sha256(text.as_bytes()))
}

/// Whether a client id is the address of a client metadata document. Names of registered clients are none.
pub(crate) fn is_document(id: &str) -> bool {
    id.starts_with("https://") || id.starts_with("http://")
}

/// Checks the address of a client metadata document. `loopback`: whether this server is on this computer, and takes
/// addresses there.
pub(crate) fn check_document_address(id: &str, loopback: bool) -> Result<Url, &'static str> {
    let url = Url::parse(id).map_err(|_| "it is not a URL")?;
    let local = loopback && url.scheme() == "http" && redirect::is_loopback(&url);
    if url.scheme() != "https" && !local {
        return Err("it is not https");
    }
    if id.contains('#') || !url.username().is_empty() || url.password().is_some() {
        return Err("it has a fragment or user information");
    }
    // The parser removes dot segments and corrects much else: the text itself must be the URL.
    if url.as_str() != id {
        return Err("it is not written in the normal form of a URL");
    }
    if url.path() == "/" { Err("it has no path") } else { Ok(url) }
}

/// Reads the client metadata document at `id`.
pub(crate) fn of_document(id: &str, document: &Map<String, Value>, schemes: &[String]) -> Result<Client, &'static str> {
    if document.get("client_id").and_then(Value::as_str) != Some(id) {
        return Err("its client_id is not its address");
    }
    if document.contains_key("client_secret") || document.contains_key("client_secret_expires_at") {
        return Err("it contains a secret, which everybody can read");
    }
    let mut client = Client { id: id.to_owned(), kind: Kind::Document, ..of_metadata(document, schemes)? };
    client.auth = match text(document, "token_endpoint_auth_method").unwrap_or("none") {
        "none" => ClientAuth::None,
        "private_key_jwt" => keys(document)?,
        _ => return Err("its token_endpoint_auth_method is for clients with a secret"),
    };
    Ok(client)
}

/// Reads a registration (RFC 7591). The secret is that of a client that wants one.
pub(crate) fn of_registration(
    id: &str,
    request: &Map<String, Value>,
    schemes: &[String],
    secret: &Secret,
) -> Result<Client, &'static str> {
    let mut client = Client { id: id.to_owned(), kind: Kind::Registered, ..of_metadata(request, schemes)? };
    client.auth = match text(request, "token_endpoint_auth_method").unwrap_or("client_secret_basic") {
        "none" => ClientAuth::None,
        "client_secret_basic" | "client_secret_post" => ClientAuth::Secret { sha256: hash(secret.expose()) },
        "private_key_jwt" => keys(request)?,
        _ => return Err("this token_endpoint_auth_method is not supported"),
    };
    Ok(client)
}

/// The grant of devices, which need no redirect URI.
const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// What documents and registrations have in common.
fn of_metadata(metadata: &Map<String, Value>, schemes: &[String]) -> Result<Client, &'static str> {
    let web = text(metadata, "application_type") == Some("web");
    let grants = metadata.get("grant_types").and_then(Value::as_array);
    let has = |grant: &str| grants.is_some_and(|all| all.iter().any(|known| known.as_str() == Some(grant)));
    let without_browser = has(DEVICE_GRANT) && !has("authorization_code");
    let none = Vec::new();
    let uris = match metadata.get("redirect_uris").and_then(Value::as_array) {
        None if without_browser => &none,
        uris => uris.ok_or("redirect_uris is missing")?,
    };
    if (uris.is_empty() && !without_browser) || uris.len() > REDIRECT_URIS_MAX {
        return Err("redirect_uris has none or too many");
    }
    let mut client = Client::new("");
    for uri in uris {
        let uri = uri.as_str().ok_or("a redirect URI is not a string")?;
        redirect::check(uri, schemes, web)?;
        client.redirect_uris.push(uri.to_owned());
    }
    client.name = shown(text(metadata, "client_name").unwrap_or("a client without a name"));
    if grants.is_some() {
        if !has("authorization_code") && !without_browser {
            return Err("grant_types does not contain authorization_code");
        }
        client.refresh = has("refresh_token");
    }
    Ok(client)
}

fn keys(metadata: &Map<String, Value>) -> Result<ClientAuth, &'static str> {
    match (metadata.get("jwks"), text(metadata, "jwks_uri")) {
        (Some(jwks), None) if jwks.get("keys").is_some_and(Value::is_array) => {
            Ok(ClientAuth::Keys { jwks: jwks.clone() })
        }
        (None, Some(url)) => Ok(ClientAuth::KeysAt { url: url.to_owned() }),
        _ => Err("private_key_jwt needs jwks or jwks_uri, and not both"),
    }
}

/// What the client that registered is told (RFC 7591, section 3.2.1).
pub(crate) fn registration(client: &Client, request: &Map<String, Value>, secret: &Secret, now: u64) -> Value {
    let mut grants = vec!["authorization_code"];
    let wanted = request.get("grant_types").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if wanted.iter().any(|grant| grant.as_str() == Some(DEVICE_GRANT)) {
        grants.push(DEVICE_GRANT);
    }
    if client.refresh {
        grants.push("refresh_token");
    }
    let mut answer = json!({
        "client_id": client.id,
        "client_id_issued_at": now,
        "client_name": client.name,
        "redirect_uris": client.redirect_uris,
        "grant_types": grants,
        "response_types": ["code"],
        "token_endpoint_auth_method": client.auth_method(),
    });
    if matches!(client.auth, ClientAuth::Secret { .. }) {
        answer["client_secret"] = json!(secret.expose());
        answer["client_secret_expires_at"] = json!(0);
        if let Some(method) = text(request, "token_endpoint_auth_method") {
            answer["token_endpoint_auth_method"] = json!(method);
        }
    }
    for name in ["application_type", "scope", "client_uri"] {
        if let Some(value) = text(request, name) {
            answer[name] = json!(value);
        }
    }
    answer
}

/// A name as users are shown it: one line without invisible characters, cut.
pub(crate) fn shown(name: &str) -> String {
    // Marks that change the direction of text, and such that have no width.
    let invisible = |c: char| {
        c.is_control()
            || matches!(c, '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
    };
    let visible: String = name.chars().filter(|c| !invisible(*c)).take(NAME_CHARS_MAX + 1).collect();
    let visible = visible.trim();
    match visible.char_indices().nth(NAME_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &visible[..at]),
        None => visible.to_owned(),
    }
}

/// The scopes that both allow.
pub(crate) fn both(asked: &Scopes, allowed: &[String]) -> Scopes {
    asked.iter().filter(|scope| allowed.iter().any(|one| one == scope)).collect()
}

fn text<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    object.get(name)?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_documents_are_https_with_a_path_in_normal_form() {
        let rows = [
            ("https://app.example/client.json", true, true),
            ("https://app.example:8443/c?x=1", true, true),
            ("http://127.0.0.1:3000/c", false, true),
            ("http://localhost:3000/c", false, true),
            ("http://10.0.0.1/c", false, false),
            ("http://app.example/c", false, false),
            ("https://app.example/", false, false),
            ("https://app.example", false, false),
            ("https://app.example/a/../c", false, false),
            ("https://app.example/./c", false, false),
            ("https://app.example/%2e/c", false, false),
            ("https://app.example/c#x", false, false),
            ("https://app.example/c#", false, false),
            ("https://u@app.example/c", false, false),
            ("https://APP.example/c", false, false),
        ];
        for (id, public, local) in rows {
            assert_eq!(check_document_address(id, false).is_ok(), public, "{id}");
            assert_eq!(check_document_address(id, true).is_ok(), local, "{id} on this computer");
        }
    }

    #[test]
    fn documents_are_taken_only_for_the_client_whose_id_they_contain_and_without_secrets() {
        const ID: &str = "https://app.example/c";
        let good = json!({ "client_id": ID, "client_name": "App", "redirect_uris": ["http://127.0.0.1/cb"] });
        let read = |document: &Value| of_document(ID, document.as_object().unwrap(), &[]);
        let client = read(&good).unwrap();
        assert_eq!((client.name.as_str(), client.kind, client.auth), ("App", Kind::Document, ClientAuth::None));
        let rows = [
            ("client_id", json!("https://app.example/d")),
            ("client_id", json!("https://app.example/c/")),
            ("client_secret", json!("x")),
            ("token_endpoint_auth_method", json!("client_secret_post")),
            ("token_endpoint_auth_method", json!("private_key_jwt")),
            ("redirect_uris", json!([])),
            ("redirect_uris", json!(["javascript:alert(1)"])),
            ("redirect_uris", json!("http://127.0.0.1/cb")),
            ("grant_types", json!(["implicit"])),
        ];
        for (name, value) in rows {
            let mut document = good.clone();
            document[name] = value;
            assert!(read(&document).is_err(), "{document}");
        }
    }

    /// Row 60 of the table of attacks.
    #[test]
    fn names_are_one_visible_line() {
        let rows = [
            ("Claude Code", "Claude Code".to_owned()),
            ("<b>x</b>", "<b>x</b>".to_owned()),
            ("a\u{202e}b\u{200b}c\n\r\0d", "abcd".to_owned()),
            (&"x".repeat(10_000), format!("{}…", "x".repeat(NAME_CHARS_MAX))),
        ];
        for (name, expected) in rows {
            assert_eq!(shown(name), expected);
        }
    }
}
