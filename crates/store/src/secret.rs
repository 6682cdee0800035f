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

/// One or more secrets of 32 bytes: the first seals, all of them open.
///
/// To rotate, put a new one before the old one, and remove the old one when what it sealed has expired.
#[derive(Clone)]
pub struct Secrets(pub(crate) Vec<[u8; LEN]>);

impl Secrets {
    /// One secret, which must be random.
    pub fn new(secret: [u8; LEN]) -> Secrets {
        Secrets(vec![secret])
    }

    /// Also opens what this secret sealed.
    #[must_use]
    pub fn and_previous(mut self, secret: [u8; LEN]) -> Secrets {
        self.0.push(secret);
        self
    }

    /// Reads secrets as text: each 64 hexadecimal digits, separated by blanks or lines, the current one first.
    /// `openssl rand -hex 32` makes one.
    ///
    /// # Errors
    /// If there is none, or one is something else. The error never contains it.
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

    /// Reads a file of secrets as [`Secrets::parse`] does. On Unix, nobody but its owner may have access to it.
    ///
    /// # Errors
    /// If it cannot be read, is readable by others, or has no secret.
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

    /// Reads a file of secrets, or makes one with a new secret that only its owner can read.
    ///
    /// # Errors
    /// As [`Secrets::from_file`], or if the file cannot be made.
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

    /// A new secret.
    pub fn random() -> Secrets {
        let mut secret = [0; LEN];
        fill(&mut secret);
        Secrets::new(secret)
    }
}

impl fmt::Debug for Secrets {
    /// How many there are.
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
