//! Proof Key for Code Exchange (RFC 7636), method `S256`.

use crate::secret::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};

/// The PKCE code verifier.
pub(crate) struct Pkce {
    pub(crate) verifier: Secret,
    pub(crate) challenge: String,
}

impl Pkce {
    pub(crate) fn generate() -> Pkce {
        Pkce::of(random_text())
    }

    fn of(verifier: String) -> Pkce {
        let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()));
        Pkce { verifier: Secret::new(verifier), challenge }
    }
}

/// 256 random bits in base64url: 43 characters, the shortest verifier RFC 7636 allows.
pub(crate) fn random_text() -> String {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).expect("the system gives random bytes");
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::Pkce;

    #[test]
    fn the_challenge_is_the_one_of_rfc_7636_appendix_b() {
        let pkce = Pkce::of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned());
        assert_eq!(pkce.challenge, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn verifiers_are_long_enough_and_never_the_same() {
        let (a, b) = (Pkce::generate(), Pkce::generate());
        assert_eq!(a.verifier.expose().len(), 43);
        assert_ne!(a.verifier.expose(), b.verifier.expose());
    }
}
