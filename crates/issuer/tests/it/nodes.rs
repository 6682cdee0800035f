//! Several nodes on one store, a store that is away, and a process that is killed: rows 30, 31, 82, 83 and 108.

use crate::flow::{code_for, once, tokens_for};
use crate::support::flaky::Flaky;
use crate::support::{Got, Login, enter, post, refresh, text};
use http::StatusCode;
use linchpin_issuer::Issuer;
use linchpin_store::{Clock, Expect, ManualClock, Secrets, Store};
use serde_json::Value;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn node(store: &Store) -> (Issuer, Arc<Mutex<String>>) {
    let (issuer, terminal) = once();
    (issuer.store(store.clone()), terminal)
}

/// How many families there are.
async fn families(store: &Store) -> usize {
    store.kv().scan("family/", None, 100).await.unwrap().len()
}

#[tokio::test]
async fn row_30_a_family_that_ended_on_one_node_is_refused_on_the_other() {
    let store = Store::memory();
    let ((one, terminal), (two, _)) = (node(&store), node(&store));
    let tokens = tokens_for(&one, &terminal, &Login::new("desktop")).await;
    let (access, token) = (text(&tokens, "access_token"), text(&tokens, "refresh_token"));
    for _ in 0..2 {
        assert!(enter(&two, "/mcp", Some(&access)).await.is_ok());
    }
    post(&one, "revoke", None, &[("client_id", "desktop"), ("token", &token)]).await;
    // Within a second: it is told, nothing is polled.
    let refused = async {
        while enter(&two, "/mcp", Some(&access)).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(1), refused).await.expect("the other node hears of it");
}

#[tokio::test]
async fn a_node_that_starts_later_refuses_what_was_revoked_at_once_whatever_else_is_in_the_list() {
    let store = Store::memory();
    let (one, terminal) = node(&store);
    let tokens = tokens_for(&one, &terminal, &Login::new("desktop")).await;
    post(&one, "revoke", None, &[("client_id", "desktop"), ("token", &text(&tokens, "refresh_token"))]).await;
    let hour = Duration::from_secs(3600);
    let put = store.durable().kv().put("revoked/unreadable", "x".into(), Expect::Any, hour).await.unwrap();
    assert!(put.is_stored());
    let (two, _) = node(&store);
    let refusal = enter(&two, "/mcp", Some(&text(&tokens, "access_token"))).await.unwrap_err();
    assert_eq!(refusal.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn row_31_what_goes_on_while_the_store_is_away() {
    let (inner, secrets) = (Store::memory(), Secrets::random());
    let (flaky, store) = Flaky::around(&inner, &secrets);
    let (issuer, terminal) = node(&store);
    let known = tokens_for(&issuer, &terminal, &Login::new("desktop")).await;
    let new = tokens_for(&issuer, &terminal, &Login::new("desktop")).await;
    let code = code_for(&issuer, &terminal, &Login::new("desktop")).await;
    assert!(enter(&issuer, "/mcp", Some(&text(&known, "access_token"))).await.is_ok());
    flaky.set_away(true);
    assert!(enter(&issuer, "/mcp", Some(&text(&known, "access_token"))).await.is_ok(), "a remembered token");
    assert!(enter(&issuer, "/mcp", Some(&text(&new, "access_token"))).await.is_ok(), "a new one");
    let away = |got: &Got| {
        assert_eq!((got.status, got.error().as_str()), (StatusCode::SERVICE_UNAVAILABLE, "temporarily_unavailable"));
        assert!(got.headers.contains_key("retry-after"));
    };
    away(&refresh(&issuer, "desktop", &text(&known, "refresh_token"), &[]).await);
    away(&Login::new("desktop").redeem(&issuer, &code).await);
    // One that has not read the keys yet cannot tell good tokens from bad ones.
    let (other, _) = node(&store);
    let refusal = enter(&other, "/mcp", Some(&text(&known, "access_token"))).await.unwrap_err();
    assert_eq!((refusal.status().as_u16(), refusal.headers().contains_key("retry-after")), (503, true));
    assert!(!refusal.headers().contains_key("www-authenticate"), "a login would not help");
    flaky.set_away(false);
    let refreshed = refresh(&issuer, "desktop", &text(&known, "refresh_token"), &[]).await;
    assert_eq!(refreshed.status, StatusCode::OK, "nothing was lost: {refreshed:?}");
}

#[tokio::test]
async fn row_82_a_refresh_in_parallel_on_two_nodes_is_one_rotation() {
    let store = Store::memory();
    let ((one, terminal), (two, _)) = (node(&store), node(&store));
    let tokens = tokens_for(&one, &terminal, &Login::new("desktop")).await;
    let token = text(&tokens, "refresh_token");
    let (a, b) = tokio::join!(refresh(&one, "desktop", &token, &[]), refresh(&two, "desktop", &token, &[]));
    assert_eq!(a.status, StatusCode::OK);
    assert_eq!((a.json(), families(&store).await), (b.json(), 1));
    let next = refresh(&two, "desktop", &text(&a.json(), "refresh_token"), &[]).await;
    assert_eq!(next.status, StatusCode::OK);
}

/// A process that is killed after so many operations of its store: what it had to say nobody hears.
async fn until_killed<T>(running: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(Duration::ZERO, running).await.ok()
}

/// Does a step with a node that is killed after 0, 1, 2, … operations, and hands what is left to `after`, until it was not killed.
async fn killed_anywhere<S, R>(
    mut before: impl AsyncFnMut(&Issuer, &Mutex<String>) -> S,
    step: impl AsyncFn(&Issuer, &S) -> R,
    mut after: impl AsyncFnMut(&Issuer, &Store, S, Option<R>),
) {
    for operations in 0..200 {
        let (inner, secrets) = (Store::memory(), Secrets::random());
        let (flaky, store) = Flaky::around(&inner, &secrets);
        let (healthy, terminal) = node(&Flaky::around(&inner, &secrets).1);
        let state = before(&healthy, &terminal).await;
        let (dying, _) = node(&store);
        flaky.die_after(operations);
        let done = until_killed(step(&dying, &state)).await;
        let ended = done.is_some();
        drop(dying);
        after(&healthy, &inner, state, done).await;
        if ended {
            assert!(operations > 3, "it has steps between which it can be killed");
            return;
        }
    }
    panic!("it never ends");
}

#[tokio::test]
async fn row_83_a_process_killed_between_two_steps_of_a_code_gives_no_second_token() {
    killed_anywhere(
        async |issuer, terminal| {
            let login = Login::new("desktop");
            (code_for(issuer, terminal, &login).await, login)
        },
        async |issuer, (code, login)| login.redeem(issuer, code).await.status,
        async |issuer, store, (code, login), done| {
            // The client got no answer, and tries again.
            let again = login.redeem(issuer, &code).await;
            match (done, again.status) {
                (None, StatusCode::OK) => assert_eq!(families(store).await, 1),
                // It was used: a new login, and nothing of the old one is left.
                (_, _) => assert_eq!((again.error().as_str(), families(store).await), ("invalid_grant", 0)),
            }
        },
    )
    .await;
}

#[tokio::test]
async fn row_83_a_process_killed_between_two_steps_of_a_refresh_or_revocation_leaves_no_half_family() {
    let before =
        async |issuer: &Issuer, terminal: &Mutex<String>| tokens_for(issuer, terminal, &Login::new("desktop")).await;
    let token = |tokens: &Value| text(tokens, "refresh_token");
    killed_anywhere(
        before,
        async |issuer, tokens| refresh(issuer, "desktop", &token(tokens), &[]).await.status,
        async |issuer, store, tokens, _| {
            let again = refresh(issuer, "desktop", &token(&tokens), &[]).await;
            assert_eq!((again.status, families(store).await), (StatusCode::OK, 1));
            let next = refresh(issuer, "desktop", &token(&again.json()), &[]).await;
            assert_eq!(next.status, StatusCode::OK, "it goes on");
        },
    )
    .await;
    killed_anywhere(
        before,
        async |issuer, tokens| {
            post(issuer, "revoke", None, &[("client_id", "desktop"), ("token", &token(tokens))]).await.status
        },
        async |issuer, store, tokens, _| {
            post(issuer, "revoke", None, &[("client_id", "desktop"), ("token", &token(&tokens))]).await;
            assert_eq!(families(store).await, 0);
            let refused = refresh(issuer, "desktop", &token(&tokens), &[]).await;
            assert_eq!(refused.error(), "invalid_grant");
        },
    )
    .await;
}

/// A clock that somebody sets.
struct Set(Mutex<Duration>);

impl Clock for Set {
    fn now(&self) -> Duration {
        *self.0.lock().unwrap()
    }
}

#[tokio::test]
async fn row_108_logins_work_with_clocks_20_s_apart_and_nothing_expired_revives() {
    let time = Arc::new(ManualClock::default());
    let store = Store::builder().clock(time.clone()).memory();
    let clock = |off: i64| {
        let now = time.now().as_secs().checked_add_signed(off).unwrap();
        Arc::new(Set(Mutex::new(Duration::from_secs(now))))
    };
    let (behind, ahead) = (clock(-10), clock(10));
    let (one, terminal) = node(&store);
    let one = one.clock(ahead.clone());
    let two = node(&store).0.clock(behind.clone());
    let login = Login::new("desktop");
    let code = code_for(&one, &terminal, &login).await;
    let tokens = login.redeem(&two, &code).await.json();
    let next = refresh(&one, "desktop", &text(&tokens, "refresh_token"), &[]).await.json();
    for (node, which) in [(&one, &tokens), (&two, &tokens), (&two, &next)] {
        assert!(enter(node, "/mcp", Some(&text(which, "access_token"))).await.is_ok());
    }
    // An hour back: a code that expired by the store's time stays so.
    let code = code_for(&one, &terminal, &login).await;
    time.advance(Duration::from_secs(62));
    *ahead.0.lock().unwrap() -= Duration::from_secs(3600);
    assert_eq!(login.redeem(&one, &code).await.error(), "invalid_grant");
    // Nor a token: here it is from the future, there it has expired.
    let access = text(&next, "access_token");
    assert!(enter(&one, "/mcp", Some(&access)).await.is_err());
    assert!(enter(&two, "/mcp", Some(&access)).await.is_ok());
    *behind.0.lock().unwrap() += Duration::from_secs(3600);
    assert!(enter(&two, "/mcp", Some(&access)).await.is_err());
}
