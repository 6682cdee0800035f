//! Where access tokens come from: a login of a user, or a service account.

use crate::{Config, keep};
use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request};
use linchpin::BoxFuture;
use linchpin::auth::jwt::{Alg, Signer};
use linchpin::auth::login::Login;
use linchpin::auth::{Error, KnownServer, Secret};
use linchpin_kit::{ErrorKind, ToolError};
use linchpin_rest::Authorize;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::Mutex;
use url::Url;

/// Google, as its documentation describes it. The files of clients name the two endpoints too.
const ISSUER: &str = "https://accounts.google.com";
const AUTHORIZE: &str = "https://accounts.google.com/o/oauth2/v2/auth";
const TOKEN: &str = "https://oauth2.googleapis.com/token";

const READING: &str = "https://www.googleapis.com/auth/drive.readonly";
/// Files that this client has made, or was given by the user.
const WRITING: &str = "https://www.googleapis.com/auth/drive.file";

/// Where to get an OAuth client.
const OBTAIN: &str =
    "Create a client ID of the type \"Desktop app\" at https://console.cloud.google.com/apis/credentials";

/// A token is renewed so many seconds before it ends.
const EARLY_S: u64 = 60;

/// The members of a file.
type Members = Map<String, Value>;

/// The access token of requests. One request renews it, the others wait for what that gets.
pub(crate) struct Tokens {
    source: Source,
    current: Mutex<Option<Current>>,
}

struct Current {
    token: HeaderValue,
    end: u64,
    /// When the file was written: somebody may have logged in again.
    written: Option<SystemTime>,
}

enum Source {
    /// What a login has saved.
    Login { saved: Saved, config: Box<Config> },
    /// The key of a service account, and what its statements say.
    Account { server: Box<KnownServer>, signer: Signer, claims: Members },
}

/// Where a login is saved.
enum Saved {
    /// It is read for each renewal: another process may have renewed it, or the user has logged in again.
    In(PathBuf),
    /// It is another program's, or a secret: it is not written back.
    Given(Members),
}

impl Tokens {
    /// Looks for credentials, and does not use them yet.
    pub(crate) fn find(config: &Config) -> Result<Tokens, ToolError> {
        let source = match found(config)? {
            Saved::Given(members) if text(&members, "type") == "service_account" => account(config, &members)?,
            Saved::Given(members) if !matches!(text(&members, "type"), "" | "authorized_user") => {
                let kind = format!("Credentials of the type {} are not supported", text(&members, "type"));
                return Err(
                    ToolError::new(kind).hint("Use service_account or authorized_user, or set GDRIVE_ACCESS_TOKEN.")
                );
            }
            saved => Source::Login { saved, config: Box::new(config.clone()) },
        };
        if let Source::Login { saved, .. } = &source
            && ["access_token", "refresh_token"]
                .iter()
                .all(|name| saved.read().is_ok_and(|m| text(&m, name).is_empty()))
        {
            return Err(ToolError::new("The saved credentials have no token").hint(LOG_IN));
        }
        Ok(Tokens { source, current: Mutex::new(None) })
    }

    /// A token that is valid for a while yet.
    async fn token(&self) -> Result<HeaderValue, ToolError> {
        let mut current = self.current.lock().await;
        let written = match &self.source {
            Source::Login { saved: Saved::In(path), .. } => path.metadata().and_then(|about| about.modified()).ok(),
            _ => None,
        };
        if let Some(known) = current.as_ref().filter(|known| known.end > now() + EARLY_S && known.written == written) {
            return Ok(known.token.clone());
        }
        let (token, end) = match &self.source {
            Source::Account { server, signer, claims } => {
                let got = server.assertion(signer, claims).await.map_err(|error| no_token(&error))?;
                (got.access_token.expose().to_owned(), got.expires_at)
            }
            Source::Login { saved, config } => renewed(saved, config).await?,
        };
        let mut header = HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|_| ToolError::denied("The access token cannot be sent").hint(LOG_IN))?;
        header.set_sensitive(true);
        *current = Some(Current { token: header.clone(), end: end.unwrap_or_default(), written });
        Ok(header)
    }
}

impl Authorize for Tokens {
    fn authorize<'a>(&'a self, request: &'a mut Request<Bytes>) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            request.headers_mut().insert(AUTHORIZATION, self.token().await?);
            Ok(())
        })
    }
}

const LOG_IN: &str = "The operator must log in: linchpin serve google-drive auth";

impl Saved {
    fn read(&self) -> Result<Members, ToolError> {
        match self {
            Saved::Given(members) => Ok(members.clone()),
            Saved::In(path) => {
                let missing = || ToolError::denied(format!("{} does not exist", path.display())).hint(LOG_IN);
                keep::read(path)?.ok_or_else(missing)
            }
        }
    }
}

/// What is named comes before what lies where such files usually lie.
fn found(config: &Config) -> Result<Saved, ToolError> {
    if let Some(json) = &config.credentials_json {
        return Ok(Saved::Given(keep::parse("GDRIVE_CREDENTIALS", json.reveal())?));
    }
    if let Some(path) = &config.credentials {
        let saved = Saved::In(path.clone());
        return saved.read().map(|_| saved);
    }
    if let Some(path) = &config.application_credentials {
        return Saved::In(path.clone()).read().map(Saved::Given);
    }
    let usual = usual_credentials(config).filter(|path| path.is_file());
    if let Some(path) = usual {
        return Ok(Saved::In(path));
    }
    let gcloud = config.gcloud.as_ref().map(|folder| folder.join("application_default_credentials.json"));
    if let Some(path) = gcloud.filter(|path| path.is_file()) {
        return Saved::In(path).read().map(Saved::Given);
    }
    let keys = keys_path(config).map_or_else(|| "FILE".to_owned(), |path| path.display().to_string());
    Err(ToolError::new("No credentials for Google Drive").hint(format!(
        "{OBTAIN}, save its JSON as {keys} (or set GDRIVE_OAUTH_PATH), and run `linchpin serve google-drive auth`. For a service \
         account set GOOGLE_APPLICATION_CREDENTIALS."
    )))
}

fn usual_credentials(config: &Config) -> Option<PathBuf> {
    config.home.as_ref().map(|home| home.join(".gdrive-server-credentials.json"))
}

fn keys_path(config: &Config) -> Option<PathBuf> {
    config.oauth_keys.clone().or_else(|| config.home.as_ref().map(|home| home.join("gcp-oauth.keys.json")))
}

/// The OAuth client, if one is configured.
fn keys(config: &Config) -> Result<Option<Members>, ToolError> {
    let (what, members) = match (&config.oauth_json, keys_path(config)) {
        (Some(json), _) => ("GDRIVE_OAUTH".to_owned(), Some(keep::parse("GDRIVE_OAUTH", json.reveal())?)),
        (None, Some(path)) => (path.display().to_string(), keep::read(&path)?),
        (None, None) => return Ok(None),
    };
    let Some(members) = members else { return Ok(None) };
    let client = ["installed", "web"].iter().find_map(|kind| members.get(*kind)?.as_object());
    let bad = || ToolError::new(format!("{what} is not an OAuth client")).hint(format!("{OBTAIN}, and save its JSON."));
    client.cloned().filter(|client| !text(client, "client_id").is_empty()).map(Some).ok_or_else(bad)
}

/// Google with this client.
fn server(config: &Config, client: &Members) -> Result<KnownServer, ToolError> {
    let or = |name: &str, usual: &'static str| match text(client, name) {
        "" => usual.to_owned(),
        given => given.to_owned(),
    };
    let (authorize, token) = (or("auth_uri", AUTHORIZE), or("token_uri", TOKEN));
    let url = Url::parse(&token).map_err(|_| ToolError::new("token_uri of the credentials is not a URL"))?;
    let web = config.api.web(std::iter::once(&url))?;
    let server = KnownServer::new(ISSUER, authorize, token).web(&web);
    let secret = Some(text(client, "client_secret")).filter(|secret| !secret.is_empty());
    Ok(match text(client, "client_id") {
        "" => server,
        id => server.client(id, secret.map(Secret::from)),
    })
}

/// The token that was saved, if it is still good; otherwise another one, which is saved.
async fn renewed(saved: &Saved, config: &Config) -> Result<(String, Option<u64>), ToolError> {
    let mut members = saved.read()?;
    let end = members.get("expiry_date").and_then(Value::as_u64).map(|ms| ms / 1_000);
    let token = text(&members, "access_token");
    if !token.is_empty() && end.is_some_and(|end| end > now() + EARLY_S) {
        return Ok((token.to_owned(), end));
    }
    let refresh_token = Secret::from(text(&members, "refresh_token"));
    if refresh_token.is_empty() {
        return Err(ToolError::denied("The login has expired, and has no refresh token").hint(LOG_IN));
    }
    let client = if text(&members, "client_id").is_empty() { keys(config)? } else { Some(members.clone()) };
    let missing = || {
        ToolError::denied("The login has expired, and cannot be renewed without its OAuth client")
            .hint("The operator must set GDRIVE_OAUTH_PATH to the file of the client, or log in again.")
    };
    let got = server(config, &client.ok_or_else(missing)?)?.refresh(&refresh_token).await.map_err(|e| no_token(&e))?;
    note(&mut members, &got);
    if let Saved::In(path) = saved {
        // Where it cannot be written, this process has it nevertheless.
        let _ = keep::write(path, &members);
    }
    Ok((got.access_token.expose().to_owned(), got.expires_at))
}

/// The members that the published server has too.
fn note(members: &mut Members, got: &linchpin::auth::store::Tokens) {
    let mut set = |name: &str, value: Value| drop(members.insert(name.to_owned(), value));
    set("access_token", json!(got.access_token.expose()));
    set("token_type", json!("Bearer"));
    set("expiry_date", json!(got.expires_at.unwrap_or_else(now) * 1_000));
    if let Some(token) = &got.refresh_token {
        set("refresh_token", json!(token.expose()));
    }
    if let Some(scope) = &got.scope {
        set("scope", json!(scope));
    }
}

fn scopes(config: &Config) -> Vec<String> {
    if !config.scopes.is_empty() {
        return config.scopes.clone();
    }
    let writes = config.allow_write && !config.api.tools.read_only;
    [Some(READING), writes.then_some(WRITING)].into_iter().flatten().map(str::to_owned).collect()
}

fn account(config: &Config, members: &Members) -> Result<Source, ToolError> {
    let bad = |why: String| ToolError::new(format!("The key of the service account cannot be used: {why}"));
    let signer = Signer::from_pem(text(members, "private_key"), Alg::Rs256).map_err(|e| bad(e.to_string()))?;
    let email = text(members, "client_email");
    if email.is_empty() {
        return Err(bad("it has no client_email".to_owned()));
    }
    let audience = Some(text(members, "token_uri")).filter(|uri| !uri.is_empty()).unwrap_or(TOKEN);
    let mut claims = json!({ "iss": email, "scope": scopes(config).join(" "), "aud": audience });
    if let Some(subject) = &config.subject {
        claims["sub"] = json!(subject);
    }
    let Value::Object(claims) = claims else { return Err(bad("it is not an object".to_owned())) };
    // What signs for itself is not a client.
    let plain = Members::from_iter([("token_uri".to_owned(), json!(audience))]);
    let signer = signer.kid(text(members, "private_key_id"));
    Ok(Source::Account { server: Box::new(server(config, &plain)?), signer, claims })
}

/// Logs a user in, and returns where the credentials were saved: what `linchpin serve google-drive auth` does.
///
/// # Errors
/// When there is no OAuth client, the login fails, or the credentials cannot be saved.
pub async fn log_in(config: &Config, login: &dyn Login) -> Result<PathBuf, ToolError> {
    let keys = keys(config)?.ok_or_else(|| {
        let path = keys_path(config).map_or_else(|| "FILE".to_owned(), |path| path.display().to_string());
        ToolError::new(format!("No OAuth client: {path} does not exist"))
            .hint(format!("{OBTAIN}, and save its JSON there, or name it with GDRIVE_OAUTH_PATH."))
    })?;
    let path = config.credentials.clone().or_else(|| usual_credentials(config));
    let path =
        path.ok_or_else(|| ToolError::new("No file for the credentials").hint("Set GDRIVE_CREDENTIALS_PATH."))?;
    refuse_link(&path)?;
    let server = server(config, &keys)?.parameter("access_type", "offline").parameter("prompt", "consent");
    let got = server.login(login, scopes(config)).await;
    let got = got.map_err(|error| ToolError::new(format!("The login failed: {error}")))?;
    if got.refresh_token.is_none() {
        return Err(ToolError::new("Google gave no refresh token")
            .hint("Remove this app at https://myaccount.google.com/connections, and try again."));
    }
    let mut members = Members::new();
    // With the client the login lasts wherever the file is used.
    for name in ["client_id", "client_secret", "token_uri"] {
        members.extend(keys.get(name).map(|value| (name.to_owned(), value.clone())));
    }
    note(&mut members, &got);
    keep::write(&path, &members)?;
    Ok(path)
}

/// Before somebody logs in for nothing.
fn refuse_link(path: &Path) -> Result<(), ToolError> {
    match std::fs::symlink_metadata(path) {
        Ok(about) if about.is_symlink() => Err(ToolError::new(format!("{} is a symlink", path.display()))
            .hint("Name the file that it leads to with GDRIVE_CREDENTIALS_PATH.")),
        _ => Ok(()),
    }
}

/// The words of the authorization server are a block of their own.
fn no_token(error: &Error) -> ToolError {
    let told = if error.is_refused_with("invalid_grant") {
        ToolError::denied("Google no longer accepts the login: it has expired or was revoked").hint(LOG_IN)
    } else if error.is_unreachable() {
        ToolError::new("No access token could be obtained")
            .kind(ErrorKind::Upstream { status: None })
            .hint("Try again later.")
    } else {
        ToolError::denied("Google gives no access token").hint(LOG_IN)
    };
    told.detail(error.to_string())
}

fn text<'a>(members: &'a Members, name: &str) -> &'a str {
    members.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
