//! Random operations against a model, and random interleavings of several processes.

use crate::world::{SECOND, World};
use linchpin_store::{Append, Claim, Delete, Expect, Fence, Put, Read, Rev, Take};
use proptest::prelude::*;
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

/// Operations are on three keys; times are in seconds.
#[derive(Clone, Debug)]
enum Op {
    Put(u8, u8, Wanted, u64),
    Delete(u8, Wanted),
    Touch(u8, u64),
    Append(u8, u64, u8, u64, u64),
    Trim(u8, u64),
    Claim(u8, u8, u64),
    Renew(u8, u64),
    Release(u8),
    Advance(u64),
}

#[derive(Clone, Copy, Debug)]
enum Wanted {
    Any,
    Absent,
    /// The newest revision that the operations have seen of the key.
    Newest,
    /// The first one.
    Oldest,
}

fn op() -> impl Strategy<Value = Op> {
    let wanted = prop_oneof![Just(Wanted::Any), Just(Wanted::Absent), Just(Wanted::Newest), Just(Wanted::Oldest)];
    let (key, ttl) = (0..3u8, 1..40u64);
    prop_oneof![
        (key.clone(), any::<u8>(), wanted.clone(), ttl.clone()).prop_map(|(k, v, w, t)| Op::Put(k, v, w, t)),
        (key.clone(), wanted).prop_map(|(k, w)| Op::Delete(k, w)),
        (key.clone(), ttl.clone()).prop_map(|(k, t)| Op::Touch(k, t)),
        (key.clone(), 1..9u64, 0..4u8, 0..3u64, ttl.clone()).prop_map(|(k, s, n, f, t)| Op::Append(k, s, n, f, t)),
        (key.clone(), 0..9u64).prop_map(|(k, s)| Op::Trim(k, s)),
        (key.clone(), 0..3u8, ttl.clone()).prop_map(|(k, o, t)| Op::Claim(k, o, t)),
        (key.clone(), ttl).prop_map(|(k, t)| Op::Renew(k, t)),
        key.prop_map(Op::Release),
        (1..30u64).prop_map(Op::Advance),
    ]
}

/// What must be in the store. Times are even and steps are odd, so that nothing expires at the very moment of a look.
#[derive(Default)]
struct Model {
    now: u64,
    records: BTreeMap<u8, (u8, Rev, u64)>,
    revs: BTreeMap<u8, Vec<Rev>>,
    /// First, entries, fence, until.
    logs: BTreeMap<u8, (u64, Vec<u64>, u64, u64)>,
    leases: BTreeMap<u8, (u8, Fence, u64)>,
    fences: BTreeMap<u8, Fence>,
}

impl Model {
    fn advance(&mut self, by: u64) {
        self.now += by;
        self.records.retain(|_, (_, _, until)| *until > self.now);
        self.logs.retain(|_, (_, _, _, until)| *until > self.now);
        self.leases.retain(|_, (_, _, until)| *until > self.now);
    }

    fn expect(&self, key: u8, wanted: Wanted) -> Expect {
        let revs = self.revs.get(&key).map(Vec::as_slice).unwrap_or_default();
        match (wanted, revs) {
            (Wanted::Any, _) => Expect::Any,
            (Wanted::Newest, [.., newest]) => Expect::Rev(*newest),
            (Wanted::Oldest, [oldest, ..]) => Expect::Rev(*oldest),
            _ => Expect::Absent,
        }
    }

    fn meets(&self, key: u8, expect: Expect) -> bool {
        match (expect, self.records.get(&key)) {
            (Expect::Any, _) | (Expect::Absent, None) => true,
            (Expect::Rev(rev), Some((_, found, _))) => rev == *found,
            _ => false,
        }
    }
}

/// Does one operation to both, and compares the outcomes.
async fn step(w: &World, model: &mut Model, run: u64, op: &Op) {
    let name = |key: u8| format!("model{run}/{key}");
    let until = |ttl: u64| model.now + 2 * ttl;
    let secs = |ttl: u64| 2 * u32::try_from(ttl).unwrap() * SECOND;
    match *op {
        Op::Put(key, value, wanted, ttl) => {
            let expect = model.expect(key, wanted);
            let put = w.store.kv().put(&name(key), vec![value].into(), expect, secs(ttl)).await.unwrap();
            match put {
                Put::Stored(rev) => {
                    assert!(model.meets(key, expect), "{op:?}");
                    let until = until(ttl);
                    model.records.insert(key, (value, rev, until));
                    model.revs.entry(key).or_default().push(rev);
                }
                Put::Conflict(found) => {
                    assert!(!model.meets(key, expect), "{op:?}");
                    let known = model.records.get(&key).map(|(_, rev, _)| *rev);
                    assert_eq!(found.map(|record| record.rev), known);
                }
            }
        }
        Op::Delete(key, wanted) => {
            let expect = model.expect(key, wanted);
            if expect == Expect::Absent {
                return;
            }
            let found = model.records.contains_key(&key);
            match w.store.kv().delete(&name(key), expect).await.unwrap() {
                Delete::Absent => assert!(!found, "{op:?}"),
                Delete::Deleted => assert!(found && model.meets(key, expect), "{op:?}"),
                Delete::Conflict(record) => {
                    assert!(!model.meets(key, expect), "{op:?}");
                    assert_eq!(record.rev, model.records[&key].1);
                    return;
                }
            }
            model.records.remove(&key);
        }
        Op::Touch(key, ttl) => {
            w.store.kv().touch(&[&name(key)], secs(ttl)).await.unwrap();
            let until = until(ttl);
            model.records.entry(key).and_modify(|record| record.2 = until);
        }
        Op::Append(key, first, n, fence, ttl) => {
            let entries = (0..u64::from(n)).map(|at| (first + at).to_string().into()).collect();
            let fence_of = Fence::from_number(fence);
            let outcome = w.store.log().append(&name(key), first, entries, fence_of, secs(ttl)).await.unwrap();
            let until = until(ttl);
            let log = model.logs.entry(key).or_insert((first, Vec::new(), fence, until));
            let next = log.0 + log.1.len() as u64;
            let expected = match () {
                () if fence < log.2 => Append::Stale(Fence::from_number(log.2)),
                () if first > next => Append::Gap { next },
                () => {
                    log.1.extend((first..first + u64::from(n)).filter(|seq| *seq >= next));
                    (log.2, log.3) = (fence, until);
                    Append::Stored
                }
            };
            assert_eq!(outcome, expected, "{op:?}");
        }
        Op::Trim(key, through) => {
            w.store.log().trim(&name(key), through).await.unwrap();
            if let Some(log) = model.logs.get_mut(&key) {
                let gone = (through + 1).clamp(log.0, log.0 + log.1.len() as u64) - log.0;
                log.1.drain(..usize::try_from(gone).unwrap());
                log.0 += gone;
            }
        }
        Op::Claim(key, owner, ttl) => {
            let claim = w.store.lease().claim(&name(key), &owner.to_string(), secs(ttl)).await.unwrap();
            match (claim, model.leases.get(&key)) {
                (Claim::Held(fence), Some((holder, known, _))) => assert_eq!((owner, fence), (*holder, *known)),
                (Claim::Held(fence), None) => {
                    assert!(model.fences.get(&key).is_none_or(|last| fence > *last), "{op:?}");
                    model.fences.insert(key, fence);
                }
                (Claim::Busy { owner: holder, .. }, known) => {
                    assert_eq!(Some(holder), known.map(|(holder, _, _)| holder.to_string()));
                    return;
                }
            }
            let until = until(ttl);
            model.leases.insert(key, (owner, model.fences[&key], until));
        }
        Op::Renew(key, ttl) => {
            let Some(fence) = model.fences.get(&key).copied() else { return };
            let is_held = w.store.lease().renew(&name(key), fence, secs(ttl)).await.unwrap();
            assert_eq!(is_held, model.leases.contains_key(&key), "{op:?}");
            let until = until(ttl);
            model.leases.entry(key).and_modify(|lease| lease.2 = until);
        }
        Op::Release(key) => {
            let Some(fence) = model.fences.get(&key).copied() else { return };
            let is_held = w.store.lease().release(&name(key), fence).await.unwrap();
            assert_eq!(is_held, model.leases.remove(&key).is_some(), "{op:?}");
        }
        Op::Advance(by) => {
            w.advance((2 * u32::try_from(by).unwrap() - 1) * SECOND).await;
            model.advance(2 * by - 1);
            // Odd no more.
            w.advance(Duration::from_secs(model.now % 2)).await;
            model.advance(model.now % 2);
        }
    }
}

/// Compares everything that is there.
async fn compare(w: &World, model: &Model, run: u64) {
    let found = w.other.kv().scan(&format!("model{run}/"), None, 9).await.unwrap();
    let found: Vec<_> = found.into_iter().map(|(key, record)| (key, record.value, record.rev)).collect();
    let known =
        model.records.iter().map(|(key, (value, rev, _))| (format!("model{run}/{key}"), vec![*value].into(), *rev));
    assert_eq!(found, known.collect::<Vec<_>>());
    for key in 0..3 {
        let name = format!("model{run}/{key}");
        let first = model.logs.get(&key).map_or(1, |log| log.0);
        let read = w.other.log().read(&name, first - 1, 1 << 20).await.unwrap();
        let known = model.logs.get(&key).map_or(Read::Unknown, |(first, entries, _, _)| {
            let texts = entries.iter().map(|seq| seq.to_string().into());
            Read::Entries { entries: (*first..).zip(texts).collect(), next: first + entries.len() as u64 }
        });
        assert_eq!(read, known);
        let holder = w.other.lease().holder(&name).await.unwrap();
        assert_eq!(holder, model.leases.get(&key).map(|(owner, fence, _)| (owner.to_string(), *fence)));
    }
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 200, ..ProptestConfig::default() }
}

/// Random operations, one after the other.
fn behaves_as_the_model(w: &World, cases: u32) {
    let (runtime, runs) = (runtime(), std::cell::Cell::new(0));
    let mut runner = proptest::test_runner::TestRunner::new(config(cases));
    let done = runner.run(&prop::collection::vec(op(), 1..40), |ops| {
        runs.set(runs.get() + 1);
        runtime.block_on(async {
            let mut model = Model::default();
            for op in &ops {
                step(w, &mut model, runs.get(), op).await;
            }
            compare(w, &model, runs.get()).await;
        });
        Ok(())
    });
    done.unwrap();
}

/// What one of several tasks does to the one key.
#[derive(Clone, Copy, Debug)]
enum Move {
    Get,
    PutAny,
    PutAbsent,
    /// Expects the revision that this task saw last.
    Swap,
    DeleteSeen,
}

/// What happened: a revision that was stored, and the one that it replaced, if that was expected.
#[derive(Default)]
struct History {
    stored: Vec<Rev>,
    consumed: Vec<Rev>,
    seen: Vec<Rev>,
}

async fn moves(w: &World, second: bool, moves: Vec<Move>, key: &str) -> History {
    let kv = if second { w.other.kv() } else { w.store.kv() };
    let (mut history, mut last) = (History::default(), None);
    let hour = 3600 * SECOND;
    for step in moves {
        let put = match (step, last) {
            (Move::Get, _) => {
                last = kv.get(key).await.unwrap().map(|record| record.rev);
                history.seen.extend(last);
                continue;
            }
            (Move::PutAny, _) => kv.put(key, "x".into(), Expect::Any, hour).await.unwrap(),
            (Move::Swap, Some(rev)) => {
                let put = kv.put(key, "x".into(), Expect::Rev(rev), hour).await.unwrap();
                history.consumed.extend(put.is_stored().then_some(rev));
                put
            }
            (Move::DeleteSeen, Some(rev)) => {
                let deleted = kv.delete(key, Expect::Rev(rev)).await.unwrap();
                history.consumed.extend((deleted == Delete::Deleted).then_some(rev));
                continue;
            }
            _ => kv.put(key, "x".into(), Expect::Absent, hour).await.unwrap(),
        };
        match put {
            Put::Stored(rev) => {
                history.stored.push(rev);
                last = Some(rev);
            }
            Put::Conflict(found) => {
                last = found.map(|record| record.rev);
                history.seen.extend(last);
            }
        }
    }
    history
}

/// Four tasks on one key: each revision is replaced or deleted by one of them at most, and only what was stored is seen.
fn swaps_are_atomic(w: &World, cases: u32) {
    let (runtime, runs) = (runtime(), std::cell::Cell::new(0));
    let a_move = prop_oneof![
        Just(Move::Get),
        Just(Move::PutAny),
        Just(Move::PutAbsent),
        Just(Move::Swap),
        Just(Move::DeleteSeen)
    ];
    let mut runner = proptest::test_runner::TestRunner::new(config(cases));
    let done = runner.run(&prop::collection::vec(prop::collection::vec(a_move, 1..12), 4), |tasks| {
        runs.set(runs.get() + 1);
        let key = format!("swaps/{}", runs.get());
        let [a, b, c, d] = <[Vec<Move>; 4]>::try_from(tasks).unwrap();
        let histories: [History; 4] = runtime
            .block_on(async {
                tokio::join!(
                    moves(w, false, a, &key),
                    moves(w, true, b, &key),
                    moves(w, false, c, &key),
                    moves(w, true, d, &key)
                )
            })
            .into();
        let stored: HashSet<Rev> = histories.iter().flat_map(|history| history.stored.clone()).collect();
        assert_eq!(stored.len(), histories.iter().map(|history| history.stored.len()).sum::<usize>(), "each its own");
        let mut consumed = HashSet::new();
        histories.iter().flat_map(|history| &history.consumed).for_each(|rev| assert!(consumed.insert(*rev), "twice"));
        assert!(histories.iter().flat_map(|history| &history.seen).all(|rev| stored.contains(rev)), "out of nothing");
        let last = runtime.block_on(w.store.kv().get(&key)).unwrap();
        assert!(last.is_none_or(|record| stored.contains(&record.rev) && !consumed.contains(&record.rev)));
        Ok(())
    });
    done.unwrap();
}

/// Random costs at random times: never more than the burst and what has come since.
fn buckets_keep_their_rate(w: &World, cases: u32) {
    let (runtime, runs) = (runtime(), std::cell::Cell::new(0));
    let steps = prop::collection::vec((0..400u32, 0..4u32), 1..30);
    let mut runner = proptest::test_runner::TestRunner::new(config(cases));
    let done = runner.run(&(1..60u32, 3..9u32, steps), |(count, burst, steps)| {
        runs.set(runs.get() + 1);
        let key = format!("rates/{}", runs.get());
        // In an hour, so that the time which the test itself takes is nothing.
        let rate = linchpin_store::Rate::new(count, 3600 * SECOND, burst).unwrap();
        runtime.block_on(async {
            let (mut now, mut taken) = (0.0, Vec::new());
            for (after, cost) in steps {
                w.advance(after * SECOND).await;
                now += f64::from(after);
                if w.store.bucket().take(&key, cost, rate).await.unwrap() == Take::Ok {
                    taken.push((now, f64::from(cost)));
                }
                for from in 0..taken.len() {
                    let sum: f64 = taken[from..].iter().map(|(_, cost)| cost).sum();
                    let allowed = f64::from(burst) + (now - taken[from].0) * f64::from(count) / 3600.0;
                    assert!(sum <= allowed + 0.1, "{sum} of {allowed}");
                }
            }
        });
        Ok(())
    });
    done.unwrap();
}

macro_rules! properties {
    ($($(#[$attribute:meta])? $store:ident($world:expr, $cases:expr);)*) => {
        $(
            mod $store {
                #[test]
                $(#[$attribute])?
                fn random_operations_behave_as_the_model() {
                    $world(|world| super::behaves_as_the_model(world, $cases));
                }

                #[test]
                $(#[$attribute])?
                fn random_swaps_of_several_processes_are_atomic() {
                    $world(|world| super::swaps_are_atomic(world, $cases));
                }

                #[test]
                $(#[$attribute])?
                fn random_takes_never_exceed_the_rate() {
                    $world(|world| super::buckets_keep_their_rate(world, $cases));
                }
            }
        )*
    };
}

fn memory(test: impl FnOnce(&World)) {
    test(&World::memory());
}

#[cfg(feature = "sqlite")]
fn sqlite(test: impl FnOnce(&World)) {
    let folder = tempfile::tempdir().unwrap();
    test(&World::sqlite(&folder));
}

#[cfg(all(feature = "redis", unix))]
fn redis(test: impl FnOnce(&World)) {
    test(&World::redis());
}

mod random {
    use super::*;

    properties! {
        in_memory(super::super::memory, 128);
    }
    #[cfg(feature = "sqlite")]
    properties! {
        in_sqlite(super::super::sqlite, 24);
    }
    #[cfg(all(feature = "redis", unix))]
    properties! {
        #[ignore = "needs a Redis server: `cargo xtask test --only redis`"]
        in_redis(super::super::redis, 24);
    }
}
