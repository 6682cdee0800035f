//! Runs a statement: prepares it under a policy, binds its values, and collects as many rows as fit.

use crate::call;
use crate::open::GuardedConnection;
use crate::open::authorizer::Policy;
use crate::statement::Outline;
use crate::table::{Bounds, Cut, Form, Table, Writer};
use crate::value::{Cell, Params};
use linchpin_kit::{ErrorKind, ToolError};
use rusqlite::hooks::{AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{ErrorCode, Statement};
use std::collections::BTreeSet;
use std::sync::Arc;

impl GuardedConnection {
    /// Prepares one statement under a policy. The policy stays for the rest of the call, because SQLite may recompile
    /// the statement.
    pub(crate) fn prepare(&self, policy: Policy, sql: &str) -> Result<Statement<'_>, ToolError> {
        // SQLite would show the path of the file, which need not be revealed.
        let shown = format!("SELECT 0 AS seq, 'main' AS name, '{}' AS file", self.named.replace('\'', "''"));
        let lists = Outline::at(sql).is_some_and(|outline| outline.begins(&["PRAGMA", "DATABASE_LIST"]));
        let sql = if lists { shown.as_str() } else { sql };
        self.limit_preparation().map_err(|error| self.error(error))?;
        self.authorizer.set(policy);
        let prepared = match self.conn.prepare(sql) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::Unknown) => {
                // The object may seem missing only because SQLite uses an old schema while another program holds the
                // lock. Try again with the current one.
                let version = self.conn.query_row("PRAGMA main.schema_version", [], |row| row.get::<_, i64>(0));
                version.map_err(|error| self.error(error))?;
                self.authorizer.set(policy);
                self.conn.prepare(sql)
            }
            prepared => prepared,
        };
        let statement = prepared.map_err(|error| match error.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) => call::unprepared(),
            _ => self.error(error),
        })?;
        self.limit_values(sql).map_err(|error| self.error(error))?;
        Ok(statement)
    }

    /// Permits one VACUUM: it must attach its copy, and the copy may exceed the memory limit.
    pub(crate) fn vacuum<T>(
        &self,
        work: impl FnOnce(&GuardedConnection) -> Result<T, ToolError>,
    ) -> Result<T, ToolError> {
        let set = |places: i32, store: &str| -> rusqlite::Result<()> {
            self.conn.set_limit(Limit::SQLITE_LIMIT_ATTACHED, places)?;
            // The authorizer would refuse this statement of our own.
            self.conn.authorizer(None::<fn(AuthContext<'_>) -> Authorization>)?;
            let stored = self.conn.execute_batch(&format!("PRAGMA temp_store={store}"));
            let authorizer = Arc::clone(&self.authorizer);
            self.conn.authorizer(Some(move |asked: AuthContext<'_>| authorizer.decide(&asked)))?;
            stored
        };
        let failed = |error| self.error(error);
        set(1, "FILE").map_err(failed)?;
        let done = work(self);
        set(0, "MEMORY").map_err(failed)?;
        done
    }

    /// The rows of a read-only statement of our own.
    pub(crate) fn rows(&self, sql: &str, params: &[&str], bounds: Bounds, form: Form) -> Result<Table, ToolError> {
        let mut statement = self.prepare(Policy::Read, sql)?;
        let params = params.iter().map(|text| Cell::Text((*text).to_owned())).collect();
        bind(&mut statement, Some(&Params::Positional(params)))?;
        step(&mut statement, bounds, form, End::Stop).map_err(|error| self.error(error))
    }
}

/// Binds a value to each placeholder; none may be missing or left over.
pub(crate) fn bind(statement: &mut Statement<'_>, params: Option<&Params>) -> Result<(), ToolError> {
    let failed = |error: rusqlite::Error| {
        ToolError::new("Database error: a value of params cannot be bound")
            .kind(ErrorKind::Limited { retry_after: None })
            .detail(error.to_string())
    };
    let wanted = statement.parameter_count();
    let nothing = Params::Positional(Vec::new());
    match params.unwrap_or(&nothing) {
        Params::Wrong(why) => {
            return Err(ToolError::invalid(why)
                .hint("Each value is null, true, false, a number, a string, or {\"base64\": …} for binary data."));
        }
        Params::Positional(values) => {
            if values.len() != wanted {
                let given = values.len();
                return Err(ToolError::invalid(format!(
                    "Database error: Incorrect number of bindings supplied. The current statement uses {wanted}, and there \
                     are {given} supplied."
                ))
                .hint("Pass one item in params for each placeholder of the query."));
            }
            for (index, value) in (1..).zip(values) {
                statement.raw_bind_parameter(index, value).map_err(failed)?;
            }
        }
        Params::Named(values) => {
            let mut used = BTreeSet::new();
            for index in 1..=wanted {
                let name = statement.parameter_name(index).map(str::to_owned).ok_or_else(|| {
                    ToolError::invalid(format!("Error: placeholder {index} has no name"))
                        .hint("Pass params as an array, or name the placeholders as in :name.")
                })?;
                let bare = &name[1..];
                let found = values.iter().find(|(key, _)| *key == name || key == bare);
                let (key, value) = found.ok_or_else(|| {
                    ToolError::invalid(format!(
                        "Database error: You did not supply a value for binding parameter {name}."
                    ))
                })?;
                used.insert(key.as_str());
                statement.raw_bind_parameter(index, value).map_err(failed)?;
            }
            if let Some((key, _)) = values.iter().find(|(key, _)| !used.contains(key.as_str())) {
                return Err(ToolError::invalid(format!("Error: the query has no placeholder named {key}")));
            }
        }
    }
    Ok(())
}

/// Whether a statement runs to completion after enough rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Stop,
    Finish,
}

/// Steps through a bound statement and collects the rows that fit. Holds at most these and one more value.
pub(crate) fn step(
    statement: &mut Statement<'_>,
    bounds: Bounds,
    form: Form,
    end: End,
) -> Result<Table, rusqlite::Error> {
    let mut writer: Option<Writer> = None;
    let mut table = Table { columns: Vec::new(), rows: Vec::new(), text: "[".into(), cut: None };
    {
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            if table.cut.is_some() {
                continue;
            }
            // The column names are certain only now: SQLite may recompile the statement at its first step.
            let writer = writer.get_or_insert_with(|| Writer::new(&row.as_ref().column_names(), form));
            let columns = row.as_ref().column_count();
            let too_long = |index| raw_length(row.get_ref_unwrap(index)) > bounds.bytes;
            let over = if table.rows.len() >= bounds.rows {
                Some(Cut::Rows(bounds.rows))
            } else if (0..columns).any(too_long) {
                Some(Cut::Bytes(bounds.bytes))
            } else {
                let cells: Vec<Cell> = (0..columns).map(|index| Cell::of(row.get_ref_unwrap(index))).collect();
                let before = table.text.len();
                writer.write(&cells, &mut table.text);
                if table.text.len() > bounds.bytes {
                    table.text.truncate(before);
                    Some(Cut::Bytes(bounds.bytes))
                } else {
                    table.rows.push(cells);
                    None
                }
            };
            table.cut = over;
            if table.cut.is_some() && end == End::Stop {
                break;
            }
        }
    }
    table.text.push(']');
    table.columns = match writer {
        Some(writer) => writer.columns,
        None => statement.column_names().into_iter().map(str::to_owned).collect(),
    };
    Ok(table)
}

fn raw_length(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
        _ => 0,
    }
}
