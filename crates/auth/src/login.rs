//! How a person says yes: the address of the authorization server goes out, the callback URL comes back.
//!
//! [`Browser`] opens the person's browser and listens on the loopback interface; [`Paste`] shows the address and reads
//! what the person pastes; [`Headless`] asks a closure.

mod browser;
mod callback;
mod page;
mod paste;

pub use browser::Browser;
pub use callback::{Callback, CallbackError, callback_params};
pub use paste::{Headless, Paste};

use linchpin_proto::service::BoxFuture;
use std::fmt;
use std::io;
use std::time::Duration;

/// Sends a person (or what stands in for one) to the authorization server and brings back the answer.
pub trait Login: Send + Sync + 'static {
    /// The redirect URI of the next login. Asked for before each [`Login::authorize`], because a listener may have
    /// another port each time.
    ///
    /// # Errors
    /// When no listener can be opened.
    fn redirect_uri(&self) -> BoxFuture<'_, Result<String, LoginError>>;

    /// Sends the person to `url` and waits for the callback; returns its whole URL, query included.
    ///
    /// Cancel-safe: dropping the future gives the login up and closes what listened.
    ///
    /// # Errors
    /// When nobody came back in time, or not with a callback.
    fn authorize(&self, url: &str) -> BoxFuture<'_, Result<String, LoginError>>;
}

/// Why no callback came back. Never holds a code, a state or an address with them.
#[derive(Debug)]
#[non_exhaustive]
pub enum LoginError {
    /// The loopback listener cannot be opened, or failed.
    Listen(io::Error),
    /// [`Login::authorize`] was called without asking [`Login::redirect_uri`] first.
    NotListening,
    /// The browser cannot be opened, and nobody was there to be shown the address.
    Browser(io::Error),
    /// The address is not one for a browser (`http` or `https`), so it was not opened.
    NotForBrowser,
    /// Nobody came back in this time.
    TimedOut(Duration),
    /// What came back is no callback.
    Callback(CallbackError),
    /// What the program hooked in failed, in its own words; also when the person gave up.
    Failed(String),
}

impl fmt::Display for LoginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoginError::Listen(_) => f.write_str("cannot listen on 127.0.0.1 for the answer of the login"),
            LoginError::NotListening => f.write_str("the redirect URI was not asked for before the login"),
            LoginError::Browser(_) => f.write_str("cannot open a browser for the login"),
            LoginError::NotForBrowser => {
                f.write_str("the authorization server's address is neither http nor https, so it was not opened")
            }
            LoginError::TimedOut(wait) => write!(f, "nobody finished the login within {} s", wait.as_secs()),
            LoginError::Callback(_) => f.write_str("the answer of the login cannot be used"),
            LoginError::Failed(why) => write!(f, "the login did not happen: {why}"),
        }
    }
}

impl std::error::Error for LoginError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            LoginError::Listen(error) | LoginError::Browser(error) => Some(error),
            LoginError::Callback(error) => Some(error),
            _ => None,
        }
    }
}

impl From<CallbackError> for LoginError {
    fn from(error: CallbackError) -> LoginError {
        LoginError::Callback(error)
    }
}
