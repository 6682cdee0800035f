//! One thread that writes: operations that wait while one is committed are committed together.

use super::file::Failure;
use super::statements;
use crate::clock::{Clock, micros};
use crate::error::{Error, ErrorKind};
use rusqlite::{Connection, TransactionBehavior};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{mpsc, oneshot};

/// The most operations in one transaction.
const GROUP_MAX: usize = 256;

/// The most operations that wait; then callers wait to be among them.
const QUEUE_MAX: usize = 4096;

/// The longest that the file's time is behind, in microseconds.
const BEHIND_US: u64 = 500_000;

/// The time of a file: that of the clock, but never before what another process, or an earlier one, has written.
pub(super) struct Time {
    clock: Arc<dyn Clock>,
    floor_us: AtomicU64,
}

impl Time {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Time {
        Time { clock, floor_us: AtomicU64::new(0) }
    }

    pub(super) fn now_us(&self) -> i64 {
        let now = micros(self.clock.now()).max(self.floor_us.load(Ordering::Relaxed));
        now.cast_signed()
    }

    fn not_before(&self, us: u64) {
        self.floor_us.fetch_max(us, Ordering::Relaxed);
    }
}

/// Sends operations to the thread, which ends with it.
pub(super) struct Writer(mpsc::Sender<Box<dyn Job>>);

impl Writer {
    /// Starts the thread.
    pub(super) fn start(connection: Connection, time: Arc<Time>) -> Result<Writer, Error> {
        let (sender, jobs) = mpsc::channel(QUEUE_MAX);
        let floor = statements::meta(&connection, "now").map_err(Failure::from)?.unwrap_or_default();
        time.not_before(floor.cast_unsigned());
        let mut thread = Thread { connection, jobs, time, stored_us: floor.cast_unsigned(), is_full: None };
        let started = std::thread::Builder::new().name("store-writer".into()).spawn(move || thread.run());
        match started {
            Ok(_) => Ok(Writer(sender)),
            Err(error) => Err(Error::new(ErrorKind::Unavailable, "no thread for the store").caused_by(error)),
        }
    }

    /// Runs an operation in a transaction, perhaps with others, perhaps more than once; returns when it is committed.
    pub(super) async fn run<T, F>(&self, is_durable: bool, run: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnMut(&Connection, i64) -> rusqlite::Result<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let gone = || Error::new(ErrorKind::Unavailable, "the store's writer has ended");
        let job = Box::new(Operation { run, result: None, reply, is_durable });
        self.0.send(job).await.map_err(|_| gone())?;
        Ok(answer.await.map_err(|_| gone())??)
    }
}

trait Job: Send {
    fn run(&mut self, connection: &Connection, now_us: i64) -> rusqlite::Result<()>;
    fn is_durable(&self) -> bool;
    fn is_wanted(&self) -> bool;
    fn finish(self: Box<Self>, outcome: Result<(), Failure>);
}

struct Operation<T, F> {
    run: F,
    result: Option<T>,
    reply: oneshot::Sender<Result<T, Failure>>,
    is_durable: bool,
}

impl<T: Send, F: FnMut(&Connection, i64) -> rusqlite::Result<T> + Send> Job for Operation<T, F> {
    fn run(&mut self, connection: &Connection, now_us: i64) -> rusqlite::Result<()> {
        self.result = Some((self.run)(connection, now_us)?);
        Ok(())
    }

    fn is_durable(&self) -> bool {
        self.is_durable
    }

    fn is_wanted(&self) -> bool {
        !self.reply.is_closed()
    }

    fn finish(self: Box<Self>, outcome: Result<(), Failure>) {
        let Operation { result, reply, .. } = *self;
        // Who asked may be gone.
        let _ = reply.send(outcome.map(|()| result.expect("an operation that was committed has run")));
    }
}

struct Thread {
    connection: Connection,
    jobs: mpsc::Receiver<Box<dyn Job>>,
    time: Arc<Time>,
    /// The time in the file, as far as this process knows.
    stored_us: u64,
    /// Whether commits wait for the disk; `None` before the first.
    is_full: Option<bool>,
}

impl Thread {
    fn run(&mut self) {
        while let Some(first) = self.jobs.blocking_recv() {
            let mut group = vec![first];
            while group.len() < GROUP_MAX
                && let Ok(next) = self.jobs.try_recv()
            {
                group.push(next);
            }
            group.retain(|job| job.is_wanted());
            match self.commit(&mut group) {
                // One of them is to blame: the others must not fail with it.
                Err(failure) if group.len() > 1 && !failure.is_busy() => {
                    for mut job in group {
                        let outcome = self.commit(std::slice::from_mut(&mut job));
                        job.finish(outcome);
                    }
                }
                outcome => group.into_iter().for_each(|job| job.finish(outcome.clone())),
            }
        }
    }

    fn commit(&mut self, group: &mut [Box<dyn Job>]) -> Result<(), Failure> {
        if group.is_empty() {
            return Ok(());
        }
        let is_full = group.iter().any(|job| job.is_durable());
        if self.is_full != Some(is_full) {
            self.connection.pragma_update(None, "synchronous", if is_full { "FULL" } else { "NORMAL" })?;
            self.is_full = Some(is_full);
        }
        let group_of = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have written a later time; reading it once a group costs a lookup in a cached page.
        let floor = statements::meta(&group_of, "now")?.unwrap_or_default().cast_unsigned();
        self.time.not_before(floor);
        let now_us = self.time.now_us();
        for job in group {
            job.run(&group_of, now_us)?;
        }
        let mut stored_us = floor;
        if now_us.cast_unsigned() >= floor + BEHIND_US || self.stored_us == 0 {
            statements::set_meta(&group_of, "now", now_us)?;
            statements::sweep(&group_of, now_us)?;
            stored_us = now_us.cast_unsigned();
        }
        group_of.commit()?;
        self.stored_us = stored_us;
        Ok(())
    }
}
