//! Completion of prompt arguments, where the values of one argument depend on the others: rmcp's `completion` example,
//! with Linchpin (`docs/guide/src/from-rmcp.md`).
//!
//!     cargo run -p linchpin-examples --example completion

use linchpin::Completion;
use linchpin::prelude::*;

#[cfg(test)]
mod tests;

/// The tables of the database, with their columns.
const TABLES: [(&str, &[&str]); 3] = [
    ("books", &["id", "title", "author_id", "published"]),
    ("authors", &["id", "name", "born"]),
    ("loans", &["id", "book_id", "reader", "due"]),
];

async fn operations(asked: Completion) -> Vec<String> {
    asked.filter(["select", "insert", "update", "delete"])
}

async fn tables(asked: Completion) -> Vec<String> {
    asked.filter(TABLES.map(|(name, _)| name))
}

/// The columns of the chosen table, for operations that name columns.
async fn columns(asked: Completion) -> Vec<String> {
    match operation(&asked) {
        Some("select") => asked.filter(["*"].iter().chain(columns_of(&asked)).copied()),
        // The key is not written by hand.
        Some("insert" | "update") => asked.filter(columns_of(&asked).iter().copied().filter(|name| *name != "id")),
        _ => Vec::new(),
    }
}

/// Conditions on columns of the chosen table; an insert has no condition.
async fn conditions(asked: Completion) -> Vec<String> {
    match operation(&asked) {
        Some("select" | "update" | "delete") => {
            asked.filter(columns_of(&asked).iter().map(|name| format!("{name} = ?")))
        }
        _ => Vec::new(),
    }
}

/// The chosen `operation`. Clients before 2025-06-18 do not send the values that are already chosen.
fn operation(asked: &Completion) -> Option<&str> {
    asked.context.get("operation").map(String::as_str)
}

fn columns_of(asked: &Completion) -> &'static [&'static str] {
    let chosen = asked.context.get("table");
    TABLES.iter().find(|(name, _)| chosen.is_some_and(|chosen| chosen == name)).map_or(&[], |(_, columns)| columns)
}

struct Library;

#[register]
impl Library {
    /// Asks for an SQL statement.
    #[prompt(complete(operation = operations, table = tables, columns = columns, condition = conditions))]
    fn sql_query(
        /// What to do: select, insert, update or delete.
        operation: String,
        /// The table to do it with.
        table: String,
        /// A column; all of them when left out.
        columns: Option<String>,
        /// Which rows.
        condition: Option<String>,
    ) -> Result<String> {
        let Some((_, all)) = TABLES.iter().find(|(name, _)| *name == table) else {
            return Err(Error::invalid_params(format!("there is no table `{table}`")));
        };
        let columns = columns.filter(|chosen| !chosen.is_empty()).unwrap_or_else(|| all.join(", "));
        let rows = condition.map_or_else(String::new, |condition| format!(" where {condition}"));
        Ok(format!("Write one SQL statement: {operation} {columns} of the table `{table}`{rows}. Then explain it."))
    }
}

fn server() -> Server {
    Server::new("completion", "1.0").with(Library)
}

#[tokio::main]
async fn main() -> Result<(), ServeError> {
    server().serve(stdio().with_graceful_shutdown(shutdown_signal())).await
}
