//! Logins: the user opens the authorization URL, and the callback URL comes back.
//!
//! [`Browser`] opens the user's browser and listens on the loopback interface; [`ManualLogin`] shows the URL and reads
//! what the user pastes; [`Headless`] calls a closure.

mod browser;
mod callback;
mod manual;
mod page;

pub use browser::Browser;
pub use callback::{Callback, CallbackError, callback_params};
pub use manual::{Headless, ManualLogin};

use linchpin_core::service::BoxFuture;
use std::fmt;
use std::io;
use std::time::Duration;

/// Sends a user (or a substitute for one) to the authorization server and returns the callback.
pub trait Login: Send + Sync + 'static {
    /// Returns the redirect URI of the next login. Called before each [`Login::authorize`], because a listener may have
    /// another port each time.
    ///
    /// # Errors
    /// If no listener can be opened.
    fn redirect_uri(&self) -> BoxFuture<'_, Result<String, LoginError>>;

    /// Sends the user to `url` and waits for the callback; returns its whole URL, query included.
    ///
    /// Cancel-safe: dropping the future abandons the login and closes the listener.
    ///
    /// # Errors
    /// If there is no callback in time, or an invalid one.
    fn authorize(&self, url: &str) -> BoxFuture<'_, Result<String, LoginError>>;
}

/// Why there is no callback. Never contains a code, a state, or a URL with either.
#[derive(Debug)]
#[non_exhaustive]
pub enum LoginError {
    /// The loopback listener cannot be opened, or failed.
    Listen(io::Error),
    /// [`Login::authorize`] was called without asking [`Login::redirect_uri`] first.
    NotListening,
    /// The browser cannot be opened, and no notice callback is set to show the URL.
    Browser(io::Error),
    /// The URL is not one for a browser (`http` or `https`), so it was not opened.
    NotForBrowser,
    /// There was no callback within this time.
    TimedOut(Duration),
    /// The callback is invalid.
    Callback(CallbackError),
    /// A callback function of the program failed, or the user gave up.
    Failed(String),
}

impl fmt::Display for LoginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoginError::Listen(_) => f.write_str("cannot listen on 127.0.0.1 for the login callback"),
            LoginError::NotListening => f.write_str("the redirect URI was not requested before the login"),
            LoginError::Browser(_) => f.write_str("cannot open a browser for the login"),
            LoginError::NotForBrowser => {
                f.write_str("the authorization server's address is neither http nor https, so it was not opened")
            }
            LoginError::TimedOut(wait) => write!(f, "the login was not completed within {} s", wait.as_secs()),
            LoginError::Callback(_) => f.write_str("invalid login callback"),
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
