//! Access tokens, and a guard that takes them.

use linchpin::guard::{Guard, JwkSet, TrustedIssuer};
use linchpin_oauth::dpop::DpopKey;
use linchpin_oauth::{Alg, Signer};
use std::time::{SystemTime, UNIX_EPOCH};

/// The URL of the server that tokens are for.
pub const SERVER: &str = "https://mcp.example.com/mcp";
const ISSUER: &str = "https://login.example.com";

/// The time in seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// An issuer with one key, and its tokens.
pub struct Issuer(Signer);

impl Issuer {
    /// An issuer whose key is for this algorithm.
    pub fn new(alg: Alg) -> Issuer {
        Issuer(Signer::generate(alg).0.kid("bench"))
    }

    /// A guard that takes its tokens.
    pub fn guard(&self) -> Guard {
        let issuer = TrustedIssuer::new(ISSUER).keys(JwkSet::from_iter([self.0.jwk()]));
        Guard::new(SERVER).issuer(issuer).require(["mcp"])
    }

    /// The token of this number, bound to a key or not.
    pub fn token(&self, id: u32, bound: Option<&DpopKey>) -> String {
        let mut claims = serde_json::json!({
            "iss": ISSUER, "aud": SERVER, "sub": "ada", "client_id": "bench", "scope": "mcp files:read files:write",
            "iat": now(), "exp": now() + 3600, "jti": id,
        });
        if let Some(key) = bound {
            claims["cnf"] = serde_json::json!({ "jkt": key.thumbprint().to_string() });
        }
        self.0.sign("at+jwt", &claims)
    }
}
