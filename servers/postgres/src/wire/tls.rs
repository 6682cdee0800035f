//! TLS, as configured by `sslmode`.

use crate::config::{SslMode, Target};
use linchpin_kit::ToolError;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_platform_verifier::Verifier;
use std::path::Path;
use std::sync::Arc;

/// The TLS settings for a database; reads the files that they name.
pub(super) fn config(target: &Target) -> Result<ClientConfig, ToolError> {
    let provider = Arc::new(ring::default_provider());
    let trust = match (target.ssl, target.root_certificate.as_deref()) {
        (SslMode::VerifyFull, None | Some("system")) => {
            Trust::Platform(Verifier::new(provider.clone()).map_err(|e| unusable("The system's certificates", &e))?)
        }
        (SslMode::VerifyCa | SslMode::VerifyFull, Some(path)) => roots(Path::new(path), &provider)?,
        _ => Trust::Anybody,
    };
    let checks = Checks { provider: provider.clone(), trust, name: target.ssl == SslMode::VerifyFull };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| unusable("TLS", &e))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(checks));
    let Some((certificate, key)) = &target.client_certificate else {
        return Ok(builder.with_no_client_auth());
    };
    let key = PrivateKeyDer::from_pem_file(key).map_err(|e| unusable(&key.display().to_string(), &e))?;
    builder
        .with_client_auth_cert(certificates(certificate)?, key)
        .map_err(|e| unusable(&certificate.display().to_string(), &e))
}

fn unusable(what: &str, why: &dyn std::fmt::Display) -> ToolError {
    ToolError::new(format!("{what} cannot be used: {why}"))
        .hint("The operator of this server has to correct its configuration.")
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ToolError> {
    let shown = path.display().to_string();
    let certificates: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(path).map_err(|e| unusable(&shown, &e))?.take(1_000).collect();
    let certificates = certificates.map_err(|e| unusable(&shown, &e))?;
    if certificates.is_empty() {
        return Err(unusable(&shown, &"it contains no certificate"));
    }
    Ok(certificates)
}

fn roots(path: &Path, provider: &Arc<CryptoProvider>) -> Result<Trust, ToolError> {
    let pinned = certificates(path)?;
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(pinned.iter().cloned());
    let authority = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider.clone()).build().ok();
    Ok(Trust::Certificates { authority, pinned })
}

/// Which certificates are trusted.
#[derive(Debug)]
enum Trust {
    /// Any certificate: `require` and below protect only against passive eavesdropping.
    Anybody,
    /// Certificates signed by one in the file, and those in the file themselves: many servers have a self-signed
    /// certificate.
    Certificates { authority: Option<Arc<WebPkiServerVerifier>>, pinned: Vec<CertificateDer<'static>> },
    /// Certificates that the system trusts.
    Platform(Verifier),
}

#[derive(Debug)]
struct Checks {
    provider: Arc<CryptoProvider>,
    trust: Trust,
    /// Whether the certificate must also match the host.
    name: bool,
}

impl ServerCertVerifier for Checks {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match &self.trust {
            Trust::Anybody => Ok(ServerCertVerified::assertion()),
            Trust::Platform(verifier) => verifier.verify_server_cert(end_entity, intermediates, name, ocsp, now),
            Trust::Certificates { pinned, .. } if pinned.iter().any(|known| known == end_entity) => {
                if self.name {
                    rustls::client::verify_server_name(&ParsedCertificate::try_from(end_entity)?, name)?;
                }
                Ok(ServerCertVerified::assertion())
            }
            Trust::Certificates { authority: None, .. } => Err(CertificateError::UnknownIssuer.into()),
            Trust::Certificates { authority: Some(authority), .. } => {
                match authority.verify_server_cert(end_entity, intermediates, name, ocsp, now) {
                    // The name is checked last, so everything else is in order here.
                    Err(Error::InvalidCertificate(
                        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
                    )) if !self.name => Ok(ServerCertVerified::assertion()),
                    other => other,
                }
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
