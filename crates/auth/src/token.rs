//! The token endpoint: requests, client authentication and responses.
//!
//! RFC 6749 sections 5.1 and 5.2; RFC 9449 sections 5 and 8 for proofs and nonces.

use crate::client::{Client, Form};
use crate::error::{Error, Kind, quote};
use crate::fetch::{Asker, FORM, is_good};
use crate::store::Tokens;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use linchpin_oauth::{Scopes, Secret, dpop::DpopKey};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use url::Url;

/// One authorization server's token endpoint, as one client with one key sees it.
pub(crate) struct Endpoint<'a> {
    /// Seconds since 1970.
    pub(crate) now: u64,
    pub(crate) asker: &'a Asker,
    pub(crate) nonces: &'a Nonces,
    pub(crate) issuer: &'a str,
    pub(crate) address: &'a str,
    pub(crate) client: Option<&'a Client>,
    pub(crate) dpop: Option<&'a DpopKey>,
}

impl Endpoint<'_> {
    /// Requests tokens. `asked` is the requested scope, which counts as granted unless the response says
    /// otherwise.
    pub(crate) async fn tokens(&self, form: &Form, asked: Option<&Scopes>) -> Result<Tokens, Error> {
        let document = self.ask(form).await?;
        let tokens = self.read(&document, asked)?;
        if self.dpop.is_some() && !tokens.token_type.eq_ignore_ascii_case("dpop") {
            let why = "gave out a token that is not bound to the key (token_type is not DPoP), so it is not used";
            return Err(Error::new(Kind::Unreachable, format!("the authorization server {} {why}", self.issuer)));
        }
        Ok(tokens)
    }

    /// Posts a form and returns the response document.
    pub(crate) async fn ask(&self, form: &Form) -> Result<Value, Error> {
        // A server that requires a nonce in the proof requests it once, and again when the nonce has expired.
        let mut nonces_left = 2;
        loop {
            let mut form = form.clone();
            let mut headers = HeaderMap::new();
            if let Some(client) = self.client {
                client.sign(&mut form, &mut headers, self.issuer, self.now);
            }
            if let Some(key) = self.dpop {
                let nonce = self.nonces.of(self.address);
                let proof = key.proof("POST", self.address, nonce.as_deref(), None, self.now);
                headers.insert(DPOP, header(&proof)?);
            }
            let what = "the token endpoint";
            let answer = self.asker.post(what, self.address, FORM, headers, form.body()).await?;
            let fresh = self.nonces.keep(self.address, answer.headers());
            let error = match self.understand(&form, &answer) {
                Ok(document) => return Ok(document),
                Err(error) => error,
            };
            if !(fresh && nonces_left > 0 && self.dpop.is_some() && error.is_refused_with("use_dpop_nonce")) {
                return Err(error);
            }
            nonces_left -= 1;
        }
    }

    fn understand(&self, form: &Form, answer: &Response<Bytes>) -> Result<Value, Error> {
        let status = answer.status();
        let document = serde_json::from_slice::<Value>(answer.body()).ok().filter(Value::is_object);
        let said = |name: &str| document.as_ref()?.get(name)?.as_str().filter(|text| !text.is_empty());
        let server = format!("the authorization server {}", self.issuer);
        // Some servers send errors with status 200.
        if let Some(code) = said("error").filter(|_| !status.is_server_error() && said("access_token").is_none()) {
            let secrets = form.secrets(self.client);
            let why = said("error_description").map_or(String::new(), |why| format!(": {}", quote(why, &secrets)));
            let code = quote(code, &secrets);
            return Err(Error::new(Kind::Refused(code.clone()), format!("{server} refused: {code}{why}")));
        }
        if status.is_redirection() {
            let why = format!(
                "{server} redirects its token endpoint, which is not followed because the request contains credentials"
            );
            return Err(Error::new(Kind::Unreachable, why));
        }
        if status.is_client_error() {
            let code = format!("status {}", status.as_u16());
            return Err(Error::new(Kind::Refused(code.clone()), format!("{server} refused with {code} and no reason")));
        }
        if !is_good(status) {
            return Err(Error::new(
                Kind::Unreachable,
                format!("the token endpoint of {server} returned status {}", status.as_u16()),
            ));
        }
        document.ok_or_else(|| Error::new(Kind::Unreachable, format!("{server} returned an invalid JSON object")))
    }

    fn read(&self, document: &Value, asked: Option<&Scopes>) -> Result<Tokens, Error> {
        let text = |name: &str| document.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let wrong = |why: &str| {
            Error::new(
                Kind::Unreachable,
                format!("invalid token response of the authorization server {}: {why}", self.issuer),
            )
        };
        let access_token = text("access_token").ok_or_else(|| wrong("access_token is missing"))?;
        if !access_token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(wrong("access_token is not a valid header value"));
        }
        let token_type = text("token_type").unwrap_or("Bearer");
        if !["bearer", "dpop"].iter().any(|known| token_type.eq_ignore_ascii_case(known)) {
            return Err(wrong(&format!("its token_type is {}, and neither Bearer nor DPoP", quote(token_type, &[]))));
        }
        if token_type.eq_ignore_ascii_case("dpop") && self.dpop.is_none() {
            return Err(wrong("its token is bound to a key, which was not requested"));
        }
        // Some write the number as text.
        let seconds = document.get("expires_in").and_then(|v| v.as_u64().or_else(|| v.as_str()?.parse().ok()));
        Ok(Tokens {
            access_token: Secret::from(access_token),
            refresh_token: text("refresh_token").map(Secret::from),
            token_type: token_type.to_owned(),
            expires_at: seconds.map(|seconds| self.now.saturating_add(seconds)),
            scope: text("scope").map(str::to_owned).or_else(|| asked.map(Scopes::to_string)),
        })
    }
}

/// The last nonce that each server gave out for proofs (RFC 9449, section 8).
#[derive(Default)]
pub(crate) struct Nonces(Mutex<HashMap<String, String>>);

impl Nonces {
    /// The nonce for an address.
    pub(crate) fn of(&self, address: &str) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&key(address)?).cloned()
    }

    /// Stores the nonce of a response; `true` if it is new.
    pub(crate) fn keep(&self, address: impl std::fmt::Display, headers: &HeaderMap) -> bool {
        let nonce = headers.get(DPOP_NONCE).and_then(|nonce| nonce.to_str().ok());
        let Some(nonce) = nonce.filter(|nonce| !nonce.is_empty() && nonce.len() <= NONCE_BYTES_MAX) else {
            return false;
        };
        let Some(key) = key(&address.to_string()) else { return false };
        let mut nonces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if nonces.len() >= NONCES_MAX && !nonces.contains_key(&key) {
            nonces.clear();
        }
        nonces.insert(key, nonce.to_owned()).as_deref() != Some(nonce)
    }
}

fn key(address: &str) -> Option<String> {
    Url::parse(address).ok().map(|url| crate::address::origin(&url))
}

pub(crate) const DPOP: HeaderName = HeaderName::from_static("dpop");
const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");
const NONCES_MAX: usize = 64;
const NONCE_BYTES_MAX: usize = 1024;

/// A header value that is shown nowhere.
pub(crate) fn header(text: &str) -> Result<HeaderValue, Error> {
    let mut value = HeaderValue::from_str(text)
        .map_err(|_| Error::new(Kind::NotAccepted, "the access token is not a valid header value; log in again"))?;
    value.set_sensitive(true);
    Ok(value)
}
