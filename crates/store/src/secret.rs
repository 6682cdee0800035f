//! The secrets from which the keys of sealed values are derived.

use crate::error::{Error, ErrorKind};
use ring::rand::{SecureRandom as _, SystemRandom};
use std::fmt;
use std::io::{ErrorKind as Io, Read as _, Write as _};
use std::path::Path;

/// How many bytes a secret has.
const LEN: usize = 32;

/// How many secrets a store may have.
const SECRETS_MAX: usize = 8;

/// One or more secrets of 32 bytes. New values are sealed with the first one; values sealed with any of them can be
/// opened.
///
/// To rotate, put a new secret before the old one, and remove the old one when everything it sealed has expired.
///
/// # Example
///
/// ```
/// use linchpin_store::{Seal, Secrets};
///
/// let sealed = Seal::new(&Secrets::new([1; 32])).seal("token", b"token/ada", b"t0k3n");
///
/// // After a rotation, values sealed with the previous secret can still be opened.
/// let rotated = Seal::new(&Secrets::new([2; 32]).and_previous([1; 32]));
/// assert_eq!(rotated.open("token", b"token/ada", &sealed)?, "t0k3n");
/// # Ok::<(), linchpin_store::Error>(())
/// ```
#[derive(Clone)]
pub struct Secrets(pub(crate) Vec<[u8; LEN]>);

impl Secrets {
    /// Uses one secret, which must be random.
    pub fn new(secret: [u8; LEN]) -> Secrets {
        Secrets(vec![secret])
    }

    /// Adds a previous secret, so that values sealed with it can still be opened.
    #[must_use]
    pub fn and_previous(mut self, secret: [u8; LEN]) -> Secrets {
        self.0.push(secret);
        self
    }

    /// Parses secrets of 64 hexadecimal digits each, separated by whitespace, the current one first. `openssl rand -hex
    /// 32` creates one.
    ///
    /// # Errors
    /// If there are no secrets, more than 8, or an invalid one. The error never contains any of the text.
    pub fn parse(text: &str) -> Result<Secrets, Error> {
        let secrets: Option<Vec<_>> = text.split_whitespace().map(from_hex).collect();
        match secrets {
            Some(secrets) if (1..=SECRETS_MAX).contains(&secrets.len()) => Ok(Secrets(secrets)),
            _ => {
                let text = "a secret is 64 hexadecimal digits (`openssl rand -hex 32`), and there are 1 to 8 of them";
                Err(Error::new(ErrorKind::Config, text))
            }
        }
    }

    /// Reads secrets from a file in the format of [`Secrets::parse`]. On Unix, the file must be accessible only by its
    /// owner.
    ///
    /// # Errors
    /// If the file cannot be read, is accessible by other users, or contains no valid secrets.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Secrets, Error> {
        let path = path.as_ref();
        let failed = |error| config(path, "cannot be read").caused_by(error);
        let file = std::fs::File::open(path).map_err(failed)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            if file.metadata().map_err(failed)?.permissions().mode() & 0o077 != 0 {
                return Err(config(path, "can be read by others; `chmod 600` it"));
            }
        }
        let mut text = String::new();
        file.take(4096).read_to_string(&mut text).map_err(failed)?;
        Secrets::parse(&text).map_err(|error| config(path, "has no secrets").caused_by(error))
    }

    /// Reads secrets from a file, or creates the file with a new secret, readable only by its owner.
    ///
    /// # Errors
    /// See [`Secrets::from_file`]; also if the file cannot be created.
    pub fn from_file_or_new(path: impl AsRef<Path>) -> Result<Secrets, Error> {
        let path = path.as_ref();
        match std::fs::symlink_metadata(path) {
            Ok(_) => return Secrets::from_file(path),
            Err(error) if error.kind() == Io::NotFound => {}
            Err(error) => return Err(config(path, "cannot be read").caused_by(error)),
        }
        let failed = |error| config(path, "cannot be made").caused_by(error);
        let (secrets, mut suffix) = (Secrets::random(), [0; 8]);
        fill(&mut suffix);
        // Written aside and linked, so that of two processes that start at once one makes the file, and both read a whole one.
        let mut aside = path.as_os_str().to_owned();
        aside.push(format!(".{}.new", to_hex(&suffix)));
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&aside).map_err(failed)?;
        let written = writeln!(file, "{}", to_hex(&secrets.0[0])).and_then(|()| file.sync_all());
        let linked = written.and_then(|()| std::fs::hard_link(&aside, path));
        let _ = std::fs::remove_file(&aside);
        match linked {
            Err(error) if error.kind() != Io::AlreadyExists => Err(failed(error)),
            _ => Secrets::from_file(path),
        }
    }

    /// Creates a new random secret.
    pub fn random() -> Secrets {
        let mut secret = [0; LEN];
        fill(&mut secret);
        Secrets::new(secret)
    }
}

impl fmt::Debug for Secrets {
    /// Shows only the number of secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

/// Fills bytes with random ones of the system.
pub(crate) fn fill(bytes: &mut [u8]) {
    SystemRandom::new().fill(bytes).expect("the system has random numbers");
}

fn config(path: &Path, what: &'static str) -> Error {
    Error::new(ErrorKind::Config, format!("the key file {} {what}", path.display()))
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn from_hex(text: &str) -> Option<[u8; LEN]> {
    let digits: Option<Vec<u8>> = text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
    let bytes: Vec<u8> = digits?.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect();
    bytes.try_into().ok().filter(|_| text.len() == 2 * LEN)
}
