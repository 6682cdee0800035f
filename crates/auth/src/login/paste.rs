//! Logins without a browser on this machine.

use super::callback::{CALLBACK_BYTES_MAX, CallbackError, callback_params};
use super::{Login, LoginError};
use linchpin_proto::service::BoxFuture;
use std::fmt;
use std::io;
use std::sync::Arc;

/// Where the browser of [`Paste`] is sent when nothing else is said. Nobody listens there: the person copies the
/// address out of the browser's address bar.
const PASTE_REDIRECT_URI: &str = "http://127.0.0.1:41718/callback";

/// Shows the address of the login and reads the address the browser was sent to in the end.
#[derive(Clone)]
pub struct Paste {
    show: Arc<dyn Fn(&str) + Send + Sync>,
    read: Arc<dyn Fn() -> BoxFuture<'static, io::Result<String>> + Send + Sync>,
    redirect_uri: String,
}

impl Paste {
    /// `show` gets the address to be opened in any browser on any machine; `read` returns the line the person pasted:
    /// the whole callback URL, or only its query (`code=…&state=…`).
    pub fn new<F>(show: impl Fn(&str) + Send + Sync + 'static, read: impl Fn() -> F + Send + Sync + 'static) -> Paste
    where
        F: Future<Output = io::Result<String>> + Send + 'static,
    {
        let read = move || -> BoxFuture<'static, io::Result<String>> { Box::pin(read()) };
        Paste { show: Arc::new(show), read: Arc::new(read), redirect_uri: PASTE_REDIRECT_URI.to_owned() }
    }

    /// Another redirect URI, for example the one a client was registered with. The default is a port of 127.0.0.1
    /// where nobody listens.
    #[must_use]
    pub fn back_to(mut self, redirect_uri: impl Into<String>) -> Paste {
        self.redirect_uri = redirect_uri.into();
        self
    }

    /// The callback URL that a pasted line means.
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

impl Login for Paste {
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

impl fmt::Debug for Paste {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Paste").field("redirect_uri", &self.redirect_uri).finish_non_exhaustive()
    }
}

/// Asks a closure: for tests, and for programs that have their own way to a person.
#[derive(Clone)]
pub struct Headless {
    ask: Arc<dyn Fn(String) -> BoxFuture<'static, Result<String, LoginError>> + Send + Sync>,
    redirect_uri: String,
}

impl Headless {
    /// `ask` gets the address of the login and returns the whole callback URL.
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
