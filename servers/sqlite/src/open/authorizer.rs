//! What a statement may do: SQLite's authorizer.
//!
//! SQLite asks it about every action of a statement while the statement is prepared, including those of views and
//! triggers, so nothing depends on how a statement is written. It is an allow-list of actions, functions, PRAGMAs and
//! modules; anything else is refused. Tables are not listed, because they are the database's own; see
//! [`MODULES_UNREADABLE`].
//!
//! SQLite does not ask about files that it opens on its own account; [`super::vfs`] confines those.

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the current statement may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Nothing; between calls.
    Nothing,
    /// Read data and schema.
    Read,
    /// Be explained: it may name changes, and nothing is run.
    Explain,
    /// Change data and schema.
    Write,
    /// The same, for a PRAGMA.
    WritePragma,
    /// Rebuild the database file in place (VACUUM).
    Vacuum,
    /// Several statements of this server in one transaction.
    Transaction,
}

impl Policy {
    pub(crate) fn writes(self) -> bool {
        matches!(self, Policy::Write | Policy::WritePragma | Policy::Vacuum | Policy::Transaction)
    }
}

/// Why the authorizer refused a statement.
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
    /// The hint: what to do instead.
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

/// The current policy and the last refusal.
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
    /// Whether it is ALTER TABLE, which calls functions on the schema and copies rows.
    alters: bool,
}

impl State {
    fn new(policy: Policy) -> State {
        State { policy, refused: None, computes: false, alters: false }
    }
}

impl Authorizer {
    /// An authorizer that refuses everything.
    pub(crate) fn new() -> Authorizer {
        Authorizer { state: Mutex::new(State::new(Policy::Nothing)) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the policy.
    pub(crate) fn set(&self, policy: Policy) {
        *self.lock() = State::new(policy);
    }

    /// The current policy.
    pub(crate) fn policy(&self) -> Policy {
        self.lock().policy
    }

    /// Whether the statement itself computes something from values.
    pub(super) fn computes(&self) -> bool {
        self.lock().computes
    }

    /// Whether the statement is an ALTER TABLE, which SQLite runs with internal functions.
    pub(super) fn alters(&self) -> bool {
        self.lock().alters
    }

    /// Why the last statement was refused, if it was.
    pub(crate) fn refused(&self) -> Option<Refusal> {
        self.lock().refused.clone()
    }

    pub(crate) fn decide(&self, asked: &AuthContext<'_>) -> Authorization {
        let mut state = self.lock();
        if let AuthAction::Function { function_name } = asked.action {
            state.computes |= !is_of_one_pass(function_name);
        }
        state.alters |= matches!(asked.action, AuthAction::AlterTable { .. });
        match decide(state.policy, asked) {
            Ok(()) => Authorization::Allow,
            Err(refusal) => {
                // The first refusal tells most about the statement.
                state.refused.get_or_insert(refusal);
                Authorization::Deny
            }
        }
    }
}

/// Whether a function's cost is at most linear in the length of its arguments. `name` may be followed by the number of
/// arguments: `length(1)`.
pub(super) fn is_of_one_pass(name: &str) -> bool {
    let name = name.split('(').next().unwrap_or_default();
    FUNCTIONS_OF_ONE_PASS.iter().any(|known| known.eq_ignore_ascii_case(name))
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
        // VACUUM itself attaches a file without a name.
        AuthAction::Attach { filename: "" } if policy == Policy::Vacuum => Ok(()),
        AuthAction::Attach { .. } | AuthAction::Detach { .. } => Err(Refusal::Attach),
        AuthAction::Transaction { .. } => {
            only_if(matches!(policy, Policy::Transaction | Policy::Vacuum), Refusal::Transaction)
        }
        // Used internally by the `optimize` command of fts3 and fts4; as a statement it is refused by its keyword.
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
        // ATTACH with a file name that is not a literal has no name here.
        AuthAction::Unknown { code: ATTACH, .. } => Err(Refusal::Attach),
        _ => Err(Refusal::Other),
    }
}

/// Whether an action would change the temporary database.
fn changes_temporary(action: &AuthAction<'_>) -> bool {
    match action {
        AuthAction::Select | AuthAction::Recursive | AuthAction::Read { .. } => false,
        AuthAction::Function { .. } | AuthAction::Pragma { .. } => false,
        // Renaming a table updates its name in temporary views and triggers. A statement cannot do this directly,
        // because the schema is not writable.
        AuthAction::Update { table_name: "sqlite_temp_master", .. } => false,
        _ => true,
    }
}

/// An R*Tree prepares its changes when it is opened, even for reading. Whether the whole statement is read-only is
/// checked after it is prepared, and the connection refuses changes too (`query_only`).
fn is_of_rtree(table: &str) -> bool {
    ["_node", "_rowid", "_parent"].iter().any(|suffix| table.ends_with(suffix))
}

const ATTACH: i32 = rusqlite::ffi::SQLITE_ATTACH;

/// Functions that statements may use: those of the bundled SQLite that only compute. A test compares this list with the
/// library's, so a new version cannot add any unnoticed.
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

/// Functions that ALTER TABLE uses internally. SQLite neither lists them nor lets statements call them.
const FUNCTIONS_OF_ALTER: &[&str] = &[
    "sqlite_rename_column",
    "sqlite_rename_table",
    "sqlite_rename_test",
    "sqlite_rename_quotefix",
    "sqlite_drop_column",
];

/// Functions that read a value at most once, or take a part of it. Statements that use no others may handle large
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

/// Virtual tables that exist without being created, except `json_each`, `json_tree` and those of the allowed PRAGMAs.
/// Only their names are known here, so a table with one of these names cannot be read either.
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

/// PRAGMAs that only read, with or without an argument.
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

/// PRAGMAs that read a setting if no value is given.
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

/// PRAGMAs that change the database itself rather than the connection, which other calls share.
fn pragma(policy: Policy, name: &str, value: Option<&str>) -> bool {
    if policy == Policy::Explain {
        // Some take effect while they are prepared, even after EXPLAIN.
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

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::Connection;

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
