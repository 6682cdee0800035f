//! Runs statements; there is no other way to run one.
//!
//! Each statement runs in a transaction of its own: BEGIN READ ONLY (unless the operator allows writing), settings that
//! the guarantees rely on, one catalogue query about the functions that the statement names, the statement, ROLLBACK or
//! COMMIT, and a reset, which removes anything the session could have kept (advisory locks, settings, temporary tables):
//! `DISCARD ALL` after what may have written or called a function of somebody's own, otherwise all of it but our own prepared
//! statements. All responses are read before the call returns. A read-only statement is vetted before any of it is sent.
//!
//! A call that is dropped or takes too long cancels the statement in the server and closes its connection.

use crate::answer::{Answer, Request, Taken};
mod lease;
mod types;

use crate::config::{Config, Target};
use crate::error::{failure, unknown_outcome};
use crate::sql::functions::{Function, Rules, judge};
use crate::sql::lexer::quote_name;
use crate::sql::rules::Seen;
use crate::sql::{FOREIGN_SCHEMAS, FUNCTIONS, SETTINGS};
use crate::value::{Type, parameter, texts};
use crate::wire::{Fetch, Fetched, Row, ServerError, Step, Value, WireError};
use lease::{ABANDONED_MAX, BackOff, Idle, Lease};
use linchpin_kit::{ErrorKind, ToolError};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Time a call may take in addition to the statement's timeout: connecting, checking, resetting.
const GRACE: Duration = Duration::from_secs(15);

/// Rows fetched at a time when a result is not fetched at once.
const ROWS_AT_A_TIME: usize = 200;

/// Maximum rows of a result that is fetched at once, so that the transaction ends in the same round trip.
const ROWS_AT_ONCE: usize = 1_001;

const BEGIN_READ_ONLY: Step<'_> = Step::plain("BEGIN READ ONLY");
const BEGIN_READ_WRITE: Step<'_> = Step::plain("BEGIN READ WRITE");
const ROLLBACK: Step<'_> = Step::plain("ROLLBACK");
const COMMIT: Step<'_> = Step::plain("COMMIT");
/// What `DISCARD ALL` does, without plans and our own prepared statements.
const RESET: [Step<'_>; 7] = [
    Step::plain("CLOSE ALL"),
    Step::plain("SET SESSION AUTHORIZATION DEFAULT"),
    Step::plain("RESET ALL"),
    Step::plain("UNLISTEN *"),
    Step::plain("SELECT pg_catalog.pg_advisory_unlock_all()"),
    Step::plain("DISCARD TEMP"),
    Step::plain("DISCARD SEQUENCES"),
];
const DISCARD_ALL: [Step<'_>; 1] = [Step::plain("DISCARD ALL")];
/// A caller's statement uses the server's JIT setting.
const JIT_AS_SET: Step<'_> = Step::plain("SET LOCAL jit TO DEFAULT");

/// Planned once, not for each call's values. Since PostgreSQL 12.
const PLAN_ONCE: Step<'_> = Step::plain("SET LOCAL plan_cache_mode TO force_generic_plan");
const PLAN_AS_SET: Step<'_> = Step::plain("SET LOCAL plan_cache_mode TO DEFAULT");
const PLANS_ONCE_SINCE: u32 = 120_000;

/// A database and its connections.
pub(crate) struct Database {
    pub(crate) target: Arc<Target>,
    pub(crate) config: Arc<Config>,
    places: Arc<Semaphore>,
    /// One permit for each connection that may be waiting for a cancellation.
    abandoned: Arc<Semaphore>,
    idle: Mutex<Vec<Idle>>,
    back_off: Mutex<Option<BackOff>>,
    types: Mutex<HashMap<(u32, i32), Type>>,
    /// Whether a pooler gives each transaction another session, so that nothing can be kept prepared.
    pooled: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Data behind these locks is consistent between any two statements, so poisoning can be ignored.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a statement has no result.
enum Stop {
    /// The statement is not allowed.
    Refused(ToolError),
    Wire(WireError),
}

impl Stop {
    fn wire(&self) -> Option<&WireError> {
        match self {
            Self::Refused(_) => None,
            Self::Wire(error) => Some(error),
        }
    }
}

impl From<WireError> for Stop {
    fn from(error: WireError) -> Self {
        Self::Wire(error)
    }
}

/// What a transaction may do, and whether its changes are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// READ ONLY, rolled back.
    Read,
    /// Read-write, rolled back all the same.
    Try,
    /// Read-write, committed.
    Write,
}

/// Facts about a connection.
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
            pooled: AtomicBool::new(false),
        }
    }

    /// Waits until no connection is in use and abandoned statements have been cancelled in the server.
    pub(crate) async fn rest(&self) {
        let places = u32::try_from(self.config.connections.clamp(1, 100)).unwrap_or(1);
        let _ = self.places.acquire_many(places).await;
        let _ = self.abandoned.acquire_many(ABANDONED_MAX).await;
    }

    /// Adds a deadline beyond the server's own timeout. `committing` says whether COMMIT was sent.
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

    /// A connection with a transaction in which the vetted statement may run. A connection that was closed while idle
    /// is replaced once: nothing of the caller's was sent on it.
    async fn begin(self: &Arc<Self>, mode: Mode, seen: Option<&Seen>) -> Result<Lease, ToolError> {
        let mut lease = self.lease(true).await?;
        let mut opened = self.open(&mut lease, mode, seen).await;
        if lease.is_stale(opened.as_ref().err().and_then(Stop::wire)) {
            drop(lease);
            lease = self.lease(false).await?;
            opened = self.open(&mut lease, mode, seen).await;
        }
        if opened.as_ref().err().and_then(Stop::wire).is_some_and(WireError::is_about_prepared) {
            self.pooled.store(true, Ordering::Relaxed);
            let _ = self.end(&mut lease, ROLLBACK).await;
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

    /// Begins a transaction and looks up the functions that the vetted statement may call.
    async fn open(&self, lease: &mut Lease, mode: Mode, seen: Option<&Seen>) -> Result<(), Stop> {
        lease.plain = false;
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
        let kept = !self.pooled.load(Ordering::Relaxed);
        let plans_once = kept && lease.role.version >= PLANS_ONCE_SINCE;
        let mut steps = match kept {
            false => vec![begin, Step::new(SETTINGS, &settings), Step::new(FUNCTIONS, &named)],
            true => vec![
                begin,
                Step::kept("linchpin_settings", SETTINGS, &settings),
                Step::kept("linchpin_functions", FUNCTIONS, &named),
            ],
        };
        if limited {
            steps.push(Step::new(FOREIGN_SCHEMAS, &schemas));
        }
        steps.push(JIT_AS_SET);
        if plans_once {
            steps.insert(1, PLAN_ONCE);
            steps.push(PLAN_AS_SET);
        }
        let mut answers = lease.run(&steps).await?;
        if plans_once {
            answers.remove(1);
        }
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
        lease.plain = mode == Mode::Read && answers[2].is_empty();
        answers[2].iter().map(Function::new).try_for_each(|f| judge(&f, rules)).map_err(Stop::Refused)
    }

    /// Ends the transaction and resets the session.
    async fn end(&self, lease: &mut Lease, with: Step<'static>) -> Result<(), WireError> {
        if !lease.busy {
            return Ok(());
        }
        let reset = lease.reset();
        let result = lease.start()?.run_groups(&[&[with], reset]).await;
        let mut groups = lease.note(result)?.into_iter();
        let ended = groups.next().unwrap_or(Ok(Vec::new()));
        if groups.all(|reset| reset.is_ok()) {
            lease.is_reset();
        } else {
            // The state of the session is unknown.
            lease.connection = None;
        }
        ended.map(drop).map_err(WireError::Server)
    }

    /// Ends the transaction and passes on the result of what ran in it.
    async fn finish<T>(
        &self,
        mut lease: Lease,
        mode: Mode,
        committing: &AtomicBool,
        result: Result<T, ToolError>,
    ) -> Result<T, ToolError> {
        if mode != Mode::Write || result.is_err() {
            // Rows that were read are valid, however the transaction ends.
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

    /// The parameters of [`SETTINGS`]. For our own queries `pg_catalog` comes first: some of PostgreSQL's functions
    /// resolve names on the search path.
    fn settings(&self, own: bool) -> [Value; 5] {
        let milliseconds = |time: Duration| Some(time.as_millis().max(1).to_string());
        let statement = self.config.statement_timeout;
        let path: Vec<String> = self.target.schemas.iter().map(|schema| quote_name(schema)).collect();
        let path = (!path.is_empty()).then(|| path.join(", "));
        let first = own.then(|| "pg_catalog".to_owned());
        [milliseconds(statement), milliseconds(self.config.lock_timeout), milliseconds(statement + GRACE), path, first]
    }

    /// Runs a caller's statement; in [`Mode::Read`] it must have been vetted. `before` are our own statements that
    /// prepare the session, which is not reused.
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
        self.name_types(&mut answer).await;
        Ok(answer)
    }

    /// Runs several statements of a caller in one transaction: all or none.
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

    /// Runs a query of our own in a read-only transaction. Returns its rows and the facts about the connection.
    pub(crate) async fn own(self: &Arc<Self>, sql: &str, parameters: &[Value]) -> Result<(Vec<Row>, Link), ToolError> {
        let settings = self.settings(true);
        let steps = [BEGIN_READ_ONLY, Step::new(SETTINGS, &settings), Step::new(sql, parameters)];
        let work = async {
            let mut lease = self.lease(true).await?;
            let mut result = Self::own_on(&mut lease, &steps).await;
            if lease.is_stale(result.as_ref().err()) {
                drop(lease);
                lease = self.lease(false).await?;
                result = Self::own_on(&mut lease, &steps).await;
            }
            let encrypted = lease.connection.as_ref().is_some_and(|connection| connection.encrypted);
            let link = Link { version: lease.role.version, encrypted };
            result.map(|rows| (rows, link)).map_err(|error| self.error(error))
        };
        self.within(&AtomicBool::new(false), work).await
    }

    /// All of it in one round trip.
    async fn own_on(lease: &mut Lease, steps: &[Step<'_>]) -> Result<Vec<Row>, WireError> {
        let result = lease.start()?.run_groups(&[steps, &[ROLLBACK], &RESET]).await;
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

    /// The rows of a statement. A read-only transaction whose rows are fetched at once ends in the same round trip.
    async fn rows(&self, lease: &mut Lease, request: Request<'_>, mode: Mode) -> Result<Answer, WireError> {
        let mut taken = Taken::new(request, self.config.max_bytes);
        let at_once = mode == Mode::Read && taken.wanted() <= ROWS_AT_ONCE;
        let count = |taken: &Taken| if at_once { taken.wanted() } else { taken.wanted().clamp(1, ROWS_AT_A_TIME) };
        let count = |taken: &Taken| Some(i32::try_from(count(taken)).unwrap_or(i32::MAX));
        let after: &[&[Step<'_>]] = if at_once { &[&[ROLLBACK], lease.reset()] } else { &[] };
        let mut found = Fetched::default();
        // The format of a parameter depends on the type that the statement expects.
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
        // A statement that may write runs to completion: its effect must not depend on how many of its rows fit.
        let stops = |taken: &Taken| taken.full && mode != Mode::Write;
        while went.is_ok() && found.failure.is_none() && found.done.is_none() && !stops(&taken) && !at_once {
            let out = Fetch { rows: count(&taken), ..Fetch::default() };
            went = self.exchange(lease, out, &mut found, &mut taken).await;
        }
        match (went, found.failure) {
            (Ok(()), None) => {}
            (Ok(()), Some(error)) => return Err(WireError::Server(error)),
            // The rows so far are a usable beginning; the rest is not worth reading.
            (Err(WireError::TooLarge), _) if !taken.rows.is_empty() && mode != Mode::Write => taken.full = true,
            (Err(error), _) => return Err(error),
        }
        if taken.full && taken.rows.is_empty() {
            return Err(WireError::TooLarge);
        }
        let tag = found.done.unwrap_or_default();
        Ok(Answer { described: found.described, types: Vec::new(), rows: taken.rows, truncated: taken.full, tag })
    }

    /// A round trip for a caller's statement. If not all of it was read, the connection stays marked for cancellation.
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
            lease.is_reset();
        }
        lease.note(went)
    }

    /// The tool error for a failure.
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
}

/// The error of one of several statements, by its number.
fn at_statement(number: usize, error: &ToolError) -> ToolError {
    let why = error.message().trim_end_matches('.');
    let told = ToolError::new(format!("Statement {number}: {why}. Nothing was changed."))
        .hint(error.advice().unwrap_or("Correct it and send all statements again."))
        .detail(error.quoted().unwrap_or_default());
    error.error_kind().map_or(told.clone(), |kind| told.kind(kind))
}

/// The error of a statement, or of a wrong number of parameters.
fn wrong_count((wants, has): (usize, usize), failure: Option<ServerError>) -> Option<ServerError> {
    // A statement that failed to parse has no parameters.
    if wants == has || failure.as_ref().is_some_and(|error| error.code != "08P01") {
        return failure;
    }
    Some(ServerError::ours("08P01", format!("The statement takes {wants} params and {has} were passed")))
}
