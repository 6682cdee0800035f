//! The connection to a server: made when it is needed, and again when it broke, with all that is watched.
//!
//! A server pushes what is published on the same connection. Publications while there was none are found by comparing
//! versions when there is one again, so none is lost.

use super::failure::Failure;
use super::place::Places;
use super::start::RedisOptions;
use crate::error::{Error, ErrorKind};
use crate::hub::Hub;
use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncConnectionConfig, Cmd, FromRedisValue as _, PushInfo, PushKind, ScriptInvocation, Value, cmd};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;
use tokio::sync::{Mutex, Notify};
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// How long a connection may take, and an answer.
const ANSWER: Duration = Duration::from_millis(500);
/// How long all attempts of an operation may take.
const ATTEMPTS: Duration = Duration::from_secs(2);
/// The pauses between the attempts of an operation.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(400)];
/// How long nobody else tries to connect after it failed.
const REST: Duration = Duration::from_millis(50);
/// How often the connection is tried while something is watched, so that one that is silently dead is noticed.
const PING: Duration = Duration::from_secs(1);
/// How many topics are named in one command.
const TOPICS: usize = 500;

/// What is asked of a server.
pub(super) enum Ask<'a> {
    Cmd(Cmd),
    Script(ScriptInvocation<'a>),
}

impl Ask<'_> {
    async fn on(&self, connection: &mut MultiplexedConnection) -> Result<Value, ::redis::RedisError> {
        match self {
            Ask::Cmd(cmd) => cmd.query_async(connection).await,
            Ask::Script(script) => script.invoke_async(connection).await,
        }
    }
}

/// The attempts of one operation.
struct Tries {
    until: Instant,
    pauses: std::slice::Iter<'static, Duration>,
}

impl Tries {
    fn start() -> Tries {
        Tries { until: Instant::now() + ATTEMPTS, pauses: PAUSES.iter() }
    }

    /// One attempt, in the time that is left.
    async fn within<T>(&self, attempt: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        match timeout_at(self.until, attempt).await {
            Ok(done) => done,
            Err(late) => Err(Failure { again: false, ..Failure::away(late) }),
        }
    }

    /// Waits before the next attempt; the error is what ends them.
    async fn pause(&mut self, failure: Failure) -> Result<(), Error> {
        match self.pauses.next().filter(|_| failure.again) {
            Some(pause) => {
                sleep(*pause).await;
                Ok(())
            }
            None => Err(failure.error),
        }
    }
}

/// A connection to a server, now or soon.
pub(super) struct Link {
    options: RedisOptions,
    hub: Arc<Hub>,
    current: RwLock<Option<Open>>,
    connecting: Mutex<Connecting>,
    is_kept: AtomicBool,
    lost: Arc<Notify>,
}

#[derive(Clone)]
struct Open {
    connection: MultiplexedConnection,
    number: u64,
}

struct Connecting {
    places: Places,
    /// How many connections there were.
    count: u64,
    failed: Option<Instant>,
    /// The topics that the connection has subscribed to.
    subscribed: HashSet<String>,
}

impl Connecting {
    fn new(places: Places) -> Connecting {
        Connecting { places, count: 0, failed: None, subscribed: HashSet::new() }
    }
}

impl Link {
    pub(super) fn new(options: RedisOptions, hub: Arc<Hub>) -> Result<Link, Error> {
        Ok(Link {
            connecting: Mutex::new(Connecting::new(Places::new(options.connection()?))),
            options,
            hub,
            current: RwLock::default(),
            is_kept: AtomicBool::new(false),
            lost: Arc::default(),
        })
    }

    /// Where something of this kind is kept.
    pub(super) fn key(&self, kind: &str, name: &str) -> String {
        format!("lp:{{{}}}:{kind}:{name}", self.options.tag)
    }

    /// Asks the server; again, if it did not answer: everything that is asked may be repeated.
    pub(super) async fn run(&self, ask: &Ask<'_>) -> Result<Value, Error> {
        let mut tries = Tries::start();
        loop {
            match tries.within(self.attempt(ask)).await {
                Ok(value) => return Ok(value),
                Err(failure) => tries.pause(failure).await?,
            }
        }
    }

    /// The same, and waits until replicas have it.
    pub(super) async fn run_replicated(&self, ask: &Ask<'_>) -> Result<Value, Error> {
        let replicas = self.options.wait_replicas;
        if replicas == 0 {
            return self.run(ask).await;
        }
        let mut tries = Tries::start();
        loop {
            match tries.within(self.attempt_replicated(ask, replicas)).await {
                Ok((value, Value::Int(reached))) if reached >= i64::from(replicas) => return Ok(value),
                Ok(_) => {
                    let text = format!("Redis has stored it, but not yet on {replicas} replicas");
                    return Err(Error::new(ErrorKind::Unavailable, text));
                }
                Err(failure) => tries.pause(failure).await?,
            }
        }
    }

    async fn attempt(&self, ask: &Ask<'_>) -> Result<Value, Failure> {
        let mut open = self.open().await?;
        let answered = ask.on(&mut open.connection).await;
        answered.map_err(|error| self.failed(&open, error.into()))
    }

    /// Asks, then waits on the same connection: WAIT counts the replicas that have what that one wrote.
    async fn attempt_replicated(&self, ask: &Ask<'_>, replicas: u32) -> Result<(Value, Value), Failure> {
        let mut open = self.open().await?;
        let mut wait = cmd("WAIT");
        wait.arg(replicas).arg(ANSWER.as_millis() as u64 / 2);
        let answered = match ask.on(&mut open.connection).await {
            Ok(value) => wait.query_async(&mut open.connection).await.map(|reached| (value, reached)),
            Err(error) => Err(error),
        };
        answered.map_err(|error| self.failed(&open, error.into()))
    }

    /// Leaves a connection that is of no use.
    fn failed(&self, open: &Open, failure: Failure) -> Failure {
        if failure.broken {
            let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
            if current.as_ref().is_some_and(|current| current.number == open.number) {
                *current = None;
                self.lost.notify_one();
            }
        }
        failure
    }

    fn current(&self) -> Option<Open> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the connection, which is made if there is none. Who waits while another fails has failed too.
    async fn open(&self) -> Result<Open, Failure> {
        if let Some(open) = self.current() {
            return Ok(open);
        }
        let asked = Instant::now();
        let mut connecting = self.connecting.lock().await;
        if let Some(open) = self.current() {
            return Ok(open);
        }
        if connecting.failed.is_some_and(|failed| failed >= asked || failed.elapsed() < REST) {
            return Err(Failure::away("it cannot be connected to"));
        }
        match self.connect(&mut connecting).await {
            Ok(open) => {
                connecting.failed = None;
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(open.clone());
                Ok(open)
            }
            Err(failure) => {
                connecting.failed = Some(Instant::now());
                Err(failure)
            }
        }
    }

    async fn connect(&self, connecting: &mut Connecting) -> Result<Open, Failure> {
        connecting.count += 1;
        connecting.subscribed.clear();
        let (hub, prefix, lost) = (self.hub.clone(), self.key("topic", ""), self.lost.clone());
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(ANSWER))
            .set_response_timeout(Some(ANSWER))
            .set_push_sender(move |push: PushInfo| {
                match push.kind {
                    PushKind::Disconnection => lost.notify_one(),
                    PushKind::Message => drop(published(&hub, &prefix, push.data)),
                    _ => {}
                }
                Ok::<(), ()>(())
            });
        let connection = connecting.places.connect(&config, &self.options, &self.key("kv", "")).await?;
        let mut open = Open { connection, number: connecting.count };
        let topics = self.hub.watched();
        self.subscribe(&mut open, connecting, &topics).await?;
        for (topic, version) in topics.iter().zip(versions(self, &mut open, &topics).await?) {
            self.hub.renew(topic, version);
        }
        Ok(open)
    }

    async fn subscribe(&self, open: &mut Open, to: &mut Connecting, topics: &[String]) -> Result<(), Failure> {
        let new: Vec<&String> = topics.iter().filter(|topic| !to.subscribed.contains(*topic)).collect();
        for some in new.chunks(TOPICS) {
            let channels: Vec<String> = some.iter().map(|topic| self.key("topic", topic)).collect();
            open.connection.subscribe(channels).await?;
            to.subscribed.extend(some.iter().map(|topic| (*topic).clone()));
        }
        Ok(())
    }

    /// Has the server push these topics from now on, and returns their versions.
    pub(super) async fn watch(self: &Arc<Link>, topics: &[String]) -> Result<Vec<u64>, Error> {
        self.keep();
        let mut tries = Tries::start();
        loop {
            match tries.within(self.attempt_watch(topics)).await {
                Ok(versions) => return Ok(versions),
                Err(failure) => tries.pause(failure).await?,
            }
        }
    }

    async fn attempt_watch(&self, topics: &[String]) -> Result<Vec<u64>, Failure> {
        let mut open = self.open().await?;
        let subscribed = {
            let mut connecting = self.connecting.lock().await;
            match connecting.count == open.number {
                true => self.subscribe(&mut open, &mut connecting, topics).await,
                false => Err(Failure::away("the connection was lost meanwhile")),
            }
        };
        let versions = match subscribed {
            Ok(()) => versions(self, &mut open, topics).await,
            Err(failure) => Err(failure),
        };
        versions.map_err(|failure| self.failed(&open, failure))
    }

    /// Starts the task that keeps a connection while something is watched, if it does not run.
    fn keep(self: &Arc<Link>) {
        if !self.is_kept.swap(true, Ordering::AcqRel) {
            tokio::spawn(keep(Arc::downgrade(self), self.lost.clone()));
        }
    }

    /// Tries the connection, makes another if it broke, and leaves topics that nobody watches any more.
    async fn tend(&self) -> Result<(), Failure> {
        let mut open = self.open().await?;
        let pong: Result<Value, _> = cmd("PING").query_async(&mut open.connection).await;
        pong.map_err(|error| self.failed(&open, error.into()))?;
        let watched: HashSet<String> = self.hub.watched().into_iter().collect();
        let mut connecting = self.connecting.lock().await;
        if connecting.count != open.number || connecting.subscribed.len() <= 2 * watched.len() {
            return Ok(());
        }
        let left: Vec<String> = connecting.subscribed.difference(&watched).take(TOPICS).cloned().collect();
        let channels: Vec<String> = left.iter().map(|topic| self.key("topic", topic)).collect();
        open.connection.unsubscribe(channels).await.map_err(|error| self.failed(&open, error.into()))?;
        connecting.subscribed.retain(|topic| !left.contains(topic));
        Ok(())
    }
}

/// Says that [`keep`] has ended, if its runtime ended before it did: the next one that watches starts another.
struct KeepEnds(Option<Weak<Link>>);

impl Drop for KeepEnds {
    fn drop(&mut self) {
        if let Some(link) = self.0.as_ref().and_then(Weak::upgrade) {
            link.is_kept.store(false, Ordering::Release);
        }
    }
}

/// Keeps the connection until nothing is watched or the store is dropped.
async fn keep(link: Weak<Link>, lost: Arc<Notify>) {
    let mut ends = KeepEnds(Some(link.clone()));
    loop {
        let _ = timeout(PING, lost.notified()).await;
        let Some(link) = link.upgrade() else { return };
        if link.hub.watched().is_empty() {
            link.is_kept.store(false, Ordering::Release);
            // Somebody may have begun to watch before this was said.
            if link.hub.watched().is_empty() || link.is_kept.swap(true, Ordering::AcqRel) {
                ends.0 = None;
                return;
            }
        }
        while let Err(failure) = link.tend().await {
            tracing::debug!(target: "linchpin::store", error = %failure.error, "topics cannot be followed");
            sleep(PAUSES[0]).await;
            if Arc::strong_count(&link) == 1 {
                return;
            }
        }
    }
}

/// The versions of topics, 0 for those that were never published.
async fn versions(link: &Link, open: &mut Open, topics: &[String]) -> Result<Vec<u64>, Failure> {
    let mut all = Vec::with_capacity(topics.len());
    for some in topics.chunks(TOPICS) {
        let keys: Vec<String> = some.iter().map(|topic| link.key("topic", topic)).collect();
        let found: Vec<Option<u64>> = cmd("MGET").arg(keys).query_async(&mut open.connection).await?;
        all.extend(found.into_iter().map(Option::unwrap_or_default));
    }
    Ok(all)
}

/// Takes a pushed message: the channel, and the version.
fn published(hub: &Hub, prefix: &str, data: Vec<Value>) -> Option<()> {
    let [channel, version] = <[Value; 2]>::try_from(data).ok()?;
    let (channel, version) = (String::from_redis_value(channel).ok()?, u64::from_redis_value(version).ok()?);
    hub.advance(channel.strip_prefix(prefix)?, version);
    Some(())
}
