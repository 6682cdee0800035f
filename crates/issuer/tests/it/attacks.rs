//! The rows of the table of attacks and mistakes (54 to 108) that end at the issuer, as tables named by row.

use crate::flow::{code_for, code_in, light, once, tokens_for};
use crate::support::{Browser, ISSUER, Login, REDIRECT, RESOURCE, answer_of, enter, post, post_json, refresh, text};
use http::StatusCode;
use linchpin_issuer::{Client, Issuer, Upstream, Users};
use linchpin_oauth::{Alg, Signer};
use linchpin_store::{ManualClock, Store};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Rows 54 to 58: until client and redirect URI are good, an error is a page and never a redirect.
#[tokio::test]
async fn rows_54_to_58_redirects_to_unregistered_addresses_are_pages() {
    let (issuer, _) = once();
    let rows = [
        (54, "https://evil.example/cb"),
        (55, "http://127.0.0.1:7777/cb/more"),
        (56, "http://127.0.0.1.evil/cb"),
        (57, "javascript:alert(1)"),
        (58, "http://user@127.0.0.1:7777/cb"),
        (58, "http://127.0.0.1:7777/cb#fragment"),
    ];
    for (row, uri) in rows {
        let login = Login::new("desktop").set("redirect_uri", Some(uri));
        let got = Browser::new(&issuer).get(&login.url(&issuer)).await;
        assert_eq!((got.status, got.next()), (StatusCode::BAD_REQUEST, None), "row {row}: {uri}");
    }
    let unknown = Browser::new(&issuer).get(&Login::new("nobody").url(&issuer)).await;
    assert_eq!((unknown.status, unknown.next()), (StatusCode::BAD_REQUEST, None));
}

/// Row 59: nothing internal is contacted for a client id.
#[tokio::test]
async fn row_59_client_ids_at_internal_addresses_are_pages() {
    let (issuer, _) = once();
    for id in [
        "https://169.254.169.254/latest",
        "https://10.0.0.1/client.json",
        "https://127.0.0.1/client.json",
        "https://[::1]/client.json",
        "https://localhost/client.json",
        "http://example.com/client.json",
        "https://example.com/a/../client.json",
    ] {
        let got = Browser::new(&issuer).get(&Login::new(id).url(&issuer)).await;
        assert_eq!((got.status, got.next()), (StatusCode::BAD_REQUEST, None), "{id}");
        assert!(got.body.contains("cannot be verified"), "{id}: {}", got.body);
    }
}

/// Rows 62 to 64: answers from elsewhere, and twice. (61, frames, holds for every page: `check_page`.)
#[tokio::test]
async fn rows_62_to_64_only_the_browser_that_asked_answers_and_only_once() {
    let (issuer, terminal) = once();
    let mut browser = Browser::new(&issuer);
    let page = browser.follow(&Login::new("desktop").url(&issuer)).await;
    let code = code_in(&terminal);
    let mut other = Browser::new(&issuer);
    other.follow(&Login::new("desktop").url(&issuer)).await;
    assert_eq!(other.answer(&page, "allow", &code).await.status, StatusCode::FORBIDDEN, "row 63: another browser");
    let name = page.hidden("t");
    assert_eq!(other.get(&format!("{ISSUER}/consent?t={name}")).await.status, StatusCode::FORBIDDEN);
    let origin = browser.origin.replace("https://evil.example".to_owned());
    assert_eq!(browser.answer(&page, "allow", &code).await.status, StatusCode::FORBIDDEN, "row 62: another origin");
    browser.origin = origin;
    // Loaded twice, it works twice.
    let (again, forged) = (browser.get(&format!("{ISSUER}/consent?t={name}")).await, ("t", name.as_str()));
    let without = browser.post(&format!("{ISSUER}/consent"), &[forged, ("answer", "allow"), ("code", &code)]).await;
    assert_eq!(without.status, StatusCode::FORBIDDEN, "no anti-forgery value");
    assert_eq!(browser.answer(&again, "allow", &code).await.status, StatusCode::OK);
    let twice = browser.answer(&page, "allow", &code).await;
    assert_eq!((twice.status, twice.next()), (StatusCode::CONFLICT, None), "row 64: answered twice");
}

#[tokio::test]
async fn five_wrong_codes_end_a_login() {
    let (issuer, terminal) = once();
    let mut browser = Browser::new(&issuer);
    let mut page = browser.follow(&Login::new("desktop").url(&issuer)).await;
    let code = code_in(&terminal);
    for _ in 0..4 {
        page = browser.answer(&page, "allow", "AAAA-AAAA").await;
        assert_eq!((page.status, page.next()), (StatusCode::FORBIDDEN, None));
    }
    let last = browser.answer(&page, "allow", "AAAA-AAAA").await;
    assert_eq!(last.status, StatusCode::BAD_REQUEST);
    assert_eq!(browser.answer(&page, "allow", &code).await.status, StatusCode::BAD_REQUEST, "it is over");
}

/// Row 67: the page shows our name and URL; it also says no to the client when the user does.
#[tokio::test]
async fn row_67_every_page_names_this_server_and_a_no_is_told() {
    let (issuer, _) = once();
    let mut browser = Browser::new(&issuer);
    let page = browser.follow(&Login::new("desktop").url(&issuer)).await;
    assert!(page.body.contains("sign-in of Files at") && page.body.contains(ISSUER));
    let answer = answer_of(&browser.answer(&page, "deny", "").await);
    assert_eq!((answer["error"].as_str(), answer["iss"].as_str(), answer.get("code")), ("access_denied", ISSUER, None));
}

/// Rows 72, 73, 84 and 85, and other mistakes of the request: the client is told, with `state` and `iss`.
#[tokio::test]
async fn rows_72_73_84_85_mistakes_of_a_request_go_to_the_client() {
    let (issuer, _) = once();
    let rows = [
        (72, "code_challenge", None, "invalid_request"),
        (73, "code_challenge_method", Some("plain"), "invalid_request"),
        (73, "code_challenge_method", None, "invalid_request"),
        (73, "code_challenge", Some("short"), "invalid_request"),
        (84, "resource", Some("https://sister.example/mcp"), "invalid_target"),
        (84, "resource", Some("https://mcp.example/mcp/x"), "invalid_target"),
        (0, "response_type", Some("token"), "unsupported_response_type"),
        (0, "response_mode", Some("fragment"), "invalid_request"),
        (0, "prompt", Some("none"), "interaction_required"),
        (0, "request", Some("x.y.z"), "request_not_supported"),
        (0, "scope", Some("admin"), "invalid_scope"),
    ];
    for (row, name, value, error) in rows {
        let got = Browser::new(&issuer).get(&Login::new("desktop").set(name, value).url(&issuer)).await;
        let answer = answer_of(&got);
        assert_eq!(answer["error"], error, "row {row}: {name}={value:?}");
        assert_eq!((answer["state"].as_str(), answer["iss"].as_str()), ("s t&1", ISSUER), "row {row}");
    }
    let one = Login::new("desktop").set("resource", None);
    assert_eq!(Browser::new(&issuer).follow(&one.url(&issuer)).await.status, StatusCode::OK, "85: the only one");
    let two = issuer.resource(RESOURCE).resource("https://other.example/mcp");
    let got = Browser::new(&two).get(&one.url(&two)).await;
    assert_eq!(answer_of(&got)["error"], "invalid_target", "85: none of two");
}

/// Rows 74, 75, 77 and 78: a code that somebody else redeems, or for something else, is spent.
#[tokio::test]
async fn rows_74_to_78_a_code_is_bound_to_client_verifier_address_and_resource() {
    let (issuer, terminal) = once();
    let issuer = issuer.client(Client::new("other").redirect_uri(REDIRECT));
    let rows = [
        (74, ("code_verifier", "wrong-wrong-wrong-wrong-wrong-wrong-wrong-wrong")),
        (74, ("code_verifier", "")),
        (77, ("client_id", "other")),
        (78, ("redirect_uri", "http://127.0.0.1:7777/other")),
        (78, ("resource", "https://sister.example/mcp")),
    ];
    for (row, other) in rows {
        let login = Login::new("desktop");
        let code = code_for(&issuer, &terminal, &login).await;
        assert_eq!(login.redeem_with(&issuer, &code, &[other]).await.error(), "invalid_grant", "row {row}: {other:?}");
        assert_eq!(login.redeem(&issuer, &code).await.error(), "invalid_grant", "row {row}: the code is spent");
    }
    let login = Login::new("desktop");
    assert_eq!(login.redeem(&issuer, &"x".repeat(43)).await.error(), "invalid_grant");
}

/// Row 76.
#[tokio::test]
async fn row_76_a_code_used_twice_ends_what_it_gave() {
    let (issuer, terminal) = once();
    let login = Login::new("desktop");
    let code = code_for(&issuer, &terminal, &login).await;
    let tokens = login.redeem(&issuer, &code).await.json();
    let access = text(&tokens, "access_token");
    assert!(enter(&issuer, "/mcp", Some(&access)).await.is_ok());
    assert_eq!(login.redeem(&issuer, &code).await.error(), "invalid_grant");
    assert!(enter(&issuer, "/mcp", Some(&access)).await.is_err());
    assert_eq!(refresh(&issuer, "desktop", &text(&tokens, "refresh_token"), &[]).await.error(), "invalid_grant");
    // In parallel: one use at most, and if two were seen, nothing stays.
    let code = code_for(&issuer, &terminal, &login).await;
    let (one, two) = tokio::join!(login.redeem(&issuer, &code), login.redeem(&issuer, &code));
    let good: Vec<_> = [one, two].into_iter().filter(|got| got.status == StatusCode::OK).collect();
    assert!(good.len() <= 1);
    for got in good {
        assert!(enter(&issuer, "/mcp", Some(&text(&got.json(), "access_token"))).await.is_err());
    }
}

fn with_clock() -> (Issuer, Arc<std::sync::Mutex<String>>, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::default());
    let (issuer, terminal) = once();
    let store = Store::builder().clock(clock.clone()).memory();
    let issuer = issuer.store(store).clock(clock.clone()).client(Client::new("other").redirect_uri(REDIRECT));
    (issuer, terminal, clock)
}

/// Rows 79, 80, 82 and 86.
#[tokio::test]
async fn rows_79_to_86_refresh_tokens_rotate_and_reuse_ends_the_family() {
    let (issuer, terminal, clock) = with_clock();
    let tokens = tokens_for(&issuer, &terminal, &Login::new("desktop")).await;
    let first = text(&tokens, "refresh_token");
    assert_eq!(refresh(&issuer, "other", &first, &[]).await.error(), "invalid_grant", "80: another client");
    let wide = refresh(&issuer, "desktop", &first, &[("scope", "files:read files:write")]).await;
    assert_eq!(wide.error(), "invalid_scope", "86");
    let target = refresh(&issuer, "desktop", &first, &[("resource", "https://sister.example/mcp")]).await;
    assert_eq!(target.error(), "invalid_target");
    // 82: in parallel, one rotation and the same answer; and again within 30 s.
    let (one, two) = tokio::join!(refresh(&issuer, "desktop", &first, &[]), refresh(&issuer, "desktop", &first, &[]));
    assert_eq!(one.json(), two.json());
    clock.advance(Duration::from_secs(29));
    assert_eq!(refresh(&issuer, "desktop", &first, &[]).await.json(), one.json());
    let (second, access) = (text(&one.json(), "refresh_token"), text(&one.json(), "access_token"));
    assert!(enter(&issuer, "/mcp", Some(&access)).await.is_ok());
    clock.advance(Duration::from_secs(2));
    assert_eq!(refresh(&issuer, "desktop", &first, &[]).await.error(), "invalid_grant", "79: after 31 s");
    assert_eq!(refresh(&issuer, "desktop", &second, &[]).await.error(), "invalid_grant", "79: the family ended");
    assert!(enter(&issuer, "/mcp", Some(&access)).await.is_err());
    // Once the successor was used, the one before is no longer good, even at once.
    let tokens = tokens_for(&issuer, &terminal, &Login::new("desktop")).await;
    let first = text(&tokens, "refresh_token");
    let second = text(&refresh(&issuer, "desktop", &first, &[]).await.json(), "refresh_token");
    let third = text(&refresh(&issuer, "desktop", &second, &[]).await.json(), "refresh_token");
    assert_eq!(refresh(&issuer, "desktop", &first, &[]).await.error(), "invalid_grant");
    assert_eq!(refresh(&issuer, "desktop", &third, &[]).await.error(), "invalid_grant");
}

/// Row 108: what expired stays so. The issuer's clock never goes back by itself; here it stands for the store's.
#[tokio::test]
async fn codes_and_tokens_expire() {
    let (issuer, terminal, clock) = with_clock();
    let login = Login::new("desktop");
    let code = code_for(&issuer, &terminal, &login).await;
    clock.advance(Duration::from_secs(61));
    assert_eq!(login.redeem(&issuer, &code).await.error(), "invalid_grant");
    let tokens = tokens_for(&issuer, &terminal, &login).await;
    assert_eq!(tokens["expires_in"], 900);
    clock.advance(Duration::from_secs(901));
    assert!(enter(&issuer, "/mcp", Some(&text(&tokens, "access_token"))).await.is_ok());
    clock.advance(Duration::from_secs(1));
    let refusal = enter(&issuer, "/mcp", Some(&text(&tokens, "access_token"))).await.unwrap_err();
    assert_eq!(refusal.message(), "the token has expired");
    clock.advance(Duration::from_secs(30 * 86_400));
    assert_eq!(refresh(&issuer, "desktop", &text(&tokens, "refresh_token"), &[]).await.error(), "invalid_grant");
}

/// Rows 88 and 89.
#[tokio::test]
async fn rows_88_89_assertions_of_clients_are_for_this_server_short_and_signed_with_their_key() {
    let (issuer, _) = once();
    let ((signer, _), (stranger, _)) = (Signer::generate(Alg::Es256), Signer::generate(Alg::EdDsa));
    let keys = json!({ "keys": [signer.jwk().to_value()] });
    let issuer = issuer.client(Client::new("robot").keys(keys).client_credentials(["files:read"]));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let claims = |change: &dyn Fn(&mut Value)| {
        let mut claims =
            json!({ "iss": "robot", "sub": "robot", "aud": ISSUER, "iat": now, "exp": now + 200, "jti": "1" });
        change(&mut claims);
        claims
    };
    let rows = [
        ("88: for another server", signer.sign("JWT", &claims(&|c| c["aud"] = json!("https://other.example")))),
        ("88: for two", signer.sign("JWT", &claims(&|c| c["aud"] = json!([ISSUER, "https://other.example"])))),
        ("of another client", signer.sign("JWT", &claims(&|c| c["iss"] = json!("nightly")))),
        ("without an id", signer.sign("JWT", &claims(&|c| c["jti"] = json!("")))),
        ("for an hour", signer.sign("JWT", &claims(&|c| c["exp"] = json!(now + 3600)))),
        ("expired", signer.sign("JWT", &claims(&|c| c["exp"] = json!(now - 120)))),
        ("89: another key", stranger.sign("JWT", &claims(&|_| {}))),
    ];
    let kind = ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
    let grant = ("grant_type", "client_credentials");
    for (what, assertion) in &rows {
        let got = post(&issuer, "token", None, &[grant, kind, ("client_assertion", assertion)]).await;
        assert_eq!(got.error(), "invalid_client", "{what}");
    }
    let good = signer.sign("JWT", &claims(&|_| {}));
    let got = post(&issuer, "token", None, &[grant, kind, ("client_assertion", &good)]).await;
    assert_eq!(got.status, StatusCode::OK, "{got:?}");
}

/// Rows 101 and 102: guesses are slowed down, also with the right password, and names cannot be told apart.
#[tokio::test]
async fn rows_101_102_guesses_are_slowed_down_without_telling_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("users.toml");
    let hash = light("pw");
    let names = ["ada", "bob"].into_iter().map(str::to_owned).chain((0..20).map(|n| format!("user-{n}")));
    let users: String = names.map(|name| format!("[{name}]\npassword = \"{hash}\"\n")).collect();
    std::fs::write(&path, users).unwrap();
    let clock = Arc::new(ManualClock::default());
    let store = Store::builder().clock(clock.clone()).memory();
    let issuer = Issuer::new(ISSUER)
        .users(Users::file(&path).unwrap())
        .client(Client::new("desktop").redirect_uri(REDIRECT))
        .store(store)
        .clock(clock.clone());
    let mut browser = Browser::new(&issuer);
    let page = browser.follow(&Login::new("desktop").url(&issuer)).await;
    let (t, f) = (page.hidden("t"), page.hidden("f"));
    let error = |body: &str| body.split_once("role=\"alert\">").unwrap().1.split_once('<').unwrap().0.to_owned();
    let mut texts = Vec::new();
    for (name, password) in [("ada", "1"), ("ada", "2"), ("ada", "3"), ("ada", "4"), ("ada", "5"), ("ada", "pw")] {
        let form = [("t", t.as_str()), ("f", f.as_str()), ("name", name), ("password", password)];
        let got = browser.post(&format!("{ISSUER}/login"), &form).await;
        assert_eq!(got.status, StatusCode::FORBIDDEN, "{name} {password}: too many guesses");
        texts.push(error(&got.body));
    }
    let nobody = browser.sign_in(&page, "nobody", "pw").await;
    texts.push(error(&nobody.body));
    assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
    // Others are not locked out, and the delay ends.
    clock.advance(Duration::from_secs(2));
    assert_eq!(browser.sign_in(&page, "ada", "pw").await.status, StatusCode::OK);
    // 101: at one a second, few of many guesses are compared; the right one is none of them.
    let from = |last: u8| SocketAddr::from(([203, 0, 113, last], 1));
    browser.from = from(1);
    let page = browser.follow(&Login::new("desktop").url(&issuer)).await;
    for _ in 0..100 {
        clock.advance(Duration::from_secs(1));
        assert_ne!(browser.sign_in(&page, "ada", "guess").await.status, StatusCode::OK);
    }
    assert_ne!(browser.sign_in(&page, "ada", "pw").await.status, StatusCode::OK);
    clock.advance(Duration::from_secs(900));
    let page = browser.follow(&Login::new("desktop").url(&issuer)).await;
    assert_eq!(browser.sign_in(&page, "ada", "pw").await.status, StatusCode::OK);
    // 102: one guess for each of many names, from one address.
    browser.from = from(2);
    let page = browser.follow(&Login::new("desktop").url(&issuer)).await;
    for n in 0..20 {
        let got = browser.sign_in(&page, &format!("user-{n}"), "guess").await;
        assert_eq!(error(&got.body), texts[0]);
    }
    let put_off = browser.sign_in(&page, "bob", "pw").await;
    assert_eq!((put_off.status, error(&put_off.body)), (StatusCode::FORBIDDEN, texts[0].clone()));
    let mut other = Browser::new(&issuer);
    other.from = from(3);
    let page = other.follow(&Login::new("desktop").url(&issuer)).await;
    assert_eq!(other.sign_in(&page, "bob", "pw").await.status, StatusCode::OK, "from elsewhere");
}

#[tokio::test]
async fn row_106_of_20_000_registrations_and_logins_10_000_are_kept_and_known_clients_go_on() {
    let (issuer, terminal) = once();
    let issuer = issuer.store(Store::builder().clock(Arc::new(ManualClock::default())).memory());
    let from = |n: u32| SocketAddr::from((Ipv4Addr::from(0xC612_0000 + n), 1));
    let request = json!({ "redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none" });
    let mut created = 0;
    for n in 0..20_000 {
        let got = post_json(&issuer, "register", &request, from(n / 10)).await;
        created += usize::from(got.status == StatusCode::CREATED);
        if n >= 10_000 {
            assert_eq!(got.status, StatusCode::SERVICE_UNAVAILABLE, "{n}");
        }
    }
    assert_eq!(created, 10_000);
    let code = code_for(&issuer, &terminal, &Login::new("desktop")).await;
    assert!(!code.is_empty());
    let mut browser = Browser::new(&issuer);
    let mut shown = 0;
    for n in 0..10_100 {
        browser.from = from(100_000 + n / 50);
        browser.cookies.clear();
        let got = browser.get(&Login::new("desktop").url(&issuer)).await;
        shown += usize::from(got.next().is_some_and(|next| next.starts_with(ISSUER)));
    }
    assert_eq!(shown, 9_999, "and the one of before");
}

/// Row 106, and the other bounds on what strangers send.
#[tokio::test]
async fn row_106_registrations_and_requests_are_counted() {
    let (issuer, terminal) = once();
    let from = SocketAddr::from(([198, 51, 100, 7], 1));
    let request = json!({ "redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none" });
    for _ in 0..10 {
        assert_eq!(post_json(&issuer, "register", &request, from).await.status, StatusCode::CREATED);
    }
    let over = post_json(&issuer, "register", &request, from).await;
    assert_eq!(over.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(over.headers.contains_key("retry-after"));
    let elsewhere = SocketAddr::from(([198, 51, 100, 8], 1));
    for bad in [
        json!({ "redirect_uris": ["javascript:alert(1)"] }),
        json!({ "redirect_uris": ["http://evil.example/cb"] }),
        json!({ "redirect_uris": ["http://127.0.0.1/cb"], "application_type": "web" }),
        json!({ "redirect_uris": [] }),
        json!({}),
    ] {
        let got = post_json(&issuer, "register", &bad, elsewhere).await;
        assert_eq!(got.status, StatusCode::BAD_REQUEST, "{bad}");
    }
    // Known clients are unaffected.
    tokens_for(&issuer, &terminal, &Login::new("desktop")).await;
    let mut browser = Browser::new(&issuer);
    browser.from = from;
    let mut last = StatusCode::OK;
    for _ in 0..61 {
        last = browser.get(&Login::new("desktop").url(&issuer)).await.status;
    }
    assert_eq!(last, StatusCode::TOO_MANY_REQUESTS);
}

/// Row 107: what is in the store is no use to somebody who copied it.
#[tokio::test]
async fn row_107_a_copied_store_has_no_usable_token_code_or_secret() {
    let store = Store::memory();
    let (issuer, terminal) = once();
    let issuer = issuer.store(store.clone());
    let login = Login::new("desktop");
    let code = code_for(&issuer, &terminal, &login).await;
    let tokens = login.redeem(&issuer, &code).await.json();
    let request = json!({ "redirect_uris": [REDIRECT] });
    let from = SocketAddr::from(([198, 51, 100, 7], 1));
    let client = post_json(&issuer, "register", &request, from).await.json();
    let canaries = [
        code,
        text(&tokens, "access_token"),
        text(&tokens, "refresh_token"),
        text(&client, "client_secret"),
        login.pkce.verifier.expose().to_owned(),
        "files:read".to_owned(),
        "private".to_owned(),
    ];
    let mut records = 0;
    for space in ["client/", "transaction/", "login/", "code/", "family/", "revoked/", "replay/", "key/"] {
        for (key, record) in store.kv().scan(space, None, 1000).await.unwrap() {
            records += 1;
            let value = String::from_utf8_lossy(&record.value).into_owned();
            for canary in &canaries {
                assert!(!key.contains(canary.as_str()) && !value.contains(canary.as_str()), "{key}");
            }
        }
    }
    assert!(records >= 4, "clients, codes, families and keys are there: {records}");
}

/// Row 109, as far as it is the issuer's: what is not configured does not start, and says what to do.
#[test]
fn row_109_what_lets_everybody_in_by_mistake_does_not_start() {
    let github = || Upstream::github("id", "secret");
    let rows: [(Issuer, &str); 7] = [
        (Issuer::new(ISSUER), "users("),
        (Issuer::new(ISSUER).upstream(github()), "org:NAME"),
        (Issuer::new(ISSUER).upstream(Upstream::google("id", "s")), "allow"),
        (Issuer::new(ISSUER).upstream(Upstream::entra("common", "id", "s")).allow("@acme.example"), "tenant:ID"),
        (Issuer::new(ISSUER).upstream(github()).allow("everybody"), "org:NAME"),
        (Issuer::new("http://mcp.example").upstream(github()).allow("org:acme"), "https"),
        (Issuer::new("https://mcp.example/#x").upstream(github()).allow("org:acme"), "fragment"),
    ];
    for (issuer, hint) in rows {
        let error = issuer.check().unwrap_err().to_string();
        assert!(error.contains(hint) && !error.contains('\n'), "{error}");
    }
    let fine = [
        Issuer::new(ISSUER).upstream(github()).allow("org:acme"),
        Issuer::new(ISSUER).upstream(github()).allow_anyone(),
        Issuer::new(ISSUER).upstream(Upstream::entra("8eaef023", "id", "s")),
        Issuer::new("http://127.0.0.1:8931").users(Users::once()),
        Issuer::new("https://mcp.example/auth").users(Users::once()),
    ];
    for issuer in fine {
        issuer.check().unwrap();
    }
}

/// Rows 12 to 24 as far as they are this gate's: forged and foreign tokens.
#[tokio::test]
async fn forged_and_foreign_tokens_do_not_come_in() {
    let (issuer, terminal) = once();
    let tokens = tokens_for(&issuer, &terminal, &Login::new("desktop")).await;
    let good = text(&tokens, "access_token");
    let (stranger, _) = Signer::generate(Alg::Es256);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let claims = json!({ "iss": ISSUER, "aud": RESOURCE, "sub": format!("{ISSUER}#owner"), "client_id": "desktop",
        "scope": "files:read", "iat": now, "exp": now + 900, "jti": "1" });
    let kid = linchpin_oauth::Jws::read(&good).unwrap().kid().unwrap().to_owned();
    let changed = |at: usize| {
        let mut parts: Vec<String> = good.split('.').map(str::to_owned).collect();
        let swap = if parts[at].starts_with('A') { "B" } else { "A" };
        parts[at].replace_range(..1, swap);
        parts.join(".")
    };
    let rows = [
        ("another key", stranger.sign("at+jwt", &claims)),
        ("another key under our name", stranger.clone().kid(kid).sign("at+jwt", &claims)),
        ("no signature", format!("{}.", good.rsplit_once('.').unwrap().0)),
        ("changed claims", changed(1)),
        ("changed signature", changed(2)),
        ("a refresh token", text(&tokens, "refresh_token")),
    ];
    let nothing = enter(&issuer, "/mcp", Some("")).await.unwrap_err();
    assert_eq!(nothing.status(), StatusCode::BAD_REQUEST, "it is malformed");
    for (what, token) in rows {
        let refusal = enter(&issuer, "/mcp", Some(&token)).await.err().unwrap_or_else(|| panic!("{what} came in"));
        assert_eq!(refusal.status(), StatusCode::UNAUTHORIZED, "{what}");
    }
    let two = once().0.resource(RESOURCE).resource("https://mcp.example/other");
    assert!(enter(&two, "/other", Some(&good)).await.is_err(), "keys of another store");
}
