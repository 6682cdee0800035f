//! GitHub: no OpenID Connect, tokens that do not expire, and a user by the number of `/user`.

use super::{Auth, Leg, Return, UpstreamClient, UpstreamError, UpstreamTokens};
use crate::person::Person;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method};
use linchpin_oauth::Secret;
use serde_json::{Value, json};

/// GitHub, or an Enterprise Server.
pub(crate) struct GitHub {
    url: String,
    api: String,
}

impl GitHub {
    pub(crate) fn new(url: &str, api: &str) -> GitHub {
        GitHub { url: url.to_owned(), api: api.to_owned() }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn begin(&self, client: &UpstreamClient, leg: &Leg<'_>) -> String {
        let mut scopes = vec!["read:user", "user:email"];
        if leg.orgs {
            scopes.push("read:org");
        }
        scopes.extend(client.scopes.iter().map(String::as_str));
        client.authorize(&format!("{}/login/oauth/authorize", self.url), leg, &[("scope", &scopes.join(" "))])
    }

    pub(crate) async fn finish(
        &self,
        client: &UpstreamClient,
        back: &Return<'_>,
    ) -> Result<(Person, UpstreamTokens), UpstreamError> {
        let endpoint = format!("{}/login/oauth/access_token", self.url);
        let (tokens, _) = client.redeem(&endpoint, back, Auth::Post).await?;
        Ok((self.who(client, &tokens.access, back.orgs).await?, tokens))
    }

    /// Asks whose a token is. A login name can be given away; the number cannot.
    pub(crate) async fn who(
        &self,
        client: &UpstreamClient,
        token: &Secret,
        orgs: bool,
    ) -> Result<Person, UpstreamError> {
        let user = client.get(&format!("{}/user", self.api), Some(token)).await?;
        let id = user.get("id").and_then(Value::as_u64).ok_or(UpstreamError::Away)?;
        let text = |name: &str| user.get(name).and_then(Value::as_str).map(str::to_owned);
        let mut person = Person::new(self.url.clone(), id.to_string());
        (person.login, person.name) = (text("login"), text("name"));
        person.email = self.mail(client, token).await?;
        person.email_verified = person.email.is_some();
        if orgs {
            let found = self.list(client, token, "user/orgs?per_page=100").await?;
            let login = |org: &Value| org.get("login")?.as_str().map(str::to_owned);
            person.orgs = found.iter().filter_map(login).collect();
        }
        Ok(person)
    }

    /// The verified primary address.
    async fn mail(&self, client: &UpstreamClient, token: &Secret) -> Result<Option<String>, UpstreamError> {
        let url = format!("{}/user/emails", self.api);
        let (status, headers, body) = client.send(Method::GET, &url, client.bearer(Some(token))?, Bytes::new()).await?;
        let found: Vec<Value> = match status.as_u16() {
            200..=299 => serde_json::from_slice(&body).map_err(|_| UpstreamError::Away)?,
            // A token without `user:email` is refused here, which says nothing of the user.
            401 | 404 => Vec::new(),
            403 if !is_limited(&headers) => Vec::new(),
            _ => return Err(UpstreamError::Away),
        };
        let flag = |mail: &Value, name: &str| mail.get(name).and_then(Value::as_bool).unwrap_or(false);
        let primary = found.iter().find(|mail| flag(mail, "primary") && flag(mail, "verified"));
        Ok(primary.and_then(|mail| mail.get("email")?.as_str().map(str::to_owned)))
    }

    async fn list(&self, client: &UpstreamClient, token: &Secret, path: &str) -> Result<Vec<Value>, UpstreamError> {
        let url = format!("{}/{path}", self.api);
        match client.json(Method::GET, &url, client.bearer(Some(token))?, Bytes::new()).await? {
            Value::Array(items) => Ok(items),
            _ => Err(UpstreamError::Away),
        }
    }

    pub(crate) async fn revoke(&self, client: &UpstreamClient, tokens: &UpstreamTokens) -> Result<(), UpstreamError> {
        let url = format!("{}/applications/{}/token", self.api, client.id);
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, client.basic()?);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let body = json!({ "access_token": tokens.access.expose() }).to_string();
        client.ask(Method::DELETE, &url, headers, body.into()).await.map(drop)
    }
}

/// Whether a refusal is one of too many requests.
fn is_limited(headers: &HeaderMap) -> bool {
    headers.contains_key(RETRY_AFTER) || headers.get("x-ratelimit-remaining").is_some_and(|left| left == "0")
}
