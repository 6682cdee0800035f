//! Proof Key for Code Exchange (RFC 7636), method `S256`.

use crate::random::{random_text, sha256};
use crate::secret::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// A code verifier and its challenge, which a client creates for one authorization request.
///
/// # Example
///
/// ```
/// use linchpin_oauth::{CodeChallenge, Pkce};
///
/// let pkce = Pkce::generate();
/// let url = format!("https://login.example/authorize?code_challenge={}", pkce.challenge);
/// # assert!(url.len() > 43);
/// // The authorization server compares the challenge with the verifier of the token request.
/// let challenge = CodeChallenge::parse(&pkce.challenge).expect("an S256 challenge");
/// assert!(challenge.is_of(pkce.verifier.expose()));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Pkce {
    /// The verifier, for the token request.
    pub verifier: Secret,
    /// The challenge, for the authorization request.
    pub challenge: String,
}

impl Pkce {
    /// Creates a verifier of 256 random bits.
    ///
    /// # Panics
    /// If the operating system provides no random bytes.
    pub fn generate() -> Pkce {
        Pkce::of(random_text())
    }

    fn of(verifier: String) -> Pkce {
        Pkce { challenge: challenge(&verifier), verifier: Secret::new(verifier) }
    }
}

/// A code challenge that an authorization server received, to be compared with the verifier.
///
/// # Example
///
/// ```
/// use linchpin_oauth::CodeChallenge;
///
/// // The values of RFC 7636, appendix B.
/// let challenge = CodeChallenge::parse("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM").unwrap();
/// assert!(challenge.is_of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"));
/// assert!(!challenge.is_of("another-verifier-that-has-at-least-43-characters"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeChallenge(Secret);

impl CodeChallenge {
    /// Parses an S256 challenge: 43 characters of base64url. Returns `None` for anything else.
    pub fn parse(text: &str) -> Option<CodeChallenge> {
        let hash = URL_SAFE_NO_PAD.decode(text).ok()?;
        (hash.len() == 32).then(|| CodeChallenge(Secret::new(text)))
    }

    /// Returns the challenge as it was received.
    pub fn as_str(&self) -> &str {
        self.0.expose()
    }

    /// Whether this is the challenge of a verifier, which must have 43 to 128 characters of the allowed ones.
    pub fn is_of(&self, verifier: &str) -> bool {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let formed = (43..=128).contains(&verifier.len()) && verifier.bytes().all(allowed);
        formed && Secret::new(challenge(verifier)) == self.0
    }
}

fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(sha256(verifier.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::{CodeChallenge, Pkce};

    #[test]
    fn the_challenge_is_the_one_of_rfc_7636_appendix_b() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        let pkce = Pkce::of(verifier.to_owned());
        assert_eq!(pkce.challenge, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        let challenge = CodeChallenge::parse(&pkce.challenge).unwrap();
        assert!(challenge.is_of(verifier));
        for wrong in ["", "dBjf", &verifier.replace('d', "e"), &format!("{verifier} ")] {
            assert!(!challenge.is_of(wrong), "{wrong}");
        }
    }

    #[test]
    fn only_hashes_are_challenges() {
        for wrong in
            ["", "plain", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-c", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM="]
        {
            assert!(CodeChallenge::parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn verifiers_are_long_enough_and_never_the_same() {
        let (a, b) = (Pkce::generate(), Pkce::generate());
        assert_eq!(a.verifier.expose().len(), 43);
        assert_ne!(a.verifier.expose(), b.verifier.expose());
    }
}
