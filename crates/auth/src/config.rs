//! The configuration.

use crate::client::Credential;
use crate::fetch::Fetch;
use crate::grants::NonInteractive;
use crate::login::Login;
use crate::store::TokenStore;
use linchpin_oauth::{Scopes, Signer};
use linchpin_web::Reach;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The configuration. Immutable once the first request is sent.
#[derive(Clone)]
pub(crate) struct Config {
    pub(crate) login: Option<Arc<dyn Login>>,
    pub(crate) login_deadline: Duration,
    pub(crate) store: Arc<dyn TokenStore>,
    pub(crate) fetch: Option<Arc<dyn Fetch>>,
    pub(crate) client_name: String,
    pub(crate) client_metadata_url: Option<String>,
    pub(crate) client_key: Option<Signer>,
    pub(crate) pre_registered: Vec<PreRegistered>,
    pub(crate) non_interactive: Option<NonInteractive>,
    pub(crate) dpop: bool,
    pub(crate) scopes: Option<Scopes>,
    pub(crate) reach: Option<Reach>,
    pub(crate) clock: Arc<dyn Fn() -> u64 + Send + Sync>,
}

/// A client that was registered beforehand.
#[derive(Clone, Debug)]
pub(crate) struct PreRegistered {
    /// The issuer; `None` for the first one used.
    pub(crate) issuer: Option<String>,
    pub(crate) id: String,
    pub(crate) credential: Credential,
}

impl PreRegistered {
    pub(crate) fn is_for(&self, issuer: &str) -> bool {
        self.issuer.as_deref().is_none_or(|ours| ours == issuer)
    }
}

impl Config {
    /// Seconds since 1970.
    pub(crate) fn now(&self) -> u64 {
        (self.clock)()
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("login", &self.login.is_some())
            .field("client_name", &self.client_name)
            .field("client_metadata_url", &self.client_metadata_url)
            .field("pre_registered", &self.pre_registered)
            .field("non_interactive", &self.non_interactive)
            .field("dpop", &self.dpop)
            .field("scopes", &self.scopes)
            .field("reach", &self.reach)
            .finish_non_exhaustive()
    }
}
