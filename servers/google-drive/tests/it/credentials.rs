//! Where access tokens come from, what is asked for them, what is written, and where they are never seen.

use crate::rows::suite;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use linchpin::Server;
use linchpin::auth::login::{Browser, Headless};
use linchpin::client::{Client, Connection};
use linchpin::prelude::in_process;
use linchpin::testing::site::{Do, Seen, Site, json};
use linchpin_google_drive::{Config, add_to, log_in, open};
use linchpin_kit::{Secret, ToolError};
use linchpin_rest::testing::call;
use ring::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

/// The key of RFC 7515, appendix A.2, as PKCS#8.
const RSA: &str = "\
    MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQCh+BYK4uPJtGXOjS1lYmM2K5J9vinh8CR3/BYlzJChNuOL2TSX\
    xbbqY913EeZ8dCn5VrD7io8ImtxLaYk8wTM/U+3QGbh3hCUv7JFP5IV3aVlL6kKA0ywPVb9ilE8TA5a8bpvfbr3SvaNnjuygxmj3\
    AbONv/s4yDQs4v5tJ/reSlpIdJed1LnPmt7Ex1sFhSwsD174pcF1A5L5ROjtZMEQxrZHYJqkeDrrnGya11UxMFBji4NmXG9veoKj\
    lnAqH2QbgtPr8jkiGUkftoaHLFcW9Qr4NY2ai50Xw0Byj3+H2JoY2PyrZ62EWQwuz3WTOTY8BwNNb2BvniHgVFbK5emhAgMBAAEC\
    ggEAEq5xpGnNCivDflJsRQBXHx1hdR1k6Ulwe2JZD50LpXyWPEAeP88vLNO97IjlA7/GQ5sLKMgvfTeXZx9SE+7YwVol2NXOoAJe\
    46sui395IW/GO+pWJ1O0BkTGoVEn2bKVRUCgu+GjBVaYLU6f3l9kJfFNS3E0QbVdxzubSu3Mkqzjkn439X0M/V51gfpRLI9JYanr\
    C4D4qAdGcopV/0ZHHzQlBjudU2QvXt4ehNYTCBr6XCLQUShb1juUO1ZdiYoFaFQT5Tw8bGUl/x/jTj3ccPDVZFD9pIuhLhBOneuf\
    uBiB4cS98l2SR/RQyGWSeWjnczT0QU91p1DhOVRuOopznQKBgQDgHMQQ60imZV1URk0KpLttoLhyt3SmqdEf/kgHePDdtzEafpAu\
    +cS191R2JiuoF2yzWXnwFDcqGigp5BNr0AHQfD8/Lk8l1Mk09jxxCfui5nYooNyac8YFjm3vItzVCVDnEd3BbVWG8qf6deqElMGA\
    g+C2V0L4oNXnP7LZcPAZRwKBgQC5A8R+CZW2MvRTLLHzwZkUXV866cff7tx6kqa0finGG0KgeqlaZPxgCZnFp7AeAcCMtiynVlJ7\
    vMVgePsLq6XtON4tB5kP9jAPrq3rbAOal78eUH5OcED6eNuCV8ixEu1eWcPNCS/l1OW1EnXUEoEHKl54Xrrz2uNwkgMTP1FZ1wKB\
    gAcCn1dwJKufzBWQxWQp1vsM5fggqPN1qGb5y0MAk3g7/Ls5bkUp5u9SN0Ai3Ya6hNnvWJMb7sXQX6U/zyO2M/hTip7tUeh7CXgw\
    o59dkpN75gJLVds29+DAncu3KXU4f2Fa+7bLNrur53k8KwPOq2bbuTG69QtV7Jr5MR0AHWKNAoGBAIf/evpitUf+4JYbLpvNXWcY\
    052Mpz22aR84mY3nh3F2LF2mjMJDpTg7FmuyPcVw6EcGyoAe9fa65iNqCq+jdw6PVNGo2hxfjSiZ8IIzHdsPXI89//pMjZcQK9r+\
    CCoRjaZjOYiIDktVWZzmevJuv6WywUqd57LE3Zar3dLSIkx1AoGAIYd7DHOhrWvxkwPQsRM2tOgrjbcrfvtQJipd+DlcxyVuuM9s\
    QLdgjVk2oy26F0EmpScGLq2MowX7fhd/QJQ3ydy5cY7YIBi87w93IKLEdfnbJtoOPLUW0ITrJReOgo1cq9SbsxYawBgfp/gh6A56\
    03k2+ZQwVK0JKSHuLFkuQ3U=";

fn form(text: &[u8]) -> HashMap<String, String> {
    url::form_urlencoded::parse(text).into_owned().collect()
}

/// Google: an API that wants a token, and a token endpoint, which checks the verifier of a login against its challenge.
async fn google(challenge: Arc<Mutex<String>>) -> Site {
    Site::new(move |n, seen: &Seen| {
        let good = |more: Value| {
            let mut told = json!({ "access_token": format!("token-{n}"), "expires_in": 3599, "token_type": "Bearer" });
            told.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            (200, told)
        };
        let bad = |why: &str| (400, json!({ "error": "invalid_grant", "error_description": why }));
        let sent = form(&seen.body);
        let is = |name: &str, value: &str| sent.get(name).is_some_and(|given| given == value);
        let (status, told) = match (seen.path(), sent.get("grant_type").map(String::as_str)) {
            ("/token", Some("refresh_token")) => {
                let known = is("refresh_token", "r3fresh") && is("client_id", "me") && is("client_secret", "s3cret");
                if known { good(json!({})) } else { bad("Token has been revoked: r3voked") }
            }
            ("/token", Some("authorization_code")) => {
                let digest = ring::digest::digest(&ring::digest::SHA256, sent["code_verifier"].as_bytes());
                let fits = URL_SAFE_NO_PAD.encode(digest) == *challenge.lock().unwrap();
                let asked_for_a_resource = sent.contains_key("resource");
                match fits && is("code", "c0de") && is("client_secret", "s3cret") && !asked_for_a_resource {
                    true => good(json!({ "refresh_token": "r3fresh", "scope": "drive" })),
                    false => bad("PKCE"),
                }
            }
            ("/token", Some("urn:ietf:params:oauth:grant-type:jwt-bearer")) => good(json!({})),
            ("/token", _) => (400, json!({ "error": "unsupported_grant_type" })),
            _ if seen.header("authorization").is_some_and(|value| value.starts_with("Bearer token-")) => {
                (200, json!({ "files": [] }))
            }
            _ => (401, json!({ "error": { "message": "Invalid Credentials" } })),
        };
        vec![Do::Wait(Duration::from_millis(20)), Do::Write(json(status, "", &told))]
    })
    .await
}

/// A user's files.
struct Home {
    folder: TempDir,
    site: Site,
    challenge: Arc<Mutex<String>>,
}

impl Home {
    async fn new() -> Home {
        let challenge = Arc::default();
        Home { folder: tempfile::tempdir().unwrap(), site: google(Arc::clone(&challenge)).await, challenge }
    }

    fn write(&self, name: &str, value: &Value) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, value.to_string()).unwrap();
        path
    }

    fn keys(&self) -> Value {
        json!({ "installed": {
            "client_id": "me", "client_secret": "s3cret", "auth_uri": self.site.url("/auth"), "token_uri": self.site.url("/token"),
        } })
    }

    fn config(&self) -> Config {
        Config::default().with(|config| {
            config.api = suite().config(&self.site).with(|api| {
                api.key = None;
                api.tools = Default::default();
            });
            config.home = Some(self.folder.path().to_owned());
        })
    }

    fn asked(&self, path: &str) -> Vec<Seen> {
        self.site.requests().into_iter().filter(|seen| seen.path() == path).collect()
    }
}

async fn connected(config: Config) -> Connection {
    let server = add_to(open(config).unwrap(), Server::new("test", "0")).unwrap();
    Client::new("test", "0").connect(in_process(server)).await.unwrap()
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn in_ms(seconds: i64) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
    (now + seconds) * 1_000
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_token_is_renewed_once_and_the_published_servers_file_is_written_back() {
    let home = Home::new().await;
    home.write("gcp-oauth.keys.json", &home.keys());
    let saved = json!({ "access_token": "old", "refresh_token": "r3fresh", "scope": "s", "token_type": "Bearer", "expiry_date": 1 });
    let path = home.write(".gdrive-server-credentials.json", &saved);
    let connection = connected(home.config()).await;
    assert!(home.site.requests().is_empty(), "nothing is asked before it is needed");
    let mut all = tokio::task::JoinSet::new();
    let connection = Arc::new(connection);
    for _ in 0..20 {
        let connection = Arc::clone(&connection);
        all.spawn(async move { call(&connection, "search", json!({ "query": "x" })).await.failed });
    }
    assert_eq!(all.join_all().await, [false; 20]);
    assert_eq!(home.asked("/token").len(), 1);
    let now = read(&path);
    assert_eq!((&now["refresh_token"], &now["scope"]), (&json!("r3fresh"), &json!("s")));
    assert!(now["access_token"].as_str().unwrap().starts_with("token-"));
    assert!(now["expiry_date"].as_i64().unwrap() > in_ms(3_000), "in milliseconds");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    // Another process finds it there.
    let other = connected(home.config()).await;
    assert!(!call(&other, "search", json!({ "query": "x" })).await.failed);
    assert_eq!(home.asked("/token").len(), 1);
}

#[tokio::test]
async fn a_revoked_login_says_what_to_run_and_shows_no_secret() {
    let home = Home::new().await;
    let saved = json!({ "access_token": "old", "refresh_token": "r3voked", "expiry_date": 1 });
    let path = home.write("credentials.json", &saved);
    let mut config = home.config();
    config.credentials = Some(path.clone());
    let connection = connected(config.clone()).await;
    let told = call(&connection, "search", json!({ "query": "x" })).await;
    assert!(told.failed && told.text.contains("GDRIVE_OAUTH_PATH"), "without its client: {}", told.text);
    config.oauth_json = Some(Secret::new(home.keys().to_string()));
    let connection = connected(config).await;
    let told = call(&connection, "search", json!({ "query": "x" })).await;
    assert!(told.failed && told.text.contains("linchpin serve google-drive auth"), "{}", told.text);
    assert_eq!(told.kind, "denied");
    for secret in ["r3voked", "s3cret"] {
        assert!(!told.result.to_string().contains(secret), "{}", told.result);
    }
    assert!(home.asked("/drive/v3/files").is_empty());
    assert_eq!(read(&path), saved, "what was saved stays");
}

#[tokio::test]
async fn a_token_that_is_good_is_used_as_it_is() {
    let home = Home::new().await;
    let saved = json!({ "access_token": "token-saved", "expiry_date": in_ms(600) });
    let mut config = home.config();
    config.credentials_json = Some(Secret::new(saved.to_string()));
    let told = call(&connected(config).await, "search", json!({ "query": "x" })).await;
    assert!(!told.failed, "{}", told.result);
    assert_eq!(home.site.requests().len(), 1);
}

#[tokio::test]
async fn a_new_login_counts_at_once() {
    let home = Home::new().await;
    let saved = |token: &str| json!({ "access_token": token, "expiry_date": in_ms(600) });
    home.write(".gdrive-server-credentials.json", &saved("token-old"));
    let connection = connected(home.config()).await;
    for token in ["token-old", "token-new"] {
        home.write(".gdrive-server-credentials.json", &saved(token));
        call(&connection, "search", json!({ "query": "x" })).await;
        let seen = home.site.requests().pop().unwrap();
        assert_eq!(seen.header("authorization"), Some(&*format!("Bearer {token}")));
    }
}

#[tokio::test]
async fn a_service_account_signs_for_itself_and_for_whom_it_may_act() {
    let home = Home::new().await;
    let kind = "PRIVATE KEY";
    let pem = format!("-----BEGIN {kind}-----\n{RSA}\n-----END {kind}-----\n");
    let key = json!({
        "type": "service_account", "client_email": "bot@project.example", "private_key_id": "k1", "private_key": pem,
        "token_uri": home.site.url("/token"),
    });
    let path = home.write("key.json", &key);
    let config = home.config().with(|config| {
        config.application_credentials = Some(path.clone());
        config.subject = Some("ann@example.com".to_owned());
        config.allow_write = true;
    });
    let told = call(&connected(config).await, "search", json!({ "query": "x" })).await;
    assert!(!told.failed, "{}", told.result);
    let asked = home.asked("/token");
    assert_eq!(asked.len(), 1);
    let sent = form(&asked[0].body);
    assert_eq!(sent.len(), 2, "a grant and its assertion, and no client: {:?}", sent.keys());
    let parts: Vec<&str> = sent["assertion"].split('.').collect();
    let part = |n: usize| URL_SAFE_NO_PAD.decode(parts[n]).unwrap();
    let (header, claims): (Value, Value) =
        (serde_json::from_slice(&part(0)).unwrap(), serde_json::from_slice(&part(1)).unwrap());
    assert_eq!(header, json!({ "alg": "RS256", "typ": "JWT", "kid": "k1" }));
    assert_eq!((&claims["iss"], &claims["sub"]), (&json!("bot@project.example"), &json!("ann@example.com")));
    assert_eq!(claims["aud"], home.site.url("/token"));
    assert_eq!(
        claims["scope"],
        "https://www.googleapis.com/auth/drive.readonly https://www.googleapis.com/auth/drive.file"
    );
    assert_eq!(claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(), 3_600);
    let pair = RsaKeyPair::from_pkcs8(&STANDARD.decode(RSA).unwrap()).unwrap();
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public_key().as_ref());
    public.verify(format!("{}.{}", parts[0], parts[1]).as_bytes(), &part(2)).unwrap();
    assert_eq!(read(&path), key, "the key is not touched");
}

#[tokio::test]
async fn credentials_of_gcloud_are_found_and_others_are_refused_at_the_start() {
    let home = Home::new().await;
    let mut user =
        json!({ "type": "authorized_user", "client_id": "me", "client_secret": "s3cret", "refresh_token": "r3fresh" });
    user["token_uri"] = json!(home.site.url("/token"));
    let path = home.write("application_default_credentials.json", &user);
    let mut config = home.config();
    config.gcloud = Some(home.folder.path().to_owned());
    let told = call(&connected(config.clone()).await, "search", json!({ "query": "x" })).await;
    assert!(!told.failed, "{}", told.result);
    assert_eq!(read(&path), user, "they are another program's");
    for (odd, want) in [
        (json!({ "type": "external_account" }), "external_account"),
        (json!({ "type": "service_account", "private_key": "s3cret" }), "service account"),
        (json!({}), "no token"),
    ] {
        config.application_credentials = Some(home.write("odd.json", &odd));
        let error = open(config.clone()).unwrap_err().to_string();
        assert!(error.contains(want) && !error.contains("s3cret"), "{error}");
    }
}

/// What the user's browser does at this address of Google's, and what is asked of us on the way there.
fn visit(url: &str, challenge: &Mutex<String>) {
    let asked = form(url.split_once('?').unwrap().1.as_bytes());
    assert_eq!((&*asked["access_type"], &*asked["code_challenge_method"]), ("offline", "S256"));
    assert!(asked["scope"].ends_with("/drive.readonly") && !asked.contains_key("resource"), "{asked:?}");
    challenge.lock().unwrap().clone_from(&asked["code_challenge"]);
    let address = asked["redirect_uri"].strip_prefix("http://").unwrap();
    let (host, path) = address.split_once('/').unwrap();
    let get = |host_header: &str, state: &str| {
        let mut stream = std::net::TcpStream::connect(host).unwrap();
        let target = format!("/{path}?code=c0de&state={state}&iss=https%3A%2F%2Faccounts.google.com");
        write!(stream, "GET {target} HTTP/1.1\r\nHost: {host_header}\r\n\r\n").unwrap();
        let mut told = String::new();
        stream.read_to_string(&mut told).unwrap();
        told.split(' ').nth(1).unwrap().to_owned()
    };
    let state = &asked["state"];
    assert_eq!(get("evil.example", state), "403", "another name of this machine");
    assert_eq!(get(host, "another"), "400", "another login");
    assert_eq!(get(host, state), "200");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_ends_at_this_machine_and_lasts_without_the_clients_file() {
    let home = Home::new().await;
    home.write("gcp-oauth.keys.json", &home.keys());
    let challenge = Arc::clone(&home.challenge);
    let browser = Browser::new().open_with(move |url| {
        visit(url, &challenge);
        Ok(())
    });
    let path = log_in(&home.config(), &browser).await.unwrap();
    assert_eq!(path, home.folder.path().join(".gdrive-server-credentials.json"));
    let mut saved = read(&path);
    assert_eq!((&saved["refresh_token"], &saved["client_id"]), (&json!("r3fresh"), &json!("me")));
    std::fs::remove_file(home.folder.path().join("gcp-oauth.keys.json")).unwrap();
    saved["expiry_date"] = json!(1);
    std::fs::write(&path, saved.to_string()).unwrap();
    let told = call(&connected(home.config()).await, "search", json!({ "query": "x" })).await;
    assert!(!told.failed, "{}", told.result);
    assert_eq!(home.asked("/token").len(), 2);
}

/// Logs in with a browser that comes back with this.
async fn come_back(config: &Config, with: &'static str) -> Result<PathBuf, ToolError> {
    let back = "http://127.0.0.1:1/callback";
    let login = Headless::new(back, move |url: String| async move {
        let state = form(url.split_once('?').unwrap().1.as_bytes()).remove("state").unwrap();
        Ok(format!("{back}?{}", with.replace("STATE", &state)))
    });
    log_in(config, &login).await
}

#[tokio::test]
async fn a_login_that_is_not_the_one_saves_nothing() {
    let home = Home::new().await;
    let error = come_back(&home.config(), "").await.unwrap_err().to_string();
    assert!(error.starts_with("No OAuth client: ") && error.contains("console.cloud.google.com"), "{error}");
    home.write("gcp-oauth.keys.json", &home.keys());
    for with in [
        "code=c0de&state=other",
        "code=c0de",
        "code=c0de&state=STATE&iss=https%3A%2F%2Fevil.example",
        "error=access_denied&state=STATE",
        // The verifier is not the one of the challenge that the double knows.
        "code=c0de&state=STATE",
    ] {
        let error = come_back(&home.config(), with).await.unwrap_err();
        assert!(error.message().starts_with("The login failed: "), "{with}: {error}");
    }
    assert_eq!(std::fs::read_dir(home.folder.path()).unwrap().count(), 1);
    #[cfg(unix)]
    {
        let mut config = home.config();
        config.credentials = Some(home.folder.path().join("link"));
        std::os::unix::fs::symlink("/tmp/elsewhere", home.folder.path().join("link")).unwrap();
        let before = home.site.requests().len();
        let error = come_back(&config, "code=c0de&state=STATE").await.unwrap_err();
        assert!(error.message().ends_with("is a symlink"), "{error}");
        assert_eq!(home.site.requests().len(), before);
    }
}
