//! A database in a temporary directory, and calls as a client makes them.
#![allow(dead_code, reason = "each test file uses its own part")]

use linchpin::Server;
use linchpin::client::{Client, Connection, RawCallToolResult};
use linchpin::transport::in_process;
use linchpin::types::version::Revision;
use linchpin_sqlite::{Config, Sqlite};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) struct World {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) client: Connection,
}

/// A server with this configuration and all tools, those on request too, unless it names some; and a client of it.
pub(crate) async fn connect(mut config: Config, client: Client) -> Connection {
    if config.tools.enable.is_empty() && config.tools.toolsets.is_empty() {
        config.tools.toolsets = vec!["all".into()];
    }
    let (db, warnings) = Sqlite::open(config).expect("the database opens");
    let created = |warning: &&String| warning.ends_with(" did not exist and was created, empty");
    assert_eq!(warnings.iter().find(|warning| !created(warning)), None);
    let server = db.add_to(Server::new("sqlite", "1.0")).expect("the configuration is fine");
    client.connect(in_process(server)).await.expect("a connection")
}

pub(crate) fn host() -> Client {
    Client::new("test", "1").cache(false)
}

pub(crate) fn legacy() -> Client {
    host().revisions(&[Revision::V2025_11_25])
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// A new database at `DIR/x.db`, configured like this.
    pub(crate) async fn with(change: impl FnOnce(&mut Config)) -> Self {
        Self::over(tempfile::tempdir().expect("a directory"), change).await
    }

    /// The database `x.db` of this directory.
    pub(crate) async fn over(dir: tempfile::TempDir, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::default().with(|config| config.db_path = dir.path().join("x.db"));
        change(&mut config);
        let client = connect(config, host()).await;
        World { dir, client }
    }

    /// A database made with these statements by a connection that nothing holds back.
    pub(crate) async fn made(sql: &str, change: impl FnOnce(&mut Config)) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        raw(&dir.path().join("x.db")).execute_batch(sql).expect("the statements run");
        Self::over(dir, change).await
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The names in the directory, without those that SQLite keeps beside its database.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir.path()).expect("a directory");
        let mut names: Vec<String> =
            entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.retain(|name| !name.ends_with("-wal") && !name.ends_with("-shm") && !name.ends_with("-journal"));
        names.sort();
        names
    }

    /// A connection of our own to the database, to look behind the server.
    pub(crate) fn raw(&self) -> rusqlite::Connection {
        raw(&self.path("x.db"))
    }

    /// One number that a query of our own gives.
    pub(crate) fn number(&self, sql: &str) -> i64 {
        self.raw().query_row(sql, [], |row| row.get(0)).expect("a number")
    }

    pub(crate) async fn call(&self, tool: &str, args: Value) -> RawCallToolResult {
        let call = self.client.call(tool, args.clone()).timeout(Duration::from_secs(60));
        call.await.unwrap_or_else(|error| panic!("{tool} {args}: {error}"))
    }

    /// The text of a call that must succeed.
    pub(crate) async fn text(&self, tool: &str, args: Value) -> String {
        let result = self.call(tool, args.clone()).await;
        assert!(!result.is_error(), "{tool} {args} failed: {}", result.text());
        result.text()
    }

    /// The text of a call that must fail.
    pub(crate) async fn error(&self, tool: &str, args: Value) -> String {
        let result = self.call(tool, args.clone()).await;
        assert!(result.is_error(), "{tool} {args} succeeded: {}", result.text());
        result.text()
    }

    /// The structured content of a call that must succeed.
    pub(crate) async fn value(&self, tool: &str, args: Value) -> Value {
        let result = self.call(tool, args.clone()).await;
        assert!(!result.is_error(), "{tool} {args} failed: {}", result.text());
        serde_json::from_str(result.structured().expect("structured content")).expect("JSON")
    }

    pub(crate) async fn read(&self, query: &str) -> String {
        self.text("read_query", sql(query)).await
    }

    pub(crate) async fn write(&self, query: &str) -> String {
        self.text("write_query", sql(query)).await
    }
}

pub(crate) fn sql(query: &str) -> Value {
    json!({ "query": query })
}

pub(crate) fn raw(path: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(path).expect("a connection")
}
