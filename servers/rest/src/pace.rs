//! Turns: requests with one key begin no closer to each other than the API allows.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// When the next request may begin. A crate for rate limits would be larger than this, and goes by a clock of its own.
#[derive(Debug, Default)]
pub(crate) struct Pace(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    next: Option<Instant>,
    /// The API said that nothing of a class is left until then; without a class, nothing at all.
    closed: HashMap<Option<&'static str>, Instant>,
}

impl Pace {
    /// The one of this key: servers of one process that share a key share its limit.
    pub(crate) fn of(service: &str, base: &str, key: &str) -> Arc<Pace> {
        static ALL: LazyLock<Mutex<HashMap<u64, Weak<Pace>>>> = LazyLock::new(Mutex::default);
        let mut hasher = DefaultHasher::new();
        (service, base, key).hash(&mut hasher);
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, pace| pace.strong_count() > 0);
        let known = all.get(&hasher.finish()).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let pace = Arc::new(Pace::default());
            all.insert(hasher.finish(), Arc::downgrade(&pace));
            pace
        })
    }

    /// Waits for a turn. If that would take more than half of the time that is left, nothing is waited for, and the error is
    /// how long it would have taken.
    pub(crate) async fn turn(&self, class: &'static str, interval: Duration, by: Instant) -> Result<(), Duration> {
        let mut mine = None;
        loop {
            let at = {
                let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                let now = Instant::now();
                let closed = state.closed.get(&None).max(state.closed.get(&Some(class))).copied();
                let closed = closed.filter(|closed| *closed > now);
                // A turn that has become too early is given up for a new one, behind those that wait already.
                mine = mine.filter(|mine| closed.is_none_or(|closed| *mine >= closed));
                let turn = mine.or(state.next).unwrap_or(now).max(now);
                let at = turn.max(closed.unwrap_or(now));
                if at - now > by.saturating_duration_since(now) / 2 {
                    return Err(at - now);
                }
                // While its class is closed a request takes no turn: those of other classes do not wait behind it.
                if at == turn {
                    if mine.is_none() && !interval.is_zero() {
                        state.next = Some(at + interval);
                    }
                    mine = Some(at);
                }
                if at == now {
                    return Ok(());
                }
                at
            };
            // Meanwhile the API may have said that nothing is left: look again.
            sleep_until(at).await;
        }
    }

    /// Lets nothing of this class begin for so long; without a class, nothing at all.
    pub(crate) fn close(&self, class: Option<&'static str>, time: Duration) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A server's word may be any number.
        let until = Instant::now().checked_add(time.min(Duration::from_secs(32 * 24 * 3_600)));
        if let Some(until) = until {
            let closed = state.closed.entry(class).or_insert(until);
            *closed = until.max(*closed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn turns_are_an_interval_apart_and_nobody_waits_in_vain() {
        let (pace, begin) = (Arc::new(Pace::default()), Instant::now());
        let by = begin + 9 * SECOND;
        let all: Vec<_> = (0..8)
            .map(|_| {
                let pace = pace.clone();
                tokio::spawn(async move { pace.turn("", SECOND, by).await.map(|()| Instant::now()) })
            })
            .collect();
        let mut began = Vec::new();
        for one in all {
            began.push(one.await.unwrap().map(|at| at - begin));
        }
        let want: Vec<Result<Duration, Duration>> =
            (0..8).map(|n| if n < 5 { Ok(n * SECOND) } else { Err(5 * SECOND) }).collect();
        assert_eq!(began, want);
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_wait_begin_an_interval_apart_after_a_pause_too() {
        let (pace, begin) = (Arc::new(Pace::default()), Instant::now());
        let all: Vec<_> = (0..4)
            .map(|_| {
                let pace = pace.clone();
                tokio::spawn(async move { pace.turn("", SECOND, begin + 60 * SECOND).await.map(|()| Instant::now()) })
            })
            .collect();
        tokio::time::sleep(SECOND / 4).await;
        pace.close(None, 5 * SECOND);
        let mut began = Vec::new();
        for one in all {
            began.push(one.await.unwrap().unwrap() - begin);
        }
        began.sort();
        assert!(began[0] < SECOND && began[1] >= 5 * SECOND, "{began:?}");
        assert!(began.windows(2).all(|pair| pair[1] - pair[0] >= SECOND), "{began:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn while_nothing_is_left_nothing_begins() {
        let (pace, begin) = (Pace::default(), Instant::now());
        pace.close(None, 3 * SECOND);
        pace.close(None, SECOND);
        assert_eq!(pace.turn("", Duration::ZERO, begin + SECOND).await, Err(3 * SECOND));
        pace.turn("", Duration::ZERO, begin + 60 * SECOND).await.unwrap();
        assert_eq!(begin.elapsed(), 3 * SECOND);
        pace.turn("", Duration::ZERO, begin + 60 * SECOND).await.unwrap();
        assert_eq!(begin.elapsed(), 3 * SECOND);
        pace.close(None, Duration::MAX);
        assert!(pace.turn("", Duration::ZERO, begin + 60 * SECOND).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn what_one_class_has_used_up_another_does_not_wait_for() {
        let (pace, begin) = (Arc::new(Pace::default()), Instant::now());
        pace.close(Some("search"), 20 * SECOND);
        let by = begin + 60 * SECOND;
        let waits = pace.clone();
        let search = tokio::spawn(async move { waits.turn("search", SECOND, by).await });
        tokio::task::yield_now().await;
        pace.turn("other", SECOND, by).await.unwrap();
        pace.turn("other", SECOND, by).await.unwrap();
        assert_eq!(begin.elapsed(), SECOND);
        search.await.unwrap().unwrap();
        assert_eq!(begin.elapsed(), 20 * SECOND);
        pace.close(None, 5 * SECOND);
        assert_eq!(pace.turn("other", SECOND, Instant::now() + SECOND).await, Err(5 * SECOND));
    }

    #[test]
    fn one_key_has_one_pace() {
        let one = Pace::of("s", "b", "key");
        assert!(Arc::ptr_eq(&one, &Pace::of("s", "b", "key")));
        assert!(!Arc::ptr_eq(&one, &Pace::of("s", "b", "other")));
    }
}
