//! Records.

use super::cases;
use crate::world::{HOUR, MINUTE, SECOND, World};
use bytes::Bytes;
use linchpin_store::{Delete, ErrorKind, Expect, KEY_BYTES_MAX, Kv, Put, Record, Rev, VALUE_BYTES_MAX};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

cases! {
    a_record_that_was_never_put_is_absent
    a_record_is_returned_as_it_was_put
    a_put_of_anything_replaces
    a_put_that_expects_nothing_happens_once
    a_put_that_expects_a_revision_happens_once
    a_put_that_expects_a_revision_of_nothing_is_refused
    every_put_makes_another_revision
    a_revision_does_not_come_back_with_its_key
    a_deletion_says_whether_there_was_something
    a_deletion_that_expects_a_revision_spares_others
    a_deletion_cannot_expect_nothing
    a_record_expires_in_time_and_not_early
    a_put_starts_the_time_anew
    a_touch_keeps_records_and_their_revisions
    a_touch_makes_no_records
    an_expired_record_is_absent_to_every_operation
    a_scan_is_ordered_by_bytes_and_paged
    a_scan_leaves_out_what_is_gone
    a_scan_takes_its_prefix_as_it_is
    a_scan_may_begin_anywhere
    keys_without_space_or_name_are_refused
    keys_and_values_of_the_greatest_length_are_kept
    longer_keys_and_values_are_refused
    a_time_to_live_of_nothing_is_refused
    a_time_to_live_of_centuries_is_kept
    one_of_many_that_expect_nothing_wins
    counters_that_compare_and_swap_add_up
    another_process_sees_what_was_written
}

async fn put(kv: &dyn Kv, key: &str, value: &'static str, expect: Expect) -> Put {
    kv.put(key, value.into(), expect, HOUR).await.unwrap()
}

async fn stored(kv: &dyn Kv, key: &str, value: &'static str) -> Rev {
    match put(kv, key, value, Expect::Any).await {
        Put::Stored(rev) => rev,
        other => panic!("{other:?}"),
    }
}

async fn value(kv: &dyn Kv, key: &str) -> Option<Bytes> {
    kv.get(key).await.unwrap().map(|record| record.value)
}

async fn a_record_that_was_never_put_is_absent(w: &World) {
    assert_eq!(w.store.kv().get("never/put").await.unwrap(), None);
}

async fn a_record_is_returned_as_it_was_put(w: &World) {
    let all_bytes = Bytes::from_iter(0..=255u8);
    let long = Bytes::from(vec![b'x'; 1 << 20]);
    for (at, bytes) in [Bytes::new(), all_bytes, long, "nul \0 and ü".into()].into_iter().enumerate() {
        let key = format!("returned/{at}");
        let Put::Stored(rev) = w.store.kv().put(&key, bytes.clone(), Expect::Any, HOUR).await.unwrap() else {
            panic!("stored")
        };
        assert_eq!(w.store.kv().get(&key).await.unwrap(), Some(Record { value: bytes, rev }));
    }
}

async fn a_put_of_anything_replaces(w: &World) {
    stored(&**w.store.kv(), "replaced/a", "1").await;
    stored(&**w.store.kv(), "replaced/a", "2").await;
    assert_eq!(value(&**w.store.kv(), "replaced/a").await.unwrap(), "2");
}

async fn a_put_that_expects_nothing_happens_once(w: &World) {
    let kv = &**w.store.kv();
    let Put::Stored(rev) = put(kv, "once/a", "1", Expect::Absent).await else { panic!("nothing was there") };
    let winner = Record { value: "1".into(), rev };
    assert_eq!(put(kv, "once/a", "2", Expect::Absent).await, Put::Conflict(Some(winner)));
    assert_eq!(value(kv, "once/a").await.unwrap(), "1");
}

async fn a_put_that_expects_a_revision_happens_once(w: &World) {
    let kv = &**w.store.kv();
    let first = stored(kv, "swap/a", "1").await;
    let Put::Stored(second) = put(kv, "swap/a", "2", Expect::Rev(first)).await else { panic!("as expected") };
    let winner = Record { value: "2".into(), rev: second };
    assert_eq!(put(kv, "swap/a", "3", Expect::Rev(first)).await, Put::Conflict(Some(winner)));
    assert!(put(kv, "swap/a", "3", Expect::Rev(second)).await.is_stored());
}

async fn a_put_that_expects_a_revision_of_nothing_is_refused(w: &World) {
    let kv = &**w.store.kv();
    let rev = stored(kv, "nothing/a", "1").await;
    assert_eq!(put(kv, "nothing/b", "1", Expect::Rev(rev)).await, Put::Conflict(None));
    assert_eq!(value(kv, "nothing/b").await, None);
}

async fn every_put_makes_another_revision(w: &World) {
    let mut revs = HashSet::new();
    for _ in 0..20 {
        assert!(revs.insert(stored(&**w.store.kv(), "revs/a", "same").await));
        assert!(revs.insert(stored(&**w.other.kv(), "revs/a", "same").await));
    }
}

async fn a_revision_does_not_come_back_with_its_key(w: &World) {
    let kv = &**w.store.kv();
    let old = stored(kv, "back/a", "1").await;
    assert_eq!(kv.delete("back/a", Expect::Any).await.unwrap(), Delete::Deleted);
    let new = stored(kv, "back/a", "1").await;
    assert_eq!(
        put(kv, "back/a", "2", Expect::Rev(old)).await,
        Put::Conflict(Some(Record { value: "1".into(), rev: new }))
    );
}

async fn a_deletion_says_whether_there_was_something(w: &World) {
    let kv = &**w.store.kv();
    stored(kv, "deleted/a", "1").await;
    assert_eq!(kv.delete("deleted/a", Expect::Any).await.unwrap(), Delete::Deleted);
    assert_eq!(kv.delete("deleted/a", Expect::Any).await.unwrap(), Delete::Absent);
    assert_eq!(value(kv, "deleted/a").await, None);
}

async fn a_deletion_that_expects_a_revision_spares_others(w: &World) {
    let kv = &**w.store.kv();
    let old = stored(kv, "spared/a", "1").await;
    let new = stored(kv, "spared/a", "2").await;
    let winner = Record { value: "2".into(), rev: new };
    assert_eq!(kv.delete("spared/a", Expect::Rev(old)).await.unwrap(), Delete::Conflict(winner));
    assert_eq!(value(kv, "spared/a").await.unwrap(), "2");
    assert_eq!(kv.delete("spared/a", Expect::Rev(new)).await.unwrap(), Delete::Deleted);
    assert_eq!(kv.delete("spared/a", Expect::Rev(new)).await.unwrap(), Delete::Absent);
}

async fn a_deletion_cannot_expect_nothing(w: &World) {
    let error = w.store.kv().delete("absent/a", Expect::Absent).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

async fn a_record_expires_in_time_and_not_early(w: &World) {
    let kv = w.store.kv();
    assert!(kv.put("expires/a", "1".into(), Expect::Any, MINUTE).await.unwrap().is_stored());
    w.advance(MINUTE - SECOND).await;
    assert_eq!(value(&**kv, "expires/a").await.unwrap(), "1");
    w.advance(2 * SECOND).await;
    assert_eq!(value(&**kv, "expires/a").await, None);
}

async fn a_put_starts_the_time_anew(w: &World) {
    let kv = w.store.kv();
    for _ in 0..3 {
        assert!(kv.put("anew/a", "1".into(), Expect::Any, MINUTE).await.unwrap().is_stored());
        w.advance(MINUTE - SECOND).await;
        assert!(value(&**kv, "anew/a").await.is_some());
    }
}

async fn a_touch_keeps_records_and_their_revisions(w: &World) {
    let kv = w.store.kv();
    let Put::Stored(a) = kv.put("touched/a", "1".into(), Expect::Any, MINUTE).await.unwrap() else { panic!() };
    assert!(kv.put("touched/b", "2".into(), Expect::Any, HOUR).await.unwrap().is_stored());
    kv.touch(&["touched/a", "touched/b"], 2 * MINUTE).await.unwrap();
    w.advance(MINUTE + SECOND).await;
    assert_eq!(kv.get("touched/a").await.unwrap(), Some(Record { value: "1".into(), rev: a }), "longer");
    w.advance(MINUTE).await;
    assert_eq!(value(&**kv, "touched/b").await, None, "or shorter");
}

async fn a_touch_makes_no_records(w: &World) {
    let kv = w.store.kv();
    kv.touch(&["untouched/a"], HOUR).await.unwrap();
    kv.touch(&[], HOUR).await.unwrap();
    assert_eq!(value(&**kv, "untouched/a").await, None);
    assert!(kv.put("untouched/b", "1".into(), Expect::Any, MINUTE).await.unwrap().is_stored());
    w.advance(MINUTE + SECOND).await;
    kv.touch(&["untouched/b"], HOUR).await.unwrap();
    assert_eq!(value(&**kv, "untouched/b").await, None, "what has expired does not revive");
}

async fn an_expired_record_is_absent_to_every_operation(w: &World) {
    let kv = w.store.kv();
    let Put::Stored(rev) = kv.put("expired/a", "1".into(), Expect::Any, MINUTE).await.unwrap() else { panic!() };
    w.advance(MINUTE + SECOND).await;
    assert_eq!(put(&**kv, "expired/a", "2", Expect::Rev(rev)).await, Put::Conflict(None));
    assert_eq!(kv.delete("expired/a", Expect::Any).await.unwrap(), Delete::Absent);
    assert_eq!(kv.scan("expired/", None, 9).await.unwrap(), []);
    assert!(put(&**kv, "expired/a", "2", Expect::Absent).await.is_stored());
}

async fn keys(w: &World, prefix: &str, after: Option<&str>, n: usize) -> Vec<String> {
    let found = w.store.kv().scan(prefix, after, n).await.unwrap();
    found.into_iter().map(|(key, _)| key).collect()
}

async fn a_scan_is_ordered_by_bytes_and_paged(w: &World) {
    // Of five pages, in an order that is neither that of the letters nor that in which they were put.
    let mut names = ["a", "a/b", "a b", "A", "é", "z", "~", "00", "0", "日本", "ZZ", "a!", "aa"]
        .map(|name| format!("order/{name}"));
    for name in &names {
        stored(&**w.store.kv(), name, "1").await;
    }
    stored(&**w.store.kv(), "order2/a", "1").await;
    stored(&**w.store.kv(), "orde/a", "1").await;
    names.sort();
    assert_eq!(keys(w, "order/", None, 99).await, names);
    let mut paged: Vec<String> = Vec::new();
    loop {
        let page = keys(w, "order/", paged.last().map(String::as_str), 3).await;
        assert!(page.len() <= 3);
        if page.is_empty() {
            break;
        }
        paged.extend(page);
    }
    assert_eq!(paged, names);
    assert_eq!(keys(w, "order/", None, 0).await, [""; 0]);
    let (key, record) = w.store.kv().scan("order/z", None, 1).await.unwrap().remove(0);
    assert_eq!((key.as_str(), Some(record)), ("order/z", w.store.kv().get("order/z").await.unwrap()));
}

async fn a_scan_leaves_out_what_is_gone(w: &World) {
    let kv = w.store.kv();
    for key in ["gone/a", "gone/b", "gone/c", "gone/d"] {
        let ttl = if key == "gone/c" { MINUTE } else { HOUR };
        assert!(kv.put(key, "1".into(), Expect::Any, ttl).await.unwrap().is_stored());
    }
    assert_eq!(kv.delete("gone/b", Expect::Any).await.unwrap(), Delete::Deleted);
    w.advance(MINUTE + SECOND).await;
    assert_eq!(keys(w, "gone/", None, 9).await, ["gone/a", "gone/d"]);
    assert_eq!(keys(w, "gone/", None, 2).await, ["gone/a", "gone/d"], "a page is full although some are gone");
}

async fn a_scan_takes_its_prefix_as_it_is(w: &World) {
    for key in ["as/%a", "as/_a", "as/*a", "as/?a", "as/[ab]", "as/\\a", "as/a", "as/(x)", "as/-", "as/+\u{10ffff}x"] {
        stored(&**w.store.kv(), key, "1").await;
    }
    for prefix in ["as/%", "as/_", "as/*", "as/?", "as/[", "as/\\", "as/(", "as/-", "as/+\u{10ffff}"] {
        let found = keys(w, prefix, None, 9).await;
        assert!(found.len() == 1 && found[0].starts_with(prefix), "{prefix}: {found:?}");
    }
}

async fn a_scan_may_begin_anywhere(w: &World) {
    for key in ["from/b", "from/d"] {
        stored(&**w.store.kv(), key, "1").await;
    }
    assert_eq!(keys(w, "from/", Some("from/c"), 9).await, ["from/d"], "after what does not exist");
    assert_eq!(keys(w, "from/", Some("a/z"), 9).await, ["from/b", "from/d"], "before the prefix");
    assert_eq!(keys(w, "from/", Some("z/z"), 9).await, [""; 0], "after the prefix");
    assert_eq!(keys(w, "from/", Some("from/d"), 9).await, [""; 0], "after the last");
}

async fn keys_without_space_or_name_are_refused(w: &World) {
    let kv = w.store.kv();
    for key in ["", "a", "/", "a/", "/a", "A/a", "a b/a", "{a}/a", "ä/a"] {
        let outcomes = [
            kv.get(key).await.map(drop),
            kv.put(key, "".into(), Expect::Any, HOUR).await.map(drop),
            kv.delete(key, Expect::Any).await.map(drop),
            kv.touch(&["a/a", key], HOUR).await,
        ];
        let kinds = outcomes.map(|outcome| outcome.unwrap_err().kind());
        assert_eq!(kinds, [ErrorKind::Invalid; 4], "{key:?}");
    }
    assert_eq!(kv.scan("a", None, 1).await.unwrap_err().kind(), ErrorKind::Invalid);
}

async fn keys_and_values_of_the_greatest_length_are_kept(w: &World) {
    let key = format!("long/{}", "k".repeat(KEY_BYTES_MAX - 5));
    let long = Bytes::from(vec![7; VALUE_BYTES_MAX]);
    assert!(w.store.kv().put(&key, long.clone(), Expect::Any, HOUR).await.unwrap().is_stored());
    assert_eq!(value(&**w.store.kv(), &key).await.unwrap(), long);
    assert_eq!(w.store.kv().delete(&key, Expect::Any).await.unwrap(), Delete::Deleted);
}

async fn longer_keys_and_values_are_refused(w: &World) {
    let kv = w.store.kv();
    let key = format!("long/{}", "k".repeat(KEY_BYTES_MAX - 4));
    assert_eq!(kv.get(&key).await.unwrap_err().kind(), ErrorKind::Invalid);
    let long = Bytes::from(vec![7; VALUE_BYTES_MAX + 1]);
    let error = kv.put("long/value", long, Expect::Any, HOUR).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

async fn a_time_to_live_of_nothing_is_refused(w: &World) {
    let kv = w.store.kv();
    let none = Duration::from_micros(999);
    assert_eq!(kv.put("ttl/a", "1".into(), Expect::Any, none).await.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(kv.touch(&["ttl/a"], none).await.unwrap_err().kind(), ErrorKind::Invalid);
}

async fn a_time_to_live_of_centuries_is_kept(w: &World) {
    let kv = w.store.kv();
    assert!(kv.put("ttl/b", "1".into(), Expect::Any, Duration::MAX).await.unwrap().is_stored());
    w.advance(1000 * HOUR).await;
    assert_eq!(value(&**kv, "ttl/b").await.unwrap(), "1");
}

async fn one_of_many_that_expect_nothing_wins(w: &World) {
    let tasks = (0..32u8).map(|n| {
        let kv = if n % 2 == 0 { w.store.kv().clone() } else { w.other.kv().clone() };
        tokio::spawn(async move { kv.put("race/a", vec![n].into(), Expect::Absent, HOUR).await.unwrap() })
    });
    let mut outcomes = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        outcomes.push(task.await.unwrap());
    }
    let winner = w.store.kv().get("race/a").await.unwrap();
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_stored()).count(), 1);
    let losers = outcomes.into_iter().filter(|outcome| !outcome.is_stored());
    losers.for_each(|outcome| assert_eq!(outcome, Put::Conflict(winner.clone())));
}

async fn counters_that_compare_and_swap_add_up(w: &World) {
    stored(&**w.store.kv(), "count/a", "0").await;
    let tasks = (0..8).map(|n| {
        let kv: Arc<dyn Kv> = if n % 2 == 0 { w.store.kv().clone() } else { w.other.kv().clone() };
        tokio::spawn(async move {
            for _ in 0..8 {
                let mut now = kv.get("count/a").await.unwrap().unwrap();
                loop {
                    let count: u32 = std::str::from_utf8(&now.value).unwrap().parse().unwrap();
                    let next = (count + 1).to_string().into();
                    match kv.put("count/a", next, Expect::Rev(now.rev), HOUR).await.unwrap() {
                        Put::Stored(_) => break,
                        Put::Conflict(winner) => now = winner.unwrap(),
                    }
                }
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    assert_eq!(value(&**w.store.kv(), "count/a").await.unwrap(), "64");
}

async fn another_process_sees_what_was_written(w: &World) {
    stored(&**w.store.kv(), "seen/a", "1").await;
    assert_eq!(value(&**w.other.kv(), "seen/a").await.unwrap(), "1");
    assert_eq!(w.other.kv().delete("seen/a", Expect::Any).await.unwrap(), Delete::Deleted);
    assert_eq!(value(&**w.store.kv(), "seen/a").await, None);
}
