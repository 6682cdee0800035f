//! What a server says about its tasks, and a tool about those of its calls.

use linchpin_core::Principal;
use linchpin_store::Store;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Whether somebody's tasks are to end.
pub(crate) type IsRevoked = Arc<dyn Fn(&Principal) -> bool + Send + Sync>;

/// Where the tasks of a server are kept: [`Server::tasks`](crate::Server::tasks).
///
/// By default, they are kept in memory and end with the process.
///
/// ```
/// use linchpin_server::{Server, Tasks, Tool};
///
/// async fn yearly() -> &'static str {
///     "the report"
/// }
///
/// let server = Server::new("reports", "1.0")
///     .tool(Tool::new("yearly", "Writes the report of a year.").task(), yearly)
///     .tasks(Tasks::memory());
/// ```
#[derive(Clone)]
#[must_use]
pub struct Tasks {
    pub(crate) store: Option<Store>,
    pub(crate) is_revoked: Option<IsRevoked>,
}

impl Tasks {
    /// Keeps tasks in the memory of this process; they end with it.
    pub fn memory() -> Tasks {
        Tasks { store: None, is_revoked: None }
    }

    /// Keeps tasks in a store, for example a file: `Store::sqlite("tasks.db")?`.
    ///
    /// Everything is stored before it is sent to a client. If a process dies, another one, or the next one to start,
    /// takes over its tasks: those of [`resumable`](crate::Tool::resumable) and idempotent tools are restarted, others
    /// fail. Servers with different names may share a store.
    pub fn at(store: Store) -> Tasks {
        Tasks { store: Some(store), is_revoked: None }
    }

    /// Cancels the tasks of revoked principals: `is_revoked` is called every few seconds with the principal of each task that
    /// runs in this process, and must not block.
    ///
    /// Without this, such a task runs to its end, although its result can no longer be read. The principal of a
    /// restarted task has no claims.
    ///
    /// ```
    /// # use linchpin_server::Tasks;
    /// # fn is_gone(subject: &str) -> bool { subject == "eve" }
    /// let tasks = Tasks::memory().cancel_on_revoke(|principal| is_gone(principal.subject()));
    /// ```
    pub fn cancel_on_revoke(self, is_revoked: impl Fn(&Principal) -> bool + Send + Sync + 'static) -> Tasks {
        Tasks { is_revoked: Some(Arc::new(is_revoked)), ..self }
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks").field("store", &self.store).finish_non_exhaustive()
    }
}

/// When a call of a tool becomes a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// If it is not done soon.
    May,
    /// Always.
    Must,
    /// When its handler says so.
    Later,
}

/// What a tool says about tasks of its calls.
#[derive(Clone, Debug)]
pub(crate) struct TaskTool {
    pub(crate) mode: Mode,
    pub(crate) ttl: Option<Duration>,
    pub(crate) meanwhile: Option<Box<str>>,
    pub(crate) resumable: bool,
}

impl TaskTool {
    pub(crate) fn new(mode: Mode) -> TaskTool {
        TaskTool { mode, ttl: None, meanwhile: None, resumable: false }
    }
}
