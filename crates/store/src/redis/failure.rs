//! What errors of Redis mean.

use crate::error::{Error, ErrorKind};
use ::redis::{ErrorKind as Kind, RedisError};

/// Why an attempt failed.
pub(super) struct Failure {
    pub(super) error: Error,
    /// Whether another attempt may succeed soon.
    pub(super) again: bool,
    /// Whether the connection is of no use any more.
    pub(super) broken: bool,
}

impl Failure {
    /// The server does not answer.
    pub(super) fn away(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Failure {
        let error = Error::new(ErrorKind::Unavailable, "Redis does not answer").caused_by(cause);
        Failure { error, again: true, broken: true }
    }

    /// Nothing but a change of its configuration helps.
    fn config(message: &'static str, cause: RedisError) -> Failure {
        Failure { error: Error::new(ErrorKind::Config, message).caused_by(cause), again: false, broken: false }
    }
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Failure {
        if error.to_string().contains("invalid peer certificate") {
            let message = "the certificate of Redis is not trusted, or for another name (SSL_CERT_FILE names authorities of your own)";
            return Failure::config(message, error);
        }
        match error.kind() {
            // An answer that was cut, or is none of Redis.
            Kind::Io | Kind::Parse => return Failure::away(error),
            Kind::AuthenticationFailed => return Failure::config("Redis refuses the name or the password", error),
            Kind::InvalidClientConfig => return Failure::config("Redis cannot be used as its URL says", error),
            Kind::RESP3NotSupported => return Failure::config("Redis is too old: 6.2 is needed, or Valkey", error),
            _ => {}
        }
        // Errors inside of scripts are wrapped in another text by some versions.
        let text = error.to_string();
        let says = |codes: &[&str]| codes.iter().any(|code| text.contains(code) || error.code() == Some(code));
        if says(&["READONLY", "MOVED"]) {
            // After a failover the same name leads to another server, and slots of a cluster move.
            return Failure::away(error);
        }
        if says(&["OOM", "MISCONF", "NOREPLICAS"]) {
            let error = Error::new(ErrorKind::Full, "Redis takes no writes").caused_by(error);
            return Failure { error, again: false, broken: false };
        }
        if says(&["LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "ASK", "BUSY"]) {
            return Failure { broken: false, ..Failure::away(error) };
        }
        if says(&["NOAUTH", "WRONGPASS"]) {
            return Failure::config("Redis refused the name and password, or requires them", error);
        }
        if says(&["NOPERM"]) {
            return Failure::config("Redis does not permit what the store has to do", error);
        }
        if says(&["DB index is out of range", "SELECT is not allowed in cluster mode"]) {
            return Failure::config("this Redis has no database of the number in its URL; a cluster has 0 only", error);
        }
        let error = Error::new(ErrorKind::Corrupt, "Redis has something else where the store's records are");
        Failure { error: error.caused_by(text), again: false, broken: false }
    }
}
