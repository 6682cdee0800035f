//! Asking an issuer about a token (RFC 7662).

use crate::issuer::{Credential, Issuer};
use crate::jwt::{self, Audiences};
use crate::refuse::{EXPIRED, INVALID};
use crate::remembered::{Known, LEEWAY_S, TokenHash};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Request, StatusCode};
use linchpin_oauth::{Claims, parse_object};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedMutexGuard, Semaphore};

/// How many tokens are asked about at once.
const AT_ONCE: usize = 32;
/// How long an answer may take.
const ANSWER_TIME: Duration = Duration::from_secs(3);
/// How long a valid token is remembered, and one that is not, in seconds.
const ACTIVE_S: u64 = 60;
pub(crate) const INACTIVE_S: u64 = 10;
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Why there is no answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Failed {
    Bad(&'static str),
    /// The issuer is away, or asked too much.
    Away,
}

/// The questions under way.
pub(crate) struct Questions {
    at_once: Semaphore,
    /// One at a time for each token.
    open: Mutex<HashMap<TokenHash, Arc<tokio::sync::Mutex<()>>>>,
}

/// The turn to ask about a token.
pub(crate) struct Turn<'a> {
    questions: &'a Questions,
    hash: TokenHash,
    held: Option<OwnedMutexGuard<()>>,
}

impl Drop for Turn<'_> {
    // Whoever waits may stop waiting, too.
    fn drop(&mut self) {
        self.held = None;
        let mut open = self.questions.lock();
        // Of the map, and of those who wait.
        if open.get(&self.hash).is_some_and(|turn| Arc::strong_count(turn) == 1) {
            open.remove(&self.hash);
        }
    }
}

impl Default for Questions {
    fn default() -> Questions {
        Questions { at_once: Semaphore::new(AT_ONCE), open: Mutex::default() }
    }
}

impl Questions {
    /// Waits until nobody else asks about this token.
    pub(crate) async fn turn(&self, hash: TokenHash) -> Turn<'_> {
        let turn = self.lock().entry(hash).or_default().clone();
        let mut mine = Turn { questions: self, hash, held: None };
        mine.held = Some(turn.lock_owned().await);
        mine
    }

    /// Asks an issuer about a token: what is known of it, and until when that may be remembered.
    pub(crate) async fn ask(
        &self,
        issuer: &Arc<Issuer>,
        at: usize,
        token: &str,
        audiences: &Audiences,
    ) -> Result<(Known, u64), Failed> {
        let Ok(_permit) = self.at_once.try_acquire() else { return Err(Failed::Away) };
        let known = match issuer.known() {
            Some(known) => Some(known),
            None => issuer.learn().await,
        };
        let endpoint = known.and_then(|known| known.introspection.clone()).ok_or(Failed::Away)?;
        let answered = tokio::time::timeout(ANSWER_TIME, claims(issuer, &endpoint, token)).await;
        let claims = match answered.unwrap_or_else(|_| Err("it takes too long".to_owned())) {
            Ok(claims) => claims,
            Err(why) => {
                tracing::warn!(issuer = issuer.trusted.url, why, "an issuer does not answer about a token");
                return Err(Failed::Away);
            }
        };
        let now = issuer.clock.now();
        let known = judged(&claims, issuer, at, audiences, now).map_err(Failed::Bad)?;
        let end = claims.time("exp").map_or(u64::MAX, |exp| exp.saturating_add(LEEWAY_S));
        Ok((known, end.min(now + ACTIVE_S)))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<TokenHash, Arc<tokio::sync::Mutex<()>>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn judged(claims: &Claims, issuer: &Issuer, at: usize, audiences: &Audiences, now: u64) -> Result<Known, &'static str> {
    if claims.get("active") != Some(&Value::Bool(true)) {
        return Err(INVALID);
    }
    if claims.get("exp").is_some() && claims.time("exp").is_none_or(|exp| exp.saturating_add(LEEWAY_S) <= now) {
        return Err(EXPIRED);
    }
    if claims.get("nbf").is_some() && claims.time("nbf").is_none_or(|nbf| nbf > now + LEEWAY_S) {
        return Err(INVALID);
    }
    if claims.get("iss").is_some_and(|iss| iss.as_str() != Some(&issuer.trusted.url)) {
        return Err(INVALID);
    }
    jwt::is_for(claims, &issuer.trusted, audiences)?;
    match claims.text("username").filter(|_| claims.text("sub").is_none()) {
        None => jwt::known(claims, &issuer.trusted, at).ok_or(INVALID),
        // A person named as the client is could be taken for it.
        Some(name) if jwt::client(claims) == Some(name) => Err(INVALID),
        // Some issuers say only what people call themselves: who the token is of, not the client.
        Some(name) => {
            let mut named = claims.as_map().clone();
            named.insert("sub".to_owned(), name.into());
            jwt::known(&Claims::from(named), &issuer.trusted, at).ok_or(INVALID)
        }
    }
}

async fn claims(issuer: &Issuer, endpoint: &str, token: &str) -> Result<Claims, String> {
    let fetch = issuer.fetch.as_ref().ok_or("there is no HTTP client")?;
    let asked = issuer.trusted.introspection.as_ref().ok_or("introspection is not configured")?;
    let mut form = format!("token={}&token_type_hint=access_token", encoded(token));
    let mut request = Request::post(endpoint)
        .header(ACCEPT, "application/json")
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
    match &asked.credential {
        Credential::Secret(secret) => {
            let pair = format!("{}:{}", encoded(&asked.client), encoded(secret.expose()));
            let value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair)));
            let mut value = value.map_err(|_| "the client's credentials fit into no header")?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        Credential::Key(key) => {
            let assertion = key.client_assertion(&asked.client, &issuer.trusted.url, issuer.clock.now());
            let kind = encoded("urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
            form.push_str(&format!(
                "&client_id={}&client_assertion_type={kind}&client_assertion={assertion}",
                encoded(&asked.client)
            ));
        }
    }
    let request = request.body(Bytes::from(form)).map_err(|_| format!("{endpoint:?} is not a URL"))?;
    let answer = fetch.fetch(request, ANSWER_BYTES_MAX).await?;
    if answer.status() != StatusCode::OK {
        return Err(format!("{endpoint} answers with status {}", answer.status().as_u16()));
    }
    parse_object(answer.body()).map(Claims::from).ok_or_else(|| format!("{endpoint} does not answer in JSON"))
}

/// A value of a form.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'*' => out.push(byte as char),
            b' ' => out.push('+'),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
