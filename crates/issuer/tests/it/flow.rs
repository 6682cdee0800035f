//! Logins that go well, from the first request to the last refresh.

use crate::support::{
    Browser, ISSUER, Login, REDIRECT, RESOURCE, answer_of, ask, enter, post, post_json, refresh, text,
};
use http::{HeaderMap, Method, StatusCode};
use linchpin_issuer::{Client, Issuer, UserTable, Users};
use linchpin_oauth::{Alg, Secret, Signer};
use linchpin_store::{ManualClock, Store};
use linchpin_testing::Logged;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// An issuer whose terminal the test reads.
pub(crate) fn once() -> (Issuer, Arc<Mutex<String>>) {
    let terminal = Arc::new(Mutex::new(String::new()));
    let shown = terminal.clone();
    let users = Users::once_with(move |line| line.clone_into(&mut shown.lock().unwrap()));
    let issuer = Issuer::new(ISSUER)
        .users(users)
        .name("Files")
        .scope("files:read", "read your files")
        .scope("files:write", "change your files")
        .client(Client::new("desktop").name("Acme Desktop").redirect_uri("http://127.0.0.1/cb"));
    (issuer, terminal)
}

/// Reads the code in the terminal.
pub(crate) fn code_in(terminal: &Mutex<String>) -> String {
    terminal.lock().unwrap().split_once("Code: ").expect("a code is shown").1.to_owned()
}

/// Logs in, and returns the code for the client.
pub(crate) async fn code_for(issuer: &Issuer, terminal: &Mutex<String>, login: &Login) -> String {
    let mut browser = Browser::new(issuer);
    let page = browser.follow(&login.url(issuer)).await;
    assert_eq!(page.status, StatusCode::OK, "{page:?}");
    let done = browser.answer(&page, "allow", &code_in(terminal)).await;
    answer_of(&done)["code"].clone()
}

/// Logs in, and returns the tokens.
pub(crate) async fn tokens_for(issuer: &Issuer, terminal: &Mutex<String>, login: &Login) -> Value {
    let code = code_for(issuer, terminal, login).await;
    let got = login.redeem(issuer, &code).await;
    assert_eq!(got.status, StatusCode::OK, "{got:?}");
    got.json()
}

#[tokio::test]
async fn whoever_reads_the_terminal_logs_in_and_comes_in_with_the_token() {
    let (issuer, terminal) = once();
    let login = Login::new("desktop");
    let mut browser = Browser::new(&issuer);
    let page = browser.follow(&login.url(&issuer)).await;
    for shown in ["Acme Desktop", "a program on this computer", "read your files", "Files", ISSUER] {
        assert!(page.body.contains(shown), "{shown} is not on {}", page.body);
    }
    assert!(!page.body.contains("change your files"));
    let code = code_in(&terminal);
    assert!(terminal.lock().unwrap().starts_with("Acme Desktop asks for files:read. Code: "));
    // As persons write it.
    let done = browser.answer(&page, "allow", &format!(" {} ", code.to_lowercase())).await;
    assert_eq!(done.status, StatusCode::OK, "the answer to a form is a page");
    let answer = answer_of(&done);
    assert_eq!((answer["state"].as_str(), answer["iss"].as_str()), ("s t&1", ISSUER));
    let got = login.redeem(&issuer, &answer["code"]).await;
    assert_eq!(got.headers["cache-control"], "no-store");
    let tokens = got.json();
    assert_eq!((text(&tokens, "token_type").as_str(), text(&tokens, "scope").as_str()), ("Bearer", "files:read"));
    let who = enter(&issuer, "/mcp", Some(&text(&tokens, "access_token"))).await.unwrap();
    assert_eq!((who.subject(), who.issuer(), who.client()), ("owner", Some(ISSUER), Some("desktop")));
    assert!(who.has_scope("files:read") && !who.has_scope("files:write") && who.expires().is_some());
}

#[tokio::test]
async fn a_stranger_is_told_where_to_log_in_and_finds_the_metadata() {
    let (issuer, _) = once();
    let refusal = enter(&issuer, "/mcp", None).await.unwrap_err();
    let challenge = refusal.headers()["www-authenticate"].to_str().unwrap().to_owned();
    let document = "https://mcp.example/.well-known/oauth-protected-resource/mcp";
    assert!(challenge.contains(&format!("resource_metadata=\"{document}\"")), "{challenge}");
    assert!(!challenge.contains("error"));
    let get = async |url: &str| {
        let from = SocketAddr::from(([192, 0, 2, 1], 1));
        ask(&issuer, Method::GET, url, HeaderMap::new(), String::new(), from).await.json()
    };
    let resource = get(document).await;
    assert_eq!((&resource["resource"], &resource["authorization_servers"][0]), (&json!(RESOURCE), &json!(ISSUER)));
    let server = get(&format!("{ISSUER}/.well-known/oauth-authorization-server")).await;
    assert_eq!(server["issuer"], ISSUER);
    assert_eq!(server["code_challenge_methods_supported"], json!(["S256"]));
    assert_eq!(server["client_id_metadata_document_supported"], true);
    assert_eq!(server["authorization_response_iss_parameter_supported"], true);
    assert_eq!(server["protected_resources"], json!([RESOURCE]));
    for endpoint in ["authorization_endpoint", "token_endpoint", "registration_endpoint", "revocation_endpoint"] {
        assert!(text(&server, endpoint).starts_with(&format!("{ISSUER}/")), "{server}");
    }
    let keys = get(&text(&server, "jwks_uri")).await;
    assert_eq!((&keys["keys"][0]["crv"], keys["keys"][0].get("d")), (&json!("P-256"), None));
}

#[tokio::test]
async fn a_client_that_registers_itself_logs_in() {
    let (issuer, terminal) = once();
    let from = SocketAddr::from(([192, 0, 2, 3], 1));
    let request = json!({ "client_name": "Files", "redirect_uris": ["http://127.0.0.1:1/cb"],
        "grant_types": ["authorization_code", "refresh_token"], "token_endpoint_auth_method": "none" });
    let got = post_json(&issuer, "register", &request, from).await;
    assert_eq!(got.status, StatusCode::CREATED, "{got:?}");
    assert!(got.json().get("client_secret").is_none(), "a public client has no secret");
    let login = Login::new(&text(&got.json(), "client_id"));
    let mut browser = Browser::new(&issuer);
    let page = browser.follow(&login.url(&issuer)).await;
    // Row 60: even with our own name it is not verified.
    assert!(page.body.contains("calls itself “Files” (not verified)"), "{}", page.body);
    let tokens = tokens_for(&issuer, &terminal, &login).await;
    assert!(enter(&issuer, "/mcp", Some(&text(&tokens, "access_token"))).await.is_ok());
    // A confidential one has to show its secret.
    let request = json!({ "redirect_uris": [REDIRECT] });
    let client = post_json(&issuer, "register", &request, from).await.json();
    let (id, secret) = (text(&client, "client_id"), text(&client, "client_secret"));
    let login = Login::new(&id);
    let code = code_for(&issuer, &terminal, &login).await;
    assert_eq!(login.redeem(&issuer, &code).await.error(), "invalid_client");
    let more = [("client_secret", secret.as_str())];
    assert_eq!(login.redeem_with(&issuer, &code, &more).await.status, StatusCode::OK);
}

#[tokio::test]
async fn users_of_a_file_log_in_with_their_password_once_a_browser_and_lose_access_when_disabled() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("users.toml");
    std::fs::write(
        &path,
        format!("[ada]\npassword = \"{}\"\nname = \"Ada\"\nscopes = [\"files:read\"]\n", light("pw")),
    )
    .unwrap();
    let issuer = Issuer::new(ISSUER)
        .users(Users::file(&path).unwrap())
        .scope("files:read", "read")
        .scope("files:write", "write")
        .client(Client::new("desktop").redirect_uri(REDIRECT));
    let login = Login::new("desktop").set("scope", Some("files:read files:write"));
    let mut browser = Browser::new(&issuer);
    let page = browser.follow(&login.url(&issuer)).await;
    let wrong = browser.sign_in(&page, "ada", "pw2").await;
    assert_eq!(wrong.status, StatusCode::FORBIDDEN);
    let went = browser.sign_in(&wrong, "ada", "pw").await;
    let question = browser.follow(&went.next().unwrap()).await;
    assert!(question.body.contains("You are signed in as"), "{}", question.body);
    let code = answer_of(&browser.answer(&question, "allow", "").await)["code"].clone();
    let tokens = login.redeem(&issuer, &code).await.json();
    assert_eq!(text(&tokens, "scope"), "files:read", "the file gives her no more");
    // The browser is logged in: the next client meets the question only.
    let again = browser.follow(&Login::new("desktop").url(&issuer)).await;
    assert!(again.body.contains("You are signed in as"), "{}", again.body);
    let mut table = UserTable::read(&path).unwrap();
    table.get_mut("ada").unwrap().disabled = true;
    table.write(&path).unwrap();
    let got = refresh(&issuer, "desktop", &text(&tokens, "refresh_token"), &[]).await;
    assert_eq!(got.error(), "invalid_grant");
    let denied = enter(&issuer, "/mcp", Some(&text(&tokens, "access_token"))).await;
    assert!(denied.is_err(), "what the family gave ends with it");
}

/// Who types the password into the field of the name has it in no log.
#[tokio::test]
async fn the_log_of_a_refused_login_names_users_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("users.toml");
    std::fs::write(&path, format!("[ada]\npassword = \"{}\"\n", light("pw"))).unwrap();
    let issuer = Issuer::new(ISSUER)
        .users(Users::file(&path).unwrap())
        .scope("files:read", "read")
        .client(Client::new("desktop").redirect_uri(REDIRECT));
    for (name, password, item) in [
        ("ada", "typed-secret", "ada"),
        ("typed-secret", "", ""),
        ("typed-secret\n", "pw", ""),
        (&"n".repeat(500), "x", ""),
    ] {
        let mut browser = Browser::new(&issuer);
        let page = browser.follow(&Login::new("desktop").url(&issuer)).await;
        let logged = Logged::default();
        let guard = tracing::subscriber::set_default(logged.clone());
        let refused = browser.sign_in(&page, name, password).await;
        drop(guard);
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
        let text = logged.text();
        assert!(text.contains("login refused") && text.contains(&format!("item={item:?}")), "{text}");
        assert!(!text.contains("typed-secret") && !text.contains("nnnn"), "{text}");
    }
}

/// A password hash that is quickly compared.
pub(crate) fn light(password: &str) -> String {
    use argon2::password_hash::PasswordHasher as _;
    let params = argon2::Params::new(64, 1, 1, None).unwrap();
    let argon = argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params);
    argon.hash_password(password.as_bytes()).unwrap().to_string()
}

#[tokio::test]
async fn passwords_are_hashed_and_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("users.toml");
    let mut table = UserTable::default();
    table.set_password("ada", &Secret::new("pw")).unwrap().groups = vec!["staff".to_owned()];
    table.write(&path).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("$argon2id$v=19$m=19456") && !text.contains("pw\""), "{text}");
    assert_eq!(UserTable::read(&path).unwrap().iter().next().unwrap().1.groups, ["staff"]);
    assert!(Users::file(folder.path().join("missing")).is_err());
}

#[tokio::test]
async fn a_client_acts_for_itself_with_its_secret_or_its_key() {
    let (issuer, _) = once();
    let (signer, _) = Signer::generate(Alg::Es256);
    let keys = json!({ "keys": [signer.jwk().to_value()] });
    let issuer = issuer
        .client(Client::new("nightly").secret("s3cret").client_credentials(["files:read"]))
        .client(Client::new("robot").keys(keys).client_credentials(["files:read", "files:write"]));
    let grant = ("grant_type", "client_credentials");
    let got = post(&issuer, "token", Some(("nightly", "s3cret")), &[grant]).await;
    assert_eq!(got.status, StatusCode::OK, "{got:?}");
    assert!(got.json().get("refresh_token").is_none());
    let who = enter(&issuer, "/mcp", Some(&text(&got.json(), "access_token"))).await.unwrap();
    assert_eq!((who.subject(), who.has_scope("files:read")), ("client:nightly", true));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let assertion = signer.client_assertion("robot", ISSUER, now);
    let kind = ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
    let form = [grant, kind, ("client_assertion", &assertion), ("scope", "files:write")];
    let got = post(&issuer, "token", None, &form).await;
    assert_eq!(text(&got.json(), "scope"), "files:write");
    // Row 87: an assertion is good once.
    assert_eq!(post(&issuer, "token", None, &form).await.error(), "invalid_client");
    let wide = post(&issuer, "token", Some(("nightly", "s3cret")), &[grant, ("scope", "files:write")]).await;
    assert_eq!(wide.error(), "invalid_scope");
    let public = post(&issuer, "token", None, &[grant, ("client_id", "desktop")]).await;
    assert_eq!(public.error(), "unauthorized_client");
}

#[tokio::test]
async fn tokens_are_revoked_and_introspected() {
    let (issuer, terminal) = once();
    let issuer = issuer.client(Client::new("auditor").secret("s3cret"));
    let auditor = Some(("auditor", "s3cret"));
    for which in ["refresh_token", "access_token"] {
        let tokens = tokens_for(&issuer, &terminal, &Login::new("desktop")).await;
        let (access, token) = (text(&tokens, "access_token"), text(&tokens, which));
        let active = post(&issuer, "introspect", auditor, &[("token", &access)]).await.json();
        assert_eq!((&active["active"], &active["aud"]), (&json!(true), &json!(RESOURCE)));
        // Somebody else's token is no error, and stays.
        let other = post(&issuer, "revoke", auditor, &[("token", &token)]).await;
        assert_eq!(other.status, StatusCode::OK);
        assert!(enter(&issuer, "/mcp", Some(&access)).await.is_ok());
        let done = post(&issuer, "revoke", None, &[("client_id", "desktop"), ("token", &token)]).await;
        assert_eq!(done.status, StatusCode::OK, "{done:?}");
        assert!(enter(&issuer, "/mcp", Some(&access)).await.is_err(), "{which}");
        let active = post(&issuer, "introspect", auditor, &[("token", &access)]).await.json();
        assert_eq!(active, json!({ "active": false }));
        let after = refresh(&issuer, "desktop", &text(&tokens, "refresh_token"), &[]).await;
        assert_eq!(after.error(), "invalid_grant");
    }
    let public = post(&issuer, "introspect", None, &[("client_id", "desktop"), ("token", "x")]).await;
    assert_eq!(public.error(), "invalid_client");
}

#[tokio::test]
async fn everything_outlives_a_restart_on_the_same_store() {
    let clock = Arc::new(ManualClock::default());
    let store = Store::builder().clock(clock.clone()).memory();
    let node = || {
        let (issuer, terminal) = once();
        (issuer.store(store.clone()).clock(clock.clone()), terminal)
    };
    let (first, terminal) = node();
    let tokens = tokens_for(&first, &terminal, &Login::new("desktop")).await;
    drop(first);
    let (second, _) = node();
    assert!(enter(&second, "/mcp", Some(&text(&tokens, "access_token"))).await.is_ok());
    clock.advance(Duration::from_secs(20 * 86_400));
    let old = text(&tokens, "refresh_token");
    let tokens = refresh(&second, "desktop", &old, &[]).await.json();
    assert_ne!(text(&tokens, "refresh_token"), old);
    // Keys are new after 90 days, and published before; the family ends then too.
    let kid =
        |tokens: &Value| linchpin_oauth::Jws::read(&text(tokens, "access_token")).unwrap().kid().unwrap().to_owned();
    let (mut tokens, first_kid) = (tokens.clone(), kid(&tokens));
    for _ in 0..3 {
        clock.advance(Duration::from_secs(23 * 86_400));
        tokens = refresh(&second, "desktop", &text(&tokens, "refresh_token"), &[]).await.json();
    }
    assert_eq!(kid(&tokens), first_kid);
    clock.advance(Duration::from_secs(2 * 86_400));
    let late = refresh(&second, "desktop", &text(&tokens, "refresh_token"), &[]).await;
    assert_eq!(late.error(), "invalid_grant", "a family lasts 90 days at most");
}
