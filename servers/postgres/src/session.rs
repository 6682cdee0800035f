//! Connections to a database: how many, when anew, what a role may be, and the one way statements run.
//!
//! A statement runs in a transaction of its own, READ ONLY unless the operator said otherwise, with its settings pinned; rows
//! are fetched in portions; then the transaction ends and `DISCARD ALL` takes away what the session could have kept (advisory
//! locks, settings, temporary tables). Where only PostgreSQL's own reading functions can have run, its parts do, all but those
//! that make the server forget the plans of our own questions. Nobody waits for the end of a reading transaction; the next call
//! on the connection reads how it went, and takes another connection where it failed. A call that is dropped, or takes too long, asks the server to cancel the statement, and
//! its connection is closed.

use crate::cell::{Row, Shape, Type, texts};
use crate::config::{Config, Target};
use crate::guard::{self, CHECK, DENIED_FUNCTIONS, Function, SUSPECT, Seen};
use crate::wire::{Connection, Described, Fetched, ServerError, Step, Value, WireError};
use linchpin_kit::Fault;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// How long an unused connection is kept.
const IDLE_TIME: Duration = Duration::from_secs(300);

/// How long after a failure to connect the next attempt is made: doubled each time, up to the second.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(10));

/// What a call may take beyond the statement's own time: connecting, checking, resetting.
const GRACE: Duration = Duration::from_secs(15);

/// Rows asked for at a time.
const ROWS_AT_A_TIME: usize = 200;

/// Bytes of rows read beyond the limit before the connection is given up.
const DRAIN_BYTES_MAX: usize = 1 << 20;

/// Types whose names are kept.
const TYPES_MAX: usize = 10_000;

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
    fault: Fault,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these locks is whole between any two statements.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A connection in use. Dropped in the middle of a statement, it has the server cancel it.
struct Lease {
    database: Arc<Database>,
    connection: Option<Connection>,
    role: Role,
    busy: bool,
    fresh: bool,
    /// Whether something stays in the session that `DISCARD ALL` does not know.
    retired: bool,
    /// Whether the transaction is one that only reads.
    reading: bool,
    /// Whether only PostgreSQL's own reading functions can run in it.
    clean: bool,
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
            runtime.spawn(connection.abandon(self.database.target.clone()));
        }
    }
}

impl Lease {
    fn new(
        database: &Arc<Database>,
        connection: Connection,
        role: Role,
        fresh: bool,
        place: OwnedSemaphorePermit,
    ) -> Self {
        Self {
            database: database.clone(),
            connection: Some(connection),
            role,
            busy: false,
            fresh,
            retired: false,
            reading: false,
            clean: false,
            _place: place,
        }
    }

    fn connection(&mut self) -> Result<&mut Connection, WireError> {
        self.connection.as_mut().ok_or_else(|| WireError::Broken("the connection is closed".to_owned()))
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

/// The rows of a statement.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) described: Described,
    pub(crate) types: Vec<Type>,
    pub(crate) rows: Vec<Row>,
    /// Whether there were more than the limits allow.
    pub(crate) truncated: bool,
    /// What the server says it did, for example `INSERT 0 1`; nothing where it was stopped.
    pub(crate) tag: String,
}

/// What is known about a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link {
    /// For example 150004.
    pub(crate) version: u32,
    pub(crate) encrypted: bool,
}

/// What to run, and how much of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) sql: &'a str,
    pub(crate) parameters: &'a [serde_json::Value],
    /// Rows to pass over.
    pub(crate) skip: usize,
    pub(crate) rows_max: usize,
}

impl Database {
    pub(crate) fn new(target: Target, config: Arc<Config>) -> Self {
        Self {
            places: Arc::new(Semaphore::new(config.connections.clamp(1, 100))),
            target: Arc::new(target),
            config,
            idle: Mutex::default(),
            back_off: Mutex::default(),
            types: Mutex::default(),
        }
    }

    /// Forgets the names of types: they may have changed.
    pub(crate) fn forget_types(&self) {
        lock(&self.types).clear();
    }

    /// Closes the connections that nobody uses.
    pub(crate) async fn close_idle(&self) {
        let idle = std::mem::take(&mut *lock(&self.idle));
        for idle in idle {
            idle.connection.close().await;
        }
    }

    async fn lease(self: &Arc<Self>, reuse: bool) -> Result<Lease, Fault> {
        let waiting = tokio::time::timeout(self.config.statement_timeout, self.places.clone().acquire_owned());
        let Ok(Ok(place)) = waiting.await else {
            return Err(Fault::new("All connections to the database are in use.")
                .hint("Wait for other calls to end, then try again."));
        };
        while let Some(idle) = { lock(&self.idle).pop() } {
            if reuse && idle.since.elapsed() < IDLE_TIME {
                return Ok(Lease::new(self, idle.connection, idle.role, false, place));
            }
            idle.connection.close().await;
        }
        let failed = lock(&self.back_off).clone().filter(|failed| failed.until > Instant::now());
        if let Some(failed) = failed {
            return Err(failed.fault);
        }
        match self.connect().await {
            Ok((connection, role)) => {
                *lock(&self.back_off) = None;
                Ok(Lease::new(self, connection, role, true, place))
            }
            Err(fault) => {
                let mut back_off = lock(&self.back_off);
                let wait = back_off.as_ref().map_or(BACK_OFF.0, |before| (before.wait * 2).min(BACK_OFF.1));
                *back_off = Some(BackOff { until: Instant::now() + wait, wait, fault: fault.clone() });
                Err(fault)
            }
        }
    }

    async fn connect(&self) -> Result<(Connection, Role), Fault> {
        let mut connection = Connection::open(&self.target).await?;
        let asked = tokio::time::timeout(self.target.connect_timeout, connection.run(&[(WHO, &[])])).await;
        let answer = asked.map_err(|_| Fault::new("The server did not answer in time."))?.map_err(|e| self.fault(e))?;
        let row = answer.first().and_then(|rows| rows.first());
        let row = row.ok_or_else(|| Fault::new("The server did not say what the role is."))?;
        if connection.reported.get("client_encoding").is_none_or(|encoding| encoding != "UTF8") {
            return Err(Fault::new("The server did not accept UTF-8 as the encoding of the connection."));
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
            return Err(Fault::new(format!("The role {} can do more than read: {power}.", self.target.user)).hint(
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

    /// Gives work on the database a deadline beyond the server's own.
    async fn within<T>(&self, work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        let time = self.config.statement_timeout + self.target.connect_timeout + GRACE;
        tokio::time::timeout(time, work).await.unwrap_or_else(|_| {
            Err(Fault::new(format!("The statement was cancelled after {} s.", time.as_secs()))
                .hint("Narrow it: fewer rows, an indexed condition, or LIMIT."))
        })
    }

    /// An open transaction. A connection that was closed while nobody used it is replaced once; nothing has run by then.
    async fn begin(self: &Arc<Self>, mode: Mode, seen: Option<&Seen>) -> Result<Lease, Fault> {
        let mut lease = self.lease(true).await?;
        let mut started = self.open(&mut lease, mode, seen).await;
        if matches!(started, Err(WireError::Broken(_))) && !lease.fresh {
            lease.connection = None;
            drop(lease);
            lease = self.lease(false).await?;
            started = self.open(&mut lease, mode, seen).await;
        }
        let (functions, schemas) = match started {
            Ok(answers) => answers,
            Err(error) => {
                let alive = matches!(error, WireError::Server(_));
                if !alive {
                    lease.connection = None;
                }
                let fault = self.fault(error);
                if alive {
                    let _ = self.end(&mut lease, false).await;
                }
                return Err(fault);
            }
        };
        if let Some(seen) = seen
            && let Err(fault) = self.vet(&lease.role, seen, &functions, &schemas)
        {
            let _ = self.end(&mut lease, false).await;
            return Err(fault);
        }
        Ok(lease)
    }

    /// Opens a transaction; the functions that the statement seen may call and that have to be judged, and the schemas that it
    /// names and must not.
    async fn open(
        &self,
        lease: &mut Lease,
        mode: Mode,
        seen: Option<&Seen>,
    ) -> Result<(Vec<Function>, Vec<Row>), WireError> {
        (lease.reading, lease.clean) = (mode == Mode::Read, false);
        let begin = if mode == Mode::Read { "BEGIN READ ONLY" } else { "BEGIN READ WRITE" };
        let plain = |sql| Step { name: "", sql, parameters: &[] };
        let settings = self.settings();
        let direct = lease.role.direct;
        let kept = |name: &'static str, sql, parameters| Step { name: if direct { name } else { "" }, sql, parameters };
        let mut steps = vec![plain(begin), kept("linchpin_settings", SETTINGS, &settings)];
        let Some(seen) = seen else {
            if mode != Mode::Read {
                steps.push(plain("SET LOCAL jit TO DEFAULT"));
            }
            Self::batch_on(lease, &steps).await?;
            return Ok((Vec::new(), Vec::new()));
        };
        // Servers before version 12 choose for themselves between a plan for all parameters and one for each.
        let generic = direct && lease.role.version >= 120_000;
        let (before, after) = (
            plain("SET LOCAL plan_cache_mode TO force_generic_plan"),
            [plain("SET LOCAL plan_cache_mode TO DEFAULT"), plain("SET LOCAL jit TO DEFAULT")],
        );
        let after = if generic { &after[..] } else { &after[1..] };
        let suspect = suspect_parameters(seen);
        let schemas = self.schema_parameters(seen);
        steps.extend(generic.then_some(before));
        let asked = steps.len();
        steps.push(kept("linchpin_suspect", SUSPECT, &suspect));
        if !self.target.schemas.is_empty() {
            steps.push(kept("linchpin_schemas", FOREIGN_SCHEMAS, &schemas));
        }
        steps.extend(after);
        let mut answers = Self::batch_on(lease, &steps).await?;
        let foreign = if self.target.schemas.is_empty() { Vec::new() } else { std::mem::take(&mut answers[asked + 1]) };
        // Anything but a plain no is looked at.
        let suspicious = answers[asked].first().is_none_or(|row| row.cell(0).as_deref() != Some("f"));
        let mut functions = Vec::new();
        if suspicious {
            let check = check_parameters(seen);
            let mut steps = vec![plain("SET LOCAL jit TO off")];
            steps.extend(generic.then_some(before));
            let asked = steps.len();
            steps.push(kept("linchpin_check", CHECK, &check));
            steps.extend(after);
            functions = Self::batch_on(lease, &steps).await?[asked].iter().map(function).collect();
        }
        let harmless = |f: &Function| f.builtin && guard::judge(f, &[], lease.role.protected_settings).is_ok();
        lease.clean = mode == Mode::Read && direct && functions.iter().all(harmless);
        Ok((functions, foreign))
    }

    async fn batch_on(lease: &mut Lease, steps: &[Step<'_>]) -> Result<Vec<Vec<Row>>, WireError> {
        lease.busy = true;
        let answers = lease.connection()?.batch(steps).await;
        if !matches!(answers, Err(WireError::Broken(_) | WireError::TooLarge)) {
            lease.busy = false;
        }
        answers
    }

    async fn run_on(lease: &mut Lease, statements: &[(&str, &[Value])]) -> Result<Vec<Vec<Row>>, WireError> {
        lease.busy = true;
        let answers = lease.connection()?.run(statements).await;
        if !matches!(answers, Err(WireError::Broken(_) | WireError::TooLarge)) {
            lease.busy = false;
        }
        answers
    }

    /// Ends the transaction with the result of what ran in it.
    async fn finish<T>(&self, mut lease: Lease, mode: Mode, result: Result<T, Fault>) -> Result<T, Fault> {
        let keep = mode == Mode::Write && result.is_ok();
        let ended = self.end(&mut lease, keep).await;
        match (result, ended) {
            // A reading transaction that cannot be ended has given its answer all the same.
            (result, Err(fault)) if keep => result.and(Err(fault)),
            (result, _) => result,
        }
    }

    /// Ends the transaction and takes away what the session may have kept.
    async fn end(&self, lease: &mut Lease, keep: bool) -> Result<(), Fault> {
        if lease.busy && keep {
            return Err(Fault::new("The answer is too large, so nothing was changed.")
                .hint("Return fewer columns, or leave RETURNING out."));
        }
        if lease.busy || lease.connection.is_none() {
            // Where rows are still on their way, the drop cancels and closes.
            return Ok(());
        }
        if lease.reading {
            let (clean, mut sent) = (lease.clean, false);
            lease.busy = true;
            if let Ok(connection) = lease.connection() {
                if !clean {
                    connection.forget();
                }
                let reset = if clean { &RESET[..] } else { &["DISCARD ALL"][..] };
                sent = connection.send_off(&[&["ROLLBACK"], reset]).await.is_ok();
            }
            lease.busy = false;
            if !sent {
                lease.connection = None;
            }
            return Ok(());
        }
        let finish = if keep { "COMMIT" } else { "ROLLBACK" };
        let ended = match Self::run_on(lease, &[(finish, &[])]).await {
            Ok(_) => Ok(()),
            Err(WireError::Server(error)) => Err(self.fault(WireError::Server(error))),
            Err(error) => {
                lease.connection = None;
                let why = self.fault(error);
                return Err(Fault::new(format!("{} Whether the change was made is not known.", why.message()))
                    .hint("Check with a SELECT before repeating it."));
            }
        };
        match Self::run_on(lease, &[("DISCARD ALL", &[])]).await {
            Ok(_) => lease.connection.iter_mut().for_each(Connection::forget),
            Err(_) => lease.connection = None,
        }
        ended
    }

    fn settings(&self) -> Vec<Value> {
        let milliseconds = |time: Duration| Some(time.as_millis().max(1).to_string());
        let statement = self.config.statement_timeout;
        let path: Vec<String> = self.target.schemas.iter().map(|schema| quote_name(schema)).collect();
        let path = (!path.is_empty()).then(|| path.join(", "));
        vec![milliseconds(statement), milliseconds(self.config.lock_timeout), milliseconds(statement + GRACE), path]
    }

    fn schema_parameters(&self, seen: &Seen) -> Vec<Value> {
        let allowed = &self.target.schemas;
        let named: &[String] = if allowed.is_empty() { &[] } else { &seen.qualifiers };
        vec![Some(texts(named)), Some(texts(allowed))]
    }

    /// Whether the catalogue's answers allow the statement.
    fn vet(&self, role: &Role, seen: &Seen, functions: &[Function], schemas: &[Row]) -> Result<(), Fault> {
        if seen.folded && !role.utf8 {
            return Err(
                Fault::new("An unquoted name has letters beyond ASCII.").hint("Write the name in double quotes.")
            );
        }
        if let guard::Statement::Show(name) = &seen.statement
            && role.protected_settings
            && !guard::is_plain_setting(name)
        {
            return Err(Fault::new(format!(
                "SHOW {name} is not allowed: this role could read protected settings with it."
            ))
            .hint("SHOW of harmless settings (server_version, search_path, timezone, work_mem, …) works."));
        }
        if let Some(row) = schemas.first() {
            return Err(Fault::new(format!("Schema {} is not one of those this server may read.", row.text(0)))
                .hint(format!("Allowed: {}.", self.target.schemas.join(", "))));
        }
        let judge = |function| guard::judge(function, &self.config.allow_functions, role.protected_settings);
        functions.iter().try_for_each(judge)
    }

    /// Runs a statement of a caller; in [`Mode::Read`] it must have been seen. `before` are statements of our own that prepare
    /// the session, which is not used again.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        mode: Mode,
        seen: Option<&Seen>,
        before: &[(&str, &[Value])],
        request: Request<'_>,
    ) -> Result<Answer, Fault> {
        let work = async {
            let mut lease = self.begin(mode, seen).await?;
            lease.retired = !before.is_empty();
            let prepared = Self::run_on(&mut lease, before).await.map_err(|e| self.fault(e));
            let result = match prepared {
                Ok(_) => self.statement(&mut lease, request).await,
                Err(fault) => Err(fault),
            };
            self.finish(lease, mode, result).await
        };
        self.within(work).await
    }

    /// Runs several statements of a caller in one transaction: all or nothing.
    pub(crate) async fn ask_all(self: &Arc<Self>, requests: &[Request<'_>]) -> Result<Vec<Answer>, Fault> {
        let work = async {
            let mut lease = self.begin(Mode::Write, None).await?;
            let mut result = Ok(Vec::with_capacity(requests.len()));
            for (at, request) in requests.iter().enumerate() {
                let answer = self.statement(&mut lease, *request).await;
                result = result.and_then(|mut answers| {
                    let answer = answer.map_err(|fault| {
                        let message = format!("Statement {}: {}. Nothing was changed", at + 1, fault.message());
                        Fault::new(message).hint(fault.advice().unwrap_or("Correct it and send all of them again."))
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
        self.within(work).await
    }

    /// Runs a statement of our own in a reading transaction; its rows, and what is known about the connection.
    pub(crate) async fn own(self: &Arc<Self>, sql: &str, parameters: &[Value]) -> Result<(Vec<Row>, Link), Fault> {
        let work = async {
            let mut lease = self.begin(Mode::Read, None).await?;
            let link = Link {
                version: lease.role.version,
                encrypted: lease.connection.as_ref().is_some_and(|connection| connection.encrypted),
            };
            let result = Self::run_on(&mut lease, &[(sql, parameters)]).await.map_err(|e| self.fault(e));
            let rows = result.map(|answers| answers.into_iter().next().unwrap_or_default());
            Ok((self.finish(lease, Mode::Read, rows).await?, link))
        };
        self.within(work).await
    }

    async fn statement(&self, lease: &mut Lease, request: Request<'_>) -> Result<Answer, Fault> {
        lease.busy = true;
        match self.fetch(lease, request).await {
            Ok((answer, drained)) => {
                lease.busy = !drained;
                Ok(answer)
            }
            Err(error) => {
                match &error {
                    WireError::Server(_) => lease.busy = false,
                    WireError::Broken(_) => {
                        lease.connection = None;
                    }
                    WireError::TooLarge => {}
                }
                Err(self.fault(error))
            }
        }
    }

    /// The rows, and whether the connection is ready for something else.
    async fn fetch(&self, lease: &mut Lease, request: Request<'_>) -> Result<(Answer, bool), WireError> {
        let connection = lease.connection()?;
        let described = connection.prepare(request.sql).await?;
        if described.parameters.len() != request.parameters.len() {
            let (wants, has) = (described.parameters.len(), request.parameters.len());
            return Err(WireError::Server(ServerError {
                code: "08P01".to_owned(),
                message: format!("The statement takes {wants} params and {has} were passed"),
                hint: Some("Pass one item in params for each of $1, $2, …".to_owned()),
                position: None,
            }));
        }
        if self.look_up_types(connection, &described).await? {
            // Looking the types up has replaced the statement without a name.
            connection.prepare(request.sql).await?;
        }
        let types = self.known_types(&described);
        let parameters: Vec<Value> = request
            .parameters
            .iter()
            .zip(&described.parameters)
            .map(|(v, oid)| crate::cell::parameter(v, *oid))
            .collect();
        let names: usize = described.fields.iter().map(|field| field.name.len() + 10).sum();
        let (mut rows, mut bytes, mut skip, mut drained) = (Vec::new(), 0_usize, request.skip, 0_usize);
        let bytes_max = self.config.max_bytes;
        let mut full = false;
        let mut first = true;
        let tag = loop {
            let wanted = (request.rows_max + 1).saturating_sub(rows.len()) + skip;
            let count = i32::try_from(wanted.min(ROWS_AT_A_TIME)).unwrap_or(i32::MAX);
            let on = |row: Row| {
                if skip > 0 {
                    skip -= 1;
                    return Ok(());
                }
                bytes += row.bytes() + names;
                if full || rows.len() >= request.rows_max || bytes > bytes_max {
                    full = true;
                    drained += row.bytes();
                } else {
                    rows.push(row);
                }
                if drained > DRAIN_BYTES_MAX { Err(WireError::TooLarge) } else { Ok(()) }
            };
            let fetched = if std::mem::take(&mut first) {
                connection.start(&parameters, count, bytes_max, on).await
            } else {
                connection.fetch(count, bytes_max, on).await
            };
            match fetched {
                Ok(Fetched::Done(tag)) => break Some(tag),
                Ok(Fetched::Suspended) if full => break Some(String::new()),
                Ok(Fetched::Suspended) => {}
                // What was read is a good beginning; the rest is not worth its bytes.
                Err(WireError::TooLarge) if !rows.is_empty() => {
                    full = true;
                    break None;
                }
                Err(error) => return Err(error),
            }
        };
        if full && rows.is_empty() {
            return Err(WireError::TooLarge);
        }
        let drained = tag.is_some();
        Ok((Answer { described, types, rows, truncated: full, tag: tag.unwrap_or_default() }, drained))
    }

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

    /// Looks up the types that are not known yet; says whether there were any.
    async fn look_up_types(&self, connection: &mut Connection, described: &Described) -> Result<bool, WireError> {
        let mut missing: Vec<(u32, i32)> = {
            let known = lock(&self.types);
            let all = described.fields.iter().map(|field| (field.type_oid, field.type_modifier));
            all.filter(|key| !known.contains_key(key)).collect()
        };
        missing.sort_unstable();
        missing.dedup();
        if missing.is_empty() {
            return Ok(false);
        }
        let list = |items: Vec<String>| Some(texts(items));
        let parameters = [
            list(missing.iter().map(|(oid, _)| oid.to_string()).collect()),
            list(missing.iter().map(|(_, modifier)| modifier.to_string()).collect()),
        ];
        let answers = connection.run(&[(TYPES, &parameters)]).await?;
        let mut known = lock(&self.types);
        if known.len() > TYPES_MAX {
            known.clear();
        }
        for row in answers.iter().flatten() {
            let number = |at: usize| row.text(at).parse::<u32>().unwrap_or_default();
            let key = (number(0), row.text(1).parse().unwrap_or(-1));
            let array = row.cell(3).and_then(|delimiter| delimiter.chars().next());
            let element = if array.is_some() { number(4) } else { key.0 };
            known.insert(key, Type { name: row.text(2), shape: Shape::of(element), array });
        }
        Ok(true)
    }

    /// The words for a failure.
    pub(crate) fn fault(&self, error: WireError) -> Fault {
        match error {
            WireError::Server(error) => server_fault(&error),
            WireError::Broken(why) => Fault::new(format!("The connection to the database was lost: {why}."))
                .hint("Try again; the next call connects anew."),
            WireError::TooLarge => {
                Fault::new(format!("A row is larger than the {} bytes an answer may have.", self.config.max_bytes))
                    .hint("Select fewer columns, or a part of a value with left(…) or substring(…).")
            }
        }
    }
}

fn suspect_parameters(seen: &Seen) -> Vec<Value> {
    let called = seen.called.iter().map(|(_, name)| name).chain(&seen.dotted);
    vec![Some(texts(called)), Some(texts(&seen.operators)), Some(texts(&seen.names)), Some(texts(DENIED_FUNCTIONS))]
}

fn check_parameters(seen: &Seen) -> Vec<Value> {
    let (schemas, names): (Vec<&str>, Vec<&str>) = seen.called.iter().map(|(s, n)| (s.as_str(), n.as_str())).unzip();
    let flag = |on: bool| Some(if on { "t" } else { "f" }.to_owned());
    vec![
        Some(texts(schemas)),
        Some(texts(names)),
        Some(texts(&seen.dotted)),
        Some(texts(&seen.operators)),
        flag(seen.operator_syntax),
        Some(texts(&seen.names)),
        flag(seen.casts),
        Some(texts(DENIED_FUNCTIONS)),
    ]
}

/// A row of [`CHECK`].
fn function(row: &Row) -> Function {
    Function {
        why: row.text(0),
        schema: row.text(1),
        name: row.text(2),
        volatile: row.text(3) == "v",
        trusted: row.is_true(4),
        definer: row.is_true(5),
        builtin: row.is_true(6),
        extension: row.text(7),
    }
}

/// A name as SQL writes it.
pub(crate) fn quote_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn server_fault(error: &ServerError) -> Fault {
    let place = error.position.map(|at| format!(", at character {at}")).unwrap_or_default();
    let message = format!("{} (SQLSTATE {}{place})", error.message, error.code);
    let own = match error.code.as_str() {
        "57014" => "It ran out of time. Narrow it: fewer rows, an indexed condition, LIMIT; pg_explain shows the plan.",
        "55P03" => "Somebody else holds a lock on it; try again in a moment.",
        "42P01" => "See pg_list_objects for what there is; names with capitals need double quotes.",
        "42703" => "See pg_describe for the columns; names with capitals need double quotes.",
        "42883" => "There is no such function or operator for these types; a cast may be missing.",
        "42501" => "The role of this server has no right to that.",
        "25006" => "This server only reads here.",
        "42601" => "Correct the syntax near the position.",
        "22P02" | "22007" | "22003" => "Correct the value; pass values as params instead of writing them into sql.",
        "42P18" | "42804" => "Say the type of a parameter with a cast, for example $1::int.",
        _ => "Correct the statement and try again.",
    };
    Fault::new(message).hint(error.hint.clone().unwrap_or_else(|| own.to_owned()))
}

/// What `DISCARD ALL` does, without forgetting plans and statements.
const RESET: [&str; 7] = [
    "CLOSE ALL",
    "SET SESSION AUTHORIZATION DEFAULT",
    "RESET ALL",
    "UNLISTEN *",
    "SELECT pg_catalog.pg_advisory_unlock_all()",
    "DISCARD SEQUENCES",
    "DISCARD TEMP",
];

/// What the role is: superuser, which of the dangerous roles it belongs to, whether it owns data, whether it may read protected
/// settings; the server's version, encoding and process. The role of the login counts too: it can be returned to.
const WHO: &str = r"
SELECT bool_or(r.rolsuper),
  coalesce((SELECT min(g.rolname::text) FROM pg_catalog.pg_roles g
    WHERE g.rolname IN ('pg_execute_server_program', 'pg_read_server_files', 'pg_write_server_files')
    AND (pg_catalog.pg_has_role(session_user, g.oid, 'MEMBER') OR pg_catalog.pg_has_role(current_user, g.oid, 'MEMBER'))), ''),
  EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f') AND pg_catalog.left(n.nspname::text, 3) <> 'pg_' AND n.nspname <> 'information_schema'
    AND (pg_catalog.pg_has_role(session_user, c.relowner, 'MEMBER') OR pg_catalog.pg_has_role(current_user, c.relowner, 'MEMBER')))
  OR EXISTS (SELECT FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()
    AND (pg_catalog.pg_has_role(session_user, d.datdba, 'MEMBER') OR pg_catalog.pg_has_role(current_user, d.datdba, 'MEMBER'))),
  bool_or(r.rolsuper) OR EXISTS (SELECT FROM pg_catalog.pg_roles g WHERE g.rolname = 'pg_read_all_settings'
    AND (pg_catalog.pg_has_role(session_user, g.oid, 'MEMBER') OR pg_catalog.pg_has_role(current_user, g.oid, 'MEMBER'))),
  pg_catalog.current_setting('server_version_num'), pg_catalog.current_setting('server_encoding'),
  pg_catalog.pg_backend_pid()
FROM pg_catalog.pg_roles r WHERE r.rolname IN (session_user, current_user)";

/// Pins what the rest relies on, for this transaction. A pooler between us and the server need not keep anything. Compiling our
/// own questions would take longer than answering them; what callers ask is compiled as the server is set.
const SETTINGS: &str = r"
SELECT pg_catalog.set_config('statement_timeout', $1, true), pg_catalog.set_config('lock_timeout', $2, true),
  pg_catalog.set_config('idle_in_transaction_session_timeout', $3, true),
  pg_catalog.set_config('search_path', coalesce($4, pg_catalog.current_setting('search_path')), true),
  pg_catalog.set_config('standard_conforming_strings', 'on', true), pg_catalog.set_config('bytea_output', 'hex', true),
  pg_catalog.set_config('datestyle', 'ISO', true), pg_catalog.set_config('intervalstyle', 'postgres', true),
  pg_catalog.set_config('extra_float_digits', '1', true), pg_catalog.set_config('jit', 'off', true)";

/// Which of the names ($1) are schemas that are not allowed ($2).
const FOREIGN_SCHEMAS: &str = r"
SELECT n.nspname::text FROM pg_catalog.pg_namespace n
WHERE n.nspname = ANY ($1::name[]) AND NOT n.nspname = ANY ($2::name[] || '{pg_catalog,information_schema}'::name[])";

/// Number, modifier, name, what separates elements (of arrays), and the elements' type, of types.
const TYPES: &str = r"
SELECT c.oid, c.modifier, pg_catalog.format_type(c.oid, c.modifier),
  CASE WHEN t.typinput = 'pg_catalog.array_in'::regproc THEN e.typdelim END,
  CASE e.typtype WHEN 'd' THEN e.typbasetype ELSE e.oid END
FROM ROWS FROM (pg_catalog.unnest($1::oid[]), pg_catalog.unnest($2::int4[])) AS c(oid, modifier)
LEFT JOIN pg_catalog.pg_type t ON t.oid = c.oid LEFT JOIN pg_catalog.pg_type e ON e.oid = t.typelem";
