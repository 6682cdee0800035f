//! Restrictions of statements: SQLite's authorizer, limits and settings, on every connection.
//!
//! The authorizer is asked about every action of a statement while it is prepared, those of views and triggers too, so
//! nothing here depends on how a statement is written. It is an allow-list of actions, functions, PRAGMAs and modules:
//! what is not named is refused. Only tables are not named, for they are the database's own; see
//! [`MODULES_UNREADABLE`].
//!
//! What SQLite does by itself it asks nobody about: which files it touches is held by [`files`].

use linchpin_kit::{ToolError, clip, resolve_symlinks, root_path};
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::pool;

/// Bytes that all databases of this process together may take in memory. SQLite counts for the whole process.
const MEMORY_BYTES_MAX: u64 = 512 << 20;

/// Bytes of a value or row in a statement that computes nothing from values: large ones can be stored and copied.
const VALUE_BYTES_MAX: i32 = 64 << 20;

/// Bytes of a value or row in other statements, and while a statement is prepared. SQLite does not look at the clock
/// inside a function, and some of its functions take time in proportion to the product of their arguments' lengths.
const COMPUTED_BYTES_MAX: i32 = 1 << 20;

/// Bytes of SQL text in one call.
const SQL_BYTES_MAX: i32 = 1_000_000;

/// Bytes of a LIKE or GLOB pattern.
const LIKE_BYTES_MAX: i32 = 1_000;

/// Levels of triggers that set off triggers.
const TRIGGERS_MAX: i32 = 200;

/// Instructions between two looks at whether a statement is still wanted: some microseconds.
const PROGRESS_STEPS: i32 = 1_000;

/// What the statement being worked on may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Nothing; between calls.
    Nothing,
    /// Look at data and schema.
    Read,
    /// Be explained: changes of data may be named, nothing is run.
    Explain,
    /// Change data and schema.
    Write,
    /// The same, for a statement that is a PRAGMA.
    WritePragma,
    /// Rebuild the database file in place.
    Vacuum,
    /// Several changes of our own in one transaction.
    Transaction,
}

impl Policy {
    pub(crate) fn writes(self) -> bool {
        matches!(self, Policy::Write | Policy::WritePragma | Policy::Vacuum | Policy::Transaction)
    }
}

/// Why the authorizer said no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    Change,
    Attach,
    Transaction,
    Temporary,
    Pragma(String),
    Function(String),
    Module(String),
    Other,
}

impl Refusal {
    /// What to do instead.
    pub(crate) fn advice(&self) -> String {
        match self {
            Refusal::Change => "This tool is read-only. Use write_query or create_table, if they are available.".into(),
            Refusal::Attach => {
                "ATTACH, DETACH and VACUUM INTO access other files and are not allowed. Only the configured database can be \
                 used."
                    .into()
            }
            Refusal::Transaction => {
                "BEGIN, COMMIT, ROLLBACK and SAVEPOINT are not allowed: each call is its own transaction. Put what \
                 belongs together into one statement."
                    .into()
            }
            Refusal::Temporary => {
                "Temporary tables, views and triggers are not allowed: they would not outlast the call. Use a WITH clause or an \
                 ordinary table."
                    .into()
            }
            Refusal::Pragma(name) => format!(
                "PRAGMA {name} is not allowed in this form. Allowed are those that read the schema or a setting, and for \
                 writing user_version, application_id, journal_mode (delete or wal), wal_checkpoint, incremental_vacuum and \
                 optimize."
            ),
            Refusal::Function(name) => format!("The function {name} is not allowed."),
            Refusal::Module(name) => {
                format!(
                    "Virtual tables of {name} are not allowed. Allowed are fts3, fts4, fts5, rtree and rtree_i32, and for \
                     reading json_each, json_tree and those of the allowed PRAGMAs."
                )
            }
            Refusal::Other => "This kind of statement is not allowed.".into(),
        }
    }
}

/// The policy in force and what it refused last.
#[derive(Debug)]
pub(crate) struct Authorizer {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    policy: Policy,
    refused: Option<Refusal>,
    /// Whether the statement uses a function that is not in [`FUNCTIONS_OF_ONE_PASS`].
    computes: bool,
    /// Whether it is ALTER TABLE, which calls functions for the schema and copies rows.
    alters: bool,
}

impl State {
    fn new(policy: Policy) -> State {
        State { policy, refused: None, computes: false, alters: false }
    }
}

impl Authorizer {
    /// A gate that lets nothing through yet.
    pub(crate) fn new() -> Authorizer {
        Authorizer { state: Mutex::new(State::new(Policy::Nothing)) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a policy in force.
    pub(crate) fn set(&self, policy: Policy) {
        *self.lock() = State::new(policy);
    }

    /// The policy in force.
    pub(crate) fn policy(&self) -> Policy {
        self.lock().policy
    }

    /// Whether the statement computes something from values.
    fn computes(&self) -> bool {
        let state = self.lock();
        state.computes && !state.alters
    }

    /// Why the last statement was refused, if it was.
    pub(crate) fn refused(&self) -> Option<Refusal> {
        self.lock().refused.clone()
    }

    fn decide(&self, asked: &AuthContext<'_>) -> Authorization {
        let mut state = self.lock();
        if let AuthAction::Function { function_name } = asked.action {
            let name = function_name.to_ascii_lowercase();
            state.computes |= !FUNCTIONS_OF_ONE_PASS.contains(&name.as_str());
        }
        state.alters |= matches!(asked.action, AuthAction::AlterTable { .. });
        match decide(state.policy, asked) {
            Ok(()) => Authorization::Allow,
            Err(refusal) => {
                // The first refusal says what the statement was about.
                state.refused.get_or_insert(refusal);
                Authorization::Deny
            }
        }
    }
}

fn decide(policy: Policy, asked: &AuthContext<'_>) -> Result<(), Refusal> {
    if policy == Policy::Nothing {
        return Err(Refusal::Other);
    }
    let only_if = |allowed: bool, refusal: Refusal| if allowed { Ok(()) } else { Err(refusal) };
    if asked.database_name == Some("temp") && changes_temporary(&asked.action) {
        return Err(Refusal::Temporary);
    }
    match asked.action {
        AuthAction::Select | AuthAction::Recursive => Ok(()),
        AuthAction::Read { table_name, .. } => only_if(
            !MODULES_UNREADABLE.contains(&table_name.to_ascii_lowercase().as_str()),
            Refusal::Module(table_name.to_owned()),
        ),
        AuthAction::Function { function_name } => {
            let name = function_name.to_ascii_lowercase();
            only_if(
                FUNCTIONS_ALLOWED.contains(&name.as_str()) || FUNCTIONS_OF_ALTER.contains(&name.as_str()),
                Refusal::Function(function_name.to_owned()),
            )
        }
        AuthAction::Pragma { pragma_name, pragma_value } => only_if(
            pragma(policy, &pragma_name.to_ascii_lowercase(), pragma_value),
            Refusal::Pragma(pragma_name.to_owned()),
        ),
        AuthAction::Insert { table_name }
        | AuthAction::Update { table_name, .. }
        | AuthAction::Delete { table_name } => {
            only_if(policy.writes() || policy == Policy::Explain || is_of_rtree(table_name), Refusal::Change)
        }
        AuthAction::CreateTable { .. }
        | AuthAction::CreateIndex { .. }
        | AuthAction::CreateView { .. }
        | AuthAction::CreateTrigger { .. }
        | AuthAction::DropTable { .. }
        | AuthAction::DropIndex { .. }
        | AuthAction::DropView { .. }
        | AuthAction::DropTrigger { .. }
        | AuthAction::DropVtable { .. }
        | AuthAction::AlterTable { .. }
        | AuthAction::Reindex { .. }
        | AuthAction::Analyze { .. } => only_if(policy.writes(), Refusal::Change),
        AuthAction::CreateVtable { module_name, .. } => only_if(
            policy.writes() && MODULES_ALLOWED.contains(&module_name.to_ascii_lowercase().as_str()),
            if policy.writes() { Refusal::Module(module_name.to_owned()) } else { Refusal::Change },
        ),
        // VACUUM itself attaches a nameless file beside the database.
        AuthAction::Attach { filename: "" } if policy == Policy::Vacuum => Ok(()),
        AuthAction::Attach { .. } | AuthAction::Detach { .. } => Err(Refusal::Attach),
        AuthAction::Transaction { .. } => {
            only_if(matches!(policy, Policy::Transaction | Policy::Vacuum), Refusal::Transaction)
        }
        // What the `optimize` command of fts3 and fts4 does inside; a statement of this kind is refused by its verb.
        AuthAction::Savepoint { savepoint_name: "fts3", .. } => only_if(policy.writes(), Refusal::Transaction),
        AuthAction::Savepoint { .. } => Err(Refusal::Transaction),
        AuthAction::CreateTempTable { .. }
        | AuthAction::CreateTempIndex { .. }
        | AuthAction::CreateTempTrigger { .. }
        | AuthAction::CreateTempView { .. }
        | AuthAction::DropTempTable { .. }
        | AuthAction::DropTempIndex { .. }
        | AuthAction::DropTempTrigger { .. }
        | AuthAction::DropTempView { .. } => Err(Refusal::Temporary),
        // An ATTACH whose file name is not a literal comes without a name.
        AuthAction::Unknown { code: ATTACH, .. } => Err(Refusal::Attach),
        _ => Err(Refusal::Other),
    }
}

/// Whether an action would put something into the temporary database, or take it away.
fn changes_temporary(action: &AuthAction<'_>) -> bool {
    match action {
        AuthAction::Select | AuthAction::Recursive | AuthAction::Read { .. } => false,
        AuthAction::Function { .. } | AuthAction::Pragma { .. } => false,
        // Renaming a table looks for its name in temporary views and triggers. A statement cannot do this by itself:
        // the schema is not writable.
        AuthAction::Update { table_name: "sqlite_temp_master", .. } => false,
        _ => true,
    }
}

/// An R*Tree prepares its changes when it is opened, also for reading. That a statement as a whole changes nothing is
/// known after it was prepared, and the connection refuses changes too (`query_only`).
fn is_of_rtree(table: &str) -> bool {
    ["_node", "_rowid", "_parent"].iter().any(|suffix| table.ends_with(suffix))
}

const ATTACH: i32 = rusqlite::ffi::SQLITE_ATTACH;

/// Functions that statements may use: those of the bundled SQLite that only compute. A test holds this list against the
/// library's own, so that a new version brings none in unseen.
#[rustfmt::skip]
const FUNCTIONS_ALLOWED: &[&str] = &[
    "->", "->>", "abs", "avg", "bm25", "changes", "char", "coalesce", "concat", "concat_ws", "count", "cume_dist",
    "current_date", "current_time", "current_timestamp", "date", "datetime", "dense_rank", "first_value", "format",
    "fts5_get_locale", "fts5_insttoken", "fts5_locale", "fts5_source_id", "glob", "group_concat", "hex",
    "highlight", "if", "ifnull", "iif", "instr", "json", "json_array", "json_array_length", "json_error_position",
    "json_extract", "json_group_array", "json_group_object", "json_insert", "json_object", "json_patch",
    "json_pretty", "json_quote", "json_remove", "json_replace", "json_set", "json_type", "json_valid", "jsonb",
    "jsonb_array", "jsonb_extract", "jsonb_group_array", "jsonb_group_object", "jsonb_insert", "jsonb_object",
    "jsonb_patch", "jsonb_remove", "jsonb_replace", "jsonb_set", "julianday", "lag", "last_insert_rowid",
    "last_value", "lead", "length", "like", "likelihood", "likely", "lower", "ltrim", "match", "matchinfo", "max",
    "min", "nth_value", "ntile", "nullif", "octet_length", "offsets", "optimize", "percent_rank", "printf", "quote",
    "random", "randomblob", "rank", "replace", "round", "row_number", "rtreecheck", "rtreedepth", "rtreenode",
    "rtrim", "sign", "snippet", "soundex", "sqlite_compileoption_get", "sqlite_compileoption_used",
    "sqlite_source_id", "sqlite_version", "strftime", "string_agg", "substr", "substring", "subtype", "sum", "time",
    "timediff", "total", "total_changes", "trim", "typeof", "unhex", "unicode", "unistr", "unistr_quote",
    "unixepoch", "unlikely", "upper", "zeroblob",
];

/// What ALTER TABLE calls inside. SQLite does not let statements use them, nor lists them.
const FUNCTIONS_OF_ALTER: &[&str] = &[
    "sqlite_rename_column",
    "sqlite_rename_table",
    "sqlite_rename_test",
    "sqlite_rename_quotefix",
    "sqlite_drop_column",
];

/// Functions that go through a value once at most, or take a part of it: a statement that uses no others may have large
/// values.
const FUNCTIONS_OF_ONE_PASS: &[&str] = &[
    "avg",
    "changes",
    "coalesce",
    "count",
    "ifnull",
    "last_insert_rowid",
    "length",
    "max",
    "min",
    "octet_length",
    "substr",
    "substring",
    "sum",
    "total",
    "typeof",
];

/// Virtual tables that may be created.
const MODULES_ALLOWED: &[&str] = &["fts3", "fts4", "fts5", "rtree", "rtree_i32"];

/// Virtual tables that are there without being created, apart from `json_each`, `json_tree` and those of the allowed
/// PRAGMAs. They are known by their names alone, so a table that has one of these cannot be read either.
const MODULES_UNREADABLE: &[&str] = &[
    "bytecode",
    "completion",
    "csv",
    "dbstat",
    "fsdir",
    "fts3tokenize",
    "fts4aux",
    "fts5vocab",
    "generate_series",
    "sqlite_dbdata",
    "sqlite_dbpage",
    "sqlite_dbptr",
    "sqlite_stmt",
    "tables_used",
    "zipfile",
];

/// PRAGMAs that only look, with or without an argument.
const PRAGMAS_OF_SCHEMA: &[&str] = &[
    "table_info",
    "table_xinfo",
    "table_list",
    "index_list",
    "index_info",
    "index_xinfo",
    "foreign_key_list",
    "foreign_key_check",
    "integrity_check",
    "quick_check",
];

/// PRAGMAs that show a setting as long as no value is given.
const PRAGMAS_OF_SETTINGS: &[&str] = &[
    "application_id",
    "auto_vacuum",
    "busy_timeout",
    "cache_size",
    "cell_size_check",
    "collation_list",
    "compile_options",
    "data_version",
    "encoding",
    "foreign_keys",
    "freelist_count",
    "function_list",
    "journal_mode",
    "journal_size_limit",
    "locking_mode",
    "max_page_count",
    "module_list",
    "page_count",
    "page_size",
    "pragma_list",
    "query_only",
    "recursive_triggers",
    "schema_version",
    "secure_delete",
    "synchronous",
    "temp_store",
    "trusted_schema",
    "user_version",
    "wal_autocheckpoint",
];

/// PRAGMAs that change the database itself, not the connection, which others share.
fn pragma(policy: Policy, name: &str, value: Option<&str>) -> bool {
    if policy == Policy::Explain {
        // Some act while they are prepared, even behind EXPLAIN.
        return false;
    }
    if PRAGMAS_OF_SCHEMA.contains(&name) || value.is_none() && PRAGMAS_OF_SETTINGS.contains(&name) {
        return true;
    }
    if policy != Policy::WritePragma {
        return false;
    }
    match (name, value) {
        ("user_version" | "application_id", Some(_)) => true,
        ("wal_checkpoint" | "incremental_vacuum" | "optimize", _) => true,
        ("journal_mode", Some(mode)) => mode.eq_ignore_ascii_case("wal") || mode.eq_ignore_ascii_case("delete"),
        _ => false,
    }
}

/// Where a database is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// In memory, as long as this process runs.
    Memory,
    /// In this file; the path is absolute, so SQLite never takes it for a URI.
    File(PathBuf),
}

/// Roots of one client that are looked at; the others count as missing.
const ROOTS_MAX: usize = 1_000;

/// Whose call it is, as far as that decides whether the database may be reached. Without one no call gets a connection.
#[derive(Debug)]
pub(crate) struct RootsScope {
    roots: Option<Vec<String>>,
    /// When the call began: asking for the roots is part of it.
    pub(crate) begun: Instant,
}

impl RootsScope {
    /// For a client that has no roots, or where they do not count.
    pub(crate) fn as_configured() -> RootsScope {
        RootsScope { roots: None, begun: Instant::now() }
    }

    /// For a client with these roots.
    pub(crate) fn within(roots: Vec<String>, begun: Instant) -> RootsScope {
        RootsScope { roots: Some(roots), begun }
    }
}

impl Place {
    /// Whether this call may reach the database: where every link leads, by whole names, as things are now.
    pub(crate) fn admit(&self, pass: &RootsScope) -> Result<(), ToolError> {
        let (Place::File(path), Some(roots)) = (self, &pass.roots) else { return Ok(()) };
        let real = resolve_symlinks(path);
        let holds = |root: &String| {
            let root = root_path(root).and_then(|root| std::fs::canonicalize(root).ok());
            root.is_some_and(|root| real.starts_with(root))
        };
        if roots.iter().take(ROOTS_MAX).any(holds) {
            return Ok(());
        }
        Err(ToolError::denied(format!(
            "Error: the database {} is not in the roots of this client: {}",
            path.display(),
            listed(roots)
        ))
        .hint(
            "Nothing was opened or created. Open the folder of the database in the client; or the operator can configure a \
             database inside a root, or start the server with --roots ignore.",
        ))
    }
}

/// Some of the roots in words.
fn listed(roots: &[String]) -> String {
    const SHOWN_MAX: usize = 10;
    const BYTES_MAX: usize = 200;
    let shown = |root: &String| clip(root, BYTES_MAX).text.replace(char::is_control, " ");
    match roots.len() {
        0 => "it has none".into(),
        count if count > SHOWN_MAX => {
            let first: Vec<String> = roots.iter().take(SHOWN_MAX).map(shown).collect();
            format!("{} and {} more", first.join(", "), count - SHOWN_MAX)
        }
        _ => roots.iter().map(shown).collect::<Vec<_>>().join(", "),
    }
}

/// How connections are opened.
#[derive(Debug, Clone)]
pub(crate) struct Opener {
    pub(crate) place: Place,
    /// The database as the operator named it; empty in memory.
    pub(crate) named: String,
    /// The whole server is read-only: the file is opened so.
    pub(crate) read_only: bool,
    /// This connection only reads (`query_only`), even where others write.
    pub(crate) only_reads: bool,
    /// A missing file is created.
    pub(crate) create: bool,
    /// Whether that was done; all connections share it.
    pub(crate) made: Arc<AtomicBool>,
    pub(crate) foreign_keys: bool,
}

/// A connection with its guard. Lives on one thread.
#[derive(Debug)]
pub(crate) struct GuardedConnection {
    pub(crate) conn: Connection,
    pub(crate) gate: Arc<Authorizer>,
    /// What `PRAGMA database_list` shows as its file.
    pub(crate) named: String,
    /// Which file is open, to notice when another one takes its place.
    pub(crate) identity: Option<(u64, u64)>,
}

impl Opener {
    /// Puts the guard on a connection.
    pub(crate) fn secure(&self, conn: &Connection, gate: &Arc<Authorizer>) -> rusqlite::Result<()> {
        for (switch, on) in [
            (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
            (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
            (DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, false),
            (DbConfig::SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, false),
            (DbConfig::SQLITE_DBCONFIG_ENABLE_ATTACH_CREATE, false),
            (DbConfig::SQLITE_DBCONFIG_ENABLE_ATTACH_WRITE, false),
            (DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, self.foreign_keys),
        ] {
            conn.set_db_config(switch, on)?;
        }
        for (limit, most) in [
            (Limit::SQLITE_LIMIT_LENGTH, COMPUTED_BYTES_MAX),
            (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, LIKE_BYTES_MAX),
            (Limit::SQLITE_LIMIT_SQL_LENGTH, SQL_BYTES_MAX),
            (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, TRIGGERS_MAX),
            (Limit::SQLITE_LIMIT_ATTACHED, 0),
            (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
        ] {
            conn.set_limit(limit, most)?;
        }
        conn.busy_handler(Some(pool::wait_for_lock))?;
        conn.progress_handler(PROGRESS_STEPS, Some(pool::is_over))?;
        // Sorting happens in memory, so that the limit on memory holds for it and nothing spills into files.
        conn.execute_batch(&format!(
            "PRAGMA cell_size_check=ON; PRAGMA mmap_size=0; PRAGMA temp_store=MEMORY; \
             PRAGMA hard_heap_limit={MEMORY_BYTES_MAX};"
        ))?;
        if self.only_reads {
            conn.execute_batch("PRAGMA query_only=ON;")?;
        }
        // What nobody waits for any more is not committed, even where it could not be interrupted.
        conn.commit_hook(Some(pool::is_over))?;
        let gate = Arc::clone(gate);
        conn.authorizer(Some(move |asked: AuthContext<'_>| gate.decide(&asked)))
    }
}

impl GuardedConnection {
    /// Limits values while a statement is prepared: SQLite may read the schema then, where a hostile file can have
    /// anything computed.
    pub(crate) fn limit_preparation(&self) -> rusqlite::Result<()> {
        self.conn.set_limit(Limit::SQLITE_LIMIT_LENGTH, COMPUTED_BYTES_MAX).map(drop)
    }

    /// Limits the values of the statement that was prepared last.
    pub(crate) fn limit_values(&self) -> rusqlite::Result<()> {
        let most = if self.gate.computes() { COMPUTED_BYTES_MAX } else { VALUE_BYTES_MAX };
        self.conn.set_limit(Limit::SQLITE_LIMIT_LENGTH, most).map(drop)
    }

    /// Allows one VACUUM: it needs a place to attach its copy, and the copy may be larger than what memory may hold.
    pub(crate) fn vacuum<T>(
        &self,
        work: impl FnOnce(&GuardedConnection) -> Result<T, ToolError>,
    ) -> Result<T, ToolError> {
        let set = |places: i32, store: &str| -> rusqlite::Result<()> {
            self.conn.set_limit(Limit::SQLITE_LIMIT_ATTACHED, places)?;
            // The authorizer would refuse it: this is ours.
            self.conn.authorizer(None::<fn(AuthContext<'_>) -> Authorization>)?;
            let stored = self.conn.execute_batch(&format!("PRAGMA temp_store={store}"));
            let gate = Arc::clone(&self.gate);
            self.conn.authorizer(Some(move |asked: AuthContext<'_>| gate.decide(&asked)))?;
            stored
        };
        let failed = |error| self.error(error);
        set(1, "FILE").map_err(failed)?;
        let done = work(self);
        set(0, "MEMORY").map_err(failed)?;
        done
    }

    /// Leaves nothing behind for the next call.
    pub(crate) fn clear(&self) {
        if !self.conn.is_autocommit() {
            self.gate.set(Policy::Transaction);
            // It fails only when SQLite has rolled back by itself already.
            let _ = self.conn.execute_batch("ROLLBACK");
        }
        self.gate.set(Policy::Nothing);
    }
}

/// Refuses what cannot be a database file: SQLite would wait on a pipe for ever.
pub(crate) fn check_kind(path: &Path) -> Result<bool, ToolError> {
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_file() => Ok(true),
        Ok(meta) => {
            let what = if meta.is_dir() { "a directory" } else { "not a regular file" };
            Err(ToolError::new(format!("{} is {what}", path.display())).hint("Use a database file."))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(ToolError::new(format!("{} cannot be accessed: {}", path.display(), error.kind()))),
    }
}

/// Which files SQLite may touch: the database, and its `-journal`, `-wal` and `-shm`.
///
/// No statement is needed for SQLite to reach others. A journal that a crash left behind may name a super-journal,
/// which SQLite looks for, reads and then deletes; whoever can put a journal beside the database, at any time, chooses
/// the file. This is a VFS over SQLite's own that hands on what is about these four and refuses the rest, each time
/// SQLite asks.
#[allow(unsafe_code, reason = "SQLite takes a VFS as a table of C functions only")]
pub(crate) mod files {
    use linchpin_kit::ToolError;
    use rusqlite::ffi::{self, sqlite3_file, sqlite3_vfs};
    use std::collections::BTreeSet;
    use std::ffi::{CStr, c_char, c_int};
    use std::ptr;
    use std::sync::{Mutex, OnceLock, PoisonError};

    /// Bytes of a path. SQLite has room for names from journals that are no longer, whatever its own VFS allows.
    pub(crate) const PATH_BYTES_MAX: usize = 500;

    /// What is said to SQLite, and by it to us: another file was wanted, or one that is no file of its own.
    const OUTSIDE: c_int = ffi::SQLITE_PERM | 1 << 8;
    const ODD: c_int = ffi::SQLITE_PERM | 2 << 8;

    /// The functions of SQLite's own VFS that are behind those here.
    struct Own {
        open: unsafe extern "C" fn(*mut sqlite3_vfs, *const c_char, *mut sqlite3_file, c_int, *mut c_int) -> c_int,
        delete: unsafe extern "C" fn(*mut sqlite3_vfs, *const c_char, c_int) -> c_int,
        access: unsafe extern "C" fn(*mut sqlite3_vfs, *const c_char, c_int, *mut c_int) -> c_int,
    }

    static OWN: OnceLock<Option<Own>> = OnceLock::new();

    /// The databases that were opened, by the names SQLite has for them, where links are followed.
    static DATABASES: Mutex<BTreeSet<Vec<u8>>> = Mutex::new(BTreeSet::new());

    /// The name of the VFS; none if there is no file system.
    pub(crate) fn vfs() -> Option<&'static CStr> {
        const NAME: &CStr = c"linchpin";
        let register = || {
            // SAFETY: SQLite's own VFS is there for ever and does not change.
            let base = unsafe { ffi::sqlite3_vfs_find(ptr::null()).as_ref() }?;
            let own = Own { open: base.xOpen?, delete: base.xDelete?, access: base.xAccess? };
            let vfs = sqlite3_vfs {
                zName: NAME.as_ptr(),
                pNext: ptr::null_mut(),
                mxPathname: base.mxPathname.min(512),
                xOpen: Some(open),
                xDelete: Some(delete),
                xAccess: Some(access),
                ..*base
            };
            // SAFETY: it is complete, and there for ever.
            let done = unsafe { ffi::sqlite3_vfs_register(Box::leak(Box::new(vfs)), 0) };
            (done == ffi::SQLITE_OK).then_some(own)
        };
        OWN.get_or_init(register).as_ref().map(|_| NAME)
    }

    fn own() -> Result<&'static Own, c_int> {
        OWN.get().and_then(Option::as_ref).ok_or(ffi::SQLITE_CANTOPEN)
    }

    /// The words for what was refused here.
    pub(crate) fn fault(code: c_int) -> Option<ToolError> {
        let (what, advice) = match code {
            OUTSIDE => (
                "the database has a hot journal that refers to another file",
                "Its journal (the database's name and -journal) names that file, as a transaction over several databases does, or a \
                 malicious one. Nothing was read, changed or deleted. The operator must check it: the program \
                 that started the transaction can finish it.",
            ),
            ODD => (
                "a file beside the database is not a regular file",
                "One of its -journal, -wal and -shm files is a link, a pipe or similar, so nothing was opened. The operator \
                 must check it.",
            ),
            _ => return None,
        };
        Some(ToolError::denied(format!("Database error: {what}")).hint(advice))
    }

    /// The database that a name belongs to, and what follows its name.
    fn split(name: &[u8]) -> Result<(&[u8], &[u8]), c_int> {
        let known = DATABASES.lock().unwrap_or_else(PoisonError::into_inner);
        [&b"-journal"[..], b"-wal"]
            .iter()
            .find_map(|end| name.strip_suffix(*end).filter(|name| known.contains(*name)).map(|name| (name, *end)))
            .ok_or(OUTSIDE)
    }

    /// Whether SQLite may open this name.
    fn may_open(name: Option<&CStr>, flags: c_int) -> Result<(), c_int> {
        // What has no name is temporary: it is made anew, and gone when it is closed.
        let Some(name) = name.map(CStr::to_bytes) else { return Ok(()) };
        if flags & ffi::SQLITE_OPEN_MAIN_DB != 0 {
            // No statement can open a database, so this is the configured one.
            DATABASES.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
            return Ok(());
        }
        if flags & (ffi::SQLITE_OPEN_MAIN_JOURNAL | ffi::SQLITE_OPEN_WAL) == 0 {
            return Err(OUTSIDE);
        }
        let (database, end) = split(name)?;
        is_plain(name)?;
        // SQLite opens this one without asking, next.
        if end == b"-wal" { is_plain(&[database, b"-shm"].concat()) } else { Ok(()) }
    }

    /// Refuses what is there and is not a regular file with this name only. SQLite follows no symbolic links here, but
    /// would wait for a pipe, and overwrite what a hard link leads to.
    fn is_plain(name: &[u8]) -> Result<(), c_int> {
        #[cfg(unix)]
        let path: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(name);
        #[cfg(not(unix))]
        let path = &*String::from_utf8_lossy(name);
        let Ok(meta) = std::fs::symlink_metadata(path) else { return Ok(()) };
        #[cfg(unix)]
        let one = std::os::unix::fs::MetadataExt::nlink(&meta) <= 1;
        #[cfg(not(unix))]
        let one = true;
        if meta.is_file() && one { Ok(()) } else { Err(ODD) }
    }

    /// # Safety
    /// As `xOpen` of SQLite.
    unsafe extern "C" fn open(
        vfs: *mut sqlite3_vfs,
        name: *const c_char,
        file: *mut sqlite3_file,
        flags: c_int,
        out: *mut c_int,
    ) -> c_int {
        // SAFETY: SQLite passes NULL, or a text that ends with NUL.
        let asked = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) });
        match may_open(asked, flags).and_then(|()| own()) {
            // SAFETY: all of it is as SQLite passed it, and the VFS is a copy of its own.
            Ok(own) => unsafe { (own.open)(vfs, name, file, flags, out) },
            Err(code) => {
                // SAFETY: SQLite has room for the file there; without methods it is not open.
                unsafe { (*file).pMethods = ptr::null() };
                code
            }
        }
    }

    /// # Safety
    /// As `xDelete` of SQLite.
    unsafe extern "C" fn delete(vfs: *mut sqlite3_vfs, name: *const c_char, sync: c_int) -> c_int {
        // SAFETY: SQLite passes a text that ends with NUL, and all of it is handed on as it was passed.
        unsafe {
            match split(CStr::from_ptr(name).to_bytes()).and_then(|_| own()) {
                Ok(own) => (own.delete)(vfs, name, sync),
                Err(code) => code,
            }
        }
    }

    /// # Safety
    /// As `xAccess` of SQLite.
    unsafe extern "C" fn access(vfs: *mut sqlite3_vfs, name: *const c_char, flags: c_int, out: *mut c_int) -> c_int {
        // SAFETY: SQLite passes a text that ends with NUL, and all of it is handed on as it was passed.
        unsafe {
            match split(CStr::from_ptr(name).to_bytes()).and_then(|_| own()) {
                Ok(own) => (own.access)(vfs, name, flags, out),
                Err(code) => code,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Functions of the bundled SQLite that reach files, code or the process, or hand out pointers.
    const FUNCTIONS_REFUSED: &[&str] = &["load_extension", "fts3_tokenizer", "fts5", "sqlite_log"];

    fn asked(action: AuthAction<'_>) -> AuthContext<'_> {
        AuthContext { action, database_name: None, accessor: None }
    }

    #[test]
    fn pragmas_are_an_allow_list() {
        for (policy, name, value, allowed) in [
            (Policy::Read, "table_info", Some("t"), true),
            (Policy::Read, "user_version", None, true),
            (Policy::Read, "user_version", Some("7"), false),
            (Policy::Write, "user_version", Some("7"), false),
            (Policy::WritePragma, "user_version", Some("7"), true),
            (Policy::WritePragma, "journal_mode", Some("WAL"), true),
            (Policy::WritePragma, "journal_mode", Some("off"), false),
            (Policy::WritePragma, "journal_mode", Some("memory"), false),
            (Policy::WritePragma, "writable_schema", Some("1"), false),
            (Policy::WritePragma, "writable_schema", None, false),
            (Policy::WritePragma, "trusted_schema", Some("1"), false),
            (Policy::WritePragma, "temp_store_directory", Some("/x"), false),
            (Policy::WritePragma, "data_store_directory", Some("/x"), false),
            (Policy::WritePragma, "hard_heap_limit", Some("0"), false),
            (Policy::WritePragma, "mmap_size", Some("1"), false),
            (Policy::WritePragma, "query_only", Some("0"), false),
            (Policy::WritePragma, "foreign_keys", Some("0"), false),
            (Policy::WritePragma, "nonsense", None, false),
            (Policy::Explain, "table_info", Some("t"), false),
        ] {
            assert_eq!(pragma(policy, name, value), allowed, "{policy:?} {name} {value:?}");
        }
    }

    /// One column of what a connection that nothing holds back says.
    fn bundled(query: &str) -> Vec<String> {
        let conn = Connection::open_in_memory().unwrap();
        let mut statement = conn.prepare(query).unwrap();
        let names = statement.query_map([], |row| row.get(0)).unwrap();
        names.collect::<rusqlite::Result<_>>().unwrap()
    }

    #[test]
    fn every_function_of_the_bundled_library_is_allowed_or_refused_and_no_other_is_named() {
        let bundled = bundled("SELECT DISTINCT name FROM pragma_function_list ORDER BY name");
        assert!(bundled.len() > 100, "{bundled:?}");
        for name in &bundled {
            let (allowed, refused) =
                (FUNCTIONS_ALLOWED.contains(&name.as_str()), FUNCTIONS_REFUSED.contains(&name.as_str()));
            assert!(allowed != refused, "{name} must be in exactly one list");
            let shouted = name.to_ascii_uppercase();
            let function = asked(AuthAction::Function { function_name: &shouted });
            assert_eq!(decide(Policy::Read, &function).is_ok(), allowed, "{name}");
        }
        for name in FUNCTIONS_ALLOWED.iter().chain(FUNCTIONS_REFUSED) {
            assert!(bundled.iter().any(|known| known == name), "{name} is none of the library's");
        }
        for name in FUNCTIONS_OF_ALTER {
            assert!(!bundled.iter().any(|known| known == name), "{name} is open to statements");
        }
        for unknown in ["readfile", "writefile", "edit", "lsdir", "shell", ""] {
            let function = asked(AuthAction::Function { function_name: unknown });
            assert_eq!(decide(Policy::Write, &function), Err(Refusal::Function(unknown.into())));
        }
    }

    #[test]
    fn every_module_of_the_bundled_library_may_be_created_or_is_unreadable() {
        // Looking at this list makes two of the PRAGMAs' own; json_each comes when it is first used.
        let bundled = bundled("SELECT name FROM pragma_module_list WHERE name NOT LIKE 'pragma\\_%' ESCAPE '\\'");
        assert!(bundled.iter().any(|name| name == "dbstat"), "{bundled:?}");
        for name in &bundled {
            let (allowed, unreadable) =
                (MODULES_ALLOWED.contains(&name.as_str()), MODULES_UNREADABLE.contains(&name.as_str()));
            assert!(allowed != unreadable, "{name} must be in exactly one list");
            let shouted = name.to_ascii_uppercase();
            let read = asked(AuthAction::Read { table_name: &shouted, column_name: "" });
            assert_eq!(decide(Policy::Read, &read).is_ok(), allowed, "{name}");
        }
    }

    #[test]
    fn what_is_in_the_temporary_database_is_refused_by_every_name() {
        for (action, database, refused) in [
            (AuthAction::CreateTable { table_name: "t" }, "temp", true),
            (AuthAction::CreateTable { table_name: "t" }, "main", false),
            (AuthAction::Insert { table_name: "sqlite_temp_master" }, "temp", true),
            (AuthAction::Update { table_name: "sqlite_temp_master", column_name: "sql" }, "temp", false),
            (AuthAction::Read { table_name: "sqlite_temp_master", column_name: "sql" }, "temp", false),
            (AuthAction::CreateTempView { view_name: "t" }, "main", true),
        ] {
            let context = AuthContext { database_name: Some(database), ..asked(action) };
            let expected = if refused { Err(Refusal::Temporary) } else { Ok(()) };
            assert_eq!(decide(Policy::Write, &context), expected, "{action:?} {database}");
        }
    }

    #[test]
    fn attach_is_for_vacuum_and_there_only_without_a_name() {
        let attach = |filename| asked(AuthAction::Attach { filename });
        for policy in [Policy::Read, Policy::Explain, Policy::Write, Policy::WritePragma, Policy::Transaction] {
            assert_eq!(decide(policy, &attach("")), Err(Refusal::Attach), "{policy:?}");
        }
        assert_eq!(decide(Policy::Vacuum, &attach("")), Ok(()));
        assert_eq!(decide(Policy::Vacuum, &attach("x")), Err(Refusal::Attach));
        let unnamed = asked(AuthAction::Unknown { code: ATTACH, arg1: None, arg2: None });
        assert_eq!(decide(Policy::Vacuum, &unnamed), Err(Refusal::Attach));
        assert_eq!(decide(Policy::Nothing, &asked(AuthAction::Select)), Err(Refusal::Other));
    }
}
