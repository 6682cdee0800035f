//! Connections to a database: how many, when anew, what a role may be, and the one way statements run.
//!
//! A statement runs in a transaction of its own: BEGIN READ ONLY (unless the operator allows writing), settings that the
//! rest relies on, one question to the catalogue about the functions that the statement names, the statement, ROLLBACK
//! or COMMIT, and `DISCARD ALL`, which takes away what the session could have kept (advisory locks, settings, temporary
//! tables). All of it is read before the call is answered. The server sees nothing of a read-only statement before it
//! was vetted.
//!
//! A call that is dropped, or takes too long, asks the server to cancel the statement, and its connection is closed.

use crate::answer::{Answer, Request, Taken};
use crate::config::{Config, Target};
use crate::error::{failure, unknown_outcome};
use crate::sql::functions::{Function, Rules, judge};
use crate::sql::lexer::quote_name;
use crate::sql::rules::Seen;
use crate::sql::{FOREIGN_SCHEMAS, FUNCTIONS, SETTINGS, TYPES, WHO};
use crate::value::{Shape, Type, parameter, texts};
use crate::wire::{Connection, Described, Fetch, Fetched, Row, ServerError, Step, Value, WireError};
use linchpin_kit::{ErrorKind, ToolError};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// How long an unused connection is kept.
const IDLE_TIME: Duration = Duration::from_secs(300);

/// How long after a failure to connect the next attempt is made: doubled each time, up to the second. Until then calls
/// are answered with that failure.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(2));

/// Connections that may be given up at a time with somebody waiting for that.
const ABANDONED_MAX: u32 = 1_000;

/// What a call may take beyond the statement's own time: connecting, checking, resetting.
const GRACE: Duration = Duration::from_secs(15);

/// Rows asked for at a time, where not all of an answer is asked for at once.
const ROWS_AT_A_TIME: usize = 200;

/// Rows of an answer that is asked for at once, so that the transaction ends in the same exchange of messages.
const ROWS_AT_ONCE: usize = 1_001;

/// Types whose names are kept.
const TYPES_MAX: usize = 10_000;

const BEGIN_READ_ONLY: Step<'_> = Step::plain("BEGIN READ ONLY");
const BEGIN_READ_WRITE: Step<'_> = Step::plain("BEGIN READ WRITE");
const ROLLBACK: Step<'_> = Step::plain("ROLLBACK");
const COMMIT: Step<'_> = Step::plain("COMMIT");
const DISCARD_ALL: Step<'_> = Step::plain("DISCARD ALL");
/// What callers ask is compiled as the server is set.
const JIT_AS_SET: Step<'_> = Step::plain("SET LOCAL jit TO DEFAULT");

/// What the role of a connection may do, and what the server is.
#[derive(Debug, Clone)]
struct Role {
    /// Whether it may read settings that are protected.
    protected_settings: bool,
    /// Whether the database's encoding is UTF-8.
    utf8: bool,
    /// For example 150004.
    version: u32,
}

/// A database and the connections to it.
pub(crate) struct Database {
    pub(crate) target: Arc<Target>,
    pub(crate) config: Arc<Config>,
    places: Arc<Semaphore>,
    /// One less for each connection on which a statement is being cancelled.
    abandoned: Arc<Semaphore>,
    idle: Mutex<Vec<Idle>>,
    back_off: Mutex<Option<BackOff>>,
    types: Mutex<HashMap<(u32, i32), Type>>,
}

struct Idle {
    connection: Connection,
    role: Role,
    since: Instant,
}

#[derive(Clone)]
struct BackOff {
    until: Instant,
    wait: Duration,
    error: ToolError,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these locks is whole between any two statements.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A connection in use. Dropped while something runs on it, it has the server cancel that.
struct Lease {
    database: Arc<Database>,
    connection: Option<Connection>,
    role: Role,
    /// Whether it was used before: the server may have closed it since.
    reused: bool,
    /// Whether its transaction, or what follows it, has not been seen to end.
    busy: bool,
    /// Whether something stays in the session that `DISCARD ALL` does not know.
    retired: bool,
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
    /// The connection, for something that is to run on it.
    fn start(&mut self) -> Result<&mut Connection, WireError> {
        self.busy = true;
        self.connection.as_mut().ok_or_else(|| WireError::Broken("the connection is closed".to_owned()))
    }

    /// Gives up a connection on which this happened, if it is not usable any more.
    fn note<T>(&mut self, result: Result<T, WireError>) -> Result<T, WireError> {
        match result {
            Err(WireError::Broken(_)) => self.connection = None,
            // There is more to come.
            Err(WireError::TooLarge) => self.abandon(),
            _ => {}
        }
        result
    }

    /// Has the server cancel what runs, and closes.
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

    async fn run(&mut self, steps: &[Step<'_>]) -> Result<Vec<Vec<Row>>, WireError> {
        let result = self.start()?.run(steps).await;
        self.note(result)
    }

    /// Whether it was closed while nobody used it.
    fn is_stale<T>(&self, result: &Result<T, Stop>) -> bool {
        self.reused && matches!(result, Err(Stop::Wire(WireError::Broken(_))))
    }
}

/// Why a statement has no answer.
enum Stop {
    /// It may not run.
    Refused(ToolError),
    Wire(WireError),
}

impl From<WireError> for Stop {
    fn from(error: WireError) -> Self {
        Self::Wire(error)
    }
}

/// What a transaction may do, and what of it stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// READ ONLY, rolled back.
    Read,
    /// May write; rolled back all the same.
    Try,
    /// May write; committed.
    Write,
}

/// What is known about a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link {
    /// For example 150004.
    pub(crate) version: u32,
    pub(crate) encrypted: bool,
}

impl Database {
    pub(crate) fn new(target: Target, config: Arc<Config>) -> Self {
        Self {
            places: Arc::new(Semaphore::new(config.connections.clamp(1, 100))),
            target: Arc::new(target),
            config,
            abandoned: Arc::new(Semaphore::new(ABANDONED_MAX as usize)),
            idle: Mutex::default(),
            back_off: Mutex::default(),
            types: Mutex::default(),
        }
    }

    /// Waits until no connection is in use, and the statements that were given up have been cancelled in the server.
    pub(crate) async fn rest(&self) {
        let places = u32::try_from(self.config.connections.clamp(1, 100)).unwrap_or(1);
        let _ = self.places.acquire_many(places).await;
        let _ = self.abandoned.acquire_many(ABANDONED_MAX).await;
    }

    async fn lease(self: &Arc<Self>, reuse: bool) -> Result<Lease, ToolError> {
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

    /// Why a role may do more than it should, by the answer to [`WHO`].
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

    /// Gives work on the database a deadline beyond the server's own. `committing` says whether COMMIT was sent.
    async fn within<T>(
        &self,
        committing: &AtomicBool,
        work: impl Future<Output = Result<T, ToolError>>,
    ) -> Result<T, ToolError> {
        let time = self.config.statement_timeout + self.target.connect_timeout + GRACE;
        tokio::time::timeout(time, work).await.unwrap_or_else(|_| {
            if committing.load(Ordering::Relaxed) {
                return Err(unknown_outcome("The server did not respond to COMMIT in time."));
            }
            Err(ToolError::new(format!("The statement was cancelled after {} s.", time.as_secs()))
                .kind(ErrorKind::Timeout)
                .hint("Narrow it: fewer rows, an indexed condition, or LIMIT."))
        })
    }

    /// A connection with a transaction in which a statement that was seen may run. One that was closed while nobody used
    /// it is replaced once: nothing of the caller's was sent on it.
    async fn begin(self: &Arc<Self>, mode: Mode, seen: Option<&Seen>) -> Result<Lease, ToolError> {
        let mut lease = self.lease(true).await?;
        let mut opened = self.open(&mut lease, mode, seen).await;
        if lease.is_stale(&opened) {
            drop(lease);
            lease = self.lease(false).await?;
            opened = self.open(&mut lease, mode, seen).await;
        }
        match opened {
            Ok(()) => Ok(lease),
            Err(stop) => {
                let error = match stop {
                    Stop::Refused(error) => error,
                    Stop::Wire(error) => self.error(error),
                };
                let _ = self.end(&mut lease, ROLLBACK).await;
                Err(error)
            }
        }
    }

    /// Begins a transaction, and asks the catalogue what the statement seen may call.
    async fn open(&self, lease: &mut Lease, mode: Mode, seen: Option<&Seen>) -> Result<(), Stop> {
        let settings = self.settings(false);
        let limited = !self.target.schemas.is_empty();
        let begin = if mode == Mode::Read { BEGIN_READ_ONLY } else { BEGIN_READ_WRITE };
        let Some(seen) = seen else {
            lease.run(&[begin, Step::new(SETTINGS, &settings), JIT_AS_SET]).await?;
            return Ok(());
        };
        seen.vet(lease.role.utf8, lease.role.protected_settings).map_err(Stop::Refused)?;
        let named = seen.named(limited);
        let schemas = [Some(texts(&seen.qualifiers)), Some(texts(&self.target.schemas))];
        let mut steps = vec![begin, Step::new(SETTINGS, &settings), Step::new(FUNCTIONS, &named)];
        if limited {
            steps.push(Step::new(FOREIGN_SCHEMAS, &schemas));
        }
        steps.push(JIT_AS_SET);
        let answers = lease.run(&steps).await?;
        if let (true, Some(row)) = (limited, answers[3].first()) {
            let why = format!("Schema {} is not one of the allowed schemas.", row.text(0));
            let hint = format!("Allowed: {}.", self.target.schemas.join(", "));
            return Err(Stop::Refused(ToolError::denied(why).hint(hint)));
        }
        let rules = Rules {
            allowed: &self.config.allow_functions,
            protected_settings: lease.role.protected_settings,
            schemas_limited: limited,
        };
        answers[2].iter().map(Function::new).try_for_each(|f| judge(&f, rules)).map_err(Stop::Refused)
    }

    /// Ends the transaction and takes away what the session may have kept.
    async fn end(&self, lease: &mut Lease, with: Step<'static>) -> Result<(), WireError> {
        if !lease.busy || lease.connection.is_none() {
            return Ok(());
        }
        let result = lease.start()?.run_groups(&[&[with], &[DISCARD_ALL]]).await;
        let mut groups = lease.note(result)?.into_iter();
        let ended = groups.next().unwrap_or(Ok(Vec::new()));
        if groups.all(|reset| reset.is_ok()) {
            lease.busy = false;
        } else {
            // Nobody knows what the session is now.
            lease.connection = None;
        }
        ended.map(drop).map_err(WireError::Server)
    }

    /// Ends the transaction with the result of what ran in it.
    async fn finish<T>(
        &self,
        mut lease: Lease,
        mode: Mode,
        committing: &AtomicBool,
        result: Result<T, ToolError>,
    ) -> Result<T, ToolError> {
        if mode != Mode::Write || result.is_err() {
            // What was read was read, whatever becomes of the transaction.
            let _ = self.end(&mut lease, ROLLBACK).await;
            return result;
        }
        committing.store(true, Ordering::Relaxed);
        match self.end(&mut lease, COMMIT).await {
            Ok(()) => result,
            Err(WireError::Server(error)) => Err(self.error(WireError::Server(error))),
            Err(error) => Err(unknown_outcome(self.error(error).message())),
        }
    }

    /// The parameters of [`SETTINGS`]; for a question of our own, where PostgreSQL's own functions must find
    /// PostgreSQL's own too: some look for what they need on the path.
    fn settings(&self, own: bool) -> [Value; 5] {
        let milliseconds = |time: Duration| Some(time.as_millis().max(1).to_string());
        let statement = self.config.statement_timeout;
        let path: Vec<String> = self.target.schemas.iter().map(|schema| quote_name(schema)).collect();
        let path = (!path.is_empty()).then(|| path.join(", "));
        let first = own.then(|| "pg_catalog".to_owned());
        [milliseconds(statement), milliseconds(self.config.lock_timeout), milliseconds(statement + GRACE), path, first]
    }

    /// Runs a statement of a caller; in [`Mode::Read`] it must have been seen. `before` are statements of our own that
    /// prepare the session, which is not used again.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        mode: Mode,
        seen: Option<&Seen>,
        before: &[Step<'_>],
        request: Request<'_>,
    ) -> Result<Answer, ToolError> {
        let committing = AtomicBool::new(false);
        let work = async {
            let mut lease = self.begin(mode, seen).await?;
            lease.retired = !before.is_empty();
            let prepared = if before.is_empty() { Ok(Vec::new()) } else { lease.run(before).await };
            let result = match prepared {
                Ok(_) => self.fetch(&mut lease, request, mode).await,
                Err(error) => Err(self.error(error)),
            };
            self.finish(lease, mode, &committing, result).await
        };
        let mut answer = self.within(&committing, work).await?;
        match self.name_types(&mut answer).await {
            // What was written is written: the types are shown by their numbers.
            Err(error) if mode == Mode::Read => Err(error),
            _ => Ok(answer),
        }
    }

    /// Runs several statements of a caller in one transaction: all or nothing.
    pub(crate) async fn ask_all(self: &Arc<Self>, requests: &[Request<'_>]) -> Result<Vec<Answer>, ToolError> {
        let committing = AtomicBool::new(false);
        let work = async {
            let mut lease = self.begin(Mode::Write, None).await?;
            let mut result = Ok(Vec::with_capacity(requests.len()));
            for (at, request) in requests.iter().enumerate() {
                let fetched = self.fetch(&mut lease, *request, Mode::Write).await;
                result = result.and_then(|mut answers: Vec<Answer>| {
                    answers.push(fetched.map_err(|error| at_statement(at + 1, &error))?);
                    Ok(answers)
                });
                if result.is_err() {
                    break;
                }
            }
            self.finish(lease, Mode::Write, &committing, result).await
        };
        self.within(&committing, work).await
    }

    /// Runs a statement of our own in a reading transaction; its rows, and what is known about the connection.
    pub(crate) async fn own(self: &Arc<Self>, sql: &str, parameters: &[Value]) -> Result<(Vec<Row>, Link), ToolError> {
        let settings = self.settings(true);
        let steps = [BEGIN_READ_ONLY, Step::new(SETTINGS, &settings), Step::new(sql, parameters)];
        let work = async {
            let mut lease = self.lease(true).await?;
            let mut result = Self::own_on(&mut lease, &steps).await.map_err(Stop::Wire);
            if lease.is_stale(&result) {
                drop(lease);
                lease = self.lease(false).await?;
                result = Self::own_on(&mut lease, &steps).await.map_err(Stop::Wire);
            }
            let encrypted = lease.connection.as_ref().is_some_and(|connection| connection.encrypted);
            let link = Link { version: lease.role.version, encrypted };
            match result {
                Ok(rows) => Ok((rows, link)),
                Err(Stop::Refused(error)) => Err(error),
                Err(Stop::Wire(error)) => Err(self.error(error)),
            }
        };
        self.within(&AtomicBool::new(false), work).await
    }

    /// All of it in one exchange of messages.
    async fn own_on(lease: &mut Lease, steps: &[Step<'_>]) -> Result<Vec<Row>, WireError> {
        let result = lease.start()?.run_groups(&[steps, &[ROLLBACK], &[DISCARD_ALL]]).await;
        let mut groups = lease.note(result)?.into_iter();
        let asked = groups.next().unwrap_or(Ok(Vec::new()));
        if groups.all(|ended| ended.is_ok()) {
            lease.busy = false;
        } else {
            lease.connection = None;
        }
        asked.map(|mut answers| answers.pop().unwrap_or_default()).map_err(WireError::Server)
    }

    async fn fetch(&self, lease: &mut Lease, request: Request<'_>, mode: Mode) -> Result<Answer, ToolError> {
        match self.rows(lease, request, mode).await {
            Err(WireError::TooLarge) if mode == Mode::Write => {
                Err(ToolError::new("The result is too large, so nothing was changed.")
                    .kind(ErrorKind::Limited { retry_after: None })
                    .hint("Return fewer columns, or omit RETURNING."))
            }
            result => result.map_err(|error| self.error(error)),
        }
    }

    /// The rows of a statement. A reading transaction whose rows are all asked for at once ends in the same exchange.
    async fn rows(&self, lease: &mut Lease, request: Request<'_>, mode: Mode) -> Result<Answer, WireError> {
        let mut taken = Taken::new(request, self.config.max_bytes);
        let at_once = mode == Mode::Read && taken.wanted() <= ROWS_AT_ONCE;
        let count = |taken: &Taken| if at_once { taken.wanted() } else { taken.wanted().min(ROWS_AT_A_TIME) };
        let count = |taken: &Taken| Some(i32::try_from(count(taken)).unwrap_or(i32::MAX));
        let after: &[Step<'_>] = if at_once { &[ROLLBACK, DISCARD_ALL] } else { &[] };
        let mut found = Fetched::default();
        // What form parameters take depends on what the statement wants them to be.
        let whole = request.parameters.is_empty();
        let mut out = Fetch { prepare: Some(request.sql), ..Fetch::default() };
        if whole {
            out = Fetch { bind: Some(&[]), rows: count(&taken), after, ..out };
        }
        let mut went = self.exchange(lease, out, &mut found, &mut taken).await;
        if went.is_ok() {
            let counts = (found.described.parameters.len(), request.parameters.len());
            found.failure = wrong_count(counts, found.failure.take());
        }
        if went.is_ok() && found.failure.is_none() && !whole {
            let pairs = request.parameters.iter().zip(&found.described.parameters);
            let parameters: Vec<Value> = pairs.map(|(value, oid)| parameter(value, *oid)).collect();
            let out = Fetch { bind: Some(&parameters), rows: count(&taken), after, ..Fetch::default() };
            went = self.exchange(lease, out, &mut found, &mut taken).await;
        }
        while went.is_ok() && found.failure.is_none() && found.done.is_none() && !taken.full && !at_once {
            let out = Fetch { rows: count(&taken), ..Fetch::default() };
            went = self.exchange(lease, out, &mut found, &mut taken).await;
        }
        match (went, found.failure) {
            (Ok(()), None) => {}
            (Ok(()), Some(error)) => return Err(WireError::Server(error)),
            // What was read is a good beginning; the rest is not worth its bytes.
            (Err(WireError::TooLarge), _) if !taken.rows.is_empty() && mode != Mode::Write => taken.full = true,
            (Err(error), _) => return Err(error),
        }
        if taken.full && taken.rows.is_empty() {
            return Err(WireError::TooLarge);
        }
        let tag = found.done.unwrap_or_default();
        Ok(Answer { described: found.described, types: Vec::new(), rows: taken.rows, truncated: taken.full, tag })
    }

    /// An exchange about a statement of a caller. Where not all of it was read, the connection is left to be cancelled.
    async fn exchange(
        &self,
        lease: &mut Lease,
        out: Fetch<'_>,
        found: &mut Fetched,
        taken: &mut Taken,
    ) -> Result<(), WireError> {
        let ends = !out.after.is_empty();
        let went = lease.start()?.fetch(out, found, self.config.max_bytes, |of, row| taken.take(of, row)).await;
        if went.is_ok() && ends {
            lease.busy = false;
        }
        lease.note(went)
    }

    /// The words for a failure.
    pub(crate) fn error(&self, error: WireError) -> ToolError {
        match error {
            WireError::Server(error) => failure(&error),
            WireError::Broken(why) => ToolError::new(format!("The connection to the database was lost: {why}."))
                .kind(ErrorKind::Upstream { status: None })
                .hint("Try again; the next call reconnects."),
            WireError::TooLarge => {
                ToolError::new(format!("A row exceeds the maximum result size of {} bytes.", self.config.max_bytes))
                    .kind(ErrorKind::Limited { retry_after: None })
                    .hint("Select fewer columns, or part of a value with left(…) or substring(…).")
            }
        }
    }

    /// Forgets the names of types: they may have changed.
    pub(crate) fn forget_types(&self) {
        lock(&self.types).clear();
    }

    /// The types of columns, as far as they are known.
    fn known_types(&self, described: &Described) -> Vec<Type> {
        let known = lock(&self.types);
        let unknown = |oid| Type { name: format!("oid {oid}"), shape: Shape::of(oid), array: None };
        described
            .fields
            .iter()
            .map(|field| {
                known.get(&(field.type_oid, field.type_modifier)).cloned().unwrap_or_else(|| unknown(field.type_oid))
            })
            .collect()
    }

    /// Says what the columns' types are; asks for those that are not known yet.
    async fn name_types(self: &Arc<Self>, answer: &mut Answer) -> Result<(), ToolError> {
        let mut missing: Vec<(u32, i32)> = {
            let known = lock(&self.types);
            let all = answer.described.fields.iter().map(|field| (field.type_oid, field.type_modifier));
            all.filter(|key| !known.contains_key(key)).collect()
        };
        missing.sort_unstable();
        missing.dedup();
        let asked = if missing.is_empty() { Ok(()) } else { self.look_up_types(&missing).await };
        answer.types = self.known_types(&answer.described);
        asked
    }

    async fn look_up_types(self: &Arc<Self>, missing: &[(u32, i32)]) -> Result<(), ToolError> {
        let list = |items: Vec<String>| Some(texts(items));
        let parameters = [
            list(missing.iter().map(|(oid, _)| oid.to_string()).collect()),
            list(missing.iter().map(|(_, modifier)| modifier.to_string()).collect()),
        ];
        let (rows, _) = self.own(TYPES, &parameters).await?;
        let mut known = lock(&self.types);
        if known.len() > TYPES_MAX {
            known.clear();
        }
        for row in &rows {
            let number = |at: usize| row.text(at).parse::<u32>().unwrap_or_default();
            let key = (number(0), row.text(1).parse().unwrap_or(-1));
            let array = row.cell(3).and_then(|delimiter| delimiter.chars().next());
            let element = if array.is_some() { number(4) } else { key.0 };
            known.insert(key, Type { name: row.text(2), shape: Shape::of(element), array });
        }
        Ok(())
    }
}

/// The error of one of several statements.
fn at_statement(number: usize, error: &ToolError) -> ToolError {
    let why = error.message().trim_end_matches('.');
    let told = ToolError::new(format!("Statement {number}: {why}. Nothing was changed."))
        .hint(error.advice().unwrap_or("Correct it and send all statements again."))
        .detail(error.quoted().unwrap_or_default());
    error.error_kind().map_or(told.clone(), |kind| told.kind(kind))
}

/// Why a statement that takes and has so many parameters has no answer, if it failed or these are not as many.
fn wrong_count((wants, has): (usize, usize), failure: Option<ServerError>) -> Option<ServerError> {
    // A statement that could not be parsed takes nothing.
    if wants == has || failure.as_ref().is_some_and(|error| error.code != "08P01") {
        return failure;
    }
    Some(ServerError::ours("08P01", format!("The statement takes {wants} params and {has} were passed")))
}
