//! DPoP at the token endpoint (RFC 9449, section 5): what is issued is bound to the key of the request's proof.

use crate::answer::Refused;
use crate::client::hash;
use crate::records::Space;
use crate::request::Incoming;
use crate::shared::Shared;
use linchpin_oauth::dpop::{self, Expected};
use std::time::Duration;

/// The algorithms that proofs are asked for in.
pub(crate) const PROOF_ALGS: [&str; 2] = ["ES256", "EdDSA"];

/// The key that a token request proves to have: its thumbprint. `None` if there is no proof.
pub(crate) async fn key(shared: &Shared, incoming: &Incoming) -> Result<Option<String>, Refused> {
    const BAD: Refused = Refused::new("invalid_dpop_proof", "the DPoP proof is malformed, old, or for another request");
    let mut proofs = incoming.headers.get_all("dpop").iter();
    let proof = match (proofs.next(), proofs.next()) {
        (None, _) => return Ok(None),
        (Some(proof), None) => proof.to_str().map_err(|_| BAD)?,
        (Some(_), Some(_)) => return Err(BAD),
    };
    let target = dpop::target(&shared.url("token")).unwrap_or_default();
    let expected = Expected::new("POST", &target, shared.now());
    let proof = dpop::check(proof, &expected).map_err(|_| BAD)?;
    let thumbprint = proof.thumbprint.to_string();
    let name = format!("dpop-{}", hash(&format!("{thumbprint} {}", proof.id)));
    // A proof may have been made in the future as well as in the past.
    let life = Duration::from_secs(2 * dpop::AGE_S_MAX);
    match shared.records.create(Space::Replay, &name, &(), life).await? {
        true => Ok(Some(thumbprint)),
        false => Err(Refused::new("invalid_dpop_proof", "the DPoP proof was used before")),
    }
}

/// Whether a text can be a thumbprint (`dpop_jkt`).
pub(crate) fn is_thumbprint(text: &str) -> bool {
    linchpin_oauth::Thumbprint::parse(text).is_some()
}
