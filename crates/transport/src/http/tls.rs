//! TLS for the listener: a certificate and its key, replaced while the server runs.

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{InconsistentKeys, ServerConfig};
use std::fmt;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_rustls::TlsAcceptor;

/// How often a listener looks at the files.
pub(crate) const RELOAD_INTERVAL: Duration = Duration::from_secs(2);
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The certificate of a server and its private key, for [`Http::tls`](super::Http::tls).
///
/// Clients are offered TLS 1.2 and 1.3 and, through ALPN, HTTP/2 and HTTP/1.1.
///
/// ```no_run
/// use linchpin_transport::http::{Tls, http};
///
/// # fn example() -> Result<(), linchpin_transport::http::TlsError> {
/// let transport = http("0.0.0.0:8443").allow_host("mcp.example").tls(Tls::from_files("cert.pem", "key.pem")?);
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[doc(alias = "https")]
#[doc(alias = "rustls")]
pub struct Tls {
    acceptor: TlsAcceptor,
    shared: Arc<Shared>,
}

struct Shared {
    provider: Arc<CryptoProvider>,
    certificate: Arc<Certificate>,
    files: Option<Files>,
    /// The digest of the files that were loaded last.
    loaded: Mutex<u64>,
    /// The last message about broken files.
    warned: Mutex<Option<String>>,
}

struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

/// What handshakes use.
#[derive(Debug)]
struct Certificate(Mutex<Arc<CertifiedKey>>);

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(lock(&self.0).clone())
    }
}

impl Tls {
    /// Reads a PEM file of certificates (the server's own first, then the intermediate ones) and one of the private key.
    ///
    /// A listener reads both again every two seconds. New connections get the new certificate; while the new files are
    /// not valid, the server keeps the old one and logs a warning. Pipes are read once.
    ///
    /// # Errors
    /// If a file cannot be read, holds no PEM of its kind, or the key does not belong to the certificate.
    pub fn from_files(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Result<Tls, TlsError> {
        let files = Files { certificate: certificate.into(), key: key.into() };
        let (pem, digest) = files.read()?;
        Tls::new(&pem, Some(files), digest)
    }

    /// Reads the certificates and the private key from PEM data, for secrets that are not in files.
    ///
    /// # Errors
    /// If one is not PEM of its kind, or the key does not belong to the certificate.
    pub fn from_pem(certificate: impl AsRef<[u8]>, key: impl AsRef<[u8]>) -> Result<Tls, TlsError> {
        let certificate = ("the first argument".to_owned(), certificate.as_ref().to_vec());
        let key = ("the second argument".to_owned(), key.as_ref().to_vec());
        Tls::new(&Pem { certificate, key }, None, 0)
    }

    fn new(pem: &Pem, files: Option<Files>, digest: u64) -> Result<Tls, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let certificate = Arc::new(Certificate(Mutex::new(pem.load(&provider)?)));
        let mut config = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|e| TlsError(format!("TLS cannot be set up: {e}")))?
            .with_no_client_auth()
            .with_cert_resolver(certificate.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let shared = Shared { provider, certificate, files, loaded: Mutex::new(digest), warned: Mutex::default() };
        Ok(Tls { acceptor: Arc::new(config).into(), shared: Arc::new(shared) })
    }

    /// Reads the files again now, for example on SIGHUP. Returns `false` if they have not changed, are pipes, or do not
    /// exist because the certificate is from `Tls::from_pem`.
    ///
    /// This blocks the thread for as long as the files take to read.
    ///
    /// # Errors
    /// The same as for [`Tls::from_files`]; the server then keeps its certificate.
    pub fn reload(&self) -> Result<bool, TlsError> {
        let shared = &self.shared;
        let Some(files) = shared.files.as_ref().filter(|files| !files.are_pipes()) else { return Ok(false) };
        let mut loaded = lock(&shared.loaded);
        let (pem, digest) = files.read()?;
        if *loaded == digest {
            return Ok(false);
        }
        *lock(&shared.certificate.0) = pem.load(&shared.provider)?;
        *loaded = digest;
        Ok(true)
    }

    /// Reloads, and logs what is new.
    pub(crate) fn look(&self) {
        let mut warned = lock(&self.shared.warned);
        match self.reload() {
            Ok(changed) => {
                if changed {
                    tracing::info!("loaded a new TLS certificate");
                }
                *warned = None;
            }
            Err(error) => {
                let text = error.to_string();
                if warned.as_ref() != Some(&text) {
                    tracing::warn!(%error, "keeping the old TLS certificate");
                    *warned = Some(text);
                }
            }
        }
    }

    /// Whether the certificate can change.
    pub(crate) fn has_files(&self) -> bool {
        self.shared.files.is_some()
    }

    pub(crate) fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let certificate = self.shared.files.as_ref().map(|files| &files.certificate);
        f.debug_struct("Tls").field("certificate", &certificate).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Files {
    fn read(&self) -> Result<(Pem, u64), TlsError> {
        let read = |what: &str, path: &Path| {
            read(path).map_err(|e| TlsError(format!("cannot read the {what} {}: {e}", path.display())))
        };
        let certificate = read("certificate", &self.certificate)?;
        let key = read("private key", &self.key)?;
        let mut hasher = DefaultHasher::new();
        (&certificate, &key).hash(&mut hasher);
        let name = |path: &Path| path.display().to_string();
        let pem = Pem { certificate: (name(&self.certificate), certificate), key: (name(&self.key), key) };
        Ok((pem, hasher.finish()))
    }

    /// Whether reading again could block forever.
    fn are_pipes(&self) -> bool {
        [&self.certificate, &self.key].iter().any(|path| path.metadata().is_ok_and(|file| !file.is_file()))
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > FILE_BYTES_MAX {
        true => Err(io::Error::other("the file is larger than 1 MiB")),
        false => Ok(bytes),
    }
}

/// Both texts, each with the name that errors give it.
struct Pem {
    certificate: (String, Vec<u8>),
    key: (String, Vec<u8>),
}

impl Pem {
    fn load(&self, provider: &CryptoProvider) -> Result<Arc<CertifiedKey>, TlsError> {
        let (name, text) = &self.certificate;
        let chain: Vec<_> = CertificateDer::pem_slice_iter(text)
            .collect::<Result<_, _>>()
            .map_err(|e| TlsError(format!("{name} is not valid PEM: {e}")))?;
        if chain.is_empty() {
            return Err(TlsError(format!("{name} contains no certificate in PEM (-----BEGIN CERTIFICATE-----)")));
        }
        let (key_name, text) = &self.key;
        let key = PrivateKeyDer::from_pem_slice(text).map_err(|e| {
            TlsError(match e {
                pem::Error::NoItemsFound => {
                    format!("{key_name} contains no unencrypted private key in PEM (-----BEGIN PRIVATE KEY-----)")
                }
                e => format!("{key_name} is not valid PEM: {e}"),
            })
        })?;
        let signing = provider.key_provider.load_private_key(key);
        let signing = signing.map_err(|e| TlsError(format!("the private key in {key_name} cannot be used: {e}")))?;
        let certified = CertifiedKey::new(chain, signing);
        match certified.keys_match() {
            Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(Arc::new(certified)),
            Err(rustls::Error::InconsistentKeys(_)) => {
                Err(TlsError(format!("the private key in {key_name} does not belong to the certificate in {name}")))
            }
            Err(e) => Err(TlsError(format!("{name} contains no valid certificate: {e}"))),
        }
    }
}

/// The reason why a certificate or key cannot be used. The message names the file.
///
/// ```
/// use linchpin_transport::http::{Tls, TlsError};
///
/// let error: TlsError = Tls::from_files("/nowhere/cert.pem", "/nowhere/key.pem").unwrap_err();
/// assert!(error.to_string().contains("/nowhere/cert.pem"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsError(String);

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TlsError {}
