//! Signature algorithms.

use std::fmt;
use std::str::FromStr;

/// A signature algorithm (RFC 7518, section 3.1; RFC 8037 for `EdDSA`). All are asymmetric.
///
/// # Example
///
/// ```
/// use linchpin_oauth::Alg;
///
/// let alg: Alg = "ES256".parse()?;
/// assert_eq!(alg, Alg::Es256);
/// assert_eq!(Alg::EdDsa.name(), "EdDSA");
/// assert_eq!(Alg::named("none"), None);
/// # Ok::<(), linchpin_oauth::KeyError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Alg {
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// RSASSA-PKCS1-v1_5 with SHA-256; keys of 2048 bits and more.
    Rs256,
    /// RSASSA-PKCS1-v1_5 with SHA-384; keys of 2048 bits and more.
    Rs384,
    /// RSASSA-PKCS1-v1_5 with SHA-512; keys of 2048 bits and more.
    Rs512,
    /// RSASSA-PSS with SHA-256; keys of 2048 bits and more.
    Ps256,
    /// RSASSA-PSS with SHA-384; keys of 2048 bits and more.
    Ps384,
    /// RSASSA-PSS with SHA-512; keys of 2048 bits and more.
    Ps512,
    /// Ed25519, under its older name `EdDSA` or its own.
    EdDsa,
}

impl Alg {
    /// All algorithms.
    pub const ALL: &[Alg] =
        &[Alg::Es256, Alg::Es384, Alg::Rs256, Alg::Rs384, Alg::Rs512, Alg::Ps256, Alg::Ps384, Alg::Ps512, Alg::EdDsa];

    /// Returns the name that is used in the header `alg` and in `token_endpoint_auth_signing_alg_values_supported`.
    pub fn name(self) -> &'static str {
        match self {
            Alg::Es256 => "ES256",
            Alg::Es384 => "ES384",
            Alg::Rs256 => "RS256",
            Alg::Rs384 => "RS384",
            Alg::Rs512 => "RS512",
            Alg::Ps256 => "PS256",
            Alg::Ps384 => "PS384",
            Alg::Ps512 => "PS512",
            Alg::EdDsa => "EdDSA",
        }
    }

    /// Parses a name as returned by [`Alg::name`], or `Ed25519` (RFC 9864). Case-sensitive.
    ///
    /// Returns `None` for every other name, including `none` and the symmetric algorithms.
    pub fn named(name: &str) -> Option<Alg> {
        match name {
            "Ed25519" => Some(Alg::EdDsa),
            name => Alg::ALL.iter().copied().find(|alg| alg.name() == name),
        }
    }
}

impl fmt::Display for Alg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Alg {
    type Err = KeyError;

    /// Parses a name like [`Alg::named`].
    fn from_str(name: &str) -> Result<Alg, Self::Err> {
        Alg::named(name).ok_or(KeyError::UnknownAlg)
    }
}

/// Why a private key is invalid. Contains nothing of the key itself.
///
/// # Example
///
/// ```
/// use linchpin_oauth::{Alg, KeyError, Signer};
///
/// let error = Signer::from_pem("not a PEM file", Alg::Es256).unwrap_err();
/// assert!(matches!(error, KeyError::NotPem));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum KeyError {
    /// The name is not one of a supported algorithm, see [`Alg::named`].
    UnknownAlg,
    /// The text contains no unencrypted private key.
    NotPem,
    /// A key of this kind cannot be used with the algorithm.
    Mismatch(Alg),
    /// The key is for another algorithm, damaged or too weak; the text says which.
    Rejected(Alg, String),
    /// The stored form of a DPoP key cannot be read.
    NotStored,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyError::UnknownAlg => {
                f.write_str("the signature algorithm is not supported: use ")?;
                for (at, alg) in Alg::ALL.iter().enumerate() {
                    let before = if at == 0 { "" } else { ", " };
                    write!(f, "{before}{alg}")?;
                }
                Ok(())
            }
            KeyError::NotPem => f.write_str(
                "no private key found: use an unencrypted PEM key (BEGIN PRIVATE KEY, BEGIN EC PRIVATE KEY or BEGIN RSA PRIVATE KEY)",
            ),
            KeyError::Mismatch(alg) => write!(f, "this kind of private key does not sign with {alg}"),
            KeyError::Rejected(alg, why) => write!(f, "the private key cannot be used for {alg}: {why}"),
            KeyError::NotStored => f.write_str("the stored DPoP key is damaged"),
        }
    }
}

impl std::error::Error for KeyError {}

#[cfg(test)]
mod tests {
    use super::Alg;

    #[test]
    fn names_of_algorithms_are_read_as_they_are_written() {
        for alg in Alg::ALL {
            assert_eq!(alg.to_string().parse::<Alg>().unwrap(), *alg);
        }
        assert_eq!(Alg::named("Ed25519"), Some(Alg::EdDsa));
        for wrong in ["none", "None", "es256", "RS256 ", "HS256", "HS384", "HS512", "ES256K", "Ed448", ""] {
            assert!(Alg::named(wrong).is_none(), "{wrong}");
        }
    }
}
