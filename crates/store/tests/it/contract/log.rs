//! Logs.

use super::cases;
use crate::world::{HOUR, MINUTE, SECOND, World};
use bytes::Bytes;
use linchpin_store::{Append, ErrorKind, Fence, Log, Read};

cases! {
    a_log_that_was_never_written_is_unknown
    entries_are_read_as_they_were_appended
    the_same_append_twice_is_one
    an_append_that_overlaps_adds_the_rest
    a_gap_is_refused_and_nothing_stored
    a_lost_log_goes_on_where_its_writer_is
    a_read_returns_what_follows
    a_read_is_bounded_in_bytes
    what_was_trimmed_cannot_be_read
    a_trim_of_everything_keeps_the_numbers
    entries_that_were_trimmed_do_not_come_back
    a_stale_fence_is_refused
    an_append_of_nothing_stops_older_writers
    a_log_expires_and_an_append_keeps_it
    a_deleted_log_is_unknown
    numbers_and_keys_are_checked
    writers_of_the_same_numbers_make_one_sequence
    another_process_reads_what_was_appended
}

fn fence(number: u64) -> Fence {
    Fence::from_number(number)
}

async fn append(log: &dyn Log, key: &str, first: u64, entries: &[&'static str]) -> Append {
    let entries = entries.iter().map(|entry| Bytes::from(*entry)).collect();
    log.append(key, first, entries, Fence::NONE, HOUR).await.unwrap()
}

/// The entries after a number as text, and the next number.
async fn read(log: &dyn Log, key: &str, after: u64) -> (Vec<(u64, String)>, u64) {
    match log.read(key, after, 1 << 20).await.unwrap() {
        Read::Entries { entries, next } => {
            let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).unwrap();
            (entries.into_iter().map(|(seq, bytes)| (seq, text(bytes))).collect(), next)
        }
        other => panic!("{other:?}"),
    }
}

fn numbered(first: u64, entries: &[&str]) -> Vec<(u64, String)> {
    (first..).zip(entries.iter().map(|entry| (*entry).to_owned())).collect()
}

async fn a_log_that_was_never_written_is_unknown(w: &World) {
    assert_eq!(w.store.log().read("log/never", 0, 99).await.unwrap(), Read::Unknown);
    w.store.log().trim("log/never", 9).await.unwrap();
    w.store.log().delete("log/never").await.unwrap();
    assert_eq!(w.store.log().read("log/never", 0, 99).await.unwrap(), Read::Unknown);
}

async fn entries_are_read_as_they_were_appended(w: &World) {
    let entries = vec![Bytes::from_iter(0..=255u8), Bytes::new(), vec![b'x'; 100_000].into(), "ü\0".into()];
    assert_eq!(w.store.log().append("log/as", 1, entries.clone(), Fence::NONE, HOUR).await.unwrap(), Append::Stored);
    let expected = (1..).zip(entries).collect();
    assert_eq!(w.store.log().read("log/as", 0, 1 << 20).await.unwrap(), Read::Entries { entries: expected, next: 5 });
}

async fn the_same_append_twice_is_one(w: &World) {
    let log = &**w.store.log();
    for _ in 0..3 {
        assert_eq!(append(log, "log/twice", 1, &["a", "b"]).await, Append::Stored);
    }
    assert_eq!(read(log, "log/twice", 0).await, (numbered(1, &["a", "b"]), 3));
}

async fn an_append_that_overlaps_adds_the_rest(w: &World) {
    let log = &**w.store.log();
    assert_eq!(append(log, "log/over", 1, &["a", "b", "c"]).await, Append::Stored);
    assert_eq!(append(log, "log/over", 2, &["x", "y", "d"]).await, Append::Stored);
    assert_eq!(append(log, "log/over", 1, &["z"]).await, Append::Stored);
    assert_eq!(read(log, "log/over", 0).await, (numbered(1, &["a", "b", "c", "d"]), 5));
}

async fn a_gap_is_refused_and_nothing_stored(w: &World) {
    let log = &**w.store.log();
    assert_eq!(append(log, "log/gap", 1, &["a"]).await, Append::Stored);
    assert_eq!(append(log, "log/gap", 3, &["c"]).await, Append::Gap { next: 2 });
    assert_eq!(append(log, "log/gap", 3, &[]).await, Append::Gap { next: 2 });
    assert_eq!(read(log, "log/gap", 0).await, (numbered(1, &["a"]), 2));
}

async fn a_lost_log_goes_on_where_its_writer_is(w: &World) {
    let log = &**w.store.log();
    assert_eq!(append(log, "log/lost", 57, &["a", "b"]).await, Append::Stored);
    assert_eq!(read(log, "log/lost", 56).await, (numbered(57, &["a", "b"]), 59));
    assert_eq!(log.read("log/lost", 55, 99).await.unwrap(), Read::Trimmed { through: 56 });
}

async fn a_read_returns_what_follows(w: &World) {
    let log = &**w.store.log();
    assert_eq!(append(log, "log/after", 1, &["a", "b", "c"]).await, Append::Stored);
    assert_eq!(read(log, "log/after", 1).await, (numbered(2, &["b", "c"]), 4));
    for after in [3, 4, 1_000, u64::MAX] {
        assert_eq!(read(log, "log/after", after).await, (vec![], 4), "after {after}");
    }
}

async fn a_read_is_bounded_in_bytes(w: &World) {
    let log = &**w.store.log();
    assert_eq!(append(log, "log/bytes", 1, &["aaaa", "bb", "cc", "d"]).await, Append::Stored);
    let count = |read: Read| match read {
        Read::Entries { entries, next: 5 } => entries.len(),
        other => panic!("{other:?}"),
    };
    for (bytes_max, expected) in [(0, 1), (4, 1), (5, 1), (6, 2), (7, 2), (8, 3), (9, 4), (usize::MAX, 4)] {
        let read = log.read("log/bytes", 0, bytes_max).await.unwrap();
        assert_eq!(count(read), expected, "{bytes_max} bytes");
    }
}

async fn what_was_trimmed_cannot_be_read(w: &World) {
    let log = &**w.store.log();
    assert_eq!(append(log, "log/trim", 1, &["a", "b", "c"]).await, Append::Stored);
    log.trim("log/trim", 2).await.unwrap();
    assert_eq!(log.read("log/trim", 1, 99).await.unwrap(), Read::Trimmed { through: 2 });
    assert_eq!(read(log, "log/trim", 2).await, (numbered(3, &["c"]), 4));
    log.trim("log/trim", 1).await.unwrap();
    assert_eq!(
        log.read("log/trim", 1, 99).await.unwrap(),
        Read::Trimmed { through: 2 },
        "an older trim changes nothing"
    );
}

async fn a_trim_of_everything_keeps_the_numbers(w: &World) {
    let log = &**w.store.log();
    assert_eq!(append(log, "log/all", 1, &["a", "b"]).await, Append::Stored);
    log.trim("log/all", u64::MAX).await.unwrap();
    assert_eq!(read(log, "log/all", 2).await, (vec![], 3));
    assert_eq!(append(log, "log/all", 4, &["d"]).await, Append::Gap { next: 3 });
    assert_eq!(append(log, "log/all", 3, &["c"]).await, Append::Stored);
    assert_eq!(read(log, "log/all", 2).await, (numbered(3, &["c"]), 4));
}

async fn entries_that_were_trimmed_do_not_come_back(w: &World) {
    let log = &**w.store.log();
    assert_eq!(append(log, "log/old", 1, &["a", "b", "c"]).await, Append::Stored);
    log.trim("log/old", 2).await.unwrap();
    assert_eq!(append(log, "log/old", 1, &["a", "b", "c", "d"]).await, Append::Stored);
    assert_eq!(log.read("log/old", 0, 99).await.unwrap(), Read::Trimmed { through: 2 });
    assert_eq!(read(log, "log/old", 2).await, (numbered(3, &["c", "d"]), 5));
}

async fn a_stale_fence_is_refused(w: &World) {
    let log = &**w.store.log();
    let by = async |number, first, entry: &'static str| {
        log.append("log/fence", first, vec![entry.into()], fence(number), HOUR).await.unwrap()
    };
    assert_eq!(by(5, 1, "a").await, Append::Stored);
    assert_eq!(by(5, 2, "b").await, Append::Stored);
    assert_eq!(by(7, 3, "c").await, Append::Stored);
    assert_eq!(by(5, 4, "x").await, Append::Stale(fence(7)));
    assert_eq!(by(5, 3, "c").await, Append::Stale(fence(7)), "also what would change nothing");
    assert_eq!(by(6, 9, "x").await, Append::Stale(fence(7)), "before its gap is looked at");
    assert_eq!(read(log, "log/fence", 0).await, (numbered(1, &["a", "b", "c"]), 4));
    // As large as fences are: the time in milliseconds.
    let (old, new) = (fence(1_790_000_000_123), fence(1_790_000_000_124));
    assert_eq!(log.append("log/fence", 4, vec![], new, HOUR).await.unwrap(), Append::Stored);
    assert_eq!(log.append("log/fence", 4, vec![], old, HOUR).await.unwrap(), Append::Stale(new));
}

async fn an_append_of_nothing_stops_older_writers(w: &World) {
    let log = &**w.store.log();
    assert_eq!(log.append("log/stop", 1, vec!["a".into()], fence(1), HOUR).await.unwrap(), Append::Stored);
    assert_eq!(log.append("log/stop", 1, vec![], fence(2), HOUR).await.unwrap(), Append::Stored);
    let late = log.append("log/stop", 2, vec!["b".into()], fence(1), HOUR).await.unwrap();
    assert_eq!(late, Append::Stale(fence(2)));
    assert_eq!(log.append("log/stop-new", 1, vec![], fence(2), HOUR).await.unwrap(), Append::Stored);
    assert_eq!(read(log, "log/stop-new", 0).await, (vec![], 1), "also where there was none");
    let late = log.append("log/stop-new", 1, vec!["b".into()], fence(1), HOUR).await.unwrap();
    assert_eq!(late, Append::Stale(fence(2)));
}

async fn a_log_expires_and_an_append_keeps_it(w: &World) {
    let log = &**w.store.log();
    let a = || vec!["a".into()];
    assert_eq!(log.append("log/ttl", 1, a(), fence(9), MINUTE).await.unwrap(), Append::Stored);
    w.advance(MINUTE - SECOND).await;
    assert_eq!(log.append("log/ttl", 2, a(), fence(9), MINUTE).await.unwrap(), Append::Stored);
    w.advance(MINUTE - SECOND).await;
    assert_eq!(read(log, "log/ttl", 0).await, (numbered(1, &["a", "a"]), 3));
    w.advance(2 * SECOND).await;
    assert_eq!(log.read("log/ttl", 0, 99).await.unwrap(), Read::Unknown);
    log.trim("log/ttl", 1).await.unwrap();
    // A new one, in which nothing of the old one is left.
    assert_eq!(append(log, "log/ttl", 1, &["b"]).await, Append::Stored);
    assert_eq!(read(log, "log/ttl", 0).await, (numbered(1, &["b"]), 2));
}

async fn a_deleted_log_is_unknown(w: &World) {
    let log = &**w.store.log();
    assert_eq!(append(log, "log/gone", 1, &["a", "b"]).await, Append::Stored);
    log.delete("log/gone").await.unwrap();
    assert_eq!(log.read("log/gone", 0, 99).await.unwrap(), Read::Unknown);
    assert_eq!(append(log, "log/gone", 1, &["c"]).await, Append::Stored);
    assert_eq!(read(log, "log/gone", 0).await, (numbered(1, &["c"]), 2));
}

async fn numbers_and_keys_are_checked(w: &World) {
    let log = &**w.store.log();
    for (key, first) in [("log/number", 0), ("log/number", u64::MAX), ("log", 1)] {
        let error = log.append(key, first, vec!["a".into()], Fence::NONE, HOUR).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{key} {first}");
    }
    assert_eq!(log.read("log", 0, 9).await.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(log.trim("log", 0).await.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(log.delete("log").await.unwrap_err().kind(), ErrorKind::Invalid);
}

async fn writers_of_the_same_numbers_make_one_sequence(w: &World) {
    let tasks = (0..8u64).map(|n| {
        let log = if n % 2 == 0 { w.store.log().clone() } else { w.other.log().clone() };
        tokio::spawn(async move {
            for seq in 1..=20u64 {
                let entry = format!("{seq}").into();
                assert_eq!(log.append("log/race", seq, vec![entry], Fence::NONE, HOUR).await.unwrap(), Append::Stored);
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let expected: Vec<_> = (1..=20).map(|seq| (seq, format!("{seq}"))).collect();
    assert_eq!(read(&**w.store.log(), "log/race", 0).await, (expected, 21));
}

async fn another_process_reads_what_was_appended(w: &World) {
    assert_eq!(append(&**w.store.log(), "log/other", 1, &["a"]).await, Append::Stored);
    assert_eq!(append(&**w.other.log(), "log/other", 2, &["b"]).await, Append::Stored);
    assert_eq!(read(&**w.store.log(), "log/other", 0).await, (numbered(1, &["a", "b"]), 3));
}
