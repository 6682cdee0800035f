//! Tables as resources: `postgres://user@host:port/<table>/schema` for schema `public`, `…/<schema>.<table>/schema` for
//! others.

use crate::Postgres;
use crate::config::percent_encode;
use crate::session::Database;
use crate::sql::{COLUMNS, LIST_TABLES};
use crate::value::{Cell, Shape, Type, objects, texts};
use linchpin::Handle;
use linchpin::types::content::{Annotations, Role};
use linchpin::{Error, NoArgs, Resource, Server};
use linchpin_kit::ToolError;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Tables listed for each database; others are found with `pg_list_objects` and read through the template.
const LISTED_MAX: usize = 2_000;

/// How long a list request waits for the databases. Later responses are announced with a notification.
const LIST_WAIT: Duration = Duration::from_secs(5);

/// Maximum age of the list before it is refreshed.
const LIST_TIME: Duration = Duration::from_secs(10);

/// The tables that are listed, and since when.
#[derive(Default)]
pub(crate) struct Listing {
    /// URIs, each with the number of its database.
    listed: Mutex<BTreeMap<String, usize>>,
    since: Mutex<Option<Instant>>,
    handle: Mutex<Option<Handle>>,
    /// Whether any database has ever returned its tables.
    known: AtomicBool,
    /// Held by the task that refreshes the list.
    turn: tokio::sync::Mutex<()>,
}

impl Listing {
    /// When the list was last refreshed; `None` before the first request.
    fn age(&self) -> Option<Duration> {
        let since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        since.map(|since| since.elapsed())
    }

    fn is_new_now(&self) {
        *self.since.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }
}

/// A table: schema and name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Table {
    schema: String,
    name: String,
}

/// The template's variable.
#[derive(Debug, Deserialize, JsonSchema)]
struct At {
    table: String,
}

/// Adds the template, and the tables of the databases when the list is requested.
pub(crate) fn add(postgres: Postgres, mut server: Server<Postgres>) -> Result<Server<Postgres>, ToolError> {
    for (at, database) in postgres.databases.iter().enumerate() {
        let uri = uri(&postgres, at, "{table}");
        let database = database.clone();
        let template = Resource::new(uri)
            .name(if at == 0 { "table".to_owned() } else { format!("table of {}", database.target.name) })
            .title("Columns of a table")
            .description("table, or schema.table outside of public; names percent-encoded")
            .mime_type("application/json");
        server = server.resource(for_models(template), move |_: &Postgres, at: At| {
            let database = database.clone();
            async move { named(&database, &at.table).await }
        });
    }
    let handle = server.handle();
    *postgres.listing.handle.lock().unwrap_or_else(PoisonError::into_inner) = Some(handle);
    Ok(server.refresh_resources(move || {
        let postgres = postgres.clone();
        async move { postgres.refresh_list().await }
    }))
}

/// Column names were chosen by whoever created the table, so they are data for the model.
fn for_models(resource: Resource) -> Resource {
    resource.annotations(Annotations::new().with_audience([Role::Assistant]))
}

/// The URI of a table, or of `{table}`, in the database with this index. A server with an instance name includes it:
/// another instance may use the same host.
fn uri(postgres: &Postgres, at: usize, table: &str) -> String {
    let this = &postgres.databases[at].target;
    let mut uri = format!("postgres://{}/{table}/schema", this.authority);
    // Distinguishes the databases of one server.
    if postgres.databases[..at].iter().any(|other| other.target.authority == this.authority) {
        uri.push_str("?database=");
        uri.push_str(&percent_encode(&this.name));
    }
    postgres.config.tools.uri(&uri)
}

impl Postgres {
    /// Refreshes the list in the background if it is old. Does nothing before the first request, when nobody can miss a
    /// change.
    pub(crate) fn touch_list(&self) {
        if self.listing.age().is_some_and(|age| age >= LIST_TIME) {
            self.listing.is_new_now();
            let this = self.clone();
            tokio::spawn(async move { this.renew_list().await });
        }
    }

    /// Refreshes the list if it is old. A refresh that takes longer than the caller waits continues in the background.
    ///
    /// # Errors
    /// When no database has ever returned its tables.
    async fn refresh_list(&self) -> Result<(), Error> {
        if self.listing.age().is_some_and(|age| age < LIST_TIME) {
            return Ok(());
        }
        let this = self.clone();
        let renewal = tokio::spawn(async move {
            let _turn = this.listing.turn.lock().await;
            // Another task may have refreshed it while this one waited.
            if this.listing.age().is_none_or(|age| age >= LIST_TIME) { this.renew_list().await } else { None }
        });
        let failed = match tokio::time::timeout(LIST_WAIT, renewal).await {
            Ok(renewed) => renewed.ok().flatten(),
            Err(_) => Some(ToolError::new("No database has responded yet.").hint("Try again in a moment.")),
        };
        match failed {
            Some(fault) if !self.listing.known.load(Ordering::Relaxed) => Err(fault.for_resource()),
            _ => Ok(()),
        }
    }

    /// Queries all databases at once, so that one that does not respond does not delay the tables of the others.
    /// Returns an error if all fail.
    async fn renew_list(&self) -> Option<ToolError> {
        let mut asked = tokio::task::JoinSet::new();
        for (at, database) in self.databases.iter().enumerate() {
            let database = database.clone();
            asked.spawn(async move { (at, tables(&database).await) });
        }
        let (mut failed, mut reached) = (None, false);
        while let Some(answered) = asked.join_next().await {
            match answered {
                Ok((at, Ok(tables))) => {
                    self.list(at, tables);
                    self.listing.known.store(true, Ordering::Relaxed);
                    reached = true;
                }
                // A database that cannot be reached keeps its previous tables.
                Ok((_, Err(fault))) => failed = failed.or(Some(fault)),
                Err(_) => {}
            }
        }
        if reached || self.listing.known.load(Ordering::Relaxed) {
            self.listing.is_new_now();
        }
        failed.filter(|_| !reached)
    }

    /// Lists exactly these tables for the database with this index.
    fn list(&self, at: usize, tables: Vec<Table>) {
        let name = |table: &Table| match table.schema.as_str() {
            "public" => percent_encode(&table.name),
            schema => format!("{}.{}", percent_encode(schema), percent_encode(&table.name)),
        };
        let mut now = BTreeMap::new();
        now.extend(tables.into_iter().map(|table| (uri(self, at, &name(&table)), table)));
        let handle = self.listing.handle.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(handle) = handle else { return };
        let resources = handle.resources();
        let mut listed = self.listing.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let is_gone = |(uri, of): (&String, &usize)| (*of == at && !now.contains_key(uri)).then(|| uri.clone());
        let gone: Vec<String> = listed.iter().filter_map(is_gone).collect();
        for uri in gone {
            // Another task may have removed it already.
            let _ = resources.remove(&uri);
            listed.remove(&uri);
        }
        for (uri, table) in now {
            if listed.contains_key(&uri) {
                continue;
            }
            let label = match table.schema.as_str() {
                "public" => table.name.clone(),
                schema => format!("{schema}.{}", table.name),
            };
            let resource =
                Resource::new(uri.clone()).name(format!("\"{label}\" database schema")).mime_type("application/json");
            let database = self.databases[at].clone();
            let handler = move |_: NoArgs| {
                let (database, table) = (database.clone(), table.clone());
                async move { columns(&database, &table).await?.ok_or_else(Error::not_found) }
            };
            if resources.insert(for_models(resource), handler).is_ok() {
                listed.insert(uri, at);
            }
        }
    }
}

async fn tables(database: &Arc<Database>) -> Result<Vec<Table>, ToolError> {
    let schemas = Some(texts(&database.target.schemas));
    let (rows, _) = database.own(LIST_TABLES, &[schemas, Some(LISTED_MAX.to_string())]).await?;
    Ok(rows.iter().map(|row| Table { schema: row.text(0), name: row.text(1) }).collect())
}

/// The table that a URI names: in `public`, or qualified with a schema.
async fn named(database: &Arc<Database>, text: &str) -> Result<String, Error> {
    let in_public = Table { schema: "public".to_owned(), name: text.to_owned() };
    let split = text
        .match_indices('.')
        .take(4)
        .map(|(dot, _)| Table { schema: text[..dot].to_owned(), name: text[dot + 1..].to_owned() });
    for table in std::iter::once(in_public).chain(split) {
        if let Some(contents) = columns(database, &table).await? {
            return Ok(contents);
        }
    }
    Err(Error::not_found())
}

/// The columns of a table as JSON; `None` when there is no such table.
async fn columns(database: &Arc<Database>, table: &Table) -> Result<Option<String>, Error> {
    let allowed = &database.target.schemas;
    if !allowed.is_empty() && !allowed.contains(&table.schema) {
        return Ok(None);
    }
    let parameters = [Some(table.schema.clone()), Some(table.name.clone())];
    let (rows, _) = database.own(COLUMNS, &parameters).await.map_err(ToolError::for_resource)?;
    let text = Type { name: String::new(), shape: Shape::Text, array: None };
    let rows: Vec<Vec<Cell>> =
        rows.iter().map(|row| (0..row.len()).map(|at| Cell::new(row.cell(at).as_deref(), &text)).collect()).collect();
    Ok((!rows.is_empty()).then(|| objects(&["column_name", "data_type"], &rows)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[tokio::test]
    async fn what_cannot_be_reached_stays_as_it_was_listed() {
        let list = tempfile::NamedTempFile::new().unwrap();
        // Nothing listens on this port.
        let entry = |name: &str| format!("[databases.{name}]\nurl = \"postgres://u@127.0.0.1:1/{name}\"\n");
        std::fs::write(list.path(), [entry("a"), entry("b")].concat()).unwrap();
        let config = Config { file: Some(list.path().to_owned()), ..Config::default() };
        let postgres = Postgres::open(config).unwrap().0;
        let server = postgres.clone().add_to(Server::new("t", "1")).unwrap();
        let table = |name: &str| Table { schema: "public".to_owned(), name: name.to_owned() };
        let listed = || {
            let listed = postgres.listing.listed.lock().unwrap();
            let tables = listed.keys().map(|uri| uri.split('/').nth(3).unwrap().to_owned()).collect::<Vec<_>>();
            tables.join(" ")
        };
        postgres.list(0, vec![table("one"), table("two")]);
        postgres.list(1, vec![table("three")]);
        assert_eq!(listed(), "one three two");
        postgres.renew_list().await;
        assert_eq!(listed(), "one three two", "neither answered");
        postgres.list(0, vec![table("two")]);
        assert_eq!(listed(), "three two");
        postgres.list(1, Vec::new());
        assert_eq!(listed(), "two");
        drop(server);
    }
}
