//! Signature algorithms.

use std::fmt;
use std::str::FromStr;

/// A signature algorithm (RFC 7518, section 3.1; RFC 8037 for `EdDSA`). All are asymmetric.
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

    /// Returns the name in a header's `alg` and in `token_endpoint_auth_signing_alg_values_supported`.
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

    /// Reads a name as [`Alg::name`] writes it, and `Ed25519` (RFC 9864). Case matters. `None` for every other name:
    /// `none` and symmetric algorithms among them.
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
    type Err = crate::signer::KeyError;

    /// Reads a name as [`Alg::named`] does.
    fn from_str(name: &str) -> Result<Alg, Self::Err> {
        Alg::named(name).ok_or(crate::signer::KeyError::UnknownAlg)
    }
}

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
