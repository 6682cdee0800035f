//! Logins: the user opens the authorization URL, and the callback URL comes back.
//!
//! [`Browser`] opens the user's browser and listens on the loopback interface; [`ManualLogin`] shows the URL and reads
//! the callback URL that the user pastes; [`Headless`] calls a closure.

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

/// A way to send a user to the authorization server and to receive the callback.
///
/// # Example
///
/// ```
/// use linchpin_auth::login::{Login, LoginError};
/// use linchpin_core::service::BoxFuture;
///
/// /// Logs in with the web view of an application.
/// struct WebView;
///
/// impl Login for WebView {
///     fn redirect_uri(&self) -> BoxFuture<'_, Result<String, LoginError>> {
///         Box::pin(async { Ok("https://app.example.com/callback".to_owned()) })
///     }
///
///     fn authorize(&self, url: &str) -> BoxFuture<'_, Result<String, LoginError>> {
///         let url = url.to_owned();
///         Box::pin(async move { navigate(url).await.map_err(LoginError::Failed) })
///     }
/// }
///
/// /// Shows a page until it redirects to the callback, and returns the URL of the callback.
/// async fn navigate(url: String) -> Result<String, String> {
///     # let _ = url;
///     Ok("https://app.example.com/callback?code=a&state=b".to_owned())
/// }
/// ```
pub trait Login: Send + Sync + 'static {
    /// Returns the redirect URI of the next login. Called before each [`Login::authorize`], because a listener may use
    /// a different port each time. It must be `https`, or `http` on the loopback interface: a login with any other one
    /// fails.
    ///
    /// # Errors
    /// If no listener can be opened.
    fn redirect_uri(&self) -> BoxFuture<'_, Result<String, LoginError>>;

    /// Sends the user to `url`, waits for the callback, and returns its whole URL, including the query.
    ///
    /// Cancel-safe: dropping the future abandons the login and closes the listener.
    ///
    /// # Errors
    /// If the callback does not arrive in time, or is invalid.
    fn authorize(&self, url: &str) -> BoxFuture<'_, Result<String, LoginError>>;
}

/// The error of a login without a valid callback. It never contains a code, a state, or a URL with either.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use linchpin_auth::login::{CallbackError, Login as _, LoginError, ManualLogin};
///
/// let login = ManualLogin::new(
///     |url| println!("open {url}"),
///     || async { Ok("not a callback".to_owned()) },
/// );
/// match login.authorize("https://login.example/authorize").await {
///     Err(LoginError::Callback(error)) => assert_eq!(error, CallbackError::NoAnswer),
///     Err(LoginError::TimedOut(wait)) => println!("no login within {wait:?}"),
///     other => panic!("{other:?}"),
/// }
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum LoginError {
    /// The loopback listener cannot be opened, or failed.
    Listen(io::Error),
    /// [`Login::authorize`] was called without calling [`Login::redirect_uri`] first.
    NotListening,
    /// The browser cannot be opened, and no notice callback is set to show the URL.
    Browser(io::Error),
    /// The scheme of the URL is neither `http` nor `https`, so it was not opened.
    NotForBrowser,
    /// The callback did not arrive within this time.
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
