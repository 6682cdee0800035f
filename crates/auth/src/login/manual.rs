//! Logins without a browser on this machine.

use super::callback::{CALLBACK_BYTES_MAX, CallbackError, callback_params};
use super::{Login, LoginError};
use linchpin_core::service::BoxFuture;
use std::fmt;
use std::io;
use std::sync::Arc;

/// The default redirect URI of [`ManualLogin`]. The connection is refused there: the user copies the URL out of the
/// browser's address bar.
const PASTE_REDIRECT_URI: &str = "http://127.0.0.1:41718/callback";

/// A login that shows the authorization URL and reads the callback URL that the user copies from the browser.
///
/// # Example
///
/// ```
/// use linchpin_auth::{OAuth, login::ManualLogin};
///
/// let login = ManualLogin::new(
///     |url| println!("Open {url} and paste the URL that you are redirected to:"),
///     || async {
///         tokio::task::spawn_blocking(|| {
///             let mut line = String::new();
///             std::io::stdin().read_line(&mut line)?;
///             Ok(line)
///         })
///         .await?
///     },
/// );
/// let oauth = OAuth::new().login(login);
/// # let _ = oauth;
/// ```
#[derive(Clone)]
pub struct ManualLogin {
    show: Arc<dyn Fn(&str) + Send + Sync>,
    read: Arc<dyn Fn() -> BoxFuture<'static, io::Result<String>> + Send + Sync>,
    redirect_uri: String,
}

impl ManualLogin {
    /// Creates a login from two functions.
    ///
    /// `show` receives the URL to open in a browser on any machine; `read` returns the line that the user pastes: the
    /// whole callback URL, or only its query (`code=…&state=…`).
    pub fn new<F>(
        show: impl Fn(&str) + Send + Sync + 'static,
        read: impl Fn() -> F + Send + Sync + 'static,
    ) -> ManualLogin
    where
        F: Future<Output = io::Result<String>> + Send + 'static,
    {
        let read = move || -> BoxFuture<'static, io::Result<String>> { Box::pin(read()) };
        ManualLogin { show: Arc::new(show), read: Arc::new(read), redirect_uri: PASTE_REDIRECT_URI.to_owned() }
    }

    /// Sets the redirect URI, for example the one that a client is registered with. The default is
    /// `http://127.0.0.1:41718/callback`, where nothing listens.
    #[must_use]
    pub fn back_to(mut self, redirect_uri: impl Into<String>) -> ManualLogin {
        self.redirect_uri = redirect_uri.into();
        self
    }

    /// Returns the callback URL for a pasted line.
    fn callback_url(&self, line: &str) -> Result<String, CallbackError> {
        if line.len() > CALLBACK_BYTES_MAX {
            return Err(CallbackError::TooLong);
        }
        let line = line.trim().trim_matches(['"', '\'', '<', '>']);
        let url = match line.split_once('?') {
            Some(("", query)) => format!("{}?{query}", self.redirect_uri),
            Some(_) => line.to_owned(),
            None => format!("{}?{line}", self.redirect_uri),
        };
        callback_params(&url).map(|_| url)
    }
}

impl Login for ManualLogin {
    fn redirect_uri(&self) -> BoxFuture<'_, Result<String, LoginError>> {
        Box::pin(std::future::ready(Ok(self.redirect_uri.clone())))
    }

    fn authorize(&self, url: &str) -> BoxFuture<'_, Result<String, LoginError>> {
        let url = url.to_owned();
        Box::pin(async move {
            (self.show)(&url);
            let line = (self.read)().await.map_err(|error| LoginError::Failed(error.to_string()))?;
            Ok(self.callback_url(&line)?)
        })
    }
}

impl fmt::Debug for ManualLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualLogin").field("redirect_uri", &self.redirect_uri).finish_non_exhaustive()
    }
}

/// A login that calls a closure, for tests and for programs with their own way to reach the user.
///
/// ```
/// use linchpin_auth::{OAuth, login::Headless};
///
/// let login = Headless::new("http://127.0.0.1:8080/callback", |url| async move {
///     Ok(format!("http://127.0.0.1:8080/callback?{}", url.len())) // drive a browser, and return where it ends up
/// });
/// let oauth = OAuth::new().login(login);
/// # let _ = oauth;
/// ```
#[derive(Clone)]
pub struct Headless {
    ask: Arc<dyn Fn(String) -> BoxFuture<'static, Result<String, LoginError>> + Send + Sync>,
    redirect_uri: String,
}

impl Headless {
    /// Creates a login from a function that receives the authorization URL and returns the whole callback URL.
    pub fn new<F>(redirect_uri: impl Into<String>, ask: impl Fn(String) -> F + Send + Sync + 'static) -> Headless
    where
        F: Future<Output = Result<String, LoginError>> + Send + 'static,
    {
        let ask = move |url| -> BoxFuture<'static, Result<String, LoginError>> { Box::pin(ask(url)) };
        Headless { ask: Arc::new(ask), redirect_uri: redirect_uri.into() }
    }
}

impl Login for Headless {
    fn redirect_uri(&self) -> BoxFuture<'_, Result<String, LoginError>> {
        Box::pin(std::future::ready(Ok(self.redirect_uri.clone())))
    }

    fn authorize(&self, url: &str) -> BoxFuture<'_, Result<String, LoginError>> {
        (self.ask)(url.to_owned())
    }
}

impl fmt::Debug for Headless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Headless").field("redirect_uri", &self.redirect_uri).finish_non_exhaustive()
    }
}
