//! A provider on this computer: OpenID Connect, and GitHub's interfaces, as their documentation describes them.

use linchpin_oauth::{Alg, Signer};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

/// What the provider says, which tests change.
pub(crate) struct State {
    pub(crate) claims: Value,
    pub(crate) nonce: Option<String>,
    pub(crate) scopes_supported: Value,
    pub(crate) expires_in: Option<u64>,
    pub(crate) orgs: Vec<String>,
    pub(crate) away: bool,
    pub(crate) gone: bool,
    /// What it answers instead, but for its metadata.
    pub(crate) instead: Option<(u16, Value)>,
    /// Signs ID tokens with a key that is not published.
    pub(crate) forges: bool,
    /// The path of each request, and the form in its body.
    pub(crate) log: Vec<(String, BTreeMap<String, String>)>,
}

/// A running provider.
pub(crate) struct Provider {
    pub(crate) url: String,
    pub(crate) state: Arc<Mutex<State>>,
}

impl Provider {
    pub(crate) async fn start() -> Provider {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let claims = json!({ "iss": url, "sub": "u-17", "aud": "our-id", "name": "Ada", "preferred_username": "ada",
            "email": "ada@acme.example", "email_verified": true });
        let state = State {
            claims,
            nonce: None,
            scopes_supported: json!(["openid", "profile", "email"]),
            expires_in: None,
            orgs: vec![],
            away: false,
            gone: false,
            instead: None,
            forges: false,
            log: vec![],
        };
        let state = Arc::new(Mutex::new(state));
        let (signer, _) = Signer::generate(Alg::Es256);
        let signer = signer.kid("k1");
        let (shared, own) = (state.clone(), url.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, own.clone(), shared.clone(), signer.clone()));
            }
        });
        Provider { url, state }
    }

    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap())
    }

    /// The user logs in at the provider: where their browser is sent back to.
    pub(crate) fn log_in(&self, url: &str) -> String {
        let asked: BTreeMap<String, String> = Url::parse(url).unwrap().query_pairs().into_owned().collect();
        assert_eq!((asked["client_id"].as_str(), asked["code_challenge_method"].as_str()), ("our-id", "S256"));
        assert!(!asked.contains_key("resource"), "not every provider takes it");
        self.with(|state| state.nonce = asked.get("nonce").cloned());
        let mut back = Url::parse(&asked["redirect_uri"]).unwrap();
        back.query_pairs_mut().append_pair("code", "upstream-code-canary").append_pair("state", &asked["state"]);
        back.into()
    }

    /// How often a path was asked for.
    pub(crate) fn asked(&self, path: &str) -> usize {
        self.with(|state| state.log.iter().filter(|(known, _)| known == path).count())
    }
}

async fn serve(mut stream: TcpStream, own: String, state: Arc<Mutex<State>>, signer: Signer) {
    while let Some((line, body)) = read(&mut stream).await {
        let path = line.split(' ').nth(1).unwrap_or_default().split('?').next().unwrap_or_default().to_owned();
        if path == "/never.json" {
            std::future::pending::<()>().await;
        }
        let (status, answer) = {
            let mut state = state.lock().unwrap();
            let form = url::form_urlencoded::parse(body.as_bytes()).into_owned().collect();
            state.log.push((path.clone(), form));
            respond(&own, &path, &state, &signer)
        };
        let body = answer.to_string();
        let head = format!(
            "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\nlocation: {own}/client.json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        if stream.write_all((head + &body).as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some(end) = text.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&text[..end]).into_owned();
            let length =
                head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
            let wanted = end + 4 + length.unwrap_or(0_usize);
            if text.len() >= wanted {
                return Some((head, String::from_utf8_lossy(&text[end + 4..wanted]).into_owned()));
            }
        }
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(n) => text.extend_from_slice(&buffer[..n]),
        }
    }
}

fn respond(own: &str, path: &str, state: &State, signer: &Signer) -> (u16, Value) {
    if state.away && path != "/.well-known/openid-configuration" {
        return (503, json!({}));
    }
    if let Some(instead) = state.instead.clone().filter(|_| !path.starts_with("/.well-known")) {
        return instead;
    }
    if state.gone && !path.starts_with("/.well-known") {
        return (400, json!({ "error": "invalid_grant" }));
    }
    match path {
        "/.well-known/openid-configuration" => (
            200,
            json!({
                "issuer": own,
                "authorization_endpoint": format!("{own}/authorize"),
                "token_endpoint": format!("{own}/token"),
                "jwks_uri": format!("{own}/jwks"),
                "revocation_endpoint": format!("{own}/revoke"),
                "userinfo_endpoint": format!("{own}/userinfo"),
                "scopes_supported": state.scopes_supported,
            }),
        ),
        "/jwks" => (200, json!({ "keys": [signer.jwk().to_value()] })),
        "/token" => {
            let mut claims = state.claims.clone();
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
            claims["iat"] = json!(now);
            claims["exp"] = json!(now + 300);
            if let (None, Some(nonce)) = (claims.get("nonce"), &state.nonce) {
                claims["nonce"] = json!(nonce);
            }
            let signer = if state.forges { Signer::generate(Alg::Es256).0.kid("k1") } else { signer.clone() };
            (
                200,
                json!({ "access_token": "upstream-access-canary", "refresh_token": "upstream-refresh-canary",
                "token_type": "Bearer", "expires_in": state.expires_in, "id_token": signer.sign("JWT", &claims) }),
            )
        }
        "/client.json" => (
            200,
            json!({ "client_id": format!("{own}/client.json"), "client_name": "Documented",
            "redirect_uris": ["http://127.0.0.1/cb"] }),
        ),
        "/moved.json" => (302, json!({})),
        "/huge.json" => (
            200,
            json!({ "client_id": format!("{own}/huge.json"), "redirect_uris": ["http://127.0.0.1/cb"],
            "client_name": "x".repeat(1 << 20) }),
        ),
        "/liar.json" => {
            (200, json!({ "client_id": format!("{own}/client.json"), "redirect_uris": ["http://127.0.0.1/cb"] }))
        }
        "/login/oauth/access_token" => {
            (200, json!({ "access_token": "upstream-access-canary", "token_type": "bearer", "scope": "read:user" }))
        }
        "/api/v3/user" => (200, json!({ "id": 583_231, "login": "octocat", "name": "Octo" })),
        "/api/v3/user/emails" => (
            200,
            json!([
                { "email": "old@acme.example", "primary": false, "verified": true },
                { "email": "octo@acme.example", "primary": true, "verified": true },
            ]),
        ),
        "/api/v3/user/orgs" => (200, state.orgs.iter().map(|org| json!({ "login": org })).collect()),
        "/revoke" | "/api/v3/applications/our-id/token" => (200, json!({})),
        _ => (404, json!({})),
    }
}
