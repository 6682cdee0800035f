//! The call that a thread is working on: its deadline, and whether it is over.

use linchpin_kit::{ErrorKind, ToolError};
use std::cell::{Cell, RefCell};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How long after its deadline a statement may take to stop.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// Time limits of a call: in total, and for a lock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    pub(crate) call: Duration,
    pub(crate) lock: Duration,
}

/// A call, shared by its thread and its caller.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(crate) deadline: Instant,
    pub(crate) patience: Patience,
    pub(crate) cancelled: OnceLock<Instant>,
    pub(crate) started: AtomicBool,
}

impl Ticket {
    pub(crate) fn is_over(&self) -> bool {
        self.cancelled.get().is_some() || Instant::now() >= self.deadline
    }

    /// Whether it is long overdue.
    pub(crate) fn is_late(&self) -> bool {
        let end = self.cancelled.get().copied().map_or(self.deadline, |cancelled| cancelled.min(self.deadline));
        Instant::now() >= end + GRACE
    }
}

thread_local! {
    /// The call that this thread is working on.
    static CURRENT: RefCell<Option<Arc<Ticket>>> = const { RefCell::new(None) };
    /// When it started to wait for a lock.
    static WAITING: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Whether this thread's call is cancelled or overdue. SQLite asks every few microseconds.
pub(crate) fn is_over() -> bool {
    CURRENT.with_borrow(|ticket| ticket.as_ref().is_some_and(|ticket| ticket.is_over()))
}

/// Sets the call that this thread works on.
pub(crate) fn set(ticket: Option<Arc<Ticket>>) {
    CURRENT.set(ticket);
}

/// The time limit of this thread's call in seconds.
fn seconds() -> f64 {
    CURRENT.with_borrow(|ticket| ticket.as_ref().map_or(0.0, |t| t.patience.call.as_secs_f64()))
}

/// The error of an interrupted statement.
pub(crate) fn interrupted() -> ToolError {
    ToolError::new(format!("Database error: the statement was stopped after {} s", seconds()))
        .kind(ErrorKind::Timeout)
        .hint("Nothing was changed. Narrow it with WHERE or LIMIT, or add an index.")
}

/// The error of a statement that was interrupted during preparation.
pub(crate) fn unprepared() -> ToolError {
    ToolError::new(format!("Database error: the statement could not be prepared within {} s", seconds()))
        .kind(ErrorKind::Timeout)
        .hint(
            "It is very complex, or the schema of the database is very large. The operator can raise the limit with --timeout.",
        )
}

/// SQLite's busy handler: whether to try again while another connection holds the lock.
pub(crate) fn wait_for_lock(tries: i32) -> bool {
    let now = Instant::now();
    if tries == 0 {
        WAITING.set(Some(now));
    }
    let patience = CURRENT.with_borrow(|ticket| ticket.as_ref().map_or(Duration::ZERO, |t| t.patience.lock));
    let waited = now - WAITING.get().unwrap_or(now);
    if is_over() || waited >= patience {
        return false;
    }
    let pause = Duration::from_millis(match tries {
        0..2 => 1,
        2..10 => 5,
        _ => 20,
    });
    std::thread::sleep(pause.min(patience - waited));
    true
}
