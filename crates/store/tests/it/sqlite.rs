//! What the file store does with files of all kinds.

use crate::world::{HOUR, MINUTE};
use linchpin_store::{Claim, Clock as _, Error, ErrorKind, Expect, ManualClock, Store};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

async fn fill(store: &Store, n: usize) {
    for at in 0..n {
        let value = vec![b'v'; 1000].into();
        assert!(store.kv().put(&format!("fill/{at}"), value, Expect::Any, HOUR).await.unwrap().is_stored());
    }
}

fn refused(path: &Path) -> Error {
    Store::sqlite(path).unwrap_err()
}

#[tokio::test]
async fn records_outlive_the_store_and_its_secret_is_beside() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = Store::sqlite(&path).unwrap();
    assert_eq!(store.kind(), "sqlite");
    assert!(store.durable().sealed().put("token/a", "secret".into(), Expect::Any, HOUR).await.unwrap().is_stored());
    drop(store);
    let again = Store::sqlite(&path).unwrap();
    assert_eq!(again.sealed().get("token/a").await.unwrap().unwrap().value, "secret");
    #[cfg(unix)]
    for file in ["a.db", "a.db.key", "a.db-wal"] {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(folder.path().join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    drop(again);
    std::fs::remove_file(folder.path().join("a.db.key")).unwrap();
    let error = refused(&path);
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("a.db.key"), "{error}");
}

#[tokio::test]
async fn nothing_revives_when_the_clock_is_set_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let at = |seconds| Arc::new(ManualClock::at(Duration::from_secs(seconds)));
    let clock = at(1_000_000);
    let store = Store::builder().clock(clock.clone()).sqlite(&path).unwrap();
    assert!(store.kv().put("a/a", "1".into(), Expect::Any, MINUTE).await.unwrap().is_stored());
    clock.advance(2 * MINUTE);
    assert!(store.kv().put("a/b", "1".into(), Expect::Any, MINUTE).await.unwrap().is_stored());
    assert!(clock.now() > Duration::from_secs(1_000_000));
    drop(store);
    let back = Store::builder().clock(at(1_000_000)).sqlite(&path).unwrap();
    assert_eq!(back.kv().get("a/a").await.unwrap(), None);
    assert!(back.kv().get("a/b").await.unwrap().is_some());
    let Claim::Held(fence) = back.lease().claim("a/l", "a", MINUTE).await.unwrap() else { panic!() };
    assert!(fence.number() >= 1_000_120_000);
}

#[tokio::test]
async fn a_damaged_file_is_refused_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let (path, broken) = (folder.path().join("a.db"), folder.path().join("b.db"));
    let store = Store::sqlite(&path).unwrap();
    fill(&store, 100).await;
    drop(store);
    // The last connection's end moved everything into one file; that is waited for. Two connections that
    // close at the same moment may both leave it: then another one is opened and closed.
    for round in 1.. {
        tokio::time::sleep(Duration::from_millis(2)).await;
        if !folder.path().join("a.db-wal").exists() {
            break;
        }
        if round % 250 == 0 {
            drop(Store::sqlite(&path).unwrap());
        }
    }
    let whole = std::fs::read(&path).unwrap();
    let mut changed = whole.clone();
    changed[4096..12_288].fill(0x5a);
    let cases = [
        ("truncated", whole[..whole.len() / 2].to_vec()),
        ("cut in its head", whole[..50].to_vec()),
        ("overwritten", changed),
    ];
    for (what, bytes) in cases {
        std::fs::write(&broken, &bytes).unwrap();
        let error = refused(&broken);
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
        assert!(
            error.to_string().contains("b.db") && error.to_string().contains("restore a backup"),
            "{what}: {error}"
        );
        assert_eq!(std::fs::read(&broken).unwrap(), bytes, "{what}: it is left as it is");
    }
    std::fs::write(&broken, "text ".repeat(1000)).unwrap();
    assert_eq!(refused(&broken).kind(), ErrorKind::Corrupt);
}

#[test]
fn other_peoples_and_newer_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    drop(Store::sqlite(&path).unwrap());
    let sql = |path: &Path, sql: &str| rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap();
    sql(&path, "PRAGMA user_version = 2");
    let error = refused(&path);
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("was written by a newer version (schema 2, this one knows 1)"), "{error}");
    let other = folder.path().join("other.db");
    sql(&other, "CREATE TABLE t (x); INSERT INTO t VALUES (1)");
    let error = refused(&other);
    assert!(error.to_string().contains("of another program"), "{error}");
}

#[test]
fn a_place_that_cannot_be_written_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path().to_owned(), folder.path().join("no/such/a.db"), "/proc/version".into()] {
        let error = refused(&path);
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_file_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = Store::sqlite(&path).unwrap();
    fill(&store, 1).await;
    let locker = rusqlite::Connection::open(&path).unwrap();
    locker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let writing = tokio::spawn({
        let store = store.clone();
        async move { store.kv().put("a/a", "1".into(), Expect::Any, HOUR).await }
    });
    // Reads go on.
    assert!(store.kv().get("fill/0").await.unwrap().is_some());
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(!writing.is_finished());
    locker.execute_batch("COMMIT").unwrap();
    assert!(writing.await.unwrap().unwrap().is_stored());
}

#[tokio::test]
async fn what_has_expired_is_deleted_from_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let clock = Arc::new(ManualClock::default());
    let store = Store::builder().clock(clock.clone()).sqlite(&path).unwrap();
    fill(&store, 20).await;
    let entries = vec!["e".into(); 20];
    let fence = linchpin_store::Fence::NONE;
    let _ = store.log().append("log/a", 1, entries, fence, HOUR).await.unwrap();
    clock.advance(2 * HOUR);
    fill(&store, 1).await;
    let count = |table: &str| -> i64 {
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.query_row(&format!("SELECT count(*) FROM {table}"), (), |row| row.get(0)).unwrap()
    };
    assert_eq!(["kv", "log", "log_entry"].map(count), [1, 0, 0]);
}
