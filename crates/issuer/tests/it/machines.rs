//! Grants without a browser: devices, assertions of enterprises, tokens of workloads. Rows 90 to 96 and 103 to 105.

use crate::flow::{code_in, once};
use crate::support::{Browser, Got, ISSUER, RESOURCE, ask, enter, post, refresh, text};
use http::{HeaderMap, Method, StatusCode};
use linchpin_issuer::{Admin, Client, IdentityProvider, Issuer, Store, Workload};
use linchpin_oauth::{Alg, JwkSet, Signer};
use linchpin_store::ManualClock;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const IDP: &str = "https://idp.example";
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const DEVICE: &str = "urn:ietf:params:oauth:grant-type:device_code";

fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

/// Claims with changes.
fn changed(claims: &Value, change: &dyn Fn(&mut Value)) -> Value {
    let mut claims = claims.clone();
    change(&mut claims);
    claims
}

struct Enterprise {
    issuer: Issuer,
    idp: Signer,
    stranger: Signer,
}

impl Enterprise {
    fn new() -> Enterprise {
        let ((idp, _), (stranger, _)) = (Signer::generate(Alg::Es256), Signer::generate(Alg::Es256));
        let issuer = Issuer::new(ISSUER)
            .only_machines()
            .enterprise(IdentityProvider::new(IDP).keys(JwkSet::from_iter([idp.jwk()])))
            .client(Client::new("editor").secret("s3cret"))
            .client(Client::new("other").secret("s3cret"))
            .client(Client::new("public"))
            .scope("files:read", "read")
            .scope("files:write", "write");
        Enterprise { issuer, idp, stranger }
    }

    fn claims() -> Value {
        json!({ "iss": IDP, "sub": "u-17", "aud": ISSUER, "client_id": "editor", "resource": RESOURCE, "jti": "j-1",
            "iat": now(), "exp": now() + 200, "scope": "files:read files:write", "email": "ada@acme.example" })
    }

    async fn bring(&self, client: &str, assertion: &str, more: &[(&str, &str)]) -> Got {
        let mut form = vec![("grant_type", JWT_BEARER), ("assertion", assertion)];
        form.extend_from_slice(more);
        let basic = (client != "public").then_some((client, "s3cret"));
        form.extend((client == "public").then_some(("client_id", "public")));
        post(&self.issuer, "token", basic, &form).await
    }
}

#[tokio::test]
async fn rows_90_to_94_assertions_of_an_enterprise_are_for_one_client_one_server_and_one_use() {
    let all = Enterprise::new();
    let jag = |claims: &Value| all.idp.sign("oauth-id-jag+jwt", claims);
    let claims = Enterprise::claims();
    let with = |change: &dyn Fn(&mut Value)| jag(&changed(&claims, change));
    let rows = [
        ("91: another client's", with(&|c| c["client_id"] = json!("other"))),
        ("91: nobody's", with(&|c| c["client_id"] = json!(null))),
        ("92: for another server", with(&|c| c["resource"] = json!("https://sister.example/mcp"))),
        ("92: for several", with(&|c| c["resource"] = json!([RESOURCE, "https://sister.example/mcp"]))),
        ("92: for none", with(&|c| c["resource"] = json!(7))),
        ("93: for an hour", with(&|c| c["exp"] = json!(now() + 3600))),
        ("93: for an hour, from the past", with(&|c| (c["iat"], c["exp"]) = (json!(now() - 3500), json!(now() + 100)))),
        ("expired", with(&|c| (c["iat"], c["exp"]) = (json!(now() - 400), json!(now() - 100)))),
        ("without a beginning", with(&|c| c["iat"] = json!(null))),
        ("94: of a stranger", with(&|c| c["iss"] = json!("https://other.example"))),
        ("94: of the same but for a slash", with(&|c| c["iss"] = json!(format!("{IDP}/")))),
        ("of another key", all.stranger.sign("oauth-id-jag+jwt", &claims)),
        ("for another authorization server", with(&|c| c["aud"] = json!("https://other.example"))),
        ("for two", with(&|c| c["aud"] = json!([ISSUER, "https://other.example"]))),
        ("without an id", with(&|c| c["jti"] = json!(null))),
        ("without a user", with(&|c| c["sub"] = json!(null))),
        ("an ID token", all.idp.sign("JWT", &claims)),
        ("an access token", all.idp.sign("at+jwt", &claims)),
        ("nothing", "x".to_owned()),
    ];
    for (what, assertion) in &rows {
        let got = all.bring("editor", assertion, &[]).await;
        assert_eq!(got.error(), "invalid_grant", "{what}: {got:?}");
    }
    let good = jag(&claims);
    assert_eq!(all.bring("public", &good, &[]).await.error(), "unauthorized_client");
    let wrong = [("resource", "https://sister.example/mcp")];
    assert_eq!(all.bring("editor", &good, &wrong).await.error(), "invalid_target");
    // What went wrong before did not use it up.
    let got = all.bring("editor", &good, &[("scope", "files:read admin"), ("resource", RESOURCE)]).await;
    assert_eq!(got.status, StatusCode::OK, "{got:?}");
    assert_eq!((text(&got.json(), "scope").as_str(), got.json().get("refresh_token")), ("files:read", None));
    let who = enter(&all.issuer, "/mcp", Some(&text(&got.json(), "access_token"))).await.unwrap();
    assert_eq!((who.subject(), who.issuer(), who.client()), ("u-17", Some(IDP), Some("editor")));
    assert_eq!(all.bring("editor", &good, &[]).await.error(), "invalid_grant", "90: used again");
}

#[tokio::test]
async fn rules_hold_for_users_of_an_enterprise_too_and_it_is_announced() {
    let mut all = Enterprise::new();
    all.issuer = all.issuer.allow("@other.example");
    let assertion = all.idp.sign("oauth-id-jag+jwt", &Enterprise::claims());
    assert_eq!(all.bring("editor", &assertion, &[]).await.error(), "invalid_grant");
    all.issuer = all.issuer.allow("@acme.example");
    assert_eq!(all.bring("editor", &assertion, &[]).await.status, StatusCode::OK);
    let metadata = metadata(&all.issuer).await;
    assert_eq!(
        metadata["authorization_grant_profiles_supported"],
        json!(["urn:ietf:params:oauth:grant-profile:id-jag"])
    );
    assert!(metadata["grant_types_supported"].as_array().unwrap().contains(&json!(JWT_BEARER)));
    let (without, _) = once();
    let got = post(&without, "token", None, &[("grant_type", JWT_BEARER), ("assertion", &assertion)]).await;
    assert_eq!(got.error(), "unsupported_grant_type");
}

#[tokio::test]
async fn the_token_of_a_client_that_acts_for_itself_ends_when_it_is_revoked() {
    let issuer = Issuer::new(ISSUER)
        .only_machines()
        .client(Client::new("nightly").secret("s3cret").client_credentials(["files:read"]))
        .scope("files:read", "read");
    let basic = Some(("nightly", "s3cret"));
    let issued = async || {
        let got = post(&issuer, "token", basic, &[("grant_type", "client_credentials")]).await;
        text(&got.json(), "access_token")
    };
    let (one, other) = (issued().await, issued().await);
    assert!(enter(&issuer, "/mcp", Some(&one)).await.is_ok());
    assert_eq!(post(&issuer, "revoke", basic, &[("token", &one)]).await.status, StatusCode::OK);
    assert!(enter(&issuer, "/mcp", Some(&one)).await.is_err());
    let said = post(&issuer, "introspect", basic, &[("token", &one)]).await.json();
    assert_eq!(said["active"], json!(false));
    assert!(enter(&issuer, "/mcp", Some(&other)).await.is_ok(), "only this one");
}

async fn metadata(issuer: &Issuer) -> Value {
    let url = format!("{ISSUER}/.well-known/oauth-authorization-server");
    let from = SocketAddr::from(([192, 0, 2, 1], 1));
    ask(issuer, Method::GET, &url, HeaderMap::new(), String::new(), from).await.json()
}

#[tokio::test]
async fn rows_95_96_workloads_come_in_when_subject_claims_and_audience_fit_once() {
    let ((platform, _), (stranger, _)) = (Signer::generate(Alg::Es256), Signer::generate(Alg::EdDsa));
    let rule = Workload::new("https://ci.example")
        .subject("repo:acme/files:main")
        .claim("owner_id", "4711")
        .scopes(["files:read"])
        .keys(JwkSet::from_iter([platform.jwk()]));
    let other =
        Workload::new("https://ci.example").subject("repo:acme/other").keys(JwkSet::from_iter([platform.jwk()]));
    let issuer = Issuer::new(ISSUER).only_machines().workload(other).workload(rule);
    let claims = json!({ "iss": "https://ci.example", "sub": "repo:acme/files:main", "aud": ISSUER, "owner_id": "4711",
        "jti": "j-1", "iat": now(), "exp": now() + 900 });
    let with = |change: &dyn Fn(&mut Value)| platform.sign("JWT", &changed(&claims, change));
    let rows = [
        ("95: another subject", with(&|c| c["sub"] = json!("repo:acme/files:fork"))),
        ("95: a beginning of it", with(&|c| c["sub"] = json!("repo:acme/files:mai"))),
        ("another owner", with(&|c| c["owner_id"] = json!("4712"))),
        ("an owner that is a number", with(&|c| c["owner_id"] = json!(4711))),
        ("96: no id", with(&|c| c["jti"] = json!(null))),
        ("for somebody else", with(&|c| c["aud"] = json!("https://other.example"))),
        ("for somebody else too", with(&|c| c["aud"] = json!([ISSUER, "https://other.example"]))),
        ("for nobody", with(&|c| c["aud"] = json!([]))),
        ("for a week", with(&|c| c["exp"] = json!(now() + 7 * 86_400))),
        ("expired", with(&|c| c["exp"] = json!(now() - 61))),
        ("of another issuer", with(&|c| c["iss"] = json!("https://ci.example/"))),
        ("of another key", stranger.sign("JWT", &claims)),
        ("a proof", platform.sign("dpop+jwt", &claims)),
    ];
    let bring = async |assertion: &str, more: &[(&str, &str)]| {
        let form = [&[("grant_type", JWT_BEARER), ("assertion", assertion)], more].concat();
        post(&issuer, "token", None, &form).await
    };
    for (what, assertion) in &rows {
        assert_eq!(bring(assertion, &[]).await.error(), "invalid_grant", "{what}");
    }
    let good = with(&|c| c["aud"] = json!(format!("{ISSUER}/token")));
    assert_eq!(bring(&good, &[("scope", "files:write")]).await.error(), "invalid_scope");
    let got = bring(&good, &[("resource", RESOURCE)]).await;
    assert_eq!(got.status, StatusCode::OK, "{got:?}");
    let who = enter(&issuer, "/mcp", Some(&text(&got.json(), "access_token"))).await.unwrap();
    assert_eq!((who.subject(), who.issuer()), ("repo:acme/files:main", Some("https://ci.example")));
    assert!(who.has_scope("files:read") && got.json().get("refresh_token").is_none());
    assert_eq!(bring(&good, &[]).await.error(), "invalid_grant", "used again");
}

#[test]
fn workloads_and_providers_that_let_everybody_in_or_have_no_safe_keys_do_not_start() {
    let rows = [
        (Issuer::new(ISSUER).only_machines().workload(Workload::new("https://ci.example")), "needs a subject"),
        (Issuer::new(ISSUER).only_machines().workload(Workload::new("http://ci.example").subject("a")), "https"),
        (Issuer::new(ISSUER).only_machines().enterprise("http://idp.example"), "https"),
    ];
    for (issuer, says) in rows {
        let error = issuer.check().unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[tokio::test]
async fn tokens_of_a_client_that_is_removed_end_at_once_and_those_of_its_successor_are_good() {
    let (idp, _) = Signer::generate(Alg::Es256);
    let store = Store::memory();
    let admin = Admin::new(&store);
    let issuer = Issuer::new(ISSUER)
        .only_machines()
        .store(store)
        .scope("files:read", "read")
        .enterprise(IdentityProvider::new(IDP).keys(JwkSet::from_iter([idp.jwk()])))
        .client(Client::new("asks").secret("s3cret").client_credentials(["files:read"]));
    let nightly = |secret: &str| Client::new("nightly").secret(secret).client_credentials(["files:read"]);
    let token = async |client: &str, secret: &str| {
        let got = post(&issuer, "token", Some((client, secret)), &[("grant_type", "client_credentials")]).await;
        assert_eq!(got.status, StatusCode::OK, "{got:?}");
        text(&got.json(), "access_token")
    };
    let is_good = async |token: &str| {
        let said = post(&issuer, "introspect", Some(("asks", "s3cret")), &[("token", token)]).await.json();
        let admitted = enter(&issuer, "/mcp", Some(token)).await.is_ok();
        assert_eq!(said["active"], admitted);
        admitted
    };
    admin.add_client(&nightly("one")).await.unwrap();
    let first = token("nightly", "one").await;
    admin.add_client(&nightly("two")).await.unwrap();
    assert!(is_good(&first).await, "its secret was changed, no more");
    let second = token("nightly", "two").await;
    let jag = idp.sign("oauth-id-jag+jwt", &changed(&Enterprise::claims(), &|c| c["client_id"] = json!("nightly")));
    let got =
        post(&issuer, "token", Some(("nightly", "two")), &[("grant_type", JWT_BEARER), ("assertion", &jag)]).await;
    let for_a_person = text(&got.json(), "access_token");
    let revoked = token("nightly", "two").await;
    post(&issuer, "revoke", Some(("nightly", "two")), &[("token", &revoked)]).await;
    assert!(!is_good(&revoked).await && is_good(&second).await && is_good(&for_a_person).await, "one is revoked alone");
    let others = token("asks", "s3cret").await;
    assert!(admin.remove_client("nightly").await.unwrap());
    // A node learns of it from the topic.
    for token in [&first, &second, &for_a_person] {
        for _ in 0..100 {
            if enter(&issuer, "/mcp", Some(token)).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(!is_good(token).await);
    }
    admin.add_client(&nightly("three")).await.unwrap();
    assert!(is_good(&token("nightly", "three").await).await && is_good(&others).await);
    assert!(!is_good(&first).await, "a client of the same name revives nothing");
}

/// An issuer for devices, its terminal, its time.
fn for_devices() -> (Issuer, Arc<Mutex<String>>, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::default());
    let store = Store::builder().clock(clock.clone()).memory();
    let (issuer, terminal) = once();
    (issuer.device(true).store(store).clock(clock.clone()), terminal, clock)
}

async fn begin(issuer: &Issuer) -> Value {
    let form = [("client_id", "desktop"), ("scope", "files:read"), ("resource", RESOURCE)];
    let got = post(issuer, "device_authorization", None, &form).await;
    assert_eq!(got.status, StatusCode::OK, "{got:?}");
    got.json()
}

async fn poll(issuer: &Issuer, client: &str, code: &str) -> Got {
    post(issuer, "token", None, &[("grant_type", DEVICE), ("client_id", client), ("device_code", code)]).await
}

/// Types a code in, and returns the question.
async fn type_in(browser: &mut Browser<'_>, code: &str) -> Got {
    let page = browser.get(&format!("{ISSUER}/device")).await;
    assert!(page.body.contains("Connect a device"), "{}", page.body);
    let going = browser.post(&format!("{ISSUER}/device"), &[("code", code)]).await;
    match going.next() {
        Some(next) => browser.follow(&next).await,
        None => going,
    }
}

#[tokio::test]
async fn a_device_gets_its_tokens_when_a_person_has_said_yes_and_only_once() {
    let (issuer, terminal, clock) = for_devices();
    let metadata = metadata(&issuer).await;
    assert_eq!(metadata["device_authorization_endpoint"], format!("{ISSUER}/device_authorization"));
    assert!(metadata["grant_types_supported"].as_array().unwrap().contains(&json!(DEVICE)));
    let begun = begin(&issuer).await;
    assert_eq!((&begun["expires_in"], &begun["interval"]), (&json!(600), &json!(5)));
    assert_eq!(begun["verification_uri"], format!("{ISSUER}/device"));
    let device_code = text(&begun, "device_code");
    let got = poll(&issuer, "desktop", &device_code).await;
    assert_eq!((got.status, got.error().as_str()), (StatusCode::BAD_REQUEST, "authorization_pending"));
    let got = poll(&issuer, "desktop", &device_code).await;
    assert_eq!((got.status, got.error().as_str()), (StatusCode::BAD_REQUEST, "slow_down"), "105: too fast");
    clock.advance(Duration::from_secs(5));
    assert_eq!(poll(&issuer, "desktop", &device_code).await.error(), "authorization_pending");
    let mut browser = Browser::new(&issuer);
    let question = type_in(&mut browser, &text(&begun, "user_code").to_lowercase()).await;
    for shown in ["Acme Desktop", "read your files", "192.0.2.2", "the device that shows this code"] {
        assert!(question.body.contains(shown), "{shown} is not on {}", question.body);
    }
    let done = browser.answer(&question, "allow", &code_in(&terminal)).await;
    let last = browser.follow(&done.next().unwrap()).await;
    assert!(last.body.contains("You can continue on your device"), "{}", last.body);
    assert_eq!(poll(&issuer, "other", &device_code).await.error(), "invalid_client");
    let got = poll(&issuer, "desktop", &device_code).await;
    assert_eq!(got.status, StatusCode::OK, "{got:?}");
    let tokens = got.json();
    let access = text(&tokens, "access_token");
    assert_eq!(enter(&issuer, "/mcp", Some(&access)).await.unwrap().subject(), "owner");
    let next = refresh(&issuer, "desktop", &text(&tokens, "refresh_token"), &[]).await;
    assert_eq!(next.status, StatusCode::OK);
    // A second use is somebody else's: what the first gave ends.
    assert_eq!(poll(&issuer, "desktop", &device_code).await.error(), "invalid_grant");
    assert!(enter(&issuer, "/mcp", Some(&access)).await.is_err());
    // The person's code is used up too.
    let again = type_in(&mut browser, &text(&begun, "user_code")).await;
    assert_eq!(again.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_device_is_told_no_and_late() {
    let (issuer, terminal, clock) = for_devices();
    let begun = begin(&issuer).await;
    let mut browser = Browser::new(&issuer);
    let question = type_in(&mut browser, &text(&begun, "user_code")).await;
    let done = browser.answer(&question, "deny", "").await;
    let last = browser.follow(&done.next().unwrap()).await;
    assert!(last.body.contains("has been notified"), "{}", last.body);
    assert_eq!(poll(&issuer, "desktop", &text(&begun, "device_code")).await.error(), "access_denied");
    // Row 104: the question was open for too long.
    let begun = begin(&issuer).await;
    let question = type_in(&mut browser, &text(&begun, "user_code")).await;
    let code = code_in(&terminal);
    clock.advance(Duration::from_secs(599));
    // The login itself is younger than the device's code.
    let late = type_in(&mut browser, &text(&begun, "user_code")).await;
    clock.advance(Duration::from_secs(2));
    assert_eq!(poll(&issuer, "desktop", &text(&begun, "device_code")).await.error(), "expired_token");
    assert_eq!(browser.answer(&question, "allow", &code).await.status, StatusCode::BAD_REQUEST);
    let done = browser.answer(&late, "allow", &code_in(&terminal)).await;
    let last = browser.follow(&done.next().unwrap()).await;
    assert!(last.body.contains("has ended"), "{}", last.body);
    assert_eq!(poll(&issuer, "desktop", &text(&begun, "device_code")).await.error(), "expired_token");
}

#[tokio::test]
async fn row_103_guesses_of_codes_are_ended_after_ten() {
    let (issuer, _, _) = for_devices();
    let begun = begin(&issuer).await;
    let mut browser = Browser::new(&issuer);
    for _ in 0..10 {
        assert_eq!(type_in(&mut browser, "BBBB-BBBB").await.status, StatusCode::FORBIDDEN);
    }
    for guess in ["BBBB-BBBB", &text(&begun, "user_code")] {
        let got = type_in(&mut browser, guess).await;
        assert_eq!(got.status, StatusCode::TOO_MANY_REQUESTS, "past the limit the right one is none");
    }
    // A device's code is not guessed either, nor used by another client.
    let code = text(&begun, "device_code");
    let guess = format!("{}{}", &code[..code.len() - 1], if code.ends_with('A') { 'B' } else { 'A' });
    for guess in [guess.as_str(), "", "x.y", &code[..22]] {
        let got = poll(&issuer, "desktop", guess).await;
        assert!(["invalid_grant", "invalid_request"].contains(&got.error().as_str()), "{got:?}");
    }
    let (without, _) = once();
    assert_eq!(poll(&without, "desktop", &code).await.error(), "unsupported_grant_type", "off by default");
    assert_eq!(Browser::new(&without).get(&format!("{ISSUER}/device")).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_page_of_another_site_cannot_type_in_a_code() {
    let (issuer, _, _) = for_devices();
    let begun = begin(&issuer).await;
    let mut browser = Browser::new(&issuer);
    browser.origin = Some("https://evil.example".to_owned());
    let got = browser.post(&format!("{ISSUER}/device"), &[("code", &text(&begun, "user_code"))]).await;
    assert_eq!((got.status, got.next()), (StatusCode::FORBIDDEN, None));
}
