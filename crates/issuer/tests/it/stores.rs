//! An issuer on stores that outlive it: nodes that share one, processes that end in the middle of something (row 83), and
//! what a copy of the database shows (row 107). On SQLite, and on a real Redis server.

use crate::flow::{code_for, code_in, once, tokens_for};
use crate::support::{Browser, Got, Login, enter, post, refresh, text};
use http::StatusCode;
use linchpin_issuer::{Admin, Issuer, Store};
use linchpin_store::{Expect, ManualClock};
use serde_json::Value;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

#[cfg(all(feature = "redis", unix))]
#[path = "../../../store/tests/it/redis/server.rs"]
#[allow(dead_code, reason = "the store's own tests use the rest")]
mod server;

/// A database that can be opened again and again.
enum Place {
    Sqlite(tempfile::TempDir, Arc<ManualClock>),
    #[cfg(all(feature = "redis", unix))]
    Redis(server::Server),
}

impl Place {
    fn sqlite() -> Place {
        // The operator's commands go by the system's time.
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        Place::Sqlite(tempfile::tempdir().unwrap(), Arc::new(ManualClock::at(now)))
    }

    #[cfg(all(feature = "redis", unix))]
    fn redis() -> Place {
        // So that copies can be searched.
        Place::Redis(server::Server::with(&["--rdbcompression", "no"]))
    }

    /// The store, as another process opens it.
    fn open(&self) -> Store {
        match self {
            Place::Sqlite(folder, clock) => {
                Store::builder().clock(clock.clone()).sqlite(folder.path().join("auth.db")).unwrap()
            }
            #[cfg(all(feature = "redis", unix))]
            Place::Redis(server) => Store::redis(server.url(), linchpin_issuer::Secrets::new([7; 32])).unwrap(),
        }
    }

    /// A node: an issuer, and its terminal.
    fn node(&self) -> Node {
        let store = self.open();
        let (issuer, terminal) = once();
        let issuer = issuer.device(true).store(store.clone());
        let issuer = match self {
            Place::Sqlite(_, clock) => issuer.clock(clock.clone()),
            #[cfg(all(feature = "redis", unix))]
            Place::Redis(_) => issuer,
        };
        Node { issuer, terminal, store }
    }

    /// Lets a minute pass, so that nobody has asked too often.
    fn pause(&self) {
        match self {
            Place::Sqlite(_, clock) => clock.advance(Duration::from_secs(61)),
            #[cfg(all(feature = "redis", unix))]
            Place::Redis(server) => server.advance(Duration::from_secs(61)),
        }
    }

    /// Everything that somebody who copies the database has, but for the secret.
    fn copied(&self) -> Vec<u8> {
        match self {
            Place::Sqlite(folder, _) => {
                let files = ["auth.db", "auth.db-wal"].map(|name| std::fs::read(folder.path().join(name)));
                files.into_iter().flatten().flatten().collect()
            }
            #[cfg(all(feature = "redis", unix))]
            Place::Redis(server) => {
                let status =
                    std::process::Command::new("redis-cli").arg("-s").arg(server.socket()).arg("SAVE").status();
                assert!(status.unwrap().success());
                std::fs::read(server.folder().join("dump.rdb")).unwrap()
            }
        }
    }
}

struct Node {
    issuer: Issuer,
    terminal: Arc<Mutex<String>>,
    store: Store,
}

impl Node {
    async fn tokens(&self) -> Value {
        tokens_for(&self.issuer, &self.terminal, &Login::new("desktop")).await
    }

    /// Waits until everything that was begun has reached the store.
    async fn settle(&self) {
        let settled = self.store.durable().kv().put("settle/x", "".into(), Expect::Any, Duration::from_secs(60)).await;
        assert!(settled.unwrap().is_stored());
    }

    async fn families(&self) -> usize {
        Admin::new(&self.store).grants().await.unwrap().len()
    }
}

/// Runs until it has waited so many times, and then no further: as a process that is killed there. `None` if that was before
/// its end.
async fn killed_after<T>(waits: usize, work: impl Future<Output = T>) -> Option<T> {
    let (mut work, mut left) = (pin!(work), waits);
    std::future::poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending if left == 0 => Poll::Ready(None),
        Poll::Pending => {
            left -= 1;
            Poll::Pending
        }
    })
    .await
}

/// The most waits of one request.
const WAITS_MAX: usize = 60;

/// Row 83 for codes: killed at each step, then once more with the same code at a new process.
async fn codes(place: &Place) {
    let login = Login::new("desktop");
    redeemed(
        place,
        async |node| code_for(&node.issuer, &node.terminal, &login).await,
        async |issuer, code| login.redeem(&issuer, &code).await,
    )
    .await;
}

/// Row 83 for devices.
async fn devices(place: &Place) {
    let grant = ("grant_type", "urn:ietf:params:oauth:grant-type:device_code");
    let approved = async |node: &Node| {
        let begun = post(&node.issuer, "device_authorization", None, &[("client_id", "desktop")]).await.json();
        let mut browser = Browser::new(&node.issuer);
        let url = format!("{}/device", node.issuer.url());
        let going = browser.post(&url, &[("code", &text(&begun, "user_code"))]).await;
        let question = browser.follow(&going.next().unwrap()).await;
        browser.answer(&question, "allow", &code_in(&node.terminal)).await;
        text(&begun, "device_code")
    };
    redeemed(place, approved, async |issuer, code| {
        post(&issuer, "token", None, &[grant, ("client_id", "desktop"), ("device_code", &code)]).await
    })
    .await;
}

async fn redeemed(place: &Place, code: impl AsyncFn(&Node) -> String, redeem: impl AsyncFn(Issuer, String) -> Got) {
    let (mut was_cut, mut was_whole) = (0, false);
    for waits in 0..WAITS_MAX {
        place.pause();
        let first = place.node();
        let code = code(&first).await;
        let before = first.families().await;
        let done = killed_after(waits, redeem(first.issuer.clone(), code.clone())).await;
        first.settle().await;
        drop(first.issuer);
        if let Some(got) = done {
            assert_eq!(got.status, StatusCode::OK, "{got:?}");
            was_whole = true;
            break;
        }
        was_cut += 1;
        let second = place.node();
        let again = redeem(second.issuer.clone(), code).await;
        // Either nothing had happened, and there is one family; or what happened has ended, and a new login is needed.
        let families = second.families().await - before.min(second.families().await);
        match again.status {
            StatusCode::OK => {
                assert_eq!(families, 1, "after {waits} waits");
                let token = text(&again.json(), "refresh_token");
                assert_eq!(refresh(&second.issuer, "desktop", &token, &[]).await.status, StatusCode::OK);
            }
            _ => assert_eq!((again.error().as_str(), families), ("invalid_grant", 0), "after {waits} waits"),
        }
    }
    assert!(was_whole && was_cut > 1, "{was_cut} steps");
}

/// A device code that two use at once: whoever was first, what it gave has ended.
async fn doubles(place: &Place) {
    let grant = ("grant_type", "urn:ietf:params:oauth:grant-type:device_code");
    let (one, other) = (place.node(), place.node());
    let begun = post(&one.issuer, "device_authorization", None, &[("client_id", "desktop")]).await.json();
    let mut browser = Browser::new(&one.issuer);
    let url = format!("{}/device", one.issuer.url());
    let going = browser.post(&url, &[("code", &text(&begun, "user_code"))]).await;
    let question = browser.follow(&going.next().unwrap()).await;
    browser.answer(&question, "allow", &code_in(&one.terminal)).await;
    let code = text(&begun, "device_code");
    let form = [grant, ("client_id", "desktop"), ("device_code", &code)];
    let (a, b) = tokio::join!(post(&one.issuer, "token", None, &form), post(&other.issuer, "token", None, &form));
    assert!([&a, &b].iter().any(|got| got.error() == "invalid_grant"), "{a:?} {b:?}");
    assert_eq!(one.families().await, 0);
}

/// Row 83 for refresh tokens: whatever happened, the same token goes on within its grace, and there is one family.
async fn refreshes(place: &Place) {
    let (mut was_cut, mut was_whole) = (0, false);
    let node = place.node();
    let mut token = text(&node.tokens().await, "refresh_token");
    for waits in 0..WAITS_MAX {
        place.pause();
        let first = place.node();
        let done = killed_after(waits, refresh(&first.issuer, "desktop", &token, &[])).await;
        first.settle().await;
        if let Some(got) = &done {
            assert_eq!(got.status, StatusCode::OK, "{got:?}");
        }
        let second = place.node();
        let again = refresh(&second.issuer, "desktop", &token, &[]).await;
        assert_eq!(again.status, StatusCode::OK, "after {waits} waits: {again:?}");
        assert_eq!(second.families().await, 1);
        token = text(&again.json(), "refresh_token");
        if done.is_some() {
            was_whole = true;
            break;
        }
        was_cut += 1;
    }
    assert!(was_whole && was_cut > 0, "{was_cut} steps");
    assert_eq!(refresh(&node.issuer, "desktop", &token, &[]).await.status, StatusCode::OK);
}

/// Row 30: what one node revokes, and what the operator does beside it, holds at the other.
async fn revocations(place: &Place) {
    let (one, other) = (place.node(), place.node());
    for by_operator in [false, true] {
        let tokens = one.tokens().await;
        let access = text(&tokens, "access_token");
        assert!(enter(&other.issuer, "/mcp", Some(&access)).await.is_ok());
        if by_operator {
            assert_eq!(Admin::new(&place.open()).revoke("https://mcp.example#owner").await.unwrap(), 1);
        } else {
            let form = [("client_id", "desktop"), ("token", &text(&tokens, "refresh_token"))];
            assert_eq!(post(&one.issuer, "revoke", None, &form).await.status, StatusCode::OK);
        }
        let refused = async {
            while enter(&other.issuer, "/mcp", Some(&access)).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), refused).await.expect("the other node learns of it");
        let got = refresh(&other.issuer, "desktop", &text(&tokens, "refresh_token"), &[]).await;
        assert_eq!(got.error(), "invalid_grant");
    }
}

/// Row 82 across nodes, and keys: one rotation, the same answer; a key that one node made is good at the other.
async fn nodes(place: &Place) {
    let (one, other) = (place.node(), place.node());
    let tokens = one.tokens().await;
    let first = text(&tokens, "refresh_token");
    let (a, b) =
        tokio::join!(refresh(&one.issuer, "desktop", &first, &[]), refresh(&other.issuer, "desktop", &first, &[]));
    assert_eq!((a.status, a.json()), (StatusCode::OK, b.json()));
    let kid = Admin::new(&place.open()).rotate_key().await.unwrap();
    // The key signs from the time of the operator's own clock on, which goes by itself.
    place.pause();
    let third = place.node();
    let tokens = third.tokens().await;
    let access = text(&tokens, "access_token");
    assert_eq!(linchpin_oauth::Jws::read(&access).unwrap().kid(), Some(kid.as_str()), "the new key signs");
    for node in [&third, &place.node()] {
        assert!(enter(&node.issuer, "/mcp", Some(&access)).await.is_ok());
        assert!(
            enter(&node.issuer, "/mcp", Some(&text(&a.json(), "access_token"))).await.is_ok(),
            "and the old one verifies"
        );
    }
}

/// Row 107.
async fn copies(place: &Place) {
    let node = place.node();
    let login = Login::new("desktop");
    let code = code_for(&node.issuer, &node.terminal, &login).await;
    let tokens = login.redeem(&node.issuer, &code).await.json();
    let device = post(&node.issuer, "device_authorization", None, &[("client_id", "desktop")]).await.json();
    let next = refresh(&node.issuer, "desktop", &text(&tokens, "refresh_token"), &[]).await.json();
    let canaries = [
        code,
        text(&tokens, "access_token"),
        text(&tokens, "refresh_token"),
        text(&next, "access_token"),
        text(&next, "refresh_token"),
        text(&device, "device_code"),
        text(&device, "user_code"),
        code_in(&node.terminal),
        login.pkce.verifier.expose().to_owned(),
        "files:read".to_owned(),
        "Acme Desktop".to_owned(),
    ];
    node.settle().await;
    let copied = place.copied();
    assert!(copied.windows(7).any(|bytes| bytes == b"family/"), "this is the database");
    for canary in &canaries {
        assert!(!copied.windows(canary.len()).any(|bytes| bytes == canary.as_bytes()), "{canary}");
        // The part of a token that is secret.
        if let Some((_, secret)) = canary.split_once('.') {
            assert!(!copied.windows(secret.len()).any(|bytes| bytes == secret.as_bytes()), "{canary}");
        }
    }
}

/// Row 31: tokens are good without the store; what needs it is put off, and goes on when it is back.
#[cfg(all(feature = "redis", unix))]
#[tokio::test]
#[ignore = "needs a Redis server: `cargo xtask test --only redis`"]
async fn row_31_with_redis_away_tokens_are_good_and_refreshes_wait() {
    let server = server::Server::with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let place = Place::Redis(server);
    let node = place.node();
    let tokens = node.tokens().await;
    let (access, token) = (text(&tokens, "access_token"), text(&tokens, "refresh_token"));
    let another = text(&refresh(&node.issuer, "desktop", &token, &[]).await.json(), "access_token");
    assert!(enter(&node.issuer, "/mcp", Some(&access)).await.is_ok());
    let Place::Redis(server) = &place else { panic!("it is Redis") };
    server.kill();
    assert!(enter(&node.issuer, "/mcp", Some(&access)).await.is_ok(), "a token that was seen");
    assert!(enter(&node.issuer, "/mcp", Some(&another)).await.is_ok(), "a new one");
    let got = refresh(&node.issuer, "desktop", &token, &[]).await;
    assert_eq!((got.status, got.error().as_str()), (StatusCode::SERVICE_UNAVAILABLE, "temporarily_unavailable"));
    assert!(got.headers.contains_key("retry-after"));
    let page = Browser::new(&node.issuer).get(&Login::new("desktop").url(&node.issuer)).await;
    assert_eq!((page.status, page.next()), (StatusCode::SERVICE_UNAVAILABLE, None), "{page:?}");
    server.run();
    let back = async {
        while refresh(&node.issuer, "desktop", &token, &[]).await.status != StatusCode::OK {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), back).await.expect("it goes on");
    node.tokens().await;
}

macro_rules! on_both {
    ($($name:ident: $what:ident;)*) => {
        mod sqlite {
            $(
                #[tokio::test]
                async fn $name() {
                    super::$what(&super::Place::sqlite()).await;
                }
            )*
        }

        #[cfg(all(feature = "redis", unix))]
        mod redis {
            $(
                // On one thread, so that nothing goes on while a request is not polled.
                #[tokio::test]
                #[ignore = "needs a Redis server: `cargo xtask test --only redis`"]
                async fn $name() {
                    super::$what(&super::Place::redis()).await;
                }
            )*
        }
    };
}

on_both! {
    row_83_killed_at_any_step_a_code_gives_one_family_or_none: codes;
    row_83_killed_at_any_step_a_device_gets_one_family_or_none: devices;
    row_83_killed_at_any_step_a_refresh_token_goes_on: refreshes;
    a_device_code_that_two_use_at_once_gives_nothing: doubles;
    row_30_a_revocation_holds_at_all_nodes: revocations;
    row_82_nodes_share_rotations_and_keys: nodes;
    row_107_a_copied_database_has_nothing_usable: copies;
}
