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
/// Without it they are kept in memory, and end with the process.
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
    /// Tasks in the memory of this process, which end with it.
    pub fn memory() -> Tasks {
        Tasks { store: None, is_revoked: None }
    }

    /// Tasks in a store, for example a file: `Store::sqlite("tasks.db")?`.
    ///
    /// What a client was told is stored before it is told. Tasks of a process that died are found by the next one: a tool that
    /// is [`resumable`](crate::Tool::resumable) is started again, the tasks of others fail. Servers of different names may share a
    /// store.
    pub fn at(store: Store) -> Tasks {
        Tasks { store: Some(store), is_revoked: None }
    }

    /// Ends the tasks of those who may no longer have any: `is_revoked` is asked every few seconds about the principal of each
    /// task that runs here, and must not block. A task whose principal is revoked is cancelled.
    ///
    /// Without it such a task runs to its end, and nobody can read it. The principal of a task that was started again has no
    /// claims.
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
