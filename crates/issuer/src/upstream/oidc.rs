//! Providers of OpenID Connect: discovery, and a user by the ID token.

use super::{Auth, DOCUMENT_LIFE, Leg, Return, UpstreamClient, UpstreamError, UpstreamTokens, unix_now};
use crate::person::{GOOGLE, Person};
use linchpin_oauth::{AuthorizationServerMetadata, Claims, JwkSet, Jws, OFFLINE_ACCESS, Scopes};
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// How far the clocks may differ, in seconds.
const LEEWAY_S: u64 = 60;

/// Whether anybody can have an account at a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Openness {
    /// Anybody: rules are required.
    Open,
    /// Anybody of any tenant: a rule `tenant:` is required.
    AnyTenant,
    /// The accounts are the operator's own.
    Closed,
}

/// A provider.
pub(crate) struct Oidc {
    issuer: String,
    scopes: Vec<&'static str>,
    extra: &'static [(&'static str, &'static str)],
    openness: Openness,
    /// Whether it is asked for `offline_access`, if it has that scope.
    offline: bool,
    /// The user is `tid` and `oid`, because `sub` differs from client to client.
    entra: bool,
    metadata: Remembered<AuthorizationServerMetadata>,
    keys: Remembered<JwkSet>,
}

type Remembered<T> = Mutex<Option<(Arc<T>, Instant)>>;

impl Oidc {
    /// A provider that anybody may have an account at.
    pub(crate) fn at(issuer: String) -> Oidc {
        Oidc {
            issuer,
            scopes: vec!["openid", "profile", "email"],
            extra: &[],
            openness: Openness::Open,
            offline: true,
            entra: false,
            metadata: Mutex::default(),
            keys: Mutex::default(),
        }
    }

    pub(crate) fn google() -> Oidc {
        // Without these Google gives no refresh token.
        Oidc { extra: &[("access_type", "offline"), ("prompt", "consent")], ..Oidc::at(GOOGLE.to_owned()) }
    }

    pub(crate) fn entra(tenant: &str) -> Oidc {
        let many = ["common", "organizations", "consumers"].contains(&tenant);
        Oidc {
            openness: if many { Openness::AnyTenant } else { Openness::Closed },
            entra: true,
            ..Oidc::at(format!("https://login.microsoftonline.com/{tenant}/v2.0")).asking("offline_access")
        }
    }

    /// It is not asked for `offline_access`.
    pub(crate) fn online(mut self) -> Oidc {
        self.offline = false;
        self
    }

    /// The accounts there are the operator's own.
    pub(crate) fn closed(mut self) -> Oidc {
        self.openness = Openness::Closed;
        self
    }

    pub(crate) fn asking(mut self, scope: &'static str) -> Oidc {
        self.scopes.push(scope);
        self
    }

    pub(crate) fn issuer(&self) -> &str {
        &self.issuer
    }

    pub(crate) fn openness(&self) -> Openness {
        self.openness
    }

    pub(crate) async fn begin(&self, client: &UpstreamClient, leg: &Leg<'_>) -> Result<String, UpstreamError> {
        let metadata = self.metadata(client).await?;
        let endpoint = metadata.authorization_endpoint.as_deref().ok_or(UpstreamError::Away)?;
        let mut scopes: Vec<&str> =
            self.scopes.iter().copied().chain(client.scopes.iter().map(String::as_str)).collect();
        if self.offline && metadata.scopes_supported.iter().flat_map(Scopes::iter).any(|scope| scope == OFFLINE_ACCESS)
        {
            scopes.push(OFFLINE_ACCESS);
        }
        let mut seen = HashSet::new();
        scopes.retain(|scope| seen.insert(*scope));
        let scopes = scopes.join(" ");
        let mut more = vec![("scope", scopes.as_str()), ("nonce", leg.nonce)];
        more.extend_from_slice(self.extra);
        Ok(client.authorize(endpoint, leg, &more))
    }

    pub(crate) async fn finish(
        &self,
        client: &UpstreamClient,
        back: &Return<'_>,
    ) -> Result<(Person, UpstreamTokens), UpstreamError> {
        let metadata = self.metadata(client).await?;
        // RFC 9207: an answer of another provider must not be redeemed at this one.
        match back.iss {
            Some(iss) if iss != metadata.issuer => {
                return Err(UpstreamError::Refused("the answer is from another provider"));
            }
            None if metadata.authorization_response_iss_parameter_supported => {
                return Err(UpstreamError::Refused("the answer does not say which provider it is from"));
            }
            _ => {}
        }
        let endpoint = metadata.token_endpoint.as_deref().ok_or(UpstreamError::Away)?;
        let (tokens, answer) = client.redeem(endpoint, back, auth(&metadata)).await?;
        let token = id_token(&answer).ok_or(UpstreamError::Refused("there is no ID token"))?;
        let claims = self.verify(client, &metadata, token, back.now).await?;
        if claims.text("nonce") != Some(back.nonce) {
            return Err(UpstreamError::Refused("the ID token is for another login"));
        }
        Ok((self.person(&claims)?, tokens))
    }

    /// Refreshes. A new ID token says what has changed about the user; without one they are as they were.
    pub(crate) async fn still(
        &self,
        client: &UpstreamClient,
        person: &Person,
        tokens: &UpstreamTokens,
    ) -> Result<(Person, UpstreamTokens), UpstreamError> {
        let metadata = self.metadata(client).await?;
        let Some(refresh) = &tokens.refresh else {
            // Nothing to refresh: ask who it is. An expired token is a user who has to log in again.
            let url = metadata.userinfo_endpoint.as_deref().ok_or(UpstreamError::Refused("no refresh token"))?;
            let answer = client.get(url, Some(&tokens.access)).await?;
            let same = self.entra || answer.get("sub").and_then(Value::as_str) == Some(&person.subject);
            let gone = UpstreamError::Refused("the provider knows the user by another subject");
            return if same { Ok((person.clone(), tokens.clone())) } else { Err(gone) };
        };
        let endpoint = metadata.token_endpoint.as_deref().ok_or(UpstreamError::Away)?;
        let (tokens, answer) = client.refresh(endpoint, refresh, auth(&metadata)).await?;
        let Some(token) = id_token(&answer) else { return Ok((person.clone(), tokens)) };
        // Times are the provider's matter here: this token was just made, for us, over TLS.
        let claims = self.verify(client, &metadata, token, unix_now()).await?;
        let now = self.person(&claims)?;
        match (&now.issuer, &now.subject) == (&person.issuer, &person.subject) {
            true => Ok((now, tokens)),
            false => Err(UpstreamError::Refused("the refreshed ID token is another person's")),
        }
    }

    pub(crate) async fn revoke(&self, client: &UpstreamClient, tokens: &UpstreamTokens) -> Result<(), UpstreamError> {
        let metadata = self.metadata(client).await?;
        match metadata.revocation_endpoint.as_deref() {
            Some(url) => client.revoke(url, tokens, auth(&metadata)).await,
            None => Ok(()),
        }
    }

    /// Checks an ID token: signature, issuer, audience and times.
    async fn verify(
        &self,
        client: &UpstreamClient,
        metadata: &AuthorizationServerMetadata,
        token: &str,
        now: u64,
    ) -> Result<Claims, UpstreamError> {
        let jws = Jws::read(token).map_err(|_| UpstreamError::Refused("the ID token is malformed"))?;
        let mut keys = self.keys(client, metadata, false).await?;
        if jws.kid().is_some_and(|kid| !keys.has(kid)) {
            keys = self.keys(client, metadata, true).await?;
        }
        let claims = keys.fitting(&jws).find_map(|key| jws.verify(key).ok());
        let claims = claims.ok_or(UpstreamError::Refused("the ID token has another key"))?.clone();
        if !self.is_issuer(&metadata.issuer, &claims) {
            return Err(UpstreamError::Refused("the ID token has another issuer"));
        }
        let audiences = claims.texts("aud").unwrap_or_default();
        let ours = audiences.contains(&client.id.as_str());
        let authorized = claims.text("azp").is_none_or(|azp| azp == client.id);
        if !ours || !authorized || (audiences.len() > 1 && claims.text("azp").is_none()) {
            return Err(UpstreamError::Refused("the ID token is for another client"));
        }
        match claims.check_times(now, LEEWAY_S) {
            Ok(()) => Ok(claims),
            Err(_) => Err(UpstreamError::Refused("the ID token is not valid now")),
        }
    }

    /// Whether the issuer of a token is the provider. Entra's `common` has an issuer for each tenant.
    fn is_issuer(&self, issuer: &str, claims: &Claims) -> bool {
        let of_tenant = claims.text("tid").map(|tid| issuer.replace("{tenantid}", tid));
        match claims.text("iss") {
            Some(iss) if self.entra => of_tenant.as_deref() == Some(iss),
            Some(iss) => iss == issuer,
            None => false,
        }
    }

    /// Reads the user out of an ID token.
    fn person(&self, claims: &Claims) -> Result<Person, UpstreamError> {
        let nobody = UpstreamError::Refused("the ID token does not say whose it is");
        let issuer = claims.text("iss").ok_or(nobody)?;
        let subject = claims.text(if self.entra { "oid" } else { "sub" }).ok_or(nobody)?;
        let text = |name: &str| claims.text(name).map(str::to_owned);
        let mut person = Person::new(issuer, subject);
        // Where users choose it, it may look like somebody's mail address.
        let chosen = self.openness != Openness::Closed;
        person.login = text("preferred_username").filter(|name| !(chosen && name.contains('@')));
        person.name = text("name");
        person.email = text("email");
        // Entra verifies no mail addresses.
        person.email_verified = !self.entra && claims.get("email_verified").is_some_and(is_true);
        person.domain = text("hd");
        person.tenant = text("tid").or_else(|| text("org_id"));
        person.orgs = person.tenant.iter().cloned().chain(text("org_name")).collect();
        for name in ["groups", "roles", "permissions"] {
            person.groups.extend(claims.texts(name).unwrap_or_default().into_iter().map(str::to_owned));
        }
        let realm = claims.get("realm_access").and_then(|realm| realm.get("roles")).and_then(Value::as_array);
        person.groups.extend(realm.into_iter().flatten().filter_map(|role| role.as_str().map(str::to_owned)));
        Ok(person)
    }

    /// The provider's metadata, remembered for an hour; an old one goes on while the provider is away.
    async fn metadata(&self, client: &UpstreamClient) -> Result<Arc<AuthorizationServerMetadata>, UpstreamError> {
        let (known, fresh) = remembered(&self.metadata);
        if let Some(known) = known.clone().filter(|_| fresh) {
            return Ok(known);
        }
        let url = format!("{}/.well-known/openid-configuration", self.issuer.trim_end_matches('/'));
        let document = match (client.get(&url, None).await, known) {
            (Err(_), Some(known)) => return Ok(known),
            (document, _) => document?,
        };
        let metadata = AuthorizationServerMetadata::read(&Value::Object(document));
        let templated = self.entra && metadata.issuer.contains("{tenantid}");
        if metadata.issuer != self.issuer && !templated {
            return Err(UpstreamError::Refused("the metadata of the provider has another issuer"));
        }
        for url in [&metadata.authorization_endpoint, &metadata.token_endpoint, &metadata.jwks_uri] {
            let fine = url.as_deref().is_some_and(|url| url.starts_with("https://") || linchpin_web::is_loopback(url));
            if !fine {
                return Err(UpstreamError::Refused("the metadata of the provider lacks an https endpoint"));
            }
        }
        Ok(remember(&self.metadata, metadata))
    }

    async fn keys(
        &self,
        client: &UpstreamClient,
        metadata: &AuthorizationServerMetadata,
        again: bool,
    ) -> Result<Arc<JwkSet>, UpstreamError> {
        let (known, fresh) = remembered(&self.keys);
        if let Some(known) = known.filter(|_| fresh && !again) {
            return Ok(known);
        }
        let document = client.get(metadata.jwks_uri.as_deref().ok_or(UpstreamError::Away)?, None).await?;
        let keys = JwkSet::parse(Value::Object(document).to_string().as_bytes()).ok_or(UpstreamError::Away)?;
        Ok(remember(&self.keys, keys))
    }
}

fn remembered<T>(place: &Remembered<T>) -> (Option<Arc<T>>, bool) {
    let place = place.lock().unwrap_or_else(PoisonError::into_inner);
    match place.as_ref() {
        Some((known, since)) => (Some(known.clone()), since.elapsed() < DOCUMENT_LIFE),
        None => (None, false),
    }
}

fn remember<T>(place: &Remembered<T>, value: T) -> Arc<T> {
    let value = Arc::new(value);
    *place.lock().unwrap_or_else(PoisonError::into_inner) = Some((value.clone(), Instant::now()));
    value
}

/// The default is Basic (OpenID Connect Discovery, section 3).
fn auth(metadata: &AuthorizationServerMetadata) -> Auth {
    let methods = metadata.token_endpoint_auth_methods_supported.as_deref().unwrap_or_default();
    let takes = |name: &str| methods.iter().any(|method| method == name);
    if takes("client_secret_post") && !takes("client_secret_basic") { Auth::Post } else { Auth::Basic }
}

fn id_token(answer: &Map<String, Value>) -> Option<&str> {
    answer.get("id_token")?.as_str()
}

/// Some providers write it as text.
fn is_true(value: &Value) -> bool {
    value.as_bool() == Some(true) || value.as_str() == Some("true")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn claims(value: &Value) -> Claims {
        Claims::from(value.as_object().unwrap().clone())
    }

    /// Shapes of ID tokens as the providers' documentation shows them.
    #[test]
    fn persons_are_read_out_of_the_documented_tokens() {
        let google = json!({ "iss": GOOGLE, "sub": "1107", "email": "j@acme.example", "email_verified": true,
            "hd": "acme.example", "name": "Jo" });
        let person = Oidc::google().person(&claims(&google)).unwrap();
        assert_eq!((person.subject.as_str(), person.domain.as_deref()), ("1107", Some("acme.example")));
        let entra = json!({ "iss": "https://login.microsoftonline.com/t1/v2.0", "sub": "pairwise", "oid": "o1",
            "tid": "t1", "email": "j@acme.example", "email_verified": true, "groups": ["g1"], "roles": ["admin"] });
        let person = Oidc::entra("common").person(&claims(&entra)).unwrap();
        assert_eq!((person.subject.as_str(), person.tenant.as_deref()), ("o1", Some("t1")));
        assert!(!person.email_verified, "Entra verifies no mail addresses");
        assert_eq!(person.groups, ["g1", "admin"]);
        let keycloak = json!({ "iss": "https://k/realms/m", "sub": "s", "preferred_username": "jo",
            "realm_access": { "roles": ["staff"] } });
        let person = Oidc::at("https://k/realms/m".to_owned()).person(&claims(&keycloak)).unwrap();
        assert_eq!((person.login.as_deref(), person.groups.as_slice()), (Some("jo"), &["staff".to_owned()][..]));
        let overage = json!({ "iss": "i", "oid": "o", "hasgroups": true, "_claim_names": { "groups": "src1" } });
        assert!(Oidc::entra("t").person(&claims(&overage)).unwrap().groups.is_empty(), "too many groups are none");
        assert!(Oidc::google().person(&claims(&json!({ "iss": GOOGLE }))).is_err());
    }

    #[test]
    fn the_issuer_of_a_token_is_the_provider_and_at_entra_that_of_its_tenant() {
        let common = Oidc::entra("common");
        let template = "https://login.microsoftonline.com/{tenantid}/v2.0";
        let token = |iss: &str, tid: &str| claims(&json!({ "iss": iss, "tid": tid }));
        assert!(common.is_issuer(template, &token("https://login.microsoftonline.com/a/v2.0", "a")));
        assert!(!common.is_issuer(template, &token("https://login.microsoftonline.com/b/v2.0", "a")));
        assert!(!common.is_issuer(template, &token("https://evil/a/v2.0", "a")));
        let plain = Oidc::at("https://a".to_owned());
        assert!(plain.is_issuer("https://a", &token("https://a", "")));
        assert!(!plain.is_issuer("https://a", &token("https://a/", "")));
    }
}
