//! Explores an SQLite database, which cannot be changed.
//!
//! `cargo run -p linchpin-examples --example sqlite-explorer -- shop.db`

use linchpin::prelude::*;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

struct Explorer(String);

impl Explorer {
    /// One line for each row, on a thread where waiting for the disk holds nobody up.
    async fn rows(&self, sql: String) -> Result<String> {
        let path = self.0.clone();
        let rows = tokio::task::spawn_blocking(move || -> rusqlite::Result<String> {
            let database = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
            let mut statement = database.prepare(&sql)?;
            let columns = statement.column_count();
            let (mut rows, mut out) = (statement.query([])?, String::new());
            while let Some(row) = rows.next()? {
                let cells = (0..columns).map(|column| row.get_ref(column).map(text)).collect::<Result<Vec<_>, _>>()?;
                out.push_str(&(cells.join(" | ") + "\n"));
            }
            Ok(out)
        });
        Ok(rows.await??)
    }
}

fn text(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "NULL".to_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

#[register]
impl Explorer {
    /// The statements that made the tables.
    #[resource("schema://main")]
    async fn schema(&self) -> Result<String> {
        self.rows("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL".to_owned()).await
    }

    /// Runs a query in SQL.
    #[tool(read_only)]
    async fn query(&self, sql: String) -> Result<String> {
        self.rows(sql).await
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: sqlite-explorer FILE");
        std::process::exit(2);
    };
    Ok(Server::new("sqlite-explorer", "1.0").with(Explorer(path)).serve(stdio()).await?)
}
