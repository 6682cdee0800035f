//! No credential in an error, a log or a `Debug`.

use crate::support;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use linchpin_auth::jwt::{Alg, Signer};
use linchpin_auth::login::Headless;
use linchpin_auth::store::{MemoryStore, Registered, StoreKey, Stored, TokenStore, Tokens};
use linchpin_auth::{Assertion, Challenge, Credential, Enterprise, OAuth, Scopes, Secret, Workload};
use serde_json::json;
use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};
use support::{AS, MCP, World};
use tracing::field::{Field, Visit};
use tracing::span;

/// What every secret of these tests has in it.
const MARK: &str = "hunter2";

/// A new private key.
fn pem() -> String {
    let algorithm = &ring::signature::ECDSA_P256_SHA256_FIXED_SIGNING;
    let key = ring::signature::EcdsaKeyPair::generate_pkcs8(algorithm, &ring::rand::SystemRandom::new()).unwrap();
    format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(key.as_ref()))
}

#[test]
fn debug_shows_no_secret_of_any_public_type() {
    let secret = || Secret::new(format!("{MARK}-value"));
    let text = || format!("{MARK}-value");
    let tokens = Tokens::new(secret(), "Bearer").with(|tokens| tokens.refresh_token = Some(secret()));
    let client = Registered::new("id").with(|client| client.client_secret = Some(secret()));
    let stored = Stored::default().with(|stored| {
        stored.client = Some(client.clone());
        stored.tokens = Some(tokens.clone());
        stored.dpop_key = Some(secret());
    });
    let pem = pem();
    let signer = Signer::from_pem(&pem, Alg::Es256).unwrap();
    let enterprise = Enterprise::new("https://idp", "id", text()).provider_credential(text()).client("id", text());
    let workload = Workload::new(text()).client_id("id");
    let oauth = World::new()
        .oauth()
        .pre_registered(None, "id", text())
        .pre_registered(Some(AS), "id", signer.clone())
        .client_metadata_key(signer.clone());
    let all: Vec<Box<dyn Debug>> = vec![
        Box::new(secret()),
        Box::new(tokens),
        Box::new(client),
        Box::new(stored),
        Box::new(Credential::from(text())),
        Box::new(Credential::from(signer.clone())),
        Box::new(Assertion::from(text())),
        Box::new(Assertion::from_fn(|_| async { Ok(MARK.to_owned()) })),
        Box::new(oauth.clone().client_credentials("id", text())),
        Box::new(oauth.clone().enterprise(enterprise.clone())),
        Box::new(oauth.clone().workload(workload.clone())),
        Box::new(oauth),
        Box::new(enterprise),
        Box::new(workload),
        Box::new(MemoryStore::new()),
        Box::new(Headless::new("http://localhost/", |_| async { Ok(String::new()) })),
        Box::new(Challenge::default()),
        Box::new(Scopes::new()),
    ];
    for value in all {
        let shown = format!("{value:?}\n{value:#?}");
        assert!(!shown.contains(MARK), "{shown}");
    }
    let shown = format!("{signer:?}");
    let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    assert!(!shown.contains(&body[..20]), "{shown}");
}

/// Writes down every event with every field.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<String>>);

impl tracing::Subscriber for Written {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        attributes.record(&mut self.clone());
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, record: &span::Record<'_>) {
        record.record(&mut self.clone());
    }
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

impl Visit for Written {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        writeln!(self.0.lock().unwrap(), "{field}={value:?}").unwrap();
    }
}

/// How a test sets authorization up.
type Way<'a> = Box<dyn Fn(OAuth) -> OAuth + 'a>;

/// The token endpoint of these worlds says in its errors what it was sent, all of it.
#[tokio::test]
async fn neither_errors_nor_logs_hold_what_was_sent() {
    let written = Written::default();
    let _guard = tracing::subscriber::set_default(written.clone());
    let secret = format!("{MARK} & more");
    let signer = Signer::from_pem(&pem(), Alg::Es256).unwrap();
    let ways: Vec<(&str, Way<'_>)> = vec![
        ("client_credentials", Box::new(|oauth| oauth.client_credentials("id", secret.as_str()))),
        ("client_credentials", Box::new(move |oauth| oauth.client_credentials("id", signer.clone()))),
        ("jwt-bearer", Box::new(|oauth| oauth.workload(Workload::new(secret.as_str())))),
        (
            "token-exchange",
            Box::new(|oauth| {
                let enterprise = Enterprise::new("https://idp.example/token", "id", secret.as_str());
                oauth.enterprise(enterprise.provider_credential(secret.as_str()).client("id", secret.as_str()))
            }),
        ),
        (
            "jwt-bearer",
            Box::new(|oauth| {
                oauth.enterprise(
                    Enterprise::new("https://idp.example/token", "id", secret.as_str()).client("id", secret.as_str()),
                )
            }),
        ),
        ("authorization_code", Box::new(|oauth| oauth.pre_registered(None, "id", secret.as_str()))),
    ];
    for methods in ["client_secret_basic", "client_secret_post", "private_key_jwt"] {
        for (grant, way) in &ways {
            let world = World::new();
            world.merge_server(json!({"token_endpoint_auth_methods_supported": [methods]}));
            world.set(|set| {
                set.token_error = Some((grant, 400, "invalid_grant"));
                set.callback = format!("http://localhost:3000/callback?code={MARK}-code&state={{state}}");
            });
            let Err(why) = world.call(&way(world.oauth()), "list").await else { panic!("{grant} {methods}") };
            assert!(why.contains("invalid_grant") || why.contains("private_key_jwt"), "{grant} {methods}: {why}");
            assert!(!why.contains(MARK) && !why.contains("client_assertion=ey"), "{grant} {methods}: {why}");
        }
    }
    refused_refresh().await;
    let log = written.0.lock().unwrap();
    assert!(log.contains("the refresh token is not accepted any more"), "the log is heard: {log}");
    assert!(!log.contains(MARK), "{log}");
}

/// A refresh that is refused is logged, and then there is a login.
async fn refused_refresh() {
    let world = World::new();
    let store = MemoryStore::new();
    let tokens = Tokens::new("old", "Bearer").with(|tokens| {
        tokens.refresh_token = Some(Secret::new(format!("{MARK}-refresh")));
        tokens.expires_at = Some(1_000_010);
    });
    let stored = Stored::default().with(|stored| stored.tokens = Some(tokens));
    store.save(&StoreKey::new(AS, MCP), &stored).await.unwrap();
    world.set(|set| set.token_error = Some(("refresh_token", 400, "invalid_grant")));
    world.pass(60);
    let oauth = world.oauth().store(store).pre_registered(Some(AS), "pre", Credential::None);
    assert_eq!(world.call(&oauth, "list").await, Ok(200));
    assert!(world.log().contains(&format!("refresh_token={MARK}-refresh")), "it was sent where it belongs");
}
