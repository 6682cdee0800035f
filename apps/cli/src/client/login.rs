//! Login to servers that require it.

use crate::fail::Failure;
use crate::show::out::{note, stderr_is_terminal, tell};
use clap::Args;
use linchpin::auth::login::{Browser, ManualLogin};
use linchpin::auth::store::FileStore;
use linchpin::auth::{Credential, OAuth};
use std::io::IsTerminal;

/// Login options.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Login")]
pub(crate) struct LoginArgs {
    /// Print the login URL instead of opening a browser, and read the redirect URL from the terminal.
    #[arg(long)]
    pub(crate) no_browser: bool,

    #[command(flatten)]
    pub(crate) client: RegisteredArgs,

    /// Request this scope instead of all that the server supports, beside those that it demands. May be repeated.
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Vec<String>,

    /// Get tokens with the client credentials grant, with the client's id and secret and without a user.
    #[arg(long, requires = "client_id", requires = "client_secret_env", conflicts_with = "no_browser")]
    pub(crate) client_credentials: bool,

    /// Timeout of a login in the browser [default: 5m].
    #[arg(long, value_name = "SECONDS", value_parser = crate::duration::read, conflicts_with_all = NO_BROWSER)]
    pub(crate) login_timeout: Option<std::time::Duration>,

    /// Local port of the redirect URI [default: a free one].
    #[arg(long, value_name = "PORT", conflicts_with_all = NO_BROWSER)]
    pub(crate) callback_port: Option<u16>,

    /// Host of the redirect URI, 127.0.0.1 or localhost [default: 127.0.0.1].
    #[arg(
        long,
        value_name = "HOST",
        value_parser = ["127.0.0.1", "localhost"],
        hide_possible_values = true,
        conflicts_with_all = NO_BROWSER
    )]
    pub(crate) callback_host: Option<String>,

    /// Path of the redirect URI [default: /callback].
    #[arg(long, value_name = "PATH", value_parser = path, conflicts_with_all = NO_BROWSER)]
    pub(crate) callback_path: Option<String>,

    /// A user is there to log in, although there is no terminal.
    #[arg(skip)]
    pub(crate) opens_browser: bool,

    #[command(flatten)]
    pub(crate) stored: StoredArgs,
}

/// What an option about the login in a browser conflicts with: there is no browser then.
const NO_BROWSER: [&str; 2] = ["no_browser", "client_credentials"];

/// Which client this program is, where it was registered.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Login")]
pub(crate) struct RegisteredArgs {
    /// Client ID pre-registered with the server's authorization server.
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,

    /// Environment variable with the client secret.
    #[arg(long, value_name = "VAR", requires = "client_id")]
    pub(crate) client_secret_env: Option<String>,

    /// URL of the client ID metadata document.
    #[arg(long, value_name = "URL", conflicts_with = "client_id")]
    pub(crate) client_metadata_url: Option<String>,
}

/// Where tokens are.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Login")]
pub(crate) struct StoredArgs {
    /// Store tokens in the keyring of the operating system, not in a file.
    #[cfg(feature = "keyring")]
    #[arg(long)]
    pub(crate) keyring: bool,
}

impl StoredArgs {
    fn is_keyring(&self) -> bool {
        #[cfg(feature = "keyring")]
        let is_keyring = self.keyring;
        #[cfg(not(feature = "keyring"))]
        let is_keyring = false;
        is_keyring
    }
}

impl LoginArgs {
    /// Each option, and whether it was given. `--client-secret-env` is never alone.
    pub(crate) fn given(&self) -> [(&'static str, bool); 10] {
        [
            ("--no-browser", self.no_browser),
            ("--client-id", self.client.client_id.is_some()),
            ("--client-metadata-url", self.client.client_metadata_url.is_some()),
            ("--scope", !self.scope.is_empty()),
            ("--client-credentials", self.client_credentials),
            ("--login-timeout", self.login_timeout.is_some()),
            ("--callback-port", self.callback_port.is_some()),
            ("--callback-host", self.callback_host.is_some()),
            ("--callback-path", self.callback_path.is_some()),
            ("--keyring", self.stored.is_keyring()),
        ]
    }

    /// Returns the authorizer of requests to this URL; `None` without TLS to other machines, where tokens are never sent.
    pub(crate) fn authorizer(&self, url: &str) -> Result<Option<OAuth>, Failure> {
        if !(url.get(..8).is_some_and(|s| s.eq_ignore_ascii_case("https://")) || is_this_machine(url)) {
            return Ok(None);
        }
        // Login needs a user; scripts must log in beforehand.
        let person = self.opens_browser || (std::io::stdin().is_terminal() && stderr_is_terminal());
        self.oauth(person).map(Some)
    }

    /// Returns the authorization with stored tokens, and with login where there is a user.
    pub(crate) fn oauth(&self, person: bool) -> Result<OAuth, Failure> {
        let mut oauth = self.stored(OAuth::new().client_name("Linchpin"));
        if let Some(id) = &self.client.client_id {
            let credential = match &self.client.client_secret_env {
                None => Credential::None,
                Some(variable) => std::env::var(variable)
                    .map_err(|_| Failure::usage(format!("the environment variable {variable} is not set")))?
                    .as_str()
                    .into(),
            };
            oauth = match self.client_credentials {
                true => oauth.client_credentials(id, credential),
                false => oauth.pre_registered(None, id, credential),
            };
        }
        if let Some(url) = &self.client.client_metadata_url {
            oauth = oauth.client_metadata_url(url);
        }
        if !self.scope.is_empty() {
            oauth = oauth.scopes(&self.scope);
        }
        // What reads the terminal would read the messages of a host.
        let manual = self.no_browser && !self.opens_browser;
        let person = person && !(self.no_browser && self.opens_browser);
        Ok(match (person, manual) {
            (false, _) => oauth,
            (true, false) => {
                let browser = match self.login_timeout {
                    Some(wait) => Browser::new().wait(wait),
                    None => Browser::new(),
                };
                let browser = browser.notice(|url| {
                    note(format!("The server requires login. If no browser opens, go to:\n  {url}"));
                });
                let browser = browser.port(self.callback_port.unwrap_or_default());
                let browser = match &self.callback_path {
                    Some(path) => browser.path(path.as_str()),
                    None => browser,
                };
                oauth.login(match self.callback_host.as_deref() {
                    Some("localhost") => browser.localhost(),
                    _ => browser,
                })
            }
            (true, true) => oauth.login(ManualLogin::new(
                |url| {
                    note(format!("The server requires login. Go to:\n  {url}"));
                    tell("Then paste the URL you were redirected to: ");
                },
                || async { tokio::task::spawn_blocking(line).await? },
            )),
        })
    }

    fn stored(&self, oauth: OAuth) -> OAuth {
        #[cfg(feature = "keyring")]
        if self.stored.keyring {
            return oauth.store(linchpin::auth::store::KeyringStore::standard());
        }
        match FileStore::standard() {
            Ok(store) => oauth.store(store),
            // Without a home directory, tokens live as long as this command.
            Err(_) => oauth,
        }
    }
}

/// A path of a URL.
pub(crate) fn path(text: &str) -> Result<String, String> {
    let fine = text.starts_with('/') && text.bytes().all(|b| b.is_ascii_graphic() && !b"?#".contains(&b));
    if fine { Ok(text.to_owned()) } else { Err("expected a path such as /mcp".to_owned()) }
}

fn line() -> std::io::Result<String> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    Ok(line)
}

/// Whether an `http://` URL names this machine.
fn is_this_machine(url: &str) -> bool {
    let Some(rest) = url.get(7..).filter(|_| url[..7].eq_ignore_ascii_case("http://")) else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host.eq_ignore_ascii_case("localhost") || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_go_without_tls_to_this_machine_only() {
        for (url, ours) in [
            ("http://localhost:1/mcp", true),
            ("http://127.0.0.1/mcp", true),
            ("http://[::1]:8/mcp", true),
            ("HTTP://LOCALHOST", true),
            ("http://localhost.example/mcp", false),
            ("http://127.0.0.1.example/", false),
            ("http://192.168.0.1/", false),
            ("https://localhost/", false),
        ] {
            assert_eq!(is_this_machine(url), ours, "{url}");
        }
    }
}
