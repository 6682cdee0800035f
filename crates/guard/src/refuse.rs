//! What strangers are told: statuses and challenges. The sentences are a fixed list; none is of a library or of a token.

use crate::mode::Dpop;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use linchpin_core::Principal;
use linchpin_core::gate::Refusal;
use linchpin_oauth::{Challenge, Scopes};
use std::sync::Arc;

pub(crate) const INVALID: &str = "the token is not valid";
pub(crate) const EXPIRED: &str = "the token has expired";
pub(crate) const OTHER_AUDIENCE: &str = "the token is not for this server";
pub(crate) const BOUND: &str = "the token is bound to a key; send it as DPoP, with a proof";
pub(crate) const UNBOUND: &str = "the token is not bound to a key";

const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");
/// The algorithms that proofs are asked for in.
pub(crate) const PROOF_ALGS: [&str; 2] = ["ES256", "EdDSA"];

/// The challenges of a guard.
#[derive(Debug)]
pub(crate) struct Refusals {
    /// The URL of the metadata of each resource. Empty without issuers.
    pub(crate) metadata: Vec<String>,
    /// What every request needs.
    pub(crate) base: Scopes,
    /// What those who log in are told to ask for.
    pub(crate) asked: Scopes,
    pub(crate) dpop: Dpop,
}

impl Refusals {
    /// There are no credentials.
    pub(crate) fn login(&self, resource: usize) -> Refusal {
        self.unauthorized(resource, "authentication required", &[])
    }

    /// The credentials are malformed.
    pub(crate) fn malformed(&self, why: &'static str) -> Refusal {
        let refusal = Refusal::new(StatusCode::BAD_REQUEST, why);
        refusal.with_challenge(Challenge::header("Bearer", &[("error", "invalid_request"), ("error_description", why)]))
    }

    /// The token is worth nothing.
    pub(crate) fn invalid(&self, resource: usize, why: &'static str) -> Refusal {
        self.unauthorized(resource, why, &[("error", "invalid_token"), ("error_description", why)])
    }

    /// The token and the proof do not fit.
    pub(crate) fn proof(&self, resource: usize, error: &'static str, why: &'static str) -> Refusal {
        let params = [("error", error), ("error_description", why)];
        Refusal::unauthorized(why).with_challenge(self.challenge("DPoP", resource, &params, &self.asked))
    }

    /// The proof needs a nonce.
    pub(crate) fn nonce(&self, resource: usize, nonce: &str) -> Refusal {
        let refusal = self.proof(resource, "use_dpop_nonce", "the proof needs the nonce of this response");
        match HeaderValue::try_from(nonce) {
            Ok(nonce) => refusal.with_header(DPOP_NONCE, nonce),
            Err(_) => refusal,
        }
    }

    /// Scopes are missing; `scopes` are all that this request needs beside those of every request.
    pub(crate) fn missing(&self, resource: usize, principal: Option<&Principal>, scopes: &[Arc<str>]) -> Refusal {
        let needed: Scopes = self.base.iter().chain(scopes.iter().map(|scope| &**scope)).collect();
        let scheme = if self.dpop.is_required() { "DPoP" } else { "Bearer" };
        match principal {
            Some(_) => Refusal::forbidden("insufficient scope").with_challenge(self.challenge(
                scheme,
                resource,
                &[("error", "insufficient_scope")],
                &needed,
            )),
            None => Refusal::unauthorized("authentication required").with_challenge(self.challenge(
                scheme,
                resource,
                &[],
                &needed,
            )),
        }
    }

    /// The authorization server is away.
    pub(crate) fn away(&self) -> Refusal {
        unavailable("the authorization server cannot be reached; try again later")
    }

    /// The store of proofs is away.
    pub(crate) fn store_away(&self) -> Refusal {
        unavailable("whether the proof was used before cannot be looked up; try again later")
    }

    /// The address has sent too many bad tokens.
    pub(crate) fn busy(&self, seconds: u64) -> Refusal {
        let why = "too many bad tokens from this address; try again later";
        Refusal::new(StatusCode::TOO_MANY_REQUESTS, why).with_header(RETRY_AFTER, seconds.into())
    }

    fn unauthorized(&self, resource: usize, why: &'static str, params: &[(&'static str, &'static str)]) -> Refusal {
        let mut refusal = Refusal::unauthorized(why);
        if !self.dpop.is_required() {
            refusal = refusal.with_challenge(self.challenge("Bearer", resource, params, &self.asked));
        }
        if self.dpop.is_on() {
            refusal = refusal.with_challenge(self.challenge("DPoP", resource, params, &self.asked));
        }
        refusal
    }

    fn challenge(
        &self,
        scheme: &'static str,
        resource: usize,
        params: &[(&'static str, &str)],
        scopes: &Scopes,
    ) -> HeaderValue {
        let (scope, algs) = (scopes.to_string(), PROOF_ALGS.join(" "));
        let metadata = self.metadata.get(resource).or(self.metadata.first()).map_or("", String::as_str);
        let mut all = params.to_vec();
        all.push(("resource_metadata", metadata));
        all.push(("scope", &scope));
        if scheme == "DPoP" {
            all.push(("algs", &algs));
        }
        Challenge::header(scheme, &all)
    }
}

fn unavailable(why: &'static str) -> Refusal {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, why).with_header(RETRY_AFTER, HeaderValue::from_static("5"))
}

/// A refusal as the response of a layer. Its body is a JSON-RPC error, as that of the transport is.
pub(crate) fn as_response(refusal: &Refusal) -> Response<Bytes> {
    let code = if refusal.status().is_server_error() { -32603 } else { -32600 };
    let error =
        serde_json::json!({ "jsonrpc": "2.0", "id": null, "error": { "code": code, "message": refusal.message() } });
    let mut response = Response::new(Bytes::from(error.to_string()));
    *response.status_mut() = refusal.status();
    *response.headers_mut() = refusal.headers().clone();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
