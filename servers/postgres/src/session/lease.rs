//! The connections to a database: how many there are, when they are replaced, and which roles are accepted.

use super::{DISCARD_ALL, Database, RESET, lock};
use crate::sql::WHO;
use crate::wire::{Connection, Row, Step, WireError};
use linchpin_kit::{ErrorKind, ToolError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

/// How long an unused connection is kept.
const IDLE_TIME: Duration = Duration::from_secs(300);

/// Delay before reconnecting after a failure: doubled each time, up to the second value. Calls in between get the
/// previous error.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(2));

/// Maximum number of connections that may be waiting for a cancellation at a time.
pub(super) const ABANDONED_MAX: u32 = 1_000;

/// The privileges of a connection's role, and facts about the server.
#[derive(Debug, Clone)]
pub(super) struct Role {
    /// Whether the role may read protected settings.
    pub(super) protected_settings: bool,
    /// Whether the database's encoding is UTF-8.
    pub(super) utf8: bool,
    /// For example 150004.
    pub(super) version: u32,
}

/// An idle connection.
pub(super) struct Idle {
    connection: Connection,
    role: Role,
    since: Instant,
}

/// A failure to connect.
#[derive(Clone)]
pub(super) struct BackOff {
    until: Instant,
    wait: Duration,
    error: ToolError,
}

/// A connection in use. Dropping it while a statement runs cancels that statement in the server.
pub(super) struct Lease {
    database: Arc<Database>,
    pub(super) connection: Option<Connection>,
    pub(super) role: Role,
    /// Whether it was used before: the server may have closed it in the meantime.
    reused: bool,
    /// Whether the end of its transaction, or of the reset after it, has not been read yet.
    pub(super) busy: bool,
    /// Whether its statement only reads, with functions of PostgreSQL that have no effect: what is prepared stays as it is.
    pub(super) plain: bool,
    /// Whether the session has state that a reset does not remove.
    pub(super) retired: bool,
    _place: OwnedSemaphorePermit,
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.busy {
            return self.abandon();
        }
        let Some(connection) = self.connection.take() else { return };
        if !self.retired {
            let idle = Idle { connection, role: self.role.clone(), since: Instant::now() };
            lock(&self.database.idle).push(idle);
        }
    }
}

impl Lease {
    /// The connection, marked as running something.
    pub(super) fn start(&mut self) -> Result<&mut Connection, WireError> {
        self.busy = true;
        self.connection.as_mut().ok_or_else(|| WireError::Broken("the connection is closed".to_owned()))
    }

    /// Discards the connection if this error made it unusable.
    pub(super) fn note<T>(&mut self, result: Result<T, WireError>) -> Result<T, WireError> {
        match result {
            Err(WireError::Broken(_)) => self.connection = None,
            // More messages will follow.
            Err(WireError::TooLarge) => self.abandon(),
            _ => {}
        }
        result
    }

    /// Cancels the running statement in the server and closes the connection.
    fn abandon(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let database = self.database.clone();
        let noted = database.abandoned.clone().try_acquire_owned();
        runtime.spawn(async move {
            connection.abandon(database.target.clone()).await;
            drop(noted);
        });
    }

    /// The statements that remove what the session could have kept.
    pub(super) fn reset(&self) -> &'static [Step<'static>] {
        if self.plain { &RESET } else { &DISCARD_ALL }
    }

    /// Notes that they have run.
    pub(super) fn is_reset(&mut self) {
        self.busy = false;
        if let (false, Some(connection)) = (self.plain, &mut self.connection) {
            connection.forget_prepared();
        }
    }

    pub(super) async fn run(&mut self, steps: &[Step<'_>]) -> Result<Vec<Vec<Row>>, WireError> {
        let result = self.start()?.run(steps).await;
        self.note(result)
    }

    /// Whether it was closed while idle.
    pub(super) fn is_stale(&self, error: Option<&WireError>) -> bool {
        self.reused && matches!(error, Some(WireError::Broken(_)))
    }
}

impl Database {
    /// Returns a connection; prefers idle ones if they may be reused.
    pub(super) async fn lease(self: &Arc<Self>, reuse: bool) -> Result<Lease, ToolError> {
        let waiting = tokio::time::timeout(self.config.statement_timeout, self.places.clone().acquire_owned());
        let Ok(Ok(place)) = waiting.await else {
            return Err(ToolError::new("All connections to the database are in use.")
                .kind(ErrorKind::Limited { retry_after: None })
                .hint("Try again when other calls have finished."));
        };
        let lease = |connection, role, reused| Lease {
            database: self.clone(),
            connection: Some(connection),
            role,
            reused,
            busy: false,
            plain: false,
            retired: false,
            _place: place,
        };
        while let Some(idle) = { lock(&self.idle).pop() } {
            if reuse && idle.since.elapsed() < IDLE_TIME {
                return Ok(lease(idle.connection, idle.role, true));
            }
            idle.connection.close().await;
        }
        let failed = lock(&self.back_off).clone().filter(|failed| failed.until > Instant::now());
        if let Some(failed) = failed {
            let wait = failed.until.saturating_duration_since(Instant::now()).as_millis().max(1);
            let hint = failed.error.advice().unwrap_or("It failed a moment ago.").to_owned();
            return Err(failed.error.hint(format!("{hint} The next attempt is in {wait} ms.")));
        }
        match self.connect().await {
            Ok((connection, role)) => {
                *lock(&self.back_off) = None;
                Ok(lease(connection, role, false))
            }
            Err(error) => {
                let mut back_off = lock(&self.back_off);
                let wait = back_off.as_ref().map_or(BACK_OFF.0, |before| (before.wait * 2).min(BACK_OFF.1));
                *back_off = Some(BackOff { until: Instant::now() + wait, wait, error: error.clone() });
                Err(error)
            }
        }
    }

    async fn connect(&self) -> Result<(Connection, Role), ToolError> {
        let mut connection = Connection::open(&self.target).await?;
        let asked = tokio::time::timeout(self.target.connect_timeout, connection.run(&[Step::plain(WHO)])).await;
        let answer = asked
            .map_err(|_| ToolError::new("The server did not respond in time.").kind(ErrorKind::Timeout))?
            .map_err(|e| self.error(e))?;
        let row = answer.first().and_then(|rows| rows.first());
        let row = row.ok_or_else(|| ToolError::new("The server did not report the role."))?;
        if connection.reported.get("client_encoding").is_none_or(|encoding| encoding != "UTF8") {
            return Err(ToolError::new("The server did not accept UTF-8 as the encoding of the connection."));
        }
        if let (Some(power), false) = (self.power(row), self.config.allow_privileged_role) {
            connection.close().await;
            let role = &self.target.user;
            return Err(ToolError::denied(format!("The role {role} has more than read privileges: {power}.")).hint(
                "Connect as a role that can only read (CREATE ROLE reader LOGIN PASSWORD '…'; GRANT pg_read_all_data TO \
                 reader;). The operator can accept this role with --allow-privileged-role.",
            ));
        }
        let role = Role {
            protected_settings: row.is_true(3),
            version: row.text(4).parse().unwrap_or_default(),
            utf8: row.text(5) == "UTF8",
        };
        Ok((connection, role))
    }

    /// Why a role is too powerful, according to the row of [`WHO`].
    fn power(&self, row: &Row) -> Option<String> {
        let member = row.text(1);
        if row.is_true(0) {
            Some("it is a superuser".to_owned())
        } else if !member.is_empty() {
            Some(format!("it is a member of {member}"))
        } else if row.is_true(2) && !self.config.writes() {
            Some("it owns data".to_owned())
        } else {
            None
        }
    }
}
