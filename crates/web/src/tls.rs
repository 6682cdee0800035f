//! TLS with the certificates of the platform, loaded for the first secure connection: clients that only connect to this
//! machine do not load them.

use super::WebError;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use rustls_platform_verifier::Verifier;
use std::sync::{Arc, OnceLock};

/// The configuration for a client that trusts the platform's certificates and `extra` ones (DER).
pub(super) fn config(extra: &[Vec<u8>]) -> Result<ClientConfig, WebError> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Platform { provider: provider.clone(), extra: extra.to_vec(), own: OnceLock::new() };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| WebError::invalid(format!("TLS cannot be set up: {e}")))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Reads certificates in PEM form, for [`WebOptions::extra_roots`](super::WebOptions::extra_roots).
///
/// # Errors
/// If the text contains no certificate, or an invalid one.
///
/// ```no_run
/// use linchpin_web::{Web, WebOptions, roots_from_pem};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let roots = roots_from_pem(&std::fs::read("company.pem")?)?;
/// let web = Web::new(WebOptions::default().with(|options| options.extra_roots = roots));
/// # Ok(()) }
/// ```
pub fn roots_from_pem(pem: &[u8]) -> Result<Vec<Vec<u8>>, WebError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = read.map_err(|e| WebError::invalid(format!("the certificates cannot be read: {e}")))?;
    match found.is_empty() {
        true => Err(WebError::invalid("there is no certificate in PEM form".to_owned())),
        false => Ok(found.iter().map(|der| der.to_vec()).collect()),
    }
}

/// The platform's verifier, created on first use.
#[derive(Debug)]
struct Platform {
    provider: Arc<CryptoProvider>,
    extra: Vec<Vec<u8>>,
    own: OnceLock<Result<Verifier, Error>>,
}

/// The configuration without extra certificates is shared by the whole process.
static SHARED: OnceLock<Result<Verifier, Error>> = OnceLock::new();

impl Platform {
    fn verifier(&self) -> Result<&Verifier, Error> {
        let place = if self.extra.is_empty() { &SHARED } else { &self.own };
        place.get_or_init(|| self.load()).as_ref().map_err(Clone::clone)
    }

    #[cfg(any(all(unix, not(target_os = "android")), windows))]
    fn load(&self) -> Result<Verifier, Error> {
        let extra = self.extra.iter().map(|der| CertificateDer::from(der.clone()));
        Verifier::new_with_extra_roots(extra, self.provider.clone())
    }

    #[cfg(not(any(all(unix, not(target_os = "android")), windows)))]
    fn load(&self) -> Result<Verifier, Error> {
        match self.extra.is_empty() {
            true => Verifier::new(self.provider.clone()),
            false => Err(Error::General("extra root certificates are not supported on this platform".to_owned())),
        }
    }
}

impl ServerCertVerifier for Platform {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verifier()?.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier()?.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier()?.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_read_and_what_is_none_is_said() {
        let one = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
        let two = format!("# a comment\n{one}\n{one}");
        assert_eq!(roots_from_pem(two.as_bytes()).unwrap(), [b"hello", b"hello"]);
        let damaged = one.replace("aGVsbG8=", "!");
        for (pem, why) in
            [("", "no certificate in PEM form"), ("hello", "no certificate"), (&damaged, "cannot be read")]
        {
            let error = roots_from_pem(pem.as_bytes()).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        }
    }
}
