//! What the Redis store does with servers and networks of all kinds.

mod proxy;
mod server;
mod several;

use crate::world::{HOUR, MINUTE};
use ::redis::{Commands as _, cmd};
use linchpin_store::{
    Append, Claim, Error, ErrorKind, Expect, Fence, Put, Rate, Read, RedisOptions, Secrets, Store, Take,
};
use proxy::Proxy;
pub(crate) use server::Server;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl Server {
    /// A store in this server, as each of its nodes opens it.
    pub(crate) fn store(&self) -> Store {
        open(self.url())
    }

    /// Asks it something itself.
    fn ask<T: ::redis::FromRedisValue>(&self, words: &[&str]) -> T {
        self.try_to_ask(words).unwrap()
    }

    /// The same where it may not answer: a Sentinel that makes a replica the master closes the connections to it.
    fn try_to_ask<T: ::redis::FromRedisValue>(&self, words: &[&str]) -> ::redis::RedisResult<T> {
        let mut connection = ::redis::Client::open(self.url())?.get_connection()?;
        cmd(words[0]).arg(&words[1..]).query(&mut connection)
    }
}

fn open(options: impl Into<RedisOptions>) -> Store {
    Store::redis(options, Secrets::new([7; 32])).unwrap()
}

/// What is awaited by tests comes, or the test fails.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("it comes")
}

async fn refused(store: &Store) -> Error {
    soon(store.check()).await.unwrap_err()
}

async fn put(store: &Store, key: &str) -> Result<Put, Error> {
    soon(store.kv().put(key, "1".into(), Expect::Any, HOUR)).await
}

/// Repeats until the store answers.
async fn at_last<T>(mut ask: impl AsyncFnMut() -> Result<T, Error>) -> T {
    for _ in 0..200 {
        match ask().await {
            Ok(done) => return done,
            Err(error) if error.is_transient() => tokio::time::sleep(Duration::from_millis(20)).await,
            Err(error) => panic!("{error}"),
        }
    }
    panic!("it does not answer any more");
}

#[test]
fn a_store_in_redis_needs_a_secret() {
    let error = Store::builder().redis("redis://127.0.0.1").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("openssl rand -hex 32"), "{error}");
}

#[tokio::test]
async fn a_server_that_is_not_there_or_is_none_is_away() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        use tokio::io::AsyncWriteExt as _;
        while let Ok((mut client, _)) = listener.accept().await {
            client.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        }
    });
    for url in [url.as_str(), "redis://127.0.0.1:1", "unix:///no/such/socket"] {
        let error = refused(&open(url)).await;
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{url}: {error}");
    }
}

#[tokio::test]
#[ignore = "needs a Redis server: `cargo xtask test --only redis`"]
async fn servers_that_cannot_be_used_are_refused_with_advice() {
    let server = Server::with(&["--maxmemory-policy", "allkeys-lru", "--requirepass", "s3cret"]);
    let url = |login: &str| format!("unix://{}{login}", server.socket().display());
    let rows =
        [("", "the name and password"), ("?pass=wrong", "password"), ("?pass=s3cret", "maxmemory-policy allkeys-lru")];
    for (login, expected) in rows {
        let error = refused(&open(url(login))).await;
        assert_eq!(error.kind(), ErrorKind::Config, "{login}: {error}");
        assert!(error.to_string().contains(expected) && !error.to_string().contains("s3cret"), "{login}: {error}");
    }
    let meant = RedisOptions::new(url("?pass=s3cret")).with(|options| options.may_evict = true);
    open(meant).check().await.unwrap();
}

#[tokio::test]
#[ignore = "needs a Redis server: `cargo xtask test --only redis`"]
async fn all_keys_have_one_tag_and_a_time_to_live_and_stores_of_other_tags_see_none() {
    let server = Server::with(&["--rdbcompression", "no"]);
    let store = server.store();
    assert!(put(&store, "client/a").await.unwrap().is_stored());
    store.kv().touch(&["client/a"], 2 * HOUR).await.unwrap();
    assert!(store.sealed().put("token/a", "canary-of-a-token".into(), Expect::Absent, HOUR).await.unwrap().is_stored());
    let entries = vec!["e".into(); 3];
    assert_eq!(store.log().append("log/a", 1, entries, Fence::NONE, HOUR).await.unwrap(), Append::Stored);
    let Claim::Held(_) = store.lease().claim("lease/a", "node", MINUTE).await.unwrap() else { panic!() };
    assert_eq!(store.bucket().take("rate/a", 1, Rate::new(1, HOUR, 1).unwrap()).await.unwrap(), Take::Ok);
    store.topic().publish("topic/a").await.unwrap();
    let keys: Vec<String> = server.ask(&["KEYS", "*"]);
    assert_eq!(keys.len(), 10, "{keys:?}");
    for key in keys {
        assert!(key.starts_with("lp:{store}:"), "{key}");
        let left: i64 = server.ask(&["PTTL", &key]);
        assert!(left > 0, "{key} has no time to live");
    }
    let other = open(RedisOptions::new(server.url()).with(|options| options.tag = "other".to_owned()));
    assert_eq!(other.kv().get("client/a").await.unwrap(), None);
    assert_eq!(other.kv().scan("client/", None, 9).await.unwrap(), []);
    // What a copy of the database shows.
    let _: String = server.ask(&["SAVE"]);
    let saved = std::fs::read(server.folder().join("dump.rdb")).unwrap();
    assert!(!saved.windows(6).any(|window| window == b"canary"));
}

#[tokio::test]
#[ignore = "needs a Redis server: `cargo xtask test --only redis`"]
async fn what_has_expired_leaves_the_index() {
    let server = Server::start();
    let store = server.store();
    for at in 0..200 {
        assert!(store.kv().put(&format!("i/a{at}"), "1".into(), Expect::Any, MINUTE).await.unwrap().is_stored());
    }
    server.advance(2 * MINUTE);
    for at in 0..200 {
        assert!(store.kv().put(&format!("i/b{at}"), "1".into(), Expect::Any, HOUR).await.unwrap().is_stored());
    }
    let known: u64 = server.ask(&["ZCARD", "lp:{store}:index:i"]);
    assert!(known < 300, "{known} of 200");
    assert_eq!(store.kv().scan("i/", None, 999).await.unwrap().len(), 200);
    let known: u64 = server.ask(&["ZCARD", "lp:{store}:index:i"]);
    assert_eq!(known, 200, "a scan leaves none");
}

/// Row S1, for the store: it is gone, and comes back empty.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Redis server: `cargo xtask test --only redis`"]
async fn a_server_that_was_killed_is_away_and_works_when_it_is_back() {
    let server = Server::start();
    let store = server.store();
    assert!(put(&store, "a/a").await.unwrap().is_stored());
    let mut watch = store.topic().watch(&["t/a", "t/b"]).await.unwrap();
    server.ask::<i64>(&["PUBLISH", "lp:{store}:topic:t/a", "not a number"]);
    store.topic().publish("t/a").await.unwrap();
    assert_eq!(soon(watch.next()).await.0, "t/a");
    server.kill();
    for _ in 0..3 {
        let error = put(&store, "a/a").await.unwrap_err();
        assert!(error.is_transient() && error.to_string().contains("Redis does not answer"), "{error}");
    }
    assert!(store.topic().watch(&["t/c"]).await.is_err());
    server.run();
    // It comes back empty: what was known of the topic is told once more, as the change may be lost with it.
    assert_eq!(soon(watch.next()).await.0, "t/a");
    assert!(at_last(async || put(&store, "a/a").await).await.is_stored());
    let other = server.store();
    other.topic().publish("t/b").await.unwrap();
    assert_eq!(soon(watch.next()).await.0, "t/b");
}

/// Row S2: answers that are late, or never come.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Redis server: `cargo xtask test --only redis`"]
async fn answers_that_are_late_are_not_waited_for() {
    let server = Server::start();
    let proxy = Proxy::before(server.socket()).await;
    let store = open(proxy.url.as_str());
    assert!(put(&store, "a/a").await.unwrap().is_stored());
    let mut watch = store.topic().watch(&["t/a"]).await.unwrap();
    proxy.plan.is_deaf.store(true, Ordering::SeqCst);
    assert_eq!(put(&store, "a/a").await.unwrap_err().kind(), ErrorKind::Unavailable);
    // Meanwhile another node publishes.
    server.store().topic().publish("t/a").await.unwrap();
    proxy.plan.is_deaf.store(false, Ordering::SeqCst);
    assert_eq!(soon(watch.next()).await.0, "t/a", "no change is lost");
    assert!(at_last(async || put(&store, "a/a").await).await.is_stored());
}

/// Row S2: connections that break in the middle of answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Redis server: `cargo xtask test --only redis`"]
async fn through_cut_connections_nothing_happens_twice() {
    let server = Server::start();
    let proxy = Proxy::before(server.socket()).await;
    // A connection begins with what the server says of itself.
    let info: String = server.ask(&["INFO"]);
    proxy.plan.cut_after.store(info.len() as u64 + 900, Ordering::SeqCst);
    proxy.plan.delay_ms.store(1, Ordering::SeqCst);
    let store = open(proxy.url.as_str());
    let writes = async |writer: u64| {
        let (log, key) = (store.log(), format!("log/{writer}"));
        let mut swapped = Vec::new();
        for seq in 1..=40u64 {
            let entry = || vec![seq.to_string().into()];
            let stored = at_last(async || log.append(&key, seq, entry(), Fence::from_number(1), HOUR).await).await;
            assert_eq!(stored, Append::Stored);
            let found = at_last(async || store.kv().get("count/a").await).await;
            let expect = found.as_ref().map_or(Expect::Absent, |found| Expect::Rev(found.rev));
            let value = format!("{writer} {seq}").into();
            // One that is not known to have happened is not repeated here.
            if let Ok(Put::Stored(_)) = store.kv().put("count/a", value, expect, HOUR).await {
                swapped.push(found.map(|found| found.rev));
            }
        }
        swapped
    };
    let (a, b, c, d) = soon(async { tokio::join!(writes(0), writes(1), writes(2), writes(3)) }).await;
    let mut replaced = HashMap::new();
    [a, b, c, d].into_iter().flatten().for_each(|rev| *replaced.entry(rev).or_insert(0) += 1);
    assert!(replaced.len() > 1 && replaced.values().all(|count| *count == 1), "a record was replaced twice");
    assert!(proxy.plan.connections.load(Ordering::SeqCst) > 3, "connections were cut");
    let direct = server.store();
    for writer in 0..4 {
        let expected = (1..=40u64).map(|seq| (seq, seq.to_string().into())).collect();
        let read = direct.log().read(&format!("log/{writer}"), 0, 1 << 20).await.unwrap();
        assert_eq!(read, Read::Entries { entries: expected, next: 41 });
    }
}

/// Row S2: full, read-only, and other moments.
#[tokio::test]
#[ignore = "needs a Redis server: `cargo xtask test --only redis`"]
async fn full_and_read_only_servers_are_told_apart() {
    let server = Server::start();
    let store = server.store();
    assert!(put(&store, "a/a").await.unwrap().is_stored());
    let _: String = server.ask(&["CONFIG", "SET", "maxmemory", "1mb"]);
    let error = put(&store, "a/b").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Full, "{error}");
    assert!(store.kv().get("a/a").await.unwrap().is_some(), "reads go on");
    let _: String = server.ask(&["CONFIG", "SET", "maxmemory", "0"]);
    assert!(put(&store, "a/b").await.unwrap().is_stored());
    let _: String = server.ask(&["REPLICAOF", "127.0.0.1", "1"]);
    let error = put(&store, "a/b").await.unwrap_err();
    assert!(error.kind() == ErrorKind::Unavailable && error.to_string().contains("read only"), "{error}");
    let _: String = server.ask(&["REPLICAOF", "NO", "ONE"]);
    assert!(put(&store, "a/b").await.unwrap().is_stored());
    // Something else is where a record would be.
    let _: i64 = server.ask(&["RPUSH", "lp:{store}:kv:a/c", "x"]);
    assert_eq!(store.kv().get("a/c").await.unwrap_err().kind(), ErrorKind::Corrupt);
    let mut raw = ::redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    let () = raw.set("lp:{store}:kv:a/d", "short").unwrap();
    assert_eq!(store.kv().get("a/d").await.unwrap_err().kind(), ErrorKind::Corrupt);
}

#[tokio::test]
#[ignore = "needs a Redis server: `cargo xtask test --only redis`"]
async fn durable_writes_wait_for_the_replicas_that_are_wanted() {
    let server = Server::start();
    let store = open(RedisOptions::new(server.url()).with(|options| options.wait_replicas = 1));
    assert!(put(&store, "a/a").await.unwrap().is_stored(), "usual writes do not wait");
    let error = soon(store.durable().kv().put("a/b", "1".into(), Expect::Any, HOUR)).await.unwrap_err();
    assert!(error.is_transient() && error.to_string().contains("not yet on 1 replicas"), "{error}");
    assert!(store.durable().kv().get("a/b").await.unwrap().is_some(), "reads do not wait either");
    // Both see the same, and tell each other of changes.
    let mut watch = store.topic().watch(&["t/a"]).await.unwrap();
    store.durable().topic().publish("t/a").await.unwrap();
    assert_eq!(soon(watch.next()).await.0, "t/a");
}

/// A scan of much goes on where the last answer ended.
#[tokio::test]
#[ignore = "needs a Redis server: `cargo xtask test --only redis`"]
async fn scans_of_many_and_large_records_are_answered_in_parts() {
    let server = Server::start();
    let store = server.store();
    for at in 0..7 {
        let value = vec![b'x'; 1 << 20].into();
        assert!(store.kv().put(&format!("big/{at}"), value, Expect::Any, HOUR).await.unwrap().is_stored());
    }
    assert_eq!(store.kv().scan("big/", None, 99).await.unwrap().len(), 7);
    assert_eq!(store.kv().scan("big/", None, 6).await.unwrap().len(), 6);
    for at in 0..250 {
        let ttl = if at < 230 { MINUTE } else { HOUR };
        assert!(store.kv().put(&format!("many/{at:03}"), "1".into(), Expect::Any, ttl).await.unwrap().is_stored());
    }
    server.advance(2 * MINUTE);
    assert_eq!(store.kv().scan("many/", None, 99).await.unwrap().len(), 20);
}
