//! Connections to a database: how many, when anew, what a role may be, and the one way statements run.
//!
//! A statement runs in a transaction of its own, READ ONLY unless the operator said otherwise, with its settings
//! pinned; then the transaction ends and `DISCARD ALL` takes away what the session could have kept (advisory locks,
//! settings, temporary tables). Where only PostgreSQL's own reading functions can have run, its parts do, all but those
//! that make the server forget the plans of our own questions. Nobody waits for the end of a reading transaction; the
//! next call on the connection reads how it went, and takes another connection where it failed. A call that is dropped,
//! or takes too long, asks the server to cancel the statement, and its connection is closed.
//!
//! A statement is vetted by what the catalogue answers, in its own transaction and before the server sees it. That
//! costs an exchange of messages. Of statements whose names have been harmless before, it is saved: they go out
//! together with [`GATE`], a question that fails where it would not be answered as before, and behind a failure the
//! server does nothing. No answer is believed because it was given once: the gate asks again, unless it can tell that
//! nothing has changed.

use crate::catalog::{DISCARD_ALL, RESET, ROLLBACK, ROLLBACK_ONCE, SETTINGS, WHO};
use crate::cell::{Answer, Request, Row, Taken, Type};
use crate::config::{Config, Target};
use crate::guard::{self, CHECK, FOREIGN_SCHEMAS, Function, GATE, SUSPECT, Seen};
use crate::lex::quote_name;
use crate::tools::{failure, unknown, wrong_count};
use crate::wire::{Connection, Exchange, Exchanged, Fetched, Step, Value, WireError};
use linchpin_kit::ToolError;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// How long after its last use a connection is taken to be open still, so that nothing has to be asked first.
const REST_TIME: Duration = Duration::from_secs(1);

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

/// Rows of an answer that is asked for at once, so that the transaction ends without being asked to.
const ROWS_AT_ONCE: usize = 1_001;

/// Sets of names whose verdicts are kept, and bytes of one.
const VERDICTS_MAX: (usize, usize) = (200, 4_096);

/// What the role of a connection may do, and what the server is.
#[derive(Debug, Clone)]
pub(crate) struct Role {
    /// Whether it may read settings that are protected.
    pub(crate) protected_settings: bool,
    /// Whether the database's encoding is UTF-8.
    pub(crate) utf8: bool,
    /// For example 150004.
    pub(crate) version: u32,
    /// Whether the connection is to one process of the server, which keeps statements by name. A pooler may have another
    /// process answer each transaction; it shows by a number that is not the process's.
    pub(crate) direct: bool,
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
    pub(crate) types: Mutex<HashMap<(u32, i32), Type>>,
    verdicts: Mutex<HashMap<Vec<Value>, Verdict>>,
}

/// What the catalogue last said about a set of names. It is only a guess about what it says now.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    /// Nothing, at this mark.
    Clean(Value),
    /// That [`CHECK`] has to be asked.
    Suspect,
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
    fault: ToolError,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these locks is whole between any two statements.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A connection in use. Dropped in the middle of a statement, it has the server cancel it.
struct Lease {
    database: Arc<Database>,
    connection: Option<Connection>,
    role: Role,
    busy: bool,
    /// Whether nobody used it for a moment before.
    rested: bool,
    /// Whether no other connection can take its place: it is new, or something of the caller's may have run on it.
    settled: bool,
    /// Whether something stays in the session that `DISCARD ALL` does not know.
    retired: bool,
    /// Whether the transaction is one that only reads.
    reading: bool,
    /// Whether only PostgreSQL's own reading functions can run in it.
    clean: bool,
    /// Whether its end was sent along with what it was for.
    ended: bool,
    /// Whether COMMIT was sent: whoever stops waiting from then on does not know whether the change was made.
    committing: Arc<AtomicBool>,
    _place: OwnedSemaphorePermit,
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        if self.retired && !self.busy {
            return;
        }
        if !self.busy {
            let idle = Idle { connection, role: self.role.clone(), since: Instant::now() };
            lock(&self.database.idle).push(idle);
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let database = self.database.clone();
            let noted = database.abandoned.clone().try_acquire_owned();
            runtime.spawn(async move {
                connection.abandon(database.target.clone()).await;
                drop(noted);
            });
        }
    }
}

impl Lease {
    fn new(
        database: &Arc<Database>,
        connection: Connection,
        role: Role,
        rested: Option<bool>,
        place: OwnedSemaphorePermit,
    ) -> Self {
        Self {
            database: database.clone(),
            connection: Some(connection),
            role,
            busy: false,
            rested: rested.unwrap_or_default(),
            settled: rested.is_none(),
            retired: false,
            reading: false,
            clean: false,
            ended: false,
            committing: Arc::default(),
            _place: place,
        }
    }

    fn connection(&mut self) -> Result<&mut Connection, WireError> {
        self.connection.as_mut().ok_or_else(|| WireError::Broken("the connection is closed".to_owned()))
    }

    /// A statement of our own that the server keeps, where it is always the same process of it.
    fn kept<'a>(&self, name: &'static str, sql: &'a str, parameters: &'a [Value]) -> Step<'a> {
        Step { name: if self.role.direct { name } else { "" }, sql, parameters }
    }

    /// Whether a connection that was kept turned out to be closed: the server never answered what was sent.
    fn is_stale<T>(&self, result: &Result<T, Stop>) -> bool {
        matches!(result, Err(Stop::Features(WireError::Broken(_)))) && !self.settled
    }

    /// What ends a transaction that only reads, and takes away what the session may have kept.
    fn ending(&self) -> [&'static [Step<'static>]; 2] {
        if self.clean { [&ROLLBACK, &RESET] } else { [&ROLLBACK_ONCE, &DISCARD_ALL] }
    }
}

/// What a connection is taken for.
#[derive(Clone, Copy)]
enum Work<'a> {
    /// A transaction; for a statement that was seen, if any.
    Open(Mode, Option<&'a Seen>),
    /// A statement that only reads.
    Read(&'a Seen, Request<'a>),
}

/// Why a statement has no answer.
enum Stop {
    /// It may not run, or makes no sense.
    Refused(ToolError),
    Features(WireError),
    /// The gate was closed: the catalogue has to be asked.
    Gate,
}

impl From<WireError> for Stop {
    fn from(error: WireError) -> Self {
        Self::Features(error)
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
            verdicts: Mutex::default(),
        }
    }

    /// Forgets the names of types: they may have changed.
    pub(crate) fn forget_types(&self) {
        lock(&self.types).clear();
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
                .hint("Try again when other calls have finished."));
        };
        while let Some(idle) = { lock(&self.idle).pop() } {
            if reuse && idle.since.elapsed() < IDLE_TIME {
                let rested = Some(idle.since.elapsed() >= REST_TIME);
                return Ok(Lease::new(self, idle.connection, idle.role, rested, place));
            }
            idle.connection.close().await;
        }
        let failed = lock(&self.back_off).clone().filter(|failed| failed.until > Instant::now());
        if let Some(failed) = failed {
            let wait = failed.until.saturating_duration_since(Instant::now()).as_millis().max(1);
            let hint = failed.fault.advice().unwrap_or("It failed a moment ago.").to_owned();
            return Err(failed.fault.hint(format!("{hint} The next attempt is in {wait} ms.")));
        }
        match self.connect().await {
            Ok((connection, role)) => {
                *lock(&self.back_off) = None;
                Ok(Lease::new(self, connection, role, None, place))
            }
            Err(fault) => {
                let mut back_off = lock(&self.back_off);
                let wait = back_off.as_ref().map_or(BACK_OFF.0, |before| (before.wait * 2).min(BACK_OFF.1));
                *back_off = Some(BackOff { until: Instant::now() + wait, wait, fault: fault.clone() });
                Err(fault)
            }
        }
    }

    async fn connect(&self) -> Result<(Connection, Role), ToolError> {
        let mut connection = Connection::open(&self.target).await?;
        let asked = tokio::time::timeout(self.target.connect_timeout, connection.run(&[Step::once(&WHO, &[])])).await;
        let answer =
            asked.map_err(|_| ToolError::new("The server did not respond in time."))?.map_err(|e| self.fault(e))?;
        let row = answer.first().and_then(|rows| rows.first());
        let row = row.ok_or_else(|| ToolError::new("The server did not report the role."))?;
        if connection.reported.get("client_encoding").is_none_or(|encoding| encoding != "UTF8") {
            return Err(ToolError::new("The server did not accept UTF-8 as the encoding of the connection."));
        }
        let mut powers = Vec::new();
        if row.is_true(0) {
            powers.push("it is a superuser".to_owned());
        }
        let member = row.text(1);
        if !member.is_empty() && powers.is_empty() {
            powers.push(format!("it is a member of {member}"));
        }
        if row.is_true(2) && powers.is_empty() && !self.config.writes() {
            powers.push("it owns data".to_owned());
        }
        if let (Some(power), false) = (powers.first(), self.config.allow_privileged_role) {
            connection.close().await;
            return Err(ToolError::new(format!("The role {} has more than read privileges: {power}.", self.target.user)).hint(
                "Connect as a role that can only read (CREATE ROLE reader LOGIN PASSWORD '…'; GRANT pg_read_all_data TO \
                 reader;). The operator can accept this role with --allow-privileged-role.",
            ));
        }
        let role = Role {
            protected_settings: row.is_true(3),
            version: row.text(4).parse().unwrap_or_default(),
            utf8: row.text(5) == "UTF8",
            direct: row.text(6) == connection.process().to_string(),
        };
        Ok((connection, role))
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
                return Err(unknown("The server did not respond to COMMIT in time."));
            }
            Err(ToolError::new(format!("The statement was cancelled after {} s.", time.as_secs()))
                .hint("Narrow it: fewer rows, an indexed condition, or LIMIT."))
        })
    }

    /// Does something on a connection. One that was closed while nobody used it is replaced once; nothing has run by
    /// then.
    async fn on_lease(self: &Arc<Self>, work: Work<'_>) -> Result<(Lease, Answer), ToolError> {
        let mut lease = self.lease(true).await?;
        let mut result = self.work(&mut lease, work).await;
        if lease.is_stale(&result) {
            (lease.connection, lease.busy) = (None, false);
            drop(lease);
            lease = self.lease(false).await?;
            result = self.work(&mut lease, work).await;
        }
        match result {
            Ok(answer) => Ok((lease, answer)),
            Err(stop) => {
                let fault = self.stopped(&mut lease, "", stop);
                let _ = self.end(&mut lease, false).await;
                Err(fault)
            }
        }
    }

    async fn work(&self, lease: &mut Lease, work: Work<'_>) -> Result<Answer, Stop> {
        match work {
            Work::Open(mode, seen) => self.open(lease, mode, seen).await.map(|()| Answer::default()),
            Work::Read(seen, request) => self.read(lease, seen, request).await,
        }
    }

    /// Opens a transaction; what the statement seen may call has been asked of the catalogue, and may be called.
    async fn open(&self, lease: &mut Lease, mode: Mode, seen: Option<&Seen>) -> Result<(), Stop> {
        // Nothing has begun yet.
        (lease.reading, lease.clean, lease.ended) = (mode == Mode::Read, false, true);
        if let Some(seen) = seen {
            seen.vet(lease.role.utf8, lease.role.protected_settings).map_err(Stop::Refused)?;
        }
        lease.ended = false;
        let settings = self.settings(mode == Mode::Read && seen.is_none());
        let begin = lease.kept("linchpin_begin", "BEGIN READ ONLY", &[]);
        let begin = if mode == Mode::Read { begin } else { Step::once("BEGIN READ WRITE", &[]) };
        let mut steps = vec![begin, lease.kept("linchpin_settings", &SETTINGS, &settings)];
        let Some(seen) = seen else {
            if mode != Mode::Read {
                steps.push(Step::once("SET LOCAL jit TO DEFAULT", &[]));
            }
            Self::run_on(lease, &steps).await?;
            return Ok(());
        };
        let names = seen.names(&self.target.schemas);
        let check = seen.check(!self.target.schemas.is_empty());
        let guessed = lock(&self.verdicts).get(&names).cloned();
        let mut functions = Vec::new();
        let mut suspicious = guessed == Some(Verdict::Suspect);
        if !suspicious {
            let asked = planned(lease, &mut steps, lease.kept("linchpin_suspect", &SUSPECT, &names));
            let answers = Self::run_on(lease, &steps).await?;
            let row = answers[asked].first();
            // Anything but a plain no is looked at.
            suspicious = row.is_none_or(|row| row.cell(0).as_deref() != Some("f"));
            let mark = row.and_then(|row| row.cell(1)).map(|mark| mark.into_owned());
            self.remember(names.clone(), if suspicious { Verdict::Suspect } else { Verdict::Clean(mark) });
            steps = vec![Step::once("SET LOCAL jit TO off", &[])];
        }
        if suspicious {
            let schemas = [names[4].clone(), names[5].clone()];
            let foreign = steps.len();
            steps.push(lease.kept("linchpin_schemas", &FOREIGN_SCHEMAS, &schemas));
            let asked = planned(lease, &mut steps, lease.kept("linchpin_check", &CHECK, &check));
            let answers = Self::run_on(lease, &steps).await?;
            functions.extend(answers[asked].iter().map(Function::new));
            self.vet_schemas(&answers[foreign])?;
            if functions.is_empty() {
                // It may be clean now.
                lock(&self.verdicts).remove(&names);
            }
        }
        let (protected_settings, schemas_limited) = (lease.role.protected_settings, !self.target.schemas.is_empty());
        let rules = guard::Rules { allowed: &[], protected_settings, schemas_limited };
        let harmless = |f: &Function| f.builtin && guard::judge(f, rules).is_ok();
        lease.clean = mode == Mode::Read && lease.role.direct && functions.iter().all(harmless);
        let judge = |f| guard::judge(f, guard::Rules { allowed: &self.config.allow_functions, ..rules });
        functions.iter().try_for_each(judge).map_err(Stop::Refused)
    }

    fn remember(&self, names: Vec<Value>, verdict: Verdict) {
        let bytes: usize = names.iter().flatten().map(String::len).sum();
        if bytes > VERDICTS_MAX.1 {
            return;
        }
        let mut verdicts = lock(&self.verdicts);
        if verdicts.len() >= VERDICTS_MAX.0 {
            verdicts.clear();
        }
        verdicts.insert(names, verdict);
    }

    /// Runs a statement in a transaction that only reads: in one exchange where its names have been harmless before, in
    /// two where not.
    async fn read(&self, lease: &mut Lease, seen: &Seen, request: Request<'_>) -> Result<Answer, Stop> {
        (lease.reading, lease.clean, lease.ended) = (true, false, true);
        seen.vet(lease.role.utf8, lease.role.protected_settings).map_err(Stop::Refused)?;
        if lease.connection()?.is_closed().await {
            return Err(Stop::Features(WireError::Broken("the server closed the connection".to_owned())));
        }
        let mut names = seen.names(&self.target.schemas);
        let guessed = lock(&self.verdicts).get(&names).cloned();
        if let (Some(Verdict::Clean(mark)), true, false) = (guessed, lease.role.direct, lease.rested) {
            let known = names.clone();
            names.push(mark);
            let settings = self.settings(false);
            let mut steps = vec![
                lease.kept("linchpin_begin", "BEGIN READ ONLY", &[]),
                lease.kept("linchpin_settings", &SETTINGS, &settings),
            ];
            let asked = planned(lease, &mut steps, lease.kept("linchpin_gate", &GATE, &names));
            // Nothing of the caller runs unless the gate says so.
            (lease.clean, lease.ended) = (true, false);
            match self.fetch(lease, &steps, request).await {
                Ok((answer, answers)) => {
                    let mark = answers[asked].first().and_then(|row| row.cell(0)).map(|mark| mark.into_owned());
                    if names.last() != Some(&mark) {
                        self.remember(known, Verdict::Clean(mark));
                    }
                    return Ok(answer);
                }
                Err(Stop::Gate) => {
                    // What is remembered is asked again below.
                    let _ = self.end(lease, false).await;
                }
                Err(stop) => return Err(stop),
            }
        }
        self.open(lease, Mode::Read, Some(seen)).await?;
        Ok(self.fetch(lease, &[], request).await?.0)
    }

    async fn run_on(lease: &mut Lease, steps: &[Step<'_>]) -> Result<Vec<Vec<Row>>, WireError> {
        lease.busy = true;
        let answers = lease.connection()?.run(steps).await;
        if !matches!(answers, Err(WireError::Broken(_) | WireError::TooLarge)) {
            lease.busy = false;
        }
        answers
    }

    /// Ends the transaction with the result of what ran in it.
    async fn finish<T>(&self, mut lease: Lease, mode: Mode, result: Result<T, ToolError>) -> Result<T, ToolError> {
        let keep = mode == Mode::Write && result.is_ok();
        let ended = self.end(&mut lease, keep).await;
        match (result, ended) {
            // A reading transaction that cannot be ended has given its answer all the same.
            (result, Err(fault)) if keep => result.and(Err(fault)),
            (result, _) => result,
        }
    }

    /// Ends the transaction and takes away what the session may have kept.
    async fn end(&self, lease: &mut Lease, keep: bool) -> Result<(), ToolError> {
        if lease.busy && keep {
            return Err(ToolError::new("The result is too large, so nothing was changed.")
                .hint("Return fewer columns, or omit RETURNING."));
        }
        if lease.busy || lease.connection.is_none() {
            // Where rows are still on their way, the drop cancels and closes.
            return Ok(());
        }
        if lease.reading {
            if !lease.ended {
                lease.busy = true;
                let ending = lease.ending();
                let sent = match lease.connection() {
                    Ok(connection) => connection.send_off(&ending).await.is_ok(),
                    Err(_) => false,
                };
                (lease.busy, lease.ended) = (false, true);
                if !sent {
                    lease.connection = None;
                }
            }
            return Ok(());
        }
        let finish = if keep { "COMMIT" } else { "ROLLBACK" };
        lease.committing.store(keep, Ordering::Relaxed);
        let ended = match Self::run_on(lease, &[Step::once(finish, &[])]).await {
            Ok(_) => Ok(()),
            Err(WireError::Server(error)) => Err(self.fault(WireError::Server(error))),
            Err(error) => {
                lease.connection = None;
                return Err(unknown(self.fault(error).message()));
            }
        };
        // How it went, the next exchange reads.
        let sent = match lease.connection() {
            Ok(connection) => connection.send_off(&[&DISCARD_ALL]).await.is_ok(),
            Err(_) => false,
        };
        if !sent {
            lease.connection = None;
        }
        ended
    }

    /// The parameters of [`SETTINGS`]; for a question of our own, where PostgreSQL's own functions must find
    /// PostgreSQL's own too: some look for what they need on the path.
    fn settings(&self, own: bool) -> Vec<Value> {
        let milliseconds = |time: Duration| Some(time.as_millis().max(1).to_string());
        let statement = self.config.statement_timeout;
        let path: Vec<String> = self.target.schemas.iter().map(|schema| quote_name(schema)).collect();
        let path = (!path.is_empty()).then(|| path.join(", "));
        let first = own.then(|| "pg_catalog".to_owned());
        vec![
            milliseconds(statement),
            milliseconds(self.config.lock_timeout),
            milliseconds(statement + GRACE),
            path,
            first,
        ]
    }

    fn vet_schemas(&self, foreign: &[Row]) -> Result<(), Stop> {
        let Some(row) = foreign.first() else { return Ok(()) };
        let why = format!("Schema {} is not one of the allowed schemas.", row.text(0));
        Err(Stop::Refused(ToolError::new(why).hint(format!("Allowed: {}.", self.target.schemas.join(", ")))))
    }

    /// Runs a statement of a caller; in [`Mode::Read`] it must have been seen. `before` are statements of our own that
    /// prepare the session, which is not used again.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        mode: Mode,
        seen: Option<&Seen>,
        before: &[(&str, &[Value])],
        request: Request<'_>,
    ) -> Result<Answer, ToolError> {
        let committing = Arc::<AtomicBool>::default();
        let work = async {
            if let (Mode::Read, Some(seen), []) = (mode, seen, before) {
                let (lease, answer) = self.on_lease(Work::Read(seen, request)).await?;
                return self.finish(lease, mode, Ok(answer)).await;
            }
            let (mut lease, _) = self.on_lease(Work::Open(mode, seen)).await?;
            lease.retired = !before.is_empty();
            lease.committing = committing.clone();
            let before: Vec<Step<'_>> = before.iter().map(|(sql, parameters)| Step::once(sql, parameters)).collect();
            let prepared = Self::run_on(&mut lease, &before).await.map_err(|e| self.fault(e));
            let result = match prepared {
                Ok(_) => self.statement(&mut lease, request).await,
                Err(fault) => Err(fault),
            };
            self.finish(lease, mode, result).await
        };
        let mut answer = self.within(&committing, work).await?;
        match self.name_types(&mut answer).await {
            // What was written is written: the types are shown by their numbers.
            Err(fault) if mode == Mode::Read => Err(fault),
            _ => Ok(answer),
        }
    }

    /// Runs several statements of a caller in one transaction: all or nothing.
    pub(crate) async fn ask_all(self: &Arc<Self>, requests: &[Request<'_>]) -> Result<Vec<Answer>, ToolError> {
        let committing = Arc::<AtomicBool>::default();
        let work = async {
            let (mut lease, _) = self.on_lease(Work::Open(Mode::Write, None)).await?;
            lease.committing = committing.clone();
            let mut result = Ok(Vec::with_capacity(requests.len()));
            for (at, request) in requests.iter().enumerate() {
                let answer = self.statement(&mut lease, *request).await;
                result = result.and_then(|mut answers| {
                    let answer = answer.map_err(|fault| {
                        let why = fault.message().trim_end_matches('.');
                        let message = format!("Statement {}: {why}. Nothing was changed", at + 1);
                        let hint = fault.advice().unwrap_or("Correct it and send all statements again.");
                        ToolError::new(message).hint(hint).as_outside()
                    })?;
                    answers.push(answer);
                    Ok(answers)
                });
                if result.is_err() {
                    break;
                }
            }
            self.finish(lease, Mode::Write, result).await
        };
        self.within(&committing, work).await
    }

    /// Runs a statement of our own in a reading transaction; its rows, and what is known about the connection.
    pub(crate) async fn own(self: &Arc<Self>, sql: &str, parameters: &[Value]) -> Result<(Vec<Row>, Link), ToolError> {
        let work = async {
            let (mut lease, _) = self.on_lease(Work::Open(Mode::Read, None)).await?;
            let link = Link {
                version: lease.role.version,
                encrypted: lease.connection.as_ref().is_some_and(|connection| connection.encrypted),
            };
            let result = Self::run_on(&mut lease, &[Step::once(sql, parameters)]).await.map_err(|e| self.fault(e));
            let rows = result.map(|answers| answers.into_iter().next().unwrap_or_default());
            Ok((self.finish(lease, Mode::Read, rows).await?, link))
        };
        self.within(&AtomicBool::new(false), work).await
    }

    async fn statement(&self, lease: &mut Lease, request: Request<'_>) -> Result<Answer, ToolError> {
        match self.fetch(lease, &[], request).await {
            Ok((answer, _)) => Ok(answer),
            Err(stop) => Err(self.stopped(lease, request.sql, stop)),
        }
    }

    /// The words for why there is no answer; a connection that is lost is given up.
    fn stopped(&self, lease: &mut Lease, sql: &str, stop: Stop) -> ToolError {
        match stop {
            Stop::Refused(fault) => fault,
            Stop::Gate => ToolError::new("The catalog changes too fast to be checked.").hint("Try again."),
            Stop::Features(error) => {
                if matches!(error, WireError::Broken(_)) {
                    lease.connection = None;
                }
                self.fault_of(sql, error)
            }
        }
    }

    /// The rows of a statement, and those of the questions that go out before it. A reading transaction whose rows are
    /// all asked for at once is ended in the same exchange.
    async fn fetch(
        &self,
        lease: &mut Lease,
        questions: &[Step<'_>],
        request: Request<'_>,
    ) -> Result<(Answer, Vec<Vec<Row>>), Stop> {
        // From here on it may run: no other connection repeats it, unless this one turns out to have been closed.
        lease.settled |= questions.is_empty();
        let bytes_max = self.config.max_bytes;
        let mut taken = Taken::new(request, bytes_max);
        let at_once = lease.reading && lease.role.direct && taken.wanted() <= ROWS_AT_ONCE;
        let count = |taken: &Taken| if at_once { taken.wanted() } else { taken.wanted().min(ROWS_AT_A_TIME) };
        let count = |taken: &Taken| i32::try_from(count(taken)).unwrap_or(i32::MAX);
        let ending = lease.ending();
        let after: &[&[Step<'_>]] = if at_once { &ending } else { &[] };
        // What form parameters take depends on what the statement wants them to be.
        let whole = request.parameters.is_empty();
        let mut found = Exchanged::default();
        let mut out = Exchange { first: questions, prepare: Some(request.sql), ..Exchange::default() };
        if whole {
            out = Exchange { bind: Some(&[]), rows: Some(count(&taken)), after, ..out };
            lease.ended = at_once;
        }
        let mut went = Self::exchange_on(lease, out, &mut found, &mut taken).await;
        lease.settled |= lease.connection.as_ref().is_some_and(|connection| connection.heard);
        if went.is_ok() {
            if found.answers.len() < questions.len() {
                return Err(Stop::Gate);
            }
            let counts = (found.described.parameters.len(), request.parameters.len());
            if let Some(error) = wrong_count(counts, found.failure.take()) {
                return Err(Stop::Features(WireError::Server(error)));
            }
        }
        let answers = std::mem::take(&mut found.answers);
        if went.is_ok() && !whole {
            let pairs = request.parameters.iter().zip(&found.described.parameters);
            let parameters: Vec<Value> = pairs.map(|(value, oid)| crate::cell::parameter(value, *oid)).collect();
            let rows = Some(count(&taken));
            lease.ended = at_once;
            let out = Exchange { bind: Some(&parameters), rows, after, ..Exchange::default() };
            went = Self::exchange_on(lease, out, &mut found, &mut taken).await;
        }
        while went.is_ok() && found.failure.is_none() && found.fetched == Some(Fetched::Suspended) {
            if taken.full || at_once {
                break;
            }
            let out = Exchange { rows: Some(count(&taken)), ..Exchange::default() };
            went = Self::exchange_on(lease, out, &mut found, &mut taken).await;
        }
        match (went, found.failure) {
            (Ok(()), None) => {}
            (Ok(()), Some(error)) => return Err(Stop::Features(WireError::Server(error))),
            // What was read is a good beginning; the rest is not worth its bytes.
            (Err(WireError::TooLarge), _) if !taken.rows.is_empty() => taken.full = true,
            (Err(error), _) => return Err(Stop::Features(error)),
        }
        if taken.full && taken.rows.is_empty() {
            return Err(Stop::Features(WireError::TooLarge));
        }
        let tag = match found.fetched {
            Some(Fetched::Done(tag)) => tag,
            _ => String::new(),
        };
        let (described, rows, truncated) = (found.described, taken.rows, taken.full);
        Ok((Answer { described, types: Vec::new(), rows, truncated, tag }, answers))
    }

    /// An exchange about a statement of a caller. Where not all of it was read, the lease stays busy.
    async fn exchange_on(
        lease: &mut Lease,
        out: Exchange<'_>,
        found: &mut Exchanged,
        taken: &mut Taken,
    ) -> Result<(), WireError> {
        lease.busy = true;
        found.fetched = None;
        let bytes_max = taken.bytes_max;
        let went = lease.connection()?.exchange(out, found, bytes_max, |of, row| taken.take(of, row)).await;
        lease.busy = matches!(went, Err(WireError::Broken(_) | WireError::TooLarge));
        went
    }

    /// The words for a failure.
    pub(crate) fn fault(&self, error: WireError) -> ToolError {
        self.fault_of("", error)
    }

    /// The words for a failure of this statement of a caller.
    fn fault_of(&self, sql: &str, error: WireError) -> ToolError {
        match error {
            WireError::Server(error) => failure(&error, self.config.writes().then_some(sql)),
            WireError::Broken(why) => ToolError::new(format!("The connection to the database was lost: {why}."))
                .hint("Try again; the next call reconnects."),
            WireError::TooLarge => {
                ToolError::new(format!("A row exceeds the maximum result size of {} bytes.", self.config.max_bytes))
                    .hint("Select fewer columns, or part of a value with left(…) or substring(…).")
            }
        }
    }
}

/// Adds a question that is planned once for all its parameters, and not compiled; its place. What callers ask is
/// planned and compiled as the server is set. Servers before version 12 choose for themselves between a plan for all
/// parameters and one for each.
fn planned<'a>(lease: &Lease, steps: &mut Vec<Step<'a>>, question: Step<'a>) -> usize {
    let generic = lease.role.direct && lease.role.version >= 120_000;
    if generic {
        steps.push(lease.kept("linchpin_generic", "SET LOCAL plan_cache_mode TO force_generic_plan", &[]));
    }
    steps.push(question);
    let place = steps.len() - 1;
    if generic {
        steps.push(lease.kept("linchpin_any_plan", "SET LOCAL plan_cache_mode TO DEFAULT", &[]));
    }
    steps.push(lease.kept("linchpin_jit", "SET LOCAL jit TO DEFAULT", &[]));
    place
}
