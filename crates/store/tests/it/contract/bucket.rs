//! Token buckets.

use super::cases;
use crate::world::{HOUR, MINUTE, SECOND, World};
use linchpin_store::{Bucket, ErrorKind, Rate, Take};
use std::time::{Duration, Instant};

cases! {
    a_burst_is_taken_at_once_and_no_more
    the_time_to_wait_is_right
    a_bucket_fills_to_its_burst_and_no_further
    a_cost_is_taken_as_a_whole_or_not_at_all
    what_is_refused_takes_nothing
    a_cost_that_never_fits_is_refused
    keys_have_buckets_of_their_own
    slow_and_fast_rates_are_kept
    many_at_once_get_no_more_than_the_burst
    rates_of_nothing_are_refused
}

fn rate(count: u32, per: Duration, burst: u32) -> Rate {
    Rate::new(count, per, burst).unwrap()
}

async fn take(bucket: &dyn Bucket, key: &str, cost: u32, rate: Rate) -> Take {
    bucket.take(key, cost, rate).await.unwrap()
}

/// How many can be taken now.
async fn drained(bucket: &dyn Bucket, key: &str, rate: Rate) -> usize {
    let mut taken = 0;
    while take(bucket, key, 1, rate).await == Take::Ok {
        taken += 1;
    }
    taken
}

async fn a_burst_is_taken_at_once_and_no_more(w: &World) {
    assert_eq!(drained(&**w.store.bucket(), "rate/burst", rate(1, HOUR, 5)).await, 5);
}

async fn the_time_to_wait_is_right(w: &World) {
    let (bucket, rate) = (&**w.store.bucket(), rate(1, HOUR, 1));
    assert_eq!(take(bucket, "rate/wait", 1, rate).await, Take::Ok);
    let Take::RetryAfter(wait) = take(bucket, "rate/wait", 1, rate).await else { panic!("empty") };
    assert!(wait <= HOUR && wait > HOUR - MINUTE, "{wait:?}");
    w.advance(wait - MINUTE).await;
    assert!(matches!(take(bucket, "rate/wait", 1, rate).await, Take::RetryAfter(wait) if wait <= MINUTE));
    w.advance(MINUTE).await;
    assert_eq!(take(bucket, "rate/wait", 1, rate).await, Take::Ok);
}

async fn a_bucket_fills_to_its_burst_and_no_further(w: &World) {
    let (bucket, rate) = (&**w.store.bucket(), rate(1, HOUR, 4));
    assert_eq!(drained(bucket, "rate/fills", rate).await, 4);
    w.advance(2 * HOUR + MINUTE).await;
    assert_eq!(drained(bucket, "rate/fills", rate).await, 2);
    w.advance(1000 * HOUR).await;
    assert_eq!(drained(bucket, "rate/fills", rate).await, 4);
}

async fn a_cost_is_taken_as_a_whole_or_not_at_all(w: &World) {
    let (bucket, rate) = (&**w.store.bucket(), rate(1, HOUR, 5));
    assert_eq!(take(bucket, "rate/cost", 3, rate).await, Take::Ok);
    assert!(matches!(take(bucket, "rate/cost", 3, rate).await, Take::RetryAfter(wait) if wait <= HOUR));
    assert_eq!(take(bucket, "rate/cost", 0, rate).await, Take::Ok);
    assert_eq!(take(bucket, "rate/cost", 2, rate).await, Take::Ok);
}

async fn what_is_refused_takes_nothing(w: &World) {
    let (bucket, rate) = (&**w.store.bucket(), rate(1, HOUR, 2));
    assert_eq!(drained(bucket, "rate/refused", rate).await, 2);
    for _ in 0..50 {
        assert_ne!(take(bucket, "rate/refused", 1, rate).await, Take::Ok);
    }
    w.advance(HOUR).await;
    assert_eq!(take(bucket, "rate/refused", 1, rate).await, Take::Ok);
}

async fn a_cost_that_never_fits_is_refused(w: &World) {
    let bucket = w.store.bucket();
    assert_eq!(bucket.take("rate/never", 3, rate(1, HOUR, 2)).await.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(bucket.take("rate", 1, rate(1, HOUR, 2)).await.unwrap_err().kind(), ErrorKind::Invalid);
}

async fn keys_have_buckets_of_their_own(w: &World) {
    let rate = rate(1, HOUR, 1);
    assert_eq!(take(&**w.store.bucket(), "rate/own-a", 1, rate).await, Take::Ok);
    assert_eq!(take(&**w.store.bucket(), "rate/own-b", 1, rate).await, Take::Ok);
    assert_ne!(take(&**w.other.bucket(), "rate/own-a", 1, rate).await, Take::Ok, "and every process has the same");
}

async fn slow_and_fast_rates_are_kept(w: &World) {
    let (bucket, year) = (&**w.store.bucket(), 365 * 24 * HOUR);
    let slow = rate(1, year, 2);
    assert_eq!(drained(bucket, "rate/slow", slow).await, 2);
    w.advance(year / 2).await;
    assert_eq!(drained(bucket, "rate/slow", slow).await, 0);
    w.advance(year / 2 + SECOND).await;
    assert_eq!(drained(bucket, "rate/slow", slow).await, 1);

    let (fast, started) = (rate(1_000_000, SECOND, 100), Instant::now());
    let mut taken = 0;
    for _ in 0..200 {
        taken += u32::from(take(bucket, "rate/fast", 1, fast).await == Take::Ok);
    }
    assert!(taken >= 100 && f64::from(taken) <= 101.0 + started.elapsed().as_secs_f64() * 1e6, "{taken}");
}

async fn many_at_once_get_no_more_than_the_burst(w: &World) {
    let tasks = (0..64).map(|n| {
        let bucket = if n % 2 == 0 { w.store.bucket().clone() } else { w.other.bucket().clone() };
        tokio::spawn(async move { bucket.take("rate/many", 1, rate(1, HOUR, 10)).await.unwrap() })
    });
    let mut taken = 0;
    for task in tasks.collect::<Vec<_>>() {
        taken += usize::from(task.await.unwrap() == Take::Ok);
    }
    assert_eq!(taken, 10);
}

async fn rates_of_nothing_are_refused(_: &World) {
    for (count, per, burst) in [(0, SECOND, 1), (1, Duration::ZERO, 1), (1, SECOND, 0)] {
        assert_eq!(Rate::new(count, per, burst).unwrap_err().kind(), ErrorKind::Invalid);
    }
}
