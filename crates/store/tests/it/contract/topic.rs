//! Topics.

use super::cases;
use crate::world::World;
use linchpin_store::{ErrorKind, Watch};
use std::collections::HashSet;
use std::time::Duration;

cases! {
    what_was_published_before_is_no_news
    publications_that_nobody_saw_are_one
    every_publication_is_another_version
    all_topics_of_a_watch_are_reported
    other_topics_are_not_reported
    every_watch_is_woken
    a_busy_topic_does_not_hide_others
    a_publication_while_nobody_waits_is_not_lost
    what_another_process_publishes_is_reported
    a_waiting_watch_is_woken_by_another_process
    topics_are_checked
}

/// A watch that has nothing to say for a moment. Only what must not be there is looked for so.
async fn is_silent(watch: &mut Watch) -> bool {
    tokio::time::timeout(Duration::from_millis(20), watch.next()).await.is_err()
}

async fn publish(w: &World, topic: &str) {
    w.store.topic().publish(topic).await.unwrap();
}

async fn watch(w: &World, topics: &[&str]) -> Watch {
    w.store.topic().watch(topics).await.unwrap()
}

async fn what_was_published_before_is_no_news(w: &World) {
    publish(w, "topic/before").await;
    let mut watch = watch(w, &["topic/before", "topic/never"]).await;
    assert!(is_silent(&mut watch).await);
}

async fn publications_that_nobody_saw_are_one(w: &World) {
    let mut watch = watch(w, &["topic/one"]).await;
    for _ in 0..10 {
        publish(w, "topic/one").await;
    }
    // The last one may be reported alone, if the store tells late.
    let (first, version) = watch.next().await;
    assert_eq!(first, "topic/one");
    while let Ok((_, newer)) = tokio::time::timeout(Duration::from_millis(20), watch.next()).await {
        assert!(newer > version);
    }
    publish(w, "topic/one").await;
    assert!(watch.next().await.1 > version);
}

async fn every_publication_is_another_version(w: &World) {
    let mut watch = watch(w, &["topic/versions"]).await;
    let mut versions = HashSet::new();
    for _ in 0..10 {
        publish(w, "topic/versions").await;
        assert!(versions.insert(watch.next().await.1));
    }
}

async fn all_topics_of_a_watch_are_reported(w: &World) {
    let topics = ["topic/all-a", "topic/all-b", "topic/all-c"];
    let mut watch = watch(w, &topics).await;
    for topic in topics {
        publish(w, topic).await;
    }
    let mut seen = HashSet::new();
    while seen.len() < 3 {
        seen.insert(watch.next().await.0);
    }
    assert!(topics.iter().all(|topic| seen.contains(*topic)));
}

async fn other_topics_are_not_reported(w: &World) {
    let mut watch = watch(w, &["topic/mine"]).await;
    publish(w, "topic/mine-not").await;
    publish(w, "other/mine").await;
    publish(w, "topic/mine").await;
    assert_eq!(watch.next().await.0, "topic/mine");
    assert!(is_silent(&mut watch).await);
}

async fn every_watch_is_woken(w: &World) {
    let mut watches = [watch(w, &["topic/every"]).await, watch(w, &["topic/every", "topic/x"]).await];
    drop(watch(w, &["topic/every"]).await);
    publish(w, "topic/every").await;
    for watch in &mut watches {
        assert_eq!(watch.next().await.0, "topic/every");
    }
}

async fn a_busy_topic_does_not_hide_others(w: &World) {
    let mut watch = watch(w, &["topic/busy", "topic/rare"]).await;
    publish(w, "topic/rare").await;
    let mut reported = Vec::new();
    while !reported.contains(&"topic/rare".to_owned()) {
        publish(w, "topic/busy").await;
        reported.push(watch.next().await.0);
        assert!(reported.len() < 100, "hidden");
    }
}

async fn a_publication_while_nobody_waits_is_not_lost(w: &World) {
    let mut watch = watch(w, &["topic/while"]).await;
    assert!(is_silent(&mut watch).await, "a wait that was given up");
    publish(w, "topic/while").await;
    assert_eq!(watch.next().await.0, "topic/while");
}

async fn what_another_process_publishes_is_reported(w: &World) {
    let mut watch = watch(w, &["topic/other"]).await;
    w.other.topic().publish("topic/other").await.unwrap();
    assert_eq!(watch.next().await.0, "topic/other");
}

async fn a_waiting_watch_is_woken_by_another_process(w: &World) {
    let mut watch = watch(w, &["topic/waiting"]).await;
    let waiting = tokio::spawn(async move { watch.next().await.0 });
    tokio::task::yield_now().await;
    w.other.topic().publish("topic/waiting").await.unwrap();
    assert_eq!(waiting.await.unwrap(), "topic/waiting");
}

async fn topics_are_checked(w: &World) {
    assert_eq!(w.store.topic().publish("topic").await.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(w.store.topic().watch(&["topic/a", "b"]).await.map(drop).unwrap_err().kind(), ErrorKind::Invalid);
}
