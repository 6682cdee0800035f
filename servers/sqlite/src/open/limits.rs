//! Settings and limits of a connection.

use super::authorizer::{Authorizer, is_of_one_pass};
use super::{GuardedConnection, Opener};
use crate::call;
use crate::statement::Outline;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::hooks::AuthContext;
use rusqlite::limits::Limit;
use std::sync::Arc;

/// Maximum memory of all databases in this process, in bytes. SQLite counts per process.
const MEMORY_BYTES_MAX: u64 = 512 << 20;

/// Maximum bytes of a value or row if the statement computes nothing from values: large values can be stored and
/// copied.
const VALUE_BYTES_MAX: i32 = 64 << 20;

/// Maximum bytes of a value or row in other statements, and during preparation. A function call cannot be interrupted,
/// and some functions take time proportional to the product of their arguments' lengths.
const COMPUTED_BYTES_MAX: i32 = 1 << 20;

/// Maximum bytes of SQL text in a call.
const SQL_BYTES_MAX: i32 = 1_000_000;

/// Maximum bytes of a LIKE or GLOB pattern.
const LIKE_BYTES_MAX: i32 = 1_000;

/// Maximum depth of triggers that fire triggers.
const TRIGGERS_MAX: i32 = 200;

/// Instructions between two checks whether a statement should stop: a few microseconds.
const PROGRESS_STEPS: i32 = 1_000;

impl Opener {
    /// Applies all limits to a connection.
    pub(super) fn secure(&self, conn: &Connection, authorizer: &Arc<Authorizer>) -> rusqlite::Result<()> {
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
        conn.busy_handler(Some(call::wait_for_lock))?;
        conn.progress_handler(PROGRESS_STEPS, Some(call::is_over))?;
        // Sorting uses memory, so the memory limit applies to it and nothing spills into files.
        conn.execute_batch(&format!(
            "PRAGMA cell_size_check=ON; PRAGMA mmap_size=0; PRAGMA temp_store=MEMORY; \
             PRAGMA hard_heap_limit={MEMORY_BYTES_MAX};"
        ))?;
        if self.only_reads {
            conn.execute_batch("PRAGMA query_only=ON;")?;
        }
        // A change that nobody waits for any more is not committed, even if the statement could not be interrupted.
        conn.commit_hook(Some(call::is_over))?;
        let authorizer = Arc::clone(authorizer);
        conn.authorizer(Some(move |asked: AuthContext<'_>| authorizer.decide(&asked)))
    }
}

impl GuardedConnection {
    /// Limits values while a statement is prepared: SQLite may read the schema then, and a malicious file can make it
    /// compute anything.
    pub(crate) fn limit_preparation(&self) -> rusqlite::Result<()> {
        self.conn.set_limit(Limit::SQLITE_LIMIT_LENGTH, COMPUTED_BYTES_MAX).map(drop)
    }

    /// Limits values for `sql`, which was just prepared; until then the limit for preparation applies.
    pub(crate) fn limit_values(&self, sql: &str) -> rusqlite::Result<()> {
        let most = if self.computes(sql)? { COMPUTED_BYTES_MAX } else { VALUE_BYTES_MAX };
        self.conn.set_limit(Limit::SQLITE_LIMIT_LENGTH, most).map(drop)
    }

    /// Whether a statement computes something from values: with its own functions, or with those of the schema (checks,
    /// defaults, generated columns, indexes, triggers), which the authorizer does not see.
    fn computes(&self, sql: &str) -> rusqlite::Result<bool> {
        let outline = Outline::at(sql);
        let begins = |words: &[&str]| outline.as_ref().is_some_and(|outline| outline.begins(words));
        if self.authorizer.alters() {
            // A new check or default is evaluated for every existing row; other changes copy rows.
            return Ok(sql.split(|c: char| !c.is_ascii_alphabetic()).any(|word| word.eq_ignore_ascii_case("ADD")));
        }
        if self.authorizer.computes() {
            return Ok(true);
        }
        // The table-valued form of a PRAGMA runs it as a statement of its own.
        if sql.to_ascii_lowercase().contains("pragma_") {
            return Ok(true);
        }
        // VACUUM rebuilds the indexes in statements of its own.
        let explained = if begins(&["VACUUM"]) { "REINDEX" } else { sql };
        if begins(&["EXPLAIN"]) {
            return Ok(false);
        }
        let mut program = self.conn.prepare(&format!("EXPLAIN {explained}"))?;
        let mut steps = program.raw_query();
        while let Some(step) = steps.next()? {
            let (opcode, operand): (String, Option<String>) = (step.get("opcode")?, step.get("p4").unwrap_or_default());
            let calls = ["Function", "PureFunc", "AggStep", "AggStep1", "AggInverse"].contains(&opcode.as_str());
            if calls && !operand.is_some_and(|function| is_of_one_pass(&function)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
