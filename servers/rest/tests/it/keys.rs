//! Keys and addresses: where requests go, and what is asked for at the start.

use crate::github::{API, SERVICE, suite};
use linchpin::Server;
use linchpin::testing::site::{Do, Site, answer, json};
use linchpin_kit::Secret;
use linchpin_rest::testing::{KEY, call};
use linchpin_rest::{Api, Config, Key, Rest};
use serde_json::json;

#[tokio::test]
async fn a_redirect_within_the_origin_is_followed_with_the_key_and_to_another_port_not() {
    let suite = suite();
    let other = suite.site().await;
    let away = other.url("/user");
    let site = Site::new(move |_, seen| {
        vec![Do::Write(match seen.path() {
            "/repos/o/old/issues/1" => answer(301, "location: /repos/o/new/issues/1\r\n", ""),
            "/repos/o/away/issues/1" => answer(301, &format!("location: {away}\r\n"), ""),
            _ => json(200, "", &json!({ "number": 1 })),
        })]
    })
    .await;
    let connection = suite.connect(suite.config(&site)).await;
    let of = |repo: &str| json!({ "owner": "o", "repo": repo, "issue_number": 1 });
    assert!(!call(&connection, "get_issue", of("old")).await.failed);
    let seen = site.requests();
    assert_eq!(
        seen.iter().map(|s| s.header("authorization").unwrap()).collect::<Vec<_>>(),
        vec![format!("Bearer {KEY}"); 2]
    );
    let told = call(&connection, "get_issue", of("away")).await;
    assert_eq!(told.text, "GitHub redirects to another host, where the key must not go");
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn a_write_that_is_redirected_is_not_sent_again() {
    let suite = suite();
    for (status, kind) in [(307, "conflict"), (308, "conflict"), (302, "upstream"), (303, "upstream")] {
        let site = Site::saying(answer(status, "location: /repos/o/new/issues\r\n", "")).await;
        let connection = suite.connect(suite.config(&site)).await;
        let told = call(&connection, "create_issue", json!({ "owner": "o", "repo": "r", "title": "T" })).await;
        assert_eq!((told.kind.as_str(), site.requests().len()), (kind, 1), "{status}: {}", told.result);
        assert_eq!(told.text.contains("Nothing was changed."), kind == "conflict", "{}", told.text);
    }
}

#[tokio::test]
async fn a_key_in_the_query_is_in_no_error_and_no_result() {
    const OLD: Api = API.key(Key::query(&["OLD_KEY"], "key"));
    let site = Site::new(|n, _| {
        vec![match n {
            0 => Do::Write(json(200, "", &json!({ "login": format!("ann {KEY}") }))),
            1 => Do::Write(json(403, "", &json!({ "message": format!("?key={KEY}") }))),
            // As some languages write JSON: the key is there once it is decoded.
            2 => {
                let escaped = format!("{{\"message\":\"\\u{:04x}{}\"}}", KEY.as_bytes()[0], &KEY[1..]);
                Do::Write(answer(403, "content-type: application/json\r\n", &escaped))
            }
            _ => Do::Reset,
        }]
    })
    .await;
    let config = suite().config(&site);
    let server = Rest::open(&OLD, config).unwrap().add_to(Server::new("t", "0"), &SERVICE).unwrap();
    let client = linchpin::client::Client::new("t", "0");
    let connection = client.connect(linchpin::prelude::in_process(server)).await.unwrap();
    for failed in [false, true, true, true] {
        let told = call(&connection, "get_me", json!({})).await;
        assert_eq!(told.failed, failed, "{}", told.result);
        assert!(!told.result.to_string().contains(KEY), "{}", told.result);
    }
    assert!(site.requests().iter().all(|seen| seen.query() == format!("key={KEY}")));
}

#[tokio::test]
async fn the_key_is_marked_so_that_nobody_shows_it() {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let log = seen.clone();
    let api = move |request: http::Request<bytes::Bytes>| {
        assert!(request.headers()["authorization"].is_sensitive());
        *log.lock().unwrap() = format!("{request:?}");
        http::Response::new(bytes::Bytes::from_static(b"{}"))
    };
    let config = Config::default().with(|config| config.key = Some(Secret::new(KEY)));
    let connection = suite().connect_over(config, api).await;
    assert!(!call(&connection, "get_me", json!({})).await.failed);
    let seen = seen.lock().unwrap().clone();
    assert!(seen.contains("https://api.github.example/user") && !seen.contains(KEY), "{seen}");
}

#[test]
fn what_is_wrong_with_a_configuration_is_said_at_the_start() {
    let open = |change: &dyn Fn(&mut Config)| {
        let mut config = Config::default();
        config.key = Some(Secret::new("k"));
        change(&mut config);
        Rest::open(&API, config).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(open(&|_| {}), Ok(()));
    for (url, ok) in [
        ("https://git.example/api/v3", true),
        ("http://localhost:8080", true),
        ("http://127.0.0.1:8080/api", true),
        ("http://git.example", false),
        ("ftp://git.example", false),
        ("https://me:pass@git.example", false),
        ("https://git.example/?q", false),
        ("git.example", false),
        ("", false),
    ] {
        let opened = open(&|config| config.api_url = Some(url.into()));
        assert_eq!(opened.is_ok(), ok, "{url}: {opened:?}");
        assert!(!format!("{opened:?}").contains("pass"), "{opened:?}");
    }
    let by_hand = |config: &mut Config| {
        config.api_url = Some("http://git.example".into());
        config.allow_http = true;
    };
    assert_eq!(open(&by_hand), Ok(()));
    let missing = open(&|config| config.key = None).unwrap_err();
    assert_eq!(
        missing,
        "GITHUB_PERSONAL_ACCESS_TOKEN or GITHUB_TOKEN environment variable is required\nHint: Create one in the settings. Or \
         name a file with GITHUB_PERSONAL_ACCESS_TOKEN_FILE."
    );
    for key in ["", "a\nb", "schlüssel"] {
        let error = open(&|config| config.key = Some(Secret::new(key))).unwrap_err();
        assert!(error.starts_with("GITHUB_PERSONAL_ACCESS_TOKEN is not a valid key"), "{error}");
    }
    assert!(open(&|config| config.ca_file = Some("/nowhere/ca.pem".into())).unwrap_err().contains("/nowhere/ca.pem"));
    assert!(open(&|config| config.ca_file = Some("/dev/null".into())).unwrap_err().contains("no certificate"));
    assert!(open(&|config| config.timeout_ms = 0).is_err());
}
