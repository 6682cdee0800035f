//! An authorization server whose endpoints are known beforehand, as data: what it is asked, and what it is never told.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::{Request, Response};
use linchpin_auth::jwt::{Alg, Signer};
use linchpin_auth::login::Headless;
use linchpin_auth::{Fetch, KnownServer, Secret};
use linchpin_core::service::BoxFuture;
use linchpin_web::Reach;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

type Form = BTreeMap<String, String>;

/// What was posted, and where to.
#[derive(Clone, Default)]
struct Double(Arc<Mutex<Vec<(String, Form)>>>);

impl Fetch for Double {
    fn fetch(&self, request: Request<Bytes>, _: Reach, _: usize) -> BoxFuture<'_, Result<Response<Bytes>, String>> {
        let sent: Form = form_urlencoded::parse(request.body()).into_owned().collect();
        let (status, told) = match sent.get("refresh_token").map(String::as_str) {
            Some("revoked") => (400, json!({ "error": "invalid_grant", "error_description": "revoked is gone" })),
            _ => (200, json!({ "access_token": "a", "refresh_token": "r", "token_type": "Bearer", "expires_in": 60 })),
        };
        assert!(!request.headers().contains_key("authorization"));
        self.0.lock().unwrap().push((request.uri().to_string(), sent));
        let answer = Response::builder().status(status).body(Bytes::from(told.to_string())).unwrap();
        Box::pin(async move { Ok(answer) })
    }
}

impl Double {
    fn server(&self) -> KnownServer {
        let (authorize, token) = ("https://as.example/authorize", "https://token.example/token");
        let server = KnownServer::new("https://as.example", authorize, token).fetch(self.clone());
        server.client("me", "s3cret").parameter("access_type", "offline")
    }

    fn last(&self) -> Form {
        let (address, form) = self.0.lock().unwrap().last().cloned().unwrap();
        assert_eq!(address, "https://token.example/token");
        form
    }
}

/// Logs in with a browser that comes back with this; returns what it was asked.
async fn log_in(double: &Double, with: &'static str) -> Result<Form, linchpin_auth::Error> {
    let asked = Arc::new(Mutex::new(Form::new()));
    let seen = Arc::clone(&asked);
    let login = Headless::new("http://127.0.0.1:1/callback", move |url: String| {
        let (address, query) = url.split_once('?').unwrap();
        assert_eq!(address, "https://as.example/authorize");
        let query: Form = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let back = format!("http://127.0.0.1:1/callback?{}", with.replace("STATE", &query["state"]));
        *seen.lock().unwrap() = query;
        async move { Ok(back) }
    });
    let tokens = double.server().login(&login, ["read", "write"]).await?;
    assert_eq!((tokens.access_token.expose(), tokens.refresh_token.unwrap().expose()), ("a", "r"));
    let asked = asked.lock().unwrap().clone();
    Ok(asked)
}

#[tokio::test]
async fn a_login_proves_itself_with_pkce_and_names_no_resource() {
    let double = Double::default();
    let asked = log_in(&double, "code=c&state=STATE&iss=https%3A%2F%2Fas.example").await.unwrap();
    assert_eq!((&*asked["scope"], &*asked["access_type"], &*asked["client_id"]), ("read write", "offline", "me"));
    let sent = double.last();
    assert_eq!(URL_SAFE_NO_PAD.encode(digest(&SHA256, sent["code_verifier"].as_bytes())), asked["code_challenge"]);
    let names: Vec<&str> = sent.keys().map(String::as_str).collect();
    assert_eq!(names, ["client_id", "client_secret", "code", "code_verifier", "grant_type", "redirect_uri"]);
    assert!(!asked.contains_key("resource"));
}

#[tokio::test]
async fn a_callback_of_another_login_or_server_redeems_nothing() {
    for with in ["code=c&state=other", "code=c", "code=c&state=STATE&iss=https%3A%2F%2Fevil.example", "state=STATE"] {
        let double = Double::default();
        assert!(log_in(&double, with).await.unwrap_err().is_login(), "{with}");
        assert!(double.0.lock().unwrap().is_empty(), "{with}");
    }
}

#[tokio::test]
async fn a_revoked_refresh_token_is_told_apart_and_not_quoted() {
    let double = Double::default();
    double.server().refresh(&Secret::new("good")).await.unwrap();
    assert_eq!(double.last()["refresh_token"], "good");
    let error = double.server().refresh(&Secret::new("revoked")).await.unwrap_err();
    assert!(error.is_refused_with("invalid_grant") && !error.to_string().contains("revoked"), "{error}");
}

#[tokio::test]
async fn a_signed_statement_comes_without_a_client() {
    let key = ring::signature::Ed25519KeyPair::generate_pkcs8(&ring::rand::SystemRandom::new()).unwrap();
    let kind = "PRIVATE KEY";
    let key = base64::engine::general_purpose::STANDARD.encode(key.as_ref());
    let signer =
        Signer::from_pem(&format!("-----BEGIN {kind}-----\n{key}\n-----END {kind}-----\n"), Alg::EdDsa).unwrap();
    let Value::Object(claims) = json!({ "iss": "bot", "aud": "https://token.example/token" }) else { unreachable!() };
    let double = Double::default();
    double.server().assertion(&signer, &claims).await.unwrap();
    let sent = double.last();
    assert_eq!(sent.keys().map(String::as_str).collect::<Vec<_>>(), ["assertion", "grant_type"]);
    let claims = URL_SAFE_NO_PAD.decode(sent["assertion"].split('.').nth(1).unwrap()).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    assert_eq!(claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(), 3_600);
    assert_eq!(claims["iss"], "bot");
}
