//! Opens connections to the upstream: how many there are, how soon one is tried again, and when idle ones are closed.

use crate::instance::{Home, Instance, Post};
use crate::lock;
use crate::options::{BridgeOptions, Isolation};
use crate::parked::Parking;
use crate::refusal::Refusal;
use linchpin_client::raw::{RawConnection, RawOptions, jittered};
use linchpin_client::{Error, ErrorKind};
use linchpin_core::service::boxed;
use linchpin_core::{Connector, Features, TransportError};
use linchpin_proto::negotiation::alike;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Requests that may wait for a connection.
const QUEUE_MAX: usize = 256;
/// How long a request waits for a connection before a call that waits for its client gives way.
const GIVE_WAY_AFTER: Duration = Duration::from_secs(5);
/// Failures in a row after which requests are refused at once until the next attempt is due, which one request makes alone.
const FAILURES_MAX: u32 = 5;
/// The first pause after a failure, and the longest.
const PAUSE_MS: (u64, u64) = (500, 60_000);
/// How long the upstream may take to say that it is there, and how often it may not.
const ANSWER: Duration = Duration::from_secs(10);
const MISSES_MAX: u32 = 3;
/// How often the memory of child processes is looked at, where it has a limit.
const MEMORY_TICK: Duration = Duration::from_secs(2);

/// As whom a connection is opened.
#[derive(Clone, Debug)]
pub(crate) struct Who {
    /// The client's revision.
    pub(crate) features: &'static Features,
    /// Its capabilities as JSON text.
    pub(crate) capabilities: Box<str>,
    /// Its name and version as JSON text.
    pub(crate) info: Option<Box<str>>,
}

pub(crate) struct Pool {
    connector: Arc<dyn Connector>,
    pub(crate) name: String,
    pub(crate) options: Arc<BridgeOptions>,
    permits: Arc<Semaphore>,
    /// How many more may be opened at the same time for calls that share them.
    turns: Semaphore,
    /// Without permits, and closed at the end.
    end: Semaphore,
    waiting: AtomicUsize,
    /// A request is done, so that a connection may be idle: one of those that wait for one looks again.
    freed: Notify,
    /// Calls that wait for their clients and hold connections meanwhile.
    parking: Arc<Parking>,
    all: Mutex<Vec<Weak<Instance>>>,
    trouble: Mutex<Trouble>,
    /// The revision that the upstream spoke last: one more than its index, 0 if it is unknown.
    known: AtomicU8,
    sweeping: AtomicBool,
}

/// Of failures in a row with the same reason, one in so many is logged as a warning.
const SAME_TOLD: u32 = 16;

/// Failures in a row.
#[derive(Default)]
struct Trouble {
    failures: u32,
    /// When the next attempt is due, and why the last one failed.
    next: Option<(Instant, Arc<str>)>,
    /// The connection had been open.
    silent: bool,
    /// After too many failures, somebody tries whether it works again: everybody else is refused meanwhile.
    probing: bool,
}

/// The one attempt after too many failures, until it is over.
struct Probe<'a>(&'a Mutex<Trouble>);

impl Drop for Probe<'_> {
    fn drop(&mut self) {
        lock(self.0).probing = false;
    }
}

impl Pool {
    pub(crate) fn new(connector: Arc<dyn Connector>, options: Arc<BridgeOptions>, parking: Arc<Parking>) -> Pool {
        Pool {
            name: connector.name(),
            connector,
            permits: Arc::new(Semaphore::new(options.instances_max.max(1))),
            turns: Semaphore::new(options.opening_max.max(1)),
            end: Semaphore::new(0),
            options,
            waiting: AtomicUsize::new(0),
            freed: Notify::new(),
            parking,
            all: Mutex::default(),
            trouble: Mutex::default(),
            known: AtomicU8::new(0),
            sweeping: AtomicBool::new(false),
        }
    }

    /// What the upstream's revision has, once that is known.
    pub(crate) fn features(&self) -> Option<&'static Features> {
        let index = usize::from(self.known.load(Ordering::Relaxed)).checked_sub(1)?;
        Features::all().find(|features| features.index == index)
    }

    /// What the upstream speaks may have changed: it is found out anew.
    pub(crate) fn forget_era(&self) {
        self.known.store(0, Ordering::Relaxed);
    }

    /// Whether there may be no more connections now.
    pub(crate) fn is_full(&self) -> bool {
        self.permits.available_permits() == 0
    }

    /// Whether the upstream can be used, or why not. One that was not needed yet can, and so can one whose next attempt is
    /// due: only a request finds out. The reason quotes nothing that came from the upstream, as probes show it to anybody.
    pub(crate) fn ready(&self) -> Result<(), String> {
        let latest = self.open_ones().iter().map(|one| one.quiet()).min();
        let Some(ago) = latest else {
            let trouble = lock(&self.trouble);
            let pauses = trouble.next.as_ref().is_some_and(|(due, _)| Instant::now() < *due);
            return match (pauses, trouble.silent) {
                (false, _) => Ok(()),
                (true, false) => Err("the upstream cannot be opened".to_owned()),
                (true, true) => Err("the upstream does not answer".to_owned()),
            };
        };
        match self.silence() {
            Some(limit) if ago > limit => Err(format!("the upstream has not answered for {} s", ago.as_secs())),
            _ => Ok(()),
        }
    }

    /// How long ago the upstream may have answered last. Without limit when it is not asked whether it is there.
    fn silence(&self) -> Option<Duration> {
        let (health, quiet) = (self.options.health_ms_max, self.options.quiet_ms_max);
        let asked = Duration::from_millis(quiet.saturating_mul(2)).saturating_add(ANSWER);
        (health > 0 && quiet > 0).then(|| asked.max(Duration::from_millis(health)))
    }

    /// Opens a connection.
    pub(crate) async fn open(self: &Arc<Self>, home: Home, who: &Who) -> Result<Arc<Instance>, Refusal> {
        self.open_before(self.late(), home, who, &AtomicBool::new(false)).await
    }

    async fn open_before(
        self: &Arc<Self>,
        late: Instant,
        home: Home,
        who: &Who,
        has_begun: &AtomicBool,
    ) -> Result<Arc<Instance>, Refusal> {
        let opened = async {
            let permit = self.permit(late).await?;
            has_begun.store(true, Ordering::Relaxed);
            self.open_with(permit, home, who).await
        };
        tokio::select! {
            biased;
            _ = self.end.acquire() => Err(ended()),
            opened = opened => opened,
        }
    }

    /// Opens a connection for a call. Where connections are used again, few are opened at the same time: a call that waits
    /// may have one that another call no longer needs.
    pub(crate) async fn open_for_call(
        self: &Arc<Self>,
        who: &Who,
        has_begun: &AtomicBool,
    ) -> Result<Arc<Instance>, Refusal> {
        let late = self.late();
        let _turn = match self.options.isolation {
            Isolation::Session | Isolation::Fresh => None,
            // First: what waits here has no permit, which others could use.
            _ => match tokio::time::timeout_at(late, self.turns.acquire()).await {
                Ok(Ok(turn)) => Some(turn),
                Ok(Err(_)) => return Err(ended()),
                Err(_) => {
                    return Err(
                        Refusal::unavailable("no connection to the upstream was free in time").retry_after(1_000)
                    );
                }
            },
        };
        self.open_before(late, Home::Client, who, has_begun).await
    }

    /// When a request has waited for too long.
    fn late(&self) -> Instant {
        Instant::now() + Duration::from_millis(self.options.queue_ms_max)
    }

    async fn open_with(
        self: &Arc<Self>,
        permit: OwnedSemaphorePermit,
        home: Home,
        who: &Who,
    ) -> Result<Arc<Instance>, Refusal> {
        let _probe = self.pause().await?;
        let instance = Arc::new(Instance::new(home, &who.capabilities, permit));
        let mut last = Refusal::unavailable("no revision is allowed for the upstream");
        for accepted in self.attempts(who) {
            let options = RawOptions::new(accepted).with(|options| {
                options.capabilities = who.capabilities.clone();
                if let Some(info) = &who.info {
                    options.client_info = info.clone();
                }
                options.limits = self.options.client_limits.clone();
                options.tap = self.options.tap.clone();
                options.ids = instance.ids().clone();
            });
            let post = Arc::new(Post(Arc::downgrade(&instance)));
            // What installs first is slow and uses the network.
            let _turn = match runs_a_package(&self.name) {
                true => RUNNERS.acquire().await.ok(),
                false => None,
            };
            match RawConnection::open(&*self.connector, options, post).await {
                Ok(raw) => {
                    *lock(&self.trouble) = Trouble::default();
                    let known = u8::try_from(raw.agreed.features.index + 1).unwrap_or_default();
                    self.known.store(known, Ordering::Relaxed);
                    tracing::debug!(revision = raw.agreed.features.revision.as_str(), "connected to the upstream");
                    instance.open(raw);
                    self.keep(&instance);
                    // The others may have been closed before it was one of them.
                    if self.end.is_closed() {
                        instance.clone().close_later("the bridge is shutting down");
                        return Err(ended());
                    }
                    return Ok(instance);
                }
                Err(error) => {
                    let again = may_differ(&error);
                    tracing::debug!(%error, "an attempt to open the upstream failed");
                    last = Refusal::unavailable(error.to_string());
                    if !again {
                        break;
                    }
                }
            }
        }
        Err(self.failed(last))
    }

    /// The revisions to try: those of the client's era first, then the others, on a connection of their own, because some
    /// servers end when they hear the wrong first message.
    fn attempts(&self, who: &Who) -> Vec<Vec<&'static Features>> {
        let all = &self.options.upstream;
        if !who.features.has_sessions {
            return if all.is_empty() { Vec::new() } else { vec![all.clone()] };
        }
        let (mut sessions, alone): (Vec<_>, Vec<_>) = all.iter().copied().partition(|features| features.has_sessions);
        // The client's own revision is asked for.
        sessions.sort_unstable_by_key(|features| (*features != who.features, std::cmp::Reverse(features.index)));
        let mut attempts = vec![sessions, alone];
        if self.features().is_some_and(|known| !known.has_sessions) {
            attempts.reverse();
        }
        attempts.retain(|accepted| !accepted.is_empty());
        attempts
    }

    /// After failures, waits until the next attempt is due. After many, refuses until then, and while one tries.
    async fn pause(&self) -> Result<Option<Probe<'_>>, Refusal> {
        let left = {
            let mut trouble = lock(&self.trouble);
            let Some((due, why)) = &trouble.next else { return Ok(None) };
            let left = due.saturating_duration_since(Instant::now());
            if trouble.failures >= FAILURES_MAX {
                if !left.is_zero() || trouble.probing {
                    let again = left.as_millis().max(u128::from(PAUSE_MS.0)) as u64;
                    return Err(Refusal::unavailable(why.clone()).retry_after(again));
                }
                trouble.probing = true;
                return Ok(Some(Probe(&self.trouble)));
            }
            left
        };
        tokio::time::sleep(left).await;
        Ok(None)
    }

    fn failed(&self, why: Refusal) -> Refusal {
        let mut trouble = lock(&self.trouble);
        // A client tries again, perhaps in another revision: the same reason is told once, and now and then.
        let is_known = trouble.next.as_ref().is_some_and(|(_, known)| alike(known, why.why()));
        if !is_known || trouble.failures.is_multiple_of(SAME_TOLD) {
            tracing::warn!(error = %why.why(), "the upstream cannot be opened");
        }
        let pause = jittered(PAUSE_MS.0.saturating_mul(1 << trouble.failures.min(16)).min(PAUSE_MS.1));
        trouble.failures += 1;
        trouble.next = Some((Instant::now() + Duration::from_millis(pause), why.why().clone()));
        trouble.silent = false;
        why.retry_after(pause)
    }

    /// The right to have one more connection. If there are too many, the one that was idle for longest gives way.
    async fn permit(&self, late: Instant) -> Result<OwnedSemaphorePermit, Refusal> {
        if let Ok(permit) = self.permits.clone().try_acquire_owned() {
            return Ok(permit);
        }
        let _waits = Waits::new(&self.waiting).ok_or_else(|| self.full())?;
        let mut free = pin!(self.permits.clone().acquire_owned());
        let mut late = pin!(tokio::time::sleep_until(late));
        let mut patient = pin!(tokio::time::sleep(GIVE_WAY_AFTER));
        loop {
            let mut freed = pin!(self.freed.notified());
            // Before the look, so that nothing is missed after it.
            freed.as_mut().enable();
            let longest =
                self.open_ones().into_iter().filter_map(|one| Some((one.idle()?, one))).max_by_key(|(idle, _)| *idle);
            if let Some((_, one)) = longest {
                // In a task of its own: a connection that is closed half keeps its place.
                let closing =
                    tokio::spawn(boxed(
                        async move { one.close_idle("its connection was needed by another client").await },
                    ));
                let _ = closing.await;
            }
            tokio::select! {
                biased;
                permit = free.as_mut() => return permit.map_err(|_| ended()),
                () = freed => {}
                () = patient.as_mut() => {
                    self.parking.give_way();
                    patient.as_mut().reset(Instant::now() + GIVE_WAY_AFTER);
                }
                () = late.as_mut() => return Err(self.full()),
            }
        }
    }

    /// There is no connection for a request.
    fn full(&self) -> Refusal {
        let max = self.options.instances_max;
        Refusal::unavailable(format!("all {max} connections to the upstream are in use")).retry_after(1_000)
    }

    /// A request is done, so that its connection may be another's.
    pub(crate) fn freed(&self) {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.freed.notify_one();
        }
    }

    /// Remembers a connection, to close it when it is idle and at the end.
    fn keep(self: &Arc<Self>, instance: &Arc<Instance>) {
        let mut all = lock(&self.all);
        all.retain(|one| one.strong_count() > 0);
        all.push(Arc::downgrade(instance));
        drop(all);
        if self.options.idle_stop_ms > 0 && !self.sweeping.swap(true, Ordering::AcqRel) {
            let tick = Duration::from_millis((self.options.idle_stop_ms / 4).clamp(10, 60_000));
            tokio::spawn(boxed(sweep(Arc::downgrade(self), tick)));
        }
        if self.options.memory_bytes_max > 0 {
            tokio::spawn(boxed(watch_memory(Arc::downgrade(instance), self.options.memory_bytes_max)));
        }
        if self.options.quiet_ms_max > 0 {
            let quiet = Duration::from_millis(self.options.quiet_ms_max);
            tokio::spawn(boxed(keep_alive(Arc::downgrade(instance), Arc::downgrade(self), quiet)));
        }
    }

    /// The connections that are open.
    fn open_ones(&self) -> Vec<Arc<Instance>> {
        lock(&self.all).iter().filter_map(Weak::upgrade).filter(|one| one.lost().is_none()).collect()
    }

    /// Closes all connections.
    pub(crate) async fn close(&self) {
        self.end.close();
        self.turns.close();
        self.permits.close();
        let closing: Vec<_> = self
            .open_ones()
            .into_iter()
            .map(|one| tokio::spawn(boxed(async move { one.close("the bridge is shutting down").await })))
            .collect();
        for one in closing {
            let _ = one.await;
        }
    }
}

/// No connection is opened any more.
fn ended() -> Refusal {
    Refusal::unavailable("the bridge is shutting down")
}

/// Package runners that start at once, over all bridges of the process.
static RUNNERS: Semaphore = Semaphore::const_new(4);

/// Whether this command line is one of a program that installs what it runs.
fn runs_a_package(name: &str) -> bool {
    let program = name.split(' ').next().unwrap_or_default();
    let program = program.rsplit(['/', '\\']).next().unwrap_or_default();
    let program = program.split('.').next().unwrap_or_default();
    matches!(program, "npx" | "uvx" | "bunx" | "pnpx" | "pipx" | "docker" | "podman")
        || (matches!(program, "pnpm" | "yarn") && name.contains(" dlx "))
}

/// Whether a server that refused one era may speak the other.
fn may_differ(error: &Error) -> bool {
    !error.is_timeout()
        && error.kind() != ErrorKind::Closed
        && !matches!(error.transport(), Some(TransportError::Unreachable(_) | TransportError::Unauthorized(_)))
}

/// Closes connections that have been idle for too long. Ends with the last connection.
async fn sweep(pool: Weak<Pool>, tick: Duration) {
    loop {
        tokio::time::sleep(tick).await;
        let Some(pool) = pool.upgrade() else { return };
        let limit = Duration::from_millis(pool.options.idle_stop_ms);
        for one in pool.open_ones() {
            if one.idle().is_some_and(|idle| idle >= limit) && one.close_idle("it was idle and was stopped").await {
                tracing::info!("an idle connection to the upstream was closed");
            }
        }
        let mut all = lock(&pool.all);
        all.retain(|one| one.upgrade().is_some_and(|one| one.lost().is_none()));
        if all.is_empty() {
            pool.sweeping.store(false, Ordering::Release);
            return;
        }
    }
}

/// Stops a child process that has too much memory once it has no call. Ends with the connection, or where nothing is known.
async fn watch_memory(instance: Weak<Instance>, max: u64) {
    let mut told = false;
    loop {
        tokio::time::sleep(MEMORY_TICK).await;
        let Some(one) = instance.upgrade().filter(|one| one.lost().is_none()) else { return };
        let looked = one.clone();
        let has = tokio::task::spawn_blocking(move || looked.raw().transport.memory()).await;
        let Ok(Some(has)) = has else { return };
        if has <= max {
            told = false;
            continue;
        }
        let why = format!("it used {} MiB of memory, and the limit is {}", has >> 20, max >> 20);
        if one.close_idle(&why).await {
            tracing::warn!("a connection to the upstream was closed: {why}");
            return;
        }
        if !std::mem::replace(&mut told, true) {
            tracing::warn!(
                "an upstream with a running call uses {} MiB of memory, and the limit is {}",
                has >> 20,
                max >> 20
            );
        }
    }
}

/// Asks the upstream whether it is there when nothing has come from it for a while; gives the connection up when it does not
/// answer. Ends with the connection.
async fn keep_alive(instance: Weak<Instance>, pool: Weak<Pool>, quiet: Duration) {
    let mut misses = 0;
    loop {
        let left = match instance.upgrade() {
            Some(one) if one.lost().is_none() => quiet.saturating_sub(one.quiet()),
            _ => return,
        };
        if !left.is_zero() && (misses == 0 || left == quiet) {
            misses = 0;
            tokio::time::sleep(left).await;
            continue;
        }
        let Some(one) = instance.upgrade() else { return };
        match tokio::time::timeout(ANSWER, one.probe()).await {
            Ok(Ok(())) => misses = 0,
            Ok(Err(_)) if one.lost().is_some() => return,
            _ => misses += 1,
        }
        if misses == MISSES_MAX {
            let why = "the upstream does not answer";
            tracing::warn!(why);
            if let Some(pool) = pool.upgrade() {
                let _ = pool.failed(Refusal::unavailable(why));
                lock(&pool.trouble).silent = true;
            }
            return one.close(why).await;
        }
    }
}

/// One of those who wait.
struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    fn new(count: &'a AtomicUsize) -> Option<Waits<'a>> {
        let waits = Waits(count);
        (count.fetch_add(1, Ordering::Relaxed) < QUEUE_MAX).then_some(waits)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_runners_are_known_by_their_names() {
        for (name, is) in [
            ("npx -y some-server", true),
            ("/usr/bin/uvx mcp-server-git", true),
            ("C:\\nodejs\\npx.cmd -y x", true),
            ("pnpm dlx x", true),
            ("pnpm start", false),
            ("node npx", false),
            ("https://npx.example/mcp", false),
        ] {
            assert_eq!(runs_a_package(name), is, "{name}");
        }
    }
}
