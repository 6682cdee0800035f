//! DPoP: whether the sender of a token has the key that the token is bound to.

use crate::mode::Dpop;
use crate::refuse::Refusals;
use crate::replay::{Replay, Use};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use linchpin_core::gate::Refusal;
use linchpin_oauth::dpop::{self, Expected};
use linchpin_oauth::{Thumbprint, sha256};

/// Checks the proof of a request with a token that is bound to a key. Where nodes remember proofs together, it is good if the
/// store has it under this key for the first time.
pub(crate) fn check(
    proof: Result<&str, &'static str>,
    bound: &Thumbprint,
    expected: &Expected<'_>,
    replay: &Replay,
    refusals: &Refusals,
    resource: usize,
) -> Result<Option<String>, Refusal> {
    let bad = |why| refusals.proof(resource, "invalid_dpop_proof", why);
    let proof = proof.map_err(bad)?;
    let checked = dpop::check(proof, expected).map_err(|why| bad(sentence(why)))?;
    if checked.thumbprint != *bound {
        return Err(refusals.proof(resource, "invalid_token", "the token is bound to another key"));
    }
    if refusals.dpop == Dpop::Profile && expected.method == "POST" && checked.content_digest.is_none() {
        return Err(bad("the proof has no content_digest"));
    }
    match replay.used(&checked, expected.now) {
        Use::First => Ok(None),
        Use::Shared(key) => Ok(Some(key)),
        Use::Again => Err(bad(AGAIN)),
        Use::Nonce(nonce) => Err(refusals.nonce(resource, &nonce)),
    }
}

/// What is wrong with a proof that was used before.
pub(crate) const AGAIN: &str = "the proof was used before";

fn sentence(why: dpop::ProofError) -> &'static str {
    match why {
        dpop::ProofError::Signature => "the signature of the proof is not valid",
        dpop::ProofError::OtherRequest => "the proof is for another request",
        dpop::ProofError::OtherToken => "the proof is for another token",
        dpop::ProofError::Untimely => "the proof is too old, or the clock of the client is wrong",
        _ => "the proof is malformed",
    }
}

/// Whether a body is the one that a checked proof names, if it names one.
pub(crate) fn is_of(proof: &str, body: &[u8]) -> bool {
    match dpop::content_digest(proof) {
        Some(digest) => digest == format!("sha-256=:{}:", STANDARD.encode(sha256(body))),
        None => true,
    }
}
