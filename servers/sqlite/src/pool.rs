//! Threads that open and own connections, and the calls that wait for them.
//!
//! A call is a closure that runs on a thread with its own connection. The queue is bounded, and waiting has a deadline;
//! when it passes, or the call is dropped, the statement is interrupted. A long step inside SQLite (one function call,
//! sorting everything in memory) blocks only its thread: the call is answered in time, and another thread takes over.
//! Access to the database is checked where a call gets its connection, so no tool can skip the check.

use linchpin_kit::{ErrorKind, ToolError, io_text};
use rusqlite::InterruptHandle;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

use crate::call::{self, GRACE, Patience, Ticket, interrupted};
use crate::open::place::{Place, RootsScope};
use crate::open::{GuardedConnection, Opener};

/// Maximum number of calls waiting for a thread.
const QUEUE_MAX: usize = 64;

/// Maximum number of abandoned threads that are still in a step that cannot be interrupted.
const STUCK_MAX: usize = 4;

/// How often a waiting call checks the threads.
const TICK: Duration = Duration::from_millis(250);

/// Stack size of a thread: SQLite's parser and parse trees may be deep.
const STACK_BYTES: usize = 8 << 20;

type Work = Box<dyn FnOnce(Result<&mut GuardedConnection, ToolError>) + Send>;

struct Job {
    ticket: Arc<Ticket>,
    scope: RootsScope,
    work: Work,
}

/// A queue and the threads that serve it.
pub(crate) struct Workers {
    jobs: SyncSender<Job>,
    shared: Arc<Shared>,
}

struct Shared {
    opener: Opener,
    /// The threads there are to be.
    threads: usize,
    queue: Mutex<Receiver<Job>>,
    slots: Mutex<Vec<Arc<Slot>>>,
    stuck: AtomicUsize,
    /// No thread can be started.
    #[cfg(test)]
    exhausted: AtomicBool,
}

/// One thread.
#[derive(Default)]
struct Slot {
    running: Mutex<Option<(Arc<Ticket>, InterruptHandle)>>,
    abandoned: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Workers {
    /// A pool with this many threads, which open their connections for their first call.
    pub(crate) fn open(opener: Opener, threads: usize) -> Result<Workers, ToolError> {
        let (jobs, queue) = sync_channel(QUEUE_MAX);
        let shared = Arc::new(Shared {
            opener,
            threads: threads.max(1),
            queue: Mutex::new(queue),
            slots: Mutex::default(),
            stuck: AtomicUsize::new(0),
            #[cfg(test)]
            exhausted: AtomicBool::new(false),
        });
        for _ in 0..shared.threads {
            shared.spawn(&mut lock(&shared.slots))?;
        }
        Ok(Workers { jobs, shared })
    }

    /// Runs work on a thread and blocks until it is done. For the start, when there is nothing to cancel yet.
    pub(crate) fn start<T: Send + 'static>(
        &self,
        patience: Patience,
        scope: RootsScope,
        work: impl FnOnce(&mut GuardedConnection) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let (answer, answered) = sync_channel(1);
        let work = move |conn: Result<&mut GuardedConnection, ToolError>| {
            let _ = answer.send(conn.and_then(work));
        };
        let ticket = self.submit(patience, scope, Box::new(work))?;
        let left = (ticket.deadline + GRACE).saturating_duration_since(Instant::now());
        answered.recv_timeout(left).unwrap_or_else(|error| match error {
            RecvTimeoutError::Timeout => Err(interrupted()),
            RecvTimeoutError::Disconnected => Err(unanswered()),
        })
    }

    /// Queues work.
    fn submit(&self, patience: Patience, scope: RootsScope, work: Work) -> Result<Arc<Ticket>, ToolError> {
        let ticket = Arc::new(Ticket {
            deadline: scope.begun + patience.call,
            patience,
            cancelled: OnceLock::new(),
            started: AtomicBool::new(false),
        });
        self.shared.heal()?;
        self.jobs.try_send(Job { ticket: Arc::clone(&ticket), scope, work }).map_err(|error| match error {
            TrySendError::Full(_) => ToolError::new("Error: too many calls are waiting for the database")
                .kind(ErrorKind::Limited { retry_after: None })
                .hint("Try again when some of them have been answered."),
            TrySendError::Disconnected(_) => ToolError::new("Error: the database is closed"),
        })?;
        Ok(ticket)
    }

    /// Runs work on a thread, if `scope` permits it. Dropping the future interrupts it.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        patience: Patience,
        scope: RootsScope,
        work: impl FnOnce(&mut GuardedConnection) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let (answer, mut answered) = oneshot::channel();
        let work: Work = Box::new(move |conn| {
            // The caller may be gone.
            let _ = answer.send(conn.and_then(work));
        });
        let ticket = self.submit(patience, scope, work)?;
        let mut cancel = Cancel { shared: &self.shared, ticket: &ticket, armed: true };
        loop {
            let left = ticket.deadline.saturating_duration_since(Instant::now());
            let wait = if left.is_zero() { TICK } else { TICK.min(left) };
            match tokio::time::timeout(wait, &mut answered).await {
                Ok(answer) => {
                    cancel.armed = false;
                    return answer.unwrap_or_else(|_| Err(unanswered()));
                }
                Err(_) if ticket.is_late() => return Err(stuck(&ticket)),
                // SQLite checks this at every jump, but calls the progress handler only now and then.
                Err(_) if ticket.is_over() => self.shared.interrupt(&ticket),
                Err(_) if !ticket.started.load(Ordering::Acquire) => self.shared.heal()?,
                Err(_) => {}
            }
        }
    }
}

/// The error of a call whose thread panicked.
fn unanswered() -> ToolError {
    ToolError::new("Database error: the database could not be read")
        .kind(ErrorKind::Upstream { status: None })
        .hint("It may be damaged; check it with PRAGMA integrity_check.")
}

/// The system has no thread left.
fn no_thread(error: &std::io::Error) -> ToolError {
    ToolError::new(format!("Error: no thread for the database: {}", io_text(error)))
        .kind(ErrorKind::Limited { retry_after: None })
        .hint("Nothing was done. The system has too many threads or too little memory; try again later.")
}

/// The error of a call that was not answered before its deadline.
fn stuck(ticket: &Ticket) -> ToolError {
    let seconds = ticket.patience.call.as_secs_f64();
    let fault = ToolError::new(format!("Database error: no answer within {seconds} s")).kind(ErrorKind::Timeout);
    if ticket.started.load(Ordering::Acquire) {
        fault.hint(
            "The statement is in a step that cannot be interrupted; a change will be rolled back at its end. Use shorter values.",
        )
    } else {
        fault.hint("The database is busy with other calls. Nothing was done; try again later.")
    }
}

/// Interrupts the call if it is dropped before it is answered.
struct Cancel<'a> {
    shared: &'a Shared,
    ticket: &'a Arc<Ticket>,
    armed: bool,
}

impl Drop for Cancel<'_> {
    fn drop(&mut self) {
        if !self.armed {
            return;
        }
        self.ticket.cancelled.get_or_init(Instant::now);
        self.shared.interrupt(self.ticket);
    }
}

impl Shared {
    fn spawn(self: &Arc<Self>, slots: &mut Vec<Arc<Slot>>) -> Result<(), ToolError> {
        let slot = Arc::new(Slot::default());
        let (shared, own) = (Arc::clone(self), Arc::clone(&slot));
        #[cfg(test)]
        if self.exhausted.load(Ordering::Acquire) {
            return Err(no_thread(&std::io::ErrorKind::WouldBlock.into()));
        }
        std::thread::Builder::new()
            .name("sqlite".into())
            .stack_size(STACK_BYTES)
            .spawn(move || shared.serve(&own))
            .map_err(|error| no_thread(&error))?;
        slots.push(slot);
        Ok(())
    }

    /// Interrupts the statement of a call, if one is running.
    fn interrupt(&self, ticket: &Arc<Ticket>) {
        for slot in lock(&self.slots).iter() {
            // The lock is held so that the thread cannot start another call in the meantime.
            if let Some((running, handle)) = &*lock(&slot.running)
                && Arc::ptr_eq(running, ticket)
            {
                handle.interrupt();
            }
        }
    }

    /// Leaves threads alone that do not come back, and starts those that are missing.
    ///
    /// # Errors
    /// When there is no thread and none can be started.
    fn heal(self: &Arc<Self>) -> Result<(), ToolError> {
        if self.opener.place == Place::Memory {
            // The database is in the thread's own connection.
            return Ok(());
        }
        let mut slots = lock(&self.slots);
        slots.retain(|slot| {
            let late = lock(&slot.running).as_ref().is_some_and(|(ticket, _)| ticket.is_late());
            if !late || self.stuck.load(Ordering::Acquire) >= STUCK_MAX {
                return true;
            }
            self.stuck.fetch_add(1, Ordering::AcqRel);
            slot.abandoned.store(true, Ordering::Release);
            false
        });
        while slots.len() < self.threads {
            match self.spawn(&mut slots) {
                Ok(()) => {}
                Err(fault) if slots.is_empty() => return Err(fault),
                // Those that are there serve the queue; the next call tries again.
                Err(_) => break,
            }
        }
        Ok(())
    }

    fn serve(&self, slot: &Slot) {
        let mut conn: Option<GuardedConnection> = None;
        loop {
            let Ok(job) = lock(&self.queue).recv() else { return };
            if job.ticket.cancelled.get().is_some() {
                continue;
            }
            if job.ticket.is_over() {
                (job.work)(Err(stuck(&job.ticket)));
                continue;
            }
            call::set(Some(Arc::clone(&job.ticket)));
            // A panic here is a name that is not a string; the connection is not reused.
            let done = catch_unwind(AssertUnwindSafe(|| match self.ready(&mut conn, &job.scope) {
                Ok(conn) => {
                    *lock(&slot.running) = Some((Arc::clone(&job.ticket), conn.conn.get_interrupt_handle()));
                    job.ticket.started.store(true, Ordering::Release);
                    (job.work)(Ok(conn));
                }
                Err(fault) => (job.work)(Err(fault)),
            }));
            *lock(&slot.running) = None;
            if done.is_err() {
                conn = None;
            } else if let Some(conn) = &conn {
                conn.clear();
            }
            call::set(None);
            if slot.abandoned.load(Ordering::Acquire) {
                self.stuck.fetch_sub(1, Ordering::AcqRel);
                return;
            }
        }
    }

    /// The connection for a permitted call; opened if it is missing or its file was replaced.
    fn ready<'a>(
        &self,
        conn: &'a mut Option<GuardedConnection>,
        scope: &RootsScope,
    ) -> Result<&'a mut GuardedConnection, ToolError> {
        self.opener.place.admit(scope)?;
        if conn.as_ref().is_some_and(|conn| self.opener.has_moved(conn)) {
            *conn = None;
        }
        match conn {
            Some(conn) => Ok(conn),
            None => Ok(conn.insert(self.opener.open()?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    const PATIENCE: Patience = Patience { call: Duration::from_millis(50), lock: Duration::from_millis(50) };

    fn workers(dir: &tempfile::TempDir) -> Workers {
        let file = dir.path().join("x.db");
        rusqlite::Connection::open(&file).unwrap().execute_batch("CREATE TABLE t(a)").unwrap();
        let opener = Opener {
            place: Place::File(file),
            named: String::new(),
            read_only: false,
            only_reads: false,
            create: false,
            made: Arc::default(),
            logs: false,
            foreign_keys: false,
        };
        Workers::open(opener, 2).unwrap()
    }

    fn view() -> crate::View {
        crate::View { bounds: crate::table::Bounds { rows: 10, bytes: 1_000 }, form: crate::table::Form::Json }
    }

    /// A call whose work is one long step: it is over when the sender is dropped.
    async fn stuck_call(workers: &Workers, after: &'static str) -> (ToolError, mpsc::Sender<()>) {
        let (release, released) = mpsc::channel::<()>();
        let work = move |conn: &mut GuardedConnection| {
            let _ = released.recv();
            if after.is_empty() { Ok(()) } else { conn.write(after, None, view()).map(drop) }
        };
        (workers.run(PATIENCE, RootsScope::as_configured(), work).await.unwrap_err(), release)
    }

    async fn call(workers: &Workers, sql: &'static str) -> Result<String, ToolError> {
        // It may meet the lock of a change that is being rolled back.
        let patience = Patience { call: Duration::from_secs(30), lock: Duration::from_secs(30) };
        let work = move |conn: &mut GuardedConnection| match sql.starts_with("SELECT") {
            true => conn.read(sql, None, view()).map(|table| table.text),
            false => conn.write(sql, None, view()).map(|_| String::new()),
        };
        workers.run(patience, RootsScope::as_configured(), work).await
    }

    const COUNT: &str = "SELECT count(*) AS n FROM t";

    #[tokio::test]
    async fn a_step_that_takes_long_is_left_behind_and_others_go_on() {
        let dir = tempfile::tempdir().unwrap();
        let workers = workers(&dir);
        let mut held = Vec::new();
        for _ in 0..STUCK_MAX {
            let (fault, release) = stuck_call(&workers, "").await;
            assert_eq!(fault.message(), "Database error: no answer within 0.05 s");
            held.push(release);
        }
        assert_eq!(call(&workers, COUNT).await.unwrap(), r#"[{"n":0}]"#);
        // No more threads are given up than that: those that are left may be held too.
        for _ in 0..2 {
            held.push(stuck_call(&workers, "").await.1);
        }
        let refused = workers.run(PATIENCE, RootsScope::as_configured(), |_| Ok(())).await.unwrap_err();
        assert!(refused.advice().unwrap().contains("The database is busy with other calls"), "{refused}");
        drop(held);
        assert_eq!(call(&workers, COUNT).await.unwrap(), r#"[{"n":0}]"#, "when they are done, all is well again");
        // As many can be left behind as before.
        for _ in 0..3_000 {
            if workers.shared.stuck.load(Ordering::Acquire) == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(workers.shared.stuck.load(Ordering::Acquire), 0);
    }

    #[tokio::test]
    async fn a_call_that_waits_gets_a_thread_when_those_before_it_are_left_behind() {
        let dir = tempfile::tempdir().unwrap();
        let workers = workers(&dir);
        // They are not late yet when the last one comes.
        let (first, second, waited) =
            tokio::join!(stuck_call(&workers, ""), stuck_call(&workers, ""), call(&workers, COUNT));
        assert_eq!(waited.unwrap(), r#"[{"n":0}]"#);
        drop((first, second));
    }

    #[tokio::test]
    async fn without_a_thread_calls_are_refused_until_there_is_one_again() {
        let dir = tempfile::tempdir().unwrap();
        let workers = workers(&dir);
        workers.shared.exhausted.store(true, Ordering::Release);
        let first = stuck_call(&workers, "").await.1;
        assert_eq!(call(&workers, COUNT).await.unwrap(), r#"[{"n":0}]"#, "the other thread serves it");
        let held = [first, stuck_call(&workers, "").await.1];
        let refused = call(&workers, COUNT).await.unwrap_err();
        assert!(refused.message().starts_with("Error: no thread for the database"), "{refused}");
        workers.shared.exhausted.store(false, Ordering::Release);
        assert_eq!(call(&workers, COUNT).await.unwrap(), r#"[{"n":0}]"#);
        assert_eq!(lock(&workers.shared.slots).len(), 2);
        drop(held);
    }

    #[tokio::test]
    async fn a_change_that_is_late_is_not_committed() {
        let dir = tempfile::tempdir().unwrap();
        let workers = workers(&dir);
        let (_, release) = stuck_call(&workers, "INSERT INTO t VALUES (1)").await;
        drop(release);
        // Both threads have done something else when these are answered, so the slow one has ended.
        let (first, second) = tokio::join!(call(&workers, "INSERT INTO t VALUES (2)"), call(&workers, COUNT));
        first.unwrap();
        second.unwrap();
        while lock(&workers.shared.slots).iter().any(|slot| lock(&slot.running).is_some()) {
            tokio::task::yield_now().await;
        }
        assert_eq!(call(&workers, COUNT).await.unwrap(), r#"[{"n":1}]"#);
    }
}
