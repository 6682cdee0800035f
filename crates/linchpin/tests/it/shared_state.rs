//! State that processes share, or go on with after a restart: `SharedState` in memory, in a file, and in Redis.

#![cfg(feature = "http")]

use crate::nodes::{Caller, ask, node_of, open, send, stored};
use http::{Method, StatusCode};
use linchpin::store::{ChangeRelay, EventStore, Secrets, ServerChange, SessionStore, SharedState, Store, StoredEvent};
use linchpin::testing::store::{check_changes, check_events, check_expiry, check_sessions};
use linchpin_store::{Expect, ManualClock};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What every kind of store must keep.
async fn check(store: &Store) {
    let state = |name| SharedState::new(name, store.clone());
    check_sessions(&state("contract")).await;
    check_events(&state("contract")).await;
    check_changes(&state("contract"), &state("contract")).await;
}

#[tokio::test]
async fn state_in_memory_keeps_the_promises_of_stores() {
    let clock = Arc::new(ManualClock::default());
    let store = Store::builder().clock(clock.clone()).memory();
    check(&store).await;
    let state = SharedState::new("contract", store);
    check_expiry(&state, &state, async |time| clock.advance(time)).await;
}

#[tokio::test]
async fn state_in_a_file_keeps_the_promises_of_stores() {
    let home = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::default());
    let store = Store::builder().clock(clock.clone()).sqlite(home.path().join("state.db")).unwrap();
    check(&store).await;
    let state = SharedState::new("contract", store);
    check_expiry(&state, &state, async |time| clock.advance(time)).await;
}

#[tokio::test]
async fn events_whose_numbers_have_gaps_of_any_length_are_kept_after_the_last_long_one() {
    let state = SharedState::new("s", Store::memory());
    let event = |number: u32| StoredEvent::new(number, format!("data: {number}\n\n").into());
    let (ttl, numbers) = (Duration::from_secs(60), |events: Vec<StoredEvent>| {
        events.into_iter().map(|event| event.number).collect::<Vec<_>>()
    });
    state.append("a", 1, vec![event(3), event(1_000)], ttl).await.unwrap();
    state.append("a", 1, vec![event(2_000)], ttl).await.unwrap();
    assert_eq!(state.after("a", 1, 3).await.unwrap().map(numbers), Some(vec![1_000, 2_000]));
    state.append("a", 1, vec![event(5_000), event(90_000), event(90_001)], ttl).await.unwrap();
    assert_eq!(state.after("a", 1, 2_000).await.unwrap(), None);
    assert_eq!(state.after("a", 1, 90_000).await.unwrap().map(numbers), Some(vec![90_001]));
    state.append("a", 1, vec![event(u32::MAX)], ttl).await.unwrap();
    assert_eq!(state.after("a", 1, u32::MAX - 1).await.unwrap().map(numbers), Some(vec![u32::MAX]));
}

#[tokio::test]
async fn streams_of_more_than_a_page_are_read_and_deleted_whole() {
    let state = SharedState::new("s", Store::memory());
    let ttl = Duration::from_secs(60);
    for stream in 0..600 {
        state.append("a", stream, vec![StoredEvent::new(0, vec![b'x'; 4_000].into())], ttl).await.unwrap();
    }
    let many = (0..600).map(|number| StoredEvent::new(number, vec![b'x'; 4_000].into())).collect();
    state.append("a", 7, many, ttl).await.unwrap();
    assert_eq!(state.after("a", 7, 0).await.unwrap().unwrap().len(), 599);
    EventStore::delete(&state, "a").await.unwrap();
    for stream in 0..600 {
        assert_eq!(state.after("a", stream, 0).await.unwrap(), None, "{stream}");
    }
}

#[tokio::test]
async fn an_event_that_is_too_long_for_the_store_cannot_be_resumed_past_and_the_others_can() {
    let state = SharedState::new("s", Store::memory());
    let ttl = Duration::from_secs(60);
    let events = [1, 9 << 20, 2, 3 << 20, 4]
        .into_iter()
        .zip(1..)
        .map(|(length, number)| StoredEvent::new(number, vec![b'x'; length].into()));
    state.append("a", 1, events.collect(), ttl).await.unwrap();
    for (after, left) in [(0, None), (1, None), (2, Some(3)), (4, Some(1)), (5, Some(0))] {
        let found = state.after("a", 1, after).await.unwrap().map(|events| events.len());
        assert_eq!(found, left, "after {after}");
    }
}

/// A process that takes note of what others tell.
fn listener(state: &SharedState) -> Arc<Mutex<Vec<ServerChange>>> {
    let told: Arc<Mutex<Vec<ServerChange>>> = Arc::default();
    let noted = told.clone();
    state.start(Arc::new(move |change| {
        noted.lock().unwrap().push(change);
        true
    }));
    told
}

async fn tells(told: &Mutex<Vec<ServerChange>>, want: &[ServerChange]) {
    for _ in 0..1_000 {
        if told.lock().unwrap().len() >= want.len() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(*told.lock().unwrap(), want);
    told.lock().unwrap().clear();
}

const LISTS: [ServerChange; 3] = [ServerChange::Tools, ServerChange::Prompts, ServerChange::Resources];

#[tokio::test]
async fn many_changes_arrive_once_and_in_order() {
    let store = Store::memory();
    let (a, b) = (SharedState::new("s", store.clone()), SharedState::new("s", store));
    let (told, _own) = (listener(&b), listener(&a));
    let changes: Vec<_> = (0..1_000).map(|n| ServerChange::Updated(format!("memo://{n}").into())).collect();
    changes.iter().for_each(|change| a.publish(change));
    // The same again, while it waits, is one.
    changes.iter().for_each(|change| a.publish(change));
    tells(&told, &changes).await;
    // What cannot be subscribed to is not told.
    a.publish(&ServerChange::Updated("x".repeat(9_000).into()));
    a.publish(&ServerChange::Tools);
    tells(&told, &LISTS[..1]).await;
}

#[tokio::test]
async fn who_missed_changes_tells_that_all_lists_changed() {
    let store = Store::memory();
    let (a, b) = (SharedState::new("s", store.clone()), SharedState::new("s", store.clone()));
    let (told, _own) = (listener(&b), listener(&a));
    a.publish(&ServerChange::Tools);
    tells(&told, &LISTS[..1]).await;
    // The store has lost some changes of the first process.
    let (node, _) = store.kv().scan("node/", None, 2).await.unwrap().remove(0);
    let log = node.replacen("node/", "changes/", 1);
    store.log().delete(&log).await.unwrap();
    assert!(store.kv().put(&node, "7".into(), Expect::Any, Duration::from_secs(60)).await.unwrap().is_stored());
    let (topic, _) = log.rsplit_once('/').unwrap();
    store.topic().publish(topic).await.unwrap();
    tells(&told, &LISTS).await;
}

#[tokio::test]
async fn a_change_that_cannot_be_opened_is_told_as_one_of_all_lists_and_stops_no_other() {
    let home = tempfile::tempdir().unwrap();
    let state = |secret| {
        let store = Store::builder().secrets(Secrets::new([secret; 32])).sqlite(home.path().join("state.db"));
        SharedState::new("s", store.unwrap())
    };
    let (a, b, c) = (state(1), state(1), state(2));
    let (told, _own, _other) = (listener(&b), listener(&a), listener(&c));
    a.publish(&ServerChange::Prompts);
    tells(&told, &LISTS[1..2]).await;
    c.publish(&ServerChange::Prompts);
    tells(&told, &LISTS).await;
    a.publish(&ServerChange::Updated("memo://a".into()));
    tells(&told, &[ServerChange::Updated("memo://a".into())]).await;
}

#[tokio::test]
async fn what_is_published_last_is_still_told() {
    let store = Store::memory();
    let (a, b) = (SharedState::new("s", store.clone()), SharedState::new("s", store));
    let (told, own) = (listener(&b), listener(&a));
    a.publish(&ServerChange::Resources);
    drop(a);
    tells(&told, &LISTS[2..]).await;
    assert!(own.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_session_that_cannot_be_opened_does_not_exist() {
    let home = tempfile::tempdir().unwrap();
    let state = |secret| {
        let store = Store::builder().secrets(Secrets::new([secret; 32])).sqlite(home.path().join("state.db"));
        SharedState::new("s", store.unwrap())
    };
    let (node, _) = node_of(&state(1), state(1));
    let id = open(&node, None).await;
    assert!(state(1).load(&id).await.unwrap().is_some());
    assert!(state(2).load(&id).await.unwrap().is_none());
}

#[tokio::test]
async fn what_clients_send_is_not_readable_in_the_file() {
    let home = tempfile::tempdir().unwrap();
    let state = SharedState::new("s", Store::sqlite(home.path().join("state.db")).unwrap());
    let (node, _) = node_of(&state, state.clone());
    let id = open(&node, Some("countess of lovelace")).await;
    let by = Caller { session: Some(&id), user: Some("countess of lovelace") };
    let call = json!({ "name": "count", "_meta": { "progressToken": "tracer" } });
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call });
    assert_eq!(send(&node, Method::POST, &by, &[], &call).await.messages().len(), 4);
    node.shutdown().await;
    drop((node, state));
    let files = std::fs::read_dir(home.path()).unwrap().map(|file| std::fs::read(file.unwrap().path()).unwrap());
    for bytes in files.collect::<Vec<_>>() {
        for secret in [id.as_str(), "tracer", "progress", "countess of lovelace"] {
            let found = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
            assert!(!found, "{secret} is in the file");
        }
    }
}

/// Sessions and streams of one process in another one, which `open_store` opens anew.
async fn goes_on(open_store: impl Fn() -> Store) {
    let state = SharedState::new("s", open_store());
    let (a, _) = node_of(&state, state.clone());
    let id = open(&a, None).await;
    assert_eq!(ask(&a, &id, "resources/subscribe", json!({ "uri": "memo://a" })).await.status, StatusCode::OK);
    stored(&state, &id, |record| record.subscriptions.len() == 1).await;
    let whole = ask(&a, &id, "tools/call", json!({ "name": "count", "_meta": { "progressToken": 1 } })).await;
    let events: Vec<_> = whole.events().into_iter().map(str::to_owned).collect();
    a.shutdown().await;
    drop((a, state));
    // Two processes, later.
    let (there, here) = (SharedState::new("s", open_store()), SharedState::new("s", open_store()));
    let ((b, _), (c, handle)) = (node_of(&there, there.clone()), node_of(&here, here.clone()));
    let by = Caller { session: Some(&id), user: None };
    let rest = send(&b, Method::GET, &by, &[("last-event-id", &events[1])], &Value::Null).await;
    assert_eq!((rest.status, rest.events()), (StatusCode::OK, events[2..].iter().map(String::as_str).collect()));
    let listening = tokio::spawn({
        let (b, id) = (b.clone(), id.clone());
        async move { send(&b, Method::GET, &Caller { session: Some(&id), user: None }, &[], &Value::Null).await }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    handle.resource_updated("memo://a");
    handle.resource_updated("memo://b");
    handle.tools().disable("log").unwrap();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    b.shutdown().await;
    let heard = listening.await.unwrap();
    let methods: Vec<_> = heard.messages().iter().filter_map(|m| m["method"].as_str().map(str::to_owned)).collect();
    let count = |method: &str| methods.iter().filter(|heard| *heard == method).count();
    assert_eq!(count("notifications/resources/updated"), 1, "{}", heard.body);
    assert_eq!(count("notifications/tools/list_changed"), 1, "{}", heard.body);
    assert_eq!(send(&c, Method::DELETE, &by, &[], &Value::Null).await.status, StatusCode::NO_CONTENT);
    assert!(there.load(&id).await.unwrap().is_none());
}

#[tokio::test]
async fn a_server_that_was_restarted_goes_on_with_sessions_and_streams_from_its_file() {
    let home = tempfile::tempdir().unwrap();
    goes_on(|| Store::sqlite(home.path().join("state.db")).unwrap()).await;
}

#[cfg(unix)]
#[tokio::test]
#[ignore = "needs a Redis server: `cargo xtask test --only redis`"]
async fn state_in_redis_keeps_the_promises_of_stores_and_other_nodes_go_on_with_it() {
    let redis = crate::redis_server::Server::start();
    let store = || Store::redis(redis.url().as_str(), Secrets::new([7; 32])).unwrap();
    check(&store()).await;
    let state = SharedState::new("contract", store());
    check_expiry(&state, &state, async |time| tokio::time::sleep(time).await).await;
    goes_on(store).await;
}
